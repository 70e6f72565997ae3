/* needs: full */
#include "datasets/split.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/philox.h"
#include "core/sha256.h"

static const char *const COLUMNS[] = {"dataset", "path", "subject", "fold", "roles", "checksum", "people"};
enum { N_COLUMNS = 6 }; /* and people, where they are stated */

void sn_split_destroy(sn_split *split) {
  if (split == NULL) return;
  for (int64_t i = 0; i < split->n; i++) {
    if (split->paths != NULL) sn_free(split->paths[i]);
    if (split->subjects != NULL) sn_free(split->subjects[i]);
    if (split->checksums != NULL) sn_free(split->checksums[i]);
  }
  sn_free(split->paths);
  sn_free(split->subjects);
  sn_free(split->checksums);
  sn_free(split->folds);
  sn_free(split->roles);
  sn_free(split->dataset);
  sn_free(split->people);
  sn_free(split);
}

static sn_status split_alloc(int64_t n, const char *dataset, sn_split **out, sn_error *err) {
  sn_split *split = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&split, 1, sizeof *split, "split", err));
  split->n = n;
  split->fold = -1;
  SN_TRY_GOTO(sn_strdup(&split->dataset, dataset, "split", err), fail);
  SN_TRY_GOTO(sn_alloc(&split->paths, n, sizeof *split->paths, "split", err), fail);
  SN_TRY_GOTO(sn_alloc(&split->subjects, n, sizeof *split->subjects, "split", err), fail);
  SN_TRY_GOTO(sn_alloc(&split->checksums, n, sizeof *split->checksums, "split", err), fail);
  SN_TRY_GOTO(sn_alloc(&split->folds, n, sizeof *split->folds, "split", err), fail);
  SN_TRY_GOTO(sn_alloc(&split->roles, n, sizeof *split->roles, "split", err), fail);
  for (int64_t i = 0; i < n; i++) split->folds[i] = -1;
  *out = split;
  return SN_OK;
fail:
  sn_split_destroy(split);
  return status;
}

/* ---- the file -------------------------------------------------------------------------------------------------- */

static const char *roles_text(uint8_t roles) {
  static const char *const TEXTS[8] = {"none",
                                       "pretrain",
                                       "probe_train",
                                       "pretrain+probe_train",
                                       "probe_test",
                                       "pretrain+probe_test",
                                       "probe_train+probe_test",
                                       "pretrain+probe_train+probe_test"};
  return TEXTS[roles & 7];
}

static bool roles_of_text(const char *text, uint8_t *roles) {
  for (uint8_t r = 0; r < 8; r++) {
    if (strcmp(roles_text(r), text) == 0) {
      *roles = r;
      return true;
    }
  }
  return false;
}

/* Lines without a path are those of the manifest that are not ok. */
static sn_status split_text(const sn_split *split, sn_string *out, sn_error *err) {
  for (int c = 0; c < N_COLUMNS + (split->people != NULL); c++) SN_TRY(sn_string_printf(out, err, "%s%s", c > 0 ? "\t" : "", COLUMNS[c]));
  SN_TRY(sn_string_append(out, "\n", 1, err));
  for (int64_t i = 0; i < split->n; i++) {
    if (split->paths[i] == NULL) continue;
    SN_TRY(sn_manifest_escape(split->dataset, false, out, err));
    SN_TRY(sn_string_append(out, "\t", 1, err));
    SN_TRY(sn_manifest_escape(split->paths[i], false, out, err));
    SN_TRY(sn_string_append(out, "\t", 1, err));
    if (split->subjects[i] != NULL) SN_TRY(sn_manifest_escape(split->subjects[i], false, out, err));
    SN_TRY(sn_string_append(out, "\t", 1, err));
    if (split->folds[i] >= 0) SN_TRY(sn_string_printf(out, err, "%d", (int)split->folds[i]));
    SN_TRY(sn_string_printf(out, err, "\t%s\t%s", roles_text(split->roles[i]), split->checksums[i]));
    if (split->people != NULL) {
      SN_TRY(sn_string_append(out, "\t", 1, err));
      SN_TRY(sn_manifest_escape(split->people, false, out, err));
    }
    SN_TRY(sn_string_append(out, "\n", 1, err));
  }
  return SN_OK;
}

static sn_status split_hash(sn_split *split, sn_error *err) {
  sn_string text = {0};
  sn_status status = split_text(split, &text, err);
  if (status == SN_OK) sn_sha256_text(text.data, text.length, split->hash);
  sn_string_free(&text);
  return status;
}

sn_status sn_split_save(const sn_split *split, const char *path, sn_error *err) {
  sn_string text = {0};
  SN_TRY(sn_check_output(path, "dataset\tpath\tsubject\tfold\t", "a split", err));
  sn_status status = split_text(split, &text, err);
  if (status == SN_OK) status = sn_write_file(path, text.data, text.length, err);
  sn_string_free(&text);
  return status;
}

/* ---- making ---------------------------------------------------------------------------------------------------- */

static sn_status copy_lines(sn_split *split, const sn_manifest *manifest, const sn_subjects *subjects, sn_error *err) {
  if (subjects != NULL && subjects->people != NULL) SN_TRY(sn_strdup(&split->people, subjects->people, "split", err));
  for (int64_t i = 0; i < manifest->n; i++) {
    if (!manifest->rows[i].ok) continue;
    SN_TRY(sn_strdup(&split->paths[i], manifest->rows[i].path, "split", err));
    SN_TRY(sn_strdup(&split->checksums[i], manifest->rows[i].cells[SN_MANIFEST_CHECKSUM], "split", err));
    if (subjects != NULL && subjects->ids[i] != NULL) {
      SN_TRY(sn_strdup(&split->subjects[i], subjects->ids[i], "split", err));
    }
  }
  return SN_OK;
}

bool sn_split_names_recording(const char *path, const char *name) {
  const char *base = sn_path_base(path);
  size_t n = strlen(name);
  if (strcmp(path, name) == 0 || strcmp(base, name) == 0) return true;
  bool stem_of_path = (size_t)(sn_path_extension(path) - path) == n && strncmp(path, name, n) == 0;
  bool stem_of_base = (size_t)(sn_path_extension(base) - base) == n && strncmp(base, name, n) == 0;
  return stem_of_path || stem_of_base;
}

/* used (n) [out]: ok, not excluded, with a subject where people matter. */
static sn_status choose_lines(sn_split *split, const sn_manifest *manifest, const sn_split_options *o, bool need_subject, bool *used,
                              sn_error *err) {
  for (int64_t i = 0; i < split->n; i++) used[i] = split->paths[i] != NULL;
  for (int64_t e = 0; e < o->n_exclude; e++) {
    int64_t found = 0;
    for (int64_t i = 0; i < split->n; i++) {
      if (!sn_split_names_recording(manifest->rows[i].path, o->exclude[e])) continue; /* one that cannot be read may be named too */
      split->n_excluded += used[i];
      used[i] = false;
      found++;
    }
    if (found == 0) {
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "exclude", "%s: no recording '%s' to exclude", split->dataset,
                        o->exclude[e]);
    }
  }
  for (int64_t i = 0; i < split->n && need_subject; i++) {
    if (!used[i] || split->subjects[i] != NULL) continue;
    used[i] = false;
    split->n_no_subject++;
  }
  return SN_OK;
}

/* Commonest class of each recording's items; -1 without. */
static sn_status recording_classes(const sn_labels *labels, int64_t n, int32_t *classes, sn_error *err) {
  int64_t *counts = NULL;
  for (int64_t i = 0; i < n; i++) classes[i] = -1;
  if (labels == NULL || labels->task != SN_LABEL_CLASS) return SN_OK;
  SN_TRY(sn_alloc(&counts, labels->n_classes, sizeof *counts, "split", err));
  for (int64_t i = 0; i < labels->n;) {
    int64_t j = i, row = labels->items[i].recording;
    memset(counts, 0, (size_t)labels->n_classes * sizeof *counts);
    for (; j < labels->n && labels->items[j].recording == row; j++) counts[labels->items[j].label]++;
    int32_t best = 0;
    for (int32_t k = 1; k < labels->n_classes; k++) {
      if (counts[k] > counts[best]) best = k;
    }
    classes[row] = best;
    i = j;
  }
  sn_free(counts);
  return SN_OK;
}

static sn_status make_folds(sn_split *split, const sn_labels *labels, const sn_split_options *o, const bool *used,
                            sn_error *err) {
  uint64_t *groups = NULL;
  int32_t *strata = NULL, *classes = NULL, *folds = NULL;
  int64_t n = 0, n_folds = 0;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&groups, split->n, sizeof *groups, "folds", err), done);
  SN_TRY_GOTO(sn_alloc(&strata, split->n, sizeof *strata, "folds", err), done);
  SN_TRY_GOTO(sn_alloc(&classes, split->n, sizeof *classes, "folds", err), done);
  SN_TRY_GOTO(sn_alloc(&folds, split->n, sizeof *folds, "folds", err), done);
  SN_TRY_GOTO(recording_classes(labels, split->n, classes, err), done);
  for (int64_t i = 0; i < split->n; i++) {
    if (!used[i]) continue;
    groups[n] = sn_subject_identity(split->dataset, split->subjects[i]);
    strata[n] = classes[i];
    n++;
  }
  SN_TRY_GOTO(sn_grouped_folds(groups, strata, n, o->n_folds, o->seed, folds, &n_folds, err), done);
  if (n_folds < o->n_folds) {
    status =
        sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "folds", "%s: %" PRId64 " folds of %" PRId64 " people cannot be made",
                   split->dataset, o->n_folds, n_folds);
    goto done;
  }
  split->n_folds = n_folds;
  for (int64_t i = 0, k = 0; i < split->n; i++) {
    if (used[i]) split->folds[i] = folds[k++];
  }
done:
  sn_free(groups);
  sn_free(strata);
  sn_free(classes);
  sn_free(folds);
  return status;
}

static void take_folds(sn_split *split, const sn_split_options *o, const bool *used) {
  split->n_folds = o->n_folds;
  for (int64_t i = 0; i < split->n; i++)
    if (used[i]) split->folds[i] = o->folds[i];
}

static void roles_from_folds(sn_split *split, const bool *used) {
  for (int64_t i = 0; i < split->n; i++) {
    if (!used[i]) continue;
    if (split->fold < 0) {
      split->roles[i] = SN_ROLE_PRETRAIN;
    } else {
      bool test = split->folds[i] == split->fold;
      split->roles[i] = test ? SN_ROLE_PROBE_TEST : SN_ROLE_PRETRAIN | SN_ROLE_PROBE_TRAIN;
    }
  }
}

/* The two values of a fixed split. */
static sn_status choose_values(const sn_keyed_table *table, int64_t column, const sn_split_options *o,
                               const char **train, const char **test, sn_error *err) {
  static const char *const PAIRS[][2] = {{"train", "test"}, {"training", "testing"}, {"DS1", "DS2"}};
  *train = o->train;
  *test = o->test;
  if (o->train != NULL && o->test != NULL) return SN_OK;
  if (o->train != NULL || o->test != NULL) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "split",
                      "a fixed split needs both values, of the train and the test part");
  }
  const sn_table *t = table->table;
  for (size_t p = 0; p < sizeof PAIRS / sizeof PAIRS[0]; p++) {
    bool has_train = false, has_test = false;
    for (int64_t i = 0; i < t->n_rows; i++) {
      const char *cell = t->cells[i * t->n_columns + column];
      has_train = has_train || sn_equal_nocase(cell, PAIRS[p][0]);
      has_test = has_test || sn_equal_nocase(cell, PAIRS[p][1]);
    }
    if (has_train && has_test) {
      *train = PAIRS[p][0];
      *test = PAIRS[p][1];
      return SN_OK;
    }
  }
  return sn_fail_at(
      err, SN_E_ARGUMENT, -1, -1, "split",
      "%s: column '%s' has no values train and test (or DS1 and DS2); name the two: --split %s:TRAIN:TEST", table->path,
      t->columns[column], t->columns[column]);
}

static sn_status roles_from_column(sn_split *split, const sn_keyed_table *table, const sn_split_options *o,
                                   const bool *used, sn_error *err) {
  int64_t column = -1;
  const char *train = NULL, *test = NULL;
  if (table == NULL) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "split",
                      "--split %s names a column, but there is no table (--labels FILE)", o->column);
  }
  SN_TRY(sn_keyed_table_column(table, o->column, &column, err));
  SN_TRY(choose_values(table, column, o, &train, &test, err));
  for (int64_t i = 0; i < split->n; i++) {
    if (!used[i]) continue;
    const char *cell = sn_keyed_table_cell(table, i, column);
    if (cell != NULL && sn_equal_nocase(cell, train)) {
      split->roles[i] = SN_ROLE_PRETRAIN | SN_ROLE_PROBE_TRAIN;
    } else if (cell != NULL && sn_equal_nocase(cell, test)) {
      split->roles[i] = SN_ROLE_PROBE_TEST;
    } else {
      split->n_other_value++;
    }
  }
  return SN_OK;
}

static sn_status check_parts(const sn_split *split, sn_error *err) {
  if (strcmp(split->kind, "none") == 0 || split->fold < -1) return SN_OK;
  bool wants_test = strcmp(split->kind, "fixed") == 0 || split->fold >= 0;
  int64_t n_train = sn_split_count(split, SN_ROLE_PRETRAIN), n_test = sn_split_count(split, SN_ROLE_PROBE_TEST);
  if (n_train == 0 || (wants_test && n_test == 0)) {
    return sn_fail(err, SN_E_ARGUMENT,
                   "%s: the split leaves %" PRId64 " recordings to train on and %" PRId64 " to test", split->dataset,
                   n_train, n_test);
  }
  return SN_OK;
}

sn_status sn_split_create(const sn_manifest *manifest, const sn_subjects *subjects, const sn_keyed_table *table,
                          const sn_labels *labels, const sn_split_options *o, sn_split **out, sn_error *err) {
  sn_split *split = NULL;
  bool *used = NULL;
  bool fixed = o->column != NULL, folded = o->n_folds != 0;
  sn_status status = SN_OK;
  if (fixed && folded)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "split", "a split is either by column or by folds, not both");
  if ((fixed || folded) && subjects == NULL) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "subject", "%s: a split needs to know whose recordings they are",
                      manifest->name);
  }
  if (folded && (o->n_folds < 2 || o->fold < -1 || o->fold >= o->n_folds)) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "fold",
                      "fold %" PRId64 " of %" PRId64 "; expected i/k with k at least 2 and i from 0 to k-1", o->fold,
                      o->n_folds);
  }
  SN_TRY_GOTO(split_alloc(manifest->n, manifest->name, &split, err), fail);
  split->persons_unknown = subjects != NULL && subjects->persons_unknown;
  snprintf(split->kind, sizeof split->kind, "%s",
           fixed                    ? "fixed"
           : !folded                ? "none"
           : split->persons_unknown ? "recording-kfold"
                                    : "subject-kfold");
  SN_TRY_GOTO(copy_lines(split, manifest, subjects, err), fail);
  SN_TRY_GOTO(sn_alloc(&used, manifest->n, sizeof *used, "split", err), fail);
  SN_TRY_GOTO(choose_lines(split, manifest, o, fixed || folded, used, err), fail);
  if (fixed) {
    SN_TRY_GOTO(roles_from_column(split, table, o, used, err), fail);
  } else {
    if (folded && o->folds != NULL) take_folds(split, o, used);
    else if (folded) SN_TRY_GOTO(make_folds(split, labels, o, used, err), fail);
    split->fold = folded ? o->fold : -1;
    roles_from_folds(split, used);
  }
  if (o->folds == NULL) SN_TRY_GOTO(check_parts(split, err), fail);
  SN_TRY_GOTO(sn_split_check(split, manifest, err), fail);
  SN_TRY_GOTO(split_hash(split, err), fail);
  sn_free(used);
  *out = split;
  return SN_OK;
fail:
  sn_free(used);
  sn_split_destroy(split);
  return status;
}

/* ---- counting -------------------------------------------------------------------------------------------------- */

int64_t sn_split_count(const sn_split *split, sn_role role) {
  int64_t n = 0;
  for (int64_t i = 0; i < split->n; i++) n += (split->roles[i] & role) != 0;
  return n;
}

static int compare_texts(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int64_t sn_split_count_subjects(const sn_split *split, sn_role role) {
  char **ids = NULL;
  int64_t n = 0, different = 0;
  if (sn_alloc(&ids, split->n, sizeof *ids, "split", NULL) != SN_OK) return -1;
  for (int64_t i = 0; i < split->n; i++) {
    if ((split->roles[i] & role) != 0 && split->subjects[i] != NULL) ids[n++] = split->subjects[i];
  }
  if (n > 0) qsort(ids, (size_t)n, sizeof *ids, compare_texts);
  for (int64_t i = 0; i < n; i++) different += i == 0 || strcmp(ids[i], ids[i - 1]) != 0;
  sn_free(ids);
  return different;
}

sn_status sn_split_rows(const sn_split *split, sn_role role, int64_t **rows, int64_t *n, sn_error *err) {
  int64_t count = sn_split_count(split, role);
  SN_TRY(sn_alloc(rows, count, sizeof **rows, "split", err));
  *n = 0;
  for (int64_t i = 0; i < split->n; i++) {
    if ((split->roles[i] & role) != 0) (*rows)[(*n)++] = i;
  }
  return SN_OK;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

static sn_status take_cell(const char *cell, char **out, sn_error *err) {
  SN_TRY(sn_strdup(out, cell, "split", err));
  return sn_manifest_unescape(*out, err);
}

static sn_status load_line(sn_split *split, const sn_manifest *manifest, char *const *cells, int64_t line_index,
                           sn_error *err) {
  char *path = NULL;
  int64_t i = line_index, fold = -1;
  sn_status status = take_cell(cells[1], &path, err);
  if (status != SN_OK) {
    sn_free(path);
    return status;
  }
  if (manifest != NULL) {
    i = sn_manifest_find(manifest, path);
    if (i < 0 || !manifest->rows[i].ok) {
      status = sn_fail(err, SN_E_STATE, "%s is not a sound recording of %s any more", path, manifest->name);
    } else if (strcmp(manifest->rows[i].cells[SN_MANIFEST_CHECKSUM], cells[5]) != 0) {
      status = sn_fail(err, SN_E_STATE, "%s has changed: checksum %.20s..., the split has %.20s...", path,
                       manifest->rows[i].cells[SN_MANIFEST_CHECKSUM], cells[5]);
    } else if (split->paths[i] != NULL) {
      status = sn_fail(err, SN_E_CORRUPT, "%s stands there twice", path);
    }
    if (status != SN_OK) {
      sn_free(path);
      return status;
    }
  }
  split->paths[i] = path;
  if (cells[2][0] != 0) SN_TRY(take_cell(cells[2], &split->subjects[i], err));
  if (cells[3][0] != 0 && (!sn_parse_i64(cells[3], &fold) || fold < 0 || fold > INT32_MAX)) {
    return sn_fail(err, SN_E_CORRUPT, "fold '%s' is not a number from 0", cells[3]);
  }
  split->folds[i] = (int32_t)fold;
  if (fold >= split->n_folds) split->n_folds = fold + 1;
  if (!roles_of_text(cells[4], &split->roles[i]))
    return sn_fail(err, SN_E_CORRUPT, "roles '%s' are not known", cells[4]);
  return sn_strdup(&split->checksums[i], cells[5], "split", err);
}

/* kind, fold and persons_unknown follow from the lines: every subject its own path means recordings. */
static void infer_kind(sn_split *split) {
  bool recordings = true, any = false;
  int32_t test_fold = -1;
  for (int64_t i = 0; i < split->n; i++) {
    if (split->paths[i] == NULL || split->roles[i] == SN_ROLE_NONE) continue;
    any = true;
    recordings = recordings && split->subjects[i] != NULL && strcmp(split->subjects[i], split->paths[i]) == 0;
    if ((split->roles[i] & SN_ROLE_PROBE_TEST) != 0) test_fold = split->folds[i];
  }
  bool tested = sn_split_count(split, SN_ROLE_PROBE_TEST) > 0;
  split->persons_unknown = any && recordings;
  split->fold = test_fold;
  snprintf(split->kind, sizeof split->kind, "%s",
           split->n_folds > 0 ? (split->persons_unknown ? "recording-kfold" : "subject-kfold")
           : tested           ? "fixed"
                              : "none");
}

sn_status sn_split_load(const char *path, const sn_manifest *manifest, sn_split **out, sn_error *err) {
  sn_table *table = NULL;
  sn_split *split = NULL;
  char *dataset = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_table_load(path, '\t', true, &table, err), fail);
  const bool stated = sn_table_has_columns(table, COLUMNS, N_COLUMNS + 1);
  if ((!stated && !sn_table_has_columns(table, COLUMNS, N_COLUMNS)) || table->n_rows == 0) {
    status = sn_fail_at(err, SN_E_CORRUPT, -1, 1, NULL,
                        "%s: not a split (dataset, path, subject, fold, roles, checksum)", path);
    goto fail;
  }
  SN_TRY_GOTO(take_cell(table->cells[0], &dataset, err), fail);
  SN_TRY_GOTO(split_alloc(manifest != NULL ? manifest->n : table->n_rows, dataset, &split, err), fail);
  if (stated) SN_TRY_GOTO(take_cell(table->cells[N_COLUMNS], &split->people, err), fail);
  for (int64_t i = 0; i < table->n_rows; i++) {
    char *const *cells = table->cells + i * table->n_columns;
    status = strcmp(cells[0], table->cells[0]) != 0 ||
                     (stated && strcmp(cells[N_COLUMNS], table->cells[N_COLUMNS]) != 0)
                 ? sn_fail(err, SN_E_CORRUPT, "another data set, '%s'", cells[0])
                                                    : load_line(split, manifest, cells, i, err);
    if (status != SN_OK) {
      status = sn_table_fail_row(table, i, path, status, err);
      goto fail;
    }
  }
  infer_kind(split);
  SN_TRY_GOTO(sn_split_check(split, manifest, err), fail);
  SN_TRY_GOTO(split_hash(split, err), fail);
  sn_free(dataset);
  sn_table_destroy(table);
  *out = split;
  return SN_OK;
fail:
  sn_free(dataset);
  sn_table_destroy(table);
  sn_split_destroy(split);
  return status;
}
