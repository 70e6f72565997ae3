/* needs: full hdf5 */
/* EEGLAB data sets made by golden/make_eeglab.py: every way the samples can be stored, events, joins, damage. */
#include <stdlib.h>

#include "alloc_fault.h"
#include "format_case.h"

extern const sn_format sn_format_eeglab;

#define FOLDER SONDE_SOURCE_DIR "/tests/golden/eeglab/"

static sn_recording *must_open(const char *name) {
  char path[512];
  sn_recording *r = NULL;
  sn_error err;
  snprintf(path, sizeof path, FOLDER "%s", name);
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
  assert_string_equal(r->format, "eeglab");
  return r;
}

static bool warned(const sn_recording *r, const char *code) {
  for (int64_t i = 0; i < r->n_warnings; i++)
    if (strcmp(r->warnings[i].code, code) == 0) return true;
  return false;
}

/* Channel c of point t is 10 c + t / 4; `first`: the point that the segment begins with. */
static void check_values(const sn_recording *r, int64_t segment, int64_t first) {
  static double values[3][1280];
  double *to[3] = {values[0], values[1], values[2]};
  const int64_t channels[3] = {0, 1, 2}, n = r->segments[segment].n_frames;
  assert_int_equal(sn_recording_read_channels(r, channels, 3, segment, 0, n, to, NULL), SN_OK);
  for (int64_t c = 0; c < 3; c++) {
    /* EOG has its unit in microvolt as well. */
    for (int64_t t = 0; t < n; t++) assert_true(values[c][t] == 10.0 * (double)c + (double)(first + t) / 4);
    double one;
    assert_int_equal(sn_recording_read(r, c, segment, n - 1, 1, &one, NULL), SN_OK);
    assert_true(one == values[c][n - 1]);
  }
}

static void check_channels(const sn_recording *r, double x) {
  assert_int_equal(r->n_channels, 3);
  assert_string_equal(r->channels[0].name, "Fp1");
  assert_string_equal(r->channels[2].raw_name, "VEOG");
  assert_int_equal(r->channels[0].kind, SN_SENSOR_EEG);
  assert_int_equal(r->channels[2].kind, SN_SENSOR_EOG);
  assert_string_equal(r->channels[0].unit, "uV");
  assert_true(r->channels[0].unit_assumed && r->channels[0].has_position && !r->channels[2].has_position);
  /* X 80 to the nose, Y 27 to the left. */
  assert_true(fabs(r->channels[0].position_m[0] + 27 * x) < 1e-12 &&
              fabs(r->channels[0].position_m[1] - 80 * x) < 1e-12);
  assert_true(fabs(r->channels[1].position_m[2] - 85 * x) < 1e-12);
  assert_string_equal(r->reference, "common");
  assert_int_equal(r->rate_num, 128);
  assert_int_equal(r->rate_den, 1);
}

/* Fault 8: latencies from one, with fractions. */
static void check_events(const sn_recording *r) {
  sn_annotations *list;
  assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
  assert_int_equal(list->n, 3);
  assert_true(list->items[0].onset_s == 0 && list->items[0].sample == 0 && list->items[0].duration_s == 1.0 / 128);
  assert_string_equal(list->items[0].text, "S  1");
  assert_true(fabs(list->items[1].onset_s - 1.000068359375) < 1e-9 && list->items[1].sample == 128);
  assert_true(isnan(list->items[1].duration_s));
  assert_string_equal(list->items[1].code, "255");
  assert_int_equal(list->items[2].sample, 1279);
  assert_string_equal(list->items[2].text,
                      "Gr\xC3\xB6\xC3\x9F"
                      "e");
  sn_annotations_destroy(list);
}

static void every_way_to_store(void **state) {
  static const struct {
    const char *name, *warning;
    double x;
  } rows[] = {{"inside.set", "position_unit_assumed", 0.001}, {"plain.set", "unit_absent", 0.001},
              {"beside.set", "unit_absent", 0.001},           {"renamed.set", "data_file_renamed", 0.001},
              {"fields.set", "unit_absent", 0.001},           {"inside73.set", "unit_absent", 0.001},
              {"beside73.set", "data_file_renamed", 0.001}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_recording *r = must_open(rows[i].name);
    assert_int_equal(r->n_segments, 1);
    assert_int_equal(r->segments[0].n_frames, 1280);
    assert_true(warned(r, rows[i].warning));
    check_values(r, 0, 0);
    check_channels(r, rows[i].x);
    check_events(r);
    sn_recording_destroy(r);
  }
  sn_recording *r = must_open("beside.fdt"); /* leads to the .set */
  assert_string_equal(r->files[0], "beside.set");
  sn_recording_destroy(r);
}

static void trials_are_segments(void **state) {
  sn_recording *r = must_open("epochs.set");
  assert_int_equal(r->n_segments, 10);
  for (int64_t s = 0; s < 10; s++) {
    assert_int_equal(r->segments[s].start_frame, 128 * s);
    assert_int_equal(r->segments[s].n_frames, 128);
    check_values(r, s, 128 * s);
  }
  check_channels(r, 0.095 / 85);
  sn_recording_destroy(r);
}

static void boundaries_are_joins(void **state) {
  sn_recording *r = must_open("boundary.set");
  static const int64_t first[3] = {0, 256, 1000}, start[3] = {0, 384, 1128}, length[3] = {256, 744, 280};
  assert_int_equal(r->n_segments, 3);
  for (int64_t s = 0; s < 3; s++) {
    assert_int_equal(r->segments[s].start_frame, start[s]); /* 128 points were cut out before the second */
    assert_int_equal(r->segments[s].n_frames, length[s]);
    check_values(r, s, first[s]);
  }
  assert_true(warned(r, "annotation_beyond_end"));
  sn_annotations *list;
  assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
  assert_int_equal(list->n, 4);
  assert_string_equal(list->items[2].text, "S");
  assert_int_equal(list->items[2].sample, 299 + 128);
  assert_string_equal(list->items[3].code, "boundary");
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
}

/* ---- damage ---- */

typedef struct loaded {
  char *bytes;
  int64_t n;
} loaded;

static loaded load(const char *path) {
  loaded l;
  sn_stream *stream;
  assert_int_equal(sn_stream_open(path, &stream, NULL), SN_OK);
  assert_int_equal(sn_stream_read_all(stream, 1 << 24, &l.bytes, &l.n, NULL), SN_OK);
  sn_stream_close(stream);
  return l;
}

static void truncated_anywhere(void **state) {
  static const char *const names[2] = {"beside.set", "epochs.set"};
  for (int i = 0; i < 2; i++) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", names[i]);
    loaded set = load(path), fdt = load(FOLDER "beside.fdt");
    format_case c = {0};
    case_file(&c, "beside.set", set.bytes, set.n);
    case_file(&c, "beside.fdt", fdt.bytes, fdt.n);
    case_truncate(&c, &sn_format_eeglab, 0);
    sn_free(set.bytes);
    sn_free(fdt.bytes);
  }
}

static void data_file_too_short(void **state) {
  loaded set = load(FOLDER "beside.set"), fdt = load(FOLDER "beside.fdt");
  format_case c = {0};
  case_file(&c, "beside.set", set.bytes, set.n);
  case_open(&c, &sn_format_eeglab, true);
  case_must_fail(&c, SN_E_IO, "beside.fdt");
  case_file(&c, "beside.fdt", fdt.bytes, fdt.n - 7);
  case_open(&c, &sn_format_eeglab, false);
  case_must_fail(&c, SN_E_CORRUPT, "truncated");
  case_open(&c, &sn_format_eeglab, true);
  case_must(&c);
  assert_int_equal(c.recording->segments[0].n_frames, 1279);
  assert_non_null(case_warning(&c, "truncated"));
  case_close(&c);
  sn_free(set.bytes);
  sn_free(fdt.bytes);
}

/* A MATLAB 7.3 file with bits changed and cut: an error with a message, or a recording; the process lives on. */
static void hostile_hdf5(void **state) {
  loaded set = load(FOLDER "inside73.set");
  int failed = 0;
  for (int64_t k = 520; k < set.n; k += set.n / 40) {
    for (int cut = 0; cut < 2; cut++) {
      char *copy;
      int64_t n = cut ? k : set.n;
      assert_int_equal(sn_alloc(&copy, n, 1, "copy", NULL), SN_OK);
      memcpy(copy, set.bytes, (size_t)n);
      if (!cut) copy[k] ^= 0x55;
      format_case c = {0};
      case_file(&c, "r.set", copy, n);
      case_open(&c, &sn_format_eeglab, false);
      failed += c.status != SN_OK;
      if (c.status != SN_OK) assert_true(c.err.message[0] != '\0');
      case_close(&c);
      sn_free(copy);
    }
  }
  assert_true(failed >= 40);
  sn_free(set.bytes);
}

static void no_such_file(void **state) {
  format_case c = {0};
  case_text(&c, "r.set", "nothing");
  case_open(&c, &sn_format_eeglab, false);
  case_must_fail(&c, SN_E_FORMAT, "MATLAB");
}

static void failing_allocations(void **state) {
  static const char *const names[3] = {"beside.set", "boundary.set", "plain.set"};
  for (int i = 0; i < 3; i++) {
    char path[512];
    snprintf(path, sizeof path, FOLDER "%s", names[i]);
    loaded set = load(path), fdt = load(FOLDER "beside.fdt");
    for (fault_begin(); fault_next();) {
      format_case c = {0};
      case_file(&c, "beside.set", set.bytes, set.n);
      case_file(&c, "beside.fdt", fdt.bytes, fdt.n);
      case_open(&c, &sn_format_eeglab, false);
      fault_check(c.status);
      case_close(&c);
    }
    sn_free(set.bytes);
    sn_free(fdt.bytes);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_way_to_store),   cmocka_unit_test(trials_are_segments),
      cmocka_unit_test(boundaries_are_joins), cmocka_unit_test(truncated_anywhere),
      cmocka_unit_test(data_file_too_short),  cmocka_unit_test(hostile_hdf5),
      cmocka_unit_test(no_such_file),         cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
