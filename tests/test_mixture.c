/* Mixtures of sources: shares of tokens, order by thread, rank and restart, identities, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fault.h"
#include "core/alloc.h"
#include "core/sha256.h"
#include "datasets/loader.h"
#include "datasets/mixture.h"

enum { N_SOURCES = 3 };
static const char *const NAMES[N_SOURCES] = {"short", "long", "mixed"};

static sn_source *synthetic(int64_t windows, int64_t least, int64_t most, int64_t patch, uint64_t seed) {
  const sn_synthetic_options o = {.n_windows = windows, .patch_size = patch, .tokens_least = least, .tokens_most = most,
                                  .n_channels = 1, .seed = seed};
  sn_source *source = NULL;
  assert_int_equal(sn_source_create_synthetic(&o, &source, NULL), SN_OK);
  return source;
}

/* Windows of 8 tokens, of 40, and of 5 to 35. */
static sn_source *mixture(const double *shares, double exponent) {
  sn_mixture_input inputs[N_SOURCES] = {{NAMES[0], synthetic(90, 8, 8, 6, 1), shares[0]},
                                        {NAMES[1], synthetic(37, 40, 40, 6, 2), shares[1]},
                                        {NAMES[2], synthetic(200, 5, 35, 6, 3), shares[2]}};
  sn_source *source = NULL;
  sn_error err;
  if (sn_source_create_mixture(inputs, N_SOURCES, exponent, &source, &err) != SN_OK) fail_msg("%s", err.message);
  return source;
}

static sn_loader *loader_of(sn_source *source, int64_t threads, int rank, int n_ranks, int64_t position) {
  const sn_loader_options o = {.seed = 5, .pack_tokens = 200, .packs_per_step = 4, .n_threads = threads, .prefetch_steps = 3,
                               .rank = rank, .n_ranks = n_ranks, .start_position = position};
  sn_loader *loader = NULL;
  assert_int_equal(sn_loader_create(source, &o, &loader, NULL), SN_OK);
  return loader;
}

static sn_step *next(sn_loader *loader) {
  sn_step *step = NULL;
  sn_error err;
  if (sn_loader_next(loader, &step, &err) != SN_OK) fail_msg("%s", err.message);
  return step;
}

static int64_t most_of(const sn_source *source) { return source->max_tokens; }

static void test_shares_are_of_tokens(void **state) {
  const double shares[N_SOURCES] = {0.2, 0.3, 0.5};
  sn_source *source = mixture(shares, 1);
  sn_loader *loader = loader_of(source, 0, 0, 1, 0);
  int64_t tokens[N_SOURCES] = {0}, samples[N_SOURCES] = {0}, all = 0, n_samples = 0;
  for (int k = 0; k < 100; k++) {
    sn_step *step = next(loader);
    for (int64_t p = 0; p < step->n_packs; p++) {
      const sn_token_batch *b = step->packs[p].batch;
      for (int64_t s = 0; s < b->n_samples; s++) {
        const int64_t n = b->offsets[s + 1] - b->offsets[s];
        assert_in_range(b->sources[s], 0, N_SOURCES - 1);
        if (b->sources[s] == 0) assert_int_equal(n, 8);
        if (b->sources[s] == 1) assert_int_equal(n, 40);
        tokens[b->sources[s]] += n;
        samples[b->sources[s]]++;
        all += n;
        n_samples++;
      }
    }
    sn_step_destroy(loader, step);
    /* The bound of loader_plan.h, at every step and not only in the end. */
    for (int i = 0; i < N_SOURCES; i++) {
      const double off = (double)tokens[i] - shares[i] * (double)all;
      assert_true(off <= (double)most_of(source));
      assert_true(off >= -shares[i] * (N_SOURCES - 1) * (double)most_of(source));
    }
  }
  assert_true(all > 50000);
  /* Counted in windows the shares are others: 0.2/8 : 0.3/40 : 0.5/20. */
  assert_true((double)samples[0] / (double)n_samples > 0.4);
  assert_true((double)samples[1] / (double)n_samples < 0.2);
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

static void test_shares_left_to_the_data(void **state) {
  const double none[N_SOURCES] = {0, 0, 0}, one[N_SOURCES] = {0, 0.6, 0}, relative[N_SOURCES] = {1, 2, 5};
  sn_source *source = mixture(none, 1);
  int64_t sum = 0;
  for (int i = 0; i < N_SOURCES; i++) sum += source->parts[i].tokens;
  assert_int_equal(source->parts[0].tokens, 90 * 8);
  assert_int_equal(source->parts[1].tokens, 37 * 40);
  assert_int_equal(sum, source->total_tokens);
  for (int i = 0; i < N_SOURCES; i++)
    assert_true(fabs(source->parts[i].share - (double)source->parts[i].tokens / (double)sum) < 1e-12);
  sn_source_destroy(source);
  source = mixture(none, 0);
  for (int i = 0; i < N_SOURCES; i++) assert_true(fabs(source->parts[i].share - 1.0 / 3) < 1e-12);
  sn_source_destroy(source);
  source = mixture(none, 0.5);
  const double roots = sqrt((double)source->parts[0].tokens) / sqrt((double)source->parts[1].tokens);
  assert_true(fabs(source->parts[0].share / source->parts[1].share - roots) < 1e-12);
  sn_source_destroy(source);
  source = mixture(one, 1);
  assert_true(source->parts[1].share == 0.6);
  assert_true(fabs(source->parts[0].share / source->parts[2].share -
                   (double)source->parts[0].tokens / (double)source->parts[2].tokens) < 1e-12);
  assert_true(fabs(source->parts[0].share + source->parts[2].share - 0.4) < 1e-12);
  sn_source_destroy(source);
  source = mixture(relative, 1);
  assert_true(fabs(source->parts[2].share - 0.625) < 1e-12);
  sn_source_destroy(source);
}

/* Each source's windows once per pass over it. */
static void test_every_window_once_a_pass(void **state) {
  const double shares[N_SOURCES] = {0.2, 0.3, 0.5};
  sn_source *source = mixture(shares, 1);
  sn_loader *loader = loader_of(source, 0, 0, 1, 0);
  int64_t seen[400] = {0}, taken[N_SOURCES] = {0};
  for (int k = 0; k < 60; k++) {
    sn_step *step = next(loader);
    for (int64_t p = 0; p < step->n_packs; p++) {
      const sn_token_batch *b = step->packs[p].batch;
      for (int64_t s = 0; s < b->n_samples; s++) {
        const sn_source_part *part = &source->parts[b->sources[s]];
        const int64_t window = part->first + b->windows[s]; /* synthetic windows are of one recording */
        assert_in_range(b->windows[s], 0, part->n_windows - 1);
        seen[window]++;
        assert_int_equal(seen[window], taken[b->sources[s]]++ / part->n_windows + 1);
      }
    }
    sn_step_destroy(loader, step);
  }
  for (int i = 0; i < N_SOURCES; i++) assert_true(taken[i] > source->parts[i].n_windows);
  sn_loader_destroy(loader);
  sn_source_destroy(source);
}

/* Digest of one pack: who, from where, which values. */
static void digest_of(const sn_token_batch *b, char hex[65]) {
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  sn_sha256_update(&hash, b->sample_ids, b->n_samples * (int64_t)sizeof *b->sample_ids);
  sn_sha256_update(&hash, b->sources, b->n_samples * (int64_t)sizeof *b->sources);
  sn_sha256_update(&hash, b->patches, b->n_tokens * b->patch_size * (int64_t)sizeof *b->patches);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, hex);
}

enum { STEPS = 12, PACKS = 4 };

static void record(sn_source *source, int64_t threads, int rank, int n_ranks, int64_t first_step, int64_t position,
                   char digests[STEPS][PACKS][65], int64_t *positions) {
  sn_loader *loader = loader_of(source, threads, rank, n_ranks, position);
  for (int64_t k = first_step; k < STEPS; k++) {
    sn_step *step = next(loader);
    assert_int_equal(step->n_packs, PACKS / n_ranks);
    for (int64_t p = 0; p < step->n_packs; p++) digest_of(step->packs[p].batch, digests[k][rank + p * n_ranks]);
    if (positions != NULL) positions[k] = step->position;
    sn_step_destroy(loader, step);
  }
  sn_loader_destroy(loader);
}

static void test_threads_ranks_and_restart(void **state) {
  const double shares[N_SOURCES] = {3, 1, 2};
  static char expected[STEPS][PACKS][65], found[STEPS][PACKS][65];
  int64_t positions[STEPS], again[STEPS];
  sn_source *source = mixture(shares, 1);
  record(source, 0, 0, 1, 0, 0, expected, positions);
  for (int64_t threads = 1; threads <= 4; threads += 3) {
    memset(found, 0, sizeof found);
    record(source, threads, 0, 1, 0, 0, found, NULL);
    assert_memory_equal(found, expected, sizeof found);
  }
  memset(found, 0, sizeof found);
  for (int rank = 0; rank < 2; rank++) record(source, 2, rank, 2, 0, 0, found, NULL);
  assert_memory_equal(found, expected, sizeof found);
  for (int64_t k = 1; k < STEPS; k += 4) { /* from a position alone */
    memset(found, 0, sizeof found);
    record(source, 2, 0, 1, k, positions[k - 1], found, again);
    assert_memory_equal(found[k], expected[k], sizeof expected[0] * (size_t)(STEPS - k));
    assert_int_equal(again[STEPS - 1], positions[STEPS - 1]);
  }
  sn_source_destroy(source);
}

/* A source's place in the list and its neighbours change nothing of its own order. */
static void test_order_is_of_the_name(void **state) {
  int64_t first[2][40];
  for (int turn = 0; turn < 2; turn++) {
    sn_mixture_input inputs[2];
    inputs[turn] = (sn_mixture_input){"a", synthetic(40, 8, 8, 6, 1), 1};
    inputs[1 - turn] = (sn_mixture_input){"b", synthetic(40 + 30 * turn, 8, 8, 6, 2), 1};
    sn_source *source = NULL;
    assert_int_equal(sn_source_create_mixture(inputs, 2, 1, &source, NULL), SN_OK);
    sn_loader *loader = loader_of(source, 0, 0, 1, 0);
    int64_t n = 0;
    while (n < 40) {
      sn_step *step = next(loader);
      for (int64_t p = 0; p < step->n_packs; p++) {
        const sn_token_batch *b = step->packs[p].batch;
        for (int64_t s = 0; s < b->n_samples; s++)
          if (b->sources[s] == turn && n < 40) first[turn][n++] = b->windows[s];
      }
      sn_step_destroy(loader, step);
    }
    sn_loader_destroy(loader);
    sn_source_destroy(source);
  }
  assert_memory_equal(first[0], first[1], sizeof first[0]);
}

static void test_hash_knows_shares(void **state) {
  const double a[N_SOURCES] = {1, 1, 1}, b[N_SOURCES] = {1, 1, 1.5};
  sn_source *x = mixture(a, 1), *y = mixture(a, 1), *z = mixture(b, 1);
  assert_string_equal(x->content_hash, y->content_hash);
  assert_string_not_equal(x->content_hash, z->content_hash);
  sn_source_destroy(x);
  sn_source_destroy(y);
  sn_source_destroy(z);
}

static void refused(const sn_mixture_input *inputs, int64_t n, const char *what) {
  sn_source *source = NULL;
  sn_error err;
  sn_error_clear(&err);
  assert_int_equal(sn_source_create_mixture(inputs, n, 1, &source, &err), SN_E_ARGUMENT);
  if (strstr(err.message, what) == NULL) fail_msg("'%s' does not say '%s'", err.message, what);
}

static void test_refusals(void **state) {
#define TWO(name_a, share_a, patch_a, name_b, share_b, patch_b) \
  (sn_mixture_input[]){{name_a, synthetic(5, 8, 8, patch_a, 1), share_a}, {name_b, synthetic(5, 8, 8, patch_b, 2), share_b}}
  refused(TWO("a", 1, 6, "a", 1, 6), 2, "two sources are called a");
  refused(TWO("a", -1, 6, "b", 1, 6), 2, "a share of -1");
  refused(TWO("a", NAN, 6, "b", 1, 6), 2, "source a");
  refused(TWO("a", 1.5, 6, "b", 0, 6), 2, "leaves nothing to b");
  refused(TWO("a", 1, 6, "b", 1, 7), 2, "patches of 6 values");
  refused(TWO("a", 1, 6, "a name that is far longer than any name of a data set of this engine may be", 1, 6), 2, "at most 63");
  refused(NULL, 0, "1 to 64");
#undef TWO
}

/* Whatever fails, the sources are taken (AddressSanitizer sees the others). */
static void test_allocation_failures(void **state) {
  for (fault_begin(); fault_next();) {
    sn_source *source = NULL;
    sn_error err;
    const int64_t left = fault_state.left;
    fault_off();
    const sn_mixture_input inputs[2] = {{"a", synthetic(5, 8, 8, 6, 1), 1}, {"b", synthetic(5, 8, 8, 6, 2), 1}};
    fault_state.left = left;
    const sn_status status = sn_source_create_mixture(inputs, 2, 1, &source, &err);
    fault_check(status);
    if (status == SN_OK) sn_source_destroy(source);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_shares_are_of_tokens),  cmocka_unit_test(test_shares_left_to_the_data),
      cmocka_unit_test(test_every_window_once_a_pass), cmocka_unit_test(test_threads_ranks_and_restart),
      cmocka_unit_test(test_order_is_of_the_name),  cmocka_unit_test(test_hash_knows_shares),
      cmocka_unit_test(test_refusals), cmocka_unit_test(test_allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
