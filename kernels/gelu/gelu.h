/* GELU (Hendrycks and Gimpel, 2016).
 *
 *     SN_GELU_ERF    y = x * Phi(x),  Phi(x) = (1 + erf(x / sqrt 2)) / 2
 *     SN_GELU_TANH   y = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))       (eq. of section 2)
 *
 * x  [in]  any shape: the pre-activation, which backward reads again
 * y  [out] same shape and dtype
 * Nothing is saved.
 *
 * Numerics (cpu): fp32; Phi within 1e-7 (kernels/simd_math.h), so y within 1.6e-7 * |x| of the float64 value before it is
 * rounded to y's type; |x| > 13 is treated as 13 inside Phi. */
#ifndef SN_KERNELS_GELU_H
#define SN_KERNELS_GELU_H

#include "kernels/tape.h"

typedef enum sn_gelu_kind { SN_GELU_ERF, SN_GELU_TANH } sn_gelu_kind;

typedef struct sn_gelu_attr { sn_gelu_kind kind; } sn_gelu_attr;

extern const sn_op sn_op_gelu;
extern const sn_op_impl sn_gelu_cpu, sn_gelu_cuda, sn_gelu_ref;

SN_MUST_CHECK sn_status sn_gelu(sn_tape *tape, sn_value **y, sn_value *x, sn_gelu_kind kind, sn_error *err);

#endif
