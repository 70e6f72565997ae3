#include "kernels/segment_max/segment_max.h"

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_segments *a = call->attr;
  SN_TRY(sn_segments_rule(call, a, err));
  if (sn_tensor_rows(&call->in[0]) > INT32_MAX)
    return sn_fail(err, SN_E_ARGUMENT, "x must have fewer than 2^31 rows; it has %lld",
                   (long long)sn_tensor_rows(&call->in[0]));
  call->n_saved = with_saved ? 1 : 0;
  if (with_saved) sn_shape_2d(&call->saved[0], a->n_segments, sn_tensor_columns(&call->in[0]), SN_I32);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return backward ? 0.0 : (double)sn_tensor_count(&call->in[0]); }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segments *a = call->attr;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(sn_segments_check(a, sn_tensor_rows(&call->in[0]), err));
  for (int64_t s = 0; s < a->n_segments; s++)
    for (int64_t c = 0; c < columns; c++) {
      int64_t from = -1;
      double best = 0;
      for (int64_t t = a->offsets[s]; t < a->offsets[s + 1]; t++) {
        double x = sn_tensor_get(&call->in[0], t * columns + c);
        if (from >= 0 && !(x > best) && !(x != x && best == best)) continue;
        best = x;
        from = t;
      }
      sn_put(&call->out[0], s * columns + c, best, false);
      if (call->saved[0].data) ((int32_t *)call->saved[0].data)[s * columns + c] = (int32_t)from;
    }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segments *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  sn_zero_wanted((sn_op_call *)call);
  for (int64_t i = 0; i < a->n_segments * columns; i++) {
    int32_t from = ((const int32_t *)call->saved[0].data)[i];
    if (from >= 0) sn_put(&call->din[0], from * columns + i % columns, sn_tensor_get(&call->dout[0], i), true);
  }
  return SN_OK;
}

const sn_op_impl sn_segment_max_ref = {.name = "ref",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_always,
                                       .forward = ref_forward,
                                       .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_segment_max_cpu, &sn_segment_max_ref, NULL};

static const int64_t offsets[6] = {0, 3, 4, 9, 16, 17}, with_empty[6] = {2, 5, 5, 9, 11, 11}, only_empty[3] = {0, 0, 0};
static const sn_segments all = {offsets, 5}, gaps = {with_empty, 5}, empty = {only_empty, 2};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &all, .n_in = 1, .in = {SN_S2B(17, 13)}},
    {.name = "empty_ones_and_tail", .attr = &gaps, .n_in = 1, .in = {SN_S2(13, 7)}},
    {.name = "above_column_block", .attr = &all, .n_in = 1, .in = {SN_S2(17, 131)}},
    {.name = "empty", .attr = &empty, .n_in = 1, .in = {SN_S2(3, 5)}, .why_zero = "all segments are empty"},
    {.name = NULL}};

const sn_op sn_op_segment_max = {
    .name = "segment_max",
    .summary = "y[s] = largest of the rows of segment s, by column",
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

sn_status sn_segment_max(sn_tape *tape, sn_value **y, sn_value *x, const int64_t *segment_offsets, int64_t n_segments,
                         sn_error *err) {
  sn_segments attr = {segment_offsets, n_segments};
  return sn_tape_record(tape, &sn_op_segment_max, &attr, 1, &x, 1, y, err);
}
