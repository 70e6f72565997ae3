#include "kernels/segment_std/segment_std.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_segment_std_attr *a = call->attr;
  SN_TRY(sn_segments_rule(call, &a->segments, err));
  if (!(a->eps > 0)) return sn_fail(err, SN_E_ARGUMENT, "eps must be above 0; it is %g", a->eps);
  call->n_saved = with_saved ? 2 : 0;
  for (int i = 0; i < call->n_saved; i++)
    sn_shape_2d(&call->saved[i], a->segments.n_segments, sn_tensor_columns(&call->in[0]),
                sn_statistics_dtype(call->in[0].dtype));
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 4.0 * (double)sn_tensor_count(&call->in[0]); }

static void ref_column(const sn_op_call *call, int64_t s, int64_t c, int64_t columns) {
  const sn_segment_std_attr *a = call->attr;
  int64_t first = a->segments.offsets[s], end = a->segments.offsets[s + 1];
  double mean = 0, var = 0, std = 0;
  for (int64_t t = first; t < end; t++) mean += sn_tensor_get(&call->in[0], t * columns + c) / (double)(end - first);
  for (int64_t t = first; t < end; t++) {
    double d = sn_tensor_get(&call->in[0], t * columns + c) - mean;
    var += d * d / (double)(end - first);
  }
  if (end > first) std = sqrt(var + a->eps);
  sn_put(&call->out[0], s * columns + c, std, false);
  if (call->saved[0].data) sn_put(&call->saved[0], s * columns + c, mean, false);
  if (call->saved[1].data) sn_put(&call->saved[1], s * columns + c, std, false);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segment_std_attr *a = call->attr;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(sn_segments_check(&a->segments, sn_tensor_rows(&call->in[0]), err));
  for (int64_t s = 0; s < a->segments.n_segments; s++)
    for (int64_t c = 0; c < columns; c++) ref_column(call, s, c, columns);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segment_std_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t columns = sn_tensor_columns(&call->in[0]);
  SN_TRY(sn_segments_check(&a->segments, sn_tensor_rows(&call->in[0]), err));
  sn_segments_zero_outside(call, &a->segments);
  for (int64_t s = 0; s < a->segments.n_segments; s++)
    for (int64_t t = a->segments.offsets[s]; t < a->segments.offsets[s + 1]; t++)
      for (int64_t c = 0; c < columns; c++) {
        double mean = sn_tensor_get(&call->saved[0], s * columns + c), std = sn_tensor_get(&call->saved[1], s * columns + c);
        double n = (double)(a->segments.offsets[s + 1] - a->segments.offsets[s]);
        double dx = sn_tensor_get(&call->dout[0], s * columns + c) * (sn_tensor_get(&call->in[0], t * columns + c) - mean);
        sn_put(&call->din[0], t * columns + c, dx / (n * std), call->acc[0]);
      }
  return SN_OK;
}

const sn_op_impl sn_segment_std_ref = {.name = "ref",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_always,
                                       .forward = ref_forward,
                                       .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_segment_std_cpu, &sn_segment_std_ref, NULL};

static const int64_t offsets[5] = {0, 3, 5, 9, 17}, with_empty[6] = {2, 5, 5, 9, 11, 11};
/* Two nearly equal rows and a small eps would make the differences of the test inexact. */
static const sn_segment_std_attr all = {{offsets, 4}, 0.05}, gaps = {{with_empty, 5}, 1e-3};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &all, .n_in = 1, .in = {SN_S2B(17, 13)}},
    {.name = "empty_ones_and_tail", .attr = &gaps, .n_in = 1, .in = {SN_S2(13, 7)}},
    {.name = "above_column_block", .attr = &all, .n_in = 1, .in = {SN_S2(17, 131)}},
    {.name = NULL}};

const sn_op sn_op_segment_std = {
    .name = "segment_std",
    .summary = "y[s] = sqrt(variance of the rows of segment s + eps), by column",
    .attr_size = sizeof(sn_segment_std_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_segment_std(sn_tape *tape, sn_value **y, sn_value *x, const int64_t *segment_offsets, int64_t n_segments,
                         double eps, sn_error *err) {
  sn_segment_std_attr attr = {{segment_offsets, n_segments}, eps};
  return sn_tape_record(tape, &sn_op_segment_std, &attr, 1, &x, 1, y, err);
}
