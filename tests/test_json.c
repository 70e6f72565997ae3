#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/json.h"

static int64_t fail_at = -1; /* the n-th allocation from now fails; negative: none */
bool sn_alloc_should_fail(void) { return fail_at >= 0 && fail_at-- == 0; }

static sn_status parse(const char *text, sn_json **out, sn_error *err) {
  return sn_json_parse(text, (int64_t)strlen(text), "test", out, err);
}

static void test_values(void **state) {
  sn_json *json;
  sn_error err;
  assert_int_equal(
      parse(" {\"a\": 1, \"b\": [true, false, null, -2.5e-3, \"x\"],\n \"c\": {\"d\": {}}, \"e\": []}\n ", &json, &err),
      SN_OK);
  int64_t i;
  double d;
  bool b = false;
  const char *text;
  assert_int_equal(sn_json_get_i64(json, "a", &i, &err), SN_OK);
  assert_int_equal(i, 1);
  assert_int_equal(sn_json_get_f64(json, "a", &d, &err), SN_OK);
  assert_true(d == 1.0);
  const sn_json *list = sn_json_get(json, "b");
  assert_int_equal(sn_json_length(list), 5);
  assert_int_equal(sn_json_kind(sn_json_at(list, 0)), SN_JSON_BOOL);
  assert_int_equal(sn_json_kind(sn_json_at(list, 2)), SN_JSON_NULL);
  assert_true(sn_json_as_f64(sn_json_at(list, 3), &d) && d == -2.5e-3);
  assert_false(sn_json_as_i64(sn_json_at(list, 3), &i));
  assert_string_equal(sn_json_as_string(sn_json_at(list, 4)), "x");
  assert_null(sn_json_at(list, 5));
  assert_null(sn_json_at(list, -1));
  assert_string_equal(sn_json_key(json, 2), "c");
  assert_null(sn_json_key(json, 4));
  assert_int_equal(sn_json_line(sn_json_get(json, "c")), 2);
  assert_int_equal(sn_json_length(sn_json_get(json, "e")), 0);
  assert_null(sn_json_get(sn_json_get(sn_json_get(json, "c"), "d"), "x"));
  assert_int_equal(sn_json_get_i64(json, "z", &i, &err), SN_E_CORRUPT);
  assert_non_null(strstr(err.message, "\"z\""));
  assert_int_equal(sn_json_get_bool(json, "a", &b, &err), SN_E_CORRUPT);
  assert_non_null(strstr(err.message, "must be a boolean, found an integer"));
  assert_int_equal(sn_json_get_string(json, "c", &text, NULL), SN_E_CORRUPT);
  sn_json_destroy(json);
  sn_json_destroy(NULL);
}

static void test_numbers(void **state) {
  static const struct { const char *text; double value; } reals[] = {
      {"0.1", 0.1}, {"2.2250738585072014e-308", 2.2250738585072014e-308}, {"5e-324", 5e-324},
      {"1.7976931348623157e308", 1.7976931348623157e308}, {"9223372036854775808", 9223372036854775808.0},
      {"-0", -0.0}, {"-0.0", -0.0}, {"1E+2", 100}, {"1e-400", 0.0},
      {"0.1000000000000000055511151231257827021181583404541015625000000000000000000000000000000001", 0.1}};
  for (size_t i = 0; i < sizeof reals / sizeof reals[0]; i++) {
    sn_json *json;
    double value;
    assert_int_equal(parse(reals[i].text, &json, NULL), SN_OK);
    assert_true(sn_json_as_f64(json, &value));
    assert_memory_equal(&value, &reals[i].value, sizeof value);
    sn_json_destroy(json);
  }
  static const char *const integers[] = {"0", "9007199254740993", "9223372036854775807", "-9223372036854775808"};
  for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++) {
    sn_json *json;
    int64_t value;
    assert_int_equal(parse(integers[i], &json, NULL), SN_OK);
    assert_true(sn_json_as_i64(json, &value));
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    assert_string_equal(text, integers[i]);
    sn_json_destroy(json);
  }
}

static void test_strings(void **state) {
  sn_json *json;
  assert_int_equal(parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\udc4d\xc3\xa9\xf0\x9f\x91\x8d\"", &json, NULL),
                   SN_OK);
  assert_string_equal(sn_json_as_string(json), "\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x91\x8d\xc3\xa9\xf0\x9f\x91\x8d");
  sn_json_destroy(json);
}

static void test_refused(void **state) {
  static const struct { const char *text; int64_t line; const char *what;
  } bad[] = {{"", 1, "expected a value, found the end"},
             {"  ", 1, "the end"},
             {"{", 1, "expected a key"},
             {"{\"a\"", 1, "':'"},
             {"{\"a\":", 1, "value"},
             {"{\"a\":1", 1, "','"},
             {"{\"a\":1,}", 1, "key"},
             {"[1,]", 1, "value"},
             {"[1 2]", 1, "','"},
             {"[1}", 1, "','"},
             {"\n\n{\"a\":1, \"b\":2, \"a\":3}", 3, "\"a\" is given twice"},
             {"1 2", 1, "end of the document"},
             {"{} x", 1, "end of the document"},
             {"01", 1, "begin with 0"},
             {"-", 1, "digit"},
             {"1.", 1, "digit"},
             {".5", 1, "value"},
             {"+1", 1, "value"},
             {"1e", 1, "digit"},
             {"1e+", 1, "digit"},
             {"1e999", 1, "range"},
             {"NaN", 1, "value"},
             {"Infinity", 1, "value"},
             {"truf", 1, "value"},
             {"\"abc", 1, "no end"},
             {"\"abc\\", 1, "no end"},
             {"\"\\x\"", 1, "backslash"},
             {"\"\\u12g4\"", 1, "hexadecimal"},
             {"\"\\ud800\"", 1, "lone surrogate"},
             {"\"\\udc00\"", 1, "lone surrogate"},
             {"\"\\ud800\\u0041\"", 1, "lone surrogate"},
             {"\"\\u0000\"", 1, "U+0000"},
             {"\"a\nb\"", 1, "control character"},
             {"\"\xff\"", 1, "UTF-8"},
             {"\"\xc0\x80\"", 1, "UTF-8"},
             {"\"\xe0\x80\x80\"", 1, "UTF-8"},
             {"\"\xed\xa0\x80\"", 1, "UTF-8"},
             {"\"\xf4\x90\x80\x80\"", 1, "UTF-8"},
             {"\"\xc3\"", 1, "UTF-8"},
             {"\xef\xbb\xbf{}", 1, "byte 0xef"},
             {"[1,\n2,\n\n x]", 4, "'x'"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    sn_json *json = NULL;
    sn_error err;
    assert_int_equal(parse(bad[i].text, &json, &err), SN_E_CORRUPT);
    assert_null(json);
    if (strstr(err.message, bad[i].what) == NULL)
      fail_msg("%s: message \"%s\" lacks \"%s\"", bad[i].text, err.message, bad[i].what);
    assert_int_equal(err.line, bad[i].line);
    assert_true(err.offset >= 0);
  }
}

static void test_depth(void **state) {
  char text[400];
  for (int depth = 64; depth <= 65; depth++) {
    memset(text, '[', (size_t)depth);
    memset(text + depth, ']', (size_t)depth);
    sn_json *json;
    assert_int_equal(sn_json_parse(text, 2 * depth, "test", &json, NULL), depth == 64 ? SN_OK : SN_E_CORRUPT);
    sn_json_destroy(json);
  }
}

static void write_sample(sn_json_writer *w) {
  sn_json_begin_object(w);
  sn_json_write_key(w, "a\"\\\n\x01\xc3\xa9");
  sn_json_write_i64(w, INT64_MIN);
  sn_json_write_key(w, "list");
  sn_json_begin_array(w);
  sn_json_write_f64(w, 0.1);
  sn_json_write_f64(w, NAN);
  sn_json_write_f64(w, -INFINITY);
  sn_json_write_f64(w, -0.0);
  sn_json_write_bool(w, true);
  sn_json_write_null(w);
  sn_json_write_string(w, "x");
  sn_json_write_string(w, NULL);
  sn_json_begin_object(w);
  sn_json_end_object(w);
  sn_json_end_array(w);
  sn_json_write_key(w, "empty");
  sn_json_begin_array(w);
  sn_json_end_array(w);
  sn_json_end_object(w);
}

static void test_writer(void **state) {
  sn_string out = {0};
  sn_json_writer w;
  sn_json_writer_init(&w, &out, 0);
  write_sample(&w);
  assert_int_equal(sn_json_writer_finish(&w, NULL), SN_OK);
  assert_string_equal(out.data,
                      "{\"a\\\"\\\\\\n\\u0001\xc3\xa9\": -9223372036854775808, \"list\": [0.1, null, null, -0, "
                      "true, null, \"x\", null, {}], \"empty\": []}");
  sn_json *json;
  assert_int_equal(sn_json_parse(out.data, out.length, "out", &json, NULL), SN_OK);
  assert_string_equal(sn_json_key(json, 0), "a\"\\\n\x01\xc3\xa9");
  sn_json_destroy(json);
  out.length = 0;
  sn_json_writer_init(&w, &out, 2);
  sn_json_begin_object(&w);
  sn_json_write_key(&w, "a");
  sn_json_begin_array(&w);
  sn_json_write_i64(&w, 1);
  sn_json_write_i64(&w, 2);
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  assert_int_equal(sn_json_writer_finish(&w, NULL), SN_OK);
  assert_string_equal(out.data, "{\n  \"a\": [\n    1,\n    2\n  ]\n}");
  sn_string_free(&out);
}

/* Every double that is written reads back with the same bits. */
static void test_round_trip(void **state) {
  uint64_t bits = 88172645463325252u;
  for (int i = 0; i < 20000; i++) {
    bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
    double value, back;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    sn_string out = {0};
    sn_json_writer w;
    sn_json_writer_init(&w, &out, 0);
    sn_json_write_f64(&w, value);
    assert_int_equal(sn_json_writer_finish(&w, NULL), SN_OK);
    sn_json *json;
    assert_int_equal(sn_json_parse(out.data, out.length, "out", &json, NULL), SN_OK);
    assert_true(sn_json_as_f64(json, &back));
    assert_memory_equal(&value, &back, sizeof value);
    sn_json_destroy(json);
    sn_string_free(&out);
  }
}

static void misuse(void (*steps)(sn_json_writer *), sn_status expected) {
  sn_string out = {0};
  sn_json_writer w;
  sn_error err;
  sn_json_writer_init(&w, &out, 0);
  steps(&w);
  assert_int_equal(sn_json_writer_finish(&w, &err), expected);
  assert_int_equal(err.code, expected);
  sn_string_free(&out);
}
static void nothing(sn_json_writer *w) { (void)w; }
static void two_roots(sn_json_writer *w) { sn_json_write_null(w), sn_json_write_null(w); }
static void open_array(sn_json_writer *w) { sn_json_begin_array(w); }
static void crossed(sn_json_writer *w) { sn_json_begin_array(w), sn_json_end_object(w); }
static void no_key(sn_json_writer *w) { sn_json_begin_object(w), sn_json_write_null(w), sn_json_end_object(w); }
static void key_in_array(sn_json_writer *w) { sn_json_begin_array(w), sn_json_write_key(w, "a"); }
static void key_without_value(sn_json_writer *w) {
  sn_json_begin_object(w), sn_json_write_key(w, "a"), sn_json_end_object(w);
}
static void too_many_ends(sn_json_writer *w) { sn_json_write_null(w), sn_json_end_array(w); }
static void bad_text(sn_json_writer *w) { sn_json_write_string(w, "\xff"); }
static void too_deep(sn_json_writer *w) {
  for (int i = 0; i < 70; i++) sn_json_begin_array(w);
  for (int i = 0; i < 70; i++) sn_json_end_array(w);
}

static void test_writer_misuse(void **state) {
  misuse(nothing, SN_E_STATE);
  misuse(two_roots, SN_E_STATE);
  misuse(open_array, SN_E_STATE);
  misuse(crossed, SN_E_STATE);
  misuse(no_key, SN_E_STATE);
  misuse(key_in_array, SN_E_STATE);
  misuse(key_without_value, SN_E_STATE);
  misuse(too_many_ends, SN_E_STATE);
  misuse(bad_text, SN_E_ARGUMENT);
  misuse(too_deep, SN_E_ARGUMENT);
}

static void test_allocation_failures(void **state) {
  const char *text =
      "{\"a\": [1, {\"b\": \"x\"}, 0.10000000000000000000000000000000000000000000000000000000000000000001], \"c\": {}}";
  for (int64_t n = 0;; n++) {
    sn_json *json = NULL;
    fail_at = n;
    sn_status status = parse(text, &json, NULL);
    bool reached = fail_at < 0;
    fail_at = -1;
    sn_json_destroy(json);
    if (!reached) {
      assert_int_equal(status, SN_OK);
      assert_true(n > 8);
      return;
    }
    assert_int_equal(status, SN_E_MEMORY);
    assert_null(json);
  }
}

/* Every truncation of a document is refused, never read out of bounds. */
static void test_truncation(void **state) {
  const char *text = "{\"a\": [1.5e3, \"\\ud83d\\udc4d\xc3\xa9\", true, {\"b\": null}]}";
  for (int64_t n = 0; n < (int64_t)strlen(text); n++) {
    char *copy = malloc((size_t)n + 1); /* exact size, so that ASan sees a read beyond it */
    memcpy(copy, text, (size_t)n);
    char *exact = realloc(copy, (size_t)n > 0 ? (size_t)n : 1);
    sn_json *json = NULL;
    assert_int_equal(sn_json_parse(exact, n, "cut", &json, NULL), SN_E_CORRUPT);
    free(exact);
  }
}

/* Random bytes changed: read or refused with a place, never a crash. */
static void test_changed_bytes(void **state) {
  const char *text =
      "{\"a\": [1.5e3, \"\\ud83d\\udc4d\xc3\xa9\", true, {\"b\": null, \"c\": -12}], \"d\": {\"e\": []}}";
  char copy[128];
  int64_t n = (int64_t)strlen(text);
  uint64_t random = 7;
  int n_read = 0;
  for (int i = 0; i < 20000; i++) {
    memcpy(copy, text, (size_t)n);
    for (int k = 0; k <= i % 3; k++) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      static const char bytes[] = "{}[]\",:\\u0e-. tn\x80\xff\xed";
      copy[(random >> 33) % (uint64_t)n] = bytes[(random >> 20) % (sizeof bytes - 1)];
    }
    sn_json *json = NULL;
    sn_error err;
    sn_status status = sn_json_parse(copy, n, "changed", &json, &err);
    assert_true(status == SN_OK || (status == SN_E_CORRUPT && err.offset >= 0 && err.offset <= n && err.line == 1));
    n_read += status == SN_OK;
    sn_json_destroy(json);
  }
  assert_true(n_read > 100); /* both ways were taken */
}

static void test_load(void **state) {
  char path[] = "/tmp/sonde_json_XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  FILE *file = fdopen(fd, "w");
  fputs("{\"a\": [1, 2]}\n", file);
  fclose(file);
  sn_json *json;
  sn_error err;
  assert_int_equal(sn_json_load(path, &json, &err), SN_OK);
  assert_int_equal(sn_json_length(sn_json_get(json, "a")), 2);
  sn_json_destroy(json);
  remove(path);
  assert_int_equal(sn_json_load(path, &json, &err), SN_E_IO);
  assert_non_null(strstr(err.message, path));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_values),
                                     cmocka_unit_test(test_numbers),
                                     cmocka_unit_test(test_strings),
                                     cmocka_unit_test(test_refused),
                                     cmocka_unit_test(test_depth),
                                     cmocka_unit_test(test_writer),
                                     cmocka_unit_test(test_round_trip),
                                     cmocka_unit_test(test_writer_misuse),
                                     cmocka_unit_test(test_allocation_failures),
                                     cmocka_unit_test(test_truncation), cmocka_unit_test(test_changed_bytes),
                                     cmocka_unit_test(test_load)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
