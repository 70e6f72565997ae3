/* The transform of our own. A complex plan is a list of radices over one table of roots of unity; where the length has
 * a prime factor above MAX_RADIX it is a convolution with a chirp (Bluestein) over a plan of a power of two instead. */
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fft_private.h"

enum { MAX_RADIX = 31, MAX_FACTORS = 48 };

/* Arithmetic is written out: C's complex product also has to care for infinities, at several times the cost. */
typedef struct cplx {
  double re, im;
} cplx;

static cplx add(cplx a, cplx b) { return (cplx){a.re + b.re, a.im + b.im}; }
static cplx sub(cplx a, cplx b) { return (cplx){a.re - b.re, a.im - b.im}; }
static cplx mul(cplx a, cplx b) { return (cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static cplx conjugate(cplx a) { return (cplx){a.re, -a.im}; }
static cplx times_minus_i(cplx a) { return (cplx){a.im, -a.re}; }

typedef struct plan {
  int64_t n;
  int n_factors;
  int factors[MAX_FACTORS];
  cplx *roots;         /* (n) exp(-2 pi i k / n); NULL with Bluestein */
  struct plan *inner;  /* Bluestein: of length m >= 2 n - 1, a power of two */
  cplx *chirp;         /* (n) exp(-pi i k^2 / n) */
  cplx *kernel;        /* (m) transform of the conjugate chirp, divided by m */
} plan;

struct fft_own {
  int64_t n;
  plan *complex_plan; /* of n / 2 for even n, else of n */
  cplx *roots;        /* even n: (n/4 + 1) exp(-2 pi i k / n) */
};

/* exp(-2 pi i k / n), 0 <= k < n, to half a unit in the last place: the argument is brought into the first octant with
 * integers, where it is small and the functions are taken in long double. */
static cplx root_of_unity(int64_t k, int64_t n) {
  int64_t eighths = 8 * k / n; /* octant */
  int64_t numerator = 0;       /* the angle within the octant, from its nearer axis, is 2 pi numerator / (4 n) */
  switch (eighths) {
    case 0: numerator = 4 * k; break;
    case 1: numerator = n - 4 * k; break;
    case 2: numerator = 4 * k - n; break;
    case 3: numerator = 2 * n - 4 * k; break;
    case 4: numerator = 4 * k - 2 * n; break;
    case 5: numerator = 3 * n - 4 * k; break;
    case 6: numerator = 4 * k - 3 * n; break;
    default: numerator = 4 * n - 4 * k; break;
  }
  long double angle = acosl(-1.0L) * (long double)numerator / (2.0L * (long double)n);
  double c = (double)cosl(angle), s = (double)sinl(angle);
  switch (eighths) {
    case 0: return (cplx){c, -s};
    case 1: return (cplx){s, -c};
    case 2: return (cplx){-s, -c};
    case 3: return (cplx){-c, -s};
    case 4: return (cplx){-c, s};
    case 5: return (cplx){-s, c};
    case 6: return (cplx){s, c};
    default: return (cplx){c, s};
  }
}

/* ---- one stage: radix p over subsequences of length n_sub = p m, stride s ----
 *
 * x holds s interleaved sequences, y receives s p of them, each of length m (decimation in frequency):
 *   y[q + s (p k + j)] = w^(j k) sum_r x[q + s (k + m r)] exp(-2 pi i j r / p),   w = exp(-2 pi i / n_sub)
 * so that after the last stage the result stands in natural order. */
typedef struct stage {
  const cplx *roots; /* of the whole length: w^(j k) is roots[j k s] */
  int64_t m, s;
} stage;

static void radix2(const stage *t, const cplx *x, cplx *y) {
  for (int64_t k = 0; k < t->m; k++) {
    cplx w = t->roots[k * t->s];
    const cplx *a = x + t->s * k, *b = a + t->s * t->m;
    cplx *out = y + 2 * t->s * k;
    for (int64_t q = 0; q < t->s; q++) {
      out[q] = add(a[q], b[q]);
      out[q + t->s] = mul(w, sub(a[q], b[q]));
    }
  }
}

static void radix3(const stage *t, const cplx *x, cplx *y) {
  const double half_root3 = 0.86602540378443864676;
  int64_t s = t->s, step = t->s * t->m;
  for (int64_t k = 0; k < t->m; k++) {
    cplx w1 = t->roots[k * s], w2 = t->roots[2 * k * s];
    const cplx *in = x + s * k;
    cplx *out = y + 3 * s * k;
    for (int64_t q = 0; q < s; q++) {
      cplx a = in[q], sum = add(in[q + step], in[q + 2 * step]), difference = sub(in[q + step], in[q + 2 * step]);
      cplx middle = {a.re - 0.5 * sum.re, a.im - 0.5 * sum.im};
      cplx turned = times_minus_i((cplx){half_root3 * difference.re, half_root3 * difference.im});
      out[q] = add(a, sum);
      out[q + s] = mul(w1, add(middle, turned));
      out[q + 2 * s] = mul(w2, sub(middle, turned));
    }
  }
}

static void radix4(const stage *t, const cplx *x, cplx *y) {
  int64_t s = t->s, step = t->s * t->m;
  for (int64_t k = 0; k < t->m; k++) {
    cplx w1 = t->roots[k * s], w2 = t->roots[2 * k * s], w3 = t->roots[3 * k * s];
    const cplx *in = x + s * k;
    cplx *out = y + 4 * s * k;
    for (int64_t q = 0; q < s; q++) {
      cplx even = add(in[q], in[q + 2 * step]), even_minus = sub(in[q], in[q + 2 * step]);
      cplx odd = add(in[q + step], in[q + 3 * step]), odd_minus = times_minus_i(sub(in[q + step], in[q + 3 * step]));
      out[q] = add(even, odd);
      out[q + s] = mul(w1, add(even_minus, odd_minus));
      out[q + 2 * s] = mul(w2, sub(even, odd));
      out[q + 3 * s] = mul(w3, sub(even_minus, odd_minus));
    }
  }
}

static void radix5(const stage *t, const cplx *x, cplx *y) {
  const double c1 = 0.30901699437494742410, c2 = -0.80901699437494742410; /* cos 2 pi/5, cos 4 pi/5 */
  const double s1 = 0.95105651629515357212, s2 = 0.58778525229247312917;  /* sin 2 pi/5, sin 4 pi/5 */
  int64_t s = t->s, step = t->s * t->m;
  for (int64_t k = 0; k < t->m; k++) {
    const cplx *in = x + s * k;
    cplx *out = y + 5 * s * k;
    cplx w1 = t->roots[k * s], w2 = t->roots[2 * k * s], w3 = t->roots[3 * k * s], w4 = t->roots[4 * k * s];
    for (int64_t q = 0; q < s; q++) {
      cplx a = in[q], b = add(in[q + step], in[q + 4 * step]), c = add(in[q + 2 * step], in[q + 3 * step]);
      cplx d = sub(in[q + step], in[q + 4 * step]), e = sub(in[q + 2 * step], in[q + 3 * step]);
      cplx r1 = {a.re + c1 * b.re + c2 * c.re, a.im + c1 * b.im + c2 * c.im};
      cplx r2 = {a.re + c2 * b.re + c1 * c.re, a.im + c2 * b.im + c1 * c.im};
      cplx i1 = times_minus_i((cplx){s1 * d.re + s2 * e.re, s1 * d.im + s2 * e.im});
      cplx i2 = times_minus_i((cplx){s2 * d.re - s1 * e.re, s2 * d.im - s1 * e.im});
      out[q] = add(a, add(b, c));
      out[q + s] = mul(w1, add(r1, i1));
      out[q + 2 * s] = mul(w2, add(r2, i2));
      out[q + 3 * s] = mul(w3, sub(r2, i2));
      out[q + 4 * s] = mul(w4, sub(r1, i1));
    }
  }
}

/* Any small odd radix; exp(-2 pi i / p) is roots[m s]. */
static void radix_any(const stage *t, int p, const cplx *x, cplx *y) {
  int64_t s = t->s, step = t->s * t->m;
  for (int64_t k = 0; k < t->m; k++) {
    for (int64_t q = 0; q < s; q++) {
      const cplx *in = x + s * k + q;
      for (int j = 0; j < p; j++) {
        cplx sum = in[0];
        for (int r = 1; r < p; r++) sum = add(sum, mul(in[r * step], t->roots[(int64_t)(j * r % p) * step]));
        y[q + s * (p * k + j)] = mul(t->roots[j * k * s], sum);
      }
    }
  }
}

/* Forward transform of a; b (n) is scratch. Returns whichever of the two holds the result. */
static cplx *run_stages(const plan *p, cplx *a, cplx *b) {
  int64_t n_sub = p->n;
  stage t = {p->roots, 0, 1};
  for (int f = 0; f < p->n_factors; f++) {
    int radix = p->factors[f];
    t.m = n_sub / radix;
    switch (radix) {
      case 2: radix2(&t, a, b); break;
      case 3: radix3(&t, a, b); break;
      case 4: radix4(&t, a, b); break;
      case 5: radix5(&t, a, b); break;
      default: radix_any(&t, radix, a, b);
    }
    n_sub = t.m;
    t.s *= radix;
    cplx *swap = a;
    a = b;
    b = swap;
  }
  return a;
}

/* Elements that a transform needs: two buffers of this length. */
static int64_t buffer_length(const plan *p) { return p->inner != NULL ? p->inner->n : p->n; }

/* X_k = c_k sum_j (x_j c_j) conj(c_(k-j)), c_k = exp(-pi i k^2 / n), as a cyclic convolution of length m. */
static cplx *run_bluestein(const plan *p, cplx *a, cplx *b) {
  int64_t m = p->inner->n;
  for (int64_t j = 0; j < p->n; j++) a[j] = mul(a[j], p->chirp[j]);
  memset(a + p->n, 0, (size_t)(m - p->n) * sizeof *a);
  cplx *spectrum = run_stages(p->inner, a, b), *other = spectrum == a ? b : a;
  /* The inverse transform is the forward one between two conjugations. */
  for (int64_t k = 0; k < m; k++) spectrum[k] = conjugate(mul(spectrum[k], p->kernel[k]));
  cplx *result = run_stages(p->inner, spectrum, other);
  for (int64_t k = 0; k < p->n; k++) result[k] = mul(conjugate(result[k]), p->chirp[k]);
  return result;
}

static cplx *run_plan(const plan *p, cplx *a, cplx *b) {
  return p->inner != NULL ? run_bluestein(p, a, b) : run_stages(p, a, b);
}

/* ---- plans ---- */

/* false: a prime factor above MAX_RADIX. */
static bool factorise(plan *p) {
  int64_t rest = p->n;
  static const int first[] = {4, 2, 3, 5};
  for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
    for (; rest % first[i] == 0; rest /= first[i]) p->factors[p->n_factors++] = first[i];
  }
  for (int radix = 7; radix <= MAX_RADIX; radix += 2) {
    for (; rest % radix == 0; rest /= radix) p->factors[p->n_factors++] = radix;
  }
  return rest == 1;
}

static void plan_destroy(plan *p) {
  if (p == NULL) return;
  plan_destroy(p->inner);
  sn_free(p->roots);
  sn_free(p->chirp);
  sn_free(p->kernel);
  sn_free(p);
}

static sn_status plan_create(int64_t n, plan **out, sn_error *err);

static sn_status make_chirp(plan *p, sn_error *err) {
  int64_t n = p->n, m = 1;
  while (m < 2 * n - 1) m *= 2;
  SN_TRY(plan_create(m, &p->inner, err));
  SN_TRY(sn_alloc(&p->chirp, n, (int64_t)sizeof(cplx), "FFT chirp", err));
  SN_TRY(sn_alloc(&p->kernel, m, (int64_t)sizeof(cplx), "FFT chirp", err));
  cplx *scratch = NULL;
  SN_TRY(sn_alloc(&scratch, m, (int64_t)sizeof(cplx), "FFT chirp", err));
  int64_t square = 0; /* k^2 mod 2 n, by (k + 1)^2 = k^2 + 2 k + 1, so that nothing overflows or loses bits */
  for (int64_t k = 0; k < n; k++) {
    p->chirp[k] = root_of_unity(square, 2 * n);
    square = (square + 2 * k + 1) % (2 * n);
  }
  p->kernel[0] = conjugate(p->chirp[0]);
  for (int64_t k = 1; k < n; k++) p->kernel[k] = p->kernel[m - k] = conjugate(p->chirp[k]);
  const cplx *spectrum = run_stages(p->inner, p->kernel, scratch);
  for (int64_t k = 0; k < m; k++) {
    p->kernel[k] = (cplx){spectrum[k].re / (double)m, spectrum[k].im / (double)m}; /* m: a power of two, exact */
  }
  sn_free(scratch);
  return SN_OK;
}

static sn_status plan_create(int64_t n, plan **out, sn_error *err) {
  plan *p = NULL;
  sn_status status = SN_OK;
  *out = NULL;
  SN_TRY(sn_alloc(&p, 1, (int64_t)sizeof *p, "FFT plan", err));
  p->n = n;
  if (!factorise(p)) {
    SN_TRY_GOTO(make_chirp(p, err), fail);
  } else {
    SN_TRY_GOTO(sn_alloc(&p->roots, n, (int64_t)sizeof(cplx), "FFT roots of unity", err), fail);
    for (int64_t k = 0; k < n; k++) p->roots[k] = root_of_unity(k, n);
  }
  *out = p;
  return SN_OK;
fail:
  plan_destroy(p);
  return status;
}

sn_status fft_own_create(int64_t n, fft_own **out, sn_error *err) {
  *out = NULL;
  fft_own *own = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&own, 1, (int64_t)sizeof *own, "FFT", err));
  own->n = n;
  SN_TRY_GOTO(plan_create(n % 2 == 0 ? n / 2 : n, &own->complex_plan, err), fail);
  if (n % 2 == 0) {
    SN_TRY_GOTO(sn_alloc(&own->roots, n / 4 + 1, (int64_t)sizeof(cplx), "FFT roots of unity", err), fail);
    for (int64_t k = 0; k <= n / 4; k++) own->roots[k] = root_of_unity(k, n);
  }
  *out = own;
  return SN_OK;
fail:
  fft_own_destroy(own);
  return status;
}

void fft_own_destroy(fft_own *own) {
  if (own == NULL) return;
  plan_destroy(own->complex_plan);
  sn_free(own->roots);
  sn_free(own);
}

/* ---- real transforms ---- */

static sn_status get_buffers(const fft_own *own, cplx **a, cplx **b, sn_error *err) {
  int64_t n = buffer_length(own->complex_plan), bytes;
  if (!sn_mul_ok(2 * n, (int64_t)sizeof(cplx), &bytes)) return sn_fail(err, SN_E_MEMORY, "FFT of %lld", (long long)n);
  SN_TRY(sn_alloc_aligned(a, bytes, "FFT work space", err));
  *b = *a + n;
  return SN_OK;
}

/* exp(-2 pi i k / n) for 0 <= k <= n/2 from the quarter that is stored: w^(n/2 - k) = -conj(w^k). */
static cplx real_root(const fft_own *own, int64_t k) {
  if (4 * k <= own->n) return own->roots[k];
  cplx w = own->roots[own->n / 2 - k];
  return (cplx){-w.re, w.im};
}

sn_status fft_own_forward(const fft_own *own, const double *x, double complex *X, sn_error *err) {
  cplx *a, *b;
  SN_TRY(get_buffers(own, &a, &b, err));
  cplx *memory = a;
  int64_t n = own->n, h = n / 2;
  if (n % 2 != 0) {
    for (int64_t j = 0; j < n; j++) a[j] = (cplx){x[j], 0};
    const cplx *z = run_plan(own->complex_plan, a, b);
    for (int64_t k = 0; k <= h; k++) X[k] = CMPLX(z[k].re, k == 0 ? 0.0 : z[k].im);
  } else {
    /* z_j = x_2j + i x_2j+1; the transforms of the even and the odd samples are its Hermitian and skew parts. */
    for (int64_t j = 0; j < h; j++) a[j] = (cplx){x[2 * j], x[2 * j + 1]};
    const cplx *z = run_plan(own->complex_plan, a, b);
    for (int64_t k = 1; k < h; k++) {
      cplx one = z[k], two = conjugate(z[h - k]);
      cplx even = add(one, two), odd = mul(real_root(own, k), times_minus_i(sub(one, two)));
      X[k] = CMPLX(0.5 * (even.re + odd.re), 0.5 * (even.im + odd.im));
    }
    X[0] = CMPLX(z[0].re + z[0].im, 0.0);
    X[h] = CMPLX(z[0].re - z[0].im, 0.0);
  }
  sn_free(memory);
  return SN_OK;
}

/* The inverse transform is the forward one between two conjugations; a receives the conjugate. */
sn_status fft_own_inverse(const fft_own *own, const double complex *X, double *x, sn_error *err) {
  cplx *a, *b;
  SN_TRY(get_buffers(own, &a, &b, err));
  cplx *memory = a;
  int64_t n = own->n, h = n / 2;
  if (n % 2 != 0) {
    a[0] = (cplx){creal(X[0]), 0};
    for (int64_t k = 1; k <= h; k++) {
      a[k] = (cplx){creal(X[k]), -cimag(X[k])};
      a[n - k] = conjugate(a[k]);
    }
    const cplx *z = run_plan(own->complex_plan, a, b);
    for (int64_t j = 0; j < n; j++) x[j] = z[j].re;
  } else {
    for (int64_t k = 0; k < h; k++) {
      cplx one = {creal(X[k]), k == 0 ? 0 : cimag(X[k])}, two = {creal(X[h - k]), k == 0 ? 0 : -cimag(X[h - k])};
      cplx even = add(one, two), odd = mul(conjugate(real_root(own, k)), sub(one, two));
      a[k] = (cplx){even.re - odd.im, -(even.im + odd.re)}; /* conjugate of even + i odd */
    }
    const cplx *z = run_plan(own->complex_plan, a, b);
    for (int64_t j = 0; j < h; j++) {
      x[2 * j] = z[j].re;
      x[2 * j + 1] = -z[j].im;
    }
  }
  sn_free(memory);
  return SN_OK;
}
