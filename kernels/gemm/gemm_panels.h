/* A weight in the layout that oneDNN's products want on AVX-512, made faster than by the library's own reorder: panels of 64
 * columns of B (k, n), in each of them for every step the 64 units side by side; a unit is a float, or the bf16 pair
 * (k, k + 1).  As the library names them: BA16a64b, BA16a64b2a. */
#ifndef SN_KERNELS_GEMM_GEMM_PANELS_H
#define SN_KERNELS_GEMM_GEMM_PANELS_H

#include <stdbool.h>
#include <stdint.h>

#include "kernels/device.h"

enum { SN_GEMM_PANEL_N = 64, SN_GEMM_PANEL_K = 32 };

/* w fp32: (n, k) when transposed, else (k, n); n a multiple of 64, k of 32; dst (n / 64, k / per, 64) units.  pairs: rounded to
 * bf16 by the machine's own conversion.  Needs AVX-512 (pairs: AVX-512-BF16).  Threads share the work inside one parallel
 * region. */
void sn_gemm_pack_panels_part(void *dst, const float *w, int64_t n, int64_t k, bool transposed, bool pairs, int thread,
                              int n_threads);

#endif
