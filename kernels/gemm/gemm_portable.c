/* Tiles in plain C: 4 x 8, small enough for 16 registers of 4 floats, simple enough for any compiler to vectorise. */
#include "core/bf16.h"
#include "kernels/gemm/gemm_kernels.h"

enum { ROWS = 4, WIDTH = 8 };

__attribute__((optimize("O3"))) static void run(const sn_gemm_tile *t, int rows) {
  float acc[ROWS][WIDTH] = {{0}};
  const float *a = t->a, *b = t->b;
  for (int64_t k = 0; k < t->k; k++, a += t->a_step, b += WIDTH)
    for (int r = 0; r < rows; r++) {
      float x = a[r * t->a_row];
      for (int j = 0; j < WIDTH; j++) acc[r][j] += x * b[j];
    }
  for (int r = 0; r < rows; r++)
    for (int j = 0; j < t->n; j++) {
      float x = acc[r][j] + (t->bias != NULL ? t->bias[j] : 0.0f);
      if (t->c_bf16) {
        uint16_t *c = (uint16_t *)t->c + r * t->ldc + j;
        *c = sn_f32_to_bf16(t->acc ? x + sn_bf16_to_f32(*c) : x);
      } else {
        float *c = (float *)t->c + r * t->ldc + j;
        *c = t->acc ? x + *c : x;
      }
    }
}

const sn_gemm_kernel sn_gemm_portable = {"portable", false, ROWS, WIDTH, ROWS, run, NULL};
