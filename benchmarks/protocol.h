/* The probe protocols: what happens to frozen features once they are there.
 *
 * LINEAR.  One fold: the training rows are cut into 5 grouped inner folds (people; as many as there are, if fewer; stratified by
 * class).  For each of 10 values of C, 1e-4 ... 1e4 in equal steps of the logarithm, the standardiser and the learner are
 * fitted on the inner training rows and predict the inner validation rows; the predictions of all inner folds are joined and
 * scored once by the metric that the table reports.  The best C (the smallest of equals) is refitted on all training rows,
 * standardised on them alone, and predicts the test rows.  Nothing of the test rows is looked at before.
 *
 *   binary, multiclass  L2 logistic regression (encoders/logistic.h), multinomial, class weights balanced or none
 *   multilabel          one logistic regression per label; a label that the training rows have always or never gets that
 *                       constant
 *   regression          ridge regression with alpha = 1/C on the standardised features
 * An inner training part with a single class predicts that class.
 *
 * KNN (encoders/knn.h, temperature 0.07).  Nothing is fitted: the k nearest training rows vote.  Features keep their
 * scale before they are made unit vectors, except those that have units of their own (`standardize`: raw features).  A
 * missing value takes the training median.  k is stated, not chosen; the votes of 10, 20, 100 and 200 neighbours stand
 * beside, as far as there are so many training rows.  The inner folds only say how good a pool is there; a k above the
 * rows of an inner training part is cut to them.  Numbers cannot be voted on. */
#ifndef SN_BENCHMARKS_PROTOCOL_H
#define SN_BENCHMARKS_PROTOCOL_H

#include "benchmarks/scores.h"
#include "core/pool.h"

typedef enum sn_classifier { SN_CLASSIFIER_LINEAR, SN_CLASSIFIER_KNN } sn_classifier;
const char *sn_classifier_name(sn_classifier classifier); /* "linear", "knn" */
SN_MUST_CHECK sn_status sn_classifier_parse(const char *name, sn_classifier *classifier, sn_error *err);

enum { SN_KNN_KS = 4, SN_KNN_K = 20 /* reported unless another is asked for */ };
int64_t sn_knn_k(int64_t i); /* 10, 20, 100, 200 */

enum { SN_PROBE_C = 10, SN_INNER_FOLDS = 5 };
double sn_probe_c(int64_t i); /* 1e-4 ... 1e4 */

/* Items and what is to be predicted. Borrowed. */
typedef struct sn_probe_truth {
  sn_task task;
  int64_t n, n_classes;
  const int32_t *labels;   /* (n) */
  const uint8_t *hot;      /* (n, n_classes) */
  const double *values;    /* (n) */
  const uint64_t *groups;  /* (n) whose item it is */
} sn_probe_truth;

typedef struct sn_protocol_options {
  sn_metric metric;
  bool balanced;           /* linear */
  sn_classifier classifier;
  int64_t k;               /* kNN */
  bool standardize;        /* kNN: features are standardised on the training rows first */
  uint64_t seed;           /* of the inner folds */
  sn_pool *pool;           /* inner folds side by side; the result does not depend on it */
} sn_protocol_options;

typedef struct sn_fold_result {
  double C;                /* linear */
  int64_t k;               /* kNN */
  double inner_score;      /* of that C or k, by the reported metric */
  int64_t n_inner_folds;
  int64_t n_unconverged;   /* fits that did not reach the gradient goal (of all fits) */
  int64_t n_fits;
  int64_t n_filled;        /* missing feature values of the test and training rows replaced by training medians */
} sn_fold_result;

/* x (n, width): features of all items; train (n_train), test (n_test): rows. scores (n_test, n_classes or 1) [out].
 * by_k (SN_KNN_KS, n_test, n_classes) [out]: kNN with the other k, NaN where there are too few training rows; NULL: not wanted.
 * SN_E_ARGUMENT: one class among the training rows, training people fewer than 2, a person on both sides, a metric that no C
 * can be chosen by, k above the training rows, kNN of numbers. */
SN_MUST_CHECK sn_status sn_protocol_fold(const sn_probe_truth *truth, const double *x, int64_t width, const int64_t *train,
                                         int64_t n_train, const int64_t *test, int64_t n_test,
                                         const sn_protocol_options *options, double *scores, double *by_k,
                                         sn_fold_result *out, sn_error *err);

/* The majority row: the commonest class of the training rows (the smaller of equals) with probability 1; multilabel: 1 for
 * labels that at least half have, else 0; regression: the mean. */
SN_MUST_CHECK sn_status sn_protocol_majority(const sn_probe_truth *truth, const int64_t *train, int64_t n_train,
                                             int64_t n_test, double *scores, sn_error *err);

#endif
