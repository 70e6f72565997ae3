/* attention, bf16 products with AVX512_BF16 (vdpbf16ps). */
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma")
#define SN_LANES 16
#define SN_PAIRS 1
#define SN_TILES 0
#define SN_BEGIN_THREAD()
#define SN_END_THREAD()
#include "kernels/attention/attention_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return kernel_supports(device, SN_ISA_AVX512_BF16, "the machine (or the cap) has no AVX512_BF16", call, why);
}

const sn_op_impl sn_attention_bf16 = {
    .name = "avx512_bf16",
    .device = SN_DEVICE_CPU,
    .supports = supports,
    .forward = kernel_forward,
    .backward = kernel_backward,
    .scratch = kernel_scratch,
};
#else
typedef int sn_attention_bf16_is_for_x86;
#endif
