/* Variance and covariance terms of one branch of VICReg (Bardes, Ponce, LeCun, ICLR 2022; objectives O10):
 *
 *     C        = sum over used rows (x - mean)ᵀ (x - mean) / (n - 1)                (d, d), n used rows
 *     variance = 1/2 * mean over c of max(0, 1 - sqrt(C[c,c] + eps))
 *     covariance = (sum over c != e of C[c,e]^2) / d
 *     count    = n
 *
 * x [in] (rows, d); used [in] (rows) U8, optional: rows with 0 take no part, they may hold anything, and their dx is 0.
 * variance, covariance, count [out] scalars, F64.  The published loss adds both branches:
 *     25 * invariance + 25 * (variance_a + variance_b) + 1 * (covariance_a + covariance_b),
 * and the invariance, the mean over rows and columns of (a - b)^2, is the sum of the op square_difference over its count.
 * Fewer than two used rows have no covariance: both terms are 0 without a gradient, and count says so.
 *
 * saved: 1 / sqrt(C[c,c] + eps) where that column is below the hinge, else 0 (d); C with zeros on its diagonal (d, d); F32
 * (F64 when x is F64).
 * Backward, x_ = x - mean: dx = dvariance * (-1 / (2 d (n-1))) x_ / sqrt(C[c,c] + eps) (columns below the hinge)
 *                             + dcovariance * 4 / (d (n-1)) x_ (C without its diagonal).
 * Numerics (cpu): means and variances in double, covariances as fp32 products of centred rows (kernels/gemm), their squares
 * summed in double.  Memory: (rows, d) and (d, d) of scratch. */
#ifndef SN_KERNELS_VICREG_TERMS_H
#define SN_KERNELS_VICREG_TERMS_H

#include "kernels/tape.h"

typedef struct sn_vicreg_terms_attr { double eps; } sn_vicreg_terms_attr; /* the source: 1e-4 */

extern const sn_op sn_op_vicreg_terms;
extern const sn_op_impl sn_vicreg_terms_cpu, sn_vicreg_terms_ref;

/* out[0] = variance, out[1] = covariance, out[2] = count; used may be NULL. */
SN_MUST_CHECK sn_status sn_vicreg_terms(sn_tape *tape, sn_value *out[3], sn_value *x, sn_value *used, double eps,
                                        sn_error *err);

#endif
