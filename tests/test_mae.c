/* Masks and the masked autoencoder's collate step: exact counts, targets, flat and partly valid patches, the audit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "engine/model.h"
#include "engine/train_config.h"
#include "objectives/mae.h"
#include "objectives/masks/mask.h"

static void test_counts(void **state) {
  const sn_mask_options exact = {.ratio = 0.75};
  sn_mask_options o = {.ratio = 0.9};
  assert_int_equal(sn_mask_count(50, &exact), 38); /* 37.5: half up */
  assert_int_equal(sn_mask_count(196, &exact), 147);
  assert_int_equal(sn_mask_count(2, &exact), 1); /* at least one visible */
  assert_int_equal(sn_mask_count(1, &exact), 0);
  assert_int_equal(sn_mask_count(0, &exact), 0);
  assert_int_equal(sn_mask_count(100, &o), 90);
  /* The compat name repeats the reference's expression in double: 9 of 100 kept, not 10; none of 10. */
  o.floor_kept = true;
  assert_int_equal(100 - sn_mask_count(100, &o), 9);
  assert_int_equal(1000 - sn_mask_count(1000, &o), 99);
  assert_int_equal(sn_mask_count(10, &o), 0);
  o.ratio = 0.8;
  assert_int_equal(125 - sn_mask_count(125, &o), 24);
  o.ratio = 0.75;
  assert_int_equal(196 - sn_mask_count(196, &o), 49);
}

enum { N = 60, CHANNELS = 3 };

static sn_mask_tokens make_tokens(float *coordinates, int32_t *channels, int32_t *positions) {
  for (int i = 0; i < N; i++) {
    channels[i] = i / (N / CHANNELS);
    positions[i] = i % (N / CHANNELS);
    for (int k = 0; k < 4; k++) coordinates[4 * i + k] = k == 3 ? (float)positions[i] : 0;
  }
  return (sn_mask_tokens){.n = N, .coordinates = coordinates, .channels = channels, .positions = positions};
}

/* Counts are exact for every draw, every token is hidden about as often as the ratio says, draws differ and repeat. */
static void check_sampler(sn_mask_sampler sampler, sn_mask_scope scope, bool uniform) {
  float coordinates[4 * N];
  int32_t channels[N], positions[N];
  uint8_t masked[N], again[N], first[N];
  int64_t hits[N] = {0}, n;
  enum { DRAWS = 4000 };
  sn_mask_tokens tokens = make_tokens(coordinates, channels, positions);
  const sn_mask_options options = {.ratio = 0.6, .scope = scope};
  bool differs = false;
  for (int d = 0; d < DRAWS; d++) {
    sn_random random = sn_random_at(7, SN_PURPOSE_MASK, 1, (uint64_t)d), copy = random;
    assert_int_equal(sampler(&tokens, &options, &random, masked, &n, NULL), SN_OK);
    assert_int_equal(sampler(&tokens, &options, &copy, again, &n, NULL), SN_OK);
    assert_memory_equal(masked, again, N);
    if (d == 0) memcpy(first, masked, N);
    differs = differs || memcmp(first, masked, N) != 0;
    int64_t total = 0, per_channel[CHANNELS] = {0};
    for (int i = 0; i < N; i++) {
      total += masked[i];
      per_channel[channels[i]] += masked[i];
      hits[i] += masked[i];
    }
    assert_int_equal(n, 36);
    assert_int_equal(total, 36);
    for (int c = 0; c < CHANNELS && scope == SN_MASK_CHANNEL; c++) assert_int_equal(per_channel[c], 12);
  }
  assert_true(differs);
  for (int i = 0; i < N && uniform; i++) {
    const double share = (double)hits[i] / DRAWS;
    assert_true(fabs(share - 0.6) < 5 * sqrt(0.24 / DRAWS));
  }
}

static void test_random_masks(void **state) {
  check_sampler(sn_mask_random, SN_MASK_SAMPLE, true);
  check_sampler(sn_mask_random, SN_MASK_CHANNEL, true);
}

static void test_contiguous_masks(void **state) {
  float coordinates[4 * N];
  int32_t channels[N], positions[N];
  uint8_t masked[N];
  int64_t n;
  check_sampler(sn_mask_contiguous, SN_MASK_SAMPLE, false);
  check_sampler(sn_mask_contiguous, SN_MASK_CHANNEL, false);
  sn_mask_tokens tokens = make_tokens(coordinates, channels, positions);
  const sn_mask_options options = {.ratio = 0.6, .scope = SN_MASK_CHANNEL};
  bool starts[N] = {false};
  for (int d = 0; d < 500; d++) {
    sn_random random = sn_random_at(7, SN_PURPOSE_MASK, 2, (uint64_t)d);
    assert_int_equal(sn_mask_contiguous(&tokens, &options, &random, masked, &n, NULL), SN_OK);
    for (int c = 0; c < CHANNELS; c++) {
      int runs = 0;
      for (int p = 0; p < N / CHANNELS; p++) {
        const int i = c * (N / CHANNELS) + p;
        const bool begins = masked[i] && (p == 0 || !masked[i - 1]);
        runs += begins;
        if (begins) starts[p] = true;
      }
      assert_int_equal(runs, 1);
    }
  }
  for (int p = 0; p <= 8; p++) assert_true(starts[p]); /* every place from which 12 of 20 fit */
}

static void test_targets(void **state) {
  const float patch[4] = {1, 2, 3, 6}, flat[4] = {5, 5, 5, 5};
  const uint8_t three[4] = {1, 1, 1, 0}, one[4] = {1, 0, 0, 0};
  float target[4];
  assert_int_equal(sn_mae_patch_target(patch, NULL, 4, SN_MAE_NORMALISED, false, target), 0);
  const double mean = 3, variance = (4 + 1 + 0 + 9) / 3.0; /* divisor N - 1 */
  for (int i = 0; i < 4; i++) assert_true(fabs(target[i] - (patch[i] - mean) / sqrt(variance + 1e-6)) < 1e-6);
  assert_int_equal(sn_mae_patch_target(patch, three, 4, SN_MAE_NORMALISED, false, target), 0);
  assert_true(fabs(target[0] + 1 / sqrt(1 + 1e-6)) < 1e-6 && target[1] == 0 && target[3] == 0);
  assert_int_equal(sn_mae_patch_target(flat, NULL, 4, SN_MAE_NORMALISED, false, target), 1);
  assert_int_equal(sn_mae_patch_target(flat, NULL, 4, SN_MAE_NORMALISED, true, target), 0);
  for (int i = 0; i < 4; i++) assert_true(target[i] == 0);
  assert_int_equal(sn_mae_patch_target(patch, one, 4, SN_MAE_NORMALISED, false, target), 2);
  assert_int_equal(sn_mae_patch_target(flat, NULL, 4, SN_MAE_RAW, false, target), 0);
  assert_true(target[2] == 5);
}

static sn_sample *make_sample(uint64_t id, int64_t n, float offset) {
  sn_sample *sample;
  assert_int_equal(sn_sample_create(n, 4, true, &sample, NULL), SN_OK);
  sample->sample_id = id;
  for (int64_t t = 0; t < n; t++) {
    sample->positions[t] = (int32_t)t;
    sample->channels[t] = 0;
    for (int p = 0; p < 4; p++) {
      sample->patches[4 * t + p] = offset + (float)sin(0.9 * (double)(4 * t + p));
      sample->valid[4 * t + p] = 1;
    }
  }
  return sample;
}

/* Collate over a pack with a flat stretch, a stretch that was not measured, and a sample of one token: counts add up, the
 * loss and its gradient stay finite, and what cannot be masked takes no part. */
static void test_degenerate_samples(void **state) {
  sn_config *config;
  sn_model *model;
  sn_token_batch *batch;
  sn_error err;
  void *work;
  const uint64_t epochs[3] = {0, 0, 0};
  sn_sample *samples[3] = {make_sample(1, 20, 0), make_sample(2, 1, 0), make_sample(3, 20, 1)};
  for (int i = 0; i < 40; i++) samples[0]->patches[i] = 2;                      /* tokens 0..9 flat */
  for (int i = 40; i < 60; i++) samples[0]->valid[i] = i % 4 == 0, samples[0]->patches[i] = 0; /* 10..14: one of four valid */
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, 3, &batch, &err), SN_OK);
  assert_int_equal(sn_engine_config_create(NULL, 0, &config, &err), SN_OK);
  assert_int_equal(sn_config_load_pairs(config, "model.width=16\nmodel.heads=2\nmodel.depth=1\nmae.decoder_width=8\n"
                                                "mae.decoder_heads=1\n", "test", &err), SN_OK);
  const sn_model_shape shape = {.patch_size = 4, .n_channel_ids = 1, .pack_slots = 64, .pack_samples = 4, .max_tokens = 20};
  assert_int_equal(sn_model_create(config, &shape, SN_F32, 1, true, &model, &err), SN_OK);
  const sn_objective_vtable *v = model->objective->vtable;
  if (v->collate(model->objective, batch, epochs, &work, &err) != SN_OK) fail_msg("%s", err.message);
  double count[SN_MAX_GROUPS] = {0};
  int64_t counters[SN_MAX_COUNTERS] = {0};
  v->counts(model->objective, work, count, counters);
  assert_string_equal(model->objective->counters[0], "masked_tokens");
  assert_int_equal(counters[0], 30);
  assert_int_equal(counters[1], 10);
  assert_true(counters[2] > 0 && counters[3] > 0); /* flat, invalid */
  assert_int_equal(counters[4], 1);                /* the sample of one token */
  assert_true(count[0] == (double)(30 - counters[2] - counters[3]));
  v->free_work(work);
  sn_model_destroy(model);
  sn_token_batch_destroy(batch);
  sn_config_destroy(config);
  for (int i = 0; i < 3; i++) sn_sample_destroy(samples[i]);
}

/* Masks belong to a sample, not to the pack it is in (fault 22). */
static void test_masks_do_not_depend_on_company(void **state) {
  float coordinates[4 * N];
  int32_t channels[N], positions[N];
  uint8_t a[N], b[N];
  int64_t n;
  sn_mask_tokens tokens = make_tokens(coordinates, channels, positions);
  const sn_mask_options options = {.ratio = 0.5};
  sn_random at = sn_random_at(3, SN_PURPOSE_MASK, 5, 11), other_epoch = sn_random_at(3, SN_PURPOSE_MASK, 6, 11);
  assert_int_equal(sn_mask_random(&tokens, &options, &at, a, &n, NULL), SN_OK);
  assert_int_equal(sn_mask_random(&tokens, &options, &other_epoch, b, &n, NULL), SN_OK);
  assert_memory_not_equal(a, b, N);
  at = sn_random_at(3, SN_PURPOSE_MASK, 5, 11);
  assert_int_equal(sn_mask_random(&tokens, &options, &at, b, &n, NULL), SN_OK);
  assert_memory_equal(a, b, N);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts),  cmocka_unit_test(test_random_masks),       cmocka_unit_test(test_contiguous_masks),
      cmocka_unit_test(test_targets), cmocka_unit_test(test_degenerate_samples),
      cmocka_unit_test(test_masks_do_not_depend_on_company)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
