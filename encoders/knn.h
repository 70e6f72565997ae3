/* k nearest neighbours by cosine similarity, as DINO votes (Caron et al., "Emerging properties in self-supervised vision
 * transformers", 2021, and its evaluation):
 *
 *   z = x / max(|x|, 1e-12);  s_ij = z_i . z_j;  w_ij = exp(s_ij / T) for the k training rows of largest s_ij
 *   score_ic = sum of w_ij over those neighbours j that have class c, divided by the sum over all k
 *
 * One label per row: the scores are shares of the votes and sum to 1; the class is the first of the largest, so that ties go
 * to the lowest index.  Several labels at once (hot): each label's share is its own.  Of equally similar training rows the
 * earlier one is the nearer.  The largest similarity is taken off before exp, which cancels in the share.
 * There are no parts of fixed number that the test rows are cut into: one test row is enough.
 *
 * Numerics: float64; similarities by sn_f64_dot; the result does not depend on the pool. */
#ifndef SN_ENCODERS_KNN_H
#define SN_ENCODERS_KNN_H

#include <stdint.h>

#include "core/pool.h"
#include "core/status.h"

#define SN_KNN_TEMPERATURE 0.07

typedef struct sn_knn_problem {
  const double *train, *test;  /* (n_train, n_features), (n_test, n_features); borrowed */
  int64_t n_train, n_test, n_features, n_classes;
  const int32_t *labels;       /* (n_train) in [0, n_classes), or NULL where hot is given */
  const uint8_t *hot;          /* (n_train, n_classes) 0 or 1 */
  const int64_t *k;            /* (n_k) each in [1, n_train] */
  int64_t n_k;
  double temperature;          /* T > 0 */
} sn_knn_problem;

/* scores (n_k, n_test, n_classes) [out]; one search serves every k.  pool NULL: on the caller's thread.
 * SN_E_ARGUMENT: k outside, a label outside, a value that is not finite, T not above 0. */
SN_MUST_CHECK sn_status sn_knn_scores(const sn_knn_problem *problem, sn_pool *pool, double *scores, sn_error *err);

#endif
