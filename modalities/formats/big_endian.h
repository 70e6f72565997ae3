/* Numbers that stand with their high byte first, from any address. */
#ifndef SN_MODALITIES_BIG_ENDIAN_H
#define SN_MODALITIES_BIG_ENDIAN_H

#include <stdint.h>
#include <string.h>

static inline int16_t sn_be_i16(const uint8_t *p) { return (int16_t)((uint16_t)p[0] << 8 | p[1]); }
static inline uint32_t sn_be_u32(const uint8_t *p) { return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]; }
static inline int32_t sn_be_i32(const uint8_t *p) { return (int32_t)sn_be_u32(p); }
static inline int64_t sn_be_i64(const uint8_t *p) { return (int64_t)((uint64_t)sn_be_u32(p) << 32 | sn_be_u32(p + 4)); }
static inline double sn_be_f32(const uint8_t *p) {
  uint32_t bits = sn_be_u32(p);
  float f;
  memcpy(&f, &bits, sizeof f);
  return (double)f;
}
static inline double sn_be_f64(const uint8_t *p) {
  int64_t bits = sn_be_i64(p);
  double d;
  memcpy(&d, &bits, sizeof d);
  return d;
}

#endif
