#include "kernels/relu/relu.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double x = sn_tensor_get(&call->in[0], i);
    sn_put(&call->out[0], i, x <= 0 ? 0.0 : x, false);
  }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++)
    sn_put(&call->din[0], i, sn_tensor_get(&call->out[0], i) > 0 ? sn_tensor_get(&call->dout[0], i) : 0.0, call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_relu_ref = {.name = "ref",
                                .device = SN_DEVICE_CPU,
                                .supports = sn_supports_always,
                                .forward = ref_forward,
                                .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_relu_cpu, &sn_relu_ref, NULL};

static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "product", .n_in = 1, .in = {SN_S2B(67, 17)}},
    {.name = "above_block", .n_in = 1, .in = {SN_S2(3, 5471)}},
    {.name = "one", .n_in = 1, .in = {{.n_dims = 1, .shape = {1}, .fill = SN_FILL_POSITIVE}}},
    {.name = "no_rows", .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_relu = {
    .name = "relu",
    .summary = "y = max(x, 0)",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .samples = samples,
};

sn_status sn_relu(sn_tape *tape, sn_value **y, sn_value *x, sn_error *err) {
  return sn_tape_record(tape, &sn_op_relu, NULL, 1, &x, 1, y, err);
}
