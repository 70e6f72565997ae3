/* Learning-rate schedules (objectives.md O14). Steps count from 0; `total` and `warmup` are in steps. */
#ifndef SN_ENGINE_SCHEDULE_H
#define SN_ENGINE_SCHEDULE_H

#include <stdint.h>

#include "core/status.h"

typedef enum sn_schedule_kind {
  SN_SCHEDULE_COSINE,     /* warm-up lr*(step+1)/warmup, then min + (lr-min)*(1+cos(pi*(step-w)/(total-w)))/2 */
  SN_SCHEDULE_COSINE_MAE, /* the same with warm-up lr*step/warmup, so that the first step has rate 0 (compat) */
  SN_SCHEDULE_WSD,        /* warm-up, stable, then linear to min over the last `decay` steps */
  SN_SCHEDULE_LINEAR,     /* warm-up, then linear to min at total */
  SN_SCHEDULE_CONSTANT    /* warm-up, then constant */
} sn_schedule_kind;

typedef struct sn_schedule {
  sn_schedule_kind kind;
  double lr, min_lr;
  int64_t total, warmup, decay;
} sn_schedule;

/* cosine, cosine_mae, wsd, linear or constant; any other name is SN_E_ARGUMENT. */
SN_MUST_CHECK sn_status sn_schedule_parse(const char *name, sn_schedule_kind *kind, sn_error *err);
/* The rate of the update that is made at `step`. */
double sn_schedule_at(const sn_schedule *schedule, int64_t step);

#endif
