/* Samples that stand row after row, a number of every channel in each row: how most recorders write.
 *
 * Shared by the readers of such formats.  A row is `n_columns` numbers of one storage, without padding.  Values are
 * float64: value = stored * scale + shift, rounded once for the product and once for the sum (no contraction), the same bits
 * whatever the window, the company and the instruction set. A stored number that is not finite is a missing sample (NaN),
 * and so is a 64 bit one beyond 1e200: with |scale| <= 1e100 no value is infinite.
 *
 * Beside modalities/formats/sample_grid.h: that one serves any layout, for recordings that are one grid; this one is for data
 * in many pieces (FIF) and for speed where channels are many. */
#ifndef SN_MODALITIES_INTERLEAVED_H
#define SN_MODALITIES_INTERLEAVED_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/stream.h"

typedef enum sn_storage {
  SN_STORED_I16_BE = 0, SN_STORED_I32_BE, SN_STORED_F32_BE, SN_STORED_F64_BE,
  SN_STORED_I16_LE, SN_STORED_I32_LE, SN_STORED_F32_LE, SN_STORED_F64_LE
} sn_storage;

int64_t sn_storage_bytes(sn_storage storage);   /* of one number: 2, 4, 8 */
bool sn_storage_is_integer(sn_storage storage);

typedef struct sn_rows {
  const sn_stream *stream;
  int64_t offset;          /* of the first row in the stream, bytes */
  int64_t n_columns;
  sn_storage storage;
} sn_rows;

/* Rows [first, first + n_rows) of the columns `columns` (n), each in [0, n_columns), any order, repeats allowed:
 * values[i][at + k] = stored(first + k, columns[i]) * scales[i] + shifts[i]. shifts may be NULL: nothing is added. Each byte of
 * the rows is read once, whatever n is. The caller has checked that the rows lie inside the stream as far as its size
 * tells; a stream that ends before is SN_E_CORRUPT. Thread-safe. */
SN_MUST_CHECK sn_status sn_rows_read(const sn_rows *rows, int64_t first, int64_t n_rows, const int64_t *columns, int64_t n,
                                     const double *scales, const double *shifts, double *const *values, int64_t at,
                                     sn_error *err);
/* The integers of one column, stored (n_rows) [out]; SN_E_UNSUPPORTED for floats. */
SN_MUST_CHECK sn_status sn_rows_read_stored(const sn_rows *rows, int64_t first, int64_t n_rows, int64_t column,
                                            int32_t *stored, sn_error *err);

#endif
