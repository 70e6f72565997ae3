#include "kernels/cpu_blocks.h"

#include "kernels/cast/cast.h"
#include "kernels/op_rules.h"

typedef struct cast_context {
  sn_tensor to, from;
  bool acc;
  int64_t n;
} cast_context;

SN_INLINE void cast_body(void *ctx, int64_t block) {
  const cast_context *k = ctx;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float buffer[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    sn_commit(&k->to, i, m, k->acc, sn_load(&k->from, i, m, buffer));
  }
}
SN_SIMD_VARIANTS(cast_body)

static void run(const sn_device *device, const sn_tensor *to, const sn_tensor *from, bool acc) {
  cast_context k = {*to, *from, acc, sn_tensor_count(from)};
  sn_run_blocks(device, (double)sn_tensor_bytes(to) + (double)sn_tensor_bytes(from), sn_count_blocks(k.n, SN_FLAT_BLOCK),
                cast_body_for(device), &k);
}

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  const sn_cast_attr *a = call->attr;
  if (a->out_dtype != SN_F64) return sn_supports_f32_bf16(device, call, why);
  *why = "float64 is computed by the reference";
  return false;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  run(device, &call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) run(device, &call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_cast_cpu = {
    .name = "cpu", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward, .backward = backward};
