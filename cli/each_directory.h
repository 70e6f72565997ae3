/* Commands that take several directories, each a data set of its own. */
#ifndef SN_CLI_EACH_DIRECTORY_H
#define SN_CLI_EACH_DIRECTORY_H

#include "cli/args.h"
#include "core/text.h"

/* Prints its report, or with --json appends one JSON object. *exit_code: raised where something was found. */
typedef sn_status (*sn_directory_command)(const sn_args *args, const char *dir, sn_string *json, int *exit_code, sn_error *err);

/* The command for each positional argument: one report after the other, or {"sets": [...]}. of_one: options that are of one data
 * set alone, ended by NULL; verb: what is done to one, "index". SN_E_ARGUMENT: one of them with several directories, or a
 * directory that is given twice. */
SN_MUST_CHECK sn_status sn_each_directory(const sn_args *args, const char *const *of_one, const char *verb,
                                          sn_directory_command command, int *exit_code, sn_error *err);

#endif
