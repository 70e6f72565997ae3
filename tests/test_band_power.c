/* needs: full */
/* Log band powers against scipy, and what happens with gaps, missing samples, other rates and absent channels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modalities/eeg/band_power.h"
#include "tests/alloc_fault.h"
#include "tests/eeg_wave.h"
#include "tests/golden/eeg_golden.h"
#include "tests/memory_recording.h"

enum { N_GOLDEN = sizeof EEG_GOLDEN / sizeof *EEG_GOLDEN };

/* Every channel a series of its own. */
static void list_all(sn_series_list *list, const sn_recording *recording) {
  sn_error err;
  memset(list, 0, sizeof *list);
  for (int64_t c = 0; c < recording->n_channels; c++) {
    sn_series series = {.id = -1, .kind = recording->channels[c].kind, .common = -1};
    sn_series_term term = {.channel = c, .weight = 1};
    snprintf(series.name, sizeof series.name, "%s", recording->channels[c].name);
    assert_int_equal(sn_series_add(list, &series, &term, 1, &err), SN_OK);
  }
  if (sn_series_finish(list, recording, &err) != SN_OK) fail_msg("%s", err.message);
}

static void check_value(double value, double expected, const char *what, int i) {
  if (isnan(expected) ? !isnan(value) : !(fabs(value - expected) <= 1e-9))
    fail_msg("%s, value %d: %.15g, expected %.15g", what, i, value, expected);
}

static void test_golden(void **state) {
  (void)state;
  static const char *const NAMES[] = {"c0", "c1", "c2", "c3"};
  for (int g = 0; g < N_GOLDEN; g++) {
    const eeg_golden *golden = &EEG_GOLDEN[g];
    double *x = eeg_wave(golden->channels, golden->n, golden->rate, golden->quantum), *rows[4], features[24];
    memory_recording m;
    sn_series_list list;
    sn_error err;
    memory_init(&m, (int64_t)golden->rate, 1);
    for (int c = 0; c < golden->channels; c++) {
      memory_channel(&m, NAMES[c], SN_SENSOR_EEG, "uV", 1);
      rows[c] = x + c * golden->n;
    }
    memory_segment(&m, 0, golden->n, rows);
    list_all(&list, &m.recording);
    if (sn_eeg_features(features, &m.recording, &list, NAMES, golden->channels, 0, 0, -1, &err) != SN_OK)
      fail_msg("%s", err.message);
    for (int i = 0; i < 6 * golden->channels; i++) check_value(features[i], golden->bands[i], golden->name, i);
    sn_series_free(&list);
    free(x);
  }
}

/* A long recording is read in blocks; the result is that of one block. A stretch equals a recording of that stretch. */
static void test_blocks_and_stretches(void **state) {
  (void)state;
  enum { RATE = 128, N = RATE * 700 };
  static const char *const COLUMNS[] = {"a", "@eeg", "absent", "a-b"};
  double *x = eeg_wave(2, N, RATE, 0), *rows[2] = {x, x + N}, *part_rows[2] = {x + 100 * RATE, x + N + 100 * RATE};
  double whole[24], part[24], again[24], sum[RATE + 1] = {0};
  memory_recording m, cut;
  sn_series_list list;
  sn_error err;
  memory_init(&m, RATE, 1), memory_init(&cut, RATE / 2, 1);
  memory_channel(&m, "a", SN_SENSOR_EEG, "uV", 1), memory_channel(&m, "b", SN_SENSOR_EEG, "uV", 1);
  memory_channel(&cut, "a", SN_SENSOR_EEG, "uV", 2), memory_channel(&cut, "b", SN_SENSOR_EEG, "uV", 2);
  memory_segment(&m, 0, N, rows);
  memory_segment(&cut, 0, 50 * RATE / 2, part_rows); /* frames of two samples: the same 128 Hz */
  list_all(&list, &m.recording);
  sn_series difference = {.id = -1, .kind = SN_SENSOR_EEG, .common = -1};
  sn_series_term terms[2] = {{.channel = 0, .weight = 1}, {.channel = 1, .weight = -1}};
  snprintf(difference.name, sizeof difference.name, "a-b");
  assert_int_equal(sn_series_add(&list, &difference, terms, 2, &err), SN_OK);
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_OK);
  if (sn_eeg_features(whole, &m.recording, &list, COLUMNS, 4, 0, 0, -1, &err) != SN_OK) fail_msg("%s", err.message);
  sn_welch *welch = NULL;
  int64_t pieces = 0;
  assert_int_equal(sn_welch_create(RATE, 2, &welch, &err), SN_OK);
  assert_int_equal(sn_welch_add(sum, &pieces, welch, x, N, &err), SN_OK);
  assert_int_equal(pieces, 699);
  for (int k = 0; k <= RATE; k++) sum[k] /= 699;
  assert_true(fabs(whole[0] - log10(sn_band_power(sum, welch, 1, 4) + 1e-12)) < 1e-12);
  for (int b = 0; b < 6; b++) {
    assert_true(isnan(whole[12 + b]));                                 /* absent */
    assert_true(isfinite(whole[18 + b]) && whole[18 + b] != whole[b]); /* the difference */
  }
  assert_int_equal(sn_eeg_features(part, &m.recording, &list, COLUMNS, 4, 0, 100, 50, &err), SN_OK);
  assert_int_equal(sn_eeg_features(again, &cut.recording, &list, COLUMNS, 4, 0, 0, -1, &err), SN_OK);
  for (int i = 0; i < 24; i++) check_value(part[i], again[i], "stretch", i);
  sn_welch_destroy(welch);
  sn_series_free(&list);
  free(x);
}

/* A reference that is shared: the features are those of the re-referenced signals. Kinds are averaged in the logarithm.
 */
static void test_common_and_kinds(void **state) {
  (void)state;
  enum { RATE = 200, N = 2000 };
  static const char *const COLUMNS[] = {"c0", "@meg_mag", "@meg_grad"};
  double *x = eeg_wave(4, N, RATE, 0), *rows[4], y[N], features[18], plain[18];
  memory_recording m;
  sn_series_list list = {0};
  sn_error err;
  int64_t common;
  for (int c = 0; c < 4; c++) rows[c] = x + c * N;
  memory_init(&m, RATE, 1);
  memory_channel(&m, "c0", SN_SENSOR_EEG, "uV", 1), memory_channel(&m, "c1", SN_SENSOR_EEG, "uV", 1);
  memory_channel(&m, "m0", SN_SENSOR_MEG_MAG, "fT", 1), memory_channel(&m, "m1", SN_SENSOR_MEG_MAG, "fT", 1);
  memory_segment(&m, 0, N, rows);
  sn_series_term mean[2] = {{.channel = 0, .weight = 0.5}, {.channel = 1, .weight = 0.5}};
  assert_int_equal(sn_series_add_common(&list, mean, 2, &common, &err), SN_OK);
  for (int c = 0; c < 4; c++) {
    sn_series series = {.id = -1, .kind = m.channels[c].kind, .common = c < 2 ? common : -1};
    sn_series_term term = {.channel = c, .weight = 1};
    snprintf(series.name, sizeof series.name, "%s", m.channels[c].name);
    assert_int_equal(sn_series_add(&list, &series, &term, 1, &err), SN_OK);
  }
  assert_int_equal(sn_series_finish(&list, &m.recording, &err), SN_OK);
  if (sn_eeg_features(features, &m.recording, &list, COLUMNS, 3, 0, 0, -1, &err) != SN_OK) fail_msg("%s", err.message);
  for (int i = 0; i < N; i++) y[i] = 0.5 * x[i] - 0.5 * x[N + i];
  static const char *const NAMES[] = {"c0", "m0", "m1"};
  sn_series_list own;
  rows[0] = y;
  m.recording.n_segments = 0;
  memory_segment(&m, 0, N, rows);
  list_all(&own, &m.recording);
  assert_int_equal(sn_eeg_features(plain, &m.recording, &own, NAMES, 3, 0, 0, -1, &err), SN_OK);
  for (int b = 0; b < 6; b++) {
    check_value(features[b], plain[b], "referenced", b);
    check_value(features[6 + b], 0.5 * (plain[6 + b] + plain[12 + b]), "mean of a kind", b);
    assert_true(isnan(features[12 + b]));
  }
  char name[SN_FEATURE_NAME];
  sn_eeg_feature_name(name, 0, COLUMNS, 3);
  assert_string_equal(name, "c0_log_1_4_hz");
  sn_eeg_feature_name(name, 11, COLUMNS, 3);
  assert_string_equal(name, "meg_mag_log_30_45_hz");
  sn_eeg_feature_name(name, 18, COLUMNS, 3);
  assert_string_equal(name, "?");
  assert_int_equal(sn_eeg_feature_count(3), 18);
  sn_series_free(&list), sn_series_free(&own);
  free(x);
}

/* Pieces with a missing sample are left out, none crosses a gap; nothing left is NaN. */
static void test_missing(void **state) {
  (void)state;
  enum { RATE = 100, N = 1000 };
  static const char *const COLUMNS[] = {"a", "b"};
  double *x = eeg_wave(2, N, RATE, 0), *rows[2] = {x, x + N}, features[12], expected[12];
  memory_recording m, two;
  sn_series_list list;
  sn_error err;
  memory_init(&m, RATE, 1), memory_init(&two, RATE, 1);
  for (int k = 0; k < 2; k++) {
    memory_channel(&m, COLUMNS[k], SN_SENSOR_EEG, "uV", 1);
    memory_channel(&two, COLUMNS[k], SN_SENSOR_EEG, "uV", 1);
  }
  for (int i = 0; i < N; i++)
    if (i % 150 == 0) x[N + i] = NAN; /* b: every piece of 2 s holds one */
  x[499] = NAN;                       /* a: pieces [0,4) and [5,10) s are left */
  memory_segment(&m, 0, N, rows);
  double *first[2] = {x, x + N}, *second[2] = {x + 500, x + N + 500};
  memory_segment(&two, 0, 400, first), memory_segment(&two, 5, 500, second);
  list_all(&list, &m.recording);
  assert_int_equal(sn_eeg_features(features, &m.recording, &list, COLUMNS, 2, 0, 0, -1, &err), SN_OK);
  assert_int_equal(sn_eeg_features(expected, &two.recording, &list, COLUMNS, 2, 0, 0, -1, &err), SN_OK);
  for (int b = 0; b < 6; b++) {
    assert_true(isfinite(features[b]));
    check_value(features[b], expected[b], "around a gap", b);
    assert_true(isnan(features[6 + b]));
  }
  /* Shorter than a piece. */
  assert_int_equal(sn_eeg_features(features, &m.recording, &list, COLUMNS, 2, 0, 1, 1.5, &err), SN_OK);
  for (int i = 0; i < 12; i++) assert_true(isnan(features[i]));
  static const char *const NOTHING[] = {"z", "@meg_mag"};
  assert_int_equal(sn_eeg_features(features, &m.recording, &list, NOTHING, 2, 0, 0, -1, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_eeg_features(features, &m.recording, &list, COLUMNS, 2, 1, 0, 1, &err), SN_E_ARGUMENT);
  sn_welch *welch = NULL;
  assert_int_equal(sn_welch_create(0, 2, &welch, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_welch_create(1, 2, &welch, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_welch_create(NAN, 2, &welch, &err), SN_E_ARGUMENT);
  for (fault_begin(); fault_next();)
    fault_check(sn_eeg_features(features, &m.recording, &list, COLUMNS, 2, 0, 0, -1, &err));
  sn_series_free(&list);
  free(x);
}

/* Share of 8-12 Hz in 2-30 Hz over O1, Oz, O2. */
static double alpha_share(const char *path) {
  static const char *const PLACES[] = {"O1", "Oz", "O2"};
  sn_recording *r = NULL;
  sn_welch *welch = NULL;
  sn_error err;
  double alpha = 0, all = 0;
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_welch_create(sn_recording_rate(r, 0), 2, &welch, &err), SN_OK);
  double *sum = calloc((size_t)sn_welch_bins(welch), sizeof *sum);
  int64_t n = sn_recording_samples(r, 0, 0), pieces = 0;
  double *x = malloc((size_t)n * sizeof *x);
  for (int i = 0; i < 3; i++) {
    int64_t c = sn_recording_find_channel(r, PLACES[i]); /* the file says "O1..", "Oz..", "O2.." */
    assert_true(c >= 0);
    assert_int_equal(sn_recording_read(r, c, 0, 0, n, x, &err), SN_OK);
    assert_int_equal(sn_welch_add(sum, &pieces, welch, x, n, &err), SN_OK);
  }
  alpha = sn_band_power(sum, welch, 8, 12), all = sn_band_power(sum, welch, 2, 30);
  sn_welch_destroy(welch);
  sn_recording_destroy(r);
  free(sum), free(x);
  return alpha / all;
}

/* Published for these two recordings: 0.66 with the eyes closed, 0.18 open. */
static void test_real_eyes(void **state) {
  (void)state;
  char path[512];
  const char *root = getenv("SONDE_DATA");
  double share[2];
  if (root == NULL) {
    print_message("skipped: SONDE_DATA is not set\n");
    skip();
  }
  for (int k = 0; k < 2; k++) {
    snprintf(path, sizeof path, "%s/eeg/eegmmi_s001/S001R0%d.edf", root, k + 1);
    share[k] = alpha_share(path);
  }
  if (!(fabs(share[0] - 0.18) < 0.04) || !(fabs(share[1] - 0.66) < 0.04))
    fail_msg("open %g, closed %g", share[0], share[1]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_real_eyes), cmocka_unit_test(test_golden),
                                     cmocka_unit_test(test_blocks_and_stretches),
                                     cmocka_unit_test(test_common_and_kinds), cmocka_unit_test(test_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
