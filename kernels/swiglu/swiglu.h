/* SwiGLU (Shazeer, "GLU variants improve transformer", 2020, eq. 5, without the products).
 *
 *     y[t,f] = silu(x[t,f]) * x[t, F + f],   silu(a) = a / (1 + exp(-a))
 *
 * x [in] (..., 2F): gate then value; y [out] (..., F), x's dtype. Backward reads x again; nothing is saved.
 * Numerics (cpu): fp32, the exponential within 1.5e-7 relative (kernels/simd_math.h). */
#ifndef SN_KERNELS_SWIGLU_H
#define SN_KERNELS_SWIGLU_H

#include "kernels/tape.h"

extern const sn_op sn_op_swiglu;
extern const sn_op_impl sn_swiglu_cpu, sn_swiglu_ref;

SN_MUST_CHECK sn_status sn_swiglu(sn_tape *tape, sn_value **y, sn_value *x, sn_error *err);

#endif
