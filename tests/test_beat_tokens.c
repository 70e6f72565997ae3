/* needs: full */
/* Beat tokens: the grid against its definition on hearts whose R times are known, the three modes against a second
 * implementation in float64, windows of whole beats, the fall-back, independence of threads and of what is kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cohort.h"
#include "core/philox.h"
#include "core/pool.h"
#include "datasets/source_signal.h"
#include "engine/run.h"
#include "engine/train.h"
#include "memory_recording.h"
#include "modalities/ecg/beat_tokens.h"
#include "modalities/ecg/synth_ecg.h"
#include "run_files.h"
#include "signal_case.h"

/* ---- rows ------------------------------------------------------------------------------------------------------- */

enum { N = 300, FIRST = 40 };
#define RATE 100.0

typedef struct signal { double x[N]; uint8_t ok[N]; } signal_case;

static void make_signal(signal_case *s, bool holes) {
  sn_random random = sn_random_at(7, SN_PURPOSE_SYNTH, 0, holes);
  for (int i = 0; i < N; i++) {
    s->ok[i] = !(holes && (i % 53) < 9);
    s->x[i] = s->ok[i] ? sn_random_normal(&random) : 0.0;
  }
}

/* The integral of the staircase up to time t in samples of the segment: sample k stands for [k - 1/2, k + 1/2). */
static double staircase(const signal_case *s, double t, bool area) {
  double sum = 0;
  for (int i = 0; i < N; i++) {
    const double begin = FIRST + i - 0.5, part = t - begin < 0 ? 0 : t - begin > 1 ? 1 : t - begin;
    if (s->ok[i]) sum += area ? part : part * s->x[i];
  }
  return sum;
}

/* By hats: the linear interpolation is the sum over samples of x_k max(0, 1 - |t - k|). */
static double hats(const signal_case *s, double t, bool *valid) {
  double sum = 0;
  *valid = true;
  for (int i = -1; i <= N; i++) {
    const double weight = 1 - fabs(t - (FIRST + i));
    if (!(weight > 0)) continue;
    if (i < 0 || i >= N || !s->ok[i]) *valid = false;
    else sum += weight * s->x[i];
  }
  return sum;
}

static int64_t check_row(const signal_case *s, sn_beat_mode mode, int64_t L, double begin_s, double end_s, double r_s,
                         double spoil) {
  float row[256];
  uint8_t valid[256];
  int64_t wrong = 0;
  memset(row, 0x7f, sizeof row);
  sn_beat_row(row, valid, mode, L, s->x, s->ok, N, FIRST, RATE, begin_s, end_s, r_s);
  const double width = (end_s - begin_s) * RATE / (double)L;
  for (int64_t j = 0; j < L; j++) {
    double expected = 0;
    bool there = true;
    if (mode == SN_BEAT_PAD) {
      const int64_t k = (int64_t)floor(r_s * RATE + 0.5) - (int64_t)floor(0.4 * (double)L) + j;
      there = (double)k / RATE >= begin_s - 1e-12 && (double)k / RATE < end_s && k >= FIRST && k < FIRST + N && s->ok[k - FIRST];
      if (there) expected = s->x[k - FIRST];
    } else if (mode == SN_BEAT_RESAMPLE) {
      expected = hats(s, begin_s * RATE + ((double)j + 0.5) * width, &there);
    } else {
      const double a = begin_s * RATE + (double)j * width, b = a + width;
      const double area = staircase(s, b, true) - staircase(s, a, true);
      there = area >= 0.5 * width * (1 - 1e-9);
      expected = there ? (staircase(s, b, false) - staircase(s, a, false)) / area : 0;
    }
    if (!there) expected = 0;
    assert_int_equal(valid[j], there);
    if (!(fabs((double)row[j] - expected * spoil) <= 1e-6) || !isfinite(row[j])) wrong++;
  }
  return wrong;
}

static void test_modes(void **state) {
  static const double BEATS[][3] = {{1.013, 1.807, 1.3}, {0.43, 0.72, 0.55}, {1.2, 3.1, 2.004}, {2.001, 2.641, 2.3}};
  static const int64_t LENGTHS[] = {4, 17, 64, 101};
  for (int holes = 0; holes < 2; holes++) {
    signal_case s;
    make_signal(&s, holes);
    for (int m = SN_BEAT_PAD; m <= SN_BEAT_ADAPTIVE; m++)
      for (int b = 0; b < 4; b++) {
        const double *t = BEATS[b];
        for (int l = 0; l < 4; l++) assert_int_equal(check_row(&s, (sn_beat_mode)m, LENGTHS[l], t[0], t[1], t[2], 1), 0);
        assert_true(check_row(&s, (sn_beat_mode)m, 64, t[0], t[1], t[2], 1.001) > 10); /* the check can fail */
      }
  }
}

/* Exact area weights: the values' sum times their width is the integral over the beat, whatever L. */
static void test_sums_are_preserved(void **state) {
  signal_case s;
  make_signal(&s, false);
  for (int64_t L = 4; L <= 200; L += 7) {
    const double begin = 1.0137, end = 1.9031;
    float row[256];
    uint8_t valid[256];
    double sum = 0;
    sn_beat_row(row, valid, SN_BEAT_ADAPTIVE, L, s.x, s.ok, N, FIRST, RATE, begin, end, 0);
    for (int64_t j = 0; j < L; j++) sum += row[j];
    const double integral = staircase(&s, end * RATE, false) - staircase(&s, begin * RATE, false);
    assert_true(fabs(sum * (end - begin) * RATE / (double)L - integral) <= 1e-5);
    assert_true(fabs(integral) > 0.1);
  }
}

/* ---- the grid ----------------------------------------------------------------------------------------------------- */

static sn_beat_grid *grid_of(const double *onsets, const float *confidences, const int64_t *segments, int64_t n,
                             const double *starts, const int64_t *frames, int64_t n_segments) {
  static double zeros[100000];
  double *const values[1] = {zeros};
  memory_recording m;
  sn_beat_grid *grid = NULL;
  sn_beats beats = {.n = n, .onset_s = (double *)(uintptr_t)onsets, .segment = (int64_t *)(uintptr_t)segments,
                    .confidence = (float *)(uintptr_t)confidences};
  memory_init(&m, 100, 1);
  memory_channel(&m, "II", SN_SENSOR_ECG, "mV", 1);
  for (int64_t s = 0; s < n_segments; s++) memory_segment(&m, starts[s], frames[s], values);
  CHECK(sn_beat_grid_create(&m.recording, 0, &beats, &grid, fault));
  return grid;
}

static bool near(double a, double b) { return fabs(a - b) <= 1e-6 && isfinite(a); }

static void test_grid(void **state) {
  /* Segment 0 from 0 s, 12 s; segment 1 from 20 s, 5 s; segment 2 from 30 s with a single beat. At 3.1 s a second
   * detection of the beat at 3.0 s; between 5 and 9 s a pause; the last beat's tail does not fit. */
  const double onsets[] = {0.5, 1.5, 2.3, 3.0, 3.1, 4.0, 5.0, 9.0, 9.25, 10.0, 11.8, 20.1, 21.0, 22.0, 31.0};
  const float confidence[] = {1, 1, .5f, .9f, .4f, 1, 1, .7f, 1, 1, 1, 1, 1, 1, 1};
  const int64_t segments[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2};
  const double starts[] = {0, 20, 30};
  const int64_t frames[] = {1200, 500, 400};
  sn_beat_grid *g = grid_of(onsets, confidence, segments, 15, starts, frames, 3);
  sn_beat b;
  assert_int_equal(g->n, 14);
  assert_int_equal(g->n_merged, 1);
  /* RR, clipped: .., 1, .8, .7, 1, 1, 2 (of 4), .3 (of .25), .75, 1.8 | .9, 1 */
  assert_true(near(g->median_rr_s, 1.0));
  assert_true(sn_beat_grid_at(g, 0, &b)); /* begins 0.4 s before its R: inside */
  assert_true(near(b.begin_s, 0.1) && near(b.end_s, 1.0));
  assert_true(!b.known[0] && !b.known[1] && !b.known[2] && b.known[3] && b.known[4]);
  assert_true(b.features[0] == 0 && near(b.features[3], 0.5 / 34));
  assert_true(sn_beat_grid_at(g, 1, &b));
  assert_true(b.known[0] && near(b.features[0], 1) && !b.known[1]);
  assert_true(sn_beat_grid_at(g, 2, &b));
  assert_true(near(b.begin_s, 1.9) && near(b.end_s, 2.65));
  assert_true(near(b.features[0], 0.8) && near(b.features[1], 1.0 / 0.8) && near(b.features[2], log(0.8)) && near(b.features[4], 0.5));
  assert_true(sn_beat_grid_at(g, 3, &b)); /* the better of the two detections */
  assert_true(near(b.r_s, 3.0) && near(b.features[4], 0.9));
  assert_true(sn_beat_grid_at(g, 5, &b)); /* a second after R the pause begins */
  assert_true(near(b.end_s, 6.0));
  assert_true(sn_beat_grid_at(g, 6, &b));
  assert_true(near(b.begin_s, 8.0) && near(b.end_s, 9.15) && near(b.features[0], 2));
  assert_true(sn_beat_grid_at(g, 7, &b));
  assert_true(near(b.begin_s, 9.1) && near(b.features[0], 0.3)); /* overlaps the one before */
  assert_false(sn_beat_grid_at(g, 9, &b));  /* 11.8 + 0.4 x 1.8 > 11.99 */
  assert_false(sn_beat_grid_at(g, 10, &b)); /* 0.1 - 0.4 x 0.9 < 0 */
  assert_true(sn_beat_grid_at(g, 11, &b));
  assert_true(near(b.r_s, 1.0) && near(b.begin_s, 0.55) && near(b.features[3], 21.0 / 34));
  assert_false(sn_beat_grid_at(g, 13, &b)); /* alone */
  assert_int_equal(g->n_dropped, 3);
  /* Windows: half open, of usable beats. */
  sn_beat list[16];
  assert_int_equal(sn_beat_grid_window(g, 0, 0.5, 1.0, list, 16), 1);
  assert_int_equal(sn_beat_grid_window(g, 0, 0.5, 1.0 + 1e-9, list, 16), 2);
  assert_int_equal(sn_beat_grid_window(g, 0, 6.0, 2.0, list, 16), 0);
  assert_int_equal(sn_beat_grid_window(g, 1, 0.0, 3.0, list, 16), 2);
  assert_int_equal(sn_beat_grid_most_in(g, 2.6), 4); /* 1.5, 2.3, 3.0, 4.0: exactly 2.5 s */
  assert_int_equal(sn_beat_grid_most_in(g, 0.1), 1);
  sn_beat_grid_destroy(g);
  g = grid_of(onsets, confidence, segments, 0, starts, frames, 3);
  assert_true(g->n == 0 && isnan(g->median_rr_s));
  assert_int_equal(sn_beat_grid_window(g, 2, 0, 10, list, 16), 0);
  assert_int_equal(sn_beat_grid_most_in(g, 10), 0);
  sn_beat_grid_destroy(g);
}

/* ---- a source ----------------------------------------------------------------------------------------------------- */

static sn_synth_ecg_options hearts(void) {
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  o.n_subjects = 4;
  o.recordings_per_subject = 2;
  o.seconds = 25;
  o.n_leads = 12;
  o.seed = 3;
  return o;
}

static char *heart_cohort(void) {
  char *root = cohort_directory();
  const sn_synth_ecg_options o = hearts();
  int64_t n;
  CHECK(sn_synth_ecg_write(&o, root, &n, fault));
  return root;
}

static sn_signal_source_options options_of(const sn_manifest *m, sn_beat_mode mode) {
  return (sn_signal_source_options){.manifest = m, .signal = signal_defaults("ecg"), .cache_bytes = 1 << 24,
                                    .beats = {.mode = mode, .length = 64, .patch_s = mode == SN_BEAT_PAD ? 0.64 : 0.8}};
}

static sn_source *source_of(const sn_signal_source_options *options) {
  sn_source *source = NULL;
  CHECK(sn_source_create_signal(options, &source, fault));
  return source;
}

static sn_sample *read_at(sn_source *source, int64_t i, uint64_t epoch) {
  sn_sample *sample = NULL;
  CHECK(source->vtable->read(source, i, 5, epoch, 0, &sample, fault));
  return sample;
}

static void assert_same_sample(const sn_sample *a, const sn_sample *b) {
  assert_int_equal(a->n_tokens, b->n_tokens);
  assert_true(a->sample_id == b->sample_id && a->nobeat == b->nobeat && a->start_s == b->start_s);
  assert_int_equal(a->valid == NULL, b->valid == NULL);
  assert_memory_equal(a->patches, b->patches, (size_t)(a->n_tokens * a->patch_size) * sizeof(float));
  if (a->valid != NULL) assert_memory_equal(a->valid, b->valid, (size_t)(a->n_tokens * a->patch_size));
  assert_memory_equal(a->coordinates, b->coordinates, (size_t)a->n_tokens * 4 * sizeof(float));
  assert_memory_equal(a->positions, b->positions, (size_t)a->n_tokens * sizeof(int32_t));
}

/* Beats of the synthetic heart behind a line. */
static sn_synth_ecg *heart_of(const sn_manifest *m, int64_t row) {
  const sn_synth_ecg_options o = hearts();
  sn_synth_ecg *heart = NULL;
  int subject, recording;
  assert_int_equal(sscanf(m->rows[row].path, "s%5d_%1d", &subject, &recording), 2);
  CHECK(sn_synth_ecg_make(&o, subject, recording, &heart, fault));
  return heart;
}

/* Every known beat with its R in a window is one token of each lead, in place and number; no other is. */
static void test_tokens_are_the_beats(void **state) {
  char *root = heart_cohort();
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m, SN_BEAT_RESAMPLE);
  sn_source *source = source_of(&o);
  int64_t known = 0, found = 0, tokens = 0;
  assert_int_equal(source->patch_size, 64 + SN_BEAT_FEATURES);
  assert_int_equal(source->n_extra, SN_BEAT_FEATURES);
  assert_int_equal(source->most_series, 12);
  assert_true(source->patch_step_s == 0.8);
  for (int64_t i = 0; i < source->n_windows; i++) {
    sn_window_at where;
    sn_signal_source_locate(source, i, &where, NULL);
    sn_sample *s = read_at(source, i, 0);
    sn_synth_ecg *heart = heart_of(m, where.row);
    assert_false(s->nobeat);
    assert_int_equal(s->n_tokens % 12, 0);
    assert_true(s->n_tokens <= source->vtable->nominal_tokens(source, i));
    const int64_t beats = s->n_tokens / 12;
    tokens += s->n_tokens;
    for (int64_t t = 0; t < s->n_tokens; t++) {
      assert_int_equal(s->positions[t], t % beats);
      assert_int_equal(s->series[t], t / beats);
      assert_true(s->coordinates[4 * t + 3] == s->coordinates[4 * (t % beats) + 3]); /* one grid for all leads */
      assert_true(t % beats == 0 || s->coordinates[4 * t + 3] > s->coordinates[4 * t - 1]);
    }
    for (int64_t k = 1; k + 1 < heart->n_beats; k++) { /* the first and last of a recording may be incomplete */
      const double at = heart->beats[k].onset_s - where.start_s;
      if (at < 0.05 || at > 9.95) continue;
      double nearest = 1e9;
      for (int64_t t = 0; t < beats; t++) nearest = fmin(nearest, fabs((double)s->coordinates[4 * t + 3] - at));
      known++;
      found += nearest < 0.05;
    }
    sn_synth_ecg_destroy(heart);
    sn_sample_destroy(s);
  }
  assert_true(known > 120);
  if ((double)found < 0.98 * (double)known) fail_msg("%d of %d known beats are tokens", (int)found, (int)known);
  if (fabs((double)tokens / 12 - (double)known) > 0.1 * (double)known) fail_msg("%d tokens for %d beats", (int)tokens / 12, (int)known);
  sn_source_destroy(source);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* A window's rows are those of the conditioned segment, read outright, normalised over the beats' span. */
static void check_window(const sn_signal_source_options *o, sn_source *source, int64_t index, double tolerance) {
  sn_window_at where;
  sn_conditioned_view view;
  const sn_series_list *list = NULL;
  const sn_conditioned *conditioned = sn_signal_source_conditioned(source);
  sn_beat_grid *grid = NULL;
  sn_beat beats[64];
  sn_signal_source_locate(source, index, &where, NULL);
  sn_sample *s = read_at(source, index, 0);
  sn_conditioned_open(conditioned, where.row, &view);
  CHECK(sn_conditioned_series(conditioned, where.row, &list, fault));
  CHECK(sn_beat_grid_detect(&view.recording, list, &o->beats, &grid, fault));
  const int64_t n = sn_beat_grid_window(grid, where.segment, where.start_s, 10, beats, 64);
  const int64_t frames = view.recording.segments[where.segment].n_frames, L = o->beats.length, P = source->patch_size;
  double *x = malloc((size_t)frames * sizeof *x);
  int64_t from = (int64_t)floor(beats[0].begin_s * RATE), to = (int64_t)ceil(beats[n - 1].end_s * RATE);
  assert_int_equal(s->n_tokens, n * list->n);
  if (from < 0) from = 0;
  if (to > frames - 1) to = frames - 1;
  for (int64_t c = 0; c < list->n; c++) {
    CHECK(sn_recording_read(&view.recording, list->channels[c], where.segment, 0, frames, x, fault));
    double sum = 0, squares = 0;
    for (int64_t k = from; k <= to; k++) sum += x[k];
    const double mean = sum / (double)(to - from + 1);
    for (int64_t k = from; k <= to; k++) squares += (x[k] - mean) * (x[k] - mean);
    const double std = sqrt(squares / (double)(to - from + 1));
    const int64_t token0 = c * n;
    for (int64_t b = 0; b < n; b++)
      for (int64_t j = 0; j < L; j++) {
        const double t = beats[b].begin_s * RATE + ((double)j + 0.5) * (beats[b].end_s - beats[b].begin_s) * RATE / (double)L;
        const int64_t k = (int64_t)floor(t);
        const double low = fmin(fmax((x[k] - mean) / std, -8), 8), high = fmin(fmax((x[k + 1] - mean) / std, -8), 8);
        const double v = low + (t - (double)k) * (high - low);
        const double got = s->patches[(token0 + b) * P + j];
        if (!(fabs(got - v) <= tolerance)) fail_msg("window %d, beat %d, value %d: %g for %g", (int)index, (int)b, (int)j, got, v);
      }
  }
  free(x);
  sn_beat_grid_destroy(grid);
  sn_sample_destroy(s);
}

static void test_rows_of_a_window(void **state) {
  char *root = heart_cohort();
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m, SN_BEAT_RESAMPLE);
  sn_source *source = source_of(&o);
  for (int64_t i = 0; i < source->n_windows; i += 3) check_window(&o, source, i, 1e-5);
  sn_source_destroy(source);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

typedef struct reading { sn_source *source; sn_sample **samples; sn_status *statuses; int64_t n; uint64_t epoch; } reading;

static void read_task(void *user, int64_t i, int64_t worker) {
  reading *r = user;
  const int64_t index = (i * 7) % r->n; /* another order than one after the other: n is no multiple of 7 */
  sn_error err;
  (void)worker;
  r->statuses[index] = r->source->vtable->read(r->source, index, 5, r->epoch, 0, &r->samples[index], &err);
}

/* The same bytes whoever reads, in whatever order, with a plan by bound or by scanning, after grids were thrown out. */
static void test_independence(void **state) {
  char *root = heart_cohort();
  sn_manifest *m = cohort_index(root);
  for (int mode = SN_BEAT_PAD; mode <= SN_BEAT_ADAPTIVE; mode++) {
    sn_signal_source_options o = options_of(m, (sn_beat_mode)mode);
    o.random_crop = true;
    sn_source *one = source_of(&o);
    o.beats.scan = true;
    o.beats.vote = false;
    sn_source *other = source_of(&o);
    assert_int_equal(one->n_windows, other->n_windows);
    assert_int_equal(one->n_windows % 7 == 0, 0);
    assert_true(other->max_tokens < one->max_tokens);
    assert_string_not_equal(one->content_hash, other->content_hash);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
      sn_pool *pool = NULL;
      reading r = {.source = other, .n = other->n_windows, .epoch = epoch};
      r.samples = calloc((size_t)r.n, sizeof(void *));
      r.statuses = calloc((size_t)r.n, sizeof *r.statuses);
      CHECK(sn_pool_create(3, &pool, fault));
      CHECK(sn_pool_for(pool, r.n, read_task, &r, fault));
      for (int64_t i = 0; i < r.n; i++) {
        sn_sample *s = read_at(one, i, epoch);
        assert_int_equal(r.statuses[i], SN_OK);
        assert_same_sample(s, r.samples[i]);
        assert_true(s->n_tokens <= other->vtable->nominal_tokens(other, i));
        sn_sample_destroy(s);
        sn_sample_destroy(r.samples[i]);
      }
      sn_pool_destroy(pool);
      free(r.samples);
      free(r.statuses);
    }
    sn_source_destroy(one);
    sn_source_destroy(other);
  }
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* Grids that do not fit are made again: with room for none (one), or for some, the samples stay the same. */
static void with_room(int64_t bytes) {
  char *root = heart_cohort();
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m, SN_BEAT_ADAPTIVE);
  sn_source *source = source_of(&o);
  sn_source_beats *none = NULL;
  const sn_conditioned *conditioned = sn_signal_source_conditioned(source);
  CHECK(sn_source_beats_create(&o.beats, conditioned, m->n, bytes, &none, fault));
  for (int64_t round = 0; round < 2; round++)
    for (int64_t i = 0; i < source->n_windows; i += 2) {
      sn_window_at where;
      sn_conditioned_view view;
      const sn_series_list *list = NULL;
      sn_sample *again = NULL, *s = read_at(source, i, 0);
      sn_signal_source_locate(source, i, &where, NULL);
      sn_conditioned_open(conditioned, where.row, &view);
      CHECK(sn_conditioned_series(conditioned, where.row, &list, fault));
      CHECK(sn_source_beats_read(none, &view, list, where.segment, where.start_s, NULL, NULL, NULL, &again, fault));
      again->sample_id = s->sample_id;
      assert_same_sample(s, again);
      sn_sample_destroy(s);
      sn_sample_destroy(again);
    }
  sn_beat_counts counts;
  sn_source_beats_get_counts(none, &counts);
  assert_int_equal(counts.n_recordings, 8);
  assert_int_equal(counts.n_nobeat, 0);
  assert_true(counts.n_beats > 150);
  sn_source_beats_destroy(none);
  sn_source_destroy(source);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_bounded_memory(void **state) {
  for (int64_t bytes = 1; bytes < 1 << 20; bytes *= 8) with_room(bytes);
}

/* ---- the fall-back ------------------------------------------------------------------------------------------------ */

/* Beats for 20 s, then 40 s of slow drift alone. */
static void write_pause(const char *root) {
  enum { PAUSE_RATE = 200, PAUSE_N = 60 * PAUSE_RATE };
  static int32_t samples[PAUSE_N];
  sn_wfdb_signal signal = {.name = "II", .unit = "mV", .gain = 100000};
  for (int i = 0; i < PAUSE_N; i++) {
    const double t = (double)i / PAUSE_RATE, phase = t - floor(t / 0.8) * 0.8 - 0.4;
    const double spike = t < 19.9 ? exp(-phase * phase / (2 * 0.012 * 0.012)) : 0;
    samples[i] = (int32_t)lround(100000 * (spike + 0.1 * sin(6.283185307179586 * 0.7 * t)) * 0.9) / 10;
  }
  sn_wfdb_record record = {.record = "pause", .format = 16, .rate_num = PAUSE_RATE, .rate_den = 1, .n_signals = 1,
                           .n_samples = PAUSE_N, .signals = &signal, .samples = samples};
  CHECK(sn_wfdb_write(root, &record, fault));
}

static void test_fall_back(void **state) {
  static const int64_t TOKENS[] = {0, 15, 12, 12};
  char *root = cohort_directory();
  write_pause(root);
  sn_manifest *m = cohort_index(root);
  for (int mode = SN_BEAT_PAD; mode <= SN_BEAT_ADAPTIVE; mode++) {
    sn_signal_source_options o = options_of(m, (sn_beat_mode)mode);
    o.beats.scan = true;
    sn_source *source = source_of(&o);
    int64_t nobeat = 0;
    assert_int_equal(source->n_windows, 6);
    for (int64_t i = 0; i < 6; i++) {
      sn_sample *s = read_at(source, i, 0);
      assert_true(s->n_tokens <= source->vtable->nominal_tokens(source, i));
      nobeat += s->nobeat;
      if (i < 2) assert_false(s->nobeat);
      if (s->nobeat) {
        assert_int_equal(s->n_tokens, TOKENS[mode]);
        assert_non_null(s->valid);
        for (int64_t t = 0; t < s->n_tokens; t++) {
          const double step = source->patch_step_s;
          assert_true(near(s->coordinates[4 * t + 3], ((double)t + 0.5) * step)); /* unit t, as fixed patches have */
          assert_int_equal(s->positions[t], t);
          for (int64_t k = 0; k < source->patch_size; k++) assert_int_equal(s->valid[t * source->patch_size + k], k < 64);
        }
        sn_token_batch *batch = NULL;
        CHECK(sn_token_batch_pack((const sn_sample *const *)&s, 1, &batch, fault));
        assert_int_equal(batch->n_nobeat, 1);
        sn_token_batch_destroy(batch);
      }
      sn_sample_destroy(s);
    }
    assert_true(nobeat >= 3 && nobeat <= 4);
    sn_source_destroy(source);
  }
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- training ------------------------------------------------------------------------------------------------------ */

static void train(const char *root, const char *run, const char *extra, bool resume, int64_t stop_after) {
  sn_config *config = NULL;
  sn_run_data *data = NULL;
  sn_train_result result;
  CHECK(sn_run_config_create(&config, fault));
  CHECK(sn_config_load_pairs(config, "data.subject=recording\nmodel.width=16\nmodel.heads=2\nmodel.depth=1\nmae.decoder_width=8\n"
                             "mae.decoder_heads=1\ntrain.pack_tokens=1300\ntrain.steps=6\ntrain.lr=1e-3\ntrain.threads=1\n"
                             "train.checkpoint_every=2\ndata.crop=random\n", "test", fault));
  CHECK(sn_config_load_pairs(config, extra, "test", fault));
  CHECK(sn_config_set(config, "data.dir", root, "test", -1, fault));
  CHECK(sn_make_directories(run, fault));
  CHECK(sn_run_data_open(config, run, resume, NULL, &data, fault));
  CHECK(sn_run_settle_config(config, data, fault));
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run, .resume = resume,
                              .stop_after = stop_after};
  CHECK(sn_train(&options, &result, fault));
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

static void test_training(void **state) {
  static const char *const SETTINGS[] = {
      "data.tokens=beat_resample\ndata.beat_plan=scan\nmodel.input=standardized\n",
      "data.tokens=beat_pad\ndata.beat_features=embedding\nmodel.position=rope\n",
      "data.tokens=beat_adaptive\ndata.beat_features=none\ndata.beat_detect=vote\nmae.target=raw\nmae.target_standardize=true\n",
      "data.tokens=beat_resample\ndata.beat_features=concat\nmae.target=raw\nmae.target_standardize=true\nmodel.position=fourier4d\n"
      "mae.mask=time\nmodel.position_missing=origin\n"};
  char *root = heart_cohort();
  for (int i = 0; i < 4; i++) {
    char a[512], b[512], more[512];
    snprintf(a, sizeof a, "%s-a%d", root, i);
    snprintf(b, sizeof b, "%s-b%d", root, i);
    snprintf(more, sizeof more, "%strain.loader_threads=0\n", SETTINGS[i]);
    train(root, a, more, false, 0);
    snprintf(more, sizeof more, "%strain.loader_threads=3\n", SETTINGS[i]);
    train(root, b, more, false, 3); /* stops between two checkpoints */
    train(root, b, more, true, 0);
    assert_same_file(a, b, "metrics.jsonl");
    assert_same_file(a, b, "checkpoints/step-000000006/model.safetensors");
    char *text = NULL;
    int64_t n = 0;
    read_run_file(a, "metrics.jsonl", &text, &n);
    assert_non_null(strstr(text, "\"nobeat\": 0"));
    sn_free(text);
    if (sn_remove_tree(a, NULL) != SN_OK || sn_remove_tree(b, NULL) != SN_OK) fail_msg("a run folder was left");
  }
  cohort_remove(root);
}

/* ---- settings ------------------------------------------------------------------------------------------------------- */

static void expect_refused(const char *pairs, const char *field) {
  sn_config *config = NULL;
  sn_beat_token_options options;
  sn_error err;
  CHECK(sn_run_config_create(&config, fault));
  CHECK(sn_config_load_pairs(config, pairs, "test", fault));
  assert_int_equal(sn_beat_token_options_from_config(config, &options, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, field);
  assert_int_equal(options.mode, SN_BEAT_NONE);
  sn_config_destroy(config);
}

static void test_settings(void **state) {
  expect_refused("data.tokens=beat_pad\ndata.modality=eeg\n", "data.tokens");
  expect_refused("data.tokens=beat_resample\ndata.modality=ecg\ndata.rate=40 Hz\n", "data.rate");
  expect_refused("data.tokens=beat_pad\ndata.modality=ecg\ndata.beat_length=10\n", "data.beat_length");
  expect_refused("data.tokens=beat_adaptive\ndata.modality=ecg\ndata.beat_patch=20 s\n", "data.beat_patch");
  expect_refused("data.tokens=beat_adaptive\ndata.modality=ecg\ndata.filter_high=12 Hz\n", "data.filter_high");
  expect_refused("data.tokens=beat_adaptive\ndata.modality=ecg\ndata.filter_low=6 Hz\n", "data.filter_low");
  sn_beat_token_options o = {.mode = SN_BEAT_RESAMPLE, .length = 64, .patch_s = 0.8};
  assert_int_equal(sn_beat_most_in(&o, 10), 51);
  assert_int_equal(sn_beat_patch_size(&o), 69);
  o.extra = SN_BEAT_EXTRA_NONE;
  assert_int_equal(sn_beat_patch_size(&o), 64);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_modes),          cmocka_unit_test(test_sums_are_preserved),
      cmocka_unit_test(test_grid),           cmocka_unit_test(test_tokens_are_the_beats),
      cmocka_unit_test(test_rows_of_a_window), cmocka_unit_test(test_independence),
      cmocka_unit_test(test_bounded_memory), cmocka_unit_test(test_fall_back),
      cmocka_unit_test(test_training),       cmocka_unit_test(test_settings)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
