/* needs: full */
/* `sonde finetune`: fine-tuned encoders measured as probes are (probe.h): the same items, folds, leakage guard, units,
 * metrics and bootstrap, so that the rows stand beside those of a probe.
 *
 * A FOLD.  Its training people are cut into finetune.validation_folds grouped parts, stratified by the rarest class
 * that a person has; the first of the parts with the most classes validates, the others are trained on.  The step with
 * the best metric on the validating items (probabilities of their windows averaged; of equals the one with the lower
 * loss there) is kept, and its checkpoint predicts the test items, once.  Values are standardised on what is trained
 * on.
 * ROWS.  finetuned (n_seeds seeds), scratch (the same training from random weights, same seeds) when asked for,
 * majority.  What is too short, or whose windows cannot be read, is dropped from every row and counted.
 * FOLDERS.  out/fold-F/finetuned-seed-S and out/fold-F/scratch-seed-S are run folders; `resume` goes on with them. */
#ifndef SN_BENCHMARKS_FINETUNE_TASK_H
#define SN_BENCHMARKS_FINETUNE_TASK_H

#include <signal.h>

#include "benchmarks/probe.h"
#include "engine/finetune.h"

typedef struct sn_finetune_task_options {
  sn_probe_options probe;     /* runs, data, target, classes, folds, metric, seeds (n_seeds), draws, step, use_ema, ...;
                                 pools and unweighted are not used */
  const char *const *set;     /* (n_set) "key=value", applied in order over the runs' settings */
  int64_t n_set;
  bool scratch;
  bool only_scratch;          /* no row finetuned: a suite trains from random weights once */
  const char *out;            /* folder */
  bool resume;
  const volatile sig_atomic_t *stop;
  void (*progress)(void *user, const char *label, const sn_progress *progress); /* label "fold 1/5 finetuned seed 0" */
  void *progress_user;
} sn_finetune_task_options;

/* Whether the table may be written to `path`: nothing is there, or the table of a fine-tuning. SN_E_ARGUMENT else. */
SN_MUST_CHECK sn_status sn_finetune_check_output(const char *path, sn_error *err);

/* Statuses of sn_probe_run, and SN_END: stopped by the flag, everything saved. */
SN_MUST_CHECK sn_status sn_finetune_task_run(const sn_finetune_task_options *options, sn_probe_result **out,
                                             sn_error *err);

#endif
