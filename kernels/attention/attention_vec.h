/* The few vector operations that the attention kernels are written with; included once per kernel file.
 *
 * Before including, define SN_LANES (16 or 8 floats of a vector) and set the target with #pragma GCC target. With AVX-512
 * or AVX2 the operations are intrinsics; without, GCC's generic vectors, so that the kernel source runs on any machine
 * (tests of kernels that the machine lacks). */
#ifndef SN_KERNELS_ATTENTION_VEC_H
#define SN_KERNELS_ATTENTION_VEC_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/bf16.h"

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#define SN_INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(SN_LANES * 4)));
typedef int32_t vi __attribute__((vector_size(SN_LANES * 4)));
typedef float vf_loose __attribute__((vector_size(SN_LANES * 4), aligned(4), may_alias));

SN_INLINE vf vf_load(const void *p) { return *(const vf_loose *)p; }
SN_INLINE void vf_store(void *p, vf x) { *(vf_loose *)p = x; }
SN_INLINE vf vf_zero(void) { return (vf){0}; }
SN_INLINE vf vf_set1(float x) { return x - (vf){0}; }

/* a * b + c, rounded once where the machine can. */
SN_INLINE vf vf_fma(vf a, vf b, vf c) {
#if SN_LANES == 16 && defined(__AVX512F__)
  return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif SN_LANES == 8 && defined(__FMA__)
  return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
#else
  return a * b + c;
#endif
}

/* A NaN in b is kept. */
SN_INLINE vf vf_max(vf a, vf b) {
#if SN_LANES == 16 && defined(__AVX512F__)
  return (vf)_mm512_max_ps((__m512)a, (__m512)b);
#elif SN_LANES == 8 && defined(__AVX2__)
  return (vf)_mm256_max_ps((__m256)a, (__m256)b);
#else
  vi larger = a > b;
  return (vf)(((vi)a & larger) | ((vi)b & ~larger));
#endif
}

SN_INLINE float vf_sum(vf x) {
#if SN_LANES == 16 && defined(__AVX512F__)
  return _mm512_reduce_add_ps((__m512)x);
#else
  float part[SN_LANES];
  memcpy(part, &x, sizeof part);
  for (int n = SN_LANES / 2; n > 0; n /= 2)
    for (int i = 0; i < n; i++) part[i] += part[i + n];
  return part[0];
#endif
}

SN_INLINE float vf_largest(vf x) {
#if SN_LANES == 16 && defined(__AVX512F__)
  return _mm512_reduce_max_ps((__m512)x);
#else
  float part[SN_LANES];
  memcpy(part, &x, sizeof part);
  for (int n = SN_LANES / 2; n > 0; n /= 2)
    for (int i = 0; i < n; i++) part[i] = part[i] > part[i + n] ? part[i] : part[i + n];
  return part[0];
#endif
}

/* 2^x for x <= about 0 (results up to 2^127): relative error 3e-6 (fast) or 2e-7, 0 below 2^-126, NaN kept.
 * 2^x = 2^n 2^r with n = round(x), |r| <= 1/2; 2^r by a polynomial fitted for least relative error. */
SN_INLINE vf vf_exp2(vf x, bool fast) {
  x = vf_max(vf_set1(-160), x);
#if SN_LANES == 16 && defined(__AVX512F__)
  vf n = (vf)_mm512_roundscale_ps((__m512)x, 8);
#else
  vf magic = vf_set1(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
  vf n = (x + magic) - magic;
#endif
  vf r = x - n, p;
  if (fast) {
    p = vf_fma(vf_set1(0.009570102207362652f), r, vf_set1(0.05591785907745361f));
    p = vf_fma(p, r, vf_set1(0.240247443318367f));
    p = vf_fma(p, r, vf_set1(0.6931217908859253f));
    p = vf_fma(p, r, vf_set1(0.9999992847442627f));
  } else {
    p = vf_fma(vf_set1(0.0001534581242594868f), r, vf_set1(0.0013399930903688073f));
    p = vf_fma(p, r, vf_set1(0.009618489071726799f));
    p = vf_fma(p, r, vf_set1(0.05550328642129898f));
    p = vf_fma(p, r, vf_set1(0.24022646248340607f));
    p = vf_fma(p, r, vf_set1(0.6931471824645996f));
    p = vf_fma(p, r, vf_set1(1.0f));
  }
#if SN_LANES == 16 && defined(__AVX512F__)
  return (vf)_mm512_scalef_ps((__m512)p, (__m512)n);
#else
  vf whole = vf_max(vf_set1(-126), n);
  vi exponent = __builtin_convertvector(whole, vi) << 23;
  vi zero = x < vf_set1(-126);
  return (vf)(((vi)p + exponent) & ~zero);
#endif
}

/* SN_LANES bf16 values at p, widened. */
SN_INLINE vf vf_load_bf16(const uint16_t *p) {
#if SN_LANES == 16 && defined(__AVX512F__)
  return (vf)_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16);
#elif SN_LANES == 8 && defined(__AVX2__)
  return (vf)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16);
#else
  vf x;
  for (int i = 0; i < SN_LANES; i++) x[i] = sn_bf16_to_f32(p[i]);
  return x;
#endif
}

/* Rounded to nearest even; a NaN stays one. */
SN_INLINE void vf_store_bf16(uint16_t *p, vf x) {
#if SN_LANES == 16 && defined(__AVX512BF16__)
  _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh((__m512)x));
#elif SN_LANES == 16 && defined(__AVX512F__)
  __m512i bits = (__m512i)x;
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff))), 16);
  __mmask16 nan = _mm512_cmp_ps_mask((__m512)x, (__m512)x, _CMP_UNORD_Q);
  rounded = _mm512_mask_or_epi32(rounded, nan, _mm512_srli_epi32(bits, 16), _mm512_set1_epi32(0x40));
  _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(rounded));
#else
  for (int i = 0; i < SN_LANES; i++) p[i] = sn_f32_to_bf16(x[i]);
#endif
}

/* The first n < SN_LANES values at p (the rest 0), and their store. */
SN_INLINE vf vf_load_part(const float *p, int64_t n) {
  float part[SN_LANES] = {0};
  memcpy(part, p, (size_t)n * sizeof *p);
  return vf_load(part);
}
SN_INLINE vf vf_load_bf16_part(const uint16_t *p, int64_t n) {
  uint16_t part[SN_LANES] = {0};
  memcpy(part, p, (size_t)n * sizeof *p);
  return vf_load_bf16(part);
}

/* 32-bit blocks: dst[c * dst_stride + r] = src[r * src_stride + c] for SN_LANES x SN_LANES values. */
SN_INLINE void transpose_block(float *dst, int64_t dst_stride, const float *src, int64_t src_stride) {
#if SN_LANES == 16 && defined(__AVX512F__)
  __m512 a[16], b[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i++) a[i] = _mm512_loadu_ps(src + i * src_stride);
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
    b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) { /* a[i + k]: column 4 l + k of rows i .. i + 3, in 128-bit lane l */
    a[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(b[i]), _mm512_castps_pd(b[i + 2])));
    a[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(b[i]), _mm512_castps_pd(b[i + 2])));
    a[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(b[i + 1]), _mm512_castps_pd(b[i + 3])));
    a[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(b[i + 1]), _mm512_castps_pd(b[i + 3])));
  }
#pragma GCC unroll 4
  for (int k = 0; k < 4; k++) {
    __m512 even_low = _mm512_shuffle_f32x4(a[k], a[4 + k], 0x88), odd_low = _mm512_shuffle_f32x4(a[k], a[4 + k], 0xdd);
    __m512 even_high = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0x88);
    __m512 odd_high = _mm512_shuffle_f32x4(a[8 + k], a[12 + k], 0xdd);
    _mm512_storeu_ps(dst + k * dst_stride, _mm512_shuffle_f32x4(even_low, even_high, 0x88));
    _mm512_storeu_ps(dst + (4 + k) * dst_stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0x88));
    _mm512_storeu_ps(dst + (8 + k) * dst_stride, _mm512_shuffle_f32x4(even_low, even_high, 0xdd));
    _mm512_storeu_ps(dst + (12 + k) * dst_stride, _mm512_shuffle_f32x4(odd_low, odd_high, 0xdd));
  }
#else
  for (int r = 0; r < SN_LANES; r++)
    for (int c = 0; c < SN_LANES; c++) memcpy(&dst[c * dst_stride + r], &src[r * src_stride + c], sizeof *dst);
#endif
}

#endif
