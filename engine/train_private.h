/* What the two files of the training loop share: train.c (set-up, phases, steps) and train_record.c (what is kept). */
#ifndef SN_ENGINE_TRAIN_PRIVATE_H
#define SN_ENGINE_TRAIN_PRIVATE_H

#include "datasets/loader.h"
#include "engine/init_run.h"
#include "engine/metrics.h"
#include "engine/model.h"
#include "engine/monitor.h"
#include "engine/optimizer.h"
#include "engine/run.h"
#include "engine/statistics.h"
#include "engine/step.h"
#include "engine/train.h"
#include "engine/train_config.h"

typedef struct sn_trainer {
  const sn_train_options *options;
  const sn_config *config; /* of the run */
  sn_comm *comm, *own_comm;
  sn_device *device;
  sn_model *model;
  sn_loader *loader;
  sn_step_engine *engine;
  sn_monitor *monitor;   /* NULL: none */
  sn_metrics *metrics;   /* rank 0 */
  sn_train_task task;
  int phase;             /* whose model this is */
  int64_t total;         /* steps of all phases */
  sn_dtype residual, product;
  sn_optimizer_options optimizer;
  sn_schedule schedule;  /* of the phase, over its own steps */
  sn_train_state state;
  sn_json *resumed;      /* state.json, until the ledger is read */
  const char *dtype;
  int64_t in_phase;      /* steps of this call since the phase began */
  int64_t primitives_at_10, primitives_before; /* created after step 10 of earlier phases */
  double loss;
} sn_trainer;

/* The settings in force. */
const sn_config *sn_trainer_settings(const sn_trainer *t);

/* Build, machine, data and shapes into the state. */
void sn_trainer_fill_identity(sn_trainer *t);
/* The newest checkpoint of the run that is resumed: *path NULL when there is none, and the run begins anew. */
SN_MUST_CHECK sn_status sn_trainer_find_checkpoint(sn_trainer *t, char **path, sn_train_state *old, sn_error *err);
/* What a checkpoint holds into model and state; SN_E_STATE where the run was another. */
SN_MUST_CHECK sn_status sn_trainer_load_checkpoint(sn_trainer *t, const char *path, const sn_train_state *old, sn_error *err);
/* Ledgers of all ranks into every rank, so that the next step sees the same on each. */
SN_MUST_CHECK sn_status sn_trainer_exchange_ledgers(sn_trainer *t, int64_t n_new, sn_error *err);
/* Collective: rank 0 writes. */
SN_MUST_CHECK sn_status sn_trainer_write_checkpoint(sn_trainer *t, sn_error *err);
/* A line of metrics.jsonl and timing.jsonl; rank 0. */
SN_MUST_CHECK sn_status sn_trainer_write_metrics(sn_trainer *t, const sn_step_sums *sums, const sn_term_gradients *compared, double lr, double grad_norm, bool updated,
                               double ms, double wait_ms, const int64_t seen[3], const sn_train_scores *scores,
                               sn_error *err);

#endif
