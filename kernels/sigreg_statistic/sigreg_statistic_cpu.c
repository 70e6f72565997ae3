#include "kernels/cpu_blocks.h"

#include "kernels/gemm/gemm_product.h"
#include "kernels/sigreg_statistic/sigreg_statistic.h"
#include "kernels/used_rows.h"

enum { LANES = 16 }; /* slices of a block: one block sees all rows, so that nothing has to be joined */

typedef struct sigreg_context {
  const sn_op_call *call;
  const sn_sigreg_statistic_attr *a;
  const uint8_t *used;
  int64_t rows, d, n_used;
  double *exact;      /* (n_slices, d) directions before rounding */
  float *directions;  /* (n_slices, d) */
  float *projections; /* (rows, n_slices) */
  float *slopes;      /* (rows, n_slices) [out] of backward */
  double *sums;       /* (n_slices) [out] of forward */
  double dy;
} sigreg_context;

/* sin x and cos x for |x| < 10^6: x - q pi/2 with pi/2 in two parts (the first of 33 bits, so that its product with q is
 * exact), then the Taylor series on [-pi/4, pi/4], both below 10^-16. */
SN_INLINE void sin_cos(double x, double *sine, double *cosine) {
  const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer, which stands in the low bits */
  double shifted = x * 0.63661977236758134308 + magic, q = shifted - magic;
  double r = (x - q * 1.57079632673412561417) - q * 6.07710050650619224932e-11, z = r * r;
  uint64_t quadrant;
  memcpy(&quadrant, &shifted, sizeof quadrant);
  double s = -1.0 / 1307674368000.0, c = 1.0 / 20922789888000.0;
  s = s * z + 1.0 / 6227020800.0;
  s = s * z - 1.0 / 39916800.0;
  s = s * z + 1.0 / 362880.0;
  s = s * z - 1.0 / 5040.0;
  s = s * z + 1.0 / 120.0;
  s = s * z - 1.0 / 6.0;
  s = r + r * z * s;
  c = c * z - 1.0 / 87178291200.0;
  c = c * z + 1.0 / 479001600.0;
  c = c * z - 1.0 / 3628800.0;
  c = c * z + 1.0 / 40320.0;
  c = c * z - 1.0 / 720.0;
  c = c * z + 1.0 / 24.0;
  c = c * z - 0.5;
  c = c * z + 1.0;
  double a = quadrant & 1u ? c : s, b = quadrant & 1u ? s : c;
  *sine = quadrant & 2u ? -a : a;
  *cosine = (quadrant + 1u) & 2u ? -b : b;
}

/* Sines and cosines of dt p for LANES slices of a row from `first` on; beyond the last slice p is 0. */
SN_INLINE void base_angles(const sigreg_context *k, int64_t row, int64_t first, double dt, double *sine, double *cosine) {
  int64_t m = sn_min_i64(LANES, k->a->n_slices - first);
  const float *restrict p = k->projections + row * k->a->n_slices + first;
  double x[LANES] = {0};
  for (int64_t j = 0; j < m; j++) x[j] = dt * (double)p[j];
  for (int64_t j = 0; j < LANES; j++) sin_cos(x[j], &sine[j], &cosine[j]);
}

/* From the angle k dt p to (k + 1) dt p. */
SN_INLINE void next_angles(double *restrict s, double *restrict c, const double *restrict s1, const double *restrict c1) {
  for (int64_t j = 0; j < LANES; j++) {
    double next = c[j] * c1[j] - s[j] * s1[j];
    s[j] = s[j] * c1[j] + c[j] * s1[j];
    c[j] = next;
  }
}

static void direction_body(void *ctx, int64_t block) {
  const sigreg_context *k = ctx;
  double *exact = k->exact + block * k->d;
  float *to = k->directions + block * k->d;
  sn_sigreg_direction(k->a, block, k->d, exact);
  for (int64_t c = 0; c < k->d; c++) to[c] = (float)exact[c];
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const sigreg_context *k = ctx;
  int64_t first = block * LANES, n_knots = k->a->n_knots, m = sn_min_i64(LANES, k->a->n_slices - first);
  double cosines[SN_SIGREG_MAX_KNOTS][LANES], sines[SN_SIGREG_MAX_KNOTS][LANES], sum[LANES] = {0};
  double dt = sn_sigreg_knot_of(k->a, 1).t, n = k->n_used > 0 ? (double)k->n_used : 1.0;
  memset(cosines, 0, (size_t)n_knots * sizeof cosines[0]);
  memset(sines, 0, (size_t)n_knots * sizeof sines[0]);
  for (int64_t i = 0; i < k->rows; i++) {
    if (!sn_row_is_used(k->used, i)) continue;
    double s1[LANES], c1[LANES], s[LANES], c[LANES];
    base_angles(k, i, first, dt, s1, c1);
    memcpy(s, s1, sizeof s);
    memcpy(c, c1, sizeof c);
    for (int64_t knot = 1; knot < n_knots; knot++) {
      for (int64_t j = 0; j < LANES; j++) cosines[knot][j] += c[j];
      for (int64_t j = 0; j < LANES; j++) sines[knot][j] += s[j];
      next_angles(s, c, s1, c1);
    }
  }
  for (int64_t knot = 0; knot < n_knots; knot++) {
    sn_sigreg_knot at = sn_sigreg_knot_of(k->a, knot);
    for (int64_t j = 0; j < m; j++) {
      double c = knot > 0 && k->n_used > 0 ? cosines[knot][j] / n - at.phi : 0.0, s = sines[knot][j] / n;
      sum[j] += at.weight * (c * c + s * s);
      if (!k->call->saved[2].data) continue;
      float *means = sn_f32_at(&k->call->saved[2], ((first + j) * n_knots + knot) * 2);
      means[0] = (float)c;
      means[1] = (float)s;
    }
  }
  for (int64_t j = 0; j < m; j++) k->sums[first + j] = sum[j];
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const sigreg_context *k = ctx;
  int64_t first = block * LANES, n_knots = k->a->n_knots, m = sn_min_i64(LANES, k->a->n_slices - first);
  double by_cosine[SN_SIGREG_MAX_KNOTS][LANES], by_sine[SN_SIGREG_MAX_KNOTS][LANES];
  double dt = sn_sigreg_knot_of(k->a, 1).t;
  for (int64_t knot = 0; knot < n_knots; knot++) {
    sn_sigreg_knot at = sn_sigreg_knot_of(k->a, knot);
    double factor = k->dy * 2.0 / (double)k->a->n_slices * at.weight * at.t;
    for (int64_t j = 0; j < LANES; j++) {
      const float *means = sn_f32_at(&k->call->saved[2], ((first + (j < m ? j : 0)) * n_knots + knot) * 2);
      by_cosine[knot][j] = factor * (double)means[1];
      by_sine[knot][j] = -factor * (double)means[0];
    }
  }
  for (int64_t i = 0; i < k->rows; i++) {
    double s1[LANES], c1[LANES], s[LANES], c[LANES], slope[LANES] = {0};
    float *restrict to = k->slopes + i * k->a->n_slices + first;
    if (sn_row_is_used(k->used, i)) {
      base_angles(k, i, first, dt, s1, c1);
      memcpy(s, s1, sizeof s);
      memcpy(c, c1, sizeof c);
      for (int64_t knot = 1; knot < n_knots; knot++) {
        for (int64_t j = 0; j < LANES; j++) slope[j] += by_cosine[knot][j] * c[j] + by_sine[knot][j] * s[j];
        next_angles(s, c, s1, c1);
      }
    }
    for (int64_t j = 0; j < m; j++) to[j] = (float)slope[j];
  }
}
SN_SIMD_VARIANTS(backward_body)

/* Scratch: sums of slices, directions in double and, where they are not saved, in float (forward), projections where they are
 * not saved (forward) or slopes (backward), panels. */
static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

static int64_t product_bytes(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  const sn_sigreg_statistic_attr *a = call->attr;
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1];
  return backward_pass ? sn_product_bytes(device, rows, d, a->n_slices) : sn_product_bytes(device, rows, a->n_slices, d);
}

static int64_t sums_bytes(const sn_sigreg_statistic_attr *a) { return aligned(a->n_slices * (int64_t)sizeof(double)); }
static int64_t directions_bytes(const sn_op_call *call) {
  return aligned(((const sn_sigreg_statistic_attr *)call->attr)->n_slices * call->in[0].shape[1] * 4);
}
static int64_t projections_bytes(const sn_op_call *call) {
  return aligned(((const sn_sigreg_statistic_attr *)call->attr)->n_slices * call->in[0].shape[0] * 4);
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  return sums_bytes(call->attr) + 3 * directions_bytes(call) + projections_bytes(call) +
         product_bytes(device, call, backward_pass);
}

static sigreg_context make_context(const sn_op_call *call, char **panels) {
  sigreg_context k = {.call = call, .a = call->attr, .used = sn_used_flags(call, 1), .rows = call->in[0].shape[0],
                      .d = call->in[0].shape[1], .sums = call->scratch};
  char *exact = (char *)call->scratch + sums_bytes(k.a), *directions = exact + 2 * directions_bytes(call);
  char *matrix = directions + directions_bytes(call);
  k.exact = (double *)(void *)exact;
  k.n_used = sn_count_used(k.used, k.rows);
  k.slopes = (float *)(void *)matrix;
  k.directions = call->saved[0].data ? call->saved[0].data : (float *)(void *)directions;
  k.projections = call->saved[1].data ? call->saved[1].data : (float *)(void *)matrix;
  *panels = matrix + projections_bytes(call);
  return k;
}

static double work_of(const sigreg_context *k) {
  return 4.0 * (double)k->rows * (double)k->a->n_slices * (double)k->a->n_knots;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  char *panels;
  sigreg_context k = make_context(call, &panels);
  sn_run_blocks(device, 64.0 * (double)(k.a->n_slices * k.d), k.a->n_slices, direction_body, &k);
  sn_product product = {.m = k.rows, .n = k.a->n_slices, .k = k.d,
                        .a = sn_product_operand(call->in[0].data, call->in[0].dtype, k.d, true),
                        .b = sn_product_operand(k.directions, SN_F32, k.d, true), .c = k.projections, .c_dtype = SN_F32};
  sn_product_run(device, &product, panels);
  sn_run_blocks(device, work_of(&k), sn_count_blocks(k.a->n_slices, LANES), forward_body_for(device), &k);
  double sum = 0;
  for (int64_t s = 0; s < k.a->n_slices; s++) sum += k.sums[s];
  *(double *)call->out[0].data = (double)k.n_used * sum / (double)k.a->n_slices;
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  char *panels;
  sigreg_context k = make_context(call, &panels);
  k.dy = *(const double *)call->dout[0].data;
  sn_run_blocks(device, work_of(&k), sn_count_blocks(k.a->n_slices, LANES), backward_body_for(device), &k);
  sn_product product = {.m = k.rows, .n = k.d, .k = k.a->n_slices,
                        .a = sn_product_operand(k.slopes, SN_F32, k.a->n_slices, true),
                        .b = sn_product_operand(k.directions, SN_F32, k.d, false), .c = call->din[0].data,
                        .c_dtype = call->din[0].dtype, .acc = call->acc[0]};
  sn_product_run(device, &product, panels);
  return SN_OK;
}

const sn_op_impl sn_sigreg_statistic_cpu = {.name = "cpu",
                                  .device = SN_DEVICE_CPU,
                                  .supports = sn_supports_f32_bf16,
                                  .forward = forward,
                                  .backward = backward,
                                  .scratch = scratch};
