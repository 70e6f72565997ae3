/* Command-line options of one command, from one table: parsing, --help, nearest-match errors. */
#ifndef SN_CLI_ARGS_H
#define SN_CLI_ARGS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_option {
  const char *name;     /* "data": given as --data VALUE or --data=VALUE */
  const char *value;    /* placeholder in --help ("DIR"); NULL: a switch without value */
  bool repeated;        /* may be given several times */
  const char *help;
} sn_option;            /* a table ends with name NULL */

typedef struct sn_args sn_args;

/* argv[0] is the command's name. `positional` describes them for --help ("RUN..."), least/most how many are allowed
 * (most -1: no limit). --help / -h is always known: prints usage to stdout through the caller (sn_args_wants_help). */
SN_MUST_CHECK sn_status sn_args_parse(const sn_option *options, const char *positional, int64_t least, int64_t most,
                                      int argc, char **argv, sn_args **out, sn_error *err);
void sn_args_destroy(sn_args *args);
bool sn_args_wants_help(const sn_args *args);
void sn_args_print_help(const sn_option *options, const char *command, const char *positional, const char *summary);

bool sn_args_has(const sn_args *args, const char *name);
const char *sn_args_get(const sn_args *args, const char *name); /* last value, or NULL */
int64_t sn_args_count(const sn_args *args, const char *name);
const char *sn_args_nth(const sn_args *args, const char *name, int64_t i);
int64_t sn_args_positionals(const sn_args *args);
const char *sn_args_positional(const sn_args *args, int64_t i);
SN_MUST_CHECK sn_status sn_args_i64(const sn_args *args, const char *name, int64_t fallback, int64_t *value,
                                    sn_error *err);
SN_MUST_CHECK sn_status sn_args_f64(const sn_args *args, const char *name, double fallback, double *value,
                                    sn_error *err);

#endif
