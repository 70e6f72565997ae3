#include "kernels/vicreg_terms/vicreg_terms.h"

#include <math.h>

#include "kernels/used_rows.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_vicreg_terms_attr *a = call->attr;
  const sn_tensor *x = &call->in[0];
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (x->n_dims != 2 || x->shape[1] < 1)
    return sn_fail(err, SN_E_ARGUMENT, "x must be a matrix of rows with at least one column; it has %d dimensions, the last of "
                   "%lld", (int)x->n_dims, (long long)sn_tensor_columns(x));
  SN_TRY(sn_used_rule(call, 1, x->shape[0], err));
  if (!(a->eps > 0) || !isfinite(a->eps))
    return sn_fail(err, SN_E_ARGUMENT, "eps must be finite and above 0; it is %g", a->eps);
  call->n_out = 3;
  for (int i = 0; i < 3; i++) sn_shape_scalar(&call->out[i], SN_F64);
  call->n_saved = with_saved ? 2 : 0;
  if (!with_saved) return SN_OK;
  sn_dtype dtype = sn_statistics_dtype(x->dtype);
  sn_shape_1d(&call->saved[0], x->shape[1], dtype);
  sn_shape_2d(&call->saved[1], x->shape[1], x->shape[1], dtype);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  double d = (double)call->in[0].shape[1];
  return 2.0 * (double)call->in[0].shape[0] * d * (d + 4.0);
}

/* Centred rows into scratch (rows, d), 0 where a row is not used; how many are. */
static int64_t ref_centre(const sn_op_call *call, double *centred) {
  const uint8_t *used = sn_used_flags(call, 1);
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1], n = sn_count_used(used, rows);
  for (int64_t c = 0; c < d; c++) {
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
      if (sn_row_is_used(used, i)) sum += sn_tensor_get(&call->in[0], i * d + c);
    double mean = n > 0 ? sum / (double)n : 0.0;
    for (int64_t i = 0; i < rows; i++)
      centred[i * d + c] = sn_row_is_used(used, i) ? sn_tensor_get(&call->in[0], i * d + c) - mean : 0.0;
  }
  return n;
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_vicreg_terms_attr *a = call->attr;
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1];
  double *x = call->scratch, variance = 0, covariance = 0;
  int64_t n = ref_centre(call, x);
  for (int64_t c = 0; c < d; c++)
    for (int64_t e = 0; e < d; e++) {
      double sum = 0;
      for (int64_t i = 0; i < rows && n > 1; i++) sum += x[i * d + c] * x[i * d + e];
      if (n > 1) sum /= (double)(n - 1);
      if (call->saved[1].data) sn_put(&call->saved[1], c * d + e, c != e ? sum : 0.0, false);
      if (c != e) {
        covariance += sum * sum;
        continue;
      }
      double gap = n > 1 ? 1.0 - sqrt(sum + a->eps) : 0.0;
      if (!(gap <= 0)) variance += gap; /* NaN is passed on */
      if (call->saved[0].data) sn_put(&call->saved[0], c, gap <= 0 ? 0.0 : 1.0 / sqrt(sum + a->eps), false);
    }
  sn_put(&call->out[0], 0, 0.5 * variance / (double)d, false);
  sn_put(&call->out[1], 0, covariance / (double)d, false);
  sn_put(&call->out[2], 0, (double)n, false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t rows = call->in[0].shape[0], d = call->in[0].shape[1];
  double *x = call->scratch;
  if (!call->din[0].data) return SN_OK;
  int64_t n = ref_centre(call, x);
  double divisor = n > 1 ? (double)d * (double)(n - 1) : 1.0;
  double by_variance = call->dout[0].data ? -0.5 / divisor * sn_tensor_get(&call->dout[0], 0) : 0.0;
  double by_covariance = call->dout[1].data ? 4.0 / divisor * sn_tensor_get(&call->dout[1], 0) : 0.0;
  for (int64_t i = 0; i < rows; i++)
    for (int64_t c = 0; c < d; c++) {
      double sum = 0;
      for (int64_t e = 0; e < d; e++) sum += x[i * d + e] * sn_tensor_get(&call->saved[1], e * d + c);
      double dx = by_variance * x[i * d + c] * sn_tensor_get(&call->saved[0], c) + by_covariance * sum;
      sn_put(&call->din[0], i * d + c, n > 1 ? dx : 0.0, call->acc[0]);
    }
  return SN_OK;
}

static int64_t ref_scratch(const sn_device *device, const sn_op_call *call, bool backward) {
  return call->in[0].shape[0] * call->in[0].shape[1] * (int64_t)sizeof(double);
}

const sn_op_impl sn_vicreg_terms_ref = {.name = "ref",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_always,
                                        .forward = ref_forward,
                                        .backward = ref_backward,
                                        .scratch = ref_scratch};

static const sn_op_impl *const impls[] = {&sn_vicreg_terms_cpu, &sn_vicreg_terms_ref, NULL};

static void most(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = i % 4 != 1;
}
static void only_second(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = i == 1;
}

#define USED(n, function) {.n_dims = 1, .shape = {n}, .dtype = SN_U8, .fill = SN_FILL_CUSTOM, .custom = function}
#define SCALED(rows, columns, by) {.n_dims = 2, .shape = {rows, columns}, .scale = by}
static const sn_vicreg_terms_attr usual = {1e-4};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &usual, .n_in = 2, .in = {SCALED(11, 7, 0.5), SN_ABSENT}},
    {.name = "some_above_hinge", .attr = &usual, .n_in = 2, .in = {SN_S2(13, 17), SN_ABSENT}},
    {.name = "used", .attr = &usual, .n_in = 2, .in = {SCALED(67, 5, 0.9), USED(67, most)}},
    {.name = "wide", .attr = &usual, .n_in = 2, .in = {SCALED(5, 67, 0.7), SN_ABSENT}},
    {.name = "product", .attr = &usual, .n_in = 2,
     .in = {{.n_dims = 2, .shape = {41, 19}, .dtype = SN_BF16, .scale = 0.8}, SN_ABSENT}},
    {.name = "above_block", .attr = &usual, .n_in = 2, .in = {SCALED(1031, 65, 0.99), USED(1031, most)}},
    {.name = "one_column", .attr = &usual, .n_in = 2, .in = {SCALED(7, 1, 0.5), SN_ABSENT},
     .why_zero = "one column has no covariance"},
    {.name = "one_used", .attr = &usual, .n_in = 2, .in = {SN_S2(3, 5), USED(3, only_second)},
     .why_zero = "one row has no variance"},
    {.name = "no_rows", .attr = &usual, .n_in = 2, .in = {SN_S2(0, 5), SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_vicreg_terms = {
    .name = "vicreg_terms",
    .summary = "mean of max(0, 1 - deviation) / 2, sum of squared covariances / d, and the rows",
    .attr_size = sizeof(sn_vicreg_terms_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 7u,
    .constant_outputs = 4u,
    .samples = samples,
};

sn_status sn_vicreg_terms(sn_tape *tape, sn_value *out[3], sn_value *x, sn_value *used, double eps, sn_error *err) {
  sn_vicreg_terms_attr attr = {eps};
  sn_value *in[2] = {x, used};
  return sn_tape_record(tape, &sn_op_vicreg_terms, &attr, 2, in, 3, out, err);
}
