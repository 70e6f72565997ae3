/* attention: multi-head scaled dot-product attention over packed segments.
 *
 *   for every segment s, head h, query row i and key row j of that segment (causal: j - kv_offsets[s] <= i - q_offsets[s]):
 *     a_ij   = scale * sum_d q[i, q_column + h D + d] * k[j, k_column + h D + d]
 *     lse_i  = log sum_j exp(a_ij)
 *     out[i, h D + d] = sum_j exp(a_ij - lse_i) * v[j, v_column + h D + d]
 *
 * Inputs:  in[0] q source (Tq, Wq); in[1] k and v source (Tk, Wkv), absent: k and v come from in[0] and Tk = Tq. Both of
 *          one dtype.
 * Outputs: out[0] [out] (Tq, H D), dtype of in[0]; saved[0] [out] lse (Tq, H), fp32 (fp64 for fp64 inputs).
 * Gradient: [out] / [acc] for every column of a source: columns that are no q, k or v have gradient 0.
 *
 * Segments: query rows q_offsets[s] .. q_offsets[s+1]-1 see exactly the key rows kv_offsets[s] .. kv_offsets[s+1]-1.
 * Rows before the first and after the last segment (the rounded-up end of a pack) get output 0, lse 0 and gradient 0, and
 * so does a query whose segment has no keys. What stands outside a segment never touches its results, NaN included; in a
 * causal segment the same holds for what stands after a row.
 *
 * Numerics: scores, softmax, lse and accumulation in fp32 for fp32 and bf16 tensors (bf16 products take probabilities and
 * their gradients rounded to bf16), in fp64 in the reference. Memory beyond the tensors is linear in the longest segment:
 * backward computes probabilities again from lse. Every sum is taken in an order fixed by the shapes, so results do not
 * depend on the number of threads, except that backward may choose between two orders of work by it; both give the same
 * bits.
 *
 * Errors: SN_E_ARGUMENT for sizes, columns that do not fit or overlap, offsets that fall or leave the rows, a negative or
 * non-finite scale.
 *
 * Sources: A. Vaswani et al., "Attention is all you need", 2017, eq. 1; T. Dao, "FlashAttention-2", 2023, section 3 (tiling,
 * log-sum-exp, D_i = rowsum(dout * out)). */
#ifndef SN_KERNELS_ATTENTION_H
#define SN_KERNELS_ATTENTION_H

#include "kernels/tape.h"

typedef struct sn_attention_attr {
  int64_t n_heads;                         /* H */
  int64_t head_dim;                        /* D */
  int64_t q_column, k_column, v_column;    /* first column of each in its source; fused qkv: 0, C, 2C */
  double scale;                            /* 0: 1/sqrt(D) */
  bool causal;
  int64_t n_segments;
  const int64_t *q_offsets, *kv_offsets;   /* n_segments + 1 each, never falling; may be the same list (borrowed) */
} sn_attention_attr;

extern const sn_op sn_op_attention;

/* kv may be NULL. The offset lists must live until the tape is reset. */
SN_MUST_CHECK sn_status sn_attention(sn_tape *tape, sn_value **out, sn_value *q, sn_value *kv,
                                     const sn_attention_attr *attr, sn_error *err);

#endif
