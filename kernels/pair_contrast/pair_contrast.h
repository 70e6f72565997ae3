/* InfoNCE with soft targets between the rows of two matrices (objectives O8, O9, O20; signals S5):
 *
 *     l[i,j] = t * (za[i] . zb[j]),   t = scale * exp(log_scale)   (log_scale absent: t = scale = 1 / temperature)
 *     sum    = sum over i, j with weight[i,j] >= 0 of weight[i,j] * (logsumexp over k with weight[i,k] >= 0 of l[i,k] - l[i,j])
 *     total  = sum of the weights that are not below 0
 *
 * za        [in]  (na, d), zb [in] (nb, d), one floating type; they may be the same value (both gradients then add)
 * weight    [in]  (na, nb) F32 or F64 (cpu: taken as fp32), no gradient.  One number says all of a pair:
 *                   above 0   the pair is a target with this weight;
 *                   0         column j is in the denominator of row i and no target;
 *                   below 0   the pair is excluded: it is in no sum, its logit has no gradient.
 *                 NaN and infinity above 0 are SN_E_ARGUMENT, naming the place.  A row with everything excluded takes no part.
 *                 Rows of za and zb that are excluded everywhere must still hold finite numbers (their products are formed).
 * log_scale [in]  (1), optional, with gradient
 * sum, total [out] scalars, F64; total depends on no input that has a gradient
 * saved: the logits, and the largest logit and log of the sum of exp(l - largest) of each row, F32 (F64 when za is F64).
 *
 * Backward: dl[i,j] = dsum * (W[i] * softmax(l[i])[j] - weight[i,j]), W[i] = the row's total weight; dza = t dl zb,
 * dzb = t dlᵀ za, dlog_scale = sum of dl * l.
 * Numerics (cpu): products in fp32 (kernels/gemm), the largest logit is taken out before exp, sums of a row joined in double
 * from chunks of 1024.  Memory: logits saved once, their gradient in scratch: 16 MB each at 2048 x 2048.
 *
 * HOW THE NAMED LOSSES ARE WRITTEN (rows are already of length one; the caller divides):
 *   ntxent_mean  za = zb = all 2N rows, weight 1 at the other view, -1 at the row itself, else 0; sum / 2N.
 *   simclr_tf    the same; sum / N.
 *   CLIP         (za, zb) with weight 1 at partners, and again (zb, za) with the transpose; (sum / N + sum / N) / 2.
 *                Rows without a partner: -1 in their row and in their column.
 *   CMSC         as CLIP with weight 1 wherever the subjects agree; sum / total.  The original's four means are four calls
 *                that differ in which of these pairs weigh 1.
 *   continuous label  weight[i,j] = K(y_i - y_j) / sum over k != i of K, -1 on the diagonal.
 *   queue        zb = rows of this step, then rows of the bank as an input without gradient (kernels/place_rows joins them). */
#ifndef SN_KERNELS_PAIR_CONTRAST_H
#define SN_KERNELS_PAIR_CONTRAST_H

#include "kernels/tape.h"

typedef struct sn_pair_contrast_attr {
  double scale; /* finite, above 0; 1 where log_scale says all */
} sn_pair_contrast_attr;

extern const sn_op sn_op_pair_contrast;
extern const sn_op_impl sn_pair_contrast_cpu, sn_pair_contrast_ref;

/* out[0] = sum, out[1] = total; log_scale may be NULL. */
SN_MUST_CHECK sn_status sn_pair_contrast(sn_tape *tape, sn_value *out[2], sn_value *za, sn_value *zb, sn_value *weight,
                                         sn_value *log_scale, double scale, sn_error *err);

/* For implementations: SN_E_ARGUMENT for the weight at `place` (row-major index). */
sn_status sn_pair_contrast_bad_weight(const sn_op_call *call, int64_t place, sn_error *err);

#endif
