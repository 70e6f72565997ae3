/* needs: full */
/* FIF files made by hand: storage, gaps, parts, and damage of every kind. */
#include "fif_case.h"

#include "reader_case.h"

static fif_bytes one, two;

static format_case opened(bool tolerant) {
  format_case c = {0};
  case_file(&c, "x_raw.fif", one.at, one.n);
  case_open(&c, &sn_format_fif, tolerant);
  return c;
}

static void expect_segments(const format_case *c, int64_t n, const int64_t (*expected)[2]) {
  case_must(c);
  assert_int_equal(c->recording->n_segments, n);
  for (int64_t i = 0; i < n; i++) {
    assert_int_equal(c->recording->segments[i].start_frame, expected[i][0]);
    assert_int_equal(c->recording->segments[i].n_frames, expected[i][1]);
    assert_true(c->recording->segments[i].start_s == (double)expected[i][0] / 100);
  }
}

static const char *note(const format_case *c, const char *name) {
  for (int64_t i = 0; i < c->recording->n_notes; i++)
    if (strcmp(c->recording->notes[i].name, name) == 0) return c->recording->notes[i].value;
  return "";
}

/* range * cal and the unit: T to fT, T/m to fT/cm; coils in the device frame, as there is no transform. */
static void values_and_places(void **state) {
  put_header(&one);
  put_block(&one, 102);
  put_buffer(&one, 5, 4);
  put_close(&one);
  format_case c = opened(false);
  case_must(&c);
  const sn_channel *mag = &c.recording->channels[0], *planar = &c.recording->channels[1], *trigger = &c.recording->channels[2];
  const double factor = 2 * (double)1e-15f * 1e15, expected[4] = {5 * factor, 6 * factor, 7 * factor, 8 * factor};
  case_values(&c, 0, 0, 0, 4, expected);
  assert_true(mag->kind == SN_SENSOR_MEG_MAG && planar->kind == SN_SENSOR_MEG_GRAD && trigger->kind == SN_SENSOR_TRIGGER);
  assert_string_equal(mag->unit, "fT");
  assert_string_equal(planar->unit, "fT/cm");
  assert_string_equal(trigger->unit, "");
  assert_true(mag->frame == SN_FRAME_DEVICE && mag->has_position && !trigger->has_position);
  assert_true(mag->orientation[2] == 1 && planar->orientation[0] == 1); /* ez, ex */
  sn_annotations *list = case_annotations(&c); /* 2, 0, 1, 2: the first is no event */
  assert_int_equal(list->n, 2);
  assert_true(list->items[0].sample == 2 && strcmp(list->items[0].code, "1") == 0 && list->items[0].channel == 2);
  assert_true(list->items[1].sample == 3 && strcmp(list->items[1].code, "2") == 0);
  assert_string_equal(list->warnings[0].code, "event_short");
  sn_annotations_destroy(list);
  case_close(&c);
}

static void skips_are_gaps(void **state) {
  put_header(&one);
  put_block(&one, 102);
  put_int_tag(&one, 208, 50);
  put_int_tag(&one, 301, 2); /* two buffers of 4 before the first */
  put_buffer(&one, 0, 4);
  put_buffer(&one, 4, 4);
  put_int_tag(&one, 301, 3); /* 3 buffers of 2 */
  put_buffer(&one, 8, 2);
  put_int_tag(&one, 303, 7); /* 7 samples */
  put_buffer(&one, 10, 1);
  put_close(&one);
  format_case c = opened(false);
  static const int64_t expected[3][2] = {{0, 8}, {14, 2}, {23, 1}};
  expect_segments(&c, 3, expected);
  assert_string_equal(note(&c, "first_sample"), "58");
  const double v[3] = {3, 4, 5}; /* over the join of two buffers */
  for (int i = 0; i < 3; i++) {
    int32_t stored;
    assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 3 + i, 1, &stored, NULL), SN_OK);
    assert_true(stored == v[i]);
  }
  case_close(&c);
  put_header(&one);
  put_block(&one, 102);
  put_buffer(&one, 0, 1);
  put_int_tag(&one, 301, -1);
  put_buffer(&one, 0, 1);
  put_close(&one);
  c = opened(false);
  case_must_fail(&c, SN_E_CORRUPT, "skip of -1");
}

/* float32 (with a number that is not finite), float64, int32 and packed buffers, after each other. */
static void every_storage(void **state) {
  put_header(&one);
  put_block(&one, 102);
  put_tag(&one, 300, 4, 12, 0);
  for (int i = 0; i < 3; i++) put_f32(&one, i == 1 ? INFINITY : 1.5f);
  put_tag(&one, 300, 5, 24, 0);
  for (int i = 0; i < 3; i++) {
    put_i32(&one, 0x40040000); /* 2.5 */
    put_i32(&one, 0);
  }
  put_tag(&one, 300, 3, 12, 0);
  for (int i = 0; i < 3; i++) put_i32(&one, -70000);
  put_tag(&one, 300, 23, 14, 0);
  put_f32(&one, 100);
  put_f32(&one, 0.5f);
  for (int i = 0; i < 3; i++) put_i16(&one, 9);
  put_close(&one);
  format_case c = opened(false);
  case_must(&c);
  const double k = 2 * (double)1e-15f * 1e15, expected[4] = {1.5 * k, 2.5 * k, -70000 * k, 104.5 * k};
  case_values(&c, 0, 0, 0, 4, expected);
  double value;
  assert_int_equal(sn_recording_read(c.recording, 1, 0, 0, 1, &value, NULL), SN_OK);
  assert_true(isnan(value));
  int32_t stored;
  assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 0, 1, &stored, NULL), SN_E_UNSUPPORTED);
  assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 2, 1, &stored, NULL), SN_OK);
  assert_int_equal(stored, -70000);
  assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 3, 1, &stored, NULL), SN_E_UNSUPPORTED);
  case_close(&c);
}

static void two_parts(int32_t first_of_second, const char *next_name) {
  put_header(&one);
  put_block(&one, 102);
  put_int_tag(&one, 208, 10);
  put_buffer(&one, 0, 4);
  put_reference(&one, 2, next_name);
  put_close(&one);
  put_header(&two);
  put_reference(&two, 1, "x_raw.fif");
  put_block(&two, 102);
  put_int_tag(&two, 208, first_of_second);
  put_buffer(&two, 4, 3);
  put_close(&two);
}

static format_case open_parts(const char *name, bool tolerant) {
  format_case c = {0};
  case_file(&c, "x_raw.fif", one.at, one.n);
  case_file(&c, "x_raw-1.fif", two.at, two.n);
  case_open_as(&c, &sn_format_fif, name, tolerant);
  return c;
}

static void parts(void **state) {
  static const int64_t joined[1][2] = {{0, 7}}, apart[2][2] = {{0, 4}, {9, 3}};
  two_parts(14, "x_raw-1.fif");
  static const char *const NAMES[2] = {"x_raw.fif", "x_raw-1.fif"};
  for (int i = 0; i < 2; i++) { /* from either of them */
    format_case c = open_parts(NAMES[i], false);
    expect_segments(&c, 1, joined);
    assert_int_equal(c.recording->n_files, 2);
    assert_string_equal(c.recording->files[0], "x_raw.fif");
    int32_t stored;
    assert_int_equal(sn_recording_read_stored(c.recording, 1, 0, 6, 1, &stored, NULL), SN_OK);
    assert_int_equal(stored, 60);
    case_close(&c);
  }
  two_parts(19, "x_raw-1.fif");
  format_case c = open_parts("x_raw.fif", false);
  expect_segments(&c, 2, apart);
  case_close(&c);
  two_parts(12, "x_raw-1.fif");
  c = open_parts("x_raw.fif", false);
  case_must_fail(&c, SN_E_CORRUPT, "before the end");
  c = open_parts("x_raw.fif", true);
  expect_segments(&c, 1, joined);
  assert_non_null(case_warning(&c, "part_overlap"));
  case_close(&c);
  two_parts(14, "x_raw.fif");
  c = open_parts("x_raw.fif", false);
  case_must_fail(&c, SN_E_CORRUPT, "circle");
  two_parts(14, "../x_raw-1.fif"); /* nothing outside the folder is read: the name counts, beside */
  c = open_parts("x_raw.fif", false);
  expect_segments(&c, 1, joined);
  assert_string_equal(c.recording->files[1], "x_raw-1.fif");
  case_close(&c);
  two_parts(14, "gone.fif");
  c = open_parts("x_raw.fif", true);
  assert_non_null(case_warning(&c, "part_missing"));
  assert_int_equal(c.recording->segments[0].n_frames, 4);
  case_close(&c);
  two_parts(14, "x_raw-1.fif");
  for (int64_t i = 0; i + 8 < two.n; i++)
    if (memcmp(two.at + i, "MEG 0112", 8) == 0) two.at[i + 7] = '9';
  c = open_parts("x_raw.fif", false);
  case_must_fail(&c, SN_E_CORRUPT, "MEG 0119");
}

/* The n-th tag of this kind, its header. */
static uint8_t *find(fif_bytes *f, int32_t kind, int n) {
  for (int64_t at = 0; at + 16 <= f->n;) {
    uint8_t *h = f->at + at;
    int32_t its = h[0] << 24 | h[1] << 16 | h[2] << 8 | h[3], size = h[8] << 24 | h[9] << 16 | h[10] << 8 | h[11];
    if (its == kind && n-- == 0) return h;
    at += 16 + size;
  }
  fail_msg("no tag %d", kind);
  return NULL;
}

static void plain(void) {
  put_header(&one);
  put_block(&one, 102);
  put_buffer(&one, 1, 3);
  put_buffer(&one, 4, 3);
  put_close(&one);
}

static void damage(void **state) {
  static const struct {
    int32_t kind;
    int nth, byte;
    uint8_t value;
    sn_status status;
    const char *word;
  } CASES[] = {
      {200, 0, 19, 4, SN_E_CORRUPT, "announces 4"},        {200, 0, 7, 4, SN_E_CORRUPT, "an integer is"},
      {201, 0, 16, 0xC2, SN_E_CORRUPT, "sampling rate"},   {203, 1, 11, 92, SN_E_CORRUPT, ""},
      {104, 1, 19, 102, SN_E_CORRUPT, "is open"},          {105, 0, 19, 100, SN_E_CORRUPT, "is open"},
      {300, 0, 8, 0x80, SN_E_CORRUPT, "no tag"},           {300, 0, 8, 0x7F, SN_E_CORRUPT, "only"},
      {300, 1, 7, 20, SN_E_UNSUPPORTED, "complex"},        {300, 1, 7, 9, SN_E_UNSUPPORTED, "type 9"},
      {300, 1, 15, 36, SN_E_CORRUPT, "circle"},            {300, 0, 12, 0x70, SN_E_CORRUPT, "the file ends"},
      {300, 0, 12, 0x80, SN_E_CORRUPT, "no tag"},          {108, 0, 12, 0, SN_E_CORRUPT, "the file ends"},
      {104, 2, 19, 119, SN_E_CORRUPT, "is open"},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    plain();
    find(&one, CASES[i].kind, CASES[i].nth)[CASES[i].byte] = CASES[i].value;
    format_case c = opened(false);
    if (c.status != CASES[i].status || strstr(c.err.message, CASES[i].word) == NULL)
      fail_msg("case %d: %s: %s", (int)i, sn_status_name(c.status), c.status != SN_OK ? c.err.message : "");
    case_close(&c);
  }
  plain();
  one.n -= 16; /* without its end mark, but whole */
  format_case c = opened(false);
  case_must(&c);
  case_close(&c);
  put_header(&one);
  put_block(&one, 119);
  put_buffer(&one, 1, 3);
  put_end(&one, 119);
  put_end(&one, 100);
  c = opened(false);
  case_must_fail(&c, SN_E_UNSUPPORTED, "shielding");
  c = opened(true);
  assert_non_null(case_warning(&c, "active_shielding"));
  case_close(&c);
}

/* No calibration, unit of another sensor, a name twice: one odd channel does not spoil the file. */
static void odd_channels(void **state) {
  plain();
  uint8_t *h = find(&one, 203, 0);
  memset(h + 16 + 12, 0, 4); /* range 0 */
  find(&one, 203, 1)[16 + 75] = 107; /* volts */
  format_case c = opened(false);
  case_must(&c);
  double value;
  assert_true(c.recording->channels[0].uncalibrated && c.recording->channels[1].uncalibrated);
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  c.recording->channels[0].uncalibrated = false; /* whoever clears it */
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  assert_int_equal(sn_recording_read(c.recording, 2, 0, 0, 1, &value, NULL), SN_OK);
  assert_true(value == 1);
  assert_true(case_warning(&c, "calibration") != NULL && case_warning(&c, "unit_unknown") != NULL);
  case_close(&c);
}

static void cut_everywhere(void **state) {
  two_parts(14, "x_raw-1.fif");
  format_case c = {0};
  case_file(&c, "x_raw.fif", one.at, one.n);
  case_file(&c, "x_raw-1.fif", two.at, two.n);
  case_truncate(&c, &sn_format_fif, 0);
  case_truncate(&c, &sn_format_fif, 1);
}

static void allocations_fail(void **state) {
  two_parts(19, "x_raw-1.fif");
  format_case c = {0};
  case_file(&c, "x_raw-1.fif", two.at, two.n); /* opened from its second part */
  case_file(&c, "x_raw.fif", one.at, one.n);
  case_allocations(&c, &sn_format_fif, false);
}

/* Writers store the whole path of the part before: the file is looked for beside, and the path is told nobody. */
static void paths_of_the_writers_machine(void **state) {
  static const char *const before[2] = {"/home/jane.doe/data/x_raw.fif", "C:\\jane.doe\\x_raw.fif"};
  for (int k = 0; k < 2; k++) {
    fif_bytes later;
    two_parts(14, "/home/jane.doe/data/x_raw-1.fif");
    put_header(&later);
    put_reference(&later, 1, before[k]);
    put_block(&later, 102);
    put_int_tag(&later, 208, 14);
    put_buffer(&later, 4, 3);
    put_close(&later);
    format_case c = {0};
    case_file(&c, "x_raw-1.fif", later.at, later.n);
    case_open(&c, &sn_format_fif, false);
    if (c.status == SN_OK || strstr(c.err.message, "x_raw.fif") == NULL || strstr(c.err.message, "jane") != NULL)
      fail_msg("%s", c.status == SN_OK ? "opened" : c.err.message);
    case_close(&c);
    case_file(&c, "x_raw.fif", one.at, one.n);
    case_open(&c, &sn_format_fif, false);
    case_must(&c);
    assert_int_equal(c.recording->n_files, 2);
    case_close(&c);
  }
}

/* The id of a person is what the hospital wrote, but never one of the names beside it, in whatever spelling. */
static void no_names(void **state) {
  static const struct {
    const char *id, *first, *middle, *last, *expected;
  } CASES[] = {{"S-17", "Jane", "Q", "Doe", "S-17"},   {"jane_doe", "Jane", "", "Doe", "5"}, {"DOE17", "Jane", "", "Doe", "5"},
               {"17q", "Jane", "Q", "Doe", "5"},       {"17qed", "Jane", "Q", "Doe", "17qed"}, {"M\xC3\xBCller", "", "", "M\xC3\xBCller", "5"},
               {"smith-9", "", "", "Anne-Smith", "5"}, {"", "Jane", "", "Doe", "5"}, {"P0001", "", "", "", "P0001"}, {"Doe^Jane", "", "", "", "5"}, {"19510502", "", "", "", "5"}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    fif_bytes f;
    put_header(&f);
    f.n -= 20; /* the end of the description again, behind the subject */
    put_block(&f, 106);
    put_int_tag(&f, 400, 5);
    put_text_tag(&f, 401, CASES[i].first);
    put_text_tag(&f, 402, CASES[i].middle);
    put_text_tag(&f, 403, CASES[i].last);
    put_text_tag(&f, 410, CASES[i].id);
    put_end(&f, 106);
    put_end(&f, 101);
    put_block(&f, 102);
    put_buffer(&f, 1, 5);
    put_close(&f);
    format_case c = {0};
    case_file(&c, "a_raw.fif", f.at, f.n);
    case_open(&c, &sn_format_fif, false);
    case_must(&c);
    assert_string_equal(c.recording->subject_id, CASES[i].expected);
    case_close(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_places), cmocka_unit_test(skips_are_gaps),
                                     cmocka_unit_test(every_storage),     cmocka_unit_test(parts),
                                     cmocka_unit_test(damage),            cmocka_unit_test(odd_channels),
                                     cmocka_unit_test(cut_everywhere),    cmocka_unit_test(allocations_fail), cmocka_unit_test(no_names),
                                     cmocka_unit_test(paths_of_the_writers_machine)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
