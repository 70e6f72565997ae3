#include "engine/features.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "core/pool.h"

typedef struct extraction {
  sn_device *device;
  const sn_model *model;
  sn_source *source;
  const int64_t *windows;
  const sn_feature_options *options;
  int64_t slots, per_pack, tokens_per_sample, width;
  sn_arena *arena;
  sn_tape *tape;
  sn_pool *pool;
  sn_sample **samples; /* (per_pack) of the current pack */
  sn_status *statuses;
  sn_error *errors;
  int64_t first;       /* window number of the current pack's first */
} extraction;

static void read_one(void *user, int64_t index, int64_t worker) {
  extraction *x = user;
  const int64_t window = x->windows[x->first + index];
  x->statuses[index] = sn_source_read(x->source, window, 0, 0, 0, &x->samples[index], &x->errors[index]);
}

/* Turns the statuses of a pack into `present`; errors that are no recording's end the extraction. */
static sn_status judge(extraction *x, int64_t n, uint8_t *present, sn_feature_report *report, sn_error *err) {
  for (int64_t i = 0; i < n; i++) {
    const sn_status s = x->statuses[i];
    present[i] = s == SN_OK;
    if (s == SN_OK) continue;
    if (s == SN_END) {
      if (report->rejected++ == 0)
        snprintf(report->first_rejected, sizeof report->first_rejected, "%.80s: %.150s",
                 x->source->vtable->describe(x->source, x->windows[x->first + i]), x->errors[i].message);
    } else if (s == SN_E_MEMORY || s == SN_E_DEVICE || s == SN_E_STATE) {
      if (err != NULL) *err = x->errors[i];
      return s;
    } else {
      if (report->unreadable++ == 0) report->first_error = x->errors[i];
      sn_log_write(&x->options->log, SN_LOG_WARNING, "left out: %s", x->errors[i].message);
    }
  }
  return SN_OK;
}

/* --- context ------------------------------------------------------------------------------------------------------ */

/* The rows of the encoder's output that are pooled, as an input of their own: what pooling reads of one. */
typedef struct stretch {
  sn_encoder_input input;
  float *features;
} stretch;

static void free_stretch(stretch *s) {
  sn_free(s->input.offsets);
  sn_free(s->input.row_token);
  sn_free(s->input.channels);
  sn_free(s->features);
}

static sn_status allocate_stretch(const sn_encoder_input *all, int64_t c, stretch *s, sn_error *err) {
  s->input = (sn_encoder_input){.n_samples = all->n_samples, .n_slots = all->n_rows, .n_rows = all->n_rows};
  SN_TRY(sn_alloc(&s->input.offsets, all->n_samples + 1, sizeof *s->input.offsets, "pooled rows", err));
  SN_TRY(sn_alloc(&s->input.row_token, all->n_rows, sizeof *s->input.row_token, "pooled rows", err));
  SN_TRY(sn_alloc(&s->input.channels, all->n_rows, sizeof *s->input.channels, "pooled rows", err));
  return sn_alloc(&s->features, all->n_rows * c, sizeof *s->features, "pooled rows", err);
}

/* Whether a patch with its centre at t, of window number `window` of the call, is pooled. */
static bool in_stretch(const extraction *x, double t, int64_t window) {
  const double from = x->options->pool_from_s[window], slack = 1e-4; /* centres are float32 */
  return t >= from - slack && t < from + x->options->pool_s - slack;
}

/* Rows of sample i of the pack are those of window window_of[i]. A class token stays. */
static sn_status cut_stretch(const extraction *x, const sn_token_batch *batch, const int64_t *window_of,
                             const sn_encoder_input *all, const float *features, stretch *s, sn_error *err) {
  const int64_t c = sn_encoder_width(x->model->encoder);
  int64_t row = 0;
  SN_TRY(allocate_stretch(all, c, s, err));
  for (int64_t i = 0; i < all->n_samples; i++) {
    s->input.offsets[i] = row;
    for (int64_t r = all->offsets[i]; r < all->offsets[i + 1]; r++) {
      const int64_t token = all->row_token != NULL ? all->row_token[r] : r;
      if (token >= 0 && !in_stretch(x, batch->coordinates[4 * token + 3], window_of[i])) continue;
      s->input.row_token[row] = (int32_t)(token >= 0 ? row : token);
      s->input.channels[row] = token >= 0 ? all->channels[token] : -2;
      memcpy(s->features + row++ * c, features + r * c, (size_t)c * sizeof *features);
    }
  }
  s->input.offsets[all->n_samples] = row;
  return SN_OK;
}

static bool is_pooled(const extraction *x, const sn_sample *sample, int64_t window) {
  for (int64_t t = 0; t < sample->n_tokens; t++)
    if (in_stretch(x, sample->coordinates[4 * t + 3], window)) return true;
  return false;
}

static sn_status pool_rows(const extraction *x, const sn_encoder_input *input, const float *features, float *pooled,
                           sn_error *err) {
  const sn_feature_options *o = x->options;
  if (o->pool == SN_POOL_PER_CHANNEL && o->columns != NULL)
    return sn_pool_channels(x->model->encoder, input, features, o->columns, o->n_columns, pooled, err);
  return sn_pool_features(o->pool, x->model->encoder, input, features, x->tokens_per_sample, pooled, err);
}

static sn_status encode(extraction *x, const sn_token_batch *batch, const int64_t *window_of,
                        const sn_encoder_input *input, float *pooled, sn_error *err) {
  sn_value *y;
  if (sn_arena_capacity(x->arena) == 0) {
    sn_arena *measure = NULL;
    sn_tape *dry = NULL;
    sn_tape_options options = {.residual = SN_F32, .product = x->options->product, .training = false};
    sn_status status;
    SN_TRY_GOTO(sn_arena_create(true, &measure, err), measured);
    SN_TRY_GOTO(sn_tape_create(x->device, measure, &options, &dry, err), measured);
    SN_TRY_GOTO(sn_encoder_forward(dry, &y, x->model->encoder, input, 0, SN_F32, err), measured);
    SN_TRY_GOTO(sn_arena_reserve(x->arena, sn_arena_high_water(measure), err), measured);
  measured:
    sn_tape_destroy(dry);
    sn_arena_destroy(measure);
    if (status != SN_OK) return status;
  }
  sn_tape_reset(x->tape);
  SN_TRY(sn_encoder_forward(x->tape, &y, x->model->encoder, input, 0, SN_F32, err));
  if (x->options->pool_from_s == NULL) return pool_rows(x, input, y->tensor.data, pooled, err);
  stretch s = {.features = NULL};
  sn_status status = cut_stretch(x, batch, window_of, input, y->tensor.data, &s, err);
  if (status == SN_OK) status = pool_rows(x, &s.input, s.features, pooled, err);
  free_stretch(&s);
  return status;
}

static sn_status run_pack(extraction *x, int64_t n, float *features, uint8_t *present, sn_feature_report *report,
                          sn_error *err) {
  sn_token_batch *batch = NULL;
  sn_encoder_input *input = NULL;
  float *pooled = NULL;
  int64_t *window_of = NULL, n_present = 0;
  sn_status status;
  SN_TRY_GOTO(sn_pool_for(x->pool, n, read_one, x, err), done);
  SN_TRY_GOTO(judge(x, n, present, report, err), done);
  SN_TRY_GOTO(sn_alloc(&window_of, n, sizeof *window_of, "windows", err), done);
  for (int64_t i = 0; i < n; i++) {
    if (present[i] && x->options->pool_from_s != NULL && !is_pooled(x, x->samples[i], x->first + i)) {
      sn_sample_destroy(x->samples[i]);
      x->samples[i] = NULL;
      present[i] = 0;
      report->rejected++;
    }
    if (present[i]) window_of[n_present++] = x->first + i;
  }
  memset(features, 0, (size_t)(n * x->width) * sizeof *features);
  SN_TRY_GOTO(sn_token_batch_pack((const sn_sample *const *)x->samples, n, &batch, err), done);
  if (batch->n_samples == 0) goto done;
  for (int64_t t = 0; x->options->channels_seen != NULL && t < batch->n_tokens; t++)
    if (batch->channels[t] >= 0) x->options->channels_seen[batch->channels[t]] = 1;
  SN_TRY_GOTO(sn_encoder_input_create_for(x->model->encoder, batch, x->slots, x->per_pack, x->source->most_positions,
                                          x->source->most_series, SN_F32, &input, err),
              done);
  SN_TRY_GOTO(sn_alloc(&pooled, batch->n_samples * x->width, sizeof *pooled, "pooled features", err), done);
  SN_TRY_GOTO(encode(x, batch, window_of, input, pooled, err), done);
  for (int64_t i = 0, s = 0; i < n; i++)
    if (present[i]) memcpy(features + i * x->width, pooled + x->width * s++, (size_t)x->width * sizeof *features);
done:
  for (int64_t i = 0; i < n; i++) {
    sn_sample_destroy(x->samples[i]);
    x->samples[i] = NULL;
  }
  sn_free(pooled);
  sn_free(window_of);
  sn_encoder_input_destroy(input);
  sn_token_batch_destroy(batch);
  return status;
}

int64_t sn_feature_width(const sn_feature_options *options, const sn_model *model, const sn_source *source) {
  if (options->pool == SN_POOL_PER_CHANNEL && options->columns != NULL)
    return options->n_columns * sn_encoder_width(model->encoder);
  return sn_pool_width(options->pool, model->encoder, source->max_tokens);
}

static sn_status set_up(extraction *x, sn_error *err) {
  sn_tape_options options = {.residual = SN_F32, .product = x->options->product, .training = false};
  SN_TRY(sn_arena_create(false, &x->arena, err));
  SN_TRY(sn_tape_create(x->device, x->arena, &options, &x->tape, err));
  SN_TRY(sn_pool_create(x->options->n_threads, &x->pool, err));
  SN_TRY(sn_alloc(&x->samples, x->per_pack, sizeof *x->samples, "samples", err));
  SN_TRY(sn_alloc(&x->statuses, x->per_pack, sizeof *x->statuses, "samples", err));
  return sn_alloc(&x->errors, x->per_pack, sizeof *x->errors, "samples", err);
}

sn_status sn_features_extract(sn_device *device, const sn_model *model, sn_source *source, const int64_t *windows,
                              int64_t n, const sn_feature_options *options, float *features, uint8_t *present,
                              sn_feature_report *report, sn_error *err) {
  const int64_t need = sn_round_up(source->max_tokens, SN_TOKEN_BUCKET);
  extraction x = {.device = device, .model = model, .source = source, .windows = windows, .options = options,
                  .slots = need > SN_FEATURE_SLOTS ? need : SN_FEATURE_SLOTS, .tokens_per_sample = source->max_tokens};
  sn_status status;
  memset(report, 0, sizeof *report);
  if (source->patch_size != sn_encoder_data_of(model->encoder)->patch_size)
    return sn_fail(err, SN_E_ARGUMENT, "the data have patches of %lld values, the model was trained on %lld",
                   (long long)source->patch_size, (long long)sn_encoder_data_of(model->encoder)->patch_size);
  if (options->pool_from_s != NULL && sn_encoder_n_latents(model->encoder) > 0)
    return sn_fail(err, SN_E_ARGUMENT, "a stretch of a window cannot be pooled: this encoder's rows are latent sources, which "
                   "have no time (model.latent_sources)");
  if (options->pool_from_s != NULL && options->pool == SN_POOL_FLATTEN)
    return sn_fail(err, SN_E_ARGUMENT, "pool flatten: a stretch of a window has no fixed number of tokens; use mean");
  x.per_pack = x.slots / source->max_tokens;
  x.width = sn_feature_width(options, model, source);
  SN_TRY_GOTO(set_up(&x, err), done);
  int64_t n_present = 0;
  for (x.first = 0; x.first < n; x.first += x.per_pack) {
    const int64_t some = n - x.first < x.per_pack ? n - x.first : x.per_pack;
    SN_TRY_GOTO(run_pack(&x, some, features + x.first * x.width, present + x.first, report, err), done);
    for (int64_t i = 0; i < some; i++) n_present += present[x.first + i];
  }
  if (n_present == 0)
    status = sn_fail(err, SN_E_ARGUMENT, "none of %lld windows could be used: %lld rejected, %lld unreadable%s%s",
                     (long long)n, (long long)report->rejected, (long long)report->unreadable,
                     report->unreadable || report->first_rejected[0] ? "; first: " : "",
                     report->unreadable ? report->first_error.message : report->first_rejected);
done:
  sn_pool_destroy(x.pool);
  sn_tape_destroy(x.tape);
  sn_arena_destroy(x.arena);
  sn_free(x.samples);
  sn_free(x.statuses);
  sn_free(x.errors);
  return status;
}
