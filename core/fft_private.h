/* Shared by core/fft.c and core/fft_own.c only. */
#ifndef SN_CORE_FFT_PRIVATE_H
#define SN_CORE_FFT_PRIVATE_H

#include "core/fft.h"

/* Real transform of our own. */
typedef struct fft_own fft_own;
SN_MUST_CHECK sn_status fft_own_create(int64_t n, fft_own **out, sn_error *err);
void fft_own_destroy(fft_own *own); /* accepts NULL */
SN_MUST_CHECK sn_status fft_own_forward(const fft_own *own, const double *x, double complex *X, sn_error *err);
SN_MUST_CHECK sn_status fft_own_inverse(const fft_own *own, const double complex *X, double *x, sn_error *err);

#endif
