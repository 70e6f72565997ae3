/* Mean of each segment's rows (kernels/segments.h): y[s,c] = mean over rows t of segment s of x[t,c]; 0 when empty.
 * x [in] (T, C); y [out] (n_segments, C), x's type. Backward: dx[t] = dy[s] / n_s. */
#ifndef SN_KERNELS_SEGMENT_MEAN_H
#define SN_KERNELS_SEGMENT_MEAN_H

#include "kernels/segments.h"
#include "kernels/tape.h"

extern const sn_op sn_op_segment_mean;
extern const sn_op_impl sn_segment_mean_cpu, sn_segment_mean_ref;

SN_MUST_CHECK sn_status sn_segment_mean(sn_tape *tape, sn_value **y, sn_value *x, const int64_t *offsets,
                                        int64_t n_segments, sn_error *err);

#endif
