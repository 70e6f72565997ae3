/* The walk that the CPU kernels of segment_mean, segment_max and segment_std share: a block is SN_SEGMENT_COLUMNS columns
 * of one segment (kernels/segments.h). Included after kernels/cpu_blocks.h, by *_cpu.c files alone. */
#ifndef SN_KERNELS_SEGMENTS_CPU_H
#define SN_KERNELS_SEGMENTS_CPU_H

#include "kernels/cpu_blocks.h"
#include "kernels/op_rules.h"
#include "kernels/segments.h"

/* The context of a body. */
typedef struct sn_segment_work {
  const sn_op_call *call;
  const sn_segments *segments;
  int64_t columns, n_column_blocks;
} sn_segment_work;

/* Rows first .. end of x, n columns of each from `column` on; `at` is the block's place in y, dy and what was saved. */
typedef struct sn_segment_block {
  int64_t first, end, column, n, at;
} sn_segment_block;

SN_INLINE sn_segment_block sn_segment_block_of(const sn_segment_work *k, int64_t block) {
  int64_t s = block / k->n_column_blocks, c = block % k->n_column_blocks * SN_SEGMENT_COLUMNS;
  return (sn_segment_block){.first = k->segments->offsets[s],
                            .end = k->segments->offsets[s + 1],
                            .column = c,
                            .n = sn_min_i64(SN_SEGMENT_COLUMNS, k->columns - c),
                            .at = s * k->columns + c};
}

static inline sn_status sn_segments_run(sn_device *device, const sn_op_call *call, const sn_segments *segments,
                                        bool backward, sn_block_body body, sn_error *err) {
  SN_TRY(sn_segments_check(segments, sn_tensor_rows(&call->in[0]), err));
  if (backward) sn_segments_zero_outside(call, segments);
  sn_segment_work k = {call, segments, sn_tensor_columns(&call->in[0]), 0};
  k.n_column_blocks = sn_count_blocks(k.columns, SN_SEGMENT_COLUMNS);
  sn_run_blocks(device, sn_bytes_of_call(call, backward), segments->n_segments * k.n_column_blocks, body, &k);
  return SN_OK;
}

static inline sn_status sn_segments_forward(sn_device *device, const sn_op_call *call, const sn_segments *segments,
                                            sn_block_body body, sn_error *err) {
  return sn_segments_run(device, call, segments, false, body, err);
}

/* Nothing to do where no gradient comes or none is wanted. */
static inline sn_status sn_segments_backward(sn_device *device, const sn_op_call *call, const sn_segments *segments,
                                             sn_block_body body, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  return sn_segments_run(device, call, segments, true, body, err);
}

#endif
