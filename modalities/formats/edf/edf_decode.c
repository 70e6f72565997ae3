/* Bytes of samples into integers and values: portable, and with AVX2 where the processor has it (bit-equal: a product, then a
 * sum, in both). */
#include "modalities/formats/edf/edf_parts.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline int32_t word16(const uint8_t *p) { return (int16_t)(uint16_t)(p[0] | p[1] << 8); }
static inline int32_t word24(const uint8_t *p) {
  return (int32_t)((uint32_t)p[0] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 24) >> 8;
}

#if defined(__x86_64__)
/* Both return how many samples they did; the rest is for the loop of the caller. */
__attribute__((target("avx2"))) static int64_t values16_avx2(const uint8_t *bytes, int64_t n, double a, double b, double *out) {
  const __m256d scale = _mm256_set1_pd(a), offset = _mm256_set1_pd(b);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m256i words = _mm256_cvtepi16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(bytes + 2 * i)));
    const __m256d low = _mm256_cvtepi32_pd(_mm256_castsi256_si128(words));
    const __m256d high = _mm256_cvtepi32_pd(_mm256_extracti128_si256(words, 1));
    _mm256_storeu_pd(out + i, _mm256_add_pd(_mm256_mul_pd(low, scale), offset));
    _mm256_storeu_pd(out + i + 4, _mm256_add_pd(_mm256_mul_pd(high, scale), offset));
  }
  return i;
}

__attribute__((target("avx2"))) static int64_t values24_avx2(const uint8_t *bytes, int64_t n, double a, double b, double *out) {
  const __m256d scale = _mm256_set1_pd(a), offset = _mm256_set1_pd(b);
  /* Four samples of three bytes to the upper bytes of four words. */
  const __m128i spread = _mm_setr_epi8(-1, 0, 1, 2, -1, 3, 4, 5, -1, 6, 7, 8, -1, 9, 10, 11);
  int64_t i = 0;
  for (; i + 6 <= n; i += 4) { /* 16 bytes are loaded, which are 5 samples and a byte */
    const __m128i packed = _mm_loadu_si128((const __m128i *)(const void *)(bytes + 3 * i));
    const __m128i words = _mm_srai_epi32(_mm_shuffle_epi8(packed, spread), 8);
    _mm256_storeu_pd(out + i, _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(words), scale), offset));
  }
  return i;
}
#endif

bool sn_edf_has_avx2(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

void sn_edf_decode(int width, bool avx2, const uint8_t *bytes, int64_t n, double a, double b, double *out) {
  int64_t i = 0;
#if defined(__x86_64__)
  if (avx2) i = width == 2 ? values16_avx2(bytes, n, a, b, out) : values24_avx2(bytes, n, a, b, out);
#endif
  if (width == 2) {
    for (; i < n; i++) out[i] = (double)word16(bytes + 2 * i) * a + b;
  } else {
    for (; i < n; i++) out[i] = (double)word24(bytes + 3 * i) * a + b;
  }
}

void sn_edf_decode_stored(int width, const uint8_t *bytes, int64_t n, int32_t *out) {
  if (width == 2) {
    for (int64_t i = 0; i < n; i++) out[i] = word16(bytes + 2 * i);
  } else {
    for (int64_t i = 0; i < n; i++) out[i] = word24(bytes + 3 * i);
  }
}

void sn_edf_decode_words(int width, const uint8_t *bytes, int64_t n, int32_t *out) {
  const int32_t mask = width == 2 ? 0xFFFF : 0xFFFFFF;
  sn_edf_decode_stored(width, bytes, n, out);
  for (int64_t i = 0; i < n; i++) out[i] &= mask;
}
