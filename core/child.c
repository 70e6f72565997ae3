#include "core/child.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"

/* What the child sends: pieces (length, bytes), then END, its status and its error. */
enum { END = -1 };

struct sn_child_pipe {
  int fd;
};

static bool write_all(int fd, const void *data, int64_t n) {
  const char *at = data;
  while (n > 0) {
    ssize_t k = write(fd, at, (size_t)(n < (1 << 20) ? n : 1 << 20));
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= k;
  }
  return true;
}

sn_status sn_child_send(sn_child_pipe *pipe, const void *data, int64_t n, sn_error *err) {
  if (n <= 0) return SN_OK;
  if (write_all(pipe->fd, &n, sizeof n) && write_all(pipe->fd, data, n)) return SN_OK;
  return sn_fail(err, SN_E_IO, "sending to the parent process failed: %s", strerror(errno));
}

/* ---- in the child ---- */

static void limit(int resource, double value) {
  struct rlimit r;
  rlim_t wanted = (rlim_t)value;
  if (getrlimit(resource, &r) != 0) return;
  if (r.rlim_max != RLIM_INFINITY && wanted >= r.rlim_max) wanted = r.rlim_max - (resource == RLIMIT_CPU);
  r.rlim_cur = r.rlim_max = wanted;
  if (resource == RLIMIT_CPU && r.rlim_max < RLIM_INFINITY - 1) r.rlim_max++; /* SIGXCPU says why, SIGKILL would not */
  setrlimit(resource, &r);
}

#ifndef SONDE_ASAN
/* Address space in use, from /proc/self/statm; 0 where there is none. */
static double address_space(void) {
  char text[64] = "";
  long long pages = 0;
  int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  if (n <= 0 || sscanf(text, "%lld", &pages) != 1) return 0;
  return (double)pages * (double)sysconf(_SC_PAGESIZE);
}
#endif

static void set_alarm(double seconds) {
  sigset_t alarm_only;
  if (!(seconds > 0)) return;
  signal(SIGALRM, SIG_DFL);
  sigemptyset(&alarm_only);
  sigaddset(&alarm_only, SIGALRM);
  sigprocmask(SIG_UNBLOCK, &alarm_only, NULL);
  alarm((unsigned)fmin(ceil(seconds) + 1, 1e9)); /* the parent's own limit comes first */
}

static _Noreturn void be_the_child(sn_status (*work)(void *, sn_child_pipe *, sn_error *), void *context, int fd,
                                   const sn_child_limits *limits, pid_t parent) {
  const int64_t end = END;
  sn_error error;
  sn_child_pipe pipe = {fd};
  memset(&error, 0, sizeof error);
  /* It ends with its parent, and by itself should the parent be stopped. */
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) _exit(1);
  set_alarm(limits->wall_s);
  signal(SIGPIPE, SIG_IGN); /* a parent that is gone is an error of write() */
  signal(SIGXCPU, SIG_DFL);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, 0);
  if (limits->cpu_s > 0) limit(RLIMIT_CPU, ceil(limits->cpu_s));
#ifndef SONDE_ASAN
  if (limits->memory > 0) limit(RLIMIT_AS, address_space() + (double)limits->memory);
  limit(RLIMIT_NOFILE, 0); /* no file that a hostile one names can be opened */
#endif
  sn_status status = work(context, &pipe, &error);
  bool sent =
      write_all(fd, &end, sizeof end) && write_all(fd, &status, sizeof status) && write_all(fd, &error, sizeof error);
  _exit(sent ? 0 : 1); /* without the parent's exit handlers and buffers */
}

/* ---- in the parent ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct collector {
  int fd;
  double deadline; /* 0: none */
  bool late;
} collector;

/* Exactly n bytes; false at the end of the pipe or at the deadline. */
static bool read_all(collector *c, void *to, int64_t n) {
  char *at = to;
  while (n > 0) {
    int wait = -1;
    if (c->deadline > 0) {
      double left = c->deadline - now();
      if (left <= 0) {
        c->late = true;
        return false;
      }
      wait = (int)fmin(ceil(left * 1000), 60000);
    }
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int ready = poll(&p, 1, wait);
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    ssize_t k = read(c->fd, at, (size_t)(n < (1 << 20) ? n : 1 << 20));
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= k;
  }
  return true;
}

typedef struct outcome {
  char *data;
  int64_t n, room;
  bool ended, too_much;
  sn_status status; /* of the work, when it ended */
  sn_error error;
} outcome;

/* Takes what the child sends; a status of our own (memory) is returned. */
static sn_status collect(collector *c, const sn_child_limits *limits, outcome *o, sn_error *err) {
  for (;;) {
    int64_t n;
    if (!read_all(c, &n, sizeof n)) return SN_OK;
    if (n == END) {
      o->ended = read_all(c, &o->status, sizeof o->status) && read_all(c, &o->error, sizeof o->error);
      return SN_OK;
    }
    if (n < 0 || n > limits->output - o->n) {
      o->too_much = true;
      return SN_OK;
    }
    SN_TRY(sn_grow(&o->data, &o->room, o->n + n, 1, "what a child process sends", err));
    if (!read_all(c, o->data + o->n, n)) return SN_OK;
    o->n += n;
  }
}

static sn_status judge(const collector *c, const outcome *o, int wait_status, const char *what,
                       const sn_child_limits *limits, sn_error *err) {
  if (o->ended) {
    if (o->status == SN_OK) return SN_OK;
    if (err != NULL) *err = o->error;
    return o->status;
  }
  if (o->too_much)
    return sn_fail(err, SN_E_CORRUPT, "%s: unpacks to more than %lld bytes", what, (long long)limits->output);
  if (c->late || (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGALRM))
    return sn_fail(err, SN_E_CORRUPT, "%s: reading it takes longer than %g s", what, limits->wall_s);
  if (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU)
    return sn_fail(err, SN_E_CORRUPT, "%s: reading it takes more than %g s of processor time", what, limits->cpu_s);
  if (WIFSIGNALED(wait_status))
    return sn_fail(err, SN_E_CORRUPT, "%s: the process that read it was ended by signal %d", what,
                   WTERMSIG(wait_status));
  return sn_fail(err, SN_E_CORRUPT, "%s: the process that read it ended without a result", what);
}

sn_status sn_child_run(sn_status (*work)(void *context, sn_child_pipe *pipe, sn_error *err), void *context,
                       const char *what, const sn_child_limits *limits, void **out, int64_t *n, sn_error *err) {
  int fds[2], wait_status = 0;
  outcome o = {0};
  if (sn_alloc_should_fail() || pipe2(fds, O_CLOEXEC) != 0)
    return sn_fail(err, SN_E_MEMORY, "%s: no pipe can be made: %s", what, strerror(errno));
  const pid_t self = getpid(), child = fork();
  if (child < 0) {
    close(fds[0]);
    close(fds[1]);
    return sn_fail(err, SN_E_MEMORY, "%s: no process can be made: %s", what, strerror(errno));
  }
  if (child == 0) {
    close(fds[0]);
    be_the_child(work, context, fds[1], limits, self);
  }
  close(fds[1]);
  collector c = {.fd = fds[0], .deadline = limits->wall_s > 0 ? now() + limits->wall_s : 0};
  sn_status status = collect(&c, limits, &o, err);
  if (!o.ended) kill(child, SIGKILL * (o.too_much || c.late || status != SN_OK)); /* signal 0 does nothing */
  close(fds[0]);
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) continue;
  if (status == SN_OK) status = judge(&c, &o, wait_status, what, limits, err);
  if (status != SN_OK) {
    sn_free(o.data);
    return status;
  }
  *out = o.data;
  *n = o.n;
  return SN_OK;
}
