#include "core/philox.h"

#include <assert.h>
#include <math.h>

#include "core/sha256.h"

#define MULTIPLIER_0 0xD2511F53u
#define MULTIPLIER_1 0xCD9E8D57u
#define WEYL_0 0x9E3779B9u /* golden ratio */
#define WEYL_1 0xBB67AE85u /* sqrt(3) - 1 */
#define TWO_PI 6.283185307179586476925286766559

/* Keys that keep the three uses of the bijection apart (arbitrary constants; part of the checkpoint contract). */
#define DOMAIN_PURPOSE 0x736E7075u
#define DOMAIN_FORK 0x736E666Bu
#define DOMAIN_FEISTEL 0x736E6662u

enum { FEISTEL_ROUNDS = 8 };

static inline sn_philox_block one_round(sn_philox_block x, uint32_t key_0, uint32_t key_1) {
  uint64_t p = (uint64_t)MULTIPLIER_0 * x.word[0], q = (uint64_t)MULTIPLIER_1 * x.word[2];
  return (sn_philox_block){{(uint32_t)(q >> 32) ^ x.word[1] ^ key_0, (uint32_t)q,
                            (uint32_t)(p >> 32) ^ x.word[3] ^ key_1, (uint32_t)p}};
}

sn_philox_block sn_philox4x32(const uint32_t counter[4], const uint32_t key[2]) {
  sn_philox_block x = {{counter[0], counter[1], counter[2], counter[3]}};
  uint32_t key_0 = key[0], key_1 = key[1];
  for (int round = 0; round < 10; round++) {
    x = one_round(x, key_0, key_1);
    key_0 += WEYL_0;
    key_1 += WEYL_1;
  }
  return x;
}

static sn_philox_block identity_of(uint64_t seed, uint32_t purpose, uint64_t epoch, uint64_t sample_id) {
  const uint32_t seed_key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  const uint32_t place[4] = {(uint32_t)epoch, (uint32_t)(epoch >> 32), (uint32_t)sample_id,
                             (uint32_t)(sample_id >> 32)};
  const uint32_t purpose_key[2] = {purpose, DOMAIN_PURPOSE};
  sn_philox_block mixed = sn_philox4x32(place, seed_key);
  return sn_philox4x32(mixed.word, purpose_key);
}

static sn_random random_of(sn_philox_block identity) {
  return (sn_random){.key = {identity.word[0], identity.word[1]},
                     .counter = {0, 0, identity.word[2], identity.word[3]},
                     .used = 4};
}

sn_random sn_random_at(uint64_t seed, sn_purpose purpose, uint64_t epoch, uint64_t sample_id) {
  return random_of(identity_of(seed, (uint32_t)purpose, epoch, sample_id));
}

sn_random sn_random_fork(const sn_random *parent, uint64_t part) {
  const uint32_t identity[4] = {parent->key[0] ^ DOMAIN_FORK, parent->key[1], parent->counter[2], parent->counter[3]};
  const uint32_t part_key[2] = {(uint32_t)part, (uint32_t)(part >> 32)};
  return random_of(sn_philox4x32(identity, part_key));
}

sn_random sn_random_at_view(uint64_t seed, sn_purpose purpose, uint64_t epoch, uint64_t sample_id, int64_t view) {
  const sn_random whole = sn_random_at(seed, purpose, epoch, sample_id);
  return view == 0 ? whole : sn_random_fork(&whole, (uint64_t)view);
}

uint32_t sn_random_u32(sn_random *random) {
  if (random->used >= 4) {
    random->block = sn_philox4x32(random->counter, random->key);
    if (++random->counter[0] == 0) random->counter[1]++;
    random->used = 0;
  }
  return random->block.word[random->used++];
}

uint64_t sn_random_u64(sn_random *random) {
  uint64_t low = sn_random_u32(random);
  return low | (uint64_t)sn_random_u32(random) << 32;
}

double sn_random_uniform(sn_random *random) { return (double)(sn_random_u64(random) >> 11) * 0x1p-53; }

uint64_t sn_random_below(sn_random *random, uint64_t bound) {
  assert(bound >= 1);
  /* 2^64 mod bound: the draws below it are one too many for an even share of each remainder. */
  const uint64_t surplus = (0 - bound) % bound;
  uint64_t draw;
  do {
    draw = sn_random_u64(random);
  } while (draw < surplus);
  return draw % bound;
}

double sn_random_normal(sn_random *random) {
  double radius = sqrt(-2.0 * log(1.0 - sn_random_uniform(random))); /* 1 - u lies in (0, 1] */
  return radius * cos(TWO_PI * sn_random_uniform(random));
}

void sn_random_permutation(sn_random *random, int64_t n, int64_t *order) {
  for (int64_t i = 0; i < n; i++) order[i] = i;
  for (int64_t i = n - 1; i > 0; i--) {
    int64_t j = (int64_t)sn_random_below(random, (uint64_t)i + 1);
    int64_t kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
}

uint64_t sn_bijection(uint64_t seed, sn_purpose purpose, uint64_t epoch, uint64_t n, uint64_t i) {
  assert(i < n);
  if (n <= 1) return 0;
  /* Two halves of `half` bits whose square covers [0,n) with the fewest values beyond it: below 4 n in all, so that
   * a walk takes fewer than 4 steps on average. */
  int half = 1;
  while (half < 32 && (n - 1) >> (2 * half) != 0) half++;
  const uint32_t mask = half == 32 ? UINT32_MAX : ((uint32_t)1 << half) - 1;
  const sn_philox_block identity = identity_of(seed, (uint32_t)purpose, epoch, DOMAIN_FEISTEL);
  uint64_t x = i;
  do {
    uint32_t left = (uint32_t)(x >> half) & mask, right = (uint32_t)x & mask;
    for (uint32_t round = 0; round < FEISTEL_ROUNDS; round++) {
      const uint32_t counter[4] = {right, round, identity.word[2], identity.word[3]};
      uint32_t next = left ^ (sn_philox4x32(counter, identity.word).word[0] & mask);
      left = right;
      right = next;
    }
    x = (uint64_t)left << half | right;
  } while (x >= n);
  return x;
}

uint64_t sn_hash64(const void *data, int64_t n) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  sn_sha256_update(&hash, data, n);
  sn_sha256_final(&hash, digest);
  return sn_sha256_low64(digest);
}
