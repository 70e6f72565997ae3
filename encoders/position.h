/* Position encodings of tokens. */
#ifndef SN_ENCODERS_POSITION_H
#define SN_ENCODERS_POSITION_H

#include <stdint.h>

#include "core/status.h"
#include "core/tensor.h"

/* One row of the sine-cosine encoding of a scalar coordinate u in unit steps:
 *   row[k] = sin(u w_k), row[width/2 + k] = cos(u w_k), w_k = 10000^(-k / (width/2)), k = 0..width/2-1
 * computed in float64.  width must be even.  Source: He et al., "Masked Autoencoders Are Scalable Vision Learners", 2022
 * (the table of their one-dimensional halves). */
void sn_sincos_row(double u, int64_t width, double *row);

/* The distinct coordinates of a batch and one table row for each, so that sines are computed once per distinct value. */
typedef struct sn_position_table {
  int64_t n_rows;
  double *units;   /* (n_rows) distinct coordinates, in order of first appearance */
} sn_position_table;

/* index[i] = row of units[i] in the table (or -2 for i >= n, up to n_slots). Owns table->units afterwards (sn_free). */
SN_MUST_CHECK sn_status sn_position_table_build(const double *units, int64_t n, int64_t n_slots, int32_t *index,
                                                sn_position_table *table, sn_error *err);

/* Fresh (n_rows, width) array in dtype F32 or F64 (sn_free). */
SN_MUST_CHECK sn_status sn_position_table_sincos(const sn_position_table *table, int64_t width, sn_dtype dtype,
                                                 void **rows, sn_error *err);

#endif
