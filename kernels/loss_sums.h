/* (sum, count) of a loss on the CPU: each block leaves its own pair in the call's scratch, and the pairs are joined in the
 * order of blocks, so that the result does not depend on the number of threads. */
#ifndef SN_KERNELS_LOSS_SUMS_H
#define SN_KERNELS_LOSS_SUMS_H

#include "kernels/op.h"

/* Bytes of scratch of the forward pass: (n_blocks, 2) doubles. */
static inline int64_t sn_loss_sums_bytes(int64_t n_blocks) { return n_blocks * 2 * (int64_t)sizeof(double); }

static inline void sn_loss_sums_put(double *partial, int64_t block, double sum, double count) {
  partial[2 * block] = sum;
  partial[2 * block + 1] = count;
}

/* out[0] = the sum, out[1] = the count [out]: scalars, F64. */
static inline void sn_loss_sums_join(const sn_op_call *call, const double *partial, int64_t n_blocks) {
  double sum = 0, count = 0;
  for (int64_t b = 0; b < n_blocks; b++) {
    sum += partial[2 * b];
    count += partial[2 * b + 1];
  }
  *(double *)call->out[0].data = sum;
  *(double *)call->out[1].data = count;
}

#endif
