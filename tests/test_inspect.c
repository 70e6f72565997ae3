/* needs: full */
/* `sonde inspect` as its users meet it: the JSON, the exit status, what is never shown. */
#include "wfdb_case.h"

#include <math.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "core/fs.h"
#include "core/json.h"
#include "core/sha256.h"
#include "core/text.h"

static char folder[] = "/tmp/sonde inspect-XXXXXX"; /* with a blank in it */
static char output[1 << 20];

static void write_file(const char *name, const void *data, size_t n) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  assert_int_equal(sn_write_file(path, data, (int64_t)n, NULL), SN_OK);
}

static int make_folder(void **state) {
  /* Two signals, the second skewed by one; a note and a beat, and one beyond the end. */
  static const uint8_t data[16] = {0, 0, 10, 0, 100, 0, 20, 0, 44, 1, 0x00, 0x80, 0xC8, 0, 40, 0};
  static const char header[] = "r 2 100 4 10:11:12 04/05/2001\nr.dat 16 100/mV 16 0 0 600 0 ecg II\n"
                               "r.dat 16:1 10(5)/mmHg 16 0 10 -32698 0 ABP\n#Age: 61\n#Sex: M\n#Name: Secret Person\n";
  static const char wrong[] = "w 1 100 8\nr.dat 16 100/mV 16 0 0 1 0 II\n";
  static const uint8_t atr[] = {0x01, 0x70, 0x02, 0xFC, '(', 'N', 0x01, 0x04, 0x20, 0x04, 0, 0};
  if (mkdtemp(folder) == NULL) return -1;
  write_file("r.hea", header, sizeof header - 1);
  write_file("r.dat", data, sizeof data);
  write_file("r.atr", atr, sizeof atr);
  write_file("w.hea", wrong, sizeof wrong - 1);
  static const char latin1[] = "l 1 100 8\nr.dat 16 \xB5\xB5\xB5 16\n"; /* bytes that are no UTF-8 reach the message */
  write_file("l.hea", latin1, sizeof latin1 - 1);
  return 0;
}
static int remove_folder(void **state) { return sn_remove_tree(folder, NULL) == SN_OK ? 0 : -1; }

/* Exit status of `sonde inspect ARGUMENTS FOLDER/NAME`; standard output in `output`. */
static int run(const char *arguments, const char *name) {
  char line[1024];
  snprintf(line, sizeof line, "'%s' inspect %s '%s/%s' 2>/dev/null", SONDE_COMMAND, arguments, folder, name);
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  size_t n = fread(output, 1, sizeof output - 1, pipe);
  output[n] = '\0';
  int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static sn_json *parsed(void) {
  sn_json *json = NULL;
  sn_error err;
  if (sn_json_parse(output, (int64_t)strlen(output), "output", &json, &err) != SN_OK) fail_msg("%s\n%s", err.message, output);
  return json;
}

static const char *text_at(const sn_json *json, const char *key) {
  const char *text = sn_json_as_string(sn_json_get(json, key));
  return text != NULL ? text : "(null)";
}

static double number_at(const sn_json *json, const char *key) {
  double value = NAN;
  assert_true(sn_json_as_f64(sn_json_get(json, key), &value));
  return value;
}

static bool warned(const sn_json *json, const char *code) {
  const sn_json *list = sn_json_get(json, "warnings");
  for (int64_t i = 0; i < sn_json_length(list); i++)
    if (strcmp(text_at(sn_json_at(list, i), "code"), code) == 0) return true;
  return false;
}

static void the_object(void **state) {
  assert_int_equal(run("--json", "r.hea"), 0);
  sn_json *json = parsed();
  static const char *const keys[] = {"path",     "status",   "error",       "warnings", "format", "variant", "modality", "subject",
                                     "start_time", "reference", "line_hz", "notes", "segments", "channels", "annotations", "volume", "table",   "text"};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) assert_non_null(sn_json_get(json, keys[i]));
  assert_string_equal(text_at(json, "status"), "ok");
  assert_int_equal(sn_json_kind(sn_json_get(json, "error")), SN_JSON_NULL);
  assert_string_equal(text_at(json, "format"), "wfdb");
  assert_string_equal(text_at(json, "variant"), "16");
  assert_string_equal(text_at(json, "modality"), "ecg");
  assert_int_equal(sn_json_kind(sn_json_get(json, "start_time")), SN_JSON_NULL); /* a date, not asked for */
  const sn_json *subject = sn_json_get(json, "subject");
  assert_true(number_at(subject, "age_years") == 61);
  assert_string_equal(text_at(subject, "sex"), "M");
  assert_int_equal(sn_json_kind(sn_json_get(subject, "id")), SN_JSON_NULL);
  const sn_json *segment = sn_json_at(sn_json_get(json, "segments"), 0);
  assert_true(number_at(segment, "start_s") == 0 && number_at(segment, "duration_s") == 0.04);
  assert_int_equal(sn_json_length(sn_json_get(json, "channels")), 2);
  const sn_json *c = sn_json_at(sn_json_get(json, "channels"), 1), *calibration = sn_json_get(c, "calibration");
  assert_string_equal(text_at(c, "name"), "ABP");
  assert_string_equal(text_at(c, "kind"), "pressure");
  assert_string_equal(text_at(c, "unit"), "mmHg");
  assert_true(number_at(c, "n_samples") == 4 && number_at(calibration, "gain") == 0.1 && number_at(calibration, "offset") == -0.5);
  assert_null(sn_json_get(c, "stats"));
  assert_null(sn_json_get(c, "values"));
  const sn_json *annotations = sn_json_get(json, "annotations");
  assert_true(number_at(annotations, "count") == 2);
  assert_string_equal(text_at(sn_json_at(sn_json_get(annotations, "first"), 0), "text"), "(N");
  assert_true(number_at(sn_json_at(sn_json_get(annotations, "first"), 1), "onset_s") == 0.02);
  assert_true(warned(json, "annotation_beyond_end"));
  assert_null(strstr(output, "Secret"));
  sn_json_destroy(json);
}

static void statistics_and_values(void **state) {
  assert_int_equal(run("--json --stats --values 1:3", "r.dat"), 0);
  sn_json *json = parsed();
  const sn_json *channels = sn_json_get(json, "channels"), *stats = sn_json_get(sn_json_at(channels, 0), "stats");
  assert_true(number_at(stats, "n") == 4 && number_at(stats, "missing") == 0);
  assert_true(number_at(stats, "min") == 0 && number_at(stats, "max") == 3 && number_at(stats, "mean") == 1.5);
  assert_true(fabs(number_at(stats, "std") - sqrt(1.25)) < 1e-15);
  static const uint8_t ecg[16] = {0, 0, 0, 0, 0, 0, 0x80, 0x3f, 0, 0, 0x40, 0x40, 0, 0, 0, 0x40}; /* 0 1 3 2 */
  static const uint8_t abp[16] = {0, 0, 0xC0, 0x3f, 0, 0, 0xC0, 0x7f, 0, 0, 0x60, 0x40, 0, 0, 0xC0, 0x7f}; /* 1.5 nan 3.5 nan */
  const uint8_t *const bytes[2] = {ecg, abp};
  for (int i = 0; i < 2; i++) {
    sn_sha256 hash;
    uint8_t digest[32];
    char hex[65];
    sn_sha256_init(&hash);
    sn_sha256_update(&hash, bytes[i], 16);
    sn_sha256_final(&hash, digest);
    sn_sha256_hex(digest, hex);
    assert_string_equal(text_at(sn_json_get(sn_json_at(channels, i), "stats"), "sha256_f32"), hex);
  }
  stats = sn_json_get(sn_json_at(channels, 1), "stats");
  assert_true(number_at(stats, "n") == 2 && number_at(stats, "missing") == 2 && number_at(stats, "mean") == 2.5);
  const sn_json *values = sn_json_get(sn_json_at(channels, 1), "values");
  double v = 0;
  assert_int_equal(sn_json_length(values), 3);
  assert_int_equal(sn_json_kind(sn_json_at(values, 0)), SN_JSON_NULL);
  assert_true(sn_json_as_f64(sn_json_at(values, 1), &v) && v == 3.5);
  sn_json_destroy(json);

  assert_int_equal(run("--json --stats --channel ABP", "r"), 0);
  json = parsed();
  assert_null(sn_json_get(sn_json_at(sn_json_get(json, "channels"), 0), "stats"));
  assert_non_null(sn_json_get(sn_json_at(sn_json_get(json, "channels"), 1), "stats"));
  sn_json_destroy(json);
}

static void dates_only_when_asked(void **state) {
  assert_int_equal(run("--json --dates", "r.hea"), 0);
  sn_json *json = parsed();
  assert_string_equal(text_at(json, "start_time"), "2001-05-04T10:11:12");
  sn_json_destroy(json);
  assert_int_equal(run("", "r.hea"), 0);
  assert_null(strstr(output, "2001"));
  assert_null(strstr(output, "Secret"));
  assert_non_null(strstr(output, "100 Hz"));
  assert_non_null(strstr(output, "ABP"));
}

/* What was asked for and cannot be done gives a status, an error, and still what could be read. */
static void failures(void **state) {
  static const struct {
    const char *arguments, *name, *code;
    bool channels;
  } rows[] = {
      {"--json --values 2:3", "r.hea", "argument", true},  {"--json --channel III --stats", "r.hea", "argument", true},
      {"--json --stats", "w.hea", "corrupt", true},        {"--json --annotator none", "r.hea", "io", true},
      {"--json", "l.hea", "corrupt", false},
      {"--json", "absent.hea", "io", false},               {"--json", "r.atr", "format", false},
      {"--json", ".", "format", false},                    {"--json --assume-unit uV", "w.hea", NULL, true},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    assert_int_equal(run(rows[i].arguments, rows[i].name), rows[i].code != NULL ? 1 : 0);
    sn_json *json = parsed();
    assert_string_equal(text_at(json, "status"), rows[i].code != NULL ? "error" : "ok");
    if (rows[i].code != NULL) assert_string_equal(text_at(sn_json_get(json, "error"), "code"), rows[i].code);
    assert_int_equal(sn_json_kind(sn_json_get(json, "channels")), rows[i].channels ? SN_JSON_ARRAY : SN_JSON_NULL);
    sn_json_destroy(json);
  }
  assert_int_equal(run("--values 0", "r.hea"), 2);
  assert_int_equal(run("--values 0:0", "r.hea"), 2);
  assert_int_equal(run("--jsom", "r.hea"), 2);
  assert_int_equal(run("--json --assume-unit parsec", "w.hea"), 2);
  assert_int_equal(run("--help", "r.hea"), 0);
  assert_non_null(strstr(output, "--annotations"));
}

static void all_annotations(void **state) {
  const char *data = getenv("SONDE_DATA");
  if (data == NULL) skip();
  char line[1024];
  snprintf(line, sizeof line, "'%s' inspect --json --annotations '%s/ecg/mitbih_arrhythmia_5min/100.hea'", SONDE_COMMAND, data);
  FILE *pipe = popen(line, "r");
  assert_non_null(pipe);
  output[fread(output, 1, sizeof output - 1, pipe)] = '\0';
  assert_int_equal(pclose(pipe), 0);
  sn_json *json = parsed();
  const sn_json *annotations = sn_json_get(json, "annotations");
  assert_true(number_at(annotations, "count") == 372 && sn_json_length(sn_json_get(annotations, "first")) == 372);
  sn_json_destroy(json);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_object), cmocka_unit_test(statistics_and_values), cmocka_unit_test(dates_only_when_asked),
      cmocka_unit_test(failures),   cmocka_unit_test(all_annotations),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
