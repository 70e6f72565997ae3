/* The raw-feature baseline of ECG probes: RR statistics and log band energies, a vector of fixed length with names.
 *
 * RR part, 8 values, from the R peaks of one lead (beats.h): rr_mean, rr_std, rr_rmssd (s), rr_pnn50 (share of
 * successive differences over 50 ms), rr_median (s), rr_cv (std / mean), rr_rmssd_rel (rmssd / mean), rr_rate (beats
 * per second). Deviations have divisor n.  RR intervals are clipped to 0.3-2.0 s; none crosses a gap.
 * Energy part, 5 values per lead of the list: log10(mean square + 1e-10), in mV^2, of the FIR bands (fir.h) 0.5-4, 4-8,
 * 8-15, 15-30 and 30-45 Hz at the native rate; missing samples are not counted.
 *
 * NaN POLICY.  What cannot be computed (fewer than 3 beats, a lead that is absent or all missing, a band that the rate
 * does not reach) is NaN; the probe puts the training median in its place and counts it.  A recording without any ECG
 * channel is SN_E_ARGUMENT. */
#ifndef SN_MODALITIES_ECG_ECG_FEATURES_H
#define SN_MODALITIES_ECG_ECG_FEATURES_H

#include <stdint.h>

#include "core/status.h"
#include "modalities/modality.h"
#include "modalities/recording.h"

enum { SN_ECG_RR_FEATURES = 8, SN_ECG_BANDS = 5 };

/* RR part alone, from R times in ascending order; segment (n) may be NULL (one segment). features (8) [out]. */
SN_MUST_CHECK sn_status sn_ecg_rr_features(double features[SN_ECG_RR_FEATURES], const double *onset_s,
                                           const int64_t *segment, int64_t n, double duration_s, sn_error *err);

/* Length for n_leads leads. */
int64_t sn_ecg_feature_count(int64_t n_leads);
/* Name of feature i for the leads of the list ("rr_mean", "II_log_4_8_hz"). */
void sn_ecg_feature_name(char name[SN_FEATURE_NAME], int64_t i, const int32_t *leads, int64_t n_leads);

/* Features of the stretch [start_s, start_s + duration_s) of a segment; duration_s < 0: the whole recording.
 * leads: numbers, in the order of the output. features (sn_ecg_feature_count) [out], float64. */
SN_MUST_CHECK sn_status sn_ecg_features(double *features, const sn_recording *recording, const int32_t *leads,
                                        int64_t n_leads, int64_t segment, double start_s, double duration_s,
                                        sn_error *err);

#endif
