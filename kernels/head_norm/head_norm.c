#include "kernels/head_norm/head_norm.h"

#include <math.h>

#include "core/alloc.h"
#include "kernels/head_norm/head_norm_impl.h"

static bool is_float(sn_dtype dtype) { return dtype == SN_F32 || dtype == SN_BF16 || dtype == SN_F64; }

static sn_status check_attr(const sn_head_norm_attr *attr, int64_t columns, sn_error *err) {
  int64_t width;
  if (attr->n_heads < 1 || attr->head_dim < 1 || !sn_mul_ok(attr->n_heads, attr->head_dim, &width))
    return sn_fail(err, SN_E_ARGUMENT, "head_norm: expected at least 1 head of at least 1 channel, found %lld of %lld",
                   (long long)attr->n_heads, (long long)attr->head_dim);
  if (attr->n_groups < 1 || attr->n_groups > SN_HEAD_NORM_MAX_GROUPS)
    return sn_fail(err, SN_E_ARGUMENT, "head_norm: n_groups: expected 1 or %d, found %lld", SN_HEAD_NORM_MAX_GROUPS,
                   (long long)attr->n_groups);
  for (int64_t g = 0; g < attr->n_groups; g++) {
    int64_t least = g > 0 ? attr->column[g - 1] + width : 0;
    if (attr->column[g] < least || attr->column[g] > columns - width)
      return sn_fail(err, SN_E_ARGUMENT,
                     "head_norm: column[%lld]: expected %lld to %lld (groups of %lld columns, in rising order, of %lld), "
                     "found %lld",
                     (long long)g, (long long)least, (long long)(columns - width), (long long)width, (long long)columns,
                     (long long)attr->column[g]);
  }
  if (attr->kind != SN_HEAD_NORM_RMS && attr->kind != SN_HEAD_NORM_LAYER)
    return sn_fail(err, SN_E_ARGUMENT, "head_norm: kind: expected RMS or LAYER, found %d", (int)attr->kind);
  if (!(attr->eps >= 0) || !isfinite(attr->eps))
    return sn_fail(err, SN_E_ARGUMENT, "head_norm: eps: expected 0 or more, found %g", attr->eps);
  return SN_OK;
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_head_norm_attr *attr = call->attr;
  const sn_tensor *x = &call->in[0];
  if (x->n_dims != 2 || !is_float(x->dtype))
    return sn_fail(err, SN_E_ARGUMENT, "head_norm: x: expected (T, W) in f32, bf16 or f64, found %d dimensions of %s",
                   x->n_dims, sn_dtype_name(x->dtype));
  SN_TRY(check_attr(attr, x->shape[1], err));
  if (call->n_in < 1 + (int)attr->n_groups)
    return sn_fail(err, SN_E_ARGUMENT, "head_norm: expected x and %lld gains, found %d inputs", (long long)attr->n_groups,
                   call->n_in);
  for (int g = 0; g < (int)attr->n_groups; g++) {
    const sn_tensor *gain = &call->in[1 + g];
    if (gain->n_dims != 1 || gain->shape[0] != attr->head_dim || !is_float(gain->dtype))
      return sn_fail(err, SN_E_ARGUMENT, "head_norm: gain %d: expected (%lld) in f32, bf16 or f64, found (%lld) of %s", g,
                     (long long)attr->head_dim, (long long)gain->shape[0], sn_dtype_name(gain->dtype));
  }
  call->n_out = 1;
  call->n_saved = 0;
  call->out[0] = sn_tensor_2d(NULL, x->dtype, x->shape[0], x->shape[1]);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  const sn_head_norm_attr *attr = call->attr;
  double values = (double)(attr->n_groups * attr->n_heads * attr->head_dim) * (double)call->in[0].shape[0];
  return (backward ? 13 : attr->kind == SN_HEAD_NORM_RMS ? 4 : 6) * values;
}

static double bytes(const sn_op_call *call, bool backward) {
  return (backward ? 3 : 2) * (double)sn_tensor_bytes(&call->in[0]);
}

static const sn_op_impl *const impls[] = {
#if defined(__x86_64__)
    &sn_head_norm_avx512, &sn_head_norm_avx2,
#endif
    &sn_head_norm_cpu, &sn_head_norm_ref, NULL};

/* --- samples --------------------------------------------------------------------------------------------------------- */

#define X(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_BF16}
#define GAIN(d) {.n_dims = 1, .shape = {d}, .fill = SN_FILL_POSITIVE}
static const sn_head_norm_attr rms = {.n_heads = 4, .head_dim = 32, .n_groups = 2, .column = {0, 128},
                                      .kind = SN_HEAD_NORM_RMS, .eps = 1e-6};
static const sn_head_norm_attr layer = {.n_heads = 3, .head_dim = 64, .n_groups = 2, .column = {0, 192},
                                        .kind = SN_HEAD_NORM_LAYER, .eps = 1e-6};
static const sn_head_norm_attr gaps = {.n_heads = 2, .head_dim = 7, .n_groups = 2, .column = {3, 19},
                                       .kind = SN_HEAD_NORM_LAYER, .eps = 1e-3};
static const sn_head_norm_attr one_group = {.n_heads = 2, .head_dim = 20, .n_groups = 1, .column = {0},
                                            .kind = SN_HEAD_NORM_RMS, .eps = 0};
static const sn_head_norm_attr wide = {.n_heads = 1, .head_dim = 129, .n_groups = 1, .column = {5},
                                       .kind = SN_HEAD_NORM_LAYER, .eps = 1e-5};

static const sn_op_sample samples[] = {
    {.name = "rms_qkv", .attr = &rms, .n_in = 3, .in = {X(67, 384), GAIN(32), GAIN(32)}},
    {.name = "layer_qkv", .attr = &layer, .n_in = 3, .in = {X(65, 576), GAIN(64), GAIN(64)}},
    {.name = "layer_gaps", .attr = &gaps, .n_in = 3, .in = {X(131, 37), GAIN(7), GAIN(7)}},
    {.name = "one_group", .attr = &one_group, .n_in = 2, .in = {X(13, 40), GAIN(20)}},
    {.name = "wide", .attr = &wide, .n_in = 2, .in = {X(5, 141), GAIN(129)}},
    {.name = "no_rows", .attr = &rms, .n_in = 3, .in = {X(0, 384), GAIN(32), GAIN(32)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_head_norm = {
    .name = "head_norm",
    .summary = "each head of q and k normalised over its channels, times a gain",
    .attr_size = sizeof(sn_head_norm_attr),
    .infer = infer,
    .flops = flops,
    .bytes = bytes,
    .impls = impls,
    .grad_inputs = 7,
    .samples = samples,
};

sn_status sn_head_norm(sn_tape *tape, sn_value **out, sn_value *x, sn_value *gain_0, sn_value *gain_1,
                       const sn_head_norm_attr *attr, sn_error *err) {
  sn_value *in[3] = {x, gain_0, gain_1};
  return sn_tape_record(tape, &sn_op_head_norm, attr, attr->n_groups > 1 ? 3 : 2, in, 1, out, err);
}
