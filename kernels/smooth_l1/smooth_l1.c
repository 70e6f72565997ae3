#include "kernels/smooth_l1/smooth_l1.h"

#include <math.h>

#include "kernels/pair_loss.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_smooth_l1_attr *a = call->attr;
  if (!(a->beta > 0) || !isfinite(a->beta))
    return sn_fail(err, SN_E_ARGUMENT, "beta must be finite and above 0; it is %g", a->beta);
  return sn_pair_loss_rule(call, err);
}

static double flops(const sn_op_call *call, bool backward) { return 5.0 * (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_smooth_l1_attr *a = call->attr;
  double sum = 0, count = 0;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    if (!sn_pair_counts(call, i)) continue;
    double d = fabs(sn_tensor_get(&call->in[0], i) - sn_tensor_get(&call->in[1], i));
    sum += d < a->beta ? d * d / (2 * a->beta) : d - a->beta / 2;
    count += 1;
  }
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, count, false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_smooth_l1_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  double dsum = sn_tensor_get(&call->dout[0], 0);
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double d = sn_tensor_get(&call->in[0], i) - sn_tensor_get(&call->in[1], i);
    double slope = fabs(d) < a->beta ? d / a->beta : (d > 0) - (d < 0);
    sn_put(&call->din[0], i, sn_pair_counts(call, i) ? dsum * slope : 0.0, call->acc[0]);
  }
  return SN_OK;
}

const sn_op_impl sn_smooth_l1_ref = {.name = "ref",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_always,
                                     .forward = ref_forward,
                                     .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_smooth_l1_cpu, &sn_smooth_l1_ref, NULL};

#define MASK(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_U8, .fill = SN_FILL_INDEX, .scale = 2.0}
static const sn_smooth_l1_attr one = {1.0}, small = {0.3};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &one, .n_in = 3, .in = {SN_S2(7, 13), SN_S2(7, 13), SN_ABSENT}},
    {.name = "masked", .attr = &small, .n_in = 3, .in = {SN_S2B(7, 13), SN_S2(7, 13), MASK(7, 13)}},
    {.name = "above_block", .attr = &one, .n_in = 3, .in = {SN_S2(3, 5471), SN_S2(3, 5471), MASK(3, 5471)}},
    {.name = "no_rows", .attr = &one, .n_in = 3, .in = {SN_S2(0, 5), SN_S2(0, 5), SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_smooth_l1 = {
    .name = "smooth_l1",
    .summary = "sum of d*d / (2 beta) where |d| < beta, else |d| - beta/2, and the count",
    .attr_size = sizeof(sn_smooth_l1_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
};

sn_status sn_smooth_l1(sn_tape *tape, sn_value *out[2], sn_value *x, sn_value *target, sn_value *mask, double beta,
                       sn_error *err) {
  sn_smooth_l1_attr attr = {beta};
  sn_value *in[3] = {x, target, mask};
  return sn_tape_record(tape, &sn_op_smooth_l1, &attr, 3, in, 2, out, err);
}
