/* needs: full */
/* The evaluation data of a probe: items with labels, people, folds with roles, and the leakage guard. */
#ifndef SN_BENCHMARKS_PROBE_DATA_H
#define SN_BENCHMARKS_PROBE_DATA_H

#include "benchmarks/probe.h"
#include "core/config.h"
#include "core/sha256.h"
#include "datasets/keyed_table.h"
#include "datasets/manifest.h"
#include "datasets/source_signal.h"
#include "datasets/split.h"

typedef struct sn_probe_run_info {
  const char *path;
  sn_config *config;      /* as stored, with the data of this probe in data.*: of a run over several sources, with the settings
                             of the source whose directory it is, else those of its top level */
  sn_split *split;        /* what pretraining used; of several sources that of this probe's data set, NULL when it is none */
  int64_t n_inherited;
  sn_split **inherited;   /* (n_inherited) those of the other sources, and of the runs that it began from (engine/init_run.h) */
} sn_probe_run_info;

enum { SN_PART_NONE = 0, SN_PART_TRAIN = 1, SN_PART_TEST = 2 };

typedef struct sn_probe_data {
  int64_t n_runs;
  sn_probe_run_info *runs;
  sn_manifest *manifest;
  sn_keyed_table *table;
  sn_subjects *subjects;
  sn_labels *labels;
  int32_t *class_order;   /* (n_classes) position in the table of each class of labels */
  int64_t n_folds, n_folds_planned;
  int64_t *run_of_fold;   /* (n_folds) */
  uint8_t *parts;         /* (n_folds, manifest->n) SN_PART of each recording */
  char kind[24];
  int64_t leaked_subjects, leaked_contents;
  char leakage_kind[16];
  double context_s;       /* of the options */
  char labels_sha256[65]; /* of the content of the labels file; "": none */
} sn_probe_data;

SN_MUST_CHECK sn_status sn_probe_data_open(const sn_probe_options *options, sn_probe_data **out, sn_error *err);
void sn_probe_data_destroy(sn_probe_data *data); /* accepts NULL */

/* Adds the content of a labels file, which a person edits, to a hash. Nothing for NULL, "" and what cannot be opened: who reads the
 * labels says what is wrong. */
SN_MUST_CHECK sn_status sn_probe_hash_labels(sn_sha256 *hash, const char *path, sn_error *err);
/* What sn_probe_data_open would refuse of a task whatever the runs learn, said before there is one: target, labels file and its
 * columns, classes, what is excluded, split, and of kNN a target that is a number and a k beyond the training items there can be.
 * config: of a run to come, and is changed; `run` names it in messages. run_folds: how many runs are joined over their own folds;
 * 1: one. SN_E_ARGUMENT as there. */
SN_MUST_CHECK sn_status sn_probe_data_check(const sn_probe_options *options, sn_config *config, const char *run,
                                            int64_t run_folds, bool knn, sn_error *err);

/* Identity of the person (or recording) of a line, for grouping. */
uint64_t sn_probe_data_group(const sn_probe_data *data, int64_t recording);

#endif
