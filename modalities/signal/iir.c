#include "modalities/signal/iir.h"

#include <complex.h>
#include <math.h>
#include <stdbool.h>

#include "core/alloc.h"
#include "modalities/signal/fir.h"

#define PI 3.14159265358979323846

enum { MOST_ORDER = 8, MOST_SUPPORT = 1 << 24 };

/* Analogue poles of the wanted band; returns their number. */
static int64_t analogue_poles(double complex *poles, double *gain, int64_t order, double rate, double low,
                              double high) {
  double w1 = 2.0 * rate * tan(PI * low / rate), w2 = 2.0 * rate * tan(PI * high / rate);
  int64_t n = 0;
  *gain = 1.0;
  for (int64_t k = 0; k < order; k++) {
    double complex p = cexp(I * PI * (double)(2 * k + order + 1) / (double)(2 * order));
    if (low > 0.0 && high > 0.0) {
      double complex half = p * (w2 - w1) / 2.0, root = csqrt(half * half - w1 * w2);
      poles[n++] = half + root;
      poles[n++] = half - root;
      *gain *= w2 - w1;
    } else if (high > 0.0) {
      poles[n++] = p * w2;
      *gain *= w2;
    } else {
      poles[n++] = w1 / p;
    }
  }
  return n;
}

/* Two real zeros (or one, for a section with one pole) at z = +1 or -1, by the kind of band. */
static void put_zeros(sn_section *s, bool low, bool high, bool single) {
  double sign = high ? 1.0 : -1.0; /* a low-pass has its zeros at -1, a high-pass at +1 */
  if (low && high) {
    s->b[0] = 1.0, s->b[1] = 0.0, s->b[2] = -1.0;
  } else {
    s->b[0] = 1.0;
    s->b[1] = single ? sign : 2.0 * sign;
    s->b[2] = single ? 0.0 : 1.0;
  }
}

static sn_status check_band(int64_t order, double rate, double low, double high, sn_error *err) {
  if (!(rate > 0.0) || !isfinite(rate)) return sn_fail(err, SN_E_ARGUMENT, "Butterworth filter: rate %g Hz", rate);
  if (order < 1 || order > MOST_ORDER)
    return sn_fail(err, SN_E_ARGUMENT, "Butterworth filter: order %lld; 1 to %d are possible", (long long)order,
                   (int)MOST_ORDER);
  if (!(low >= 0.0) || !(high >= 0.0) || (low == 0.0 && high == 0.0) || low >= rate / 2.0 || high >= rate / 2.0 ||
      (low > 0.0 && high > 0.0 && low >= high))
    return sn_fail(err, SN_E_ARGUMENT, "Butterworth filter: edges %g and %g Hz do not make a band below %g Hz", low,
                   high, rate / 2.0);
  return SN_OK;
}

sn_status sn_iir_butterworth(sn_iir *out, int64_t order, double rate_hz, double low_hz, double high_hz, sn_error *err) {
  double complex poles[2 * MOST_ORDER], product = 1.0;
  double gain = 1.0, radius = 0.0, reals[2 * MOST_ORDER];
  int64_t n_reals = 0;
  bool low = low_hz > 0.0, high = high_hz > 0.0;
  SN_TRY(check_band(order, rate_hz, low_hz, high_hz, err));
  int64_t n = analogue_poles(poles, &gain, order, rate_hz, low_hz, high_hz);
  *out = (sn_iir){0};
  for (int64_t i = 0; i < n; i++) {
    double complex s = poles[i], z = (2.0 * rate_hz + s) / (2.0 * rate_hz - s);
    product *= 2.0 * rate_hz - s;
    radius = fmax(radius, cabs(z));
    if (fabs(cimag(z)) <= 1e-13 * cabs(z)) {
      reals[n_reals++] = creal(z);
    } else if (cimag(z) > 0.0) {
      sn_section *section = &out->sections[out->n_sections++];
      put_zeros(section, low, high, false);
      section->a[0] = 1.0, section->a[1] = -2.0 * creal(z), section->a[2] = creal(z) * creal(z) + cimag(z) * cimag(z);
    }
  }
  for (int64_t i = 0; i < n_reals; i += 2) {
    sn_section *section = &out->sections[out->n_sections++];
    bool single = i + 1 == n_reals;
    double p = reals[i], q = single ? 0.0 : reals[i + 1];
    put_zeros(section, low, high, single);
    section->a[0] = 1.0, section->a[1] = -(p + q), section->a[2] = p * q;
  }
  /* Zeros at s = 0 (order of them) give a factor 2 fs each under the bilinear transform. */
  if (low) gain *= pow(2.0 * rate_hz, (double)order);
  gain /= creal(product);
  for (int i = 0; i < 3; i++) out->sections[0].b[i] *= gain;
  if (!(radius < 1.0))
    return sn_fail(err, SN_E_ARGUMENT, "Butterworth filter: the edge %g Hz is too low for %g Hz", low_hz, rate_hz);
  double support = radius < 1e-3 ? 4.0 : ceil(log(1e-12) / log(radius));
  if (!(support <= MOST_SUPPORT))
    return sn_fail(err, SN_E_ARGUMENT,
                   "Butterworth filter: the edge %g Hz rings for %.0f samples at %g Hz, more than %d", low_hz, support,
                   rate_hz, (int)MOST_SUPPORT);
  out->support = (int64_t)support;
  return SN_OK;
}

/* One pass in place with the steady state of the first sample; step -1 runs backward. */
static void run(const sn_iir *iir, double *e, int64_t n, bool backward) {
  double level = backward ? e[n - 1] : e[0];
  for (int64_t s = 0; s < iir->n_sections; s++) {
    const double *b = iir->sections[s].b, *a = iir->sections[s].a;
    double dc = (b[0] + b[1] + b[2]) / (a[0] + a[1] + a[2]);
    double z1 = (dc - b[0]) * level, z2 = (b[2] - a[2] * dc) * level;
    for (int64_t i = 0; i < n; i++) {
      double *p = backward ? e + (n - 1 - i) : e + i, x = *p, y = b[0] * x + z1;
      z1 = b[1] * x - a[1] * y + z2;
      z2 = b[2] * x - a[2] * y;
      *p = y;
    }
    level *= dc;
  }
}

sn_status sn_iir_apply(const sn_iir *iir, const double *x, int64_t n, int64_t pad, double *y, sn_error *err) {
  double *e = NULL;
  if (n < 1) return sn_fail(err, SN_E_ARGUMENT, "Butterworth filter: no samples");
  if (pad < 0) pad = iir->support < n - 1 ? iir->support : n - 1;
  if (pad > n - 1)
    return sn_fail(err, SN_E_ARGUMENT, "Butterworth filter: %lld samples of padding for a signal of %lld",
                   (long long)pad, (long long)n);
  int64_t total = n + 2 * pad;
  SN_TRY(sn_alloc(&e, total, sizeof *e, "extended signal", err));
  sn_extend_odd(x, n, -pad, total, e);
  run(iir, e, total, false);
  run(iir, e, total, true);
  for (int64_t i = 0; i < n; i++) y[i] = e[pad + i];
  sn_free(e);
  return SN_OK;
}
