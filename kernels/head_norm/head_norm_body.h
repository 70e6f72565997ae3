/* The body of head_norm's CPU kernels; included once per kernel file, after the file's #pragma GCC target.  It defines
 * kernel_forward, kernel_backward, kernel_scratch and kernel_supports.
 *
 * Written in GCC's generic vectors of 16 floats, which the compiler lowers to what the target has: sums run in 16
 * interleaved parts everywhere, so that, without contraction (the project's rule), every target gives the same bits. */
#ifndef SN_KERNELS_HEAD_NORM_BODY_H
#define SN_KERNELS_HEAD_NORM_BODY_H

#include <math.h>
#include <omp.h>
#include <string.h>

#include "kernels/head_norm/head_norm_impl.h"

#define SN_INLINE static inline __attribute__((always_inline))

enum { LANES = 16, MOST_CHANNELS = 512, MOST_CHUNKS = MOST_CHANNELS / LANES, ROW_BLOCK = 64 };

typedef float vf __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef uint16_t vh __attribute__((vector_size(32)));
typedef float vf_loose __attribute__((vector_size(64), aligned(4), may_alias));
typedef uint16_t vh_loose __attribute__((vector_size(32), aligned(2), may_alias));

/* --- vectors --------------------------------------------------------------------------------------------------------- */

SN_INLINE vf set1(float x) { return x - (vf){0}; }

SN_INLINE float sum_of(vf x) {
  x += __builtin_shuffle(x, (vu){8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7});
  x += __builtin_shuffle(x, (vu){4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11});
  x += __builtin_shuffle(x, (vu){2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13});
  return x[0] + x[1];
}

SN_INLINE vf widen(vh x) { return (vf)(__builtin_convertvector(x, vu) << 16); }

/* To nearest even; a NaN stays one. */
SN_INLINE vh narrow(vf x) {
  vu bits = (vu)x, rounded = bits + 0x7fffu + ((bits >> 16) & 1u), nan = (vu)((bits & 0x7fffffffu) > 0x7f800000u);
  vu chosen = ((rounded >> 16) & ~nan) | (((bits >> 16) | 0x40u) & nan);
  return __builtin_convertvector(chosen, vh);
}

/* n values from element `at`: LANES, or fewer at a head's end (the other lanes are 0). */
SN_INLINE vf load(const sn_tensor *t, int64_t at, int64_t n) {
  if (t->dtype == SN_F32) {
    const float *from = (const float *)t->data + at;
    if (n >= LANES) return *(const vf_loose *)from;
    vf part = {0};
    memcpy(&part, from, (size_t)n * sizeof *from);
    return part;
  }
  const uint16_t *from = (const uint16_t *)t->data + at;
  if (n >= LANES) return widen(*(const vh_loose *)from);
  vh part = {0};
  memcpy(&part, from, (size_t)n * sizeof *from);
  return widen(part);
}

SN_INLINE void store(const sn_tensor *t, int64_t at, vf x, int64_t n) {
  if (t->dtype == SN_F32) {
    float *to = (float *)t->data + at;
    if (n >= LANES) *(vf_loose *)to = x;
    else memcpy(to, &x, (size_t)n * sizeof *to);
    return;
  }
  vh h = narrow(x);
  uint16_t *to = (uint16_t *)t->data + at;
  if (n >= LANES) *(vh_loose *)to = h;
  else memcpy(to, &h, (size_t)n * sizeof *to);
}

/* --- one head -------------------------------------------------------------------------------------------------------- */

/* xhat[] = (x - mean) r of the head at `at`, 0 in the lanes beyond its end; returns r. */
SN_INLINE float normalise(const sn_head_norm_attr *attr, const sn_tensor *t, int64_t at, vf *xhat) {
  const int64_t d = attr->head_dim;
  const float count = (float)d;
  vf sum = {0}, squares = {0};
  for (int64_t c = 0, k = 0; c < d; c += LANES, k++) {
    xhat[k] = load(t, at + c, d - c);
    sum += xhat[k];
  }
  if (attr->kind == SN_HEAD_NORM_LAYER) {
    static const vf lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    vf mean = set1(sum_of(sum) / count);
    for (int64_t c = 0, k = 0; c < d; c += LANES, k++) {
      vu inside = (vu)(lane < set1((float)(d - c)));
      xhat[k] = (vf)((vu)(xhat[k] - mean) & inside);
    }
  }
  for (int64_t c = 0, k = 0; c < d; c += LANES, k++) squares += xhat[k] * xhat[k];
  float r = 1 / sqrtf(sum_of(squares) / count + (float)attr->eps);
  for (int64_t c = 0, k = 0; c < d; c += LANES, k++) xhat[k] *= set1(r);
  return r;
}

static void load_gains(const sn_op_call *call, vf gains[][MOST_CHUNKS]) {
  const sn_head_norm_attr *attr = call->attr;
  for (int64_t g = 0; g < attr->n_groups; g++)
    for (int64_t c = 0; c < attr->head_dim; c += LANES) gains[g][c / LANES] = load(&call->in[1 + g], c, attr->head_dim - c);
}

/* Columns of a row that are in no group: copied, or added. */
static void pass_on(const sn_tensor *to, const sn_tensor *from, int64_t at, int64_t n, bool acc) {
  int64_t size = sn_dtype_size(to->dtype);
  if (n > 0 && !acc) memcpy((char *)to->data + at * size, (const char *)from->data + at * size, (size_t)(n * size));
  for (int64_t c = 0; acc && c < n; c += LANES)
    store(to, at + c, load(to, at + c, n - c) + load(from, at + c, n - c), n - c);
}

static void pass_on_rest(const sn_head_norm_attr *attr, const sn_tensor *to, const sn_tensor *from, int64_t t, bool acc) {
  int64_t columns = from->shape[1], row = t * columns, done = 0;
  for (int64_t g = 0; g < attr->n_groups; g++) {
    pass_on(to, from, row + done, attr->column[g] - done, acc);
    done = attr->column[g] + attr->n_heads * attr->head_dim;
  }
  pass_on(to, from, row + done, columns - done, acc);
}

/* --- rows ------------------------------------------------------------------------------------------------------------ */

static void forward_row(const sn_op_call *call, vf (*gains)[MOST_CHUNKS], int64_t t) {
  const sn_head_norm_attr *attr = call->attr;
  const int64_t d = attr->head_dim, row = t * call->in[0].shape[1];
  vf xhat[MOST_CHUNKS];
  pass_on_rest(attr, &call->out[0], &call->in[0], t, false);
  for (int64_t g = 0; g < attr->n_groups; g++)
    for (int64_t h = 0; h < attr->n_heads; h++) {
      int64_t at = row + attr->column[g] + h * d;
      normalise(attr, &call->in[0], at, xhat);
      for (int64_t c = 0, k = 0; c < d; c += LANES, k++) store(&call->out[0], at + c, xhat[k] * gains[g][k], d - c);
    }
}

static sn_status kernel_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  vf gains[SN_HEAD_NORM_MAX_GROUPS][MOST_CHUNKS];
  load_gains(call, gains);
  int64_t rows = call->in[0].shape[0];
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t t = 0; t < rows; t++) forward_row(call, gains, t);
  return SN_OK;
}

/* With g = dy gain: dx = r (g - [mean(g)] - xhat mean(g xhat)); sums[] += dy xhat. */
SN_INLINE void backward_head(const sn_op_call *call, int64_t at, const vf *gain, vf *sums) {
  const sn_head_norm_attr *attr = call->attr;
  const sn_tensor *dx = &call->din[0];
  const int64_t d = attr->head_dim;
  const float count = (float)d;
  vf xhat[MOST_CHUNKS], g[MOST_CHUNKS], sum = {0}, product = {0};
  float r = normalise(attr, &call->in[0], at, xhat);
  for (int64_t c = 0, k = 0; c < d; c += LANES, k++) {
    vf dy = load(&call->dout[0], at + c, d - c);
    sums[k] += dy * xhat[k];
    g[k] = dy * gain[k];
    sum += g[k];
    product += g[k] * xhat[k];
  }
  if (dx->data == NULL) return;
  vf mean = set1(attr->kind == SN_HEAD_NORM_LAYER ? sum_of(sum) / count : 0), slope = set1(sum_of(product) / count);
  for (int64_t c = 0, k = 0; c < d; c += LANES, k++) {
    vf y = set1(r) * (g[k] - mean - xhat[k] * slope);
    if (call->acc[0]) y += load(dx, at + c, d - c);
    store(dx, at + c, y, d - c);
  }
}

static void backward_row(const sn_op_call *call, vf (*gains)[MOST_CHUNKS], int64_t t, double *block) {
  const sn_head_norm_attr *attr = call->attr;
  const int64_t d = attr->head_dim, row = t * call->in[0].shape[1];
  if (call->din[0].data != NULL) pass_on_rest(attr, &call->din[0], &call->dout[0], t, call->acc[0]);
  for (int64_t g = 0; g < attr->n_groups; g++) {
    vf sums[MOST_CHUNKS];
    for (int64_t c = 0; c < d; c += LANES) sums[c / LANES] = (vf){0};
    for (int64_t h = 0; h < attr->n_heads; h++) backward_head(call, row + attr->column[g] + h * d, gains[g], sums);
    for (int64_t c = 0; c < d; c++) block[g * d + c] += (double)sums[c / LANES][c % LANES];
  }
}

static int64_t n_blocks(const sn_op_call *call) { return (call->in[0].shape[0] + ROW_BLOCK - 1) / ROW_BLOCK; }

static int64_t kernel_scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  const sn_head_norm_attr *attr = call->attr;
  return backward ? n_blocks(call) * attr->n_groups * attr->head_dim * (int64_t)sizeof(double) : 0;
}

static void finish_gains(const sn_op_call *call, const double *blocks) {
  const sn_head_norm_attr *attr = call->attr;
  const int64_t d = attr->head_dim, width = attr->n_groups * d, n = n_blocks(call);
  for (int64_t g = 0; g < attr->n_groups; g++)
    for (int64_t c = 0; call->din[1 + g].data != NULL && c < d; c++) {
      float *to = (float *)call->din[1 + g].data + c;
      double sum = call->acc[1 + g] ? (double)*to : 0;
      for (int64_t b = 0; b < n; b++) sum += blocks[b * width + g * d + c];
      *to = (float)sum;
    }
}

static sn_status kernel_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_head_norm_attr *attr = call->attr;
  if (call->dout[0].data == NULL) {
    for (int i = 0; i < call->n_in; i++)
      if (call->din[i].data != NULL && !call->acc[i]) memset(call->din[i].data, 0, (size_t)sn_tensor_bytes(&call->din[i]));
    return SN_OK;
  }
  vf gains[SN_HEAD_NORM_MAX_GROUPS][MOST_CHUNKS];
  load_gains(call, gains);
  const int64_t rows = call->in[0].shape[0], blocks = n_blocks(call), width = attr->n_groups * attr->head_dim;
  double *sums = call->scratch; // (blocks, n_groups, D)
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t b = 0; b < blocks; b++) {
    memset(sums + b * width, 0, (size_t)width * sizeof *sums);
    int64_t end = (b + 1) * ROW_BLOCK < rows ? (b + 1) * ROW_BLOCK : rows;
    for (int64_t t = b * ROW_BLOCK; t < end; t++) backward_row(call, gains, t, sums + b * width);
  }
  finish_gains(call, sums);
  return SN_OK;
}

static bool kernel_supports(const sn_device *device, sn_isa needs, const char *lacks, const sn_op_call *call,
                            const char **why) {
  const sn_head_norm_attr *attr = call->attr;
  bool gains_fit = true;
  for (int64_t g = 0; g < attr->n_groups; g++) gains_fit &= call->in[1 + g].dtype == SN_F32;
  if (device->isa < needs) *why = lacks;
  else if (call->in[0].dtype != SN_F32 && call->in[0].dtype != SN_BF16) *why = "takes fp32 and bf16 tensors only";
  else if (!gains_fit) *why = "takes fp32 gains only";
  else if (attr->head_dim > MOST_CHANNELS) *why = "takes heads of at most 512 channels";
  else return true;
  return false;
}

#endif
