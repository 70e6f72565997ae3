#include "kernels/l2_normalize/l2_normalize.h"

#include <math.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_l2_normalize_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "x", err));
  if (!(a->eps > 0)) return sn_fail(err, SN_E_ARGUMENT, "eps must be above 0; it is %g", a->eps);
  call->n_out = 1;
  sn_shape_like(&call->out[0], &call->in[0], call->in[0].dtype);
  call->n_saved = with_saved ? 1 : 0;
  if (with_saved) sn_shape_1d(&call->saved[0], sn_tensor_rows(&call->in[0]), sn_statistics_dtype(call->in[0].dtype));
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) {
  return (backward ? 6.0 : 3.0) * (double)sn_tensor_count(&call->in[0]);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_l2_normalize_attr *a = call->attr;
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  for (int64_t t = 0; t < rows; t++) {
    double squares = 0;
    for (int64_t i = t * columns; i < (t + 1) * columns; i++) {
      double x = sn_tensor_get(&call->in[0], i);
      squares += x * x;
    }
    double divisor = fmax(sqrt(squares), a->eps);
    for (int64_t i = t * columns; i < (t + 1) * columns; i++)
      sn_put(&call->out[0], i, sn_tensor_get(&call->in[0], i) / divisor, false);
    if (call->saved[0].data) sn_put(&call->saved[0], t, divisor, false);
  }
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  const sn_l2_normalize_attr *a = call->attr;
  if (!sn_has_dout(call) || !call->din[0].data) return SN_OK;
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  for (int64_t t = 0; t < rows; t++) {
    double divisor = sn_tensor_get(&call->saved[0], t), dot = 0;
    for (int64_t i = t * columns; i < (t + 1) * columns; i++)
      dot += sn_tensor_get(&call->in[0], i) * sn_tensor_get(&call->dout[0], i);
    dot = divisor > a->eps ? dot / (divisor * divisor) : 0.0;
    for (int64_t i = t * columns; i < (t + 1) * columns; i++) {
      double dx = (sn_tensor_get(&call->dout[0], i) - sn_tensor_get(&call->in[0], i) * dot) / divisor;
      sn_put(&call->din[0], i, dx, call->acc[0]);
    }
  }
  return SN_OK;
}

const sn_op_impl sn_l2_normalize_ref = {.name = "ref",
                                        .device = SN_DEVICE_CPU,
                                        .supports = sn_supports_always,
                                        .forward = ref_forward,
                                        .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_l2_normalize_cpu, &sn_l2_normalize_ref, NULL};

static const sn_l2_normalize_attr usual = {1e-12}, high = {50.0};
static const sn_op_sample samples[] = {
    {.name = "primes", .attr = &usual, .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "product", .attr = &usual, .n_in = 1, .in = {SN_S2B(67, 17)}},
    {.name = "at_the_floor", .attr = &high, .n_in = 1, .in = {SN_S2(7, 13)}},
    {.name = "above_chunk", .attr = &usual, .n_in = 1, .in = {SN_S2B(3, 1031)}},
    {.name = "no_rows", .attr = &usual, .n_in = 1, .in = {SN_S2(0, 5)}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_l2_normalize = {
    .name = "l2_normalize",
    .summary = "y = x / max(|x|, eps) by rows",
    .attr_size = sizeof(sn_l2_normalize_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 1u,
    .samples = samples,
};

sn_status sn_l2_normalize(sn_tape *tape, sn_value **y, sn_value *x, double eps, sn_error *err) {
  sn_l2_normalize_attr attr = {eps};
  return sn_tape_record(tape, &sn_op_l2_normalize, &attr, 1, &x, 1, y, err);
}
