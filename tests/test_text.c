/* Numbers in and out of text under any locale, strings, encodings, nearest names, tables. */
#include <float.h>
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "core/fs.h"
#include "core/philox.h"
#include "core/text.h"
#include "tests/alloc_fault.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static char folder_path[] = "/tmp/sonde_test_text_XXXXXX";

static int make_folder(void **state) { return mkdtemp(folder_path) == NULL; }
static int remove_folder(void **state) { return sn_remove_tree(folder_path, NULL) != SN_OK; }

static void test_numbers(void **state) {
  static const struct {
    const char *text;
    double value;
  } GOOD[] = {{"0", 0},          {" 1.5\t", 1.5},     {"-2e3\r\n", -2000}, {".5", 0.5}, {"5.", 5},
              {"+1E-2", 0.01},   {"1e-400", 0},       {"00012", 12},       {"0.1", 0.1},
              {"2.2250738585072014e-308", DBL_MIN},   {"9007199254740993", 9007199254740992.0},
              {"9007199254740995", 9007199254740996.0}, {"4.9406564584124654e-324", DBL_TRUE_MIN},
              {"1.7976931348623157e308", DBL_MAX}};
  static const char *const BAD[] = {"",     " ",    "abc", "1,5",  "1.5x", "0x10", "1e",   "1e+", ".",    "-",   "+",
                                    "e5",   "1 2",  "nan", "inf",  "-inf", "1e400", "--1", "1..2", "1_0", "NaN(1)"};
  double x;
  for (size_t i = 0; i < LENGTH(GOOD); i++) {
    assert_true(sn_parse_f64(GOOD[i].text, false, &x));
    assert_true(x == GOOD[i].value);
  }
  x = 7;
  for (size_t i = 0; i < LENGTH(BAD); i++) assert_false(sn_parse_f64(BAD[i], false, &x));
  assert_true(x == 7);
  assert_true(sn_parse_f64(" NaN ", true, &x) && isnan(x));
  assert_true(sn_parse_f64("+inf", true, &x) && x == INFINITY);
  assert_true(sn_parse_f64("-Infinity", true, &x) && x == -INFINITY);
  assert_true(sn_parse_f64("1e400", true, &x) && x == INFINITY);
  assert_false(sn_parse_f64("nan(1)", true, &x));
  assert_false(sn_parse_f64("infinit", true, &x));
}

static void test_integers(void **state) {
  int64_t x = 7;
  assert_true(sn_parse_i64(" 42 ", &x) && x == 42);
  assert_true(sn_parse_i64("-9223372036854775808", &x) && x == INT64_MIN);
  assert_true(sn_parse_i64("+9223372036854775807", &x) && x == INT64_MAX);
  static const char *const BAD[] = {"", " ", "-", "+", "1.0", "1e3", "0x1", "9223372036854775808", "-9223372036854775809",
                                    "99999999999999999999", "1 2", "--1"};
  x = 7;
  for (size_t i = 0; i < LENGTH(BAD); i++) assert_false(sn_parse_i64(BAD[i], &x));
  assert_int_equal(x, 7);
}

static void test_format(void **state) {
  char text[32];
  static const struct {
    double value;
    const char *text;
  } CASES[] = {{0.1, "0.1"}, {1.0, "1"}, {-0.0, "-0"}, {1.0 / 3, "0.3333333333333333"}, {1e300, "1e+300"},
               {NAN, "nan"}, {-NAN, "nan"}, {INFINITY, "inf"}, {-INFINITY, "-inf"}};
  for (size_t i = 0; i < LENGTH(CASES); i++) {
    sn_format_f64(CASES[i].value, text);
    assert_string_equal(text, CASES[i].text);
  }
  sn_random r = sn_random_at(1, SN_PURPOSE_TEST, 0, 0);
  for (int64_t checked = 0; checked < 20000;) { /* random bit patterns read back to the same bits */
    uint64_t bits = sn_random_u64(&r), back_bits;
    double value, back;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    sn_format_f64(value, text);
    assert_true(strlen(text) < 32);
    assert_true(sn_parse_f64(text, false, &back));
    memcpy(&back_bits, &back, sizeof back);
    assert_true(bits == back_bits);
    checked++;
  }
}

/* A locale with a decimal comma: an installed one, or one compiled here from the system's sources. */
static bool set_comma_locale(void) {
  static const char *const NAMES[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
  for (size_t i = 0; i < LENGTH(NAMES); i++) {
    if (setlocale(LC_ALL, NAMES[i]) != NULL) return true;
  }
  char command[512];
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1", folder_path, folder_path);
  if (system(command) != 0) return false;
  setenv("LOCPATH", folder_path, 1);
  return setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
}

static void test_locale(void **state) {
  if (!set_comma_locale()) {
    print_message("skipped: no locale with a decimal comma\n");
    skip();
  }
  char text[32];
  snprintf(text, sizeof text, "%.1f", 1.5);
  assert_string_equal(text, "1,5"); /* or the rest would test nothing */
  test_numbers(NULL);
  test_format(NULL);
  sn_string s = {0};
  assert_int_equal(sn_string_printf(&s, NULL, "%.1f", 1.5), SN_OK);
  assert_string_equal(s.data, "1.5");
  sn_string_free(&s);
  snprintf(text, sizeof text, "%.1f", 1.5);
  assert_string_equal(text, "1,5"); /* and the caller's locale is still there */
  setlocale(LC_ALL, "C");
}

static void test_string(void **state) {
  sn_string s = {0};
  for (int i = 0; i < 1000; i++) assert_int_equal(sn_string_printf(&s, NULL, "%d,", i), SN_OK);
  assert_int_equal(s.length, 10 * 2 + 90 * 3 + 900 * 4);
  assert_int_equal(strlen(s.data), s.length);
  sn_string_free(&s);
  assert_null(s.data);
  assert_int_equal(sn_string_append(&s, "ab\0cd", 5, NULL), SN_OK);
  assert_int_equal(sn_string_append(&s, "ef", -1, NULL), SN_OK);
  assert_int_equal(sn_string_append(&s, NULL, 0, NULL), SN_OK);
  assert_memory_equal(s.data, "ab\0cdef", 8);
  assert_int_equal(s.length, 7);
  sn_string_free(&s);
  char text[] = " \t trimmed \r\n";
  assert_string_equal(sn_trim(text), "trimmed");
  char blank[] = "  \r";
  assert_string_equal(sn_trim(blank), "");
  assert_true(sn_equal_nocase("EEG Fp1", "eeg fP1"));
  assert_false(sn_equal_nocase("Fp1", "Fp"));
  assert_false(sn_equal_nocase("", "x"));
  assert_false(sn_equal_nocase("[", "{")); /* letters only */
}

static void check_utf8(const char *bytes, int64_t n, const char *expected, bool latin1) {
  char *text;
  bool converted;
  assert_int_equal(sn_text_to_utf8(bytes, n, &text, &converted, NULL), SN_OK);
  assert_string_equal(text, expected);
  assert_int_equal(converted, latin1);
  sn_free(text);
}

static void test_encodings(void **state) {
  check_utf8("Gr\xC3\xB6\xC3\x9F" "e", 7, "Gr\xC3\xB6\xC3\x9F" "e", false);
  check_utf8("Gr\xF6\xDF" "e", 5, "Gr\xC3\xB6\xC3\x9F" "e", true);
  check_utf8("\xC2\xB5V", 3, "\xC2\xB5V", false);
  check_utf8("\xB5V", 2, "\xC2\xB5V", true);
  check_utf8("", 0, "", false);
  check_utf8("a\0b", 3, "a b", false);
  check_utf8("\xFF", 1, "\xC3\xBF", true);
  check_utf8("\xF0\x9F\x91\x8D", 4, "\xF0\x9F\x91\x8D", false);
  /* Not UTF-8: overlong, surrogate, above U+10FFFF, cut short, stray continuation. */
  static const char *const BAD[] = {"\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                                    "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE2\x82", "\x80", "\xC3"};
  for (size_t i = 0; i < LENGTH(BAD); i++) {
    char text[16];
    snprintf(text, sizeof text, "ab%s", BAD[i]);
    assert_int_equal(sn_utf8_error(text, (int64_t)strlen(text)), 2);
  }
  static const char *const GOOD[] = {"\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
                                     "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
  for (size_t i = 0; i < LENGTH(GOOD); i++) assert_int_equal(sn_utf8_error(GOOD[i], (int64_t)strlen(GOOD[i])), -1);
  for (int c = 0; c < 256; c++) { /* every single byte becomes valid UTF-8 */
    char byte = (char)c, *text;
    assert_int_equal(sn_text_to_utf8(&byte, 1, &text, NULL, NULL), SN_OK);
    assert_int_equal(sn_utf8_error(text, (int64_t)strlen(text)), -1);
    sn_free(text);
  }
}

static void test_distance(void **state) {
  assert_int_equal(sn_edit_distance("", ""), 0);
  assert_int_equal(sn_edit_distance("", "abc"), 3);
  assert_int_equal(sn_edit_distance("kitten", "sitting"), 3);
  assert_int_equal(sn_edit_distance("ab", "ba"), 1);
  assert_int_equal(sn_edit_distance("abcd", "acbd"), 1);
  assert_int_equal(sn_edit_distance("ca", "abc"), 3); /* the restricted distance; the unrestricted one is 2 */
  assert_int_equal(sn_edit_distance("xabxcdxxefxgx", "1ab2cd34ef5g6"), 6);
  static const char *const NAMES[] = {"learning_rate", "lr", "patch", "batch"};
  assert_string_equal(sn_nearest_name("learning_rat", NAMES, 4), "learning_rate");
  assert_string_equal(sn_nearest_name("LEARNING_RATE", NAMES, 4), "learning_rate");
  assert_string_equal(sn_nearest_name("match", NAMES, 4), "patch"); /* the first of equals */
  assert_null(sn_nearest_name("colour", NAMES, 4));
  assert_null(sn_nearest_name("x", NAMES, 0));
  char a[1000], b[1000];
  memset(a, 'a', sizeof a);
  memset(b, 'b', sizeof b);
  a[999] = b[900] = '\0';
  assert_int_equal(sn_edit_distance(a, b), 999);
}

static const char *write_table(const char *name, const char *content, int64_t n) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder_path, name);
  assert_int_equal(sn_write_file(path, content, n < 0 ? (int64_t)strlen(content) : n, NULL), SN_OK);
  return path;
}

static sn_table *load(const char *name, const char *content, bool has_header) {
  sn_table *t;
  sn_error err;
  sn_status status = sn_table_load(write_table(name, content, -1), 0, has_header, &t, &err);
  if (status != SN_OK) fail_msg("%s", err.message);
  return t;
}

static void check_cells(const sn_table *t, int64_t rows, int64_t columns, const char *const *cells) {
  assert_int_equal(t->n_rows, rows);
  assert_int_equal(t->n_columns, columns);
  for (int64_t i = 0; i < rows * columns; i++) assert_string_equal(t->cells[i], cells[i]);
}

static void test_table(void **state) {
  sn_table *t = load("a.csv", "\xEF\xBB\xBFid,\"a name\",x\r\n1,\"quoted, with \"\"marks\"\"\",\r\n\r\n2,\"two\nlines\",3\"4",
                     true);
  const char *const cells[] = {"1", "quoted, with \"marks\"", "", "2", "two\nlines", "3\"4"};
  check_cells(t, 2, 3, cells);
  assert_int_equal(sn_table_column(t, "id"), 0); /* the byte order mark is no part of it */
  assert_int_equal(sn_table_column(t, "a name"), 1);
  assert_int_equal(sn_table_column(t, "y"), -1);
  assert_int_equal(t->lines[0], 2);
  assert_int_equal(t->lines[1], 4);
  sn_table_destroy(t);
  t = load("a.tsv", "a,b\tc\n1,5\t2\n", true);
  const char *const tabbed[] = {"1,5", "2"};
  check_cells(t, 1, 2, tabbed);
  assert_string_equal(t->columns[0], "a,b");
  sn_table_destroy(t);
  t = load("n.csv", "1,2\n3,4\n\n", false);
  const char *const numbered[] = {"1", "2", "3", "4"};
  check_cells(t, 2, 2, numbered);
  assert_int_equal(sn_table_column(t, "2"), 1);
  sn_table_destroy(t);
  t = load("h.csv", "only,header", true);
  check_cells(t, 0, 2, NULL);
  sn_table_destroy(t);
  t = load("l.csv", "unit\n\xB5V\n", true); /* Latin-1 */
  assert_string_equal(t->cells[0], "\xC2\xB5V");
  sn_table_destroy(t);
  t = load("cr.csv", "a,b\r1,2\r3,4\r", true); /* CR alone ends lines when there is no LF */
  const char *const old_mac[] = {"1", "2", "3", "4"};
  check_cells(t, 2, 2, old_mac);
  assert_int_equal(t->lines[1], 3);
  sn_table_destroy(t);
  t = load("e.csv", "a,b\n\"\",\"x\"\r\n,", true);
  const char *const empty[] = {"", "x", "", ""};
  check_cells(t, 2, 2, empty);
  sn_table_destroy(t);
  assert_int_equal(sn_table_load(write_table("s.txt", "1,5;2,5", -1), ';', false, &t, NULL), SN_OK);
  const char *const semicolon[] = {"1,5", "2,5"};
  check_cells(t, 1, 2, semicolon);
  sn_table_destroy(t);
  sn_table_destroy(NULL);
}

static void test_bad_tables(void **state) {
  static const struct {
    const char *content;
    int64_t n, line;
    sn_status status;
  } BAD[] = {
      {"a,b\n1,2\n1,2,3\n", -1, 3, SN_E_CORRUPT}, {"a,b\n1\n", -1, 2, SN_E_CORRUPT},
      {"a,b\n1,\"2\n3,4\n", -1, 2, SN_E_CORRUPT}, {"a,b\n\"1\"x,2\n", -1, 2, SN_E_CORRUPT},
      {"a,b\n\"1\n\n\",2\n3\n", -1, 5, SN_E_CORRUPT}, {"", 0, -1, SN_E_CORRUPT}, {"\n\r\n", -1, -1, SN_E_CORRUPT},
      {"a,b\n1,\0\n", 8, -1, SN_E_FORMAT}, {"\xFF\xFE" "a\0,\0", 6, -1, SN_E_FORMAT},
  };
  for (size_t i = 0; i < LENGTH(BAD); i++) {
    sn_table *t;
    sn_error err;
    assert_int_equal(sn_table_load(write_table("bad.csv", BAD[i].content, BAD[i].n), 0, true, &t, &err), BAD[i].status);
    assert_int_equal(err.line, BAD[i].line);
    assert_non_null(strstr(err.message, "bad.csv"));
  }
  sn_table *t;
  assert_int_equal(sn_table_load("/nonexistent/t.csv", 0, true, &t, NULL), SN_E_IO);
  assert_int_equal(sn_table_load(folder_path, 0, true, &t, NULL), SN_E_IO);
}

/* Bytes exchanged, taken out and put in at random: a table or a stated error, never anything else. */
static void test_mutated_tables(void **state) {
  static const char SEED[] = "id,\"a, name\",x\r\n1,\"\"\"q\"\"\",2\n3,\xC3\xA9,\"two\nlines\"\n";
  static const char PIECES[] = "\",\n\r\t;a\xB5\xC3";
  int64_t whole = 0;
  for (uint64_t trial = 0; trial < 400; trial++) {
    char text[sizeof SEED + 8];
    int64_t n = sizeof SEED - 1;
    memcpy(text, SEED, sizeof SEED);
    sn_random r = sn_random_at(2, SN_PURPOSE_TEST, 0, trial);
    for (uint64_t k = 1 + sn_random_below(&r, 4); k > 0; k--) {
      int64_t at = (int64_t)sn_random_below(&r, (uint64_t)n);
      if (sn_random_below(&r, 3) == 0) memmove(text + at, text + at + 1, (size_t)(--n - at));
      else text[at] = PIECES[sn_random_below(&r, sizeof PIECES - 1)];
    }
    sn_table *t;
    sn_status status = sn_table_load(write_table("mutated.csv", text, n), 0, trial % 2, &t, NULL);
    if (status != SN_OK) {
      assert_int_equal(status, SN_E_CORRUPT);
      continue;
    }
    whole++;
    assert_true(t->n_columns >= 1);
    for (int64_t i = 0; i < t->n_rows * t->n_columns; i++) {
      int64_t length = (int64_t)strlen(t->cells[i]);
      assert_true(length <= 2 * n);
      assert_int_equal(sn_utf8_error(t->cells[i], length), -1);
    }
    sn_table_destroy(t);
  }
  assert_true(whole > 20 && whole < 380);
}

static void test_gzip_table(void **state) {
  char path[256];
  snprintf(path, sizeof path, "%s/t.tsv.gz", folder_path);
  gzFile f = gzopen(path, "wb");
  assert_int_equal(gzputs(f, "a\tb\n1\t2\n"), 8);
  assert_int_equal(gzclose(f), Z_OK);
  sn_table *t;
  assert_int_equal(sn_table_load(path, 0, true, &t, NULL), SN_OK);
  const char *const cells[] = {"1", "2"};
  check_cells(t, 1, 2, cells);
  sn_table_destroy(t);
}

static void test_allocation_failures(void **state) {
  const char *path = write_table("f.csv", "\xB5,b\n1,2\n3,4\n5,6\n7,8\n9,10\n", -1);
  for (int header = 0; header < 2; header++) {
    for (fault_begin(); fault_next();) {
      sn_table *t = NULL;
      sn_error err;
      sn_status status = sn_table_load(path, 0, header, &t, &err);
      fault_check(status);
      if (status == SN_OK) sn_table_destroy(t);
    }
  }
  sn_string s = {0};
  assert_int_equal(sn_string_append(&s, "kept", -1, NULL), SN_OK);
  fault_state.left = 1;
  assert_int_equal(sn_string_printf(&s, NULL, "%100d", 1), SN_E_MEMORY);
  assert_string_equal(s.data, "kept");
  sn_string_free(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_numbers),    cmocka_unit_test(test_integers), cmocka_unit_test(test_format),
      cmocka_unit_test(test_locale),     cmocka_unit_test(test_string),   cmocka_unit_test(test_encodings),
      cmocka_unit_test(test_distance),   cmocka_unit_test(test_table),    cmocka_unit_test(test_bad_tables),
      cmocka_unit_test(test_mutated_tables), cmocka_unit_test(test_gzip_table), cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
