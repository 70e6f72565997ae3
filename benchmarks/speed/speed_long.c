/* Long context: one sample of 48,000 to 191,100 tokens (300 sensors, up to 637 patches each: 150 s at 4.25 patches a second).
 *
 * A step is one whole optimiser step of a masked autoencoder (the model of ecg-tiny: width 128, 4 blocks, decoder 96 wide with
 * one) with criss-cross attention in encoder and decoder, activation checkpointing and fourier4d places; a tenth of the
 * tokens is hidden, so that the encoder sees nine tenths of the sample and the decoder all of it.  It is run once, cold:
 * the time holds the reservation of memory and the making of primitives.
 * The forward pass is the same encoder with full attention over every token, without gradients. */
#include <stdio.h>
#include <string.h>

#include "benchmarks/speed/speed_families.h"
#include "core/alloc.h"
#include "engine/train_config.h"

sn_status sn_speed_long_step(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  sn_speed_trainer *t = NULL;
  sn_step *step = NULL;
  double ms;
  sn_status status;
  SN_TRY(sn_alloc(&t, 1, sizeof *t, "benchmark", err));
  SN_TRY_GOTO(sn_speed_trainer_open(t, options, setting, "auto", "synthetic", 0, err), done);
  SN_TRY_GOTO(sn_loader_next(t->loader, &step, err), done);
  SN_TRY_GOTO(sn_speed_trainer_step(t, step, &ms, err), done);
  const double tokens = (double)step->packs[0].batch->n_tokens;
  row->n_threads = t->device->n_threads;
  sn_speed_put(row, "tokens", tokens);
  sn_speed_put(row, "ms", ms);
  sn_speed_put(row, "tok_per_s", 1e3 * tokens / ms);
  sn_speed_put(row, "model_gflops", 1e-6 * t->sums.flops / ms);
  sn_speed_put(row, "peak_mib", sn_speed_peak_mib() - t->memory_before);
  sn_speed_put(row, "activations_mib", (double)sn_step_engine_arena_bytes(t->engine) / 1048576);
  sn_speed_put(row, "kib_per_token", (double)sn_step_engine_arena_bytes(t->engine) / 1024 / tokens);
  sn_speed_put(row, "loss", t->sums.loss);
done:
  if (step != NULL) sn_step_destroy(t->loader, step);
  sn_speed_trainer_close(t);
  sn_free(t);
  return status;
}

/* --- full attention, forward -------------------------------------------------------------------------------------- */

typedef struct forward_pass {
  sn_config *config;
  sn_source *source;
  sn_model *model;
  sn_token_batch *batch;
  sn_encoder_input *input;
  sn_device *device;
  sn_arena *arena;
  sn_tape *tape;
  sn_dtype product;
} forward_pass;

static void release(forward_pass *f) {
  sn_tape_destroy(f->tape);
  sn_arena_destroy(f->arena);
  sn_device_destroy(f->device);
  sn_encoder_input_destroy(f->input);
  sn_token_batch_destroy(f->batch);
  sn_model_destroy(f->model);
  sn_source_destroy(f->source);
  sn_config_destroy(f->config);
}

static sn_status build(forward_pass *f, const sn_speed_options *options, int64_t tokens, sn_error *err) {
  enum { PATCH = 48, CHANNELS = 300 };
  const sn_synthetic_options o = {.n_windows = 1, .patch_size = PATCH, .tokens_least = tokens, .tokens_most = tokens,
                                  .n_channels = CHANNELS};
  sn_sample *sample = NULL;
  sn_dtype residual;
  const char *dtype;
  const int64_t slots = sn_round_up(tokens, SN_TOKEN_BUCKET);
  SN_TRY(sn_source_create_synthetic(&o, &f->source, err));
  SN_TRY(f->source->vtable->read(f->source, 0, 0, 0, 0, &sample, err));
  const sn_sample *samples[1] = {sample};
  const sn_status packed = sn_token_batch_pack(samples, 1, &f->batch, err);
  sn_sample_destroy(sample);
  if (packed != SN_OK) return packed;
  SN_TRY(sn_run_config_create(&f->config, err));
  SN_TRY(sn_config_load_pairs(f->config, "model.width=128\nmodel.depth=4\nmodel.heads=4\nmodel.position=fourier4d\n"
                              "model.channel=none\n", "benchmark", err));
  const sn_model_shape shape = {.patch_size = PATCH, .n_channel_ids = CHANNELS, .patch_step = f->source->patch_step_s,
                                .pack_slots = slots, .pack_samples = 1, .max_tokens = tokens,
                                .most_positions = f->source->most_positions, .most_series = CHANNELS};
  SN_TRY(sn_model_create(f->config, &shape, SN_F32, 0, false, &f->model, err));
  SN_TRY(sn_encoder_input_create_all(f->model->encoder, f->batch, slots, 1, SN_F32, &f->input, err));
  sn_device_options device = {.n_threads = options->n_threads, .log = options->log};
  SN_TRY(sn_device_create_cpu(&device, &f->device, err));
  sn_train_dtypes(f->config, f->device, &residual, &f->product, &dtype);
  const sn_tape_options tape = {.residual = SN_F32, .product = f->product, .training = false};
  SN_TRY(sn_arena_create(false, &f->arena, err));
  return sn_tape_create(f->device, f->arena, &tape, &f->tape, err);
}

/* Bytes that the pass takes: a dry run. */
static sn_status measure(forward_pass *f, int64_t *bytes, sn_error *err) {
  const sn_tape_options options = {.residual = SN_F32, .product = f->product, .training = false};
  sn_arena *measuring = NULL;
  sn_tape *dry = NULL;
  sn_value *y;
  sn_status status;
  SN_TRY_GOTO(sn_arena_create(true, &measuring, err), done);
  SN_TRY_GOTO(sn_tape_create(f->device, measuring, &options, &dry, err), done);
  SN_TRY_GOTO(sn_encoder_forward(dry, &y, f->model->encoder, f->input, 0, SN_F32, err), done);
  *bytes = sn_arena_high_water(measuring);
done:
  sn_tape_destroy(dry);
  sn_arena_destroy(measuring);
  return status;
}

sn_status sn_speed_long_forward(const sn_speed_options *options, const char *setting, sn_speed_row *row, sn_error *err) {
  long long tokens;
  forward_pass half = {0}, whole = {0};
  int64_t half_bytes, bytes;
  sn_value *y;
  sn_status status;
  if (sscanf(setting, "%lld", &tokens) != 1) return sn_fail(err, SN_E_STATE, "benchmark: setting '%s'", setting);
  const double before = sn_speed_memory_mib();
  SN_TRY_GOTO(build(&half, options, tokens / 2, err), done);
  SN_TRY_GOTO(measure(&half, &half_bytes, err), done);
  release(&half);
  half = (forward_pass){0};
  SN_TRY_GOTO(build(&whole, options, tokens, err), done);
  SN_TRY_GOTO(measure(&whole, &bytes, err), done);
  SN_TRY_GOTO(sn_arena_reserve(whole.arena, bytes, err), done);
  const double start = sn_speed_now_ms(options->cpu_time);
  SN_TRY_GOTO(sn_encoder_forward(whole.tape, &y, whole.model->encoder, whole.input, 0, SN_F32, err), done);
  const double ms = sn_speed_now_ms(options->cpu_time) - start;
  row->n_threads = whole.device->n_threads;
  sn_speed_put(row, "tokens", (double)whole.batch->n_tokens);
  sn_speed_put(row, "ms", ms);
  sn_speed_put(row, "model_gflops", 1e-6 * sn_tape_flops(whole.tape) / ms);
  sn_speed_put(row, "peak_mib", sn_speed_peak_mib() - before);
  sn_speed_put(row, "activations_mib", (double)bytes / 1048576);
  sn_speed_put(row, "times_half", (double)bytes / (double)half_bytes); /* 2: linear; 4: it would be a matrix of scores */
done:
  release(&half);
  release(&whole);
  return status;
}
