/* What monitors tell of features: plain functions of rows in float64, in a fixed order of sums.
 *
 * Rows are (n, c); a pooled row is the mean of one sample's tokens.  A value that is not defined is NaN. */
#ifndef SN_ENGINE_MONITOR_VALUES_H
#define SN_ENGINE_MONITOR_VALUES_H

#include <stdint.h>

#include "core/status.h"

/* Token statistics of a pack, which merge into those of a step in the order of packs.
 *   count, mean, m2   tokens, mean and sum of squared deviations of each dimension
 *   ANOVA over groups of one place (channel and position), summed over dimensions: squares within groups and between them,
 *   their degrees of freedom, and what a unit of variance between places adds to the squares between, N - sum n_g^2 / N.
 *   Groups are compared within a pack only, and squares add over packs. */
typedef struct sn_token_anova {
  double within, within_free, between, between_free, between_weight;
} sn_token_anova;

/* mean, m2 (c) [out]. */
void sn_monitor_moments(double *mean, double *m2, const double *rows, int64_t n, int64_t c);
/* Adds n_b tokens to *n_a (Chan et al. 1979). */
void sn_monitor_merge(double *n_a, double *mean_a, double *m2_a, double n_b, const double *mean_b, const double *m2_b,
                      int64_t c);
/* Standard deviation (divisor n) of each dimension, averaged over dimensions; NaN without tokens. */
double sn_monitor_std(double n, const double *m2, int64_t c);

/* keys (n): one value, one place. */
SN_MUST_CHECK sn_status sn_monitor_anova(sn_token_anova *out, const double *rows, const int64_t *keys, int64_t n, int64_t c,
                                         sn_error *err);
/* var_input / (var_input + var_place), unbiased estimates: var_input = within / within_free,
 * var_place = max(0, (between - between_free var_input) / between_weight).  NaN when no place has two tokens, or nothing varies.
 * 1 where there is a single place. */
double sn_monitor_input_share(const sn_token_anova *a);

/* Effective rank: exp of the entropy of s_i / sum s, s the singular values of the rows minus their mean (Roy and Vetterli,
 * "The effective rank", EUSIPCO 2007).  1 ... min(n - 1, c); NaN for n < 2; 0 when the rows are all the same. */
SN_MUST_CHECK sn_status sn_monitor_rank(double *out, const double *rows, int64_t n, int64_t c, sn_error *err);

/* unit (n, c) [out]: rows over their norm, a norm below 1e-8 counting as 1e-8. */
void sn_monitor_normalise(double *unit, const double *rows, int64_t n, int64_t c);
/* log of the mean over pairs of exp(-2 |z_i - z_j|^2) of unit rows (Wang and Isola, ICML 2020): 0 when all are the same, about
 * -4 in many dimensions when they spread evenly.  NaN for n < 2. */
double sn_monitor_uniformity(const double *unit, int64_t n, int64_t c);
/* Mean over rows of the entropy of softmax_j(z_i . z_j / 0.1), j != i, over log(n - 1): 1 when no row is nearer than another.
 * NaN for n < 3. */
SN_MUST_CHECK sn_status sn_monitor_entropy(double *out, const double *unit, int64_t n, int64_t c, sn_error *err);

/* Does it know who it is?  Of the rows of known subjects (not 0) that have another window (another sample id) of the same subject
 * among the rows: share whose nearest other window, by cosine, is one of the same subject's; and the share that a random one
 * would be.  Ties: the earlier row.  NaN, both, when no row can be asked. */
void sn_monitor_subjects(double *knn, double *chance, const double *unit, const uint64_t *samples, const uint64_t *subjects,
                         int64_t n, int64_t c);

/* Eigenvalues, ascending, of a symmetric matrix a (n, n), which is overwritten. values (n) [out]. Householder to three
 * diagonals, then bisection by Sturm counts: each within about n eps |a|. */
SN_MUST_CHECK sn_status sn_monitor_eigenvalues(double *values, double *a, int64_t n, sn_error *err);

#endif
