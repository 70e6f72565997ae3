#include <string.h>

#include "kernels/op_rules.h"
#include "kernels/place_rows/place_rows.h"
#include "kernels/row_index.h"

static sn_status check(const sn_op_call *call, sn_error *err) {
  const sn_place_rows_attr *a = call->attr;
  for (int p = 0; p < a->n_sources; p++)
    SN_TRY(sn_row_index_check(a->index[p], sn_tensor_rows(&call->in[p]), INT32_MIN, a->n_out, err));
  return SN_OK;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_place_rows_attr *a = call->attr;
  SN_TRY(check(call, err));
  memset(call->out[0].data, 0, (size_t)sn_tensor_bytes(&call->out[0]));
  for (int p = 0; p < a->n_sources; p++) {
    const sn_tensor *x = &call->in[p];
    const int64_t rows = sn_tensor_rows(x), width = sn_tensor_columns(x);
    for (int64_t i = 0; i < rows; i++)
      for (int64_t c = 0; c < width && a->index[p][i] >= 0; c++)
        sn_put(&call->out[0], a->index[p][i] * a->columns + a->column[p] + c, sn_tensor_get(x, i * width + c), true);
  }
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_place_rows_attr *a = call->attr;
  if (!sn_has_dout(call)) return SN_OK;
  SN_TRY(check(call, err));
  for (int p = 0; p < a->n_sources; p++) {
    const int64_t rows = sn_tensor_rows(&call->in[p]), width = sn_tensor_columns(&call->in[p]);
    for (int64_t i = 0; i < rows && call->din[p].data; i++)
      for (int64_t c = 0; c < width; c++) {
        const int32_t r = a->index[p][i];
        sn_put(&call->din[p], i * width + c,
               r >= 0 ? sn_tensor_get(&call->dout[0], r * a->columns + a->column[p] + c) : 0.0, call->acc[p]);
      }
  }
  return SN_OK;
}

const sn_op_impl sn_place_rows_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
