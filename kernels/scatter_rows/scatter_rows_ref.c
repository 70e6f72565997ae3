#include "kernels/op_rules.h"
#include "kernels/row_index.h"
#include "kernels/scatter_rows/scatter_rows.h"

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_scatter_rows_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  int64_t rows = sn_tensor_rows(x), columns = sn_tensor_columns(x);
  SN_TRY(sn_row_index_check(a->index, rows, -1, a->n_out, err));
  for (int64_t r = 0; r < a->n_out; r++)
    for (int64_t c = 0; c < columns; c++) {
      double sum = 0;
      for (int64_t i = 0; i < rows; i++)
        if (a->index[i] == r) sum += sn_tensor_get(x, i * columns + c);
      sn_put(&call->out[0], r * columns + c, sum, false);
    }
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_scatter_rows_attr *a = call->attr;
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  SN_TRY(sn_row_index_check(a->index, rows, -1, a->n_out, err));
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < columns; c++) {
      double dx = a->index[i] >= 0 ? sn_tensor_get(&call->dout[0], a->index[i] * columns + c) : 0.0;
      sn_put(&call->din[0], i * columns + c, dx, call->acc[0]);
    }
  return SN_OK;
}

const sn_op_impl sn_scatter_rows_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
