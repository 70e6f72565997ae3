/* Largest value of each segment's rows (kernels/segments.h): y[s,c] = max over rows t of segment s of x[t,c]; 0 when empty.
 * x [in] (T, C); y [out] (n_segments, C), x's type; saved: the row it came from, I32 (n_segments, C), -1 when empty.
 * Backward: the gradient goes to that row; of equal values the first one counts. A NaN wins over numbers. T < 2^31. */
#ifndef SN_KERNELS_SEGMENT_MAX_H
#define SN_KERNELS_SEGMENT_MAX_H

#include "kernels/segments.h"
#include "kernels/tape.h"

extern const sn_op sn_op_segment_max;
extern const sn_op_impl sn_segment_max_cpu, sn_segment_max_ref;

SN_MUST_CHECK sn_status sn_segment_max(sn_tape *tape, sn_value **y, sn_value *x, const int64_t *offsets,
                                       int64_t n_segments, sn_error *err);

#endif
