/* A cross-attention block: queries look at keys of their segment, then a feed-forward part, both pre-norm.
 *
 *   z = q + W_o attention(W_q norm_q(q), W_kv norm_kv(x));  y = z + mlp(norm(z))
 *
 * Cost is (queries of a segment) x (keys of it): with a fixed number of queries, linear in the keys.
 * Parameters: prefix.norm_q, .norm_kv, .q, .kv, .proj, .norm, .mlp.fc1, .mlp.fc2, each .weight and .bias.
 * Source: Jaegle et al., "Perceiver", 2021; over channels: Xiao et al., BrainOmni, 2025; Doner et al., LUNA, 2025. */
#ifndef SN_ENCODERS_CROSS_BLOCK_H
#define SN_ENCODERS_CROSS_BLOCK_H

#include "kernels/tape.h"

typedef struct sn_cross_options {
  const char *prefix;
  int64_t width, heads;
  double mlp_ratio, norm_eps;
  int64_t layer; /* depth id, for layer-wise decay */
} sn_cross_options;

typedef struct sn_cross_block sn_cross_block;

/* SN_E_ARGUMENT: a width that is no multiple of heads. */
SN_MUST_CHECK sn_status sn_cross_block_create(sn_params *params, const sn_cross_options *options, sn_cross_block **out,
                                              sn_error *err);
void sn_cross_block_destroy(sn_cross_block *block); /* accepts NULL */

/* q (n_queries, C), x (n_rows, C), both residual; keys (n_keys): rows of x in the order of segments, -2 beyond (NULL: x as
 * it stands). y (n_queries, C) [out], residual. A query whose segment has no keys gets nothing from attention. Lists are
 * borrowed until the tape is reset. */
typedef struct sn_cross_rows {
  int64_t n_segments;
  const int64_t *query_offsets, *key_offsets; /* (n_segments + 1) */
  const int32_t *keys;
  int64_t n_keys;
} sn_cross_rows;
SN_MUST_CHECK sn_status sn_cross_block_forward(sn_tape *tape, sn_value **y, const sn_cross_block *block, sn_value *q,
                                               sn_value *x, const sn_cross_rows *rows, sn_error *err);

#endif
