/* needs: full */
/* `sonde inspect --beats [--reference NAME]`: R peaks, and their comparison with the beats of an annotation file.
 *
 * JSON: { "method", "lead" (null: of no known name), "channel", "count", "rate_per_min", "onsets_s": [..],
 *   "reference": null | { "annotator", "count", "at": [ { "tolerance_s", "matched", "sensitivity", "predictivity",
 *     "median_offset_s", "median_absolute_offset_s", "false_s": [..], "missed_s": [..] }, .. ] } }
 * with tolerances of 0.15 s (AAMI EC57) and 0.1 s. Reference beats are the annotations with beat codes. */
#ifndef SN_CLI_INSPECT_BEATS_H
#define SN_CLI_INSPECT_BEATS_H

#include "cli/inspect.h"

sn_status sn_inspect_beats(const sn_recording *recording, const inspect_request *request, sn_json_writer *json,
                           sn_string *text, sn_error *err);

#endif
