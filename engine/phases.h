/* Phases of a run: stretches of steps in a fixed order, each with a schedule, settings of the objective and a list of
 * what is frozen of its own.
 *
 * A configuration's `phases:` gives each phase the settings that it has otherwise than the top level.  A phase's
 * train.steps are its own steps; the run's are their sum.  What may differ: objective.name and the objectives' own
 * settings (mae.*), model.dropout, model.drop_path, model.checkpoint, and of train.*: steps, lr, min_lr, schedule,
 * and what belongs to it, weight_decay, weight_decay_end, decay_set, beta1, beta2, eps, clip, ema, freeze, renew,
 * moments, pack_tokens, packs_per_step.  Everything else (data, encoder, seed, dtype, threads, checkpoints) is the run's, and a phase that
 * sets it is refused: such a phase is a run of its own that begins from this one (engine/init_run.h).
 *
 * AT A BORDER the model is made anew from the next phase's settings, and every weight goes over by name with its moving
 * average; a weight of another shape is an error, found before the first step, unless train.renew names it by prefix: such
 * weights begin as in a new run (a head for another target).  What only the new objective has begins
 * as in a new run; what only the old one had is left behind.  Both are logged.  Moments begin at zero and bias
 * correction counts from the border (train.moments fresh), or go over as well (carry: every weight that learns must have
 * learnt in the phase before).  A checkpoint at the border holds the model of the phase that ended.  Counters, order of
 * the data and masks' epochs go on. */
#ifndef SN_ENGINE_PHASES_H
#define SN_ENGINE_PHASES_H

#include "core/config.h"
#include "core/log.h"
#include "kernels/param.h"

enum { SN_TRAIN_PHASES = 16 };

typedef struct sn_train_phase {
  int64_t first, last;     /* steps [first, last) */
  double lr;               /* peak */
  const sn_config *config; /* the phase's own; NULL: the run's */
  const char *name;        /* NULL: without one */
} sn_train_phase;

/* The phases of a pretraining configuration; one that covers train.steps where it has none. phases (SN_TRAIN_PHASES)
 * [out]; they point into config.  SN_E_ARGUMENT naming phase and key: a setting that cannot differ, a learning rate of 0,
 * more than SN_TRAIN_PHASES phases. */
SN_MUST_CHECK sn_status sn_phases_read(const sn_config *config, sn_train_phase *phases, int *n, sn_error *err);
/* The configuration that a checkpoint after `steps` steps was made with: that of the phase of its last step. */
SN_MUST_CHECK sn_status sn_phases_config_at(const sn_config *config, int64_t steps, const sn_config **found,
                                            sn_error *err);

/* Freezes what train.freeze names by prefix ("backbone.", "embed."), nothing else. SN_E_ARGUMENT: a prefix that no weight
 * has (with the names' first parts), or nothing is left that learns. */
SN_MUST_CHECK sn_status sn_phases_freeze(const sn_config *config, sn_params *params, sn_error *err);

typedef struct sn_carry_report {
  int64_t carried, fresh, left_behind; /* tensors */
  char first_fresh[SN_PARAM_NAME], first_left[SN_PARAM_NAME];
} sn_carry_report;

/* config: of the phase that begins. Values of `from` into `to` by name, before sn_params_prepare_training of `to`. SN_E_ARGUMENT: another shape.
 * only_check: nothing is copied. */
SN_MUST_CHECK sn_status sn_phases_carry(const sn_config *config, const sn_params *from, sn_params *to, bool only_check,
                                        sn_carry_report *report, sn_error *err);
/* Moving averages, and moments where `moments`, after sn_params_prepare_training. */
void sn_phases_carry_state(const sn_config *config, const sn_params *from, sn_params *to, bool moments);
/* Whether moments can be carried: all that learns in `to` has learnt in `from`. SN_E_ARGUMENT naming the first. */
SN_MUST_CHECK sn_status sn_phases_check_moments(const sn_config *config, const sn_params *from, const sn_params *to,
                                                sn_error *err);

#endif
