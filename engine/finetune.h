/* Fine-tuning: a pretrained encoder with a new head, trained on labels in the same loop as pretraining
 * (engine/train.h), so that a fine-tuning run is a run folder like any other and resumes bit for bit.
 *
 * MODES (finetune.mode).  head: the encoder is frozen, without dropout, and keeps its bytes.  full: everything learns,
 * with layer-wise rates.  head_then_full: the head alone for finetune.head_share of the steps, then everything.
 * WEIGHTS.  Strictly by name: every weight of the encoder must be in the checkpoint with its shape; what the checkpoint
 * has beside them must begin with one of finetune.leave_out ("decoder."); the head is new.  Counts are logged and
 * returned.
 * CHOICE.  Every finetune.eval_every steps the windows of the validation part, which come from training people alone,
 * are scored by the caller; the best step's checkpoint is what predicts. */
#ifndef SN_ENGINE_FINETUNE_H
#define SN_ENGINE_FINETUNE_H

#include "engine/features.h"
#include "engine/train.h"
#include "objectives/supervised.h"

extern const sn_config_entry sn_finetune_config[];

/* The table of a fine-tuning run: that of a pretraining run and finetune.*. */
SN_MUST_CHECK sn_status sn_finetune_config_create(sn_config **out, sn_error *err);
/* The same, filled with the settings of a pretraining run: data, model, encoder. */
SN_MUST_CHECK sn_status sn_finetune_config_from_run(const char *run, sn_config **out, sn_error *err);
/* Sets train.*, model.drop_path and data.crop from finetune.*: after the user's settings, before the run. */
SN_MUST_CHECK sn_status sn_finetune_config_resolve(sn_config *config, sn_error *err);
/* The key of finetune.* that decides a key which resolve sets ("train.lr" -> "finetune.lr"); NULL: resolve leaves it
 * alone. */
const char *sn_finetune_decides(const char *key);

typedef struct sn_weight_report {
  int64_t matched;    /* tensors of the encoder */
  int64_t left_out;   /* tensors of the checkpoint under finetune.leave_out */
  int64_t fresh;      /* tensors of the head */
  int64_t step;       /* of the checkpoint */
} sn_weight_report;

typedef struct sn_finetune_options {
  const sn_config *config;     /* resolved */
  const char *pretrained;      /* run folder that gives the encoder; NULL: random weights */
  int64_t pretrained_step;     /* -1: the newest checkpoint */
  const char *run;             /* folder of this fine-tuning */
  bool resume;
  sn_source *train;            /* windows that are trained on */
  sn_source *fixed;            /* windows without random crops, for validation and prediction */
  const int64_t *validation;   /* (n_validation) windows of fixed */
  int64_t n_validation;
  /* kind, n_outputs, labels, class_weight; the other settings come from config. */
  sn_supervised_options head;
  /* outputs (n_validation, n_outputs): logits or standardised values, zeros where present (n_validation) is 0. */
  sn_status (*score)(void *user, const double *outputs, const uint8_t *present, sn_train_scores *scores, sn_error *err);
  void *score_user;
  sn_log log;
  const volatile sig_atomic_t *stop;
  int64_t stop_after;          /* tests: see engine/train.h */
  void (*progress)(void *user, const sn_progress *progress);
  void *progress_user;
} sn_finetune_options;

typedef struct sn_finetune_result {
  sn_train_result train;       /* train.state.best_step, .best_score */
  sn_weight_report weights;    /* zeros for random weights */
} sn_finetune_result;

SN_MUST_CHECK sn_status sn_finetune(const sn_finetune_options *options, sn_finetune_result *result, sn_error *err);

/* Outputs (n, n_outputs) [out] of a checkpoint of a fine-tuning run (its best step) for windows of options->fixed;
 * present and report as in engine/features.h. */
SN_MUST_CHECK sn_status sn_finetune_predict(const sn_finetune_options *options, int64_t step, const int64_t *windows,
                                            int64_t n, double *outputs, uint8_t *present, sn_feature_report *report,
                                            sn_error *err);

/* Encoder weights of a checkpoint (see WEIGHTS above) into params. use_ema: the moving average. patch_step: of the data
 * that are to be encoded; a checkpoint of another one is SN_E_STATE, for the same number of values would mean another
 * time. */
SN_MUST_CHECK sn_status sn_finetune_load_encoder(const char *run, int64_t step, bool use_ema, double patch_step,
                                                 const sn_config *config, const sn_log *log, sn_params *params,
                                                 sn_weight_report *report, sn_error *err);

#endif
