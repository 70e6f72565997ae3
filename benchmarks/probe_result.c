/* needs: full */
/* The end of a probe: metrics of the rows, intervals, paired differences, counts; and their JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/probe_private.h"
#include "core/alloc.h"
#include "core/philox.h"

/* ---- metrics -------------------------------------------------------------------------------------------------------------- */

typedef struct tested_truth {
  int32_t *labels;
  uint8_t *hot;
  double *values, *scores;
} tested_truth;

static void tested_free(tested_truth *t) {
  sn_free(t->labels);
  sn_free(t->hot);
  sn_free(t->values);
  sn_free(t->scores);
}

/* Items of the tested that belong to fold f (-1: all), with one row's scores (n_items, K). */
static int64_t gather(const sn_probe_context *p, const double *scores, int64_t f, tested_truth *t) {
  const int64_t K = p->K;
  int64_t n = 0;
  for (int64_t i = 0; i < p->result->n_items; i++) {
    const int64_t item = p->tested[i];
    if (f >= 0 && p->fold_of[i] != f) continue;
    t->labels[n] = p->labels[item];
    t->values[n] = p->values[item];
    memcpy(t->hot + n * K, p->hot + item * K, (size_t)K);
    memcpy(t->scores + n * K, scores + i * K, (size_t)K * sizeof *t->scores);
    n++;
  }
  return n;
}

static sn_status tested_alloc(const sn_probe_context *p, tested_truth *t, sn_error *err) {
  const int64_t n = p->result->n_items;
  memset(t, 0, sizeof *t);
  SN_TRY(sn_alloc(&t->labels, n, sizeof *t->labels, "probe", err));
  SN_TRY(sn_alloc(&t->hot, n * p->K, 1, "probe", err));
  SN_TRY(sn_alloc(&t->values, n, sizeof *t->values, "probe", err));
  return sn_alloc(&t->scores, n * p->K, sizeof *t->scores, "probe", err);
}

static sn_predictions predictions(const sn_probe_context *p, const tested_truth *t, int64_t n) {
  return (sn_predictions){.task = p->truth.task, .n = n, .n_classes = p->K, .labels = t->labels, .hot = t->hot,
                          .values = t->values, .scores = t->scores};
}

static sn_status fold_values(sn_probe_context *p, sn_error *err) {
  tested_truth t;
  sn_status status;
  SN_TRY_GOTO(tested_alloc(p, &t, err), done);
  for (int64_t r = 0; r < p->result->n_rows; r++) {
    for (int64_t f = 0; f < p->data->n_folds; f++) {
      sn_scored *scored = NULL;
      sn_metric_values v;
      const int64_t n = gather(p, p->result->rows[r].scores, f, &t);
      const sn_predictions q = predictions(p, &t, n);
      SN_TRY_GOTO(sn_scored_create(&q, &scored, err), done);
      sn_scored_compute(scored, NULL, &v);
      sn_scored_destroy(scored);
      memcpy(p->result->rows[r].fold_values + f * SN_N_METRICS, v.value, sizeof v.value);
    }
  }
done:
  tested_free(&t);
  return status;
}

/* kNN with the other k: the reported metric, without an interval. */
static sn_status values_by_k(sn_probe_context *p, sn_error *err) {
  const int64_t n_items = p->result->n_items;
  tested_truth t;
  sn_status status;
  SN_TRY_GOTO(tested_alloc(p, &t, err), done);
  for (int64_t i = 0; i < p->result->n_rows * SN_KNN_KS; i++) {
    sn_probe_row *row = &p->result->rows[i / SN_KNN_KS];
    const int64_t k = i % SN_KNN_KS;
    sn_scored *scored = NULL;
    sn_metric_values v;
    bool whole = row->k_scores != NULL;
    if (whole) gather(p, row->k_scores + k * n_items * p->K, -1, &t);
    for (int64_t j = 0; j < n_items * p->K && whole; j++) whole = !isnan(t.scores[j]);
    if (!whole) continue;
    const sn_predictions q = predictions(p, &t, n_items);
    SN_TRY_GOTO(sn_scored_create(&q, &scored, err), done);
    sn_scored_compute(scored, NULL, &v);
    sn_scored_destroy(scored);
    row->by_k[k] = v.value[p->result->metric];
  }
done:
  tested_free(&t);
  return status;
}

enum { MOST_SEEDS = 64 };

/* Rows of an encoder and a pool. */
static int64_t rows_of(const sn_probe_result *r, const char *encoder, const char *pool, int64_t rows[MOST_SEEDS]) {
  int64_t n = 0;
  for (int64_t i = 0; i < r->n_rows && n < MOST_SEEDS; i++)
    if (strcmp(r->rows[i].encoder, encoder) == 0 && (pool == NULL || strcmp(r->rows[i].pool, pool) == 0)) rows[n++] = i;
  return n;
}

/* The mean of rows a (n_a) minus the mean of the rows of another encoder; nothing when there are none. */
static sn_status add_pair(sn_probe_context *p, const sn_bootstrap *b, const int64_t *a, int64_t n_a, const char *other,
                          const char *other_pool, sn_error *err) {
  sn_probe_result *r = p->result;
  int64_t rows[MOST_SEEDS], capacity = r->n_pairs;
  const int64_t n = rows_of(r, other, other_pool, rows);
  if (n == 0) return SN_OK;
  SN_TRY(sn_grow(&r->pairs, &capacity, r->n_pairs + 1, sizeof *r->pairs, "probe", err));
  sn_probe_pair *pair = &r->pairs[r->n_pairs++];
  memset(pair, 0, sizeof *pair);
  snprintf(pair->a, sizeof pair->a, "%s", r->rows[a[0]].encoder);
  snprintf(pair->b, sizeof pair->b, "%s", other);
  snprintf(pair->pool, sizeof pair->pool, "%s", r->rows[a[0]].pool);
  for (int m = 0; m < SN_N_METRICS; m++)
    SN_TRY(sn_bootstrap_interval(b, (sn_metric)m, a, n_a, rows, n, &pair->metrics[m], err));
  return SN_OK;
}

/* The mean over the seeds, in each draw first. */
static sn_status add_mean(sn_probe_context *p, const sn_bootstrap *b, const char *pool, sn_error *err) {
  sn_probe_result *r = p->result;
  int64_t rows[MOST_SEEDS], capacity = r->n_means;
  const int64_t n = rows_of(r, "random", pool, rows);
  SN_TRY(sn_grow(&r->means, &capacity, r->n_means + 1, sizeof *r->means, "probe", err));
  sn_probe_pair *mean = &r->means[r->n_means++];
  memset(mean, 0, sizeof *mean);
  snprintf(mean->a, sizeof mean->a, "random");
  snprintf(mean->pool, sizeof mean->pool, "%s", pool);
  for (int m = 0; m < SN_N_METRICS; m++) SN_TRY(sn_bootstrap_interval(b, (sn_metric)m, rows, n, NULL, 0, &mean->metrics[m], err));
  return SN_OK;
}

static sn_status intervals(sn_probe_context *p, sn_error *err) {
  sn_probe_result *r = p->result;
  const bool draw = !p->options->only_scores;
  tested_truth truth;
  int64_t *units = NULL, n_units = 0;
  sn_bootstrap *b = NULL;
  sn_status status;
  SN_TRY_GOTO(tested_alloc(p, &truth, err), done);
  SN_TRY_GOTO(sn_alloc(&r->scored, r->n_rows, sizeof *r->scored, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&units, r->n_items, sizeof *units, "probe", err), done);
  SN_TRY_GOTO(sn_bootstrap_units(r->units, r->n_items, units, &n_units, err), done);
  gather(p, r->rows[0].scores, -1, &truth);
  for (int64_t i = 0; i < r->n_rows; i++) {
    sn_predictions q = predictions(p, &truth, r->n_items);
    q.scores = r->rows[i].scores;
    SN_TRY_GOTO(sn_scored_create(&q, &r->scored[i], err), done);
  }
  if (!draw) goto done;
  SN_TRY_GOTO(sn_bootstrap_create(r->scored, r->n_rows, units, n_units, p->options->n_draws, p->options->seed, &b, err), done);
  r->n_redrawn = b->n_redrawn;
  for (int64_t i = 0; i < r->n_rows; i++)
    for (int m = 0; m < SN_N_METRICS; m++)
      SN_TRY_GOTO(sn_bootstrap_interval(b, (sn_metric)m, &i, 1, NULL, 0, &r->rows[i].metrics[m], err), done);
  int64_t rows[MOST_SEEDS];
  const int64_t n = rows_of(r, "pretrained", NULL, rows);
  for (int64_t i = 0; i < n; i++) {
    SN_TRY_GOTO(add_mean(p, b, r->rows[rows[i]].pool, err), done);
    SN_TRY_GOTO(add_pair(p, b, &rows[i], 1, "random", r->rows[rows[i]].pool, err), done);
    SN_TRY_GOTO(add_pair(p, b, &rows[i], 1, "raw", NULL, err), done);
  }
  const int64_t n_tuned = rows_of(r, "finetuned", NULL, rows);
  if (n_tuned > 0) {
    SN_TRY_GOTO(add_pair(p, b, rows, n_tuned, "scratch", NULL, err), done);
    SN_TRY_GOTO(add_pair(p, b, rows, n_tuned, "majority", NULL, err), done);
  }
done:
  sn_bootstrap_destroy(b);
  sn_free(units);
  /* The truth of r->scored stays: names of undefined classes are asked for later. */
  if (status == SN_OK) {
    r->truth_labels = truth.labels;
    r->truth_hot = truth.hot;
    r->truth_values = truth.values;
    sn_free(truth.scores);
  } else {
    tested_free(&truth);
  }
  return status;
}

/* ---- counts ---------------------------------------------------------------------------------------------------------------- */

static void add_drop(sn_probe_result *r, const char *reason, int64_t n, const char *example) {
  for (int64_t k = 0; k < r->n_drops; k++)
    if (strcmp(r->drops[k].reason, reason) == 0) {
      r->drops[k].n += n;
      return;
    }
  if (r->n_drops == SN_PROBE_DROPS) return;
  sn_label_drop *d = &r->drops[r->n_drops++];
  snprintf(d->reason, sizeof d->reason, "%s", reason);
  snprintf(d->example, sizeof d->example, "%s", example);
  d->n = n;
}

static void count_drops(sn_probe_context *p) {
  const sn_manifest *m = p->data->manifest;
  for (int64_t i = 0; i < m->n; i++) {
    if (m->rows[i].ok) continue;
    char reason[64], example[128];
    snprintf(reason, sizeof reason, "not readable (%.40s)", m->rows[i].cells[SN_MANIFEST_STATUS]);
    snprintf(example, sizeof example, "%.120s", m->rows[i].path);
    add_drop(p->result, reason, 1, example);
  }
  const sn_labels *l = p->data->labels;
  for (int64_t k = 0; k < l->n_drops; k++) add_drop(p->result, l->drops[k].reason, l->drops[k].n, l->drops[k].example);
  for (int64_t k = 0; k < p->items->n_drops; k++)
    add_drop(p->result, p->items->drops[k].reason, p->items->drops[k].n, p->items->drops[k].example);
  int64_t only_trained = 0, example = 0;
  for (int64_t i = 0; i < p->items->n; i++) {
    if (!p->items->usable[i] || p->place[i] >= 0) continue;
    if (only_trained++ == 0) example = p->items->recording[i];
  }
  if (only_trained > 0) add_drop(p->result, "in training parts only", only_trained, m->rows[example].path);
}

static uint64_t item_hash(const sn_probe_context *p, int64_t item) {
  const sn_label_item *label = &p->data->labels->items[p->items->label_item[item]];
  const sn_manifest *m = p->data->manifest;
  char text[768];
  const int n = snprintf(text, sizeof text, "%.120s\n%.500s\n%" PRId64 "\n%.6f", m->name, m->rows[label->recording].path,
                         label->segment, label->start_s);
  return sn_hash64(text, n < (int)sizeof text ? n : (int)sizeof text - 1);
}

static sn_status count_items(sn_probe_context *p, sn_error *err) {
  sn_probe_result *r = p->result;
  int64_t last = -1, *units = NULL;
  r->n_classes = p->truth.task == SN_TASK_REGRESSION ? 0 : p->truth.n_classes;
  SN_TRY(sn_alloc(&r->classes, r->n_classes, sizeof *r->classes, "probe", err));
  SN_TRY(sn_alloc(&r->per_class, r->n_classes, sizeof *r->per_class, "probe", err));
  for (int64_t k = 0; k < r->n_classes; k++)
    SN_TRY(sn_strdup(&r->classes[p->data->class_order[k]], p->data->labels->classes[k], "probe", err));
  for (int64_t i = 0; i < r->n_items; i++) {
    const int64_t item = p->tested[i];
    r->n_recordings += p->items->recording[item] != last;
    last = p->items->recording[item];
    if (p->truth.task == SN_TASK_MULTILABEL)
      for (int64_t k = 0; k < r->n_classes; k++) r->per_class[k] += p->hot[item * r->n_classes + k];
    else if (r->n_classes > 0) r->per_class[p->labels[item]]++;
  }
  SN_TRY(sn_alloc(&r->items, r->n_items, sizeof *r->items, "probe", err));
  SN_TRY(sn_alloc(&r->units, r->n_items, sizeof *r->units, "probe", err));
  for (int64_t i = 0; i < r->n_items; i++) {
    r->items[i] = item_hash(p, p->tested[i]);
    r->units[i] = p->groups[p->tested[i]];
  }
  SN_TRY(sn_alloc(&units, r->n_items, sizeof *units, "probe", err));
  sn_status status = sn_bootstrap_units(r->units, r->n_items, units, &r->n_subjects, err);
  sn_free(units);
  return status;
}

sn_status sn_probe_finish(sn_probe_context *p, sn_error *err) {
  sn_probe_result *r = p->result;
  const sn_probe_options *o = p->options;
  r->task = p->truth.task;
  r->metric = p->protocol.metric;
  r->classifier = p->options->classifier;
  r->k = r->classifier == SN_CLASSIFIER_KNN ? p->protocol.k : 0;
  r->balanced = p->protocol.balanced && r->classifier == SN_CLASSIFIER_LINEAR && (r->task == SN_TASK_BINARY || r->task == SN_TASK_MULTICLASS || r->task == SN_TASK_MULTILABEL);
  r->n_folds = p->data->n_folds;
  r->n_folds_planned = p->data->n_folds_planned;
  r->n_draws = o->n_draws;
  r->seed = o->seed;
  r->transductive = o->transductive;
  r->persons_unknown = p->data->subjects->persons_unknown;
  r->per_beat = p->items->per_window;
  r->n_windows = p->items->n_usable_windows;
  r->n_configurations = (r->classifier == SN_CLASSIFIER_KNN ? 1 : SN_PROBE_C) * o->n_pools;
  r->leaked_subjects = p->data->leaked_subjects;
  r->leaked_contents = p->data->leaked_contents;
  r->leakage_checked = true;
  r->context_s = p->data->context_s;
  r->n_runs = o->n_runs;
  snprintf(r->labels_sha256, sizeof r->labels_sha256, "%s", p->data->labels_sha256);
  snprintf(r->leakage_kind, sizeof r->leakage_kind, "%s", p->data->leakage_kind);
  snprintf(r->target, sizeof r->target, "%s", o->target);
  snprintf(r->kind, sizeof r->kind, "%s", p->data->kind);
  snprintf(r->dataset, sizeof r->dataset, "%s", p->data->manifest->name);
  SN_TRY(sn_strdup(&r->run, o->runs[0], "probe", err));
  SN_TRY(count_items(p, err));
  count_drops(p);
  SN_TRY(fold_values(p, err));
  SN_TRY(values_by_k(p, err));
  return intervals(p, err);
}

void sn_probe_result_destroy(sn_probe_result *r) {
  if (r == NULL) return;
  for (int64_t i = 0; i < r->n_rows; i++) {
    if (r->scored != NULL) sn_scored_destroy(r->scored[i]);
    sn_free(r->rows[i].folds);
    sn_free(r->rows[i].chosen);
    sn_free(r->rows[i].steps);
    sn_free(r->rows[i].scores);
    sn_free(r->rows[i].k_scores);
    sn_free(r->rows[i].fold_values);
  }
  for (int64_t k = 0; r->classes != NULL && k < r->n_classes; k++) sn_free(r->classes[k]);
  void *const arrays[] = {r->scored, r->rows, r->pairs, r->means, r->classes, r->per_class, r->items, r->units, r->run, r->options, r->truth_labels, r->truth_hot,
                          r->truth_values};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) sn_free(arrays[i]);
  sn_free(r);
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------------ */

static void write_protocol(const sn_probe_result *r, sn_json_writer *w) {
  char selection[200];
  if (r->selection[0] != '\0') snprintf(selection, sizeof selection, "%s", r->selection);
  else if (r->classifier == SN_CLASSIFIER_KNN)
    snprintf(selection, sizeof selection, "none: k is %" PRId64 "%s", r->k,
             r->n_configurations > 1 ? "; the pool of rows \"chosen\" by grouped inner folds" : "");
  else
    snprintf(selection, sizeof selection, "C from %d values 1e-4..1e4%s by %" PRId64 " grouped inner folds on %s", SN_PROBE_C,
           r->n_configurations > SN_PROBE_C ? " and the pool of rows \"chosen\"" : "", r->n_inner_folds, sn_metric_name(r->metric));
  sn_json_write_key(w, "protocol");
  sn_json_begin_object(w);
  sn_json_put_string(w, "kind", r->kind);
  sn_json_put_i64(w, "folds", r->n_folds);
  sn_json_put_i64(w, "folds_planned", r->n_folds_planned);
  sn_json_put_i64(w, "seed", (int64_t)r->seed);
  sn_json_put_string(w, "selection", selection);
  sn_json_put_i64(w, "configurations", r->n_configurations);
  sn_json_put_string(w, "metric", sn_metric_name(r->metric));
  sn_json_put_string(w, "unit", r->persons_unknown ? "recording" : "subject");
  sn_json_put_bool(w, "persons_unknown", r->persons_unknown);
  sn_json_put_bool(w, "transductive", r->transductive);
  sn_json_put_string(w, "class_weight", r->balanced ? "balanced" : NULL);
  sn_json_put_i64(w, "bootstrap_draws", r->n_draws);
  sn_json_put_i64(w, "bootstrap_redrawn", r->n_redrawn);
  sn_json_put_f64(w, "context_s", r->context_s > 0 ? r->context_s : NAN);
  sn_json_end_object(w);
}

static void write_counts(const sn_probe_result *r, sn_json_writer *w) {
  sn_json_write_key(w, "n");
  sn_json_begin_object(w);
  sn_json_write_key(w, "subjects");
  if (r->persons_unknown) sn_json_write_null(w);
  else sn_json_write_i64(w, r->n_subjects);
  sn_json_put_i64(w, "recordings", r->n_recordings);
  sn_json_put_i64(w, "windows", r->n_windows);
  sn_json_put_i64(w, "items", r->n_items);
  sn_json_write_key(w, "per_class");
  sn_json_begin_object(w);
  for (int64_t k = 0; k < r->n_classes; k++) sn_json_put_i64(w, r->classes[k], r->per_class[k]);
  sn_json_end_object(w);
  sn_json_end_object(w);
}

static void write_metric(const sn_probe_result *r, int64_t i, sn_metric m, sn_json_writer *w) {
  const sn_probe_row *row = &r->rows[i];
  double sum = 0;
  int64_t n = 0;
  sn_json_write_key(w, sn_metric_name(m));
  sn_json_begin_object(w);
  sn_json_put_f64(w, "value", row->metrics[m].value);
  sn_json_put_f64(w, "low", row->metrics[m].low);
  sn_json_put_f64(w, "high", row->metrics[m].high);
  sn_json_write_key(w, "undefined_classes");
  sn_json_begin_array(w);
  for (int64_t k = 0; k < r->n_classes; k++)
    if (sn_metric_class_undefined(r->scored[i], m, k)) sn_json_write_string(w, r->classes[k]);
  sn_json_end_array(w);
  sn_json_write_key(w, "folds");
  sn_json_begin_array(w);
  for (int64_t f = 0; f < r->n_folds; f++) {
    const double v = row->fold_values[f * SN_N_METRICS + m];
    sn_json_write_f64(w, v);
    if (!isnan(v)) sum += v, n++;
  }
  sn_json_end_array(w);
  sn_json_put_f64(w, "mean_of_folds", n > 0 ? sum / (double)n : NAN);
  sn_json_end_object(w);
}

static void write_by_k(const sn_probe_result *r, const sn_probe_row *row, sn_json_writer *w) {
  sn_json_write_key(w, "by_k"); /* of the metric that the protocol names */
  sn_json_begin_object(w);
  for (int64_t k = 0; k < SN_KNN_KS; k++) {
    char key[24];
    snprintf(key, sizeof key, "%" PRId64, sn_knn_k(k));
    sn_json_put_f64(w, key, row->by_k[k]);
  }
  sn_json_end_object(w);
}

static void write_row(const sn_probe_result *r, int64_t i, sn_json_writer *w) {
  const sn_probe_row *row = &r->rows[i];
  const bool majority = strcmp(row->encoder, "majority") == 0;
  sn_json_begin_object(w);
  sn_json_put_string(w, "encoder", row->encoder);
  sn_json_put_string(w, "pool", row->pool[0] != '\0' ? row->pool : NULL);
  sn_json_put_string(w, "probe", majority ? NULL : row->steps != NULL ? "finetune" : sn_classifier_name(r->classifier));
  sn_json_write_key(w, "seed");
  if (row->seed < 0) sn_json_write_null(w);
  else sn_json_write_i64(w, row->seed);
  if (r->transductive) sn_json_put_bool(w, "transductive", true);
  sn_json_write_key(w, "selected");
  sn_json_begin_object(w);
  const bool knn = r->classifier == SN_CLASSIFIER_KNN;
  sn_json_write_key(w, row->steps != NULL ? "step" : knn ? "k" : "C");
  sn_json_begin_array(w);
  for (int64_t f = 0; f < r->n_folds && !majority; f++) {
    if (row->steps != NULL) sn_json_write_i64(w, row->steps[f]);
    else if (knn) sn_json_write_i64(w, row->folds[f].k);
    else sn_json_write_f64(w, row->folds[f].C);
  }
  sn_json_end_array(w);
  /* What recipes are tuned by: the inner folds' score, which saw no test item. */
  sn_json_write_key(w, "inner_score");
  sn_json_begin_array(w);
  for (int64_t f = 0; f < r->n_folds && !majority; f++) sn_json_write_f64(w, row->folds[f].inner_score);
  sn_json_end_array(w);
  if (row->chosen != NULL) {
    sn_json_write_key(w, "pool");
    sn_json_begin_array(w);
    for (int64_t f = 0; f < r->n_folds; f++) sn_json_write_string(w, sn_pool_name(row->chosen[f]));
    sn_json_end_array(w);
  }
  sn_json_end_object(w);
  if (row->k_scores != NULL) write_by_k(r, row, w);
  sn_json_write_key(w, "metrics");
  sn_json_begin_object(w);
  for (int m = 0; m < SN_N_METRICS; m++)
    if (sn_metric_applies((sn_metric)m, r->task)) write_metric(r, i, (sn_metric)m, w);
  sn_json_end_object(w);
  sn_json_end_object(w);
}

static void write_pair(const sn_probe_result *r, const sn_probe_pair *pair, sn_metric m, sn_json_writer *w) {
  const sn_interval *d = &pair->metrics[m];
  sn_json_begin_object(w);
  sn_json_put_string(w, "a", pair->a);
  sn_json_put_string(w, "b", pair->b);
  sn_json_put_string(w, "pool", pair->pool);
  sn_json_put_string(w, "metric", sn_metric_name(m));
  sn_json_put_f64(w, "difference", d->value);
  sn_json_put_f64(w, "low", d->low);
  sn_json_put_f64(w, "high", d->high);
  sn_json_put_bool(w, "claimed", sn_probe_claims(r, d));
  sn_json_end_object(w);
}

static void write_mean(const sn_probe_result *r, const sn_probe_pair *mean, sn_json_writer *w) {
  sn_json_begin_object(w);
  sn_json_put_string(w, "encoder", mean->a);
  sn_json_put_string(w, "pool", mean->pool);
  sn_json_write_key(w, "metrics");
  sn_json_begin_object(w);
  for (int m = 0; m < SN_N_METRICS; m++) {
    if (!sn_metric_applies((sn_metric)m, r->task)) continue;
    sn_json_write_key(w, sn_metric_name((sn_metric)m));
    sn_json_begin_object(w);
    sn_json_put_f64(w, "value", mean->metrics[m].value);
    sn_json_put_f64(w, "low", mean->metrics[m].low);
    sn_json_put_f64(w, "high", mean->metrics[m].high);
    sn_json_end_object(w);
  }
  sn_json_end_object(w);
  sn_json_end_object(w);
}

/* Few units: small differences are not claimed, whatever the interval. */
bool sn_difference_claimed(int64_t n_units, const sn_interval *d) {
  const bool excludes_zero = d->low > 0 || d->high < 0;
  return excludes_zero && (n_units >= SN_PROBE_MANY_UNITS || fabs(d->value) >= SN_PROBE_SMALL_DIFFERENCE);
}

bool sn_probe_claims(const sn_probe_result *r, const sn_interval *d) { return sn_difference_claimed(r->n_subjects, d); }

static void write_dropped(const sn_probe_result *r, sn_json_writer *w) {
  sn_json_write_key(w, "dropped");
  sn_json_begin_object(w);
  for (int64_t k = 0; k < r->n_drops; k++) {
    char key[64];
    snprintf(key, sizeof key, "%s", r->drops[k].reason);
    for (char *c = key; *c != '\0'; c++) *c = *c == ' ' ? '_' : *c;
    sn_json_put_i64(w, key, r->drops[k].n);
  }
  sn_json_end_object(w);
}

void sn_probe_write_json(const sn_probe_result *r, sn_json_writer *w) {
  sn_json_begin_object(w);
  sn_json_put_string(w, "target", r->target);
  sn_json_put_string(w, "task", sn_task_name(r->task));
  sn_json_put_string(w, "dataset", r->dataset);
  write_protocol(r, w);
  write_counts(r, w);
  sn_json_write_key(w, "rows");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < r->n_rows; i++) write_row(r, i, w);
  sn_json_end_array(w);
  sn_json_write_key(w, "random_means");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < r->n_means; i++) write_mean(r, &r->means[i], w);
  sn_json_end_array(w);
  sn_json_write_key(w, "paired");
  sn_json_begin_array(w);
  for (int64_t i = 0; i < r->n_pairs; i++)
    for (int m = 0; m < SN_N_METRICS; m++)
      if (sn_metric_applies((sn_metric)m, r->task)) write_pair(r, &r->pairs[i], (sn_metric)m, w);
  sn_json_end_array(w);
  sn_json_write_key(w, "leakage");
  sn_json_begin_object(w);
  sn_json_put_i64(w, "pretraining_subjects_in_test", r->leaked_subjects);
  sn_json_put_i64(w, "pretraining_recordings_in_test", r->leaked_contents);
  sn_json_put_bool(w, "checked", r->leakage_checked);
  sn_json_put_bool(w, "overridden", r->transductive && r->leaked_subjects > 0);
  sn_json_put_string(w, "checksums", r->leakage_kind);
  sn_json_end_object(w);
  write_dropped(r, w);
  sn_json_put_i64(w, "fits", r->n_fits);
  sn_json_put_i64(w, "fits_not_converged", r->n_unconverged);
  sn_json_put_i64(w, "raw_values_filled", r->n_filled);
  sn_json_put_string(w, "run", r->run);
  sn_json_put_i64(w, "runs", r->n_runs);
  sn_json_put_i64(w, "checkpoint_step", r->checkpoint_step);
  if (r->options != NULL) sn_json_put_string(w, "options", r->options);
  if (r->labels_sha256[0] != '\0') sn_json_put_string(w, "labels_sha256", r->labels_sha256);
  if (r->encoder_sha256[0] != '\0') sn_json_put_string(w, "encoder_sha256", r->encoder_sha256);
  else sn_json_put_null(w, "encoder_sha256"); /* fine-tuning: the encoder changes */
  sn_json_put_string(w, "engine_version", SONDE_VERSION);
  sn_json_end_object(w);
}
