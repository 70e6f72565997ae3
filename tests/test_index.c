/* needs: full */
/* The index and the manifest: what is found, what is said of what is not, order, cache, bad directories. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "cohort.h"
#include "core/json.h"

static sn_status index_with(const char *root, sn_index_options options, sn_manifest **manifest, sn_index_report *report,
                            sn_error *err) {
  return sn_index_directory(root, &options, manifest, report, err);
}

static sn_manifest *index_of(const char *root, sn_index_options options, sn_index_report *report) {
  sn_manifest *manifest = NULL;
  CHECK(index_with(root, options, &manifest, report, fault));
  return manifest;
}

static char *text_of(const sn_manifest *manifest) {
  sn_string text = {0};
  CHECK(sn_manifest_text(manifest, &text, fault));
  return text.data;
}

static const char *cell(const sn_manifest *m, const char *path, sn_manifest_column column) {
  int64_t row = sn_manifest_find(m, path);
  if (row < 0) fail_msg("no line for %s", path);
  return m->rows[row].cells[column];
}

static char *tree(void) {
  char *root = cohort_directory();
  cohort_write(
      root,
      &(cohort_record){.folder = "b/sub-07/ses-2", .name = "x", .seconds = 12, .rate = 250, .n_leads = 2, .number = 1});
  cohort_write(root,
               &(cohort_record){.folder = "a", .name = "x", .seconds = 3, .rate = 100, .n_leads = 1, .number = 2});
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "m", .seconds = 20, .rate = 360, .n_leads = 3, .number = 3});
  cohort_write_text(root, "notes.txt", "nothing");
  cohort_write_text(root, "labels.csv", "record,label\nm,1\n");
  return root;
}

static void test_columns(void **state) {
  char *root = tree();
  sn_index_report report;
  sn_manifest *m = index_of(root, (sn_index_options){0}, &report);
  assert_int_equal(m->n, 3);
  assert_int_equal(m->n_ok, 3);
  assert_string_equal(m->rows[0].path, "a/x.hea");
  assert_string_equal(m->rows[2].path, "m.hea");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_FORMAT), "wfdb");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_MODALITY), "ecg");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_RATE), "360");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_CHANNELS), "I,II,V1");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_KINDS), "ecg,ecg,ecg");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_UNITS), "mV,mV,mV");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_PER_FRAME), "");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_DURATION), "20");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_SEGMENTS), "0:7200");
  assert_string_equal(cell(m, "m.hea", SN_MANIFEST_FILES), "m.hea,m.dat");
  assert_string_equal(cell(m, "b/sub-07/ses-2/x.hea", SN_MANIFEST_SUBJECT), "07");
  assert_string_equal(cell(m, "b/sub-07/ses-2/x.hea", SN_MANIFEST_SESSION), "2");
  assert_int_equal(strncmp(cell(m, "m.hea", SN_MANIFEST_CHECKSUM), "quick:", 6), 0);
  assert_int_equal(report.n_other, 2);
  assert_int_equal(report.n_extensions, 2);
  assert_int_equal(report.n_files, 8);
  CHECK(sn_manifest_verify(m, 0, fault));
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* The text is the same for any number of threads, wherever the tree lies, and after a round trip. */
static void test_deterministic_and_round_trip(void **state) {
  char *root = tree();
  sn_index_report report;
  char *reference = NULL, path[4096], moved[4096];
  for (int64_t threads = 0; threads <= 3; threads++) {
    sn_manifest *m = index_of(root, (sn_index_options){.n_threads = threads, .name = "n"}, &report);
    char *text = text_of(m);
    if (reference == NULL) {
      reference = text;
    } else {
      assert_string_equal(reference, text);
      sn_free(text);
    }
    cohort_path(root, "labels.csv", path, sizeof path);
    if (threads == 0) {
      sn_manifest *loaded = NULL;
      cohort_path(root, "out.tsv", path, sizeof path);
      CHECK(sn_manifest_save(m, path, fault));
      CHECK(sn_manifest_load(path, root, "n", &loaded, fault));
      assert_string_equal(loaded->hash, m->hash);
      assert_int_equal(loaded->n_ok, m->n_ok);
      sn_manifest_destroy(loaded);
      unlink(path);
    }
    sn_manifest_destroy(m);
  }
  snprintf(moved, sizeof moved, "%s-moved", root);
  assert_int_equal(rename(root, moved), 0);
  sn_manifest *m = index_of(moved, (sn_index_options){.name = "n"}, &report);
  char *text = text_of(m);
  assert_string_equal(reference, text);
  sn_free(text);
  sn_free(reference);
  sn_manifest_destroy(m);
  assert_int_equal(rename(moved, root), 0);
  cohort_remove(root);
}

static void test_records_file(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 4, 10, 100);
  cohort_write(root,
               &(cohort_record){.folder = "p1", .name = "y", .seconds = 10, .rate = 100, .n_leads = 1, .number = 8});
  cohort_write(root,
               &(cohort_record){.folder = "p2", .name = "z", .seconds = 10, .rate = 100, .n_leads = 1, .number = 9});
  cohort_write(root,
               &(cohort_record){.folder = "p2", .name = "zz", .seconds = 10, .rate = 100, .n_leads = 1, .number = 10});
  cohort_write_text(root, "RECORDS", "r00\nr02\r\n\nr02\ngone\np1/y\np2/\n");
  char path[4096];
  cohort_path(root, "p2", path, sizeof path);
  cohort_write_text(path, "RECORDS", "zz\n");
  sn_index_report report;
  sn_manifest *m = index_of(root, (sn_index_options){0}, &report);
  assert_int_equal(m->n_ok, 4); /* r00, r02, p1/y, p2/zz */
  assert_int_equal(m->n, 5);
  assert_int_equal(report.n_repeated, 1);
  assert_string_equal(cell(m, "gone.hea", SN_MANIFEST_STATUS), "missing");
  assert_non_null(strstr(cell(m, "gone.hea", SN_MANIFEST_REASON), "line 5"));
  assert_int_equal(sn_manifest_find(m, "r01.hea"), -1);
  assert_true(sn_manifest_find(m, "p2/zz.hea") >= 0);
  assert_int_equal(sn_manifest_find(m, "p2/z.hea"), -1);
  assert_int_equal(report.n_other, 2 + 6); /* RECORDS twice, r01, r03, p2/z */
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_left_out_lines_have_reasons(void **state) {
  char *root = tree();
  char path[4096];
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "cut", .seconds = 10, .rate = 100, .n_leads = 1, .number = 1});
  cohort_path(root, "cut.dat", path, sizeof path);
  assert_int_equal(truncate(path, 100), 0);
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "lone", .seconds = 10, .rate = 100, .n_leads = 1, .number = 1});
  cohort_path(root, "lone.dat", path, sizeof path);
  unlink(path);
  cohort_write_text(root, "bad.hea", "bad 1 nonsense\n");
  cohort_write_text(root, "empty.hea", "");
  cohort_write_text(root, "scan.mff", "x");
  cohort_write_text(root, "stray.dat", "0123");
  cohort_path(root, "dangling", path, sizeof path);
  assert_int_equal(symlink("/nowhere/at/all", path), 0);
  cohort_path(root, "loop", path, sizeof path);
  assert_int_equal(symlink(".", path), 0);
  sn_index_report report;
  sn_manifest *m = index_of(root, (sn_index_options){.shortest_s = 5}, &report);
  assert_int_equal(m->n_ok, 2);
  assert_string_equal(cell(m, "cut.hea", SN_MANIFEST_STATUS), "corrupt");
  assert_non_null(strstr(cell(m, "cut.hea", SN_MANIFEST_REASON), "cut.dat"));
  assert_string_equal(cell(m, "lone.hea", SN_MANIFEST_STATUS), "io");
  assert_non_null(strstr(cell(m, "lone.hea", SN_MANIFEST_REASON), "lone.dat"));
  assert_null(strstr(cell(m, "lone.hea", SN_MANIFEST_REASON), root)); /* the same text wherever the tree lies */
  assert_string_not_equal(cell(m, "bad.hea", SN_MANIFEST_STATUS), "ok");
  assert_string_not_equal(cell(m, "empty.hea", SN_MANIFEST_STATUS), "ok");
  assert_string_equal(cell(m, "scan.mff", SN_MANIFEST_STATUS), "unsupported");
  assert_string_not_equal(cell(m, "stray.dat", SN_MANIFEST_STATUS), "ok");
  assert_string_equal(cell(m, "dangling", SN_MANIFEST_STATUS), "io");
  assert_string_equal(cell(m, "a/x.hea", SN_MANIFEST_STATUS), "short");
  assert_string_equal(cell(m, "loop/", SN_MANIFEST_STATUS), "io"); /* found, not followed for ever */
  for (int64_t i = 0; i < m->n; i++) assert_true(m->rows[i].ok == (m->rows[i].cells[SN_MANIFEST_REASON][0] == 0));
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_bad_directories(void **state) {
  char *root = cohort_directory();
  sn_manifest *m = NULL;
  sn_index_report report;
  sn_error err;
  assert_int_equal(index_with(root, (sn_index_options){0}, &m, &report, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "no recording"));
  cohort_write_text(root, "readme.md", "x");
  assert_int_equal(index_with(root, (sn_index_options){0}, &m, &report, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "1 .md"));
  char path[4096];
  cohort_path(root, "readme.md", path, sizeof path);
  assert_int_equal(index_with(path, (sn_index_options){0}, &m, &report, &err),
                   SN_E_ARGUMENT); /* a file in place of a directory */
  assert_int_equal(index_with("/nowhere/at/all", (sn_index_options){0}, &m, &report, &err), SN_E_IO);
  assert_null(m);
  cohort_remove(root);
}

/* Names with tabs, quotes, percent signs, commas, bytes that are not UTF-8. */
static void test_strange_names(void **state) {
  char *root = cohort_directory();
  static const char *const FOLDERS[] = {"with space", "tab\there", "quo\"te", "per%cent",
                                        "com,ma",     "lat\xEFn",   "ünï"};
  for (int i = 0; i < 7; i++) {
    cohort_write(root, &(cohort_record){
                           .folder = FOLDERS[i], .name = "x", .seconds = 10, .rate = 100, .n_leads = 1, .number = i});
  }
  sn_index_report report;
  char path[4096];
  sn_manifest *m = index_of(root, (sn_index_options){0}, &report), *loaded = NULL;
  assert_int_equal(m->n_ok, 7);
  cohort_path(root, "manifest.tsv", path, sizeof path);
  CHECK(sn_manifest_save(m, path, fault));
  CHECK(sn_manifest_load(path, root, NULL, &loaded, fault));
  assert_string_equal(m->hash, loaded->hash);
  for (int i = 0; i < 7; i++) {
    char name[64];
    snprintf(name, sizeof name, "%s/x.hea", FOLDERS[i]);
    int64_t row = sn_manifest_find(loaded, name);
    assert_true(row >= 0);
    CHECK(sn_manifest_verify(loaded, row, fault));
  }
  char *text = text_of(m);
  assert_true(sn_utf8_error(text, (int64_t)strlen(text)) < 0);
  sn_free(text);
  sn_manifest_destroy(m);
  sn_manifest_destroy(loaded);
  cohort_remove(root);
}

static void test_cache(void **state) {
  char *root = cohort_directory(), cache[4200], path[4096];
  cohort_write_many(root, 30, 10, 100);
  snprintf(cache, sizeof cache, "%s.cache", root);
  sn_index_options options = {.cache_path = cache, .n_threads = 2};
  sn_index_report report;
  sn_manifest *first = index_of(root, options, &report);
  assert_int_equal(report.n_reused, 0);
  sn_manifest *second = index_of(root, options, &report);
  assert_int_equal(report.n_reused, 30);
  assert_string_equal(first->hash, second->hash);
  sn_manifest_destroy(second);
  /* One file changes, one leaves, one comes; the cache may be cut anywhere, as by a kill. */
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "r03", .seconds = 10, .rate = 100, .n_leads = 1, .number = 99});
  cohort_path(root, "r07.hea", path, sizeof path);
  unlink(path);
  cohort_path(root, "r07.dat", path, sizeof path);
  unlink(path);
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "r90", .seconds = 10, .rate = 100, .n_leads = 1, .number = 90});
  sn_manifest *fresh = index_of(root, (sn_index_options){0}, &report);
  sn_manifest *third = index_of(root, options, &report);
  assert_int_equal(report.n_reused, 28);
  assert_string_equal(fresh->hash, third->hash);
  struct stat info;
  assert_int_equal(stat(cache, &info), 0);
  for (int64_t cut = 1; cut <= (int64_t)info.st_size; cut += 611) {
    assert_int_equal(truncate(cache, (off_t)(info.st_size - cut)), 0);
    sn_manifest *again = index_of(root, options, &report);
    assert_string_equal(fresh->hash, again->hash);
    sn_manifest_destroy(again);
  }
  /* Other options do not use these lines. */
  options.whole_hash = true;
  sn_manifest *whole = index_of(root, options, &report);
  assert_int_equal(report.n_reused, 0);
  assert_int_equal(strncmp(whole->rows[0].cells[SN_MANIFEST_CHECKSUM], "sha256:", 7), 0);
  sn_manifest_destroy(whole);
  sn_manifest_destroy(first);
  sn_manifest_destroy(third);
  sn_manifest_destroy(fresh);
  unlink(cache);
  cohort_remove(root);
}

/* The quick checksum sees the first and last 64 KiB and the size; the whole one everything. */
static void test_checksums(void **state) {
  char *root = cohort_directory(), path[4096], before[80], after[80];
  static uint8_t bytes[300000];
  const char *const name[1] = {"x"};
  int64_t size = 0;
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i * 31 >> 3);
  cohort_path(root, "x", path, sizeof path);
  static const int64_t PLACES[] = {0, 65535, 65536, 150000, 299999 - 65536, 299999 - 65535, 299999};
  static const bool SEEN[] = {true, true, false, false, false, true, true};
  for (int whole = 0; whole < 2; whole++) {
    for (int i = 0; i < 7; i++) {
      assert_int_equal(sn_write_file(path, bytes, sizeof bytes, NULL), SN_OK);
      CHECK(sn_manifest_checksum(root, name, 1, whole, before, &size, fault));
      assert_int_equal(size, sizeof bytes);
      bytes[PLACES[i]] ^= 1;
      assert_int_equal(sn_write_file(path, bytes, sizeof bytes, NULL), SN_OK);
      CHECK(sn_manifest_checksum(root, name, 1, whole, after, &size, fault));
      assert_true((strcmp(before, after) != 0) == (whole || SEEN[i]));
    }
  }
  sn_error err;
  assert_int_equal(sn_manifest_checksum(root, (const char *const[]){"y"}, 1, false, before, &size, &err), SN_E_IO);
  assert_non_null(strstr(err.message, "/y"));
  cohort_remove(root);
}

static void test_damaged_manifests(void **state) {
  char *root = cohort_directory(), path[4096];
  cohort_write_many(root, 3, 10, 100);
  sn_index_report report;
  sn_manifest *m = index_of(root, (sn_index_options){.name = "n"}, &report), *loaded = NULL;
  char *good = text_of(m);
  cohort_path(root, "m.tsv", path, sizeof path);
  static const struct {
    const char *from, *to;
  } EDITS[] = {{"path\t", "pfad\t"},
               {"0:1000", "0:0"},
               {"\t100\t", "\t0\t"},
               {"\tecg\tmV", "\tecg,ecg\tmV"},
               {"r01.hea\twfdb", "r00.hea\twfdb"},
               {"r00.hea\twfdb", "r99.hea\twfdb"},
               {"r00.hea,r00.dat", "../r00.hea"},
               {"\tok\t", "\tok\tx\t"},
               {"r00.hea\twfdb", "r%0.hea\twfdb"},
               {"\t10\t", "\tten\t"}};
  for (size_t i = 0; i < sizeof EDITS / sizeof EDITS[0]; i++) {
    char *at = strstr(good, EDITS[i].from);
    assert_non_null(at);
    sn_string text = {0};
    sn_error err;
    sn_error_clear(&err);
    CHECK(sn_string_printf(&text, fault, "%.*s%s%s", (int)(at - good), good, EDITS[i].to, at + strlen(EDITS[i].from)));
    assert_int_equal(sn_write_file(path, text.data, text.length, NULL), SN_OK);
    sn_status status = sn_manifest_load(path, root, "n", &loaded, &err);
    if (status != SN_E_CORRUPT) fail_msg("edit %d: %s", (int)i, sn_status_name(status));
    assert_non_null(strstr(err.message, "m.tsv"));
    sn_string_free(&text);
  }
  sn_free(good);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* The command: exit status, JSON that parses, the manifest file, unreadable folders. */
static int command(const char *arguments, const char *output) {
  sn_string line = {0};
  CHECK(sn_string_printf(&line, fault, "'%s' index %s >'%s' 2>/dev/null", SONDE_COMMAND, arguments, output));
  int status = system(line.data);
  sn_string_free(&line);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static int64_t json_number(const sn_json *json, const char *key) {
  int64_t value = -1;
  CHECK(sn_json_get_i64(json, key, &value, fault));
  return value;
}

static void test_command(void **state) {
  char *root = tree(), output[4200], arguments[16000];
  snprintf(output, sizeof output, "%s.out", root);
  snprintf(arguments, sizeof arguments, "'%s' --json --out '%s.tsv'", root, root);
  assert_int_equal(command(arguments, output), 0);
  sn_json *json = NULL;
  CHECK(sn_json_load(output, &json, fault));
  assert_int_equal(json_number(json, "recordings"), 3);
  assert_int_equal(json_number(json, "ok"), 3);
  assert_int_equal(sn_json_length(sn_json_get(json, "kinds")), 3);
  assert_int_equal(sn_json_length(sn_json_get(json, "left_out")), 0);
  const char *hash = NULL;
  CHECK(sn_json_get_string(json, "sha256", &hash, fault));
  sn_manifest *m = NULL;
  char path[4200];
  snprintf(path, sizeof path, "%s.tsv", root);
  CHECK(sn_manifest_load(path, root, NULL, &m, fault));
  assert_string_equal(m->hash, hash);
  sn_manifest_destroy(m);
  sn_json_destroy(json);
  /* A store beside it, with options; a key that is not known. */
  snprintf(arguments, sizeof arguments, "'%s' --prepare '%s.h5' --set data.rate=50Hz --set data.filter_high=20", root,
           root);
  assert_int_equal(command(arguments, output), 0);
  snprintf(arguments, sizeof arguments, "'%s' --prepare '%s.h5' --set data.rat=50Hz", root, root);
  assert_int_not_equal(command(arguments, output), 0);
  snprintf(arguments, sizeof arguments, "'%s' --set data.rate=50Hz", root);
  assert_int_not_equal(command(arguments, output), 0);
  /* A folder that cannot be listed is a line and an exit status; the rest is there. */
  snprintf(path, sizeof path, "%s/loop", root);
  assert_int_equal(symlink(".", path), 0);
  snprintf(arguments, sizeof arguments, "'%s' --json", root);
  assert_int_equal(command(arguments, output), 1);
  CHECK(sn_json_load(output, &json, fault));
  assert_int_equal(json_number(json, "ok"), 3);
  assert_int_equal(json_number(json, "unreadable_folders"), 1);
  sn_json_destroy(json);
  char *empty = cohort_directory();
  snprintf(arguments, sizeof arguments, "'%s'", empty);
  assert_int_not_equal(command(arguments, output), 0);
  assert_int_not_equal(command("/nowhere/at/all", output), 0);
  assert_int_not_equal(command("", output), 0);
  cohort_remove(empty);
  static const char *const LEFT[] = {".out", ".tsv", ".tsv.cache", ".h5"};
  for (int i = 0; i < 4; i++) {
    snprintf(path, sizeof path, "%s%s", root, LEFT[i]);
    unlink(path);
  }
  cohort_remove(root);
}

static void test_real_sets(void **state) {
  const char *data = getenv("SONDE_DATA");
  if (data == NULL) {
    print_message("SONDE_DATA is not set: the real sets are skipped\n");
    skip();
  }
#ifdef SONDE_HAVE_FLAC
  enum { OF_FLAC = 0 };
#else
  enum { OF_FLAC = 1 }; /* flacformats: this build cannot decode it, and must say so */
#endif
  static const struct {
    const char *path;
    int64_t ok, part, io, unsupported;
  } SETS[] = {{"ecg/cinc2017_af", 300, 0, 0, 0},
              {"ecg/mitbih_arrhythmia_5min", 48, 0, 0, 0},
              {"ecg/cinc2021_12lead", 128, 0, 0, 0},
              {"ecg/wfdb_formats", 21 - OF_FLAC, 20, 2, 1 + OF_FLAC}};
  for (size_t i = 0; i < 4; i++) {
    char path[4096];
    sn_index_report report;
    snprintf(path, sizeof path, "%s/%s", data, SETS[i].path);
    sn_manifest *m = index_of(path, (sn_index_options){.n_threads = 2}, &report);
    int64_t part = 0, io = 0, unsupported = 0;
    for (int64_t k = 0; k < m->n; k++) {
      part += strcmp(m->rows[k].cells[SN_MANIFEST_STATUS], "part") == 0;
      io += strcmp(m->rows[k].cells[SN_MANIFEST_STATUS], "io") == 0;
      unsupported += strcmp(m->rows[k].cells[SN_MANIFEST_STATUS], "unsupported") == 0;
    }
    assert_int_equal(m->n_ok, SETS[i].ok);
    assert_int_equal(part, SETS[i].part);
    assert_int_equal(io, SETS[i].io);
    assert_int_equal(unsupported, SETS[i].unsupported);
    sn_manifest_destroy(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_columns),
                                     cmocka_unit_test(test_deterministic_and_round_trip),
                                     cmocka_unit_test(test_records_file),
                                     cmocka_unit_test(test_left_out_lines_have_reasons),
                                     cmocka_unit_test(test_bad_directories),
                                     cmocka_unit_test(test_strange_names),
                                     cmocka_unit_test(test_cache),
                                     cmocka_unit_test(test_checksums),
                                     cmocka_unit_test(test_damaged_manifests),
                                     cmocka_unit_test(test_command),
                                     cmocka_unit_test(test_real_sets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
