/* needs: full */
/* What the parts of a probe (probe.c, probe_result.c) share. */
#ifndef SN_BENCHMARKS_PROBE_PRIVATE_H
#define SN_BENCHMARKS_PROBE_PRIVATE_H

#include "benchmarks/probe_features.h"

typedef struct sn_probe_context {
  const sn_probe_options *options;
  sn_probe_data *data;
  sn_probe_items *items;
  sn_device *device;
  sn_pool *pool;
  sn_model **models;      /* (n_runs) */
  int64_t n_models;
  sn_protocol_options protocol;
  sn_probe_truth truth;
  int64_t K;              /* outputs per item */
  int32_t *labels;
  uint8_t *hot;
  double *values;
  uint64_t *groups;
  int64_t **train, **test;/* (n_folds) items of a fold */
  int64_t *n_train, *n_test;
  int64_t *place;         /* (items) position among the tested, -1 */
  int64_t *tested;        /* (n_tested) items */
  int64_t *fold_of;       /* (n_tested) */
  double *first_x;        /* features by which usable items were found: of the first model, pool mean; NULL: handed on */
  int64_t first_width;
  sn_probe_result *result;
} sn_probe_context;

/* Adds an empty row; *index [out]. */
SN_MUST_CHECK sn_status sn_probe_add_row(sn_probe_context *p, const char *encoder, const char *pool, int64_t seed, int64_t *index,
                                         sn_error *err);
/* Metrics of rows, intervals, paired differences, counts. */
SN_MUST_CHECK sn_status sn_probe_finish(sn_probe_context *p, sn_error *err);

#endif
