/* Recordings against the tables of tests/golden/make_meg.py. */
#ifndef SN_TESTS_MEG_GOLDEN_H
#define SN_TESTS_MEG_GOLDEN_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "modalities/recording.h"

typedef struct golden_channel {
  int index;
  const char *name, *kind, *unit, *frame;
  int coil;
  bool bad;
  double position[3], orientation[3]; /* NAN: none */
  double values[4];                   /* samples 0, 1, n/2, n-1 */
  double sum, sum_abs;
} golden_channel;

typedef struct golden_event {
  int sample;
  const char *code;
  int channel;
} golden_event;

typedef struct golden_text {
  double onset_s, duration_s;
  const char *text;
} golden_text;

typedef struct golden_file {
  const char *path;
  int n_channels, n_samples;
  double rate;
  int n_rows;
  const golden_channel *rows;
  int n_events;
  const golden_event *events;
  int n_texts;
  const golden_text *texts;
} golden_file;

/* The folder of real recordings; skips the test where there is none. */
static inline const char *golden_data_folder(void) {
  const char *folder = getenv("SONDE_DATA");
  if (folder == NULL || folder[0] == '\0') {
    print_message("SONDE_DATA is not set\n");
    skip();
  }
  return folder;
}

static inline bool golden_near(double a, double b, double tolerance) {
  return isfinite(a) && isfinite(b) && fabs(a - b) <= tolerance;
}

static inline void golden_vector(const char *what, const char *name, bool has, const double *found, const double *expected) {
  if (has != !isnan(expected[0])) fail_msg("%s of '%s' is %s", what, name, has ? "there" : "missing");
  for (int i = 0; has && i < 3; i++)
    if (!golden_near(found[i], expected[i], 1e-6))
      fail_msg("%s %d of '%s': %.9g, expected %.9g", what, i, name, found[i], expected[i]);
}

/* Values relative to the mean absolute value of the channel: 1e-12; sums over all samples likewise. */
static inline void golden_values(const sn_recording *r, const golden_file *g, const golden_channel *row, double *values) {
  const int at[4] = {0, 1, g->n_samples / 2, g->n_samples - 1};
  sn_sum sum = {0}, sum_abs = {0};
  sn_error err;
  int64_t done = 0;
  for (int64_t s = 0; s < r->n_segments; s++) {
    if (sn_recording_read(r, row->index, s, 0, r->segments[s].n_frames, values + done, &err) != SN_OK) fail_msg("%s", err.message);
    done += r->segments[s].n_frames;
  }
  assert_int_equal(done, g->n_samples);
  for (int i = 0; i < g->n_samples; i++) {
    sn_sum_add(&sum, values[i]);
    sn_sum_add(&sum_abs, fabs(values[i]));
  }
  double scale = row->sum_abs;
  for (int i = 0; i < 4; i++)
    if (!golden_near(values[at[i]], row->values[i], 1e-12 * scale))
      fail_msg("'%s' sample %d: %.17g, expected %.17g", row->name, at[i], values[at[i]], row->values[i]);
  if (!golden_near(sn_sum_value(&sum), row->sum, 1e-12 * scale) || !golden_near(sn_sum_value(&sum_abs), row->sum_abs, 1e-12 * scale))
    fail_msg("'%s': sums %.17g %.17g, expected %.17g %.17g", row->name, sn_sum_value(&sum), sn_sum_value(&sum_abs), row->sum, row->sum_abs);
}

static inline void golden_channels(const sn_recording *r, const golden_file *g) {
  double *values;
  int nonzero = 0;
  assert_int_equal(r->n_channels, g->n_channels);
  assert_true(golden_near(sn_recording_rate(r, 0), g->rate, 1e-12 * g->rate));
  assert_int_equal(sn_alloc(&values, g->n_samples, sizeof *values, "values", NULL), SN_OK);
  for (int i = 0; i < g->n_rows; i++) {
    const golden_channel *row = &g->rows[i];
    const sn_channel *c = &r->channels[row->index];
    assert_string_equal(c->raw_name, row->name);
    if (strcmp(sn_sensor_kind_name(c->kind), row->kind) != 0 || strcmp(c->unit, row->unit) != 0)
      fail_msg("'%s' is %s in '%s', expected %s in '%s'", row->name, sn_sensor_kind_name(c->kind), c->unit, row->kind, row->unit);
    if (c->coil_type != row->coil || c->bad != row->bad) fail_msg("'%s': coil %d, %s", row->name, c->coil_type, c->bad ? "bad" : "good");
    golden_vector("position", row->name, c->has_position, c->position_m, row->position);
    golden_vector("orientation", row->name, c->has_orientation, c->orientation, row->orientation);
    const char *frame = c->frame == SN_FRAME_HEAD ? "head" : c->frame == SN_FRAME_DEVICE ? "device" : "none";
    assert_string_equal(frame, row->frame);
    golden_values(r, g, row, values);
    nonzero += row->sum_abs > 0;
  }
  assert_true(2 * nonzero >= g->n_rows); /* a table of zeros tests nothing */
  sn_free(values);
}

/* Events (items with a channel) and texts, each in time order. */
static inline void golden_annotations(const sn_recording *r, const golden_file *g) {
  sn_annotations *list = NULL;
  sn_error err;
  int events = 0, texts = 0;
  if (sn_recording_annotations(r, NULL, &list, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < list->n; i++) {
    const sn_annotation *a = &list->items[i];
    if (a->text == NULL) {
      if (events == g->n_events) fail_msg("event %s at %lld is one too many", a->code, (long long)a->sample);
      const golden_event *e = &g->events[events++];
      if (a->sample != e->sample || strcmp(a->code, e->code) != 0)
        fail_msg("event %s at %lld, expected %s at %d", a->code, (long long)a->sample, e->code, e->sample);
      assert_true(a->channel >= 0 && golden_near(a->onset_s, e->sample / g->rate, 1e-12 * (1 + a->onset_s)));
    } else {
      if (texts == g->n_texts) fail_msg("text '%s' is one too many", a->text);
      const golden_text *t = &g->texts[texts++];
      assert_string_equal(a->text, t->text);
      assert_true(golden_near(a->onset_s, t->onset_s, 1e-6) && golden_near(a->duration_s, t->duration_s, 1e-6));
    }
  }
  if (events != g->n_events || texts != g->n_texts)
    fail_msg("%d events and %d texts, expected %d and %d", events, texts, g->n_events, g->n_texts);
  sn_annotations_destroy(list);
}

/* read_channels of all channels, in an odd order and window, has the bits of read. */
static inline void golden_together(const sn_recording *r) {
  int64_t n = r->n_channels, frames = r->segments[0].n_frames, first = frames / 3, count = frames - first < 2000 ? frames - first : 2000;
  int64_t *channels;
  double *all, **values, *alone;
  sn_error err;
  assert_int_equal(sn_alloc(&channels, n, sizeof *channels, "channels", NULL), SN_OK);
  assert_int_equal(sn_alloc(&values, n, sizeof *values, "values", NULL), SN_OK);
  assert_int_equal(sn_alloc(&all, n * count, sizeof *all, "values", NULL), SN_OK);
  assert_int_equal(sn_alloc(&alone, count, sizeof *alone, "values", NULL), SN_OK);
  for (int order = 0; order < 2; order++) {
    for (int64_t i = 0; i < n; i++) {
      channels[i] = order == 0 ? i : n - 1 - i;
      values[i] = all + i * count;
    }
    if (sn_recording_read_channels(r, channels, n, 0, first, count, values, &err) != SN_OK) fail_msg("%s", err.message);
    for (int64_t i = 0; i < n; i++) {
      assert_int_equal(sn_recording_read(r, channels[i], 0, first, count, alone, NULL), SN_OK);
      assert_memory_equal(alone, values[i], (size_t)count * sizeof *alone);
    }
  }
  sn_free(alone);
  sn_free(all);
  sn_free(values);
  sn_free(channels);
}

static inline void golden_check(const char *folder, const golden_file *g) {
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  snprintf(path, sizeof path, "%s/%s", folder, g->path);
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  golden_channels(r, g);
  golden_annotations(r, g);
  golden_together(r);
  sn_recording_destroy(r);
}

#endif
