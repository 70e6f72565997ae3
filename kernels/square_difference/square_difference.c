#include "kernels/square_difference/square_difference.h"

#include "kernels/used_rows.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "a", err));
  SN_TRY(sn_rule_float(call, 1, "b", err));
  SN_TRY(sn_rule_same_shape(call, 1, "b", 0, "a", err));
  SN_TRY(sn_used_rule(call, 2, sn_tensor_rows(&call->in[0]), err));
  call->n_out = 2;
  call->n_saved = 0;
  sn_shape_scalar(&call->out[0], SN_F64);
  sn_shape_scalar(&call->out[1], SN_F64);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 3.0 * (double)sn_tensor_count(&call->in[0]); }

static double ref_difference(const sn_op_call *call, int64_t i) {
  if (!sn_row_is_used(sn_used_flags(call, 2), i / sn_tensor_columns(&call->in[0]))) return 0;
  return sn_tensor_get(&call->in[0], i) - sn_tensor_get(&call->in[1], i);
}

static sn_status ref_forward(sn_device *device, const sn_op_call *call, sn_error *err) {
  int64_t rows = sn_tensor_rows(&call->in[0]), columns = sn_tensor_columns(&call->in[0]);
  double sum = 0;
  for (int64_t i = 0; i < sn_tensor_count(&call->in[0]); i++) sum += ref_difference(call, i) * ref_difference(call, i);
  sn_put(&call->out[0], 0, sum, false);
  sn_put(&call->out[1], 0, (double)(sn_count_used(sn_used_flags(call, 2), rows) * columns), false);
  return SN_OK;
}

static sn_status ref_backward(sn_device *device, const sn_op_call *call, sn_error *err) {
  if (!sn_has_dout(call)) return SN_OK;
  double dsum = sn_tensor_get(&call->dout[0], 0);
  for (int input = 0; input < 2; input++)
    for (int64_t i = 0; call->din[input].data && i < sn_tensor_count(&call->in[0]); i++)
      sn_put(&call->din[input], i, (input == 0 ? 2.0 : -2.0) * dsum * ref_difference(call, i), call->acc[input]);
  return SN_OK;
}

const sn_op_impl sn_square_difference_ref = {.name = "ref",
                                             .device = SN_DEVICE_CPU,
                                             .supports = sn_supports_always,
                                             .forward = ref_forward,
                                             .backward = ref_backward};

static const sn_op_impl *const impls[] = {&sn_square_difference_cpu, &sn_square_difference_ref, NULL};

static void most(int64_t count, double *flags) {
  for (int64_t i = 0; i < count; i++) flags[i] = i % 4 != 1;
}
#define USED(n) {.n_dims = 1, .shape = {n}, .dtype = SN_U8, .fill = SN_FILL_CUSTOM, .custom = most}
static const sn_op_sample samples[] = {
    {.name = "primes", .n_in = 3, .in = {SN_S2(7, 13), SN_S2(7, 13), SN_ABSENT}},
    {.name = "product", .n_in = 3, .in = {SN_S2B(67, 17), SN_S2(67, 17), USED(67)}},
    {.name = "above_chunk", .n_in = 3, .in = {SN_S2(37, 1031), SN_S2(37, 1031), USED(37)}},
    {.name = "one", .n_in = 3, .in = {SN_S2(1, 1), SN_S2(1, 1), SN_ABSENT}},
    {.name = "no_rows", .n_in = 3, .in = {SN_S2(0, 5), SN_S2(0, 5), SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_square_difference = {
    .name = "square_difference",
    .summary = "sum of (a - b)^2 over the used rows, and how many elements these are",
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 3u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
};

sn_status sn_square_difference(sn_tape *tape, sn_value *out[2], sn_value *a, sn_value *b, sn_value *used, sn_error *err) {
  sn_value *in[3] = {a, b, used};
  return sn_tape_record(tape, &sn_op_square_difference, NULL, 3, in, 2, out, err);
}
