/* needs: full */
/* The pipeline of all modalities: combinations, overlapping patches, normalisation by kind, reads, recipes. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "modalities/eeg/eeg.h"
#include "tests/alloc_fault.h"
#include "tests/memory_recording.h"
#include "tests/signal_case.h"

enum { N = 8000, S = 6 };
static const char *const NAMES[S] = {"Fp1", "Fp2", "C3", "C4", "O1", "O2"};

static void fill(double *x[S]) {
  for (int c = 0; c < S; c++) {
    sn_random random = sn_random_at(9, SN_PURPOSE_TEST, 0, (uint64_t)c);
    x[c] = malloc(N * sizeof **x);
    for (int i = 0; i < N; i++) x[c][i] = 10 * (c + 1) * sn_random_normal(&random) + 30 * sin(0.05 * i + c);
  }
}

static void release(double *x[S]) {
  for (int c = 0; c < S; c++) free(x[c]);
}

/* kinds: all EEG, or the last three gradiometers. */
static void record(memory_recording *m, double *const x[S], bool with_meg) {
  memory_init(m, 250, 1);
  for (int c = 0; c < S; c++) {
    const bool meg = with_meg && c >= 3;
    char name[16];
    snprintf(name, sizeof name, "MEG011%d", c - 2);
    memory_channel(m, meg ? name : NAMES[c], meg ? SN_SENSOR_MEG_GRAD : SN_SENSOR_EEG, meg ? "fT/cm" : "uV", 1);
    if (!meg) continue;
    m->channels[c].has_position = m->channels[c].has_orientation = true;
    m->channels[c].frame = SN_FRAME_HEAD;
    m->channels[c].position_from = SN_POSITION_FILE;
    m->channels[c].position_m[2] = 0.1 + 0.01 * c;
    m->channels[c].orientation[0] = 1;
  }
  memory_segment(m, 0, N, x);
}

/* A whole frame of several channels at once, as files that interleave them are read; counts the calls. */
static int64_t n_calls;
static sn_status read_together(const sn_recording *recording, const int64_t *channels, int64_t n, int64_t segment,
                               int64_t first, int64_t n_frames, double *const *values, sn_error *err) {
  n_calls++;
  for (int64_t i = 0; i < n; i++) {
    const int64_t per = recording->channels[channels[i]].samples_per_frame;
    sn_status status = memory_read(recording, channels[i], segment, first * per, n_frames * per, values[i], err);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}
static const sn_recording_vtable TOGETHER = {.read = memory_read, .read_channels = read_together};

static sn_signal *make(const sn_signal_options *o) {
  sn_signal *e = NULL;
  sn_error err;
  if (sn_signal_create(o, &e, &err) != SN_OK) fail_msg("%s", err.message);
  return e;
}

static sn_signal_options plain_options(void) {
  sn_signal_options o = signal_defaults("eeg");
  o.condition.normalize = SN_NORMALIZE_NONE;
  o.condition.clip = 0;
  return o;
}

/* Many channels conditioned together have the bits of each by itself; mixed rates, gaps, and parts of a frame too. */
static void test_ranges_together(void **state) {
  double *x[S];
  memory_recording m;
  sn_error err;
  fill(x);
  for (int i = 3000; i < 3004; i++) x[1][i] = NAN;
  for (int i = 5000; i < 5600; i++) x[3][i] = NAN;
  record(&m, x, false);
  m.recording.rate_num = 125; /* two samples per frame, but one for the last two channels */
  for (int c = 0; c < 4; c++) m.channels[c].samples_per_frame = 2;
  m.segments[0].n_frames = N / 2;
  m.recording.vtable = &TOGETHER;
  const int64_t channels[S] = {0, 1, 3, 2, 4, 5};
  static const struct {
    int64_t first, count;
  } RANGES[] = {{0, 6400}, {1, 17}, {2399, 2001}, {6399, 1}, {100, 0}, {4000, 700}};
  for (int kind = 0; kind < 3; kind++) {
    sn_condition_options o = plain_options().condition;
    if (kind == 1) o.filter = SN_FILTER_BUTTERWORTH;
    if (kind == 2) o.resample = SN_RESAMPLE_FFT;
    sn_conditioner *c = NULL;
    assert_int_equal(sn_conditioner_create(&o, &c, &err), SN_OK);
    for (size_t r = 0; r < sizeof RANGES / sizeof RANGES[0]; r++) {
      double *together[S], alone[6400];
      uint8_t *valid[S], alone_valid[6400];
      int64_t invalid = 0;
      for (int i = 0; i < S; i++) {
        together[i] = malloc(6400 * sizeof **together);
        valid[i] = malloc(6400);
        memset(together[i], 0x55, 6400 * sizeof **together);
      }
      n_calls = 0;
      assert_int_equal(sn_conditioner_range_channels(c, &m.recording, channels, S, 0, RANGES[r].first, RANGES[r].count,
                                                     together, valid, &err), SN_OK);
      assert_int_equal(n_calls, RANGES[r].count > 0 ? 2 : 0); /* one per rate, whatever the number of channels */
      for (int i = 0; i < S; i++) {
        assert_int_equal(sn_conditioner_range(c, &m.recording, channels[i], 0, RANGES[r].first, RANGES[r].count, alone,
                                              alone_valid, &err), SN_OK);
        assert_memory_equal(alone, together[i], (size_t)RANGES[r].count * sizeof *alone);
        assert_memory_equal(alone_valid, valid[i], (size_t)RANGES[r].count);
        for (int64_t k = 0; k < RANGES[r].count; k++) invalid += !alone_valid[k];
        free(together[i]);
        free(valid[i]);
      }
      assert_true(r != 0 || invalid > 400);
    }
    sn_conditioner_destroy(c);
  }
  release(x);
}

/* Values of one window as read_window gives them. */
static void window_of(const sn_signal *e, const sn_recording *recording, sn_series_list *list, double start_s,
                      double *values, uint8_t *valid) {
  sn_error err;
  sn_window_info info[S];
  if (sn_signal_select(e, recording, false, list, &err) != SN_OK) fail_msg("%s", err.message);
  assert_true(list->n <= S);
  if (sn_signal_read_window(e, recording, list, 0, start_s, NULL, values, valid, info, &err) != SN_OK)
    fail_msg("%s", err.message);
}

static void test_average_reference(void **state) {
  enum { W = 2000 };
  double *x[S];
  memory_recording m;
  fill(x);
  record(&m, x, false);
  m.recording.vtable = &TOGETHER;
  sn_signal_options as_is = plain_options(), average = plain_options(), pairs = plain_options();
  ((sn_eeg_settings *)average.own.bytes)->montage.reference.kind = SN_REFERENCE_AVERAGE;
  assert_int_equal(sn_reference_parse(&((sn_eeg_settings *)pairs.own.bytes)->montage.reference, "Fp1-C3,C4-O2", NULL),
                   SN_OK);
  sn_signal *plain = make(&as_is), *minus = make(&average), *bipolar = make(&pairs);
  static double a[S * W], b[S * W];
  static uint8_t va[S * W], vb[S * W];
  sn_series_list la = {0}, lb = {0}, lc = {0};
  window_of(plain, &m.recording, &la, 3.0, a, va);
  assert_true(la.plain && la.n == S && la.n_channels == S);
  /* The average is one combination, computed once: every channel is read once for a window, in one call. */
  n_calls = 0;
  window_of(minus, &m.recording, &lb, 3.0, b, vb);
  assert_int_equal(n_calls, 1);
  assert_int_equal(lb.n, S);
  assert_int_equal(lb.n_commons, 1);
  for (int i = 0; i < W; i++) {
    double mean = 0, sum = 0;
    for (int s = 0; s < S; s++) mean += a[s * W + i] / S;
    for (int s = 0; s < S; s++) {
      assert_true(fabs(b[s * W + i] - (a[s * W + i] - mean)) < 1e-9);
      sum += b[s * W + i];
    }
    assert_true(fabs(sum) < 1e-8);
  }
  window_of(bipolar, &m.recording, &lc, 3.0, b, vb);
  assert_int_equal(lc.n, 2);
  assert_string_equal(lc.series[0].name, "Fp1-C3");
  for (int i = 0; i < W; i++) assert_true(b[i] == a[i] - a[2 * W + i]);
  sn_series_free(&la), sn_series_free(&lb), sn_series_free(&lc);
  /* A missing sample of one electrode makes all that use it invalid, and nothing else. */
  for (int i = 1000; i < 1005; i++) x[0][i] = NAN; /* 4 s: sample 200 of a window at 3 s */
  window_of(plain, &m.recording, &la, 3.0, a, va);
  window_of(minus, &m.recording, &lb, 3.0, b, vb);
  assert_true(!va[202] && va[W + 202]);
  for (int s = 0; s < S; s++) {
    assert_true(!vb[s * W + 202] && b[s * W + 202] == 0.0 && vb[s * W + 300]);
  }
  sn_series_free(&la), sn_series_free(&lb);
  sn_signal_destroy(plain), sn_signal_destroy(minus), sn_signal_destroy(bipolar);
  release(x);
}

static void test_overlapping_patches(void **state) {
  double *x[S];
  memory_recording m;
  sn_error err;
  sn_sample *s = NULL;
  fill(x);
  record(&m, x, false);
  sn_signal_options o = plain_options();
  sn_signal *e = make(&o);
  assert_int_equal(sn_signal_window_patches(e), 11); /* 10 s: 200 samples every 180 */
  assert_int_equal(sn_signal_patch_size(e), 200);
  assert_true(sn_signal_patch_stride_seconds(e) == 0.9);
  assert_int_equal(signal_sample(e, &m.recording, 0, 2.0, NULL, &s, &err), SN_OK);
  assert_int_equal(s->n_tokens, S * 11);
  for (int t = 0; t + 1 < s->n_tokens; t++) {
    if (s->series[t] != s->series[t + 1]) continue;
    assert_memory_equal(s->patches + t * 200 + 180, s->patches + (t + 1) * 200, 20 * sizeof(float));
    assert_true(s->positions[t + 1] == s->positions[t] + 1);
    assert_true(fabs(s->coordinates[4 * t + 3] - (0.9 * s->positions[t] + 0.5)) < 1e-6);
  }
  for (int t = 0; t < s->n_tokens; t++) {
    const int32_t electrode = (int32_t)sn_electrode_find(NAMES[s->series[t]]);
    double place[3];
    sn_electrode_position(electrode, SN_HEAD_RADIUS_M, place);
    assert_int_equal(s->channels[t], electrode);
    assert_int_equal(s->sensors[t], SN_SENSOR_EEG);
    for (int k = 0; k < 3; k++) assert_true(s->coordinates[4 * t + k] == (float)place[k]);
  }
  sn_sample_destroy(s);
  sn_signal_destroy(e);
  o.patch_stride_s = 0.8;
  assert_int_equal(sn_signal_create(&o, &e, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "data.patch_stride");
  assert_non_null(strstr(err.message, "9.8 s and 10.6 s"));
  o.condition.patch_s = 11;
  assert_int_equal(sn_signal_create(&o, &e, &err), SN_E_ARGUMENT);
  release(x);
}

static void test_normalisation_by_kind(void **state) {
  enum { W = 2000 };
  double *x[S];
  memory_recording m;
  fill(x);
  for (int i = 0; i < N; i++) x[4][i] = 7; /* a flat gradiometer is zeros, and in no statistic */
  record(&m, x, true);
  sn_signal_options none = plain_options(), group = plain_options();
  group.condition.normalize = SN_NORMALIZE_GROUP;
  group.condition.filter_low_hz = 0; /* keeps the level, at the native rate: flat is flat */
  group.condition.rate_num = 250, group.condition.window_s = 8, group.stride_s = 0, group.patch_stride_s = 0;
  none.condition = group.condition, none.stride_s = 0, none.patch_stride_s = 0;
  none.condition.normalize = SN_NORMALIZE_NONE;
  sn_signal *plain = make(&none), *e = make(&group);
  static double a[S * W], b[S * W];
  static uint8_t va[S * W], vb[S * W];
  sn_series_list la = {0}, lb = {0};
  window_of(plain, &m.recording, &la, 5.0, a, va);
  window_of(e, &m.recording, &lb, 5.0, b, vb);
  assert_int_equal(la.n, S);
  for (int kind = 0; kind < 2; kind++) {
    double sum = 0, squares = 0, n = 0;
    for (int s = 3 * kind; s < 3 * kind + 3; s++)
      for (int i = 0; i < W && s != 4; i++) sum += a[s * W + i], n++;
    for (int s = 3 * kind; s < 3 * kind + 3; s++)
      for (int i = 0; i < W && s != 4; i++) squares += pow(a[s * W + i] - sum / n, 2);
    for (int s = 3 * kind; s < 3 * kind + 3; s++)
      for (int i = 0; i < W; i++) {
        const double wanted = s == 4 ? 0 : (a[s * W + i] - sum / n) / sqrt(squares / n);
        assert_true(fabs(b[s * W + i] - wanted) <= 1e-9);
      }
  }
  sn_series_free(&la), sn_series_free(&lb);
  sn_signal_destroy(plain), sn_signal_destroy(e);
  release(x);
}

/* Both kinds in one sample: each with its kind, its place and its direction; bad channels are left out and counted. */
static void test_kinds_and_bad_channels(void **state) {
  double *x[S];
  memory_recording m;
  sn_error err;
  sn_sample *s = NULL;
  sn_series_list list = {0};
  fill(x);
  record(&m, x, true);
  m.channels[1].bad = true;
  sn_signal_options o = plain_options();
  sn_signal *e = make(&o);
  assert_int_equal(sn_signal_select(e, &m.recording, true, &list, &err), SN_OK);
  assert_int_equal(list.n, S); /* planning does not know */
  sn_series_free(&list);
  assert_int_equal(sn_signal_select(e, &m.recording, false, &list, &err), SN_OK);
  assert_int_equal(list.n, S - 1);
  assert_int_equal(list.n_bad, 1);
  sn_series_free(&list);
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &s, &err), SN_OK);
  assert_int_equal(s->n_tokens, 11 * (S - 1));
  const int64_t last = s->n_tokens - 1;
  assert_int_equal(s->sensors[last], SN_SENSOR_MEG_GRAD);
  assert_true(s->coordinates[4 * last + 2] == (float)0.15 && s->orientations[3 * last] == 1.0f);
  assert_int_equal(s->channels[last], SN_NAME_MEG + 2);
  sn_sample_destroy(s);
  sn_signal_destroy(e);
  release(x);
}

static void test_lists(void **state) {
  double *x[S];
  memory_recording m;
  sn_error err;
  sn_series_list list = {0};
  fill(x);
  record(&m, x, false);
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_E_ARGUMENT); /* empty */
  const sn_series_term one = {.channel = 2, .weight = 1}, two[2] = {{.channel = 5, .weight = 1}, {.channel = 2, .weight = -1}},
                       wrong = {.channel = 6, .weight = 1};
  sn_series a = {.name = "a", .common = -1}, b = {.name = "b", .common = -1};
  assert_int_equal(sn_series_add(&list, &a, &one, 1, &err), SN_OK);
  assert_int_equal(sn_series_add(&list, &b, two, 2, &err), SN_OK);
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_OK);
  assert_false(list.plain);
  assert_int_equal(list.n_channels, 2);
  assert_int_equal(list.channels[0], 2);
  assert_int_equal(list.terms[list.series[1].first_term].slot, 1);
  m.channels[5].samples_per_frame = 2;
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "different rates: O2 and C3"));
  m.channels[5].samples_per_frame = 1;
  assert_int_equal(sn_series_add(&list, &a, &one, 1, &err), SN_OK);
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "twice"));
  sn_series_free(&list);
  assert_int_equal(sn_series_add(&list, &a, &wrong, 1, &err), SN_OK);
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_E_ARGUMENT);
  sn_series_free(&list);
  release(x);
}

/* A recipe stands before the table's defaults, and behind what the user sets, in whatever order they come. */
static void test_recipes(void **state) {
  const sn_config_entry *tables[SN_MODALITY_TABLES];
  const int64_t n = sn_modality_tables(tables);
  sn_config *config = NULL;
  sn_signal_options o;
  sn_error err;
  assert_int_equal(n, sn_n_modalities + 1);
  assert_int_equal(sn_config_create(tables, n, &config, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.clip", "5", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_modality_apply(&sn_modality_eeg, config, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.window", "19 s", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_OK);
  assert_ptr_equal(o.modality, &sn_modality_eeg);
  assert_true(o.condition.clip == 5 && o.condition.window_s == 19 && o.condition.rate_num == 200);
  assert_true(o.condition.normalize == SN_NORMALIZE_ZSCORE_RECORD && o.patch_stride_s == 0.9);
  assert_true(sn_config_is_set(config, "data.clip") && !sn_config_is_set(config, "data.rate"));
  assert_int_equal(sn_modality_apply(&sn_modality_ecg, config, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.window", "10 s", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.patch_stride", "0", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_OK);
  assert_true(o.condition.clip == 5 && o.condition.rate_num == 100 && o.condition.filter_high_hz == 40);
  assert_int_equal(sn_config_set(config, "data.modality", "ecgs", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "ecg, eeg"));
  assert_ptr_equal(sn_modality_of("meg"), &sn_modality_eeg);
  assert_null(sn_modality_of(""));
  assert_null(sn_modality_of("ee"));
  assert_int_equal(sn_config_default_pairs(config, "data.no_such=1\n", "recipe", &err), SN_E_ARGUMENT);
  sn_config_destroy(config);
}

static void test_out_of_memory(void **state) {
  double *x[S];
  memory_recording m;
  sn_error err;
  fill(x);
  record(&m, x, true);
  sn_signal_options o = signal_defaults("eeg");
  o.condition.filter_low_hz = 2;
  ((sn_eeg_settings *)o.own.bytes)->montage.reference.kind = SN_REFERENCE_AVERAGE;
  for (int mode = 0; mode < 2; mode++) {
    o.condition.normalize = mode == 0 ? SN_NORMALIZE_ZSCORE_RECORD : SN_NORMALIZE_GROUP;
    for (fault_begin(); fault_next();) {
      sn_signal *e = NULL;
      sn_signal_stats *stats = NULL;
      sn_sample *s = NULL;
      sn_status status = sn_signal_create(&o, &e, &err);
      if (status == SN_OK && mode == 0) status = signal_stats(e, &m.recording, &stats, &err);
      if (status == SN_OK) status = signal_sample(e, &m.recording, 0, 1, stats, &s, &err);
      fault_check(status);
      assert_true((s != NULL) == (status == SN_OK));
      sn_sample_destroy(s);
      sn_free(stats);
      sn_signal_destroy(e);
    }
  }
  release(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_ranges_together),       cmocka_unit_test(test_average_reference),
      cmocka_unit_test(test_overlapping_patches),   cmocka_unit_test(test_normalisation_by_kind),
      cmocka_unit_test(test_kinds_and_bad_channels), cmocka_unit_test(test_lists),
      cmocka_unit_test(test_recipes),               cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
