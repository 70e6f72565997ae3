/* needs: full */
#include "datasets/labels_read.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/pool.h"
#include "datasets/tree.h"
#include "modalities/recording.h"

typedef struct group {
  const char *codes; /* " N L R e j " */
  const char *name;
} group;

static const group AAMI[] = {{" N L R e j ", "N"}, {" A a J S ", "S"}, {" V E ", "V"}, {" F ", "F"}, {" / f Q ", "Q"}};

/* Codes that mark a beat, for annotation:code (the AAMI ones and those that they leave out). */
static const char BEATS[] = " N L R B A a J S V r F e j n E / f Q ? ";

static bool has_word(const char *list, const char *word) {
  char padded[24];
  if (word[0] == 0 || strlen(word) > 15 || strchr(word, ' ') != NULL) return false;
  snprintf(padded, sizeof padded, " %s ", word);
  return strstr(list, padded) != NULL;
}

const char *sn_aami_class(const char *code) {
  for (size_t i = 0; i < sizeof AAMI / sizeof AAMI[0]; i++) {
    if (has_word(AAMI[i].codes, code)) return AAMI[i].name;
  }
  return NULL;
}

void sn_raw_labels_free(sn_raw_labels *raw) {
  for (int64_t i = 0; i < raw->n; i++) sn_free(raw->items[i].text);
  sn_free(raw->items);
  memset(raw, 0, sizeof *raw);
}

static sn_status add_raw(sn_raw_labels *raw, int64_t recording, int64_t segment, double start_s, double duration_s,
                         const char *text, const char *reason, sn_error *err) {
  SN_TRY(sn_grow(&raw->items, &raw->capacity, raw->n + 1, sizeof *raw->items, "labels", err));
  sn_raw_item *item = &raw->items[raw->n];
  *item = (sn_raw_item){.recording = recording,
                        .segment = segment,
                        .order = raw->n,
                        .start_s = start_s,
                        .duration_s = duration_s,
                        .reason = reason,
                        .n_dropped = 1};
  if (text != NULL) SN_TRY(sn_strdup(&item->text, text, "labels", err));
  raw->n++;
  return SN_OK;
}

static double duration_of(const sn_manifest *manifest, int64_t row) {
  double seconds = 0;
  return sn_parse_f64(manifest->rows[row].cells[SN_MANIFEST_DURATION], false, &seconds) ? seconds : 0;
}

static sn_status read_column(const sn_manifest *manifest, const sn_keyed_table *table, const char *name,
                             sn_raw_labels *out, sn_error *err) {
  int64_t column = -1;
  if (table == NULL) {
    return sn_fail_at(
        err, SN_E_ARGUMENT, -1, -1, name,
        "target %s names a column, but there is no table (--labels FILE); other targets are header:FIELD, "
        "annotation:aami|code|text|span and participants:COLUMN",
        name);
  }
  SN_TRY(sn_keyed_table_column(table, name, &column, err));
  for (int64_t i = 0; i < manifest->n; i++) {
    const char *cell = sn_keyed_table_cell(table, i, column);
    if (!manifest->rows[i].ok) {
      if (cell != NULL) SN_TRY(add_raw(out, i, -1, 0, 0, NULL, "recording cannot be used", err));
      continue;
    }
    SN_TRY(add_raw(out, i, -1, 0, duration_of(manifest, i), cell, cell == NULL ? "not in the table" : NULL, err));
  }
  return SN_OK;
}

/* ---- participants.tsv ------------------------------------------------------------------------------------------- */

/* The line of a person: spelled the same but for "sub-", else the only one that is alike ("00" in the table, "0" in the
 * recording); -1. */
static int64_t find_participant(const sn_table *table, const char *subject) {
  int64_t alike = -1, n_alike = 0;
  for (int64_t i = 0; i < table->n_rows; i++) {
    const char *id = table->cells[i * table->n_columns];
    if (strncmp(id, "sub-", 4) == 0 && strncmp(subject, "sub-", 4) != 0) id += 4;
    if (strcmp(id, subject) == 0) return i;
    if (!sn_subject_alike(id, subject)) continue;
    alike = i;
    n_alike++;
  }
  return n_alike == 1 ? alike : -1;
}

/* A second line of the same person that states something else: which one is right nobody can tell. */
static sn_status check_one_line(const sn_table *table, int64_t line, int64_t column, sn_error *err) {
  const char *id = table->cells[line * table->n_columns], *cell = table->cells[line * table->n_columns + column];
  if (strncmp(id, "sub-", 4) == 0) id += 4;
  for (int64_t i = 0; i < table->n_rows; i++) {
    const char *other = table->cells[i * table->n_columns], *its = table->cells[i * table->n_columns + column];
    if (strncmp(other, "sub-", 4) == 0) other += 4;
    if (i == line || strcmp(other, id) != 0 || strcmp(its, cell) == 0) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, table->lines[i], table->columns[column],
                      "participants.tsv: lines %" PRId64 " and %" PRId64 " are both of '%s' and differ in '%s': '%.60s' and '%.60s'",
                      table->lines[line], table->lines[i], id, table->columns[column], cell, its);
  }
  return SN_OK;
}

static sn_status read_participants(const sn_manifest *manifest, const char *name, sn_raw_labels *out, sn_error *err) {
  char *path = NULL;
  sn_table *table = NULL;
  SN_TRY(sn_path_join(manifest->root, "participants.tsv", &path, err));
  sn_status status = sn_table_load(path, '\t', true, &table, err);
  sn_free(path);
  SN_TRY(status);
  const int64_t column = sn_table_column(table, name);
  if (column < 0) {
    const char *near = sn_nearest_name(name, (const char *const *)table->columns, table->n_columns);
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "target", "participants.tsv has no column '%s'%s%s%s", name,
                        near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
  }
  for (int64_t i = 0; i < manifest->n && status == SN_OK; i++) {
    char *subject = NULL;
    if (!manifest->rows[i].ok) continue;
    status = sn_strdup(&subject, manifest->rows[i].cells[SN_MANIFEST_SUBJECT], "labels", err);
    if (status == SN_OK) status = sn_manifest_unescape(subject, err);
    if (status == SN_OK) {
      const int64_t line = subject[0] != '\0' ? find_participant(table, subject) : -1;
      if (line >= 0) status = check_one_line(table, line, column, err);
      const char *reason = subject[0] == '\0' ? "person unknown" : line < 0 ? "person not in participants.tsv" : NULL;
      if (status == SN_OK)
        status = add_raw(out, i, -1, 0, duration_of(manifest, i),
                         line >= 0 ? table->cells[line * table->n_columns + column] : NULL, reason, err);
    }
    sn_free(subject);
  }
  sn_table_destroy(table);
  return status;
}

/* ---- headers and annotations: recordings are opened, in parallel ----------------------------------------------- */

/* What of an annotation is the label, and which stretch it is of. */
typedef enum annotation_use { USE_AAMI = 0, USE_CODE, USE_TEXT, USE_SPAN } annotation_use;
static const char *const USES[] = {"aami", "code", "text", "span"};
enum { N_USES = sizeof USES / sizeof USES[0], MOST_WINDOWS = 1 << 24 };

typedef struct reading {
  const sn_manifest *manifest;
  sn_tree *tree;
  const sn_label_options *options;
  const char *field; /* header:FIELD, or NULL */
  annotation_use use;
  sn_raw_labels *lists; /* (manifest->n) one per recording: no order depends on threads */
  sn_status *statuses;
  sn_error *errors; /* (n) only those of our own making stop */
} reading;

/* Value of "FIELD: value" in a comment, also "<FIELD>: value"; NULL if it is not there. Written into `value`. */
static const char *comment_value(const char *comment, const char *field, char *value, size_t room) {
  size_t n = strlen(field);
  for (const char *at = comment; *at != 0; at++) {
    bool start = at == comment || at[-1] == '<' || at[-1] == ' ' || at[-1] == '#';
    if (!start || strncasecmp(at, field, n) != 0) continue;
    bool marked = at != comment && at[-1] == '<';
    const char *rest = at + n + (marked && at[n] == '>');
    if (*rest != ':') continue;
    rest++;
    size_t length = marked ? strcspn(rest, "<") : strlen(rest);
    snprintf(value, room, "%.*s", (int)(length < room ? length : room - 1), rest);
    return sn_trim(value);
  }
  return NULL;
}

static sn_status read_header(reading *r, int64_t row, const sn_recording *recording, sn_error *err) {
  char text[1024];
  const char *value = NULL;
  for (int64_t i = 0; i < recording->n_comments && value == NULL; i++) {
    value = comment_value(recording->comments[i], r->field, text, sizeof text);
  }
  if (value == NULL && sn_equal_nocase(r->field, "sex") && recording->sex[0] != 0) value = recording->sex;
  if (value == NULL && sn_equal_nocase(r->field, "age") && !isnan(recording->age_years)) {
    sn_format_f64(recording->age_years, text);
    value = text;
  }
  const char *reason = value == NULL ? "field not in the header" : NULL;
  return add_raw(&r->lists[row], row, -1, 0, duration_of(r->manifest, row), value, reason, err);
}

/* Segment that holds [start, start + duration], or -1. A hair of tolerance: onsets are sample numbers over a rate. */
static int64_t segment_around(const sn_recording *recording, double start_s, double duration_s) {
  double rate = (double)recording->rate_num / (double)recording->rate_den;
  for (int64_t k = 0; k < recording->n_segments; k++) {
    const sn_segment *s = &recording->segments[k];
    if (start_s >= s->start_s - 1e-9 && start_s + duration_s <= s->start_s + (double)s->n_frames / rate + 1e-9)
      return k;
  }
  return -1;
}

/* One window, when it lies in a segment. */
static sn_status add_window(reading *r, int64_t row, const sn_recording *recording, double start_s, double window_s,
                            const char *name, sn_error *err) {
  const int64_t segment = segment_around(recording, start_s, window_s);
  const char *reason = name == NULL  ? "beat outside the groups"
                       : segment < 0 ? "window over the recording's edge"
                                     : NULL;
  return add_raw(&r->lists[row], row, segment, start_s, window_s, reason == NULL ? name : NULL, reason, err);
}

/* Windows end to end within an annotation. Those that lie outside the recording as a whole are counted, not gone through:
 * a stated duration has no bound. */
static sn_status add_span(reading *r, int64_t row, const sn_recording *recording, const sn_annotation *a, double window,
                          const char *text, sn_error *err) {
  if (recording->n_segments == 0) return SN_OK;
  const sn_segment *last = &recording->segments[recording->n_segments - 1];
  const double end_s = last->start_s + (double)last->n_frames * (double)recording->rate_den / (double)recording->rate_num;
  const double whole = floor(a->duration_s / window + 1e-9);
  const double within = fmin(whole, ceil((end_s - a->onset_s) / window)), before = floor(-a->onset_s / window);
  int64_t first = 0, end = 0, outside = 0;
  if (!sn_floor_ok(fmin(fmax(before, 0), fmax(within, 0)), &first) || !sn_floor_ok(fmax(within, 0), &end)) first = end = 0;
  if (end - first > MOST_WINDOWS - r->lists[row].n)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "window", "%s: more than %d windows of %g s within its annotations: longer "
                      "ones are needed", r->manifest->rows[row].path, MOST_WINDOWS, window);
  for (int64_t k = first; k < end; k++)
    SN_TRY(add_window(r, row, recording, a->onset_s + (double)k * window, window, text, err));
  if (!sn_floor_ok(fmin(whole - (double)(end - first), 1e15), &outside) || outside <= 0) return SN_OK;
  SN_TRY(add_raw(&r->lists[row], row, -1, 0, 0, NULL, "window over the recording's edge", err));
  r->lists[row].items[r->lists[row].n - 1].n_dropped = outside;
  return SN_OK;
}

static sn_status take_annotation(reading *r, int64_t row, const sn_recording *recording, const sn_annotation *a,
                                 sn_error *err) {
  const double window = r->options->window_s > 0 ? r->options->window_s : 1.0;
  if (r->use == USE_AAMI || r->use == USE_CODE) {
    if (!has_word(BEATS, a->code)) return SN_OK; /* a rhythm change, a comment, noise */
    return add_window(r, row, recording, a->onset_s - window / 2, window,
                      r->use == USE_AAMI ? sn_aami_class(a->code) : a->code, err);
  }
  const char *text = a->text != NULL && a->text[0] != '\0' ? a->text : a->code;
  if (text[0] == '\0') return SN_OK;
  if (r->use == USE_TEXT) return add_window(r, row, recording, a->onset_s, window, text, err);
  if (!(a->duration_s >= window)) {
    return add_raw(&r->lists[row], row, -1, 0, 0, NULL, "annotation shorter than a window", err);
  }
  return add_span(r, row, recording, a, window, text, err);
}

static sn_status read_annotations(reading *r, int64_t row, const sn_recording *recording, sn_error *err) {
  sn_annotations *list = NULL;
  int64_t n_before = r->lists[row].n;
  sn_error fault;
  sn_error_clear(&fault);
  if (recording->vtable->annotations == NULL && recording->events == NULL) {
    return add_raw(&r->lists[row], row, -1, 0, 0, NULL, "format has no annotations", err);
  }
  sn_status status = sn_recording_annotations(recording, NULL, &list, &fault);
  if (status == SN_E_MEMORY) {
    if (err != NULL) *err = fault;
    return status;
  }
  if (status != SN_OK) return add_raw(&r->lists[row], row, -1, 0, 0, NULL, "annotations cannot be read", err);
  for (int64_t i = 0; i < list->n && status == SN_OK; i++)
    status = take_annotation(r, row, recording, &list->items[i], err);
  if (status == SN_OK && r->lists[row].n == n_before) {
    const bool beats = r->use == USE_AAMI || r->use == USE_CODE;
    status = add_raw(&r->lists[row], row, -1, 0, 0, NULL,
                     beats ? "recording without beat annotations" : "recording without annotations", err);
  }
  sn_annotations_destroy(list);
  return status;
}

static void reading_task(void *user, int64_t row, int64_t worker) {
  reading *r = user;
  sn_error *err = &r->errors[row];
  sn_recording *recording = NULL;
  if (!r->manifest->rows[row].ok) return;
  sn_status status = sn_tree_open_recording(r->tree, r->manifest->rows[row].path, NULL, &recording, err);
  if (status != SN_OK && status != SN_E_MEMORY) {
    sn_error_clear(err);
    status = add_raw(&r->lists[row], row, -1, 0, 0, NULL, "header cannot be read", err);
  } else if (status == SN_OK) {
    status = r->field != NULL ? read_header(r, row, recording, err) : read_annotations(r, row, recording, err);
  }
  sn_recording_destroy(recording);
  r->statuses[row] = status;
}

static sn_status gather(reading *r, sn_raw_labels *out, sn_error *err) {
  for (int64_t i = 0; i < r->manifest->n; i++) {
    if (r->statuses[i] != SN_OK) {
      if (err != NULL) *err = r->errors[i];
      return r->statuses[i];
    }
    sn_raw_labels *list = &r->lists[i];
    SN_TRY(sn_grow(&out->items, &out->capacity, out->n + list->n, sizeof *out->items, "labels", err));
    for (int64_t k = 0; k < list->n; k++) {
      out->items[out->n] = list->items[k];
      out->items[out->n].order = out->n;
      out->n++;
    }
    list->n = 0; /* the texts belong to `out` now */
  }
  return SN_OK;
}

static sn_status read_recordings(reading *r, sn_raw_labels *out, sn_error *err) {
  int64_t n = r->manifest->n;
  sn_pool *pool = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&r->lists, n, sizeof *r->lists, "labels", err), done);
  SN_TRY_GOTO(sn_alloc(&r->statuses, n, sizeof *r->statuses, "labels", err), done);
  SN_TRY_GOTO(sn_alloc(&r->errors, n, sizeof *r->errors, "labels", err), done);
  SN_TRY_GOTO(sn_tree_open(r->manifest->root, &r->tree, err), done);
  SN_TRY_GOTO(sn_pool_create(r->options->n_threads, &pool, err), done);
  SN_TRY_GOTO(sn_pool_for(pool, n, reading_task, r, err), done);
  status = gather(r, out, err);
done:
  sn_pool_destroy(pool);
  sn_tree_close(r->tree);
  for (int64_t i = 0; r->lists != NULL && i < n; i++) sn_raw_labels_free(&r->lists[i]);
  sn_free(r->lists);
  sn_free(r->statuses);
  sn_free(r->errors);
  return status;
}

sn_status sn_labels_read(const sn_manifest *manifest, const sn_keyed_table *table, const sn_label_options *options,
                         sn_raw_labels *out, sn_error *err) {
  const char *target = options->target;
  reading r = {.manifest = manifest, .options = options};
  if (options->window_s != 0 && !(options->window_s >= 0.001 && options->window_s <= 1e9))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "window", "windows of %g s: at least 0.001 s", options->window_s);
  if (strncmp(target, "header:", 7) == 0 && target[7] != 0) {
    r.field = target + 7;
    return read_recordings(&r, out, err);
  }
  if (strncmp(target, "annotation:", 11) == 0) {
    const char *name = target + 11;
    while ((int)r.use < N_USES && strcmp(USES[r.use], name) != 0) r.use++;
    if ((int)r.use == N_USES) {
      const char *near = sn_nearest_name(name, USES, N_USES);
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "target",
                        "no annotation group '%s'%s%s%s; there are: aami, code (beats), text (events), span (windows within "
                        "long annotations)",
                        name, near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "");
    }
    return read_recordings(&r, out, err);
  }
  if (strncmp(target, "participants:", 13) == 0) return read_participants(manifest, target + 13, out, err);
  return read_column(manifest, table, target, out, err);
}
