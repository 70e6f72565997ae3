/* Monitors: what the encoder makes of the data while it is pretrained, and rules that say when it has collapsed or learns no more.
 *
 * Every monitor.every steps, after the update, all tokens of the step's own packs go through the encoder once more, without
 * masks, dropout and gradients; where the objective has a moving-average target, through the target encoder as well.  The
 * values (engine/monitor_values.h) are a function of the weights and of those tokens alone, sums run in the order of packs, and
 * every rank has the rows of all: metrics.jsonl is the same after a resume, and 2 ranks say what one says.
 *
 *   monitor_std            std over tokens of each dimension, averaged; of the target encoder where there is one
 *   monitor_rank           effective rank of the pooled rows, of at most SN_MONITOR_ROWS of them
 *   monitor_uniformity     log mean exp(-2 |z_i - z_j|^2) of the pooled rows over their norms
 *   monitor_entropy        of each pooled row's similarities to the others, 1: none is nearer than another
 *   monitor_agreement      mean cosine of encoder and target, token by token; NaN without a target
 *   monitor_input_share    share of the tokens' variance that comes from the input rather than from the place (channel, position)
 *   monitor_subject_knn, monitor_subject_chance   how often the nearest other window is one of the same subject
 *   collapsed, plateau     0 or 1, by the rules
 *
 * COLLAPSE: monitor_std below monitor.collapse_std, or monitor_input_share below SN_MONITOR_LEAST_INPUT, at two observations in a
 * row.  Said once, with what to do; monitor.on_collapse: stop ends the run, saved.
 * PLATEAU: the mean loss of monitor.plateau_steps steps is held against the lowest such mean so far; when it is not lower by more
 * than the share monitor.plateau_gain, the run is on a plateau since the end of that best stretch, until one is.  Stretches that
 * are lower by less leave the best one as it is, so that a slow descent is no plateau for ever.  A phase begins anew.
 * Sources: signals_and_probes.md S4; small_scale.md. */
#ifndef SN_ENGINE_MONITOR_H
#define SN_ENGINE_MONITOR_H

#include "core/config.h"
#include "core/log.h"
#include "datasets/loader.h"
#include "engine/metrics.h"
#include "engine/model.h"
#include "kernels/comm/comm.h"

enum { SN_MONITOR_ROWS = 256 };
#define SN_MONITOR_LEAST_INPUT 0.02

extern const sn_config_entry sn_monitor_config[];

typedef struct sn_monitor_values {
  double std, rank, uniformity, entropy, agreement, input_share, subject_knn, subject_chance;
} sn_monitor_values;

typedef struct sn_monitor sn_monitor;

typedef struct sn_monitor_setup {
  const sn_config *run;    /* monitor.* */
  const sn_config *phase;  /* the encoder and the objective: those of the model */
  sn_model *model;         /* after sn_params_prepare_training; outlives every observation */
  sn_device *device;
  sn_dtype product;
  sn_comm *comm;
  sn_log log;              /* used by rank 0 */
} sn_monitor_setup;

/* *out NULL where monitor.every is 0; every function below accepts that and does nothing. */
SN_MUST_CHECK sn_status sn_monitor_create(const sn_monitor_setup *setup, sn_monitor **out, sn_error *err);
void sn_monitor_destroy(sn_monitor *monitor);

/* After every step, collective. done: steps done, this one among them; loss: NaN where it had no target. The rules' memory is
 * state, which goes into the checkpoint. */
SN_MUST_CHECK sn_status sn_monitor_step(sn_monitor *monitor, const sn_step *step, int64_t done, double loss,
                                        sn_monitor_state *state, sn_error *err);
/* Into the line of the step just seen, when it was observed. */
void sn_monitor_write(const sn_monitor *monitor, const sn_monitor_state *state, sn_metrics *metrics);
/* Whether the step just seen is one to stop at: the same on every rank. */
bool sn_monitor_stops(const sn_monitor *monitor);
/* SN_E_STATE with the reason. */
SN_MUST_CHECK sn_status sn_monitor_stopped(const sn_monitor *monitor, sn_error *err);
/* Library primitives that the first observation created, once; 0 otherwise. */
int64_t sn_monitor_primitives(const sn_monitor *monitor);
const sn_monitor_values *sn_monitor_last(const sn_monitor *monitor); /* NULL: none yet */

#endif
