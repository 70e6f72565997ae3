#include "engine/schedule.h"

#include <math.h>
#include <string.h>

static const char *const NAMES[] = {"cosine", "cosine_mae", "wsd", "linear", "constant"};

sn_status sn_schedule_parse(const char *name, sn_schedule_kind *kind, sn_error *err) {
  for (int i = 0; i < 5; i++)
    if (strcmp(name, NAMES[i]) == 0) {
      *kind = (sn_schedule_kind)i;
      return SN_OK;
    }
  return sn_fail(err, SN_E_ARGUMENT, "schedule '%s': expected cosine, cosine_mae, wsd, linear or constant", name);
}

double sn_schedule_at(const sn_schedule *s, int64_t step) {
  if (step < s->warmup) {
    const double numerator = (double)step + (s->kind == SN_SCHEDULE_COSINE_MAE ? 0.0 : 1.0);
    return s->lr * numerator / (double)s->warmup;
  }
  const double span = (double)(s->total - s->warmup);
  double progress = span > 0 ? (double)(step - s->warmup) / span : 1.0;
  if (progress > 1) progress = 1;
  switch (s->kind) {
    case SN_SCHEDULE_COSINE:
    case SN_SCHEDULE_COSINE_MAE: return s->min_lr + (s->lr - s->min_lr) * 0.5 * (1 + cos(M_PI * progress));
    case SN_SCHEDULE_LINEAR: return s->lr + (s->min_lr - s->lr) * progress;
    case SN_SCHEDULE_WSD: {
      const int64_t start = s->total - s->decay;
      if (step < start || s->decay <= 0) return s->lr;
      double done = (double)(step - start) / (double)s->decay;
      return s->lr + (s->min_lr - s->lr) * (done > 1 ? 1 : done);
    }
    case SN_SCHEDULE_CONSTANT: break;
  }
  return s->lr;
}
