/* What the implementations of rope share: the attributes with their defaults filled in, and the scratch of angles. */
#ifndef SN_KERNELS_ROPE_IMPL_H
#define SN_KERNELS_ROPE_IMPL_H

#include "kernels/rope/rope.h"

/* attr with `base` and `axis_channels` resolved. */
sn_rope_attr sn_rope_resolve(const sn_rope_attr *attr);

extern const sn_op_impl sn_rope_ref, sn_rope_cpu;

#endif
