#include "kernels/cpu_blocks.h"

#include "kernels/loss_sums.h"
#include "kernels/square_difference/square_difference.h"
#include "kernels/used_rows.h"

typedef struct difference_context {
  const sn_op_call *call;
  const uint8_t *used;
  int64_t rows, columns;
  double *partial; /* (n_blocks, 2): kernels/loss_sums.h */
  float factor;
} difference_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const difference_context *k = ctx;
  float ab[SN_CHUNK], bb[SN_CHUNK];
  double total = 0;
  int64_t count = 0;
  for (int64_t t = block * SN_ROW_BLOCK; t < sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK); t++) {
    if (!sn_row_is_used(k->used, t)) continue;
    count += k->columns;
    for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, k->columns - c), at = t * k->columns + c;
      const float *a = sn_load(&k->call->in[0], at, m, ab), *b = sn_load(&k->call->in[1], at, m, bb);
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (int64_t j = 0; j < m; j++) sum += ((double)a[j] - (double)b[j]) * ((double)a[j] - (double)b[j]);
      total += sum;
    }
  }
  sn_loss_sums_put(k->partial, block, total, (double)count);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void gradient_row(const difference_context *k, int input, int64_t row) {
  float ab[SN_CHUNK], bb[SN_CHUNK], out[SN_CHUNK], factor = input == 0 ? k->factor : -k->factor;
  bool used = sn_row_is_used(k->used, row);
  for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, k->columns - c), at = row * k->columns + c;
    float *restrict to = sn_target(&k->call->din[input], at, k->call->acc[input], out);
    if (used) {
      const float *restrict a = sn_load(&k->call->in[0], at, m, ab), *restrict b = sn_load(&k->call->in[1], at, m, bb);
      for (int64_t j = 0; j < m; j++) to[j] = factor * (a[j] - b[j]);
    } else {
      for (int64_t j = 0; j < m; j++) to[j] = 0.0f;
    }
    sn_commit(&k->call->din[input], at, m, k->call->acc[input], to);
  }
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const difference_context *k = ctx;
  for (int64_t t = block * SN_ROW_BLOCK; t < sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK); t++) {
    if (k->call->din[0].data) gradient_row(k, 0, t);
    if (k->call->din[1].data) gradient_row(k, 1, t);
  }
}
SN_SIMD_VARIANTS(backward_body)

static difference_context make_context(const sn_op_call *call) {
  return (difference_context){call, sn_used_flags(call, 2), sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]),
                              call->scratch, 0};
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  difference_context k = make_context(call);
  int64_t n_blocks = sn_count_blocks(k.rows, SN_ROW_BLOCK);
  sn_run_blocks(device, sn_bytes_of_call(call, false), n_blocks, forward_body_for(device), &k);
  sn_loss_sums_join(call, k.partial, n_blocks);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  difference_context k = make_context(call);
  k.factor = (float)(2.0 * *(const double *)call->dout[0].data);
  sn_run_blocks(device, sn_bytes_of_call(call, true), sn_count_blocks(k.rows, SN_ROW_BLOCK), backward_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  return backward_pass ? 0 : sn_loss_sums_bytes(sn_count_blocks(sn_tensor_rows(&call->in[0]), SN_ROW_BLOCK));
}

const sn_op_impl sn_square_difference_cpu = {.name = "cpu",
                                             .device = SN_DEVICE_CPU,
                                             .supports = sn_supports_f32_bf16,
                                             .forward = forward,
                                             .backward = backward,
                                             .scratch = scratch};
