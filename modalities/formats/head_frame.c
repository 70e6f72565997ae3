#include "modalities/formats/head_frame.h"

#include <math.h>
#include <string.h>

double sn_dot3(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

bool sn_normalise3(double v[3]) {
  double length = sqrt(sn_dot3(v, v));
  if (!(length > 1e-6) || !isfinite(length)) return false;
  for (int i = 0; i < 3; i++) v[i] /= length;
  return true;
}

bool sn_head_frame_make(sn_head_frame *frame, const double left[3], const double right[3], const double nasion[3]) {
  sn_head_frame f = {0};
  double *x = f.axes[0], *y = f.axes[1], *z = f.axes[2], to_nasion[3];
  frame->known = false;
  for (int i = 0; i < 3; i++) {
    x[i] = right[i] - left[i];
    to_nasion[i] = nasion[i] - left[i];
  }
  if (!sn_normalise3(x)) return false;
  double along = sn_dot3(to_nasion, x);
  for (int i = 0; i < 3; i++) {
    f.origin[i] = left[i] + along * x[i];
    y[i] = nasion[i] - f.origin[i];
  }
  if (!sn_normalise3(y)) return false;
  for (int i = 0; i < 3; i++) z[i] = x[(i + 1) % 3] * y[(i + 2) % 3] - x[(i + 2) % 3] * y[(i + 1) % 3];
  f.known = true;
  *frame = f;
  return true;
}

void sn_head_frame_direction(const sn_head_frame *frame, const double p[3], double head[3]) {
  for (int i = 0; i < 3; i++) head[i] = sn_dot3(frame->axes[i], p);
}

void sn_head_frame_point(const sn_head_frame *frame, const double p[3], double head[3]) {
  double moved[3];
  for (int i = 0; i < 3; i++) moved[i] = p[i] - frame->origin[i];
  sn_head_frame_direction(frame, moved, head);
}
