#include "engine/statistics.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

enum { MOST_SCALES = SN_MOST_TARGETS + 1 };
static const double LEAST_STD = 1e-6;

typedef struct column_stats {
  sn_param *mean, *std;
  const char *target; /* NULL: the patches */
  int64_t width;
  double *n, *m, *m2; /* (width) each */
} column_stats;

static bool is_filled(const sn_param *std) {
  for (int64_t i = 0; i < sn_tensor_count(&std->value); i++)
    if (sn_tensor_get(&std->value, i) != 0) return true;
  return false;
}

static sn_status add_scale(column_stats *all, int *n, const char *target, sn_param *mean, sn_param *std, sn_error *err) {
  if (mean == NULL || is_filled(std)) return SN_OK;
  column_stats *c = &all[*n];
  c->target = target;
  c->mean = mean;
  c->std = std;
  c->width = sn_tensor_count(&mean->value);
  (*n)++;
  SN_TRY(sn_alloc(&c->n, c->width, sizeof *c->n, "statistics", err));
  SN_TRY(sn_alloc(&c->m, c->width, sizeof *c->m, "statistics", err));
  return sn_alloc(&c->m2, c->width, sizeof *c->m2, "statistics", err);
}

/* The first c->width of every `stride` values. */
static void take_rows(column_stats *c, const float *values, const uint8_t *valid, int64_t rows, int64_t stride) {
  for (int64_t r = 0; r < rows; r++)
    for (int64_t j = 0; j < c->width; j++) {
      const int64_t at = r * stride + j;
      if (valid != NULL && !valid[at]) continue;
      const double d = values[at] - c->m[j];
      c->n[j] += 1;
      c->m[j] += d / c->n[j];
      c->m2[j] += d * (values[at] - c->m[j]);
    }
}

/* n_extra: the last values of a patch, which are no signal; a column may be without them. */
static sn_status take_sample(column_stats *c, const sn_sample *sample, int64_t n_extra, sn_error *err) {
  if (c->target == NULL) {
    if (c->width != sample->patch_size && c->width != sample->patch_size - n_extra)
      return sn_fail(err, SN_E_STATE, "statistics: patches of %lld values, %lld were expected",
                     (long long)sample->patch_size, (long long)c->width);
    take_rows(c, sample->patches, sample->valid, sample->n_tokens, sample->patch_size);
    return SN_OK;
  }
  for (int i = 0; i < sample->n_targets; i++) {
    const sn_target *t = &sample->targets[i];
    if (strcmp(t->spec.name, c->target) != 0) continue;
    if (t->spec.width != c->width)
      return sn_fail(err, SN_E_STATE, "statistics: target '%s' has %lld values, %lld were expected", c->target,
                     (long long)t->spec.width, (long long)c->width);
    take_rows(c, t->values, t->valid, t->spec.per_token ? sample->n_tokens : 1, c->width);
    return SN_OK;
  }
  return sn_fail(err, SN_E_STATE, "statistics: the data deliver no target '%s'", c->target);
}

static void set_value(sn_param *p, int64_t j, double value) {
  sn_tensor_set(&p->value, j, value);
  if (p->ema.data != NULL) sn_tensor_set(&p->ema, j, value);
}

static void finish(column_stats *c) {
  for (int64_t j = 0; j < c->width; j++) {
    const double std = c->n[j] > 1 ? sqrt(c->m2[j] / c->n[j]) : 0;
    set_value(c->mean, j, c->m[j]);
    set_value(c->std, j, std >= LEAST_STD ? std : 1);
  }
  c->mean->version++;
  c->std->version++;
}

/* Window number i of `count`: spread over the source; over each source of a mixture by its share, as training meets them. */
static int64_t choose_window(const sn_source *source, int64_t i, int64_t count) {
  const double at = (double)i / (double)count;
  double from = 0, all = 0;
  for (int64_t k = 0; k < source->n_parts; k++)
    all += source->parts[k].share * (double)source->parts[k].n_windows / (double)source->parts[k].tokens;
  for (int64_t k = 0; k < source->n_parts; k++) {
    const sn_source_part *p = &source->parts[k];
    const double part = p->share * (double)p->n_windows / (double)p->tokens / all;
    if (at >= from + part && k + 1 < source->n_parts) {
      from += part;
      continue;
    }
    const int64_t window = (int64_t)((at - from) / part * (double)p->n_windows);
    return p->first + (window < p->n_windows ? window : p->n_windows - 1);
  }
  return (int64_t)(at * (double)source->n_windows);
}

static sn_status read_windows(column_stats *all, int n, sn_source *source, int64_t most, int64_t *n_read, sn_error *err) {
  const int64_t count = most < source->n_windows ? most : source->n_windows;
  sn_error last = {0};
  for (int64_t i = 0; i < count; i++) {
    const int64_t window = choose_window(source, i, count);
    sn_sample *sample = NULL;
    sn_status status = sn_source_read(source, window, 0, 0, 0, &sample, &last);
    if (status == SN_E_MEMORY || status == SN_E_DEVICE || status == SN_E_STATE) {
      if (err != NULL) *err = last;
      return status;
    }
    if (status != SN_OK) continue;
    for (int k = 0; k < n && status == SN_OK; k++) status = take_sample(&all[k], sample, source->n_extra, err);
    sn_sample_destroy(sample);
    if (status != SN_OK) return status;
    (*n_read)++;
  }
  if (*n_read == 0)
    return sn_fail(err, SN_E_ARGUMENT, "statistics: none of %lld windows can be used: %s", (long long)count, last.message);
  return SN_OK;
}

sn_status sn_model_fit_statistics(sn_model *model, sn_source *source, int64_t most, const sn_log *log, sn_error *err) {
  column_stats all[MOST_SCALES] = {{0}};
  sn_param *mean, *std;
  int n = 0;
  int64_t n_read = 0;
  sn_status status;
  sn_encoder_input_scale(model->encoder, &mean, &std);
  SN_TRY_GOTO(add_scale(all, &n, NULL, mean, std, err), done);
  for (int i = 0; model->objective != NULL && i < model->objective->n_scales; i++) {
    const sn_objective_scale *s = &model->objective->scales[i];
    SN_TRY_GOTO(add_scale(all, &n, s->target, s->mean, s->std, err), done);
  }
  if (n == 0) goto done;
  SN_TRY_GOTO(read_windows(all, n, source, most, &n_read, err), done);
  for (int k = 0; k < n; k++) finish(&all[k]);
  sn_log_write(log, SN_LOG_INFO, "means and deviations of %s from %lld windows", n > 1 ? "inputs and targets" : n == 1 && all[0].target == NULL ? "inputs" : "targets",
               (long long)n_read);
done:
  for (int k = 0; k < n; k++) {
    sn_free(all[k].n);
    sn_free(all[k].m);
    sn_free(all[k].m2);
  }
  return status;
}
