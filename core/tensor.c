#include "core/tensor.h"

#include <assert.h>
#include <stddef.h>

#include "core/bf16.h"

static const struct {
  int64_t size;
  const char *name;
} DTYPES[] = {
    [SN_F32] = {4, "f32"}, [SN_BF16] = {2, "bf16"}, [SN_F64] = {8, "f64"},
    [SN_I32] = {4, "i32"}, [SN_I64] = {8, "i64"},   [SN_U8] = {1, "u8"},
};

int64_t sn_dtype_size(sn_dtype dtype) { return DTYPES[dtype].size; }
const char *sn_dtype_name(sn_dtype dtype) { return DTYPES[dtype].name; }

int64_t sn_tensor_rows(const sn_tensor *tensor) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < tensor->n_dims; i++) rows *= tensor->shape[i];
  return rows;
}

int64_t sn_tensor_columns(const sn_tensor *tensor) {
  return tensor->n_dims == 0 ? 1 : tensor->shape[tensor->n_dims - 1];
}

int64_t sn_tensor_count(const sn_tensor *tensor) { return sn_tensor_rows(tensor) * sn_tensor_columns(tensor); }
int64_t sn_tensor_bytes(const sn_tensor *tensor) { return sn_tensor_count(tensor) * sn_dtype_size(tensor->dtype); }

bool sn_tensor_same_shape(const sn_tensor *a, const sn_tensor *b) {
  if (a->n_dims != b->n_dims) return false;
  for (int32_t i = 0; i < a->n_dims; i++) {
    if (a->shape[i] != b->shape[i]) return false;
  }
  return true;
}

sn_tensor sn_tensor_1d(void *data, sn_dtype dtype, int64_t n) {
  return (sn_tensor){.data = data, .shape = {n, 1, 1, 1}, .n_dims = 1, .dtype = dtype, .param = NULL};
}

sn_tensor sn_tensor_2d(void *data, sn_dtype dtype, int64_t rows, int64_t columns) {
  return (sn_tensor){.data = data, .shape = {rows, columns, 1, 1}, .n_dims = 2, .dtype = dtype, .param = NULL};
}

double sn_tensor_get(const sn_tensor *tensor, int64_t index) {
  switch (tensor->dtype) {
    case SN_F32: return (double)((const float *)tensor->data)[index];
    case SN_BF16: return (double)sn_bf16_to_f32(((const uint16_t *)tensor->data)[index]);
    case SN_F64: return ((const double *)tensor->data)[index];
    default: assert(!"sn_tensor_get is for floating dtypes"); return 0.0;
  }
}

void sn_tensor_set(const sn_tensor *tensor, int64_t index, double value) {
  switch (tensor->dtype) {
    case SN_F32: ((float *)tensor->data)[index] = (float)value; break;
    case SN_BF16: ((uint16_t *)tensor->data)[index] = sn_f32_to_bf16((float)value); break;
    case SN_F64: ((double *)tensor->data)[index] = value; break;
    default: assert(!"sn_tensor_set is for floating dtypes"); break;
  }
}
