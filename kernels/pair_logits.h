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

/* cpu: what a block of SN_ROW_BLOCK rows leaves: two sums, and the place of a value of `pairs` that is not usable, or -1. */
typedef struct sn_pair_block {
  double first, second;
  int64_t bad;
} sn_pair_block;

/* cpu: a call laid out in its scratch. */
typedef struct sn_pair_work {
  const sn_op_call *call;
  sn_pair_sizes s;
  int64_t n_blocks;
  sn_pair_block *blocks; /* (n_blocks) */
  float *logits;         /* (na, nb) saved[0], or in the scratch where nothing is saved */
  float *ddots;          /* (na, nb) */
  void *panels;          /* of the products */
  double t;
} sn_pair_work;

int64_t sn_pair_scratch(const sn_device *device, const sn_op_call *call, bool backward);
sn_pair_work sn_pair_work_of(const sn_op_call *call, double scale);
/* Up to n of the pairs from place `at` on as F32: where they stand, or in buffer. */
const float *sn_pair_values(const sn_tensor *pairs, int64_t at, int64_t n, float *buffer);
/* logits [out] = za zbᵀ. */
void sn_pair_dots(const sn_device *device, const sn_pair_work *work);
/* dza and dzb where wanted from ddots = d(loss)/d(dots). */
void sn_pair_gradient(const sn_device *device, const sn_pair_work *work);
/* Sums over the blocks in their order; *bad the first place that is not usable, or -1. */
void sn_pair_join(const sn_pair_work *work, double *first, double *second, int64_t *bad);
/* Work of a call, for sn_run_blocks. */
static inline double sn_pair_cost(const sn_pair_work *work) { return 12.0 * (double)work->s.na * (double)work->s.nb; }

#endif
