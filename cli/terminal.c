#include "cli/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* Below the command line there is no mutable global; a signal handler has no other way to be heard. */
static volatile sig_atomic_t caught;

static void on_signal(int number) {
  if (caught != 0) _exit(128 + number);
  caught = number;
}

const volatile sig_atomic_t *sn_terminal_catch_signals(void) {
  struct sigaction action = {.sa_handler = on_signal};
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, NULL);
  sigaction(SIGTERM, &action, NULL);
  return &caught;
}

void sn_terminal_set_wait_policy(char **argv) {
  if (getenv("OMP_WAIT_POLICY") != NULL) return;
  if (setenv("OMP_WAIT_POLICY", "passive", 1) != 0) return;
  execv("/proc/self/exe", argv); /* when it cannot, the run goes on, only slower */
}

bool sn_terminal_is_interactive(void) { return isatty(STDERR_FILENO) != 0; }
