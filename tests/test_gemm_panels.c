/* Weights in panels of 64 columns against their definition, element by element, with one thread and with three. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/device.h"
#include "kernels/gemm/gemm_panels.h"

static sn_isa machine;

static int find_machine(void **state) {
  sn_device *device;
  sn_error err;
  if (sn_device_create_cpu(NULL, &device, &err) != SN_OK) return 1;
  machine = device->isa;
  sn_device_destroy(device);
  return 0;
}

/* Unit (step, column) of B (k, n), by definition. */
static uint32_t expected(const float *w, int64_t n, int64_t k, bool transposed, bool pairs, int64_t step, int64_t column) {
  uint32_t unit = 0;
  for (int half = 0; half < (pairs ? 2 : 1); half++) {
    const int64_t row = pairs ? 2 * step + half : step;
    const float x = transposed ? w[column * k + row] : w[row * n + column];
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    unit |= pairs ? (uint32_t)sn_f32_to_bf16(x) << (16 * half) : bits;
  }
  return unit;
}

static void check(int64_t n, int64_t k, bool transposed, bool pairs, int n_threads) {
  const int64_t steps = pairs ? k / 2 : k, units = steps * n;
  float *w = malloc((size_t)(n * k) * sizeof *w);
  uint32_t *packed = malloc((size_t)(units + 16) * sizeof *packed);
  assert_non_null(w);
  assert_non_null(packed);
  for (int64_t i = 0; i < n * k; i++) w[i] = (float)(i * 2654435761u % 100003u) / 100003.0f - 0.5f;
  memset(packed, 0xa5, (size_t)(units + 16) * sizeof *packed);
  for (int t = 0; t < n_threads; t++) sn_gemm_pack_panels_part(packed, w, n, k, transposed, pairs, t, n_threads);
  for (int64_t p = 0; p < n / SN_GEMM_PANEL_N; p++)
    for (int64_t s = 0; s < steps; s++)
      for (int64_t j = 0; j < SN_GEMM_PANEL_N; j++)
        assert_int_equal(packed[(p * steps + s) * SN_GEMM_PANEL_N + j],
                         expected(w, n, k, transposed, pairs, s, p * SN_GEMM_PANEL_N + j));
  for (int i = 0; i < 16; i++) assert_int_equal(packed[units + i], 0xa5a5a5a5u);
  free(w);
  free(packed);
}

static void check_shapes(bool pairs) {
  static const int64_t SHAPES[][2] = {{64, 32}, {64, 96}, {192, 32}, {128, 160}, {320, 64}};
  for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++)
    for (int transposed = 0; transposed < 2; transposed++)
      for (int threads = 1; threads <= 3; threads += 2) check(SHAPES[i][0], SHAPES[i][1], transposed != 0, pairs, threads);
}

static void floats(void **state) {
  if (machine < SN_ISA_AVX512) skip();
  check_shapes(false);
}

static void pairs_of_bf16(void **state) {
  if (machine < SN_ISA_AVX512_BF16) skip();
  check_shapes(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(floats), cmocka_unit_test(pairs_of_bf16)};
  return cmocka_run_group_tests(tests, find_machine, NULL);
}
