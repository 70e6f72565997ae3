/* needs: full */
/* FIR, Butterworth and resampling against scipy, and the properties that the definitions give. */
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "modalities/signal/event.h"
#include "modalities/signal/fir.h"
#include "modalities/signal/iir.h"
#include "modalities/signal/resample.h"
#include "tests/golden/signal_golden.h"

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* The signal of make_signal.py. */
static double *wave(int64_t n) {
  double *x = malloc((size_t)n * sizeof *x);
  uint64_t state = 12345;
  for (int64_t i = 0; i < n; i++) {
    state = (state * 1103515245u + 12345u) % 2147483648u;
    x[i] = (double)state / 2147483648.0 - 0.5 + 3.0 + (double)((i * 7) % 100) / 50.0;
  }
  return x;
}

static void assert_near(double value, double wanted, double tolerance, const char *what, int64_t i) {
  if (fabs(value - wanted) <= tolerance && isfinite(value)) return;
  fail_msg("%s [%lld]: %.17g, wanted %.17g", what, (long long)i, value, wanted);
}

static void test_fir_against_scipy(void **state) {
  (void)state;
  for (int c = 0; c < COUNT(FIR_GOLDEN); c++) {
    const fir_golden *g = &FIR_GOLDEN[c];
    sn_error err;
    sn_fir *fir = NULL;
    sn_fir_spec spec = {g->rate, g->low, g->high, g->notch};
    assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
    assert_int_equal(sn_fir_length(fir), g->length);
    for (int i = 0; i * g->tap_step < g->length; i++)
      assert_near(sn_fir_taps(fir)[i * g->tap_step], g->taps[i], 1e-14, "tap", i);
    double *x = wave(g->n), *y = malloc((size_t)g->n * sizeof *y), *direct = malloc((size_t)g->n * sizeof *y);
    assert_int_equal(sn_fir_apply(fir, x, g->n, 0, g->n, y, &err), SN_OK);
    assert_int_equal(sn_fir_apply_direct(fir, x, g->n, 0, g->n, direct, &err), SN_OK);
    for (int i = 0; i * g->step < g->n; i++) assert_near(y[i * g->step], g->y[i], 5e-12, "filtered", i);
    for (int i = 0; i < g->n; i++) assert_near(y[i], direct[i], 5e-12, "fft against direct", i);
    free(x), free(y), free(direct);
    sn_fir_destroy(fir);
  }
}

/* Magnitude of the kernel's response at f. */
static double response(const sn_fir *fir, double rate, double f) {
  double complex sum = 0;
  for (int64_t k = 0; k < sn_fir_length(fir); k++)
    sum += sn_fir_taps(fir)[k] * cexp(-2.0 * I * 3.14159265358979323846 * f / rate * (double)k);
  return cabs(sum);
}

static void test_fir_response(void **state) {
  (void)state;
  sn_error err;
  sn_fir *fir = NULL;
  sn_fir_spec spec = {.rate_hz = 300, .low_hz = 8, .high_hz = 40};
  assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
  /* -6 dB in the middle of each transition: l_t = 2 (7 Hz), h_t = 10 (45 Hz). Not at the pass edges. */
  assert_near(response(fir, 300, 7), 0.5, 2e-3, "lower edge", 0);
  assert_near(response(fir, 300, 45), 0.5, 2e-3, "upper edge", 0);
  assert_true(response(fir, 300, 8) > 0.98 && response(fir, 300, 40) > 0.98);
  assert_near(response(fir, 300, 20), 1.0, 3e-3, "pass band", 0);
  assert_true(response(fir, 300, 0) < 1e-12); /* two unit gains at DC */
  sn_fir_destroy(fir);
  spec = (sn_fir_spec){.rate_hz = 300, .high_hz = 40};
  assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
  assert_near(response(fir, 300, 0), 1.0, 1e-13, "DC", 0);
  sn_fir_destroy(fir);
  spec = (sn_fir_spec){.rate_hz = 300, .notch_hz = 50};
  assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
  assert_true(response(fir, 300, 50) < 0.01 && response(fir, 300, 48) > 0.98 && response(fir, 300, 52) > 0.98);
  sn_fir_destroy(fir);
}

static void test_fir_padding(void **state) {
  (void)state;
  double x[4] = {1, 2, 4, 8}, e[14];
  /* odd reflection for three samples on either side, zeros beyond */
  const double wanted[14] = {0, 0, -6, -2, 0, 1, 2, 4, 8, 12, 14, 15, 0, 0};
  sn_extend_odd(x, 4, -5, 14, e);
  for (int i = 0; i < 14; i++) assert_near(e[i], wanted[i], 0, "extended", i);
  /* A straight line goes through a low-pass unchanged up to its ends, as far as the reflection reaches. */
  sn_error err;
  sn_fir *fir = NULL;
  sn_fir_spec spec = {.rate_hz = 100, .high_hz = 20};
  double line[300], y[300];
  for (int i = 0; i < 300; i++) line[i] = 0.1 * i - 7;
  assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
  assert_int_equal(sn_fir_apply(fir, line, 300, 0, 300, y, &err), SN_OK);
  for (int i = 0; i < 300; i++) assert_near(y[i], line[i], 1e-11, "line", i);
  sn_fir_destroy(fir);
}

/* Any part of the output is the part of the whole, and long signals go through blocks. */
static void test_fir_parts(void **state) {
  (void)state;
  enum { N = 70001 };
  sn_error err;
  sn_fir *fir = NULL;
  sn_fir_spec spec = {.rate_hz = 300, .low_hz = 0.5, .high_hz = 40};
  double *x = wave(N), *y = malloc(N * sizeof *y), *part = malloc(N * sizeof *y), *direct = malloc(N * sizeof *y);
  assert_int_equal(sn_fir_create(&spec, &fir, &err), SN_OK);
  assert_int_equal(sn_fir_apply(fir, x, N, 0, N, y, &err), SN_OK);
  const int64_t ranges[][2] = {{0, 1}, {0, 3000}, {40000, 2999}, {N - 1, 1}, {N - 3000, 3000}, {31000, 5}};
  for (int r = 0; r < COUNT(ranges); r++) {
    assert_int_equal(sn_fir_apply(fir, x, N, ranges[r][0], ranges[r][1], part, &err), SN_OK);
    assert_int_equal(sn_fir_apply_direct(fir, x, N, ranges[r][0], ranges[r][1], direct, &err), SN_OK);
    for (int64_t i = 0; i < ranges[r][1]; i++) {
      assert_near(part[i], y[ranges[r][0] + i], 1e-11, "part", i);
      assert_near(part[i], direct[i], 5e-12, "part, direct", i);
    }
  }
  assert_int_equal(sn_fir_apply(fir, x, N, N - 1, 2, part, &err), SN_E_ARGUMENT);
  free(x), free(y), free(part), free(direct);
  sn_fir_destroy(fir);
}

static void test_fir_refuses(void **state) {
  (void)state;
  sn_error err;
  sn_fir *fir = NULL;
  const sn_fir_spec bad[] = {{300, 0, 0, 0},    {0, 1, 10, 0},   {NAN, 1, 10, 0},  {300, 40, 30, 0}, {300, 1, 150, 0},
                             {300, -1, 30, 0},  {300, 0, 0, 149.9}, {300, NAN, 3, 0}, {300, 1e-7, 0, 0}};
  for (int i = 0; i < COUNT(bad); i++) {
    assert_int_equal(sn_fir_create(&bad[i], &fir, &err), SN_E_ARGUMENT);
    assert_null(fir);
    assert_true(strlen(err.message) > 10);
  }
  double taps[4] = {1, 1, 1, 1};
  assert_int_equal(sn_fir_create_taps(taps, 4, &fir, &err), SN_E_ARGUMENT);
}

static void test_iir_against_scipy(void **state) {
  (void)state;
  for (int c = 0; c < COUNT(IIR_GOLDEN); c++) {
    const iir_golden *g = &IIR_GOLDEN[c];
    sn_error err;
    sn_iir iir;
    assert_int_equal(sn_iir_butterworth(&iir, g->order, g->rate, g->low, g->high, &err), SN_OK);
    double *x = wave(g->n);
    assert_int_equal(sn_iir_apply(&iir, x, g->n, g->pad, x, &err), SN_OK);
    for (int i = 0; i * g->step < g->n; i++) assert_near(x[i * g->step], g->y[i], 1e-8, "butterworth", i);
    free(x);
  }
  sn_iir iir;
  assert_int_equal(sn_iir_butterworth(&iir, 4, 100, 60, 0, NULL), SN_E_ARGUMENT);
  assert_int_equal(sn_iir_butterworth(&iir, 9, 100, 0, 20, NULL), SN_E_ARGUMENT);
  assert_int_equal(sn_iir_butterworth(&iir, 4, 100, 1e-9, 0, NULL), SN_E_ARGUMENT);
}

static void test_resample_against_scipy(void **state) {
  (void)state;
  sn_error err;
  for (int c = 0; c < COUNT(POLY_GOLDEN); c++) {
    const resample_golden *g = &POLY_GOLDEN[c];
    sn_ratio ratio = {g->up, g->down};
    sn_resampler *r = NULL;
    assert_int_equal(sn_resampler_create(ratio, &r, &err), SN_OK);
    assert_int_equal(sn_resampled_length(ratio, g->n), g->n_out);
    double *x = wave(g->n), *y = malloc((size_t)g->n_out * sizeof *y), *part = malloc((size_t)g->n_out * sizeof *y);
    assert_int_equal(sn_resampler_apply(r, x, 0, g->n, 0, g->n_out, y, &err), SN_OK);
    for (int i = 0; i * g->step < g->n_out; i++) assert_near(y[i * g->step], g->y[i], 1e-12, "polyphase", i);
    /* A part from only the inputs it says that it needs. */
    int64_t first = g->n_out / 3, count = g->n_out / 4 + 1, lo, hi;
    sn_resampler_needs(r, first, count, &lo, &hi);
    if (lo < 0) lo = 0;
    if (hi > g->n - 1) hi = g->n - 1;
    assert_int_equal(sn_resampler_apply(r, x + lo, lo, hi - lo + 1, first, count, part, &err), SN_OK);
    for (int64_t i = 0; i < count; i++) assert_near(part[i], y[first + i], 1e-13, "part", i);
    free(x), free(y), free(part);
    sn_resampler_destroy(r);
  }
  for (int c = 0; c < COUNT(FFT_GOLDEN); c++) {
    const resample_golden *g = &FFT_GOLDEN[c];
    double *x = wave(g->n), *y = malloc((size_t)g->n_out * sizeof *y);
    assert_int_equal(sn_resample_fft((sn_ratio){g->up, g->down}, x, g->n, y, &err), SN_OK);
    for (int i = 0; i * g->step < g->n_out; i++) assert_near(y[i * g->step], g->y[i], 1e-11, "fft", i);
    free(x), free(y);
  }
}

static void test_resample_ratio(void **state) {
  (void)state;
  sn_error err;
  sn_ratio r;
  assert_int_equal(sn_resample_ratio(&r, 360, 1, 100, 1, 0, &err), SN_OK);
  assert_true(r.up == 5 && r.down == 18);
  assert_int_equal(sn_resample_ratio(&r, 500, 2, 250, 1, 0, &err), SN_OK);
  assert_true(r.up == 1 && r.down == 1);
  assert_int_equal(sn_resample_ratio(&r, 625, 2, 100, 1, 0, &err), SN_OK); /* 312.5 Hz */
  assert_true(r.up == 8 && r.down == 25);
  /* 250.00017 Hz: exact only with parts over 10,000; with a tolerance the nearest smaller ratio. */
  assert_int_equal(sn_resample_ratio(&r, 25000017, 100000, 100, 1, 0, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "10000"));
  assert_int_equal(sn_resample_ratio(&r, 25000017, 100000, 100, 1, 1e-12, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_resample_ratio(&r, 25000017, 100000, 100, 1, 1e-5, &err), SN_OK);
  assert_true(r.up <= 10000 && r.down <= 10000 && fabs((double)r.up / (double)r.down * 250.00017 / 100 - 1) <= 1e-5);
  assert_int_equal(sn_resample_ratio(&r, 0, 1, 100, 1, 0, &err), SN_E_ARGUMENT);
  /* The nearest fraction is the nearest: by trying every denominator. */
  for (int k = 0; k < 20; k++) {
    sn_random random = sn_random_at(1, SN_PURPOSE_TEST, 0, (uint64_t)k);
    int64_t num = 20000 + (int64_t)sn_random_below(&random, 1000000) * 2 + 1;
    double exact = 65536.0 / (double)num, best = 1;
    if (sn_resample_ratio(&r, num, 1, 65536, 1, 0.099, NULL) != SN_OK) continue;
    for (int64_t q = 1; q <= 10000; q++) {
      double p = floor(exact * (double)q + 0.5);
      if (p >= 1 && p <= 10000 && fabs(p / (double)q - exact) < best) best = fabs(p / (double)q - exact);
    }
    if (num > 65536) assert_near(fabs((double)r.up / (double)r.down - exact), best, 1e-15, "nearest ratio", k);
  }
}

static void test_events(void **state) {
  (void)state;
  /* samples 1000 and 1001 at 1000 Hz are both sample 100 at 100 Hz; both are kept */
  assert_int_equal(sn_event_resample(1000, 1000, 1, 100, 1), 100);
  assert_int_equal(sn_event_resample(1001, 1000, 1, 100, 1), 100);
  assert_int_equal(sn_event_resample(1005, 1000, 1, 100, 1), 101); /* half a sample: up */
  assert_int_equal(sn_event_resample(-15, 1000, 1, 100, 1), -1);
  assert_int_equal(sn_event_resample(1000000007, 360, 1, 100, 1), 277777780);
  assert_int_equal(sn_event_index(8.004, 125), 1001);
  double t = -1;
  assert_true(sn_event_crop(8, 5, 10, &t));
  assert_near(t, 3, 0, "event in the crop", 0);
  assert_true(sn_event_crop(5, 5, 10, &t) && t == 0);
  assert_false(sn_event_crop(15, 5, 10, &t));
  assert_false(sn_event_crop(4.999, 5, 10, &t));
  assert_false(sn_event_crop(NAN, 5, 10, &t));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_fir_against_scipy),
                                     cmocka_unit_test(test_fir_response),
                                     cmocka_unit_test(test_fir_padding),
                                     cmocka_unit_test(test_fir_parts),
                                     cmocka_unit_test(test_fir_refuses),
                                     cmocka_unit_test(test_iir_against_scipy),
                                     cmocka_unit_test(test_resample_against_scipy),
                                     cmocka_unit_test(test_resample_ratio),
                                     cmocka_unit_test(test_events)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
