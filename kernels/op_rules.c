#include "kernels/op_rules.h"

#include <stdio.h>
#include <string.h>

static void shape_text(const sn_tensor *t, char text[96]) {
  int n = snprintf(text, 96, "%s (", sn_dtype_name(t->dtype));
  for (int d = 0; d < t->n_dims && d < SN_MAX_DIMS && n < 90; d++)
    n += snprintf(text + n, 96 - (size_t)n, d ? ", %lld" : "%lld", (long long)t->shape[d]);
  if (n < 95) snprintf(text + n, 96 - (size_t)n, ")");
}

sn_status sn_rule_float(const sn_op_call *call, int input, const char *name, sn_error *err) {
  const sn_tensor *t = &call->in[input];
  if (input < call->n_in && sn_is_present(t) && sn_is_float(t->dtype)) return SN_OK;
  char text[96];
  shape_text(t, text);
  return sn_fail(err, SN_E_ARGUMENT, "input %s must be a tensor of f32, bf16 or f64; it is %s",
                 name, input < call->n_in && sn_is_present(t) ? text : "absent");
}

sn_status sn_rule_dtype(const sn_op_call *call, int input, const char *name, sn_dtype dtype, sn_error *err) {
  const sn_tensor *t = &call->in[input];
  if (input < call->n_in && sn_is_present(t) && t->dtype == dtype) return SN_OK;
  char text[96];
  shape_text(t, text);
  return sn_fail(err, SN_E_ARGUMENT, "input %s must be a tensor of %s; it is %s", name,
                 sn_dtype_name(dtype), input < call->n_in && sn_is_present(t) ? text : "absent");
}

sn_status sn_rule_same_shape(const sn_op_call *call, int input, const char *name, int other, const char *other_name,
                             sn_error *err) {
  const sn_tensor *a = &call->in[input], *b = &call->in[other];
  if (sn_tensor_rows(a) == sn_tensor_rows(b) && sn_tensor_columns(a) == sn_tensor_columns(b)) return SN_OK;
  char text_a[96], text_b[96];
  shape_text(a, text_a);
  shape_text(b, text_b);
  return sn_fail(err, SN_E_ARGUMENT, "input %s must have the shape of %s, %s; it is %s", name,
                 other_name, text_b, text_a);
}

sn_status sn_rule_vector(const sn_op_call *call, int input, const char *name, int64_t n, sn_error *err) {
  SN_TRY(sn_rule_float(call, input, name, err));
  const sn_tensor *t = &call->in[input];
  if (sn_tensor_count(t) == n && (t->n_dims == 1 || (t->n_dims == 2 && t->shape[0] == 1))) return SN_OK;
  char text[96];
  shape_text(t, text);
  return sn_fail(err, SN_E_ARGUMENT, "input %s must have %lld values, (C) or (1, C); it is %s",
                 name, (long long)n, text);
}

sn_status sn_rule_out_dtype(const sn_op_call *call, sn_dtype dtype, sn_error *err) {
  if (sn_is_float(dtype)) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "the output's type must be f32, bf16 or f64; it is %s", sn_dtype_name(dtype));
}

void sn_shape_like(sn_tensor *t, const sn_tensor *shape, sn_dtype dtype) {
  memcpy(t->shape, shape->shape, sizeof t->shape);
  t->n_dims = shape->n_dims;
  t->dtype = dtype;
}

void sn_shape_scalar(sn_tensor *t, sn_dtype dtype) {
  for (int d = 0; d < SN_MAX_DIMS; d++) t->shape[d] = 1;
  t->n_dims = 0;
  t->dtype = dtype;
}

void sn_shape_1d(sn_tensor *t, int64_t n, sn_dtype dtype) {
  sn_shape_scalar(t, dtype);
  t->n_dims = 1;
  t->shape[0] = n;
}

void sn_shape_2d(sn_tensor *t, int64_t rows, int64_t columns, sn_dtype dtype) {
  sn_shape_scalar(t, dtype);
  t->n_dims = 2;
  t->shape[0] = rows;
  t->shape[1] = columns;
}

double sn_bytes_of_call(const sn_op_call *call, bool backward) {
  double bytes = 0;
  for (int i = 0; i < call->n_in; i++) {
    if (!sn_is_present(&call->in[i])) continue;
    double b = (double)sn_tensor_bytes(&call->in[i]);
    bytes += b;
    if (backward && (call->op->grad_inputs >> i & 1u)) bytes += b;
  }
  for (int i = 0; i < call->n_out; i++) bytes += (double)sn_tensor_bytes(&call->out[i]);
  return bytes;
}

void sn_zero_wanted(sn_op_call *call) {
  for (int i = 0; i < call->n_in; i++)
    if (call->din[i].data != NULL && !call->acc[i])
      memset(call->din[i].data, 0, (size_t)sn_tensor_bytes(&call->din[i]));
}

bool sn_has_dout(const sn_op_call *call) {
  if (call->dout[0].data != NULL) return true;
  sn_op_call copy = *call;
  sn_zero_wanted(&copy);
  return false;
}

bool sn_supports_f32_bf16(const sn_device *device, const sn_op_call *call, const char **why) {
  for (int i = 0; i < call->n_in; i++)
    if (sn_is_present(&call->in[i]) && call->in[i].dtype == SN_F64) {
      *why = "float64 is computed by the reference";
      return false;
    }
  return true;
}

bool sn_supports_always(const sn_device *device, const sn_op_call *call, const char **why) { return true; }
