#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/pair_logits.h"
#include "kernels/pair_sigmoid/pair_sigmoid.h"
#include "kernels/simd_math.h"

/* What a block of rows leaves: forward (sum, total, place of a bad label or -1), backward (sum of dl * (l - b), sum of dl). */
typedef struct block_sums {
  double first, second;
  int64_t bad;
} block_sums;

typedef struct sigmoid_context {
  const sn_op_call *call;
  sn_pair_sizes s;
  float *logits;      /* (na, nb), without the bias: forward fills them from the dots; backward reads */
  float *ddots;       /* (na, nb) [out] of backward */
  block_sums *blocks;
  float t, b, dsum;
} sigmoid_context;

SN_INLINE const float *load_labels(const sn_tensor *label, int64_t at, int64_t n, float *buffer) {
  if (label->dtype == SN_F32) return sn_f32_at(label, at);
  const double *from = (const double *)label->data + at;
  for (int64_t i = 0; i < n; i++) buffer[i] = (float)from[i];
  return buffer;
}

/* log(1 + exp(-a)) for a >= 0: 2 atanh(e / (2 + e)), the series to the 15th power of at most 1/3; keeps its relative accuracy
 * where e is small. */
SN_INLINE float softplus_below(float a) {
  float e = sn_exp_f32(-a), u = e / (2.0f + e), z = u * u;
  float p = 1.0f / 15.0f;
  p = p * z + 1.0f / 13.0f;
  p = p * z + 1.0f / 11.0f;
  p = p * z + 1.0f / 9.0f;
  p = p * z + 1.0f / 7.0f;
  p = p * z + 1.0f / 5.0f;
  p = p * z + 1.0f / 3.0f;
  return 2.0f * (u + u * z * p);
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const sigmoid_context *k = ctx;
  block_sums out = {0, 0, -1};
  int64_t end = sn_min_i64(k->s.na, (block + 1) * SN_ROW_BLOCK) * k->s.nb;
  for (int64_t at = block * SN_ROW_BLOCK * k->s.nb; at < end; at += SN_CHUNK) {
    float yb[SN_CHUNK], t = k->t, b = k->b;
    int64_t m = sn_min_i64(SN_CHUNK, end - at);
    const float *restrict y = load_labels(&k->call->in[2], at, m, yb);
    float *restrict v = k->logits + at;
    double sum = 0, total = 0;
    int32_t wrong = 0;
#pragma omp simd reduction(+ : sum, total, wrong)
    for (int64_t j = 0; j < m; j++) {
      v[j] *= t;
      float x = y[j] > 0.0f ? v[j] + b : -(v[j] + b), size = x < 0.0f ? -x : x, weight = y[j] < 0.0f ? -y[j] : y[j];
      float loss = (x < 0.0f ? size : 0.0f) + softplus_below(size);
      wrong += !(weight < INFINITY);
      sum += y[j] != 0.0f ? (double)weight * (double)loss : 0.0;
      total += (double)weight;
    }
    for (int64_t j = 0; j < m && wrong > 0 && out.bad < 0; j++)
      if (!isfinite(y[j])) out.bad = at + j;
    out.first += sum;
    out.second += total;
  }
  k->blocks[block] = out;
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const sigmoid_context *k = ctx;
  block_sums out = {0, 0, -1};
  int64_t end = sn_min_i64(k->s.na, (block + 1) * SN_ROW_BLOCK) * k->s.nb;
  for (int64_t at = block * SN_ROW_BLOCK * k->s.nb; at < end; at += SN_CHUNK) {
    float yb[SN_CHUNK], t = k->t, b = k->b, dsum = k->dsum;
    int64_t m = sn_min_i64(SN_CHUNK, end - at);
    const float *restrict y = load_labels(&k->call->in[2], at, m, yb), *restrict v = k->logits + at;
    float *restrict g = k->ddots + at;
    double dscale = 0, dbias = 0;
#pragma omp simd reduction(+ : dscale, dbias)
    for (int64_t j = 0; j < m; j++) {
      float x = y[j] > 0.0f ? v[j] + b : -(v[j] + b);
      float dl = y[j] != 0.0f ? -dsum * y[j] * sn_sigmoid_f32(-x) : 0.0f;
      dscale += (double)dl * (double)v[j];
      dbias += (double)dl;
      g[j] = t * dl;
    }
    out.first += dscale;
    out.second += dbias;
  }
  k->blocks[block] = out;
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

static sigmoid_context make_context(const sn_op_call *call) {
  const sn_pair_sigmoid_attr *a = call->attr;
  sigmoid_context k = {.call = call, .s = sn_pair_sizes_of(call), .blocks = call->scratch,
                       .t = (float)sn_pair_scale(call, a->scale)};
  if (call->in[4].data) k.b = (float)sn_tensor_get(&call->in[4], 0);
  k.ddots = (float *)(void *)((char *)call->scratch + blocks_bytes(k.s));
  k.logits = call->saved[0].data ? call->saved[0].data : k.ddots;
  return k;
}

static void *panels_of(const sigmoid_context *k) { return (char *)k->ddots + matrix_bytes(k->s); }

static double work_of(const sigmoid_context *k) { return 12.0 * (double)k->s.na * (double)k->s.nb; }

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sigmoid_context k = make_context(call);
  int64_t n_blocks = sn_count_blocks(k.s.na, SN_ROW_BLOCK);
  double sum = 0, total = 0;
  sn_pair_dots(device, call, k.logits, panels_of(&k));
  sn_run_blocks(device, work_of(&k), n_blocks, forward_body_for(device), &k);
  for (int64_t b = 0; b < n_blocks; b++) {
    if (k.blocks[b].bad >= 0) return sn_pair_sigmoid_bad_label(call, k.blocks[b].bad, err);
    sum += k.blocks[b].first;
    total += k.blocks[b].second;
  }
  *(double *)call->out[0].data = sum;
  *(double *)call->out[1].data = total;
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  sigmoid_context k = make_context(call);
  int64_t n_blocks = sn_count_blocks(k.s.na, SN_ROW_BLOCK);
  double dscale = 0, dbias = 0;
  k.dsum = (float)*(const double *)call->dout[0].data;
  sn_run_blocks(device, work_of(&k), n_blocks, backward_body_for(device), &k);
  sn_pair_gradient(device, call, k.ddots, panels_of(&k));
  for (int64_t b = 0; b < n_blocks; b++) {
    dscale += k.blocks[b].first;
    dbias += k.blocks[b].second;
  }
  if (call->din[3].data) sn_put(&call->din[3], 0, dscale, call->acc[3]);
  if (call->din[4].data) sn_put(&call->din[4], 0, dbias, call->acc[4]);
  return SN_OK;
}

const sn_op_impl sn_pair_sigmoid_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_pair_supports,
                                        .forward = forward,
                                        .backward = backward,
                                        .scratch = scratch};
