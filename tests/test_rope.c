/* The op `rope`: every implementation on every sample, golden values, what a rotation keeps. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/attention_golden.h"
#include "kernels/rope/rope.h"
#include "op_check.h"
#include "op_fixture.h"

static void samples(void **state) { op_check_all(&sn_op_rope); }

/* Of make_attention.py: three tokens on two axes, in [-6, 6). */
static void fill_positions(double positions[6]) {
  fill(positions, 6, 4);
  for (int i = 0; i < 6; i++) positions[i] *= 3;
}

static const sn_rope_attr two_axes = {.head_dim = 10, .n_ranges = 1, .range_end = {10}, .n_axes = 2,
                                      .axis_channels = {4, 4}};

static void golden(void **state) {
  double x[30], positions[6], out[30], dout[30], dx[30];
  fill(x, 30, 3);
  fill_positions(positions);
  fill(dout, 30, 5);
  sn_op_call c = {.op = &sn_op_rope, .attr = &two_axes, .n_in = 2};
  c.in[0] = sn_tensor_2d(x, SN_F64, 3, 10);
  c.in[1] = sn_tensor_2d(positions, SN_F64, 3, 2);
  assert_int_equal(sn_op_rope.infer(&c, true, NULL), SN_OK);
  c.out[0].data = out;
  c.dout[0] = sn_tensor_2d(dout, SN_F64, 3, 10);
  c.din[0] = sn_tensor_2d(dx, SN_F64, 3, 10);
  sn_device *device = new_device(1, "ref");
  assert_int_equal(sn_op_forward(device, &c, NULL), SN_OK);
  assert_int_equal(sn_op_backward(device, &c, NULL), SN_OK);
  expect_within("out", out, rope_out, 30, 1e-14);
  expect_within("dx", dx, rope_dx, 30, 1e-14);
  sn_device_destroy(device);
}

/* Products of rotated q and k depend on the difference of their positions alone: shifting both changes nothing. */
static void only_differences_matter(void **state) {
  enum { D = 64, SHIFTS = 3 };
  static const double shifts[SHIFTS] = {0, 1234.5, 500000};
  static const sn_rope_attr attr = {.head_dim = D, .n_ranges = 1, .range_end = {D}, .n_axes = 1};
  double x[2 * D], product[SHIFTS];
  float f[2 * D], y[2 * D];
  fill(x, 2 * D, 3);
  for (int i = 0; i < 2 * D; i++) f[i] = (float)x[i];
  for (int s = 0; s < SHIFTS; s++) {
    float positions[2] = {(float)(3.25 + shifts[s]), (float)(17.5 + shifts[s])};
    sn_op_call c = {.op = &sn_op_rope, .attr = &attr, .n_in = 2};
    c.in[0] = sn_tensor_2d(f, SN_F32, 2, D);
    c.in[1] = sn_tensor_2d(positions, SN_F32, 2, 1);
    assert_int_equal(sn_op_rope.infer(&c, true, NULL), SN_OK);
    c.out[0].data = y;
    sn_device *device = new_device(1, "cpu");
    assert_int_equal(sn_op_forward(device, &c, NULL), SN_OK);
    sn_device_destroy(device);
    product[s] = 0;
    for (int i = 0; i < D; i++) product[s] += (double)y[i] * (double)y[D + i];
  }
  assert_true(fabs(product[0]) > 0.1);
  for (int s = 1; s < SHIFTS; s++) assert_true(fabs(product[s] - product[0]) <= 2e-5 * fabs(product[0]) + 2e-5);
}

static void threads_do_not_matter(void **state) {
  static const sn_rope_attr attr = {.head_dim = 12, .n_ranges = 1, .range_end = {24}, .n_axes = 2};
  static float x[101 * 36], positions[101 * 2], y[2][101 * 36];
  for (int i = 0; i < 101 * 36; i++) x[i] = (float)(i % 17) - 8.0f;
  for (int i = 0; i < 101 * 2; i++) positions[i] = (float)i * 0.37f;
  for (int k = 0; k < 2; k++) {
    sn_op_call c = {.op = &sn_op_rope, .attr = &attr, .n_in = 2};
    c.in[0] = sn_tensor_2d(x, SN_F32, 101, 36);
    c.in[1] = sn_tensor_2d(positions, SN_F32, 101, 2);
    assert_int_equal(sn_op_rope.infer(&c, true, NULL), SN_OK);
    c.out[0].data = y[k];
    sn_device *device = new_device(k == 0 ? 1 : 3, "cpu");
    assert_int_equal(sn_op_forward(device, &c, NULL), SN_OK);
    sn_device_destroy(device);
  }
  assert_memory_equal(y[0], y[1], sizeof y[0]);
}

static void refuse(const char *expected, sn_rope_attr attr, int64_t position_columns) {
  sn_error err;
  sn_op_call c = {.op = &sn_op_rope, .attr = &attr, .n_in = 2};
  c.in[0] = sn_tensor_2d(&c, SN_F32, 4, 40);
  c.in[1] = sn_tensor_2d(&c, SN_F32, 4, position_columns);
  assert_int_equal(sn_op_rope.infer(&c, false, &err), SN_E_ARGUMENT);
  if (strstr(err.message, expected) == NULL) fail_msg("expected a message with \"%s\", found \"%s\"", expected, err.message);
}

static void refused(void **state) {
  const sn_rope_attr good = two_axes;
  refuse("positions", good, 1);
#define REFUSE(expected, field, value)  \
  do {                                  \
    sn_rope_attr bad = good;            \
    bad.field = value;                  \
    refuse(expected, bad, bad.n_axes);  \
  } while (0)
  REFUSE("head_dim", head_dim, 0);
  REFUSE("n_axes", n_axes, 5);
  REFUSE("n_axes", n_axes, 0);
  REFUSE("base", base, 1);
  REFUSE("base", base, NAN);
  REFUSE("axis_channels[0]", axis_channels[0], 3);
  REFUSE("axis_channels[1]", axis_channels[1], 8);
  REFUSE("n_ranges", n_ranges, 0);
  REFUSE("whole heads", range_end[0], 15);
  REFUSE("whole heads", range_end[0], 50);
}

static void wrapper(void **state) {
  double x[30], positions[6];
  fill(x, 30, 3);
  fill_positions(positions);
  sn_device *device = new_device(1, "");
  sn_arena *arena;
  sn_tape *tape = new_tape(device, &arena);
  sn_value *vx, *vp, *out;
  assert_int_equal(sn_tape_input(tape, &vx, sn_tensor_2d(x, SN_F64, 3, 10), false, NULL), SN_OK);
  assert_int_equal(sn_tape_input(tape, &vp, sn_tensor_2d(positions, SN_F64, 3, 2), false, NULL), SN_OK);
  assert_int_equal(sn_rope(tape, &out, vx, vp, &two_axes, NULL), SN_OK);
  expect_within("out on a tape", out->tensor.data, rope_out, 30, 1e-14);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  sn_device_destroy(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples),
      cmocka_unit_test(golden),
      cmocka_unit_test(only_differences_matter),
      cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(refused),
      cmocka_unit_test(wrapper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
