/* Augmentations of windows of signals (modalities/augmentation.h): ECG, EEG, MEG, and whatever the pipeline reads.
 *
 * They work on a conditioned, normalised and clipped window, before tokens are cut from it; what they make is not clipped
 * again.  Targets that stand beside the tokens (spectrum, patch, neuro) are those of the augmented window.  A sample that is
 * not valid stays so, is 0, and enters no filter and no statistic.  U is the next uniform number in [0, 1) of the operation's
 * stream, Z the next normal one.  In the order in which they are applied:
 *
 *   crop       start + (2U - 1) crop_shift seconds, kept within the segment, on top of data.crop.  Done when the window is
 *              read, so that it brings other signal in and not zeros.                                              stream 1
 *   warp       time runs faster here and slower there: y(n) = x(n + D(n)) with D(n) = sum over k = 1..3 of a_k sin(pi k n/(N-1)),
 *              a_k = s (N-1)/(pi k) Z_k / (|Z_1| + |Z_2| + |Z_3|), s = warp_speed: |D'| <= s, so that time never runs
 *              backward, and the window's ends stay.  All series alike.  Between samples by a cubic through four of them
 *              (Catmull-Rom), linear where one of the outer two is not valid, not valid where one of the inner two is not.
 *                                                                                                                stream 2
 *   band_stop  x minus a zero-phase Butterworth band-pass (iir.h, order 4) of x: width w = (1 + U)/2 band_stop_width, centre
 *              low + w/2 + U (high - low - w) with low = band_stop_low and high = band_stop_high, or 0.98 rate/2 where that
 *              is 0.  At most 0.01 of the amplitude is left within w/4 of the centre, half of it at the edges.  Each stretch
 *              of valid samples by itself.                                                                         stream 3
 *   scale      all values times exp((2U - 1) log(1 + scale_range)): one factor, so that series keep their ratios stream 4
 *   flip       all series of a kind with a polarity times -1: electric and magnetic ones.  Where a modality's electrodes are
 *              against a common reference, that swaps nothing but the sign                                         stream 5
 *   jitter     x + jitter_std sd Z, sd the deviation of the series' valid samples in the window.  Series c draws from fork c,
 *              one number a sample, valid or not                                                                   stream 6
 *   mask       max(1, floor(U mask_share N)) samples from floor(U' (N - length + 1)) on are marked not valid, in all series:
 *              patches within make no token                                                                        stream 7
 *   drop       each series with a valid sample is left out with probability drop_share (one U each, in order); where that
 *              would be all, one of them stays (one more draw, uniform).  A series that is left out makes no tokens
 *                                                                                                                stream 8
 */
#ifndef SN_MODALITIES_SIGNAL_AUGMENT_H
#define SN_MODALITIES_SIGNAL_AUGMENT_H

#include "modalities/augmentation.h"
#include "modalities/signal/series.h"

typedef struct sn_augment_window {
  int64_t n_series, n_samples;
  double rate_hz;
  double *values;           /* (n_series, n_samples), 0 where not valid */
  uint8_t *valid;           /* (n_series, n_samples) */
  const sn_series *series;  /* (n_series) */
} sn_augment_window;

enum { SN_AUGMENT_CROP, SN_AUGMENT_WARP, SN_AUGMENT_BAND_STOP, SN_AUGMENT_SCALE, SN_AUGMENT_FLIP, SN_AUGMENT_JITTER,
       SN_AUGMENT_MASK, SN_AUGMENT_DROP, SN_SIGNAL_AUGMENTS };
extern const sn_augment_op sn_signal_augment_ops[SN_SIGNAL_AUGMENTS];

/* augment.*: all off by default; ended by a line with key NULL. */
extern const sn_config_entry sn_augment_config[];
/* rate_hz: of the windows. SN_E_ARGUMENT names the key: a band that leaves the stop no room. */
SN_MUST_CHECK sn_status sn_signal_augments_read(sn_augments *out, const sn_config *config, double rate_hz, sn_error *err);
/* What the crop adds to the start of a window, in s. */
double sn_signal_augment_shift(const sn_augments *augments, const sn_random *sample);

#endif
