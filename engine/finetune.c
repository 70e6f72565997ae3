#include "engine/finetune.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/train_config.h"

/* --- weights ------------------------------------------------------------------------------------------------------ */

static bool is_left_out(const sn_config *config, const char *name) {
  for (int64_t i = 0; i < sn_config_list_length(config, "finetune.leave_out"); i++) {
    const char *prefix = sn_config_list_text(config, "finetune.leave_out", i);
    if (prefix[0] != '\0' && strncmp(name, prefix, strlen(prefix)) == 0) return true;
  }
  return false;
}

/* The tensors of the encoder: everything but the head. */
static sn_status list_encoder(const sn_params *params, sn_named_tensor **list, int64_t *n, int64_t *fresh,
                              sn_error *err) {
  SN_TRY(sn_alloc(list, sn_params_count(params), sizeof **list, "encoder weights", err));
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    const sn_param *p = sn_params_at(params, i);
    if (sn_supervised_is_head(p->name)) {
      (*fresh)++;
      continue;
    }
    (*list)[(*n)++] = (sn_named_tensor){.name = p->name, .tensor = p->value};
  }
  return SN_OK;
}

/* Nothing in the file but encoder weights and what is left out by name. */
static sn_status check_names(const char *path, const sn_config *config, const sn_named_tensor *list, int64_t n,
                             int64_t *left_out, sn_error *err) {
  sn_safetensors *file = NULL;
  sn_status status;
  SN_TRY(sn_safetensors_open(path, &file, err));
  status = SN_OK;
  for (int64_t i = 0; i < sn_safetensors_count(file) && status == SN_OK; i++) {
    const char *name = sn_safetensors_entry(file, i).name;
    bool known = false;
    for (int64_t k = 0; k < n && !known; k++) known = strcmp(list[k].name, name) == 0;
    if (known) continue;
    if (is_left_out(config, name)) (*left_out)++;
    else
      status = sn_fail(err, SN_E_STATE, "%s: weight '%s' is none of the encoder's, and none of finetune.leave_out's "
                       "prefixes covers it: name its prefix there if it is to be left", path, name);
  }
  sn_safetensors_close(file);
  return status;
}

static sn_status load_named(const char *path, const sn_config *config, sn_params *params, sn_weight_report *report,
                            sn_error *err) {
  sn_named_tensor *list = NULL;
  int64_t n = 0;
  sn_load_report loaded;
  sn_status status;
  SN_TRY_GOTO(list_encoder(params, &list, &n, &report->fresh, err), done);
  SN_TRY_GOTO(check_names(path, config, list, n, &report->left_out, err), done);
  /* Partial only because of what was just found to be left out on purpose: anything else is an error here. */
  SN_TRY_GOTO(sn_safetensors_load(path, "", true, list, n, &loaded, err), done);
  report->matched = loaded.matched;
  if (loaded.missing > 0 || loaded.wrong_shape > 0 || loaded.matched != n || loaded.unexpected != report->left_out)
    status = sn_fail(err, SN_E_STATE,
                     "%s: of %lld encoder weights %lld match, %lld are missing (%s), %lld have another "
                     "shape (%s): the run and the data or settings given do not fit",
                     path, (long long)n, (long long)loaded.matched, (long long)loaded.missing, loaded.first_missing,
                     (long long)loaded.wrong_shape, loaded.first_wrong);
done:
  sn_free(list);
  return status;
}

static sn_status check_patch_step(const char *path, double patch_step, sn_error *err) {
  sn_train_state state;
  sn_json *json = NULL;
  SN_TRY(sn_checkpoint_read_state(path, &state, &json, err));
  sn_json_destroy(json);
  if (fabs(state.patch_step - patch_step) <= 1e-9 * fabs(patch_step)) return SN_OK;
  return sn_fail(err, SN_E_STATE,
                 "%s: pretrained on patches of %g s, those given here are %g s apart: keep data.patch and "
                 "data.rate as they were",
                 path, state.patch_step, patch_step);
}

sn_status sn_finetune_load_encoder(const char *run, int64_t step, bool use_ema, double patch_step,
                                   const sn_config *config, const sn_log *log, sn_params *params,
                                   sn_weight_report *report, sn_error *err) {
  char *path = NULL, *file = NULL;
  memset(report, 0, sizeof *report);
  sn_status status = sn_checkpoint_find(run, step, log, &path, &report->step, err);
  if (status == SN_END)
    return sn_fail(err, SN_E_STATE, "%s: there is no complete checkpoint%s to start from", run,
                   step >= 0 ? " of that step" : "");
  if (status != SN_OK) return status;
  SN_TRY_GOTO(check_patch_step(path, patch_step, err), done);
  SN_TRY_GOTO(sn_path_join(path, use_ema ? "ema.safetensors" : "model.safetensors", &file, err), done);
  SN_TRY_GOTO(load_named(file, config, params, report, err), done);
  for (int64_t i = 0; i < sn_params_count(params); i++) sn_params_at(params, i)->version++;
  sn_log_write(
      log, SN_LOG_INFO, "%s step %lld: %lld encoder weights matched, %lld left out (%s...), %lld of the head new", run,
      (long long)report->step, (long long)report->matched, (long long)report->left_out,
      sn_config_list_length(config, "finetune.leave_out") > 0 ? sn_config_list_text(config, "finetune.leave_out", 0)
                                                              : "",
      (long long)report->fresh);
done:
  sn_free(file);
  sn_free(path);
  return status;
}

/* --- model -------------------------------------------------------------------------------------------------------- */

typedef struct finetuning {
  const sn_finetune_options *options;
  sn_weight_report weights;
  double *outputs;   /* (n_validation, K) */
  uint8_t *present;
} finetuning;

static sn_status make_model(const sn_finetune_options *o, const sn_model_shape *shape, sn_dtype residual,
                            sn_model **out, sn_error *err) {
  const sn_config *c = o->config;
  const uint64_t seed = (uint64_t)sn_config_int(c, "train.seed");
  sn_model *model = NULL;
  sn_status status;
  sn_supervised_options head = o->head;
  SN_TRY(sn_pool_parse(sn_config_text(c, "finetune.pool"), &head.pool, err));
  head.dropout = sn_config_real(c, "finetune.dropout");
  head.label_smoothing = sn_config_real(c, "finetune.label_smoothing");
  head.value_loss = strcmp(sn_config_text(c, "finetune.value_loss"), "l2") == 0 ? SN_VALUE_L2 : SN_VALUE_SMOOTH_L1;
  SN_TRY(sn_model_create(c, shape, residual, seed, false, &model, err));
  sn_objective_setup setup = {.config = c, .params = model->params, .encoder = model->encoder, .seed = seed,
                              .pack_slots = shape->pack_slots, .pack_samples = shape->pack_samples,
                              .max_tokens = shape->max_tokens, .residual = residual};
  SN_TRY_GOTO(sn_supervised_create(&setup, &head, &model->objective, err), fail);
  /* Each parameter has a stream of its own: the encoder's start stays what it was. */
  sn_params_init(model->params, seed);
  *out = model;
  return SN_OK;
fail:
  sn_model_destroy(model);
  return status;
}

static sn_status create_model(void *user, const sn_config *config, const sn_model_shape *shape, sn_dtype residual,
                              sn_model **out, sn_error *err) {
  finetuning *f = user;
  sn_model *model = NULL;
  sn_status status;
  SN_TRY(make_model(f->options, shape, residual, &model, err));
  if (f->options->pretrained != NULL)
    SN_TRY_GOTO(sn_finetune_load_encoder(f->options->pretrained, f->options->pretrained_step,
                                         sn_config_bool(config, "finetune.ema"), shape->patch_step, config,
                                         &f->options->log, model->params, &f->weights, err),
                fail);
  *out = model;
  return SN_OK;
fail:
  sn_model_destroy(model);
  return status;
}

/* --- phases ------------------------------------------------------------------------------------------------------- */

static bool mode_is(const sn_config *config, const char *mode) {
  return strcmp(sn_config_text(config, "finetune.mode"), mode) == 0;
}

static sn_status begin_phase(void *user, sn_model *model, int phase, sn_error *err) {
  const finetuning *f = user;
  const sn_config *c = f->options->config;
  const bool frozen = mode_is(c, "head") || (mode_is(c, "head_then_full") && phase == 0);
  for (int64_t i = 0; i < sn_params_count(model->params); i++) {
    sn_param *p = sn_params_at(model->params, i);
    p->frozen = p->fixed || (frozen && !sn_supervised_is_head(p->name));
  }
  return SN_OK;
}

static sn_status make_phases(const sn_config *c, sn_train_task *task, sn_error *err) {
  const int64_t steps = sn_config_int(c, "train.steps");
  const double lr = sn_config_real(c, "train.lr"), head_lr = sn_config_real(c, "finetune.head_lr");
  task->n_phases = 1;
  task->phases[0] = (sn_train_phase){.last = steps, .lr = mode_is(c, "head") ? head_lr : lr};
  if (!mode_is(c, "head_then_full")) return SN_OK;
  const int64_t head = (int64_t)(sn_config_real(c, "finetune.head_share") * (double)steps + 0.5);
  if (head < 1 || head >= steps)
    return sn_fail(err, SN_E_ARGUMENT, "finetune.head_share %g of %lld steps leaves a phase without steps: use "
                   "finetune.mode head or full, or another share", sn_config_real(c, "finetune.head_share"),
                   (long long)steps);
  task->n_phases = 2;
  task->phases[0] = (sn_train_phase){.last = head, .lr = head_lr};
  task->phases[1] = (sn_train_phase){.first = head, .last = steps, .lr = lr};
  return SN_OK;
}

/* --- validation and prediction ------------------------------------------------------------------------------------ */

static sn_status predict(const sn_finetune_options *o, const sn_model *model, sn_device *device, sn_dtype product,
                         const int64_t *windows, int64_t n, double *outputs, uint8_t *present,
                         sn_feature_report *report, sn_error *err) {
  sn_feature_options options = {.n_threads = sn_config_int(o->config, "train.loader_threads"), .product = product,
                                .log = o->log};
  float *features = NULL;
  const int64_t k = o->head.n_outputs;
  sn_status status;
  SN_TRY(sn_pool_parse(sn_config_text(o->config, "finetune.pool"), &options.pool, err));
  const int64_t width = sn_pool_width(options.pool, model->encoder, o->fixed->max_tokens);
  SN_TRY_GOTO(sn_alloc(&features, n * width, sizeof *features, "pooled features", err), done);
  SN_TRY_GOTO(sn_features_extract(device, model, o->fixed, windows, n, &options, features, present, report, err), done);
  sn_supervised_head(model->objective, features, n, outputs);
  for (int64_t i = 0; i < n; i++)
    if (!present[i]) memset(outputs + i * k, 0, (size_t)k * sizeof *outputs);
done:
  sn_free(features);
  return status;
}

static sn_status evaluate(void *user, const sn_model *model, sn_device *device, sn_dtype product,
                          sn_train_scores *scores, sn_error *err) {
  finetuning *f = user;
  const sn_finetune_options *o = f->options;
  sn_feature_report report;
  SN_TRY(predict(o, model, device, product, o->validation, o->n_validation, f->outputs, f->present, &report, err));
  return o->score(o->score_user, f->outputs, f->present, scores, err);
}

static sn_status check(const sn_finetune_options *o, sn_error *err) {
  if (o->n_validation < 1) return sn_fail(err, SN_E_ARGUMENT, "fine-tuning: the validation part has no window");
  if (o->train->patch_size != o->fixed->patch_size || o->train->n_channel_ids != o->fixed->n_channel_ids)
    return sn_fail(err, SN_E_STATE, "fine-tuning: windows to train on and to predict differ in shape");
  return SN_OK;
}

sn_status sn_finetune(const sn_finetune_options *options, sn_finetune_result *result, sn_error *err) {
  const sn_config *c = options->config;
  finetuning f = {.options = options};
  sn_train_task task = {.user = &f, .create_model = create_model, .begin_phase = begin_phase, .evaluate = evaluate,
                        .layer_decay = sn_config_real(c, "finetune.layer_decay"),
                        .n_layers = sn_config_int(c, "model.depth") + 1,
                        .eval_every = sn_config_int(c, "finetune.eval_every"),
                        .patience = sn_config_int(c, "finetune.patience")};
  sn_status status;
  memset(result, 0, sizeof *result);
  SN_TRY(check(options, err));
  SN_TRY(make_phases(c, &task, err));
  SN_TRY_GOTO(sn_alloc(&f.outputs, options->n_validation * options->head.n_outputs, sizeof *f.outputs, "outputs", err),
              done);
  SN_TRY_GOTO(sn_alloc(&f.present, options->n_validation, 1, "outputs", err), done);
  sn_train_options train = {.config = c,
                            .source = options->train,
                            .run = options->run,
                            .task = &task,
                            .resume = options->resume,
                            .stop = options->stop,
                            .stop_after = options->stop_after,
                            .log = options->log,
                            .progress = options->progress,
                            .progress_user = options->progress_user};
  status = sn_train(&train, &result->train, err);
  result->weights = f.weights;
done:
  sn_free(f.outputs);
  sn_free(f.present);
  return status;
}

sn_status sn_finetune_predict(const sn_finetune_options *options, int64_t step, const int64_t *windows, int64_t n,
                              double *outputs, uint8_t *present, sn_feature_report *report, sn_error *err) {
  const sn_config *c = options->config;
  char *path = NULL;
  int64_t found;
  sn_json *json = NULL;
  sn_model *model = NULL;
  sn_device *device = NULL;
  sn_train_state state;
  sn_dtype residual, product;
  const char *name;
  sn_device_options device_options = {.n_threads = (int)sn_config_int(c, "train.threads"), .log = options->log};
  sn_status status = sn_checkpoint_find(options->run, step, &options->log, &path, &found, err);
  if (status == SN_END)
    return sn_fail(err, SN_E_STATE, "%s: the checkpoint of step %lld is gone", options->run, (long long)step);
  if (status != SN_OK) return status;
  SN_TRY_GOTO(sn_checkpoint_read_state(path, &state, &json, err), done);
  sn_model_shape shape = {.patch_size = state.patch_size, .n_channel_ids = state.n_channel_ids,
                          .patch_step = state.patch_step, .pack_slots = state.pack_slots,
                          .pack_samples = state.pack_samples, .max_tokens = state.max_tokens,
                          .most_positions = state.most_positions, .most_series = state.most_series,
                          .n_extra = state.n_extra, .embed_extra = state.embed_extra};
  SN_TRY_GOTO(sn_device_create_cpu(&device_options, &device, err), done);
  sn_train_dtypes(c, device, &residual, &product, &name);
  SN_TRY_GOTO(make_model(options, &shape, SN_F32, &model, err), done);
  SN_TRY_GOTO(sn_checkpoint_load(path, model->params, false, false, err), done);
  status = predict(options, model, device, product, windows, n, outputs, present, report, err);
done:
  sn_model_destroy(model);
  sn_device_destroy(device);
  sn_json_destroy(json);
  sn_free(path);
  return status;
}
