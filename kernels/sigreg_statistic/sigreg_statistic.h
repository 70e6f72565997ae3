/* Sketched isotropic Gaussian regularisation of one branch (SIGReg of LeJEPA; objectives O11, O20): the characteristic function
 * of the rows, seen along random directions, against that of N(0, 1).
 *
 *     p[i,s]  = z[i] . a_s                       a_s: unit vectors, s = 0 .. n_slices - 1
 *     t_k     = k dt,  dt = t_max / (n_knots - 1),  k = 0 .. n_knots - 1
 *     phi_k   = exp(-t_k^2 / 2)
 *     w_k     = phi_k * (dt at k = 0 and at the last k, else 2 dt)     (trapezoid over [-t_max, t_max], even integrand)
 *     err_sk  = (mean_i cos(t_k p[i,s]) - phi_k)^2 + (mean_i sin(t_k p[i,s]))^2
 *     y       = mean over s of  n * (sum over k of w_k err_sk)
 *
 * The means over i run over the n used rows, before squaring; the mean over s is the only mean taken afterwards: y grows with n
 * where the rows are not Gaussian and stays near a constant where they are.  A caller with several views averages their y.
 *
 * z [in] (n rows, d); used [in] (n) U8, optional: rows with 0 take no part, they may hold anything, and their dz is 0.
 * y [out] scalar, F64. No used row: y = 0.
 * a_s: d normal deviates of the stream (seed, SN_PURPOSE_SLICE, epoch = step, sample id = s), divided by their length in
 * double: the same on every rank and for every view of a step, and a new set each step.
 * saved: directions (n_slices, d), projections (rows, n_slices), and per slice (mean cos - phi, mean sin) of each knot; F32
 * (F64 when z is F64).
 * Backward: dz[i] = dy * 2 / n_slices * sum over s, k of w_k t_k (S_sk cos(t_k p) - (C_sk - phi_k) sin(t_k p)) a_s.
 * Numerics (cpu): projections in fp32 (kernels/gemm); cosines, sines and means in double, the knots' by angle addition from
 * those of dt p.  Good for |p dt| < 10^6. */
#ifndef SN_KERNELS_SIGREG_STATISTIC_H
#define SN_KERNELS_SIGREG_STATISTIC_H

#include "kernels/tape.h"

enum { SN_SIGREG_MAX_KNOTS = 64 };

typedef struct sn_sigreg_statistic_attr {
  uint64_t seed, step;
  int64_t n_slices; /* >= 1; the source: 256 to 1024 */
  int64_t n_knots;  /* 2 .. SN_SIGREG_MAX_KNOTS; the source: 17 */
  double t_max;     /* finite, above 0; the source: 3 */
} sn_sigreg_statistic_attr;

extern const sn_op sn_op_sigreg_statistic;
extern const sn_op_impl sn_sigreg_statistic_cpu, sn_sigreg_statistic_ref;

/* used may be NULL. */
SN_MUST_CHECK sn_status sn_sigreg_statistic(sn_tape *tape, sn_value **y, sn_value *z, sn_value *used,
                                            const sn_sigreg_statistic_attr *attr, sn_error *err);

/* Direction `slice`: d values. */
void sn_sigreg_direction(const sn_sigreg_statistic_attr *attr, int64_t slice, int64_t d, double *a);
/* Knot k: t, phi and weight w. */
typedef struct sn_sigreg_knot {
  double t, phi, weight;
} sn_sigreg_knot;
sn_sigreg_knot sn_sigreg_knot_of(const sn_sigreg_statistic_attr *attr, int64_t k);

#endif
