/* Rows, samples and settings of beat tokens. */
#include "modalities/ecg/beat_tokens.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/json.h"
#include "modalities/signal/augment.h"

#define LEAST_RATE_HZ 40.0 /* the detector's (beats.h): more than this */
#define BAND_LOW_HZ 5.0
#define BAND_HIGH_HZ 15.0

/* ---- settings --------------------------------------------------------------------------------------------------- */

const sn_config_entry sn_beat_token_config[] = {
    {"data.beat_length", SN_CONFIG_INT, "64", 4, 65536, NULL, NULL, "beat tokens: values of a beat (L)"},
    {"data.beat_features", SN_CONFIG_CHOICE, "concat", 0, 0, NULL, "concat|embedding|none",
     "beat tokens: RR, RR before over RR, log RR over median, place in the recording, confidence - behind the values of a beat, "
     "embedded apart and added, or left out"},
    {"data.beat_patch", SN_CONFIG_QUANTITY, "0.8 s", 0.01, 3600, "s", NULL,
     "beat tokens: patches of a window in which no beat was found, and the unit step of time (beat_pad: data.beat_length samples)"},
    {"data.beat_detect", SN_CONFIG_CHOICE, "lead", 0, 0, NULL, "lead|vote", "beat tokens: beats of the best lead, or of all together"},
    {"data.beat_plan", SN_CONFIG_CHOICE, "bound", 0, 0, NULL, "bound|scan",
     "beat tokens: room for windows from their length alone (300 beats a minute), or from the beats of each recording, found once "
     "before training: packs are then fuller"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

static const char *const MODES[] = {"", "beat_pad", "beat_resample", "beat_adaptive"};
static const char *const EXTRAS[] = {"concat", "embedding", "none"};

sn_beat_mode sn_beat_mode_of(const sn_config *config) {
  if (!sn_config_has_key(config, "data.tokens") || !sn_config_has_key(config, "data.beat_length")) return SN_BEAT_NONE;
  const char *name = sn_config_text(config, "data.tokens");
  for (int m = SN_BEAT_PAD; m <= SN_BEAT_ADAPTIVE; m++)
    if (strcmp(name, MODES[m]) == 0) return (sn_beat_mode)m;
  return SN_BEAT_NONE;
}

/* Beats are found on the conditioned signal: what the detector looks at must be in it. */
static sn_status check_band(const sn_config *config, sn_error *err) {
  const double rate = sn_config_real(config, "data.rate"), low = sn_config_real(config, "data.filter_low"),
               high = sn_config_real(config, "data.filter_high");
  if (!(rate > LEAST_RATE_HZ))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.rate", "data.rate: beats are found above %g Hz; %g Hz is too slow for "
                      "data.tokens: %s", LEAST_RATE_HZ, rate, sn_config_text(config, "data.tokens"));
  if (low <= BAND_LOW_HZ && (high == 0 || high >= BAND_HIGH_HZ)) return SN_OK;
  const char *key = low > BAND_LOW_HZ ? "data.filter_low" : "data.filter_high";
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, key, "%s: beats are found in what lies between %g and %g Hz, which this filter takes "
                    "away (data.tokens: %s)", key, BAND_LOW_HZ, BAND_HIGH_HZ, sn_config_text(config, "data.tokens"));
}

sn_status sn_beat_token_options_from_config(const sn_config *config, sn_beat_token_options *out, sn_error *err) {
  sn_beat_token_options o = {.mode = sn_beat_mode_of(config)};
  *out = (sn_beat_token_options){.mode = SN_BEAT_NONE};
  if (o.mode == SN_BEAT_NONE) return SN_OK;
  const char *extra = sn_config_text(config, "data.beat_features"), *modality = sn_config_text(config, "data.modality");
  const double rate = sn_config_real(config, "data.rate");
  while (strcmp(EXTRAS[o.extra], extra) != 0) o.extra++;
  o.length = sn_config_int(config, "data.beat_length");
  o.patch_s = o.mode == SN_BEAT_PAD ? (double)o.length / rate : sn_config_real(config, "data.beat_patch");
  o.vote = strcmp(sn_config_text(config, "data.beat_detect"), "vote") == 0;
  o.scan = strcmp(sn_config_text(config, "data.beat_plan"), "scan") == 0;
  if (strcmp(modality, "ecg") != 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.tokens", "data.tokens: %s finds beats in ECG; data.modality is %s",
                      MODES[o.mode], modality);
  SN_TRY(check_band(config, err));
  if (o.patch_s < SN_BEAT_NEAREST_S || o.patch_s > sn_config_real(config, "data.window"))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, o.mode == SN_BEAT_PAD ? "data.beat_length" : "data.beat_patch",
                      "%s: a window without beats is cut into patches of %g s; at least %g s, and at most data.window, is needed",
                      o.mode == SN_BEAT_PAD ? "data.beat_length" : "data.beat_patch", o.patch_s, SN_BEAT_NEAREST_S);
  *out = o;
  return SN_OK;
}

static int64_t extras(const sn_beat_token_options *o) { return o->extra == SN_BEAT_EXTRA_NONE ? 0 : SN_BEAT_FEATURES; }
int64_t sn_beat_patch_size(const sn_beat_token_options *o) { return o->length + extras(o); }

int64_t sn_beat_most_in(const sn_beat_token_options *o, double window_s) {
  (void)o; /* the fall-back's patches are longer than the least interval */
  return (int64_t)floor(window_s / SN_BEAT_NEAREST_S * (1 + 1e-12)) + 1;
}

void sn_beat_write_json(const sn_beat_token_options *o, sn_json_writer *w) {
  sn_json_put_string(w, "tokens", MODES[o->mode]);
  sn_json_put_string(w, "beat_features", EXTRAS[o->extra]);
  sn_json_put_i64(w, "beat_length", o->length);
  sn_json_put_f64(w, "beat_patch_s", o->patch_s);
  sn_json_put_string(w, "beat_detect", o->vote ? "vote" : "lead");
  sn_json_put_string(w, "beat_plan", o->scan ? "scan" : "bound");
}

/* ---- rows --------------------------------------------------------------------------------------------------------- */

typedef struct lead {
  const double *x;
  const uint8_t *ok;
  int64_t n, first;
} lead;

static bool measured(const lead *l, int64_t sample) {
  return sample >= l->first && sample < l->first + l->n && l->ok[sample - l->first];
}

/* Samples as they are: value j is sample `zero` + j, inside [begin, end). */
static void copy_samples(float *row, uint8_t *valid, int64_t length, const lead *l, int64_t zero, double begin, double end) {
  for (int64_t j = 0; j < length; j++) {
    const int64_t k = zero + j;
    valid[j] = (double)k >= begin && (double)k < end && measured(l, k);
    row[j] = valid[j] ? (float)l->x[k - l->first] : 0.0f;
  }
}

/* begin, end in samples. */
static void interpolate(float *row, uint8_t *valid, int64_t length, const lead *l, double begin, double end) {
  for (int64_t j = 0; j < length; j++) {
    const double at = begin + ((double)j + 0.5) * (end - begin) / (double)length, below = floor(at), w = at - below;
    const int64_t k = (int64_t)below;
    valid[j] = measured(l, k) && (w == 0.0 || measured(l, k + 1));
    row[j] = !valid[j] ? 0.0f
             : w == 0.0 ? (float)l->x[k - l->first]
                        : (float)((1.0 - w) * l->x[k - l->first] + w * l->x[k + 1 - l->first]);
  }
}

/* Sample k stands for [k - 1/2, k + 1/2). */
static void average(float *row, uint8_t *valid, int64_t length, const lead *l, double begin, double end) {
  const double width = (end - begin) / (double)length;
  for (int64_t j = 0; j < length; j++) {
    const double from = begin + (double)j * width, to = begin + (double)(j + 1) * width;
    double sum = 0.0, area = 0.0;
    for (int64_t k = (int64_t)floor(from + 0.5); (double)k - 0.5 < to; k++) {
      const double part = fmin(to, (double)k + 0.5) - fmax(from, (double)k - 0.5);
      if (!(part > 0.0) || !measured(l, k)) continue;
      sum += part * l->x[k - l->first];
      area += part;
    }
    valid[j] = area > 0.0 && area >= 0.5 * (to - from) * (1 - 1e-9);
    row[j] = valid[j] ? (float)(sum / area) : 0.0f;
  }
}

void sn_beat_row(float *row, uint8_t *valid, sn_beat_mode mode, int64_t length, const double *x, const uint8_t *ok,
                 int64_t n, int64_t first, double rate_hz, double begin_s, double end_s, double r_s) {
  const lead l = {x, ok, n, first};
  const double begin = begin_s * rate_hz, end = end_s * rate_hz;
  if (mode == SN_BEAT_PAD) {
    copy_samples(row, valid, length, &l, (int64_t)floor(r_s * rate_hz + 0.5) - 2 * length / 5, begin, end);
  } else if (mode == SN_BEAT_RESAMPLE) {
    interpolate(row, valid, length, &l, begin, end);
  } else {
    average(row, valid, length, &l, begin, end);
  }
}

/* ---- a window ----------------------------------------------------------------------------------------------------- */

typedef struct span {
  const sn_series_list *list;
  int64_t n, first; /* samples of every series, and the number of the first in the segment */
  double rate_hz;
  double *values; /* (list->n, n) */
  uint8_t *valid;
  sn_window_info *info;
} span;

/* Stretches of a window: its beats, or the patches of the fall-back. */
typedef struct stretches {
  int64_t n;
  const sn_beat *beats;
  sn_beat *own;
  bool nobeat;
} stretches;

static sn_status fall_back(const sn_beat_token_options *o, double start_s, double window_s, stretches *out, sn_error *err) {
  out->n = (int64_t)floor(window_s / o->patch_s * (1 + 1e-12));
  out->nobeat = true;
  SN_TRY(sn_alloc(&out->own, out->n, sizeof *out->own, "beat tokens", err));
  for (int64_t i = 0; i < out->n; i++) {
    sn_beat *b = &out->own[i];
    b->begin_s = start_s + (double)i * o->patch_s;
    b->end_s = start_s + (double)(i + 1) * o->patch_s;
    b->r_s = 0.5 * (b->begin_s + b->end_s);
  }
  out->beats = out->own;
  return SN_OK;
}

/* What of the segment is read: the stretches, rounded outwards to samples, inside the segment. */
static sn_status measure_span(const sn_signal *signal, const sn_recording *recording, const sn_series_list *list,
                              int64_t segment, const stretches *s, span *out, sn_error *err) {
  const sn_beat *b = s->beats;
  double from = b[0].begin_s, to = b[0].end_s;
  int64_t most = INT64_MAX;
  for (int64_t c = 0; c < list->n_channels; c++) {
    int64_t n = 0;
    SN_TRY(sn_conditioner_samples(sn_signal_conditioner(signal), recording, list->channels[c], segment, &n, err));
    if (n < most) most = n;
  }
  for (int64_t i = 1; i < s->n; i++) {
    from = fmin(from, b[i].begin_s);
    to = fmax(to, b[i].end_s);
  }
  sn_channel_plan plan;
  SN_TRY(sn_conditioner_plan(sn_signal_conditioner(signal), recording, list->channels[0], &plan, err));
  out->list = list;
  out->rate_hz = plan.rate_hz;
  out->first = (int64_t)floor(from * out->rate_hz);
  if (out->first < 0) out->first = 0;
  int64_t end = (int64_t)ceil(to * out->rate_hz) + 1;
  if (end > most) end = most;
  out->n = end - out->first;
  if (out->n < 1)
    return sn_fail(err, SN_E_ARGUMENT, "beats at %g s of a segment of %lld samples", from, (long long)most);
  return SN_OK;
}

static sn_status read_span(const sn_signal *signal, const sn_recording *recording, int64_t segment,
                           const sn_signal_stats *stats, span *w, sn_error *err) {
  int64_t all = 0;
  if (!sn_mul_ok(w->list->n, w->n, &all)) return sn_fail(err, SN_E_MEMORY, "beat tokens: too many samples");
  SN_TRY(sn_alloc(&w->values, all, sizeof *w->values, "beat tokens", err));
  SN_TRY(sn_alloc(&w->valid, all, 1, "beat tokens", err));
  SN_TRY(sn_alloc(&w->info, w->list->n, sizeof *w->info, "beat tokens", err));
  SN_TRY(sn_signal_read_span(signal, recording, w->list, segment, (double)w->first / w->rate_hz, w->n, stats, w->values,
                             w->valid, w->info, err));
  return sn_signal_judge_window(signal, w->info, w->list->n, w->n, (double)w->first / w->rate_hz, err);
}

static void free_span(span *w) {
  sn_free(w->values);
  sn_free(w->valid);
  sn_free(w->info);
}

/* One row of P values; whether it has any that is valid. */
static bool make_row(const sn_beat_token_options *o, const span *w, int64_t s, const stretches *all, int64_t i, float *row,
                     uint8_t *valid) {
  const sn_beat *b = &all->beats[i];
  const double *x = w->values + s * w->n;
  const uint8_t *ok = w->valid + s * w->n;
  bool any = false;
  if (all->nobeat && o->mode == SN_BEAT_PAD) {
    const lead l = {x, ok, w->n, w->first};
    const int64_t begin = (int64_t)floor(b->begin_s * w->rate_hz + 0.5);
    copy_samples(row, valid, o->length, &l, begin, (double)begin, (double)(begin + o->length));
  } else {
    sn_beat_row(row, valid, o->mode, o->length, x, ok, w->n, w->first, w->rate_hz, b->begin_s, b->end_s, b->r_s);
  }
  for (int64_t j = 0; j < o->length; j++) any = any || valid[j];
  for (int64_t k = 0; k < extras(o); k++) {
    row[o->length + k] = b->features[k];
    valid[o->length + k] = b->known[k];
  }
  return any;
}

/* Variance below what a normalised target can be made of (as of fixed patches). */
static bool flat_row(const float *x, const uint8_t *valid, int64_t n) {
  double sum = 0.0, squares = 0.0;
  int64_t used = 0;
  for (int64_t j = 0; j < n; j++) sum += valid[j] ? (double)x[j] : 0.0, used += valid[j];
  for (int64_t j = 0; j < n; j++)
    squares += valid[j] ? ((double)x[j] - sum / (double)used) * ((double)x[j] - sum / (double)used) : 0.0;
  return squares / (double)used < 1e-8;
}

static void put_token(const sn_series *series, int64_t s, const sn_beat *b, int64_t i, double start_s, sn_sample *sample,
                      int64_t t) {
  for (int k = 0; k < 3; k++) {
    sample->coordinates[4 * t + k] = series->has_position ? (float)series->position_m[k] : 0.0f;
    sample->orientations[3 * t + k] = (float)series->orientation[k];
  }
  sample->coordinates[4 * t + 3] = (float)(b->r_s - start_s);
  sample->channels[t] = series->id;
  sample->positions[t] = (int32_t)i;
  sample->series[t] = (int32_t)s;
  sample->sensors[t] = (uint8_t)series->kind;
}

static sn_status make_sample(const sn_beat_token_options *o, const span *w, const stretches *all, double start_s,
                             sn_sample **out, sn_error *err) {
  const int64_t P = sn_beat_patch_size(o), most = w->list->n * all->n;
  sn_sample *sample = NULL;
  int64_t t = 0, n_valid = 0;
  SN_TRY(sn_sample_create(most, P, true, &sample, err));
  for (int64_t s = 0; s < w->list->n; s++)
    for (int64_t i = 0; i < all->n; i++) {
      float *row = sample->patches + t * P;
      uint8_t *valid = sample->valid + t * P;
      if (!make_row(o, w, s, all, i, row, valid)) continue;
      put_token(&w->list->series[s], s, &all->beats[i], i, start_s, sample, t);
      sample->flat_patches += flat_row(row, valid, o->length);
      for (int64_t j = 0; j < P; j++) n_valid += valid[j];
      t++;
    }
  if (t == 0) {
    sn_sample_destroy(sample);
    return sn_fail(err, SN_END, "window at %g s: no beat has a measured sample", start_s);
  }
  sample->n_tokens = t;
  memset(sample->patches + t * P, 0, (size_t)((most - t) * P) * sizeof *sample->patches);
  sample->nobeat = all->nobeat;
  if (n_valid == t * P) { /* as everywhere: no list where everything is valid */
    sn_free(sample->valid);
    sample->valid = NULL;
  }
  *out = sample;
  return SN_OK;
}

sn_status sn_beat_read_sample(const sn_signal *signal, const sn_beat_token_options *o, const sn_recording *recording,
                              const sn_series_list *list, int64_t segment, double start_s, const sn_signal_stats *stats,
                              const sn_beat *beats, int64_t n_beats, const sn_augments *augments, const sn_random *random,
                              sn_sample **out, sn_error *err) {
  const double window_s = sn_signal_window_seconds(signal);
  stretches all = {.n = n_beats, .beats = beats};
  span w = {0};
  sn_status status;
  *out = NULL;
  if (list->n == 0) return sn_fail(err, SN_E_ARGUMENT, "a window of no series");
  if (segment < 0 || segment >= recording->n_segments)
    return sn_fail(err, SN_E_ARGUMENT, "a window of segment %lld; there are %lld", (long long)segment,
                   (long long)recording->n_segments);
  if (n_beats == 0) SN_TRY_GOTO(fall_back(o, start_s, window_s, &all, err), done);
  SN_TRY_GOTO(measure_span(signal, recording, list, segment, &all, &w, err), done);
  SN_TRY_GOTO(read_span(signal, recording, segment, stats, &w, err), done);
  if (augments != NULL) {
    sn_augment_window a = {.n_series = list->n, .n_samples = w.n, .rate_hz = w.rate_hz, .values = w.values, .valid = w.valid,
                           .series = list->series};
    SN_TRY_GOTO(sn_augments_apply(augments, random, &a, err), done);
  }
  SN_TRY_GOTO(make_sample(o, &w, &all, start_s, out, err), done);
  (*out)->recording = -1;
  (*out)->start_s = recording->segments[segment].start_s + start_s;
  (*out)->duration_s = window_s;
done:
  free_span(&w);
  sn_free(all.own);
  return status;
}
