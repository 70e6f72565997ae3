/* fourier4d: Fourier features of place and time, the default for sensors with positions (signals_and_probes S7).
 *
 * Space: q = p + 0.4 m, w = 2 pi / 1.8 m per unit of k, as REVE has it.  Time: t in unit steps, w = 2 pi / period, with a
 * period (model.position_period) that is at least the sample's length; 0 takes the longest sample of the training data.
 * The d/2 phases are those of smallest kx^2+ky^2+kz^2+kt^2 (ties by index), so that no axis is starved: the first d/2 by
 * index would leave out high kx altogether.
 * Source: the 4D encoding of El Ouahidi et al., "REVE: a foundation model for EEG", 2025, with the changes named above. */
#include <math.h>

#include "core/alloc.h"
#include "encoders/position/position_fourier.h"

typedef struct fourier4d {
  sn_fourier fourier;
  int64_t width;
  double period;
} fourier4d;

static const double TWO_PI = 6.283185307179586476925286766559;

static void destroy(void *self) {
  fourier4d *f = self;
  if (f == NULL) return;
  sn_fourier_free(&f->fourier);
  sn_free(f);
}

static sn_status create(const sn_position_setup *setup, void **self, sn_error *err) {
  fourier4d *f = NULL;
  double period = sn_config_real(setup->config, "model.position_period");
  if (period == 0) period = (double)setup->data->most_positions;
  if (period == 0)
    return sn_fail(err, SN_E_ARGUMENT,
                   "model.position_period: the data do not say how many time steps a sample has: set it to at least that many");
  SN_TRY(sn_alloc(&f, 1, sizeof *f, "fourier4d", err));
  f->width = setup->width;
  f->period = period < 1 ? 1 : period;
  const sn_status status = sn_fourier_create(&f->fourier, "fourier4d", setup->width,
                                             sn_config_int(setup->config, "model.position_frequencies"), true, err);
  if (status != SN_OK) {
    destroy(f);
    return status;
  }
  *self = f;
  return SN_OK;
}

static sn_status prepare(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err) {
  const fourier4d *f = self;
  sn_position_data *data = NULL;
  double *row = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_position_data_create(rows->n_rows, f->width, residual, &data, err), fail);
  SN_TRY_GOTO(sn_alloc(&row, f->width, sizeof *row, "position row", err), fail);
  for (int64_t r = 0; r < rows->n_rows; r++) {
    if (rows->tokens[r] < 0) continue;
    double angles[4] = {0, 0, 0, TWO_PI / f->period * rows->units[r]};
    if (rows->units[r] >= f->period - 1e-6) { /* overlapping patches stand a fraction of a step late */
      status = sn_fail(err, SN_E_ARGUMENT,
                       "fourier4d: a token at step %g, but the period is %g steps and would repeat: set model.position_period "
                       "to at least the steps of a sample",
                       rows->units[r], f->period);
      goto fail;
    }
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

const sn_position_kind sn_position_fourier4d = {.name = "fourier4d",
                                                .summary = "Fourier features of x, y, z and time, lowest frequencies first",
                                                .needs_place = true,
                                                .tells_time = true,
                                                .create = create,
                                                .destroy = destroy,
                                                .prepare = prepare,
                                                .free_work = sn_position_data_destroy,
                                                .encode = encode};
