/* A model: parameters, encoder and objective, built from a configuration and the shape of the data, or from a run. */
#ifndef SN_ENGINE_MODEL_H
#define SN_ENGINE_MODEL_H

#include "core/config.h"
#include "encoders/encoder.h"
#include "engine/checkpoint.h"
#include "objectives/objective.h"

typedef struct sn_model_shape {
  int64_t patch_size, n_channel_ids;
  double patch_step;
  int64_t pack_slots, pack_samples, max_tokens;
  int64_t most_positions, most_series; /* of a sample: encoders/position.h; 0: not known */
  int64_t n_extra;         /* of the P values, those that are no signal (datasets/source.h) */
  bool embed_extra;
  const char *(*channel_name)(int64_t id); /* for messages; may be NULL */
  int n_targets;           /* that samples carry beside their tokens */
  sn_target_spec targets[SN_MOST_TARGETS];
  int64_t n_labels;        /* continuous label of each recording (data.label), for objectives; borrowed, NULL: none */
  const double *labels;
} sn_model_shape;

typedef struct sn_model {
  sn_params *params;
  int64_t n_encoder; /* the first n_encoder parameters are the encoder's, the others the objective's */
  sn_encoder *encoder;
  sn_objective *objective;
  sn_model_shape shape;
  sn_dtype residual;
} sn_model;

/* Fresh: initialised from `seed`. with_objective false: the encoder alone. residual F32 or F64. */
SN_MUST_CHECK sn_status sn_model_create(const sn_config *config, const sn_model_shape *shape, sn_dtype residual,
                                        uint64_t seed, bool with_objective, sn_model **out, sn_error *err);
/* From the newest complete checkpoint of a run (step < 0), or that of a step; use_ema takes the moving average
 * (SN_E_ARGUMENT where none was kept).
 * config: the run's own, as sn_run_load_config gives it;
 * of its phases that of the checkpoint is taken. state may be NULL. */
SN_MUST_CHECK sn_status sn_model_load(const char *run, const sn_config *config, int64_t step, bool use_ema,
                                      const sn_log *log, sn_model **out, sn_train_state *state, sn_error *err);
/* Whether training under this configuration keeps a moving average of the weights: train.ema, or an objective that has it as
 * its target. */
bool sn_model_keeps_average(const sn_config *config);
void sn_model_destroy(sn_model *model); /* accepts NULL */

#endif
