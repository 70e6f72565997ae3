#include "kernels/scatter_rows/scatter_rows.h"

#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_scatter_rows_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "x", err));
  SN_TRY(sn_row_index_rule(a->index, sn_tensor_rows(x), a->n_out, err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_2d(&call->out[0], a->n_out, sn_tensor_columns(x), a->out_dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return backward ? 0.0 : (double)sn_tensor_count(&call->in[0]);
}

static const sn_op_impl *const impls[] = {&sn_scatter_rows_cpu, &sn_scatter_rows_ref, NULL};

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_scatter_rows_attr *a = attr;
  a->out_dtype = sn_retype(a->out_dtype, residual, product);
}

static const int32_t unique[5] = {6, 2, 0, 5, 1};
static const int32_t repeated[11] = {1, 0, 1, 1, 2, 0, 2, 1, 3, 0, 0};
static const int32_t dropped[6] = {2, -1, 0, 2, -1, 1};
static const sn_scatter_rows_attr by_unique = {unique, 7, SN_F32}, by_repeated = {repeated, 4, SN_BF16},
                                  by_dropped = {dropped, 3, SN_F32}, by_none = {unique, 3, SN_F32};
static const sn_op_sample samples[] = {
    {.name = "unique", .attr = &by_unique, .n_in = 1, .in = {SN_S2(5, 13)}},
    {.name = "repeated_to_product", .attr = &by_repeated, .n_in = 1, .in = {SN_S2(11, 17)}},
    {.name = "dropped", .attr = &by_dropped, .n_in = 1, .in = {SN_S2B(6, 7)}},
    {.name = "above_chunk", .attr = &by_repeated, .n_in = 1, .in = {SN_S2(11, 1029)}},
    {.name = "none", .attr = &by_none, .n_in = 1, .in = {SN_S2(0, 4)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_scatter_rows = {
    .name = "scatter_rows",
    .summary = "y = 0, then y[index[i]] += x[i]",
    .attr_size = sizeof(sn_scatter_rows_attr),
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

sn_status sn_scatter_rows(sn_tape *tape, sn_value **y, sn_value *x, const int32_t *index, int64_t n_out, sn_error *err) {
  sn_scatter_rows_attr attr = {.index = index, .n_out = n_out, .out_dtype = x->tensor.dtype};
  return sn_tape_record(tape, &sn_op_scatter_rows, &attr, 1, &x, 1, y, err);
}
