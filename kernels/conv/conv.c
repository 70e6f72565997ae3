#include "kernels/conv/conv.h"

#include "core/alloc.h"
#include "kernels/conv/conv_impls.h"

int64_t sn_conv_out_size(const sn_conv_attr *attr, int i) {
  int64_t room = attr->size[i] + 2 * attr->padding[i] - attr->kernel[i];
  return room < 0 ? 0 : room / attr->stride[i] + 1;
}

sn_conv_geometry sn_conv_geometry_of(const sn_op_call *call) {
  const sn_conv_attr *a = call->attr;
  sn_conv_geometry g = {.rows = call->in[0].shape[0], .cin = a->channels_in, .cout = a->channels_out,
                        .positions_in = 1, .positions_out = 1, .taps = 1};
  for (int i = 0; i < 3; i++) {
    bool there = i < a->n_spatial;
    g.size[i] = there ? a->size[i] : 1;
    g.kernel[i] = there ? a->kernel[i] : 1;
    g.stride[i] = there ? a->stride[i] : 1;
    g.padding[i] = there ? a->padding[i] : 0;
    g.out[i] = there ? sn_conv_out_size(a, i) : 1;
    g.positions_in *= g.size[i];
    g.positions_out *= g.out[i];
    g.taps *= g.kernel[i];
  }
  return g;
}

static sn_status check_attr(const sn_conv_attr *a, sn_error *err) {
  if (a->n_spatial < 1 || a->n_spatial > 3 || a->channels_in < 1 || a->channels_out < 1)
    return sn_fail(err, SN_E_ARGUMENT, "expected 1 to 3 dimensions and at least one channel, found %d, %lld, %lld",
                   a->n_spatial, (long long)a->channels_in, (long long)a->channels_out);
  int64_t in = a->channels_in, taps = a->channels_in;
  for (int i = 0; i < a->n_spatial; i++) {
    bool positive = a->size[i] >= 1 && a->kernel[i] >= 1 && a->stride[i] >= 1 && a->padding[i] >= 0;
    if (!positive || a->padding[i] >= a->kernel[i] || !sn_mul_ok(in, a->size[i], &in) || !sn_mul_ok(taps, a->kernel[i], &taps))
      return sn_fail(err, SN_E_ARGUMENT, "dimension %d: size %lld, kernel %lld, stride %lld, padding %lld (less than the kernel)",
                     i, (long long)a->size[i], (long long)a->kernel[i], (long long)a->stride[i], (long long)a->padding[i]);
    if (sn_conv_out_size(a, i) < 1)
      return sn_fail(err, SN_E_ARGUMENT, "dimension %d: a kernel of %lld does not fit in %lld with padding %lld", i,
                     (long long)a->kernel[i], (long long)a->size[i], (long long)a->padding[i]);
  }
  return SN_OK;
}

static bool dtypes_fit(sn_dtype x, sn_dtype w, sn_dtype y) {
  if (x == SN_F64 || w == SN_F64 || y == SN_F64) return x == w && w == y;
  return (x == SN_F32 || x == SN_BF16) && w == SN_F32 && (y == SN_F32 || y == SN_BF16);
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_conv_attr *a = call->attr;
  const sn_tensor *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
  if (call->n_in != 3 || x->data == NULL || w->data == NULL)
    return sn_fail(err, SN_E_ARGUMENT, "expected x, W and an optional b");
  SN_TRY(check_attr(a, err));
  sn_conv_geometry g = sn_conv_geometry_of(call);
  int64_t per_row = 1;
  for (int i = 1; i < x->n_dims; i++) per_row *= x->shape[i];
  if (x->n_dims < 2 || per_row != g.positions_in * g.cin)
    return sn_fail(err, SN_E_ARGUMENT, "a row of x has %lld values, positions x channels are %lld x %lld",
                   (long long)per_row, (long long)g.positions_in, (long long)g.cin);
  if (w->n_dims < 2 || w->shape[0] != g.cout || sn_tensor_count(w) != g.cout * g.cin * g.taps)
    return sn_fail(err, SN_E_ARGUMENT, "W has %lld values, expected Cout x Cin x taps = %lld x %lld x %lld",
                   (long long)sn_tensor_count(w), (long long)g.cout, (long long)g.cin, (long long)g.taps);
  if (!dtypes_fit(x->dtype, w->dtype, a->y_dtype))
    return sn_fail(err, SN_E_ARGUMENT, "dtypes x %s, W %s, y %s do not go together", sn_dtype_name(x->dtype),
                   sn_dtype_name(w->dtype), sn_dtype_name(a->y_dtype));
  if (b->data != NULL && (b->n_dims != 1 || b->shape[0] != g.cout || b->dtype != w->dtype))
    return sn_fail(err, SN_E_ARGUMENT, "b must be (%lld) of W's dtype", (long long)g.cout);
  call->n_out = 1;
  call->n_saved = 0;
  call->out[0] = (sn_tensor){.shape = {g.rows, g.positions_out * g.cout, 1, 1}, .n_dims = 2, .dtype = a->y_dtype};
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  sn_conv_geometry g = sn_conv_geometry_of(call);
  double one = 2.0 * (double)(g.rows * g.positions_out) * (double)(g.cin * g.taps) * (double)g.cout;
  return backward ? one * ((call->din[0].data != NULL) + (call->din[1].data != NULL)) : one;
}

static double bytes(const sn_op_call *call, bool backward) {
  double n = (double)sn_tensor_bytes(&call->in[0]) + (double)sn_tensor_bytes(&call->in[1]) +
             (double)sn_tensor_bytes(&call->out[0]);
  return backward ? 2 * n : n;
}

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_conv_attr *a = attr;
  a->y_dtype = sn_retype(a->y_dtype, residual, product);
}

static const sn_op_impl *const IMPLS[] = {&sn_conv_cpu, &sn_conv_ref, NULL};

static const sn_conv_attr LINE = {1, {29}, {7}, {3}, {2}, 3, 5, SN_BF16};
static const sn_conv_attr PATCHES = {1, {32}, {8}, {8}, {0}, 1, 9, SN_F32};
static const sn_conv_attr DENSE = {1, {70}, {3}, {1}, {1}, 2, 4, SN_BF16};
static const sn_conv_attr PLANE = {2, {9, 7}, {3, 2}, {2, 1}, {1, 0}, 2, 3, SN_F32};
static const sn_conv_attr BOX = {3, {5, 4, 6}, {2, 3, 2}, {1, 2, 2}, {1, 1, 0}, 1, 4, SN_BF16};
static const sn_conv_attr POINT = {1, {1}, {1}, {1}, {0}, 1, 1, SN_F32};

#define X(rows, values) {.n_dims = 2, .shape = {rows, values}, .dtype = SN_BF16}
#define W(out, in, taps) {.n_dims = 3, .shape = {out, in, taps}, .scale = 0.3}
#define B(out) {.n_dims = 1, .shape = {out}}
static const sn_op_sample SAMPLES[] = {
    {.name = "line", .attr = &LINE, .n_in = 3, .in = {X(11, 87), W(5, 3, 7), B(5)}},
    {.name = "patches", .attr = &PATCHES, .n_in = 3, .in = {X(16, 32), W(9, 1, 8), B(9)}},
    {.name = "dense_no_bias", .attr = &DENSE, .n_in = 3, .in = {X(7, 140), W(4, 2, 3), {.absent = true}}},
    {.name = "plane", .attr = &PLANE, .n_in = 3, .in = {X(5, 126), W(3, 2, 6), B(3)}},
    {.name = "box", .attr = &BOX, .n_in = 3, .in = {X(3, 120), W(4, 1, 12), B(4)}},
    /* One product: three roundings to bf16 add up instead of averaging out. */
    {.name = "point", .attr = &POINT, .n_in = 3, .in = {X(1, 1), W(1, 1, 1), B(1)}, .tol_bf16 = 0.016},
    {.name = "no_rows", .attr = &PATCHES, .n_in = 3, .in = {X(0, 32), W(9, 1, 8), B(9)}, .why_zero = "no rows"},
    {.name = NULL}};

/* A stem over patches of 50 samples of one lead. */
static const sn_conv_attr STEM = {1, {50}, {7}, {2}, {3}, 1, 32, SN_BF16};
static const sn_op_sample TYPICAL[] = {
    {.name = "stem", .attr = &STEM, .n_in = 3, .in = {X(1600, 50), W(32, 1, 7), B(32)}}, {.name = NULL}};

const sn_op sn_op_conv = {
    .name = "conv",
    .summary = "y[t,s,o] = b[o] + sum W[o,c,k] x[t, s*stride+k-padding, c]",
    .attr_size = sizeof(sn_conv_attr),
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .impls = IMPLS,
    .grad_inputs = 7,
    .unread_in = 4,
    .unread_out = 1,
    .retype = retype,
    .samples = SAMPLES,
    .typical = TYPICAL,
};

sn_status sn_conv(sn_tape *tape, sn_value **y, sn_value *x, sn_value *w, sn_value *b, const sn_conv_attr *attr,
                  sn_error *err) {
  sn_value *in[3] = {x, w, b};
  return sn_tape_record(tape, &sn_op_conv, attr, 3, in, 1, y, err);
}
