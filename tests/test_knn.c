/* kNN votes: against numpy and scikit-learn, and by hand where neighbours or classes tie. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "encoders/knn.h"
#include "tests/golden/knn_golden.h"

/* The inputs of make_knn.py. */
static double *features(int64_t n, int64_t d, int64_t seed) {
  double *x = NULL;
  assert_int_equal(sn_alloc(&x, n * d, sizeof *x, "test", NULL), SN_OK);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < d; j++) {
      int64_t v = (i * 7919 + j * 104729 + i * j * 31 + seed * 613) * 2654435761 % 4294967296;
      x[i * d + j] = (double)v / 4294967296.0 * 4 - 2;
    }
  return x;
}

static void check_near(double found, double expected) {
  if (!(fabs(found - expected) <= 1e-12) || !isfinite(found)) fail_msg("found %.17g, expected %.17g", found, expected);
}

static void test_golden(void **state) {
  for (size_t c = 0; c < sizeof KNN_CASES / sizeof KNN_CASES[0]; c++) {
    const knn_case *g = &KNN_CASES[c];
    double *x = features(g->n_train + g->n_test, g->d, (int64_t)c);
    const int64_t size = g->n_k * g->n_test * g->n_classes;
    double *scores = NULL, *again = NULL;
    int32_t *labels = NULL;
    uint8_t *hot = NULL;
    sn_pool *pool = NULL;
    sn_error err;
    assert_int_equal(sn_alloc(&scores, size, sizeof *scores, "test", NULL), SN_OK);
    assert_int_equal(sn_alloc(&again, size, sizeof *again, "test", NULL), SN_OK);
    assert_int_equal(sn_alloc(&labels, g->n_train, sizeof *labels, "test", NULL), SN_OK);
    assert_int_equal(sn_alloc(&hot, g->n_train * g->n_classes, 1, "test", NULL), SN_OK);
    for (int64_t i = 0; i < g->n_train; i++) {
      labels[i] = (int32_t)floor((x[i * g->d] + 2) / 4 * (double)g->n_classes);
      if (i % 5 == 0) labels[i] = (int32_t)(i / 5 % g->n_classes);
      hot[i * g->n_classes + labels[i]] = 1;
    }
    sn_knn_problem p = {.train = x, .test = x + g->n_train * g->d, .n_train = g->n_train, .n_test = g->n_test,
                        .n_features = g->d, .n_classes = g->n_classes, .labels = labels, .k = g->k, .n_k = g->n_k,
                        .temperature = SN_KNN_TEMPERATURE};
    if (sn_knn_scores(&p, NULL, scores, &err) != SN_OK) fail_msg("%s", err.message);
    for (int64_t i = 0; i < size; i++) check_near(scores[i], g->p[i]);
    /* Several threads, and labels as columns: the same bytes. */
    assert_int_equal(sn_pool_create(3, &pool, NULL), SN_OK);
    p.labels = NULL;
    p.hot = hot;
    assert_int_equal(sn_knn_scores(&p, pool, again, NULL), SN_OK);
    assert_memory_equal(scores, again, (size_t)size * sizeof *scores);
    sn_pool_destroy(pool);
    sn_free(x);
    sn_free(scores);
    sn_free(again);
    sn_free(labels);
    sn_free(hot);
  }
}

static void test_ties(void **state) {
  /* Rows 0 and 1 are as near as each other, and of rows 2 and 3 one is a multiple of the other. */
  const double train[] = {1, 1, 1, -1, -3, 0, -6, 0}, test[] = {2, 0, 0, 0};
  const int32_t labels[] = {1, 0, 1, 0};
  const int64_t k[] = {1, 2, 4};
  double s[3 * 2 * 2];
  sn_knn_problem p = {.train = train, .test = test, .n_train = 4, .n_test = 2, .n_features = 2, .n_classes = 2,
                      .labels = labels, .k = k, .n_k = 3, .temperature = SN_KNN_TEMPERATURE};
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_OK);
  assert_true(s[0] == 0 && s[1] == 1);                       /* k 1: the earlier row, class 1 */
  assert_true(s[4] == 0.5 && s[5] == 0.5);                   /* k 2: one vote each; the first of the largest is class 0 */
  check_near(s[8], 0.5);                                     /* k 4: far rows of both classes */
  assert_true(s[2] == 0 && s[3] == 1);                       /* a row of zeros is as near to every row */
  assert_true(s[10] == 0.5 && s[11] == 0.5);
}

/* A long vector does not outvote a short one, and features near the ends of the range do no harm. */
static void test_scale(void **state) {
  const double train[] = {1e200, 0, 0, 1e-200}, test[] = {1, 1e-3};
  const int32_t labels[] = {0, 1};
  const int64_t k = 2;
  double s[2];
  sn_knn_problem p = {.train = train, .test = test, .n_train = 2, .n_test = 1, .n_features = 2, .n_classes = 2,
                      .labels = labels, .k = &k, .n_k = 1, .temperature = 1};
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_OK);
  /* |x| 1e-200 is below 1e-12: almost a row of zeros, similarity 1e-3 * 1e-188. */
  const double a = exp(1 / sqrt(1 + 1e-6)), b = 1;
  check_near(s[0], a / (a + b));
  check_near(s[0] + s[1], 1);
}

static void test_several_labels(void **state) {
  const double train[] = {1, 0, 1, 0.1, 0, 1}, test[] = {1, 0};
  const uint8_t hot[] = {1, 1, 0, 1, 1, 0};
  const int64_t k = 2;
  double s[2];
  sn_knn_problem p = {.train = train, .test = test, .n_train = 3, .n_test = 1, .n_features = 2, .n_classes = 2, .hot = hot,
                      .k = &k, .n_k = 1, .temperature = 0.1};
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_OK);
  const double w = exp((1 / sqrt(1.01) - 1) / 0.1);
  check_near(s[0], 1 / (1 + w));
  check_near(s[1], 1);
}

static void test_refusals(void **state) {
  double train[] = {1, 0, 0, 1}, test[] = {1, 1}, s[2];
  int32_t labels[] = {0, 1};
  int64_t k = 2;
  sn_knn_problem p = {.train = train, .test = test, .n_train = 2, .n_test = 1, .n_features = 2, .n_classes = 2,
                      .labels = labels, .k = &k, .n_k = 1, .temperature = 1};
  sn_error err;
  assert_int_equal(sn_knn_scores(&p, NULL, s, &err), SN_OK);
  k = 3;
  assert_int_equal(sn_knn_scores(&p, NULL, s, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "k 3 of 2"));
  k = 0;
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_E_ARGUMENT);
  k = 1;
  labels[1] = 2;
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_E_ARGUMENT);
  labels[1] = 1;
  train[3] = NAN;
  assert_int_equal(sn_knn_scores(&p, NULL, s, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "training row 1"));
  train[3] = 1;
  test[0] = INFINITY;
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_E_ARGUMENT);
  test[0] = 1;
  p.temperature = 0;
  assert_int_equal(sn_knn_scores(&p, NULL, s, NULL), SN_E_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden), cmocka_unit_test(test_ties), cmocka_unit_test(test_scale),
                                     cmocka_unit_test(test_several_labels), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
