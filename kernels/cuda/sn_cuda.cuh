/* What every .cu file includes first.
 *
 * HOW CUDA KERNELS ARE WRITTEN HERE
 * Beside an op's other files stands NAME_cuda.cu with the kernels and their launchers: `extern "C"`, plain arguments,
 * outputs first, the stream last, no synchronisation, no allocation, the launch error returned (0: none).  dtype is a
 * run-time argument: one binary serves fp32 and bf16.  NAME_launch.c is the op's implementation "cuda", which finds the
 * launcher in the module by name (kernels/cuda/cuda_module.h).
 *
 * nvcc builds all .cu files into libsonde_cuda.so, which the command opens when it is asked for the device.  The same
 * sources are compiled as C++ by the tests, over tests/cuda_emulation/cuda_emulation.h, and run on the CPU against the
 * float64 reference, in several orders of threads: so launches go through SN_LAUNCH, and kernels keep to what is emulated:
 * grid, block, static __shared__ memory, __syncthreads, warp shuffles with a full mask, mathematics of float and double.
 *
 * Sums are cut at fixed blocks and joined in order, as on the CPU: no atomic additions. */
#ifndef SN_KERNELS_CUDA_SN_CUDA_CUH
#define SN_KERNELS_CUDA_SN_CUDA_CUH

#include <stdint.h>

#include "core/tensor.h"

#ifndef SN_CUDA_EMULATION /* else the build has put tests/cuda_emulation/cuda_emulation.h in front */
#include <cuda_runtime.h>
/* An expression: the launch error. */
#define SN_LAUNCH(kernel, grid, block, stream, ...) \
  (kernel<<<(grid), (block), 0, (cudaStream_t)(stream)>>>(__VA_ARGS__), (int)cudaGetLastError())
#endif

/* Faults that the tests plant (tests/test_cuda.c), each of which must be noticed. */
#ifdef SN_PLANT_REMOVED_BARRIER
#define SN_PLANTED_BARRIER() ((void)0)
#else
#define SN_PLANTED_BARRIER() __syncthreads()
#endif
#ifdef SN_PLANT_OFF_BY_ONE
#define SN_PLANTED_END(n) ((n) + 1)
#else
#define SN_PLANTED_END(n) (n)
#endif

enum { SN_WARP = 32, SN_MAX_GRID = 1 << 20 };

__device__ static inline float sn_cuda_load(const void *p, int dtype, int64_t i) {
  if (dtype == SN_F32) return ((const float *)p)[i];
  return __uint_as_float((unsigned)((const uint16_t *)p)[i] << 16);
}

/* Rounds to nearest even when dtype is bf16; acc adds. */
__device__ static inline void sn_cuda_store(void *p, int dtype, int64_t i, float value, int acc) {
  if (acc) value += sn_cuda_load(p, dtype, i);
  if (dtype == SN_F32) {
    ((float *)p)[i] = value;
    return;
  }
  unsigned bits = __float_as_uint(value);
  unsigned rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  if ((bits & 0x7fffffffu) > 0x7f800000u) rounded = (bits >> 16) | 0x40u;
  ((uint16_t *)p)[i] = (uint16_t)rounded;
}

/* Sum over the threads of a one-dimensional block of whole warps, the same bits in every thread. shared: one float for
 * each warp; it may be used again at once. */
__device__ static inline float sn_cuda_block_sum(float value, float *shared) {
  int lane = (int)threadIdx.x % SN_WARP, warp = (int)threadIdx.x / SN_WARP, n_warps = (int)blockDim.x / SN_WARP;
  for (int d = SN_WARP / 2; d > 0; d /= 2) value += __shfl_xor_sync(0xffffffffu, value, d);
  __syncthreads(); /* whoever still reads the last sum */
  if (lane == 0) shared[warp] = value;
  SN_PLANTED_BARRIER();
  float sum = 0.0f;
  for (int w = 0; w < n_warps; w++) sum += shared[w];
  return sum;
}

static inline unsigned sn_cuda_grid(int64_t n, int64_t per_block) {
  int64_t blocks = (n + per_block - 1) / per_block;
  return blocks < SN_MAX_GRID ? (unsigned)blocks : (unsigned)SN_MAX_GRID;
}

#endif
