#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/pair_logits.h"
#include "kernels/pair_sigmoid/pair_sigmoid.h"
#include "kernels/simd_math.h"

/* A block's sums: forward (sum, total), backward (sum of dl * (l - b), sum of dl).  Logits are without the bias. */
typedef struct sigmoid_context {
  sn_pair_work w;
  float t, b, dsum;
} sigmoid_context;

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
  sn_pair_block out = {0, 0, -1};
  int64_t end = sn_min_i64(k->w.s.na, (block + 1) * SN_ROW_BLOCK) * k->w.s.nb;
  for (int64_t at = block * SN_ROW_BLOCK * k->w.s.nb; at < end; at += SN_CHUNK) {
    float yb[SN_CHUNK], t = k->t, b = k->b;
    int64_t m = sn_min_i64(SN_CHUNK, end - at);
    const float *restrict y = sn_pair_values(&k->w.call->in[2], at, m, yb);
    float *restrict v = k->w.logits + at;
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
  k->w.blocks[block] = out;
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const sigmoid_context *k = ctx;
  sn_pair_block out = {0, 0, -1};
  int64_t end = sn_min_i64(k->w.s.na, (block + 1) * SN_ROW_BLOCK) * k->w.s.nb;
  for (int64_t at = block * SN_ROW_BLOCK * k->w.s.nb; at < end; at += SN_CHUNK) {
    float yb[SN_CHUNK], t = k->t, b = k->b, dsum = k->dsum;
    int64_t m = sn_min_i64(SN_CHUNK, end - at);
    const float *restrict y = sn_pair_values(&k->w.call->in[2], at, m, yb), *restrict v = k->w.logits + at;
    float *restrict g = k->w.ddots + at;
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
  k->w.blocks[block] = out;
}
SN_SIMD_VARIANTS(backward_body)

static sigmoid_context make_context(const sn_op_call *call) {
  const sn_pair_sigmoid_attr *a = call->attr;
  sigmoid_context k = {.w = sn_pair_work_of(call, a->scale)};
  k.t = (float)k.w.t;
  if (call->in[4].data) k.b = (float)sn_tensor_get(&call->in[4], 0);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sigmoid_context k = make_context(call);
  int64_t bad;
  sn_pair_dots(device, &k.w);
  sn_run_blocks(device, sn_pair_cost(&k.w), k.w.n_blocks, forward_body_for(device), &k);
  sn_pair_join(&k.w, call->out[0].data, call->out[1].data, &bad);
  return bad >= 0 ? sn_pair_sigmoid_bad_label(call, bad, err) : SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  double dscale, dbias;
  int64_t bad;
  if (!sn_has_dout(call)) return SN_OK;
  sigmoid_context k = make_context(call);
  k.dsum = (float)*(const double *)call->dout[0].data;
  sn_run_blocks(device, sn_pair_cost(&k.w), k.w.n_blocks, backward_body_for(device), &k);
  sn_pair_gradient(device, &k.w);
  sn_pair_join(&k.w, &dscale, &dbias, &bad);
  if (call->din[3].data) sn_put(&call->din[3], 0, dscale, call->acc[3]);
  if (call->din[4].data) sn_put(&call->din[4], 0, dbias, call->acc[4]);
  return SN_OK;
}

const sn_op_impl sn_pair_sigmoid_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_pair_supports,
                                        .forward = forward,
                                        .backward = backward,
                                        .scratch = sn_pair_scratch};
