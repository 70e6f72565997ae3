/* One step of AdamW with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019,
 * algorithm 2, the decay being lr * weight_decay). No gradient.
 *
 *     g  = grad_scale * grad
 *     p <- p * (1 - lr * weight_decay)
 *     m <- beta1 * m + (1 - beta1) * g
 *     v <- beta2 * v + (1 - beta2) * g * g
 *     p <- p - lr / (1 - beta1^step) * m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
 *
 * Inputs p, grad, m, v and outputs p, m, v have one shape and one type, F32 or F64 (state is never shorter, whatever the
 * products' type); an output may be the memory of its input, and is in sn_adamw. Without decay, pass weight_decay 0.
 * step counts from 1. grad_scale carries clipping.
 * Numerics: fp32 with the two bias corrections computed in double; F64 in double throughout. */
#ifndef SN_KERNELS_ADAMW_H
#define SN_KERNELS_ADAMW_H

#include "kernels/op.h"

typedef struct sn_adamw_attr {
  double lr, beta1, beta2, eps, weight_decay, grad_scale;
  int64_t step;
} sn_adamw_attr;

extern const sn_op sn_op_adamw;
extern const sn_op_impl sn_adamw_cpu, sn_adamw_cuda, sn_adamw_ref;

/* In place: p, m, v [in, out], grad [in]. SN_E_ARGUMENT when shapes or types differ or an attribute is out of range. */
SN_MUST_CHECK sn_status sn_adamw(sn_device *device, const sn_tensor *p, const sn_tensor *m, const sn_tensor *v,
                                 const sn_tensor *grad, const sn_adamw_attr *attr, sn_error *err);

#endif
