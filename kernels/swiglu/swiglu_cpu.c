#include "kernels/cpu_blocks.h"

#include "kernels/op_rules.h"
#include "kernels/simd_math.h"
#include "kernels/swiglu/swiglu.h"

typedef struct swiglu_context {
  const sn_op_call *call;
  int64_t rows, width;
} swiglu_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const swiglu_context *k = ctx;
  const sn_op_call *call = k->call;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  float ab[SN_CHUNK], bb[SN_CHUNK], yb[SN_CHUNK];
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++)
    for (int64_t c = 0; c < k->width; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, k->width - c), at = t * 2 * k->width + c;
      const float *restrict a = sn_load(&call->in[0], at, m, ab), *restrict b = sn_load(&call->in[0], at + k->width, m, bb);
      float *restrict y = sn_target(&call->out[0], t * k->width + c, false, yb);
      for (int64_t i = 0; i < m; i++) y[i] = a[i] * sn_sigmoid_f32(a[i]) * b[i];
      sn_commit(&call->out[0], t * k->width + c, m, false, y);
    }
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const swiglu_context *k = ctx;
  const sn_op_call *call = k->call;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  float ab[SN_CHUNK], bb[SN_CHUNK], db[SN_CHUNK], dab[SN_CHUNK], dbb[SN_CHUNK];
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++)
    for (int64_t c = 0; c < k->width; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, k->width - c), at = t * 2 * k->width + c;
      const float *restrict a = sn_load(&call->in[0], at, m, ab), *restrict b = sn_load(&call->in[0], at + k->width, m, bb);
      const float *restrict dy = sn_load(&call->dout[0], t * k->width + c, m, db);
      for (int64_t i = 0; i < m; i++) {
        float s = sn_sigmoid_f32(a[i]);
        dab[i] = dy[i] * b[i] * s * (1.0f + a[i] * (1.0f - s));
        dbb[i] = dy[i] * a[i] * s;
      }
      sn_commit(&call->din[0], at, m, call->acc[0], dab);
      sn_commit(&call->din[0], at + k->width, m, call->acc[0], dbb);
    }
}
SN_SIMD_VARIANTS(backward_body)

static swiglu_context make_context(const sn_op_call *call) {
  return (swiglu_context){call, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]) / 2};
}

static const double weight = 3.0; /* of arithmetic beside traffic, see gelu_cpu.c */

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  swiglu_context k = make_context(call);
  sn_run_blocks(device, weight * sn_bytes_of_call(call, false), sn_count_blocks(k.rows, SN_ROW_BLOCK),
                forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  swiglu_context k = make_context(call);
  sn_run_blocks(device, weight * sn_bytes_of_call(call, true), sn_count_blocks(k.rows, SN_ROW_BLOCK),
                backward_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_swiglu_cpu = {.name = "cpu",
                                  .device = SN_DEVICE_CPU,
                                  .supports = sn_supports_f32_bf16,
                                  .forward = forward,
                                  .backward = backward};
