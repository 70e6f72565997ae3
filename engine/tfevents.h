/* TensorBoard event files: scalars only (TFRecord framing with CRC-32C, Event protobuf written by hand). */
#ifndef SN_ENGINE_TFEVENTS_H
#define SN_ENGINE_TFEVENTS_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_tfevents sn_tfevents;

/* Appends to `path`, first cutting it to `length` bytes (0: a new file with its version record). */
SN_MUST_CHECK sn_status sn_tfevents_open(const char *path, int64_t length, sn_tfevents **out, sn_error *err);
SN_MUST_CHECK sn_status sn_tfevents_scalar(sn_tfevents *events, int64_t step, const char *tag, double value,
                                           sn_error *err);
SN_MUST_CHECK sn_status sn_tfevents_flush(sn_tfevents *events, int64_t *length, sn_error *err);
void sn_tfevents_close(sn_tfevents *events); /* accepts NULL */

/* CRC-32C (Castagnoli, reflected 0x82F63B78), which frames the records. */
uint32_t sn_crc32c(const void *data, int64_t n);

#endif
