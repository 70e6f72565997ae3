#include "core/stats.h"

#include <math.h>
#include <stdlib.h>

sn_stats sn_stats_of(const double *x, int64_t n) {
  sn_stats s = {.n = 0, .missing = 0, .min = NAN, .max = NAN, .mean = NAN, .std = NAN};
  sn_sum sum = {0, 0};
  for (int64_t i = 0; i < n; i++) {
    if (isnan(x[i])) {
      s.missing++;
      continue;
    }
    if (s.n == 0 || x[i] < s.min) s.min = x[i];
    if (s.n == 0 || x[i] > s.max) s.max = x[i];
    sn_sum_add(&sum, x[i]);
    s.n++;
  }
  if (s.n == 0) return s;
  s.mean = sn_sum_value(&sum) / (double)s.n;
  /* Second pass about the mean: no cancellation, whatever the offset. The mean of the deviations (not quite 0, because
   * the mean is rounded) is taken out again. */
  sn_sum squares = {0, 0}, rest = {0, 0};
  for (int64_t i = 0; i < n; i++) {
    if (isnan(x[i])) continue;
    double d = x[i] - s.mean;
    sn_sum_add(&squares, d * d);
    sn_sum_add(&rest, d);
  }
  double shift = sn_sum_value(&rest) / (double)s.n;
  double variance = sn_sum_value(&squares) / (double)s.n - shift * shift;
  s.std = variance < 0.0 ? 0.0 : sqrt(variance);
  return s;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void swap(double *a, double *b) {
  double kept = *a;
  *a = *b;
  *b = kept;
}

/* Puts the k-th smallest of work[0..n-1] at work[k], nothing larger before it and nothing smaller after it.
 * Quickselect about the middle of three; an input that defeats it is sorted instead, so that no input is quadratic. */
static void select_kth(double *work, int64_t n, int64_t k) {
  int64_t low = 0, high = n - 1, patience = 8;
  for (int64_t m = n; m > 0; m /= 2) patience += 2;
  while (low < high) {
    if (patience-- == 0) {
      qsort(work + low, (size_t)(high - low + 1), sizeof *work, compare_doubles);
      return;
    }
    int64_t middle = low + (high - low) / 2;
    if (work[middle] < work[low]) swap(&work[middle], &work[low]);
    if (work[high] < work[low]) swap(&work[high], &work[low]);
    if (work[high] < work[middle]) swap(&work[high], &work[middle]);
    double pivot = work[middle];
    int64_t i = low, j = high;
    while (i <= j) {
      while (work[i] < pivot) i++;
      while (work[j] > pivot) j--;
      if (i <= j) {
        swap(&work[i], &work[j]);
        i++;
        j--;
      }
    }
    if (k <= j) high = j;
    else if (k >= i) low = i;
    else return;
  }
}

double sn_quantile(const double *x, int64_t n, double q, double *work) {
  int64_t m = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!isnan(x[i])) work[m++] = x[i];
  }
  if (m == 0 || !(q >= 0.0 && q <= 1.0)) return NAN;
  double place = q * (double)(m - 1);
  int64_t k = (int64_t)floor(place);
  double t = place - (double)k;
  select_kth(work, m, k);
  double a = work[k];
  if (t == 0.0 || k + 1 >= m) return a;
  double b = work[k + 1];
  for (int64_t i = k + 2; i < m; i++) {
    if (work[i] < b) b = work[i];
  }
  if (a == b) return a;
  return t < 0.5 ? a + (b - a) * t : b - (b - a) * (1.0 - t);
}
