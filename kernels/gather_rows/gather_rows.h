/* Rows by an index list, with a learned row in the gaps (the mask token of a masked autoencoder).
 *
 *     y[i] = x[index[i]]  where index[i] >= 0
 *     y[i] = fill         where index[i] == -1 (zeros without a fill row)
 *     y[i] = 0            where index[i] == -2
 *
 * x      [in]  (T, C)
 * fill   [in]  (1, C) or (C), optional
 * index  attr  (n_out) int32, each in [-2, T): SN_E_ARGUMENT otherwise, naming the place; must live as long as the tape
 * y      [out] (n_out, C), attr->out_dtype
 *
 * With spans (attr->n_spans > 0) a row of y holds the columns [begin[s], end[s]) of the row of x one after the other: a part
 * of q, k and v for some heads, for instance.  Spans must not overlap, and there is no fill row then (SN_E_ARGUMENT).
 * Columns of x that no span takes have gradient 0.
 *
 * Backward: dx[r] = sum of dy[i] over index[i] == r in ascending i; dfill = sum of dy[i] over index[i] == -1 (cpu: blocks
 * of 64 in fp32, joined in double). Indices may repeat. */
#ifndef SN_KERNELS_GATHER_ROWS_H
#define SN_KERNELS_GATHER_ROWS_H

#include "kernels/tape.h"

enum { SN_GATHER_SPANS = 3 };

typedef struct sn_gather_rows_attr {
  const int32_t *index;
  int64_t n_out;
  sn_dtype out_dtype;
  int n_spans; /* 0: all columns */
  int64_t begin[SN_GATHER_SPANS], end[SN_GATHER_SPANS];
} sn_gather_rows_attr;

/* Columns of a row of y. */
static inline int64_t sn_gather_columns(const sn_gather_rows_attr *attr, int64_t x_columns) {
  int64_t width = 0;
  for (int s = 0; s < attr->n_spans; s++) width += attr->end[s] - attr->begin[s];
  return attr->n_spans > 0 ? width : x_columns;
}

extern const sn_op sn_op_gather_rows;
extern const sn_op_impl sn_gather_rows_cpu, sn_gather_rows_ref;

/* fill may be NULL. The output has x's dtype; sn_gather_rows_as names another. */
SN_MUST_CHECK sn_status sn_gather_rows(sn_tape *tape, sn_value **y, sn_value *x, sn_value *fill, const int32_t *index,
                                       int64_t n_out, sn_error *err);
SN_MUST_CHECK sn_status sn_gather_rows_as(sn_tape *tape, sn_value **y, sn_value *x, sn_value *fill, const int32_t *index,
                                          int64_t n_out, sn_dtype out_dtype, sn_error *err);
/* Spans of columns; the output has x's dtype. */
SN_MUST_CHECK sn_status sn_gather_spans(sn_tape *tape, sn_value **y, sn_value *x, const int32_t *index, int64_t n_out,
                                        int n_spans, const int64_t *begin, const int64_t *end, sn_error *err);

#endif
