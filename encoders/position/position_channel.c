/* The channel's own row (model.channel).
 *
 * table      a learned row per channel name (the id that the modality's table gives it). A name that is not in the table is
 *            an error that names the channel, or (model.unknown_channel: position) gets no row: its place must tell it apart.
 * direction  a linear map of the channel's direction (lead vector, coil normal), without bias. */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/position.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/cast/cast.h"
#include "kernels/linear/linear.h"

typedef struct channel_part {
  sn_param *weight;
  bool unknown_by_place;
} channel_part;

static sn_status create(const sn_position_setup *setup, int64_t rows, int64_t columns, sn_param_role role, void **self,
                        sn_error *err) {
  channel_part *c = NULL;
  int64_t shape[2] = {rows, columns};
  char name[SN_PARAM_NAME];
  SN_TRY(sn_alloc(&c, 1, sizeof *c, "channel encoding", err));
  c->unknown_by_place = strcmp(sn_config_text(setup->config, "model.unknown_channel"), "position") == 0;
  snprintf(name, sizeof name, "%s.channel.weight", setup->prefix);
  const sn_status status =
      sn_params_add(setup->params, name, role, 2, shape, SN_INIT_TRUNC_NORMAL, 0.02, &c->weight, err);
  if (status != SN_OK) {
    sn_free(c);
    return status;
  }
  c->weight->layer = 0;
  *self = c;
  return SN_OK;
}

static sn_status create_table(const sn_position_setup *setup, void **self, sn_error *err) {
  return create(setup, setup->data->n_channel_ids, setup->width, SN_ROLE_TOKEN, self, err);
}

static sn_status create_direction(const sn_position_setup *setup, void **self, sn_error *err) {
  return create(setup, setup->width, 3, SN_ROLE_WEIGHT, self, err);
}

static sn_status prepare_table(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work,
                               sn_error *err) {
  const channel_part *c = self;
  int32_t *index = NULL;
  SN_TRY(sn_alloc(&index, rows->n_rows, sizeof *index, "channel encoding", err));
  for (int64_t r = 0; r < rows->n_rows; r++) {
    const int64_t t = rows->tokens[r];
    index[r] = t >= 0 && rows->batch->channels[t] >= 0 ? rows->batch->channels[t] : -2;
    if (t < 0 || rows->batch->channels[t] >= 0 || c->unknown_by_place) continue;
    sn_free(index);
    return sn_fail(err, SN_E_ARGUMENT,
                   "model.channel table: channel number %d of a sample has a name that is not in the table: leave it out, or set "
                   "model.unknown_channel to position", (int)rows->batch->series[t]);
  }
  *work = index;
  return SN_OK;
}

static sn_status encode_table(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                              sn_error *err) {
  const channel_part *c = self;
  sn_value *table;
  SN_TRY(sn_tape_param(tape, &table, c->weight, err));
  return sn_gather_rows(tape, encoding, table, NULL, work, n_rows, err);
}

static sn_status prepare_direction(const void *self, const sn_position_rows *rows, sn_dtype residual, void **work,
                                   sn_error *err) {
  sn_position_data *data = NULL;
  SN_TRY(sn_position_data_create(rows->n_rows, 3, SN_F32, &data, err));
  for (int64_t r = 0; r < rows->n_rows; r++) {
    if (rows->tokens[r] < 0) continue;
    const float *d = rows->batch->orientations + 3 * rows->tokens[r];
    sn_position_data_set(data, r, (double[3]){d[0], d[1], d[2]});
  }
  *work = data;
  return SN_OK;
}

static sn_status encode_direction(sn_tape *tape, sn_value **encoding, const void *self, const void *work, int64_t n_rows,
                                  sn_error *err) {
  const channel_part *c = self;
  sn_value *weight, *directions;
  SN_TRY(sn_tape_param(tape, &weight, c->weight, err));
  SN_TRY(sn_position_data_value(tape, &directions, work, n_rows, err));
  SN_TRY(sn_cast(tape, &directions, directions, sn_tape_product(tape), err));
  return sn_linear(tape, encoding, directions, weight, NULL, sn_tape_residual(tape), err);
}

const sn_position_kind sn_position_channel_table = {.name = "table",
                                                    .summary = "a learned row per channel",
                                                    .create = create_table,
                                                    .destroy = sn_free,
                                                    .prepare = prepare_table,
                                                    .free_work = sn_free,
                                                    .encode = encode_table};
const sn_position_kind sn_position_channel_direction = {.name = "direction",
                                                        .summary = "a linear map of the channel's direction",
                                                        .create = create_direction,
                                                        .destroy = sn_free,
                                                        .prepare = prepare_direction,
                                                        .free_work = sn_position_data_destroy,
                                                        .encode = encode_direction};
