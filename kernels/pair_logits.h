/* Logits of all pairs of rows of two matrices, and the way back: what pair_contrast and pair_sigmoid share.
 *
 *     l[i,j] = t * (za[i] . zb[j]) + b,   t = scale * exp(s)
 *
 * Inputs of such an op: 0 za (na, d), 1 zb (nb, d) of one floating type, 2 pairs (na, nb) F32 or F64 without gradient,
 * 3 s (1) optional, 4 b (1) optional. */
#ifndef SN_KERNELS_PAIR_LOGITS_H
#define SN_KERNELS_PAIR_LOGITS_H

#include "kernels/op_rules.h"

typedef struct sn_pair_sizes {
  int64_t na, nb, d;
} sn_pair_sizes;

static inline sn_pair_sizes sn_pair_sizes_of(const sn_op_call *call) {
  return (sn_pair_sizes){call->in[0].shape[0], call->in[1].shape[0], call->in[0].shape[1]};
}

/* Checks inputs 0 to 3, and 4 where with_bias; `pairs` names input 2. */
SN_MUST_CHECK sn_status sn_pair_rule(const sn_op_call *call, double scale, const char *pairs, bool with_bias, sn_error *err);

double sn_pair_scale(const sn_op_call *call, double scale); /* t, read from input 3 */
double sn_pair_flops(const sn_op_call *call, bool backward);

/* supports() of the fast implementations: rows, s and b F32 or BF16; pairs may be F64. */
bool sn_pair_supports(const sn_device *device, const sn_op_call *call, const char **why);

/* References: za[i] . zb[j], in double. */
double sn_pair_ref_dot(const sn_op_call *call, int64_t i, int64_t j);
/* dza and dzb where wanted, from dot_gradient(user, i, j) = d(loss) / d(za[i] . zb[j]). */
void sn_pair_ref_gradient(const sn_op_call *call, double (*dot_gradient)(const void *user, int64_t i, int64_t j),
                          const void *user);

/* cpu: dots (na, nb) F32 [out] = za zbᵀ; scratch of sn_pair_product_bytes. */
int64_t sn_pair_product_bytes(const sn_device *device, const sn_op_call *call);
void sn_pair_dots(const sn_device *device, const sn_op_call *call, float *dots, void *scratch);
/* cpu: dza and dzb where wanted from ddots (na, nb) F32 = d(loss)/d(dots). */
void sn_pair_gradient(const sn_device *device, const sn_op_call *call, const float *ddots, void *scratch);

#endif
