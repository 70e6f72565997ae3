#include "objectives/mae.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/linear/linear.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "objectives/masks/mask.h"

static const sn_config_entry MAE_CONFIG[] = {
    {"mae.mask_ratio", SN_CONFIG_REAL, "0.75", 0.01, 0.99, NULL, NULL, "share of the tokens that is hidden"},
    {"mae.mask", SN_CONFIG_CHOICE, "random", 0, 0, NULL, "random|contiguous", "which tokens are hidden together"},
    {"mae.mask_scope", SN_CONFIG_CHOICE, "sample", 0, 0, NULL, "sample|channel",
     "what the ratio counts over: the whole sample, or each channel"},
    {"mae.target", SN_CONFIG_CHOICE, "normalised", 0, 0, NULL, "normalised|raw",
     "patch minus its mean over its standard deviation, or as it is"},
    {"mae.loss", SN_CONFIG_CHOICE, "l2", 0, 0, NULL, "l2|l1|smooth_l1", "distance between prediction and target"},
    {"mae.reduction", SN_CONFIG_CHOICE, "token_mean", 0, 0, NULL, "token_mean|sample_mean",
     "every hidden token counts the same, or every sample"},
    {"mae.decoder_width", SN_CONFIG_INT, "96", 8, 8192, NULL, NULL, "width of the decoder"},
    {"mae.decoder_depth", SN_CONFIG_INT, "1", 0, 64, NULL, NULL, "blocks of the decoder"},
    {"mae.decoder_heads", SN_CONFIG_INT, "3", 1, 256, NULL, NULL, "attention heads of the decoder"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

enum { COUNT_MASKED, COUNT_VISIBLE, COUNT_FLAT, COUNT_INVALID, COUNT_UNMASKABLE, N_COUNTERS };

typedef struct mae {
  sn_objective base;
  sn_encoder *encoder;
  sn_backbone *decoder;
  sn_param *embed_weight, *embed_bias, *mask_token, *channel, *head_weight, *head_bias;
  sn_mask_sampler sampler;
  sn_mask_options mask;
  sn_mae_target target;
  sn_patch_loss loss;
  bool keep_flat, sample_mean, sincos;
  int64_t width;          /* of the decoder */
  int64_t P;
  uint64_t seed;
  int64_t pack_samples;
  int64_t visible_slots, masked_slots, decoder_rows;
  sn_dtype residual;
} mae;

typedef struct mae_work {
  sn_encoder_input *input;   /* the visible tokens */
  int64_t n_samples;
  int32_t *decoder_index;    /* (decoder_rows) row of the encoder's output, -1 mask token, -2 beyond */
  int32_t *position_index;   /* (decoder_rows) -2: class token or beyond */
  void *position_table;
  int64_t n_positions;
  int32_t *channels;         /* (decoder_rows) */
  int64_t *offsets;          /* (n_samples + 1) rows of the decoder */
  float *rope_units;         /* (decoder_rows) */
  int32_t *head_index;       /* (masked_slots) decoder row of each token with a target, -2 beyond */
  float *targets;            /* (masked_slots, P) */
  uint8_t *target_valid;     /* (masked_slots, P) or NULL */
  float *weights;            /* (masked_slots) 1, or 1 / targets of the sample; 0 beyond */
  int64_t n_targets;
  double count;
  int64_t counters[N_COUNTERS];
} mae_work;

int sn_mae_patch_target(const float *patch, const uint8_t *valid, int64_t P, sn_mae_target kind, bool keep_flat,
                        float *target) {
  int64_t n = 0;
  double sum = 0, squares = 0;
  for (int64_t p = 0; p < P; p++)
    if (valid == NULL || valid[p]) {
      sum += patch[p];
      n++;
    }
  memset(target, 0, (size_t)P * sizeof *target);
  if (2 * n < P || n == 0) return 2;
  if (kind == SN_MAE_RAW) {
    for (int64_t p = 0; p < P; p++)
      if (valid == NULL || valid[p]) target[p] = patch[p];
    return 0;
  }
  const double mean = sum / (double)n;
  for (int64_t p = 0; p < P; p++)
    if (valid == NULL || valid[p]) squares += (patch[p] - mean) * (patch[p] - mean);
  const double variance = n > 1 ? squares / (double)(n - 1) : 0;
  if (!keep_flat && variance < 1e-8) return 1;
  const double scale = 1 / sqrt(variance + 1e-6);
  for (int64_t p = 0; p < P; p++)
    if (valid == NULL || valid[p]) target[p] = (float)((patch[p] - mean) * scale);
  return 0;
}

/* --- collate ------------------------------------------------------------------------------------------------------ */

static void free_work(void *work) {
  mae_work *w = work;
  if (w == NULL) return;
  sn_encoder_input_destroy(w->input);
  sn_free(w->decoder_index);
  sn_free(w->position_index);
  sn_free(w->position_table);
  sn_free(w->channels);
  sn_free(w->offsets);
  sn_free(w->rope_units);
  sn_free(w->head_index);
  sn_free(w->targets);
  sn_free(w->target_valid);
  sn_free(w->weights);
  sn_free(w);
}

static sn_status allocate_work(const mae *m, const sn_token_batch *batch, mae_work **out, sn_error *err) {
  mae_work *w = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "mae work", err));
  w->n_samples = batch->n_samples;
  const int64_t rows = m->decoder_rows, slots = m->masked_slots;
  SN_TRY_GOTO(sn_alloc(&w->decoder_index, rows, sizeof *w->decoder_index, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->position_index, rows, sizeof *w->position_index, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->channels, rows, sizeof *w->channels, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->rope_units, rows, sizeof *w->rope_units, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->offsets, batch->n_samples + 1, sizeof *w->offsets, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->head_index, slots, sizeof *w->head_index, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->targets, slots * m->P, sizeof *w->targets, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->weights, slots, sizeof *w->weights, "mae work", err), fail);
  if (batch->valid != NULL)
    SN_TRY_GOTO(sn_alloc(&w->target_valid, slots * m->P, sizeof *w->target_valid, "mae work", err), fail);
  *out = w;
  return SN_OK;
fail:
  free_work(w);
  return status;
}

/* Masks of every sample. visible: token indices, visible_offsets (n_samples + 1). A sample that cannot be masked has
 * neither visible nor hidden tokens. */
static sn_status draw_masks(const mae *m, const sn_token_batch *batch, const uint64_t *epochs, uint8_t *masked,
                            int64_t *visible, int64_t *visible_offsets, int64_t *counters, sn_error *err) {
  int64_t n_visible = 0;
  for (int64_t s = 0; s < batch->n_samples; s++) {
    const int64_t first = batch->offsets[s], n = batch->offsets[s + 1] - first;
    int64_t n_masked = 0;
    sn_mask_tokens tokens = {.n = n, .coordinates = batch->coordinates + 4 * first,
                             .channels = batch->channels + first, .positions = batch->positions + first};
    sn_random random = sn_random_at(m->seed, SN_PURPOSE_MASK, epochs[s], batch->sample_ids[s]);
    SN_TRY(m->sampler(&tokens, &m->mask, &random, masked + first, &n_masked, err));
    visible_offsets[s] = n_visible;
    if (n_masked == 0 || n_masked == n) {
      counters[COUNT_UNMASKABLE]++;
      memset(masked + first, 2, (size_t)n); /* neither visible nor hidden */
      continue;
    }
    for (int64_t i = first; i < first + n; i++)
      if (!masked[i]) visible[n_visible++] = i;
    counters[COUNT_MASKED] += n_masked;
    counters[COUNT_VISIBLE] += n - n_masked;
  }
  visible_offsets[batch->n_samples] = n_visible;
  return SN_OK;
}

/* Rows of the decoder and targets of the hidden tokens. */
static sn_status lay_out_decoder(const mae *m, const sn_token_batch *batch, const uint8_t *masked, mae_work *w,
                                 double *units, sn_error *err) {
  const bool has_class = sn_encoder_has_class_token(m->encoder);
  const int64_t n_special = sn_encoder_n_special(m->encoder);
  int64_t row = 0, n_units = 0;
  for (int64_t s = 0; s < batch->n_samples; s++) {
    const int64_t first = batch->offsets[s], last = batch->offsets[s + 1], first_target = w->n_targets;
    int64_t encoder_row = w->input->offsets[s];
    w->offsets[s] = row;
    if (last > first && masked[first] == 2) continue;
    if (has_class) {
      w->decoder_index[row] = (int32_t)encoder_row; /* registers are left behind */
      w->position_index[row] = w->channels[row] = -2;
      row++;
    }
    encoder_row += n_special;
    for (int64_t t = first; t < last; t++, row++) {
      w->channels[row] = batch->channels[t] >= 0 ? batch->channels[t] : -2;
      w->position_index[row] = (int32_t)n_units;
      units[n_units] = sn_encoder_unit(m->encoder, batch, t);
      w->rope_units[row] = (float)units[n_units++];
      w->decoder_index[row] = masked[t] ? -1 : (int32_t)encoder_row++;
      if (!masked[t]) continue;
      if (w->n_targets >= m->masked_slots)
        return sn_fail(err, SN_E_STATE, "mae: more than %lld hidden tokens in a pack", (long long)m->masked_slots);
      const uint8_t *valid = batch->valid != NULL ? batch->valid + t * m->P : NULL;
      int none = sn_mae_patch_target(batch->patches + t * m->P, valid, m->P, m->target, m->keep_flat,
                                     w->targets + w->n_targets * m->P);
      if (none != 0) {
        w->counters[none == 1 ? COUNT_FLAT : COUNT_INVALID]++;
        continue;
      }
      if (valid != NULL) memcpy(w->target_valid + w->n_targets * m->P, valid, (size_t)m->P);
      w->head_index[w->n_targets++] = (int32_t)row;
    }
    if (encoder_row != w->input->offsets[s + 1])
      return sn_fail(err, SN_E_STATE, "mae: sample %lld has %lld encoder rows, %lld were used", (long long)s,
                     (long long)(w->input->offsets[s + 1] - w->input->offsets[s]),
                     (long long)(encoder_row - w->input->offsets[s]));
    const int64_t n = w->n_targets - first_target;
    for (int64_t k = first_target; k < w->n_targets; k++) w->weights[k] = m->sample_mean ? 1.0f / (float)n : 1.0f;
    if (n > 0) w->count += m->sample_mean ? 1.0 : (double)n;
  }
  w->offsets[batch->n_samples] = row;
  for (int64_t r = row; r < m->decoder_rows; r++) w->decoder_index[r] = w->position_index[r] = w->channels[r] = -2;
  for (int64_t k = w->n_targets; k < m->masked_slots; k++) w->head_index[k] = -2;
  return SN_OK;
}

/* The audit: a token with loss is one that the decoder saw only as a mask token. */
static sn_status audit(const mae *m, const mae_work *w, sn_error *err) {
  for (int64_t k = 0; k < w->n_targets; k++)
    if (w->decoder_index[w->head_index[k]] != -1)
      return sn_fail(err, SN_E_STATE, "mae audit: token in decoder row %d carries loss but was visible to the encoder",
                     (int)w->head_index[k]);
  return SN_OK;
}

/* position_index held running numbers of units: turns them into rows of the table of distinct units. */
static sn_status make_positions(const mae *m, mae_work *w, const double *units, int64_t n_units, sn_error *err) {
  int32_t *index = NULL;
  sn_position_table table = {0};
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&index, n_units, sizeof *index, "mae positions", err), done);
  SN_TRY_GOTO(sn_position_table_build(units, n_units, n_units, index, &table, err), done);
  for (int64_t r = 0; r < m->decoder_rows; r++)
    if (w->position_index[r] >= 0) w->position_index[r] = index[w->position_index[r]];
  w->n_positions = table.n_rows;
  status = sn_position_table_sincos(&table, m->width, m->residual, &w->position_table, err);
done:
  sn_free(table.units);
  sn_free(index);
  return status;
}

static sn_status collate(const sn_objective *self, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                         sn_error *err) {
  const mae *m = self->self;
  mae_work *w = NULL;
  uint8_t *masked = NULL;
  int64_t *visible = NULL, *visible_offsets = NULL;
  double *units = NULL;
  sn_status status;
  SN_TRY_GOTO(allocate_work(m, batch, &w, err), fail);
  SN_TRY_GOTO(sn_alloc(&masked, batch->n_tokens, sizeof *masked, "mae masks", err), fail);
  SN_TRY_GOTO(sn_alloc(&visible, batch->n_tokens, sizeof *visible, "mae masks", err), fail);
  SN_TRY_GOTO(sn_alloc(&visible_offsets, batch->n_samples + 1, sizeof *visible_offsets, "mae masks", err), fail);
  SN_TRY_GOTO(sn_alloc(&units, batch->n_tokens, sizeof *units, "mae positions", err), fail);
  SN_TRY_GOTO(draw_masks(m, batch, epochs, masked, visible, visible_offsets, w->counters, err), fail);
  SN_TRY_GOTO(sn_encoder_input_create_at(m->encoder, batch, visible, visible_offsets, m->visible_slots, m->pack_samples,
                                         epochs, m->residual, &w->input, err),
              fail);
  SN_TRY_GOTO(lay_out_decoder(m, batch, masked, w, units, err), fail);
  SN_TRY_GOTO(audit(m, w, err), fail);
  int64_t n_units = 0;
  for (int64_t r = 0; r < m->decoder_rows; r++) n_units += w->position_index[r] >= 0;
  if (m->sincos) SN_TRY_GOTO(make_positions(m, w, units, n_units, err), fail);
  *work = w;
  w = NULL;
fail:
  free_work(w);
  sn_free(masked);
  sn_free(visible);
  sn_free(visible_offsets);
  sn_free(units);
  return status;
}

static void counts(const sn_objective *self, const void *work, double *group_counts, int64_t *counters) {
  const mae_work *w = work;
  group_counts[0] += w->count;
  for (int i = 0; i < N_COUNTERS; i++) counters[i] += w->counters[i];
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static sn_status decode(sn_tape *tape, sn_value **y, const mae *m, const mae_work *w, sn_value *features, uint64_t step,
                        sn_error *err) {
  sn_value *weight, *bias, *x, *token;
  const sn_dtype residual = sn_tape_residual(tape);
  SN_TRY(sn_tape_param(tape, &weight, m->embed_weight, err));
  SN_TRY(sn_tape_param(tape, &bias, m->embed_bias, err));
  SN_TRY(sn_linear(tape, &x, features, weight, bias, residual, err));
  SN_TRY(sn_tape_param(tape, &token, m->mask_token, err));
  SN_TRY(sn_gather_rows(tape, &x, x, token, w->decoder_index, m->decoder_rows, err));
  if (m->sincos) SN_TRY(sn_add_positions(tape, &x, x, w->position_table, w->n_positions, w->position_index, err));
  if (m->channel != NULL) {
    sn_value *table, *rows;
    SN_TRY(sn_tape_param(tape, &table, m->channel, err));
    SN_TRY(sn_gather_rows(tape, &rows, table, NULL, w->channels, m->decoder_rows, err));
    SN_TRY(sn_add(tape, &x, x, rows, err));
  }
  sn_rows rows = {.n_rows = m->decoder_rows, .n_segments = w->n_samples, .offsets = w->offsets,
                  .rope_units = m->sincos ? NULL : w->rope_units, .step = step};
  return sn_backbone_forward(tape, y, m->decoder, x, &rows, sn_tape_product(tape), err);
}

static sn_status loss(sn_objective *self, sn_tape *tape, const void *work, uint64_t step, sn_value **sums,
                      sn_error *err) {
  const mae *m = self->self;
  const mae_work *w = work;
  sn_value *features, *x, *weight, *bias, *prediction;
  sums[0] = NULL;
  if (w->n_targets == 0) return SN_OK;
  SN_TRY(sn_encoder_forward(tape, &features, m->encoder, w->input, step, sn_tape_product(tape), err));
  SN_TRY(decode(tape, &x, m, w, features, step, err));
  SN_TRY(sn_gather_rows(tape, &x, x, NULL, w->head_index, m->masked_slots, err));
  SN_TRY(sn_tape_param(tape, &weight, m->head_weight, err));
  SN_TRY(sn_tape_param(tape, &bias, m->head_bias, err));
  SN_TRY(sn_linear(tape, &prediction, x, weight, bias, sn_tape_residual(tape), err));
  sn_value *target, *valid = NULL, *weights, *out[2];
  const int64_t rows = m->masked_slots;
  SN_TRY(sn_tape_input(tape, &target, sn_tensor_2d(w->targets, SN_F32, rows, m->P), false, err));
  SN_TRY(sn_tape_input(tape, &weights, sn_tensor_1d(w->weights, SN_F32, rows), false, err));
  if (w->target_valid != NULL)
    SN_TRY(sn_tape_input(tape, &valid, sn_tensor_2d(w->target_valid, SN_U8, rows, m->P), false, err));
  SN_TRY(sn_masked_patch_loss(tape, out, prediction, target, valid, weights, m->loss, 1.0, err));
  sums[0] = out[0];
  return SN_OK;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void destroy(sn_objective *self) {
  mae *m = self->self;
  sn_backbone_destroy(m->decoder);
  sn_free(m);
}

static const sn_objective_vtable VTABLE = {.name = "mae", .collate = collate, .free_work = free_work, .counts = counts,
                                           .loss = loss, .destroy = destroy};

static sn_status add_matrix(sn_params *params, const char *name, int64_t out, int64_t in, sn_param **weight,
                            sn_param **bias, sn_error *err) {
  char full[SN_PARAM_NAME];
  int64_t shape[2] = {out, in};
  snprintf(full, sizeof full, "decoder.%s.weight", name);
  SN_TRY(sn_params_add(params, full, SN_ROLE_WEIGHT, 2, shape, SN_INIT_XAVIER_UNIFORM, 1, weight, err));
  snprintf(full, sizeof full, "decoder.%s.bias", name);
  SN_TRY(sn_params_add(params, full, SN_ROLE_BIAS, 1, shape, SN_INIT_ZEROS, 0, bias, err));
  (*weight)->layer = (*bias)->layer = -1;
  return SN_OK;
}

static sn_status add_decoder(mae *m, const sn_objective_setup *setup, sn_error *err) {
  const sn_config *c = setup->config;
  sn_params *params = setup->params;
  const sn_encoder_data *data = sn_encoder_data_of(m->encoder);
  SN_TRY(add_matrix(params, "embed", m->width, sn_encoder_width(m->encoder), &m->embed_weight, &m->embed_bias, err));
  int64_t token[2] = {1, m->width};
  SN_TRY(sn_params_add(params, "decoder.mask_token", SN_ROLE_TOKEN, 2, token, SN_INIT_NORMAL, 0.02, &m->mask_token,
                       err));
  m->mask_token->layer = -1;
  if (strcmp(sn_config_text(c, "model.channel"), "none") != 0 && data->n_channel_ids > 0) {
    int64_t table[2] = {data->n_channel_ids, m->width};
    SN_TRY(sn_params_add(params, "decoder.channel.weight", SN_ROLE_TOKEN, 2, table, SN_INIT_TRUNC_NORMAL, 0.02,
                         &m->channel, err));
    m->channel->layer = -1;
  }
  const bool rms = strcmp(sn_config_text(c, "model.norm"), "rmsnorm") == 0;
  sn_backbone_options options = {.prefix = "decoder", .width = m->width, .depth = sn_config_int(c, "mae.decoder_depth"),
                                 .heads = sn_config_int(c, "mae.decoder_heads"),
                                 .mlp_ratio = sn_config_real(c, "model.mlp_ratio"),
                                 .norm = rms ? SN_NORM_RMS : SN_NORM_LAYER, .activation = SN_ACT_GELU,
                                 .qk_norm = SN_NORM_NONE, .qkv_bias = sn_config_bool(c, "model.qkv_bias"),
                                 .norm_eps = sn_config_real(c, "model.norm_eps"), .rope = !m->sincos,
                                 .checkpoint = sn_config_bool(c, "model.checkpoint"), .first_layer = 0};
  SN_TRY(sn_backbone_create(params, &options, &m->decoder, err));
  for (int64_t i = 0; i < sn_params_count(params); i++)
    if (strncmp(sn_params_at(params, i)->name, "decoder.", 8) == 0) sn_params_at(params, i)->layer = -1;
  return add_matrix(params, "head", m->P, m->width, &m->head_weight, &m->head_bias, err);
}

/* Constant shapes for the whole run. When every pack holds only samples of the largest size the counts are known exactly;
 * otherwise rounding can add one half per sample (and channel). */
static void fix_shapes(mae *m, const sn_objective_setup *setup) {
  const int64_t slots = setup->pack_slots, samples = setup->pack_samples;
  const bool uniform = samples * setup->max_tokens <= slots && (samples + 1) * setup->max_tokens > slots;
  int64_t masked_most, visible_most;
  if (uniform && m->mask.scope == SN_MASK_SAMPLE) {
    const int64_t masked = sn_mask_count(setup->max_tokens, &m->mask);
    masked_most = samples * masked;
    visible_most = samples * (setup->max_tokens - masked);
  } else {
    const int64_t channels = sn_encoder_data_of(m->encoder)->n_channel_ids;
    const int64_t groups = m->mask.scope == SN_MASK_CHANNEL && channels > 1 ? channels : 1;
    masked_most = (int64_t)ceil(m->mask.ratio * (double)slots) + samples * groups;
    visible_most = (int64_t)ceil((1 - m->mask.ratio) * (double)slots) + samples * groups;
  }
  if (masked_most > slots) masked_most = slots;
  if (visible_most > slots) visible_most = slots;
  m->masked_slots = sn_round_up(masked_most, SN_TOKEN_BUCKET);
  m->visible_slots = sn_round_up(visible_most, SN_TOKEN_BUCKET);
  m->decoder_rows = sn_encoder_has_class_token(m->encoder) ? sn_round_up(slots + samples, SN_TOKEN_BUCKET) : slots;
}

static sn_status create(const sn_objective_setup *setup, bool compat, sn_objective **out, sn_error *err) {
  const sn_config *c = setup->config;
  mae *m = NULL;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "mae objective", err));
  m->base = (sn_objective){.vtable = &VTABLE, .n_groups = 1, .groups = {"mae"}, .group_weights = {1},
                           .n_counters = N_COUNTERS,
                           .counters = {"masked_tokens", "visible_tokens", "flat_patches", "invalid_patches",
                                        "unmaskable_samples"},
                           .self = m};
  const char *kind = sn_config_text(c, "mae.loss");
  m->encoder = setup->encoder;
  m->sampler = strcmp(sn_config_text(c, "mae.mask"), "contiguous") == 0 ? sn_mask_contiguous : sn_mask_random;
  m->mask = (sn_mask_options){.ratio = sn_config_real(c, "mae.mask_ratio"),
                              .scope = strcmp(sn_config_text(c, "mae.mask_scope"), "channel") == 0 ? SN_MASK_CHANNEL
                                                                                                   : SN_MASK_SAMPLE,
                              .floor_kept = compat};
  m->target = strcmp(sn_config_text(c, "mae.target"), "raw") == 0 ? SN_MAE_RAW : SN_MAE_NORMALISED;
  m->loss = strcmp(kind, "l1") == 0 ? SN_PATCH_L1 : strcmp(kind, "smooth_l1") == 0 ? SN_PATCH_SMOOTH_L1
                                                                                     : SN_PATCH_L2;
  m->keep_flat = compat;
  m->sample_mean = strcmp(sn_config_text(c, "mae.reduction"), "sample_mean") == 0;
  m->sincos = !sn_positions_use_rope(c);
  m->width = sn_config_int(c, "mae.decoder_width");
  m->P = sn_encoder_data_of(m->encoder)->patch_size;
  m->seed = setup->seed;
  m->pack_samples = setup->pack_samples;
  m->residual = setup->residual;
  sn_status status = SN_OK;
  if (m->sincos && m->width % 2 != 0)
    status = sn_fail(err, SN_E_ARGUMENT, "mae.decoder_width %lld: a sine-cosine position needs an even width",
                     (long long)m->width);
  if (status == SN_OK) status = add_decoder(m, setup, err);
  if (status != SN_OK) {
    destroy(&m->base);
    return status;
  }
  fix_shapes(m, setup);
  *out = &m->base;
  return SN_OK;
}

static sn_status create_mae(const sn_objective_setup *setup, sn_objective **out, sn_error *err) {
  return create(setup, false, out, err);
}

static sn_status create_mae2022(const sn_objective_setup *setup, sn_objective **out, sn_error *err) {
  return create(setup, true, out, err);
}

const sn_objective_kind sn_objective_kind_mae = {
    "mae", "masked autoencoding with exact counts", MAE_CONFIG, create_mae};
const sn_objective_kind sn_objective_kind_mae2022 = {
    "mae2022", "masked autoencoding as published: floor of the kept count, flat patches with target 0",
    MAE_CONFIG, create_mae2022};
