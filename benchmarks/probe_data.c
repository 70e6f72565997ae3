/* needs: full */
#include "benchmarks/probe_data.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/philox.h"
#include "core/stream.h"
#include "datasets/index.h"
#include "engine/init_run.h"
#include "engine/run.h"

static const char *text_or_null(const sn_config *config, const char *key) {
  const char *text = sn_config_text(config, key);
  return text[0] != '\0' ? text : NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------------------------ */

static sn_status override(sn_config *config, const char *key, const char *value, sn_error *err) {
  return value != NULL ? sn_config_set(config, key, value, key, -1, err) : SN_OK;
}

/* Who was seen by the runs that this one began from. */
static sn_status open_inherited(sn_probe_run_info *run, sn_error *err) {
  sn_dir_entry *entries = NULL;
  char *folder = NULL;
  int64_t n = 0;
  sn_status status;
  if (!sn_init_wanted(run->config)) return SN_OK;
  SN_TRY(sn_path_join(run->path, "inputs", &folder, err));
  if (!sn_path_is_directory(folder)) {
    status = sn_fail(err, SN_E_STATE, "%s: began from %s, and the folder that says whom that one saw is gone: leakage cannot be "
                     "checked", folder, sn_config_text(run->config, "init.run"));
    goto done;
  }
  SN_TRY_GOTO(sn_dir_list(folder, &entries, &n, err), done);
  SN_TRY_GOTO(sn_alloc(&run->inherited, n, sizeof *run->inherited, "inherited splits", err), done);
  for (int64_t i = 0; i < n; i++) {
    char *path = NULL;
    SN_TRY_GOTO(sn_path_join(folder, entries[i].name, &path, err), done);
    status = sn_split_load(path, NULL, &run->inherited[run->n_inherited], err);
    sn_free(path);
    if (status != SN_OK) goto done;
    run->n_inherited++;
  }
done:
  sn_dir_free(entries, n);
  sn_free(folder);
  return status;
}

/* The splits of every source; which of them is this data set's is found once it is indexed. */
static sn_status open_sources(sn_probe_run_info *run, sn_error *err) {
  const int64_t n = sn_config_sources(run->config);
  char *folder = NULL, *path = NULL, *split = NULL;
  sn_split **all = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&all, n + run->n_inherited, sizeof *all, "splits", err), done);
  if (run->n_inherited > 0) memcpy(all, run->inherited, (size_t)run->n_inherited * sizeof *all);
  sn_free(run->inherited);
  run->inherited = all;
  SN_TRY_GOTO(sn_path_join(run->path, "sources", &folder, err), done);
  for (int64_t i = 0; i < n; i++) {
    SN_TRY_GOTO(sn_path_join(folder, sn_config_text(sn_config_source(run->config, i), "data.name"), &path, err), done);
    SN_TRY_GOTO(sn_path_join(path, "split.tsv", &split, err), done);
    SN_TRY_GOTO(sn_split_load(split, NULL, &run->inherited[run->n_inherited], err), done);
    run->n_inherited++;
    sn_free(path);
    sn_free(split);
    path = split = NULL;
  }
done:
  sn_free(folder);
  sn_free(path);
  sn_free(split);
  return status;
}

/* Another data set has a name, labels and columns of its own. */
static sn_status take_options(sn_config *config, const sn_probe_options *o, sn_error *err) {
  if (o->data != NULL && !sn_same_directory(o->data, sn_config_text(config, "data.dir"))) {
    static const char *const OWN[] = {"data.name", "data.labels", "data.key", "data.subject", "data.split", "data.store",
                                      "data.people"};
    for (size_t i = 0; i < sizeof OWN / sizeof OWN[0]; i++) SN_TRY(override(config, OWN[i], "", err));
  }
  SN_TRY(override(config, "data.dir", o->data, err));
  SN_TRY(override(config, "data.name", o->name, err));
  SN_TRY(override(config, "data.labels", o->labels, err));
  SN_TRY(override(config, "data.key", o->key, err));
  return override(config, "data.subject", o->subject, err);
}

static sn_status need_data(const char *path, sn_error *err) {
  return sn_fail(err, SN_E_ARGUMENT, "%s was pretrained on synthetic tokens: name the recordings with --data DIR", path);
}

static sn_status open_run(sn_probe_run_info *run, const char *path, const sn_probe_options *o, sn_error *err) {
  char *split = NULL;
  sn_status status;
  run->path = path;
  SN_TRY_GOTO(sn_run_load_config(path, &run->config, err), done);
  if (sn_config_sources(run->config) > 0) {
    SN_TRY_GOTO(open_inherited(run, err), done);
    SN_TRY_GOTO(open_sources(run, err), done);
    SN_TRY_GOTO(sn_run_choose_source(run->config, path, o->data, err), done);
    goto settings;
  }
  if (strcmp(sn_config_text(run->config, "data.dir"), "synthetic") != 0) {
    SN_TRY_GOTO(sn_path_join(path, "split.tsv", &split, err), done);
    SN_TRY_GOTO(sn_split_load(split, NULL, &run->split, err), done);
  } else if (o->data == NULL) {
    status = need_data(path, err);
    goto done;
  }
  SN_TRY_GOTO(open_inherited(run, err), done);
settings:
  status = take_options(run->config, o, err);
done:
  sn_free(split);
  return status;
}

/* An option that changes nothing is a mistake of the one who gave it. */
static sn_status check_target_options(const sn_probe_options *o, const char *labels, sn_error *err) {
  if (o->window_s > 0 && strncmp(o->target, "annotation:", 11) != 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "window", "--window %g: the target '%s' has one item per recording; only items "
                      "of annotation targets have a window of their own", o->window_s, o->target);
  const double window_s = o->window_s > 0 ? o->window_s : 1;
  if (o->context_s > 0 && (strncmp(o->target, "annotation:", 11) != 0 || o->context_s < window_s))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "context", "--context %g: a stretch of at least the %g s of an item around each "
                      "item of an annotation target", o->context_s, window_s);
  if (o->key != NULL && labels == NULL)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "key", "--key %s: no labels file is named whose column it could be (--labels)",
                      o->key);
  return SN_OK;
}

sn_status sn_probe_hash_labels(sn_sha256 *hash, const char *path, sn_error *err) {
  enum { MOST = 1 << 28 };
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n = 0;
  sn_error local;
  if (path == NULL || path[0] == '\0') return SN_OK;
  if (sn_stream_open(path, &stream, &local) != SN_OK) return SN_OK; /* who reads the labels says what is wrong */
  const sn_status status = sn_stream_read_all(stream, MOST, &text, &n, err);
  sn_stream_close(stream);
  if (status == SN_OK) sn_sha256_update(hash, text, n);
  sn_free(text);
  return status;
}

static sn_status hash_labels(sn_probe_data *d, const char *path, sn_error *err) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  SN_TRY(sn_probe_hash_labels(&hash, path, err));
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, d->labels_sha256);
  return SN_OK;
}

static sn_status open_tables(sn_probe_data *d, const sn_probe_options *o, sn_error *err) {
  const sn_config *c = d->runs[0].config;
  const char *labels = text_or_null(c, "data.labels"), *key = text_or_null(c, "data.key");
  sn_index_report report;
  sn_index_options index = {.name = text_or_null(c, "data.name"), .n_threads = o->n_threads > 0 ? o->n_threads : 2,
                            .assume_unit = text_or_null(c, "data.assume_unit"), .log = o->log};
  const bool needs_table = strchr(o->target, ':') == NULL;
  SN_TRY(check_target_options(o, labels, err));
  if (needs_table && labels == NULL)
    return sn_fail(err, SN_E_ARGUMENT,
                   "target '%s' is a column of a labels file, but none is named: give --labels FILE --key COLUMN (or a target "
                   "like annotation:aami, header:Age or participants:age)", o->target);
  if (o->data == NULL) SN_TRY(sn_run_check_data_dir(c, err));
  SN_TRY(sn_index_directory(sn_config_text(c, "data.dir"), &index, &d->manifest, &report, err));
  for (int64_t r = 0; r < d->n_runs; r++) SN_TRY(sn_signal_source_resolve(d->runs[r].config, d->manifest, err));
  if (labels != NULL) SN_TRY(sn_keyed_table_load(d->manifest, labels, key, &d->table, err));
  if (labels != NULL) SN_TRY(hash_labels(d, labels, err));
  SN_TRY(sn_subjects_create(d->manifest, d->table, text_or_null(c, "data.subject"), &d->subjects, err));
  sn_label_options target = {.target = o->target, .task = o->task, .classes = o->classes, .window_s = o->window_s,
                             .n_threads = o->n_threads};
  return sn_labels_create(d->manifest, d->table, &target, &d->labels, err);
}

/* --classes N,A also orders: the classes of labels are sorted. */
static sn_status order_classes(sn_probe_data *d, const char *wanted, sn_error *err) {
  const int64_t K = d->labels->n_classes;
  char *copy = NULL, *rest = NULL;
  SN_TRY(sn_alloc(&d->class_order, K > 0 ? K : 1, sizeof *d->class_order, "classes", err));
  for (int64_t k = 0; k < K; k++) d->class_order[k] = (int32_t)k;
  if (wanted == NULL || K == 0) return SN_OK;
  SN_TRY(sn_strdup(&copy, wanted, "classes", err));
  int32_t at = 0;
  for (int64_t k = 0; k < K; k++) d->class_order[k] = -1;
  for (char *name = strtok_r(copy, ",;", &rest); name != NULL; name = strtok_r(NULL, ",;", &rest)) {
    name = sn_trim(name);
    for (int64_t k = 0; k < K; k++)
      if (strcmp(d->labels->classes[k], name) == 0 && d->class_order[k] < 0) d->class_order[k] = at++;
  }
  for (int64_t k = 0; k < K; k++)
    if (d->class_order[k] < 0) d->class_order[k] = at++;
  sn_free(copy);
  return SN_OK;
}

/* ---- folds -------------------------------------------------------------------------------------------------------------- */

/* Line of a split by path (split.tsv has the manifest's order: sorted), -1 if there is none. */
static int64_t split_find(const sn_split *split, const char *path) {
  int64_t low = 0, high = split->n - 1;
  while (low <= high) {
    const int64_t middle = low + (high - low) / 2;
    const int order = split->paths[middle] == NULL ? -1 : strcmp(split->paths[middle], path);
    if (order == 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

static bool same_dataset(const sn_probe_data *d, const sn_split *split) {
  if (split == NULL || split->dataset == NULL || strcmp(split->dataset, d->manifest->name) != 0) return false;
  for (int64_t i = 0; i < d->manifest->n; i++)
    if (d->manifest->rows[i].ok && split_find(split, d->manifest->rows[i].path) >= 0) return true;
  return false;
}

/* Of a run over several sources: the split of this data set leaves the others' list. */
static void find_split(const sn_probe_data *d, sn_probe_run_info *run) {
  for (int64_t i = 0; i < run->n_inherited && run->split == NULL; i++) {
    if (!same_dataset(d, run->inherited[i])) continue;
    run->split = run->inherited[i];
    run->inherited[i] = run->inherited[--run->n_inherited];
  }
}

static bool holds_out(const sn_split *split) { return sn_split_count(split, SN_ROLE_PROBE_TEST) > 0; }

static sn_status add_folds(sn_probe_data *d, int64_t n, sn_error *err) {
  int64_t size = 0;
  d->n_folds = n;
  if (!sn_mul_ok(n, d->manifest->n, &size)) return sn_fail(err, SN_E_MEMORY, "too many folds");
  SN_TRY(sn_alloc(&d->run_of_fold, n, sizeof *d->run_of_fold, "folds", err));
  return sn_alloc(&d->parts, size, 1, "folds", err);
}

static void take_roles(sn_probe_data *d, int64_t fold, int64_t row, uint8_t roles) {
  uint8_t *part = &d->parts[fold * d->manifest->n + row];
  if (roles & SN_ROLE_PROBE_TEST) *part = SN_PART_TEST;
  else if (roles & SN_ROLE_PROBE_TRAIN) *part = SN_PART_TRAIN;
}

/* The runs' own splits, one fold each. */
static sn_status folds_of_runs(sn_probe_data *d, sn_error *err) {
  SN_TRY(add_folds(d, d->n_runs, err));
  for (int64_t r = 0; r < d->n_runs; r++) {
    const sn_split *split = d->runs[r].split;
    d->run_of_fold[r] = r;
    if (!same_dataset(d, split))
      return sn_fail(err, SN_E_STATE, "%s was not pretrained on data set '%s': several runs are joined only over their own folds",
                     d->runs[r].path, d->manifest->name);
    if (!holds_out(split))
      return sn_fail(err, SN_E_STATE, "%s left nobody out (no --fold, no --split): several runs are joined only over folds",
                     d->runs[r].path);
    if (r > 0 && strcmp(split->kind, d->runs[0].split->kind) != 0)
      return sn_fail(err, SN_E_STATE, "%s has a %s split, %s a %s split: they cannot be joined", d->runs[r].path, split->kind,
                     d->runs[0].path, d->runs[0].split->kind);
    for (int64_t i = 0; i < d->manifest->n; i++) {
      const sn_manifest_row *row = &d->manifest->rows[i];
      const int64_t line = row->ok ? split_find(split, row->path) : -1;
      if (line < 0) continue;
      if (split->checksums[line] != NULL && strcmp(split->checksums[line], row->cells[SN_MANIFEST_CHECKSUM]) != 0 &&
          strncmp(split->checksums[line], row->cells[SN_MANIFEST_CHECKSUM], 5) == 0)
        return sn_fail(err, SN_E_STATE, "%s is not the recording that %s was pretrained with: its checksum is another now",
                       row->path, d->runs[r].path);
      take_roles(d, r, i, split->roles[line]);
    }
  }
  snprintf(d->kind, sizeof d->kind, "%s", d->runs[0].split->kind);
  /* What stands in config.yaml: i/k. */
  int64_t fold = 0, k = d->n_runs;
  const char *text = text_or_null(d->runs[0].config, "data.fold");
  if (text != NULL) SN_TRY(sn_parse_fold(text, &fold, &k, err));
  d->n_folds_planned = k;
  return SN_OK;
}

/* A split made here: by a column ("COLUMN" or "COLUMN:TRAIN:TEST"), or k folds of people. Needs a single run. */
static sn_status folds_made_here(sn_probe_data *d, const sn_probe_options *o, sn_error *err) {
  sn_split *split = NULL;
  char *column = NULL, *rest = NULL;
  sn_split_options s = {.seed = o->seed, .fold = 0, .exclude = o->exclude, .n_exclude = o->n_exclude};
  const int64_t folds = o->split != NULL ? 1 : o->folds;
  sn_status status;
  if (d->n_runs > 1)
    return sn_fail(err, SN_E_ARGUMENT, "%" PRId64 " runs can only be joined over the folds they were pretrained with; leave out "
                   "--split, or probe them one by one", d->n_runs);
  if (o->split != NULL) {
    SN_TRY(sn_strdup(&column, o->split, "split", err));
    s.column = strtok_r(column, ":", &rest);
    s.train = strtok_r(NULL, ":", &rest);
    s.test = strtok_r(NULL, ":", &rest);
  }
  SN_TRY_GOTO(add_folds(d, folds, err), done);
  s.n_folds = o->split != NULL ? 0 : folds;
  for (int64_t f = 0; f < folds; f++) {
    s.fold = o->split != NULL ? -1 : f;
    SN_TRY_GOTO(sn_split_create(d->manifest, d->subjects, d->table, d->labels->task == SN_LABEL_CLASS ? d->labels : NULL, &s,
                                &split, err), done);
    for (int64_t i = 0; i < d->manifest->n; i++) take_roles(d, f, i, split->roles[i]);
    snprintf(d->kind, sizeof d->kind, "%s", split->kind);
    sn_split_destroy(split);
    split = NULL;
  }
  d->n_folds_planned = folds;
done:
  sn_free(column);
  return status;
}

/* --exclude also where the runs' split decides. */
static sn_status exclude(sn_probe_data *d, const sn_probe_options *o, sn_error *err) {
  for (int64_t e = 0; e < o->n_exclude; e++) {
    int64_t found = 0;
    for (int64_t i = 0; i < d->manifest->n; i++) {
      const char *path = d->manifest->rows[i].path, *base = sn_path_base(path);
      const size_t stem = strlen(base) - strlen(sn_path_extension(base)), n = strlen(o->exclude[e]);
      if (strcmp(path, o->exclude[e]) != 0 && strcmp(base, o->exclude[e]) != 0 &&
          !(n == stem && strncmp(base, o->exclude[e], n) == 0))
        continue;
      found++;
      for (int64_t f = 0; f < d->n_folds; f++) d->parts[f * d->manifest->n + i] = SN_PART_NONE;
    }
    if (found == 0) return sn_fail(err, SN_E_ARGUMENT, "--exclude %s: no recording has this name", o->exclude[e]);
  }
  return SN_OK;
}

static sn_status check_tested_once(const sn_probe_data *d, sn_error *err) {
  for (int64_t i = 0; i < d->manifest->n; i++) {
    int64_t first = -1;
    for (int64_t f = 0; f < d->n_folds; f++) {
      if (d->parts[f * d->manifest->n + i] != SN_PART_TEST) continue;
      if (first >= 0)
        return sn_fail(err, SN_E_STATE, "%s is in the test part of both %s and %s: the runs must leave out different folds of one "
                       "split", d->manifest->rows[i].path, d->runs[d->run_of_fold[first]].path, d->runs[d->run_of_fold[f]].path);
      first = f;
    }
  }
  return SN_OK;
}

/* ---- leakage ------------------------------------------------------------------------------------------------------------- */

uint64_t sn_probe_data_group(const sn_probe_data *d, int64_t recording) {
  char id[640];
  if (!d->subjects->persons_unknown && d->subjects->ids[recording] != NULL) return sn_subject_hash(d->manifest, d->subjects, recording);
  const int n = snprintf(id, sizeof id, "%.120s\n%.500s", d->manifest->name, d->manifest->rows[recording].path);
  return sn_hash64(id, n < (int)sizeof id ? n : (int)sizeof id - 1);
}

static int compare_u64(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static bool contains(const uint64_t *sorted, int64_t n, uint64_t value) {
  return n > 0 && bsearch(&value, sorted, (size_t)n, sizeof *sorted, compare_u64) != NULL;
}

static uint64_t hash_pair(const char *a, const char *b) {
  char text[320];
  const int n = snprintf(text, sizeof text, "%.150s\n%.150s", a, b);
  return sn_hash64(text, n);
}

typedef struct seen {
  uint64_t *people, *ids, *contents; /* sorted: groups as this probe names them, ids as the run named them, checksums */
  int64_t n_people, n_ids, n_contents;
} seen;

static void seen_free(seen *s) {
  sn_free(s->people);
  sn_free(s->ids);
  sn_free(s->contents);
}

static sn_status gather_seen(const sn_probe_data *d, const sn_split *split, seen *s, sn_error *err) {
  const bool same = strcmp(split->dataset != NULL ? split->dataset : "", d->manifest->name) == 0;
  memset(s, 0, sizeof *s);
  SN_TRY(sn_alloc(&s->people, split->n, sizeof *s->people, "leakage", err));
  SN_TRY(sn_alloc(&s->ids, split->n, sizeof *s->ids, "leakage", err));
  SN_TRY(sn_alloc(&s->contents, split->n, sizeof *s->contents, "leakage", err));
  for (int64_t i = 0; i < split->n; i++) {
    if (!(split->roles[i] & SN_ROLE_PRETRAIN)) continue;
    const int64_t row = same ? sn_manifest_find(d->manifest, split->paths[i]) : -1;
    if (row >= 0) s->people[s->n_people++] = sn_probe_data_group(d, row);
    if (split->subjects[i] != NULL && split->subjects[i][0] != '\0')
      s->ids[s->n_ids++] = hash_pair(sn_split_people(split), split->subjects[i]);
    if (split->checksums[i] != NULL) s->contents[s->n_contents++] = sn_hash64(split->checksums[i], (int64_t)strlen(split->checksums[i]));
  }
  qsort(s->people, (size_t)s->n_people, sizeof *s->people, compare_u64);
  qsort(s->ids, (size_t)s->n_ids, sizeof *s->ids, compare_u64);
  qsort(s->contents, (size_t)s->n_contents, sizeof *s->contents, compare_u64);
  return SN_OK;
}

typedef struct leak {
  uint64_t *people; /* distinct, of all folds */
  int64_t n_people, capacity, n_contents;
  int64_t example;
} leak;

static sn_status note_leak(leak *l, const sn_probe_data *d, int64_t row, bool person, bool content, sn_error *err) {
  if (l->example < 0) l->example = row;
  l->n_contents += content;
  if (!person) return SN_OK;
  const uint64_t group = sn_probe_data_group(d, row);
  for (int64_t i = 0; i < l->n_people; i++)
    if (l->people[i] == group) return SN_OK;
  SN_TRY(sn_grow(&l->people, &l->capacity, l->n_people + 1, sizeof *l->people, "leakage", err));
  l->people[l->n_people++] = group;
  return SN_OK;
}

/* Recordings without a label that was asked for are not tested, and cannot leak. used (n) [out]. */
static sn_status mark_used(const sn_probe_data *d, uint8_t **used, sn_error *err) {
  SN_TRY(sn_alloc(used, d->manifest->n, 1, "leakage", err));
  for (int64_t i = 0; i < d->labels->n; i++) (*used)[d->labels->items[i].recording] = 1;
  return SN_OK;
}

static sn_status leak_of_fold(const sn_probe_data *d, int64_t fold, const sn_split *split, leak *l, sn_error *err) {
  seen s = {.n_people = 0};
  uint8_t *used = NULL;
  const char *people = text_or_null(d->runs[d->run_of_fold[fold]].config, "data.people");
  sn_status status;
  SN_TRY_GOTO(mark_used(d, &used, err), done);
  SN_TRY_GOTO(gather_seen(d, split, &s, err), done);
  for (int64_t i = 0; i < d->manifest->n; i++) {
    if (d->parts[fold * d->manifest->n + i] != SN_PART_TEST || !used[i]) continue;
    const char *sum = d->manifest->rows[i].cells[SN_MANIFEST_CHECKSUM], *id = d->subjects->ids[i];
    const bool content = contains(s.contents, s.n_contents, sn_hash64(sum, (int64_t)strlen(sum)));
    const bool person = contains(s.people, s.n_people, sn_probe_data_group(d, i)) ||
                        (id != NULL && contains(s.ids, s.n_ids, hash_pair(people != NULL ? people : d->manifest->name, id)));
    if (content || person) SN_TRY_GOTO(note_leak(l, d, i, person || content, content, err), done);
  }
done:
  sn_free(used);
  seen_free(&s);
  return status;
}

static sn_status check_leakage(sn_probe_data *d, const sn_probe_options *o, sn_error *err) {
  leak l = {.example = -1};
  sn_status status = SN_OK;
  snprintf(d->leakage_kind, sizeof d->leakage_kind, "none");
  for (int64_t f = 0; f < d->n_folds; f++) {
    const sn_probe_run_info *run = &d->runs[d->run_of_fold[f]];
    const sn_split *split = run->split;
    for (int64_t i = 0; i < run->n_inherited; i++) SN_TRY_GOTO(leak_of_fold(d, f, run->inherited[i], &l, err), done);
    if (split == NULL) continue; /* synthetic tokens belong to nobody */
    if (split->n > 0 && split->checksums[0] != NULL) {
      const char *colon = strchr(split->checksums[0], ':');
      if (colon != NULL)
        snprintf(d->leakage_kind, sizeof d->leakage_kind, "%.*s", (int)(colon - split->checksums[0]), split->checksums[0]);
    }
    SN_TRY_GOTO(leak_of_fold(d, f, split, &l, err), done);
  }
  d->leaked_subjects = l.n_people;
  d->leaked_contents = l.n_contents;
  if (l.n_people > 0 && !o->transductive)
    status = sn_fail(err, SN_E_STATE,
                     "leakage: pretraining saw %" PRId64 " %s of the test part (%s and others). Pretrain with --fold i/k or a fixed "
                     "split, or say --transductive, and every row of the table will carry that word",
                     l.n_people, d->subjects->persons_unknown ? "recording(s)" : "person(s)", d->manifest->rows[l.example].path);
done:
  sn_free(l.people);
  return status;
}

sn_status sn_probe_data_open(const sn_probe_options *o, sn_probe_data **out, sn_error *err) {
  sn_probe_data *d = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&d, 1, sizeof *d, "probe", err), fail);
  SN_TRY_GOTO(sn_alloc(&d->runs, o->n_runs, sizeof *d->runs, "probe", err), fail);
  d->context_s = o->context_s;
  for (int64_t r = 0; r < o->n_runs; r++) {
    d->n_runs++;
    SN_TRY_GOTO(open_run(&d->runs[r], o->runs[r], o, err), fail);
  }
  SN_TRY_GOTO(open_tables(d, o, err), fail);
  SN_TRY_GOTO(order_classes(d, o->classes, err), fail);
  for (int64_t r = 0; r < d->n_runs; r++)
    if (d->runs[r].split == NULL) find_split(d, &d->runs[r]);
  const bool own = o->split == NULL && same_dataset(d, d->runs[0].split) && holds_out(d->runs[0].split);
  if (o->folds_given && (own || o->split != NULL || d->n_runs > 1)) {
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "folds", "--folds %" PRId64 ": %s; leave it out", o->folds,
                        o->split != NULL ? "--split names the parts" : "the runs' own folds or split are what is tested");
    goto fail;
  }
  if (own || (o->split == NULL && d->n_runs > 1))
    SN_TRY_GOTO(folds_of_runs(d, err), fail);
  else SN_TRY_GOTO(folds_made_here(d, o, err), fail);
  SN_TRY_GOTO(exclude(d, o, err), fail);
  SN_TRY_GOTO(check_tested_once(d, err), fail);
  SN_TRY_GOTO(check_leakage(d, o, err), fail);
  *out = d;
  return SN_OK;
fail:
  sn_probe_data_destroy(d);
  return status;
}

/* The largest of k folds has at least a kth of the items: whoever learns on the rest has no more than this. */
static sn_status check_votes(const sn_probe_data *d, const sn_probe_options *o, int64_t folds, sn_error *err) {
  const int64_t n = d->labels->n, most = n - (n + folds - 1) / folds, k = o->k > 0 ? o->k : SN_KNN_K;
  if (d->labels->task == SN_LABEL_VALUE)
    return sn_fail(err, SN_E_ARGUMENT, "kNN votes for classes, and the target '%s' is a number: use the linear probe", o->target);
  if (k <= most) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "k", "kNN: k is %" PRId64 ", and of %" PRId64 " items of '%s' at most %" PRId64
                    " are trained on: k takes 1 to their number", k, n, o->target, most);
}

sn_status sn_probe_data_check(const sn_probe_options *o, sn_config *config, const char *run, int64_t run_folds, bool knn, sn_error *err) {
  sn_probe_data *d = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&d, 1, sizeof *d, "probe", err));
  SN_TRY_GOTO(sn_alloc(&d->runs, 1, sizeof *d->runs, "probe", err), done);
  d->n_runs = 1;
  d->runs[0].path = run;
  if (sn_config_sources(config) > 0) {
    SN_TRY_GOTO(sn_run_choose_source(config, run, o->data, err), done);
  } else if (o->data == NULL && strcmp(sn_config_text(config, "data.dir"), "synthetic") == 0) {
    status = need_data(run, err);
    goto done;
  }
  const bool elsewhere = o->data != NULL && !sn_same_directory(o->data, sn_config_text(config, "data.dir"));
  SN_TRY_GOTO(take_options(config, o, err), done);
  d->runs[0].config = config;
  SN_TRY_GOTO(open_tables(d, o, err), done);
  SN_TRY_GOTO(exclude(d, o, err), done);
  if (run_folds == 1 && o->split != NULL) SN_TRY_GOTO(folds_made_here(d, o, err), done);
  if (knn) status = check_votes(d, o, run_folds > 1 ? run_folds : elsewhere && o->split == NULL ? o->folds : d->labels->n, err);
done:
  if (d->n_runs == 1) d->runs[0].config = NULL; /* the caller's */
  sn_probe_data_destroy(d);
  return status;
}

void sn_probe_data_destroy(sn_probe_data *d) {
  if (d == NULL) return;
  for (int64_t r = 0; r < d->n_runs; r++) {
    sn_config_destroy(d->runs[r].config);
    sn_split_destroy(d->runs[r].split);
    for (int64_t i = 0; i < d->runs[r].n_inherited; i++) sn_split_destroy(d->runs[r].inherited[i]);
    sn_free(d->runs[r].inherited);
  }
  sn_free(d->runs);
  sn_labels_destroy(d->labels);
  sn_subjects_destroy(d->subjects);
  sn_keyed_table_destroy(d->table);
  sn_manifest_destroy(d->manifest);
  sn_free(d->class_order);
  sn_free(d->run_of_fold);
  sn_free(d->parts);
  sn_free(d);
}
