/* Dense float64 linear algebra for the closed-form learners: small, row-major, in one fixed order of operations.
 *
 * Sums run in eight interleaved lanes that are added at the end in a fixed order, without fused multiply-add, so that every
 * instruction set gives the same bits. */
#ifndef SN_ENCODERS_DENSE_F64_H
#define SN_ENCODERS_DENSE_F64_H

#include <stdbool.h>
#include <stdint.h>

double sn_f64_dot(const double *a, const double *b, int64_t n);
void sn_f64_axpy(double *y, double alpha, const double *x, int64_t n); /* y [acc] += alpha x */

/* h (m, m) [acc], lower triangle only: h += sum_i weights[i] x_i x_i^T over the rows of x (n, m). */
void sn_f64_gram(double *h, const double *x, const double *weights, int64_t n, int64_t m);

/* a (m, m), lower triangle in place: a = L L^T. false when it is not positive definite (a is then undefined). */
bool sn_f64_cholesky(double *a, int64_t m);
/* x [in/out] = (L L^T)^-1 x */
void sn_f64_cholesky_solve(const double *l, int64_t m, double *x);

/* LQ factorisation by Householder reflections, n <= d: x (n, d) = [Z 0] Q with Z (n, n) lower triangular and Q orthogonal.
 * x [in/out] keeps the reflections; z (n, n) [out]; tau (n) [out]. A function of rows x v that is penalised by |v|^2 alone has
 * the same minimum over Z, so that a problem with more features than rows shrinks to n features. */
void sn_f64_lq(double *x, double *z, double *tau, int64_t n, int64_t d);
/* w (d) [out] = Q^T [v; 0], v (n): back to the features of x. */
void sn_f64_lq_back(double *w, const double *x, const double *tau, const double *v, int64_t n, int64_t d);

#endif
