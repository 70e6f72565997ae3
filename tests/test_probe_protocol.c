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
      sn_protocol_fold(&c->truth, c->x, D, c->train, c->n_train, c->test, c->n_test, &options, c->scores, out, err);
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
                                     cmocka_unit_test(test_refused),     cmocka_unit_test(test_majority),
                                     cmocka_unit_test(test_c_grid)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
