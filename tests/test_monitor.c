/* Monitors: every value against a second implementation or a value known beforehand; the rules on runs that collapse, rest or do
 * neither; resume and ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/json.h"
#include "core/philox.h"
#include "engine/monitor.h"
#include "engine/monitor_values.h"
#include "tests/train_runs.h"

static double uniform(uint64_t *seed) { /* [-0.5, 0.5) */
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(*seed >> 11) / 9007199254740992.0 - 0.5;
}

static void assert_close(double found, double expected, double tolerance, const char *what) {
  if (!(fabs(found - expected) <= tolerance)) fail_msg("%s: found %.17g, expected %.17g", what, found, expected);
}

/* Orthonormal columns (n, k), orthogonal to the ones when centred, by Gram-Schmidt, twice. */
static void orthonormal(double *u, int n, int k, bool centred, uint64_t seed) {
  for (int j = 0; j < k; j++) {
    for (int i = 0; i < n; i++) u[i * k + j] = uniform(&seed);
    for (int pass = 0; pass < 2; pass++) {
      double mean = 0, norm = 0;
      for (int i = 0; i < n; i++) mean += u[i * k + j] / n;
      for (int i = 0; i < n && centred; i++) u[i * k + j] -= mean;
      for (int before = 0; before < j; before++) {
        double d = 0;
        for (int i = 0; i < n; i++) d += u[i * k + j] * u[i * k + before];
        for (int i = 0; i < n; i++) u[i * k + j] -= d * u[i * k + before];
      }
      for (int i = 0; i < n; i++) norm += u[i * k + j] * u[i * k + j];
      for (int i = 0; i < n; i++) u[i * k + j] /= sqrt(norm);
    }
  }
}

/* Rows U S V^T plus a constant row: the singular values of the centred rows are S. */
static void test_rank(void **state) {
  static const struct { int n, c, k; } SHAPES[] = {{7, 5, 3}, {5, 11, 4}, {40, 8, 8}, {33, 64, 20}, {2, 3, 1}};
  for (size_t t = 0; t < sizeof SHAPES / sizeof SHAPES[0]; t++) {
    const int n = SHAPES[t].n, c = SHAPES[t].c, k = SHAPES[t].k;
    double *u = test_calloc((size_t)(n * k), 8), *v = test_calloc((size_t)(c * k), 8), *x = test_calloc((size_t)(n * c), 8);
    double sum = 0, entropy = 0, found;
    orthonormal(u, n, k, true, 3 + t);
    orthonormal(v, c, k, false, 90 + t);
    for (int i = 0; i < n; i++)
      for (int j = 0; j < c; j++) {
        x[i * c + j] = 5 - j;
        for (int s = 0; s < k; s++) x[i * c + j] += u[i * k + s] * v[j * k + s] * (1 + 2.5 * s);
      }
    for (int s = 0; s < k; s++) sum += 1 + 2.5 * s;
    for (int s = 0; s < k; s++) entropy -= (1 + 2.5 * s) / sum * log((1 + 2.5 * s) / sum);
    assert_int_equal(sn_monitor_rank(&found, x, n, c, NULL), SN_OK);
    assert_close(found, exp(entropy), 1e-5 * k, "rank");
    for (int i = 0; i < n * c; i++) x[i] = 3;
    assert_int_equal(sn_monitor_rank(&found, x, n, c, NULL), SN_OK);
    assert_close(found, 0, 0, "rank of equal rows");
    test_free(u);
    test_free(v);
    test_free(x);
  }
}

/* Trace, squares and each eigenvalue of a known Q diag Q^T, repeated, zero and negative ones among them. */
static void test_eigenvalues(void **state) {
  static const double KNOWN[] = {-3, -3, 0, 0, 1e-3, 1, 1, 2, 7.5, 1000};
  enum { N = 10 };
  double q[N * N], a[N * N], found[N];
  orthonormal(q, N, N, false, 11);
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      a[i * N + j] = 0;
      for (int k = 0; k < N; k++) a[i * N + j] += q[i * N + k] * KNOWN[k] * q[j * N + k];
    }
  assert_int_equal(sn_monitor_eigenvalues(found, a, N, NULL), SN_OK);
  for (int i = 0; i < N; i++) assert_close(found[i], KNOWN[i], 1e-11, "eigenvalue");
}

enum { ROWS = 23, WIDTH = 6 };

static void fill(double *x, uint64_t seed) {
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = uniform(&seed) + 0.2 * (i % WIDTH);
}

/* In one go from sums of squares, against means first and two packs merged. */
static void test_std(void **state) {
  double x[ROWS * WIDTH], mean[2][WIDTH], m2[2][WIDTH], expected = 0, n = 9;
  fill(x, 5);
  for (int k = 0; k < WIDTH; k++) {
    double s = 0, ss = 0;
    for (int i = 0; i < ROWS; i++) {
      s += x[i * WIDTH + k];
      ss += x[i * WIDTH + k] * x[i * WIDTH + k];
    }
    expected += sqrt(ss / ROWS - s / ROWS * s / ROWS) / WIDTH;
  }
  sn_monitor_moments(mean[0], m2[0], x, 9, WIDTH);
  sn_monitor_moments(mean[1], m2[1], x + 9 * WIDTH, ROWS - 9, WIDTH);
  sn_monitor_merge(&n, mean[0], m2[0], ROWS - 9, mean[1], m2[1], WIDTH);
  assert_close(n, ROWS, 0, "count");
  assert_close(sn_monitor_std(n, m2[0], WIDTH), expected, 1e-13, "std");
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = -4;
  sn_monitor_moments(mean[0], m2[0], x, ROWS, WIDTH);
  assert_close(sn_monitor_std(ROWS, m2[0], WIDTH), 0, 0, "std of constant features");
  assert_true(isnan(sn_monitor_std(0, m2[0], WIDTH)));
}

static void test_uniformity_and_entropy(void **state) {
  double x[ROWS * WIDTH], unit[ROWS * WIDTH], similarity[ROWS][ROWS], mean = 0, entropy = 0, found;
  fill(x, 8);
  sn_monitor_normalise(unit, x, ROWS, WIDTH);
  for (int i = 0; i < ROWS; i++)
    for (int j = 0; j < ROWS; j++) {
      double ab = 0, aa = 0, bb = 0;
      for (int k = 0; k < WIDTH; k++) {
        ab += x[i * WIDTH + k] * x[j * WIDTH + k];
        aa += x[i * WIDTH + k] * x[i * WIDTH + k];
        bb += x[j * WIDTH + k] * x[j * WIDTH + k];
      }
      similarity[i][j] = ab / sqrt(aa * bb);
    }
  for (int i = 0; i < ROWS; i++) {
    double sum = 0;
    for (int j = 0; j < ROWS; j++)
      if (j != i) mean += exp(-4 * (1 - similarity[i][j])) / (ROWS * (ROWS - 1)); /* |a - b|^2 = 2 - 2 a.b */
    for (int j = 0; j < ROWS; j++)
      if (j != i) sum += exp(similarity[i][j] / 0.1);
    for (int j = 0; j < ROWS; j++) {
      const double p = exp(similarity[i][j] / 0.1) / sum;
      if (j != i) entropy -= p * log(p) / ROWS;
    }
  }
  assert_close(sn_monitor_uniformity(unit, ROWS, WIDTH), log(mean), 1e-12, "uniformity");
  assert_int_equal(sn_monitor_entropy(&found, unit, ROWS, WIDTH, NULL), SN_OK);
  assert_close(found, entropy / log(ROWS - 1), 1e-12, "entropy");
  assert_true(found > 0.3 && found < 0.999);
  for (int i = 0; i < ROWS * WIDTH; i++) x[i] = 1;
  sn_monitor_normalise(unit, x, ROWS, WIDTH);
  assert_close(sn_monitor_uniformity(unit, ROWS, WIDTH), 0, 1e-15, "uniformity of equal rows");
  assert_int_equal(sn_monitor_entropy(&found, unit, ROWS, WIDTH, NULL), SN_OK);
  assert_close(found, 1, 1e-12, "entropy of equal rows");
  assert_true(isnan(sn_monitor_uniformity(unit, 1, WIDTH)));
}

/* Tokens x = place + input of known variances: the share is found on average; places alone give 0, none 1. */
static void test_input_share(void **state) {
  enum { PLACES = 40, EACH = 25, C = 4, N = PLACES * EACH };
  static double x[N * C], places[PLACES * C];
  static int64_t keys[N];
  sn_token_anova a;
  const struct { double place, input; } CASES[] = {{1, 2}, {3, 0.5}, {0, 1}, {1, 0}};
  for (int t = 0; t < 4; t++) {
    double mean = 0;
    for (int repeat = 0; repeat < 20; repeat++) {
      uint64_t seed = 17 + (uint64_t)(100 * t + repeat);
      for (int i = 0; i < PLACES * C; i++) places[i] = CASES[t].place * uniform(&seed);
      for (int i = 0; i < N; i++) {
        keys[i] = 1000 - 7 * (i % PLACES); /* neither sorted nor dense */
        for (int k = 0; k < C; k++) x[i * C + k] = places[i % PLACES * C + k] + CASES[t].input * uniform(&seed);
      }
      assert_int_equal(sn_monitor_anova(&a, x, keys, N, C, NULL), SN_OK);
      assert_close(a.within_free + a.between_free, N - 1, 0, "degrees of freedom");
      mean += sn_monitor_input_share(&a) / 20;
    }
    const double p = CASES[t].place * CASES[t].place, i = CASES[t].input * CASES[t].input;
    assert_close(mean, i / (p + i), i == 0 ? 1e-12 : 0.015, "input share");
  }
  for (int i = 0; i < N; i++) keys[i] = i; /* no place twice */
  assert_int_equal(sn_monitor_anova(&a, x, keys, N, C, NULL), SN_OK);
  assert_true(isnan(sn_monitor_input_share(&a)));
}

static void test_subjects(void **state) {
  /* Unit rows in a plane, by angle; subject 0 is unknown, and sample 3 has two views. */
  static const double ANGLE[] = {0, 0.1, 1, 1.05, 1.06, 2, 3};
  static const uint64_t SAMPLES[] = {1, 2, 3, 3, 4, 5, 6}, SUBJECTS[] = {7, 7, 8, 8, 9, 8, 0};
  double unit[14], knn, chance;
  for (int i = 0; i < 7; i++) {
    unit[2 * i] = cos(ANGLE[i]);
    unit[2 * i + 1] = sin(ANGLE[i]);
  }
  sn_monitor_subjects(&knn, &chance, unit, SAMPLES, SUBJECTS, 7, 2);
  /* Asked: 0, 1 (hits), 2 and 3 (nearest other window is 9's), 5 (nearest 9's). */
  assert_close(knn, 2.0 / 5, 1e-15, "subject kNN");
  assert_close(chance, (1.0 / 5 + 1.0 / 5 + 1.0 / 4 + 1.0 / 4 + 2.0 / 5) / 5, 1e-15, "chance");
  sn_monitor_subjects(&knn, &chance, unit, SAMPLES, SUBJECTS + 4, 1, 2);
  assert_true(isnan(knn) && isnan(chance));
}

/* --- runs --------------------------------------------------------------------------------------------------------- */

/* The value of a key in the metrics line of a step; NaN for null, and fails where it is absent. */
static double metric(const char *run, int64_t step, const char *key) {
  char *data, wanted[64];
  int64_t n;
  double value = NAN;
  read_run_file(run, "metrics.jsonl", &data, &n);
  snprintf(wanted, sizeof wanted, "{\"step\":%lld,", (long long)step);
  char *line = strstr(data, wanted);
  if (line == NULL) {
    snprintf(wanted, sizeof wanted, "{\"step\": %lld,", (long long)step);
    line = strstr(data, wanted);
  }
  assert_non_null(line);
  sn_json *json = NULL;
  assert_int_equal(sn_json_parse(line, (int64_t)strcspn(line, "\n"), "metrics", &json, NULL), SN_OK);
  assert_non_null(sn_json_get(json, key));
  (void)sn_json_as_f64(sn_json_get(json, key), &value);
  sn_json_destroy(json);
  sn_free(data);
  return value;
}

static const char COLLAPSES[] = "objective.name=jepa\njepa.predictor_width=16\njepa.predictor_heads=1\njepa.predictor_depth=1\n"
                                "jepa.momentum=0\njepa.momentum_end=0\njepa.target_norm=none\njepa.loss=l2\ntrain.ema=0\n"
                                "train.lr=2e-2\ntrain.schedule=constant\ntrain.threads=1\n"
                                "train.steps=120\nmonitor.every=20\ntrain.pack_tokens=128\n";

/* At the second observation in a row that is low, not before: 2 x monitor.every steps after it happened at the latest. */
static void test_collapse_is_flagged(void **state) {
  char run[320];
  const sn_train_result r = train("collapses", COLLAPSES, false, 0, run);
  int64_t low = 0, expected = 0;
  for (int64_t s = 20; s <= 120 && expected == 0; s += 20) {
    low = metric(run, s, "monitor_std") < 0.05 ? low + 1 : 0;
    if (low == 2) expected = s;
    assert_close(metric(run, s, "collapsed"), low == 2, 0, "collapsed");
  }
  assert_true(expected > 0);
  assert_true(r.state.monitor.collapsed);
  assert_int_equal(r.state.monitor.collapsed_at, expected);
  assert_close(metric(run, 120, "monitor_agreement"), 1, 1e-6, "a target of momentum 0 is the encoder");
}

static void test_plain_run_is_not_flagged(void **state) {
  char run[320];
  const sn_train_result r = train("plain", "train.steps=120\nmonitor.every=20\ntrain.pack_tokens=128\ntrain.threads=1\n", false, 0, run);
  for (int64_t s = 20; s <= 120; s += 20) {
    assert_true(metric(run, s, "monitor_std") > 0.1 && metric(run, s, "monitor_input_share") > 0.1);
    assert_true(metric(run, s, "monitor_rank") > 2 && metric(run, s, "monitor_rank") < 32);
    assert_close(metric(run, s, "collapsed"), 0, 0, "collapsed");
  }
  assert_int_equal(r.state.monitor.collapsed_at, 0);
  assert_int_equal(r.primitives_after_10, 0);
  assert_true(isnan(metric(run, 120, "monitor_agreement")) && isnan(metric(run, 120, "monitor_subject_knn")));
}

static sn_train_result rest(const char *name, const char *rate, char run[320]) {
  char settings[512];
  snprintf(settings, sizeof settings, "train.steps=40\nmonitor.every=10\nmonitor.plateau_steps=10\nmonitor.plateau_gain=0.05\n"
           "train.warmup=0\ntrain.schedule=constant\ntrain.threads=1\ntrain.lr=%s\n", rate);
  return train(name, settings, false, 0, run);
}

static void test_plateau(void **state) {
  char run[320];
  sn_train_result r = rest("flat", "1e-12", run);
  assert_true(r.state.monitor.plateau);
  assert_int_equal(r.state.monitor.best_at, 10);
  assert_close(metric(run, 10, "plateau"), 0, 0, "plateau");
  assert_close(metric(run, 20, "plateau"), 1, 0, "plateau");
  r = rest("falls", "3e-4", run);
  assert_false(r.state.monitor.plateau);
  assert_int_equal(r.state.monitor.best_at, 40);
  r = rest("rests", "3e-3", run); /* at its floor after 20 steps */
  assert_true(r.state.monitor.plateau);
  assert_int_equal(r.state.monitor.best_at, 20);
  r = train("off", "monitor.every=0\nmonitor.plateau_steps=2\n", false, 0, run);
  assert_int_equal(r.state.monitor.steps, 0);
}

static void test_stop(void **state) {
  char run[320];
  char settings[1024];
  sn_error err;
  snprintf(settings, sizeof settings, "%smonitor.on_collapse=stop\n", COLLAPSES);
  sn_config *config = make_config(settings);
  sn_run_data *data;
  sn_train_result result;
  snprintf(run, sizeof run, "%s/stops", root);
  assert_int_equal(sn_run_data_open(config, run, false, NULL, &data, &err), SN_OK);
  const sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run};
  assert_int_equal(sn_train(&options, &result, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "collapsed"));
  char *path = NULL;
  int64_t found;
  assert_int_equal(sn_checkpoint_find(run, -1, &options.log, &path, &found, NULL), SN_OK);
  assert_int_equal(found, result.state.step); /* saved where it stopped */
  assert_int_equal(found, result.state.monitor.collapsed_at);
  sn_free(path);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

static const char WATCHED[] = "objective.name=jepa+contrast\njepa.predictor_width=16\njepa.predictor_heads=1\n"
                              "jepa.predictor_depth=1\ncontrast.projector_hidden=16\ncontrast.projector_width=8\n"
                              "contrast.positives=view\ntrain.ema=0\ntrain.packs_per_step=2\nmonitor.every=3\n"
                              "monitor.plateau_steps=3\nmonitor.plateau_gain=0.2\n";

static void test_resume(void **state) {
  char whole[320], parts[320], settings[1024];
  snprintf(settings, sizeof settings, "%smodel.dropout=0.1\n", WATCHED);
  const sn_train_result r = train("whole", settings, false, 0, whole);
  train("parts", settings, false, 5, parts); /* in the middle of a stretch, past its checkpoint at 4 */
  const sn_train_result again = train("parts", settings, true, 0, parts);
  assert_true(again.resumed);
  assert_same_run(whole, parts, 12);
  assert_memory_equal(&r.state.monitor.best_mean, &again.state.monitor.best_mean, sizeof(double));
  assert_int_equal(r.state.monitor.steps, again.state.monitor.steps);
  const double agreement = metric(whole, 12, "monitor_agreement");
  assert_true(agreement > 0.5 && agreement <= 1);
}

/* Watching changes nothing. */
static void test_weights_are_the_same_unwatched(void **state) {
  char with[320], without[320], settings[1024];
  train("watched", WATCHED, false, 0, with);
  snprintf(settings, sizeof settings, "%smonitor.every=0\n", WATCHED);
  train("unwatched", settings, false, 0, without);
  assert_same_file(with, without, "checkpoints/step-000000012/model.safetensors");
}

static void test_two_ranks(void **state) {
  static const char *const KEYS[] = {"monitor_std", "monitor_rank", "monitor_uniformity", "monitor_entropy", "monitor_agreement",
                                     "monitor_input_share"};
  char one[320], two[320], settings[1024];
  rank_call calls[2];
  snprintf(settings, sizeof settings, "%strain.dtype=f64\ntrain.threads=1\n", WATCHED);
  const char *extra[2] = {settings, settings};
  const sn_train_result r = train("one", settings, false, 0, one);
  snprintf(two, sizeof two, "%s/two", root);
  run_ranks(2, two, extra, calls);
  for (int i = 0; i < 2; i++) {
    if (calls[i].status != SN_OK) fail_msg("rank %d: %s", i, calls[i].err.message);
    assert_close(calls[i].result.state.monitor.best_mean, r.state.monitor.best_mean, 1e-9, "best mean");
  }
  assert_close(worst_difference(one, two), 0, 1e-9, "weights");
  for (int64_t s = 3; s <= 12; s += 3)
    for (size_t k = 0; k < sizeof KEYS / sizeof KEYS[0]; k++)
      assert_close(metric(two, s, KEYS[k]), metric(one, s, KEYS[k]), 1e-9, KEYS[k]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_rank), cmocka_unit_test(test_eigenvalues), cmocka_unit_test(test_std),
      cmocka_unit_test(test_uniformity_and_entropy), cmocka_unit_test(test_input_share), cmocka_unit_test(test_subjects),
      cmocka_unit_test(test_collapse_is_flagged), cmocka_unit_test(test_plain_run_is_not_flagged), cmocka_unit_test(test_plateau),
      cmocka_unit_test(test_stop), cmocka_unit_test(test_resume), cmocka_unit_test(test_weights_are_the_same_unwatched),
      cmocka_unit_test(test_two_ranks)};
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
