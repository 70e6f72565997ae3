#include "kernels/cpu_blocks.h"

#include "kernels/op_rules.h"
#include "kernels/scale/scale.h"

typedef struct scale_context {
  sn_tensor to, from;
  float factor;
  bool acc;
  int64_t n;
} scale_context;

SN_INLINE void scale_body(void *ctx, int64_t block) {
  const scale_context *k = ctx;
  float factor = k->factor;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float xb[SN_CHUNK], yb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *restrict x = sn_load(&k->from, i, m, xb);
    float *restrict y = sn_target(&k->to, i, k->acc, yb);
    for (int64_t j = 0; j < m; j++) y[j] = factor * x[j];
    sn_commit(&k->to, i, m, k->acc, y);
  }
}
SN_SIMD_VARIANTS(scale_body)

static void run(const sn_device *device, const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, bool acc) {
  const sn_scale_attr *a = call->attr;
  scale_context k = {*to, *from, (float)a->factor, acc, sn_tensor_count(from)};
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.n, SN_FLAT_BLOCK), scale_body_for(device), &k);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  run(device, call, &call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) run(device, call, &call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_scale_cpu = {.name = "cpu",
                                 .device = SN_DEVICE_CPU,
                                 .supports = sn_supports_f32_bf16,
                                 .forward = forward,
                                 .backward = backward};
