/* head_norm, AVX-512. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#include "kernels/head_norm/head_norm_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return kernel_supports(device, SN_ISA_AVX512, "the machine (or the cap) has no AVX-512", call, why);
}

const sn_op_impl sn_head_norm_avx512 = {.name = "avx512",
                                        .device = SN_DEVICE_CPU,
                                        .supports = supports,
                                        .forward = kernel_forward,
                                        .backward = kernel_backward,
                                        .scratch = kernel_scratch};
#else
typedef int sn_head_norm_avx512_is_for_x86;
#endif
