#include "kernels/gemm/gemm_panels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/gemm/transpose_avx512.h"

#define TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

enum { N = SN_GEMM_PANEL_N };

/* 32 floats as 16 pairs. */
TARGET_BF16 static inline __m512i pairs_along(const float *row) {
  return (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(row + 16), _mm512_loadu_ps(row));
}

/* 16 floats of each of two rows as 16 pairs. */
TARGET_BF16 static inline __m512i pairs_across(const float *first, const float *second) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5,
                                         20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_loadu_ps(second), _mm512_loadu_ps(first));
  return _mm512_permutexvar_epi16(order, both);
}

/* W (n, k): 16 rows of a panel at a time, so that few enough rows are read side by side; each reads on a little ahead, because
 * the processor does not follow that many rows by itself. */
TARGET_BF16 static void along_pairs(uint32_t *dst, const float *w, int64_t k, int64_t group) {
  enum { AHEAD = 64 };
  uint32_t *panel = dst + group / (N / 16) * (k / 2) * N + group % (N / 16) * 16;
  for (int64_t step = 0; step < k / 2; step += 16) {
    __m512i v[16];
    for (int i = 0; i < 16; i++) {
      const float *row = w + (group * 16 + i) * k + 2 * step;
      _mm_prefetch((const char *)(row + AHEAD), _MM_HINT_T0);
      _mm_prefetch((const char *)(row + AHEAD + 16), _MM_HINT_T0);
      v[i] = pairs_along(row);
    }
    sn_transpose_16x16(v);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(panel + (step + i) * N, v[i]);
  }
}

TARGET_512 static void along_floats(uint32_t *dst, const float *w, int64_t k, int64_t group) {
  enum { AHEAD = 64 };
  uint32_t *panel = dst + group / (N / 16) * k * N + group % (N / 16) * 16;
  for (int64_t step = 0; step < k; step += 16) {
    __m512i v[16];
    for (int i = 0; i < 16; i++) {
      const float *row = w + (group * 16 + i) * k + step;
      _mm_prefetch((const char *)(row + AHEAD), _MM_HINT_T0);
      v[i] = _mm512_castps_si512(_mm512_loadu_ps(row));
    }
    sn_transpose_16x16(v);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(panel + (step + i) * N, v[i]);
  }
}

/* W (k, n): a few steps of all panels, so that rows are read in order. */
enum { STEPS = 4 };

TARGET_BF16 static void across_pairs(uint32_t *dst, const float *w, int64_t n, int64_t k, int64_t stretch) {
  for (int64_t p = 0; p < n / N; p++)
    for (int64_t step = stretch * STEPS; step < (stretch + 1) * STEPS; step++)
      for (int j = 0; j < N; j += 16) {
        const float *row = w + 2 * step * n + p * N + j;
        _mm_prefetch((const char *)(row + 2 * N), _MM_HINT_T0);
        _mm_prefetch((const char *)(row + 2 * N + n), _MM_HINT_T0);
        _mm512_storeu_si512(dst + (p * (k / 2) + step) * N + j, pairs_across(row, row + n));
      }
}

TARGET_512 static void across_floats(uint32_t *dst, const float *w, int64_t n, int64_t k, int64_t stretch) {
  for (int64_t p = 0; p < n / N; p++)
    for (int64_t step = stretch * STEPS; step < (stretch + 1) * STEPS; step++)
      for (int j = 0; j < N; j += 16) {
        const float *row = w + step * n + p * N + j;
        _mm_prefetch((const char *)(row + 2 * N), _MM_HINT_T0);
        _mm512_storeu_ps((float *)dst + (p * k + step) * N + j, _mm512_loadu_ps(row));
      }
}

void sn_gemm_pack_panels_part(void *dst, const float *w, int64_t n, int64_t k, bool transposed, bool pairs, int thread,
                              int n_threads) {
  const int64_t units = transposed ? n / 16 : k / (pairs ? 2 : 1) / STEPS;
  for (int64_t u = units * thread / n_threads; u < units * (thread + 1) / n_threads; u++) {
    if (transposed && pairs) along_pairs(dst, w, k, u);
    else if (transposed) along_floats(dst, w, k, u);
    else if (pairs) across_pairs(dst, w, n, k, u);
    else across_floats(dst, w, n, k, u);
  }
}
#else
#include <assert.h>

void sn_gemm_pack_panels_part(void *dst, const float *w, int64_t n, int64_t k, bool transposed, bool pairs, int thread,
                              int n_threads) {
  assert(!"asked for on a machine without AVX-512");
}
#endif
