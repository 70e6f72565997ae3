/* linear: y = x Wᵀ + b
 *
 *   in 0  x (..., in)   F64 | F32 | BF16     the leading dimensions fold into T rows
 *   in 1  W (out, in)   F64 with x F64, else F32 (or BF16 with x BF16: a product of two computed values)
 *   in 2  b (out)       optional, dtype of W
 *   out 0 y (..., out)  F64 with x F64, else BF16 or F32 as the caller says
 *
 * Backward: dx = dy W, dW [acc] = dyᵀ x, db [acc] = column sums of dy.
 *
 * Numerics: bf16 products take W and dy rounded to bf16 and accumulate in fp32; y is rounded once after the bias.  db is
 * summed in blocks of fixed size in a fixed order.  The same call on the same number of threads gives the same bits.
 * Weights of a parameter that is not in training are repacked once per version and kept in param->packed; those of one in
 * training are repacked at each call, in scratch memory (kernels/packed.h says why). */
#ifndef SN_KERNELS_LINEAR_LINEAR_H
#define SN_KERNELS_LINEAR_LINEAR_H

#include "kernels/tape.h"

typedef struct sn_linear_attr {
  sn_dtype y_dtype;
} sn_linear_attr;

extern const sn_op sn_op_linear;

/* b may be NULL. */
SN_MUST_CHECK sn_status sn_linear(sn_tape *tape, sn_value **y, sn_value *x, sn_value *w, sn_value *b, sn_dtype y_dtype,
                                  sn_error *err);

/* The same from parameters. */
SN_MUST_CHECK sn_status sn_linear_of(sn_tape *tape, sn_value **y, sn_value *x, sn_param *w, sn_param *b, sn_dtype y_dtype,
                                     sn_error *err);

#endif
