/* needs: full */
/* What tokens hold and which targets stand beside them: the stage behind any source, statistics of the pretraining data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc_fault.h"
#include "core/fs.h"
#include "core/stream.h"
#include "datasets/token_stage.h"
#include "engine/model.h"
#include "engine/run.h"
#include "engine/statistics.h"
#include "engine/train.h"
#include "modalities/eeg/layout.h"
#include "modalities/eeg/neurodynamics.h"
#include "modalities/signal/spectral.h"

enum { P = 20, WINDOWS = 30 };

static sn_config *make_config(const char *extra) {
  sn_config *config;
  sn_error err;
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  const char *base = "data.dir=synthetic\nsynthetic.windows=30\nsynthetic.patch=20\nsynthetic.tokens_least=6\n"
                     "synthetic.tokens_most=10\nsynthetic.channels=2\nmodel.width=16\nmodel.heads=2\nmodel.depth=1\n"
                     "mae.decoder_width=8\nmae.decoder_heads=1\n";
  if (sn_config_load_pairs(config, base, "test", &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_config_load_pairs(config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  return config;
}

static sn_source *make_source(void) {
  const sn_synthetic_options o = {.n_windows = WINDOWS, .patch_size = P, .tokens_least = 6, .tokens_most = 10,
                                  .n_channels = 2};
  sn_source *source;
  assert_int_equal(sn_source_create_synthetic(&o, &source, NULL), SN_OK);
  return source;
}

static sn_source *staged(const char *extra, const char (*targets)[SN_TARGET_NAME], int n) {
  sn_config *config = make_config(extra);
  sn_source *source = make_source();
  sn_error err;
  const sn_token_stage_options o = {.rate_hz = 20, .window_patches = 5, .targets = targets, .n_targets = n};
  if (sn_token_stage_attach(source, config, &o, &err) != SN_OK) fail_msg("%s", err.message);
  sn_config_destroy(config);
  return source;
}

static const char BOTH[2][SN_TARGET_NAME] = {"spectrum", "patch"};

/* Waveforms and no target: nothing is attached, and the run is the one it was before. */
static void test_plain_tokens_are_untouched(void **state) {
  sn_source *plain = make_source(), *source = staged("", NULL, 0);
  assert_null(source->stage);
  assert_string_equal(source->content_hash, plain->content_hash);
  sn_source_destroy(plain);
  sn_source_destroy(source);
}

/* Spectral tokens with the waveform as a target: both say the same of the same samples. */
static void test_tokens_and_targets(void **state) {
  sn_source *plain = make_source(), *source = staged("data.tokens=log_rfft\ndata.spectrum_high=8 Hz\n", BOTH, 2);
  const sn_spectral_options o = {.patch_size = P, .frame = P, .hop = P, .rate_hz = 20, .high_hz = 8, .floor = 1e-3,
                                 .hann = true};
  sn_spectral *spectral;
  assert_int_equal(sn_spectral_create(&o, &spectral, NULL), SN_OK);
  const int64_t width = sn_spectral_width(spectral);
  assert_int_equal(width, 8);
  assert_int_equal(source->patch_size, width);
  assert_string_not_equal(source->content_hash, plain->content_hash);
  assert_int_equal(source->stage->n_targets, 2);
  for (int64_t i = 0; i < WINDOWS; i++) {
    sn_sample *a, *b;
    float values[10 * 8];
    uint8_t valid[10 * 8];
    assert_int_equal(sn_source_read(plain, i, 0, 0, 0, &a, NULL), SN_OK);
    assert_int_equal(sn_source_read(source, i, 0, 0, 0, &b, NULL), SN_OK);
    assert_int_equal(a->n_tokens, b->n_tokens);
    assert_int_equal(a->sample_id, b->sample_id);
    assert_int_equal(sn_spectral_patches(spectral, values, valid, a->patches, a->valid, a->n_tokens, NULL), SN_OK);
    assert_int_equal(b->patch_size, width);
    assert_null(b->valid);
    assert_memory_equal(b->patches, values, (size_t)(a->n_tokens * width) * sizeof *values);
    assert_memory_equal(b->targets[0].values, values, (size_t)(a->n_tokens * width) * sizeof *values);
    assert_memory_equal(b->targets[1].values, a->patches, (size_t)(a->n_tokens * P) * sizeof(float));
    assert_memory_equal(b->coordinates, a->coordinates, (size_t)a->n_tokens * 4 * sizeof(float));
    for (int64_t k = 0; k < a->n_tokens * P; k++) assert_int_equal(b->targets[1].valid[k], 1);
    sn_sample_destroy(a);
    sn_sample_destroy(b);
  }
  sn_spectral_destroy(spectral);
  sn_source_destroy(plain);
  sn_source_destroy(source);
}

static void test_stft_tokens(void **state) {
  sn_source *source = staged("data.tokens=stft\ndata.stft_window=0.5 s\ndata.stft_hop=0.25 s\n", NULL, 0);
  assert_int_equal(source->patch_size, 3 * 5); /* frames of 10 samples every 5, bins 2, 4, 6, 8, 10 Hz */
  sn_sample *sample;
  assert_int_equal(sn_source_read(source, 3, 0, 0, 0, &sample, NULL), SN_OK);
  assert_int_equal(sample->patch_size, 15);
  sn_sample_destroy(sample);
  sn_source_destroy(source);
}

/* A token that was not measured keeps its place, with nothing in it. */
static void test_unmeasured_tokens(void **state) {
  sn_source *source = staged("data.tokens=log_rfft\n", BOTH, 2);
  sn_sample *sample;
  assert_int_equal(sn_sample_create(3, P, true, &sample, NULL), SN_OK);
  for (int i = 0; i < 3 * P; i++) {
    sample->patches[i] = (float)sin(0.7 * i);
    sample->valid[i] = i >= P;
  }
  assert_int_equal(source->stage->vtable->apply(source->stage, sample, NULL), SN_OK);
  assert_int_equal(sample->n_tokens, 3);
  assert_non_null(sample->valid);
  for (int k = 0; k < 10; k++) {
    assert_true(!sample->valid[k] && sample->patches[k] == 0 && sample->valid[10 + k]);
    assert_true(!sample->targets[0].valid[k] && sample->targets[0].valid[10 + k]);
  }
  sn_sample_destroy(sample);
  sn_source_destroy(source);
}

/* Statistics of the window that the patches were cut from, overlapping or not; what lacks a patch lacks its statistics. */
static void test_neuro_target(void **state) {
  static const char NEURO[1][SN_TARGET_NAME] = {"neuro"};
  enum { CHANNELS = 4, RATE = 100, LENGTH = 4 * RATE, PATCH = RATE };
  static double x[CHANNELS * LENGTH];
  double expected[SN_NEURO_SUMMARY];
  int32_t regions[CHANNELS];
  const double places[CHANNELS][3] = {{-0.05, 0.07, 0.06}, {0.05, 0.07, 0.06}, {-0.05, -0.07, 0.06}, {0.0, 0.0, 0.135}};
  const sn_neuro_options options = {.rate_hz = RATE, .n_samples = LENGTH};
  sn_neuro *neuro;
  for (int c = 0; c < CHANNELS; c++) {
    regions[c] = sn_neuro_region(places[c], SN_HEAD_RADIUS_M);
    for (int i = 0; i < LENGTH; i++) /* as floats, as in a patch */
      x[c * LENGTH + i] = (float)(sin(0.6 * i + c) + 0.5 * sin(0.11 * (c + 2) * i) + 0.3 * sin(2.1 * i + 0.2 * c * i));
  }
  assert_int_equal(sn_neuro_create(&options, &neuro, NULL), SN_OK);
  assert_int_equal(sn_neuro_summary(expected, neuro, x, CHANNELS, regions, NULL), SN_OK);
  for (int overlap = 0; overlap < 2; overlap++) {
    const int stride = overlap ? PATCH / 2 : PATCH, n = (LENGTH - PATCH) / stride + 1;
    const sn_token_stage_options o = {.rate_hz = RATE, .patch_stride = stride, .window_patches = n, .targets = NEURO,
                                      .n_targets = 1};
    sn_config *config = make_config("");
    sn_source *source = make_source();
    sn_sample *sample;
    sn_error err;
    source->patch_size = PATCH;
    assert_int_equal(sn_token_stage_attach(source, config, &o, &err), SN_OK);
    assert_true(!source->stage->targets[0].per_token && source->stage->targets[0].width == SN_NEURO_SUMMARY);
    assert_int_equal(sn_sample_create(CHANNELS * n, PATCH, false, &sample, NULL), SN_OK);
    for (int t = 0; t < CHANNELS * n; t++) {
      const int c = t / n, p = t % n;
      sample->series[t] = c;
      sample->positions[t] = p;
      for (int k = 0; k < 3; k++) sample->coordinates[4 * t + k] = (float)places[c][k];
      for (int i = 0; i < PATCH; i++) sample->patches[t * PATCH + i] = (float)x[c * LENGTH + p * stride + i];
    }
    assert_int_equal(source->stage->vtable->apply(source->stage, sample, &err), SN_OK);
    int64_t n_valid = 0;
    for (int j = 0; j < SN_NEURO_SUMMARY; j++) {
      assert_int_equal(sample->targets[0].valid[j], isfinite(expected[j]) != 0);
      if (!isfinite(expected[j])) continue;
      assert_true(sample->targets[0].values[j] == (float)expected[j]);
      n_valid++;
    }
    assert_true(n_valid > 40);
    /* A channel without its last patch is a window with a hole. */
    sample->n_targets = 0;
    sn_free(sample->targets[0].values);
    sn_free(sample->targets[0].valid);
    sample->n_tokens--;
    assert_int_equal(source->stage->vtable->apply(source->stage, sample, &err), SN_OK);
    int64_t fewer = 0;
    for (int j = 0; j < SN_NEURO_SUMMARY; j++) fewer += sample->targets[0].valid[j];
    assert_true(fewer < n_valid);
    /* Without a single position there are no regions. */
    memset(sample->coordinates, 0, (size_t)sample->n_tokens * 4 * sizeof(float));
    sample->n_targets = 0;
    sn_free(sample->targets[0].values);
    sn_free(sample->targets[0].valid);
    assert_int_equal(source->stage->vtable->apply(source->stage, sample, &err), SN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "position"));
    sn_sample_destroy(sample);
    sn_source_destroy(source);
    sn_config_destroy(config);
  }
  sn_neuro_destroy(neuro);
}

static void test_refusals(void **state) {
  static const char UNKNOWN[1][SN_TARGET_NAME] = {"clean"};
  const struct {
    const char *extra, *says;
    const char (*targets)[SN_TARGET_NAME];
  } CASES[] = {{"data.tokens=stft\ndata.stft_window=2 s\n", "stft_window", NULL},
               {"data.tokens=log_rfft\ndata.spectrum_low=15 Hz\n", "no frequency", NULL},
               {"", "clean", UNKNOWN}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    sn_config *config = make_config(CASES[i].extra);
    sn_source *source = make_source();
    sn_error err;
    const sn_token_stage_options o = {.rate_hz = 20, .window_patches = 5, .targets = CASES[i].targets,
                                      .n_targets = CASES[i].targets != NULL};
    assert_int_equal(sn_token_stage_attach(source, config, &o, &err), SN_E_ARGUMENT);
    assert_non_null(strstr(err.message, CASES[i].says));
    assert_null(source->stage);
    sn_source_destroy(source);
    sn_config_destroy(config);
  }
}

/* A pack holds what its samples hold, and refuses two that differ. */
static void test_packs_carry_targets(void **state) {
  const sn_target_spec spectrum = {.name = "spectrum", .per_token = true, .width = 3},
                       neuro = {.name = "neuro", .width = 2};
  sn_sample *samples[2];
  sn_target *target;
  sn_token_batch *batch;
  sn_error err;
  for (int s = 0; s < 2; s++) {
    assert_int_equal(sn_sample_create(2 + s, 4, false, &samples[s], NULL), SN_OK);
    assert_int_equal(sn_sample_add_target(samples[s], &spectrum, &target, NULL), SN_OK);
    for (int i = 0; i < (2 + s) * 3; i++) {
      target->values[i] = (float)(100 * s + i);
      target->valid[i] = 1;
    }
    assert_int_equal(sn_sample_add_target(samples[s], &neuro, &target, NULL), SN_OK);
    target->values[1] = (float)(7 + s);
    target->valid[1] = 1;
    assert_int_equal(sn_sample_add_target(samples[s], &neuro, &target, &err), SN_E_STATE);
  }
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, 2, &batch, &err), SN_OK);
  const sn_target *a = sn_token_batch_target(batch, "spectrum"), *b = sn_token_batch_target(batch, "neuro");
  assert_non_null(a);
  assert_non_null(b);
  assert_null(sn_token_batch_target(batch, "patch"));
  assert_true(a->values[5] == 5 && a->values[6] == 100 && a->values[14] == 108 && a->values[15] == 0 && !a->valid[15]);
  assert_true(b->values[1] == 7 && b->values[3] == 8 && !b->valid[0] && b->valid[3]);
  sn_token_batch_destroy(batch);
  sn_sample_destroy(samples[1]);
  assert_int_equal(sn_sample_create(2, 4, false, &samples[1], NULL), SN_OK);
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, 2, &batch, &err), SN_E_ARGUMENT);
  for (int s = 0; s < 2; s++) sn_sample_destroy(samples[s]);
}

/* --- statistics --------------------------------------------------------------------------------------------------- */

static sn_model *make_model(const sn_config *config, const sn_source *source) {
  sn_model_shape shape = {.patch_size = source->patch_size, .n_channel_ids = 2, .patch_step = 1, .pack_slots = 64,
                          .pack_samples = 8, .max_tokens = 10};
  sn_model *model;
  sn_error err;
  if (source->stage != NULL) {
    shape.n_targets = source->stage->n_targets;
    memcpy(shape.targets, source->stage->targets, sizeof shape.targets);
  }
  if (sn_model_create(config, &shape, SN_F64, 1, true, &model, &err) != SN_OK) fail_msg("%s", err.message);
  return model;
}

/* Means and deviations are those of all tokens, in float64; they are fixed, and filled once. */
static void test_statistics(void **state) {
  const char *extra = "data.tokens=log_rfft\nmodel.input=standardized\nmae.target=spectrum\nmae.target_standardize=true\n";
  sn_config *config = make_config(extra);
  sn_source *source = make_source();
  sn_error err;
  assert_int_equal(sn_run_attach_stage(source, config, true, &err), SN_OK);
  sn_model *model = make_model(config, source);
  const int64_t W = source->patch_size;
  double n = 0, sum[P] = {0}, squares[P] = {0};
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < WINDOWS; i++) {
      sn_sample *s;
      assert_int_equal(sn_source_read(source, i, 0, 0, 0, &s, NULL), SN_OK);
      for (int64_t t = 0; t < s->n_tokens; t++) {
        n += pass == 0;
        for (int64_t j = 0; j < W; j++) {
          const double x = s->patches[t * W + j];
          if (pass == 0) sum[j] += x;
          else squares[j] += (x - sum[j] / n) * (x - sum[j] / n);
        }
      }
      sn_sample_destroy(s);
    }
  assert_int_equal(sn_model_fit_statistics(model, source, 1000, NULL, &err), SN_OK);
  const char *const names[2][2] = {{"embed.input.mean", "embed.input.std"}, {"decoder.target.mean", "decoder.target.std"}};
  for (int k = 0; k < 2; k++) {
    const sn_param *mean = sn_params_find(model->params, names[k][0]), *std = sn_params_find(model->params, names[k][1]);
    assert_true(mean->fixed && mean->frozen && !mean->decay);
    for (int64_t j = 0; j < W; j++) {
      assert_true(fabs(sn_tensor_get(&mean->value, j) - sum[j] / n) < 1e-9);
      assert_true(fabs(sn_tensor_get(&std->value, j) - sqrt(squares[j] / n)) < 1e-9);
    }
  }
  /* Filled once: another source does not change them. */
  sn_param *mean = sn_params_find(model->params, "embed.input.mean");
  const double before = sn_tensor_get(&mean->value, 0);
  assert_int_equal(sn_model_fit_statistics(model, source, 1, NULL, &err), SN_OK);
  assert_true(sn_tensor_get(&mean->value, 0) == before);
  sn_model_destroy(model);
  sn_source_destroy(source);
  sn_config_destroy(config);
}

/* The encoder refuses to work before its statistics are there, and then standardises what was measured. */
static void test_standardized_input(void **state) {
  sn_config *config = make_config("model.input=standardized\n");
  sn_source *source = make_source();
  sn_model *model = make_model(config, source), *other = make_model(config, source);
  sn_encoder_input *in;
  sn_sample *sample;
  sn_token_batch *batch;
  sn_error err;
  assert_int_equal(sn_source_read(source, 0, 0, 0, 0, &sample, NULL), SN_OK);
  sn_free(sample->valid);
  assert_int_equal(sn_alloc(&sample->valid, sample->n_tokens * P, 1, "test", NULL), SN_OK);
  memset(sample->valid, 1, (size_t)(sample->n_tokens * P));
  sample->valid[3] = 0;
  sample->patches[3] = 0;
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)&sample, 1, &batch, NULL), SN_OK);
  assert_int_equal(sn_encoder_input_create_all(model->encoder, batch, 64, 1, SN_F32, &in, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "embed.input.std"));
  sn_param *mean = sn_params_find(model->params, "embed.input.mean"), *std = sn_params_find(model->params, "embed.input.std");
  for (int j = 0; j < P; j++) {
    sn_tensor_set(&mean->value, j, 0.5 * j);
    sn_tensor_set(&std->value, j, 1 + j);
  }
  assert_int_equal(sn_params_copy_fixed(other->params, model->params, &err), SN_OK);
  assert_int_equal(sn_encoder_input_create_all(other->encoder, batch, 64, 1, SN_F32, &in, &err), SN_OK);
  for (int64_t i = 0; i < sample->n_tokens * P; i++) {
    const int64_t j = i % P;
    const double expected = i == 3 ? 0 : (sample->patches[i] - 0.5 * (double)j) / (1 + (double)j);
    assert_true(fabs(in->patches[i] - expected) < 1e-6);
  }
  for (int64_t i = sample->n_tokens * P; i < 64 * P; i++) assert_true(in->patches[i] == 0);
  sn_encoder_input_destroy(in);
  sn_token_batch_destroy(batch);
  sn_sample_destroy(sample);
  sn_model_destroy(model);
  sn_model_destroy(other);
  sn_source_destroy(source);
  sn_config_destroy(config);
}

/* --- end to end --------------------------------------------------------------------------------------------------- */

static sn_status train(const char *run, const char *extra, bool resume, int64_t stop_after, sn_train_result *result,
                       sn_error *err) {
  char settings[1024];
  snprintf(settings, sizeof settings, "train.steps=6\ntrain.pack_tokens=64\ntrain.checkpoint_every=2\ntrain.ema=0.9\n"
                                      "train.threads=2\n%s", extra);
  sn_config *config = make_config(settings);
  sn_run_data *data = NULL;
  sn_status status = sn_run_data_open(config, run, resume, NULL, &data, err);
  if (status == SN_OK) {
    sn_train_options o = {.config = config, .source = sn_run_data_source(data), .run = run, .resume = resume,
                          .stop_after = stop_after};
    status = sn_train(&o, result, err);
  }
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  return status;
}

static void assert_same_file(const char *a, const char *b, const char *name) {
  char path[512], *data[2];
  int64_t n[2];
  for (int i = 0; i < 2; i++) {
    sn_stream *stream;
    snprintf(path, sizeof path, "%s/%s", i ? b : a, name);
    assert_int_equal(sn_stream_open(path, &stream, NULL), SN_OK);
    assert_int_equal(sn_stream_read_all(stream, 1 << 28, &data[i], &n[i], NULL), SN_OK);
    sn_stream_close(stream);
  }
  assert_int_equal(n[0], n[1]);
  assert_memory_equal(data[0], data[1], (size_t)n[0]);
  for (int i = 0; i < 2; i++) sn_free(data[i]);
}

/* Spectral tokens train, resume to the same bytes, and load for others with their statistics; a run is not resumed with
 * tokens of another kind. */
static void test_runs(void **state) {
  static const char *const SETTINGS[] = {
      "data.tokens=log_rfft\nmodel.input=standardized\nmae.target=waveform\n",
      "mae.target=spectrum\nmae.target_standardize=true\n",
      "data.tokens=stft\ndata.spectrum_normalize=patch\nmae.target=spectrum\nmae.loss=smooth_l1\nmae.pooled_weight=0.1\n"};
  char root[64] = "/tmp/sonde_stage_XXXXXX";
  sn_error err;
  assert_non_null(mkdtemp(root));
  for (int i = 0; i < 3; i++) {
    char whole[96], parts[96];
    sn_train_result r;
    snprintf(whole, sizeof whole, "%s/whole%d", root, i);
    snprintf(parts, sizeof parts, "%s/parts%d", root, i);
    if (train(whole, SETTINGS[i], false, 0, &r, &err) != SN_OK) fail_msg("%s", err.message);
    assert_true(isfinite(r.loss));
    assert_int_equal(train(parts, SETTINGS[i], false, 3, &r, &err), SN_OK);
    assert_int_equal(train(parts, SETTINGS[i], true, 0, &r, &err), SN_OK);
    assert_true(r.resumed && r.start_step == 2);
    assert_same_file(whole, parts, "checkpoints/step-000000006/model.safetensors");
    assert_same_file(whole, parts, "checkpoints/step-000000006/ema.safetensors");
    assert_same_file(whole, parts, "checkpoints/step-000000006/optimizer.safetensors");
    assert_same_file(whole, parts, "metrics.jsonl");
    char with_ema[512];
    snprintf(with_ema, sizeof with_ema, "train.ema=0.9\n%s", SETTINGS[i]);
    sn_config *config = make_config(with_ema);
    sn_model *model;
    if (sn_model_load(whole, config, -1, true, NULL, &model, NULL, &err) != SN_OK) fail_msg("%s", err.message);
    for (int64_t k = 0; k < sn_params_count(model->params); k++) {
      const sn_param *p = sn_params_at(model->params, k);
      if (p->fixed && strstr(p->name, ".std") != NULL) assert_true(sn_tensor_get(&p->value, 0) > 0);
    }
    sn_model_destroy(model);
    sn_config_destroy(config);
  }
  char first[96];
  sn_train_result r;
  snprintf(first, sizeof first, "%s/whole0", root);
  assert_int_equal(train(first, "train.steps=8\ndata.tokens=log_rfft\nmodel.input=standardized\nmae.target=waveform\n"
                                "data.spectrum_floor=0.01\n", true, 0, &r, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "data have changed"));
  assert_int_equal(sn_remove_tree(root, NULL), SN_OK);
}

static void test_memory(void **state) {
  sn_config *config = make_config("data.tokens=log_rfft\n");
  sn_source *plain = make_source();
  sn_error err;
  const sn_token_stage_options o = {.rate_hz = 20, .window_patches = 5, .targets = BOTH, .n_targets = 2};
  for (fault_begin(); fault_next();) {
    sn_sample *sample = NULL;
    sn_source source = *plain;
    sn_status status = sn_token_stage_attach(&source, config, &o, &err);
    if (status == SN_OK) status = sn_source_read(&source, 0, 0, 0, 0, &sample, &err);
    fault_check(status);
    sn_sample_destroy(sample);
    if (source.stage != NULL) source.stage->vtable->destroy(source.stage);
  }
  sn_source_destroy(plain);
  sn_config_destroy(config);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_plain_tokens_are_untouched), cmocka_unit_test(test_tokens_and_targets),
      cmocka_unit_test(test_stft_tokens),                cmocka_unit_test(test_unmeasured_tokens),
      cmocka_unit_test(test_refusals),                   cmocka_unit_test(test_packs_carry_targets),
      cmocka_unit_test(test_neuro_target),
      cmocka_unit_test(test_statistics),                 cmocka_unit_test(test_standardized_input),
      cmocka_unit_test(test_runs),                       cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
