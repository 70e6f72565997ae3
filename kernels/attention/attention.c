#include "kernels/attention/attention.h"

#include <math.h>

#include "core/alloc.h"
#include "kernels/attention/attention_plan.h"

static sn_status check_offsets(const char *name, const int64_t *offsets, int64_t n_segments, int64_t rows, sn_error *err) {
  if (offsets == NULL) return sn_fail(err, SN_E_ARGUMENT, "attention: %s: expected %lld offsets, found none", name,
                                      (long long)n_segments + 1);
  if (offsets[0] < 0) return sn_fail(err, SN_E_ARGUMENT, "attention: %s[0]: expected at least 0, found %lld", name,
                                     (long long)offsets[0]);
  for (int64_t s = 0; s < n_segments; s++)
    if (offsets[s + 1] < offsets[s])
      return sn_fail(err, SN_E_ARGUMENT, "attention: %s[%lld]: expected at least %lld (offsets never fall), found %lld",
                     name, (long long)s + 1, (long long)offsets[s], (long long)offsets[s + 1]);
  if (offsets[n_segments] > rows)
    return sn_fail(err, SN_E_ARGUMENT, "attention: %s[%lld]: expected at most %lld (the rows), found %lld", name,
                   (long long)n_segments, (long long)rows, (long long)offsets[n_segments]);
  return SN_OK;
}

static sn_status check_column(const char *name, int64_t column, int64_t width, const sn_tensor *source, sn_error *err) {
  int64_t have = source->shape[1];
  if (column < 0 || column > have - width)
    return sn_fail(err, SN_E_ARGUMENT,
                   "attention: %s_column: expected 0 to %lld (%lld columns, %lld of them taken), found %lld", name, (long long)(have - width), (long long)have, (long long)width, (long long)column);
  return SN_OK;
}

static bool overlap(int64_t a, int64_t b, int64_t width) { return a < b + width && b < a + width; }

static bool is_float(sn_dtype dtype) { return dtype == SN_F32 || dtype == SN_BF16 || dtype == SN_F64; }

static sn_status check_columns(const sn_attention_attr *attr, const sn_tensor *q, const sn_tensor *kv, bool fused,
                               int64_t width, sn_error *err) {
  SN_TRY(check_column("q", attr->q_column, width, q, err));
  SN_TRY(check_column("k", attr->k_column, width, kv, err));
  SN_TRY(check_column("v", attr->v_column, width, kv, err));
  if (overlap(attr->k_column, attr->v_column, width) ||
      (fused && (overlap(attr->q_column, attr->k_column, width) || overlap(attr->q_column, attr->v_column, width))))
    return sn_fail(err, SN_E_ARGUMENT,
                   "attention: q, k and v of one source must not share columns: each takes %lld, from %lld, %lld and %lld",
                   (long long)width, (long long)attr->q_column, (long long)attr->k_column, (long long)attr->v_column);
  return SN_OK;
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_attention_attr *attr = call->attr;
  if (call->n_in < 1 || call->n_in > 2)
    return sn_fail(err, SN_E_ARGUMENT, "attention: expected 1 or 2 inputs, found %d", call->n_in);
  const sn_tensor *q = &call->in[0];
  bool fused = call->n_in == 1 || call->in[1].n_dims == 0;
  const sn_tensor *kv = fused ? q : &call->in[1];
  if (q->n_dims != 2 || kv->n_dims != 2)
    return sn_fail(err, SN_E_ARGUMENT, "attention: expected sources of 2 dimensions (tokens, columns), found %d and %d",
                   q->n_dims, kv->n_dims);
  if (!is_float(q->dtype) || kv->dtype != q->dtype)
    return sn_fail(err, SN_E_ARGUMENT, "attention: expected both sources in one of f32, bf16, f64, found %s and %s",
                   sn_dtype_name(q->dtype), sn_dtype_name(kv->dtype));
  int64_t width;
  if (attr->n_heads < 1 || attr->head_dim < 1 || !sn_mul_ok(attr->n_heads, attr->head_dim, &width))
    return sn_fail(err, SN_E_ARGUMENT, "attention: expected at least 1 head of at least 1 channel, found %lld of %lld",
                   (long long)attr->n_heads, (long long)attr->head_dim);
  if (!isfinite(attr->scale) || attr->scale < 0)
    return sn_fail(err, SN_E_ARGUMENT, "attention: scale: expected 0 (1/sqrt(head_dim)) or a positive number, found %g",
                   attr->scale);
  SN_TRY(check_columns(attr, q, kv, fused, width, err));
  if (attr->n_segments < 0)
    return sn_fail(err, SN_E_ARGUMENT, "attention: n_segments: expected at least 0, found %lld",
                   (long long)attr->n_segments);
  SN_TRY(check_offsets("q_offsets", attr->q_offsets, attr->n_segments, q->shape[0], err));
  SN_TRY(check_offsets("kv_offsets", attr->kv_offsets, attr->n_segments, kv->shape[0], err));
  call->n_out = 1;
  call->out[0] = sn_tensor_2d(NULL, q->dtype, q->shape[0], width);
  call->n_saved = with_saved ? 1 : 0;
  if (with_saved)
    call->saved[0] = sn_tensor_2d(NULL, q->dtype == SN_F64 ? SN_F64 : SN_F32, q->shape[0], attr->n_heads);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  const sn_attention_attr *attr = call->attr;
  double pairs = 0;
  for (int64_t s = 0; s < attr->n_segments; s++) {
    double nq = (double)sn_attention_n_queries(attr, s), nk = (double)sn_attention_n_keys(attr, s);
    double full = nq < nk ? nq : nk; /* causal: row i sees min(i + 1, nk) keys */
    pairs += attr->causal ? full * (full + 1) / 2 + (nq - full) * nk : nq * nk;
  }
  return (backward ? 5 : 2) * 2.0 * pairs * (double)(attr->n_heads * attr->head_dim);
}

static double bytes(const sn_op_call *call, bool backward) {
  const sn_attention_attr *attr = call->attr;
  const sn_tensor *kv = call->n_in > 1 && call->in[1].n_dims != 0 ? &call->in[1] : &call->in[0];
  double width = (double)(attr->n_heads * attr->head_dim), size = (double)sn_dtype_size(call->in[0].dtype);
  double queries = (double)call->in[0].shape[0] * width * size, keys = (double)kv->shape[0] * width * size;
  double lse = (double)call->in[0].shape[0] * (double)attr->n_heads * 4;
  /* forward: q, out, k, v; backward: q, out, dout, dq, k, v, dk, dv */
  return backward ? 4 * queries + 4 * keys + lse : 2 * queries + 2 * keys + lse;
}

static const sn_op_impl *const impls[] = {
#if defined(__x86_64__)
    &sn_attention_amx, &sn_attention_bf16, &sn_attention_avx512, &sn_attention_avx2,
#endif
    &sn_attention_ref, NULL};

const sn_op sn_op_attention = {
    .name = "attention",
    .summary = "out_i = sum_j softmax_j(scale q_i k_j) v_j over packed segments",
    .attr_size = sizeof(sn_attention_attr),
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .impls = impls,
    .grad_inputs = 3,
    .samples = sn_attention_samples,
};

sn_status sn_attention(sn_tape *tape, sn_value **out, sn_value *q, sn_value *kv, const sn_attention_attr *attr,
                       sn_error *err) {
  sn_value *in[2] = {q, kv};
  return sn_tape_record(tape, &sn_op_attention, attr, kv != NULL ? 2 : 1, in, 1, out, err);
}
