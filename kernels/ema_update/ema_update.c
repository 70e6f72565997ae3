#include "kernels/ema_update/ema_update.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_ema_update_attr *a = call->attr;
  sn_dtype dtype = call->in[0].dtype == SN_F64 ? SN_F64 : SN_F32;
  SN_TRY(sn_rule_dtype(call, 0, "e", dtype, err));
  SN_TRY(sn_rule_float(call, 1, "x", err));
  SN_TRY(sn_rule_same_shape(call, 1, "x", 0, "e", err));
  if (!(a->momentum >= 0 && a->momentum <= 1))
    return sn_fail(err, SN_E_ARGUMENT, "momentum must lie in [0, 1]; it is %g", a->momentum);
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 3.0 * (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_ema_update_attr *a = call->attr;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double e = sn_tensor_get(&call->in[0], i);
    sn_put(&call->out[0], i, e + (1.0 - a->momentum) * (sn_tensor_get(&call->in[1], i) - e), false);
  }
  return SN_OK;
}

const sn_op_impl sn_ema_update_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = ref_forward};

static const sn_op_impl *const impls[] = {&sn_ema_update_cpu, &sn_ema_update_ref, NULL};

static const sn_ema_update_attr slow = {0.996}, fast = {0.3};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &slow, .n_in = 2, .in = {SN_S2(7, 13), SN_S2(7, 13)}},
    {.name = "product", .attr = &fast, .n_in = 2, .in = {SN_S2(3, 1031), SN_S2B(3, 1031)}},
    {.name = "above_block", .attr = &fast, .n_in = 2, .in = {SN_S1(16411), SN_S1(16411)}},
    {.name = "none", .attr = &fast, .n_in = 2, .in = {SN_S1(0), SN_S1(0)}, .why_zero = "no elements"},
    {.name = NULL}};

const sn_op sn_op_ema_update = {
    .name = "ema_update",
    .summary = "e <- e + (1 - momentum) (x - e)",
    .attr_size = sizeof(sn_ema_update_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .samples = samples,
};

sn_status sn_ema_update(sn_device *device, const sn_tensor *e, const sn_tensor *x, double momentum, sn_error *err) {
  sn_ema_update_attr attr = {.momentum = momentum};
  sn_op_call call = {.op = &sn_op_ema_update, .attr = &attr, .n_in = 2, .in = {*e, *x}};
  sn_status status = infer(&call, false, err);
  if (status != SN_OK) return sn_error_prefix(err, status, "op ema_update");
  call.out[0].data = e->data;
  return sn_op_forward(device, &call, err);
}
