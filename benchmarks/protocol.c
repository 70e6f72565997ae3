#include "benchmarks/protocol.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/split.h"
#include "encoders/knn.h"
#include "encoders/logistic.h"
#include "encoders/ridge.h"
#include "encoders/standardizer.h"

const char *sn_classifier_name(sn_classifier classifier) { return classifier == SN_CLASSIFIER_KNN ? "knn" : "linear"; }

sn_status sn_classifier_parse(const char *name, sn_classifier *classifier, sn_error *err) {
  for (int c = SN_CLASSIFIER_LINEAR; c <= SN_CLASSIFIER_KNN; c++) {
    if (strcmp(name, sn_classifier_name((sn_classifier)c)) != 0) continue;
    *classifier = (sn_classifier)c;
    return SN_OK;
  }
  return sn_fail(err, SN_E_ARGUMENT, "classifier '%s': linear or knn", name);
}

int64_t sn_knn_k(int64_t i) { return (const int64_t[SN_KNN_KS]){10, 20, 100, 200}[i]; }

double sn_probe_c(int64_t i) { return pow(10, -4 + 8.0 * (double)i / (SN_PROBE_C - 1)); }

/* ---- fit on some rows, predict others ----------------------------------------------------------------------------------- */

typedef struct fit {
  const sn_probe_truth *truth;
  const double *x;
  int64_t width;
  const int64_t *train, *test;
  int64_t n_train, n_test;
  const sn_protocol_options *options;
  const double *C;      /* (n_c); kNN: k */
  const int64_t *k;
  int64_t n_c;
  sn_pool *pool;        /* kNN: of the last fit */
  double *scores;       /* (n_c, n_test, n_classes) [out] */
  int64_t n_unconverged, n_fits, n_filled;
  double *train_x, *test_x;
} fit;

static int64_t outputs(const sn_probe_truth *truth) { return truth->task == SN_TASK_REGRESSION ? 1 : truth->n_classes; }

/* One set of labels over all C: probabilities of class `column` on go to scores. */
static sn_status fit_logistic(fit *f, const int32_t *labels, int64_t n_classes, int64_t column, sn_error *err) {
  const int64_t K = outputs(f->truth);
  sn_logistic_problem *problem = NULL;
  double *p = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&p, f->n_test * n_classes, sizeof *p, "probe", err), done);
  SN_TRY_GOTO(sn_logistic_problem_create(f->train_x, f->n_train, f->width, labels, n_classes, f->options->balanced, NULL, &problem, err),
              done);
  for (int64_t c = 0; c < f->n_c; c++) {
    sn_logistic *model = NULL;
    SN_TRY_GOTO(sn_logistic_solve(problem, f->C[c], &model, err), done);
    f->n_fits++;
    f->n_unconverged += !model->converged;
    sn_logistic_probabilities(model, f->test_x, f->n_test, p);
    sn_logistic_destroy(model);
    for (int64_t i = 0; i < f->n_test; i++) {
      double *to = f->scores + (c * f->n_test + i) * K;
      if (column >= 0) to[column] = p[2 * i + 1];
      else memcpy(to, p + i * K, (size_t)K * sizeof *to);
    }
  }
done:
  sn_logistic_problem_destroy(problem);
  sn_free(p);
  return status;
}

static void constant(fit *f, int64_t column, double value) {
  const int64_t K = outputs(f->truth);
  for (int64_t i = 0; i < f->n_c * f->n_test; i++) f->scores[i * K + column] = value;
}

static sn_status fit_classes(fit *f, sn_error *err) {
  int32_t *labels = NULL;
  bool several = false;
  SN_TRY(sn_alloc(&labels, f->n_train, sizeof *labels, "probe", err));
  for (int64_t i = 0; i < f->n_train; i++) {
    labels[i] = f->truth->labels[f->train[i]];
    several = several || labels[i] != labels[0];
  }
  sn_status status = SN_OK;
  if (several) {
    status = fit_logistic(f, labels, f->truth->n_classes, -1, err);
  } else {
    for (int64_t k = 0; k < f->truth->n_classes; k++) constant(f, k, k == labels[0]);
  }
  sn_free(labels);
  return status;
}

static sn_status fit_labels(fit *f, sn_error *err) {
  const int64_t K = f->truth->n_classes;
  int32_t *labels = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&labels, f->n_train, sizeof *labels, "probe", err));
  for (int64_t k = 0; k < K && status == SN_OK; k++) {
    bool several = false;
    for (int64_t i = 0; i < f->n_train; i++) {
      labels[i] = f->truth->hot[f->train[i] * K + k];
      several = several || labels[i] != labels[0];
    }
    if (several) status = fit_logistic(f, labels, 2, k, err);
    else constant(f, k, labels[0]);
  }
  sn_free(labels);
  return status;
}

static sn_status fit_values(fit *f, sn_error *err) {
  double *y = NULL, *w = NULL, b;
  sn_ridge *ridge = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&y, f->n_train, sizeof *y, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&w, f->width, sizeof *w, "probe", err), done);
  for (int64_t i = 0; i < f->n_train; i++) y[i] = f->truth->values[f->train[i]];
  SN_TRY_GOTO(sn_ridge_create(f->train_x, y, f->n_train, f->width, &ridge, err), done);
  for (int64_t c = 0; c < f->n_c; c++) {
    SN_TRY_GOTO(sn_ridge_solve(ridge, 1 / f->C[c], w, &b, err), done);
    f->n_fits++;
    for (int64_t i = 0; i < f->n_test; i++) {
      double sum = b;
      for (int64_t j = 0; j < f->width; j++) sum += w[j] * f->test_x[i * f->width + j];
      f->scores[c * f->n_test + i] = sum;
    }
  }
done:
  sn_ridge_destroy(ridge);
  sn_free(y);
  sn_free(w);
  return status;
}

static sn_status fit_knn(fit *f, sn_error *err) {
  const int64_t K = f->truth->n_classes;
  sn_knn_problem p = {.train = f->train_x, .test = f->test_x, .n_train = f->n_train, .n_test = f->n_test,
                      .n_features = f->width, .n_classes = K, .k = f->k, .n_k = f->n_c, .temperature = SN_KNN_TEMPERATURE};
  int32_t *labels = NULL;
  uint8_t *hot = NULL;
  sn_status status;
  if (f->truth->labels != NULL) {
    SN_TRY_GOTO(sn_alloc(&labels, f->n_train, sizeof *labels, "probe", err), done);
    for (int64_t i = 0; i < f->n_train; i++) labels[i] = f->truth->labels[f->train[i]];
    p.labels = labels;
  } else {
    SN_TRY_GOTO(sn_alloc(&hot, f->n_train * K, 1, "probe", err), done);
    for (int64_t i = 0; i < f->n_train; i++) memcpy(hot + i * K, f->truth->hot + f->train[i] * K, (size_t)K);
    p.hot = hot;
  }
  f->n_fits++;
  status = sn_knn_scores(&p, f->pool, f->scores, err);
done:
  sn_free(labels);
  sn_free(hot);
  return status;
}

/* Only missing values are filled. */
static void keep_scale(sn_standardizer *s) {
  for (int64_t j = 0; j < s->n_features; j++) {
    s->mean[j] = 0;
    s->deviation[j] = 1;
  }
}

/* The standardiser sees the training rows only. */
static sn_status run_fit(fit *f, sn_error *err) {
  sn_standardizer *s = NULL;
  int64_t train_size = 0, test_size = 0;
  sn_status status;
  if (!sn_mul_ok(f->n_train, f->width, &train_size) || !sn_mul_ok(f->n_test, f->width, &test_size))
    return sn_fail(err, SN_E_MEMORY, "probe: %lld features of %lld items are too many", (long long)f->width, (long long)f->n_train);
  SN_TRY_GOTO(sn_alloc(&f->train_x, train_size, sizeof(double), "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&f->test_x, test_size, sizeof(double), "probe", err), done);
  SN_TRY_GOTO(sn_standardizer_fit(f->x, f->width, f->train, f->n_train, &s, err), done);
  if (f->options->classifier == SN_CLASSIFIER_KNN && !f->options->standardize) keep_scale(s);
  f->n_filled += sn_standardizer_apply(s, f->x, f->train, f->n_train, f->train_x);
  f->n_filled += sn_standardizer_apply(s, f->x, f->test, f->n_test, f->test_x);
  if (f->options->classifier == SN_CLASSIFIER_KNN) {
    status = fit_knn(f, err);
    goto done;
  }
  switch (f->truth->task) {
    case SN_TASK_MULTILABEL: status = fit_labels(f, err); break;
    case SN_TASK_REGRESSION: status = fit_values(f, err); break;
    default: status = fit_classes(f, err); break;
  }
done:
  sn_standardizer_destroy(s);
  sn_free(f->train_x);
  sn_free(f->test_x);
  f->train_x = f->test_x = NULL;
  return status;
}

/* ---- choosing C on inner folds -------------------------------------------------------------------------------------------- */

typedef struct inner {
  const sn_probe_truth *truth;
  const double *x;
  int64_t width;
  const int64_t *train;
  int64_t n_train;
  const sn_protocol_options *options;
  double C[SN_PROBE_C];
  int64_t n_c;             /* kNN: 1, no C is chosen */
  int32_t *fold_of;        /* (n_train) */
  int64_t n_folds;
  double *scores;          /* (SN_PROBE_C, n_train, outputs) joined */
  fit fits[SN_INNER_FOLDS];
  sn_status statuses[SN_INNER_FOLDS];
  sn_error errors[SN_INNER_FOLDS];
} inner;

static sn_status inner_fold(inner *in, int64_t fold, sn_error *err) {
  const int64_t K = outputs(in->truth);
  int64_t *train = NULL, *test = NULL, *place = NULL;
  double *scores = NULL;
  fit *f = &in->fits[fold];
  sn_status status;
  *f = (fit){.truth = in->truth, .x = in->x, .width = in->width, .options = in->options, .C = in->C, .n_c = in->n_c};
  SN_TRY_GOTO(sn_alloc(&train, in->n_train, sizeof *train, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&test, in->n_train, sizeof *test, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&place, in->n_train, sizeof *place, "probe", err), done);
  for (int64_t i = 0; i < in->n_train; i++) {
    if (in->fold_of[i] != fold) {
      train[f->n_train++] = in->train[i];
    } else {
      place[f->n_test] = i;
      test[f->n_test++] = in->train[i];
    }
  }
  f->train = train;
  f->test = test;
  const int64_t k = in->options->k < f->n_train ? in->options->k : f->n_train;
  f->k = &k;
  SN_TRY_GOTO(sn_alloc(&scores, in->n_c * f->n_test * K, sizeof *scores, "probe", err), done);
  f->scores = scores;
  SN_TRY_GOTO(run_fit(f, err), done);
  for (int64_t c = 0; c < in->n_c; c++)
    for (int64_t i = 0; i < f->n_test; i++)
      memcpy(in->scores + (c * in->n_train + place[i]) * K, scores + (c * f->n_test + i) * K, (size_t)K * sizeof *scores);
done:
  sn_free(train);
  sn_free(test);
  sn_free(place);
  sn_free(scores);
  return status;
}

static void inner_task(void *user, int64_t index, int64_t worker) {
  inner *in = user;
  in->statuses[index] = inner_fold(in, index, &in->errors[index]);
}

/* Truth of some rows, for scoring. */
typedef struct part {
  int32_t *labels;
  uint8_t *hot;
  double *values;
  sn_predictions p;
} part;

static void part_free(part *t) {
  sn_free(t->labels);
  sn_free(t->hot);
  sn_free(t->values);
}

static sn_status part_make(part *t, const sn_probe_truth *truth, const int64_t *rows, int64_t n, sn_error *err) {
  const int64_t K = truth->n_classes;
  memset(t, 0, sizeof *t);
  SN_TRY(sn_alloc(&t->labels, n, sizeof *t->labels, "probe", err));
  SN_TRY(sn_alloc(&t->hot, n * K, sizeof *t->hot, "probe", err));
  SN_TRY(sn_alloc(&t->values, n, sizeof *t->values, "probe", err));
  for (int64_t i = 0; i < n; i++) {
    if (truth->labels != NULL) t->labels[i] = truth->labels[rows[i]];
    if (truth->hot != NULL) memcpy(t->hot + i * K, truth->hot + rows[i] * K, (size_t)K);
    if (truth->values != NULL) t->values[i] = truth->values[rows[i]];
  }
  t->p = (sn_predictions){.task = truth->task, .n = n, .n_classes = outputs(truth), .labels = t->labels, .hot = t->hot,
                          .values = t->values};
  return SN_OK;
}

static sn_status choose(inner *in, sn_fold_result *out, sn_error *err) {
  const sn_metric metric = in->options->metric;
  part truth;
  int64_t best = -1;
  sn_status status;
  SN_TRY_GOTO(part_make(&truth, in->truth, in->train, in->n_train, err), done);
  for (int64_t c = 0; c < in->n_c; c++) {
    sn_scored *scored = NULL;
    sn_metric_values v;
    truth.p.scores = in->scores + c * in->n_train * outputs(in->truth);
    SN_TRY_GOTO(sn_scored_create(&truth.p, &scored, err), done);
    sn_scored_compute(scored, NULL, &v);
    sn_scored_destroy(scored);
    const double value = v.value[metric];
    if (isnan(value)) continue;
    if (best < 0 || (sn_metric_larger_is_better(metric) ? value > out->inner_score : value < out->inner_score)) {
      best = c;
      out->inner_score = value;
    }
  }
  if (best < 0) {
    if (in->options->classifier == SN_CLASSIFIER_KNN) {
      out->inner_score = NAN;
      goto done;
    }
    status = sn_fail(err, SN_E_ARGUMENT, "%s has no value on the %lld training items: C cannot be chosen by it",
                     sn_metric_name(metric), (long long)in->n_train);
    goto done;
  }
  out->C = in->options->classifier == SN_CLASSIFIER_KNN ? NAN : in->C[best];
done:
  part_free(&truth);
  return status;
}

static sn_status select_c(inner *in, sn_fold_result *out, sn_error *err) {
  uint64_t *groups = NULL;
  int32_t *strata = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&in->fold_of, in->n_train, sizeof *in->fold_of, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&groups, in->n_train, sizeof *groups, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&strata, in->n_train, sizeof *strata, "probe", err), done);
  SN_TRY_GOTO(sn_alloc(&in->scores, in->n_c * in->n_train * outputs(in->truth), sizeof *in->scores, "probe", err), done);
  for (int64_t i = 0; i < in->n_train; i++) {
    groups[i] = in->truth->groups[in->train[i]];
    strata[i] = in->truth->labels != NULL ? in->truth->labels[in->train[i]] : -1;
  }
  for (int64_t c = 0; c < SN_PROBE_C; c++) in->C[c] = sn_probe_c(c);
  SN_TRY_GOTO(sn_grouped_folds(groups, strata, in->n_train, SN_INNER_FOLDS, in->options->seed, in->fold_of, &in->n_folds, err),
              done);
  SN_TRY_GOTO(sn_pool_for(in->options->pool, in->n_folds, inner_task, in, err), done);
  for (int64_t f = 0; f < in->n_folds; f++) {
    if (in->statuses[f] != SN_OK) {
      status = in->statuses[f];
      if (err != NULL) *err = in->errors[f];
      goto done;
    }
    out->n_fits += in->fits[f].n_fits;
    out->n_unconverged += in->fits[f].n_unconverged;
  }
  out->n_inner_folds = in->n_folds;
  status = choose(in, out, err);
done:
  sn_free(in->fold_of);
  sn_free(in->scores);
  sn_free(groups);
  sn_free(strata);
  return status;
}

/* ---- a fold ---------------------------------------------------------------------------------------------------------------- */

static int compare_ids(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static sn_status check_sides(const sn_probe_truth *truth, const int64_t *train, int64_t n_train, const int64_t *test,
                             int64_t n_test, sn_error *err) {
  uint64_t *ids = NULL;
  sn_status status = SN_OK;
  if (n_train < 2 || n_test < 1)
    return sn_fail(err, SN_E_ARGUMENT, "probe: %lld training and %lld test items; at least 2 and 1 are needed", (long long)n_train,
                   (long long)n_test);
  SN_TRY(sn_alloc(&ids, n_train, sizeof *ids, "probe", err));
  for (int64_t i = 0; i < n_train; i++) ids[i] = truth->groups[train[i]];
  qsort(ids, (size_t)n_train, sizeof *ids, compare_ids);
  for (int64_t i = 0; i < n_test && status == SN_OK; i++)
    if (bsearch(&truth->groups[test[i]], ids, (size_t)n_train, sizeof *ids, compare_ids) != NULL)
      status = sn_fail(err, SN_E_STATE, "probe: item %lld of the test part belongs to someone in the training part",
                       (long long)test[i]);
  sn_free(ids);
  if (status != SN_OK || truth->labels == NULL) return status;
  for (int64_t i = 1; i < n_train; i++)
    if (truth->labels[train[i]] != truth->labels[train[0]]) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "probe: only one class among the %lld training items", (long long)n_train);
}

static sn_status check_knn(const sn_probe_truth *truth, const sn_protocol_options *options, int64_t n_train, sn_error *err) {
  if (truth->task == SN_TASK_REGRESSION)
    return sn_fail(err, SN_E_ARGUMENT, "kNN votes for classes, and the target is a number: use the linear probe");
  if (options->k < 1 || options->k > n_train)
    return sn_fail(err, SN_E_ARGUMENT, "kNN: k is %lld, and there are %lld training items: k takes 1 to their number",
                   (long long)options->k, (long long)n_train);
  return SN_OK;
}

/* All k in one search: the reported one, then those beside it that are not too large. */
static sn_status last_knn(fit *last, double *scores, double *by_k, sn_error *err) {
  const int64_t size = last->n_test * last->truth->n_classes;
  int64_t k[1 + SN_KNN_KS] = {last->options->k}, of[1 + SN_KNN_KS] = {-1};
  double *all = NULL;
  last->n_c = 1;
  for (int64_t i = 0; i < SN_KNN_KS && by_k != NULL; i++) {
    for (int64_t j = 0; j < size; j++) by_k[i * size + j] = NAN;
    if (sn_knn_k(i) > last->n_train) continue;
    k[last->n_c] = sn_knn_k(i);
    of[last->n_c++] = i;
  }
  SN_TRY(sn_alloc(&all, last->n_c * size, sizeof *all, "probe", err));
  last->k = k;
  last->scores = all;
  sn_status status = run_fit(last, err);
  if (status == SN_OK) memcpy(scores, all, (size_t)size * sizeof *all);
  for (int64_t c = 1; c < last->n_c && status == SN_OK; c++)
    memcpy(by_k + of[c] * size, all + c * size, (size_t)size * sizeof *all);
  sn_free(all);
  return status;
}

sn_status sn_protocol_fold(const sn_probe_truth *truth, const double *x, int64_t width, const int64_t *train, int64_t n_train,
                           const int64_t *test, int64_t n_test, const sn_protocol_options *options, double *scores,
                           double *by_k, sn_fold_result *out, sn_error *err) {
  const bool knn = options->classifier == SN_CLASSIFIER_KNN;
  inner *in = NULL;
  memset(out, 0, sizeof *out);
  SN_TRY(check_sides(truth, train, n_train, test, n_test, err));
  if (knn) SN_TRY(check_knn(truth, options, n_train, err));
  SN_TRY(sn_alloc(&in, 1, sizeof *in, "probe", err));
  in->truth = truth;
  in->x = x;
  in->width = width;
  in->train = train;
  in->n_train = n_train;
  in->options = options;
  in->n_c = knn ? 1 : SN_PROBE_C;
  sn_status status = select_c(in, out, err);
  sn_free(in);
  if (status != SN_OK) return status;
  fit last = {.truth = truth, .x = x, .width = width, .train = train, .n_train = n_train, .test = test, .n_test = n_test,
              .options = options, .C = &out->C, .n_c = 1, .scores = scores, .pool = options->pool};
  out->k = knn ? options->k : 0;
  SN_TRY(knn ? last_knn(&last, scores, by_k, err) : run_fit(&last, err));
  out->n_fits += last.n_fits;
  out->n_unconverged += last.n_unconverged;
  out->n_filled = last.n_filled;
  return SN_OK;
}

sn_status sn_protocol_majority(const sn_probe_truth *truth, const int64_t *train, int64_t n_train, int64_t n_test,
                               double *scores, sn_error *err) {
  const int64_t K = outputs(truth);
  double *sums = NULL;
  int64_t best = 0;
  if (n_train < 1) return sn_fail(err, SN_E_ARGUMENT, "probe: no training items");
  SN_TRY(sn_alloc(&sums, K, sizeof *sums, "probe", err));
  for (int64_t i = 0; i < n_train; i++) {
    if (truth->task == SN_TASK_REGRESSION) sums[0] += truth->values[train[i]] / (double)n_train;
    else if (truth->task == SN_TASK_MULTILABEL)
      for (int64_t k = 0; k < K; k++) sums[k] += truth->hot[train[i] * K + k];
    else sums[truth->labels[train[i]]]++;
  }
  for (int64_t k = 1; k < K; k++) best = sums[k] > sums[best] ? k : best;
  for (int64_t i = 0; i < n_test; i++)
    for (int64_t k = 0; k < K; k++) {
      double *s = &scores[i * K + k];
      if (truth->task == SN_TASK_REGRESSION) *s = sums[0];
      else if (truth->task == SN_TASK_MULTILABEL) *s = 2 * sums[k] >= (double)n_train;
      else *s = k == best;
    }
  sn_free(sums);
  return SN_OK;
}
