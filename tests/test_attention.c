/* The op `attention`: every implementation on every sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernels/attention/attention.h"
#include "op_check.h"

static void samples(void **state) { op_check_all(&sn_op_attention); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
