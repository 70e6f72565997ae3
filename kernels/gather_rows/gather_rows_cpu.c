#include "kernels/gather_rows/gather_rows.h"
#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  const sn_gather_rows_attr *a = call->attr;
  if (a->out_dtype == SN_F64) {
    *why = "float64 is computed by the reference";
    return false;
  }
  return sn_supports_f32_bf16(device, call, why);
}

/* Spans between a row of x and a row of y; to_x: from y to x. */
static sn_row_spans read_spans(const sn_gather_rows_attr *a, bool to_x) {
  sn_row_spans spans = {.n = a->n_spans};
  int64_t at = 0;
  for (int s = 0; s < a->n_spans; s++) {
    spans.width[s] = a->end[s] - a->begin[s];
    spans.from[s] = to_x ? at : a->begin[s];
    spans.to[s] = to_x ? a->begin[s] : at;
    at += spans.width[s];
  }
  return spans;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  SN_TRY(sn_row_index_check(a->index, a->n_out, -2, sn_tensor_rows(&call->in[0]), err));
  sn_row_copy copy = {.to = call->out[0],
                      .from = call->in[0],
                      .fill = call->in[1],
                      .index = a->index,
                      .n = a->n_out,
                      .columns = sn_tensor_columns(&call->in[0]),
                      .spans = read_spans(a, false),
                      .from_columns = sn_tensor_columns(&call->in[0]),
                      .to_columns = sn_tensor_columns(&call->out[0])};
  sn_row_copy_run(device, &copy);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  if (!sn_has_dout(call)) return SN_OK;
  SN_TRY(sn_row_index_check(a->index, a->n_out, -2, sn_tensor_rows(&call->in[0]), err));
  sn_row_add add = {.to = call->din[0],
                    .from = call->dout[0],
                    .total = call->din[1],
                    .index = a->index,
                    .n = a->n_out,
                    .n_rows = sn_tensor_rows(&call->in[0]),
                    .columns = sn_tensor_columns(&call->in[0]),
                    .acc = call->acc[0],
                    .acc_total = call->acc[1],
                    .spans = read_spans(a, true),
                    .from_columns = sn_tensor_columns(&call->out[0]),
                    .to_columns = sn_tensor_columns(&call->in[0])};
  sn_row_add_run(device, &add, call->scratch);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  const sn_gather_rows_attr *a = call->attr;
  if (!backward_pass) return 0;
  return sn_row_add_bytes(a->n_out, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]));
}

const sn_op_impl sn_gather_rows_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = supports,
                                       .forward = forward,
                                       .backward = backward,
                                       .scratch = scratch};
