#include "encoders/ridge.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/dense_f64.h"

struct sn_ridge {
  int64_t n, d, m;   /* m: side of the Gram matrix */
  double *x, *y;     /* centred */
  double *mean;      /* (d) */
  double y_mean;
  double *gram;      /* (m, m): X^T X, or X X^T when there are fewer rows than features */
  double *factor;    /* (m, m) */
  double *solution;  /* (m) */
};

static void centre(sn_ridge *r) {
  for (int64_t i = 0; i < r->n; i++) {
    sn_f64_axpy(r->mean, 1 / (double)r->n, r->x + i * r->d, r->d);
    r->y_mean += r->y[i] / (double)r->n;
  }
  for (int64_t i = 0; i < r->n; i++) {
    sn_f64_axpy(r->x + i * r->d, -1, r->mean, r->d);
    r->y[i] -= r->y_mean;
  }
}

static sn_status make_gram(sn_ridge *r, sn_error *err) {
  double *ones = NULL;
  if (r->m == r->d) {
    SN_TRY(sn_alloc(&ones, r->n, sizeof *ones, "ridge regression", err));
    for (int64_t i = 0; i < r->n; i++) ones[i] = 1;
    sn_f64_gram(r->gram, r->x, ones, r->n, r->d);
    sn_free(ones);
    return SN_OK;
  }
  for (int64_t i = 0; i < r->n; i++)
    for (int64_t j = 0; j <= i; j++) r->gram[i * r->m + j] = sn_f64_dot(r->x + i * r->d, r->x + j * r->d, r->d);
  return SN_OK;
}

sn_status sn_ridge_create(const double *x, const double *y, int64_t n, int64_t d, sn_ridge **out, sn_error *err) {
  sn_ridge *r = NULL;
  sn_status status;
  int64_t size = 0, square = 0;
  if (n < 1 || d < 1) return sn_fail(err, SN_E_ARGUMENT, "ridge regression: %lld rows of %lld features", (long long)n, (long long)d);
  SN_TRY(sn_alloc(&r, 1, sizeof *r, "ridge regression", err));
  r->n = n;
  r->d = d;
  r->m = n < d ? n : d;
  if (!sn_mul_ok(n, d, &size) || !sn_mul_ok(r->m, r->m, &square)) {
    status = sn_fail(err, SN_E_MEMORY, "ridge regression: %lld x %lld is too large", (long long)n, (long long)d);
    goto fail;
  }
  SN_TRY_GOTO(sn_alloc(&r->x, size, sizeof *r->x, "ridge regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->y, n, sizeof *r->y, "ridge regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->mean, d, sizeof *r->mean, "ridge regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->gram, square, sizeof *r->gram, "ridge regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->factor, square, sizeof *r->factor, "ridge regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->solution, r->m, sizeof *r->solution, "ridge regression", err), fail);
  memcpy(r->x, x, (size_t)size * sizeof *x);
  memcpy(r->y, y, (size_t)n * sizeof *y);
  for (int64_t i = 0; i < size; i++) {
    if (isfinite(x[i]) && isfinite(y[i / d])) continue;
    status = sn_fail(err, SN_E_ARGUMENT, "ridge regression: row %lld holds a value that is not finite", (long long)(i / d));
    goto fail;
  }
  centre(r);
  SN_TRY_GOTO(make_gram(r, err), fail);
  *out = r;
  return SN_OK;
fail:
  sn_ridge_destroy(r);
  return status;
}

void sn_ridge_destroy(sn_ridge *r) {
  if (r == NULL) return;
  sn_free(r->x);
  sn_free(r->y);
  sn_free(r->mean);
  sn_free(r->gram);
  sn_free(r->factor);
  sn_free(r->solution);
  sn_free(r);
}

sn_status sn_ridge_solve(sn_ridge *r, double alpha, double *weights, double *bias, sn_error *err) {
  if (!(alpha > 0)) return sn_fail(err, SN_E_ARGUMENT, "ridge regression: alpha %g; it must be above 0", alpha);
  memcpy(r->factor, r->gram, (size_t)(r->m * r->m) * sizeof *r->gram);
  for (int64_t i = 0; i < r->m; i++) r->factor[i * r->m + i] += alpha;
  if (!sn_f64_cholesky(r->factor, r->m))
    return sn_fail(err, SN_E_ARGUMENT, "ridge regression: alpha %g is too small for these features", alpha);
  memset(weights, 0, (size_t)r->d * sizeof *weights);
  if (r->m == r->d) { /* (X^T X + alpha I) w = X^T y */
    for (int64_t i = 0; i < r->n; i++) sn_f64_axpy(weights, r->y[i], r->x + i * r->d, r->d);
    sn_f64_cholesky_solve(r->factor, r->m, weights);
  } else { /* w = X^T (X X^T + alpha I)^-1 y */
    memcpy(r->solution, r->y, (size_t)r->n * sizeof *r->y);
    sn_f64_cholesky_solve(r->factor, r->m, r->solution);
    for (int64_t i = 0; i < r->n; i++) sn_f64_axpy(weights, r->solution[i], r->x + i * r->d, r->d);
  }
  *bias = r->y_mean - sn_f64_dot(r->mean, weights, r->d);
  return SN_OK;
}
