#include "core/token_batch.h"

#include <string.h>

#include "core/alloc.h"

static void free_targets(sn_target *targets, int n) {
  for (int i = 0; i < n; i++) {
    sn_free(targets[i].values);
    sn_free(targets[i].valid);
  }
}

static const sn_target *find_target(const sn_target *targets, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (strcmp(targets[i].spec.name, name) == 0) return &targets[i];
  return NULL;
}

/* Leaves the target empty when it fails. */
static sn_status allocate_target(sn_target *target, const sn_target_spec *spec, int64_t rows, sn_error *err) {
  int64_t values;
  *target = (sn_target){.spec = *spec};
  if (spec->width < 1 || !sn_mul_ok(rows, spec->width, &values))
    return sn_fail(err, SN_E_ARGUMENT, "target '%s' of %lld rows with %lld values each cannot be made", spec->name,
                   (long long)rows, (long long)spec->width);
  SN_TRY(sn_alloc(&target->values, values, sizeof *target->values, "values of a target", err));
  const sn_status status = sn_alloc(&target->valid, values, 1, "validity of a target", err);
  if (status == SN_OK) return SN_OK;
  sn_free(target->values);
  target->values = NULL;
  return status;
}

sn_status sn_sample_create(int64_t n_tokens, int64_t patch_size, bool with_valid, sn_sample **out, sn_error *err) {
  sn_sample *s = NULL;
  sn_status status;
  int64_t values;
  if (n_tokens < 0 || patch_size < 1 || !sn_mul_ok(n_tokens, patch_size, &values))
    return sn_fail(err, SN_E_ARGUMENT, "a sample of %lld tokens with %lld values each cannot be made",
                   (long long)n_tokens, (long long)patch_size);
  SN_TRY_GOTO(sn_alloc(&s, 1, sizeof *s, "sample", err), fail);
  s->recording = -1;
  s->n_tokens = n_tokens;
  s->patch_size = patch_size;
  SN_TRY_GOTO(sn_alloc(&s->patches, values, sizeof *s->patches, "patches of a sample", err), fail);
  if (with_valid) SN_TRY_GOTO(sn_alloc(&s->valid, values, 1, "validity of a sample", err), fail);
  SN_TRY_GOTO(sn_alloc(&s->coordinates, n_tokens, 4 * sizeof *s->coordinates, "coordinates of a sample", err), fail);
  SN_TRY_GOTO(sn_alloc(&s->orientations, n_tokens, 3 * sizeof *s->orientations, "orientations of a sample", err), fail);
  SN_TRY_GOTO(sn_alloc(&s->channels, n_tokens, sizeof *s->channels, "channels of a sample", err), fail);
  SN_TRY_GOTO(sn_alloc(&s->positions, n_tokens, sizeof *s->positions, "positions of a sample", err), fail);
  SN_TRY_GOTO(sn_alloc(&s->series, n_tokens, sizeof *s->series, "series of a sample", err), fail);
  SN_TRY_GOTO(sn_alloc(&s->sensors, n_tokens, sizeof *s->sensors, "sensors of a sample", err), fail);
  for (int64_t i = 0; i < n_tokens; i++) s->channels[i] = -1;
  *out = s;
  return SN_OK;
fail:
  sn_sample_destroy(s);
  return status;
}

void sn_sample_destroy(sn_sample *sample) {
  if (sample == NULL) return;
  sn_free(sample->patches);
  sn_free(sample->valid);
  sn_free(sample->coordinates);
  sn_free(sample->orientations);
  sn_free(sample->channels);
  sn_free(sample->positions);
  sn_free(sample->series);
  sn_free(sample->sensors);
  free_targets(sample->targets, sample->n_targets);
  sn_free(sample);
}

sn_status sn_sample_add_target(sn_sample *sample, const sn_target_spec *spec, sn_target **out, sn_error *err) {
  if (sample->n_targets == SN_MOST_TARGETS || find_target(sample->targets, sample->n_targets, spec->name) != NULL)
    return sn_fail(err, SN_E_STATE, "a sample of %d targets cannot take '%s' too", sample->n_targets, spec->name);
  sn_target *target = &sample->targets[sample->n_targets];
  SN_TRY(allocate_target(target, spec, spec->per_token ? sample->n_tokens : 1, err));
  sample->n_targets++;
  *out = target;
  return SN_OK;
}

/* Every sample has the targets of the first one. */
static sn_status same_targets(const sn_sample *a, const sn_sample *b, sn_error *err) {
  bool same = a->n_targets == b->n_targets;
  for (int i = 0; same && i < a->n_targets; i++) {
    const sn_target_spec *x = &a->targets[i].spec, *y = &b->targets[i].spec;
    same = strcmp(x->name, y->name) == 0 && x->per_token == y->per_token && x->width == y->width;
  }
  return same ? SN_OK : sn_fail(err, SN_E_ARGUMENT, "two samples of a pack have other targets, or of another width");
}

/* Counts what will be packed and checks that it fits together. */
static sn_status measure(const sn_sample *const *samples, int64_t n, sn_token_batch *b, bool *with_valid,
                         sn_error *err) {
  int64_t room;
  const sn_sample *before = NULL;
  *with_valid = false;
  for (int64_t i = 0; i < n; i++) {
    const sn_sample *s = samples[i];
    if (s == NULL) continue;
    if (b->n_samples > 0 && s->patch_size != b->patch_size)
      return sn_fail(err, SN_E_ARGUMENT,
                     "sample %lld of a pack has patches of %lld values where the ones before it have %lld: one pack "
                     "holds one patch size",
                     (long long)i, (long long)s->patch_size, (long long)b->patch_size);
    if (before != NULL) SN_TRY(same_targets(before, s, err));
    before = s;
    b->patch_size = s->patch_size;
    b->n_samples++;
    if (s->valid != NULL) *with_valid = true;
    if (s->n_tokens < 0 || !sn_add_ok(b->n_tokens, s->n_tokens, &b->n_tokens))
      return sn_fail(err, SN_E_ARGUMENT, "sample %lld of a pack has %lld tokens", (long long)i, (long long)s->n_tokens);
  }
  if (!sn_add_ok(b->n_tokens, SN_TOKEN_BUCKET - 1, &room) || !sn_mul_ok(room, b->patch_size, &room))
    return sn_fail(err, SN_E_ARGUMENT, "a pack of %lld tokens with %lld values each cannot be made",
                   (long long)b->n_tokens, (long long)b->patch_size);
  b->n_slots = sn_round_up(b->n_tokens, SN_TOKEN_BUCKET);
  return SN_OK;
}

static sn_status allocate(sn_token_batch *b, bool with_valid, sn_error *err) {
  const int64_t values = b->n_slots * b->patch_size;
  SN_TRY(sn_alloc(&b->offsets, b->n_samples + 1, sizeof *b->offsets, "offsets of a pack", err));
  SN_TRY(sn_alloc(&b->sample_ids, b->n_samples, sizeof *b->sample_ids, "sample ids of a pack", err));
  SN_TRY(sn_alloc(&b->subject_ids, b->n_samples, sizeof *b->subject_ids, "subject ids of a pack", err));
  SN_TRY(sn_alloc(&b->recordings, b->n_samples, sizeof *b->recordings, "recordings of a pack", err));
  SN_TRY(sn_alloc(&b->windows, b->n_samples, sizeof *b->windows, "windows of a pack", err));
  SN_TRY(sn_alloc(&b->sources, b->n_samples, sizeof *b->sources, "sources of a pack", err));
  SN_TRY(sn_alloc(&b->starts_s, b->n_samples, sizeof *b->starts_s, "starts of a pack", err));
  SN_TRY(sn_alloc(&b->views, b->n_samples, sizeof *b->views, "views of a pack", err));
  SN_TRY(sn_alloc(&b->patches, values, sizeof *b->patches, "patches of a pack", err));
  if (with_valid) SN_TRY(sn_alloc(&b->valid, values, 1, "validity of a pack", err));
  SN_TRY(sn_alloc(&b->coordinates, b->n_slots, 4 * sizeof *b->coordinates, "coordinates of a pack", err));
  SN_TRY(sn_alloc(&b->orientations, b->n_slots, 3 * sizeof *b->orientations, "orientations of a pack", err));
  SN_TRY(sn_alloc(&b->channels, b->n_slots, sizeof *b->channels, "channels of a pack", err));
  SN_TRY(sn_alloc(&b->positions, b->n_slots, sizeof *b->positions, "positions of a pack", err));
  SN_TRY(sn_alloc(&b->series, b->n_slots, sizeof *b->series, "series of a pack", err));
  return sn_alloc(&b->sensors, b->n_slots, sizeof *b->sensors, "sensors of a pack", err);
}

static sn_status allocate_targets(sn_token_batch *b, const sn_sample *like, sn_error *err) {
  for (int i = 0; i < like->n_targets; i++, b->n_targets++) {
    const sn_target_spec *spec = &like->targets[i].spec;
    SN_TRY(allocate_target(&b->targets[i], spec, spec->per_token ? b->n_slots : b->n_samples, err));
  }
  return SN_OK;
}

static void copy_targets(sn_token_batch *b, int64_t row, int64_t at, const sn_sample *s) {
  for (int i = 0; i < s->n_targets; i++) {
    const sn_target *from = &s->targets[i];
    const int64_t width = from->spec.width, first = (from->spec.per_token ? at : row) * width;
    const size_t n = (size_t)((from->spec.per_token ? s->n_tokens : 1) * width);
    memcpy(b->targets[i].values + first, from->values, n * sizeof *from->values);
    memcpy(b->targets[i].valid + first, from->valid, n);
  }
}

static void copy_sample(sn_token_batch *b, int64_t row, const sn_sample *s) {
  const int64_t at = b->offsets[row];
  const size_t t = (size_t)s->n_tokens, p = (size_t)s->patch_size;
  b->offsets[row + 1] = at + s->n_tokens;
  b->sample_ids[row] = s->sample_id;
  b->subject_ids[row] = s->subject_id;
  b->recordings[row] = s->recording;
  b->windows[row] = s->window;
  b->views[row] = s->view;
  b->starts_s[row] = s->start_s;
  b->sources[row] = s->source;
  b->n_nobeat += s->nobeat;
  memcpy(b->patches + at * b->patch_size, s->patches, t * p * sizeof *s->patches);
  memcpy(b->coordinates + at * 4, s->coordinates, t * 4 * sizeof *s->coordinates);
  memcpy(b->orientations + at * 3, s->orientations, t * 3 * sizeof *s->orientations);
  memcpy(b->channels + at, s->channels, t * sizeof *s->channels);
  memcpy(b->positions + at, s->positions, t * sizeof *s->positions);
  memcpy(b->series + at, s->series, t * sizeof *s->series);
  memcpy(b->sensors + at, s->sensors, t * sizeof *s->sensors);
  copy_targets(b, row, at, s);
  if (b->valid == NULL) return;
  if (s->valid != NULL) memcpy(b->valid + at * b->patch_size, s->valid, t * p);
  else memset(b->valid + at * b->patch_size, 1, t * p);
}

sn_status sn_token_batch_pack(const sn_sample *const *samples, int64_t n, sn_token_batch **out, sn_error *err) {
  sn_token_batch *b = NULL;
  sn_status status;
  bool with_valid;
  SN_TRY_GOTO(sn_alloc(&b, 1, sizeof *b, "token batch", err), fail);
  SN_TRY_GOTO(measure(samples, n, b, &with_valid, err), fail);
  SN_TRY_GOTO(allocate(b, with_valid, err), fail);
  for (int64_t i = 0; i < n; i++) {
    if (samples[i] == NULL) continue;
    SN_TRY_GOTO(allocate_targets(b, samples[i], err), fail);
    break;
  }
  for (int64_t i = 0, row = 0; i < n; i++) {
    if (samples[i] != NULL) copy_sample(b, row++, samples[i]);
  }
  *out = b;
  return SN_OK;
fail:
  sn_token_batch_destroy(b);
  return status;
}

const sn_target *sn_token_batch_target(const sn_token_batch *batch, const char *name) {
  return find_target(batch->targets, batch->n_targets, name);
}

void sn_token_batch_destroy(sn_token_batch *batch) {
  if (batch == NULL) return;
  sn_free(batch->offsets);
  sn_free(batch->sample_ids);
  sn_free(batch->subject_ids);
  sn_free(batch->recordings);
  sn_free(batch->windows);
  sn_free(batch->views);
  sn_free(batch->starts_s);
  sn_free(batch->sources);
  sn_free(batch->patches);
  sn_free(batch->valid);
  sn_free(batch->coordinates);
  sn_free(batch->orientations);
  sn_free(batch->channels);
  sn_free(batch->positions);
  sn_free(batch->series);
  sn_free(batch->sensors);
  free_targets(batch->targets, batch->n_targets);
  sn_free(batch);
}
