#include "engine/model.h"

#include <string.h>

#include "core/alloc.h"
#include "engine/phases.h"

sn_status sn_model_create(const sn_config *config, const sn_model_shape *shape, sn_dtype residual, uint64_t seed,
                          bool with_objective, sn_model **out, sn_error *err) {
  sn_model *m = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "model", err));
  m->shape = *shape;
  m->residual = residual;
  SN_TRY_GOTO(sn_params_create(residual, &m->params, err), fail);
  sn_encoder_data data = {.patch_size = shape->patch_size, .n_channel_ids = shape->n_channel_ids,
                          .step = shape->patch_step, .most_positions = shape->most_positions,
                          .most_series = shape->most_series, .n_extra = shape->n_extra,
                          .embed_extra = shape->embed_extra, .channel_name = shape->channel_name};
  SN_TRY_GOTO(sn_encoder_create(m->params, config, &data, &m->encoder, err), fail);
  m->n_encoder = sn_params_count(m->params);
  if (with_objective) {
    sn_objective_setup setup = {.config = config, .params = m->params, .encoder = m->encoder,
                                .seed = (uint64_t)sn_config_int(config, "train.seed"),
                                .pack_slots = shape->pack_slots, .pack_samples = shape->pack_samples,
                                .max_tokens = shape->max_tokens, .n_targets = shape->n_targets,
                                .targets = shape->targets, .n_labels = shape->n_labels, .labels = shape->labels,
                                .residual = residual};
    SN_TRY_GOTO(sn_objective_create(&setup, &m->objective, err), fail);
  }
  sn_params_init(m->params, seed);
  *out = m;
  return SN_OK;
fail:
  sn_model_destroy(m);
  return status;
}

sn_status sn_model_load(const char *run, const sn_config *config, int64_t step, bool use_ema, const sn_log *log,
                        sn_model **out, sn_train_state *state, sn_error *err) {
  char *path = NULL;
  int64_t found;
  sn_json *json = NULL;
  sn_model *model = NULL;
  sn_train_state local;
  sn_status status = sn_checkpoint_find(run, step, log, &path, &found, err);
  if (status == SN_END)
    return sn_fail(err, SN_E_STATE, "%s: there is no complete checkpoint%s to load", run, step >= 0 ? " of that step" : "");
  if (status != SN_OK) return status;
  if (state == NULL) state = &local;
  SN_TRY_GOTO(sn_checkpoint_read_state(path, state, &json, err), done);
  sn_model_shape shape = {.patch_size = state->patch_size, .n_channel_ids = state->n_channel_ids,
                          .patch_step = state->patch_step, .pack_slots = state->pack_slots,
                          .pack_samples = state->pack_samples, .max_tokens = state->max_tokens,
                          .most_positions = state->most_positions, .most_series = state->most_series,
                          .n_extra = state->n_extra, .embed_extra = state->embed_extra, .n_targets = state->n_targets};
  memcpy(shape.targets, state->targets, sizeof shape.targets);
  const sn_config *phase = NULL;
  SN_TRY_GOTO(sn_phases_config_at(config, state->step, &phase, err), done);
  SN_TRY_GOTO(sn_model_create(phase, &shape, SN_F32, 0, true, &model, err), done);
  if (use_ema && !sn_model_keeps_average(phase)) {
    status = sn_fail(err, SN_E_ARGUMENT, "%s: no moving average of the weights was kept (train.ema is 0): leave out --ema", run);
    goto done;
  }
  SN_TRY_GOTO(sn_checkpoint_load(path, model->params, false, use_ema, err), done);
  *out = model;
  model = NULL;
done:
  sn_model_destroy(model);
  sn_json_destroy(json);
  sn_free(path);
  return status;
}

bool sn_model_keeps_average(const sn_config *config) {
  sn_objective_needs needs;
  if (sn_config_real(config, "train.ema") > 0) return true;
  return sn_objective_get_needs(config, &needs, NULL) == SN_OK && needs.moving_average;
}

void sn_model_destroy(sn_model *model) {
  if (model == NULL) return;
  sn_objective_destroy(model->objective);
  sn_encoder_destroy(model->encoder);
  sn_params_destroy(model->params);
  sn_free(model);
}
