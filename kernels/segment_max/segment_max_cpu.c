#include "kernels/cpu_blocks.h"

#include "kernels/op_rules.h"
#include "kernels/segment_max/segment_max.h"

typedef struct max_context {
  const sn_op_call *call;
  const sn_segments *segments;
  int64_t columns, n_column_blocks;
} max_context;

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const max_context *k = ctx;
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  int64_t m = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c);
  int64_t first = k->segments->offsets[s], end = k->segments->offsets[s + 1];
  float buffer[SN_CHUNK], best[SN_SEGMENT_COLUMNS] = {0};
  int32_t from[SN_SEGMENT_COLUMNS];
  for (int64_t i = 0; i < m; i++) from[i] = -1;
  for (int64_t t = first; t < end; t++) {
    const float *restrict x = sn_load(&k->call->in[0], t * k->columns + c, m, buffer);
    for (int64_t i = 0; i < m; i++) {
      bool take = (from[i] < 0) | (x[i] > best[i]) | ((x[i] != x[i]) & (best[i] == best[i]));
      best[i] = take ? x[i] : best[i];
      from[i] = take ? (int32_t)t : from[i];
    }
  }
  sn_commit(&k->call->out[0], s * k->columns + c, m, false, best);
  if (k->call->saved[0].data)
    memcpy((int32_t *)k->call->saved[0].data + s * k->columns + c, from, (size_t)m * sizeof from[0]);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const max_context *k = ctx;
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  int64_t m = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c);
  float buffer[SN_CHUNK], values[SN_SEGMENT_COLUMNS];
  const int32_t *from = (const int32_t *)k->call->saved[0].data + s * k->columns + c;
  const float *restrict dy = sn_load(&k->call->dout[0], s * k->columns + c, m, buffer);
  for (int64_t t = k->segments->offsets[s]; t < k->segments->offsets[s + 1]; t++) {
    for (int64_t i = 0; i < m; i++) values[i] = from[i] == (int32_t)t ? dy[i] : 0.0f;
    sn_commit(&k->call->din[0], t * k->columns + c, m, k->call->acc[0], values);
  }
}
SN_SIMD_VARIANTS(backward_body)

static max_context make_context(const sn_op_call *call) {
  max_context k = {call, call->attr, sn_tensor_columns(&call->in[0]), 0};
  k.n_column_blocks = sn_count_blocks(k.columns, SN_SEGMENT_COLUMNS);
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  max_context k = make_context(call);
  SN_TRY(sn_segments_check(k.segments, sn_tensor_rows(&call->in[0]), err));
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.segments->n_segments * k.n_column_blocks, forward_body_for(device),
                &k);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  max_context k = make_context(call);
  SN_TRY(sn_segments_check(k.segments, sn_tensor_rows(&call->in[0]), err));
  sn_segments_zero_outside(call, k.segments);
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.segments->n_segments * k.n_column_blocks, backward_body_for(device),
                &k);
  return SN_OK;
}

const sn_op_impl sn_segment_max_cpu = {.name = "cpu",
                                       .device = SN_DEVICE_CPU,
                                       .supports = sn_supports_f32_bf16,
                                       .forward = forward,
                                       .backward = backward};
