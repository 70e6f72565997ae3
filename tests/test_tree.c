/* needs: full */
/* Trees of recordings: BIDS sidecars, what is left out, TUH and Sleep-EDF names, targets from events and participants. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "bids_cohort.h"
#include "datasets/bids.h"
#include "datasets/labels.h"
#include "datasets/tree.h"

static const char CHANNELS[] = "name\ttype\tunits\tstatus\nEEG Cz\tEEG\tuV\tgood\nEEG T3\tEEG\tuV\tbad\nAux\tECG\tmV\tgood\n";

static char *bids(void) {
  char *root = cohort_directory();
  cohort_write_text(root, "dataset_description.json", "{\"Name\":\"x\",\"BIDSVersion\":\"1.9.0\"}");
  cohort_write_text(root, "participants.tsv", "participant_id\tage\tsex\tgroup\nsub-01\t33\tF\tcontrol\nsub-02\tn/a\tM\tpatient\n");
  cohort_write_text(root, ".bidsignore", "extra/\n*_old_eeg.edf\n");
  bids_write_edf(root, "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_eeg.edf", "01", "");
  bids_write_brainvision(root, "sub-02/eeg", "sub-02_task-rest_eeg");
  bids_write_edf(root, "derivatives/sub-01_task-rest_eeg.edf", "01", "uV");
  bids_write_edf(root, "sub-02/eeg/sub-02_old_eeg.edf", "02", "uV");
  bids_write_edf(root, "sub-02/eeg/scratch.edf", "02", "uV");
  cohort_write_text(root, "task-rest_eeg.json", "{\"EEGReference\":\"nose\",\"PowerLineFrequency\":50,\"SamplingFrequency\":100}");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_eeg.json", "{\"EEGReference\":\"mastoids\"}");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_channels.tsv", CHANNELS);
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_electrodes.tsv",
                    "name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\t80\t40\nREF\tn/a\tn/a\tn/a\n");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_coordsystem.json",
                    "{\"EEGCoordinateSystem\":\"CTF\",\"EEGCoordinateUnits\":\"mm\"}");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_events.tsv",
                    "onset\tduration\ttrial_type\tvalue\n6.0\t4\tclosed\t2\n1.5\t4\topen\t1\n11.8\t0\tedge\t3\n");
  cohort_write_text(root, "task-rest_events.tsv", "onset\tduration\ttrial_type\n2\t3\topen\n7\t3\tclosed\n");
  return root;
}

static sn_recording *open_in(const char *root, const char *path) {
  sn_tree *tree = NULL;
  sn_recording *r = NULL;
  CHECK(sn_tree_open(root, &tree, fault));
  CHECK(sn_tree_open_recording(tree, path, NULL, &r, fault));
  sn_tree_close(tree);
  return r;
}

static int64_t warned(const sn_recording *r, const char *code) {
  for (int64_t i = 0; i < r->n_warnings; i++)
    if (strcmp(r->warnings[i].code, code) == 0) return r->warnings[i].count;
  return 0;
}

#define FIRST "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_eeg.edf"

static void test_sidecars(void **state) {
  char *root = bids();
  sn_recording *r = open_in(root, FIRST);
  assert_string_equal(r->subject_id, "01");
  assert_true(r->age_years == 33);
  assert_string_equal(r->sex, "F");
  assert_string_equal(r->reference, "mastoids"); /* the nearest file's key */
  assert_true(r->line_hz == 50);                 /* inherited */
  assert_false(r->channels[0].bad);
  assert_true(r->channels[1].bad);
  assert_int_equal(r->channels[2].kind, SN_SENSOR_ECG);
  assert_string_equal(r->channels[2].unit, "mV");
  double value = 0, expected = 30.0 * sin(0.3 * 7 + '0');
  CHECK(sn_recording_read(r, 2, 0, 7, 1, &value, fault));
  assert_true(fabs(value - expected) < 1e-3); /* stated in mV beside the file: the stored numbers are mV */
  /* CTF: x to the nose, y to the left ear. */
  assert_true(r->channels[1].has_position && r->channels[1].frame == SN_FRAME_HEAD);
  assert_int_equal(r->channels[1].position_from, SN_POSITION_SIDECAR);
  assert_true(fabs(r->channels[1].position_m[0] + 0.08) < 1e-12 && fabs(r->channels[1].position_m[1]) < 1e-12 &&
              fabs(r->channels[1].position_m[2] - 0.04) < 1e-12);
  sn_annotations *list = NULL;
  CHECK(sn_recording_annotations(r, NULL, &list, fault));
  assert_int_equal(list->n, 3);
  assert_string_equal(list->items[0].text, "open"); /* in time order */
  assert_true(list->items[0].onset_s == 1.5 && list->items[0].duration_s == 4);
  assert_int_equal(list->items[0].sample, 150);
  sn_annotations_destroy(list);
  assert_int_equal(r->n_warnings, 2); /* the file's own: Aux states no unit, T3 is T7 */
  assert_int_equal(warned(r, "unit_absent"), 1);
  sn_recording_destroy(r);
  cohort_remove(root);
}

static void test_landmarks(void **state) {
  char *root = bids();
  /* The whole system moved by (10, 20, 30) mm and turned: landmarks alone say where the head is. */
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_coordsystem.json",
                    "{\"EEGCoordinateSystem\":\"Other\",\"EEGCoordinateUnits\":\"mm\",\"AnatomicalLandmarkCoordinates\":"
                    "{\"NAS\":[110,20,30],\"LPA\":[10,100,30],\"RPA\":[10,-60,30]},"
                    "\"AnatomicalLandmarkCoordinateSystem\":\"Other\",\"AnatomicalLandmarkCoordinateUnits\":\"mm\"}");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_electrodes.tsv", "name\tx\ty\tz\nEEG Cz\t10\t20\t150\nEEG T3\t10\t90\t30\n");
  sn_recording *r = open_in(root, FIRST);
  const double cz[3] = {0, 0, 0.12}, t3[3] = {-0.07, 0, 0};
  for (int k = 0; k < 3; k++) {
    assert_true(fabs(r->channels[0].position_m[k] - cz[k]) < 1e-12);
    assert_true(fabs(r->channels[1].position_m[k] - t3[k]) < 1e-12);
  }
  sn_recording_destroy(r);
  /* Neither landmarks nor a known system: no positions, and a word about it. */
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_coordsystem.json",
                    "{\"EEGCoordinateSystem\":\"Other\",\"EEGCoordinateUnits\":\"mm\"}");
  r = open_in(root, FIRST);
  assert_false(r->channels[0].has_position);
  assert_int_equal(warned(r, "sidecar_coordinates"), 1);
  sn_recording_destroy(r);
  cohort_remove(root);
}

static void test_conflicts(void **state) {
  char *root = bids();
  sn_tree *tree = NULL;
  sn_recording *r = NULL;
  sn_error err;
  const char *const channels = "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_channels.tsv";
  cohort_write_text(root, channels, "name\ttype\tunits\nEEG Cz\tEEG\tV\nEEG T3\tEEG\tuV\nAux\tMISC\tn/a\nGhost\tEEG\tuV\n");
  r = open_in(root, FIRST);
  double value = 0;
  CHECK(sn_recording_read(r, 0, 0, 7, 1, &value, fault));
  assert_true(fabs(value - 10.0 * sin(0.3 * 7 + '0')) < 1e-3); /* the file's unit stands */
  assert_int_equal(warned(r, "sidecar_unit"), 1);
  assert_int_equal(warned(r, "sidecar_channel"), 1);
  sn_recording_destroy(r);
  cohort_write_text(root, channels, "name\ttype\tunits\nEEG Cz\tEEG\tfT\n");
  CHECK(sn_tree_open(root, &tree, fault));
  assert_int_equal(sn_tree_open_recording(tree, FIRST, NULL, &r, &err), SN_E_CORRUPT);
  assert_non_null(strstr(err.message, "uV"));
  assert_non_null(strstr(err.message, "fT"));
  cohort_write_text(root, channels, "name\ttype\tunits\nEEG Cz\tEEG\n");
  assert_int_equal(sn_tree_open_recording(tree, FIRST, NULL, &r, &err), SN_E_CORRUPT);
  sn_tree_close(tree);
  cohort_remove(root);
}

static void test_index(void **state) {
  char *root = bids();
  sn_manifest *m = NULL;
  sn_index_report report;
  sn_index_options options = {0};
  CHECK(sn_index_directory(root, &options, &m, &report, fault));
  assert_int_equal(m->n, 2);
  assert_int_equal(m->n_ok, 2);
  assert_int_equal(report.n_left_out, 2); /* derivatives/, _old_ */
  assert_string_equal(m->rows[0].path, FIRST);
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_SESSION], "a");
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_SUBJECT], "01");
  assert_string_equal(m->rows[1].cells[SN_MANIFEST_SUBJECT], "02");
  assert_non_null(strstr(m->rows[0].cells[SN_MANIFEST_FILES], "../../../task-rest_eeg.json"));
  char before[128];
  snprintf(before, sizeof before, "%s", m->rows[0].cells[SN_MANIFEST_CHECKSUM]);
  sn_manifest_destroy(m);
  /* A sidecar above changes what the recording is: its checksum says so. */
  cohort_write_text(root, "task-rest_eeg.json", "{\"PowerLineFrequency\":60}");
  CHECK(sn_index_directory(root, &options, &m, &report, fault));
  assert_string_not_equal(m->rows[0].cells[SN_MANIFEST_CHECKSUM], before);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* A cached line is not used when a sidecar has come or gone since. */
static void test_cache_sees_new_sidecars(void **state) {
  char *root = bids(), cache[4096];
  sn_manifest *m = NULL;
  sn_index_report report;
  snprintf(cache, sizeof cache, "%s.cache", root);
  const sn_index_options options = {.cache_path = cache};
  CHECK(sn_index_directory(root, &options, &m, &report, fault));
  assert_int_equal(report.n_reused, 0);
  sn_manifest_destroy(m);
  CHECK(sn_index_directory(root, &options, &m, &report, fault));
  assert_int_equal(report.n_reused, 2);
  assert_non_null(strstr(m->rows[1].cells[SN_MANIFEST_KINDS], "eeg,eeg"));
  sn_manifest_destroy(m);
  cohort_write_text(root, "sub-02/eeg/sub-02_task-rest_channels.tsv", "name\ttype\nFp1\tEOG\nOz\tEEG\n");
  CHECK(sn_index_directory(root, &options, &m, &report, fault));
  assert_string_equal(m->rows[1].cells[SN_MANIFEST_KINDS], "eog,eeg");
  sn_manifest_destroy(m);
  unlink(cache);
  cohort_remove(root);
}

/* A broken table of persons costs no recording; a pattern with a quote in it is a pattern. */
static void test_broken_root_files(void **state) {
  char *root = bids();
  cohort_write_text(root, "participants.tsv", "");
  cohort_write_text(root, ".bidsignore", "\"odd\n# nothing\n\n*_old_eeg.edf\r\n");
  sn_recording *r = open_in(root, FIRST);
  assert_string_equal(r->subject_id, "01");
  assert_true(isnan(r->age_years));
  assert_int_equal(warned(r, "sidecar_participant"), 1);
  sn_recording_destroy(r);
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n_ok, 2);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_targets(void **state) {
  char *root = bids();
  sn_manifest *m = cohort_index(root);
  sn_labels *labels = NULL;
  sn_label_options options = {.target = "participants:group"};
  CHECK(sn_labels_create(m, NULL, &options, &labels, fault));
  assert_int_equal(labels->n, 2);
  assert_string_equal(labels->classes[labels->items[0].label], "control");
  sn_labels_destroy(labels);
  options = (sn_label_options){.target = "annotation:text", .window_s = 2};
  CHECK(sn_labels_create(m, NULL, &options, &labels, fault));
  assert_int_equal(labels->n, 4); /* "edge" begins 0.2 s before the end */
  assert_true(labels->items[0].start_s == 1.5 && labels->items[0].duration_s == 2 && labels->items[0].segment == 0);
  assert_string_equal(labels->classes[labels->items[0].label], "open");
  assert_string_equal(labels->drops[0].reason, "window over the recording's edge");
  sn_labels_destroy(labels);
  options = (sn_label_options){.target = "annotation:span", .window_s = 2};
  CHECK(sn_labels_create(m, NULL, &options, &labels, fault));
  assert_int_equal(labels->n, 6); /* 4 s twice in one, 3 s twice in the other */
  assert_true(labels->items[1].start_s == 3.5);
  sn_labels_destroy(labels);
  sn_error err;
  options = (sn_label_options){.target = "participants:grup"};
  assert_int_equal(sn_labels_create(m, NULL, &options, &labels, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "group"));
  sn_manifest_destroy(m);
  cohort_remove(root);
}

#define EVENTS "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_events.tsv"

/* Onsets and durations have no bound in a table: what lies outside is warned of, and the recording's end bounds the work. */
static void test_events_far_away(void **state) {
  char *root = bids();
  cohort_write_text(root, EVENTS, "onset\tduration\ttrial_type\n-1\t1e18\topen\n-3\t1\topen\n-1e300\t0\topen\n"
                                  "1\t4\tclosed\n12\t1\tclosed\n1e300\t1e300\tclosed\n6\t1e300\tclosed\n");
  sn_recording *r = open_in(root, FIRST);
  sn_annotations *list = NULL;
  CHECK(sn_recording_annotations(r, NULL, &list, fault));
  assert_int_equal(list->n, 3);
  assert_true(list->items[0].onset_s == -1 && list->items[0].sample == -100);
  assert_true(list->items[1].sample == 100 && list->items[2].sample == 600);
  assert_int_equal(warned(r, "annotation_before_start"), 3);
  assert_int_equal(warned(r, "annotation_beyond_end"), 2);
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
  sn_manifest *m = cohort_index(root);
  sn_labels *labels = NULL;
  sn_label_options options = {.target = "annotation:span", .window_s = 2};
  CHECK(sn_labels_create(m, NULL, &options, &labels, fault));
  assert_int_equal(labels->n, 5 + 2 + 3 + 2); /* from 1, 3, ... 9; from 1, 3; from 6, 8, 10; and those of the other recording */
  assert_true(labels->items[0].start_s == 1);
  sn_labels_destroy(labels);
  sn_error err;
  options.window_s = 1e-9;
  assert_int_equal(sn_labels_create(m, NULL, &options, &labels, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "at least 0.001 s"));
  sn_manifest_destroy(m);
  cohort_remove(root);
}

#define ELECTRODES "sub-01/ses-a/eeg/sub-01_ses-a_electrodes.tsv"

/* Places that no head has are not used in silence; those that one has are. */
static void test_electrodes_out_of_place(void **state) {
  static const struct {
    const char *table;
    bool cz, t3;
    const char *word;
  } rows[] = {{"name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\t80\t40\n", true, true, NULL},
              {"name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\t0\t120\n", false, false, "lie within 0 m"},
              {"name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\tnan\t40\n", true, false, "not three numbers"},
              {"name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\tinf\t40\n", true, false, "not three numbers"},
              {"name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\t1e300\t40\n", true, false, "gets no place"},
              {"name\tx\ty\tz\nEEG Cz\t0\t0\t120\nEEG T3\t0\t600\t40\n", true, false, "gets no place"},
              {"name\tx\ty\tz\nA1\t0\t0\t120\nA2\t0\t60\t40\n", false, false, "none of the file's channels"}};
  char *root = bids();
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    cohort_write_text(root, ELECTRODES, rows[i].table);
    sn_recording *r = open_in(root, FIRST);
    assert_int_equal(r->channels[0].has_position, rows[i].cz);
    assert_int_equal(r->channels[1].has_position, rows[i].t3);
    assert_int_equal(warned(r, "sidecar_coordinates"), rows[i].word != NULL);
    for (int64_t k = 0; k < r->n_warnings; k++)
      if (strcmp(r->warnings[k].code, "sidecar_coordinates") == 0) assert_non_null(strstr(r->warnings[k].message, rows[i].word));
    sn_recording_destroy(r);
  }
  cohort_remove(root);
}

static void test_a_person_with_two_lines(void **state) {
  char *root = bids();
  sn_labels *labels = NULL;
  sn_error err;
  cohort_write_text(root, "participants.tsv", "participant_id\tage\tgroup\nsub-01\t33\tcontrol\nsub-02\t9\tpatient\n"
                                              "01\t44\tcontrol\n");
  sn_recording *r = open_in(root, FIRST);
  assert_true(isnan(r->age_years));
  assert_int_equal(warned(r, "sidecar_participant"), 1);
  sn_recording_destroy(r);
  sn_manifest *m = cohort_index(root);
  sn_label_options options = {.target = "participants:age"};
  assert_int_equal(sn_labels_create(m, NULL, &options, &labels, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "lines 2 and 4"));
  options.target = "participants:group"; /* the same in both: nothing to choose */
  CHECK(sn_labels_create(m, NULL, &options, &labels, fault));
  assert_int_equal(labels->n, 2);
  sn_labels_destroy(labels);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* A mark in front of JSON and of patterns, blanks behind a word, a rate in channels.tsv, a pattern that takes out again. */
static void test_what_editors_leave(void **state) {
  char *root = bids();
  cohort_write_text(root, ".bidsignore", "\xEF\xBB\xBF*_eeg.edf\n!*_task-rest_eeg.edf\n");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_eeg.json", "\xEF\xBB\xBF{\"EEGReference\":\"mastoids\"}");
  cohort_write_text(root, "sub-01/ses-a/eeg/sub-01_ses-a_task-rest_channels.tsv",
                    "name\ttype\tunits\tstatus\tsampling_frequency\nEEG Cz\tEEG\tuV\tgood\t100\n"
                    "EEG T3\tEEG \tuV\t bad \t250\nAux\tECG\tmV\tgood\tn/a\n");
  sn_recording *r = open_in(root, FIRST);
  assert_string_equal(r->reference, "mastoids");
  assert_true(r->channels[1].bad && !r->channels[0].bad);
  assert_int_equal(warned(r, "sidecar_rate"), 1);
  assert_int_equal(warned(r, "sidecar_type"), 0);
  sn_recording_destroy(r);
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n_ok, 2); /* _task-rest_ is in again, _old_ is not */
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_other_layouts(void **state) {
  char *root = cohort_directory();
  bids_write_edf(root, "edf/train/aaaaaaaq/s006_2012/01_tcp_ar/aaaaaaaq_s006_t000.edf", "q", "uV");
  cohort_write_text(root, "edf/train/aaaaaaaq/s006_2012/01_tcp_ar/aaaaaaaq_s006_t000.csv",
                    "# version = csv_v1.0.0\n# montage\nchannel,start_time,stop_time,label,confidence\n"
                    "Aux,1.0000,3.5000,fnsz,1.0000\nTERM,4.0,6.0,bckg,1.0\n");
  bids_write_edf(root, "sleep/SC4001E0-PSG.edf", "s", "uV");
  bids_write_edf(root, "mmi/S001/S001R04.edf", "m", "uV");
  const sn_annotation stages[2] = {{.onset_s = 0, .duration_s = 6, .channel = -1, .text = (char *)(uintptr_t)"Sleep stage W"},
                                   {.onset_s = 6, .duration_s = 6, .channel = -1, .text = (char *)(uintptr_t)"Sleep stage 1"}};
  const sn_edf_write_file hypnogram = {.age_years = NAN, .duration_num = 12, .duration_den = 1, .n_records = 1, .n_annotations = 2,
                                       .annotations = stages};
  char hypnogram_path[4096];
  cohort_path(root, "sleep/SC4001EC-Hypnogram.edf", hypnogram_path, sizeof hypnogram_path);
  CHECK(sn_edf_write(hypnogram_path, &hypnogram, fault));
  sn_recording *r = open_in(root, "edf/train/aaaaaaaq/s006_2012/01_tcp_ar/aaaaaaaq_s006_t000.edf");
  sn_annotations *list = NULL;
  assert_string_equal(r->subject_id, "aaaaaaaq");
  CHECK(sn_recording_annotations(r, NULL, &list, fault));
  assert_int_equal(list->n, 2);
  assert_int_equal(list->items[0].channel, 2);
  assert_int_equal(list->items[1].channel, -1);
  assert_string_equal(list->items[0].text, "fnsz");
  assert_true(list->items[0].duration_s == 2.5);
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n, 3);
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_SESSION], "s006");
  assert_string_equal(m->rows[1].cells[SN_MANIFEST_SUBJECT], "S001");
  assert_string_equal(m->rows[2].cells[SN_MANIFEST_SUBJECT], "SC400");
  assert_non_null(strstr(m->rows[2].cells[SN_MANIFEST_FILES], "SC4001EC-Hypnogram.edf"));
  sn_labels *labels = NULL;
  const sn_label_options spans = {.target = "annotation:span", .window_s = 3, .classes = "Sleep stage W,Sleep stage 1"};
  CHECK(sn_labels_create(m, NULL, &spans, &labels, fault));
  assert_int_equal(labels->n, 4);
  sn_labels_destroy(labels);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* An empty range is no calibration, and a unit from channels.tsv does not make it one. */
static void test_empty_range(void **state) {
  static const char EDF[] = "sub-01/eeg/sub-01_task-rest_eeg.edf";
  for (int broken = 0; broken < 2; broken++) {
    char *root = cohort_directory(), path[512];
    cohort_write_text(root, "dataset_description.json", "{\"Name\":\"x\",\"BIDSVersion\":\"1.9.0\"}");
    cohort_write_text(root, "task-rest_channels.tsv", "name\ttype\tunits\nEEG Cz\tEEG\tuV\nEEG T3\tEEG\tuV\nAux\tEOG\tuV\n");
    bids_write_edf(root, EDF, "01", ""); /* the third channel states no unit */
    cohort_path(root, EDF, path, sizeof path);
    FILE *f = fopen(path, "r+b");
    char least[8], signals[5] = "";
    assert_non_null(f);
    assert_int_equal(fseek(f, 252, SEEK_SET), 0);
    assert_int_equal(fread(signals, 1, 4, f), 4);
    const long n = strtol(signals, NULL, 10), digital_min = 256 + n * 120, digital_max = digital_min + n * 8;
    assert_int_equal(fseek(f, digital_min + 16, SEEK_SET), 0);
    assert_int_equal(fread(least, 1, 8, f), 8);
    assert_int_equal(fseek(f, digital_max + 16, SEEK_SET), 0);
    if (broken) assert_int_equal(fwrite(least, 1, 8, f), 8);
    assert_int_equal(fclose(f), 0);
    sn_tree *tree = NULL;
    sn_recording *r = NULL;
    double value;
    sn_error err;
    CHECK(sn_tree_open(root, &tree, fault));
    CHECK(sn_tree_open_recording(tree, EDF, NULL, &r, fault));
    assert_int_equal(r->channels[2].uncalibrated, broken);
    assert_int_equal(sn_recording_read(r, 2, 0, 0, 1, &value, &err), broken ? SN_E_UNSUPPORTED : SN_OK);
    if (broken) assert_non_null(strstr(err.message, "empty range"));
    sn_recording_destroy(r);
    sn_tree_close(tree);
    cohort_remove(root);
  }
}

static void test_names(void **state) {
  assert_non_null(sn_bids_datatype("sub-1/eeg/sub-1_task-x_eeg.edf"));
  assert_non_null(sn_bids_datatype("sub-1/meg/sub-1_task-x_meg.ds/sub-1_task-x_meg.res4"));
  assert_null(sn_bids_datatype("sub-1/eeg/sub-1_task-x_eeg.json"));
  assert_null(sn_bids_datatype("sub-1/eeg/sub-1_task-x_events.tsv"));
  assert_null(sn_bids_datatype("sub-1/anat/sub-1_T1w.nii.gz"));
  assert_true(sn_bids_ignored("extra/", "extra/a.edf"));
  assert_true(sn_bids_ignored("*.txt", "sub-1/notes.txt"));
  assert_true(sn_bids_ignored("sub-1/**/x.edf", "sub-1/a/b/x.edf"));
  assert_false(sn_bids_ignored("extra/", "extras/a.edf"));
  assert_false(sn_bids_ignored("/a.edf", "b/a.edf"));
  assert_false(sn_bids_ignored("# a", "# a"));
  char path[] = "a/b/c/../../d";
  sn_path_normalize(path);
  assert_string_equal(path, "a/d");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_sidecars), cmocka_unit_test(test_landmarks),
                                     cmocka_unit_test(test_conflicts), cmocka_unit_test(test_index), cmocka_unit_test(test_cache_sees_new_sidecars),
                                     cmocka_unit_test(test_broken_root_files),
                                     cmocka_unit_test(test_targets), cmocka_unit_test(test_events_far_away),
      cmocka_unit_test(test_electrodes_out_of_place), cmocka_unit_test(test_a_person_with_two_lines),
      cmocka_unit_test(test_what_editors_leave), cmocka_unit_test(test_other_layouts),
                                     cmocka_unit_test(test_names), cmocka_unit_test(test_empty_range)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
