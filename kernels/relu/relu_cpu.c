#include "kernels/cpu_blocks.h"

#include "kernels/op_rules.h"
#include "kernels/relu/relu.h"

typedef struct relu_context {
  const sn_op_call *call;
  int64_t n;
} relu_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const relu_context *k = ctx;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float xb[SN_CHUNK], yb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *restrict x = sn_load(&k->call->in[0], i, m, xb);
    float *restrict y = sn_target(&k->call->out[0], i, false, yb);
    for (int64_t j = 0; j < m; j++) y[j] = x[j] <= 0.0f ? 0.0f : x[j];
    sn_commit(&k->call->out[0], i, m, false, y);
  }
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const relu_context *k = ctx;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float yb[SN_CHUNK], db[SN_CHUNK], out[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *restrict y = sn_load(&k->call->out[0], i, m, yb), *restrict dy = sn_load(&k->call->dout[0], i, m, db);
    float *restrict dx = sn_target(&k->call->din[0], i, k->call->acc[0], out);
    for (int64_t j = 0; j < m; j++) dx[j] = y[j] > 0.0f ? dy[j] : 0.0f;
    sn_commit(&k->call->din[0], i, m, k->call->acc[0], dx);
  }
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  relu_context k = {call, sn_tensor_count(&call->in[0])};
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.n, SN_FLAT_BLOCK), forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  relu_context k = {call, sn_tensor_count(&call->in[0])};
  sn_run_blocks(device, sn_bytes_of_call(call, true), sn_count_blocks(k.n, SN_FLAT_BLOCK), backward_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_relu_cpu = {.name = "cpu",
                                .device = SN_DEVICE_CPU,
                                .supports = sn_supports_f32_bf16,
                                .forward = forward,
                                .backward = backward};
