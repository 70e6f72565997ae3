/* Rises of trigger channels. */
#include "modalities/formats/triggers/triggers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"

enum { CHUNK = 4096, TOGETHER = 16 };

int64_t sn_trigger_channels(const sn_recording *r, int64_t *channels) {
  static const char *const combined[] = {"STI101", "STI 014"};
  int64_t n = 0;
  for (size_t k = 0; k < sizeof combined / sizeof combined[0]; k++) {
    for (int64_t c = 0; c < r->n_channels; c++) {
      if (r->channels[c].kind != SN_SENSOR_TRIGGER || strcmp(r->channels[c].raw_name, combined[k]) != 0) continue;
      channels[0] = c;
      return 1;
    }
  }
  for (int64_t c = 0; c < r->n_channels; c++)
    if (r->channels[c].kind == SN_SENSOR_TRIGGER) channels[n++] = c;
  return n;
}

static bool before(const sn_annotation *a, const sn_annotation *b) {
  return a->onset_s < b->onset_s || (a->onset_s == b->onset_s && a->channel < b->channel);
}

/* Merge sort from below: stable, and fast on what is in order already. */
sn_status sn_annotations_sort(sn_annotations *list, sn_error *err) {
  sn_annotation *spare = NULL, *from = list->items, *to;
  bool sorted = true;
  for (int64_t i = 1; i < list->n; i++) sorted &= !before(&list->items[i], &list->items[i - 1]);
  if (sorted) return SN_OK;
  SN_TRY(sn_alloc(&spare, list->n, sizeof *spare, "annotations", err));
  to = spare;
  for (int64_t width = 1; width < list->n; width *= 2) {
    for (int64_t start = 0; start < list->n; start += 2 * width) {
      int64_t a = start, middle = start + width < list->n ? start + width : list->n, b = middle;
      int64_t end = start + 2 * width < list->n ? start + 2 * width : list->n;
      for (int64_t k = start; k < end; k++)
        to[k] = b >= end || (a < middle && !before(&from[b], &from[a])) ? from[a++] : from[b++];
    }
    sn_annotation *swap = from;
    from = to;
    to = swap;
  }
  if (from != list->items) memcpy(list->items, from, (size_t)list->n * sizeof *from);
  sn_free(spare);
  return SN_OK;
}

typedef struct scan {
  const sn_recording *r;
  sn_annotations *list;
  int64_t capacity;
  double rate;
} scan;

typedef struct trigger_state {
  int64_t value, last_event; /* last_event: frame, far back at first */
} trigger_state;

/* Values of one channel for the frames from `start` on. fresh: a segment begins here. */
static sn_status take_values(scan *s, int64_t channel, const double *values, int64_t n, int64_t start, bool fresh,
                             trigger_state *state, sn_error *err) {
  for (int64_t k = 0; k < n; k++) {
    /* A trigger word has at most 32 bits; what is not such a number cannot begin an event. */
    int64_t v = isfinite(values[k]) && fabs(values[k]) < 1e15 ? (int64_t)values[k] : state->value;
    if (v < 0) {
      SN_TRY(sn_warning_add(&s->list->warnings, &s->list->n_warnings, "trigger_negative", s->r->channels[channel].name, err,
                            "trigger channel '%s' has negative values (first at frame %lld); their sign is dropped",
                            s->r->channels[channel].name, (long long)(start + k)));
      v = -v;
    }
    if (v > state->value && !(fresh && k == 0)) {
      sn_annotation a = {.sample = start + k, .duration_s = NAN, .channel = (int32_t)channel};
      char decimal[24];
      a.onset_s = (double)a.sample / s->rate;
      snprintf(decimal, sizeof decimal, "%lld", (long long)v);
      snprintf(a.code, sizeof a.code, "%.15s", decimal);
      SN_TRY(sn_annotations_add(s->list, &s->capacity, &a, NULL, err));
      if (a.sample - state->last_event < 2)
        SN_TRY(sn_warning_add(&s->list->warnings, &s->list->n_warnings, "event_short", s->r->channels[channel].name, err,
                              "trigger channel '%s': events of fewer than 2 samples, first at frame %lld",
                              s->r->channels[channel].name, (long long)(start + k)));
      state->last_event = a.sample;
    }
    state->value = v;
  }
  return SN_OK;
}

static sn_status scan_together(scan *s, const int64_t *channels, int64_t n, double *buffer, sn_error *err) {
  trigger_state states[TOGETHER];
  double *values[TOGETHER];
  for (int64_t i = 0; i < n; i++) {
    values[i] = buffer + i * CHUNK;
    states[i] = (trigger_state){0, INT64_MIN / 2};
  }
  for (int64_t segment = 0; segment < s->r->n_segments; segment++) {
    const sn_segment *g = &s->r->segments[segment];
    for (int64_t at = 0; at < g->n_frames; at += CHUNK) {
      int64_t k = g->n_frames - at < CHUNK ? g->n_frames - at : CHUNK;
      SN_TRY(sn_recording_read_channels(s->r, channels, n, segment, at, k, values, err));
      for (int64_t i = 0; i < n; i++)
        SN_TRY(take_values(s, channels[i], values[i], k, g->start_frame + at, at == 0, &states[i], err));
    }
  }
  return SN_OK;
}

sn_status sn_trigger_events(const sn_recording *r, const int64_t *channels, int64_t n, sn_annotations *list, sn_error *err) {
  scan s = {r, list, list->n, (double)r->rate_num / (double)r->rate_den};
  double *buffer = NULL;
  for (int64_t i = 0; i < n; i++)
    if (r->channels[channels[i]].samples_per_frame != 1)
      return sn_fail(err, SN_E_UNSUPPORTED, "trigger channel '%s' has %lld samples in a frame", r->channels[channels[i]].name,
                     (long long)r->channels[channels[i]].samples_per_frame);
  if (n == 0) return SN_OK;
  SN_TRY(sn_alloc(&buffer, (int64_t)CHUNK * (n < TOGETHER ? n : TOGETHER), sizeof *buffer, "trigger values", err));
  sn_status status = SN_OK;
  for (int64_t i = 0; i < n && status == SN_OK; i += TOGETHER)
    status = scan_together(&s, channels + i, n - i < TOGETHER ? n - i : TOGETHER, buffer, err);
  sn_free(buffer);
  return status;
}
