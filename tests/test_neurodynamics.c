/* needs: full */
/* Each statistic against numpy and scipy, what it must be where algebra tells, and what cannot be computed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modalities/eeg/layout.h"
#include "modalities/eeg/neurodynamics.h"
#include "tests/alloc_fault.h"
#include "tests/eeg_wave.h"
#include "tests/golden/eeg_golden.h"

enum { N_GOLDEN = sizeof EEG_GOLDEN / sizeof *EEG_GOLDEN };

static sn_neuro *make(double rate, int64_t n, bool coherence) {
  sn_neuro *neuro = NULL;
  sn_error err;
  const sn_neuro_options options = {.rate_hz = rate, .n_samples = n, .coherence = coherence};
  if (sn_neuro_create(&options, &neuro, &err) != SN_OK) fail_msg("%s", err.message);
  return neuro;
}

static void check_all(const double *values, const double *expected, int n, const char *what) {
  int finite = 0;
  for (int i = 0; i < n; i++) {
    if (isnan(expected[i]) ? !isnan(values[i]) : !(fabs(values[i] - expected[i]) <= 1e-9))
      fail_msg("%s, value %d: %.15g, expected %.15g", what, i, values[i], expected[i]);
    finite += !isnan(expected[i]);
  }
  assert_true(finite > n / 4); /* most of the table says something */
}

static void test_golden(void **state) {
  (void)state;
  for (int g = 0; g < N_GOLDEN; g++) {
    const eeg_golden *golden = &EEG_GOLDEN[g];
    int n = golden->channels, pairs = n * (n - 1) / 2;
    double *x = eeg_wave(n, golden->n, golden->rate, golden->quantum), values[4 * 14 + 30];
    sn_neuro *locking = make(golden->rate, golden->n, false), *coherence = make(golden->rate, golden->n, true);
    sn_error err;
    assert_int_equal(sn_neuro_count(n), n * 14 + pairs * 5);
    assert_int_equal(sn_neuro_window(values, locking, x, n, NULL, &err), SN_OK);
    check_all(values, golden->values, n * 14, golden->name);
    check_all(values + n * 14, golden->locking, pairs * 5, golden->name);
    assert_int_equal(sn_neuro_pairs(values, coherence, x, n, &err), SN_OK);
    check_all(values, golden->coherence, pairs * 5, golden->name);
    sn_neuro_destroy(locking), sn_neuro_destroy(coherence);
    free(x);
  }
}

static void test_algebra(void **state) {
  (void)state;
  enum { N = 800, RATE = 200 };
  double *x = eeg_wave(3, N, RATE, 0), values[15], one[14], other[14];
  sn_neuro *neuro = make(RATE, N, false), *coherence = make(RATE, N, true);
  sn_error err;
  /* A channel with itself, with its negative, and with a multiple. */
  for (int i = 0; i < N; i++) x[N + i] = -3.0 * x[i] + 5.0, x[2 * N + i] = 2.0 * x[i];
  for (int c = 0; c < 2; c++) {
    assert_int_equal(sn_neuro_pairs(values, c ? coherence : neuro, x, 3, &err), SN_OK);
    for (int i = 0; i < 15; i++) assert_true(fabs(values[i] - 1) < 1e-12);
  }
  /* Scale: powers shift by 20 log10, everything else stays. */
  assert_int_equal(sn_neuro_channel(one, neuro, x, &err), SN_OK);
  assert_int_equal(sn_neuro_channel(other, neuro, x + 2 * N, &err), SN_OK);
  for (int i = 0; i < 14; i++) assert_true(fabs(other[i] - one[i] - (i < 5 ? 2 * log10(2.0) : 0)) < 1e-9);
  double sum = 0;
  for (int i = 5; i < 10; i++) sum += one[i];
  assert_true(fabs(sum - 1) < 1e-12);
  assert_true(one[10] > 0 && one[10] < 1 && one[11] > 0 && one[11] <= 1);
  /* A sine: Hjorth's mobility is 2 sin(w/2), complexity 1; rising only is one pattern, entropy 0. */
  for (int i = 0; i < N; i++) x[i] = sin(2 * 3.14159265358979323846 * 10 * i / RATE), x[N + i] = i;
  assert_int_equal(sn_neuro_channel(one, neuro, x, &err), SN_OK);
  assert_true(fabs(one[12] - 2 * sin(3.14159265358979323846 * 10 / RATE)) < 1e-2);
  assert_true(fabs(one[13] - 1) < 1e-2); /* the line that is taken off is not quite 0 */
  assert_true(one[5 + 2] > 0.99);        /* all its power is alpha */
  assert_int_equal(sn_neuro_channel(other, neuro, x + N, &err), SN_OK);
  assert_true(other[11] == 0);
  sn_neuro_destroy(neuro), sn_neuro_destroy(coherence);
  free(x);
}

/* Gamma whose amplitude follows theta's phase against gamma of constant amplitude. */
static void test_modulation_tells(void **state) {
  (void)state;
  enum { N = 2000, RATE = 200 };
  double x[N], bound[14], free_running[14];
  sn_neuro *neuro = make(RATE, N, false);
  sn_error err;
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < N; i++) {
      double t = i / (double)RATE, theta = 2 * 3.14159265358979323846 * 6 * t;
      x[i] = 5 * sin(theta) + (k == 0 ? 1 + cos(theta) : 1) * sin(2 * 3.14159265358979323846 * 37.3 * t);
    }
    assert_int_equal(sn_neuro_channel(k == 0 ? bound : free_running, neuro, x, &err), SN_OK);
  }
  assert_true(bound[10] > 0.02 && free_running[10] < 1e-3);
  sn_neuro_destroy(neuro);
}

static void test_missing(void **state) {
  (void)state;
  enum { N = 600, RATE = 100 };
  double *x = eeg_wave(4, N, RATE, 0), values[4 * 14 + 30];
  sn_neuro *neuro = make(RATE, N, false);
  sn_error err;
  x[N + 77] = NAN;
  for (int i = 0; i < N; i++) x[2 * N + i] = 4; /* flat */
  assert_int_equal(sn_neuro_window(values, neuro, x, 4, NULL, &err), SN_OK);
  for (int i = 0; i < 14; i++) {
    assert_true(isfinite(values[i]) && isfinite(values[42 + i]));
    assert_true(isnan(values[14 + i]));
    /* Flat: the logarithm of nothing, one pattern (ties in the order of time), the rest undefined. */
    if (i < 5)
      assert_true(fabs(values[28 + i] + 12) < 1e-6);
    else if (i == 11)
      assert_true(values[28 + i] == 0);
    else
      assert_true(isnan(values[28 + i]));
  }
  static const int USABLE[6] = {0, 0, 1, 0, 0, 0}; /* 0-1 0-2 0-3 1-2 1-3 2-3 */
  for (int p = 0; p < 6; p++)
    for (int b = 0; b < 5; b++) assert_int_equal(isfinite(values[56 + p * 5 + b]) != 0, USABLE[p]);
  sn_neuro_destroy(neuro);
  /* One second: no piece of 2 s, and so no power. 60 Hz: gamma is out of reach, and with it the modulation. */
  neuro = make(RATE, 100, false);
  assert_int_equal(sn_neuro_channel(values, neuro, x, &err), SN_OK);
  for (int i = 0; i < 10; i++) assert_true(isnan(values[i]));
  assert_true(isfinite(values[11]) && isfinite(values[12]));
  sn_neuro_destroy(neuro);
  neuro = make(60, N, false);
  assert_int_equal(sn_neuro_channel(values, neuro, x, &err), SN_OK);
  assert_true(isnan(values[4]) && isnan(values[10]) && isfinite(values[3]));
  for (int i = 5; i < 10; i++) assert_true(isnan(values[i])); /* no whole to be a share of */
  sn_neuro_destroy(neuro);
  free(x);
}

static void test_regions(void **state) {
  (void)state;
  static const struct {
    const char *electrode;
    int32_t region;
  } PLACES[] = {{"Fp1", 0}, {"F7", 0}, {"F3", 0},  {"Fz", 1}, {"Fpz", 1}, {"F4", 2},  {"T7", 3},
                {"C3", 3},  {"Cz", 4}, {"C1h", 4}, {"C4", 5}, {"T8", 5},  {"FCz", 4}, {"CPz", 4},
                {"P3", 6},  {"P7", 6}, {"O1", 6},  {"Pz", 7}, {"Oz", 7},  {"P4", 8},  {"O2", 8}};
  for (size_t i = 0; i < sizeof PLACES / sizeof *PLACES; i++) {
    double p[3];
    sn_electrode_position(sn_electrode_find(PLACES[i].electrode), SN_HEAD_RADIUS_M, p);
    int32_t region = sn_neuro_region(p, SN_HEAD_RADIUS_M);
    if (region != PLACES[i].region) fail_msg("%s: region %d", PLACES[i].electrode, region);
  }
  double centre[3];
  sn_head_centre(SN_HEAD_RADIUS_M, centre);
  assert_int_equal(sn_neuro_region(centre, SN_HEAD_RADIUS_M), -1);
}

/* More than 20 channels: the regions' means stand for them. */
static void test_many_channels(void **state) {
  (void)state;
  enum { N = 400, RATE = 100, S = 24 };
  double *x = eeg_wave(S, N, RATE, 0), *values = malloc((size_t)sn_neuro_count(S) * sizeof *values);
  double summary[SN_NEURO_SUMMARY], *means = calloc(9 * N, sizeof *means), pairs[36 * 5], own[14];
  int32_t regions[S];
  sn_neuro *neuro = make(RATE, N, false);
  sn_error err;
  for (int c = 0; c < S; c++) regions[c] = c == 23 ? -1 : c % 8; /* region 8 is empty, one channel in none */
  for (int c = 0; c < 23; c++)
    for (int i = 0; i < N; i++) means[(c % 8) * N + i] += x[c * N + i] / (c % 8 < 7 ? 3 : 2);
  for (int i = 0; i < N; i++) means[8 * N + i] = NAN;
  assert_int_equal(sn_neuro_count(S), S * 14 + 180);
  assert_int_equal(sn_neuro_window(values, neuro, x, S, NULL, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_neuro_window(values, neuro, x, S, regions, &err), SN_OK);
  assert_int_equal(sn_neuro_pairs(pairs, neuro, means, 9, &err), SN_OK);
  assert_int_equal(sn_neuro_summary(summary, neuro, x, S, regions, &err), SN_OK);
  for (int i = 0; i < 180; i++) {
    bool empty = (i / 5 == 7 || i / 5 == 14 || i / 5 == 20 || i / 5 == 25 || i / 5 == 29 || i / 5 == 32 ||
                  i / 5 == 34 || i / 5 == 35); /* pairs with region 8 */
    assert_int_equal(isnan(pairs[i]) != 0, empty);
    for (int k = 0; k < 2; k++) {
      double value = k ? summary[9 * 14 + i] : values[S * 14 + i];
      assert_true(empty ? isnan(value) : fabs(value - pairs[i]) < 1e-9);
    }
  }
  for (int v = 0; v < 14; v++) { /* region 7 holds channels 7 and 15 */
    assert_int_equal(sn_neuro_channel(own, neuro, x + 7 * N, &err), SN_OK);
    double sum = own[v];
    assert_int_equal(sn_neuro_channel(own, neuro, x + 15 * N, &err), SN_OK);
    assert_true(fabs(summary[7 * 14 + v] - 0.5 * (sum + own[v])) < 1e-12);
    assert_true(isnan(summary[8 * 14 + v]));
  }
  char name[SN_NEURO_NAME];
  sn_neuro_summary_name(name, 7 * 14 + 2);
  assert_string_equal(name, "middle_back_alpha_log_power");
  sn_neuro_summary_name(name, 9 * 14 + 35 * 5 + 4);
  assert_string_equal(name, "middle_back_right_back_gamma");
  sn_neuro_summary_name(name, 9 * 14 + 8 * 5);
  assert_string_equal(name, "middle_front_right_front_delta");
  sn_neuro_channel_name(name, 10);
  assert_string_equal(name, "modulation");
  sn_neuro_destroy(neuro);
  free(x), free(values), free(means);
}

static void test_errors(void **state) {
  (void)state;
  sn_neuro *neuro = NULL;
  sn_error err;
  static const sn_neuro_options BAD[] = {{.rate_hz = 0, .n_samples = 100},
                                         {.rate_hz = NAN, .n_samples = 100},
                                         {.rate_hz = 100, .n_samples = 31},
                                         {.rate_hz = 100, .n_samples = -1}};
  for (int i = 0; i < 4; i++) assert_int_equal(sn_neuro_create(&BAD[i], &neuro, &err), SN_E_ARGUMENT);
  double *x = eeg_wave(2, 300, 100, 0), values[33];
  for (int c = 0; c < 2; c++) {
    sn_neuro_options o = {.rate_hz = 100, .n_samples = 300, .coherence = c == 1};
    for (fault_begin(); fault_next();) {
      sn_status status = sn_neuro_create(&o, &neuro, &err);
      if (status == SN_OK) status = sn_neuro_window(values, neuro, x, 2, NULL, &err);
      fault_check(status);
      sn_neuro_destroy(neuro);
    }
  }
  free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_golden),  cmocka_unit_test(test_algebra), cmocka_unit_test(test_modulation_tells),
      cmocka_unit_test(test_missing), cmocka_unit_test(test_regions), cmocka_unit_test(test_many_channels),
      cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
