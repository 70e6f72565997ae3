/* needs: full */
/* The EDF reader on files made by hand: units, calibration, rates, gaps, counts that contradict, texts, triggers. */
#include "edf_case.h"

#include <math.h>

#include "alloc_fault.h"
#include "modalities/formats/edf/edf_parts.h"

static edf_bytes file; /* of the test that runs */

#define SIGNAL(label, unit, n) {label, unit, "-2048", "2047", "-2048", "2047", n}
#define LISTS(n) {"EDF Annotations", "", "-1", "1", "-32768", "32767", n}

static void near(double value, double expected, double tolerance) {
  if (!(fabs(value - expected) <= tolerance)) fail_msg("%.17g, expected %.17g", value, expected);
}

/* ---- fault 1: units ---- */

static void units(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Fp1", "uV", 1),        SIGNAL("EEG Fp2", "mV", 1),
                                            SIGNAL("EEG F3", "V", 1),          SIGNAL("EEG F4", "", 1),
                                            SIGNAL("EEG C3", "\xB5V", 1),      SIGNAL("EEG C4", "\xC2\xB5V", 1),
                                            SIGNAL("EEG O1", "\xCE\xBCV", 1),  SIGNAL("EEG O2", "uVolts", 1)};
  static const double expected_uv[] = {1e3, 1e6, 1e9, 0, 1e3, 1e3, 1e3, 0};
  edf_head(&file, false, "", "1", "1", signals, 8);
  for (int i = 0; i < 8; i++) edf_sample(&file, 1000);
  edf_case c = edf_must_open(&file, false);
  const sn_recording *r = c.recording;
  for (int i = 0; i < 8; i++) {
    const sn_channel *channel = &r->channels[i];
    assert_int_equal(channel->kind, SN_SENSOR_EEG);
    assert_int_equal(channel->uncalibrated, expected_uv[i] == 0);
    assert_string_equal(channel->unit, expected_uv[i] == 0 ? "" : "uV");
    if (expected_uv[i] != 0) {
      near(edf_value(&c, i, 0, 0), expected_uv[i], expected_uv[i] * 1e-12);
      continue;
    }
    double value;
    int32_t stored;
    sn_error err;
    assert_int_equal(sn_recording_read(r, i, 0, 0, 1, &value, &err), SN_E_UNSUPPORTED);
    assert_non_null(strstr(err.message, channel->name));
    assert_int_equal(sn_recording_read_stored(r, i, 0, 0, 1, &stored, &err), SN_OK);
    assert_int_equal(stored, 1000);
  }
  assert_true(edf_case_warned(&c, "unit_absent") && edf_case_warned(&c, "unit_unknown"));
  edf_close(&c);
  const sn_open_options options = {.assume_unit = "mV"};
  c = edf_open_with(file.data, file.n, &options);
  assert_int_equal(c.status, SN_OK);
  near(edf_value(&c, 3, 0, 0), 1e6, 1e-6);
  near(edf_value(&c, 0, 0, 0), 1e3, 1e-9); /* stated units stay */
  assert_true(c.recording->channels[3].unit_assumed && !c.recording->channels[0].unit_assumed);
  assert_true(c.recording->channels[7].uncalibrated); /* a stated unit that is not known is not another */
  edf_close(&c);
  const sn_open_options nonsense = {.assume_unit = "mmHg"};
  c = edf_open_with(file.data, file.n, &nonsense);
  assert_int_equal(c.status, SN_E_ARGUMENT);
  edf_close(&c);
}

/* ---- fault 2: gaps ---- */

static void make_discontinuous(const char *onsets[], int n, const char *reserved) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 10), LISTS(16)};
  char count[8], text[64];
  snprintf(count, sizeof count, "%d", n);
  edf_head(&file, false, reserved, count, "1", signals, 2);
  for (int k = 0; k < n; k++) {
    for (int i = 0; i < 10; i++) edf_sample(&file, 10 * k + i);
    int length = snprintf(text, sizeof text, "%s\x14\x14%c%s", onsets[k], 0, k == 1 ? "+5.5\x14there\x14" : "");
    edf_lists(&file, 16, text, (size_t)length);
  }
}

static void gaps(void **state) {
  const char *onsets[] = {"+0", "+1", "+5"};
  make_discontinuous(onsets, 3, "EDF+D");
  edf_case c = edf_must_open(&file, false);
  const sn_recording *r = c.recording;
  assert_string_equal(r->variant, "EDF+D");
  assert_int_equal(r->n_segments, 2);
  assert_true(r->rate_num == 10 && r->rate_den == 1 && r->n_channels == 1);
  assert_true(r->segments[0].start_s == 0 && r->segments[0].start_frame == 0 && r->segments[0].n_frames == 20);
  assert_true(r->segments[1].start_s == 5 && r->segments[1].start_frame == 50 && r->segments[1].n_frames == 10);
  near(edf_value(&c, 0, 1, 0), 20, 1e-12);
  near(edf_value(&c, 0, 0, 19), 19, 1e-12);
  double value;
  sn_error err;
  assert_int_equal(sn_recording_read(r, 0, 0, 19, 2, &value, &err), SN_E_ARGUMENT); /* nothing works across a join */
  sn_annotations *list;
  assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
  assert_int_equal(list->n, 1);
  assert_true(list->items[0].onset_s == 5.5 && list->items[0].sample == 55 && isnan(list->items[0].duration_s));
  assert_string_equal(list->items[0].text, "there");
  /* On joined samples: 20 of the first segment, and 0.5 s into the second. */
  assert_int_equal(r->segments[0].n_frames + list->items[0].sample - r->segments[1].start_frame, 25);
  sn_annotations_destroy(list);
  edf_close(&c);
  /* Records that touch are one segment; the recording starts with its first record. */
  const char *touching[] = {"+2.25", "+3.2501", "+4.25"};
  make_discontinuous(touching, 3, "EDF+D");
  c = edf_must_open(&file, false);
  assert_true(c.recording->n_segments == 1 && c.recording->segments[0].n_frames == 30);
  assert_string_equal(c.recording->start_time, "2002-03-02T14:27:07.25");
  edf_close(&c);
  /* The same gap in a file that calls itself continuous. */
  make_discontinuous(onsets, 3, "EDF+C");
  c = edf_must_open(&file, false);
  assert_true(c.recording->n_segments == 2 && edf_case_warned(&c, "record_times"));
  edf_close(&c);
  /* Times that cannot be: it stays continuous. */
  const char *repeated[] = {"+0", "+0", "+0"};
  make_discontinuous(repeated, 3, "EDF+C");
  c = edf_must_open(&file, false);
  assert_true(c.recording->n_segments == 1 && edf_case_warned(&c, "record_times"));
  edf_close(&c);
  make_discontinuous(onsets, 3, ""); /* plain EDF states none */
  c = edf_must_open(&file, false);
  assert_true(c.recording->n_segments == 1 && !edf_case_warned(&c, "record_times"));
  edf_close(&c);
  /* Records in disorder. */
  const char *back[] = {"+0", "+3", "+1"};
  make_discontinuous(back, 3, "EDF+D");
  edf_must_fail(&file, false, SN_E_CORRUPT, "record 2");
  c = edf_must_open(&file, true);
  assert_true(c.recording->n_segments == 2 && c.recording->segments[1].n_frames == 20);
  edf_close(&c);
  const char *unreadable[] = {"+0", "one", "+2"};
  make_discontinuous(unreadable, 3, "EDF+D");
  edf_must_fail(&file, false, SN_E_CORRUPT, "record 1");
  c = edf_must_open(&file, true);
  assert_true(c.recording->n_segments == 1);
  edf_close(&c);
  static const edf_case_signal bare[] = {SIGNAL("EEG Cz", "uV", 1)};
  edf_head(&file, false, "EDF+D", "1", "1", bare, 1);
  edf_sample(&file, 1);
  edf_must_fail(&file, false, SN_E_CORRUPT, "discontinuous");
  c = edf_must_open(&file, true);
  edf_close(&c);
}

/* ---- fault 3: rates ---- */

static void rates(void **state) {
  static const struct {
    int a, b;
    const char *duration;
    int64_t num, den, per_frame_a, per_frame_b;
  } cases[] = {{512, 0, "2", 256, 1, 1, 0},       {20, 0, "0.1", 200, 1, 1, 0},     {8, 4, "1", 4, 1, 2, 1},
               {3, 2, "1.5", 2, 3, 3, 2},         {1000, 128, "10", 4, 5, 125, 16}, {15, 0, "0.5", 30, 1, 1, 0},
               {128, 0, "1.0000", 128, 1, 1, 0},  {1, 0, "0.00025", 4000, 1, 1, 0}, {7, 0, "3E-1", 70, 3, 1, 0},
               {30, 3000, "30", 1, 1, 1, 100}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    edf_case_signal signals[2] = {SIGNAL("EEG A", "uV", cases[k].a), SIGNAL("EEG B", "uV", cases[k].b)};
    edf_head(&file, false, "", "3", cases[k].duration, signals, cases[k].b > 0 ? 2 : 1);
    for (int record = 0; record < 3; record++) {
      for (int i = 0; i < cases[k].a; i++) edf_sample(&file, record * cases[k].a + i);
      for (int i = 0; i < cases[k].b; i++) edf_sample(&file, -(record * cases[k].b + i));
    }
    edf_case c = edf_must_open(&file, false);
    const sn_recording *r = c.recording;
    if (r->rate_num != cases[k].num || r->rate_den != cases[k].den)
      fail_msg("%s s: %lld/%lld Hz", cases[k].duration, (long long)r->rate_num, (long long)r->rate_den);
    assert_int_equal(r->channels[0].samples_per_frame, cases[k].per_frame_a);
    assert_int_equal(sn_recording_samples(r, 0, -1), 3 * cases[k].a);
    if (cases[k].b > 0) {
      assert_int_equal(r->channels[1].samples_per_frame, cases[k].per_frame_b);
      assert_int_equal(sn_recording_samples(r, 1, -1), 3 * cases[k].b);
    }
    /* Any chunk size gives the same bits as reading at once. */
    for (int64_t channel = 0; channel < r->n_channels; channel++) {
      int64_t total = sn_recording_samples(r, channel, 0);
      double *whole = calloc((size_t)total, sizeof *whole), *pieces = calloc((size_t)total, sizeof *pieces);
      assert_int_equal(sn_recording_read(r, channel, 0, 0, total, whole, NULL), SN_OK);
      for (int64_t i = 0; i < total; i++) near(whole[i], channel == 0 ? (double)i : -(double)i, 1e-9);
      for (int64_t size = 1; size <= total; size = size * 2 + 1) {
        for (int64_t at = 0; at < total; at += size) {
          int64_t n = total - at < size ? total - at : size;
          assert_int_equal(sn_recording_read(r, channel, 0, at, n, pieces + at, NULL), SN_OK);
        }
        assert_memory_equal(whole, pieces, (size_t)total * sizeof *whole);
      }
      free(whole);
      free(pieces);
    }
    edf_close(&c);
  }
}

static void duration_zero(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 50), SIGNAL("EEG Pz", "uV", 10)};
  edf_head(&file, false, "", "1", "0", signals, 2);
  for (int i = 0; i < 60; i++) edf_sample(&file, i);
  edf_must_fail(&file, false, SN_E_UNSUPPORTED, "record duration");
  const sn_open_options options = {.assume_rate_hz = 12.5};
  edf_case c = edf_open_with(file.data, file.n, &options);
  assert_int_equal(c.status, SN_OK);
  assert_true(c.recording->rate_num == 5 && c.recording->rate_den == 2);
  near(sn_recording_rate(c.recording, 0), 12.5, 0);
  assert_true(edf_case_warned(&c, "rate_assumed"));
  edf_close(&c);
  for (const char *const *bad = (const char *const[]){"-1", "one", "", "1e99", NULL}; *bad != NULL; bad++) {
    edf_patch(&file, 244, 8, *bad);
    edf_must_fail(&file, true, SN_E_CORRUPT, "record duration");
  }
  edf_patch(&file, 244, 8, "0,5");
  c = edf_must_open(&file, false);
  assert_true(edf_case_warned(&c, "decimal_comma"));
  near(sn_recording_rate(c.recording, 0), 100, 0);
  edf_close(&c);
}

/* ---- fault 4: counts ---- */

static void counts(void **state) {
  static const struct {
    const char *announced;
    int quarters;        /* of records that are there */
    sn_status strict;
    int64_t records;     /* that are read when tolerant */
    const char *warning; /* tolerant, and strict where that is SN_OK */
  } cases[] = {{"-1", 10, SN_E_CORRUPT, 2, "truncated"}, {"10", 16, SN_E_CORRUPT, 4, "truncated"},
               {"2", 12, SN_OK, 2, "surplus_bytes"},     {"-1", 12, SN_OK, 3, "record_count"},
               {"2", 9, SN_OK, 2, "surplus_bytes"},      {"10", 17, SN_E_CORRUPT, 4, "truncated"},
               {"99999999", 8, SN_E_CORRUPT, 2, "truncated"}, {"3", 12, SN_OK, 3, NULL}};
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 8)};
  for (int bdf = 0; bdf < 2; bdf++) {
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
      edf_head(&file, bdf == 1, bdf ? "24BIT" : "", cases[k].announced, "1", signals, 1);
      for (int i = 0; i < 2 * cases[k].quarters; i++) edf_sample(&file, i);
      if (cases[k].strict != SN_OK) edf_must_fail(&file, false, cases[k].strict, "records");
      for (int tolerant = cases[k].strict == SN_OK ? 0 : 1; tolerant < 2; tolerant++) {
        edf_case c = edf_must_open(&file, tolerant == 1);
        assert_int_equal(sn_recording_samples(c.recording, 0, -1), 8 * cases[k].records);
        if (cases[k].warning != NULL) assert_true(edf_case_warned(&c, cases[k].warning));
        else assert_int_equal(c.recording->n_warnings, 0);
        near(edf_value(&c, 0, 0, 8 * cases[k].records - 1), (double)(8 * cases[k].records - 1), 1e-9);
        edf_close(&c);
      }
    }
  }
  /* "half a record ignored, N bytes" */
  edf_head(&file, true, "", "-1", "1", signals, 1);
  for (int i = 0; i < 20; i++) edf_sample(&file, i);
  edf_case c = edf_must_open(&file, true);
  assert_true(edf_case_warned(&c, "truncated"));
  bool said = false;
  for (int64_t i = 0; i < c.recording->n_warnings; i++) said |= strstr(c.recording->warnings[i].message, "12 bytes") != NULL;
  assert_true(said);
  edf_close(&c);
}

/* ---- fault 5: calibration ---- */

static void calibration(void **state) {
  static const edf_case_signal signals[] = {{"EEG Cz", "uV", "100", "-100", "-32768", "32767", 3},
                                            {"EEG Pz", "uV", "-100", "100", "5", "5", 3},
                                            {"EEG Oz", "uV", "0", "0", "-32768", "32767", 3},
                                            {"EEG Fz", "uV", "-100", "100", "32767", "-32768", 3}};
  edf_head(&file, false, "", "1", "1", signals, 4);
  for (int i = 0; i < 4; i++) {
    edf_sample(&file, 32767);
    edf_sample(&file, -32768);
    edf_sample(&file, 0);
  }
  edf_case c = edf_must_open(&file, false);
  near(edf_value(&c, 0, 0, 0), -100, 1e-12);
  near(edf_value(&c, 0, 0, 1), 100, 1e-12);
  near(edf_value(&c, 0, 0, 2), -100.0 / 65535, 1e-12);
  near((32767 - c.recording->channels[0].baseline) / c.recording->channels[0].gain, -100, 1e-12);
  for (int i = 1; i < 3; i++) {
    double value;
    int32_t stored[3];
    assert_true(c.recording->channels[i].uncalibrated);
    assert_int_equal(sn_recording_read(c.recording, i, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
    c.recording->channels[i].uncalibrated = false; /* as if a unit had come from elsewhere: still refused */
    assert_int_equal(sn_recording_read(c.recording, i, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
    assert_int_equal(sn_recording_read_stored(c.recording, i, 0, 0, 3, stored, NULL), SN_OK);
    assert_true(stored[0] == 32767 && stored[1] == -32768 && stored[2] == 0);
  }
  assert_true(edf_case_warned(&c, "calibration_range") && edf_case_warned(&c, "digital_range"));
  near(edf_value(&c, 3, 0, 0), -100, 1e-12);
  edf_close(&c);
}

/* ---- fault 6: triggers ---- */

static void triggers(void **state) {
  static const edf_case_signal signals[] = {{"Cz", "uV", "-262144", "262143", "-8388608", "8388607", 8},
                                            {"Status", "Boolean", "-8388608", "8388607", "-8388608", "8388607", 8}};
  static const uint32_t words[16] = {0x1100CA, 0xFFFFFF, 0x100000, 0x1000CA, 0x1000CA, 0x100003, 0x100000, 0x100000,
                                     0x000000, 0x000001, 0x500001, 0x900000, 0x100007, 0x100007, 0x100007, 0x100007};
  edf_head(&file, true, "24BIT", "2", "1", signals, 2);
  for (int record = 0; record < 2; record++) {
    for (int i = 0; i < 8; i++) edf_sample(&file, i == 0 ? -8388608 : i);
    for (int i = 0; i < 8; i++) edf_sample(&file, (int32_t)words[8 * record + i]);
  }
  edf_case c = edf_must_open(&file, false);
  const sn_recording *r = c.recording;
  int32_t stored[16];
  double value;
  sn_error err;
  assert_true(r->channels[0].kind == SN_SENSOR_EEG && r->channels[1].kind == SN_SENSOR_TRIGGER);
  assert_int_equal(sn_recording_read(r, 1, 0, 0, 1, &value, &err), SN_E_UNSUPPORTED);
  assert_non_null(strstr(err.message, "trigger"));
  assert_int_equal(sn_recording_read_stored(r, 1, 0, 0, 16, stored, NULL), SN_OK);
  for (int i = 0; i < 16; i++) assert_int_equal(stored[i], words[i]);
  assert_int_equal(stored[0] & 0xFFFF, 202);
  assert_true((stored[0] >> 16 & 1) == 1 && (stored[0] >> 20 & 1) == 1 && stored[1] >> 16 == 0xFF);
  near(edf_value(&c, 0, 0, 0), -262144, 1e-9);
  sn_annotations *list;
  assert_int_equal(sn_recording_annotations(r, "trigger", &list, NULL), SN_OK);
  static const struct {
    int sample, number;
    double duration;
  } expected[] = {{1, 65535, 0.125}, {3, 202, 0.25}, {5, 3, 0.125}, {9, 1, 0.25}, {12, 7, 0.5}};
  assert_int_equal(list->n, 5);
  for (int i = 0; i < 5; i++) {
    const sn_annotation *a = &list->items[i];
    assert_int_equal(a->sample, expected[i].sample);
    assert_int_equal(a->number, expected[i].number);
    assert_int_equal(a->channel, 1);
    near(a->onset_s, expected[i].sample / 8.0, 0);
    near(a->duration_s, expected[i].duration, 0);
    assert_true(strtol(a->code, NULL, 10) == expected[i].number);
  }
  assert_true(edf_warned(list->warnings, list->n_warnings, "trigger_at_start"));
  assert_true(edf_warned(list->warnings, list->n_warnings, "cms_out_of_range"));
  assert_true(edf_warned(list->warnings, list->n_warnings, "battery_low"));
  sn_annotations_destroy(list);
  assert_int_equal(sn_recording_annotations(r, "atr", &list, &err), SN_E_ARGUMENT);
  edf_close(&c);
}

static void samples_of_24_bits(void **state) {
  static const edf_case_signal signals[] = {{"EEG Cz", "uV", "-8388608", "8388607", "-8388608", "8388607", 6}};
  static const int32_t values[6] = {-8388608, 8388607, -1, 0, 65536, -65537};
  edf_head(&file, true, "BDF+C", "1", "1", signals, 1);
  for (int i = 0; i < 6; i++) edf_sample(&file, values[i]);
  edf_case c = edf_must_open(&file, false);
  int32_t stored[6];
  assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 0, 6, stored, NULL), SN_OK);
  for (int i = 0; i < 6; i++) {
    assert_int_equal(stored[i], values[i]);
    near(edf_value(&c, 0, 0, i), values[i], 1e-9);
  }
  assert_string_equal(c.recording->variant, "BDF+C");
  edf_close(&c);
}

/* The vector code gives the same bits as the portable one, at any alignment and length, and stays in its bytes. */
static void decoding(void **state) {
  for (int width = 2; width < 4; width++) {
    for (int64_t n = 0; n < 40; n++) {
      for (int shift = 0; shift < 3; shift++) {
        uint8_t *bytes = malloc((size_t)(n * width + shift)); /* of the exact size, for the sanitizer */
        double portable[40], vector[41];
        for (int64_t i = 0; i < n * width; i++) bytes[i + shift] = (uint8_t)(37 * i * i + 91 * i + n + 128);
        vector[n] = -1;
        sn_edf_decode(width, false, bytes + shift, n, 0.1, -7.3, portable);
        sn_edf_decode(width, sn_edf_has_avx2(), bytes + shift, n, 0.1, -7.3, vector);
        assert_memory_equal(portable, vector, (size_t)n * sizeof(double));
        assert_true(vector[n] == -1);
        free(bytes);
      }
    }
  }
}

/* ---- fault 7: texts; lists of annotations ---- */

static void texts(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 10), SIGNAL("Gr\xF6\xDF" "e", "uV", 10), LISTS(60), LISTS(20)};
  edf_head(&file, false, "EDF+C", "2", "1", signals, 4);
  for (int i = 0; i < 20; i++) edf_sample(&file, i);
  EDF_LISTS(&file, 60,
            "+0.5\x14\x14\0" /* the recording starts half a second after the header's clock */
            "+1\x15" "0.25\x14Gr\xC3\xB6\xC3\x9F" "e\x14second\x14\0"
            "+1.25\x14" "Gr\xF6\xDF" "e\x14\0"
            "-1.5\x14" "early\x14\0");
  const int64_t latin1 = 256 * 5 + 40 + 7 + 24 + 6 + 2; /* head, 20 samples, lists before, onset, "Gr" */
  EDF_LISTS(&file, 20, "+1.75\x14" "EEG\x14\0+1.1\x14" "x@@EEG Cz\x14");
  for (int i = 0; i < 20; i++) edf_sample(&file, i);
  EDF_LISTS(&file, 60, "+1.5\x14\x14" "with the time\x14\0");
  EDF_LISTS(&file, 20, "\0\0");
  edf_case c = edf_must_open(&file, false);
  assert_string_equal(c.recording->channels[1].raw_name, "Gr\xC3\xB6\xC3\x9F" "e");
  assert_true(edf_case_warned(&c, "text_encoding"));
  assert_string_equal(c.recording->start_time, "2002-03-02T14:27:05.5");
  sn_annotations *list;
  sn_error err;
  if (sn_recording_annotations(c.recording, NULL, &list, &err) != SN_OK) fail_msg("%s", err.message);
  static const struct {
    double onset, duration;
    const char *text;
    int channel;
  } expected[] = {{-2, NAN, "early", -1},
                  {0.5, 0.25, "Gr\xC3\xB6\xC3\x9F" "e", -1},
                  {0.5, 0.25, "second", -1},
                  {0.6, NAN, "x", 0},
                  {0.75, NAN, "Gr\xC3\xB6\xC3\x9F" "e", -1},
                  {1, NAN, "with the time", -1},
                  {1.25, NAN, "EEG", -1}};
  assert_int_equal(list->n, 7);
  for (int i = 0; i < 7; i++) {
    const sn_annotation *a = &list->items[i];
    assert_string_equal(a->text, expected[i].text);
    assert_true(a->onset_s == expected[i].onset && a->channel == expected[i].channel);
    assert_true(a->duration_s == expected[i].duration || (isnan(a->duration_s) && isnan(expected[i].duration)));
    assert_int_equal(a->sample, (int64_t)floor(expected[i].onset * 10 + 0.5));
  }
  assert_int_equal(list->n_warnings, 1);
  assert_string_equal(list->warnings[0].code, "text_encoding");
  char position[32];
  snprintf(position, sizeof position, "byte %lld:", (long long)latin1);
  assert_non_null(strstr(list->warnings[0].message, position));
  sn_annotations_destroy(list);
  edf_close(&c);
}

static void damaged_lists(void **state) {
  static const struct {
    const char *text;
    size_t n;
    int found; /* when tolerant */
  } cases[] = {
#define CASE(literal, n) {literal, sizeof(literal) - 1, n}
      CASE("+0\x14\x14\0one\x14text\x14\0+1\x14two\x14\0", 1),
      CASE("+0\x14\x14\0+1\x15" "long\x14text\x14\0+2\x14two\x14\0", 1),
      CASE("+0\x14\x14\0+1\x14" "done\x14" "open", 1),
      CASE("+0\x14\x14\0+1\x14" "done\x14" "open\0+2\x14" "after\x14\0", 2),
      CASE("+0\x14\x14\0+1", 0),
      CASE("+0\x14\x14\0+\x14text\x14\0+1\x15-2\x14text\x14\0", 0),
      CASE("+0\x14\x14\0+99999999999\x14text\x14\0", 0),
      CASE("+0\x14\x14\0                ", 0)};
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 1), LISTS(20)};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      edf_head(&file, false, "EDF+C", "1", "1", signals, 2);
      edf_sample(&file, 1);
      edf_lists(&file, 20, cases[k].text, cases[k].n);
      edf_case c = edf_must_open(&file, tolerant == 1);
      near(edf_value(&c, 0, 0, 0), 1, 1e-12); /* signals are read whatever the lists hold */
      sn_annotations *list = NULL;
      sn_error err;
      sn_status status = sn_recording_annotations(c.recording, NULL, &list, &err);
      if (tolerant == 0) {
        assert_int_equal(status, SN_E_CORRUPT);
        assert_true(err.offset > 256 * 3);
      } else {
        assert_int_equal(status, SN_OK);
        assert_int_equal(list->n, cases[k].found);
        assert_true(edf_warned(list->warnings, list->n_warnings, "tal"));
      }
      sn_annotations_destroy(list);
      edf_close(&c);
    }
  }
}

static void annotations_alone(void **state) {
  static const edf_case_signal signals[] = {LISTS(30)};
  edf_head(&file, false, "EDF+C", "1", "0", signals, 1);
  EDF_LISTS(&file, 30, "+0\x14\x14\0+30\x15" "150\x14Sleep stage W\x14\0");
  edf_case c = edf_must_open(&file, false);
  assert_true(c.recording->annotations_alone && c.recording->n_channels == 0 && c.recording->n_segments == 0);
  assert_true(sn_recording_duration(c.recording) == 0);
  sn_annotations *list;
  assert_int_equal(sn_recording_annotations(c.recording, NULL, &list, NULL), SN_OK);
  assert_true(list->n == 1 && list->items[0].onset_s == 30 && list->items[0].duration_s == 150 && list->rate == 1000);
  assert_true(list->items[0].sample == 30000);
  assert_string_equal(list->items[0].code, "Sleep stage W");
  sn_annotations_destroy(list);
  edf_close(&c);
}

/* ---- header fields ---- */

static void person(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 1)};
  static const struct {
    const char *patient, *id, *sex;
    double age;
  } cases[] = {{"MCH-0234567 F 02-MAY-1951 Haagse_Harry", "MCH-0234567", "F", 50},
               {"MCH-0234567 F 02-MAR-1951 Haagse_Harry", "MCH-0234567", "F", 51},
               {"X X X X", "", "", NAN},
               {"X M X Harry", "", "M", NAN},
               {"00000258 M 01-JAN-1900 00000258 Age:55", "00000258", "M", 55},
               {"Harry Haagse", "", "", NAN},
               {"Harry F Haagse 02-MAY-1951", "", "", NAN},
               {"", "", "", NAN},
               {"Haagse F 02-MAY-1951 Haagse_Harry", "", "F", 50}, /* a name where the code should be */
               {"haagse01 F 02-MAY-1951 Haagse_Harry", "", "F", 50},
               {"Haagse^Harry F X X", "", "F", NAN},
               {"Haagse,Harry F X X", "", "F", NAN},
               {"19510502 F X X", "", "F", NAN}, /* a birthdate */
               {"02-MAY-1951 F X X", "", "F", NAN},
               {"2.5.1951 F X X", "", "F", NAN},
               {"S001 M X S001", "S001", "M", NAN}, /* many write the code twice */
               {"19511302 M X X", "19511302", "M", NAN},
               {"subject M X X", "subject", "M", NAN},
               {"id F 31-FEB-19x1 name", "", "", NAN}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    edf_head(&file, false, "EDF+C", "1", "1", signals, 1);
    edf_patch(&file, 8, 80, cases[k].patient);
    edf_sample(&file, 1);
    edf_case c = edf_must_open(&file, false);
    assert_string_equal(c.recording->subject_id, cases[k].id);
    assert_string_equal(c.recording->sex, cases[k].sex);
    assert_true(c.recording->age_years == cases[k].age || (isnan(c.recording->age_years) && isnan(cases[k].age)));
    edf_close(&c);
  }
}

/* Plain EDF promises nothing of the patient field: what has no digit there may be a name. */
static void person_of_plain_edf(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 1)};
  static const char *const cases[][2] = {{"Haagse F 02-MAY-1951 Harry", ""}, {"S01 F X X", "S01"}, {"19510502 F X X", ""}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    edf_head(&file, false, "", "1", "1", signals, 1);
    edf_patch(&file, 8, 80, cases[k][0]);
    edf_sample(&file, 1);
    edf_case c = edf_must_open(&file, false);
    assert_string_equal(c.recording->subject_id, cases[k][1]);
    edf_close(&c);
  }
}

static void dates(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 1)};
  static const struct {
    const char *recording, *date, *time, *iso;
  } cases[] = {{"Startdate 02-MAR-2002 X X X", "02.03.02", "14.27.05", "2002-03-02T14:27:05"},
               {"", "02.03.84", "00.00.00", "2084-03-02T00:00:00"},
               {"", "02.03.85", "23.59.59", "1985-03-02T23:59:59"},
               {"Startdate 29-feb-2096 X", "29.02.yy", "01.02.03", "2096-02-29T01:02:03"},
               {"", "00.00.00", "00.00.00", ""},
               {"", "45.13.99", "25.61.00", ""},
               {"", "02/03/02", "14:27:05", "2002-03-02T14:27:05"}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    edf_head(&file, false, "", "1", "1", signals, 1);
    edf_patch(&file, 88, 80, cases[k].recording);
    edf_patch(&file, 168, 8, cases[k].date);
    edf_patch(&file, 176, 8, cases[k].time);
    edf_sample(&file, 1);
    edf_case c = edf_must_open(&file, false);
    assert_string_equal(c.recording->start_time, cases[k].iso);
    assert_true(edf_case_warned(&c, "start_time") == (cases[k].iso[0] == '\0'));
    edf_close(&c);
  }
}

static void bad_headers(void **state) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 2), SIGNAL("EEG Pz", "uV", 2)};
  static const struct {
    int64_t at;
    int width;
    const char *text;
    sn_status status;
    const char *word;
  } cases[] = {{0, 8, "1", SN_E_FORMAT, "EDF"},
               {252, 4, "0", SN_E_CORRUPT, "signals"},
               {252, 4, "-2", SN_E_CORRUPT, "signals"},
               {252, 4, "two", SN_E_CORRUPT, "signals"},
               {252, 4, "9999", SN_E_CORRUPT, NULL},
               {236, 8, "-7", SN_E_CORRUPT, "records"},
               {236, 8, "x", SN_E_CORRUPT, "records"},
               {184, 8, "", SN_E_CORRUPT, "header length"},
               {192, 8, "EDF+X", SN_E_CORRUPT, "EDF+"},
               {256 + 2 * 216, 8, "-5", SN_E_CORRUPT, "samples of signal 0"},
               {256 + 2 * 216, 8, "0", SN_E_CORRUPT, "samples of signal 0"},
               {256 + 2 * 216 + 8, 8, "1.5", SN_E_CORRUPT, "samples of signal 1"},
               {256 + 2 * 104, 8, "low", SN_E_CORRUPT, "physical minimum 0"},
               {256 + 2 * 120, 8, "nan", SN_E_CORRUPT, "digital minimum 0"}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      edf_head(&file, false, "", "1", "1", signals, 2);
      edf_patch(&file, cases[k].at, cases[k].width, cases[k].text);
      for (int i = 0; i < 4; i++) edf_sample(&file, i);
      if (cases[k].at == 184 && tolerant == 1) continue;
      /* Where the length contradicts the number of signals, tolerance finds that the file is too short. */
      const char *word = cases[k].word != NULL ? cases[k].word : tolerant == 1 ? "truncated" : "header";
      edf_must_fail(&file, tolerant == 1, cases[k].status, word);
    }
  }
  /* A stated length that contradicts the number of signals; samples of a size that no file has. */
  edf_head(&file, false, "", "1", "1", signals, 2);
  for (int i = 0; i < 4; i++) edf_sample(&file, i);
  edf_patch(&file, 184, 8, "512");
  edf_must_fail(&file, false, SN_E_CORRUPT, "header");
  edf_case c = edf_must_open(&file, true);
  assert_true(edf_case_warned(&c, "header_bytes"));
  near(edf_value(&c, 1, 0, 1), 3, 1e-12);
  edf_close(&c);
  edf_patch(&file, 184, 8, "768");
  edf_patch(&file, 256 + 2 * 216, 8, "99999999");
  edf_must_fail(&file, false, SN_E_CORRUPT, "records");
  c = edf_open(&file, true);
  assert_true(c.status == SN_OK && c.recording->n_segments == 0); /* sn_recording_open refuses what has no sample */
  edf_close(&c);
}

static void kinds(void **state) {
  static const struct {
    const char *label;
    sn_sensor_kind kind;
  } cases[] = {{"EEG Fp1-REF", SN_SENSOR_EEG}, {"ECG ECG", SN_SENSOR_ECG},       {"EKG1", SN_SENSOR_ECG},
               {"Fp1", SN_SENSOR_EEG},         {"Fc5.", SN_SENSOR_EEG},          {"Cz..", SN_SENSOR_EEG},
               {"C3-A2", SN_SENSOR_EEG},       {"EOG left", SN_SENSOR_EOG},      {"EMG chin", SN_SENSOR_EMG},
               {"Resp oro-nasal", SN_SENSOR_RESPIRATION}, {"Temp rectal", SN_SENSOR_TEMPERATURE},
               {"Status", SN_SENSOR_TRIGGER},  {"SaO2", SN_SENSOR_OTHER},        {"Event marker", SN_SENSOR_TRIGGER},
               {"DC01", SN_SENSOR_OTHER}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    edf_case_signal signal = SIGNAL(cases[k].label, "uV", 1);
    edf_head(&file, false, "", "1", "1", &signal, 1);
    edf_sample(&file, 1);
    edf_case c = edf_must_open(&file, false);
    if (c.recording->channels[0].kind != cases[k].kind)
      fail_msg("%s: %s", cases[k].label, sn_sensor_kind_name(c.recording->channels[0].kind));
    assert_string_equal(c.recording->channels[0].raw_name, cases[k].label);
    edf_close(&c);
  }
}

/* ---- together, cut short, out of memory ---- */

/* Several rates, annotations, two segments, and a trigger word: what the next tests run on. */
static void make_everything(void) {
  static const edf_case_signal signals[] = {SIGNAL("EEG Cz", "uV", 12), LISTS(10), SIGNAL("ECG", "mV", 4),
                                            SIGNAL("Status", "", 12), SIGNAL("EEG Pz", "uV", 6)};
  edf_head(&file, false, "EDF+D", "5", "0.5", signals, 5);
  for (int record = 0; record < 5; record++) {
    char text[32];
    for (int i = 0; i < 12; i++) edf_sample(&file, 100 * record + i);
    int n = snprintf(text, sizeof text, "+%d.%d\x14\x14%c+1\x14T1\x14", record < 3 ? record / 2 : 6 + record / 2,
                     record % 2 * 5, 0);
    edf_lists(&file, 10, text, (size_t)n + 1);
    for (int i = 0; i < 4; i++) edf_sample(&file, -(100 * record + i));
    for (int i = 0; i < 12; i++) edf_sample(&file, i / 4);
    for (int i = 0; i < 6; i++) edf_sample(&file, 10 * record + i);
  }
}

static void together(void **state) {
  make_everything();
  edf_case c = edf_must_open(&file, false);
  const sn_recording *r = c.recording;
  const int64_t channels[4] = {3, 0, 1, 0}; /* any order, twice the same */
  assert_true(r->n_segments == 2 && r->n_channels == 4 && r->rate_num == 4);
  for (int64_t s = 0; s < 2; s++) {
    for (int64_t first = 0; first < r->segments[s].n_frames; first++) {
      for (int64_t n = 0; n <= r->segments[s].n_frames - first; n++) {
        double values[4][64], alone[64], *const to[4] = {values[0], values[1], values[2], values[3]};
        assert_int_equal(sn_recording_read_channels(r, channels, 4, s, first, n, to, NULL), SN_OK);
        for (int i = 0; i < 4; i++) {
          const int64_t per = r->channels[channels[i]].samples_per_frame;
          assert_int_equal(sn_recording_read(r, channels[i], s, first * per, n * per, alone, NULL), SN_OK);
          if (n > 0) assert_memory_equal(values[i], alone, (size_t)(n * per) * sizeof(double));
        }
      }
    }
  }
  edf_close(&c);
}

static void read_all(const sn_recording *r) {
  double values[256];
  int32_t stored[256];
  for (int64_t i = 0; i < r->n_channels; i++) {
    for (int64_t s = 0; s < r->n_segments; s++) {
      int64_t n = sn_recording_samples(r, i, s);
      assert_int_equal(sn_recording_read_stored(r, i, s, 0, n, stored, NULL), SN_OK);
      if (!r->channels[i].uncalibrated) assert_int_equal(sn_recording_read(r, i, s, 0, n, values, NULL), SN_OK);
    }
  }
}

static void cut_at_every_byte(void **state) {
  make_everything();
  int64_t opened = 0;
  for (int64_t n = 0; n < file.n; n++) {
    uint8_t *copy = malloc((size_t)n + 1); /* of the exact size, for the sanitizer */
    memcpy(copy, file.data, (size_t)n);
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      const sn_open_options options = {.tolerant = tolerant == 1};
      edf_case c = edf_open_with(copy, n, &options);
      if (tolerant == 0 || n < 256 * 6) assert_int_equal(c.status, SN_E_CORRUPT);
      if (c.status == SN_OK) {
        sn_annotations *list = NULL;
        opened++;
        assert_int_equal(sn_recording_samples(c.recording, 0, -1), (n - 256 * 6) / 88 * 12);
        read_all(c.recording);
        assert_int_equal(sn_recording_annotations(c.recording, NULL, &list, NULL), SN_OK);
        sn_annotations_destroy(list);
      }
      edf_close(&c);
    }
    free(copy);
  }
  assert_true(opened == 5 * 88);
}

static void out_of_memory(void **state) {
  make_everything();
  for (fault_begin(); fault_next();) {
    sn_annotations *list = NULL;
    sn_error err;
    edf_case c = edf_open(&file, false);
    sn_status status = c.status;
    if (status == SN_OK) {
      double values[70][64], *to[70];
      int64_t channels[70];
      for (int i = 0; i < 70; i++) { /* more than fit on the stack of read_channels */
        to[i] = values[i];
        channels[i] = 0;
      }
      status = sn_recording_read_channels(c.recording, channels, 70, 0, 0, 2, to, &err);
    }
    if (status == SN_OK) status = sn_recording_annotations(c.recording, NULL, &list, &err);
    fault_check(status);
    sn_annotations_destroy(list);
    edf_close(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(units),         cmocka_unit_test(gaps),          cmocka_unit_test(rates),
      cmocka_unit_test(duration_zero), cmocka_unit_test(counts),        cmocka_unit_test(calibration),
      cmocka_unit_test(triggers),      cmocka_unit_test(samples_of_24_bits), cmocka_unit_test(decoding),
      cmocka_unit_test(texts),
      cmocka_unit_test(damaged_lists), cmocka_unit_test(annotations_alone), cmocka_unit_test(person), cmocka_unit_test(person_of_plain_edf),
      cmocka_unit_test(dates),         cmocka_unit_test(bad_headers),   cmocka_unit_test(kinds),
      cmocka_unit_test(together),      cmocka_unit_test(cut_at_every_byte), cmocka_unit_test(out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
