#include "encoders/dense_f64.h"

#include <math.h>
#include <string.h>

/* Eight doubles: one register with AVX-512, two with AVX2, four with SSE2; the same sums in each. */
typedef double lanes __attribute__((vector_size(64), aligned(8), may_alias));

#define BODY static inline __attribute__((always_inline))

BODY double dot_body(const double *a, const double *b, int64_t n) {
  lanes sum = {0};
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) sum += *(const lanes *)(a + i) * *(const lanes *)(b + i);
  double total = ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
  for (; i < n; i++) total += a[i] * b[i];
  return total;
}

BODY void axpy_body(double *y, double alpha, const double *x, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) *(lanes *)(y + i) += alpha * *(const lanes *)(x + i);
  for (; i < n; i++) y[i] += alpha * x[i];
}

/* y += a0 x0 + a1 x1 + a2 x2 + a3 x3, each term added in turn: the bits of four axpy, with a quarter of the traffic. */
BODY void axpy4_body(double *y, const double alpha[4], const double *const x[4], int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    lanes sum = *(lanes *)(y + i);
    sum += alpha[0] * *(const lanes *)(x[0] + i);
    sum += alpha[1] * *(const lanes *)(x[1] + i);
    sum += alpha[2] * *(const lanes *)(x[2] + i);
    sum += alpha[3] * *(const lanes *)(x[3] + i);
    *(lanes *)(y + i) = sum;
  }
  for (; i < n; i++) {
    double sum = y[i];
    for (int k = 0; k < 4; k++) sum += alpha[k] * x[k][i];
    y[i] = sum;
  }
}

/* Tiles of h that stay in the cache while all rows of x go by; the order of additions to an element is that of the rows. */
BODY void gram_body(double *h, const double *x, const double *weights, int64_t n, int64_t m) {
  enum { TILE = 128 };
  for (int64_t j0 = 0; j0 < m; j0 += TILE) {
    const int64_t j1 = j0 + TILE < m ? j0 + TILE : m;
    for (int64_t k0 = 0; k0 < j1; k0 += TILE) {
      int64_t i = 0;
      for (; i + 4 <= n; i += 4) {
        const double *rows[4], *from[4];
        for (int r = 0; r < 4; r++) rows[r] = x + (i + r) * m, from[r] = rows[r] + k0;
        for (int64_t j = j0; j < j1; j++) {
          double alpha[4];
          for (int r = 0; r < 4; r++) alpha[r] = weights[i + r] * rows[r][j];
          axpy4_body(h + j * m + k0, alpha, from, (j + 1 < k0 + TILE ? j + 1 : k0 + TILE) - k0);
        }
      }
      for (; i < n; i++)
        for (int64_t j = j0; j < j1; j++)
          axpy_body(h + j * m + k0, weights[i] * x[i * m + j], x + i * m + k0, (j + 1 < k0 + TILE ? j + 1 : k0 + TILE) - k0);
    }
  }
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f")))
AVX512 static double dot_avx512(const double *a, const double *b, int64_t n) { return dot_body(a, b, n); }
AVX2 static double dot_avx2(const double *a, const double *b, int64_t n) { return dot_body(a, b, n); }
AVX512 static void axpy_avx512(double *y, double alpha, const double *x, int64_t n) { axpy_body(y, alpha, x, n); }
AVX2 static void axpy_avx2(double *y, double alpha, const double *x, int64_t n) { axpy_body(y, alpha, x, n); }
AVX512 static void gram_avx512(double *h, const double *x, const double *w, int64_t n, int64_t m) {
  gram_body(h, x, w, n, m);
}
AVX2 static void gram_avx2(double *h, const double *x, const double *w, int64_t n, int64_t m) { gram_body(h, x, w, n, m); }
#define DISPATCH(call512, call2)                            \
  do {                                                      \
    if (__builtin_cpu_supports("avx512f")) return call512;  \
    if (__builtin_cpu_supports("avx2")) return call2;       \
  } while (0)
#else
#define DISPATCH(call512, call2) ((void)0)
#endif

double sn_f64_dot(const double *a, const double *b, int64_t n) {
  DISPATCH(dot_avx512(a, b, n), dot_avx2(a, b, n));
  return dot_body(a, b, n);
}

void sn_f64_axpy(double *y, double alpha, const double *x, int64_t n) {
  DISPATCH(axpy_avx512(y, alpha, x, n), axpy_avx2(y, alpha, x, n));
  axpy_body(y, alpha, x, n);
}

void sn_f64_gram(double *h, const double *x, const double *weights, int64_t n, int64_t m) {
  DISPATCH(gram_avx512(h, x, weights, n, m), gram_avx2(h, x, weights, n, m));
  gram_body(h, x, weights, n, m);
}

bool sn_f64_cholesky(double *a, int64_t m) {
  for (int64_t i = 0; i < m; i++) {
    double *row = a + i * m;
    for (int64_t j = 0; j < i; j++) row[j] = (row[j] - sn_f64_dot(row, a + j * m, j)) / a[j * m + j];
    const double pivot = row[i] - sn_f64_dot(row, row, i);
    if (!(pivot > 0) || !isfinite(pivot)) return false;
    row[i] = sqrt(pivot);
  }
  return true;
}

void sn_f64_cholesky_solve(const double *l, int64_t m, double *x) {
  for (int64_t i = 0; i < m; i++) x[i] = (x[i] - sn_f64_dot(l + i * m, x, i)) / l[i * m + i];
  for (int64_t i = m - 1; i >= 0; i--) {
    x[i] /= l[i * m + i];
    sn_f64_axpy(x, -x[i], l + i * m, i);
  }
}

/* Row j is reflected onto (alpha, 0, ..., 0) of its elements j..d-1: v = row - alpha e1 scaled to v[0] = 1, H = I - tau v v^T. */
void sn_f64_lq(double *x, double *z, double *tau, int64_t n, int64_t d) {
  memset(z, 0, (size_t)(n * n) * sizeof *z);
  for (int64_t j = 0; j < n; j++) {
    double *v = x + j * d + j;
    const int64_t m = d - j;
    memcpy(z + j * n, x + j * d, (size_t)j * sizeof *z);
    double norm = sqrt(sn_f64_dot(v, v, m));
    tau[j] = 0;
    z[j * n + j] = v[0];
    if (!(norm > 0)) continue;
    const double alpha = v[0] > 0 ? -norm : norm, lead = v[0] - alpha;
    for (int64_t k = 1; k < m; k++) v[k] /= lead;
    v[0] = 1;
    tau[j] = -lead / alpha;
    z[j * n + j] = alpha;
    for (int64_t i = j + 1; i < n; i++) {
      double *row = x + i * d + j;
      sn_f64_axpy(row, -tau[j] * sn_f64_dot(v, row, m), v, m);
    }
  }
}

void sn_f64_lq_back(double *w, const double *x, const double *tau, const double *v, int64_t n, int64_t d) {
  memcpy(w, v, (size_t)n * sizeof *w);
  memset(w + n, 0, (size_t)(d - n) * sizeof *w);
  for (int64_t j = n - 1; j >= 0; j--) {
    if (tau[j] == 0) continue;
    const double *u = x + j * d + j;
    sn_f64_axpy(w + j, -tau[j] * sn_f64_dot(u, w + j, d - j), u, d - j);
  }
}
