/* attention, fp32 products with AVX2; bf16 tensors are widened when packed. */
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#define SN_LANES 8
#define SN_PAIRS 0
#define SN_TILES 0
#define SN_BEGIN_THREAD()
#define SN_END_THREAD()
#include "kernels/attention/attention_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return kernel_supports(device, SN_ISA_AVX2, "the machine (or the cap) has no AVX2", call, why);
}

const sn_op_impl sn_attention_avx2 = {
    .name = "avx2",
    .device = SN_DEVICE_CPU,
    .supports = supports,
    .forward = kernel_forward,
    .backward = kernel_backward,
    .scratch = kernel_scratch,
};
#else
typedef int sn_attention_avx2_is_for_x86;
#endif
