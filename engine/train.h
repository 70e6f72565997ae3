/* The training loop.
 *
 * N steps equal k steps, an interruption at any moment, and N - k steps: same bytes of weights, moments, moving average
 * and metrics.jsonl, for the same build, instruction set and number of compute threads (all three are stored; with
 * others the run goes on, says so once and marks itself).  Loader threads never matter. */
#ifndef SN_ENGINE_TRAIN_H
#define SN_ENGINE_TRAIN_H

#include <signal.h>

#include "core/config.h"
#include "core/log.h"
#include "datasets/source.h"
#include "engine/checkpoint.h"
#include "engine/model.h"
#include "engine/phases.h"
#include "kernels/comm/comm.h"

/* What is trained, where it is not the pretraining that the configuration names (NULL in the options).  Fine-tuning is
 * one.
 *
 * PHASES cover [0, train.steps) in order, on one model.  Each has its own warm-up and schedule over its own steps, and
 * begins with fresh moments, so that what was frozen before starts as in a new run.  (Those of a pretraining
 * configuration: engine/phases.h.)
 * EVALUATION every eval_every steps and at the end gives a score (more is better); a checkpoint is written there, and
 * the best one's is kept whatever train.keep_last says.  Best step and score are part of the checkpoint, so that a
 * resumed run decides the same. */
enum { SN_TRAIN_SCORES = 4 };

typedef struct sn_train_scores {
  double score;        /* what the best step is chosen by; NaN: undefined, never chosen */
  double tie;          /* of equal scores the larger of these wins (a small part makes coarse metrics), then the
                          earlier step */
  int n;
  const char *names[SN_TRAIN_SCORES]; /* keys in metrics.jsonl */
  double values[SN_TRAIN_SCORES];
} sn_train_scores;

typedef struct sn_train_task {
  void *user;
  /* Like sn_model_create; the model is the trainer's. */
  sn_status (*create_model)(void *user, const sn_config *config, const sn_model_shape *shape, sn_dtype residual,
                            sn_model **out, sn_error *err);
  double layer_decay;  /* learning rate of layer l is lr * layer_decay^(n_layers - l) (objectives.md O3); 1: none */
  int64_t n_layers;
  int n_phases;
  sn_train_phase phases[SN_TRAIN_PHASES];
  /* Sets what is frozen in a phase: a pure function of its number.  The last phase freezes least.  NULL: nothing. */
  sn_status (*begin_phase)(void *user, sn_model *model, int phase, sn_error *err);
  int64_t eval_every;  /* 0: no evaluation */
  int64_t patience;    /* evaluations of the last phase without a better score before the run ends; 0: never */
  /* Fills *scores (which comes zeroed, score NaN) from the model as it is; the model is only read. */
  sn_status (*evaluate)(void *user, const sn_model *model, sn_device *device, sn_dtype product, sn_train_scores *scores,
                        sn_error *err);
} sn_train_task;

typedef struct sn_progress {
  int64_t step, steps;      /* done, of all phases */
  double loss, lr;          /* of the step just done; NaN loss: it had no target */
  double tokens_per_s;      /* of the step, all ranks */
  double seconds_left;      /* at the pace of the step just done */
  double loader_wait_ms;    /* how long the step waited for its data */
  double epoch;             /* passes over the windows, fractional */
} sn_progress;

typedef struct sn_train_options {
  const sn_config *config;
  sn_source *source;                 /* borrowed */
  const char *run;                   /* folder; made when it is not there */
  sn_comm *comm;                     /* NULL: a single rank */
  const sn_train_task *task;         /* NULL: pretraining */
  bool resume;                       /* go on from the newest complete checkpoint; from step 0 when there is none */
  bool changed;                      /* resumed with other settings, on which the result depends: the run is marked
                                        inexact, and config.yaml written anew once the checkpoint is loaded */
  const volatile sig_atomic_t *stop; /* not 0: save and return at the end of the step; may be NULL */
  int64_t stop_after;                /* return without saving after this many steps of this call; 0: never (tests) */
  sn_log log;
  void (*progress)(void *user, const sn_progress *progress); /* rank 0, every step; may be NULL */
  void *progress_user;
} sn_train_options;

typedef struct sn_train_result {
  sn_train_state state;
  double loss;                 /* of the last step with terms, NaN if there was none */
  bool stopped;                /* by the stop flag, saved */
  bool resumed;                /* from a checkpoint */
  bool ended_early;            /* by the task's patience */
  int64_t start_step;          /* steps done when this call began */
  int64_t primitives_after_10; /* library primitives created after the tenth step of a phase: 0 is right */
  int64_t parameters;          /* that learn, in the last phase of this call */
  char dtype[8];               /* "f32", "bf16", "f64": train.dtype resolved */
  /* Recordings that the index could not read (all sources), and "PATH: reason" of the first; and how many are in quarantine. */
  int64_t n_unreadable, n_quarantined;
  char first_unreadable[SN_ERROR_MESSAGE + 208];
  /* Recordings whose windows were all rejected by a rule, in the steps of this call, this rank: how many, the first, and
   * why the first window was. */
  int64_t n_silent;
  char first_silent[256], why_rejected[256];
} sn_train_result;

/* Trains until the last step, the stop flag, the task's patience or an error.  *result [out] is filled in every case, with the
 * state reached.
 *   SN_E_ARGUMENT  settings that cannot be trained with (rates, phases, frozen parts, shapes, packs), before the first step
 *   SN_E_STATE     the run to be resumed or begun from does not fit; no step changed anything; too many losses that are not
 *                  finite or recordings in quarantine; another rank failed
 *   SN_E_CORRUPT   no checkpoint of the run is whole
 *   SN_E_IO        a file of the run cannot be written; older checkpoints are untouched
 * Ranks: collective; every rank returns, with the first cause. */
SN_MUST_CHECK sn_status sn_train(const sn_train_options *options, sn_train_result *result, sn_error *err);

#endif
