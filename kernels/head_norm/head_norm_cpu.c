/* head_norm, portable. */
#include "kernels/head_norm/head_norm_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return kernel_supports(device, SN_ISA_PORTABLE, "", call, why);
}

const sn_op_impl sn_head_norm_cpu = {.name = "cpu",
                                     .device = SN_DEVICE_CPU,
                                     .supports = supports,
                                     .forward = kernel_forward,
                                     .backward = kernel_backward,
                                     .scratch = kernel_scratch};
