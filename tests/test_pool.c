/* The thread pool: every task once, first in first out, inline without threads, nothing dropped at the end. */
#include <setjmp.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/pool.h"
#include "tests/alloc_fault.h"

enum { N = 5000 };

typedef struct record {
  _Atomic int64_t runs[N];
  _Atomic int64_t total;
  int64_t order[N]; /* by a single worker */
  int64_t n_threads;
  _Atomic bool wrong_worker;
} record;

static void note(void *user, int64_t index, int64_t worker) {
  record *r = user;
  r->runs[index]++;
  int64_t at = r->total++;
  if (r->n_threads <= 1) r->order[at] = index;
  if (worker < 0 || worker >= (r->n_threads > 0 ? r->n_threads : 1)) r->wrong_worker = true;
}

static void assert_each_once(const record *r, int64_t n) {
  assert_int_equal(r->total, n);
  for (int64_t i = 0; i < n; i++) assert_int_equal(r->runs[i], 1);
  assert_false(r->wrong_worker);
}

static void test_tasks(void **state) {
  static const int64_t THREADS[] = {0, 1, 2, 7};
  for (int t = 0; t < 4; t++) {
    for (int use_for = 0; use_for < 2; use_for++) {
      record *r = calloc(1, sizeof *r);
      sn_pool *pool;
      r->n_threads = THREADS[t];
      assert_int_equal(sn_pool_create(THREADS[t], &pool, NULL), SN_OK);
      assert_int_equal(sn_pool_threads(pool), THREADS[t]);
      if (use_for) {
        assert_int_equal(sn_pool_for(pool, N, note, r, NULL), SN_OK);
      } else {
        for (int64_t i = 0; i < N; i++) assert_int_equal(sn_pool_submit(pool, note, r, i, NULL), SN_OK);
        sn_pool_wait(pool);
      }
      assert_each_once(r, N);
      for (int64_t i = 0; THREADS[t] <= 1 && i < N; i++) assert_int_equal(r->order[i], i);
      assert_int_equal(sn_pool_for(pool, 0, note, r, NULL), SN_OK);
      sn_pool_wait(pool); /* with nothing to wait for */
      sn_pool_destroy(pool);
      free(r);
    }
  }
}

static void slow(void *user, int64_t index, int64_t worker) {
  usleep(300);
  note(user, index, worker);
}

static void test_destroy_drops_nothing(void **state) {
  record *r = calloc(1, sizeof *r);
  sn_pool *pool;
  r->n_threads = 3;
  assert_int_equal(sn_pool_create(3, &pool, NULL), SN_OK);
  for (int64_t i = 0; i < 200; i++) assert_int_equal(sn_pool_submit(pool, slow, r, i, NULL), SN_OK);
  sn_pool_destroy(pool);
  assert_each_once(r, 200);
  sn_pool_destroy(NULL);
  free(r);
}

typedef struct blocked {
  _Atomic bool released;
  record *r;
  sn_pool *pool;
} blocked;

static void wait_for_release(void *user, int64_t index, int64_t worker) {
  blocked *b = user;
  while (!b->released) usleep(100);
}

static void release_after(void *user, int64_t index, int64_t worker) {
  blocked *b = user;
  note(b->r, index, worker);
}

/* sn_pool_for waits for its own tasks only: another one, still running, does not hold it up. */
static void test_for_waits_for_its_own(void **state) {
  record *r = calloc(1, sizeof *r);
  blocked b = {.r = r};
  r->n_threads = 2;
  assert_int_equal(sn_pool_create(2, &b.pool, NULL), SN_OK);
  assert_int_equal(sn_pool_submit(b.pool, wait_for_release, &b, 0, NULL), SN_OK);
  assert_int_equal(sn_pool_for(b.pool, 100, release_after, &b, NULL), SN_OK);
  assert_int_equal(r->total, 100);
  b.released = true;
  sn_pool_destroy(b.pool);
  free(r);
}

static void submit_more(void *user, int64_t index, int64_t worker) {
  blocked *b = user;
  note(b->r, index, worker);
  if (index + 1 < 1000 && sn_pool_submit(b->pool, submit_more, b, index + 1, NULL) != SN_OK) abort();
}

static void test_tasks_submit_tasks(void **state) {
  record *r = calloc(1, sizeof *r);
  blocked b = {.r = r};
  r->n_threads = 2;
  assert_int_equal(sn_pool_create(2, &b.pool, NULL), SN_OK);
  assert_int_equal(sn_pool_submit(b.pool, submit_more, &b, 0, NULL), SN_OK);
  sn_pool_wait(b.pool);
  assert_each_once(r, 1000);
  sn_pool_destroy(b.pool);
  free(r);
}

static void test_arguments(void **state) {
  sn_pool *pool;
  sn_error err;
  assert_int_equal(sn_pool_create(-1, &pool, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_pool_create(100000, &pool, &err), SN_E_ARGUMENT);
}

static void test_signals_stay_outside(void **state) {
  sn_pool *pool;
  sigset_t before, after;
  pthread_sigmask(SIG_SETMASK, NULL, &before);
  assert_int_equal(sn_pool_create(2, &pool, NULL), SN_OK);
  pthread_sigmask(SIG_SETMASK, NULL, &after);
  for (int s = 1; s < 32; s++) assert_int_equal(sigismember(&before, s), sigismember(&after, s));
  sn_pool_destroy(pool);
}

static void test_allocation_failures(void **state) {
  record *r = calloc(1, sizeof *r);
  for (fault_begin(); fault_next();) {
    sn_pool *pool = NULL;
    sn_error err;
    memset(r, 0, sizeof *r);
    r->n_threads = 2;
    sn_status status = sn_pool_create(2, &pool, &err);
    if (status == SN_OK) status = sn_pool_for(pool, 100, note, r, &err);
    fault_check(status);
    if (status == SN_OK) assert_each_once(r, 100);
    sn_pool_destroy(pool);
  }
  free(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_tasks),
      cmocka_unit_test(test_destroy_drops_nothing),
      cmocka_unit_test(test_for_waits_for_its_own),
      cmocka_unit_test(test_tasks_submit_tasks),
      cmocka_unit_test(test_arguments),
      cmocka_unit_test(test_signals_stay_outside),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
