/* R peaks: detection, and the comparison with reference beats.
 *
 * HOW IT WORKS (`pan-tompkins`, the default; after Pan and Tompkins, IEEE Trans. Biomed. Eng. 32 (1985) 230, with
 * zero phase):
 *   1 band-pass 5-15 Hz (fir.h); central difference; square; moving mean of 150 ms, centred: the integrated signal
 *   2 candidates: its local maxima; of two closer than 200 ms (refractory) the higher
 *   3 two running levels, of signal (SPK) and noise (NPK), threshold = NPK + 0.25 (SPK - NPK). A candidate above it is
 *     a beat and moves SPK by 1/8 towards its height (at most 3 SPK: one artefact does not deafen the detector); one
 *     below moves NPK by 1/8. At the start SPK is the median of the highest values of the first 8 seconds, NPK an
 *     eighth of it
 *   4 a candidate within 360 ms of the last beat whose steepest slope is below half of that beat's is a T wave: noise
 *   5 search-back: no beat for 1.66 mean RR (of the last 8): the highest candidate since, if above half the threshold
 *     and no T wave, is a beat, and moves SPK by 1/4
 *   6 R = argmax |x| of the signal band-passed 5-30 Hz within 75 ms of the integrated peak
 * `xqrs-like`: 5-20 Hz, and the start of wfdb's XQRS: 75/min, search-back at the latest at 25/min, RR of at least
 * 0.3 s (200/min), candidates of the first 8 seconds count from 0.13 mV.  For comparison only; it is not XQRS.
 *
 * LEAD.  II, else MLII, I, V5 (the first of them that is not flat), else the lead of greatest kurtosis of the 5-30 Hz
 * signal; or `vote`: steps 1-5 on the mean over leads of the squared slopes, each lead scaled by its own median |x| (at
 * least a twentieth of its deviation) in that band, and step 6 on the root mean square over leads.  Inverted leads are
 * handled by |x|.  A lead whose band-passed signal deviates by at most 1e-6 mV is flat and has no beats.
 * Long segments are worked in blocks of 10 minutes with 10 s on either side; missing samples are bridged by a line. */
#ifndef SN_MODALITIES_ECG_BEATS_H
#define SN_MODALITIES_ECG_BEATS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

typedef enum sn_beat_method { SN_BEATS_PAN_TOMPKINS = 0, SN_BEATS_XQRS_LIKE } sn_beat_method;

typedef struct sn_beat_options {
  sn_beat_method method;
  bool vote;              /* all ECG leads together */
  int32_t lead;           /* a lead number, -1: chosen as above */
  bool subsample;         /* onset_s between samples: the vertex of the parabola through the squared 5-30 Hz signal at the
                             peak and its neighbours, at most half a sample away; for low rates */
} sn_beat_options;
sn_beat_options sn_beat_defaults(void);

typedef struct sn_beats {
  int64_t n;
  double *onset_s;        /* (n) from the start of the recording, ascending */
  int64_t *segment;       /* (n) */
  float *confidence;      /* (n) (height - NPK) / (SPK - NPK) of the integrated peak, clipped to [0, 1] */
  int32_t lead;           /* used for detection, -1: vote */
  int64_t channel;        /* -1: vote */
} sn_beats;

/* SN_E_ARGUMENT: no ECG channel, lead absent. No beat found is SN_OK with n = 0. */
SN_MUST_CHECK sn_status sn_beats_detect(const sn_recording *recording, const sn_beat_options *options, sn_beats **out,
                                        sn_error *err);
void sn_beats_destroy(sn_beats *beats); /* accepts NULL */

/* The bare detector on one signal: x (n) in mV at rate_hz, NaN bridged. R peaks as sample numbers, ascending: *peaks
 * (*n_peaks) and *confidence, fresh arrays (sn_free). confidence may be NULL. */
SN_MUST_CHECK sn_status sn_beats_detect_signal(const double *x, int64_t n, double rate_hz, sn_beat_method method,
                                               int64_t **peaks, float **confidence, int64_t *n_peaks, sn_error *err);

/* True for the beat codes of MIT annotations (N L R B A a J S V r F e j n E / f Q ?). */
bool sn_beat_code(const char *code);
/* AAMI group of a beat code: 'N' (N L R e j), 'S' (A a J S), 'V' (V E), 'F' (F), 'Q' (/ f Q), 0: none of them. */
char sn_beat_group(const char *code);

/* Detected against reference times, both ascending, in seconds: pairs one to one within tolerance_s, as many as there
 * can be; of two that could both be the one partner, the nearer. */
typedef struct sn_beat_score {
  int64_t reference, detected, matched;
  double sensitivity, predictivity;  /* matched/reference, matched/detected; NaN when undefined */
  double median_offset_s, median_absolute_offset_s; /* detected - reference over matched pairs; NaN without any */
  int64_t n_false, n_missed;
  double *false_s, *missed_s;        /* (n_false), (n_missed); owned: sn_beat_score_free */
} sn_beat_score;
/* skip_s: learning period left out on both sides (EC57's first 5 minutes: 300; 0 off). */
SN_MUST_CHECK sn_status sn_beats_score(sn_beat_score *out, const double *reference_s, int64_t n_reference,
                                       const double *detected_s, int64_t n_detected, double tolerance_s, double skip_s,
                                       sn_error *err);
void sn_beat_score_free(sn_beat_score *score);

#endif
