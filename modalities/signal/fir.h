/* Zero-phase FIR filters: Hamming-window sinc, designed and applied exactly as stated here.
 *
 * A low-pass of length M (odd), cut-off c (Hz, its -6 dB point), rate fs:
 *   w[i] = 0.54 - 0.46 cos(2 pi i / (M-1)),  g[i] = w[i] sinc(2 c/fs (i - (M-1)/2)),  h = g / sum(g)     (unit DC gain)
 * An edge with transition width tr (Hz) is one such low-pass of M = round(3.3 fs / tr) (ties to even), made odd by
 * adding one, with its cut-off in the middle of the transition.
 *
 *   lower pass edge l:  l_t = min(max(0.25 l, 2), l)          cut-off l - l_t/2
 *   upper pass edge h:  h_t = min(max(0.25 h, 2), fs/2 - h)   cut-off h + h_t/2
 *   band-pass  = lowpass(h) - lowpass(l);  high-pass = delta - lowpass(l);  low-pass = lowpass(h)
 *   notch at f = delta - lowpass(f + f/400 + 0.25) + lowpass(f - f/400 - 0.25), both transitions 0.5 Hz
 * each part centred in the total length ceil(3.3 fs / smallest transition), made odd by adding one.  A band-pass with a
 * notch is one kernel: the convolution of the two.
 *
 * Application: y[n] = sum_k h[k] e[n + (M-1)/2 - k], where e is x inside [0,N), its odd reflection about the end
 * samples (2 x[0] - x[-n], 2 x[N-1] - x[2N-2-n]) for the N-1 samples on either side, and 0 beyond.  Float64 throughout;
 * by direct sums or by FFT blocks (overlap-save), whichever is cheaper, equal within 1e-12 of the largest |x|.
 *
 * Source: windowed-sinc design as in Oppenheim and Schafer, Discrete-Time Signal Processing, ch. 7; the transition
 * widths and the factor 3.3 are those of Widmann, Schroeger and Maess, J. Neurosci. Methods 250 (2015) for the Hamming
 * window. */
#ifndef SN_MODALITIES_SIGNAL_FIR_H
#define SN_MODALITIES_SIGNAL_FIR_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_fir sn_fir;

typedef struct sn_fir_spec {
  double rate_hz;
  double low_hz, high_hz; /* pass edges; 0: no such edge */
  double notch_hz;        /* 0: none */
} sn_fir_spec;

/* SN_E_ARGUMENT: a rate or edge that is not finite or negative, high >= rate/2, low >= high,
 * notch + notch/400 + 0.5 >= rate/2, no edge and no notch, or a length over 2^24. */
SN_MUST_CHECK sn_status sn_fir_create(const sn_fir_spec *spec, sn_fir **out, sn_error *err);
/* A kernel given by the caller: taps (n), n odd, centred. Copied. */
SN_MUST_CHECK sn_status sn_fir_create_taps(const double *taps, int64_t n, sn_fir **out, sn_error *err);
void sn_fir_destroy(sn_fir *fir); /* accepts NULL */

int64_t sn_fir_length(const sn_fir *fir);       /* M, odd */
int64_t sn_fir_support(const sn_fir *fir);      /* (M-1)/2 samples on either side */
const double *sn_fir_taps(const sn_fir *fir);   /* (M), owned by fir */

/* Samples [first, first+count) of the filtered signal x (n) [in] into y (count) [out].  The handle may be used by
 * several threads at once (plans are cached under a lock).  y must not overlap x. */
SN_MUST_CHECK sn_status sn_fir_apply(const sn_fir *fir, const double *x, int64_t n, int64_t first, int64_t count,
                                     double *y, sn_error *err);
/* The same by direct sums only: the reference. */
SN_MUST_CHECK sn_status sn_fir_apply_direct(const sn_fir *fir, const double *x, int64_t n, int64_t first, int64_t count,
                                            double *y, sn_error *err);
/* Valid part of a convolution with no padding: e (count + M - 1) is the signal already extended, y (count) [out]. */
SN_MUST_CHECK sn_status sn_fir_convolve(const sn_fir *fir, const double *e, int64_t count, double *y, sn_error *err);

/* e[i] = extension of x (n) at sample first + i, i < count, as defined above: odd reflection, zeros beyond. */
void sn_extend_odd(const double *x, int64_t n, int64_t first, int64_t count, double *e);

#endif
