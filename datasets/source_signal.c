/* needs: full */
#include "datasets/source_signal.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "core/sha256.h"
#include "datasets/store.h"
#include "modalities/signal/augment.h"

/* Windows of one segment, or one window given outright. */
typedef struct stretch {
  int64_t row, segment;
  int64_t first;       /* window of the source */
  int64_t number;      /* of its first window in the recording */
  double last_start_s; /* a start lies in [0, last_start_s] */
  double start_s;      /* given outright; else 0 */
} stretch;

typedef struct signal_source {
  sn_signal_source_options options; /* its pointers are not used after creation, except manifest */
  sn_store *store;               /* NULL: none */
  sn_conditioned *conditioned;
  sn_source_beats *beats;        /* NULL: fixed patches */
  double stride_s;
  bool augmented;
  bool given; /* windows were given outright */
  int64_t n_stretches, capacity;
  stretch *stretches;   /* sorted by first; those of a line stand together */
  int64_t *stretch_of;  /* (manifest->n) first stretch of a line, -1 none */
  uint64_t *subjects;   /* (manifest->n) */
  sn_signal_stats **stats; /* (manifest->n) for zscore-record; NULL: not needed */
  pthread_mutex_t lock; /* stats */
  sn_signal_source_report report;
} signal_source;

const sn_config_entry sn_signal_source_config[] = {
    {"data.crop", SN_CONFIG_CHOICE, "none", 1, 0, NULL, "none|random",
     "random: a window's start is shifted by up to half a stride, another each epoch"},
    {"data.cache", SN_CONFIG_QUANTITY, "256 MiB", 0, 1e15, "B", NULL, "conditioned signal kept in memory"},
    {"data.verify", SN_CONFIG_CHOICE, "full", 1, 0, NULL, "full|files|none",
     "at a recording's first use: the checksums its format states too, the manifest's alone, or nothing"},
    {"data.open_files", SN_CONFIG_INT, "64", 1, 100000, NULL, NULL, "recordings that are open at a time"},
    {"data.assume_unit", SN_CONFIG_TEXT, "", 1, 0, NULL, NULL,
     "unit of channels whose file states none, or an unknown one"},
    {"data.store", SN_CONFIG_TEXT, "", 1, 0, NULL, NULL,
     "prepared store to read from instead of the recordings; empty: none"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

static bool unit_fits(const char *unit, const sn_modality *modality) {
  char canonical[SN_UNIT_NAME];
  double scale;
  bool fits = false;
  for (int64_t i = 0; i < modality->n_kinds; i++)
    fits = fits || sn_unit_canonical(unit, modality->kinds[i], canonical, &scale);
  return fits;
}

/* One for the message. */
static const char *unit_of(const sn_modality *modality) {
  static const char *const UNITS[] = {"mV", "fT", "fT/cm"};
  for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
    if (unit_fits(UNITS[i], modality)) return UNITS[i];
  return "that of its sensors";
}

sn_status sn_signal_source_resolve(sn_config *config, const sn_manifest *manifest, sn_error *err) {
  const char *name = sn_config_text(config, "data.modality"), *first = NULL;
  const sn_modality *modality = NULL;
  if (strcmp(name, "auto") != 0) {
    SN_TRY(sn_modality_find(name, &modality, err));
    return sn_modality_apply(modality, config, err);
  }
  for (int64_t i = 0; i < manifest->n; i++) {
    const sn_manifest_row *row = &manifest->rows[i];
    const char *says = row->cells[SN_MANIFEST_MODALITY];
    if (!row->ok || says[0] == '\0' || (first != NULL && strcmp(first, says) == 0)) continue;
    const sn_modality *found = sn_modality_of(says);
    if (found == NULL)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.modality",
                        "%s: recordings of modality '%s' (%s), which nothing here reads", manifest->root, says, row->path);
    if (modality != NULL && found != modality)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.modality",
                        "%s: recordings of %s and of %s (%s); name the one to use in data.modality", manifest->root,
                        first, says, row->path);
    modality = found;
    if (first == NULL) first = says;
  }
  if (modality == NULL)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.modality",
                      "%s: no recording says what it is of; name it in data.modality", manifest->root);
  return sn_modality_apply(modality, config, err);
}

void sn_signal_source_options_plain(sn_signal_source_options *options) {
  options->random_crop = false;
  options->augments = (sn_augments){0};
}

sn_status sn_signal_source_options_from_config(const sn_config *config, sn_signal_source_options *out, sn_error *err) {
  const char *verify = sn_config_text(config, "data.verify");
  SN_TRY(sn_signal_options_from_config(config, &out->signal, err));
  SN_TRY(sn_beat_token_options_from_config(config, &out->beats, err));
  out->random_crop = strcmp(sn_config_text(config, "data.crop"), "random") == 0;
  if (sn_config_has_key(config, "augment.crop"))
    SN_TRY(sn_signal_augments_read(&out->augments, config, sn_config_real(config, "data.rate"), err));
  out->cache_bytes = (int64_t)sn_config_real(config, "data.cache");
  out->verify = strcmp(verify, "full") == 0    ? SN_VERIFY_FULL
                : strcmp(verify, "files") == 0 ? SN_VERIFY_FILES
                                               : SN_VERIFY_NONE;
  out->most_open = sn_config_int(config, "data.open_files");
  const char *store = sn_config_text(config, "data.store"), *unit = sn_config_text(config, "data.assume_unit");
  if (unit[0] != 0 && !unit_fits(unit, out->signal.modality))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.assume_unit",
                      "data.assume_unit '%s': no unit of what %s reads; expected is one such as %s", unit,
                      out->signal.modality->name, unit_of(out->signal.modality));
  out->assume_unit = unit[0] != 0 ? unit : NULL;
  out->store_path = store[0] != 0 ? store : NULL;
  return SN_OK;
}

/* ---- where a window lies --------------------------------------------------------------------------------------- */

static const stretch *find_stretch(const signal_source *self, int64_t index) {
  int64_t low = 0, high = self->n_stretches - 1;
  while (low < high) {
    int64_t middle = high - (high - low) / 2;
    if (self->stretches[middle].first <= index) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  return &self->stretches[low];
}

void sn_signal_source_locate(const sn_source *source, int64_t index, sn_window_at *where, int64_t *number) {
  const signal_source *self = source->self;
  const stretch *s = find_stretch(self, index);
  int64_t in_segment = index - s->first;
  *where =
      (sn_window_at){.row = s->row, .segment = s->segment, .start_s = s->start_s + (double)in_segment * self->stride_s};
  if (number != NULL) *number = s->number + in_segment;
}

void sn_signal_source_windows_of(const sn_source *source, int64_t row, int64_t *first, int64_t *n) {
  const signal_source *self = source->self;
  int64_t i = self->given ? -1 : self->stretch_of[row];
  *first = *n = 0;
  if (i < 0) return;
  *first = self->stretches[i].first;
  while (i < self->n_stretches && self->stretches[i].row == row) i++;
  *n = (i < self->n_stretches ? self->stretches[i].first : source->n_windows) - *first;
}

sn_status sn_windows_of_items(const sn_manifest *manifest, const sn_labels *labels, sn_window_at **out, sn_error *err) {
  sn_window_at *windows = NULL;
  sn_manifest_info info = {0};
  int64_t row = -1;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&windows, labels->n, sizeof *windows, "windows", err));
  for (int64_t i = 0; i < labels->n; i++) {
    const sn_label_item *item = &labels->items[i];
    if (item->recording != row) { /* items of a recording stand together */
      sn_manifest_info_free(&info);
      SN_TRY_GOTO(sn_manifest_parse(manifest, item->recording, &info, err), fail);
      row = item->recording;
    }
    if (item->segment < 0 || item->segment >= info.n_segments) {
      status = sn_fail(err, SN_E_ARGUMENT, "%s: an item of the whole recording has no window of its own",
                       manifest->rows[item->recording].path);
      goto fail;
    }
    double segment_s = (double)info.first_frames[item->segment] * (double)info.rate_den / (double)info.rate_num;
    windows[i] = (sn_window_at){.row = item->recording, .segment = item->segment, .start_s = item->start_s - segment_s};
  }
  sn_manifest_info_free(&info);
  *out = windows;
  return SN_OK;
fail:
  sn_manifest_info_free(&info);
  sn_free(windows);
  return status;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

/* Of data set and path, which no other file changes, and what follows them. */
static uint64_t hash_of(const sn_manifest *m, int64_t row, const char *tail) {
  const char *const parts[] = {m->name, "\n", m->rows[row].path, tail};
  sn_sha256 hash;
  uint8_t digest[32];
  uint64_t id = 0;
  sn_sha256_init(&hash);
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) sn_sha256_update(&hash, parts[i], (int64_t)strlen(parts[i]));
  sn_sha256_final(&hash, digest);
  for (int i = 7; i >= 0; i--) id = id << 8 | digest[i];
  return id;
}

/* The key of all randomness of a window. Given windows are told apart by their exact place. */
static uint64_t sample_id(const signal_source *self, const sn_window_at *where, int64_t number) {
  char tail[64];
  if (self->given) snprintf(tail, sizeof tail, "\n@%" PRId64 ":%.17g", where->segment, where->start_s);
  else snprintf(tail, sizeof tail, "\n%" PRId64, number);
  return hash_of(self->options.manifest, where->row, tail);
}

/* augment: the stream of the sample's augmentations. */
static double crop_start(const signal_source *self, const stretch *s, double start_s, uint64_t seed, uint64_t epoch,
                         uint64_t id, int64_t view, const sn_random *augment) {
  double shifted = start_s;
  if (self->options.random_crop) {
    sn_random random = sn_random_at_view(seed, SN_PURPOSE_CROP, epoch, id, view);
    shifted += (sn_random_uniform(&random) - 0.5) * self->stride_s;
  }
  shifted += sn_signal_augment_shift(&self->options.augments, augment);
  if (shifted == start_s) return start_s;
  return shifted < 0 ? 0 : shifted > s->last_start_s ? s->last_start_s : shifted;
}

/* Statistics of a whole recording, computed once and kept. */
static sn_status stats_of(signal_source *self, const sn_conditioned_view *view, const sn_series_list *list,
                          const sn_signal_stats **out, sn_error *err) {
  *out = NULL;
  if (self->stats == NULL) return SN_OK;
  pthread_mutex_lock(&self->lock);
  *out = self->stats[view->row];
  pthread_mutex_unlock(&self->lock);
  if (*out != NULL) return SN_OK;
  sn_signal_stats *fresh = NULL;
  SN_TRY(sn_signal_record_stats(sn_conditioned_signal(self->conditioned), &view->recording, list, &fresh, err));
  pthread_mutex_lock(&self->lock);
  if (self->stats[view->row] == NULL) {
    self->stats[view->row] = fresh;
    fresh = NULL;
  }
  *out = self->stats[view->row];
  pthread_mutex_unlock(&self->lock);
  sn_free(fresh);
  return SN_OK;
}

static sn_status signal_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                             sn_sample **out, sn_error *err) {
  signal_source *self = source->self;
  sn_window_at where;
  sn_conditioned_view opened;
  int64_t number = 0;
  const sn_signal_stats *stats = NULL;
  const sn_series_list *list = NULL;
  if (index < 0 || index >= source->n_windows) {
    return sn_fail(err, SN_E_STATE, "window %" PRId64 " was asked for; there are %" PRId64, index, source->n_windows);
  }
  sn_signal_source_locate(source, index, &where, &number);
  uint64_t id = sample_id(self, &where, number);
  const sn_random augment = sn_random_at_view(seed, SN_PURPOSE_AUGMENT, epoch, id, view);
  double start = crop_start(self, find_stretch(self, index), where.start_s, seed, epoch, id, view, &augment);
  sn_conditioned_open(self->conditioned, where.row, &opened);
  SN_TRY(sn_conditioned_series(self->conditioned, where.row, &list, err));
  SN_TRY(stats_of(self, &opened, list, &stats, err));
  const sn_augments *augments = self->augmented ? &self->options.augments : NULL;
  if (self->beats != NULL)
    SN_TRY(sn_source_beats_read(self->beats, &opened, list, where.segment, start, stats, augments, &augment, out, err));
  else
    SN_TRY(sn_signal_read_augmented(sn_conditioned_signal(self->conditioned), &opened.recording, list, where.segment, start,
                                    stats, augments, &augment, out, err));
  (*out)->sample_id = id;
  (*out)->subject_id = self->subjects[where.row];
  (*out)->recording = where.row;
  (*out)->window = number;
  return SN_OK;
}

sn_status sn_signal_source_read_patches(const sn_source *source, int64_t index, sn_sample **out, sn_error *err) {
  signal_source *self = source->self;
  const sn_series_list *list = NULL;
  const sn_signal_stats *stats = NULL;
  sn_conditioned_view view;
  sn_window_at where;
  sn_signal_source_locate(source, index, &where, NULL);
  sn_conditioned_open(self->conditioned, where.row, &view);
  SN_TRY(sn_conditioned_series(self->conditioned, where.row, &list, err));
  SN_TRY(stats_of(self, &view, list, &stats, err));
  return sn_signal_read_sample(sn_conditioned_signal(self->conditioned), &view.recording, list, where.segment,
                               where.start_s, stats, out, err);
}

static int64_t row_tokens(const signal_source *self, int64_t row) {
  if (self->beats == NULL) return sn_conditioned_nominal_tokens(self->conditioned, row);
  return sn_source_beats_most(self->beats, row) * sn_conditioned_planned_series(self->conditioned, row)->n;
}

static int64_t signal_nominal_tokens(const sn_source *source, int64_t index) {
  const signal_source *self = source->self;
  return row_tokens(self, find_stretch(self, index)->row);
}

static int64_t signal_recording(const sn_source *source, int64_t index) {
  const signal_source *self = source->self;
  return find_stretch(self, index)->row;
}

static const char *signal_describe(const sn_source *source, int64_t index) {
  const signal_source *self = source->self;
  return self->options.manifest->rows[find_stretch(self, index)->row].path;
}

static void signal_stretch(const sn_source *source, int64_t i, sn_source_stretch *out) {
  const signal_source *self = source->self;
  const stretch *s = &self->stretches[i];
  const sn_manifest *m = self->options.manifest;
  const int64_t end = i + 1 < self->n_stretches ? self->stretches[i + 1].first : source->n_windows;
  *out = (sn_source_stretch){.first = s->first, .n = end - s->first, .recording_key = hash_of(m, s->row, ""),
                             .subject_id = self->subjects[s->row], .stride_s = self->given ? 0 : self->stride_s,
                             .window_s = sn_signal_window_seconds(sn_conditioned_signal(self->conditioned))};
}

static void signal_destroy(sn_source *source) {
  signal_source *self = source->self;
  if (self != NULL) {
    for (int64_t i = 0; self->stats != NULL && i < self->options.manifest->n; i++) sn_free(self->stats[i]);
    sn_free(self->stats);
    sn_free(self->stretches);
    sn_free(self->stretch_of);
    sn_free(self->subjects);
    sn_source_beats_destroy(self->beats);
    sn_conditioned_destroy(self->conditioned);
    sn_store_close(self->store);
    pthread_mutex_destroy(&self->lock);
    sn_free(self);
  }
  sn_free(source);
}

static const sn_source_vtable SIGNAL = {.name = "signal",
                                     .read = signal_read,
                                     .nominal_tokens = signal_nominal_tokens,
                                     .recording = signal_recording,
                                     .describe = signal_describe,
                                     .destroy = signal_destroy,
                                     .stretch = signal_stretch};

/* ---- planning -------------------------------------------------------------------------------------------------- */

static void note_unusable(signal_source *self, int64_t row, const char *why) {
  if (self->report.n_unusable++ > 0) return;
  snprintf(self->report.first_unusable, sizeof self->report.first_unusable, "%.90s: %.150s",
           self->options.manifest->rows[row].path, why);
}

static sn_status add_stretch(sn_source *source, const stretch *s, int64_t n_windows, sn_error *err) {
  signal_source *self = source->self;
  SN_TRY(sn_grow(&self->stretches, &self->capacity, self->n_stretches + 1, sizeof *self->stretches, "windows", err));
  stretch *added = &self->stretches[self->n_stretches++];
  *added = *s;
  added->first = source->n_windows;
  if (!sn_add_ok(source->n_windows, n_windows, &source->n_windows))
    return sn_fail(err, SN_E_ARGUMENT, "too many windows");
  int64_t tokens = row_tokens(self, s->row), added_tokens;
  if (!sn_mul_ok(tokens, n_windows, &added_tokens) ||
      !sn_add_ok(source->total_tokens, added_tokens, &source->total_tokens))
    return sn_fail(err, SN_E_ARGUMENT, "too many tokens");
  if (source->min_tokens == 0 || tokens < source->min_tokens) source->min_tokens = tokens;
  if (tokens > source->max_tokens) source->max_tokens = tokens;
  const int64_t series = sn_conditioned_planned_series(self->conditioned, s->row)->n;
  if (series > source->most_series) source->most_series = series;
  return SN_OK;
}

static sn_status segment_room(const signal_source *self, const sn_conditioned_view *view, int64_t segment, int64_t *n,
                              double *last_start_s, sn_error *err) {
  return sn_signal_segment_windows(sn_conditioned_signal(self->conditioned), &view->recording,
                                   sn_conditioned_planned_series(self->conditioned, view->row), segment, n,
                                   last_start_s, err);
}

static sn_status plan_row(sn_source *source, int64_t row, sn_error *err) {
  signal_source *self = source->self;
  const sn_error *why = NULL;
  sn_conditioned_view view;
  int64_t number = 0;
  if (row < 0 || row >= self->options.manifest->n) {
    return sn_fail(err, SN_E_ARGUMENT, "line %" PRId64 " of a manifest with %" PRId64, row, self->options.manifest->n);
  }
  if (!self->options.manifest->rows[row].ok) return SN_OK;
  if (sn_conditioned_usable(self->conditioned, row, &why) != SN_OK) {
    note_unusable(self, row, why->message);
    return SN_OK;
  }
  sn_conditioned_open(self->conditioned, row, &view);
  for (int64_t segment = 0; segment < view.recording.n_segments; segment++) {
    int64_t n = 0;
    stretch s = {.row = row, .segment = segment, .number = number};
    SN_TRY(segment_room(self, &view, segment, &n, &s.last_start_s, err));
    if (n > 0 && self->stretch_of[row] >= 0 && number == 0) {
      return sn_fail(err, SN_E_ARGUMENT, "%s is given twice", self->options.manifest->rows[row].path);
    }
    if (n > 0 && self->stretch_of[row] < 0) self->stretch_of[row] = self->n_stretches;
    if (n > 0) SN_TRY(add_stretch(source, &s, n, err));
    number += n;
  }
  self->report.n_recordings += number > 0;
  self->report.n_short += number == 0;
  return SN_OK;
}

static sn_status plan_given(sn_source *source, const sn_window_at *w, uint8_t *seen, sn_error *err) {
  signal_source *self = source->self;
  const sn_manifest *m = self->options.manifest;
  const sn_error *why = NULL;
  sn_conditioned_view view;
  int64_t n = 0;
  if (w->row < 0 || w->row >= m->n || !m->rows[w->row].ok) {
    return sn_fail(err, SN_E_ARGUMENT, "a window of line %" PRId64 ", which is no sound recording", w->row);
  }
  if (sn_conditioned_usable(self->conditioned, w->row, &why) != SN_OK) {
    if (!seen[w->row]) note_unusable(self, w->row, why->message);
    seen[w->row] = 1;
    return sn_fail(err, SN_E_ARGUMENT, "%s: %s", m->rows[w->row].path, why->message);
  }
  sn_conditioned_open(self->conditioned, w->row, &view);
  stretch s = {.row = w->row, .segment = w->segment, .number = source->n_windows};
  if (w->segment < 0 || w->segment >= view.recording.n_segments) {
    return sn_fail(err, SN_E_ARGUMENT, "%s: a window of segment %" PRId64 "; there are %" PRId64, m->rows[w->row].path,
                   w->segment, view.recording.n_segments);
  }
  SN_TRY(segment_room(self, &view, w->segment, &n, &s.last_start_s, err));
  if (n == 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s: segment %" PRId64 " is shorter than a window", m->rows[w->row].path,
                   w->segment);
  s.start_s = w->start_s < 0 ? 0 : w->start_s > s.last_start_s ? s.last_start_s : w->start_s;
  if (!seen[w->row]) self->report.n_recordings++;
  seen[w->row] = 1;
  return add_stretch(source, &s, 1, err);
}

/* Beats instead of patches: what the source says of its tokens, and, where it is asked for, the beats of all recordings. */
static sn_status plan_beats(sn_source *source, sn_error *err) {
  enum { GRID_BYTES = 1 << 26, SCAN_THREADS = 2 };
  signal_source *self = source->self;
  const sn_signal_source_options *o = &self->options;
  int64_t *rows = NULL, n = o->windows != NULL ? o->n_windows : o->rows != NULL ? o->n_rows : o->manifest->n, m = 0;
  sn_status status;
  if (o->beats.mode == SN_BEAT_NONE) return SN_OK;
  SN_TRY(sn_source_beats_create(&o->beats, self->conditioned, o->manifest->n, GRID_BYTES, &self->beats, err));
  source->patch_size = sn_beat_patch_size(&o->beats);
  source->patch_step_s = o->beats.patch_s;
  source->n_extra = source->patch_size - o->beats.length;
  source->embed_extra = o->beats.extra == SN_BEAT_EXTRA_EMBEDDING;
  source->may_lack_beats = true;
  source->most_positions = sn_beat_most_in(&o->beats, sn_signal_window_seconds(sn_conditioned_signal(self->conditioned)));
  if (!o->beats.scan) return SN_OK;
  SN_TRY(sn_alloc(&rows, n, sizeof *rows, "beats", err));
  for (int64_t i = 0; i < n; i++) {
    const int64_t row = o->windows != NULL ? o->windows[i].row : o->rows != NULL ? o->rows[i] : i;
    if (row >= 0 && row < o->manifest->n && o->manifest->rows[row].ok) rows[m++] = row;
  }
  status = sn_source_beats_scan(self->beats, rows, m, SCAN_THREADS, err);
  sn_free(rows);
  return status;
}

static sn_status plan(sn_source *source, sn_error *err) {
  signal_source *self = source->self;
  const sn_signal_source_options *o = &self->options;
  if (self->given) {
    uint8_t *seen = NULL;
    SN_TRY(sn_alloc(&seen, o->manifest->n, 1, "windows", err));
    sn_status status = SN_OK;
    for (int64_t i = 0; i < o->n_windows && status == SN_OK; i++)
      status = plan_given(source, &o->windows[i], seen, err);
    sn_free(seen);
    return status;
  }
  SN_TRY(sn_alloc(&self->stretch_of, o->manifest->n, sizeof *self->stretch_of, "windows", err));
  for (int64_t i = 0; i < o->manifest->n; i++) self->stretch_of[i] = -1;
  int64_t n = o->rows != NULL ? o->n_rows : o->manifest->n;
  for (int64_t i = 0; i < n; i++) SN_TRY(plan_row(source, o->rows != NULL ? o->rows[i] : i, err));
  return SN_OK;
}

static sn_status fill_subjects(signal_source *self, sn_error *err) {
  const sn_manifest *m = self->options.manifest;
  sn_subjects *from_header = NULL;
  const sn_subjects *subjects = self->options.subjects;
  SN_TRY(sn_alloc(&self->subjects, m->n, sizeof *self->subjects, "subjects", err));
  if (subjects == NULL) {
    /* No subject anywhere is no error here: the ids are then 0, unknown. */
    sn_status status = sn_subjects_create(m, NULL, "header", &from_header, NULL);
    if (status == SN_E_MEMORY) return sn_fail(err, status, "subjects: out of memory");
    subjects = from_header;
  }
  /* Recordings that stand for persons are none: positives by subject would be positives by recording under another name. */
  const bool known = subjects != NULL && !subjects->persons_unknown;
  for (int64_t i = 0; known && i < m->n; i++) self->subjects[i] = sn_subject_hash(m, subjects, i);
  sn_subjects_destroy(from_header);
  return SN_OK;
}

static void update_text(sn_sha256 *hash, const char *text) {
  sn_sha256_update(hash, text, (int64_t)strlen(text));
  sn_sha256_update(hash, "\n", 1);
}

/* Manifest, split, every constant of the pipeline, augmentations, crop, and which lines or windows. */
static sn_status fill_hash(sn_source *source, sn_error *err) {
  signal_source *self = source->self;
  sn_string json = {0};
  sn_json_writer w;
  sn_signal *whole = NULL;
  sn_sha256 hash;
  uint8_t digest[32];
  SN_TRY(sn_signal_create(&self->options.signal, &whole, err));
  sn_json_writer_init(&w, &json, 0);
  if (self->beats != NULL) sn_json_begin_object(&w);
  if (self->beats != NULL) sn_json_write_key(&w, "signal");
  sn_signal_write_json(whole, &w);
  if (self->beats != NULL) sn_beat_write_json(&self->options.beats, &w);
  if (self->beats != NULL) sn_json_end_object(&w);
  sn_signal_destroy(whole);
  sn_status status = sn_json_writer_finish(&w, err);
  if (status == SN_OK) status = sn_augments_describe(&self->options.augments, &json, err);
  if (status == SN_OK) {
    sn_sha256_init(&hash);
    update_text(&hash, self->options.manifest->name);
    update_text(&hash, self->options.manifest->hash);
    update_text(&hash, self->options.split_hash != NULL ? self->options.split_hash : "-");
    update_text(&hash, json.data);
    update_text(&hash, self->options.random_crop ? "random" : "none");
    for (int64_t i = 0; i < self->n_stretches; i++) {
      const stretch *s = &self->stretches[i];
      int64_t numbers[3] = {s->row, s->segment, s->first};
      sn_sha256_update(&hash, numbers, sizeof numbers);
      sn_sha256_update(&hash, &s->start_s, sizeof s->start_s);
    }
    sn_sha256_final(&hash, digest);
    sn_sha256_hex(digest, source->content_hash);
  }
  sn_string_free(&json);
  return status;
}

/* What all recordings say they are of, where that is another modality than the one asked for; NULL otherwise. */
static const char *other_modality(const signal_source *self) {
  const sn_manifest *m = self->options.manifest;
  const char *says = NULL;
  for (int64_t i = 0; i < m->n; i++) {
    const char *own = m->rows[i].cells[SN_MANIFEST_MODALITY];
    if (!m->rows[i].ok) continue;
    if (own[0] == '\0' || sn_modality_of(own) == self->options.signal.modality || (says != NULL && strcmp(says, own) != 0)) return NULL;
    says = own;
  }
  return says;
}

static sn_status check_not_empty(const sn_source *source, sn_error *err) {
  const signal_source *self = source->self;
  const sn_signal_source_report *r = &self->report;
  if (source->n_windows > 0) return SN_OK;
  const char *others = other_modality(self);
  if (others != NULL)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.modality",
                      "%.60s: the recordings are of %s, and %s is asked for (data.modality, which a preset sets too): take a preset of "
                      "that modality, or state what the channels are",
                      self->options.manifest->name, others, self->options.signal.modality->name);
  return sn_fail(err, SN_E_ARGUMENT,
                 "%s: no window of %g s: %" PRId64 " recordings are shorter, %" PRId64 " cannot be used%s%s",
                 self->options.manifest->name, sn_signal_window_seconds(sn_conditioned_signal(self->conditioned)), r->n_short,
                 r->n_unusable, r->n_unusable > 0 ? ", first " : "", r->first_unusable);
}

sn_status sn_source_create_signal(const sn_signal_source_options *options, sn_source **out, sn_error *err) {
  sn_source *source = NULL;
  signal_source *self = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&source, 1, sizeof *source, "ECG source", err));
  source->vtable = &SIGNAL;
  SN_TRY_GOTO(sn_alloc(&self, 1, sizeof *self, "ECG source", err), fail);
  pthread_mutex_init(&self->lock, NULL);
  source->self = self;
  self->options = *options;
  self->given = options->windows != NULL;
  self->augmented = sn_augments_any(&options->augments);
  if (options->store_path != NULL) {
    SN_TRY_GOTO(sn_store_open(options->store_path, options->manifest, &options->signal, &self->store, err), fail);
  }
  sn_conditioned_options c = {.manifest = options->manifest,
                              .signal = options->signal,
                              .cache_bytes = options->cache_bytes,
                              .most_open = options->most_open,
                              .verify = options->verify,
                              .tolerant = options->tolerant,
                              .assume_unit = options->assume_unit,
                              .store = self->store,
                              .log = options->log};
  SN_TRY_GOTO(sn_conditioned_create(&c, &self->conditioned, err), fail);
  const sn_signal *signal = sn_conditioned_signal(self->conditioned);
  self->stride_s = sn_signal_stride_seconds(signal);
  source->patch_size = sn_signal_patch_size(signal);
  source->patch_step_s = sn_signal_patch_stride_seconds(signal);
  source->n_channel_ids = options->signal.modality->n_ids();
  source->channel_name = options->signal.modality->id_name;
  source->most_positions = sn_signal_window_patches(signal);
  source->n_recordings = options->manifest->n;
  SN_TRY_GOTO(plan_beats(source, err), fail);
  SN_TRY_GOTO(plan(source, err), fail);
  SN_TRY_GOTO(check_not_empty(source, err), fail);
  if (self->beats == NULL) source->most_series = source->max_tokens / source->most_positions;
  source->n_used = self->report.n_recordings;
  source->n_stretches = self->n_stretches;
  self->report.window_hours = (double)source->n_windows * sn_signal_window_seconds(signal) / 3600;
  SN_TRY_GOTO(fill_subjects(self, err), fail);
  if (sn_signal_needs_stats(signal)) {
    SN_TRY_GOTO(sn_alloc(&self->stats, options->manifest->n, sizeof *self->stats, "statistics", err), fail);
  }
  SN_TRY_GOTO(fill_hash(source, err), fail);
  self->options.rows = NULL;
  self->options.windows = NULL;
  self->options.subjects = NULL;
  self->options.split_hash = NULL;
  self->options.store_path = NULL;
  *out = source;
  return SN_OK;
fail:
  signal_destroy(source);
  return status;
}

void sn_signal_source_get_report(const sn_source *source, sn_signal_source_report *out) {
  const signal_source *self = source->self;
  sn_conditioned_counts counts;
  sn_conditioned_get_counts(self->conditioned, &counts);
  *out = self->report;
  out->n_bad_channels = counts.bad_channels;
  out->n_left_out = counts.left_out;
  out->beats = (sn_beat_counts){.first_nobeat = -1};
  if (self->beats != NULL) sn_source_beats_get_counts(self->beats, &out->beats);
}

const sn_conditioned *sn_signal_source_conditioned(const sn_source *source) {
  const signal_source *self = source->self;
  return self->conditioned;
}
