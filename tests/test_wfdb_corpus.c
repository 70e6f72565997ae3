/* needs: full */
/* The fuzz target of the WFDB reader on its committed corpus. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "fuzz_wfdb.c"

static void corpus(void **state) {
  assert_true(fuzz_corpus(SONDE_SOURCE_DIR "/tests/corpus/wfdb", LLVMFuzzerTestOneInput) >= 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(corpus)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
