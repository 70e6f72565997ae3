/* Conditioning of one channel: read -> unit -> filter -> resample -> window -> normalise, in that order.
 *
 * GRID.  A segment (of the recording) of N native samples has K = ceil(N up / down) conditioned samples; number k
 * stands at k / rate seconds after the segment's start (rate: the target rate, or with a tolerance native rate * up /
 * down).  A window that starts at start_s seconds in the segment is samples [k0, k0 + n), k0 = floor(start_s rate +
 * 1/2), n = floor(window_s rate + 1/2); it must lie inside [0, K).
 *
 * LOCALITY.  A window's values equal (1e-6 relative, in fact about 1e-12) those of conditioning the whole segment: only
 * the window and the support of filter and resampler are read, and padding (fir.h) applies at the ends of a segment
 * only. Exception: resample = fft reads the whole segment.
 *
 * MISSING SAMPLES (NaN).  A gap of at least one patch (patch_s) splits the segment: each piece is padded and filtered
 * on its own, on the segment's one grid; a piece begins and ends with a measured sample.  Shorter gaps are bridged
 * linearly for the filter and stay invalid.  A conditioned sample is valid when the native samples around it are all
 * measured: those in [u - d/2, u + d/2] with u = k down/up, d = down/up, and floor(u), ceil(u).  Invalid samples are 0
 * in the output and enter no statistic.
 *
 * FLAT.  When the deviation of the valid samples (before normalisation) is at most flat_std, the channel is flat: every
 * value is 0 in the modes that subtract a mean, and the flag is set in all modes. */
#ifndef SN_MODALITIES_SIGNAL_CONDITION_H
#define SN_MODALITIES_SIGNAL_CONDITION_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"
#include "modalities/signal/resample.h"

typedef enum sn_filter_kind { SN_FILTER_FIR = 0, SN_FILTER_BUTTERWORTH } sn_filter_kind;
typedef enum sn_resample_kind { SN_RESAMPLE_POLYPHASE = 0, SN_RESAMPLE_FFT } sn_resample_kind;

/* How the values of a channel are scaled after the window is cut; m, s over valid samples, s with divisor n. */
typedef enum sn_normalize {
  SN_NORMALIZE_NONE = 0,
  SN_NORMALIZE_ZSCORE_WINDOW, /* (x - m) / s of the window */
  SN_NORMALIZE_ZSCORE_RECORD, /* (x - m) / s of the channel's whole recording, conditioned: needs sn_channel_stats */
  SN_NORMALIZE_ROBUST,        /* (x - median) / (q75 - q25) of the window; IQR 0: s instead */
  SN_NORMALIZE_Q95,           /* x / q95 of |x| of the window; 0: s instead */
  SN_NORMALIZE_GLOBAL,        /* (x - global_mean) / global_std, from the training set */
  SN_NORMALIZE_DIV100UV,      /* x / 100 uV; other than a voltage is SN_E_ARGUMENT */
  SN_NORMALIZE_GROUP          /* (x - m) / s over all series of one sensor kind in the window: given as sn_channel_stats */
} sn_normalize;

typedef struct sn_condition_options {
  sn_filter_kind filter;
  int64_t butterworth_order;
  double filter_low_hz, filter_high_hz, notch_hz; /* 0: none (notch: FIR only) */
  sn_resample_kind resample;
  int64_t rate_num, rate_den;                     /* target rate; num 0: native */
  double rate_tolerance;                          /* relative; 0: exact only */
  double window_s, patch_s;
  sn_normalize normalize;
  double global_mean, global_std;
  double clip;                                    /* |value| at most this after normalising; 0: none */
  double min_valid;                               /* least share of valid samples of a window */
  double flat_std;                                /* in the channel's unit */
} sn_condition_options;

/* No filter, native rate, 10 s, 0.2 s patches, no normalisation, no clip, min_valid 0.5, flat_std 1e-6, order 4. */
sn_condition_options sn_condition_defaults(void);
/* "none|zscore-window|zscore-record|robust|q95|global|div100uV|group" */
extern const char *const sn_normalize_choices;
bool sn_normalize_from_name(const char *name, sn_normalize *out);
const char *sn_normalize_name(sn_normalize normalize);

/* Statistics of one channel over a whole recording, for zscore-record, or of its kind over a window, for group. The
 * caller keeps them. */
typedef struct sn_channel_stats {
  int64_t n, missing;  /* conditioned samples */
  double mean, std;    /* before normalisation; NaN when n == 0 */
} sn_channel_stats;

typedef struct sn_window_info {
  int64_t n, n_valid;
  bool flat;
  double mean, std;       /* before normalisation, over valid samples */
  double shift, scale;    /* normalised = (value - shift) / scale */
  int64_t n_clipped;
} sn_window_info;

typedef struct sn_conditioner sn_conditioner;

SN_MUST_CHECK sn_status sn_conditioner_create(const sn_condition_options *options, sn_conditioner **out, sn_error *err);
void sn_conditioner_destroy(sn_conditioner *conditioner); /* accepts NULL */
const sn_condition_options *sn_conditioner_options(const sn_conditioner *conditioner);

/* All below: any number of threads; filters and plans per native rate are cached under a lock. */

/* What happens to one channel of a recording. A filter longer than a third of the channel's longest segment sets
 * short_for_filter (the caller says so once). */
typedef struct sn_channel_plan {
  sn_ratio ratio;
  double native_hz, rate_hz;  /* rate_hz: really reached */
  int64_t window_samples;     /* n */
  int64_t filter_length, filter_support; /* native samples; 0 without a filter */
  bool short_for_filter;
} sn_channel_plan;
SN_MUST_CHECK sn_status sn_conditioner_plan(sn_conditioner *conditioner, const sn_recording *recording, int64_t channel,
                                            sn_channel_plan *out, sn_error *err);
/* The same from plain numbers (a manifest's line): native rate num/den of the channel, longest segment in samples. */
SN_MUST_CHECK sn_status sn_conditioner_plan_rate(sn_conditioner *conditioner, int64_t native_num, int64_t native_den,
                                                 int64_t longest, sn_channel_plan *out, sn_error *err);
/* K of a segment. */
SN_MUST_CHECK sn_status sn_conditioner_samples(sn_conditioner *conditioner, const sn_recording *recording,
                                               int64_t channel, int64_t segment, int64_t *n, sn_error *err);

/* Read, unit, filter, resample: conditioned samples [first, first+count) of a segment, not normalised.
 * values (count) [out], 0 where invalid; valid (count) [out]. SN_E_ARGUMENT outside [0, K). */
SN_MUST_CHECK sn_status sn_conditioner_range(sn_conditioner *conditioner, const sn_recording *recording,
                                             int64_t channel, int64_t segment, int64_t first, int64_t count,
                                             double *values, uint8_t *valid, sn_error *err);
/* The same of several channels, each with the bits that sn_conditioner_range gives it: values[i], valid[i] (count) of
 * channels[i]. Neighbours of one rate are read together (sn_recording_read_channels), at most 32 MiB at a time, so that
 * a file that interleaves its channels is read once and not once per channel. */
SN_MUST_CHECK sn_status sn_conditioner_range_channels(sn_conditioner *conditioner, const sn_recording *recording,
                                                      const int64_t *channels, int64_t n_channels, int64_t segment,
                                                      int64_t first, int64_t count, double *const *values,
                                                      uint8_t *const *valid, sn_error *err);
/* Normalise and clip in place. unit: the channel's. stats: only for zscore-record and group (SN_E_ARGUMENT when NULL).
 * A window with no valid sample is left at 0. */
SN_MUST_CHECK sn_status sn_conditioner_normalize(const sn_conditioner *conditioner, const char *unit,
                                                 const sn_channel_stats *stats, double *values, const uint8_t *valid,
                                                 int64_t n, sn_window_info *info, sn_error *err);
/* Everything: the window at start_s of a segment. SN_END when fewer than min_valid of its samples are valid
 * (err->message says so; values and info are filled all the same). values, valid (window_samples) [out]; info [out],
 * may be NULL. */
SN_MUST_CHECK sn_status sn_conditioner_window(sn_conditioner *conditioner, const sn_recording *recording,
                                              int64_t channel, int64_t segment, double start_s,
                                              const sn_channel_stats *stats, double *values, uint8_t *valid,
                                              sn_window_info *info, sn_error *err);
/* One pass over the channel: blocks of a minute, memory does not grow with the recording. */
SN_MUST_CHECK sn_status sn_conditioner_stats(sn_conditioner *conditioner, const sn_recording *recording,
                                             int64_t channel, sn_channel_stats *out, sn_error *err);

#endif
