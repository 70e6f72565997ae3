#include "modalities/ecg/ecg_features.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "modalities/ecg/beats.h"
#include "modalities/ecg/leads.h"
#include "modalities/signal/fir.h"

#define LEAST_RR_S 0.3
#define MOST_RR_S 2.0

static const char *const RR_NAMES[SN_ECG_RR_FEATURES] = {"rr_mean",   "rr_std", "rr_rmssd",     "rr_pnn50",
                                                         "rr_median", "rr_cv",  "rr_rmssd_rel", "rr_rate"};
static const struct { double low, high; const char *name; } BANDS[SN_ECG_BANDS] = {
    {0.5, 4, "0.5_4"}, {4, 8, "4_8"}, {8, 15, "8_15"}, {15, 30, "15_30"}, {30, 45, "30_45"}};

/* Sums over RR intervals and over successive differences, in one pass over the beats. */
typedef struct rr_sums {
  sn_sum rr, rr_squares, difference_squares;
  int64_t n_rr, n_differences, over_50ms;
} rr_sums;

static rr_sums sum_rr(const double *onset_s, const int64_t *segment, int64_t n, double *rr) {
  rr_sums s = {0};
  double before = NAN; /* the interval just before, NaN after a gap */
  for (int64_t i = 1; i < n; i++) {
    if (segment != NULL && segment[i] != segment[i - 1]) {
      before = NAN;
      continue;
    }
    double x = fmin(fmax(onset_s[i] - onset_s[i - 1], LEAST_RR_S), MOST_RR_S);
    rr[s.n_rr++] = x;
    sn_sum_add(&s.rr, x);
    sn_sum_add(&s.rr_squares, x * x);
    if (!isnan(before)) {
      sn_sum_add(&s.difference_squares, (x - before) * (x - before));
      s.over_50ms += fabs(x - before) > 0.05;
      s.n_differences++;
    }
    before = x;
  }
  return s;
}

sn_status sn_ecg_rr_features(double features[SN_ECG_RR_FEATURES], const double *onset_s, const int64_t *segment,
                             int64_t n, double duration_s, sn_error *err) {
  double *rr = NULL, *work = NULL;
  for (int i = 0; i < SN_ECG_RR_FEATURES; i++) features[i] = NAN;
  if (duration_s > 0.0) features[7] = (double)n / duration_s;
  if (n < 3) return SN_OK;
  SN_TRY(sn_alloc(&rr, 2 * n, sizeof *rr, "RR intervals", err));
  work = rr + n;
  rr_sums s = sum_rr(onset_s, segment, n, rr);
  if (s.n_rr > 1 && s.n_differences > 0) {
    double mean = sn_sum_value(&s.rr) / (double)s.n_rr;
    double variance = sn_sum_value(&s.rr_squares) / (double)s.n_rr - mean * mean;
    double rmssd = sqrt(fmax(sn_sum_value(&s.difference_squares), 0.0) / (double)s.n_differences);
    features[0] = mean;
    features[1] = sqrt(fmax(variance, 0.0));
    features[2] = rmssd;
    features[3] = (double)s.over_50ms / (double)s.n_differences;
    features[4] = sn_quantile(rr, s.n_rr, 0.5, work);
    features[5] = features[1] / mean;
    features[6] = rmssd / mean;
  }
  sn_free(rr);
  return SN_OK;
}

int64_t sn_ecg_feature_count(int64_t n_leads) { return SN_ECG_RR_FEATURES + SN_ECG_BANDS * n_leads; }

void sn_ecg_feature_name(char name[SN_FEATURE_NAME], int64_t i, const int32_t *leads, int64_t n_leads) {
  if (i >= 0 && i < SN_ECG_RR_FEATURES) {
    snprintf(name, SN_FEATURE_NAME, "%s", RR_NAMES[i]);
    return;
  }
  int64_t lead = (i - SN_ECG_RR_FEATURES) / SN_ECG_BANDS, band = (i - SN_ECG_RR_FEATURES) % SN_ECG_BANDS;
  if (i < 0 || lead >= n_leads) snprintf(name, SN_FEATURE_NAME, "?");
  else snprintf(name, SN_FEATURE_NAME, "%s_log_%s_hz", sn_lead_name(leads[lead]), BANDS[band].name);
}

/* Filters of one rate; band NULL where the rate does not reach. */
typedef struct bank {
  double rate;
  sn_fir *band[SN_ECG_BANDS];
} bank;

static void bank_free(bank *b) {
  for (int i = 0; i < SN_ECG_BANDS; i++) sn_fir_destroy(b->band[i]);
  *b = (bank){0};
}

static sn_status bank_prepare(bank *b, double rate, sn_error *err) {
  if (b->rate == rate) return SN_OK;
  bank_free(b);
  for (int i = 0; i < SN_ECG_BANDS; i++) {
    sn_fir_spec spec = {.rate_hz = rate, .low_hz = BANDS[i].low, .high_hz = BANDS[i].high};
    if (BANDS[i].high + 0.5 >= rate / 2.0) continue;
    SN_TRY(sn_fir_create(&spec, &b->band[i], err));
  }
  b->rate = rate;
  return SN_OK;
}

typedef struct band_sums {
  double squares[SN_ECG_BANDS];
  int64_t n;
} band_sums;

/* Adds the energies of samples [first, first + count) of a segment; missing samples are bridged by 0 and not counted.
 * */
static sn_status add_energies(band_sums *sums, const bank *b, const sn_recording *recording, int64_t channel,
                              int64_t segment, int64_t first, int64_t count, sn_error *err) {
  sn_status status;
  double *x = NULL, *y = NULL, level = 0.0;
  uint8_t *measured = NULL;
  int64_t used = 0;
  if (count < 2) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&x, count, sizeof *x, "signal", err), done);
  SN_TRY_GOTO(sn_alloc(&y, count, sizeof *y, "signal", err), done);
  SN_TRY_GOTO(sn_alloc(&measured, count, 1, "signal", err), done);
  SN_TRY_GOTO(sn_recording_read(recording, channel, segment, first, count, x, err), done);
  for (int64_t i = 0; i < count; i++)
    if (!isnan(x[i])) measured[i] = 1, level += x[i], used++;
  if (used == 0) goto done;
  level /= (double)used;
  for (int64_t i = 0; i < count; i++)
    if (!measured[i]) x[i] = level;
  for (int k = 0; k < SN_ECG_BANDS; k++) {
    if (b->band[k] == NULL) continue;
    SN_TRY_GOTO(sn_fir_apply(b->band[k], x, count, 0, count, y, err), done);
    for (int64_t i = 0; i < count; i++) sums->squares[k] += measured[i] ? y[i] * y[i] : 0.0;
  }
  sums->n += used;
  status = SN_OK;
done:
  sn_free(x);
  sn_free(y);
  sn_free(measured);
  return status;
}

/* The stretch [start_s, start_s + duration_s) of a segment, in the channel's samples. */
static void stretch_of(const sn_recording *recording, int64_t channel, int64_t segment, double start_s,
                       double duration_s, int64_t *first, int64_t *count) {
  double rate = sn_recording_rate(recording, channel);
  int64_t n = sn_recording_samples(recording, channel, segment);
  double from = floor(start_s * rate + 0.5), to = floor((start_s + duration_s) * rate + 0.5);
  *first = from < 0.0 ? 0 : from > (double)n ? n : (int64_t)from;
  *count = (to > (double)n ? n : (int64_t)to) - *first;
  if (*count < 0) *count = 0;
}

static sn_status lead_energies(double *features, bank *b, const sn_recording *recording, int64_t channel,
                               int64_t segment, double start_s, double duration_s, sn_error *err) {
  /* Long segments in blocks of five minutes, each padded on its own: memory stays small. */
  band_sums sums = {0};
  SN_TRY(bank_prepare(b, sn_recording_rate(recording, channel), err));
  int64_t block = (int64_t)(300.0 * b->rate);
  for (int64_t s = duration_s < 0.0 ? 0 : segment; s < (duration_s < 0.0 ? recording->n_segments : segment + 1); s++) {
    int64_t first = 0, count = sn_recording_samples(recording, channel, s);
    if (duration_s >= 0.0) stretch_of(recording, channel, s, start_s, duration_s, &first, &count);
    for (int64_t done = 0; done < count; done += block)
      SN_TRY(add_energies(&sums, b, recording, channel, s, first + done, count - done < block ? count - done : block,
                          err));
  }
  for (int k = 0; k < SN_ECG_BANDS; k++)
    if (b->band[k] != NULL && sums.n > 0) features[k] = log10(sums.squares[k] / (double)sums.n + 1e-10);
  return SN_OK;
}

/* RR part from the beats that lie in the stretch. The detector sees the whole recording. */
static sn_status rr_part(double *features, const sn_recording *recording, int64_t segment, double start_s,
                         double duration_s, sn_error *err) {
  sn_beats *beats = NULL;
  SN_TRY(sn_beats_detect(recording, NULL, &beats, err));
  int64_t first = 0, last = beats->n;
  double duration = sn_recording_duration(recording);
  if (duration_s >= 0.0) {
    double from = recording->segments[segment].start_s + start_s;
    while (first < beats->n && (beats->segment[first] != segment || beats->onset_s[first] < from)) first++;
    last = first;
    while (last < beats->n && beats->segment[last] == segment && beats->onset_s[last] < from + duration_s) last++;
    duration = duration_s;
  }
  sn_status status =
      sn_ecg_rr_features(features, beats->onset_s + first, beats->segment + first, last - first, duration, err);
  sn_beats_destroy(beats);
  return status;
}

sn_status sn_ecg_features(double *features, const sn_recording *recording, const int32_t *leads, int64_t n_leads,
                          int64_t segment, double start_s, double duration_s, sn_error *err) {
  sn_status status = SN_OK;
  bank b = {0};
  if (duration_s >= 0.0 && (segment < 0 || segment >= recording->n_segments || !(start_s >= 0.0)))
    return sn_fail(err, SN_E_ARGUMENT, "ECG features: segment %lld of %lld, from %g s", (long long)segment,
                   (long long)recording->n_segments, start_s);
  for (int64_t i = 0; i < sn_ecg_feature_count(n_leads); i++) features[i] = NAN;
  SN_TRY(rr_part(features, recording, segment, start_s, duration_s, err));
  for (int64_t l = 0; l < n_leads; l++)
    for (int64_t c = 0; c < recording->n_channels; c++) {
      if (recording->channels[c].kind != SN_SENSOR_ECG || sn_lead_find(recording->channels[c].name) != leads[l])
        continue;
      SN_TRY_GOTO(lead_energies(features + SN_ECG_RR_FEATURES + l * SN_ECG_BANDS, &b, recording, c, segment, start_s,
                                duration_s, err), done);
      break;
    }
done:
  bank_free(&b);
  return status;
}
