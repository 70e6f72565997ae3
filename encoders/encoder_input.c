#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/encoder_private.h"

double sn_encoder_unit(const sn_encoder *encoder, const sn_token_batch *batch, int64_t token) {
  return sn_time_unit(&encoder->data, batch, token);
}

/* What is only needed while an input is made. */
typedef struct draft {
  const sn_encoder *e;
  const sn_token_batch *batch;
  const int64_t *tokens;   /* as given: NULL, every token */
  const int64_t *offsets;
  int64_t most_samples, most_positions, most_series;
  int64_t *slot_tokens;    /* (n_slots) token of a slot, -1 none */
  int32_t *series, *positions; /* (n_rows) of a row, for the patterns */
  int64_t *latent_tokens;  /* (n_latent_rows) a token of the latent's time step, -1 none */
  int64_t *first_group;    /* (n_samples + 1) */
} draft;

static void free_draft(draft *d) {
  sn_free(d->slot_tokens);
  sn_free(d->series);
  sn_free(d->positions);
  sn_free(d->latent_tokens);
  sn_free(d->first_group);
}

static sn_status allocate_rows(sn_encoder_input *in, draft *d, sn_error *err) {
  const int64_t n = in->n_rows;
  SN_TRY(sn_alloc(&in->offsets, in->n_samples + 1, sizeof *in->offsets, "encoder input", err));
  SN_TRY(sn_alloc(&in->rope_units, n, sizeof *in->rope_units, "encoder input", err));
  SN_TRY(sn_alloc(&in->row_samples, n, sizeof *in->row_samples, "encoder input", err));
  SN_TRY(sn_alloc(&in->row_in_sample, n, sizeof *in->row_in_sample, "encoder input", err));
  SN_TRY(sn_alloc(&d->series, n, sizeof *d->series, "encoder input", err));
  SN_TRY(sn_alloc(&d->positions, n, sizeof *d->positions, "encoder input", err));
  if (sn_encoder_n_special(d->e) > 0 || d->e->n_latents > 0)
    SN_TRY(sn_alloc(&in->row_token, n, sizeof *in->row_token, "encoder input", err));
  if (d->e->n_registers > 0) SN_TRY(sn_alloc(&in->row_register, n, sizeof *in->row_register, "encoder input", err));
  return SN_OK;
}

/* Patches, channels and tokens of the slots. */
static sn_status fill_slots(sn_encoder_input *in, draft *d, sn_error *err) {
  const int64_t p = d->e->data.patch_size;
  int64_t values;
  if (!sn_mul_ok(in->n_slots, p, &values)) return sn_fail(err, SN_E_MEMORY, "encoder input: too large");
  SN_TRY(sn_alloc(&in->patches, values, sizeof *in->patches, "encoder input", err));
  SN_TRY(sn_alloc(&in->channels, in->n_slots, sizeof *in->channels, "encoder input", err));
  SN_TRY(sn_alloc(&d->slot_tokens, in->n_slots, sizeof *d->slot_tokens, "encoder input", err));
  for (int64_t k = 0; k < in->n_slots; k++) {
    const int64_t t = k >= in->n_tokens ? -1 : d->tokens != NULL ? d->tokens[k] : k;
    d->slot_tokens[k] = t;
    in->channels[k] = t >= 0 && d->batch->channels[t] >= 0 ? d->batch->channels[t] : -2;
    if (t >= 0) memcpy(in->patches + k * p, d->batch->patches + t * p, (size_t)p * sizeof(float));
  }
  return SN_OK;
}

/* Each value of a patch minus its mean over its deviation; what was not measured stays 0, which now is the mean. */
static sn_status standardize_slots(sn_encoder_input *in, const draft *d, sn_error *err) {
  const sn_encoder *e = d->e;
  const int64_t p = e->data.patch_size;
  double *scale = NULL; /* (2, p) mean, 1 / std */
  sn_status status = SN_OK;
  if (e->input_mean == NULL) return SN_OK;
  SN_TRY(sn_alloc(&scale, 2 * p, sizeof *scale, "encoder input", err));
  for (int64_t j = 0; j < p && status == SN_OK; j++) {
    const double std = sn_tensor_get(&e->input_std->value, j);
    scale[j] = sn_tensor_get(&e->input_mean->value, j);
    scale[p + j] = 1 / std;
    if (!(std > 0))
      status = sn_fail(err, SN_E_STATE, "%s: value %lld is not set: an encoder with model.input: standardized takes its "
                       "statistics from the data that it is pretrained on, or from a checkpoint", e->input_std->name,
                       (long long)j);
  }
  for (int64_t k = 0; k < in->n_tokens && status == SN_OK; k++) {
    const uint8_t *valid = d->batch->valid != NULL ? d->batch->valid + d->slot_tokens[k] * p : NULL;
    float *x = in->patches + k * p;
    for (int64_t j = 0; j < p; j++)
      if (valid == NULL || valid[j]) x[j] = (float)((x[j] - scale[j]) * scale[p + j]);
  }
  sn_free(scale);
  return status;
}

/* Extra values that are embedded apart leave the patches, which close up. */
static sn_status split_extra(sn_encoder_input *in, const sn_encoder *e, sn_error *err) {
  const int64_t p = e->data.patch_size, n = e->n_extra, width = e->n_values;
  if (n == 0) return SN_OK;
  SN_TRY(sn_alloc(&in->extra, in->n_slots * n, sizeof *in->extra, "encoder input", err));
  for (int64_t k = 0; k < in->n_slots; k++) {
    memcpy(in->extra + k * n, in->patches + k * p + width, (size_t)n * sizeof *in->extra);
    memmove(in->patches + k * width, in->patches + k * p, (size_t)width * sizeof *in->patches);
  }
  return SN_OK;
}

/* --- latent sources ----------------------------------------------------------------------------------------------- */

typedef struct slot_at {
  int32_t position, slot;
} slot_at;

static int compare_slots(const void *a, const void *b) {
  const slot_at *x = a, *y = b;
  if (x->position != y->position) return x->position < y->position ? -1 : 1;
  return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Latent rows of a pack: n for each time step, at most. */
static sn_status latent_rows(const sn_encoder_input *in, const draft *d, int64_t *groups, int64_t *rows, sn_error *err) {
  const int64_t per_sample = d->most_positions;
  *groups = in->n_slots;
  int64_t known;
  if (per_sample > 0 && sn_mul_ok(per_sample, d->most_samples, &known) && known < *groups) *groups = known;
  if (!sn_mul_ok(*groups, d->e->n_latents, rows) || *rows > INT32_MAX / 2)
    return sn_fail(err, SN_E_MEMORY, "encoder input: too many latent rows");
  *rows = sn_round_up(*rows, SN_TOKEN_BUCKET);
  return SN_OK;
}

/* Groups of one sample, and the latents' tokens and queries. */
static sn_status group_sample(sn_encoder_input *in, draft *d, int64_t s, slot_at *slots, int64_t most_groups, int64_t *key_at,
                              sn_error *err) {
  const int64_t n_latents = d->e->n_latents, n = d->offsets[s + 1] - d->offsets[s];
  for (int64_t i = 0; i < n; i++) {
    const int64_t k = d->offsets[s] + i;
    slots[i] = (slot_at){.position = d->batch->positions[d->slot_tokens[k]], .slot = (int32_t)k};
  }
  qsort(slots, (size_t)n, sizeof *slots, compare_slots);
  d->first_group[s] = in->n_groups;
  for (int64_t i = 0; i < n; i++) {
    if (i == 0 || slots[i].position != slots[i - 1].position) {
      if (in->n_groups == most_groups)
        return sn_fail(err, SN_E_STATE, "encoder input: more than %lld time steps in a pack: the data have more than they said",
                       (long long)most_groups);
      in->latent_key_offsets[in->n_groups] = *key_at;
      in->latent_offsets[in->n_groups] = in->n_groups * n_latents;
      for (int64_t j = 0; j < n_latents; j++) {
        in->latent_query[in->n_groups * n_latents + j] = (int32_t)j;
        d->latent_tokens[in->n_groups * n_latents + j] = d->slot_tokens[slots[i].slot];
      }
      in->n_groups++;
    }
    in->latent_keys[(*key_at)++] = slots[i].slot;
  }
  return SN_OK;
}

static sn_status fill_latents(sn_encoder_input *in, draft *d, int64_t most_groups, sn_dtype residual, sn_error *err) {
  const int64_t rows = in->n_latent_rows;
  slot_at *slots = NULL;
  double *units = NULL;
  int64_t key_at = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&slots, in->n_slots, sizeof *slots, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&units, rows, sizeof *units, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&in->latent_query, rows, sizeof *in->latent_query, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&in->latent_keys, in->n_slots, sizeof *in->latent_keys, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&in->latent_offsets, most_groups + 1, sizeof *in->latent_offsets, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&in->latent_key_offsets, most_groups + 1, sizeof *in->latent_key_offsets, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&d->latent_tokens, rows, sizeof *d->latent_tokens, "encoder input", err), done);
  SN_TRY_GOTO(sn_alloc(&d->first_group, in->n_samples + 1, sizeof *d->first_group, "encoder input", err), done);
  for (int64_t s = 0; s < in->n_samples; s++)
    SN_TRY_GOTO(group_sample(in, d, s, slots, most_groups, &key_at, err), done);
  d->first_group[in->n_samples] = in->n_groups;
  in->latent_offsets[in->n_groups] = in->n_groups * d->e->n_latents;
  in->latent_key_offsets[in->n_groups] = key_at;
  for (int64_t i = key_at; i < in->n_slots; i++) in->latent_keys[i] = -2;
  for (int64_t r = 0; r < rows; r++) {
    const bool used = r < in->n_groups * d->e->n_latents;
    if (!used) in->latent_query[r] = -2;
    if (!used) d->latent_tokens[r] = -1;
    if (used) units[r] = sn_time_unit(&d->e->data, d->batch, d->latent_tokens[r]);
  }
  if (d->e->latent_time != NULL) {
    sn_position_rows times = {.batch = d->batch, .n_rows = rows, .tokens = d->latent_tokens, .units = units,
                              .data = &d->e->data};
    SN_TRY_GOTO(sn_position_sincos.prepare(d->e->latent_time, &times, residual, &in->latent_time, err), done);
  }
done:
  sn_free(slots);
  sn_free(units);
  return status;
}

/* --- rows --------------------------------------------------------------------------------------------------------- */

/* Row `row` holds token slot or latent `source` of sample s, seen through token t. */
static void fill_row(sn_encoder_input *in, draft *d, int64_t row, int64_t s, int64_t source, int64_t t) {
  const int64_t n = d->e->n_latents;
  if (in->row_token != NULL) in->row_token[row] = (int32_t)source;
  if (in->row_register != NULL) in->row_register[row] = -2;
  in->rope_units[row] = (float)sn_time_unit(&d->e->data, d->batch, t);
  in->row_samples[row] = d->batch->sample_ids[s];
  d->positions[row] = d->batch->positions[t];
  d->series[row] = n > 0 ? in->latent_query[source] : d->batch->series[t];
  in->row_in_sample[row] =
      (int32_t)(n > 0 ? (int64_t)d->batch->positions[t] * n + d->series[row] + 1 : t - d->batch->offsets[s] + 1);
}

static void fill_special(sn_encoder_input *in, const draft *d, int64_t row, int64_t s, int64_t k) {
  const int64_t first = d->e->class_token != NULL ? 1 : 0;
  in->row_token[row] = k < first ? -1 : -2;
  if (in->row_register != NULL) in->row_register[row] = k < first ? -2 : (int32_t)(k - first);
  in->row_samples[row] = d->batch->sample_ids[s];
  in->row_in_sample[row] = k < first ? 0 : (int32_t)-(k - first + 1);
}

static void fill_rows(sn_encoder_input *in, draft *d) {
  const int64_t n_special = sn_encoder_n_special(d->e), n = d->e->n_latents;
  int64_t row = 0;
  for (int64_t s = 0; s < in->n_samples; s++) {
    in->offsets[s] = row;
    for (int64_t k = 0; k < n_special; k++) fill_special(in, d, row++, s, k);
    if (n > 0) {
      for (int64_t l = d->first_group[s] * n; l < d->first_group[s + 1] * n; l++) fill_row(in, d, row++, s, l, d->latent_tokens[l]);
    } else {
      for (int64_t k = d->offsets[s]; k < d->offsets[s + 1]; k++) fill_row(in, d, row++, s, k, d->slot_tokens[k]);
    }
  }
  in->offsets[in->n_samples] = row;
  for (int64_t r = row; r < in->n_rows; r++) {
    if (in->row_token != NULL) in->row_token[r] = -2;
    if (in->row_register != NULL) in->row_register[r] = -2;
  }
}

static sn_status make_patterns(sn_encoder_input *in, const draft *d, sn_error *err) {
  sn_pattern_layout layout = {.n_rows = in->n_rows, .n_samples = in->n_samples, .offsets = in->offsets,
                              .n_special = sn_encoder_n_special(d->e), .series = d->series, .positions = d->positions,
                              .most_samples = d->most_samples,
                              .most_series = d->e->n_latents > 0 ? d->e->n_latents : d->most_series,
                              .most_positions = d->most_positions};
  return sn_patterns_create(&d->e->attention, &layout, &in->patterns, err);
}

static sn_status check(const sn_encoder *e, const sn_token_batch *batch, int64_t n, int64_t n_slots, int64_t n_samples_most,
                       sn_error *err) {
  if (n > n_slots || batch->n_samples > n_samples_most)
    return sn_fail(err, SN_E_STATE, "encoder input: %lld tokens of %lld samples do not fit into %lld slots for %lld",
                   (long long)n, (long long)batch->n_samples, (long long)n_slots, (long long)n_samples_most);
  if (batch->n_samples > 0 && batch->patch_size != e->data.patch_size)
    return sn_fail(err, SN_E_ARGUMENT, "encoder input: patches of %lld values, the encoder takes %lld",
                   (long long)batch->patch_size, (long long)e->data.patch_size);
  return SN_OK;
}

/* d: all that was given. */
static sn_status create(draft *given, int64_t n_slots, const uint64_t *epochs, sn_dtype residual, sn_encoder_input **out,
                        sn_error *err) {
  draft d = *given;
  const sn_encoder *encoder = d.e;
  const sn_token_batch *batch = d.batch;
  sn_encoder_input *in = NULL;
  const int64_t n = d.offsets[batch->n_samples], n_special = sn_encoder_n_special(encoder), n_samples_most = d.most_samples;
  int64_t most_groups = 0;
  sn_status status;
  SN_TRY(check(encoder, batch, n, n_slots, n_samples_most, err));
  SN_TRY(sn_alloc(&in, 1, sizeof *in, "encoder input", err));
  in->n_tokens = n;
  in->n_slots = in->n_rows = n_slots;
  in->n_samples = batch->n_samples;
  SN_TRY_GOTO(fill_slots(in, &d, err), done);
  SN_TRY_GOTO(standardize_slots(in, &d, err), done);
  SN_TRY_GOTO(split_extra(in, encoder, err), done);
  if (encoder->n_latents > 0) {
    SN_TRY_GOTO(latent_rows(in, &d, &most_groups, &in->n_latent_rows, err), done);
    SN_TRY_GOTO(fill_latents(in, &d, most_groups, residual, err), done);
    in->n_rows = in->n_latent_rows;
  }
  if (n_special > 0) in->n_rows = sn_round_up(in->n_rows + n_special * n_samples_most, SN_TOKEN_BUCKET);
  SN_TRY_GOTO(allocate_rows(in, &d, err), done);
  fill_rows(in, &d);
  SN_TRY_GOTO(make_patterns(in, &d, err), done);
  SN_TRY_GOTO(sn_positions_prepare(encoder->positions, batch, d.slot_tokens, n_slots, epochs, residual, &in->positions, err),
              done);
  *out = in;
  in = NULL;
done:
  sn_encoder_input_destroy(in);
  free_draft(&d);
  return status;
}

sn_status sn_encoder_input_create_at(const sn_encoder *encoder, const sn_token_batch *batch, const int64_t *tokens,
                                     const int64_t *offsets, int64_t n_slots, int64_t n_samples_most,
                                     const uint64_t *epochs, sn_dtype residual, sn_encoder_input **out, sn_error *err) {
  draft d = {.e = encoder, .batch = batch, .tokens = tokens, .offsets = offsets, .most_samples = n_samples_most,
             .most_positions = encoder->data.most_positions, .most_series = encoder->data.most_series};
  return create(&d, n_slots, epochs, residual, out, err);
}

sn_status sn_encoder_input_create_for(const sn_encoder *encoder, const sn_token_batch *batch, int64_t n_slots,
                                      int64_t n_samples_most, int64_t most_positions, int64_t most_series,
                                      sn_dtype residual, sn_encoder_input **out, sn_error *err) {
  draft d = {.e = encoder, .batch = batch, .offsets = batch->offsets, .most_samples = n_samples_most,
             .most_positions = most_positions, .most_series = most_series};
  return create(&d, n_slots, NULL, residual, out, err);
}

sn_status sn_encoder_input_create(const sn_encoder *encoder, const sn_token_batch *batch, const int64_t *tokens,
                                  const int64_t *offsets, int64_t n_slots, int64_t n_samples_most, sn_dtype residual,
                                  sn_encoder_input **out, sn_error *err) {
  return sn_encoder_input_create_at(encoder, batch, tokens, offsets, n_slots, n_samples_most, NULL, residual, out, err);
}

sn_status sn_encoder_input_create_all(const sn_encoder *encoder, const sn_token_batch *batch, int64_t n_slots,
                                      int64_t n_samples_most, sn_dtype residual, sn_encoder_input **out, sn_error *err) {
  return sn_encoder_input_create(encoder, batch, NULL, batch->offsets, n_slots, n_samples_most, residual, out, err);
}

void sn_encoder_input_destroy(sn_encoder_input *input) {
  if (input == NULL) return;
  sn_free(input->patches);
  sn_free(input->extra);
  sn_positions_work_destroy(input->positions);
  sn_free(input->channels);
  sn_free(input->offsets);
  sn_free(input->row_token);
  sn_free(input->row_register);
  sn_free(input->rope_units);
  sn_free(input->row_samples);
  sn_free(input->row_in_sample);
  sn_patterns_destroy(input->patterns);
  sn_free(input->latent_query);
  sn_free(input->latent_keys);
  sn_free(input->latent_offsets);
  sn_free(input->latent_key_offsets);
  if (input->latent_time != NULL) sn_position_sincos.free_work(input->latent_time);
  sn_free(input);
}
