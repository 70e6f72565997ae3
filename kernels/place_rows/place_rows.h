/* Rows of up to four tensors put into one: where to in rows and columns.
 *
 *     y = 0 (n_out, columns);  y[index_p[i], column_p + c] += x_p[i, c]   for p = 0, 1, ..., i = 0, 1, ..., c < width of x_p
 *
 * The way back from gathers of some columns of some rows: heads that looked along time beside heads that looked across
 * channels, and class tokens that looked at everything.  An index below 0 drops its row.
 *
 * x_p     [in]  (T_p, W_p), all of one dtype; column_p + W_p <= columns
 * index_p attr  (T_p) int32, each below n_out: SN_E_ARGUMENT otherwise, naming the place; must live as long as the tape
 * y       [out] (n_out, columns), dtype of the inputs; what nothing names is zero
 *
 * Backward: dx_p[i, c] = dy[index_p[i], column_p + c], 0 for a dropped row. Sums are taken in the order of p and i, each p in
 * fp32 (cpu) and rounded once. */
#ifndef SN_KERNELS_PLACE_ROWS_H
#define SN_KERNELS_PLACE_ROWS_H

#include "kernels/tape.h"

enum { SN_PLACE_SOURCES = 4 };

typedef struct sn_place_rows_attr {
  int n_sources;
  const int32_t *index[SN_PLACE_SOURCES];
  int64_t column[SN_PLACE_SOURCES];
  int64_t n_out, columns;
} sn_place_rows_attr;

extern const sn_op sn_op_place_rows;
extern const sn_op_impl sn_place_rows_cpu, sn_place_rows_ref;

/* x: attr->n_sources values. */
SN_MUST_CHECK sn_status sn_place_rows(sn_tape *tape, sn_value **y, sn_value *const *x, const sn_place_rows_attr *attr,
                                      sn_error *err);

#endif
