/* needs: full */
/* KIT recordings: against MNE and the manufacturer's export, and damage of a file made by hand. */
#include "meg_golden.h"
#include "put_bytes.h"
#include "reader_case.h"

#include "golden/kit_golden.h"

extern const sn_format sn_format_kit;

static void real_file(void **state) { golden_check(golden_data_folder(), &KIT_GOLDEN[0]); }

/* The same recording as FIF, by other software, which took rounded gains: sensors agree within 0.01 fT of some 1000. */
static void as_its_export(void **state) {
  char path[1024];
  sn_recording *sqd = NULL, *fif = NULL;
  const char *folder = golden_data_folder();
  snprintf(path, sizeof path, "%s/meg/kit/test.sqd", folder);
  assert_int_equal(sn_recording_open(path, NULL, &sqd, NULL), SN_OK);
  snprintf(path, sizeof path, "%s/meg/kit/test_bin_raw.fif", folder);
  assert_int_equal(sn_recording_open(path, NULL, &fif, NULL), SN_OK);
  for (int64_t c = 0; c < 157; c += 12) {
    double a[50], b[50];
    assert_int_equal(sn_recording_read(sqd, c, 0, 100, 50, a, NULL), SN_OK);
    assert_int_equal(sn_recording_read(fif, c, 0, 100, 50, b, NULL), SN_OK);
    for (int i = 0; i < 50; i++) assert_true(golden_near(a[i], b[i], 0.01));
    assert_true(fif->channels[c].coil_type == sqd->channels[c].coil_type);
  }
  sn_recording_destroy(sqd);
  sn_recording_destroy(fif);
}

static void markers_are_no_recording(void **state) {
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  snprintf(path, sizeof path, "%s/meg/kit/test_mrk.sqd", golden_data_folder());
  assert_int_equal(sn_recording_open(path, NULL, &r, &err), SN_E_UNSUPPORTED);
  assert_non_null(strstr(err.message, "marker"));
}

/* ---- by hand: 4 channels (axial gradiometer, reference magnetometer, trigger, EEG), 6 samples of 16 bits ---- */

static uint8_t file[4096];
enum { SYSTEM = 512, CHANNELS = 1300, SENSITIVITY = 1700, AMPLIFIER = 1800, ACQUISITION = 1810, DATA = 1840, SIZE = DATA + 48 };

static void set_entry(int i, int offset, int size, int count) {
  put_le32(file + 16 * i, offset);
  put_le32(file + 16 * i + 4, size);
  put_le32(file + 16 * i + 8, count);
  put_le32(file + 16 * i + 12, count);
}

static void make(void) {
  static const int TYPES[4] = {2, 0x101, -1, -2};
  memset(file, 0, sizeof file);
  set_entry(0, 0, 16, 32);
  set_entry(1, SYSTEM, 788, 1);
  set_entry(4, CHANNELS, 96, 4);
  set_entry(5, SENSITIVITY, 16, 4);
  set_entry(7, AMPLIFIER, 4, 1);
  set_entry(8, ACQUISITION, 20, 1);
  set_entry(9, DATA, 2, 24);
  put_le32(file + SYSTEM, 2);
  put_le32(file + SYSTEM + 4, 4);
  put_le32(file + SYSTEM + 8, 34);
  put_le32(file + SYSTEM + 268, 4);
  put_le32(file + SYSTEM + 564, 10);
  put_le_f64(file + SYSTEM + 716, 8);   /* volts */
  put_le32(file + SYSTEM + 728, 16);  /* allocated */
  put_le32(file + SYSTEM + 732, 16);  /* bits: 2^-13 V each */
  for (int c = 0; c < 4; c++) {
    put_le32(file + CHANNELS + 96 * c, TYPES[c]);
    put_le_f64(file + SENSITIVITY + 16 * c + 8, 1e-9);
    for (int k = 0; k < 6; k++) {
      int v = c == 2 ? (k == 3 ? 0 : 16384) : 100 * c + k; /* a trigger level that falls from 2 V once */
      file[DATA + 2 * (4 * k + c)] = (uint8_t)v;
      file[DATA + 2 * (4 * k + c) + 1] = (uint8_t)(v >> 8);
    }
  }
  for (int c = 0; c < 2; c++) {
    put_le_f64(file + CHANNELS + 96 * c + 4, 0.1);
    put_le_f64(file + CHANNELS + 96 * c + 12, 0.2);
    put_le_f64(file + CHANNELS + 96 * c + 20, 0.3);
    put_le_f64(file + CHANNELS + 96 * c + 28, 90);
  }
  put_le_f64(file + CHANNELS + 96 * 3 + 26, 4e-6);
  put_le32(file + AMPLIFIER, 1 << 11 | 2 | 2 << 4); /* gains 2 and 5; high-pass setting 2 */
  put_le32(file + ACQUISITION, 1);
  put_le_f64(file + ACQUISITION + 4, 500);
  put_le32(file + ACQUISITION + 12, 6);
  put_le32(file + ACQUISITION + 16, 6);
}

static format_case opened(bool tolerant) {
  format_case c = {0};
  case_file(&c, "x.sqd", file, SIZE);
  case_open(&c, &sn_format_kit, tolerant);
  return c;
}

static void by_hand(void **state) {
  make();
  format_case c = opened(false);
  case_must(&c);
  const sn_channel *ch = c.recording->channels;
  double v;
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 5, 1, &v, NULL), SN_OK);
  assert_true(golden_near(v, 5 * ldexp(1, -13) / 10 * 1e-9 * 1e15, 1e-9));
  assert_int_equal(sn_recording_read(c.recording, 3, 0, 1, 1, &v, NULL), SN_OK);
  assert_true(golden_near(v, 301 * 4e-6 / 4 * 1e6, 1e-9));
  assert_true(ch[0].kind == SN_SENSOR_MEG_MAG && ch[0].coil_type == 6001 && ch[1].kind == SN_SENSOR_OTHER && ch[1].coil_type == 6002);
  assert_true(ch[2].kind == SN_SENSOR_TRIGGER && ch[3].kind == SN_SENSOR_EEG);
  assert_true(ch[0].frame == SN_FRAME_DEVICE && ch[0].position_m[0] == -0.2 && ch[0].position_m[1] == 0.1);
  assert_true(fabs(ch[0].orientation[1] - 1) < 1e-12); /* theta 90, phi 0: forwards */
  assert_string_equal(c.recording->notes[1].name, "highpass_hz");
  assert_string_equal(c.recording->notes[1].value, "3"); /* bits 4 to 6 */
  sn_annotations *list = case_annotations(&c);
  assert_int_equal(list->n, 1);
  assert_true(list->items[0].sample == 3 && strcmp(list->items[0].code, "1") == 0);
  sn_annotations_destroy(list);
  case_close(&c);
}

static void damage(void **state) {
  static const struct {
    int at;
    int32_t value;
    sn_status status;
    const char *word;
  } CASES[] = {{SYSTEM, 1, SN_E_UNSUPPORTED, "version"},  {SYSTEM + 4, 2, SN_E_UNSUPPORTED, "version 2.2"},
               {SYSTEM + 268, 0x7FFFFFFF, SN_E_CORRUPT, "channels"}, {SYSTEM + 728, 24, SN_E_CORRUPT, "bits"},
               {ACQUISITION, 3, SN_E_UNSUPPORTED, "epochs"}, {ACQUISITION, 9, SN_E_CORRUPT, "type 9"},
               {ACQUISITION + 16, 7, SN_E_CORRUPT, "there are 6"}, {ACQUISITION + 16, -1, SN_E_CORRUPT, "-1 samples"},
               {CHANNELS, 77, SN_E_CORRUPT, "unknown type 77"}, {64 + 12, 5, SN_E_CORRUPT, "described"},
               {16, 100000, SN_E_CORRUPT, ""}, {144, -8, SN_E_CORRUPT, "there are 0"}, {20, -1, SN_E_CORRUPT, "directory"}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    make();
    put_le32(file + CASES[i].at, CASES[i].value);
    format_case c = opened(false);
    if (c.status != CASES[i].status || strstr(c.err.message, CASES[i].word) == NULL)
      fail_msg("case %d: %s: %s", (int)i, sn_status_name(c.status), c.status != SN_OK ? c.err.message : "");
    case_close(&c);
  }
  make();
  put_le32(file + ACQUISITION + 16, 9);
  format_case c = opened(true);
  case_must(&c);
  assert_int_equal(c.recording->segments[0].n_frames, 6);
  assert_non_null(case_warning(&c, "truncated"));
  case_close(&c);
}

static void cut_everywhere(void **state) {
  make();
  format_case c = {0};
  case_file(&c, "x.sqd", file, SIZE);
  case_truncate(&c, &sn_format_kit, 0);
}

static void allocations_fail(void **state) {
  make();
  format_case c = opened(false);
  case_close(&c);
  case_allocations(&c, &sn_format_kit, false);
}

static void changed_bits(void **state) {
  make();
  format_case c = opened(false);
  case_close(&c);
  case_change_bits(&c, &sn_format_kit, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(real_file), cmocka_unit_test(as_its_export), cmocka_unit_test(markers_are_no_recording),
                                     cmocka_unit_test(by_hand), cmocka_unit_test(damage), cmocka_unit_test(cut_everywhere),
                                     cmocka_unit_test(allocations_fail), cmocka_unit_test(changed_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
