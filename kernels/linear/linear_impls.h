/* The implementations of linear (private to this folder). */
#ifndef SN_KERNELS_LINEAR_LINEAR_IMPLS_H
#define SN_KERNELS_LINEAR_LINEAR_IMPLS_H

#include "kernels/op.h"

extern const sn_op_impl sn_linear_cpu, sn_linear_ref;
#ifdef SONDE_HAVE_ONEDNN
extern const sn_op_impl sn_linear_onednn;
#endif

/* Sizes of a call: x (T, n_in), W (n_out, n_in), y (T, n_out). */
typedef struct sn_linear_sizes {
  int64_t rows, n_in, n_out;
} sn_linear_sizes;
sn_linear_sizes sn_linear_sizes_of(const sn_op_call *call);

#endif
