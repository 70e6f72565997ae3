/* Attention of one block under a pattern (encoders/pattern.h): gathers by index lists, the packed-attention kernel, and the
 * way back. */
#ifndef SN_ENCODERS_PATTERN_ATTENTION_H
#define SN_ENCODERS_PATTERN_ATTENTION_H

#include "encoders/pattern.h"
#include "kernels/tape.h"

/* out (n_rows, C) = attention over qkv (n_rows, 3C: q, k, v side by side). block: number of the block, which decides the
 * pattern where blocks take turns. */
SN_MUST_CHECK sn_status sn_pattern_attention(sn_tape *tape, sn_value **out, sn_value *qkv, const sn_patterns *patterns,
                                             int64_t block, int64_t n_heads, int64_t head_dim, sn_error *err);

#endif
