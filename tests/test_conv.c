/* The op `conv`: samples, and one convolution by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "golden/products_golden.h"
#include "kernels/conv/conv.h"
#include "op_check.h"
#include "op_golden.h"

/* Not cmocka's comparison of floats, which a NaN passes. */
static void expect_near(float got, double want) {
  if (!(fabs((double)got - want) <= 1e-5 * fmax(1, fabs(want)))) fail_msg("found %.9g, expected %.9g", (double)got, want);
}

static void samples(void **state) { op_check_all(&sn_op_conv); }

/* Two channels, kernel 3, stride 2, padding 1, worked out on paper. */
static void by_hand(void **state) {
  sn_error err;
  sn_device *device;
  assert_int_equal(sn_device_create_cpu(NULL, &device, &err), SN_OK);
  const sn_conv_attr attr = {1, {4}, {3}, {2}, {1}, 2, 1, SN_F32};
  float x[8] = {1, 10, 2, 20, 3, 30, 4, 40}; /* (position, channel) */
  float w[6] = {1, 2, 3, 0.1f, 0.2f, 0.3f};  /* (channel, tap) */
  float b[1] = {0.5f}, y[2];
  sn_op_call call = {.op = &sn_op_conv, .attr = &attr, .n_in = 3};
  call.in[0] = sn_tensor_2d(x, SN_F32, 1, 8);
  call.in[1] = sn_tensor_2d(w, SN_F32, 1, 6);
  call.in[2] = sn_tensor_1d(b, SN_F32, 1);
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_OK);
  assert_int_equal(call.out[0].shape[1], 2);
  call.out[0].data = y;
  assert_int_equal(sn_op_forward(device, &call, &err), SN_OK);
  /* s = 0: taps at -1, 0, 1: 2*1 + 3*2 + 0.2*10 + 0.3*20; s = 1: taps at 1, 2, 3. */
  expect_near(y[0], 2 + 6 + 2 + 6 + 0.5);
  expect_near(y[1], 2 + 6 + 12 + 2 + 6 + 12 + 0.5);
  sn_device_destroy(device);
}

enum { MOST = 256 };

typedef struct golden_case {
  sn_conv_attr attr;
  int64_t rows, n_x, n_w, n_y;
  const double *y, *dx, *dw, *db;
} golden_case;

static void check_golden(sn_device *device, const golden_case *g) {
  sn_error err;
  double x[MOST], w[MOST], b[MOST], dy[MOST], y[MOST], dx[MOST], dw[MOST], db[MOST];
  int64_t cout = g->attr.channels_out;
  op_golden_fill(x, g->n_x, 1);
  op_golden_fill(w, g->n_w, 2);
  op_golden_fill(b, cout, 3);
  op_golden_fill(dy, g->n_y, 4);
  sn_op_call call = {.op = &sn_op_conv, .attr = &g->attr, .n_in = 3};
  call.in[0] = sn_tensor_2d(x, SN_F64, g->rows, g->n_x / g->rows);
  call.in[1] = sn_tensor_2d(w, SN_F64, cout, g->n_w / cout);
  call.in[2] = sn_tensor_1d(b, SN_F64, cout);
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_OK);
  assert_int_equal(sn_tensor_count(&call.out[0]), g->n_y);
  call.out[0].data = y;
  call.dout[0] = call.out[0];
  call.dout[0].data = dy;
  for (int i = 0; i < 3; i++) call.din[i] = call.in[i];
  call.din[0].data = dx;
  call.din[1].data = dw;
  call.din[2].data = db;
  assert_int_equal(sn_op_forward(device, &call, &err), SN_OK);
  assert_int_equal(sn_op_backward(device, &call, &err), SN_OK);
  assert_true(op_golden_error(y, g->y, g->n_y) <= 1e-14);
  assert_true(op_golden_error(dx, g->dx, g->n_x) <= 1e-14);
  assert_true(op_golden_error(dw, g->dw, g->n_w) <= 1e-14);
  assert_true(op_golden_error(db, g->db, cout) <= 1e-14);
}

static void golden(void **state) {
  sn_error err;
  sn_device *device;
  assert_int_equal(sn_device_create_cpu(NULL, &device, &err), SN_OK);
  const golden_case cases[] = {
      {{1, {11}, {4}, {3}, {2}, 2, 3, SN_F64}, 2, 44, 24, sizeof conv1_y / 8, conv1_y, conv1_dx, conv1_dw, conv1_db},
      {{2, {5, 4}, {3, 2}, {2, 1}, {1, 0}, 2, 2, SN_F64}, 2, 80, 24, sizeof conv2_y / 8, conv2_y, conv2_dx, conv2_dw, conv2_db},
      {{3, {3, 4, 4}, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}, 1, 2, SN_F64}, 1, 48, 24, sizeof conv3_y / 8, conv3_y, conv3_dx, conv3_dw, conv3_db},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) check_golden(device, &cases[i]);
  sn_device_destroy(device);
}

/* More rows than a chunk holds: the same as each row alone. */
static void chunks_do_not_show(void **state) {
  enum { ROWS = 1500, N = 50, OUT = 8 };
  sn_error err;
  sn_device *device;
  float *x = NULL, *y = NULL, w[OUT * 7], b[OUT], alone[25 * OUT];
  assert_int_equal(sn_device_create_cpu(NULL, &device, &err), SN_OK);
  assert_int_equal(sn_alloc(&x, ROWS * N, sizeof *x, "test", &err), SN_OK);
  assert_int_equal(sn_alloc(&y, ROWS * 25 * OUT, sizeof *y, "test", &err), SN_OK);
  const sn_conv_attr attr = {1, {N}, {7}, {2}, {3}, 1, OUT, SN_F32};
  for (int i = 0; i < ROWS * N; i++) x[i] = (float)(i * 31 % 97) / 97.0f - 0.5f;
  for (int i = 0; i < OUT * 7; i++) w[i] = (float)(i * 17 % 23) / 23.0f - 0.5f;
  for (int i = 0; i < OUT; i++) b[i] = (float)i;
  sn_op_call call = {.op = &sn_op_conv, .attr = &attr, .n_in = 3};
  call.in[1] = sn_tensor_2d(w, SN_F32, OUT, 7);
  call.in[2] = sn_tensor_1d(b, SN_F32, OUT);
  call.in[0] = sn_tensor_2d(x, SN_F32, ROWS, N);
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_OK);
  call.out[0].data = y;
  assert_int_equal(sn_op_forward(device, &call, &err), SN_OK);
  for (int t = 0; t < ROWS; t += 37) {
    call.in[0] = sn_tensor_2d(x + t * N, SN_F32, 1, N);
    assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_OK);
    call.out[0].data = alone;
    assert_int_equal(sn_op_forward(device, &call, &err), SN_OK);
    for (int i = 0; i < 25 * OUT; i++) expect_near(alone[i], y[t * 25 * OUT + i]);
  }
  sn_free(x);
  sn_free(y);
  sn_device_destroy(device);
}

static void sizes_that_do_not_fit(void **state) {
  sn_error err;
  sn_conv_attr attr = {1, {4}, {9}, {2}, {1}, 2, 1, SN_F32};
  float x[8], w[18];
  sn_op_call call = {.op = &sn_op_conv, .attr = &attr, .n_in = 3};
  call.in[0] = sn_tensor_2d(x, SN_F32, 1, 8);
  call.in[1] = sn_tensor_2d(w, SN_F32, 1, 18);
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_E_ARGUMENT);
  attr.kernel[0] = 3;
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_E_ARGUMENT); /* W does not fit */
  attr.stride[0] = 0;
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_E_ARGUMENT);
  attr.stride[0] = 1;
  attr.size[0] = INT64_MAX / 2;
  assert_int_equal(sn_op_conv.infer(&call, false, &err), SN_E_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples), cmocka_unit_test(by_hand), cmocka_unit_test(golden),
                                     cmocka_unit_test(chunks_do_not_show),
                                     cmocka_unit_test(sizes_that_do_not_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
