/* Bootstrap over units (people, or recordings where people are unknown): percentile intervals of 95 %, paired differences.
 *
 * Draw d takes n_units units with replacement from the stream (seed, SN_PURPOSE_BOOTSTRAP, d, 0); an item counts as often as
 * its unit was drawn.  A draw in which a class that the data have does not occur (multilabel: a label has no positive or no
 * negative; regression: all targets are equal) is drawn again, from the same stream, and counted.  All rows of a table see the
 * same draws, so that differences are paired.
 * Percentiles interpolate linearly between order statistics (numpy's default).
 * Source: Efron, Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13. */
#ifndef SN_BENCHMARKS_BOOTSTRAP_H
#define SN_BENCHMARKS_BOOTSTRAP_H

#include "benchmarks/scores.h"

/* Whom the items belong to, as numbers from 0 in the order of their hashes (n): the same people, the same draws. units (n) [out];
 * *n_units [out]: how many there are. */
SN_MUST_CHECK sn_status sn_bootstrap_units(const uint64_t *hashes, int64_t n, int64_t *units, int64_t *n_units, sn_error *err);

typedef struct sn_bootstrap {
  int64_t n_draws, n_rows;
  int64_t n_redrawn, n_units;
  double *values;    /* (n_draws, n_rows, SN_N_METRICS) */
  double *points;    /* (n_rows, SN_N_METRICS) all items once */
} sn_bootstrap;

/* rows (n_rows): predictions of the same n items, in the same order. units (n): in [0, n_units), n_units >= 2.
 * SN_E_ARGUMENT: fewer than two units, or a class so rare that 1,000 attempts at one draw miss it. */
SN_MUST_CHECK sn_status sn_bootstrap_create(sn_scored *const *rows, int64_t n_rows, const int64_t *units, int64_t n_units,
                                            int64_t n_draws, uint64_t seed, sn_bootstrap **out, sn_error *err);
void sn_bootstrap_destroy(sn_bootstrap *bootstrap); /* accepts NULL */

/* low and high are NaN, too, where sn_bootstrap_too_few. */
typedef struct sn_interval { double value, low, high; } sn_interval; /* NaN: undefined */

/* Whether draws of these units say nothing of other units: fewer than SN_BOOTSTRAP_UNITS, or over a fifth as many drawn again
 * as kept, which are then no fair draws. */
enum { SN_BOOTSTRAP_UNITS = 5 };
bool sn_bootstrap_too_few(int64_t n_units, int64_t n_draws, int64_t n_redrawn);

/* Mean of a metric over some rows (in each draw first), minus the mean over others (n_b 0: nothing). value: all items once. */
SN_MUST_CHECK sn_status sn_bootstrap_interval(const sn_bootstrap *bootstrap, sn_metric metric, const int64_t *a, int64_t n_a,
                                              const int64_t *b, int64_t n_b, sn_interval *out, sn_error *err);

/* Linear interpolation at q in [0, 1] of n ascending values. */
double sn_percentile(const double *sorted, int64_t n, double q);

#endif
