/* Matrix products of our own: C (M, N) = A (M, K) B (K, N), for ops whose work is a product (linear, conv).
 *
 * A and B are packed into panels, so that the innermost loop reads both in order; a tile of C stays in registers over the
 * whole of K.  Types: fp32, or bf16 pairs with fp32 accumulators (the machine's dot product where the device has
 * AVX-512-BF16; elsewhere the bf16 values are widened and the fp32 kernel runs: slower, same rounding of inputs).
 *
 * Every element of C is one sum over k in ascending order, whatever the number of threads: the same bits for any.
 *
 * All functions named _part run inside one OpenMP parallel region, each thread its share; the caller puts barriers between
 * packing and product.  Memory is the caller's (64-byte aligned), sizes come from sn_gemm_panel_bytes. */
#ifndef SN_KERNELS_GEMM_GEMM_H
#define SN_KERNELS_GEMM_GEMM_H

#include <stdbool.h>
#include <stdint.h>

#include "core/tensor.h"
#include "kernels/device.h"

/* How one tile of C is computed. */
typedef struct sn_gemm_tile {
  int64_t k;               /* steps: K, or pairs of k */
  const void *a;           /* 4-byte units: a float, or a pair of bf16 */
  int64_t a_row, a_step;   /* units from row to row, and from step to step */
  const void *b;           /* panel: (k, width) units */
  void *c;                 /* first element of the tile */
  int64_t ldc;             /* elements */
  int n;                   /* valid columns, up to width */
  bool c_bf16, acc;        /* acc: C += */
  const float *bias;       /* (n) or NULL */
} sn_gemm_tile;

/* A matrix as it lies in memory, fp32 or bf16, row-major with `ld` elements from row to row. */
typedef struct sn_gemm_source {
  const void *data;
  sn_dtype dtype;
  int64_t ld;
  bool k_is_column; /* true: (n, k), k runs along a row (a weight, for y = x Wᵀ); false: (k, n) */
  bool round;       /* fp32 data of a bf16 product: round to bf16 first (pairs always do) */
} sn_gemm_source;

typedef struct sn_gemm_kernel {
  const char *name;
  bool pairs;              /* takes bf16 pairs; else floats */
  int rows, width;         /* largest tile */
  int pitch;               /* units from step to step of a packed panel of A, at least `rows` */
  void (*run)(const sn_gemm_tile *tile, int rows);
  /* (optional) Packs one panel: `wide` rows or columns from `first` on, zeros up to `pitch`; false: it does not know this
   * case. */
  bool (*pack)(int pitch, int wide, uint32_t *dst, const sn_gemm_source *source, int64_t first, int64_t k);
} sn_gemm_kernel;

/* The kernel for products of this type (SN_F32, SN_BF16) on this device. */
const sn_gemm_kernel *sn_gemm_kernel_for(const sn_device *device, sn_dtype product);

typedef enum sn_gemm_side { SN_GEMM_A, SN_GEMM_B } sn_gemm_side;

/* Bytes of n rows of A or columns of B over k, packed. */
int64_t sn_gemm_panel_bytes(const sn_gemm_kernel *kernel, sn_gemm_side side, int64_t n, int64_t k);

/* Packs the rows of A or columns of B [0, n) of `source` over k in [0, k) into panels of kernel->rows or kernel->width:
 * element (step, j) of panel p is at (p * steps + step) * pitch + j units, pitch being kernel->pitch or kernel->width;
 * what is past n and the odd half of the last pair are zero. */
void sn_gemm_pack_part(const sn_gemm_kernel *kernel, sn_gemm_side side, void *packed, const sn_gemm_source *source, int64_t n,
                       int64_t k, int thread, int n_threads);

typedef struct sn_gemm {
  const sn_gemm_kernel *kernel;
  int64_t m, n, k;
  const void *a;          /* packed, or as it lies in memory */
  int64_t lda;            /* 0: packed; else elements from row to row: rows of k floats, or of bf16 with k even */
  const void *b;          /* packed */
  void *c;
  int64_t ldc;
  sn_dtype c_dtype;       /* SN_F32 or SN_BF16 */
  bool acc;
  const float *bias;      /* (n) added to every row; NULL: none */
} sn_gemm;
void sn_gemm_run_part(const sn_gemm *gemm, int thread, int n_threads);

/* dst[i] = src[i] rounded to bf16. */
void sn_gemm_round_part(const sn_device *device, uint16_t *dst, const float *src, int64_t n, int thread, int n_threads);

/* Column sums of (rows, columns), fp32 or bf16, in double over blocks of 256 rows: out[j] (+)= sum_t x[t, j]. */
void sn_gemm_column_sums_part(const sn_device *device, float *out, bool acc, const void *x, sn_dtype dtype,
                              int64_t rows, int64_t columns, int thread, int n_threads);

#endif
