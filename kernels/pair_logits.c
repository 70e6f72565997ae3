#include "kernels/pair_logits.h"

#include <math.h>

#include "kernels/cpu_blocks.h"
#include "kernels/gemm/gemm_product.h"

static sn_status rule_scalar(const sn_op_call *call, int input, const char *name, sn_error *err) {
  if (input >= call->n_in || !sn_is_present(&call->in[input])) return SN_OK;
  return sn_rule_vector(call, input, name, 1, err);
}

sn_status sn_pair_rule(const sn_op_call *call, double scale, const char *pairs, bool with_bias, sn_error *err) {
  const sn_tensor *za = &call->in[0], *zb = &call->in[1], *p = &call->in[2];
  SN_TRY(sn_rule_float(call, 0, "za", err));
  SN_TRY(sn_rule_float(call, 1, "zb", err));
  SN_TRY(sn_rule_float(call, 2, pairs, err));
  if (za->n_dims != 2 || zb->n_dims != 2 || za->shape[1] != zb->shape[1] || za->dtype != zb->dtype)
    return sn_fail(err, SN_E_ARGUMENT, "za and zb must be matrices of one type and width; they are %s (%lld, %lld) and %s "
                   "(%lld, %lld)", sn_dtype_name(za->dtype), (long long)za->shape[0], (long long)za->shape[1],
                   sn_dtype_name(zb->dtype), (long long)zb->shape[0], (long long)zb->shape[1]);
  if (p->n_dims != 2 || p->shape[0] != za->shape[0] || p->shape[1] != zb->shape[0] || p->dtype == SN_BF16)
    return sn_fail(err, SN_E_ARGUMENT, "input %s must be f32 or f64, (%lld, %lld): rows of za by rows of zb; it is %s (%lld, "
                   "%lld)", pairs, (long long)za->shape[0], (long long)zb->shape[0], sn_dtype_name(p->dtype),
                   (long long)p->shape[0], (long long)p->shape[1]);
  if (!(scale > 0) || !isfinite(scale))
    return sn_fail(err, SN_E_ARGUMENT, "scale must be finite and above 0; it is %g", scale);
  SN_TRY(rule_scalar(call, 3, "log_scale", err));
  return with_bias ? rule_scalar(call, 4, "bias", err) : SN_OK;
}

double sn_pair_scale(const sn_op_call *call, double scale) {
  return call->n_in > 3 && call->in[3].data ? scale * exp(sn_tensor_get(&call->in[3], 0)) : scale;
}

double sn_pair_flops(const sn_op_call *call, bool backward) {
  sn_pair_sizes s = sn_pair_sizes_of(call);
  double pairs = (double)s.na * (double)s.nb;
  return pairs * ((backward ? 4.0 : 2.0) * (double)s.d + 12.0);
}

bool sn_pair_supports(const sn_device *device, const sn_op_call *call, const char **why) {
  for (int i = 0; i < call->n_in; i++)
    if (i != 2 && sn_is_present(&call->in[i]) && call->in[i].dtype == SN_F64) {
      *why = "float64 is computed by the reference";
      return false;
    }
  return true;
}

double sn_pair_ref_dot(const sn_op_call *call, int64_t i, int64_t j) {
  int64_t d = call->in[0].shape[1];
  double dot = 0;
  for (int64_t c = 0; c < d; c++) dot += sn_tensor_get(&call->in[0], i * d + c) * sn_tensor_get(&call->in[1], j * d + c);
  return dot;
}

void sn_pair_ref_gradient(const sn_op_call *call, double (*dot_gradient)(const void *user, int64_t i, int64_t j),
                          const void *user) {
  sn_pair_sizes s = sn_pair_sizes_of(call);
  for (int64_t i = 0; call->din[0].data && i < s.na; i++)
    for (int64_t c = 0; c < s.d; c++) {
      double sum = 0;
      for (int64_t j = 0; j < s.nb; j++) sum += dot_gradient(user, i, j) * sn_tensor_get(&call->in[1], j * s.d + c);
      sn_put(&call->din[0], i * s.d + c, sum, call->acc[0]);
    }
  for (int64_t j = 0; call->din[1].data && j < s.nb; j++)
    for (int64_t c = 0; c < s.d; c++) {
      double sum = 0;
      for (int64_t i = 0; i < s.na; i++) sum += dot_gradient(user, i, j) * sn_tensor_get(&call->in[0], i * s.d + c);
      sn_put(&call->din[1], j * s.d + c, sum, call->acc[1]);
    }
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* --- cpu ---------------------------------------------------------------------------------------------------------- */

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
static int64_t blocks_bytes(sn_pair_sizes s) {
  return aligned(sn_count_blocks(s.na, SN_ROW_BLOCK) * (int64_t)sizeof(sn_pair_block));
}
static int64_t matrix_bytes(sn_pair_sizes s) { return aligned(s.na * s.nb * (int64_t)sizeof(float)); }

/* Blocks, a matrix of pairs (logits where nothing is saved, ddots in backward), panels of the products. */
int64_t sn_pair_scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  (void)backward;
  sn_pair_sizes s = sn_pair_sizes_of(call);
  return blocks_bytes(s) + matrix_bytes(s) +
         larger(sn_product_bytes(device, s.na, s.nb, s.d),
                larger(sn_product_bytes(device, s.na, s.d, s.nb), sn_product_bytes(device, s.nb, s.d, s.na)));
}

sn_pair_work sn_pair_work_of(const sn_op_call *call, double scale) {
  sn_pair_work w = {.call = call, .s = sn_pair_sizes_of(call), .blocks = call->scratch, .t = sn_pair_scale(call, scale)};
  w.n_blocks = sn_count_blocks(w.s.na, SN_ROW_BLOCK);
  w.ddots = (float *)(void *)((char *)call->scratch + blocks_bytes(w.s));
  w.logits = call->saved[0].data ? call->saved[0].data : w.ddots;
  w.panels = (char *)w.ddots + matrix_bytes(w.s);
  return w;
}

const float *sn_pair_values(const sn_tensor *pairs, int64_t at, int64_t n, float *buffer) {
  if (pairs->dtype == SN_F32) return sn_f32_at(pairs, at);
  const double *from = (const double *)pairs->data + at;
  for (int64_t i = 0; i < n; i++) buffer[i] = (float)from[i];
  return buffer;
}

void sn_pair_join(const sn_pair_work *work, double *first, double *second, int64_t *bad) {
  *first = *second = 0;
  *bad = -1;
  for (int64_t b = 0; b < work->n_blocks; b++) {
    *first += work->blocks[b].first;
    *second += work->blocks[b].second;
    if (*bad < 0) *bad = work->blocks[b].bad;
  }
}

void sn_pair_dots(const sn_device *device, const sn_pair_work *work) {
  const sn_op_call *call = work->call;
  sn_pair_sizes s = work->s;
  sn_dtype dtype = call->in[0].dtype;
  sn_product product = {.m = s.na, .n = s.nb, .k = s.d, .a = sn_product_operand(call->in[0].data, dtype, s.d, true),
                        .b = sn_product_operand(call->in[1].data, dtype, s.d, true), .c = work->logits, .c_dtype = SN_F32};
  sn_product_run(device, &product, work->panels);
}

void sn_pair_gradient(const sn_device *device, const sn_pair_work *work) {
  const sn_op_call *call = work->call;
  const float *ddots = work->ddots;
  sn_pair_sizes s = work->s;
  sn_dtype dtype = call->in[0].dtype;
  sn_product to_a = {.m = s.na, .n = s.d, .k = s.nb, .a = sn_product_operand(ddots, SN_F32, s.nb, true),
                     .b = sn_product_operand(call->in[1].data, dtype, s.d, false), .c = call->din[0].data, .c_dtype = dtype,
                     .acc = call->acc[0]};
  sn_product to_b = {.m = s.nb, .n = s.d, .k = s.na, .a = sn_product_operand(ddots, SN_F32, s.nb, false),
                     .b = sn_product_operand(call->in[0].data, dtype, s.d, false), .c = call->din[1].data, .c_dtype = dtype,
                     .acc = call->acc[1]};
  if (to_a.c) sn_product_run(device, &to_a, work->panels);
  if (to_b.c) sn_product_run(device, &to_b, work->panels);
}
