#include "encoders/position.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

void sn_sincos_row(double u, int64_t width, double *row) {
  int64_t half = width / 2;
  for (int64_t k = 0; k < half; k++) {
    double w = pow(10000.0, -(double)k / (double)half);
    row[k] = sin(u * w);
    row[half + k] = cos(u * w);
  }
}

static uint64_t hash_unit(double unit) {
  uint64_t bits;
  memcpy(&bits, &unit, sizeof bits);
  bits ^= bits >> 31;
  bits *= 0x9E3779B97F4A7C15ull;
  return bits ^ (bits >> 29);
}

sn_status sn_position_table_build(const double *units, int64_t n, int64_t n_slots, int32_t *index,
                                  sn_position_table *table, sn_error *err) {
  int64_t n_buckets = 64;
  while (n_buckets < 2 * n) n_buckets *= 2;
  int32_t *buckets = NULL;
  table->n_rows = 0;
  table->units = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&buckets, n_buckets, sizeof *buckets, "position hash", err), fail);
  SN_TRY_GOTO(sn_alloc(&table->units, n, sizeof *table->units, "position table", err), fail);
  for (int64_t i = 0; i < n; i++) {
    double unit = units[i] == 0 ? 0.0 : units[i]; /* one row for both zeros */
    uint64_t slot = hash_unit(unit) & (uint64_t)(n_buckets - 1);
    while (buckets[slot] != 0 && table->units[buckets[slot] - 1] != unit) slot = (slot + 1) & (uint64_t)(n_buckets - 1);
    if (buckets[slot] == 0) {
      table->units[table->n_rows] = unit;
      buckets[slot] = (int32_t)++table->n_rows;
    }
    index[i] = buckets[slot] - 1;
  }
  for (int64_t i = n; i < n_slots; i++) index[i] = -2;
  sn_free(buckets);
  return SN_OK;
fail:
  sn_free(buckets);
  sn_free(table->units);
  table->units = NULL;
  return status;
}

sn_status sn_position_table_sincos(const sn_position_table *table, int64_t width, sn_dtype dtype, void **rows,
                                   sn_error *err) {
  double *row = NULL;
  void *data = NULL;
  int64_t count;
  sn_status status;
  if (!sn_mul_ok(table->n_rows, width, &count)) return sn_fail(err, SN_E_MEMORY, "position table: too large");
  SN_TRY_GOTO(sn_alloc(&row, width, sizeof *row, "position row", err), fail);
  SN_TRY_GOTO(sn_alloc(&data, count, sn_dtype_size(dtype), "position table", err), fail);
  sn_tensor view = sn_tensor_2d(data, dtype, table->n_rows, width);
  for (int64_t r = 0; r < table->n_rows; r++) {
    sn_sincos_row(table->units[r], width, row);
    for (int64_t c = 0; c < width; c++) sn_tensor_set(&view, r * width + c, row[c]);
  }
  sn_free(row);
  *rows = data;
  return SN_OK;
fail:
  sn_free(row);
  sn_free(data);
  return status;
}
