/* Resampling by a ratio of integers, up/down.
 *
 * Polyphase: with m = max(up, down), half length L = 10 m, the window-sinc low-pass h[i], i = 0..2L, of cut-off 1/m (of
 * the Nyquist frequency of the up-sampled signal), Kaiser window beta = 5, scaled to unit DC gain and then by up;
 *   y[k] = sum_n x[n] h[k down - n up + L],   k = 0 .. ceil(N up / down) - 1,   x = 0 outside [0,N).
 * Sample k stands at the time of native sample k down / up.  up = down = 1 copies.
 *
 * Ratios: (rate_out / rate_in) of the integer rates, reduced.  max(up, down) > 10,000 is SN_E_ARGUMENT unless a
 * relative rate tolerance > 0 is given: then the nearest fraction with both parts at most 10,000 is taken if it lies
 * within the tolerance, and the real output rate, rate_in up / down, is what must be written down.
 *
 * FFT (option): the spectrum of the whole signal is cut or zero-padded, the unpaired Nyquist term halved or doubled as
 * needed; it treats the signal as periodic and needs the whole segment. The signal is first extended by odd reflection
 * to a multiple of down, so that the grid is the same. */
#ifndef SN_MODALITIES_SIGNAL_RESAMPLE_H
#define SN_MODALITIES_SIGNAL_RESAMPLE_H

#include <stdint.h>

#include "core/status.h"

enum { SN_RESAMPLE_MOST = 10000 };

typedef struct sn_ratio { int64_t up, down; } sn_ratio;

/* rates as fractions num/den (> 0). tolerance: largest relative difference of the rate, 0: exact only. */
SN_MUST_CHECK sn_status sn_resample_ratio(sn_ratio *out, int64_t in_num, int64_t in_den, int64_t out_num,
                                          int64_t out_den, double tolerance, sn_error *err);

typedef struct sn_resampler sn_resampler; /* immutable: any number of threads */
SN_MUST_CHECK sn_status sn_resampler_create(sn_ratio ratio, sn_resampler **out, sn_error *err);
void sn_resampler_destroy(sn_resampler *resampler); /* accepts NULL */

/* ceil(n up / down): length of the resampled signal. */
int64_t sn_resampled_length(sn_ratio ratio, int64_t n);

/* Native samples [*first_in, *last_in] (inclusive, may reach outside the signal) that outputs [first, first+count) use.
 * */
void sn_resampler_needs(const sn_resampler *resampler, int64_t first, int64_t count, int64_t *first_in,
                        int64_t *last_in);

/* Outputs [first, first+count) into y [out]; x (n_x) are native samples [x_first, x_first+n_x), everything else is 0.
 * */
SN_MUST_CHECK sn_status sn_resampler_apply(const sn_resampler *resampler, const double *x, int64_t x_first, int64_t n_x,
                                           int64_t first, int64_t count, double *y, sn_error *err);

/* x (n) into y (sn_resampled_length) [out]: by FFT. */
SN_MUST_CHECK sn_status sn_resample_fft(sn_ratio ratio, const double *x, int64_t n, double *y, sn_error *err);

#endif
