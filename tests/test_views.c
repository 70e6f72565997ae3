/* needs: full */
/* Views of a window: crops keyed by view, whatever cache or store they come through, and the loader's places of several
 * samples. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cohort.h"
#include "core/philox.h"
#include "core/sha256.h"
#include "datasets/loader.h"
#include "datasets/source_signal.h"
#include "datasets/store.h"
#include "signal_case.h"

/* ---- crops of recordings ----------------------------------------------------------------------------------------- */

static sn_sample *read_view(sn_source *source, int64_t window, uint64_t epoch, int64_t view) {
  sn_sample *sample = NULL;
  CHECK(sn_source_read(source, window, 9, epoch, view, &sample, fault));
  assert_int_equal(sample->view, view);
  return sample;
}

static void expect_same_patches(const sn_sample *a, const sn_sample *b) {
  assert_true(a->sample_id == b->sample_id && a->start_s == b->start_s);
  assert_int_equal(a->n_tokens, b->n_tokens);
  assert_memory_equal(a->patches, b->patches, (size_t)(a->n_tokens * a->patch_size) * sizeof *a->patches);
}

/* What a start was before there were views: view 0 must not have moved. */
static double start_without_views(uint64_t id, uint64_t epoch, double grid_s, double stride_s, double last_s) {
  sn_random random = sn_random_at(9, SN_PURPOSE_CROP, epoch, id);
  const double shifted = grid_s + (sn_random_uniform(&random) - 0.5) * stride_s;
  return shifted < 0 ? 0 : shifted > last_s ? last_s : shifted;
}

static void test_crops_of_views(void **state) {
  enum { VIEWS = 4, SECONDS = 95 };
  char *root = cohort_directory(), path[4096];
  cohort_write_many(root, 3, SECONDS, 250);
  sn_manifest *m = cohort_index(root);
  sn_signal_source_options o = {.manifest = m, .signal = signal_defaults("ecg"), .random_crop = true, .verify = SN_VERIFY_FULL};
  sn_source *sources[4];
  int64_t n_moved = 0, n_read = 0;
  sn_store_write_options w = {.verify = SN_VERIFY_FULL};
  cohort_path(root, "prepared.h5", path, sizeof path);
  CHECK(sn_store_write(path, m, &o.signal, &w, NULL, fault));
  for (int k = 0; k < 4; k++) {
    o.cache_bytes = k == 0 ? 0 : k == 1 ? 4 * 6000 : 1 << 24;
    o.store_path = k == 3 ? path : NULL;
    CHECK(sn_source_create_signal(&o, &sources[k], fault));
  }
  for (uint64_t epoch = 0; epoch < 2; epoch++)
    for (int64_t i = 0; i < sources[0]->n_windows; i++) {
      double starts[VIEWS];
      uint64_t id = 0;
      for (int64_t v = 0; v < VIEWS; v++) {
        sn_sample *first = read_view(sources[0], i, epoch, v);
        starts[v] = first->start_s;
        if (v == 0) id = first->sample_id;
        assert_true(first->sample_id == id);
        for (int k = 1; k < 4; k++) {
          sn_sample *other = read_view(sources[k], i, epoch, v);
          expect_same_patches(first, other);
          sn_sample_destroy(other);
        }
        sn_sample_destroy(first);
        n_read++;
      }
      sn_window_at where;
      sn_signal_source_locate(sources[0], i, &where, NULL);
      const double expected = start_without_views(id, epoch, where.start_s, 10, SECONDS - 10);
      assert_true(fabs(starts[0] - expected) <= 0.0051); /* to the nearest sample of 100 Hz */
      for (int64_t v = 1; v < VIEWS; v++) {
        assert_true(fabs(starts[v] - where.start_s) <= 5.0051);
        n_moved += fabs(starts[v] - starts[v - 1]) > 0.02;
      }
    }
  assert_true(n_read == 2 * 27 * VIEWS && n_moved > 140); /* of 162 */
  for (int k = 0; k < 4; k++) sn_source_destroy(sources[k]);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

static void test_synthetic_views_differ_in_noise(void **state) {
  const sn_synthetic_options o = {.n_windows = 3, .patch_size = 20, .tokens_least = 40, .tokens_most = 40, .n_channels = 2};
  sn_source *source = NULL;
  CHECK(sn_source_create_synthetic(&o, &source, fault));
  sn_sample *a = read_view(source, 1, 0, 0), *b = read_view(source, 1, 0, 1), *c = read_view(source, 1, 5, 1);
  double between = 0, signal = 0;
  expect_same_patches(b, c);
  assert_true(a->sample_id == b->sample_id);
  for (int64_t i = 0; i < 800; i++) {
    between += pow((double)a->patches[i] - (double)b->patches[i], 2) / 800;
    signal += pow((double)a->patches[i], 2) / 800;
  }
  assert_true(fabs(between - 0.02) < 0.003); /* twice the noise's variance of 0.01 */
  assert_true(signal > 10 * between);
  sn_sample_destroy(a);
  sn_sample_destroy(b);
  sn_sample_destroy(c);
  sn_source_destroy(source);
}

/* Recordings know their windows; where persons are unknown, recordings are not taken for them. */
static void test_groups_of_recordings(void **state) {
  char *root = cohort_directory();
  cohort_write_many(root, 5, 45, 250);
  sn_manifest *m = cohort_index(root);
  sn_subjects *subjects = NULL;
  CHECK(sn_subjects_create(m, NULL, "recording", &subjects, fault));
  sn_signal_source_options o = {.manifest = m, .signal = signal_defaults("ecg"), .subjects = subjects, .verify = SN_VERIFY_FULL};
  sn_source *source = NULL;
  CHECK(sn_source_create_signal(&o, &source, fault));
  sn_loader_options lo = {.seed = 1, .pack_tokens = 400, .packs_per_step = 1, .prefetch_steps = 1, .n_ranks = 1,
                          .sampling = {.by = SN_GROUP_RECORDING, .group = 2, .n_views = 2, .adjacent = true}};
  sn_loader *loader = NULL;
  sn_step *step = NULL;
  sn_loader_groups g;
  sn_error err;
  CHECK(sn_loader_create(source, &lo, &loader, fault));
  CHECK(sn_loader_describe_groups(loader, 0, &g, fault));
  assert_int_equal(g.n_groups, 10);
  assert_int_equal(g.n_left_out, 0);
  for (int i = 0; i < 20; i++) {
    CHECK(sn_loader_next(loader, &step, fault));
    const sn_token_batch *b = step->packs[0].batch;
    assert_true(b->n_samples >= 4 && b->n_samples % 4 == 0);
    for (int64_t s = 0; s < b->n_samples; s += 4) {
      assert_int_equal(b->recordings[s], b->recordings[s + 2]);
      assert_int_equal(b->windows[s] + 1, b->windows[s + 2]);
      assert_true(fabs(b->starts_s[s] + 10 - b->starts_s[s + 2]) < 1e-9);
      assert_true(b->sample_ids[s] == b->sample_ids[s + 1] && b->sample_ids[s] != b->sample_ids[s + 2]);
    }
    sn_step_destroy(loader, step);
  }
  sn_loader_destroy(loader);
  lo.sampling = (sn_sampling){.by = SN_GROUP_SUBJECT, .group = 2};
  assert_int_equal(sn_loader_create(source, &lo, &loader, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "r00"));
  assert_non_null(strstr(err.message, "by recording"));
  sn_source_destroy(source);
  sn_subjects_destroy(subjects);
  sn_manifest_destroy(m);
  cohort_remove(root);
}

/* ---- the loader -------------------------------------------------------------------------------------------------- */

enum { N_WINDOWS = 60, PATCH = 2, VIEWS = 3 };

typedef struct fake {
  bool rejects;          /* view 1 of every seventh window */
  int64_t bad_recording; /* fails in view 2 only; -1 none */
} fake;

static int64_t fake_tokens(const sn_source *source, int64_t index) { return 2 + index % 4; }
static int64_t fake_recording(const sn_source *source, int64_t index) { return index / 6; }
static const char *fake_describe(const sn_source *source, int64_t index) { return "recording"; }
static void fake_destroy(sn_source *source) { sn_free(source); }

static sn_status fake_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view, sn_sample **out,
                           sn_error *err) {
  const fake *f = source->self;
  if (f->rejects && index % 7 == 0 && view == 1) return sn_fail(err, SN_END, "flat");
  if (index / 6 == f->bad_recording && view == 2) return sn_fail(err, SN_E_CORRUPT, "cut short");
  SN_TRY(sn_sample_create(fake_tokens(source, index), PATCH, false, out, err));
  sn_sample *s = *out;
  s->sample_id = 1000 + (uint64_t)index;
  s->recording = index / 6;
  sn_random random = sn_random_at_view(seed, SN_PURPOSE_CROP, epoch, s->sample_id, view);
  for (int64_t i = 0; i < s->n_tokens * PATCH; i++) s->patches[i] = (float)sn_random_uniform(&random);
  return SN_OK;
}

static const sn_source_vtable FAKE = {.name = "fake", .read = fake_read, .nominal_tokens = fake_tokens,
                                      .recording = fake_recording, .describe = fake_describe, .destroy = fake_destroy};

static sn_source *fake_source(fake *f) {
  sn_source *source = NULL;
  CHECK(sn_alloc(&source, 1, sizeof *source, "test source", fault));
  *source = (sn_source){.vtable = &FAKE, .n_windows = N_WINDOWS, .n_recordings = 10, .patch_size = PATCH,
                        .min_tokens = 2, .max_tokens = 5, .n_channel_ids = 1, .self = f};
  return source;
}

typedef struct course {
  int64_t steps, position, n_samples, n_rejected, n_quarantined, n_new;
  char digest[65];
} course;

/* Every place of a batch: views 0 .. n - 1 of one window, in order. */
static void check_views(const sn_token_batch *b, int64_t n_views) {
  assert_int_equal(b->n_samples % n_views, 0);
  for (int64_t s = 0; s < b->n_samples; s++) {
    assert_int_equal(b->views[s], s % n_views);
    assert_true(b->sample_ids[s] == b->sample_ids[s - s % n_views]);
  }
}

static course run(fake *f, int64_t n_views, int64_t threads, int ranks, int64_t from, int64_t n_steps) {
  sn_source *source = fake_source(f);
  sn_loader *loaders[2];
  course c = {0};
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  for (int r = 0; r < ranks; r++) {
    const sn_loader_options o = {.seed = 9, .pack_tokens = 40, .packs_per_step = 2, .n_threads = threads,
                                 .prefetch_steps = 3, .rank = r, .n_ranks = ranks, .sampling.n_views = n_views,
                                 .start_position = from, .max_bad_share = 0.5};
    CHECK(sn_loader_create(source, &o, &loaders[r], fault));
    assert_true(sn_loader_pack_samples(loaders[r]) == (n_views == 3 ? 18 : n_views == 2 ? 20 : 20));
  }
  for (; c.steps < n_steps; c.steps++) {
    sn_step *steps[2];
    for (int r = 0; r < ranks; r++) CHECK(sn_loader_next(loaders[r], &steps[r], fault));
    for (int k = 0; k < 2; k++) {
      const sn_step *step = steps[k % ranks];
      const sn_token_batch *b = step->packs[k / ranks].batch;
      check_views(b, n_views > 0 ? n_views : 1);
      assert_true(b->n_tokens <= 40 && b->n_samples <= sn_loader_pack_samples(loaders[0]));
      sn_sha256_update(&hash, b->sample_ids, b->n_samples * 8);
      sn_sha256_update(&hash, b->patches, b->n_tokens * PATCH * 4);
    }
    c.position = steps[0]->position;
    for (int r = 0; r < ranks; r++) {
      c.n_samples += steps[r]->n_samples;
      c.n_rejected += steps[r]->n_rejected;
      c.n_quarantined += steps[r]->n_quarantined;
      c.n_new += steps[r]->n_new_quarantined;
      sn_step_destroy(loaders[r], steps[r]);
    }
  }
  for (int r = 0; r < ranks; r++) sn_loader_destroy(loaders[r]);
  sn_source_destroy(source);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, c.digest);
  return c;
}

static void test_places_of_several_views(void **state) {
  fake f = {.bad_recording = -1};
  const course none = run(&f, 0, 0, 1, 0, 20), one = run(&f, 1, 0, 1, 0, 20), three = run(&f, VIEWS, 0, 1, 0, 20);
  assert_string_equal(none.digest, one.digest);
  assert_true(none.n_samples == none.position && three.n_samples == VIEWS * three.position);
  assert_true(three.position < none.position / 2); /* fewer places in the same packs */
  const course threads = run(&f, VIEWS, 2, 1, 0, 20), ranks = run(&f, VIEWS, 1, 2, 0, 20);
  assert_string_equal(threads.digest, three.digest);
  assert_string_equal(ranks.digest, three.digest);
  assert_int_equal(ranks.n_samples, three.n_samples);
  /* Resumed in the middle, the rest is the same. */
  const course half = run(&f, VIEWS, 0, 1, 0, 8), rest = run(&f, VIEWS, 0, 1, half.position, 12),
               again = run(&f, VIEWS, 2, 2, half.position, 12);
  assert_int_equal(rest.position, three.position);
  assert_string_equal(rest.digest, again.digest);
  assert_int_equal(half.n_samples + rest.n_samples, three.n_samples);
}

/* A view that is rejected takes its place's other views with it: all are read or none. */
static void test_a_rejected_view_empties_its_place(void **state) {
  fake f = {.bad_recording = -1}, rejecting = {.rejects = true, .bad_recording = -1};
  const course all = run(&f, VIEWS, 1, 1, 0, 20), fewer = run(&rejecting, VIEWS, 1, 1, 0, 20);
  assert_int_equal(fewer.position, all.position); /* places do not move */
  assert_true(fewer.n_rejected >= all.position / 10);
  assert_int_equal(fewer.n_samples, VIEWS * (all.position - fewer.n_rejected));
  const course single = run(&rejecting, 1, 1, 1, 0, 20); /* view 1 is never read */
  assert_int_equal(single.n_rejected, 0);
}

static void test_a_view_that_fails_quarantines_its_recording(void **state) {
  fake f = {.bad_recording = 4};
  const course c = run(&f, VIEWS, 2, 1, 0, 20), single = run(&f, 2, 2, 1, 0, 20);
  assert_int_equal(c.n_new, 1);
  assert_true(c.n_quarantined >= 6);
  assert_int_equal(c.n_samples, VIEWS * (c.position - c.n_quarantined));
  assert_int_equal(single.n_new, 0);
}

static void test_packs_must_hold_all_views(void **state) {
  fake f = {.bad_recording = -1};
  sn_source *source = fake_source(&f);
  sn_loader *loader = NULL;
  sn_error err;
  sn_loader_options o = {.pack_tokens = 14, .packs_per_step = 1, .prefetch_steps = 1, .n_ranks = 1, .sampling.n_views = VIEWS};
  assert_int_equal(sn_loader_create(source, &o, &loader, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "pack_tokens");
  assert_non_null(strstr(err.message, "3 views"));
  o.pack_tokens = 15;
  CHECK(sn_loader_create(source, &o, &loader, fault));
  sn_loader_destroy(loader);
  o.sampling.n_views = -1;
  assert_int_equal(sn_loader_create(source, &o, &loader, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "n_views");
  sn_source_destroy(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_crops_of_views),
      cmocka_unit_test(test_synthetic_views_differ_in_noise),
      cmocka_unit_test(test_groups_of_recordings),
      cmocka_unit_test(test_places_of_several_views),
      cmocka_unit_test(test_a_rejected_view_empties_its_place),
      cmocka_unit_test(test_a_view_that_fails_quarantines_its_recording),
      cmocka_unit_test(test_packs_must_hold_all_views)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
