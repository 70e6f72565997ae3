#include "kernels/attention/attention_plan.h"

#include <math.h>
#include <string.h>

#include "core/bf16.h"

/* --- reading a call ------------------------------------------------------------------------------------------------ */

static sn_attention_view view_of(const sn_tensor *tensor, int64_t column, bool acc) {
  return (sn_attention_view){tensor->data, tensor->shape[0], tensor->shape[1], column, tensor->dtype, acc};
}

static bool is_fused(const sn_op_call *call) { return call->n_in < 2 || call->in[1].n_dims == 0; }

sn_attention_plan sn_attention_read(const sn_op_call *call, bool backward) {
  const sn_attention_attr *attr = call->attr;
  int source = is_fused(call) ? 0 : 1;
  sn_attention_plan plan = {.attr = attr, .n_heads = attr->n_heads, .head_dim = attr->head_dim, .backward = backward};
  plan.scale = attr->scale > 0 ? attr->scale : 1 / sqrt((double)attr->head_dim);
  plan.q = view_of(&call->in[0], attr->q_column, false);
  plan.k = view_of(&call->in[source], attr->k_column, false);
  plan.v = view_of(&call->in[source], attr->v_column, false);
  plan.out = view_of(&call->out[0], 0, false);
  if (call->n_saved > 0) plan.lse = call->saved[0];
  if (!backward) return plan;
  plan.dout = view_of(&call->dout[0], 0, false);
  plan.dq = view_of(&call->din[0], attr->q_column, call->acc[0]);
  plan.dk = view_of(&call->din[source], attr->k_column, call->acc[source]);
  plan.dv = view_of(&call->din[source], attr->v_column, call->acc[source]);
  return plan;
}

int64_t sn_attention_longest_queries(const sn_attention_attr *attr) {
  int64_t longest = 0;
  for (int64_t s = 0; s < attr->n_segments; s++) {
    int64_t n = sn_attention_n_queries(attr, s);
    if (n > longest) longest = n;
  }
  return longest;
}

int64_t sn_attention_longest_keys(const sn_attention_attr *attr) {
  int64_t longest = 0;
  for (int64_t s = 0; s < attr->n_segments; s++) {
    int64_t n = sn_attention_n_keys(attr, s);
    if (n > longest) longest = n;
  }
  return longest;
}

/* --- cutting the work ---------------------------------------------------------------------------------------------- */

static int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t sn_attention_key_block(const sn_attention_cut *cut, int64_t n_keys) {
  int64_t n_blocks = divide_up(n_keys, cut->key_rows);
  if (n_blocks < 1) n_blocks = 1;
  int64_t block = divide_up(divide_up(n_keys, n_blocks), cut->key_step) * cut->key_step;
  return block < cut->key_step ? cut->key_step : block;
}

/* Query-key pairs of a piece, in units that also count a row's fixed work. Causal: rows see keys up to their own. */
static double cost(const sn_attention_plan *plan, const sn_attention_item *item) {
  double rows = (double)(item->q_end - item->q_begin), keys = (double)(item->k_end - item->k_begin);
  double pairs = rows * keys;
  if (plan->attr->causal) { /* sum over rows of the keys of the range at or before the row */
    pairs = 0;
    int64_t first = item->q_begin > item->k_begin ? item->q_begin : item->k_begin;
    int64_t full = item->q_end < item->k_end ? item->q_end : item->k_end;
    if (full > first) {
      double a = (double)(first - item->k_begin + 1), b = (double)(full - item->k_begin);
      pairs += (a + b) / 2 * (double)(full - first);
    }
    int64_t after = item->q_begin > item->k_end ? item->q_begin : item->k_end;
    if (item->q_end > after) pairs += (double)(item->q_end - after) * keys;
  }
  double products = !plan->backward ? 2 : item->want_dq && item->want_dkv ? 5 : item->want_dkv ? 4 : 3;
  return products * (pairs + 8 * (rows + keys));
}

typedef void (*visit)(void *user, const sn_attention_item *item, double cost);

/* Every piece of one (segment, head), in order; head only fills the field. */
static void each_of_head(const sn_attention_plan *plan, const sn_attention_cut *cut, int64_t segment, int64_t head,
                         visit body, void *user) {
  int64_t nq = sn_attention_n_queries(plan->attr, segment), nk = sn_attention_n_keys(plan->attr, segment);
  if (nq == 0 || nk == 0) return;
  sn_attention_item item = {.segment = segment, .head = head, .q_end = nq, .k_end = nk};
  item.want_dq = plan->dq.data != NULL;
  item.want_dkv = plan->dk.data != NULL;
  if (plan->backward && (cut->whole || (item.want_dq && nq <= cut->q_rows && nk <= cut->key_rows))) {
    body(user, &item, cost(plan, &item));
    return;
  }
  bool want_dq = item.want_dq, want_dkv = item.want_dkv;
  if (plan->backward && want_dkv) {
    int64_t block = sn_attention_key_block(cut, nk);
    item.want_dq = false;
    for (int64_t k = 0; k < nk; k += block) {
      item.k_begin = k;
      item.k_end = k + block < nk ? k + block : nk;
      body(user, &item, cost(plan, &item));
    }
  }
  if (plan->backward && !want_dq) return;
  item.want_dq = want_dq;
  item.want_dkv = false;
  item.k_begin = 0;
  item.k_end = nk;
  for (int64_t q = 0; q < nq; q += cut->q_rows) {
    item.q_begin = q;
    item.q_end = q + cut->q_rows < nq ? q + cut->q_rows : nq;
    body(user, &item, cost(plan, &item));
  }
}

static void add_cost(void *user, const sn_attention_item *item, double piece) {
  (void)item;
  *(double *)user += piece;
}

/* Cost of one head of a segment; a run of segments of the same lengths is summed once. */
typedef struct head_cost {
  int64_t nq, nk;
  double cost;
} head_cost;

static double cost_of_head(const sn_attention_plan *plan, const sn_attention_cut *cut, int64_t segment, head_cost *last) {
  int64_t nq = sn_attention_n_queries(plan->attr, segment), nk = sn_attention_n_keys(plan->attr, segment);
  if (nq != last->nq || nk != last->nk) {
    *last = (head_cost){nq, nk, 0};
    each_of_head(plan, cut, segment, 0, add_cost, &last->cost);
  }
  return last->cost;
}

static double total_cost(const sn_attention_plan *plan, const sn_attention_cut *cut) {
  double total = 0;
  head_cost last = {-1, -1, 0};
  for (int64_t s = 0; s < plan->attr->n_segments; s++)
    total += (double)plan->n_heads * cost_of_head(plan, cut, s, &last);
  return total;
}

typedef struct stretch {
  double begin, end, at; /* costs; a piece belongs to the stretch that holds its middle */
  sn_attention_body body;
  void *user;
  double taken;
} stretch;

static void take(void *user, const sn_attention_item *item, double piece) {
  stretch *s = user;
  double middle = s->at + piece / 2;
  s->at += piece;
  if (middle < s->begin || middle >= s->end) return;
  s->taken += piece;
  if (s->body != NULL) s->body(s->user, item);
}

static void walk(const sn_attention_plan *plan, const sn_attention_cut *cut, stretch *s) {
  head_cost last = {-1, -1, 0};
  for (int64_t segment = 0; segment < plan->attr->n_segments && s->at < s->end; segment++) {
    double one = cost_of_head(plan, cut, segment, &last);
    for (int64_t h = 0; h < plan->n_heads && s->at < s->end; h++) {
      double after = s->at + one; /* each_of_head adds the same pieces; take the sum once so that both agree */
      if (after > s->begin) each_of_head(plan, cut, segment, h, take, s);
      s->at = after;
    }
  }
}

void sn_attention_each(const sn_attention_plan *plan, const sn_attention_cut *cut, int64_t thread, int64_t n_threads,
                       sn_attention_body body, void *user) {
  double total = total_cost(plan, cut);
  stretch s = {.begin = total * (double)thread / (double)n_threads,
               .end = thread + 1 == n_threads ? INFINITY : total * (double)(thread + 1) / (double)n_threads,
               .body = body, .user = user};
  walk(plan, cut, &s);
}

bool sn_attention_whole_is_best(const sn_attention_plan *plan, const sn_attention_cut *cut, int64_t n_threads) {
  if (n_threads == 1 || plan->dq.data == NULL || plan->dk.data == NULL) return true;
  sn_attention_cut whole = *cut, parts = *cut;
  whole.whole = true;
  parts.whole = false;
  double total = total_cost(plan, &whole), largest = 0;
  for (int64_t t = 0; t < n_threads; t++) {
    stretch s = {.begin = total * (double)t / (double)n_threads,
                 .end = t + 1 == n_threads ? INFINITY : total * (double)(t + 1) / (double)n_threads};
    walk(plan, &whole, &s);
    if (s.taken > largest) largest = s.taken;
  }
  return largest <= total_cost(plan, &parts) / (double)n_threads;
}

/* --- what no piece writes ------------------------------------------------------------------------------------------ */

static void zero_block(void *data, int64_t stride, sn_dtype dtype, int64_t row_begin, int64_t row_end, int64_t column,
                       int64_t columns) {
  int64_t size = sn_dtype_size(dtype);
  if (columns <= 0) return;
  for (int64_t t = row_begin; t < row_end; t++)
    memset((char *)data + (t * stride + column) * size, 0, (size_t)(columns * size));
}

/* Rows that no segment with partners on the other side holds. */
static void zero_rows(const sn_attention_plan *plan, const sn_attention_view *view, const int64_t *offsets,
                      const int64_t *others, int64_t rows, int64_t columns) {
  int64_t n = plan->attr->n_segments;
  zero_block(view->data, view->stride, view->dtype, 0, offsets[0], view->column, columns);
  for (int64_t s = 0; s < n; s++)
    if (others[s + 1] == others[s])
      zero_block(view->data, view->stride, view->dtype, offsets[s], offsets[s + 1], view->column, columns);
  zero_block(view->data, view->stride, view->dtype, offsets[n], rows, view->column, columns);
}

/* Columns of a source between its `n` used ranges (given in any order) of `width` columns. */
static void zero_columns(const sn_tensor *tensor, int n, const int64_t *used, int64_t width) {
  int64_t at = 0;
  for (int done = 0; done < n; done++) {
    int64_t next = -1;
    for (int i = 0; i < n; i++)
      if (used[i] >= at && (next < 0 || used[i] < next)) next = used[i];
    zero_block(tensor->data, tensor->shape[1], tensor->dtype, 0, tensor->shape[0], at, next - at);
    at = next + width;
  }
  zero_block(tensor->data, tensor->shape[1], tensor->dtype, 0, tensor->shape[0], at, tensor->shape[1] - at);
}

void sn_attention_fill_rest(const sn_op_call *call, const sn_attention_plan *plan) {
  const sn_attention_attr *attr = plan->attr;
  int64_t width = plan->n_heads * plan->head_dim, rows = call->in[0].shape[0];
  if (!plan->backward) {
    zero_rows(plan, &plan->out, attr->q_offsets, attr->kv_offsets, rows, width);
    sn_attention_view lse = view_of(&plan->lse, 0, false);
    if (lse.data != NULL) zero_rows(plan, &lse, attr->q_offsets, attr->kv_offsets, rows, plan->n_heads);
    return;
  }
  bool fused = is_fused(call);
  int source = fused ? 0 : 1;
  if (plan->dq.data != NULL && !plan->dq.acc) {
    zero_rows(plan, &plan->dq, attr->q_offsets, attr->kv_offsets, rows, width);
    int64_t used[3] = {attr->q_column, attr->k_column, attr->v_column};
    zero_columns(&call->din[0], fused ? 3 : 1, used, width);
  }
  if (plan->dk.data != NULL && !plan->dk.acc) {
    rows = call->in[source].shape[0];
    zero_rows(plan, &plan->dk, attr->kv_offsets, attr->q_offsets, rows, width);
    zero_rows(plan, &plan->dv, attr->kv_offsets, attr->q_offsets, rows, width);
    int64_t used[2] = {attr->k_column, attr->v_column};
    if (!fused) zero_columns(&call->din[1], 2, used, width);
  }
}

void sn_attention_fill_zero(const sn_op_call *call) {
  for (int i = 0; i < call->n_in; i++)
    if (call->din[i].data != NULL && !call->acc[i]) memset(call->din[i].data, 0, (size_t)sn_tensor_bytes(&call->din[i]));
}

bool sn_attention_all_finite(const sn_attention_view *view, int64_t head_column, int64_t head_dim, int64_t begin,
                             int64_t end) {
  bool finite = true;
  for (int64_t t = begin; t < end && finite; t++) {
    int64_t at = t * view->stride + view->column + head_column;
    if (view->dtype == SN_BF16) {
      const uint16_t *x = (const uint16_t *)view->data + at;
      for (int64_t d = 0; d < head_dim; d++) finite &= (x[d] & 0x7f80u) != 0x7f80u;
    } else if (view->dtype == SN_F32) {
      const float *x = (const float *)view->data + at;
      for (int64_t d = 0; d < head_dim; d++) finite &= isfinite(x[d]) != 0;
    } else {
      const double *x = (const double *)view->data + at;
      for (int64_t d = 0; d < head_dim; d++) finite &= isfinite(x[d]) != 0;
    }
  }
  return finite;
}
