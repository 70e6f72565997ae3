#include "kernels/gather_rows/gather_rows.h"
#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status check(const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  return sn_row_index_check(a->index, a->n_out, -2, sn_tensor_rows(&call->in[0]), err);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  const sn_tensor *x = &call->in[0], *fill = &call->in[1];
  int64_t columns = sn_tensor_columns(x);
  SN_TRY(check(call, err));
  for (int64_t i = 0; i < a->n_out; i++)
    for (int64_t c = 0; c < columns; c++) {
      double value = 0;
      if (a->index[i] >= 0) value = sn_tensor_get(x, a->index[i] * columns + c);
      if (a->index[i] == -1 && fill->data) value = sn_tensor_get(fill, c);
      sn_put(&call->out[0], i * columns + c, value, false);
    }
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gather_rows_attr *a = call->attr;
  const sn_tensor *dy = &call->dout[0];
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  if (!sn_has_dout(call)) return SN_OK;
  SN_TRY(check(call, err));
  for (int64_t c = 0; c < columns; c++) {
    double dfill = 0;
    for (int64_t i = 0; i < a->n_out; i++)
      if (a->index[i] == -1) dfill += sn_tensor_get(dy, i * columns + c);
    if (call->din[1].data) sn_put(&call->din[1], c, dfill, call->acc[1]);
    for (int64_t r = 0; r < rows && call->din[0].data; r++) {
      double sum = 0;
      for (int64_t i = 0; i < a->n_out; i++)
        if (a->index[i] == r) sum += sn_tensor_get(dy, i * columns + c);
      sn_put(&call->din[0], r * columns + c, sum, call->acc[0]);
    }
  }
  return SN_OK;
}

const sn_op_impl sn_gather_rows_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
