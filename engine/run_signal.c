/* needs: full */
#include "engine/run_signal.h"

#include <math.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "datasets/index.h"
#include "datasets/source_signal.h"
#include "engine/run.h"
#include "engine/run_unchanged.h"

static const char *text_or_null(const sn_config *config, const char *key) {
  const char *text = sn_config_text(config, key);
  return text[0] != '\0' ? text : NULL;
}

static sn_status open_manifest(sn_run_signal *data, const sn_config *config, const char *run, bool resume,
                               const char *whole_run, int64_t first, const sn_log *log, sn_error *err) {
  const char *dir = sn_config_text(config, "data.dir"), *name = text_or_null(config, "data.name");
  char *path = NULL;
  sn_index_report report;
  sn_index_options options = {.name = name, .n_threads = sn_config_int(config, "train.loader_threads"),
                              .log = log != NULL ? *log : (sn_log){0}};
  sn_status status = SN_OK;
  SN_TRY(sn_run_check_data_dir(config, err));
  if (run != NULL) SN_TRY(sn_path_join(run, "manifest.tsv", &path, err));
  if (resume && path != NULL && sn_path_exists(path)) {
    SN_TRY_GOTO(sn_manifest_load(path, dir, name, &data->manifest, err), done);
    if (text_or_null(config, "data.store") == NULL) status = sn_run_check_unchanged(data->manifest, path, whole_run, first, err);
  } else {
    SN_TRY_GOTO(sn_index_directory(dir, &options, &data->manifest, &report, err), done);
    const int64_t bad = data->manifest->n - data->manifest->n_ok;
    if (bad == 0) sn_log_write(log, SN_LOG_INFO, "%s: %lld recording%s", dir, (long long)data->manifest->n,
                               data->manifest->n == 1 ? "" : "s");
    else sn_log_write(log, SN_LOG_INFO, "%s: %lld recordings, %lld of them cannot be used (%s says why)", dir,
                      (long long)data->manifest->n, (long long)bad, path != NULL ? path : "`sonde index`");
    if (path != NULL) SN_TRY_GOTO(sn_manifest_save(data->manifest, path, err), done);
    if (data->manifest->n_ok == 0)
      status = sn_fail(err, SN_E_ARGUMENT, "%s: no recording can be used; `sonde index` says what is in the folder", dir);
  }
done:
  sn_free(path);
  return status;
}

/* Recordings that are there and cannot be read count as those do that fail in training: a run on the little that is left
 * is not what was asked for. */
static sn_status check_lost(sn_run_signal *data, const sn_config *config, const sn_log *log, sn_error *err) {
  const sn_manifest *m = data->manifest;
  const double share = sn_config_real(config, "train.max_bad_share");
  int64_t first = -1;
  for (int64_t i = 0; i < m->n; i++) {
    bool excluded = false;
    if (!sn_index_is_lost(&m->rows[i])) continue;
    for (int64_t e = 0; e < sn_config_list_length(config, "data.exclude"); e++)
      excluded = excluded || sn_split_names_recording(m->rows[i].path, sn_config_list_text(config, "data.exclude", e));
    if (excluded) continue;
    if (data->n_lost++ == 0) first = i;
  }
  if (data->n_lost == 0) return SN_OK;
  data->first_lost = first;
  const sn_manifest_row *row = &m->rows[first];
  const long long lost = data->n_lost, all = m->n_ok + data->n_lost;
  char reason[SN_ERROR_MESSAGE];
  sn_manifest_show(row->cells[SN_MANIFEST_REASON], reason, sizeof reason);
  if ((double)lost > share * (double)all)
    return sn_fail(err, SN_E_STATE, "%lld of %lld recordings cannot be read, more than train.max_bad_share %g: mend them, name them in "
                   "data.exclude, or raise train.max_bad_share. First %s: %s", lost, all, share, row->path, reason);
  sn_log_write(log, SN_LOG_WARNING, "%lld of %lld recordings cannot be read and are left out (first %s: %s); more than a share of %g "
               "stops a run (train.max_bad_share)", lost, all, row->path, reason, share);
  return SN_OK;
}

enum { MOST_EXCLUDED = 256 };

static sn_status make_split(sn_run_signal *data, const sn_config *config, const int32_t *folds, sn_error *err) {
  const char *excluded[MOST_EXCLUDED], *stratify = text_or_null(config, "data.stratify");
  const char *fold = text_or_null(config, "data.fold");
  sn_labels *labels = NULL;
  sn_split_options options = {.fold = -1, .seed = (uint64_t)sn_config_int(config, "data.split_seed"),
                              .column = text_or_null(config, "data.split"),
                              .train = text_or_null(config, "data.train_part"),
                              .test = text_or_null(config, "data.test_part"), .exclude = excluded,
                              .n_exclude = sn_config_list_length(config, "data.exclude")};
  if (options.n_exclude > MOST_EXCLUDED)
    return sn_fail(err, SN_E_ARGUMENT, "data.exclude: more than %d recordings; list them in a column of data.labels instead",
                   MOST_EXCLUDED);
  for (int64_t i = 0; i < options.n_exclude; i++) excluded[i] = sn_config_list_text(config, "data.exclude", i);
  if (fold != NULL) SN_TRY(sn_parse_fold(fold, &options.fold, &options.n_folds, err));
  options.folds = folds;
  if (stratify != NULL) {
    sn_label_options target = {.target = stratify, .task = SN_LABEL_CLASS};
    SN_TRY(sn_labels_create(data->manifest, data->table, &target, &labels, err));
  }
  sn_status status = sn_split_create(data->manifest, data->subjects, data->table, labels, &options, &data->split, err);
  sn_labels_destroy(labels);
  return status;
}

/* Persons matter only where something is left out: a run on everything needs no subject ids. */
static sn_status find_subjects(sn_run_signal *data, const sn_config *config, sn_error *err) {
  const char *from = text_or_null(config, "data.subject");
  const bool whole = text_or_null(config, "data.fold") == NULL && text_or_null(config, "data.split") == NULL;
  sn_status status = sn_subjects_create(data->manifest, data->table, from, &data->subjects, err);
  if (status == SN_E_ARGUMENT && from == NULL && whole)
    status = sn_subjects_create(data->manifest, data->table, "recording", &data->subjects, err);
  return status;
}

/* Nothing is left out silently: recordings in no part of the split, and lines of the table that are for no recording.
 */
static void warn_of_left_out(const sn_run_signal *data, const sn_log *log) {
  const sn_split *split = data->split;
  const int64_t n = split->n_no_subject + split->n_excluded + split->n_other_value;
  if (n > 0)
    sn_log_write(log, SN_LOG_WARNING,
                 "%lld recordings are in no part of the split: %lld without a person, %lld excluded, "
                 "%lld of another part",
                 (long long)n, (long long)split->n_no_subject, (long long)split->n_excluded,
                 (long long)split->n_other_value);
  if (data->table != NULL && data->table->n_unmatched > 0)
    sn_log_write(log, SN_LOG_WARNING, "%lld lines of the labels are for no recording here, first %s",
                 (long long)data->table->n_unmatched, data->table->first_unmatched);
}

sn_status sn_run_signal_find(sn_config *config, const char *run, bool resume, const char *whole_run, int64_t first,
                             const sn_log *log, sn_run_signal **out, sn_error *err) {
  sn_run_signal *data = NULL;
  const char *labels = text_or_null(config, "data.labels"), *people = text_or_null(config, "data.people");
  sn_status status;
  SN_TRY(sn_alloc(&data, 1, sizeof *data, "run data", err));
  data->resumed = resume;
  /* Before the manifest: where that stands, what it was made with is known. */
  if (run != NULL && resume) SN_TRY_GOTO(sn_run_labels_check(config, run, err), fail);
  else if (run != NULL) SN_TRY_GOTO(sn_run_labels_remember(config, run, err), fail);
  SN_TRY_GOTO(open_manifest(data, config, run, resume, whole_run, first, log, err), fail);
  SN_TRY_GOTO(check_lost(data, config, log, err), fail);
  SN_TRY_GOTO(sn_signal_source_resolve(config, data->manifest, err), fail);
  if (labels != NULL)
    SN_TRY_GOTO(sn_keyed_table_load(data->manifest, labels, text_or_null(config, "data.key"), &data->table, err), fail);
  SN_TRY_GOTO(find_subjects(data, config, err), fail);
  if (people != NULL) SN_TRY_GOTO(sn_strdup(&data->subjects->people, people, "people", err), fail);
  *out = data;
  return SN_OK;
fail:
  sn_run_signal_destroy(data);
  return status;
}

sn_status sn_run_signal_split(sn_run_signal *data, const sn_config *config, const char *run, bool resume,
                              const int32_t *folds, const sn_log *log, sn_error *err) {
  char *path = NULL;
  sn_status status = SN_OK;
  if (run != NULL) SN_TRY(sn_path_join(run, "split.tsv", &path, err));
  if (resume && path != NULL && sn_path_exists(path)) {
    SN_TRY_GOTO(sn_split_load(path, data->manifest, &data->split, err), done);
  } else {
    SN_TRY_GOTO(make_split(data, config, folds, err), done);
    if (path != NULL) SN_TRY_GOTO(sn_split_save(data->split, path, err), done);
  }
  sn_log_write(log, SN_LOG_INFO, "split %s%s: %lld recordings to pretrain on, %lld left for testing", data->split->kind,
               data->split->persons_unknown ? " (recordings, persons unknown)" : "",
               (long long)sn_split_count(data->split, SN_ROLE_PRETRAIN),
               (long long)sn_split_count(data->split, SN_ROLE_PROBE_TEST));
  warn_of_left_out(data, log);
done:
  sn_free(path);
  return status;
}

sn_status sn_run_signal_open(sn_config *config, const char *run, bool resume, const sn_log *log, sn_run_signal **out,
                             sn_error *err) {
  sn_run_signal *data = NULL;
  SN_TRY(sn_run_signal_find(config, run, resume, run, 0, log, &data, err));
  const sn_status status = sn_run_signal_split(data, config, run, resume, NULL, log, err);
  if (status == SN_OK) *out = data;
  else sn_run_signal_destroy(data);
  return status;
}

void sn_run_signal_destroy(sn_run_signal *data) {
  if (data == NULL) return;
  sn_split_destroy(data->split);
  sn_subjects_destroy(data->subjects);
  sn_keyed_table_destroy(data->table);
  sn_manifest_destroy(data->manifest);
  sn_free(data);
}

/* The continuous label of the recordings that are trained on. */
static sn_status take_labels(const sn_run_signal *data, const sn_config *config, const sn_log *log, sn_source *source,
                             sn_error *err) {
  sn_label_options target = {.target = text_or_null(config, "data.label"), .task = SN_LABEL_VALUE};
  sn_labels *labels = NULL;
  if (target.target == NULL) return SN_OK;
  SN_TRY(sn_labels_create(data->manifest, data->table, &target, &labels, err));
  sn_status status = sn_alloc(&source->labels, source->n_recordings, sizeof *source->labels, "labels of recordings", err);
  int64_t n = 0;
  for (int64_t i = 0; status == SN_OK && i < source->n_recordings; i++) source->labels[i] = NAN;
  for (int64_t i = 0; status == SN_OK && i < labels->n; i++) {
    if (labels->items[i].recording >= source->n_recordings) continue;
    source->labels[labels->items[i].recording] = labels->items[i].value;
    n++;
  }
  sn_labels_destroy(labels);
  if (status == SN_OK)
    sn_log_write(log, SN_LOG_INFO, "label %s: known of %lld of %lld recordings", target.target, (long long)n,
                 (long long)source->n_recordings);
  return status;
}

static bool has_series(const sn_series_list *list, const char *name) {
  for (int64_t i = 0; i < list->n; i++)
    if (sn_equal_nocase(list->series[i].name, name)) return true;
  return false;
}

/* What was asked for by name and is not there is not left out without a word. */
static sn_status check_asked(const sn_run_signal *data, const sn_signal_options *signal, const sn_source *source,
                             const int64_t *rows, int64_t n, const sn_log *log, sn_error *err) {
  const sn_modality *modality = signal->modality;
  const char *name;
  for (int64_t k = 0; modality->asked != NULL && (name = modality->asked(&signal->own, k)) != NULL; k++) {
    int64_t n_used = 0, n_lack = 0, first = -1;
    for (int64_t i = 0; i < n; i++) {
      if (!data->manifest->rows[rows[i]].ok) continue;
      const sn_series_list *list = sn_conditioned_planned_series(sn_signal_source_conditioned(source), rows[i]);
      if (list == NULL) continue; /* cannot be used, and counted so */
      n_used++;
      if (has_series(list, name)) continue;
      if (n_lack++ == 0) first = rows[i];
    }
    if (n_lack == 0) continue;
    if (n_lack == n_used && !data->resumed && !data->one_of_several)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, modality->asked_key, "%s: %s is in none of the %lld recordings to train on: leave "
                        "it out, or name what there is (`sonde index` lists it)", modality->asked_key, name, (long long)n_used);
    sn_log_write(log, SN_LOG_WARNING, "%s: %lld of %lld recordings lack %s (first %s); they are trained on without it",
                 modality->asked_key, (long long)n_lack, (long long)n_used, name, data->manifest->rows[first].path);
  }
  return SN_OK;
}

sn_status sn_run_signal_source(const sn_run_signal *data, const sn_config *config, sn_role role, const sn_log *log,
                            sn_source **out, sn_error *err) {
  int64_t *rows = NULL, n = 0;
  sn_signal_source_options options = {0};
  sn_signal_source_report report;
  sn_status status;
  SN_TRY(sn_split_rows(data->split, role, &rows, &n, err));
  SN_TRY_GOTO(sn_signal_source_options_from_config(config, &options, err), done);
  options.manifest = data->manifest;
  options.rows = rows;
  options.n_rows = n;
  options.subjects = data->subjects;
  options.split_hash = data->split->hash;
  if (log != NULL) options.log = *log;
  SN_TRY_GOTO(sn_source_create_signal(&options, out, err), done);
  if (role == SN_ROLE_PRETRAIN) SN_TRY_GOTO(check_asked(data, &options.signal, *out, rows, n, log, err), done);
  SN_TRY_GOTO(take_labels(data, config, log, *out, err), done);
  (*out)->n_lost = role == SN_ROLE_PRETRAIN ? data->n_lost : 0;
  if ((*out)->n_lost > 0) {
    const sn_manifest_row *lost = &data->manifest->rows[data->first_lost];
    char reason[SN_ERROR_MESSAGE];
    sn_manifest_show(lost->cells[SN_MANIFEST_REASON], reason, sizeof reason);
    snprintf((*out)->first_lost, sizeof (*out)->first_lost, "%.200s: %s", lost->path, reason);
  }
  sn_signal_source_get_report(*out, &report);
  sn_log_write(log, SN_LOG_INFO, "%lld windows (%.2f h) of %lld recordings; %lld too short, %lld unusable%s%s",
               (long long)(*out)->n_windows, report.window_hours, (long long)report.n_recordings,
               (long long)report.n_short, (long long)report.n_unusable, report.n_unusable ? "; first: " : "",
               report.first_unusable);
  double filter_s;
  const int64_t n_edges = sn_conditioned_short_for_filter(sn_signal_source_conditioned(*out), &filter_s);
  if (n_edges > 0)
    sn_log_write(log, SN_LOG_WARNING, "%lld recordings are shorter than three lengths of their filter (%.1f s): its edges "
                 "weigh there; a higher data.filter_low has a shorter one", (long long)n_edges, filter_s);
done:
  sn_free(rows);
  return status;
}
