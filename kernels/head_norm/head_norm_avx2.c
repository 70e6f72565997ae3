/* head_norm, AVX2. */
#if defined(__x86_64__)
#pragma GCC target("avx2")
#include "kernels/head_norm/head_norm_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return kernel_supports(device, SN_ISA_AVX2, "the machine (or the cap) has no AVX2", call, why);
}

const sn_op_impl sn_head_norm_avx2 = {.name = "avx2",
                                      .device = SN_DEVICE_CPU,
                                      .supports = supports,
                                      .forward = kernel_forward,
                                      .backward = kernel_backward,
                                      .scratch = kernel_scratch};
#else
typedef int sn_head_norm_avx2_is_for_x86;
#endif
