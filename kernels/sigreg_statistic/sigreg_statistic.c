#include "kernels/sigreg_statistic/sigreg_statistic.h"

#include <math.h>

#include "core/philox.h"
#include "kernels/used_rows.h"

void sn_sigreg_direction(const sn_sigreg_statistic_attr *attr, int64_t slice, int64_t d, double *a) {
  sn_random random = sn_random_at(attr->seed, SN_PURPOSE_SLICE, attr->step, (uint64_t)slice);
  double squares = 0;
  for (int64_t c = 0; c < d; c++) {
    a[c] = sn_random_normal(&random);
    squares += a[c] * a[c];
  }
  double inverse = squares > 0 ? 1.0 / sqrt(squares) : 0.0;
  for (int64_t c = 0; c < d; c++) a[c] *= inverse;
}

sn_sigreg_knot sn_sigreg_knot_of(const sn_sigreg_statistic_attr *attr, int64_t k) {
  double dt = attr->t_max / (double)(attr->n_knots - 1), t = (double)k * dt, phi = exp(-0.5 * t * t);
  return (sn_sigreg_knot){t, phi, phi * (k == 0 || k == attr->n_knots - 1 ? dt : 2 * dt)};
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_sigreg_statistic_attr *a = call->attr;
  const sn_tensor *z = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "z", err));
  if (z->n_dims != 2 || z->shape[1] < 1)
    return sn_fail(err, SN_E_ARGUMENT, "z must be a matrix of rows with at least one column; it has %d dimensions, the last of "
                   "%lld", (int)z->n_dims, (long long)sn_tensor_columns(z));
  SN_TRY(sn_used_rule(call, 1, z->shape[0], err));
  if (a->n_slices < 1 || a->n_slices > INT32_MAX || a->n_knots < 2 || a->n_knots > SN_SIGREG_MAX_KNOTS)
    return sn_fail(err, SN_E_ARGUMENT, "needs at least one slice and 2 to %d knots; found %lld slices, %lld knots",
                   SN_SIGREG_MAX_KNOTS, (long long)a->n_slices, (long long)a->n_knots);
  if (!(a->t_max > 0) || !isfinite(a->t_max))
    return sn_fail(err, SN_E_ARGUMENT, "t_max must be finite and above 0; it is %g", a->t_max);
  call->n_out = 1;
  sn_shape_scalar(&call->out[0], SN_F64);
  call->n_saved = with_saved ? 3 : 0;
  if (!with_saved) return SN_OK;
  sn_dtype dtype = sn_statistics_dtype(z->dtype);
  sn_shape_2d(&call->saved[0], a->n_slices, z->shape[1], dtype);
  sn_shape_2d(&call->saved[1], z->shape[0], a->n_slices, dtype);
  sn_shape_2d(&call->saved[2], a->n_slices, 2 * a->n_knots, dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  const sn_sigreg_statistic_attr *a = call->attr;
  double pairs = (double)call->in[0].shape[0] * (double)a->n_slices;
  return pairs * (2.0 * (double)call->in[0].shape[1] + 8.0 * (double)a->n_knots);
}

/* One slice: projections p (rows), then its sum over the knots. */
static double ref_slice(const sn_op_call *call, int64_t s, int64_t n, const double *direction, double *p) {
  const sn_sigreg_statistic_attr *a = call->attr;
  const uint8_t *used = sn_used_flags(call, 1);
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1];
  double sum = 0;
  for (int64_t i = 0; i < rows; i++) {
    p[i] = 0;
    for (int64_t c = 0; c < d && sn_row_is_used(used, i); c++) p[i] += sn_tensor_get(&call->in[0], i * d + c) * direction[c];
    if (call->saved[1].data) sn_put(&call->saved[1], i * a->n_slices + s, p[i], false);
  }
  for (int64_t k = 0; k < a->n_knots; k++) {
    sn_sigreg_knot knot = sn_sigreg_knot_of(a, k);
    double cosines = 0, sines = 0;
    for (int64_t i = 0; i < rows; i++) {
      if (!sn_row_is_used(used, i)) continue;
      cosines += cos(knot.t * p[i]);
      sines += sin(knot.t * p[i]);
    }
    cosines = n > 0 ? cosines / (double)n - knot.phi : 0.0;
    sines = n > 0 ? sines / (double)n : 0.0;
    sum += knot.weight * (cosines * cosines + sines * sines);
    if (!call->saved[2].data) continue;
    sn_put(&call->saved[2], (s * a->n_knots + k) * 2, cosines, false);
    sn_put(&call->saved[2], (s * a->n_knots + k) * 2 + 1, sines, false);
  }
  return sum;
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_sigreg_statistic_attr *a = call->attr;
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1], n = sn_count_used(sn_used_flags(call, 1), rows);
  double *direction = call->scratch, *p = direction + d, sum = 0;
  for (int64_t s = 0; s < a->n_slices; s++) {
    sn_sigreg_direction(a, s, d, direction);
    for (int64_t c = 0; c < d && call->saved[0].data; c++) sn_put(&call->saved[0], s * d + c, direction[c], false);
    sum += ref_slice(call, s, n, direction, p);
  }
  sn_put(&call->out[0], 0, (double)n * sum / (double)a->n_slices, false);
  return SN_OK;
}

/* d(y)/d(p[i,s]) / dy */
static double ref_slope(const sn_op_call *call, int64_t i, int64_t s) {
  const sn_sigreg_statistic_attr *a = call->attr;
  double p = sn_tensor_get(&call->saved[1], i * a->n_slices + s), sum = 0;
  for (int64_t k = 0; k < a->n_knots; k++) {
    sn_sigreg_knot knot = sn_sigreg_knot_of(a, k);
    double cosines = sn_tensor_get(&call->saved[2], (s * a->n_knots + k) * 2);
    double sines = sn_tensor_get(&call->saved[2], (s * a->n_knots + k) * 2 + 1);
    sum += knot.weight * knot.t * (sines * cos(knot.t * p) - cosines * sin(knot.t * p));
  }
  return 2.0 / (double)a->n_slices * sum;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_sigreg_statistic_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  const uint8_t *used = sn_used_flags(call, 1);
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1];
  double dy = sn_tensor_get(&call->dout[0], 0), *slope = call->scratch;
  for (int64_t i = 0; i < rows; i++) {
    for (int64_t s = 0; s < a->n_slices; s++) slope[s] = sn_row_is_used(used, i) ? ref_slope(call, i, s) : 0.0;
    for (int64_t c = 0; c < d; c++) {
      double sum = 0;
      for (int64_t s = 0; s < a->n_slices; s++) sum += slope[s] * sn_tensor_get(&call->saved[0], s * d + c);
      sn_put(&call->din[0], i * d + c, dy * sum, call->acc[0]);
    }
  }
  return SN_OK;
}

static int64_t ref_scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  const sn_sigreg_statistic_attr *a = call->attr;
  return (backward ? a->n_slices : call->in[0].shape[0] + call->in[0].shape[1]) * (int64_t)sizeof(double);
}

const sn_op_impl sn_sigreg_statistic_ref = {.name = "ref",
                                  .device = SN_DEVICE_CPU,
                                  .supports = sn_supports_always,
                                  .forward = ref_forward,
                                  .backward = ref_backward,
                                  .scratch = ref_scratch};

static const sn_op_impl *const impls[] = {&sn_sigreg_statistic_cpu, &sn_sigreg_statistic_ref, NULL};

static void most(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = i % 4 != 1;
}
static void none(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = 0;
}

#define USED(n, function) {.n_dims = 1, .shape = {n}, .dtype = SN_U8, .fill = SN_FILL_CUSTOM, .custom = function}
#define WIDE(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .scale = 40.0}
static const sn_sigreg_statistic_attr usual = {7, 3, 37, 17, 3.0}, coarse = {7, 4, 5, 2, 1.5}, fine = {1, 0, 19, 64, 5.0},
                            many = {9, 1, 256, 17, 3.0};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &usual, .n_in = 2, .in = {SN_S2(11, 7), SN_ABSENT}},
    {.name = "used", .attr = &usual, .n_in = 2, .in = {SN_S2(67, 5), USED(67, most)}},
    {.name = "two_knots", .attr = &coarse, .n_in = 2, .in = {SN_S2(13, 3), SN_ABSENT}},
    {.name = "many_knots", .attr = &fine, .n_in = 2, .in = {SN_S2(41, 1), USED(41, most)}},
    {.name = "far_from_normal", .attr = &coarse, .n_in = 2, .in = {WIDE(31, 7), SN_ABSENT}},
    {.name = "product", .attr = &many, .n_in = 2, .in = {SN_S2B(33, 17), SN_ABSENT}},
    {.name = "one_row", .attr = &usual, .n_in = 2, .in = {SN_S2(1, 5), SN_ABSENT}},
    {.name = "none_used", .attr = &usual, .n_in = 2, .in = {SN_S2(3, 5), USED(3, none)}, .why_zero = "no row is used"},
    {.name = "no_rows", .attr = &usual, .n_in = 2, .in = {SN_S2(0, 5), SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

static const sn_sigreg_statistic_attr full = {1, 1, 1024, 17, 3.0};
static const sn_op_sample typical[] = {
    {.name = "2048", .attr = &full, .n_in = 2, .in = {SN_S2(2048, 256), SN_ABSENT}}, {.name = NULL}};

const sn_op sn_op_sigreg_statistic = {
    .name = "sigreg_statistic",
    .summary = "mean over random directions of n * integral of |characteristic function - that of N(0,1)|^2",
    .attr_size = sizeof(sn_sigreg_statistic_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
    .typical = typical,
};

sn_status sn_sigreg_statistic(sn_tape *tape, sn_value **y, sn_value *z, sn_value *used,
                              const sn_sigreg_statistic_attr *attr, sn_error *err) {
  sn_value *in[2] = {z, used};
  return sn_tape_record(tape, &sn_op_sigreg_statistic, attr, 2, in, 1, y, err);
}
