#include "engine/schedule.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

sn_status sn_schedule_parse(const char *name, sn_schedule_kind *kind, sn_error *err) {
  const char *at = SN_SCHEDULE_NAMES;
  const size_t n = strlen(name);
  for (int i = 0; i < SN_N_SCHEDULES; i++) {
    const size_t length = strcspn(at, "|");
    if (length == n && strncmp(at, name, n) == 0) {
      *kind = (sn_schedule_kind)i;
      return SN_OK;
    }
    at += length + (at[length] == '|');
  }
  return sn_fail(err, SN_E_ARGUMENT, "schedule '%s': expected one of %s", name, SN_SCHEDULE_NAMES);
}

/* Numbers below are steps as doubles: k is s or s + 1 (schedule.h). */
static double warm_up(const sn_schedule *s, double k) {
  const double W = (double)s->warmup;
  switch (s->kind) {
    case SN_SCHEDULE_COSINE_MAE:
    case SN_SCHEDULE_LINEAR_BERT: return s->lr * k / W;
    case SN_SCHEDULE_COSINE_JEPA:
    case SN_SCHEDULE_WSD_VJEPA2: return s->start_lr + (s->lr - s->start_lr) * k / W;
    case SN_SCHEDULE_COSINE_DINO: return W > 1 ? s->start_lr + (s->lr - s->start_lr) * k / (W - 1) : s->start_lr;
    case SN_SCHEDULE_WSD_MODERNBERT: return 1e-10 + (s->lr - 1e-10) * k / W;
    default: return s->lr * (k + 1) / W;
  }
}

static double cosine(const sn_schedule *s, double f) {
  return s->min_lr + (s->lr - s->min_lr) * 0.5 * (1 + cos(M_PI * fmin(f, 1)));
}

/* Share of the last `decay` steps that is over at k; 0 before. */
static double decayed(const sn_schedule *s, double k) {
  const double start = (double)(s->total - s->decay);
  return k < start || s->decay <= 0 ? 0 : fmin((k - start) / (double)s->decay, 1);
}

static double after_steps(const sn_schedule *s, int64_t step) {
  double rate = s->lr;
  for (int i = 0; i < s->n_milestones; i++)
    if ((double)step >= s->milestones[i] * (double)s->total) rate *= s->factor;
  return rate;
}

double sn_schedule_at(const sn_schedule *s, int64_t step) {
  const bool counts_first = s->kind == SN_SCHEDULE_COSINE_JEPA || s->kind == SN_SCHEDULE_WSD_VJEPA2;
  const double k = (double)step + counts_first, W = (double)s->warmup, span = (double)s->total - W;
  const double f = span > 0 ? fmin((k - W) / span, 1) : 1;
  if (k < W) return warm_up(s, k);
  switch (s->kind) {
    case SN_SCHEDULE_COSINE_JEPA: {
      const double stretched = s->ipe_scale * (double)s->total - W;
      return cosine(s, stretched > 0 ? (k - W) / stretched : 1);
    }
    case SN_SCHEDULE_COSINE:
    case SN_SCHEDULE_COSINE_MAE:
    case SN_SCHEDULE_COSINE_DINO: return cosine(s, f);
    case SN_SCHEDULE_POLY: return s->min_lr + (s->lr - s->min_lr) * pow(1 - f, 0.9);
    case SN_SCHEDULE_LINEAR: return s->lr + (s->min_lr - s->lr) * f;
    case SN_SCHEDULE_LINEAR_BERT: return s->lr * fmax(1 - k / (double)s->total, 0);
    case SN_SCHEDULE_WSD:
    case SN_SCHEDULE_TRAPEZOID:
    case SN_SCHEDULE_WSD_VJEPA2: return s->lr + (s->min_lr - s->lr) * decayed(s, k);
    case SN_SCHEDULE_WSD_MODERNBERT: return s->min_lr + (s->lr - s->min_lr) * (1 - sqrt(decayed(s, k)));
    case SN_SCHEDULE_STEP: return after_steps(s, step);
    case SN_SCHEDULE_CONSTANT:
    case SN_N_SCHEDULES: break;
  }
  return s->lr;
}

double sn_schedule_decay_at(const sn_schedule *s, double first, double last, int64_t step) {
  if (last < 0) return first;
  const bool jepa = s->kind == SN_SCHEDULE_COSINE_JEPA;
  const double f = ((double)step + jepa) / ((double)s->total * (jepa ? s->ipe_scale : 1));
  return last + (first - last) * 0.5 * (1 + cos(M_PI * fmin(f, 1)));
}
