#include "kernels/cpu_blocks.h"
#include "kernels/gelu/gelu.h"
#include "kernels/op_rules.h"
#include "kernels/simd_math.h"

typedef struct gelu_context {
  const sn_op_call *call;
  int64_t n;
} gelu_context;

static const float two_sqrt_2_over_pi = 1.59576912f;

SN_INLINE void forward_chunk(float *restrict y, const float *restrict x, int64_t n, sn_gelu_kind kind) {
  if (kind == SN_GELU_ERF)
    for (int64_t i = 0; i < n; i++) {
      float cdf, density;
      sn_normal_f32(x[i], &cdf, &density);
      y[i] = x[i] * cdf;
    }
  else /* (1 + tanh(u)) / 2 = sigmoid(2u) */
    for (int64_t i = 0; i < n; i++)
      y[i] = x[i] * sn_sigmoid_f32(two_sqrt_2_over_pi * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
}

SN_INLINE void backward_chunk(float *restrict dx, const float *restrict dy, const float *restrict x, int64_t n,
                              sn_gelu_kind kind) {
  if (kind == SN_GELU_ERF)
    for (int64_t i = 0; i < n; i++) {
      float cdf, density;
      sn_normal_f32(x[i], &cdf, &density);
      dx[i] = dy[i] * (cdf + x[i] * density);
    }
  else
    for (int64_t i = 0; i < n; i++) {
      float s = sn_sigmoid_f32(two_sqrt_2_over_pi * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
      float du = two_sqrt_2_over_pi * (1.0f + 0.134145f * x[i] * x[i]);
      dx[i] = dy[i] * (s + x[i] * s * (1.0f - s) * du);
    }
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const gelu_context *k = ctx;
  const sn_op_call *call = k->call;
  const sn_gelu_attr *a = call->attr;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float xb[SN_CHUNK], yb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    float *y = sn_target(&call->out[0], i, false, yb);
    forward_chunk(y, sn_load(&call->in[0], i, m, xb), m, a->kind);
    sn_commit(&call->out[0], i, m, false, y);
  }
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const gelu_context *k = ctx;
  const sn_op_call *call = k->call;
  const sn_gelu_attr *a = call->attr;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float xb[SN_CHUNK], db[SN_CHUNK], out[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    float *dx = sn_target(&call->din[0], i, call->acc[0], out);
    backward_chunk(dx, sn_load(&call->dout[0], i, m, db), sn_load(&call->in[0], i, m, xb), m, a->kind);
    sn_commit(&call->din[0], i, m, call->acc[0], dx);
  }
}
SN_SIMD_VARIANTS(backward_body)

/* About 30 operations an element: threads pay earlier than by traffic alone. */
static const double weight = 4.0;

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  gelu_context k = {.call = call, .n = sn_tensor_count(&call->in[0])};
  sn_run_blocks(device, weight * sn_bytes_of_call(call, false), sn_count_blocks(k.n, SN_FLAT_BLOCK),
                forward_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  gelu_context k = {.call = call, .n = sn_tensor_count(&call->in[0])};
  sn_run_blocks(device, weight * sn_bytes_of_call(call, true), sn_count_blocks(k.n, SN_FLAT_BLOCK),
                backward_body_for(device), &k);
  return SN_OK;
}

const sn_op_impl sn_gelu_cpu = {.name = "cpu",
                                .device = SN_DEVICE_CPU,
                                .supports = sn_supports_f32_bf16,
                                .forward = forward,
                                .backward = backward};
