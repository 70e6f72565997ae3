/* reve2025: the Fourier table of REVE as published (signals_and_probes S7).
 *
 * p = (x, y, z, 0.1 t) with t the patch index, q = p + 0.4, w_k = 2 pi k / 1.8, k in {0..n-1}, phases flattened with kt
 * fastest and cut off after the first d/2, so that high kx may be missing altogether: n^4 >= d/2 is required.  With
 * 0.1 t and period 1.8 time repeats after 18 steps: a sample of more than 17 is refused unless model.position_time_scale
 * gives another factor than 0.1, and then where steps * factor reaches 1.8.
 * The published encoding is LN(table + LN(GELU(W (x, y, z, t)))): model.position [reve2025, learned4d] with
 * model.position_norm layernorm.
 * Source: El Ouahidi et al., "REVE: a foundation model for EEG", 2025. */
#include <math.h>

#include "core/alloc.h"
#include "encoders/position/position_fourier.h"

typedef struct reve2025 {
  sn_fourier fourier;
  int64_t width;
  double time_scale;
} reve2025;

static const double TWO_PI = 6.283185307179586476925286766559;

static void destroy(void *self) {
  reve2025 *f = self;
  if (f == NULL) return;
  sn_fourier_free(&f->fourier);
  sn_free(f);
}

static sn_status create(const sn_position_setup *setup, void **self, sn_error *err) {
  reve2025 *f = NULL;
  SN_TRY(sn_alloc(&f, 1, sizeof *f, "reve2025", err));
  f->width = setup->width;
  f->time_scale = sn_config_real(setup->config, "model.position_time_scale");
  if (f->time_scale == 0) f->time_scale = 0.1;
  int64_t n = sn_config_int(setup->config, "model.position_frequencies");
  const sn_status status = sn_fourier_create(&f->fourier, "reve2025", setup->width, n, false, err);
  if (status != SN_OK) {
    destroy(f);
    return status;
  }
  *self = f;
  return SN_OK;
}

static sn_status check_length(const reve2025 *f, double unit, sn_error *err) {
  if ((unit + 1) * f->time_scale <= 1.8 - 1e-6) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT,
                 "reve2025: a token at step %g: with %g per step the encoding repeats after %.4g steps; shorten the window, set "
                 "model.position_time_scale below %.4g, or use fourier4d",
                 unit, f->time_scale, 1.8 / f->time_scale, 1.8 / (unit + 1));
}

static sn_status prepare(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err) {
  const reve2025 *f = self;
  sn_position_data *data = NULL;
  double *row = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_position_data_create(rows->n_rows, f->width, residual, &data, err), fail);
  SN_TRY_GOTO(sn_alloc(&row, f->width, sizeof *row, "position row", err), fail);
  for (int64_t r = 0; r < rows->n_rows; r++) {
    if (rows->tokens[r] < 0) continue;
    SN_TRY_GOTO(check_length(f, rows->units[r], err), fail);
    double angles[4] = {0, 0, 0, TWO_PI / 1.8 * (f->time_scale * rows->units[r] + 0.4)};
    for (int a = 0; a < 3; a++) angles[a] = TWO_PI / 1.8 * ((double)rows->places[3 * r + a] + 0.4);
    sn_fourier_row(&f->fourier, angles, row);
    sn_position_data_set(data, r, row);
  }
  sn_free(row);
  *work = data;
  return SN_OK;
fail:
  sn_free(row);
  sn_position_data_destroy(data);
  return status;
}

static sn_status encode(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                        sn_error *err) {
  return sn_position_data_value(tape, encoding, work, n_rows, err);
}

const sn_position_kind sn_position_reve2025 = {.name = "reve2025",
                                               .summary = "Fourier features of x, y, z and 0.1 t, first d/2 by index, as published",
                                               .needs_place = true,
                                               .tells_time = true,
                                               .create = create,
                                               .destroy = destroy,
                                               .prepare = prepare,
                                               .free_work = sn_position_data_destroy,
                                               .encode = encode};
