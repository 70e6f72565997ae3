/* needs: full */
/* Metrics against scikit-learn, and the bootstrap against its definition. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "benchmarks/bootstrap.h"
#include "benchmarks/scores.h"
#include "core/philox.h"
#include "tests/golden/scores_golden.h"

static double noise(int64_t i, int64_t j, int64_t seed) {
  return (double)((i * 7919 + j * 104729 + i * j * 31 + seed * 613) * 2654435761 % 4294967296) / 4294967296.0;
}

enum { MOST = 100, MOST_K = 5 };

typedef struct inputs {
  int32_t labels[MOST];
  uint8_t hot[MOST * MOST_K];
  double values[MOST], scores[MOST * MOST_K], weights[MOST];
  sn_predictions p;
} inputs;

/* The inputs of make_scores.py. */
static void make_inputs(inputs *in, const scores_case *c) {
  for (int i = 0; i < c->n; i++) {
    double sum = 0;
    const int shown = c->seed == 5 ? c->k - 1 : c->k;
    in->weights[i] = c->weighted ? i * 5 % 4 : 1;
    in->labels[i] = (int32_t)(noise(i, 0, c->seed + 100) * shown);
    in->values[i] = noise(i, 0, c->seed + 100) * 10;
    for (int k = 0; k < c->k; k++) {
      const double u = noise(i, k, c->seed);
      double *s = &in->scores[i * c->k + k];
      in->hot[i * c->k + k] = noise(i, k, c->seed + 100) > 0.6;
      if (c->task < 2) *s = rint(u * 8) + 1 + 3.0 * (k == in->labels[i]);
      else if (c->task == 2) *s = rint((u + in->hot[i * c->k + k]) / 2 * 10) / 10;
      else *s = u * 4 + noise(i, 0, c->seed + 100) * 6;
      sum += *s;
    }
    for (int k = 0; k < c->k && c->task < 2; k++) in->scores[i * c->k + k] /= sum;
  }
  in->p = (sn_predictions){.task = (sn_task)c->task, .n = c->n, .n_classes = c->k, .labels = in->labels, .hot = in->hot,
                           .values = in->values, .scores = in->scores};
}

static void test_golden(void **state) {
  static inputs in;
  for (size_t c = 0; c < sizeof SCORES_CASES / sizeof SCORES_CASES[0]; c++) {
    const scores_case *g = &SCORES_CASES[c];
    sn_scored *scored = NULL;
    sn_metric_values v;
    make_inputs(&in, g);
    assert_int_equal(sn_scored_create(&in.p, &scored, NULL), SN_OK);
    sn_scored_compute(scored, in.weights, &v);
    for (int m = 0; m < SN_N_METRICS; m++) {
      assert_int_equal(sn_metric_applies((sn_metric)m, in.p.task), !isnan(g->value[m]));
      if (isnan(g->value[m])) assert_true(isnan(v.value[m]));
      else if (!(fabs(v.value[m] - g->value[m]) <= 1e-12) || !isfinite(v.value[m]))
        fail_msg("case %d, %s: found %.17g, scikit-learn %.17g", (int)c, sn_metric_name((sn_metric)m), v.value[m], g->value[m]);
    }
    if (g->seed == 5) {
      assert_int_equal(v.n_undefined[SN_METRIC_AUROC_MACRO], 1);
      assert_int_equal(v.n_undefined[SN_METRIC_BALANCED_ACCURACY], 1);
      assert_true(sn_metric_class_undefined(scored, SN_METRIC_AUROC_MACRO, 4));
      assert_false(sn_metric_class_undefined(scored, SN_METRIC_AUROC_MACRO, 0));
    }
    sn_scored_destroy(scored);
  }
}

static double binary_auroc(const double *positive_score, const int32_t *labels, int64_t n) {
  double scores[64];
  sn_scored *scored = NULL;
  sn_metric_values v;
  for (int64_t i = 0; i < n; i++) {
    scores[2 * i] = 1 - positive_score[i];
    scores[2 * i + 1] = positive_score[i];
  }
  const sn_predictions p = {.task = SN_TASK_BINARY, .n = n, .n_classes = 2, .labels = labels, .scores = scores};
  assert_int_equal(sn_scored_create(&p, &scored, NULL), SN_OK);
  sn_scored_compute(scored, NULL, &v);
  sn_scored_destroy(scored);
  return v.value[SN_METRIC_AUROC];
}

/* Fault 37: ties in both orders; a single class; fault 33: repeated evaluation does not count an item twice. */
static void test_ties_and_single_class(void **state) {
  const double half[2] = {0.5, 0.5}, four[4] = {0.1, 0.4, 0.4, 0.8};
  const int32_t a[2] = {1, 0}, b[2] = {0, 1}, one[2] = {1, 1}, mixed[4] = {0, 0, 1, 1};
  assert_true(binary_auroc(half, a, 2) == 0.5);
  assert_true(binary_auroc(half, b, 2) == 0.5);
  assert_true(isnan(binary_auroc(half, one, 2)));
  assert_true(binary_auroc(four, mixed, 4) == 3.5 / 4);
}

static void test_bad_inputs(void **state) {
  const double scores[4] = {0.5, 0.5, NAN, 0};
  const int32_t labels[2] = {0, 1}, outside[2] = {0, 2};
  sn_scored *scored = NULL;
  sn_predictions p = {.task = SN_TASK_BINARY, .n = 2, .n_classes = 2, .labels = labels, .scores = scores};
  sn_metric metric;
  sn_error err;
  assert_int_equal(sn_scored_create(&p, &scored, NULL), SN_E_ARGUMENT);
  p.n = 1;
  p.labels = outside + 1;
  assert_int_equal(sn_scored_create(&p, &scored, NULL), SN_E_ARGUMENT);
  p.n = 0;
  assert_int_equal(sn_scored_create(&p, &scored, NULL), SN_E_ARGUMENT);
  assert_int_equal(sn_metric_parse("auroc_macr", SN_TASK_BINARY, &metric, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "auroc_macro"));
  assert_int_equal(sn_metric_parse("auroc", SN_TASK_MULTICLASS, &metric, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_metric_parse("auroc", SN_TASK_BINARY, &metric, &err), SN_OK);
}

static void test_bootstrap(void **state) {
  enum { N = 60, UNITS = 20 };
  static double good[2 * N], poor[2 * N];
  int32_t labels[N];
  int64_t units[N];
  sn_scored *rows[2];
  sn_bootstrap *b = NULL, *again = NULL;
  sn_interval good_auc, poor_auc, gap, self, both;
  for (int i = 0; i < N; i++) {
    units[i] = i % UNITS;
    labels[i] = i % UNITS < 4; /* 4 of 20 units are positive: some draws miss them all */
    const double u = noise(i, 0, 11), v = noise(i, 1, 12);
    good[2 * i + 1] = 0.6 * u + 0.4 * labels[i];
    poor[2 * i + 1] = 0.9 * v + 0.1 * labels[i];
    good[2 * i] = 1 - good[2 * i + 1];
    poor[2 * i] = 1 - poor[2 * i + 1];
  }
  sn_predictions p = {.task = SN_TASK_BINARY, .n = N, .n_classes = 2, .labels = labels, .scores = good};
  assert_int_equal(sn_scored_create(&p, &rows[0], NULL), SN_OK);
  p.scores = poor;
  assert_int_equal(sn_scored_create(&p, &rows[1], NULL), SN_OK);
  assert_int_equal(sn_bootstrap_create(rows, 2, units, UNITS, 1000, 3, &b, NULL), SN_OK);
  assert_true(b->n_redrawn > 0); /* 0.8^20 = 1.2 %: about 12 of 1,000 */
  assert_true(b->n_redrawn < 60);
  const int64_t first = 0, second = 1, two[2] = {0, 1};
  assert_int_equal(sn_bootstrap_interval(b, SN_METRIC_AUROC, &first, 1, NULL, 0, &good_auc, NULL), SN_OK);
  assert_int_equal(sn_bootstrap_interval(b, SN_METRIC_AUROC, &second, 1, NULL, 0, &poor_auc, NULL), SN_OK);
  assert_int_equal(sn_bootstrap_interval(b, SN_METRIC_AUROC, &first, 1, &second, 1, &gap, NULL), SN_OK);
  assert_int_equal(sn_bootstrap_interval(b, SN_METRIC_AUROC, &first, 1, &first, 1, &self, NULL), SN_OK);
  assert_int_equal(sn_bootstrap_interval(b, SN_METRIC_AUROC, two, 2, NULL, 0, &both, NULL), SN_OK);
  assert_true(good_auc.low < good_auc.value && good_auc.value < good_auc.high && good_auc.high <= 1);
  assert_true(fabs(gap.value - (good_auc.value - poor_auc.value)) < 1e-15);
  assert_true(fabs(both.value - (good_auc.value + poor_auc.value) / 2) < 1e-15);
  assert_true(self.value == 0 && self.low == 0 && self.high == 0);
  assert_true(gap.low < gap.value && gap.value < gap.high);
  /* The first draw by hand: units from the documented stream, metric over repeated items. */
  sn_random random = sn_random_at(3, SN_PURPOSE_BOOTSTRAP, 0, 0);
  double weights[N] = {0};
  for (int u = 0; u < UNITS; u++) {
    const int64_t unit = (int64_t)sn_random_below(&random, UNITS);
    for (int i = 0; i < N; i++) weights[i] += units[i] == unit;
  }
  sn_metric_values v;
  sn_scored_compute(rows[1], weights, &v);
  assert_true(v.value[SN_METRIC_BRIER] == b->values[SN_N_METRICS + SN_METRIC_BRIER]);
  assert_int_equal(sn_bootstrap_create(rows, 2, units, UNITS, 1000, 3, &again, NULL), SN_OK);
  assert_memory_equal(b->values, again->values, sizeof(double) * 1000 * 2 * SN_N_METRICS); /* also the NaN of r2 */
  sn_bootstrap_destroy(again);
  assert_int_equal(sn_bootstrap_create(rows, 2, units, 1, 10, 3, &again, NULL), SN_E_ARGUMENT);
  sn_bootstrap_destroy(b);
  sn_scored_destroy(rows[0]);
  sn_scored_destroy(rows[1]);
}

static void test_percentile(void **state) {
  const double v[5] = {1, 2, 4, 8, 16};
  assert_true(sn_percentile(v, 5, 0.5) == 4 && sn_percentile(v, 5, 1) == 16 && sn_percentile(v, 5, 0) == 1);
  assert_true(fabs(sn_percentile(v, 5, 0.1) - 1.4) < 1e-15); /* numpy.percentile(v, 10) */
  assert_true(isnan(sn_percentile(v, 0, 0.5)));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_ties_and_single_class),
                                     cmocka_unit_test(test_bad_inputs), cmocka_unit_test(test_bootstrap),
                                     cmocka_unit_test(test_percentile)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
