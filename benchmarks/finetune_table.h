/* needs: full */
/* The cross-validation of a fine-tuning under way, and its rows made into the table of a probe. */
#ifndef SN_BENCHMARKS_FINETUNE_TABLE_H
#define SN_BENCHMARKS_FINETUNE_TABLE_H

#include "benchmarks/finetune_task.h"
#include "benchmarks/probe_private.h"

typedef struct sn_finetune_row {
  char encoder[16];     /* "finetuned", "scratch", "majority" */
  int64_t seed;         /* -1: majority, which is not trained */
  bool from_run;        /* starts from the pretrained encoder */
  double *scores;       /* (items, n_outputs) of the tested */
  int64_t *counts;      /* (items) windows that were averaged; 0: not there */
  int64_t *best_step;   /* (folds) */
  double *best_score;   /* (folds) of the metric chosen by, on validating items */
} sn_finetune_row;

typedef struct sn_finetune_cv {
  const sn_finetune_task_options *options;
  sn_probe_data *data;
  sn_probe_items *items;
  sn_task task;
  sn_metric metric;     /* reported first */
  sn_metric chosen_by;  /* on validating items */
  int64_t checkpoint_step; /* of the first run */
  int64_t n_outputs;
  int32_t *labels;      /* (items) */
  uint8_t *hot;         /* (items, n_outputs) zeros unless multilabel */
  double *values;       /* (items) */
  uint64_t *groups;     /* (items) */
  uint8_t *tested;      /* (items) in the test part of a fold that was run */
  int64_t n_validated;  /* items, over folds */
  int64_t n_rows;
  sn_finetune_row *rows;
} sn_finetune_cv;

/* Rows and `tested` for data, items and options. */
SN_MUST_CHECK sn_status sn_finetune_rows_create(sn_finetune_cv *cv, sn_error *err);
void sn_finetune_cv_free(sn_finetune_cv *cv); /* what it holds, not itself */

/* A metric over chosen items (n) that have windows; NaN when undefined there. */
SN_MUST_CHECK sn_status sn_finetune_score(const sn_finetune_cv *cv, const int64_t *items, int64_t n,
                                          const int64_t *counts, const double *scores, sn_metric metric, double *value,
                                          sn_error *err);

/* Items tested and there in every row are scored once, joined over folds; intervals by the bootstrap over units;
 * differences finetuned minus scratch and minus majority. config: of the first run: what the table says of itself. */
SN_MUST_CHECK sn_status sn_finetune_table(const sn_finetune_cv *cv, const sn_config *config, sn_probe_result **out,
                                          sn_error *err);

#endif
