#include "kernels/gemm/gemm_product.h"

#include <omp.h>

int64_t sn_product_bytes(const sn_device *device, int64_t m, int64_t n, int64_t k) {
  const sn_gemm_kernel *kernel = sn_gemm_kernel_for(device, SN_F32);
  return sn_gemm_panel_bytes(kernel, SN_GEMM_A, m, k) + sn_gemm_panel_bytes(kernel, SN_GEMM_B, n, k);
}

void sn_product_run(const sn_device *device, const sn_product *product, void *scratch) {
  const sn_gemm_kernel *kernel = sn_gemm_kernel_for(device, SN_F32);
  char *a_panels = scratch, *b_panels = a_panels + sn_gemm_panel_bytes(kernel, SN_GEMM_A, product->m, product->k);
  bool as_it_lies = product->a.dtype == SN_F32 && product->a.k_is_column;
  sn_gemm g = {.kernel = kernel, .m = product->m, .n = product->n, .k = product->k,
               .a = as_it_lies ? product->a.data : a_panels, .lda = as_it_lies ? product->a.ld : 0, .b = b_panels,
               .c = product->c, .ldc = product->n, .c_dtype = product->c_dtype, .acc = product->acc};
#pragma omp parallel num_threads(device->n_threads)
  {
    int thread = omp_get_thread_num(), n = omp_get_num_threads();
    if (!as_it_lies) sn_gemm_pack_part(kernel, SN_GEMM_A, a_panels, &product->a, product->m, product->k, thread, n);
    sn_gemm_pack_part(kernel, SN_GEMM_B, b_panels, &product->b, product->n, product->k, thread, n);
#pragma omp barrier
    sn_gemm_run_part(&g, thread, n);
  }
}
