/* conv: a convolution inside every row, in 1 to 3 dimensions, for stems.
 *
 *   in 0  x (T, ...)       each row holds (size[0] .. size[n-1], Cin): channels last, the last dimension fastest
 *   in 1  W (Cout, Cin, kernel...)   any shape with these elements in this order, as PyTorch stores them
 *   in 2  b (Cout)         optional
 *   out 0 y (T, S Cout)    a row per token, as every op of rows takes it: (S, Cout) inside, Cout fastest; S = product of out[i] = (size[i] + 2 padding[i] - kernel[i]) / stride[i] + 1, rounded down
 *
 *   y[t, s, o] = b[o] + sum over c, k of W[o, c, k] x[t, s * stride + k - padding, c]      (0 outside)
 *
 * (a cross-correlation, as every deep-learning library has it).  dtypes as for linear (kernels/linear/linear.h), of which
 * this op is a window gather before: numerics and choice of implementation are linear's, the gradient of x is summed over
 * windows in fp32 in a fixed order.  SN_E_ARGUMENT when a size does not fit; nothing is ever padded or cut silently except
 * the rounding down above. */
#ifndef SN_KERNELS_CONV_CONV_H
#define SN_KERNELS_CONV_CONV_H

#include "kernels/tape.h"

typedef struct sn_conv_attr {
  int n_spatial;                       /* 1, 2 or 3 */
  int64_t size[3], kernel[3], stride[3], padding[3];
  int64_t channels_in, channels_out;
  sn_dtype y_dtype;
} sn_conv_attr;

extern const sn_op sn_op_conv;

/* Positions of the output along dimension i; 0 when the kernel is wider than what is there. */
int64_t sn_conv_out_size(const sn_conv_attr *attr, int i);

/* b may be NULL. */
SN_MUST_CHECK sn_status sn_conv(sn_tape *tape, sn_value **y, sn_value *x, sn_value *w, sn_value *b,
                                const sn_conv_attr *attr, sn_error *err);

#endif
