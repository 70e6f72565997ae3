/* Times of events on another time axis.
 *
 * The exact time of an event is kept; a sample index is derived from it: floor(t rate + 1/2), in exact integer
 * arithmetic where the time is itself a sample number.  No event is ever dropped or merged because two fall on one
 * sample. */
#ifndef SN_MODALITIES_SIGNAL_EVENT_H
#define SN_MODALITIES_SIGNAL_EVENT_H

#include <stdbool.h>
#include <stdint.h>

/* Index at rate out of sample `sample` at rate in: floor(sample out / in + 1/2). Rates are num/den > 0. */
int64_t sn_event_resample(int64_t sample, int64_t in_num, int64_t in_den, int64_t out_num, int64_t out_den);
/* floor(onset_s rate + 1/2); beyond 2^62 that limit, 0 for NaN */
int64_t sn_event_index(double onset_s, double rate_hz);
/* Time within a crop [start_s, start_s + duration_s); false when the event lies outside it. */
bool sn_event_crop(double onset_s, double start_s, double duration_s, double *within_s);

#endif
