/* AVX-512 tiles: 14 rows x 32 columns in 28 registers, two more for B, one for the broadcast of A. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/gemm/gemm_kernels.h"

enum { ROWS = 14, WIDTH = 32 };

#define TARGET_512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))
#define TARGET_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

/* Round to nearest even as core/bf16.h does; NaN stays NaN. */
TARGET_512 static inline __m256i to_bf16(__m512 v) {
  __m512i bits = _mm512_castps_si512(v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  __m512i quiet = _mm512_or_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
  __mmask16 nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_cvtepi32_epi16(_mm512_mask_blend_epi32(nan, rounded, quiet));
}

TARGET_512 static inline __m512 from_bf16(__m256i v) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

TARGET_512 static inline void store(const sn_gemm_tile *t, int r, int half, __m512 v) {
  int n = t->n - 16 * half;
  if (n <= 0) return;
  __mmask16 mask = n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1u);
  if (t->bias != NULL) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, t->bias + 16 * half));
  if (t->c_bf16) {
    uint16_t *c = (uint16_t *)t->c + r * t->ldc + 16 * half;
    if (t->acc) v = _mm512_add_ps(v, from_bf16(_mm256_maskz_loadu_epi16(mask, c)));
    _mm256_mask_storeu_epi16(c, mask, to_bf16(v));
  } else {
    float *c = (float *)t->c + r * t->ldc + 16 * half;
    if (t->acc) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, c));
    _mm512_mask_storeu_ps(c, mask, v);
  }
}

#define STORE_ALL(R)                                   \
  _Pragma("GCC unroll 14") for (int r = 0; r < R; r++) \
    for (int h = 0; h < 2; h++) store(t, r, h, h == 0 ? acc0[r] : acc1[r]);

#define TILE_F32(R)                                                                        \
  TARGET_512 static void tile_f32_##R(const sn_gemm_tile *t) {                             \
    __m512 acc0[R], acc1[R];                                                               \
    _Pragma("GCC unroll 14") for (int r = 0; r < R; r++) acc0[r] = acc1[r] = _mm512_setzero_ps(); \
    const float *a = t->a, *b = t->b;                                                      \
    const int64_t row = t->a_row, step = t->a_step;                                        \
    for (int64_t k = 0; k < t->k; k++, a += step, b += WIDTH) {                            \
      __m512 b0 = _mm512_load_ps(b), b1 = _mm512_load_ps(b + 16);                          \
      _Pragma("GCC unroll 14") for (int r = 0; r < R; r++) {                               \
        __m512 x = _mm512_set1_ps(a[r * row]);                                             \
        acc0[r] = _mm512_fmadd_ps(x, b0, acc0[r]);                                         \
        acc1[r] = _mm512_fmadd_ps(x, b1, acc1[r]);                                         \
      }                                                                                    \
    }                                                                                      \
    STORE_ALL(R)                                                                           \
  }

#define TILE_BF16(R)                                                                       \
  TARGET_BF16 static void tile_bf16_##R(const sn_gemm_tile *t) {                           \
    __m512 acc0[R], acc1[R];                                                               \
    _Pragma("GCC unroll 14") for (int r = 0; r < R; r++) acc0[r] = acc1[r] = _mm512_setzero_ps(); \
    const int32_t *a = t->a, *b = t->b;                                                    \
    const int64_t row = t->a_row, step = t->a_step;                                        \
    for (int64_t k = 0; k < t->k; k++, a += step, b += WIDTH) {                            \
      __m512bh b0 = (__m512bh)_mm512_load_si512(b), b1 = (__m512bh)_mm512_load_si512(b + 16); \
      _Pragma("GCC unroll 14") for (int r = 0; r < R; r++) {                               \
        __m512bh x = (__m512bh)_mm512_set1_epi32(a[r * row]);                              \
        acc0[r] = _mm512_dpbf16_ps(acc0[r], x, b0);                                        \
        acc1[r] = _mm512_dpbf16_ps(acc1[r], x, b1);                                        \
      }                                                                                    \
    }                                                                                      \
    STORE_ALL(R)                                                                           \
  }

#define ALL_ROWS(TILE) \
  TILE(1) TILE(2) TILE(3) TILE(4) TILE(5) TILE(6) TILE(7) TILE(8) TILE(9) TILE(10) TILE(11) TILE(12) TILE(13) TILE(14)
ALL_ROWS(TILE_F32)
ALL_ROWS(TILE_BF16)

#define ENTRIES(name)                                                                                                \
  {                                                                                                                  \
    name##_1, name##_2, name##_3, name##_4, name##_5, name##_6, name##_7, name##_8, name##_9, name##_10, name##_11, \
        name##_12, name##_13, name##_14                                                                              \
  }
typedef void (*tile_function)(const sn_gemm_tile *);
static const tile_function F32_TILES[ROWS] = ENTRIES(tile_f32), BF16_TILES[ROWS] = ENTRIES(tile_bf16);

static void run_f32(const sn_gemm_tile *tile, int rows) { F32_TILES[rows - 1](tile); }
static void run_bf16(const sn_gemm_tile *tile, int rows) { BF16_TILES[rows - 1](tile); }

const sn_gemm_kernel sn_gemm_avx512 = {"avx512", false, ROWS, WIDTH, run_f32};
const sn_gemm_kernel sn_gemm_avx512_bf16 = {"avx512_bf16", true, ROWS, WIDTH, run_bf16};
#endif
