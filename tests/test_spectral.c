/* needs: full */
/* Log spectra of patches: scipy's values, amplitudes of sinusoids, what is missing, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "alloc_fault.h"
#include "golden/spectral_golden.h"
#include "modalities/signal/spectral.h"

enum { P = 50, MOST = 200 };
static const double RATE = 125;

static void wave(float *x) {
  int64_t lcg = 4711;
  for (int i = 0; i < P; i++) {
    lcg = (lcg * 1103515245 + 12345) % 2147483648ll;
    x[i] = (float)((double)lcg / 2147483648.0 - 0.5 + ((i * 13) % 50) / 25.0);
  }
}

static sn_spectral_options plain(void) {
  return (sn_spectral_options){.patch_size = P, .frame = P, .hop = P, .rate_hz = RATE, .floor = 1e-3, .hann = true};
}

/* Largest difference from the golden values, infinite where one is not finite. */
static double differs(const sn_spectral_options *o, const uint8_t *valid, const double *golden, int64_t n) {
  float x[P], y[MOST];
  uint8_t there[MOST];
  sn_spectral *s;
  sn_error err;
  double worst = 0;
  wave(x);
  if (sn_spectral_create(o, &s, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_spectral_width(s), n);
  assert_int_equal(sn_spectral_patches(s, y, there, x, valid, 1, &err), SN_OK);
  for (int64_t k = 0; k < n; k++) {
    const double d = fabs(y[k] - golden[k]);
    assert_int_equal(there[k], 1);
    if (!(d <= worst)) worst = isfinite(d) ? d : INFINITY;
  }
  sn_spectral_destroy(s);
  return worst;
}

#define COUNT(table) ((int64_t)(sizeof table / sizeof table[0]))

static void test_scipy(void **state) {
  sn_spectral_options hann = plain(), boxcar = plain(), patch = plain(), stft = plain();
  uint8_t holes[P];
  const int gaps[6] = {3, 4, 5, 6, 20, 49};
  memset(holes, 1, P);
  for (int i = 0; i < 6; i++) holes[gaps[i]] = 0;
  boxcar.hann = false;
  boxcar.floor = 0;
  boxcar.low_hz = 5;
  boxcar.high_hz = 40;
  patch.high_hz = 30;
  patch.per_patch = true;
  stft.frame = 21;
  stft.hop = 10;
  stft.floor = 1e-2;
  const double tolerance = 1e-6; /* float32 of values up to 7 */
  assert_true(differs(&hann, NULL, spectral_hann, COUNT(spectral_hann)) <= tolerance);
  assert_true(differs(&boxcar, NULL, spectral_boxcar, COUNT(spectral_boxcar)) <= tolerance);
  assert_true(differs(&hann, holes, spectral_holes, COUNT(spectral_holes)) <= tolerance);
  assert_true(differs(&patch, NULL, spectral_patch, COUNT(spectral_patch)) <= tolerance);
  assert_true(differs(&stft, NULL, spectral_stft, COUNT(spectral_stft)) <= tolerance);
  /* The comparison can fail: another window, another floor. */
  hann.hann = false;
  assert_false(differs(&hann, NULL, spectral_hann, COUNT(spectral_hann)) <= 1e-3);
  hann.hann = true;
  hann.floor = 2e-3;
  assert_false(differs(&hann, NULL, spectral_hann, COUNT(spectral_hann)) <= 1e-4);
}

/* A sinusoid of amplitude 3 on a bin, with an offset: ln 3 there; at half the rate too. */
static void test_amplitudes(void **state) {
  sn_spectral_options o = plain();
  sn_spectral *s;
  float x[P], y[MOST];
  uint8_t there[MOST];
  o.floor = 0;
  assert_int_equal(sn_spectral_create(&o, &s, NULL), SN_OK);
  assert_int_equal(sn_spectral_bins(s), 25);
  assert_int_equal(sn_spectral_frames(s), 1);
  assert_true(sn_spectral_frequency(s, 0) == 2.5 && sn_spectral_frequency(s, 24) == 62.5);
  for (int bin = 3; bin <= 25; bin += 11) {
    for (int i = 0; i < P; i++) x[i] = (float)(7 + 3 * cos(2 * 3.14159265358979323846 * bin * i / P));
    assert_int_equal(sn_spectral_patches(s, y, there, x, NULL, 1, NULL), SN_OK);
    const double measured = exp(y[bin - 1]);
    if (!(fabs(measured - 3) <= 1e-5)) fail_msg("bin %d: amplitude %g", bin, measured);
  }
  sn_spectral_destroy(s);
}

/* Fewer than half measured: nothing; a patch without any variation is nothing when normalised, and ln(floor) otherwise. */
static void test_missing_and_flat(void **state) {
  sn_spectral_options o = plain();
  sn_spectral *s;
  float x[2 * P], y[MOST];
  uint8_t valid[2 * P], there[MOST];
  wave(x);
  wave(x + P);
  memset(valid, 1, sizeof valid);
  memset(valid, 0, P / 2 + 1);
  assert_int_equal(sn_spectral_create(&o, &s, NULL), SN_OK);
  assert_int_equal(sn_spectral_patches(s, y, there, x, valid, 2, NULL), SN_OK);
  for (int k = 0; k < 25; k++) assert_true(!there[k] && y[k] == 0 && there[25 + k]);
  valid[0] = 1; /* exactly half */
  assert_int_equal(sn_spectral_patches(s, y, there, x, valid, 1, NULL), SN_OK);
  assert_true(there[0]);
  for (int i = 0; i < P; i++) x[i] = 4;
  assert_int_equal(sn_spectral_patches(s, y, there, x, NULL, 1, NULL), SN_OK);
  assert_true(there[0] && fabs(y[0] - log(1e-3)) < 1e-5);
  sn_spectral_destroy(s);
  o.per_patch = true;
  assert_int_equal(sn_spectral_create(&o, &s, NULL), SN_OK);
  assert_int_equal(sn_spectral_patches(s, y, there, x, NULL, 1, NULL), SN_OK);
  for (int k = 0; k < 25; k++) assert_true(!there[k] && y[k] == 0);
  sn_spectral_destroy(s);
  o.per_patch = false;
  o.floor = 0;
  assert_int_equal(sn_spectral_create(&o, &s, NULL), SN_OK);
  assert_int_equal(sn_spectral_patches(s, y, there, x, NULL, 1, NULL), SN_OK);
  assert_true(!there[0]); /* the logarithm of nothing */
  sn_spectral_destroy(s);
}

static void test_refusals(void **state) {
  sn_spectral *s;
  sn_error err;
  sn_spectral_options o = plain();
  o.frame = P + 1;
  assert_int_equal(sn_spectral_create(&o, &s, &err), SN_E_ARGUMENT);
  o = plain();
  o.frame = 1;
  assert_int_equal(sn_spectral_create(&o, &s, &err), SN_E_ARGUMENT);
  o = plain();
  o.hop = 0;
  assert_int_equal(sn_spectral_create(&o, &s, &err), SN_E_ARGUMENT);
  o = plain();
  o.low_hz = 3;
  o.high_hz = 4; /* between two bins */
  assert_int_equal(sn_spectral_create(&o, &s, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "no frequency"));
  o = plain();
  o.rate_hz = NAN;
  assert_int_equal(sn_spectral_create(&o, &s, &err), SN_E_ARGUMENT);
  sn_spectral_destroy(NULL);
}

static void test_memory(void **state) {
  const sn_spectral_options o = plain();
  float x[P], y[MOST];
  uint8_t there[MOST];
  sn_error err;
  wave(x);
  for (fault_begin(); fault_next();) {
    sn_spectral *s = NULL;
    sn_status status = sn_spectral_create(&o, &s, &err);
    if (status == SN_OK) status = sn_spectral_patches(s, y, there, x, NULL, 1, &err);
    fault_check(status);
    sn_spectral_destroy(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_scipy), cmocka_unit_test(test_amplitudes),
                                     cmocka_unit_test(test_missing_and_flat), cmocka_unit_test(test_refusals),
                                     cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
