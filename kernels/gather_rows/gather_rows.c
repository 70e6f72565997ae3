#include "kernels/gather_rows/gather_rows.h"

#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (sn_is_present(&call->in[1])) SN_TRY(sn_rule_vector(call, 1, "fill", sn_tensor_columns(x), err));
  SN_TRY(sn_row_index_rule(a->index, a->n_out, sn_tensor_rows(x), err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_2d(&call->out[0], a->n_out, sn_tensor_columns(x), a->out_dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return backward ? (double)sn_tensor_count(&call->out[0]) : 0.0;
}

static const sn_op_impl *const impls[] = {&sn_gather_rows_cpu, &sn_gather_rows_ref, NULL};

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_gather_rows_attr *a = attr;
  a->out_dtype = sn_retype(a->out_dtype, residual, product);
}

static const int32_t unique[7] = {3, 0, 6, 1, 9, 10, 4};
static const int32_t repeated[13] = {2, 2, 0, 4, 2, 0, 1, 3, 2, 4, 4, 1, 3};
static const int32_t filled[11] = {-1, 0, 3, -1, -2, 1, 2, -1, 2, -2, 4};
static const sn_gather_rows_attr by_unique = {unique, 7, SN_BF16}, by_repeated = {repeated, 13, SN_F32},
                                 by_filled = {filled, 11, SN_F32}, by_filled_product = {filled, 11, SN_BF16},
                                 by_none = {unique, 0, SN_F32};
static const sn_op_sample samples[] = {
    {.name = "unique_to_product", .attr = &by_unique, .n_in = 2, .in = {SN_S2(11, 13), SN_ABSENT}, .why_zero = "few rows"},
    {.name = "repeated", .attr = &by_repeated, .n_in = 2, .in = {SN_S2(5, 17), SN_ABSENT}},
    {.name = "filled", .attr = &by_filled, .n_in = 2, .in = {SN_S2B(5, 19), SN_S2(1, 19)}},
    {.name = "filled_same", .attr = &by_filled_product, .n_in = 2, .in = {SN_S2B(5, 3), SN_S1(3)}},
    {.name = "gaps_without_fill", .attr = &by_filled, .n_in = 2, .in = {SN_S2(5, 19), SN_ABSENT}},
    {.name = "above_chunk", .attr = &by_filled, .n_in = 2, .in = {SN_S2B(5, 1033), SN_S2(1, 1033)}},
    {.name = "none", .attr = &by_none, .n_in = 2, .in = {SN_S2(11, 4), SN_S2(1, 4)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_gather_rows = {
    .name = "gather_rows",
    .summary = "y[i] = x[index[i]], or the fill row where index[i] = -1, or 0 where it is -2",
    .attr_size = sizeof(sn_gather_rows_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 3u,
    .unread_in = 3u,
    .unread_out = 1u,
    .retype = retype,
    .samples = samples,
};

sn_status sn_gather_rows_as(sn_tape *tape, sn_value **y, sn_value *x, sn_value *fill, const int32_t *index, int64_t n_out,
                            sn_dtype out_dtype, sn_error *err) {
  sn_gather_rows_attr attr = {.index = index, .n_out = n_out, .out_dtype = out_dtype};
  sn_value *in[2] = {x, fill};
  return sn_tape_record(tape, &sn_op_gather_rows, &attr, 2, in, 1, y, err);
}

sn_status sn_gather_rows(sn_tape *tape, sn_value **y, sn_value *x, sn_value *fill, const int32_t *index, int64_t n_out,
                         sn_error *err) {
  return sn_gather_rows_as(tape, y, x, fill, index, n_out, x->tensor.dtype, err);
}
