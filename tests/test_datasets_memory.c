/* needs: full */
/* Every allocation of datasets/ may fail: SN_E_MEMORY, nothing leaked (AddressSanitizer looks), nothing half made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "alloc_fault.h"
#include "cohort.h"
#include "datasets/labels.h"
#include "datasets/loader.h"
#include "datasets/source_signal.h"
#include "signal_case.h"
#include "datasets/split.h"
#include "datasets/store.h"

typedef struct world {
  char *root;
  sn_manifest *manifest;
  sn_keyed_table *table;
  sn_subjects *subjects;
  sn_labels *labels;
  char labels_path[4096];
} world;

static int set_up(void **state) {
  world *w = calloc(1, sizeof *w);
  w->root = cohort_directory();
  for (int i = 0; i < 3; i++) {
    char name[16];
    snprintf(name, sizeof name, "r%d", i);
    cohort_write(w->root, &(cohort_record){.folder = i == 2 ? "deep" : "",
                                           .name = name,
                                           .seconds = 2,
                                           .rate = 100,
                                           .n_leads = 1,
                                           .number = i,
                                           .comment = i == 0 ? "Age: 30" : "Age: 40"});
  }
  cohort_write_text(w->root, "labels.csv", "record,person,label,codes\nr0,p0,A,1;2\nr1,p1,B,2\nr2,p2,A,3\n");
  cohort_path(w->root, "labels.csv", w->labels_path, sizeof w->labels_path);
  sn_index_report report;
  sn_index_options io = {.name = "d"};
  sn_label_options lo = {.target = "label"};
  if (sn_index_directory(w->root, &io, &w->manifest, &report, NULL) != SN_OK ||
      sn_keyed_table_load(w->manifest, w->labels_path, "record", &w->table, NULL) != SN_OK ||
      sn_subjects_create(w->manifest, w->table, "person", &w->subjects, NULL) != SN_OK ||
      sn_labels_create(w->manifest, w->table, &lo, &w->labels, NULL) != SN_OK) {
    return -1;
  }
  *state = w;
  return 0;
}

static int tear_down(void **state) {
  world *w = *state;
  sn_labels_destroy(w->labels);
  sn_subjects_destroy(w->subjects);
  sn_keyed_table_destroy(w->table);
  sn_manifest_destroy(w->manifest);
  cohort_remove(w->root);
  free(w);
  return 0;
}

static void test_index(void **state) {
  world *w = *state;
  char cache[4200];
  snprintf(cache, sizeof cache, "%s.cache", w->root);
  for (fault_begin(); fault_next();) {
    sn_manifest *m = NULL;
    sn_index_report report;
    sn_index_options o = {.cache_path = cache};
    unlink(cache); /* lines from a cache are optional: a failure there is none of the index */
    sn_status status = sn_index_directory(w->root, &o, &m, &report, NULL);
    fault_check(status);
    sn_manifest_destroy(m);
  }
  unlink(cache);
}

static void test_manifest_file(void **state) {
  world *w = *state;
  char path[4200];
  snprintf(path, sizeof path, "%s/m.tsv", w->root);
  for (fault_begin(); fault_next();) {
    sn_manifest *m = NULL;
    sn_status status = sn_manifest_save(w->manifest, path, NULL);
    if (status == SN_OK) status = sn_manifest_load(path, w->root, "d", &m, NULL);
    if (status == SN_OK) status = sn_manifest_verify(m, 0, NULL);
    fault_check(status);
    sn_manifest_destroy(m);
  }
  unlink(path);
}

static void test_tables_and_subjects(void **state) {
  world *w = *state;
  for (fault_begin(); fault_next();) {
    sn_keyed_table *t = NULL;
    sn_subjects *s = NULL;
    sn_status status = sn_keyed_table_load(w->manifest, w->labels_path, NULL, &t, NULL);
    if (status == SN_OK) status = sn_subjects_create(w->manifest, t, "person", &s, NULL);
    fault_check(status);
    sn_subjects_destroy(s);
    sn_keyed_table_destroy(t);
  }
}

static void labels_turns(world *w, sn_label_options options) {
  for (fault_begin(); fault_next();) {
    sn_labels *l = NULL;
    sn_status status = sn_labels_create(w->manifest, w->table, &options, &l, NULL);
    fault_check(status);
    sn_labels_destroy(l);
  }
}

static void test_labels(void **state) {
  labels_turns(*state, (sn_label_options){.target = "label", .classes = "A,B"});
  labels_turns(*state, (sn_label_options){.target = "codes", .task = SN_LABEL_MULTI, .least_items = 1});
  labels_turns(*state, (sn_label_options){.target = "header:Age"});
}

static void test_split(void **state) {
  world *w = *state;
  char path[4200];
  snprintf(path, sizeof path, "%s/split.tsv", w->root);
  for (fault_begin(); fault_next();) {
    sn_split *a = NULL, *b = NULL;
    sn_leakage leak;
    sn_split_options o = {.n_folds = 3, .fold = 1};
    sn_status status = sn_split_create(w->manifest, w->subjects, NULL, w->labels, &o, &a, NULL);
    if (status == SN_OK) status = sn_split_save(a, path, NULL);
    if (status == SN_OK) status = sn_split_load(path, w->manifest, &b, NULL);
    if (status == SN_OK) status = sn_split_leakage(a, SN_ROLE_PRETRAIN, b, SN_ROLE_PROBE_TEST, &leak, NULL);
    fault_check(status);
    sn_split_destroy(a);
    sn_split_destroy(b);
  }
  unlink(path);
}

static sn_signal_options small_ecg(void) {
  sn_signal_options ecg = signal_defaults("ecg");
  ecg.condition.filter_low_hz = ecg.condition.filter_high_hz = 0;
  ecg.condition.window_s = ecg.stride_s = 1;
  ecg.condition.normalize = SN_NORMALIZE_ZSCORE_RECORD;
  return ecg;
}

/* One step read, the loader destroyed. The source is made anew each turn, so that its own pool and caches fail too. */
static void test_source_and_loader(void **state) {
  world *w = *state;
  const sn_signal_options signal = small_ecg();
  for (fault_begin(); fault_next();) {
    sn_source *source = NULL;
    sn_loader *loader = NULL;
    sn_step *step = NULL;
    sn_signal_source_options so = {
        .manifest = w->manifest, .subjects = w->subjects, .signal = signal, .verify = SN_VERIFY_FULL};
    sn_loader_options lo = {
        .pack_tokens = 10, .packs_per_step = 2, .prefetch_steps = 1, .n_ranks = 1, .max_bad_share = 1};
    sn_status status = sn_source_create_signal(&so, &source, NULL);
    if (status == SN_OK) status = sn_loader_create(source, &lo, &loader, NULL);
    if (status == SN_OK) status = sn_loader_next(loader, &step, NULL);
    fault_check(status);
    if (loader != NULL) sn_step_destroy(loader, step);
    sn_loader_destroy(loader);
    sn_source_destroy(source);
  }
}

static void test_store(void **state) {
  world *w = *state;
  char path[4200];
  snprintf(path, sizeof path, "%s.h5", w->root);
  sn_signal_options ecg = small_ecg();
  for (fault_begin(); fault_next();) {
    sn_store *store = NULL;
    sn_store_write_options o = {.verify = SN_VERIFY_FULL};
    double values[4];
    sn_status status = sn_store_write(path, w->manifest, &ecg, &o, NULL, NULL);
    if (status == SN_OK) status = sn_store_open(path, w->manifest, &ecg, &store, NULL);
    if (status == SN_OK) status = sn_store_read(store, 0, 0, 0, 3, 4, values, NULL);
    fault_check(status);
    sn_store_close(store);
  }
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_index),  cmocka_unit_test(test_manifest_file), cmocka_unit_test(test_tables_and_subjects),
      cmocka_unit_test(test_labels), cmocka_unit_test(test_split),         cmocka_unit_test(test_source_and_loader),
      cmocka_unit_test(test_store)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
