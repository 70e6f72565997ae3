#include "kernels/dropout/dropout.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_dropout_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  int64_t rows = sn_tensor_rows(&call->in[0]);
  if (!(a->p >= 0 && a->p < 1)) return sn_fail(err, SN_E_ARGUMENT, "p must lie in [0, 1); it is %g", a->p);
  if (a->n != rows || (rows > 0 && (!a->sample_ids || !a->positions)))
    return sn_fail(err, SN_E_ARGUMENT, "needs a sample id and a position for each of %lld rows; found %lld%s",
                   (long long)rows, (long long)a->n, a->sample_ids && a->positions ? "" : ", a list is missing");
  call->n_out = 1;
  call->n_saved = 0;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return (double)sn_tensor_count(&call->in[0]); }

sn_random sn_dropout_stream(const sn_dropout_attr *attr, int64_t t) {
  sn_random sample = sn_random_at(attr->seed, SN_PURPOSE_DROPOUT, attr->epoch, attr->sample_ids[t]);
  return sn_random_fork(&sample, attr->part);
}

static void ref_apply(const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, bool acc) {
  const sn_dropout_attr *a = call->attr;
  int64_t rows = sn_tensor_rows(from), columns = sn_tensor_columns(from);
  double threshold = nearbyint(a->p * 4294967296.0), scale = 1.0 / (1.0 - a->p);
  for (int64_t t = 0; t < rows; t++) {
    sn_random stream = sn_dropout_stream(a, t);
    for (int64_t c = 0; c < columns; c++) {
      uint64_t block = (uint64_t)a->positions[t] * (uint64_t)((columns + 3) / 4) + (uint64_t)(c / 4);
      uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), stream.counter[2], stream.counter[3]};
      bool keep = (double)sn_philox4x32(counter, stream.key).word[c % 4] >= threshold;
      sn_put(to, t * columns + c, keep ? scale * sn_tensor_get(from, t * columns + c) : 0.0, acc);
    }
  }
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  ref_apply(call, &call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) ref_apply(call, &call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_dropout_ref = {.name = "ref",
                                   .device = SN_DEVICE_CPU,
                                   .supports = sn_supports_always,
                                   .forward = ref_forward,
                                   .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_dropout_cpu, &sn_dropout_ref, NULL};

static const uint64_t ids[7] = {11, 11, 11, 42, 42, 9, 9};
static const int32_t positions[7] = {0, 1, 2, 0, 1, 0, 5};
static const sn_dropout_attr some = {0.3, 1, 2, 3, ids, positions, 7}, most = {0.8, 1, 0, 0, ids, positions, 7},
                             nothing = {0.0, 1, 2, 3, ids, positions, 7}, no_rows = {0.1, 1, 2, 3, ids, positions, 0};
static const sn_op_sample samples[] = {
    {.name = "some", .attr = &some, .n_in = 1, .in = {SN_S2B(7, 13)}},
    {.name = "most_above_chunk", .attr = &most, .n_in = 1, .in = {SN_S2(7, 1027)}},
    {.name = "nothing_dropped", .attr = &nothing, .n_in = 1, .in = {SN_S2(7, 5)}},
    {.name = "no_rows", .attr = &no_rows, .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_dropout = {
    .name = "dropout",
    .summary = "y = keep ? x / (1 - p) : 0, keep a function of (seed, epoch, sample, part, position, column)",
    .attr_size = sizeof(sn_dropout_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_dropout(sn_tape *tape, sn_value **y, sn_value *x, const sn_dropout_attr *attr, sn_error *err) {
  return sn_tape_record(tape, &sn_op_dropout, attr, 1, &x, 1, y, err);
}
