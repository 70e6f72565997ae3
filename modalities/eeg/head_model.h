/* Forward models on a sphere: what a current dipole in a head gives at electrodes and coils.
 *
 * All positions are in metres from the centre of the sphere; a dipole's moment is in A m.
 *
 * ELECTRIC, three shells (brain, skull, scalp) of radii r1 < r2 < R and conductivities s1, s2, s3 (S/m): exact series
 * (Rush and Driscoll, IEEE Trans. Biomed. Eng. 16 (1969) 15; de Munck and Peters, ibid. 40 (1993) 1166).  With b = |r0|
 * < r1, e = r0/b, u the direction of the electrode, c = u.e, P_n Legendre's polynomials:
 *   V(u) = 1/(4 pi s1 R^2) sum over n >= 1  (b/R)^(n-1) g_n [ n (q.e) P_n(c) + q.(u - c e) P_n'(c) ]
 * In each shell the n-th term varies as a (r/R)^n + c (r/R)^-(n+1).  No current leaves the scalp: at r = R, a : c =
 * n + 1 : n.  Going inwards, potential and radial current are continuous at each boundary, which gives a and c of the
 * next shell; g_n = (2n + 1)/c of the innermost.  (One conductivity: g_n = (2n + 1)/n.)  The sum ends where a term
 * can no longer reach 1e-12 of the whole, at n = 400 at the latest; sources may lie up to 0.9 R.
 * One shell has a closed form (Brody, Terry and Ideker, IEEE Trans. Biomed. Eng. 20 (1973) 141), with d = r - r0:
 *   V(r) = 1/(4 pi s) q.{ 2 d/|d|^3 + [ r + (r (r.r0) - R^2 r0) / (R^2 + R |d| - r.r0) ] / (R^2 |d|) }
 *
 * MAGNETIC, outside any spherically symmetric conductor (Sarvas, Phys. Med. Biol. 32 (1987) 11, eq. 25):
 *   B(r) = mu0/(4 pi F^2) [ F (q x r0) - ((q x r0).r) grad F ],  a = r - r0
 *   F = |a| (|a||r| + |r|^2 - r0.r),
 *   grad F = (|a|^2/|r| + a.r/|a| + 2|a| + 2|r|) r - (|a| + 2|r| + a.r/|a|) r0
 * A radial dipole gives none. */
#ifndef SN_MODALITIES_EEG_HEAD_MODEL_H
#define SN_MODALITIES_EEG_HEAD_MODEL_H

#include <stdint.h>

#include "core/status.h"

enum { SN_HEAD_TERMS = 400 };

typedef struct sn_head_model {
  double radius_m;             /* R */
  double conductivity;         /* s1 */
  double g[SN_HEAD_TERMS + 1]; /* g_n, n from 1 */
} sn_head_model;

/* radii of brain and skull relative to R: 0 < brain <= skull <= 1. SN_E_ARGUMENT otherwise, or for a value that is not
 * positive. Usual values: 0.87, 0.92; 0.33, 0.0066 (1/50), 0.33 S/m. */
SN_MUST_CHECK sn_status sn_head_model_make(sn_head_model *model, double radius_m, double brain, double skull,
                                           const double conductivity[3], sn_error *err);
/* Volts at the point of the surface in the direction of `electrode`, from a dipole inside the brain. */
double sn_head_potential(const sn_head_model *model, const double electrode[3], const double dipole[3],
                         const double moment[3]);
/* The closed form of one shell: volts at the point of the surface in the direction of `electrode`. */
double sn_sphere_potential(double radius_m, double conductivity, const double electrode[3], const double dipole[3],
                           const double moment[3]);
/* Tesla at r (outside). */
void sn_sphere_field(double b[3], const double r[3], const double dipole[3], const double moment[3]);

#endif
