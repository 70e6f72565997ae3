/* Stochastic depth (Huang et al., ECCV 2016), per sample: a residual branch is dropped for all rows of a sample at once.
 *
 *     y[t,c] = keep(sample of t) ? x[t,c] / (1 - p) : 0
 *
 * keep depends on (seed, SN_PURPOSE_DROP_PATH, epoch, sample_ids[t], part) alone: the first word of
 * sn_random_fork(sn_random_at(seed, purpose, epoch, sample_ids[t]), part); dropped where it is below round(p * 2^32).
 *
 * x [in] (T, C); y [out] shape and dtype of x. attr: 0 <= p < 1; part numbers the layer and place in it; sample_ids (T)
 * must live as long as the tape; n = T. Backward: the same mask, computed again. */
#ifndef SN_KERNELS_DROP_PATH_H
#define SN_KERNELS_DROP_PATH_H

#include "kernels/tape.h"

typedef struct sn_drop_path_attr {
  double p;
  uint64_t seed, epoch, part;
  const uint64_t *sample_ids;
  int64_t n;
} sn_drop_path_attr;

extern const sn_op sn_op_drop_path;
extern const sn_op_impl sn_drop_path_cpu, sn_drop_path_ref;

/* 1 / (1 - p) or 0 for row t. */
double sn_drop_path_factor(const sn_drop_path_attr *attr, int64_t t);

SN_MUST_CHECK sn_status sn_drop_path(sn_tape *tape, sn_value **y, sn_value *x, const sn_drop_path_attr *attr,
                                     sn_error *err);

#endif
