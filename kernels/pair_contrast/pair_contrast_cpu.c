#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/pair_contrast/pair_contrast.h"
#include "kernels/pair_logits.h"
#include "kernels/simd_math.h"

/* What a block of rows leaves: forward (sum, total, place of a bad weight or -1), backward (sum of dl * l). */
typedef struct block_sums {
  double sum, total;
  int64_t bad;
} block_sums;

typedef struct contrast_context {
  const sn_op_call *call;
  sn_pair_sizes s;
  float *logits;      /* (na, nb): forward fills them from the dots; backward reads */
  float *ddots;       /* (na, nb) [out] of backward */
  block_sums *blocks;
  double t, dsum;
} contrast_context;

/* Up to SN_CHUNK weights as fp32. */
SN_INLINE const float *load_weights(const sn_tensor *weight, int64_t at, int64_t n, float *buffer) {
  if (weight->dtype == SN_F32) return sn_f32_at(weight, at);
  const double *from = (const double *)weight->data + at;
  for (int64_t i = 0; i < n; i++) buffer[i] = (float)from[i];
  return buffer;
}

/* Scales a row's dots into logits; the largest of those that count. *bad: how many weights are not usable. */
SN_INLINE float row_largest(const contrast_context *k, int64_t row, int64_t *bad) {
  float *l = k->logits + row * k->s.nb, t = (float)k->t, largest = -INFINITY;
  int32_t wrong = 0;
  for (int64_t c = 0; c < k->s.nb; c += SN_CHUNK) {
    float wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->s.nb - c);
    const float *restrict w = load_weights(&k->call->in[2], row * k->s.nb + c, m, wb);
    float *restrict v = l + c;
#pragma omp simd reduction(max : largest) reduction(+ : wrong)
    for (int64_t j = 0; j < m; j++) {
      v[j] *= t;
      wrong += !(w[j] < INFINITY);
      float counted = w[j] >= 0.0f ? v[j] : -INFINITY;
      largest = counted > largest ? counted : largest;
    }
  }
  *bad = wrong;
  return largest;
}

/* sum of exp(l - largest), and of weight * (largest - l) and weight. */
SN_INLINE double row_sums(const contrast_context *k, int64_t row, float largest, double *below, double *total) {
  const float *l = k->logits + row * k->s.nb;
  double sum = 0;
  for (int64_t c = 0; c < k->s.nb; c += SN_CHUNK) {
    float wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->s.nb - c);
    const float *restrict w = load_weights(&k->call->in[2], row * k->s.nb + c, m, wb), *restrict v = l + c;
    float chunk = 0.0f;
    double low = 0, weights = 0;
#pragma omp simd reduction(+ : chunk)
    for (int64_t j = 0; j < m; j++) chunk += w[j] >= 0.0f ? sn_exp_f32(v[j] - largest) : 0.0f;
#pragma omp simd reduction(+ : low, weights)
    for (int64_t j = 0; j < m; j++) {
      double weight = w[j] > 0.0f ? (double)w[j] : 0.0, gap = w[j] > 0.0f ? (double)largest - (double)v[j] : 0.0;
      low += weight * gap;
      weights += weight;
    }
    sum += (double)chunk;
    *below += low;
    *total += weights;
  }
  return sum;
}

static int64_t place_of_bad(const sn_op_call *call, int64_t row, int64_t nb) {
  for (int64_t j = 0; j < nb; j++)
    if (!(sn_tensor_get(&call->in[2], row * nb + j) < INFINITY)) return row * nb + j;
  return row * nb; /* finite as float64, not as float32 */
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const contrast_context *k = ctx;
  block_sums out = {0, 0, -1};
  for (int64_t i = block * SN_ROW_BLOCK; i < sn_min_i64(k->s.na, (block + 1) * SN_ROW_BLOCK); i++) {
    int64_t bad;
    float largest = row_largest(k, i, &bad), log_sum = 0.0f;
    if (bad > 0 && out.bad < 0) out.bad = place_of_bad(k->call, i, k->s.nb);
    double below = 0, total = 0, sum = row_sums(k, i, largest, &below, &total);
    if (sum > 0 || isnan(sum)) {
      double exact = log(sum);
      log_sum = (float)exact;
      if (total > 0) out.sum += below + total * exact;
      out.total += total;
    } else {
      largest = 0.0f; /* everything is left out */
    }
    if (!k->call->saved[1].data) continue;
    float *statistics = sn_f32_at(&k->call->saved[1], 2 * i);
    statistics[0] = largest;
    statistics[1] = log_sum;
  }
  k->blocks[block] = out;
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE double row_weight(const contrast_context *k, int64_t row) {
  double total = 0;
  for (int64_t c = 0; c < k->s.nb; c += SN_CHUNK) {
    float wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->s.nb - c);
    const float *restrict w = load_weights(&k->call->in[2], row * k->s.nb + c, m, wb);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m; j++) sum += w[j] > 0.0f ? (double)w[j] : 0.0;
    total += sum;
  }
  return total;
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const contrast_context *k = ctx;
  double dscale = 0;
  for (int64_t i = block * SN_ROW_BLOCK; i < sn_min_i64(k->s.na, (block + 1) * SN_ROW_BLOCK); i++) {
    const float *statistics = sn_f32_at(&k->call->saved[1], 2 * i);
    float largest = statistics[0], log_sum = statistics[1], weight = (float)row_weight(k, i), dsum = (float)k->dsum;
    float t = (float)k->t;
    for (int64_t c = 0; c < k->s.nb; c += SN_CHUNK) {
      float wb[SN_CHUNK];
      int64_t m = sn_min_i64(SN_CHUNK, k->s.nb - c), at = i * k->s.nb + c;
      const float *restrict w = load_weights(&k->call->in[2], at, m, wb), *restrict v = k->logits + at;
      float *restrict g = k->ddots + at;
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < m; j++) {
        float p = sn_exp_f32((v[j] - largest) - log_sum);
        float dl = w[j] >= 0.0f ? dsum * (weight * p - w[j]) : 0.0f;
        sum += (double)dl * (double)v[j];
        g[j] = t * dl;
      }
      dscale += sum;
    }
  }
  k->blocks[block].sum = dscale;
}
SN_SIMD_VARIANTS(backward_body)

/* Scratch: sums of blocks, a matrix of pairs (logits where nothing is saved, ddots in backward), panels of the products. */
static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static int64_t blocks_bytes(sn_pair_sizes s) {
  return aligned(sn_count_blocks(s.na, SN_ROW_BLOCK) * (int64_t)sizeof(block_sums));
}
static int64_t matrix_bytes(sn_pair_sizes s) { return aligned(s.na * s.nb * (int64_t)sizeof(float)); }

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  sn_pair_sizes s = sn_pair_sizes_of(call);
  return blocks_bytes(s) + matrix_bytes(s) + sn_pair_product_bytes(device, call);
}

static contrast_context make_context(const sn_op_call *call) {
  const sn_pair_contrast_attr *a = call->attr;
  contrast_context k = {.call = call, .s = sn_pair_sizes_of(call), .blocks = call->scratch,
                        .t = sn_pair_scale(call, a->scale)};
  k.ddots = (float *)(void *)((char *)call->scratch + blocks_bytes(k.s));
  k.logits = call->saved[0].data ? call->saved[0].data : k.ddots;
  return k;
}

static void *panels_of(const contrast_context *k) { return (char *)k->ddots + matrix_bytes(k->s); }

static double work_of(const contrast_context *k) { return 12.0 * (double)k->s.na * (double)k->s.nb; }

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  contrast_context k = make_context(call);
  int64_t n_blocks = sn_count_blocks(k.s.na, SN_ROW_BLOCK);
  double sum = 0, total = 0;
  sn_pair_dots(device, call, k.logits, panels_of(&k));
  sn_run_blocks(device, work_of(&k), n_blocks, forward_body_for(device), &k);
  for (int64_t b = 0; b < n_blocks; b++) {
    if (k.blocks[b].bad >= 0) return sn_pair_contrast_bad_weight(call, k.blocks[b].bad, err);
    sum += k.blocks[b].sum;
    total += k.blocks[b].total;
  }
  *(double *)call->out[0].data = sum;
  *(double *)call->out[1].data = total;
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  contrast_context k = make_context(call);
  int64_t n_blocks = sn_count_blocks(k.s.na, SN_ROW_BLOCK);
  k.dsum = *(const double *)call->dout[0].data;
  sn_run_blocks(device, work_of(&k), n_blocks, backward_body_for(device), &k);
  sn_pair_gradient(device, call, k.ddots, panels_of(&k));
  if (!call->din[3].data) return SN_OK;
  double dscale = 0;
  for (int64_t b = 0; b < n_blocks; b++) dscale += k.blocks[b].sum;
  sn_put(&call->din[3], 0, dscale, call->acc[3]);
  return SN_OK;
}

const sn_op_impl sn_pair_contrast_cpu = {.name = "cpu",
                                         .device = SN_DEVICE_CPU,
                                         .supports = sn_pair_supports,
                                         .forward = forward,
                                         .backward = backward,
                                         .scratch = scratch};
