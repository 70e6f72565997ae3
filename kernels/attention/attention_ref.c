/* The float64 reference: the definition, one row at a time, everything loaded into double first. */
#include <math.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/attention/attention_plan.h"

static double load(const sn_attention_view *view, int64_t row, int64_t column) {
  int64_t at = row * view->stride + view->column + column;
  if (view->dtype == SN_F64) return ((const double *)view->data)[at];
  if (view->dtype == SN_F32) return (double)((const float *)view->data)[at];
  return (double)sn_bf16_to_f32(((const uint16_t *)view->data)[at]);
}

static void store(const sn_attention_view *view, int64_t row, int64_t column, double value) {
  int64_t at = row * view->stride + view->column + column;
  if (view->acc) value += load(view, row, column);
  if (view->dtype == SN_F64) ((double *)view->data)[at] = value;
  else if (view->dtype == SN_F32) ((float *)view->data)[at] = (float)value;
  else ((uint16_t *)view->data)[at] = sn_f32_to_bf16((float)value);
}

/* One (segment, head) in double; rows [begin, end) of the segment. */
static double *load_rows(const sn_attention_view *view, int64_t first_row, int64_t begin, int64_t end, int64_t column,
                         int64_t d, double **scratch) {
  double *rows = *scratch;
  *scratch += (end - begin) * d;
  for (int64_t i = begin; i < end; i++)
    for (int64_t c = 0; c < d; c++) rows[(i - begin) * d + c] = load(view, first_row + i, column + c);
  return rows;
}

static double dot(const double *a, const double *b, int64_t d) {
  double sum = 0;
  for (int64_t c = 0; c < d; c++) sum += a[c] * b[c];
  return sum;
}

int64_t sn_attention_reference_scratch(const sn_attention_attr *attr) {
  int64_t rows = 3 * sn_attention_longest_queries(attr) + 2 * sn_attention_longest_keys(attr) + 2; /* q, out, dout; k, v */
  return rows * attr->head_dim * (int64_t)sizeof(double);
}

void sn_attention_reference_forward(const sn_attention_plan *plan, const sn_attention_item *item, double *scratch) {
  const sn_attention_attr *attr = plan->attr;
  int64_t d = plan->head_dim, column = item->head * d, nk = sn_attention_n_keys(attr, item->segment);
  int64_t q0 = attr->q_offsets[item->segment], k0 = attr->kv_offsets[item->segment];
  double *q = load_rows(&plan->q, q0, item->q_begin, item->q_end, column, d, &scratch);
  double *k = load_rows(&plan->k, k0, 0, nk, column, d, &scratch);
  double *v = load_rows(&plan->v, k0, 0, nk, column, d, &scratch);
  double *out = scratch; // (D)
  for (int64_t i = item->q_begin; i < item->q_end; i++) {
    const double *qi = q + (i - item->q_begin) * d;
    int64_t n = attr->causal && i + 1 < nk ? i + 1 : nk;
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < n; j++) {
      double a = plan->scale * dot(qi, k + j * d, d);
      if (!(a <= largest)) largest = a; /* a NaN is kept */
    }
    memset(out, 0, (size_t)d * sizeof *out);
    for (int64_t j = 0; j < n; j++) {
      double p = exp(plan->scale * dot(qi, k + j * d, d) - largest);
      sum += p;
      for (int64_t c = 0; c < d; c++) out[c] += p * v[j * d + c];
    }
    for (int64_t c = 0; c < d; c++) store(&plan->out, q0 + i, column + c, out[c] / sum);
    if (plan->lse.data != NULL) sn_tensor_set(&plan->lse, (q0 + i) * plan->n_heads + item->head, largest + log(sum));
  }
}

typedef struct rows {
  const double *q, *k, *v, *dout, *out; /* rows of the piece */
  double *sums;                         /* (2, D) */
} rows;

/* p_ij, and ds_ij = p_ij (dout_i v_j - dout_i out_i) scale. */
static double probability(const sn_attention_plan *plan, const sn_attention_item *item, const rows *r, int64_t i, int64_t j,
                          double *ds) {
  int64_t d = plan->head_dim, row = plan->attr->q_offsets[item->segment] + i;
  const double *qi = r->q + (i - item->q_begin) * d, *dout = r->dout + (i - item->q_begin) * d;
  const double *kj = r->k + (j - item->k_begin) * d, *vj = r->v + (j - item->k_begin) * d;
  double p = exp(plan->scale * dot(qi, kj, d) - sn_tensor_get(&plan->lse, row * plan->n_heads + item->head));
  *ds = p * (dot(dout, vj, d) - dot(dout, r->out + (i - item->q_begin) * d, d)) * plan->scale;
  return p;
}

static void reference_dq(const sn_attention_plan *plan, const sn_attention_item *item, const rows *r) {
  int64_t d = plan->head_dim, q0 = plan->attr->q_offsets[item->segment];
  for (int64_t i = item->q_begin; i < item->q_end; i++) {
    int64_t end = plan->attr->causal && i + 1 < item->k_end ? i + 1 : item->k_end;
    memset(r->sums, 0, (size_t)d * sizeof(double));
    for (int64_t j = item->k_begin; j < end; j++) {
      double ds;
      probability(plan, item, r, i, j, &ds);
      for (int64_t c = 0; c < d; c++) r->sums[c] += ds * r->k[(j - item->k_begin) * d + c];
    }
    for (int64_t c = 0; c < d; c++) store(&plan->dq, q0 + i, item->head * d + c, r->sums[c]);
  }
}

static void reference_dkv(const sn_attention_plan *plan, const sn_attention_item *item, const rows *r) {
  int64_t d = plan->head_dim, k0 = plan->attr->kv_offsets[item->segment];
  double *dk = r->sums, *dv = r->sums + d;
  for (int64_t j = item->k_begin; j < item->k_end; j++) {
    int64_t begin = plan->attr->causal && j > item->q_begin ? j : item->q_begin;
    memset(dk, 0, (size_t)(2 * d) * sizeof(double));
    for (int64_t i = begin; i < item->q_end; i++) {
      double ds, p = probability(plan, item, r, i, j, &ds);
      for (int64_t c = 0; c < d; c++) dk[c] += ds * r->q[(i - item->q_begin) * d + c];
      for (int64_t c = 0; c < d; c++) dv[c] += p * r->dout[(i - item->q_begin) * d + c];
    }
    for (int64_t c = 0; c < d; c++) store(&plan->dk, k0 + j, item->head * d + c, dk[c]);
    for (int64_t c = 0; c < d; c++) store(&plan->dv, k0 + j, item->head * d + c, dv[c]);
  }
}

void sn_attention_reference_backward(const sn_attention_plan *plan, const sn_attention_item *item, double *scratch) {
  const sn_attention_attr *attr = plan->attr;
  int64_t d = plan->head_dim, column = item->head * d;
  int64_t q0 = attr->q_offsets[item->segment], k0 = attr->kv_offsets[item->segment];
  rows r;
  r.q = load_rows(&plan->q, q0, item->q_begin, item->q_end, column, d, &scratch);
  r.out = load_rows(&plan->out, q0, item->q_begin, item->q_end, column, d, &scratch);
  r.dout = load_rows(&plan->dout, q0, item->q_begin, item->q_end, column, d, &scratch);
  r.k = load_rows(&plan->k, k0, item->k_begin, item->k_end, column, d, &scratch);
  r.v = load_rows(&plan->v, k0, item->k_begin, item->k_end, column, d, &scratch);
  r.sums = scratch;
  if (item->want_dq) reference_dq(plan, item, &r);
  if (item->want_dkv) reference_dkv(plan, item, &r);
}

/* --- the implementation -------------------------------------------------------------------------------------------- */

typedef struct worker {
  const sn_attention_plan *plan;
  double *scratch;
} worker;

static void forward_item(void *user, const sn_attention_item *item) {
  worker *w = user;
  sn_attention_reference_forward(w->plan, item, w->scratch);
}

static void backward_item(void *user, const sn_attention_item *item) {
  worker *w = user;
  sn_attention_reference_backward(w->plan, item, w->scratch);
}

static const sn_attention_cut cut = {.q_rows = INT64_MAX / 4, .key_rows = INT64_MAX / 4, .key_step = 1, .whole = true};

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

static int64_t scratch_bytes(const sn_device *device, const sn_op_call *call, bool backward) {
  return sn_attention_reference_scratch(call->attr);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_attention_plan plan = sn_attention_read(call, false);
  worker w = {&plan, call->scratch};
  sn_attention_fill_rest(call, &plan);
  sn_attention_each(&plan, &cut, 0, 1, forward_item, &w);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (call->dout[0].data == NULL) {
    sn_attention_fill_zero(call);
    return SN_OK;
  }
  sn_attention_plan plan = sn_attention_read(call, true);
  worker w = {&plan, call->scratch};
  sn_attention_fill_rest(call, &plan);
  sn_attention_each(&plan, &cut, 0, 1, backward_item, &w);
  return SN_OK;
}

const sn_op_impl sn_attention_ref = {
    .name = "ref",
    .device = SN_DEVICE_CPU,
    .supports = supports,
    .forward = forward,
    .backward = backward,
    .scratch = scratch_bytes,
};
