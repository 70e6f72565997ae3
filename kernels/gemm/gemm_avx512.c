/* AVX-512 tiles: 14 rows x 32 columns in 28 registers, two more for B, one for the broadcast of A. */
#if defined(__x86_64__)
#include <immintrin.h>

#include "kernels/gemm/gemm_kernels.h"
#include "kernels/gemm/transpose_avx512.h"

enum { ROWS = 14, WIDTH = 32, PITCH = 16 };

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

/* Two rows of up to 16 values as 16 pairs. */
TARGET_512 static inline __m512i pairs_of(__m256i low, __m256i high) {
  return _mm512_or_si512(_mm512_cvtepu16_epi32(low), _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* The end of a tile, in steps that the compiler can keep free of choices: bias and masks once per half, then all rows. */
#define STORE_ALL(R, ROUND) STORE_HALF(R, ROUND, acc0, 0) STORE_HALF(R, ROUND, acc1, 1)
#define STORE_HALF(R, ROUND, sums, h)                                                                                \
  if (t->n > 16 * h) {                                                                                               \
    __mmask16 mask = t->n - 16 * h >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << (t->n - 16 * h)) - 1u);            \
    __m512 bias = t->bias != NULL ? _mm512_maskz_loadu_ps(mask, t->bias + 16 * h) : _mm512_setzero_ps();             \
    if (t->c_bf16) {                                                                                                 \
      uint16_t *c = (uint16_t *)t->c + 16 * h;                                                                       \
      _Pragma("GCC unroll 14") for (int r = 0; r < R; r++, c += t->ldc) {                                            \
        __m512 v = _mm512_add_ps(sums[r], bias);                                                                      \
        if (t->acc) v = _mm512_add_ps(v, from_bf16(_mm256_maskz_loadu_epi16(mask, c)));                              \
        _mm256_mask_storeu_epi16(c, mask, ROUND(v));                                                                 \
      }                                                                                                              \
    } else {                                                                                                         \
      float *c = (float *)t->c + 16 * h;                                                                             \
      _Pragma("GCC unroll 14") for (int r = 0; r < R; r++, c += t->ldc) {                                            \
        __m512 v = _mm512_add_ps(sums[r], bias);                                                                      \
        if (t->acc) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, c));                                            \
        _mm512_mask_storeu_ps(c, mask, v);                                                                           \
      }                                                                                                              \
    }                                                                                                                \
  }

#define ROUND_BF16(v) ((__m256i)_mm512_cvtneps_pbh(v))

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
    STORE_ALL(R, to_bf16)                                                                           \
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
    STORE_ALL(R, ROUND_BF16)                                                                           \
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

/* Packing. */

TARGET_512 static inline __mmask16 first_n(int64_t n) {
  return n >= 16 ? (__mmask16)0xffff : n <= 0 ? (__mmask16)0 : (__mmask16)((1u << n) - 1u);
}

/* 16 units of one row of an fp32 matrix, k running along the row; `left` values are there. */
TARGET_512 static inline __m512i units_along(const float *row, int64_t left, bool pairs) {
  __m512 low = _mm512_maskz_loadu_ps(first_n(left), row);
  if (!pairs) return _mm512_castps_si512(low);
  __m512 high = left > 16 ? _mm512_maskz_loadu_ps(first_n(left - 16), row + 16) : _mm512_setzero_ps();
  return _mm512_inserti64x4(_mm512_castsi256_si512(to_bf16(low)), to_bf16(high), 1);
}

TARGET_512 static bool pack_along(int pitch, int wide, uint32_t *dst, const sn_gemm_source *s, int64_t first, int64_t k,
                                  bool pairs) {
  if (pitch % 16 != 0 || s->dtype != SN_F32 || s->round) return false;
  int64_t per = pairs ? 2 : 1, steps = (k + per - 1) / per;
  for (int64_t step = 0; step < steps; step += 16)
    for (int j = 0; j < pitch; j += 16) {
      __m512i v[16];
      for (int i = 0; i < 16; i++)
        v[i] = j + i < wide ? units_along((const float *)s->data + (first + j + i) * s->ld + step * per, k - step * per, pairs)
                            : _mm512_setzero_si512();
      sn_transpose_16x16(v);
      for (int i = 0; i < 16 && step + i < steps; i++) _mm512_storeu_si512(dst + (step + i) * pitch + j, v[i]);
    }
  return true;
}

TARGET_512 static inline __m256i load_bf16(const sn_gemm_source *s, int64_t at, __mmask16 mask) {
  if (s->dtype == SN_BF16) return _mm256_maskz_loadu_epi16(mask, (const uint16_t *)s->data + at);
  return to_bf16(_mm512_maskz_loadu_ps(mask, (const float *)s->data + at));
}

TARGET_512 static bool pack_across(int pitch, int wide, uint32_t *dst, const sn_gemm_source *s, int64_t first, int64_t k,
                                   bool pairs) {
  if (pitch % 16 != 0 || (!pairs && (s->dtype != SN_F32 || s->round))) return false;
  for (int64_t i = 0; i < k; i += pairs ? 2 : 1, dst += pitch)
    for (int j = 0; j < pitch; j += 16) {
      __mmask16 mask = first_n(wide - j);
      int64_t at = i * s->ld + first + j;
      __m512i v;
      if (!pairs) v = _mm512_castps_si512(_mm512_maskz_loadu_ps(mask, (const float *)s->data + at));
      else v = pairs_of(load_bf16(s, at, mask), i + 1 < k ? load_bf16(s, at + s->ld, mask) : _mm256_setzero_si256());
      _mm512_storeu_si512(dst + j, v);
    }
  return true;
}

static bool pack_f32(int pitch, int wide, uint32_t *dst, const sn_gemm_source *s, int64_t first, int64_t k) {
  return s->k_is_column ? pack_along(pitch, wide, dst, s, first, k, false) : pack_across(pitch, wide, dst, s, first, k, false);
}
static bool pack_bf16(int pitch, int wide, uint32_t *dst, const sn_gemm_source *s, int64_t first, int64_t k) {
  return s->k_is_column ? pack_along(pitch, wide, dst, s, first, k, true) : pack_across(pitch, wide, dst, s, first, k, true);
}

TARGET_512 void sn_gemm_round_avx512(uint16_t *dst, const float *src, int64_t n) {
  for (int64_t i = 0; i < n; i += 16) {
    __mmask16 mask = first_n(n - i);
    _mm256_mask_storeu_epi16(dst + i, mask, to_bf16(_mm512_maskz_loadu_ps(mask, src + i)));
  }
}

TARGET_512 void sn_gemm_sum_columns_avx512(double sum[32], const void *x, sn_dtype dtype, int64_t rows, int64_t ld) {
  __m512d total[4];
  for (int i = 0; i < 4; i++) total[i] = _mm512_setzero_pd();
  for (int64_t t = 0; t < rows; t++)
    for (int half = 0; half < 2; half++) {
      int64_t at = t * ld + 16 * half;
      __m512 v = dtype == SN_BF16 ? from_bf16(_mm256_loadu_si256((const __m256i *)(const void *)((const uint16_t *)x + at)))
                                  : _mm512_loadu_ps((const float *)x + at);
      total[2 * half] = _mm512_add_pd(total[2 * half], _mm512_cvtps_pd(_mm512_castps512_ps256(v)));
      total[2 * half + 1] = _mm512_add_pd(total[2 * half + 1], _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)));
    }
  for (int i = 0; i < 4; i++) _mm512_storeu_pd(sum + 8 * i, total[i]);
}

const sn_gemm_kernel sn_gemm_avx512 = {"avx512", false, ROWS, WIDTH, PITCH, run_f32, pack_f32};
const sn_gemm_kernel sn_gemm_avx512_bf16 = {"avx512_bf16", true, ROWS, WIDTH, PITCH, run_bf16, pack_bf16};
#endif
