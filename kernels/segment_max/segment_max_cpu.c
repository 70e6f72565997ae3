#include "kernels/cpu_blocks.h"

#include "kernels/segment_max/segment_max.h"
#include "kernels/segments_cpu.h"

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const sn_segment_work *k = ctx;
  const sn_segment_block b = sn_segment_block_of(k, block);
  float buffer[SN_CHUNK], best[SN_SEGMENT_COLUMNS] = {0};
  int32_t from[SN_SEGMENT_COLUMNS];
  for (int64_t i = 0; i < b.n; i++) from[i] = -1;
  for (int64_t t = b.first; t < b.end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + b.column, b.n, buffer);
    for (int64_t i = 0; i < b.n; i++) {
      bool take = (from[i] < 0) | (x[i] > best[i]) | ((x[i] != x[i]) & (best[i] == best[i]));
      best[i] = take ? x[i] : best[i];
      from[i] = take ? (int32_t)t : from[i];
    }
  }
  sn_commit(&k->call->out[0], b.at, b.n, false, best);
  if (k->call->saved[0].data) memcpy((int32_t *)k->call->saved[0].data + b.at, from, (size_t)b.n * sizeof from[0]);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const sn_segment_work *k = ctx;
  const sn_segment_block b = sn_segment_block_of(k, block);
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  const int32_t *from = (const int32_t *)k->call->saved[0].data + b.at;
  const float *restrict dy = sn_load(&k->call->dout[0], b.at, b.n, buffer);
  for (int64_t t = b.first; t < b.end; t++) {
    for (int64_t i = 0; i < b.n; i++) values[i] = from[i] == (int32_t)t ? dy[i] : 0.0f;
    sn_commit(&k->call->din[0], t * k->columns + b.column, b.n, k->call->acc[0], values);
  }
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  return sn_segments_forward(device, call, call->attr, forward_body_for(device), err);
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  return sn_segments_backward(device, call, call->attr, backward_body_for(device), err);
}

const sn_op_impl sn_segment_max_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_f32_bf16,
                                       .forward = forward,
                                       .backward = backward};
