/* The loader: order, ranks, threads, restart, empty places, the quarantine ledger, errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <inttypes.h>
#include <cmocka.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/philox.h"
#include "core/sha256.h"
#include "datasets/loader.h"

/* ---- a source with faults ---------------------------------------------------------------------------------------- */

enum { WINDOWS_PER_RECORDING = 8, N_RECORDINGS = 20, PATCH = 4 };

typedef struct faulty {
  int64_t bad_recording; /* every window fails, -1 none */
  int64_t bad_window;    /* only this window fails (its recording then belongs in the ledger), -1 none */
  int64_t memory_window; /* SN_E_MEMORY, -1 none */
  int64_t reject_every;  /* windows divisible by it are rejected, 0 none */
  bool all_rejected;
  int64_t too_long_window; /* breaks its promise, -1 none */
  atomic_int_fast64_t reads, bad_reads;
} faulty;

static int64_t faulty_tokens(const sn_source *source, int64_t index) { return 3 + index % 5; }
static int64_t faulty_recording(const sn_source *source, int64_t index) { return index / WINDOWS_PER_RECORDING; }
static const char *faulty_describe(const sn_source *source, int64_t index) {
  static const char *const NAMES[N_RECORDINGS] = {"r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08", "r09",
                                                  "r10", "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19"};
  return NAMES[index / WINDOWS_PER_RECORDING];
}
static void faulty_destroy(sn_source *source) { sn_free(source); }

static sn_status faulty_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                             sn_sample **out, sn_error *err) {
  faulty *self = source->self;
  atomic_fetch_add(&self->reads, 1);
  int64_t recording = index / WINDOWS_PER_RECORDING;
  if (index == self->memory_window) return sn_fail(err, SN_E_MEMORY, "window %" PRId64 ": out of memory", index);
  if (recording == self->bad_recording || index == self->bad_window) {
    atomic_fetch_add(&self->bad_reads, 1);
    return sn_fail_at(err, SN_E_CORRUPT, 1234, -1, "samples", "r%02" PRId64 ".dat: byte 1234: cut short", recording);
  }
  if (self->all_rejected || (self->reject_every > 0 && index % self->reject_every == 0)) {
    return sn_fail(err, SN_END, "flat");
  }
  int64_t n = faulty_tokens(source, index) - (index % 3 == 0); /* some turn out shorter than planned */
  if (index == self->too_long_window) n += 2;
  sn_sample *sample = NULL;
  SN_TRY(sn_sample_create(n, PATCH, false, &sample, err));
  char name[32];
  sample->sample_id = sn_hash64(name, snprintf(name, sizeof name, "w%" PRId64, index));
  sample->recording = recording;
  sample->window = index % WINDOWS_PER_RECORDING;
  sn_random random = sn_random_at(seed, SN_PURPOSE_CROP, epoch, sample->sample_id);
  for (int64_t i = 0; i < n * PATCH; i++) sample->patches[i] = (float)sn_random_uniform(&random);
  for (int64_t i = 0; i < n; i++) {
    sample->channels[i] = 0;
    sample->positions[i] = (int32_t)i;
    sample->sensors[i] = SN_SENSOR_SYNTHETIC;
  }
  /* Uneven work, so that threads finish out of order. */
  volatile double burn = 0;
  for (int64_t i = 0, work = (index * 7919 % 13) * 300; i < work; i++) burn += sqrt((double)i);
  *out = sample;
  return SN_OK;
}

static const sn_source_vtable FAULTY = {.name = "faulty", .read = faulty_read, .nominal_tokens = faulty_tokens,
                                        .recording = faulty_recording, .describe = faulty_describe, .destroy = faulty_destroy};

static sn_source *faulty_source(faulty *self) {
  sn_source *source = NULL;
  assert_int_equal(sn_alloc(&source, 1, sizeof *source, "test source", NULL), SN_OK);
  source->vtable = &FAULTY;
  source->n_windows = N_RECORDINGS * WINDOWS_PER_RECORDING;
  source->n_recordings = N_RECORDINGS;
  source->patch_size = PATCH;
  source->min_tokens = 3;
  source->max_tokens = 7;
  source->n_channel_ids = 1;
  source->self = self;
  return source;
}

static faulty sound(void) {
  return (faulty){.bad_recording = -1, .bad_window = -1, .memory_window = -1, .too_long_window = -1};
}

/* ---- masks made in the loader, and a digest of all that a step holds --------------------------------------------- */

typedef struct masks {
  int64_t n;
  uint8_t *masked;
} masks;

static atomic_int_fast64_t live_works;

static sn_status make_masks(void *user, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                            sn_error *err) {
  masks *m = NULL;
  uint64_t seed = *(uint64_t *)user;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "masks", err));
  sn_status status = sn_alloc(&m->masked, batch->n_tokens, 1, "masks", err);
  if (status != SN_OK) {
    sn_free(m);
    return status;
  }
  m->n = batch->n_tokens;
  for (int64_t s = 0; s < batch->n_samples; s++) {
    sn_random random = sn_random_at(seed, SN_PURPOSE_MASK, epochs[s], batch->sample_ids[s]);
    for (int64_t t = batch->offsets[s]; t < batch->offsets[s + 1]; t++) m->masked[t] = sn_random_below(&random, 2) == 1;
  }
  atomic_fetch_add(&live_works, 1);
  *work = m;
  return SN_OK;
}

static void free_masks(void *user, void *work) {
  masks *m = work;
  sn_free(m->masked);
  sn_free(m);
  atomic_fetch_sub(&live_works, 1);
}

static void digest_pack(sn_sha256 *hash, const sn_pack *pack) {
  const sn_token_batch *b = pack->batch;
  sn_sha256_update(hash, &b->n_samples, sizeof b->n_samples);
  if (b->n_samples == 0) {
    assert_null(pack->work);
    return;
  }
  sn_sha256_update(hash, b->offsets, (b->n_samples + 1) * (int64_t)sizeof *b->offsets);
  sn_sha256_update(hash, b->sample_ids, b->n_samples * (int64_t)sizeof *b->sample_ids);
  sn_sha256_update(hash, b->patches, b->n_tokens * b->patch_size * (int64_t)sizeof *b->patches);
  sn_sha256_update(hash, b->positions, b->n_tokens * (int64_t)sizeof *b->positions);
  if (pack->work != NULL) sn_sha256_update(hash, ((masks *)pack->work)->masked, ((masks *)pack->work)->n);
}

typedef struct setup {
  int64_t threads, ranks, prefetch, packs_per_step, pack_tokens;
  double max_bad_share;
} setup;

static const setup PLAIN = {
    .threads = 0, .ranks = 1, .prefetch = 1, .packs_per_step = 4, .pack_tokens = 40, .max_bad_share = 0.5};

static uint64_t seed_of_masks = 5;

static sn_loader *make_loader(sn_source *source, setup s, int rank, int64_t position) {
  sn_loader_options options = {.seed = 5,
                               .pack_tokens = s.pack_tokens,
                               .packs_per_step = s.packs_per_step,
                               .n_threads = s.threads,
                               .prefetch_steps = s.prefetch,
                               .rank = rank,
                               .n_ranks = (int)s.ranks,
                               .start_position = position,
                               .max_bad_share = s.max_bad_share,
                               .collate = make_masks,
                               .free_work = free_masks,
                               .user = &seed_of_masks};
  sn_loader *loader = NULL;
  sn_error err;
  sn_error_clear(&err);
  if (sn_loader_create(source, &options, &loader, &err) != SN_OK) fail_msg("%s", err.message);
  return loader;
}

static char *ledger_text(const sn_loader *loader) {
  sn_string text = {0};
  sn_json_writer writer;
  sn_json_writer_init(&writer, &text, 0);
  sn_loader_write_ledger(loader, &writer);
  assert_int_equal(sn_json_writer_finish(&writer, NULL), SN_OK);
  return text.data;
}

static void read_ledger_text(sn_loader *loader, const char *text) {
  sn_json *json = NULL;
  sn_error err;
  assert_int_equal(sn_json_parse(text, (int64_t)strlen(text), "ledger", &json, &err), SN_OK);
  if (sn_loader_read_ledger(loader, json, &err) != SN_OK) fail_msg("%s", err.message);
  sn_json_destroy(json);
}

typedef struct trace {
  char digests[64][65]; /* per step, over all ranks */
  int64_t positions[64], samples[64], rejected[64], quarantined[64];
  char *ledger;
} trace;

/* The exchange between ranks that the engine makes between two steps. */
static void exchange(sn_loader **loaders, int64_t ranks) {
  for (int64_t a = 0; a < ranks; a++) {
    char *text = ledger_text(loaders[a]);
    for (int64_t b = 0; b < ranks; b++) {
      if (b != a) read_ledger_text(loaders[b], text);
    }
    sn_free(text);
  }
}

static void run_steps(faulty *self, setup s, int64_t n_steps, int64_t position, const char *ledger, trace *t) {
  sn_source *source = faulty_source(self);
  sn_loader *loaders[4];
  memset(t, 0, sizeof *t);
  for (int64_t r = 0; r < s.ranks; r++) {
    loaders[r] = make_loader(source, s, (int)r, position);
    if (ledger != NULL) read_ledger_text(loaders[r], ledger);
  }
  for (int64_t i = 0; i < n_steps; i++) {
    sn_step *steps[4];
    int64_t fresh = 0;
    for (int64_t r = 0; r < s.ranks; r++) {
      sn_error err;
      sn_error_clear(&err);
      if (sn_loader_next(loaders[r], &steps[r], &err) != SN_OK) fail_msg("step %d: %s", (int)i, err.message);
      assert_int_equal(steps[r]->n_packs, s.packs_per_step / s.ranks);
      assert_int_equal(steps[r]->position, steps[0]->position);
      fresh += steps[r]->n_new_quarantined;
      t->samples[i] += steps[r]->n_samples;
      t->rejected[i] += steps[r]->n_rejected;
      t->quarantined[i] += steps[r]->n_quarantined;
    }
    if (fresh > 0) exchange(loaders, s.ranks);
    sn_sha256 hash;
    uint8_t digest[32];
    sn_sha256_init(&hash);
    for (int64_t k = 0; k < s.packs_per_step; k++) digest_pack(&hash, &steps[k % s.ranks]->packs[k / s.ranks]);
    sn_sha256_final(&hash, digest);
    sn_sha256_hex(digest, t->digests[i]);
    t->positions[i] = steps[0]->position;
    for (int64_t r = 0; r < s.ranks; r++) sn_step_destroy(loaders[r], steps[r]);
  }
  t->ledger = ledger_text(loaders[0]);
  for (int64_t r = 0; r < s.ranks; r++) sn_loader_destroy(loaders[r]);
  sn_source_destroy(source);
  assert_int_equal(atomic_load(&live_works), 0); /* nothing read ahead is leaked */
}

static void expect_equal(const trace *a, int64_t from_a, const trace *b, int64_t n_steps) {
  for (int64_t i = 0; i < n_steps; i++) {
    assert_string_equal(a->digests[from_a + i], b->digests[i]);
    assert_int_equal(a->positions[from_a + i], b->positions[i]);
    assert_int_equal(a->samples[from_a + i], b->samples[i]);
    assert_int_equal(a->rejected[from_a + i], b->rejected[i]);
    assert_int_equal(a->quarantined[from_a + i], b->quarantined[i]);
  }
}

static faulty with_faults(void) {
  faulty f = sound();
  f.bad_recording = 16;
  f.bad_window = 3 * WINDOWS_PER_RECORDING + 2;
  f.reject_every = 11;
  return f;
}

enum { STEPS = 24 }; /* more than 4 epochs of 160 windows */

static void test_threads_and_prefetch_change_nothing(void **state) {
  faulty f = with_faults();
  trace reference, other;
  run_steps(&f, PLAIN, STEPS, 0, NULL, &reference);
  static const int64_t THREADS[] = {0, 1, 2, 4}, PREFETCH[] = {1, 2, 7};
  for (size_t i = 0; i < 4; i++) {
    for (size_t j = 0; j < 3; j++) {
      setup s = PLAIN;
      s.threads = THREADS[i];
      s.prefetch = PREFETCH[j];
      faulty g = with_faults();
      run_steps(&g, s, STEPS, 0, NULL, &other);
      expect_equal(&reference, 0, &other, STEPS);
      assert_string_equal(reference.ledger, other.ledger);
      sn_free(other.ledger);
    }
  }
  sn_free(reference.ledger);
}

static void test_two_and_four_ranks_equal_one(void **state) {
  faulty f = with_faults();
  trace reference, other;
  run_steps(&f, PLAIN, STEPS, 0, NULL, &reference);
  for (int64_t ranks = 2; ranks <= 4; ranks += 2) {
    for (int64_t threads = 0; threads <= 2; threads++) {
      setup s = PLAIN;
      s.ranks = ranks;
      s.threads = threads;
      s.prefetch = 3;
      faulty g = with_faults();
      run_steps(&g, s, STEPS, 0, NULL, &other);
      expect_equal(&reference, 0, &other, STEPS);
      assert_string_equal(reference.ledger, other.ledger);
      sn_free(other.ledger);
    }
  }
  sn_free(reference.ledger);
}

static void test_restart_at_every_step(void **state) {
  for (int64_t k = 1; k < STEPS; k++) {
    faulty f = with_faults(), g = with_faults();
    trace reference, before, after;
    run_steps(&f, PLAIN, STEPS, 0, NULL, &reference);
    run_steps(&g, PLAIN, k, 0, NULL, &before);
    setup s = PLAIN;
    s.threads = k % 3;
    s.prefetch = 2;
    run_steps(&g, s, STEPS - k, before.positions[k - 1], before.ledger, &after);
    expect_equal(&reference, 0, &before, k);
    expect_equal(&reference, k, &after, STEPS - k);
    assert_string_equal(reference.ledger, after.ledger);
    sn_free(reference.ledger);
    sn_free(before.ledger);
    sn_free(after.ledger);
  }
}

static void test_every_window_once_an_epoch_and_epochs_differ(void **state) {
  faulty f = sound();
  sn_source *source = faulty_source(&f);
  sn_loader *loader = make_loader(source, PLAIN, 0, 0);
  int64_t n = source->n_windows, seen = 0, epochs = 3;
  int64_t *order = NULL;
  assert_int_equal(sn_alloc(&order, epochs * n + 4096, sizeof *order, "order", NULL), SN_OK);
  while (seen < epochs * n) {
    sn_step *step = NULL;
    assert_int_equal(sn_loader_next(loader, &step, NULL), SN_OK);
    for (int64_t k = 0; k < step->n_packs; k++) {
      const sn_token_batch *b = step->packs[k].batch;
      assert_true(b->n_tokens <= PLAIN.pack_tokens);
      assert_true(b->n_samples <= sn_loader_pack_samples(loader));
      for (int64_t i = 0; i < b->n_samples; i++) {
        order[seen++] = b->recordings[i] * WINDOWS_PER_RECORDING + b->windows[i];
      }
    }
    assert_int_equal(step->position, seen); /* no place is empty here */
    sn_step_destroy(loader, step);
  }
  int64_t same = 0;
  for (int64_t e = 0; e < epochs; e++) {
    uint8_t hit[N_RECORDINGS * WINDOWS_PER_RECORDING] = {0};
    for (int64_t i = 0; i < n; i++) {
      assert_int_equal(hit[order[e * n + i]]++, 0);
      if (e > 0) same += order[e * n + i] == order[(e - 1) * n + i];
    }
  }
  assert_true(same < n / 10);
  assert_true(fabs(sn_loader_epoch(loader, 2 * n) - 2.0) < 1e-12);
  assert_int_equal(sn_loader_pack_slots(loader), 64);
  sn_free(order);
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

/* Fault 22: 16 samples, masks of 3 epochs: equal for any number of workers, different between samples and epochs. */
static void collect_masks(int64_t threads, uint64_t seed, uint8_t out[3][16][8]) {
  sn_synthetic_options o = {
      .n_windows = 16, .patch_size = 4, .tokens_least = 8, .tokens_most = 8, .n_channels = 1, .seed = 1};
  sn_source *source = NULL;
  assert_int_equal(sn_source_create_synthetic(&o, &source, NULL), SN_OK);
  seed_of_masks = seed;
  setup s = PLAIN;
  s.threads = threads;
  s.prefetch = 3;
  s.packs_per_step = 1;
  s.pack_tokens = 32;
  sn_loader *loader = make_loader(source, s, 0, 0);
  for (int64_t place = 0; place < 48;) {
    sn_step *step = NULL;
    assert_int_equal(sn_loader_next(loader, &step, NULL), SN_OK);
    const sn_token_batch *b = step->packs[0].batch;
    const masks *m = step->packs[0].work;
    for (int64_t i = 0; i < b->n_samples; i++, place++) {
      memcpy(out[place / 16][b->windows[i]], m->masked + b->offsets[i], 8);
    }
    sn_step_destroy(loader, step);
  }
  sn_loader_destroy(loader);
  sn_source_destroy(source);
  seed_of_masks = 5;
}

static void test_masks_do_not_depend_on_workers(void **state) {
  static uint8_t a[3][16][8], b[3][16][8];
  collect_masks(0, 5, a);
  static const int64_t WORKERS[] = {0, 1, 4};
  for (size_t w = 0; w < 3; w++) {
    memset(b, 9, sizeof b);
    collect_masks(WORKERS[w], 5, b);
    assert_memory_equal(a, b, sizeof a);
  }
  collect_masks(1, 6, b);
  assert_memory_not_equal(a, b, sizeof a);
  assert_memory_not_equal(a[0], a[1], sizeof a[0]);
  assert_memory_not_equal(a[1], a[2], sizeof a[0]);
  int64_t different = 0;
  for (int i = 1; i < 16; i++) different += memcmp(a[0][0], a[0][i], 8) != 0;
  assert_true(different >= 14);
}

static void test_a_bad_recording_is_quarantined_once(void **state) {
  faulty f = sound();
  f.bad_recording = 16; /* the 17th of 20 */
  trace t;
  run_steps(&f, PLAIN, STEPS, 0, NULL, &t);
  assert_non_null(strstr(t.ledger, "\"path\": \"r16\"") != NULL ? t.ledger : strstr(t.ledger, "\"path\":\"r16\""));
  assert_non_null(strstr(t.ledger, "1234"));
  assert_non_null(strstr(t.ledger, "cut short"));
  /* Read only in the step that found it: never again in the 4 epochs that follow. */
  assert_true(atomic_load(&f.bad_reads) >= 1 && atomic_load(&f.bad_reads) <= 4);
  int64_t empty = 0, places = t.positions[STEPS - 1];
  for (int i = 0; i < STEPS; i++) empty += t.quarantined[i];
  assert_true(empty >= places / 160 * 8 && empty <= (places / 160 + 1) * 8);
  sn_free(t.ledger);
}

/* A single bad window takes its whole recording out from the next step on. */
static void test_a_bad_window_empties_its_recording(void **state) {
  faulty f = sound();
  f.bad_window = 42;
  trace t;
  run_steps(&f, PLAIN, STEPS, 0, NULL, &t);
  int64_t last_epoch_empty = 0;
  for (int i = STEPS / 2; i < STEPS; i++) last_epoch_empty += t.quarantined[i];
  int64_t places = t.positions[STEPS - 1] - t.positions[STEPS / 2 - 1];
  assert_true(last_epoch_empty >= places / 160 * 8);
  assert_true(last_epoch_empty > places / 160 + 1); /* more than the bad window alone */
  sn_free(t.ledger);
}

static void test_strict_mode_and_the_limit(void **state) {
  for (int64_t threads = 0; threads <= 2; threads += 2) {
    faulty f = sound();
    f.bad_recording = 16;
    setup s = PLAIN;
    s.threads = threads;
    s.max_bad_share = 0.0;
    sn_source *source = faulty_source(&f);
    sn_loader *loader = make_loader(source, s, 0, 0);
    sn_status status = SN_OK;
    sn_error err;
    for (int i = 0; i < 40 && status == SN_OK; i++) {
      sn_step *step = NULL;
      status = sn_loader_next(loader, &step, &err);
      sn_step_destroy(loader, step);
    }
    assert_int_equal(status, SN_E_STATE);
    assert_non_null(strstr(err.message, "1 of 20"));
    assert_non_null(strstr(err.message, "r16.dat: byte 1234"));
    assert_int_equal(err.offset, 1234);
    sn_step *step = NULL;
    sn_error again;
    assert_int_equal(sn_loader_next(loader, &step, &again), SN_E_STATE); /* final */
    assert_null(step);
    assert_string_equal(err.message, again.message);
    sn_loader_destroy(loader);
    sn_source_destroy(source);
  }
}

static void test_errors_of_no_recording_stop_the_run(void **state) {
  char first[SN_ERROR_MESSAGE] = "";
  for (int64_t threads = 0; threads <= 4; threads += 2) {
    for (int kind = 0; kind < 2; kind++) {
      faulty f = sound();
      if (kind == 0) {
        f.memory_window = 77;
      } else {
        f.too_long_window = 77;
      }
      setup s = PLAIN;
      s.threads = threads;
      s.prefetch = 3;
      sn_source *source = faulty_source(&f);
      sn_loader *loader = make_loader(source, s, 0, 0);
      sn_status status = SN_OK;
      sn_error err;
      int64_t steps = 0;
      for (; steps < 40 && status == SN_OK; steps++) {
        sn_step *step = NULL;
        status = sn_loader_next(loader, &step, &err);
        sn_step_destroy(loader, step);
      }
      assert_int_equal(status, kind == 0 ? SN_E_MEMORY : SN_E_STATE);
      assert_int_equal(sn_loader_quarantined(loader), 0);
      char text[SN_ERROR_MESSAGE];
      snprintf(text, sizeof text, "%d: %.400s", (int)steps, err.message);
      if (kind == 0 && first[0] == 0) memcpy(first, text, sizeof text);
      if (kind == 0) assert_string_equal(first, text); /* at the same step for any number of threads */
      sn_loader_destroy(loader);
      sn_source_destroy(source);
    }
  }
  assert_int_equal(atomic_load(&live_works), 0);
}

static sn_status failing_collate(void *user, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                                 sn_error *err) {
  return sn_fail(err, SN_E_ARGUMENT, "no mask fits");
}

static void test_an_error_of_collate_stops(void **state) {
  faulty f = sound();
  sn_source *source = faulty_source(&f);
  sn_loader_options o = {.seed = 1,
                         .pack_tokens = 40,
                         .packs_per_step = 1,
                         .n_threads = 1,
                         .prefetch_steps = 2,
                         .n_ranks = 1,
                         .max_bad_share = 1.0,
                         .collate = failing_collate};
  sn_loader *loader = NULL;
  sn_step *step = NULL;
  sn_error err;
  assert_int_equal(sn_loader_create(source, &o, &loader, &err), SN_OK);
  assert_int_equal(sn_loader_next(loader, &step, &err), SN_E_ARGUMENT);
  assert_string_equal(err.message, "no mask fits");
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

static void test_a_step_without_samples_is_delivered(void **state) {
  faulty f = sound();
  f.all_rejected = true;
  trace t;
  run_steps(&f, PLAIN, 3, 0, NULL, &t);
  assert_int_equal(t.samples[0], 0);
  assert_int_equal(t.rejected[0], t.positions[0]);
  assert_int_equal(t.quarantined[0], 0);
  sn_free(t.ledger);
}

static void test_destroy_with_steps_read_ahead(void **state) {
  for (int i = 0; i < 20; i++) {
    faulty f = with_faults();
    sn_source *source = faulty_source(&f);
    setup s = PLAIN;
    s.threads = 1 + i % 4;
    s.prefetch = 8;
    sn_loader *loader = make_loader(source, s, 0, 0);
    sn_step *step = NULL;
    assert_int_equal(sn_loader_next(loader, &step, NULL), SN_OK);
    sn_step_destroy(loader, step);
    sn_loader_destroy(loader);
    sn_source_destroy(source);
    assert_int_equal(atomic_load(&live_works), 0);
  }
}

static void test_options_are_checked(void **state) {
  faulty f = sound();
  sn_source *source = faulty_source(&f);
  sn_loader_options good = {
      .pack_tokens = 40, .packs_per_step = 4, .prefetch_steps = 1, .n_ranks = 1, .max_bad_share = 0.1};
  struct {
    sn_loader_options o;
    const char *field;
  } cases[] = {{good, "pack_tokens"},    {good, "packs_per_step"}, {good, "packs_per_step"}, {good, "n_threads"},
               {good, "prefetch_steps"}, {good, "rank"},           {good, "start_position"}, {good, "max_bad_share"}};
  cases[0].o.pack_tokens = 6;
  cases[1].o.packs_per_step = 0;
  cases[2].o.n_ranks = 3;
  cases[3].o.n_threads = -1;
  cases[4].o.prefetch_steps = 0;
  cases[5].o.rank = 1;
  cases[6].o.start_position = -1;
  cases[7].o.max_bad_share = NAN;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    sn_loader *loader = NULL;
    sn_error err;
    assert_int_equal(sn_loader_create(source, &cases[i].o, &loader, &err), SN_E_ARGUMENT);
    assert_string_equal(err.field, cases[i].field);
    assert_null(loader);
  }
  sn_source_destroy(source);
}

static void test_damaged_ledgers_are_refused(void **state) {
  static const char *const BAD[] = {"{}", "[{\"recording\": 3}]",
                                    "[{\"recording\": 20, \"path\": \"x\", \"place\": 1, \"code\": \"corrupt\", "
                                    "\"offset\": -1, \"line\": -1, \"field\": \"\","
                                    " \"message\": \"m\"}]",
                                    "[{\"recording\": 1, \"path\": \"x\", \"place\": 1, \"code\": \"memory\", "
                                    "\"offset\": -1, \"line\": -1, \"field\": \"\","
                                    " \"message\": \"m\"}]"};
  faulty f = sound();
  sn_source *source = faulty_source(&f);
  sn_loader *loader = make_loader(source, PLAIN, 0, 0);
  for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
    sn_json *json = NULL;
    sn_error err;
    assert_int_equal(sn_json_parse(BAD[i], (int64_t)strlen(BAD[i]), "ledger", &json, &err), SN_OK);
    assert_int_equal(sn_loader_read_ledger(loader, json, &err), SN_E_CORRUPT);
    sn_json_destroy(json);
  }
  assert_int_equal(sn_loader_quarantined(loader), 0);
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

static void test_quarantine_file(void **state) {
  faulty f = sound();
  f.bad_recording = 4;
  sn_source *source = faulty_source(&f);
  sn_loader *loader = make_loader(source, PLAIN, 0, 0);
  for (int i = 0; i < 10; i++) {
    sn_step *step = NULL;
    assert_int_equal(sn_loader_next(loader, &step, NULL), SN_OK);
    sn_step_destroy(loader, step);
  }
  char path[] = "/tmp/sonde-quarantine-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(sn_loader_save_quarantine(loader, path, NULL), SN_OK);
  FILE *file = fopen(path, "r");
  char line[1024];
  assert_non_null(fgets(line, sizeof line, file));
  assert_string_equal(line, "recording\tpath\tcode\tmessage\toffset\tplace\n");
  assert_non_null(fgets(line, sizeof line, file));
  assert_non_null(strstr(line, "4\tr04\tcorrupt\tr04.dat: byte 1234: cut short\t1234\t"));
  assert_null(fgets(line, sizeof line, file));
  fclose(file);
  unlink(path);
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

static void test_synthetic_source(void **state) {
  sn_synthetic_options o = {
      .n_windows = 50, .patch_size = 20, .tokens_least = 7, .tokens_most = 20, .n_channels = 3, .seed = 9};
  sn_source *source = NULL, *other = NULL;
  assert_int_equal(sn_source_create_synthetic(&o, &source, NULL), SN_OK);
  assert_int_equal(source->min_tokens, 9);
  assert_int_equal(source->max_tokens, 18);
  int64_t counts[19] = {0};
  double sum = 0, squares = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < 50; i++) {
    sn_sample *a = NULL, *b = NULL;
    assert_int_equal(source->vtable->read(source, i, 1, 0, 0, &a, NULL), SN_OK);
    assert_int_equal(source->vtable->read(source, i, 1, 0, 0, &b, NULL), SN_OK);
    assert_int_equal(a->n_tokens, source->vtable->nominal_tokens(source, i));
    assert_memory_equal(a->patches, b->patches, (size_t)(a->n_tokens * a->patch_size) * sizeof(float));
    counts[a->n_tokens]++;
    for (int64_t k = 0; k < a->n_tokens * a->patch_size; k++, n++) {
      assert_true(isfinite(a->patches[k]));
      sum += a->patches[k];
      squares += (double)a->patches[k] * a->patches[k];
    }
    sn_sample_destroy(a);
    sn_sample_destroy(b);
  }
  assert_true(counts[9] > 0 && counts[12] > 0 && counts[15] > 0 && counts[18] > 0);
  /* Three sinusoids of unit normal weight: variance 3/2, plus 0.01. */
  assert_true(fabs(squares / (double)n - 1.51) < 0.4 && fabs(sum / (double)n) < 0.2);
  o.seed = 10;
  assert_int_equal(sn_source_create_synthetic(&o, &other, NULL), SN_OK);
  assert_string_not_equal(source->content_hash, other->content_hash);
  sn_source_destroy(source);
  sn_source_destroy(other);
  o.tokens_least = 4;
  o.tokens_most = 5; /* no multiple of 3 */
  assert_int_equal(sn_source_create_synthetic(&o, &source, NULL), SN_E_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads_and_prefetch_change_nothing),
                                     cmocka_unit_test(test_two_and_four_ranks_equal_one),
                                     cmocka_unit_test(test_restart_at_every_step),
                                     cmocka_unit_test(test_every_window_once_an_epoch_and_epochs_differ),
                                     cmocka_unit_test(test_masks_do_not_depend_on_workers),
                                     cmocka_unit_test(test_a_bad_recording_is_quarantined_once),
                                     cmocka_unit_test(test_a_bad_window_empties_its_recording),
                                     cmocka_unit_test(test_strict_mode_and_the_limit),
                                     cmocka_unit_test(test_errors_of_no_recording_stop_the_run),
                                     cmocka_unit_test(test_an_error_of_collate_stops),
                                     cmocka_unit_test(test_a_step_without_samples_is_delivered),
                                     cmocka_unit_test(test_destroy_with_steps_read_ahead),
                                     cmocka_unit_test(test_options_are_checked),
                                     cmocka_unit_test(test_damaged_ledgers_are_refused),
                                     cmocka_unit_test(test_quarantine_file),
                                     cmocka_unit_test(test_synthetic_source)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
