#include "kernels/cpu_blocks.h"

#include <math.h>

#include "kernels/bce_logits/bce_logits.h"
#include "kernels/loss_sums.h"
#include "kernels/pair_loss.h"

typedef struct bce_context {
  const sn_op_call *call;
  int64_t n;
  double *partial; /* (n_blocks, 2): kernels/loss_sums.h */
  double dsum;
} bce_context;

/* Heads are narrow: plain double arithmetic of the library's exp and log1p is fast enough and exact. */
static void forward_block(void *ctx, int64_t block) {
  const bce_context *k = ctx;
  float xb[SN_CHUNK], zb[SN_CHUNK];
  double sum = 0, count = 0;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *x = sn_load(&k->call->in[0], i, m, xb), *z = sn_load(&k->call->in[1], i, m, zb);
    for (int64_t j = 0; j < m; j++) {
      if (!sn_pair_counts(k->call, i + j)) continue;
      double v = (double)x[j];
      sum += fmax(v, 0) - v * (double)z[j] + log1p(exp(-fabs(v)));
      count += 1;
    }
  }
  sn_loss_sums_put(k->partial, block, sum, count);
}

static void backward_block(void *ctx, int64_t block) {
  const bce_context *k = ctx;
  float xb[SN_CHUNK], zb[SN_CHUNK], out[SN_CHUNK];
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    int64_t m = sn_min_i64(SN_CHUNK, end - i);
    const float *x = sn_load(&k->call->in[0], i, m, xb), *z = sn_load(&k->call->in[1], i, m, zb);
    for (int64_t j = 0; j < m; j++) {
      double slope = 1.0 / (1.0 + exp(-(double)x[j])) - (double)z[j];
      out[j] = sn_pair_counts(k->call, i + j) ? (float)(k->dsum * slope) : 0.0f;
    }
    sn_commit(&k->call->din[0], i, m, k->call->acc[0], out);
  }
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  bce_context k = {call, sn_tensor_count(&call->in[0]), call->scratch, 0};
  int64_t n_blocks = sn_count_blocks(k.n, SN_FLAT_BLOCK);
  sn_run_blocks(device, 16.0 * sn_bytes_of_call(call, false), n_blocks, forward_block, &k);
  sn_loss_sums_join(call, k.partial, n_blocks);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  bce_context k = {call, sn_tensor_count(&call->in[0]), NULL, *(const double *)call->dout[0].data};
  sn_run_blocks(device, 16.0 * sn_bytes_of_call(call, false), sn_count_blocks(k.n, SN_FLAT_BLOCK), backward_block, &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (backward_pass) return 0;
  return sn_loss_sums_bytes(sn_count_blocks(sn_tensor_count(&call->in[0]), SN_FLAT_BLOCK));
}

const sn_op_impl sn_bce_logits_cpu = {.name = "cpu",
                                      .device = SN_DEVICE_CPU,
                                      .supports = sn_supports_f32_bf16,
                                      .forward = forward,
                                      .backward = backward,
                                      .scratch = scratch};
