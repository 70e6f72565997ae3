/* The recordings of a run: index, labels table, persons, split, and sources over its parts. */
/* needs: full */
#ifndef SN_ENGINE_RUN_SIGNAL_H
#define SN_ENGINE_RUN_SIGNAL_H

#include "core/config.h"
#include "core/log.h"
#include "datasets/keyed_table.h"
#include "datasets/manifest.h"
#include "datasets/source.h"
#include "datasets/split.h"

typedef struct sn_run_signal {
  sn_manifest *manifest;
  int64_t n_lost;         /* its lines of recordings that cannot be read and are not excluded */
  int64_t first_lost;     /* the first of these lines, where there are any */
  sn_keyed_table *table;  /* NULL: no data.labels */
  sn_subjects *subjects;
  sn_split *split;
  bool resumed;           /* the run began before: what it was begun with is not refused now */
  bool one_of_several;    /* of a mixture: what this one lacks another may have */
} sn_run_signal;

/* data.* of the configuration, in which data.modality is resolved (sn_signal_source_resolve). run as in engine/run.h. Counts of what was left out go to log.
 * SN_E_STATE: more recordings than train.max_bad_share cannot be read; or resumed, and their files or the labels changed since. */
SN_MUST_CHECK sn_status sn_run_signal_open(sn_config *config, const char *run, bool resume, const sn_log *log,
                                        sn_run_signal **out, sn_error *err);
/* The same in two steps, for several data sets whose folds are dealt together: everything but the split, and the split.
 * whole_run, first: the folder of the run over all of them, and how many recordings those before have.
 * folds (manifest->n): each line's fold, -1 none; NULL: as the configuration says. */
SN_MUST_CHECK sn_status sn_run_signal_find(sn_config *config, const char *run, bool resume, const char *whole_run,
                                           int64_t first, const sn_log *log, sn_run_signal **out, sn_error *err);
SN_MUST_CHECK sn_status sn_run_signal_split(sn_run_signal *data, const sn_config *config, const char *run, bool resume,
                                            const int32_t *folds, const sn_log *log, sn_error *err);
void sn_run_signal_destroy(sn_run_signal *data); /* accepts NULL */

/* Windows of the recordings with a role; borrows data. log may be NULL. Of recordings to pretrain on, how many lack a series that
 * the settings name (ecg.leads, eeg.channels) is a warning; one that none has is SN_E_ARGUMENT, but in a resumed run and a mixture. */
SN_MUST_CHECK sn_status sn_run_signal_source(const sn_run_signal *data, const sn_config *config, sn_role role,
                                          const sn_log *log, sn_source **out, sn_error *err);

#endif
