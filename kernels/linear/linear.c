#include "kernels/linear/linear.h"

#include "kernels/linear/linear_impls.h"

sn_linear_sizes sn_linear_sizes_of(const sn_op_call *call) {
  sn_linear_sizes s = {1, call->in[1].shape[1], call->in[1].shape[0]};
  for (int i = 0; i + 1 < call->in[0].n_dims; i++) s.rows *= call->in[0].shape[i];
  return s;
}

static bool dtypes_fit(sn_dtype x, sn_dtype w, sn_dtype y) {
  if (x == SN_F64 || w == SN_F64 || y == SN_F64) return x == w && w == y;
  bool x_ok = x == SN_F32 || x == SN_BF16, y_ok = y == SN_F32 || y == SN_BF16;
  return x_ok && y_ok && (w == SN_F32 || (w == SN_BF16 && x == SN_BF16));
}

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_linear_attr *attr = call->attr;
  const sn_tensor *x = &call->in[0], *w = &call->in[1], *b = &call->in[2];
  if (call->n_in != 3 || x->data == NULL || w->data == NULL)
    return sn_fail(err, SN_E_ARGUMENT, "expected x, W and an optional b");
  if (w->n_dims != 2 || x->n_dims < 1 || x->shape[x->n_dims - 1] != w->shape[1])
    return sn_fail(err, SN_E_ARGUMENT, "x has %lld columns in %d dimensions, W is (%lld, %lld)",
                   (long long)(x->n_dims > 0 ? x->shape[x->n_dims - 1] : 0), x->n_dims, (long long)w->shape[0],
                   (long long)w->shape[1]);
  if (!dtypes_fit(x->dtype, w->dtype, attr->y_dtype))
    return sn_fail(err, SN_E_ARGUMENT, "dtypes x %s, W %s, y %s do not go together", sn_dtype_name(x->dtype),
                   sn_dtype_name(w->dtype), sn_dtype_name(attr->y_dtype));
  if (b->data != NULL && (b->n_dims != 1 || b->shape[0] != w->shape[0] || b->dtype != w->dtype))
    return sn_fail(err, SN_E_ARGUMENT, "b must be (%lld) of W's dtype", (long long)w->shape[0]);
  call->n_out = 1;
  call->n_saved = 0;
  call->out[0] = *x;
  call->out[0].data = NULL;
  call->out[0].param = NULL;
  call->out[0].dtype = attr->y_dtype;
  call->out[0].shape[x->n_dims - 1] = w->shape[0];
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  sn_linear_sizes s = sn_linear_sizes_of(call);
  double one = 2.0 * (double)s.rows * (double)s.n_in * (double)s.n_out;
  if (!backward) return one;
  return one * ((call->din[0].data != NULL) + (call->din[1].data != NULL));
}

static double bytes(const sn_op_call *call, bool backward) {
  double n = (double)sn_tensor_bytes(&call->in[0]) + (double)sn_tensor_bytes(&call->in[1]) +
             (double)sn_tensor_bytes(&call->out[0]);
  if (!backward) return n;
  double dx = (double)sn_tensor_bytes(&call->in[0]), dw = (double)sn_tensor_bytes(&call->in[1]);
  return n + (call->din[0].data != NULL ? dx : 0) + (call->din[1].data != NULL ? 2 * dw : 0);
}

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_linear_attr *a = attr;
  a->y_dtype = sn_retype(a->y_dtype, residual, product);
}

/* The order is what was measured for ViT shapes (T 1,600 to 6,400, C 128 to 768), forward and backward together, one Zen 5
 * core: oneDNN 215-250 GFLOP/s in fp32 and 395-485 in bf16, our own 200-225 and 375-465; forward alone they are equal.
 * Where AMX is there the library uses it and ours does not. */
static const sn_op_impl *const IMPLS[] = {
#ifdef SONDE_HAVE_ONEDNN
    &sn_linear_onednn,
#endif
    &sn_linear_cpu, &sn_linear_ref, NULL};

static const sn_linear_attr TO_PRODUCT = {SN_BF16}, TO_RESIDUAL = {SN_F32};

#define X(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_BF16}
#define W(out, in) {.n_dims = 2, .shape = {out, in}, .scale = 0.3}
#define B(out) {.n_dims = 1, .shape = {out}}
#define ABSENT {.absent = true}
static const sn_op_sample SAMPLES[] = {
    {.name = "primes", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(7, 13), W(11, 13), B(11)}},
    {.name = "primes_to_residual", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(37, 29), W(53, 29), B(53)}},
    {.name = "no_bias", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(5, 19), W(23, 19), ABSENT}},
    {.name = "one", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(1, 1), W(1, 1), B(1)}},
    {.name = "one_row", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(1, 40), W(17, 40), B(17)}},
    {.name = "bucket", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(64, 32), W(96, 32), B(96)}},
    {.name = "buckets", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(128, 37), W(53, 37), B(53)}},
    {.name = "panels", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(64, 64), W(128, 64), B(128)}},
    {.name = "above_blocks", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(129, 65), W(97, 65), B(97)}},
    {.name = "many_rows", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(1031, 6), W(5, 6), B(5)}},
    {.name = "many_columns", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(9, 300), W(34, 300), B(34)}},
    {.name = "three_dimensions", .attr = &TO_PRODUCT, .n_in = 3,
     .in = {{.n_dims = 3, .shape = {3, 5, 8}, .dtype = SN_BF16}, W(6, 8), B(6)}},
    {.name = "no_rows", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(0, 8), W(6, 8), B(6)}, .why_zero = "no rows"},
    {.name = NULL}};

/* ViT-S at 1,600 tokens (25 samples of 64), and a head on 25 pooled rows. */
static const sn_op_sample TYPICAL[] = {
    {.name = "vit_s/qkv", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(1600, 384), W(1152, 384), B(1152)}},
    {.name = "vit_s/proj", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(1600, 384), W(384, 384), B(384)}},
    {.name = "vit_s/fc1", .attr = &TO_PRODUCT, .n_in = 3, .in = {X(1600, 384), W(1536, 384), B(1536)}},
    {.name = "vit_s/fc2", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(1600, 1536), W(384, 1536), B(384)}},
    {.name = "head", .attr = &TO_RESIDUAL, .n_in = 3, .in = {X(25, 384), W(5, 384), B(5)}},
    {.name = NULL}};

const sn_op sn_op_linear = {
    .name = "linear",
    .summary = "y = x W^T + b",
    .attr_size = sizeof(sn_linear_attr),
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

sn_status sn_linear(sn_tape *tape, sn_value **y, sn_value *x, sn_value *w, sn_value *b, sn_dtype y_dtype,
                    sn_error *err) {
  sn_linear_attr attr = {y_dtype};
  sn_value *in[3] = {x, w, b};
  return sn_tape_record(tape, &sn_op_linear, &attr, 3, in, 1, y, err);
}

sn_status sn_linear_of(sn_tape *tape, sn_value **y, sn_value *x, sn_param *w, sn_param *b, sn_dtype y_dtype, sn_error *err) {
  sn_value *weight, *bias = NULL;
  SN_TRY(sn_tape_param(tape, &weight, w, err));
  if (b != NULL) SN_TRY(sn_tape_param(tape, &bias, b, err));
  return sn_linear(tape, y, x, weight, bias, y_dtype, err);
}
