#include "modalities/ecg/ecg.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

#define FLAT_VARIANCE 1e-8

struct sn_ecg {
  sn_ecg_options options;
  sn_conditioner *conditioner;
  double rate_hz;
  int64_t patch, window; /* samples at the target rate */
};

sn_ecg_options sn_ecg_defaults(void) {
  sn_ecg_options o = {.condition = sn_condition_defaults()};
  o.condition.filter_low_hz = 0.5;
  o.condition.filter_high_hz = 40.0;
  o.condition.rate_num = 100;
  o.condition.rate_den = 1;
  o.condition.normalize = SN_NORMALIZE_ZSCORE_WINDOW;
  o.condition.clip = 8.0;
  return o;
}

static sn_status whole_samples(int64_t *out, double seconds, double rate, const char *key, sn_error *err) {
  double n = seconds * rate;
  if (!(n >= 0.5) || !(n < 1e9) || fabs(n - floor(n + 0.5)) > 1e-6 * n)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, key, "%s: %g s at %g Hz is %g samples; a whole number is needed", key,
                      seconds, rate, n);
  *out = (int64_t)floor(n + 0.5);
  return SN_OK;
}

/* The divisors of the window nearest to the wanted patch, for the message. */
static void near_divisors(int64_t window, int64_t patch, int64_t *below, int64_t *above) {
  *below = 1, *above = window;
  for (int64_t d = patch; d >= 1; d--)
    if (window % d == 0) {
      *below = d;
      break;
    }
  for (int64_t d = patch; d <= window; d++)
    if (window % d == 0) {
      *above = d;
      break;
    }
}

sn_status sn_ecg_create(const sn_ecg_options *options, sn_ecg **out, sn_error *err) {
  sn_status status;
  sn_ecg *e = NULL;
  const sn_condition_options *c = &options->condition;
  *out = NULL;
  if (c->rate_num <= 0 || c->rate_den <= 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.rate",
                      "data.rate: a target rate is needed to cut patches of one size");
  if (!(options->stride_s >= 0.0) || !isfinite(options->stride_s))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.stride", "data.stride: %g s", options->stride_s);
  if (options->n_leads < 0 || options->n_leads > SN_LEADS_MOST)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: %lld leads", (long long)options->n_leads);
  for (int64_t i = 0; i < options->n_leads; i++)
    for (int64_t j = 0; j < i; j++)
      if (options->leads[i] == options->leads[j])
        return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "ecg.leads", "ecg.leads: %s is given twice",
                          sn_lead_name(options->leads[i]));
  SN_TRY_GOTO(sn_alloc(&e, 1, sizeof *e, "ECG pipeline", err), fail);
  e->options = *options;
  e->rate_hz = (double)c->rate_num / (double)c->rate_den;
  SN_TRY_GOTO(whole_samples(&e->window, c->window_s, e->rate_hz, "data.window", err), fail);
  SN_TRY_GOTO(whole_samples(&e->patch, c->patch_s, e->rate_hz, "data.patch", err), fail);
  if (e->window % e->patch != 0) {
    int64_t below, above;
    near_divisors(e->window, e->patch, &below, &above);
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.patch",
                        "data.patch: %g s (%lld samples) does not divide the window "
                        "of %g s (%lld samples); %g s and %g s do",
                        c->patch_s, (long long)e->patch, c->window_s, (long long)e->window, (double)below / e->rate_hz,
                        (double)above / e->rate_hz);
    goto fail;
  }
  if (e->options.stride_s == 0.0) e->options.stride_s = (double)e->window / e->rate_hz;
  SN_TRY_GOTO(sn_conditioner_create(c, &e->conditioner, err), fail);
  *out = e;
  return SN_OK;
fail:
  sn_ecg_destroy(e);
  return status;
}

void sn_ecg_destroy(sn_ecg *e) {
  if (e == NULL) return;
  sn_conditioner_destroy(e->conditioner);
  sn_free(e);
}

const sn_ecg_options *sn_ecg_get_options(const sn_ecg *e) { return &e->options; }
sn_conditioner *sn_ecg_conditioner(sn_ecg *e) { return e->conditioner; }
int64_t sn_ecg_patch_size(const sn_ecg *e) { return e->patch; }
int64_t sn_ecg_window_patches(const sn_ecg *e) { return e->window / e->patch; }
double sn_ecg_window_seconds(const sn_ecg *e) { return (double)e->window / e->rate_hz; }
double sn_ecg_stride_seconds(const sn_ecg *e) { return e->options.stride_s; }
bool sn_ecg_needs_stats(const sn_ecg *e) { return e->options.condition.normalize == SN_NORMALIZE_ZSCORE_RECORD; }

/* --- the window grid --- */

static void grid(const sn_ecg *e, const sn_channel_plan *plan, int64_t n_samples, int64_t *n_windows,
                 double *last_start_s) {
  int64_t room = sn_resampled_length(plan->ratio, n_samples) - e->window;
  *n_windows = 0;
  *last_start_s = 0.0;
  if (room < 0) return;
  *last_start_s = (double)room / plan->rate_hz;
  /* The last window's first sample is floor(i stride rate + 1/2), which must be at most room. */
  int64_t i = (int64_t)floor(((double)room + 0.5) / (e->options.stride_s * plan->rate_hz));
  while (i > 0 && floor((double)i * e->options.stride_s * plan->rate_hz + 0.5) > (double)room) i--;
  *n_windows = i + 1;
}

sn_status sn_ecg_count_windows(sn_ecg *e, int64_t native_num, int64_t native_den, int64_t n_samples, int64_t *n_windows,
                               double *last_start_s, sn_error *err) {
  sn_channel_plan plan;
  SN_TRY(sn_conditioner_plan_rate(e->conditioner, native_num, native_den, n_samples, &plan, err));
  grid(e, &plan, n_samples, n_windows, last_start_s);
  return SN_OK;
}

static sn_status select_leads(const sn_ecg *e, const sn_recording *recording, sn_lead_source *sources, int64_t *n,
                              sn_error *err) {
  return sn_leads_select(recording, e->options.leads, e->options.n_leads, e->options.derive_leads, sources, n, err);
}

/* The channel whose rate and length a lead has. */
static int64_t carrier(const sn_lead_source *source) {
  return source->channel >= 0 ? source->channel : source->channel_i;
}

sn_status sn_ecg_segment_windows(sn_ecg *e, const sn_recording *recording, int64_t segment, int64_t *n_windows,
                                 double *last_start_s, sn_error *err) {
  sn_lead_source sources[SN_LEADS_MOST];
  int64_t n = 0;
  *n_windows = 0;
  *last_start_s = 0.0;
  SN_TRY(select_leads(e, recording, sources, &n, err));
  if (segment < 0 || segment >= recording->n_segments)
    return sn_fail(err, SN_E_ARGUMENT, "ECG windows: segment %lld of %lld", (long long)segment,
                   (long long)recording->n_segments);
  for (int64_t i = 0; i < n; i++) {
    sn_channel_plan plan;
    int64_t count = 0;
    double last = 0.0;
    SN_TRY(sn_conditioner_plan(e->conditioner, recording, carrier(&sources[i]), &plan, err));
    grid(e, &plan, sn_recording_samples(recording, carrier(&sources[i]), segment), &count, &last);
    if (i == 0 || count < *n_windows) *n_windows = count;
    if (i == 0 || last < *last_start_s) *last_start_s = last;
  }
  return SN_OK;
}

sn_status sn_ecg_nominal_tokens(const sn_ecg *e, const sn_recording *recording, int64_t *n, sn_error *err) {
  sn_lead_source sources[SN_LEADS_MOST];
  int64_t leads = 0;
  *n = 0;
  SN_TRY(select_leads(e, recording, sources, &leads, err));
  *n = leads * sn_ecg_window_patches(e);
  return SN_OK;
}

int64_t sn_ecg_nominal_tokens_names(const sn_ecg *e, const char *const *names, int64_t n_names) {
  return sn_ecg_window_patches(e) *
         sn_leads_count_names(names, n_names, e->options.leads, e->options.n_leads, e->options.derive_leads);
}

/* --- one lead --- */

/* Conditioned samples [first, first + count) of a lead, not normalised; work (count) and work_valid (count) for
 * derived. */
static sn_status lead_range(sn_ecg *e, const sn_recording *recording, const sn_lead_source *s, int64_t segment,
                            int64_t first, int64_t count, double *values, uint8_t *valid, double *work,
                            uint8_t *work_valid, sn_error *err) {
  if (s->channel >= 0)
    return sn_conditioner_range(e->conditioner, recording, s->channel, segment, first, count, values, valid, err);
  SN_TRY(sn_conditioner_range(e->conditioner, recording, s->channel_i, segment, first, count, values, valid, err));
  SN_TRY(sn_conditioner_range(e->conditioner, recording, s->channel_ii, segment, first, count, work, work_valid, err));
  for (int64_t k = 0; k < count; k++) {
    valid[k] = valid[k] && work_valid[k];
    values[k] = valid[k] ? s->weight_i * values[k] + s->weight_ii * work[k] : 0.0;
  }
  return SN_OK;
}

static sn_status window_first(sn_ecg *e, const sn_recording *recording, const sn_lead_source *s, double start_s,
                              int64_t *first, double *rate, sn_error *err) {
  sn_channel_plan plan;
  SN_TRY(sn_conditioner_plan(e->conditioner, recording, carrier(s), &plan, err));
  double k = floor(start_s * plan.rate_hz + 0.5);
  if (!(k >= 0.0) || !(k < 9e15)) return sn_fail(err, SN_E_ARGUMENT, "ECG: a window at %g s of a segment", start_s);
  *first = (int64_t)k;
  *rate = plan.rate_hz;
  return SN_OK;
}

sn_status sn_ecg_lead_window(sn_ecg *e, const sn_recording *recording, const sn_lead_source *source, int64_t segment,
                             double start_s, const sn_channel_stats *stats, double *values, uint8_t *valid,
                             sn_window_info *info, sn_error *err) {
  sn_status status;
  double *work = NULL, rate = 0.0;
  uint8_t *work_valid = NULL;
  int64_t first = 0;
  SN_TRY(window_first(e, recording, source, start_s, &first, &rate, err));
  if (source->channel < 0) {
    SN_TRY_GOTO(sn_alloc(&work, e->window, sizeof *work, "ECG window", err), done);
    SN_TRY_GOTO(sn_alloc(&work_valid, e->window, 1, "ECG window", err), done);
  }
  SN_TRY_GOTO(lead_range(e, recording, source, segment, first, e->window, values, valid, work, work_valid, err), done);
  SN_TRY_GOTO(sn_conditioner_normalize(e->conditioner, recording->channels[carrier(source)].unit, stats, values, valid,
                                       e->window, info, err), done);
done:
  sn_free(work);
  sn_free(work_valid);
  if (status != SN_OK) return sn_error_prefix(err, status, "lead %s", sn_lead_name(source->lead));
  return SN_OK;
}

/* Statistics of a derived lead: the same pass on the combination. */
static sn_status derived_stats(sn_ecg *e, const sn_recording *recording, const sn_lead_source *s, sn_channel_stats *out,
                               sn_error *err) {
  sn_status status;
  double *values = NULL, *work = NULL, rate = 0.0;
  uint8_t *valid = NULL, *work_valid = NULL;
  int64_t ignored = 0;
  long double sum = 0.0L, squares = 0.0L;
  *out = (sn_channel_stats){.mean = NAN, .std = NAN};
  SN_TRY(window_first(e, recording, s, 0.0, &ignored, &rate, err));
  int64_t block = (int64_t)ceil(60.0 * rate);
  SN_TRY_GOTO(sn_alloc(&values, block, sizeof *values, "statistics", err), done);
  SN_TRY_GOTO(sn_alloc(&work, block, sizeof *work, "statistics", err), done);
  SN_TRY_GOTO(sn_alloc(&valid, block, 1, "statistics", err), done);
  SN_TRY_GOTO(sn_alloc(&work_valid, block, 1, "statistics", err), done);
  for (int64_t segment = 0; segment < recording->n_segments; segment++) {
    int64_t total = 0;
    SN_TRY_GOTO(sn_conditioner_samples(e->conditioner, recording, s->channel_i, segment, &total, err), done);
    for (int64_t first = 0; first < total; first += block) {
      int64_t n = total - first < block ? total - first : block;
      SN_TRY_GOTO(lead_range(e, recording, s, segment, first, n, values, valid, work, work_valid, err), done);
      for (int64_t i = 0; i < n; i++) {
        out->n += valid[i];
        out->missing += !valid[i];
        sum += values[i]; /* 0 where invalid */
        squares += (long double)values[i] * values[i];
      }
    }
  }
  if (out->n > 0) {
    long double mean = sum / (long double)out->n;
    out->mean = (double)mean;
    out->std = sqrt(fmax((double)(squares / (long double)out->n - mean * mean), 0.0));
  }
  status = SN_OK;
done:
  sn_free(values);
  sn_free(work);
  sn_free(valid);
  sn_free(work_valid);
  return status;
}

sn_status sn_ecg_record_stats(sn_ecg *e, const sn_recording *recording, sn_ecg_stats *out, sn_error *err) {
  sn_lead_source sources[SN_LEADS_MOST];
  *out = (sn_ecg_stats){0};
  SN_TRY(select_leads(e, recording, sources, &out->n, err));
  for (int64_t i = 0; i < out->n; i++) {
    out->leads[i] = sources[i].lead;
    if (sources[i].channel >= 0)
      SN_TRY(sn_conditioner_stats(e->conditioner, recording, sources[i].channel, &out->stats[i], err));
    else
      SN_TRY(derived_stats(e, recording, &sources[i], &out->stats[i], err));
  }
  return SN_OK;
}

static const sn_channel_stats *stats_of(const sn_ecg_stats *stats, int32_t lead) {
  for (int64_t i = 0; stats != NULL && i < stats->n; i++)
    if (stats->leads[i] == lead) return &stats->stats[i];
  return NULL;
}

/* --- tokens --- */

typedef struct window {
  int64_t n_leads;
  sn_lead_source sources[SN_LEADS_MOST];
  double *values;  /* (n_leads, window) */
  uint8_t *valid;  /* (n_leads, window) */
  int64_t n_valid, n_flat;
} window;

static int64_t count_valid(const uint8_t *valid, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += valid[i];
  return count;
}

/* Variance of the valid values (as the model sees them) below what a normalised target can be made of. */
static bool flat_patch(const double *x, const uint8_t *valid, int64_t n) {
  double sum = 0.0, squares = 0.0;
  int64_t used = count_valid(valid, n);
  for (int64_t i = 0; i < n; i++) sum += valid[i] ? x[i] : 0.0;
  for (int64_t i = 0; i < n; i++) squares += valid[i] ? (x[i] - sum / (double)used) * (x[i] - sum / (double)used) : 0.0;
  return squares / (double)used < FLAT_VARIANCE;
}

static void put_token(const sn_ecg *e, const window *w, int64_t lead, int64_t p, sn_sample *sample, int64_t token) {
  const double *x = w->values + lead * e->window + p * e->patch;
  const uint8_t *valid = w->valid + lead * e->window + p * e->patch;
  double direction[3];
  for (int64_t i = 0; i < e->patch; i++) sample->patches[token * e->patch + i] = (float)x[i];
  if (sample->valid != NULL) memcpy(sample->valid + token * e->patch, valid, (size_t)e->patch);
  float *coordinate = sample->coordinates + 4 * token;
  coordinate[0] = coordinate[1] = coordinate[2] = 0.0f;
  coordinate[3] = (float)(((double)p + 0.5) * (double)e->patch / e->rate_hz);
  sn_lead_direction(w->sources[lead].lead, direction);
  for (int i = 0; i < 3; i++) sample->orientations[3 * token + i] = (float)direction[i];
  sample->channels[token] = w->sources[lead].lead;
  sample->positions[token] = (int32_t)p;
  sample->series[token] = (int32_t)lead;
  sample->sensors[token] = SN_SENSOR_ECG;
  if (flat_patch(x, valid, e->patch)) sample->flat_patches++;
}

static sn_status make_sample(const sn_ecg *e, const window *w, sn_sample **out, sn_error *err) {
  int64_t patches = e->window / e->patch, tokens = 0;
  for (int64_t p = 0; p < w->n_leads * patches; p++) tokens += count_valid(w->valid + p * e->patch, e->patch) > 0;
  SN_TRY(sn_sample_create(tokens, e->patch, w->n_valid < w->n_leads * e->window, out, err));
  tokens = 0;
  for (int64_t lead = 0; lead < w->n_leads; lead++)
    for (int64_t p = 0; p < patches; p++)
      if (count_valid(w->valid + lead * e->window + p * e->patch, e->patch) > 0)
        put_token(e, w, lead, p, *out, tokens++);
  return SN_OK;
}

sn_status sn_ecg_read_sample(sn_ecg *e, const sn_recording *recording, int64_t segment, double start_s,
                             const sn_ecg_stats *stats, sn_sample **out, sn_error *err) {
  sn_status status;
  window w = {0};
  double rate = 0.0;
  int64_t first = 0;
  *out = NULL;
  SN_TRY(select_leads(e, recording, w.sources, &w.n_leads, err));
  SN_TRY(window_first(e, recording, &w.sources[0], start_s, &first, &rate, err));
  SN_TRY_GOTO(sn_alloc(&w.values, w.n_leads * e->window, sizeof *w.values, "ECG window", err), done);
  SN_TRY_GOTO(sn_alloc(&w.valid, w.n_leads * e->window, 1, "ECG window", err), done);
  for (int64_t i = 0; i < w.n_leads; i++) {
    sn_window_info info;
    SN_TRY_GOTO(sn_ecg_lead_window(e, recording, &w.sources[i], segment, start_s, stats_of(stats, w.sources[i].lead),
                                   w.values + i * e->window, w.valid + i * e->window, &info, err), done);
    w.n_valid += info.n_valid;
    w.n_flat += info.flat || info.n_valid == 0;
  }
  int64_t all = w.n_leads * e->window;
  if (w.n_valid == 0 || (double)w.n_valid < e->options.condition.min_valid * (double)all) {
    status = sn_fail(err, SN_END, "window at %g s: %lld of %lld samples are measured, fewer than data.min_valid = %g",
                     start_s, (long long)w.n_valid, (long long)all, e->options.condition.min_valid);
    goto done;
  }
  if (w.n_flat == w.n_leads) {
    status = sn_fail(err, SN_END, "window at %g s: flat in every lead", start_s);
    goto done;
  }
  SN_TRY_GOTO(make_sample(e, &w, out, err), done);
  (*out)->recording = -1;
  (*out)->start_s = recording->segments[segment].start_s + (double)first / rate;
  (*out)->duration_s = (double)e->window / rate;
done:
  sn_free(w.values);
  sn_free(w.valid);
  return status;
}
