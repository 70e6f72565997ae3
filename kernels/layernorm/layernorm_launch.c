/* The implementation "cuda": kernels/layernorm/layernorm_cuda.cu through the module. */
#include "kernels/cuda/cuda_module.h"
#include "kernels/layernorm/layernorm.h"

typedef int (*forward_launcher)(void *y, float *mean, float *rstd, const void *x, const void *gamma, const void *beta,
                                int64_t rows, int64_t columns, double eps, int y_dtype, int x_dtype, int gamma_dtype,
                                int beta_dtype, void *stream);
typedef int (*dx_launcher)(void *dx, const void *dy, const void *x, const void *gamma, const float *mean, const float *rstd,
                           int64_t rows, int64_t columns, int acc, int dy_dtype, int x_dtype, int gamma_dtype,
                           void *stream);
typedef int (*dparameters_launcher)(void *dgamma, void *dbeta, float *partial, const void *dy, const void *x,
                                    const float *mean, const float *rstd, int64_t rows, int64_t columns, int acc_gamma,
                                    int acc_beta, int dy_dtype, int x_dtype, int gamma_dtype, int beta_dtype,
                                    void *stream);
typedef int64_t (*bytes_function)(int64_t rows, int64_t columns);

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  return sn_cuda_supports(device, call, "sn_cuda_layernorm_forward", why);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_layernorm_attr *a = call->attr;
  forward_launcher launch = (forward_launcher)sn_cuda_find(device, "sn_cuda_layernorm_forward");
  int code = launch(call->out[0].data, call->saved[0].data, call->saved[1].data, call->in[0].data, call->in[1].data,
                    call->in[2].data, sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0]), a->eps,
                    (int)a->out_dtype, (int)call->in[0].dtype, (int)call->in[1].dtype, (int)call->in[2].dtype,
                    sn_cuda_stream(device));
  return sn_cuda_check(device, code, "launch", err);
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  const sn_tensor *x = &call->in[0], *gamma = &call->in[1], *beta = &call->in[2], *dy = &call->dout[0];
  dx_launcher launch_dx = (dx_launcher)sn_cuda_find(device, "sn_cuda_layernorm_dx");
  dparameters_launcher launch_dp = (dparameters_launcher)sn_cuda_find(device, "sn_cuda_layernorm_dparameters");
  void *stream = sn_cuda_stream(device);
  bool has;
  SN_TRY(sn_cuda_has_dout(device, call, &has, err));
  if (!has) return SN_OK;
  if (call->din[0].data)
    SN_TRY(sn_cuda_check(device,
                         launch_dx(call->din[0].data, dy->data, x->data, gamma->data, call->saved[0].data,
                                   call->saved[1].data, rows, columns, call->acc[0], (int)dy->dtype, (int)x->dtype,
                                   (int)gamma->dtype, stream),
                         "launch", err));
  if (!call->din[1].data && !call->din[2].data) return SN_OK;
  int code = launch_dp(call->din[1].data, call->din[2].data, call->scratch, dy->data, x->data, call->saved[0].data,
                       call->saved[1].data, rows, columns, call->acc[1], call->acc[2], (int)dy->dtype, (int)x->dtype,
                       (int)gamma->dtype, (int)beta->dtype, stream);
  return sn_cuda_check(device, code, "launch", err);
}

static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward_pass) {
  bytes_function bytes = (bytes_function)sn_cuda_find(device, "sn_cuda_layernorm_partial_bytes");
  return backward_pass && bytes ? bytes(sn_tensor_rows(&call->in[0]), sn_tensor_columns(&call->in[0])) : 0;
}

const sn_op_impl sn_layernorm_cuda = {.name = "cuda",
                                      .device = SN_DEVICE_CUDA,
                                      .supports = supports,
                                      .forward = forward,
                                      .backward = backward,
                                      .scratch = scratch};
