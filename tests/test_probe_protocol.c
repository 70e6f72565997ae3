/* needs: full */
/* The probe protocol on features made by hand: grouping, selection, every task, and what must be refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "benchmarks/protocol.h"
#include "core/philox.h"
#include "encoders/knn.h"

enum { N = 120, D = 6, PEOPLE = 30 };

typedef struct cohort {
  double x[N * D], values[N], scores[3 * N];
  int32_t labels[N];
  uint8_t hot[N * 3];
  uint64_t groups[N];
  int64_t train[N], test[N], n_train, n_test;
  sn_probe_truth truth;
} cohort;

/* Class c lifts feature c; a third of the people is tested. */
static void make(cohort *c, sn_task task, int64_t n_classes) {
  sn_random random = sn_random_at(5, SN_PURPOSE_TEST, 0, 1);
  memset(c, 0, sizeof *c);
  for (int i = 0; i < N; i++) {
    const int person = i % PEOPLE;
    c->groups[i] = 1000 + (uint64_t)person;
    c->labels[i] = (int32_t)(person % n_classes);
    for (int j = 0; j < D; j++) c->x[i * D + j] = sn_random_normal(&random) + (j == c->labels[i] ? 2.5 : 0);
    c->values[i] = 3 * c->x[i * D] - c->x[i * D + 1] + 0.1 * sn_random_normal(&random) + 7;
    for (int k = 0; k < 3; k++) c->hot[i * 3 + k] = k == 2 ? 0 : c->x[i * D + 3 + k] + 0.3 * sn_random_normal(&random) > 0;
    if (person % 3 == 0) c->test[c->n_test++] = i;
    else c->train[c->n_train++] = i;
  }
  c->truth = (sn_probe_truth){.task = task, .n = N, .n_classes = n_classes, .groups = c->groups};
  if (task == SN_TASK_REGRESSION) c->truth.values = c->values;
  else if (task == SN_TASK_MULTILABEL) c->truth.hot = c->hot;
  else c->truth.labels = c->labels;
}

static sn_status run(cohort *c, sn_metric metric, int64_t threads, sn_fold_result *out, sn_error *err) {
  sn_pool *pool = NULL;
  assert_int_equal(sn_pool_create(threads, &pool, NULL), SN_OK);
  const sn_protocol_options options = {.metric = metric, .balanced = true, .seed = 1, .pool = pool};
  sn_status status =
      sn_protocol_fold(&c->truth, c->x, D, c->train, c->n_train, c->test, c->n_test, &options, c->scores, NULL, out, err);
  sn_pool_destroy(pool);
  return status;
}

static void test_classes(void **state) {
  static cohort c, again;
  sn_fold_result r, s;
  make(&c, SN_TASK_BINARY, 2);
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, NULL), SN_OK);
  int right = 0;
  for (int64_t i = 0; i < c.n_test; i++) {
    right += (c.scores[2 * i + 1] > 0.5) == c.labels[c.test[i]];
    assert_true(fabs(c.scores[2 * i] + c.scores[2 * i + 1] - 1) < 1e-14);
  }
  assert_true(right > 0.9 * (double)c.n_test);
  assert_int_equal(r.n_inner_folds, 5);
  assert_int_equal(r.n_fits, 51);
  assert_int_equal(r.n_unconverged, 0);
  assert_true(r.inner_score > 0.9);
  /* The same bits with other numbers of threads. */
  make(&again, SN_TASK_BINARY, 2);
  assert_int_equal(run(&again, SN_METRIC_AUROC, 3, &s, NULL), SN_OK);
  assert_memory_equal(c.scores, again.scores, sizeof c.scores);
  assert_true(r.C == s.C && r.inner_score == s.inner_score);
  make(&c, SN_TASK_MULTICLASS, 3);
  assert_int_equal(run(&c, SN_METRIC_BALANCED_ACCURACY, 2, &r, NULL), SN_OK);
  assert_true(r.inner_score > 0.85);
}

/* What stands in the test rows must not reach the fit: other test features, same C and same scores of the others. */
static void test_test_rows_are_not_looked_at(void **state) {
  static cohort c, changed;
  sn_fold_result r, s;
  make(&c, SN_TASK_BINARY, 2);
  make(&changed, SN_TASK_BINARY, 2);
  for (int j = 0; j < D; j++) changed.x[changed.test[0] * D + j] = 1e6; /* an outlier would move a scaler that saw it */
  for (int64_t i = 1; i < changed.n_test; i++) changed.labels[changed.test[i]] = 0;
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, NULL), SN_OK);
  assert_int_equal(run(&changed, SN_METRIC_AUROC, 0, &s, NULL), SN_OK);
  assert_true(r.C == s.C && r.inner_score == s.inner_score);
  assert_memory_equal(c.scores + 2, changed.scores + 2, (size_t)(2 * (c.n_test - 1)) * sizeof(double));
}

static void test_other_tasks(void **state) {
  static cohort c;
  sn_fold_result r;
  double error = 0, spread = 0;
  make(&c, SN_TASK_REGRESSION, 1);
  assert_int_equal(run(&c, SN_METRIC_R2, 2, &r, NULL), SN_OK);
  for (int64_t i = 0; i < c.n_test; i++) {
    error += pow(c.scores[i] - c.values[c.test[i]], 2);
    spread += pow(c.values[c.test[i]] - 7, 2);
  }
  assert_true(error < 0.02 * spread && r.inner_score > 0.98);
  make(&c, SN_TASK_MULTILABEL, 3);
  assert_int_equal(run(&c, SN_METRIC_AUROC_MACRO, 2, &r, NULL), SN_OK);
  assert_true(r.inner_score > 0.9);
  for (int64_t i = 0; i < c.n_test; i++) assert_true(c.scores[3 * i + 2] == 0); /* a label that nobody has */
}

static void test_missing_features(void **state) {
  static cohort c;
  sn_fold_result r;
  make(&c, SN_TASK_BINARY, 2);
  c.x[c.train[0] * D] = NAN;
  c.x[c.test[0] * D + 1] = NAN;
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, NULL), SN_OK);
  assert_int_equal(r.n_filled, 2);
}

/* Fault 36: a split that shares a subject; and other things that cannot be probed. */
static void test_refused(void **state) {
  static cohort c;
  sn_fold_result r;
  sn_error err;
  make(&c, SN_TASK_BINARY, 2);
  c.groups[c.test[3]] = c.groups[c.train[0]];
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "training part"));
  make(&c, SN_TASK_BINARY, 2);
  for (int64_t i = 0; i < c.n_train; i++) c.labels[c.train[i]] = 1;
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "one class"));
  make(&c, SN_TASK_BINARY, 2);
  c.n_test = 0;
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, &err), SN_E_ARGUMENT);
  make(&c, SN_TASK_BINARY, 2);
  for (int64_t i = 0; i < c.n_train; i++) c.groups[c.train[i]] = 5; /* one person: no inner folds */
  assert_int_equal(run(&c, SN_METRIC_AUROC, 0, &r, &err), SN_E_ARGUMENT);
}

/* Votes of the features as they are; of standardised ones where they have units; nothing of the test rows is looked at. */
static void test_knn(void **state) {
  static cohort c;
  static double by_k[SN_KNN_KS * N * 2], votes[2 * N], train[N * D], test[N * D];
  int32_t labels[N];
  sn_fold_result r;
  sn_pool *pool = NULL;
  sn_error err;
  sn_protocol_options options = {.metric = SN_METRIC_AUROC, .classifier = SN_CLASSIFIER_KNN, .k = 15, .seed = 1};
  assert_int_equal(sn_pool_create(2, &pool, NULL), SN_OK);
  options.pool = pool;
  for (int units = 0; units < 2; units++) {
    make(&c, SN_TASK_BINARY, 2);
    options.standardize = units == 1;
    for (int i = 0; i < N && units; i++) c.x[i * D + 5] *= 1000; /* seconds among millivolts */
    assert_int_equal(sn_protocol_fold(&c.truth, c.x, D, c.train, c.n_train, c.test, c.n_test, &options, c.scores, by_k, &r, &err),
                     SN_OK);
    assert_true(r.k == 15 && isnan(r.C) && r.n_inner_folds == 5 && r.n_fits == 6 && r.inner_score > 0.8);
    double mean[D] = {0}, deviation[D];
    for (int j = 0; j < D; j++) {
      double squares = 0;
      for (int64_t i = 0; i < c.n_train; i++) mean[j] += c.x[c.train[i] * D + j] / (double)c.n_train;
      for (int64_t i = 0; i < c.n_train; i++) squares += pow(c.x[c.train[i] * D + j] - mean[j], 2);
      deviation[j] = units ? sqrt(squares / (double)c.n_train) : 1;
      if (!units) mean[j] = 0;
    }
    for (int64_t i = 0; i < c.n_train; i++) labels[i] = c.labels[c.train[i]];
    for (int64_t i = 0; i < N; i++)
      for (int j = 0; j < D; j++) {
        if (i < c.n_train) train[i * D + j] = (c.x[c.train[i] * D + j] - mean[j]) / deviation[j];
        if (i < c.n_test) test[i * D + j] = (c.x[c.test[i] * D + j] - mean[j]) / deviation[j];
      }
    const int64_t ks[] = {15, 10, 20};
    sn_knn_problem p = {.train = train, .test = test, .n_train = c.n_train, .n_test = c.n_test, .n_features = D,
                        .n_classes = 2, .labels = labels, .k = ks, .n_k = 1, .temperature = 0.07};
    const double *found[] = {c.scores, by_k, by_k + 2 * c.n_test};
    for (int k = 0; k < 3; k++) {
      p.k = &ks[k];
      assert_int_equal(sn_knn_scores(&p, NULL, votes, NULL), SN_OK);
      for (int64_t i = 0; i < 2 * c.n_test; i++) assert_true(fabs(votes[i] - found[k][i]) < 1e-9);
    }
    for (int64_t i = 0; i < 2 * c.n_test; i++) assert_true(isnan(by_k[4 * c.n_test + i])); /* 80 training rows, 100 asked for */
  }
  options.k = 81;
  assert_int_equal(sn_protocol_fold(&c.truth, c.x, D, c.train, c.n_train, c.test, c.n_test, &options, c.scores, NULL, &r, &err),
                   SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "81"));
  options.k = 15;
  c.x[c.train[0] * D] = NAN;
  assert_int_equal(sn_protocol_fold(&c.truth, c.x, D, c.train, c.n_train, c.test, c.n_test, &options, c.scores, NULL, &r, NULL),
                   SN_OK);
  assert_int_equal(r.n_filled, 1);
  make(&c, SN_TASK_MULTILABEL, 3);
  options.metric = SN_METRIC_AUROC_MACRO;
  assert_int_equal(sn_protocol_fold(&c.truth, c.x, D, c.train, c.n_train, c.test, c.n_test, &options, c.scores, NULL, &r, NULL),
                   SN_OK);
  for (int64_t i = 0; i < c.n_test; i++) assert_true(c.scores[3 * i + 2] == 0); /* a label that nobody has */
  make(&c, SN_TASK_REGRESSION, 1);
  assert_int_equal(sn_protocol_fold(&c.truth, c.x, D, c.train, c.n_train, c.test, c.n_test, &options, c.scores, NULL, &r, &err),
                   SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "number"));
  sn_pool_destroy(pool);
}

static void test_majority(void **state) {
  static cohort c;
  double scores[3 * N];
  make(&c, SN_TASK_MULTICLASS, 3);
  for (int64_t i = 0; i < 10; i++) c.labels[c.train[i]] = 2;
  assert_int_equal(sn_protocol_majority(&c.truth, c.train, c.n_train, c.n_test, scores, NULL), SN_OK);
  assert_true(scores[0] + scores[1] + scores[2] == 1 && scores[2] == 1);
  make(&c, SN_TASK_REGRESSION, 1);
  assert_int_equal(sn_protocol_majority(&c.truth, c.train, c.n_train, c.n_test, scores, NULL), SN_OK);
  double mean = 0;
  for (int64_t i = 0; i < c.n_train; i++) mean += c.values[c.train[i]] / (double)c.n_train;
  assert_true(scores[0] == mean && scores[c.n_test - 1] == mean);
}

static void test_c_grid(void **state) {
  assert_true(fabs(sn_probe_c(0) - 1e-4) < 1e-18 && fabs(sn_probe_c(SN_PROBE_C - 1) - 1e4) < 1e-9);
  for (int i = 1; i < SN_PROBE_C; i++) assert_true(fabs(log10(sn_probe_c(i) / sn_probe_c(i - 1)) - 8.0 / 9) < 1e-12);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes),     cmocka_unit_test(test_test_rows_are_not_looked_at),
                                     cmocka_unit_test(test_other_tasks), cmocka_unit_test(test_missing_features),
                                     cmocka_unit_test(test_refused),     cmocka_unit_test(test_knn),
                                     cmocka_unit_test(test_majority),
                                     cmocka_unit_test(test_c_grid)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
