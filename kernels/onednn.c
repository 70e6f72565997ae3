#include "kernels/onednn.h"

#ifdef SONDE_HAVE_ONEDNN
#include <dnnl.h>

bool sn_onednn_has_bf16(void) {
  dnnl_cpu_isa_t isa = dnnl_get_effective_cpu_isa();
  return isa == dnnl_cpu_isa_avx512_core_bf16 || isa == dnnl_cpu_isa_avx512_core_amx;
}
#else
bool sn_onednn_has_bf16(void) { return false; }
#endif
