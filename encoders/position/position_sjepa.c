/* sjepa: a trainable row per channel beside a fixed sinusoid of time (signals_and_probes S7).
 *
 *   e = [ channel part (c_s columns) | time part (c_t columns) ]
 *
 * Published at width 64: c_s = 30, c_t = 34.  Here, for a width C (even, at least 13): c_s = 6 floor(5 C / 64), c_t = C - c_s,
 * which gives 30 and 34 at 64.
 * Channel part: trainable, one row per channel id, that starts at the sinusoids of the channel's place; x, y and z take
 * c_s / 3 columns each, [sin | cos].  It is kept as the sinusoid of the token's place plus a table of offsets that starts at
 * 0: the same function and the same gradients where a channel has one place, and it still means something where the same
 * channel sits elsewhere on another head.  The sinusoid of an axis has its coordinate in centimetres from the low end of the
 * range [-r, r] (model.position_range) and base 2 r in centimetres: wavelengths from 2 pi cm to 2 pi times the range.
 * Time part: [sin | cos] of t in unit steps with base = the longest sample (model.position_period, 0: of the training
 * data), not 10,000.
 * Source: Guetschel et al., "S-JEPA: towards seamless cross-dataset transfer through dynamic spatial attention", 2024. */
#include <math.h>

#include "core/alloc.h"
#include "encoders/position.h"
#include "kernels/add/add.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/place_rows/place_rows.h"

typedef struct sjepa {
  int64_t width, channel_columns;
  double range_cm, time_base;
  sn_param *offsets; /* (n_channel_ids, c_s) */
  bool unknown_by_place;
} sjepa;

typedef struct sjepa_work {
  sn_position_data *fixed; /* (n_rows, C) */
  int32_t *channels;       /* (n_rows) -2 none */
  int32_t *rows;           /* (n_rows) i, or -1 where there is no offset */
} sjepa_work;

static sn_status create(const sn_position_setup *setup, void **self, sn_error *err) {
  const int64_t c = setup->width, c_s = 6 * (5 * c / 64);
  sjepa *s = NULL;
  sn_status status;
  double base = sn_config_real(setup->config, "model.position_period");
  if (base == 0) base = (double)setup->data->most_positions;
  if (c % 2 != 0 || c_s < 6)
    return sn_fail(err, SN_E_ARGUMENT, "sjepa: a width of %lld: expected an even number of at least 14", (long long)c);
  if (setup->data->n_channel_ids < 1)
    return sn_fail(err, SN_E_ARGUMENT, "sjepa: these data have no table of channels, and it keeps a row for each");
  if (base == 0)
    return sn_fail(err, SN_E_ARGUMENT, "model.position_period: sjepa takes the longest sample's steps as its base: set it");
  SN_TRY(sn_alloc(&s, 1, sizeof *s, "sjepa", err));
  *s = (sjepa){.width = c, .channel_columns = c_s, .time_base = base < 2 ? 2 : base,
               .range_cm = 200 * sn_config_real(setup->config, "model.position_range"),
               .unknown_by_place = sn_config_text(setup->config, "model.unknown_channel")[0] == 'p'};
  status = sn_position_param(setup, "sjepa.channel.weight", SN_ROLE_TOKEN, setup->data->n_channel_ids, c_s, SN_INIT_ZEROS, 1,
                             &s->offsets, err);
  if (status != SN_OK) {
    sn_free(s);
    return status;
  }
  *self = s;
  return SN_OK;
}

static void free_work(void *work) {
  sjepa_work *w = work;
  if (w == NULL) return;
  sn_position_data_destroy(w->fixed);
  sn_free(w->channels);
  sn_free(w->rows);
  sn_free(w);
}

static sn_status fill_row(const sjepa *s, const sn_position_rows *rows, int64_t r, double *row, sn_error *err) {
  const int64_t axis = s->channel_columns / 3;
  for (int a = 0; a < 3; a++) {
    const double cm = 100 * (double)rows->places[3 * r + a] + s->range_cm / 2;
    if (!(cm >= 0 && cm <= s->range_cm))
      return sn_fail(err, SN_E_ARGUMENT, "sjepa: a sensor at %g m lies outside [-%g, %g] m: raise model.position_range",
                     (double)rows->places[3 * r + a], s->range_cm / 200, s->range_cm / 200);
    sn_sincos_row_base(cm, axis, s->range_cm, row + a * axis);
  }
  sn_sincos_row_base(rows->units[r], s->width - s->channel_columns, s->time_base, row + s->channel_columns);
  return SN_OK;
}

static sn_status prepare(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work, sn_error *err) {
  const sjepa *s = self;
  sjepa_work *w = NULL;
  double *row = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "sjepa work", err));
  SN_TRY_GOTO(sn_position_data_create(rows->n_rows, s->width, residual, &w->fixed, err), done);
  SN_TRY_GOTO(sn_alloc(&w->channels, rows->n_rows, sizeof *w->channels, "sjepa work", err), done);
  SN_TRY_GOTO(sn_alloc(&w->rows, rows->n_rows, sizeof *w->rows, "sjepa work", err), done);
  SN_TRY_GOTO(sn_alloc(&row, s->width, sizeof *row, "sjepa work", err), done);
  for (int64_t r = 0; r < rows->n_rows; r++) {
    const int64_t t = rows->tokens[r];
    w->channels[r] = -2;
    w->rows[r] = -1;
    if (t < 0) continue;
    if (rows->batch->channels[t] >= 0) {
      w->channels[r] = rows->batch->channels[t];
      w->rows[r] = (int32_t)r;
    } else if (!s->unknown_by_place) {
      status = sn_fail(err, SN_E_ARGUMENT, "sjepa: channel number %d of a sample has a name that is not in the table: leave it "
                       "out, or set model.unknown_channel to position", (int)rows->batch->series[t]);
      goto done;
    }
    SN_TRY_GOTO(fill_row(s, rows, r, row, err), done);
    sn_position_data_set(w->fixed, r, row);
  }
  *work = w;
  w = NULL;
done:
  free_work(w);
  sn_free(row);
  return status;
}

static sn_status encode(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                        sn_error *err) {
  const sjepa *s = self;
  const sjepa_work *w = work;
  sn_value *fixed, *table, *offsets, *placed;
  SN_TRY(sn_position_data_value(tape, &fixed, w->fixed, n_rows, err));
  SN_TRY(sn_tape_param(tape, &table, s->offsets, err));
  SN_TRY(sn_gather_rows(tape, &offsets, table, NULL, w->channels, n_rows, err));
  sn_place_rows_attr place = {.n_sources = 1, .index = {w->rows}, .column = {0}, .n_out = n_rows, .columns = s->width};
  SN_TRY(sn_place_rows(tape, &placed, &offsets, &place, err));
  return sn_add(tape, encoding, placed, fixed, err);
}

const sn_position_kind sn_position_sjepa = {.name = "sjepa",
                                            .summary = "a trainable row per channel beside a sinusoid of time",
                                            .needs_place = true,
                                            .tells_time = true,
                                            .create = create,
                                            .destroy = sn_free,
                                            .prepare = prepare,
                                            .free_work = free_work,
                                            .encode = encode};
