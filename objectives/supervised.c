#include "objectives/supervised.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/add/add.h"
#include "kernels/bce_logits/bce_logits.h"
#include "kernels/dropout/dropout.h"
#include "kernels/gather_rows/gather_rows.h"
#include "kernels/layernorm/layernorm.h"
#include "kernels/linear/linear.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "kernels/segment_max/segment_max.h"
#include "kernels/segment_mean/segment_mean.h"
#include "kernels/segment_std/segment_std.h"
#include "kernels/softmax_xent/softmax_xent.h"

enum { COUNT_LABELLED, COUNT_UNLABELLED, N_COUNTERS };
enum { MOST_PARTS = 3 };
static const double NORM_EPS = 1e-6;
static const double HEAD_INIT = 2e-5; /* as the published fine-tuning has it */
static const double STD_EPS = 1e-12;  /* below what float32 features resolve: training pools as inference does */

typedef struct supervised {
  sn_objective base;
  sn_encoder *encoder;
  sn_supervised_options options;
  float *class_weight;    /* (K) or NULL */
  int n_parts;
  sn_param *norm_weight[MOST_PARTS], *norm_bias[MOST_PARTS], *weight[MOST_PARTS], *bias;
  int64_t width;          /* C */
  int64_t slots, samples; /* constant shapes of every pack */
  uint64_t seed;
  sn_dtype residual;
} supervised;

typedef struct supervised_work {
  sn_encoder_input *input;
  int64_t n_pooled;       /* slots of pooled rows */
  int32_t *token_rows;    /* (n_pooled) row of each patch token, -2 beyond; NULL without special rows */
  int32_t *class_rows;    /* (samples) row of each class token, -2 beyond; NULL unless pooled by it */
  int64_t *offsets;       /* (samples + 1) tokens of each sample; empty ones behind the last */
  int32_t *labels;        /* (samples) -1: none */
  float *targets;         /* (samples, K) MULTI and VALUE */
  uint8_t *mask;          /* (samples, K) MULTI */
  float *weights;         /* (samples) VALUE: 1 or 0 */
  uint64_t *sample_ids;   /* (samples) */
  int32_t *positions;     /* (samples) zeros */
  double count;
  int64_t counters[N_COUNTERS];
} supervised_work;

bool sn_supervised_is_head(const char *name) {
  return strncmp(name, "fc_norm.", 8) == 0 || strncmp(name, "head.", 5) == 0;
}

/* --- collate ------------------------------------------------------------------------------------------------------ */

static void free_work(void *work) {
  supervised_work *w = work;
  if (w == NULL) return;
  sn_encoder_input_destroy(w->input);
  sn_free(w->token_rows);
  sn_free(w->class_rows);
  sn_free(w->offsets);
  sn_free(w->labels);
  sn_free(w->targets);
  sn_free(w->mask);
  sn_free(w->weights);
  sn_free(w->sample_ids);
  sn_free(w->positions);
  sn_free(w);
}

static sn_status allocate_work(const supervised *m, supervised_work **out, sn_error *err) {
  supervised_work *w = NULL;
  const int64_t n = m->samples, k = m->options.n_outputs;
  const bool by_class = m->options.pool == SN_POOL_CLS;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "supervised work", err));
  if (by_class) SN_TRY_GOTO(sn_alloc(&w->class_rows, n, sizeof *w->class_rows, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->offsets, n + 1, sizeof *w->offsets, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->labels, n, sizeof *w->labels, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->targets, n * k, sizeof *w->targets, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->mask, n * k, sizeof *w->mask, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->weights, n, sizeof *w->weights, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->sample_ids, n, sizeof *w->sample_ids, "supervised work", err), fail);
  SN_TRY_GOTO(sn_alloc(&w->positions, n, sizeof *w->positions, "supervised work", err), fail);
  *out = w;
  return SN_OK;
fail:
  free_work(w);
  return status;
}

static int compare(const sn_supervised_label *row, int64_t recording, int64_t window) {
  if (row->recording != recording) return row->recording < recording ? -1 : 1;
  return row->window < window ? -1 : row->window > window;
}

static int64_t find(const sn_supervised_labels *labels, int64_t recording, int64_t window) {
  int64_t low = 0, high = labels->n - 1;
  while (low <= high) {
    const int64_t middle = low + (high - low) / 2;
    const int order = compare(&labels->rows[middle], recording, window);
    if (order == 0) return middle;
    if (order < 0) low = middle + 1;
    else high = middle - 1;
  }
  return -1;
}

/* Fills what the loss needs of sample s; false: it has no label. */
static bool set_target(const supervised *m, supervised_work *w, int64_t s, int64_t recording, int64_t window) {
  const sn_supervised_options *o = &m->options;
  const int64_t k = o->n_outputs;
  int64_t row = find(o->labels, recording, window);
  if (row < 0) row = find(o->labels, recording, -1);
  if (row < 0) return false;
  const sn_supervised_label *label = &o->labels->rows[row];
  switch (o->kind) {
    case SN_SUPERVISED_CLASS:
      if (label->label < 0) return false;
      w->labels[s] = label->label;
      w->count += m->class_weight != NULL ? (double)m->class_weight[label->label] : 1.0;
      break;
    case SN_SUPERVISED_MULTI:
      for (int64_t j = 0; j < k; j++) w->targets[s * k + j] = o->labels->hot[row * k + j] ? 1.0f : 0.0f;
      memset(w->mask + s * k, 1, (size_t)k);
      w->count += (double)k;
      break;
    case SN_SUPERVISED_VALUE:
      if (!isfinite(label->value)) return false;
      w->targets[s] = (float)label->value;
      w->weights[s] = 1.0f;
      w->count += 1.0;
      break;
  }
  return true;
}

/* Rows that are pooled: those of tokens, or of latent sources, without the special ones. */
static sn_status lay_out_rows(const supervised *m, const sn_token_batch *batch, supervised_work *w, sn_error *err) {
  const sn_encoder_input *in = w->input;
  const int64_t first = sn_encoder_n_special(m->encoder);
  int64_t n = 0;
  w->n_pooled = in->n_latent_rows > 0 ? in->n_latent_rows : m->slots;
  if (first > 0 && m->options.pool != SN_POOL_CLS)
    SN_TRY(sn_alloc(&w->token_rows, w->n_pooled, sizeof *w->token_rows, "supervised work", err));
  for (int64_t s = 0; s < m->samples; s++) {
    const bool used = s < batch->n_samples;
    w->offsets[s] = n;
    if (w->class_rows != NULL) w->class_rows[s] = used ? (int32_t)in->offsets[s] : -2;
    for (int64_t r = used ? in->offsets[s] + first : 0; used && r < in->offsets[s + 1]; r++, n++)
      if (w->token_rows != NULL) w->token_rows[n] = (int32_t)r;
  }
  w->offsets[m->samples] = n;
  for (; w->token_rows != NULL && n < w->n_pooled; n++) w->token_rows[n] = -2;
  return SN_OK;
}

static sn_status collate(const sn_objective *self, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                         sn_error *err) {
  const supervised *m = self->self;
  supervised_work *w = NULL;
  sn_status status;
  if (batch->n_samples > m->samples)
    return sn_fail(err, SN_E_STATE, "supervised: %lld samples in a pack, at most %lld were announced",
                   (long long)batch->n_samples, (long long)m->samples);
  SN_TRY(allocate_work(m, &w, err));
  SN_TRY_GOTO(sn_encoder_input_create_at(m->encoder, batch, NULL, batch->offsets, m->slots, m->samples, epochs, m->residual,
                                         &w->input, err),
              fail);
  SN_TRY_GOTO(lay_out_rows(m, batch, w, err), fail);
  for (int64_t s = 0; s < m->samples; s++) {
    w->labels[s] = -1;
    if (s >= batch->n_samples) continue;
    w->sample_ids[s] = batch->sample_ids[s];
    const bool labelled = set_target(m, w, s, batch->recordings[s], batch->windows[s]);
    w->counters[labelled ? COUNT_LABELLED : COUNT_UNLABELLED]++;
  }
  *work = w;
  return SN_OK;
fail:
  free_work(w);
  return status;
}

static void counts(const sn_objective *self, const void *work, double *group_counts, int64_t *counters) {
  const supervised_work *w = work;
  group_counts[0] += w->count;
  for (int i = 0; i < N_COUNTERS; i++) counters[i] += w->counters[i];
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

/* parts (n_parts) of (samples, C). */
static sn_status pool(sn_tape *tape, sn_value **parts, const supervised *m, const supervised_work *w,
                      sn_value *features, sn_error *err) {
  sn_value *x = features;
  if (m->options.pool == SN_POOL_CLS)
    return sn_gather_rows(tape, &parts[0], x, NULL, w->class_rows, m->samples, err);
  if (w->token_rows != NULL) SN_TRY(sn_gather_rows(tape, &x, x, NULL, w->token_rows, w->n_pooled, err));
  SN_TRY(sn_segment_mean(tape, &parts[0], x, w->offsets, m->samples, err));
  if (m->n_parts == 1) return SN_OK;
  SN_TRY(sn_segment_max(tape, &parts[1], x, w->offsets, m->samples, err));
  return sn_segment_std(tape, &parts[2], x, w->offsets, m->samples, STD_EPS, err);
}

static sn_status apply_part(sn_tape *tape, sn_value **y, const supervised *m, const supervised_work *w, int part,
                            sn_value *x, uint64_t step, sn_error *err) {
  sn_value *gamma, *beta, *weight, *bias = NULL;
  if (m->options.dropout > 0 && sn_tape_is_training(tape)) {
    sn_dropout_attr drop = {.p = m->options.dropout, .seed = m->seed, .epoch = step, .part = 1000000u + (uint64_t)part,
                            .sample_ids = w->sample_ids, .positions = w->positions, .n = m->samples};
    SN_TRY(sn_dropout(tape, &x, x, &drop, err));
  }
  SN_TRY(sn_tape_param(tape, &gamma, m->norm_weight[part], err));
  SN_TRY(sn_tape_param(tape, &beta, m->norm_bias[part], err));
  SN_TRY(sn_tape_param(tape, &weight, m->weight[part], err));
  if (part == 0) SN_TRY(sn_tape_param(tape, &bias, m->bias, err));
  SN_TRY(sn_layernorm_as(tape, &x, x, gamma, beta, NORM_EPS, m->residual, err));
  return sn_linear(tape, y, x, weight, bias, m->residual, err);
}

static sn_status apply_loss(sn_tape *tape, sn_value **sum, const supervised *m, const supervised_work *w,
                            sn_value *logits, sn_error *err) {
  const sn_supervised_options *o = &m->options;
  const int64_t n = m->samples, k = o->n_outputs;
  sn_value *out[2], *target, *other;
  if (o->kind == SN_SUPERVISED_CLASS) {
    sn_softmax_xent_attr attr = {.labels = w->labels, .n = n, .class_weight = m->class_weight,
                                 .label_smoothing = o->label_smoothing, .weight_rows = true};
    SN_TRY(sn_softmax_xent(tape, out, logits, &attr, err));
    *sum = out[0];
    return SN_OK;
  }
  SN_TRY(sn_tape_input(tape, &target, sn_tensor_2d(w->targets, SN_F32, n, k), false, err));
  if (o->kind == SN_SUPERVISED_MULTI) {
    SN_TRY(sn_tape_input(tape, &other, sn_tensor_2d(w->mask, SN_U8, n, k), false, err));
    SN_TRY(sn_bce_logits(tape, out, logits, target, other, err));
  } else {
    SN_TRY(sn_tape_input(tape, &other, sn_tensor_1d(w->weights, SN_F32, n), false, err));
    SN_TRY(sn_masked_patch_loss(tape, out, logits, target, NULL, other,
                                o->value_loss == SN_VALUE_L2 ? SN_PATCH_L2 : SN_PATCH_SMOOTH_L1, 1.0, err));
  }
  *sum = out[0];
  return SN_OK;
}

static sn_status loss(sn_objective *self, sn_tape *tape, const void *work, uint64_t step, sn_value **sums,
                      sn_error *err) {
  const supervised *m = self->self;
  const supervised_work *w = work;
  sn_value *features, *parts[MOST_PARTS], *logits, *more;
  sums[0] = NULL;
  if (w->count == 0) return SN_OK;
  SN_TRY(sn_encoder_forward(tape, &features, m->encoder, w->input, step, m->residual, err));
  SN_TRY(pool(tape, parts, m, w, features, err));
  SN_TRY(apply_part(tape, &logits, m, w, 0, parts[0], step, err));
  for (int i = 1; i < m->n_parts; i++) {
    SN_TRY(apply_part(tape, &more, m, w, i, parts[i], step, err));
    SN_TRY(sn_add(tape, &logits, logits, more, err));
  }
  return apply_loss(tape, &sums[0], m, w, logits, err);
}

static void head_part(const supervised *m, int part, const float *x, double *y) {
  const int64_t c = m->width;
  double mean = 0, variance = 0;
  for (int64_t j = 0; j < c; j++) mean += x[j];
  mean /= (double)c;
  for (int64_t j = 0; j < c; j++) variance += (x[j] - mean) * (x[j] - mean);
  const double scale = 1 / sqrt(variance / (double)c + NORM_EPS);
  for (int64_t k = 0; k < m->options.n_outputs; k++) {
    double sum = 0;
    for (int64_t j = 0; j < c; j++)
      sum += sn_tensor_get(&m->weight[part]->value, k * c + j) *
             ((x[j] - mean) * scale * sn_tensor_get(&m->norm_weight[part]->value, j) +
              sn_tensor_get(&m->norm_bias[part]->value, j));
    y[k] += sum;
  }
}

void sn_supervised_head(const sn_objective *objective, const float *pooled, int64_t n, double *outputs) {
  const supervised *m = objective->self;
  const int64_t k = m->options.n_outputs;
  for (int64_t i = 0; i < n; i++) {
    for (int64_t j = 0; j < k; j++) outputs[i * k + j] = sn_tensor_get(&m->bias->value, j);
    for (int p = 0; p < m->n_parts; p++) head_part(m, p, pooled + (i * m->n_parts + p) * m->width, outputs + i * k);
  }
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void destroy(sn_objective *self) {
  supervised *m = self->self;
  sn_free(m->class_weight);
  sn_free(m);
}

static const sn_objective_vtable VTABLE = {.name = "supervised", .collate = collate, .free_work = free_work,
                                           .counts = counts, .loss = loss, .destroy = destroy};

static sn_status check_labels(const sn_supervised_options *o, sn_error *err) {
  const sn_supervised_labels *l = o->labels;
  if (l->n < 1) return sn_fail(err, SN_E_ARGUMENT, "supervised: no sample has a label");
  if (o->kind == SN_SUPERVISED_MULTI && l->hot == NULL)
    return sn_fail(err, SN_E_ARGUMENT, "supervised: several labels at once, and no table of them");
  for (int64_t i = 0; i < l->n; i++) {
    const sn_supervised_label *row = &l->rows[i];
    if (i > 0 && compare(&l->rows[i - 1], row->recording, row->window) >= 0)
      return sn_fail(err, SN_E_ARGUMENT, "supervised: label %lld does not come after the one before it", (long long)i);
    if (o->kind == SN_SUPERVISED_CLASS && (row->label < -1 || row->label >= o->n_outputs))
      return sn_fail(err, SN_E_ARGUMENT, "supervised: label %lld is class %d of %lld", (long long)i, (int)row->label,
                     (long long)o->n_outputs);
  }
  return SN_OK;
}

static sn_status check(const sn_objective_setup *setup, const sn_supervised_options *o, sn_error *err) {
  if (o->pool != SN_POOL_MEAN && o->pool != SN_POOL_MEAN_MAX_STD && o->pool != SN_POOL_CLS)
    return sn_fail(err, SN_E_ARGUMENT, "pool %s: fine-tuning takes mean, mean_max_std or cls", sn_pool_name(o->pool));
  if (o->pool == SN_POOL_CLS && !sn_encoder_has_class_token(setup->encoder))
    return sn_fail(err, SN_E_ARGUMENT,
                   "pool cls: this encoder has no class token (model.class_token: false); use mean");
  if (o->kind == SN_SUPERVISED_CLASS && o->n_outputs < 2)
    return sn_fail(err, SN_E_ARGUMENT, "supervised: %lld class, at least two are needed", (long long)o->n_outputs);
  if (o->n_outputs < 1 || (o->kind == SN_SUPERVISED_VALUE && o->n_outputs != 1))
    return sn_fail(err, SN_E_ARGUMENT, "supervised: %lld outputs", (long long)o->n_outputs);
  if (!(o->dropout >= 0 && o->dropout < 1) || !(o->label_smoothing >= 0 && o->label_smoothing < 1))
    return sn_fail(err, SN_E_ARGUMENT, "supervised: dropout %g and label smoothing %g must lie in [0, 1)", o->dropout,
                   o->label_smoothing);
  return check_labels(o, err);
}

static sn_status add_head(supervised *m, sn_params *params, sn_error *err) {
  static const char *const PARTS[MOST_PARTS] = {"mean", "max", "std"};
  const int64_t c[1] = {m->width}, matrix[2] = {m->options.n_outputs, m->width}, k[1] = {m->options.n_outputs};
  char name[SN_PARAM_NAME];
  for (int i = 0; i < m->n_parts; i++) {
    const char *part = m->options.pool == SN_POOL_CLS ? "cls" : PARTS[i];
    snprintf(name, sizeof name, "fc_norm.%s.weight", part);
    SN_TRY(sn_params_add(params, name, SN_ROLE_NORM, 1, c, SN_INIT_ONES, 1, &m->norm_weight[i], err));
    snprintf(name, sizeof name, "fc_norm.%s.bias", part);
    SN_TRY(sn_params_add(params, name, SN_ROLE_NORM, 1, c, SN_INIT_ZEROS, 0, &m->norm_bias[i], err));
    snprintf(name, sizeof name, "head.%s.weight", part);
    SN_TRY(sn_params_add(params, name, SN_ROLE_WEIGHT, 2, matrix, SN_INIT_TRUNC_NORMAL, HEAD_INIT, &m->weight[i], err));
  }
  return sn_params_add(params, "head.bias", SN_ROLE_BIAS, 1, k, SN_INIT_ZEROS, 0, &m->bias, err);
}

sn_status sn_supervised_create(const sn_objective_setup *setup, const sn_supervised_options *options,
                               sn_objective **out, sn_error *err) {
  supervised *m = NULL;
  sn_status status;
  SN_TRY(check(setup, options, err));
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "supervised objective", err));
  m->base = (sn_objective){.vtable = &VTABLE, .n_groups = 1, .groups = {"supervised"}, .group_weights = {1},
                           .n_counters = N_COUNTERS, .counters = {"labelled_samples", "unlabelled_samples"}, .self = m};
  m->encoder = setup->encoder;
  m->options = *options;
  m->n_parts = options->pool == SN_POOL_MEAN_MAX_STD ? MOST_PARTS : 1;
  m->width = sn_encoder_width(setup->encoder);
  m->slots = setup->pack_slots;
  m->samples = setup->pack_samples;
  m->seed = setup->seed;
  m->residual = setup->residual;
  if (options->class_weight != NULL && options->kind == SN_SUPERVISED_CLASS) {
    SN_TRY_GOTO(sn_alloc(&m->class_weight, options->n_outputs, sizeof *m->class_weight, "class weights", err), fail);
    memcpy(m->class_weight, options->class_weight, (size_t)options->n_outputs * sizeof *m->class_weight);
  }
  m->options.class_weight = NULL;
  SN_TRY_GOTO(add_head(m, setup->params, err), fail);
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}
