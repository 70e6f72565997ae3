/* Squared distance between the rows of two matrices, both with a gradient (the invariance of VICReg; the distance of views to
 * their mean):
 *
 *     sum = sum over used rows t and columns c of (a[t,c] - b[t,c])^2;   count = used rows * C   (sum / count: the mean)
 *
 * a [in] (T, C); b [in] same shape, any floating type; used [in] (T) U8, optional: rows with 0 take no part, they may hold
 * anything, and their gradients are 0. sum, count [out] scalars, F64.
 * Backward: da = 2 dsum (a - b), db = -da. Numerics (cpu): squares summed in double, blocks of 32 rows. */
#ifndef SN_KERNELS_SQUARE_DIFFERENCE_H
#define SN_KERNELS_SQUARE_DIFFERENCE_H

#include "kernels/tape.h"

extern const sn_op sn_op_square_difference;
extern const sn_op_impl sn_square_difference_cpu, sn_square_difference_ref;

/* out[0] = sum, out[1] = count; used may be NULL. */
SN_MUST_CHECK sn_status sn_square_difference(sn_tape *tape, sn_value *out[2], sn_value *a, sn_value *b, sn_value *used,
                                             sn_error *err);

#endif
