#include "kernels/cast/cast.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_cast_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], a->out_dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 0.0; }

static void copy(const sn_tensor *to, const sn_tensor *from, bool acc) {
  for (int64_t i = 0; i < sn_tensor_count(from); i++) sn_put(to, i, sn_tensor_get(from, i), acc);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  copy(&call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) copy(&call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_cast_ref = {.name = "ref",
                                .device = SN_DEVICE_CPU,
                                .supports = sn_supports_always,
                                .forward = ref_forward,
                                .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_cast_cpu, &sn_cast_ref, NULL};

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_cast_attr *a = attr;
  a->out_dtype = sn_retype(a->out_dtype, residual, product);
}

static const sn_cast_attr to_bf16 = {SN_BF16}, to_f32 = {SN_F32};
static const sn_op_sample samples[] = {
    {.name = "narrow", .attr = &to_bf16, .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "widen", .attr = &to_f32, .n_in = 1, .in = {SN_S2B(7, 13)}},
    {.name = "above_chunk", .attr = &to_bf16, .n_in = 1, .in = {SN_S2(1, 1031)}},
    {.name = "same", .attr = &to_f32, .n_in = 1, .in = {SN_S2(3, 5)}},
    {.name = "no_rows", .attr = &to_bf16, .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_cast = {
    .name = "cast",
    .summary = "y = x in another floating type",
    .attr_size = sizeof(sn_cast_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .retype = retype,
    .samples = samples,
};

sn_status sn_cast(sn_tape *tape, sn_value **y, sn_value *x, sn_dtype dtype, sn_error *err) {
  sn_cast_attr attr = {.out_dtype = dtype};
  return sn_tape_record(tape, &sn_op_cast, &attr, 1, &x, 1, y, err);
}
