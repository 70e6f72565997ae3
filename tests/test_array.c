/* needs: full hdf5 */
/* Arrays with a sidecar: NPY of every type and order, HDF5, text; what must be refused; real columns of text. */
#include <stdlib.h>
#include <unistd.h>

#include "alloc_fault.h"
#include "format_case.h"
#include "core/fs.h"

extern const sn_format sn_format_array;

enum { POINTS = 50 };

static sn_recording *must_open(const char *name) {
  char path[512];
  sn_recording *r = NULL;
  sn_error err;
  snprintf(path, sizeof path, SONDE_SOURCE_DIR "/tests/golden/array/%s", name);
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
  assert_string_equal(r->format, "array");
  return r;
}

static void every_array(void **state) {
  static const struct {
    const char *name;
    int64_t modulus; /* of the values, where the type is narrow */
  } rows[] = {{"ti1.npy", 100},  {"tu1.npy", 100}, {"ti2.npy", 0},     {"tbi2.npy", 0}, {"tu2.npy", 0},
              {"ti4.npy", 0},    {"tbi4.npy", 0},  {"tu4.npy", 0},     {"ti8.npy", 0},  {"tf4.npy", 0},
              {"tbf4.npy", 0},   {"tf8.npy", 0},   {"fortran.npy", 0}, {"rows.npy", 0}, {"contiguous.h5", 0},
              {"chunked.h5", 0}, {"table.csv", 0}, {"picked.tsv", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    double values[3][POINTS], one[7], *to[3] = {values[0], values[1], values[2]};
    const int64_t channels[3] = {0, 1, 2};
    sn_recording *r = must_open(rows[i].name);
    assert_int_equal(r->n_channels, 3);
    assert_int_equal(r->rate_num, 250);
    assert_int_equal(r->segments[0].n_frames, POINTS);
    assert_int_equal(r->channels[2].kind, SN_SENSOR_EOG);
    assert_int_equal(r->n_files, 2);
    assert_int_equal(sn_recording_read_channels(r, channels, 3, 0, 0, POINTS, to, NULL), SN_OK);
    for (int64_t c = 0; c < 3; c++) {
      for (int64_t t = 0; t < POINTS; t++) {
        double expected = (double)(rows[i].modulus > 0 ? (100 * c + t) % rows[i].modulus : 100 * c + t);
        if (values[c][t] != expected)
          fail_msg("%s: channel %lld point %lld: %g", rows[i].name, (long long)c, (long long)t, values[c][t]);
      }
      assert_int_equal(sn_recording_read(r, c, 0, 40, 7, one, NULL), SN_OK);
      assert_memory_equal(one, values[c] + 40, sizeof one);
    }
    sn_recording_destroy(r);
  }
  sn_recording *r = must_open("one.npy");
  assert_int_equal(r->n_channels, 1);
  sn_recording_destroy(r);
}

/* ---- in memory ---- */

static format_case opened(const char *name, const char *data, int64_t n, const char *sidecar) {
  format_case c = {0};
  case_file(&c, name, data, n);
  if (sidecar != NULL) case_text(&c, "r.json", sidecar);
  case_open(&c, &sn_format_array, false);
  return c;
}

static void fields_of_the_sidecar(void **state) {
  static const char sidecar[] =
      "{\"rate\": \"500/3\", \"channels\": [\"Fp1\", \"x\", \"Cz\"], \"units\": [\"mV\", \"mmHg\", \"uV\"],"
      "\"kinds\": [\"eeg\", \"other\", \"eeg\"], \"scale\": [0.5, 1, -2], \"positions_m\": [[0, 0.1, 0], null, null],"
      "\"bad\": [\"Cz\"], \"reference\": \"A1\"}";
  static const char text[] = "# note\r\n1,2,3\r\n,nan,NA\r\n-4e0, 5 ,inf\r\n";
  const double first[3] = {500, NAN, -2000}, second[3] = {2, NAN, 5}, third[3] = {-6, NAN, NAN};
  format_case c = opened("r.csv", text, sizeof text - 1, sidecar);
  case_must(&c);
  case_values(&c, 0, 0, 0, 3, first);
  case_values(&c, 1, 0, 0, 3, second);
  case_values(&c, 2, 0, 0, 3, third);
  const sn_recording *r = c.recording;
  assert_int_equal(r->rate_num, 500);
  assert_int_equal(r->rate_den, 3);
  assert_string_equal(r->channels[1].unit, "mmHg");
  assert_true(r->channels[2].bad && !r->channels[0].bad && r->channels[0].has_position && !r->channels[1].has_position);
  assert_int_equal(r->channels[0].position_from, SN_POSITION_SIDECAR);
  assert_string_equal(r->reference, "A1");
  case_close(&c);
}

/* Fault 1: a unit that nobody stated is not invented. */
static void unit_unknown(void **state) {
  format_case c = opened("r.csv", "1\n", 2, "{\"rate\": 10, \"channels\": [\"Cz\"]}");
  double value;
  case_must(&c);
  assert_string_equal(c.recording->channels[0].unit, "");
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  case_close(&c);
}

#define KEYS "\"rate\": 10, \"channels\": [\"Fp1\", \"Cz\"]"

/* Leads are no electrodes, and what the names decided is said; stated kinds make the modality known without a word. */
static void kinds_by_name(void **state) {
  static const struct {
    const char *sidecar, *modality;
    sn_sensor_kind kind;
    bool told;
  } rows[] = {
      {"{\"rate\": 10, \"channels\": [\"I\", \"aVR\", \"V1\"], \"units\": \"mV\"}", "ecg", SN_SENSOR_ECG, true},
      {"{\"rate\": 10, \"channels\": [\"I\", \"aVR\", \"V1\"], \"units\": \"mV\", \"kinds\": [\"ecg\", \"ecg\", \"ecg\"]}", "ecg",
       SN_SENSOR_ECG, false},
      {"{\"rate\": 10, \"channels\": [\"a\", \"b\", \"c\"], \"units\": \"mV\", \"kinds\": [\"ecg\", \"ecg\", \"other\"]}", "ecg",
       SN_SENSOR_ECG, false},
      {"{\"rate\": 10, \"channels\": [\"Fp1\", \"Cz\", \"Oz\"], \"units\": \"uV\"}", "eeg", SN_SENSOR_EEG, false},
      {"{\"rate\": 10, \"channels\": [\"a\", \"b\", \"c\"], \"units\": \"uV\"}", "eeg", SN_SENSOR_EEG, true}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    format_case c = opened("r.csv", "1,2,3\n4,5,6\n", 12, rows[i].sidecar);
    bool told = false;
    case_must(&c);
    assert_int_equal(c.recording->channels[0].kind, rows[i].kind);
    assert_string_equal(c.recording->modality, rows[i].modality);
    for (int64_t w = 0; w < c.recording->n_warnings; w++)
      told = told || strcmp(c.recording->warnings[w].code, "kind_by_name") == 0;
    assert_int_equal(told, rows[i].told);
    case_close(&c);
  }
}

static void refused(void **state) {
  static const struct {
    const char *sidecar;
    const char *data;
    const char *word;
    sn_status status;
  } rows[] = {
      {NULL, "1,2\n", "sidecar", SN_E_FORMAT},
      {"{", "1,2\n", "r.json", SN_E_CORRUPT},
      {"{}", "1,2\n", "rate", SN_E_CORRUPT},
      {"[11]", "1,2\n", "expected an object", SN_E_CORRUPT}, /* found by fuzzing */
      {"{\"rate\": 0, \"channels\": [\"a\", \"b\"]}", "1,2\n", "rate", SN_E_CORRUPT},
      {"{\"rate\": \"1/0\", \"channels\": [\"a\", \"b\"]}", "1,2\n", "rate", SN_E_CORRUPT},
      {"{\"rate\": 5}", "1,2\n", "channels", SN_E_CORRUPT},
      {"{" KEYS ", \"unit\": \"uV\"}", "1,2\n", "did you mean \"units\"", SN_E_CORRUPT},
      {"{" KEYS ", \"units\": [\"uV\"]}", "1,2\n", "units", SN_E_CORRUPT},
      {"{" KEYS ", \"kinds\": [\"eeg\", \"brain\"]}", "1,2\n", "entry 2 of \"kinds\" (channel 'Cz') is the text \"brain\"", SN_E_CORRUPT},
      {"{" KEYS ", \"kinds\": \"ecg\"}", "1,2\n", "\"kinds\" is the text \"ecg\": expected a list", SN_E_CORRUPT},
      {"{\"rate\": \"0\", \"channels\": [\"a\", \"b\"]}", "1,2\n", "\"rate\" is the text \"0\"", SN_E_CORRUPT},
      {"{" KEYS "}", "Fp1,Cz\n1,2\n", "header_lines", SN_E_CORRUPT},
      {"{" KEYS ", \"scale\": 0}", "1,2\n", "scale", SN_E_CORRUPT},
      {"{" KEYS ", \"positions_m\": [[1, 2], null]}", "1,2\n", "positions_m", SN_E_CORRUPT},
      {"{" KEYS ", \"positions_m\": [[0, 80, 40], null]}", "1,2\n", "within 0.5 m", SN_E_CORRUPT},
      {"{" KEYS ", \"axes\": \"channel,time\"}", "1,2\n", "axes", SN_E_CORRUPT},
      {"{" KEYS ", \"bad\": [\"Oz\"]}", "1,2\n", "bad", SN_E_CORRUPT},
      {"{" KEYS ", \"columns\": [0, 0]}", "1,2\n", "names column 0 twice", SN_E_CORRUPT},
      {"{" KEYS ", \"columns\": [0, -1]}", "1,2\n", "entry 2 of \"columns\"", SN_E_CORRUPT},
      {"{" KEYS ", \"columns\": [0, 5]}", "1,2\n", "line 1 has 2 columns, 0 to 1; its sidecar's \"columns\" names column 5", SN_E_CORRUPT},
      {"{" KEYS ", \"units\": [\"uV\", 7]}", "1,2\n", "entry 2 of \"units\" (channel 'Cz') is the number 7", SN_E_CORRUPT},
      {"{" KEYS ", \"scale\": [1, 0]}", "1,2\n", "entry 2 of \"scale\" (channel 'Cz')", SN_E_CORRUPT},
      {"{\"rate\": 1e300, \"channels\": [\"a\", \"b\"]}", "1,2\n", "1e+300: expected Hz, a number above 0 and at most 1e9", SN_E_CORRUPT},
      {"{\"rate\": \"9000000000000000000/1\", \"channels\": [\"a\", \"b\"]}", "1,2\n", "at most 1e9", SN_E_CORRUPT},
      {"{\"rte\": 5, \"channels\": [\"a\", \"b\"]}", "1,2\n", "did you mean \"rate\"", SN_E_CORRUPT},
      {"{\n\"rate\": 5,\n}", "1,2\n", "r.json: line 3, byte 13", SN_E_CORRUPT},
      {"[]", "1,2\n", "found a list of 0", SN_E_CORRUPT},
      {"{" KEYS "}", "1,2,3\n", "3 columns", SN_E_CORRUPT},
      {"{" KEYS "}", "1,2\n3\n", "line 2", SN_E_CORRUPT},
      {"{" KEYS "}", "1,2\n3,x\n", "'x' is no number", SN_E_CORRUPT},
      {"{" KEYS "}", "# nothing\n", "no row", SN_E_CORRUPT},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    format_case c = opened("r.csv", rows[i].data, (int64_t)strlen(rows[i].data), rows[i].sidecar);
    case_must_fail(&c, rows[i].status, rows[i].word);
  }
}

/* A unit that is none makes another channel of it, and that is said; where the kinds are stated it is as they say. */
static void unit_unfamiliar(void **state) {
  static const struct {
    const char *more;
    bool told;
  } rows[] = {{", \"units\": [\"uV\", \"furlong\"]}", true}, {", \"units\": [\"uV\", \"degC\"]}", false},
              {", \"units\": [\"uV\", \"furlong\"], \"kinds\": [\"eeg\", \"other\"]}", false}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char sidecar[256];
    bool told = false;
    snprintf(sidecar, sizeof sidecar, "{" KEYS "%s", rows[i].more);
    format_case c = opened("r.csv", "1,2\n", 4, sidecar);
    case_must(&c);
    for (int64_t w = 0; w < c.recording->n_warnings; w++)
      told = told || (strcmp(c.recording->warnings[w].code, "unit_unfamiliar") == 0 && strstr(c.recording->warnings[w].message, "'furlong'") != NULL);
    assert_int_equal(told, rows[i].told);
    case_close(&c);
  }
}

/* An NPY file with this header and n bytes of zeros. */
static int64_t npy(char *to, const char *header, int64_t n) {
  int64_t length = (int64_t)strlen(header);
  memcpy(to, "\x93NUMPY\1\0", 8);
  to[8] = (char)(length & 0xFF);
  to[9] = (char)(length >> 8);
  memcpy(to + 10, header, (size_t)length);
  memset(to + 10 + length, 0, (size_t)n);
  return 10 + length + n;
}

static void npy_headers(void **state) {
  static const struct {
    const char *header;
    sn_status status;
    const char *word;
  } rows[] = {
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 4), }", SN_OK, ""},
      {"{\"descr\":\"|i2\",\"shape\":(2L,4L),\"fortran_order\":True}\n", SN_OK, ""},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 5), }", SN_E_CORRUPT, "do not lie inside"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (3, 2), }", SN_E_CORRUPT, "names 2 channels"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 0), }", SN_E_CORRUPT, "no sample"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 9223372036854775807), }", SN_E_CORRUPT, "64 bits"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 99999999999999999999), }", SN_E_CORRUPT, "shape"},
      {"{'descr': '<i2', 'fortran_order': False, 'shape': (2, 2, 2), }", SN_E_UNSUPPORTED, "3 dimensions"},
      {"{'descr': '<c8', 'fortran_order': False, 'shape': (2, 1), }", SN_E_UNSUPPORTED, "<c8"},
      {"{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (2, 1), }", SN_E_UNSUPPORTED, "records"},
      {"{'descr': '<i2', 'fortran_order': Maybe, 'shape': (2, 4), }", SN_E_CORRUPT, "fortran_order"},
      {"{'descr': '<i2', 'shape': (2, 4), }", SN_E_CORRUPT, "lacks"},
      {"{'descr': '<i2'", SN_E_CORRUPT, "does not end"},
      {"", SN_E_CORRUPT, "no dictionary"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char data[256];
    int64_t n = npy(data, rows[i].header, 16);
    format_case c = opened("r.npy", data, n, "{" KEYS ", \"units\": \"uV\", \"axes\": \"channels,time\"}");
    if (rows[i].status == SN_OK) {
      case_must(&c);
      case_close(&c);
    } else {
      case_must_fail(&c, rows[i].status, rows[i].word);
    }
  }
  char data[256];
  int64_t n = npy(data, rows[0].header, 16);
  format_case c = opened("r.npy", data, n, "{" KEYS "}"); /* two dimensions: which is time is not guessed */
  case_must_fail(&c, SN_E_CORRUPT, "axes");
  assert_int_equal(sn_format_array.sniff("r.npy", (const uint8_t *)data, n, NULL), 10);
  assert_int_equal(sn_format_array.sniff("participants.tsv", (const uint8_t *)"a\tb\n", 4, NULL), 0);
}

static void truncated_anywhere(void **state) {
  char data[256];
  int64_t n = npy(data, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 4), }", 16);
  format_case c = {0};
  case_file(&c, "r.npy", data, n);
  case_text(&c, "r.json", "{" KEYS ", \"units\": \"uV\", \"axes\": \"channels,time\"}");
  case_truncate(&c, &sn_format_array, 0);
  case_truncate(&c, &sn_format_array, 1);
}

static void failing_allocations(void **state) {
  char data[256];
  int64_t n = npy(data, "{'descr': '<i2', 'fortran_order': False, 'shape': (2, 4), }", 16);
  for (int text = 0; text < 2; text++) {
    for (fault_begin(); fault_next();) {
      format_case c = text ? opened("r.csv", "1,2\n3,4\n", 8, "{" KEYS ", \"units\": \"uV\", \"columns\": [1, 0]}")
                           : opened("r.npy", data, n, "{" KEYS ", \"units\": \"uV\", \"axes\": \"channels,time\"}");
      fault_check(c.status);
      case_close(&c);
    }
  }
}

static void hdf5_damage(void **state) {
  sn_stream *stream;
  char *bytes;
  int64_t n;
  assert_int_equal(sn_stream_open(SONDE_SOURCE_DIR "/tests/golden/array/chunked.h5", &stream, NULL), SN_OK);
  assert_int_equal(sn_stream_read_all(stream, 1 << 20, &bytes, &n, NULL), SN_OK);
  sn_stream_close(stream);
  static const char sidecar[] =
      "{\"rate\": 250, \"channels\": [\"a\", \"b\", \"c\"], \"axes\": \"channels,time\", \"dataset\": \"/raw/eeg\"}";
  format_case c =
      opened("r.h5", bytes, n, "{\"rate\": 250, \"channels\": [\"a\", \"b\", \"c\"], \"dataset\": \"/none\"}");
  case_must_fail(&c, SN_E_CORRUPT, "no dataset '/none'");
  c = opened("r.h5", bytes, n, "{\"rate\": 250, \"channels\": [\"a\"]}");
  case_must_fail(&c, SN_E_CORRUPT, "states no dataset");
  int failed = 0;
  for (int64_t k = 8; k < n; k += n / 50) {
    for (int cut = 0; cut < 2; cut++) {
      char *copy;
      assert_int_equal(sn_alloc(&copy, cut ? k : n, 1, "copy", NULL), SN_OK);
      memcpy(copy, bytes, (size_t)(cut ? k : n));
      if (!cut) copy[k] ^= 0x55;
      c = opened("r.h5", copy, cut ? k : n, sidecar);
      failed += c.status != SN_OK;
      if (c.status != SN_OK) assert_true(c.err.message[0] != '\0');
      case_close(&c);
      sn_free(copy);
    }
  }
  assert_true(failed >= 40);
  sn_free(bytes);
}

/* A column of text as BioSPPy writes it, with a sidecar beside a link to it. */
static void real_text(void **state) {
  const char *data = getenv("SONDE_DATA");
  char folder[] = "/tmp/sonde_array_XXXXXX", from[1024], to[512], sidecar[512];
  if (data == NULL) skip();
  snprintf(from, sizeof from, "%s/eeg/biosppy_text/eeg_ec.txt", data);
  if (!sn_path_exists(from)) skip();
  assert_non_null(mkdtemp(folder));
  snprintf(to, sizeof to, "%s/eeg_ec.txt", folder);
  snprintf(sidecar, sizeof sidecar, "%s/eeg_ec.json", folder);
  assert_int_equal(symlink(from, to), 0);
  static const char text[] = "{\"rate\": 125, \"channels\": [\"EEG\"], \"units\": \"uV\"}\n";
  assert_int_equal(sn_write_file(sidecar, text, sizeof text - 1, NULL), SN_OK);
  sn_recording *r = NULL;
  sn_error err;
  if (sn_recording_open(to, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  int64_t lines = 0, n = sn_recording_samples(r, 0, 0);
  double sum = 0, expected = 0, *values;
  assert_int_equal(sn_alloc(&values, n, sizeof *values, "samples", NULL), SN_OK);
  assert_int_equal(sn_recording_read(r, 0, 0, 0, n, values, NULL), SN_OK);
  for (int64_t i = 0; i < n; i++) sum += values[i];
  FILE *f = fopen(from, "r");
  for (char line[256]; fgets(line, sizeof line, f) != NULL;)
    if (line[0] != '#' && line[0] != '\n') expected += strtod(line, NULL), lines++;
  fclose(f);
  assert_int_equal(n, lines);
  assert_true(n > 30000 && sum == expected);
  sn_free(values);
  sn_recording_destroy(r);
  assert_int_equal(sn_remove_tree(folder, NULL), SN_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_array), cmocka_unit_test(fields_of_the_sidecar), cmocka_unit_test(unit_unknown), cmocka_unit_test(kinds_by_name),
      cmocka_unit_test(refused),     cmocka_unit_test(unit_unfamiliar),       cmocka_unit_test(npy_headers),           cmocka_unit_test(truncated_anywhere),
      cmocka_unit_test(hdf5_damage), cmocka_unit_test(failing_allocations),   cmocka_unit_test(real_text),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
