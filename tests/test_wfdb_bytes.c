/* needs: full */
/* WFDB from hand-made bytes: each format against a bit-by-bit reference, fields of the header, damage of every kind. */
#include "wfdb_case.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "alloc_fault.h"
#include "core/philox.h"
#include "modalities/formats/wfdb/wfdb_parts.h"

static uint32_t random_state = 12345;
static uint32_t random_u32(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  return random_state ^= random_state << 5;
}

/* ---- the reference: bits by the words of signal(5), one sample at a time ---- */

static uint32_t bit(const uint8_t *b, int64_t i) { return b[i >> 3] >> (i & 7) & 1; }
static uint32_t bits(const uint8_t *b, int64_t first, int n) {
  uint32_t v = 0;
  for (int i = 0; i < n; i++) v |= bit(b, first + i) << i;
  return v;
}
static int32_t as_signed(uint32_t v, int n) { return v >> (n - 1) & 1 ? (int32_t)((int64_t)v - ((int64_t)1 << n)) : (int32_t)v; }

static int32_t reference_sample(int format, const uint8_t *b, int64_t i) {
  switch (format) {
    case 16: return as_signed(bits(b, 16 * i, 16), 16);
    case 24: return as_signed(bits(b, 24 * i, 24), 24);
    case 32: return as_signed(bits(b, 32 * i, 32), 32);
    case 61: return as_signed(bits(b, 16 * i + 8, 8) | bits(b, 16 * i, 8) << 8, 16);
    case 80: return (int32_t)b[i] - 128;
    case 160: return (int32_t)bits(b, 16 * i, 16) - 32768;
    case 212: {
      int64_t at = i / 2 * 24;
      return as_signed(i % 2 == 0 ? bits(b, at, 12) : bits(b, at + 16, 8) | bits(b, at + 12, 4) << 8, 12);
    }
    case 310: {
      int64_t at = i / 3 * 32;
      if (i % 3 == 2) return as_signed(bits(b, at + 11, 5) | bits(b, at + 27, 5) << 5, 10);
      return as_signed(bits(b, at + 16 * (i % 3) + 1, 10), 10);
    }
    case 311: return as_signed(bits(b, i / 3 * 32 + 10 * (i % 3), 10), 10);
    default: fail(); return 0;
  }
}

static const struct {
  int format;
  int32_t lowest;
} PACKED[] = {{16, -32768}, {24, -8388608}, {32, INT32_MIN}, {61, -32768}, {80, -128},
              {160, -32768}, {212, -2048}, {310, -512}, {311, -512}};
enum { N_PACKED = sizeof PACKED / sizeof PACKED[0] };

static int32_t marked(int k, int32_t v) { return v == PACKED[k].lowest ? INT32_MIN : v; }

/* Windows of several channels at once give the bits of each alone. */
static void windows_of_all_channels(const sn_recording *r, int turns) {
  int64_t frames = r->segments[0].n_frames, width = 0;
  for (int64_t c = 0; c < r->n_channels; c++) width += r->channels[c].samples_per_frame;
  double *together = malloc(sizeof *together * (size_t)(frames * width)), *alone = malloc(sizeof *alone * (size_t)(frames * width));
  for (int turn = 0; turn < turns; turn++) {
    int64_t channels[16], n = 0, first = random_u32() % (uint32_t)frames, count = random_u32() % (uint32_t)(frames - first) + 1;
    double *values[16], *to = together;
    if (turn == 0) first = 0, count = frames;
    for (int64_t c = 0; c < r->n_channels; c++) /* any choice, in any order, also twice */
      if (turn < 2 || random_u32() % 3 != 0) channels[n++] = turn < 2 ? c : random_u32() % (uint32_t)r->n_channels;
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) total += r->channels[channels[i]].samples_per_frame;
    if (total > width) continue;
    for (int64_t i = 0; i < n; i++) {
      values[i] = to;
      to += count * r->channels[channels[i]].samples_per_frame;
    }
    memset(together, 0x55, sizeof *together * (size_t)(frames * width));
    assert_int_equal(sn_recording_read_channels(r, channels, n, 0, first, count, values, NULL), SN_OK);
    for (int64_t i = 0; i < n; i++) {
      int64_t spf = r->channels[channels[i]].samples_per_frame;
      assert_int_equal(sn_recording_read(r, channels[i], 0, first * spf, count * spf, alone, NULL), SN_OK);
      for (int64_t k = 0; k < count * spf; k++) assert_true(values[i][k] == alone[k] || (isnan(values[i][k]) && isnan(alone[k])));
    }
  }
  double *none[1] = {together};
  assert_int_equal(sn_recording_read_channels(r, (const int64_t[]){0}, 1, 0, 1, frames, none, NULL), SN_E_ARGUMENT);
  assert_int_equal(sn_recording_read_channels(r, (const int64_t[]){99}, 1, 0, 0, 1, none, NULL), SN_E_ARGUMENT);
  free(together);
  free(alone);
}

/* Three signals of 1, 2 and 1 samples a frame, a length that leaves the last group half filled, windows of every kind. */
static void formats_against_reference(void **state) {
  enum { FRAMES = 1237 };
  static const int64_t offset[3] = {0, 1, 3}, per_frame[3] = {1, 2, 1};
  for (int k = 0; k < N_PACKED; k++) {
    int64_t n_bytes = 0;
    assert_true(sn_wfdb_codec_bytes(sn_wfdb_codec(PACKED[k].format), 4 * FRAMES, &n_bytes));
    uint8_t *data = malloc((size_t)n_bytes);
    for (int64_t i = 0; i < n_bytes; i++) data[i] = (uint8_t)random_u32();
    char header[256];
    snprintf(header, sizeof header, "r 3 100 %d\nr.dat %d 10 0 0\nr.dat %dx2 10\nr.dat %d 10\n", FRAMES, PACKED[k].format,
             PACKED[k].format, PACKED[k].format);
    wfdb_case c = case_open(header, data, n_bytes, false);
    case_must(&c);
    for (int64_t s = 0; s < 3; s++) {
      int64_t n = FRAMES * per_frame[s];
      int32_t *expected = malloc((size_t)n * sizeof *expected);
      for (int64_t i = 0; i < n; i++)
        expected[i] = marked(k, reference_sample(PACKED[k].format, data, i / per_frame[s] * 4 + offset[s] + i % per_frame[s]));
      case_stored(&c, s, 0, 0, n, expected);
      for (int turn = 0; turn < 50; turn++) {
        int64_t first = random_u32() % (uint32_t)n, count = random_u32() % (uint32_t)(n - first) + 1;
        if (turn % 2) count = count % 7 + 1 < n - first ? count % 7 + 1 : 1;
        case_stored(&c, s, 0, first, count, expected + first);
      }
      free(expected);
    }
    windows_of_all_channels(c.recording, 60);
    case_close(&c);
    /* The same bytes with a skew, behind an offset, and as differences. */
    snprintf(header, sizeof header, "r 3 100 300\nr.dat %d+9 10 0 0\nr.dat %dx2:7 10\nr.dat %d 10\n", PACKED[k].format,
             PACKED[k].format, PACKED[k].format);
    c = case_open(header, data, n_bytes, false);
    case_must(&c);
    windows_of_all_channels(c.recording, 20);
    case_close(&c);
    c = case_open("r 2 100 300\nr.dat 8+9 10\nr.dat 8x2:7 10\n", data, n_bytes, false);
    case_must(&c);
    windows_of_all_channels(c.recording, 20);
    case_close(&c);
    free(data);
  }
}

/* A frame wider than the reader's buffer: one signal with very many samples a frame, another behind it. */
static void wide_frames(void **state) {
  enum { WIDE = 60000, FRAMES = 3 };
  uint8_t *data = malloc(2 * FRAMES * (WIDE + 1));
  int32_t *wide = malloc(sizeof *wide * FRAMES * WIDE), narrow[FRAMES];
  for (int64_t i = 0; i < 2 * FRAMES * (WIDE + 1); i++) data[i] = (uint8_t)random_u32();
  for (int64_t f = 0; f < FRAMES; f++) {
    for (int64_t j = 0; j < WIDE; j++) wide[f * WIDE + j] = marked(0, reference_sample(16, data, f * (WIDE + 1) + j));
    narrow[f] = marked(0, reference_sample(16, data, f * (WIDE + 1) + WIDE));
  }
  wfdb_case c = case_open("r 2 1 3\nr.dat 16x60000 1\nr.dat 16 1\n", data, 2 * FRAMES * (WIDE + 1), false);
  case_must(&c);
  case_stored(&c, 0, 0, 0, FRAMES * WIDE, wide);
  case_stored(&c, 0, 0, 59990, 60020, wide + 59990);
  case_stored(&c, 1, 0, 0, FRAMES, narrow);
  windows_of_all_channels(c.recording, 6);
  case_close(&c);
  free(data);
  free(wide);
}

static void differences(void **state) {
  enum { FRAMES = 10000 };
  int8_t *data = malloc(3 * FRAMES);
  int32_t *expected[2] = {malloc(sizeof(int32_t) * FRAMES), malloc(sizeof(int32_t) * 2 * FRAMES)};
  for (int64_t i = 0; i < 3 * FRAMES; i++) data[i] = (int8_t)random_u32();
  int32_t a = -5, b = 100;
  for (int64_t f = 0; f < FRAMES; f++) {
    expected[0][f] = a += data[3 * f];
    expected[1][2 * f] = b += data[3 * f + 1];
    expected[1][2 * f + 1] = b += data[3 * f + 2];
  }
  wfdb_case c = case_open("r 2 100 10000\nr.dat 8 10 8 0 -5 0 0 a\nr.dat 8x2 10 8 0 100 0 0 b\n", data, 3 * FRAMES, false);
  case_must(&c);
  case_stored(&c, 1, 0, 19990, 10, expected[1] + 19990); /* the last first: the index is built on the way */
  case_stored(&c, 0, 0, 0, FRAMES, expected[0]);
  case_stored(&c, 1, 0, 0, 2 * FRAMES, expected[1]);
  for (int turn = 0; turn < 100; turn++) {
    int64_t first = random_u32() % (2 * FRAMES), count = random_u32() % (uint32_t)(2 * FRAMES - first) + 1;
    case_stored(&c, 1, 0, first, count, expected[1] + first);
  }
  case_close(&c);
  free(data);
  free(expected[0]);
  free(expected[1]);
}

/* ---- the written-down cases ---- */

static void packed_pairs_odd_count(void **state) {
  static const uint8_t data[5] = {0x01, 0xF0, 0xFF, 0xFF, 0x07};
  static const int32_t expected[3] = {1, -1, 2047};
  wfdb_case c = case_open("r 1 100 3\nr.dat 212 200\n", data, 5, false);
  case_must(&c);
  case_stored(&c, 0, 0, 0, 3, expected);
  case_stored(&c, 0, 0, 1, 2, expected + 1);
  case_close(&c);
  c = case_open("r 1 100 3\nr.dat 212 200\n", data, 4, false);
  case_must_fail(&c, SN_E_CORRUPT, "3 frames announced, 2 whole ones found");
  c = case_open("r 1 100 3\nr.dat 212 200\n", data, 4, true);
  case_must(&c);
  assert_int_equal(sn_recording_samples(c.recording, 0, -1), 2);
  assert_true(case_warned(&c, "truncated", 1));
  case_stored(&c, 0, 0, 0, 2, expected);
  case_close(&c);
}

static void samples_per_frame_are_kept(void **state) {
  static const uint8_t data[12] = {10, 0, 20, 0, 5, 0, 30, 0, 40, 0, 6, 0};
  static const int32_t a[4] = {10, 20, 30, 40}, b[2] = {5, 6};
  wfdb_case c = case_open("r 2 100 2\nr.dat 16x2 1 0 0 10 100 0 A\nr.dat 16 1 0 0 5 11 0 B\n", data, 12, false);
  case_must(&c);
  case_stored(&c, 0, 0, 0, 4, a);
  case_stored(&c, 1, 0, 0, 2, b);
  assert_true(sn_recording_rate(c.recording, 0) == 200 && sn_recording_rate(c.recording, 1) == 100);
  assert_int_equal(c.recording->vtable->verify(c.recording, NULL), SN_OK);
  case_close(&c);
}

static void zero_gain(void **state) {
  static const uint8_t data[2] = {0xC8, 0x04}; /* 1224 */
  static const char *const headers[] = {"r 1 100 1\nr.dat 16 0 11 1024\n", "r 1 100 1\nr.dat 16 0(1024)/mV 11 0\n"};
  for (int i = 0; i < 2; i++) {
    double value = 0;
    wfdb_case c = case_open(headers[i], data, 2, false);
    case_must(&c);
    assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_OK);
    assert_true(value == 1.0);
    assert_true(c.recording->channels[0].calibration_assumed && case_warned(&c, "gain_absent", 1));
    case_close(&c);
  }
  wfdb_case c = case_open("r 1\nr.dat 16\n", data, 2, false); /* nothing stated at all */
  case_must(&c);
  assert_true(c.recording->rate_num == 250 && c.recording->rate_den == 1 && case_warned(&c, "rate_absent", 1));
  assert_true(c.recording->channels[0].unit_assumed && strcmp(c.recording->channels[0].unit, "mV") == 0);
  double value = 0;
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_OK);
  assert_true(value == 1224.0 / 200);
  case_close(&c);
}

static void missing_values(void **state) {
  static const struct {
    int format;
    int64_t n;
    uint8_t bytes[8];
    int32_t second;
  } rows[] = {
      {16, 4, {0x00, 0x80, 0x01, 0x80}, -32767},
      {24, 6, {0, 0, 0x80, 1, 0, 0x80}, -8388607},
      {32, 8, {0, 0, 0, 0x80, 1, 0, 0, 0x80}, -2147483647},
      {61, 4, {0x80, 0x00, 0x80, 0x01}, -32767},
      {80, 2, {0x00, 0x01}, -127},
      {160, 4, {0x00, 0x00, 0x01, 0x00}, -32767},
      {212, 3, {0x00, 0x88, 0x01}, -2047},
      {310, 4, {0x00, 0x04, 0x02, 0x04}, -511},
      {311, 4, {0x00, 0x06, 0x08, 0x00}, -511},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char header[80];
    double values[2] = {0};
    snprintf(header, sizeof header, "r 1 100 2\nr.dat %d 1(0)/mV\n", rows[i].format);
    wfdb_case c = case_open(header, rows[i].bytes, rows[i].n, false);
    case_must(&c);
    int32_t expected[2] = {INT32_MIN, rows[i].second};
    case_stored(&c, 0, 0, 0, 2, expected);
    assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 2, values, NULL), SN_OK);
    assert_true(isnan(values[0]) && values[1] == rows[i].second);
    case_close(&c);
  }
}

static void skew_loses_the_end(void **state) {
  static const uint8_t data[16] = {1, 0, 10, 0, 2, 0, 20, 0, 3, 0, 30, 0, 4, 0, 40, 0};
  static const int32_t a[4] = {1, 2, 3, 4}, b[4] = {30, 40, INT32_MIN, INT32_MIN};
  wfdb_case c = case_open("r 2 100 4\nr.dat 16 1 0 0 1 10 0 A\nr.dat 16:2 1 0 0 10 100 0 B\n", data, 16, false);
  case_must(&c);
  case_stored(&c, 0, 0, 0, 4, a);
  case_stored(&c, 1, 0, 0, 4, b);
  case_stored(&c, 1, 0, 3, 1, b + 3);
  assert_int_equal(c.recording->vtable->verify(c.recording, NULL), SN_OK); /* skewed samples are in the checksum */
  assert_int_equal(c.recording->n_warnings, 1);                            /* units alone */
  case_close(&c);
}

static void checksums_and_initial_values(void **state) {
  static const uint8_t data[8] = {1, 0, 10, 0, 2, 0, 20, 0};
  sn_error err;
  wfdb_case c = case_open("r 2 100 2\nr.dat 16 1/mV 0 0 1 3 0 A\nr.dat 16 1/mV 0 0 10 31 0 lead B\n", data, 8, false);
  case_must(&c);
  assert_int_equal(c.recording->n_warnings, 0);
  assert_int_equal(c.recording->vtable->verify(c.recording, &err), SN_E_CORRUPT);
  assert_non_null(strstr(err.message, "lead B"));
  assert_non_null(strstr(err.message, "checksum 31 stated, 30 found"));
  case_close(&c);
  c = case_open("r 2 100 2\nr.dat 16 1/mV 0 0 7 0 0 A\nr.dat 16 1/mV 0 0 8\n", data, 8, false);
  case_must(&c);
  assert_true(case_warned(&c, "initial_value", 2) && case_warned(&c, "checksum_absent", 2));
  assert_int_equal(c.recording->vtable->verify(c.recording, &err), SN_OK);
  case_close(&c);
}

/* ---- headers ---- */

static void every_field(void **state) {
  static const uint8_t data[26] = {0};
  wfdb_case c = case_open("# before\r\n\r\nr 2 1.052e+02/720.5(12) 3 10:11:12.5 04/05/2001\r\n"
                          "r.dat 16x1:1+14 -1.5e2(-7)/uV 12 3 0 0 512 Resp. Imp. \xB5 \r\n\r\n"
                          "r.dat 16 20(+4)/mmHg 12 0 0 0 0  ABP\r\n#Age: 38\r\n# Sex: Female\r\n# B\xE9ta\r\n",
                          data, 26, false);
  case_must(&c);
  const sn_recording *r = c.recording;
  assert_true(r->rate_num == 526 && r->rate_den == 5);
  assert_string_equal(r->start_time, "2001-05-04T10:11:12.5");
  assert_string_equal(r->channels[0].raw_name, "Resp. Imp. \xC2\xB5");
  assert_string_equal(r->channels[1].name, "ABP");
  assert_true(r->channels[0].kind == SN_SENSOR_RESPIRATION && r->channels[1].kind == SN_SENSOR_PRESSURE);
  assert_true(r->channels[0].gain == -150 && r->channels[0].baseline == -7 && r->channels[1].baseline == 4);
  assert_string_equal(r->channels[0].unit, "uV");
  assert_string_equal(r->variant, "16+14");
  assert_true(r->age_years == 38);
  assert_string_equal(r->sex, "F");
  assert_int_equal(r->n_comments, 4);
  assert_string_equal(r->comments[3], "B\xC3\xA9ta");
  assert_int_equal(r->n_files, 2);
  assert_true(case_warned(&c, "text_encoding", 0));
  case_close(&c);
}

static void start_times(void **state) {
  static const struct {
    const char *first, *second, *iso;
    bool understood;
  } rows[] = {
      {"10:44:18.529", "04/05/2704", "2704-05-04T10:44:18.529", true}, {"2014-05-08", "05:05:15", "2014-05-08T05:05:15", true},
      {"12-May-2020", "12:33:59", "2020-05-12T12:33:59", true},        {"8:26:04", "26/10/1994", "1994-10-26T08:26:04", true},
      {"19:46:25.757", NULL, "", true},                                {"30:00", "01/02/2003", "2003-02-01T00:30:00", true},
      {"05/06/2007", NULL, "2007-06-05T00:00:00", true},               {"noon", NULL, "", false},
      {"10:00:00", "00/00/0000", "", false},                           {"25:00:00", NULL, "", false},
      {"10:00:00", "12-Foo-2020", "", false},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char iso[40];
    assert_int_equal(sn_wfdb_parse_start(rows[i].first, rows[i].second, iso), rows[i].understood);
    if (rows[i].understood) assert_string_equal(iso, rows[i].iso);
  }
}

static void names_and_persons(void **state) {
  static const struct {
    const char *raw, *unit, *name;
    sn_sensor_kind kind;
  } names[] = {
      {"i", "mV", "I", SN_SENSOR_ECG},           {"avr", "mV", "aVR", SN_SENSOR_ECG},   {"AVF", "", "aVF", SN_SENSOR_ECG},
      {"v1", "", "V1", SN_SENSOR_ECG},           {"MLII", "", "MLII", SN_SENSOR_ECG},   {"ECG lead II", "", "II", SN_SENSOR_ECG},
      {"ECG", "", "ECG", SN_SENSOR_ECG},         {"ECG_2", "", "ECG_2", SN_SENSOR_ECG}, {"ECG1", "", "ECG1", SN_SENSOR_ECG},
      {"PLETH", "NU", "PLETH", SN_SENSOR_PPG},   {"ART", "mmHg", "ART", SN_SENSOR_PRESSURE},
      {"CVP", "", "CVP", SN_SENSOR_PRESSURE},    {"RESP", "", "RESP", SN_SENSOR_RESPIRATION},
      {"SpO2", "%", "SpO2", SN_SENSOR_OTHER},    {"x", "mmHg", "x", SN_SENSOR_PRESSURE}, {"EEG Fpz-Cz", "uV", "Fpz-Cz", SN_SENSOR_EEG},
      {"Angle", "degrees", "Angle", SN_SENSOR_OTHER}, {"Vision", "", "Vision", SN_SENSOR_OTHER},
  };
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    char name[SN_CHANNEL_NAME];
    sn_sensor_kind kind;
    sn_wfdb_identify(names[i].raw, names[i].unit, name, &kind);
    assert_string_equal(name, names[i].name);
    assert_int_equal(kind, names[i].kind);
  }
  static const struct {
    const char *comment;
    double age; /* -1: none */
    const char *sex;
  } persons[] = {
      {"Age: 38", 38, ""},         {"Sex: Female", -1, "F"},   {"age: 81", 81, ""},          {"69 M 1085 1629 x1", 69, "M"},
      {"<age>: 25  <sex>: M  <diagnoses>: (none)", 25, "M"},   {"<age>: ?? <sex>: ?", -1, ""}, {"Age: NaN", -1, ""},
      {"Aldomet, Inderal", -1, ""}, {"Age: 999", -1, ""},      {"ECG date: 01/10/1990", -1, ""}, {"Dosage: 5", -1, ""},
      {"69 Meters", -1, ""},       {"Sex: Male", -1, "M"},     {"Sex: Unknown", -1, ""},     {"23 F x1", 23, "F"},
  };
  for (size_t i = 0; i < sizeof persons / sizeof persons[0]; i++) {
    double age = NAN;
    char sex[8] = "";
    sn_wfdb_parse_person(persons[i].comment, &age, sex);
    assert_true(persons[i].age < 0 ? isnan(age) : age == persons[i].age);
    assert_string_equal(sex, persons[i].sex);
  }
}

static void headers_that_must_fail(void **state) {
  static const uint8_t data[64] = {0};
  static const struct {
    const char *header;
    sn_status status;
    const char *word;
  } rows[] = {
      {"", SN_E_CORRUPT, "no record line"},
      {"# only a comment\n", SN_E_CORRUPT, "no record line"},
      {"r\n", SN_E_CORRUPT, "number of signals"},
      {"r x\n", SN_E_CORRUPT, "number of signals"},
      {"r 0 100 5\n", SN_E_CORRUPT, "no signal"},
      {"r 1000 100 5\nr.dat 16\n", SN_E_CORRUPT, "announces 1000 signals"},
      {"r 4000000000 100 5\n", SN_E_CORRUPT, "number of signals"},
      {"r 2 100 5\nr.dat 16\n", SN_E_CORRUPT, "1 lines of them"},
      {"r 1 0 5\nr.dat 16\n", SN_E_CORRUPT, "sampling rate"},
      {"r 1 -3 5\nr.dat 16\n", SN_E_CORRUPT, "sampling rate"},
      {"r 1 nan 5\nr.dat 16\n", SN_E_CORRUPT, "sampling rate"},
      {"r 1 100 99999999999999999999\nr.dat 16\n", SN_E_CORRUPT, "number of samples"},
      {"r 1 100 -5\nr.dat 16\n", SN_E_CORRUPT, "number of samples"},
      {"r 1 100 4611686018427387904\nr.dat 16\n", SN_E_CORRUPT, "frames announced"},
      {"r 1 100 9223372036854775807\nr.dat 16x65536\n", SN_E_CORRUPT, "frames announced"},
      {"r 1 100 5\nr.dat 16x0\n", SN_E_CORRUPT, "samples per frame"},
      {"r 1 100 5\nr.dat 16x99999999\n", SN_E_CORRUPT, "samples per frame"},
      {"r 1 100 5\nr.dat 16:-1\n", SN_E_CORRUPT, "skew"},
      {"r 1 100 5\nr.dat 16+-1\n", SN_E_CORRUPT, "byte offset"},
      {"r 1 100 5\nr.dat 16+4611686018427387903\n", SN_E_CORRUPT, "begin at byte 4611"},
      {"r 1 100 5\nr.dat 16+65\n", SN_E_CORRUPT, "begin at byte 65"},
      {"r 1 100 5\nr.dat\n", SN_E_CORRUPT, "signal format"},
      {"r 1 100 5\nr.dat 99\n", SN_E_UNSUPPORTED, "signal format 99"},
      {"r 1 100 5\nr.dat 0\n", SN_E_UNSUPPORTED, "signal format 0"},
      {"r 1 100 5\nr.dat 16 nan\n", SN_E_CORRUPT, "gain"},
      {"r 1 100 5\nr.dat 16 inf\n", SN_E_CORRUPT, "gain"},
      {"r 1 100 5\nr.dat 16 1e999\n", SN_E_CORRUPT, "gain"},
      {"r 1 100 5\nr.dat 16 200(1\n", SN_E_CORRUPT, "baseline"},
      {"r 1 100 5\nr.dat 16 200 12 MLII\n", SN_E_CORRUPT, "ADC zero"},
      {"r 2 100 5\nr.dat 16\nr.dat 212\n", SN_E_CORRUPT, "formats 16 and 212"},
      {"r 2 100 5\nr.dat 16+2\nr.dat 16+4\n", SN_E_CORRUPT, "byte offsets"},
      {"r 1 100 5\n../r.dat 16\n", SN_E_CORRUPT, "folder"},
      {"r 1 100 5\n/etc/passwd 16\n", SN_E_CORRUPT, "folder"},
      {"r 1 100 5\nother.dat 16\n", SN_E_IO, "other.dat"},
      {"r 1 100 5\n~ 0\n", SN_E_CORRUPT, "no sample"},
      {"r/2 1 100 10\nr 5\nr 5\n", SN_E_CORRUPT, "segments of its own"},
      {"r/1 1 100 10\n~ 5\n", SN_E_CORRUPT, "gaps alone"},
      {"r/0 1 100 10\n", SN_E_CORRUPT, "number of segments"},
      {"r/3 1 100 10\nr 5\n", SN_E_CORRUPT, "announces 3 segments"},
      {"r/1 1 100 10\nnone 10\n", SN_E_IO, "none.hea"},
      {"r/1 1 100 10\n../r 10\n", SN_E_CORRUPT, "folder"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    wfdb_case c = case_open(rows[i].header, data, sizeof data, false);
    if (c.status != rows[i].status) print_message("header: %s", rows[i].header);
    case_must_fail(&c, rows[i].status, rows[i].word);
  }
  const char *const names[1] = {"r.hea"};
  const void *const contents[1] = {"r 1\0 100 5\nr.dat 16\n"};
  const int64_t sizes[1] = {20};
  wfdb_case c = case_open_files(1, names, contents, sizes, false);
  case_must_fail(&c, SN_E_CORRUPT, "zero byte");
}

static void matlab_carrier(void **state) {
  uint8_t data[24 + 12] = {30, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 'v', 'a', 'l', 0,
                           1,  0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0};
  static const char *const names[2] = {"r.hea", "r.mat"};
  static const char header[] = "r 2 100 3\nr.mat 16+24 1/mV\nr.mat 16+24 1/mV\n";
  const void *const contents[2] = {header, data};
  const int64_t sizes[2] = {sizeof header - 1, sizeof data};
  static const int32_t a[3] = {1, 3, 5}, b[3] = {2, 4, 6};
  wfdb_case c = case_open_files(2, names, contents, sizes, false);
  case_must(&c);
  assert_string_equal(c.recording->variant, "16+24");
  case_stored(&c, 0, 0, 0, 3, a);
  case_stored(&c, 1, 0, 0, 3, b);
  case_close(&c);
  for (int word = 0; word < 5; word++) { /* each word of the MATLAB header contradicted */
    data[4 * word]++;
    c = case_open_files(2, names, contents, sizes, false);
    case_must_fail(&c, SN_E_CORRUPT, "r.mat");
    data[4 * word]--;
  }
  data[0]++;
  c = case_open_files(2, names, contents, sizes, true);
  case_must(&c);
  assert_true(case_warned(&c, "mat_header", 1));
  case_close(&c);
}

static void lengths_and_several_files(void **state) {
  static const uint8_t data[12] = {1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0};
  static const char *const names[3] = {"r.hea", "a.dat", "b.dat"};
  static const char *const headers[] = {"r 2 100\na.dat 16 1/mV\nb.dat 16 1/mV\n", "r 2 100 6\na.dat 16 1/mV\nb.dat 16 1/mV\n",
                                        "r 2 100 4\na.dat 16 1/mV\nb.dat 16 1/mV\n"};
  static const int32_t b[6] = {1, 2, 3, 4, INT32_MIN, INT32_MIN};
  for (int h = 0; h < 3; h++) {
    const void *const contents[3] = {headers[h], data, data};
    int64_t sizes[3] = {(int64_t)strlen(headers[h]), 12, 8};
    wfdb_case c = case_open_files(3, names, contents, sizes, false);
    if (h < 2) {
      case_must_fail(&c, SN_E_CORRUPT, "b.dat");
      c = case_open_files(3, names, contents, sizes, true);
      case_must(&c);
      assert_true(case_warned(&c, "truncated", 1));
      case_stored(&c, 0, 0, 0, 6, (const int32_t[]){1, 2, 3, 4, 5, 6});
      case_stored(&c, 1, 0, 0, 6, b);
    } else {
      case_must(&c);
      assert_true(case_warned(&c, "surplus_bytes", 1));
      assert_int_equal(sn_recording_samples(c.recording, 0, -1), 4);
    }
    case_close(&c);
  }
}

/* ---- segments ---- */

static void variable_layout(void **state) {
  static const char *const names[] = {"m.hea", "lay.hea", "p.hea", "p.dat", "q.hea", "q.dat"};
  static const char *const master = "m/5 2 100 15\nlay 0\n~ 4\np 3\n~ 5\nq 3\n";
  static const uint8_t p[6] = {1, 0, 2, 0, 3, 0}, q[12] = {7, 0, 4, 0, 8, 0, 5, 0, 9, 0, 6, 0};
  const void *const contents[] = {master, "lay 2 100 0\n~ 0 10/mV 12 0 0 0 0 I\n~ 0 5/mmHg 12 0 0 0 0 ABP\n",
                                  "p 1 100 3\np.dat 16 2/mV 12 0 1 6 0 I\n", p,
                                  "q 2 100 3\nq.dat 16 5/mmHg 12 0 7 24 0 ABP\nq.dat 16 1/uV 12 0 4 15 0 I\n", q};
  int64_t sizes[6] = {0, 0, 0, 6, 0, 12};
  for (int i = 0; i < 6; i++)
    if (i != 3 && i != 5) sizes[i] = (int64_t)strlen(contents[i]);
  wfdb_case c = case_open_files(6, names, contents, sizes, false);
  case_must(&c);
  const sn_recording *r = c.recording;
  assert_int_equal(r->n_segments, 2);
  assert_true(r->segments[0].start_frame == 4 && r->segments[0].n_frames == 3 && r->segments[0].start_s == 0.04);
  assert_true(r->segments[1].start_frame == 12 && r->segments[1].n_frames == 3);
  double v[3];
  assert_int_equal(sn_recording_read(r, 0, 0, 0, 3, v, NULL), SN_OK);
  assert_true(v[0] == 0.5 && v[1] == 1 && v[2] == 1.5);
  assert_int_equal(sn_recording_read(r, 1, 0, 0, 3, v, NULL), SN_OK); /* absent in this piece */
  assert_true(isnan(v[0]) && isnan(v[1]) && isnan(v[2]));
  assert_int_equal(sn_recording_read(r, 0, 1, 0, 3, v, NULL), SN_OK); /* other place, other unit */
  assert_true(v[0] == 0.004 && v[1] == 0.005 && v[2] == 0.006);
  assert_int_equal(sn_recording_read(r, 1, 1, 0, 3, v, NULL), SN_OK);
  assert_true(v[0] == 1.4 && v[2] == 1.8);
  assert_int_equal(sn_recording_read(r, 0, 1, 1, 3, v, NULL), SN_E_ARGUMENT);
  assert_int_equal(r->vtable->verify(r, NULL), SN_OK);
  assert_int_equal(r->n_files, 6);
  case_close(&c);
}

static void fixed_layout(void **state) {
  static const char *const names[] = {"m.hea", "p.hea", "p.dat", "q.hea", "q.dat"};
  static const uint8_t p[6] = {1, 0, 2, 0, 3, 0}, q[4] = {4, 0, 5, 0};
  const void *contents[] = {"m/2 1 100 5\np 3\nq 2\n", "p 1 100 3\np.dat 16 2/mV\n", p, "q 1 100 2\nq.dat 16 2/mV\n", q};
  int64_t sizes[5] = {18, 23, 6, 23, 4};
  for (int i = 0; i < 5; i++)
    if (i != 2 && i != 4) sizes[i] = (int64_t)strlen(contents[i]);
  wfdb_case c = case_open_files(5, names, contents, sizes, false);
  case_must(&c);
  assert_int_equal(c.recording->n_segments, 1); /* touching, same calibration */
  case_stored(&c, 0, 0, 0, 5, (const int32_t[]){1, 2, 3, 4, 5});
  case_stored(&c, 0, 0, 2, 2, (const int32_t[]){3, 4});
  windows_of_all_channels(c.recording, 20);
  case_close(&c);
  contents[3] = "q 1 100 2\nq.dat 16 4/mV\n"; /* another gain: a segment of its own */
  c = case_open_files(5, names, contents, sizes, false);
  case_must(&c);
  assert_int_equal(c.recording->n_segments, 2);
  case_close(&c);
  static const struct {
    const char *master, *q, *word;
  } bad[] = {{"m/2 1 100 6\np 3\nq 2\n", "q 1 100 2\nq.dat 16 2/mV\n", "add up to 5"},
             {"m/2 1 100 5\np 3\nq 2\n", "q 1 100 1\nq.dat 16 2/mV\n", "own header says 1"},
             {"m/2 1 100 5\np 3\nq 2\n", "q 1 101 2\nq.dat 16 2/mV\n", "Hz"},
             {"m/2 1 100 5\np 3\nq 2\n", "q 1 100 2\nq.dat 16 2/mmHg\n", "unit"},
             {"m/2 1 100 5\np 3\nq 2\n", "q 1 100 2\nq.dat 16x2 2/mV\n", "announced"},
             {"m/2 1 100 0\np 3\nq 0\n", "q 1 100 2\nq.dat 16 2/mV\n", "no samples"},
             {"m/2 2 100 5\np 3\nq 2\n", "q 1 100 2\nq.dat 16 2/mV\n", "2 signals"}};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    contents[0] = bad[i].master;
    contents[3] = bad[i].q;
    sizes[0] = (int64_t)strlen(bad[i].master);
    sizes[3] = (int64_t)strlen(bad[i].q);
    c = case_open_files(5, names, contents, sizes, false);
    case_must_fail(&c, SN_E_CORRUPT, bad[i].word);
  }
}

/* ---- damage ---- */

static const char DAMAGE_HEADER[] = "# 69 M\nr 2 100 9 10:00:00 01/02/2003\nr.dat 212 200(3)/mV 12 0 1 45 0 I\n"
                                    "r.dat 212x2:1 20/mmHg 12 0 2 0 0 ABP x\n#Age: 5\n";

/* Everything that a reader of a recording may do. */
static void use_recording(const sn_recording *r) {
  double values[64];
  int32_t stored[64];
  sn_error err;
  for (int64_t c = 0; c < r->n_channels; c++)
    for (int64_t s = 0; s < r->n_segments; s++) {
      int64_t n = sn_recording_samples(r, c, s);
      assert_true(n > 0 && n <= 64);
      assert_int_equal(sn_recording_read_stored(r, c, s, 0, n, stored, &err), SN_OK);
      sn_status status = sn_recording_read(r, c, s, 0, n, values, &err);
      assert_true(status == SN_OK || (status == SN_E_UNSUPPORTED && r->channels[c].uncalibrated));
      for (int64_t i = 0; status == SN_OK && i < n; i++) assert_int_equal(isnan(values[i]) != 0, stored[i] == INT32_MIN);
    }
  sn_status verified = r->vtable->verify(r, &err);
  assert_true(verified == SN_OK || verified == SN_E_CORRUPT);
}

static void truncation_everywhere(void **state) {
  static const char *const names[2] = {"r.hea", "r.dat"};
  uint8_t data[41];
  int opened = 0, refused = 0;
  for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(17 * i);
  for (int which = 0; which < 2; which++) {
    int64_t full = which == 0 ? (int64_t)sizeof DAMAGE_HEADER - 1 : (int64_t)sizeof data;
    for (int64_t n = 0; n <= full; n++) {
      for (int tolerant = 0; tolerant < 2; tolerant++) {
        /* On the heap and of the exact size, so that the sanitizer sees the first byte too many. */
        uint8_t *head = malloc(sizeof DAMAGE_HEADER), *tail = malloc(sizeof data);
        int64_t sizes[2] = {which == 0 ? n : (int64_t)sizeof DAMAGE_HEADER - 1, which == 1 ? n : (int64_t)sizeof data};
        memcpy(head, DAMAGE_HEADER, sizeof DAMAGE_HEADER);
        memcpy(tail, data, sizeof data);
        head = realloc(head, (size_t)sizes[0] + 1);
        tail = realloc(tail, (size_t)sizes[1] + 1);
        const void *const contents[2] = {head, tail};
        wfdb_case c = case_open_files(2, names, contents, sizes, tolerant == 1);
        if (c.status == SN_OK) {
          opened++;
          use_recording(c.recording);
          if (which == 1) {
            int64_t frames = n * 2 / 3 / 3;
            assert_int_equal(c.recording->segments[0].n_frames, frames < 9 ? frames : 9);
            assert_true(tolerant == 1 || frames >= 9);
          }
        } else {
          refused++;
          assert_true(c.status == SN_E_CORRUPT);
          assert_true(c.err.message[0] != '\0');
        }
        case_close(&c);
        free(head);
        free(tail);
      }
    }
  }
  assert_true(opened > 20 && refused > 20);
}

static void every_allocation_fails(void **state) {
  static const char *const names[] = {"m.hea", "p.hea", "p.dat", "q.hea", "q.dat", "m.atr"};
  static const uint8_t p[6] = {1, 0, 2, 0, 3, 0}, q[2] = {4, 5},
                       atr[14] = {0x01, 0x04, 0x03, 0xFC, 'a', 'b', 'c', 0, 0x03, 0x04, 0x00, 0x00};
  static const char *const master = "m/2 1 100\np 3\nq 2\n#Age: 5\n#\xE9\n", *const one = "p 1 100 3\np.dat 16 0/mV\n",
                           *const two = "q 1 100 2\nq.dat 8 2/mV 0 0 3\n";
  const void *const contents[] = {master, one, p, two, q, atr};
  const int64_t sizes[6] = {(int64_t)strlen(master), (int64_t)strlen(one), 6, (int64_t)strlen(two), 2, 12};
  for (fault_begin(); fault_next();) {
    wfdb_case c = case_open_files(6, names, contents, sizes, true);
    sn_annotations *list = NULL;
    if (c.status == SN_OK) {
      for (int64_t s = 0; s < c.recording->n_segments && c.status == SN_OK; s++) {
        double v[3];
        c.status = sn_recording_read(c.recording, 0, s, 0, c.recording->segments[s].n_frames, v, &c.err);
      }
      if (c.status == SN_OK) c.status = sn_recording_annotations(c.recording, NULL, &list, &c.err);
    }
    fault_check(c.status);
    if (c.status == SN_OK) {
      assert_int_equal(list->n, 2);
      assert_string_equal(list->items[0].text, "abc");
    }
    sn_annotations_destroy(list);
    case_close(&c);
  }
}

/* ---- threads ---- */

typedef struct reader {
  const sn_recording *recording;
  const int32_t *expected;
  int64_t n;
  uint32_t seed;
  int wrong;
} reader;

static void *read_windows(void *self) {
  reader *w = self;
  int32_t stored[512];
  for (int turn = 0; turn < 300; turn++) {
    w->seed = w->seed * 1664525u + 1013904223u;
    int64_t first = (w->seed >> 4) % (uint32_t)(w->n - 512), count = w->seed % 512 + 1;
    if (sn_recording_read_stored(w->recording, 0, 0, first, count, stored, NULL) != SN_OK) w->wrong++;
    else if (memcmp(stored, w->expected + first, (size_t)count * sizeof *stored) != 0) w->wrong++;
  }
  return NULL;
}

static void four_threads_one_recording(void **state) {
  enum { N = 50000 };
  int8_t *data = malloc(N);
  int32_t *expected = malloc(sizeof *expected * N), value = 0;
  for (int64_t i = 0; i < N; i++) {
    data[i] = (int8_t)random_u32();
    expected[i] = value += data[i];
  }
  wfdb_case c = case_open("r 1 100 50000\nr.dat 8 10/mV 8 0 0\n", data, N, false);
  case_must(&c);
  pthread_t threads[4];
  reader readers[4];
  for (int t = 0; t < 4; t++) {
    readers[t] = (reader){c.recording, expected, N, (uint32_t)t + 7, 0};
    assert_int_equal(pthread_create(&threads[t], NULL, read_windows, &readers[t]), 0);
  }
  for (int t = 0; t < 4; t++) {
    pthread_join(threads[t], NULL);
    assert_int_equal(readers[t].wrong, 0);
  }
  case_close(&c);
  free(data);
  free(expected);
}

static void units(void **state) {
  static const struct {
    const char *raw;
    sn_sensor_kind kind;
    const char *unit; /* NULL: not known */
    double scale;
  } rows[] = {
      {"mV", SN_SENSOR_ECG, "mV", 1},           {"uV", SN_SENSOR_ECG, "mV", 1e-3},    {"V", SN_SENSOR_EEG, "uV", 1e6},
      {"\xC2\xB5V", SN_SENSOR_EEG, "uV", 1},    {"\xCE\xBCV", SN_SENSOR_EEG, "uV", 1}, {"nV", SN_SENSOR_EEG, "uV", 1e-3},
      {"T", SN_SENSOR_MEG_MAG, "fT", 1e15},     {"T/m", SN_SENSOR_MEG_GRAD, "fT/cm", 1e13},
      {"mmHg", SN_SENSOR_PRESSURE, "mmHg", 1},  {"NU", SN_SENSOR_ECG, "NU", 1},        {"adu", SN_SENSOR_ECG, NULL, 1},
      {"MV", SN_SENSOR_ECG, NULL, 1},           {"", SN_SENSOR_OTHER, NULL, 1},        {"bpm", SN_SENSOR_OTHER, "bpm", 1},
      {"mmHg", SN_SENSOR_EEG, NULL, 1},         {"degrees", SN_SENSOR_OTHER, "degrees", 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char unit[SN_UNIT_NAME];
    double scale;
    bool known = sn_unit_canonical(rows[i].raw, rows[i].kind, unit, &scale);
    assert_int_equal(known, rows[i].unit != NULL);
    assert_string_equal(unit, known ? rows[i].unit : "");
    assert_true(scale == rows[i].scale);
  }
  /* An unknown unit: listed, not readable, unless a unit is assumed for it. */
  static const uint8_t data[2] = {10, 0};
  double v = 0;
  wfdb_case c = case_open("r 1 100 1\nr.dat 16 10/adu 12 0 10 10 0 II\n", data, 2, false);
  case_must(&c);
  assert_true(c.recording->channels[0].uncalibrated && c.recording->channels[0].unit[0] == '\0');
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &v, NULL), SN_E_UNSUPPORTED);
  case_stored(&c, 0, 0, 0, 1, (const int32_t[]){10});
  sn_recording *assumed = NULL;
  const sn_open_options options = {.assume_unit = "uV"};
  assert_int_equal(sn_format_wfdb.open(c.folder, "r.hea", &options, &assumed, NULL), SN_OK);
  assert_int_equal(sn_recording_read(assumed, 0, 0, 0, 1, &v, NULL), SN_OK);
  assert_true(fabs(v - 1e-3) < 1e-18 && assumed->channels[0].unit_assumed);
  sn_recording_destroy(assumed);
  case_close(&c);
  c = case_open("r 1 100 1\nr.dat 16 10/kV 12 0 10 10 0 II\n", data, 2, false); /* stated, if not known: it is not uV */
  case_must(&c);
  assert_int_equal(sn_format_wfdb.open(c.folder, "r.hea", &options, &assumed, NULL), SN_OK);
  assert_true(assumed->channels[0].uncalibrated && !assumed->channels[0].unit_assumed);
  assert_int_equal(sn_recording_read(assumed, 0, 0, 0, 1, &v, NULL), SN_E_UNSUPPORTED);
  sn_recording_destroy(assumed);
  case_close(&c);
}

/* ---- what is written for many lanes ---- */

/* Every number of signals that has a walk of its own, runs of 1 to 4, and lengths around those that are done together. */
static void strides_and_lengths(void **state) {
  static const int64_t per_frame[][3] = {{1, 0, 0}, {1, 1, 0}, {1, 1, 1}, {2, 0, 0}, {2, 2, 0}, {4, 1, 1}, {4, 2, 0}, {3, 1, 2}, {1, 3, 0}};
  for (int k = 0; k < N_PACKED; k++)
    for (size_t shape = 0; shape < sizeof per_frame / sizeof per_frame[0]; shape++)
      for (int64_t frames = 1; frames < 45; frames += frames > 20 ? 7 : 1) {
        const int64_t *spf = per_frame[shape], width = spf[0] + spf[1] + spf[2];
        char header[256];
        int used = snprintf(header, sizeof header, "r %d 100 %lld\n", 1 + (spf[1] > 0) + (spf[2] > 0), (long long)frames);
        for (int s = 0; s < 3 && spf[s] > 0; s++)
          used += snprintf(header + used, sizeof header - (size_t)used, "r.dat %dx%lld 10\n", PACKED[k].format, (long long)spf[s]);
        int64_t n_bytes = 0, offset = 0;
        assert_true(sn_wfdb_codec_bytes(sn_wfdb_codec(PACKED[k].format), width * frames, &n_bytes));
        uint8_t *data = malloc((size_t)n_bytes); /* exactly: a read behind the end shows under a sanitizer */
        for (int64_t i = 0; i < n_bytes; i++) data[i] = (uint8_t)random_u32();
        if (frames % 3 == 0) memset(data, PACKED[k].format == 160 || PACKED[k].format == 80 ? 0 : 0x80, (size_t)n_bytes / 2);
        wfdb_case c = case_open(header, data, n_bytes, false);
        case_must(&c);
        for (int s = 0; s < 3 && spf[s] > 0; offset += spf[s++]) {
          int32_t expected[4 * 45];
          for (int64_t i = 0; i < frames * spf[s]; i++)
            expected[i] = marked(k, reference_sample(PACKED[k].format, data, i / spf[s] * width + offset + i % spf[s]));
          case_stored(&c, s, 0, 0, frames * spf[s], expected);
          if (frames > 2) case_stored(&c, s, 0, 1, frames * spf[s] - 1, expected + 1);
        }
        windows_of_all_channels(c.recording, 3);
        case_close(&c);
        free(data);
      }
}

/* Values are the bits of a division, for every 16-bit sample and gains of every kind. */
static void values_are_exact_quotients(void **state) {
  static const char *const gains[] = {"200", "1000", "3", "7", "1e-3", "0.1", "2963.77", "12.84", "1.052e+04", "306.7", "1e30",
                                      "9.99e29", "1e-30", "-200", "1.9999999999999998", "1.0000000000000002"};
  enum { N = 65536 };
  uint8_t *data = malloc(2 * N);
  double *values = malloc(N * sizeof *values);
  for (int i = 0; i < N; i++) data[2 * i] = (uint8_t)i, data[2 * i + 1] = (uint8_t)(i >> 8);
  for (int turn = 0; turn < 60; turn++) {
    char header[128], gain[40];
    if (turn < (int)(sizeof gains / sizeof gains[0])) snprintf(gain, sizeof gain, "%s", gains[turn]);
    else snprintf(gain, sizeof gain, "%.17g", ldexp(1 + random_u32() / 4294967296.0, (int)(random_u32() % 40) - 20));
    const int baseline = turn % 3 == 0 ? 0 : (int)(random_u32() % 100000) - 50000;
    snprintf(header, sizeof header, "r 1 100 %d\nr.dat 16 %s(%d)/mV 16 0 0 0 0 II\n", N, gain, baseline);
    wfdb_case c = case_open(header, data, 2 * N, false);
    case_must(&c);
    const double by = c.recording->channels[0].gain;
    assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, N, values, NULL), SN_OK);
    for (int i = 0; i < N; i++) {
      const int16_t stored = (int16_t)(uint16_t)i;
      const double expected = ((double)stored - baseline) / by * 1.0;
      if (stored == -32768 ? isnan(values[i]) : memcmp(&values[i], &expected, sizeof expected) == 0) continue;
      fail_msg("gain %s, baseline %d, sample %d: %.17g, expected %.17g", gain, baseline, stored, values[i], expected);
    }
    case_close(&c);
  }
  free(values);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strides_and_lengths),       cmocka_unit_test(values_are_exact_quotients),
      cmocka_unit_test(formats_against_reference), cmocka_unit_test(wide_frames),
      cmocka_unit_test(differences),               cmocka_unit_test(packed_pairs_odd_count),
      cmocka_unit_test(samples_per_frame_are_kept), cmocka_unit_test(zero_gain),
      cmocka_unit_test(missing_values),            cmocka_unit_test(skew_loses_the_end),
      cmocka_unit_test(checksums_and_initial_values), cmocka_unit_test(every_field),
      cmocka_unit_test(start_times),               cmocka_unit_test(names_and_persons),
      cmocka_unit_test(headers_that_must_fail),    cmocka_unit_test(matlab_carrier),
      cmocka_unit_test(lengths_and_several_files), cmocka_unit_test(variable_layout),
      cmocka_unit_test(fixed_layout),              cmocka_unit_test(truncation_everywhere),
      cmocka_unit_test(every_allocation_fails),    cmocka_unit_test(four_threads_one_recording),
      cmocka_unit_test(units),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
