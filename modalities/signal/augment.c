#include "modalities/signal/augment.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/signal/iir.h"

static const double PI = 3.141592653589793238462643383279502884;
enum { BAND_STOP_ORDER = 4, WARP_WAVES = 3 };

/* ---- time ---------------------------------------------------------------------------------------------------------- */

/* Value at `from` + t of a row, 0 <= t < 1; false: not valid there. */
static bool between(const double *x, const uint8_t *valid, int64_t n, int64_t from, double t, double *y) {
  const int64_t b = from, c = from + 1;
  *y = 0;
  if (!valid[b]) return false;
  if (t == 0) {
    *y = x[b];
    return true;
  }
  if (c >= n || !valid[c]) return false;
  *y = x[b] + t * (x[c] - x[b]);
  if (b == 0 || c == n - 1 || !valid[b - 1] || !valid[c + 1]) return true;
  const double a = x[b - 1], d = x[c + 1];
  *y = x[b] + 0.5 * t * (x[c] - a + t * (2 * a - 5 * x[b] + 4 * x[c] - d + t * (3 * (x[b] - x[c]) + d - a)));
  return true;
}

/* D(n), as the header has it. */
static void draw_warp(double speed, sn_random *random, int64_t n, double *shift) {
  double weights[WARP_WAVES], sum = 0;
  for (int k = 0; k < WARP_WAVES; k++) {
    weights[k] = sn_random_normal(random);
    sum += fabs(weights[k]);
  }
  for (int64_t i = 0; i < n; i++) {
    shift[i] = 0;
    for (int k = 0; k < WARP_WAVES && sum > 0 && i > 0 && i < n - 1; k++) {
      const double turn = PI * (k + 1) / (double)(n - 1);
      shift[i] += speed / turn * weights[k] / sum * sin(turn * (double)i);
    }
  }
}

static sn_status warp(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  const int64_t N = w->n_samples;
  double *shift = NULL, *y = NULL;
  uint8_t *valid = NULL;
  int64_t n_valid = 0;
  sn_status status;
  if (N < 4) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&shift, N, sizeof *shift, "augmentation", err), done);
  SN_TRY_GOTO(sn_alloc(&y, w->n_series, N * (int64_t)sizeof *y, "augmentation", err), done);
  SN_TRY_GOTO(sn_alloc(&valid, w->n_series, N, "augmentation", err), done);
  draw_warp(strength[0], random, N, shift);
  for (int64_t s = 0; s < w->n_series; s++)
    for (int64_t i = 0; i < N; i++) {
      const double at = fmin(fmax((double)i + shift[i], 0), (double)(N - 1)), from = floor(at);
      valid[s * N + i] = between(w->values + s * N, w->valid + s * N, N, (int64_t)from, at - from, &y[s * N + i]);
      n_valid += valid[s * N + i];
    }
  if (n_valid > 0) {
    memcpy(w->values, y, (size_t)(w->n_series * N) * sizeof *y);
    memcpy(w->valid, valid, (size_t)(w->n_series * N));
  }
done:
  sn_free(shift);
  sn_free(y);
  sn_free(valid);
  return status;
}

static sn_status mask(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  const int64_t N = w->n_samples;
  int64_t length = (int64_t)(sn_random_uniform(random) * strength[0] * (double)N);
  if (length < 1) length = 1;
  const int64_t first = (int64_t)(sn_random_uniform(random) * (double)(N - length + 1));
  bool left = false;
  for (int64_t s = 0; s < w->n_series; s++)
    for (int64_t i = 0; i < N; i++) left = left || (w->valid[s * N + i] && (i < first || i >= first + length));
  for (int64_t s = 0; s < w->n_series && left; s++)
    for (int64_t i = first; i < first + length; i++) {
      w->valid[s * N + i] = 0;
      w->values[s * N + i] = 0;
    }
  return SN_OK;
}

/* ---- frequency ------------------------------------------------------------------------------------------------------- */

/* One stretch without gaps. */
static sn_status stop_band(const sn_iir *pass, double *x, int64_t n, double *work, sn_error *err) {
  SN_TRY(sn_iir_apply(pass, x, n, -1, work, err));
  for (int64_t i = 0; i < n; i++) x[i] -= work[i];
  return SN_OK;
}

static double highest(double high, double rate_hz) { return high > 0 ? high : 0.98 * 0.5 * rate_hz; }

static sn_status band_stop(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  const int64_t N = w->n_samples;
  const double width = 0.5 * (1 + sn_random_uniform(random)) * strength[0], low = strength[1],
               high = highest(strength[2], w->rate_hz),
               centre = low + 0.5 * width + sn_random_uniform(random) * (high - low - width);
  double *work = NULL;
  sn_iir pass;
  sn_status status;
  SN_TRY(sn_iir_butterworth(&pass, BAND_STOP_ORDER, w->rate_hz, centre - 0.5 * width, centre + 0.5 * width, err));
  SN_TRY(sn_alloc(&work, N, sizeof *work, "augmentation", err));
  for (int64_t s = 0; s < w->n_series; s++)
    for (int64_t i = 0, end; i < N; i = end) {
      const uint8_t *valid = w->valid + s * N;
      for (end = i + 1; end < N && valid[end] == valid[i]; end++) continue;
      if (valid[i]) SN_TRY_GOTO(stop_band(&pass, w->values + s * N + i, end - i, work, err), done);
    }
  status = SN_OK;
done:
  sn_free(work);
  return status;
}

/* ---- values ---------------------------------------------------------------------------------------------------------- */

static sn_status scale(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  const double factor = exp((2 * sn_random_uniform(random) - 1) * log1p(strength[0]));
  for (int64_t i = 0; i < w->n_series * w->n_samples; i++) w->values[i] *= factor;
  return SN_OK;
}

static bool has_polarity(sn_sensor_kind kind) {
  return kind == SN_SENSOR_ECG || kind == SN_SENSOR_EEG || kind == SN_SENSOR_EOG || kind == SN_SENSOR_EMG ||
         kind == SN_SENSOR_ECOG || kind == SN_SENSOR_MEG_MAG || kind == SN_SENSOR_MEG_GRAD;
}

static sn_status flip(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  for (int64_t s = 0; s < w->n_series; s++)
    for (int64_t i = 0; has_polarity(w->series[s].kind) && i < w->n_samples; i++)
      if (w->valid[s * w->n_samples + i]) w->values[s * w->n_samples + i] = -w->values[s * w->n_samples + i];
  return SN_OK;
}

static double deviation(const double *x, const uint8_t *valid, int64_t n) {
  double sum = 0, squares = 0;
  int64_t used = 0;
  for (int64_t i = 0; i < n; i++) {
    sum += valid[i] ? x[i] : 0;
    used += valid[i];
  }
  for (int64_t i = 0; i < n; i++) squares += valid[i] ? (x[i] - sum / (double)used) * (x[i] - sum / (double)used) : 0;
  return used > 0 ? sqrt(squares / (double)used) : 0;
}

static sn_status jitter(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  for (int64_t s = 0; s < w->n_series; s++) {
    double *x = w->values + s * w->n_samples;
    const uint8_t *valid = w->valid + s * w->n_samples;
    const double size = strength[0] * deviation(x, valid, w->n_samples);
    sn_random own = sn_random_fork(random, (uint64_t)s);
    for (int64_t i = 0; i < w->n_samples; i++) {
      const double z = sn_random_normal(&own);
      if (valid[i]) x[i] += size * z;
    }
  }
  return SN_OK;
}

/* ---- series ------------------------------------------------------------------------------------------------------------ */

static bool any_valid(const sn_augment_window *w, int64_t s) {
  return memchr(w->valid + s * w->n_samples, 1, (size_t)w->n_samples) != NULL;
}

static sn_status drop(const double *strength, sn_random *random, void *window, sn_error *err) {
  sn_augment_window *w = window;
  uint8_t *out = NULL;
  int64_t n_usable = 0, n_out = 0, spared = -1;
  SN_TRY(sn_alloc(&out, w->n_series, 1, "augmentation", err));
  for (int64_t s = 0; s < w->n_series; s++) {
    if (!any_valid(w, s)) continue;
    n_usable++;
    out[s] = sn_random_uniform(random) < strength[0];
    n_out += out[s];
  }
  if (n_out == n_usable && n_usable > 0) spared = (int64_t)sn_random_below(random, (uint64_t)n_usable);
  for (int64_t s = 0; s < w->n_series; s++) {
    if (!out[s] || (spared >= 0 && spared-- == 0)) continue;
    memset(w->valid + s * w->n_samples, 0, (size_t)w->n_samples);
    memset(w->values + s * w->n_samples, 0, (size_t)w->n_samples * sizeof *w->values);
  }
  sn_free(out);
  return SN_OK;
}

/* ---- the table --------------------------------------------------------------------------------------------------------- */

const sn_augment_op sn_signal_augment_ops[SN_SIGNAL_AUGMENTS] = {
    [SN_AUGMENT_CROP] = {"augment.crop", {"augment.crop_shift"}, 1, NULL},
    [SN_AUGMENT_WARP] = {"augment.warp", {"augment.warp_speed"}, 2, warp},
    [SN_AUGMENT_BAND_STOP] = {"augment.band_stop",
                              {"augment.band_stop_width", "augment.band_stop_low", "augment.band_stop_high"}, 3, band_stop},
    [SN_AUGMENT_SCALE] = {"augment.scale", {"augment.scale_range"}, 4, scale},
    [SN_AUGMENT_FLIP] = {"augment.flip", {NULL}, 5, flip},
    [SN_AUGMENT_JITTER] = {"augment.jitter", {"augment.jitter_std"}, 6, jitter},
    [SN_AUGMENT_MASK] = {"augment.mask", {"augment.mask_share"}, 7, mask},
    [SN_AUGMENT_DROP] = {"augment.drop", {"augment.drop_share"}, 8, drop}};

const sn_config_entry sn_augment_config[] = {
    {"augment.crop", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that a view's window is moved (on top of data.crop)"},
    {"augment.crop_shift", SN_CONFIG_QUANTITY, "1", 0, 86400, "s", NULL, "crop: farthest move, either way"},
    {"augment.warp", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that time runs unevenly"},
    {"augment.warp_speed", SN_CONFIG_REAL, "0.1", 0, 0.9, NULL, NULL, "warp: largest change of speed; 0.1: 10 % faster or slower"},
    {"augment.band_stop", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that a band of frequencies is taken out"},
    {"augment.band_stop_width", SN_CONFIG_QUANTITY, "4", 0.1, 1e5, "Hz", NULL, "band_stop: widest; down to half of it"},
    {"augment.band_stop_low", SN_CONFIG_QUANTITY, "0.5", 0.05, 1e5, "Hz", NULL, "band_stop: lowest edge"},
    {"augment.band_stop_high", SN_CONFIG_QUANTITY, "0", 0, 1e5, "Hz", NULL, "band_stop: highest edge; 0: 0.98 of half the rate"},
    {"augment.scale", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that all values are scaled"},
    {"augment.scale_range", SN_CONFIG_REAL, "0.2", 0, 100, NULL, NULL, "scale: a factor in [1/(1 + range), 1 + range], even in its logarithm"},
    {"augment.flip", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that electric and magnetic series change their sign"},
    {"augment.jitter", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that noise is added"},
    {"augment.jitter_std", SN_CONFIG_REAL, "0.1", 0, 100, NULL, NULL, "jitter: its deviation over that of the series in the window"},
    {"augment.mask", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that a span of time is taken out"},
    {"augment.mask_share", SN_CONFIG_REAL, "0.2", 0, 1, NULL, NULL, "mask: longest share of the window"},
    {"augment.drop", SN_CONFIG_REAL, "0", 0, 1, NULL, NULL, "probability that channels or leads are left out"},
    {"augment.drop_share", SN_CONFIG_REAL, "0.3", 0, 1, NULL, NULL, "drop: probability of each to be left out; one always stays"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

sn_status sn_signal_augments_read(sn_augments *out, const sn_config *config, double rate_hz, sn_error *err) {
  sn_augments_read(out, sn_signal_augment_ops, SN_SIGNAL_AUGMENTS, config);
  const double *stop = out->strength[SN_AUGMENT_BAND_STOP], high = highest(stop[2], rate_hz);
  if (out->probability[SN_AUGMENT_BAND_STOP] <= 0) return SN_OK;
  if (high >= 0.5 * rate_hz)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "augment.band_stop_high",
                      "augment.band_stop_high: %g Hz is not below half the rate of %g Hz", high, rate_hz);
  if (stop[1] + stop[0] > high)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "augment.band_stop_width",
                      "augment.band_stop_width: a stop of %g Hz has no room between %g and %g Hz", stop[0], stop[1], high);
  return SN_OK;
}

double sn_signal_augment_shift(const sn_augments *augments, const sn_random *sample) {
  sn_random random;
  if (augments->n_ops == 0 || !sn_augment_drawn(augments, SN_AUGMENT_CROP, sample, &random)) return 0;
  return (2 * sn_random_uniform(&random) - 1) * augments->strength[SN_AUGMENT_CROP][0];
}
