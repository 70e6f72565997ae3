/* A term: one thing that is learned.  An objective (objectives/mix.h) is a weighted sum of terms that share the views, the
 * masks and the encoder's forward pass (objectives/pass.h); most have one.
 *
 * Two kinds, told apart by what they fill in:
 *   token terms   loss: from the encoder's rows, sums over samples.  Accumulation and ranks add.
 *   row terms     couple: from one pooled row of every sample of the whole step, all packs and all ranks together, on a tape
 *                 of its own.  Their gradient goes back to each pack by a second forward pass (engine/step.h), so that
 *                 accumulating and spreading over ranks changes nothing. */
#ifndef SN_OBJECTIVES_TERM_H
#define SN_OBJECTIVES_TERM_H

#include "objectives/objective.h"
#include "objectives/pass.h"

typedef struct sn_term sn_term;

/* What a forward pass made of a pack. */
typedef struct sn_forward {
  const sn_pass *pass;
  sn_value *features;     /* (rows of pass->input, C) product type */
  sn_value *target;       /* (rows of pass->full, C) residual type, of the target encoder, without gradient; NULL unless needed */
  uint64_t step;          /* keys dropout */
} sn_forward;

typedef struct sn_term_vtable {
  /* Loader threads; self is only read. *work may stay NULL. */
  sn_status (*collate)(const sn_term *self, const sn_token_batch *batch, const sn_pass *pass, const uint64_t *epochs,
                       void **work, sn_error *err);
  void (*free_work)(void *work);
  /* As sn_objective_vtable: terms of the groups (token terms), named counters, both [acc]. */
  void (*counts)(const sn_term *self, const sn_pass *pass, const void *work, double *group_counts, int64_t *counters);
  sn_status (*loss)(sn_term *self, sn_tape *tape, const void *work, const sn_forward *forward, sn_value **sums,
                    sn_error *err);
  /* rows (n, C) residual type, infos (n). Fills sums, counts and counters of this term alone; a group without terms has count
   * 0.  What is recorded must not depend on infos: memory is measured once. */
  sn_status (*couple)(sn_term *self, sn_tape *tape, sn_value *rows, const sn_row_info *infos, int64_t n, uint64_t step,
                      sn_value **sums, double *counts, int64_t *counters, sn_error *err);
  sn_status (*after_step)(sn_term *self, uint64_t step, sn_error *err); /* NULL: nothing */
  void (*destroy)(sn_term *self);
} sn_term_vtable;

struct sn_term {
  const sn_term_vtable *vtable;
  int n_groups;
  const char *groups[SN_MAX_GROUPS];
  double group_weights[SN_MAX_GROUPS];
  int n_counters;
  const char *counters[SN_MAX_COUNTERS];
  int n_scales;
  sn_objective_scale scales[SN_MOST_TARGETS];
  void *self;
};

typedef struct sn_term_setup {
  const sn_objective_setup *objective;
  const sn_pass_plan *plan;  /* shapes are fixed; borrowed for the term's life */
} sn_term_setup;

/* What a term asks of the pass. */
typedef struct sn_term_asks {
  bool asked_tokens;      /* it predicts tokens that are not shown: draws must ask for some */
  bool pooled;            /* one row a sample */
  bool target;            /* the moving average of the encoder on all tokens */
} sn_term_asks;

/* One line per term in objectives.def. */
struct sn_objective_kind {
  const char *name;
  const char *summary;
  const sn_config_entry *config;           /* its settings; kinds may share one table */
  /* What it needs of the loader; adds to needs. NULL: tokens only. */
  sn_status (*needs)(const sn_config *config, sn_objective_needs *needs, sn_error *err);
  /* How tokens are drawn when it is the first term. */
  sn_status (*draws)(const sn_config *config, sn_draws *draws, sn_error *err);
  sn_term_asks (*asks)(const sn_config *config);
  sn_status (*create)(const sn_term_setup *setup, sn_term **out, sn_error *err);
  /* Momentum of the target encoder after step `step` of `steps`; NULL: it has none. */
  double (*momentum)(const sn_config *config, uint64_t step, int64_t steps);
};

#endif
