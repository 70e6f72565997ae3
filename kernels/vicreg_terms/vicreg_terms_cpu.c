#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/gemm/gemm_product.h"
#include "kernels/used_rows.h"
#include "kernels/vicreg_terms/vicreg_terms.h"

enum { WIDE = 64 }; /* columns of a block of centring: one block sees all rows */

typedef struct vicreg_context {
  const sn_op_call *call;
  const uint8_t *used;
  int64_t rows, d, n_used;
  float *centred;   /* (rows, d), 0 where a row is not used */
  float *matrix;    /* (d, d): covariances in forward, what multiplies the centred rows in backward */
  double *variance; /* (d) */
  double *squares;  /* one sum of each block of rows of the matrix */
  float by_variance, by_covariance;
} vicreg_context;

SN_INLINE void centre_body(void *ctx, int64_t block) {
  const vicreg_context *k = ctx;
  int64_t first = block * WIDE, m = sn_min_i64(WIDE, k->d - first);
  double mean[WIDE] = {0}, sum[WIDE] = {0}, n = k->n_used > 0 ? (double)k->n_used : 1.0;
  float xb[WIDE];
  for (int64_t i = 0; i < k->rows; i++) {
    if (!sn_row_is_used(k->used, i)) continue;
    const float *restrict x = sn_load(&k->call->in[0], i * k->d + first, m, xb);
    for (int64_t j = 0; j < m; j++) mean[j] += (double)x[j];
  }
  for (int64_t j = 0; j < m; j++) mean[j] /= n;
  for (int64_t i = 0; i < k->rows; i++) {
    float *restrict to = k->centred + i * k->d + first;
    if (sn_row_is_used(k->used, i)) {
      const float *restrict x = sn_load(&k->call->in[0], i * k->d + first, m, xb);
      for (int64_t j = 0; j < m; j++) {
        double v = (double)x[j] - mean[j];
        sum[j] += v * v;
        to[j] = (float)v;
      }
    } else {
      for (int64_t j = 0; j < m; j++) to[j] = 0.0f;
    }
  }
  for (int64_t j = 0; j < m; j++) k->variance[first + j] = k->n_used > 1 ? sum[j] / (double)(k->n_used - 1) : 0.0;
}
SN_SIMD_VARIANTS(centre_body)

/* Rows of the matrix: divides by n - 1, clears the diagonal, sums the squares. */
SN_INLINE void square_body(void *ctx, int64_t block) {
  const vicreg_context *k = ctx;
  float inverse = k->n_used > 1 ? (float)(1.0 / (double)(k->n_used - 1)) : 0.0f;
  double total = 0;
  for (int64_t c = block * SN_ROW_BLOCK; c < sn_min_i64(k->d, (block + 1) * SN_ROW_BLOCK); c++) {
    float *restrict v = k->matrix + c * k->d;
    double sum = 0;
    v[c] = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t e = 0; e < k->d; e++) {
      v[e] *= inverse;
      sum += (double)v[e] * (double)v[e];
    }
    total += sum;
  }
  k->squares[block] = total;
}
SN_SIMD_VARIANTS(square_body)

/* Rows of what multiplies the centred rows: covariances, and the variance's part on the diagonal. */
SN_INLINE void factor_body(void *ctx, int64_t block) {
  const vicreg_context *k = ctx;
  for (int64_t c = block * SN_ROW_BLOCK; c < sn_min_i64(k->d, (block + 1) * SN_ROW_BLOCK); c++) {
    const float *restrict from = sn_f32_at(&k->call->saved[1], c * k->d);
    float *restrict to = k->matrix + c * k->d, by = k->by_covariance;
    for (int64_t e = 0; e < k->d; e++) to[e] = by * from[e];
    to[c] = k->by_variance * sn_f32_at(&k->call->saved[0], 0)[c];
  }
}
SN_SIMD_VARIANTS(factor_body)

/* Scratch: variances, sums of blocks, centred rows, the matrix, panels. */
static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static int64_t doubles_bytes(int64_t d) { return aligned((d + sn_count_blocks(d, SN_ROW_BLOCK)) * (int64_t)sizeof(double)); }

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1];
  return doubles_bytes(d) + aligned(rows * d * 4) + aligned(d * d * 4) +
         (backward_pass ? sn_product_bytes(device, rows, d, d) : sn_product_bytes(device, d, d, rows));
}

static vicreg_context make_context(const sn_op_call *call, void **panels) {
  vicreg_context k = {.call = call, .used = sn_used_flags(call, 1), .rows = call->in[0].shape[0], .d = call->in[0].shape[1],
                      .variance = call->scratch};
  k.n_used = sn_count_used(k.used, k.rows);
  k.squares = k.variance + k.d;
  char *at = (char *)call->scratch + doubles_bytes(k.d);
  k.centred = (float *)(void *)at;
  at += aligned(k.rows * k.d * 4);
  k.matrix = (float *)(void *)at;
  *panels = at + aligned(k.d * k.d * 4);
  return k;
}

static void centre(sn_device *device, vicreg_context *k) {
  sn_run_blocks(device, 16.0 * (double)(k->rows * k->d), sn_count_blocks(k->d, WIDE), centre_body_for(device), k);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_vicreg_terms_attr *a = call->attr;
  void *panels;
  vicreg_context k = make_context(call, &panels);
  if (call->saved[1].data) k.matrix = call->saved[1].data;
  centre(device, &k);
  sn_product product = {.m = k.d, .n = k.d, .k = k.rows, .a = sn_product_operand(k.centred, SN_F32, k.d, false),
                        .b = sn_product_operand(k.centred, SN_F32, k.d, false), .c = k.matrix, .c_dtype = SN_F32};
  sn_product_run(device, &product, panels);
  int64_t n_blocks = sn_count_blocks(k.d, SN_ROW_BLOCK);
  sn_run_blocks(device, 8.0 * (double)(k.d * k.d), n_blocks, square_body_for(device), &k);
  double variance = 0, covariance = 0;
  for (int64_t b = 0; b < n_blocks; b++) covariance += k.squares[b];
  for (int64_t c = 0; c < k.d; c++) {
    double deviation = sqrt(k.variance[c] + a->eps), gap = k.n_used > 1 ? 1.0 - deviation : 0.0;
    if (!(gap <= 0)) variance += gap; /* NaN is passed on */
    if (call->saved[0].data) sn_f32_at(&call->saved[0], 0)[c] = gap <= 0 ? 0.0f : (float)(1.0 / deviation);
  }
  *(double *)call->out[0].data = 0.5 * variance / (double)k.d;
  *(double *)call->out[1].data = covariance / (double)k.d;
  *(double *)call->out[2].data = (double)k.n_used;
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!call->din[0].data) return SN_OK;
  void *panels;
  vicreg_context k = make_context(call, &panels);
  double divisor = k.n_used > 1 ? (double)k.d * (double)(k.n_used - 1) : 1.0;
  if (call->dout[0].data) k.by_variance = (float)(-0.5 / divisor * *(const double *)call->dout[0].data);
  if (call->dout[1].data) k.by_covariance = (float)(4.0 / divisor * *(const double *)call->dout[1].data);
  centre(device, &k);
  sn_run_blocks(device, 8.0 * (double)(k.d * k.d), sn_count_blocks(k.d, SN_ROW_BLOCK), factor_body_for(device), &k);
  sn_product product = {.m = k.rows, .n = k.d, .k = k.d, .a = sn_product_operand(k.centred, SN_F32, k.d, true),
                        .b = sn_product_operand(k.matrix, SN_F32, k.d, false), .c = call->din[0].data,
                        .c_dtype = call->din[0].dtype, .acc = call->acc[0]};
  sn_product_run(device, &product, panels);
  return SN_OK;
}

const sn_op_impl sn_vicreg_terms_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_f32_bf16,
                                        .forward = forward,
                                        .backward = backward,
                                        .scratch = scratch};
