/* How this project's own CPU kernels are written.
 *
 * HOW IT WORKS
 * A kernel is a body over one *block*: a fixed number of rows or elements, chosen by the shape alone.  sn_run_blocks
 * hands blocks to OpenMP threads in one parallel region; since sums are cut at blocks and joined in the order of blocks,
 * results do not depend on the number of threads.  Small work runs without waking anyone.
 *
 * A body is an always-inline function; SN_SIMD_VARIANTS compiles it three times (portable, AVX2, AVX-512) and makes
 * NAME_for(device), which gives the version for the device's instruction set.  Bodies are plain loops over contiguous
 * floats that the compiler turns into vector code.  Including this header first sets the compiler's options for the rest
 * of the file: contracted multiply-adds, no errno and traps from mathematics and, through `omp simd reduction`, lane-wise
 * sums; nothing else of fast-math.
 *
 * Elements are read and written in chunks of SN_CHUNK floats: sn_load gives a pointer to float32 data, converted into the
 * caller's buffer when the tensor is bf16; sn_target gives the place to compute into, sn_commit rounds or adds it.
 *
 * LIMITATIONS
 * F32 and BF16 only; float64 is computed by the references. */
#ifndef SN_KERNELS_CPU_BLOCKS_H
#define SN_KERNELS_CPU_BLOCKS_H

#pragma GCC optimize("O3", "fp-contract=fast", "no-math-errno", "no-trapping-math")

#include <string.h>

#include "core/bf16.h"
#include "kernels/op.h"

#define SN_INLINE static inline __attribute__((always_inline))

enum {
  SN_CHUNK = 1024,        /* floats of a stack buffer */
  SN_FLAT_BLOCK = 16384,  /* elements of a block of elementwise work: a multiple of SN_CHUNK */
  SN_ROW_BLOCK = 32       /* rows of a block of row work */
};

typedef void (*sn_block_body)(void *context, int64_t block);

/* work: bytes touched, to decide whether threads are worth waking. */
void sn_run_blocks(const sn_device *device, double work, int64_t n_blocks, sn_block_body body, void *context);
/* The same, then n_second blocks of `second` after all of the first are done: still one parallel region. */
void sn_run_blocks_then(const sn_device *device, double work, int64_t n_blocks, sn_block_body body, int64_t n_second,
                        sn_block_body second, void *context);

static inline int64_t sn_count_blocks(int64_t n, int64_t block) { return (n + block - 1) / block; }
static inline int64_t sn_min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

#if defined(__x86_64__)
#define SN_TARGET_AVX2 __attribute__((target("avx2,fma,bmi2,f16c")))
#define SN_TARGET_AVX512 \
  __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,bmi2,f16c,prefer-vector-width=512")))
#define SN_SIMD_VARIANTS(name) \
  static void name##_portable(void *p, int64_t block) { name(p, block); } \
  SN_TARGET_AVX2 static void name##_avx2(void *p, int64_t block) { name(p, block); } \
  SN_TARGET_AVX512 static void name##_avx512(void *p, int64_t block) { name(p, block); } \
  static sn_block_body name##_for(const sn_device *device) { \
    return device->isa >= SN_ISA_AVX512 ? name##_avx512 : device->isa >= SN_ISA_AVX2 ? name##_avx2 \
                                                                                   : name##_portable; \
  }
#else
#define SN_SIMD_VARIANTS(name) \
  static void name##_portable(void *p, int64_t block) { name(p, block); } \
  static sn_block_body name##_for(const sn_device *device) { return name##_portable; }
#endif

SN_INLINE float *sn_f32_at(const sn_tensor *t, int64_t offset) { return (float *)t->data + offset; }
SN_INLINE uint16_t *sn_bf16_at(const sn_tensor *t, int64_t offset) { return (uint16_t *)t->data + offset; }

SN_INLINE void sn_widen(float *restrict to, const uint16_t *restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) to[i] = sn_bf16_to_f32(from[i]);
}

SN_INLINE void sn_narrow(uint16_t *restrict to, const float *restrict from, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    uint32_t bits;
    memcpy(&bits, &from[i], sizeof bits);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40u;
    to[i] = (uint16_t)((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
  }
}

/* n <= SN_CHUNK values from `offset` on as float32: the tensor's own memory, or buffer after conversion. */
SN_INLINE const float *sn_load(const sn_tensor *t, int64_t offset, int64_t n, float *buffer) {
  if (t->dtype == SN_F32) return sn_f32_at(t, offset);
  sn_widen(buffer, sn_bf16_at(t, offset), n);
  return buffer;
}

/* Where to compute values that sn_commit then stores: the tensor's own memory when nothing is left to do. */
SN_INLINE float *sn_target(const sn_tensor *t, int64_t offset, bool acc, float *buffer) {
  return t->dtype == SN_F32 && !acc ? sn_f32_at(t, offset) : buffer;
}

SN_INLINE void sn_commit(const sn_tensor *t, int64_t offset, int64_t n, bool acc, const float *values) {
  if (t->dtype == SN_F32) {
    float *restrict to = sn_f32_at(t, offset);
    if (to == values) return;
    if (acc)
      for (int64_t i = 0; i < n; i++) to[i] += values[i];
    else
      memcpy(to, values, (size_t)n * sizeof(float));
    return;
  }
  uint16_t *restrict to = sn_bf16_at(t, offset);
  if (!acc) {
    sn_narrow(to, values, n);
    return;
  }
  float sum[SN_CHUNK];
  for (int64_t i = 0; i < n; i++) sum[i] = sn_bf16_to_f32(to[i]) + values[i];
  sn_narrow(to, sum, n);
}

#endif
