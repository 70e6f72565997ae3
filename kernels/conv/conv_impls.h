/* The implementations of conv (private to this folder), and the geometry they share. */
#ifndef SN_KERNELS_CONV_CONV_IMPLS_H
#define SN_KERNELS_CONV_CONV_IMPLS_H

#include "kernels/conv/conv.h"

extern const sn_op_impl sn_conv_cpu, sn_conv_ref;

/* Always three dimensions: those that are not there have size, kernel, stride and out 1. */
typedef struct sn_conv_geometry {
  int64_t rows;                              /* T */
  int64_t size[3], kernel[3], stride[3], padding[3], out[3];
  int64_t cin, cout;
  int64_t positions_in, positions_out, taps; /* products of size, out, kernel */
} sn_conv_geometry;
sn_conv_geometry sn_conv_geometry_of(const sn_op_call *call);

#endif
