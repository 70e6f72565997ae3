#include "core/pool.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"

enum { MOST_THREADS = 1024 };

/* What one call of sn_pool_for waits for; on that caller's stack. */
typedef struct group {
  int64_t left;
  pthread_cond_t done;
} group;

/* Indices next..end-1 of one task: a whole range takes one place in the queue. */
typedef struct item {
  sn_pool_task run;
  void *user;
  int64_t next, end;
  group *group; /* NULL: nobody waits for it in particular */
} item;

typedef struct worker {
  sn_pool *pool;
  int64_t number;
  pthread_t thread;
} worker;

struct sn_pool {
  int64_t n_threads;
  worker *workers;
  pthread_mutex_t lock;
  pthread_cond_t work, idle;
  item *queue; /* a ring: `count` items from `head` on */
  int64_t head, count, room;
  int64_t running;
  bool stopping;
};

/* Under the lock. Doubles the ring and lays it out from 0. */
static sn_status make_room(sn_pool *pool, sn_error *err) {
  if (pool->count < pool->room) return SN_OK;
  const int64_t room = pool->room == 0 ? 64 : 2 * pool->room;
  item *queue;
  SN_TRY(sn_alloc(&queue, room, sizeof *queue, "task queue", err));
  for (int64_t i = 0; i < pool->count; i++) queue[i] = pool->queue[(pool->head + i) % pool->room];
  sn_free(pool->queue);
  pool->queue = queue;
  pool->head = 0;
  pool->room = room;
  return SN_OK;
}

/* Under the lock, with count > 0: the next index of the front item. */
static item take(sn_pool *pool) {
  item *front = &pool->queue[pool->head];
  item taken = *front;
  front->next++;
  if (front->next == front->end) {
    pool->head = (pool->head + 1) % pool->room;
    pool->count--;
  }
  return taken;
}

static void *work(void *argument) {
  const worker *self = argument;
  sn_pool *pool = self->pool;
  pthread_mutex_lock(&pool->lock);
  for (;;) {
    while (pool->count == 0 && !pool->stopping) pthread_cond_wait(&pool->work, &pool->lock);
    if (pool->count == 0) break;
    item task = take(pool);
    pool->running++;
    pthread_mutex_unlock(&pool->lock);
    task.run(task.user, task.next, self->number);
    pthread_mutex_lock(&pool->lock);
    pool->running--;
    if (task.group != NULL && --task.group->left == 0) pthread_cond_signal(&task.group->done);
    if (pool->running == 0 && pool->count == 0) pthread_cond_broadcast(&pool->idle);
  }
  pthread_mutex_unlock(&pool->lock);
  return NULL;
}

/* Lets the workers drain the queue and ends the first n of them. */
static void stop(sn_pool *pool, int64_t n) {
  pthread_mutex_lock(&pool->lock);
  pool->stopping = true;
  pthread_cond_broadcast(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  for (int64_t i = 0; i < n; i++) pthread_join(pool->workers[i].thread, NULL);
}

static void release(sn_pool *pool) {
  pthread_cond_destroy(&pool->work);
  pthread_cond_destroy(&pool->idle);
  pthread_mutex_destroy(&pool->lock);
  sn_free(pool->workers);
  sn_free(pool->queue);
  sn_free(pool);
}

/* Workers take no signals: those are for the thread that started them. */
static sn_status start(sn_pool *pool, sn_error *err) {
  sigset_t all, before;
  int problem = 0;
  int64_t i = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (; i < pool->n_threads && problem == 0; i++) {
    pool->workers[i] = (worker){.pool = pool, .number = i};
    problem = pthread_create(&pool->workers[i].thread, NULL, work, &pool->workers[i]);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (problem == 0) return SN_OK;
  stop(pool, i - 1);
  return sn_fail(err, SN_E_IO, "thread %lld of %lld could not be started: %s", (long long)i,
                 (long long)pool->n_threads, strerror(problem));
}

sn_status sn_pool_create(int64_t n_threads, sn_pool **out, sn_error *err) {
  if (n_threads < 0 || n_threads > MOST_THREADS)
    return sn_fail(err, SN_E_ARGUMENT, "expected 0 to %d threads in a pool, found %lld", MOST_THREADS,
                   (long long)n_threads);
  sn_pool *pool;
  SN_TRY(sn_alloc(&pool, 1, sizeof *pool, "thread pool", err));
  pool->n_threads = n_threads;
  pthread_mutex_init(&pool->lock, NULL);
  pthread_cond_init(&pool->work, NULL);
  pthread_cond_init(&pool->idle, NULL);
  sn_status status = sn_alloc(&pool->workers, n_threads, sizeof *pool->workers, "threads of a pool", err);
  if (status == SN_OK) status = start(pool, err);
  if (status != SN_OK) {
    release(pool);
    return status;
  }
  *out = pool;
  return SN_OK;
}

void sn_pool_destroy(sn_pool *pool) {
  if (pool == NULL) return;
  stop(pool, pool->n_threads);
  release(pool);
}

/* Under the lock. */
static sn_status enqueue(sn_pool *pool, item task, sn_error *err) {
  SN_TRY(make_room(pool, err));
  pool->queue[(pool->head + pool->count) % pool->room] = task;
  pool->count++;
  return SN_OK;
}

sn_status sn_pool_submit(sn_pool *pool, sn_pool_task run, void *user, int64_t index, sn_error *err) {
  if (pool->n_threads == 0) {
    run(user, index, 0);
    return SN_OK;
  }
  pthread_mutex_lock(&pool->lock);
  sn_status status = enqueue(pool, (item){run, user, index, index + 1, NULL}, err);
  if (status == SN_OK) pthread_cond_signal(&pool->work);
  pthread_mutex_unlock(&pool->lock);
  return status;
}

void sn_pool_wait(sn_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  while (pool->count > 0 || pool->running > 0) pthread_cond_wait(&pool->idle, &pool->lock);
  pthread_mutex_unlock(&pool->lock);
}

sn_status sn_pool_for(sn_pool *pool, int64_t n, sn_pool_task run, void *user, sn_error *err) {
  if (n <= 0) return SN_OK;
  if (pool->n_threads == 0) {
    for (int64_t i = 0; i < n; i++) run(user, i, 0);
    return SN_OK;
  }
  group mine = {.left = n};
  pthread_cond_init(&mine.done, NULL);
  pthread_mutex_lock(&pool->lock);
  sn_status status = enqueue(pool, (item){run, user, 0, n, &mine}, err);
  if (status == SN_OK) {
    pthread_cond_broadcast(&pool->work);
    while (mine.left > 0) pthread_cond_wait(&mine.done, &pool->lock);
  }
  pthread_mutex_unlock(&pool->lock);
  pthread_cond_destroy(&mine.done);
  return status;
}

int64_t sn_pool_threads(const sn_pool *pool) { return pool->n_threads; }
