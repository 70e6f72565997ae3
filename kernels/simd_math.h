/* Branch-free float32 mathematics that loops turn into vector code. Include kernels/cpu_blocks.h first.
 *
 * Bounds below hold with and without contracted multiply-adds; tests/test_ops_values.c measures them through the ops that
 * use them. */
#ifndef SN_KERNELS_SIMD_MATH_H
#define SN_KERNELS_SIMD_MATH_H

#include "kernels/cpu_blocks.h"

/* exp(x): relative error below 1.5e-7 for -87 <= x <= 88; x beyond that range gives the value at its end (never 0 or inf),
 * NaN gives NaN.  Cody and Waite reduction by ln 2 in two parts, then the Taylor series to degree 7 on |r| <= ln2/2. */
SN_INLINE float sn_exp_f32(float x) {
  float v = x < -87.0f ? -87.0f : x;
  v = v > 88.0f ? 88.0f : v;
  float shifted = v * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to an integer */
  float n = shifted - 12582912.0f;
  float r = (v - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.98412698e-4f;
  p = p * r + 1.38888889e-3f;
  p = p * r + 8.33333333e-3f;
  p = p * r + 4.16666667e-2f;
  p = p * r + 1.66666667e-1f;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  int32_t bits = ((int32_t)n + 127) << 23;
  float scale;
  memcpy(&scale, &bits, sizeof scale);
  return p * scale;
}

/* 1 / (1 + exp(-x)). */
SN_INLINE float sn_sigmoid_f32(float x) { return 1.0f / (1.0f + sn_exp_f32(-x)); }

/* The normal distribution: *cdf = (1 + erf(x / sqrt 2)) / 2, *density = exp(-x*x/2) / sqrt(2 pi).
 * With a = |x|, u = -q a / (1 + q a): cdf(-a) = exp(-a*a/2) * P(u), P a polynomial of degree 7 with P(0) = 1/2 fitted
 * (iteratively reweighted least squares) to erfcx: |fit - true| <= 3e-9.  Rounding included: |cdf error| <= 1e-7. */
SN_INLINE void sn_normal_f32(float x, float *cdf, float *density) {
  float a = x < 0.0f ? -x : x;
  a = a < 13.0f ? a : 13.0f; /* exp(-84.5) is still normal; NaN becomes 13 here and comes back through x below */
  float e = sn_exp_f32(-0.5f * a * a);
  float t = 1.0f / (1.0f + 0.325f * a);
  float u = -0.325f * a * t;
  float p = 0.0471251011f;
  p = p * u + 0.0914209709f;
  p = p * u - 0.0544989854f;
  p = p * u - 0.14283028f;
  p = p * u + 0.368005067f;
  p = p * u + 1.1393708f;
  p = p * u + 1.2275151f;
  p = p * u + 0.5f;
  float tail = p * e;
  *cdf = x < 0.0f ? tail : 1.0f - tail;
  *density = 0.398942280f * e;
}

#endif
