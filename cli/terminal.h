/* What the commands share: the log on standard error, failure, signals, and the environment that OpenMP needs. */
#ifndef SN_CLI_TERMINAL_H
#define SN_CLI_TERMINAL_H

#include <signal.h>
#include <stdbool.h>

#include "core/log.h"
#include "core/status.h"

/* Lines on standard error. least: SN_LOG_INFO, or SN_LOG_DEBUG when SONDE_LOG=debug. */
sn_log sn_terminal_log(void);

/* Prints "sonde COMMAND: message" and returns the exit status (1; 2 for SN_E_ARGUMENT). */
int sn_terminal_fail(const char *command, const sn_error *err);

/* SIGINT and SIGTERM set the flag (to the signal's number); a second one ends the process. */
const volatile sig_atomic_t *sn_terminal_catch_signals(void);

/* libgomp spins by default, and a busy loader then costs a factor of 4: runs the command again, once, with
 * OMP_WAIT_POLICY=passive when the variable is unset. Returns when nothing had to be done. */
void sn_terminal_set_wait_policy(char **argv);

bool sn_terminal_is_interactive(void); /* standard error is a terminal */

#endif
