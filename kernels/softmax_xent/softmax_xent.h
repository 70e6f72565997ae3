/* Cross-entropy of a softmax, as a sum and the weight to divide it by.
 *
 *     logp[b,k] = x[b,k] - log sum_j exp(x[b,j])
 *     loss[b]   = (1 - s) * w[y] * -logp[b,y] + s/K * sum_k w[k] * -logp[b,k],   y = labels[b], s = label smoothing
 *     sum       = sum over b with labels[b] != -1 of loss[b];   weight = sum over the same of w[labels[b]]
 *
 * (PyTorch's definition: its mean is sum / weight.) Class weights absent: all 1.
 * weight_rows: w[y] in the place of w[k], so that a row's whole loss has the weight of its label. With unequal weights and
 * smoothing the definition above draws every row to the heavy classes, however sure its label is.
 *
 * logits       [in]  (B, K) any floating type, K >= 1
 * labels       attr  (B) int32 in [-1, K), -1 ignored: SN_E_ARGUMENT otherwise, naming the place; n = B
 * class_weight attr  (K) float, each >= 0 and finite, or NULL
 * sum, weight  [out] scalars, F64; saved: log-sum-exp (B), F32 (F64 when logits are F64)
 *
 * Backward: dlogits = dsum * (W p - w[k] t[k]), t the smoothed target, W = sum_k w[k] t[k] (w[y] for w[k] with weight_rows);
 * 0 for ignored rows.
 * Numerics (cpu): the maximum is taken out first; exponentials in fp32 within 1.5e-7, chunks of 1024 joined in double. */
#ifndef SN_KERNELS_SOFTMAX_XENT_H
#define SN_KERNELS_SOFTMAX_XENT_H

#include "kernels/tape.h"

typedef struct sn_softmax_xent_attr {
  const int32_t *labels;
  int64_t n;
  const float *class_weight;
  double label_smoothing;
  bool weight_rows;
} sn_softmax_xent_attr;

extern const sn_op sn_op_softmax_xent;
extern const sn_op_impl sn_softmax_xent_cpu, sn_softmax_xent_ref;

/* SN_E_ARGUMENT for labels or weights out of range: shared by the implementations. */
SN_MUST_CHECK sn_status sn_softmax_xent_check(const sn_op_call *call, sn_error *err);
/* w[k] t[k] and their sum over k for a label. */
static inline double sn_softmax_xent_weight(const sn_softmax_xent_attr *a, int64_t k) {
  return a->class_weight ? (double)a->class_weight[k] : 1.0;
}
/* Weight of the target of class k in a row with this label. */
static inline double sn_softmax_xent_target_weight(const sn_softmax_xent_attr *a, int32_t label, int64_t k) {
  return sn_softmax_xent_weight(a, a->weight_rows ? label : k);
}
double sn_softmax_xent_target_sum(const sn_softmax_xent_attr *attr, int32_t label, int64_t n_classes);

/* out[0] = sum, out[1] = weight. */
SN_MUST_CHECK sn_status sn_softmax_xent(sn_tape *tape, sn_value *out[2], sn_value *logits,
                                        const sn_softmax_xent_attr *attr, sn_error *err);

#endif
