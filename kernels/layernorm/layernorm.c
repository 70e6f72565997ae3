#include "kernels/layernorm/layernorm.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_layernorm_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "x", err));
  int64_t columns = sn_tensor_columns(x);
  if (columns < 1 || !(a->eps >= 0))
    return sn_fail(err, SN_E_ARGUMENT, "x needs at least one column and eps >= 0; found %lld columns, eps %g",
                   (long long)columns, a->eps);
  if (sn_is_present(&call->in[1])) SN_TRY(sn_rule_vector(call, 1, "gamma", columns, err));
  if (sn_is_present(&call->in[2])) SN_TRY(sn_rule_vector(call, 2, "beta", columns, err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  sn_shape_like(&call->out[0], x, a->out_dtype);
  call->n_saved = with_saved ? 2 : 0;
  for (int i = 0; i < call->n_saved; i++) sn_shape_1d(&call->saved[i], sn_tensor_rows(x), sn_statistics_dtype(x->dtype));
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 14.0 : 8.0) * (double)sn_tensor_count(&call->in[0]);
}

static const sn_op_impl *const impls[] = {&sn_layernorm_cpu, &sn_layernorm_cuda, &sn_layernorm_ref, NULL};

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_layernorm_attr *a = attr;
  a->out_dtype = sn_retype(a->out_dtype, residual, product);
}

static const sn_layernorm_attr to_product = {1e-6, SN_BF16}, to_residual = {1e-5, SN_F32};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &to_product, .n_in = 3, .in = {SN_S2(7, 13), SN_S1(13), SN_S1(13)}},
    {.name = "to_residual", .attr = &to_residual, .n_in = 3, .in = {SN_S2(5, 31), SN_S2(1, 31), SN_S2(1, 31)}},
    {.name = "bf16_input", .attr = &to_product, .n_in = 3, .in = {SN_S2B(11, 48), SN_S1(48), SN_S1(48)}},
    {.name = "no_parameters", .attr = &to_product, .n_in = 3, .in = {SN_S2(6, 17), SN_ABSENT, SN_ABSENT}},
    {.name = "gamma_alone", .attr = &to_product, .n_in = 3, .in = {SN_S2(6, 17), SN_S1(17), SN_ABSENT}},
    {.name = "beta_alone", .attr = &to_residual, .n_in = 3, .in = {SN_S2(6, 17), SN_ABSENT, SN_S1(17)}},
    {.name = "above_row_block", .attr = &to_product, .n_in = 3, .in = {SN_S2(67, 65), SN_S1(65), SN_S1(65)}},
    {.name = "above_chunk", .attr = &to_product, .n_in = 3, .in = {SN_S2B(3, 1031), SN_S1(1031), SN_S1(1031)}},
    {.name = "one_row", .attr = &to_residual, .n_in = 3, .in = {SN_S1(19), SN_S1(19), SN_S1(19)}},
    {.name = "no_rows", .attr = &to_product, .n_in = 3, .in = {SN_S2(0, 8), SN_S1(8), SN_S1(8)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_layernorm = {
    .name = "layernorm",
    .summary = "y = (x - mean) / sqrt(var + eps) * gamma + beta, over the last dimension",
    .attr_size = sizeof(sn_layernorm_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 7u,
    .unread_in = 4u,
    .unread_out = 1u,
    .retype = retype,
    .samples = samples,
};

sn_status sn_layernorm(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, sn_value *beta, double eps,
                       sn_error *err) {
  return sn_layernorm_as(tape, y, x, gamma, beta, eps, sn_tape_product(tape), err);
}

sn_status sn_layernorm_as(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, sn_value *beta, double eps,
                          sn_dtype out_dtype, sn_error *err) {
  sn_layernorm_attr attr = {.eps = eps, .out_dtype = out_dtype};
  sn_value *in[3] = {x, gamma, beta};
  return sn_tape_record(tape, &sn_op_layernorm, &attr, 3, in, 1, y, err);
}
