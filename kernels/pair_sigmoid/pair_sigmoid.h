/* Sigmoid loss over all pairs of rows of two matrices (SigLIP: Zhai et al., ICCV 2023; objectives O9):
 *
 *     l[i,j] = t * (za[i] . zb[j]) + b,   t = scale * exp(log_scale)   (log_scale absent: t = scale; bias absent: b = 0)
 *     sum    = sum over i, j of |label[i,j]| * -log sigmoid(sign(label[i,j]) * l[i,j])
 *     total  = sum of |label|
 *
 * za        [in]  (na, d), zb [in] (nb, d), one floating type; they may be the same value (both gradients then add)
 * label     [in]  (na, nb) F32 or F64 (cpu: taken as fp32), no gradient.  Above 0: the pair matches; below 0: it does not; its
 *                 size is the weight (the source: 1 and -1); 0: the pair is left out, its logit has no gradient.
 *                 NaN and infinities are SN_E_ARGUMENT, naming the place.  Rows that are left out everywhere must still hold
 *                 finite numbers (their products are formed).
 * log_scale [in]  (1), optional, with gradient (the source starts at ln 10)
 * bias      [in]  (1), optional, with gradient (the source starts at -10)
 * sum, total [out] scalars, F64; the source's loss is sum / rows. total depends on no input that has a gradient
 * saved: t * za . zb, (na, nb), F32 (F64 when za is F64).
 *
 * Backward: dl = -dsum label sigmoid(-sign(label) l); dza = t dl zb, dzb = t dlᵀ za, dbias = sum dl,
 * dlog_scale = sum of dl (l - b).
 * Numerics (cpu): products in fp32 (kernels/gemm); -log sigmoid(x) = max(-x, 0) + log1p(exp(-|x|)) with a relative error below
 * 10^-6 at either end; rows joined in double from chunks of 1024. */
#ifndef SN_KERNELS_PAIR_SIGMOID_H
#define SN_KERNELS_PAIR_SIGMOID_H

#include "kernels/tape.h"

typedef struct sn_pair_sigmoid_attr {
  double scale; /* finite, above 0; 1 where log_scale says all */
} sn_pair_sigmoid_attr;

extern const sn_op sn_op_pair_sigmoid;
extern const sn_op_impl sn_pair_sigmoid_cpu, sn_pair_sigmoid_ref;

/* out[0] = sum, out[1] = total; log_scale and bias may be NULL. */
SN_MUST_CHECK sn_status sn_pair_sigmoid(sn_tape *tape, sn_value *out[2], sn_value *za, sn_value *zb, sn_value *label,
                                        sn_value *log_scale, sn_value *bias, double scale, sn_error *err);

/* For implementations: SN_E_ARGUMENT for the label at `place` (row-major index). */
sn_status sn_pair_sigmoid_bad_label(const sn_op_call *call, int64_t place, sn_error *err);

#endif
