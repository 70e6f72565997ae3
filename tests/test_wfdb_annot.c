/* needs: full */
/* WFDB annotations: bytes by hand, damage, the tools' listings, round trips of real files. */
#include "wfdb_case.h"

#include <math.h>
#include <stdlib.h>

#include "alloc_fault.h"
#include "core/text.h"
#include "modalities/formats/wfdb/wfdb.h"

static sn_annotations *must_decode(const void *bytes, int64_t n, bool tolerant, sn_wfdb_annotation_style *style) {
  sn_annotations *list = NULL;
  sn_error err;
  if (sn_wfdb_annotations_decode(bytes, n, "x.atr", 100, tolerant, &list, style, &err) != SN_OK) fail_msg("%s", err.message);
  return list;
}

static void every_kind_of_word(void **state) {
  static const uint8_t bytes[] = {
      0x05, 0x04,                                     /* N at 5 */
      0xFE, 0xF4, 0x03, 0xF8, 0xFF, 0xF0,             /* SUB -2, CHN 3, NUM -1 */
      0x03, 0xFC, 'a', 0xE9, 'b', 0,                  /* AUX of three bytes, padded, Latin-1 */
      0x00, 0xEC, 0x01, 0x00, 0x02, 0x00,             /* SKIP 0x00010002: the high half first */
      0x0A, 0x14,                                     /* V, 10 more; CHN and NUM persist, SUB does not */
      0x01, 0x00,                                     /* code 0: time alone */
      0x01, 0xC8,                                     /* code 50: no mark of its own */
      0x00, 0xEC, 0xFF, 0xFF, 0xF6, 0xFF,             /* SKIP -10: back in time */
      0x00, 0x58,                                     /* a note */
      0x00, 0x00,
  };
  sn_annotations *list = must_decode(bytes, sizeof bytes, false, NULL);
  assert_int_equal(list->n, 4);
  const sn_annotation *a = list->items;
  assert_true(a[0].sample == 5 && a[0].subtype == -2 && a[0].channel == 3 && a[0].number == -1 && a[0].onset_s == 0.05);
  assert_string_equal(a[0].text, "a\xC3\xA9" "b");
  assert_string_equal(a[0].code, "N");
  assert_true(isnan(a[0].duration_s));
  assert_string_equal(a[1].code, "\""); /* in time order */
  assert_int_equal(a[1].sample, 5 + 65538 + 10 + 2 - 10);
  assert_string_equal(a[2].code, "V");
  assert_true(a[2].sample == 5 + 65538 + 10 && a[2].channel == 3 && a[2].number == -1 && a[2].subtype == 0);
  assert_string_equal(a[3].code, "[50]");
  assert_int_equal(a[3].sample, 5 + 65538 + 12);
  assert_int_equal(list->n_warnings, 0);
  sn_annotations_destroy(list);
}

static void put_note(sn_string *s, const char *text) {
  size_t n = strlen(text);
  const char head[4] = {0x00, 0x58, (char)n, (char)0xFC};
  assert_int_equal(sn_string_append(s, head, 4, NULL), SN_OK);
  assert_int_equal(sn_string_append(s, text, (int64_t)n + (int64_t)(n & 1), NULL), SN_OK);
}

static void time_resolution_and_definitions(void **state) {
  sn_string s = {0};
  put_note(&s, "## time resolution: 500");
  put_note(&s, "## annotation type definitions");
  put_note(&s, "15 c calibration");
  put_note(&s, "50 spike a spike");
  put_note(&s, "## end of definitions");
  put_note(&s, "a note of the recording");
  static const char rest[] = {0x32, 0x3C, 0x32, (char)0xC8, 0x00, 0x00}; /* codes 15 and 50, 50 ticks each */
  assert_int_equal(sn_string_append(&s, rest, 6, NULL), SN_OK);
  sn_wfdb_annotation_style style;
  sn_annotations *list = must_decode(s.data, s.length, false, &style);
  assert_true(style.time_resolution == 500 && list->rate == 500);
  assert_int_equal(list->n, 3);
  assert_string_equal(list->items[0].text, "a note of the recording");
  assert_string_equal(list->items[1].code, "c");
  assert_true(list->items[1].sample == 50 && list->items[1].onset_s == 0.1);
  assert_string_equal(list->items[2].code, "spike");
  sn_annotations_destroy(list);
  sn_string_free(&s);
}

static void cut_at_every_byte(void **state) {
  static const uint8_t bytes[] = {0x05, 0x04, 0x03, 0xFC, 'a', 'b', 'c', 0, 0x00, 0xEC, 0x01, 0x00, 0x02, 0x00, 0x0A, 0x14, 0x00, 0x00};
  for (size_t n = 0; n < sizeof bytes; n++) {
    uint8_t *copy = malloc(n + 1);
    sn_annotations *list = NULL;
    sn_error err;
    memcpy(copy, bytes, n);
    copy = realloc(copy, n > 0 ? n : 1);
    assert_int_equal(sn_wfdb_annotations_decode(copy, (int64_t)n, "x.atr", 100, false, &list, NULL, &err), SN_E_CORRUPT);
    assert_true(strstr(err.message, "x.atr") != NULL && err.offset >= 0);
    list = must_decode(copy, (int64_t)n, true, NULL);
    assert_int_equal(list->n_warnings, 1);
    assert_int_equal(list->n, n < 2 ? 0 : n < 4 ? 1 : n < 8 ? 0 : n < 16 ? 1 : 2); /* whole ones; half of one is none */
    sn_annotations_destroy(list);
    free(copy);
  }
  static const uint8_t before_zero[] = {0x00, 0xEC, 0xFF, 0xFF, 0xF6, 0xFF, 0x05, 0x04, 0x00, 0x00};
  static const uint8_t no_owner[] = {0x05, 0xF0, 0x00, 0x00};
  sn_annotations *list = NULL;
  assert_int_equal(sn_wfdb_annotations_decode(before_zero, sizeof before_zero, "x", 100, false, &list, NULL, NULL), SN_E_CORRUPT);
  assert_int_equal(sn_wfdb_annotations_decode(no_owner, sizeof no_owner, "x", 100, false, &list, NULL, NULL), SN_E_CORRUPT);
}

static void every_allocation_fails(void **state) {
  static const uint8_t bytes[] = {0x05, 0x04, 0x03, 0xFC, 'a', 'b', 'c', 0, 0x07, 0x08, 0x00, 0x00, 0x55};
  for (fault_begin(); fault_next();) {
    sn_annotations *list = NULL;
    sn_error err;
    sn_status status = sn_wfdb_annotations_decode(bytes, sizeof bytes, "x", 100, true, &list, NULL, &err);
    fault_check(status);
    if (status == SN_OK) assert_int_equal(list->n_warnings, 1);
    sn_annotations_destroy(list);
  }
}

static void what_cannot_be_written(void **state) {
  static char long_text[300];
  memset(long_text, 'x', 255);
  const sn_annotation good = {.sample = 5, .code = "N"};
  sn_annotation bad[8];
  for (int i = 0; i < 8; i++) bad[i] = good;
  strcpy(bad[0].code, "Nn");
  bad[1].sample = -1;
  bad[2].subtype = 128;
  bad[3].number = -129;
  bad[4].channel = -1;
  bad[5].channel = 256;
  bad[6].text = long_text;
  strcpy(bad[7].code, "[59]");
  for (int i = 0; i < 8; i++) {
    sn_string s = {0};
    const sn_annotations list = {.n = 1, .items = &bad[i]};
    assert_int_equal(sn_wfdb_annotations_encode(&list, NULL, &s, NULL), SN_E_ARGUMENT);
    sn_string_free(&s);
  }
  sn_annotation two[2] = {good, good};
  two[1].sample = 4;
  const sn_annotations backward = {.n = 2, .items = two};
  sn_string s = {0};
  assert_int_equal(sn_wfdb_annotations_encode(&backward, NULL, &s, NULL), SN_E_ARGUMENT);
  sn_string_free(&s);
}

static void written_and_read_again(void **state) {
  sn_annotation items[] = {
      {.sample = 0, .code = "\"", .text = (char *)(uintptr_t)"star"},
      {.sample = 7, .code = "+", .text = (char *)(uintptr_t)"(AFIB"},
      {.sample = 1030, .code = "N", .subtype = -3, .channel = 2, .number = 4},
      {.sample = 1031, .code = "[50]", .channel = 2, .number = 4},
      {.sample = (int64_t)5 << 31, .code = "V", .channel = 0, .number = -128},
  };
  const sn_annotations list = {.n = 5, .items = items};
  for (int k = 0; k < 4; k++) {
    const sn_wfdb_annotation_style style = {k & 1 ? 1000 : 0, (k & 2) != 0};
    sn_wfdb_annotation_style found;
    sn_string s = {0};
    assert_int_equal(sn_wfdb_annotations_encode(&list, &style, &s, NULL), SN_OK);
    sn_annotations *back = must_decode(s.data, s.length, false, &found);
    assert_true(found.time_resolution == style.time_resolution && found.text_counts_zero == style.text_counts_zero);
    assert_int_equal(back->n, 5);
    for (int i = 0; i < 5; i++) {
      const sn_annotation *a = &back->items[i];
      assert_true(a->sample == items[i].sample && a->subtype == items[i].subtype && a->channel == items[i].channel &&
                  a->number == items[i].number && strcmp(a->code, items[i].code) == 0);
      assert_true(items[i].text == NULL ? a->text == NULL : strcmp(items[i].text, a->text) == 0);
    }
    sn_annotations_destroy(back);
    sn_string_free(&s);
  }
}

/* ---- real files ---- */

static char *must_read(const char *name, int64_t *n) {
  char path[1024];
  sn_stream *stream;
  char *bytes;
  sn_error err;
  snprintf(path, sizeof path, "%s/ecg/%s", getenv("SONDE_DATA"), name);
  if (sn_stream_open(path, &stream, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_stream_read_all(stream, 1 << 24, &bytes, n, NULL), SN_OK);
  sn_stream_close(stream);
  return bytes;
}

/* rdann's lines: time, sample, mark, subtype, channel, number, text. Only the first `seconds` were listed of some. */
static void compare_listing(const char *file, const char *listing, double rate, int64_t expected_rows) {
  int64_t n, rows = 0;
  char *bytes = must_read(file, &n);
  sn_annotations *list = NULL;
  assert_int_equal(sn_wfdb_annotations_decode(bytes, n, file, rate, false, &list, NULL, NULL), SN_OK);
  sn_free(bytes);
  char *text = must_read(listing, &n);
  for (char *line = text, *next; line != NULL && *line != '\0'; line = next, rows++) {
    long sample;
    char mark[16];
    int subtype, channel, number, used = 0;
    next = strchr(line, '\n');
    if (next != NULL) *next++ = '\0';
    assert_int_equal(sscanf(line, " %*s %ld %15s %d %d %d%n", &sample, mark, &subtype, &channel, &number, &used), 5);
    assert_true(rows < list->n);
    const sn_annotation *a = &list->items[rows];
    const char *aux = line + used;
    if (*aux == '\t') aux++;
    assert_true(a->sample == sample && a->subtype == subtype && a->channel == channel && a->number == number);
    assert_string_equal(a->code, mark);
    assert_string_equal(a->text != NULL ? a->text : "", aux);
  }
  assert_int_equal(rows, expected_rows);
  sn_free(text);
  sn_annotations_destroy(list);
}

static void listings_of_rdann(void **state) {
  if (getenv("SONDE_DATA") == NULL) skip();
  compare_listing("wfdb_formats/100.atr", "wfdb_formats/expected/ann-1", 360, 2274);
  compare_listing("wfdb_formats/1003.atr", "wfdb_formats/expected/ann-3", 360, 957);
}

/* Two files of the 52 count the closing zero of some texts and not of others; these come back as the same annotations. */
static bool mixes_text_styles(const char *name) {
  return strstr(name, "/201.atr") != NULL || strstr(name, "/217.atr") != NULL;
}

static void same_bytes_again(void **state) {
  static const char *const others[] = {"wfdb_formats/100.atr", "wfdb_formats/03700181.gqrsh", "wfdb_formats/03700181.sqrs",
                                       "wfdb_formats/12726.wabp"};
  static const int records[48] = {100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 111, 112, 113, 114, 115, 116,
                                  117, 118, 119, 121, 122, 123, 124, 200, 201, 202, 203, 205, 207, 208, 209, 210,
                                  212, 213, 214, 215, 217, 219, 220, 221, 222, 223, 228, 230, 231, 232, 233, 234};
  if (getenv("SONDE_DATA") == NULL) skip();
  for (int i = 0; i < 52; i++) {
    char name[100];
    int64_t n;
    sn_string s = {0};
    sn_annotations *list = NULL;
    sn_wfdb_annotation_style style;
    sn_error err;
    if (i < 4) snprintf(name, sizeof name, "%s", others[i]);
    else snprintf(name, sizeof name, "mitbih_arrhythmia_5min/%d.atr", records[i - 4]);
    char *bytes = must_read(name, &n);
    if (sn_wfdb_annotations_decode(bytes, n, name, 360, false, &list, &style, &err) != SN_OK) fail_msg("%s", err.message);
    assert_true(list->n > 0);
    if (sn_wfdb_annotations_encode(list, &style, &s, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
    if (mixes_text_styles(name)) {
      sn_annotations *back = must_decode(s.data, s.length, false, NULL);
      assert_int_equal(back->n, list->n);
      for (int64_t k = 0; k < back->n; k++) {
        assert_true(back->items[k].sample == list->items[k].sample);
        assert_string_equal(back->items[k].code, list->items[k].code);
        assert_true(list->items[k].text == NULL || strcmp(back->items[k].text, list->items[k].text) == 0);
      }
      sn_annotations_destroy(back);
    } else if (s.length != n || memcmp(s.data, bytes, (size_t)n) != 0) {
      int64_t k = 0;
      while (k < n && k < s.length && s.data[k] == bytes[k]) k++;
      fail_msg("%s: %lld bytes, %lld written, first difference at %lld", name, (long long)n, (long long)s.length, (long long)k);
    }
    sn_string_free(&s);
    sn_annotations_destroy(list);
    sn_free(bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_kind_of_word),      cmocka_unit_test(time_resolution_and_definitions),
      cmocka_unit_test(cut_at_every_byte),       cmocka_unit_test(every_allocation_fails),
      cmocka_unit_test(what_cannot_be_written),  cmocka_unit_test(written_and_read_again),
      cmocka_unit_test(listings_of_rdann),       cmocka_unit_test(same_bytes_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
