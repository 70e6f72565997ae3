#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/op_rules.h"
#include "kernels/segment_std/segment_std.h"

typedef struct std_context {
  const sn_op_call *call;
  const sn_segment_std_attr *attr;
  int64_t columns, n_column_blocks;
} std_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const std_context *k = ctx;
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  int64_t m = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c), at = s * k->columns + c;
  int64_t first = k->attr->segments.offsets[s], end = k->attr->segments.offsets[s + 1];
  double mean[SN_SEGMENT_COLUMNS] = {0}, var[SN_SEGMENT_COLUMNS] = {0};
  double inverse = end > first ? 1.0 / (double)(end - first) : 0.0;
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  for (int64_t t = first; t < end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + c, m, buffer);
    for (int64_t i = 0; i < m; i++) mean[i] += (double)x[i];
  }
  for (int64_t i = 0; i < m; i++) mean[i] *= inverse;
  for (int64_t t = first; t < end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + c, m, buffer);
    for (int64_t i = 0; i < m; i++) var[i] += ((double)x[i] - mean[i]) * ((double)x[i] - mean[i]);
  }
  for (int64_t i = 0; i < m; i++) values[i] = end > first ? (float)sqrt(var[i] * inverse + k->attr->eps) : 0.0f;
  sn_commit(&k->call->out[0], at, m, false, values);
  if (k->call->saved[1].data) memcpy(sn_f32_at(&k->call->saved[1], at), values, (size_t)m * sizeof(float));
  if (!k->call->saved[0].data) return;
  for (int64_t i = 0; i < m; i++) sn_f32_at(&k->call->saved[0], at)[i] = (float)mean[i];
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const std_context *k = ctx;
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  int64_t m = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c), at = s * k->columns + c;
  int64_t first = k->attr->segments.offsets[s], end = k->attr->segments.offsets[s + 1];
  if (end == first) return;
  const float *mean = sn_f32_at(&k->call->saved[0], at), *std = sn_f32_at(&k->call->saved[1], at);
  float buffer[SN_CHUNK], factor[SN_SEGMENT_COLUMNS], values[SN_SEGMENT_COLUMNS], n = (float)(end - first);
  const float *restrict dy = sn_load(&k->call->dout[0], at, m, buffer);
  for (int64_t i = 0; i < m; i++) factor[i] = dy[i] / (n * std[i]);
  for (int64_t t = first; t < end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + c, m, buffer);
    for (int64_t i = 0; i < m; i++) values[i] = factor[i] * (x[i] - mean[i]);
    sn_commit(&k->call->din[0], t * k->columns + c, m, k->call->acc[0], values);
  }
}
SN_SIMD_VARIANTS(backward_body)

static std_context make_context(const sn_op_call *call) {
  std_context k = {call, call->attr, sn_tensor_columns(&call->in[0]), 0};
  k.n_column_blocks = sn_count_blocks(k.columns, SN_SEGMENT_COLUMNS);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  std_context k = make_context(call);
  SN_TRY(sn_segments_check(&k.attr->segments, sn_tensor_rows(&call->in[0]), err));
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.attr->segments.n_segments * k.n_column_blocks,
                forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  std_context k = make_context(call);
  SN_TRY(sn_segments_check(&k.attr->segments, sn_tensor_rows(&call->in[0]), err));
  sn_segments_zero_outside(call, &k.attr->segments);
  sn_run_blocks(device, sn_bytes_of_call(call, true), k.attr->segments.n_segments * k.n_column_blocks,
                backward_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_segment_std_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_f32_bf16,
                                       .forward = forward,
                                       .backward = backward};
