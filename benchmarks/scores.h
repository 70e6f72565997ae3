/* Metrics of predictions, weighted by how often each item was drawn, so that a bootstrap needs no copies.
 *
 * binary, multiclass  scores (n, K) are probabilities; the predicted class is the first of the largest; class 1 of two is the
 *                     positive one
 * multilabel          scores (n, K) are probabilities of each label on its own; predicted above 0.5 (at 0.5 not)
 * regression          scores (n) are predicted values
 *
 *   accuracy            share of correct items
 *   balanced_accuracy   mean recall over classes that occur
 *   kappa               Cohen's, unweighted
 *   f1_weighted, f1_macro   per class 2tp/(2tp + fp + fn); weighted by the class's items, or the mean over classes that occur
 *                       or are predicted
 *   auroc               of class 1 (binary): P(score of a positive > score of a negative) + 1/2 P(equal)
 *   auroc_macro         mean over classes, each against the rest; classes without positives or negatives are undefined
 *   average_precision   sum over thresholds of (recall step) x precision; class 1, or the mean over classes as above
 *   pr_auc              the same curve by the trapezoid rule from (recall 0, precision 1)
 *   brier               mean (p - y)^2 of class 1; multiclass: the sum over classes (Brier 1950); multilabel: mean over labels
 *   ece                 expected calibration error of the predicted class's probability, 15 bins of equal width
 *   r2, mae, rmse
 * What has no value is NaN; classes that are undefined are left out of the mean and counted. */
#ifndef SN_BENCHMARKS_SCORES_H
#define SN_BENCHMARKS_SCORES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef enum sn_task { SN_TASK_BINARY, SN_TASK_MULTICLASS, SN_TASK_MULTILABEL, SN_TASK_REGRESSION } sn_task;
const char *sn_task_name(sn_task task);

typedef enum sn_metric {
  SN_METRIC_ACCURACY, SN_METRIC_BALANCED_ACCURACY, SN_METRIC_KAPPA, SN_METRIC_F1_WEIGHTED, SN_METRIC_F1_MACRO,
  SN_METRIC_AUROC, SN_METRIC_AUROC_MACRO, SN_METRIC_AVERAGE_PRECISION, SN_METRIC_PR_AUC, SN_METRIC_BRIER, SN_METRIC_ECE,
  SN_METRIC_R2, SN_METRIC_MAE, SN_METRIC_RMSE, SN_N_METRICS
} sn_metric;
const char *sn_metric_name(sn_metric metric);
/* SN_E_ARGUMENT: unknown (nearest named), or not one of the task's. */
SN_MUST_CHECK sn_status sn_metric_parse(const char *name, sn_task task, sn_metric *metric, sn_error *err);
bool sn_metric_applies(sn_metric metric, sn_task task);
bool sn_metric_larger_is_better(sn_metric metric);

/* Truth and scores; arrays are borrowed. */
typedef struct sn_predictions {
  sn_task task;
  int64_t n, n_classes;   /* n_classes 1 for regression */
  const int32_t *labels;  /* (n) binary, multiclass */
  const uint8_t *hot;     /* (n, n_classes) multilabel */
  const double *values;   /* (n) regression */
  const double *scores;   /* (n, n_classes) */
} sn_predictions;

typedef struct sn_metric_values {
  double value[SN_N_METRICS];       /* NaN: undefined, or not of this task */
  int64_t n_undefined[SN_N_METRICS];/* classes left out of the mean */
} sn_metric_values;

typedef struct sn_scored sn_scored; /* predictions, sorted once per class */

/* SN_E_ARGUMENT: no items, a score that is not finite, a label outside. */
SN_MUST_CHECK sn_status sn_scored_create(const sn_predictions *predictions, sn_scored **out, sn_error *err);
void sn_scored_destroy(sn_scored *scored); /* accepts NULL */
const sn_predictions *sn_scored_predictions(const sn_scored *scored);

/* weights (n): how often each item counts, NULL: once. Not for two threads at a time on one sn_scored. */
void sn_scored_compute(sn_scored *scored, const double *weights, sn_metric_values *out);
/* Whether class k is left out of the mean of a metric (all items counted once). */
bool sn_metric_class_undefined(const sn_scored *scored, sn_metric metric, int64_t k);

#endif
