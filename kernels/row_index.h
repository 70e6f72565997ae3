/* Moving rows by an index list: what gather_rows, scatter_rows and embedding share.
 *
 * The one direction copies row index[i] to row i; its transpose adds row i to row index[i].  The transpose first sorts the
 * positions by target (a counting sort, stable), so that every target row is summed by one thread in ascending i: the
 * order of additions is fixed, whatever the threads, whether or not the indices are unique. */
#ifndef SN_KERNELS_ROW_INDEX_H
#define SN_KERNELS_ROW_INDEX_H

#include "kernels/op.h"

/* SN_E_ARGUMENT with the place unless lowest <= index[i] < n_rows for all i. */
SN_MUST_CHECK sn_status sn_row_index_check(const int32_t *index, int64_t n, int64_t lowest, int64_t n_rows,
                                           sn_error *err);
/* The same for the sizes themselves: n and n_rows must fit int32, and a list must be there when n > 0. */
SN_MUST_CHECK sn_status sn_row_index_rule(const int32_t *index, int64_t n, int64_t n_rows, sn_error *err);

/* member[start[r] .. start[r+1]) are the positions i with index[i] == r, ascending; negative indices are in no list. */
typedef struct sn_row_lists {
  int32_t *start;  /* (n_rows + 1) */
  int32_t *member; /* (n) */
} sn_row_lists;

int64_t sn_row_lists_bytes(int64_t n, int64_t n_rows); /* a multiple of 64 */
void sn_row_lists_build(sn_row_lists *lists, void *memory, const int32_t *index, int64_t n, int64_t n_rows);

/* Stretches of columns: `width` columns from column `from` of the one matrix to column `to` of the other.  n 0: all columns,
 * each to its own place. */
enum { SN_ROW_SPANS = 3 };
typedef struct sn_row_spans {
  int n;
  int64_t from[SN_ROW_SPANS], to[SN_ROW_SPANS], width[SN_ROW_SPANS];
} sn_row_spans;

/* to[i] = from[index[i]] (-1: `fill` row, or zeros when its data is NULL; below -1: zeros), or += with acc; from and to
 * are matrices of `columns` columns, F32 or BF16 each.  With spans they have columns of their own, from_columns and
 * to_columns, the spans cover every column of `to`, and there is no fill. */
typedef struct sn_row_copy {
  sn_tensor to, from, fill;
  const int32_t *index;
  int64_t n, columns;
  bool acc;
  sn_row_spans spans;
  int64_t from_columns, to_columns;
} sn_row_copy;
void sn_row_copy_run(const sn_device *device, const sn_row_copy *copy);

/* to[r] = sum of from[i] over i in lists[r], or += with acc; `total` ((1,C) or data NULL) = sum of from over the rows with
 * index -1. With spans: columns as above, what no span covers of `to` becomes 0 (stays with acc), and there is no total.
 * scratch: sn_row_add_bytes. */
typedef struct sn_row_add {
  sn_tensor to, from, total;
  const int32_t *index;
  int64_t n, n_rows, columns;
  bool acc, acc_total;
  sn_row_spans spans;
  int64_t from_columns, to_columns;
} sn_row_add;
int64_t sn_row_add_bytes(int64_t n, int64_t n_rows, int64_t columns);
void sn_row_add_run(const sn_device *device, const sn_row_add *add, void *scratch);

#endif
