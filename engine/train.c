#include "engine/train_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "datasets/loader.h"
#include "engine/init_run.h"
#include "engine/metrics.h"
#include "engine/model.h"
#include "engine/monitor.h"
#include "engine/optimizer.h"
#include "engine/run.h"
#include "engine/statistics.h"
#include "engine/step.h"
#include "engine/train_config.h"

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static sn_status collate(void *user, const sn_token_batch *batch, const uint64_t *epochs, void **work, sn_error *err) {
  const sn_objective *objective = ((sn_trainer *)user)->model->objective;
  return objective->vtable->collate(objective, batch, epochs, work, err);
}

static void free_work(void *user, void *work) {
  if (work != NULL) ((sn_trainer *)user)->model->objective->vtable->free_work(work);
}

/* The settings in force. */
const sn_config *sn_trainer_settings(const sn_trainer *t) {
  const sn_config *own = t->task.phases[t->phase].config;
  return own != NULL ? own : t->config;
}

/* A task has no target encoder, whatever the run that it begins from was trained with. */
static bool keeps_average(const sn_trainer *t) {
  return t->options->task == NULL ? sn_model_keeps_average(sn_trainer_settings(t)) : sn_config_real(sn_trainer_settings(t), "train.ema") > 0;
}

static sn_status read_settings(sn_trainer *t, sn_error *err) {
  const sn_config *c = sn_trainer_settings(t);
  const sn_train_phase *p = &t->task.phases[t->phase];
  t->optimizer = (sn_optimizer_options){.beta1 = sn_config_real(c, "train.beta1"),
                                        .beta2 = sn_config_real(c, "train.beta2"),
                                        .eps = sn_config_real(c, "train.eps"),
                                        .weight_decay = sn_config_real(c, "train.weight_decay"),
                                        .clip = sn_config_real(c, "train.clip"),
                                        .ema = sn_config_real(c, "train.ema"), .layer_decay = t->task.layer_decay,
                                        .n_layers = t->task.n_layers};
  return sn_train_schedule(c, p->lr, p->last - p->first, &t->schedule, err);
}

static sn_status create_objective_model(void *user, const sn_config *config, const sn_model_shape *shape,
                                        sn_dtype residual, sn_model **out, sn_error *err) {
  return sn_model_create(config, shape, residual, (uint64_t)sn_config_int(config, "train.seed"), true, out, err);
}

static sn_status choose_task(sn_trainer *t, sn_error *err) {
  t->state.best_step = -1;
  t->state.best_score = t->state.best_tie = NAN;
  if (t->options->task == NULL) {
    t->task = (sn_train_task){.create_model = create_objective_model, .layer_decay = 1};
    SN_TRY(sn_phases_read(t->config, t->task.phases, &t->task.n_phases, err));
    t->total = t->task.phases[t->task.n_phases - 1].last;
    return SN_OK;
  }
  t->task = *t->options->task;
  t->total = sn_config_int(t->config, "train.steps");
  int64_t next = 0;
  for (int i = 0; i < t->task.n_phases; i++) {
    const sn_train_phase *p = &t->task.phases[i];
    if (!(p->lr > 0))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.lr", "train.lr %g: above 0 is needed, or nothing is learned",
                        p->lr);
    if (p->first != next || p->last <= next) next = -1;
    if (next < 0) break;
    next = p->last;
  }
  if (next != t->total)
    return sn_fail(err, SN_E_ARGUMENT, "phases do not cover the %lld steps in order", (long long)t->total);
  return SN_OK;
}

static int phase_of(const sn_trainer *t, int64_t step) {
  int i = 0;
  while (i + 1 < t->task.n_phases && step >= t->task.phases[i].last) i++;
  return i;
}

/* What the phase's objective asks of the sampler. A task brings its own model: single samples. */
static sn_status find_sampling(const sn_trainer *t, sn_loader_options *o, sn_error *err) {
  sn_objective_needs needs = {0};
  if (t->options->task != NULL) return SN_OK;
  SN_TRY(sn_objective_get_needs(sn_trainer_settings(t), &needs, err));
  o->sampling = needs.sampling;
  o->min_gap_s = sn_config_real(t->config, "sampler.min_gap");
  o->max_lag_s = sn_config_real(t->config, "sampler.max_lag");
  if (!needs.label || t->options->source->labels != NULL) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.label", "data.label: the objective %s learns from a number for each "
                    "recording: name it, such as participants:age", sn_config_text(sn_trainer_settings(t), "objective.name"));
}

/* Whether positives are there is not left to be found out from a loss. */
static sn_status log_groups(const sn_trainer *t, const sn_loader_options *o, sn_error *err) {
  sn_loader_groups g;
  if (t->comm->rank != 0) return SN_OK;
  SN_TRY(sn_loader_describe_groups(t->loader, t->state.position, &g, err));
  if (g.n_groups == 0) return SN_OK;
  const char *units = o->sampling.by == SN_GROUP_SUBJECT ? "subjects" : "recordings";
  sn_log_write(&t->options->log, g.n_left_out > 0 && g.n_left_out >= g.n_windows ? SN_LOG_WARNING : SN_LOG_INFO,
               "windows come in groups: %lld an epoch, %.3g windows each, of %lld %s; left out of an epoch: %lld of %lld windows, among "
               "them those of %lld %s that can form no group; a step: %lld windows of %lld %s", (long long)g.n_groups,
               (double)g.n_windows / (double)g.n_groups, (long long)g.n_units, units, (long long)g.n_left_out,
               (long long)(g.n_left_out + g.n_windows), (long long)g.n_alone, units, (long long)g.step_windows,
               (long long)g.step_units, units);
  return SN_OK;
}

static sn_status create_loader(sn_trainer *t, bool at_border, sn_error *err) {
  const sn_config *c = t->config, *phase = sn_trainer_settings(t);
  sn_loader_options o = {.seed = (uint64_t)sn_config_int(c, "train.seed"),
                         .pack_tokens = sn_config_int(phase, "train.pack_tokens"),
                         .packs_per_step = sn_config_int(phase, "train.packs_per_step"),
                         .n_threads = sn_config_int(c, "train.loader_threads"),
                         .prefetch_steps = sn_config_int(c, "train.prefetch"),
                         .rank = t->comm->rank, .n_ranks = t->comm->n_ranks, .start_position = t->state.position,
                         .max_bad_share = sn_config_real(c, "train.max_bad_share"), .log = t->options->log,
                         .collate = collate, .free_work = free_work, .user = t};
  SN_TRY(find_sampling(t, &o, err));
  if (at_border) /* a phase may have other groups than the one before: it begins at the next whole one */
    o.start_position = t->state.position = sn_round_up(t->state.position, sn_loader_group_places(t->options->source, &o.sampling));
  SN_TRY(sn_loader_create(t->options->source, &o, &t->loader, err));
  return log_groups(t, &o, err);
}

/* What the loader must be asked before the model exists: shapes of every pack. */
static sn_status find_shape(sn_trainer *t, sn_model_shape *shape, sn_error *err) {
  const sn_source *s = t->options->source;
  sn_loader_options o = {.pack_tokens = sn_config_int(sn_trainer_settings(t), "train.pack_tokens"),
                         .packs_per_step = sn_config_int(sn_trainer_settings(t), "train.packs_per_step"), .prefetch_steps = 1, .n_ranks = t->comm->n_ranks,
                         .rank = t->comm->rank, .max_bad_share = 1};
  sn_loader *probe = NULL;
  SN_TRY(find_sampling(t, &o, err));
  SN_TRY(sn_loader_create(t->options->source, &o, &probe, err));
  *shape = (sn_model_shape){.patch_size = s->patch_size, .n_channel_ids = s->n_channel_ids,
                            .patch_step = s->patch_step_s, .pack_slots = sn_loader_pack_slots(probe),
                            .pack_samples = sn_loader_pack_samples(probe), .max_tokens = s->max_tokens,
                            .most_positions = s->most_positions, .most_series = s->most_series,
                            .n_extra = s->n_extra, .embed_extra = s->embed_extra, .channel_name = s->channel_name,
                            .n_labels = s->labels != NULL ? s->n_recordings : 0, .labels = s->labels};
  if (s->stage != NULL) {
    shape->n_targets = s->stage->n_targets;
    memcpy(shape->targets, s->stage->targets, sizeof shape->targets);
  }
  sn_loader_destroy(probe);
  return SN_OK;
}

/* --- phases ------------------------------------------------------------------------------------------------------- */

/* A model for the phase's settings, with what learns in it. */
static sn_status make_model(sn_trainer *t, sn_model **out, sn_error *err) {
  sn_model_shape shape;
  sn_model *model = NULL;
  SN_TRY(find_shape(t, &shape, err));
  SN_TRY(t->task.create_model(t->task.user, sn_trainer_settings(t), &shape, t->residual, &model, err));
  sn_status status;
  /* As in the last phase, which freezes least: that is what needs gradients and moments. */
  if (t->task.begin_phase != NULL)
    SN_TRY_GOTO(t->task.begin_phase(t->task.user, model, t->task.n_phases - 1, err), done);
  if (t->options->task == NULL) SN_TRY_GOTO(sn_phases_freeze(sn_trainer_settings(t), model->params, err), done);
  SN_TRY_GOTO(sn_params_set_decay(model->params, sn_config_text(sn_trainer_settings(t), "train.decay_set"), err), done);
  *out = model;
  model = NULL;
done:
  sn_model_destroy(model);
  return status;
}

/* Fixed parameters that are not filled yet. */
static sn_status fit_statistics(const sn_trainer *t, sn_model *model, sn_error *err) {
  return sn_model_fit_statistics(model, t->options->source, sn_config_int(t->config, "train.statistics_windows"),
                                 &t->options->log, err);
}

static bool carries_moments(const sn_trainer *t) {
  return strcmp(sn_config_text(sn_trainer_settings(t), "train.moments"), "carry") == 0;
}

/* Every phase's model, before the first step: what is wrong with the last one is not found after days. */
static sn_status check_phases(sn_trainer *t, sn_error *err) {
  sn_model *before = NULL, *model = NULL;
  sn_status status = SN_OK;
  const int phase = t->phase;
  if (t->options->task != NULL || t->task.n_phases == 1) return SN_OK;
  for (t->phase = 0; t->phase < t->task.n_phases; t->phase++) {
    sn_carry_report report;
    SN_TRY_GOTO(make_model(t, &model, err), done);
    SN_TRY_GOTO(read_settings(t, err), done);
    if (before != NULL) {
      SN_TRY_GOTO(sn_phases_carry(sn_trainer_settings(t), before->params, model->params, true, &report, err), done);
      if (carries_moments(t)) SN_TRY_GOTO(sn_phases_check_moments(sn_trainer_settings(t), before->params, model->params, err), done);
    }
    sn_model_destroy(before);
    before = model;
    model = NULL;
  }
done:
  sn_model_destroy(before);
  sn_model_destroy(model);
  t->phase = phase;
  return status;
}

static void log_phase(const sn_trainer *t, const sn_carry_report *r) {
  const sn_train_phase *p = &t->task.phases[t->phase];
  sn_log_write(&t->options->log, SN_LOG_INFO, "phase %d of %d%s%s%s: steps %lld to %lld, peak rate %g, %lld of %lld weights learn",
               t->phase + 1, t->task.n_phases, p->name != NULL ? " (" : "", p->name != NULL ? p->name : "",
               p->name != NULL ? ")" : "", (long long)p->first + 1, (long long)p->last, p->lr,
               (long long)sn_params_elements(t->model->params, true), (long long)sn_params_elements(t->model->params, false));
  if (r == NULL || (r->fresh == 0 && r->left_behind == 0)) return;
  sn_log_write(&t->options->log, SN_LOG_INFO, "  %lld weights carried over, %lld new%s%s, %lld left behind%s%s",
               (long long)r->carried, (long long)r->fresh, r->fresh > 0 ? ", first " : "", r->first_fresh,
               (long long)r->left_behind, r->left_behind > 0 ? ", first " : "", r->first_left);
}

/* What the steps of a phase run on. Shapes of activations change with what is frozen, so their memory is made anew. */
static sn_status begin_phase(sn_trainer *t, sn_error *err) {
  SN_TRY(read_settings(t, err));
  if (t->task.begin_phase != NULL) SN_TRY(t->task.begin_phase(t->task.user, t->model, t->phase, err));
  sn_step_engine_destroy(t->engine);
  t->engine = NULL;
  t->in_phase = 0;
  sn_objective *o = t->model->objective;
  o->first_step = (uint64_t)t->task.phases[t->phase].first;
  if (o->vtable->begin != NULL) SN_TRY(o->vtable->begin(o, err));
  const sn_monitor_setup monitor = {.run = t->config, .phase = sn_trainer_settings(t), .model = t->model, .device = t->device,
                                    .product = t->product, .comm = t->comm, .log = t->options->log};
  sn_monitor_destroy(t->monitor);
  t->monitor = NULL;
  if (t->options->task == NULL) SN_TRY(sn_monitor_create(&monitor, &t->monitor, err));
  return sn_step_engine_create(t->device, t->model->params, t->model->objective, t->residual, t->product, t->comm,
                               &t->engine, err);
}

static void clear_moments(sn_params *params) {
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    sn_param *p = sn_params_at(params, i);
    if (p->m.data == NULL) continue;
    memset(p->m.data, 0, (size_t)sn_tensor_bytes(&p->m));
    memset(p->v.data, 0, (size_t)sn_tensor_bytes(&p->v));
  }
}

/* The ledger, and an end to the loader: it has read ahead with the masks of the phase that ends. */
static sn_status close_loader(sn_trainer *t, sn_json **ledger, sn_error *err) {
  sn_string text = {0};
  sn_json_writer writer;
  sn_json_writer_init(&writer, &text, 0);
  sn_loader_write_ledger(t->loader, &writer);
  sn_status status = sn_json_writer_finish(&writer, err);
  if (status == SN_OK) status = sn_json_parse(text.data, text.length, "ledger", ledger, err);
  sn_string_free(&text);
  if (status != SN_OK) return status;
  sn_loader_destroy(t->loader);
  t->loader = NULL;
  return SN_OK;
}

/* A pretraining phase has a model of its own (engine/phases.h, AT A BORDER), and a loader, at the position reached. */
static sn_status renew_model(sn_trainer *t, sn_error *err) {
  sn_model *model = NULL;
  sn_carry_report report;
  sn_json *ledger = NULL;
  sn_status status;
  const bool moments = carries_moments(t);
  SN_TRY_GOTO(make_model(t, &model, err), done);
  SN_TRY_GOTO(sn_phases_carry(sn_trainer_settings(t), t->model->params, model->params, false, &report, err), done);
  SN_TRY_GOTO(fit_statistics(t, model, err), done);
  SN_TRY_GOTO(sn_params_prepare_training(model->params, keeps_average(t), err), done);
  sn_phases_carry_state(sn_trainer_settings(t), t->model->params, model->params, moments);
  SN_TRY_GOTO(close_loader(t, &ledger, err), done); /* its threads use the old model */
  sn_step_engine_destroy(t->engine);                /* and so does this */
  t->engine = NULL;
  sn_model_destroy(t->model);
  t->model = model;
  model = NULL;
  sn_trainer_fill_identity(t);
  if (!moments) t->state.phase_updates = t->state.updates;
  SN_TRY_GOTO(create_loader(t, true, err), done);
  SN_TRY_GOTO(sn_loader_read_ledger(t->loader, ledger, err), done);
  log_phase(t, &report);
done:
  sn_json_destroy(ledger);
  sn_model_destroy(model);
  return status;
}

/* Before each step: whether the step belongs to another phase than the last one did. */
static sn_status enter_phase(sn_trainer *t, sn_train_result *result, sn_error *err) {
  const int phase = phase_of(t, t->state.step);
  if (phase == t->phase) return SN_OK;
  t->phase = phase;
  t->state.monitor = (sn_monitor_state){0}; /* another loss, or another rate */
  t->primitives_before = result->primitives_after_10;
  if (t->options->task == NULL) {
    SN_TRY(renew_model(t, err));
    result->parameters = sn_params_elements(t->model->params, true);
  } else {
    clear_moments(t->model->params);
    t->state.phase_updates = t->state.updates;
  }
  return begin_phase(t, err);
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

/* The model of the last step done, from a checkpoint, another run or the seed. */
static sn_status set_up_model(sn_trainer *t, sn_train_result *result, sn_error *err) {
  char *path = NULL;
  sn_train_state old = {0};
  sn_status status;
  SN_TRY_GOTO(sn_trainer_find_checkpoint(t, &path, &old, err), done);
  result->resumed = path != NULL;
  t->phase = old.step > 0 ? phase_of(t, old.step - 1) : 0;
  SN_TRY_GOTO(check_phases(t, err), done);
  SN_TRY_GOTO(make_model(t, &t->model, err), done);
  if (!result->resumed && t->options->task == NULL && sn_init_wanted(t->config)) {
    SN_TRY_GOTO(sn_init_load(t->config, t->model, &t->options->log, err), done);
    if (t->comm->rank == 0) SN_TRY_GOTO(sn_init_inherit(t->config, t->options->run, err), done);
  }
  if (!result->resumed) SN_TRY_GOTO(fit_statistics(t, t->model, err), done);
  SN_TRY_GOTO(sn_params_prepare_training(t->model->params, keeps_average(t), err), done);
  sn_trainer_fill_identity(t);
  SN_TRY_GOTO(sn_make_directories(t->options->run, err), done);
  if (result->resumed) SN_TRY_GOTO(sn_trainer_load_checkpoint(t, path, &old, err), done);
done:
  sn_free(path);
  return status;
}

static sn_status set_up(sn_trainer *t, sn_train_result *result, sn_error *err) {
  const sn_config *c = t->config;
  sn_device_options device = {.n_threads = (int)sn_config_int(c, "train.threads"), .log = t->options->log};
  if (t->options->comm == NULL) SN_TRY(sn_comm_create_single(&t->own_comm, err));
  t->comm = t->options->comm != NULL ? t->options->comm : t->own_comm;
  SN_TRY(sn_device_create_cpu(&device, &t->device, err));
  sn_train_dtypes(c, t->device, &t->residual, &t->product, &t->dtype);
  SN_TRY(choose_task(t, err));
  SN_TRY(set_up_model(t, result, err));
  SN_TRY(create_loader(t, false, err));
  if (t->resumed != NULL) SN_TRY(sn_loader_read_ledger(t->loader, sn_json_get(t->resumed, "ledger"), err));
  SN_TRY(begin_phase(t, err));
  if (t->task.n_phases > 1) log_phase(t, NULL);
  if (t->comm->rank == 0)
    SN_TRY(sn_metrics_open(t->options->run, t->state.metrics_bytes, t->state.events_bytes, &t->metrics, err));
  if (t->options->resume && t->options->changed && t->comm->rank == 0)
    SN_TRY(sn_run_save_config(t->options->run, t->config, err));
  result->start_step = t->state.step;
  result->parameters = sn_params_elements(t->model->params, true);
  snprintf(result->dtype, sizeof result->dtype, "%s", t->dtype);
  return SN_OK;
}

static void tear_down(sn_trainer *t) {
  sn_metrics_close(t->metrics);
  sn_step_engine_destroy(t->engine);
  sn_monitor_destroy(t->monitor);
  sn_loader_destroy(t->loader);
  sn_model_destroy(t->model);
  sn_device_destroy(t->device);
  sn_json_destroy(t->resumed);
  sn_comm_destroy(t->own_comm);
}

/* --- steps -------------------------------------------------------------------------------------------------------- */

static sn_status make_gradients(sn_trainer *t, const sn_step *step, sn_step_sums *sums, sn_term_gradients *compared,
                                sn_error *err) {
  const int64_t every = sn_config_int(sn_trainer_settings(t), "objective.compare_every");
  void **works = NULL;
  sn_status status;
  compared->n_terms = 0;
  SN_TRY(sn_alloc(&works, step->n_packs, sizeof *works, "packs of a step", err));
  for (int64_t i = 0; i < step->n_packs; i++) works[i] = step->packs[i].work;
  if (t->options->task == NULL && every > 0 && t->state.step % every == 0)
    SN_TRY_GOTO(sn_step_compare_terms(t->engine, step->n_packs, works, (uint64_t)t->state.step, t->model->n_encoder, compared,
                                      err),
                done);
  status = sn_step_gradients(t->engine, step->n_packs, works, (uint64_t)t->state.step, -1, sums, err);
done:
  sn_free(works);
  return status;
}

/* Gradients, the guard against what is not finite, and the update. */
static sn_status update(sn_trainer *t, const sn_step *step, sn_step_sums *sums, sn_term_gradients *compared, double lr,
                        sn_optimizer_result *updated, bool *did_update, sn_error *err) {
  *updated = (sn_optimizer_result){.grad_norm = NAN, .finite = true};
  *did_update = false;
  SN_TRY(make_gradients(t, step, sums, compared, err));
  if (!sums->has_terms) {
    t->state.empty_steps++;
    return SN_OK;
  }
  updated->finite = isfinite(sums->loss);
  const sn_objective *o = t->model->objective;
  if (o->vtable->momentum != NULL) t->optimizer.ema = o->vtable->momentum(o, (uint64_t)t->state.step);
  if (updated->finite)
    SN_TRY(sn_optimizer_step(t->device, t->model->params, &t->optimizer, lr,
                             t->state.updates - t->state.phase_updates + 1, updated, err));
  if (!updated->finite) {
    t->state.nonfinite_steps++;
    t->state.nonfinite_in_row++;
    sn_log_write(&t->options->log, SN_LOG_WARNING, "step %lld: loss %g, gradient norm %g: not finite, no update (%lld)",
                 (long long)t->state.step + 1, sums->loss, updated->grad_norm, (long long)t->state.nonfinite_steps);
    if (t->state.nonfinite_in_row > sn_config_int(t->config, "train.max_nonfinite"))
      return sn_fail(err, SN_E_STATE, "step %lld: the %lldth step in a row with a loss or gradient that is not finite "
                     "(train.max_nonfinite %lld): lower train.lr, or look at the data",
                     (long long)t->state.step + 1, (long long)t->state.nonfinite_in_row,
                     (long long)sn_config_int(t->config, "train.max_nonfinite"));
    return SN_OK;
  }
  t->state.nonfinite_in_row = 0;
  t->state.updates++;
  t->loss = sums->loss;
  *did_update = true;
  const sn_objective_vtable *v = t->model->objective->vtable;
  return v->after_step != NULL ? v->after_step(t->model->objective, (uint64_t)t->state.step, err) : SN_OK;
}

static bool evaluates_at(const sn_trainer *t, int64_t step) {
  return t->task.eval_every > 0 && (step % t->task.eval_every == 0 || step == t->total);
}

/* Scores of the step just done, and whether it is the best so far. */
static sn_status evaluate(sn_trainer *t, sn_train_scores *scores, sn_error *err) {
  *scores = (sn_train_scores){.score = NAN};
  if (!evaluates_at(t, t->state.step)) return SN_OK;
  SN_TRY(t->task.evaluate(t->task.user, t->model, t->device, t->product, scores, err));
  const sn_train_state *s = &t->state;
  if (isfinite(scores->score) &&
      (s->best_step < 0 || scores->score > s->best_score ||
       (scores->score == s->best_score && scores->tie > s->best_tie))) {
    t->state.best_step = t->state.step;
    t->state.best_score = scores->score;
    t->state.best_tie = isfinite(scores->tie) ? scores->tie : 0;
  }
  return SN_OK;
}

/* Whether the last phase has gone on for too long without a better score: a function of the state alone. */
static bool out_of_patience(const sn_trainer *t) {
  const int64_t began = t->task.phases[t->task.n_phases - 1].first;
  const int64_t since = t->state.best_step > began ? t->state.best_step : began;
  return t->task.patience > 0 && t->task.eval_every > 0 && evaluates_at(t, t->state.step) &&
         t->state.step - since >= t->task.patience * t->task.eval_every;
}

/* seen: tokens, samples, samples without a beat, windows rejected; then tokens and samples of each source of a mixture. */
enum { SEEN = 4 };

static void count_tokens(const sn_trainer *t, const sn_token_batch *batch, int64_t *seen) {
  seen[0] += batch->n_tokens;
  seen[2] += batch->n_nobeat;
  for (int64_t s = 0; s < batch->n_samples && t->state.n_parts > 0; s++) {
    seen[SEEN + 2 * batch->sources[s]] += batch->offsets[s + 1] - batch->offsets[s];
    seen[SEEN + 1 + 2 * batch->sources[s]]++;
  }
}

static sn_status run_step(sn_trainer *t, sn_step *step, double start_ms, sn_error *err) {
  int64_t seen[SEEN + 2 * SN_MOST_PARTS] = {0, step->n_samples, 0, step->n_rejected};
  sn_step_sums sums;
  sn_term_gradients compared;
  sn_optimizer_result updated;
  bool did_update;
  for (int64_t i = 0; i < step->n_packs; i++)
    if (step->packs[i].batch != NULL) count_tokens(t, step->packs[i].batch, seen);
  SN_TRY(sn_comm_all_reduce_sum(t->comm, seen, SEEN + 2 * t->state.n_parts, SN_I64, err));
  const int64_t in_phase = t->state.step - t->task.phases[t->phase].first;
  const double lr = sn_schedule_at(&t->schedule, in_phase);
  t->optimizer.weight_decay = sn_schedule_decay_at(&t->schedule, sn_config_real(sn_trainer_settings(t), "train.weight_decay"),
                                                   sn_config_real(sn_trainer_settings(t), "train.weight_decay_end"), in_phase);
  SN_TRY(update(t, step, &sums, &compared, lr, &updated, &did_update, err));
  t->state.step++;
  t->state.tokens += seen[0];
  t->state.samples += seen[1];
  for (int64_t k = 0; k < t->state.n_parts; k++) {
    t->state.parts[k].tokens += seen[SEEN + 2 * k];
    t->state.parts[k].samples += seen[SEEN + 1 + 2 * k];
  }
  t->state.rejected += seen[3];
  t->state.position = step->position;
  SN_TRY(sn_monitor_step(t->monitor, step, t->state.step, sums.loss, &t->state.monitor, err));
  t->primitives_at_10 += sn_monitor_primitives(t->monitor); /* its first look creates them, once */
  sn_train_scores scores;
  SN_TRY(evaluate(t, &scores, err));
  if (t->metrics == NULL) return SN_OK;
  const double ms = now_ms() - start_ms;
  SN_TRY(sn_trainer_write_metrics(t, &sums, &compared, lr, updated.grad_norm, did_update, ms, step->wait_ms, seen, &scores, err));
  if (t->options->progress != NULL) {
    sn_progress p = {.step = t->state.step, .steps = t->total, .loss = sums.loss, .lr = lr,
                     .tokens_per_s = ms > 0 ? 1e3 * (double)seen[0] / ms : 0,
                     .seconds_left = 1e-3 * ms * (double)(t->total - t->state.step),
                     .loader_wait_ms = step->wait_ms, .epoch = sn_loader_epoch(t->loader, t->state.position)};
    t->options->progress(t->options->progress_user, &p);
  }
  return SN_OK;
}

/* Steps without any window are not gone on with for ever: after a pass over all of them, or this many steps, none has come. */
enum { MOST_EMPTY_FROM_THE_START = 20 };

static sn_status check_given(const sn_trainer *t, sn_error *err) {
  const char *first, *reason;
  const sn_train_state *s = &t->state;
  if (s->samples > 0 || s->rejected == 0) return SN_OK;
  if (s->step < MOST_EMPTY_FROM_THE_START && s->position < t->options->source->n_windows) return SN_OK;
  (void)sn_loader_silent(t->loader, &first, &reason);
  return sn_fail(err, SN_E_ARGUMENT, "not one of the first %lld windows can be used: look at the recordings (`sonde doctor`) or at "
                 "data.min_valid. All are flat or invalid (first %s: %s)", (long long)s->rejected, first, reason);
}

/* After as many places as there are windows (a pass, but where sources have shares or windows come in groups): recordings of
 * which all that was read was rejected. */
static void warn_of_silent(const sn_trainer *t, int64_t position_before) {
  const int64_t all = t->options->source->n_windows;
  const char *first, *reason;
  if (position_before >= all || t->state.position < all) return;
  const int64_t n = sn_loader_silent(t->loader, &first, &reason);
  if (n > 0)
    sn_log_write(&t->options->log, SN_LOG_WARNING, "recordings without any usable window: %lld, first %s (%s)",
                 (long long)n, first, reason);
}

/* Whether to stop: the same on every rank. */
static sn_status asked_to_stop(sn_trainer *t, bool *stop, sn_error *err) {
  int64_t asked = t->options->stop != NULL && *t->options->stop != 0;
  SN_TRY(sn_comm_all_reduce_sum(t->comm, &asked, 1, SN_I64, err));
  *stop = asked != 0;
  return SN_OK;
}

static sn_status loop(sn_trainer *t, sn_train_result *result, sn_error *err) {
  const int64_t every = sn_config_int(t->config, "train.checkpoint_every");
  int64_t saved = result->resumed ? t->state.step : -1;
  for (int64_t done = 0; t->state.step < t->total; done++) {
    if (out_of_patience(t)) {
      result->ended_early = true;
      break;
    }
    if (t->options->stop_after > 0 && done == t->options->stop_after) return SN_OK;
    sn_step *step = NULL;
    const double start = now_ms();
    SN_TRY(enter_phase(t, result, err));
    SN_TRY(sn_loader_next(t->loader, &step, err));
    const int64_t n_new = step->n_new_quarantined, position = t->state.position;
    sn_status status = run_step(t, step, start, err);
    sn_step_destroy(t->loader, step);
    if (status != SN_OK) return status;
    SN_TRY(check_given(t, err));
    warn_of_silent(t, position);
    SN_TRY(sn_trainer_exchange_ledgers(t, n_new, err));
    if (++t->in_phase == 10) t->primitives_at_10 = t->device->primitives_created;
    if (t->in_phase > 10)
      result->primitives_after_10 = t->primitives_before + t->device->primitives_created - t->primitives_at_10;
    bool stop;
    SN_TRY(asked_to_stop(t, &stop, err));
    if (stop || sn_monitor_stops(t->monitor) || t->state.step % every == 0 || evaluates_at(t, t->state.step) || t->state.step == t->total) {
      SN_TRY(sn_trainer_write_checkpoint(t, err));
      saved = t->state.step;
    }
    SN_TRY(sn_monitor_stopped(t->monitor, err));
    if (stop) {
      result->stopped = true;
      return SN_OK;
    }
  }
  if (saved < 0 || t->state.step == 0)
    return sn_fail(err, SN_E_STATE, "no step was made: train.steps is %lld", (long long)t->total);
  if (t->state.updates == 0)
    return sn_fail(err, SN_E_STATE, "%lld steps changed nothing: %s", (long long)t->state.step,
                   t->state.nonfinite_steps == 0 ? "no sample had a valid target"
                   : t->state.empty_steps == 0   ? "the loss or its gradient was never finite"
                                                 : "the loss or its gradient was not finite, or no sample had a valid target");
  if (t->task.eval_every > 0 && t->state.best_step < 0)
    return sn_fail(err, SN_E_STATE, "%lld steps, and the score on the validation part was never defined",
                   (long long)t->state.step);
  return SN_OK;
}

/* What stopped a run is looked for in its quarantine.tsv, checkpoint or not. Nothing more can be done where that fails. */
static void save_why_stopped(const sn_trainer *t) {
  char *path = NULL;
  sn_error err;
  if (t->loader == NULL || t->comm->rank != 0 || sn_loader_quarantined(t->loader) == 0) return;
  if (sn_path_join(t->options->run, "quarantine.tsv", &path, &err) == SN_OK &&
      sn_loader_save_quarantine(t->loader, path, &err) != SN_OK)
    sn_log_write(&t->options->log, SN_LOG_WARNING, "%s", err.message);
  sn_free(path);
}

sn_status sn_train(const sn_train_options *options, sn_train_result *result, sn_error *err) {
  sn_trainer t = {.options = options, .config = options->config, .loss = NAN};
  memset(result, 0, sizeof *result);
  sn_status status = set_up(&t, result, err);
  if (status == SN_OK) status = loop(&t, result, err);
  if (status != SN_OK) save_why_stopped(&t);
  if (status != SN_OK && t.comm != NULL && t.comm->n_ranks > 1 && err != NULL) sn_comm_abort(t.comm, err);
  result->state = t.state;
  result->loss = t.loss;
  result->n_unreadable = options->source->n_lost;
  snprintf(result->first_unreadable, sizeof result->first_unreadable, "%s", options->source->first_lost);
  if (t.loader != NULL) {
    const char *first, *reason;
    result->n_quarantined = sn_loader_quarantined(t.loader);
    result->n_silent = sn_loader_silent(t.loader, &first, &reason);
    snprintf(result->first_silent, sizeof result->first_silent, "%s", first);
    snprintf(result->why_rejected, sizeof result->why_rejected, "%s", reason);
  }
  tear_down(&t);
  return status;
}
