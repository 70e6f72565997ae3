/* The dot product of a value with a constant of the same shape:
 *
 *     sum = sum over i of x[i] * weight[i]
 *
 * x [in] any shape and floating type; weight [in] same shape, floating, no gradient (a value of the tape that needs none);
 * sum [out] scalar, F64.
 * Backward: dx = dsum * weight: with dsum = 1 the gradient of x is `weight` itself, to the bit where the types agree. That is
 * how a gradient found elsewhere (batch-coupled losses: on gathered rows of all packs) enters a tape at the value x.
 * Numerics (cpu): products and sums in double, blocks of 16384 elements joined in their order. */
#ifndef SN_KERNELS_DOT_CONST_H
#define SN_KERNELS_DOT_CONST_H

#include "kernels/tape.h"

extern const sn_op sn_op_dot_const;
extern const sn_op_impl sn_dot_const_cpu, sn_dot_const_ref;

SN_MUST_CHECK sn_status sn_dot_const(sn_tape *tape, sn_value **sum, sn_value *x, sn_value *weight, sn_error *err);

#endif
