#include "encoders/knn.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/dense_f64.h"

enum { BLOCK = 32 }; /* test rows of one task */

typedef struct neighbour {
  double similarity;
  int64_t row;
} neighbour;

typedef struct search {
  const sn_knn_problem *p;
  double *train, *test;  /* of length 1 */
  int64_t most_k;
  neighbour *near;       /* (n_workers, most_k) */
  double *scores;
} search;

static sn_status check(const sn_knn_problem *p, sn_error *err) {
  if (p->n_train < 1 || p->n_test < 1 || p->n_features < 1 || p->n_classes < 1 || p->n_k < 1)
    return sn_fail(err, SN_E_ARGUMENT, "kNN: %lld training rows, %lld test rows, %lld features, %lld classes, %lld values of k",
                   (long long)p->n_train, (long long)p->n_test, (long long)p->n_features, (long long)p->n_classes,
                   (long long)p->n_k);
  if (!(p->temperature > 0) || isinf(p->temperature))
    return sn_fail(err, SN_E_ARGUMENT, "kNN: temperature %g: above 0", p->temperature);
  for (int64_t i = 0; i < p->n_k; i++)
    if (p->k[i] < 1 || p->k[i] > p->n_train)
      return sn_fail(err, SN_E_ARGUMENT, "kNN: k %lld of %lld training rows: 1 to their number", (long long)p->k[i],
                     (long long)p->n_train);
  for (int64_t i = 0; p->hot == NULL && i < p->n_train; i++)
    if (p->labels[i] < 0 || p->labels[i] >= p->n_classes)
      return sn_fail(err, SN_E_ARGUMENT, "kNN: label %d of training row %lld: 0 to %lld", (int)p->labels[i], (long long)i,
                     (long long)p->n_classes - 1);
  return SN_OK;
}

/* Rows of length 1; the largest value goes out first, so that no square overflows. */
static sn_status normalised(const double *x, int64_t n, int64_t d, const char *part, double **out, sn_error *err) {
  int64_t size = 0;
  if (!sn_mul_ok(n, d, &size)) return sn_fail(err, SN_E_MEMORY, "kNN: %lld rows of %lld features", (long long)n, (long long)d);
  SN_TRY(sn_alloc(out, size, sizeof **out, "kNN", err));
  for (int64_t i = 0; i < n; i++) {
    const double *from = x + i * d;
    double *to = *out + i * d, most = 0;
    for (int64_t j = 0; j < d; j++) {
      if (!isfinite(from[j]))
        return sn_fail(err, SN_E_ARGUMENT, "kNN: feature %lld of %s row %lld is not finite", (long long)j, part, (long long)i);
      most = fmax(most, fabs(from[j]));
    }
    if (most == 0) continue;
    for (int64_t j = 0; j < d; j++) to[j] = from[j] / most;
    const double length = fmax(sqrt(sn_f64_dot(to, to, d)), 1e-12 / most);
    for (int64_t j = 0; j < d; j++) to[j] /= length;
  }
  return SN_OK;
}

/* Whether a is farther than b. */
static bool farther(neighbour a, neighbour b) {
  return a.similarity != b.similarity ? a.similarity < b.similarity : a.row > b.row;
}

/* heap (n): the farthest is first. */
static void sift(neighbour *heap, int64_t n) {
  for (int64_t i = 0;;) {
    int64_t most = i;
    for (int64_t c = 2 * i + 1; c <= 2 * i + 2 && c < n; c++)
      if (farther(heap[c], heap[most])) most = c;
    if (most == i) return;
    const neighbour t = heap[i];
    heap[i] = heap[most];
    heap[most] = t;
    i = most;
  }
}

static int compare_near(const void *a, const void *b) {
  const neighbour x = *(const neighbour *)a, y = *(const neighbour *)b;
  return farther(x, y) - farther(y, x);
}

static void find_nearest(const search *s, const double *z, neighbour *near) {
  const sn_knn_problem *p = s->p;
  for (int64_t j = 0; j < p->n_train; j++) {
    const neighbour candidate = {sn_f64_dot(z, s->train + j * p->n_features, p->n_features), j};
    if (j < s->most_k) {
      near[j] = candidate;
      if (j + 1 == s->most_k) qsort(near, (size_t)s->most_k, sizeof *near, compare_near);
      if (j + 1 == s->most_k) /* farthest first is a heap */
        for (int64_t a = 0, b = s->most_k - 1; a < b; a++, b--) {
          const neighbour t = near[a];
          near[a] = near[b];
          near[b] = t;
        }
    } else if (farther(near[0], candidate)) {
      near[0] = candidate;
      sift(near, s->most_k);
    }
  }
  qsort(near, (size_t)s->most_k, sizeof *near, compare_near);
}

/* votes (n_classes) [out] */
static void vote(const sn_knn_problem *p, const neighbour *near, int64_t k, double *votes) {
  double all = 0;
  memset(votes, 0, (size_t)p->n_classes * sizeof *votes);
  for (int64_t i = 0; i < k; i++) {
    const double w = exp((near[i].similarity - near[0].similarity) / p->temperature);
    const int64_t row = near[i].row;
    all += w;
    if (p->hot == NULL) votes[p->labels[row]] += w;
    else
      for (int64_t c = 0; c < p->n_classes; c++) votes[c] += p->hot[row * p->n_classes + c] ? w : 0;
  }
  for (int64_t c = 0; c < p->n_classes; c++) votes[c] /= all;
}

static void search_block(void *user, int64_t index, int64_t worker) {
  search *s = user;
  const sn_knn_problem *p = s->p;
  neighbour *near = s->near + worker * s->most_k;
  for (int64_t i = index * BLOCK; i < (index + 1) * BLOCK && i < p->n_test; i++) {
    find_nearest(s, s->test + i * p->n_features, near);
    for (int64_t k = 0; k < p->n_k; k++) vote(p, near, p->k[k], s->scores + (k * p->n_test + i) * p->n_classes);
  }
}

sn_status sn_knn_scores(const sn_knn_problem *p, sn_pool *pool, double *scores, sn_error *err) {
  search s = {.p = p, .scores = scores};
  const int64_t workers = pool != NULL && sn_pool_threads(pool) > 0 ? sn_pool_threads(pool) : 1;
  sn_status status;
  SN_TRY(check(p, err));
  for (int64_t i = 0; i < p->n_k; i++) s.most_k = p->k[i] > s.most_k ? p->k[i] : s.most_k;
  SN_TRY_GOTO(normalised(p->train, p->n_train, p->n_features, "training", &s.train, err), done);
  SN_TRY_GOTO(normalised(p->test, p->n_test, p->n_features, "test", &s.test, err), done);
  SN_TRY_GOTO(sn_alloc(&s.near, workers * s.most_k, sizeof *s.near, "kNN", err), done);
  const int64_t n_blocks = (p->n_test + BLOCK - 1) / BLOCK;
  if (pool != NULL) status = sn_pool_for(pool, n_blocks, search_block, &s, err);
  else
    for (int64_t b = 0; b < n_blocks; b++) search_block(&s, b, 0);
done:
  sn_free(s.train);
  sn_free(s.test);
  sn_free(s.near);
  return status;
}
