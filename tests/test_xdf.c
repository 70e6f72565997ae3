/* needs: full */
/* XDF: streams, time stamps, clock offsets and resets, gaps, texts, damage; the example files of the format. */
#include <stdlib.h>

#include "alloc_fault.h"
#include "format_case.h"
#include "modalities/formats/xdf/xdf.h"

extern const sn_format sn_format_xdf;

/* ---- building files ---- */

typedef struct builder {
  uint8_t bytes[8192];
  int64_t n;
} builder;

static void put(builder *b, const void *data, size_t n) {
  memcpy(b->bytes + b->n, data, n);
  b->n += (int64_t)n;
}

static void put_chunk(builder *b, uint16_t tag, const builder *content) {
  uint32_t length = (uint32_t)content->n + 2;
  put(b, "\4", 1);
  put(b, &length, 4);
  put(b, &tag, 2);
  put(b, content->bytes, (size_t)content->n);
}

static void begin(builder *b) {
  b->n = 0;
  put(b, "XDF:", 4);
}

static void put_header(builder *b, uint32_t id, const char *format, int channels, const char *rate, const char *more) {
  builder c = {.n = 0};
  char xml[2048];
  put(&c, &id, 4);
  snprintf(xml, sizeof xml,
           "<?xml version=\"1.0\"?><info><name>stream %u</name><type>EEG</type><channel_count>%d</channel_count>"
           "<nominal_srate>%s</nominal_srate><channel_format>%s</channel_format>%s</info>",
           id, channels, rate, format, more);
  put(&c, xml, strlen(xml));
  put_chunk(b, 2, &c);
}

/* One sample; stamp NaN: none. */
static void put_sample(builder *b, uint32_t id, double stamp, const void *data, size_t n) {
  builder c = {.n = 0};
  put(&c, &id, 4);
  put(&c, "\1\1", 2);
  if (isnan(stamp)) {
    put(&c, "\0", 1);
  } else {
    put(&c, "\10", 1);
    put(&c, &stamp, 8);
  }
  put(&c, data, n);
  put_chunk(b, 3, &c);
}

static void put_text(builder *b, uint32_t id, double stamp, const char *text) {
  char data[64];
  data[0] = 1;
  data[1] = (char)strlen(text);
  memcpy(data + 2, text, strlen(text));
  put_sample(b, id, stamp, data, 2 + strlen(text));
}

static void put_offset(builder *b, uint32_t id, double time, double offset) {
  builder c = {.n = 0};
  put(&c, &id, 4);
  put(&c, &time, 8);
  put(&c, &offset, 8);
  put_chunk(b, 4, &c);
}

static void put_floats(builder *b, uint32_t id, double first, double step, int n) {
  for (int i = 0; i < n; i++) {
    float value = (float)i;
    put_sample(b, id, first + step * i, &value, 4);
  }
}

static format_case opened(const builder *b, bool tolerant) {
  format_case c = {0};
  case_file(&c, "r.xdf", b->bytes, b->n);
  case_open(&c, &sn_format_xdf, tolerant);
  return c;
}

#define CHANNELS                                                                                 \
  "<desc><channels><channel><label>Fp1</label><unit>microvolts</unit><type>EEG</type></channel>" \
  "<channel><label>a&amp;b</label><unit>mV</unit><type>ECG</type></channel></channels></desc>"

/* ---- tests ---- */

static void channels_and_values(void **state) {
  builder b;
  const int16_t rows[3][2] = {{1, 5}, {-2, 6}, {3, 7}};
  const double fp1[3] = {1, -2, 3}, ecg[3] = {5, 6, 7};
  begin(&b);
  put_header(&b, 9, "int16", 2, "10", CHANNELS);
  put_sample(&b, 9, 100, rows[0], 4);
  put_sample(&b, 9, NAN, rows[1], 4); /* implied: 100.1 */
  put_sample(&b, 9, 100.2, rows[2], 4);
  format_case c = opened(&b, false);
  case_must(&c);
  assert_int_equal(c.recording->rate_num, 10);
  assert_int_equal(c.recording->n_segments, 1);
  case_values(&c, 0, 0, 0, 3, fp1);
  case_values(&c, 1, 0, 0, 3, ecg);
  assert_string_equal(c.recording->channels[0].raw_unit, "microvolts");
  assert_string_equal(c.recording->channels[0].unit, "uV");
  assert_false(c.recording->channels[0].unit_assumed);
  assert_string_equal(c.recording->channels[1].raw_name, "a&b");
  assert_int_equal(c.recording->channels[1].kind, SN_SENSOR_ECG);
  assert_string_equal(c.recording->channels[1].unit, "mV");
  case_close(&c);
}

/* Time that stands still or goes back is said. */
static void odd_stamps(void **state) {
  static const struct {
    double step;
    const char *code;
  } rows[] = {{0.1, NULL}, {0, "effective_rate"}, {-0.01, "stamps_backwards"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    builder b;
    begin(&b);
    put_header(&b, 1, "float32", 1, "10", "<desc><channels><channel><label>Fp1</label><unit>uV</unit></channel></channels></desc>");
    put_floats(&b, 1, 100, rows[i].step, 5);
    format_case c = opened(&b, false);
    case_must(&c);
    assert_int_equal(case_warning(&c, "effective_rate") != NULL, i > 0);
    if (rows[i].code != NULL) assert_non_null(case_warning(&c, rows[i].code));
    assert_int_equal(case_warning(&c, "stamps_backwards") != NULL, i == 2);
    case_close(&c);
  }
}

static void unit_unknown(void **state) {
  builder b;
  double value;
  begin(&b);
  put_header(&b, 1, "float32", 1, "10", "");
  put_floats(&b, 1, 0, 0.1, 3);
  format_case c = opened(&b, false);
  case_must(&c);
  assert_string_equal(c.recording->channels[0].unit, "");
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  case_close(&c);
}

static void the_biggest_stream_and_the_rest(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 1, "4", "");
  put_header(&b, 2, "float32", 1, "8", "");
  put_floats(&b, 1, 0, 0.25, 3);
  put_floats(&b, 2, 0, 0.125, 6);
  format_case c = opened(&b, false);
  case_must(&c);
  assert_int_equal(c.recording->rate_num, 8);
  assert_int_equal(c.recording->segments[0].n_frames, 6);
  assert_string_equal(case_warning(&c, "stream_left_out")->where, "stream 1");
  case_close(&c);
}

/* Fault 2: a gap is a gap, and texts in it and behind it stay where they were. */
static void gaps_and_texts(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 1, "10", "");
  put_header(&b, 2, "string", 1, "0", "");
  put_floats(&b, 1, 50, 0.1, 20);
  put_floats(&b, 1, 55, 0.1, 10);
  put_text(&b, 2, 49, "before");
  put_text(&b, 2, 50.52,
           "Gr\xF6\xDF"
           "e"); /* Latin-1 */
  put_text(&b, 2, 53, "in the gap");
  put_text(&b, 2, 55.5, "behind");
  put_text(&b, 2, 99, "after");
  format_case c = opened(&b, false);
  case_must(&c);
  assert_int_equal(c.recording->n_segments, 2);
  assert_int_equal(c.recording->segments[0].n_frames, 20);
  assert_int_equal(c.recording->segments[1].start_frame, 50);
  sn_annotations *list = case_annotations(&c);
  assert_int_equal(list->n, 3);
  assert_string_equal(list->items[0].text,
                      "Gr\xC3\xB6\xC3\x9F"
                      "e");
  assert_string_equal(list->items[0].code, "stream 2");
  assert_int_equal(list->items[0].sample, 5);
  assert_true(fabs(list->items[0].onset_s - 0.52) < 1e-9);
  assert_int_equal(list->items[1].sample, 30);
  assert_int_equal(list->items[2].sample, 55);
  assert_int_equal(case_warning(&c, "annotation_beyond_end")->count, 2);
  sn_annotations_destroy(list);
  case_close(&c);
}

/* Two clocks: the text's is 100 s behind, and drifts by 1 ms a second; the recorder's is that of the numbers. */
static void clocks(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 1, "10", "");
  put_header(&b, 2, "string", 1, "0", "");
  put_floats(&b, 1, 200, 0.1, 100);
  for (int i = 0; i < 10; i++) put_offset(&b, 2, 100 + i, 100 + 0.001 * i);
  put_text(&b, 2, 105, "x"); /* 205.005 */
  format_case c = opened(&b, false);
  case_must(&c);
  sn_annotations *list = case_annotations(&c);
  assert_int_equal(list->n, 1);
  assert_true(fabs(list->items[0].onset_s - 5.005) < 1e-9);
  assert_int_equal(list->items[0].sample, 50);
  sn_annotations_destroy(list);
  case_close(&c);
}

/* The sender restarted: stamps go back, and so do measurement times; on the recorder's clock time goes on. */
static void clock_reset(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 1, "10", "");
  for (int i = 0; i < 5; i++) put_offset(&b, 1, 1000 + i, -900);
  put_floats(&b, 1, 1000, 0.1, 20);
  for (int i = 0; i < 5; i++) put_offset(&b, 1, 5 + i, 99);
  put_floats(&b, 1, 5, 0.1, 20);
  format_case c = opened(&b, false);
  case_must(&c);
  assert_int_equal(c.recording->n_segments, 2); /* 100.0 to 101.9, then from 104.0 */
  assert_int_equal(c.recording->segments[1].start_frame, 40);
  assert_null(case_warning(&c, "segment_time"));
  case_close(&c);
}

static void damage(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 1, "10", CHANNELS);
  put_floats(&b, 1, 0, 0.1, 3);
  const int64_t whole = b.n;
  put_floats(&b, 1, 0.3, 0.1, 1);
  b.n -= 2;
  format_case c = opened(&b, false);
  assert_int_equal(c.err.offset, whole);
  case_must_fail(&c, SN_E_CORRUPT, "passes the end");
  c = opened(&b, true);
  case_must(&c);
  assert_int_equal(c.recording->segments[0].n_frames, 3);
  assert_non_null(case_warning(&c, "truncated"));
  case_close(&c);
  static const struct {
    const char *format, *rate, *more, *word;
    int channels;
  } rows[] = {{"float32", "10", "<desc>", "malformed", 1}, {"float16", "10", "", "channel_format", 1},
              {"float32", "-1", "", "nominal_srate", 1},   {"float32", "x", "", "nominal_srate", 1},
              {"float32", "10", "", "channel_count", 0},   {"float32", "0", "", "no numeric stream", 1}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    begin(&b);
    put_header(&b, 1, rows[i].format, rows[i].channels, rows[i].rate, rows[i].more);
    put_floats(&b, 1, 0, 0.1, 3);
    c = opened(&b, false);
    case_must_fail(&c, SN_E_CORRUPT, rows[i].word);
  }
  begin(&b);
  put_floats(&b, 1, 0, 0.1, 3);
  c = opened(&b, false);
  case_must_fail(&c, SN_E_CORRUPT, "without a header");
  c = (format_case){0};
  case_text(&c, "r.xdf", "nothing");
  case_open(&c, &sn_format_xdf, false);
  case_must_fail(&c, SN_E_FORMAT, "XDF:");
}

static void truncated_anywhere(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 1, "10", CHANNELS);
  put_header(&b, 2, "string", 1, "0", "");
  put_offset(&b, 1, 0, 1);
  put_floats(&b, 1, 0, 0.1, 3);
  put_text(&b, 2, 0, "x");
  format_case c = {0};
  case_file(&c, "r.xdf", b.bytes, b.n);
  case_truncate(&c, &sn_format_xdf, 0);
}

static void failing_allocations(void **state) {
  builder b;
  begin(&b);
  put_header(&b, 1, "float32", 2, "10", CHANNELS);
  put_header(&b, 2, "string", 1, "0", "");
  put_offset(&b, 1, 0, 1);
  for (int i = 0; i < 3; i++) put_sample(&b, 1, 0.1 * i, "12345678", 8);
  put_text(&b, 2, 1.1, "x");
  for (fault_begin(); fault_next();) {
    format_case c = opened(&b, false);
    fault_check(c.status);
    case_close(&c);
  }
}

/* ---- the example files ---- */

static sn_recording *must_open(const char *name) {
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  const sn_open_options options = {.assume_unit = "uV"};
  if (getenv("SONDE_DATA") == NULL) skip();
  snprintf(path, sizeof path, "%s/eeg/xdf/%s", getenv("SONDE_DATA"), name);
  if (sn_recording_open(path, &options, &r, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
  return r;
}

static void the_minimal_example(void **state) {
  sn_recording *r = must_open("minimal.xdf");
  static const double first[3] = {192, 255, 238}, last[3] = {15, 25, 35};
  sn_annotations *list;
  assert_int_equal(r->n_channels, 3);
  assert_int_equal(r->rate_num, 10);
  assert_int_equal(r->n_segments, 1);
  assert_int_equal(r->segments[0].n_frames, 9);
  for (int64_t c = 0; c < 3; c++) {
    double values[9];
    assert_int_equal(sn_recording_read(r, c, 0, 0, 9, values, NULL), SN_OK);
    assert_true(values[0] == first[c] && values[8] == last[c]);
  }
  /* The numbers' clock is put back by 0.1 s, the texts' has no offsets: "Hello" at 5.2 s is 0.2 s behind the first
   * sample at 5.0. */
  assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
  assert_string_equal(list->items[1].text, "Hello");
  assert_true(fabs(list->items[1].onset_s - 0.2) < 1e-9);
  assert_int_equal(list->items[1].sample, 2);
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
}

static void the_example_of_clock_resets(void **state) {
  sn_recording *r = must_open("clock_resets.xdf");
  sn_annotations *list;
  assert_int_equal(r->n_channels, 8);
  assert_int_equal(r->n_segments, 2); /* the stamps jump back behind sample 12875 */
  assert_int_equal(r->segments[0].n_frames, 12876);
  assert_int_equal(r->segments[1].n_frames, 27815 - 12876);
  /* By the two lines of the offsets: 653150.379117 - 652340.284 and about 100.76 + 1121.17. */
  assert_true(fabs(r->segments[1].start_s - 411.69) < 0.02);
  assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
  assert_int_equal(list->n, 175);
  for (int64_t i = 0; i < list->n; i++) {
    const sn_annotation *a = &list->items[i];
    assert_true(a->sample >= 0 && a->onset_s >= 0);
  }
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
}

static void collect(void *context, const char *path, const char *text) {
  char *all = context;
  snprintf(all + strlen(all), 512 - strlen(all), "%s=%s;", path, text);
}

static void xml(void **state) {
  char all[512] = "";
  static const char good[] = "<?xml version=\"1.0\"?><!-- c --><a x=\"1\"><b>1 &lt; 2 &#233;</b><c/></a>";
  assert_true(sn_xdf_walk_xml(good, sizeof good - 1, collect, all));
  assert_string_equal(all, "a/b=1 < 2 \xC3\xA9;a/c=;a=;");
  static const char *const bad[5] = {"<a>", "</a>", "<a></a", "<", "<a><b></a></b></c>"};
  for (int i = 0; i < 5; i++) assert_false(sn_xdf_walk_xml(bad[i], (int64_t)strlen(bad[i]), collect, (char[512]){0}));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(channels_and_values),
      cmocka_unit_test(odd_stamps), cmocka_unit_test(unit_unknown),
      cmocka_unit_test(the_biggest_stream_and_the_rest),
      cmocka_unit_test(gaps_and_texts),
      cmocka_unit_test(clocks),
      cmocka_unit_test(clock_reset),
      cmocka_unit_test(damage),
      cmocka_unit_test(truncated_anywhere),
      cmocka_unit_test(failing_allocations),
      cmocka_unit_test(the_minimal_example),
      cmocka_unit_test(the_example_of_clock_resets),
      cmocka_unit_test(xml),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
