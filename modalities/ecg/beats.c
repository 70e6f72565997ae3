#include "modalities/ecg/beats.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "modalities/ecg/leads.h"
#include "modalities/signal/fir.h"

#define INTEGRATE_S 0.150
#define REFRACTORY_S 0.200
#define T_WAVE_S 0.360
#define LOCATE_S 0.075
#define SEARCH_BACK 1.66
#define LEARN_S 8
#define BLOCK_S 600.0
#define MARGIN_S 10.0
#define FLAT_MV 1e-6

typedef struct method {
  double high_hz;      /* upper edge of the detection band; the lower is 5 Hz */
  double first_rr_s;   /* mean RR until beats tell */
  double longest_rr_s; /* search-back at the latest after this */
  double shortest_rr_s;
  double learn_mv;     /* candidates of the learning period count from here; 0: all */
} method;

static const method METHODS[] = {{15.0, 1.0, 1e9, REFRACTORY_S, 0.0}, {20.0, 60.0 / 75, 60.0 / 25, 60.0 / 200, 0.13}};

sn_beat_options sn_beat_defaults(void) { return (sn_beat_options){.method = SN_BEATS_PAN_TOMPKINS, .lead = -1}; }

/* What the detector looks at: sums over leads, one lead or several. */
typedef struct features {
  int64_t n, n_leads;
  double rate;
  double *integrated; /* (n) moving mean of the squared slope, mean over leads */
  double *slope;      /* (n) squared slope, mean over leads: the T-wave check */
  double *located;    /* (n) squared 5-30 Hz signal, mean over leads */
  double *band;       /* (n) scratch */
  double *filtered;   /* (n) scratch */
  double *absolute, *work; /* (n) scratch */
} features;

static void features_free(features *f) {
  sn_free(f->integrated);
  sn_free(f->slope);
  sn_free(f->located);
  sn_free(f->band);
  sn_free(f->filtered);
  sn_free(f->absolute);
  sn_free(f->work);
  *f = (features){0}; /* a failed create leaves nothing to free twice */
}

static sn_status features_create(features *f, int64_t n, double rate, sn_error *err) {
  sn_status status;
  *f = (features){.n = n, .rate = rate};
  SN_TRY_GOTO(sn_alloc(&f->integrated, n, sizeof(double), "beat detector", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->slope, n, sizeof(double), "beat detector", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->located, n, sizeof(double), "beat detector", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->band, n, sizeof(double), "beat detector", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->filtered, n, sizeof(double), "beat detector", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->absolute, n, sizeof(double), "beat detector", err), fail);
  SN_TRY_GOTO(sn_alloc(&f->work, n, sizeof(double), "beat detector", err), fail);
  return SN_OK;
fail:
  features_free(f);
  return status;
}

/* Straight lines over missing samples, level before the first and after the last. False when all are missing. */
static bool bridge(double *x, int64_t n) {
  int64_t last = -1;
  for (int64_t i = 0; i < n; i++) {
    if (isnan(x[i])) continue;
    for (int64_t k = last + 1; k < i; k++)
      x[k] = last < 0 ? x[i] : x[last] + (x[i] - x[last]) * (double)(k - last) / (double)(i - last);
    last = i;
  }
  for (int64_t k = last + 1; k < n && last >= 0; k++) x[k] = x[last];
  return last >= 0;
}

/* The two filters of a method at one rate, made once per detection. */
typedef struct filters {
  sn_fir *detect, *locate;
} filters;

static void filters_free(filters *f) {
  sn_fir_destroy(f->detect);
  sn_fir_destroy(f->locate);
  *f = (filters){0};
}

static sn_status filters_create(filters *f, double rate, const method *m, sn_error *err) {
  sn_status status;
  *f = (filters){0};
  sn_fir_spec detect = {rate, 5.0, m->high_hz, 0.0}, locate = {rate, 5.0, 30.0, 0.0};
  if (!(rate > 40.0))
    return sn_fail(err, SN_E_ARGUMENT, "beat detector: %g Hz is too slow; more than 40 Hz is needed", rate);
  if (locate.high_hz > 0.4 * rate) locate.high_hz = 0.4 * rate; /* 61 Hz or less: what there is */
  SN_TRY_GOTO(sn_fir_create(&detect, &f->detect, err), fail);
  SN_TRY_GOTO(sn_fir_create(&locate, &f->locate, err), fail);
  return SN_OK;
fail:
  filters_free(f);
  return status;
}

/* What a lead's band-passed signal is between beats: its median |x|, so that a lead that rests between its peaks has
 * more say than one that is noise throughout; at least a twentieth of its deviation (a lead that is off most of the
 * time). */
static double resting_level(features *f, double std) {
  for (int64_t i = 0; i < f->n; i++) f->absolute[i] = fabs(f->band[i]);
  return fmax(sn_quantile(f->absolute, f->n, 0.5, f->work), std / 20.0);
}

/* Adds one lead, scaled by 1/scale of its own (1: as it is). x is bridged in place. */
static sn_status add_lead(features *f, const filters *fir, double *x, bool scaled, sn_error *err) {
  double *band = f->band, *filtered = f->filtered, scale = 1.0;
  if (f->n < 3 || !bridge(x, f->n)) return SN_OK;
  SN_TRY(sn_fir_apply(fir->detect, x, f->n, 0, f->n, band, err));
  SN_TRY(sn_fir_apply(fir->locate, x, f->n, 0, f->n, filtered, err));
  double std = sn_stats_of(band, f->n).std;
  if (!(std > FLAT_MV)) return SN_OK; /* flat: what is left is rounding */
  if (scaled) scale = 1.0 / resting_level(f, std);
  f->n_leads++;
  for (int64_t i = 0; i < f->n; i++) {
    double before = band[i > 0 ? i - 1 : 0], after = band[i + 1 < f->n ? i + 1 : f->n - 1];
    double slope = (after - before) * 0.5 * f->rate * scale, level = filtered[i] * scale;
    f->slope[i] += slope * slope;
    f->located[i] += level * level;
  }
  return SN_OK;
}

/* After the last lead: the moving mean, centred, shorter at the ends. */
static void integrate(features *f) {
  int64_t half = (int64_t)floor(INTEGRATE_S * f->rate / 2.0);
  double width = (double)(2 * half + 1), leads = f->n_leads > 0 ? (double)f->n_leads : 1.0;
  sn_sum sum = {0};
  for (int64_t i = 0; i < f->n; i++) f->slope[i] /= leads;
  for (int64_t i = -half; i < f->n; i++) {
    if (i + half < f->n) sn_sum_add(&sum, f->slope[i + half]);
    if (i - half - 1 >= 0) sn_sum_add(&sum, -f->slope[i - half - 1]);
    if (i >= 0) f->integrated[i] = fmax(sn_sum_value(&sum), 0.0) / width;
  }
}

/* --- decisions --- */

typedef struct candidate {
  int64_t at;
  double height, steepest; /* integrated value; largest squared slope nearby */
  bool beat;
  double confidence;
} candidate;

static double most_within(const double *x, int64_t n, int64_t centre, int64_t half, int64_t *where) {
  int64_t first = centre - half < 0 ? 0 : centre - half, last = centre + half >= n ? n - 1 : centre + half,
          best = first;
  for (int64_t i = first; i <= last; i++)
    if (x[i] > x[best]) best = i;
  if (where != NULL) *where = best;
  return x[best];
}

static sn_status find_candidates(const features *f, candidate **out, int64_t *n_out, sn_error *err) {
  candidate *list = NULL;
  int64_t n = 0, capacity = 0, refractory = (int64_t)(REFRACTORY_S * f->rate),
          half = (int64_t)(INTEGRATE_S * f->rate / 2);
  *out = NULL;
  *n_out = 0;
  for (int64_t i = 1; i + 1 < f->n; i++) {
    double h = f->integrated[i];
    if (!(h > f->integrated[i - 1]) || !(h >= f->integrated[i + 1])) continue;
    if (n > 0 && i - list[n - 1].at < refractory) {
      if (h > list[n - 1].height) list[n - 1] = (candidate){.at = i, .height = h};
      continue;
    }
    sn_status status = sn_grow(&list, &capacity, n + 1, sizeof *list, "beat candidates", err);
    if (status != SN_OK) {
      sn_free(list);
      return status;
    }
    list[n++] = (candidate){.at = i, .height = h};
  }
  for (int64_t i = 0; i < n; i++) list[i].steepest = most_within(f->slope, f->n, list[i].at, half, NULL);
  *out = list;
  *n_out = n;
  return SN_OK;
}

/* The level of signal to begin with: median of the highest values of the first seconds. */
static double first_level(const features *f, const method *m, const candidate *list, int64_t n) {
  double highest[LEARN_S], work[LEARN_S];
  int64_t seconds = 0;
  for (int64_t s = 0; s < LEARN_S; s++) {
    highest[seconds] = 0.0;
    for (int64_t i = 0; i < n; i++) {
      if (list[i].at < (int64_t)((double)s * f->rate) || list[i].at >= (int64_t)((double)(s + 1) * f->rate)) continue;
      double mv = sqrt(most_within(f->located, f->n, list[i].at, (int64_t)(LOCATE_S * f->rate), NULL));
      if (mv >= m->learn_mv && list[i].height > highest[seconds]) highest[seconds] = list[i].height;
    }
    if (highest[seconds] > 0.0) seconds++;
  }
  if (seconds == 0)
    for (int64_t i = 0; i < n; i++) highest[0] = fmax(i == 0 ? 0.0 : highest[0], list[i].height);
  return n == 0 ? 0.0 : seconds == 0 ? highest[0] : sn_quantile(highest, seconds, 0.5, work);
}

typedef struct decision {
  double spk, npk;
  double rr[8]; /* the last intervals, in samples */
  int64_t n_rr;
  int64_t last; /* index of the last beat among the candidates, -1 none */
  const method *method;
  double rate;
} decision;

static double threshold(const decision *d) { return d->npk + 0.25 * (d->spk - d->npk); }

static double mean_rr(const decision *d) {
  int64_t n = d->n_rr < 8 ? d->n_rr : 8;
  double sum = 0.0;
  for (int64_t i = 0; i < n; i++) sum += d->rr[i];
  return n < 2 ? d->method->first_rr_s * d->rate : sum / (double)n;
}

static bool t_wave(const decision *d, const candidate *list, int64_t i) {
  return d->last >= 0 && (double)(list[i].at - list[d->last].at) < T_WAVE_S * d->rate &&
         list[i].steepest < 0.25 * list[d->last].steepest; /* squares: half the slope */
}

static bool too_soon(const decision *d, const candidate *list, int64_t i) {
  return d->last >= 0 && (double)(list[i].at - list[d->last].at) < d->method->shortest_rr_s * d->rate;
}

static void accept(decision *d, candidate *list, int64_t i, double gain) {
  double height = fmin(list[i].height, 3.0 * d->spk);
  list[i].beat = true;
  list[i].confidence = fmin(fmax((list[i].height - d->npk) / fmax(d->spk - d->npk, 1e-300), 0.0), 1.0);
  if (d->last >= 0) d->rr[d->n_rr++ % 8] = (double)(list[i].at - list[d->last].at);
  d->spk += gain * (height - d->spk);
  d->last = i;
}

/* No beat for too long before position `now`: the highest candidate since that could be one becomes a beat. */
static bool search_back(decision *d, candidate *list, int64_t end, double now) {
  double limit = fmin(SEARCH_BACK * mean_rr(d), d->method->longest_rr_s * d->rate);
  double since = d->last >= 0 ? (double)list[d->last].at : 0.0;
  int64_t best = -1;
  if (now - since <= limit) return false;
  for (int64_t i = d->last + 1; i < end; i++)
    if (!t_wave(d, list, i) && !too_soon(d, list, i) && (best < 0 || list[i].height > list[best].height)) best = i;
  if (best < 0 || !(list[best].height > 0.5 * threshold(d))) return false;
  accept(d, list, best, 0.25);
  return true;
}

static void decide(const features *f, const method *m, candidate *list, int64_t n) {
  decision d = {.spk = first_level(f, m, list, n), .last = -1, .method = m, .rate = f->rate};
  d.npk = d.spk / 8.0;
  if (!(d.spk > 0.0)) return; /* a flat signal */
  for (int64_t i = 0; i < n; i++) {
    while (search_back(&d, list, i, (double)list[i].at)) continue;
    if (list[i].height > threshold(&d) && !t_wave(&d, list, i) && !too_soon(&d, list, i)) accept(&d, list, i, 0.125);
    else d.npk += 0.125 * (fmin(list[i].height, d.spk) - d.npk);
  }
  while (search_back(&d, list, n, (double)f->n)) continue;
}

/* R peaks of the features: sample numbers and confidences, fresh arrays. */
static sn_status detect(const features *f, const method *m, int64_t **peaks, float **confidence, int64_t *n_peaks,
                        sn_error *err) {
  sn_status status;
  candidate *list = NULL;
  int64_t n = 0, beats = 0, half = (int64_t)floor(LOCATE_S * f->rate + 0.5);
  *peaks = NULL, *confidence = NULL, *n_peaks = 0;
  SN_TRY(find_candidates(f, &list, &n, err));
  decide(f, m, list, n);
  for (int64_t i = 0; i < n; i++) beats += list[i].beat;
  SN_TRY_GOTO(sn_alloc(peaks, beats, sizeof **peaks, "R peaks", err), fail);
  SN_TRY_GOTO(sn_alloc(confidence, beats, sizeof **confidence, "R peaks", err), fail);
  for (int64_t i = 0; i < n; i++) {
    int64_t r = 0;
    if (!list[i].beat) continue;
    most_within(f->located, f->n, list[i].at, half, &r);
    if (*n_peaks > 0 && r <= (*peaks)[*n_peaks - 1]) continue; /* two candidates that share one peak are one beat */
    (*peaks)[*n_peaks] = r;
    (*confidence)[(*n_peaks)++] = (float)list[i].confidence;
  }
  sn_free(list);
  return SN_OK;
fail:
  sn_free(list);
  sn_free(*peaks);
  sn_free(*confidence);
  *peaks = NULL, *confidence = NULL;
  return status;
}

static sn_status find_method(sn_beat_method which, const method **out, sn_error *err) {
  if ((int)which < 0 || (int)which >= (int)(sizeof METHODS / sizeof *METHODS))
    return sn_fail(err, SN_E_ARGUMENT, "beat detector: method %d is not known", (int)which);
  *out = &METHODS[which];
  return SN_OK;
}

sn_status sn_beats_detect_signal(const double *x, int64_t n, double rate_hz, sn_beat_method which, int64_t **peaks,
                                 float **confidence, int64_t *n_peaks, sn_error *err) {
  sn_status status;
  features f = {0};
  filters fir = {0};
  const method *m = NULL;
  double *copy = NULL;
  float *certain = NULL;
  *peaks = NULL;
  *n_peaks = 0;
  if (confidence != NULL) *confidence = NULL;
  SN_TRY(find_method(which, &m, err));
  SN_TRY_GOTO(filters_create(&fir, rate_hz, m, err), done);
  SN_TRY_GOTO(features_create(&f, n, rate_hz, err), done);
  SN_TRY_GOTO(sn_alloc(&copy, n, sizeof *copy, "signal", err), done);
  if (n > 0) memcpy(copy, x, (size_t)n * sizeof *x);
  SN_TRY_GOTO(add_lead(&f, &fir, copy, false, err), done);
  integrate(&f);
  SN_TRY_GOTO(detect(&f, m, peaks, &certain, n_peaks, err), done);
  if (confidence != NULL) *confidence = certain;
  else sn_free(certain);
done:
  features_free(&f);
  filters_free(&fir);
  sn_free(copy);
  return status;
}

/* --- a recording --- */

typedef struct leads {
  int64_t n;
  int64_t channels[SN_LEADS_MOST];
  int32_t numbers[SN_LEADS_MOST]; /* -1: no lead that is known */
} leads;

static sn_status ecg_channels(const sn_recording *recording, leads *out, sn_error *err) {
  out->n = 0;
  for (int64_t c = 0; c < recording->n_channels && out->n < SN_LEADS_MOST; c++) {
    if (recording->channels[c].kind != SN_SENSOR_ECG) continue;
    out->channels[out->n] = c;
    out->numbers[out->n++] = (int32_t)sn_lead_find(recording->channels[c].name);
  }
  if (out->n == 0)
    return sn_fail(err, SN_E_ARGUMENT, "beat detector: none of the %lld channels is an ECG",
                   (long long)recording->n_channels);
  return SN_OK;
}

/* Longest segment of a channel: where leads are judged. */
static int64_t longest_segment(const sn_recording *recording, int64_t channel) {
  int64_t best = 0;
  for (int64_t s = 1; s < recording->n_segments; s++)
    if (sn_recording_samples(recording, channel, s) > sn_recording_samples(recording, channel, best)) best = s;
  return best;
}

/* Deviation and kurtosis of the 5-30 Hz signal of a lead's first minute (of its longest segment). */
static sn_status judge(const sn_recording *recording, int64_t channel, double *std, double *kurtosis, sn_error *err) {
  sn_status status;
  double rate = sn_recording_rate(recording, channel), *x = NULL, *y = NULL;
  int64_t segment = longest_segment(recording, channel), n = sn_recording_samples(recording, channel, segment);
  filters fir = {0};
  *std = *kurtosis = 0.0;
  if ((double)n > 60.0 * rate) n = (int64_t)(60.0 * rate);
  SN_TRY_GOTO(filters_create(&fir, rate, &METHODS[0], err), done);
  SN_TRY_GOTO(sn_alloc(&x, n, sizeof *x, "signal", err), done);
  SN_TRY_GOTO(sn_alloc(&y, n, sizeof *y, "signal", err), done);
  SN_TRY_GOTO(sn_recording_read(recording, channel, segment, 0, n, x, err), done);
  if (n > 0 && bridge(x, n)) {
    double fourth = 0.0;
    SN_TRY_GOTO(sn_fir_apply(fir.locate, x, n, 0, n, y, err), done);
    sn_stats stats = sn_stats_of(y, n);
    for (int64_t i = 0; i < n; i++) fourth += pow(y[i] - stats.mean, 4.0) / (double)n;
    *std = stats.std;
    *kurtosis = stats.std > 0.0 ? fourth / pow(stats.std, 4.0) : 0.0;
  }
done:
  sn_free(x);
  sn_free(y);
  filters_free(&fir);
  return status;
}

static sn_status choose_lead(const sn_recording *recording, const leads *all, int64_t *chosen, sn_error *err) {
  static const int32_t FIRST[] = {SN_LEAD_II, SN_LEAD_MLII, SN_LEAD_I, SN_LEAD_V5};
  double std, kurtosis, best = -1.0;
  *chosen = 0;
  if (all->n == 1) return SN_OK;
  for (size_t k = 0; k < sizeof FIRST / sizeof *FIRST; k++)
    for (int64_t i = 0; i < all->n; i++) {
      if (all->numbers[i] != FIRST[k]) continue;
      SN_TRY(judge(recording, all->channels[i], &std, &kurtosis, err));
      if (!(std > FLAT_MV)) continue; /* lead off */
      *chosen = i;
      return SN_OK;
    }
  for (int64_t i = 0; i < all->n; i++) {
    SN_TRY(judge(recording, all->channels[i], &std, &kurtosis, err));
    if (std > FLAT_MV && kurtosis > best) best = kurtosis, *chosen = i;
  }
  return SN_OK;
}

static sn_status pick(const sn_recording *recording, const sn_beat_options *options, leads *used, sn_error *err) {
  leads all = {0};
  SN_TRY(ecg_channels(recording, &all, err));
  *used = (leads){0};
  if (options->vote) { /* every lead that has the first one's rate */
    double rate = sn_recording_rate(recording, all.channels[0]);
    for (int64_t i = 0; i < all.n; i++) {
      if (sn_recording_rate(recording, all.channels[i]) != rate) continue;
      used->channels[used->n] = all.channels[i];
      used->numbers[used->n++] = all.numbers[i];
    }
    return SN_OK;
  }
  int64_t chosen = -1;
  if (options->lead >= 0) {
    for (int64_t i = 0; i < all.n && chosen < 0; i++)
      if (all.numbers[i] == options->lead) chosen = i;
    if (chosen < 0)
      return sn_fail(err, SN_E_ARGUMENT, "beat detector: lead %s is not in the recording", sn_lead_name(options->lead));
  } else {
    SN_TRY(choose_lead(recording, &all, &chosen, err));
  }
  used->n = 1;
  used->channels[0] = all.channels[chosen];
  used->numbers[0] = all.numbers[chosen];
  return SN_OK;
}

static sn_status append(sn_beats *beats, int64_t *capacity, double onset, int64_t segment, float confidence,
                        sn_error *err) {
  if (beats->n == *capacity) {
    int64_t room = *capacity < 64 ? 64 : 2 * *capacity;
    SN_TRY(sn_realloc(&beats->onset_s, room, sizeof *beats->onset_s, "R peaks", err));
    SN_TRY(sn_realloc(&beats->segment, room, sizeof *beats->segment, "R peaks", err));
    SN_TRY(sn_realloc(&beats->confidence, room, sizeof *beats->confidence, "R peaks", err));
    *capacity = room;
  }
  beats->onset_s[beats->n] = onset;
  beats->segment[beats->n] = segment;
  beats->confidence[beats->n++] = confidence;
  return SN_OK;
}

/* Where between samples a peak lies, in [-1/2, 1/2]. */
static double vertex(const double *y, int64_t n, int64_t at) {
  if (at < 1 || at + 1 >= n || y[at] < y[at - 1] || y[at] < y[at + 1]) return 0.0;
  const double bend = y[at - 1] - 2.0 * y[at] + y[at + 1];
  return bend < 0.0 ? fmin(fmax(0.5 * (y[at - 1] - y[at + 1]) / bend, -0.5), 0.5) : 0.0;
}

/* Beats whose R lies in [first, last) of a segment, looked at with a margin on either side. */
static sn_status detect_block(const sn_recording *recording, const method *m, const filters *fir, const leads *used,
                              bool subsample, int64_t segment, int64_t first, int64_t last, sn_beats *beats,
                              int64_t *capacity, sn_error *err) {
  sn_status status;
  double rate = sn_recording_rate(recording, used->channels[0]), *x = NULL;
  int64_t n = sn_recording_samples(recording, used->channels[0], segment), margin = (int64_t)(MARGIN_S * rate);
  int64_t lo = first > margin ? first - margin : 0, hi = n - last > margin ? last + margin : n, n_peaks = 0,
          *peaks = NULL;
  float *confidence = NULL;
  features f = {0};
  SN_TRY_GOTO(features_create(&f, hi - lo, rate, err), done);
  SN_TRY_GOTO(sn_alloc(&x, hi - lo, sizeof *x, "signal", err), done);
  for (int64_t l = 0; l < used->n; l++) {
    SN_TRY_GOTO(sn_recording_read(recording, used->channels[l], segment, lo, hi - lo, x, err), done);
    SN_TRY_GOTO(add_lead(&f, fir, x, used->n > 1, err), done);
  }
  integrate(&f);
  SN_TRY_GOTO(detect(&f, m, &peaks, &confidence, &n_peaks, err), done);
  for (int64_t i = 0; i < n_peaks; i++) {
    int64_t at = lo + peaks[i];
    if (at < first || at >= last) continue;
    const double between = subsample ? vertex(f.located, f.n, peaks[i]) : 0.0;
    double onset = recording->segments[segment].start_s + ((double)at + between) / rate;
    /* The same beat, seen from both sides of a block's edge. */
    if (beats->n > 0 && beats->segment[beats->n - 1] == segment && onset - beats->onset_s[beats->n - 1] < REFRACTORY_S)
      continue;
    SN_TRY_GOTO(append(beats, capacity, onset, segment, confidence[i], err), done);
  }
done:
  features_free(&f);
  sn_free(x);
  sn_free(peaks);
  sn_free(confidence);
  return status;
}

sn_status sn_beats_detect(const sn_recording *recording, const sn_beat_options *options, sn_beats **out,
                          sn_error *err) {
  sn_status status;
  const sn_beat_options defaults = sn_beat_defaults();
  const method *m = NULL;
  leads used = {0};
  filters fir = {0};
  sn_beats *beats = NULL;
  int64_t capacity = 0;
  *out = NULL;
  if (options == NULL) options = &defaults;
  SN_TRY(find_method(options->method, &m, err));
  SN_TRY(pick(recording, options, &used, err));
  double rate = sn_recording_rate(recording, used.channels[0]);
  SN_TRY_GOTO(filters_create(&fir, rate, m, err), fail);
  SN_TRY_GOTO(sn_alloc(&beats, 1, sizeof *beats, "R peaks", err), fail);
  beats->lead = options->vote ? -1 : used.numbers[0];
  beats->channel = options->vote ? -1 : used.channels[0];
  int64_t block = (int64_t)(BLOCK_S * rate);
  for (int64_t s = 0; s < recording->n_segments; s++) {
    int64_t n = sn_recording_samples(recording, used.channels[0], s);
    for (int64_t first = 0; first < n; first += block) {
      int64_t last = n - first < block ? n : first + block;
      SN_TRY_GOTO(detect_block(recording, m, &fir, &used, options->subsample, s, first, last, beats,
                               &capacity, err), fail);
    }
  }
  filters_free(&fir);
  *out = beats;
  return SN_OK;
fail:
  filters_free(&fir);
  sn_beats_destroy(beats);
  return status;
}

void sn_beats_destroy(sn_beats *beats) {
  if (beats == NULL) return;
  sn_free(beats->onset_s);
  sn_free(beats->segment);
  sn_free(beats->confidence);
  sn_free(beats);
}
