/* Phases of a pretraining run, and another run as its start: resume inside a phase and across the border, what goes over,
 * what is frozen, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/init_run.h"
#include "engine/model.h"
#include "engine/run.h"
#include "engine/train.h"
#include "tests/run_files.h"

static char root[256];
static sn_error err;

static int make_root(void **state) {
  snprintf(root, sizeof root, "/tmp/sonde_phases_XXXXXX");
  return mkdtemp(root) == NULL;
}

static int remove_root(void **state) { return sn_remove_tree(root, NULL) != SN_OK; }

/* phases: the JSON list, or NULL for none. */
static sn_config *make_config(const char *extra, const char *phases) {
  sn_config *config;
  const char *base =
      "data.dir=synthetic\nsynthetic.windows=90\nsynthetic.patch=10\nsynthetic.tokens_least=12\n"
      "synthetic.tokens_most=24\nsynthetic.channels=2\nmodel.width=32\nmodel.heads=2\nmodel.depth=2\n"
      "mae.decoder_width=16\nmae.decoder_heads=1\ntrain.pack_tokens=256\ntrain.steps=12\ntrain.lr=1e-3\n"
      "train.threads=1\ntrain.checkpoint_every=3\ntrain.ema=0.99\ntrain.keep_last=9\n";
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  if (sn_config_load_pairs(config, base, "test", &err) != SN_OK) fail_msg("%s", err.message);
  if (phases != NULL) {
    char text[2048];
    sn_json *json;
    const int n = snprintf(text, sizeof text, "{\"phases\": %s}", phases);
    if (sn_json_parse(text, n, "test", &json, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_config_load_json(config, json, "test", &err) != SN_OK) fail_msg("%s", err.message);
    sn_json_destroy(json);
  }
  if (sn_config_load_pairs(config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  return config;
}

/* The synthetic source with recordings of ten windows each, so that windows can come in groups. */
static bool with_recordings;
static sn_source_vtable recordings;
static const sn_source_vtable *plain;
enum { WINDOWS = 10 };

static int64_t recording_of(const sn_source *source, int64_t index) { return index / WINDOWS; }
static sn_status read_of_recording(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view, sn_sample **out,
                                   sn_error *e) {
  SN_TRY(plain->read(source, index, seed, epoch, view, out, e));
  (*out)->recording = index / WINDOWS;
  return SN_OK;
}
static void stretch_of(const sn_source *source, int64_t i, sn_source_stretch *out) {
  *out = (sn_source_stretch){.first = i * WINDOWS, .n = WINDOWS, .recording_key = (uint64_t)i + 1, .window_s = 1, .stride_s = 1};
}

static void add_recordings(sn_source *source) {
  plain = source->vtable;
  recordings = *plain;
  recordings.read = read_of_recording;
  recordings.recording = recording_of;
  recordings.stretch = stretch_of;
  source->vtable = &recordings;
  source->n_recordings = source->n_stretches = source->n_windows / WINDOWS;
}

static sn_status try_train(const char *name, const char *extra, const char *phases, bool resume, int64_t stop_after,
                           char run[320], sn_train_result *result) {
  sn_config *config = make_config(extra, phases);
  sn_run_data *data;
  snprintf(run, 320, "%s/%s", root, name);
  assert_int_equal(sn_run_data_open(config, run, resume, NULL, &data, &err), SN_OK);
  assert_int_equal(sn_run_save_config(run, config, &err), SN_OK);
  if (with_recordings) add_recordings(sn_run_data_source(data));
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run, .resume = resume,
                              .stop_after = stop_after};
  const sn_status status = sn_train(&options, result, &err);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  return status;
}

static sn_train_result train(const char *name, const char *extra, const char *phases, bool resume, int64_t stop_after,
                             char run[320]) {
  sn_train_result result;
  if (try_train(name, extra, phases, resume, stop_after, run, &result) != SN_OK) fail_msg("%s", err.message);
  return result;
}

static void refused(const char *extra, const char *phases, const char *words) {
  char run[320];
  sn_train_result result;
  const sn_status status = try_train("refused", extra, phases, false, 0, run, &result);
  if (status != SN_E_ARGUMENT && status != SN_E_STATE) fail_msg("status %d where '%s' was expected", status, words);
  if (strstr(err.message, words) == NULL) fail_msg("'%s' is not in: %s", words, err.message);
  assert_int_equal(result.state.step, 0); /* before the first step */
}

/* (n) values of a tensor of a checkpoint; test_free. */
static float *weights(const char *run, int64_t step, const char *file, const char *name, int64_t *n) {
  char path[512];
  sn_safetensors *tensors;
  snprintf(path, sizeof path, "%s/checkpoints/step-%09lld/%s.safetensors", run, (long long)step, file);
  if (sn_safetensors_open(path, &tensors, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < sn_safetensors_count(tensors); i++) {
    const sn_named_tensor entry = sn_safetensors_entry(tensors, i);
    if (strcmp(entry.name, name) != 0) continue;
    float *data = test_malloc((size_t)sn_tensor_bytes(&entry.tensor));
    assert_int_equal(sn_safetensors_read(tensors, i, data, &err), SN_OK);
    *n = sn_tensor_count(&entry.tensor);
    sn_safetensors_close(tensors);
    return data;
  }
  sn_safetensors_close(tensors);
  return NULL;
}

static bool same_weights(const char *run_a, int64_t step_a, const char *run_b, int64_t step_b, const char *name) {
  int64_t n_a = 0, n_b = 0;
  float *a = weights(run_a, step_a, "model", name, &n_a), *b = weights(run_b, step_b, "model", name, &n_b);
  assert_true(a != NULL && b != NULL && n_a > 0);
  const bool same = n_a == n_b && memcmp(a, b, (size_t)n_a * sizeof *a) == 0;
  test_free(a);
  test_free(b);
  return same;
}

/* --- resume ------------------------------------------------------------------------------------------------------- */

static const char *const VARIANTS[] = {
    "[{\"name\": \"warm\", \"train\": {\"steps\": 6, \"lr\": 0.002}, \"mae\": {\"mask_ratio\": 0.5}},"
    " {\"name\": \"main\", \"train\": {\"steps\": 6, \"schedule\": \"linear\"}}]",
    /* What is frozen, packs, decay, averages. */
    "[{\"train\": {\"steps\": 6, \"freeze\": [\"embed.\", \"backbone.\"], \"ema\": 0}},"
    " {\"train\": {\"steps\": 6, \"freeze\": [\"decoder.\"], \"pack_tokens\": 320, \"weight_decay\": 0.2}}]",
    /* Another objective, other weights in its decoder, dropout. */
    "[{\"train\": {\"steps\": 6}, \"mae\": {\"decoder_depth\": 2}, \"model\": {\"dropout\": 0.1}},"
    " {\"train\": {\"steps\": 3}, \"objective\": {\"name\": \"mae2022\"}, \"mae\": {\"mask\": \"contiguous\"}},"
    " {\"train\": {\"steps\": 3, \"packs_per_step\": 2}, \"mae\": {\"decoder_depth\": 0, \"target\": \"raw\"}}]",
#ifndef SONDE_MINIMAL /* which makes no spectra */
    /* A target that only the second phase asks for, standardised by the data at the border. */
    "[{\"train\": {\"steps\": 6}}, {\"train\": {\"steps\": 6, \"renew\": [\"decoder.head\"]},"
    " \"mae\": {\"target\": \"spectrum\", \"target_standardize\": true, \"loss\": \"smooth_l1\"}}]",
#endif
    "[{\"train\": {\"steps\": 6, \"schedule\": \"constant\"}},"
    " {\"train\": {\"steps\": 6, \"schedule\": \"linear\", \"warmup\": 0, \"moments\": \"carry\"}}]"};

static void test_resume_in_every_phase(void **state) {
  static const int64_t STOPS[] = {2, 4, 6, 7, 8, 11}; /* 6, 7 and 8 go on from the checkpoint at the border */
  for (size_t v = 0; v < sizeof VARIANTS / sizeof VARIANTS[0]; v++) {
    char whole[320], parts[320], name[48];
    snprintf(name, sizeof name, "whole_%zu", v);
    sn_train_result r = train(name, "", VARIANTS[v], false, 0, whole);
    assert_true(r.state.step == 12 && r.state.updates == 12 && isfinite(r.loss) && r.primitives_after_10 == 0);
    for (size_t i = v == 0 ? 0 : 2; i < (v == 0 ? 6 : 4); i++) { /* the border and inside the second phase for each */
      snprintf(name, sizeof name, "parts_%zu_%zu", v, i);
      train(name, "train.loader_threads=2\n", VARIANTS[v], false, STOPS[i], parts);
      r = train(name, "train.loader_threads=0\n", VARIANTS[v], true, 0, parts);
      assert_true(r.start_step == STOPS[i] / 3 * 3 && r.state.step == 12);
      assert_same_run(whole, parts, 12);
    }
  }
}

/* A phase with groups begins at the next whole one, wherever the phase before ended; and likewise when it is resumed there. */
static void test_groups_from_a_border_on(void **state) {
  const char *phases = "[{\"train\": {\"steps\": 6}}, {\"train\": {\"steps\": 3}, \"objective\": {\"name\": \"contrast\"},"
                       " \"contrast\": {\"positives\": \"recording\", \"group\": 5}}, {\"train\": {\"steps\": 3},"
                       " \"objective\": {\"name\": \"contrast\"}, \"contrast\": {\"positives\": \"recording\", \"group\": 7}}]";
  const char *small = "contrast.projector_hidden=16\ncontrast.projector_width=8\n";
  char whole[320], parts[320], name[48];
  with_recordings = true;
  sn_train_result r = train("groups", small, phases, false, 6, whole);
  assert_true(r.state.step == 6 && r.state.position % 5 != 0);
  r = train("groups", small, phases, true, 0, whole); /* from the border */
  assert_true(r.start_step == 6 && r.state.step == 12 && r.state.updates == 12 && r.state.position % 7 == 0);
  for (int64_t stop = 7; stop < 12; stop += 3) {
    snprintf(name, sizeof name, "groups_%lld", (long long)stop);
    train(name, small, phases, false, stop, parts);
    train(name, small, phases, true, 0, parts);
    assert_same_run(whole, parts, 12);
  }
  train("groups_at_once", small, phases, false, 0, parts);
  assert_same_run(whole, parts, 12);
  with_recordings = false;
}

/* Two phases that differ in nothing and carry the moments are one run. */
static void test_equal_phases_are_one_run(void **state) {
  char one[320], two[320];
  const char *flat = "train.schedule=constant\ntrain.warmup=0\n";
  train("one", flat, NULL, false, 0, one);
  train("two", flat, "[{\"train\": {\"steps\": 5}}, {\"train\": {\"steps\": 7, \"moments\": \"carry\"}}]", false, 0, two);
  assert_same_file(one, two, "checkpoints/step-000000012/model.safetensors");
  assert_same_file(one, two, "checkpoints/step-000000012/ema.safetensors");
  assert_same_file(one, two, "checkpoints/step-000000012/optimizer.safetensors");
}

static void test_metrics_say_the_phase(void **state) {
  char run[320], *text, *rest = NULL;
  int64_t n, step = 0;
  train("metrics", "train.warmup=0\n", "[{\"train\": {\"steps\": 4, \"lr\": 0.002, \"schedule\": \"linear\"}},"
        " {\"train\": {\"steps\": 8, \"min_lr\": 0.0001}}]", false, 0, run);
  read_run_file(run, "metrics.jsonl", &text, &n);
  for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest), step++) {
    sn_json *json;
    int64_t phase;
    double lr;
    assert_int_equal(sn_json_parse(line, (int64_t)strlen(line), "metrics", &json, &err), SN_OK);
    assert_int_equal(sn_json_get_i64(json, "phase", &phase, &err), SN_OK);
    assert_int_equal(sn_json_get_f64(json, "lr", &lr, &err), SN_OK);
    assert_int_equal(phase, step >= 4);
    const double expected = step < 4 ? 0.002 * (1 - (double)step / 4)
                                     : 0.0001 + 0.0009 * 0.5 * (1 + cos(M_PI * (double)(step - 4) / 8));
    if (!(fabs(lr - expected) <= 1e-15)) fail_msg("step %lld: rate %.17g, expected %.17g", (long long)step, lr, expected);
    sn_json_destroy(json);
  }
  assert_int_equal(step, 12);
  sn_free(text);
}

static void test_frozen_weights_keep_their_bytes(void **state) {
  char run[320];
  train("frozen", "", "[{\"train\": {\"steps\": 3}}, {\"train\": {\"steps\": 6, \"freeze\": [\"backbone.\", \"embed.patch\"]}},"
        " {\"train\": {\"steps\": 3, \"freeze\": [\"decoder.\"]}}]", false, 0, run);
  static const char *const FROZEN[] = {"backbone.blocks.1.attn.qkv.weight", "backbone.norm.weight", "embed.patch.bias"};
  for (int i = 0; i < 3; i++) {
    assert_true(same_weights(run, 3, run, 9, FROZEN[i]));
    assert_false(same_weights(run, 9, run, 12, FROZEN[i]));
  }
  assert_false(same_weights(run, 3, run, 9, "decoder.head.weight"));
  assert_true(same_weights(run, 9, run, 12, "decoder.head.weight"));
  int64_t n;
  assert_null(weights(run, 9, "optimizer", "backbone.norm.weight.m", &n)); /* no memory for what does not learn */
}

/* A checkpoint opens with the settings of its own phase, and the configuration reads back whole. */
static void test_model_loads_from_any_phase(void **state) {
  char run[320];
  sn_config *config;
  train("load", "", VARIANTS[2], false, 0, run);
  assert_int_equal(sn_run_load_config(run, &config, &err), SN_OK);
  assert_int_equal(sn_config_phases(config), 3);
  for (int64_t step = 3; step <= 12; step += 3) {
    sn_model *model;
    sn_train_state of;
    if (sn_model_load(run, config, step, step == 12, NULL, &model, &of, &err) != SN_OK) fail_msg("%s", err.message);
    assert_int_equal(of.step, step);
    assert_int_equal(sn_params_find(model->params, "decoder.blocks.1.attn.qkv.weight") != NULL, step <= 6);
    assert_int_equal(sn_params_find(model->params, "decoder.blocks.0.attn.qkv.weight") != NULL, step <= 9);
    sn_model_destroy(model);
  }
  sn_config_destroy(config);
}

static void test_refusals(void **state) {
  refused("", "[{\"train\": {\"steps\": 2}}, {\"synthetic\": {\"patch\": 12}}]", "phases.1.synthetic.patch: is the same");
  refused("", "[{\"train\": {\"seed\": 2}}, {}]", "phases.0.train.seed");
  refused("", "[{}, {\"model\": {\"depth\": 3}}]", "phases.1.model.depth");
  refused("", "[{\"train\": {\"lr\": 0}}]", "above 0 is needed");
  refused("", "[{}, {\"train\": {\"freeze\": [\"backbon.x\"]}}]", "they begin with embed., backbone., decoder.");
  refused("train.freeze=embed.,backbone.,decoder.\n", NULL, "everything is frozen");
  refused("", "[{}, {\"mae\": {\"decoder_width\": 32}}]", "another shape in the phase before");
  refused("train.renew=decoder.\n", NULL, "nothing goes on into the first phase");
  refused("", "[{}, {\"train\": {\"renew\": [\"decodr\"]}}]", "train.renew 'decodr': no weight");
  refused("", "[{}, {\"train\": {\"renew\": [\"decoder.\"], \"moments\": \"carry\"}}]", "did not in the one before");
  refused("", "[{\"train\": {\"freeze\": [\"embed.\"]}}, {\"train\": {\"moments\": \"carry\"}}]", "did not in the one before");
  refused("", "[{}, {\"train\": {\"pack_tokens\": 64}, \"mae\": {\"decoder_heads\": 3}}]", "heads");
  refused("", "[{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}]", "17 phases; at most 16");
}

/* --- another run as the start ------------------------------------------------------------------------------------- */

static void write_text(const char *run, const char *name, const char *text) {
  char path[512];
  snprintf(path, sizeof path, "%s/%s", run, name);
  assert_int_equal(sn_write_file(path, text, (int64_t)strlen(text), &err), SN_OK);
}

static void test_begins_from_another_run(void **state) {
  char first[320], run[320], extra[800], *text;
  int64_t n;
  train("first", "train.steps=3\n", NULL, false, 0, first);
  snprintf(extra, sizeof extra, "%s/inputs", first);
  assert_int_equal(sn_make_directories(extra, &err), SN_OK);
  write_text(first, "split.tsv", "people of the first run\n");
  write_text(first, "inputs/split-0.tsv", "people of its own start\n");
  snprintf(extra, sizeof extra, "init.run=%s\ntrain.freeze=embed.,backbone.\ntrain.steps=3\ntrain.seed=5\n", first);
  train("second", extra, NULL, false, 0, run);
  assert_true(same_weights(first, 3, run, 3, "backbone.blocks.0.mlp.fc1.weight"));
  assert_true(same_weights(first, 3, run, 3, "embed.patch.weight"));
  read_run_file(run, "inputs/split-0.tsv", &text, &n);
  assert_string_equal(text, "people of the first run\n");
  sn_free(text);
  read_run_file(run, "inputs/split-1.tsv", &text, &n);
  assert_string_equal(text, "people of its own start\n");
  sn_free(text);
  /* The objective's weights too. */
  snprintf(extra, sizeof extra, "init.run=%s\ninit.parts=all\ninit.ema=true\ntrain.freeze=decoder.\ntrain.steps=3\n", first);
  train("third", extra, NULL, false, 0, run);
  float *a = weights(first, 3, "ema", "decoder.head.weight", &n), *b = weights(run, 3, "model", "decoder.head.weight", &n);
  assert_memory_equal(a, b, (size_t)n * sizeof *a);
  test_free(a);
  test_free(b);
  /* Resume does not begin again. */
  snprintf(extra, sizeof extra, "init.run=%s\n", first);
  char whole[320], parts[320];
  train("init_whole", extra, NULL, false, 0, whole);
  train("init_parts", extra, NULL, false, 5, parts);
  train("init_parts", extra, NULL, true, 0, parts);
  assert_same_run(whole, parts, 12);
}

static void test_start_is_strict(void **state) {
  char first[320], extra[800];
  train("strict", "train.steps=3\ntrain.ema=0\n", NULL, false, 0, first);
  snprintf(extra, sizeof extra, "init.run=%s\nmodel.width=64\n", first);
  refused(extra, NULL, "of another shape");
  snprintf(extra, sizeof extra, "init.run=%s\nmodel.depth=3\n", first);
  refused(extra, NULL, "missing (backbone.blocks.2");
  snprintf(extra, sizeof extra, "init.run=%s\ninit.parts=all\nmae.decoder_depth=0\n", first);
  refused(extra, NULL, "are not asked for");
  snprintf(extra, sizeof extra, "init.run=%s\ninit.ema=true\n", first);
  refused(extra, NULL, "keeps no moving average");
  snprintf(extra, sizeof extra, "init.run=%s\ninit.step=2\n", first);
  refused(extra, NULL, "no complete checkpoint of that step");
  snprintf(extra, sizeof extra, "init.run=%s/nothing\n", root);
  refused(extra, NULL, "no complete checkpoint");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_resume_in_every_phase),      cmocka_unit_test(test_equal_phases_are_one_run),
      cmocka_unit_test(test_groups_from_a_border_on),
      cmocka_unit_test(test_metrics_say_the_phase),      cmocka_unit_test(test_frozen_weights_keep_their_bytes),
      cmocka_unit_test(test_model_loads_from_any_phase), cmocka_unit_test(test_refusals),
      cmocka_unit_test(test_begins_from_another_run),    cmocka_unit_test(test_start_is_strict)};
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
