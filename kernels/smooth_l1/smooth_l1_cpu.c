#include "kernels/cpu_blocks.h"

#include "kernels/loss_sums.h"
#include "kernels/pair_loss.h"
#include "kernels/smooth_l1/smooth_l1.h"

typedef struct smooth_context {
  const sn_op_call *call;
  int64_t n;
  double *partial; /* (n_blocks, 2): kernels/loss_sums.h */
  float beta, dsum;
} smooth_context;

/* Differences of a chunk, 0 where masked; returns how many count. */
SN_INLINE int64_t differences(const sn_op_call *call, int64_t at, int64_t m, float *restrict d) {
  float xb[SN_CHUNK], zb[SN_CHUNK];
  const float *restrict x = sn_load(&call->in[0], at, m, xb), *restrict z = sn_load(&call->in[1], at, m, zb);
  if (!call->in[2].data) {
    for (int64_t i = 0; i < m; i++) d[i] = x[i] - z[i];
    return m;
  }
  const uint8_t *restrict mask = (const uint8_t *)call->in[2].data + at;
  int32_t count = 0;
  for (int64_t i = 0; i < m; i++) {
    float difference = x[i] - z[i];
    d[i] = mask[i] ? difference : 0.0f;
    count += mask[i] != 0;
  }
  return count;
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const smooth_context *k = ctx;
  float d[SN_CHUNK], beta = k->beta, half_inverse = 0.5f / beta;
  double total = 0;
  int64_t count = 0, end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    float sum = 0;
    count += differences(k->call, i, m, d);
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m; j++) {
      float size = d[j] < 0.0f ? -d[j] : d[j];
      sum += size < beta ? size * size * half_inverse : size - 0.5f * beta;
    }
    total += (double)sum;
  }
  sn_loss_sums_put(k->partial, block, total, (double)count);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const smooth_context *k = ctx;
  float d[SN_CHUNK], out[SN_CHUNK], inverse = 1.0f / k->beta, dsum = k->dsum;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    differences(k->call, i, m, d);
    for (int64_t j = 0; j < m; j++) {
      float slope = d[j] * inverse;
      slope = slope > 1.0f ? 1.0f : slope;
      slope = slope < -1.0f ? -1.0f : slope;
      out[j] = dsum * slope;
    }
    sn_commit(&k->call->din[0], i, m, k->call->acc[0], out);
  }
}
SN_SIMD_VARIANTS(backward_body)

static smooth_context make_context(const sn_op_call *call) {
  const sn_smooth_l1_attr *a = call->attr;
  return (smooth_context){call, sn_tensor_count(&call->in[0]), call->scratch, (float)a->beta, 0};
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  smooth_context k = make_context(call);
  int64_t n_blocks = sn_count_blocks(k.n, SN_FLAT_BLOCK);
  sn_run_blocks(device, sn_bytes_of_call(call, false), n_blocks, forward_body_for(device), &k);
  sn_loss_sums_join(call, k.partial, n_blocks);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  smooth_context k = make_context(call);
  k.dsum = (float)*(const double *)call->dout[0].data;
  sn_run_blocks(device, sn_bytes_of_call(call, true), sn_count_blocks(k.n, SN_FLAT_BLOCK), backward_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (backward_pass) return 0;
  return sn_loss_sums_bytes(sn_count_blocks(sn_tensor_count(&call->in[0]), SN_FLAT_BLOCK));
}

const sn_op_impl sn_smooth_l1_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_f32_bf16,
                                     .forward = forward,
                                     .backward = backward,
                                     .scratch = scratch};
