/* needs: full */
/* Recordings as a source: the grid, randomness, agreement with the plain pipeline, caches, bounds, faults, the
 * store. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>

#include "cohort.h"
#include "core/philox.h"
#include "core/pool.h"
#include "datasets/loader.h"
#include "datasets/source_signal.h"
#include "datasets/store.h"
#include "signal_case.h"

static sn_signal_source_options options_of(const sn_manifest *manifest) {
  sn_signal_source_options o = {
      .manifest = manifest, .signal = signal_defaults("ecg"), .cache_bytes = 1 << 24, .verify = SN_VERIFY_FULL};
  return o;
}

static sn_source *source_of(const sn_signal_source_options *options) {
  sn_source *source = NULL;
  CHECK(sn_source_create_signal(options, &source, fault));
  return source;
}

static sn_sample *read_window(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch) {
  sn_sample *sample = NULL;
  CHECK(source->vtable->read(source, index, seed, epoch, 0, &sample, fault));
  return sample;
}

static void expect_same_sample(const sn_sample *a, const sn_sample *b) {
  assert_true(a->sample_id == b->sample_id);
  assert_true(a->subject_id == b->subject_id);
  assert_int_equal(a->recording, b->recording);
  assert_int_equal(a->n_tokens, b->n_tokens);
  assert_true(a->start_s == b->start_s);
  assert_memory_equal(a->patches, b->patches, (size_t)(a->n_tokens * a->patch_size) * sizeof(float));
  assert_memory_equal(a->positions, b->positions, (size_t)a->n_tokens * sizeof(int32_t));
  assert_memory_equal(a->channels, b->channels, (size_t)a->n_tokens * sizeof(int32_t));
}

/* Records of several lengths, rates and leads. */
static char *mixed_cohort(void) {
  char *root = cohort_directory();
  cohort_write(root,
               &(cohort_record){.folder = "a", .name = "one", .seconds = 35, .rate = 300, .n_leads = 1, .number = 1});
  cohort_write(root,
               &(cohort_record){.folder = "a", .name = "two", .seconds = 10, .rate = 500, .n_leads = 3, .number = 2});
  cohort_write(root,
               &(cohort_record){.folder = "b", .name = "one", .seconds = 130, .rate = 360, .n_leads = 2, .number = 3});
  cohort_write(root,
               &(cohort_record){.folder = "b", .name = "short", .seconds = 4, .rate = 360, .n_leads = 2, .number = 4});
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "zed", .seconds = 61, .rate = 100, .n_leads = 1, .number = 5});
  return root;
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static void test_grid_and_report(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n_ok, 5);
  sn_signal_source_options o = options_of(m);
  sn_source *source = source_of(&o);
  sn_signal_source_report report;
  sn_signal_source_get_report(source, &report);
  assert_int_equal(report.n_recordings, 4);
  assert_int_equal(report.n_short, 1);
  assert_int_equal(report.n_unusable, 0);
  assert_int_equal(source->n_windows, 3 + 1 + 13 + 6);
  assert_int_equal(source->n_used, 4);
  assert_int_equal(source->n_recordings, 5);
  assert_int_equal(source->patch_size, 20);
  assert_int_equal(source->min_tokens, 50);
  assert_int_equal(source->max_tokens, 150);
  assert_true(fabs(source->patch_step_s - 0.2) < 1e-12);
  int64_t first = 0, n = 0, number = 0, row = sn_manifest_find(m, "b/one.hea");
  sn_window_at where;
  sn_signal_source_windows_of(source, row, &first, &n);
  assert_int_equal(n, 13);
  sn_signal_source_locate(source, first + 4, &where, &number);
  assert_int_equal(where.row, row);
  assert_int_equal(number, 4);
  assert_true(where.start_s == 40.0);
  assert_int_equal(source->vtable->nominal_tokens(source, first), 100);
  assert_string_equal(source->vtable->describe(source, first), "b/one.hea");
  sn_sample *sample = read_window(source, first + 4, 0, 0);
  assert_int_equal(sample->recording, row);
  assert_int_equal(sample->window, 4);
  assert_true(fabs(sample->start_s - 40.0) < 1e-9);
  assert_int_equal(sample->n_tokens, 100);
  sn_sample_destroy(sample);
  sn_source_destroy(source);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* Every window equals the plain pipeline on the file within float32 rounding of the conditioned signal. */
static void test_windows_equal_the_plain_pipeline(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m);
  static const sn_normalize MODES[] = {SN_NORMALIZE_ZSCORE_WINDOW, SN_NORMALIZE_ZSCORE_RECORD, SN_NORMALIZE_NONE};
  int64_t compared = 0;
  for (size_t mode = 0; mode < 3; mode++) {
    o.signal.condition.normalize = MODES[mode];
    sn_source *source = source_of(&o);
    sn_signal *signal = NULL;
    CHECK(sn_signal_create(&o.signal, &signal, fault));
    for (int64_t i = 0; i < source->n_windows; i++) {
      sn_window_at where;
      sn_signal_source_locate(source, i, &where, NULL);
      char *path = NULL;
      sn_recording *recording = NULL;
      sn_signal_stats *stats = NULL;
      sn_sample *plain = NULL, *sample = read_window(source, i, 1, 0);
      CHECK(sn_manifest_full_path(m, where.row, &path, fault));
      CHECK(sn_recording_open(path, NULL, &recording, fault));
      CHECK(signal_stats(signal, recording, &stats, fault));
      CHECK(signal_sample(signal, recording, where.segment, where.start_s, stats, &plain, fault));
      assert_int_equal(plain->n_tokens, sample->n_tokens);
      assert_int_equal(plain->patch_size, sample->patch_size);
      double largest = 0;
      for (int64_t k = 0; k < plain->n_tokens * plain->patch_size; k++) {
        assert_true(isfinite(sample->patches[k]));
        largest = fmax(largest, fabs((double)plain->patches[k]));
        assert_true(fabs((double)plain->patches[k] - (double)sample->patches[k]) <= 2e-6 * fmax(1.0, largest));
        compared++;
      }
      assert_true(largest > 0.5);
      assert_memory_equal(plain->coordinates, sample->coordinates, (size_t)plain->n_tokens * 4 * sizeof(float));
      assert_memory_equal(plain->channels, sample->channels, (size_t)plain->n_tokens * sizeof(int32_t));
      assert_true(fabs(plain->start_s - sample->start_s) < 1e-9);
      sn_sample_destroy(plain);
      sn_sample_destroy(sample);
      sn_recording_destroy(recording);
      sn_free(path);
      sn_free(stats);
    }
    sn_signal_destroy(signal);
    sn_source_destroy(source);
  }
  assert_true(compared > 50000);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* Fault 24: what the cache holds never shows; and a flip on a sample does not reach it. */
static void test_the_cache_changes_nothing(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  static const int64_t BYTES[] = {0, 4 * 6000, 1 << 24};
  sn_source *sources[3];
  for (int i = 0; i < 3; i++) {
    sn_signal_source_options o = options_of(m);
    o.random_crop = true;
    o.cache_bytes = BYTES[i];
    sources[i] = source_of(&o);
  }
  for (uint64_t epoch = 0; epoch < 10; epoch++) {
    for (int64_t i = 0; i < sources[0]->n_windows; i++) {
      int64_t window = (i * 7 + (int64_t)epoch * 5) % sources[0]->n_windows;
      sn_sample *a = read_window(sources[0], window, 3, epoch), *b = read_window(sources[1], window, 3, epoch),
                *c = read_window(sources[2], window, 3, epoch);
      expect_same_sample(a, b);
      expect_same_sample(a, c);
      for (int64_t k = 0; k < c->n_tokens * c->patch_size; k++) c->patches[k] = -c->patches[k];
      sn_sample_destroy(a);
      sn_sample_destroy(b);
      sn_sample_destroy(c);
    }
  }
  sn_conditioned_counts none, small, large;
  sn_conditioned_get_counts(sn_signal_source_conditioned(sources[0]), &none);
  sn_conditioned_get_counts(sn_signal_source_conditioned(sources[1]), &small);
  sn_conditioned_get_counts(sn_signal_source_conditioned(sources[2]), &large);
  assert_int_equal(none.cache_hits, 0);
  assert_true(small.cache_bytes <= BYTES[1] && small.cache_misses > large.cache_misses);
  assert_true(large.cache_hits > 10 * large.cache_misses);
  for (int i = 0; i < 3; i++) sn_source_destroy(sources[i]);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_crops(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m);
  o.random_crop = true;
  sn_source *source = source_of(&o), *again = source_of(&o);
  int64_t row = sn_manifest_find(m, "b/one.hea"), first = 0, n = 0, moved = 0, edges = 0;
  sn_signal_source_windows_of(source, row, &first, &n);
  for (int64_t i = 0; i < n; i++) {
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
      sn_sample *a = read_window(source, first + i, 11, epoch), *b = read_window(again, first + i, 11, epoch),
                *c = read_window(source, first + i, 12, epoch);
      expect_same_sample(a, b);
      assert_true(a->sample_id == c->sample_id);
      assert_true(a->start_s >= 0 && a->start_s <= 120.0 + 1e-9);
      assert_true(fabs(a->start_s - 10.0 * (double)i) <= 5.0 + 0.006);
      moved += a->start_s != c->start_s;
      edges += a->start_s == 0.0;
      sn_sample_destroy(a);
      sn_sample_destroy(b);
      sn_sample_destroy(c);
    }
  }
  assert_true(moved > 60);
  assert_true(edges >= 1);
  /* A recording of exactly one window has nowhere to go. */
  sn_signal_source_windows_of(source, sn_manifest_find(m, "a/two.hea"), &first, &n);
  assert_int_equal(n, 1);
  for (uint64_t epoch = 0; epoch < 5; epoch++) {
    sn_sample *a = read_window(source, first, 11, epoch);
    assert_true(a->start_s == 0.0);
    sn_sample_destroy(a);
  }
  sn_source_destroy(source);
  sn_source_destroy(again);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* Adding a file changes no other sample's identity or values. */
static void test_ids_do_not_depend_on_neighbours(void **state) {
  char *root = mixed_cohort();
  sn_manifest *before = cohort_index(root);
  sn_signal_source_options o = options_of(before);
  o.random_crop = true;
  sn_source *a = source_of(&o);
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "0aa", .seconds = 20, .rate = 250, .n_leads = 1, .number = 9});
  sn_manifest *after = cohort_index(root);
  o = options_of(after);
  o.random_crop = true;
  sn_source *b = source_of(&o);
  assert_string_not_equal(a->content_hash, b->content_hash);
  assert_int_equal(b->n_windows, a->n_windows + 2);
  for (int64_t i = 0; i < a->n_windows; i++) {
    sn_sample *x = read_window(a, i, 2, 1), *y = read_window(b, i + 2, 2, 1);
    assert_true(x->sample_id == y->sample_id);
    assert_memory_equal(x->patches, y->patches, (size_t)(x->n_tokens * x->patch_size) * sizeof(float));
    sn_sample_destroy(x);
    sn_sample_destroy(y);
  }
  sn_source_destroy(a);
  sn_source_destroy(b);
  sn_manifest_destroy(before);
  sn_manifest_destroy(after);
  cohort_remove(root);
}

/* ---- fault 23: record i always holds i, few descriptors -------------------------------------------------------- */

typedef struct reading {
  sn_source *source;
  int64_t n;
  float *first; /* (n) first value of each window's first patch */
} reading;

static void read_one(void *user, int64_t index, int64_t worker) {
  reading *r = user;
  int64_t window = (int64_t)sn_bijection(1, SN_PURPOSE_TEST, 0, (uint64_t)r->n, (uint64_t)(index % r->n));
  sn_sample *sample = NULL;
  if (r->source->vtable->read(r->source, window, 0, 0, 0, &sample, NULL) != SN_OK) return;
  r->first[window] = sample->patches[3];
  sn_sample_destroy(sample);
}

static int64_t open_descriptors(void) {
  DIR *dir = opendir("/proc/self/fd");
  int64_t n = 0;
  while (dir != NULL && readdir(dir) != NULL) n++;
  if (dir != NULL) closedir(dir);
  return n;
}

static void test_descriptors_and_parallel_reads(void **state) {
  enum { FILES = 400 };
  char *root = cohort_directory();
  for (int i = 0; i < FILES; i++) {
    char name[32];
    snprintf(name, sizeof name, "n%04d", i);
    cohort_write(root,
                 &(cohort_record){.folder = "", .name = name, .seconds = 1, .rate = 100, .n_leads = 1, .number = i});
  }
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m);
  o.signal.condition.filter_low_hz = o.signal.condition.filter_high_hz = 0;
  o.signal.condition.normalize = SN_NORMALIZE_NONE;
  o.signal.condition.clip = 0;
  o.signal.condition.window_s = 1;
  o.signal.stride_s = 1;
  o.most_open = 6;
  o.cache_bytes = 0;
  struct rlimit before, low;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  low = before;
  low.rlim_cur = (rlim_t)(open_descriptors() + 6 * 3 + 4 * 6 + 8); /* far fewer than files */
  assert_true(low.rlim_cur < FILES);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int64_t threads = 0; threads <= 4; threads += 4) {
    sn_source *source = source_of(&o);
    sn_pool *pool = NULL;
    reading r = {.source = source, .n = source->n_windows};
    assert_int_equal(source->n_windows, FILES);
    r.first = calloc(FILES, sizeof *r.first);
    CHECK(sn_pool_create(threads, &pool, fault));
    CHECK(sn_pool_for(pool, 3 * FILES, read_one, &r, fault));
    sn_pool_destroy(pool);
    for (int i = 0; i < FILES; i++) {
      double expected = (double)(float)(lround(1000 * cohort_value(i, 0, 0.03)) / 1000.0);
      assert_true(fabs((double)r.first[i] - expected) < 1e-6);
    }
    sn_conditioned_counts counts;
    sn_conditioned_get_counts(sn_signal_source_conditioned(source), &counts);
    assert_true(counts.most_open <= 6 + 4);
    assert_true(counts.opened >= FILES);
    free(r.first);
    sn_source_destroy(source);
  }
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- fault 40: the 17th of 20 files ---------------------------------------------------------------------------- */

static void cut_short(const char *root, const char *name, int64_t bytes) {
  char path[4096];
  cohort_path(root, name, path, sizeof path);
  assert_int_equal(truncate(path, bytes), 0);
}

static sn_status run_steps(sn_source *source, double max_bad_share, int64_t threads, int64_t n_steps, sn_string *ledger,
                           int64_t *samples, sn_error *err) {
  sn_loader_options o = {.seed = 1,
                         .pack_tokens = 200,
                         .packs_per_step = 2,
                         .n_threads = threads,
                         .prefetch_steps = 2,
                         .n_ranks = 1,
                         .max_bad_share = max_bad_share};
  sn_loader *loader = NULL;
  CHECK(sn_loader_create(source, &o, &loader, fault));
  sn_status status = SN_OK;
  *samples = 0;
  for (int64_t i = 0; i < n_steps && status == SN_OK; i++) {
    sn_step *step = NULL;
    status = sn_loader_next(loader, &step, err);
    if (status == SN_OK) *samples += step->n_samples;
    sn_step_destroy(loader, step);
  }
  sn_json_writer w;
  sn_json_writer_init(&w, ledger, 0);
  sn_loader_write_ledger(loader, &w);
  assert_int_equal(sn_json_writer_finish(&w, NULL), SN_OK);
  sn_loader_destroy(loader);
  return status;
}

static void test_the_seventeenth_of_twenty_is_cut_short(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 20, 20, 250);
  sn_manifest *m = cohort_index(root);
  assert_int_equal(m->n_ok, 20);
  cut_short(root, "r16.dat", 5001); /* after it was indexed */
  sn_string ledger = {0}, other = {0};
  int64_t samples = 0, samples_4 = 0;
  sn_error err;
  sn_signal_source_options o = options_of(m);
  sn_source *source = source_of(&o);
  assert_int_equal(run_steps(source, 0.1, 0, 12, &ledger, &samples, &err), SN_OK);
  assert_int_equal(run_steps(source, 0.1, 4, 12, &other, &samples_4, &err), SN_OK);
  assert_string_equal(ledger.data, other.data);
  assert_int_equal(samples, samples_4);
  assert_non_null(strstr(ledger.data, "r16.hea"));
  assert_non_null(strstr(ledger.data, "r16.dat"));
  assert_non_null(strstr(ledger.data, "5001"));
  assert_null(strstr(ledger.data, "r15"));
  /* Strict: the first one stops, and the message says which, where and why. */
  sn_string strict = {0};
  assert_int_equal(run_steps(source, 0.0, 2, 12, &strict, &samples, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "1 of 20"));
  assert_non_null(strstr(err.message, "r16"));
  assert_non_null(strstr(err.message, "5001"));
  sn_string_free(&ledger);
  sn_string_free(&other);
  sn_string_free(&strict);
  sn_source_destroy(source);
  /* Indexed again, it is a line with its reason and no window. */
  sn_manifest *again = cohort_index(root);
  assert_int_equal(again->n, 20);
  assert_int_equal(again->n_ok, 19);
  int64_t row = sn_manifest_find(again, "r16.hea");
  assert_string_equal(again->rows[row].cells[SN_MANIFEST_STATUS], "corrupt");
  assert_non_null(strstr(again->rows[row].cells[SN_MANIFEST_REASON], "r16.dat"));
  sn_manifest_destroy(again);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* A file replaced under the same name is found at its first use (fault 24). */
static void test_a_replaced_file_is_found(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 3, 20, 250);
  sn_manifest *m = cohort_index(root);
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "r01", .seconds = 20, .rate = 250, .n_leads = 1, .number = 77});
  sn_signal_source_options o = options_of(m);
  sn_source *source = source_of(&o);
  int64_t first = 0, n = 0;
  sn_error err;
  sn_sample *sample = NULL;
  sn_signal_source_windows_of(source, 1, &first, &n);
  assert_int_equal(source->vtable->read(source, first, 0, 0, 0, &sample, &err), SN_E_CORRUPT);
  assert_non_null(strstr(err.message, "r01.hea"));
  assert_non_null(strstr(err.message, "changed since it was indexed"));
  sample = read_window(source, 0, 0, 0);
  sn_sample_destroy(sample);
  sn_source_destroy(source);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_nothing_left_is_an_error(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 3, 4, 250);
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = options_of(m);
  sn_source *source = NULL;
  sn_error err;
  assert_int_equal(sn_source_create_signal(&o, &source, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "3 recordings are shorter"));
  o.signal.condition.window_s = 2;
  o.signal.stride_s = 2;
  ecg_settings(&o.signal)->n_leads = 1;
  ecg_settings(&o.signal)->leads[0] = SN_LEAD_V5;
  assert_int_equal(sn_source_create_signal(&o, &source, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "3 cannot be used"));
  assert_non_null(strstr(err.message, "r00.hea"));
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_given_windows(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  int64_t row = sn_manifest_find(m, "b/one.hea");
  sn_window_at windows[3] = {{row, 0, 17.25}, {row, 0, 500.0}, {sn_manifest_find(m, "a/two.hea"), 0, -1.0}};
  sn_signal_source_options o = options_of(m), grid = options_of(m);
  o.windows = windows;
  o.n_windows = 3;
  sn_source *source = source_of(&o), *plain = source_of(&grid);
  assert_int_equal(source->n_windows, 3);
  sn_sample *a = read_window(source, 0, 0, 0), *b = read_window(source, 1, 0, 0), *c = read_window(source, 2, 0, 0);
  assert_true(fabs(a->start_s - 17.25) < 1e-9);
  assert_true(fabs(b->start_s - 120.0) < 1e-9);
  assert_true(c->start_s == 0.0);
  assert_true(a->sample_id != b->sample_id);
  int64_t first = 0, n = 0;
  sn_signal_source_windows_of(plain, row, &first, &n);
  sn_sample *d = read_window(plain, first + 12, 0, 0); /* 120 s */
  assert_memory_equal(b->patches, d->patches, (size_t)(b->n_tokens * b->patch_size) * sizeof(float));
  sn_sample_destroy(a);
  sn_sample_destroy(b);
  sn_sample_destroy(c);
  sn_sample_destroy(d);
  sn_source_destroy(source);
  sn_source_destroy(plain);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_windows_of_beats(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 2, 10, 100);
  sn_annotation items[] = {{.sample = 150, .onset_s = 1.5, .code = "N"}, {.sample = 333, .onset_s = 3.33, .code = "V"}};
  sn_annotations list = {.n = 2, .items = items, .rate = 100};
  CHECK(sn_wfdb_annotations_write(root, "r01", "atr", &list, NULL, fault));
  sn_manifest *m = cohort_index(root);
  sn_labels *labels = NULL;
  sn_window_at *windows = NULL;
  sn_label_options lo = {.target = "annotation:aami"};
  CHECK(sn_labels_create(m, NULL, &lo, &labels, fault));
  CHECK(sn_windows_of_items(m, labels, &windows, fault));
  sn_signal_source_options o = options_of(m);
  o.signal.condition.window_s = o.signal.stride_s = 1;
  o.windows = windows;
  o.n_windows = labels->n;
  sn_source *source = source_of(&o);
  assert_int_equal(source->n_windows, 2);
  sn_sample *a = read_window(source, 0, 0, 0), *b = read_window(source, 1, 0, 0);
  assert_true(fabs(a->start_s - 1.0) < 1e-9 && fabs(b->start_s - 2.83) < 1e-9);
  assert_int_equal(a->recording, 1);
  sn_sample_destroy(a);
  sn_sample_destroy(b);
  sn_source_destroy(source);
  sn_free(windows);
  sn_labels_destroy(labels);
  /* A line given twice would double its windows. */
  int64_t rows[2] = {1, 1};
  sn_error err;
  o = options_of(m);
  o.rows = rows;
  o.n_rows = 2;
  assert_int_equal(sn_source_create_signal(&o, &source, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "twice"));
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- the prepared store ---------------------------------------------------------------------------------------- */

static void test_the_store_gives_the_same_bits(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  char path[4096];
  cohort_path(root, "prepared.h5", path, sizeof path);
  for (int64_t threads = 0; threads <= 2; threads += 2) {
    sn_signal_source_options o = options_of(m);
    o.random_crop = true;
    o.signal.condition.normalize = SN_NORMALIZE_ZSCORE_RECORD;
    sn_store_write_options w = {.n_threads = threads, .verify = SN_VERIFY_FULL};
    int64_t n_faults = -1;
    CHECK(sn_store_write(path, m, &o.signal, &w, &n_faults, fault));
    assert_int_equal(n_faults, 0);
    sn_source *direct = source_of(&o);
    o.store_path = path;
    sn_source *stored = source_of(&o);
    assert_string_equal(direct->content_hash, stored->content_hash);
    for (uint64_t epoch = 0; epoch < 3; epoch++) {
      for (int64_t i = 0; i < direct->n_windows; i++) {
        sn_sample *a = read_window(direct, i, 8, epoch), *b = read_window(stored, i, 8, epoch);
        expect_same_sample(a, b);
        sn_sample_destroy(a);
        sn_sample_destroy(b);
      }
    }
    sn_conditioned_counts counts;
    sn_conditioned_get_counts(sn_signal_source_conditioned(stored), &counts);
    assert_int_equal(counts.opened, 0); /* no recording was touched */
    sn_source_destroy(direct);
    sn_source_destroy(stored);
  }
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_a_store_of_other_data_or_options_is_refused(void **state) {
  char *root = mixed_cohort();
  sn_manifest *m = cohort_index(root);
  char path[4096];
  sn_error err;
  sn_store *store = NULL;
  cohort_path(root, "prepared.h5", path, sizeof path);
  sn_signal_options ecg = signal_defaults("ecg"), other = signal_defaults("ecg");
  sn_store_write_options w = {0};
  CHECK(sn_store_write(path, m, &ecg, &w, NULL, fault));
  other.condition.filter_low_hz = 1.0; /* fault 24: another high-pass */
  assert_int_equal(sn_store_open(path, m, &other, &store, &err), SN_E_STATE);
  char key[65];
  CHECK(sn_conditioned_key(m, &ecg, key, fault));
  assert_non_null(strstr(err.message, key));
  CHECK(sn_conditioned_key(m, &other, key, fault));
  assert_non_null(strstr(err.message, key));
  /* What comes after the stored signal may differ: normalisation, window. */
  other = signal_defaults("ecg");
  other.condition.normalize = SN_NORMALIZE_ROBUST;
  other.condition.window_s = other.stride_s = 5;
  CHECK(sn_store_open(path, m, &other, &store, fault));
  sn_store_close(store);
  cohort_write(root,
               &(cohort_record){.folder = "", .name = "zed", .seconds = 61, .rate = 100, .n_leads = 1, .number = 6});
  sn_manifest *changed = cohort_index(root);
  assert_int_equal(sn_store_open(path, changed, &ecg, &store, &err), SN_E_STATE);
  sn_manifest_destroy(changed);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_damaged_stores_are_refused(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 4, 20, 250);
  sn_manifest *m = cohort_index(root);
  char path[4096], cut[4096];
  sn_error err;
  sn_store *store = NULL;
  sn_signal_options ecg = signal_defaults("ecg");
  sn_store_write_options w = {0};
  cohort_path(root, "prepared.h5", path, sizeof path);
  cohort_path(root, "cut.h5", cut, sizeof cut);
  CHECK(sn_store_write(path, m, &ecg, &w, NULL, fault));
  FILE *file = fopen(path, "rb");
  static char bytes[1 << 20];
  size_t n = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  assert_true(n > 20000 && n < sizeof bytes);
  for (size_t length = 0; length < n; length += 997) {
    assert_int_equal(sn_write_file(cut, bytes, (int64_t)length, NULL), SN_OK);
    sn_status status = sn_store_open(cut, m, &ecg, &store, &err);
    assert_true(status == SN_E_CORRUPT);
    assert_non_null(strstr(err.message, "cut.h5"));
  }
  assert_int_equal(sn_store_open("/nowhere/at/all.h5", m, &ecg, &store, &err), SN_E_IO);
  cohort_write_text(root, "cut.h5", "not HDF5 at all");
  assert_int_equal(sn_store_open(cut, m, &ecg, &store, &err), SN_E_CORRUPT);
  /* A failed write leaves the old store as it was. */
  assert_int_equal(sn_store_write("/nowhere/at/all.h5", m, &ecg, &w, NULL, &err), SN_E_IO);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* No room for the file: io, the old store as it was, nothing left beside it. */
static void test_a_full_disk_while_preparing(void **state) {
  char *root = cohort_directory(), path[4096], folder[4096];
  cohort_write_many(root, 4, 60, 250);
  sn_manifest *m = cohort_index(root);
  sn_signal_options ecg = signal_defaults("ecg");
  sn_store_write_options w = {0};
  sn_store *store = NULL;
  sn_error err;
  cohort_path(root, "out", folder, sizeof folder);
  CHECK(sn_make_directories(folder, fault));
  cohort_path(root, "out/prepared.h5", path, sizeof path);
  CHECK(sn_store_write(path, m, &ecg, &w, NULL, fault));
  struct rlimit before, low;
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, SIG_IGN); /* a write beyond the limit then fails as on a full disk */
  for (rlim_t limit = 0; limit < 100000; limit += 8191) {
    low = before;
    low.rlim_cur = limit;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    sn_status status = sn_store_write(path, m, &ecg, &w, NULL, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, SN_E_IO);
    assert_non_null(strstr(err.message, "prepared.h5"));
    CHECK(sn_store_open(path, m, &ecg, &store, fault));
    sn_store_close(store);
    sn_dir_entry *entries = NULL;
    int64_t n = 0;
    CHECK(sn_dir_list(folder, &entries, &n, fault));
    assert_int_equal(n, 1);
    sn_dir_free(entries, n);
  }
  signal(SIGXFSZ, SIG_DFL);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_a_fault_while_preparing_is_kept(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 20, 20, 250);
  sn_manifest *m = cohort_index(root);
  cut_short(root, "r16.dat", 5001);
  char path[4096];
  cohort_path(root, "prepared.h5", path, sizeof path);
  sn_signal_source_options o = options_of(m);
  sn_store_write_options w = {.n_threads = 2, .verify = SN_VERIFY_FULL};
  int64_t n_faults = 0, samples = 0, samples_stored = 0;
  sn_error err;
  CHECK(sn_store_write(path, m, &o.signal, &w, &n_faults, fault));
  assert_int_equal(n_faults, 1);
  sn_source *direct = source_of(&o);
  o.store_path = path;
  sn_source *stored = source_of(&o);
  sn_string a = {0}, b = {0};
  assert_int_equal(run_steps(direct, 0.1, 2, 12, &a, &samples, &err), SN_OK);
  assert_int_equal(run_steps(stored, 0.1, 2, 12, &b, &samples_stored, &err), SN_OK);
  assert_string_equal(a.data, b.data); /* the same ledger */
  assert_int_equal(samples, samples_stored);
  sn_string_free(&a);
  sn_string_free(&b);
  sn_source_destroy(direct);
  sn_source_destroy(stored);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_grid_and_report),
                                     cmocka_unit_test(test_windows_equal_the_plain_pipeline),
                                     cmocka_unit_test(test_the_cache_changes_nothing),
                                     cmocka_unit_test(test_crops),
                                     cmocka_unit_test(test_ids_do_not_depend_on_neighbours),
                                     cmocka_unit_test(test_descriptors_and_parallel_reads),
                                     cmocka_unit_test(test_the_seventeenth_of_twenty_is_cut_short),
                                     cmocka_unit_test(test_a_replaced_file_is_found),
                                     cmocka_unit_test(test_nothing_left_is_an_error),
                                     cmocka_unit_test(test_given_windows),
                                     cmocka_unit_test(test_windows_of_beats),
                                     cmocka_unit_test(test_the_store_gives_the_same_bits),
                                     cmocka_unit_test(test_a_store_of_other_data_or_options_is_refused),
                                     cmocka_unit_test(test_damaged_stores_are_refused),
                                     cmocka_unit_test(test_a_full_disk_while_preparing),
                                     cmocka_unit_test(test_a_fault_while_preparing_is_kept)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
