/* Another run as the start of this one: its weights, by name.
 *
 * init.parts encoder (default): every weight of the encoder must be in the checkpoint with its shape; what it has beside
 * them is its objective's and left where it is.  all: the objective's too, and nothing may be left over.  Patches must
 * have the same step in time: the same number of values would mean another time.
 *
 * WHO WAS SEEN.  The people that the other run was pretrained on count as seen by this one: its split.tsv, and those that
 * it inherited itself, are copied into RUN/inputs/split-N.tsv, where the leakage guard of a probe finds them. */
#ifndef SN_ENGINE_INIT_RUN_H
#define SN_ENGINE_INIT_RUN_H

#include "core/config.h"
#include "core/log.h"
#include "engine/model.h"

extern const sn_config_entry sn_init_config[]; /* init.* */

/* Whether init.run names a run. */
bool sn_init_wanted(const sn_config *config);
/* Weights of the other run into a fresh model. SN_E_STATE: no checkpoint, another patch step, names or shapes that do not
 * match (with counts). */
SN_MUST_CHECK sn_status sn_init_load(const sn_config *config, sn_model *model, const sn_log *log, sn_error *err);
/* Copies who was seen into the run's folder `inputs`; made empty where the other run saw nobody (synthetic tokens). */
SN_MUST_CHECK sn_status sn_init_inherit(const sn_config *config, const char *run, sn_error *err);

#endif
