#include "modalities/signal/fir.h"

#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft.h"

#define PI 3.14159265358979323846

enum { MOST_TAPS = 1 << 24, SINGLE_BLOCK = 1 << 15 };

/* The kernel's spectrum at one transform size, divided by the size so that the inverse needs no further scaling. */
typedef struct fir_plan {
  int64_t size;
  sn_fft *fft;
  double complex *spectrum; /* (size/2 + 1) */
  struct fir_plan *next;
} fir_plan;

struct sn_fir {
  int64_t length;
  double *taps; /* (length) */
  pthread_mutex_t lock;
  fir_plan *plans; /* only ever grows at the head, so a plan once found stays valid without the lock */
};

/* --- design --- */

/* Adds sign * lowpass(cut-off) of its own length, centred, to h (total). */
static void add_low_pass(double *h, int64_t total, double rate, double cutoff, double transition, double sign,
                         double *work) {
  int64_t m = (int64_t)rint(3.3 * rate / transition);
  if (m % 2 == 0) m++;
  if (m > total) m = total;
  double centre = (double)(m - 1) / 2.0, sum = 0.0, f = 2.0 * cutoff / rate;
  for (int64_t i = 0; i < m; i++) {
    double window = m == 1 ? 1.0 : 0.54 - 0.46 * cos(2.0 * PI * (double)i / (double)(m - 1));
    double t = f * ((double)i - centre);
    work[i] = window * (t == 0.0 ? 1.0 : sin(PI * t) / (PI * t));
    sum += work[i];
  }
  int64_t offset = (total - m) / 2;
  for (int64_t i = 0; i < m; i++) h[offset + i] += sign * work[i] / sum;
}

static sn_status total_length(int64_t *out, double rate, double transition, sn_error *err) {
  double length = ceil(3.3 * rate / transition);
  if (!(length <= MOST_TAPS))
    return sn_fail(err, SN_E_ARGUMENT,
                   "filter: a transition of %g Hz at %g Hz needs %.0f taps, more than %d; raise the "
                   "lower edge or lower the rate",
                   transition, rate, length, (int)MOST_TAPS);
  *out = (int64_t)length + ((int64_t)length % 2 == 0);
  return SN_OK;
}

static sn_status design_pass(double **out, int64_t *n, const sn_fir_spec *s, sn_error *err) {
  sn_status status;
  double *h = NULL, *work = NULL;
  double l = s->low_hz, u = s->high_hz, rate = s->rate_hz;
  double l_t = fmin(fmax(0.25 * l, 2.0), l), u_t = fmin(fmax(0.25 * u, 2.0), rate / 2.0 - u);
  double narrow = l > 0.0 && u > 0.0 ? fmin(l_t, u_t) : l > 0.0 ? l_t : u_t;
  int64_t total = 0;
  SN_TRY_GOTO(total_length(&total, rate, narrow, err), fail);
  SN_TRY_GOTO(sn_alloc(&h, total, sizeof *h, "filter kernel", err), fail);
  SN_TRY_GOTO(sn_alloc(&work, total, sizeof *work, "filter design", err), fail);
  if (u > 0.0) add_low_pass(h, total, rate, u + u_t / 2.0, u_t, 1.0, work);
  else h[total / 2] = 1.0;
  if (l > 0.0) add_low_pass(h, total, rate, l - l_t / 2.0, l_t, -1.0, work);
  sn_free(work);
  *out = h;
  *n = total;
  return SN_OK;
fail:
  sn_free(h);
  sn_free(work);
  return status;
}

static sn_status design_notch(double **out, int64_t *n, const sn_fir_spec *s, sn_error *err) {
  sn_status status;
  double *h = NULL, *work = NULL;
  double f = s->notch_hz, half = f / 400.0;
  int64_t total = 0;
  SN_TRY_GOTO(total_length(&total, s->rate_hz, 0.5, err), fail);
  SN_TRY_GOTO(sn_alloc(&h, total, sizeof *h, "filter kernel", err), fail);
  SN_TRY_GOTO(sn_alloc(&work, total, sizeof *work, "filter design", err), fail);
  h[total / 2] = 1.0;
  add_low_pass(h, total, s->rate_hz, f + half + 0.25, 0.5, -1.0, work);
  add_low_pass(h, total, s->rate_hz, f - half - 0.25, 0.5, 1.0, work);
  sn_free(work);
  *out = h;
  *n = total;
  return SN_OK;
fail:
  sn_free(h);
  sn_free(work);
  return status;
}

static sn_status check_spec(const sn_fir_spec *s, sn_error *err) {
  double nyquist = s->rate_hz / 2.0;
  if (!(s->rate_hz > 0.0) || !isfinite(s->rate_hz))
    return sn_fail(err, SN_E_ARGUMENT, "filter: a rate of %g Hz is not a positive number", s->rate_hz);
  if (!(s->low_hz >= 0.0) || !(s->high_hz >= 0.0) || !(s->notch_hz >= 0.0))
    return sn_fail(err, SN_E_ARGUMENT, "filter: edges must be 0 or more, found low %g, high %g, notch %g Hz", s->low_hz,
                   s->high_hz, s->notch_hz);
  if (s->low_hz == 0.0 && s->high_hz == 0.0 && s->notch_hz == 0.0)
    return sn_fail(err, SN_E_ARGUMENT, "filter: no edge and no notch is given");
  if (s->high_hz >= nyquist || s->low_hz >= nyquist)
    return sn_fail(err, SN_E_ARGUMENT, "filter: edges %g and %g Hz must lie below half the rate (%g Hz)", s->low_hz,
                   s->high_hz, nyquist);
  if (s->low_hz > 0.0 && s->high_hz > 0.0 && s->low_hz >= s->high_hz)
    return sn_fail(err, SN_E_ARGUMENT, "filter: the lower edge %g Hz is not below the upper edge %g Hz", s->low_hz,
                   s->high_hz);
  if (s->notch_hz > 0.0 &&
      (s->notch_hz * (1.0 + 1.0 / 400.0) + 0.5 >= nyquist || s->notch_hz * (1.0 - 1.0 / 400.0) <= 0.5))
    return sn_fail(err, SN_E_ARGUMENT, "filter: a notch at %g Hz does not fit between 0.5 Hz and half the rate (%g Hz)",
                   s->notch_hz, nyquist);
  return SN_OK;
}

sn_status sn_fir_create_taps(const double *taps, int64_t n, sn_fir **out, sn_error *err) {
  sn_status status;
  sn_fir *fir = NULL;
  *out = NULL;
  if (n < 1 || n % 2 == 0 || n > 2 * (int64_t)MOST_TAPS)
    return sn_fail(err, SN_E_ARGUMENT, "filter: %lld taps; an odd number from 1 to %d is needed", (long long)n,
                   2 * MOST_TAPS);
  for (int64_t i = 0; i < n; i++)
    if (!isfinite(taps[i]))
      return sn_fail(err, SN_E_ARGUMENT, "filter: tap %lld is not finite", (long long)i);
  SN_TRY_GOTO(sn_alloc(&fir, 1, sizeof *fir, "filter", err), fail);
  fir->length = n;
  SN_TRY_GOTO(sn_alloc(&fir->taps, n, sizeof *taps, "filter kernel", err), fail);
  memcpy(fir->taps, taps, (size_t)n * sizeof *taps);
  if (pthread_mutex_init(&fir->lock, NULL) != 0) {
    status = sn_fail(err, SN_E_MEMORY, "filter: no lock can be made");
    goto fail;
  }
  *out = fir;
  return SN_OK;
fail:
  if (fir != NULL) sn_free(fir->taps);
  sn_free(fir);
  return status;
}

sn_status sn_fir_create(const sn_fir_spec *spec, sn_fir **out, sn_error *err) {
  sn_status status;
  double *pass = NULL, *notch = NULL, *both = NULL;
  int64_t n_pass = 0, n_notch = 0;
  *out = NULL;
  SN_TRY(check_spec(spec, err));
  if (spec->low_hz > 0.0 || spec->high_hz > 0.0) SN_TRY_GOTO(design_pass(&pass, &n_pass, spec, err), done);
  if (spec->notch_hz > 0.0) SN_TRY_GOTO(design_notch(&notch, &n_notch, spec, err), done);
  if (pass != NULL && notch != NULL) {
    int64_t n = n_pass + n_notch - 1;
    SN_TRY_GOTO(sn_alloc(&both, n, sizeof *both, "filter kernel", err), done);
    for (int64_t i = 0; i < n_pass; i++)
      for (int64_t j = 0; j < n_notch; j++) both[i + j] += pass[i] * notch[j];
    status = sn_fir_create_taps(both, n, out, err);
  } else {
    status = pass != NULL ? sn_fir_create_taps(pass, n_pass, out, err) : sn_fir_create_taps(notch, n_notch, out, err);
  }
done:
  sn_free(pass);
  sn_free(notch);
  sn_free(both);
  return status;
}

void sn_fir_destroy(sn_fir *fir) {
  if (fir == NULL) return;
  for (fir_plan *plan = fir->plans, *next; plan != NULL; plan = next) {
    next = plan->next;
    sn_fft_destroy(plan->fft);
    sn_free(plan->spectrum);
    sn_free(plan);
  }
  pthread_mutex_destroy(&fir->lock);
  sn_free(fir->taps);
  sn_free(fir);
}

int64_t sn_fir_length(const sn_fir *fir) { return fir->length; }
int64_t sn_fir_support(const sn_fir *fir) { return (fir->length - 1) / 2; }
const double *sn_fir_taps(const sn_fir *fir) { return fir->taps; }

/* --- application --- */

void sn_extend_odd(const double *x, int64_t n, int64_t first, int64_t count, double *e) {
  for (int64_t i = 0; i < count; i++) {
    int64_t j = first + i;
    if (j >= 0 && j < n) {
      int64_t run = n - j < count - i ? n - j : count - i;
      memcpy(e + i, x + j, (size_t)run * sizeof *e);
      i += run - 1;
    } else if (j < 0 && -j <= n - 1) {
      e[i] = 2.0 * x[0] - x[-j];
    } else if (j >= n && 2 * n - 2 - j >= 0) {
      e[i] = 2.0 * x[n - 1] - x[2 * n - 2 - j];
    } else {
      e[i] = 0.0;
    }
  }
}

/* Blocks of outputs with the taps outside: every inner loop runs over neighbouring samples. */
static void convolve_direct(const double *h, int64_t m, const double *e, int64_t count, double *y) {
  enum { BLOCK = 512 };
  for (int64_t first = 0; first < count; first += BLOCK) {
    int64_t n = count - first < BLOCK ? count - first : BLOCK;
    double *restrict out = y + first;
    for (int64_t i = 0; i < n; i++) out[i] = 0.0;
    for (int64_t k = 0; k < m; k++) {
      const double tap = h[k], *restrict in = e + first + (m - 1 - k);
      for (int64_t i = 0; i < n; i++) out[i] += tap * in[i];
    }
  }
}

/* The smallest of {8, 9, 10, 12, 15} 2^a that is not below n: few sizes, so few plans are ever kept. */
static int64_t transform_size(int64_t n) {
  static const int64_t bases[] = {8, 9, 10, 12, 15};
  for (int64_t scale = 2;; scale *= 2)
    for (int i = 0; i < 5; i++)
      if (bases[i] * scale >= n) return bases[i] * scale;
}

static sn_status find_plan(const sn_fir *fir_, int64_t size, const fir_plan **out, sn_error *err) {
  sn_fir *fir = (sn_fir *)fir_; /* the cache is not part of the filter's value */
  sn_status status = SN_OK;
  double *padded = NULL;
  fir_plan *plan;
  pthread_mutex_lock(&fir->lock);
  for (plan = fir->plans; plan != NULL && plan->size != size; plan = plan->next) continue;
  if (plan != NULL) goto done;
  SN_TRY_GOTO(sn_alloc(&plan, 1, sizeof *plan, "filter plan", err), fail);
  plan->size = size;
  SN_TRY_GOTO(sn_alloc(&plan->spectrum, size / 2 + 1, sizeof *plan->spectrum, "filter spectrum", err), fail);
  SN_TRY_GOTO(sn_alloc(&padded, size, sizeof *padded, "filter kernel", err), fail);
  SN_TRY_GOTO(sn_fft_create(size, &plan->fft, err), fail);
  for (int64_t i = 0; i < fir->length; i++) padded[i] = fir->taps[i] / (double)size;
  SN_TRY_GOTO(sn_fft_forward(plan->fft, padded, plan->spectrum, err), fail);
  plan->next = fir->plans;
  fir->plans = plan;
done:
  pthread_mutex_unlock(&fir->lock);
  sn_free(padded);
  *out = plan;
  return SN_OK;
fail:
  pthread_mutex_unlock(&fir->lock);
  if (plan != NULL) {
    sn_fft_destroy(plan->fft);
    sn_free(plan->spectrum);
  }
  sn_free(plan);
  sn_free(padded);
  return status;
}

static sn_status convolve_fft(const sn_fir *fir, int64_t size, const double *e, int64_t count, double *y,
                              sn_error *err) {
  sn_status status;
  double *block = NULL;
  double complex *spectrum = NULL;
  const fir_plan *plan = NULL;
  int64_t m = fir->length, step = size - m + 1, total = count + m - 1;
  SN_TRY_GOTO(find_plan(fir, size, &plan, err), fail);
  SN_TRY_GOTO(sn_alloc(&block, size, sizeof *block, "filter block", err), fail);
  SN_TRY_GOTO(sn_alloc(&spectrum, size / 2 + 1, sizeof *spectrum, "filter block", err), fail);
  for (int64_t first = 0; first < count; first += step) {
    int64_t in = total - first < size ? total - first : size, out = count - first < step ? count - first : step;
    memcpy(block, e + first, (size_t)in * sizeof *block);
    memset(block + in, 0, (size_t)(size - in) * sizeof *block);
    SN_TRY_GOTO(sn_fft_forward(plan->fft, block, spectrum, err), fail);
    for (int64_t k = 0; k <= size / 2; k++) {
      double a = creal(spectrum[k]), b = cimag(spectrum[k]), c = creal(plan->spectrum[k]), d = cimag(plan->spectrum[k]);
      spectrum[k] = CMPLX(a * c - b * d, a * d + b * c);
    }
    SN_TRY_GOTO(sn_fft_inverse(plan->fft, spectrum, block, err), fail);
    memcpy(y + first, block + (m - 1), (size_t)out * sizeof *y);
  }
  status = SN_OK;
fail:
  sn_free(block);
  sn_free(spectrum);
  return status;
}

sn_status sn_fir_convolve(const sn_fir *fir, const double *e, int64_t count, double *y, sn_error *err) {
  if (count <= 0) return SN_OK;
  int64_t m = fir->length, total = count + m - 1;
  int64_t size =
      total <= SINGLE_BLOCK ? transform_size(total) : transform_size(4 * m > SINGLE_BLOCK ? 4 * m : SINGLE_BLOCK);
  double blocks = ceil((double)count / (double)(size - m + 1));
  /* Measured weights: a transform pair costs about 6 size log2(size) of the direct loop's multiply-adds. */
  if ((double)count * (double)m <= 6.0 * blocks * (double)size * log2((double)size)) {
    convolve_direct(fir->taps, m, e, count, y);
    return SN_OK;
  }
  return convolve_fft(fir, size, e, count, y, err);
}

static sn_status apply(const sn_fir *fir, bool direct, const double *x, int64_t n, int64_t first, int64_t count,
                       double *y, sn_error *err) {
  sn_status status;
  double *e = NULL;
  int64_t total = 0;
  if (n < 1 || first < 0 || count < 0 || first > n - count)
    return sn_fail(err, SN_E_ARGUMENT, "filter: samples [%lld, %lld) do not lie in a signal of %lld samples",
                   (long long)first, (long long)(first + count), (long long)n);
  if (!sn_add_ok(count, fir->length - 1, &total)) return sn_fail(err, SN_E_MEMORY, "filter: the range is too long");
  SN_TRY(sn_alloc(&e, total, sizeof *e, "extended signal", err));
  sn_extend_odd(x, n, first - sn_fir_support(fir), total, e);
  status = SN_OK;
  if (direct) convolve_direct(fir->taps, fir->length, e, count, y);
  else status = sn_fir_convolve(fir, e, count, y, err);
  sn_free(e);
  return status;
}

sn_status sn_fir_apply(const sn_fir *fir, const double *x, int64_t n, int64_t first, int64_t count, double *y,
                       sn_error *err) {
  return apply(fir, false, x, n, first, count, y, err);
}
sn_status sn_fir_apply_direct(const sn_fir *fir, const double *x, int64_t n, int64_t first, int64_t count, double *y,
                              sn_error *err) {
  return apply(fir, true, x, n, first, count, y, err);
}
