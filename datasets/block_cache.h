/* A bounded cache of float blocks: least recently used out first.  What it holds never changes a result, only how
 * often a block is computed. */
#ifndef SN_DATASETS_BLOCK_CACHE_H
#define SN_DATASETS_BLOCK_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_block_key {
  int64_t row, block;
  int32_t channel, segment;
} sn_block_key;

typedef struct sn_block_cache sn_block_cache;

/* bytes 0: holds nothing. Thread-safe. */
SN_MUST_CHECK sn_status sn_block_cache_create(int64_t bytes, sn_block_cache **out, sn_error *err);
void sn_block_cache_destroy(sn_block_cache *cache); /* accepts NULL */
/* Copies count values from `first` on, widened to double; false when the block is not there. */
bool sn_block_cache_get(sn_block_cache *cache, const sn_block_key *key, int64_t first, int64_t count, double *values);
/* Copies n values in. A block that does not fit, or for which there is no memory, is left out. */
void sn_block_cache_put(sn_block_cache *cache, const sn_block_key *key, const float *values, int64_t n);
void sn_block_cache_counts(sn_block_cache *cache, int64_t *hits, int64_t *misses, int64_t *bytes);

#endif
