#include "benchmarks/scores.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"

enum { ECE_BINS = 15 };

static const char *const NAMES[SN_N_METRICS] = {
    "accuracy", "balanced_accuracy", "kappa", "f1_weighted", "f1_macro", "auroc", "auroc_macro", "average_precision",
    "pr_auc", "brier", "ece", "r2", "mae", "rmse"};

const char *sn_task_name(sn_task task) {
  static const char *const TASKS[] = {"binary", "multiclass", "multilabel", "regression"};
  return TASKS[task];
}

const char *sn_metric_name(sn_metric metric) { return NAMES[metric]; }

bool sn_metric_applies(sn_metric metric, sn_task task) {
  if (task == SN_TASK_REGRESSION) return metric >= SN_METRIC_R2;
  if (metric >= SN_METRIC_R2) return false;
  if (metric == SN_METRIC_AUROC) return task == SN_TASK_BINARY;
  if (task == SN_TASK_MULTILABEL)
    return metric != SN_METRIC_ACCURACY && metric != SN_METRIC_BALANCED_ACCURACY && metric != SN_METRIC_KAPPA &&
           metric != SN_METRIC_ECE;
  return true;
}

bool sn_metric_larger_is_better(sn_metric metric) {
  return metric != SN_METRIC_BRIER && metric != SN_METRIC_ECE && metric != SN_METRIC_MAE && metric != SN_METRIC_RMSE;
}

sn_status sn_metric_parse(const char *name, sn_task task, sn_metric *metric, sn_error *err) {
  for (int m = 0; m < SN_N_METRICS; m++) {
    if (strcmp(NAMES[m], name) != 0) continue;
    if (!sn_metric_applies((sn_metric)m, task))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "metric", "metric '%s' is not defined for a %s target", name,
                        sn_task_name(task));
    *metric = (sn_metric)m;
    return SN_OK;
  }
  const char *near = sn_nearest_name(name, NAMES, SN_N_METRICS);
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "metric", "metric '%s' is not known%s%s%s", name,
                    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

struct sn_scored {
  sn_predictions p;
  int64_t *order;      /* (n_classes, n) items by falling score; NULL for regression */
  int32_t *predicted;  /* (n) binary, multiclass */
  double *confusion;   /* (n_classes, n_classes) true x predicted, of the current weights */
};

typedef struct keyed { double score; int64_t item; } keyed;

static int compare_keyed(const void *a, const void *b) {
  const keyed *x = a, *y = b;
  if (x->score != y->score) return x->score < y->score ? 1 : -1;
  return (x->item > y->item) - (x->item < y->item);
}

static sn_status sort_classes(sn_scored *s, sn_error *err) {
  const int64_t n = s->p.n, K = s->p.n_classes;
  keyed *keys = NULL;
  SN_TRY(sn_alloc(&keys, n, sizeof *keys, "metrics", err));
  for (int64_t k = 0; k < K; k++) {
    for (int64_t i = 0; i < n; i++) keys[i] = (keyed){s->p.scores[i * K + k], i};
    qsort(keys, (size_t)n, sizeof *keys, compare_keyed);
    for (int64_t i = 0; i < n; i++) s->order[k * n + i] = keys[i].item;
  }
  sn_free(keys);
  return SN_OK;
}

static sn_status check(const sn_predictions *p, sn_error *err) {
  const bool single = p->task == SN_TASK_BINARY || p->task == SN_TASK_MULTICLASS;
  if (p->n < 1) return sn_fail(err, SN_E_ARGUMENT, "metrics: no items");
  if (p->n_classes < 1 || (p->task == SN_TASK_BINARY && p->n_classes != 2) || (p->task == SN_TASK_REGRESSION && p->n_classes != 1))
    return sn_fail(err, SN_E_ARGUMENT, "metrics: %lld classes for a %s target", (long long)p->n_classes, sn_task_name(p->task));
  for (int64_t i = 0; i < p->n; i++) {
    if (single && (p->labels[i] < 0 || p->labels[i] >= p->n_classes))
      return sn_fail(err, SN_E_ARGUMENT, "metrics: label %d of item %lld is outside [0, %lld)", (int)p->labels[i], (long long)i,
                     (long long)p->n_classes);
    if (p->task == SN_TASK_REGRESSION && !isfinite(p->values[i]))
      return sn_fail(err, SN_E_ARGUMENT, "metrics: the target of item %lld is not finite", (long long)i);
    for (int64_t k = 0; k < p->n_classes; k++)
      if (!isfinite(p->scores[i * p->n_classes + k]))
        return sn_fail(err, SN_E_ARGUMENT, "metrics: a score of item %lld is not finite", (long long)i);
  }
  return SN_OK;
}

sn_status sn_scored_create(const sn_predictions *p, sn_scored **out, sn_error *err) {
  sn_scored *s = NULL;
  sn_status status;
  SN_TRY(check(p, err));
  SN_TRY_GOTO(sn_alloc(&s, 1, sizeof *s, "metrics", err), fail);
  s->p = *p;
  if (p->task != SN_TASK_REGRESSION) {
    SN_TRY_GOTO(sn_alloc(&s->order, p->n * p->n_classes, sizeof *s->order, "metrics", err), fail);
    SN_TRY_GOTO(sn_alloc(&s->predicted, p->n, sizeof *s->predicted, "metrics", err), fail);
    SN_TRY_GOTO(sn_alloc(&s->confusion, p->n_classes * p->n_classes, sizeof *s->confusion, "metrics", err), fail);
    SN_TRY_GOTO(sort_classes(s, err), fail);
    for (int64_t i = 0; i < p->n; i++)
      for (int64_t k = 1; k < p->n_classes; k++)
        if (p->scores[i * p->n_classes + k] > p->scores[i * p->n_classes + s->predicted[i]]) s->predicted[i] = (int32_t)k;
  }
  *out = s;
  return SN_OK;
fail:
  sn_scored_destroy(s);
  return status;
}

void sn_scored_destroy(sn_scored *s) {
  if (s == NULL) return;
  sn_free(s->order);
  sn_free(s->predicted);
  sn_free(s->confusion);
  sn_free(s);
}

const sn_predictions *sn_scored_predictions(const sn_scored *s) { return &s->p; }

static double weight_of(const double *weights, int64_t i) { return weights != NULL ? weights[i] : 1; }

static bool is_positive(const sn_predictions *p, int64_t i, int64_t k) {
  return p->task == SN_TASK_MULTILABEL ? p->hot[i * p->n_classes + k] != 0 : p->labels[i] == k;
}

/* ---- by confusion ------------------------------------------------------------------------------------------------------- */

static double divide(double a, double b) { return b > 0 ? a / b : NAN; }

static void by_confusion(sn_scored *s, const double *weights, sn_metric_values *out) {
  const int64_t K = s->p.n_classes;
  double total = 0, correct = 0, chance = 0, recall = 0, f1 = 0, f1_weighted = 0;
  int64_t n_recall = 0, n_f1 = 0;
  memset(s->confusion, 0, (size_t)(K * K) * sizeof *s->confusion);
  for (int64_t i = 0; i < s->p.n; i++) s->confusion[s->p.labels[i] * K + s->predicted[i]] += weight_of(weights, i);
  for (int64_t k = 0; k < K; k++) {
    for (int64_t l = 0; l < K; l++) total += s->confusion[k * K + l];
    correct += s->confusion[k * K + k];
  }
  for (int64_t k = 0; k < K; k++) {
    double row = 0, column = 0;
    const double hits = s->confusion[k * K + k];
    for (int64_t l = 0; l < K; l++) {
      row += s->confusion[k * K + l];
      column += s->confusion[l * K + k];
    }
    chance += row * column;
    if (row > 0) recall += hits / row, n_recall++;
    if (row + column > 0) {
      f1 += 2 * hits / (row + column);
      f1_weighted += row * 2 * hits / (row + column);
      n_f1++;
    }
  }
  chance /= total * total;
  out->value[SN_METRIC_ACCURACY] = divide(correct, total);
  out->value[SN_METRIC_BALANCED_ACCURACY] = divide(recall, (double)n_recall);
  out->n_undefined[SN_METRIC_BALANCED_ACCURACY] = K - n_recall;
  out->value[SN_METRIC_KAPPA] = divide(correct / total - chance, 1 - chance);
  out->value[SN_METRIC_F1_WEIGHTED] = divide(f1_weighted, total);
  out->value[SN_METRIC_F1_MACRO] = divide(f1, (double)n_f1);
  out->n_undefined[SN_METRIC_F1_MACRO] = K - n_f1;
}

static void multilabel_f1(const sn_scored *s, const double *weights, sn_metric_values *out) {
  const int64_t K = s->p.n_classes;
  double sum = 0, weighted = 0, support = 0;
  int64_t defined = 0;
  for (int64_t k = 0; k < K; k++) {
    double truth = 0, predicted = 0, hits = 0;
    for (int64_t i = 0; i < s->p.n; i++) {
      const bool yes = s->p.scores[i * K + k] > 0.5, is = s->p.hot[i * K + k] != 0;
      truth += is * weight_of(weights, i);
      predicted += yes * weight_of(weights, i);
      hits += (yes && is) * weight_of(weights, i);
    }
    if (!(truth + predicted > 0)) continue;
    sum += 2 * hits / (truth + predicted);
    weighted += truth * 2 * hits / (truth + predicted);
    support += truth;
    defined++;
  }
  out->value[SN_METRIC_F1_MACRO] = divide(sum, (double)defined);
  out->n_undefined[SN_METRIC_F1_MACRO] = K - defined;
  out->value[SN_METRIC_F1_WEIGHTED] = divide(weighted, support);
}

/* ---- by ranking --------------------------------------------------------------------------------------------------------- */

typedef struct curve { double auroc, average_precision, pr_auc; } curve;

/* One class against the rest. Items of equal score pass the threshold together, so that their order never matters. */
static bool rank_class(const sn_scored *s, const double *weights, int64_t k, curve *out) {
  const int64_t n = s->p.n, K = s->p.n_classes, *order = s->order + k * n;
  double positives = 0, negatives = 0, above = 0, below = 0, pairs = 0, recall = 0, precision = 1;
  for (int64_t i = 0; i < n; i++) {
    if (is_positive(&s->p, i, k)) positives += weight_of(weights, i);
    else negatives += weight_of(weights, i);
  }
  memset(out, 0, sizeof *out);
  if (!(positives > 0) || !(negatives > 0)) return false;
  for (int64_t i = 0; i < n;) {
    const double score = s->p.scores[order[i] * K + k];
    double p = 0, q = 0;
    for (; i < n && s->p.scores[order[i] * K + k] == score; i++) {
      if (is_positive(&s->p, order[i], k)) p += weight_of(weights, order[i]);
      else q += weight_of(weights, order[i]);
    }
    if (p + q == 0) continue;
    pairs += q * (above + p / 2);
    above += p;
    below += q;
    const double next_recall = above / positives, next_precision = above / (above + below);
    out->average_precision += (next_recall - recall) * next_precision;
    out->pr_auc += (next_recall - recall) * (precision + next_precision) / 2;
    recall = next_recall;
    precision = next_precision;
  }
  out->auroc = pairs / (positives * negatives);
  return true;
}

static void by_ranking(const sn_scored *s, const double *weights, sn_metric_values *out) {
  const int64_t K = s->p.n_classes;
  curve one, sum = {0};
  int64_t defined = 0;
  for (int64_t k = s->p.task == SN_TASK_BINARY ? 1 : 0; k < K; k++) {
    if (!rank_class(s, weights, k, &one)) continue;
    defined++;
    sum.auroc += one.auroc;
    sum.average_precision += one.average_precision;
    sum.pr_auc += one.pr_auc;
  }
  const bool binary = s->p.task == SN_TASK_BINARY;
  out->value[SN_METRIC_AUROC_MACRO] = divide(sum.auroc, (double)defined);
  out->value[SN_METRIC_AUROC] = binary ? out->value[SN_METRIC_AUROC_MACRO] : NAN;
  out->value[SN_METRIC_AVERAGE_PRECISION] = divide(sum.average_precision, (double)defined);
  out->value[SN_METRIC_PR_AUC] = divide(sum.pr_auc, (double)defined);
  const int64_t undefined = binary ? (defined == 0 ? 2 : 0) : K - defined;
  out->n_undefined[SN_METRIC_AUROC_MACRO] = out->n_undefined[SN_METRIC_AVERAGE_PRECISION] = undefined;
  out->n_undefined[SN_METRIC_PR_AUC] = undefined;
}

/* ---- by probability ------------------------------------------------------------------------------------------------------ */

static void by_probability(const sn_scored *s, const double *weights, sn_metric_values *out) {
  const int64_t K = s->p.n_classes;
  double total = 0, brier = 0, ece = 0, mass[ECE_BINS] = {0}, right[ECE_BINS] = {0}, confidence[ECE_BINS] = {0};
  for (int64_t i = 0; i < s->p.n; i++) {
    const double w = weight_of(weights, i), *p = s->p.scores + i * K;
    total += w;
    for (int64_t k = s->p.task == SN_TASK_BINARY ? 1 : 0; k < K; k++) {
      const double gap = p[k] - is_positive(&s->p, i, k);
      brier += w * gap * gap;
    }
    if (s->p.task == SN_TASK_MULTILABEL) continue;
    const double top = p[s->predicted[i]];
    int bin = (int)ceil(top * ECE_BINS) - 1; /* bins are (b/15, (b+1)/15] */
    bin = bin < 0 ? 0 : bin >= ECE_BINS ? ECE_BINS - 1 : bin;
    mass[bin] += w;
    right[bin] += w * (s->predicted[i] == s->p.labels[i]);
    confidence[bin] += w * top;
  }
  for (int b = 0; b < ECE_BINS; b++) ece += fabs(right[b] - confidence[b]);
  out->value[SN_METRIC_BRIER] = divide(brier, s->p.task == SN_TASK_MULTILABEL ? total * (double)K : total);
  if (s->p.task != SN_TASK_MULTILABEL) out->value[SN_METRIC_ECE] = divide(ece, total);
}

static void regression(const sn_scored *s, const double *weights, sn_metric_values *out) {
  double total = 0, mean = 0, residual = 0, spread = 0, absolute = 0;
  for (int64_t i = 0; i < s->p.n; i++) {
    total += weight_of(weights, i);
    mean += weight_of(weights, i) * s->p.values[i];
  }
  mean /= total;
  for (int64_t i = 0; i < s->p.n; i++) {
    const double w = weight_of(weights, i), gap = s->p.values[i] - s->p.scores[i];
    residual += w * gap * gap;
    absolute += w * fabs(gap);
    spread += w * (s->p.values[i] - mean) * (s->p.values[i] - mean);
  }
  out->value[SN_METRIC_R2] = spread > 0 ? 1 - residual / spread : NAN;
  out->value[SN_METRIC_MAE] = divide(absolute, total);
  out->value[SN_METRIC_RMSE] = sqrt(divide(residual, total));
}

void sn_scored_compute(sn_scored *s, const double *weights, sn_metric_values *out) {
  for (int m = 0; m < SN_N_METRICS; m++) {
    out->value[m] = NAN;
    out->n_undefined[m] = 0;
  }
  if (s->p.task == SN_TASK_REGRESSION) {
    regression(s, weights, out);
    return;
  }
  if (s->p.task == SN_TASK_MULTILABEL) multilabel_f1(s, weights, out);
  else by_confusion(s, weights, out);
  by_ranking(s, weights, out);
  by_probability(s, weights, out);
}

bool sn_metric_class_undefined(const sn_scored *s, sn_metric metric, int64_t k) {
  if (s->p.task == SN_TASK_REGRESSION) return false;
  int64_t positives = 0, predicted = 0;
  for (int64_t i = 0; i < s->p.n; i++) {
    positives += is_positive(&s->p, i, k);
    predicted += s->p.task == SN_TASK_MULTILABEL ? s->p.scores[i * s->p.n_classes + k] > 0.5 : s->predicted[i] == k;
  }
  switch (metric) {
    case SN_METRIC_BALANCED_ACCURACY: return positives == 0;
    case SN_METRIC_F1_MACRO: return positives + predicted == 0;
    case SN_METRIC_AUROC:
    case SN_METRIC_AUROC_MACRO:
    case SN_METRIC_AVERAGE_PRECISION:
    case SN_METRIC_PR_AUC: return positives == 0 || positives == s->p.n;
    default: return false;
  }
}
