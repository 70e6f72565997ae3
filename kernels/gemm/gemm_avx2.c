/* AVX2 tiles: 6 rows x 16 columns in 12 registers. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "core/bf16.h"
#include "kernels/gemm/gemm_kernels.h"

enum { ROWS = 6, WIDTH = 16 };

#define TARGET __attribute__((target("avx2,fma")))

/* The tile goes through memory once, so that the rare cases (edge columns, bf16, bias) need no vector code. */
TARGET static void store(const sn_gemm_tile *t, int r, __m256 low, __m256 high) {
  float v[WIDTH];
  if (t->n == WIDTH && !t->c_bf16 && t->bias == NULL) {
    float *c = (float *)t->c + r * t->ldc;
    if (t->acc) {
      low = _mm256_add_ps(low, _mm256_loadu_ps(c));
      high = _mm256_add_ps(high, _mm256_loadu_ps(c + 8));
    }
    _mm256_storeu_ps(c, low);
    _mm256_storeu_ps(c + 8, high);
    return;
  }
  _mm256_storeu_ps(v, low);
  _mm256_storeu_ps(v + 8, high);
  for (int j = 0; j < t->n; j++) {
    float x = v[j] + (t->bias != NULL ? t->bias[j] : 0.0f);
    if (t->c_bf16) {
      uint16_t *c = (uint16_t *)t->c + r * t->ldc + j;
      *c = sn_f32_to_bf16(t->acc ? x + sn_bf16_to_f32(*c) : x);
    } else {
      float *c = (float *)t->c + r * t->ldc + j;
      *c = t->acc ? x + *c : x;
    }
  }
}

#define TILE(R)                                                                                  \
  TARGET static void tile_##R(const sn_gemm_tile *t) {                                           \
    __m256 acc0[R], acc1[R];                                                                     \
    _Pragma("GCC unroll 6") for (int r = 0; r < R; r++) acc0[r] = acc1[r] = _mm256_setzero_ps(); \
    const float *a = t->a, *b = t->b;                                                            \
    const int64_t row = t->a_row, step = t->a_step;                                              \
    for (int64_t k = 0; k < t->k; k++, a += step, b += WIDTH) {                                  \
      __m256 b0 = _mm256_load_ps(b), b1 = _mm256_load_ps(b + 8);                                 \
      _Pragma("GCC unroll 6") for (int r = 0; r < R; r++) {                                      \
        __m256 x = _mm256_broadcast_ss(a + r * row);                                             \
        acc0[r] = _mm256_fmadd_ps(x, b0, acc0[r]);                                               \
        acc1[r] = _mm256_fmadd_ps(x, b1, acc1[r]);                                               \
      }                                                                                          \
    }                                                                                            \
    _Pragma("GCC unroll 6") for (int r = 0; r < R; r++) store(t, r, acc0[r], acc1[r]);           \
  }
TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6)

static void run(const sn_gemm_tile *tile, int rows) {
  static void (*const TILES[ROWS])(const sn_gemm_tile *) = {tile_1, tile_2, tile_3, tile_4, tile_5, tile_6};
  TILES[rows - 1](tile);
}

const sn_gemm_kernel sn_gemm_avx2 = {"avx2", false, ROWS, WIDTH, ROWS, run, NULL};
#endif
