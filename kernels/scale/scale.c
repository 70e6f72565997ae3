#include "kernels/scale/scale.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_scale_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (!isfinite(a->factor)) return sn_fail(err, SN_E_ARGUMENT, "factor must be finite; it is %g", a->factor);
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return (double)sn_tensor_count(&call->in[0]); }

static void ref_scale(const sn_tensor *to, const sn_tensor *from, double factor, bool acc) {
  for (int64_t i = 0; i < sn_tensor_count(from); i++) sn_put(to, i, factor * sn_tensor_get(from, i), acc);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_scale_attr *a = call->attr;
  ref_scale(&call->out[0], &call->in[0], a->factor, false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_scale_attr *a = call->attr;
  if (sn_has_dout(call) && call->din[0].data) ref_scale(&call->din[0], &call->dout[0], a->factor, call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_scale_ref = {.name = "ref",
                                 .device = SN_DEVICE_CPU,
                                 .supports = sn_supports_always,
                                 .forward = ref_forward,
                                 .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_scale_cpu, &sn_scale_ref, NULL};

static const sn_scale_attr third = {1.0 / 3.0}, minus = {-2.5};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &third, .n_in = 1, .in = {SN_S2B(7, 13)}},
    {.name = "residual", .attr = &minus, .n_in = 1, .in = {SN_S2(3, 1025)}},
    {.name = "one", .attr = &minus, .n_in = 1, .in = {SN_S1(1)}},
    {.name = "no_rows", .attr = &minus, .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_scale = {
    .name = "scale",
    .summary = "y = factor * x",
    .attr_size = sizeof(sn_scale_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_scale(sn_tape *tape, sn_value **y, sn_value *x, double factor, sn_error *err) {
  sn_scale_attr attr = {.factor = factor};
  return sn_tape_record(tape, &sn_op_scale, &attr, 1, &x, 1, y, err);
}
