/* What elementwise losses of (value, target, optional mask) share: the shape rule and reading one element. */
#ifndef SN_KERNELS_PAIR_LOSS_H
#define SN_KERNELS_PAIR_LOSS_H

#include "kernels/op_rules.h"

static inline bool sn_pair_counts(const sn_op_call *call, int64_t i) {
  return !call->in[2].data || ((const uint8_t *)call->in[2].data)[i] != 0;
}

static inline sn_status sn_pair_loss_rule(sn_op_call *call, sn_error *err) {
  SN_TRY(sn_rule_float(call, 0, "x", err));
  SN_TRY(sn_rule_float(call, 1, "target", err));
  SN_TRY(sn_rule_same_shape(call, 1, "target", 0, "x", err));
  if (sn_is_present(&call->in[2])) {
    SN_TRY(sn_rule_dtype(call, 2, "mask", SN_U8, err));
    SN_TRY(sn_rule_same_shape(call, 2, "mask", 0, "x", err));
  }
  call->n_out = 2;
  call->n_saved = 0;
  sn_shape_scalar(&call->out[0], SN_F64);
  sn_shape_scalar(&call->out[1], SN_F64);
  return SN_OK;
}

#endif
