#include "kernels/gelu/gelu.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_gelu_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (a->kind != SN_GELU_ERF && a->kind != SN_GELU_TANH)
    return sn_fail(err, SN_E_ARGUMENT, "kind must be erf (0) or tanh (1); it is %d", (int)a->kind);
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 32.0 : 28.0) * (double)sn_tensor_count(&call->in[0]);
}

static const sn_op_impl *const impls[] = {&sn_gelu_cpu, &sn_gelu_cuda, &sn_gelu_ref, NULL};

static const sn_gelu_attr by_erf = {SN_GELU_ERF}, by_tanh = {SN_GELU_TANH};
#define WIDE(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .scale = 3.0}
static const sn_op_sample samples[] = {
    {.name = "erf_primes", .attr = &by_erf, .n_in = 1, .in = {SN_S2B(7, 13)}},
    {.name = "tanh_primes", .attr = &by_tanh, .n_in = 1, .in = {SN_S2B(11, 5)}},
    {.name = "erf_wide", .attr = &by_erf, .n_in = 1, .in = {WIDE(3, 41)}},
    {.name = "tanh_wide", .attr = &by_tanh, .n_in = 1, .in = {WIDE(3, 41)}},
    {.name = "above_chunk", .attr = &by_erf, .n_in = 1, .in = {SN_S2B(1, 1025)}},
    {.name = "above_block", .attr = &by_tanh, .n_in = 1, .in = {SN_S2(3, 5471)}},
    {.name = "one", .attr = &by_erf, .n_in = 1, .in = {SN_S1(1)}},
    {.name = "no_rows", .attr = &by_erf, .n_in = 1, .in = {SN_S2(0, 8)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_gelu = {
    .name = "gelu",
    .summary = "y = x * Phi(x), or its tanh form",
    .attr_size = sizeof(sn_gelu_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_gelu(sn_tape *tape, sn_value **y, sn_value *x, sn_gelu_kind kind, sn_error *err) {
  sn_gelu_attr attr = {.kind = kind};
  return sn_tape_record(tape, &sn_op_gelu, &attr, 1, &x, 1, y, err);
}
