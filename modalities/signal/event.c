#include "modalities/signal/event.h"

#include <math.h>

#include "core/alloc.h"

typedef __int128 wide;

int64_t sn_event_resample(int64_t sample, int64_t in_num, int64_t in_den, int64_t out_num, int64_t out_den) {
  /* floor((2 s out_num in_den + in_num out_den) / (2 in_num out_den)), the sign handled for times before the start */
  wide top = 2 * (wide)sample * out_num * in_den + (wide)in_num * out_den, bottom = 2 * (wide)in_num * out_den;
  wide quotient = top / bottom;
  if (top % bottom != 0 && top < 0) quotient--;
  return (int64_t)quotient;
}

int64_t sn_event_index(double onset_s, double rate_hz) {
  const double x = onset_s * rate_hz + 0.5;
  int64_t index;
  if (sn_floor_ok(x, &index)) return index;
  return isnan(x) ? 0 : x > 0 ? (int64_t)1 << 62 : -((int64_t)1 << 62);
}

bool sn_event_crop(double onset_s, double start_s, double duration_s, double *within_s) {
  double t = onset_s - start_s;
  if (!(t >= 0.0) || !(t < duration_s)) return false;
  *within_s = t;
  return true;
}
