/* The float64 reference: every pair by the definition. */
#include <math.h>

#include "kernels/rope/rope_impl.h"

/* to [out] / [acc] = the rotation of `from` by sign * phi. */
static void rotate(const sn_op_call *call, const sn_tensor *to, const sn_tensor *from, double sign, bool acc) {
  const sn_rope_attr attr = sn_rope_resolve(call->attr);
  const sn_tensor *positions = &call->in[1];
  int64_t rows = from->shape[0], columns = from->shape[1];
  for (int64_t t = 0; t < rows; t++) {
    int64_t range = 0;
    for (int64_t column = 0; column < columns;) {
      while (range < attr.n_ranges && column >= attr.range_end[range]) range++;
      bool inside = range < attr.n_ranges && column >= attr.range_begin[range];
      int64_t at = t * columns + column, channel = inside ? (column - attr.range_begin[range]) % attr.head_dim : 0;
      int64_t axis = 0;
      while (inside && axis < attr.n_axes && channel >= attr.axis_channels[axis]) channel -= attr.axis_channels[axis++];
      if (!inside || axis == attr.n_axes) { /* no axis owns it: copied */
        sn_tensor_set(to, at, sn_tensor_get(from, at) + (acc ? sn_tensor_get(to, at) : 0));
        column++;
        continue;
      }
      double phi = sign * sn_tensor_get(positions, t * attr.n_axes + axis) *
                   pow(attr.base, -(double)channel / (double)attr.axis_channels[axis]);
      double a = sn_tensor_get(from, at), b = sn_tensor_get(from, at + 1);
      double y0 = a * cos(phi) - b * sin(phi), y1 = a * sin(phi) + b * cos(phi);
      sn_tensor_set(to, at, y0 + (acc ? sn_tensor_get(to, at) : 0));
      sn_tensor_set(to, at + 1, y1 + (acc ? sn_tensor_get(to, at + 1) : 0));
      column += 2;
    }
  }
}

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  rotate(call, &call->out[0], &call->in[0], 1, false);
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_tensor *dx = &call->din[0];
  if (dx->data == NULL) return SN_OK;
  if (call->dout[0].data != NULL) rotate(call, dx, &call->dout[0], -1, call->acc[0]);
  else
    for (int64_t i = 0; !call->acc[0] && i < sn_tensor_count(dx); i++) sn_tensor_set(dx, i, 0);
  return SN_OK;
}

const sn_op_impl sn_rope_ref = {
    .name = "ref", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward, .backward = backward};
