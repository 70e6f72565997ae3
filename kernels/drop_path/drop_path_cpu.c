#include "kernels/cpu_blocks.h"

#include "kernels/drop_path/drop_path.h"
#include "kernels/op_rules.h"

typedef struct path_context {
  const sn_drop_path_attr *attr;
  sn_tensor to, from;
  bool acc;
  int64_t rows, columns;
} path_context;

SN_INLINE void path_body(void *ctx, int64_t block) {
  const path_context *k = ctx;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  float xb[SN_CHUNK], yb[SN_CHUNK], factor = 0.0f;
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    if (t == block * SN_ROW_BLOCK || k->attr->sample_ids[t] != k->attr->sample_ids[t - 1])
      factor = (float)sn_drop_path_factor(k->attr, t);
    for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
      int64_t m = sn_min_i64(SN_CHUNK, k->columns - c), at = t * k->columns + c;
      const float *restrict x = sn_load(&k->from, at, m, xb);
      float *restrict y = sn_target(&k->to, at, k->acc, yb);
      if (factor > 0.0f)
        for (int64_t i = 0; i < m; i++) y[i] = factor * x[i];
      else
        for (int64_t i = 0; i < m; i++) y[i] = 0.0f; /* also where x is not finite */
      sn_commit(&k->to, at, m, k->acc, y);
    }
  }
}
SN_SIMD_VARIANTS(path_body)

static void run(const sn_device *device, const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, bool acc) {
  path_context k = {call->attr, *to, *from, acc, sn_tensor_rows(from), sn_tensor_columns(from)};
  sn_run_blocks(device, sn_bytes_of_call(call, false), sn_count_blocks(k.rows, SN_ROW_BLOCK), path_body_for(device), &k);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  run(device, call, &call->out[0], &call->in[0], false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (sn_has_dout(call) && call->din[0].data) run(device, call, &call->din[0], &call->dout[0], call->acc[0]);
  return SN_OK;
}

const sn_op_impl sn_drop_path_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = sn_supports_f32_bf16,
                                     .forward = forward,
                                     .backward = backward};
