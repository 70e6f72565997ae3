#include "kernels/cpu_blocks.h"

#include "kernels/add/add.h"
#include "kernels/op_rules.h"
#include "kernels/row_sums.h"

typedef struct add_context {
  const sn_op_call *call;
  int64_t n, rows, columns, n_blocks;
  float *partial;
} add_context;

SN_INLINE void add_chunk(const sn_op_call *call, int64_t at_a, int64_t at_b, int64_t m) {
  float ab[SN_CHUNK], bb[SN_CHUNK], yb[SN_CHUNK];
  const float *restrict a = sn_load(&call->in[0], at_a, m, ab), *restrict b = sn_load(&call->in[1], at_b, m, bb);
  float *restrict y = sn_target(&call->out[0], at_a, false, yb);
  for (int64_t i = 0; i < m; i++) y[i] = a[i] + b[i];
  sn_commit(&call->out[0], at_a, m, false, y);
}

SN_INLINE void same_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) add_chunk(k->call, i, i, sn_min_i64(SN_CHUNK, end - i));
}
SN_SIMD_VARIANTS(same_body)

SN_INLINE void row_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++)
    for (int64_t c = 0; c < k->columns; c += SN_CHUNK)
      add_chunk(k->call, t * k->columns + c, c, sn_min_i64(SN_CHUNK, k->columns - c));
}
SN_SIMD_VARIANTS(row_body)

/* din[which] takes dy as it is. */
SN_INLINE void pass_on(const sn_op_call *call, int which, int64_t at, int64_t m) {
  float buffer[SN_CHUNK];
  if (!call->din[which].data) return;
  sn_commit(&call->din[which], at, m, call->acc[which], sn_load(&call->dout[0], at, m, buffer));
}

SN_INLINE void same_backward_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  int64_t end = sn_min_i64(k->n, (block + 1) * SN_FLAT_BLOCK);
  for (int64_t i = block * SN_FLAT_BLOCK; i < end; i += SN_CHUNK) {
    pass_on(k->call, 0, i, sn_min_i64(SN_CHUNK, end - i));
    pass_on(k->call, 1, i, sn_min_i64(SN_CHUNK, end - i));
  }
}
SN_SIMD_VARIANTS(same_backward_body)

SN_INLINE void row_backward_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  int64_t first = block * SN_ROW_BLOCK, end = sn_min_i64(k->rows, first + SN_ROW_BLOCK);
  if (k->call->din[1].data)
    sn_partial_row_sums(&k->call->dout[0], NULL, first, end, k->columns, k->partial + block * k->columns);
  for (int64_t i = first * k->columns; i < end * k->columns; i += SN_CHUNK)
    pass_on(k->call, 0, i, sn_min_i64(SN_CHUNK, end * k->columns - i));
}
SN_SIMD_VARIANTS(row_backward_body)

SN_INLINE void join_body(void *ctx, int64_t block) {
  const add_context *k = ctx;
  sn_join_row_sums(k->partial, k->n_blocks, k->columns, k->columns, block, &k->call->din[1], k->call->acc[1]);
}
SN_SIMD_VARIANTS(join_body)

static add_context make_context(const sn_op_call *call) {
  add_context k = {.call = call,
                   .n = sn_tensor_count(&call->in[0]),
                   .rows = sn_tensor_rows(&call->in[0]),
                   .columns = sn_tensor_columns(&call->in[0]),
                   .partial = call->scratch};
  k.n_blocks = sn_count_blocks(k.rows, SN_ROW_BLOCK);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  add_context k = make_context(call);
  double work = sn_bytes_of_call(call, false);
  if (sn_add_is_broadcast(call))
    sn_run_blocks(device, work, k.n_blocks, row_body_for(device), &k);
  else
    sn_run_blocks(device, work, sn_count_blocks(k.n, SN_FLAT_BLOCK), same_body_for(device), &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  add_context k = make_context(call);
  double work = sn_bytes_of_call(call, true);
  if (sn_add_is_broadcast(call))
    sn_run_blocks_then(device, work, k.n_blocks, row_backward_body_for(device),
                       call->din[1].data ? sn_count_blocks(k.columns, SN_JOIN_BLOCK) : 0, join_body_for(device), &k);
  else
    sn_run_blocks(device, work, sn_count_blocks(k.n, SN_FLAT_BLOCK), same_backward_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (!backward_pass || !sn_add_is_broadcast(call)) return 0;
  return sn_count_blocks(sn_tensor_rows(&call->in[0]), SN_ROW_BLOCK) * sn_tensor_columns(&call->in[0]) *
         (int64_t)sizeof(float);
}

const sn_op_impl sn_add_cpu = {.name = "cpu",
                               .device = SN_DEVICE_CPU,
                               .supports = sn_supports_f32_bf16,
                               .forward = forward,
                               .backward = backward,
                               .scratch = scratch};
