/* Settings of fine-tuning, and how they decide those of the training loop. */
#include <stdio.h>
#include <string.h>

#include "engine/finetune.h"
#include "engine/run.h"

const sn_config_entry sn_finetune_config[] = {
    {"finetune.mode", SN_CONFIG_CHOICE, "head_then_full", 0, 0, NULL, "head|full|head_then_full",
     "what learns: the head on a frozen encoder, everything, or one after the other"},
    {"finetune.steps", SN_CONFIG_INT, "300", 1, 1e9, NULL, NULL, "optimiser steps, both phases together"},
    {"finetune.head_share", SN_CONFIG_REAL, "0.25", 0, 1, NULL, NULL,
     "head_then_full: share of the steps for the head alone"},
    {"finetune.lr", SN_CONFIG_REAL, "5e-4", 0, 10, NULL, NULL, "peak learning rate where everything learns"},
    {"finetune.head_lr", SN_CONFIG_REAL, "5e-3", 0, 10, NULL, NULL, "peak learning rate where the head alone learns"},
    {"finetune.min_lr", SN_CONFIG_REAL, "1e-6", 0, 10, NULL, NULL, "learning rate at the end of a phase"},
    {"finetune.warmup", SN_CONFIG_REAL, "0.1", 0, 1, NULL, NULL, "share of a phase's steps that warms up"},
    {"finetune.layer_decay", SN_CONFIG_REAL, "0.75", 0.01, 1, NULL, NULL,
     "learning rate of a layer over that of the layer above it; 1: the same for all"},
    {"finetune.weight_decay", SN_CONFIG_REAL, "0.05", 0, 10, NULL, NULL, "decoupled weight decay"},
    {"finetune.beta2", SN_CONFIG_REAL, "0.999", 0, 0.99999, NULL, NULL, "AdamW"},
    {"finetune.clip", SN_CONFIG_REAL, "1", 0, 1e9, NULL, NULL, "global gradient norm; 0: no clipping"},
    {"finetune.label_smoothing", SN_CONFIG_REAL, "0.1", 0, 0.99, NULL, NULL,
     "classes: share of the target spread over all"},
    {"finetune.class_weight", SN_CONFIG_CHOICE, "balanced", 0, 0, NULL, "balanced|none",
     "classes: weight of a class, n / (K n_class) over the recordings trained on"},
    {"finetune.value_loss", SN_CONFIG_CHOICE, "smooth_l1", 0, 0, NULL, "l2|smooth_l1",
     "values: distance after standardising"},
    {"finetune.drop_path", SN_CONFIG_REAL, "0.1", 0, 0.9, NULL, NULL,
     "stochastic depth of the last block, linear from 0"},
    {"finetune.dropout", SN_CONFIG_REAL, "0", 0, 0.9, NULL, NULL, "dropout of the pooled features"},
    {"finetune.pool", SN_CONFIG_CHOICE, "mean_max_std", 0, 0, NULL, "mean|mean_max_std|cls",
     "what the head sees of a window"},
    {"finetune.batch_tokens", SN_CONFIG_INT, "1600", 64, 1e9, NULL, NULL, "tokens of one pack (train.pack_tokens)"},
    {"finetune.packs_per_step", SN_CONFIG_INT, "1", 1, 65536, NULL, NULL,
     "packs of one step; more than one are accumulated"},
    {"finetune.crop", SN_CONFIG_CHOICE, "random", 0, 0, NULL, "none|random",
     "start of the windows trained on (data.crop)"},
    {"finetune.eval_every", SN_CONFIG_INT, "25", 1, 1e9, NULL, NULL,
     "steps from one validation (and checkpoint) to the next"},
    {"finetune.patience", SN_CONFIG_INT, "0", 0, 1e9, NULL, NULL,
     "validations without a better score before the run ends; 0: it runs to its last step"},
    {"finetune.metric", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL,
     "what the best step is chosen by; default: the reported metric"},
    {"finetune.validation_folds", SN_CONFIG_INT, "5", 2, 100, NULL, NULL,
     "one of so many parts of the training people validates"},
    {"finetune.seed", SN_CONFIG_INT, "0", 0, 9e15, NULL, NULL, "of the head's start, order, crops and dropout"},
    {"finetune.ema", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "start from the run's moving average of the weights"},
    {"finetune.leave_out", SN_CONFIG_TEXTS, "decoder.", 0, 0, NULL, NULL,
     "prefixes of weights of the run that are not the encoder's and are left where they are"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

/* What resolve copies. */
static const char *const DECIDES[][2] = {{"train.steps", "finetune.steps"},
                                         {"train.lr", "finetune.lr"},
                                         {"train.min_lr", "finetune.min_lr"},
                                         {"train.warmup", "finetune.warmup"},
                                         {"train.weight_decay", "finetune.weight_decay"},
                                         {"train.beta2", "finetune.beta2"},
                                         {"train.clip", "finetune.clip"},
                                         {"train.pack_tokens", "finetune.batch_tokens"},
                                         {"train.packs_per_step", "finetune.packs_per_step"},
                                         {"train.seed", "finetune.seed"},
                                         {"train.checkpoint_every", "finetune.eval_every"},
                                         {"model.drop_path", "finetune.drop_path"},
                                         {"data.crop", "finetune.crop"}};
/* What is the same in every fine-tuning run. */
static const char *const FIXED[][2] = {{"train.beta1", "0.9"}, {"train.schedule", "cosine"}, {"train.ema", "0"},
                                       {"train.keep_last", "1"}, {"train.keep_every", "0"},
                                       {"train.freeze", ""},   {"train.renew", ""},   {"init.run", ""},
                                       {"train.start_lr", "0"}, {"train.ipe_scale", "1"}, {"train.milestones", ""},
                                       {"train.weight_decay_end", "-1"}};
enum { N_DECIDES = sizeof DECIDES / sizeof DECIDES[0], N_FIXED = sizeof FIXED / sizeof FIXED[0] };

const char *sn_finetune_decides(const char *key) {
  for (int i = 0; i < N_DECIDES; i++)
    if (strcmp(key, DECIDES[i][0]) == 0) return DECIDES[i][1];
  for (int i = 0; i < N_FIXED; i++)
    if (strcmp(key, FIXED[i][0]) == 0) return "finetune.mode";
  return NULL;
}

sn_status sn_finetune_config_create(sn_config **out, sn_error *err) {
  const sn_config_entry *more[1] = {sn_finetune_config};
  return sn_run_config_create_with(more, 1, out, err);
}

sn_status sn_finetune_config_from_run(const char *run, sn_config **out, sn_error *err) {
  sn_config *config = NULL;
  SN_TRY(sn_finetune_config_create(&config, err));
  sn_status status = sn_run_load_config_into(run, config, err);
  if (status != SN_OK) {
    sn_config_destroy(config);
    return status;
  }
  sn_config_drop_phases(config); /* of the pretraining; this run has its own */
  *out = config;
  return SN_OK;
}

static sn_status copy(sn_config *config, const char *to, const char *from, sn_error *err) {
  char text[64];
  switch (sn_config_find(config, from)->type) {
    case SN_CONFIG_INT: snprintf(text, sizeof text, "%lld", (long long)sn_config_int(config, from)); break;
    case SN_CONFIG_REAL: snprintf(text, sizeof text, "%.17g", sn_config_real(config, from)); break;
    default: snprintf(text, sizeof text, "%s", sn_config_text(config, from)); break;
  }
  return sn_config_set(config, to, text, from, -1, err);
}

sn_status sn_finetune_config_resolve(sn_config *config, sn_error *err) {
  for (int i = 0; i < N_DECIDES; i++)
    if (sn_config_has_key(config, DECIDES[i][0])) SN_TRY(copy(config, DECIDES[i][0], DECIDES[i][1], err));
  for (int i = 0; i < N_FIXED; i++) SN_TRY(sn_config_set(config, FIXED[i][0], FIXED[i][1], "finetune", -1, err));
  if (strcmp(sn_config_text(config, "train.dtype"), "f64") == 0)
    return sn_fail(err, SN_E_UNSUPPORTED, "train.dtype f64: fine-tuning runs in f32 or bf16");
  return SN_OK;
}
