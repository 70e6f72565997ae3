#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/layernorm/layernorm.h"
#include "kernels/op_rules.h"
#include "kernels/row_sums.h"

typedef struct layernorm_context {
  const sn_op_call *call;
  int64_t rows, columns, n_blocks;
  float *partial; /* backward: (n_blocks, 2, columns): dgamma, dbeta of each block of rows */
  bool want_parameters;
} layernorm_context;

SN_INLINE double row_sum(const sn_tensor *x, int64_t offset, int64_t n) {
  float buffer[SN_CHUNK];
  double total = 0;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *v = sn_load(x, offset + c, m, buffer);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < m; i++) sum += v[i];
    total += (double)sum;
  }
  return total;
}

SN_INLINE double row_sum_squares(const sn_tensor *x, int64_t offset, int64_t n, float mean) {
  float buffer[SN_CHUNK];
  double total = 0;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *v = sn_load(x, offset + c, m, buffer);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < m; i++) {
      float d = v[i] - mean;
      sum += d * d;
    }
    total += (double)sum;
  }
  return total;
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const layernorm_context *k = ctx;
  const sn_op_call *call = k->call;
  const sn_layernorm_attr *a = call->attr;
  const sn_tensor *x = &call->in[0], *gamma = &call->in[1], *beta = &call->in[2];
  int64_t n = k->columns, end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    double mean_d = row_sum(x, t * n, n) / (double)n;
    float mean = (float)mean_d;
    /* The rounding of the mean to fp32 shifts every deviation by the same amount: taken out of the variance again. */
    double shift = mean_d - (double)mean;
    double var = row_sum_squares(x, t * n, n, mean) / (double)n - shift * shift;
    float rstd = (float)(1.0 / sqrt((var > 0 ? var : 0) + a->eps));
    for (int64_t c = 0; c < n; c += SN_CHUNK) {
      float xb[SN_CHUNK], gb[SN_CHUNK], bb[SN_CHUNK], yb[SN_CHUNK];
      int64_t m = sn_min_i64(SN_CHUNK, n - c);
      const float *restrict v = sn_load(x, t * n + c, m, xb);
      float *restrict y = sn_target(&call->out[0], t * n + c, false, yb);
      if (gamma->data && beta->data) {
        const float *restrict g = sn_load(gamma, c, m, gb), *restrict b = sn_load(beta, c, m, bb);
        for (int64_t i = 0; i < m; i++) y[i] = (v[i] - mean) * rstd * g[i] + b[i];
      } else {
        for (int64_t i = 0; i < m; i++) y[i] = (v[i] - mean) * rstd;
        if (gamma->data) {
          const float *restrict g = sn_load(gamma, c, m, gb);
          for (int64_t i = 0; i < m; i++) y[i] *= g[i];
        }
        if (beta->data) {
          const float *restrict b = sn_load(beta, c, m, bb);
          for (int64_t i = 0; i < m; i++) y[i] += b[i];
        }
      }
      sn_commit(&call->out[0], t * n + c, m, false, y);
    }
    if (call->saved[0].data) ((float *)call->saved[0].data)[t] = mean;
    if (call->saved[1].data) ((float *)call->saved[1].data)[t] = rstd;
  }
}
SN_SIMD_VARIANTS(forward_body)

/* The two means that dx needs. */
SN_INLINE void row_means(const sn_op_call *call, int64_t offset, int64_t n, float mean, float rstd, float *mean_g,
                         float *mean_gx) {
  float xb[SN_CHUNK], db[SN_CHUNK], gb[SN_CHUNK];
  double sum_g = 0, sum_gx = 0;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *v = sn_load(&call->in[0], offset + c, m, xb), *dy = sn_load(&call->dout[0], offset + c, m, db);
    float s = 0, sx = 0;
    if (call->in[1].data) {
      const float *g = sn_load(&call->in[1], c, m, gb);
#pragma omp simd reduction(+ : s, sx)
      for (int64_t i = 0; i < m; i++) {
        float d = dy[i] * g[i];
        s += d;
        sx += d * ((v[i] - mean) * rstd);
      }
    } else {
#pragma omp simd reduction(+ : s, sx)
      for (int64_t i = 0; i < m; i++) {
        s += dy[i];
        sx += dy[i] * ((v[i] - mean) * rstd);
      }
    }
    sum_g += (double)s;
    sum_gx += (double)sx;
  }
  *mean_g = (float)(sum_g / (double)n);
  *mean_gx = (float)(sum_gx / (double)n);
}

SN_INLINE void row_backward(const layernorm_context *k, int64_t t, float *restrict dgamma, float *restrict dbeta) {
  const sn_op_call *call = k->call;
  int64_t n = k->columns;
  float mean = ((const float *)call->saved[0].data)[t], rstd = ((const float *)call->saved[1].data)[t];
  float mean_g = 0, mean_gx = 0;
  if (call->din[0].data) row_means(call, t * n, n, mean, rstd, &mean_g, &mean_gx);
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    float xb[SN_CHUNK], db[SN_CHUNK], gb[SN_CHUNK], out[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *restrict v = sn_load(&call->in[0], t * n + c, m, xb);
    const float *restrict dy = sn_load(&call->dout[0], t * n + c, m, db);
    if (k->want_parameters)
      for (int64_t i = 0; i < m; i++) {
        dgamma[c + i] += dy[i] * ((v[i] - mean) * rstd);
        dbeta[c + i] += dy[i];
      }
    if (!call->din[0].data) continue;
    float *restrict dx = sn_target(&call->din[0], t * n + c, call->acc[0], out);
    if (call->in[1].data) {
      const float *restrict g = sn_load(&call->in[1], c, m, gb);
      for (int64_t i = 0; i < m; i++) dx[i] = rstd * (dy[i] * g[i] - mean_g - (v[i] - mean) * rstd * mean_gx);
    } else {
      for (int64_t i = 0; i < m; i++) dx[i] = rstd * (dy[i] - mean_g - (v[i] - mean) * rstd * mean_gx);
    }
    sn_commit(&call->din[0], t * n + c, m, call->acc[0], dx);
  }
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const layernorm_context *k = ctx;
  float *dgamma = NULL, *dbeta = NULL;
  if (k->want_parameters) {
    dgamma = k->partial + block * 2 * k->columns;
    dbeta = dgamma + k->columns;
    memset(dgamma, 0, (size_t)(2 * k->columns) * sizeof(float));
  }
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) row_backward(k, t, dgamma, dbeta);
}
SN_SIMD_VARIANTS(backward_body)

SN_INLINE void join_body(void *ctx, int64_t block) {
  const layernorm_context *k = ctx;
  for (int which = 0; which < 2; which++)
    if (k->call->din[1 + which].data)
      sn_join_row_sums(k->partial + which * k->columns, k->n_blocks, 2 * k->columns, k->columns, block,
                       &k->call->din[1 + which], k->call->acc[1 + which]);
}
SN_SIMD_VARIANTS(join_body)

static layernorm_context make_context(const sn_op_call *call) {
  layernorm_context k = {.call = call, .rows = sn_tensor_rows(&call->in[0]), .columns = sn_tensor_columns(&call->in[0])};
  k.n_blocks = sn_count_blocks(k.rows, SN_ROW_BLOCK);
  k.partial = call->scratch;
  k.want_parameters = call->din[1].data != NULL || call->din[2].data != NULL;
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  layernorm_context k = make_context(call);
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.n_blocks, forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  layernorm_context k = make_context(call);
  int64_t n_join = k.want_parameters ? sn_count_blocks(k.columns, SN_JOIN_BLOCK) : 0;
  sn_run_blocks_then(device, sn_bytes_of_call(call, true), k.n_blocks, backward_body_for(device), n_join,
                     join_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (!backward_pass) return 0;
  return sn_count_blocks(sn_tensor_rows(&call->in[0]), SN_ROW_BLOCK) * 2 * sn_tensor_columns(&call->in[0]) *
         (int64_t)sizeof(float);
}

const sn_op_impl sn_layernorm_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_f32_bf16,
                                     .forward = forward,
                                     .backward = backward,
                                     .scratch = scratch};
