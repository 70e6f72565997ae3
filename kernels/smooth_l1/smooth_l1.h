/* Smooth-L1 (Huber) loss between two tensors, as a sum and a count (objectives O5: beta 1).
 *
 *     l(d) = d*d / (2 beta) where |d| < beta, else |d| - beta/2,   d = x - z
 *     sum = sum of l where mask;   count = how many these are
 *
 * x [in] any shape and floating type; z (target) [in] same shape, floating, no gradient; mask [in] same shape, U8, optional
 * (absent: all): where it is 0, x and z may be anything. beta > 0. sum, count [out] scalars, F64.
 * Backward: dx = dsum * l'(d). Numerics (cpu): l in fp32, chunks of 1024 joined in double, blocks of 16384 elements. */
#ifndef SN_KERNELS_SMOOTH_L1_H
#define SN_KERNELS_SMOOTH_L1_H

#include "kernels/tape.h"

typedef struct sn_smooth_l1_attr { double beta; } sn_smooth_l1_attr;

extern const sn_op sn_op_smooth_l1;
extern const sn_op_impl sn_smooth_l1_cpu, sn_smooth_l1_ref;

/* out[0] = sum, out[1] = count; mask may be NULL. */
SN_MUST_CHECK sn_status sn_smooth_l1(sn_tape *tape, sn_value *out[2], sn_value *x, sn_value *target, sn_value *mask,
                                     double beta, sn_error *err);

#endif
