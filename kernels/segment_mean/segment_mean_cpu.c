#include "kernels/cpu_blocks.h"

#include "kernels/op_rules.h"
#include "kernels/segment_mean/segment_mean.h"

typedef struct mean_context {
  const sn_op_call *call;
  const sn_segments *segments;
  int64_t columns, n_column_blocks;
} mean_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const mean_context *k = ctx;
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  int64_t m = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c);
  int64_t first = k->segments->offsets[s], end = k->segments->offsets[s + 1];
  double sum[SN_SEGMENT_COLUMNS] = {0};
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  for (int64_t t = first; t < end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + c, m, buffer);
    for (int64_t i = 0; i < m; i++) sum[i] += (double)x[i];
  }
  double inverse = end > first ? 1.0 / (double)(end - first) : 0.0;
  for (int64_t i = 0; i < m; i++) values[i] = (float)(sum[i] * inverse);
  sn_commit(&k->call->out[0], s * k->columns + c, m, false, values);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const mean_context *k = ctx;
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  int64_t m = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c);
  int64_t first = k->segments->offsets[s], end = k->segments->offsets[s + 1];
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS], inverse = end > first ? 1.0f / (float)(end - first) : 0.0f;
  const float *restrict dy = sn_load(&k->call->dout[0], s * k->columns + c, m, buffer);
  for (int64_t i = 0; i < m; i++) values[i] = dy[i] * inverse;
  for (int64_t t = first; t < end; t++) sn_commit(&k->call->din[0], t * k->columns + c, m, k->call->acc[0], values);
}
SN_SIMD_VARIANTS(backward_body)

static mean_context make_context(const sn_op_call *call) {
  mean_context k = {call, call->attr, sn_tensor_columns(&call->in[0]), 0};
  k.n_column_blocks = sn_count_blocks(k.columns, SN_SEGMENT_COLUMNS);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  mean_context k = make_context(call);
  SN_TRY(sn_segments_check(k.segments, sn_tensor_rows(&call->in[0]), err));
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.segments->n_segments * k.n_column_blocks, forward_body_for(device),
                &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  mean_context k = make_context(call);
  SN_TRY(sn_segments_check(k.segments, sn_tensor_rows(&call->in[0]), err));
  sn_segments_zero_outside(call, k.segments);
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.segments->n_segments * k.n_column_blocks, backward_body_for(device),
                &k);
  return SN_OK;
}

const sn_op_impl sn_segment_mean_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_f32_bf16,
                                        .forward = forward,
                                        .backward = backward};
