#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/stats.h"
#include "core/text.h"
#include "modalities/signal/condition.h"

static const char *const NAMES[] = {"none", "zscore-window", "zscore-record", "robust", "q95", "global", "div100uV", "group"};
const char *const sn_normalize_choices = "none|zscore-window|zscore-record|robust|q95|global|div100uV|group";

enum { N_NAMES = sizeof NAMES / sizeof *NAMES };

bool sn_normalize_from_name(const char *name, sn_normalize *out) {
  for (int i = 0; i < N_NAMES; i++) {
    if (strcmp(name, NAMES[i]) != 0) continue;
    *out = (sn_normalize)i;
    return true;
  }
  return false;
}

const char *sn_normalize_name(sn_normalize normalize) {
  return (int)normalize >= 0 && (int)normalize < N_NAMES ? NAMES[normalize] : "?";
}

/* Mean and deviation (divisor n) of the valid values. */
static void moments(const double *x, const uint8_t *valid, int64_t n, sn_window_info *info) {
  sn_sum sum = {0}, squares = {0};
  int64_t used = 0;
  for (int64_t i = 0; i < n; i++)
    if (valid[i]) {
      sn_sum_add(&sum, x[i]);
      used++;
    }
  info->n_valid = used;
  info->mean = info->std = NAN;
  if (used == 0) return;
  info->mean = sn_sum_value(&sum) / (double)used;
  for (int64_t i = 0; i < n; i++)
    if (valid[i]) sn_sum_add(&squares, (x[i] - info->mean) * (x[i] - info->mean));
  info->std = sqrt(fmax(sn_sum_value(&squares), 0.0) / (double)used);
}

/* shift and scale of the modes that look at order statistics; work holds 2n. */
static void order_scale(sn_normalize mode, const double *x, const uint8_t *valid, int64_t n, double *work,
                        sn_window_info *info) {
  double *copy = work, *scratch = work + n;
  int64_t used = 0;
  for (int64_t i = 0; i < n; i++)
    if (valid[i]) copy[used++] = mode == SN_NORMALIZE_Q95 ? fabs(x[i]) : x[i];
  if (mode == SN_NORMALIZE_Q95) {
    info->scale = sn_quantile(copy, used, 0.95, scratch);
  } else {
    info->shift = sn_quantile(copy, used, 0.5, scratch);
    info->scale = sn_quantile(copy, used, 0.75, scratch) - sn_quantile(copy, used, 0.25, scratch);
  }
  /* Half of the window may rest at one value (a lead that is off and on): then the deviation is the scale. */
  if (!(info->scale > 0.0)) info->scale = info->std;
}

static sn_status voltage_scale(const char *unit, double *scale, sn_error *err) {
  static const struct { const char *unit; double value; } SCALES[] = {{"mV", 0.1}, {"uV", 100.0}, {"V", 1e-4}};
  for (size_t i = 0; i < sizeof SCALES / sizeof *SCALES; i++) {
    if (strcmp(unit, SCALES[i].unit) != 0) continue;
    *scale = SCALES[i].value;
    return SN_OK;
  }
  return sn_fail(err, SN_E_ARGUMENT, "normalisation div100uV needs a voltage; the unit is \"%s\"", unit);
}

static sn_status find_scale(const sn_condition_options *o, const char *unit, const sn_channel_stats *stats,
                            const double *x, const uint8_t *valid, int64_t n, sn_window_info *info, bool *zero,
                            sn_error *err) {
  double *work = NULL;
  *zero = info->flat;
  switch (o->normalize) {
    case SN_NORMALIZE_NONE: *zero = false; break;
    case SN_NORMALIZE_ZSCORE_WINDOW: info->shift = info->mean, info->scale = info->std; break;
    case SN_NORMALIZE_ZSCORE_RECORD:
      if (stats == NULL)
        return sn_fail(err, SN_E_ARGUMENT, "normalisation zscore-record needs the statistics of the whole recording");
      info->shift = stats->mean, info->scale = stats->std;
      *zero = !(stats->std > o->flat_std); /* a channel that is flat throughout */
      break;
    case SN_NORMALIZE_GROUP:
      if (stats == NULL) return sn_fail(err, SN_E_ARGUMENT, "normalisation group needs the statistics of the group");
      info->shift = stats->mean, info->scale = stats->std;
      *zero = info->flat || !(stats->std > o->flat_std);
      break;
    case SN_NORMALIZE_ROBUST:
    case SN_NORMALIZE_Q95:
      if (info->flat) break;
      SN_TRY(sn_alloc(&work, 2 * n, sizeof *work, "order statistics", err));
      order_scale(o->normalize, x, valid, n, work, info);
      sn_free(work);
      break;
    case SN_NORMALIZE_GLOBAL: info->shift = o->global_mean, info->scale = o->global_std, *zero = false; break;
    case SN_NORMALIZE_DIV100UV:
      *zero = false;
      return voltage_scale(unit, &info->scale, err);
    default: return sn_fail(err, SN_E_ARGUMENT, "normalisation %d is not known", (int)o->normalize);
  }
  return SN_OK;
}

sn_status sn_conditioner_normalize(const sn_conditioner *conditioner, const char *unit, const sn_channel_stats *stats,
                                   double *values, const uint8_t *valid, int64_t n, sn_window_info *info,
                                   sn_error *err) {
  const sn_condition_options *o = sn_conditioner_options(conditioner);
  sn_window_info local = {.n = n, .scale = 1.0};
  bool zero = false;
  moments(values, valid, n, &local);
  local.flat = local.n_valid > 0 && !(local.std > o->flat_std);
  if (local.n_valid > 0) {
    SN_TRY(find_scale(o, unit, stats, values, valid, n, &local, &zero, err));
    if (zero) local.scale = 1.0;
    for (int64_t i = 0; i < n; i++) {
      if (!valid[i]) continue;
      double v = zero ? 0.0 : (values[i] - local.shift) / local.scale;
      if (o->clip > 0.0 && fabs(v) > o->clip) {
        v = copysign(o->clip, v);
        local.n_clipped++;
      }
      values[i] = v;
    }
  }
  if (info != NULL) *info = local;
  return SN_OK;
}
