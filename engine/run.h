/* A run folder: configuration, data, and how a command gets back to them. */
#ifndef SN_ENGINE_RUN_H
#define SN_ENGINE_RUN_H

#include "core/config.h"
#include "core/log.h"
#include "datasets/source.h"

/* data.* and synthetic.* of a run. */
extern const sn_config_entry sn_run_config[];

/* The complete table of a pretraining run of this build: train, encoder, objectives, data and modalities. */
SN_MUST_CHECK sn_status sn_run_config_create(sn_config **out, sn_error *err);
/* The same with n_more tables beside it (at most 8). */
SN_MUST_CHECK sn_status sn_run_config_create_with(const sn_config_entry *const *more, int64_t n_more, sn_config **out,
                                                  sn_error *err);

/* Settings that would be lost without a word: data.train_part or data.test_part without data.split, data.key, data.split or
 * data.stratify without data.labels. SN_E_ARGUMENT.  Of a run over several sources (engine/run_sources.h) also what is wrong
 * with their list; their names are filled in. */
SN_MUST_CHECK sn_status sn_run_check_config(sn_config *config, sn_error *err);

/* config.yaml of a run folder (JSON, which is YAML): resolved and complete. */
SN_MUST_CHECK sn_status sn_run_save_config(const char *run, const sn_config *config, sn_error *err);
SN_MUST_CHECK sn_status sn_run_load_config(const char *run, sn_config **out, sn_error *err);
/* Into a configuration whose table holds at least those keys. A relative data.dir, data.labels or data.store that is not here
 * is looked for where the run was begun (data.relative_to). */
SN_MUST_CHECK sn_status sn_run_load_config_into(const char *run, sn_config *config, sn_error *err);
/* SN_E_IO naming both places when a run's recordings are in neither. */
SN_MUST_CHECK sn_status sn_run_check_data_dir(const sn_config *config, sn_error *err);

/* The data that a configuration names: data.dir is a directory (full build), or "synthetic"; or a list of sources, which are
 * mixed (engine/run_sources.h).
 * data.modality and the defaults that follow from it are filled in, so config is saved after this.
 * run not NULL: manifest.tsv and split.tsv are written there; a resumed run uses those that are there. */
typedef struct sn_run_data sn_run_data;
SN_MUST_CHECK sn_status sn_run_data_open(sn_config *config, const char *run, bool resume, const sn_log *log,
                                         sn_run_data **out, sn_error *err);
void sn_run_data_destroy(sn_run_data *data); /* accepts NULL */
/* Windows of the part that is pretrained on; owned by data. */
sn_source *sn_run_data_source(const sn_run_data *data);

/* What became of the recordings beyond the plan, as far as they were read: beats found, recordings without any (nobeat), beats
 * dropped at the ends of segments. Nothing where tokens are fixed patches. */
void sn_run_data_note(const sn_run_data *data, const sn_log *log);

/* What tokens hold (data.tokens), for any source that a run's data come from.  with_targets: also the targets that the
 * objective asks for: pretraining alone needs them. */
SN_MUST_CHECK sn_status sn_run_attach_stage(sn_source *source, const sn_config *config, bool with_targets, sn_error *err);

/* Of a run over several sources (`run` is its folder, for messages): config becomes that of one data set, with the settings of
 * the source that lies in the directory `data`, or with those of the top level where none does.  SN_E_ARGUMENT: data is NULL.
 * A run over one data set stays as it is. */
SN_MUST_CHECK sn_status sn_run_choose_source(sn_config *config, const char *run, const char *data, sn_error *err);
/* SN_E_ARGUMENT: the run's folder would lie in the directory of the data (or of a source), or be it: what is written there
 * would be taken for recordings, or lie among somebody's. Nothing is asked of a directory that is not there. */
SN_MUST_CHECK sn_status sn_run_check_place(const sn_config *config, const char *run, sn_error *err);
bool sn_same_directory(const char *a, const char *b);

/* The same for one of several data sets: targets as the run's configuration asks for them, tokens by the source's own. */
SN_MUST_CHECK sn_status sn_run_attach_source_stage(sn_source *source, const sn_config *run, const sn_config *own,
                                                   bool with_targets, sn_error *err);

/* "i/k" with 0 <= i < k, k >= 2. */
SN_MUST_CHECK sn_status sn_parse_fold(const char *text, int64_t *fold, int64_t *folds, sn_error *err);

/* Writes into the configuration what it left to the data and a later user of the run must find there: model.position_period
 * (encoders/position.h) from the longest sample, where an encoding needs it. */
SN_MUST_CHECK sn_status sn_run_settle_config(sn_config *config, const sn_run_data *data, sn_error *err);

#endif
