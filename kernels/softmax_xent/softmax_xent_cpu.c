#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/op_rules.h"
#include "kernels/simd_math.h"
#include "kernels/softmax_xent/softmax_xent.h"

typedef struct xent_context {
  const sn_op_call *call;
  const sn_softmax_xent_attr *attr;
  int64_t rows, n_classes;
  double *partial; /* (rows): loss of each row */
  double dsum;
} xent_context;

enum { XENT_ROWS = 8 };

SN_INLINE double logsumexp(const sn_tensor *x, int64_t at, int64_t n) {
  float buffer[SN_CHUNK], largest = -INFINITY;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *v = sn_load(x, at + c, m, buffer);
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < m; i++) largest = v[i] > largest ? v[i] : largest;
  }
  double total = 0;
  for (int64_t c = 0; c < n; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, n - c);
    const float *v = sn_load(x, at + c, m, buffer);
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < m; i++) sum += sn_exp_f32(v[i] - largest);
    total += (double)sum;
  }
  return (double)largest + log(total);
}

/* sum over k of w[k] t[k] (lse - x[k]). */
SN_INLINE double row_loss(const xent_context *k, int64_t b, double lse) {
  const sn_softmax_xent_attr *a = k->attr;
  const sn_tensor *x = &k->call->in[0];
  int32_t label = a->labels[b];
  float buffer[SN_CHUNK];
  double at_label = (double)*sn_load(x, b * k->n_classes + label, 1, buffer);
  double loss = (1.0 - a->label_smoothing) * sn_softmax_xent_weight(a, label) * (lse - at_label), rest = 0;
  if (a->label_smoothing == 0) return loss;
  for (int64_t c = 0; c < k->n_classes; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, k->n_classes - c);
    const float *v = sn_load(x, b * k->n_classes + c, m, buffer);
    for (int64_t i = 0; i < m; i++) rest += sn_softmax_xent_target_weight(a, label, c + i) * (lse - (double)v[i]);
  }
  return loss + a->label_smoothing / (double)k->n_classes * rest;
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const xent_context *k = ctx;
  int64_t end = sn_min_i64(k->rows, (block + 1) * XENT_ROWS);
  for (int64_t b = block * XENT_ROWS; b < end; b++) {
    double lse = logsumexp(&k->call->in[0], b * k->n_classes, k->n_classes);
    if (k->call->saved[0].data) ((float *)k->call->saved[0].data)[b] = (float)lse;
    k->partial[b] = k->attr->labels[b] >= 0 ? row_loss(k, b, lse) : 0.0;
  }
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void row_gradient(const xent_context *k, int64_t b) {
  const sn_softmax_xent_attr *a = k->attr;
  int32_t label = a->labels[b];
  float lse = ((const float *)k->call->saved[0].data)[b], dsum = (float)k->dsum;
  float total = label >= 0 ? (float)sn_softmax_xent_target_sum(a, label, k->n_classes) : 0.0f;
  float spread = (float)(a->label_smoothing / (double)k->n_classes);
  float xb[SN_CHUNK], out[SN_CHUNK];
  for (int64_t c = 0; c < k->n_classes; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, k->n_classes - c), at = b * k->n_classes + c;
    const float *restrict v = sn_load(&k->call->in[0], at, m, xb);
    for (int64_t i = 0; i < m; i++) out[i] = label >= 0 ? total * sn_exp_f32(v[i] - lse) : 0.0f;
    if (label >= 0 && a->label_smoothing > 0)
      for (int64_t i = 0; i < m; i++) out[i] -= spread * (float)sn_softmax_xent_target_weight(a, label, c + i);
    if (label >= c && label < c + m)
      out[label - c] -= (float)((1.0 - a->label_smoothing) * sn_softmax_xent_weight(a, label));
    for (int64_t i = 0; i < m; i++) out[i] *= dsum;
    sn_commit(&k->call->din[0], at, m, k->call->acc[0], out);
  }
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const xent_context *k = ctx;
  int64_t end = sn_min_i64(k->rows, (block + 1) * XENT_ROWS);
  for (int64_t b = block * XENT_ROWS; b < end; b++) row_gradient(k, b);
}
SN_SIMD_VARIANTS(backward_body)

static xent_context make_context(const sn_op_call *call) {
  return (xent_context){call, call->attr, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]), call->scratch, 0};
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  xent_context k = make_context(call);
  SN_TRY(sn_softmax_xent_check(call, err));
  sn_run_blocks(device, 4.0 * sn_bytes_of_call(call, false), sn_count_blocks(k.rows, XENT_ROWS), forward_body_for(device), &k);
  double sum = 0, weight = 0;
  for (int64_t b = 0; b < k.rows; b++) {
    sum += k.partial[b];
    if (k.attr->labels[b] >= 0) weight += sn_softmax_xent_weight(k.attr, k.attr->labels[b]);
  }
  *(double *)call->out[0].data = sum;
  *(double *)call->out[1].data = weight;
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  xent_context k = make_context(call);
  SN_TRY(sn_softmax_xent_check(call, err));
  k.dsum = *(const double *)call->dout[0].data;
  sn_run_blocks(device, 4.0 * sn_bytes_of_call(call, false), sn_count_blocks(k.rows, XENT_ROWS), backward_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  return backward_pass ? 0 : sn_tensor_rows(&call->in[0]) * (int64_t)sizeof(double);
}

const sn_op_impl sn_softmax_xent_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_f32_bf16,
                                        .forward = forward,
                                        .backward = backward,
                                        .scratch = scratch};
