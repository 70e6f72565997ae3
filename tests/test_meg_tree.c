/* needs: full */
/* MEG recordings in trees: a folder NAME.ds is one recording, in BIDS and anywhere; what is in it has no line of its
 * own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cohort.h"
#include "ctf_case.h"
#include "datasets/doctor.h"
#include "fif_case.h"
#include "datasets/tree.h"

static ctf_case made;

static void write_file(const char *root, const char *folder, const char *name, const void *data, int64_t n) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", root, folder);
  CHECK(sn_make_directories(path, fault));
  snprintf(path, sizeof path, "%s/%s/%s", root, folder, name);
  CHECK(sn_write_file(path, data, n, fault));
}

/* The files of a data set, called `stem`, into a folder. */
static void write_set(const char *root, const char *folder, const char *stem) {
  for (int i = 0; i < CTF_FILES; i++) {
    char name[128];
    int64_t n;
    const void *data = ctf_case_file(&made, i, &n);
    const bool own = strncmp(CTF_FILE_NAMES[i], "x.", 2) == 0;
    snprintf(name, sizeof name, "%s%s", own ? stem : "", CTF_FILE_NAMES[i] + own);
    write_file(root, folder, name, data, n);
  }
}

static void bids(void **state) {
  static const char FOLDER[] = "sub-1/meg/sub-1_task-rest_meg.ds",
                    PATH[] = "sub-1/meg/sub-1_task-rest_meg.ds/sub-1_task-rest_meg.res4";
  char *root = cohort_directory(), path[512];
  ctf_case_make(&made);
  cohort_write_text(root, "dataset_description.json", "{\"Name\":\"x\",\"BIDSVersion\":\"1.9.0\"}");
  cohort_write_text(root, "participants.tsv", "participant_id\tage\nsub-1\t41\n");
  write_set(root, FOLDER, "sub-1_task-rest_meg");
  write_set(root, "sub-1/meg/sub-1_task-rest_meg.ds/hz.ds", "hz"); /* a measurement of the head's place within */
  write_file(root, FOLDER, "notes.edf", "no EDF", 6);
  cohort_write_text(root, "sub-1/meg/sub-1_task-rest_channels.tsv",
                    "name\ttype\tunits\tstatus\nMLC11-1609\tMEGGRADAXIAL\tT\tgood\nCz\tEEG\tV\tbad\n");
  cohort_write_text(root, "sub-1/meg/sub-1_task-rest_events.tsv", "onset\tduration\ttrial_type\n0.0025\t0\tgo\n");
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n, 1);
  assert_string_equal(m->rows[0].path, PATH);
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_STATUS], "ok");
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_SUBJECT], "1");
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_FORMAT], "ctf");
  assert_string_equal(m->rows[0].cells[SN_MANIFEST_SEGMENTS], "0:12,42:6");
  assert_non_null(strstr(m->rows[0].cells[SN_MANIFEST_FILES], "../sub-1_task-rest_channels.tsv"));
  sn_doctor_report report;
  CHECK(sn_doctor_examine(m, &(sn_doctor_options){.most_s = -1}, &report, fault));
  assert_int_equal(report.n_recordings, 1);
  sn_doctor_report_free(&report);
  sn_manifest_destroy(m);
  char *top = NULL, *relative = NULL; /* by the folder's own name, as the shell completes it */
  snprintf(path, sizeof path, "%s/%s/", root, FOLDER);
  CHECK(sn_tree_find_root(path, &top, &relative, fault));
  assert_string_equal(relative, PATH);
  sn_tree *tree = NULL;
  sn_recording *r = NULL;
  CHECK(sn_tree_open(top, &tree, fault));
  CHECK(sn_tree_open_recording(tree, relative, NULL, &r, fault));
  assert_true(r->age_years == 41 && r->channels[5].bad && r->channels[0].kind == SN_SENSOR_MEG_MAG);
  sn_annotations *list = NULL;
  CHECK(sn_recording_annotations(r, NULL, &list, fault));
  assert_int_equal(list->n, 1);
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
  sn_tree_close(tree);
  sn_free(top);
  sn_free(relative);
  cohort_remove(root);
}

static void plain(void **state) {
  char *root = cohort_directory();
  ctf_case_make(&made);
  write_set(root, "a/one.ds", "one");
  write_set(root, "a/old.ds", "before"); /* renamed on the outside only */
  write_set(root, "a/two.ds", "two");
  write_file(root, "a/two.ds", "two-backup.res4", made.res4, sizeof made.res4);
  cohort_write(
      root,
      &(cohort_record){
          .folder = "a/plain.ds", .name = "x", .seconds = 12, .rate = 250, .n_leads = 2, .number = 1}); /* no CTF */
  write_file(root, "a/lost.ds", "lost.meg4", made.meg4, sizeof made.meg4); /* its header is gone */
  sn_manifest *m = cohort_index(root);
  static const char *const PATHS[] = {"a/lost.ds/lost.meg4", "a/old.ds/before.res4", "a/one.ds/one.res4",
                                      "a/plain.ds/x.hea", "a/two.ds/two.res4"};
  for (int64_t i = 0; i < m->n && i < 5; i++) assert_string_equal(m->rows[i].path, PATHS[i]);
  assert_int_equal(m->n, 5);
  assert_int_equal(m->n_ok, 4);
  assert_non_null(strstr(m->rows[0].cells[SN_MANIFEST_REASON], "lost.res4"));
  assert_string_equal(m->rows[1].cells[SN_MANIFEST_SUBJECT], "S017");
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* What stands beside raw recordings in FIF files: opening one says what it is, and an index has no line for it. */
static void beside_raw(void **state) {
  static const struct {
    const char *name, *word;
    int32_t blocks[3]; /* from the outermost */
  } FILES[] = {{"a-epo.fif", "epochs", {100, 373}},      {"a-ave.fif", "averages", {100, 102 + 1, 104}},
               {"a-eve.fif", "list of events", {361}},   {"a-annot.fif", "annotations", {3810}},
               {"a-cov.fif", "covariance", {355}},       {"a-fwd.fif", "forward solution", {352}},
               {"a-src.fif", "source space", {351}},     {"a-trans.fif", "transform", {350}},
               {"a-inv.fif", "inverse operator", {356}}, {"a-proj.fif", "projectors", {313}},
               {"a-bem.fif", "head model", {310}},       {"a-ica.fif", "component analysis", {374}}};
  enum { N_FILES = sizeof FILES / sizeof FILES[0] };
  char *root = cohort_directory(), path[512];
  sn_recording *r = NULL;
  sn_error err;
  static fif_bytes f;
  put_header(&f);
  put_block(&f, 102);
  put_buffer(&f, 1, 50);
  put_close(&f);
  write_file(root, "m", "a_raw.fif", f.at, f.n);
  for (int i = 0; i < N_FILES; i++) {
    f.n = 0;
    put_tag(&f, 100, 31, 20, 0);
    for (int k = 0; k < 5; k++) put_i32(&f, 0);
    int depth = 0;
    for (; depth < 3 && FILES[i].blocks[depth] != 0; depth++) put_block(&f, FILES[i].blocks[depth]);
    while (depth-- > 0) put_end(&f, FILES[i].blocks[depth]);
    put_tag(&f, 108, 0, 0, -1);
    write_file(root, "m", FILES[i].name, f.at, f.n);
    snprintf(path, sizeof path, "%s/m/%s", root, FILES[i].name);
    assert_int_equal(sn_recording_open(path, NULL, &r, &err), SN_E_UNSUPPORTED);
    if (strstr(err.message, FILES[i].word) == NULL) fail_msg("%s: %s", FILES[i].name, err.message);
  }
  put_header(&f); /* a measurement without its data is damage that must be seen */
  put_end(&f, 100);
  put_tag(&f, 108, 0, 0, -1);
  write_file(root, "m", "b_raw.fif", f.at, f.n);
  sn_manifest *m = NULL;
  sn_index_report report;
  CHECK(sn_index_directory(root, &(sn_index_options){0}, &m, &report, fault));
  assert_int_equal(m->n, 2);
  assert_string_equal(m->rows[0].path, "m/a_raw.fif");
  assert_true(m->rows[0].ok && !m->rows[1].ok);
  assert_int_equal(report.n_other, N_FILES); /* counted, not lost */
  sn_doctor_report seen;
  CHECK(sn_doctor_examine(m, &(sn_doctor_options){.most_s = 0}, &seen, fault));
  assert_int_equal(seen.n_recordings, 1);
  sn_doctor_report_free(&seen);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bids), cmocka_unit_test(plain), cmocka_unit_test(beside_raw)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
