/* Standardising of features, fitted on training rows only.
 *
 *   z = (x - mean) / deviation,  deviation with divisor n, 1 for a constant feature
 * A feature that is NaN takes the median of its training values that are not (0 when there is none), before mean and
 * deviation are computed. A feature that is infinite is SN_E_ARGUMENT.
 * Fault it designs out: a scaler that saw the test part. Only `fit` looks at rows, and only at those it is given. */
#ifndef SN_ENCODERS_STANDARDIZER_H
#define SN_ENCODERS_STANDARDIZER_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_standardizer {
  int64_t n_features;
  double *mean, *deviation, *median; /* (n_features) */
} sn_standardizer;

/* x (., n_features): all rows; rows (n): those that count, n >= 1. */
SN_MUST_CHECK sn_status sn_standardizer_fit(const double *x, int64_t n_features, const int64_t *rows, int64_t n,
                                            sn_standardizer **out, sn_error *err);
void sn_standardizer_destroy(sn_standardizer *standardizer); /* accepts NULL */

/* z (n, n_features) [out] from the given rows of x; returns how many values were NaN and took the median. */
int64_t sn_standardizer_apply(const sn_standardizer *standardizer, const double *x, const int64_t *rows, int64_t n,
                              double *z);

#endif
