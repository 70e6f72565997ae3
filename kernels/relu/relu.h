/* y = x where x > 0, else 0, element by element; NaN stays NaN.
 *
 * x [in] any shape and floating type; y [out] the same. Backward: dx = dy where y > 0, else 0 (0 at x = 0, as PyTorch has
 * it); y is read, x is not. */
#ifndef SN_KERNELS_RELU_H
#define SN_KERNELS_RELU_H

#include "kernels/tape.h"

extern const sn_op sn_op_relu;
extern const sn_op_impl sn_relu_cpu, sn_relu_ref;

SN_MUST_CHECK sn_status sn_relu(sn_tape *tape, sn_value **y, sn_value *x, sn_error *err);

#endif
