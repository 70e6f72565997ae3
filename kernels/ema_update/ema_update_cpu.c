#include "kernels/cpu_blocks.h"

#include "kernels/ema_update/ema_update.h"
#include "kernels/op_rules.h"

typedef struct ema_context {
  const sn_op_call *call;
  int64_t n;
  float step;
} ema_context;

SN_INLINE void ema_body(void *ctx, int64_t block) {
  const ema_context *k = ctx;
  float step = k->step;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float buffer[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *x = sn_load(&k->call->in[1], i, m, buffer), *e = sn_f32_at(&k->call->in[0], i);
    float *out = sn_f32_at(&k->call->out[0], i);
#pragma GCC ivdep /* out may be e itself */
    for (int64_t j = 0; j < m; j++) out[j] = e[j] + step * (x[j] - e[j]);
  }
}
SN_SIMD_VARIANTS(ema_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_ema_update_attr *a = call->attr;
  ema_context k = {call, sn_tensor_count(&call->in[0]), (float)(1.0 - a->momentum)};
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.n, SN_FLAT_BLOCK), ema_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_ema_update_cpu = {
    .name = "cpu", .device = SN_DEVICE_CPU, .supports = sn_supports_f32_bf16, .forward = forward};
