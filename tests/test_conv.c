/* The op `conv`: samples, and one convolution by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/conv/conv.h"
#include "op_check.h"

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
  assert_float_equal(y[0], 2 + 6 + 2 + 6 + 0.5, 1e-5);
  assert_float_equal(y[1], 2 + 6 + 12 + 2 + 6 + 12 + 0.5, 1e-5);
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples), cmocka_unit_test(by_hand),
                                     cmocka_unit_test(sizes_that_do_not_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
