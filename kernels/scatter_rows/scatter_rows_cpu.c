#include "kernels/op_rules.h"
#include "kernels/row_index.h"
#include "kernels/scatter_rows/scatter_rows.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  const sn_scatter_rows_attr *a = call->attr;
  if (a->out_dtype == SN_F64) {
    *why = "float64 is computed by the reference";
    return false;
  }
  return sn_supports_f32_bf16(device, call, why);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_scatter_rows_attr *a = call->attr;
  int64_t rows = sn_tensor_rows(&call->in[0]);
  SN_TRY(sn_row_index_check(a->index, rows, -1, a->n_out, err));
  sn_row_add add = {.to = call->out[0],
                    .from = call->in[0],
                    .index = a->index,
                    .n = rows,
                    .n_rows = a->n_out,
                    .columns = sn_tensor_columns(&call->in[0])};
  sn_row_add_run(device, &add, call->scratch);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_scatter_rows_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t rows = sn_tensor_rows(&call->in[0]);
  SN_TRY(sn_row_index_check(a->index, rows, -1, a->n_out, err));
  sn_row_copy copy = {.to = call->din[0],
                      .from = call->dout[0],
                      .index = a->index,
                      .n = rows,
                      .columns = sn_tensor_columns(&call->in[0]),
                      .acc = call->acc[0]};
  sn_row_copy_run(device, &copy);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  const sn_scatter_rows_attr *a = call->attr;
  if (backward_pass) return 0;
  return sn_row_add_bytes(sn_tensor_rows(&call->in[0]), a->n_out, sn_tensor_columns(&call->in[0]));
}

const sn_op_impl sn_scatter_rows_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = supports,
                                        .forward = forward,
                                        .backward = backward,
                                        .scratch = scratch};
