#include "kernels/column_sums/column_sums.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_1d(&call->out[0], sn_tensor_columns(&call->in[0]), sn_statistics_dtype(call->in[0].dtype));
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return backward ? 0.0 : (double)sn_tensor_count(&call->in[0]);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  for (int64_t c = 0; c < columns; c++) {
    double sum = 0;
    for (int64_t t = 0; t < rows; t++) sum += sn_tensor_get(&call->in[0], t * columns + c);
    sn_put(&call->out[0], c, sum, false);
  }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t n = sn_tensor_count(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  for (int64_t i = 0; i < n; i++) sn_put(&call->din[0], i, sn_tensor_get(&call->dout[0], i % columns), call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_column_sums_ref = {.name = "ref",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_always,
                                       .forward = ref_forward,
                                       .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_column_sums_cpu, &sn_column_sums_ref, NULL};

static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "product", .n_in = 1, .in = {SN_S2B(37, 67)}},
    {.name = "above_blocks", .n_in = 1, .in = {SN_S2(65, 1025)}},
    {.name = "one_row", .n_in = 1, .in = {SN_S2(1, 5)}},
    {.name = "no_rows", .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_column_sums = {
    .name = "column_sums",
    .summary = "y[c] = sum over rows of x[t,c]",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_column_sums(sn_tape *tape, sn_value **y, sn_value *x, sn_error *err) {
  return sn_tape_record(tape, &sn_op_column_sums, NULL, 1, &x, 1, y, err);
}
