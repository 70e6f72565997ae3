/* Ridge regression in float64: minimise |y - X w - b|^2 + alpha |w|^2, b free of penalty (scikit-learn's Ridge).
 * Solved in closed form (Cholesky) over the smaller of rows and features; several alpha share one Gram matrix. */
#ifndef SN_ENCODERS_RIDGE_H
#define SN_ENCODERS_RIDGE_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_ridge sn_ridge;

/* x (n, d) and y (n) are copied, n >= 1. SN_E_ARGUMENT for values that are not finite. */
SN_MUST_CHECK sn_status sn_ridge_create(const double *x, const double *y, int64_t n, int64_t d, sn_ridge **out,
                                        sn_error *err);
void sn_ridge_destroy(sn_ridge *ridge); /* accepts NULL */
/* weights (d) [out], *bias [out]; alpha > 0. */
SN_MUST_CHECK sn_status sn_ridge_solve(sn_ridge *ridge, double alpha, double *weights, double *bias, sn_error *err);

#endif
