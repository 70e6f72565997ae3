/* Sums over rows, cut at fixed blocks: each block of rows is summed in fp32 into its own partial row, the partial rows are
 * joined in double in their order.  Bodies for kernels; include kernels/cpu_blocks.h first. */
#ifndef SN_KERNELS_ROW_SUMS_H
#define SN_KERNELS_ROW_SUMS_H

#include "kernels/cpu_blocks.h"

enum { SN_JOIN_BLOCK = 64 }; /* columns of a block of the joining pass */

/* partial[c] = sum of x[r, c] over the rows r = rows[i] (NULL: i) for first <= i < end. */
SN_INLINE void sn_partial_row_sums(const sn_tensor *x, const int32_t *rows, int64_t first, int64_t end, int64_t columns,
                                   float *partial) {
  memset(partial, 0, (size_t)columns * sizeof(float));
  for (int64_t i = first; i < end; i++) {
    int64_t r = rows ? rows[i] : i;
    for (int64_t c = 0; c < columns; c += SN_CHUNK) {
      float buffer[SN_CHUNK];
      int64_t m = sn_min_i64(SN_CHUNK, columns - c);
      const float *restrict v = sn_load(x, r * columns + c, m, buffer);
      float *restrict to = partial + c;
      for (int64_t j = 0; j < m; j++) to[j] += v[j];
    }
  }
}

/* Block `block` of SN_JOIN_BLOCK columns of `to` = sum over b of partial[b * stride + c]. */
SN_INLINE void sn_join_row_sums(const float *partial, int64_t n_blocks, int64_t stride, int64_t columns, int64_t block,
                                const sn_tensor *to, bool acc) {
  int64_t first = block * SN_JOIN_BLOCK, m = sn_min_i64(SN_JOIN_BLOCK, columns - first);
  double sum[SN_JOIN_BLOCK] = {0};
  for (int64_t b = 0; b < n_blocks; b++) {
    const float *restrict p = partial + b * stride + first;
    for (int64_t i = 0; i < m; i++) sum[i] += (double)p[i];
  }
  float values[SN_JOIN_BLOCK];
  for (int64_t i = 0; i < m; i++) values[i] = (float)sum[i];
  sn_commit(to, first, m, acc, values);
}

#endif
