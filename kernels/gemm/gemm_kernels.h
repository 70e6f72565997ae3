/* The kernels (private to this folder). NULL where the machine's family has no such thing. */
#ifndef SN_KERNELS_GEMM_GEMM_KERNELS_H
#define SN_KERNELS_GEMM_GEMM_KERNELS_H

#include "kernels/gemm/gemm.h"

extern const sn_gemm_kernel sn_gemm_portable;
#if defined(__x86_64__)
extern const sn_gemm_kernel sn_gemm_avx2, sn_gemm_avx512, sn_gemm_avx512_bf16;
#endif

#endif
