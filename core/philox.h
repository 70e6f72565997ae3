/* Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
 *
 * Every draw is a function of (seed, purpose, epoch, sample id, index); there is no hidden state, so that masks,
 * crops, dropout and order do not depend on threads, workers, ranks or the order of calls. */
#ifndef SN_CORE_PHILOX_H
#define SN_CORE_PHILOX_H

#include <stdint.h>

typedef struct sn_philox_block { uint32_t word[4]; } sn_philox_block;

/* The bare bijection: ten rounds on counter with key. */
sn_philox_block sn_philox4x32(const uint32_t counter[4], const uint32_t key[2]);

/* What a stream is for. Values are part of the checkpoint contract: never renumber, only append. */
typedef enum sn_purpose {
  SN_PURPOSE_INIT = 1,     /* parameter initialisation; sample id = hash of the parameter's name */
  SN_PURPOSE_ORDER = 2,    /* keyed bijection over windows */
  SN_PURPOSE_CROP = 3,
  SN_PURPOSE_MASK = 4,
  SN_PURPOSE_AUGMENT = 5,
  SN_PURPOSE_DROPOUT = 6,  /* further keyed by layer through sn_random_fork */
  SN_PURPOSE_DROP_PATH = 7,
  SN_PURPOSE_SPLIT = 8,
  SN_PURPOSE_BOOTSTRAP = 9,
  SN_PURPOSE_SYNTH = 10,
  SN_PURPOSE_PROBE = 11,
  SN_PURPOSE_TEST = 12,
  SN_PURPOSE_POSITIVE = 13,
  SN_PURPOSE_SLICE = 14    /* random directions of projections; epoch = step, sample id = number of the direction */
} sn_purpose;

/* A position in the sequence of one (seed, purpose, epoch, sample id). A plain value: copying it forks the position. */
typedef struct sn_random {
  uint32_t key[2];
  uint32_t counter[4]; /* counter[0..1]: 64-bit block index; counter[2..3]: mixed identity */
  uint32_t used;       /* words already taken from the current block, 0..4 */
  sn_philox_block block;
} sn_random;

/* The start of a sequence. Its identity is 128 bits, I = P(P((epoch, sample_id); seed); (purpose, constant)) with
 * P(counter; key) = Philox4x32-10: key = I[0..1], counter[2..3] = I[2..3]. P is a bijection of the counter, so that for
 * one seed and purpose no two (epoch, sample_id) share an identity and thus a block; for different seeds or purposes two
 * identities agree with probability 2^-128. A sequence holds 2^64 blocks of four words. */
sn_random sn_random_at(uint64_t seed, sn_purpose purpose, uint64_t epoch, uint64_t sample_id);

/* An independent stream for a numbered part (a layer, a channel) of the same identity: it depends on the identity of
 * `parent`, not on how much was drawn from it. Forks may be forked. */
sn_random sn_random_fork(const sn_random *parent, uint64_t part);

/* The start of the sequence of one view of a sample (core/token_batch.h): of view 0 that of the sample, of view v > 0 its fork
 * v.  What differs between views draws from here. */
sn_random sn_random_at_view(uint64_t seed, sn_purpose purpose, uint64_t epoch, uint64_t sample_id, int64_t view);

uint32_t sn_random_u32(sn_random *random);
uint64_t sn_random_u64(sn_random *random);
double sn_random_uniform(sn_random *random);                 /* [0,1), 53 bits */
uint64_t sn_random_below(sn_random *random, uint64_t bound); /* [0,bound), unbiased; bound >= 1 */
double sn_random_normal(sn_random *random);                  /* Box-Muller, float64 */

/* A uniform random permutation of 0..n-1 (Fisher-Yates). */
void sn_random_permutation(sn_random *random, int64_t n, int64_t *order);

/* The i-th element of a keyed bijection of [0,n): balanced Feistel network (8 rounds, Philox as round function) on the
 * smallest even number of bits that holds n-1, with cycle walking (Black and Rogaway, "Ciphers with arbitrary finite
 * domains", CT-RSA 2002). O(1) memory, no shuffled list, fewer than 4 walks on average. 0 <= i < n. */
uint64_t sn_bijection(uint64_t seed, sn_purpose purpose, uint64_t epoch, uint64_t n, uint64_t i);

/* 64-bit hash of bytes (first 8 bytes of SHA-256, little-endian): sample ids, parameter ids. */
uint64_t sn_hash64(const void *data, int64_t n);

#endif
