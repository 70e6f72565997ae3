/* From a recording to a sample of tokens, the same for every modality of signals: ECG, EEG, MEG.
 *
 *   read -> unit -> filter -> resample -> combine (series.h) -> window -> normalise -> clip -> patches
 *
 * One token is a patch of one series.  Tokens come series by series (in the order of the list), then in time:
 *   patches       (n_tokens, P) conditioned values, 0 where invalid; P = data.patch x rate
 *   valid         (n_tokens, P); NULL when everything is valid
 *   coordinates   x, y, z: the series' position, 0 where it has none; t = centre of the patch in s from the start of
 *                 the window: patch p of a series begins at p x data.patch_stride
 *   orientations  of the series;  channels: its id;  series: its number in the list;  sensors: its kind
 *   positions     p, the index of the patch in the window
 * A patch without any valid sample makes no token.  flat_patches counts patches whose values have a variance below 1e-8
 * (they can be no normalised target).  Patches may overlap (data.patch_stride below data.patch).
 *
 * NORMALISATION is per series, after the window is cut (condition.h), except `group`: mean and deviation over all valid
 * samples of all series of one sensor kind in the window that are not flat (BrainOmni's normalisation by sensor type),
 * which keeps what series have relative to each other. */
#ifndef SN_MODALITIES_SIGNAL_PIPELINE_H
#define SN_MODALITIES_SIGNAL_PIPELINE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/status.h"
#include "core/token_batch.h"
#include "modalities/modality.h"
#include "modalities/recording.h"
#include "modalities/augmentation.h"
#include "modalities/signal/condition.h"
#include "modalities/signal/series.h"

/* A value: copied freely, nothing to free. */
typedef struct sn_signal_options {
  const sn_modality *modality;
  sn_condition_options condition;
  double stride_s;       /* of the window grid; 0: window_s */
  double patch_stride_s; /* from one patch to the next; 0: patch_s */
  bool own_tokens;       /* tokens are cut elsewhere (ecg/beat_tokens.h): patches need not fill the window */
  sn_modality_settings own;
} sn_signal_options;

/* data.modality data.window data.stride data.rate data.rate_tolerance data.filter data.filter_low data.filter_high
 * data.filter_order data.notch data.resample data.patch data.patch_stride data.normalize data.global_mean
 * data.global_std data.clip data.min_valid; ended by a line with key NULL. */
extern const sn_config_entry sn_signal_config[];
/* A modality's defaults: its recipe and its settings. */
SN_MUST_CHECK sn_status sn_signal_defaults(const sn_modality *modality, sn_signal_options *out, sn_error *err);
/* From a configuration with the tables of sn_modality_tables. SN_E_ARGUMENT names the key: a modality that is still
 * "auto" (sn_modality_apply), patches that do not fill the window, a filter above half the rate, ... */
SN_MUST_CHECK sn_status sn_signal_options_from_config(const sn_config *config, sn_signal_options *out, sn_error *err);

typedef struct sn_signal sn_signal; /* options and cached filters; any number of threads */
SN_MUST_CHECK sn_status sn_signal_create(const sn_signal_options *options, sn_signal **out, sn_error *err);
void sn_signal_destroy(sn_signal *signal); /* accepts NULL */
const sn_signal_options *sn_signal_get_options(const sn_signal *signal); /* strides filled in */
sn_conditioner *sn_signal_conditioner(const sn_signal *signal);          /* owned by signal */

int64_t sn_signal_patch_size(const sn_signal *signal);           /* P */
int64_t sn_signal_window_patches(const sn_signal *signal);       /* patches of one series in a window */
double sn_signal_window_seconds(const sn_signal *signal);        /* window_samples / rate */
double sn_signal_stride_seconds(const sn_signal *signal);        /* of windows */
double sn_signal_patch_stride_seconds(const sn_signal *signal);

/* The modality's select (modality.h); list is empty before, and is to be freed. */
SN_MUST_CHECK sn_status sn_signal_select(const sn_signal *signal, const sn_recording *recording, bool planning,
                                         sn_series_list *list, sn_error *err);
/* Upper bound of the tokens of a window: series x patches. */
int64_t sn_signal_nominal_tokens(const sn_signal *signal, const sn_series_list *list);

/* Windows of the grid in a segment of n_samples native samples at rate num/den: window i starts at i * stride.
 * 0 when the segment is shorter than a window. A start may be moved anywhere in [0, *last_start_s]. */
SN_MUST_CHECK sn_status sn_signal_count_windows(const sn_signal *signal, int64_t native_num, int64_t native_den,
                                                int64_t n_samples, int64_t *n_windows, double *last_start_s,
                                                sn_error *err);
/* The same over the channels of a list in a recording's segment (the shortest counts). */
SN_MUST_CHECK sn_status sn_signal_segment_windows(const sn_signal *signal, const sn_recording *recording,
                                                  const sn_series_list *list, int64_t segment, int64_t *n_windows,
                                                  double *last_start_s, sn_error *err);

/* Statistics of a whole recording, one per series of a list, for zscore-record: one pass, all channels together. */
typedef struct sn_signal_stats {
  int64_t n;
  sn_channel_stats stats[];
} sn_signal_stats;
bool sn_signal_needs_stats(const sn_signal *signal);
/* Fresh (sn_free). */
SN_MUST_CHECK sn_status sn_signal_record_stats(const sn_signal *signal, const sn_recording *recording,
                                               const sn_series_list *list, sn_signal_stats **out, sn_error *err);

/* Conditioned samples of all series of a list, combined, normalised: the window at start_s of a segment.
 * values (list->n, window samples), valid (the same), info (list->n) [out]. No rejection. */
SN_MUST_CHECK sn_status sn_signal_read_window(const sn_signal *signal, const sn_recording *recording,
                                              const sn_series_list *list, int64_t segment, double start_s,
                                              const sn_signal_stats *stats, double *values, uint8_t *valid,
                                              sn_window_info *info, sn_error *err);
/* The same for n samples instead of a window's. */
SN_MUST_CHECK sn_status sn_signal_read_span(const sn_signal *signal, const sn_recording *recording,
                                            const sn_series_list *list, int64_t segment, double start_s, int64_t n,
                                            const sn_signal_stats *stats, double *values, uint8_t *valid,
                                            sn_window_info *info, sn_error *err);
/* SN_END: by the rules of sn_signal_read_sample, n samples of n_series series are rejected. */
SN_MUST_CHECK sn_status sn_signal_judge_window(const sn_signal *signal, const sn_window_info *info, int64_t n_series,
                                               int64_t n, double start_s, sn_error *err);

/* The whole pipeline. start_s: from the segment's start. stats may be NULL unless sn_signal_needs_stats. The caller
 * sets sample_id, subject_id, recording and window; start_s and duration_s are set here (from the recording's start).
 *   SN_END  the window is rejected: under min_valid of its samples (over all series) are measured, or every series is
 *           flat; err->message says which.  *out is NULL.
 *   SN_E_ARGUMENT the window does not lie in the segment.  Errors of reading as they come. */
SN_MUST_CHECK sn_status sn_signal_read_sample(const sn_signal *signal, const sn_recording *recording,
                                              const sn_series_list *list, int64_t segment, double start_s,
                                              const sn_signal_stats *stats, sn_sample **out, sn_error *err);

/* The same, augmented between normalisation and tokens (augment.h); sample: the stream of the sample and view.  augments NULL:
 * not.  The rules that reject a window look at it as it was measured. */
SN_MUST_CHECK sn_status sn_signal_read_augmented(const sn_signal *signal, const sn_recording *recording,
                                                 const sn_series_list *list, int64_t segment, double start_s,
                                                 const sn_signal_stats *stats, const sn_augments *augments,
                                                 const sn_random *sample, sn_sample **out, sn_error *err);

/* The manifest's and checkpoint's record of what was done: one JSON object with every constant. */
void sn_signal_write_json(const sn_signal *signal, sn_json_writer *writer);

#endif
