#include "kernels/gather_rows/gather_rows.h"

#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status check_spans(const sn_gather_rows_attr *a, int64_t columns, bool with_fill, sn_error *err) {
  if (a->n_spans < 0 || a->n_spans > SN_GATHER_SPANS || (a->n_spans > 0 && with_fill))
    return sn_fail(err, SN_E_ARGUMENT, "expected 0 to %d spans of columns, and no fill row beside them; found %d%s",
                   SN_GATHER_SPANS, a->n_spans, with_fill ? " and a fill row" : "");
  for (int s = 0; s < a->n_spans; s++) {
    bool good = a->begin[s] >= 0 && a->begin[s] < a->end[s] && a->end[s] <= columns;
    for (int o = 0; o < s; o++) good = good && (a->end[s] <= a->begin[o] || a->end[o] <= a->begin[s]);
    if (!good)
      return sn_fail(err, SN_E_ARGUMENT, "span %d, columns [%lld, %lld): must lie in %lld columns and overlap no other", s,
                     (long long)a->begin[s], (long long)a->end[s], (long long)columns);
  }
  return SN_OK;
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (sn_is_present(&call->in[1])) SN_TRY(sn_rule_vector(call, 1, "fill", sn_tensor_columns(x), err));
  SN_TRY(check_spans(a, sn_tensor_columns(x), sn_is_present(&call->in[1]), err));
  SN_TRY(sn_row_index_rule(a->index, a->n_out, sn_tensor_rows(x), err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_2d(&call->out[0], a->n_out, sn_gather_columns(a, sn_tensor_columns(x)), a->out_dtype);
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
#define ROWS(list, n, dtype) {.index = (list), .n_out = (n), .out_dtype = (dtype)}
static const sn_gather_rows_attr by_unique = ROWS(unique, 7, SN_BF16), by_repeated = ROWS(repeated, 13, SN_F32),
                                 by_filled = ROWS(filled, 11, SN_F32), by_filled_product = ROWS(filled, 11, SN_BF16),
                                 by_none = ROWS(unique, 0, SN_F32);
static const sn_gather_rows_attr spans_two = {repeated, 13, SN_BF16, 2, {9, 1}, {12, 6}},
                                 spans_three = {filled, 11, SN_F32, 3, {0, 1100, 1030}, {1027, 1111, 1033}};
static const sn_op_sample samples[] = {
    {.name = "unique_to_product", .attr = &by_unique, .n_in = 2, .in = {SN_S2(11, 13), SN_ABSENT}, .why_zero = "few rows"},
    {.name = "repeated", .attr = &by_repeated, .n_in = 2, .in = {SN_S2(5, 17), SN_ABSENT}},
    {.name = "filled", .attr = &by_filled, .n_in = 2, .in = {SN_S2B(5, 19), SN_S2(1, 19)}},
    {.name = "filled_same", .attr = &by_filled_product, .n_in = 2, .in = {SN_S2B(5, 3), SN_S1(3)}},
    {.name = "gaps_without_fill", .attr = &by_filled, .n_in = 2, .in = {SN_S2(5, 19), SN_ABSENT}},
    {.name = "above_chunk", .attr = &by_filled, .n_in = 2, .in = {SN_S2B(5, 1033), SN_S2(1, 1033)}},
    {.name = "spans", .attr = &spans_two, .n_in = 2, .in = {SN_S2B(5, 13), SN_ABSENT}},
    {.name = "spans_above_chunk", .attr = &spans_three, .n_in = 2, .in = {SN_S2(5, 1111), SN_ABSENT}},
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

sn_status sn_gather_spans(sn_tape *tape, sn_value **y, sn_value *x, const int32_t *index, int64_t n_out, int n_spans,
                          const int64_t *begin, const int64_t *end, sn_error *err) {
  sn_gather_rows_attr attr = {.index = index, .n_out = n_out, .out_dtype = x->tensor.dtype, .n_spans = n_spans};
  sn_value *in[2] = {x, NULL};
  for (int s = 0; s < n_spans && s < SN_GATHER_SPANS; s++) {
    attr.begin[s] = begin[s];
    attr.end[s] = end[s];
  }
  return sn_tape_record(tape, &sn_op_gather_rows, &attr, 2, in, 1, y, err);
}
