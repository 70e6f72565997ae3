/* The implementation "cuda": kernels/adamw/adamw_cuda.cu through the module. */
#include <math.h>

#include "kernels/adamw/adamw.h"
#include "kernels/cuda/cuda_module.h"

typedef int (*launcher)(float *p_out, float *m_out, float *v_out, const float *p, const float *grad, const float *m,
                        const float *v, int64_t n, float keep, float grad_scale, float beta1, float rest1, float beta2,
                        float rest2, float step_size, float root_scale, float eps, void *stream);

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return sn_cuda_supports(device, call, "sn_cuda_adamw", why);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_adamw_attr *a = call->attr;
  double correction1 = 1.0 - pow(a->beta1, (double)a->step), correction2 = 1.0 - pow(a->beta2, (double)a->step);
  launcher launch = (launcher)sn_cuda_find(device, "sn_cuda_adamw");
  int code = launch(call->out[0].data, call->out[1].data, call->out[2].data, call->in[0].data, call->in[1].data,
                    call->in[2].data, call->in[3].data, sn_tensor_count(&call->in[0]),
                    (float)(1.0 - a->lr * a->weight_decay), (float)a->grad_scale, (float)a->beta1, (float)(1.0 - a->beta1),
                    (float)a->beta2, (float)(1.0 - a->beta2), (float)(a->lr / correction1),
                    (float)(1.0 / sqrt(correction2)), (float)a->eps, sn_cuda_stream(device));
  return sn_cuda_check(device, code, "launch", err);
}

const sn_op_impl sn_adamw_cuda = {.name = "cuda", .device = SN_DEVICE_CUDA, .supports = supports, .forward = forward};
