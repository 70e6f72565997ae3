/* Reconstruction loss of patches: per token the mean over its valid values, summed over the tokens that carry a target.
 *
 *     loss[t] = (sum over p with valid[t,p] of l(pred[t,p] - target[t,p])) / n_valid[t]
 *     sum     = sum over t with weights[t] != 0 and n_valid[t] > 0 of weights[t] loss[t];   count = sum of these weights
 *
 *     SN_PATCH_L2   l(d) = d * d          SN_PATCH_L1   l(d) = |d|
 *     SN_PATCH_SMOOTH_L1   l(d) = d*d / (2 beta) where |d| < beta, else |d| - beta/2
 *
 * pred    [in]  (M, P)
 * target  [in]  (M, P) any floating type; no gradient
 * valid   [in]  (M, P) U8, not 0: measured; optional (absent: all). Values that are not valid are never looked at, they
 *               may be NaN.
 * weights [in]  (M) F32 or F64, 0: the token has no target; optional (absent: all 1). 1 / targets of the sample makes a mean
 *               over samples of a mean over tokens.
 * sum, count [out] scalars, F64. The mean over tokens is taken by the caller, over the whole batch (sums before means).
 *
 * Backward: dpred = dsum * l'(d) / n_valid, 0 where nothing counted. l'(0) = 0 for L1.
 * Numerics (cpu): l in fp32, each row's chunks of 1024 summed in fp32, all else in double; blocks of 32 rows. */
#ifndef SN_KERNELS_MASKED_PATCH_LOSS_H
#define SN_KERNELS_MASKED_PATCH_LOSS_H

#include "kernels/tape.h"

typedef enum sn_patch_loss { SN_PATCH_L2, SN_PATCH_L1, SN_PATCH_SMOOTH_L1 } sn_patch_loss;

typedef struct sn_masked_patch_loss_attr {
  sn_patch_loss kind;
  double beta; /* SN_PATCH_SMOOTH_L1 only: > 0 */
} sn_masked_patch_loss_attr;

extern const sn_op sn_op_masked_patch_loss;
extern const sn_op_impl sn_masked_patch_loss_cpu, sn_masked_patch_loss_ref;

/* "l2", "l1" or "smooth_l1": what settings call them. */
sn_patch_loss sn_patch_loss_named(const char *name);

/* out[0] = sum, out[1] = count; valid and weights may be NULL. */
SN_MUST_CHECK sn_status sn_masked_patch_loss(sn_tape *tape, sn_value *out[2], sn_value *pred, sn_value *target,
                                             sn_value *valid, sn_value *weights, sn_patch_loss kind, double beta,
                                             sn_error *err);

#endif
