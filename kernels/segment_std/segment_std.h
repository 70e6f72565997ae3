/* Deviation within each segment's rows (kernels/segments.h):
 *
 *     y[s,c] = sqrt(mean_t((x[t,c] - mean_t(x[t,c]))^2) + eps)   over rows t of segment s (divisor n); 0 when empty
 *
 * x [in] (T, C); y [out] (n_segments, C), x's type. eps > 0 (a segment of one row gives sqrt(eps) and gradient 0).
 * saved: mean and deviation (n_segments, C), F32 (F64 when x is F64).
 * Backward: dx[t] = dy[s] * (x[t] - mean) / (n_s * y). Two passes in double. */
#ifndef SN_KERNELS_SEGMENT_STD_H
#define SN_KERNELS_SEGMENT_STD_H

#include "kernels/segments.h"
#include "kernels/tape.h"

typedef struct sn_segment_std_attr {
  sn_segments segments;
  double eps;
} sn_segment_std_attr;

extern const sn_op sn_op_segment_std;
extern const sn_op_impl sn_segment_std_cpu, sn_segment_std_ref;

SN_MUST_CHECK sn_status sn_segment_std(sn_tape *tape, sn_value **y, sn_value *x, const int64_t *offsets,
                                       int64_t n_segments, double eps, sn_error *err);

#endif
