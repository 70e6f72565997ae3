#include <math.h>

#include "kernels/gelu/gelu.h"
#include "kernels/op_rules.h"

static const double sqrt_2_over_pi = 0.79788456080286535588;

static double value(double x, sn_gelu_kind kind) {
  if (kind == SN_GELU_ERF) return 0.5 * x * erfc(-x * M_SQRT1_2); /* erfc keeps the left tail's digits */
  return 0.5 * x * (1.0 + tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x)));
}

static double slope(double x, sn_gelu_kind kind) {
  if (kind == SN_GELU_ERF) return 0.5 * erfc(-x * M_SQRT1_2) + x * exp(-0.5 * x * x) * 0.5 * sqrt_2_over_pi;
  double th = tanh(sqrt_2_over_pi * (x + 0.044715 * x * x * x));
  return 0.5 * (1.0 + th) + 0.5 * x * (1.0 - th * th) * sqrt_2_over_pi * (1.0 + 3.0 * 0.044715 * x * x);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gelu_attr *a = call->attr;
  int64_t n = sn_tensor_count(&call->in[0]);
  for (int64_t i = 0; i < n; i++) sn_put(&call->out[0], i, value(sn_tensor_get(&call->in[0], i), a->kind), false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gelu_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t n = sn_tensor_count(&call->in[0]);
  for (int64_t i = 0; i < n; i++) {
    double x = sn_tensor_get(&call->in[0], i);
    sn_put(&call->din[0], i, sn_tensor_get(&call->dout[0], i) * slope(x, a->kind), call->acc[0]);
  }
  return SN_OK;
}

const sn_op_impl sn_gelu_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
