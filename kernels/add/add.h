/* Sum of two tensors, the second one perhaps a row for all rows.
 *
 *     y = a + b              b of a's shape (a residual connection)
 *     y[t,c] = a[t,c] + b[c]   b (C) or (1,C) (a bias, a class row)
 *
 * a  [in]  (..., C)
 * b  [in]  a's shape, (C) or (1,C); any floating type of its own
 * y  [out] a's shape and dtype
 *
 * Backward: da = dy; db = dy, or its sum over rows (cpu: blocks of 32 rows in fp32, joined in double). */
#ifndef SN_KERNELS_ADD_H
#define SN_KERNELS_ADD_H

#include "kernels/tape.h"

extern const sn_op sn_op_add;
extern const sn_op_impl sn_add_cpu, sn_add_ref;

/* Whether b is one row for many (shapes as infer accepted them). */
bool sn_add_is_broadcast(const sn_op_call *call);

SN_MUST_CHECK sn_status sn_add(sn_tape *tape, sn_value **y, sn_value *a, sn_value *b, sn_error *err);

#endif
