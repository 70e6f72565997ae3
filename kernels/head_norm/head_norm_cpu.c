/* head_norm on the CPU: one head at a time through fp32 buffers. Portable C that the compiler turns into vectors: sums run in
 * 16 interleaved parts, so that every machine adds in the same order. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/head_norm/head_norm_impl.h"

/* Compiled for three machines each, the best chosen when the program starts; without contraction (the project's rule) all
 * give the same bits. */
#if defined(__x86_64__)
#define SN_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default"), optimize("O3")))
#else
#define SN_CLONES
#endif

enum { MOST_CHANNELS = 512, PARTS = 16, ROW_BLOCK = 64 };

/* Buffers hold D values and zeros up to a multiple of PARTS. */
typedef struct head_sums {
  float mean, r;
} head_sums;

static inline __attribute__((always_inline)) float add_parts(const float *part) {
  float sum[PARTS];
  memcpy(sum, part, sizeof sum);
  for (int n = PARTS / 2; n > 0; n /= 2)
    for (int i = 0; i < n; i++) sum[i] += sum[i + n];
  return sum[0];
}

/* x becomes xhat = (x - mean) r. */
SN_CLONES static head_sums normalise(const sn_head_norm_attr *attr, float *restrict x, int64_t padded) {
  head_sums s = {0, 0};
  float part[PARTS] = {0}, count = (float)attr->head_dim;
  if (attr->kind == SN_HEAD_NORM_LAYER) {
    for (int64_t c = 0; c < padded; c += PARTS)
      for (int i = 0; i < PARTS; i++) part[i] += x[c + i];
    s.mean = add_parts(part) / count;
    for (int64_t c = 0; c < attr->head_dim; c++) x[c] -= s.mean;
    memset(part, 0, sizeof part);
  }
  for (int64_t c = 0; c < padded; c += PARTS)
    for (int i = 0; i < PARTS; i++) part[i] += x[c + i] * x[c + i];
  s.r = 1 / sqrtf(add_parts(part) / count + (float)attr->eps);
  for (int64_t c = 0; c < padded; c++) x[c] *= s.r;
  return s;
}

SN_CLONES static void multiply(float *restrict y, const float *restrict x, int64_t n) {
  for (int64_t c = 0; c < n; c++) y[c] *= x[c];
}

/* dy becomes dx; dgain += dy xhat. */
SN_CLONES static void backward_head(const sn_head_norm_attr *attr, float *restrict dy, const float *restrict xhat,
                                    const float *restrict gain, float *restrict dgain, float r, int64_t padded) {
  float sums[PARTS] = {0}, products[PARTS] = {0}, count = (float)attr->head_dim;
  for (int64_t c = 0; c < padded; c++) dgain[c] += dy[c] * xhat[c];
  for (int64_t c = 0; c < padded; c++) dy[c] *= gain[c];
  for (int64_t c = 0; c < padded; c += PARTS)
    for (int i = 0; i < PARTS; i++) {
      sums[i] += dy[c + i];
      products[i] += dy[c + i] * xhat[c + i];
    }
  float mean = attr->kind == SN_HEAD_NORM_LAYER ? add_parts(sums) / count : 0, slope = add_parts(products) / count;
  for (int64_t c = 0; c < padded; c++) dy[c] = r * (dy[c] - mean - xhat[c] * slope);
}

SN_CLONES static void widen(float *restrict to, const uint16_t *restrict from, int64_t n) {
  for (int64_t c = 0; c < n; c++) {
    uint32_t bits = (uint32_t)from[c] << 16;
    memcpy(to + c, &bits, sizeof bits);
  }
}

SN_CLONES static void narrow(uint16_t *restrict to, const float *restrict from, int64_t n) {
  for (int64_t c = 0; c < n; c++) to[c] = sn_f32_to_bf16(from[c]);
}

static void load(float *to, const sn_tensor *from, int64_t at, int64_t n) {
  if (from->dtype == SN_F32) memcpy(to, (const float *)from->data + at, (size_t)n * sizeof *to);
  else widen(to, (const uint16_t *)from->data + at, n);
}

static void store(const sn_tensor *to, int64_t at, const float *from, int64_t n) {
  if (to->dtype == SN_F32) memcpy((float *)to->data + at, from, (size_t)n * sizeof *from);
  else narrow((uint16_t *)to->data + at, from, n);
}

static void add_store(const sn_tensor *to, int64_t at, float *values, int64_t n) {
  float there[MOST_CHANNELS];
  load(there, to, at, n);
  for (int64_t c = 0; c < n; c++) values[c] += there[c];
  store(to, at, values, n);
}

/* Columns of a row that are in no group: copied, or added, in stretches. */
static void pass_on(const sn_tensor *to, const sn_tensor *from, int64_t at, int64_t n, bool acc) {
  int64_t size = sn_dtype_size(to->dtype);
  if (n > 0 && !acc) memcpy((char *)to->data + at * size, (const char *)from->data + at * size, (size_t)(n * size));
  for (int64_t c = 0; acc && c < n; c += MOST_CHANNELS) {
    float values[MOST_CHANNELS];
    int64_t some = n - c < MOST_CHANNELS ? n - c : MOST_CHANNELS;
    load(values, from, at + c, some);
    add_store(to, at + c, values, some);
  }
}

static void pass_on_rest(const sn_head_norm_attr *attr, const sn_tensor *to, const sn_tensor *from, int64_t t, bool acc) {
  int64_t columns = from->shape[1], row = t * columns, done = 0;
  for (int64_t g = 0; g < attr->n_groups; g++) {
    pass_on(to, from, row + done, attr->column[g] - done, acc);
    done = attr->column[g] + attr->n_heads * attr->head_dim;
  }
  pass_on(to, from, row + done, columns - done, acc);
}

static int64_t padded_of(const sn_head_norm_attr *attr) { return (attr->head_dim + PARTS - 1) / PARTS * PARTS; }

static void load_gains(const sn_op_call *call, float gains[][MOST_CHANNELS]) {
  const sn_head_norm_attr *attr = call->attr;
  for (int64_t g = 0; g < attr->n_groups; g++) {
    memset(gains[g], 0, sizeof gains[g]);
    load(gains[g], &call->in[1 + g], 0, attr->head_dim);
  }
}

static void forward_row(const sn_op_call *call, float gains[][MOST_CHANNELS], int64_t t) {
  const sn_head_norm_attr *attr = call->attr;
  const int64_t d = attr->head_dim, padded = padded_of(attr), row = t * call->in[0].shape[1];
  float x[MOST_CHANNELS] = {0};
  pass_on_rest(attr, &call->out[0], &call->in[0], t, false);
  for (int64_t g = 0; g < attr->n_groups; g++)
    for (int64_t h = 0; h < attr->n_heads; h++) {
      int64_t at = row + attr->column[g] + h * d;
      load(x, &call->in[0], at, d);
      normalise(attr, x, padded);
      multiply(x, gains[g], padded);
      store(&call->out[0], at, x, d);
    }
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  float gains[SN_HEAD_NORM_MAX_GROUPS][MOST_CHANNELS];
  load_gains(call, gains);
  int64_t rows = call->in[0].shape[0];
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t t = 0; t < rows; t++) forward_row(call, gains, t);
  return SN_OK;
}

static void backward_row(const sn_op_call *call, float gains[][MOST_CHANNELS], int64_t t, double *block) {
  const sn_head_norm_attr *attr = call->attr;
  const sn_tensor *dx = &call->din[0];
  const int64_t d = attr->head_dim, padded = padded_of(attr), row = t * call->in[0].shape[1];
  float x[MOST_CHANNELS] = {0}, dy[MOST_CHANNELS] = {0};
  if (dx->data != NULL) pass_on_rest(attr, dx, &call->dout[0], t, call->acc[0]);
  for (int64_t g = 0; g < attr->n_groups; g++) {
    float dgain[MOST_CHANNELS] = {0};
    for (int64_t h = 0; h < attr->n_heads; h++) {
      int64_t at = row + attr->column[g] + h * d;
      load(x, &call->in[0], at, d);
      load(dy, &call->dout[0], at, d);
      head_sums s = normalise(attr, x, padded);
      backward_head(attr, dy, x, gains[g], dgain, s.r, padded);
      if (dx->data != NULL && call->acc[0]) add_store(dx, at, dy, d);
      else if (dx->data != NULL) store(dx, at, dy, d);
      memset(dy + d, 0, (size_t)(padded - d) * sizeof *dy);
    }
    for (int64_t c = 0; c < d; c++) block[g * d + c] += (double)dgain[c];
  }
}

static int64_t n_blocks(const sn_op_call *call) { return (call->in[0].shape[0] + ROW_BLOCK - 1) / ROW_BLOCK; }

static int64_t scratch_bytes(const sn_device *device, const sn_op_call *call, bool backward) {
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

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_head_norm_attr *attr = call->attr;
  if (call->dout[0].data == NULL) {
    for (int i = 0; i < call->n_in; i++)
      if (call->din[i].data != NULL && !call->acc[i]) memset(call->din[i].data, 0, (size_t)sn_tensor_bytes(&call->din[i]));
    return SN_OK;
  }
  float gains[SN_HEAD_NORM_MAX_GROUPS][MOST_CHANNELS];
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

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  const sn_head_norm_attr *attr = call->attr;
  bool gains_fit = true;
  for (int64_t g = 0; g < attr->n_groups; g++) gains_fit &= call->in[1 + g].dtype == SN_F32;
  if (call->in[0].dtype != SN_F32 && call->in[0].dtype != SN_BF16) *why = "takes fp32 and bf16 tensors only";
  else if (!gains_fit) *why = "takes fp32 gains only";
  else if (attr->head_dim > MOST_CHANNELS) *why = "takes heads of at most 512 channels";
  else return true;
  return false;
}

const sn_op_impl sn_head_norm_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = supports,
                                     .forward = forward,
                                     .backward = backward,
                                     .scratch = scratch_bytes};
