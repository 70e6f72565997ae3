/* The implementations of head_norm. */
#ifndef SN_KERNELS_HEAD_NORM_IMPL_H
#define SN_KERNELS_HEAD_NORM_IMPL_H

#include "kernels/head_norm/head_norm.h"

extern const sn_op_impl sn_head_norm_ref, sn_head_norm_cpu;
#if defined(__x86_64__)
extern const sn_op_impl sn_head_norm_avx2, sn_head_norm_avx512;
#endif

#endif
