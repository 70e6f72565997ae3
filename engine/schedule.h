/* Learning-rate schedules by the names they have in the literature (objectives.md O14).
 *
 * s counts updates from 0; T = total, W = warmup, D = decay, all in updates; lr the peak, min the rate at the end.
 * Unless said otherwise the warm-up is lr (s + 1) / W, and f stands for (s - W) / (T - W).
 *
 *   cosine          min + (lr - min) (1 + cos(pi f)) / 2
 *   cosine_mae      the same after a warm-up lr s / W, whose first update has rate 0 (He et al. 2022)
 *   cosine_jepa     k = s + 1; warm-up start + (lr - start) k / W while k < W; then as cosine with
 *                   f = (k - W) / (e T - W), e = ipe_scale: for e > 1 the end is never reached (Assran et al. 2023)
 *   cosine_dino     a table: warm-up from start to lr with both ends, start + (lr - start) s / (W - 1); then as cosine
 *                   with f = (s - W) / (T - W), whose value 1 is never reached (Caron et al. 2021)
 *   poly0.9         min + (lr - min) (1 - f)^0.9 (nnU-Net, there once an epoch; with the warm-up of nnssl)
 *   linear          lr + (min - lr) f
 *   linear_bert     warm-up lr s / W, then lr (1 - s / T): the fall counts from the beginning, not from W, and ends at 0
 *   wsd, trapezoid  lr until T - D, then lr + (min - lr) (s - (T - D)) / D (the trapezoid of REVE)
 *   wsd_vjepa2      k = s + 1; warm-up start + (lr - start) k / W while k < W; lr while k < T - D; then
 *                   lr + (min - lr) (k - (T - D)) / D
 *   wsd_modernbert  warm-up 1e-10 + (lr - 1e-10) s / W; lr until T - D; then min + (lr - min) (1 - sqrt((s - (T-D)) / D))
 *                   (Warner et al. 2024)
 *   step            lr q^(number of milestones m with s >= m T), q = factor
 *   constant        lr */
#ifndef SN_ENGINE_SCHEDULE_H
#define SN_ENGINE_SCHEDULE_H

#include <stdint.h>

#include "core/status.h"

typedef enum sn_schedule_kind {
  SN_SCHEDULE_COSINE, SN_SCHEDULE_COSINE_MAE, SN_SCHEDULE_COSINE_JEPA, SN_SCHEDULE_COSINE_DINO, SN_SCHEDULE_POLY,
  SN_SCHEDULE_LINEAR, SN_SCHEDULE_LINEAR_BERT, SN_SCHEDULE_WSD, SN_SCHEDULE_TRAPEZOID, SN_SCHEDULE_WSD_VJEPA2,
  SN_SCHEDULE_WSD_MODERNBERT, SN_SCHEDULE_STEP, SN_SCHEDULE_CONSTANT, SN_N_SCHEDULES
} sn_schedule_kind;

enum { SN_MILESTONES = 16 };

typedef struct sn_schedule {
  sn_schedule_kind kind;
  double lr, min_lr, start_lr; /* start_lr: cosine_jepa, cosine_dino, wsd_vjepa2 */
  int64_t total, warmup, decay;
  double ipe_scale;            /* cosine_jepa: at least 1 */
  int n_milestones;            /* step */
  double milestones[SN_MILESTONES], factor; /* shares of total, ascending */
} sn_schedule;

/* The names as a choice of the configuration, "cosine|cosine_mae|...". */
#define SN_SCHEDULE_NAMES                                                                                                    \
  "cosine|cosine_mae|cosine_jepa|cosine_dino|poly0.9|linear|linear_bert|wsd|trapezoid|wsd_vjepa2|wsd_modernbert|step|constant"

/* One of the names; any other is SN_E_ARGUMENT. */
SN_MUST_CHECK sn_status sn_schedule_parse(const char *name, sn_schedule_kind *kind, sn_error *err);
/* The rate of the update that is made at `step`. */
double sn_schedule_at(const sn_schedule *schedule, int64_t step);
/* Weight decay from `first` to `last` by a cosine over all steps, without warm-up: last + (first - last)
 * (1 + cos(pi s / T)) / 2; under cosine_jepa with (s + 1) / (e T) in place of s / T. last < 0: `first` all the time. */
double sn_schedule_decay_at(const sn_schedule *schedule, double first, double last, int64_t step);

#endif
