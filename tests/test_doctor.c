/* needs: full */
/* `sonde doctor`: a sound tree of EDF and BrainVision has no problem; every planted defect is found, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bids_cohort.h"
#include "datasets/doctor.h"

static const char CHANNELS[] = "name\ttype\tunits\nEEG Cz\tEEG\tuV\nEEG T3\tEEG\tuV\nAux\tEOG\tuV\n";

static char *sound(void) {
  char *root = cohort_directory();
  cohort_write_text(root, "dataset_description.json", "{\"Name\":\"x\",\"BIDSVersion\":\"1.9.0\"}");
  cohort_write_text(root, "participants.tsv", "participant_id\tage\nsub-01\t33\nsub-02\t44\n");
  cohort_write_text(root, "sub-01_channels.tsv", CHANNELS);
  bids_write_edf(root, "sub-01/eeg/sub-01_task-rest_eeg.edf", "01", "uV");
  bids_write_brainvision(root, "sub-02/eeg", "sub-02_task-rest_eeg");
  return root;
}

static sn_doctor_report examine(const char *root, const sn_doctor_options *options) {
  sn_manifest *m = cohort_index(root);
  sn_doctor_report report;
  CHECK(sn_doctor_examine(m, options, &report, fault));
  sn_manifest_destroy(m);
  return report;
}

static int64_t found(const sn_doctor_report *r, const char *code) {
  for (int64_t i = 0; i < r->n; i++)
    if (strcmp(r->findings[i].code, code) == 0) return r->findings[i].n;
  return 0;
}

/* Exactly these problems, no others. */
static void expect(const char *root, const sn_doctor_options *options, const char *const *codes) {
  sn_doctor_report report = examine(root, options);
  int64_t n = 0;
  for (; codes[n] != NULL; n++)
    if (found(&report, codes[n]) == 0) fail_msg("%s was not found", codes[n]);
  for (int64_t i = 0; i < report.n; i++)
    if (report.findings[i].problem && report.n_problems != n) print_message("%s: %s\n", report.findings[i].code, report.findings[i].examples[0]);
  assert_int_equal(report.n_problems, n);
  sn_doctor_report_free(&report);
}

static const sn_doctor_options ALL = {.most_s = -1};

static void test_sound(void **state) {
  char *root = sound();
  expect(root, &ALL, (const char *const[]){NULL});
  sn_doctor_report report = examine(root, &ALL);
  assert_int_equal(report.n_recordings, 2);
  assert_true(fabs(report.read_s - 2 * SECONDS) < 1e-9 && fabs(report.total_s - 2 * SECONDS) < 1e-9);
  sn_doctor_report_free(&report);
  cohort_remove(root);
}

static void test_tables(void **state) {
  char *root = sound();
  cohort_write_text(root, "participants.tsv", "participant_id\tage\nsub-01\t33\nsub-02\t44\nsub-02\t45\nsub-03\t-5\n");
  cohort_write_text(root, "labels.csv", "file,label\nsub-01_task-rest_eeg.edf,a\nghost.edf,b\n");
  char labels[4096];
  cohort_path(root, "labels.csv", labels, sizeof labels);
  const sn_doctor_options options = {.most_s = 0, .labels = labels};
  expect(root, &options, (const char *const[]){"participant_twice", "participant_without_recording", "participant_age", "sidecar_participant", "labels", NULL});
  cohort_remove(root);
}

static void test_sidecars(void **state) {
  char *root = sound();
  cohort_write_text(root, "sub-01_channels.tsv", "name\ttype\tunits\nEEG Cz\tEEG\tV\nGhost\tEEG\tuV\nEEG T3\tEEG\tuV\nAux\tEOG\tuV\n");
  cohort_write_text(root, "task-rest_eeg.json", "{\"SamplingFrequency\":500,\"RecordingDuration\":600}");
  expect(root, &ALL, (const char *const[]){"sidecar_unit", "sidecar_channel", "sidecar_rate", "sidecar_duration", NULL});
  cohort_write_text(root, "sub-01_channels.tsv", "name\ttype\tunits\nEEG Cz\tEEG\tfT\n");
  expect(root, &ALL, (const char *const[]){"unreadable", "participant_without_recording", "sidecar_rate", "sidecar_duration", NULL});
  cohort_remove(root);
}

static void test_twins(void **state) {
  char *root = sound();
  bids_write_edf(root, "sub-1/eeg/sub-1_task-rest_eeg.edf", "01", "uV"); /* the bytes of sub-01's, another spelling of it */
  bids_write_edf(root, "sub-03/eeg/sub-03_task-rest_eeg.edf", "03", "");
  cohort_write_text(root, "participants.tsv", "participant_id\tage\nsub-01\t33\nsub-02\t44\nsub-03\t1\n");
  cohort_write_text(root, "sub-01_channels.tsv", "name\ttype\n"); /* belongs to sub-01 alone; sub-03's Aux has no unit */
  cohort_write_text(root, "sub-03_channels.tsv", "name\ttype\nEEG Cz\tEEG\nEEG T3\tEEG\nAux\tEOG\n");
  sn_doctor_report report = examine(root, &ALL);
  assert_int_equal(found(&report, "person_spelling"), 1);
  assert_int_equal(found(&report, "unit_unknown"), 1);
  assert_true(found(&report, "sidecar_participant") >= 1);
  sn_doctor_report_free(&report);
  cohort_remove(root);
  root = cohort_directory();
  bids_write_edf(root, "a/x.edf", "01", "uV");
  bids_write_edf(root, "b/y.edf", "01", "uV");
  expect(root, &ALL, (const char *const[]){"duplicate", NULL});
  cohort_remove(root);
}

/* Flat, standing still, clipped, wrong amplitude, no place: one EDF with a channel for each. */
static void test_signal(void **state) {
  enum { CHANNELS_N = 6 };
  static double values[CHANNELS_N][N];
  char *root = cohort_directory(), path[4096];
  for (int i = 0; i < N; i++) {
    const double wave = 20 * sin(0.31 * i) + 7 * sin(1.7 * i);
    values[0][i] = wave;
    values[1][i] = 5;
    values[2][i] = i >= 300 && i < 450 ? 3 : wave;
    values[3][i] = wave > 18 ? 18 : wave < -18 ? -18 : wave;
    values[4][i] = 1e5 * wave;
    values[5][i] = wave;
  }
  static const char *const LABELS[CHANNELS_N] = {"EEG Cz", "EEG Pz", "EEG Fz", "EEG Oz", "EEG C3", "EEG Nowhere"};
  sn_edf_write_signal signals[CHANNELS_N];
  for (int c = 0; c < CHANNELS_N; c++)
    signals[c] = (sn_edf_write_signal){.label = LABELS[c], .unit = "uV", .samples_per_record = RATE, .values = values[c]};
  signals[1].physical_min = -10;
  signals[1].physical_max = 10;
  const sn_edf_write_file file = {.subject_id = "7", .age_years = NAN, .duration_num = 1, .duration_den = 1, .n_records = SECONDS,
                                  .n_signals = CHANNELS_N, .signals = signals};
  cohort_path(root, "x.edf", path, sizeof path);
  CHECK(sn_edf_write(path, &file, fault));
  expect(root, &ALL, (const char *const[]){"flat", "flat_span", "clipped", "amplitude", "no_position", NULL});
  const sn_doctor_options headers = {.most_s = 0};
  expect(root, &headers, (const char *const[]){"no_position", NULL});
  cohort_remove(root);
}

/* What channels.tsv marks bad is no news. */
static void test_bad_is_known(void **state) {
  char *root = sound(), path[4096];
  double values[2][N];
  for (int i = 0; i < N; i++) values[0][i] = 20 * sin(0.31 * i), values[1][i] = 5;
  const sn_edf_write_signal signals[2] = {
      {.label = "EEG Cz", .unit = "uV", .samples_per_record = RATE, .values = values[0]},
      {.label = "EEG Pz", .unit = "uV", .samples_per_record = RATE, .values = values[1], .physical_min = -10, .physical_max = 10}};
  const sn_edf_write_file file = {.subject_id = "01", .age_years = NAN, .duration_num = 1, .duration_den = 1, .n_records = SECONDS,
                                  .n_signals = 2, .signals = signals};
  cohort_path(root, "sub-01/eeg/sub-01_task-rest_eeg.edf", path, sizeof path);
  CHECK(sn_edf_write(path, &file, fault));
  cohort_write_text(root, "sub-01_channels.tsv", "name\ttype\tstatus\nEEG Cz\tEEG\tgood\nEEG Pz\tEEG\tgood\n");
  expect(root, &ALL, (const char *const[]){"flat", NULL});
  cohort_write_text(root, "sub-01_channels.tsv", "name\ttype\tstatus\nEEG Cz\tEEG\tgood\nEEG Pz\tEEG\tbad\n");
  expect(root, &ALL, (const char *const[]){NULL});
  cohort_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sound), cmocka_unit_test(test_tables), cmocka_unit_test(test_sidecars),
                                     cmocka_unit_test(test_twins), cmocka_unit_test(test_bad_is_known), cmocka_unit_test(test_signal)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
