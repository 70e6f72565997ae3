/* head_norm: normalisation of each head's channels (QK-norm), out of place.
 *
 * For each group g (q, k) and each of its H heads, over the D channels x of one head of one row:
 *     RMS:    y = x * r * gain_g,           r = 1 / sqrt(mean(x^2) + eps)
 *     LAYER:  y = (x - mean(x)) * r * gain_g,  r = 1 / sqrt(mean((x - mean(x))^2) + eps)
 * All other columns are copied.
 *
 * Inputs:  in[0] x (T, W); in[1] gain of group 0 (D); in[2] gain of group 1 (D), absent when n_groups is 1.
 * Output:  out[0] [out] (T, W), dtype of x. Gradients: din[0] [out] / [acc] (T, W), din[1], din[2] [out] / [acc] (D).
 * Numerics: statistics and products in fp32 (fp64 in the reference), sums over channels in 16 interleaved parts; gradients
 * of the gains are summed over the heads of a row in fp32, then in fp64 over fixed blocks of 64 rows and over the blocks in
 * order, so that they do not depend on the number of threads. Nothing is saved: backward computes the statistics again.
 * Errors: SN_E_ARGUMENT for columns that leave the rows or overlap, eps < 0, sizes.
 * Sources: A. Henry et al., "Query-key normalization for transformers", 2020; M. Dehghani et al., "Scaling vision
 * transformers to 22 billion parameters", 2023, section 2. */
#ifndef SN_KERNELS_HEAD_NORM_H
#define SN_KERNELS_HEAD_NORM_H

#include "kernels/tape.h"

typedef enum sn_head_norm_kind { SN_HEAD_NORM_RMS, SN_HEAD_NORM_LAYER } sn_head_norm_kind;

enum { SN_HEAD_NORM_MAX_GROUPS = 2 };

typedef struct sn_head_norm_attr {
  int64_t n_heads, head_dim;                  /* H, D */
  int64_t n_groups;                           /* 1 or 2 */
  int64_t column[SN_HEAD_NORM_MAX_GROUPS];    /* first column of each group; fused qkv: 0, C */
  sn_head_norm_kind kind;
  double eps;
} sn_head_norm_attr;

extern const sn_op sn_op_head_norm;

/* gain_1 NULL when attr->n_groups is 1. */
SN_MUST_CHECK sn_status sn_head_norm(sn_tape *tape, sn_value **out, sn_value *x, sn_value *gain_0, sn_value *gain_1,
                                     const sn_head_norm_attr *attr, sn_error *err);

#endif
