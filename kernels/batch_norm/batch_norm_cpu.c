#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/batch_norm/batch_norm.h"
#include "kernels/used_rows.h"

enum { WIDE = 64 }; /* columns of a block: one block sees all rows, so that nothing has to be joined */

typedef struct norm_context {
  const sn_op_call *call;
  const uint8_t *used;
  int64_t rows, columns, n_used;
} norm_context;

SN_INLINE float value_or(const sn_tensor *t, int64_t i, float otherwise) {
  if (!t->data) return otherwise;
  return t->dtype == SN_BF16 ? sn_bf16_to_f32(sn_bf16_at(t, 0)[i]) : sn_f32_at(t, 0)[i];
}

/* Means and 1 / deviations of m columns from `first` on. */
SN_INLINE void statistics(const norm_context *k, int64_t first, int64_t m, double *mean, double *rstd) {
  const sn_batch_norm_attr *a = k->call->attr;
  float xb[WIDE];
  double n = k->n_used > 0 ? (double)k->n_used : 1.0;
  for (int64_t j = 0; j < m; j++) mean[j] = rstd[j] = 0;
  for (int64_t t = 0; t < k->rows; t++) {
    if (!sn_row_is_used(k->used, t)) continue;
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + first, m, xb);
    for (int64_t j = 0; j < m; j++) mean[j] += (double)x[j];
  }
  for (int64_t j = 0; j < m; j++) mean[j] /= n;
  for (int64_t t = 0; t < k->rows; t++) {
    if (!sn_row_is_used(k->used, t)) continue;
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + first, m, xb);
    for (int64_t j = 0; j < m; j++) rstd[j] += ((double)x[j] - mean[j]) * ((double)x[j] - mean[j]);
  }
  for (int64_t j = 0; j < m; j++) rstd[j] = 1.0 / sqrt(rstd[j] / n + a->eps);
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const norm_context *k = ctx;
  int64_t first = block * WIDE, m = sn_min_i64(WIDE, k->columns - first);
  double mean[WIDE], rstd[WIDE];
  float center[WIDE], slope[WIDE], shift[WIDE], xb[WIDE], yb[WIDE];
  statistics(k, first, m, mean, rstd);
  for (int64_t j = 0; j < m; j++) {
    center[j] = (float)mean[j];
    slope[j] = (float)rstd[j] * value_or(&k->call->in[1], first + j, 1.0f);
    shift[j] = value_or(&k->call->in[2], first + j, 0.0f) - (float)(mean[j] - (double)center[j]) * slope[j];
  }
  for (int64_t t = 0; t < k->rows; t++) {
    int64_t at = t * k->columns + first;
    float *restrict y = sn_target(&k->call->out[0], at, false, yb);
    if (sn_row_is_used(k->used, t)) {
      const float *restrict x = sn_load(&k->call->in[0], at, m, xb);
      for (int64_t j = 0; j < m; j++) y[j] = (x[j] - center[j]) * slope[j] + shift[j];
    } else {
      for (int64_t j = 0; j < m; j++) y[j] = 0.0f;
    }
    sn_commit(&k->call->out[0], at, m, false, y);
  }
  for (int64_t j = 0; j < m && k->call->saved[0].data; j++) {
    sn_f32_at(&k->call->saved[0], first)[j] = (float)mean[j];
    sn_f32_at(&k->call->saved[1], first)[j] = (float)rstd[j];
  }
}
SN_SIMD_VARIANTS(forward_body)

/* dbeta and dgamma of m columns. */
SN_INLINE void gradient_sums(const norm_context *k, int64_t first, int64_t m, double *dbeta, double *dgamma) {
  const float *mean = sn_f32_at(&k->call->saved[0], first), *rstd = sn_f32_at(&k->call->saved[1], first);
  float xb[WIDE], db[WIDE];
  for (int64_t j = 0; j < m; j++) dbeta[j] = dgamma[j] = 0;
  for (int64_t t = 0; t < k->rows; t++) {
    if (!sn_row_is_used(k->used, t)) continue;
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + first, m, xb);
    const float *restrict dy = sn_load(&k->call->dout[0], t * k->columns + first, m, db);
    for (int64_t j = 0; j < m; j++) {
      dbeta[j] += (double)dy[j];
      dgamma[j] += (double)dy[j] * (double)((x[j] - mean[j]) * rstd[j]);
    }
  }
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const norm_context *k = ctx;
  int64_t first = block * WIDE, m = sn_min_i64(WIDE, k->columns - first);
  const float *mean = sn_f32_at(&k->call->saved[0], first), *rstd = sn_f32_at(&k->call->saved[1], first);
  double dbeta[WIDE], dgamma[WIDE], n = k->n_used > 0 ? (double)k->n_used : 1.0;
  float slope[WIDE], level[WIDE], along[WIDE], xb[WIDE], db[WIDE], out[WIDE];
  gradient_sums(k, first, m, dbeta, dgamma);
  for (int64_t j = 0; j < m; j++) {
    slope[j] = rstd[j] * value_or(&k->call->in[1], first + j, 1.0f);
    level[j] = (float)(dbeta[j] / n);
    along[j] = (float)(dgamma[j] / n) * rstd[j];
  }
  for (int64_t t = 0; t < k->rows && k->call->din[0].data; t++) {
    int64_t at = t * k->columns + first;
    float *restrict dx = sn_target(&k->call->din[0], at, k->call->acc[0], out);
    if (sn_row_is_used(k->used, t)) {
      const float *restrict x = sn_load(&k->call->in[0], at, m, xb), *restrict dy = sn_load(&k->call->dout[0], at, m, db);
      for (int64_t j = 0; j < m; j++) dx[j] = slope[j] * (dy[j] - level[j] - (x[j] - mean[j]) * along[j]);
    } else {
      for (int64_t j = 0; j < m; j++) dx[j] = 0.0f;
    }
    sn_commit(&k->call->din[0], at, m, k->call->acc[0], dx);
  }
  for (int64_t j = 0; j < m; j++) {
    if (k->call->din[1].data) sn_put(&k->call->din[1], first + j, dgamma[j], k->call->acc[1]);
    if (k->call->din[2].data) sn_put(&k->call->din[2], first + j, dbeta[j], k->call->acc[2]);
  }
}
SN_SIMD_VARIANTS(backward_body)

static norm_context make_context(const sn_op_call *call) {
  norm_context k = {call, sn_used_flags(call, 3), sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]), 0};
  k.n_used = sn_count_used(k.used, k.rows);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  norm_context k = make_context(call);
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.columns, WIDE), forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  norm_context k = make_context(call);
  sn_run_blocks(device, sn_bytes_of_call(call, true), sn_count_blocks(k.columns, WIDE), backward_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_batch_norm_cpu = {.name = "cpu",
                                      .device = SN_DEVICE_CPU,
                                      .supports = sn_supports_f32_bf16,
                                      .forward = forward,
                                      .backward = backward};
