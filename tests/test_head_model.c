/* needs: full */
/* Forward models: the series against a closed form, and the laws of physics that both must keep. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/philox.h"
#include "modalities/eeg/head_model.h"

#define R 0.095

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static void draw(sn_random *r, double v[3], double length) {
  double norm;
  for (int i = 0; i < 3; i++) v[i] = sn_random_normal(r);
  norm = sqrt(dot(v, v));
  for (int i = 0; i < 3; i++) v[i] *= length / norm;
}

static sn_head_model make(double brain, double skull, double s1, double s2, double s3) {
  sn_head_model model;
  sn_error err;
  const double s[3] = {s1, s2, s3};
  if (sn_head_model_make(&model, R, brain, skull, s, &err) != SN_OK) fail_msg("%s", err.message);
  return model;
}

static void test_one_conductivity(void **state) {
  (void)state;
  sn_head_model model = make(0.87, 0.92, 0.33, 0.33, 0.33);
  sn_random r = sn_random_at(1, SN_PURPOSE_TEST, 0, 0);
  for (int k = 0; k < 200; k++) {
    double electrode[3], dipole[3], moment[3];
    draw(&r, electrode, 1), draw(&r, moment, 1e-8), draw(&r, dipole, R * (0.85 * k / 200.0));
    double series = sn_head_potential(&model, electrode, dipole, moment);
    double closed = sn_sphere_potential(R, 0.33, electrode, dipole, moment);
    double scale = 1e-8 / (4 * 3.14159 * 0.33 * R * R);
    if (!(fabs(series - closed) <= 1e-9 * (fabs(closed) + scale))) fail_msg("%d: %g, %g", k, series, closed);
  }
}

/* Reciprocal facts: the mean over the surface is 0, V is linear in the moment, and turning everything changes nothing.
 */
static void test_three_shells(void **state) {
  (void)state;
  sn_head_model model = make(0.87, 0.92, 0.33, 0.0066, 0.33), bare = make(0.87, 0.92, 0.33, 0.33, 0.33);
  sn_random r = sn_random_at(2, SN_PURPOSE_TEST, 0, 0);
  double dipole[3] = {0.01, -0.02, 0.07}, moment[3] = {1e-8, 2e-8, -1e-8}, sum = 0, largest = 0, bare_largest = 0;
  enum { N = 4000 };
  for (int k = 0; k < N; k++) { /* a spiral over the sphere: equal areas */
    double z = 1 - (2.0 * k + 1) / N, phi = k * 2.39996322972865332, s = sqrt(1 - z * z);
    double u[3] = {s * cos(phi), s * sin(phi), z}, v = sn_head_potential(&model, u, dipole, moment);
    sum += v / N, largest = fmax(largest, fabs(v));
    bare_largest = fmax(bare_largest, fabs(sn_head_potential(&bare, u, dipole, moment)));
  }
  assert_true(fabs(sum) < 1e-4 * largest);
  assert_true(largest < 0.5 * bare_largest && largest > 0.02 * bare_largest); /* the skull weakens and blurs */
  double u[3], half[3], twice = 0;
  draw(&r, u, 1);
  for (int i = 0; i < 3; i++) half[i] = moment[i] / 2;
  twice = 2 * sn_head_potential(&model, u, dipole, half);
  assert_true(fabs(twice - sn_head_potential(&model, u, dipole, moment)) < 1e-12 * largest);
  double turned[3][3] = {{u[1], u[2], u[0]}, {dipole[1], dipole[2], dipole[0]}, {moment[1], moment[2], moment[0]}};
  assert_true(fabs(sn_head_potential(&model, turned[0], turned[1], turned[2]) -
                   sn_head_potential(&model, u, dipole, moment)) < 1e-12 * largest);
  /* At the centre there is no direction of the dipole's place. */
  double centre[3] = {0}, near[3] = {1e-9, 0, 0};
  double at = sn_head_potential(&model, u, centre, moment), beside = sn_head_potential(&model, u, near, moment);
  assert_true(isfinite(at) && fabs(at - beside) < 1e-6 * largest);
  /* The current through skull and scalp, from the model's own terms: continuous, so a shell of the same conductivity as
   * its neighbour is as if it were not there. */
  sn_head_model joined = make(0.87, 0.87, 0.33, 0.1, 0.02), split = make(0.87, 0.95, 0.33, 0.02, 0.02);
  for (int n = 1; n < 60; n++) assert_true(fabs(joined.g[n] / split.g[n] - 1) < 1e-10);
}

static void test_field(void **state) {
  (void)state;
  sn_random r = sn_random_at(3, SN_PURPOSE_TEST, 0, 0);
  for (int k = 0; k < 100; k++) {
    double at[3], dipole[3], moment[3], b[3], h = 1e-5;
    draw(&r, at, 0.11 + 0.0002 * k), draw(&r, dipole, 0.08), draw(&r, moment, 1e-8);
    sn_sphere_field(b, at, dipole, moment);
    /* Radial part: the dipole's own field alone (the currents it drives give none). */
    double a[3], cross[3], distance, norm = sqrt(dot(at, at));
    for (int i = 0; i < 3; i++) a[i] = at[i] - dipole[i];
    distance = sqrt(dot(a, a));
    for (int i = 0; i < 3; i++) cross[i] = moment[(i + 1) % 3] * a[(i + 2) % 3] - moment[(i + 2) % 3] * a[(i + 1) % 3];
    double radial = 1e-7 * dot(cross, at) / norm / pow(distance, 3), size = sqrt(dot(b, b));
    assert_true(fabs(dot(b, at) / norm - radial) <= 1e-9 * size);
    /* Outside there is no current: no curl, no divergence. */
    double gradient[3][3], scale = 0;
    for (int i = 0; i < 3; i++) {
      double up[3], down[3], p[3] = {at[0], at[1], at[2]};
      p[i] += h, sn_sphere_field(up, p, dipole, moment);
      p[i] -= 2 * h, sn_sphere_field(down, p, dipole, moment);
      for (int j = 0; j < 3; j++)
        gradient[i][j] = (up[j] - down[j]) / (2 * h), scale = fmax(scale, fabs(gradient[i][j]));
    }
    for (int i = 0; i < 3; i++) assert_true(fabs(gradient[i][(i + 1) % 3] - gradient[(i + 1) % 3][i]) < 1e-5 * scale);
    assert_true(fabs(gradient[0][0] + gradient[1][1] + gradient[2][2]) < 1e-5 * scale);
    /* A radial dipole is silent. */
    sn_sphere_field(b, at, dipole, dipole);
    double loud[3];
    sn_sphere_field(loud, at, dipole, moment);
    assert_true(sqrt(dot(b, b)) <= 1e-12 * sqrt(dot(loud, loud)) * 0.08 / 1e-8);
  }
}

static void test_errors(void **state) {
  (void)state;
  sn_head_model model;
  sn_error err;
  const double good[3] = {0.33, 0.0066, 0.33}, bad[3] = {0.33, 0, 0.33};
  assert_int_equal(sn_head_model_make(&model, 0, 0.87, 0.92, good, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_head_model_make(&model, R, 0.93, 0.92, good, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_head_model_make(&model, R, 0.87, 1.1, good, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_head_model_make(&model, R, NAN, 0.92, good, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_head_model_make(&model, R, 0.87, 0.92, bad, &err), SN_E_ARGUMENT);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_conductivity), cmocka_unit_test(test_three_shells),
                                     cmocka_unit_test(test_field), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
