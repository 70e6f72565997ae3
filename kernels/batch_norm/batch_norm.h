/* Batch normalisation by the statistics of this batch alone (Ioffe and Szegedy, ICML 2015, algorithm 1): for projectors that
 * are thrown away after pretraining.  There are no running statistics.
 *
 *     y[t,c] = (x[t,c] - mean_c) / sqrt(var_c + eps) * gamma[c] + beta[c]   over the n rows that are used;  0 elsewhere
 *
 * x [in] (T, C); gamma, beta [in] (C), optional each (1 and 0); used [in] (T) U8, optional: rows with 0 take no part, they may
 * hold anything, and their dx is 0. y [out] (T, C), x's type. var is biased (divisor n), eps > 0 (PyTorch: 1e-5).
 * One used row has variance 0: y = beta and dx = 0; no used row: y = 0.
 * saved: mean and 1 / sqrt(var + eps), (C) each, F32 (F64 when x is F64).
 *
 * Backward, xhat = (x - mean) rstd: dbeta = sum dy, dgamma = sum dy xhat, dx = gamma rstd (dy - dbeta/n - xhat dgamma/n).
 * Numerics (cpu): two passes in double over blocks of 64 columns. */
#ifndef SN_KERNELS_BATCH_NORM_H
#define SN_KERNELS_BATCH_NORM_H

#include "kernels/tape.h"

typedef struct sn_batch_norm_attr { double eps; } sn_batch_norm_attr;

extern const sn_op sn_op_batch_norm;
extern const sn_op_impl sn_batch_norm_cpu, sn_batch_norm_ref;

/* gamma, beta and used may be NULL. */
SN_MUST_CHECK sn_status sn_batch_norm(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, sn_value *beta,
                                      sn_value *used, double eps, sn_error *err);

#endif
