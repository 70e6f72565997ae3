/* The op `head_norm`: every implementation on every sample, golden values, what normalisation forgets. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "golden/attention_golden.h"
#include "kernels/head_norm/head_norm.h"
#include "op_check.h"
#include "op_fixture.h"

static void samples(void **state) { op_check_all(&sn_op_head_norm); }

static const sn_head_norm_attr small = {.n_heads = 2, .head_dim = 3, .n_groups = 2, .column = {0, 6}, .eps = 1e-3};

static void golden(void **state) {
  double x[56], gains[2][3], out[56], dout[56], dx[56], dgains[2][3];
  fill(x, 56, 6);
  fill(gains[0], 3, 7);
  fill(gains[1], 3, 8);
  fill(dout, 56, 9);
  sn_device *device = new_device(1, "ref");
  for (int layer = 0; layer < 2; layer++) {
    sn_head_norm_attr attr = small;
    attr.kind = layer ? SN_HEAD_NORM_LAYER : SN_HEAD_NORM_RMS;
    sn_op_call c = {.op = &sn_op_head_norm, .attr = &attr, .n_in = 3};
    c.in[0] = sn_tensor_2d(x, SN_F64, 4, 14);
    for (int g = 0; g < 2; g++) c.in[1 + g] = sn_tensor_1d(gains[g], SN_F64, 3);
    assert_int_equal(sn_op_head_norm.infer(&c, true, NULL), SN_OK);
    c.out[0].data = out;
    c.dout[0] = sn_tensor_2d(dout, SN_F64, 4, 14);
    c.din[0] = sn_tensor_2d(dx, SN_F64, 4, 14);
    for (int g = 0; g < 2; g++) c.din[1 + g] = sn_tensor_1d(dgains[g], SN_F64, 3);
    assert_int_equal(sn_op_forward(device, &c, NULL), SN_OK);
    assert_int_equal(sn_op_backward(device, &c, NULL), SN_OK);
    expect_within("out", out, layer ? layer_out : rms_out, 56, 1e-14);
    expect_within("dx", dx, layer ? layer_dx : rms_dx, 56, 1e-13);
    expect_within("dgain_0", dgains[0], layer ? layer_dgain_0 : rms_dgain_0, 3, 1e-13);
    expect_within("dgain_1", dgains[1], layer ? layer_dgain_1 : rms_dgain_1, 3, 1e-13);
  }
  sn_device_destroy(device);
}

enum { ROWS = 150, D = 24, WIDTH = 2 * 2 * D + 5 };

typedef struct run {
  float x[ROWS * WIDTH], gains[2][D], out[ROWS * WIDTH], dx[ROWS * WIDTH], dgains[2][D];
} run;

static void fill_run(run *r) {
  static double values[ROWS * WIDTH];
  fill(values, ROWS * WIDTH, 1);
  for (int i = 0; i < ROWS * WIDTH; i++) r->x[i] = (float)values[i];
  for (int g = 0; g < 2; g++)
    for (int c = 0; c < D; c++) r->gains[g][c] = 0.5f + 0.05f * (float)(c + g);
}

static void solve(run *r, sn_head_norm_kind kind, int n_threads) {
  sn_head_norm_attr attr = {.n_heads = 2, .head_dim = D, .n_groups = 2, .column = {0, 2 * D}, .kind = kind, .eps = 0};
  sn_op_call c = {.op = &sn_op_head_norm, .attr = &attr, .n_in = 3};
  c.in[0] = sn_tensor_2d(r->x, SN_F32, ROWS, WIDTH);
  for (int g = 0; g < 2; g++) c.in[1 + g] = sn_tensor_1d(r->gains[g], SN_F32, D);
  assert_int_equal(sn_op_head_norm.infer(&c, true, NULL), SN_OK);
  c.out[0].data = r->out;
  c.dout[0] = sn_tensor_2d(r->x, SN_F32, ROWS, WIDTH);
  c.din[0] = sn_tensor_2d(r->dx, SN_F32, ROWS, WIDTH);
  for (int g = 0; g < 2; g++) c.din[1 + g] = sn_tensor_1d(r->dgains[g], SN_F32, D);
  sn_device *device = new_device(n_threads, "cpu");
  assert_int_equal(sn_op_forward(device, &c, NULL), SN_OK);
  assert_int_equal(sn_op_backward(device, &c, NULL), SN_OK);
  sn_device_destroy(device);
}

/* A head times a positive number (and, for LAYER, plus a number) is the same head. */
static void scale_and_shift_are_forgotten(void **state) {
  static run a, b;
  for (int layer = 0; layer < 2; layer++) {
    fill_run(&a);
    fill_run(&b);
    for (int t = 0; t < ROWS; t++)
      for (int c = 0; c < 4 * D; c++) b.x[t * WIDTH + c] = 4 * b.x[t * WIDTH + c] + (layer ? 2.0f : 0.0f);
    solve(&a, layer ? SN_HEAD_NORM_LAYER : SN_HEAD_NORM_RMS, 1);
    solve(&b, layer ? SN_HEAD_NORM_LAYER : SN_HEAD_NORM_RMS, 1);
    double size = 0;
    for (int i = 0; i < ROWS * WIDTH; i++) {
      assert_true(fabsf(a.out[i] - b.out[i]) <= 1e-5f);
      size += fabs((double)a.out[i]);
    }
    assert_true(size > ROWS);
  }
}

static void threads_do_not_matter(void **state) {
  static run a, b;
  fill_run(&a);
  fill_run(&b);
  solve(&a, SN_HEAD_NORM_LAYER, 1);
  solve(&b, SN_HEAD_NORM_LAYER, 3);
  assert_memory_equal(&a, &b, sizeof a);
}

static void refuse(const char *expected, sn_head_norm_attr attr, int64_t gain) {
  sn_error err;
  sn_op_call c = {.op = &sn_op_head_norm, .attr = &attr, .n_in = 3};
  c.in[0] = sn_tensor_2d(&c, SN_F32, 4, 14);
  c.in[1] = c.in[2] = sn_tensor_1d(&c, SN_F32, gain);
  assert_int_equal(sn_op_head_norm.infer(&c, false, &err), SN_E_ARGUMENT);
  if (strstr(err.message, expected) == NULL) fail_msg("expected a message with \"%s\", found \"%s\"", expected, err.message);
}

static void refused(void **state) {
  refuse("gain 0", small, 4);
#define REFUSE(expected, field, value) \
  do {                                 \
    sn_head_norm_attr bad = small;     \
    bad.field = value;                 \
    refuse(expected, bad, 3);          \
  } while (0)
  REFUSE("at least 1 head", n_heads, 0);
  REFUSE("at least 1 head", n_heads, INT64_MAX / 2);
  REFUSE("n_groups", n_groups, 3);
  REFUSE("column[1]", column[1], 5);
  REFUSE("column[1]", column[1], 9);
  REFUSE("column[0]", column[0], -1);
  REFUSE("eps", eps, -1);
  REFUSE("eps", eps, NAN);
  REFUSE("kind", kind, (sn_head_norm_kind)7);
}

static void wrapper(void **state) {
  double x[56], gains[2][3];
  fill(x, 56, 6);
  fill(gains[0], 3, 7);
  fill(gains[1], 3, 8);
  sn_device *device = new_device(1, "");
  sn_arena *arena;
  sn_tape *tape = new_tape(device, &arena);
  sn_value *vx, *g0, *g1, *out;
  assert_int_equal(sn_tape_input(tape, &vx, sn_tensor_2d(x, SN_F64, 4, 14), false, NULL), SN_OK);
  assert_int_equal(sn_tape_input(tape, &g0, sn_tensor_1d(gains[0], SN_F64, 3), false, NULL), SN_OK);
  assert_int_equal(sn_tape_input(tape, &g1, sn_tensor_1d(gains[1], SN_F64, 3), false, NULL), SN_OK);
  assert_int_equal(sn_head_norm(tape, &out, vx, g0, g1, &small, NULL), SN_OK);
  expect_within("out on a tape", out->tensor.data, rms_out, 56, 1e-14);
  sn_tape_destroy(tape);
  sn_arena_destroy(arena);
  sn_device_destroy(device);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples),
      cmocka_unit_test(golden),
      cmocka_unit_test(scale_and_shift_are_forgotten),
      cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(refused),
      cmocka_unit_test(wrapper),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
