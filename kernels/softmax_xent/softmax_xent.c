#include "kernels/softmax_xent/softmax_xent.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_softmax_xent_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "logits", err));
  int64_t rows = sn_tensor_rows(&call->in[0]);
  if (sn_tensor_columns(&call->in[0]) < 1 || a->n != rows || (rows > 0 && !a->labels))
    return sn_fail(err, SN_E_ARGUMENT, "needs at least one class and a label for each of %lld rows; found %lld classes, "
                   "%lld labels", (long long)rows, (long long)sn_tensor_columns(&call->in[0]), a->labels ? (long long)a->n : 0LL);
  if (!(a->label_smoothing >= 0 && a->label_smoothing < 1))
    return sn_fail(err, SN_E_ARGUMENT, "label smoothing must lie in [0, 1); it is %g", a->label_smoothing);
  call->n_out = 2;
  sn_shape_scalar(&call->out[0], SN_F64);
  sn_shape_scalar(&call->out[1], SN_F64);
  call->n_saved = with_saved ? 1 : 0;
  if (with_saved) sn_shape_1d(&call->saved[0], rows, sn_statistics_dtype(call->in[0].dtype));
  return SN_OK;
}

sn_status sn_softmax_xent_check(const sn_op_call *call, sn_error *err) {
  const sn_softmax_xent_attr *a = call->attr;
  int64_t n_classes = sn_tensor_columns(&call->in[0]);
  for (int64_t b = 0; b < a->n; b++)
    if (a->labels[b] < -1 || a->labels[b] >= n_classes)
      return sn_fail(err, SN_E_ARGUMENT, "labels[%lld] must lie in [-1, %lld); it is %d", (long long)b, (long long)n_classes,
                     (int)a->labels[b]);
  for (int64_t k = 0; a->class_weight && k < n_classes; k++)
    if (!(a->class_weight[k] >= 0) || !isfinite(a->class_weight[k]))
      return sn_fail(err, SN_E_ARGUMENT, "class weight %lld must be finite and not negative; it is %g", (long long)k,
                     (double)a->class_weight[k]);
  return SN_OK;
}

double sn_softmax_xent_target_sum(const sn_softmax_xent_attr *attr, int32_t label, int64_t n_classes) {
  double s = attr->label_smoothing, sum = 0;
  for (int64_t k = 0; k < n_classes && s > 0; k++) sum += sn_softmax_xent_target_weight(attr, label, k);
  return (1.0 - s) * sn_softmax_xent_weight(attr, label) + s / (double)n_classes * sum;
}

static double flops(const sn_op_call *call, bool backward) { return 20.0 * (double)sn_tensor_count(&call->in[0]); }

static double ref_logsumexp(const sn_tensor *x, int64_t b, int64_t n_classes) {
  double largest = -INFINITY, sum = 0;
  for (int64_t k = 0; k < n_classes; k++) largest = fmax(largest, sn_tensor_get(x, b * n_classes + k));
  for (int64_t k = 0; k < n_classes; k++) sum += exp(sn_tensor_get(x, b * n_classes + k) - largest);
  return largest + log(sum);
}

static double ref_target(const sn_softmax_xent_attr *a, int64_t b, int64_t k, int64_t n_classes) {
  double t = a->label_smoothing / (double)n_classes + (k == a->labels[b] ? 1.0 - a->label_smoothing : 0.0);
  return t * sn_softmax_xent_target_weight(a, a->labels[b], k);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_softmax_xent_attr *a = call->attr;
  int64_t n_classes = sn_tensor_columns(&call->in[0]);
  double sum = 0, weight = 0;
  SN_TRY(sn_softmax_xent_check(call, err));
  for (int64_t b = 0; b < a->n; b++) {
    double lse = ref_logsumexp(&call->in[0], b, n_classes);
    if (call->saved[0].data) sn_put(&call->saved[0], b, lse, false);
    if (a->labels[b] < 0) continue;
    for (int64_t k = 0; k < n_classes; k++)
      sum += ref_target(a, b, k, n_classes) * (lse - sn_tensor_get(&call->in[0], b * n_classes + k));
    weight += sn_softmax_xent_weight(a, a->labels[b]);
  }
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, weight, false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_softmax_xent_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t n_classes = sn_tensor_columns(&call->in[0]);
  double dsum = sn_tensor_get(&call->dout[0], 0);
  SN_TRY(sn_softmax_xent_check(call, err));
  for (int64_t b = 0; b < a->n; b++) {
    double lse = sn_tensor_get(&call->saved[0], b), total = 0;
    for (int64_t k = 0; k < n_classes && a->labels[b] >= 0; k++) total += ref_target(a, b, k, n_classes);
    for (int64_t k = 0; k < n_classes; k++) {
      double p = exp(sn_tensor_get(&call->in[0], b * n_classes + k) - lse);
      double dx = a->labels[b] >= 0 ? dsum * (total * p - ref_target(a, b, k, n_classes)) : 0.0;
      sn_put(&call->din[0], b * n_classes + k, dx, call->acc[0]);
    }
  }
  return SN_OK;
}

const sn_op_impl sn_softmax_xent_ref = {.name = "ref",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_always,
                                        .forward = ref_forward,
                                        .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_softmax_xent_cpu, &sn_softmax_xent_ref, NULL};

static const int32_t labels[7] = {4, 0, -1, 3, 2, -1, 1}, ignored[3] = {-1, -1, -1};
static const float weights[5] = {0.5f, 2.0f, 1.0f, 0.25f, 3.0f};
static const sn_softmax_xent_attr plain = {labels, 7, NULL, 0.0, false}, weighted = {labels, 7, weights, 0.0, false},
                                  smoothed = {labels, 7, NULL, 0.1, false}, both = {labels, 7, weights, 0.2, false},
                                  by_row = {labels, 7, weights, 0.2, true},
                                  nothing = {ignored, 3, NULL, 0.0, false}, no_rows = {labels, 0, NULL, 0.0, false};
static const sn_op_sample samples[] = {
    {.name = "plain", .attr = &plain, .n_in = 1, .in = {SN_S2(7, 5)}},
    {.name = "weighted", .attr = &weighted, .n_in = 1, .in = {SN_S2(7, 5)}},
    {.name = "smoothed", .attr = &smoothed, .n_in = 1, .in = {SN_S2B(7, 5)}},
    {.name = "weighted_and_smoothed", .attr = &both, .n_in = 1, .in = {{.n_dims = 2, .shape = {7, 5}, .scale = 4.0}}},
    {.name = "rows_weighted", .attr = &by_row, .n_in = 1, .in = {{.n_dims = 2, .shape = {7, 5}, .scale = 4.0}}},
    {.name = "above_chunk", .attr = &plain, .n_in = 1, .in = {SN_S2(7, 1031)}},
    {.name = "all_ignored", .attr = &nothing, .n_in = 1, .in = {SN_S2(3, 5)}, .why_zero = "all rows are ignored"},
    {.name = "no_rows", .attr = &no_rows, .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_softmax_xent = {
    .name = "softmax_xent",
    .summary = "sum over rows of -log softmax(x)[label], and the weight of these rows",
    .attr_size = sizeof(sn_softmax_xent_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
};

sn_status sn_softmax_xent(sn_tape *tape, sn_value *out[2], sn_value *logits, const sn_softmax_xent_attr *attr,
                          sn_error *err) {
  return sn_tape_record(tape, &sn_op_softmax_xent, attr, 1, &logits, 2, out, err);
}
