/* needs: full */
/* WFDB records and annotations written and read again. */
#include "wfdb_case.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc_fault.h"
#include "core/fs.h"
#include "modalities/formats/wfdb/wfdb.h"

static char folder[] = "/tmp/sonde-wfdb-XXXXXX";

static int make_folder(void **state) { return mkdtemp(folder) != NULL ? 0 : -1; }
static int remove_folder(void **state) { return sn_remove_tree(folder, NULL) == SN_OK ? 0 : -1; }

static const char *path_of(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void round_trip(void **state) {
  enum { N = 1001, S = 3 };
  static const int formats[2] = {16, 212};
  static const sn_wfdb_signal signals[S] = {
      {"II", "mV", 200, 10, 0}, {"V1 with blanks", NULL, 1052.5, -7, 0}, {"PLETH", "NU", -12530, 0, 11}};
  static const char *const comments[2] = {"Age: 44", " Sex: F"};
  int32_t *samples = malloc(sizeof *samples * N * S);
  for (int f = 0; f < 2; f++) {
    int32_t most = formats[f] == 16 ? 32767 : 2047;
    for (int64_t i = 0; i < N * S; i++) samples[i] = (int32_t)((uint32_t)i * 2654435761u >> 8) % (2 * most + 1) - most;
    samples[0] = -most;
    samples[1] = most;
    samples[2] = samples[N * S - 1] = INT32_MIN;
    const sn_wfdb_record record = {"rec_1-a", formats[f], 1000, 3, S, N, signals, samples, 2, comments};
    sn_error err;
    if (sn_wfdb_write(folder, &record, &err) != SN_OK) fail_msg("%s", err.message);
    sn_recording *r = NULL;
    if (sn_recording_open(path_of("rec_1-a.hea"), NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
    assert_true(r->n_channels == S && sn_recording_samples(r, 0, -1) == N && r->age_years == 44);
    assert_true(fabs((double)r->rate_num / (double)r->rate_den - 1000.0 / 3) < 1e-9);
    assert_string_equal(r->sex, "F");
    assert_string_equal(r->channels[1].raw_name, "V1 with blanks");
    assert_true(r->channels[1].gain == 1052.5 && r->channels[1].baseline == -7 && r->channels[2].gain == -12530);
    assert_true(!r->channels[0].calibration_assumed && !r->channels[1].unit_assumed);
    assert_int_equal(r->n_warnings, 0); /* initial values are right, checksums stated */
    if (r->vtable->verify(r, &err) != SN_OK) fail_msg("%s", err.message);
    for (int64_t c = 0; c < S; c++) {
      int32_t stored[N];
      assert_int_equal(sn_recording_read_stored(r, c, 0, 0, N, stored, NULL), SN_OK);
      for (int64_t t = 0; t < N; t++) assert_int_equal(stored[t], samples[t * S + c]);
    }
    sn_recording_destroy(r);
  }
  free(samples);
}

static void what_cannot_be_written(void **state) {
  static const int32_t samples[2] = {1, 2};
  static const sn_wfdb_signal good = {"II", "mV", 200, 0, 0}, no_gain = {"II", "mV", 0, 0, 0}, nan_gain = {"II", "mV", NAN, 0, 0},
                              two_lines = {"I\nI", "mV", 200, 0, 0}, bad_unit = {"II", "m V", 200, 0, 0};
  static const char *const comment[1] = {"one\r\ntwo"};
  static const int32_t large[2] = {2048, 0}, mark[2] = {0, -2048};
  const sn_wfdb_record record = {"r", 212, 100, 1, 1, 2, &good, samples, 0, NULL};
  sn_wfdb_record bad[12];
  for (int i = 0; i < 12; i++) bad[i] = record;
  bad[0].record = "../r";
  bad[1].record = "";
  bad[2].signals = &no_gain;
  bad[3].signals = &nan_gain;
  bad[4].signals = &two_lines;
  bad[5].signals = &bad_unit;
  bad[6].samples = large;
  bad[7].samples = mark; /* would read back as missing */
  bad[8].n_comments = 1;
  bad[8].comments = comment;
  bad[9].rate_num = 0;
  bad[10].n_samples = 0;
  bad[11].n_samples = INT64_MAX / 2;
  bad[11].n_signals = 3;
  const sn_wfdb_signal three[3] = {good, good, good};
  bad[11].signals = three;
  for (int i = 0; i < 12; i++) {
    sn_error err;
    assert_int_equal(sn_wfdb_write(folder, &bad[i], &err), SN_E_ARGUMENT);
    assert_true(err.message[0] != '\0');
  }
  bad[0] = record;
  bad[0].format = 80;
  assert_int_equal(sn_wfdb_write(folder, &bad[0], NULL), SN_E_UNSUPPORTED);
  assert_int_equal(sn_wfdb_write("/nonexistent-folder", &record, NULL), SN_E_IO);
}

static void digitizing(void **state) {
  static const double values[7] = {0, 0.0125, 0.0175, NAN, 100, -100, -1.0249};
  static const int32_t expected[7] = {7, 10, 10, INT32_MIN, 2047, -2047, -198}; /* 9.5 and 10.5 both go to even */
  int32_t stored[7];
  int64_t clipped = 0;
  assert_int_equal(sn_wfdb_digitize(values, 7, 200, 7, 212, stored, &clipped, NULL), SN_OK);
  for (int i = 0; i < 7; i++) assert_int_equal(stored[i], expected[i]);
  assert_int_equal(clipped, 2);
  assert_int_equal(sn_wfdb_digitize(values, 7, 200, 7, 80, stored, NULL, NULL), SN_E_UNSUPPORTED);
}

static void annotations_beside_a_record(void **state) {
  static const int32_t samples[4] = {1, 2, 3, 4};
  static const sn_wfdb_signal signal = {"II", "mV", 200, 0, 0};
  const sn_wfdb_record record = {"a1", 16, 100, 1, 1, 4, &signal, samples, 0, NULL};
  sn_annotation items[2] = {{.sample = 1, .code = "N"}, {.sample = 3, .code = "V"}};
  const sn_annotations list = {.n = 2, .items = items};
  sn_recording *r = NULL;
  sn_annotations *back = NULL;
  assert_int_equal(sn_wfdb_write(folder, &record, NULL), SN_OK);
  assert_int_equal(sn_wfdb_annotations_write(folder, "a1", "qrs", &list, NULL, NULL), SN_OK);
  assert_int_equal(sn_recording_open(path_of("a1.hea"), NULL, &r, NULL), SN_OK);
  assert_int_equal(sn_recording_annotations(r, NULL, &back, NULL), SN_OK); /* no .atr: an empty list */
  assert_int_equal(back->n, 0);
  sn_annotations_destroy(back);
  back = NULL;
  assert_int_equal(sn_recording_annotations(r, "qrs", &back, NULL), SN_OK);
  assert_true(back->n == 2 && back->items[1].sample == 3 && back->items[1].onset_s == 0.03);
  sn_annotations_destroy(back);
  back = NULL;
  assert_int_equal(sn_recording_annotations(r, "none", &back, NULL), SN_E_IO);
  assert_int_equal(sn_recording_annotations(r, "../x", &back, NULL), SN_E_CORRUPT);
  assert_int_equal(sn_wfdb_annotations_write(folder, "../a1", "qrs", &list, NULL, NULL), SN_E_ARGUMENT);
  sn_recording_destroy(r);
}

static void every_allocation_fails(void **state) {
  static const int32_t samples[4] = {1, 2, 3, 4};
  static const sn_wfdb_signal signal = {"II", "mV", 200, 0, 0};
  const sn_wfdb_record record = {"f1", 212, 100, 1, 1, 4, &signal, samples, 0, NULL};
  for (fault_begin(); fault_next();) {
    sn_status status = sn_wfdb_write(folder, &record, NULL);
    fault_check(status);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(round_trip),                  cmocka_unit_test(what_cannot_be_written),
      cmocka_unit_test(digitizing),                  cmocka_unit_test(annotations_beside_a_record),
      cmocka_unit_test(every_allocation_fails),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
