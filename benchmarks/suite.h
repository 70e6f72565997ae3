/* needs: full */
/* `sonde benchmark SUITE.yaml`: many pretraining runs, tasks and protocols, and one table.  docs/benchmark.md says how a
 * suite is written.
 *
 * ORDER.  The whole file is read and every run's settings are checked before anything is begun; then each (set, run, seed,
 * fold) is pretrained, then each (set, task, protocol, run, seed) is probed, then the table is made.
 *
 * FOLDERS.  OUT/runs/[SET/]RUN/seed-S[/fold-F] are run folders.  Beside what a run writes there stand requested.json, the
 * settings as the suite gave them, written before the run begins, and result.json, written when it has made its last
 * step.  OUT/scores/[SET/]TASK/PROTOCOL/RUN-seed-S.safetensors hold the predictions of test items, baseline-N.safetensors
 * those of random encoders, raw features and the majority class.  OUT/table.csv, .json, .md are made anew each time.
 *
 * AGAIN.  A run is done when its settings are those of requested.json (but for those that change no result), its newest
 * complete checkpoint is that of its last step, and result.json is there.  One that was interrupted goes on from its newest
 * checkpoint, bit for bit.  Other settings under the same name are an error, found before anything is begun.  Scores are kept
 * while the task, the run and the labels file are what they were.  Every file is written beside and renamed, so that the
 * process may be killed at any point.  The output folder is held by one process at a time.
 *
 * TASKS are checked against the data before the first pretraining, and in a dry run: target, labels file and columns, classes, and k.
 * FAILURES.  What fails is named in the table with its reason, and the rest goes on.
 *
 * THE TABLE.  All rows of a task and protocol are scored on the same test items, which is checked, and by the same bootstrap
 * draws over people (over recordings where persons are unknown).  A run's value is the mean of its seeds' metric; its interval
 * is of that mean: in each draw the metric of every seed is computed on the people drawn and averaged over seeds, and the
 * interval holds the middle 95 % of the draws.  It tells how the value would move with other people, not with other seeds: the
 * standard deviation over seeds stands beside.  A difference (to random encoders of the same architecture, to raw
 * features, to the reference run) is the difference of two such means in each draw. */
#ifndef SN_BENCHMARKS_SUITE_H
#define SN_BENCHMARKS_SUITE_H

#include <signal.h>

#include "core/log.h"
#include "core/text.h"
#include "engine/train.h"

typedef struct sn_suite_options {
  const char *path;
  const char *out;   /* folder; NULL: the file's `out` */
  const char *root;  /* folder that relative data.dir, data.labels and labels begin at; NULL: where the process runs */
  bool dry_run;      /* nothing is written */
  const volatile sig_atomic_t *stop;
  sn_log log;
  void (*progress)(void *user, const char *label, const sn_progress *progress);
  void *progress_user;
} sn_suite_options;

typedef struct sn_suite_report {
  int64_t n_runs, n_done, n_trained;   /* pretrainings: all, those already done, those trained or finished now */
  int64_t n_scores, n_scored;          /* predictions: all, those made now */
  int64_t n_failed;                    /* pretrainings and predictions that failed, without what only lacks them */
  int64_t n_rows;                      /* of the table */
  bool stopped;                        /* by the flag: everything is saved, the table says what is missing */
  char out[1024];
} sn_suite_report;

/* text [out, caller frees]: the table as Markdown; of a dry run: what is done, would go on, and would begin.
 * json: the table's JSON (may be NULL).
 * SN_E_ARGUMENT with file and line: the suite cannot be run as it is written; or a file of another hand stands in the output
 * folder where one of the suite's would be written, found before any work.  SN_E_STATE: another process holds the folder, or
 * a run there has other settings.  What fails of the runs and probes is no error here: report->n_failed. */
SN_MUST_CHECK sn_status sn_suite_run(const sn_suite_options *options, sn_string *text, sn_string *json,
                                     sn_suite_report *report, sn_error *err);

#endif
