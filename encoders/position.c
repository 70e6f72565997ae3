#include "encoders/position.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "kernels/add/add.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"

const sn_config_entry sn_position_config[] = {
    {"model.position", SN_CONFIG_TEXTS, "sincos", 0, 0, NULL, NULL,
     "list, summed: sincos, rope (time); fourier4d, reve2025, learned4d, sjepa (place and time); sensor6d (place, direction, "
     "type); or none alone"},
    {"model.position_norm", SN_CONFIG_CHOICE, "none", 0, 0, NULL, "none|layernorm", "LayerNorm over the sum of the parts"},
    {"model.position_frequencies", SN_CONFIG_INT, "0", 0, 16, NULL, NULL,
     "fourier4d, reve2025: frequencies per axis n, n^4 >= width / 2; 0: the smallest"},
    {"model.position_period", SN_CONFIG_REAL, "0", 0, 1e9, NULL, NULL,
     "fourier4d, sjepa: steps after which time may repeat, at least those of a sample; 0: the longest sample's"},
    {"model.position_time_scale", SN_CONFIG_REAL, "0", 0, 1e6, NULL, NULL,
     "reve2025: factor of the step; 0: the published 0.1, which serves 17 steps"},
    {"model.position_range", SN_CONFIG_QUANTITY, "0.2", 1e-3, 10, "m", NULL,
     "sjepa: sensors lie within plus or minus this on each axis"},
    {"model.position_jitter", SN_CONFIG_QUANTITY, "0", 0, 1, "m", NULL,
     "standard deviation by which places are moved in training, per channel, sample and epoch; REVE: 2.5 mm"},
    {"model.position_missing", SN_CONFIG_CHOICE, "error", 0, 0, NULL, "error|origin",
     "a token without a place where one is needed: refused, or taken as lying at the origin"},
    {"model.channel", SN_CONFIG_CHOICE, "table", 0, 0, NULL, "table|direction|none",
     "channel: learned row per channel, linear map of its direction, or none"},
    {"model.unknown_channel", SN_CONFIG_CHOICE, "error", 0, 0, NULL, "error|position",
     "a channel whose name is not in the table: refused, or told apart by its place alone"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

#define SN_POSITION(name) extern const sn_position_kind sn_position_##name;
#include "encoders/position/positions.def"
#undef SN_POSITION
const sn_position_kind *const sn_position_kinds[] = {
#define SN_POSITION(name) &sn_position_##name,
#include "encoders/position/positions.def"
#undef SN_POSITION
    NULL};

enum { MOST_PARTS = 8, NAMED_CHANNELS = 6 };

struct sn_positions {
  sn_encoder_data data;
  int64_t width;
  int n_parts;
  sn_position_part parts[MOST_PARTS + 1]; /* of model.position; then the channel's, if any */
  int n_summed;                           /* parts before the channel's: what the norm is over */
  bool needs_place, tells_time, missing_is_error, masks_empty;
  sn_param *norm_weight, *norm_bias;
  double norm_eps, jitter;
  uint64_t seed;
};

struct sn_positions_work {
  int64_t n_rows;
  int32_t *own; /* (n_rows) i, or -2 for rows of no token */
  int n_parts;
  void *parts[MOST_PARTS + 1];
  void (*free_work[MOST_PARTS + 1])(void *work);
};

double sn_time_unit(const sn_encoder_data *data, const sn_token_batch *batch, int64_t token) {
  if (data->step <= 0) return (double)batch->positions[token];
  /* Coordinates are patch centres; a grid of patches gives the integers 0, 1, 2, ... exactly. */
  const double unit = (double)batch->coordinates[4 * token + 3] / data->step - 0.5, nearest = floor(unit + 0.5);
  return fabs(unit - nearest) < 1e-4 ? nearest : unit;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static const char *part_name(const sn_config *config, int64_t i) { return sn_config_list_text(config, "model.position", i); }

static bool lists(const sn_config *config, const char *name) {
  for (int64_t i = 0; i < sn_config_list_length(config, "model.position"); i++)
    if (strcmp(part_name(config, i), name) == 0) return true;
  return false;
}

bool sn_positions_use_rope(const sn_config *config) { return lists(config, "rope"); }
bool sn_positions_tell_time(const sn_positions *positions) { return positions->tells_time; }

static sn_status find_kind(const char *name, const sn_position_kind **out, sn_error *err) {
  const char *names[32];
  int64_t n = 0;
  for (int i = 0; sn_position_kinds[i] != NULL; i++) {
    names[n++] = sn_position_kinds[i]->name;
    if (strcmp(name, names[n - 1]) != 0) continue;
    *out = sn_position_kinds[i];
    return SN_OK;
  }
  names[n++] = "none";
  const char *near = sn_nearest_name(name, names, n);
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "model.position", "model.position: '%s' is no encoding%s%s%s", name,
                    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

/* What makes no sense together. */
static sn_status check_parts(const sn_config *c, const sn_encoder_data *data, sn_error *err) {
  static const char *const TIME[] = {"sincos", "rope", "fourier4d", "reve2025", "sjepa"};
  const int64_t n = sn_config_list_length(c, "model.position");
  const char *time = NULL;
  if (n == 0 || n > MOST_PARTS)
    return sn_fail(err, SN_E_ARGUMENT, "model.position: expected 1 to %d parts, found %lld; none is written 'none'", MOST_PARTS,
                   (long long)n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++)
      if (strcmp(part_name(c, i), part_name(c, j)) == 0)
        return sn_fail(err, SN_E_ARGUMENT, "model.position: '%s' stands twice", part_name(c, i));
  if (lists(c, "none") && n > 1) return sn_fail(err, SN_E_ARGUMENT, "model.position: 'none' stands alone or not at all");
  for (size_t k = 0; k < sizeof TIME / sizeof TIME[0]; k++) {
    if (!lists(c, TIME[k])) continue;
    if (time != NULL)
      return sn_fail(err, SN_E_ARGUMENT, "model.position: '%s' and '%s' both say what time it is: take one", time, TIME[k]);
    time = TIME[k];
  }
  if (lists(c, "sensor6d") && time == NULL && !lists(c, "learned4d"))
    return sn_fail(err, SN_E_ARGUMENT, "model.position: sensor6d says nothing of time: add sincos or rope");
  if (lists(c, "sjepa") && strcmp(sn_config_text(c, "model.channel"), "table") == 0)
    return sn_fail(err, SN_E_ARGUMENT, "model.position: sjepa has a row per channel of its own: set model.channel to none");
  return SN_OK;
}

static sn_status check_options(const sn_positions *p, const sn_config *c, sn_error *err) {
  if (p->jitter > 0 && !p->needs_place)
    return sn_fail(err, SN_E_ARGUMENT, "model.position_jitter: no part of model.position reads places");
  if (strcmp(sn_config_text(c, "model.position_norm"), "none") != 0 && p->n_summed == 0)
    return sn_fail(err, SN_E_ARGUMENT, "model.position_norm: model.position adds nothing that could be normalised");
  if (strcmp(sn_config_text(c, "model.unknown_channel"), "position") == 0 && !p->needs_place)
    return sn_fail(err, SN_E_ARGUMENT,
                   "model.unknown_channel position: no part of model.position reads places, nothing would tell such channels apart");
  if (sn_config_real(c, "model.position_time_scale") > 0 && !lists(c, "reve2025"))
    return sn_fail(err, SN_E_ARGUMENT, "model.position_time_scale: only reve2025 has it");
  return SN_OK;
}

static sn_status add_part(sn_positions *p, const sn_position_setup *setup, const sn_position_kind *kind, sn_error *err) {
  void *self = NULL;
  p->needs_place = p->needs_place || kind->needs_place;
  p->tells_time = p->tells_time || kind->tells_time;
  if (kind->create == NULL) return SN_OK;
  SN_TRY(kind->create(setup, &self, err));
  p->parts[p->n_parts++] = (sn_position_part){.kind = kind, .self = self};
  p->masks_empty = p->masks_empty || kind->fills_empty;
  return SN_OK;
}

static sn_status add_parts(sn_positions *p, const sn_position_setup *setup, sn_error *err) {
  const sn_config *c = setup->config;
  const char *channel = sn_config_text(c, "model.channel");
  for (int64_t i = 0; i < sn_config_list_length(c, "model.position"); i++) {
    const sn_position_kind *kind;
    const char *name = lists(c, "none") ? setup->when_none : part_name(c, i);
    if (name != NULL && strcmp(name, "rope") == 0) {
      p->tells_time = true;
      name = setup->beside_rope;
    }
    if (name == NULL) continue;
    SN_TRY(find_kind(name, &kind, err));
    SN_TRY(add_part(p, setup, kind, err));
  }
  p->n_summed = p->n_parts;
  if (strcmp(sn_config_text(c, "model.position_norm"), "layernorm") == 0 && p->n_summed > 0) {
    SN_TRY(sn_position_param(setup, "norm.weight", SN_ROLE_NORM, p->width, 0, SN_INIT_ONES, 1, &p->norm_weight, err));
    SN_TRY(sn_position_param(setup, "norm.bias", SN_ROLE_BIAS, p->width, 0, SN_INIT_ZEROS, 1, &p->norm_bias, err));
    p->masks_empty = true;
  }
  if (strcmp(channel, "table") == 0 && setup->data->n_channel_ids > 0)
    return add_part(p, setup, &sn_position_channel_table, err);
  if (strcmp(channel, "direction") == 0) return add_part(p, setup, &sn_position_channel_direction, err);
  return SN_OK;
}

sn_status sn_positions_create(const sn_position_setup *setup, sn_positions **out, sn_error *err) {
  const sn_config *c = setup->config;
  sn_positions *p = NULL;
  sn_status status;
  SN_TRY(check_parts(c, setup->data, err));
  SN_TRY(sn_alloc(&p, 1, sizeof *p, "position encoding", err));
  p->data = *setup->data;
  p->width = setup->width;
  p->norm_eps = sn_config_real(c, "model.norm_eps");
  p->jitter = sn_config_real(c, "model.position_jitter");
  p->seed = sn_config_has_key(c, "train.seed") ? (uint64_t)sn_config_int(c, "train.seed") : 0;
  p->missing_is_error = strcmp(sn_config_text(c, "model.position_missing"), "error") == 0;
  SN_TRY_GOTO(add_parts(p, setup, err), fail);
  SN_TRY_GOTO(check_options(p, c, err), fail);
  *out = p;
  return SN_OK;
fail:
  sn_positions_destroy(p);
  return status;
}

void sn_positions_destroy(sn_positions *positions) {
  if (positions == NULL) return;
  for (int i = 0; i < positions->n_parts; i++) positions->parts[i].kind->destroy(positions->parts[i].self);
  sn_free(positions);
}

sn_status sn_position_param(const sn_position_setup *setup, const char *name, sn_param_role role, int64_t rows,
                            int64_t columns, sn_init init, double scale, sn_param **out, sn_error *err) {
  char full[SN_PARAM_NAME];
  int64_t shape[2] = {rows, columns};
  snprintf(full, sizeof full, "%s.position.%s", setup->prefix, name);
  SN_TRY(sn_params_add(setup->params, full, role, columns > 0 ? 2 : 1, shape, init, scale, out, err));
  (*out)->layer = 0;
  return SN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static bool has_place(const sn_token_batch *batch, int64_t t) {
  const float *p = batch->coordinates + 4 * t;
  return p[0] != 0 || p[1] != 0 || p[2] != 0;
}

static sn_status refuse_missing(const sn_positions *p, const sn_position_rows *rows, sn_error *err) {
  char text[160] = "";
  int32_t named[NAMED_CHANNELS];
  int n = 0;
  size_t used = 0;
  for (int64_t r = 0; r < rows->n_rows; r++) {
    const int64_t t = rows->tokens[r];
    if (t < 0 || has_place(rows->batch, t)) continue;
    const int32_t id = rows->batch->channels[t], key = id >= 0 ? id : -1 - rows->batch->series[t];
    bool known = false;
    for (int i = 0; i < n; i++) known = known || named[i] == key;
    if (known) continue;
    if (n == NAMED_CHANNELS) {
      snprintf(text + used, sizeof text - used, ", ...");
      break;
    }
    const char *name = id >= 0 && p->data.channel_name != NULL ? p->data.channel_name(id) : NULL, *comma = n > 0 ? ", " : "";
    int wrote = name != NULL ? snprintf(text + used, sizeof text - used, "%s%.20s", comma, name)
                : id >= 0    ? snprintf(text + used, sizeof text - used, "%sid %d", comma, (int)id)
                             : snprintf(text + used, sizeof text - used, "%snumber %d", comma, (int)rows->batch->series[t]);
    if (wrote > 0 && used + (size_t)wrote < sizeof text) used += (size_t)wrote;
    named[n++] = key;
  }
  if (n == 0) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT,
                 "model.position needs places, and these channels have none: %s; leave them out, or take them without "
                 "(model.position_missing: origin)", text);
}

/* Places of the rows, moved by the jitter: one draw per (sample, channel). */
static void fill_places(const sn_positions *p, const sn_position_rows *rows, const uint64_t *epochs, float *places) {
  const sn_token_batch *batch = rows->batch;
  int32_t last_sample = -1, last_series = -1;
  double move[3] = {0};
  for (int64_t r = 0; r < rows->n_rows; r++) {
    const int64_t t = rows->tokens[r];
    if (t < 0 || !has_place(batch, t)) continue;
    const bool jitters = epochs != NULL && p->jitter > 0;
    if (jitters && (rows->samples[r] != last_sample || batch->series[t] != last_series)) {
      last_sample = rows->samples[r];
      last_series = batch->series[t];
      sn_random whole = sn_random_at(p->seed, SN_PURPOSE_AUGMENT, epochs[last_sample], batch->sample_ids[last_sample]);
      sn_random random = sn_random_fork(&whole, 0x706f7300000000ull + (uint64_t)last_series);
      for (int a = 0; a < 3; a++) move[a] = p->jitter * sn_random_normal(&random);
    }
    for (int a = 0; a < 3; a++) places[3 * r + a] = (float)((double)batch->coordinates[4 * t + a] + move[a]);
  }
}

static sn_status prepare_parts(const sn_positions *p, const sn_position_rows *rows, sn_dtype residual,
                               sn_positions_work *w, sn_error *err) {
  if (p->needs_place && p->missing_is_error) SN_TRY(refuse_missing(p, rows, err));
  for (int i = 0; i < p->n_parts; i++) {
    SN_TRY(p->parts[i].kind->prepare(p->parts[i].self, rows, residual, &w->parts[i], err));
    w->free_work[i] = p->parts[i].kind->free_work;
    w->n_parts = i + 1;
  }
  return SN_OK;
}

sn_status sn_positions_prepare(const sn_positions *positions, const sn_token_batch *batch, const int64_t *tokens,
                               int64_t n_rows, const uint64_t *epochs, sn_dtype residual, sn_positions_work **out,
                               sn_error *err) {
  sn_positions_work *w = NULL;
  double *units = NULL;
  int32_t *samples = NULL;
  float *places = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "position work", err));
  w->n_rows = n_rows;
  SN_TRY_GOTO(sn_alloc(&w->own, n_rows, sizeof *w->own, "position work", err), done);
  SN_TRY_GOTO(sn_alloc(&units, n_rows, sizeof *units, "position work", err), done);
  SN_TRY_GOTO(sn_alloc(&samples, n_rows, sizeof *samples, "position work", err), done);
  if (positions->needs_place) SN_TRY_GOTO(sn_alloc(&places, 3 * n_rows, sizeof *places, "position work", err), done);
  int64_t sample = 0;
  for (int64_t r = 0; r < n_rows; r++) {
    const int64_t t = tokens[r];
    w->own[r] = t >= 0 ? (int32_t)r : -2;
    if (t < 0) continue;
    if (t < batch->offsets[sample]) sample = 0; /* rows usually ascend */
    while (t >= batch->offsets[sample + 1]) sample++;
    samples[r] = (int32_t)sample;
    units[r] = sn_time_unit(&positions->data, batch, t);
  }
  sn_position_rows rows = {.batch = batch, .n_rows = n_rows, .tokens = tokens, .samples = samples, .units = units,
                           .places = places, .data = &positions->data};
  if (places != NULL) fill_places(positions, &rows, epochs, places);
  SN_TRY_GOTO(prepare_parts(positions, &rows, residual, w, err), done);
  *out = w;
  w = NULL;
done:
  sn_positions_work_destroy(w);
  sn_free(units);
  sn_free(samples);
  sn_free(places);
  return status;
}

void sn_positions_work_destroy(sn_positions_work *work) {
  if (work == NULL) return;
  for (int i = 0; i < work->n_parts; i++) work->free_work[i](work->parts[i]);
  sn_free(work->own);
  sn_free(work);
}

/* --- tape --------------------------------------------------------------------------------------------------------- */

static sn_status encode_part(sn_tape *tape, sn_value **e, const sn_positions *p, const sn_positions_work *w, int i,
                             sn_error *err) {
  return p->parts[i].kind->encode(tape, e, p->parts[i].self, w->parts[i], w->n_rows, err);
}

/* The parts of model.position as one value, empty rows zeroed. */
static sn_status sum_parts(sn_tape *tape, sn_value **sum, const sn_positions *p, const sn_positions_work *w, sn_error *err) {
  sn_value *part, *gamma, *beta;
  SN_TRY(encode_part(tape, sum, p, w, 0, err));
  for (int i = 1; i < p->n_summed; i++) {
    SN_TRY(encode_part(tape, &part, p, w, i, err));
    SN_TRY(sn_add(tape, sum, *sum, part, err));
  }
  if (p->norm_weight != NULL) {
    SN_TRY(sn_tape_param(tape, &gamma, p->norm_weight, err));
    SN_TRY(sn_tape_param(tape, &beta, p->norm_bias, err));
    SN_TRY(sn_layernorm_as(tape, sum, *sum, gamma, beta, p->norm_eps, sn_tape_residual(tape), err));
  }
  return sn_gather_rows(tape, sum, *sum, NULL, w->own, w->n_rows, err);
}

sn_status sn_positions_add(sn_tape *tape, sn_value **y, sn_value *x, const sn_positions *positions,
                           const sn_positions_work *work, sn_error *err) {
  sn_value *part;
  int first = 0;
  *y = x;
  if (positions->masks_empty && positions->n_summed > 0) {
    SN_TRY(sum_parts(tape, &part, positions, work, err));
    SN_TRY(sn_add(tape, y, *y, part, err));
    first = positions->n_summed;
  }
  for (int i = first; i < positions->n_parts; i++) {
    SN_TRY(encode_part(tape, &part, positions, work, i, err));
    SN_TRY(sn_add(tape, y, *y, part, err));
  }
  return SN_OK;
}

/* --- tables ------------------------------------------------------------------------------------------------------- */

sn_status sn_position_data_create(int64_t n_rows, int64_t width, sn_dtype dtype, sn_position_data **out, sn_error *err) {
  sn_position_data *data = NULL;
  int64_t count;
  if (!sn_mul_ok(n_rows, width, &count)) return sn_fail(err, SN_E_MEMORY, "position encoding: too large");
  SN_TRY(sn_alloc(&data, 1, sizeof *data, "position encoding", err));
  *data = (sn_position_data){.dtype = dtype, .width = width};
  const sn_status status = sn_alloc(&data->values, count, sn_dtype_size(dtype), "position encoding", err);
  if (status != SN_OK) {
    sn_free(data);
    return status;
  }
  *out = data;
  return SN_OK;
}

void sn_position_data_destroy(void *data) {
  if (data == NULL) return;
  sn_free(((sn_position_data *)data)->values);
  sn_free(data);
}

void sn_position_data_set(sn_position_data *data, int64_t row, const double *values) {
  const int64_t at = row * data->width;
  for (int64_t c = 0; c < data->width; c++) {
    if (data->dtype == SN_F64) ((double *)data->values)[at + c] = values[c];
    else ((float *)data->values)[at + c] = (float)values[c];
  }
}

sn_status sn_position_data_value(sn_tape *tape, sn_value **y, const sn_position_data *data, int64_t n_rows, sn_error *err) {
  return sn_tape_input(tape, y, sn_tensor_2d(data->values, data->dtype, n_rows, data->width), false, err);
}

void sn_sincos_row_base(double u, int64_t width, double base, double *row) {
  int64_t half = width / 2;
  for (int64_t k = 0; k < half; k++) {
    double w = pow(base, -(double)k / (double)half);
    row[k] = sin(u * w);
    row[half + k] = cos(u * w);
  }
}

void sn_sincos_row(double u, int64_t width, double *row) { sn_sincos_row_base(u, width, 10000.0, row); }

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
