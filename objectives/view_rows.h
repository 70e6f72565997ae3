/* Rows of the same window: what the terms that compare views are made from.  Made at the first step, filled anew for each. */
#ifndef SN_OBJECTIVES_VIEW_ROWS_H
#define SN_OBJECTIVES_VIEW_ROWS_H

#include "objectives/term.h"

typedef struct sn_view_rows {
  int64_t n;               /* rows of a step */
  int64_t n_windows;       /* windows of which at least two views are used */
  int64_t n_rows;          /* their rows */
  int32_t *order;          /* (n) row, window by window, -2 beyond */
  int64_t *offsets;        /* (n + 1) of each window in order; empty ones behind the last */
  int32_t *window_of;      /* (n) window of each place in order, -2 beyond */
  uint8_t *used;           /* (n) 1 for a place in order, 0 beyond */
  int32_t *first, *second; /* (n) rows of the first two views of each window, -2 beyond */
  uint8_t *paired;         /* (n) 1 for a window, 0 beyond */
  uint8_t *row_used;       /* (n) rows that take part */
  int n_views;
  uint8_t *by_view;        /* (n_views, n) of each view */
} sn_view_rows;

/* *rows NULL: made first. SN_E_STATE: another n than before. */
SN_MUST_CHECK sn_status sn_view_rows_fill(sn_view_rows **rows, const sn_row_info *infos, int64_t n, int n_views, sn_error *err);
void sn_view_rows_destroy(sn_view_rows *rows); /* accepts NULL */
/* Rows of the view that has fewest. */
int64_t sn_view_rows_least(const sn_view_rows *rows);

/* sum over used rows of |z - mean over its window|^2, z (n, d). */
SN_MUST_CHECK sn_status sn_view_spread(sn_tape *tape, sn_value **sum, const sn_view_rows *rows, sn_value *z, sn_error *err);
/* out[0] = sum over windows of |z_first - z_second|^2, out[1] = windows times d. */
SN_MUST_CHECK sn_status sn_view_pairs(sn_tape *tape, sn_value *out[2], const sn_view_rows *rows, sn_value *z, sn_error *err);

#endif
