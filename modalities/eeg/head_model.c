#include "modalities/eeg/head_model.h"

#include <math.h>

#define PI 3.14159265358979323846
#define MU0_OVER_4PI 1e-7

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static double length(const double a[3]) { return sqrt(dot(a, a)); }

/* From potential v and scaled radial current f at x = r/R: the terms of the shell inside, and v, f at its inner
 * boundary y: a x^n = ((n+1) v + f/s)/(2n+1), c x^-(n+1) = (n v - f/s)/(2n+1). Returns c. */
static double cross_shell(double n, double x, double y, double s, double *v, double *f) {
  double a = ((n + 1.0) * *v + *f / s) / (2.0 * n + 1.0), c = (n * *v - *f / s) / (2.0 * n + 1.0);
  double inner_a = a * pow(y / x, n), inner_c = c * pow(x / y, n + 1.0);
  *v = inner_a + inner_c;
  *f = s * (n * inner_a - (n + 1.0) * inner_c);
  return c * pow(x, n + 1.0);
}

sn_status sn_head_model_make(sn_head_model *model, double radius_m, double brain, double skull,
                             const double conductivity[3], sn_error *err) {
  if (!(radius_m > 0.0) || !(brain > 0.0) || !(skull >= brain) || !(skull <= 1.0) || !(conductivity[0] > 0.0) ||
      !(conductivity[1] > 0.0) || !(conductivity[2] > 0.0))
    return sn_fail(err, SN_E_ARGUMENT,
                   "head model: radius %g m, shells at %g and %g of it, conductivities %g, %g, %g S/m; positive values "
                   "with 0 < brain <= skull <= 1 are possible",
                   radius_m, brain, skull, conductivity[0], conductivity[1], conductivity[2]);
  *model = (sn_head_model){.radius_m = radius_m, .conductivity = conductivity[0]};
  for (int n = 1; n <= SN_HEAD_TERMS; n++) {
    /* At the surface a : c = n + 1 : n, so the potential is 2n + 1 and no current flows. */
    double v = 2.0 * n + 1.0, f = 0.0;
    cross_shell(n, 1.0, skull, conductivity[2], &v, &f);
    cross_shell(n, skull, brain, conductivity[1], &v, &f);
    model->g[n] = (2.0 * n + 1.0) / cross_shell(n, brain, brain, conductivity[0], &v, &f);
  }
  return SN_OK;
}

double sn_head_potential(const sn_head_model *model, const double electrode[3], const double dipole[3],
                         const double moment[3]) {
  double b = length(dipole), r = length(electrode), u[3], e[3], sum = 0.0, size = 0.0;
  for (int i = 0; i < 3; i++) u[i] = electrode[i] / r, e[i] = b > 0.0 ? dipole[i] / b : u[i];
  double c = dot(u, e), radial = dot(moment, e), across = dot(moment, u) - c * radial, power = 1.0;
  double p_before = 1.0, p = c, d_before = 0.0, d = 1.0; /* P_0, P_1 and their derivatives */
  for (int n = 1; n <= SN_HEAD_TERMS; n++) {
    sum += power * model->g[n] * (n * radial * p + across * d);
    /* |P_n| <= 1, |P_n'| <= n (n+1)/2 bound what is left. */
    size = fmax(size, fabs(sum));
    if (power * model->g[n] * n * (fabs(radial) + n * fabs(across)) < 1e-13 * size) break;
    double p_next = ((2.0 * n + 1.0) * c * p - n * p_before) / (n + 1.0), d_next = d_before + (2.0 * n + 1.0) * p;
    p_before = p, p = p_next, d_before = d, d = d_next;
    power *= b / model->radius_m;
  }
  return sum / (4.0 * PI * model->conductivity * model->radius_m * model->radius_m);
}

double sn_sphere_potential(double radius_m, double conductivity, const double electrode[3], const double dipole[3],
                           const double moment[3]) {
  double r[3], d[3], norm = length(electrode), sum = 0.0;
  for (int i = 0; i < 3; i++) r[i] = electrode[i] * radius_m / norm, d[i] = r[i] - dipole[i];
  double distance = length(d), along = dot(r, dipole), square = radius_m * radius_m;
  for (int i = 0; i < 3; i++) {
    double boundary = r[i] + (r[i] * along - square * dipole[i]) / (square + radius_m * distance - along);
    sum += moment[i] * (2.0 * d[i] / (distance * distance * distance) + boundary / (square * distance));
  }
  return sum / (4.0 * PI * conductivity);
}

void sn_sphere_field(double b[3], const double r[3], const double dipole[3], const double moment[3]) {
  const double *q = moment, *r0 = dipole;
  double a[3] = {r[0] - r0[0], r[1] - r0[1], r[2] - r0[2]};
  double q_cross[3] = {q[1] * r0[2] - q[2] * r0[1], q[2] * r0[0] - q[0] * r0[2], q[0] * r0[1] - q[1] * r0[0]};
  double la = length(a), lr = length(r), ar = dot(a, r), f = la * (la * lr + lr * lr - dot(r0, r));
  double on_r = la * la / lr + ar / la + 2.0 * la + 2.0 * lr, on_r0 = la + 2.0 * lr + ar / la;
  double projection = dot(q_cross, r);
  for (int i = 0; i < 3; i++)
    b[i] = MU0_OVER_4PI / (f * f) * (f * q_cross[i] - projection * (on_r * r[i] - on_r0 * r0[i]));
}
