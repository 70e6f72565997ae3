/* needs: full */
/* The split: folds by person, fixed splits, guards, the file, leakage between runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cohort.h"
#include "core/philox.h"
#include "datasets/split.h"

/* A manifest without files behind it: split needs none. */
static sn_manifest *made_manifest(const char *dataset, int n, const char *prefix) {
  sn_manifest *m = NULL;
  CHECK(sn_manifest_create(".", dataset, &m, fault));
  for (int i = 0; i < n; i++) {
    char path[32], files[96], checksum[96];
    snprintf(path, sizeof path, "%.4s%03d.hea", prefix, i);
    snprintf(files, sizeof files, "%s,%.4s%03d.dat", path, prefix, i);
    snprintf(checksum, sizeof checksum, "quick:%s%060d", "0000", i);
    const char *cells[SN_MANIFEST_COLUMNS] = {
        [SN_MANIFEST_PATH] = path,         [SN_MANIFEST_FORMAT] = "wfdb",     [SN_MANIFEST_RATE] = "100",
        [SN_MANIFEST_CHANNELS] = "I",      [SN_MANIFEST_KINDS] = "ecg",       [SN_MANIFEST_UNITS] = "mV",
        [SN_MANIFEST_DURATION] = "10",     [SN_MANIFEST_SEGMENTS] = "0:1000", [SN_MANIFEST_FILES] = files,
        [SN_MANIFEST_CHECKSUM] = checksum, [SN_MANIFEST_STATUS] = "ok"};
    CHECK(sn_manifest_add(m, cells, fault));
  }
  CHECK(sn_manifest_finish(m, fault));
  return m;
}

/* Person of recording i: i / per. */
static sn_subjects *made_subjects(const sn_manifest *m, int per) {
  sn_subjects *s = calloc(1, sizeof *s);
  CHECK(sn_alloc(&s->ids, m->n, sizeof *s->ids, "ids", fault));
  s->n = s->n_known = m->n;
  for (int64_t i = 0; i < m->n; i++) {
    char id[32];
    snprintf(id, sizeof id, "p%02d", (int)i / per);
    CHECK(sn_strdup(&s->ids[i], id, "id", fault));
  }
  return s;
}

static sn_split *split_of(const sn_manifest *m, const sn_subjects *s, const sn_labels *l, sn_split_options options) {
  sn_split *split = NULL;
  CHECK(sn_split_create(m, s, NULL, l, &options, &split, fault));
  return split;
}

static void refuse(const sn_manifest *m, const sn_subjects *s, const sn_keyed_table *t, sn_split_options options,
                   sn_status expected, const char *says) {
  sn_split *split = NULL;
  sn_error err;
  sn_error_clear(&err);
  assert_int_equal(sn_split_create(m, s, t, NULL, &options, &split, &err), expected);
  if (strstr(err.message, says) == NULL) fail_msg("%s", err.message);
  assert_null(split);
}

/* Fault 36: four people with ten recordings each. */
static void test_people_stay_together(void **state) {
  sn_manifest *m = made_manifest("d", 40, "r");
  sn_subjects *s = made_subjects(m, 10);
  int tested[40] = {0};
  for (int64_t fold = 0; fold < 4; fold++) {
    sn_split *split = split_of(m, s, NULL, (sn_split_options){.n_folds = 4, .fold = fold, .seed = 3});
    assert_string_equal(split->kind, "subject-kfold");
    assert_int_equal(sn_split_count(split, SN_ROLE_PROBE_TEST), 10);
    assert_int_equal(sn_split_count(split, SN_ROLE_PRETRAIN), 30);
    assert_int_equal(sn_split_count(split, SN_ROLE_PROBE_TRAIN), 30);
    assert_int_equal(sn_split_count_subjects(split, SN_ROLE_PROBE_TEST), 1);
    for (int i = 0; i < 40; i++) {
      assert_int_equal(split->roles[i], split->roles[i / 10 * 10]);
      tested[i] += split->roles[i] == SN_ROLE_PROBE_TEST;
    }
    sn_split_destroy(split);
  }
  for (int i = 0; i < 40; i++) assert_int_equal(tested[i], 1);
  refuse(m, s, NULL, (sn_split_options){.n_folds = 5, .fold = 0}, SN_E_ARGUMENT, "5 folds of 4 people");
  refuse(m, s, NULL, (sn_split_options){.n_folds = 4, .fold = 4}, SN_E_ARGUMENT, "fold 4 of 4");
  refuse(m, s, NULL, (sn_split_options){.n_folds = 1, .fold = 0}, SN_E_ARGUMENT, "at least 2");
  refuse(m, NULL, NULL, (sn_split_options){.n_folds = 2, .fold = 0}, SN_E_ARGUMENT, "whose recordings");
  sn_subjects_destroy(s);
  sn_manifest_destroy(m);
}

static void test_recording_folds_say_so(void **state) {
  sn_manifest *m = made_manifest("d", 25, "r");
  sn_subjects *s = NULL;
  CHECK(sn_subjects_create(m, NULL, "recording", &s, fault));
  sn_split *split = split_of(m, s, NULL, (sn_split_options){.n_folds = 5, .fold = 2, .seed = 1});
  assert_string_equal(split->kind, "recording-kfold");
  assert_true(split->persons_unknown);
  assert_int_equal(sn_split_count(split, SN_ROLE_PROBE_TEST), 5);
  sn_split_destroy(split);
  sn_subjects_destroy(s);
  sn_manifest_destroy(m);
}

/* Strata: every fold has its share of each class; the folds depend on nothing but people, classes and seed. */
static void test_grouped_folds(void **state) {
  enum { N = 200, K = 5 };
  uint64_t groups[N];
  int32_t strata[N], folds[N], again[N];
  int64_t n_folds = 0, count[3][K] = {{0}};
  for (int i = 0; i < N; i++) {
    groups[i] = 1000 + (uint64_t)i / 2; /* two items each: 100 groups */
    strata[i] = i / 2 < 20 ? 0 : i / 2 < 50 ? 1 : 2;
  }
  CHECK(sn_grouped_folds(groups, strata, N, K, 7, folds, &n_folds, fault));
  assert_int_equal(n_folds, K);
  for (int i = 0; i < N; i++) {
    assert_int_equal(folds[i], folds[i / 2 * 2]);
    count[strata[i]][folds[i]]++;
  }
  static const int64_t EXPECTED[3] = {8, 12, 20};
  for (int c = 0; c < 3; c++) {
    for (int k = 0; k < K; k++) assert_int_equal(count[c][k], EXPECTED[c]);
  }
  /* Another order of items: the same fold for each. */
  uint64_t shuffled[N];
  int32_t shuffled_strata[N];
  for (int i = 0; i < N; i++) {
    int j = (i * 73 + 11) % N;
    shuffled[i] = groups[j];
    shuffled_strata[i] = strata[j];
  }
  CHECK(sn_grouped_folds(shuffled, shuffled_strata, N, K, 7, again, &n_folds, fault));
  for (int i = 0; i < N; i++) assert_int_equal(again[i], folds[(i * 73 + 11) % N]);
  CHECK(sn_grouped_folds(groups, strata, N, K, 8, again, &n_folds, fault));
  assert_memory_not_equal(folds, again, sizeof folds);
  /* Fewer groups than folds: that many folds; one group: an error. */
  CHECK(sn_grouped_folds(groups, NULL, 6, K, 1, folds, &n_folds, fault));
  assert_int_equal(n_folds, 3);
  sn_error err;
  assert_int_equal(sn_grouped_folds(groups, NULL, 2, K, 1, folds, &n_folds, &err), SN_E_ARGUMENT);
}

static void test_the_file(void **state) {
  char *root = cohort_directory(), path[4096];
  sn_manifest *m = made_manifest("data, set", 30, "r");
  sn_subjects *s = made_subjects(m, 3);
  sn_split *split = split_of(m, s, NULL, (sn_split_options){.n_folds = 5, .fold = 1, .seed = 2}), *loaded = NULL;
  cohort_path(root, "split.tsv", path, sizeof path);
  CHECK(sn_split_save(split, path, fault));
  CHECK(sn_split_load(path, m, &loaded, fault));
  assert_string_equal(split->hash, loaded->hash);
  assert_string_equal(split->kind, loaded->kind);
  assert_int_equal(split->n_folds, loaded->n_folds);
  assert_int_equal(split->fold, loaded->fold);
  assert_memory_equal(split->roles, loaded->roles, 30);
  assert_memory_equal(split->folds, loaded->folds, 30 * sizeof(int32_t));
  sn_split_destroy(loaded);
  CHECK(sn_split_load(path, NULL, &loaded, fault)); /* without the data */
  assert_string_equal(split->hash, loaded->hash);
  sn_split_destroy(loaded);
  /* The data changed since. */
  sn_error err;
  CHECK(sn_manifest_set(m, 4, SN_MANIFEST_CHECKSUM, "quick:other", fault));
  assert_int_equal(sn_split_load(path, m, &loaded, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "r004.hea"));
  cohort_write_text(root, "split.tsv",
                    "dataset\tpath\tsubject\tfold\troles\tchecksum\nd\tx.hea\tp\t0\ttrain\tquick:1\n");
  assert_int_equal(sn_split_load(path, NULL, &loaded, &err), SN_E_CORRUPT);
  assert_non_null(strstr(err.message, "line 2"));
  /* Edited so that a person stands on both sides. */
  cohort_write_text(root, "split.tsv",
                    "dataset\tpath\tsubject\tfold\troles\tchecksum\nd\tx.hea\tp\t0\tprobe_test\tquick:1\n"
                    "d\ty.hea\tp\t1\tpretrain+probe_train\tquick:2\n");
  assert_int_equal(sn_split_load(path, NULL, &loaded, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "the person 'p'"));
  sn_split_destroy(split);
  sn_subjects_destroy(s);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* One content under two names, one signal file behind two headers. */
static void test_content_and_files_on_both_sides_are_refused(void **state) {
  sn_manifest *m = made_manifest("d", 10, "r");
  sn_subjects *s = made_subjects(m, 1);
  sn_split *split = split_of(m, s, NULL, (sn_split_options){.n_folds = 2, .fold = 0, .seed = 1});
  int64_t test = 0, train = 0;
  while (split->roles[test] != SN_ROLE_PROBE_TEST) test++;
  while (split->roles[train] == SN_ROLE_PROBE_TEST) train++;
  sn_split_destroy(split);
  char *kept = NULL;
  CHECK(sn_strdup(&kept, m->rows[test].cells[SN_MANIFEST_CHECKSUM], "x", fault));
  CHECK(sn_manifest_set(m, test, SN_MANIFEST_CHECKSUM, m->rows[train].cells[SN_MANIFEST_CHECKSUM], fault));
  refuse(m, s, NULL, (sn_split_options){.n_folds = 2, .fold = 0, .seed = 1}, SN_E_STATE, "the content");
  CHECK(sn_manifest_set(m, test, SN_MANIFEST_CHECKSUM, kept, fault));
  split = split_of(m, s, NULL, (sn_split_options){.n_folds = 2, .fold = 0, .seed = 1});
  sn_split_destroy(split);
  char files[96];
  snprintf(files, sizeof files, "%s,r%03d.dat", m->rows[test].path, (int)train);
  CHECK(sn_manifest_set(m, test, SN_MANIFEST_FILES, files, fault));
  refuse(m, s, NULL, (sn_split_options){.n_folds = 2, .fold = 0, .seed = 1}, SN_E_STATE, "the file");
  const char *exclude[1] = {m->rows[test].path};
  split =
      split_of(m, s, NULL, (sn_split_options){.n_folds = 2, .fold = 0, .seed = 1, .exclude = exclude, .n_exclude = 1});
  assert_int_equal(split->n_excluded, 1);
  assert_int_equal(split->roles[test], SN_ROLE_NONE);
  sn_split_destroy(split);
  exclude[0] = "nobody";
  refuse(m, s, NULL, (sn_split_options){.n_folds = 2, .fold = 0, .exclude = exclude, .n_exclude = 1}, SN_E_ARGUMENT,
         "nobody");
  sn_free(kept);
  sn_subjects_destroy(s);
  sn_manifest_destroy(m);
}

static void test_leakage_between_runs(void **state) {
  sn_manifest *a = made_manifest("d", 20, "r"), *b = made_manifest("d", 20, "s"), *c = made_manifest("other", 20, "t");
  sn_subjects *sa = made_subjects(a, 2), *sb = made_subjects(b, 4), *sc = made_subjects(c, 2);
  for (int64_t i = 0; i < 20; i++) {
    char checksum[40];
    if (i != 7) { /* s007 is r007 under another name */
      snprintf(checksum, sizeof checksum, "quick:b%d", (int)i);
      CHECK(sn_manifest_set(b, i, SN_MANIFEST_CHECKSUM, checksum, fault));
    }
    snprintf(checksum, sizeof checksum, "sha256:c%d", (int)i);
    CHECK(sn_manifest_set(c, i, SN_MANIFEST_CHECKSUM, checksum, fault));
  }
  sn_split *x = split_of(a, sa, NULL, (sn_split_options){0});
  sn_split *y = split_of(b, sb, NULL, (sn_split_options){.n_folds = 5, .fold = 0, .seed = 1});
  sn_split *z = split_of(c, sc, NULL, (sn_split_options){.n_folds = 5, .fold = 0, .seed = 1});
  assert_string_equal(x->kind, "none");
  assert_int_equal(sn_split_count(x, SN_ROLE_PRETRAIN), 20);
  sn_leakage leak;
  CHECK(sn_split_leakage(x, SN_ROLE_PRETRAIN, y, SN_ROLE_PROBE_TEST, &leak, fault));
  assert_int_equal(leak.n_subjects, 1); /* one person per fold, and all of them are in a */
  assert_string_equal(leak.kind, "quick");
  CHECK(sn_split_leakage(x, SN_ROLE_PRETRAIN, y, SN_ROLE_PROBE_TEST | SN_ROLE_PROBE_TRAIN, &leak, fault));
  assert_int_equal(leak.n_subjects, 5);
  assert_int_equal(leak.n_contents, 1);
  assert_int_equal(leak.n_named, 6);
  bool named = false;
  for (int64_t i = 0; i < leak.n_named; i++) named = named || strstr(leak.names[i], "r007.hea, s007.hea") != NULL;
  assert_true(named);
  CHECK(sn_split_leakage(x, SN_ROLE_PRETRAIN, z, SN_ROLE_PROBE_TEST, &leak, fault));
  assert_int_equal(leak.n_subjects, 0); /* p00 of another data set is another person */
  assert_string_equal(leak.kind, "none");
  sn_split_destroy(x);
  sn_split_destroy(y);
  sn_split_destroy(z);
  sn_subjects_destroy(sa);
  sn_subjects_destroy(sb);
  sn_subjects_destroy(sc);
  sn_manifest_destroy(a);
  sn_manifest_destroy(b);
  sn_manifest_destroy(c);
}

/* ---- real sets ------------------------------------------------------------------------------------------------- */

static sn_manifest *real_manifest(const char *name) {
  const char *data = getenv("SONDE_DATA");
  char path[4096];
  sn_manifest *m = NULL;
  sn_index_report report;
  sn_index_options options = {.n_threads = 2};
  if (data == NULL) {
    print_message("SONDE_DATA is not set: skipped\n");
    skip();
  }
  snprintf(path, sizeof path, "%s/ecg/%s", data, name);
  CHECK(sn_index_directory(path, &options, &m, &report, fault));
  return m;
}

static sn_keyed_table *real_table(const sn_manifest *m, const char *file, const char *key) {
  char path[4096];
  sn_keyed_table *t = NULL;
  snprintf(path, sizeof path, "%s/%s", m->root, file);
  CHECK(sn_keyed_table_load(m, path, key, &t, fault));
  return t;
}

/* DS1 to DS2 shares a person (201, 202), as the set's page says: refused until one of them is left out. */
static void test_mitbih_ds1_ds2(void **state) {
  sn_manifest *m = real_manifest("mitbih_arrhythmia_5min");
  sn_keyed_table *t = real_table(m, "record_counts.csv", "record");
  sn_subjects *s = NULL;
  sn_split *split = NULL;
  const char *exclude[1] = {"201"};
  CHECK(sn_subjects_create(m, t, "subject", &s, fault));
  refuse(m, s, t, (sn_split_options){.column = "split"}, SN_E_STATE, "201.hea");
  sn_split_options o = {.column = "split", .exclude = exclude, .n_exclude = 1};
  CHECK(sn_split_create(m, s, t, NULL, &o, &split, fault));
  assert_string_equal(split->kind, "fixed");
  assert_int_equal(sn_split_count(split, SN_ROLE_PROBE_TRAIN), 21);
  assert_int_equal(sn_split_count(split, SN_ROLE_PROBE_TEST), 22);
  assert_int_equal(split->n_other_value, 4); /* paced */
  assert_int_equal(split->n_excluded, 1);
  sn_split_destroy(split);
  o.train = "DS2";
  o.test = "DS1";
  CHECK(sn_split_create(m, s, t, NULL, &o, &split, fault));
  assert_int_equal(sn_split_count(split, SN_ROLE_PROBE_TEST), 21);
  sn_split_destroy(split);
  refuse(m, s, t, (sn_split_options){.column = "lead0"}, SN_E_ARGUMENT, "no values train and test");
  sn_subjects_destroy(s);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
}

static void test_cinc2017_folds(void **state) {
  sn_manifest *m = real_manifest("cinc2017_af");
  sn_keyed_table *t = real_table(m, "REFERENCE_revised.csv", "1");
  sn_subjects *s = NULL;
  sn_labels *l = NULL;
  sn_label_options lo = {.target = "2"};
  CHECK(sn_subjects_create(m, t, "recording", &s, fault));
  CHECK(sn_labels_create(m, t, &lo, &l, fault));
  int tested[300] = {0};
  for (int64_t fold = 0; fold < 5; fold++) {
    sn_split *split = split_of(m, s, l, (sn_split_options){.n_folds = 5, .fold = fold});
    int64_t per_class[4] = {0};
    for (int64_t i = 0; i < 300; i++) {
      bool test = split->roles[i] == SN_ROLE_PROBE_TEST;
      tested[i] += test;
      if (test) per_class[l->items[i].label]++;
    }
    for (int k = 0; k < 4; k++) assert_true(llabs(5 * per_class[k] - l->counts[k]) < 5);
    sn_split_destroy(split);
  }
  for (int i = 0; i < 300; i++) assert_int_equal(tested[i], 1);
  sn_labels_destroy(l);
  sn_subjects_destroy(s);
  sn_keyed_table_destroy(t);
  sn_manifest_destroy(m);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_people_stay_together),
                                     cmocka_unit_test(test_recording_folds_say_so),
                                     cmocka_unit_test(test_grouped_folds),
                                     cmocka_unit_test(test_the_file),
                                     cmocka_unit_test(test_content_and_files_on_both_sides_are_refused),
                                     cmocka_unit_test(test_leakage_between_runs),
                                     cmocka_unit_test(test_mitbih_ds1_ds2),
                                     cmocka_unit_test(test_cinc2017_folds)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
