/* A pool of worker threads for reading and preparing data.  It never enters OpenMP or oneDNN. */
#ifndef SN_CORE_POOL_H
#define SN_CORE_POOL_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_pool sn_pool;

/* n_threads 0: tasks run inside sn_pool_submit, on the caller's thread; at most 1024. The threads block all signals. */
SN_MUST_CHECK sn_status sn_pool_create(int64_t n_threads, sn_pool **out, sn_error *err);
void sn_pool_destroy(sn_pool *pool); /* accepts NULL; waits for what runs; drops nothing that was submitted */

/* run(user, index, worker) for one task, worker in 0..n_threads-1 (0 without threads); started first in, first out. */
typedef void (*sn_pool_task)(void *user, int64_t index, int64_t worker);
SN_MUST_CHECK sn_status sn_pool_submit(sn_pool *pool, sn_pool_task run, void *user, int64_t index, sn_error *err);
void sn_pool_wait(sn_pool *pool); /* until every submitted task has run */
/* run for index 0..n-1, returns when all are done (not waiting for other tasks). Neither this nor sn_pool_wait may be
 * called from inside a task: with one thread it would wait for itself. */
SN_MUST_CHECK sn_status sn_pool_for(sn_pool *pool, int64_t n, sn_pool_task run, void *user, sn_error *err);
int64_t sn_pool_threads(const sn_pool *pool);

#endif
