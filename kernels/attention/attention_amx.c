/* attention, bf16 products with AMX tiles (tdpbf16ps); packing and softmax with AVX-512.
 *
 * The tile operations are macros, so that a test can define SN_TILE_EMULATION with its own before including this file: the
 * same kernel then runs, and is checked, on a machine without AMX. */
#if defined(__x86_64__) || defined(SN_TILE_EMULATION)
#if !defined(SN_TILE_EMULATION)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,fma,amx-tile,amx-bf16")
#include <immintrin.h>

/* GCC's load does not say that it reads memory: without the barrier, stores to the packed operands may move past it. */
#define SN_TILE_LOAD(tile, from, stride)    \
  do {                                      \
    __asm__ volatile("" ::: "memory");      \
    _tile_loadd(tile, from, stride);        \
  } while (0)
#define SN_TILE_STORE(tile, to, stride) _tile_stored(tile, to, stride)
#define SN_TILE_ZERO(tile) _tile_zero(tile)
#define SN_TILE_MULTIPLY(c, a, b) _tile_dpbf16ps(c, a, b)
#define SN_BEGIN_THREAD() configure_tiles()
#define SN_END_THREAD() _tile_release()

#include <stdint.h>

/* Eight tiles of 16 rows of 64 bytes (Intel architecture manual, LDTILECFG). The process's permission to use tiles is
 * asked for where the device is made. */
static void configure_tiles(void) {
  struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
  } config __attribute__((aligned(64))) = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  __asm__ volatile("" ::"r"(&config) : "memory"); /* the intrinsic names only its first 8 bytes as read */
  _tile_loadconfig(&config);
}
#endif

#define SN_LANES 16
#define SN_PAIRS 1
#define SN_TILES 1
#include "kernels/attention/attention_body.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
#if defined(SN_TILE_EMULATION)
  return kernel_supports(device, SN_ISA_PORTABLE, "", call, why);
#else
  return kernel_supports(device, SN_ISA_AMX, "the machine (or the cap) has no AMX", call, why);
#endif
}

#if defined(SN_TILE_EMULATION)
static const sn_op_impl sn_attention_amx_emulated = {
    .name = "amx emulated",
#else
const sn_op_impl sn_attention_amx = {
    .name = "amx",
#endif
    .device = SN_DEVICE_CPU,
    .supports = supports,
    .forward = kernel_forward,
    .backward = kernel_backward,
    .scratch = kernel_scratch,
};
#else
typedef int sn_attention_amx_is_for_x86;
#endif
