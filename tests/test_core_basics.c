/* Status and errors, log sink, checked allocation, tensor views. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/status.h"
#include "core/tensor.h"
#include "tests/alloc_fault.h"

static void test_errors(void **state) {
  sn_error err;
  assert_int_equal(sn_fail(&err, SN_E_FORMAT, "%s: %d", "file", 7), SN_E_FORMAT);
  assert_int_equal(err.code, SN_E_FORMAT);
  assert_int_equal(err.offset, -1);
  assert_int_equal(err.line, -1);
  assert_string_equal(err.field, "");
  assert_string_equal(err.message, "file: 7");
  assert_int_equal(sn_fail_at(&err, SN_E_CORRUPT, 12, 3, "gain", "bad"), SN_E_CORRUPT);
  assert_int_equal(err.offset, 12);
  assert_int_equal(err.line, 3);
  assert_string_equal(err.field, "gain");
  assert_int_equal(sn_error_prefix(&err, SN_E_IO, "record %d", 4), SN_E_CORRUPT);
  assert_string_equal(err.message, "record 4: bad");
  assert_int_equal(err.offset, 12);
  sn_fail(&err, SN_E_IO, "again: %s", err.message); /* an argument that points into the error itself */
  assert_string_equal(err.message, "again: record 4: bad");
  assert_int_equal(sn_fail(NULL, SN_E_IO, "x"), SN_E_IO);
  assert_int_equal(sn_fail_at(NULL, SN_E_IO, 0, 0, NULL, "x"), SN_E_IO);
  assert_int_equal(sn_error_prefix(NULL, SN_E_STATE, "x"), SN_E_STATE);
  sn_error_clear(NULL);
  sn_error_clear(&err);
  assert_int_equal(err.code, SN_OK);
  assert_string_equal(err.message, "");
}

/* Overlong parts are cut, and not in the middle of a character. */
static void test_long_messages(void **state) {
  sn_error err;
  char text[3001];
  for (int i = 0; i < 3000; i += 2) memcpy(text + i, "\xC3\xA9", 2);
  text[3000] = '\0';
  sn_fail_at(&err, SN_E_IO, 0, 0, text, "%s", text);
  assert_int_equal(strlen(err.message), 510);
  assert_int_equal(strlen(err.field), 46);
  sn_error_prefix(&err, SN_E_IO, "x%s", text);
  assert_int_equal(strlen(err.message), 511);
  assert_int_equal(err.message[0], 'x');
}

static void test_control_characters(void **state) {
  sn_error err;
  assert_int_equal(sn_fail_at(&err, SN_E_IO, 1, 2, "f\t", "a\nb\x1b[2J\x7f \xc3\xa9"), SN_E_IO);
  assert_string_equal(err.message, "a?b?[2J? \xc3\xa9");
  assert_string_equal(err.field, "f?");
  assert_int_equal(sn_error_prefix(&err, SN_OK, "x\ry"), SN_E_IO);
  assert_string_equal(err.message, "x?y: a?b?[2J? \xc3\xa9");
}

static void test_status_names(void **state) {
  static const struct {
    sn_status status;
    const char *name;
  } NAMES[] = {{SN_OK, "ok"},           {SN_END, "end"},
               {SN_E_IO, "io"},         {SN_E_FORMAT, "format"},
               {SN_E_CORRUPT, "corrupt"}, {SN_E_ARGUMENT, "argument"},
               {SN_E_UNSUPPORTED, "unsupported"}, {SN_E_MEMORY, "memory"},
               {SN_E_DEVICE, "device"}, {SN_E_STATE, "state"}};
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
    assert_string_equal(sn_status_name(NAMES[i].status), NAMES[i].name);
  assert_string_equal(sn_status_name((sn_status)999), "unknown");
}

typedef struct captured {
  int64_t n;
  sn_log_level level;
  char line[2048];
} captured;

static void capture(void *user, sn_log_level level, const char *message) {
  captured *c = user;
  c->n++;
  c->level = level;
  strcpy(c->line, message);
}

static void test_log(void **state) {
  captured c = {0};
  sn_log log = {capture, &c, SN_LOG_INFO};
  sn_log_write(&log, SN_LOG_DEBUG, "not this");
  assert_int_equal(c.n, 0);
  sn_log_write(&log, SN_LOG_WARNING, "value %d\n", 5);
  assert_int_equal(c.n, 1);
  assert_int_equal(c.level, SN_LOG_WARNING);
  assert_string_equal(c.line, "value 5");
  char text[3000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  sn_log_write(&log, SN_LOG_ERROR, "%s", text);
  assert_int_equal(strlen(c.line), 1023);
  sn_log_write(NULL, SN_LOG_ERROR, "nobody listens");
  sn_log_write(&(sn_log){0}, SN_LOG_ERROR, "nobody listens");
}

static void test_sizes(void **state) {
  int64_t r;
  assert_true(sn_mul_ok(INT64_C(1) << 31, INT64_C(1) << 31, &r) && r == INT64_C(1) << 62);
  assert_false(sn_mul_ok(INT64_C(1) << 32, INT64_C(1) << 31, &r));
  assert_false(sn_mul_ok(-1, 1, &r));
  assert_false(sn_mul_ok(1, -1, &r));
  assert_true(sn_mul_ok(0, INT64_MAX, &r) && r == 0);
  assert_true(sn_add_ok(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
  assert_false(sn_add_ok(INT64_MAX, 1, &r));
  assert_false(sn_add_ok(-1, 2, &r));
}

static void test_alloc(void **state) {
  sn_error err;
  int64_t *numbers = NULL, capacity = 0;
  char *text;
  assert_int_equal(sn_alloc(&numbers, 1000, 8, "numbers", &err), SN_OK);
  for (int i = 0; i < 1000; i++) assert_int_equal(numbers[i], 0);
  numbers[999] = 5;
  assert_int_equal(sn_realloc(&numbers, 2000, 8, "numbers", &err), SN_OK);
  assert_int_equal(numbers[999], 5);
  int64_t *before = numbers;
  assert_int_equal(sn_realloc(&numbers, INT64_MAX / 4, 8, "numbers", &err), SN_E_MEMORY);
  assert_ptr_equal(numbers, before);
  assert_non_null(strstr(err.message, "numbers"));
  sn_free(numbers);
  assert_int_equal(sn_alloc(&numbers, INT64_MAX / 16, 8, "too much", &err), SN_E_MEMORY); /* fits in 64 bits */
  assert_int_equal(sn_alloc(&numbers, -1, 8, "too little", &err), SN_E_MEMORY);
  assert_int_equal(sn_alloc_aligned(&text, INT64_MAX, "too much", &err), SN_E_MEMORY);
  assert_int_equal(sn_alloc_aligned(&text, -1, "too little", &err), SN_E_MEMORY);
  assert_int_equal(sn_alloc(&numbers, 0, 8, "nothing", &err), SN_OK);
  assert_non_null(numbers);
  sn_free(numbers);
  for (int64_t n = 0; n < 200; n += 33) {
    assert_int_equal(sn_alloc_aligned(&text, n, "aligned", &err), SN_OK);
    assert_int_equal((uintptr_t)text % 64, 0);
    memset(text, 1, (size_t)n);
    sn_free(text);
  }
  numbers = NULL;
  int64_t moves = 0;
  for (int64_t i = 0; i < 10000; i++) {
    int64_t room = capacity;
    assert_int_equal(sn_grow(&numbers, &capacity, i + 1, 8, "list", &err), SN_OK);
    moves += room != capacity;
    numbers[i] = i;
  }
  assert_true(moves < 14);
  for (int64_t i = 0; i < 10000; i++) assert_int_equal(numbers[i], i);
  assert_int_equal(sn_grow(&numbers, &capacity, INT64_MAX, 8, "list", &err), SN_E_MEMORY);
  assert_int_equal(numbers[9999], 9999);
  sn_free(numbers);
  assert_int_equal(sn_strdup(&text, "copy", "text", &err), SN_OK);
  assert_string_equal(text, "copy");
  sn_free(text);
  sn_free(NULL);
}

static sn_status use_all(sn_error *err) {
  int64_t *a = NULL, *b = NULL, *c = NULL, capacity = 0;
  char *text = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&a, 3, 8, "a", err), done);
  SN_TRY_GOTO(sn_realloc(&a, 4, 8, "a", err), done);
  SN_TRY_GOTO(sn_grow(&b, &capacity, 9, 8, "b", err), done);
  SN_TRY_GOTO(sn_alloc_aligned(&c, 9, "c", err), done);
  SN_TRY_GOTO(sn_strdup(&text, "d", "d", err), done);
done:
  sn_free(a);
  sn_free(b);
  sn_free(c);
  sn_free(text);
  return status;
}

static void test_allocation_failures(void **state) {
  for (fault_begin(); fault_next();) {
    sn_error err;
    fault_check(use_all(&err));
  }
  assert_int_equal(fault_state.turn, 6); /* five allocations and the turn without a failure */
}

static void test_tensor_shapes(void **state) {
  float data[24];
  sn_tensor t = {.data = data, .shape = {2, 3, 4, 1}, .n_dims = 3, .dtype = SN_F32};
  assert_int_equal(sn_tensor_count(&t), 24);
  assert_int_equal(sn_tensor_bytes(&t), 96);
  assert_int_equal(sn_tensor_rows(&t), 6);
  assert_int_equal(sn_tensor_columns(&t), 4);
  sn_tensor u = sn_tensor_2d(data, SN_F64, 6, 4), v = sn_tensor_1d(data, SN_BF16, 24);
  assert_false(sn_tensor_same_shape(&t, &u));
  assert_int_equal(sn_tensor_rows(&v), 1);
  assert_int_equal(sn_tensor_bytes(&v), 48);
  sn_tensor w = sn_tensor_2d(NULL, SN_F32, 6, 4);
  assert_true(sn_tensor_same_shape(&u, &w)); /* whatever data and dtype */
  sn_tensor empty = sn_tensor_2d(NULL, SN_F32, 5, 0);
  assert_int_equal(sn_tensor_count(&empty), 0);
  assert_int_equal(sn_tensor_rows(&empty), 5);
  sn_tensor scalar = {.data = data, .shape = {1, 1, 1, 1}, .n_dims = 0, .dtype = SN_F32};
  assert_int_equal(sn_tensor_count(&scalar), 1);
  sn_tensor large = sn_tensor_2d(NULL, SN_F64, 100000, 100000); /* more than 2^31 elements */
  assert_true(sn_tensor_bytes(&large) == INT64_C(80000000000));
  assert_string_equal(sn_dtype_name(SN_BF16), "bf16");
  assert_int_equal(sn_dtype_size(SN_I64), 8);
  assert_int_equal(sn_dtype_size(SN_U8), 1);
}

static void test_tensor_values(void **state) {
  double f64[3];
  float f32[3];
  uint16_t bf16[3];
  sn_tensor a = sn_tensor_1d(f64, SN_F64, 3), b = sn_tensor_1d(f32, SN_F32, 3), c = sn_tensor_1d(bf16, SN_BF16, 3);
  for (int64_t i = 0; i < 3; i++) {
    sn_tensor_set(&a, i, 0.1 * (double)i);
    sn_tensor_set(&b, i, 0.1 * (double)i);
    sn_tensor_set(&c, i, 0.1 * (double)i);
    assert_true(sn_tensor_get(&a, i) == 0.1 * (double)i);
    assert_true(sn_tensor_get(&b, i) == (double)(float)(0.1 * (double)i));
  }
  assert_int_equal(bf16[1], 0x3DCD); /* 0.1 to the nearest of 8 bits: 0.10009765625 */
  assert_true(sn_tensor_get(&c, 1) == 0.10009765625);
  sn_tensor_set(&c, 0, NAN);
  assert_true(isnan(sn_tensor_get(&c, 0)));
  sn_tensor_set(&c, 0, 3.4e38); /* beyond the largest bfloat16 and nearer to infinity */
  assert_true(isinf(sn_tensor_get(&c, 0)));
  sn_tensor_set(&c, 0, 1.00390625); /* a tie: to even */
  assert_true(sn_tensor_get(&c, 0) == 1.0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_errors),        cmocka_unit_test(test_long_messages),
      cmocka_unit_test(test_status_names),  cmocka_unit_test(test_control_characters),
      cmocka_unit_test(test_log),           cmocka_unit_test(test_sizes),
      cmocka_unit_test(test_alloc),         cmocka_unit_test(test_allocation_failures),
      cmocka_unit_test(test_tensor_shapes), cmocka_unit_test(test_tensor_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
