/* y = x in another floating type (round to nearest even); any shape. Backward: dx = dy in x's type. */
#ifndef SN_KERNELS_CAST_H
#define SN_KERNELS_CAST_H

#include "kernels/tape.h"

typedef struct sn_cast_attr { sn_dtype out_dtype; } sn_cast_attr;

extern const sn_op sn_op_cast;
extern const sn_op_impl sn_cast_cpu, sn_cast_ref;

SN_MUST_CHECK sn_status sn_cast(sn_tape *tape, sn_value **y, sn_value *x, sn_dtype dtype, sn_error *err);

#endif
