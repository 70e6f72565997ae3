/* Rows of length one: y[t] = x[t] / max(|x[t]|, eps)   (objectives O8: PyTorch's form).
 *
 * x [in] (..., C); y [out] shape and dtype of x; eps > 0; saved: the divisor of each row, F32 (F64 when x is F64).
 * Backward: dx = (dy - y (y . dy)) / |x| where |x| > eps, else dy / eps (the floor is constant).
 * Numerics (cpu): squares summed in double. */
#ifndef SN_KERNELS_L2_NORMALIZE_H
#define SN_KERNELS_L2_NORMALIZE_H

#include "kernels/tape.h"

typedef struct sn_l2_normalize_attr { double eps; } sn_l2_normalize_attr;

extern const sn_op sn_op_l2_normalize;
extern const sn_op_impl sn_l2_normalize_cpu, sn_l2_normalize_ref;

SN_MUST_CHECK sn_status sn_l2_normalize(sn_tape *tape, sn_value **y, sn_value *x, double eps, sn_error *err);

#endif
