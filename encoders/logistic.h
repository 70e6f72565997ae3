/* L2-penalised logistic regression in float64, in scikit-learn's convention:
 *
 *   minimise  1/2 sum_k |w_k|^2 + C sum_i s_i loss(y_i, X_i w + b),   b free of penalty
 *
 * Two classes: one weight vector, loss = log(1 + exp(-t z)), t = +-1.  More: multinomial, loss = -log softmax(z)[y], b
 * centred so that its sum over classes is 0.  s_i = sample weight x class weight; "balanced" gives class k the weight
 * n / (n_classes present x n_k), n_k counted in rows.
 *
 * SOLVER.  Newton steps, each solved by conjugate gradients preconditioned with the Cholesky factors of the Hessian (of
 * its diagonal blocks, one per class, where it is large) at an earlier point, refreshed where that no longer helps; the line search is exact (safeguarded Newton on
 * the derivative along the step, which is convex).  With fewer rows than features the problem is first rotated into the
 * space of its rows (dense_f64.h), which changes nothing of the minimum.  Ends at a gradient 2-norm (thus also maximum
 * norm) of at most 1e-8, or where rounding of the sums allows no less: `gradient` says what was reached and `converged`
 * whether it is either.
 *
 * A class without training rows gets probability 0: its intercept would have no minimum. */
#ifndef SN_ENCODERS_LOGISTIC_H
#define SN_ENCODERS_LOGISTIC_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_logistic {
  int64_t n_features, n_classes;
  double *weights;  /* (n_classes, n_features); two classes: row 0 is -w/2, row 1 w/2, so that softmax gives the sigmoid */
  double *bias;     /* (n_classes); -inf for a class that training did not have */
  double gradient;  /* 2-norm at the end, of the objective above */
  int64_t iterations;
  bool converged;
} sn_logistic;

void sn_logistic_destroy(sn_logistic *model); /* accepts NULL */
/* probabilities (n, n_classes) [out] of rows x (n, n_features). */
void sn_logistic_probabilities(const sn_logistic *model, const double *x, int64_t n, double *probabilities);

/* One training set, solved for several C in turn, each from the last solution. */
typedef struct sn_logistic_problem sn_logistic_problem;

/* x (n, d) is copied. labels (n) in [0, n_classes). sample_weights (n) > 0, or NULL.
 * SN_E_ARGUMENT: fewer than two classes present, a label outside, a value that is not finite. */
SN_MUST_CHECK sn_status sn_logistic_problem_create(const double *x, int64_t n, int64_t d, const int32_t *labels,
                                                   int64_t n_classes, bool balanced, const double *sample_weights,
                                                   sn_logistic_problem **out, sn_error *err);
void sn_logistic_problem_destroy(sn_logistic_problem *problem); /* accepts NULL */
SN_MUST_CHECK sn_status sn_logistic_solve(sn_logistic_problem *problem, double C, sn_logistic **out, sn_error *err);

#endif
