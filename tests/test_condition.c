/* needs: full */
/* Conditioning: a window equals its whole segment; gaps, flat, short and missing input; normalisation. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "modalities/signal/condition.h"
#include "modalities/signal/fir.h"
#include "modalities/signal/iir.h"
#include "tests/memory_recording.h"

static double *noise(int64_t n, uint64_t id) {
  double *x = malloc((size_t)(n > 0 ? n : 1) * sizeof *x), walk = 5.0;
  sn_random random = sn_random_at(7, SN_PURPOSE_TEST, 0, id);
  for (int64_t i = 0; i < n; i++) {
    walk += 0.02 * sn_random_normal(&random);
    x[i] = walk + 0.3 * sn_random_normal(&random) + sin(0.07 * (double)i);
  }
  return x;
}

static memory_recording *one_channel(double *x, int64_t n, int64_t rate) {
  memory_recording *m = malloc(sizeof *m);
  memory_init(m, rate, 1);
  memory_channel(m, "II", SN_SENSOR_ECG, "mV", 1);
  memory_segment(m, 0, n, &x);
  return m;
}

static sn_condition_options band(double low, double high, int64_t rate) {
  sn_condition_options o = sn_condition_defaults();
  o.filter_low_hz = low, o.filter_high_hz = high, o.rate_num = rate, o.rate_den = 1;
  return o;
}

static sn_conditioner *make(const sn_condition_options *o) {
  sn_conditioner *c = NULL;
  sn_error err;
  assert_int_equal(sn_conditioner_create(o, &c, &err), SN_OK);
  return c;
}

static double largest(const double *x, int64_t n) {
  double most = 0;
  for (int64_t i = 0; i < n; i++) most = fmax(most, fabs(x[i]));
  return most;
}

/* Every window of the segment against the whole conditioned by the bare filter and resampler. */
static void check_windows(const sn_condition_options *o, const double *whole, int64_t n_whole, memory_recording *m,
                          double tolerance) {
  sn_error err;
  sn_conditioner *c = make(o);
  sn_channel_plan plan;
  assert_int_equal(sn_conditioner_plan(c, &m->recording, 0, &plan, &err), SN_OK);
  int64_t n = plan.window_samples, k = 0;
  double *values = malloc((size_t)n * sizeof *values), scale = largest(whole, n_whole);
  uint8_t *valid = malloc((size_t)n);
  assert_true(n_whole >= n);
  for (int64_t step = (n_whole - n) / 7 + 1;; k += step) {
    if (k > n_whole - n) k = n_whole - n;
    sn_window_info info;
    assert_int_equal(
        sn_conditioner_window(c, &m->recording, 0, 0, (double)k / plan.rate_hz, NULL, values, valid, &info, &err),
        SN_OK);
    assert_int_equal(info.n_valid, n);
    for (int64_t i = 0; i < n; i++)
      if (!(fabs(values[i] - whole[k + i]) <= tolerance * scale))
        fail_msg("window at %lld, sample %lld: %.17g, whole %.17g", (long long)k, (long long)i, values[i],
                 whole[k + i]);
    if (k == n_whole - n) break;
  }
  assert_int_equal(sn_conditioner_window(c, &m->recording, 0, 0, (double)(n_whole - n + 1) / plan.rate_hz, NULL, values,
                                         valid, NULL, &err),
                   SN_E_ARGUMENT);
  assert_int_equal(sn_conditioner_window(c, &m->recording, 0, 0, -0.1, NULL, values, valid, NULL, &err), SN_E_ARGUMENT);
  free(values), free(valid);
  sn_conditioner_destroy(c);
}

static double *whole_fir(const sn_condition_options *o, const double *x, int64_t n, int64_t rate, int64_t *n_out) {
  sn_error err;
  sn_fir *fir = NULL;
  sn_resampler *r = NULL;
  sn_ratio ratio;
  sn_fir_spec spec = {(double)rate, o->filter_low_hz, o->filter_high_hz, o->notch_hz};
  assert_int_equal(sn_resample_ratio(&ratio, rate, 1, o->rate_num > 0 ? o->rate_num : rate, 1, 0, &err), SN_OK);
  *n_out = sn_resampled_length(ratio, n);
  double *filtered = malloc((size_t)n * sizeof *filtered), *y = malloc((size_t)*n_out * sizeof *y);
  memcpy(filtered, x, (size_t)n * sizeof *x);
  if (o->filter_low_hz > 0 || o->filter_high_hz > 0 || o->notch_hz > 0) {
    assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
    assert_int_equal(sn_fir_apply(fir, x, n, 0, n, filtered, &err), SN_OK);
  }
  assert_int_equal(sn_resampler_create(ratio, &r, &err), SN_OK);
  assert_int_equal(sn_resampler_apply(r, filtered, 0, n, 0, *n_out, y, &err), SN_OK);
  free(filtered);
  sn_fir_destroy(fir);
  sn_resampler_destroy(r);
  return y;
}

static void test_window_equals_segment(void **state) {
  (void)state;
  const struct { double low, high, notch; int64_t native, rate, n; double window; } cases[] = {
      {0.5, 40, 0, 300, 100, 9000, 10}, {0.5, 40, 0, 360, 100, 20000, 10}, {0.5, 40, 50, 500, 100, 15000, 2},
      {0, 0, 0, 300, 100, 3100, 10},    {1, 30, 0, 250, 0, 2600, 10},      {0.5, 40, 0, 257, 100, 6000, 5},
      {0.5, 40, 0, 100, 360, 1200, 10}, {0.5, 40, 0, 300, 100, 3000, 10}, /* the whole segment is one window */
      {0.05, 40, 0, 300, 100, 4000, 3} /* a filter longer than the segment */};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    sn_condition_options o = band(cases[i].low, cases[i].high, cases[i].rate);
    o.notch_hz = cases[i].notch, o.window_s = cases[i].window;
    double *x = noise(cases[i].n, i);
    memory_recording *m = one_channel(x, cases[i].n, cases[i].native);
    int64_t n = 0;
    double *whole = whole_fir(&o, x, cases[i].n, cases[i].native, &n);
    check_windows(&o, whole, n, m, 1e-10);
    free(x), free(m), free(whole);
  }
}

static void test_window_equals_segment_options(void **state) {
  (void)state;
  enum { N = 40000 };
  sn_error err;
  sn_condition_options o = band(0.5, 40, 0);
  o.filter = SN_FILTER_BUTTERWORTH;
  double *x = noise(N, 1), *y = malloc(N * sizeof *y);
  memory_recording *m = one_channel(x, N, 300);
  sn_iir iir;
  assert_int_equal(sn_iir_butterworth(&iir, 4, 300, 0.5, 40, &err), SN_OK);
  assert_int_equal(sn_iir_apply(&iir, x, N, -1, y, &err), SN_OK);
  check_windows(&o, y, N, m, 1e-7);
  o = band(0, 0, 100);
  o.resample = SN_RESAMPLE_FFT;
  assert_int_equal(sn_resample_fft((sn_ratio){1, 3}, x, N, y, &err), SN_OK);
  check_windows(&o, y, (N + 2) / 3, m, 1e-10);
  free(x), free(y), free(m);
}

/* Only the window and the support are read. */
static void test_reads_no_more_than_needed(void **state) {
  (void)state;
  enum { N = 1000000 };
  sn_error err;
  sn_condition_options o = band(0.5, 40, 100);
  sn_conditioner *c = make(&o);
  double *x = noise(N, 2), values[1000];
  uint8_t valid[1000];
  memory_recording *m = one_channel(x, N, 300);
  assert_int_equal(sn_conditioner_window(c, &m->recording, 0, 0, 1500, NULL, values, valid, NULL, &err), SN_OK);
  assert_true(m->n_read < 3000 + 2 * (990 + 30 + 60) + 10);
  free(x), free(m);
  sn_conditioner_destroy(c);
}

/* A long gap splits the segment: each side is conditioned as if it stood alone, on the one grid. */
static void test_long_gap_splits(void **state) {
  (void)state;
  enum { N = 9000, GAP = 3600, AFTER = 3660, OUT = 3000 }; /* just one patch of 60 samples; multiples of 3 */
  sn_error err;
  sn_condition_options o = band(0.5, 40, 100);
  double *x = noise(N, 3);
  int64_t n_left = 0, n_right = 0;
  double *left = whole_fir(&o, x, GAP, 300, &n_left), *right = whole_fir(&o, x + AFTER, N - AFTER, 300, &n_right);
  for (int64_t i = GAP; i < AFTER; i++) x[i] = NAN;
  memory_recording *m = one_channel(x, N, 300);
  sn_conditioner *c = make(&o);
  double *values = malloc(OUT * sizeof *values);
  uint8_t *valid = malloc(OUT);
  for (int part = 0; part < 3; part++) { /* whole, and windows that see the gap only in their support */
    int64_t first = part == 0 ? 0 : part == 1 ? 190 : AFTER / 3 + 1, count = part == 0 ? OUT : 1000;
    assert_int_equal(sn_conditioner_range(c, &m->recording, 0, 0, first, count, values, valid, &err), SN_OK);
    for (int64_t i = 0; i < count; i++) {
      int64_t k = first + i;
      if (k < GAP / 3) {
        assert_true(valid[i] && fabs(values[i] - left[k]) < 1e-10);
      } else if (k >= AFTER / 3 + 1) {
        assert_true(valid[i] && fabs(values[i] - right[k - AFTER / 3]) < 1e-10);
      } else {
        assert_true(values[i] == 0.0 || valid[i]);
        assert_true(!valid[i] || k == AFTER / 3);
      }
    }
  }
  free(x), free(m), free(values), free(valid), free(left), free(right);
  sn_conditioner_destroy(c);
}

/* A short gap is bridged by a straight line for the filter, and stays invalid. */
static void test_short_gap_is_bridged(void **state) {
  (void)state;
  enum { N = 6000, GAP = 2000, LENGTH = 59 };
  sn_error err;
  sn_condition_options o = band(0.5, 40, 100);
  double *x = noise(N, 4), *line = malloc(N * sizeof *line);
  for (int64_t i = 0; i < N; i++) line[i] = x[i];
  for (int i = 0; i < LENGTH; i++)
    line[GAP + i] = x[GAP - 1] + (x[GAP + LENGTH] - x[GAP - 1]) * (i + 1) / (double)(LENGTH + 1);
  int64_t n = 0;
  double *whole = whole_fir(&o, line, N, 300, &n), values[1000];
  uint8_t valid[1000];
  for (int i = 0; i < LENGTH; i++) x[GAP + i] = NAN;
  memory_recording *m = one_channel(x, N, 300);
  sn_conditioner *c = make(&o);
  assert_int_equal(sn_conditioner_range(c, &m->recording, 0, 0, 200, 1000, values, valid, &err), SN_OK);
  int64_t invalid = 0;
  for (int i = 0; i < 1000; i++) {
    invalid += !valid[i];
    /* Output k looks at native 3k-1..3k+1. */
    bool touched = 3 * (200 + i) + 1 >= GAP && 3 * (200 + i) - 1 < GAP + LENGTH;
    assert_int_equal(valid[i], !touched);
    if (valid[i]) assert_true(fabs(values[i] - whole[200 + i]) < 1e-10);
    else assert_true(values[i] == 0.0);
  }
  assert_true(invalid >= 19 && invalid <= 21);
  free(x), free(line), free(whole), free(m);
  sn_conditioner_destroy(c);
}

/* Whatever the gaps, a window equals the same part of the whole segment. */
static void test_random_gaps(void **state) {
  (void)state;
  enum { N = 12000, OUT = 4000 };
  sn_error err;
  for (int filter = 0; filter < 2; filter++) {
    sn_condition_options o = band(1, 40, 100);
    o.filter = filter == 0 ? SN_FILTER_FIR : SN_FILTER_BUTTERWORTH;
    sn_conditioner *c = make(&o);
    double *whole = malloc(OUT * sizeof *whole), values[1000];
    uint8_t *whole_valid = malloc(OUT), valid[1000];
    for (uint64_t round = 0; round < 12; round++) {
      double *x = noise(N, 100 + round);
      sn_random random = sn_random_at(3, SN_PURPOSE_TEST, 0, round);
      for (int g = 0; g < 8; g++) {
        int64_t first = (int64_t)sn_random_below(&random, N), length = 1 + (int64_t)sn_random_below(&random, 150);
        for (int64_t i = first; i < first + length && i < N; i++) x[i] = NAN;
      }
      if (round % 3 == 0) x[0] = x[1] = x[N - 1] = NAN;
      memory_recording *m = one_channel(x, N, 300);
      assert_int_equal(sn_conditioner_range(c, &m->recording, 0, 0, 0, OUT, whole, whole_valid, &err), SN_OK);
      for (int64_t first = 0; first <= OUT - 1000; first += 151) {
        assert_int_equal(sn_conditioner_range(c, &m->recording, 0, 0, first, 1000, values, valid, &err), SN_OK);
        for (int64_t i = 0; i < 1000; i++) {
          assert_int_equal(valid[i], whole_valid[first + i]);
          if (!(fabs(values[i] - whole[first + i]) <= 1e-7))
            fail_msg("filter %d, round %d, window %lld, sample %lld: %g and %g", filter, (int)round, (long long)first,
                     (long long)i, values[i], whole[first + i]);
        }
      }
      free(x), free(m);
    }
    free(whole), free(whole_valid);
    sn_conditioner_destroy(c);
  }
}

static sn_window_info normalized(const sn_condition_options *o, double *x, const uint8_t *valid, int64_t n,
                                 const sn_channel_stats *stats, sn_status wanted) {
  sn_error err;
  sn_window_info info = {0};
  sn_conditioner *c = make(o);
  assert_int_equal(sn_conditioner_normalize(c, "mV", stats, x, valid, n, &info, &err), wanted);
  sn_conditioner_destroy(c);
  return info;
}

static void test_normalize(void **state) {
  (void)state;
  const uint8_t all[8] = {1, 1, 1, 1, 1, 1, 1, 1}, seven[8] = {1, 1, 1, 1, 0, 1, 1, 1}, none[8] = {0};
  sn_condition_options o = sn_condition_defaults();
  o.normalize = SN_NORMALIZE_ZSCORE_WINDOW;
  double flat[4] = {5, 5, 5, 5};
  sn_window_info info = normalized(&o, flat, all, 4, NULL, SN_OK);
  assert_true(info.flat);
  for (int i = 0; i < 4; i++) assert_true(flat[i] == 0.0);
  double x[8] = {1, 2, 3, 4, 0, 6, 7, 8}; /* the fifth is missing: 7 points are used */
  info = normalized(&o, x, seven, 8, NULL, SN_OK);
  double mean = 31.0 / 7, std = sqrt((1 + 4 + 9 + 16 + 36 + 49 + 64) / 7.0 - mean * mean);
  assert_int_equal(info.n_valid, 7);
  assert_true(fabs(info.mean - mean) < 1e-12 && fabs(x[0] - (1 - mean) / std) < 1e-12 && x[4] == 0.0 && !info.flat);
  double y[8] = {0};
  info = normalized(&o, y, none, 8, NULL, SN_OK);
  assert_true(info.n_valid == 0 && isnan(info.mean) && y[0] == 0.0);

  o.normalize = SN_NORMALIZE_ROBUST;
  double r[8] = {1, 2, 3, 4, 5, 6, 7, 100}; /* median 4.5, quartiles 2.75 and 6.25 */
  normalized(&o, r, all, 8, NULL, SN_OK);
  assert_true(fabs(r[7] - 95.5 / 3.5) < 1e-12 && fabs(r[0] + 1.0) < 1e-12);
  o.normalize = SN_NORMALIZE_Q95;
  double q[8] = {-1, 2, -3, 4, -5, 6, -7, 8}; /* quantile .95 of 1..8: 7.65 */
  normalized(&o, q, all, 8, NULL, SN_OK);
  assert_true(fabs(q[7] - 8 / 7.65) < 1e-12 && fabs(q[0] + 1 / 7.65) < 1e-12);
  o.normalize = SN_NORMALIZE_ZSCORE_RECORD;
  double z[2] = {1, 3};
  normalized(&o, z, all, 2, NULL, SN_E_ARGUMENT);
  normalized(&o, z, all, 2, &(sn_channel_stats){.n = 9, .mean = -1, .std = 2}, SN_OK);
  assert_true(z[0] == 1.0 && z[1] == 2.0);
  o.normalize = SN_NORMALIZE_GLOBAL, o.global_mean = 1, o.global_std = 4, o.clip = 1.5;
  double g[3] = {9, 5, -99};
  info = normalized(&o, g, all, 3, NULL, SN_OK);
  assert_true(g[0] == 1.5 && g[1] == 1.0 && g[2] == -1.5 && info.n_clipped == 2);
  o.normalize = SN_NORMALIZE_DIV100UV, o.clip = 0;
  double d[2] = {0.05, -1};
  normalized(&o, d, all, 2, NULL, SN_OK);
  assert_true(fabs(d[0] - 0.5) < 1e-15 && fabs(d[1] + 10) < 1e-14);
  sn_normalize mode;
  assert_true(sn_normalize_from_name("robust", &mode) && mode == SN_NORMALIZE_ROBUST);
  assert_false(sn_normalize_from_name("rubost", &mode));
}

static void test_rejects_and_warns(void **state) {
  (void)state;
  enum { N = 3000 };
  sn_error err;
  sn_condition_options o = band(0, 0, 0);
  o.normalize = SN_NORMALIZE_ZSCORE_WINDOW;
  sn_conditioner *c = make(&o);
  double *x = noise(N, 5), *values = malloc(N * sizeof *values);
  uint8_t *valid = malloc(N);
  sn_window_info info;
  for (int64_t i = 0; i < N / 2; i++) x[i] = NAN;
  memory_recording *m = one_channel(x, N, 300);
  assert_int_equal(sn_conditioner_window(c, &m->recording, 0, 0, 0, NULL, values, valid, &info, &err),
                   SN_OK); /* just half */
  x[N / 2] = NAN;
  assert_int_equal(sn_conditioner_window(c, &m->recording, 0, 0, 0, NULL, values, valid, &info, &err), SN_END);
  assert_int_equal(info.n_valid, N / 2 - 1);
  assert_non_null(strstr(err.message, "min_valid"));
  for (int64_t i = 0; i < N; i++) x[i] = NAN;
  assert_int_equal(sn_conditioner_window(c, &m->recording, 0, 0, 0, NULL, values, valid, &info, &err), SN_END);
  sn_conditioner_destroy(c);

  o = band(0.5, 40, 100);
  c = make(&o);
  sn_channel_plan plan;
  assert_int_equal(sn_conditioner_plan(c, &m->recording, 0, &plan, &err), SN_OK);
  assert_int_equal(plan.filter_length, 1981);
  assert_true(plan.short_for_filter); /* 3000 < 3 x 1981 */
  assert_int_equal(sn_conditioner_plan_rate(c, 300, 1, 3 * 1981, &plan, &err), SN_OK);
  assert_false(plan.short_for_filter);
  assert_int_equal(sn_conditioner_plan_rate(c, 60, 1, 100, &plan, &err), SN_E_ARGUMENT); /* 40 Hz at 60 Hz */
  sn_conditioner_destroy(c);
  o.filter_high_hz = 60; /* above half the target rate */
  assert_int_equal(sn_conditioner_create(&o, &c, &err), SN_E_ARGUMENT);
  free(x), free(values), free(valid), free(m);
}

static void test_record_stats(void **state) {
  (void)state;
  enum { N = 100000 };
  sn_error err;
  sn_condition_options o = band(0.5, 40, 100);
  sn_conditioner *c = make(&o);
  double *x = noise(N, 6);
  x[5000] = NAN;
  memory_recording *m = malloc(sizeof *m);
  memory_init(m, 300, 1);
  memory_channel(m, "II", SN_SENSOR_ECG, "mV", 1);
  double *second = x + 60000;
  memory_segment(m, 0, 60000, &x);
  memory_segment(m, 300, N - 60000, &second);
  sn_channel_stats stats;
  assert_int_equal(sn_conditioner_stats(c, &m->recording, 0, &stats, &err), SN_OK);
  long double sum = 0, squares = 0;
  int64_t n = 0;
  for (int64_t s = 0; s < 2; s++) {
    int64_t count = 0;
    assert_int_equal(sn_conditioner_samples(c, &m->recording, 0, s, &count, &err), SN_OK);
    double *values = malloc((size_t)count * sizeof *values);
    uint8_t *valid = malloc((size_t)count);
    assert_int_equal(sn_conditioner_range(c, &m->recording, 0, s, 0, count, values, valid, &err), SN_OK);
    for (int64_t i = 0; i < count; i++)
      if (valid[i]) sum += values[i], squares += (long double)values[i] * values[i], n++;
    free(values), free(valid);
  }
  double mean = (double)(sum / n), std = sqrt((double)(squares / n) - mean * mean);
  assert_int_equal(stats.n, n);
  assert_true(stats.missing >= 1 && stats.missing <= 2);
  assert_true(fabs(stats.mean - mean) < 1e-12 && fabs(stats.std - std) < 1e-12);
  free(x), free(m);
  sn_conditioner_destroy(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_window_equals_segment), cmocka_unit_test(test_window_equals_segment_options),
      cmocka_unit_test(test_reads_no_more_than_needed), cmocka_unit_test(test_long_gap_splits),
      cmocka_unit_test(test_short_gap_is_bridged), cmocka_unit_test(test_random_gaps), cmocka_unit_test(test_normalize),
      cmocka_unit_test(test_rejects_and_warns), cmocka_unit_test(test_record_stats)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
