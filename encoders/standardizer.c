#include "encoders/standardizer.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/alloc.h"

static int compare_values(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static double median_of(double *values, int64_t n) {
  if (n == 0) return 0;
  qsort(values, (size_t)n, sizeof *values, compare_values);
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/* One feature. column (n): scratch. The median is only looked for where something is missing. */
static void fit_column(sn_standardizer *s, int64_t j, double *column, int64_t n) {
  int64_t known = 0;
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(column[i])) continue;
    sum += column[i];
    column[known++] = column[i];
  }
  const int64_t missing = n - known;
  s->median[j] = median_of(column, known);
  s->mean[j] = (sum + (double)missing * s->median[j]) / (double)n;
  for (int64_t i = 0; i < known; i++) squares += (column[i] - s->mean[j]) * (column[i] - s->mean[j]);
  squares += (double)missing * (s->median[j] - s->mean[j]) * (s->median[j] - s->mean[j]);
  const double deviation = sqrt(squares / (double)n);
  /* What rounding leaves of a constant is no deviation. */
  s->deviation[j] = deviation > 1e-14 * fabs(s->mean[j]) ? deviation : 1;
}

sn_status sn_standardizer_fit(const double *x, int64_t n_features, const int64_t *rows, int64_t n, sn_standardizer **out,
                              sn_error *err) {
  sn_standardizer *s = NULL;
  double *column = NULL;
  sn_status status;
  if (n < 1) return sn_fail(err, SN_E_ARGUMENT, "standardising: no training rows");
  SN_TRY_GOTO(sn_alloc(&s, 1, sizeof *s, "standardizer", err), done);
  s->n_features = n_features;
  SN_TRY_GOTO(sn_alloc(&s->mean, n_features, sizeof *s->mean, "standardizer", err), done);
  SN_TRY_GOTO(sn_alloc(&s->deviation, n_features, sizeof *s->deviation, "standardizer", err), done);
  SN_TRY_GOTO(sn_alloc(&s->median, n_features, sizeof *s->median, "standardizer", err), done);
  SN_TRY_GOTO(sn_alloc(&column, n, sizeof *column, "standardizer", err), done);
  for (int64_t j = 0; j < n_features; j++) {
    for (int64_t i = 0; i < n; i++) {
      column[i] = x[rows[i] * n_features + j];
      if (isinf(column[i])) {
        status = sn_fail(err, SN_E_ARGUMENT, "feature %lld of row %lld is infinite", (long long)j, (long long)rows[i]);
        goto done;
      }
    }
    fit_column(s, j, column, n);
  }
  *out = s;
  s = NULL;
done:
  sn_free(column);
  sn_standardizer_destroy(s);
  return status;
}

void sn_standardizer_destroy(sn_standardizer *s) {
  if (s == NULL) return;
  sn_free(s->mean);
  sn_free(s->deviation);
  sn_free(s->median);
  sn_free(s);
}

int64_t sn_standardizer_apply(const sn_standardizer *s, const double *x, const int64_t *rows, int64_t n, double *z) {
  int64_t filled = 0;
  for (int64_t i = 0; i < n; i++) {
    const double *from = x + rows[i] * s->n_features;
    double *to = z + i * s->n_features;
    for (int64_t j = 0; j < s->n_features; j++) {
      const bool missing = isnan(from[j]);
      filled += missing;
      to[j] = ((missing ? s->median[j] : from[j]) - s->mean[j]) / s->deviation[j];
    }
  }
  return filled;
}
