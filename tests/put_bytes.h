/* Numbers into files made by hand: high byte first (be) or low byte first (le). */
#ifndef SN_TESTS_PUT_BYTES_H
#define SN_TESTS_PUT_BYTES_H

#include <stdint.h>
#include <string.h>

static inline void put_be(uint8_t *p, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> (8 * (bytes - 1 - i)));
}
static inline void put_le(uint8_t *p, uint64_t v, int bytes) {
  for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> (8 * i));
}
static inline uint64_t f64_bits(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}
static inline void put_be16(uint8_t *p, int v) { put_be(p, (uint64_t)(int64_t)v, 2); }
static inline void put_be32(uint8_t *p, int32_t v) { put_be(p, (uint64_t)(int64_t)v, 4); }
static inline void put_be_f64(uint8_t *p, double v) { put_be(p, f64_bits(v), 8); }
static inline void put_be_f32(uint8_t *p, float v) {
  uint32_t bits;
  memcpy(&bits, &v, sizeof bits);
  put_be(p, bits, 4);
}
static inline void put_le32(uint8_t *p, int32_t v) { put_le(p, (uint64_t)(int64_t)v, 4); }
static inline void put_le_f64(uint8_t *p, double v) { put_le(p, f64_bits(v), 8); }

#endif
