#include "benchmarks/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"

enum { MOST_ATTEMPTS = 1000 };

static int compare_u64(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

sn_status sn_bootstrap_units(const uint64_t *hashes, int64_t n, int64_t *units, int64_t *n_units, sn_error *err) {
  uint64_t *sorted = NULL;
  int64_t distinct = 0;
  SN_TRY(sn_alloc(&sorted, n, sizeof *sorted, "bootstrap", err));
  memcpy(sorted, hashes, (size_t)n * sizeof *sorted);
  qsort(sorted, (size_t)n, sizeof *sorted, compare_u64);
  for (int64_t i = 0; i < n; i++)
    if (i == 0 || sorted[i] != sorted[i - 1]) sorted[distinct++] = sorted[i];
  for (int64_t i = 0; i < n; i++)
    units[i] = (const uint64_t *)bsearch(&hashes[i], sorted, (size_t)distinct, sizeof *sorted, compare_u64) - sorted;
  *n_units = distinct;
  sn_free(sorted);
  return SN_OK;
}

typedef struct drawing {
  const sn_predictions *p;
  const int64_t *units;
  int64_t n_units;
  double *times;      /* (n_units) how often each was drawn */
  double *weights;    /* (n) */
  double *present;    /* (2, n_classes) weight of positives and negatives in the draw */
  uint8_t *needed;    /* (2, n_classes) what the whole data have */
} drawing;

static void count_present(drawing *d, const double *weights) {
  const sn_predictions *p = d->p;
  memset(d->present, 0, (size_t)(2 * p->n_classes) * sizeof *d->present);
  for (int64_t i = 0; i < p->n; i++) {
    const double w = weights != NULL ? weights[i] : 1;
    if (p->task == SN_TASK_MULTILABEL) {
      for (int64_t k = 0; k < p->n_classes; k++) d->present[2 * k + (p->hot[i * p->n_classes + k] == 0)] += w;
    } else {
      d->present[2 * p->labels[i]] += w;
    }
  }
}

static bool regression_varies(const drawing *d) {
  double first = NAN;
  for (int64_t i = 0; i < d->p->n; i++) {
    if (d->weights[i] == 0) continue;
    if (isnan(first)) first = d->p->values[i];
    else if (d->p->values[i] != first) return true;
  }
  return false;
}

/* Whether a draw has everything that the whole data have; if not, *missing says which class. */
static bool complete(drawing *d, int64_t *missing) {
  *missing = 0;
  if (d->p->task == SN_TASK_REGRESSION) return regression_varies(d);
  count_present(d, d->weights);
  for (int64_t k = 0; k < 2 * d->p->n_classes; k++) {
    if (!d->needed[k] || d->present[k] > 0) continue;
    *missing = k / 2;
    return false;
  }
  return true;
}

static sn_status draw(drawing *d, uint64_t seed, int64_t index, int64_t *redrawn, sn_error *err) {
  sn_random random = sn_random_at(seed, SN_PURPOSE_BOOTSTRAP, (uint64_t)index, 0);
  int64_t missing = 0;
  for (int attempt = 0; attempt < MOST_ATTEMPTS; attempt++) {
    memset(d->times, 0, (size_t)d->n_units * sizeof *d->times);
    for (int64_t u = 0; u < d->n_units; u++) d->times[sn_random_below(&random, (uint64_t)d->n_units)]++;
    for (int64_t i = 0; i < d->p->n; i++) d->weights[i] = d->times[d->units[i]];
    if (complete(d, &missing)) return SN_OK;
    ++*redrawn;
  }
  return sn_fail(err, SN_E_ARGUMENT, "bootstrap: classes are so rare among %lld units that %d draws in a row miss one (class %lld last); "
                 "leave the rarest out (--classes), or is the target a number (--task regression)?",
                 (long long)d->n_units, (int)MOST_ATTEMPTS, (long long)missing);
}

static sn_status prepare(drawing *d, sn_error *err) {
  const int64_t K = d->p->n_classes;
  SN_TRY(sn_alloc(&d->times, d->n_units, sizeof *d->times, "bootstrap", err));
  SN_TRY(sn_alloc(&d->weights, d->p->n, sizeof *d->weights, "bootstrap", err));
  SN_TRY(sn_alloc(&d->present, 2 * K, sizeof *d->present, "bootstrap", err));
  SN_TRY(sn_alloc(&d->needed, 2 * K, sizeof *d->needed, "bootstrap", err));
  if (d->p->task == SN_TASK_REGRESSION) return SN_OK;
  count_present(d, NULL);
  for (int64_t k = 0; k < K; k++) {
    d->needed[2 * k] = d->present[2 * k] > 0;
    d->needed[2 * k + 1] = d->present[2 * k + 1] > 0;
    /* A label that all or none of the data have has no metric; it cannot come or go. */
  }
  return SN_OK;
}

sn_status sn_bootstrap_create(sn_scored *const *rows, int64_t n_rows, const int64_t *units, int64_t n_units, int64_t n_draws,
                              uint64_t seed, sn_bootstrap **out, sn_error *err) {
  sn_bootstrap *b = NULL;
  drawing d = {.units = units, .n_units = n_units};
  sn_metric_values values;
  sn_status status;
  if (n_rows < 1 || n_draws < 1) return sn_fail(err, SN_E_ARGUMENT, "bootstrap: %lld rows, %lld draws", (long long)n_rows, (long long)n_draws);
  if (n_units < 2) return sn_fail(err, SN_E_ARGUMENT, "bootstrap: %lld test unit(s); at least 2 are needed", (long long)n_units);
  d.p = sn_scored_predictions(rows[0]);
  SN_TRY_GOTO(sn_alloc(&b, 1, sizeof *b, "bootstrap", err), done);
  b->n_draws = n_draws;
  b->n_units = n_units;
  b->n_rows = n_rows;
  SN_TRY_GOTO(sn_alloc(&b->values, n_draws * n_rows * SN_N_METRICS, sizeof *b->values, "bootstrap", err), done);
  SN_TRY_GOTO(sn_alloc(&b->points, n_rows * SN_N_METRICS, sizeof *b->points, "bootstrap", err), done);
  SN_TRY_GOTO(prepare(&d, err), done);
  for (int64_t r = 0; r < n_rows; r++) {
    sn_scored_compute(rows[r], NULL, &values);
    memcpy(b->points + r * SN_N_METRICS, values.value, sizeof values.value);
  }
  for (int64_t i = 0; i < n_draws; i++) {
    SN_TRY_GOTO(draw(&d, seed, i, &b->n_redrawn, err), done);
    for (int64_t r = 0; r < n_rows; r++) {
      sn_scored_compute(rows[r], d.weights, &values);
      memcpy(b->values + (i * n_rows + r) * SN_N_METRICS, values.value, sizeof values.value);
    }
  }
  *out = b;
  b = NULL;
done:
  sn_free(d.times);
  sn_free(d.weights);
  sn_free(d.present);
  sn_free(d.needed);
  sn_bootstrap_destroy(b);
  return status;
}

void sn_bootstrap_destroy(sn_bootstrap *b) {
  if (b == NULL) return;
  sn_free(b->values);
  sn_free(b->points);
  sn_free(b);
}

double sn_percentile(const double *sorted, int64_t n, double q) {
  if (n < 1) return NAN;
  const double at = q * (double)(n - 1);
  const int64_t i = (int64_t)floor(at);
  if (i + 1 >= n) return sorted[n - 1];
  return sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]);
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double combine(const double *values, sn_metric metric, const int64_t *a, int64_t n_a, const int64_t *b, int64_t n_b) {
  double x = 0, y = 0;
  for (int64_t i = 0; i < n_a; i++) x += values[a[i] * SN_N_METRICS + metric] / (double)n_a;
  for (int64_t i = 0; i < n_b; i++) y += values[b[i] * SN_N_METRICS + metric] / (double)n_b;
  return x - y;
}

bool sn_bootstrap_too_few(int64_t n_units, int64_t n_draws, int64_t n_redrawn) {
  return n_units < SN_BOOTSTRAP_UNITS || 5 * n_redrawn > n_draws;
}

sn_status sn_bootstrap_interval(const sn_bootstrap *bootstrap, sn_metric metric, const int64_t *a, int64_t n_a,
                                const int64_t *b, int64_t n_b, sn_interval *out, sn_error *err) {
  double *draws = NULL;
  int64_t n = 0;
  SN_TRY(sn_alloc(&draws, bootstrap->n_draws, sizeof *draws, "bootstrap", err));
  for (int64_t i = 0; i < bootstrap->n_draws; i++) {
    const double v = combine(bootstrap->values + i * bootstrap->n_rows * SN_N_METRICS, metric, a, n_a, b, n_b);
    if (!isnan(v)) draws[n++] = v;
  }
  qsort(draws, (size_t)n, sizeof *draws, compare_doubles);
  out->value = combine(bootstrap->points, metric, a, n_a, b, n_b);
  const bool none = isnan(out->value) || sn_bootstrap_too_few(bootstrap->n_units, bootstrap->n_draws, bootstrap->n_redrawn);
  out->low = none ? NAN : sn_percentile(draws, n, 0.025);
  out->high = none ? NAN : sn_percentile(draws, n, 0.975);
  sn_free(draws);
  return SN_OK;
}
