/* needs: full */
#include "datasets/keyed_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/sha256.h"

bool sn_cell_is_empty(const char *cell) {
  static const char *const NOTHING[] = {"", "na", "n/a", "nan", "null", "(none)"};
  for (size_t i = 0; i < sizeof NOTHING / sizeof NOTHING[0]; i++) {
    if (sn_equal_nocase(cell, NOTHING[i])) return true;
  }
  return false;
}

/* ---- names of recordings --------------------------------------------------------------------------------------- */

typedef struct name_entry {
  char *name;
  int64_t row;
} name_entry;

typedef struct name_index {
  int64_t n, capacity;
  name_entry *entries; /* sorted by (name, row) */
} name_index;

static void name_index_free(name_index *index) {
  for (int64_t i = 0; i < index->n; i++) sn_free(index->entries[i].name);
  sn_free(index->entries);
}

static int compare_names(const void *a, const void *b) {
  const name_entry *x = a, *y = b;
  int order = strcmp(x->name, y->name);
  return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

static sn_status add_name(name_index *index, const char *name, int64_t length, int64_t row, sn_error *err) {
  SN_TRY(sn_grow(&index->entries, &index->capacity, index->n + 1, sizeof *index->entries, "names of recordings", err));
  char *copy = NULL;
  SN_TRY(sn_alloc(&copy, length + 1, 1, "names of recordings", err));
  memcpy(copy, name, (size_t)length);
  index->entries[index->n++] = (name_entry){.name = copy, .row = row};
  return SN_OK;
}

/* Paths with and without extension, or (bases) the last parts of the paths. */
static sn_status name_index_fill(name_index *index, const sn_manifest *manifest, bool bases, sn_error *err) {
  for (int64_t i = 0; i < manifest->n; i++) {
    const char *name = bases ? sn_path_base(manifest->rows[i].path) : manifest->rows[i].path;
    int64_t whole = (int64_t)strlen(name), stem = sn_path_extension(name) - name;
    SN_TRY(add_name(index, name, whole, i, err));
    if (stem < whole && stem > 0) SN_TRY(add_name(index, name, stem, i, err));
  }
  if (index->n > 0) qsort(index->entries, (size_t)index->n, sizeof *index->entries, compare_names);
  return SN_OK;
}

/* First entry of a name, or NULL. */
static const name_entry *name_index_find(const name_index *index, const char *name) {
  int64_t low = 0, high = index->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (strcmp(index->entries[middle].name, name) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < index->n && strcmp(index->entries[low].name, name) == 0 ? &index->entries[low] : NULL;
}

/* Of several recordings of one name (x.hea and x.edf both have the stem x) a sound one is meant if it is the only
 * sound one. */
static sn_status resolve(const sn_manifest *manifest, const name_index *index, const char *key, int64_t *row,
                         sn_error *err) {
  const name_entry *end = index->entries + index->n;
  const name_entry *first = name_index_find(index, key);
  *row = -1;
  if (first == NULL) return SN_OK;
  int64_t sound = 0, other = -1;
  for (const name_entry *e = first; e < end && strcmp(e->name, key) == 0; e++) {
    if (*row >= 0 && e->row == *row) continue;
    if (manifest->rows[e->row].ok) {
      if (sound > 0) other = e->row;
      if (sound == 0) *row = e->row;
      sound++;
    } else if (*row < 0) {
      *row = e->row;
    }
  }
  if (sound > 1) {
    return sn_fail(err, SN_E_ARGUMENT, "the name '%s' is that of two recordings, %s and %s; write the path instead",
                   key, manifest->rows[*row].path, manifest->rows[other].path);
  }
  return SN_OK;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

static bool is_number(const char *text) { return text[0] != 0 && text[strspn(text, "0123456789")] == 0; }

static void list_columns(const sn_table *table, char *text, size_t room) {
  text[0] = 0;
  for (int64_t i = 0; i < table->n_columns; i++) {
    size_t used = strlen(text);
    snprintf(text + used, room - used, "%s%s", i > 0 ? ", " : "", table->columns[i]);
  }
}

sn_status sn_keyed_table_column(const sn_keyed_table *table, const char *name, int64_t *column, sn_error *err) {
  *column = sn_table_column(table->table, name);
  if (*column >= 0) return SN_OK;
  char all[256];
  list_columns(table->table, all, sizeof all);
  const char *near = sn_nearest_name(name, (const char *const *)table->table->columns, table->table->n_columns);
  return sn_fail_at(err, SN_E_ARGUMENT, -1, 1, name, "%s: no column '%s'%s%s%s; it has: %s%s", table->path, name,
                    near != NULL ? ", did you mean '" : "", near != NULL ? near : "", near != NULL ? "'?" : "", all,
                    sn_table_delimiter_hint(table->table->n_columns, table->table->columns[0]));
}

static sn_status load_table(const char *path, const char *key, sn_table **out, sn_error *err) {
  SN_TRY(sn_table_load(path, 0, true, out, err));
  if (key == NULL || sn_table_column(*out, key) >= 0 || !is_number(key)) return SN_OK;
  sn_table_destroy(*out);
  *out = NULL;
  return sn_table_load(path, 0, false, out, err);
}

static sn_status match_line(sn_keyed_table *t, const sn_manifest *manifest, const name_index *paths,
                            const name_index *bases, int64_t line, int64_t key_column, sn_error *err) {
  char *key = NULL;
  int64_t row = -1;
  SN_TRY(sn_strdup(&key, t->table->cells[line * t->table->n_columns + key_column], "key", err));
  const char *name = sn_trim(key);
  sn_status status = resolve(manifest, paths, name, &row, err);
  if (status == SN_OK && row < 0) status = resolve(manifest, bases, name, &row, err);
  if (status != SN_OK) {
    status = sn_error_prefix(err, status, "%s: line %" PRId64, t->path, t->table->lines[line]);
    if (err != NULL) err->line = t->table->lines[line];
  } else if (row < 0) {
    if (t->n_unmatched++ == 0) snprintf(t->first_unmatched, sizeof t->first_unmatched, "%s", name);
  } else if (t->line_of[row] >= 0) {
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, t->table->lines[line], name,
                        "%s: lines %" PRId64 " and %" PRId64 " are both for %s", t->path,
                        t->table->lines[t->line_of[row]], t->table->lines[line], manifest->rows[row].path);
  } else {
    t->line_of[row] = line;
  }
  sn_free(key);
  return status;
}

sn_status sn_keyed_table_load(const sn_manifest *manifest, const char *path, const char *key, sn_keyed_table **out,
                              sn_error *err) {
  sn_keyed_table *t = NULL;
  name_index paths = {0}, bases = {0};
  int64_t column = 0;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&t, 1, sizeof *t, "table", err), fail);
  SN_TRY_GOTO(sn_strdup(&t->path, path, "table", err), fail);
  SN_TRY_GOTO(load_table(path, key, &t->table, err), fail);
  if (key != NULL) SN_TRY_GOTO(sn_keyed_table_column(t, key, &column, err), fail);
  SN_TRY_GOTO(sn_alloc(&t->line_of, manifest->n, sizeof *t->line_of, "table", err), fail);
  for (int64_t i = 0; i < manifest->n; i++) t->line_of[i] = -1;
  SN_TRY_GOTO(name_index_fill(&paths, manifest, false, err), fail);
  SN_TRY_GOTO(name_index_fill(&bases, manifest, true, err), fail);
  for (int64_t i = 0; i < t->table->n_rows; i++) {
    SN_TRY_GOTO(match_line(t, manifest, &paths, &bases, i, column, err), fail);
  }
  if (t->table->n_rows == 0) {
    status = sn_fail(err, SN_E_ARGUMENT, "%s: holds a header and no line below it: it labels no recording", path);
    goto fail;
  }
  if (t->n_unmatched == t->table->n_rows) {
    status = sn_fail(err, SN_E_ARGUMENT,
                     "%s: none of its %" PRId64
                     " keys (column '%s', first '%s') is a recording of %s (the first is '%s'); "
                     "--key names the column%s",
                     path, t->table->n_rows, t->table->columns[column], t->first_unmatched, manifest->name,
                     manifest->n > 0 ? manifest->rows[0].path : "",
                     sn_table_delimiter_hint(t->table->n_columns, t->table->columns[0]));
    goto fail;
  }
  name_index_free(&paths);
  name_index_free(&bases);
  *out = t;
  return SN_OK;
fail:
  name_index_free(&paths);
  name_index_free(&bases);
  sn_keyed_table_destroy(t);
  return status;
}

void sn_keyed_table_destroy(sn_keyed_table *table) {
  if (table == NULL) return;
  sn_free(table->path);
  sn_table_destroy(table->table);
  sn_free(table->line_of);
  sn_free(table);
}

const char *sn_keyed_table_cell(const sn_keyed_table *table, int64_t recording, int64_t column) {
  int64_t line = table->line_of[recording];
  return line < 0 ? NULL : table->table->cells[line * table->table->n_columns + column];
}

/* ---- subjects -------------------------------------------------------------------------------------------------- */

static sn_status set_subject(sn_subjects *s, int64_t i, const char *text, sn_error *err) {
  char *copy = NULL;
  SN_TRY(sn_strdup(&copy, text, "subject", err));
  const char *id = sn_trim(copy);
  if (!sn_cell_is_empty(id)) {
    sn_status status = sn_strdup(&s->ids[i], id, "subject", err);
    if (status != SN_OK) {
      sn_free(copy);
      return status;
    }
    s->n_known++;
  }
  sn_free(copy);
  return SN_OK;
}

static sn_status header_subject(sn_subjects *s, const sn_manifest *manifest, int64_t i, sn_error *err) {
  char *cell = NULL;
  SN_TRY(sn_strdup(&cell, manifest->rows[i].cells[SN_MANIFEST_SUBJECT], "subject", err));
  sn_status status = sn_manifest_unescape(cell, err);
  if (status == SN_OK) status = set_subject(s, i, cell, err);
  sn_free(cell);
  return status;
}

static sn_status fill_subjects(sn_subjects *s, const sn_manifest *manifest, const sn_keyed_table *table,
                               const char *from, sn_error *err) {
  bool by_recording = from != NULL && strcmp(from, "recording") == 0;
  bool by_header = from == NULL || strcmp(from, "header") == 0;
  int64_t column = -1;
  if (!by_recording && !by_header) {
    if (table == NULL) {
      return sn_fail_at(
          err, SN_E_ARGUMENT, -1, -1, "subject",
          "--subject %s names a column, but there is no table (--labels FILE); or use --subject recording", from);
    }
    SN_TRY(sn_keyed_table_column(table, from, &column, err));
  }
  s->persons_unknown = by_recording;
  for (int64_t i = 0; i < manifest->n; i++) {
    if (!manifest->rows[i].ok) continue;
    if (by_recording) {
      SN_TRY(set_subject(s, i, manifest->rows[i].path, err));
    } else if (by_header) {
      SN_TRY(header_subject(s, manifest, i, err));
    } else {
      const char *cell = sn_keyed_table_cell(table, i, column);
      if (cell != NULL) SN_TRY(set_subject(s, i, cell, err));
    }
  }
  if (from == NULL && s->n_known < manifest->n_ok) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "subject",
                      "%s: %" PRId64 " of %" PRId64
                      " recordings do not say whose they are; --subject COLUMN (with --labels) "
                      "names the column that does, --subject recording splits by recording, persons unknown",
                      manifest->name, manifest->n_ok - s->n_known, manifest->n_ok);
  }
  if (s->n_known == 0) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "subject", "%s: no recording has a subject (from '%s')",
                      manifest->name, from != NULL ? from : "header");
  }
  return SN_OK;
}

sn_status sn_subjects_create(const sn_manifest *manifest, const sn_keyed_table *table, const char *from,
                             sn_subjects **out, sn_error *err) {
  sn_subjects *s = NULL;
  SN_TRY(sn_alloc(&s, 1, sizeof *s, "subjects", err));
  s->n = manifest->n;
  sn_status status = sn_alloc(&s->ids, manifest->n, sizeof *s->ids, "subjects", err);
  if (status == SN_OK) status = fill_subjects(s, manifest, table, from, err);
  if (status != SN_OK) {
    sn_subjects_destroy(s);
    return status;
  }
  *out = s;
  return SN_OK;
}

void sn_subjects_destroy(sn_subjects *subjects) {
  if (subjects == NULL) return;
  for (int64_t i = 0; subjects->ids != NULL && i < subjects->n; i++) sn_free(subjects->ids[i]);
  sn_free(subjects->ids);
  sn_free(subjects->people);
  sn_free(subjects);
}

/* The same bytes as sn_hash64 of "dataset\nid", without joining them: nothing here may fail. */
const char *sn_subject_stem(const char *id) {
  if (strncmp(id, "sub-", 4) == 0) id += 4;
  while (id[0] == '0' && id[1] != '\0') id++;
  return id;
}

bool sn_subject_alike(const char *a, const char *b) { return sn_equal_nocase(sn_subject_stem(a), sn_subject_stem(b)); }

uint64_t sn_subject_identity(const char *dataset, const char *id) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  sn_sha256_update(&hash, dataset, (int64_t)strlen(dataset));
  sn_sha256_update(&hash, "\n", 1);
  sn_sha256_update(&hash, id, (int64_t)strlen(id));
  sn_sha256_final(&hash, digest);
  return sn_sha256_low64(digest);
}

uint64_t sn_subject_hash(const sn_manifest *manifest, const sn_subjects *subjects, int64_t recording) {
  if (subjects == NULL || subjects->ids[recording] == NULL) return 0;
  return sn_subject_identity(subjects->people != NULL ? subjects->people : manifest->name, subjects->ids[recording]);
}
