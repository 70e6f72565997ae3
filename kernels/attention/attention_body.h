/* The body of the fast CPU kernels of attention; included once per kernel file, after
 *   SN_LANES   floats of a vector: 16 or 8
 *   SN_PAIRS   1: products of bf16 pairs, 0: fp32 products
 *   SN_TILES   1: products by 16 x 16 tiles (the SN_TILE_ operations), 0: in vector registers
 *   SN_BEGIN_THREAD(), SN_END_THREAD()   around a thread's work
 * It defines kernel_forward, kernel_backward, kernel_scratch and kernel_supports.
 *
 * HOW IT WORKS.  A piece of work (attention_plan.h) walks over blocks of at most KEY_BLOCK keys. The block's K and V are
 * packed once: transposed where the reduction runs over channels (scores, dP), row after row where it runs over keys.
 * Against it come blocks of Q_BLOCK queries. Every product is gemm() on packed operands that fit into the second level
 * cache; padding is zeros, or -inf for the scores of keys that are not there, which makes probabilities of exactly 0.
 *   forward    S = Q K'; running maximum and sum per row; O = P V, rescaled when the maximum moved
 *   backward   S = Q K'; dP = dO V'; P = exp(S - lse); dS = P (dP - D_i) scale; dV += P' dO; dK += dS' Q; dQ += dS K
 * With pairs, P and dS are stored once more with neighbouring queries side by side, as reductions over queries want it.
 * Key blocks lie on a grid that depends on the segment's length alone, so one piece or many give the same bits. */
#ifndef SN_KERNELS_ATTENTION_BODY_H
#define SN_KERNELS_ATTENTION_BODY_H

#include <omp.h>

#include "kernels/attention/attention_gemm.h"
#include "kernels/attention/attention_plan.h"

enum {
  PER_UNIT = SN_PAIRS ? 2 : 1,                               /* values in a unit */
  D_STEP = SN_PAIRS ? 2 * SN_LANES : SN_LANES,               /* heads are padded to a multiple of this */
  ROW_STEP = SN_TILES ? 32 : PER_UNIT,                       /* and rows of a query block */
  KEY_STEP = SN_TILES ? 32 : SN_LANES,                       /* and key blocks */
  KEY_BLOCK = 512,
  Q_BLOCK = 64,
  Q_ROWS = 256,
  GAP = 16                                                   /* units between rows: no row length of a power of two */
};

static const float LOG2_E = 1.44269504088896341f, LN_2 = 0.693147180559945309f;

static int64_t round_up(int64_t n, int64_t step) { return (n + step - 1) / step * step; }

/* One thread's view of the call and its buffers. */
typedef struct kernel {
  const sn_attention_plan *plan;
  sn_attention_cut cut;
  int64_t d, dp;              /* head width, padded */
  int64_t kp;                 /* padded keys of the longest key block */
  int64_t lds, ldp;           /* row lengths: scores (fp32), probabilities in units */
  float scale, scale2;        /* scale, scale * log2(e) */
  unit *rows;                 // (kp, dp)             rows of K or V as they come
  packed_b kt, vt;            // (dp, keys)           K', V': reductions over channels
  packed_b kv;                // (keys, dp)           V in forward, K in backward: reductions over keys
  unit *q, *dout;             // (Q_BLOCK, dp)
  packed_b qb, doutb;         // (Q_BLOCK, dp)        reductions over queries
  float *s, *ds;              // (Q_BLOCK, lds)       scores, then P; dP, then dS
  unit *p_rows;               // (Q_BLOCK, ldp)       pairs along keys: P in forward, dS in backward
  unit *p_pairs, *ds_pairs;   // (Q_BLOCK / 2, lds)   pairs along queries
  unit *turned;               // (kp, Q_BLOCK + GAP)  tiles: those, row after row of keys
  float *sums;                // (rows of a piece, dp) O or dQ
  float *dk, *dv;             // (kp, dp)
  float *largest, *total;     // (rows of a piece)    running maximum (times scale2) and sum
  double *reference;
} kernel;

/* --- buffers ------------------------------------------------------------------------------------------------------- */

static void *carve(char *base, int64_t *at, int64_t count, int64_t size) {
  char *p = base == NULL ? NULL : base + *at;
  *at = round_up(*at + count * size, 64);
  return p;
}

/* Lays the buffers out from base (NULL: only measures) and returns their bytes. */
static int64_t lay_out(kernel *k, const sn_attention_plan *plan, const sn_attention_cut *cut, char *base) {
  const sn_attention_attr *attr = plan->attr;
  int64_t longest_q = sn_attention_longest_queries(attr), longest_k = sn_attention_longest_keys(attr), at = 0;
  int64_t rows = plan->backward && cut->whole ? longest_q : longest_q < Q_ROWS ? longest_q : Q_ROWS;
  rows = round_up(rows, Q_BLOCK);
  *k = (kernel){.plan = plan, .cut = *cut, .d = plan->head_dim, .dp = round_up(plan->head_dim, D_STEP)};
  k->kp = round_up(longest_k < KEY_BLOCK ? longest_k : KEY_BLOCK, KEY_STEP);
  k->lds = k->kp + GAP;
  k->ldp = (SN_PAIRS ? k->kp / 2 : k->kp) + GAP;
  k->scale = (float)plan->scale;
  k->scale2 = (float)(plan->scale * 1.44269504088896341);
  int64_t units = k->dp / PER_UNIT;
  k->rows = carve(base, &at, k->kp * units, 4);
  k->kt.data = carve(base, &at, k->kp * units, 4);
  k->kv.data = carve(base, &at, k->kp * units, 4);
  k->q = carve(base, &at, Q_BLOCK * units, 4);
  k->s = carve(base, &at, Q_BLOCK * k->lds, 4);
  k->sums = carve(base, &at, rows * k->dp, 4);
  if (SN_PAIRS) k->p_rows = carve(base, &at, Q_BLOCK * k->ldp, 4);
  if (!plan->backward) {
    k->largest = carve(base, &at, rows, 4);
    k->total = carve(base, &at, rows, 4);
  } else {
    k->vt.data = carve(base, &at, k->kp * units, 4);
    k->dout = carve(base, &at, Q_BLOCK * units, 4);
    k->qb.data = carve(base, &at, Q_BLOCK * units, 4);
    k->doutb.data = carve(base, &at, Q_BLOCK * units, 4);
    k->ds = carve(base, &at, Q_BLOCK * k->lds, 4);
    k->dk = carve(base, &at, k->kp * k->dp, 4);
    k->dv = carve(base, &at, k->kp * k->dp, 4);
    if (SN_PAIRS) k->p_pairs = carve(base, &at, Q_BLOCK / 2 * k->lds, 4);
    if (SN_PAIRS) k->ds_pairs = carve(base, &at, Q_BLOCK / 2 * k->lds, 4);
    if (SN_TILES) k->turned = carve(base, &at, k->kp * (Q_BLOCK / 2 + GAP), 4);
  }
  if (attr->causal) k->reference = carve(base, &at, sn_attention_reference_scratch(attr), 1);
  return at;
}

static sn_attention_cut cut_of(bool whole) {
  return (sn_attention_cut){.q_rows = Q_ROWS, .key_rows = KEY_BLOCK, .key_step = KEY_STEP, .whole = whole};
}

static sn_attention_cut best_cut(const sn_attention_plan *plan, int64_t n_threads) {
  sn_attention_cut cut = cut_of(true);
  cut.whole = !plan->backward || sn_attention_whole_is_best(plan, &cut, n_threads);
  return cut;
}

/* --- packing ------------------------------------------------------------------------------------------------------- */

static const void *at_row(const sn_attention_view *view, int64_t row, int64_t column) {
  int64_t at = row * view->stride + view->column + column;
  return (const char *)view->data + at * (view->dtype == SN_BF16 ? 2 : 4);
}

/* Heads of a row are neighbours in memory, rows are not, which the machine's own prefetch does not follow: while a head is
 * read, the next head of the same rows is asked for, and with the last head the rows that follow. */
SN_INLINE void ask_for_next(const kernel *k, const sn_attention_view *view, int64_t head, int64_t row, int64_t n,
                            int64_t last_row, bool write) {
  bool same_rows = head + 1 < k->plan->n_heads;
  if (!same_rows && row + n > last_row) return;
  const char *next = at_row(view, same_rows ? row : row + n, same_rows ? (head + 1) * k->d : 0);
  int64_t bytes = k->d * (view->dtype == SN_BF16 ? 2 : 4);
  for (int64_t b = 0; b < bytes; b += 64) {
    if (write) __builtin_prefetch(next + b, 1);
    else __builtin_prefetch(next + b, 0);
  }
}

/* Values [c, c + SN_LANES) of a row of d values, widened; 0 beyond the end. */
SN_INLINE vf load_values(const void *row, sn_dtype dtype, int64_t c, int64_t d) {
  if (dtype == SN_BF16) {
    const uint16_t *x = (const uint16_t *)row + c;
    return c + SN_LANES <= d ? vf_load_bf16(x) : vf_load_bf16_part(x, d - c);
  }
  const float *x = (const float *)row + c;
  return c + SN_LANES <= d ? vf_load(x) : vf_load_part(x, d - c);
}

/* dst (padded, dp) = rows [row, row + n) of one head; channels from d and rows from n are 0. */
static void pack_rows(const kernel *k, unit *dst, const sn_attention_view *view, int64_t head, int64_t row, int64_t n,
                      int64_t padded) {
  const int64_t units = k->dp / PER_UNIT, d = k->d;
  for (int64_t i = 0; i < n; i++) {
    const void *src = at_row(view, row + i, head * d);
    unit *to = dst + i * units;
    ask_for_next(k, view, head, row + i, n, view->rows - 1, false);
#if SN_PAIRS
    for (int64_t c = 0; c < k->dp; c += 2 * SN_LANES) {
      if (c + 2 * SN_LANES <= d) {
        vf_store(to + c / 2, vf_load((const uint16_t *)src + c));
      } else {
        vf_store(to + c / 2, vf_zero());
        if (c < d) memcpy(to + c / 2, (const uint16_t *)src + c, (size_t)(d - c) * 2);
      }
    }
#else
    for (int64_t c = 0; c < k->dp; c += SN_LANES) vf_store(to + c, c < d ? load_values(src, view->dtype, c, d) : vf_zero());
#endif
  }
  memset(dst + n * units, 0, (size_t)((padded - n) * units) * sizeof *dst);
}

/* b = the transpose of rows (n, dp): reductions over channels. n is a multiple of SN_LANES. */
static void pack_transposed(const kernel *k, packed_b *b, const unit *rows, int64_t n) {
  const int64_t units = k->dp / PER_UNIT;
  b->k = units;
  b->n = n;
  for (int64_t r = 0; r < n; r += SN_LANES) {
    int64_t panel = r / SN_PANEL * SN_PANEL, width = panel_width(b, panel);
    unit *to = b->data + panel * units + (r - panel);
    for (int64_t u = 0; u < units; u += SN_LANES) transpose_block(to + u * width, width, rows + r * units + u, units);
  }
}

#if SN_PAIRS
/* Two rows of 32 bf16 values become 32 units (row 0, row 1). */
SN_INLINE void interleave(unit *dst, const unit *row_0, const unit *row_1) {
#if defined(__AVX512BW__)
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37, 5, 36,
                                       4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
  __m512i a = (__m512i)vf_load(row_0), b = (__m512i)vf_load(row_1);
  vf_store(dst, (vf)_mm512_permutex2var_epi16(a, low, b));
  vf_store(dst + 16, (vf)_mm512_permutex2var_epi16(a, high, b));
#else
  uint16_t a[2 * SN_LANES], b[2 * SN_LANES], mixed[4 * SN_LANES];
  memcpy(a, row_0, sizeof a);
  memcpy(b, row_1, sizeof b);
  for (int i = 0; i < 2 * SN_LANES; i++) {
    mixed[2 * i] = a[i];
    mixed[2 * i + 1] = b[i];
  }
  memcpy(dst, mixed, sizeof mixed);
#endif
}
#endif

/* b = rows (n, dp) for reductions over rows; n is a multiple of PER_UNIT. */
static void pack_reduced(const kernel *k, packed_b *b, const unit *rows, int64_t n) {
  b->k = n / PER_UNIT;
  b->n = k->dp;
  for (int64_t c = 0; c < k->dp; c += D_STEP) {
    int64_t panel = c / SN_PANEL * SN_PANEL, width = panel_width(b, panel);
    unit *to = b->data + panel * b->k + (c - panel);
#if SN_PAIRS
    const int64_t units = k->dp / 2;
    for (int64_t r = 0; r < n / 2; r++)
      interleave(to + r * width, rows + 2 * r * units + c / 2, rows + (2 * r + 1) * units + c / 2);
#else
    for (int64_t r = 0; r < n; r++) vf_store(to + r * width, vf_load(rows + r * k->dp + c));
#endif
  }
}

/* Writes n rows of fp32 sums (dp) times factor[i] (NULL: 1) to one head's columns. */
static void store_rows(const kernel *k, const sn_attention_view *view, int64_t head, int64_t row, int64_t n,
                       const float *sums, const float *factor) {
  const int64_t d = k->d;
  for (int64_t i = 0; i < n; i++) {
    void *to = (void *)at_row(view, row + i, head * d);
    vf f = vf_set1(factor != NULL ? factor[i] : 1.0f);
    ask_for_next(k, view, head, row + i, n, view->rows - 1, true);
    for (int64_t c = 0; c < d; c += SN_LANES) {
      vf x = vf_load(sums + i * k->dp + c) * f;
      if (view->acc) x += load_values(to, view->dtype, c, d);
      int64_t left = d - c < SN_LANES ? d - c : SN_LANES;
      if (view->dtype == SN_BF16) {
        uint16_t part[SN_LANES];
        uint16_t *y = (uint16_t *)to + c;
        vf_store_bf16(left == SN_LANES ? y : part, x);
        if (left < SN_LANES) memcpy(y, part, (size_t)left * sizeof *y);
      } else {
        float *y = (float *)to + c;
        if (left == SN_LANES) vf_store(y, x);
        else memcpy(y, &x, (size_t)left * sizeof *y);
      }
    }
  }
}

/* --- forward ------------------------------------------------------------------------------------------------------- */

/* Keys of the block (from key k0) that row i of the segment sees, out of n. */
static int64_t visible(const kernel *k, int64_t i, int64_t k0, int64_t n) {
  if (!k->plan->attr->causal) return n;
  int64_t seen = i + 1 - k0;
  return seen < 0 ? 0 : seen < n ? seen : n;
}

static void hide(float *s, int64_t from, int64_t to) {
  for (int64_t j = from; j < to; j++) s[j] = -INFINITY;
}

/* Scores of a query block become probabilities exp(s - running maximum); sums of earlier key blocks are rescaled. */
static void softmax_block(const kernel *k, int64_t q, int64_t rows, int64_t k0, int64_t n, int64_t padded, float *sums,
                          float *largest, float *total) {
  for (int64_t i = 0; i < rows; i++) {
    float *s = k->s + i * k->lds;
    hide(s, visible(k, q + i, k0, n), padded);
    vf m = vf_load(s);
    for (int64_t c = SN_LANES; c < padded; c += SN_LANES) m = vf_max(m, vf_load(s + c));
    float top = vf_largest(m) * k->scale2;
    if (k0 > 0 && top < largest[i]) top = largest[i];
    vf sum = vf_zero(), shift = vf_set1(-top), scale2 = vf_set1(k->scale2);
    for (int64_t c = 0; c < padded; c += SN_LANES) {
      vf p = vf_exp2(vf_fma(vf_load(s + c), scale2, shift), SN_PAIRS);
      sum += p;
#if SN_PAIRS
      vf_store_bf16((uint16_t *)(k->p_rows + i * k->ldp) + c, p);
#else
      vf_store(s + c, p);
#endif
    }
    float add = vf_sum(sum);
    if (k0 == 0) {
      total[i] = add;
    } else {
      float shrink = exp2f(largest[i] - top);
      total[i] = total[i] * shrink + add;
      float *row = sums + i * k->dp;
      for (int64_t c = 0; shrink != 1 && c < k->dp; c += SN_LANES) vf_store(row + c, vf_load(row + c) * vf_set1(shrink));
    }
    largest[i] = top;
  }
}

static void finish_rows(const kernel *k, const sn_attention_item *item, int64_t q, int64_t rows, const float *sums,
                        const float *largest, const float *total) {
  const sn_attention_plan *plan = k->plan;
  float factor[Q_BLOCK];
  int64_t row = plan->attr->q_offsets[item->segment] + q;
  for (int64_t i = 0; i < rows; i++) factor[i] = 1 / total[i];
  store_rows(k, &plan->out, item->head, row, rows, sums, factor);
  if (plan->lse.data == NULL) return;
  float *lse = (float *)plan->lse.data + row * plan->n_heads + item->head;
  for (int64_t i = 0; i < rows; i++) lse[i * plan->n_heads] = (largest[i] + log2f(total[i])) * LN_2;
}

/* All but a causal piece with values that are not finite: 0 * NaN of a hidden key would spread. */
static bool needs_reference(const kernel *k, const sn_attention_item *item) {
  const sn_attention_plan *plan = k->plan;
  const sn_attention_attr *attr = plan->attr;
  if (!attr->causal) return false;
  int64_t column = item->head * k->d, q0 = attr->q_offsets[item->segment], k0 = attr->kv_offsets[item->segment];
  bool finite = sn_attention_all_finite(&plan->q, column, k->d, q0 + item->q_begin, q0 + item->q_end) &&
                sn_attention_all_finite(&plan->k, column, k->d, k0 + item->k_begin, k0 + item->k_end) &&
                sn_attention_all_finite(&plan->v, column, k->d, k0 + item->k_begin, k0 + item->k_end);
  if (finite && plan->backward)
    finite = sn_attention_all_finite(&plan->dout, column, k->d, q0 + item->q_begin, q0 + item->q_end) &&
             sn_attention_all_finite(&plan->out, column, k->d, q0 + item->q_begin, q0 + item->q_end);
  return !finite;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void forward_item(void *user, const sn_attention_item *item) {
  kernel *k = user;
  const sn_attention_plan *plan = k->plan;
  const bool causal = plan->attr->causal;
  if (needs_reference(k, item)) {
    sn_attention_reference_forward(plan, item, k->reference);
    return;
  }
  const int64_t q_row = plan->attr->q_offsets[item->segment], k_row = plan->attr->kv_offsets[item->segment];
  const int64_t n_keys = item->k_end, block = sn_attention_key_block(&k->cut, n_keys), units = k->dp / PER_UNIT;
  for (int64_t k0 = 0; k0 < n_keys && !(causal && k0 >= item->q_end); k0 += block) {
    int64_t keys = least(block, n_keys - k0), padded = round_up(keys, KEY_STEP);
    pack_rows(k, k->rows, &plan->k, item->head, k_row + k0, keys, padded);
    pack_transposed(k, &k->kt, k->rows, padded);
    pack_rows(k, k->rows, &plan->v, item->head, k_row + k0, keys, padded);
    pack_reduced(k, &k->kv, k->rows, padded);
    for (int64_t q = item->q_begin; q < item->q_end; q += Q_BLOCK) {
      int64_t rows = least(Q_BLOCK, item->q_end - q), seen = visible(k, q + rows - 1, k0, keys);
      if (seen == 0) continue;
      int64_t width = round_up(seen, KEY_STEP), at = q - item->q_begin;
      float *sums = k->sums + at * k->dp;
      pack_rows(k, k->q, &plan->q, item->head, q_row + q, rows, round_up(rows, ROW_STEP));
      int64_t m = SN_TILES ? round_up(rows, 16) : rows;
      gemm(m, width, units, (strided_a){k->q, units, 1}, &k->kt, k->s, k->lds, false);
      softmax_block(k, q, rows, k0, seen, width, sums, k->largest + at, k->total + at);
      strided_a p = SN_PAIRS ? (strided_a){k->p_rows, k->ldp, 1} : (strided_a){k->s, k->lds, 1};
      gemm(m, k->dp, SN_TILES ? width / 2 : (seen + PER_UNIT - 1) / PER_UNIT, p, &k->kv, sums, k->dp, k0 > 0);
      int64_t last = causal ? least(n_keys, q + rows) : n_keys;
      if (k0 + keys >= last) finish_rows(k, item, q, rows, sums, k->largest + at, k->total + at);
    }
  }
}

/* --- backward ------------------------------------------------------------------------------------------------------ */

#if SN_PAIRS
/* Units (even, odd), both rounded. */
SN_INLINE void store_pairs(unit *dst, vf even, vf odd) {
#if defined(__AVX512BF16__)
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5,
                                         20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)odd, (__m512)even);
  vf_store(dst, (vf)_mm512_permutexvar_epi16(order, both));
#else
  uint16_t a[SN_LANES], b[SN_LANES], mixed[2 * SN_LANES];
  vf_store_bf16(a, even);
  vf_store_bf16(b, odd);
  for (int i = 0; i < SN_LANES; i++) {
    mixed[2 * i] = a[i];
    mixed[2 * i + 1] = b[i];
  }
  memcpy(dst, mixed, sizeof mixed);
#endif
}
#endif

/* What a row of the block needs beside its scores. */
typedef struct row_terms {
  float shift[Q_BLOCK]; /* -lse * log2(e) */
  float delta[Q_BLOCK]; /* D_i = sum_d dout * out */
} row_terms;

static void read_terms(const kernel *k, int64_t head, int64_t row, int64_t rows, row_terms *terms) {
  const sn_attention_plan *plan = k->plan;
  const float *lse = (const float *)plan->lse.data + row * plan->n_heads + head;
  for (int64_t i = 0; i < rows; i++) {
    const void *out = at_row(&plan->out, row + i, head * k->d), *dout = at_row(&plan->dout, row + i, head * k->d);
    vf sum = vf_zero();
    for (int64_t c = 0; c < k->d; c += SN_LANES)
      sum = vf_fma(load_values(out, plan->out.dtype, c, k->d), load_values(dout, plan->dout.dtype, c, k->d), sum);
    terms->delta[i] = vf_sum(sum);
    terms->shift[i] = -lse[i * plan->n_heads] * LOG2_E;
  }
}

/* P and dS of one row and vector. */
SN_INLINE vf gradient_of_score(const kernel *k, const row_terms *terms, int64_t i, int64_t c, vf *ds) {
  vf s = vf_load(k->s + i * k->lds + c), dp = vf_load(k->ds + i * k->lds + c);
  vf p = vf_exp2(vf_fma(s, vf_set1(k->scale2), vf_set1(terms->shift[i])), SN_PAIRS);
  *ds = p * (dp - vf_set1(terms->delta[i])) * vf_set1(k->scale);
  return p;
}

/* S and dP of a query block become P and dS, in the layouts that the products want. */
static void softmax_backward_block(const kernel *k, int64_t q, int64_t rows, int64_t k0, int64_t n, int64_t padded,
                                   const row_terms *terms) {
  for (int64_t i = 0; i < rows; i++) hide(k->s + i * k->lds, visible(k, q + i, k0, n), padded);
#if SN_PAIRS
  int64_t even = rows / 2 * 2;
  for (int64_t i = 0; i < even; i += 2)
    for (int64_t c = 0; c < padded; c += SN_LANES) {
      vf ds0, ds1, p0 = gradient_of_score(k, terms, i, c, &ds0), p1 = gradient_of_score(k, terms, i + 1, c, &ds1);
      vf_store_bf16((uint16_t *)(k->p_rows + i * k->ldp) + c, ds0);
      vf_store_bf16((uint16_t *)(k->p_rows + (i + 1) * k->ldp) + c, ds1);
      store_pairs(k->p_pairs + i / 2 * k->lds + c, p0, p1);
      store_pairs(k->ds_pairs + i / 2 * k->lds + c, ds0, ds1);
    }
  for (int64_t c = 0; even < rows && c < padded; c += SN_LANES) {
    vf ds0, p0 = gradient_of_score(k, terms, even, c, &ds0);
    vf_store_bf16((uint16_t *)(k->p_rows + even * k->ldp) + c, ds0);
    store_pairs(k->p_pairs + even / 2 * k->lds + c, p0, vf_zero());
    store_pairs(k->ds_pairs + even / 2 * k->lds + c, ds0, vf_zero());
  }
  for (int64_t i = (rows + 1) / 2; i < round_up(rows, ROW_STEP) / 2; i++) {
    memset(k->p_pairs + i * k->lds, 0, (size_t)padded * sizeof *k->p_pairs);
    memset(k->ds_pairs + i * k->lds, 0, (size_t)padded * sizeof *k->ds_pairs);
  }
#else
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < padded; c += SN_LANES) {
      vf ds, p = gradient_of_score(k, terms, i, c, &ds);
      vf_store(k->s + i * k->lds + c, p);
      vf_store(k->ds + i * k->lds + c, ds);
    }
#endif
}

/* sums (keys, dp) [acc] or [out] = the transpose of weights (rows, keys) times b (rows, dp). */
static void gemm_over_queries(const kernel *k, int64_t keys, int64_t rows, const unit *weights, const packed_b *b,
                              float *sums, bool acc) {
#if SN_TILES
  int64_t units = round_up(rows, ROW_STEP) / 2, width = round_up(keys, KEY_STEP), ld = Q_BLOCK / 2 + GAP;
  for (int64_t u = 0; u < units; u += SN_LANES)
    for (int64_t j = 0; j < width; j += SN_LANES)
      transpose_block(k->turned + j * ld + u, ld, weights + u * k->lds + j, k->lds);
  gemm(width, k->dp, units, (strided_a){k->turned, ld, 1}, b, sums, k->dp, acc);
#else
  gemm(keys, k->dp, round_up(rows, ROW_STEP) / PER_UNIT, (strided_a){weights, 1, k->lds}, b, sums, k->dp, acc);
#endif
}

/* One query block against the packed key block; `fresh` key sums are overwritten. */
static void backward_block(kernel *k, const sn_attention_item *item, int64_t q, int64_t rows, int64_t k0, int64_t keys,
                           bool fresh) {
  const sn_attention_plan *plan = k->plan;
  const int64_t units = k->dp / PER_UNIT, row = plan->attr->q_offsets[item->segment] + q, at = q - item->q_begin;
  const int64_t m = SN_TILES ? round_up(rows, 16) : rows, padded_rows = round_up(rows, ROW_STEP);
  const int64_t seen = visible(k, q + rows - 1, k0, keys), width = round_up(seen, KEY_STEP);
  row_terms terms;
  read_terms(k, item->head, row, rows, &terms);
  pack_rows(k, k->q, &plan->q, item->head, row, rows, padded_rows);
  pack_rows(k, k->dout, &plan->dout, item->head, row, rows, padded_rows);
  gemm(m, width, units, (strided_a){k->q, units, 1}, &k->kt, k->s, k->lds, false);
  gemm(m, width, units, (strided_a){k->dout, units, 1}, &k->vt, k->ds, k->lds, false);
  softmax_backward_block(k, q, rows, k0, seen, width, &terms);
  if (item->want_dkv) {
    pack_reduced(k, &k->doutb, k->dout, padded_rows);
    pack_reduced(k, &k->qb, k->q, padded_rows);
    gemm_over_queries(k, seen, rows, SN_PAIRS ? k->p_pairs : k->s, &k->doutb, k->dv, !fresh);
    gemm_over_queries(k, seen, rows, SN_PAIRS ? k->ds_pairs : k->ds, &k->qb, k->dk, !fresh);
  }
  if (item->want_dq) {
    strided_a ds = SN_PAIRS ? (strided_a){k->p_rows, k->ldp, 1} : (strided_a){k->ds, k->lds, 1};
    gemm(m, k->dp, SN_TILES ? width / 2 : (seen + PER_UNIT - 1) / PER_UNIT, ds, &k->kv, k->sums + at * k->dp, k->dp, k0 > 0);
  }
}

static void backward_item(void *user, const sn_attention_item *item) {
  kernel *k = user;
  const sn_attention_plan *plan = k->plan;
  const bool causal = plan->attr->causal;
  if (needs_reference(k, item)) {
    sn_attention_reference_backward(plan, item, k->reference);
    return;
  }
  const int64_t k_row = plan->attr->kv_offsets[item->segment];
  const int64_t block = sn_attention_key_block(&k->cut, sn_attention_n_keys(plan->attr, item->segment));
  for (int64_t k0 = item->k_begin; k0 < item->k_end; k0 += block) {
    int64_t keys = least(block, item->k_end - k0), padded = round_up(keys, KEY_STEP);
    pack_rows(k, k->rows, &plan->v, item->head, k_row + k0, keys, padded);
    pack_transposed(k, &k->vt, k->rows, padded);
    pack_rows(k, k->rows, &plan->k, item->head, k_row + k0, keys, padded);
    pack_transposed(k, &k->kt, k->rows, padded);
    if (item->want_dq) pack_reduced(k, &k->kv, k->rows, padded);
    bool partly = causal; /* a first causal block may not reach all keys */
    if (item->want_dkv && partly) {
      memset(k->dk, 0, (size_t)(padded * k->dp) * sizeof *k->dk);
      memset(k->dv, 0, (size_t)(padded * k->dp) * sizeof *k->dv);
    }
    bool fresh = !partly;
    for (int64_t q = item->q_begin; q < item->q_end; q += Q_BLOCK) {
      int64_t rows = least(Q_BLOCK, item->q_end - q);
      if (visible(k, q + rows - 1, k0, keys) == 0) continue;
      backward_block(k, item, q, rows, k0, keys, fresh);
      fresh = false;
    }
    if (!item->want_dkv) continue;
    store_rows(k, &plan->dk, item->head, k_row + k0, keys, k->dk, NULL);
    store_rows(k, &plan->dv, item->head, k_row + k0, keys, k->dv, NULL);
  }
  if (item->want_dq)
    store_rows(k, &plan->dq, item->head, plan->attr->q_offsets[item->segment] + item->q_begin, item->q_end - item->q_begin,
               k->sums, NULL);
}

/* --- entry points -------------------------------------------------------------------------------------------------- */

static bool kernel_supports(const sn_device *device, sn_isa needs, const char *lacks, const sn_op_call *call,
                            const char **why) {
  sn_dtype dtype = call->in[0].dtype;
  if (device->isa < needs) *why = lacks;
  else if (SN_PAIRS && dtype != SN_BF16) *why = "takes bf16 tensors only";
  else if (dtype != SN_BF16 && dtype != SN_F32) *why = "takes fp32 and bf16 tensors only";
  else return true;
  return false;
}

static int64_t kernel_scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  sn_attention_plan plan = sn_attention_read(call, backward);
  sn_attention_cut cut = best_cut(&plan, device->n_threads);
  kernel k;
  return device->n_threads * lay_out(&k, &plan, &cut, NULL);
}

static void run(sn_device *device, const sn_op_call *call, const sn_attention_plan *plan, sn_attention_body body) {
  sn_attention_cut cut = best_cut(plan, device->n_threads);
  sn_attention_fill_rest(call, plan);
#pragma omp parallel num_threads(device->n_threads)
  {
    kernel k;
    int64_t size = lay_out(&k, plan, &cut, NULL);
    lay_out(&k, plan, &cut, (char *)call->scratch + size * omp_get_thread_num());
    SN_BEGIN_THREAD();
    sn_attention_each(plan, &cut, omp_get_thread_num(), omp_get_num_threads(), body, &k);
    SN_END_THREAD();
  }
}

static sn_status kernel_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_attention_plan plan = sn_attention_read(call, false);
  run(device, call, &plan, forward_item);
  return SN_OK;
}

static sn_status kernel_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (call->dout[0].data == NULL) {
    sn_attention_fill_zero(call);
    return SN_OK;
  }
  sn_attention_plan plan = sn_attention_read(call, true);
  run(device, call, &plan, backward_item);
  return SN_OK;
}

#endif
