/* bfloat16: the upper half of a float32, rounded to nearest even; NaN stays a (quiet) NaN. */
#ifndef SN_CORE_BF16_H
#define SN_CORE_BF16_H

#include <stdint.h>
#include <string.h>

static inline float sn_bf16_to_f32(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

static inline uint16_t sn_f32_to_bf16(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((bits >> 16) | 0x0040u);
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

#endif
