/* Segments of rows: what the pooling ops segment_mean, segment_max and segment_std share.
 *
 * Segment s is the rows offsets[s] .. offsets[s+1] of x (T, C); 0 <= offsets[0] <= ... <= offsets[n_segments] <= T. Rows
 * outside all segments (the zero tail of a pack) enter nothing and get gradient 0. An empty segment gives a row of zeros
 * and no gradient. Work is cut into (segment, 64 columns), summed in double in the order of rows. */
#ifndef SN_KERNELS_SEGMENTS_H
#define SN_KERNELS_SEGMENTS_H

#include "kernels/op.h"

typedef struct sn_segments {
  const int64_t *offsets; /* (n_segments + 1): must live as long as the tape */
  int64_t n_segments;
} sn_segments;

enum { SN_SEGMENT_COLUMNS = 64 };

/* infer of a pooling op: x (T, C) gives (n_segments, C) of x's type. */
SN_MUST_CHECK sn_status sn_segments_rule(sn_op_call *call, const sn_segments *segments, sn_error *err);
/* SN_E_ARGUMENT, naming the place, unless offsets ascend within [0, rows]. */
SN_MUST_CHECK sn_status sn_segments_check(const sn_segments *segments, int64_t rows, sn_error *err);
/* Zero-fills din[0] outside the segments unless it is added to. */
void sn_segments_zero_outside(const sn_op_call *call, const sn_segments *segments);

#endif
