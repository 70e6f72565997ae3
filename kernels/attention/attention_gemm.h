/* C (M, N) [out] or [acc] = A (M, K) B (K, N) on packed operands, in registers; included once per kernel file.
 *
 * Everything counts in units of 4 bytes: one fp32 value, or (SN_PAIRS) a pair of bf16 values that are neighbours along K,
 * whose two products are added at once. So K counts units, and an fp32 and a bf16 product differ in one instruction.
 *   A: unit (m, k) at a + m * row_step + k * k_step.
 *   B: panels of SN_PANEL columns, each (K capacity, width) row-major; the last panel has the remaining width.
 *   C: fp32, row-major, row length ldc.
 * N is a multiple of SN_LANES. The reduction runs in order of k in one accumulator per element (pairs: two products a
 * step). */
#ifndef SN_KERNELS_ATTENTION_GEMM_H
#define SN_KERNELS_ATTENTION_GEMM_H

#include "kernels/attention/attention_vec.h"

typedef float unit __attribute__((may_alias)); /* 4 bytes; a pair of bf16 is only ever moved */

typedef struct packed_b {
  unit *data;
  int64_t k, n; /* capacity in units, columns */
} packed_b;

typedef struct strided_a {
  const unit *data;
  int64_t row_step, k_step;
} strided_a;

#if SN_LANES == 16
enum { SN_PANEL = 64 };
#else
enum { SN_PANEL = 16 };
#endif

SN_INLINE int64_t panel_width(const packed_b *b, int64_t column) {
  int64_t left = b->n - column;
  return left < SN_PANEL ? left : SN_PANEL;
}

#if !SN_TILES

SN_INLINE vf multiply_add(const unit *a, vf b, vf c) {
#if SN_PAIRS
  return (vf)_mm512_dpbf16_ps((__m512)c, (__m512bh)_mm512_set1_ps(*a), (__m512bh)b);
#else
  return vf_fma(vf_set1(*a), b, c);
#endif
}

/* A block of R rows and V vectors, held in registers over all of K. */
#define SN_BLOCK(R, V)                                                                                              \
  static void block_##R##_##V(int64_t k, const unit *a, int64_t row_step, int64_t k_step, const unit *b, int64_t ldb, \
                              float *c, int64_t ldc, bool acc) {                                                    \
    vf sum[R][V];                                                                                                   \
    _Pragma("GCC unroll 16") for (int r = 0; r < R; r++)                                                            \
        _Pragma("GCC unroll 4") for (int v = 0; v < V; v++) sum[r][v] =                                             \
            acc ? vf_load(c + r * ldc + v * SN_LANES) : vf_zero();                                                  \
    for (int64_t i = 0; i < k; i++) {                                                                               \
      vf row[V];                                                                                                    \
      _Pragma("GCC unroll 4") for (int v = 0; v < V; v++) row[v] = vf_load(b + v * SN_LANES);                       \
      _Pragma("GCC unroll 16") for (int r = 0; r < R; r++)                                                          \
          _Pragma("GCC unroll 4") for (int v = 0; v < V; v++) sum[r][v] =                                           \
              multiply_add(a + r * row_step, row[v], sum[r][v]);                                                    \
      a += k_step;                                                                                                  \
      b += ldb;                                                                                                     \
    }                                                                                                               \
    _Pragma("GCC unroll 16") for (int r = 0; r < R; r++)                                                            \
        _Pragma("GCC unroll 4") for (int v = 0; v < V; v++) vf_store(c + r * ldc + v * SN_LANES, sum[r][v]);        \
  }

#define SN_BLOCKS_OF_V(V) \
  SN_BLOCK(1, V) SN_BLOCK(2, V) SN_BLOCK(3, V) SN_BLOCK(4, V) SN_BLOCK(5, V) SN_BLOCK(6, V)
SN_BLOCKS_OF_V(1)
SN_BLOCKS_OF_V(2)
SN_BLOCK(7, 1)
SN_BLOCK(8, 1)
#if SN_LANES == 16
SN_BLOCKS_OF_V(3)
SN_BLOCKS_OF_V(4)
SN_BLOCK(9, 1)
SN_BLOCK(10, 1)
SN_BLOCK(11, 1)
SN_BLOCK(12, 1)
SN_BLOCK(7, 2)
SN_BLOCK(8, 2)
SN_BLOCK(9, 2)
SN_BLOCK(10, 2)
SN_BLOCK(11, 2)
SN_BLOCK(12, 2)
SN_BLOCK(7, 3)
SN_BLOCK(8, 3)
#endif

typedef void (*block_function)(int64_t k, const unit *a, int64_t row_step, int64_t k_step, const unit *b, int64_t ldb,
                               float *c, int64_t ldc, bool acc);

#define SN_ROW_OF_6(V) block_1_##V, block_2_##V, block_3_##V, block_4_##V, block_5_##V, block_6_##V
#if SN_LANES == 16
static const int most_rows[4] = {12, 12, 8, 6};
static const block_function blocks[4][12] = {
    {SN_ROW_OF_6(1), block_7_1, block_8_1, block_9_1, block_10_1, block_11_1, block_12_1},
    {SN_ROW_OF_6(2), block_7_2, block_8_2, block_9_2, block_10_2, block_11_2, block_12_2},
    {SN_ROW_OF_6(3), block_7_3, block_8_3},
    {SN_ROW_OF_6(4)}};
#else
static const int most_rows[2] = {8, 6};
static const block_function blocks[2][8] = {{SN_ROW_OF_6(1), block_7_1, block_8_1}, {SN_ROW_OF_6(2)}};
#endif

static void gemm(int64_t m, int64_t n, int64_t k, strided_a a, const packed_b *b, float *c, int64_t ldc, bool acc) {
  for (int64_t column = 0; column < n; column += SN_PANEL) {
    int64_t ldb = panel_width(b, column);
    int v = (int)((n - column < ldb ? n - column : ldb) / SN_LANES);
    int64_t n_blocks = (m + most_rows[v - 1] - 1) / most_rows[v - 1];
    for (int64_t row = 0; n_blocks > 0; n_blocks--) {
      int64_t rows = (m - row + n_blocks - 1) / n_blocks;
      blocks[v - 1][rows - 1](k, a.data + row * a.row_step, a.row_step, a.k_step, b->data + column * b->k, ldb,
                              c + row * ldc + column, ldc, acc);
      row += rows;
    }
  }
}

#else /* SN_TILES: 16 x 16 fp32 tiles, 16 units (32 bf16) of K at a time; the file defines the tile operations. */

/* M, N multiples of 16, K a multiple of 16 units, k_step 1. Tiles 0..3 hold C, 4, 5 A and 6, 7 B. */
static void gemm(int64_t m, int64_t n, int64_t k, strided_a a, const packed_b *b, float *c, int64_t ldc, bool acc) {
  const int64_t c_bytes = ldc * 4, a_bytes = a.row_step * 4;
  for (int64_t column = 0; column < n; column += 32) {
    int64_t panel = column / SN_PANEL * SN_PANEL, ldb = panel_width(b, panel);
    const unit *b0 = b->data + panel * b->k + (column - panel);
    bool two_columns = column + 16 < n;
    for (int64_t row = 0; row < m; row += 32) {
      float *c0 = c + row * ldc + column, *c1 = c0 + 16 * ldc;
      const unit *a0 = a.data + row * a.row_step, *a1 = a0 + 16 * a.row_step;
      bool two_rows = row + 16 < m;
      if (acc) {
        SN_TILE_LOAD(0, c0, c_bytes);
        if (two_columns) SN_TILE_LOAD(1, c0 + 16, c_bytes);
        if (two_rows) SN_TILE_LOAD(2, c1, c_bytes);
        if (two_rows && two_columns) SN_TILE_LOAD(3, c1 + 16, c_bytes);
      } else {
        SN_TILE_ZERO(0);
        SN_TILE_ZERO(1);
        SN_TILE_ZERO(2);
        SN_TILE_ZERO(3);
      }
      for (int64_t i = 0; i < k; i += 16) {
        SN_TILE_LOAD(4, a0 + i, a_bytes);
        SN_TILE_LOAD(6, b0 + i * ldb, ldb * 4);
        SN_TILE_MULTIPLY(0, 4, 6);
        if (two_columns) {
          SN_TILE_LOAD(7, b0 + i * ldb + 16, ldb * 4);
          SN_TILE_MULTIPLY(1, 4, 7);
        }
        if (two_rows) {
          SN_TILE_LOAD(5, a1 + i, a_bytes);
          SN_TILE_MULTIPLY(2, 5, 6);
          if (two_columns) SN_TILE_MULTIPLY(3, 5, 7);
        }
      }
      SN_TILE_STORE(0, c0, c_bytes);
      if (two_columns) SN_TILE_STORE(1, c0 + 16, c_bytes);
      if (two_rows) SN_TILE_STORE(2, c1, c_bytes);
      if (two_rows && two_columns) SN_TILE_STORE(3, c1 + 16, c_bytes);
    }
  }
}

#endif
#endif
