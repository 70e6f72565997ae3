#include "kernels/bce_logits/bce_logits.h"

#include <math.h>

#include "kernels/pair_loss.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) { return sn_pair_loss_rule(call, err); }

static double flops(const sn_op_call *call, bool backward) { return 30.0 * (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  double sum = 0, count = 0;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    if (!sn_pair_counts(call, i)) continue;
    double x = sn_tensor_get(&call->in[0], i);
    sum += fmax(x, 0) - x * sn_tensor_get(&call->in[1], i) + log1p(exp(-fabs(x)));
    count += 1;
  }
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, count, false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  double dsum = sn_tensor_get(&call->dout[0], 0);
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) {
    double dx = 0;
    if (sn_pair_counts(call, i))
      dx = dsum * (1.0 / (1.0 + exp(-sn_tensor_get(&call->in[0], i))) - sn_tensor_get(&call->in[1], i));
    sn_put(&call->din[0], i, dx, call->acc[0]);
  }
  return SN_OK;
}

const sn_op_impl sn_bce_logits_ref = {.name = "ref",
                                      .device = SN_DEVICE_CPU,
                                      .supports = sn_supports_always,
                                      .forward = ref_forward,
                                      .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_bce_logits_cpu, &sn_bce_logits_ref, NULL};

#define TARGET(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .fill = SN_FILL_UNIFORM}
#define MASK(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_U8, .fill = SN_FILL_INDEX, .scale = 2.0}
static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 3, .in = {SN_S2(7, 13), TARGET(7, 13), SN_ABSENT}},
    {.name = "masked", .n_in = 3, .in = {SN_S2B(7, 13), TARGET(7, 13), MASK(7, 13)}},
    {.name = "wide", .n_in = 3, .in = {{.n_dims = 2, .shape = {3, 5}, .scale = 20.0}, TARGET(3, 5), SN_ABSENT}},
    {.name = "above_block", .n_in = 3, .in = {SN_S2(3, 5471), TARGET(3, 5471), MASK(3, 5471)}},
    {.name = "no_rows", .n_in = 3, .in = {SN_S2(0, 5), TARGET(0, 5), SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_bce_logits = {
    .name = "bce_logits",
    .summary = "sum of max(x,0) - x z + log(1 + exp(-|x|)), and the count",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
};

sn_status sn_bce_logits(sn_tape *tape, sn_value *out[2], sn_value *logits, sn_value *target, sn_value *mask,
                        sn_error *err) {
  sn_value *in[3] = {logits, target, mask};
  return sn_tape_record(tape, &sn_op_bce_logits, NULL, 3, in, 2, out, err);
}
