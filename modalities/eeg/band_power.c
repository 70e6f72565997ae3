#include "modalities/eeg/band_power.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft.h"

#define PI 3.14159265358979323846
#define PIECE_S 2.0
#define FLOOR 1e-12

static const struct {
  double low, high;
  const char *name;
} BANDS[SN_EEG_BANDS] = {{1, 4, "1_4"},     {4, 8, "4_8"},     {8, 13, "8_13"},
                         {13, 20, "13_20"}, {20, 30, "20_30"}, {30, 45, "30_45"}};

/* --- Welch --- */

struct sn_welch {
  int64_t n, hop;
  double rate, scale; /* of |X|^2 to density, two-sided */
  double *window;     /* (n) */
  sn_fft *fft;
};

sn_status sn_welch_create(double rate_hz, double piece_s, sn_welch **out, sn_error *err) {
  sn_status status;
  sn_welch *w = NULL;
  double length = floor(rate_hz * piece_s + 0.5), squares = 0.0;
  *out = NULL;
  if (!(rate_hz > 0.0) || !(length >= 4.0) || !(length <= 1e8))
    return sn_fail(err, SN_E_ARGUMENT, "spectrum: pieces of %g s at %g Hz have %g samples; 4 to 1e8 are possible",
                   piece_s, rate_hz, length);
  SN_TRY_GOTO(sn_alloc(&w, 1, sizeof *w, "spectrum", err), fail);
  w->n = (int64_t)length, w->hop = w->n - w->n / 2, w->rate = rate_hz;
  SN_TRY_GOTO(sn_alloc(&w->window, w->n, sizeof *w->window, "spectrum", err), fail);
  SN_TRY_GOTO(sn_fft_create(w->n, &w->fft, err), fail);
  for (int64_t i = 0; i < w->n; i++) {
    w->window[i] = 0.5 - 0.5 * cos(2.0 * PI * (double)i / (double)w->n);
    squares += w->window[i] * w->window[i];
  }
  w->scale = 1.0 / (rate_hz * squares);
  *out = w;
  return SN_OK;
fail:
  sn_welch_destroy(w);
  return status;
}

void sn_welch_destroy(sn_welch *welch) {
  if (welch == NULL) return;
  sn_fft_destroy(welch->fft);
  sn_free(welch->window);
  sn_free(welch);
}

int64_t sn_welch_bins(const sn_welch *welch) { return welch->n / 2 + 1; }
int64_t sn_welch_piece(const sn_welch *welch) { return welch->n; }
double sn_welch_resolution(const sn_welch *welch) { return welch->rate / (double)welch->n; }

/* y = (x - its least-squares line) * window; false where a sample is missing. */
static bool prepare_piece(double *y, const sn_welch *w, const double *x) {
  double n = (double)w->n, middle = (n - 1.0) / 2.0, sum = 0.0, moment = 0.0;
  for (int64_t i = 0; i < w->n; i++) {
    if (isnan(x[i])) return false;
    sum += x[i];
  }
  double mean = sum / n;
  for (int64_t i = 0; i < w->n; i++) moment += ((double)i - middle) * (x[i] - mean);
  double slope = moment / (n * (n * n - 1.0) / 12.0);
  for (int64_t i = 0; i < w->n; i++) y[i] = (x[i] - mean - slope * ((double)i - middle)) * w->window[i];
  return true;
}

sn_status sn_welch_add(double *sum, int64_t *n_pieces, const sn_welch *welch, const double *x, int64_t n,
                       sn_error *err) {
  sn_status status;
  double *y = NULL;
  double complex *spectrum = NULL;
  int64_t bins = sn_welch_bins(welch);
  if (n < welch->n) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&y, welch->n, sizeof *y, "piece of a signal", err), done);
  SN_TRY_GOTO(sn_alloc(&spectrum, bins, sizeof *spectrum, "spectrum", err), done);
  for (int64_t start = 0; start + welch->n <= n; start += welch->hop) {
    if (!prepare_piece(y, welch, x + start)) continue;
    SN_TRY_GOTO(sn_fft_forward(welch->fft, y, spectrum, err), done);
    for (int64_t k = 0; k < bins; k++) {
      bool alone = k == 0 || 2 * k == welch->n; /* no mirror image */
      double re = creal(spectrum[k]), im = cimag(spectrum[k]);
      sum[k] += (re * re + im * im) * welch->scale * (alone ? 1.0 : 2.0);
    }
    ++*n_pieces;
  }
  status = SN_OK;
done:
  sn_free(y);
  sn_free(spectrum);
  return status;
}

sn_status sn_welch_spectrum(double complex *spectrum, const sn_welch *welch, const double *x, sn_error *err) {
  double *y = NULL;
  SN_TRY(sn_alloc(&y, welch->n, sizeof *y, "piece of a signal", err));
  sn_status status = prepare_piece(y, welch, x)
                         ? sn_fft_forward(welch->fft, y, spectrum, err)
                         : sn_fail(err, SN_E_ARGUMENT, "spectrum: the piece has a missing sample");
  sn_free(y);
  return status;
}

double sn_band_power(const double *density, const sn_welch *welch, double low_hz, double high_hz) {
  double power = 0.0, step = sn_welch_resolution(welch);
  for (int64_t k = 0; k < sn_welch_bins(welch); k++) {
    double f = (double)k * welch->rate / (double)welch->n;
    if (f >= low_hz && f < high_hz) power += density[k];
  }
  return power * step;
}

/* --- names --- */

int64_t sn_eeg_feature_count(int64_t n_columns) { return SN_EEG_BANDS * n_columns; }

void sn_eeg_feature_name(char name[SN_FEATURE_NAME], int64_t i, const char *const *columns, int64_t n_columns) {
  if (i < 0 || i / SN_EEG_BANDS >= n_columns) {
    snprintf(name, SN_FEATURE_NAME, "?");
    return;
  }
  const char *column = columns[i / SN_EEG_BANDS];
  snprintf(name, SN_FEATURE_NAME, "%s_log_%s_hz", column[0] == '@' ? column + 1 : column, BANDS[i % SN_EEG_BANDS].name);
}

/* --- spectra of the series of a list --- */

/* The series of one rate, and what is summed for them. */
typedef struct pass {
  const sn_recording *recording;
  const sn_series_list *list;
  sn_welch *welch;
  int64_t per_frame;     /* samples per frame of its channels */
  const uint8_t *needed; /* (list->n) */
  double *sums;          /* (list->n, bins) */
  int64_t *pieces;       /* (list->n) */
  double **values;       /* (list->n_channels) samples of a block; NULL: not of this rate */
  int64_t *channels;     /* those that are read, ... */
  double **targets;      /* ... and where they go */
  double *mixed, *common;
  int64_t n_channels, room; /* room: samples in a block */
} pass;

static int64_t per_frame_of(const sn_recording *recording, const sn_series_list *list, int64_t series) {
  int64_t channel = list->terms[list->series[series].first_term].channel;
  return recording->channels[channel].samples_per_frame;
}

static void pass_free(pass *p) {
  for (int64_t i = 0; p->values != NULL && i < p->list->n_channels; i++) sn_free(p->values[i]);
  sn_free(p->values);
  sn_free(p->channels);
  sn_free(p->targets);
  sn_free(p->sums);
  sn_free(p->pieces);
  sn_free(p->mixed);
  sn_free(p->common);
  sn_welch_destroy(p->welch);
  p->welch = NULL;
}

static void mark_slots(const sn_series_list *list, int64_t first_term, int64_t n_terms, uint8_t *slots) {
  for (int64_t t = first_term; t < first_term + n_terms; t++) slots[list->terms[t].slot] = 1;
}

/* Room for blocks of at most some 4 million samples, a whole number of hops and one piece. */
static sn_status pass_prepare(pass *p, sn_error *err) {
  sn_status status;
  uint8_t *slots = NULL;
  const sn_series_list *list = p->list;
  double rate = (double)p->recording->rate_num / (double)p->recording->rate_den * (double)p->per_frame;
  SN_TRY(sn_welch_create(rate, PIECE_S, &p->welch, err));
  SN_TRY_GOTO(sn_alloc(&slots, list->n_channels, 1, "spectra", err), done);
  for (int64_t s = 0; s < list->n; s++) {
    if (!p->needed[s] || per_frame_of(p->recording, list, s) != p->per_frame) continue;
    const sn_series *series = &list->series[s];
    mark_slots(list, series->first_term, series->n_terms, slots);
    if (series->common < 0) continue;
    mark_slots(list, list->commons[series->common].first_term, list->commons[series->common].n_terms, slots);
  }
  for (int64_t i = 0; i < list->n_channels; i++) p->n_channels += slots[i];
  int64_t hops = 4000000 / (p->welch->hop * (p->n_channels + 1));
  p->room = (hops < 1 ? 0 : hops > 300 ? 299 : hops - 1) * p->welch->hop + p->welch->n + 2 * p->per_frame;
  SN_TRY_GOTO(sn_alloc(&p->values, list->n_channels, sizeof *p->values, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&p->channels, p->n_channels, sizeof *p->channels, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&p->targets, p->n_channels, sizeof *p->targets, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&p->mixed, p->room, sizeof *p->mixed, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&p->common, p->room, sizeof *p->common, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&p->sums, list->n * sn_welch_bins(p->welch), sizeof *p->sums, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&p->pieces, list->n, sizeof *p->pieces, "spectra", err), done);
  for (int64_t i = 0, k = 0; i < list->n_channels; i++) {
    if (!slots[i]) continue;
    SN_TRY_GOTO(sn_alloc(&p->values[i], p->room, sizeof **p->values, "spectra", err), done);
    p->channels[k] = list->channels[i], p->targets[k++] = p->values[i];
  }
  status = SN_OK;
done:
  sn_free(slots);
  return status;
}

static void combine(double *x, const pass *p, int64_t first_term, int64_t n_terms, int64_t offset, int64_t n) {
  memset(x, 0, (size_t)n * sizeof *x);
  for (int64_t t = first_term; t < first_term + n_terms; t++) {
    const double *values = p->values[p->list->terms[t].slot] + offset;
    double weight = p->list->terms[t].weight;
    for (int64_t i = 0; i < n; i++) x[i] += weight * values[i];
  }
}

/* Samples [first, first + count) of a segment, at most a block. */
static sn_status add_block(pass *p, int64_t segment, int64_t first, int64_t count, sn_error *err) {
  int64_t frame = first / p->per_frame, frames = (first + count + p->per_frame - 1) / p->per_frame - frame;
  int64_t offset = first - frame * p->per_frame, bins = sn_welch_bins(p->welch), made = -1;
  SN_TRY(sn_recording_read_channels(p->recording, p->channels, p->n_channels, segment, frame, frames, p->targets, err));
  for (int64_t s = 0; s < p->list->n; s++) {
    const sn_series *series = &p->list->series[s];
    if (!p->needed[s] || per_frame_of(p->recording, p->list, s) != p->per_frame) continue;
    combine(p->mixed, p, series->first_term, series->n_terms, offset, count);
    if (series->common >= 0) {
      const sn_series_common *common = &p->list->commons[series->common];
      if (made != series->common) combine(p->common, p, common->first_term, common->n_terms, offset, count);
      made = series->common;
      for (int64_t i = 0; i < count; i++) p->mixed[i] -= p->common[i];
    }
    SN_TRY(sn_welch_add(p->sums + s * bins, &p->pieces[s], p->welch, p->mixed, count, err));
  }
  return SN_OK;
}

/* Blocks overlap by a piece less a hop, so that every piece of the stretch is in exactly one. */
static sn_status add_stretch(pass *p, int64_t segment, int64_t first, int64_t count, sn_error *err) {
  int64_t n = p->welch->n, step = (p->room - 2 * p->per_frame - n) + p->welch->hop;
  for (int64_t done = 0; done + n <= count; done += step) {
    int64_t rest = count - done, block = step - p->welch->hop + n;
    SN_TRY(add_block(p, segment, first + done, rest < block ? rest : block, err));
  }
  return SN_OK;
}

static sn_status run_pass(pass *p, int64_t segment, double start_s, double duration_s, sn_error *err) {
  int64_t first_segment = duration_s < 0.0 ? 0 : segment;
  int64_t last = duration_s < 0.0 ? p->recording->n_segments : segment + 1;
  SN_TRY(pass_prepare(p, err));
  for (int64_t s = first_segment; s < last; s++) {
    int64_t count = p->recording->segments[s].n_frames * p->per_frame, first = 0;
    if (duration_s >= 0.0) {
      double from = floor(start_s * p->welch->rate + 0.5), to = floor((start_s + duration_s) * p->welch->rate + 0.5);
      first = from < (double)count ? (int64_t)from : count;
      count = (to < (double)count ? (int64_t)to : count) - first;
    }
    SN_TRY(add_stretch(p, s, first, count, err));
  }
  return SN_OK;
}

/* logs (list->n, SN_EEG_BANDS): of the series of this rate. */
static void take_logs(double *logs, pass *p) {
  int64_t bins = sn_welch_bins(p->welch);
  for (int64_t s = 0; s < p->list->n; s++) {
    if (p->pieces[s] == 0) continue;
    double *density = p->sums + s * bins;
    for (int64_t k = 0; k < bins; k++) density[k] /= (double)p->pieces[s];
    for (int b = 0; b < SN_EEG_BANDS; b++)
      if (BANDS[b].high <= p->welch->rate / 2.0)
        logs[s * SN_EEG_BANDS + b] = log10(sn_band_power(density, p->welch, BANDS[b].low, BANDS[b].high) + FLOOR);
  }
}

static bool column_has(const char *column, const sn_series *series) {
  if (column[0] != '@') return strcmp(column, series->name) == 0;
  return strcmp(column + 1, sn_sensor_kind_name(series->kind)) == 0;
}

/* Means over the series of each column that have a value. */
static void fill_features(double *features, const double *logs, const sn_series_list *list, const char *const *columns,
                          int64_t n_columns) {
  for (int64_t i = 0; i < n_columns; i++)
    for (int b = 0; b < SN_EEG_BANDS; b++) {
      double sum = 0.0;
      int64_t n = 0;
      for (int64_t s = 0; s < list->n; s++) {
        double value = logs[s * SN_EEG_BANDS + b];
        if (column_has(columns[i], &list->series[s]) && !isnan(value)) sum += value, n++;
      }
      features[i * SN_EEG_BANDS + b] = n > 0 ? sum / (double)n : NAN;
    }
}

sn_status sn_eeg_features(double *features, const sn_recording *recording, const sn_series_list *list,
                          const char *const *columns, int64_t n_columns, int64_t segment, double start_s,
                          double duration_s, sn_error *err) {
  sn_status status = SN_OK;
  double *logs = NULL;
  uint8_t *needed = NULL;
  int64_t n_needed = 0;
  if (duration_s >= 0.0 && (segment < 0 || segment >= recording->n_segments || !(start_s >= 0.0)))
    return sn_fail(err, SN_E_ARGUMENT, "EEG features: segment %lld of %lld, from %g s", (long long)segment,
                   (long long)recording->n_segments, start_s);
  SN_TRY_GOTO(sn_alloc(&logs, list->n * SN_EEG_BANDS, sizeof *logs, "band powers", err), done);
  SN_TRY_GOTO(sn_alloc(&needed, list->n, 1, "band powers", err), done);
  for (int64_t s = 0; s < list->n; s++) {
    for (int64_t i = 0; i < n_columns && !needed[s]; i++) needed[s] = column_has(columns[i], &list->series[s]);
    n_needed += needed[s];
  }
  if (n_needed == 0) {
    status = sn_fail(err, SN_E_ARGUMENT, "EEG features: none of the %lld columns (%s%s) is a series of this recording",
                     (long long)n_columns, n_columns > 0 ? columns[0] : "", n_columns > 1 ? ", ..." : "");
    goto done;
  }
  for (int64_t i = 0; i < list->n * SN_EEG_BANDS; i++) logs[i] = NAN;
  for (int64_t s = 0; s < list->n; s++) {
    bool seen = false; /* an earlier series of this rate */
    int64_t rate = per_frame_of(recording, list, s);
    for (int64_t k = 0; k < s; k++) seen = seen || (needed[k] && per_frame_of(recording, list, k) == rate);
    if (!needed[s] || seen) continue;
    pass p = {.recording = recording, .list = list, .per_frame = rate, .needed = needed};
    status = run_pass(&p, segment, start_s, duration_s, err);
    if (status == SN_OK) take_logs(logs, &p);
    pass_free(&p);
    if (status != SN_OK) goto done;
  }
  fill_features(features, logs, list, columns, n_columns);
done:
  sn_free(logs);
  sn_free(needed);
  return status;
}
