/* The AMX kernel of attention, its tile operations replaced by plain C that does what the instructions are defined to do
 * (Intel architecture manual: TILELOADD, TILESTORED, TILEZERO, TDPBF16PS), so that it is checked on any machine. Its vector
 * operations are then GCC's generic ones. Where the machine has AMX, the real instructions are checked too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/bf16.h"

/* --- tiles --------------------------------------------------------------------------------------------------------- */

typedef union tile {
  float f32[16][16];
  uint16_t bf16[16][32];
} tile;

static _Thread_local tile tiles[8];
static _Thread_local int configured; /* LDTILECFG .. TILERELEASE */
static int n_misused, fault;

static void tile_load(int t, const void *from, int64_t stride) {
  n_misused += !configured;
  for (int row = 0; row < 16; row++) memcpy(tiles[t].f32[row], (const char *)from + row * stride, 64);
}

static void tile_store(int t, void *to, int64_t stride) {
  n_misused += !configured;
  for (int row = 0; row < 16; row++) memcpy((char *)to + row * stride, tiles[t].f32[row], 64);
}

static void tile_zero(int t) { memset(&tiles[t], 0, sizeof tiles[t]); }

/* C[m][n] += A[m][2k] B[k][2n] + A[m][2k + 1] B[k][2n + 1] */
static void tile_multiply(int c, int a, int b) {
  n_misused += !configured;
  for (int m = 0; m < 16; m++)
    for (int k = 0; k < (fault ? 15 : 16); k++)
      for (int n = 0; n < 16; n++) {
        float even = sn_bf16_to_f32(tiles[a].bf16[m][2 * k]) * sn_bf16_to_f32(tiles[b].bf16[k][2 * n]);
        float odd = sn_bf16_to_f32(tiles[a].bf16[m][2 * k + 1]) * sn_bf16_to_f32(tiles[b].bf16[k][2 * n + 1]);
        tiles[c].f32[m][n] += even + odd;
      }
}

#define SN_TILE_EMULATION
#define SN_TILE_LOAD(t, from, stride) tile_load(t, from, stride)
#define SN_TILE_STORE(t, to, stride) tile_store(t, to, stride)
#define SN_TILE_ZERO(t) tile_zero(t)
#define SN_TILE_MULTIPLY(c, a, b) tile_multiply(c, a, b)
#define SN_BEGIN_THREAD() (configured = 1)
#define SN_END_THREAD() (configured = 0)
#include "kernels/attention/attention_amx.c"

#include "kernels/op_verify.h"

/* --- checks -------------------------------------------------------------------------------------------------------- */

/* Runs every sample; returns how many failed and, when they must not, says which. */
static int run_samples(sn_device *device, const sn_op_impl *impl, bool must_pass, int *n_ran) {
  int n_failed = 0;
  *n_ran = 0;
  for (const sn_op_sample *sample = sn_op_attention.samples; sample->name != NULL; sample++) {
    sn_op_report report;
    sn_error err;
    if (sn_op_verify(device, &sn_op_attention, sample, SN_RUN_BF16, impl, &report, &err) != SN_OK)
      fail_msg("%s: %s", sample->name, err.message);
    *n_ran += report.ran && report.n_compared > 0;
    if (report.failure[0] == '\0') continue;
    n_failed++;
    if (must_pass) fail_msg("%s (%s): %s", sample->name, impl->name, report.failure);
  }
  return n_failed;
}

static void emulated_tiles(void **state) {
  sn_device *device;
  sn_device_options options = {.n_threads = 2};
  int n_ran;
  assert_int_equal(sn_device_create_cpu(&options, &device, NULL), SN_OK);
  run_samples(device, &sn_attention_amx_emulated, true, &n_ran);
  assert_true(n_ran >= 15);
  assert_int_equal(n_misused, 0);
  fault = 1; /* a tile product that forgets its last pair must be noticed */
  assert_true(run_samples(device, &sn_attention_amx_emulated, false, &n_ran) > n_ran / 2);
  fault = 0;
  sn_device_destroy(device);
}

static void real_tiles(void **state) {
  sn_device *device;
  int n_ran;
  assert_int_equal(sn_device_create_cpu(NULL, &device, NULL), SN_OK);
  bool has_amx = device->isa >= SN_ISA_AMX;
#if defined(__x86_64__)
  if (has_amx) {
    run_samples(device, &sn_attention_amx, true, &n_ran);
    assert_true(n_ran >= 15);
  }
#endif
  sn_device_destroy(device);
  if (!has_amx) {
    print_message("skipped: the real AMX instructions of attention: this machine has no AMX (or may not use it)\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(emulated_tiles), cmocka_unit_test(real_tiles)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
