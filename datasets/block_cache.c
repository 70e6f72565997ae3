/* needs: full */
#include "datasets/block_cache.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"

typedef struct block {
  sn_block_key key;
  int64_t n;
  struct block *chain; /* same bucket */
  struct block *newer, *older;
  float values[];
} block;

struct sn_block_cache {
  pthread_mutex_t lock;
  int64_t limit, used;
  int64_t n_buckets, n_blocks;
  block **buckets;
  block *newest, *oldest;
  int64_t hits, misses;
};

enum { BUCKETS_LEAST = 1024 };

sn_status sn_block_cache_create(int64_t bytes, sn_block_cache **out, sn_error *err) {
  sn_block_cache *cache = NULL;
  if (bytes < 0) return sn_fail(err, SN_E_ARGUMENT, "a cache of fewer than 0 bytes");
  SN_TRY(sn_alloc(&cache, 1, sizeof *cache, "block cache", err));
  cache->n_buckets = BUCKETS_LEAST;
  sn_status status = sn_alloc(&cache->buckets, cache->n_buckets, sizeof *cache->buckets, "block cache", err);
  if (status != SN_OK) {
    sn_free(cache);
    return status;
  }
  cache->limit = bytes;
  pthread_mutex_init(&cache->lock, NULL);
  *out = cache;
  return SN_OK;
}

void sn_block_cache_destroy(sn_block_cache *cache) {
  if (cache == NULL) return;
  for (block *b = cache->newest; b != NULL;) {
    block *next = b->older;
    sn_free(b);
    b = next;
  }
  sn_free(cache->buckets);
  pthread_mutex_destroy(&cache->lock);
  sn_free(cache);
}

static uint64_t mix(uint64_t h, uint64_t x) {
  h = (h ^ x) * UINT64_C(0x9E3779B97F4A7C15);
  return h ^ (h >> 29);
}

static int64_t bucket_of(const sn_block_key *k, int64_t n_buckets) {
  uint64_t h = mix(mix(mix(mix(1, (uint64_t)k->row), (uint64_t)k->block), (uint64_t)k->channel), (uint64_t)k->segment);
  return (int64_t)(h & (uint64_t)(n_buckets - 1));
}

static bool same(const sn_block_key *a, const sn_block_key *b) {
  return a->row == b->row && a->block == b->block && a->channel == b->channel && a->segment == b->segment;
}

static int64_t bytes_of(int64_t n) { return (int64_t)sizeof(block) + n * (int64_t)sizeof(float); }

/* ---- under the lock ---- */

static block *find(sn_block_cache *cache, const sn_block_key *key) {
  block *b = cache->buckets[bucket_of(key, cache->n_buckets)];
  while (b != NULL && !same(&b->key, key)) b = b->chain;
  return b;
}

static void unlink_order(sn_block_cache *cache, block *b) {
  if (b->newer != NULL) b->newer->older = b->older;
  if (b->older != NULL) b->older->newer = b->newer;
  if (cache->newest == b) cache->newest = b->older;
  if (cache->oldest == b) cache->oldest = b->newer;
}

static void link_newest(sn_block_cache *cache, block *b) {
  b->newer = NULL;
  b->older = cache->newest;
  if (cache->newest != NULL) cache->newest->newer = b;
  cache->newest = b;
  if (cache->oldest == NULL) cache->oldest = b;
}

static void evict_oldest(sn_block_cache *cache) {
  block *b = cache->oldest;
  block **at = &cache->buckets[bucket_of(&b->key, cache->n_buckets)];
  while (*at != b) at = &(*at)->chain;
  *at = b->chain;
  unlink_order(cache, b);
  cache->used -= bytes_of(b->n);
  cache->n_blocks--;
  sn_free(b);
}

static void grow_buckets(sn_block_cache *cache) {
  block **wider = NULL;
  int64_t n = 2 * cache->n_buckets;
  if (cache->n_blocks < cache->n_buckets || sn_alloc(&wider, n, sizeof *wider, "block cache", NULL) != SN_OK) return;
  for (block *b = cache->newest; b != NULL; b = b->older) {
    block **head = &wider[bucket_of(&b->key, n)];
    b->chain = *head;
    *head = b;
  }
  sn_free(cache->buckets);
  cache->buckets = wider;
  cache->n_buckets = n;
}

/* ---- public ---- */

bool sn_block_cache_get(sn_block_cache *cache, const sn_block_key *key, int64_t first, int64_t count, double *values) {
  pthread_mutex_lock(&cache->lock);
  block *b = find(cache, key);
  if (b != NULL) {
    assert(first >= 0 && first + count <= b->n);
    for (int64_t i = 0; i < count; i++) values[i] = (double)b->values[first + i];
    unlink_order(cache, b);
    link_newest(cache, b);
    cache->hits++;
  } else {
    cache->misses++;
  }
  pthread_mutex_unlock(&cache->lock);
  return b != NULL;
}

void sn_block_cache_put(sn_block_cache *cache, const sn_block_key *key, const float *values, int64_t n) {
  block *b = NULL;
  int64_t bytes = bytes_of(n);
  if (bytes > cache->limit || sn_alloc(&b, bytes, 1, "cached block", NULL) != SN_OK) return;
  b->key = *key;
  b->n = n;
  memcpy(b->values, values, (size_t)n * sizeof *values);
  pthread_mutex_lock(&cache->lock);
  if (find(cache, key) != NULL) { /* another thread was quicker; both hold the same values */
    pthread_mutex_unlock(&cache->lock);
    sn_free(b);
    return;
  }
  while (cache->used + bytes > cache->limit) evict_oldest(cache);
  grow_buckets(cache);
  block **head = &cache->buckets[bucket_of(key, cache->n_buckets)];
  b->chain = *head;
  *head = b;
  link_newest(cache, b);
  cache->used += bytes;
  cache->n_blocks++;
  pthread_mutex_unlock(&cache->lock);
}

void sn_block_cache_counts(sn_block_cache *cache, int64_t *hits, int64_t *misses, int64_t *bytes) {
  pthread_mutex_lock(&cache->lock);
  *hits = cache->hits;
  *misses = cache->misses;
  *bytes = cache->used;
  pthread_mutex_unlock(&cache->lock);
}
