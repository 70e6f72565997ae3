/* Exponential moving average: e <- e + (1 - momentum) * (x - e). No gradient.
 *
 * e and out: one shape and type, F32 or F64 (never shorter: at momentum 0.9999 bf16 would lose every update); out may be
 * e's memory, and is in sn_ema_update. x: any floating type, same shape. 0 <= momentum <= 1.
 * Numerics (cpu, F32): computed in fp32, rounded once more when stored: 10,000 steps at momentum 0.9999 lie within
 * 2e-5 of the exact value. */
#ifndef SN_KERNELS_EMA_UPDATE_H
#define SN_KERNELS_EMA_UPDATE_H

#include "kernels/op.h"

typedef struct sn_ema_update_attr { double momentum; } sn_ema_update_attr;

extern const sn_op sn_op_ema_update;
extern const sn_op_impl sn_ema_update_cpu, sn_ema_update_ref;

/* In place: e [in, out]. */
SN_MUST_CHECK sn_status sn_ema_update(sn_device *device, const sn_tensor *e, const sn_tensor *x, double momentum,
                                      sn_error *err);

#endif
