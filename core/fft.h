/* Real discrete Fourier transform in float64, any length.
 *
 * FFTW (FFTW_ESTIMATE only, plans under one lock) where built with it; -DSONDE_FFTW=OFF uses a transform of our own
 * (mixed radix, Bluestein for large primes), which is also the reference in the tests. Unnormalised in both directions.
 *
 * The transform of our own: Stockham's self-sorting form of the mixed-radix algorithm (Temperton, J. Comput. Phys. 52,
 * 1983); an even n as a complex transform of half the length (Cooley, Lewis, Welch, 1970); a prime factor above 31 by
 * Bluestein's chirp (IEEE Trans. AU-18, 1970). Error at most a few 1e-16 of the spectrum's largest value times log n.
 */
#ifndef SN_CORE_FFT_H
#define SN_CORE_FFT_H

#include <complex.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_fft sn_fft;

/* n in [1, 2^40]. The handle is immutable after creation and may be used by several threads at once. */
SN_MUST_CHECK sn_status sn_fft_create(int64_t n, sn_fft **out, sn_error *err);
void sn_fft_destroy(sn_fft *fft);
/* x and X must not overlap; no alignment is asked for. SN_E_MEMORY is the only error.
 * X[k] = sum_j x[j] exp(-2 pi i j k / n), k = 0..n/2.  x (n), X (n/2+1) [out]. */
SN_MUST_CHECK sn_status sn_fft_forward(const sn_fft *fft, const double *x, double complex *X, sn_error *err);
/* x[j] = sum_k X[k] exp(+2 pi i j k / n) with the Hermitian half given. Not divided by n. x (n) [out].
 * The imaginary parts of X[0] and, for even n, of X[n/2] are taken as 0, as a real x demands. */
SN_MUST_CHECK sn_status sn_fft_inverse(const sn_fft *fft, const double complex *X, double *x, sn_error *err);

/* The transform of our own, always built. */
SN_MUST_CHECK sn_status sn_fft_create_own(int64_t n, sn_fft **out, sn_error *err);
const char *sn_fft_backend(const sn_fft *fft); /* "fftw" or "own" */

#endif
