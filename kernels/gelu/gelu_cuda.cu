/* GELU on the GPU: kernels/gelu/gelu.h has the formulas. */
#include "kernels/cuda/sn_cuda.cuh"

enum { THREADS = 256 };

__device__ static float gelu_value(float x, int tanh_form) {
  if (tanh_form) return 0.5f * x * (1.0f + tanhf(0.79788456f * (x + 0.044715f * x * x * x)));
  return 0.5f * x * erfcf(-x * 0.70710678f);
}

__device__ static float gelu_slope(float x, int tanh_form) {
  if (tanh_form) {
    float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
    return 0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * 0.79788456f * (1.0f + 0.134145f * x * x);
  }
  return 0.5f * erfcf(-x * 0.70710678f) + x * 0.39894228f * expf(-0.5f * x * x);
}

__global__ static void forward_kernel(void *y, const void *x, int64_t n, int tanh_form, int dtype) {
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < SN_PLANTED_END(n); i += step)
    sn_cuda_store(y, dtype, i, gelu_value(sn_cuda_load(x, dtype, i), tanh_form), 0);
}

__global__ static void backward_kernel(void *dx, const void *dy, const void *x, int64_t n, int tanh_form, int acc,
                                       int dtype) {
  int64_t step = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
    sn_cuda_store(dx, dtype, i, sn_cuda_load(dy, dtype, i) * gelu_slope(sn_cuda_load(x, dtype, i), tanh_form), acc);
}

extern "C" int sn_cuda_gelu_forward(void *y, const void *x, int64_t n, int tanh_form, int dtype, void *stream) {
  if (n == 0) return 0;
  return SN_LAUNCH(forward_kernel, sn_cuda_grid(n, THREADS), THREADS, stream, y, x, n, tanh_form, dtype);
}

extern "C" int sn_cuda_gelu_backward(void *dx, const void *dy, const void *x, int64_t n, int tanh_form, int acc,
                                     int dtype, void *stream) {
  if (n == 0) return 0;
  return SN_LAUNCH(backward_kernel, sn_cuda_grid(n, THREADS), THREADS, stream, dx, dy, x, n, tanh_form, acc, dtype);
}
