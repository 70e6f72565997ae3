#include "kernels/place_rows/place_rows.h"

#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_place_rows_attr *a = call->attr;
  if (a->n_sources < 1 || a->n_sources > SN_PLACE_SOURCES || call->n_in != a->n_sources || a->n_out < 0 || a->columns < 1)
    return sn_fail(err, SN_E_ARGUMENT, "expected 1 to %d sources and an output of columns; found %d of %d sources, (%lld, %lld)",
                   SN_PLACE_SOURCES, call->n_in, a->n_sources, (long long)a->n_out, (long long)a->columns);
  for (int p = 0; p < a->n_sources; p++) {
    SN_TRY(sn_rule_dtype(call, p, "x", call->in[0].dtype, err));
    SN_TRY(sn_rule_float(call, p, "x", err));
    SN_TRY(sn_row_index_rule(a->index[p], sn_tensor_rows(&call->in[p]), a->n_out, err));
    const int64_t width = sn_tensor_columns(&call->in[p]);
    if (a->column[p] < 0 || a->column[p] > a->columns - width)
      return sn_fail(err, SN_E_ARGUMENT, "source %d: %lld columns from column %lld on do not fit into %lld", p,
                     (long long)width, (long long)a->column[p], (long long)a->columns);
  }
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_2d(&call->out[0], a->n_out, a->columns, call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  double n = 0;
  for (int p = 0; p < call->n_in; p++) n += (double)sn_tensor_count(&call->in[p]);
  return backward ? 0.0 : n;
}

static const sn_op_impl *const impls[] = {&sn_place_rows_cpu, &sn_place_rows_ref, NULL};

static const int32_t first[5] = {6, 2, 0, 5, 1}, second[7] = {1, 0, -1, 2, 6, -2, 3}, third[2] = {4, 3};
static const int32_t repeated[5] = {1, 0, 1, 1, 2};
static const sn_place_rows_attr one = {1, {first}, {0}, 7, 13}, two = {2, {first, second}, {0, 9}, 7, 16},
                                three = {3, {first, second, third}, {0, 1029, 0}, 7, 2058},
                                overlapping = {2, {repeated, first}, {2, 0}, 7, 6}, none = {1, {first}, {0}, 3, 4};
static const sn_op_sample samples[] = {
    {.name = "one", .attr = &one, .n_in = 1, .in = {SN_S2B(5, 13)}},
    {.name = "side_by_side", .attr = &two, .n_in = 2, .in = {SN_S2B(5, 9), SN_S2B(7, 7)}},
    {.name = "above_chunk", .attr = &three, .n_in = 3, .in = {SN_S2(5, 1029), SN_S2(7, 1029), SN_S2(2, 2058)}},
    {.name = "overlapping", .attr = &overlapping, .n_in = 2, .in = {SN_S2(5, 3), SN_S2(5, 6)}},
    {.name = "none", .attr = &none, .n_in = 1, .in = {SN_S2(0, 4)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_place_rows = {
    .name = "place_rows",
    .summary = "y = 0, then y[index_p[i], column_p + c] += x_p[i, c] for each source p",
    .attr_size = sizeof(sn_place_rows_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 15u,
    .unread_in = 15u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_place_rows(sn_tape *tape, sn_value **y, sn_value *const *x, const sn_place_rows_attr *attr, sn_error *err) {
  return sn_tape_record(tape, &sn_op_place_rows, attr, attr->n_sources, x, 1, y, err);
}
