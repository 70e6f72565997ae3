#include "kernels/pair_sigmoid/pair_sigmoid.h"

#include <math.h>

#include "kernels/pair_logits.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_pair_sigmoid_attr *a = call->attr;
  SN_TRY(sn_pair_rule(call, a->scale, "label", true, err));
  sn_pair_sizes s = sn_pair_sizes_of(call);
  call->n_out = 2;
  sn_shape_scalar(&call->out[0], SN_F64);
  sn_shape_scalar(&call->out[1], SN_F64);
  call->n_saved = with_saved ? 1 : 0;
  if (with_saved) sn_shape_2d(&call->saved[0], s.na, s.nb, sn_statistics_dtype(call->in[0].dtype));
  return SN_OK;
}

sn_status sn_pair_sigmoid_bad_label(const sn_op_call *call, int64_t place, sn_error *err) {
  int64_t nb = call->in[1].shape[0];
  return sn_fail(err, SN_E_ARGUMENT, "label[%lld, %lld] is %g: it must be finite (above 0: matches, below 0: does not, 0: left "
                 "out)", (long long)(place / nb), (long long)(place % nb), sn_tensor_get(&call->in[2], place));
}

static double bias_of(const sn_op_call *call) { return call->in[4].data ? sn_tensor_get(&call->in[4], 0) : 0.0; }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_pair_sigmoid_attr *a = call->attr;
  sn_pair_sizes s = sn_pair_sizes_of(call);
  double t = sn_pair_scale(call, a->scale), b = bias_of(call), sum = 0, total = 0;
  for (int64_t i = 0; i < s.na; i++)
    for (int64_t j = 0; j < s.nb; j++) {
      double label = sn_tensor_get(&call->in[2], i * s.nb + j), l = t * sn_pair_ref_dot(call, i, j);
      if (!isfinite(label)) return sn_pair_sigmoid_bad_label(call, i * s.nb + j, err);
      if (call->saved[0].data) sn_put(&call->saved[0], i * s.nb + j, l, false);
      if (label == 0) continue;
      double x = label > 0 ? l + b : -(l + b);
      sum += fabs(label) * ((x < 0 ? -x : 0.0) + log1p(exp(-fabs(x))));
      total += fabs(label);
    }
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, total, false);
  return SN_OK;
}

typedef struct ref_context {
  const sn_op_call *call;
  double dsum, t, b;
} ref_context;

static double ref_dlogit(const ref_context *k, int64_t i, int64_t j) {
  int64_t at = i * k->call->in[1].shape[0] + j;
  double label = sn_tensor_get(&k->call->in[2], at), l = sn_tensor_get(&k->call->saved[0], at) + k->b;
  return label == 0 ? 0.0 : -k->dsum * label / (1.0 + exp(label > 0 ? l : -l));
}

static double ref_ddot(const void *user, int64_t i, int64_t j) {
  const ref_context *k = user;
  return k->t * ref_dlogit(k, i, j);
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_pair_sigmoid_attr *a = call->attr;
  if (!sn_has_dout(call)) return SN_OK;
  sn_pair_sizes s = sn_pair_sizes_of(call);
  ref_context k = {call, sn_tensor_get(&call->dout[0], 0), sn_pair_scale(call, a->scale), bias_of(call)};
  double dlog_scale = 0, dbias = 0;
  sn_pair_ref_gradient(call, ref_ddot, &k);
  for (int64_t i = 0; i < s.na; i++)
    for (int64_t j = 0; j < s.nb; j++) {
      double dl = ref_dlogit(&k, i, j);
      dlog_scale += dl * sn_tensor_get(&call->saved[0], i * s.nb + j);
      dbias += dl;
    }
  if (call->din[3].data) sn_put(&call->din[3], 0, dlog_scale, call->acc[3]);
  if (call->din[4].data) sn_put(&call->din[4], 0, dbias, call->acc[4]);
  return SN_OK;
}

const sn_op_impl sn_pair_sigmoid_ref = {.name = "ref",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_always,
                                        .forward = ref_forward,
                                        .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_pair_sigmoid_cpu, &sn_pair_sigmoid_ref, NULL};

/* Labels by the index alone, so that any shape has matches, others and pairs left out. */
static void mixed(int64_t count, double *label) {
  for (int64_t i = 0; i < count; i++) label[i] = i % 5 == 0 ? 1.0 : i % 7 == 1 ? 0.0 : -1.0;
}
static void weighted(int64_t count, double *label) {
  for (int64_t i = 0; i < count; i++) label[i] = (i % 3 == 0 ? 1.0 : -1.0) * (0.25 + 0.125 * (double)(i % 5));
}
static void left_out(int64_t count, double *label) {
  for (int64_t i = 0; i < count; i++) label[i] = 0;
}

static const double some_scale = 0.7, low = -10.0, some_bias = -0.5;
#define LABEL(rows, columns, function) \
  {.n_dims = 2, .shape = {rows, columns}, .fill = SN_FILL_CUSTOM, .custom = function}
#define SCALAR(value) {.n_dims = 1, .shape = {1}, .fill = SN_FILL_DATA, .data = &value}
#define SMALL(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .scale = 0.4}
#define BOTH SCALAR(some_scale), SCALAR(some_bias)
static const sn_pair_sigmoid_attr one = {1.0}, ten = {10.0};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &one, .n_in = 5, .in = {SN_S2(7, 5), SN_S2(13, 5), LABEL(7, 13, mixed), BOTH}},
    {.name = "as_it_starts", .attr = &ten, .n_in = 5,
     .in = {SMALL(11, 3), SMALL(11, 3), LABEL(11, 11, mixed), SN_ABSENT, SCALAR(low)}},
    {.name = "weighted", .attr = &one, .n_in = 5,
     .in = {SN_S2(17, 19), SN_S2(17, 19), LABEL(17, 17, weighted), SCALAR(some_scale), SN_ABSENT}},
    {.name = "product", .attr = &one, .n_in = 5, .in = {SN_S2B(37, 7), SN_S2B(41, 7), LABEL(37, 41, mixed), BOTH}},
    {.name = "above_chunk", .attr = &one, .n_in = 5, .in = {SN_S2(33, 6), SN_S2(1031, 6), LABEL(33, 1031, mixed), BOTH}},
    {.name = "one_pair", .attr = &one, .n_in = 5, .in = {SN_S2(1, 5), SN_S2(1, 5), LABEL(1, 1, mixed), SN_ABSENT, SN_ABSENT}},
    {.name = "all_left_out", .attr = &one, .n_in = 5, .in = {SN_S2(3, 5), SN_S2(7, 5), LABEL(3, 7, left_out), BOTH},
     .why_zero = "every pair is left out"},
    {.name = "no_rows", .attr = &one, .n_in = 5, .in = {SN_S2(0, 5), SN_S2(7, 5), LABEL(0, 7, mixed), BOTH},
     .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_pair_sigmoid = {
    .name = "pair_sigmoid",
    .summary = "sum of |y| * -log sigmoid(sign(y) l), l = scale exp(s) za zbT + b; and sum of |y|",
    .attr_size = sizeof(sn_pair_sigmoid_attr),
    .infer = infer,
    .flops = sn_pair_flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u | 2u | 8u | 16u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
};

sn_status sn_pair_sigmoid(sn_tape *tape, sn_value *out[2], sn_value *za, sn_value *zb, sn_value *label, sn_value *log_scale,
                          sn_value *bias, double scale, sn_error *err) {
  sn_pair_sigmoid_attr attr = {scale};
  sn_value *in[5] = {za, zb, label, log_scale, bias};
  return sn_tape_record(tape, &sn_op_pair_sigmoid, &attr, 5, in, 2, out, err);
}
