/* y = factor * x; any shape, y of x's shape and dtype. Backward: dx = factor * dy. */
#ifndef SN_KERNELS_SCALE_H
#define SN_KERNELS_SCALE_H

#include "kernels/tape.h"

typedef struct sn_scale_attr { double factor; } sn_scale_attr;

extern const sn_op sn_op_scale;
extern const sn_op_impl sn_scale_cpu, sn_scale_ref;

SN_MUST_CHECK sn_status sn_scale(sn_tape *tape, sn_value **y, sn_value *x, double factor, sn_error *err);

#endif
