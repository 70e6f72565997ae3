#include "core/fft.h"

#include <stddef.h>

#include "core/alloc.h"
#include "core/fft_private.h"

#ifdef SONDE_HAVE_FFTW
#include <fftw3.h>
#include <pthread.h>
/* FFTW's planner is the process's, and not thread-safe: making and destroying plans happens under this lock. */
static pthread_mutex_t planner_lock = PTHREAD_MUTEX_INITIALIZER;
#endif

struct sn_fft {
  int64_t n;
  fft_own *own; /* NULL with FFTW */
#ifdef SONDE_HAVE_FFTW
  fftw_plan forward, inverse;
#endif
};

static sn_status check_length(int64_t n, sn_error *err) {
  if (n >= 1 && n <= (int64_t)1 << 40) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "FFT of length %lld: expected 1 to 2^40", (long long)n);
}

sn_status sn_fft_create_own(int64_t n, sn_fft **out, sn_error *err) {
  *out = NULL;
  sn_fft *fft = NULL;
  SN_TRY(check_length(n, err));
  SN_TRY(sn_alloc(&fft, 1, (int64_t)sizeof *fft, "FFT", err));
  fft->n = n;
  sn_status status = fft_own_create(n, &fft->own, err);
  if (status != SN_OK) {
    sn_free(fft);
    return status;
  }
  *out = fft;
  return SN_OK;
}

#ifndef SONDE_HAVE_FFTW

sn_status sn_fft_create(int64_t n, sn_fft **out, sn_error *err) { return sn_fft_create_own(n, out, err); }

void sn_fft_destroy(sn_fft *fft) {
  if (fft == NULL) return;
  fft_own_destroy(fft->own);
  sn_free(fft);
}

#else

/* ESTIMATE does not touch the arrays and does not time, so that the same n always gives the same plan and bits.
 * UNALIGNED: callers' arrays may begin anywhere. PRESERVE_INPUT: an inverse would otherwise overwrite X. The 64-bit
 * guru interface takes lengths beyond an int. */
static void make_plans(sn_fft *fft, double *x, fftw_complex *X) {
  const unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED | FFTW_PRESERVE_INPUT;
  fftw_iodim64 dimension = {fft->n, 1, 1};
  pthread_mutex_lock(&planner_lock);
  fft->forward = fftw_plan_guru64_dft_r2c(1, &dimension, 0, NULL, x, X, flags);
  fft->inverse = fftw_plan_guru64_dft_c2r(1, &dimension, 0, NULL, X, x, flags);
  pthread_mutex_unlock(&planner_lock);
}

sn_status sn_fft_create(int64_t n, sn_fft **out, sn_error *err) {
  *out = NULL;
  sn_fft *fft = NULL;
  double *x = NULL;
  fftw_complex *X = NULL;
  sn_status status = SN_OK;
  SN_TRY(check_length(n, err));
  SN_TRY_GOTO(sn_alloc(&fft, 1, (int64_t)sizeof *fft, "FFT", err), done);
  fft->n = n;
  SN_TRY_GOTO(sn_alloc(&x, n, (int64_t)sizeof *x, "FFT planning", err), done);
  SN_TRY_GOTO(sn_alloc(&X, n / 2 + 1, (int64_t)sizeof *X, "FFT planning", err), done);
  make_plans(fft, x, X);
  if (fft->forward == NULL || fft->inverse == NULL) {
    status = sn_fail(err, SN_E_MEMORY, "FFTW could not plan a transform of length %lld", (long long)n);
    goto done;
  }
  *out = fft;
  fft = NULL;
done:
  sn_free(x);
  sn_free(X);
  sn_fft_destroy(fft);
  return status;
}

void sn_fft_destroy(sn_fft *fft) {
  if (fft == NULL) return;
  fft_own_destroy(fft->own);
  pthread_mutex_lock(&planner_lock);
  if (fft->forward != NULL) fftw_destroy_plan(fft->forward);
  if (fft->inverse != NULL) fftw_destroy_plan(fft->inverse);
  pthread_mutex_unlock(&planner_lock);
  sn_free(fft);
}

#endif

sn_status sn_fft_forward(const sn_fft *fft, const double *x, double complex *X, sn_error *err) {
  if (fft->own != NULL) return fft_own_forward(fft->own, x, X, err);
#ifdef SONDE_HAVE_FFTW
  fftw_execute_dft_r2c(fft->forward, (double *)x, X); /* input is preserved */
#endif
  return SN_OK;
}

sn_status sn_fft_inverse(const sn_fft *fft, const double complex *X, double *x, sn_error *err) {
  if (fft->own != NULL) return fft_own_inverse(fft->own, X, x, err);
#ifdef SONDE_HAVE_FFTW
  fftw_execute_dft_c2r(fft->inverse, (double complex *)X, x); /* input is preserved */
#endif
  return SN_OK;
}

const char *sn_fft_backend(const sn_fft *fft) { return fft->own != NULL ? "own" : "fftw"; }
