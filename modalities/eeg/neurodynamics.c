#include "modalities/eeg/neurodynamics.h"

#include <complex.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft.h"
#include "modalities/eeg/band_power.h"
#include "modalities/eeg/layout.h"

#define PI 3.14159265358979323846
#define PIECE_S 2.0
#define FLOOR 1e-12

enum { PHASE_BINS = 18, THETA = 1, GAMMA = 4 };
enum { LOG_POWER = 0, RELATIVE = 5, MODULATION = 10, PERMUTATION = 11, MOBILITY = 12, COMPLEXITY = 13 };

static const struct {
  const char *name;
  double low, high;
} BANDS[SN_NEURO_BANDS] = {{"delta", 1, 4}, {"theta", 4, 8}, {"alpha", 8, 13}, {"beta", 13, 30}, {"gamma", 30, 45}};

struct sn_neuro {
  sn_neuro_options options;
  int64_t drop, kept;                                  /* samples dropped at each end, and left between */
  int64_t first[SN_NEURO_BANDS], last[SN_NEURO_BANDS]; /* bins [first, last) of a band; empty: out of reach */
  sn_fft *fft;
  sn_welch *welch; /* NULL: the window is shorter than a piece */
};

sn_status sn_neuro_create(const sn_neuro_options *options, sn_neuro **out, sn_error *err) {
  sn_status status;
  sn_neuro *neuro = NULL;
  double rate = options->rate_hz;
  int64_t n = options->n_samples;
  *out = NULL;
  if (!(rate > 0.0) || !isfinite(rate) || n < 32 || n > ((int64_t)1 << 30))
    return sn_fail(err, SN_E_ARGUMENT, "neurodynamics: a window of %lld samples at %g Hz; 32 to 2^30 are possible",
                   (long long)n, rate);
  SN_TRY_GOTO(sn_alloc(&neuro, 1, sizeof *neuro, "neurodynamics", err), fail);
  neuro->options = *options;
  neuro->drop = n / 10, neuro->kept = n - 2 * neuro->drop;
  SN_TRY_GOTO(sn_fft_create(n, &neuro->fft, err), fail);
  if ((double)n >= floor(PIECE_S * rate + 0.5) && floor(PIECE_S * rate + 0.5) >= 4.0)
    SN_TRY_GOTO(sn_welch_create(rate, PIECE_S, &neuro->welch, err), fail);
  for (int b = 0; b < SN_NEURO_BANDS; b++) {
    if (BANDS[b].high > rate / 2.0) continue;
    int64_t k = 0;
    while ((double)k * rate / (double)n < BANDS[b].low) k++;
    neuro->first[b] = k;
    while ((double)k * rate / (double)n < BANDS[b].high) k++;
    neuro->last[b] = k;
  }
  *out = neuro;
  return SN_OK;
fail:
  sn_neuro_destroy(neuro);
  return status;
}

void sn_neuro_destroy(sn_neuro *neuro) {
  if (neuro == NULL) return;
  sn_fft_destroy(neuro->fft);
  sn_welch_destroy(neuro->welch);
  sn_free(neuro);
}

/* --- parts of one channel --- */

/* y = x without its least-squares line; false: a sample is missing. */
static bool detrend(double *y, const double *x, int64_t n) {
  double middle = ((double)n - 1.0) / 2.0, sum = 0.0, moment = 0.0, count = (double)n;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(x[i])) return false;
    sum += x[i];
  }
  double mean = sum / count;
  for (int64_t i = 0; i < n; i++) moment += ((double)i - middle) * (x[i] - mean);
  double slope = moment / (count * (count * count - 1.0) / 12.0);
  for (int64_t i = 0; i < n; i++) y[i] = x[i] - mean - slope * ((double)i - middle);
  return true;
}

static bool is_flat(const double *x, int64_t n) {
  for (int64_t i = 1; i < n; i++)
    if (x[i] != x[0]) return false;
  return true;
}

/* z (kept) = the analytic signal of a band, from the spectrum of y; work: 2 n doubles and n/2 + 1 complex. */
typedef struct analytic_work {
  double *y, *re, *im;             /* (n) each */
  double complex *spectrum, *part; /* (n/2 + 1) each */
} analytic_work;

static void work_free(analytic_work *w) {
  sn_free(w->y);
  sn_free(w->spectrum);
}

static sn_status work_prepare(analytic_work *w, const sn_neuro *neuro, sn_error *err) {
  int64_t n = neuro->options.n_samples, bins = n / 2 + 1;
  SN_TRY(sn_alloc(&w->y, 3 * n, sizeof *w->y, "neurodynamics", err));
  SN_TRY(sn_alloc(&w->spectrum, 2 * bins, sizeof *w->spectrum, "neurodynamics", err));
  w->re = w->y + n, w->im = w->y + 2 * n, w->part = w->spectrum + bins;
  return SN_OK;
}

static bool has_band(const sn_neuro *neuro, int band) { return neuro->last[band] > neuro->first[band]; }

static sn_status analytic(double complex *z, const sn_neuro *neuro, int band, analytic_work *w, sn_error *err) {
  int64_t n = neuro->options.n_samples, bins = n / 2 + 1;
  memset(w->part, 0, (size_t)bins * sizeof *w->part);
  for (int64_t k = neuro->first[band]; k < neuro->last[band]; k++) w->part[k] = w->spectrum[k] / (double)n;
  SN_TRY(sn_fft_inverse(neuro->fft, w->part, w->re, err));
  for (int64_t k = neuro->first[band]; k < neuro->last[band]; k++) w->part[k] *= -I; /* Hilbert */
  SN_TRY(sn_fft_inverse(neuro->fft, w->part, w->im, err));
  for (int64_t i = 0; i < neuro->kept; i++) z[i] = w->re[neuro->drop + i] + I * w->im[neuro->drop + i];
  return SN_OK;
}

static sn_status powers(double *values, const sn_neuro *neuro, const double *x, sn_error *err) {
  sn_status status;
  double *density = NULL, power[SN_NEURO_BANDS], total = 0.0;
  int64_t pieces = 0, bins;
  if (neuro->welch == NULL) return SN_OK;
  bins = sn_welch_bins(neuro->welch);
  SN_TRY(sn_alloc(&density, bins, sizeof *density, "spectrum", err));
  SN_TRY_GOTO(sn_welch_add(density, &pieces, neuro->welch, x, neuro->options.n_samples, err), done);
  for (int64_t k = 0; k < bins && pieces > 0; k++) density[k] /= (double)pieces;
  for (int b = 0; b < SN_NEURO_BANDS; b++) {
    power[b] = has_band(neuro, b) ? sn_band_power(density, neuro->welch, BANDS[b].low, BANDS[b].high) : NAN;
    total += power[b];
    values[LOG_POWER + b] = log10(power[b] + FLOOR);
  }
  if (!is_flat(x, neuro->options.n_samples))
    for (int b = 0; b < SN_NEURO_BANDS; b++) values[RELATIVE + b] = power[b] / total;
done:
  sn_free(density);
  return status;
}

static double modulation_index(const double complex *phase, const double complex *amplitude, int64_t n) {
  double sums[PHASE_BINS] = {0}, total = 0.0, entropy = 0.0;
  int64_t counts[PHASE_BINS] = {0};
  for (int64_t i = 0; i < n; i++) {
    int bin = (int)floor((carg(phase[i]) + PI) / (2.0 * PI / PHASE_BINS));
    if (bin >= PHASE_BINS) bin = PHASE_BINS - 1; /* exactly 180 degrees */
    sums[bin] += cabs(amplitude[i]), counts[bin]++;
  }
  for (int j = 0; j < PHASE_BINS; j++) {
    if (counts[j] == 0) return NAN;
    sums[j] /= (double)counts[j];
    total += sums[j];
  }
  if (!(total > 0.0)) return NAN;
  for (int j = 0; j < PHASE_BINS; j++)
    if (sums[j] > 0.0) entropy -= sums[j] / total * log(sums[j] / total);
  return (log(PHASE_BINS) - entropy) / log(PHASE_BINS);
}

/* Ordinal patterns of three neighbours: ranks by value, equals in the order of time. */
static double permutation_entropy(const double *x, int64_t n) {
  int64_t counts[8] = {0}; /* bit 0: x0 <= x1, bit 1: x0 <= x2, bit 2: x1 <= x2: six of eight can be */
  double entropy = 0.0, total = (double)(n - 2);
  for (int64_t i = 0; i + 2 < n; i++)
    counts[(x[i] <= x[i + 1]) | (x[i] <= x[i + 2]) << 1 | (x[i + 1] <= x[i + 2]) << 2]++;
  for (int j = 0; j < 8; j++)
    if (counts[j] > 0) entropy -= (double)counts[j] / total * log((double)counts[j] / total);
  return entropy / log(6.0);
}

static double variance(const double *x, int64_t n) {
  double sum = 0.0, squares = 0.0;
  for (int64_t i = 0; i < n; i++) sum += x[i];
  double mean = sum / (double)n;
  for (int64_t i = 0; i < n; i++) squares += (x[i] - mean) * (x[i] - mean);
  return squares / (double)n;
}

/* d: n values of room. */
static void hjorth(double *values, const double *y, int64_t n, double *d) {
  double v0 = variance(y, n);
  for (int64_t i = 0; i + 1 < n; i++) d[i] = y[i + 1] - y[i];
  double v1 = variance(d, n - 1);
  for (int64_t i = 0; i + 2 < n; i++) d[i] = d[i + 1] - d[i];
  double v2 = variance(d, n - 2);
  if (!(v0 > 0.0) || !(v1 > 0.0)) return;
  values[MOBILITY] = sqrt(v1 / v0);
  values[COMPLEXITY] = sqrt(v2 / v1) / values[MOBILITY];
}

sn_status sn_neuro_channel(double values[SN_NEURO_CHANNEL_VALUES], const sn_neuro *neuro, const double *x,
                           sn_error *err) {
  sn_status status;
  int64_t n = neuro->options.n_samples;
  analytic_work w = {0};
  double complex *z = NULL;
  for (int i = 0; i < SN_NEURO_CHANNEL_VALUES; i++) values[i] = NAN;
  SN_TRY_GOTO(work_prepare(&w, neuro, err), done);
  if (!detrend(w.y, x, n)) goto done;
  SN_TRY_GOTO(powers(values, neuro, x, err), done);
  values[PERMUTATION] = permutation_entropy(x, n);
  if (is_flat(x, n)) goto done;
  hjorth(values, w.y, n, w.re);
  if (has_band(neuro, THETA) && has_band(neuro, GAMMA)) {
    SN_TRY_GOTO(sn_alloc(&z, 2 * neuro->kept, sizeof *z, "analytic signal", err), done);
    SN_TRY_GOTO(sn_fft_forward(neuro->fft, w.y, w.spectrum, err), done);
    SN_TRY_GOTO(analytic(z, neuro, THETA, &w, err), done);
    SN_TRY_GOTO(analytic(z + neuro->kept, neuro, GAMMA, &w, err), done);
    values[MODULATION] = modulation_index(z, z + neuro->kept, neuro->kept);
  }
done:
  work_free(&w);
  sn_free(z);
  return status;
}

/* --- pairs --- */

/* Unit phasors (n, kept) of one band; NaN where a channel has none. spectra (n, n/2 + 1). */
static sn_status phasors(double complex *u, const sn_neuro *neuro, int band, const double complex *spectra,
                         const uint8_t *usable, int64_t n, analytic_work *w, sn_error *err) {
  int64_t bins = neuro->options.n_samples / 2 + 1;
  for (int64_t c = 0; c < n; c++) {
    double complex *z = u + c * neuro->kept;
    if (!usable[c]) continue;
    memcpy(w->spectrum, spectra + c * bins, (size_t)bins * sizeof *spectra);
    SN_TRY(analytic(z, neuro, band, w, err));
    for (int64_t i = 0; i < neuro->kept; i++) z[i] /= cabs(z[i]); /* 0/0 is NaN, and so is the pair */
  }
  return SN_OK;
}

static double locking(const double complex *a, const double complex *b, int64_t n) {
  double re = 0.0, im = 0.0;
  for (int64_t i = 0; i < n; i++) {
    double complex product = a[i] * conj(b[i]);
    re += creal(product), im += cimag(product);
  }
  return hypot(re, im) / (double)n;
}

static sn_status phase_locking(double *values, const sn_neuro *neuro, const double *x, int64_t n, sn_error *err) {
  sn_status status;
  int64_t samples = neuro->options.n_samples, bins = samples / 2 + 1, elements = 0;
  analytic_work w = {0};
  double complex *u = NULL, *spectra = NULL;
  uint8_t *usable = NULL;
  SN_TRY_GOTO(work_prepare(&w, neuro, err), done);
  if (!sn_mul_ok(n, samples, &elements)) {
    status = sn_fail(err, SN_E_MEMORY, "neurodynamics: %lld channels are too many", (long long)n);
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&u, elements, sizeof *u, "phases", err), done);
  SN_TRY_GOTO(sn_alloc(&spectra, n * bins, sizeof *spectra, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&usable, n, 1, "phases", err), done);
  for (int64_t c = 0; c < n; c++) {
    if (!detrend(w.y, x + c * samples, samples) || is_flat(x + c * samples, samples)) continue;
    usable[c] = 1;
    SN_TRY_GOTO(sn_fft_forward(neuro->fft, w.y, spectra + c * bins, err), done);
  }
  for (int b = 0; b < SN_NEURO_BANDS; b++) {
    if (!has_band(neuro, b)) continue;
    SN_TRY_GOTO(phasors(u, neuro, b, spectra, usable, n, &w, err), done);
    for (int64_t a = 0, pair = 0; a < n; a++)
      for (int64_t c = a + 1; c < n; c++, pair++)
        if (usable[a] && usable[c])
          values[pair * SN_NEURO_BANDS + b] = locking(u + a * neuro->kept, u + c * neuro->kept, neuro->kept);
  }
done:
  work_free(&w);
  sn_free(u);
  sn_free(spectra);
  sn_free(usable);
  return status;
}

/* |S_ab|^2 / (S_aa S_bb), mean over the bins of each band. s (n, pieces, bins): spectra of the pieces. */
static void coherence_of(double *values, const sn_neuro *neuro, const double complex *a, const double complex *b,
                         int64_t pieces, int64_t bins) {
  for (int band = 0; band < SN_NEURO_BANDS; band++) {
    double sum = 0.0;
    int64_t n = 0;
    if (!has_band(neuro, band)) continue;
    for (int64_t k = 0; k < bins; k++) {
      double f = (double)k * sn_welch_resolution(neuro->welch), aa = 0.0, bb = 0.0;
      double complex ab = 0.0;
      if (f < BANDS[band].low || f >= BANDS[band].high) continue;
      for (int64_t p = 0; p < pieces; p++) {
        double complex u = a[p * bins + k], v = b[p * bins + k];
        ab += conj(u) * v;
        aa += creal(u) * creal(u) + cimag(u) * cimag(u), bb += creal(v) * creal(v) + cimag(v) * cimag(v);
      }
      sum += (creal(ab) * creal(ab) + cimag(ab) * cimag(ab)) / (aa * bb);
      n++;
    }
    if (n > 0) values[band] = sum / (double)n;
  }
}

static sn_status coherence(double *values, const sn_neuro *neuro, const double *x, int64_t n, sn_error *err) {
  sn_status status;
  int64_t samples = neuro->options.n_samples, pieces, bins, hop;
  double complex *spectra = NULL;
  double *y = NULL;
  uint8_t *usable = NULL;
  if (neuro->welch == NULL) return SN_OK;
  bins = sn_welch_bins(neuro->welch), hop = sn_welch_piece(neuro->welch) - sn_welch_piece(neuro->welch) / 2;
  pieces = (samples - sn_welch_piece(neuro->welch)) / hop + 1;
  if (pieces < 2) return SN_OK;
  SN_TRY_GOTO(sn_alloc(&spectra, n, pieces * bins * (int64_t)sizeof *spectra, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&usable, n, 1, "spectra", err), done);
  SN_TRY_GOTO(sn_alloc(&y, samples, sizeof *y, "spectra", err), done);
  for (int64_t c = 0; c < n; c++) {
    usable[c] = detrend(y, x + c * samples, samples) && !is_flat(x + c * samples, samples);
    for (int64_t p = 0; p < pieces && usable[c]; p++)
      SN_TRY_GOTO(sn_welch_spectrum(spectra + (c * pieces + p) * bins, neuro->welch, x + c * samples + p * hop, err),
                  done);
  }
  for (int64_t a = 0, pair = 0; a < n; a++)
    for (int64_t b = a + 1; b < n; b++, pair++)
      if (usable[a] && usable[b])
        coherence_of(values + pair * SN_NEURO_BANDS, neuro, spectra + a * pieces * bins, spectra + b * pieces * bins,
                     pieces, bins);
  status = SN_OK;
done:
  sn_free(spectra);
  sn_free(usable);
  sn_free(y);
  return status;
}

sn_status sn_neuro_pairs(double *values, const sn_neuro *neuro, const double *x, int64_t n, sn_error *err) {
  for (int64_t i = 0; i < n * (n - 1) / 2 * SN_NEURO_BANDS; i++) values[i] = NAN;
  if (n < 2) return SN_OK;
  return neuro->options.coherence ? coherence(values, neuro, x, n, err) : phase_locking(values, neuro, x, n, err);
}

/* --- a window --- */

int64_t sn_neuro_count(int64_t n_channels) {
  int64_t ends = n_channels <= SN_NEURO_MOST_CHANNELS ? n_channels : SN_NEURO_REGIONS;
  return n_channels * SN_NEURO_CHANNEL_VALUES + ends * (ends - 1) / 2 * SN_NEURO_BANDS;
}

/* Pairs of the regions' mean signals: values (36, 5). A region without channels is missing throughout. */
static sn_status region_pairs(double *values, const sn_neuro *neuro, const double *x, int64_t n_channels,
                              const int32_t *regions, sn_error *err) {
  double *means = NULL;
  int64_t n = neuro->options.n_samples;
  SN_TRY(sn_alloc(&means, SN_NEURO_REGIONS * n, sizeof *means, "regions", err));
  for (int32_t r = 0; r < SN_NEURO_REGIONS; r++) {
    int64_t members = 0;
    for (int64_t c = 0; c < n_channels; c++) members += regions[c] == r;
    for (int64_t i = 0; i < n && members == 0; i++) means[r * n + i] = NAN;
    for (int64_t c = 0; c < n_channels; c++)
      for (int64_t i = 0; i < n && regions[c] == r; i++) means[r * n + i] += x[c * n + i] / (double)members;
  }
  sn_status status = sn_neuro_pairs(values, neuro, means, SN_NEURO_REGIONS, err);
  sn_free(means);
  return status;
}

sn_status sn_neuro_window(double *values, const sn_neuro *neuro, const double *x, int64_t n_channels,
                          const int32_t *regions, sn_error *err) {
  double *pairs = values + n_channels * SN_NEURO_CHANNEL_VALUES;
  if (n_channels > SN_NEURO_MOST_CHANNELS && regions == NULL)
    return sn_fail(err, SN_E_ARGUMENT, "neurodynamics: %lld channels need their regions (all pairs up to %d channels)",
                   (long long)n_channels, SN_NEURO_MOST_CHANNELS);
  for (int64_t c = 0; c < n_channels; c++)
    SN_TRY(sn_neuro_channel(values + c * SN_NEURO_CHANNEL_VALUES, neuro, x + c * neuro->options.n_samples, err));
  if (n_channels <= SN_NEURO_MOST_CHANNELS) return sn_neuro_pairs(pairs, neuro, x, n_channels, err);
  return region_pairs(pairs, neuro, x, n_channels, regions, err);
}

sn_status sn_neuro_summary(double *values, const sn_neuro *neuro, const double *x, int64_t n_channels,
                           const int32_t *regions, sn_error *err) {
  int64_t counts[SN_NEURO_REGIONS][SN_NEURO_CHANNEL_VALUES] = {{0}};
  for (int64_t i = 0; i < SN_NEURO_SUMMARY; i++) values[i] = 0.0;
  for (int64_t c = 0; c < n_channels; c++) {
    double own[SN_NEURO_CHANNEL_VALUES];
    if (regions[c] < 0 || regions[c] >= SN_NEURO_REGIONS) continue;
    SN_TRY(sn_neuro_channel(own, neuro, x + c * neuro->options.n_samples, err));
    for (int i = 0; i < SN_NEURO_CHANNEL_VALUES; i++) {
      if (isnan(own[i])) continue;
      values[regions[c] * SN_NEURO_CHANNEL_VALUES + i] += own[i];
      counts[regions[c]][i]++;
    }
  }
  for (int r = 0; r < SN_NEURO_REGIONS; r++)
    for (int i = 0; i < SN_NEURO_CHANNEL_VALUES; i++) {
      double *value = &values[r * SN_NEURO_CHANNEL_VALUES + i];
      *value = counts[r][i] > 0 ? *value / (double)counts[r][i] : NAN;
    }
  return region_pairs(values + SN_NEURO_REGIONS * SN_NEURO_CHANNEL_VALUES, neuro, x, n_channels, regions, err);
}

void sn_neuro_channel_name(char name[SN_NEURO_NAME], int64_t i) {
  static const char *const OTHERS[] = {"modulation", "permutation", "mobility", "complexity"};
  if (i < 0 || i >= SN_NEURO_CHANNEL_VALUES)
    snprintf(name, SN_NEURO_NAME, "?");
  else if (i < RELATIVE)
    snprintf(name, SN_NEURO_NAME, "%s_log_power", BANDS[i].name);
  else if (i < MODULATION)
    snprintf(name, SN_NEURO_NAME, "%s_relative_power", BANDS[i - RELATIVE].name);
  else
    snprintf(name, SN_NEURO_NAME, "%s", OTHERS[i - MODULATION]);
}

static const char *const REGIONS[SN_NEURO_REGIONS] = {"left_front",  "middle_front",  "right_front",
                                                      "left_centre", "middle_centre", "right_centre",
                                                      "left_back",   "middle_back",   "right_back"};

void sn_neuro_summary_name(char name[SN_NEURO_NAME], int64_t i) {
  char own[SN_NEURO_NAME];
  int64_t values = SN_NEURO_REGIONS * SN_NEURO_CHANNEL_VALUES;
  if (i < 0 || i >= SN_NEURO_SUMMARY) {
    snprintf(name, SN_NEURO_NAME, "?");
    return;
  }
  if (i < values) {
    sn_neuro_channel_name(own, i % SN_NEURO_CHANNEL_VALUES);
    snprintf(name, SN_NEURO_NAME, "%s_%.40s", REGIONS[i / SN_NEURO_CHANNEL_VALUES], own);
    return;
  }
  int64_t pair = (i - values) / SN_NEURO_BANDS, a = 0;
  while (pair >= SN_NEURO_REGIONS - 1 - a) pair -= SN_NEURO_REGIONS - 1 - a, a++;
  snprintf(name, SN_NEURO_NAME, "%s_%s_%s", REGIONS[a], REGIONS[a + 1 + pair],
           BANDS[(i - values) % SN_NEURO_BANDS].name);
}

int32_t sn_neuro_region(const double position_m[3], double radius_m) {
  double centre[3], u[3], norm = 0.0;
  sn_head_centre(radius_m, centre);
  for (int i = 0; i < 3; i++) u[i] = position_m[i] - centre[i], norm += u[i] * u[i];
  norm = sqrt(norm);
  if (!(norm > 0.0) || !isfinite(norm)) return -1;
  int32_t column = u[0] / norm < -0.25 ? 0 : u[0] / norm > 0.25 ? 2 : 1;
  int32_t row = u[1] / norm > 0.5 ? 0 : u[1] / norm < -0.5 ? 2 : 1;
  return 3 * row + column;
}
