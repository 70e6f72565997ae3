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
  fflush(stdout); /* both may go to one file: what was printed stands first there */
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

/* C0, DEL, and in UTF-8 the controls U+0080 to U+009F, which some terminals obey. */
static bool is_control(const unsigned char *p) {
  return *p < 0x20 || *p == 0x7f || (*p == 0xC2 && p[1] >= 0x80 && p[1] < 0xA0);
}

const char *sn_terminal_plain(const char *text, char buffer[SN_TERMINAL_TEXT]) {
  size_t n = 0;
  for (const unsigned char *p = (const unsigned char *)text; *p != '\0'; p++) {
    if (n + 12 > SN_TERMINAL_TEXT && (*p & 0xC0) != 0x80) { /* at the beginning of a character */
      memcpy(buffer + n, "...", 4);
      return buffer;
    }
    if (!is_control(p)) buffer[n++] = (char)*p;
    else if (*p == '\n' || *p == '\t' || *p == '\r') n += (size_t)snprintf(buffer + n, 5, "\\%c", *p == '\n' ? 'n' : *p == '\t' ? 't' : 'r');
    else n += (size_t)snprintf(buffer + n, 5, "\\x%02X", *p == 0xC2 ? *++p : *p);
    if (n + 8 > SN_TERMINAL_TEXT) break; /* no text: bytes that continue nothing */
  }
  buffer[n] = '\0';
  return buffer;
}

int sn_terminal_fail(const char *command, const sn_error *err) {
  fflush(stdout);
  /* SN_E_MEMORY is any resource that ran out, open files among them; the message says which. */
  const char *kind = err->code == SN_E_MEMORY ? "resource" : sn_status_name(err->code);
  fprintf(stderr, "sonde %s: %s error: %s\n", command, kind, err->message);
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
