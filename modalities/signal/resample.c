#include "modalities/signal/resample.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft.h"
#include "modalities/signal/fir.h"

#define PI 3.14159265358979323846
#define KAISER_BETA 5.0

enum { HALF_LENGTH = 10 };

typedef __int128 wide; /* products of two rates given as fractions */

static wide wide_gcd(wide a, wide b) {
  while (b != 0) {
    wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

/* The fraction nearest to a/b (0 < a <= b) whose denominator is at most `most`, from its continued fraction: the last
 * convergent that fits, or the intermediate one beyond it where that is nearer. */
static void nearest_fraction(wide a, wide b, wide most, wide *num, wide *den) {
  wide p0 = 0, q0 = 1, p1 = 1, q1 = 0, n = a, d = b;
  while (d != 0) {
    wide digit = n / d;
    if (q0 + digit * q1 > most) break;
    wide p2 = p0 + digit * p1, q2 = q0 + digit * q1, rest = n - digit * d;
    p0 = p1, q0 = q1, p1 = p2, q1 = q2;
    n = d, d = rest;
  }
  *num = p1, *den = q1;
  if (d == 0 || q1 == 0) return;
  wide k = (most - q0) / q1, p = p0 + k * p1, q = q0 + k * q1;
  long double exact = (long double)a / (long double)b;
  if (fabsl((long double)p / (long double)q - exact) < fabsl((long double)p1 / (long double)q1 - exact))
    *num = p, *den = q;
}

sn_status sn_resample_ratio(sn_ratio *out, int64_t in_num, int64_t in_den, int64_t out_num, int64_t out_den,
                            double tolerance, sn_error *err) {
  *out = (sn_ratio){0, 0};
  if (in_num <= 0 || in_den <= 0 || out_num <= 0 || out_den <= 0)
    return sn_fail(err, SN_E_ARGUMENT, "resampling from %lld/%lld to %lld/%lld Hz: rates must be positive",
                   (long long)in_num, (long long)in_den, (long long)out_num, (long long)out_den);
  wide up = (wide)out_num * in_den, down = (wide)out_den * in_num, g = wide_gcd(up, down);
  up /= g, down /= g;
  if (up > SN_RESAMPLE_MOST || down > SN_RESAMPLE_MOST) {
    wide p = 0, q = 1;
    if (up <= down) nearest_fraction(up, down, SN_RESAMPLE_MOST, &p, &q);
    else nearest_fraction(down, up, SN_RESAMPLE_MOST, &q, &p);
    double from = (double)in_num / (double)in_den, to = (double)out_num / (double)out_den;
    double off = p > 0 && q > 0 ? fabs((double)p / (double)q * from / to - 1.0) : 1.0;
    if (!(tolerance > 0.0) || !(off <= tolerance))
      return sn_fail(err, SN_E_ARGUMENT,
                     "resampling from %.9g to %.9g Hz needs a ratio with a part over %d; the nearest "
                     "smaller one is off by %.3g relative, the tolerance is %.3g",
                     from, to, (int)SN_RESAMPLE_MOST, off, tolerance);
    up = p, down = q;
  }
  *out = (sn_ratio){(int64_t)up, (int64_t)down};
  return SN_OK;
}

/* --- polyphase --- */

struct sn_resampler {
  sn_ratio ratio;
  int64_t half;       /* L */
  int64_t *first;     /* (up) t_lo of each phase: input q + t_lo is the first that the phase uses */
  int64_t *offset;    /* (up + 1) into taps */
  double *taps;       /* of each phase, in the order of ascending inputs */
};

static double bessel_i0(double x) { /* the power series, all terms positive */
  double term = 1.0, sum = 1.0;
  for (int k = 1; k < 200 && term > 1e-18 * sum; k++) {
    term *= (x / 2.0 / k) * (x / 2.0 / k);
    sum += term;
  }
  return sum;
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }

/* h[i], i = 0..2L */
static void design(double *h, sn_ratio ratio) {
  int64_t most = ratio.up > ratio.down ? ratio.up : ratio.down, half = HALF_LENGTH * most;
  double sum = 0.0, cutoff = 1.0 / (double)most;
  for (int64_t i = 0; i <= 2 * half; i++) {
    double u = (double)(i - half) / (double)half, t = cutoff * (double)(i - half);
    double window = bessel_i0(KAISER_BETA * sqrt(fmax(1.0 - u * u, 0.0))) / bessel_i0(KAISER_BETA);
    h[i] = window * (t == 0.0 ? 1.0 : sin(PI * t) / (PI * t));
    sum += h[i];
  }
  for (int64_t i = 0; i <= 2 * half; i++) h[i] *= (double)ratio.up / sum;
}

sn_status sn_resampler_create(sn_ratio ratio, sn_resampler **out, sn_error *err) {
  sn_status status;
  sn_resampler *r = NULL;
  double *h = NULL;
  *out = NULL;
  if (ratio.up < 1 || ratio.down < 1 || ratio.up > SN_RESAMPLE_MOST || ratio.down > SN_RESAMPLE_MOST)
    return sn_fail(err, SN_E_ARGUMENT, "resampling by %lld/%lld: both parts must be 1 to %d", (long long)ratio.up,
                   (long long)ratio.down, (int)SN_RESAMPLE_MOST);
  SN_TRY_GOTO(sn_alloc(&r, 1, sizeof *r, "resampler", err), fail);
  r->ratio = ratio;
  r->half = ratio.up == 1 && ratio.down == 1 ? 0 : HALF_LENGTH * (ratio.up > ratio.down ? ratio.up : ratio.down);
  int64_t n = 2 * r->half + 1;
  SN_TRY_GOTO(sn_alloc(&h, n, sizeof *h, "resampler kernel", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->first, ratio.up, sizeof *r->first, "resampler phases", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->offset, ratio.up + 1, sizeof *r->offset, "resampler phases", err), fail);
  SN_TRY_GOTO(sn_alloc(&r->taps, n, sizeof *r->taps, "resampler kernel", err), fail);
  if (r->half == 0) h[0] = 1.0;
  else design(h, ratio);
  for (int64_t phase = 0, used = 0; phase < ratio.up; phase++) {
    int64_t lo = ceil_div(phase - r->half, ratio.up), hi = floor_div(phase + r->half, ratio.up);
    r->first[phase] = lo;
    r->offset[phase] = used;
    for (int64_t t = lo; t <= hi; t++) r->taps[used++] = h[phase - t * ratio.up + r->half];
    r->offset[phase + 1] = used;
  }
  sn_free(h);
  *out = r;
  return SN_OK;
fail:
  sn_free(h);
  sn_resampler_destroy(r);
  return status;
}

void sn_resampler_destroy(sn_resampler *r) {
  if (r == NULL) return;
  sn_free(r->first);
  sn_free(r->offset);
  sn_free(r->taps);
  sn_free(r);
}

int64_t sn_resampled_length(sn_ratio ratio, int64_t n) {
  return (int64_t)(((wide)n * ratio.up + ratio.down - 1) / ratio.down);
}

void sn_resampler_needs(const sn_resampler *r, int64_t first, int64_t count, int64_t *first_in, int64_t *last_in) {
  *first_in = ceil_div(first * r->ratio.down - r->half, r->ratio.up);
  *last_in = floor_div((first + count - 1) * r->ratio.down + r->half, r->ratio.up);
}

sn_status sn_resampler_apply(const sn_resampler *r, const double *x, int64_t x_first, int64_t n_x, int64_t first,
                             int64_t count, double *y, sn_error *err) {
  int64_t up = r->ratio.up, down = r->ratio.down;
  if (first < 0 || count < 0 || n_x < 0)
    return sn_fail(err, SN_E_ARGUMENT, "resampling: outputs [%lld, %lld) of %lld samples", (long long)first,
                   (long long)(first + count), (long long)n_x);
  for (int64_t k = 0; k < count; k++) {
    int64_t position = (first + k) * down, q = position / up, phase = position % up;
    int64_t lo = q + r->first[phase], n = r->offset[phase + 1] - r->offset[phase];
    const double *h = r->taps + r->offset[phase];
    if (lo < x_first) h += x_first - lo, n -= x_first - lo, lo = x_first;
    if (lo + n > x_first + n_x) n = x_first + n_x - lo;
    y[k] = 0.0;
    if (n <= 0) continue;
    const double *in = x + (lo - x_first);
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0; /* four chains: the sum's order is fixed and the unit stays busy */
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      a += h[i] * in[i];
      b += h[i + 1] * in[i + 1];
      c += h[i + 2] * in[i + 2];
      d += h[i + 3] * in[i + 3];
    }
    for (; i < n; i++) a += h[i] * in[i];
    y[k] = (a + b) + (c + d);
  }
  return SN_OK;
}

/* --- by FFT --- */

sn_status sn_resample_fft(sn_ratio ratio, const double *x, int64_t n, double *y, sn_error *err) {
  sn_status status;
  sn_fft *forward = NULL, *inverse = NULL;
  double *in = NULL, *out = NULL;
  double complex *spectrum = NULL;
  /* Whole periods of the ratio, so that output k stands at k down / up exactly; the surplus is the odd reflection. */
  int64_t n_in = (n + ratio.down - 1) / ratio.down * ratio.down, n_out = n_in / ratio.down * ratio.up;
  int64_t most = n_in > n_out ? n_in : n_out, least = n_in < n_out ? n_in : n_out;
  if (n < 1) return sn_fail(err, SN_E_ARGUMENT, "resampling: no samples");
  SN_TRY_GOTO(sn_alloc(&in, n_in, sizeof *in, "resampling", err), done);
  SN_TRY_GOTO(sn_alloc(&out, n_out, sizeof *out, "resampling", err), done);
  SN_TRY_GOTO(sn_alloc(&spectrum, most / 2 + 1, sizeof *spectrum, "resampling", err), done);
  SN_TRY_GOTO(sn_fft_create(n_in, &forward, err), done);
  SN_TRY_GOTO(sn_fft_create(n_out, &inverse, err), done);
  sn_extend_odd(x, n, 0, n_in, in);
  SN_TRY_GOTO(sn_fft_forward(forward, in, spectrum, err), done);
  for (int64_t k = least / 2 + 1; k <= most / 2; k++) spectrum[k] = 0.0;
  /* The term at half the lower rate stands for two: cutting joins it with its mirror, padding shares it out. */
  if (least % 2 == 0 && n_out < n_in) spectrum[least / 2] *= 2.0;
  if (least % 2 == 0 && n_out > n_in) spectrum[least / 2] *= 0.5;
  SN_TRY_GOTO(sn_fft_inverse(inverse, spectrum, out, err), done);
  for (int64_t k = 0, count = sn_resampled_length(ratio, n); k < count; k++) y[k] = out[k] / (double)n_in;
done:
  sn_free(in);
  sn_free(out);
  sn_free(spectrum);
  sn_fft_destroy(forward);
  sn_fft_destroy(inverse);
  return status;
}
