/* The transpose of gather_rows: rows added to the places an index list names.
 *
 *     y = 0 (n_out, C);  y[index[i]] += x[i]   for i = 0, 1, ...; index[i] == -1 drops row i
 *
 * x      [in]  (T, C)
 * index  attr  (T) int32, each in [-1, n_out): SN_E_ARGUMENT otherwise, naming the place; must live as long as the tape
 * y      [out] (n_out, C), attr->out_dtype; rows that no index names are zero
 *
 * Backward: dx[i] = dy[index[i]], 0 for a dropped row. Sums are taken in ascending i, in fp32 (cpu), rounded once. */
#ifndef SN_KERNELS_SCATTER_ROWS_H
#define SN_KERNELS_SCATTER_ROWS_H

#include "kernels/tape.h"

typedef struct sn_scatter_rows_attr {
  const int32_t *index;
  int64_t n_out;
  sn_dtype out_dtype;
} sn_scatter_rows_attr;

extern const sn_op sn_op_scatter_rows;
extern const sn_op_impl sn_scatter_rows_cpu, sn_scatter_rows_ref;

/* The output has x's dtype. */
SN_MUST_CHECK sn_status sn_scatter_rows(sn_tape *tape, sn_value **y, sn_value *x, const int32_t *index, int64_t n_out,
                                        sn_error *err);

#endif
