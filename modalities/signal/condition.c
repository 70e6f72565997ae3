#include "modalities/signal/condition.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "modalities/signal/fir.h"
#include "modalities/signal/iir.h"

/* Everything that depends on a native rate. Immutable once it is in the list. */
typedef struct rate_plan {
  int64_t num, den; /* native rate, reduced as the recording gives it */
  sn_ratio ratio;
  sn_fir *fir;
  sn_iir iir;
  int64_t support; /* of the filter, native samples; 0 without one */
  sn_resampler *resampler;
  int64_t gap;     /* this many missing samples split a segment */
  double native_hz, rate_hz;
  int64_t window_samples;
  struct rate_plan *next;
} rate_plan;

/* Native samples that are read at a time, all channels together. */
enum { RAW_BYTES = 1 << 25 };

struct sn_conditioner {
  sn_condition_options options;
  pthread_mutex_t lock;
  rate_plan *plans;
};

sn_condition_options sn_condition_defaults(void) {
  return (sn_condition_options){.filter = SN_FILTER_FIR, .butterworth_order = 4, .resample = SN_RESAMPLE_POLYPHASE,
                                .window_s = 10.0, .patch_s = 0.2, .normalize = SN_NORMALIZE_NONE, .global_std = 1.0,
                                .min_valid = 0.5, .flat_std = 1e-6};
}

static sn_status check_options(const sn_condition_options *o, sn_error *err) {
  if (!(o->window_s > 0.0) || !isfinite(o->window_s))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: a window of %g s is not possible", o->window_s);
  if (!(o->patch_s > 0.0) || !(o->patch_s <= o->window_s))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: a patch of %g s must be above 0 and within the window of %g s",
                   o->patch_s, o->window_s);
  if (!(o->filter_low_hz >= 0.0) || !(o->filter_high_hz >= 0.0) || !(o->notch_hz >= 0.0))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: filter edges must be 0 (none) or more");
  if (o->notch_hz > 0.0 && o->filter == SN_FILTER_BUTTERWORTH)
    return sn_fail(err, SN_E_UNSUPPORTED, "conditioning: the notch is a FIR filter; the butterworth option has none");
  if (o->rate_num < 0 || (o->rate_num > 0 && o->rate_den <= 0))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: target rate %lld/%lld Hz", (long long)o->rate_num,
                   (long long)o->rate_den);
  if (!(o->rate_tolerance >= 0.0) || !(o->rate_tolerance < 0.1))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: a rate tolerance of %g is not in [0, 0.1)", o->rate_tolerance);
  if (!(o->min_valid >= 0.0) || !(o->min_valid <= 1.0))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: min_valid %g is not in [0, 1]", o->min_valid);
  if (!(o->clip >= 0.0) || !(o->flat_std >= 0.0))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: clip %g and flat_std %g must be 0 or more", o->clip, o->flat_std);
  if (o->normalize == SN_NORMALIZE_GLOBAL && (!(o->global_std > 0.0) || !isfinite(o->global_mean)))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: global normalisation needs a mean and a positive deviation");
  if (o->rate_num > 0 && o->filter_high_hz > 0.0 &&
      o->filter_high_hz > 0.5 * (double)o->rate_num / (double)o->rate_den)
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: the upper edge of %g Hz lies above half the target rate (%g Hz)",
                   o->filter_high_hz, 0.5 * (double)o->rate_num / (double)o->rate_den);
  return SN_OK;
}

sn_status sn_conditioner_create(const sn_condition_options *options, sn_conditioner **out, sn_error *err) {
  sn_conditioner *c = NULL;
  *out = NULL;
  SN_TRY(check_options(options, err));
  SN_TRY(sn_alloc(&c, 1, sizeof *c, "conditioner", err));
  c->options = *options;
  if (pthread_mutex_init(&c->lock, NULL) != 0) {
    sn_free(c);
    return sn_fail(err, SN_E_MEMORY, "conditioner: no lock can be made");
  }
  *out = c;
  return SN_OK;
}

static void destroy_plan(rate_plan *plan) {
  if (plan == NULL) return;
  sn_fir_destroy(plan->fir);
  sn_resampler_destroy(plan->resampler);
  sn_free(plan);
}

void sn_conditioner_destroy(sn_conditioner *c) {
  if (c == NULL) return;
  for (rate_plan *plan = c->plans, *next; plan != NULL; plan = next) {
    next = plan->next;
    destroy_plan(plan);
  }
  pthread_mutex_destroy(&c->lock);
  sn_free(c);
}

const sn_condition_options *sn_conditioner_options(const sn_conditioner *c) { return &c->options; }

static sn_status make_plan(const sn_condition_options *o, int64_t num, int64_t den, rate_plan **out, sn_error *err) {
  sn_status status;
  rate_plan *p = NULL;
  *out = NULL;
  if (num <= 0 || den <= 0)
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: a native rate of %lld/%lld Hz", (long long)num, (long long)den);
  SN_TRY_GOTO(sn_alloc(&p, 1, sizeof *p, "conditioning plan", err), fail);
  p->num = num, p->den = den;
  p->native_hz = (double)num / (double)den;
  p->ratio = (sn_ratio){1, 1};
  if (o->rate_num > 0)
    SN_TRY_GOTO(sn_resample_ratio(&p->ratio, num, den, o->rate_num, o->rate_den, o->rate_tolerance, err), fail);
  p->rate_hz = (double)num * (double)p->ratio.up / ((double)den * (double)p->ratio.down);
  p->window_samples = (int64_t)floor(o->window_s * p->rate_hz + 0.5);
  p->gap = (int64_t)floor(o->patch_s * p->native_hz + 0.5);
  if (p->gap < 1) p->gap = 1;
  if (p->window_samples < 1 || p->window_samples > INT32_MAX) {
    status = sn_fail(err, SN_E_ARGUMENT, "conditioning: a window of %g s at %g Hz has no samples, or too many",
                     o->window_s, p->rate_hz);
    goto fail;
  }
  bool any = o->filter_low_hz > 0.0 || o->filter_high_hz > 0.0 || o->notch_hz > 0.0;
  if (any && o->filter == SN_FILTER_FIR) {
    sn_fir_spec spec = {p->native_hz, o->filter_low_hz, o->filter_high_hz, o->notch_hz};
    SN_TRY_GOTO(sn_fir_create(&spec, &p->fir, err), fail);
    p->support = sn_fir_support(p->fir);
  } else if (any) {
    SN_TRY_GOTO(
        sn_iir_butterworth(&p->iir, o->butterworth_order, p->native_hz, o->filter_low_hz, o->filter_high_hz, err),
        fail);
    p->support = p->iir.support;
  }
  SN_TRY_GOTO(sn_resampler_create(p->ratio, &p->resampler, err), fail);
  *out = p;
  return SN_OK;
fail:
  destroy_plan(p);
  return status;
}

static sn_status find_plan(sn_conditioner *c, int64_t num, int64_t den, const rate_plan **out, sn_error *err) {
  sn_status status = SN_OK;
  rate_plan *plan;
  pthread_mutex_lock(&c->lock);
  for (plan = c->plans; plan != NULL && (plan->num != num || plan->den != den); plan = plan->next) continue;
  if (plan == NULL) {
    status = make_plan(&c->options, num, den, &plan, err);
    if (status == SN_OK) {
      plan->next = c->plans;
      c->plans = plan;
    }
  }
  pthread_mutex_unlock(&c->lock);
  *out = plan;
  return status;
}

static sn_status channel_plan(sn_conditioner *c, const sn_recording *recording, int64_t channel, const rate_plan **out,
                              sn_error *err) {
  int64_t num = 0;
  if (channel < 0 || channel >= recording->n_channels)
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: channel %lld of %lld", (long long)channel,
                   (long long)recording->n_channels);
  if (!sn_mul_ok(recording->rate_num, recording->channels[channel].samples_per_frame, &num))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: the rate of channel %lld is too large", (long long)channel);
  return find_plan(c, num, recording->rate_den, out, err);
}

static void describe(const sn_conditioner *c, const rate_plan *p, int64_t longest, sn_channel_plan *out) {
  bool any = p->support > 0;
  int64_t length = any ? 2 * p->support + 1 : 0;
  *out = (sn_channel_plan){.ratio = p->ratio, .native_hz = p->native_hz, .rate_hz = p->rate_hz,
                           .window_samples = p->window_samples, .filter_length = length, .filter_support = p->support,
                           .short_for_filter = any && longest < 3 * length};
}

sn_status sn_conditioner_plan(sn_conditioner *c, const sn_recording *recording, int64_t channel, sn_channel_plan *out,
                              sn_error *err) {
  const rate_plan *plan = NULL;
  int64_t longest = 0;
  SN_TRY(channel_plan(c, recording, channel, &plan, err));
  for (int64_t s = 0; s < recording->n_segments; s++) {
    int64_t n = sn_recording_samples(recording, channel, s);
    if (n > longest) longest = n;
  }
  describe(c, plan, longest, out);
  return SN_OK;
}

sn_status sn_conditioner_plan_rate(sn_conditioner *c, int64_t native_num, int64_t native_den, int64_t longest,
                                   sn_channel_plan *out, sn_error *err) {
  const rate_plan *plan = NULL;
  SN_TRY(find_plan(c, native_num, native_den, &plan, err));
  describe(c, plan, longest, out);
  return SN_OK;
}

static sn_status check_segment(const sn_recording *recording, int64_t segment, sn_error *err) {
  if (segment < 0 || segment >= recording->n_segments)
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: segment %lld of %lld", (long long)segment,
                   (long long)recording->n_segments);
  return SN_OK;
}

sn_status sn_conditioner_samples(sn_conditioner *c, const sn_recording *recording, int64_t channel, int64_t segment,
                                 int64_t *n, sn_error *err) {
  const rate_plan *plan = NULL;
  SN_TRY(channel_plan(c, recording, channel, &plan, err));
  SN_TRY(check_segment(recording, segment, err));
  *n = sn_resampled_length(plan->ratio, sn_recording_samples(recording, channel, segment));
  return SN_OK;
}

/* --- a range of a segment --- */

/* A stretch of native samples of one segment. */
typedef struct stretch {
  int64_t n;          /* samples of the segment */
  int64_t lo, hi;     /* read: [lo, hi) */
  double *raw;        /* (hi - lo) as read, NaN missing */
  double *bridged;    /* (hi - lo) short gaps filled */
  int64_t from, to;   /* filtered values wanted: [from, to) */
  double *filtered;   /* (to - from), 0 outside pieces */
} stretch;

static void bridge(double *x, int64_t first, int64_t last, double before, double after) {
  for (int64_t i = first; i < last; i++)
    x[i] = before + (after - before) * (double)(i - first + 1) / (double)(last - first + 1);
}

/* Filters one piece, samples [p, q) of what was read, into the wanted range.  A piece that really begins before lo (or
 * ends after hi) may be taken to begin there: lo and hi leave room for the support, so that its reflection is out of
 * reach. */
static sn_status filter_piece(const rate_plan *plan, const sn_condition_options *o, stretch *s, int64_t p, int64_t q,
                              sn_error *err) {
  int64_t n = q - p, offset = s->lo + p, support = plan->support; /* offset: of the piece in the segment */
  int64_t from = (s->from > offset ? s->from : offset) - offset,
          to = (s->to < offset + n ? s->to : offset + n) - offset;
  if (from >= to) return SN_OK;
  const double *x = s->bridged + p;
  double *y = s->filtered + (from + offset - s->from), *e = NULL;
  if (support == 0) {
    memcpy(y, x + from, (size_t)(to - from) * sizeof *y);
    return SN_OK;
  }
  int64_t first = from - support, last = to + support;
  if (o->filter == SN_FILTER_BUTTERWORTH) {
    int64_t pad = support < n - 1 ? support : n - 1;
    if (first < -pad) first = -pad;
    if (last > n + pad) last = n + pad;
  }
  SN_TRY(sn_alloc(&e, last - first, sizeof *e, "extended signal", err));
  sn_extend_odd(x, n, first, last - first, e);
  sn_status status;
  if (o->filter == SN_FILTER_BUTTERWORTH) {
    status = sn_iir_apply(&plan->iir, e, last - first, 0, e, err);
    if (status == SN_OK) memcpy(y, e + (from - first), (size_t)(to - from) * sizeof *y);
  } else {
    status = sn_fir_convolve(plan->fir, e, to - from, y, err);
  }
  sn_free(e);
  return status;
}

/* Finds the pieces between long gaps, bridges the short gaps, filters each piece. */
static sn_status filter_stretch(const rate_plan *plan, const sn_condition_options *o, stretch *s, sn_error *err) {
  double *x = s->bridged;
  int64_t n = s->hi - s->lo, i = 0;
  memcpy(x, s->raw, (size_t)n * sizeof *x);
  for (;;) {
    while (i < n && isnan(x[i])) i++;
    if (i == n) return SN_OK;
    int64_t p = i, q = i; /* q: one past the last measured sample so far */
    for (;;) {
      while (i < n && !isnan(x[i])) i++;
      q = i;
      while (i < n && isnan(x[i])) i++;
      if (i == n || i - q >= plan->gap) break;
      bridge(x, q, i, x[q - 1], x[i]);
    }
    SN_TRY(filter_piece(plan, o, s, p, q, err));
  }
}

/* Sample k is valid when the native samples around k down/up are all measured (condition.h). */
static void mark_valid(const rate_plan *plan, const stretch *s, int64_t first, int64_t count, uint8_t *valid) {
  bool missing = false;
  for (int64_t i = 0; i < s->hi - s->lo; i++) missing |= isnan(s->raw[i]) != 0;
  memset(valid, 1, (size_t)count);
  if (!missing) return;
  int64_t up = plan->ratio.up, down = plan->ratio.down;
  for (int64_t k = 0; k < count; k++) {
    int64_t u = (first + k) * down;                       /* position times up */
    int64_t lo = u / up, hi = (u + up - 1) / up;
    int64_t half_lo = 2 * u - down <= 0 ? 0 : (2 * u - down + 2 * up - 1) / (2 * up),
            half_hi = (2 * u + down) / (2 * up);
    if (half_lo < lo) lo = half_lo;
    if (half_hi > hi) hi = half_hi;
    if (hi > s->n - 1) hi = s->n - 1;
    for (int64_t i = lo; i <= hi; i++)
      if (isnan(s->raw[i - s->lo])) valid[k] = 0;
  }
}

static sn_status resample_stretch(const sn_conditioner *c, const rate_plan *plan, const stretch *s, int64_t first,
                                  int64_t count, double *values, sn_error *err) {
  if (c->options.resample != SN_RESAMPLE_FFT || plan->ratio.up == plan->ratio.down)
    return sn_resampler_apply(plan->resampler, s->filtered, s->from, s->to - s->from, first, count, values, err);
  double *whole = NULL;
  SN_TRY(sn_alloc(&whole, sn_resampled_length(plan->ratio, s->n), sizeof *whole, "resampled segment", err));
  sn_status status = sn_resample_fft(plan->ratio, s->filtered, s->n, whole, err);
  if (status == SN_OK) memcpy(values, whole + first, (size_t)count * sizeof *values);
  sn_free(whole);
  return status;
}

/* What has to be read, and what of it has to be filtered, for conditioned samples [first, first + count). */
static void plan_stretch(const sn_conditioner *c, const rate_plan *plan, int64_t first, int64_t count, stretch *s) {
  if (c->options.resample == SN_RESAMPLE_FFT && plan->ratio.up != plan->ratio.down) {
    s->from = 0, s->to = s->n;
  } else {
    int64_t last = 0;
    sn_resampler_needs(plan->resampler, first, count, &s->from, &last);
    s->to = last + 1;
    if (s->from < 0) s->from = 0;
    if (s->to > s->n) s->to = s->n;
  }
  /* One gap more on either side, so that a gap that reaches in is seen to be short or long. */
  s->lo = s->from - plan->support - plan->gap;
  s->hi = s->to + plan->support + plan->gap;
  if (s->lo < 0) s->lo = 0;
  if (s->hi > s->n) s->hi = s->n;
}

/* One channel, its native samples [s->lo, s->hi) in s->raw; bridged and filtered have room. */
static sn_status condition_stretch(const sn_conditioner *c, const rate_plan *plan, stretch *s, int64_t first,
                                   int64_t count, double *values, uint8_t *valid, sn_error *err) {
  memset(s->filtered, 0, (size_t)(s->to - s->from) * sizeof *s->filtered);
  SN_TRY(filter_stretch(plan, &c->options, s, err));
  SN_TRY(resample_stretch(c, plan, s, first, count, values, err));
  mark_valid(plan, s, first, count, valid);
  for (int64_t i = 0; i < count; i++)
    if (!valid[i]) values[i] = 0.0;
  return SN_OK;
}

/* Channels of one rate: what they need is read together, as many at a time as RAW_BYTES allow. */
static sn_status range_of_rate(const sn_conditioner *c, const rate_plan *plan, const sn_recording *recording,
                               const int64_t *channels, int64_t n_channels, int64_t segment, int64_t first,
                               int64_t count, double *const *values, uint8_t *const *valid, sn_error *err) {
  sn_status status;
  const int64_t per_frame = recording->channels[channels[0]].samples_per_frame;
  stretch s = {.n = sn_recording_samples(recording, channels[0], segment)};
  double *raw = NULL, **rows = NULL;
  plan_stretch(c, plan, first, count, &s);
  const int64_t n = s.hi - s.lo, frame = s.lo / per_frame, n_frames = (s.hi + per_frame - 1) / per_frame - frame;
  const int64_t width = n_channels > 1 ? n_frames * per_frame : n;
  int64_t together = width > 0 ? RAW_BYTES / (width * (int64_t)sizeof *raw) : n_channels;
  if (together < 1) together = 1;
  if (together > n_channels) together = n_channels;
  SN_TRY_GOTO(sn_alloc(&raw, together * width, sizeof *raw, "signal", err), done);
  SN_TRY_GOTO(sn_alloc(&rows, together, sizeof *rows, "signal", err), done);
  SN_TRY_GOTO(sn_alloc(&s.bridged, n, sizeof *s.bridged, "signal", err), done);
  SN_TRY_GOTO(sn_alloc(&s.filtered, s.to - s.from, sizeof *s.filtered, "filtered signal", err), done);
  for (int64_t i = 0; i < together; i++) rows[i] = raw + i * width;
  for (int64_t at = 0; at < n_channels; at += together) {
    const int64_t m = n_channels - at < together ? n_channels - at : together;
    if (n_channels > 1)
      SN_TRY_GOTO(sn_recording_read_channels(recording, channels + at, m, segment, frame, n_frames, rows, err), done);
    else SN_TRY_GOTO(sn_recording_read(recording, channels[0], segment, s.lo, n, raw, err), done);
    for (int64_t i = 0; i < m; i++) {
      s.raw = rows[i] + (n_channels > 1 ? s.lo - frame * per_frame : 0);
      SN_TRY_GOTO(condition_stretch(c, plan, &s, first, count, values[at + i], valid[at + i], err), done);
    }
  }
done:
  sn_free(raw);
  sn_free(rows);
  sn_free(s.bridged);
  sn_free(s.filtered);
  return status;
}

static sn_status check_range(const rate_plan *plan, const sn_recording *recording, int64_t channel, int64_t segment,
                             int64_t first, int64_t count, sn_error *err) {
  SN_TRY(check_segment(recording, segment, err));
  const int64_t total = sn_resampled_length(plan->ratio, sn_recording_samples(recording, channel, segment));
  if (first >= 0 && count >= 0 && first <= total - count) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT,
                 "conditioning: samples [%lld, %lld) do not lie in segment %lld, which has %lld at "
                 "%g Hz",
                 (long long)first, (long long)first + count, (long long)segment, (long long)total, plan->rate_hz);
}

sn_status sn_conditioner_range_channels(sn_conditioner *c, const sn_recording *recording, const int64_t *channels,
                                        int64_t n_channels, int64_t segment, int64_t first, int64_t count,
                                        double *const *values, uint8_t *const *valid, sn_error *err) {
  for (int64_t at = 0, end; at < n_channels; at = end) { /* runs of channels of one rate */
    const rate_plan *plan = NULL;
    SN_TRY(channel_plan(c, recording, channels[at], &plan, err));
    SN_TRY(check_range(plan, recording, channels[at], segment, first, count, err));
    for (end = at + 1; end < n_channels; end++) {
      const rate_plan *other = NULL;
      SN_TRY(channel_plan(c, recording, channels[end], &other, err));
      if (other != plan) break;
    }
    if (count > 0)
      SN_TRY(range_of_rate(c, plan, recording, channels + at, end - at, segment, first, count, values + at, valid + at,
                           err));
  }
  return SN_OK;
}

sn_status sn_conditioner_range(sn_conditioner *c, const sn_recording *recording, int64_t channel, int64_t segment,
                               int64_t first, int64_t count, double *values, uint8_t *valid, sn_error *err) {
  return sn_conditioner_range_channels(c, recording, &channel, 1, segment, first, count, &values, &valid, err);
}

sn_status sn_conditioner_window(sn_conditioner *c, const sn_recording *recording, int64_t channel, int64_t segment,
                                double start_s, const sn_channel_stats *stats, double *values, uint8_t *valid,
                                sn_window_info *info, sn_error *err) {
  const rate_plan *plan = NULL;
  sn_window_info local;
  SN_TRY(channel_plan(c, recording, channel, &plan, err));
  double k0 = floor(start_s * plan->rate_hz + 0.5);
  if (!(k0 >= 0.0) || !(k0 < 9e15))
    return sn_fail(err, SN_E_ARGUMENT, "conditioning: a window at %g s of a segment", start_s);
  SN_TRY(sn_conditioner_range(c, recording, channel, segment, (int64_t)k0, plan->window_samples, values, valid, err));
  SN_TRY(sn_conditioner_normalize(c, recording->channels[channel].unit, stats, values, valid, plan->window_samples,
                                  &local, err));
  if (info != NULL) *info = local;
  if ((double)local.n_valid < c->options.min_valid * (double)local.n || local.n_valid == 0) {
    sn_status rejected =
        sn_fail(err, SN_END, "window at %g s: %lld of %lld samples are measured, fewer than min_valid = %g", start_s,
                (long long)local.n_valid, (long long)local.n, c->options.min_valid);
    return rejected;
  }
  return SN_OK;
}

sn_status sn_conditioner_stats(sn_conditioner *c, const sn_recording *recording, int64_t channel, sn_channel_stats *out,
                               sn_error *err) {
  sn_status status;
  const rate_plan *plan = NULL;
  double *values = NULL, shift = 0.0; /* the first valid value: squares are taken about it */
  uint8_t *valid = NULL;
  sn_sum sum = {0}, squares = {0};
  *out = (sn_channel_stats){.mean = NAN, .std = NAN};
  SN_TRY(channel_plan(c, recording, channel, &plan, err));
  int64_t block = (int64_t)ceil(60.0 * plan->rate_hz);
  /* The FFT option conditions the whole segment for any part of it: then one block is a segment. */
  if (c->options.resample == SN_RESAMPLE_FFT && plan->ratio.up != plan->ratio.down)
    for (int64_t s = 0; s < recording->n_segments; s++) {
      int64_t n = sn_resampled_length(plan->ratio, sn_recording_samples(recording, channel, s));
      if (n > block) block = n;
    }
  SN_TRY_GOTO(sn_alloc(&values, block, sizeof *values, "statistics", err), done);
  SN_TRY_GOTO(sn_alloc(&valid, block, 1, "statistics", err), done);
  for (int64_t s = 0; s < recording->n_segments; s++) {
    int64_t total = sn_resampled_length(plan->ratio, sn_recording_samples(recording, channel, s));
    for (int64_t first = 0; first < total; first += block) {
      int64_t n = total - first < block ? total - first : block;
      SN_TRY_GOTO(sn_conditioner_range(c, recording, channel, s, first, n, values, valid, err), done);
      for (int64_t i = 0; i < n; i++) {
        if (!valid[i]) {
          out->missing++;
          continue;
        }
        if (out->n++ == 0) shift = values[i];
        sn_sum_add(&sum, values[i] - shift);
        sn_sum_add(&squares, (values[i] - shift) * (values[i] - shift));
      }
    }
  }
  if (out->n > 0) {
    double mean = sn_sum_value(&sum) / (double)out->n;
    out->mean = shift + mean;
    out->std = sqrt(fmax(sn_sum_value(&squares) / (double)out->n - mean * mean, 0.0));
  }
  status = SN_OK;
done:
  sn_free(values);
  sn_free(valid);
  return status;
}
