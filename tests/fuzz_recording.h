/* What the fuzz targets of the readers share: any bytes as a folder of files, everything read, strict and tolerant. */
#ifndef SN_TESTS_FUZZ_RECORDING_H
#define SN_TESTS_FUZZ_RECORDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "modalities/recording.h"

/* What a target asks for beyond the rules that hold for every reader. */
typedef struct fuzz_target {
  const sn_format *format;
  const char *names[4];      /* what input without a table of files is called: the same bytes under each; NULL ends */
  const char *assume_unit;   /* when tolerant */
  double assume_rate_hz;
  bool stored;               /* stored integers are missing where the values are */
  bool all_stored;           /* so, and they can always be read, as the values can unless the channel is uncalibrated */
  bool may_be_empty;         /* annotations alone are opened */
  bool outside;              /* annotations may lie outside the recording: then they are in the order of their onset */
  bool any_channel;          /* the channel of an annotation is the file's own number, whatever the recording has (WFDB) */
  void (*also)(const sn_recording *recording, const uint8_t *data, size_t size); /* may be NULL */
} fuzz_target;

/* Input: "NAME SIZE\n" lines up to an empty line, then the files' bytes in that order; the first is opened. Aborts,
 * saying why, on an error without a message, on values that depend on the window or on the company of other channels, and
 * on annotations out of order or outside the recording. */
void fuzz_recording_as(const fuzz_target *target, const uint8_t *data, size_t size);
/* The same for a reader without wishes; assumes uV. */
void fuzz_recording(const sn_format *format, const char *name, const uint8_t *data, size_t size);
void fuzz_broken(const char *what); /* aborts */

/* Every file of tests/corpus/FOLDER through `target`, whole, cut short and with bits changed; returns how many files.
 * For tests. */
int fuzz_corpus(const char *folder, int (*target)(const uint8_t *data, size_t size));

#endif
