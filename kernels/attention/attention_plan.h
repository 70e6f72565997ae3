/* What the implementations of attention share: how a call is read, how its work is cut, and the reference's inner part. */
#ifndef SN_KERNELS_ATTENTION_PLAN_H
#define SN_KERNELS_ATTENTION_PLAN_H

#include "kernels/attention/attention.h"

/* One head's columns of one tensor: element (row, d) stands at data + (row * stride + column + d) elements. */
typedef struct sn_attention_view {
  void *data; /* NULL: absent, not wanted */
  int64_t rows, stride, column;
  sn_dtype dtype;
  bool acc; /* gradients: add to what is there */
} sn_attention_view;

/* A call read once. The views are those of head 0; head h adds h * head_dim to the column. */
typedef struct sn_attention_plan {
  const sn_attention_attr *attr;
  int64_t n_heads, head_dim;
  double scale; /* resolved */
  bool backward;
  sn_attention_view q, k, v, out, dout, dq, dk, dv;
  sn_tensor lse; /* data NULL: not saved */
} sn_attention_plan;

sn_attention_plan sn_attention_read(const sn_op_call *call, bool backward);

static inline int64_t sn_attention_n_queries(const sn_attention_attr *attr, int64_t segment) {
  return attr->q_offsets[segment + 1] - attr->q_offsets[segment];
}
static inline int64_t sn_attention_n_keys(const sn_attention_attr *attr, int64_t segment) {
  return attr->kv_offsets[segment + 1] - attr->kv_offsets[segment];
}
int64_t sn_attention_longest_queries(const sn_attention_attr *attr);
int64_t sn_attention_longest_keys(const sn_attention_attr *attr);

/* One piece of work: a range of queries against a range of keys of one (segment, head); rows count from the segment's
 * first.  Forward: all keys.  Backward: writes dq of its queries (then the range holds all keys), dk and dv of its keys
 * (then it holds all queries), or both. No two pieces write the same element. */
typedef struct sn_attention_item {
  int64_t segment, head;
  int64_t q_begin, q_end, k_begin, k_end;
  bool want_dq, want_dkv;
} sn_attention_item;

/* How an implementation wants a call to be cut. */
typedef struct sn_attention_cut {
  int64_t q_rows;   /* queries of a piece (forward, and dq alone) */
  int64_t key_rows; /* most keys of a key block; blocks of a segment are of near equal length */
  int64_t key_step; /* block lengths are multiples of this */
  bool whole;       /* backward: one piece owns all of a (segment, head) */
} sn_attention_cut;

/* Length of the key blocks of a segment with n_keys keys: the same grid wherever the segment stands. */
int64_t sn_attention_key_block(const sn_attention_cut *cut, int64_t n_keys);

/* Whether whole (segment, head) pieces balance well enough on n_threads threads: they need 5 products where separate
 * passes for dq and for dk, dv need 7. */
bool sn_attention_whole_is_best(const sn_attention_plan *plan, const sn_attention_cut *cut, int64_t n_threads);

/* Calls body(user, item) for every piece of `thread`, in order. Pieces go to threads in contiguous stretches of near equal
 * cost: a function of shapes and n_threads alone. */
typedef void (*sn_attention_body)(void *user, const sn_attention_item *item);
void sn_attention_each(const sn_attention_plan *plan, const sn_attention_cut *cut, int64_t thread, int64_t n_threads,
                       sn_attention_body body, void *user);

/* Writes what no piece writes: zeros for rows outside segments, for queries without keys, for keys without queries, and
 * for columns of a source that are no q, k or v. Nothing where gradients are added. */
void sn_attention_fill_rest(const sn_op_call *call, const sn_attention_plan *plan);
/* dout is absent, that is zero: overwritten gradients become zero. */
void sn_attention_fill_zero(const sn_op_call *call);

/* True when all rows of a view in [begin, end) are finite. */
bool sn_attention_all_finite(const sn_attention_view *view, int64_t head_column, int64_t head_dim, int64_t begin,
                             int64_t end);

/* The reference for one piece, in fp64; scratch: sn_attention_reference_scratch bytes. Also what a fast implementation
 * runs for a causal piece that holds a value that is not finite: its masked products would spread 0 * NaN. */
int64_t sn_attention_reference_scratch(const sn_attention_attr *attr);
void sn_attention_reference_forward(const sn_attention_plan *plan, const sn_attention_item *item, double *scratch);
void sn_attention_reference_backward(const sn_attention_plan *plan, const sn_attention_item *item, double *scratch);

extern const sn_op_sample sn_attention_samples[];

extern const sn_op_impl sn_attention_ref;
#if defined(__x86_64__)
extern const sn_op_impl sn_attention_avx2, sn_attention_avx512, sn_attention_bf16, sn_attention_amx;
#endif

#endif
