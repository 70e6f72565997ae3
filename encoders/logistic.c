#include "encoders/logistic.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/dense_f64.h"

enum { MOST_ITERATIONS = 200, MOST_CG = 400, REFRESH_AFTER = 20, MOST_LINE_SEARCH = 40, MOST_WHOLE = 2400 };
static const double GRADIENT_GOAL = 1e-8;

/* Unknowns theta (q, m): one row per column of logits (q = 1 for two classes, else one per class that is present), m = r + 1
 * with the intercept last, so that a row of x is a row of features followed by 1. */
struct sn_logistic_problem {
  int64_t n, d, r, m, q;
  int64_t n_classes, n_present;
  int32_t *present;      /* (n_present) class of each column */
  int32_t *labels;       /* (n) column of each row's class */
  double *x;             /* (n, m) */
  double *original, *tau;/* (n, d), (n): reflections, when rotated; else NULL */
  double *weights;       /* (n) sample x class weight */
  double *theta;         /* (q, m), kept from one C to the next */
  double *logits, *along;/* (n, q) at theta; along a step */
  double *p;             /* (n, q) probabilities at theta */
  double *residual;      /* (n, q) scratch */
  double *diagonal;      /* (n) scratch */
  double *gradient, *step, *cg_r, *cg_z, *cg_d, *cg_h; /* (q, m) */
  bool whole;            /* the Hessian is factorised as a whole, not its diagonal blocks alone */
  double *factors;       /* (q m, q m), or (q, m, m) */
  double *block;         /* (m, m) scratch of the whole */
};

/* ---- the function and its derivatives --------------------------------------------------------------------------------- */

static double sigmoid(double z) { return z >= 0 ? 1 / (1 + exp(-z)) : exp(z) / (1 + exp(z)); }

static void softmax(double *p, const double *z, int64_t q) {
  double top = z[0], sum = 0;
  for (int64_t k = 1; k < q; k++) top = z[k] > top ? z[k] : top;
  for (int64_t k = 0; k < q; k++) sum += p[k] = exp(z[k] - top);
  for (int64_t k = 0; k < q; k++) p[k] /= sum;
}

/* out (n, q) = X theta^T */
static void products(const sn_logistic_problem *b, const double *theta, double *out) {
  for (int64_t i = 0; i < b->n; i++)
    for (int64_t k = 0; k < b->q; k++) out[i * b->q + k] = sn_f64_dot(b->x + i * b->m, theta + k * b->m, b->m);
}

/* out (q, m) = penalty of theta + sum_i values (n, q)_ik x_i */
static void gather(const sn_logistic_problem *b, const double *theta, const double *values, double *out) {
  for (int64_t k = 0; k < b->q; k++) {
    memcpy(out + k * b->m, theta + k * b->m, (size_t)b->r * sizeof *out);
    out[k * b->m + b->r] = 0;
    for (int64_t i = 0; i < b->n; i++) sn_f64_axpy(out + k * b->m, values[i * b->q + k], b->x + i * b->m, b->m);
  }
}

/* Logits, probabilities and gradient at theta; returns the gradient's 2-norm. */
static double evaluate(sn_logistic_problem *b, double C) {
  products(b, b->theta, b->logits);
  for (int64_t i = 0; i < b->n; i++) {
    const double scale = C * b->weights[i];
    const double *z = b->logits + i * b->q;
    double *p = b->p + i * b->q, *e = b->residual + i * b->q;
    if (b->q == 1) {
      p[0] = sigmoid(z[0]);
      /* Not p - 1 where p is near 1: the tail of well separated rows is what large C is about. */
      e[0] = scale * (b->labels[i] ? -sigmoid(-z[0]) : p[0]);
      continue;
    }
    softmax(p, z, b->q);
    double others = 0;
    for (int64_t k = 0; k < b->q; k++) {
      e[k] = scale * p[k];
      if (k != b->labels[i]) others += p[k];
    }
    e[b->labels[i]] = -scale * others;
  }
  gather(b, b->theta, b->residual, b->gradient);
  return sqrt(sn_f64_dot(b->gradient, b->gradient, b->q * b->m));
}

/* How large the gradient's rounding error may be: the absolute sums behind it, times a few units in the last
 * place (observed: up to 40 where C is 1e4 and rows are thousands). */
static double rounding(const sn_logistic_problem *b, double C) {
  double sum = 0;
  for (int64_t i = 0; i < b->n; i++) {
    const double *x = b->x + i * b->m;
    const double length = sqrt(sn_f64_dot(x, x, b->m));
    for (int64_t k = 0; k < b->q; k++) {
      const double p = b->p[i * b->q + k];
      sum += (fabs(b->residual[i * b->q + k]) + C * b->weights[i] * p * (1 - p) * (1 + fabs(b->logits[i * b->q + k]))) * length;
    }
  }
  return 64 * DBL_EPSILON * sum;
}

/* out (q, m) = Hessian at theta times direction (q, m). */
static void hessian_times(sn_logistic_problem *b, double C, const double *direction, double *out) {
  products(b, direction, b->residual);
  for (int64_t i = 0; i < b->n; i++) {
    const double scale = C * b->weights[i];
    const double *p = b->p + i * b->q;
    double *u = b->residual + i * b->q, mean = 0;
    if (b->q == 1) {
      u[0] *= scale * p[0] * (1 - p[0]);
      continue;
    }
    for (int64_t k = 0; k < b->q; k++) mean += p[k] * u[k];
    for (int64_t k = 0; k < b->q; k++) u[k] = scale * p[k] * (u[k] - mean);
  }
  gather(b, direction, b->residual, out);
}

/* The block (k, l) of the Hessian at theta, without the penalty, added to h (m, m), lower triangle. */
static void add_block(sn_logistic_problem *b, double C, int64_t k, int64_t l, double *h) {
  for (int64_t i = 0; i < b->n; i++) {
    const double p = b->p[i * b->q + k], other = b->p[i * b->q + l];
    b->diagonal[i] = C * b->weights[i] * (k == l ? p * (1 - p) : -p * other);
  }
  memset(h, 0, (size_t)(b->m * b->m) * sizeof *h);
  sn_f64_gram(h, b->x, b->diagonal, b->n, b->m);
}

/* The penalty, and so much on the intercepts that the direction in which they all move together (which the loss does not
 * see) does not stop Cholesky: these factors only precondition. */
static void add_penalty(const sn_logistic_problem *b, double *h, int64_t side) {
  double trace = 0;
  for (int64_t j = 0; j < side; j++) trace += h[j * side + j];
  for (int64_t j = 0; j < side; j++) h[j * side + j] += j % b->m < b->r ? 1 : 1e-10 + 4 * DBL_EPSILON * trace;
}

/* Cholesky factors of the Hessian at theta: the whole, or its diagonal blocks where the whole is too large. */
static bool factorise(sn_logistic_problem *b, double C) {
  const int64_t side = b->q * b->m;
  if (!b->whole) {
    for (int64_t k = 0; k < b->q; k++) {
      double *h = b->factors + k * b->m * b->m;
      add_block(b, C, k, k, h);
      add_penalty(b, h, b->m);
      if (!sn_f64_cholesky(h, b->m)) return false;
    }
    return true;
  }
  for (int64_t k = 0; k < b->q; k++)
    for (int64_t l = 0; l <= k; l++) {
      add_block(b, C, k, l, b->block);
      for (int64_t i = 0; i < b->m; i++)
        for (int64_t j = 0; j < b->m; j++)
          b->factors[(k * b->m + i) * side + l * b->m + j] = i >= j ? b->block[i * b->m + j] : b->block[j * b->m + i];
    }
  add_penalty(b, b->factors, side);
  return sn_f64_cholesky(b->factors, side);
}

/* ---- one Newton step --------------------------------------------------------------------------------------------------- */

/* The loss does not see all intercepts moving together: rounding must not grow along that direction. */
static void remove_common_intercept(const sn_logistic_problem *b, double *v) {
  double mean = 0;
  if (b->q == 1) return;
  for (int64_t k = 0; k < b->q; k++) mean += v[k * b->m + b->r] / (double)b->q;
  for (int64_t k = 0; k < b->q; k++) v[k * b->m + b->r] -= mean;
}

static void precondition(const sn_logistic_problem *b, double *r, double *z) {
  remove_common_intercept(b, r);
  memcpy(z, r, (size_t)(b->q * b->m) * sizeof *z);
  if (b->whole) {
    sn_f64_cholesky_solve(b->factors, b->q * b->m, z);
  } else {
    for (int64_t k = 0; k < b->q; k++) sn_f64_cholesky_solve(b->factors + k * b->m * b->m, b->m, z + k * b->m);
  }
  remove_common_intercept(b, z);
}

/* step ~ -Hessian^-1 gradient; returns the iterations taken. */
static int64_t conjugate_gradients(sn_logistic_problem *b, double C, double tolerance) {
  const int64_t size = b->q * b->m;
  memset(b->step, 0, (size_t)size * sizeof *b->step);
  for (int64_t j = 0; j < size; j++) b->cg_r[j] = -b->gradient[j];
  precondition(b, b->cg_r, b->cg_z);
  memcpy(b->cg_d, b->cg_z, (size_t)size * sizeof *b->cg_d);
  double rz = sn_f64_dot(b->cg_r, b->cg_z, size);
  const double goal = tolerance * tolerance * rz;
  int64_t iteration = 0;
  while (iteration < MOST_CG && rz > 0) {
    hessian_times(b, C, b->cg_d, b->cg_h);
    const double curvature = sn_f64_dot(b->cg_d, b->cg_h, size);
    iteration++;
    if (!(curvature > 0)) break;
    const double alpha = rz / curvature;
    sn_f64_axpy(b->step, alpha, b->cg_d, size);
    sn_f64_axpy(b->cg_r, -alpha, b->cg_h, size);
    precondition(b, b->cg_r, b->cg_z);
    const double next = sn_f64_dot(b->cg_r, b->cg_z, size);
    if (!(next > goal)) break;
    for (int64_t j = 0; j < size; j++) b->cg_d[j] = b->cg_z[j] + next / rz * b->cg_d[j];
    rz = next;
  }
  return iteration;
}

/* First and second derivative of the objective along the step, at theta + t step. */
static void slope(const sn_logistic_problem *b, double C, double t, double linear, double square, double *first,
                  double *second) {
  double f = 0, s = 0;
  double stack[64];
  for (int64_t i = 0; i < b->n; i++) {
    const double scale = C * b->weights[i];
    const double *z = b->logits + i * b->q, *u = b->along + i * b->q;
    if (b->q == 1) {
      const double at = z[0] + t * u[0], p = sigmoid(at), other = sigmoid(-at);
      f += scale * (b->labels[i] ? -other : p) * u[0];
      s += scale * p * other * u[0] * u[0];
      continue;
    }
    double top = -INFINITY, sum = 0, mean = 0, squares = 0;
    for (int64_t k = 0; k < b->q; k++) top = fmax(top, z[k] + t * u[k]);
    for (int64_t k = 0; k < b->q; k++) {
      const double e = exp(z[k] + t * u[k] - top);
      if (k < 64) stack[k] = e;
      sum += e;
      mean += e * (u[k] - u[b->labels[i]]); /* relative to the row's own class: exact where that is nearly certain */
    }
    mean /= sum;
    for (int64_t k = 0; k < b->q; k++) {
      const double e = k < 64 ? stack[k] : exp(z[k] + t * u[k] - top), away = u[k] - u[b->labels[i]] - mean;
      squares += e / sum * away * away;
    }
    f += scale * mean;
    s += scale * squares;
  }
  *first = f + linear + t * square;
  *second = s + square;
}

/* The minimum along the step: safeguarded Newton on the derivative, which only grows. */
static double line_search(sn_logistic_problem *b, double C) {
  double linear = 0, square = 0, first, second, start, low = 0, high = INFINITY, t = 1;
  products(b, b->step, b->along);
  for (int64_t k = 0; k < b->q; k++) {
    linear += sn_f64_dot(b->theta + k * b->m, b->step + k * b->m, b->r);
    square += sn_f64_dot(b->step + k * b->m, b->step + k * b->m, b->r);
  }
  slope(b, C, 0, linear, square, &start, &second);
  if (!(start < 0)) return 0;
  for (int i = 0; i < MOST_LINE_SEARCH; i++) {
    slope(b, C, t, linear, square, &first, &second);
    if (!(fabs(first) > 1e-4 * -start)) break;
    if (first < 0) low = t;
    else high = t;
    double next = second > 0 ? t - first / second : INFINITY;
    if (!(next > low && next < high)) next = isinf(high) ? 4 * t : (low + high) / 2;
    if (isinf(high) && next > 10 * t) next = 10 * t;
    t = next;
  }
  return t;
}

/* ---- solving ------------------------------------------------------------------------------------------------------------- */

static sn_status newton(sn_logistic_problem *b, double C, sn_logistic *out, sn_error *err) {
  bool stale = true;
  double best = INFINITY;
  int64_t without_gain = 0;
  out->gradient = evaluate(b, C);
  for (out->iterations = 0; out->iterations < MOST_ITERATIONS; out->iterations++) {
    out->converged = out->gradient <= GRADIENT_GOAL;
    if (out->converged) break;
    without_gain = out->gradient < best / 2 ? 0 : without_gain + 1;
    best = fmin(best, out->gradient);
    if (without_gain >= 3 && out->gradient <= rounding(b, C)) {
      out->converged = true;
      break;
    }
    if (stale && !factorise(b, C))
      return sn_fail(err, SN_E_ARGUMENT, "logistic regression: the Hessian is not positive definite at C = %g", C);
    const int64_t taken = conjugate_gradients(b, C, fmin(1e-2, out->gradient));
    stale = taken > REFRESH_AFTER || without_gain > 0;
    double t = line_search(b, C);
    if (!(t > 0)) { /* the derivative along the step is lost in rounding: a last full step */
      if (out->gradient > rounding(b, C)) stale = true;
      t = 1;
    }
    sn_f64_axpy(b->theta, t, b->step, b->q * b->m);
    out->gradient = evaluate(b, C);
    if (!isfinite(out->gradient)) return sn_fail(err, SN_E_ARGUMENT, "logistic regression: not finite at C = %g", C);
  }
  return SN_OK;
}

/* Weights in the original features, softmax form. */
static sn_status unpack(const sn_logistic_problem *b, sn_logistic *out, sn_error *err) {
  double *w = NULL;
  SN_TRY(sn_alloc(&w, b->d, sizeof *w, "logistic regression", err));
  for (int64_t k = 0; k < b->n_classes; k++) out->bias[k] = -INFINITY;
  for (int64_t k = 0; k < b->q; k++) {
    const double *theta = b->theta + k * b->m;
    if (b->original != NULL) sn_f64_lq_back(w, b->original, b->tau, theta, b->n, b->d);
    else memcpy(w, theta, (size_t)b->d * sizeof *w);
    if (b->q == 1) {
      for (int side = 0; side < 2; side++) {
        const double sign = side ? 0.5 : -0.5;
        for (int64_t j = 0; j < b->d; j++) out->weights[b->present[side] * b->d + j] = sign * w[j];
        out->bias[b->present[side]] = sign * theta[b->r];
      }
    } else {
      memcpy(out->weights + b->present[k] * b->d, w, (size_t)b->d * sizeof *w);
      out->bias[b->present[k]] = theta[b->r];
    }
  }
  sn_free(w);
  return SN_OK;
}

sn_status sn_logistic_solve(sn_logistic_problem *b, double C, sn_logistic **out, sn_error *err) {
  sn_logistic *model = NULL;
  sn_status status;
  if (!(C > 0) || !isfinite(C)) return sn_fail(err, SN_E_ARGUMENT, "logistic regression: C = %g; it must be above 0", C);
  SN_TRY_GOTO(sn_alloc(&model, 1, sizeof *model, "logistic regression", err), fail);
  model->n_features = b->d;
  model->n_classes = b->n_classes;
  SN_TRY_GOTO(sn_alloc(&model->weights, b->n_classes * b->d, sizeof *model->weights, "logistic regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&model->bias, b->n_classes, sizeof *model->bias, "logistic regression", err), fail);
  SN_TRY_GOTO(newton(b, C, model, err), fail);
  remove_common_intercept(b, b->theta);
  SN_TRY_GOTO(unpack(b, model, err), fail);
  *out = model;
  return SN_OK;
fail:
  sn_logistic_destroy(model);
  return status;
}

void sn_logistic_destroy(sn_logistic *model) {
  if (model == NULL) return;
  sn_free(model->weights);
  sn_free(model->bias);
  sn_free(model);
}

void sn_logistic_probabilities(const sn_logistic *model, const double *x, int64_t n, double *probabilities) {
  for (int64_t i = 0; i < n; i++) {
    double *p = probabilities + i * model->n_classes;
    for (int64_t k = 0; k < model->n_classes; k++)
      p[k] = model->bias[k] + sn_f64_dot(model->weights + k * model->n_features, x + i * model->n_features, model->n_features);
    softmax(p, p, model->n_classes);
  }
}

/* ---- making a problem ---------------------------------------------------------------------------------------------------- */

static sn_status count_classes(sn_logistic_problem *b, const int32_t *labels, bool balanced, const double *sample_weights,
                               sn_error *err) {
  int64_t *counts = NULL;
  int32_t *column = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&counts, b->n_classes, sizeof *counts, "logistic regression", err), done);
  SN_TRY_GOTO(sn_alloc(&column, b->n_classes, sizeof *column, "logistic regression", err), done);
  for (int64_t i = 0; i < b->n; i++) {
    if (labels[i] < 0 || labels[i] >= b->n_classes) {
      status = sn_fail(err, SN_E_ARGUMENT, "logistic regression: label %d of row %lld is outside [0, %lld)", (int)labels[i],
                       (long long)i, (long long)b->n_classes);
      goto done;
    }
    counts[labels[i]]++;
  }
  for (int64_t k = 0; k < b->n_classes; k++) {
    column[k] = (int32_t)b->n_present;
    if (counts[k] > 0) b->present[b->n_present++] = (int32_t)k;
  }
  if (b->n_present < 2) {
    status = sn_fail(err, SN_E_ARGUMENT, "logistic regression: only one class among %lld training rows", (long long)b->n);
    goto done;
  }
  for (int64_t i = 0; i < b->n; i++) {
    b->labels[i] = column[labels[i]];
    b->weights[i] = sample_weights != NULL ? sample_weights[i] : 1;
    if (balanced) b->weights[i] *= (double)b->n / ((double)b->n_present * (double)counts[labels[i]]);
    if (b->weights[i] > 0 && isfinite(b->weights[i])) continue;
    status = sn_fail(err, SN_E_ARGUMENT, "logistic regression: weight %g of row %lld; it must be above 0", b->weights[i],
                     (long long)i);
    goto done;
  }
done:
  sn_free(counts);
  sn_free(column);
  return status;
}

/* Fills x (n, m): the features, or with fewer rows than features their rotation, and 1. */
static sn_status fill_features(sn_logistic_problem *b, const double *x, sn_error *err) {
  double *z = NULL;
  sn_status status;
  for (int64_t i = 0; i < b->n * b->d; i++)
    if (!isfinite(x[i]))
      return sn_fail(err, SN_E_ARGUMENT, "logistic regression: feature %lld of row %lld is not finite", (long long)(i % b->d),
                     (long long)(i / b->d));
  if (b->r < b->d) {
    SN_TRY_GOTO(sn_alloc(&b->original, b->n * b->d, sizeof *x, "logistic regression", err), done);
    SN_TRY_GOTO(sn_alloc(&b->tau, b->n, sizeof *x, "logistic regression", err), done);
    SN_TRY_GOTO(sn_alloc(&z, b->n * b->n, sizeof *x, "logistic regression", err), done);
    memcpy(b->original, x, (size_t)(b->n * b->d) * sizeof *x);
    sn_f64_lq(b->original, z, b->tau, b->n, b->d);
    x = z;
  }
  for (int64_t i = 0; i < b->n; i++) {
    memcpy(b->x + i * b->m, x + i * b->r, (size_t)b->r * sizeof *x);
    b->x[i * b->m + b->r] = 1;
  }
  status = SN_OK;
done:
  sn_free(z);
  return status;
}

static sn_status allocate_scratch(sn_logistic_problem *b, sn_error *err) {
  double **const rows[] = {&b->logits, &b->along, &b->p, &b->residual};
  double **const unknowns[] = {&b->theta, &b->gradient, &b->step, &b->cg_r, &b->cg_z, &b->cg_d, &b->cg_h};
  int64_t size = 0;
  b->q = b->n_present == 2 ? 1 : b->n_present;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    SN_TRY(sn_alloc(rows[i], b->n * b->q, sizeof(double), "logistic regression", err));
  for (size_t i = 0; i < sizeof unknowns / sizeof unknowns[0]; i++)
    SN_TRY(sn_alloc(unknowns[i], b->q * b->m, sizeof(double), "logistic regression", err));
  b->whole = b->q == 1 || b->q * b->m <= MOST_WHOLE;
  if (!sn_mul_ok(b->m, b->m, &size) || !sn_mul_ok(size, b->whole ? b->q * b->q : b->q, &size))
    return sn_fail(err, SN_E_MEMORY, "logistic regression: %lld features are too many", (long long)b->d);
  SN_TRY(sn_alloc(&b->block, b->m * b->m, sizeof(double), "logistic regression", err));
  return sn_alloc(&b->factors, size, sizeof(double), "logistic regression", err);
}

sn_status sn_logistic_problem_create(const double *x, int64_t n, int64_t d, const int32_t *labels, int64_t n_classes,
                                     bool balanced, const double *sample_weights, sn_logistic_problem **out, sn_error *err) {
  sn_logistic_problem *b = NULL;
  sn_status status;
  int64_t size = 0;
  if (n < 1 || d < 1 || n_classes < 2)
    return sn_fail(err, SN_E_ARGUMENT, "logistic regression: %lld rows of %lld features in %lld classes", (long long)n,
                   (long long)d, (long long)n_classes);
  if (!sn_mul_ok(n, d + 1, &size)) return sn_fail(err, SN_E_MEMORY, "logistic regression: %lld x %lld is too large", (long long)n, (long long)d);
  SN_TRY_GOTO(sn_alloc(&b, 1, sizeof *b, "logistic regression", err), fail);
  b->n = n;
  b->d = d;
  b->r = n < d - d / 4 ? n : d; /* the rotation pays where it saves a good part */
  b->m = b->r + 1;
  b->n_classes = n_classes;
  SN_TRY_GOTO(sn_alloc(&b->present, n_classes, sizeof *b->present, "logistic regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&b->labels, n, sizeof *b->labels, "logistic regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&b->weights, n, sizeof *b->weights, "logistic regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&b->diagonal, n, sizeof *b->diagonal, "logistic regression", err), fail);
  SN_TRY_GOTO(sn_alloc(&b->x, n * b->m, sizeof *b->x, "logistic regression", err), fail);
  SN_TRY_GOTO(count_classes(b, labels, balanced, sample_weights, err), fail);
  SN_TRY_GOTO(fill_features(b, x, err), fail);
  SN_TRY_GOTO(allocate_scratch(b, err), fail);
  *out = b;
  return SN_OK;
fail:
  sn_logistic_problem_destroy(b);
  return status;
}

void sn_logistic_problem_destroy(sn_logistic_problem *b) {
  if (b == NULL) return;
  double *const arrays[] = {b->x, b->original, b->tau, b->weights, b->theta, b->logits, b->along, b->p, b->residual,
                            b->diagonal, b->gradient, b->step, b->cg_r, b->cg_z, b->cg_d, b->cg_h, b->factors, b->block};
  for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) sn_free(arrays[i]);
  sn_free(b->present);
  sn_free(b->labels);
  sn_free(b);
}
