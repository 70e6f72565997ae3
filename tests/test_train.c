/* The training loop on synthetic tokens: resume, loader threads, ranks, accumulation, faults 22, 29, 30 and 35. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/train_runs.h"

static void test_resume_is_bit_exact(void **state) {
  char whole[320], parts[320];
  sn_train_result r = train("whole", "", false, 0, whole);
  assert_int_equal(r.state.step, 12);
  assert_true(isfinite(r.loss) && r.parameters > 10000);
  train("parts", "", false, 6, parts); /* stops two steps past its checkpoint */
  r = train("parts", "", true, 0, parts);
  assert_true(r.resumed && r.start_step == 4);
  assert_same_run(whole, parts, 12);
}

static void test_dropout_resumes(void **state) {
  char whole[320], parts[320];
  const char *drops = "model.dropout=0.1\nmodel.drop_path=0.2\nmodel.checkpoint=true\n";
  train("drop_whole", drops, false, 0, whole);
  train("drop_parts", drops, false, 9, parts);
  train("drop_parts", drops, true, 0, parts);
  assert_same_run(whole, parts, 12);
}

static void test_loader_threads_do_not_matter(void **state) {
  char one[320], other[320];
  train("threads_0", "train.loader_threads=0\n", false, 0, one);
  train("threads_3", "train.loader_threads=3\ntrain.prefetch=7\n", false, 0, other);
  assert_same_run(one, other, 12);
}

/* Every option of the encoder trains, and resumes to the same bytes. */
static void test_variants_resume(void **state) {
  static const char *const VARIANTS[] = {
      "model.embedder=conv\nmodel.stem_channels=8\nmodel.class_token=true\n",
      "model.norm=rmsnorm\nmodel.activation=swiglu\nmodel.qk_norm=rmsnorm\nmodel.qkv_bias=false\n",
      "model.position=rope\nmodel.qk_norm=layernorm\nmodel.activation=gelu_tanh\nmodel.channel=direction\n",
      "mae.mask=contiguous\nmae.mask_scope=channel\nmae.target=raw\nmae.loss=l1\nmae.reduction=sample_mean\n",
      "objective.name=mae2022\nmodel.position=none\nmae.loss=smooth_l1\ntrain.schedule=wsd\n",
      "model.input=standardized\nmae.target=raw\nmae.target_standardize=true\nmae.mask=time\nmae.mask_span=2\n",
      "mae.visible_weight=0.05\nmae.pooled_weight=0.1\nmae.mask=channel\nmae.mask_ratio=0.5\n"};
  for (size_t i = 0; i < sizeof VARIANTS / sizeof VARIANTS[0]; i++) {
    char whole[320], parts[320], a[32], b[32];
    snprintf(a, sizeof a, "variant_%zu_whole", i);
    snprintf(b, sizeof b, "variant_%zu_parts", i);
    sn_train_result r = train(a, VARIANTS[i], false, 0, whole);
    assert_true(isfinite(r.loss) && r.primitives_after_10 == 0);
    train(b, VARIANTS[i], false, 5, parts);
    train(b, VARIANTS[i], true, 0, parts);
    assert_same_run(whole, parts, 12);
  }
}

/* Activation checkpointing computes the same numbers again. */
static void test_checkpointing_changes_nothing(void **state) {
  char plain[320], segments[320];
  train("plain", "", false, 0, plain);
  train("segments", "model.checkpoint=true\n", false, 0, segments);
  assert_same_run(plain, segments, 12);
}

/* --- ranks -------------------------------------------------------------------------------------------------------- */

static void test_two_ranks_equal_one(void **state) {
  static const char *const BASES[] = {
      "train.packs_per_step=2\ntrain.dtype=f64\ntrain.threads=1\n",
      "train.packs_per_step=2\ntrain.dtype=f64\ntrain.threads=1\nmodel.input=standardized\nmae.target=raw\n"
      "mae.target_standardize=true\nmae.visible_weight=0.3\nmae.pooled_weight=0.5\nmae.mask=time\n",
      "train.packs_per_step=2\ntrain.dtype=f64\ntrain.threads=1\nmodel.attention=crisscross\nmodel.class_token=true\n"
      "model.registers=1\nmae.decoder_heads=2\nmodel.position=fourier4d,learned4d\nmodel.position_jitter=2.5 mm\n",
      "train.packs_per_step=2\ntrain.dtype=f64\ntrain.threads=1\nmodel.latent_sources=2\nmodel.position=sensor6d,sincos\n"};
  for (size_t i = 0; i < sizeof BASES / sizeof BASES[0]; i++) {
    char one[320], two[320], name[32];
    const char *extra[2] = {BASES[i], BASES[i]};
    rank_call calls[2];
    snprintf(name, sizeof name, "one_rank_%zu", i);
    train(name, BASES[i], false, 0, one);
    snprintf(two, sizeof two, "%s/two_ranks_%zu", root, i);
    run_ranks(2, two, extra, calls);
    for (int r = 0; r < 2; r++)
      if (calls[r].status != SN_OK) fail_msg("rank %d: %s", r, calls[r].err.message);
    const double worst = worst_difference(one, two);
    if (!(worst <= 1e-9)) fail_msg("two ranks differ from one by %g", worst);
  }
}

/* The same tokens in one step, as one pack or as four: 4 x 256 equals 1024 (sums before means, fault 29). */
static void test_accumulation_equals_one_pack(void **state) {
  char one[320], four[320];
  /* Samples of one size, so that both cuts hold exactly the same ones. */
  const char *base = "train.dtype=f64\nsynthetic.tokens_least=16\nsynthetic.tokens_most=16\nsynthetic.windows=64\n";
  char a[512], b[512];
  snprintf(a, sizeof a, "%strain.pack_tokens=1024\ntrain.packs_per_step=1\n", base);
  snprintf(b, sizeof b, "%strain.pack_tokens=256\ntrain.packs_per_step=4\n", base);
  train("packs_1", a, false, 0, one);
  train("packs_4", b, false, 0, four);
  const double worst = worst_difference(one, four);
  if (!(worst <= 1e-9)) fail_msg("accumulation differs by %g", worst);
}

static void test_rank_failure_stops_all(void **state) {
  char run[320];
  snprintf(run, sizeof run, "%s/failing", root);
  /* Rank 1 cannot be set up; rank 0 must end too, with the first cause. */
  const char *extra[2] = {"train.packs_per_step=2\n", "train.packs_per_step=2\nmae.decoder_width=15\nmae.decoder_heads=5\n"};
  rank_call calls[2];
  run_ranks(2, run, extra, calls);
  assert_int_not_equal(calls[0].status, SN_OK);
  assert_int_not_equal(calls[1].status, SN_OK);
  assert_non_null(strstr(calls[0].err.message, "decoder_width"));
}

static void test_existing_errors(void **state) {
  sn_config *config = make_config("");
  sn_error err;
  int64_t fold, folds;
  assert_int_equal(sn_config_set(config, "train.learning_rat", "0.1", "--set", -1, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_parse_fold("5/5", &fold, &folds, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_parse_fold("2/5", &fold, &folds, &err), SN_OK);
  assert_true(fold == 2 && folds == 5);
  sn_config_destroy(config);
}

/* A loss that is not finite changes nothing, is counted, and stops the run when it goes on. */
static void test_nonfinite_stops(void **state) {
  char run[320], *metrics;
  int64_t n;
  sn_run_data *data;
  sn_train_result result;
  sn_error err;
  sn_config *config = make_config("train.lr=10\ntrain.schedule=constant\ntrain.clip=0\ntrain.warmup=0\ntrain.weight_decay=10\n"
                                  "train.max_nonfinite=2\ntrain.steps=200\ntrain.ema=0\ntrain.dtype=f32\n");
  snprintf(run, sizeof run, "%s/nonfinite", root);
  assert_int_equal(sn_run_data_open(config, run, false, NULL, &data, &err), SN_OK);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run};
  assert_int_equal(sn_train(&options, &result, &err), SN_E_STATE); /* decay of 100 a step: weights grow 99-fold */
  assert_non_null(strstr(err.message, "not finite"));
  assert_int_equal(result.state.nonfinite_steps, 3);
  read_run_file(run, "metrics.jsonl", &metrics, &n);
  assert_non_null(strstr(metrics, "\"updated\": 0"));
  assert_non_null(strstr(metrics, "\"loss\": null"));
  sn_free(metrics);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

/* A stop flag saves; the next call goes on from there. */
static void test_stop_saves(void **state) {
  char whole[320], stopped[320];
  volatile sig_atomic_t flag = 15;
  sn_config *config = make_config("");
  sn_run_data *data;
  sn_train_result result;
  sn_error err;
  train("unstopped", "", false, 0, whole);
  snprintf(stopped, sizeof stopped, "%s/stopped", root);
  assert_int_equal(sn_run_data_open(config, stopped, false, NULL, &data, &err), SN_OK);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = stopped, .stop = &flag};
  assert_int_equal(sn_train(&options, &result, &err), SN_OK);
  assert_true(result.stopped && result.state.step == 1);
  options.stop = NULL;
  options.resume = true;
  assert_int_equal(sn_train(&options, &result, &err), SN_OK);
  assert_true(result.start_step == 1);
  assert_same_run(whole, stopped, 12);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

/* A half-written checkpoint is passed over, and the one before it is used (fault 31). */
static void test_damaged_checkpoint_is_passed_over(void **state) {
  char run[320], path[512], whole[320];
  train("damaged", "", false, 9, run);
  train("undamaged", "", false, 0, whole);
  snprintf(path, sizeof path, "%s/checkpoints/step-000000008/optimizer.safetensors", run);
  assert_int_equal(truncate(path, 1000), 0);
  sn_train_result r = train("damaged", "", true, 0, run);
  assert_int_equal(r.start_step, 4);
  assert_same_run(whole, run, 12);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resume_is_bit_exact),       cmocka_unit_test(test_dropout_resumes),
      cmocka_unit_test(test_loader_threads_do_not_matter), cmocka_unit_test(test_checkpointing_changes_nothing),
      cmocka_unit_test(test_variants_resume), cmocka_unit_test(test_two_ranks_equal_one),       cmocka_unit_test(test_accumulation_equals_one_pack),
      cmocka_unit_test(test_rank_failure_stops_all),    cmocka_unit_test(test_existing_errors),
      cmocka_unit_test(test_nonfinite_stops), cmocka_unit_test(test_stop_saves),                cmocka_unit_test(test_damaged_checkpoint_is_passed_over)};
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
