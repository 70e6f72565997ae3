/* The reference: three loops in double, one rounding when storing. */
#include "kernels/linear/linear_impls.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

static double dot(const sn_tensor *a, int64_t a0, int64_t a_step, const sn_tensor *b, int64_t b0, int64_t b_step,
                  int64_t n) {
  double sum = 0;
  for (int64_t k = 0; k < n; k++) sum += sn_tensor_get(a, a0 + k * a_step) * sn_tensor_get(b, b0 + k * b_step);
  return sum;
}

static void put(const sn_tensor *tensor, int64_t i, double value, bool acc) {
  sn_tensor_set(tensor, i, acc ? sn_tensor_get(tensor, i) + value : value);
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  for (int64_t t = 0; t < s.rows; t++)
    for (int64_t o = 0; o < s.n_out; o++) {
      double sum = dot(&call->in[0], t * s.n_in, 1, &call->in[1], o * s.n_in, 1, s.n_in);
      if (call->in[2].data != NULL) sum += sn_tensor_get(&call->in[2], o);
      sn_tensor_set(&call->out[0], t * s.n_out + o, sum);
    }
  return SN_OK;
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  const sn_tensor *x = &call->in[0], *w = &call->in[1], *dy = &call->dout[0];
  const sn_tensor *dx = &call->din[0], *dw = &call->din[1], *db = &call->din[2];
  if (dx->data != NULL)
    for (int64_t t = 0; t < s.rows; t++)
      for (int64_t i = 0; i < s.n_in; i++)
        put(dx, t * s.n_in + i, dot(dy, t * s.n_out, 1, w, i, s.n_in, s.n_out), call->acc[0]);
  if (dw->data != NULL)
    for (int64_t o = 0; o < s.n_out; o++)
      for (int64_t i = 0; i < s.n_in; i++)
        put(dw, o * s.n_in + i, dot(dy, o, s.n_out, x, i, s.n_in, s.rows), call->acc[1]);
  if (db->data != NULL)
    for (int64_t o = 0; o < s.n_out; o++) {
      double sum = 0;
      for (int64_t t = 0; t < s.rows; t++) sum += sn_tensor_get(dy, t * s.n_out + o);
      put(db, o, sum, call->acc[2]);
    }
  return SN_OK;
}

const sn_op_impl sn_linear_ref = {.name = "ref", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward, .backward = backward};
