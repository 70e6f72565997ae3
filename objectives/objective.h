/* An objective: masks, targets, loss, its own heads, and what happens after the optimiser step.
 *
 * This is what the training loop sees.  Pretraining's is always a mixture of terms (objectives/mix.h, objectives/term.h);
 * fine-tuning has one of its own (objectives/supervised.h).  It sees packed tokens and their coordinates, never a modality.  A pack goes through it in two places:
 *   collate   on a loader thread: masks (from each sample's own random stream), targets, index lists -> work
 *   loss      on the training thread: records the forward pass on the tape, gives (sum, count) per group
 * Counts are known before the forward pass, so that the trainer divides by the count of the whole global batch (sums
 * before means): the gradient of a step is that of sum_g weight_g * (sum over all packs and ranks) / (count over all). */
#ifndef SN_OBJECTIVES_OBJECTIVE_H
#define SN_OBJECTIVES_OBJECTIVE_H

#include "core/config.h"
#include "core/token_batch.h"
#include "encoders/encoder.h"
#include "kernels/tape.h"

enum { SN_MAX_GROUPS = 12, SN_MAX_COUNTERS = 24, SN_METRIC_NAME = 48 };

/* One sample's pooled row, for terms that see the whole step at once.  Fixed size, so that ranks can gather it. */
typedef struct sn_row_info {
  uint64_t sample_id, subject_id; /* subject 0: unknown */
  int64_t recording, window, view;
  double start_s;
  double label;                   /* the run's continuous label, NaN unknown */
  int32_t used;                   /* 0: a place without a sample, or one that takes no part */
  int32_t source;                 /* which of the run's data */
} sn_row_info;

typedef struct sn_objective_setup {
  const sn_config *config;
  sn_params *params;        /* heads are added here */
  sn_encoder *encoder;
  uint64_t seed;            /* of masks */
  int64_t pack_slots;       /* token slots of every pack */
  int64_t pack_samples;     /* most samples of a pack */
  int64_t max_tokens;       /* most tokens of one sample */
  int64_t n_labels;         /* recordings with a continuous label */
  const double *labels;     /* (n_labels) by row of the manifest, NaN unknown; NULL: none. Borrowed */
  int n_targets;            /* that samples carry beside their tokens: those that needs() asked for, with their widths */
  const sn_target_spec *targets;
  sn_dtype residual;
} sn_objective_setup;

/* What an objective asks of the loader beside tokens: views and positives, targets by name (core/token_batch.h). */
typedef struct sn_objective_needs {
  sn_sampling sampling;
  bool two_sources;          /* at least two data sets */
  bool label;               /* the continuous label of each recording (data.label) */
  bool moving_average;      /* of the weights, for a target encoder, whatever train.ema says */
  int n_targets;
  char targets[SN_MOST_TARGETS][SN_TARGET_NAME];
} sn_objective_needs;

typedef struct sn_objective sn_objective;

typedef struct sn_objective_vtable {
  const char *name;
  /* Loader threads; self is only read. */
  sn_status (*collate)(const sn_objective *self, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                       sn_error *err);
  void (*free_work)(void *work);
  /* Terms of each group in this pack (what its sum will be divided by), and the named counters, both [acc]. */
  void (*counts)(const sn_objective *self, const void *work, double *group_counts, int64_t *counters);
  /* Forward; sums[g] is the scalar F64 sum of group g over this pack, NULL when the pack has no term of it. */
  sn_status (*loss)(sn_objective *self, sn_tape *tape, const void *work, uint64_t step, sn_value **sums, sn_error *err);
  /* Batch-coupled objectives (n_coupled_rows > 0), on top of loss: the same forward pass, with the pooled rows of the pack
   * (n_coupled_rows, coupled_width), residual type.  sums NULL: only the rows are wanted. NULL function: nothing is coupled. */
  sn_status (*forward)(sn_objective *self, sn_tape *tape, const void *work, uint64_t step, sn_value **sums, sn_value **rows,
                       sn_error *err);
  void (*row_infos)(const sn_objective *self, const void *work, sn_row_info *infos); /* (n_coupled_rows) [out] */
  /* From the rows of all packs of all ranks, in the order of packs: sums and counts of the coupled groups, counters [acc]. */
  sn_status (*couple)(sn_objective *self, sn_tape *tape, sn_value *rows, const sn_row_info *infos, int64_t n, uint64_t step,
                      sn_value **sums, double *counts, int64_t *counters, sn_error *err);
  /* Weight of group g at this step; NULL: group_weights. */
  double (*weight)(const sn_objective *self, int group, uint64_t step);
  /* Momentum of the moving average after this step; NULL: train.ema of the configuration. */
  double (*momentum)(const sn_objective *self, uint64_t step);
  /* Moments and moving averages are there, and a checkpoint is loaded; NULL: nothing. */
  sn_status (*begin)(sn_objective *self, sn_error *err);
  /* After the optimiser's step and that of the moving average; NULL: nothing. */
  sn_status (*after_step)(sn_objective *self, uint64_t step, sn_error *err);
  void (*destroy)(sn_objective *self);
} sn_objective_vtable;

/* Values that an objective wants standardised (x - mean) / std by the pretraining data: fixed parameters, filled once at the
 * start of a run (engine/statistics.h).  target NULL: the patches themselves. */
typedef struct sn_objective_scale {
  const char *target;
  sn_param *mean, *std;     /* (width of the target) */
} sn_objective_scale;

struct sn_objective {
  const sn_objective_vtable *vtable;
  int n_groups;
  const char *groups[SN_MAX_GROUPS];       /* names: metrics key is loss_NAME when there are several */
  int group_terms[SN_MAX_GROUPS];          /* which term of a mixture it belongs to */
  int n_terms;
  const char *terms[SN_MAX_GROUPS];
  bool coupled[SN_MAX_GROUPS];             /* group comes from couple */
  const sn_encoder *target;                /* encoder whose weights are the moving averages, from begin on; NULL: none */
  uint64_t first_step;                     /* of the phase that it is trained in; set by the trainer */
  int64_t n_coupled_rows, coupled_width;
  double group_weights[SN_MAX_GROUPS];
  int n_counters;
  const char *counters[SN_MAX_COUNTERS];   /* named integer metrics: "masked_tokens", "flat_patches", ... */
  int n_scales;
  sn_objective_scale scales[SN_MOST_TARGETS];
  void *self;
};

/* What can be named in objective.name: objectives/term.h. */
typedef struct sn_objective_kind sn_objective_kind;
extern const sn_objective_kind *const sn_objective_kinds[];
extern const int64_t sn_n_objective_kinds;

/* By objective.name of the configuration (objectives/mix.h); unknown: SN_E_ARGUMENT with the nearest. */
SN_MUST_CHECK sn_status sn_objective_create(const sn_objective_setup *setup, sn_objective **out, sn_error *err);
void sn_objective_destroy(sn_objective *objective);
/* Of the objective that objective.name names: of all of its terms together. */
SN_MUST_CHECK sn_status sn_objective_get_needs(const sn_config *config, sn_objective_needs *needs, sn_error *err);
/* For needs(): adds a name once. */
SN_MUST_CHECK sn_status sn_objective_need(sn_objective_needs *needs, const char *target, sn_error *err);
/* The target of this name; SN_E_STATE: the loader delivers none, or another kind of row. */
SN_MUST_CHECK sn_status sn_objective_find_target(const sn_objective_setup *setup, const char *name, bool per_token,
                                                 const sn_target_spec **out, sn_error *err);

/* Weight of group g at a step. */
static inline double sn_objective_weight(const sn_objective *o, int g, uint64_t step) {
  return o->vtable->weight != NULL ? o->vtable->weight(o, g, step) : o->group_weights[g];
}

/* objective.*, for the configuration table. */
extern const sn_config_entry sn_objective_config[];

#endif
