#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/pair_contrast/pair_contrast.h"
#include "kernels/pair_logits.h"
#include "kernels/simd_math.h"

/* A block's sums: forward (sum, total), backward (sum of dl * l). */
typedef struct contrast_context {
  sn_pair_work w;
  double dsum;
} contrast_context;

/* Scales a row's dots into logits; the largest of those that count. *bad: how many weights are not usable. */
SN_INLINE float row_largest(const contrast_context *k, int64_t row, int64_t *bad) {
  float *l = k->w.logits + row * k->w.s.nb, t = (float)k->w.t, largest = -INFINITY;
  int32_t wrong = 0;
  for (int64_t c = 0; c < k->w.s.nb; c += SN_CHUNK) {
    float wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->w.s.nb - c);
    const float *restrict w = sn_pair_values(&k->w.call->in[2], row * k->w.s.nb + c, m, wb);
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
  const float *l = k->w.logits + row * k->w.s.nb;
  double sum = 0;
  for (int64_t c = 0; c < k->w.s.nb; c += SN_CHUNK) {
    float wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->w.s.nb - c);
    const float *restrict w = sn_pair_values(&k->w.call->in[2], row * k->w.s.nb + c, m, wb), *restrict v = l + c;
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
  sn_pair_block out = {0, 0, -1};
  for (int64_t i = block * SN_ROW_BLOCK; i < sn_min_i64(k->w.s.na, (block + 1) * SN_ROW_BLOCK); i++) {
    int64_t bad;
    float largest = row_largest(k, i, &bad), log_sum = 0.0f;
    if (bad > 0 && out.bad < 0) out.bad = place_of_bad(k->w.call, i, k->w.s.nb);
    double below = 0, total = 0, sum = row_sums(k, i, largest, &below, &total);
    if (sum > 0 || isnan(sum)) {
      double exact = log(sum);
      log_sum = (float)exact;
      if (total > 0) out.first += below + total * exact;
      out.second += total;
    } else {
      largest = 0.0f; /* everything is left out */
    }
    if (!k->w.call->saved[1].data) continue;
    float *statistics = sn_f32_at(&k->w.call->saved[1], 2 * i);
    statistics[0] = largest;
    statistics[1] = log_sum;
  }
  k->w.blocks[block] = out;
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE double row_weight(const contrast_context *k, int64_t row) {
  double total = 0;
  for (int64_t c = 0; c < k->w.s.nb; c += SN_CHUNK) {
    float wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->w.s.nb - c);
    const float *restrict w = sn_pair_values(&k->w.call->in[2], row * k->w.s.nb + c, m, wb);
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
  for (int64_t i = block * SN_ROW_BLOCK; i < sn_min_i64(k->w.s.na, (block + 1) * SN_ROW_BLOCK); i++) {
    const float *statistics = sn_f32_at(&k->w.call->saved[1], 2 * i);
    float largest = statistics[0], log_sum = statistics[1], weight = (float)row_weight(k, i), dsum = (float)k->dsum;
    float t = (float)k->w.t;
    for (int64_t c = 0; c < k->w.s.nb; c += SN_CHUNK) {
      float wb[SN_CHUNK];
      int64_t m = sn_min_i64(SN_CHUNK, k->w.s.nb - c), at = i * k->w.s.nb + c;
      const float *restrict w = sn_pair_values(&k->w.call->in[2], at, m, wb), *restrict v = k->w.logits + at;
      float *restrict g = k->w.ddots + at;
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
  k->w.blocks[block] = (sn_pair_block){dscale, 0, -1};
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_pair_contrast_attr *a = call->attr;
  contrast_context k = {.w = sn_pair_work_of(call, a->scale)};
  int64_t bad;
  sn_pair_dots(device, &k.w);
  sn_run_blocks(device, sn_pair_cost(&k.w), k.w.n_blocks, forward_body_for(device), &k);
  sn_pair_join(&k.w, call->out[0].data, call->out[1].data, &bad);
  return bad >= 0 ? sn_pair_contrast_bad_weight(call, bad, err) : SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_pair_contrast_attr *a = call->attr;
  double dscale, unused;
  int64_t bad;
  if (!sn_has_dout(call)) return SN_OK;
  contrast_context k = {.w = sn_pair_work_of(call, a->scale), .dsum = *(const double *)call->dout[0].data};
  sn_run_blocks(device, sn_pair_cost(&k.w), k.w.n_blocks, backward_body_for(device), &k);
  sn_pair_gradient(device, &k.w);
  sn_pair_join(&k.w, &dscale, &unused, &bad);
  if (call->din[3].data) sn_put(&call->din[3], 0, dscale, call->acc[3]);
  return SN_OK;
}

const sn_op_impl sn_pair_contrast_cpu = {.name = "cpu",
                                         .device = SN_DEVICE_CPU,
                                         .supports = sn_pair_supports,
                                         .forward = forward,
                                         .backward = backward,
                                         .scratch = sn_pair_scratch};
