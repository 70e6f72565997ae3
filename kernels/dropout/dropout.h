/* Dropout (Srivastava et al., JMLR 2014) in its inverted form, with a mask that is a function of place, not of order.
 *
 *     y[t,c] = keep(t,c) ? x[t,c] / (1 - p) : 0
 *
 * keep(t,c) depends on (seed, SN_PURPOSE_DROPOUT, epoch, sample_ids[t], part, positions[t], c) and on C alone: it is the
 * same whatever else is in the batch, wherever the sample lies in it, for any number of threads and any implementation.
 * Definition: in the stream sn_random_fork(sn_random_at(seed, purpose, epoch, sample_ids[t]), part), block number
 * positions[t] * ceil(C/4) + c/4, word c % 4; dropped where that word is below round(p * 2^32).
 *
 * x          [in]  (T, C)
 * y          [out] shape and dtype of x
 * attr: 0 <= p < 1; part numbers the layer and place in it; sample_ids (T) and positions (T, >= 0: the row's place in its
 * sample) must live as long as the tape; n = T.
 * Backward: the same mask, computed again; nothing is saved. */
#ifndef SN_KERNELS_DROPOUT_H
#define SN_KERNELS_DROPOUT_H

#include "core/philox.h"
#include "kernels/tape.h"

typedef struct sn_dropout_attr {
  double p;
  uint64_t seed, epoch, part;
  const uint64_t *sample_ids;
  const int32_t *positions;
  int64_t n;
} sn_dropout_attr;

extern const sn_op sn_op_dropout;
extern const sn_op_impl sn_dropout_cpu, sn_dropout_ref;

/* The stream of row t. */
sn_random sn_dropout_stream(const sn_dropout_attr *attr, int64_t t);

SN_MUST_CHECK sn_status sn_dropout(sn_tape *tape, sn_value **y, sn_value *x, const sn_dropout_attr *attr, sn_error *err);

#endif
