/* What the tests of attention, rope and head_norm share: the inputs of tests/golden/make_attention.py, a device that runs
 * one implementation alone, comparing, and a float64 tape. */
#ifndef SN_TESTS_OP_FIXTURE_H
#define SN_TESTS_OP_FIXTURE_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "core/arena.h"
#include "kernels/tape.h"

/* Stream `stream` of make_attention.py: uniform in [-2, 2). */
static inline void fill(double *x, int64_t n, uint64_t stream) {
  uint64_t state = 12345 + stream;
  for (int64_t i = 0; i < n; i++) {
    state = (state * 1103515245u + 12345u) % 2147483648u;
    x[i] = 4.0 * ((double)state / 2147483648.0 - 0.5);
  }
}

/* only: an implementation's name, "" for any. */
static inline sn_device *new_device(int n_threads, const char *only) {
  sn_device *device;
  sn_device_options options = {.n_threads = n_threads};
  assert_int_equal(sn_device_create_cpu(&options, &device, NULL), SN_OK);
  snprintf(device->only, sizeof device->only, "%s", only);
  return device;
}

/* |got - want| <= tol everywhere, and all of got finite. */
static inline void expect_within(const char *what, const double *got, const double *want, int64_t n, double tol) {
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(got[i]) || !(fabs(got[i] - want[i]) <= tol))
      fail_msg("%s: element %lld is %.17g, expected %.17g", what, (long long)i, got[i], want[i]);
}

/* A tape in float64 on its own arena. */
static inline sn_tape *new_tape(sn_device *device, sn_arena **arena) {
  sn_tape *tape;
  sn_tape_options options = {.residual = SN_F64, .product = SN_F64};
  assert_int_equal(sn_arena_create(false, arena, NULL), SN_OK);
  assert_int_equal(sn_arena_reserve(*arena, 1 << 16, NULL), SN_OK);
  assert_int_equal(sn_tape_create(device, *arena, &options, &tape, NULL), SN_OK);
  return tape;
}

#endif
