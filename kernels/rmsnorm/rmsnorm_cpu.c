#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/op_rules.h"
#include "kernels/rmsnorm/rmsnorm.h"
#include "kernels/row_sums.h"

typedef struct rmsnorm_context {
  const sn_op_call *call;
  int64_t rows, columns, n_blocks;
  float *partial; /* backward: (n_blocks, columns) */
} rmsnorm_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const rmsnorm_context *k = ctx;
  const sn_op_call *call = k->call;
  const sn_rmsnorm_attr *a = call->attr;
  int64_t n = k->columns, end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  float xb[SN_CHUNK], gb[SN_CHUNK], yb[SN_CHUNK];
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    double squares = 0;
    for (int64_t c = 0; c < n; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, n - c);
      const float *v = sn_load(&call->in[0], t * n + c, m, xb);
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < m; i++) sum += v[i] * v[i];
      squares += (double)sum;
    }
    float rstd = (float)(1.0 / sqrt(squares / (double)n + a->eps));
    for (int64_t c = 0; c < n; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, n - c);
      const float *restrict v = sn_load(&call->in[0], t * n + c, m, xb);
      float *restrict y = sn_target(&call->out[0], t * n + c, false, yb);
      if (call->in[1].data) {
        const float *restrict g = sn_load(&call->in[1], c, m, gb);
        for (int64_t i = 0; i < m; i++) y[i] = v[i] * rstd * g[i];
      } else {
        for (int64_t i = 0; i < m; i++) y[i] = v[i] * rstd;
      }
      sn_commit(&call->out[0], t * n + c, m, false, y);
    }
    if (call->saved[0].data) ((float *)call->saved[0].data)[t] = rstd;
  }
}
SN_SIMD_VARIANTS(forward_body)

/* g = dy * gamma of a chunk. */
SN_INLINE const float *scaled_gradient(const sn_op_call *call, int64_t at, int64_t c, int64_t m, float *db, float *gb,
                                       float *product) {
  const float *restrict dy = sn_load(&call->dout[0], at, m, db);
  if (!call->in[1].data) return dy;
  const float *restrict g = sn_load(&call->in[1], c, m, gb);
  for (int64_t i = 0; i < m; i++) product[i] = dy[i] * g[i];
  return product;
}

SN_INLINE void row_dx(const rmsnorm_context *k, int64_t t, float rstd) {
  const sn_op_call *call = k->call;
  int64_t n = k->columns;
  float xb[SN_CHUNK], db[SN_CHUNK], gb[SN_CHUNK], pb[SN_CHUNK], out[SN_CHUNK];
  double total = 0;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *v = sn_load(&call->in[0], t * n + c, m, xb);
    const float *g = scaled_gradient(call, t * n + c, c, m, db, gb, pb);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < m; i++) sum += g[i] * (v[i] * rstd);
    total += (double)sum;
  }
  float mean = (float)(total / (double)n);
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *restrict v = sn_load(&call->in[0], t * n + c, m, xb);
    const float *restrict g = scaled_gradient(call, t * n + c, c, m, db, gb, pb);
    float *restrict dx = sn_target(&call->din[0], t * n + c, call->acc[0], out);
    for (int64_t i = 0; i < m; i++) dx[i] = rstd * (g[i] - v[i] * rstd * mean);
    sn_commit(&call->din[0], t * n + c, m, call->acc[0], dx);
  }
}

SN_INLINE void row_dgamma(const rmsnorm_context *k, int64_t t, float rstd, float *restrict dgamma) {
  float xb[SN_CHUNK], db[SN_CHUNK];
  for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, k->columns - c);
    const float *restrict v = sn_load(&k->call->in[0], t * k->columns + c, m, xb);
    const float *restrict dy = sn_load(&k->call->dout[0], t * k->columns + c, m, db);
    for (int64_t i = 0; i < m; i++) dgamma[c + i] += dy[i] * (v[i] * rstd);
  }
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const rmsnorm_context *k = ctx;
  float *dgamma = k->partial + block * k->columns;
  if (k->call->din[1].data) memset(dgamma, 0, (size_t)k->columns * sizeof(float));
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    float rstd = ((const float *)k->call->saved[0].data)[t];
    if (k->call->din[0].data) row_dx(k, t, rstd);
    if (k->call->din[1].data) row_dgamma(k, t, rstd, dgamma);
  }
}
SN_SIMD_VARIANTS(backward_body)

SN_INLINE void join_body(void *ctx, int64_t block) {
  const rmsnorm_context *k = ctx;
  sn_join_row_sums(k->partial, k->n_blocks, k->columns, k->columns, block, &k->call->din[1], k->call->acc[1]);
}
SN_SIMD_VARIANTS(join_body)

static rmsnorm_context make_context(const sn_op_call *call) {
  rmsnorm_context k = {call, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]), 0, call->scratch};
  k.n_blocks = sn_count_blocks(k.rows, SN_ROW_BLOCK);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  rmsnorm_context k = make_context(call);
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.n_blocks, forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  rmsnorm_context k = make_context(call);
  sn_run_blocks_then(device, sn_bytes_of_call(call, true), k.n_blocks, backward_body_for(device),
                     call->din[1].data ? sn_count_blocks(k.columns, SN_JOIN_BLOCK) : 0, join_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (!backward_pass) return 0;
  return sn_count_blocks(sn_tensor_rows(&call->in[0]), SN_ROW_BLOCK) * sn_tensor_columns(&call->in[0]) *
         (int64_t)sizeof(float);
}

const sn_op_impl sn_rmsnorm_cpu = {.name = "cpu",
                                   .device = SN_DEVICE_CPU,
                                   .supports = sn_supports_f32_bf16,
                                   .forward = forward,
                                   .backward = backward,
                                   .scratch = scratch};
