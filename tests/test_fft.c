#include <complex.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/fft.h"

static int64_t fail_at = -1; /* the n-th allocation from now fails; negative: none */
bool sn_alloc_should_fail(void) { return fail_at >= 0 && fail_at-- == 0; }

static double noise(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*state / 9223372036854775808.0;
}

static double *make_noise(int64_t n) {
  double *x = malloc((size_t)n * sizeof *x);
  uint64_t state = (uint64_t)n;
  for (int64_t j = 0; j < n; j++) x[j] = noise(&state);
  return x;
}

/* The definition, in long double, with the exponent reduced by integers. */
static void direct(const double *x, int64_t n, double complex *X) {
  long double *cosines = malloc((size_t)n * sizeof *cosines), *sines = malloc((size_t)n * sizeof *sines);
  for (int64_t k = 0; k < n; k++) {
    cosines[k] = cosl(2 * acosl(-1.0L) * (long double)k / (long double)n);
    sines[k] = sinl(2 * acosl(-1.0L) * (long double)k / (long double)n);
  }
  for (int64_t k = 0; k <= n / 2; k++) {
    long double re = 0, im = 0;
    for (int64_t j = 0; j < n; j++) {
      re += x[j] * cosines[j * k % n];
      im -= x[j] * sines[j * k % n];
    }
    X[k] = CMPLX((double)re, (double)im);
  }
  free(cosines);
  free(sines);
}

/* Largest error over the largest reference; NaN or infinity where one occurs. */
static double spectrum_error(const double complex *X, const double complex *reference, int64_t n) {
  double error = 0, scale = 0;
  for (int64_t k = 0; k < n; k++) {
    double e = cabs(X[k] - reference[k]);
    if (!isfinite(e)) return e;
    error = fmax(error, e);
    scale = fmax(scale, cabs(reference[k]));
  }
  assert_true(scale > 0);
  return error / scale;
}

static double signal_error(const double *x, const double *reference, int64_t n, double factor) {
  double error = 0, scale = 0;
  for (int64_t j = 0; j < n; j++) {
    double e = fabs(x[j] / factor - reference[j]);
    if (!isfinite(e)) return e;
    error = fmax(error, e);
    scale = fmax(scale, fabs(reference[j]));
  }
  assert_true(scale > 0);
  return error / scale;
}

static const double TOLERANCE = 1e-13;

/* Forward against the definition, inverse against the signal itself; arrays at odd addresses (8 past 16). */
static void check(sn_fft *fft, int64_t n) {
  double *x = make_noise(n + 1), *back = malloc((size_t)(n + 1) * sizeof *back);
  double *memory = malloc((size_t)(n + 4) * sizeof *memory);
  double complex *X = (double complex *)(void *)(memory + 1),
                 *reference = malloc((size_t)(n / 2 + 1) * sizeof *reference);
  direct(x + 1, n, reference);
  assert_int_equal(sn_fft_forward(fft, x + 1, X, NULL), SN_OK);
  double error = spectrum_error(X, reference, n / 2 + 1);
  if (!(error <= TOLERANCE)) fail_msg("%s, n = %lld: forward error %g", sn_fft_backend(fft), (long long)n, error);
  double complex *kept = malloc((size_t)(n / 2 + 1) * sizeof *kept);
  memcpy(kept, X, (size_t)(n / 2 + 1) * sizeof *kept);
  assert_int_equal(sn_fft_inverse(fft, X, back + 1, NULL), SN_OK);
  assert_memory_equal(kept, X, (size_t)(n / 2 + 1) * sizeof *kept); /* the input is preserved */
  error = signal_error(back + 1, x + 1, n, (double)n);
  if (!(error <= TOLERANCE)) fail_msg("%s, n = %lld: inverse error %g", sn_fft_backend(fft), (long long)n, error);
  free(kept);
  free(x);
  free(back);
  free(memory);
  free(reference);
}

/* Every length to 64; large primes alone and in products; powers; a product of all radices. */
static const int64_t MORE[] = {67, 74, 97, 100, 127, 128, 243, 254, 625, 961, 1000, 1021, 2042, 2310, 2401, 4096};
enum { N_MORE = sizeof MORE / sizeof MORE[0], N_LENGTHS = 64 + N_MORE };
static int64_t length_of(int i) { return i < 64 ? i + 1 : MORE[i - 64]; }

static void test_own(void **state) {
  for (int i = 0; i < N_LENGTHS; i++) {
    sn_fft *fft;
    assert_int_equal(sn_fft_create_own(length_of(i), &fft, NULL), SN_OK);
    assert_string_equal(sn_fft_backend(fft), "own");
    check(fft, length_of(i));
    sn_fft_destroy(fft);
  }
}

static void test_default(void **state) {
  for (int i = 0; i < N_LENGTHS; i++) {
    sn_fft *fft;
    assert_int_equal(sn_fft_create(length_of(i), &fft, NULL), SN_OK);
#ifdef SONDE_HAVE_FFTW
    assert_string_equal(sn_fft_backend(fft), "fftw");
#else
    assert_string_equal(sn_fft_backend(fft), "own");
#endif
    check(fft, length_of(i));
    sn_fft_destroy(fft);
  }
}

/* Both backends agree where the definition would take too long, and on which half of the spectrum they ignore. */
static void test_backends_agree(void **state) {
  static const int64_t lengths[] = {1, 2, 3, 8, 9, 34, 37, 65536, 65537, 100000, 99991};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    int64_t n = lengths[i], half = n / 2 + 1;
    sn_fft *a, *b;
    assert_int_equal(sn_fft_create(n, &a, NULL), SN_OK);
    assert_int_equal(sn_fft_create_own(n, &b, NULL), SN_OK);
    double *x = make_noise(n), *x1 = malloc((size_t)n * sizeof *x1), *x2 = malloc((size_t)n * sizeof *x2);
    double complex *X1 = malloc((size_t)half * sizeof *X1), *X2 = malloc((size_t)half * sizeof *X2);
    assert_int_equal(sn_fft_forward(a, x, X1, NULL), SN_OK);
    assert_int_equal(sn_fft_forward(b, x, X2, NULL), SN_OK);
    assert_true(spectrum_error(X2, X1, half) <= TOLERANCE);
    X1[0] = CMPLX(creal(X1[0]), 3.0); /* ignored */
    if (n % 2 == 0) X1[half - 1] = CMPLX(creal(X1[half - 1]), -5.0);
    assert_int_equal(sn_fft_inverse(a, X1, x1, NULL), SN_OK);
    assert_int_equal(sn_fft_inverse(b, X1, x2, NULL), SN_OK);
    assert_true(signal_error(x1, x, n, (double)n) <= TOLERANCE);
    assert_true(signal_error(x2, x, n, (double)n) <= TOLERANCE);
    free(x), free(x1), free(x2), free(X1), free(X2);
    sn_fft_destroy(a);
    sn_fft_destroy(b);
  }
}

/* The comparison itself can fail: a bin off by 1e-12 and a NaN are found. */
static void test_check_can_fail(void **state) {
  double complex reference[2] = {2, 1}, wrong[2] = {2, 1 + 1e-12}, bad[2] = {2, NAN};
  assert_false(spectrum_error(wrong, reference, 2) <= TOLERANCE);
  assert_false(spectrum_error(bad, reference, 2) <= TOLERANCE);
  double x[2] = {1, 2}, y[2] = {1, 2 + 1e-12}, z[2] = {NAN, 2};
  assert_false(signal_error(y, x, 2, 1) <= TOLERANCE);
  assert_false(signal_error(z, x, 2, 1) <= TOLERANCE);
}

typedef struct job {
  const sn_fft *fft;
  const double *x;
  const double complex *expected;
  int64_t n;
  int differing;
} job;

static void *run_job(void *argument) {
  job *j = argument;
  double complex *X = malloc((size_t)(j->n / 2 + 1) * sizeof *X);
  for (int i = 0; i < 50; i++) {
    sn_fft *own;
    j->differing += sn_fft_create(j->n + i, &own, NULL) != SN_OK; /* planning in parallel with executing */
    sn_fft_destroy(own);
    j->differing += sn_fft_forward(j->fft, j->x, X, NULL) != SN_OK;
    j->differing += memcmp(X, j->expected, (size_t)(j->n / 2 + 1) * sizeof *X) != 0;
  }
  free(X);
  return NULL;
}

static void test_threads(void **state) {
  enum { N = 500, N_THREADS = 4 };
  for (int own = 0; own < 2; own++) {
    sn_fft *fft;
    assert_int_equal(own ? sn_fft_create_own(N, &fft, NULL) : sn_fft_create(N, &fft, NULL), SN_OK);
    double *x = make_noise(N);
    double complex expected[N / 2 + 1];
    assert_int_equal(sn_fft_forward(fft, x, expected, NULL), SN_OK);
    pthread_t threads[N_THREADS];
    job jobs[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
      jobs[i] = (job){fft, x, expected, N, 0};
      assert_int_equal(pthread_create(&threads[i], NULL, run_job, &jobs[i]), 0);
    }
    for (int i = 0; i < N_THREADS; i++) {
      pthread_join(threads[i], NULL);
      assert_int_equal(jobs[i].differing, 0);
    }
    sn_fft_destroy(fft);
    free(x);
  }
}

static void test_refused(void **state) {
  sn_fft *fft;
  sn_error err;
  static const int64_t bad[] = {0, -1, INT64_MIN, INT64_MAX, ((int64_t)1 << 40) + 1};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    assert_int_equal(sn_fft_create(bad[i], &fft, &err), SN_E_ARGUMENT);
    assert_int_equal(sn_fft_create_own(bad[i], &fft, &err), SN_E_ARGUMENT);
    assert_null(fft);
  }
  sn_fft_destroy(NULL);
}

static void test_allocation_failures(void **state) {
  static const int64_t lengths[] = {15, 16, 37};
  for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
    double *x = make_noise(lengths[i]);
    double complex X[32];
    for (int backend = 0; backend < 2; backend++) {
      for (int64_t n = 0;; n++) {
        sn_fft *fft = NULL;
        fail_at = n;
        sn_status status = backend ? sn_fft_create_own(lengths[i], &fft, NULL) : sn_fft_create(lengths[i], &fft, NULL);
        if (status == SN_OK) status = sn_fft_forward(fft, x, X, NULL);
        if (status == SN_OK) status = sn_fft_inverse(fft, X, x, NULL);
        bool reached = fail_at < 0;
        fail_at = -1;
        sn_fft_destroy(fft);
        assert_int_equal(status, reached ? SN_E_MEMORY : SN_OK);
        if (!reached) break;
      }
    }
    free(x);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_check_can_fail), cmocka_unit_test(test_own),     cmocka_unit_test(test_default),
      cmocka_unit_test(test_backends_agree), cmocka_unit_test(test_threads), cmocka_unit_test(test_refused),
      cmocka_unit_test(test_allocation_failures)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
