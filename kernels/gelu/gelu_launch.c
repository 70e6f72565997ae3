/* The implementation "cuda": kernels/gelu/gelu_cuda.cu through the module. */
#include "kernels/cuda/cuda_module.h"
#include "kernels/gelu/gelu.h"

typedef int (*forward_launcher)(void *y, const void *x, int64_t n, int tanh_form, int dtype, void *stream);
typedef int (*backward_launcher)(void *dx, const void *dy, const void *x, int64_t n, int tanh_form, int acc, int dtype,
                                 void *stream);

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return sn_cuda_supports(device, call, "sn_cuda_gelu_forward", why);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gelu_attr *a = call->attr;
  forward_launcher launch = (forward_launcher)sn_cuda_find(device, "sn_cuda_gelu_forward");
  int code = launch(call->out[0].data, call->in[0].data, sn_tensor_count(&call->in[0]), a->kind == SN_GELU_TANH,
                    (int)call->in[0].dtype, sn_cuda_stream(device));
  return sn_cuda_check(device, code, "launch", err);
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_gelu_attr *a = call->attr;
  backward_launcher launch = (backward_launcher)sn_cuda_find(device, "sn_cuda_gelu_backward");
  bool has;
  SN_TRY(sn_cuda_has_dout(device, call, &has, err));
  if (!has || !call->din[0].data) return SN_OK;
  int code = launch(call->din[0].data, call->dout[0].data, call->in[0].data, sn_tensor_count(&call->in[0]),
                    a->kind == SN_GELU_TANH, call->acc[0], (int)call->in[0].dtype, sn_cuda_stream(device));
  return sn_cuda_check(device, code, "launch", err);
}

const sn_op_impl sn_gelu_cuda = {
    .name = "cuda", .device = SN_DEVICE_CUDA, .supports = supports, .forward = forward, .backward = backward};
