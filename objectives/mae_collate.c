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
  sn_free(w->mask_rows);
  sn_predictor_rows_destroy(w->decoder);
  free_rows(&w->hidden);
  free_rows(&w->visible);
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

static sn_status allocate_terms(const sn_mae *m, sn_mae_work *w, sn_error *err) {
  const int64_t n = m->pack_samples;
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
  SN_TRY_GOTO(sn_predictor_rows_create(m->decoder_rows, m->pack_samples, &w->decoder, err), fail);
  SN_TRY_GOTO(allocate_rows(m, &w->hidden, m->masked_slots, with_valid, err), fail);
  SN_TRY_GOTO(allocate_rows(m, &w->visible, m->visible_group >= 0 ? m->visible_slots : 0, with_valid, err), fail);
  SN_TRY_GOTO(allocate_terms(m, w, err), fail);
  *out = w;
  return SN_OK;
fail:
  sn_mae_free_work(w);
  return status;
}

/* --- targets ------------------------------------------------------------------------------------------------------ */

/* Values (n_slots, target_width) that targets are made of, and their validity (NULL: all). */
typedef struct value_rows {
  const float *values;
  const uint8_t *valid;
  int64_t stride; /* from one row to the next: target_width, or P where the last values are no signal */
} value_rows;

static sn_status find_values(const sn_mae *m, const sn_token_batch *batch, value_rows *out, sn_error *err) {
  *out = (value_rows){batch->patches, batch->valid, m->P};
  if (m->target_name == NULL) return SN_OK;
  const sn_target *t = sn_token_batch_target(batch, m->target_name);
  if (t == NULL || !t->spec.per_token || t->spec.width != m->target_width)
    return sn_fail(err, SN_E_STATE, "mae: a pack carries no target '%s' of %lld values a token", m->target_name,
                   (long long)m->target_width);
  *out = (value_rows){t->values, t->valid, m->target_width};
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
  const uint8_t *valid = from->valid != NULL ? from->valid + t * from->stride : NULL;
  float *target = r->targets + r->n * W;
  const int none = sn_mae_patch_target(from->values + t * from->stride, valid, W, m->target, m->keep_flat, target);
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
static sn_status take_neuro(const sn_mae *m, const sn_token_batch *batch, const sn_pass *pass, sn_mae_work *w,
                            sn_error *err) {
  const int64_t W = m->neuro_width;
  if (m->neuro_group < 0) return SN_OK;
  const sn_target *t = sn_token_batch_target(batch, "neuro");
  if (t == NULL || t->spec.per_token || t->spec.width != W)
    return sn_fail(err, SN_E_STATE, "mae: a pack carries no target 'neuro' of %lld values a sample", (long long)W);
  for (int64_t s = 0; s < batch->n_samples; s++) {
    bool any = false;
    if (!pass->usable[s]) continue;
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

/* One sample: its class token and all of its tokens.  Of latent sources only the tokens that are asked for, each as a query:
 * what is known of the sample stands in the latents. */
static sn_status lay_out_sample(const sn_mae *m, const sn_token_batch *batch, int64_t s, const sn_pass *pass,
                                const value_rows *from, sn_mae_work *w, sn_error *err) {
  const bool latent = m->queries != NULL;
  int64_t encoder_row = pass->input->offsets[s];
  if (sn_encoder_has_class_token(m->encoder) && !latent)
    SN_TRY(sn_predictor_add(m->decoder, w->decoder, batch, -1, encoder_row, err)); /* registers are left behind */
  encoder_row += sn_encoder_n_special(m->encoder);
  for (int64_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++) {
    const bool hidden = pass->state[t] == SN_TOKEN_ASKED;
    if (pass->state[t] == SN_TOKEN_LEFT || (latent && !hidden && m->visible_group < 0)) continue;
    const int64_t row = w->decoder->n;
    SN_TRY(sn_predictor_add(m->decoder, w->decoder, batch, t, hidden || latent ? -1 : encoder_row++, err));
    if (hidden) SN_TRY(add_target(m, &w->hidden, from, t, row, s, w->counters, err));
    else if (m->visible_group >= 0) SN_TRY(add_target(m, &w->visible, from, t, row, s, NULL, err));
  }
  if (!latent && encoder_row != pass->input->offsets[s + 1])
    return sn_fail(err, SN_E_STATE, "mae: sample %lld has %lld encoder rows, %lld were used", (long long)s,
                   (long long)(pass->input->offsets[s + 1] - pass->input->offsets[s]),
                   (long long)(encoder_row - pass->input->offsets[s]));
  return SN_OK;
}

/* Rows of the decoder and targets of the tokens. */
static sn_status lay_out_decoder(const sn_mae *m, const sn_token_batch *batch, const sn_pass *pass,
                                 const value_rows *from, sn_mae_work *w, sn_error *err) {
  for (int64_t s = 0; s < batch->n_samples; s++) {
    const int64_t first_hidden = w->hidden.n, first_visible = w->visible.n;
    if (pass->usable[s]) SN_TRY(lay_out_sample(m, batch, s, pass, from, w, err));
    SN_TRY(sn_predictor_end_segment(w->decoder, err));
    weigh(m, &w->hidden, first_hidden);
    weigh(m, &w->visible, first_visible);
  }
  return SN_OK;
}

/* The audit: a token with loss is one that the decoder saw only as a mask token (those of the visible term, which is a
 * reconstruction of what was seen, only as themselves). */
static sn_status audit(const sn_mae *m, const sn_mae_work *w, sn_error *err) {
  for (int64_t k = 0; k < w->hidden.n; k++)
    if (w->decoder->index[w->hidden.index[k]] != -1)
      return sn_fail(err, SN_E_STATE, "mae audit: token in decoder row %d carries loss but was visible to the encoder",
                     (int)w->hidden.index[k]);
  for (int64_t k = 0; k < w->visible.n && m->queries == NULL; k++)
    if (w->decoder->index[w->visible.index[k]] < 0)
      return sn_fail(err, SN_E_STATE, "mae audit: token in decoder row %d counts as visible but was hidden",
                     (int)w->visible.index[k]);
  return SN_OK;
}

sn_status sn_mae_collate(const sn_term *self, const sn_token_batch *batch, const sn_pass *pass, const uint64_t *epochs,
                         void **work, sn_error *err) {
  const sn_mae *m = self->self;
  sn_mae_work *w = NULL;
  value_rows from;
  sn_status status;
  SN_TRY_GOTO(find_values(m, batch, &from, err), fail);
  SN_TRY_GOTO(allocate_work(m, batch, from.valid != NULL, &w, err), fail);
  w->counters[SN_MAE_COUNT_MASKED] = pass->n_asked;
  w->counters[SN_MAE_COUNT_VISIBLE] = pass->n_shown;
  SN_TRY_GOTO(lay_out_decoder(m, batch, pass, &from, w, err), fail);
  SN_TRY_GOTO(audit(m, w, err), fail);
  SN_TRY_GOTO(take_neuro(m, batch, pass, w, err), fail);
  SN_TRY_GOTO(sn_predictor_finish(m->decoder, w->decoder, batch, epochs, m->queries == NULL, err), fail);
  *work = w;
  w = NULL;
fail:
  sn_mae_free_work(w);
  return status;
}
