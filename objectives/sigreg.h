/* SIGReg (LeJEPA): views of a window agree, and rows as a whole look like an isotropic Gaussian, which nothing collapsed does.
 * A row term (objectives/term.h): no teacher, no negatives, no predictor.
 *
 *   z_v = projector(pooled row of view v), v = 1 .. V (sigreg.views);  z_mean their mean
 *   L = (1 - lambda) mean over used rows of |z_mean - z_v|^2  +  lambda mean over v of SIGReg(z_v)
 *
 * SIGReg(z) is kernels/sigreg: n times the weighted distance of characteristic functions along sigreg.slices random
 * directions, new at each step.  Two groups in metrics: invariance and gaussian.
 * Windows of which a view is missing take no part in invariance.
 * Source: Balestriero and LeCun, "LeJEPA", 2025; objectives O11, O20. */
#ifndef SN_OBJECTIVES_SIGREG_H
#define SN_OBJECTIVES_SIGREG_H

#include "objectives/term.h"

/* Rows of the same window, as segments: what the terms that compare views are made from. */
typedef struct sn_view_rows {
  int64_t n, width;      /* rows of a step, features */
  double *zeros;         /* (n, width) what differences are measured against, in any floating type */
  int64_t n_windows;     /* windows of which at least two views are used */
  int64_t n_rows;        /* their rows */
  int32_t *order;        /* (n) row, window by window, -2 beyond */
  int64_t *offsets;      /* (n + 1) of each window in order; empty ones behind the last */
  int32_t *window_of;    /* (n) window of each place in order, -2 beyond */
  float *weights;        /* (n) 1 for a place in order, 0 beyond */
} sn_view_rows;

SN_MUST_CHECK sn_status sn_view_rows_create(int64_t n, int64_t width, sn_view_rows **out, sn_error *err);
void sn_view_rows_destroy(sn_view_rows *rows); /* accepts NULL */
/* Anew for each step. */
void sn_view_rows_fill(sn_view_rows *rows, const sn_row_info *infos);
/* sum over rows of their mean squared difference over features to their window's mean: of (n, d) z. */
SN_MUST_CHECK sn_status sn_view_spread(sn_tape *tape, sn_value **sum, const sn_view_rows *rows, sn_value *z, sn_error *err);

#endif
