#include "encoders/pattern_attention.h"

#include "kernels/attention/attention.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/place_rows/place_rows.h"

/* What is put together at the end. */
typedef struct pieces {
  sn_value *values[SN_PLACE_SOURCES];
  sn_place_rows_attr place;
} pieces;

static void add_piece(pieces *p, sn_value *value, const int32_t *index, int64_t column) {
  const int i = p->place.n_sources++;
  p->values[i] = value;
  p->place.index[i] = index;
  p->place.column[i] = column;
}

/* Heads first_head .. first_head + n_heads - 1 by one grouping. */
static sn_status attend(sn_tape *tape, pieces *p, sn_value *qkv, const sn_pattern *pattern, int64_t first_head,
                        int64_t n_heads, int64_t head_dim, int64_t width, sn_error *err) {
  const int64_t from = first_head * head_dim, to = from + n_heads * head_dim, part = to - from;
  const int64_t begin[3] = {from, width + from, 2 * width + from}, end[3] = {to, width + to, 2 * width + to};
  sn_attention_attr attr = {.n_heads = n_heads, .head_dim = head_dim, .n_segments = pattern->n_segments,
                            .q_offsets = pattern->query_offsets};
  sn_value *q, *kv = NULL, *out;
  if (pattern->keys == NULL) {
    attr.k_column = part;
    attr.v_column = 2 * part;
    attr.kv_offsets = pattern->query_offsets;
    SN_TRY(sn_gather_spans(tape, &q, qkv, pattern->queries, pattern->n_queries, 3, begin, end, err));
  } else {
    attr.v_column = part;
    attr.kv_offsets = pattern->key_offsets;
    SN_TRY(sn_gather_spans(tape, &q, qkv, pattern->queries, pattern->n_queries, 1, begin, end, err));
    SN_TRY(sn_gather_spans(tape, &kv, qkv, pattern->keys, pattern->n_keys, 2, begin + 1, end + 1, err));
  }
  SN_TRY(sn_attention(tape, &out, q, kv, &attr, err));
  add_piece(p, out, pattern->queries, from);
  return SN_OK;
}

/* The special rows look at their whole sample, with all heads. */
static sn_status attend_special(sn_tape *tape, pieces *p, sn_value *qkv, const sn_patterns *patterns, int64_t n_heads,
                                int64_t head_dim, sn_error *err) {
  const int64_t width = n_heads * head_dim, begin = 0;
  sn_attention_attr attr = {.n_heads = n_heads, .head_dim = head_dim, .k_column = width, .v_column = 2 * width,
                            .n_segments = patterns->n_samples, .q_offsets = patterns->special_offsets,
                            .kv_offsets = patterns->offsets};
  sn_value *q, *out;
  SN_TRY(sn_gather_spans(tape, &q, qkv, patterns->special, patterns->n_special, 1, &begin, &width, err));
  SN_TRY(sn_attention(tape, &out, q, qkv, &attr, err));
  add_piece(p, out, patterns->special, 0);
  return SN_OK;
}

sn_status sn_pattern_attention(sn_tape *tape, sn_value **out, sn_value *qkv, const sn_patterns *patterns, int64_t block,
                               int64_t n_heads, int64_t head_dim, sn_error *err) {
  const int64_t width = n_heads * head_dim;
  pieces p = {.place = {.n_out = qkv->tensor.shape[0], .columns = width}};
  if (patterns->options.kind == SN_ATTEND_CRISSCROSS && patterns->options.split_heads) {
    const int64_t along_time = (n_heads + 1) / 2;
    SN_TRY(attend(tape, &p, qkv, &patterns->patterns[0], 0, along_time, head_dim, width, err));
    SN_TRY(attend(tape, &p, qkv, &patterns->patterns[1], along_time, n_heads - along_time, head_dim, width, err));
  } else {
    SN_TRY(attend(tape, &p, qkv, &patterns->patterns[block % patterns->n_patterns], 0, n_heads, head_dim, width, err));
  }
  if (patterns->n_special > 0) SN_TRY(attend_special(tape, &p, qkv, patterns, n_heads, head_dim, err));
  return sn_place_rows(tape, out, p.values, &p.place, err);
}
