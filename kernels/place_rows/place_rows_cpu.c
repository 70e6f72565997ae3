#include <string.h>

#include "kernels/op_rules.h"
#include "kernels/place_rows/place_rows.h"
#include "kernels/row_index.h"

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_place_rows_attr *a = call->attr;
  for (int p = 0; p < a->n_sources; p++)
    SN_TRY(sn_row_index_check(a->index[p], sn_tensor_rows(&call->in[p]), INT32_MIN, a->n_out, err));
  memset(call->out[0].data, 0, (size_t)sn_tensor_bytes(&call->out[0]));
  for (int p = 0; p < a->n_sources; p++) {
    const int64_t width = sn_tensor_columns(&call->in[p]);
    sn_row_add add = {.to = call->out[0],
                      .from = call->in[p],
                      .index = a->index[p],
                      .n = sn_tensor_rows(&call->in[p]),
                      .n_rows = a->n_out,
                      .columns = width,
                      .acc = true,
                      .spans = {.n = 1, .to = {a->column[p]}, .width = {width}},
                      .from_columns = width,
                      .to_columns = a->columns};
    sn_row_add_run(device, &add, call->scratch);
  }
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_place_rows_attr *a = call->attr;
  if (!sn_has_dout(call)) return SN_OK;
  for (int p = 0; p < a->n_sources; p++) {
    if (!call->din[p].data) continue;
    const int64_t rows = sn_tensor_rows(&call->in[p]), width = sn_tensor_columns(&call->in[p]);
    SN_TRY(sn_row_index_check(a->index[p], rows, INT32_MIN, a->n_out, err));
    sn_row_copy copy = {.to = call->din[p],
                        .from = call->dout[0],
                        .index = a->index[p],
                        .n = rows,
                        .columns = width,
                        .acc = call->acc[p],
                        .spans = {.n = 1, .from = {a->column[p]}, .width = {width}},
                        .from_columns = a->columns,
                        .to_columns = width};
    sn_row_copy_run(device, &copy);
  }
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  const sn_place_rows_attr *a = call->attr;
  int64_t most = 0;
  for (int p = 0; p < a->n_sources && !backward_pass; p++) {
    const int64_t bytes = sn_row_add_bytes(sn_tensor_rows(&call->in[p]), a->n_out, sn_tensor_columns(&call->in[p]));
    if (bytes > most) most = bytes;
  }
  return most;
}

const sn_op_impl sn_place_rows_cpu = {.name = "cpu",
                                      .device = SN_DEVICE_CPU,
                                      .supports = sn_supports_f32_bf16,
                                      .forward = forward,
                                      .backward = backward,
                                      .scratch = scratch};
