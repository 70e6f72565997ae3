/* The module's entry: what the host side needs of the CUDA runtime, in plain C (kernels/cuda/cuda_module.h). */
#include "kernels/cuda/sn_cuda.cuh"

extern "C" int sn_cuda_version(void) { return 1; } /* of the module's interface: SN_CUDA_MODULE_VERSION */

extern "C" const char *sn_cuda_error_text(int code) { return cudaGetErrorString((cudaError_t)code); }

extern "C" int sn_cuda_device_count(int *count) {
  *count = 0;
  return (int)cudaGetDeviceCount(count);
}

extern "C" int sn_cuda_set_device(int index) { return (int)cudaSetDevice(index); }

extern "C" int sn_cuda_stream_create(void **stream) {
  cudaStream_t s = 0;
  int code = (int)cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking);
  *stream = (void *)s;
  return code;
}

extern "C" int sn_cuda_stream_destroy(void *stream) { return (int)cudaStreamDestroy((cudaStream_t)stream); }

extern "C" int sn_cuda_synchronize(void *stream) { return (int)cudaStreamSynchronize((cudaStream_t)stream); }

extern "C" int sn_cuda_alloc(void **memory, int64_t bytes) { return (int)cudaMalloc(memory, (size_t)bytes); }

extern "C" int sn_cuda_free(void *memory) { return (int)cudaFree(memory); }

extern "C" int sn_cuda_zero(void *memory, int64_t bytes, void *stream) {
  return (int)cudaMemsetAsync(memory, 0, (size_t)bytes, (cudaStream_t)stream);
}

/* Between host and device, either way. */
extern "C" int sn_cuda_copy(void *to, const void *from, int64_t bytes, void *stream) {
  return (int)cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDefault, (cudaStream_t)stream);
}
