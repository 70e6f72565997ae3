/* The gradients of one optimiser step: forward and backward over this rank's packs, sums over ranks.
 *
 * Sums before means: counts of all packs of all ranks are added first, each pack's backward is seeded with
 * weight / (global count of its group), gradients add over packs and then over ranks, in that fixed order. */
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

/* works: one per pack of this rank (NULL: an empty pack). Gradients are zeroed first. step keys dropout. */
SN_MUST_CHECK sn_status sn_step_gradients(sn_step_engine *engine, int64_t n_packs, void *const *works, uint64_t step,
                                          sn_step_sums *out, sn_error *err);

int64_t sn_step_engine_arena_bytes(const sn_step_engine *engine); /* high-water mark of activations and gradients */

#endif
