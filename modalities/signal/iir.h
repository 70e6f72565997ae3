/* Zero-phase Butterworth filters as second-order sections (the `butterworth` option; order 4 by default).
 *
 * Design: analogue Butterworth prototype of the given order, band edges prewarped (2 fs tan(pi f / fs)), bilinear
 * transform; a band-pass has twice the order.  -3 dB at the edges for one pass, -6 dB after both.
 * Application: the signal is extended by odd reflection about its end samples by min(support, N-1) samples, run forward
 * with the sections' steady state times the first sample as initial state, then backward in the same way
 * (forward-backward filtering, Gustafsson, IEEE Trans. Signal Processing 44 (1996), with that initial state).
 * support: where the slowest pole has decayed to 1e-12; a stretch that begins `support` samples earlier or later
 * differs by less than 1e-9 of the signal's largest value. */
#ifndef SN_MODALITIES_SIGNAL_IIR_H
#define SN_MODALITIES_SIGNAL_IIR_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_section { double b[3], a[3]; } sn_section; /* a[0] = 1 */

enum { SN_IIR_MAX_SECTIONS = 16 };

typedef struct sn_iir {
  int64_t n_sections;
  sn_section sections[SN_IIR_MAX_SECTIONS];
  int64_t support;
} sn_iir;

/* low_hz, high_hz: 0 for none, not both. order 1..8 (band-pass: sections = order). */
SN_MUST_CHECK sn_status sn_iir_butterworth(sn_iir *out, int64_t order, double rate_hz, double low_hz, double high_hz,
                                           sn_error *err);
/* y (n) [out] = zero-phase filtered x (n); x and y may be the same array. pad -1: min(support, n-1). */
SN_MUST_CHECK sn_status sn_iir_apply(const sn_iir *iir, const double *x, int64_t n, int64_t pad, double *y,
                                     sn_error *err);

#endif
