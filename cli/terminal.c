#include "cli/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static void write_line(void *user, sn_log_level level, const char *message) {
  const char *mark = level == SN_LOG_WARNING ? "warning: " : level == SN_LOG_ERROR ? "error: " : "";
  flockfile(stderr);
  fprintf(stderr, "%s%s\n", mark, message);
  fflush(stderr);
  funlockfile(stderr);
}

sn_log sn_terminal_log(void) {
  const char *wanted = getenv("SONDE_LOG");
  const bool debug = wanted != NULL && strcmp(wanted, "debug") == 0;
  return (sn_log){.write = write_line, .least = debug ? SN_LOG_DEBUG : SN_LOG_INFO};
}

int sn_terminal_fail(const char *command, const sn_error *err) {
  fflush(stdout);
  fprintf(stderr, "sonde %s: %s error: %s\n", command, sn_status_name(err->code), err->message);
  return err->code == SN_E_ARGUMENT ? 2 : 1;
}

void sn_terminal_prepare(void) {
  signal(SIGXFSZ, SIG_IGN); /* a limit on file sizes is then an error of the write, with a message */
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    /* The lowest free descriptor is this one. */
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0) _exit(1);
  }
}

int sn_terminal_finish(const char *command, int code) {
  errno = 0;
  const bool flushed = fflush(stdout) == 0;
  const int problem = errno;
  if (flushed && !ferror(stdout)) return code;
  fprintf(stderr, "sonde %s: io error: standard output could not be written%s%s\n", command, problem != 0 ? ": " : "",
          problem != 0 ? strerror(problem) : "");
  return code != 0 ? code : 1;
}

/* Below the command line there is no mutable global; a signal handler has no other way to be heard. */
static volatile sig_atomic_t caught;

static void on_signal(int number) {
  if (caught != 0) _exit(128 + number);
  caught = number;
}

void sn_terminal_ignore_pipe(void) { signal(SIGPIPE, SIG_IGN); }

const volatile sig_atomic_t *sn_terminal_catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  struct sigaction before;
  if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL);
  sn_terminal_ignore_pipe();
  return &caught;
}

void sn_terminal_set_wait_policy(char **argv) {
  const char *policy = getenv("OMP_WAIT_POLICY");
  if (policy != NULL && strcasecmp(policy, "passive") == 0) return;
  if (policy != NULL) {
    const bool active = strcasecmp(policy, "active") == 0;
    fprintf(stderr, "warning: OMP_WAIT_POLICY is '%s'%s: threads that wait keep their cores busy, and with a busy loader training "
            "can be several times slower; 'passive' is what sonde sets by itself\n", policy,
            active ? "" : ", which is neither passive nor active and has no effect");
    return;
  }
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
  execv("/proc/self/exe", argv); /* when it cannot, the run goes on, only slower */
}

bool sn_terminal_is_interactive(void) { return isatty(STDERR_FILENO) != 0; }
