#include <math.h>

#include "kernels/layernorm/layernorm.h"
#include "kernels/op_rules.h"

static double or_one(const sn_tensor *gamma, int64_t c) { return gamma->data ? sn_tensor_get(gamma, c) : 1.0; }

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_layernorm_attr *a = call->attr;
  const sn_tensor *x = &call->in[0], *beta = &call->in[2];
  int64_t rows = sn_tensor_rows(x), columns = sn_tensor_columns(x);
  for (int64_t t = 0; t < rows; t++) {
    double mean = 0, var = 0;
    for (int64_t c = 0; c < columns; c++) mean += sn_tensor_get(x, t * columns + c);
    mean /= (double)columns;
    for (int64_t c = 0; c < columns; c++) {
      double d = sn_tensor_get(x, t * columns + c) - mean;
      var += d * d;
    }
    double rstd = 1.0 / sqrt(var / (double)columns + a->eps);
    for (int64_t c = 0; c < columns; c++) {
      double y = (sn_tensor_get(x, t * columns + c) - mean) * rstd * or_one(&call->in[1], c);
      sn_put(&call->out[0], t * columns + c, y + (beta->data ? sn_tensor_get(beta, c) : 0.0), false);
    }
    if (call->saved[0].data) sn_put(&call->saved[0], t, mean, false);
    if (call->saved[1].data) sn_put(&call->saved[1], t, rstd, false);
  }
  return SN_OK;
}

static void backward_x(const sn_op_call *call, int64_t t, int64_t columns) {
  const sn_tensor *x = &call->in[0], *dy = &call->dout[0];
  double mean = sn_tensor_get(&call->saved[0], t), rstd = sn_tensor_get(&call->saved[1], t);
  double mean_g = 0, mean_gx = 0;
  for (int64_t c = 0; c < columns; c++) {
    double g = sn_tensor_get(dy, t * columns + c) * or_one(&call->in[1], c);
    mean_g += g;
    mean_gx += g * (sn_tensor_get(x, t * columns + c) - mean) * rstd;
  }
  mean_g /= (double)columns;
  mean_gx /= (double)columns;
  for (int64_t c = 0; c < columns; c++) {
    double g = sn_tensor_get(dy, t * columns + c) * or_one(&call->in[1], c);
    double xhat = (sn_tensor_get(x, t * columns + c) - mean) * rstd;
    sn_put(&call->din[0], t * columns + c, rstd * (g - mean_g - xhat * mean_gx), call->acc[0]);
  }
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  const sn_tensor *x = &call->in[0], *dy = &call->dout[0];
  int64_t rows = sn_tensor_rows(x), columns = sn_tensor_columns(x);
  if (call->din[0].data)
    for (int64_t t = 0; t < rows; t++) backward_x(call, t, columns);
  for (int64_t c = 0; c < columns; c++) {
    double dgamma = 0, dbeta = 0;
    for (int64_t t = 0; t < rows; t++) {
      double g = sn_tensor_get(dy, t * columns + c);
      double mean = sn_tensor_get(&call->saved[0], t), rstd = sn_tensor_get(&call->saved[1], t);
      dgamma += g * (sn_tensor_get(x, t * columns + c) - mean) * rstd;
      dbeta += g;
    }
    if (call->din[1].data) sn_put(&call->din[1], c, dgamma, call->acc[1]);
    if (call->din[2].data) sn_put(&call->din[2], c, dbeta, call->acc[2]);
  }
  return SN_OK;
}

const sn_op_impl sn_layernorm_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
