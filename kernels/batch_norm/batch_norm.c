#include "kernels/batch_norm/batch_norm.h"

#include <math.h>

#include "kernels/used_rows.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_batch_norm_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  int64_t columns = sn_tensor_columns(&call->in[0]);
  if (sn_is_present(&call->in[1])) SN_TRY(sn_rule_vector(call, 1, "gamma", columns, err));
  if (sn_is_present(&call->in[2])) SN_TRY(sn_rule_vector(call, 2, "beta", columns, err));
  SN_TRY(sn_used_rule(call, 3, sn_tensor_rows(&call->in[0]), err));
  if (!(a->eps > 0) || !isfinite(a->eps))
    return sn_fail(err, SN_E_ARGUMENT, "eps must be finite and above 0; it is %g", a->eps);
  call->n_out = 1;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  call->n_saved = with_saved ? 2 : 0;
  for (int i = 0; i < call->n_saved; i++) sn_shape_1d(&call->saved[i], columns, sn_statistics_dtype(call->in[0].dtype));
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 9.0 : 6.0) * (double)sn_tensor_count(&call->in[0]);
}

static double get_or(const sn_tensor *t, int64_t i, double otherwise) { return t->data ? sn_tensor_get(t, i) : otherwise; }

/* A column's mean and 1 / deviation. */
static void ref_statistics(const sn_op_call *call, int64_t c, int64_t n, double *mean, double *rstd) {
  const sn_batch_norm_attr *a = call->attr;
  const uint8_t *used = sn_used_flags(call, 3);
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  double sum = 0, squares = 0;
  for (int64_t t = 0; t < rows; t++)
    if (sn_row_is_used(used, t)) sum += sn_tensor_get(&call->in[0], t * columns + c);
  *mean = n > 0 ? sum / (double)n : 0.0;
  for (int64_t t = 0; t < rows; t++) {
    double x = sn_row_is_used(used, t) ? sn_tensor_get(&call->in[0], t * columns + c) - *mean : 0.0;
    squares += x * x;
  }
  *rstd = 1.0 / sqrt((n > 0 ? squares / (double)n : 0.0) + a->eps);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const uint8_t *used = sn_used_flags(call, 3);
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]), n = sn_count_used(used, rows);
  for (int64_t c = 0; c < columns; c++) {
    double mean, rstd, gamma = get_or(&call->in[1], c, 1.0), beta = get_or(&call->in[2], c, 0.0);
    ref_statistics(call, c, n, &mean, &rstd);
    for (int64_t t = 0; t < rows; t++) {
      int64_t at = t * columns + c;
      double y = sn_row_is_used(used, t) ? (sn_tensor_get(&call->in[0], at) - mean) * rstd * gamma + beta : 0.0;
      sn_put(&call->out[0], at, y, false);
    }
    if (call->saved[0].data) sn_put(&call->saved[0], c, mean, false);
    if (call->saved[1].data) sn_put(&call->saved[1], c, rstd, false);
  }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  const uint8_t *used = sn_used_flags(call, 3);
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]), n = sn_count_used(used, rows);
  for (int64_t c = 0; c < columns; c++) {
    double mean = sn_tensor_get(&call->saved[0], c), rstd = sn_tensor_get(&call->saved[1], c), dbeta = 0, dgamma = 0;
    for (int64_t t = 0; t < rows; t++) {
      if (!sn_row_is_used(used, t)) continue;
      double dy = sn_tensor_get(&call->dout[0], t * columns + c);
      dbeta += dy;
      dgamma += dy * (sn_tensor_get(&call->in[0], t * columns + c) - mean) * rstd;
    }
    for (int64_t t = 0; t < rows && call->din[0].data; t++) {
      int64_t at = t * columns + c;
      double dx = 0;
      if (sn_row_is_used(used, t)) {
        double xhat = (sn_tensor_get(&call->in[0], at) - mean) * rstd;
        dx = sn_tensor_get(&call->dout[0], at) - (dbeta + xhat * dgamma) / (double)n;
      }
      sn_put(&call->din[0], at, get_or(&call->in[1], c, 1.0) * rstd * dx, call->acc[0]);
    }
    if (call->din[1].data) sn_put(&call->din[1], c, dgamma, call->acc[1]);
    if (call->din[2].data) sn_put(&call->din[2], c, dbeta, call->acc[2]);
  }
  return SN_OK;
}

const sn_op_impl sn_batch_norm_ref = {.name = "ref",
                                      .device = SN_DEVICE_CPU,
                                      .supports = sn_supports_always,
                                      .forward = ref_forward,
                                      .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_batch_norm_cpu, &sn_batch_norm_ref, NULL};

static void most(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = i % 3 != 1;
}
static void only_second(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = i == 1;
}
static void none(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = 0;
}

#define USED(n, function) {.n_dims = 1, .shape = {n}, .dtype = SN_U8, .fill = SN_FILL_CUSTOM, .custom = function}
static const sn_batch_norm_attr usual = {1e-5}, large = {0.5};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &usual, .n_in = 4, .in = {SN_S2(11, 13), SN_S1(13), SN_S1(13), SN_ABSENT}},
    {.name = "plain", .attr = &usual, .n_in = 4, .in = {SN_S2(11, 13), SN_ABSENT, SN_ABSENT, SN_ABSENT}},
    {.name = "used", .attr = &large, .n_in = 4, .in = {SN_S2(37, 67), SN_S1(67), SN_S1(67), USED(37, most)}},
    {.name = "product", .attr = &usual, .n_in = 4, .in = {SN_S2B(67, 17), SN_S1(17), SN_ABSENT, USED(67, most)}},
    {.name = "above_block", .attr = &usual, .n_in = 4, .in = {SN_S2(1031, 65), SN_ABSENT, SN_S1(65), SN_ABSENT}},
    {.name = "one_used", .attr = &usual, .n_in = 4, .in = {SN_S2(3, 5), SN_S1(5), SN_S1(5), USED(3, only_second)},
     .why_zero = "one row has no variance"},
    {.name = "none_used", .attr = &usual, .n_in = 4, .in = {SN_S2(3, 5), SN_S1(5), SN_S1(5), USED(3, none)},
     .why_zero = "no row is used"},
    {.name = "no_rows", .attr = &usual, .n_in = 4, .in = {SN_S2(0, 5), SN_S1(5), SN_S1(5), SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_batch_norm = {
    .name = "batch_norm",
    .summary = "y = (x - mean) / sqrt(var + eps) * gamma + beta by columns over the used rows",
    .attr_size = sizeof(sn_batch_norm_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 7u,
    .unread_in = 4u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_batch_norm(sn_tape *tape, sn_value **y, sn_value *x, sn_value *gamma, sn_value *beta, sn_value *used, double eps,
                        sn_error *err) {
  sn_batch_norm_attr attr = {eps};
  sn_value *in[4] = {x, gamma, beta, used};
  return sn_tape_record(tape, &sn_op_batch_norm, &attr, 4, in, 1, y, err);
}
