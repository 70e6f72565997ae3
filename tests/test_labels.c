/* needs: full */
/* Tables matched by name, subjects, labels from tables, headers and annotations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cohort.h"
#include "datasets/keyed_table.h"
#include "datasets/labels.h"

static sn_keyed_table *table_of(const sn_manifest *m, const char *root, const char *text, const char *key) {
  char path[4096];
  sn_keyed_table *t = NULL;
  cohort_write_text(root, "labels.csv", text);
  cohort_path(root, "labels.csv", path, sizeof path);
  CHECK(sn_keyed_table_load(m, path, key, &t, fault));
  return t;
}

/* SN_E_ARGUMENT whose message holds both texts. */
static void refuse_table(const sn_manifest *m, const char *root, const char *text, const char *key, const char *first,
                         const char *second) {
  char path[4096];
  sn_keyed_table *t = NULL;
  sn_error err;
  sn_error_clear(&err);
  cohort_write_text(root, "labels.csv", text);
  cohort_path(root, "labels.csv", path, sizeof path);
  assert_int_equal(sn_keyed_table_load(m, path, key, &t, &err), SN_E_ARGUMENT);
  if (strstr(err.message, first) == NULL || strstr(err.message, second) == NULL) fail_msg("%s", err.message);
}

static sn_labels *labels_of(const sn_manifest *m, const sn_keyed_table *t, sn_label_options options) {
  sn_labels *labels = NULL;
  CHECK(sn_labels_create(m, t, &options, &labels, fault));
  return labels;
}

static void refuse_labels(const sn_manifest *m, const sn_keyed_table *t, sn_label_options options, const char *says) {
  sn_labels *labels = NULL;
  sn_error err;
  sn_error_clear(&err);
  assert_int_equal(sn_labels_create(m, t, &options, &labels, &err), SN_E_ARGUMENT);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
}

static int64_t dropped(const sn_labels *labels, const char *reason) {
  for (int64_t i = 0; i < labels->n_drops; i++) {
    if (strcmp(labels->drops[i].reason, reason) == 0) return labels->drops[i].n;
  }
  return 0;
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

static char *two_folders(void) {
  char *root = cohort_directory();
  cohort_write_many(root, 6, 10, 100);
  cohort_write(root,
               &(cohort_record){.folder = "a", .name = "x", .seconds = 10, .rate = 100, .n_leads = 1, .number = 1});
  cohort_write(root,
               &(cohort_record){.folder = "b", .name = "x", .seconds = 10, .rate = 100, .n_leads = 1, .number = 2});
  return root;
}

static void test_keys(void **state) {
  char *root = two_folders();
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n_ok, 8);
  /* By stem, by file name, by path, by path without extension; an unknown one is counted. */
  sn_keyed_table *t = table_of(m, root, "record,label\nr00,A\nr01.hea,B\na/x,C\nb/x.hea,D\nnobody,E\n", "record");
  int64_t column = 0;
  CHECK(sn_keyed_table_column(t, "label", &column, fault));
  assert_string_equal(sn_keyed_table_cell(t, sn_manifest_find(m, "r00.hea"), column), "A");
  assert_string_equal(sn_keyed_table_cell(t, sn_manifest_find(m, "r01.hea"), column), "B");
  assert_string_equal(sn_keyed_table_cell(t, sn_manifest_find(m, "a/x.hea"), column), "C");
  assert_string_equal(sn_keyed_table_cell(t, sn_manifest_find(m, "b/x.hea"), column), "D");
  assert_null(sn_keyed_table_cell(t, sn_manifest_find(m, "r02.hea"), column));
  assert_int_equal(t->n_unmatched, 1);
  assert_string_equal(t->first_unmatched, "nobody");
  sn_keyed_table_destroy(t);
  /* Without a header line: columns by number. */
  t = table_of(m, root, "r00,A\nr01,B\n", "1");
  CHECK(sn_keyed_table_column(t, "2", &column, fault));
  assert_string_equal(sn_keyed_table_cell(t, sn_manifest_find(m, "r00.hea"), column), "A");
  sn_keyed_table_destroy(t);
  refuse_table(m, root, "record,label\nr00,A\nr01,B\nr00,C\n", "record", "lines 2 and 4", "r00.hea");
  refuse_table(m, root, "record,label\nr00,A\nr00.hea,C\n", "record", "lines 2 and 3", "r00.hea");
  refuse_table(m, root, "record,label\nx,A\n", "record", "a/x.hea", "b/x.hea");
  refuse_table(m, root, "record,label\nr00,A\n", "recrod", "did you mean 'record'", "record, label");
  refuse_table(m, root, "record;label\nr00;A\n", "record", "no column 'record'", "its lines hold ';'");
  refuse_table(m, root, "id,label\n1,A\n2,B\n", "id", "none of its 2 keys", "'1'");
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_subjects(void **state) {
  char *root = two_folders();
  sn_manifest *m = cohort_index(root);
  sn_subjects *s = NULL;
  sn_error err;
  assert_int_equal(sn_subjects_create(m, NULL, NULL, &s, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "--subject recording"));
  assert_int_equal(sn_subjects_create(m, NULL, "header", &s, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_subjects_create(m, NULL, "person", &s, &err), SN_E_ARGUMENT);
  CHECK(sn_subjects_create(m, NULL, "recording", &s, fault));
  assert_true(s->persons_unknown);
  assert_int_equal(s->n_known, 8);
  assert_true(sn_subject_hash(m, s, 0) != sn_subject_hash(m, s, 1));
  sn_subjects_destroy(s);
  sn_keyed_table *t = table_of(m, root, "record,person\nr00,p1\nr01,p1\nr02,p2\nr03,n/a\n", "record");
  CHECK(sn_subjects_create(m, t, "person", &s, fault));
  assert_false(s->persons_unknown);
  assert_int_equal(s->n_known, 3);
  int64_t r00 = sn_manifest_find(m, "r00.hea"), r01 = sn_manifest_find(m, "r01.hea"),
          r02 = sn_manifest_find(m, "r02.hea");
  assert_true(sn_subject_hash(m, s, r00) == sn_subject_hash(m, s, r01));
  assert_true(sn_subject_hash(m, s, r00) != sn_subject_hash(m, s, r02));
  assert_true(sn_subject_hash(m, s, sn_manifest_find(m, "r03.hea")) == 0);
  sn_subjects_destroy(s);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- labels from tables ---------------------------------------------------------------------------------------- */

static void test_classes(void **state) {
  char *root = two_folders(), path[4096];
  cohort_path(root, "r05.dat", path, sizeof path);
  assert_int_equal(truncate(path, 10), 0);
  sn_manifest *m = cohort_index(root);
  sn_keyed_table *t = table_of(m, root, "record,label\nr00,N\nr01, A \nr02,N\nr03,~\nr04,\nr05,N\na/x,NA\n", "record");
  sn_labels *l = labels_of(m, t, (sn_label_options){.target = "label"});
  assert_int_equal(l->task, SN_LABEL_CLASS);
  assert_int_equal(l->n, 4);
  assert_int_equal(l->n_classes, 3);
  assert_string_equal(l->classes[0], "A");
  assert_string_equal(l->classes[1], "N");
  assert_string_equal(l->classes[2], "~");
  assert_int_equal(l->counts[1], 2);
  assert_int_equal(l->items[1].label, 0); /* r01 */
  assert_true(l->items[0].duration_s == 10.0 && l->items[0].segment == -1);
  assert_int_equal(dropped(l, "no label"), 2);
  assert_int_equal(dropped(l, "not in the table"), 1);
  assert_int_equal(dropped(l, "recording cannot be used"), 1);
  sn_labels_destroy(l);
  l = labels_of(m, t, (sn_label_options){.target = "label", .classes = "N, A"});
  assert_int_equal(l->n, 3);
  assert_int_equal(l->n_classes, 2);
  assert_int_equal(dropped(l, "class not asked for"), 1);
  sn_labels_destroy(l);
  refuse_labels(m, t, (sn_label_options){.target = "label", .classes = "N"}, "one class, 'N'");
  refuse_labels(m, t, (sn_label_options){.target = "label", .classes = "N,B"}, "no class 'B'");
  refuse_labels(m, t, (sn_label_options){.target = "lable"}, "did you mean 'label'");
  refuse_labels(m, NULL, (sn_label_options){.target = "label"}, "--labels FILE");
  refuse_labels(m, NULL, (sn_label_options){.target = "annotation:amai"}, "did you mean 'aami'");
  sn_keyed_table_destroy(t);
  t = table_of(m, root, "record,label\nr00,\nr01,n/a\n", "record");
  refuse_labels(m, t, (sn_label_options){.target = "label"}, "2 no label");
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_values_and_multi(void **state) {
  char *root = two_folders();
  sn_manifest *m = cohort_index(root);
  sn_keyed_table *t =
      table_of(m, root,
               "record,age,grade,codes\nr00,31.5,1,10;20\nr01,40,2,20\nr02,?,1,\"10, 30\"\nr03,22,2,30;30\n"
               "r04,50,1,40\n",
               "record");
  sn_labels *l = labels_of(m, t, (sn_label_options){.target = "age", .task = SN_LABEL_VALUE});
  assert_int_equal(l->n, 4);
  assert_true(l->items[0].value == 31.5 && l->items[3].value == 50);
  assert_int_equal(dropped(l, "not a number"), 1);
  assert_int_equal(l->n_classes, 0);
  sn_labels_destroy(l);
  l = labels_of(m, t, (sn_label_options){.target = "grade"}); /* whole, few: classes */
  assert_int_equal(l->task, SN_LABEL_CLASS);
  sn_labels_destroy(l);
  l = labels_of(m, t, (sn_label_options){.target = "codes", .task = SN_LABEL_MULTI});
  static const uint8_t HOT[5][4] = {{1, 1, 0, 0}, {0, 1, 0, 0}, {1, 0, 1, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  assert_int_equal(l->n, 5);
  assert_int_equal(l->n_classes, 4);
  assert_memory_equal(l->hot, HOT, sizeof HOT);
  assert_int_equal(l->counts[2], 2);
  sn_labels_destroy(l);
  l = labels_of(m, t, (sn_label_options){.target = "codes", .task = SN_LABEL_MULTI, .least_items = 2});
  assert_int_equal(l->n, 5); /* the one whose code left stays as a negative */
  assert_int_equal(l->n_classes, 3);
  assert_int_equal(dropped(l, "code with too few items"), 1);
  sn_labels_destroy(l);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- headers and annotations ----------------------------------------------------------------------------------- */

static void test_headers(void **state) {
  char *root = cohort_directory();
  static const char *const COMMENTS[] = {"Age: 31", "age: 45",  "<age>: 22 <sex>: F <diagnoses>: none",
                                         NULL,      "Age: NaN", "Dx: 1,2"};
  for (int i = 0; i < 6; i++) {
    char name[16];
    snprintf(name, sizeof name, "h%d", i);
    cohort_write(
        root,
        &(cohort_record){
            .folder = "", .name = name, .seconds = 10, .rate = 100, .n_leads = 1, .number = i, .comment = COMMENTS[i]});
  }
  sn_manifest *m = cohort_index(root);
  for (int64_t threads = 0; threads <= 3; threads += 3) {
    sn_labels *l = labels_of(m, NULL, (sn_label_options){.target = "header:Age", .n_threads = threads});
    assert_int_equal(l->task, SN_LABEL_VALUE);
    assert_int_equal(l->n, 3);
    assert_true(l->items[0].value == 31 && l->items[1].value == 45 && l->items[2].value == 22);
    assert_int_equal(dropped(l, "field not in the header"), 2);
    assert_int_equal(dropped(l, "no label"), 1);
    sn_labels_destroy(l);
  }
  refuse_labels(m, NULL, (sn_label_options){.target = "header:Sex"}, "one class, 'F'");
  refuse_labels(m, NULL, (sn_label_options){.target = "header:Hight"}, "6 field not in the header");
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_aami_groups(void **state) {
  static const struct {
    const char *codes, *name;
  } GROUPS[] = {{"N L R e j", "N"}, {"A a J S", "S"}, {"V E", "V"}, {"F", "F"}, {"/ f Q", "Q"}};
  int64_t n = 0;
  for (size_t g = 0; g < 5; g++) {
    char copy[32], *rest = copy;
    snprintf(copy, sizeof copy, "%s", GROUPS[g].codes);
    for (char *code = strsep(&rest, " "); code != NULL; code = strsep(&rest, " "), n++) {
      assert_string_equal(sn_aami_class(code), GROUPS[g].name);
    }
  }
  assert_int_equal(n, 15);
  assert_null(sn_aami_class("+"));
  assert_null(sn_aami_class("~"));
  assert_null(sn_aami_class("n"));
  assert_null(sn_aami_class(""));
  assert_null(sn_aami_class("N L"));
}

static void test_beats(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 3, 10, 100);
  /* r00: a beat too near the start, N, a rhythm change, V, a beat outside the groups, one too near the end. r01:
   * none. */
  sn_annotation items[] = {{.sample = 20, .onset_s = 0.2, .code = "N"},  {.sample = 150, .onset_s = 1.5, .code = "N"},
                           {.sample = 200, .onset_s = 2.0, .code = "+"}, {.sample = 333, .onset_s = 3.33, .code = "V"},
                           {.sample = 500, .onset_s = 5.0, .code = "n"}, {.sample = 950, .onset_s = 9.5, .code = "A"},
                           {.sample = 970, .onset_s = 9.7, .code = "N"}};
  sn_annotations list = {.n = 7, .items = items, .rate = 100};
  CHECK(sn_wfdb_annotations_write(root, "r00", "atr", &list, NULL, fault));
  cohort_write_text(root, "r02.atr", "?"); /* damaged */
  sn_manifest *m = cohort_index(root);
  for (int64_t threads = 0; threads <= 2; threads += 2) {
    sn_labels *l = labels_of(m, NULL, (sn_label_options){.target = "annotation:aami", .n_threads = threads});
    assert_true(l->per_beat);
    assert_int_equal(l->n, 3);
    assert_int_equal(l->n_classes, 3);
    assert_string_equal(l->classes[l->items[0].label], "N");
    assert_string_equal(l->classes[l->items[1].label], "V");
    assert_string_equal(l->classes[l->items[2].label], "S");
    assert_true(fabs(l->items[0].start_s - 1.0) < 1e-12 && l->items[0].duration_s == 1.0);
    assert_int_equal(l->items[0].segment, 0);
    assert_int_equal(dropped(l, "window over the recording's edge"), 2);
    assert_int_equal(dropped(l, "beat outside the groups"), 1);
    assert_int_equal(dropped(l, "recording without beat annotations"), 1);
    assert_int_equal(dropped(l, "annotations cannot be read"), 1);
    sn_labels_destroy(l);
  }
  sn_labels *l = labels_of(m, NULL, (sn_label_options){.target = "annotation:code", .window_s = 0.3});
  assert_int_equal(l->n, 6); /* both beats near the edges fit now, n has a class of its own */
  sn_labels_destroy(l);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- real sets ------------------------------------------------------------------------------------------------- */

static const char *data_or_skip(void) {
  const char *data = getenv("SONDE_DATA");
  if (data == NULL) {
    print_message("SONDE_DATA is not set: skipped\n");
    skip();
  }
  return data;
}

static void set_path(const char *data, const char *name, char *path, size_t room) {
  snprintf(path, room, "%s/%s", data, name);
}

static void test_cinc2017(void **state) {
  const char *data = data_or_skip();
  char path[4096];
  set_path(data, "ecg/cinc2017_af", path, sizeof path);
  sn_manifest *m = cohort_index(path);
  sn_keyed_table *t = NULL;
  set_path(data, "ecg/cinc2017_af/REFERENCE_revised.csv", path, sizeof path);
  CHECK(sn_keyed_table_load(m, path, "1", &t, fault));
  sn_labels *l = labels_of(m, t, (sn_label_options){.target = "2"});
  static const char *const NAMES[] = {"A", "N", "O", "~"};
  static const int64_t COUNTS[] = {48, 147, 65, 40};
  assert_int_equal(l->n, 300);
  assert_int_equal(l->n_classes, 4);
  for (int k = 0; k < 4; k++) {
    assert_string_equal(l->classes[k], NAMES[k]);
    assert_int_equal(l->counts[k], COUNTS[k]);
  }
  sn_labels_destroy(l);
  l = labels_of(m, t, (sn_label_options){.target = "2", .classes = "N,A"});
  assert_int_equal(l->n, 195);
  assert_int_equal(dropped(l, "class not asked for"), 105);
  sn_labels_destroy(l);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
}

static void test_cinc2021(void **state) {
  const char *data = data_or_skip();
  char path[4096];
  set_path(data, "ecg/cinc2021_12lead", path, sizeof path);
  sn_manifest *m = cohort_index(path);
  sn_keyed_table *t = NULL;
  set_path(data, "ecg/cinc2021_12lead/labels.csv", path, sizeof path);
  CHECK(sn_keyed_table_load(m, path, "record", &t, fault));
  sn_labels *l = labels_of(m, t, (sn_label_options){.target = "rhythm", .classes = "NSR,SB,STach"});
  assert_int_equal(l->n, 90);
  assert_int_equal(l->counts[0], 48);
  assert_int_equal(l->counts[1], 26);
  assert_int_equal(l->counts[2], 16);
  assert_int_equal(dropped(l, "no label"), 2); /* "(none)" */
  sn_labels_destroy(l);
  /* The header's codes and the table's are the same. */
  sn_labels *header = labels_of(m, NULL, (sn_label_options){.target = "header:Dx"});
  l = labels_of(m, t, (sn_label_options){.target = "dx_snomed", .task = SN_LABEL_MULTI});
  assert_int_equal(header->task, SN_LABEL_MULTI);
  assert_int_equal(header->n, 128);
  assert_int_equal(header->n_classes, l->n_classes);
  for (int64_t k = 0; k < l->n_classes; k++) assert_string_equal(l->classes[k], header->classes[k]);
  assert_memory_equal(l->hot, header->hot, (size_t)(l->n * l->n_classes));
  sn_labels_destroy(header);
  sn_labels_destroy(l);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
}

/* Beats by group, against the set's own table, less those within half a second of an end. */
static void test_mitbih(void **state) {
  const char *data = data_or_skip();
  char path[4096];
  set_path(data, "ecg/mitbih_arrhythmia_5min", path, sizeof path);
  sn_manifest *m = cohort_index(path);
  sn_keyed_table *t = NULL;
  set_path(data, "ecg/mitbih_arrhythmia_5min/record_counts.csv", path, sizeof path);
  CHECK(sn_keyed_table_load(m, path, "record", &t, fault));
  sn_labels *l = labels_of(m, NULL, (sn_label_options){.target = "annotation:aami", .n_threads = 2});
  static const char *const NAMES[] = {"F", "N", "Q", "S", "V"};
  static const int64_t TOTALS[] = {180, 15359, 1256, 279, 1135};
  int64_t missing = 0;
  assert_int_equal(l->n_classes, 5);
  for (int k = 0; k < 5; k++) {
    assert_string_equal(l->classes[k], NAMES[k]);
    assert_true(l->counts[k] <= TOTALS[k]);
    missing += TOTALS[k] - l->counts[k];
  }
  assert_int_equal(missing, dropped(l, "window over the recording's edge"));
  assert_true(missing > 0 && missing < 3 * 48);
  sn_labels_destroy(l);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_keys),     cmocka_unit_test(test_subjects),
                                     cmocka_unit_test(test_classes),  cmocka_unit_test(test_values_and_multi),
                                     cmocka_unit_test(test_headers),  cmocka_unit_test(test_aami_groups),
                                     cmocka_unit_test(test_beats),    cmocka_unit_test(test_cinc2017),
                                     cmocka_unit_test(test_cinc2021), cmocka_unit_test(test_mitbih)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
