/* Work in a child process: what it sends, its errors, its limits. */
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/child.h"

static const sn_child_limits LIMITS = {.memory = 64 << 20, .cpu_s = 1, .wall_s = 5, .output = 1 << 20};

static sn_status sends(void *context, sn_child_pipe *pipe, sn_error *err) {
  *(int *)context = 7; /* not in the parent */
  SN_TRY(sn_child_send(pipe, "one ", 4, err));
  return sn_child_send(pipe, "two", 4, err);
}

static sn_status fails(void *context, sn_child_pipe *pipe, sn_error *err) {
  SN_TRY(sn_child_send(pipe, "x", 1, err));
  return sn_fail_at(err, SN_E_UNSUPPORTED, 12, -1, "field", "the child says no");
}

static sn_status dies(void *context, sn_child_pipe *pipe, sn_error *err) {
  raise(SIGKILL);
  return SN_OK;
}

static sn_status leaves(void *context, sn_child_pipe *pipe, sn_error *err) { _exit(0); }

static sn_status sleeps(void *context, sn_child_pipe *pipe, sn_error *err) {
  while (pause() != 0) continue; /* always -1 */
  return SN_OK;
}

static sn_status spins(void *context, sn_child_pipe *pipe, sn_error *err) {
  volatile int forever = 1;
  while (forever) continue;
  return SN_OK;
}

static sn_status floods(void *context, sn_child_pipe *pipe, sn_error *err) {
  static char block[65536];
  for (;;) SN_TRY(sn_child_send(pipe, block, sizeof block, err));
}

static sn_status takes_memory(void *context, sn_child_pipe *pipe, sn_error *err) {
  void *memory;
  return sn_alloc(&memory, 1, (int64_t)256 << 20, "too much", err);
}

static void must_fail(sn_status (*work)(void *, sn_child_pipe *, sn_error *), const sn_child_limits *limits,
                      sn_status expected, const char *word) {
  void *out = NULL;
  int64_t n;
  sn_error err = {0};
  sn_status status = sn_child_run(work, NULL, "file.x", limits, &out, &n, &err);
  if (status != expected || strstr(err.message, word) == NULL) fail_msg("%s: %s", sn_status_name(status), err.message);
  assert_null(out);
}

static void what_it_sends(void **state) {
  int touched = 0;
  void *out;
  int64_t n;
  assert_int_equal(sn_child_run(sends, &touched, "x", &LIMITS, &out, &n, NULL), SN_OK);
  assert_int_equal(n, 8);
  assert_string_equal(out, "one two");
  assert_int_equal(touched, 0);
  sn_free(out);
}

static void its_errors(void **state) {
  void *out = NULL;
  int64_t n;
  sn_error err;
  assert_int_equal(sn_child_run(fails, NULL, "x", &LIMITS, &out, &n, &err), SN_E_UNSUPPORTED);
  assert_string_equal(err.message, "the child says no");
  assert_string_equal(err.field, "field");
  assert_int_equal(err.offset, 12);
  must_fail(dies, &LIMITS, SN_E_CORRUPT, "signal 9");
  must_fail(leaves, &LIMITS, SN_E_CORRUPT, "without a result");
}

static void its_limits(void **state) {
  sn_child_limits short_wait = LIMITS;
  short_wait.wall_s = 0.2;
  must_fail(sleeps, &short_wait, SN_E_CORRUPT, "longer than 0.2 s");
  must_fail(floods, &LIMITS, SN_E_CORRUPT, "more than 1048576 bytes");
#ifndef SONDE_ASAN
  sn_child_limits cpu = LIMITS;
  cpu.wall_s = 60;
  must_fail(spins, &cpu, SN_E_CORRUPT, "processor time");
  must_fail(takes_memory, &LIMITS, SN_E_MEMORY, "too much");
#else
  (void)spins;
  (void)takes_memory;
#endif
}

/* The child of a process that is killed ends with it: its end of the pipe closes. */
static sn_status holds(void *context, sn_child_pipe *pipe, sn_error *err) {
  const char ready = 1;
  if (write(*(int *)context, &ready, 1) != 1) return sn_fail(err, SN_E_IO, "no pipe");
  while (pause() != 0) continue;
  return SN_OK;
}

static void it_ends_with_its_parent(void **state) {
  int fds[2];
  char byte;
  assert_int_equal(pipe(fds), 0);
  const pid_t parent = fork();
  assert_true(parent >= 0);
  if (parent == 0) {
    const sn_child_limits limits = {.wall_s = 600, .output = 1};
    void *out;
    int64_t n;
    close(fds[0]);
    _exit(sn_child_run(holds, &fds[1], "x", &limits, &out, &n, NULL) == SN_OK);
  }
  close(fds[1]);
  assert_int_equal(read(fds[0], &byte, 1), 1);
  kill(parent, SIGKILL);
  assert_int_equal(waitpid(parent, NULL, 0), parent);
  struct pollfd end = {.fd = fds[0], .events = POLLIN};
  assert_int_equal(poll(&end, 1, 60000), 1);
  assert_int_equal(read(fds[0], &byte, 1), 0);
  close(fds[0]);
}

/* A parent that does not look (it is stopped, say) is not needed for the limit of time. */
static sn_status tells_alarm(void *context, sn_child_pipe *pipe, sn_error *err) {
  const unsigned left = alarm(0);
  return sn_child_send(pipe, &left, sizeof left, err);
}

static sn_status opens(void *context, sn_child_pipe *pipe, sn_error *err) {
  const int fd = open("/dev/null", O_RDONLY);
  return sn_child_send(pipe, &fd, sizeof fd, err);
}

static void it_is_shut_in(void **state) {
  unsigned *left;
  int *fd;
  int64_t n;
  assert_int_equal(sn_child_run(tells_alarm, NULL, "x", &LIMITS, (void **)&left, &n, NULL), SN_OK);
  assert_true(*left >= 1 && *left <= 6);
  sn_free(left);
#ifndef SONDE_ASAN
  assert_int_equal(sn_child_run(opens, NULL, "x", &LIMITS, (void **)&fd, &n, NULL), SN_OK);
  assert_int_equal(*fd, -1);
  sn_free(fd);
#else
  (void)fd;
  (void)opens;
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_it_sends), cmocka_unit_test(its_errors),
                                     cmocka_unit_test(its_limits), cmocka_unit_test(it_ends_with_its_parent),
                                     cmocka_unit_test(it_is_shut_in)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
