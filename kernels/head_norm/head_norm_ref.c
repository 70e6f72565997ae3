/* The float64 reference. */
#include <math.h>
#include <string.h>

#include "kernels/head_norm/head_norm_impl.h"

/* Which group holds a column, or -1. */
static int64_t group_of(const sn_head_norm_attr *attr, int64_t column) {
  for (int64_t g = 0; g < attr->n_groups; g++)
    if (column >= attr->column[g] && column < attr->column[g] + attr->n_heads * attr->head_dim) return g;
  return -1;
}

/* Mean (0 for RMS) and 1/sqrt of the second moment plus eps, of D values from `at`. */
static void statistics(const sn_head_norm_attr *attr, const sn_tensor *x, int64_t at, double *mean, double *r) {
  double sum = 0, squares = 0, d = (double)attr->head_dim;
  for (int64_t c = 0; c < attr->head_dim; c++) sum += sn_tensor_get(x, at + c);
  *mean = attr->kind == SN_HEAD_NORM_LAYER ? sum / d : 0;
  for (int64_t c = 0; c < attr->head_dim; c++) {
    double centred = sn_tensor_get(x, at + c) - *mean;
    squares += centred * centred;
  }
  *r = 1 / sqrt(squares / d + attr->eps);
}

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_head_norm_attr *attr = call->attr;
  const sn_tensor *x = &call->in[0], *y = &call->out[0];
  int64_t columns = x->shape[1];
  for (int64_t t = 0; t < x->shape[0]; t++)
    for (int64_t column = 0; column < columns;) {
      int64_t at = t * columns + column, g = group_of(attr, column);
      if (g < 0) {
        sn_tensor_set(y, at, sn_tensor_get(x, at));
        column++;
        continue;
      }
      double mean, r;
      statistics(attr, x, at, &mean, &r);
      for (int64_t c = 0; c < attr->head_dim; c++)
        sn_tensor_set(y, at + c, (sn_tensor_get(x, at + c) - mean) * r * sn_tensor_get(&call->in[1 + g], c));
      column += attr->head_dim;
    }
  return SN_OK;
}

/* dx of one head:  r (g - [mean(g)] - xhat mean(g xhat)),  g = dy gain. */
static void backward_head(const sn_op_call *call, int64_t at, int64_t g, double *dgain) {
  const sn_head_norm_attr *attr = call->attr;
  const sn_tensor *x = &call->in[0], *dy = &call->dout[0], *dx = &call->din[0], *gain = &call->in[1 + g];
  double mean, r, sum = 0, product = 0, d = (double)attr->head_dim;
  statistics(attr, x, at, &mean, &r);
  for (int64_t c = 0; c < attr->head_dim; c++) {
    double xhat = (sn_tensor_get(x, at + c) - mean) * r, dyc = sn_tensor_get(dy, at + c);
    sum += dyc * sn_tensor_get(gain, c);
    product += dyc * sn_tensor_get(gain, c) * xhat;
    dgain[c] += dyc * xhat;
  }
  if (attr->kind == SN_HEAD_NORM_RMS) sum = 0;
  for (int64_t c = 0; dx->data != NULL && c < attr->head_dim; c++) {
    double xhat = (sn_tensor_get(x, at + c) - mean) * r;
    double value = r * (sn_tensor_get(dy, at + c) * sn_tensor_get(gain, c) - sum / d - xhat * product / d);
    sn_tensor_set(dx, at + c, value + (call->acc[0] ? sn_tensor_get(dx, at + c) : 0));
  }
}

static int64_t scratch_bytes(const sn_device *device, const sn_op_call *call, bool backward) {
  const sn_head_norm_attr *attr = call->attr;
  return backward ? attr->n_groups * attr->head_dim * (int64_t)sizeof(double) : 0;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_head_norm_attr *attr = call->attr;
  const sn_tensor *x = &call->in[0], *dy = &call->dout[0], *dx = &call->din[0];
  int64_t columns = x->shape[1];
  double *dgain = call->scratch; // (n_groups, D)
  memset(dgain, 0, (size_t)(attr->n_groups * attr->head_dim) * sizeof *dgain);
  for (int64_t t = 0; t < x->shape[0]; t++)
    for (int64_t column = 0; column < columns;) {
      int64_t at = t * columns + column, g = group_of(attr, column);
      if (dy->data != NULL && g >= 0) {
        backward_head(call, at, g, dgain + g * attr->head_dim);
        column += attr->head_dim;
        continue;
      }
      if (dx->data != NULL)
        sn_tensor_set(dx, at, (dy->data != NULL ? sn_tensor_get(dy, at) : 0) + (call->acc[0] ? sn_tensor_get(dx, at) : 0));
      column++;
    }
  for (int64_t g = 0; g < attr->n_groups; g++)
    for (int64_t c = 0; call->din[1 + g].data != NULL && c < attr->head_dim; c++)
      sn_tensor_set(&call->din[1 + g], c,
                    dgain[g * attr->head_dim + c] + (call->acc[1 + g] ? sn_tensor_get(&call->din[1 + g], c) : 0));
  return SN_OK;
}

const sn_op_impl sn_head_norm_ref = {.name = "ref",
                                     .device = SN_DEVICE_CPU,
                                     .supports = supports,
                                     .forward = forward,
                                     .backward = backward,
                                     .scratch = scratch_bytes};
