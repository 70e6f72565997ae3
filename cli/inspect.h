/* Between the files of `sonde inspect`: what was asked, what was found, and the two ways to write it down. */
#ifndef SN_CLI_INSPECT_H
#define SN_CLI_INSPECT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "core/text.h"
#include "modalities/recording.h"

typedef struct inspect_request {
  const char *path, *channel, *annotator, *reference;
  bool json, stats, values, all_annotations, tolerant, dates;
  int64_t first, count; /* of --values, in samples of a channel, segments joined */
} inspect_request;

typedef struct inspect_stats {
  bool known;
  int64_t n, missing;   /* n: samples that are not missing */
  double min, max, mean, std;
  char sha256_f32[65];
} inspect_stats;

typedef struct inspect_channel {
  inspect_stats stats;
  bool values_known;
  double *values;       /* (request->count) */
} inspect_channel;

/* The first error stands in `error`; what could be done in spite of it is still shown. */
typedef struct inspect_result {
  const inspect_request *request;
  sn_recording *recording;       /* NULL when it could not be opened */
  sn_annotations *annotations;   /* NULL when they could not be read */
  inspect_channel *channels;     /* (recording->n_channels) */
  sn_status status;
  sn_error error;
} inspect_result;

/* Keeps the first error. */
void sn_inspect_fail(inspect_result *result, sn_status status, const sn_error *err);

/* One more thing to show, on its own switch --NAME: cli/inspect_parts.def has one line SN_INSPECT_PART(NAME, "help") for
 * it, and sn_inspect_NAME(recording, request, json, text, err) writes its value to `json` (the key is there already) or, when json
 * is NULL, lines to `text`. */
typedef sn_status (*inspect_part)(const sn_recording *recording, const inspect_request *request, sn_json_writer *json,
                                  sn_string *text, sn_error *err);

/* The object of docs/output.md, without the parts. */
void sn_inspect_write_json(const inspect_result *result, sn_json_writer *json);
SN_MUST_CHECK sn_status sn_inspect_write_text(const inspect_result *result, sn_string *text, sn_error *err);

/* Statistics and hash of one channel over all segments; float64 with compensated sums, two passes. */
SN_MUST_CHECK sn_status sn_inspect_compute_stats(const sn_recording *recording, int64_t channel, inspect_stats *stats,
                                                 sn_error *err);
/* Samples [first, first + count) of the channel with its segments joined; values (count). */
SN_MUST_CHECK sn_status sn_inspect_read_joined(const sn_recording *recording, int64_t channel, int64_t first,
                                               int64_t count, double *values, sn_error *err);

#endif
