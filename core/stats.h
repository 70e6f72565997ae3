/* Signal statistics in float64 with compensated (Neumaier) sums; NaN samples are missing and left out. */
#ifndef SN_CORE_STATS_H
#define SN_CORE_STATS_H

#include <stdint.h>

typedef struct sn_sum { double sum, compensation; } sn_sum;
static inline void sn_sum_add(sn_sum *s, double x) {
  double t = s->sum + x;
  double a = s->sum < 0 ? -s->sum : s->sum, b = x < 0 ? -x : x;
  s->compensation += a >= b ? (s->sum - t) + x : (x - t) + s->sum;
  s->sum = t;
}
static inline double sn_sum_value(const sn_sum *s) { return s->sum + s->compensation; }

typedef struct sn_stats {
  int64_t n, missing;
  double min, max, mean, std; /* std with divisor n, two passes; all NaN when n == 0; mean and std NaN with infinities */
} sn_stats;
sn_stats sn_stats_of(const double *x, int64_t n);

/* Quantile q in [0,1] with linear interpolation between order statistics (numpy's default) of the values that are not
 * NaN; NaN when there are none or q is outside. `work` holds n doubles and is overwritten. */
double sn_quantile(const double *x, int64_t n, double q, double *work);

#endif
