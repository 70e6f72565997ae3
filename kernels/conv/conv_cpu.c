/* conv as a gather of windows and a linear layer over them, in chunks of rows so that the windows of a chunk stay in
 * cache: columns (rows * S, Cin * taps), ordered (c, k) as W is. */
#include <omp.h>
#include <string.h>

#include "core/bf16.h"
#include "kernels/conv/conv_impls.h"
#include "kernels/linear/linear.h"

enum { CHUNK_BYTES = 2 << 20, BUCKET = 64 };

static bool supports(const sn_device *device, const sn_op_call *call, const char **why) {
  *why = "float64 is the reference's";
  return call->in[0].dtype != SN_F64;
}

static int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* Rows of x per chunk: a multiple of the bucket where more fit, so that the linear layer sees few shapes. */
static int64_t chunk_of(const sn_conv_geometry *g, int64_t element) {
  int64_t rows = CHUNK_BYTES / (g->positions_out * g->cin * g->taps * element);
  if (rows >= BUCKET) rows = rows / BUCKET * BUCKET;
  if (rows < 1) rows = 1;
  return rows < g->rows ? rows : g->rows;
}

/* The linear call for `rows` rows of x from `first` on, its windows in `columns`. */
static void linear_call(const sn_op_call *call, const sn_conv_geometry *g, const sn_linear_attr *attr, int64_t first,
                        int64_t rows, void *columns, sn_op_call *lin) {
  memset(lin, 0, sizeof *lin);
  int64_t n = rows * g->positions_out, width = g->cin * g->taps;
  int64_t y_size = sn_dtype_size(call->out[0].dtype);
  lin->op = &sn_op_linear;
  lin->attr = attr;
  lin->n_in = 3;
  lin->n_out = 1;
  lin->in[0] = sn_tensor_2d(columns, call->in[0].dtype, n, width);
  lin->in[1] = sn_tensor_2d(call->in[1].data, call->in[1].dtype, g->cout, width);
  lin->in[1].param = call->in[1].param;
  lin->in[2] = call->in[2];
  lin->out[0] = sn_tensor_2d(NULL, call->out[0].dtype, n, g->cout);
  lin->dout[0] = lin->out[0];
  int64_t shift = first * g->positions_out * g->cout * y_size;
  if (call->out[0].data != NULL) lin->out[0].data = (char *)call->out[0].data + shift;
  if (call->dout[0].data != NULL) lin->dout[0].data = (char *)call->dout[0].data + shift;
}

static sn_linear_attr linear_attr(const sn_op_call *call) {
  return (sn_linear_attr){((const sn_conv_attr *)call->attr)->y_dtype};
}

static void backward_call(const sn_op_call *call, void *dcolumns, bool later, sn_op_call *lin) {
  if (call->din[0].data != NULL) {
    lin->din[0] = lin->in[0];
    lin->din[0].data = dcolumns;
  }
  if (call->din[1].data != NULL) {
    lin->din[1] = lin->in[1];
    lin->din[1].data = call->din[1].data;
    lin->din[1].param = NULL;
    lin->acc[1] = call->acc[1] || later;
  }
  lin->din[2] = call->din[2];
  lin->acc[2] = call->acc[2] || later;
}

static int64_t columns_bytes(const sn_op_call *call, const sn_conv_geometry *g) {
  int64_t element = sn_dtype_size(call->in[0].dtype);
  return aligned(chunk_of(g, element) * g->positions_out * g->cin * g->taps * element);
}

/* Windows, their gradients, and what linear wants for a whole chunk or the shorter last one. */
static int64_t scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  sn_conv_geometry g = sn_conv_geometry_of(call);
  sn_linear_attr attr = linear_attr(call);
  int64_t chunk = chunk_of(&g, sn_dtype_size(call->in[0].dtype)), most = 0;
  int64_t rows[2] = {chunk, chunk > 0 ? g.rows % chunk : 0};
  for (int i = 0; i < 2; i++) {
    sn_op_call lin;
    linear_call(call, &g, &attr, 0, rows[i], call->in[0].data, &lin);
    if (backward) backward_call(call, call->in[0].data, false, &lin);
    const sn_op_impl *impl = sn_op_choose(device, &lin);
    int64_t n = impl != NULL && impl->scratch != NULL ? impl->scratch(device, &lin, backward) : 0;
    if (n > most) most = n;
  }
  return 2 * columns_bytes(call, &g) + most;
}

/* Input position along dimension i of tap k at window s, or -1 in the padding. */
static inline int64_t along(const sn_conv_geometry *g, int i, int64_t s, int64_t k) {
  int64_t at = s * g->stride[i] + k - g->padding[i];
  return at >= 0 && at < g->size[i] ? at : -1;
}

/* One window: dst[(c, k)] = x[place(k), c], elements of 2 or 4 bytes as bits. */
#define GATHER(type)                                                                                        \
  static void gather_##type(const sn_conv_geometry *g, type *dst, const type *row, int64_t s) {             \
    int64_t s2 = s % g->out[2], s1 = s / g->out[2] % g->out[1], s0 = s / (g->out[2] * g->out[1]), k = 0;    \
    for (int64_t k0 = 0; k0 < g->kernel[0]; k0++)                                                           \
      for (int64_t k1 = 0; k1 < g->kernel[1]; k1++)                                                         \
        for (int64_t k2 = 0; k2 < g->kernel[2]; k2++, k++) {                                                \
          int64_t p0 = along(g, 0, s0, k0), p1 = along(g, 1, s1, k1), p2 = along(g, 2, s2, k2);             \
          bool inside = p0 >= 0 && p1 >= 0 && p2 >= 0;                                                      \
          const type *src = inside ? row + ((p0 * g->size[1] + p1) * g->size[2] + p2) * g->cin : NULL;      \
          for (int64_t c = 0; c < g->cin; c++) dst[c * g->taps + k] = inside ? src[c] : 0;                  \
        }                                                                                                   \
  }
GATHER(uint16_t)
GATHER(uint32_t)

static void gather_rows(sn_device *device, const sn_op_call *call, const sn_conv_geometry *g, int64_t first, int64_t rows,
                        void *columns) {
  int64_t windows = rows * g->positions_out, width = g->cin * g->taps, per_row = g->positions_in * g->cin;
  bool half = call->in[0].dtype == SN_BF16;
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t w = 0; w < windows; w++) {
    int64_t row = (first + w / g->positions_out) * per_row, s = w % g->positions_out;
    if (half) gather_uint16_t(g, (uint16_t *)columns + w * width, (const uint16_t *)call->in[0].data + row, s);
    else gather_uint32_t(g, (uint32_t *)columns + w * width, (const uint32_t *)call->in[0].data + row, s);
  }
}

static float value_at(const sn_tensor *like, const void *data, int64_t i) {
  return like->dtype == SN_BF16 ? sn_bf16_to_f32(((const uint16_t *)data)[i]) : ((const float *)data)[i];
}

/* The windows that hold position p along dimension i: s from *first to *last. */
static void windows_of(const sn_conv_geometry *g, int i, int64_t p, int64_t *first, int64_t *last) {
  int64_t high = p + g->padding[i], low = high - g->kernel[i] + 1;
  *first = low <= 0 ? 0 : (low + g->stride[i] - 1) / g->stride[i];
  *last = high / g->stride[i];
  if (*last >= g->out[i]) *last = g->out[i] - 1;
}

/* dx of one input position: each window that holds it, in order. dcolumns: of this row. */
static void scatter_position(const sn_op_call *call, const sn_conv_geometry *g, const void *dcolumns, int64_t columns_at,
                             int64_t p, int64_t dx_at) {
  const sn_tensor *dx = &call->din[0];
  int64_t at[3] = {p / (g->size[2] * g->size[1]), p / g->size[2] % g->size[1], p % g->size[2]}, from[3], to[3], s[3];
  for (int i = 0; i < 3; i++) windows_of(g, i, at[i], &from[i], &to[i]);
  for (int64_t c = 0; c < g->cin; c++) {
    float sum = 0.0f;
    for (s[0] = from[0]; s[0] <= to[0]; s[0]++)
      for (s[1] = from[1]; s[1] <= to[1]; s[1]++)
        for (s[2] = from[2]; s[2] <= to[2]; s[2]++) {
          int64_t window = (s[0] * g->out[1] + s[1]) * g->out[2] + s[2], k = 0;
          for (int i = 0; i < 3; i++) k = k * g->kernel[i] + at[i] + g->padding[i] - s[i] * g->stride[i];
          sum += value_at(dx, dcolumns, columns_at + (window * g->cin + c) * g->taps + k);
        }
    if (call->acc[0]) sum += value_at(dx, dx->data, dx_at + c);
    if (dx->dtype == SN_BF16) ((uint16_t *)dx->data)[dx_at + c] = sn_f32_to_bf16(sum);
    else ((float *)dx->data)[dx_at + c] = sum;
  }
}

static void scatter_rows(sn_device *device, const sn_op_call *call, const sn_conv_geometry *g, int64_t first, int64_t rows,
                         const void *dcolumns) {
  int64_t per_row = g->positions_out * g->cin * g->taps;
#pragma omp parallel for num_threads(device->n_threads) schedule(static)
  for (int64_t t = 0; t < rows; t++)
    for (int64_t p = 0; p < g->positions_in; p++)
      scatter_position(call, g, dcolumns, t * per_row, p, ((first + t) * g->positions_in + p) * g->cin);
}

static sn_status run_linear(sn_device *device, sn_op_call *lin, char *room, bool backward, sn_error *err) {
  const sn_op_impl *impl = sn_op_choose(device, lin);
  if (impl == NULL) return sn_fail(err, SN_E_UNSUPPORTED, "no implementation of linear takes its windows");
  lin->scratch = room;
  return backward ? impl->backward(device, lin, err) : impl->forward(device, lin, err);
}

static sn_status run(sn_device *device, const sn_op_call *call, bool backward, sn_error *err) {
  sn_conv_geometry g = sn_conv_geometry_of(call);
  sn_linear_attr attr = linear_attr(call);
  int64_t chunk = chunk_of(&g, sn_dtype_size(call->in[0].dtype));
  char *columns = call->scratch, *dcolumns = columns + columns_bytes(call, &g), *room = dcolumns + columns_bytes(call, &g);
  int64_t first = 0;
  do { /* once at least: without rows the gradients of W and b are still to be written */
    int64_t rows = g.rows - first < chunk ? g.rows - first : chunk;
    sn_op_call lin;
    gather_rows(device, call, &g, first, rows, columns);
    linear_call(call, &g, &attr, first, rows, columns, &lin);
    if (backward) backward_call(call, dcolumns, first > 0, &lin);
    SN_TRY(run_linear(device, &lin, room, backward, err));
    if (backward && call->din[0].data != NULL) scatter_rows(device, call, &g, first, rows, dcolumns);
    first += rows;
  } while (first < g.rows);
  return SN_OK;
}

static sn_status forward(sn_device *device, const sn_op_call *call, sn_error *err) { return run(device, call, false, err); }
static sn_status backward(sn_device *device, const sn_op_call *call, sn_error *err) { return run(device, call, true, err); }

const sn_op_impl sn_conv_cpu = {.name = "cpu", .device = SN_DEVICE_CPU, .supports = supports, .forward = forward,
                                .backward = backward, .scratch = scratch};
