/* A pretraining run, from complete settings to its last checkpoint in a run folder: what `sonde pretrain` does, and what a
 * suite does for each of its runs. */
#ifndef SN_ENGINE_PRETRAIN_H
#define SN_ENGINE_PRETRAIN_H

#include "engine/train.h"

/* What can be found wrong with settings before the data are looked at: keys that are missing or change nothing, phases, objectives.
 * *steps [out, may be NULL]: of all phases. */
SN_MUST_CHECK sn_status sn_pretrain_check(sn_config *config, int64_t *steps, sn_error *err);

/* Settings that the result does not depend on, such as train.prefetch. */
bool sn_pretrain_is_neutral(const char *key);

typedef struct sn_pretrain_options {
  sn_config *config; /* checked; what the data decide is filled in before it is written to config.yaml */
  const char *run;   /* folder, held while it trains (engine/run_folder.h) */
  bool resume;       /* go on with what stands there, from step 0 where there is no checkpoint yet. Settings on which the
                        result depends and that are otherwise than the run's are logged, and mark it inexact */
  const volatile sig_atomic_t *stop;
  sn_log log;
  void (*progress)(void *user, const sn_progress *progress);
  void *progress_user;
} sn_pretrain_options;

/* Statuses of sn_run_folder_take, sn_run_data_open and sn_train. *result [out] is filled in every case. */
SN_MUST_CHECK sn_status sn_pretrain(const sn_pretrain_options *options, sn_train_result *result, sn_error *err);

#endif
