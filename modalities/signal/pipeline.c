#include "modalities/signal/pipeline.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "modalities/signal/augment.h"

#define FLAT_VARIANCE 1e-8

struct sn_signal {
  sn_signal_options options;
  sn_conditioner *conditioner;
  double rate_hz;
  int64_t patch, patch_stride, window; /* samples at the target rate */
};

/* ---- creation --------------------------------------------------------------------------------------------------- */

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

/* The last patch ends where the window ends. */
static sn_status check_patches(const sn_signal *e, sn_error *err) {
  const sn_condition_options *c = &e->options.condition;
  if (e->options.own_tokens) return SN_OK;
  if (e->patch > e->window)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.patch", "data.patch: %g s is longer than the window of %g s",
                      c->patch_s, c->window_s);
  if ((e->window - e->patch) % e->patch_stride == 0) return SN_OK;
  if (e->patch_stride == e->patch) {
    int64_t below, above;
    near_divisors(e->window, e->patch, &below, &above);
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.patch",
                      "data.patch: %g s (%lld samples) does not divide the window "
                      "of %g s (%lld samples); %g s and %g s do",
                      c->patch_s, (long long)e->patch, c->window_s, (long long)e->window, (double)below / e->rate_hz,
                      (double)above / e->rate_hz);
  }
  const int64_t steps = (e->window - e->patch) / e->patch_stride;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.patch_stride",
                    "data.patch_stride: patches of %g s every %g s do not end with a window of %g s; windows of %g s "
                    "and %g s fit", c->patch_s, e->options.patch_stride_s, c->window_s,
                    (double)(e->patch + steps * e->patch_stride) / e->rate_hz,
                    (double)(e->patch + (steps + 1) * e->patch_stride) / e->rate_hz);
}

sn_status sn_signal_create(const sn_signal_options *options, sn_signal **out, sn_error *err) {
  sn_status status;
  sn_signal *e = NULL;
  const sn_condition_options *c = &options->condition;
  *out = NULL;
  if (options->modality == NULL) return sn_fail(err, SN_E_ARGUMENT, "a pipeline of no modality");
  if (c->rate_num <= 0 || c->rate_den <= 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.rate",
                      "data.rate: a target rate is needed to cut patches of one size");
  if (!(options->stride_s >= 0.0) || !isfinite(options->stride_s))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.stride", "data.stride: %g s", options->stride_s);
  if (!(options->patch_stride_s >= 0.0) || !isfinite(options->patch_stride_s))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.patch_stride", "data.patch_stride: %g s",
                      options->patch_stride_s);
  SN_TRY_GOTO(sn_alloc(&e, 1, sizeof *e, "signal pipeline", err), fail);
  e->options = *options;
  e->rate_hz = (double)c->rate_num / (double)c->rate_den;
  if (e->options.patch_stride_s == 0.0) e->options.patch_stride_s = c->patch_s;
  SN_TRY_GOTO(whole_samples(&e->window, c->window_s, e->rate_hz, "data.window", err), fail);
  SN_TRY_GOTO(whole_samples(&e->patch, c->patch_s, e->rate_hz, "data.patch", err), fail);
  SN_TRY_GOTO(whole_samples(&e->patch_stride, e->options.patch_stride_s, e->rate_hz, "data.patch_stride", err), fail);
  SN_TRY_GOTO(check_patches(e, err), fail);
  if (e->options.stride_s == 0.0) e->options.stride_s = (double)e->window / e->rate_hz;
  SN_TRY_GOTO(sn_conditioner_create(c, &e->conditioner, err), fail);
  *out = e;
  return SN_OK;
fail:
  sn_signal_destroy(e);
  return status;
}

void sn_signal_destroy(sn_signal *e) {
  if (e == NULL) return;
  sn_conditioner_destroy(e->conditioner);
  sn_free(e);
}

const sn_signal_options *sn_signal_get_options(const sn_signal *e) { return &e->options; }
sn_conditioner *sn_signal_conditioner(const sn_signal *e) { return e->conditioner; }
int64_t sn_signal_patch_size(const sn_signal *e) { return e->patch; }
int64_t sn_signal_window_patches(const sn_signal *e) {
  return e->window < e->patch ? 0 : (e->window - e->patch) / e->patch_stride + 1;
}
double sn_signal_window_seconds(const sn_signal *e) { return (double)e->window / e->rate_hz; }
double sn_signal_stride_seconds(const sn_signal *e) { return e->options.stride_s; }
double sn_signal_patch_stride_seconds(const sn_signal *e) { return (double)e->patch_stride / e->rate_hz; }
bool sn_signal_needs_stats(const sn_signal *e) {
  return e->options.condition.normalize == SN_NORMALIZE_ZSCORE_RECORD;
}

sn_status sn_signal_select(const sn_signal *e, const sn_recording *recording, bool planning, sn_series_list *list,
                           sn_error *err) {
  return e->options.modality->select(e->options.own.bytes, recording, planning, list, err);
}

int64_t sn_signal_nominal_tokens(const sn_signal *e, const sn_series_list *list) {
  return list->n * sn_signal_window_patches(e);
}

/* ---- the window grid ---------------------------------------------------------------------------------------------- */

static void grid(const sn_signal *e, const sn_channel_plan *plan, int64_t n_samples, int64_t *n_windows,
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

sn_status sn_signal_count_windows(const sn_signal *e, int64_t native_num, int64_t native_den, int64_t n_samples,
                                  int64_t *n_windows, double *last_start_s, sn_error *err) {
  sn_channel_plan plan;
  SN_TRY(sn_conditioner_plan_rate(e->conditioner, native_num, native_den, n_samples, &plan, err));
  grid(e, &plan, n_samples, n_windows, last_start_s);
  return SN_OK;
}

sn_status sn_signal_segment_windows(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                                    int64_t segment, int64_t *n_windows, double *last_start_s, sn_error *err) {
  *n_windows = 0;
  *last_start_s = 0.0;
  if (segment < 0 || segment >= recording->n_segments)
    return sn_fail(err, SN_E_ARGUMENT, "windows: segment %lld of %lld", (long long)segment,
                   (long long)recording->n_segments);
  for (int64_t i = 0; i < list->n_channels; i++) {
    sn_channel_plan plan;
    int64_t count = 0;
    double last = 0.0;
    SN_TRY(sn_conditioner_plan(e->conditioner, recording, list->channels[i], &plan, err));
    grid(e, &plan, sn_recording_samples(recording, list->channels[i], segment), &count, &last);
    if (i == 0 || count < *n_windows) *n_windows = count;
    if (i == 0 || last < *last_start_s) *last_start_s = last;
  }
  return SN_OK;
}

/* ---- combining ------------------------------------------------------------------------------------------------------ */

/* Conditioned samples of channels, and what series make of them.  When the list is plain, a channel's row is its
 * series' row. */
typedef struct combination {
  int64_t count;                      /* samples of a row */
  double *values, *channels, *common; /* (n, count), (n_channels, count), (count) */
  uint8_t *valid, *channels_valid, *common_valid;
  double **rows;                      /* (n_channels) where the channel's samples go */
  uint8_t **valid_rows;
} combination;

static void combination_free(combination *x) {
  sn_free(x->channels);
  sn_free(x->channels_valid);
  sn_free(x->common);
  sn_free(x->common_valid);
  sn_free(x->rows);
  sn_free(x->valid_rows);
}

/* values, valid: (list->n, count), the caller's. */
static sn_status combination_make(combination *x, const sn_series_list *list, int64_t count, double *values,
                                  uint8_t *valid, sn_error *err) {
  int64_t size = 0;
  *x = (combination){.count = count, .values = values, .valid = valid};
  if (!sn_mul_ok(list->n_channels, count, &size)) return sn_fail(err, SN_E_MEMORY, "window: too many samples");
  SN_TRY(sn_alloc(&x->rows, list->n_channels, sizeof *x->rows, "window", err));
  SN_TRY(sn_alloc(&x->valid_rows, list->n_channels, sizeof *x->valid_rows, "window", err));
  if (list->plain) {
    for (int64_t s = 0; s < list->n; s++) {
      const int64_t slot = list->terms[list->series[s].first_term].slot;
      x->rows[slot] = values + s * count;
      x->valid_rows[slot] = valid + s * count;
    }
    return SN_OK;
  }
  SN_TRY(sn_alloc(&x->channels, size, sizeof *x->channels, "window", err));
  SN_TRY(sn_alloc(&x->channels_valid, size, 1, "window", err));
  SN_TRY(sn_alloc(&x->common, list->n_commons * count, sizeof *x->common, "window", err));
  SN_TRY(sn_alloc(&x->common_valid, list->n_commons * count, 1, "window", err));
  for (int64_t c = 0; c < list->n_channels; c++) {
    x->rows[c] = x->channels + c * count;
    x->valid_rows[c] = x->channels_valid + c * count;
  }
  return SN_OK;
}

/* y = sum of weight x channel; a sample is valid where all are, and 0 elsewhere. */
static void add_terms(const combination *x, const sn_series_term *terms, int64_t n_terms, int64_t n, double *y,
                      uint8_t *valid) {
  for (int64_t t = 0; t < n_terms; t++) {
    const double w = terms[t].weight, *from = x->rows[terms[t].slot];
    const uint8_t *ok = x->valid_rows[terms[t].slot];
    for (int64_t i = 0; i < n; i++) {
      valid[i] = t == 0 ? ok[i] : (uint8_t)(valid[i] && ok[i]);
      y[i] = t == 0 ? w * from[i] : y[i] + w * from[i];
    }
  }
  for (int64_t i = 0; i < n; i++)
    if (!valid[i]) y[i] = 0.0;
}

/* The first n samples of every row. */
static void combine(combination *x, const sn_series_list *list, int64_t n) {
  if (list->plain) return;
  for (int64_t k = 0; k < list->n_commons; k++)
    add_terms(x, list->terms + list->commons[k].first_term, list->commons[k].n_terms, n, x->common + k * x->count,
              x->common_valid + k * x->count);
  for (int64_t s = 0; s < list->n; s++) {
    const sn_series *series = &list->series[s];
    double *y = x->values + s * x->count;
    uint8_t *valid = x->valid + s * x->count;
    add_terms(x, list->terms + series->first_term, series->n_terms, n, y, valid);
    if (series->common < 0) continue;
    const double *common = x->common + series->common * x->count;
    const uint8_t *ok = x->common_valid + series->common * x->count;
    for (int64_t i = 0; i < n; i++) {
      valid[i] = valid[i] && ok[i];
      y[i] = valid[i] ? y[i] - common[i] : 0.0;
    }
  }
}

/* First conditioned sample of a window in a channel's own grid (native rates may differ by a tolerance). */
static sn_status window_first(const sn_signal *e, const sn_recording *recording, int64_t channel, double start_s,
                              int64_t *first, double *rate, sn_error *err) {
  sn_channel_plan plan;
  SN_TRY(sn_conditioner_plan(e->conditioner, recording, channel, &plan, err));
  double k = floor(start_s * plan.rate_hz + 0.5);
  if (!(k >= 0.0) || !(k < 9e15)) return sn_fail(err, SN_E_ARGUMENT, "a window at %g s of a segment", start_s);
  *first = (int64_t)k;
  *rate = plan.rate_hz;
  return SN_OK;
}

/* Conditioned samples [first, first + n) of every channel, first as each channel has it for start_s. */
static sn_status read_channels(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                               int64_t segment, double start_s, int64_t n, combination *x, sn_error *err) {
  for (int64_t at = 0, end; at < list->n_channels; at = end) {
    int64_t first = 0, other = 0;
    double rate;
    SN_TRY(window_first(e, recording, list->channels[at], start_s, &first, &rate, err));
    for (end = at + 1; end < list->n_channels; end++) {
      SN_TRY(window_first(e, recording, list->channels[end], start_s, &other, &rate, err));
      if (other != first) break;
    }
    SN_TRY(sn_conditioner_range_channels(e->conditioner, recording, list->channels + at, end - at, segment, first, n,
                                         x->rows + at, x->valid_rows + at, err));
  }
  combine(x, list, n);
  return SN_OK;
}

/* ---- statistics ------------------------------------------------------------------------------------------------------ */

typedef struct running {
  double shift; /* the first valid value: squares are taken about it */
  sn_sum sum, squares;
} running;

static void add_samples(sn_channel_stats *s, running *r, const double *values, const uint8_t *valid, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!valid[i]) {
      s->missing++;
      continue;
    }
    if (s->n++ == 0) r->shift = values[i];
    sn_sum_add(&r->sum, values[i] - r->shift);
    sn_sum_add(&r->squares, (values[i] - r->shift) * (values[i] - r->shift));
  }
}

static void finish_stats(sn_channel_stats *s, const running *r) {
  s->mean = s->std = NAN;
  if (s->n == 0) return;
  const double mean = sn_sum_value(&r->sum) / (double)s->n;
  s->mean = r->shift + mean;
  s->std = sqrt(fmax(sn_sum_value(&r->squares) / (double)s->n - mean * mean, 0.0));
}

/* One pass over a segment, in blocks of a minute (the FFT option conditions a whole segment for any part of it). */
static sn_status stats_of_segment(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                                  int64_t segment, combination *x, sn_signal_stats *out, running *sums, sn_error *err) {
  int64_t total = INT64_MAX;
  for (int64_t c = 0; c < list->n_channels; c++) {
    int64_t n = 0;
    SN_TRY(sn_conditioner_samples(e->conditioner, recording, list->channels[c], segment, &n, err));
    if (n < total) total = n;
  }
  for (int64_t first = 0; first < total; first += x->count) {
    const int64_t n = total - first < x->count ? total - first : x->count;
    SN_TRY(sn_conditioner_range_channels(e->conditioner, recording, list->channels, list->n_channels, segment, first, n,
                                         x->rows, x->valid_rows, err));
    combine(x, list, n);
    for (int64_t s = 0; s < list->n; s++)
      add_samples(&out->stats[s], &sums[s], x->values + s * x->count, x->valid + s * x->count, n);
  }
  return SN_OK;
}

static sn_status stats_block(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                             int64_t *block, sn_error *err) {
  *block = (int64_t)ceil(60.0 * e->rate_hz);
  for (int64_t s = 0; s < recording->n_segments && e->options.condition.resample == SN_RESAMPLE_FFT; s++) {
    int64_t n = 0;
    SN_TRY(sn_conditioner_samples(e->conditioner, recording, list->channels[0], s, &n, err));
    if (n > *block) *block = n;
  }
  return SN_OK;
}

sn_status sn_signal_record_stats(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                                 sn_signal_stats **out, sn_error *err) {
  sn_status status;
  sn_signal_stats *stats = NULL;
  running *sums = NULL;
  combination x = {0};
  double *values = NULL;
  uint8_t *valid = NULL;
  int64_t block = 0;
  *out = NULL;
  SN_TRY(stats_block(e, recording, list, &block, err));
  SN_TRY_GOTO(sn_alloc(&stats, 1, (int64_t)(sizeof *stats + (size_t)list->n * sizeof *stats->stats), "statistics", err),
              done);
  stats->n = list->n;
  SN_TRY_GOTO(sn_alloc(&sums, list->n, sizeof *sums, "statistics", err), done);
  SN_TRY_GOTO(sn_alloc(&values, list->n * block, sizeof *values, "statistics", err), done);
  SN_TRY_GOTO(sn_alloc(&valid, list->n * block, 1, "statistics", err), done);
  SN_TRY_GOTO(combination_make(&x, list, block, values, valid, err), done);
  for (int64_t segment = 0; segment < recording->n_segments; segment++)
    SN_TRY_GOTO(stats_of_segment(e, recording, list, segment, &x, stats, sums, err), done);
  for (int64_t s = 0; s < list->n; s++) finish_stats(&stats->stats[s], &sums[s]);
  *out = stats;
  stats = NULL;
  status = SN_OK;
done:
  combination_free(&x);
  sn_free(values);
  sn_free(valid);
  sn_free(sums);
  sn_free(stats);
  return status;
}

static int64_t count_valid(const uint8_t *valid, int64_t n) {
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) count += valid[i];
  return count;
}

/* Deviation of the valid values of one row. */
static double deviation(const double *x, const uint8_t *valid, int64_t n) {
  sn_channel_stats s = {0};
  running r = {0};
  add_samples(&s, &r, x, valid, n);
  finish_stats(&s, &r);
  return s.n > 0 ? s.std : 0.0;
}

/* For `group`: one statistic per series, equal for series of one kind, over the n samples. Fresh (sn_free). */
static sn_status group_stats(const sn_signal *e, const sn_series_list *list, const double *values, const uint8_t *valid,
                             int64_t n, sn_signal_stats **out, sn_error *err) {
  sn_signal_stats *stats = NULL;
  SN_TRY(sn_alloc(&stats, 1, (int64_t)(sizeof *stats + (size_t)list->n * sizeof *stats->stats), "statistics", err));
  stats->n = list->n;
  for (int kind = 0; kind <= SN_SENSOR_OTHER; kind++) {
    sn_channel_stats group = {0};
    running r = {0};
    bool any = false;
    for (int64_t s = 0; s < list->n; s++) {
      const double *x = values + s * n;
      const uint8_t *ok = valid + s * n;
      if ((int)list->series[s].kind != kind) continue;
      any = true;
      if (deviation(x, ok, n) > e->options.condition.flat_std) add_samples(&group, &r, x, ok, n);
    }
    if (!any) continue;
    finish_stats(&group, &r);
    for (int64_t s = 0; s < list->n; s++)
      if ((int)list->series[s].kind == kind) stats->stats[s] = group;
  }
  *out = stats;
  return SN_OK;
}

/* ---- a window -------------------------------------------------------------------------------------------------------- */

sn_status sn_signal_read_span(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                              int64_t segment, double start_s, int64_t n, const sn_signal_stats *stats, double *values,
                              uint8_t *valid, sn_window_info *info, sn_error *err) {
  sn_status status;
  combination x = {0};
  sn_signal_stats *group = NULL;
  SN_TRY_GOTO(combination_make(&x, list, n, values, valid, err), done);
  SN_TRY_GOTO(read_channels(e, recording, list, segment, start_s, n, &x, err), done);
  if (e->options.condition.normalize == SN_NORMALIZE_GROUP) {
    SN_TRY_GOTO(group_stats(e, list, values, valid, n, &group, err), done);
    stats = group;
  }
  if (stats != NULL && stats->n != list->n) {
    status = sn_fail(err, SN_E_ARGUMENT, "statistics of %lld series for a window of %lld", (long long)stats->n,
                     (long long)list->n);
    goto done;
  }
  for (int64_t s = 0; s < list->n; s++) {
    status = sn_conditioner_normalize(e->conditioner, list->series[s].unit, stats != NULL ? &stats->stats[s] : NULL,
                                      values + s * n, valid + s * n, n, &info[s], err);
    if (status != SN_OK) {
      sn_error_prefix(err, status, "%s", list->series[s].name);
      goto done;
    }
  }
  status = SN_OK;
done:
  combination_free(&x);
  sn_free(group);
  return status;
}

sn_status sn_signal_read_window(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                                int64_t segment, double start_s, const sn_signal_stats *stats, double *values,
                                uint8_t *valid, sn_window_info *info, sn_error *err) {
  return sn_signal_read_span(e, recording, list, segment, start_s, e->window, stats, values, valid, info, err);
}

sn_status sn_signal_judge_window(const sn_signal *e, const sn_window_info *info, int64_t n_series, int64_t n, double start_s,
                                 sn_error *err) {
  int64_t n_valid = 0, n_flat = 0;
  const int64_t all = n_series * n;
  for (int64_t s = 0; s < n_series; s++) {
    n_valid += info[s].n_valid;
    n_flat += info[s].flat || info[s].n_valid == 0;
  }
  if (n_valid == 0 || (double)n_valid < e->options.condition.min_valid * (double)all)
    return sn_fail(err, SN_END, "window at %g s: %lld of %lld samples are measured, fewer than data.min_valid = %g",
                   start_s, (long long)n_valid, (long long)all, e->options.condition.min_valid);
  if (n_flat == n_series) return sn_fail(err, SN_END, "window at %g s: flat in every series", start_s);
  return SN_OK;
}

/* ---- tokens ---------------------------------------------------------------------------------------------------------- */

typedef struct window {
  const sn_series_list *list;
  double *values; /* (n, window) */
  uint8_t *valid; /* (n, window) */
  sn_window_info *info;
  int64_t n_valid;
} window;

/* Variance of the valid values (as the model sees them) below what a normalised target can be made of. */
static bool flat_patch(const double *x, const uint8_t *valid, int64_t n) {
  double sum = 0.0, squares = 0.0;
  int64_t used = count_valid(valid, n);
  for (int64_t i = 0; i < n; i++) sum += valid[i] ? x[i] : 0.0;
  for (int64_t i = 0; i < n; i++) squares += valid[i] ? (x[i] - sum / (double)used) * (x[i] - sum / (double)used) : 0.0;
  return squares / (double)used < FLAT_VARIANCE;
}

static int64_t patch_begin(const sn_signal *e, int64_t s, int64_t p) { return s * e->window + p * e->patch_stride; }

static void put_token(const sn_signal *e, const window *w, int64_t s, int64_t p, sn_sample *sample, int64_t token) {
  const sn_series *series = &w->list->series[s];
  const double *x = w->values + patch_begin(e, s, p);
  const uint8_t *valid = w->valid + patch_begin(e, s, p);
  for (int64_t i = 0; i < e->patch; i++) sample->patches[token * e->patch + i] = (float)x[i];
  if (sample->valid != NULL) memcpy(sample->valid + token * e->patch, valid, (size_t)e->patch);
  float *coordinate = sample->coordinates + 4 * token;
  for (int i = 0; i < 3; i++) {
    coordinate[i] = series->has_position ? (float)series->position_m[i] : 0.0f;
    sample->orientations[3 * token + i] = (float)series->orientation[i];
  }
  coordinate[3] = (float)(((double)(p * e->patch_stride) + 0.5 * (double)e->patch) / e->rate_hz);
  sample->channels[token] = series->id;
  sample->positions[token] = (int32_t)p;
  sample->series[token] = (int32_t)s;
  sample->sensors[token] = (uint8_t)series->kind;
  if (flat_patch(x, valid, e->patch)) sample->flat_patches++;
}

static sn_status make_sample(const sn_signal *e, const window *w, sn_sample **out, sn_error *err) {
  const int64_t patches = sn_signal_window_patches(e);
  int64_t tokens = 0;
  for (int64_t s = 0; s < w->list->n; s++)
    for (int64_t p = 0; p < patches; p++) tokens += count_valid(w->valid + patch_begin(e, s, p), e->patch) > 0;
  /* Patches that do not cover the window may hold none of what augmentations have left. */
  if (tokens == 0) return sn_fail(err, SN_END, "no patch of the window holds a measured sample");
  SN_TRY(sn_sample_create(tokens, e->patch, w->n_valid < w->list->n * e->window, out, err));
  tokens = 0;
  for (int64_t s = 0; s < w->list->n; s++)
    for (int64_t p = 0; p < patches; p++)
      if (count_valid(w->valid + patch_begin(e, s, p), e->patch) > 0) put_token(e, w, s, p, *out, tokens++);
  return SN_OK;
}

static sn_status augment(const sn_signal *e, window *w, const sn_augments *augments, const sn_random *sample, sn_error *err) {
  sn_augment_window a = {.n_series = w->list->n, .n_samples = e->window, .rate_hz = e->rate_hz, .values = w->values,
                         .valid = w->valid, .series = w->list->series};
  SN_TRY(sn_augments_apply(augments, sample, &a, err));
  w->n_valid = count_valid(w->valid, w->list->n * e->window);
  return SN_OK;
}

sn_status sn_signal_read_sample(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                                int64_t segment, double start_s, const sn_signal_stats *stats, sn_sample **out,
                                sn_error *err) {
  return sn_signal_read_augmented(e, recording, list, segment, start_s, stats, NULL, NULL, out, err);
}

sn_status sn_signal_read_augmented(const sn_signal *e, const sn_recording *recording, const sn_series_list *list,
                                   int64_t segment, double start_s, const sn_signal_stats *stats,
                                   const sn_augments *augments, const sn_random *sample, sn_sample **out, sn_error *err) {
  sn_status status;
  window w = {.list = list};
  double rate = 0.0;
  int64_t first = 0, all = 0;
  *out = NULL;
  if (list->n == 0) return sn_fail(err, SN_E_ARGUMENT, "a window of no series");
  if (!sn_mul_ok(list->n, e->window, &all)) return sn_fail(err, SN_E_MEMORY, "window: too many samples");
  SN_TRY(window_first(e, recording, list->terms[list->series[0].first_term].channel, start_s, &first, &rate, err));
  SN_TRY_GOTO(sn_alloc(&w.values, all, sizeof *w.values, "window", err), done);
  SN_TRY_GOTO(sn_alloc(&w.valid, all, 1, "window", err), done);
  SN_TRY_GOTO(sn_alloc(&w.info, list->n, sizeof *w.info, "window", err), done);
  SN_TRY_GOTO(sn_signal_read_window(e, recording, list, segment, start_s, stats, w.values, w.valid, w.info, err), done);
  for (int64_t s = 0; s < list->n; s++) w.n_valid += w.info[s].n_valid;
  SN_TRY_GOTO(sn_signal_judge_window(e, w.info, list->n, e->window, start_s, err), done);
  if (augments != NULL) SN_TRY_GOTO(augment(e, &w, augments, sample, err), done);
  SN_TRY_GOTO(make_sample(e, &w, out, err), done);
  (*out)->recording = -1;
  (*out)->start_s = recording->segments[segment].start_s + (double)first / rate;
  (*out)->duration_s = (double)e->window / rate;
done:
  sn_free(w.values);
  sn_free(w.valid);
  sn_free(w.info);
  return status;
}
