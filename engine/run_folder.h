/* A run folder is one process's own while it trains, and nothing of another run in it is overwritten. */
#ifndef SN_ENGINE_RUN_FOLDER_H
#define SN_ENGINE_RUN_FOLDER_H

#include <stdbool.h>

#include "core/status.h"

typedef struct sn_run_folder sn_run_folder;

/* Makes the folder if it is absent and holds it until sn_run_folder_release or the end of the process, however it ends
 * (flock on the folder; a file system without locks is taken as it is). Nothing is written into it.
 *   SN_E_STATE     another process holds it
 *   SN_E_ARGUMENT  resume: no config.yaml in it; else: what only training writes (checkpoints, metrics.jsonl, ...).
 *   SN_E_IO        the folder cannot be made or opened
 * What a start left behind that failed before its first checkpoint (config.yaml, manifest.tsv, metrics.jsonl) is no obstacle:
 * it is overwritten. */
SN_MUST_CHECK sn_status sn_run_folder_take(const char *run, bool resume, sn_run_folder **out, sn_error *err);
void sn_run_folder_release(sn_run_folder *folder); /* accepts NULL */

#endif
