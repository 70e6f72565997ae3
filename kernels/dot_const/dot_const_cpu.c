#include "kernels/cpu_blocks.h"

#include "kernels/dot_const/dot_const.h"
#include "kernels/op_rules.h"

typedef struct dot_context {
  const sn_op_call *call;
  int64_t n;
  double *partial; /* one sum of each block */
  float dsum;
} dot_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const dot_context *k = ctx;
  double total = 0;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float xb[SN_CHUNK], wb[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *x = sn_load(&k->call->in[0], i, m, xb), *w = sn_load(&k->call->in[1], i, m, wb);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m; j++) sum += (double)x[j] * (double)w[j];
    total += sum;
  }
  k->partial[block] = total;
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const dot_context *k = ctx;
  float dsum = k->dsum;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float wb[SN_CHUNK], out[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *restrict w = sn_load(&k->call->in[1], i, m, wb);
    float *restrict dx = sn_target(&k->call->din[0], i, k->call->acc[0], out);
    for (int64_t j = 0; j < m; j++) dx[j] = dsum * w[j];
    sn_commit(&k->call->din[0], i, m, k->call->acc[0], dx);
  }
}
SN_SIMD_VARIANTS(backward_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  dot_context k = {call, sn_tensor_count(&call->in[0]), call->scratch, 0};
  int64_t n_blocks = sn_count_blocks(k.n, SN_FLAT_BLOCK);
  sn_run_blocks(device, sn_bytes_of_call(call, false), n_blocks, forward_body_for(device), &k);
  double sum = 0;
  for (int64_t b = 0; b < n_blocks; b++) sum += k.partial[b];
  *(double *)call->out[0].data = sum;
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  dot_context k = {call, sn_tensor_count(&call->in[0]), NULL, (float)*(const double *)call->dout[0].data};
  sn_run_blocks(device, sn_bytes_of_call(call, true), sn_count_blocks(k.n, SN_FLAT_BLOCK), backward_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  return backward_pass ? 0 : sn_count_blocks(sn_tensor_count(&call->in[0]), SN_FLAT_BLOCK) * (int64_t)sizeof(double);
}

const sn_op_impl sn_dot_const_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_f32_bf16,
                                     .forward = forward,
                                     .backward = backward,
                                     .scratch = scratch};
