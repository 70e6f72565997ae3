/* sincos: fixed sine-cosine of time in unit steps (sn_sincos_row), base 10000. */
#include <math.h>

#include "core/alloc.h"
#include "encoders/position.h"
#include "kernels/gather_rows/gather_rows.h"

typedef struct sincos_work {
  int32_t *index; /* (n_rows) row of the table, -2 none */
  void *table;
  int64_t n_table;
  sn_dtype dtype;
} sincos_work;

static sn_status create(const sn_position_setup *setup, void **self, sn_error *err) {
  int64_t *width = NULL;
  if (setup->width % 2 != 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s of %lld: a sine-cosine position needs an even width",
                   setup->prefix[0] == 'e' ? "model.width" : "mae.decoder_width", (long long)setup->width);
  SN_TRY(sn_alloc(&width, 1, sizeof *width, "sincos", err));
  *width = setup->width;
  *self = width;
  return SN_OK;
}

static void free_work(void *work) {
  sincos_work *w = work;
  if (w == NULL) return;
  sn_free(w->index);
  sn_free(w->table);
  sn_free(w);
}

static sn_status prepare(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err) {
  sincos_work *w = NULL;
  double *units = NULL;
  int32_t *compact = NULL;
  sn_position_table table = {0};
  sn_status status;
  int64_t n = 0;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "sincos work", err));
  w->dtype = residual;
  SN_TRY_GOTO(sn_alloc(&w->index, rows->n_rows, sizeof *w->index, "sincos work", err), fail);
  SN_TRY_GOTO(sn_alloc(&units, rows->n_rows, sizeof *units, "sincos work", err), fail);
  SN_TRY_GOTO(sn_alloc(&compact, rows->n_rows, sizeof *compact, "sincos work", err), fail);
  for (int64_t r = 0; r < rows->n_rows; r++)
    if (rows->tokens[r] >= 0) units[n++] = rows->units[r];
  SN_TRY_GOTO(sn_position_table_build(units, n, n, compact, &table, err), fail);
  SN_TRY_GOTO(sn_position_table_sincos(&table, *(const int64_t *)self, residual, &w->table, err), fail);
  w->n_table = table.n_rows;
  n = 0;
  for (int64_t r = 0; r < rows->n_rows; r++) w->index[r] = rows->tokens[r] >= 0 ? compact[n++] : -2;
  *work = w;
  w = NULL;
fail:
  free_work(w);
  sn_free(units);
  sn_free(compact);
  sn_free(table.units);
  return status;
}

static sn_status encode(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                        sn_error *err) {
  const sincos_work *w = work;
  sn_value *table;
  SN_TRY(sn_tape_input(tape, &table, sn_tensor_2d(w->table, w->dtype, w->n_table, *(const int64_t *)self), false, err));
  return sn_gather_rows(tape, encoding, table, NULL, w->index, n_rows, err);
}

const sn_position_kind sn_position_sincos = {.name = "sincos",
                                             .summary = "fixed sine-cosine of time",
                                             .tells_time = true,
                                             .create = create,
                                             .destroy = sn_free,
                                             .prepare = prepare,
                                             .free_work = free_work,
                                             .encode = encode};

/* rope: nothing is added; attention rotates queries and keys by the time (kernels/rope). */
const sn_position_kind sn_position_rope = {.name = "rope", .summary = "time rotates queries and keys", .tells_time = true};
