/* Ranks that are threads of one process.
 *
 * A collective has two meetings.  At the first every rank shows what it called and with which buffers; then each works on
 * the shared buffers; the second keeps every buffer alive until all are done with it.  When something fails while others
 * still work, a rank leaves its call only after they have stopped (busy), for the same reason. */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "kernels/comm/comm.h"

typedef enum call_kind { BROADCAST, ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BARRIER } call_kind;
static const char *const CALL_NAMES[] = {"broadcast", "all_reduce_sum", "reduce_scatter_sum", "all_gather", "barrier"};

enum { MAX_RANKS = 256 };

typedef struct offer {
  call_kind kind;
  const void *in;
  void *out;
  int64_t count; /* elements or bytes, as the call has it */
  int detail;    /* root or dtype */
} offer;

typedef struct world {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int n_ranks, alive;
  double timeout_s;
  int arrived, busy;
  uint64_t generation; /* meetings held */
  bool failed;
  int failed_rank;
  char cause[SN_ERROR_MESSAGE];
  int gone; /* a rank that was destroyed, -1 none */
  offer *offers; /* (n_ranks) */
} world;

static void fail_world(world *w, int rank, const char *cause) {
  if (w->failed) return; /* the first one counts */
  w->failed = true;
  w->failed_rank = rank;
  snprintf(w->cause, sizeof w->cause, "%s", cause);
  pthread_cond_broadcast(&w->changed);
}

static sn_status world_error(const world *w, sn_error *err) {
  return sn_fail(err, SN_E_STATE, "rank %d failed: %.440s", w->failed_rank, w->cause);
}

static struct timespec deadline_after(double seconds) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  double whole = (double)(int64_t)seconds;
  t.tv_sec += (time_t)whole;
  t.tv_nsec += (long)((seconds - whole) * 1e9);
  if (t.tv_nsec >= 1000000000L) {
    t.tv_sec++;
    t.tv_nsec -= 1000000000L;
  }
  return t;
}

/* Waits until all ranks have arrived. Called and left with the lock held. */
static sn_status meet(const sn_comm *comm, const char *call, sn_error *err) {
  world *w = comm->self;
  if (w->failed) return world_error(w, err);
  uint64_t generation = w->generation;
  if (++w->arrived == w->n_ranks) {
    w->arrived = 0;
    w->generation++;
    pthread_cond_broadcast(&w->changed);
    return SN_OK;
  }
  struct timespec deadline = deadline_after(w->timeout_s);
  while (w->generation == generation && !w->failed) {
    if (w->gone >= 0) {
      sn_error left;
      (void)sn_fail(&left, SN_E_STATE, "it left while rank %d waited in %s", comm->rank, call);
      fail_world(w, w->gone, left.message);
    } else if (pthread_cond_timedwait(&w->changed, &w->lock, &deadline) == ETIMEDOUT && w->generation == generation) {
      sn_error late;
      (void)sn_fail(&late, SN_E_STATE, "%s: waited %g s, %d of %d ranks came", call, w->timeout_s, w->arrived, w->n_ranks);
      fail_world(w, comm->rank, late.message);
    }
  }
  if (w->generation != generation) return SN_OK;
  return world_error(w, err);
}

static bool offers_agree(const world *w, int *other) {
  for (int r = 1; r < w->n_ranks; r++) {
    const offer *a = &w->offers[0], *b = &w->offers[r];
    *other = r;
    if (a->kind != b->kind || a->count != b->count || a->detail != b->detail) return false;
  }
  return true;
}

static void work(const world *w, int rank);

static sn_status collective(sn_comm *comm, offer mine, sn_error *err) {
  world *w = comm->self;
  const char *name = CALL_NAMES[mine.kind];
  int other;
  pthread_mutex_lock(&w->lock);
  w->offers[comm->rank] = mine;
  sn_status status = meet(comm, name, err);
  if (status == SN_OK && !offers_agree(w, &other)) {
    sn_error differ;
    const offer *b = &w->offers[other];
    (void)sn_fail(&differ, SN_E_STATE, "calls differ: rank 0 %s(%lld), rank %d %s(%lld)", CALL_NAMES[w->offers[0].kind],
                  (long long)w->offers[0].count, other, CALL_NAMES[b->kind], (long long)b->count);
    fail_world(w, other, differ.message);
    status = world_error(w, err);
  }
  if (status == SN_OK) {
    w->busy++;
    pthread_mutex_unlock(&w->lock);
    work(w, comm->rank);
    pthread_mutex_lock(&w->lock);
    w->busy--;
    status = meet(comm, name, err);
    pthread_cond_broadcast(&w->changed);
  }
  while (w->failed && w->busy > 0) pthread_cond_wait(&w->changed, &w->lock);
  pthread_mutex_unlock(&w->lock);
  return status;
}

/* dst[i] = sum over ranks, in their order, of from[r][i + first]. */
static void sum_ranks(const world *w, void *const *dst, int n_dst, int64_t first, int64_t dst_first, int64_t n,
                      sn_dtype dtype) {
#define SUM(type)                                                                  \
  for (int64_t i = 0; i < n; i++) {                                                \
    type sum = ((const type *)w->offers[0].in)[first + i];                         \
    for (int r = 1; r < w->n_ranks; r++) sum += ((const type *)w->offers[r].in)[first + i]; \
    for (int k = 0; k < n_dst; k++) ((type *)dst[k])[dst_first + i] = sum;         \
  }
  if (dtype == SN_F32) { SUM(float) }
  else if (dtype == SN_F64) { SUM(double) }
  else { SUM(int64_t) }
#undef SUM
}

/* Each rank its share: of an all-reduce the r-th piece, which it alone reads and writes in everyone's buffer. */
static void work(const world *w, int rank) {
  const offer *mine = &w->offers[rank];
  int64_t n = mine->count;
  switch (mine->kind) {
    case BARRIER: break;
    case BROADCAST:
      if (rank != mine->detail && n > 0) memcpy(mine->out, w->offers[mine->detail].in, (size_t)n);
      break;
    case ALL_GATHER:
      for (int r = 0; r < w->n_ranks; r++) {
        char *place = (char *)mine->out + r * n;
        if (place != (const char *)w->offers[r].in && n > 0) memcpy(place, w->offers[r].in, (size_t)n);
      }
      break;
    case REDUCE_SCATTER: sum_ranks(w, &mine->out, 1, rank * n, 0, n, (sn_dtype)mine->detail); break;
    case ALL_REDUCE: {
      int64_t first = n / w->n_ranks * rank, end = rank + 1 == w->n_ranks ? n : n / w->n_ranks * (rank + 1);
      void *dst[MAX_RANKS]; /* all at once: one after the other would overwrite what the next sum reads */
      for (int r = 0; r < w->n_ranks; r++) dst[r] = w->offers[r].out;
      sum_ranks(w, dst, w->n_ranks, first, first, end - first, (sn_dtype)mine->detail);
    }
  }
}

static sn_status fake_broadcast(sn_comm *comm, void *data, int64_t bytes, int root, sn_error *err) {
  return collective(comm, (offer){BROADCAST, data, data, bytes, root}, err);
}
static sn_status fake_all_reduce(sn_comm *comm, void *data, int64_t count, sn_dtype dtype, sn_error *err) {
  return collective(comm, (offer){ALL_REDUCE, data, data, count, (int)dtype}, err);
}
static sn_status fake_reduce_scatter(sn_comm *comm, const void *data, void *part, int64_t count_per_rank, sn_dtype dtype,
                                     sn_error *err) {
  return collective(comm, (offer){REDUCE_SCATTER, data, part, count_per_rank, (int)dtype}, err);
}
static sn_status fake_all_gather(sn_comm *comm, const void *part, void *all, int64_t bytes_per_rank, sn_error *err) {
  return collective(comm, (offer){ALL_GATHER, part, all, bytes_per_rank, 0}, err);
}
static sn_status fake_barrier(sn_comm *comm, sn_error *err) {
  return collective(comm, (offer){BARRIER, NULL, NULL, 0, 0}, err);
}

static void fake_abort(sn_comm *comm, const sn_error *cause) {
  world *w = comm->self;
  pthread_mutex_lock(&w->lock);
  fail_world(w, comm->rank, cause != NULL && cause->message[0] != '\0' ? cause->message : "no cause was given");
  pthread_mutex_unlock(&w->lock);
}

static void free_world(world *w) {
  pthread_cond_destroy(&w->changed);
  pthread_mutex_destroy(&w->lock);
  sn_free(w->offers);
  sn_free(w);
}

static void fake_destroy(sn_comm *comm) {
  world *w = comm->self;
  pthread_mutex_lock(&w->lock);
  if (w->gone < 0) w->gone = comm->rank;
  pthread_cond_broadcast(&w->changed);
  bool last = --w->alive == 0;
  pthread_mutex_unlock(&w->lock);
  if (last) free_world(w);
  sn_free(comm);
}

static const sn_comm_vtable FAKE = {"fake", fake_broadcast, fake_all_reduce, fake_reduce_scatter,
                                    fake_all_gather, fake_barrier, fake_abort, fake_destroy};

static sn_status create_world(int n_ranks, double timeout_s, world **out, sn_error *err) {
  world *w;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "fake communicator", err));
  sn_status status = sn_alloc(&w->offers, n_ranks, sizeof *w->offers, "fake communicator", err);
  if (status != SN_OK) {
    sn_free(w);
    return status;
  }
  w->n_ranks = n_ranks;
  w->timeout_s = timeout_s;
  w->gone = -1;
  pthread_mutex_init(&w->lock, NULL);
  pthread_condattr_t clock;
  pthread_condattr_init(&clock);
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  pthread_cond_init(&w->changed, &clock);
  pthread_condattr_destroy(&clock);
  *out = w;
  return SN_OK;
}

sn_status sn_comm_create_fake(int n_ranks, double timeout_s, sn_comm **out_array, sn_error *err) {
  if (n_ranks < 1 || n_ranks > MAX_RANKS || !(timeout_s > 0) || timeout_s > 1e9)
    return sn_fail(err, SN_E_ARGUMENT, "fake communicator: 1 to %d ranks and a time-out above 0, found %d and %g",
                   MAX_RANKS, n_ranks, timeout_s);
  for (int r = 0; r < n_ranks; r++) out_array[r] = NULL;
  world *w;
  SN_TRY(create_world(n_ranks, timeout_s, &w, err));
  for (int r = 0; r < n_ranks; r++) {
    sn_status status = sn_alloc(&out_array[r], 1, sizeof **out_array, "fake communicator", err);
    if (status != SN_OK) {
      for (int k = 0; k < n_ranks; k++) {
        sn_free(out_array[k]);
        out_array[k] = NULL;
      }
      free_world(w);
      return status;
    }
    *out_array[r] = (sn_comm){&FAKE, r, n_ranks, w};
  }
  w->alive = n_ranks;
  return SN_OK;
}
