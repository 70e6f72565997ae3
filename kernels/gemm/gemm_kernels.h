/* The kernels (private to this folder). NULL where the machine's family has no such thing. */
#ifndef SN_KERNELS_GEMM_GEMM_KERNELS_H
#define SN_KERNELS_GEMM_GEMM_KERNELS_H

#include "kernels/gemm/gemm.h"

extern const sn_gemm_kernel sn_gemm_portable;
#if defined(__x86_64__)
/* Sums of 32 columns over rows < 256, in the order of rows; x: first element, ld elements from row to row. */
void sn_gemm_sum_columns_avx512(double sum[32], const void *x, sn_dtype dtype, int64_t rows, int64_t ld);
void sn_gemm_round_avx512(uint16_t *dst, const float *src, int64_t n);

extern const sn_gemm_kernel sn_gemm_avx2, sn_gemm_avx512, sn_gemm_avx512_bf16;
#endif

#endif
