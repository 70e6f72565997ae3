/* rope: rotary position encoding of chosen column ranges, out of place.
 *
 * Every range holds whole heads of D channels. Axis a owns axis_channels[a] = d_a (even) consecutive channels of a head,
 * axis 0 first; channels that no axis owns, and columns in no range, are copied. Pairs are interleaved: with c the first
 * channel of axis a in the head and i = 0 .. d_a/2 - 1
 *
 *     phi           = positions[t, a] * base^(-2 i / d_a)
 *     y[c + 2i]     = x[c + 2i] * cos(phi) - x[c + 2i + 1] * sin(phi)
 *     y[c + 2i + 1] = x[c + 2i] * sin(phi) + x[c + 2i + 1] * cos(phi)
 *
 * Inputs:  in[0] x (T, W); in[1] positions (T, n_axes), fp32 or fp64, already divided by the axis' unit step; no gradient.
 * Output:  out[0] [out] (T, W), dtype of x. Gradient: din[0] [out] / [acc], the rotation by -phi of dout.
 * Numerics: angles in fp64 (fp32 positions are widened), sine and cosine to fp32 accuracy; fp64 throughout in the reference.
 * Errors: SN_E_ARGUMENT for ranges that are no whole heads, leave the columns or overlap, odd channels, more channels than
 * D, base <= 1.
 * Source: J. Su et al., "RoFormer: enhanced transformer with rotary position embedding", 2021, eq. 34. */
#ifndef SN_KERNELS_ROPE_H
#define SN_KERNELS_ROPE_H

#include "kernels/tape.h"

enum { SN_ROPE_MAX_AXES = 4, SN_ROPE_MAX_RANGES = 4 };

typedef struct sn_rope_attr {
  int64_t head_dim;                          /* D */
  int64_t n_ranges;
  int64_t range_begin[SN_ROPE_MAX_RANGES];   /* columns [begin, end), whole heads; q and k of a fused qkv: [0, 2C) */
  int64_t range_end[SN_ROPE_MAX_RANGES];
  int64_t n_axes;                            /* 1..4 */
  int64_t axis_channels[SN_ROPE_MAX_AXES];   /* all 0: 2*floor(floor(D/n_axes)/2) for each axis */
  double base;                               /* 0: 10000 */
} sn_rope_attr;

extern const sn_op sn_op_rope;

SN_MUST_CHECK sn_status sn_rope(sn_tape *tape, sn_value **out, sn_value *x, sn_value *positions, const sn_rope_attr *attr,
                                sn_error *err);

#endif
