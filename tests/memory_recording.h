/* A recording that lies in memory, for tests of what stands above the readers. */
#ifndef SN_TESTS_MEMORY_RECORDING_H
#define SN_TESTS_MEMORY_RECORDING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modalities/recording.h"

enum { MEMORY_CHANNELS = 16, MEMORY_SEGMENTS = 4 };

typedef struct memory_recording {
  sn_recording recording;
  sn_channel channels[MEMORY_CHANNELS];
  sn_segment segments[MEMORY_SEGMENTS];
  double *values[MEMORY_CHANNELS][MEMORY_SEGMENTS]; /* borrowed */
  int64_t n_read;                                   /* samples read so far */
} memory_recording;

static sn_status memory_read(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                             int64_t count, double *values, sn_error *err) {
  memory_recording *m = recording->self;
  int64_t n = m->segments[segment].n_frames * m->channels[channel].samples_per_frame;
  if (first < 0 || count < 0 || first > n - count)
    return sn_fail(err, SN_E_ARGUMENT, "memory: [%lld, %lld) of %lld", (long long)first, (long long)(first + count),
                   (long long)n);
  if (count > 0) memcpy(values, m->values[channel][segment] + first, (size_t)count * sizeof *values);
  m->n_read += count;
  return SN_OK;
}

static const sn_recording_vtable MEMORY_VTABLE = {.read = memory_read};

static inline void memory_init(memory_recording *m, int64_t rate_num, int64_t rate_den) {
  memset(m, 0, sizeof *m);
  m->recording.vtable = &MEMORY_VTABLE;
  m->recording.self = m;
  m->recording.rate_num = rate_num;
  m->recording.rate_den = rate_den;
  m->recording.channels = m->channels;
  m->recording.segments = m->segments;
}

/* All channels before the segments. */
static inline void memory_channel(memory_recording *m, const char *name, sn_sensor_kind kind, const char *unit,
                                  int64_t samples_per_frame) {
  sn_channel *c = &m->channels[m->recording.n_channels++];
  snprintf(c->name, sizeof c->name, "%s", name);
  snprintf(c->raw_name, sizeof c->raw_name, "%s", name);
  snprintf(c->unit, sizeof c->unit, "%s", unit);
  c->kind = kind;
  c->samples_per_frame = samples_per_frame;
  c->unit_scale = 1.0;
}

/* values: one pointer per channel, borrowed. */
static inline void memory_segment(memory_recording *m, double start_s, int64_t n_frames, double *const *values) {
  int64_t s = m->recording.n_segments++;
  m->segments[s].start_s = start_s;
  m->segments[s].n_frames = n_frames;
  for (int64_t c = 0; c < m->recording.n_channels; c++) m->values[c][s] = values[c];
}

#endif
