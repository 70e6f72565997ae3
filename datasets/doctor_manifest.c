/* needs: full */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "datasets/doctor_parts.h"
#include "datasets/keyed_table.h"

typedef struct line {
  const char *key; /* what is compared: in a cell */
  const sn_manifest_row *row;
} line;

/* Case apart first, so that persons alike stand together. */
static int by_key(const void *a, const void *b) {
  const line *x = a, *y = b;
  int order = strcasecmp(x->key, y->key);
  if (order == 0) order = strcmp(x->key, y->key);
  return order != 0 ? order : strcmp(x->row->path, y->row->path);
}

/* ok lines with a cell, sorted by it, or by the part of it that key points to. */
static sn_status sorted_lines(const sn_manifest *m, sn_manifest_column column, const char *(*key)(const char *cell), line **out,
                              int64_t *n, sn_error *err) {
  SN_TRY(sn_alloc(out, m->n, sizeof **out, "lines", err));
  *n = 0;
  for (int64_t i = 0; i < m->n; i++) {
    const char *cell = m->rows[i].cells[column];
    if (m->rows[i].ok && cell[0] != '\0') (*out)[(*n)++] = (line){.key = key != NULL ? key(cell) : cell, .row = &m->rows[i]};
  }
  if (*n > 0) qsort(*out, (size_t)*n, sizeof **out, by_key);
  return SN_OK;
}

static sn_status twins(sn_doctor_report *report, const sn_manifest *m, sn_error *err) {
  line *lines = NULL;
  int64_t n = 0;
  sn_status status;
  SN_TRY_GOTO(sorted_lines(m, SN_MANIFEST_CHECKSUM, NULL, &lines, &n, err), done);
  for (int64_t i = 1; i < n; i++) {
    if (strcmp(lines[i].key, lines[i - 1].key) != 0) continue;
    const sn_manifest_row *a = lines[i - 1].row, *b = lines[i].row;
    const bool same = strcmp(a->cells[SN_MANIFEST_SUBJECT], b->cells[SN_MANIFEST_SUBJECT]) == 0;
    SN_TRY_GOTO(sn_doctor_note(report, same ? "duplicate" : "duplicate_person", true,
                               same ? "recordings that are there twice"
                                    : "one recording under two persons: it may be trained and tested on",
                               1, err, "%s and %s", a->path, b->path), done);
  }
done:
  sn_free(lines);
  return status;
}

static sn_status persons(sn_doctor_report *report, const sn_manifest *m, sn_error *err) {
  line *lines = NULL;
  int64_t n = 0;
  sn_status status;
  SN_TRY_GOTO(sorted_lines(m, SN_MANIFEST_SUBJECT, sn_subject_stem, &lines, &n, err), done);
  for (int64_t i = 1; i < n; i++) {
    const char *a = lines[i - 1].row->cells[SN_MANIFEST_SUBJECT], *b = lines[i].row->cells[SN_MANIFEST_SUBJECT];
    if (!sn_subject_alike(a, b) || strcmp(a, b) == 0) continue;
    SN_TRY_GOTO(sn_doctor_note(report, "person_spelling", true, "persons who may be one, spelled in two ways", 1, err,
                               "'%s' and '%s'", a, b), done);
  }
  for (int64_t i = 0; i < m->n; i++)
    if (m->rows[i].ok && m->rows[i].cells[SN_MANIFEST_SUBJECT][0] == '\0')
      SN_TRY_GOTO(sn_doctor_note(report, "no_person", false, "recordings of nobody: a split by person needs --subject", 1, err, "%s",
                                 m->rows[i].path), done);
done:
  sn_free(lines);
  return status;
}

/* How many kinds a column has: one example each, where there are several. */
static sn_status kinds(sn_doctor_report *report, const sn_manifest *m, sn_manifest_column column, const char *code,
                       const char *title, sn_error *err) {
  line *lines = NULL;
  int64_t n = 0, different = 0;
  sn_status status;
  SN_TRY_GOTO(sorted_lines(m, column, NULL, &lines, &n, err), done);
  for (int64_t i = 0; i < n; i++) different += i == 0 || strcmp(lines[i].key, lines[i - 1].key) != 0;
  for (int64_t i = 0; i < n && different > 1; i++) {
    if (i > 0 && strcmp(lines[i].key, lines[i - 1].key) == 0) continue;
    SN_TRY_GOTO(sn_doctor_note(report, code, false, title, 1, err, "%.60s%s (%s)", lines[i].key,
                               strlen(lines[i].key) > 60 ? "..." : "", lines[i].row->path), done);
  }
done:
  sn_free(lines);
  return status;
}

static bool person_is_there(const sn_manifest *m, const char *id) {
  for (int64_t i = 0; i < m->n; i++)
    if (m->rows[i].ok && sn_subject_alike(m->rows[i].cells[SN_MANIFEST_SUBJECT], id)) return true;
  return false;
}

static sn_status participants(sn_doctor_report *report, const sn_manifest *m, sn_error *err) {
  char *path = NULL;
  sn_table *table = NULL;
  SN_TRY(sn_path_join(m->root, "participants.tsv", &path, err));
  sn_status status = sn_path_exists(path) ? sn_table_load(path, '\t', true, &table, err) : SN_OK;
  sn_free(path);
  if (status == SN_E_CORRUPT || status == SN_E_FORMAT) {
    const sn_error fault = *err;
    return sn_doctor_note(report, "labels", true, "tables that do not fit", 1, err, "%s", fault.message);
  }
  SN_TRY(status);
  const int64_t ages = table != NULL ? sn_table_column(table, "age") : -1;
  for (int64_t i = 0; table != NULL && i < table->n_rows && status == SN_OK; i++) {
    const char *id = table->cells[i * table->n_columns];
    for (int64_t k = 0; k < i && status == SN_OK; k++)
      if (strcmp(table->cells[k * table->n_columns], id) == 0)
        status = sn_doctor_note(report, "participant_twice", true, "persons with two lines in participants.tsv", 1, err, "%s", id);
    if (status == SN_OK && !person_is_there(m, id))
      status = sn_doctor_note(report, "participant_without_recording", true, "persons in participants.tsv without a recording", 1, err,
                              "%s", id);
    double age;
    const char *cell = ages >= 0 ? table->cells[i * table->n_columns + ages] : "";
    if (status == SN_OK && sn_parse_f64(cell, false, &age) && !(age >= 0 && age <= 130))
      status = sn_doctor_note(report, "participant_age", true, "ages in participants.tsv that nobody has", 1, err, "%s: %.40s", id, cell);
  }
  sn_table_destroy(table);
  return status;
}

static sn_status labels(sn_doctor_report *report, const sn_manifest *m, const sn_doctor_options *o, sn_error *err) {
  sn_keyed_table *table = NULL;
  int64_t without = 0, first = -1;
  if (o->labels == NULL) return SN_OK;
  sn_status status = sn_keyed_table_load(m, o->labels, o->key, &table, err);
  if (status == SN_E_ARGUMENT || status == SN_E_CORRUPT) {
    const sn_error fault = *err;
    return sn_doctor_note(report, "labels", true, "tables that do not fit", 1, err, "%s", fault.message);
  }
  SN_TRY(status);
  for (int64_t i = 0; i < m->n; i++) {
    if (!m->rows[i].ok || table->line_of[i] >= 0) continue;
    if (first < 0) first = i;
    without++;
  }
  if (table->n_unmatched > 0)
    status = sn_doctor_note(report, "labels", true, "tables that do not fit", table->n_unmatched, err,
                            "%lld lines of %s are for no recording here, first %s", (long long)table->n_unmatched, o->labels,
                            table->first_unmatched);
  if (status == SN_OK && without > 0)
    status = sn_doctor_note(report, "labels", true, "tables that do not fit", without, err,
                            "%s has no line for %lld recordings, first %s", o->labels, (long long)without, m->rows[first].path);
  sn_keyed_table_destroy(table);
  return status;
}

sn_status sn_doctor_manifest(sn_doctor_report *report, const sn_manifest *m, const sn_doctor_options *o, sn_error *err) {
  for (int64_t i = 0; i < m->n; i++) {
    const sn_manifest_row *row = &m->rows[i];
    if (row->ok || strcmp(row->cells[SN_MANIFEST_STATUS], "part") == 0) continue;
    char reason[SN_ERROR_MESSAGE];
    sn_manifest_show(row->cells[SN_MANIFEST_REASON], reason, sizeof reason);
    SN_TRY(sn_doctor_note(report, "unreadable", true, "recordings that cannot be read", 1, err, "%s: %s: %s", row->path,
                          row->cells[SN_MANIFEST_STATUS], reason));
  }
  SN_TRY(twins(report, m, err));
  SN_TRY(persons(report, m, err));
  SN_TRY(kinds(report, m, SN_MANIFEST_RATE, "rates", "different rates", err));
  SN_TRY(kinds(report, m, SN_MANIFEST_CHANNELS, "channel_sets", "different sets of channels", err));
  SN_TRY(participants(report, m, err));
  return labels(report, m, o, err);
}
