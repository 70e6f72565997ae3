#include "kernels/gather_rows/gather_rows.h"

#include <string.h>

#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status check(const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  return sn_row_index_check(a->index, a->n_out, -2, sn_tensor_rows(&call->in[0]), err);
}

/* Column of x that column c of y holds. */
static int64_t source_column(const sn_gather_rows_attr *a, int64_t c) {
  for (int s = 0; s < a->n_spans; s++) {
    const int64_t width = a->end[s] - a->begin[s];
    if (c < width) return a->begin[s] + c;
    c -= width;
  }
  return c;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  const sn_tensor *x = &call->in[0], *fill = &call->in[1];
  int64_t columns = sn_tensor_columns(x), width = sn_tensor_columns(&call->out[0]);
  SN_TRY(check(call, err));
  for (int64_t i = 0; i < a->n_out; i++)
    for (int64_t c = 0; c < width; c++) {
      double value = 0;
      if (a->index[i] >= 0) value = sn_tensor_get(x, a->index[i] * columns + source_column(a, c));
      if (a->index[i] == -1 && fill->data) value = sn_tensor_get(fill, c);
      sn_put(&call->out[0], i * width + c, value, false);
    }
  return SN_OK;
}

/* dx of the column that column c of y holds. */
static void backward_column(const sn_op_call *call, int64_t c, int64_t width) {
  const sn_gather_rows_attr *a = call->attr;
  const int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (int64_t i = 0; i < a->n_out; i++)
      if (a->index[i] == r) sum += sn_tensor_get(&call->dout[0], i * width + c);
    sn_put(&call->din[0], r * columns + source_column(a, c), sum, call->acc[0]);
  }
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  const int64_t width = sn_tensor_columns(&call->out[0]);
  if (!sn_has_dout(call)) return SN_OK;
  SN_TRY(check(call, err));
  if (call->din[0].data && a->n_spans > 0 && !call->acc[0])
    memset(call->din[0].data, 0, (size_t)sn_tensor_bytes(&call->din[0]));
  for (int64_t c = 0; c < width; c++) {
    double dfill = 0;
    for (int64_t i = 0; i < a->n_out; i++)
      if (a->index[i] == -1) dfill += sn_tensor_get(&call->dout[0], i * width + c);
    if (call->din[1].data) sn_put(&call->din[1], c, dfill, call->acc[1]);
    if (call->din[0].data) backward_column(call, c, width);
  }
  return SN_OK;
}

const sn_op_impl sn_gather_rows_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
