/* needs: full hdf5 */
/* EEG as a source: the modality is found, places and bad marks come from sidecars, and the prepared store keeps them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cohort.h"
#include "core/pool.h"
#include "datasets/source_signal.h"
#include "datasets/store.h"
#include "datasets/tree.h"
#include "modalities/eeg/eeg.h"
#include "modalities/eeg/synth_eeg.h"
#include "signal_case.h"

enum { SUBJECTS = 4, RECORDINGS = 3, WINDOWS = 2 };

typedef struct world {
  char *root;
  sn_manifest *manifest;
} world;

/* Four people under 64 electrodes whose places are written down; some channels are marked bad. */
static int set_up(void **state) {
  static world w;
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  int64_t n = 0;
  sn_error err;
  o.n_subjects = SUBJECTS, o.recordings_per_subject = RECORDINGS, o.seconds = 21, o.headset = 64, o.rate_hz = 250;
  o.seed = 3;
  w.root = cohort_directory();
  char cohort[4096];
  cohort_path(w.root, "set", cohort, sizeof cohort);
  if (sn_synth_eeg_write(&o, cohort, &n, &err) != SN_OK) {
    print_error("%s\n", err.message);
    return -1;
  }
  w.manifest = cohort_index(cohort);
  *state = &w;
  return 0;
}

static int tear_down(void **state) {
  world *w = *state;
  sn_manifest_destroy(w->manifest);
  cohort_remove(w->root);
  return 0;
}

static sn_config *config_of(void) {
  const sn_config_entry *tables[SN_MODALITY_TABLES + 1];
  int64_t n = sn_modality_tables(tables);
  sn_config *config = NULL;
  tables[n++] = sn_signal_source_config;
  CHECK(sn_config_create(tables, n, &config, fault));
  return config;
}

static sn_signal_source_options options_of(const sn_manifest *manifest) {
  sn_signal_source_options o = {
      .manifest = manifest, .signal = signal_defaults("eeg"), .cache_bytes = 1 << 25, .verify = SN_VERIFY_NONE};
  o.signal.condition.filter_low_hz = 1; /* a shorter filter: the test is fast */
  return o;
}

static sn_source *source_of(const sn_signal_source_options *options) {
  sn_source *source = NULL;
  CHECK(sn_source_create_signal(options, &source, fault));
  return source;
}

static sn_sample *read_window(sn_source *source, int64_t index) {
  sn_sample *sample = NULL;
  CHECK(source->vtable->read(source, index, 5, 0, 0, &sample, fault));
  return sample;
}

static void expect_same(const sn_sample *a, const sn_sample *b) {
  const size_t n = (size_t)a->n_tokens;
  assert_int_equal(a->n_tokens, b->n_tokens);
  assert_memory_equal(a->patches, b->patches, n * (size_t)a->patch_size * sizeof(float));
  assert_memory_equal(a->coordinates, b->coordinates, 4 * n * sizeof(float));
  assert_memory_equal(a->channels, b->channels, n * sizeof(int32_t));
  assert_memory_equal(a->series, b->series, n * sizeof(int32_t));
}

/* Channels of the recording as it is opened that are bad and would make a series. */
static int64_t bad_of(const world *w, sn_tree *tree, int64_t row, sn_recording **recording) {
  int64_t bad = 0;
  CHECK(sn_tree_open_recording(tree, w->manifest->rows[row].path, NULL, recording, fault));
  for (int64_t c = 0; c < (*recording)->n_channels; c++)
    bad += (*recording)->channels[c].bad && (*recording)->channels[c].kind == SN_SENSOR_EEG;
  return bad;
}

static void test_places_and_bad_channels(void **state) {
  const world *w = *state;
  sn_signal_source_options o = options_of(w->manifest);
  sn_source *source = source_of(&o);
  sn_signal_source_report report;
  sn_tree *tree = NULL;
  int64_t all_bad = 0, moved = 0;
  assert_int_equal(w->manifest->n_ok, SUBJECTS * RECORDINGS);
  assert_int_equal(source->n_windows, SUBJECTS * RECORDINGS * WINDOWS);
  assert_int_equal(source->most_series, 64);
  assert_int_equal(source->max_tokens, 64 * 11);
  assert_int_equal(source->most_positions, 11);
  CHECK(sn_tree_open(w->manifest->root, &tree, fault));
  for (int64_t row = 0; row < w->manifest->n; row++) {
    sn_recording *recording = NULL;
    const sn_series_list *list = NULL;
    const int64_t bad = bad_of(w, tree, row, &recording);
    sn_sample *sample = read_window(source, row * WINDOWS);
    CHECK(sn_conditioned_series(sn_signal_source_conditioned(source), row, &list, fault));
    all_bad += bad;
    assert_int_equal(list->n, 64 - bad);
    assert_int_equal(sample->n_tokens, (64 - bad) * 11);
    for (int64_t t = 0; t < sample->n_tokens; t += 11) {
      const int64_t channel = sn_recording_find_channel(recording, list->series[sample->series[t]].name);
      double computed[3];
      assert_true(channel >= 0 && recording->channels[channel].has_position && !recording->channels[channel].bad);
      sn_electrode_position(sample->channels[t], SN_HEAD_RADIUS_M, computed);
      for (int k = 0; k < 3; k++) {
        assert_true(sample->coordinates[4 * t + k] == (float)recording->channels[channel].position_m[k]);
        moved += fabs(computed[k] - recording->channels[channel].position_m[k]) > 1e-4;
      }
    }
    sn_sample_destroy(sample);
    sn_recording_destroy(recording);
  }
  assert_true(all_bad > 0 && moved > 100); /* the cohort has what is tested; places are measured ones */
  sn_signal_source_get_report(source, &report);
  assert_int_equal(report.n_bad_channels, all_bad);
  assert_int_equal(report.n_unusable, 0);
  sn_tree_close(tree);
  sn_source_destroy(source);
}

/* Values, places and bad marks come out of the store alone, with the same bits. */
static void test_the_store_needs_no_recording(void **state) {
  const world *w = *state;
  char path[4096];
  cohort_path(w->root, "prepared.h5", path, sizeof path);
  sn_signal_source_options o = options_of(w->manifest);
  CHECK(sn_reference_parse(&((sn_eeg_settings *)o.signal.own.bytes)->montage.reference, "average", fault));
  const sn_store_write_options write = {.n_threads = 2};
  int64_t n_faults = -1;
  CHECK(sn_store_write(path, w->manifest, &o.signal, &write, &n_faults, fault));
  assert_int_equal(n_faults, 0);
  sn_source *direct = source_of(&o);
  o.store_path = path;
  sn_source *stored = source_of(&o);
  assert_string_equal(direct->content_hash, stored->content_hash);
  for (int64_t i = 0; i < direct->n_windows; i++) {
    sn_sample *a = read_window(direct, i), *b = read_window(stored, i);
    expect_same(a, b);
    sn_sample_destroy(a);
    sn_sample_destroy(b);
  }
  sn_conditioned_counts counts;
  sn_conditioned_get_counts(sn_signal_source_conditioned(stored), &counts);
  assert_int_equal(counts.opened, 0);
  assert_true(counts.bad_channels > 0);
  sn_source_destroy(direct);
  sn_source_destroy(stored);
}

typedef struct reading {
  sn_source *source;
  sn_sample **samples;
} reading;

static void read_one(void *user, int64_t index, int64_t worker) {
  reading *r = user;
  if (r->source->vtable->read(r->source, index, 5, 0, 0, &r->samples[index], NULL) != SN_OK) r->samples[index] = NULL;
}

/* Whatever the threads and the cache: the choice of series is made once for all, and the samples are the same. */
static void test_threads_and_caches(void **state) {
  const world *w = *state;
  sn_signal_source_options o = options_of(w->manifest);
  o.signal.condition.normalize = SN_NORMALIZE_GROUP;
  sn_source *alone = source_of(&o);
  o.cache_bytes = 0;
  sn_source *shared = source_of(&o);
  sn_pool *pool = NULL;
  reading r = {.source = shared, .samples = calloc((size_t)shared->n_windows, sizeof *r.samples)};
  CHECK(sn_pool_create(4, &pool, fault));
  CHECK(sn_pool_for(pool, shared->n_windows, read_one, &r, fault));
  sn_pool_destroy(pool);
  for (int64_t i = 0; i < shared->n_windows; i++) {
    sn_sample *sample = read_window(alone, i);
    assert_non_null(r.samples[i]);
    expect_same(sample, r.samples[i]);
    sn_sample_destroy(sample);
    sn_sample_destroy(r.samples[i]);
  }
  free(r.samples);
  sn_source_destroy(alone);
  sn_source_destroy(shared);
}

static void test_the_modality_is_found(void **state) {
  const world *w = *state;
  sn_config *config = config_of();
  sn_signal_source_options o = {0};
  sn_error err;
  CHECK(sn_signal_source_resolve(config, w->manifest, fault));
  assert_string_equal(sn_config_text(config, "data.modality"), "eeg");
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  assert_true(o.signal.condition.rate_num == 200);
  CHECK(sn_config_set(config, "data.assume_unit", "fT", "--set", -1, fault));
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  CHECK(sn_config_set(config, "data.assume_unit", "K", "--set", -1, fault));
  assert_int_equal(sn_signal_source_options_from_config(config, &o, &err), SN_E_ARGUMENT);
  sn_config_destroy(config);
  /* With an ECG beside them: both are named, and naming one is enough. */
  cohort_write(w->root, &(cohort_record){.folder = "", .name = "heart", .seconds = 12, .rate = 250, .n_leads = 2, .number = 1});
  sn_manifest *mixed = cohort_index(w->root);
  assert_int_equal(mixed->n_ok, SUBJECTS * RECORDINGS + 1);
  config = config_of();
  assert_int_equal(sn_signal_source_resolve(config, mixed, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "data.modality");
  assert_non_null(strstr(err.message, "ecg"));
  assert_non_null(strstr(err.message, "eeg"));
  CHECK(sn_config_set(config, "data.modality", "ecg", "--set", -1, fault));
  CHECK(sn_signal_source_resolve(config, mixed, fault));
  o = (sn_signal_source_options){.manifest = mixed};
  CHECK(sn_signal_source_options_from_config(config, &o, fault));
  sn_source *source = source_of(&o);
  assert_int_equal(source->n_windows, 1);
  sn_source_destroy(source);
  sn_config_destroy(config);
  sn_manifest_destroy(mixed);
}

/* Sensors by name come in the order of the setting. */
static void test_wanted_channels(void **state) {
  const world *w = *state;
  sn_signal_source_options o = options_of(w->manifest);
  sn_eeg_settings *own = (sn_eeg_settings *)o.signal.own.bytes;
  own->n_wanted = 2;
  memcpy(own->wanted, "Oz\0Fz", 6);
  sn_source *source = source_of(&o);
  sn_sample *sample = read_window(source, 0);
  assert_int_equal(sample->channels[0], sn_electrode_find("Oz"));
  assert_int_equal(sample->channels[sample->n_tokens - 1], sn_electrode_find("Fz"));
  sn_sample_destroy(sample);
  sn_source_destroy(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_places_and_bad_channels), cmocka_unit_test(test_the_store_needs_no_recording),
      cmocka_unit_test(test_threads_and_caches), cmocka_unit_test(test_wanted_channels),
      cmocka_unit_test(test_the_modality_is_found)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
