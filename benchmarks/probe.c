/* needs: full */
#include "benchmarks/probe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "benchmarks/probe_private.h"
#include "core/alloc.h"
#include "datasets/token_stage.h"
#include "engine/run.h"

sn_probe_options sn_probe_defaults(void) {
  return (sn_probe_options){.folds = 5, .pools = {SN_POOL_MEAN}, .n_pools = 1, .n_seeds = 3, .n_draws = 1000, .step = -1,
                            .k = SN_KNN_K, .rows = SN_ROWS_ALL};
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- truth and parts ----------------------------------------------------------------------------------------------------- */

static sn_status make_truth(sn_probe_context *p, sn_error *err) {
  const sn_labels *l = p->data->labels;
  const int64_t n = p->items->n, K = l->n_classes;
  sn_probe_truth *t = &p->truth;
  t->n = n;
  t->task = l->task == SN_LABEL_VALUE ? SN_TASK_REGRESSION : l->task == SN_LABEL_MULTI ? SN_TASK_MULTILABEL
            : K == 2 ? SN_TASK_BINARY : SN_TASK_MULTICLASS;
  t->n_classes = t->task == SN_TASK_REGRESSION ? 1 : K;
  p->K = t->n_classes;
  SN_TRY(sn_alloc(&p->groups, n, sizeof *p->groups, "probe", err));
  SN_TRY(sn_alloc(&p->labels, n, sizeof *p->labels, "probe", err));
  SN_TRY(sn_alloc(&p->values, n, sizeof *p->values, "probe", err));
  SN_TRY(sn_alloc(&p->hot, n * p->K, 1, "probe", err));
  for (int64_t i = 0; i < n; i++) {
    const int64_t from = p->items->label_item[i];
    const sn_label_item *item = &l->items[from];
    p->groups[i] = sn_probe_data_group(p->data, item->recording);
    if (t->task == SN_TASK_REGRESSION) p->values[i] = item->value;
    else if (t->task == SN_TASK_MULTILABEL)
      for (int64_t k = 0; k < K; k++) p->hot[i * K + p->data->class_order[k]] = l->hot[from * K + k];
    else p->labels[i] = p->data->class_order[item->label];
  }
  t->groups = p->groups;
  if (t->task == SN_TASK_REGRESSION) t->values = p->values;
  else if (t->task == SN_TASK_MULTILABEL) t->hot = p->hot;
  else t->labels = p->labels;
  return SN_OK;
}

static sn_status choose_metric(sn_probe_context *p, sn_error *err) {
  static const char *const USUAL[] = {"auroc", "balanced_accuracy", "auroc_macro", "r2"};
  const char *name = p->options->metric != NULL ? p->options->metric : USUAL[p->truth.task];
  if (p->options->unweighted && p->truth.task == SN_TASK_REGRESSION)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "unweighted", "--unweighted: target %s is a number, and numbers have no class "
                      "weights; leave it out", p->options->target);
  if (p->options->unweighted && p->options->classifier == SN_CLASSIFIER_KNN)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "unweighted", "--unweighted: kNN has no class weights; leave it out");
  return sn_metric_parse(name, p->truth.task, &p->protocol.metric, err);
}

/* A fold with nothing to train or test on: without labels, or with labels and no window that can be used. */
static sn_status refuse_fold(const sn_probe_context *p, int64_t f, sn_error *err) {
  int64_t lost = 0;
  for (int64_t i = 0; i < p->items->n; i++) {
    const uint8_t part = p->data->parts[f * p->data->manifest->n + p->items->recording[i]];
    lost += !p->items->usable[i] && (part == SN_PART_TRAIN || part == SN_PART_TEST);
  }
  char why[256] = "look at --target, --classes and the split";
  if (lost > 0)
    snprintf(why, sizeof why, "%" PRId64 " more of its labelled items have no usable window (%.130s)", lost, p->items->why_unusable);
  return sn_fail(err, SN_E_ARGUMENT, "fold %" PRId64 " (%.60s): %" PRId64 " labelled items to train on, %" PRId64 " to test on: %s",
                 f, p->data->runs[p->data->run_of_fold[f]].path, p->n_train[f], p->n_test[f], why);
}

/* Items of each fold's parts, once it is known which items are usable. */
static sn_status make_parts(sn_probe_context *p, sn_error *err) {
  const int64_t n = p->items->n, F = p->data->n_folds;
  sn_probe_result *r = p->result;
  SN_TRY(sn_alloc(&p->train, F, sizeof *p->train, "probe", err));
  SN_TRY(sn_alloc(&p->test, F, sizeof *p->test, "probe", err));
  SN_TRY(sn_alloc(&p->n_train, F, sizeof *p->n_train, "probe", err));
  SN_TRY(sn_alloc(&p->n_test, F, sizeof *p->n_test, "probe", err));
  SN_TRY(sn_alloc(&p->place, n, sizeof *p->place, "probe", err));
  SN_TRY(sn_alloc(&p->tested, n, sizeof *p->tested, "probe", err));
  SN_TRY(sn_alloc(&p->fold_of, n, sizeof *p->fold_of, "probe", err));
  for (int64_t i = 0; i < n; i++) p->place[i] = -1;
  for (int64_t f = 0; f < F; f++) {
    SN_TRY(sn_alloc(&p->train[f], n, sizeof **p->train, "probe", err));
    SN_TRY(sn_alloc(&p->test[f], n, sizeof **p->test, "probe", err));
    for (int64_t i = 0; i < n; i++) {
      const uint8_t part = p->data->parts[f * p->data->manifest->n + p->items->recording[i]];
      if (!p->items->usable[i]) continue;
      if (part == SN_PART_TRAIN) p->train[f][p->n_train[f]++] = i;
      if (part != SN_PART_TEST) continue;
      p->test[f][p->n_test[f]++] = i;
      p->place[i] = f; /* for now: its fold */
    }
    if (p->n_train[f] == 0 || p->n_test[f] == 0) return refuse_fold(p, f, err);
  }
  for (int64_t i = 0; i < n; i++) {
    if (p->place[i] < 0) continue;
    p->fold_of[r->n_items] = p->place[i];
    p->tested[r->n_items] = i;
    p->place[i] = r->n_items++;
  }
  return SN_OK;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------ */

sn_status sn_probe_add_row(sn_probe_context *p, const char *encoder, const char *pool, int64_t seed, int64_t *index,
                           sn_error *err) {
  sn_probe_result *r = p->result;
  int64_t capacity = r->n_rows;
  SN_TRY(sn_grow(&r->rows, &capacity, r->n_rows + 1, sizeof *r->rows, "probe", err));
  *index = r->n_rows++;
  sn_probe_row *row = &r->rows[*index];
  memset(row, 0, sizeof *row);
  snprintf(row->encoder, sizeof row->encoder, "%s", encoder);
  snprintf(row->pool, sizeof row->pool, "%s", pool);
  row->seed = seed;
  SN_TRY(sn_alloc(&row->folds, p->data->n_folds, sizeof *row->folds, "probe", err));
  SN_TRY(sn_alloc(&row->fold_values, p->data->n_folds * SN_N_METRICS, sizeof *row->fold_values, "probe", err));
  for (int64_t i = 0; i < SN_KNN_KS; i++) row->by_k[i] = NAN;
  return sn_alloc(&row->scores, r->n_items * p->K, sizeof *row->scores, "probe", err);
}

/* The rows of scores (n_test, K) of a fold, to where they belong among all items. */
static void place_scores(const sn_probe_context *p, int64_t f, const double *scores, double *all) {
  for (int64_t i = 0; i < p->n_test[f]; i++)
    memcpy(all + p->place[p->test[f][i]] * p->K, scores + i * p->K, (size_t)p->K * sizeof *scores);
}

/* One fold of one row. has_units: raw features. */
static sn_status run_fold(sn_probe_context *p, int64_t row, int64_t f, const double *x, int64_t width, bool has_units,
                          sn_error *err) {
  sn_probe_row *r = &p->result->rows[row];
  const bool knn = r->classifier == SN_CLASSIFIER_KNN;
  const int64_t size = p->n_test[f] * p->K, all = p->result->n_items * p->K;
  double *scores = NULL, *by_k = NULL;
  if (knn && r->k_scores == NULL) SN_TRY(sn_alloc(&r->k_scores, SN_KNN_KS * all, sizeof *r->k_scores, "probe", err));
  SN_TRY(sn_alloc(&scores, (knn ? 1 + SN_KNN_KS : 1) * size, sizeof *scores, "probe", err));
  if (knn) by_k = scores + size;
  p->protocol.standardize = has_units;
  p->protocol.classifier = r->classifier;
  sn_status status = sn_protocol_fold(&p->truth, x, width, p->train[f], p->n_train[f], p->test[f], p->n_test[f], &p->protocol,
                                      scores, by_k, &r->folds[f], err);
  if (status == SN_OK) {
    place_scores(p, f, scores, r->scores);
    for (int64_t i = 0; i < SN_KNN_KS && knn; i++) place_scores(p, f, by_k + i * size, r->k_scores + i * all);
    p->result->n_fits += r->folds[f].n_fits;
    p->result->n_unconverged += r->folds[f].n_unconverged;
    p->result->n_inner_folds = r->folds[f].n_inner_folds;
  } else {
    sn_error_prefix(err, status, "fold %" PRId64, f);
  }
  sn_free(scores);
  return status;
}

static sn_status encode(sn_probe_context *p, const sn_model *model, sn_pool_kind pool, double **x, int64_t *width, sn_error *err) {
  if (model == p->models[0] && pool == SN_POOL_MEAN && p->first_x != NULL) {
    *x = p->first_x;
    *width = p->first_width;
    p->first_x = NULL;
    return SN_OK;
  }
  return sn_probe_encode(p->items, p->device, model, pool, sn_pool_threads(p->pool), &p->options->log, x, width, err);
}

/* The learners that features are given to. */
static int n_classifiers(const sn_probe_context *p) { return p->options->also_knn ? 2 : 1; }
static sn_classifier classifier_at(const sn_probe_context *p, int i) {
  return p->options->also_knn ? (sn_classifier)i : p->options->classifier;
}

/* Rows first[c], first[c] + 1, ... (one per pool) of each classifier, in the folds that belong to run `run` (-1: all). */
static sn_status run_model(sn_probe_context *p, const sn_model *model, int64_t run, const int64_t *first, sn_error *err) {
  for (int64_t k = 0; k < p->options->n_pools; k++) {
    double *x = NULL;
    int64_t width = 0;
    sn_status status = encode(p, model, p->options->pools[k], &x, &width, err);
    for (int64_t f = 0; f < p->data->n_folds; f++)
      for (int c = 0; c < n_classifiers(p) && status == SN_OK && (run < 0 || p->data->run_of_fold[f] == run); c++)
        status = run_fold(p, first[c] + k, f, x, width, false, err);
    sn_free(x);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static void copy_item(const sn_probe_context *p, const sn_probe_row *from, int64_t i, sn_probe_row *to) {
  const size_t bytes = (size_t)p->K * sizeof(double);
  memcpy(to->scores + i * p->K, from->scores + i * p->K, bytes);
  for (int64_t k = 0; k < SN_KNN_KS && to->k_scores != NULL; k++) {
    const int64_t at = (k * p->result->n_items + i) * p->K;
    memcpy(to->k_scores + at, from->k_scores + at, bytes);
  }
}

/* The row "chosen": in each fold the pool with the best score on the inner folds (the first of equals). */
static sn_status choose_pool(sn_probe_context *p, int64_t first, int64_t chosen, sn_error *err) {
  sn_probe_row *rows = p->result->rows, *row = &rows[chosen];
  const bool larger = sn_metric_larger_is_better(p->protocol.metric);
  SN_TRY(sn_alloc(&row->chosen, p->data->n_folds, sizeof *row->chosen, "probe", err));
  if (rows[first].k_scores != NULL)
    SN_TRY(sn_alloc(&row->k_scores, SN_KNN_KS * p->result->n_items * p->K, sizeof *row->k_scores, "probe", err));
  for (int64_t f = 0; f < p->data->n_folds; f++) {
    int64_t best = 0;
    for (int64_t k = 1; k < p->options->n_pools; k++) {
      const double a = rows[first + k].folds[f].inner_score, b = rows[first + best].folds[f].inner_score;
      if (larger ? a > b : a < b) best = k;
    }
    row->folds[f] = rows[first + best].folds[f];
    row->chosen[f] = p->options->pools[best];
    for (int64_t i = 0; i < p->result->n_items; i++)
      if (p->fold_of[i] == f) copy_item(p, &rows[first + best], i, row);
  }
  return SN_OK;
}

enum { MOST_CLASSIFIERS = 2 };

typedef struct encoder_rows {
  int64_t first[MOST_CLASSIFIERS];  /* the pools' rows follow each other */
  int64_t chosen[MOST_CLASSIFIERS]; /* -1: there is one pool */
} encoder_rows;

static sn_status add_encoder_rows(sn_probe_context *p, const char *encoder, int64_t seed, encoder_rows *rows, sn_error *err) {
  const int64_t n = p->options->n_pools + (p->options->n_pools > 1);
  for (int c = 0; c < n_classifiers(p); c++) {
    rows->chosen[c] = -1;
    for (int64_t k = 0; k < n; k++) {
      int64_t row;
      const bool chosen = k == p->options->n_pools;
      SN_TRY(sn_probe_add_row(p, encoder, chosen ? "chosen" : sn_pool_name(p->options->pools[k]), seed, &row, err));
      p->result->rows[row].classifier = classifier_at(p, c);
      if (k == 0) rows->first[c] = row;
      if (chosen) rows->chosen[c] = row;
    }
  }
  return SN_OK;
}

static sn_status choose_pools(sn_probe_context *p, const encoder_rows *rows, sn_error *err) {
  for (int c = 0; c < n_classifiers(p); c++)
    if (rows->chosen[c] >= 0) SN_TRY(choose_pool(p, rows->first[c], rows->chosen[c], err));
  return SN_OK;
}

static sn_status pretrained_rows(sn_probe_context *p, sn_error *err) {
  encoder_rows rows;
  SN_TRY(add_encoder_rows(p, "pretrained", -1, &rows, err));
  for (int64_t r = 0; r < p->n_models; r++) SN_TRY(run_model(p, p->models[r], r, rows.first, err));
  return choose_pools(p, &rows, err);
}

static sn_status random_rows(sn_probe_context *p, sn_error *err) {
  for (int64_t s = 1; s <= p->options->n_seeds; s++) {
    encoder_rows rows;
    sn_model *model = NULL;
    SN_TRY(add_encoder_rows(p, "random", s, &rows, err));
    SN_TRY(sn_model_create(p->data->runs[0].config, &p->models[0]->shape, SN_F32, (uint64_t)s, false, &model, err));
    sn_status status = sn_probe_same_encoder(p->models[0], model, "a random initialisation", err);
    if (status == SN_OK) status = sn_params_copy_fixed(model->params, p->models[0]->params, err);
    if (status == SN_OK) status = run_model(p, model, -1, rows.first, err);
    sn_model_destroy(model);
    if (status == SN_OK) status = choose_pools(p, &rows, err);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static sn_status raw_row(sn_probe_context *p, sn_error *err) {
  double *x = NULL;
  int64_t width = 0, row = 0;
  SN_TRY(sn_probe_raw(p->items, p->data, p->data->runs[0].config, &p->options->log, &x, &width, err));
  sn_status status = SN_OK;
  for (int c = 0; c < n_classifiers(p) && status == SN_OK; c++) {
    status = sn_probe_add_row(p, "raw", "", -1, &row, err);
    if (status == SN_OK) p->result->rows[row].classifier = classifier_at(p, c);
    for (int64_t f = 0; f < p->data->n_folds && status == SN_OK; f++) {
      status = run_fold(p, row, f, x, width, true, err);
      if (c == 0) p->result->n_filled += p->result->rows[row].folds[f].n_filled;
    }
  }
  sn_free(x);
  return status;
}

static sn_status majority_row(sn_probe_context *p, sn_error *err) {
  int64_t row = 0;
  double *scores = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_probe_add_row(p, "majority", "", -1, &row, err), done);
  SN_TRY_GOTO(sn_alloc(&scores, p->items->n * p->K, sizeof *scores, "probe", err), done);
  for (int64_t f = 0; f < p->data->n_folds; f++) {
    SN_TRY_GOTO(sn_protocol_majority(&p->truth, p->train[f], p->n_train[f], p->n_test[f], scores, err), done);
    place_scores(p, f, scores, p->result->rows[row].scores);
  }
done:
  sn_free(scores);
  return status;
}

/* ---- models --------------------------------------------------------------------------------------------------------------- */

/* Joined runs must condition the data alike: one source serves all. */
static sn_status same_conditioning(const sn_probe_data *d, int64_t run, sn_error *err) {
  sn_signal_source_options a = {0}, b = {0};
  sn_string x = {0}, y = {0};
  const char *key = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_signal_source_options_from_config(d->runs[0].config, &a, err), done);
  SN_TRY_GOTO(sn_signal_source_options_from_config(d->runs[run].config, &b, err), done);
  SN_TRY_GOTO(sn_conditioned_describe(&a.signal, &x, err), done);
  SN_TRY_GOTO(sn_conditioned_describe(&b.signal, &y, err), done);
  if (strcmp(x.data, y.data) != 0)
    status = sn_fail(err, SN_E_STATE, "%s conditions its data differently from %s: they cannot be joined", d->runs[run].path,
                     d->runs[0].path);
  else if (!sn_token_stage_same(d->runs[0].config, d->runs[run].config, &key))
    status = sn_fail(err, SN_E_STATE, "%s has another %s than %s: they cannot be joined", d->runs[run].path, key,
                     d->runs[0].path);
done:
  sn_string_free(&x);
  sn_string_free(&y);
  return status;
}

/* "2500, 2500, 2000", kept when they are not all alike. */
static void note_step(sn_probe_result *r, int64_t run, int64_t step) {
  char *text = r->steps;
  const size_t used = strlen(text);
  if (used + 24 < sizeof r->steps) snprintf(text + used, sizeof r->steps - used, "%s%" PRId64, run > 0 ? ", " : "", step);
  r->steps_differ = r->steps_differ || step != r->checkpoint_step;
}

static sn_status load_models(sn_probe_context *p, sn_error *err) {
  const sn_probe_options *o = p->options;
  SN_TRY(sn_alloc(&p->models, p->data->n_runs, sizeof *p->models, "models", err));
  for (int64_t r = 0; r < p->data->n_runs; r++) {
    sn_train_state state;
    const sn_probe_run_info *run = &p->data->runs[r];
    SN_TRY(sn_model_load(run->path, run->config, o->step, o->use_ema, &o->log, &p->models[r], &state, err));
    p->n_models++;
    if (r == 0) p->result->checkpoint_step = state.step;
    else if (state.step != p->result->checkpoint_step)
      sn_log_write(&o->log, SN_LOG_WARNING, "%s is at step %" PRId64 ", %s at %" PRId64, run->path, state.step, o->runs[0],
                   p->result->checkpoint_step);
    note_step(p->result, r, state.step);
    if (r == 0) continue;
    SN_TRY(same_conditioning(p->data, r, err));
    SN_TRY(sn_probe_same_encoder(p->models[0], p->models[r], run->path, err));
  }
  return SN_OK;
}

static sn_status hash_models(const sn_probe_context *p, char (*hashes)[65], sn_error *err) {
  for (int64_t r = 0; r < p->n_models; r++) SN_TRY(sn_probe_model_hash(p->models[r], hashes[r], err));
  return SN_OK;
}

/* The first encoding decides which items are usable. Its features are those of a row, where that pool is asked for. */
static sn_status find_usable(sn_probe_context *p, sn_error *err) {
  SN_TRY(sn_probe_encode(p->items, p->device, p->models[0], SN_POOL_MEAN, sn_pool_threads(p->pool), &p->options->log,
                         &p->first_x, &p->first_width, err));
  return make_parts(p, err);
}

static sn_status run_all(sn_probe_context *p, sn_error *err) {
  char(*before)[65] = NULL, (*after)[65] = NULL;
  sn_status status;
  SN_TRY_GOTO(load_models(p, err), done);
  SN_TRY_GOTO(sn_alloc(&before, p->n_models, sizeof *before, "hashes", err), done);
  SN_TRY_GOTO(sn_alloc(&after, p->n_models, sizeof *after, "hashes", err), done);
  SN_TRY_GOTO(hash_models(p, before, err), done);
  SN_TRY_GOTO(sn_probe_items_create(p->data, p->data->runs[0].config, &p->options->log, &p->items, err), done);
  SN_TRY_GOTO(make_truth(p, err), done);
  SN_TRY_GOTO(choose_metric(p, err), done);
  if (p->options->ready != NULL) SN_TRY_GOTO(p->options->ready(p->options->ready_user, p->data->labels_sha256, err), done);
  SN_TRY_GOTO(find_usable(p, err), done);
  const int rows = p->options->rows;
  if (rows & SN_ROWS_PRETRAINED) SN_TRY_GOTO(pretrained_rows(p, err), done);
  if (rows & SN_ROWS_RANDOM) SN_TRY_GOTO(random_rows(p, err), done);
  if (rows & SN_ROWS_RAW) SN_TRY_GOTO(raw_row(p, err), done);
  if (rows & SN_ROWS_MAJORITY) SN_TRY_GOTO(majority_row(p, err), done);
  SN_TRY_GOTO(hash_models(p, after, err), done);
  for (int64_t r = 0; r < p->n_models; r++) {
    if (strcmp(before[r], after[r]) == 0) continue;
    status = sn_fail(err, SN_E_STATE, "the frozen encoder of %s changed while it was probed: %s, then %s", p->data->runs[r].path,
                     before[r], after[r]);
    goto done;
  }
  snprintf(p->result->encoder_sha256, sizeof p->result->encoder_sha256, "%s", before[0]);
  status = sn_probe_finish(p, err);
done:
  sn_free(before);
  sn_free(after);
  return status;
}

static sn_status check_options(const sn_probe_options *o, sn_error *err) {
  if (o->n_runs < 1) return sn_fail(err, SN_E_ARGUMENT, "probe: no run is named");
  if (o->target == NULL || o->target[0] == '\0')
    return sn_fail(err, SN_E_ARGUMENT, "probe: no --target: a column of the labels file, annotation:aami, or header:FIELD");
  if (o->n_pools < 1 || o->n_pools > SN_PROBE_POOLS) return sn_fail(err, SN_E_ARGUMENT, "probe: %" PRId64 " pools", o->n_pools);
  if ((o->rows & SN_ROWS_ALL) == 0) return sn_fail(err, SN_E_ARGUMENT, "probe: no rows are asked for");
  if (o->also_knn && (!o->only_scores || o->classifier != SN_CLASSIFIER_LINEAR))
    return sn_fail(err, SN_E_ARGUMENT, "probe: both classifiers at once give scores alone");
  if (o->n_seeds < 1) return sn_fail(err, SN_E_ARGUMENT, "--seeds %" PRId64 ": at least one random encoder is always shown", o->n_seeds);
  if (o->classifier == SN_CLASSIFIER_KNN && o->k < 1) return sn_fail(err, SN_E_ARGUMENT, "--k %" PRId64 ": at least 1", o->k);
  if (o->folds < 2) return sn_fail(err, SN_E_ARGUMENT, "--folds %" PRId64 ": at least 2", o->folds);
  return SN_OK;
}

static void context_free(sn_probe_context *p) {
  for (int64_t r = 0; r < p->n_models; r++) sn_model_destroy(p->models[r]);
  for (int64_t f = 0; p->data != NULL && f < p->data->n_folds; f++) {
    if (p->train != NULL) sn_free(p->train[f]);
    if (p->test != NULL) sn_free(p->test[f]);
  }
  void *const arrays[] = {p->models, p->labels, p->hot, p->values, p->groups, p->train, p->test, p->n_train, p->n_test, p->place, p->first_x,
                          p->tested, p->fold_of};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) sn_free(arrays[i]);
  sn_probe_items_destroy(p->items);
  sn_probe_data_destroy(p->data);
  sn_pool_destroy(p->pool);
  sn_device_destroy(p->device);
}

sn_status sn_probe_run(const sn_probe_options *o, sn_probe_result **out, sn_error *err) {
  const double start = now_s();
  sn_probe_context p = {.options = o};
  const sn_device_options device = {.n_threads = (int)o->n_threads, .log = o->log};
  sn_status status;
  SN_TRY(check_options(o, err));
  SN_TRY_GOTO(sn_alloc(&p.result, 1, sizeof *p.result, "probe", err), done);
  SN_TRY_GOTO(sn_probe_data_open(o, &p.data, err), done);
  SN_TRY_GOTO(sn_device_create_cpu(&device, &p.device, err), done);
  SN_TRY_GOTO(sn_pool_create(p.device->n_threads, &p.pool, err), done);
  p.protocol = (sn_protocol_options){.balanced = !o->unweighted, .seed = o->seed, .pool = p.pool, .classifier = o->classifier,
                                     .k = o->k};
  SN_TRY_GOTO(run_all(&p, err), done);
  p.result->seconds = now_s() - start;
  *out = p.result;
  p.result = NULL;
done:
  context_free(&p);
  sn_probe_result_destroy(p.result);
  return status;
}
