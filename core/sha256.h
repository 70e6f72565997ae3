/* SHA-256 (FIPS 180-4). */
#ifndef SN_CORE_SHA256_H
#define SN_CORE_SHA256_H

#include <stdbool.h>
#include <stdint.h>

typedef struct sn_sha256 {
  uint32_t state[8];
  uint64_t n_bytes;
  uint8_t block[64];
  bool use_instructions; /* the processor's own SHA-256 (same digest); may be cleared after sn_sha256_init */
} sn_sha256;

/* Any number of updates, whose bytes count as one text; nothing is allocated and nothing fails. */
void sn_sha256_init(sn_sha256 *hash);
void sn_sha256_update(sn_sha256 *hash, const void *data, int64_t n);
void sn_sha256_final(sn_sha256 *hash, uint8_t digest[32]);
/* 64 lower-case digits and a NUL. */
void sn_sha256_hex(const uint8_t digest[32], char text[65]);
/* The digest of n bytes at once, as 64 hexadecimal digits. */
void sn_sha256_text(const void *data, int64_t n, char text[65]);
/* The digest's first eight bytes as a number, lowest first. */
uint64_t sn_sha256_low64(const uint8_t digest[32]);

#endif
