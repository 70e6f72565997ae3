/* Events from trigger channels, and lists of annotations that are built up: shared by readers.
 *
 * RULE (that of MNE's find_events with its defaults).  The trigger value v[k] is the sample cut to an integer, its sign
 * dropped (warning "trigger_negative").  An event is at every sample k >= 1 of a segment with v[k] > v[k-1]; its code is
 * v[k] in decimal.  The value with which a segment begins is no event, and nothing is carried over a gap.  Events of
 * several channels are merged.  Two events of a channel less than 2 samples apart are listed and counted in the warning
 * "event_short" (MNE refuses such files). */
#ifndef SN_MODALITIES_TRIGGERS_H
#define SN_MODALITIES_TRIGGERS_H

#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

/* Which of the recording's trigger channels carry the events: "STI101" if there is one of that raw name, else "STI 014",
 * else all channels of kind SN_SENSOR_TRIGGER. channels (r->n_channels) [out]; returns how many. */
int64_t sn_trigger_channels(const sn_recording *r, int64_t *channels);

/* Appends the events of these channels to `list`: sample in frames from the start of the recording, duration unknown,
 * channel set. The channels have one sample per frame (SN_E_UNSUPPORTED otherwise). Reads them from end to end, once. */
SN_MUST_CHECK sn_status sn_trigger_events(const sn_recording *r, const int64_t *channels, int64_t n, sn_annotations *list,
                                          sn_error *err);

/* By onset, then by channel; equal ones keep their order. */
SN_MUST_CHECK sn_status sn_annotations_sort(sn_annotations *list, sn_error *err);

#endif
