#include "core/sha256.h"

#include <string.h>

#if defined __x86_64__ && defined __GNUC__
#include <cpuid.h>
#include <immintrin.h>
#include <pthread.h>
#define HAVE_SHA_INSTRUCTIONS 1
#endif

/* First 32 bits of the fractional parts of the cube roots of the first 64 primes (section 4.2.2). */
static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static inline uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void compress_portable(uint32_t state[8], const uint8_t block[64]) {
  uint32_t w[64];
  for (int t = 0; t < 16; t++) {
    const uint8_t *b = block + 4 * t;
    w[t] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
  }
  for (int t = 16; t < 64; t++) {
    uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
    uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
  uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
  for (int t = 0; t < 64; t++) {
    uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + K[t] + w[t];
    uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d;
  state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

#ifdef HAVE_SHA_INSTRUCTIONS
/* CPUID leaf 7: SHA; leaf 1: SSE4.1. None of them needs the operating system's help, as wider registers would. */
static bool found_sha_instructions;
static void look_for_sha_instructions(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || (c & bit_SSE4_1) == 0 || (c & bit_SSSE3) == 0) return;
  found_sha_instructions = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & bit_SHA) != 0;
}

/* Asked once: under a hypervisor CPUID takes longer than a short message. */
static bool has_sha_instructions(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look_for_sha_instructions);
  return found_sha_instructions;
}

/* sha256rnds2 does two rounds on the state as (A B E F) and (C D G H), highest word first; sha256msg1 and sha256msg2
 * together make four words of the message schedule from the sixteen before (Intel, "SHA extensions", 2013). */
__attribute__((target("sha,sse4.1,ssse3"))) static void compress_sha(uint32_t state[8], const uint8_t *blocks,
                                                                    int64_t n_blocks) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i abef = _mm_set_epi32((int)state[0], (int)state[1], (int)state[4], (int)state[5]);
  __m128i cdgh = _mm_set_epi32((int)state[2], (int)state[3], (int)state[6], (int)state[7]);
  for (; n_blocks > 0; n_blocks--, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 16; i++) {
      __m128i *now = &w[i & 3];
      if (i < 4) {
        *now = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(blocks + 16 * i)), swap);
      } else {
        const __m128i last = w[(i + 3) & 3], before_last = w[(i + 2) & 3];
        *now = _mm_sha256msg1_epu32(*now, w[(i + 1) & 3]);
        *now = _mm_add_epi32(*now, _mm_alignr_epi8(last, before_last, 4));
        *now = _mm_sha256msg2_epu32(*now, last);
      }
      __m128i sum = _mm_add_epi32(*now, _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0E));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  state[0] = (uint32_t)_mm_extract_epi32(abef, 3), state[1] = (uint32_t)_mm_extract_epi32(abef, 2);
  state[4] = (uint32_t)_mm_extract_epi32(abef, 1), state[5] = (uint32_t)_mm_extract_epi32(abef, 0);
  state[2] = (uint32_t)_mm_extract_epi32(cdgh, 3), state[3] = (uint32_t)_mm_extract_epi32(cdgh, 2);
  state[6] = (uint32_t)_mm_extract_epi32(cdgh, 1), state[7] = (uint32_t)_mm_extract_epi32(cdgh, 0);
}
#endif

static void compress(sn_sha256 *hash, const uint8_t *blocks, int64_t n_blocks) {
#ifdef HAVE_SHA_INSTRUCTIONS
  if (hash->use_instructions) {
    compress_sha(hash->state, blocks, n_blocks);
    return;
  }
#endif
  for (; n_blocks > 0; n_blocks--, blocks += 64) compress_portable(hash->state, blocks);
}

void sn_sha256_init(sn_sha256 *hash) {
  static const uint32_t INITIAL[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memset(hash, 0, sizeof *hash);
  memcpy(hash->state, INITIAL, sizeof INITIAL);
#ifdef HAVE_SHA_INSTRUCTIONS
  hash->use_instructions = has_sha_instructions();
#endif
}

void sn_sha256_update(sn_sha256 *hash, const void *data, int64_t n) {
  const uint8_t *bytes = data;
  uint64_t held = hash->n_bytes % 64;
  if (n <= 0) return;
  hash->n_bytes += (uint64_t)n;
  if (held > 0) {
    int64_t room = (int64_t)(64 - held), take = n < room ? n : room;
    memcpy(hash->block + held, bytes, (size_t)take);
    if (take < room) return;
    compress(hash, hash->block, 1);
    bytes += take;
    n -= take;
  }
  compress(hash, bytes, n / 64);
  bytes += n / 64 * 64;
  n %= 64;
  if (n > 0) memcpy(hash->block, bytes, (size_t)n);
}

void sn_sha256_final(sn_sha256 *hash, uint8_t digest[32]) {
  static const uint8_t PADDING[64] = {0x80};
  uint64_t bits = hash->n_bytes * 8, held = hash->n_bytes % 64;
  sn_sha256_update(hash, PADDING, (int64_t)(held < 56 ? 56 - held : 120 - held));
  uint8_t length[8];
  for (int i = 0; i < 8; i++) length[i] = (uint8_t)(bits >> (56 - 8 * i));
  sn_sha256_update(hash, length, 8);
  for (int i = 0; i < 32; i++) digest[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sn_sha256_hex(const uint8_t digest[32], char text[65]) {
  static const char DIGITS[] = "0123456789abcdef";
  for (int i = 0; i < 32; i++) {
    text[2 * i] = DIGITS[digest[i] >> 4];
    text[2 * i + 1] = DIGITS[digest[i] & 15];
  }
  text[64] = '\0';
}

void sn_sha256_text(const void *data, int64_t n, char text[65]) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  sn_sha256_update(&hash, data, n);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, text);
}

uint64_t sn_sha256_low64(const uint8_t digest[32]) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | digest[i];
  return value;
}
