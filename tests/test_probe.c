/* needs: full */
/* `sonde probe` and `sonde embed` end to end on a small synthetic cohort. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/fs.h"
#include "core/json.h"
#include "core/alloc.h"

static char folder[64];

/* Runs `sonde ARGUMENTS` in the folder; output to out.txt, messages to err.txt. */
static int sonde(const char *arguments) {
  char command[2048];
  snprintf(command, sizeof command, "cd %s && '%s' %s > out.txt 2> err.txt", folder, SONDE_COMMAND, arguments);
  const int code = system(command);
  return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
}

static const char *read_text(const char *name) {
  static char text[1 << 18];
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "rb");
  if (file == NULL) return "";
  const size_t n = fread(text, 1, sizeof text - 1, file);
  text[n] = '\0';
  fclose(file);
  return text;
}

static void check_runs(const char *arguments) {
  const int code = sonde(arguments);
  if (code != 0) fail_msg("sonde %s: exit %d: %s", arguments, code, read_text("err.txt"));
}

static void check_fails(const char *arguments, const char *says) {
  const int code = sonde(arguments);
  if (code == 0 || code == -1) fail_msg("sonde %s: exit %d", arguments, code);
  if (strstr(read_text("err.txt"), says) == NULL) fail_msg("sonde %s: expected '%s' in: %s", arguments, says, read_text("err.txt"));
}

static sn_json *load(const char *name) {
  char path[256];
  sn_json *json = NULL;
  sn_error err;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  if (sn_json_load(path, &json, &err) != SN_OK) fail_msg("%s", err.message);
  return json;
}

static void pretrain(const char *run, const char *more) {
  char command[1024];
  snprintf(command, sizeof command,
           "pretrain --preset ecg-tiny --data synth --labels synth/labels.csv --key record --subject subject --out %s %s "
           "--set train.steps=2 --set train.pack_tokens=640 --set model.width=32 --set model.depth=1 --set model.heads=2 "
           "--set mae.decoder_width=32 --set mae.decoder_heads=2 --set train.ema=0.9", run, more);
  check_runs(command);
}

static int set_up(void **state) {
  snprintf(folder, sizeof folder, "/tmp/sonde-probe-XXXXXX");
  if (mkdtemp(folder) == NULL) return -1;
  check_runs("synth ecg --out synth --subjects 16 --recordings 2 --seconds 20 --leads 1");
  pretrain("a", "--fold 0/2");
  pretrain("b", "--fold 1/2");
  pretrain("all", "");
  return 0;
}

static int tear_down(void **state) { return sn_remove_tree(folder, NULL) == SN_OK ? 0 : -1; }

static const sn_json *get(const sn_json *json, const char *key) {
  const sn_json *value = sn_json_get(json, key);
  if (value == NULL) fail_msg("no key '%s'", key);
  return value;
}

static int64_t get_i64(const sn_json *json, const char *key) {
  int64_t value = -1;
  if (!sn_json_as_i64(get(json, key), &value)) fail_msg("'%s' is no whole number", key);
  return value;
}

static double get_f64(const sn_json *json, const char *key) {
  double value = NAN;
  if (!sn_json_as_f64(get(json, key), &value)) fail_msg("'%s' is no number", key);
  return value;
}

static int64_t count_rows(const sn_json *rows, const char *encoder) {
  int64_t n = 0;
  for (int64_t i = 0; i < sn_json_length(rows); i++)
    n += strcmp(sn_json_as_string(get(sn_json_at(rows, i), "encoder")), encoder) == 0;
  return n;
}

static void test_two_folds_are_joined(void **state) {
  check_runs("probe a b --target sex --pool mean --pool mean_max_std --draws 200 --name x --threads 1");
  const char *table = read_text("out.txt");
  assert_non_null(strstr(table, "2 of 2 folds of people"));
  assert_non_null(strstr(table, "majority"));
  assert_null(strstr(table, "persons unknown"));
  sn_json *json = load("a/probes/x.json"), *other = load("b/probes/x.json");
  const sn_json *rows = get(json, "rows"), *protocol = get(json, "protocol"), *n = get(json, "n");
  assert_string_equal(sn_json_as_string(get(json, "task")), "binary");
  assert_string_equal(sn_json_as_string(get(protocol, "kind")), "subject-kfold");
  assert_string_equal(sn_json_as_string(get(protocol, "unit")), "subject");
  assert_string_equal(sn_json_as_string(get(protocol, "metric")), "auroc");
  assert_string_equal(sn_json_as_string(get(protocol, "class_weight")), "balanced");
  assert_false(sn_json_as_bool(get(protocol, "transductive")));
  assert_int_equal(get_i64(protocol, "folds"), 2);
  assert_int_equal(get_i64(n, "recordings"), 32);
  assert_int_equal(get_i64(n, "subjects"), 16);
  assert_int_equal(get_i64(n, "windows"), 64);
  assert_int_equal(get_i64(get(n, "per_class"), "F") + get_i64(get(n, "per_class"), "M"), 32);
  assert_int_equal(count_rows(rows, "pretrained"), 3); /* two pools and the chosen one */
  assert_int_equal(count_rows(rows, "random"), 9);
  assert_int_equal(count_rows(rows, "raw"), 1);
  assert_int_equal(count_rows(rows, "majority"), 1);
  for (int64_t i = 0; i < sn_json_length(rows); i++) {
    const sn_json *row = sn_json_at(rows, i), *m = get(get(row, "metrics"), "auroc");
    const bool majority = strcmp(sn_json_as_string(get(row, "encoder")), "majority") == 0;
    get(row, "pool"), get(row, "probe"), get(row, "seed");
    assert_true(get_f64(m, "low") <= get_f64(m, "value") && get_f64(m, "value") <= get_f64(m, "high"));
    assert_int_equal(sn_json_length(get(m, "folds")), 2);
    assert_int_equal(sn_json_length(get(m, "undefined_classes")), 0);
    assert_int_equal(sn_json_length(get(get(row, "selected"), "C")), majority ? 0 : 2);
  }
  const sn_json *pair = sn_json_at(get(json, "paired"), 0);
  get_f64(pair, "difference"), get_f64(pair, "low"), get_f64(pair, "high"), get(pair, "a"), get(pair, "b"), get(pair, "metric");
  assert_int_equal(get_i64(get(json, "leakage"), "pretraining_subjects_in_test"), 0);
  assert_true(sn_json_as_bool(get(get(json, "leakage"), "checked")));
  assert_int_equal(get_i64(json, "checkpoint_step"), 2);
  get(json, "dropped"), get(json, "run"), get(json, "engine_version");
  assert_string_equal(sn_json_as_string(get(other, "run")), "a");
  sn_json_destroy(json);
  sn_json_destroy(other);
  /* Another number of threads: the same bytes. */
  static char first[1 << 18];
  snprintf(first, sizeof first, "%s", read_text("a/probes/x.json"));
  check_runs("probe a b --target sex --pool mean --pool mean_max_std --draws 200 --name y --threads 3 --json");
  assert_string_equal(first, read_text("a/probes/y.json"));
  assert_string_equal(first, read_text("out.txt"));
}

static void test_other_targets(void **state) {
  check_runs("probe a b --target age --task regression --draws 100 --seeds 1 --json");
  sn_json *json = load("out.txt");
  assert_string_equal(sn_json_as_string(get(json, "task")), "regression");
  get_f64(get(get(sn_json_at(get(json, "rows"), 0), "metrics"), "r2"), "value");
  sn_json_destroy(json);
  check_runs("probe a b --target annotation:code --draws 100 --seeds 1 --classes N,V --json");
  json = load("out.txt");
  assert_string_equal(sn_json_as_string(get(json, "target")), "annotation:code");
  assert_true(get_i64(get(json, "n"), "items") > 100);
  sn_json_destroy(json);
  check_runs("probe a --target sex --draws 100 --seeds 1 --ema"); /* one fold of two */
  assert_non_null(strstr(read_text("out.txt"), "1 of 2 folds"));
}

/* A kNN probe has the same rows, and is nowhere called linear. */
static void test_knn(void **state) {
  check_runs("probe a b --target sex --classifier knn --k 12 --pool mean --pool mean_max_std --draws 100 --seeds 2");
  const char *table = read_text("out.txt");
  assert_non_null(strstr(table, "kNN probe, k 12"));
  assert_non_null(strstr(table, "by k"));
  assert_null(strstr(table, "linear"));
  assert_null(strstr(table, "C of"));
  sn_json *json = load("a/probes/sex-knn.json");
  const sn_json *rows = get(json, "rows");
  assert_int_equal(count_rows(rows, "pretrained"), 3);
  assert_int_equal(count_rows(rows, "random"), 6);
  assert_int_equal(count_rows(rows, "raw"), 1);
  assert_int_equal(count_rows(rows, "majority"), 1);
  for (int64_t i = 0; i < sn_json_length(rows); i++) {
    const sn_json *row = sn_json_at(rows, i), *m = get(get(row, "metrics"), "auroc");
    assert_true(get_f64(m, "low") <= get_f64(m, "value") && get_f64(m, "value") <= get_f64(m, "high"));
    if (strcmp(sn_json_as_string(get(row, "encoder")), "majority") == 0) continue;
    assert_string_equal(sn_json_as_string(get(row, "probe")), "knn");
    assert_int_equal(sn_json_length(get(get(row, "selected"), "k")), 2);
    get_f64(get(row, "by_k"), "10");
    assert_int_equal(sn_json_kind(get(get(row, "by_k"), "20")), SN_JSON_NULL); /* 16 training items in each fold */
  }
  assert_int_equal(sn_json_kind(get(get(json, "protocol"), "class_weight")), SN_JSON_NULL);
  sn_json_destroy(json);
  check_fails("probe a b --target sex --classifier knn --name other", "k is 20, and there are 16 training items");
  check_fails("probe a b --target sex --k 5", "--classifier knn only");
  check_fails("probe a b --target sex --classifier knn --k 5 --unweighted", "no class weights");
  check_fails("probe a b --target sex --classifier knn --k 0", "at least 1");
  check_fails("probe a b --target sex --classifier attentive", "linear or knn");
  check_fails("probe a b --target age --task regression --classifier knn --k 5", "number");
}

static void test_leakage(void **state) {
  check_fails("probe all --target sex", "leakage");
  check_runs("probe all --target sex --transductive --draws 100 --seeds 1 --folds 3");
  const char *table = read_text("out.txt");
  assert_non_null(strstr(table, "TRANSDUCTIVE"));
  assert_non_null(strstr(table, "pretrained transductive"));
  assert_non_null(strstr(table, "majority transductive"));
  sn_json *json = load("all/probes/sex-transductive.json");
  assert_int_equal(get_i64(get(json, "leakage"), "pretraining_subjects_in_test"), 16);
  assert_true(sn_json_as_bool(get(get(json, "leakage"), "overridden")));
  assert_true(sn_json_as_bool(get(sn_json_at(get(json, "rows"), 0), "transductive")));
  sn_json_destroy(json);
  /* The same recordings under another name: found by content. */
  char command[256];
  snprintf(command, sizeof command, "cp -r %s/synth %s/renamed", folder, folder);
  assert_int_equal(system(command), 0);
  check_fails("probe all --data renamed --labels renamed/labels.csv --key record --subject subject --target sex", "leakage");
}

static void test_refused(void **state) {
  check_fails("probe a b --target sex --classes M", "one class");
  check_fails("probe a b --target sex --classes M,X", "no class 'X'");
  check_fails("probe a b --target nothing", "no column 'nothing'");
  check_fails("probe a b", "--target");
  check_fails("probe a a --target sex", "test part of both");
  check_fails("probe a all --target sex", "left nobody out");
  check_fails("probe nowhere --target sex", "not a run folder");
  check_fails("probe a b --target sex --metric auroc_macr", "auroc_macro");
  check_fails("probe a b --target age --task regression --metric auroc", "not defined for a regression target");
  check_fails("probe a b --target sex --pool middle", "middle");
  check_fails("probe a b --target sex --step 99", "no complete checkpoint");
  check_fails("probe a b --target header:Nothing", "Nothing");
  check_fails("probe a b --target sex --labels missing.csv", "missing.csv");
  check_fails("probe a --data synth/labels.csv --labels synth/labels.csv --target sex", "labels.csv");
  check_fails("probe a --data nowhere --target sex", "--labels");
  char path[128];
  snprintf(path, sizeof path, "%s/other.csv", folder);
  assert_int_equal(sn_write_file(path, "record,sex\nx1,F\nx2,M\n", 21, NULL), SN_OK); /* none of the recordings */
  check_fails("probe a b --target sex --labels other.csv --key record", "other.csv");
}

static void test_embed(void **state) {
  check_runs("embed a --out e.npy --windows --json");
  sn_json *json = load("out.txt");
  assert_int_equal(get_i64(json, "rows"), 64);
  assert_int_equal(get_i64(json, "features"), 32);
  sn_json_destroy(json);
  char path[128];
  snprintf(path, sizeof path, "%s/e.npy", folder);
  FILE *file = fopen(path, "rb");
  char header[129] = "";
  float values[64 * 32];
  assert_non_null(file);
  assert_int_equal(fread(header, 1, 128, file), 128);
  assert_memory_equal(header, "\x93NUMPY\x01\x00\x76\x00", 10);
  assert_non_null(strstr(header + 10, "'shape': (64, 32)"));
  assert_int_equal(fread(values, 4, 64 * 32, file), 64 * 32);
  assert_int_equal(fgetc(file), EOF);
  fclose(file);
  for (int i = 0; i < 64 * 32; i++) assert_true(isfinite(values[i]));
  const char *tsv = read_text("e.tsv");
  assert_non_null(strstr(tsv, "s00000_0.hea\ts00000\t10\t1\n"));
  check_runs("embed a --data ./synth/ --out same.npy --windows"); /* the run's own directory, written otherwise: the same people */
  assert_non_null(strstr(read_text("same.tsv"), "s00000_0.hea\ts00000\t10\t1\n"));
  check_runs("embed a --out e.h5");
  assert_memory_equal(read_text("e.h5"), "\x89HDF\r\n\x1a\n", 8);
  snprintf(path, sizeof path, "%s/e.h5.writing", folder);
  assert_false(sn_path_exists(path));
  check_fails("embed a --out e.csv", ".npy");
  check_fails("embed a --out nowhere/e.h5", "cannot be created");
  check_fails("embed a", "--out");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_folds_are_joined), cmocka_unit_test(test_other_targets),
                                     cmocka_unit_test(test_knn), cmocka_unit_test(test_leakage), cmocka_unit_test(test_refused), cmocka_unit_test(test_embed)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
