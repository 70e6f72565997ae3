#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "objectives/mae_private.h"

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

/* --- memory ------------------------------------------------------------------------------------------------------- */

static void free_rows(sn_mae_rows *r) {
  sn_free(r->index);
  sn_free(r->sample);
  sn_free(r->targets);
  sn_free(r->valid);
  sn_free(r->weights);
}

void sn_mae_free_work(void *work) {
  sn_mae_work *w = work;
  if (w == NULL) return;
  sn_encoder_input_destroy(w->input);
  sn_free(w->decoder_index);
  sn_free(w->decoder_tokens);
  sn_free(w->mask_rows);
  sn_free(w->position_index);
  sn_free(w->position_table);
  sn_free(w->channels);
  sn_free(w->offsets);
  sn_free(w->rope_units);
  free_rows(&w->hidden);
  free_rows(&w->visible);
  sn_free(w->pool_offsets);
  sn_free(w->pool_rows);
  sn_free(w->pool_class);
  sn_free(w->neuro);
  sn_free(w->neuro_valid);
  sn_free(w->neuro_weights);
  sn_free(w);
}

static sn_status allocate_rows(const sn_mae *m, sn_mae_rows *r, int64_t slots, bool with_valid, sn_error *err) {
  r->slots = slots;
  SN_TRY(sn_alloc(&r->index, slots, sizeof *r->index, "mae work", err));
  SN_TRY(sn_alloc(&r->sample, slots, sizeof *r->sample, "mae work", err));
  SN_TRY(sn_alloc(&r->targets, slots * m->target_width, sizeof *r->targets, "mae work", err));
  SN_TRY(sn_alloc(&r->weights, slots, sizeof *r->weights, "mae work", err));
  if (with_valid) SN_TRY(sn_alloc(&r->valid, slots * m->target_width, sizeof *r->valid, "mae work", err));
  for (int64_t k = 0; k < slots; k++) r->index[k] = r->sample[k] = -2;
  return SN_OK;
}

static sn_status allocate_pooling(const sn_mae *m, sn_mae_work *w, sn_error *err) {
  const int64_t n = m->pack_samples;
  if (m->pooled_group < 0 && m->neuro_group < 0) return SN_OK;
  if (sn_encoder_has_class_token(m->encoder))
    SN_TRY(sn_alloc(&w->pool_class, n, sizeof *w->pool_class, "mae work", err));
  SN_TRY(sn_alloc(&w->pool_offsets, n + 1, sizeof *w->pool_offsets, "mae work", err));
  if (m->pooled_group >= 0) SN_TRY(sn_alloc(&w->mask_rows, m->decoder_rows, sizeof *w->mask_rows, "mae work", err));
  if (m->neuro_group < 0) return SN_OK;
  SN_TRY(sn_alloc(&w->neuro, n * m->neuro_width, sizeof *w->neuro, "mae work", err));
  SN_TRY(sn_alloc(&w->neuro_valid, n * m->neuro_width, 1, "mae work", err));
  return sn_alloc(&w->neuro_weights, n, sizeof *w->neuro_weights, "mae work", err);
}

static sn_status allocate_work(const sn_mae *m, const sn_token_batch *batch, bool with_valid, sn_mae_work **out,
                               sn_error *err) {
  sn_mae_work *w = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "mae work", err));
  w->n_samples = batch->n_samples;
  const int64_t rows = m->decoder_rows;
  SN_TRY_GOTO(sn_alloc(&w->decoder_index, rows, sizeof *w->decoder_index, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->decoder_tokens, rows, sizeof *w->decoder_tokens, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->position_index, rows, sizeof *w->position_index, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->channels, rows, sizeof *w->channels, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->rope_units, rows, sizeof *w->rope_units, "mae work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->offsets, batch->n_samples + 1, sizeof *w->offsets, "mae work", err), fail);
  SN_TRY_GOTO(allocate_rows(m, &w->hidden, m->masked_slots, with_valid, err), fail);
  SN_TRY_GOTO(allocate_rows(m, &w->visible, m->visible_group >= 0 ? m->visible_slots : 0, with_valid, err), fail);
  SN_TRY_GOTO(allocate_pooling(m, w, err), fail);
  *out = w;
  return SN_OK;
fail:
  sn_mae_free_work(w);
  return status;
}

/* --- masks -------------------------------------------------------------------------------------------------------- */

/* Masks of every sample. visible: token indices, visible_offsets (n_samples + 1). A sample that cannot be masked has
 * neither visible nor hidden tokens. */
static sn_status draw_masks(const sn_mae *m, const sn_token_batch *batch, const uint64_t *epochs, uint8_t *masked,
                            int64_t *visible, int64_t *visible_offsets, int64_t *counters, sn_error *err) {
  int64_t n_visible = 0;
  for (int64_t s = 0; s < batch->n_samples; s++) {
    const int64_t first = batch->offsets[s], n = batch->offsets[s + 1] - first;
    int64_t n_masked = 0;
    sn_mask_tokens tokens = {.n = n, .coordinates = batch->coordinates + 4 * first,
                             .channels = batch->channels + first, .positions = batch->positions + first,
                             .series = batch->series + first};
    sn_random random = sn_random_at(m->seed, SN_PURPOSE_MASK, epochs[s], batch->sample_ids[s]);
    SN_TRY(m->sampler(&tokens, &m->mask, &random, masked + first, &n_masked, err));
    visible_offsets[s] = n_visible;
    if (n_masked == 0 || n_masked == n) {
      counters[SN_MAE_COUNT_UNMASKABLE]++;
      memset(masked + first, 2, (size_t)n); /* neither visible nor hidden */
      continue;
    }
    for (int64_t i = first; i < first + n; i++)
      if (!masked[i]) visible[n_visible++] = i;
    counters[SN_MAE_COUNT_MASKED] += n_masked;
    counters[SN_MAE_COUNT_VISIBLE] += n - n_masked;
  }
  visible_offsets[batch->n_samples] = n_visible;
  return SN_OK;
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

/* Values (n_slots, target_width) that targets are made of, and their validity (NULL: all). */
typedef struct value_rows {
  const float *values;
  const uint8_t *valid;
} value_rows;

static sn_status find_values(const sn_mae *m, const sn_token_batch *batch, value_rows *out, sn_error *err) {
  *out = (value_rows){batch->patches, batch->valid};
  if (m->target_name == NULL) return SN_OK;
  const sn_target *t = sn_token_batch_target(batch, m->target_name);
  if (t == NULL || !t->spec.per_token || t->spec.width != m->target_width)
    return sn_fail(err, SN_E_STATE, "mae: a pack carries no target '%s' of %lld values a token", m->target_name,
                   (long long)m->target_width);
  *out = (value_rows){t->values, t->valid};
  return SN_OK;
}

static void standardize(const sn_param *mean, const sn_param *std, float *values, const uint8_t *valid, int64_t n) {
  for (int64_t j = 0; mean != NULL && j < n; j++)
    if (valid == NULL || valid[j])
      values[j] = (float)((values[j] - sn_tensor_get(&mean->value, j)) / sn_tensor_get(&std->value, j));
}

/* Target of token t, which stands in decoder row `row`; a token without one is counted in counters (NULL: not). */
static sn_status add_target(const sn_mae *m, sn_mae_rows *r, const value_rows *from, int64_t t, int64_t row,
                            int64_t sample, int64_t *counters, sn_error *err) {
  const int64_t W = m->target_width;
  if (r->n >= r->slots)
    return sn_fail(err, SN_E_STATE, "mae: more than %lld tokens with a target in a pack", (long long)r->slots);
  const uint8_t *valid = from->valid != NULL ? from->valid + t * W : NULL;
  float *target = r->targets + r->n * W;
  const int none = sn_mae_patch_target(from->values + t * W, valid, W, m->target, m->keep_flat, target);
  if (none != 0) {
    if (counters != NULL) counters[none == 1 ? SN_MAE_COUNT_FLAT : SN_MAE_COUNT_INVALID]++;
    return SN_OK;
  }
  standardize(m->target_mean, m->target_std, target, valid, W);
  if (valid != NULL) memcpy(r->valid + r->n * W, valid, (size_t)W);
  r->sample[r->n] = (int32_t)sample;
  r->index[r->n++] = (int32_t)row;
  return SN_OK;
}

/* Weights of the targets from `first` on, which are one sample's. */
static void weigh(const sn_mae *m, sn_mae_rows *r, int64_t first) {
  const int64_t n = r->n - first;
  for (int64_t k = first; k < r->n; k++) r->weights[k] = m->sample_mean ? 1.0f / (float)n : 1.0f;
  if (n > 0) r->count += m->sample_mean ? 1.0 : (double)n;
}

/* The statistics of each masked sample's window, standardised. */
static sn_status take_neuro(const sn_mae *m, const sn_token_batch *batch, const uint8_t *masked, sn_mae_work *w,
                            sn_error *err) {
  const int64_t W = m->neuro_width;
  if (m->neuro_group < 0) return SN_OK;
  const sn_target *t = sn_token_batch_target(batch, "neuro");
  if (t == NULL || t->spec.per_token || t->spec.width != W)
    return sn_fail(err, SN_E_STATE, "mae: a pack carries no target 'neuro' of %lld values a sample", (long long)W);
  for (int64_t s = 0; s < batch->n_samples; s++) {
    const int64_t first = batch->offsets[s];
    bool any = false;
    if (batch->offsets[s + 1] == first || masked[first] == 2) continue;
    memcpy(w->neuro + s * W, t->values + s * W, (size_t)W * sizeof *w->neuro);
    memcpy(w->neuro_valid + s * W, t->valid + s * W, (size_t)W);
    standardize(m->neuro_mean, m->neuro_std, w->neuro + s * W, w->neuro_valid + s * W, W);
    for (int64_t j = 0; j < W; j++) any = any || w->neuro_valid[s * W + j];
    w->neuro_weights[s] = any ? 1.0f : 0.0f;
    w->neuro_count += any ? 1.0 : 0.0;
  }
  return SN_OK;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

static void place_row(const sn_mae *m, const sn_token_batch *batch, int64_t t, int64_t row, sn_mae_work *w, double *units,
                      int64_t *n_units) {
  w->decoder_tokens[row] = t;
  w->channels[row] = batch->channels[t] >= 0 ? batch->channels[t] : -2;
  w->position_index[row] = (int32_t)*n_units;
  units[*n_units] = sn_encoder_unit(m->encoder, batch, t);
  w->rope_units[row] = (float)units[(*n_units)++];
}

/* Rows of the decoder and targets of the tokens. */
static sn_status lay_out_decoder(const sn_mae *m, const sn_token_batch *batch, const uint8_t *masked,
                                 const value_rows *from, sn_mae_work *w, double *units, sn_error *err) {
  const bool has_class = sn_encoder_has_class_token(m->encoder);
  const int64_t n_special = sn_encoder_n_special(m->encoder);
  int64_t row = 0, n_units = 0;
  for (int64_t r = 0; r < m->decoder_rows; r++) {
    w->decoder_index[r] = w->position_index[r] = w->channels[r] = -2;
    w->decoder_tokens[r] = -1;
  }
  for (int64_t s = 0; s < batch->n_samples; s++) {
    const int64_t first = batch->offsets[s], last = batch->offsets[s + 1];
    const int64_t first_hidden = w->hidden.n, first_visible = w->visible.n;
    int64_t encoder_row = w->input->offsets[s];
    w->offsets[s] = row;
    if (last > first && masked[first] == 2) continue;
    if (has_class) w->decoder_index[row++] = (int32_t)encoder_row; /* registers are left behind */
    encoder_row += n_special;
    for (int64_t t = first; t < last; t++, row++) {
      place_row(m, batch, t, row, w, units, &n_units);
      w->decoder_index[row] = masked[t] ? -1 : (int32_t)encoder_row++;
      if (masked[t]) SN_TRY(add_target(m, &w->hidden, from, t, row, s, w->counters, err));
      else if (m->visible_group >= 0) SN_TRY(add_target(m, &w->visible, from, t, row, s, NULL, err));
    }
    if (encoder_row != w->input->offsets[s + 1])
      return sn_fail(err, SN_E_STATE, "mae: sample %lld has %lld encoder rows, %lld were used", (long long)s,
                     (long long)(w->input->offsets[s + 1] - w->input->offsets[s]),
                     (long long)(encoder_row - w->input->offsets[s]));
    weigh(m, &w->hidden, first_hidden);
    weigh(m, &w->visible, first_visible);
  }
  w->offsets[batch->n_samples] = row;
  return SN_OK;
}

/* Which rows of the encoder's output a sample's pooled token comes from: all but the special ones. */
static sn_status lay_out_pooling(const sn_mae *m, sn_mae_work *w, sn_error *err) {
  const sn_encoder_input *in = w->input;
  const int64_t n_special = sn_encoder_n_special(m->encoder);
  int64_t n = 0;
  if (w->pool_offsets == NULL) return SN_OK;
  w->n_pool_rows = in->n_latent_rows > 0 ? in->n_latent_rows : m->visible_slots;
  if (n_special > 0 && w->pool_class == NULL)
    SN_TRY(sn_alloc(&w->pool_rows, w->n_pool_rows, sizeof *w->pool_rows, "mae work", err));
  for (int64_t s = 0; s < m->pack_samples; s++) {
    const bool used = s < w->n_samples;
    w->pool_offsets[s] = n;
    if (w->pool_class != NULL) w->pool_class[s] = used ? (int32_t)in->offsets[s] : -2;
    for (int64_t r = used ? in->offsets[s] + n_special : 0; used && r < in->offsets[s + 1]; r++, n++)
      if (w->pool_rows != NULL) w->pool_rows[n] = (int32_t)r;
  }
  w->pool_offsets[m->pack_samples] = n;
  for (; w->pool_rows != NULL && n < w->n_pool_rows; n++) w->pool_rows[n] = -2;
  return SN_OK;
}

/* The audit: a token with loss is one that the decoder saw only as a mask token (those of the visible term, which is a
 * reconstruction of what was seen, only as themselves). */
static sn_status audit(const sn_mae_work *w, sn_error *err) {
  for (int64_t k = 0; k < w->hidden.n; k++)
    if (w->decoder_index[w->hidden.index[k]] != -1)
      return sn_fail(err, SN_E_STATE, "mae audit: token in decoder row %d carries loss but was visible to the encoder",
                     (int)w->hidden.index[k]);
  for (int64_t k = 0; k < w->visible.n; k++)
    if (w->decoder_index[w->visible.index[k]] < 0)
      return sn_fail(err, SN_E_STATE, "mae audit: token in decoder row %d counts as visible but was hidden",
                     (int)w->visible.index[k]);
  return SN_OK;
}

/* Position rows of the decoder, one for each distinct coordinate. */
static sn_status make_positions(const sn_mae *m, sn_mae_work *w, const double *units, int64_t n_units, sn_error *err) {
  sn_position_table table = {0};
  int32_t *index = NULL;
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

sn_status sn_mae_collate(const sn_objective *self, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                         sn_error *err) {
  const sn_mae *m = self->self;
  sn_mae_work *w = NULL;
  uint8_t *masked = NULL;
  int64_t *visible = NULL, *visible_offsets = NULL;
  double *units = NULL;
  value_rows from;
  sn_status status;
  SN_TRY_GOTO(find_values(m, batch, &from, err), fail);
  SN_TRY_GOTO(allocate_work(m, batch, from.valid != NULL, &w, err), fail);
  SN_TRY_GOTO(sn_alloc(&masked, batch->n_tokens, sizeof *masked, "mae masks", err), fail);
  SN_TRY_GOTO(sn_alloc(&visible, batch->n_tokens, sizeof *visible, "mae masks", err), fail);
  SN_TRY_GOTO(sn_alloc(&visible_offsets, batch->n_samples + 1, sizeof *visible_offsets, "mae masks", err), fail);
  SN_TRY_GOTO(sn_alloc(&units, batch->n_tokens, sizeof *units, "mae positions", err), fail);
  SN_TRY_GOTO(draw_masks(m, batch, epochs, masked, visible, visible_offsets, w->counters, err), fail);
  SN_TRY_GOTO(sn_encoder_input_create_at(m->encoder, batch, visible, visible_offsets, m->visible_slots, m->pack_samples,
                                         epochs, m->residual, &w->input, err),
              fail);
  SN_TRY_GOTO(lay_out_decoder(m, batch, masked, &from, w, units, err), fail);
  SN_TRY_GOTO(audit(w, err), fail);
  SN_TRY_GOTO(lay_out_pooling(m, w, err), fail);
  SN_TRY_GOTO(take_neuro(m, batch, masked, w, err), fail);
  int64_t n_units = 0;
  for (int64_t r = 0; r < m->decoder_rows; r++) n_units += w->position_index[r] >= 0;
  if (m->sincos) SN_TRY_GOTO(make_positions(m, w, units, n_units, err), fail);
  *work = w;
  w = NULL;
fail:
  sn_mae_free_work(w);
  sn_free(masked);
  sn_free(visible);
  sn_free(visible_offsets);
  sn_free(units);
  return status;
}
