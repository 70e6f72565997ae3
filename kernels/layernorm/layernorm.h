/* LayerNorm over the last dimension (Ba, Kiros, Hinton, "Layer Normalization", 2016, eq. 3-4).
 *
 *     y[t,c] = (x[t,c] - mean[t]) * rstd[t] * gamma[c] + beta[c],   rstd = 1 / sqrt(var + eps),  var with divisor C
 *
 * x      [in]  (..., C) any floating type (the residual stream's)
 * gamma  [in]  (C) or (1,C), optional (absent: 1)
 * beta   [in]  (C) or (1,C), optional (absent: 0)
 * y      [out] shape of x, attr->out_dtype (the tape's product type through the wrapper)
 * saved: mean, rstd (rows), F32, or F64 when x is F64.
 *
 * Backward, with g = dy * gamma and xhat = (x - mean) * rstd:
 *     dx = rstd * (g - mean_c(g) - xhat * mean_c(g * xhat)),  dgamma = sum_t dy * xhat,  dbeta = sum_t dy
 *
 * Numerics (cpu): two passes, each chunk of 1024 summed in fp32, chunks in double; dgamma and dbeta per block of rows in
 * fp32, blocks joined in double in their order, so that bits do not depend on threads.
 * C >= 1; zero rows are allowed. eps >= 0. */
#ifndef SN_KERNELS_LAYERNORM_H
#define SN_KERNELS_LAYERNORM_H

#include "kernels/tape.h"

typedef struct sn_layernorm_attr {
  double eps;
  sn_dtype out_dtype;
} sn_layernorm_attr;

extern const sn_op sn_op_layernorm;
extern const sn_op_impl sn_layernorm_cpu, sn_layernorm_cuda, sn_layernorm_ref;

SN_MUST_CHECK sn_status sn_layernorm(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, sn_value *beta, double eps,
                                     sn_error *err);
/* With another output type: features that leave the network are fp32. */
SN_MUST_CHECK sn_status sn_layernorm_as(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, sn_value *beta,
                                        double eps, sn_dtype out_dtype, sn_error *err);

#endif
