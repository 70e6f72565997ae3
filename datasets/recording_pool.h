/* Open recordings of a manifest: opened on demand, verified at first use, at most so many at a time.
 *
 * A recording in use is never closed; beyond the bound one is opened for its user alone and closed after it. */
#ifndef SN_DATASETS_RECORDING_POOL_H
#define SN_DATASETS_RECORDING_POOL_H

#include <stdint.h>

#include "core/status.h"
#include "core/log.h"
#include "datasets/manifest.h"
#include "modalities/recording.h"

typedef enum sn_verify { SN_VERIFY_NONE = 0, SN_VERIFY_FILES, SN_VERIFY_FULL } sn_verify;

typedef struct sn_recording_pool sn_recording_pool;

/* manifest is borrowed.  verify, once per recording and process: FILES compares the manifest's checksum; FULL also the
 * checksums that the format itself states, which reads everything once.  What its modality finds odd
 * about a recording at its first use (sn_modality.notice) goes to log (may be NULL), once. */
SN_MUST_CHECK sn_status sn_recording_pool_create(const sn_manifest *manifest, int64_t most_open, sn_verify verify,
                                                 const sn_open_options *options, const sn_log *log,
                                                 sn_recording_pool **out, sn_error *err);
void sn_recording_pool_destroy(sn_recording_pool *pool); /* accepts NULL; nothing may be in use */

/* The recording of a line, to be given back.  A fault found by verifying is found again on every call.  The message
 * begins with the line's path.  Thread-safe. */
SN_MUST_CHECK sn_status sn_recording_pool_take(sn_recording_pool *pool, int64_t row, const sn_recording **out,
                                               sn_error *err);
void sn_recording_pool_give(sn_recording_pool *pool, int64_t row, const sn_recording *recording);

int64_t sn_recording_pool_opened(const sn_recording_pool *pool);    /* how often one was opened so far */
int64_t sn_recording_pool_most_open(const sn_recording_pool *pool); /* most that were open at once */

#endif
