#include "engine/monitor_values.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

/* --- tokens ------------------------------------------------------------------------------------------------------- */

void sn_monitor_moments(double *mean, double *m2, const double *rows, int64_t n, int64_t c) {
  memset(mean, 0, (size_t)c * sizeof *mean);
  memset(m2, 0, (size_t)c * sizeof *m2);
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < c; k++) mean[k] += rows[i * c + k];
  for (int64_t k = 0; k < c && n > 0; k++) mean[k] /= (double)n;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < c; k++) {
      const double d = rows[i * c + k] - mean[k];
      m2[k] += d * d;
    }
}

void sn_monitor_merge(double *n_a, double *mean_a, double *m2_a, double n_b, const double *mean_b, const double *m2_b,
                      int64_t c) {
  const double n = *n_a + n_b;
  if (!(n_b > 0)) return;
  for (int64_t k = 0; k < c; k++) {
    const double d = mean_b[k] - mean_a[k];
    mean_a[k] += d * n_b / n;
    m2_a[k] += m2_b[k] + d * d * *n_a * n_b / n;
  }
  *n_a = n;
}

double sn_monitor_std(double n, const double *m2, int64_t c) {
  double sum = 0;
  for (int64_t k = 0; k < c; k++) sum += sqrt(m2[k] / n);
  return n > 0 ? sum / (double)c : NAN;
}

typedef struct place {
  int64_t key, token;
} place;

static int by_place(const void *a, const void *b) {
  const place *x = a, *y = b;
  if (x->key != y->key) return x->key < y->key ? -1 : 1;
  return x->token < y->token ? -1 : x->token > y->token;
}

static double squares(const double *a, const double *b, int64_t c) {
  double sum = 0;
  for (int64_t k = 0; k < c; k++) sum += (a[k] - b[k]) * (a[k] - b[k]);
  return sum;
}

sn_status sn_monitor_anova(sn_token_anova *out, const double *rows, const int64_t *keys, int64_t n, int64_t c,
                           sn_error *err) {
  place *order = NULL;
  double *means = NULL, n_squared = 0;
  int64_t n_places = 0;
  sn_status status;
  *out = (sn_token_anova){0};
  if (n == 0) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&order, n, sizeof *order, "places of tokens", err), done);
  SN_TRY_GOTO(sn_alloc(&means, 3 * c, sizeof *means, "means of a place", err), done);
  double *all = means, *own = means + c, *spread = means + 2 * c;
  sn_monitor_moments(all, spread, rows, n, c);
  for (int64_t i = 0; i < n; i++) order[i] = (place){keys[i], i};
  qsort(order, (size_t)n, sizeof *order, by_place);
  for (int64_t first = 0, end; first < n; first = end, n_places++) {
    for (end = first; end < n && order[end].key == order[first].key; end++) {}
    const double count = (double)(end - first);
    memset(own, 0, (size_t)c * sizeof *own);
    for (int64_t i = first; i < end; i++)
      for (int64_t k = 0; k < c; k++) own[k] += rows[order[i].token * c + k];
    for (int64_t k = 0; k < c; k++) own[k] /= count;
    for (int64_t i = first; i < end; i++) out->within += squares(rows + order[i].token * c, own, c);
    out->between += count * squares(own, all, c);
    n_squared += count * count;
  }
  out->within_free = (double)(n - n_places);
  out->between_free = (double)(n_places - 1);
  out->between_weight = (double)n - n_squared / (double)n;
done:
  sn_free(order);
  sn_free(means);
  return status;
}

double sn_monitor_input_share(const sn_token_anova *a) {
  if (!(a->within_free > 0)) return NAN;
  const double input = a->within / a->within_free;
  double of_place = a->between_weight > 0 ? (a->between - a->between_free * input) / a->between_weight : 0;
  if (of_place < 0) of_place = 0;
  return input + of_place > 0 ? input / (input + of_place) : NAN;
}

/* --- eigenvalues -------------------------------------------------------------------------------------------------- */

/* a = H ... H T H ... H with reflections H; T's diagonal and off[k] between k and k + 1. v, p (n): scratch. */
static void reduce_to_three_diagonals(double *a, int64_t n, double *diagonal, double *off, double *v, double *p) {
  for (int64_t k = 0; k + 2 < n; k++) {
    double norm = 0;
    for (int64_t i = k + 1; i < n; i++) norm += a[i * n + k] * a[i * n + k];
    norm = sqrt(norm);
    off[k] = a[(k + 1) * n + k] > 0 ? -norm : norm;
    if (norm == 0) continue;
    for (int64_t i = k + 1; i < n; i++) v[i] = a[i * n + k];
    v[k + 1] -= off[k];
    double vv = 0, vp = 0;
    for (int64_t i = k + 1; i < n; i++) vv += v[i] * v[i];
    for (int64_t i = k + 1; i < n; i++) {
      double sum = 0;
      for (int64_t j = k + 1; j < n; j++) sum += a[i * n + j] * v[j];
      p[i] = 2 * sum / vv;
    }
    for (int64_t i = k + 1; i < n; i++) vp += v[i] * p[i];
    for (int64_t i = k + 1; i < n; i++) p[i] -= vp / vv * v[i];
    for (int64_t i = k + 1; i < n; i++)
      for (int64_t j = k + 1; j < n; j++) a[i * n + j] -= v[i] * p[j] + p[i] * v[j];
  }
  if (n > 1) off[n - 2] = a[(n - 1) * n + n - 2];
  for (int64_t i = 0; i < n; i++) diagonal[i] = a[i * n + i];
}

/* How many eigenvalues lie below x: the negative pivots of T - x. */
static int64_t count_below(const double *diagonal, const double *off, int64_t n, double x, double tiny) {
  int64_t count = 0;
  double pivot = 1;
  for (int64_t i = 0; i < n; i++) {
    pivot = diagonal[i] - x - (i > 0 ? off[i - 1] * off[i - 1] / pivot : 0);
    if (fabs(pivot) < tiny) pivot = -tiny;
    count += pivot < 0;
  }
  return count;
}

sn_status sn_monitor_eigenvalues(double *values, double *a, int64_t n, sn_error *err) {
  double *room = NULL, bound = 0;
  if (n == 0) return SN_OK;
  SN_TRY(sn_alloc(&room, 4 * n, sizeof *room, "eigenvalues", err));
  double *diagonal = room, *off = room + n;
  reduce_to_three_diagonals(a, n, diagonal, off, room + 2 * n, room + 3 * n);
  for (int64_t i = 0; i < n; i++) { /* Gershgorin */
    const double reach = fabs(diagonal[i]) + (i > 0 ? fabs(off[i - 1]) : 0) + (i + 1 < n ? fabs(off[i]) : 0);
    if (!(reach <= bound)) bound = reach;
  }
  const double tiny = bound > 0 && isfinite(bound) ? DBL_EPSILON * DBL_EPSILON * bound + DBL_MIN : DBL_MIN;
  for (int64_t k = 0; k < n; k++) {
    double low = -bound, high = bound;
    if (!isfinite(bound)) low = high = NAN;
    for (double middle = 0; high - low > DBL_EPSILON * bound; ) {
      middle = low + (high - low) / 2;
      if (middle <= low || middle >= high) break;
      if (count_below(diagonal, off, n, middle, tiny) > k) high = middle;
      else low = middle;
    }
    values[k] = low + (high - low) / 2;
  }
  sn_free(room);
  return SN_OK;
}

/* --- pooled rows -------------------------------------------------------------------------------------------------- */

static double dot(const double *a, const double *b, int64_t c) {
  double sum = 0;
  for (int64_t k = 0; k < c; k++) sum += a[k] * b[k];
  return sum;
}

/* Products of all pairs of rows, or of all pairs of columns where these are fewer: the same eigenvalues but for zeros. */
static void fill_gram(double *gram, const double *x, int64_t n, int64_t c) {
  const int64_t m = n <= c ? n : c;
  if (n <= c) {
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j <= i; j++) gram[i * m + j] = gram[j * m + i] = dot(x + i * c, x + j * c, c);
    return;
  }
  for (int64_t r = 0; r < n; r++)
    for (int64_t i = 0; i < c; i++)
      for (int64_t j = 0; j < c; j++) gram[i * m + j] += x[r * c + i] * x[r * c + j];
}

sn_status sn_monitor_rank(double *out, const double *rows, int64_t n, int64_t c, sn_error *err) {
  const int64_t m = n <= c ? n : c;
  double *centred = NULL, *gram = NULL, *values = NULL, *mean = NULL, sum = 0, entropy = 0;
  sn_status status;
  *out = NAN;
  if (n < 2) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&centred, n * c, sizeof *centred, "pooled rows", err), done);
  SN_TRY_GOTO(sn_alloc(&gram, m * m, sizeof *gram, "products of pooled rows", err), done);
  SN_TRY_GOTO(sn_alloc(&values, m, sizeof *values, "eigenvalues", err), done);
  SN_TRY_GOTO(sn_alloc(&mean, 2 * c, sizeof *mean, "mean row", err), done);
  sn_monitor_moments(mean, mean + c, rows, n, c);
  for (int64_t i = 0; i < n * c; i++) centred[i] = rows[i] - mean[i % c];
  fill_gram(gram, centred, n, c);
  SN_TRY_GOTO(sn_monitor_eigenvalues(values, gram, m, err), done);
  /* Eigenvalues that are rounding are no directions: without this, their roots would count as 1e-8 of the largest. */
  const double floor_value = 16 * (double)m * DBL_EPSILON * fmax(values[m - 1], 0);
  for (int64_t i = 0; i < m; i++) {
    values[i] = values[i] <= floor_value ? 0 : sqrt(values[i]);
    sum += values[i];
  }
  for (int64_t i = 0; i < m; i++)
    if (values[i] > 0) entropy -= values[i] / sum * log(values[i] / sum);
  *out = sum > 0 ? exp(entropy) : sum == 0 ? 0 : NAN;
done:
  sn_free(centred);
  sn_free(gram);
  sn_free(values);
  sn_free(mean);
  return status;
}

void sn_monitor_normalise(double *unit, const double *rows, int64_t n, int64_t c) {
  for (int64_t i = 0; i < n; i++) {
    const double norm = fmax(sqrt(dot(rows + i * c, rows + i * c, c)), 1e-8);
    for (int64_t k = 0; k < c; k++) unit[i * c + k] = rows[i * c + k] / norm;
  }
}

double sn_monitor_uniformity(const double *unit, int64_t n, int64_t c) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++) sum += exp(-2 * squares(unit + i * c, unit + j * c, c));
  return n >= 2 ? log(sum / ((double)n * (double)(n - 1) / 2)) : NAN;
}

sn_status sn_monitor_entropy(double *out, const double *unit, int64_t n, int64_t c, sn_error *err) {
  const double temperature = 0.1;
  double *logits = NULL, total = 0;
  *out = NAN;
  if (n < 3) return SN_OK;
  SN_TRY(sn_alloc(&logits, n, sizeof *logits, "similarities", err));
  for (int64_t i = 0; i < n; i++) {
    double most = -INFINITY, sum = 0, weighted = 0;
    for (int64_t j = 0; j < n; j++) {
      if (j == i) continue;
      logits[j] = dot(unit + i * c, unit + j * c, c) / temperature;
      most = fmax(most, logits[j]);
    }
    for (int64_t j = 0; j < n; j++) {
      if (j == i) continue;
      const double e = exp(logits[j] - most);
      sum += e;
      weighted += e * (logits[j] - most);
    }
    total += log(sum) - weighted / sum;
  }
  *out = total / (double)n / log((double)(n - 1));
  sn_free(logits);
  return SN_OK;
}

void sn_monitor_subjects(double *knn, double *chance, const double *unit, const uint64_t *samples, const uint64_t *subjects,
                         int64_t n, int64_t c) {
  double hits = 0, expected = 0;
  int64_t asked = 0;
  for (int64_t i = 0; i < n; i++) {
    int64_t others = 0, same = 0;
    double nearest = -INFINITY;
    bool hit = false;
    if (subjects[i] == 0) continue;
    for (int64_t j = 0; j < n; j++) {
      if (subjects[j] == 0 || samples[j] == samples[i]) continue;
      const double similarity = dot(unit + i * c, unit + j * c, c);
      others++;
      same += subjects[j] == subjects[i];
      if (!(similarity > nearest)) continue;
      nearest = similarity;
      hit = subjects[j] == subjects[i];
    }
    if (same == 0) continue;
    asked++;
    hits += hit;
    expected += (double)same / (double)others;
  }
  *knn = asked > 0 ? hits / (double)asked : NAN;
  *chance = asked > 0 ? expected / (double)asked : NAN;
}
