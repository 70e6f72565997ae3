#include "kernels/masked_patch_loss/masked_patch_loss.h"

#include <string.h>

#include "kernels/op_rules.h"

static sn_status infer(sn_op_call *call, bool with_saved, sn_error *err) {
  const sn_masked_patch_loss_attr *a = call->attr;
  SN_TRY(sn_rule_float(call, 0, "pred", err));
  SN_TRY(sn_rule_float(call, 1, "target", err));
  SN_TRY(sn_rule_same_shape(call, 1, "target", 0, "pred", err));
  if (sn_is_present(&call->in[2])) {
    SN_TRY(sn_rule_dtype(call, 2, "valid", SN_U8, err));
    SN_TRY(sn_rule_same_shape(call, 2, "valid", 0, "pred", err));
  }
  if (sn_is_present(&call->in[3])) {
    SN_TRY(sn_rule_float(call, 3, "weights", err));
    if (sn_tensor_count(&call->in[3]) != sn_tensor_rows(&call->in[0]))
      return sn_fail(err, SN_E_ARGUMENT, "weights must have one for each of %lld rows; it has %lld",
                     (long long)sn_tensor_rows(&call->in[0]), (long long)sn_tensor_count(&call->in[3]));
  }
  bool kind_ok = a->kind == SN_PATCH_L2 || a->kind == SN_PATCH_L1 || (a->kind == SN_PATCH_SMOOTH_L1 && a->beta > 0);
  if (!kind_ok)
    return sn_fail(err, SN_E_ARGUMENT, "kind must be L2, L1 or smooth L1 with beta > 0; it is %d, beta %g",
                   (int)a->kind, a->beta);
  call->n_out = 2;
  call->n_saved = 0;
  sn_shape_scalar(&call->out[0], SN_F64);
  sn_shape_scalar(&call->out[1], SN_F64);
  return SN_OK;
}

static double flops(const sn_op_call *call, bool backward) { return 4.0 * (double)sn_tensor_count(&call->in[0]); }

static const sn_op_impl *const impls[] = {&sn_masked_patch_loss_cpu, &sn_masked_patch_loss_ref, NULL};

static const sn_masked_patch_loss_attr l2 = {SN_PATCH_L2, 0}, l1 = {SN_PATCH_L1, 0}, smooth = {SN_PATCH_SMOOTH_L1, 0.7};
static const double no_row[5] = {0, 0, 0, 0, 0};
#define FLAGS(rows, columns) {.n_dims = 2, .shape = {rows, columns}, .dtype = SN_U8, .fill = SN_FILL_INDEX, .scale = 3.0}
#define ROWS(n) {.n_dims = 1, .shape = {n}, .fill = SN_FILL_INDEX, .scale = 3.0}
static const sn_op_sample samples[] = {
    {.name = "l2_all", .attr = &l2, .n_in = 4, .in = {SN_S2B(7, 13), SN_S2(7, 13), SN_ABSENT, SN_ABSENT}},
    {.name = "l2_masked", .attr = &l2, .n_in = 4, .in = {SN_S2(11, 17), SN_S2(11, 17), FLAGS(11, 17), ROWS(11)}},
    {.name = "l2_valid", .attr = &l2, .n_in = 4, .in = {SN_S2B(37, 5), SN_S2(37, 5), FLAGS(37, 5), SN_ABSENT}},
    {.name = "l2_rows", .attr = &l2, .n_in = 4, .in = {SN_S2B(65, 3), SN_S2(65, 3), SN_ABSENT, ROWS(65)}},
    {.name = "l1_masked", .attr = &l1, .n_in = 4, .in = {SN_S2(9, 19), SN_S2(9, 19), FLAGS(9, 19), ROWS(9)}},
    {.name = "smooth_l1_masked", .attr = &smooth, .n_in = 4, .in = {SN_S2(9, 19), SN_S2(9, 19), FLAGS(9, 19), ROWS(9)}},
    {.name = "above_chunk", .attr = &l2, .n_in = 4, .in = {SN_S2B(3, 1031), SN_S2(3, 1031), FLAGS(3, 1031), SN_ABSENT}},
    {.name = "no_target", .attr = &l2, .n_in = 4,
     .in = {SN_S2(5, 3), SN_S2(5, 3), SN_ABSENT, {.n_dims = 1, .shape = {5}, .fill = SN_FILL_DATA, .data = no_row}},
     .why_zero = "no token has a target"},
    {.name = "no_rows", .attr = &l2, .n_in = 4, .in = {SN_S2(0, 3), SN_S2(0, 3), SN_ABSENT, SN_ABSENT}, .why_zero = "no rows"},
    {.name = NULL}};

const sn_op sn_op_masked_patch_loss = {
    .name = "masked_patch_loss",
    .summary = "weighted sum over tokens of the mean loss of their valid values; sum of the weights",
    .attr_size = sizeof(sn_masked_patch_loss_attr),
    .infer = infer,
    .flops = flops,
    .bytes = sn_bytes_of_call,
    .impls = impls,
    .grad_inputs = 1u,
    .unread_out = 3u,
    .constant_outputs = 2u,
    .samples = samples,
};

sn_status sn_masked_patch_loss(sn_tape *tape, sn_value *out[2], sn_value *pred, sn_value *target, sn_value *valid,
                               sn_value *weights, sn_patch_loss kind, double beta, sn_error *err) {
  sn_masked_patch_loss_attr attr = {.kind = kind, .beta = beta};
  sn_value *in[4] = {pred, target, valid, weights};
  return sn_tape_record(tape, &sn_op_masked_patch_loss, &attr, 4, in, 2, out, err);
}

sn_patch_loss sn_patch_loss_named(const char *name) {
  return strcmp(name, "l1") == 0 ? SN_PATCH_L1 : strcmp(name, "smooth_l1") == 0 ? SN_PATCH_SMOOTH_L1 : SN_PATCH_L2;
}
