/* metrics.jsonl, timing.jsonl and the TensorBoard events of a run (docs/output.md).
 *
 * metrics.jsonl holds only what configuration and data determine, one object a line, and is byte-identical after a
 * resume: it is cut to the length that the checkpoint states. */
#ifndef SN_ENGINE_METRICS_H
#define SN_ENGINE_METRICS_H

#include "core/json.h"
#include "core/status.h"

typedef struct sn_metrics sn_metrics;

/* Opens the three files of a run folder, cut to the stated lengths (0, 0: new). */
SN_MUST_CHECK sn_status sn_metrics_open(const char *run, int64_t metrics_bytes, int64_t events_bytes, sn_metrics **out,
                                        sn_error *err);
void sn_metrics_close(sn_metrics *metrics); /* accepts NULL */

/* One line: begin, any number of values, end. A value that is not finite is written as null. */
void sn_metrics_begin(sn_metrics *metrics, int64_t step);
void sn_metrics_value(sn_metrics *metrics, const char *key, double value);
void sn_metrics_count(sn_metrics *metrics, const char *key, int64_t value);
/* The same for timing.jsonl; goes to the events as well. */
void sn_metrics_timing(sn_metrics *metrics, const char *key, double value);
SN_MUST_CHECK sn_status sn_metrics_end(sn_metrics *metrics, sn_error *err);

/* Everything on disk; lengths for the checkpoint. */
SN_MUST_CHECK sn_status sn_metrics_sync(sn_metrics *metrics, int64_t *metrics_bytes, int64_t *events_bytes,
                                        sn_error *err);

#endif
