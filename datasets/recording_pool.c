/* needs: full */
#include "datasets/recording_pool.h"

#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "datasets/tree.h"
#include "modalities/modality.h"

enum { STRIPES = 64 };

typedef struct slot {
  sn_recording *recording;
  int64_t row, users;
  uint64_t last_use;
} slot;

struct sn_recording_pool {
  const sn_manifest *manifest;
  sn_tree *tree;
  sn_open_options options;
  sn_verify verify;
  int64_t n_slots;
  slot *slots;
  uint8_t *verified; /* (manifest->n) */
  uint64_t clock;
  sn_log log;
  int64_t opened, open_now, most_open;
  pthread_mutex_t lock;
  pthread_mutex_t stripes[STRIPES]; /* one opens and verifies a recording at a time */
};

sn_status sn_recording_pool_create(const sn_manifest *manifest, int64_t most_open, sn_verify verify,
                                   const sn_open_options *options, const sn_log *log, sn_recording_pool **out,
                                   sn_error *err) {
  sn_recording_pool *pool = NULL;
  if (most_open < 1) return sn_fail(err, SN_E_ARGUMENT, "at least one recording must be allowed to be open");
  SN_TRY(sn_alloc(&pool, 1, sizeof *pool, "open recordings", err));
  sn_status status = sn_alloc(&pool->slots, most_open, sizeof *pool->slots, "open recordings", err);
  if (status == SN_OK) status = sn_alloc(&pool->verified, manifest->n, 1, "open recordings", err);
  if (status == SN_OK) status = sn_tree_open(manifest->root, &pool->tree, err);
  if (status != SN_OK) {
    sn_free(pool->verified);
    sn_free(pool->slots);
    sn_free(pool);
    return status;
  }
  pool->manifest = manifest;
  pool->verify = verify;
  pool->n_slots = most_open;
  if (options != NULL) pool->options = *options;
  if (log != NULL) pool->log = *log;
  pthread_mutex_init(&pool->lock, NULL);
  for (int i = 0; i < STRIPES; i++) pthread_mutex_init(&pool->stripes[i], NULL);
  *out = pool;
  return SN_OK;
}

void sn_recording_pool_destroy(sn_recording_pool *pool) {
  if (pool == NULL) return;
  for (int64_t i = 0; i < pool->n_slots; i++) sn_recording_destroy(pool->slots[i].recording);
  for (int i = 0; i < STRIPES; i++) pthread_mutex_destroy(&pool->stripes[i]);
  pthread_mutex_destroy(&pool->lock);
  sn_free(pool->slots);
  sn_free(pool->verified);
  sn_tree_close(pool->tree);
  sn_free(pool);
}

/* Under the lock: the slot of a row, or NULL. */
static slot *find_slot(sn_recording_pool *pool, int64_t row) {
  for (int64_t i = 0; i < pool->n_slots; i++) {
    if (pool->slots[i].recording != NULL && pool->slots[i].row == row) return &pool->slots[i];
  }
  return NULL;
}

static sn_recording *use_slot(sn_recording_pool *pool, int64_t row) {
  pthread_mutex_lock(&pool->lock);
  slot *s = find_slot(pool, row);
  if (s != NULL) {
    s->users++;
    s->last_use = ++pool->clock;
  }
  pthread_mutex_unlock(&pool->lock);
  return s != NULL ? s->recording : NULL;
}

/* Makes room before a recording is opened: an unused slot, emptied and marked as taken by users = 1; NULL when every
 * one is in use. */
static slot *reserve_slot(sn_recording_pool *pool) {
  slot *oldest = NULL;
  sn_recording *close = NULL;
  pthread_mutex_lock(&pool->lock);
  for (int64_t i = 0; i < pool->n_slots; i++) {
    slot *s = &pool->slots[i];
    if (s->users > 0) continue;
    if (oldest == NULL || s->last_use < oldest->last_use) oldest = s;
  }
  if (oldest != NULL) {
    close = oldest->recording;
    pool->open_now -= close != NULL;
    *oldest = (slot){.row = -1, .users = 1, .last_use = ++pool->clock};
  }
  pthread_mutex_unlock(&pool->lock);
  sn_recording_destroy(close);
  return oldest;
}

/* What a modality finds odd about a recording. */
static void notice(const sn_recording_pool *pool, int64_t row, const sn_recording *recording) {
  char text[256] = "";
  const sn_modality *modality = sn_modality_of(recording->modality);
  if (pool->log.write == NULL || modality == NULL || modality->notice == NULL) return;
  modality->notice(recording, text);
  if (text[0] != '\0') sn_log_write(&pool->log, SN_LOG_WARNING, "%s: %s", pool->manifest->rows[row].path, text);
}

enum { VERIFIED = 1, NOTICED = 2 };

static sn_status check(sn_recording_pool *pool, int64_t row, const sn_recording *recording, sn_error *err) {
  if (pool->verified[row] & VERIFIED) return SN_OK;
  if (!(pool->verified[row] & NOTICED)) notice(pool, row, recording);
  pool->verified[row] |= NOTICED; /* once, however often a recording fails below and is opened again */
  if (pool->verify != SN_VERIFY_NONE) SN_TRY(sn_manifest_verify(pool->manifest, row, err));
  if (pool->verify == SN_VERIFY_FULL && recording->vtable->verify != NULL) {
    SN_TRY(recording->vtable->verify(recording, err));
  }
  pool->verified[row] |= VERIFIED; /* only ever touched under the row's stripe */
  return SN_OK;
}

static sn_status open_checked(sn_recording_pool *pool, int64_t row, sn_recording **out, sn_error *err) {
  sn_status status = sn_tree_open_recording(pool->tree, pool->manifest->rows[row].path, &pool->options, out, err);
  if (status == SN_OK) {
    pthread_mutex_lock(&pool->lock);
    pool->opened++;
    pool->open_now++;
    if (pool->open_now > pool->most_open) pool->most_open = pool->open_now;
    pthread_mutex_unlock(&pool->lock);
    status = check(pool, row, *out, err);
  }
  if (status == SN_OK) return SN_OK;
  if (*out != NULL) {
    pthread_mutex_lock(&pool->lock);
    pool->open_now--;
    pthread_mutex_unlock(&pool->lock);
  }
  sn_recording_destroy(*out);
  *out = NULL;
  return sn_error_prefix(err, status, "%s", pool->manifest->rows[row].path);
}

sn_status sn_recording_pool_take(sn_recording_pool *pool, int64_t row, const sn_recording **out, sn_error *err) {
  *out = use_slot(pool, row);
  if (*out != NULL) return SN_OK;
  pthread_mutex_t *stripe = &pool->stripes[row % STRIPES];
  pthread_mutex_lock(stripe);
  *out = use_slot(pool, row); /* another may have opened it meanwhile */
  sn_status status = SN_OK;
  if (*out == NULL) {
    slot *s = reserve_slot(pool);
    sn_recording *recording = NULL;
    status = open_checked(pool, row, &recording, err);
    if (s != NULL) {
      pthread_mutex_lock(&pool->lock);
      s->recording = recording;
      s->row = recording != NULL ? row : -1;
      s->users = recording != NULL;
      pthread_mutex_unlock(&pool->lock);
    }
    *out = recording;
  }
  pthread_mutex_unlock(stripe);
  return status;
}

void sn_recording_pool_give(sn_recording_pool *pool, int64_t row, const sn_recording *recording) {
  bool alone = true;
  pthread_mutex_lock(&pool->lock);
  for (int64_t i = 0; i < pool->n_slots && alone; i++) {
    if (pool->slots[i].recording != recording) continue;
    pool->slots[i].users--;
    alone = false;
  }
  pool->open_now -= alone;
  pthread_mutex_unlock(&pool->lock);
  if (alone) sn_recording_destroy((sn_recording *)(uintptr_t)recording);
}

int64_t sn_recording_pool_opened(const sn_recording_pool *pool) { return pool->opened; }
int64_t sn_recording_pool_most_open(const sn_recording_pool *pool) { return pool->most_open; }
