/* ECG: from a recording to a sample of tokens.
 *
 * One token is a patch of one lead.  sn_ecg_read_sample reads a window, conditions each lead
 * (modalities/signal/condition.h), normalises per lead, and cuts patches:
 *   order         lead-major (leads in the order of sn_leads_select), then time
 *   patches       (n_tokens, P) conditioned values, 0 where invalid; P = patch_s * rate
 *   valid         (n_tokens, P); NULL when everything is valid
 *   coordinates   x = y = z = 0 (a lead is a direction, not a place); t = centre of the patch in s from the start of
 *                 the window, (p + 1/2) P / rate
 *   orientations  the lead's direction (leads.h)
 *   channels      the lead's number;  positions: p, the index of the patch in the window;  sensors: SN_SENSOR_ECG
 * A patch without any valid sample makes no token; an absent lead makes none.  flat_patches counts patches whose
 * values have a variance below 1e-8 (they can be no normalised target). */
#ifndef SN_MODALITIES_ECG_ECG_H
#define SN_MODALITIES_ECG_ECG_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/status.h"
#include "core/token_batch.h"
#include "modalities/ecg/leads.h"
#include "modalities/recording.h"
#include "modalities/signal/condition.h"

typedef struct sn_ecg_options {
  sn_condition_options condition;
  double stride_s;          /* of the window grid; 0: window_s */
  bool derive_leads;
  int64_t n_leads;          /* 0: all leads of a recording */
  int32_t leads[SN_LEADS_MOST];
} sn_ecg_options;

/* The recipe: 0.5-40 Hz FIR, 100 Hz, windows of 10 s, stride 10 s, zscore-window, clip 8, patch 0.2 s, min_valid 0.5.
 * */
sn_ecg_options sn_ecg_defaults(void);

/* data.window data.stride data.rate data.rate_tolerance data.filter data.filter_low data.filter_high data.filter_order
 * data.notch data.resample data.patch data.normalize data.global_mean data.global_std data.clip data.min_valid
 * ecg.leads ecg.derive_leads; ended by a line with key NULL. */
extern const sn_config_entry sn_ecg_config[];
/* SN_E_ARGUMENT names the key: unknown lead, patch that does not divide the window, filter above half the rate, ... */
SN_MUST_CHECK sn_status sn_ecg_options_from_config(const sn_config *config, sn_ecg_options *out, sn_error *err);

typedef struct sn_ecg sn_ecg; /* options and cached filters; any number of threads */
SN_MUST_CHECK sn_status sn_ecg_create(const sn_ecg_options *options, sn_ecg **out, sn_error *err);
void sn_ecg_destroy(sn_ecg *ecg); /* accepts NULL */
const sn_ecg_options *sn_ecg_get_options(const sn_ecg *ecg);
sn_conditioner *sn_ecg_conditioner(sn_ecg *ecg); /* owned by ecg */

int64_t sn_ecg_patch_size(const sn_ecg *ecg);       /* P */
int64_t sn_ecg_window_patches(const sn_ecg *ecg);   /* patches of one lead in a window */
double sn_ecg_window_seconds(const sn_ecg *ecg);    /* window_samples / rate */
double sn_ecg_stride_seconds(const sn_ecg *ecg);

/* Windows of the grid in a segment of n_samples native samples at rate num/den: window i starts at i * stride.
 * 0 when the segment is shorter than a window. A start may be moved anywhere in [0, *last_start_s]. */
SN_MUST_CHECK sn_status sn_ecg_count_windows(sn_ecg *ecg, int64_t native_num, int64_t native_den, int64_t n_samples,
                                             int64_t *n_windows, double *last_start_s, sn_error *err);
/* The same over the selected leads of a recording's segment (the shortest counts). */
SN_MUST_CHECK sn_status sn_ecg_segment_windows(sn_ecg *ecg, const sn_recording *recording, int64_t segment,
                                               int64_t *n_windows, double *last_start_s, sn_error *err);
/* Upper bound of the tokens of a window: leads that are there x patches. */
SN_MUST_CHECK sn_status sn_ecg_nominal_tokens(const sn_ecg *ecg, const sn_recording *recording, int64_t *n,
                                              sn_error *err);
int64_t sn_ecg_nominal_tokens_names(const sn_ecg *ecg, const char *const *names, int64_t n_names);

/* Statistics of a recording, one per selected lead, for zscore-record: one pass, made once per recording and kept by
 * the caller (e.g. one per row of the manifest). Not needed by other modes. */
typedef struct sn_ecg_stats {
  int64_t n;
  int32_t leads[SN_LEADS_MOST];
  sn_channel_stats stats[SN_LEADS_MOST];
} sn_ecg_stats;
bool sn_ecg_needs_stats(const sn_ecg *ecg);
SN_MUST_CHECK sn_status sn_ecg_record_stats(sn_ecg *ecg, const sn_recording *recording, sn_ecg_stats *out,
                                            sn_error *err);

/* The whole pipeline. start_s: from the segment's start. stats may be NULL unless sn_ecg_needs_stats. The caller sets
 * sample_id, subject_id, recording and window; start_s and duration_s are set here (from the recording's start).
 *   SN_END  the window is rejected: under min_valid of its samples (over all leads) are measured, or every lead is
 *   flat;
 *           err->message says which.  *out is NULL.
 *   SN_E_ARGUMENT the window does not lie in the segment; leads as in sn_leads_select.  Errors of reading as they come.
 *   */
SN_MUST_CHECK sn_status sn_ecg_read_sample(sn_ecg *ecg, const sn_recording *recording, int64_t segment, double start_s,
                                           const sn_ecg_stats *stats, sn_sample **out, sn_error *err);

/* One lead's conditioned, normalised window (recorded or derived): values, valid (window samples) [out]; SN_E_ARGUMENT
 * if the lead is not there. No rejection: see info->n_valid, info->flat. */
SN_MUST_CHECK sn_status sn_ecg_lead_window(sn_ecg *ecg, const sn_recording *recording, const sn_lead_source *source,
                                           int64_t segment, double start_s, const sn_channel_stats *stats,
                                           double *values, uint8_t *valid, sn_window_info *info, sn_error *err);

/* The manifest's and checkpoint's record of what was done: one JSON object with every constant. */
void sn_ecg_write_json(const sn_ecg *ecg, sn_json_writer *writer);

#endif
