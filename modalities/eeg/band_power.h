/* The raw-feature baseline of EEG and MEG probes: log band powers, a vector of fixed length with names.
 *
 * SPECTRUM.  Welch: pieces of 2 s (round(2 rate) samples), half overlapping, each freed of its least-squares line, Hann
 * window (periodic), one-sided density, mean over the pieces: scipy.signal.welch(x, rate, "hann", nperseg, nperseg //
 * 2, detrend="linear").  Band power is the sum of the density over the bins with low <= f < high, times their distance;
 * the feature is log10(power + 1e-12) in units squared (uV^2, fT^2, (fT/cm)^2).
 * BANDS.  1-4, 4-8, 8-13, 13-20, 20-30, 30-45 Hz.
 * COLUMNS.  A list of names, in the order of the output: a series ("Fp1", "Fp1-F7", "MEG0113"), or "@eeg", "@meg_mag",
 * "@meg_grad": the mean of the log powers over the series of that kind.
 *
 * NaN POLICY.  What cannot be computed (a series that is absent, a stretch without a whole piece free of missing
 * samples, a band that the rate does not reach: high > rate / 2) is NaN; the probe puts the training median in its
 * place and counts it.  Pieces with a missing sample are left out; none crosses a gap.  A recording without any of the
 * columns is SN_E_ARGUMENT. */
#ifndef SN_MODALITIES_EEG_BAND_POWER_H
#define SN_MODALITIES_EEG_BAND_POWER_H

#include <complex.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/modality.h"
#include "modalities/recording.h"

enum { SN_EEG_BANDS = 6 };

/* A spectrum estimator of one rate; immutable, any number of threads. */
typedef struct sn_welch sn_welch;
SN_MUST_CHECK sn_status sn_welch_create(double rate_hz, double piece_s, sn_welch **out, sn_error *err);
void sn_welch_destroy(sn_welch *welch);            /* accepts NULL */
int64_t sn_welch_bins(const sn_welch *welch);      /* n/2 + 1 */
int64_t sn_welch_piece(const sn_welch *welch);     /* samples */
double sn_welch_resolution(const sn_welch *welch); /* Hz between bins */
/* Adds the densities of the pieces of x (n samples) without a missing sample to sum (bins) [acc] and their number to
 * *n_pieces [acc]. The mean is sum / n_pieces. */
SN_MUST_CHECK sn_status sn_welch_add(double *sum, int64_t *n_pieces, const sn_welch *welch, const double *x, int64_t n,
                                     sn_error *err);
/* Spectrum (bins) [out] of one piece, freed of its line and windowed, not scaled: for cross-spectra. */
SN_MUST_CHECK sn_status sn_welch_spectrum(double complex *spectrum, const sn_welch *welch, const double *x,
                                          sn_error *err);
/* Power in [low, high) of a density (bins): the sum times the resolution. */
double sn_band_power(const double *density, const sn_welch *welch, double low_hz, double high_hz);

int64_t sn_eeg_feature_count(int64_t n_columns); /* 6 per column, column by column */
void sn_eeg_feature_name(char name[SN_FEATURE_NAME], int64_t i, const char *const *columns, int64_t n_columns);

/* Features of the stretch [start_s, start_s + duration_s) of a segment; duration_s < 0: the whole recording. list: the
 * series that the columns name (so that the baseline sees the reference that the encoder sees).
 * features (sn_eeg_feature_count) [out], float64. */
SN_MUST_CHECK sn_status sn_eeg_features(double *features, const sn_recording *recording, const sn_series_list *list,
                                        const char *const *columns, int64_t n_columns, int64_t segment, double start_s,
                                        double duration_s, sn_error *err);

#endif
