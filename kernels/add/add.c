#include "kernels/add/add.h"

#include "kernels/op_rules.h"

bool sn_add_is_broadcast(const sn_op_call *call) {
  return sn_tensor_rows(&call->in[0]) != sn_tensor_rows(&call->in[1]);
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "a", err));
  SN_TRY(sn_rule_float(call, 1, "b", err));
  int64_t columns = sn_tensor_columns(&call->in[0]);
  bool is_row = sn_tensor_rows(&call->in[1]) == 1 && sn_tensor_columns(&call->in[1]) == columns;
  if (!is_row) SN_TRY(sn_rule_same_shape(call, 1, "b", 0, "a (or (C) or (1, C))", err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return backward && !sn_add_is_broadcast(call) ? 0.0 : (double)sn_tensor_count(&call->in[0]);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t n = sn_tensor_count(&call->in[0]), period = sn_tensor_count(&call->in[1]);
  for (int64_t i = 0; i < n; i++)
    sn_put(&call->out[0], i, sn_tensor_get(&call->in[0], i) + sn_tensor_get(&call->in[1], i % period), false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  int64_t n = sn_tensor_count(&call->in[0]), period = sn_tensor_count(&call->in[1]);
  for (int64_t i = 0; i < n && call->din[0].data; i++)
    sn_put(&call->din[0], i, sn_tensor_get(&call->dout[0], i), call->acc[0]);
  for (int64_t c = 0; c < period && call->din[1].data; c++) {
    double sum = 0;
    for (int64_t i = c; i < n; i += period) sum += sn_tensor_get(&call->dout[0], i);
    sn_put(&call->din[1], c, sum, call->acc[1]);
  }
  return SN_OK;
}

const sn_op_impl sn_add_ref = {.name = "ref",
                               .device = SN_DEVICE_CPU,
                               .supports = sn_supports_always,
                               .forward = ref_forward,
                               .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_add_cpu, &sn_add_ref, NULL};

static const sn_op_sample samples[] = {
    {.name = "residual", .n_in = 2, .in = {SN_S2(7, 13), SN_S2B(7, 13)}},
    {.name = "product", .n_in = 2, .in = {SN_S2B(5, 11), SN_S2B(5, 11)}},
    {.name = "same_above_block", .n_in = 2, .in = {SN_S2(5, 3299), SN_S2(5, 3299)}},
    {.name = "row", .n_in = 2, .in = {SN_S2(37, 19), SN_S1(19)}},
    {.name = "row_to_product", .n_in = 2, .in = {SN_S2B(65, 19), SN_S2(1, 19)}},
    {.name = "row_above_chunk", .n_in = 2, .in = {SN_S2(33, 1027), SN_S2B(1, 1027)}},
    {.name = "one_row", .n_in = 2, .in = {SN_S2(1, 19), SN_S1(19)}},
    {.name = "no_rows", .n_in = 2, .in = {SN_S2(0, 8), SN_S1(8)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_add = {
    .name = "add",
    .summary = "y = a + b, b of a's shape or one row for all rows",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 3u,
    .unread_in = 3u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_add(sn_tape *tape, sn_value **y, sn_value *a, sn_value *b, sn_error *err) {
  sn_value *in[2] = {a, b};
  return sn_tape_record(tape, &sn_op_add, NULL, 2, in, 1, y, err);
}
