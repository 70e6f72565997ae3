/* Communicators: values in the order of ranks, and failures that reach every rank in bounded time (fault 35). */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "kernels/comm/comm.h"

enum { RANKS = 4, N = 1003 };

typedef struct rank_state {
  sn_comm *comm;
  sn_status status;
  sn_error err;
  int ok; /* checks passed */
  void (*body)(struct rank_state *);
  double seconds;
} rank_state;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *thread_main(void *user) {
  rank_state *s = user;
  double start = now();
  s->body(s);
  s->seconds = now() - start;
  sn_comm_destroy(s->comm);
  return NULL;
}

static void run_ranks(int n, double timeout_s, rank_state *states, void (*body)(rank_state *)) {
  sn_comm *comms[RANKS];
  pthread_t threads[RANKS];
  sn_error err;
  assert_int_equal(sn_comm_create_fake(n, timeout_s, comms, &err), SN_OK);
  for (int r = 0; r < n; r++) {
    memset(&states[r], 0, sizeof states[r]);
    sn_error_clear(&states[r].err);
    states[r].comm = comms[r];
    states[r].body = body;
    assert_int_equal(pthread_create(&threads[r], NULL, thread_main, &states[r]), 0);
  }
  for (int r = 0; r < n; r++) pthread_join(threads[r], NULL);
}

/* Values whose float sum depends on the order. */
static float value_of(int rank, int i) { return (float)((i % 7 + 1) * pow(10.0, rank % 2 ? 7 : -3) * (rank == 3 ? -1 : 1)); }

static float sum_in_order(int i) {
  float sum = value_of(0, i);
  for (int r = 1; r < RANKS; r++) sum += value_of(r, i);
  return sum;
}

static void all_reduce_body(rank_state *s) {
  float data[N];
  int64_t whole[2] = {s->comm->rank + 1, INT64_C(1) << 60};
  double real[1] = {0.5};
  for (int i = 0; i < N; i++) data[i] = value_of(s->comm->rank, i);
  s->status = sn_comm_all_reduce_sum(s->comm, data, N, SN_F32, &s->err);
  if (s->status == SN_OK) s->status = sn_comm_all_reduce_sum(s->comm, whole, 2, SN_I64, &s->err);
  if (s->status == SN_OK) s->status = sn_comm_all_reduce_sum(s->comm, real, 1, SN_F64, &s->err);
  if (s->status == SN_OK) s->status = sn_comm_all_reduce_sum(s->comm, real, 0, SN_F64, &s->err);
  for (int i = 0; i < N; i++) s->ok += data[i] == sum_in_order(i);
  s->ok += whole[0] == 10 && whole[1] == INT64_C(1) << 62 && real[0] == 2.0;
}

static void all_reduce(void **state) {
  rank_state states[RANKS];
  for (int repeat = 0; repeat < 20; repeat++) {
    run_ranks(RANKS, 20, states, all_reduce_body);
    for (int r = 0; r < RANKS; r++) {
      assert_int_equal(states[r].status, SN_OK);
      assert_int_equal(states[r].ok, N + 1);
    }
  }
}

static void other_calls_body(rank_state *s) {
  int rank = s->comm->rank;
  float data[RANKS * 5], part[5], all[RANKS * 5];
  for (int i = 0; i < RANKS * 5; i++) data[i] = value_of(rank, i);
  s->status = sn_comm_reduce_scatter_sum(s->comm, data, part, 5, SN_F32, &s->err);
  for (int i = 0; i < 5; i++) s->ok += part[i] == sum_in_order(rank * 5 + i);
  if (s->status == SN_OK) s->status = sn_comm_all_gather(s->comm, part, all, sizeof part, &s->err);
  for (int i = 0; i < RANKS * 5; i++) s->ok += all[i] == sum_in_order(i);
  if (s->status == SN_OK) s->status = sn_comm_broadcast(s->comm, data, sizeof data, 2, &s->err);
  for (int i = 0; i < RANKS * 5; i++) s->ok += data[i] == value_of(2, i);
  if (s->status == SN_OK) s->status = sn_comm_barrier(s->comm, &s->err);
}

static void other_calls(void **state) {
  rank_state states[RANKS];
  run_ranks(RANKS, 20, states, other_calls_body);
  for (int r = 0; r < RANKS; r++) {
    assert_int_equal(states[r].status, SN_OK);
    assert_int_equal(states[r].ok, 5 + 2 * RANKS * 5);
  }
}

/* Fault 35: rank 1 of 2 fails at step 3; the other must end soon, with the first error and its rank. */
static void one_fails_body(rank_state *s) {
  for (int step = 0; step < 10 && s->status == SN_OK; step++) {
    double x = 1;
    if (s->comm->rank == 1 && step == 3) {
      s->status = sn_fail(&s->err, SN_E_CORRUPT, "record 17 is cut short");
      sn_comm_abort(s->comm, &s->err);
      return;
    }
    s->status = sn_comm_all_reduce_sum(s->comm, &x, 1, SN_F64, &s->err);
    s->ok += s->status == SN_OK;
  }
}

static void one_rank_fails(void **state) {
  rank_state states[2];
  run_ranks(2, 60, states, one_fails_body);
  assert_int_equal(states[0].status, SN_E_STATE);
  assert_int_equal(states[0].ok, 3);
  assert_non_null(strstr(states[0].err.message, "rank 1 failed: record 17 is cut short"));
  assert_true(states[0].seconds < 10);
}

static void fewer_steps_body(rank_state *s) {
  int n = s->comm->rank == 1 ? 3 : 5;
  for (int step = 0; step < n && s->status == SN_OK; step++) {
    double x = 1;
    s->status = sn_comm_all_reduce_sum(s->comm, &x, 1, SN_F64, &s->err);
  }
}

static void one_rank_has_fewer_batches(void **state) {
  rank_state states[2];
  run_ranks(2, 60, states, fewer_steps_body);
  assert_int_equal(states[1].status, SN_OK);
  assert_int_equal(states[0].status, SN_E_STATE);
  assert_non_null(strstr(states[0].err.message, "rank 1"));
  assert_true(states[0].seconds < 10);
}

static void late_body(rank_state *s) {
  if (s->comm->rank == 2) {
    struct timespec wait = {.tv_nsec = 600000000};
    nanosleep(&wait, NULL);
  }
  s->status = sn_comm_barrier(s->comm, &s->err);
}

static void a_late_rank_times_out(void **state) {
  rank_state states[3];
  run_ranks(3, 0.1, states, late_body);
  for (int r = 0; r < 3; r++) {
    assert_int_equal(states[r].status, SN_E_STATE);
    assert_non_null(strstr(states[r].err.message, "waited"));
  }
}

static void different_calls_body(rank_state *s) {
  double x[2] = {1, 1};
  s->status = sn_comm_all_reduce_sum(s->comm, x, s->comm->rank == 1 ? 2 : 1, SN_F64, &s->err);
  s->ok = x[0] == 1 && x[1] == 1;
}

static void different_calls_fail_together(void **state) {
  rank_state states[3];
  run_ranks(3, 20, states, different_calls_body);
  for (int r = 0; r < 3; r++) {
    assert_int_equal(states[r].status, SN_E_STATE);
    assert_int_equal(states[r].ok, 1);
    assert_non_null(strstr(states[r].err.message, "calls differ"));
  }
}

static void single_rank(void **state) {
  sn_comm *comm;
  sn_error err;
  float data[3] = {1, 2, 3}, part[3], all[3];
  assert_int_equal(sn_comm_create_single(&comm, &err), SN_OK);
  assert_int_equal(comm->n_ranks, 1);
  assert_int_equal(sn_comm_all_reduce_sum(comm, data, 3, SN_F32, &err), SN_OK);
  assert_int_equal(sn_comm_reduce_scatter_sum(comm, data, part, 3, SN_F32, &err), SN_OK);
  assert_int_equal(sn_comm_all_gather(comm, part, all, sizeof part, &err), SN_OK);
  assert_int_equal(sn_comm_broadcast(comm, data, sizeof data, 0, &err), SN_OK);
  for (int i = 0; i < 3; i++) assert_true(data[i] == (float)(i + 1) && part[i] == data[i] && all[i] == data[i]);
  assert_int_equal(sn_comm_broadcast(comm, data, sizeof data, 1, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_comm_all_reduce_sum(comm, data, 3, SN_BF16, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_comm_all_reduce_sum(comm, data, -1, SN_F32, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_comm_all_reduce_sum(comm, data, INT64_MAX, SN_F32, &err), SN_E_ARGUMENT);
  sn_error cause;
  (void)sn_fail(&cause, SN_E_IO, "disk full");
  sn_comm_abort(comm, &cause);
  assert_int_equal(sn_comm_barrier(comm, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "disk full"));
  sn_comm_destroy(comm);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(all_reduce),
                                     cmocka_unit_test(other_calls),
                                     cmocka_unit_test(one_rank_fails),
                                     cmocka_unit_test(one_rank_has_fewer_batches),
                                     cmocka_unit_test(a_late_rank_times_out),
                                     cmocka_unit_test(different_calls_fail_together),
                                     cmocka_unit_test(single_rank)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
