/* AdamW on the GPU: kernels/adamw/adamw.h has the formulas. fp32 state; the corrections come from the host. */
#include "kernels/cuda/sn_cuda.cuh"

enum { THREADS = 256 };

__global__ static void step_kernel(float *p_out, float *m_out, float *v_out, const float *p, const float *grad,
                                   const float *m, const float *v, int64_t n, float keep, float grad_scale, float beta1,
                                   float rest1, float beta2, float rest2, float step_size, float root_scale, float eps) {
  int64_t stride = (int64_t)gridDim.x * blockDim.x;
  for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += stride) {
    float g = grad_scale * grad[i];
    float mi = beta1 * m[i] + rest1 * g;
    float vi = beta2 * v[i] + rest2 * g * g;
    m_out[i] = mi;
    v_out[i] = vi;
    p_out[i] = keep * p[i] - step_size * mi / (sqrtf(vi) * root_scale + eps);
  }
}

/* Outputs may be the inputs. keep = 1 - lr * weight decay, rest = 1 - beta, step_size = lr / (1 - beta1^t),
 * root_scale = 1 / sqrt(1 - beta2^t). */
extern "C" int sn_cuda_adamw(float *p_out, float *m_out, float *v_out, const float *p, const float *grad, const float *m,
                             const float *v, int64_t n, float keep, float grad_scale, float beta1, float rest1,
                             float beta2, float rest2, float step_size, float root_scale, float eps, void *stream) {
  if (n == 0) return 0;
  return SN_LAUNCH(step_kernel, sn_cuda_grid(n, THREADS), THREADS, stream, p_out, m_out, v_out, p, grad, m, v, n, keep,
                   grad_scale, beta1, rest1, beta2, rest2, step_size, root_scale, eps);
}
