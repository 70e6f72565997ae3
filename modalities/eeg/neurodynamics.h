/* Statistics of brain dynamics of a window, targets of an auxiliary objective (specs S10).  All in float64.
 *
 * x is a window of N samples of one channel, y the same freed of its least-squares line.  Bands: delta 1-4, theta 4-8,
 * alpha 8-13, beta 13-30, gamma 30-45 Hz; a bin belongs to the band with low <= f < high.
 *
 * PER CHANNEL, 14 numbers in this order
 *   log_power      (5) log10(P_b + 1e-12): Welch of band_power.h with pieces of 2 s
 *   relative_power (5) P_b / sum over the five bands
 *   modulation     (1) Tort, Komorowski, Eichenbaum, Kopell, J. Neurophysiol. 104 (2010) 1195: phase of 4-8 Hz,
 *                      amplitude of 30-45 Hz, 18 bins of 20 degrees from -180; p_j = mean amplitude in bin j over the
 * sum of these means; MI = (ln 18 + sum p_j ln p_j) / ln 18 permutation    (1) Bandt and Pompe, Phys. Rev. Lett. 88
 * (2002) 174102: order 3, delay 1, of x itself, ties by index, -sum p ln p / ln 6 mobility, complexity (2) Hjorth,
 * Electroenceph. clin. Neurophysiol. 29 (1970) 306: m(y) = sqrt(var(y') / var(y)), m(y') / m(y), with y' the first
 * difference and var of divisor n PER PAIR, 5 numbers, one per band phase locking  Lachaux, Rodriguez, Martinerie,
 * Varela, Hum. Brain Mapp. 8 (1999) 194: |mean of exp(i (phi_a - phi_b))| or coherence   |S_ab|^2 / (S_aa S_bb) by
 * Welch (2 s, at least two pieces), mean over the bins of the band Phases and amplitudes are those of the analytic
 * signal by FFT: the spectrum of y, zero outside the band, positive frequencies doubled; the first and last floor(N/10)
 * samples are dropped.
 *
 * PAIRS.  Up to 20 channels all pairs (a < b, a outer); above that the nine regions' mean signals instead
 * (sn_neuro_region), all 36 pairs, so that the length does not depend on the headset.
 *
 * NaN POLICY.  NaN where it cannot be computed: a missing sample in the window (or, for pairs, in one of the two), a
 * flat channel (but for log_power and permutation), a band above half the rate, a window shorter than a piece (power),
 * an empty phase bin, an empty region.  The objective leaves such targets out of loss and count. */
#ifndef SN_MODALITIES_EEG_NEURODYNAMICS_H
#define SN_MODALITIES_EEG_NEURODYNAMICS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

enum {
  SN_NEURO_BANDS = 5,
  SN_NEURO_CHANNEL_VALUES = 14,
  SN_NEURO_REGIONS = 9,
  SN_NEURO_MOST_CHANNELS = 20, /* up to here all pairs of channels */
  SN_NEURO_NAME = 64
};
/* Length of sn_neuro_summary: nine regions' values and 36 pairs of five bands. */
enum { SN_NEURO_SUMMARY = SN_NEURO_REGIONS * SN_NEURO_CHANNEL_VALUES + 36 * SN_NEURO_BANDS };

typedef struct sn_neuro_options {
  double rate_hz;
  int64_t n_samples; /* of a window, at least 32 */
  bool coherence;    /* magnitude-squared coherence instead of phase locking */
} sn_neuro_options;

typedef struct sn_neuro sn_neuro; /* transforms and bands; immutable, any number of threads */
SN_MUST_CHECK sn_status sn_neuro_create(const sn_neuro_options *options, sn_neuro **out, sn_error *err);
void sn_neuro_destroy(sn_neuro *neuro); /* accepts NULL */

/* values (14) [out] of x (N). */
SN_MUST_CHECK sn_status sn_neuro_channel(double values[SN_NEURO_CHANNEL_VALUES], const sn_neuro *neuro, const double *x,
                                         sn_error *err);
/* values (n (n - 1) / 2, 5) [out] of x (n, N): all pairs, whatever n. */
SN_MUST_CHECK sn_status sn_neuro_pairs(double *values, const sn_neuro *neuro, const double *x, int64_t n,
                                       sn_error *err);

/* Everything of a window: values (sn_neuro_count) [out]: 14 per channel, then the pairs. regions (n): sn_neuro_region
 * of each channel, used above 20 channels; NULL is SN_E_ARGUMENT there. */
int64_t sn_neuro_count(int64_t n_channels);
SN_MUST_CHECK sn_status sn_neuro_window(double *values, const sn_neuro *neuro, const double *x, int64_t n_channels,
                                        const int32_t *regions, sn_error *err);
/* "alpha_log_power", "modulation", ...: value i of a channel. */
void sn_neuro_channel_name(char name[SN_NEURO_NAME], int64_t i);

/* The same length for every headset: for each region the mean of its channels' values (those that are not NaN), then
 * the 36 pairs of the regions' mean signals. values (SN_NEURO_SUMMARY) [out]. */
SN_MUST_CHECK sn_status sn_neuro_summary(double *values, const sn_neuro *neuro, const double *x, int64_t n_channels,
                                         const int32_t *regions, sn_error *err);
void sn_neuro_summary_name(char name[SN_NEURO_NAME], int64_t i); /* "left_front_alpha_log_power" */

/* Region of a position in the head frame: with u its direction from the centre of the head sphere (layout.h), left
 * u_x < -0.25, right u_x > 0.25, else middle; front u_y > 0.5, back u_y < -0.5, else centre.  Number 3 row + column,
 * rows front, centre, back, columns left, middle, right. -1: not finite, or at the centre. */
int32_t sn_neuro_region(const double position_m[3], double radius_m);

#endif
