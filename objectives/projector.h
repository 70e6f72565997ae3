/* The map from a sample's pooled row to where a loss between samples is taken; thrown away after pretraining.
 *
 *   x -> [linear -> norm -> relu] x (layers - 1) -> linear (without bias under batch norm, as VICReg's last layer)
 *
 * norm: batch (statistics of the whole step's used rows) or none.  layers 0: the row itself.
 * Parameters: PREFIX.N.weight/.bias, PREFIX.N.norm.weight/.bias, N from 0. */
#ifndef SN_OBJECTIVES_PROJECTOR_H
#define SN_OBJECTIVES_PROJECTOR_H

#include "objectives/objective.h"

enum { SN_PROJECTOR_LAYERS = 4 };

typedef struct sn_projector_options {
  const char *prefix;
  int64_t in, hidden, out;
  int layers;               /* 0 .. SN_PROJECTOR_LAYERS */
  bool batch_norm;
} sn_projector_options;

typedef struct sn_projector {
  sn_projector_options options;
  sn_param *weight[SN_PROJECTOR_LAYERS], *bias[SN_PROJECTOR_LAYERS], *gamma[SN_PROJECTOR_LAYERS], *beta[SN_PROJECTOR_LAYERS];
} sn_projector;

SN_MUST_CHECK sn_status sn_projector_add(sn_params *params, const sn_projector_options *options, sn_projector *out,
                                         sn_error *err);
/* Width of what comes out. */
int64_t sn_projector_width(const sn_projector *projector);
/* x (n, in) residual type; used (n): 0, the row takes no part in the batch's statistics. Borrowed until the tape is reset. */
SN_MUST_CHECK sn_status sn_projector_forward(sn_tape *tape, sn_value **y, const sn_projector *projector, sn_value *x,
                                             const uint8_t *used, sn_error *err);

#endif
