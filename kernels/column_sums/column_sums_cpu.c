#include "kernels/cpu_blocks.h"

#include "kernels/column_sums/column_sums.h"
#include "kernels/op_rules.h"
#include "kernels/row_sums.h"

typedef struct sums_context {
  const sn_op_call *call;
  int64_t rows, columns, n_blocks;
  float *partial;
} sums_context;

SN_INLINE void partial_body(void *ctx, int64_t block) {
  const sums_context *k = ctx;
  int64_t first = block * SN_ROW_BLOCK;
  sn_partial_row_sums(&k->call->in[0], NULL, first, sn_min_i64(k->rows, first + SN_ROW_BLOCK), k->columns,
                      k->partial + block * k->columns);
}
SN_SIMD_VARIANTS(partial_body)

SN_INLINE void join_body(void *ctx, int64_t block) {
  const sums_context *k = ctx;
  sn_join_row_sums(k->partial, k->n_blocks, k->columns, k->columns, block, &k->call->out[0], false);
}
SN_SIMD_VARIANTS(join_body)

SN_INLINE void spread_body(void *ctx, int64_t block) {
  const sums_context *k = ctx;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++)
    for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
      float buffer[SN_CHUNK];
      int64_t m = sn_min_i64(SN_CHUNK, k->columns - c);
      sn_commit(&k->call->din[0], t * k->columns + c, m, k->call->acc[0], sn_load(&k->call->dout[0], c, m, buffer));
    }
}
SN_SIMD_VARIANTS(spread_body)

static sums_context make_context(const sn_op_call *call) {
  sums_context k = {call, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]), 0, call->scratch};
  k.n_blocks = sn_count_blocks(k.rows, SN_ROW_BLOCK);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sums_context k = make_context(call);
  sn_run_blocks_then(device, sn_bytes_of_call(call, false), k.n_blocks, partial_body_for(device),
                     sn_count_blocks(k.columns, SN_JOIN_BLOCK), join_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  sums_context k = make_context(call);
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.n_blocks, spread_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (backward_pass) return 0;
  return sn_count_blocks(sn_tensor_rows(&call->in[0]), SN_ROW_BLOCK) * sn_tensor_columns(&call->in[0]) *
         (int64_t)sizeof(float);
}

const sn_op_impl sn_column_sums_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_f32_bf16,
                                       .forward = forward,
                                       .backward = backward,
                                       .scratch = scratch};
