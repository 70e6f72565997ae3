/* needs: full */
#include "cli/each_directory.h"

#include <stdio.h>

#include "engine/run.h"

static sn_status check(const sn_args *args, const char *const *of_one, const char *verb, sn_error *err) {
  const int64_t n = sn_args_positionals(args);
  for (; *of_one != NULL && n > 1; of_one++)
    if (sn_args_has(args, *of_one))
      return sn_fail(err, SN_E_ARGUMENT, "--%s is of one data set, and %lld are given: %s them one by one", *of_one, (long long)n, verb);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i; j++)
      if (sn_same_directory(sn_args_positional(args, i), sn_args_positional(args, j)))
        return sn_fail(err, SN_E_ARGUMENT, "%s is given twice", sn_args_positional(args, i));
  return SN_OK;
}

sn_status sn_each_directory(const sn_args *args, const char *const *of_one, const char *verb, sn_directory_command command,
                            int *exit_code, sn_error *err) {
  const int64_t n = sn_args_positionals(args);
  const bool as_json = sn_args_has(args, "json");
  sn_string json = {0};
  sn_status status;
  SN_TRY(check(args, of_one, verb, err));
  for (int64_t i = 0; i < n; i++) {
    if (n > 1) SN_TRY_GOTO(sn_string_append(&json, i == 0 ? "{\"sets\": [\n" : ",\n", -1, err), done);
    if (i > 0 && !as_json) printf("\n");
    SN_TRY_GOTO(command(args, sn_args_positional(args, i), &json, exit_code, err), done);
  }
  if (n > 1) SN_TRY_GOTO(sn_string_append(&json, "\n]}", -1, err), done);
  if (as_json) printf("%s\n", json.data);
  status = SN_OK;
done:
  sn_string_free(&json);
  return status;
}
