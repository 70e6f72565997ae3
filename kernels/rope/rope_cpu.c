/* rope on the CPU: angles once per row, shared by its heads. Portable C that the compiler turns into vectors.
 *
 * The angle is reduced in fp64 to |r| <= pi/4 and a quadrant, sine and cosine of r are polynomials (Taylor to r^11 and r^12:
 * truncation below 3e-9 relative on that interval), so that they are right to fp32 for positions up to 2^30. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/rope/rope_impl.h"

/* The loops below are compiled for three machines each, the best chosen when the program starts. Without contraction (the
 * project's rule) all give the same bits. */
#if defined(__x86_64__)
#define SN_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default"), optimize("O3")))
#else
#define SN_CLONES
#endif

enum { MOST_PAIRS = 256 }; /* of a head: 512 channels */

/* Frequencies of a head's pairs and the axis of each; pairs stand side by side from channel 0, axis after axis. */
typedef struct pairs {
  int64_t n;
  double frequency[MOST_PAIRS];
  int64_t axis[MOST_PAIRS];
} pairs;

static void make_pairs(const sn_rope_attr *attr, pairs *p) {
  p->n = 0;
  for (int64_t a = 0; a < attr->n_axes; a++)
    for (int64_t i = 0; i < attr->axis_channels[a] / 2; i++) {
      p->frequency[p->n] = pow(attr->base, -2.0 * (double)i / (double)attr->axis_channels[a]);
      p->axis[p->n++] = a;
    }
}

/* cosine and sine of angle[i]. */
SN_CLONES static void cos_sin(int64_t n, const double *restrict angle, float *restrict cosine, float *restrict sine) {
  for (int64_t i = 0; i < n; i++) {
    double shifted = angle[i] * 0.63661977236758134 + 6755399441055744.0; /* 2/pi; 1.5 * 2^52 rounds to an integer */
    int64_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    double turns = shifted - 6755399441055744.0;
    double r = (angle[i] - turns * 1.5707963267341256) - turns * 6.0771005065061922e-11; /* pi/2 in two parts */
    double z = r * r;
    double s = r * (1 + z * (-1.0 / 6 + z * (1.0 / 120 + z * (-1.0 / 5040 + z * (1.0 / 362880 + z * (-1.0 / 39916800))))));
    double c = 1 + z * (-0.5 + z * (1.0 / 24 + z * (-1.0 / 720 + z * (1.0 / 40320 + z * (-1.0 / 3628800 + z / 479001600)))));
    double swap = (double)(bits & 1), sin_sign = 1 - (double)(bits & 2), cos_sign = 1 - (double)((bits + 1) & 2);
    sine[i] = (float)(sin_sign * (s + swap * (c - s)));
    cosine[i] = (float)(cos_sign * (c + swap * (s - c)));
  }
}

SN_CLONES static void rotate_f32(int64_t n, const float *restrict x, float *restrict y, const float *restrict cosine,
                       const float *restrict sine, bool acc) {
  for (int64_t i = 0; i < n; i++) {
    float a = x[2 * i], b = x[2 * i + 1];
    float y0 = a * cosine[i] - b * sine[i], y1 = a * sine[i] + b * cosine[i];
    y[2 * i] = acc ? y[2 * i] + y0 : y0;
    y[2 * i + 1] = acc ? y[2 * i + 1] + y1 : y1;
  }
}

/* A pair is one 32-bit word: the first channel in its low half. */
static uint32_t round_pair(float y0, float y1) {
  return (uint32_t)sn_f32_to_bf16(y0) | (uint32_t)sn_f32_to_bf16(y1) << 16;
}

SN_CLONES static void rotate_bf16(int64_t n, const uint16_t *restrict x, uint16_t *restrict y, const float *restrict cosine,
                        const float *restrict sine, bool acc) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t xw;
    memcpy(&xw, x + 2 * i, sizeof xw);
    float a = sn_bf16_to_f32((uint16_t)xw), b = sn_bf16_to_f32((uint16_t)(xw >> 16));
    float y0 = a * cosine[i] - b * sine[i], y1 = a * sine[i] + b * cosine[i];
    if (acc) {
      y0 += sn_bf16_to_f32(y[2 * i]);
      y1 += sn_bf16_to_f32(y[2 * i + 1]);
    }
    uint32_t word = round_pair(y0, y1);
    memcpy(y + 2 * i, &word, sizeof word);
  }
}

/* Columns that are not rotated: copied, or added. */
static void pass_on(sn_dtype dtype, void *to, const void *from, int64_t at, int64_t n, bool acc) {
  if (n <= 0) return;
  int64_t size = sn_dtype_size(dtype);
  char *y = (char *)to + at * size;
  const char *x = (const char *)from + at * size;
  if (!acc) memcpy(y, x, (size_t)(n * size));
  for (int64_t i = 0; acc && i < n; i++) {
    if (dtype == SN_F32) ((float *)(void *)y)[i] += ((const float *)(const void *)x)[i];
    else
      ((uint16_t *)(void *)y)[i] = sn_f32_to_bf16(sn_bf16_to_f32(((uint16_t *)(void *)y)[i]) +
                                                  sn_bf16_to_f32(((const uint16_t *)(const void *)x)[i]));
  }
}

typedef struct rotation {
  const sn_rope_attr *attr;
  const pairs *p;
  const sn_tensor *to, *from, *positions;
  double sign;
  bool acc;
} rotation;

static void rotate_row(const rotation *job, int64_t t) {
  const sn_rope_attr *attr = job->attr;
  const pairs *p = job->p;
  double angle[MOST_PAIRS];
  float cosine[MOST_PAIRS], sine[MOST_PAIRS];
  for (int64_t i = 0; i < p->n; i++) {
    int64_t at = t * attr->n_axes + p->axis[i];
    double position = job->positions->dtype == SN_F32 ? (double)((const float *)job->positions->data)[at]
                                                      : ((const double *)job->positions->data)[at];
    angle[i] = job->sign * position * p->frequency[i];
  }
  cos_sin(p->n, angle, cosine, sine);
  int64_t columns = job->from->shape[1], row = t * columns, done = 0;
  sn_dtype dtype = job->from->dtype;
  for (int64_t r = 0; r < attr->n_ranges; r++) {
    pass_on(dtype, job->to->data, job->from->data, row + done, attr->range_begin[r] - done, job->acc);
    for (int64_t c = attr->range_begin[r]; c < attr->range_end[r]; c += attr->head_dim) {
      if (dtype == SN_F32)
        rotate_f32(p->n, (const float *)job->from->data + row + c, (float *)job->to->data + row + c, cosine, sine, job->acc);
      else
        rotate_bf16(p->n, (const uint16_t *)job->from->data + row + c, (uint16_t *)job->to->data + row + c, cosine, sine,
                    job->acc);
      pass_on(dtype, job->to->data, job->from->data, row + c + 2 * p->n, attr->head_dim - 2 * p->n, job->acc);
    }
    done = attr->range_end[r];
  }
  pass_on(dtype, job->to->data, job->from->data, row + done, columns - done, job->acc);
}

static void rotate(const sn_device *device, const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, double sign,
                   bool acc) {
  const sn_rope_attr attr = sn_rope_resolve(call->attr);
  pairs p;
  make_pairs(&attr, &p);
  const rotation job = {&attr, &p, to, from, &call->in[1], sign, acc};
  int64_t rows = from->shape[0];
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t t = 0; t < rows; t++) rotate_row(&job, t);
}

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  const sn_rope_attr *attr = call->attr;
  if (call->in[0].dtype != SN_F32 && call->in[0].dtype != SN_BF16) *why = "takes fp32 and bf16 tensors only";
  else if (attr->head_dim > 2 * MOST_PAIRS) *why = "takes heads of at most 512 channels";
  else return true;
  return false;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  rotate(device, call, &call->out[0], &call->in[0], 1, false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_tensor *dx = &call->din[0];
  if (dx->data == NULL) return SN_OK;
  if (call->dout[0].data != NULL) rotate(device, call, dx, &call->dout[0], -1, call->acc[0]);
  else if (!call->acc[0]) memset(dx->data, 0, (size_t)sn_tensor_bytes(dx));
  return SN_OK;
}

const sn_op_impl sn_rope_cpu = {
    .name = "cpu", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward, .backward = backward};
