/* The gradients of one optimiser step: forward and backward over this rank's packs, sums over ranks.
 *
 * Sums before means: counts of all packs of all ranks are added first, each pack's backward is seeded with
 * weight / (global count of its group), gradients add over packs and then over ranks, in that fixed order.
 *
 * BATCH-COUPLED groups (objectives/objective.h) need every sample of the step at once:
 *   1. forward of each pack; its pooled rows are kept, everything else forgotten
 *   2. the rows of all packs of all ranks, in the order of packs, on one tape: projectors and losses, backward to the rows.
 *      Every rank does the same work on the same rows; the first one's gradients of projectors count
 *   3. forward of each pack again, and backward with the rows' gradient (and the other groups' seeds)
 * so that 4 packs equal one of their size, and 2 ranks one.  A single pack of a single rank is gone through once.
 * Source: Gao et al., "Scaling deep contrastive learning batch size under memory limited setup", RepL4NLP 2021. */
#ifndef SN_ENGINE_STEP_H
#define SN_ENGINE_STEP_H

#include "core/arena.h"
#include "kernels/comm/comm.h"
#include "objectives/objective.h"

typedef struct sn_step_engine sn_step_engine;

typedef struct sn_step_sums {
  double sums[SN_MAX_GROUPS];      /* over all packs and ranks */
  double counts[SN_MAX_GROUPS];
  int64_t counters[SN_MAX_COUNTERS];
  double loss;                     /* sum_g weight_g sums_g / counts_g over groups with terms; NaN when none has any */
  bool has_terms;                  /* false: no gradient was made; the step must not update */
  double flops;                    /* this rank, forward and backward */
} sn_step_sums;

/* Everything is borrowed. */
SN_MUST_CHECK sn_status sn_step_engine_create(sn_device *device, sn_params *params, sn_objective *objective,
                                              sn_dtype residual, sn_dtype product, sn_comm *comm, sn_step_engine **out,
                                              sn_error *err);
void sn_step_engine_destroy(sn_step_engine *engine); /* accepts NULL */

/* works: one per pack of this rank (NULL: an empty pack); ranks have the same number. Gradients are zeroed first. step keys
 * dropout. term: only the groups of this term of the objective are followed back, -1: all. */
SN_MUST_CHECK sn_status sn_step_gradients(sn_step_engine *engine, int64_t n_packs, void *const *works, uint64_t step,
                                          int term, sn_step_sums *out, sn_error *err);

/* How the terms of a mixture pull: norm of each term's own gradient, times its weight, over the first n_params parameters
 * (those of the encoder), and the cosine between every two of them.  Costs a step for each term and leaves gradients
 * zeroed; nothing else changes. */
typedef struct sn_term_gradients {
  int n_terms;
  double norms[SN_MAX_GROUPS];
  double cosines[SN_MAX_GROUPS][SN_MAX_GROUPS]; /* NaN where a norm is 0 */
} sn_term_gradients;
SN_MUST_CHECK sn_status sn_step_compare_terms(sn_step_engine *engine, int64_t n_packs, void *const *works, uint64_t step,
                                              int64_t n_params, sn_term_gradients *out, sn_error *err);

int64_t sn_step_engine_arena_bytes(const sn_step_engine *engine); /* high-water mark of activations and gradients */

#endif
