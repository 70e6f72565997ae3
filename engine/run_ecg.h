/* The ECG data of a run: index, labels table, persons, split, and sources over its parts. */
/* needs: full */
#ifndef SN_ENGINE_RUN_ECG_H
#define SN_ENGINE_RUN_ECG_H

#include "core/config.h"
#include "core/log.h"
#include "datasets/keyed_table.h"
#include "datasets/manifest.h"
#include "datasets/source.h"
#include "datasets/split.h"

typedef struct sn_run_ecg {
  sn_manifest *manifest;
  sn_keyed_table *table;  /* NULL: no data.labels */
  sn_subjects *subjects;
  sn_split *split;
} sn_run_ecg;

/* data.* of the configuration. run as in engine/run.h. Counts of what was left out go to log. */
SN_MUST_CHECK sn_status sn_run_ecg_open(const sn_config *config, const char *run, bool resume, const sn_log *log,
                                        sn_run_ecg **out, sn_error *err);
void sn_run_ecg_destroy(sn_run_ecg *data); /* accepts NULL */

/* Windows of the recordings with a role; borrows data. log may be NULL. */
SN_MUST_CHECK sn_status sn_run_ecg_source(const sn_run_ecg *data, const sn_config *config, sn_role role,
                                          const sn_log *log, sn_source **out, sn_error *err);

#endif
