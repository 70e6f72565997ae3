/* CUDA on the CPU, for tests: compiles a .cu file as C++ and runs its kernels, so that indices, barriers and sums are
 * checked against the float64 reference where there is no GPU.
 *
 * HOW IT WORKS
 * Every CUDA thread is a fiber (ucontext).  Blocks run one after the other; inside a block the scheduler resumes each fiber
 * in turn, in the order that sn_emulation_set_order chose (0 ascending, 1 descending, 2 and above shuffled anew for every
 * round), until it reaches a barrier, a shuffle or its end.  A warp goes on once all its threads are at the shuffle, a block
 * once all are at the barrier.  __shared__ variables lie in one section of the module, which is filled with NaN before every
 * block: who reads a value before another thread wrote it, gets NaN in at least one of the orders.
 * Threads that wait for each other for ever, and a barrier that some threads have left, end the launch with error 719.
 *
 * LIMITATIONS
 * What sn_cuda.cuh names is there, nothing else.  One process thread at a time.  Blocks of whole warps when they shuffle. */
#ifndef SN_TESTS_CUDA_EMULATION_H
#define SN_TESTS_CUDA_EMULATION_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __shared__ static __attribute__((section("sn_emulated_shared")))

struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

void sn_emulated_barrier();
/* value of the lane `source` of this warp; all lanes take part. */
uint64_t sn_emulated_shuffle(uint64_t bits, unsigned source);
int sn_emulate(dim3 grid, dim3 block, const std::function<void()> &thread);

static inline void __syncthreads() { sn_emulated_barrier(); }

static inline unsigned sn_emulated_lane() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32;
}

template <typename T>
static inline T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  static_assert(sizeof(T) <= 8, "values of at most 8 bytes");
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = sn_emulated_shuffle(bits, sn_emulated_lane() ^ (unsigned)lanes);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float __uint_as_float(unsigned bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline unsigned __float_as_uint(float value) {
  unsigned bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

#define SN_LAUNCH(kernel, grid, block, stream, ...) sn_emulate((grid), (block), [&] { kernel(__VA_ARGS__); })

/* The runtime: memory is the host's, one device, no streams. */
typedef int cudaError_t;
typedef void *cudaStream_t;
enum { cudaStreamNonBlocking = 1, cudaMemcpyDefault = 4 };
const char *cudaGetErrorString(cudaError_t code);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
static inline cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, 0; }
static inline cudaError_t cudaSetDevice(int) { return 0; }
static inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned) { return *stream = nullptr, 0; }
static inline cudaError_t cudaStreamDestroy(cudaStream_t) { return 0; }
static inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return 0; }
static inline cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t) {
  return std::memset(to, value, bytes), 0;
}
static inline cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int, cudaStream_t) {
  return std::memcpy(to, from, bytes), 0;
}

#endif
