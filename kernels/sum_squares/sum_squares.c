#include "kernels/sum_squares/sum_squares.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_scalar(&call->out[0], SN_F64);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 2.0 * (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  double sum = 0;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double x = sn_tensor_get(&call->in[0], i);
    sum += x * x;
  }
  sn_put(&call->out[0], 0, sum, false);
  return SN_OK;
}

const sn_op_impl sn_sum_squares_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = ref_forward};

static const sn_op_impl *const impls[] = {&sn_sum_squares_cpu, &sn_sum_squares_ref, NULL};

static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "product", .n_in = 1, .in = {SN_S2B(3, 1031)}},
    {.name = "above_block", .n_in = 1, .in = {SN_S1(16387)}},
    {.name = "one", .n_in = 1, .in = {SN_S1(1)}},
    {.name = "none", .n_in = 1, .in = {SN_S1(0)}, .why_zero = "no elements"},
    {.name = NULL}};

const sn_op sn_op_sum_squares = {
    .name = "sum_squares",
    .summary = "out = sum of x * x",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .samples = samples,
};

sn_status sn_sum_squares(sn_device *device, double *sum, const sn_tensor *x, sn_error *err) {
  sn_op_call call = {.op = &sn_op_sum_squares, .n_in = 1, .in = {*x}};
  sn_status status = infer(&call, false, err);
  if (status != SN_OK) return sn_error_prefix(err, status, "op sum_squares");
  call.out[0].data = sum;
  return sn_op_forward(device, &call, err);
}
