/* One whole matrix product in fp32, C (M, N) (+)= A (M, K) B (K, N), for ops in which a product is one of several steps
 * (losses over pairs of rows, covariances).  Operands may be fp32 or bf16 (widened) and lie either way round; what has to be
 * packed is packed into the caller's scratch memory.  One OpenMP parallel region; every element is one sum over k in
 * ascending order, the same bits for any number of threads. */
#ifndef SN_KERNELS_GEMM_PRODUCT_H
#define SN_KERNELS_GEMM_PRODUCT_H

#include "kernels/gemm/gemm.h"

typedef struct sn_product {
  int64_t m, n, k;
  sn_gemm_source a; /* k_is_column: (m, k), else (k, m) */
  sn_gemm_source b; /* k_is_column: (n, k), else (k, n) */
  void *c;          /* (m, n), SN_F32 or SN_BF16, ldc = n */
  sn_dtype c_dtype;
  bool acc;
} sn_product;

/* An operand: a matrix of `columns` columns, row-major without gaps. */
static inline sn_gemm_source sn_product_operand(const void *data, sn_dtype dtype, int64_t columns, bool k_is_column) {
  return (sn_gemm_source){data, dtype, columns, k_is_column, false};
}

int64_t sn_product_bytes(const sn_device *device, int64_t m, int64_t n, int64_t k); /* a multiple of 64 */
void sn_product_run(const sn_device *device, const sn_product *product, void *scratch); /* scratch: 64-byte aligned */

#endif
