#include "kernels/swiglu/swiglu.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  const sn_tensor *x = &call->in[0];
  if (x->n_dims < 1 || sn_tensor_columns(x) % 2 != 0)
    return sn_fail(err, SN_E_ARGUMENT, "x needs an even number of columns, gate and value; it has %lld",
                   (long long)sn_tensor_columns(x));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], x, x->dtype);
  call->out[0].shape[x->n_dims - 1] /= 2;
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 26.0 : 20.0) * 0.5 * (double)sn_tensor_count(&call->in[0]);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t rows = sn_tensor_rows(&call->out[0]), width = sn_tensor_columns(&call->out[0]);
  for (int64_t t = 0; t < rows; t++)
    for (int64_t f = 0; f < width; f++) {
      double a = sn_tensor_get(&call->in[0], t * 2 * width + f), b = sn_tensor_get(&call->in[0], t * 2 * width + width + f);
      sn_put(&call->out[0], t * width + f, a / (1.0 + exp(-a)) * b, false);
    }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t rows = sn_tensor_rows(&call->out[0]), width = sn_tensor_columns(&call->out[0]);
  for (int64_t t = 0; t < rows; t++)
    for (int64_t f = 0; f < width; f++) {
      int64_t at = t * 2 * width + f;
      double a = sn_tensor_get(&call->in[0], at), b = sn_tensor_get(&call->in[0], at + width);
      double dy = sn_tensor_get(&call->dout[0], t * width + f), s = 1.0 / (1.0 + exp(-a));
      sn_put(&call->din[0], at, dy * b * s * (1.0 + a * (1.0 - s)), call->acc[0]);
      sn_put(&call->din[0], at + width, dy * a * s, call->acc[0]);
    }
  return SN_OK;
}

const sn_op_impl sn_swiglu_ref = {.name = "ref",
                                  .device = SN_DEVICE_CPU,
                                  .supports = sn_supports_always,
                                  .forward = ref_forward,
                                  .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_swiglu_cpu, &sn_swiglu_ref, NULL};

static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 1, .in = {SN_S2B(7, 26)}},
    {.name = "wide", .n_in = 1, .in = {{.n_dims = 2, .shape = {5, 22}, .scale = 6.0}}},
    {.name = "above_row_block", .n_in = 1, .in = {SN_S2B(67, 10)}},
    {.name = "above_chunk", .n_in = 1, .in = {SN_S2B(3, 2066)}},
    {.name = "one", .n_in = 1, .in = {SN_S1(2)}},
    {.name = "no_rows", .n_in = 1, .in = {SN_S2(0, 8)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_swiglu = {
    .name = "swiglu",
    .summary = "y = silu(gate) * value, x being (gate | value)",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_swiglu(sn_tape *tape, sn_value **y, sn_value *x, sn_error *err) {
  return sn_tape_record(tape, &sn_op_swiglu, NULL, 1, &x, 1, y, err);
}
