/* RMSNorm over the last dimension (Zhang and Sennrich, "Root mean square layer normalization", 2019, eq. 4).
 *
 *     y[t,c] = x[t,c] * rstd[t] * gamma[c],   rstd = 1 / sqrt(mean_c(x^2) + eps)
 *
 * x      [in]  (..., C) any floating type
 * gamma  [in]  (C) or (1,C), optional (absent: 1)
 * y      [out] shape of x, attr->out_dtype (the tape's product type through the wrapper)
 * saved: rstd (rows), F32, or F64 when x is F64.
 *
 * Backward, with g = dy * gamma: dx = rstd * (g - x * rstd^2 * mean_c(g * x)),  dgamma = sum_t dy * x * rstd.
 * Numerics as in layernorm.h. C >= 1, eps >= 0; zero rows are allowed. */
#ifndef SN_KERNELS_RMSNORM_H
#define SN_KERNELS_RMSNORM_H

#include "kernels/tape.h"

typedef struct sn_rmsnorm_attr {
  double eps;
  sn_dtype out_dtype;
} sn_rmsnorm_attr;

extern const sn_op sn_op_rmsnorm;
extern const sn_op_impl sn_rmsnorm_cpu, sn_rmsnorm_ref;

SN_MUST_CHECK sn_status sn_rmsnorm(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, double eps, sn_error *err);
/* With another output type. */
SN_MUST_CHECK sn_status sn_rmsnorm_as(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, double eps,
                                      sn_dtype out_dtype, sn_error *err);

#endif
