#include "modalities/signal/spectral.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft.h"

static const double PI = 3.14159265358979323846;
static const double EPS = 1e-6, FLAT = 1e-8; /* signals S3, as objectives/mae.h */

struct sn_spectral {
  sn_spectral_options o;
  int64_t n_frames, first_bin, n_bins;
  double *window; /* (L) */
  sn_fft *fft;
};

typedef struct scratch {
  double *frame;          /* (L) */
  double complex *bins;   /* (L/2 + 1) */
  double *values;         /* (width) of one patch, NaN where there is none */
} scratch;

static sn_status check(const sn_spectral_options *o, sn_error *err) {
  if (o->frame < 2 || o->frame > o->patch_size || o->hop < 1)
    return sn_fail(err, SN_E_ARGUMENT, "spectrum: frames of %lld samples every %lld cannot be cut from a patch of %lld",
                   (long long)o->frame, (long long)o->hop, (long long)o->patch_size);
  if (!(o->rate_hz > 0) || !(o->low_hz >= 0) || !(o->high_hz >= 0) || !(o->floor >= 0))
    return sn_fail(err, SN_E_ARGUMENT, "spectrum: rate %g Hz, from %g Hz to %g Hz, floor %g", o->rate_hz, o->low_hz,
                   o->high_hz, o->floor);
  return SN_OK;
}

/* Bins in [low, high] without bin 0; a bin on the limit but for rounding is in. */
static void choose_bins(sn_spectral *s) {
  const double width = s->o.rate_hz / (double)s->o.frame, slack = 1e-9 * width;
  const double high = s->o.high_hz > 0 ? s->o.high_hz : s->o.rate_hz / 2;
  s->first_bin = -1;
  for (int64_t k = 1; k <= s->o.frame / 2; k++) {
    const double f = (double)k * width;
    if (f < s->o.low_hz - slack || f > high + slack) continue;
    if (s->first_bin < 0) s->first_bin = k;
    s->n_bins++;
  }
}

sn_status sn_spectral_create(const sn_spectral_options *options, sn_spectral **out, sn_error *err) {
  sn_spectral *s = NULL;
  sn_status status;
  SN_TRY(check(options, err));
  SN_TRY(sn_alloc(&s, 1, sizeof *s, "spectrum", err));
  s->o = *options;
  s->n_frames = 1 + (s->o.patch_size - s->o.frame) / s->o.hop;
  choose_bins(s);
  if (s->n_bins == 0) {
    status = sn_fail(err, SN_E_ARGUMENT,
                     "spectrum: no frequency of a frame of %lld samples at %g Hz (steps of %g Hz) lies from %g Hz to %g Hz",
                     (long long)s->o.frame, s->o.rate_hz, s->o.rate_hz / (double)s->o.frame, s->o.low_hz, s->o.high_hz);
    goto fail;
  }
  SN_TRY_GOTO(sn_fft_create(s->o.frame, &s->fft, err), fail);
  SN_TRY_GOTO(sn_alloc(&s->window, s->o.frame, sizeof *s->window, "spectrum", err), fail);
  for (int64_t n = 0; n < s->o.frame; n++)
    s->window[n] = s->o.hann ? 0.5 - 0.5 * cos(2 * PI * (double)n / (double)s->o.frame) : 1;
  *out = s;
  return SN_OK;
fail:
  sn_spectral_destroy(s);
  return status;
}

void sn_spectral_destroy(sn_spectral *spectral) {
  if (spectral == NULL) return;
  sn_fft_destroy(spectral->fft);
  sn_free(spectral->window);
  sn_free(spectral);
}

int64_t sn_spectral_frames(const sn_spectral *spectral) { return spectral->n_frames; }
int64_t sn_spectral_bins(const sn_spectral *spectral) { return spectral->n_bins; }
int64_t sn_spectral_width(const sn_spectral *spectral) { return spectral->n_frames * spectral->n_bins; }

double sn_spectral_frequency(const sn_spectral *spectral, int64_t bin) {
  return (double)(spectral->first_bin + bin) * spectral->o.rate_hz / (double)spectral->o.frame;
}

/* y (bins) of one frame; NaN throughout when too little of it is valid. */
static sn_status frame_values(const sn_spectral *s, const float *x, const uint8_t *valid, scratch *t, double *y,
                              sn_error *err) {
  const int64_t L = s->o.frame;
  double sum = 0, weight = 0;
  int64_t n = 0;
  for (int64_t i = 0; i < L; i++) {
    if (valid != NULL && !valid[i]) continue;
    sum += x[i];
    weight += s->window[i];
    n++;
  }
  if (2 * n < L || !(weight > 0)) {
    for (int64_t k = 0; k < s->n_bins; k++) y[k] = NAN;
    return SN_OK;
  }
  const double mean = sum / (double)n;
  for (int64_t i = 0; i < L; i++) t->frame[i] = valid == NULL || valid[i] ? s->window[i] * (x[i] - mean) : 0;
  SN_TRY(sn_fft_forward(s->fft, t->frame, t->bins, err));
  for (int64_t k = 0; k < s->n_bins; k++) {
    const int64_t bin = s->first_bin + k;
    const double a = (2 * bin == L ? 1 : 2) * cabs(t->bins[bin]) / weight + s->o.floor;
    y[k] = a > 0 ? log(a) : NAN;
  }
  return SN_OK;
}

/* (y - mean) / sqrt(var + eps) over what is there; nothing when it is flat. */
static void normalize_patch(double *y, int64_t n) {
  double sum = 0, squares = 0;
  int64_t count = 0;
  for (int64_t k = 0; k < n; k++)
    if (isfinite(y[k])) {
      sum += y[k];
      count++;
    }
  const double mean = count > 0 ? sum / (double)count : 0;
  for (int64_t k = 0; k < n; k++)
    if (isfinite(y[k])) squares += (y[k] - mean) * (y[k] - mean);
  const double variance = count > 1 ? squares / (double)(count - 1) : 0;
  for (int64_t k = 0; k < n; k++) y[k] = variance < FLAT ? NAN : (y[k] - mean) / sqrt(variance + EPS);
}

static void free_scratch(scratch *t) {
  sn_free(t->frame);
  sn_free(t->bins);
  sn_free(t->values);
}

sn_status sn_spectral_patches(const sn_spectral *spectral, float *values, uint8_t *values_valid, const float *patches,
                              const uint8_t *valid, int64_t n, sn_error *err) {
  const int64_t P = spectral->o.patch_size, width = sn_spectral_width(spectral);
  scratch t = {0};
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&t.frame, spectral->o.frame, sizeof *t.frame, "spectrum", err), done);
  SN_TRY_GOTO(sn_alloc(&t.bins, spectral->o.frame / 2 + 1, sizeof *t.bins, "spectrum", err), done);
  SN_TRY_GOTO(sn_alloc(&t.values, width, sizeof *t.values, "spectrum", err), done);
  for (int64_t i = 0; i < n; i++) {
    for (int64_t f = 0; f < spectral->n_frames; f++) {
      const int64_t at = i * P + f * spectral->o.hop;
      SN_TRY_GOTO(frame_values(spectral, patches + at, valid != NULL ? valid + at : NULL, &t,
                               t.values + f * spectral->n_bins, err),
                  done);
    }
    if (spectral->o.per_patch) normalize_patch(t.values, width);
    for (int64_t k = 0; k < width; k++) {
      values_valid[i * width + k] = isfinite(t.values[k]) != 0;
      values[i * width + k] = isfinite(t.values[k]) ? (float)t.values[k] : 0.0f;
    }
  }
done:
  free_scratch(&t);
  return status;
}
