/* Binary cross-entropy of logits, as a sum and a count.
 *
 *     l = max(x, 0) - x * z + log(1 + exp(-|x|));   sum = sum of l where mask;   count = how many these are
 *
 * x (logits) [in] any shape and floating type; z (target) [in] same shape, floating, usually in [0, 1], no gradient;
 * mask [in] same shape, U8, optional (absent: all). Where mask is 0, x and z may be anything.
 * sum, count [out] scalars, F64. Backward: dx = dsum * (1 / (1 + exp(-x)) - z).
 * Numerics: double throughout, blocks of 16384 elements. */
#ifndef SN_KERNELS_BCE_LOGITS_H
#define SN_KERNELS_BCE_LOGITS_H

#include "kernels/tape.h"

extern const sn_op sn_op_bce_logits;
extern const sn_op_impl sn_bce_logits_cpu, sn_bce_logits_ref;

/* out[0] = sum, out[1] = count; mask may be NULL. */
SN_MUST_CHECK sn_status sn_bce_logits(sn_tape *tape, sn_value *out[2], sn_value *logits, sn_value *target, sn_value *mask,
                                      sn_error *err);

#endif
