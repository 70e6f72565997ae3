/* needs: full */
#include "benchmarks/finetune_task.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "benchmarks/finetune_table.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/stream.h"
#include "engine/run.h"
#include "engine/run_folder.h"

/* ---- targets ---------------------------------------------------------------- */

static sn_task task_of(const sn_labels *labels) {
  if (labels->task == SN_LABEL_VALUE) return SN_TASK_REGRESSION;
  if (labels->task == SN_LABEL_MULTI) return SN_TASK_MULTILABEL;
  return labels->n_classes == 2 ? SN_TASK_BINARY : SN_TASK_MULTICLASS;
}

/* What is to be predicted of every item, in the order of --classes. */
static sn_status make_truth(sn_finetune_cv *cv, sn_error *err) {
  const sn_labels *labels = cv->data->labels;
  const int64_t n = cv->items->n, K = labels->n_classes > 0 ? labels->n_classes : 1;
  cv->task = task_of(labels);
  cv->n_outputs = K;
  SN_TRY(sn_alloc(&cv->labels, n, sizeof *cv->labels, "labels", err));
  SN_TRY(sn_alloc(&cv->values, n, sizeof *cv->values, "labels", err));
  SN_TRY(sn_alloc(&cv->groups, n, sizeof *cv->groups, "labels", err));
  SN_TRY(sn_alloc(&cv->hot, n * K, 1, "labels", err));
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = cv->items->label_item[i];
    const sn_label_item *item = &labels->items[from];
    cv->labels[i] = item->label >= 0 ? cv->data->class_order[item->label] : -1;
    cv->values[i] = item->value;
    cv->groups[i] = sn_probe_data_group(cv->data, cv->items->recording[i]);
    for (int64_t k = 0; k < K && labels->hot != NULL; k++)
      cv->hot[i * K + cv->data->class_order[k]] = labels->hot[from * K + k];
  }
  return SN_OK;
}

/* ---- one fold ---------------------------------------------------------------- */

typedef struct item_list { int64_t *at, n; } item_list;

typedef struct fold {
  const sn_finetune_cv *cv;
  int64_t number;
  sn_config *config;
  item_list train, validation, test;
  sn_source *source;               /* windows of train */
  sn_supervised_label *rows;
  uint8_t *hot;
  sn_supervised_labels labels;
  float *class_weight;             /* (K) or NULL */
  double mean, std;                /* of the values trained on */
  int64_t *windows;                /* of items->source: validation's, then test's */
  int64_t n_validation, n_test;
} fold;

static void free_fold(fold *f) {
  sn_source_destroy(f->source);
  sn_config_destroy(f->config);
  sn_free(f->train.at);
  sn_free(f->validation.at);
  sn_free(f->test.at);
  sn_free(f->rows);
  sn_free(f->hot);
  sn_free(f->class_weight);
  sn_free(f->windows);
}

/* The run's settings, the data of this evaluation, and the user's settings. */
static sn_status make_config(const sn_finetune_cv *cv, const sn_probe_run_info *run, uint64_t seed, sn_config **out,
                             sn_error *err) {
  static const char *const DATA[] = {"data.dir", "data.name", "data.labels", "data.key", "data.subject", "data.modality"};
  const sn_finetune_task_options *o = cv->options;
  sn_config *config = NULL;
  char number[32];
  sn_status status;
  SN_TRY(sn_finetune_config_from_run(run->path, &config, err));
  SN_TRY_GOTO(sn_run_choose_source(config, run->path, sn_config_text(run->config, "data.dir"), err), fail);
  for (size_t i = 0; i < sizeof DATA / sizeof DATA[0]; i++)
    SN_TRY_GOTO(sn_config_set(config, DATA[i], sn_config_text(run->config, DATA[i]), "run", -1, err), fail);
  for (int64_t i = 0; i < o->n_set; i++) SN_TRY_GOTO(sn_config_set_pair(config, o->set[i], "--set", err), fail);
  snprintf(number, sizeof number, "%" PRIu64, (uint64_t)sn_config_int(config, "finetune.seed") + seed);
  SN_TRY_GOTO(sn_config_set(config, "finetune.seed", number, "seed", -1, err), fail);
  if (o->probe.use_ema) SN_TRY_GOTO(sn_config_set(config, "finetune.ema", "true", "--ema", -1, err), fail);
  SN_TRY_GOTO(sn_finetune_config_resolve(config, err), fail);
  *out = config;
  return SN_OK;
fail:
  sn_config_destroy(config);
  return status;
}

typedef struct member { uint64_t group; int64_t at; } member;

static int by_group(const void *a, const void *b) {
  const member *x = a, *y = b;
  return x->group != y->group ? (x->group > y->group) - (x->group < y->group) : (x->at > y->at) - (x->at < y->at);
}

/* The stratum of a person is the rarest class that they have: the commonest, which most share, stratifies nothing. */
static sn_status make_strata(const fold *f, const int64_t *pool, int64_t n, int32_t *strata, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  const int64_t K = cv->data->labels->n_classes;
  member *members = NULL;
  int64_t *counts = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&members, n, sizeof *members, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&counts, K + 1, sizeof *counts, "fold", err), done);
  for (int64_t i = 0; i < n; i++) {
    members[i] = (member){cv->groups[pool[i]], i};
    counts[cv->labels[pool[i]] + 1]++;
  }
  qsort(members, (size_t)n, sizeof *members, by_group);
  for (int64_t first = 0, last; first < n; first = last) {
    int32_t rarest = -1;
    for (last = first; last < n && members[last].group == members[first].group; last++) {
      const int32_t label = cv->labels[pool[members[last].at]];
      if (label >= 0 && (rarest < 0 || counts[label + 1] < counts[rarest + 1])) rarest = label;
    }
    for (int64_t i = first; i < last; i++) strata[members[i].at] = rarest;
  }
done:
  sn_free(members);
  sn_free(counts);
  return status;
}

/* The inner part that validates: the first of those with the most classes. */
static sn_status choose_part(const fold *f, const int64_t *pool, const int32_t *folds, int64_t n, int64_t n_folds,
                             int32_t *chosen, sn_error *err) {
  const int64_t K = f->cv->data->labels->n_classes;
  uint8_t *there = NULL;
  int64_t most = -1;
  SN_TRY(sn_alloc(&there, n_folds * (K + 1), 1, "fold", err));
  for (int64_t i = 0; i < n; i++) there[folds[i] * (K + 1) + f->cv->labels[pool[i]] + 1] = 1;
  for (int64_t p = 0; p < n_folds; p++) {
    int64_t classes = 0;
    for (int64_t k = 1; k <= K; k++) classes += there[p * (K + 1) + k];
    if (classes > most) *chosen = (int32_t)p;
    most = classes > most ? classes : most;
  }
  sn_free(there);
  return SN_OK;
}

/* 0, 1, or 2 for more. */
static int count_groups(const uint64_t *groups, int64_t n) {
  for (int64_t i = 1; i < n; i++)
    if (groups[i] != groups[0]) return 2;
  return n > 0;
}

static sn_status cut_inner(fold *f, const int64_t *pool, int64_t n, sn_error *err) {
  const int64_t k = sn_config_int(f->config, "finetune.validation_folds");
  int64_t n_folds = 0;
  uint64_t *groups = NULL;
  int32_t *strata = NULL, *folds = NULL, chosen = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&groups, n, sizeof *groups, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&strata, n, sizeof *strata, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&folds, n, sizeof *folds, "fold", err), done);
  for (int64_t i = 0; i < n; i++) groups[i] = f->cv->groups[pool[i]];
  SN_TRY_GOTO(make_strata(f, pool, n, strata, err), done);
  if (count_groups(groups, n) < 2) {
    status = sn_fail(err, SN_E_ARGUMENT, "fold %" PRId64 ": all %" PRId64 " items to train on are of one person, and training "
                     "needs another to validate on: take more people, or fewer --folds", f->number, n);
    goto done;
  }
  SN_TRY_GOTO(sn_grouped_folds(groups, strata, n, k, f->cv->options->probe.seed, folds, &n_folds, err), done);
  SN_TRY_GOTO(choose_part(f, pool, folds, n, n_folds, &chosen, err), done);
  for (int64_t i = 0; i < n; i++) {
    item_list *list = folds[i] == chosen ? &f->validation : &f->train;
    list->at[list->n++] = pool[i];
  }
done:
  sn_free(groups);
  sn_free(strata);
  sn_free(folds);
  return status;
}

/* Items of the fold's parts, and the validating ones among those of training. */
static sn_status cut_parts(fold *f, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  const int64_t n = cv->items->n;
  int64_t *pool = NULL, n_pool = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&f->train.at, n, sizeof *f->train.at, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&f->validation.at, n, sizeof *f->validation.at, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&f->test.at, n, sizeof *f->test.at, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&pool, n, sizeof *pool, "fold", err), done);
  for (int64_t i = 0; i < n; i++) {
    const uint8_t part = cv->data->parts[f->number * cv->data->manifest->n + cv->items->recording[i]];
    if (part == SN_PART_TEST) f->test.at[f->test.n++] = i;
    if (part == SN_PART_TRAIN) pool[n_pool++] = i;
  }
  if (n_pool == 0 || f->test.n == 0)
    status =
        sn_fail(err, SN_E_ARGUMENT, "fold %" PRId64 ": %" PRId64 " items with a label to train on, %" PRId64 " to test: look at "
                "--target, --classes and the split, or take fewer --folds", f->number, n_pool, f->test.n);
  else
    status = cut_inner(f, pool, n_pool, err);
done:
  sn_free(pool);
  return status;
}

/* One class to train on teaches nothing; one class to validate on chooses nothing. */
static sn_status check_classes(const fold *f, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  const item_list *lists[2] = {&f->train, &f->validation};
  if (cv->task != SN_TASK_BINARY && cv->task != SN_TASK_MULTICLASS) return SN_OK;
  for (int side = 0; side < 2; side++) {
    int32_t first = -1;
    bool several = false;
    for (int64_t i = 0; i < lists[side]->n; i++) {
      const int32_t label = cv->labels[lists[side]->at[i]];
      if (first < 0) first = label;
      several = several || label != first;
    }
    if (!several)
      return sn_fail(err, SN_E_ARGUMENT,
                     "fold %" PRId64 ": the %" PRId64
                     " items that are %s have one class only: take more people, fewer --folds, "
                     "or another number of parts (--set finetune.validation_folds=N)",
                     f->number, lists[side]->n, side ? "validated on" : "trained on");
  }
  return SN_OK;
}

static sn_status make_class_weight(fold *f, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  const int64_t K = cv->n_outputs;
  int64_t *counts = NULL, present = 0;
  if ((cv->task != SN_TASK_BINARY && cv->task != SN_TASK_MULTICLASS) ||
      strcmp(sn_config_text(f->config, "finetune.class_weight"), "balanced") != 0)
    return SN_OK;
  SN_TRY(sn_alloc(&f->class_weight, K, sizeof *f->class_weight, "class weights", err));
  SN_TRY(sn_alloc(&counts, K, sizeof *counts, "class weights", err));
  for (int64_t i = 0; i < f->train.n; i++) counts[cv->labels[f->train.at[i]]]++;
  for (int64_t k = 0; k < K; k++) present += counts[k] > 0;
  for (int64_t k = 0; k < K; k++)
    f->class_weight[k] = counts[k] > 0 ? (float)((double)f->train.n / ((double)present * (double)counts[k])) : 0.0f;
  sn_free(counts);
  return SN_OK;
}

static void measure_values(fold *f) {
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < f->train.n; i++) sum += f->cv->values[f->train.at[i]];
  f->mean = sum / (double)f->train.n;
  for (int64_t i = 0; i < f->train.n; i++) squares += pow(f->cv->values[f->train.at[i]] - f->mean, 2);
  f->std = sqrt(squares / (double)f->train.n);
}

/* The table that training looks labels up in. Items, and so rows, are sorted by recording. */
static sn_status make_label_rows(fold *f, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  const int64_t K = cv->n_outputs;
  SN_TRY(sn_alloc(&f->rows, f->train.n, sizeof *f->rows, "labels", err));
  if (cv->task == SN_TASK_MULTILABEL) SN_TRY(sn_alloc(&f->hot, f->train.n * K, 1, "labels", err));
  measure_values(f);
  if (cv->task == SN_TASK_REGRESSION && !(f->std > 0))
    return sn_fail(err, SN_E_ARGUMENT, "fold %" PRId64 ": the %" PRId64 " items trained on have one value only",
                   f->number, f->train.n);
  for (int64_t i = 0; i < f->train.n; i++) {
    const int64_t item = f->train.at[i];
    f->rows[i] = (sn_supervised_label){.recording = cv->items->recording[item],
                                       .window = cv->items->per_window ? i : -1,
                                       .label = cv->labels[item],
                                       .value = (cv->values[item] - f->mean) / f->std};
    if (f->hot != NULL) memcpy(f->hot + i * K, cv->hot + item * K, (size_t)K);
  }
  f->labels = (sn_supervised_labels){.n = f->train.n, .rows = f->rows, .hot = f->hot};
  return make_class_weight(f, err);
}

/* Windows that are trained on: of the recordings' grid, moved by data.crop, or exactly those of the items. */
static sn_status make_source(fold *f, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  sn_signal_source_options options = {0};
  int64_t *lines = NULL;
  sn_window_at *at = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&lines, f->train.n, sizeof *lines, "fold", err), done);
  SN_TRY_GOTO(sn_alloc(&at, f->train.n, sizeof *at, "fold", err), done);
  SN_TRY_GOTO(sn_signal_source_options_from_config(f->config, &options, err), done);
  options.augments = (sn_augments){0}; /* those of the pretraining are not the task's */
  options.manifest = cv->data->manifest;
  options.subjects = cv->data->subjects;
  for (int64_t i = 0; i < f->train.n; i++) {
    lines[i] = cv->items->recording[f->train.at[i]];
    if (cv->items->per_window) sn_signal_source_locate(cv->items->source, f->train.at[i], &at[i], NULL);
  }
  options.rows = lines;
  options.n_rows = f->train.n;
  if (cv->items->per_window) {
    options.windows = at;
    options.n_windows = f->train.n;
    sn_signal_source_options_plain(&options);
    options.signal.condition.window_s = cv->data->labels->items[0].duration_s;
    options.signal.stride_s = 0;
    options.store_path = NULL;
  }
  SN_TRY_GOTO(sn_source_create_signal(&options, &f->source, err), done);
  status = sn_run_attach_stage(f->source, f->config, false, err);
done:
  sn_free(lines);
  sn_free(at);
  return status;
}

/* Windows of the validating and of the tested items, in the items' order. */
static sn_status list_windows(fold *f, sn_error *err) {
  const sn_probe_items *items = f->cv->items;
  uint8_t *part = NULL;
  SN_TRY(sn_alloc(&f->windows, items->n_windows, sizeof *f->windows, "windows", err));
  SN_TRY(sn_alloc(&part, items->n, 1, "windows", err));
  for (int64_t i = 0; i < f->validation.n; i++) part[f->validation.at[i]] = 1;
  for (int64_t i = 0; i < f->test.n; i++) part[f->test.at[i]] = 2;
  for (int64_t w = 0; w < items->n_windows; w++)
    if (part[items->item_of[w]] == 1) f->windows[f->n_validation++] = w;
  for (int64_t w = 0; w < items->n_windows; w++)
    if (part[items->item_of[w]] == 2) f->windows[f->n_validation + f->n_test++] = w;
  sn_free(part);
  return SN_OK;
}

static sn_status open_fold(const sn_finetune_cv *cv, int64_t number, fold *f, sn_error *err) {
  *f = (fold){.cv = cv, .number = number};
  SN_TRY(make_config(cv, &cv->data->runs[cv->data->run_of_fold[number]], 0, &f->config, err));
  SN_TRY(cut_parts(f, err));
  SN_TRY(check_classes(f, err));
  SN_TRY(make_label_rows(f, err));
  SN_TRY(make_source(f, err));
  return list_windows(f, err);
}

/* ---- predictions ---------------------------------------------------------------- */

/* Outputs of one window to probabilities, or to the value in its unit. */
static void to_scores(const fold *f, const double *outputs, double *scores) {
  const int64_t K = f->cv->n_outputs;
  if (f->cv->task == SN_TASK_REGRESSION) {
    scores[0] = f->mean + f->std * outputs[0];
  } else if (f->cv->task == SN_TASK_MULTILABEL) {
    for (int64_t k = 0; k < K; k++) scores[k] = 1 / (1 + exp(-outputs[k]));
  } else {
    double most = outputs[0], sum = 0;
    for (int64_t k = 1; k < K; k++) most = fmax(most, outputs[k]);
    for (int64_t k = 0; k < K; k++) sum += scores[k] = exp(outputs[k] - most);
    for (int64_t k = 0; k < K; k++) scores[k] /= sum;
  }
}

/* Adds windows (n) to the scores of their items; counts (items): windows that were there. */
static sn_status average(const fold *f, const int64_t *windows, int64_t n, const double *outputs,
                         const uint8_t *present, const item_list *list, double *scores, int64_t *counts,
                         sn_error *err) {
  const int64_t K = f->cv->n_outputs;
  double *one = NULL;
  SN_TRY(sn_alloc(&one, K, sizeof *one, "scores", err));
  for (int64_t i = 0; i < list->n; i++) {
    counts[list->at[i]] = 0;
    memset(scores + list->at[i] * K, 0, (size_t)K * sizeof *scores);
  }
  for (int64_t w = 0; w < n; w++) {
    if (!present[w]) continue;
    const int64_t item = f->cv->items->item_of[windows[w]];
    to_scores(f, outputs + w * K, one);
    counts[item]++;
    for (int64_t k = 0; k < K; k++) scores[item * K + k] += one[k];
  }
  for (int64_t i = 0; i < list->n; i++)
    for (int64_t k = 0; k < K; k++)
      if (counts[list->at[i]] > 0) scores[list->at[i] * K + k] /= (double)counts[list->at[i]];
  sn_free(one);
  return SN_OK;
}

/* Mean negative log-likelihood of the validating items, each weighted by its class where training does; squared error
 * of values. What decides between steps whose metric is the same. */
static double validation_loss(const fold *f, const double *scores, const int64_t *counts) {
  const sn_finetune_cv *cv = f->cv;
  const int64_t K = cv->n_outputs;
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < f->validation.n; i++) {
    const int64_t item = f->validation.at[i];
    const double *p = scores + item * K;
    if (counts[item] == 0) continue;
    if (cv->task == SN_TASK_REGRESSION) {
      sum += (p[0] - cv->values[item]) * (p[0] - cv->values[item]);
      weight += 1;
    } else if (cv->task == SN_TASK_MULTILABEL) {
      for (int64_t k = 0; k < K; k++) sum -= log(fmax(cv->hot[item * K + k] ? p[k] : 1 - p[k], 1e-12)) / (double)K;
      weight += 1;
    } else {
      const double w = f->class_weight != NULL ? (double)f->class_weight[cv->labels[item]] : 1.0;
      sum -= w * log(fmax(p[cv->labels[item]], 1e-12));
      weight += w;
    }
  }
  return weight > 0 ? sum / weight : NAN;
}

typedef struct validation {
  const fold *fold;
  double *scores;   /* (items, K) */
  int64_t *counts;  /* (items) */
  char name[48];
} validation;

static sn_status score_validation(void *user, const double *outputs, const uint8_t *present, sn_train_scores *out,
                                  sn_error *err) {
  validation *v = user;
  const fold *f = v->fold;
  double value;
  SN_TRY(average(f, f->windows, f->n_validation, outputs, present, &f->validation, v->scores, v->counts, err));
  SN_TRY(
      sn_finetune_score(f->cv, f->validation.at, f->validation.n, v->counts, v->scores, f->cv->chosen_by, &value, err));
  snprintf(v->name, sizeof v->name, "val_%s", sn_metric_name(f->cv->chosen_by));
  out->score = sn_metric_larger_is_better(f->cv->chosen_by) ? value : -value;
  out->n = 2;
  out->names[0] = v->name;
  out->values[0] = value;
  out->names[1] = "val_loss";
  out->values[1] = validation_loss(f, v->scores, v->counts);
  out->tie = -out->values[1];
  return SN_OK;
}

/* ---- one training ---------------------------------------------------------------- */

typedef struct labelled_progress {
  const sn_finetune_task_options *options;
  char label[64];
} labelled_progress;

static void pass_progress(void *user, const sn_progress *progress) {
  const labelled_progress *p = user;
  p->options->progress(p->options->progress_user, p->label, progress);
}

/* A folder that holds a run is gone on with only when asked, and only with the same settings. */
static sn_status prepare_folder(const sn_finetune_cv *cv, const char *run, const sn_config *config, bool *resume,
                                sn_run_folder **held, sn_error *err) {
  char *path = NULL;
  sn_string now = {0}, then = {0};
  sn_json_writer writer;
  sn_config *old = NULL;
  sn_status status;
  SN_TRY(sn_path_join(run, "config.yaml", &path, err));
  *resume = sn_path_exists(path);
  sn_free(path);
  if (*resume && !cv->options->resume)
    return sn_fail(err, SN_E_ARGUMENT, "%s already holds a run: choose another --out, or go on with it by --resume",
                   run);
  SN_TRY(sn_run_folder_take(run, *resume, held, err));
  if (!*resume) return sn_run_save_config(run, config, err);
  SN_TRY_GOTO(sn_finetune_config_from_run(run, &old, err), done);
  sn_json_writer_init(&writer, &now, 1);
  sn_config_write_json(config, &writer);
  SN_TRY_GOTO(sn_json_writer_finish(&writer, err), done);
  sn_json_writer_init(&writer, &then, 1);
  sn_config_write_json(old, &writer);
  SN_TRY_GOTO(sn_json_writer_finish(&writer, err), done);
  if (strcmp(now.data, then.data) != 0)
    status = sn_fail(err, SN_E_STATE,
                     "%s began with other settings than are given now (its config.yaml): give the same, or "
                     "choose another --out",
                     run);
done:
  sn_string_free(&now);
  sn_string_free(&then);
  sn_config_destroy(old);
  return status;
}

static sn_status test(const fold *f, const sn_finetune_options *o, int64_t step, sn_finetune_row *row, sn_error *err) {
  const int64_t n = f->n_test, K = f->cv->n_outputs;
  double *outputs = NULL;
  uint8_t *present = NULL;
  sn_feature_report report;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&outputs, n * K, sizeof *outputs, "outputs", err), done);
  SN_TRY_GOTO(sn_alloc(&present, n, 1, "outputs", err), done);
  SN_TRY_GOTO(sn_finetune_predict(o, step, f->windows + f->n_validation, n, outputs, present, &report, err), done);
  SN_TRY_GOTO(average(f, f->windows + f->n_validation, n, outputs, present, &f->test, row->scores, row->counts, err),
              done);
  row->best_step[f->number] = step;
done:
  sn_free(outputs);
  sn_free(present);
  return status;
}

static sn_finetune_options fill_options(const fold *f, const sn_finetune_row *row, const char *pretrained,
                                        const char *run, bool resume, validation *v) {
  const sn_finetune_cv *cv = f->cv;
  const sn_finetune_task_options *o = cv->options;
  return (sn_finetune_options){.config = f->config,
                               .pretrained = row->from_run ? pretrained : NULL,
                               .pretrained_step = o->probe.step,
                               .run = run,
                               .resume = resume,
                               .train = f->source,
                               .fixed = cv->items->source,
                               .validation = f->windows,
                               .n_validation = f->n_validation,
                               .score = score_validation,
                               .score_user = v,
                               .log = o->probe.log,
                               .stop = o->stop,
                               .head = {.kind = cv->task == SN_TASK_REGRESSION   ? SN_SUPERVISED_VALUE
                                                : cv->task == SN_TASK_MULTILABEL ? SN_SUPERVISED_MULTI
                                                                                 : SN_SUPERVISED_CLASS,
                                        .n_outputs = cv->n_outputs,
                                        .labels = &f->labels,
                                        .class_weight = f->class_weight}};
}

static sn_status train_and_test(sn_finetune_cv *cv, fold *f, sn_finetune_row *row, sn_error *err) {
  const sn_finetune_task_options *o = cv->options;
  const sn_probe_run_info *from = &cv->data->runs[cv->data->run_of_fold[f->number]];
  validation v = {.fold = f};
  labelled_progress progress = {.options = o};
  char *run = NULL, name[96];
  sn_finetune_result result;
  sn_run_folder *held = NULL;
  bool resume;
  sn_status status;
  sn_config_destroy(f->config);
  f->config = NULL;
  SN_TRY(make_config(cv, from, (uint64_t)row->seed, &f->config, err));
  snprintf(name, sizeof name, "fold-%" PRId64 "/%s-seed-%" PRId64, f->number, row->encoder, row->seed);
  snprintf(progress.label, sizeof progress.label, "fold %" PRId64 "/%" PRId64 " %s seed %" PRId64, f->number + 1,
           cv->data->n_folds, row->encoder, row->seed);
  SN_TRY_GOTO(sn_path_join(o->out, name, &run, err), done);
  SN_TRY_GOTO(prepare_folder(cv, run, f->config, &resume, &held, err), done);
  SN_TRY_GOTO(sn_alloc(&v.scores, cv->items->n * cv->n_outputs, sizeof *v.scores, "scores", err), done);
  SN_TRY_GOTO(sn_alloc(&v.counts, cv->items->n, sizeof *v.counts, "scores", err), done);
  sn_finetune_options options = fill_options(f, row, from->path, run, resume, &v);
  options.progress = o->progress != NULL ? pass_progress : NULL;
  options.progress_user = &progress;
  SN_TRY_GOTO(sn_finetune(&options, &result, err), done);
  if (row->from_run && cv->checkpoint_step == 0) cv->checkpoint_step = result.weights.step;
  if (result.train.stopped) {
    status = sn_fail(err, SN_END, "stopped in %s, saved", run);
    goto done;
  }
  row->best_score[f->number] = result.train.state.best_score * (sn_metric_larger_is_better(cv->chosen_by) ? 1 : -1);
  status = test(f, &options, result.train.state.best_step, row, err);
done:
  sn_run_folder_release(held);
  sn_free(v.scores);
  sn_free(v.counts);
  sn_free(run);
  return status;
}

/* The commonest class of what could be trained on: training and validating items. */
static sn_status majority(const fold *f, sn_finetune_row *row, sn_error *err) {
  const sn_finetune_cv *cv = f->cv;
  const sn_probe_truth truth = {.task = cv->task, .n = cv->items->n, .n_classes = cv->n_outputs, .labels = cv->labels,
                                .hot = cv->hot, .values = cv->values, .groups = cv->groups};
  const int64_t n = f->train.n + f->validation.n, K = cv->n_outputs;
  int64_t *all = NULL;
  double *scores = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&all, n, sizeof *all, "majority", err), done);
  SN_TRY_GOTO(sn_alloc(&scores, f->test.n * K, sizeof *scores, "majority", err), done);
  memcpy(all, f->train.at, (size_t)f->train.n * sizeof *all);
  memcpy(all + f->train.n, f->validation.at, (size_t)f->validation.n * sizeof *all);
  SN_TRY_GOTO(sn_protocol_majority(&truth, all, n, f->test.n, scores, err), done);
  for (int64_t i = 0; i < f->test.n; i++) {
    memcpy(row->scores + f->test.at[i] * K, scores + i * K, (size_t)K * sizeof *scores);
    row->counts[f->test.at[i]] = 1;
  }
done:
  sn_free(all);
  sn_free(scores);
  return status;
}

static sn_status run_fold(sn_finetune_cv *cv, int64_t number, sn_error *err) {
  fold f;
  sn_status status;
  SN_TRY_GOTO(open_fold(cv, number, &f, err), done);
  for (int64_t i = 0; i < f.test.n; i++) cv->tested[f.test.at[i]] = 1;
  cv->n_validated += f.validation.n;
  for (int64_t r = 0; r < cv->n_rows; r++) {
    sn_finetune_row *row = &cv->rows[r];
    SN_TRY_GOTO(row->seed < 0 ? majority(&f, row, err) : train_and_test(cv, &f, row, err), done);
  }
done:
  free_fold(&f);
  return status;
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static sn_status choose_metric(sn_finetune_cv *cv, const sn_config *config, sn_error *err) {
  static const sn_metric DEFAULTS[] = {[SN_TASK_BINARY] = SN_METRIC_AUROC,
                                       [SN_TASK_MULTICLASS] = SN_METRIC_BALANCED_ACCURACY,
                                       [SN_TASK_MULTILABEL] = SN_METRIC_AUROC_MACRO,
                                       [SN_TASK_REGRESSION] = SN_METRIC_R2};
  const char *chosen_by = sn_config_text(config, "finetune.metric");
  cv->metric = DEFAULTS[cv->task];
  if (cv->options->probe.metric != NULL) SN_TRY(sn_metric_parse(cv->options->probe.metric, cv->task, &cv->metric, err));
  cv->chosen_by = cv->metric;
  return chosen_by[0] != '\0' ? sn_metric_parse(chosen_by, cv->task, &cv->chosen_by, err) : SN_OK;
}

sn_status sn_finetune_check_output(const char *path, sn_error *err) {
  sn_json *json = NULL;
  sn_error unread;
  SN_TRY(sn_check_output(path, "{", "the table of a fine-tuning", err));
  if (!sn_path_exists(path)) return SN_OK;
  bool own = false;
  if (sn_json_load(path, &json, &unread) == SN_OK && sn_json_get(json, "engine_version") != NULL) {
    const sn_json *rows = sn_json_get(json, "rows");
    for (int64_t i = 0; rows != NULL && i < sn_json_length(rows) && !own; i++) {
      const char *probe = sn_json_as_string(sn_json_get(sn_json_at(rows, i), "probe"));
      own = probe != NULL && strcmp(probe, "finetune") == 0;
    }
  }
  sn_json_destroy(json);
  return own ? SN_OK
             : sn_fail(err, SN_E_ARGUMENT, "%s: is there and is not the table of a fine-tuning: it is not overwritten; choose another "
                       "--out, or remove it", path);
}

/* Something to go on with: a folder fold-N at least. */
static sn_status check_begun(const char *out, sn_error *err) {
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  bool begun = false;
  if (sn_path_is_directory(out)) SN_TRY(sn_dir_list(out, &entries, &n, err));
  for (int64_t i = 0; i < n; i++) begun = begun || (entries[i].is_directory && strncmp(entries[i].name, "fold-", 5) == 0);
  sn_dir_free(entries, n);
  if (begun) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "resume", "--resume: there is no fine-tuning in %s to go on with; leave out "
                    "--resume to begin one, or name its folder with --out", out);
}

sn_status sn_finetune_task_run(const sn_finetune_task_options *options, sn_probe_result **out, sn_error *err) {
  sn_finetune_cv cv = {.options = options};
  sn_config *first = NULL;
  const double began = now_s();
  sn_status status;
  if (options->probe.n_seeds < 1) return sn_fail(err, SN_E_ARGUMENT, "at least one seed");
  if (options->resume) SN_TRY(check_begun(options->out, err));
  SN_TRY_GOTO(sn_probe_data_open(&options->probe, &cv.data, err), done);
  SN_TRY_GOTO(make_config(&cv, &cv.data->runs[0], 0, &first, err), done);
  SN_TRY_GOTO(sn_probe_items_create(cv.data, first, &options->probe.log, &cv.items, err), done);
  SN_TRY_GOTO(make_truth(&cv, err), done);
  SN_TRY_GOTO(choose_metric(&cv, first, err), done);
  SN_TRY_GOTO(sn_finetune_rows_create(&cv, err), done);
  for (int64_t f = 0; f < cv.data->n_folds; f++) SN_TRY_GOTO(run_fold(&cv, f, err), done);
  SN_TRY_GOTO(sn_finetune_table(&cv, first, out, err), done);
  (*out)->seconds = now_s() - began;
done:
  sn_finetune_cv_free(&cv);
  sn_config_destroy(first);
  return status;
}
