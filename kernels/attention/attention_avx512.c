/* attention, fp32 products with AVX-512; bf16 tensors are widened when packed. */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,fma")
#define SN_LANES 16
#define SN_PAIRS 0
#define SN_TILES 0
#define SN_BEGIN_THREAD()
#define SN_END_THREAD()
#include "kernels/attention/attention_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return kernel_supports(device, SN_ISA_AVX512, "the machine (or the cap) has no AVX-512", call, why);
}

const sn_op_impl sn_attention_avx512 = {
    .name = "avx512",
    .device = SN_DEVICE_CPU,
    .supports = supports,
    .forward = kernel_forward,
    .backward = kernel_backward,
    .scratch = kernel_scratch,
};
#else
typedef int sn_attention_avx512_is_for_x86;
#endif
