#include "kernels/cpu_blocks.h"

#include "kernels/op_rules.h"
#include "kernels/sum_squares/sum_squares.h"

typedef struct squares_context {
  const sn_tensor *x;
  int64_t n;
  double *partial; /* one sum of each block */
} squares_context;

SN_INLINE void squares_body(void *ctx, int64_t block) {
  const squares_context *k = ctx;
  double total = 0;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    float buffer[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *v = sn_load(k->x, i, m, buffer);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < m; j++) sum += (double)v[j] * (double)v[j];
    total += sum;
  }
  k->partial[block] = total;
}
SN_SIMD_VARIANTS(squares_body)

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  squares_context k = {&call->in[0], sn_tensor_count(&call->in[0]), call->scratch};
  int64_t n_blocks = sn_count_blocks(k.n, SN_FLAT_BLOCK);
  sn_run_blocks(device, sn_bytes_of_call(call, false), n_blocks, squares_body_for(device), &k);
  double sum = 0;
  for (int64_t b = 0; b < n_blocks; b++) sum += k.partial[b];
  *(double *)call->out[0].data = sum;
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  return sn_count_blocks(sn_tensor_count(&call->in[0]), SN_FLAT_BLOCK) * (int64_t)sizeof(double);
}

const sn_op_impl sn_sum_squares_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_f32_bf16,
                                       .forward = forward,
                                       .scratch = scratch};
