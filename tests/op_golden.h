/* Runs the float64 reference of an op on the series of tests/golden/make_*.py and compares with committed tables.
 * Included by tests of ops with golden values; header only, because each test has its own tables. */
#ifndef SN_TESTS_OP_GOLDEN_H
#define SN_TESTS_OP_GOLDEN_H

#include <math.h>
#include <string.h>

#include "kernels/op.h"

/* series(n, k)[i] = ((37 i + 11 k) mod 101) / 64 - 3/4 */
static inline void op_golden_fill(double *values, int64_t n, int64_t k) {
  for (int64_t i = 0; i < n; i++) values[i] = (double)((37 * i + 11 * k) % 101) / 64.0 - 0.75;
}

/* The largest difference relative to the largest expected value; infinity when something is not finite. */
static inline double op_golden_error(const double *got, const double *expected, int64_t n) {
  double largest = 0, error = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(got[i]) || !isfinite(expected[i])) return INFINITY;
    largest = fmax(largest, fabs(expected[i]));
    error = fmax(error, fabs(got[i] - expected[i]));
  }
  return largest > 0 ? error / largest : INFINITY;
}

#endif
