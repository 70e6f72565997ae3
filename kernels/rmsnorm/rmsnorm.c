#include "kernels/rmsnorm/rmsnorm.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_rmsnorm_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "x", err));
  int64_t columns = sn_tensor_columns(x);
  if (columns < 1 || !(a->eps >= 0))
    return sn_fail(err, SN_E_ARGUMENT, "x needs at least one column and eps >= 0; found %lld columns, eps %g",
                   (long long)columns, a->eps);
  if (sn_is_present(&call->in[1])) SN_TRY(sn_rule_vector(call, 1, "gamma", columns, err));
  SN_TRY(sn_rule_out_dtype(call, a->out_dtype, err));
  call->n_out = 1;
  sn_shape_like(&call->out[0], x, a->out_dtype);
  call->n_saved = with_saved ? 1 : 0;
  if (with_saved) sn_shape_1d(&call->saved[0], sn_tensor_rows(x), sn_statistics_dtype(x->dtype));
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 10.0 : 4.0) * (double)sn_tensor_count(&call->in[0]);
}

static double or_one(const sn_tensor *gamma, int64_t c) { return gamma->data ? sn_tensor_get(gamma, c) : 1.0; }

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_rmsnorm_attr *a = call->attr;
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  for (int64_t t = 0; t < rows; t++) {
    double squares = 0;
    for (int64_t c = 0; c < columns; c++) {
      double x = sn_tensor_get(&call->in[0], t * columns + c);
      squares += x * x;
    }
    double rstd = 1.0 / sqrt(squares / (double)columns + a->eps);
    for (int64_t c = 0; c < columns; c++)
      sn_put(&call->out[0], t * columns + c, sn_tensor_get(&call->in[0], t * columns + c) * rstd * or_one(&call->in[1], c),
             false);
    if (call->saved[0].data) sn_put(&call->saved[0], t, rstd, false);
  }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  const sn_tensor *x = &call->in[0], *dy = &call->dout[0], *gamma = &call->in[1];
  int64_t rows = sn_tensor_rows(x), columns = sn_tensor_columns(x);
  for (int64_t t = 0; t < rows && call->din[0].data; t++) {
    double rstd = sn_tensor_get(&call->saved[0], t), mean = 0;
    for (int64_t i = t * columns; i < (t + 1) * columns; i++)
      mean += sn_tensor_get(dy, i) * or_one(gamma, i % columns) * sn_tensor_get(x, i);
    mean *= rstd * rstd / (double)columns;
    for (int64_t i = t * columns; i < (t + 1) * columns; i++) {
      double g = sn_tensor_get(dy, i) * or_one(gamma, i % columns);
      sn_put(&call->din[0], i, rstd * (g - sn_tensor_get(x, i) * mean), call->acc[0]);
    }
  }
  for (int64_t c = 0; c < columns && call->din[1].data; c++) {
    double sum = 0;
    for (int64_t t = 0; t < rows; t++)
      sum += sn_tensor_get(dy, t * columns + c) * sn_tensor_get(x, t * columns + c) * sn_tensor_get(&call->saved[0], t);
    sn_put(&call->din[1], c, sum, call->acc[1]);
  }
  return SN_OK;
}

const sn_op_impl sn_rmsnorm_ref = {.name = "ref",
                                   .device = SN_DEVICE_CPU,
                                   .supports = sn_supports_always,
                                   .forward = ref_forward,
                                   .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_rmsnorm_cpu, &sn_rmsnorm_ref, NULL};

static void retype(void *attr, sn_dtype residual, sn_dtype product) {
  sn_rmsnorm_attr *a = attr;
  a->out_dtype = sn_retype(a->out_dtype, residual, product);
}

static const sn_rmsnorm_attr to_product = {1e-6, SN_BF16}, to_residual = {1e-5, SN_F32};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &to_product, .n_in = 2, .in = {SN_S2(7, 13), SN_S1(13)}},
    {.name = "to_residual", .attr = &to_residual, .n_in = 2, .in = {SN_S2(5, 31), SN_S2(1, 31)}},
    {.name = "no_gamma", .attr = &to_product, .n_in = 2, .in = {SN_S2(6, 17), SN_ABSENT}},
    {.name = "above_row_block", .attr = &to_product, .n_in = 2, .in = {SN_S2B(67, 65), SN_S1(65)}},
    {.name = "above_chunk", .attr = &to_product, .n_in = 2, .in = {SN_S2B(3, 1031), SN_S1(1031)}},
    {.name = "one_row", .attr = &to_residual, .n_in = 2, .in = {SN_S1(19), SN_S1(19)}},
    {.name = "no_rows", .attr = &to_product, .n_in = 2, .in = {SN_S2(0, 8), SN_S1(8)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_rmsnorm = {
    .name = "rmsnorm",
    .summary = "y = x / sqrt(mean(x^2) + eps) * gamma, over the last dimension",
    .attr_size = sizeof(sn_rmsnorm_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 3u,
    .unread_out = 1u,
    .retype = retype,
    .samples = samples,
};

sn_status sn_rmsnorm(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, double eps, sn_error *err) {
  return sn_rmsnorm_as(tape, y, x, gamma, eps, sn_tape_product(tape), err);
}

sn_status sn_rmsnorm_as(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, double eps, sn_dtype out_dtype,
                        sn_error *err) {
  sn_rmsnorm_attr attr = {.eps = eps, .out_dtype = out_dtype};
  sn_value *in[2] = {x, gamma};
  return sn_tape_record(tape, &sn_op_rmsnorm, &attr, 2, in, 1, y, err);
}
