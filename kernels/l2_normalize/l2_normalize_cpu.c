#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/l2_normalize/l2_normalize.h"
#include "kernels/op_rules.h"

typedef struct l2_context {
  const sn_op_call *call;
  int64_t rows, columns;
} l2_context;

/* sum of a * b over a row, in double. */
SN_INLINE double row_dot(const sn_tensor *a, const sn_tensor *b, int64_t at, int64_t n) {
  float ab[SN_CHUNK], bb[SN_CHUNK];
  double total = 0;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *u = sn_load(a, at + c, m, ab), *v = sn_load(b, at + c, m, bb);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < m; i++) sum += (double)u[i] * (double)v[i];
    total += sum;
  }
  return total;
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const l2_context *k = ctx;
  const sn_l2_normalize_attr *a = k->call->attr;
  float xb[SN_CHUNK], yb[SN_CHUNK];
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    double divisor = fmax(sqrt(row_dot(&k->call->in[0], &k->call->in[0], t * k->columns, k->columns)), a->eps);
    float inverse = (float)(1.0 / divisor);
    for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, k->columns - c), at = t * k->columns + c;
      const float *restrict x = sn_load(&k->call->in[0], at, m, xb);
      float *restrict y = sn_target(&k->call->out[0], at, false, yb);
      for (int64_t i = 0; i < m; i++) y[i] = x[i] * inverse;
      sn_commit(&k->call->out[0], at, m, false, y);
    }
    if (k->call->saved[0].data) ((float *)k->call->saved[0].data)[t] = (float)divisor;
  }
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const l2_context *k = ctx;
  const sn_l2_normalize_attr *a = k->call->attr;
  float xb[SN_CHUNK], db[SN_CHUNK], out[SN_CHUNK];
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    float divisor = ((const float *)k->call->saved[0].data)[t], inverse = 1.0f / divisor, along = 0.0f;
    if (divisor > (float)a->eps)
      along = (float)(row_dot(&k->call->in[0], &k->call->dout[0], t * k->columns, k->columns) /
                      ((double)divisor * (double)divisor));
    for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, k->columns - c), at = t * k->columns + c;
      const float *restrict x = sn_load(&k->call->in[0], at, m, xb), *restrict dy = sn_load(&k->call->dout[0], at, m, db);
      float *restrict dx = sn_target(&k->call->din[0], at, k->call->acc[0], out);
      for (int64_t i = 0; i < m; i++) dx[i] = (dy[i] - x[i] * along) * inverse;
      sn_commit(&k->call->din[0], at, m, k->call->acc[0], dx);
    }
  }
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  l2_context k = {call, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0])};
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.rows, SN_ROW_BLOCK), forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  l2_context k = {call, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0])};
  sn_run_blocks(device, sn_bytes_of_call(call, true), sn_count_blocks(k.rows, SN_ROW_BLOCK), backward_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_l2_normalize_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_f32_bf16,
                                        .forward = forward,
                                        .backward = backward};
