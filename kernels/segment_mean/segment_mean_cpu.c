#include "kernels/cpu_blocks.h"

#include "kernels/segment_mean/segment_mean.h"
#include "kernels/segments_cpu.h"

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const sn_segment_work *k = ctx;
  const sn_segment_block b = sn_segment_block_of(k, block);
  double sum[SN_SEGMENT_COLUMNS] = {0};
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  for (int64_t t = b.first; t < b.end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + b.column, b.n, buffer);
    for (int64_t i = 0; i < b.n; i++) sum[i] += (double)x[i];
  }
  double inverse = b.end > b.first ? 1.0 / (double)(b.end - b.first) : 0.0;
  for (int64_t i = 0; i < b.n; i++) values[i] = (float)(sum[i] * inverse);
  sn_commit(&k->call->out[0], b.at, b.n, false, values);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const sn_segment_work *k = ctx;
  const sn_segment_block b = sn_segment_block_of(k, block);
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  float inverse = b.end > b.first ? 1.0f / (float)(b.end - b.first) : 0.0f;
  const float *restrict dy = sn_load(&k->call->dout[0], b.at, b.n, buffer);
  for (int64_t i = 0; i < b.n; i++) values[i] = dy[i] * inverse;
  for (int64_t t = b.first; t < b.end; t++)
    sn_commit(&k->call->din[0], t * k->columns + b.column, b.n, k->call->acc[0], values);
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  return sn_segments_forward(device, call, call->attr, forward_body_for(device), err);
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  return sn_segments_backward(device, call, call->attr, backward_body_for(device), err);
}

const sn_op_impl sn_segment_mean_cpu = {.name = "cpu",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_f32_bf16,
                                        .forward = forward,
                                        .backward = backward};
