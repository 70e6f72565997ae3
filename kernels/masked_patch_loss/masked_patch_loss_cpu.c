#include "kernels/cpu_blocks.h"

#include "kernels/loss_sums.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/op_rules.h"

typedef struct loss_context {
  const sn_op_call *call;
  int64_t rows, columns, n_blocks;
  double *partial; /* (n_blocks, 2): kernels/loss_sums.h */
  double dsum;
} loss_context;

SN_INLINE float loss_of(float d, sn_patch_loss kind, float beta, float half_inverse) {
  float size = d < 0.0f ? -d : d;
  if (kind == SN_PATCH_L2) return d * d;
  if (kind == SN_PATCH_L1) return size;
  return size < beta ? d * d * half_inverse : size - 0.5f * beta;
}

SN_INLINE float slope_of(float d, sn_patch_loss kind, float inverse) {
  if (kind == SN_PATCH_L2) return 2.0f * d;
  float sign = d > 0.0f ? 1.0f : d < 0.0f ? -1.0f : d;
  if (kind == SN_PATCH_L1) return sign;
  float inside = d * inverse;
  return inside < 1.0f && inside > -1.0f ? inside : sign;
}

/* Differences of m values from `at` on, 0 where not valid. */
SN_INLINE void differences(const sn_op_call *call, int64_t at, int64_t m, float *restrict d) {
  float pb[SN_CHUNK], tb[SN_CHUNK];
  const float *restrict p = sn_load(&call->in[0], at, m, pb), *restrict t = sn_load(&call->in[1], at, m, tb);
  if (!call->in[2].data) {
    for (int64_t i = 0; i < m; i++) d[i] = p[i] - t[i];
    return;
  }
  const uint8_t *restrict valid = (const uint8_t *)call->in[2].data + at;
  for (int64_t i = 0; i < m; i++) {
    float difference = p[i] - t[i];
    d[i] = valid[i] ? difference : 0.0f;
  }
}

SN_INLINE float row_weight(const sn_op_call *call, int64_t t) {
  return call->in[3].data ? ((const float *)call->in[3].data)[t] : 1.0f;
}

/* How many values of the row count: 0 when it has no target. */
SN_INLINE int64_t valid_in_row(const sn_op_call *call, int64_t t, int64_t columns) {
  if (row_weight(call, t) == 0.0f) return 0;
  if (!call->in[2].data) return columns;
  const uint8_t *valid = (const uint8_t *)call->in[2].data + t * columns;
  int64_t n = 0;
  for (int64_t c = 0; c < columns; c += SN_CHUNK) {
    int32_t some = 0;
    for (int64_t i = c; i < sn_min_i64(columns, c + SN_CHUNK); i++) some += valid[i] != 0;
    n += some;
  }
  return n;
}

SN_INLINE double row_loss(const sn_op_call *call, int64_t t, int64_t columns, sn_patch_loss kind) {
  const sn_masked_patch_loss_attr *a = call->attr;
  float beta = (float)a->beta, half_inverse = kind == SN_PATCH_SMOOTH_L1 ? (float)(0.5 / a->beta) : 0.0f;
  double total = 0;
  for (int64_t c = 0; c < columns; c += SN_CHUNK) {
    float d[SN_CHUNK], sum = 0;
    int64_t m = sn_min_i64(SN_CHUNK, columns - c);
    differences(call, t * columns + c, m, d);
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < m; i++) sum += loss_of(d[i], kind, beta, half_inverse);
    total += (double)sum;
  }
  return total;
}

SN_INLINE void forward_body(void *ctx, int64_t block) {
  const loss_context *k = ctx;
  const sn_masked_patch_loss_attr *a = k->call->attr;
  double sum = 0, count = 0;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    int64_t n = valid_in_row(k->call, t, k->columns);
    if (n == 0) continue;
    double row = a->kind == SN_PATCH_L2   ? row_loss(k->call, t, k->columns, SN_PATCH_L2)
                 : a->kind == SN_PATCH_L1 ? row_loss(k->call, t, k->columns, SN_PATCH_L1)
                                          : row_loss(k->call, t, k->columns, SN_PATCH_SMOOTH_L1);
    const double weight = row_weight(k->call, t);
    sum += weight * row / (double)n;
    count += weight;
  }
  sn_loss_sums_put(k->partial, block, sum, count);
}
SN_SIMD_VARIANTS(forward_body)

SN_INLINE void row_slope(const loss_context *k, int64_t t, int64_t n, sn_patch_loss kind) {
  const sn_op_call *call = k->call;
  const sn_masked_patch_loss_attr *a = call->attr;
  float inverse = kind == SN_PATCH_SMOOTH_L1 ? (float)(1.0 / a->beta) : 0.0f;
  float factor = n > 0 ? (float)(k->dsum * row_weight(call, t) / (double)n) : 0.0f;
  for (int64_t c = 0; c < k->columns; c += SN_CHUNK) {
    float d[SN_CHUNK], out[SN_CHUNK];
    int64_t m = sn_min_i64(SN_CHUNK, k->columns - c), at = t * k->columns + c;
    float *restrict dx = sn_target(&call->din[0], at, call->acc[0], out);
    if (n > 0) {
      differences(call, at, m, d);
      for (int64_t i = 0; i < m; i++) dx[i] = factor * slope_of(d[i], kind, inverse);
    } else {
      for (int64_t i = 0; i < m; i++) dx[i] = 0.0f;
    }
    sn_commit(&call->din[0], at, m, call->acc[0], dx);
  }
}

SN_INLINE void backward_body(void *ctx, int64_t block) {
  const loss_context *k = ctx;
  const sn_masked_patch_loss_attr *a = k->call->attr;
  int64_t end = sn_min_i64(k->rows, (block + 1) * SN_ROW_BLOCK);
  for (int64_t t = block * SN_ROW_BLOCK; t < end; t++) {
    int64_t n = valid_in_row(k->call, t, k->columns);
    if (a->kind == SN_PATCH_L2) row_slope(k, t, n, SN_PATCH_L2);
    else if (a->kind == SN_PATCH_L1) row_slope(k, t, n, SN_PATCH_L1);
    else row_slope(k, t, n, SN_PATCH_SMOOTH_L1);
  }
}
SN_SIMD_VARIANTS(backward_body)

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  if (call->in[3].data && call->in[3].dtype != SN_F32) {
    *why = "row weights are not f32";
    return false;
  }
  return sn_supports_f32_bf16(device, call, why);
}

static loss_context make_context(const sn_op_call *call) {
  loss_context k = {.call = call, .rows = sn_tensor_rows(&call->in[0]), .columns = sn_tensor_columns(&call->in[0])};
  k.n_blocks = sn_count_blocks(k.rows, SN_ROW_BLOCK);
  k.partial = call->scratch;
  return k;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  loss_context k = make_context(call);
  sn_run_blocks(device, sn_bytes_of_call(call, false), k.n_blocks, forward_body_for(device), &k);
  sn_loss_sums_join(call, k.partial, k.n_blocks);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  loss_context k = make_context(call);
  k.dsum = *(const double *)call->dout[0].data;
  sn_run_blocks(device, sn_bytes_of_call(call, true), k.n_blocks, backward_body_for(device), &k);
  return SN_OK;
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  if (backward_pass) return 0;
  return sn_loss_sums_bytes(sn_count_blocks(sn_tensor_rows(&call->in[0]), SN_ROW_BLOCK));
}

const sn_op_impl sn_masked_patch_loss_cpu = {.name = "cpu",
                                             .device = SN_DEVICE_CPU,
                                             .supports = supports,
                                             .forward = forward,
                                             .backward = backward,
                                             .scratch = scratch};
