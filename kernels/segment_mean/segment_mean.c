#include "kernels/segment_mean/segment_mean.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  call->n_saved = 0;
  return sn_segments_rule(call, call->attr, err);
}

static double flops(const sn_op_call *call, bool backward) { return (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segments *a = call->attr;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(sn_segments_check(a, sn_tensor_rows(&call->in[0]), err));
  for (int64_t s = 0; s < a->n_segments; s++)
    for (int64_t c = 0; c < columns; c++) {
      double sum = 0;
      for (int64_t t = a->offsets[s]; t < a->offsets[s + 1]; t++) sum += sn_tensor_get(&call->in[0], t * columns + c);
      int64_t n = a->offsets[s + 1] - a->offsets[s];
      sn_put(&call->out[0], s * columns + c, n > 0 ? sum / (double)n : 0.0, false);
    }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segments *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(sn_segments_check(a, sn_tensor_rows(&call->in[0]), err));
  sn_segments_zero_outside(call, a);
  for (int64_t s = 0; s < a->n_segments; s++)
    for (int64_t t = a->offsets[s]; t < a->offsets[s + 1]; t++)
      for (int64_t c = 0; c < columns; c++) {
        double dy = sn_tensor_get(&call->dout[0], s * columns + c);
        sn_put(&call->din[0], t * columns + c, dy / (double)(a->offsets[s + 1] - a->offsets[s]), call->acc[0]);
      }
  return SN_OK;
}

const sn_op_impl sn_segment_mean_ref = {.name = "ref",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_always,
                                        .forward = ref_forward,
                                        .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_segment_mean_cpu, &sn_segment_mean_ref, NULL};

static const int64_t offsets[6] = {0, 3, 4, 9, 16, 17}, with_empty[6] = {2, 5, 5, 9, 11, 11}, only_empty[3] = {0, 0, 0};
static const sn_segments all = {offsets, 5}, gaps = {with_empty, 5}, empty = {only_empty, 2}, none = {offsets, 0};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &all, .n_in = 1, .in = {SN_S2B(17, 13)}},
    {.name = "empty_ones_and_tail", .attr = &gaps, .n_in = 1, .in = {SN_S2(13, 7)}},
    {.name = "above_column_block", .attr = &all, .n_in = 1, .in = {SN_S2(17, 131)}},
    {.name = "empty", .attr = &empty, .n_in = 1, .in = {SN_S2(3, 5)}, .why_zero = "all segments are empty"},
    {.name = "none", .attr = &none, .n_in = 1, .in = {SN_S2(3, 5)}, .why_zero = "no segment"},
    {.name = NULL}};

const sn_op sn_op_segment_mean = {
    .name = "segment_mean",
    .summary = "y[s] = mean of the rows of segment s",
    .attr_size = sizeof(sn_segments),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_in = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_segment_mean(sn_tape *tape, sn_value **y, sn_value *x, const int64_t *segment_offsets, int64_t n_segments,
                          sn_error *err) {
  sn_segments attr = {segment_offsets, n_segments};
  return sn_tape_record(tape, &sn_op_segment_mean, &attr, 1, &x, 1, y, err);
}
