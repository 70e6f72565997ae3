/* What the commands share: the log on standard error, failure, signals, and the environment that OpenMP needs. */
#ifndef SN_CLI_TERMINAL_H
#define SN_CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

#include "core/log.h"
#include "core/status.h"

/* Lines on standard error. least: SN_LOG_INFO, or SN_LOG_DEBUG when SONDE_LOG=debug. */
sn_log sn_terminal_log(void);

/* A name or text from a file, for people: what a terminal would obey, or would break a line, is written out (\\n, \\t, \\xNN).
 * Cut, with "...", at the buffer's room. Returns the buffer. */
enum { SN_TERMINAL_TEXT = 1024 };
const char *sn_terminal_plain(const char *text, char buffer[SN_TERMINAL_TEXT]);

/* Prints "sonde COMMAND: message" and returns the exit status (1; 2 for SN_E_ARGUMENT). */
int sn_terminal_fail(const char *command, const sn_error *err);

/* First thing in main. A standard stream that the caller closed must not become the first file that is opened, or
 * messages would end in it. Its descriptor is taken by one that can be neither read nor written, so that using it still
 * fails. */
void sn_terminal_prepare(void);

/* Last thing in main: standard output reached its end, or says so and returns 1 where `code` was 0. */
int sn_terminal_finish(const char *command, int code);

/* A log's reader that leaves ends no run: SIGPIPE is ignored from here on. */
void sn_terminal_ignore_pipe(void);

/* For commands that save what they did before they end. SIGINT, SIGTERM and SIGHUP (unless ignored, as under nohup) set
 * the flag to the signal's number; a second one ends the process. Pipes are ignored as above. */
const volatile sig_atomic_t *sn_terminal_catch_signals(void);

/* libgomp spins by default, and a busy loader then costs a factor of 4: runs the command again, once, with
 * OMP_WAIT_POLICY=passive when the variable is unset. Returns when nothing had to be done. */
void sn_terminal_set_wait_policy(char **argv);

bool sn_terminal_is_interactive(void); /* standard error is a terminal */

#endif
