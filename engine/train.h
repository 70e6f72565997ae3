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
#include "kernels/comm/comm.h"

typedef struct sn_progress {
  int64_t step, steps;
  double loss, lr, tokens_per_s, seconds_left, loader_wait_ms, epoch;
} sn_progress;

typedef struct sn_train_options {
  const sn_config *config;
  sn_source *source;                 /* borrowed */
  const char *run;                   /* folder; made when it is not there */
  sn_comm *comm;                     /* NULL: a single rank */
  bool resume;                       /* go on from the newest complete checkpoint; from step 0 when there is none */
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
  bool resumed;
  int64_t start_step;
  int64_t primitives_after_10; /* library primitives created after the tenth step: 0 is right */
  int64_t parameters;
  char dtype[8];
} sn_train_result;

SN_MUST_CHECK sn_status sn_train(const sn_train_options *options, sn_train_result *result, sn_error *err);

#endif
