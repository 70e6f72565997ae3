/* Fourier features of (x, y, z, t): what fourier4d and reve2025 share.
 *
 *   phase_k = sum over axes a of k_a w_a q_a;  row = [cos phase_0 .. cos phase_{d/2-1} | sin phase_0 .. sin phase_{d/2-1}]
 *
 * with k in {0..n-1}^4.  Cosines and sines of the axes are computed in float64 and multiplied, so that a row costs 4n of
 * them instead of d. */
#ifndef SN_ENCODERS_POSITION_FOURIER_H
#define SN_ENCODERS_POSITION_FOURIER_H

#include "encoders/position.h"

enum { SN_FOURIER_MOST = 16 }; /* frequencies of an axis */

typedef struct sn_fourier {
  int64_t n;             /* frequencies per axis */
  int64_t n_phases;      /* d/2 */
  uint8_t (*k)[4];       /* (n_phases) kx, ky, kz, kt */
} sn_fourier;

/* by_norm: the d/2 phases of smallest kx^2+ky^2+kz^2+kt^2, ties by index (kt fastest); else the first d/2 by index.
 * n 0: the smallest with n^4 >= d/2. SN_E_ARGUMENT, naming `name`, for an odd width or n^4 < d/2. */
SN_MUST_CHECK sn_status sn_fourier_create(sn_fourier *out, const char *name, int64_t width, int64_t n, bool by_norm,
                                          sn_error *err);
void sn_fourier_free(sn_fourier *fourier);
/* angles[a] = w_a q_a: the phase of one unit of k on axis a. row (2 n_phases) [out]. */
void sn_fourier_row(const sn_fourier *fourier, const double angles[4], double *row);

#endif
