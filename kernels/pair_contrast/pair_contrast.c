#include "kernels/pair_contrast/pair_contrast.h"

#include <math.h>

#include "kernels/pair_logits.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_pair_contrast_attr *a = call->attr;
  SN_TRY(sn_pair_rule(call, a->scale, "weight", false, err));
  sn_pair_sizes s = sn_pair_sizes_of(call);
  sn_dtype dtype = sn_statistics_dtype(call->in[0].dtype);
  call->n_out = 2;
  sn_shape_scalar(&call->out[0], SN_F64);
  sn_shape_scalar(&call->out[1], SN_F64);
  call->n_saved = with_saved ? 2 : 0;
  if (!with_saved) return SN_OK;
  sn_shape_2d(&call->saved[0], s.na, s.nb, dtype);
  sn_shape_2d(&call->saved[1], s.na, 2, dtype);
  return SN_OK;
}

sn_status sn_pair_contrast_bad_weight(const sn_op_call *call, int64_t place, sn_error *err) {
  int64_t nb = call->in[1].shape[0];
  return sn_fail(err, SN_E_ARGUMENT, "weight[%lld, %lld] is %g: it must be a finite number, or below 0 for a pair that is left "
                 "out", (long long)(place / nb), (long long)(place % nb), sn_tensor_get(&call->in[2], place));
}

/* One row: its logits into l, then the largest and the log of the sum of exp(l - largest). */
static void ref_row(const sn_op_call *call, double t, int64_t i, double *l, double *largest, double *log_sum) {
  int64_t nb = call->in[1].shape[0];
  double sum = 0;
  *largest = -INFINITY;
  for (int64_t j = 0; j < nb; j++) {
    l[j] = t * sn_pair_ref_dot(call, i, j);
    if (sn_tensor_get(&call->in[2], i * nb + j) >= 0) *largest = fmax(*largest, l[j]);
  }
  for (int64_t j = 0; j < nb; j++)
    if (sn_tensor_get(&call->in[2], i * nb + j) >= 0) sum += exp(l[j] - *largest);
  *log_sum = log(sum);
  if (sum > 0 || isnan(sum)) return;
  *largest = *log_sum = 0; /* everything is left out */
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_pair_contrast_attr *a = call->attr;
  sn_pair_sizes s = sn_pair_sizes_of(call);
  double t = sn_pair_scale(call, a->scale), *l = call->scratch, sum = 0, total = 0;
  for (int64_t i = 0; i < s.na; i++) {
    double largest, log_sum;
    ref_row(call, t, i, l, &largest, &log_sum);
    for (int64_t j = 0; j < s.nb; j++) {
      double weight = sn_tensor_get(&call->in[2], i * s.nb + j);
      if (!(weight < INFINITY)) return sn_pair_contrast_bad_weight(call, i * s.nb + j, err);
      if (call->saved[0].data) sn_put(&call->saved[0], i * s.nb + j, l[j], false);
      if (weight <= 0) continue;
      sum += weight * (log_sum + (largest - l[j]));
      total += weight;
    }
    if (!call->saved[1].data) continue;
    sn_put(&call->saved[1], 2 * i, largest, false);
    sn_put(&call->saved[1], 2 * i + 1, log_sum, false);
  }
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, total, false);
  return SN_OK;
}

typedef struct ref_context {
  const sn_op_call *call;
  const double *row_weight; /* (na) */
  double dsum, t;
} ref_context;

static double ref_dlogit(const ref_context *k, int64_t i, int64_t j) {
  int64_t at = i * k->call->in[1].shape[0] + j;
  double weight = sn_tensor_get(&k->call->in[2], at);
  if (weight < 0) return 0;
  double p = exp(sn_tensor_get(&k->call->saved[0], at) - sn_tensor_get(&k->call->saved[1], 2 * i) -
                 sn_tensor_get(&k->call->saved[1], 2 * i + 1));
  return k->dsum * (k->row_weight[i] * p - weight);
}

static double ref_ddot(const void *user, int64_t i, int64_t j) {
  const ref_context *k = user;
  return k->t * ref_dlogit(k, i, j);
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_pair_contrast_attr *a = call->attr;
  if (!sn_has_dout(call)) return SN_OK;
  sn_pair_sizes s = sn_pair_sizes_of(call);
  double *row_weight = call->scratch, dlog_scale = 0;
  for (int64_t i = 0; i < s.na; i++) {
    row_weight[i] = 0;
    for (int64_t j = 0; j < s.nb; j++) row_weight[i] += fmax(sn_tensor_get(&call->in[2], i * s.nb + j), 0.0);
  }
  ref_context k = {call, row_weight, sn_tensor_get(&call->dout[0], 0), sn_pair_scale(call, a->scale)};
  sn_pair_ref_gradient(call, ref_ddot, &k);
  if (!call->din[3].data) return SN_OK;
  for (int64_t i = 0; i < s.na; i++)
    for (int64_t j = 0; j < s.nb; j++) dlog_scale += ref_dlogit(&k, i, j) * sn_tensor_get(&call->saved[0], i * s.nb + j);
  sn_put(&call->din[3], 0, dlog_scale, call->acc[3]);
  return SN_OK;
}

static int64_t ref_scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  sn_pair_sizes s = sn_pair_sizes_of(call);
  return (backward ? s.na : s.nb) * (int64_t)sizeof(double);
}

const sn_op_impl sn_pair_contrast_ref = {.name = "ref",
                                         .device = SN_DEVICE_CPU,
                                         .supports = sn_supports_always,
                                         .forward = ref_forward,
                                         .backward = ref_backward,
                                         .scratch = ref_scratch};

static const sn_op_impl *const impls[] = {&sn_pair_contrast_cpu, &sn_pair_contrast_ref, NULL};

/* Weights by the index alone, so that any shape has targets, bare columns and excluded pairs. */
static void mixed(int64_t count, double *weight) {
  for (int64_t i = 0; i < count; i++) weight[i] = i % 5 == 0 ? 0.25 + 0.125 * (double)(i % 3) : i % 7 == 1 ? -1.0 : 0.0;
}
static void kernel(int64_t count, double *weight) {
  for (int64_t i = 0; i < count; i++) weight[i] = exp(-0.1 * (double)(i % 11));
}
/* (11, 11): the row itself is left out, its neighbour is the target; row and column 4 take no part. */
static void own_pairs(int64_t count, double *weight) {
  for (int64_t i = 0; i < count; i++) {
    int64_t row = i / 11, column = i % 11;
    weight[i] = row == column || row == 4 || column == 4 ? -1.0 : column == (row ^ 1) ? 1.0 : 0.0;
  }
}
static void excluded(int64_t count, double *weight) {
  for (int64_t i = 0; i < count; i++) weight[i] = -1.0;
}

static const double some_scale = 0.7;
#define WEIGHT(rows, columns, function) \
  {.n_dims = 2, .shape = {rows, columns}, .fill = SN_FILL_CUSTOM, .custom = function}
#define LOG_SCALE {.n_dims = 1, .shape = {1}, .fill = SN_FILL_DATA, .data = &some_scale}
#define SMALL(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .scale = 0.3}
static const sn_pair_contrast_attr one = {1.0}, hot = {1.0 / 0.07};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &one, .n_in = 4, .in = {SN_S2(7, 5), SN_S2(13, 5), WEIGHT(7, 13, mixed), LOG_SCALE}},
    {.name = "attr_scale", .attr = &hot, .n_in = 4, .in = {SMALL(11, 3), SMALL(11, 3), WEIGHT(11, 11, own_pairs), SN_ABSENT}},
    {.name = "kernel", .attr = &one, .n_in = 4, .in = {SN_S2(17, 19), SN_S2(17, 19), WEIGHT(17, 17, kernel), LOG_SCALE}},
    {.name = "product", .attr = &one, .n_in = 4, .in = {SN_S2B(37, 7), SN_S2B(41, 7), WEIGHT(37, 41, mixed), LOG_SCALE}},
    {.name = "above_chunk", .attr = &one, .n_in = 4, .in = {SN_S2(33, 6), SN_S2(1031, 6), WEIGHT(33, 1031, mixed), LOG_SCALE}},
    {.name = "one_pair", .attr = &one, .n_in = 4, .in = {SN_S2(1, 5), SN_S2(1, 5), WEIGHT(1, 1, kernel), SN_ABSENT},
     .why_zero = "the loss of the only column is zero"},
    {.name = "all_excluded", .attr = &one, .n_in = 4, .in = {SN_S2(3, 5), SN_S2(7, 5), WEIGHT(3, 7, excluded), LOG_SCALE},
     .why_zero = "every pair is left out"},
    {.name = "no_rows", .attr = &one, .n_in = 4, .in = {SN_S2(0, 5), SN_S2(7, 5), WEIGHT(0, 7, mixed), LOG_SCALE},
     .why_zero = "no rows"},
    {.name = "no_columns", .attr = &one, .n_in = 4, .in = {SN_S2(7, 5), SN_S2(0, 5), WEIGHT(7, 0, mixed), LOG_SCALE},
     .why_zero = "no columns"},
    {.name = NULL}};

static const sn_op_sample typical[] = {
    {.name = "2048", .attr = &hot, .n_in = 4, .in = {SN_S2(2048, 256), SN_S2(2048, 256), WEIGHT(2048, 2048, mixed), SN_ABSENT}},
    {.name = NULL}};

const sn_op sn_op_pair_contrast = {
    .name = "pair_contrast",
    .summary = "sum of weight * (logsumexp of the row - l), l = scale exp(s) za zbT; and the weight",
    .attr_size = sizeof(sn_pair_contrast_attr),
    .infer = infer,
    .flops = sn_pair_flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u | 2u | 8u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
    .typical = typical,
};

sn_status sn_pair_contrast(sn_tape *tape, sn_value *out[2], sn_value *za, sn_value *zb, sn_value *weight,
                           sn_value *log_scale, double scale, sn_error *err) {
  sn_pair_contrast_attr attr = {scale};
  sn_value *in[4] = {za, zb, weight, log_scale};
  return sn_tape_record(tape, &sn_op_pair_contrast, &attr, 4, in, 2, out, err);
}
