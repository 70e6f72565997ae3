#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/args.h"

static const sn_option OPTIONS[] = {{"data", "DIR", false, "folder of recordings"},
                                    {"set", "KEY=VALUE", true, "a setting"},
                                    {"json", NULL, false, "machine-readable output"},
                                    {"count", "N", false, "how many"},
                                    {NULL, NULL, false, NULL}};

static sn_args *args;
static sn_error err;

static sn_status parse(int64_t least, int64_t most, const char *const *words) {
  static char copies[16][64];
  static char *argv[17];
  int argc = 1;
  argv[0] = strcpy(copies[15], "probe");
  for (; words[argc - 1] != NULL; argc++) argv[argc] = strcpy(copies[argc], words[argc - 1]);
  argv[argc] = NULL;
  sn_args_destroy(args);
  return sn_args_parse(OPTIONS, "RUN...", least, most, argc, argv, &args, &err);
}
#define PARSE(least, most, ...) parse(least, most, (const char *const[]){__VA_ARGS__, NULL})

static void refused(sn_status status, const char *what) {
  assert_int_equal(status, SN_E_ARGUMENT);
  assert_null(args);
  if (strstr(err.message, what) == NULL) fail_msg("message \"%s\" lacks \"%s\"", err.message, what);
}

static void test_forms(void **state) {
  assert_int_equal(PARSE(1, -1, "a", "--data", "x", "--set=k=v=w", "--json", "--set", "k2=", "b", "--", "--c"), SN_OK);
  assert_string_equal(sn_args_get(args, "data"), "x");
  assert_int_equal(sn_args_count(args, "set"), 2);
  assert_string_equal(sn_args_nth(args, "set", 0), "k=v=w");
  assert_string_equal(sn_args_nth(args, "set", 1), "k2=");
  assert_string_equal(sn_args_get(args, "set"), "k2=");
  assert_null(sn_args_nth(args, "set", 2));
  assert_true(sn_args_has(args, "json"));
  assert_false(sn_args_has(args, "count"));
  assert_null(sn_args_get(args, "count"));
  assert_int_equal(sn_args_positionals(args), 3);
  assert_string_equal(sn_args_positional(args, 0), "a");
  assert_string_equal(sn_args_positional(args, 2), "--c");
  assert_null(sn_args_positional(args, 3));
  assert_false(sn_args_wants_help(args));
  assert_int_equal(PARSE(0, 0, "--data="), SN_OK);
  assert_string_equal(sn_args_get(args, "data"), "");
  assert_int_equal(PARSE(0, 0, "--data=--x"), SN_OK);
  assert_string_equal(sn_args_get(args, "data"), "--x");
}

static void test_numbers(void **state) {
  int64_t i;
  double d;
  assert_int_equal(PARSE(0, 1, "--count", "-3", "-5"), SN_OK);
  assert_int_equal(sn_args_i64(args, "count", 7, &i, &err), SN_OK);
  assert_int_equal(i, -3);
  assert_int_equal(sn_args_f64(args, "count", 7, &d, &err), SN_OK);
  assert_true(d == -3.0);
  assert_string_equal(sn_args_positional(args, 0), "-5");
  assert_int_equal(PARSE(0, 1, "-"), SN_OK);
  assert_string_equal(sn_args_positional(args, 0), "-");
  assert_int_equal(sn_args_i64(args, "count", 7, &i, &err), SN_OK);
  assert_int_equal(i, 7);
  assert_int_equal(PARSE(0, 0, "--count", "1.5x"), SN_OK);
  assert_int_equal(sn_args_i64(args, "count", 7, &i, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "--count expects a whole number, found \"1.5x\""));
  assert_int_equal(sn_args_f64(args, "count", 7, &d, &err), SN_E_ARGUMENT);
}

static void test_refused(void **state) {
  refused(PARSE(0, 0, "--dta", "x"), "unknown option --dta, did you mean --data?");
  refused(PARSE(0, 0, "--dta=x"), "did you mean --data?");
  refused(PARSE(0, 0, "--completely-else"), "unknown option --completely-else; --help");
  refused(PARSE(0, 0, "--data"), "--data needs a value");
  refused(PARSE(0, 0, "--data", "--json"), "--data needs a value");
  refused(PARSE(0, 0, "--json=yes"), "--json is a switch");
  refused(PARSE(0, 0, "--data", "a", "--data", "b"), "--data is given twice");
  refused(PARSE(0, 0, "-d"), "unknown option -d");
  refused(PARSE(0, 0, "x"), "unexpected argument \"x\"");
  refused(PARSE(2, -1, "x"), "RUN...: expected at least 2, found 1");
  refused(PARSE(0, 0, "--help=1"), "--help takes no value");
}

static void test_help(void **state) {
  assert_int_equal(PARSE(2, 2, "--help"), SN_OK);
  assert_true(sn_args_wants_help(args));
  assert_int_equal(PARSE(2, 2, "-h", "--nonsense"), SN_OK);
  assert_true(sn_args_wants_help(args));
  assert_int_equal(PARSE(0, -1, "--", "--help"), SN_OK);
  assert_false(sn_args_wants_help(args));

  char path[] = "/tmp/sonde_args_XXXXXX";
  int fd = mkstemp(path), saved = dup(1);
  assert_true(fd >= 0 && saved >= 0);
  fflush(stdout);
  dup2(fd, 1);
  sn_args_print_help(OPTIONS, "probe", "RUN...", "Probes a run.");
  fflush(stdout);
  dup2(saved, 1);
  close(saved);
  char text[2048] = {0};
  assert_true(pread(fd, text, sizeof text - 1, 0) > 0);
  close(fd);
  unlink(path);
  assert_string_equal(text, "usage: sonde probe RUN... [options]\n\nProbes a run.\n\noptions:\n"
                            "  --data DIR       folder of recordings\n"
                            "  --set KEY=VALUE  a setting (may be repeated)\n"
                            "  --json           machine-readable output\n"
                            "  --count N        how many\n"
                            "  --help           this text\n");
}

static int finish(void **state) {
  sn_args_destroy(args);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_forms), cmocka_unit_test(test_numbers),
                                     cmocka_unit_test(test_refused), cmocka_unit_test(test_help)};
  return cmocka_run_group_tests(tests, NULL, finish);
}
