/* The reference: every window, tap by tap, in double. */
#include "core/alloc.h"
#include "kernels/conv/conv_impls.h"

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) { return true; }

/* Where tap k of the window at output position s lies among a row's input positions; -1: in the padding. */
static int64_t place(const sn_conv_geometry *g, int64_t s, int64_t k) {
  int64_t at[3], where = 0;
  for (int i = 2; i >= 0; i--) {
    at[i] = s % g->out[i] * g->stride[i] + k % g->kernel[i] - g->padding[i];
    s /= g->out[i];
    k /= g->kernel[i];
  }
  for (int i = 0; i < 3; i++) {
    if (at[i] < 0 || at[i] >= g->size[i]) return -1;
    where = where * g->size[i] + at[i];
  }
  return where;
}

static double window(const sn_conv_geometry *g, const sn_op_call *call, int64_t t, int64_t s, int64_t o) {
  double sum = call->in[2].data != NULL ? sn_tensor_get(&call->in[2], o) : 0.0;
  for (int64_t k = 0; k < g->taps; k++) {
    int64_t where = place(g, s, k);
    for (int64_t c = 0; c < g->cin && where >= 0; c++)
      sum += sn_tensor_get(&call->in[1], (o * g->cin + c) * g->taps + k) *
             sn_tensor_get(&call->in[0], (t * g->positions_in + where) * g->cin + c);
  }
  return sum;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_conv_geometry g = sn_conv_geometry_of(call);
  for (int64_t t = 0; t < g.rows; t++)
    for (int64_t s = 0; s < g.positions_out; s++)
      for (int64_t o = 0; o < g.cout; o++)
        sn_tensor_set(&call->out[0], (t * g.positions_out + s) * g.cout + o, window(&g, call, t, s, o));
  return SN_OK;
}

/* Sums in double in the order of t, s, o, k, c, each gradient in an array of its own. */
static void accumulate(const sn_conv_geometry *g, const sn_op_call *call, double *dx, double *dw, double *db) {
  for (int64_t t = 0; t < g->rows; t++)
    for (int64_t s = 0; s < g->positions_out; s++)
      for (int64_t o = 0; o < g->cout; o++) {
        double d = sn_tensor_get(&call->dout[0], (t * g->positions_out + s) * g->cout + o);
        db[o] += d;
        for (int64_t k = 0; k < g->taps; k++) {
          int64_t where = place(g, s, k);
          for (int64_t c = 0; c < g->cin && where >= 0; c++) {
            int64_t w = (o * g->cin + c) * g->taps + k, x = (t * g->positions_in + where) * g->cin + c;
            dx[x] += d * sn_tensor_get(&call->in[1], w);
            dw[w] += d * sn_tensor_get(&call->in[0], x);
          }
        }
      }
}

static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  sn_conv_geometry g = sn_conv_geometry_of(call);
  double *sums[3] = {NULL};
  const int64_t counts[3] = {g.rows * g.positions_in * g.cin, g.cout * g.cin * g.taps, g.cout};
  sn_status status;
  for (int i = 0; i < 3; i++)
    SN_TRY_GOTO(sn_alloc(&sums[i], counts[i], sizeof *sums[i], "reference of conv", err), done);
  accumulate(&g, call, sums[0], sums[1], sums[2]);
  for (int i = 0; i < 3; i++)
    for (int64_t k = 0; call->din[i].data != NULL && k < counts[i]; k++)
      sn_tensor_set(&call->din[i], k, sums[i][k] + (call->acc[i] ? sn_tensor_get(&call->din[i], k) : 0.0));
done:
  for (int i = 0; i < 3; i++) sn_free(sums[i]);
  return status;
}

const sn_op_impl sn_conv_ref = {.name = "ref", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward, .backward = backward};
