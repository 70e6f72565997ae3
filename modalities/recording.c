/* What every reader of signals shares: the list of formats, opening by content, range checks, warnings, units. */
#include "modalities/recording.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/formats/known_kinds.h"
#include "modalities/signal/event.h"

#define SN_FORMAT(name) extern const sn_format sn_format_##name;
#include "modalities/formats/formats.def"
#undef SN_FORMAT

const sn_format *const sn_formats[] = {
#define SN_FORMAT(name) &sn_format_##name,
#include "modalities/formats/formats.def"
#undef SN_FORMAT
};
const int64_t sn_n_formats = (int64_t)(sizeof sn_formats / sizeof sn_formats[0]);

enum { SNIFF_BYTES = 1024 };

/* ---- life of a recording ---- */

sn_status sn_recording_create(const sn_recording_vtable *vtable, const char *format, void *self, sn_recording **out,
                              sn_error *err) {
  sn_recording *recording;
  SN_TRY(sn_alloc(&recording, 1, sizeof *recording, "recording", err));
  recording->vtable = vtable;
  recording->self = self;
  snprintf(recording->format, sizeof recording->format, "%s", format);
  recording->age_years = NAN;
  recording->line_hz = NAN;
  recording->rate_den = 1;
  *out = recording;
  return SN_OK;
}

sn_status sn_recording_create_file(const sn_recording_vtable *vtable, const char *format, void *self, const sn_folder *folder,
                                   const char *name, sn_stream **stream, sn_recording **out, sn_error *err) {
  sn_recording *recording = NULL;
  sn_status status = sn_recording_create(vtable, format, self, &recording, err);
  if (status != SN_OK) {
    sn_recording alone = {.self = self};
    vtable->destroy(&alone);
    return status;
  }
  status = sn_folder_open(folder, name, stream, err);
  if (status == SN_OK) status = sn_recording_add_file(recording, name, err);
  if (status == SN_OK) *out = recording;
  else sn_recording_destroy(recording);
  return status;
}

sn_status sn_recording_set_channels(sn_recording *recording, int64_t n, sn_error *err) {
  sn_free(recording->channels);
  recording->channels = NULL;
  recording->n_channels = 0;
  SN_TRY(sn_alloc(&recording->channels, n, sizeof *recording->channels, "channels", err));
  for (int64_t c = 0; c < n; c++) {
    recording->channels[c].samples_per_frame = 1;
    recording->channels[c].gain = 1;
    recording->channels[c].unit_scale = 1;
  }
  recording->n_channels = n;
  return SN_OK;
}

void sn_recording_destroy(sn_recording *recording) {
  if (recording == NULL) return;
  if (recording->vtable != NULL && recording->vtable->destroy != NULL) recording->vtable->destroy(recording);
  sn_annotations_destroy(recording->events);
  sn_free(recording->channels);
  sn_free(recording->segments);
  sn_free(recording->warnings);
  for (int64_t i = 0; i < recording->n_comments; i++) sn_free(recording->comments[i]);
  sn_free(recording->comments);
  for (int64_t i = 0; i < recording->n_files; i++) sn_free(recording->files[i]);
  sn_free(recording->files);
  sn_free(recording->file_slots);
  sn_free(recording->notes);
  sn_folder_close(recording->folder);
  sn_free(recording);
}

/* ---- files: an intensive-care recording has tens of thousands, so names are found by hash (FNV-1a, open addressing) */

static int64_t *find_slot(const sn_recording *recording, const char *name) {
  uint64_t hash = 14695981039346656037u;
  for (const char *p = name; *p != '\0'; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
  uint64_t mask = (uint64_t)recording->n_file_slots - 1; /* a power of two, never full */
  for (uint64_t i = hash & mask;; i = (i + 1) & mask) {
    int64_t *slot = &recording->file_slots[i];
    if (*slot == 0 || strcmp(recording->files[*slot - 1], name) == 0) return slot;
  }
}

static sn_status grow_file_table(sn_recording *recording, sn_error *err) {
  int64_t slots = recording->n_file_slots > 0 ? 2 * recording->n_file_slots : 16, *table = NULL;
  SN_TRY(sn_realloc(&recording->files, slots / 2, sizeof *recording->files, "file names", err));
  SN_TRY(sn_alloc(&table, slots, sizeof *table, "file names", err));
  sn_free(recording->file_slots);
  recording->file_slots = table;
  recording->n_file_slots = slots;
  for (int64_t i = 0; i < recording->n_files; i++) *find_slot(recording, recording->files[i]) = i + 1;
  return SN_OK;
}

sn_status sn_recording_add_file(sn_recording *recording, const char *name, sn_error *err) {
  if (2 * recording->n_files >= recording->n_file_slots) SN_TRY(grow_file_table(recording, err));
  int64_t *slot = find_slot(recording, name);
  if (*slot != 0) return SN_OK;
  SN_TRY(sn_strdup(&recording->files[recording->n_files], name, "file name", err));
  *slot = ++recording->n_files;
  return SN_OK;
}

void sn_annotations_destroy(sn_annotations *list) {
  if (list == NULL) return;
  for (int64_t i = 0; i < list->n; i++) sn_free(list->items[i].text);
  sn_free(list->items);
  sn_free(list->warnings);
  sn_free(list);
}

sn_status sn_annotations_add(sn_annotations *list, int64_t *capacity, const sn_annotation *item, const char *text,
                             sn_error *err) {
  SN_TRY(sn_grow(&list->items, capacity, list->n + 1, sizeof *list->items, "annotations", err));
  sn_annotation *a = &list->items[list->n];
  *a = *item;
  a->text = NULL;
  if (text != NULL) SN_TRY(sn_strdup(&a->text, text, "annotations", err));
  list->n++;
  return SN_OK;
}

sn_status sn_annotations_copy(const sn_annotations *list, sn_annotations **out, sn_error *err) {
  sn_annotations *copy;
  int64_t capacity = 0;
  SN_TRY(sn_alloc(&copy, 1, sizeof *copy, "annotations", err));
  copy->rate = list->rate;
  sn_status status = SN_OK;
  for (int64_t i = 0; i < list->n && status == SN_OK; i++)
    status = sn_annotations_add(copy, &capacity, &list->items[i], list->items[i].text, err);
  if (status == SN_OK && list->n_warnings > 0) {
    status = sn_alloc(&copy->warnings, list->n_warnings, sizeof *copy->warnings, "annotations", err);
    if (status == SN_OK) {
      memcpy(copy->warnings, list->warnings, (size_t)list->n_warnings * sizeof *copy->warnings);
      copy->n_warnings = list->n_warnings;
    }
  }
  if (status != SN_OK) {
    sn_annotations_destroy(copy);
    return status;
  }
  *out = copy;
  return SN_OK;
}

/* ---- opening ---- */

static sn_status read_head(const sn_folder *folder, const char *name, uint8_t head[SNIFF_BYTES], int64_t *n,
                           sn_error *err) {
  sn_stream *stream;
  SN_TRY(sn_folder_open(folder, name, &stream, err));
  sn_status status = sn_stream_read(stream, 0, head, SNIFF_BYTES, n, err);
  sn_stream_close(stream);
  return status == SN_END ? SN_OK : status;
}

static const char *stem_of(const char *name, char *stem, size_t room) {
  snprintf(stem, room, "%.*s", (int)(sn_path_extension(name) - name), name);
  return stem;
}

bool sn_recording_needs_sidecar(const char *name) {
  char word[40];
  const char *extension = sn_path_extension(name);
  if (extension[0] == '\0' || strlen(extension) > 30) return false;
  snprintf(word, sizeof word, " %s ", extension);
  for (int64_t i = 0; i < sn_n_formats; i++)
    if (sn_formats[i]->with_sidecar != NULL && strcasestr(sn_formats[i]->with_sidecar, word) != NULL) return true;
  return false;
}

static sn_status open_in_folder(sn_folder *folder, const char *name, const sn_open_options *options, sn_recording **out,
                                sn_error *err) {
  uint8_t head[SNIFF_BYTES] = {0};
  int64_t n = 0;
  SN_TRY(read_head(folder, name, head, &n, err));
  const sn_format *best = NULL;
  char stem[64];
  int best_score = 0;
  for (int64_t i = 0; i < sn_n_formats; i++) {
    int score = sn_formats[i]->sniff(name, head, n, folder);
    if (score > best_score) {
      best_score = score;
      best = sn_formats[i];
    }
  }
  if (best == NULL) {
    char header[80];
    snprintf(header, sizeof header, "%s.hea", stem_of(name, stem, sizeof stem));
    if (sn_folder_has(folder, header))
      return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%.80s' belongs to the record '%.60s' and holds annotations, if anything: see "
                        "`sonde inspect %.60s --annotator %.20s --annotations`", name, stem, header,
                        sn_path_extension(name)[0] == '.' ? sn_path_extension(name) + 1 : "NAME");
    if (sn_recording_needs_sidecar(name))
      return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%.80s' is a table or an array: beside it '%.60s.json' must state its \"rate\", "
                        "\"channels\" and \"units\" (docs/formats/array.md)", name, stem_of(name, stem, sizeof stem));
    const char *kind = sn_known_kind(name, head, n, folder);
    if (kind != NULL) return sn_fail(err, SN_E_UNSUPPORTED, "'%s' is %s, which this version does not read", name, kind);
    char known[200] = "";
    for (int64_t i = 0; i < sn_n_formats; i++) {
      size_t used = strlen(known);
      snprintf(known + used, sizeof known - used, "%s%s%s", i > 0 ? ", " : "", sn_formats[i]->name,
               sn_formats[i]->experimental ? " (experimental)" : "");
    }
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL,
                      "'%s' is of no known format (%lld bytes looked at); this build reads: %s", name, (long long)n,
                      known);
  }
  SN_TRY(best->open(folder, name, options, out, err));
  if (!best->experimental) return SN_OK;
  sn_status status = sn_recording_warn(*out, "experimental", name, err,
                                       "the reader of %s was made from the format's definition alone: compare its values with "
                                       "another program's", best->name);
  if (status == SN_OK) return SN_OK;
  sn_recording_destroy(*out);
  *out = NULL;
  return status;
}

/* Zero samples and zero channels are damage, whatever the reader thought of them. */
static sn_status check_not_empty(const sn_recording *recording, const char *name, const sn_open_options *options,
                                 sn_error *err) {
  if (recording->annotations_alone) {
    if (options->allow_no_signal) return SN_OK;
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' holds annotations and no signal", name);
  }
  if (recording->n_channels <= 0) return sn_fail(err, SN_E_CORRUPT, "'%s' has no channel", name);
  int64_t frames = 0;
  for (int64_t s = 0; s < recording->n_segments; s++) frames += recording->segments[s].n_frames > 0;
  if (frames == 0) return sn_fail(err, SN_E_CORRUPT, "'%s' has no sample", name);
  if (recording->rate_num <= 0 || recording->rate_den <= 0)
    return sn_fail(err, SN_E_CORRUPT, "'%s' has no sampling rate", name);
  return SN_OK;
}

static const sn_format *format_of_folder(const char *name, size_t n) {
  for (int64_t i = 0; i < sn_n_formats; i++) {
    const size_t m = sn_formats[i]->folder != NULL ? strlen(sn_formats[i]->folder) : n;
    if (n > m && strncmp(name + n - m, sn_formats[i]->folder, m) == 0) return sn_formats[i];
  }
  return NULL;
}

int64_t sn_recording_folder(const char *path, const sn_format **format) {
  for (const char *part = path, *slash; (slash = strchr(part, '/')) != NULL; part = slash + 1) {
    const sn_format *found = format_of_folder(part, (size_t)(slash - part));
    if (found == NULL) continue;
    if (format != NULL) *format = found;
    return slash - path;
  }
  return 0;
}

/* The file of `entry` kind among the folder's: the one with the folder's own name, else the only one. */
static sn_status find_entry(const sn_dir_entry *entries, int64_t n, const char *folder, const sn_format *format, const char **name,
                            sn_error *err) {
  const size_t stem = strlen(folder) - strlen(format->folder);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) {
    const char *end = sn_path_extension(entries[i].name);
    if (entries[i].is_directory || strcmp(end, format->entry) != 0) continue;
    *name = entries[i].name;
    count++;
    if ((size_t)(end - entries[i].name) == stem && strncmp(entries[i].name, folder, stem) == 0) return SN_OK;
  }
  if (count == 1) return SN_OK;
  return sn_fail(err, SN_E_FORMAT, "'%s' holds %lld %s files: a recording of format %s has one, named as its folder", folder,
                 (long long)count, format->entry, format->name);
}

sn_status sn_recording_entry(const char *path, char **entry, sn_error *err) {
  char *folder = NULL;
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  size_t length = strlen(path);
  sn_status status;
  *entry = NULL;
  if (!sn_path_is_directory(path)) return SN_OK;
  SN_TRY(sn_strdup(&folder, path, "path", err));
  while (length > 1 && folder[length - 1] == '/') folder[--length] = '\0';
  const char *base = sn_path_base(folder), *name = NULL;
  const sn_format *format = format_of_folder(base, strlen(base));
  status = format != NULL ? sn_dir_list(folder, &entries, &n, err) : SN_OK;
  if (status == SN_OK && format != NULL) status = find_entry(entries, n, base, format, &name, err);
  if (status == SN_OK && format != NULL) status = sn_path_join(folder, name, entry, err);
  if (entries != NULL) sn_dir_free(entries, n);
  sn_free(folder);
  return status;
}

/* A record is often called by its name alone: "100" for 100.hea. */
static sn_status resolve_path(const char *path, char **resolved, sn_error *err) {
  struct stat info;
  if (stat(path, &info) == 0) {
    SN_TRY(sn_recording_entry(path, resolved, err));
    if (*resolved != NULL) return SN_OK;
    if (S_ISDIR(info.st_mode))
      return sn_fail(err, SN_E_FORMAT, "'%s' is a directory; give a file in it, or use `sonde index` for a whole tree",
                     path);
    return sn_strdup(resolved, path, "path", err);
  }
  const int reason = errno;
  int64_t n = (int64_t)strlen(path);
  SN_TRY(sn_alloc(resolved, n + 5, 1, "path", err));
  snprintf(*resolved, (size_t)n + 5, "%s.hea", path);
  if (stat(*resolved, &info) == 0 && S_ISREG(info.st_mode)) return SN_OK;
  sn_free(*resolved);
  *resolved = NULL;
  return sn_open_failed(path, "opened", reason, err);
}

sn_status sn_recording_open(const char *path, const sn_open_options *options, sn_recording **out, sn_error *err) {
  const sn_open_options strict = {0};
  char *resolved = NULL, *directory = NULL;
  sn_folder *folder = NULL;
  sn_recording *recording = NULL;
  sn_status status;
  SN_TRY(resolve_path(path, &resolved, err));
  const char *name = sn_path_base(resolved);
  SN_TRY_GOTO(sn_strdup(&directory, name == resolved ? "." : resolved, "path", err), fail);
  if (name != resolved) {
    size_t n = (size_t)(name - resolved);
    directory[n > 1 ? n - 1 : n] = '\0'; /* "/x" stands in "/" */
  }
  SN_TRY_GOTO(sn_folder_open_directory(directory, &folder, err), fail);
  if (options == NULL) options = &strict;
  SN_TRY_GOTO(open_in_folder(folder, name, options, &recording, err), fail);
  SN_TRY_GOTO(check_not_empty(recording, name, options, err), fail);
  recording->folder = folder;
  *out = recording;
  sn_free(directory);
  sn_free(resolved);
  return SN_OK;
fail:
  sn_recording_destroy(recording);
  sn_folder_close(folder);
  sn_free(directory);
  sn_free(resolved);
  return status;
}

/* ---- reading ---- */

static sn_status check_range(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                             int64_t count, sn_error *err) {
  if (channel < 0 || channel >= recording->n_channels)
    return sn_fail(err, SN_E_ARGUMENT, "channel %lld of %lld", (long long)channel, (long long)recording->n_channels);
  if (segment < 0 || segment >= recording->n_segments)
    return sn_fail(err, SN_E_ARGUMENT, "segment %lld of %lld", (long long)segment, (long long)recording->n_segments);
  int64_t total = sn_recording_samples(recording, channel, segment);
  if (first < 0 || count < 0 || first > total || count > total - first)
    return sn_fail(err, SN_E_ARGUMENT,
                   "samples %lld:%lld of channel '%s' were asked for, segment %lld has %lld of them",
                   (long long)first, (long long)count, recording->channels[channel].name, (long long)segment,
                   (long long)total);
  return SN_OK;
}

static sn_status check_values(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                              int64_t count, sn_error *err) {
  SN_TRY(check_range(recording, channel, segment, first, count, err));
  const sn_channel *c = &recording->channels[channel];
  if (!c->uncalibrated && !c->no_calibration) return SN_OK;
  if (c->kind == SN_SENSOR_TRIGGER)
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, c->name,
                      "channel '%s' is a trigger channel, not a signal: its events are among the annotations",
                      c->name);
  if (c->no_calibration)
    return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, c->name,
                      "channel '%s' has no calibration in its file (an empty range, or a gain of 0): its values cannot be given", c->name);
  return sn_fail_at(err, SN_E_UNSUPPORTED, -1, -1, c->name,
                    "channel '%s' has no known unit or calibration ('%s'): its values cannot be given; name a unit "
                    "with --assume-unit (in training: data.assume_unit)",
                    c->name, c->raw_unit);
}

/* A sidecar's unit or type: what the reader gave, in the channel's unit. */
static void rescale(const sn_channel *channel, double *values, int64_t n) {
  const double scale = channel->sidecar_scale;
  if (scale == 0 || scale == 1) return;
  for (int64_t i = 0; i < n; i++) values[i] *= scale;
}

sn_status sn_recording_read(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                            int64_t count, double *values, sn_error *err) {
  SN_TRY(check_values(recording, channel, segment, first, count, err));
  if (count == 0) return SN_OK;
  SN_TRY(recording->vtable->read(recording, channel, segment, first, count, values, err));
  rescale(&recording->channels[channel], values, count);
  return SN_OK;
}

sn_status sn_recording_read_channels(const sn_recording *recording, const int64_t *channels, int64_t n_channels,
                                     int64_t segment, int64_t first_frame, int64_t n_frames, double *const *values,
                                     sn_error *err) {
  for (int64_t i = 0; i < n_channels; i++) {
    SN_TRY(check_values(recording, channels[i], segment, 0, 0, err));
    int64_t per_frame = recording->channels[channels[i]].samples_per_frame, first, count;
    if (!sn_mul_ok(first_frame, per_frame, &first) || !sn_mul_ok(n_frames, per_frame, &count))
      return sn_fail(err, SN_E_ARGUMENT, "frames %lld:%lld", (long long)first_frame, (long long)n_frames);
    SN_TRY(check_range(recording, channels[i], segment, first, count, err));
  }
  if (n_frames == 0) return SN_OK;
  const bool together = recording->vtable->read_channels != NULL;
  if (together)
    SN_TRY(recording->vtable->read_channels(recording, channels, n_channels, segment, first_frame, n_frames, values, err));
  for (int64_t i = 0; i < n_channels; i++) {
    const sn_channel *c = &recording->channels[channels[i]];
    const int64_t per_frame = c->samples_per_frame;
    if (!together)
      SN_TRY(recording->vtable->read(recording, channels[i], segment, first_frame * per_frame, n_frames * per_frame,
                                     values[i], err));
    rescale(c, values[i], n_frames * per_frame);
  }
  return SN_OK;
}

sn_status sn_recording_read_stored(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                                   int64_t count, int32_t *stored, sn_error *err) {
  SN_TRY(check_range(recording, channel, segment, first, count, err));
  if (recording->vtable->read_stored == NULL)
    return sn_fail(err, SN_E_UNSUPPORTED, "format %s stores no integers", recording->format);
  if (count == 0) return SN_OK;
  return recording->vtable->read_stored(recording, channel, segment, first, count, stored, err);
}

sn_status sn_recording_annotations(const sn_recording *recording, const char *which, sn_annotations **out,
                                   sn_error *err) {
  if (which == NULL && recording->events != NULL) return sn_annotations_copy(recording->events, out, err);
  if (recording->vtable->annotations != NULL) return recording->vtable->annotations(recording, which, out, err);
  SN_TRY(sn_alloc(out, 1, sizeof **out, "annotations", err));
  (*out)->rate = (double)recording->rate_num / (double)recording->rate_den;
  return SN_OK;
}

int64_t sn_recording_find_channel(const sn_recording *recording, const char *name) {
  for (int64_t c = 0; c < recording->n_channels; c++)
    if (strcmp(recording->channels[c].name, name) == 0) return c;
  return -1;
}

int64_t sn_recording_samples(const sn_recording *recording, int64_t channel, int64_t segment) {
  int64_t per_frame = recording->channels[channel].samples_per_frame, frames = 0;
  if (segment >= 0) return recording->segments[segment].n_frames * per_frame;
  for (int64_t s = 0; s < recording->n_segments; s++) frames += recording->segments[s].n_frames;
  return frames * per_frame;
}

double sn_recording_rate(const sn_recording *recording, int64_t channel) {
  return (double)recording->rate_num * (double)recording->channels[channel].samples_per_frame /
         (double)recording->rate_den;
}

double sn_recording_duration(const sn_recording *recording) {
  int64_t frames = 0;
  for (int64_t s = 0; s < recording->n_segments; s++) frames += recording->segments[s].n_frames;
  return frames == 0 ? 0 : (double)frames * (double)recording->rate_den / (double)recording->rate_num;
}

sn_status sn_recording_place_event(sn_recording *r, const char *source, sn_annotation *event, bool *keep, sn_error *err) {
  const double rate = (double)r->rate_num / (double)r->rate_den;
  const sn_segment *last = r->n_segments > 0 ? &r->segments[r->n_segments - 1] : NULL;
  const double end_s = last != NULL ? last->start_s + (double)last->n_frames / rate : 0;
  *keep = event->onset_s >= 0 ? event->onset_s < end_s : event->onset_s + event->duration_s > 0;
  event->sample = sn_event_index(event->onset_s, rate);
  if (event->onset_s < 0)
    return sn_recording_warn(r, "annotation_before_start", event->code, err, "%s: event '%s' at %.9g s begins before the recording%s",
                             source, event->code, event->onset_s, *keep ? "" : " and is left out");
  if (*keep) return SN_OK;
  return sn_recording_warn(r, "annotation_beyond_end", event->code, err,
                           "%s: event '%s' at %.9g s lies beyond the end at %.3f s and is left out", source, event->code,
                           event->onset_s, end_s);
}

/* ---- warnings ---- */

/* A text cut to its room may end inside a character. */
static void drop_half_character(char *text, size_t room) {
  size_t n = strlen(text);
  if (n + 1 < room) return;
  size_t start = n;
  while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80) start--;
  if (start == 0 || (unsigned char)text[start - 1] < 0xC0) return;
  unsigned char lead = (unsigned char)text[start - 1];
  size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (n - (start - 1) < length) text[start - 1] = '\0';
}

static sn_status warn(sn_warning **list, int64_t *n, const char *code, const char *where, sn_error *err,
                      const char *format, va_list arguments) {
  for (int64_t i = 0; i < *n; i++) {
    if (strcmp((*list)[i].code, code) == 0) {
      (*list)[i].count++;
      return SN_OK;
    }
  }
  SN_TRY(sn_realloc(list, *n + 1, sizeof **list, "warnings", err));
  sn_warning *w = &(*list)[(*n)++];
  memset(w, 0, sizeof *w);
  snprintf(w->code, sizeof w->code, "%s", code);
  snprintf(w->where, sizeof w->where, "%s", where != NULL ? where : "");
  vsnprintf(w->message, sizeof w->message, format, arguments);
  for (char *c = w->message; *c != '\0'; c++) /* as in an error's message: it is one line */
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  drop_half_character(w->where, sizeof w->where);
  drop_half_character(w->message, sizeof w->message);
  w->count = 1;
  return SN_OK;
}

sn_status sn_recording_note(sn_recording *recording, const char *name, sn_error *err, const char *format, ...) {
  int64_t i = 0;
  while (i < recording->n_notes && strcmp(recording->notes[i].name, name) != 0) i++;
  if (i == recording->n_notes) {
    SN_TRY(sn_realloc(&recording->notes, i + 1, sizeof *recording->notes, "notes", err));
    recording->n_notes++;
  }
  sn_note *note = &recording->notes[i];
  va_list arguments;
  memset(note, 0, sizeof *note);
  snprintf(note->name, sizeof note->name, "%s", name);
  va_start(arguments, format);
  vsnprintf(note->value, sizeof note->value, format, arguments);
  va_end(arguments);
  drop_half_character(note->value, sizeof note->value);
  return SN_OK;
}

sn_status sn_recording_warn(sn_recording *recording, const char *code, const char *where, sn_error *err,
                            const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  sn_status status = warn(&recording->warnings, &recording->n_warnings, code, where, err, format, arguments);
  va_end(arguments);
  return status;
}

sn_status sn_warning_add(sn_warning **list, int64_t *n, const char *code, const char *where, sn_error *err,
                         const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  sn_status status = warn(list, n, code, where, err, format, arguments);
  va_end(arguments);
  return status;
}
