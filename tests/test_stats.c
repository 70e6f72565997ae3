/* Signal statistics: compensated sums, missing samples, quantiles as numpy has them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/philox.h"
#include "core/stats.h"

static void assert_near(double x, double expected, double tolerance) {
  assert_true(isfinite(x));
  assert_true(fabs(x - expected) <= tolerance);
}

/* Neumaier's own example: a plain sum gives 0, Kahan's gives 0 as well. */
static void test_compensated_sum(void **state) {
  sn_sum s = {0, 0};
  const double x[] = {1.0, 1e100, 1.0, -1e100};
  for (int i = 0; i < 4; i++) sn_sum_add(&s, x[i]);
  assert_true(sn_sum_value(&s) == 2.0);
  sn_sum tenths = {0, 0};
  for (int i = 0; i < 10000000; i++) sn_sum_add(&tenths, 0.1);
  assert_near(sn_sum_value(&tenths), 1e6, 1e-9); /* a plain sum is off by 1.6e-4 */
}

static void test_values(void **state) {
  const double x[] = {3, NAN, -1, 4, NAN, 2};
  sn_stats s = sn_stats_of(x, 6);
  assert_int_equal(s.n, 4);
  assert_int_equal(s.missing, 2);
  assert_true(s.min == -1 && s.max == 4 && s.mean == 2);
  assert_near(s.std, sqrt(3.5), 1e-15);
}

static void test_degenerate(void **state) {
  const double flat[] = {5, 5, 5, 5}, missing[] = {NAN, NAN};
  sn_stats s = sn_stats_of(flat, 4);
  assert_true(s.std == 0.0 && s.mean == 5.0);
  const double tenth[] = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1}; /* flat, but the sum is not exact */
  assert_near(sn_stats_of(tenth, 7).std, 0.0, 1e-17);
  s = sn_stats_of(missing, 2);
  assert_int_equal(s.n, 0);
  assert_int_equal(s.missing, 2);
  assert_true(isnan(s.mean) && isnan(s.std) && isnan(s.min) && isnan(s.max));
  s = sn_stats_of(NULL, 0);
  assert_true(s.n == 0 && isnan(s.mean));
}

/* A small signal on a large offset: E[x^2] - E[x]^2 in double gives 0 or a negative variance. */
static void test_offset(void **state) {
  enum { N = 100001 };
  double *x = malloc(N * sizeof *x);
  for (int i = 0; i < N; i++) x[i] = 1e9 + (i % 2 ? 1e-3 : -1e-3);
  assert_near(sn_stats_of(x, N).std, 1e-3, 1e-7); /* the samples themselves are rounded to 1.2e-7 */
  free(x);
}

static void test_quantile(void **state) {
  const double x[] = {3, 1, NAN, 2, 10}; /* numpy.quantile([3,1,2,10], q) */
  double work[5];
  assert_true(sn_quantile(x, 5, 0.0, work) == 1.0);
  assert_true(sn_quantile(x, 5, 1.0, work) == 10.0);
  assert_true(sn_quantile(x, 5, 0.5, work) == 2.5);
  assert_near(sn_quantile(x, 5, 0.9, work), 7.9, 1e-14);
  assert_near(sn_quantile(x, 5, 0.1, work), 1.3, 1e-15);
  assert_true(isnan(sn_quantile(x + 2, 1, 0.5, work)));
  assert_true(isnan(sn_quantile(x, 5, -0.1, work)));
  assert_true(isnan(sn_quantile(x, 5, NAN, work)));
  assert_true(sn_quantile(x, 1, 0.3, work) == 3.0);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Against a full sort: random, with ties, sorted, reversed, and organ pipes, which defeat a simple quickselect. */
static void test_quantile_against_sort(void **state) {
  enum { N = 501 };
  double x[N], sorted[N], work[N];
  for (uint64_t shape = 0; shape < 60; shape++) {
    sn_random r = sn_random_at(1, SN_PURPOSE_TEST, 0, shape);
    const int64_t n = 1 + (int64_t)sn_random_below(&r, N);
    for (int64_t i = 0; i < n; i++) {
      const double values[] = {sn_random_normal(&r), (double)sn_random_below(&r, 3), (double)i, (double)(n - i),
                               (double)(i < n / 2 ? i : n - i)};
      x[i] = values[shape % 5];
    }
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *x, compare);
    for (int k = 0; k <= 20; k++) {
      const double q = k / 20.0, place = q * (double)(n - 1);
      const int64_t low = (int64_t)floor(place), high = low + 1 < n ? low + 1 : low;
      const double expected = sorted[low] + (sorted[high] - sorted[low]) * (place - (double)low);
      assert_near(sn_quantile(x, n, q, work), expected, 1e-12 * (1 + fabs(expected)));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_compensated_sum), cmocka_unit_test(test_values),   cmocka_unit_test(test_degenerate),
      cmocka_unit_test(test_offset),          cmocka_unit_test(test_quantile), cmocka_unit_test(test_quantile_against_sort),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
