/* The sum of squares of all elements: one term of a gradient's norm. No gradient.
 *
 * x [in] any shape and floating type; out [out] scalar F64.
 * Numerics: squares and sums in double, blocks of 16384 elements joined in their order: the same bits for any number of
 * threads. Not finite when an element is not. */
#ifndef SN_KERNELS_SUM_SQUARES_H
#define SN_KERNELS_SUM_SQUARES_H

#include "kernels/op.h"

extern const sn_op sn_op_sum_squares;
extern const sn_op_impl sn_sum_squares_cpu, sn_sum_squares_ref;

/* Without a tape: *sum [out]. */
SN_MUST_CHECK sn_status sn_sum_squares(sn_device *device, double *sum, const sn_tensor *x, sn_error *err);

#endif
