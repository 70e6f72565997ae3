/* Spectral content of a patch: log amplitudes of its Fourier transform, or of a short-time one.
 *
 * The patch x[0..P-1] is cut into F = 1 + floor((P - L) / hop) frames of L samples (L = P, F = 1: the transform of the whole
 * patch).  For a frame beginning at sample s, with V its valid samples:
 *     m      = mean over V of x                                (the frame's own mean: bin 0 carries nothing and is left out)
 *     u[n]   = w[n] (x[s + n] - m) where valid, else 0
 *     w[n]   = 1/2 - 1/2 cos(2 pi n / L)   (periodic Hann), or 1
 *     A[k]   = c |sum_n u[n] exp(-2 pi i k n / L)| / sum over V of w[n],   c = 2, but 1 at k = L/2
 *     y[k]   = ln(A[k] + floor)
 * so that a sinusoid of amplitude a on bin k, all valid, has A[k] = a.  Kept are the bins k >= 1 with
 * low_hz <= k rate / L <= high_hz (high_hz 0: up to half the rate).  The output of a patch is (F, bins), frequency fastest.
 *
 * per_patch: y becomes (y - mean) / sqrt(var + 1e-6) over the patch's valid values, variance with divisor n - 1; a patch
 * whose variance is below 1e-8 has no output (as MAE targets, signals S3).
 * A frame with fewer than half of its samples valid has no output: zeros, valid 0.
 *
 * All in float64, rounded once.  Checked against numpy and scipy (tests/golden/make_spectral.py). */
#ifndef SN_MODALITIES_SIGNAL_SPECTRAL_H
#define SN_MODALITIES_SIGNAL_SPECTRAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_spectral_options {
  int64_t patch_size;     /* P */
  int64_t frame, hop;     /* L, hop in samples; frame P: one frame */
  double rate_hz;
  double low_hz, high_hz;
  double floor;           /* >= 0, in the unit of the patch; with 0 an amplitude of exactly 0 is invalid */
  bool hann, per_patch;
} sn_spectral_options;

typedef struct sn_spectral sn_spectral; /* a plan; read by any number of threads */

/* SN_E_ARGUMENT: a frame longer than the patch or shorter than 2, a hop below 1, no bin between low_hz and high_hz. */
SN_MUST_CHECK sn_status sn_spectral_create(const sn_spectral_options *options, sn_spectral **out, sn_error *err);
void sn_spectral_destroy(sn_spectral *spectral); /* accepts NULL */

int64_t sn_spectral_frames(const sn_spectral *spectral);
int64_t sn_spectral_bins(const sn_spectral *spectral);
int64_t sn_spectral_width(const sn_spectral *spectral);             /* frames x bins */
double sn_spectral_frequency(const sn_spectral *spectral, int64_t bin); /* Hz */

/* n patches (n, P) with valid (n, P) or NULL -> values (n, width), values_valid (n, width) [out]. SN_E_MEMORY is the only
 * error. */
SN_MUST_CHECK sn_status sn_spectral_patches(const sn_spectral *spectral, float *values, uint8_t *values_valid,
                                            const float *patches, const uint8_t *valid, int64_t n, sn_error *err);

#endif
