/* Table lookup: y[i] = table[ids[i]].
 *
 * table [in] (V, C); ids attr (n) int32 in [0, V): SN_E_ARGUMENT otherwise, naming the place; must live as long as the
 * tape; y [out] (n, C), attr->out_dtype (the tape's residual type through the wrapper).
 * Backward: dtable[v] = sum of dy[i] over ids[i] == v in ascending i, 0 for ids that do not occur. */
#ifndef SN_KERNELS_EMBEDDING_H
#define SN_KERNELS_EMBEDDING_H

#include "kernels/tape.h"

typedef struct sn_embedding_attr {
  const int32_t *ids;
  int64_t n;
  sn_dtype out_dtype;
} sn_embedding_attr;

extern const sn_op sn_op_embedding;
extern const sn_op_impl sn_embedding_cpu, sn_embedding_ref;

SN_MUST_CHECK sn_status sn_embedding(sn_tape *tape, sn_value **y, sn_value *table, const int32_t *ids, int64_t n,
                                     sn_error *err);

#endif
