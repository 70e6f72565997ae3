/* A training step that is taken apart: data, loader, model and step of engine/train.c without run folder and metrics. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "benchmarks/speed/speed_families.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "engine/presets.h"
#include "engine/train_config.h"
#ifndef SONDE_MINIMAL
#include "modalities/ecg/synth_ecg.h"
#endif

typedef struct model_setting {
  const char *name, *preset, *tokens, *patch, *sample_tokens, *more;
} model_setting;

/* The ECG presets' models. Tokens of a step and of a sample are the benchmark's own: they fit a small machine. */
#define LONG_CONTEXT                                                                                                     \
  "synthetic.channels=300\nmodel.attention=crisscross\nmodel.checkpoint=true\nmodel.position=fourier4d\n" \
  "model.channel=none\nmae.mask_ratio=0.1\n"
static const model_setting MODELS[] = {
    {"vit_t", "ecg-tiny", "6400", "20", "50", ""},
    {"vit_s", "ecg-small", "3200", "20", "200", ""},
    {"vit_b", "ecg-base", "1600", "20", "200", ""},
    {"long_48000", "synthetic-tiny", "48000", "48", "48000", LONG_CONTEXT},
    {"long_96000", "synthetic-tiny", "96000", "48", "96000", LONG_CONTEXT},
    {"long_191100", "synthetic-tiny", "191100", "48", "191100", LONG_CONTEXT},
};

static sn_status set_all(sn_config *config, const char *const pairs[][2], int n, sn_error *err) {
  for (int i = 0; i < n; i++) SN_TRY(sn_config_set(config, pairs[i][0], pairs[i][1], "benchmark", -1, err));
  return SN_OK;
}

static sn_status make_config(sn_speed_trainer *t, const sn_speed_options *options, const char *model, const char *dtype,
                             const char *dir, sn_error *err) {
  const model_setting *m = NULL;
  for (size_t i = 0; i < sizeof MODELS / sizeof MODELS[0]; i++)
    if (strcmp(MODELS[i].name, model) == 0) m = &MODELS[i];
  if (m == NULL) return sn_fail(err, SN_E_ARGUMENT, "benchmark: no model '%s'", model);
  SN_TRY(sn_run_config_create(&t->config, err));
  SN_TRY(sn_preset_apply(t->config, m->preset, NULL, err));
  char tokens[32];
  snprintf(tokens, sizeof tokens, "%lld", (long long)options->pack_tokens);
  const char *const pairs[][2] = {{"train.pack_tokens", options->pack_tokens > 0 ? tokens : m->tokens},
                                  {"train.dtype", dtype},
                                  {"data.dir", dir},
                                  {"data.subject", "recording"},
                                  {"synthetic.windows", "4096"},
                                  {"synthetic.patch", m->patch},
                                  {"synthetic.tokens_least", m->sample_tokens},
                                  {"synthetic.tokens_most", m->sample_tokens}};
  SN_TRY(sn_config_load_pairs(t->config, m->more, "benchmark", err));
  return set_all(t->config, pairs, (int)(sizeof pairs / sizeof pairs[0]), err);
}

/* --- the slow source: the clock of the thread decides, so that a thread that is not running does no work ------------------- */

static sn_status slow_read(sn_source *source, int64_t index, uint64_t seed, uint64_t epoch, int64_t view,
                           sn_sample **out, sn_error *err) {
  sn_speed_trainer *t = source->self;
  sn_source *inner = sn_run_data_source(t->data);
  SN_TRY(inner->vtable->read(inner, index, seed, epoch, view, out, err));
  struct timespec a, b;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
  do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
  while ((b.tv_sec - a.tv_sec) * 1000000 + (b.tv_nsec - a.tv_nsec) / 1000 < t->busy_us);
  return SN_OK;
}

static sn_source *inner_of(const sn_source *source) { return sn_run_data_source(((sn_speed_trainer *)source->self)->data); }
static int64_t slow_tokens(const sn_source *s, int64_t i) { return inner_of(s)->vtable->nominal_tokens(inner_of(s), i); }
static int64_t slow_recording(const sn_source *s, int64_t i) { return inner_of(s)->vtable->recording(inner_of(s), i); }
static const char *slow_describe(const sn_source *s, int64_t i) { return inner_of(s)->vtable->describe(inner_of(s), i); }

static const sn_source_vtable SLOW = {.name = "slow", .read = slow_read, .nominal_tokens = slow_tokens,
                                      .recording = slow_recording, .describe = slow_describe};

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static sn_status collate(void *user, const sn_token_batch *batch, const uint64_t *epochs, void **work, sn_error *err) {
  const sn_objective *objective = ((sn_speed_trainer *)user)->model->objective;
  return objective->vtable->collate(objective, batch, epochs, work, err);
}

static void free_work(void *user, void *work) {
  if (work != NULL) ((sn_speed_trainer *)user)->model->objective->vtable->free_work(work);
}

static sn_status create_loader(sn_speed_trainer *t, int64_t n_threads, bool with_collate, sn_loader **out, sn_error *err) {
  sn_loader_options o = {.pack_tokens = sn_config_int(t->config, "train.pack_tokens"), .packs_per_step = 1,
                         .n_threads = n_threads, .prefetch_steps = 4, .n_ranks = 1, .max_bad_share = 0, .user = t};
  sn_objective_needs needs;
  SN_TRY(sn_objective_get_needs(t->config, &needs, err));
  o.sampling = needs.sampling;
  if (with_collate) {
    o.collate = collate;
    o.free_work = free_work;
  }
  return sn_loader_create(t->source, &o, out, err);
}

static sn_status write_cohort(const sn_speed_options *options, sn_error *err) {
#ifdef SONDE_MINIMAL
  return sn_fail(err, SN_E_UNSUPPORTED, "benchmark: the minimal build reads no recordings");
#else
  sn_synth_ecg_options synth = sn_synth_ecg_defaults();
  int64_t written;
  synth.n_subjects = 20;
  return sn_synth_ecg_write(&synth, options->folder, &written, err);
#endif
}

static sn_status build_model(sn_speed_trainer *t, const sn_speed_options *options, int64_t loader_threads, sn_error *err) {
  const sn_config *c = t->config;
  const sn_source *s = t->source;
  sn_loader *probe = NULL;
  sn_dtype residual, product;
  const char *dtype;
  SN_TRY(create_loader(t, 0, false, &probe, err));
  sn_model_shape shape = {.patch_size = s->patch_size, .n_channel_ids = s->n_channel_ids, .patch_step = s->patch_step_s,
                          .pack_slots = sn_loader_pack_slots(probe), .pack_samples = sn_loader_pack_samples(probe),
                          .max_tokens = s->max_tokens, .most_positions = s->most_positions,
                          .most_series = s->most_series};
  sn_loader_destroy(probe);
  sn_device_options device = {.n_threads = options->n_threads, .log = options->log};
  SN_TRY(sn_comm_create_single(&t->comm, err));
  SN_TRY(sn_device_create_cpu(&device, &t->device, err));
  sn_train_dtypes(c, t->device, &residual, &product, &dtype);
  SN_TRY(sn_model_create(c, &shape, residual, 0, true, &t->model, err));
  SN_TRY(sn_params_set_decay(t->model->params, "tokens", err));
  SN_TRY(sn_params_prepare_training(t->model->params, false, err));
  SN_TRY(sn_step_engine_create(t->device, t->model->params, t->model->objective, residual, product, t->comm, &t->engine,
                               err));
  return create_loader(t, loader_threads, true, &t->loader, err);
}

sn_status sn_speed_trainer_open(sn_speed_trainer *t, const sn_speed_options *options, const char *model,
                                const char *dtype, const char *data, int64_t loader_threads, sn_error *err) {
  memset(t, 0, sizeof *t);
  t->cpu_time = options->cpu_time;
  const bool ecg = strcmp(data, "ecg") == 0;
  if (ecg) SN_TRY(write_cohort(options, err));
  SN_TRY(make_config(t, options, model, dtype, ecg ? options->folder : "synthetic", err));
  SN_TRY(sn_run_data_open(t->config, NULL, false, NULL, &t->data, err));
  t->source = sn_run_data_source(t->data);
  if (strcmp(data, "busy") == 0) {
    t->slow = *t->source;
    t->slow.vtable = &SLOW;
    t->slow.self = t;
    t->source = &t->slow;
  }
  t->memory_before = sn_speed_memory_mib();
  const sn_config *c = t->config;
  t->optimizer = (sn_optimizer_options){.beta1 = sn_config_real(c, "train.beta1"), .beta2 = sn_config_real(c, "train.beta2"),
                                        .eps = sn_config_real(c, "train.eps"),
                                        .weight_decay = sn_config_real(c, "train.weight_decay"),
                                        .clip = sn_config_real(c, "train.clip"), .layer_decay = 1};
  t->lr = 1e-4;
  return build_model(t, options, loader_threads, err);
}

void sn_speed_trainer_close(sn_speed_trainer *t) {
  sn_step_engine_destroy(t->engine);
  sn_loader_destroy(t->loader);
  sn_model_destroy(t->model);
  sn_device_destroy(t->device);
  sn_comm_destroy(t->comm);
  sn_run_data_destroy(t->data);
  sn_config_destroy(t->config);
}

sn_status sn_speed_trainer_step(sn_speed_trainer *t, const sn_step *step, double *ms, sn_error *err) {
  void *works[1] = {step->packs[0].work};
  sn_optimizer_result updated;
  const double start = sn_speed_now_ms(t->cpu_time);
  SN_TRY(sn_step_gradients(t->engine, 1, works, (uint64_t)t->updates, -1, &t->sums, err));
  if (!t->sums.has_terms) return sn_fail(err, SN_E_STATE, "benchmark: a step without a target");
  SN_TRY(sn_optimizer_step(t->device, t->model->params, &t->optimizer, t->lr, ++t->updates, &updated, err));
  *ms = sn_speed_now_ms(t->cpu_time) - start;
  if (!updated.finite || !isfinite(t->sums.loss))
    return sn_fail(err, SN_E_STATE, "benchmark: step %lld: loss %g, gradient norm %g", (long long)t->updates, t->sums.loss,
                   updated.grad_norm);
  return SN_OK;
}
