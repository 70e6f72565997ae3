/* y[c] = sum over rows of x[t,c].
 *
 * x [in] (..., C); y [out] (C), F32 (F64 when x is F64). Backward: dx[t,c] = dy[c].
 * Numerics (cpu): blocks of 32 rows in fp32, joined in double in their order. */
#ifndef SN_KERNELS_COLUMN_SUMS_H
#define SN_KERNELS_COLUMN_SUMS_H

#include "kernels/tape.h"

extern const sn_op sn_op_column_sums;
extern const sn_op_impl sn_column_sums_cpu, sn_column_sums_ref;

SN_MUST_CHECK sn_status sn_column_sums(sn_tape *tape, sn_value **y, sn_value *x, sn_error *err);

#endif
