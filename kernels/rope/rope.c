#include "kernels/rope/rope.h"

#include <math.h>

#include "kernels/rope/rope_impl.h"

static bool is_float(sn_dtype dtype) { return dtype == SN_F32 || dtype == SN_BF16 || dtype == SN_F64; }

sn_rope_attr sn_rope_resolve(const sn_rope_attr *attr) {
  sn_rope_attr resolved = *attr;
  bool given = false;
  for (int64_t a = 0; a < attr->n_axes; a++) given |= attr->axis_channels[a] != 0;
  for (int64_t a = 0; !given && a < attr->n_axes; a++)
    resolved.axis_channels[a] = attr->head_dim / attr->n_axes / 2 * 2;
  if (attr->base == 0) resolved.base = 10000;
  return resolved;
}

static sn_status check_axes(const sn_rope_attr *attr, sn_error *err) {
  if (attr->head_dim < 1)
    return sn_fail(err, SN_E_ARGUMENT, "rope: head_dim: expected at least 1, found %lld", (long long)attr->head_dim);
  if (attr->n_axes < 1 || attr->n_axes > SN_ROPE_MAX_AXES)
    return sn_fail(err, SN_E_ARGUMENT, "rope: n_axes: expected 1 to %d, found %lld", SN_ROPE_MAX_AXES,
                   (long long)attr->n_axes);
  if (attr->base != 0 && !(attr->base > 1 && isfinite(attr->base)))
    return sn_fail(err, SN_E_ARGUMENT, "rope: base: expected 0 (10000) or more than 1, found %g", attr->base);
  int64_t left = attr->head_dim;
  for (int64_t a = 0; a < attr->n_axes; a++) {
    int64_t channels = attr->axis_channels[a];
    if (channels < 0 || channels > left || channels % 2 != 0)
      return sn_fail(err, SN_E_ARGUMENT,
                     "rope: axis_channels[%lld]: expected an even number of at most %lld (what is left of %lld), found %lld",
                     (long long)a, (long long)left, (long long)attr->head_dim, (long long)channels);
    left -= channels;
  }
  return SN_OK;
}

static sn_status check_ranges(const sn_rope_attr *attr, int64_t columns, sn_error *err) {
  if (attr->n_ranges < 1 || attr->n_ranges > SN_ROPE_MAX_RANGES)
    return sn_fail(err, SN_E_ARGUMENT, "rope: n_ranges: expected 1 to %d, found %lld", SN_ROPE_MAX_RANGES,
                   (long long)attr->n_ranges);
  for (int64_t r = 0; r < attr->n_ranges; r++) {
    int64_t begin = attr->range_begin[r], end = attr->range_end[r];
    int64_t before = r > 0 ? attr->range_end[r - 1] : 0;
    if (begin < before || end < begin || end > columns || (end - begin) % attr->head_dim != 0)
      return sn_fail(err, SN_E_ARGUMENT,
                     "rope: range %lld: expected whole heads of %lld columns in [%lld, %lld), ranges in rising order, found "
                     "[%lld, %lld)",
                     (long long)r, (long long)attr->head_dim, (long long)before, (long long)columns, (long long)begin,
                     (long long)end);
  }
  return SN_OK;
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_rope_attr *attr = call->attr;
  const sn_tensor *x = &call->in[0], *positions = &call->in[1];
  if (call->n_in != 2) return sn_fail(err, SN_E_ARGUMENT, "rope: expected x and positions, found %d inputs", call->n_in);
  if (x->n_dims != 2 || !is_float(x->dtype))
    return sn_fail(err, SN_E_ARGUMENT, "rope: x: expected (T, W) in f32, bf16 or f64, found %d dimensions of %s", x->n_dims,
                   sn_dtype_name(x->dtype));
  SN_TRY(check_axes(attr, err));
  SN_TRY(check_ranges(attr, x->shape[1], err));
  if (positions->n_dims != 2 || positions->shape[0] != x->shape[0] || positions->shape[1] != attr->n_axes ||
      (positions->dtype != SN_F32 && positions->dtype != SN_F64))
    return sn_fail(err, SN_E_ARGUMENT, "rope: positions: expected (%lld, %lld) in f32 or f64, found (%lld, %lld) of %s",
                   (long long)x->shape[0], (long long)attr->n_axes, (long long)positions->shape[0],
                   (long long)positions->shape[1], sn_dtype_name(positions->dtype));
  call->n_out = 1;
  call->n_saved = 0;
  call->out[0] = sn_tensor_2d(NULL, x->dtype, x->shape[0], x->shape[1]);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  const sn_rope_attr *attr = call->attr;
  double columns = 0;
  for (int64_t r = 0; r < attr->n_ranges; r++) columns += (double)(attr->range_end[r] - attr->range_begin[r]);
  return 3 * columns * (double)call->in[0].shape[0];
}

static double bytes(const sn_op_call *call, bool backward) {
  return 2 * (double)sn_tensor_bytes(&call->in[0]) + (double)sn_tensor_bytes(&call->in[1]);
}

static const sn_op_impl *const impls[] = {&sn_rope_cpu, &sn_rope_ref, NULL};

/* --- samples --------------------------------------------------------------------------------------------------------- */

/* Positions run as high as hours of signal at a unit step of 10 ms. */
#define POSITIONS(rows, axes, size) {.n_dims = 2, .shape = {rows, axes}, .scale = size}
#define X(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_BF16}
static const sn_rope_attr fused = {.head_dim = 32, .n_ranges = 1, .range_end = {128}, .n_axes = 1};
static const sn_rope_attr three = {.head_dim = 20, .n_ranges = 1, .range_begin = {3}, .range_end = {63}, .n_axes = 3};
static const sn_rope_attr uneven = {.head_dim = 14, .n_ranges = 2, .range_begin = {2, 31}, .range_end = {30, 59},
                                    .n_axes = 4, .axis_channels = {2, 0, 6, 4}, .base = 100};
static const sn_rope_attr tiny = {.head_dim = 2, .n_ranges = 1, .range_end = {2}, .n_axes = 1};
static const sn_rope_attr wide = {.head_dim = 64, .n_ranges = 1, .range_end = {256}, .n_axes = 2};

static const sn_op_sample samples[] = {
    {.name = "fused_qkv", .attr = &fused, .n_in = 2, .in = {X(37, 192), POSITIONS(37, 1, 20)}},
    {.name = "three_axes", .attr = &three, .n_in = 2, .in = {X(29, 65), POSITIONS(29, 3, 5)}},
    {.name = "uneven_axes", .attr = &uneven, .n_in = 2, .in = {X(17, 60), POSITIONS(17, 4, 3)}},
    {.name = "far", .attr = &wide, .n_in = 2, .in = {X(131, 256), POSITIONS(131, 2, 300000)}},
    {.name = "one", .attr = &tiny, .n_in = 2, .in = {X(1, 2), POSITIONS(1, 1, 1)}},
    {.name = "no_rows", .attr = &fused, .n_in = 2, .in = {X(0, 192), POSITIONS(0, 1, 1)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_rope = {
    .name = "rope",
    .summary = "pairs of channels rotated by position * base^(-2i/d)",
    .attr_size = sizeof(sn_rope_attr),
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .impls = impls,
    .grad_inputs = 1,
    .samples = samples,
};

sn_status sn_rope(sn_tape *tape, sn_value **out, sn_value *x, sn_value *positions, const sn_rope_attr *attr,
                  sn_error *err) {
  sn_value *in[2] = {x, positions};
  return sn_tape_record(tape, &sn_op_rope, attr, 2, in, 1, out, err);
}
