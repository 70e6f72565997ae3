#include "kernels/embedding/embedding.h"

#include "kernels/op_rules.h"
#include "kernels/row_index.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_embedding_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "table", err));
  SN_TRY(sn_row_index_rule(a->ids, a->n, sn_tensor_rows(&call->in[0]), err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_2d(&call->out[0], a->n, sn_tensor_columns(&call->in[0]), a->out_dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return backward ? (double)sn_tensor_count(&call->out[0]) : 0.0;
}

static double bytes(const sn_op_call *call, bool backward) { return 2.0 * (double)sn_tensor_bytes(&call->out[0]); }

static sn_status check(const sn_op_call *call, sn_error *err) {
  const sn_embedding_attr *a = call->attr;
  return sn_row_index_check(a->ids, a->n, 0, sn_tensor_rows(&call->in[0]), err);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_embedding_attr *a = call->attr;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(check(call, err));
  for (int64_t i = 0; i < a->n; i++)
    for (int64_t c = 0; c < columns; c++)
      sn_put(&call->out[0], i * columns + c, sn_tensor_get(&call->in[0], a->ids[i] * columns + c), false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_embedding_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(check(call, err));
  for (int64_t v = 0; v < rows; v++)
    for (int64_t c = 0; c < columns; c++) {
      double sum = 0;
      for (int64_t i = 0; i < a->n; i++)
        if (a->ids[i] == v) sum += sn_tensor_get(&call->dout[0], i * columns + c);
      sn_put(&call->din[0], v * columns + c, sum, call->acc[0]);
    }
  return SN_OK;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_embedding_attr *a = call->attr;
  SN_TRY(check(call, err));
  sn_row_copy copy = {.to = call->out[0],
                      .from = call->in[0],
                      .index = a->ids,
                      .n = a->n,
                      .columns = sn_tensor_columns(&call->in[0])};
  sn_row_copy_run(device, &copy);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_embedding_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  SN_TRY(check(call, err));
  sn_row_add add = {.to = call->din[0],
                    .from = call->dout[0],
                    .index = a->ids,
                    .n = a->n,
                    .n_rows = sn_tensor_rows(&call->in[0]),
                    .columns = sn_tensor_columns(&call->in[0]),
                    .acc = call->acc[0]};
  sn_row_add_run(device, &add, call->scratch);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  const sn_embedding_attr *a = call->attr;
  if (!backward_pass) return 0;
  return sn_row_add_bytes(a->n, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]));
}

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  const sn_embedding_attr *a = call->attr;
  if (a->out_dtype != SN_F64) return sn_supports_f32_bf16(device, call, why);
  *why = "float64 is computed by the reference";
  return false;
}

const sn_op_impl sn_embedding_ref = {.name = "ref",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_always,
                                     .forward = ref_forward,
                                     .backward = ref_backward};
const sn_op_impl sn_embedding_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = supports,
                                     .forward = forward,
                                     .backward = backward,
                                     .scratch = scratch};

static const sn_op_impl *const impls[] = {&sn_embedding_cpu, &sn_embedding_ref, NULL};

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_embedding_attr *a = attr;
  a->out_dtype = sn_retype(a->out_dtype, residual, product);
}

static const int32_t ids[9] = {4, 0, 3, 3, 6, 0, 1, 3, 5};
static const sn_embedding_attr to_residual = {ids, 9, SN_F32}, to_product = {ids, 9, SN_BF16}, none = {ids, 0, SN_F32};
static const sn_op_sample samples[] = {
    {.name = "repeated", .attr = &to_residual, .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "to_product", .attr = &to_product, .n_in = 1, .in = {SN_S2(7, 1031)}},
    {.name = "none", .attr = &none, .n_in = 1, .in = {SN_S2(7, 3)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_embedding = {
    .name = "embedding",
    .summary = "y[i] = table[ids[i]]",
    .attr_size = sizeof(sn_embedding_attr),
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .retype = retype,
    .samples = samples,
};

sn_status sn_embedding(sn_tape *tape, sn_value **y, sn_value *table, const int32_t *token_ids, int64_t n, sn_error *err) {
  sn_embedding_attr attr = {.ids = token_ids, .n = n, .out_dtype = sn_tape_residual(tape)};
  return sn_tape_record(tape, &sn_op_embedding, &attr, 1, &table, 1, y, err);
}
