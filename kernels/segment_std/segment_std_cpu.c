#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/segment_std/segment_std.h"
#include "kernels/segments_cpu.h"

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const sn_segment_work *k = ctx;
  const sn_segment_block b = sn_segment_block_of(k, block);
  const sn_segment_std_attr *attr = k->call->attr;
  double mean[SN_SEGMENT_COLUMNS] = {0}, var[SN_SEGMENT_COLUMNS] = {0};
  double inverse = b.end > b.first ? 1.0 / (double)(b.end - b.first) : 0.0;
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  for (int64_t t = b.first; t < b.end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + b.column, b.n, buffer);
    for (int64_t i = 0; i < b.n; i++) mean[i] += (double)x[i];
  }
  for (int64_t i = 0; i < b.n; i++) mean[i] *= inverse;
  for (int64_t t = b.first; t < b.end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + b.column, b.n, buffer);
    for (int64_t i = 0; i < b.n; i++) var[i] += ((double)x[i] - mean[i]) * ((double)x[i] - mean[i]);
  }
  for (int64_t i = 0; i < b.n; i++) values[i] = b.end > b.first ? (float)sqrt(var[i] * inverse + attr->eps) : 0.0f;
  sn_commit(&k->call->out[0], b.at, b.n, false, values);
  if (k->call->saved[1].data) memcpy(sn_f32_at(&k->call->saved[1], b.at), values, (size_t)b.n * sizeof(float));
  if (!k->call->saved[0].data) return;
  for (int64_t i = 0; i < b.n; i++) sn_f32_at(&k->call->saved[0], b.at)[i] = (float)mean[i];
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const sn_segment_work *k = ctx;
  const sn_segment_block b = sn_segment_block_of(k, block);
  if (b.end == b.first) return;
  const float *mean = sn_f32_at(&k->call->saved[0], b.at), *std = sn_f32_at(&k->call->saved[1], b.at);
  float buffer[SN_CHUNK], factor[SN_SEGMENT_COLUMNS], values[SN_SEGMENT_COLUMNS], n = (float)(b.end - b.first);
  const float *restrict dy = sn_load(&k->call->dout[0], b.at, b.n, buffer);
  for (int64_t i = 0; i < b.n; i++) factor[i] = dy[i] / (n * std[i]);
  for (int64_t t = b.first; t < b.end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + b.column, b.n, buffer);
    for (int64_t i = 0; i < b.n; i++) values[i] = factor[i] * (x[i] - mean[i]);
    sn_commit(&k->call->din[0], t * k->columns + b.column, b.n, k->call->acc[0], values);
  }
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segment_std_attr *attr = call->attr;
  return sn_segments_forward(device, call, &attr->segments, forward_body_for(device), err);
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_segment_std_attr *attr = call->attr;
  return sn_segments_backward(device, call, &attr->segments, backward_body_for(device), err);
}

const sn_op_impl sn_segment_std_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_f32_bf16,
                                       .forward = forward,
                                       .backward = backward};
