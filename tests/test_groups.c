/* Groups of windows of one recording or subject: who comes with whom, once an epoch, in one pack, whatever threads, ranks and
 * restarts; what is left out; partners across sources; refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fault.h"
#include "core/philox.h"
#include "core/sha256.h"
#include "datasets/groups.h"
#include "datasets/loader.h"
#include "datasets/mixture.h"

#define CHECK(expression)                                                                  \
  do {                                                                                     \
    sn_error check_error_;                                                                 \
    sn_error_clear(&check_error_);                                                         \
    sn_error *fault = &check_error_;                                                       \
    if ((expression) != SN_OK) fail_msg("%s:%d: %s", __FILE__, __LINE__, check_error_.message); \
  } while (0)

/* ---- a source of pieces ---------------------------------------------------------------------------------------------- */

enum { MOST_PIECES = 64, PATCH = 2, MOST_WINDOWS = 2000 };

typedef struct pieces {
  int64_t n, salt;                     /* pieces; told apart from those of another source */
  int64_t windows[MOST_PIECES];
  int64_t recording[MOST_PIECES], subject[MOST_PIECES]; /* subject -1: unknown */
  double stride_s, window_s;
  uint8_t rejected;                    /* every so-manieth window; 0: none */
} pieces;

static int64_t piece_of(const pieces *p, int64_t window, int64_t *number) {
  int64_t i = 0;
  for (; window >= p->windows[i]; i++) window -= p->windows[i];
  *number = window;
  return i;
}

static int64_t total(const pieces *p) {
  int64_t n = 0;
  for (int64_t i = 0; i < p->n; i++) n += p->windows[i];
  return n;
}

static int64_t tokens_of(const sn_source *source, int64_t window) { return 2 + window % 3; }
static int64_t recording_of(const sn_source *source, int64_t window) {
  const pieces *p = source->self;
  int64_t number;
  return p->recording[piece_of(p, window, &number)];
}
static const char *describe(const sn_source *source, int64_t window) {
  static const char *const NAMES[] = {"r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07"};
  return NAMES[recording_of(source, window) % 8];
}

static void stretch_of(const sn_source *source, int64_t i, sn_source_stretch *out) {
  const pieces *p = source->self;
  int64_t first = 0;
  for (int64_t k = 0; k < i; k++) first += p->windows[k];
  const int64_t named[2] = {p->salt, p->recording[i]};
  *out = (sn_source_stretch){.first = first, .n = p->windows[i], .recording_key = sn_hash64(named, sizeof named),
                             .subject_id = p->subject[i] < 0 ? 0 : 1000 + (uint64_t)p->subject[i], .window_s = p->window_s,
                             .stride_s = p->stride_s};
}

static sn_status read_window(sn_source *source, int64_t window, uint64_t seed, uint64_t epoch, int64_t view, sn_sample **out,
                             sn_error *err) {
  const pieces *p = source->self;
  int64_t number;
  const int64_t i = piece_of(p, window, &number);
  if (p->rejected > 0 && window % p->rejected == 0) return sn_fail(err, SN_END, "flat");
  SN_TRY(sn_sample_create(tokens_of(source, window), PATCH, false, out, err));
  sn_sample *s = *out;
  s->sample_id = (uint64_t)(100000 * (p->salt + 1) + window);
  s->subject_id = p->subject[i] < 0 ? 0 : 1000 + (uint64_t)p->subject[i];
  s->recording = p->recording[i];
  s->window = window;
  s->start_s = (double)number * p->stride_s;
  s->patches[0] = (float)view;
  return SN_OK;
}

static void destroy(sn_source *source) { sn_free(source); }

static const sn_source_vtable PIECES = {.name = "pieces", .read = read_window, .nominal_tokens = tokens_of, .recording = recording_of,
                                        .describe = describe, .destroy = destroy, .stretch = stretch_of};
static const sn_source_vtable STRANGERS = {.name = "strangers", .read = read_window, .nominal_tokens = tokens_of,
                                           .recording = recording_of, .describe = describe, .destroy = destroy};

static sn_source *source_of(pieces *p) {
  sn_source *source = NULL;
  CHECK(sn_alloc(&source, 1, sizeof *source, "test source", fault));
  *source = (sn_source){.vtable = &PIECES, .n_windows = total(p), .n_recordings = 200, .patch_size = PATCH, .min_tokens = 2,
                        .max_tokens = 4, .n_channel_ids = 1, .n_stretches = p->n, .self = p};
  return source;
}

/* Recordings of 1 to 12 windows, some of two pieces; three recordings a subject. */
static pieces cohort(int64_t n, int64_t salt) {
  pieces p = {.n = n, .salt = salt, .stride_s = 10, .window_s = 10};
  for (int64_t i = 0; i < n; i++) {
    p.windows[i] = 1 + (i * 7 + salt) % 12;
    p.recording[i] = i - (i % 5 == 4); /* every fifth piece goes on the recording before */
    p.subject[i] = p.recording[i] / 3;
  }
  return p;
}

static sn_groups *groups_of(const sn_source *source, int64_t part, sn_group_options o) {
  sn_groups *g = NULL;
  CHECK(sn_groups_create(source, part, &o, &g, fault));
  return g;
}

static sn_group_options by(sn_group_by unit, int64_t group) {
  return (sn_group_options){.sampling = {.by = unit, .group = group}};
}

/* ---- who comes with whom ------------------------------------------------------------------------------------------------ */

static int64_t unit_of(const sn_source *source, int64_t window, sn_group_by unit) {
  const pieces *p = source->self;
  int64_t number;
  const int64_t i = piece_of(p, window, &number);
  return unit == SN_GROUP_SUBJECT ? p->subject[i] : p->recording[i];
}

/* One epoch, against what is stated: each window once but for a rest of one, groups of one unit. */
static void check_epoch(const sn_source *source, const sn_groups *g, sn_group_by unit, int64_t group, uint64_t wanted, uint8_t *seen) {
  const pieces *p = source->self;
  const sn_groups_report r = sn_groups_get_report(g);
  int64_t in_unit[MOST_PIECES] = {0}, groups_of_unit[MOST_PIECES] = {0}, n_units = 0, n_alone = 0, n_seen = 0, expected = 0, out = 0;
  memset(seen, 0, MOST_WINDOWS);
  for (int64_t k = 0; k < r.n_groups; k++) {
    int64_t windows[SN_MOST_GROUP];
    uint64_t epoch;
    const int64_t n = sn_groups_at(g, 3, (int64_t)wanted * r.n_groups + k, windows, &epoch);
    assert_true(epoch == wanted && n >= 2 && n <= group);
    const int64_t u = unit_of(source, windows[0], unit);
    groups_of_unit[u]++;
    for (int64_t m = 0; m < n; m++) {
      assert_in_range(windows[m], 0, source->n_windows - 1);
      assert_int_equal(unit_of(source, windows[m], unit), u);
      assert_int_equal(seen[windows[m]], 0);
      seen[windows[m]] = 1;
      n_seen++;
    }
  }
  for (int64_t i = 0; i < p->n; i++) in_unit[unit == SN_GROUP_SUBJECT ? p->subject[i] : p->recording[i]] += p->windows[i];
  for (int64_t u = 0; u < MOST_PIECES; u++) {
    const int64_t n = in_unit[u], of_unit = n / group + (n % group >= 2);
    assert_int_equal(groups_of_unit[u], of_unit);
    expected += of_unit;
    out += n % group == 1;
    n_units += of_unit > 0;
    n_alone += n > 0 && of_unit == 0;
  }
  assert_int_equal(r.n_groups, expected);
  assert_int_equal(r.n_left_out, out);
  assert_int_equal(r.n_windows, n_seen);
  assert_int_equal(n_seen + out, source->n_windows);
  assert_int_equal(r.n_units, n_units);
  assert_int_equal(r.n_alone, n_alone);
}

static void test_each_window_once(void **state) {
  static const int64_t GROUPS[] = {2, 3, 4, 7};
  pieces p = cohort(40, 0);
  sn_source *source = source_of(&p);
  static uint8_t seen[MOST_WINDOWS], ever[MOST_WINDOWS];
  for (int unit = SN_GROUP_RECORDING; unit <= SN_GROUP_SUBJECT; unit++)
    for (int k = 0; k < 4; k++) {
      sn_groups *g = groups_of(source, -1, by((sn_group_by)unit, GROUPS[k]));
      memset(ever, 0, sizeof ever);
      for (uint64_t epoch = 0; epoch < 60; epoch++) {
        check_epoch(source, g, (sn_group_by)unit, GROUPS[k], epoch, seen);
        for (int64_t w = 0; w < MOST_WINDOWS; w++) ever[w] |= seen[w];
      }
      /* What one epoch leaves out another brings, but for units of one window. */
      int64_t alone = 0, never = 0;
      for (int64_t w = 0; w < source->n_windows; w++) never += !ever[w];
      alone = sn_groups_get_report(g).n_alone;
      assert_int_equal(never, alone);
      sn_groups_destroy(g);
    }
  sn_source_destroy(source);
}

/* By subject, members come from different recordings as often as chance has it. */
static void test_members_are_drawn_evenly(void **state) {
  pieces p = {.n = 2, .windows = {6, 6}, .recording = {0, 1}, .stride_s = 10, .window_s = 10};
  sn_source *source = source_of(&p);
  sn_groups *g = groups_of(source, -1, by(SN_GROUP_SUBJECT, 2));
  int64_t mixed = 0, pairs[12][12] = {{0}};
  enum { EPOCHS = 2000 };
  for (int64_t k = 0; k < 6 * EPOCHS; k++) {
    int64_t w[SN_MOST_GROUP];
    uint64_t epoch;
    assert_int_equal(sn_groups_at(g, 3, k, w, &epoch), 2);
    mixed += (w[0] < 6) != (w[1] < 6);
    pairs[w[0]][w[1]]++;
  }
  const double share = (double)mixed / (6 * EPOCHS), expected = 6.0 / 11;
  assert_true(fabs(share - expected) < 4 * sqrt(expected * (1 - expected) / (6 * EPOCHS)));
  for (int a = 0; a < 12; a++)
    for (int b = 0; b < 12; b++) /* 12000 over 132 ordered pairs: 91 each */
      if (a != b) assert_true(pairs[a][b] > 91 - 55 && pairs[a][b] < 91 + 55);
  sn_groups_destroy(g);
  sn_source_destroy(source);
}

static void test_neighbours(void **state) {
  pieces p = cohort(40, 0);
  static uint8_t seen[MOST_WINDOWS], ever[MOST_WINDOWS];
  static const double STRIDES[] = {10, 4, 10}, GAPS[] = {0, 3, 15};
  static const int64_t STEPS[] = {1, 4, 3}, GROUPS[] = {2, 2, 3};
  for (int c = 0; c < 3; c++) {
    p.stride_s = STRIDES[c];
    if (c > 0) for (int i = 0; i < 40; i++) p.windows[i] = 8 + i % 13;
    sn_source *source = source_of(&p);
    sn_group_options o = by(SN_GROUP_RECORDING, GROUPS[c]);
    o.sampling.adjacent = true;
    o.min_gap_s = GAPS[c];
    sn_groups *g = groups_of(source, -1, o);
    const sn_groups_report r = sn_groups_get_report(g);
    int64_t n_groups = 0, n_out = 0, never = 0;
    for (int64_t i = 0; i < p.n; i++)
      for (int64_t class = 0; class < STEPS[c]; class++) {
        const int64_t n = (p.windows[i] - class + STEPS[c] - 1) / STEPS[c] > 0 ? (p.windows[i] - class + STEPS[c] - 1) / STEPS[c] : 0;
        n_groups += n / GROUPS[c] + (n % GROUPS[c] >= 2);
        n_out += n % GROUPS[c] == 1;
      }
    assert_int_equal(r.n_groups, n_groups);
    assert_int_equal(r.n_left_out, n_out);
    memset(ever, 0, sizeof ever);
    for (uint64_t e = 0; e < 40; e++) {
      int64_t n_seen = 0;
      memset(seen, 0, sizeof seen);
      for (int64_t k = 0; k < r.n_groups; k++) {
        int64_t w[SN_MOST_GROUP], a, b;
        uint64_t epoch;
        const int64_t n = sn_groups_at(g, 3, (int64_t)e * r.n_groups + k, w, &epoch);
        for (int64_t m = 0; m < n; m++) {
          assert_int_equal(seen[w[m]], 0);
          seen[w[m]] = ever[w[m]] = 1;
          n_seen++;
          if (m == 0) continue;
          assert_int_equal(w[m] - w[m - 1], STEPS[c]); /* the first that leaves the gap, and no farther */
          assert_int_equal(piece_of(&p, w[m], &a), piece_of(&p, w[m - 1], &b));
        }
      }
      assert_int_equal(n_seen, r.n_windows);
    }
    assert_int_equal(r.n_windows + r.n_left_out, source->n_windows);
    for (int64_t w = 0; w < source->n_windows; w++) never += !ever[w];
    assert_true(never <= r.n_left_out / 2 && (c != 0 || never == r.n_alone));
    sn_groups_destroy(g);
    sn_source_destroy(source);
  }
}

/* Any windows of a recording, no two nearer than the gap, all within the lag. */
static void test_gaps_and_lags(void **state) {
  pieces p = {.n = 3, .windows = {97, 41, 12}, .recording = {0, 1, 1}, .stride_s = 5, .window_s = 10};
  static uint8_t seen[MOST_WINDOWS];
  static const double GAPS[] = {0, 2, 20, 0, 2}, LAGS[] = {40, 0, 0, 5, 90};
  sn_source *source = source_of(&p);
  for (int c = 0; c < 5; c++) {
    sn_group_options o = by(SN_GROUP_RECORDING, 3);
    o.min_gap_s = GAPS[c];
    o.max_lag_s = LAGS[c];
    sn_groups *g = groups_of(source, -1, o);
    const sn_groups_report r = sn_groups_get_report(g);
    int64_t farthest = 0;
    for (uint64_t e = 0; e < 20; e++) {
      int64_t n_seen = 0;
      memset(seen, 0, sizeof seen);
      for (int64_t k = 0; k < r.n_groups; k++) {
        int64_t w[SN_MOST_GROUP], a, b;
        uint64_t epoch;
        const int64_t n = sn_groups_at(g, 3, (int64_t)e * r.n_groups + k, w, &epoch);
        assert_in_range(n, 2, 3);
        for (int64_t i = 0; i < n; i++) {
          assert_int_equal(seen[w[i]], 0);
          seen[w[i]] = 1;
          n_seen++;
          for (int64_t j = 0; j < i; j++) {
            const int64_t apart = llabs(w[i] - w[j]);
            assert_int_equal(piece_of(&p, w[i], &a), piece_of(&p, w[j], &b));
            if (GAPS[c] > 0) assert_true((double)apart * 5 >= 10 + GAPS[c]);
            if (LAGS[c] > 0) assert_true((double)apart * 5 <= LAGS[c]);
            if (apart > farthest) farthest = apart;
          }
        }
      }
      assert_int_equal(n_seen, r.n_windows);
      assert_int_equal(r.n_windows + r.n_left_out, source->n_windows);
      assert_true(r.n_windows > 2 * source->n_windows / 3);
    }
    assert_true(LAGS[c] > 0 ? farthest == (int64_t)(LAGS[c] / 5) || GAPS[c] > 0 : farthest > 80);
    sn_groups_destroy(g);
  }
  sn_source_destroy(source);
}

/* ---- one more recording changes no other's groups ------------------------------------------------------------------------- */

/* Sum over the groups of an epoch of a hash of their members that does not know their order: of windows below `limit`. */
static uint64_t fingerprint(const sn_source *source, const sn_group_options *o, int64_t limit) {
  sn_groups *g = groups_of(source, -1, *o);
  const int64_t n_groups = sn_groups_get_report(g).n_groups;
  uint64_t sum = 0;
  for (int64_t k = 2 * n_groups; k < 3 * n_groups; k++) {
    int64_t w[SN_MOST_GROUP];
    uint64_t epoch;
    const int64_t n = sn_groups_at(g, 3, k, w, &epoch);
    if (w[0] < limit) sum += sn_hash64(w, n * (int64_t)sizeof *w);
  }
  sn_groups_destroy(g);
  return sum;
}

static void test_units_do_not_depend_on_each_other(void **state) {
  pieces few = cohort(30, 0), more = cohort(33, 0);
  for (int64_t i = 30; i < 33; i++) more.recording[i] = 60, more.subject[i] = 50;
  sn_source *a = source_of(&few), *b = source_of(&more);
  sn_group_options cases[4] = {by(SN_GROUP_RECORDING, 2), by(SN_GROUP_SUBJECT, 3), by(SN_GROUP_RECORDING, 2), by(SN_GROUP_RECORDING, 2)};
  cases[2].sampling.adjacent = true;
  cases[3].min_gap_s = 5;
  for (int c = 0; c < 4; c++) {
    assert_true(fingerprint(a, &cases[c], a->n_windows) == fingerprint(b, &cases[c], a->n_windows));
    assert_true(fingerprint(a, &cases[c], a->n_windows) != 0);
  }
  sn_source_destroy(a);
  sn_source_destroy(b);
}

/* Of each sample, how many others of the batch are of the same unit: by NONE the same window (views of it), else the same
 * recording or subject (unknown ones are of none). counts (n_samples) [out]. */
static bool same_unit(const sn_token_batch *b, sn_group_by by, int64_t i, int64_t j) {
  if (by == SN_GROUP_NONE) return b->sample_ids[i] == b->sample_ids[j];
  if (by == SN_GROUP_RECORDING) return b->recordings[i] >= 0 && b->recordings[i] == b->recordings[j];
  return b->subject_ids[i] != 0 && b->subject_ids[i] == b->subject_ids[j];
}

static void count_positives(const sn_token_batch *batch, sn_group_by by, int64_t *counts) {
  for (int64_t i = 0; i < batch->n_samples; i++) {
    counts[i] = 0;
    for (int64_t j = 0; j < batch->n_samples; j++) counts[i] += j != i && same_unit(batch, by, i, j);
  }
}

/* ---- through the loader ----------------------------------------------------------------------------------------------------- */

typedef struct course {
  int64_t position, n_samples, n_rejected, n_packs, n_whole; /* n_whole: samples with a positive in their pack */
  char digest[65];
} course;

static course run(sn_source *source, sn_sampling sampling, int64_t threads, int ranks, int64_t from, int64_t n_steps) {
  sn_loader *loaders[2];
  course c = {0};
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  for (int r = 0; r < ranks; r++) {
    const sn_loader_options o = {.seed = 3, .pack_tokens = 50, .packs_per_step = 2, .n_threads = threads, .prefetch_steps = 3,
                                 .rank = r, .n_ranks = ranks, .sampling = sampling, .start_position = from, .max_bad_share = 0.5};
    CHECK(sn_loader_create(source, &o, &loaders[r], fault));
  }
  for (int64_t i = 0; i < n_steps; i++) {
    sn_step *steps[2];
    for (int r = 0; r < ranks; r++) CHECK(sn_loader_next(loaders[r], &steps[r], fault));
    for (int k = 0; k < 2; k++) {
      const sn_token_batch *b = steps[k % ranks]->packs[k / ranks].batch;
      int64_t counts[128];
      assert_true(b->n_samples <= 128 && b->n_tokens <= 50 && b->n_samples <= sn_loader_pack_samples(loaders[0]));
      count_positives(b, sampling.by, counts);
      for (int64_t s = 0; s < b->n_samples; s++) c.n_whole += counts[s] > 0;
      sn_sha256_update(&hash, b->sample_ids, b->n_samples * 8);
      sn_sha256_update(&hash, b->patches, b->n_tokens * PATCH * 4);
      c.n_packs++;
    }
    c.position = steps[0]->position;
    for (int r = 0; r < ranks; r++) {
      c.n_samples += steps[r]->n_samples;
      c.n_rejected += steps[r]->n_rejected;
      sn_step_destroy(loaders[r], steps[r]);
    }
  }
  for (int r = 0; r < ranks; r++) sn_loader_destroy(loaders[r]);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, c.digest);
  return c;
}

static void test_every_sample_has_its_positive(void **state) {
  static const sn_sampling CASES[] = {{.by = SN_GROUP_RECORDING, .group = 2}, {.by = SN_GROUP_SUBJECT, .group = 4},
                                      {.by = SN_GROUP_RECORDING, .group = 3, .adjacent = true},
                                      {.by = SN_GROUP_RECORDING, .group = 2, .n_views = 2}};
  pieces p = cohort(40, 0);
  sn_source *source = source_of(&p);
  for (int i = 0; i < 4; i++) {
    const course a = run(source, CASES[i], 0, 1, 0, 30), b = run(source, CASES[i], 2, 1, 0, 30), c = run(source, CASES[i], 1, 2, 0, 30);
    assert_int_equal(a.n_whole, a.n_samples);
    assert_true(a.n_samples > 300 && a.n_rejected == 0);
    assert_string_equal(a.digest, b.digest);
    assert_string_equal(a.digest, c.digest);
    assert_int_equal(a.position % CASES[i].group, 0);
    const course half = run(source, CASES[i], 0, 1, 0, 11), rest = run(source, CASES[i], 2, 2, half.position, 19),
                 again = run(source, CASES[i], 0, 1, half.position, 19);
    assert_int_equal(rest.position, a.position);
    assert_string_equal(rest.digest, again.digest);
    assert_int_equal(half.n_samples + rest.n_samples, a.n_samples);
  }
  /* Without groups the positives are a matter of chance. */
  const course chance = run(source, (sn_sampling){.by = SN_GROUP_NONE}, 0, 1, 0, 30);
  assert_int_equal(chance.n_whole, 0); /* by NONE: other views, of which there are none */
  const course views = run(source, (sn_sampling){.n_views = 2}, 0, 1, 0, 30);
  assert_int_equal(views.n_whole, views.n_samples);
  /* A rejected window leaves its place empty and moves nobody. */
  pieces gaps = p;
  gaps.rejected = 6;
  sn_source *other = source_of(&gaps);
  const course all = run(source, CASES[1], 0, 1, 0, 30), fewer = run(other, CASES[1], 0, 1, 0, 30);
  assert_int_equal(all.position, fewer.position);
  assert_true(fewer.n_rejected > 20 && fewer.n_samples + fewer.n_rejected == all.n_samples);
  sn_source_destroy(other);
  sn_source_destroy(source);
}

static void test_the_report(void **state) {
  pieces p = {.n = 4, .windows = {5, 2, 1, 4}, .recording = {0, 1, 2, 3}, .subject = {0, 0, 1, 2}, .stride_s = 10, .window_s = 10};
  sn_source *source = source_of(&p);
  const sn_loader_options o = {.pack_tokens = 200, .packs_per_step = 1, .prefetch_steps = 1, .n_ranks = 1,
                               .sampling = {.by = SN_GROUP_SUBJECT, .group = 3}};
  sn_loader *loader = NULL;
  sn_loader_groups g;
  CHECK(sn_loader_create(source, &o, &loader, fault));
  CHECK(sn_loader_describe_groups(loader, 0, &g, fault));
  /* Subject 0: 7 windows, two groups and one left out; subject 1: alone; subject 2: 4, one group and one left out. */
  assert_int_equal(g.n_groups, 3);
  assert_int_equal(g.n_windows, 9);
  assert_int_equal(g.n_left_out, 3);
  assert_int_equal(g.n_units, 2);
  assert_int_equal(g.n_alone, 1);
  assert_int_equal(g.step_units, 2); /* a step holds many epochs of so few */
  assert_true(g.step_windows >= 50);
  assert_true(fabs(sn_loader_epoch(loader, 18) - 2) < 1e-12);
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

/* ---- several sources ----------------------------------------------------------------------------------------------------------- */

static sn_source *mix_of(pieces *a, pieces *b, double share) {
  const sn_mixture_input inputs[2] = {{"a", source_of(a), share}, {"b", source_of(b), 1 - share}};
  sn_source *source = NULL;
  CHECK(sn_source_create_mixture(inputs, 2, 1, &source, fault));
  return source;
}

static void test_groups_of_a_mixture(void **state) {
  pieces a = cohort(30, 0), b = cohort(40, 1);
  sn_source *source = mix_of(&a, &b, 0.3);
  const sn_sampling s = {.by = SN_GROUP_RECORDING, .group = 3};
  const course one = run(source, s, 0, 1, 0, 40), two = run(source, s, 2, 2, 0, 40), half = run(source, s, 0, 1, 0, 10),
               rest = run(source, s, 1, 1, half.position, 30), again = run(source, s, 0, 2, half.position, 30);
  assert_int_equal(one.n_whole, one.n_samples);
  assert_string_equal(one.digest, two.digest);
  assert_string_equal(rest.digest, again.digest);
  assert_int_equal(rest.position, one.position);
  const sn_loader_options o = {.seed = 3, .pack_tokens = 50, .packs_per_step = 2, .prefetch_steps = 1, .n_ranks = 1, .sampling = s};
  sn_loader *loader = NULL;
  int64_t tokens[2] = {0};
  CHECK(sn_loader_create(source, &o, &loader, fault));
  for (int i = 0; i < 40; i++) {
    sn_step *step;
    CHECK(sn_loader_next(loader, &step, fault));
    for (int k = 0; k < 2; k++)
      for (int64_t j = 0; j < step->packs[k].batch->n_samples; j++)
        tokens[step->packs[k].batch->sources[j]] += step->packs[k].batch->offsets[j + 1] - step->packs[k].batch->offsets[j];
    sn_step_destroy(loader, step);
    assert_true(fabs((double)tokens[0] - 0.3 * (double)(tokens[0] + tokens[1])) <= 12); /* one group */
  }
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

/* Subjects of both, of one alone, and of different numbers of windows. */
static void test_partners(void **state) {
  pieces a = {.n = 5, .salt = 1, .windows = {4, 3, 2, 5, 1}, .recording = {0, 1, 2, 3, 4}, .subject = {0, 0, 1, 2, 3}, .stride_s = 10, .window_s = 10};
  pieces b = {.n = 4, .salt = 2, .windows = {3, 2, 6, 1}, .recording = {0, 1, 2, 3}, .subject = {0, 1, 4, 3}, .stride_s = 10, .window_s = 10};
  sn_source *source = mix_of(&a, &b, 0.5);
  sn_group_options o = by(SN_GROUP_SUBJECT, 0);
  o.sampling.partners = true;
  /* Subject 0: 7 and 3 windows; 1: 2 and 2; 2: 5 and none; 3: 1 and 1; 4: none and 6. */
  for (int timed = 0; timed < 2; timed++) {
    o.sampling.adjacent = timed == 1;
    sn_groups *g = groups_of(source, -1, o);
    const sn_groups_report r = sn_groups_get_report(g);
    uint8_t ever[32] = {0};
    assert_int_equal(r.n_groups, 3 + 2 + 1);
    assert_int_equal(r.n_windows, 12);
    assert_int_equal(r.n_left_out, 4 + 5 + 6);
    assert_int_equal(r.n_units, 3);
    assert_int_equal(r.n_alone, 2);
    for (uint64_t e = 0; e < 30; e++) {
      uint8_t seen[32] = {0};
      for (int64_t k = 0; k < 6; k++) {
        int64_t w[SN_MOST_GROUP], x, y;
        uint64_t epoch;
        assert_int_equal(sn_groups_at(g, 3, (int64_t)e * 6 + k, w, &epoch), 2);
        assert_true(w[0] < 15 && w[1] >= 15 && w[1] < 27);
        assert_int_equal(a.subject[piece_of(&a, w[0], &x)], b.subject[piece_of(&b, w[1] - 15, &y)]);
        if (timed) assert_int_equal(x, y);
        assert_true(!seen[w[0]] && !seen[w[1]]);
        seen[w[0]] = seen[w[1]] = ever[w[0]] = ever[w[1]] = 1;
      }
    }
    int64_t n_ever = 0;
    for (int i = 0; i < 32; i++) n_ever += ever[i];
    assert_int_equal(n_ever, timed ? 12 : 16); /* the surplus of subject 0 has its turn */
    sn_groups_destroy(g);
  }
  const sn_sampling s = {.by = SN_GROUP_SUBJECT, .partners = true, .n_views = 1};
  const course one = run(source, s, 0, 1, 0, 20), two = run(source, s, 2, 2, 0, 20);
  assert_string_equal(one.digest, two.digest);
  assert_int_equal(one.n_whole, one.n_samples);
  /* A partner that cannot be read is absent, and the other one comes. */
  b.rejected = 2;
  const course fewer = run(source, s, 0, 1, 0, 20);
  assert_int_equal(fewer.position, one.position);
  assert_int_equal(fewer.n_samples + fewer.n_rejected, one.n_samples);
  assert_true(fewer.n_rejected > 0 && fewer.n_whole < fewer.n_samples);
  sn_source_destroy(source);
}

/* ---- refusals ---------------------------------------------------------------------------------------------------------------------- */

static void expect_refused(sn_source *source, sn_group_options o, sn_status status, const char *field, const char *text) {
  sn_groups *g = NULL;
  sn_error err;
  sn_error_clear(&err);
  assert_int_equal(sn_groups_create(source, -1, &o, &g, &err), status);
  assert_null(g);
  if (field != NULL) assert_string_equal(err.field, field);
  if (strstr(err.message, text) == NULL) fail_msg("'%s' is not in '%s'", text, err.message);
}

static void test_refusals(void **state) {
  pieces p = cohort(40, 0), alone = {.n = 2, .windows = {1, 1}, .recording = {0, 1}, .subject = {0, 1}, .stride_s = 10, .window_s = 10};
  sn_source *source = source_of(&p), *single = source_of(&alone);
  sn_group_options o = by(SN_GROUP_SUBJECT, 2);
  o.min_gap_s = 1;
  expect_refused(source, o, SN_E_ARGUMENT, "sampler.min_gap", "within one recording");
  o = by(SN_GROUP_RECORDING, 2);
  o.sampling.adjacent = true;
  o.max_lag_s = 9;
  expect_refused(source, o, SN_E_ARGUMENT, "sampler.max_lag", "10 s apart");
  o = by(SN_GROUP_RECORDING, 2);
  o.min_gap_s = 100;
  o.max_lag_s = 100;
  expect_refused(source, o, SN_E_ARGUMENT, "sampler.max_lag", "110 s apart");
  o = by(SN_GROUP_RECORDING, 2);
  o.min_gap_s = 1e9;
  expect_refused(source, o, SN_E_ARGUMENT, "group", "no two windows");
  expect_refused(source, by(SN_GROUP_RECORDING, 1), SN_E_ARGUMENT, "group", "2 .. 64");
  expect_refused(source, by(SN_GROUP_NONE, 2), SN_E_ARGUMENT, "by", "recording");
  expect_refused(single, by(SN_GROUP_SUBJECT, 2), SN_E_ARGUMENT, "group", "no subject with two");
  o = by(SN_GROUP_SUBJECT, 2);
  o.sampling.partners = true;
  expect_refused(source, o, SN_E_ARGUMENT, "partners", "several sources");
  p.subject[12] = -1; /* of recording 12 */
  expect_refused(source, by(SN_GROUP_SUBJECT, 2), SN_E_ARGUMENT, "data.subject", "r04");
  expect_refused(source, by(SN_GROUP_SUBJECT, 2), SN_E_ARGUMENT, "data.subject", "by recording do not");
  sn_groups_destroy(groups_of(source, -1, by(SN_GROUP_RECORDING, 2)));
  source->vtable = &STRANGERS;
  expect_refused(source, by(SN_GROUP_RECORDING, 2), SN_E_UNSUPPORTED, NULL, "strangers");
  source->vtable = &PIECES;
  /* The loader's own. */
  sn_loader_options lo = {.pack_tokens = 11, .packs_per_step = 1, .prefetch_steps = 1, .n_ranks = 1,
                          .sampling = {.by = SN_GROUP_RECORDING, .group = 3}};
  sn_loader *loader = NULL;
  sn_error err;
  assert_int_equal(sn_loader_create(source, &lo, &loader, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "pack_tokens");
  assert_non_null(strstr(err.message, "groups of 3"));
  lo.pack_tokens = 12;
  lo.start_position = 4; /* of a run with other groups */
  CHECK(sn_loader_create(source, &lo, &loader, fault));
  sn_step *step = NULL;
  assert_int_equal(sn_loader_next(loader, &step, &err), SN_E_STATE);
  sn_loader_destroy(loader);
  lo = (sn_loader_options){.pack_tokens = 12, .packs_per_step = 1, .prefetch_steps = 1, .n_ranks = 1, .min_gap_s = 3};
  assert_int_equal(sn_loader_create(source, &lo, &loader, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "sampler.min_gap");
  sn_source_destroy(source);
  sn_source_destroy(single);
}

static void test_memory(void **state) {
  pieces p = cohort(40, 0);
  sn_source *source = source_of(&p);
  const sn_loader_options o = {.pack_tokens = 50, .packs_per_step = 1, .prefetch_steps = 1, .n_ranks = 1,
                               .sampling = {.by = SN_GROUP_SUBJECT, .group = 3}};
  for (fault_begin(); fault_next();) {
    sn_loader *loader = NULL;
    sn_loader_groups g;
    sn_status status = sn_loader_create(source, &o, &loader, NULL);
    if (status == SN_OK) status = sn_loader_describe_groups(loader, 0, &g, NULL);
    fault_check(status);
    sn_loader_destroy(loader);
  }
  sn_source_destroy(source);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_each_window_once),
      cmocka_unit_test(test_members_are_drawn_evenly),
      cmocka_unit_test(test_neighbours),
      cmocka_unit_test(test_gaps_and_lags),
      cmocka_unit_test(test_units_do_not_depend_on_each_other),
      cmocka_unit_test(test_every_sample_has_its_positive),
      cmocka_unit_test(test_the_report),
      cmocka_unit_test(test_groups_of_a_mixture),
      cmocka_unit_test(test_partners),
      cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
