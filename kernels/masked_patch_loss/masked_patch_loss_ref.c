#include <math.h>

#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/op_rules.h"

static bool counts(const sn_tensor *flags, int64_t i) { return !flags->data || ((const uint8_t *)flags->data)[i] != 0; }

static double loss(const sn_masked_patch_loss_attr *a, double d) {
  if (a->kind == SN_PATCH_L2) return d * d;
  if (a->kind == SN_PATCH_L1) return fabs(d);
  return fabs(d) < a->beta ? d * d / (2 * a->beta) : fabs(d) - a->beta / 2;
}

static double slope(const sn_masked_patch_loss_attr *a, double d) {
  if (a->kind == SN_PATCH_L2) return 2 * d;
  if (a->kind == SN_PATCH_SMOOTH_L1 && fabs(d) < a->beta) return d / a->beta;
  return (d > 0) - (d < 0);
}

static double weight(const sn_op_call *call, int64_t t) { return call->in[3].data ? sn_tensor_get(&call->in[3], t) : 1; }

static int64_t valid_in_row(const sn_op_call *call, int64_t t) {
  int64_t columns = sn_tensor_columns(&call->in[0]), n = 0;
  if (weight(call, t) == 0) return 0;
  for (int64_t c = 0; c < columns; c++) n += counts(&call->in[2], t * columns + c);
  return n;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  double sum = 0, count = 0;
  for (int64_t t = 0; t < rows; t++) {
    int64_t n = valid_in_row(call, t);
    double row = 0;
    for (int64_t i = t * columns; n > 0 && i < (t + 1) * columns; i++)
      if (counts(&call->in[2], i)) row += loss(call->attr, sn_tensor_get(&call->in[0], i) - sn_tensor_get(&call->in[1], i));
    if (n > 0) sum += weight(call, t) * row / (double)n;
    if (n > 0) count += weight(call, t);
  }
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, count, false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  double dsum = sn_tensor_get(&call->dout[0], 0);
  for (int64_t t = 0; t < rows; t++) {
    int64_t n = valid_in_row(call, t);
    for (int64_t i = t * columns; i < (t + 1) * columns; i++) {
      double d = 0;
      if (n > 0 && counts(&call->in[2], i))
        d = slope(call->attr, sn_tensor_get(&call->in[0], i) - sn_tensor_get(&call->in[1], i)) / (double)n;
      sn_put(&call->din[0], i, dsum * weight(call, t) * d, call->acc[0]);
    }
  }
  return SN_OK;
}

const sn_op_impl sn_masked_patch_loss_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = sn_supports_always, .forward = forward, .backward = backward};
