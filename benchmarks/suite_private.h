/* needs: full */
/* What the parts of a suite share: the file's content (suite_spec.c), one pretraining (suite_unit.c), predictions on disk
 * (suite_scores.c), and the table (suite_table.c, suite_write.c). */
#ifndef SN_BENCHMARKS_SUITE_PRIVATE_H
#define SN_BENCHMARKS_SUITE_PRIVATE_H

#include "benchmarks/probe.h"
#include "benchmarks/suite.h"
#include "core/document.h"

/* ---- the file ---- */

typedef enum suite_protocol { SUITE_LINEAR, SUITE_KNN, SUITE_FINETUNE, SUITE_PROTOCOLS } suite_protocol;
const char *suite_protocol_name(suite_protocol protocol);

typedef struct suite_task {
  const sn_document *node;
  const char *name;
  sn_probe_options probe;   /* without runs; texts belong to the document or to `owned` */
  bool protocols[SUITE_PROTOCOLS];
  const char **exclude;
  char **set;               /* "finetune.steps=100": for fine-tuning */
  int64_t n_set;
  char *labels;             /* owned: below the root */
  char *data;
} suite_task;

typedef struct suite_set {
  const sn_document *node;  /* the top level where there are no sets */
  const char *name;         /* "" where there are no sets */
  const sn_document *preset;
  int64_t n_folds;          /* 0: the settings say what is left out */
  int64_t budget_tokens;    /* 0: none */
  bool budget_scales;
  const sn_document *budget;
  int64_t *seeds, n_seeds;
  suite_task *tasks;
  int64_t n_tasks;
} suite_set;

typedef struct suite_entry { /* an element of `runs` */
  const sn_document *node;
  const char *name;
  const sn_document *preset;
  int64_t *seeds, n_seeds;  /* NULL: the set's */
} suite_entry;

typedef struct suite_spec {
  sn_document *root;
  const char *path;
  char *out, *base;         /* base: options->root resolved, NULL: none */
  const char *reference;    /* NULL: none */
  int64_t n_draws, n_random;
  uint64_t seed;
  suite_set *sets;
  int64_t n_sets;
  suite_entry *entries;
  int64_t n_entries;
} suite_spec;

SN_MUST_CHECK sn_status suite_spec_load(const sn_suite_options *options, suite_spec *spec, sn_error *err);
void suite_spec_free(suite_spec *spec);
/* Whether a run takes part in a set (`only`). */
bool suite_takes_part(const suite_entry *entry, const suite_set *set);
/* The settings of a run: preset, then the settings of the top level, the set, the run, and the run in the set; seed and fold
 * (-1 none); the budget. tokens [out]: places of tokens that the run's steps have. */
SN_MUST_CHECK sn_status suite_spec_config(const suite_spec *spec, const suite_set *set, const suite_entry *entry, int64_t seed,
                                          int64_t fold, sn_config **out, int64_t *steps, int64_t *tokens, sn_error *err);
/* A path of the file: below the root, where it is relative and there is a root. */
SN_MUST_CHECK sn_status suite_path(const suite_spec *spec, const char *path, char **out, sn_error *err);

/* ---- one pretraining ---- */

typedef enum suite_state { SUITE_TO_DO, SUITE_TO_RESUME, SUITE_DONE, SUITE_FAILED, SUITE_NOT_RUN } suite_state;

typedef struct suite_unit {
  int64_t set, entry, seed, fold; /* fold -1: none */
  sn_config *config;
  char *architecture;             /* what a random encoder for this run depends on: all settings but those of training and
                                     objectives, as they were asked for (training fills in what the data decide) */
  char *folder;
  char label[256];                /* "cinc2017/mae seed 0 fold 1" */
  int64_t steps, planned_tokens;
  suite_state state;
  int64_t step;                   /* reached */
  char reason[SN_ERROR_MESSAGE];  /* why it failed */
  char hash[65];                  /* of requested.json, once it is there */
  bool inexact;
  int64_t tokens, parameters, encoder_parameters; /* of a run that is done */
  double seconds;
  char dtype[8];
} suite_unit;

SN_MUST_CHECK sn_status suite_unit_create(const suite_spec *spec, int64_t set, int64_t entry, int64_t seed, int64_t fold,
                                          const char *out, suite_unit *unit, sn_error *err);
void suite_unit_free(suite_unit *unit);
/* begun: a suite has begun it. SN_E_ARGUMENT: none has, and a file is there that it would write over. */
SN_MUST_CHECK sn_status suite_unit_check_place(const suite_unit *unit, bool *begun, sn_error *err);
/* state, step, and of a run that is done what it took. SN_E_STATE: other settings than those asked for now, or a folder that no
 * suite made. */
SN_MUST_CHECK sn_status suite_unit_examine(const suite_spec *spec, suite_unit *unit, const sn_log *log, sn_error *err);
/* Trains until it is done, stopped (SN_END) or failed. */
SN_MUST_CHECK sn_status suite_unit_train(suite_unit *unit, const sn_suite_options *options, sn_error *err);

/* ---- predictions ---- */

typedef struct suite_scores {
  sn_task task;
  sn_metric metric;
  int64_t n, n_outputs;
  uint64_t *items, *units;   /* (n) */
  int32_t *labels;           /* (n) */
  uint8_t *hot;              /* (n, n_outputs) */
  double *values;            /* (n) */
  int64_t n_rows;
  sn_probe_row *rows;        /* encoder, pool, seed, scores alone */
  bool persons_unknown, transductive, per_beat;
  char kind[24], dataset[128];
  int64_t n_folds, n_folds_planned, n_recordings, n_windows;
  char classes[512];         /* "147 N, 48 A" */
} suite_scores;

/* The rows of one classifier (fine-tuning counts as linear), and the majority's. */
SN_MUST_CHECK sn_status suite_scores_write(const char *path, const char *identity, const sn_probe_result *result,
                                           sn_classifier classifier, sn_error *err);
/* *out NULL, SN_OK: not there, or made from something else than `identity`. */
SN_MUST_CHECK sn_status suite_scores_read(const char *path, const char *identity, suite_scores **out, sn_error *err);
void suite_scores_destroy(suite_scores *scores); /* accepts NULL */

/* One prediction to be made: of a run's seed (all its folds), or the rows that need no run. */
typedef struct suite_job {
  int64_t set, task;
  suite_protocol protocol;
  int64_t entry, seed;       /* entry -1: a baseline */
  int64_t architecture;      /* number within the set */
  int64_t first_unit, n_units; /* whose encoders: n_folds of them, or 1 */
  char *path, *folder;       /* folder: of fine-tuning */
  char identity[65];
  char label[256];
  suite_state state;
  char reason[SN_ERROR_MESSAGE];
  suite_scores *scores;
} suite_job;

/* ---- the whole ---- */

typedef struct suite {
  const sn_suite_options *options;
  suite_spec spec;
  suite_unit *units;
  int64_t n_units, unit_capacity;
  suite_job *jobs;
  int64_t n_jobs, job_capacity;
  sn_suite_report *report;
} suite;

/* Targets, labels, columns and k of all tasks against the data of runs that are still to be made (of a dry run: of all), so that
 * nothing is pretrained for a task that cannot be. SN_E_ARGUMENT with the task's line. */
SN_MUST_CHECK sn_status suite_check_tasks(const suite *s, sn_error *err);

/* Jobs of everything that is pretrained; those whose runs are not done have state NOT_RUN and the reason. */
SN_MUST_CHECK sn_status suite_jobs_create(suite *s, sn_error *err);
void suite_job_free(suite_job *job);
/* Reads the scores, or makes them. SN_END: stopped. */
SN_MUST_CHECK sn_status suite_job_run(suite *s, suite_job *job, sn_error *err);

/* ---- the table ---- */

typedef struct suite_difference {
  char to[64];               /* "random", "raw", name of the reference; "": there is none */
  sn_interval metrics[SN_N_METRICS];
} suite_difference;

enum { SUITE_DIFFERENCES = 3 };

typedef struct suite_row {
  int64_t set, task;
  suite_protocol protocol;
  int64_t entry;             /* -1: a baseline */
  char run[96];              /* or "random", "scratch", "raw", "majority" */
  char of[96];               /* baselines: the run whose architecture it is, where there are several; else "" */
  char pool[16];
  int64_t n_seeds;           /* that there are values of */
  int64_t *seeds;
  double *by_seed;           /* (n_seeds, SN_N_METRICS) */
  sn_interval metrics[SN_N_METRICS];
  double deviation[SN_N_METRICS]; /* over seeds, divisor n - 1; NaN for one */
  suite_difference differences[SUITE_DIFFERENCES];
  double tokens, seconds;    /* means over seeds of the sums over folds; NaN: nothing was pretrained */
  int64_t parameters, encoder_parameters; /* -1 */
  char status[SN_ERROR_MESSAGE + 64]; /* "": complete */
} suite_row;

typedef struct suite_block { /* rows of one task and protocol */
  int64_t set, task;
  suite_protocol protocol;
  const suite_scores *about; /* whose items they are; NULL: nothing could be scored */
  int64_t n_test_units, n_redrawn;
  suite_row *rows;
  int64_t n_rows, capacity;
} suite_block;

typedef struct suite_table {
  suite_block *blocks;
  int64_t n_blocks, capacity;
} suite_table;

SN_MUST_CHECK sn_status suite_table_make(suite *s, suite_table *table, sn_error *err);
void suite_table_free(suite_table *table);
/* "excludes 0", "includes 0", "excludes 0, not claimed", "undefined" */
const char *suite_verdict(int64_t n_test_units, const sn_interval *difference);

SN_MUST_CHECK sn_status suite_write_csv(const suite *s, const suite_table *table, sn_string *out, sn_error *err);
SN_MUST_CHECK sn_status suite_write_json(const suite *s, const suite_table *table, sn_string *out, sn_error *err);
SN_MUST_CHECK sn_status suite_write_markdown(const suite *s, const suite_table *table, sn_string *out, sn_error *err);

#endif
