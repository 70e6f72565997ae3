/* What the fuzz targets of the readers share: any bytes as a folder of files, everything read, strict and tolerant. */
#ifndef SN_TESTS_FUZZ_RECORDING_H
#define SN_TESTS_FUZZ_RECORDING_H

#include <stddef.h>
#include <stdint.h>

#include "modalities/recording.h"

/* Input: "NAME SIZE\n" lines up to an empty line, then the files' bytes in that order; the first is opened. What does
 * not follow that is one file named `name`. Aborts, saying why, on an error without a message, on values that depend on
 * the window or on the company of other channels, and on annotations out of order or outside the recording. */
void fuzz_recording(const sn_format *format, const char *name, const uint8_t *data, size_t size);

/* Every file of tests/corpus/FOLDER through `target`, whole, cut short and with bits changed; returns how many files.
 * For tests. */
int fuzz_corpus(const char *folder, int (*target)(const uint8_t *data, size_t size));

#endif
