/* Closed-form learners: against scikit-learn's convention solved to the minimum, and against the optimality conditions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "encoders/dense_f64.h"
#include "encoders/logistic.h"
#include "encoders/ridge.h"
#include "encoders/standardizer.h"
#include "tests/golden/logistic_golden.h"
#include "worst.h"

/* The inputs of make_logistic.py. */
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

static void make_labels(const double *x, int64_t n, int64_t d, int64_t k, int32_t *y) {
  for (int64_t i = 0; i < n; i++) {
    double best = -INFINITY;
    for (int64_t c = 0; c < k; c++) {
      const double a = x[i * d + c % d], b = x[i * d + (2 * c + 1) % d], score = a + 0.5 * (b * b);
      if (score > best) {
        best = score;
        y[i] = (int32_t)c;
      }
    }
    if (i % 7 == 0) y[i] = (int32_t)(i / 7 % k);
  }
}

static void check_near(double found, double expected, double tolerance) {
  if (!(fabs(found - expected) <= tolerance) || !isfinite(found)) fail_msg("found %.17g, expected %.17g", found, expected);
}

static void test_logistic_golden(void **state) {
  for (size_t c = 0; c < sizeof LOGISTIC_CASES / sizeof LOGISTIC_CASES[0]; c++) {
    const logistic_case *g = &LOGISTIC_CASES[c];
    const int64_t n = g->n, d = g->d, k = g->k;
    double *x = features(n, d, (int64_t)c), weights[64], *p = NULL;
    int32_t y[64];
    sn_logistic_problem *problem = NULL;
    sn_logistic *model = NULL;
    sn_error err;
    make_labels(x, n, d, k, y);
    for (int64_t i = 0; i < n; i++) weights[i] = g->weighted ? (double)(1 + i % 3) : 1;
    assert_int_equal(sn_logistic_problem_create(x, n, d, y, k, g->balanced, weights, &problem, &err), SN_OK);
    assert_int_equal(sn_logistic_solve(problem, g->C, &model, &err), SN_OK);
    assert_true(model->converged);
    double scale = 1;
    for (int64_t i = 0; i < (k == 2 ? 1 : k) * d; i++) scale = fmax(scale, fabs(g->w[i]));
    for (int64_t r = 0; r < (k == 2 ? 1 : k); r++) {
      for (int64_t j = 0; j < d; j++) {
        const double w = k == 2 ? model->weights[d + j] - model->weights[j] : model->weights[r * d + j];
        check_near(w, g->w[r * d + j], 1e-6 * scale);
      }
      check_near(k == 2 ? model->bias[1] - model->bias[0] : model->bias[r], g->b[r], 1e-6 * scale);
    }
    assert_int_equal(sn_alloc(&p, n * k, sizeof *p, "test", NULL), SN_OK);
    sn_logistic_probabilities(model, x, n, p);
    for (int64_t i = 0; i < n * k; i++) check_near(p[i], g->p[i], 1e-8);
    sn_free(p);
    sn_free(x);
    sn_logistic_destroy(model);
    sn_logistic_problem_destroy(problem);
  }
}

/* The gradient of the objective, from its definition. */
static double gradient_norm(const double *x, const int32_t *y, int64_t n, int64_t d, int64_t k, double C,
                            const sn_logistic *model) {
  double *g = NULL, *p = NULL, worst = 0;
  assert_int_equal(sn_alloc(&g, k * (d + 1), sizeof *g, "test", NULL), SN_OK);
  assert_int_equal(sn_alloc(&p, n * k, sizeof *p, "test", NULL), SN_OK);
  sn_logistic_probabilities(model, x, n, p);
  for (int64_t i = 0; i < n; i++)
    for (int64_t c = 0; c < k; c++) {
      const double e = C * (p[i * k + c] - (y[i] == c));
      for (int64_t j = 0; j < d; j++) g[c * (d + 1) + j] += e * x[i * d + j];
      g[c * (d + 1) + d] += e;
    }
  for (int64_t c = 0; c < k; c++)
    for (int64_t j = 0; j <= d; j++) {
      /* Two classes: w = 2 * row, and its gradient is that of row 1. */
      const double penalty = j < d ? (k == 2 ? 2 : 1) * model->weights[c * d + j] : 0;
      worst = worse_of(worst, fabs(g[c * (d + 1) + j] + penalty));
    }
  sn_free(g);
  sn_free(p);
  return worst;
}

static void random_set(double *x, int32_t *y, int64_t n, int64_t d, int64_t k, double separation) {
  sn_random random = sn_random_at(7, SN_PURPOSE_TEST, 0, (uint64_t)(n * 1000 + d));
  for (int64_t i = 0; i < n; i++) {
    y[i] = (int32_t)(i % k);
    const double common = sn_random_normal(&random);
    for (int64_t j = 0; j < d; j++) /* correlated, as features of a network are */
      x[i * d + j] = sn_random_normal(&random) * (1 + (double)(j % 5)) + 3 * common + (j % k == y[i] ? separation : 0);
  }
}

static void test_logistic_optimality(void **state) {
  static const struct { int64_t n, d, k; double separation; } CASES[] = {
      {400, 37, 2, 0.3}, {90, 150, 2, 0.5}, {150, 40, 5, 5.0}, {60, 300, 4, 5.0}, {2000, 64, 2, 6.0}};
  for (size_t c = 0; c < sizeof CASES / sizeof CASES[0]; c++) {
    const int64_t n = CASES[c].n, d = CASES[c].d, k = CASES[c].k;
    double *x = NULL;
    int32_t *y = NULL;
    sn_logistic_problem *problem = NULL;
    sn_error err;
    assert_int_equal(sn_alloc(&x, n * d, sizeof *x, "test", NULL), SN_OK);
    assert_int_equal(sn_alloc(&y, n, sizeof *y, "test", NULL), SN_OK);
    random_set(x, y, n, d, k, CASES[c].separation);
    assert_int_equal(sn_logistic_problem_create(x, n, d, y, k, false, NULL, &problem, &err), SN_OK);
    for (int e = 0; e < 10; e++) {
      const double C = pow(10, -4 + 8.0 * e / 9);
      sn_logistic *model = NULL;
      assert_int_equal(sn_logistic_solve(problem, C, &model, &err), SN_OK);
      if (!model->converged) fail_msg("case %d, C %g: gradient %g after %d steps", (int)c, C, model->gradient, (int)model->iterations);
      const double norm = gradient_norm(x, y, n, d, k, C, model);
      if (!(norm <= fmax(2e-8, 2e-11 * C * (double)n))) fail_msg("case %d, C %g: gradient %g", (int)c, C, norm);
      sn_logistic_destroy(model);
    }
    sn_logistic_problem_destroy(problem);
    sn_free(x);
    sn_free(y);
  }
}

static void test_logistic_absent_class(void **state) {
  const double x[6] = {0, 1, 2, 3, 4, 5};
  const int32_t y[6] = {0, 0, 2, 0, 2, 2}, one[6] = {1, 1, 1, 1, 1, 1}, bad[6] = {0, 1, 3, 0, 1, 1};
  double p[18];
  sn_logistic_problem *problem = NULL;
  sn_logistic *model = NULL;
  sn_error err;
  assert_int_equal(sn_logistic_problem_create(x, 6, 1, y, 3, true, NULL, &problem, &err), SN_OK);
  assert_int_equal(sn_logistic_solve(problem, 1, &model, &err), SN_OK);
  sn_logistic_probabilities(model, x, 6, p);
  for (int i = 0; i < 6; i++) {
    assert_true(p[3 * i + 1] == 0);
    check_near(p[3 * i] + p[3 * i + 2], 1, 1e-15);
  }
  assert_true(p[0] > p[2] && p[15] < p[17]);
  sn_logistic_destroy(model);
  assert_int_equal(sn_logistic_solve(problem, 0, &model, &err), SN_E_ARGUMENT);
  sn_logistic_problem_destroy(problem);
  assert_int_equal(sn_logistic_problem_create(x, 6, 1, one, 3, true, NULL, &problem, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_logistic_problem_create(x, 6, 1, bad, 3, true, NULL, &problem, &err), SN_E_ARGUMENT);
  const double nan[2] = {NAN, 1};
  assert_int_equal(sn_logistic_problem_create(nan, 2, 1, bad, 2, true, NULL, &problem, &err), SN_E_ARGUMENT);
}

static void test_ridge_golden(void **state) {
  for (size_t c = 0; c < sizeof RIDGE_CASES / sizeof RIDGE_CASES[0]; c++) {
    const ridge_case *g = &RIDGE_CASES[c];
    double *x = features(g->n, g->d, 50 + (int64_t)c), *extra = features(g->n, 1, 90 + (int64_t)c), y[64], w[64], b;
    sn_ridge *ridge = NULL;
    sn_error err;
    for (int i = 0; i < g->n; i++) y[i] = x[i * g->d] * 2 - x[i * g->d + 1] + extra[i] + 3;
    assert_int_equal(sn_ridge_create(x, y, g->n, g->d, &ridge, &err), SN_OK);
    assert_int_equal(sn_ridge_solve(ridge, 1e6, w, &b, &err), SN_OK); /* another first: nothing of it may stay */
    assert_int_equal(sn_ridge_solve(ridge, g->alpha, w, &b, &err), SN_OK);
    for (int j = 0; j < g->d; j++) check_near(w[j], g->w[j], 1e-9);
    check_near(b, g->b, 1e-9);
    sn_ridge_destroy(ridge);
    sn_free(x);
    sn_free(extra);
  }
}

/* Fault 36: mean 1.5 and deviation 1.118034 of train 0, 1, 2, 3, whatever the test part holds. */
static void test_standardizer(void **state) {
  const double x[10] = {0, 5, 1, 5, 2, NAN, 3, 5, 100, 5};
  const int64_t train[4] = {0, 1, 2, 3}, all[5] = {0, 1, 2, 3, 4};
  double z[10];
  sn_standardizer *s = NULL;
  sn_error err;
  assert_int_equal(sn_standardizer_fit(x, 2, train, 4, &s, &err), SN_OK);
  check_near(s->mean[0], 1.5, 0);
  check_near(s->deviation[0], 1.118034, 5e-7);
  assert_true(s->deviation[1] == 1 && s->median[1] == 5);
  assert_int_equal(sn_standardizer_apply(s, x, all, 5, z), 1);
  check_near(z[8], (100 - 1.5) / s->deviation[0], 1e-12);
  assert_true(z[5] == 0);
  sn_standardizer_destroy(s);
  assert_int_equal(sn_standardizer_fit(x, 2, train, 0, &s, &err), SN_E_ARGUMENT);
}

static void test_lq(void **state) {
  enum { n = 5, d = 9 };
  double *x = features(n, d, 3), keep[n * d], z[n * n], tau[n], v[n], w[d];
  memcpy(keep, x, sizeof keep);
  sn_f64_lq(x, z, tau, n, d);
  for (int i = 0; i < n; i++) v[i] = 1.0 / (i + 1);
  sn_f64_lq_back(w, x, tau, v, n, d);
  check_near(sn_f64_dot(w, w, d), sn_f64_dot(v, v, n), 1e-14);
  for (int i = 0; i < n; i++) {
    check_near(sn_f64_dot(keep + i * d, w, d), sn_f64_dot(z + i * n, v, n), 1e-13);
    for (int j = i + 1; j < n; j++) assert_true(z[i * n + j] == 0);
  }
  sn_free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lq),                  cmocka_unit_test(test_logistic_golden),
      cmocka_unit_test(test_logistic_optimality), cmocka_unit_test(test_logistic_absent_class),
      cmocka_unit_test(test_ridge_golden),        cmocka_unit_test(test_standardizer)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
