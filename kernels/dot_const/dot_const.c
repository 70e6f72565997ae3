#include "kernels/dot_const/dot_const.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  SN_TRY(sn_rule_float(call, 1, "weight", err));
  SN_TRY(sn_rule_same_shape(call, 1, "weight", 0, "x", err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_scalar(&call->out[0], SN_F64);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 1.0 : 2.0) * (double)sn_tensor_count(&call->in[0]);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  double sum = 0;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++)
    sum += sn_tensor_get(&call->in[0], i) * sn_tensor_get(&call->in[1], i);
  sn_put(&call->out[0], 0, sum, false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  double dsum = sn_tensor_get(&call->dout[0], 0);
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++)
    sn_put(&call->din[0], i, dsum * sn_tensor_get(&call->in[1], i), call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_dot_const_ref = {.name = "ref",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_always,
                                     .forward = ref_forward,
                                     .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_dot_const_cpu, &sn_dot_const_ref, NULL};

static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 2, .in = {SN_S2(7, 13), SN_S2(7, 13)}},
    {.name = "product", .n_in = 2, .in = {SN_S2B(67, 17), SN_S2(67, 17)}},
    {.name = "above_block", .n_in = 2, .in = {SN_S2(3, 5471), SN_S2B(3, 5471)}},
    {.name = "one", .n_in = 2, .in = {SN_S1(1), SN_S1(1)}},
    {.name = "no_rows", .n_in = 2, .in = {SN_S2(0, 5), SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_dot_const = {
    .name = "dot_const",
    .summary = "sum of x * weight, weight a constant",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_dot_const(sn_tape *tape, sn_value **sum, sn_value *x, sn_value *weight, sn_error *err) {
  sn_value *in[2] = {x, weight};
  return sn_tape_record(tape, &sn_op_dot_const, NULL, 2, in, 1, sum, err);
}
