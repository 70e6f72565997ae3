#include "objectives/mix.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "kernels/cast/cast.h"

typedef struct mix {
  sn_objective base;
  sn_encoder *encoder;
  sn_params *params;              /* of the model */
  sn_params *target_params;       /* of the target encoder: its values are the moving averages of the model's */
  sn_encoder *target;             /* = base.target */
  int n_terms;
  sn_term *terms[SN_MOST_TERMS];
  const sn_objective_kind *kinds[SN_MOST_TERMS];
  sn_weight_schedule weights[SN_MOST_TERMS];
  int first_group[SN_MOST_TERMS], first_counter[SN_MOST_TERMS];
  char group_names[SN_MAX_GROUPS][SN_METRIC_NAME], counter_names[SN_MAX_COUNTERS][SN_METRIC_NAME];
  sn_pass_plan plan;
  const sn_config *config;
  int64_t steps;
  int64_t n_labels;
  const double *labels;
} mix;

typedef struct mix_work {
  sn_pass *pass;
  sn_row_info *infos;             /* (pack_samples); NULL: nothing is coupled */
  void *terms[SN_MOST_TERMS];
  void (*free_term[SN_MOST_TERMS])(void *work);
} mix_work;

/* --- weights ------------------------------------------------------------------------------------------------------ */

sn_status sn_weight_parse(const char *text, sn_weight_schedule *out, sn_error *err) {
  char copy[512], *rest = copy;
  double number;
  *out = (sn_weight_schedule){0};
  if (strlen(text) >= sizeof copy) return sn_fail(err, SN_E_ARGUMENT, "objective.weights: '%.40s...' is too long", text);
  strcpy(copy, text);
  if (sn_parse_f64(text, false, &number)) {
    out->values[out->n++] = number;
    rest = NULL;
  }
  for (char *point; rest != NULL && (point = strtok_r(rest, " \t", &rest)) != NULL;) {
    char *colon = strchr(point, ':');
    if (colon != NULL) *colon = '\0';
    if (out->n == SN_WEIGHT_POINTS || colon == NULL || !sn_parse_f64(point, false, &out->steps[out->n]) ||
        !sn_parse_f64(colon + 1, false, &out->values[out->n]) || (out->n > 0 && out->steps[out->n] <= out->steps[out->n - 1]))
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.weights",
                        "objective.weights: '%s': expected a number, or up to %d ascending steps with their values, such as "
                        "'0:0 1000:0.5'", text, SN_WEIGHT_POINTS);
    out->n++;
  }
  for (int i = 0; i < out->n; i++)
    if (!(out->values[i] >= 0) || !isfinite(out->values[i])) out->n = 0;
  if (out->n == 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.weights",
                      "objective.weights: '%s': expected weights of 0 or more", text);
  return SN_OK;
}

double sn_weight_at(const sn_weight_schedule *s, double step) {
  if (step <= s->steps[0]) return s->values[0];
  for (int i = 1; i < s->n; i++) {
    if (step > s->steps[i]) continue;
    const double share = (step - s->steps[i - 1]) / (s->steps[i] - s->steps[i - 1]);
    return s->values[i - 1] + share * (s->values[i] - s->values[i - 1]);
  }
  return s->values[s->n - 1];
}

static bool is_zero(const sn_weight_schedule *s) {
  for (int i = 0; i < s->n; i++)
    if (s->values[i] != 0) return false;
  return true;
}

/* --- terms -------------------------------------------------------------------------------------------------------- */

enum { MOST_KINDS = 64 };

static sn_status find_kind(const char *name, const sn_objective_kind **out, sn_error *err) {
  const char *names[MOST_KINDS];
  for (int64_t i = 0; i < sn_n_objective_kinds; i++) {
    names[i] = sn_objective_kinds[i]->name;
    if (strcmp(name, names[i]) != 0) continue;
    *out = sn_objective_kinds[i];
    return SN_OK;
  }
  const char *near = sn_nearest_name(name, names, sn_n_objective_kinds);
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.name", "objective.name '%s' is not known%s%s%s", name,
                    near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

sn_status sn_mix_terms(const sn_config *config, const sn_objective_kind **kinds, sn_weight_schedule *weights, int *n,
                       sn_error *err) {
  const char *text = sn_config_text(config, "objective.name");
  const int64_t n_weights = sn_config_list_length(config, "objective.weights");
  char copy[256], *rest = copy;
  int n_named = 0;
  *n = 0;
  if (strlen(text) >= sizeof copy) return sn_fail(err, SN_E_ARGUMENT, "objective.name: '%.40s...' is too long", text);
  strcpy(copy, text);
  for (char *name; (name = strsep(&rest, "+")) != NULL; n_named++) {
    const sn_objective_kind *kind = NULL;
    sn_weight_schedule weight = {.n = 1, .values = {1}};
    if (*name == '\0')
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.name", "objective.name '%s': a name is missing beside a +", text);
    SN_TRY(find_kind(name, &kind, err));
    for (int i = 0; i < *n; i++)
      if (kinds[i]->config == kind->config) /* kinds that share their settings share their weights */
        return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.name", "objective.name '%s': %s stands there twice%s%s", text, name,
                          kinds[i] == kind ? "" : ", under its other name ", kinds[i] == kind ? "" : kinds[i]->name);
    if (n_named < n_weights) SN_TRY(sn_weight_parse(sn_config_list_text(config, "objective.weights", n_named), &weight, err));
    if (is_zero(&weight)) continue;
    if (*n == SN_MOST_TERMS)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.name", "objective.name '%s': at most %d terms", text, SN_MOST_TERMS);
    kinds[*n] = kind;
    weights[(*n)++] = weight;
  }
  if (n_weights > 0 && n_weights != n_named)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.weights", "objective.weights: %lld weights for the %d terms of '%s'",
                      (long long)n_weights, n_named, text);
  if (*n == 0)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "objective.weights", "objective.weights: every weight of '%s' is 0: nothing "
                      "would be learned", text);
  return SN_OK;
}

/* --- collate ------------------------------------------------------------------------------------------------------ */

static void free_work(void *work) {
  mix_work *w = work;
  if (w == NULL) return;
  for (int i = 0; i < SN_MOST_TERMS; i++)
    if (w->terms[i] != NULL) w->free_term[i](w->terms[i]);
  sn_pass_destroy(w->pass);
  sn_free(w->infos);
  sn_free(w);
}

static sn_status fill_infos(const mix *m, const sn_token_batch *batch, mix_work *w, sn_error *err) {
  if (m->base.n_coupled_rows == 0) return SN_OK;
  SN_TRY(sn_alloc(&w->infos, m->base.n_coupled_rows, sizeof *w->infos, "row infos", err));
  for (int64_t s = 0; s < m->base.n_coupled_rows; s++) {
    sn_row_info *info = &w->infos[s];
    info->label = NAN;
    info->recording = -1;
    if (s >= batch->n_samples) continue;
    info->sample_id = batch->sample_ids[s];
    info->subject_id = batch->subject_ids[s];
    info->recording = batch->recordings[s];
    info->source = batch->sources[s];
    info->window = batch->windows[s];
    info->view = batch->views[s];
    info->start_s = batch->starts_s[s];
    info->used = w->pass->usable[s];
    if (info->recording >= 0 && info->recording < m->n_labels) info->label = m->labels[info->recording];
  }
  return SN_OK;
}

static sn_status collate(const sn_objective *self, const sn_token_batch *batch, const uint64_t *epochs, void **work,
                         sn_error *err) {
  const mix *m = self->self;
  mix_work *w = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&w, 1, sizeof *w, "work of a pack", err));
  SN_TRY_GOTO(sn_pass_create(&m->plan, batch, epochs, &w->pass, err), fail);
  SN_TRY_GOTO(fill_infos(m, batch, w, err), fail);
  for (int i = 0; i < m->n_terms; i++) {
    const sn_term_vtable *v = m->terms[i]->vtable;
    w->free_term[i] = v->free_work;
    if (v->collate != NULL) SN_TRY_GOTO(v->collate(m->terms[i], batch, w->pass, epochs, &w->terms[i], err), fail);
  }
  *work = w;
  return SN_OK;
fail:
  free_work(w);
  return status;
}

static void counts(const sn_objective *self, const void *work, double *group_counts, int64_t *counters) {
  const mix *m = self->self;
  const mix_work *w = work;
  counters[m->base.n_counters - 1] += w->pass->n_unmaskable;
  for (int i = 0; i < m->n_terms; i++)
    if (m->terms[i]->vtable->counts != NULL)
      m->terms[i]->vtable->counts(m->terms[i], w->pass, w->terms[i], group_counts + m->first_group[i],
                                  counters + m->first_counter[i]);
}

static void row_infos(const sn_objective *self, const void *work, sn_row_info *infos) {
  const mix *m = self->self;
  memcpy(infos, ((const mix_work *)work)->infos, (size_t)m->base.n_coupled_rows * sizeof *infos);
}

/* --- forward ------------------------------------------------------------------------------------------------------ */

static sn_status forward(sn_objective *self, sn_tape *tape, const void *work, uint64_t step, sn_value **sums,
                         sn_value **rows, sn_error *err) {
  mix *m = self->self;
  const mix_work *w = work;
  sn_forward f = {.pass = w->pass, .step = step};
  for (int g = 0; sums != NULL && g < m->base.n_groups; g++) sums[g] = NULL;
  if (rows != NULL) *rows = NULL;
  if (w->pass->n_shown == 0) return SN_OK;
  SN_TRY(sn_encoder_forward(tape, &f.features, m->encoder, w->pass->input, step, sn_tape_product(tape), err));
  if (m->target != NULL && sums != NULL)
    SN_TRY(sn_encoder_forward(tape, &f.target, m->target, w->pass->full, step, sn_tape_residual(tape), err));
  for (int i = 0; sums != NULL && i < m->n_terms; i++)
    if (m->terms[i]->vtable->loss != NULL)
      SN_TRY(m->terms[i]->vtable->loss(m->terms[i], tape, w->terms[i], &f, sums + m->first_group[i], err));
  if (rows == NULL || m->base.n_coupled_rows == 0) return SN_OK;
  SN_TRY(sn_pass_pool(tape, rows, w->pass, m->base.n_coupled_rows, f.features, err));
  return sn_cast(tape, rows, *rows, sn_tape_residual(tape), err);
}

static sn_status loss(sn_objective *self, sn_tape *tape, const void *work, uint64_t step, sn_value **sums, sn_error *err) {
  return forward(self, tape, work, step, sums, NULL, err);
}

static sn_status couple(sn_objective *self, sn_tape *tape, sn_value *rows, const sn_row_info *infos, int64_t n,
                        uint64_t step, sn_value **sums, double *group_counts, int64_t *counters, sn_error *err) {
  mix *m = self->self;
  for (int g = 0; g < m->base.n_groups; g++) sums[g] = NULL;
  for (int i = 0; i < m->n_terms; i++)
    if (m->terms[i]->vtable->couple != NULL)
      SN_TRY(m->terms[i]->vtable->couple(m->terms[i], tape, rows, infos, n, step, sums + m->first_group[i],
                                         group_counts + m->first_group[i], counters + m->first_counter[i], err));
  return SN_OK;
}

static double in_phase(const sn_objective *self, uint64_t step) { return (double)step - (double)self->first_step; }

static double weight(const sn_objective *self, int group, uint64_t step) {
  const mix *m = self->self;
  return sn_weight_at(&m->weights[m->base.group_terms[group]], in_phase(self, step)) * m->base.group_weights[group];
}

static double momentum(const sn_objective *self, uint64_t step) {
  const mix *m = self->self;
  for (int i = 0; i < m->n_terms; i++)
    if (m->kinds[i]->momentum != NULL)
      return m->kinds[i]->momentum(m->config, (uint64_t)in_phase(self, step), m->steps);
  return sn_config_real(m->config, "train.ema");
}

/* --- target encoder ----------------------------------------------------------------------------------------------- */

static void target_changed(mix *m) {
  for (int64_t i = 0; m->target_params != NULL && i < sn_params_count(m->target_params); i++)
    sn_params_at(m->target_params, i)->version++;
}

static sn_status begin(sn_objective *self, sn_error *err) {
  mix *m = self->self;
  if (m->target_params == NULL) return SN_OK;
  SN_TRY(sn_params_share_average(m->target_params, m->params, err));
  target_changed(m);
  return SN_OK;
}

static sn_status after_step(sn_objective *self, uint64_t step, sn_error *err) {
  mix *m = self->self;
  target_changed(m);
  for (int i = 0; i < m->n_terms; i++)
    if (m->terms[i]->vtable->after_step != NULL) SN_TRY(m->terms[i]->vtable->after_step(m->terms[i], step, err));
  return SN_OK;
}

/* Frozen parts have no dropout (encoders/encoder.h): the target is the same whatever the student drops. */
static sn_status add_target(mix *m, const sn_objective_setup *setup, sn_error *err) {
  SN_TRY(sn_params_create(setup->residual, &m->target_params, err));
  SN_TRY(sn_encoder_create(m->target_params, setup->config, sn_encoder_data_of(setup->encoder), &m->target, err));
  for (int64_t i = 0; i < sn_params_count(m->target_params); i++) sn_params_at(m->target_params, i)->frozen = true;
  m->base.target = m->target;
  return SN_OK;
}

/* --- set-up ------------------------------------------------------------------------------------------------------- */

static void destroy(sn_objective *self) {
  mix *m = self->self;
  for (int i = 0; i < m->n_terms; i++)
    if (m->terms[i] != NULL) m->terms[i]->vtable->destroy(m->terms[i]);
  sn_encoder_destroy(m->target);
  sn_params_destroy(m->target_params);
  sn_free(m);
}

static const sn_objective_vtable VTABLE = {
    .name = "mix", .collate = collate, .free_work = free_work, .counts = counts, .loss = loss, .forward = forward,
    .row_infos = row_infos, .couple = couple, .weight = weight, .momentum = momentum, .begin = begin,
    .after_step = after_step, .destroy = destroy};

/* TERM, GROUP -> the name in metrics. */
static void name_of(char *out, const char *term, const char *own, bool alone) {
  if (alone || strcmp(term, own) == 0) snprintf(out, SN_METRIC_NAME, "%s", own);
  else snprintf(out, SN_METRIC_NAME, "%s_%s", term, own);
}

static sn_status take_term(mix *m, int i, sn_error *err) {
  const sn_term *t = m->terms[i];
  const char *name = m->kinds[i]->name;
  sn_objective *b = &m->base;
  if (b->n_groups + t->n_groups > SN_MAX_GROUPS || b->n_counters + t->n_counters >= SN_MAX_COUNTERS ||
      b->n_scales + t->n_scales > SN_MOST_TARGETS)
    return sn_fail(err, SN_E_UNSUPPORTED, "objective: too many terms together");
  m->first_group[i] = b->n_groups;
  m->first_counter[i] = b->n_counters;
  b->terms[i] = name;
  for (int g = 0; g < t->n_groups; g++, b->n_groups++) {
    name_of(m->group_names[b->n_groups], name, t->groups[g], m->n_terms == 1);
    b->groups[b->n_groups] = m->group_names[b->n_groups];
    b->group_weights[b->n_groups] = t->group_weights[g];
    b->group_terms[b->n_groups] = i;
    b->coupled[b->n_groups] = t->vtable->couple != NULL;
  }
  for (int k = 0; k < t->n_counters; k++, b->n_counters++) {
    name_of(m->counter_names[b->n_counters], name, t->counters[k], m->n_terms == 1);
    b->counters[b->n_counters] = m->counter_names[b->n_counters];
  }
  for (int k = 0; k < t->n_scales; k++) b->scales[b->n_scales++] = t->scales[k];
  if (t->vtable->couple == NULL) return SN_OK;
  b->n_coupled_rows = m->plan.pack_samples;
  b->coupled_width = sn_encoder_width(m->encoder);
  return SN_OK;
}

/* What the terms together ask of the pass. */
static sn_status plan_pass(mix *m, const sn_objective_setup *setup, bool *needs_target, sn_error *err) {
  bool asked = false;
  m->plan = (sn_pass_plan){.encoder = setup->encoder, .seed = setup->seed, .pack_slots = setup->pack_slots,
                           .pack_samples = setup->pack_samples, .max_tokens = setup->max_tokens,
                           .residual = setup->residual};
  for (int i = 0; i < m->n_terms; i++) {
    const sn_term_asks a = m->kinds[i]->asks(setup->config);
    asked = asked || a.asked_tokens;
    m->plan.pooled = m->plan.pooled || a.pooled;
    *needs_target = *needs_target || a.target;
  }
  m->plan.full = *needs_target;
  SN_TRY(m->kinds[0]->draws(setup->config, &m->plan.draws, err));
  if (asked && m->plan.draws.kind == &sn_blocks_none)
    return sn_fail(err, SN_E_ARGUMENT, "objective.name: %s comes first and hides no token, but another term has hidden ones to "
                   "predict: name that one first, or set view.mask_ratio", m->kinds[0]->name);
  sn_pass_fix_shape(&m->plan);
  return SN_OK;
}

static sn_status check_average(const mix *m, const sn_objective_setup *setup, bool needs_target, sn_error *err) {
  if (!needs_target || !sn_config_is_set(setup->config, "train.ema") || sn_config_real(setup->config, "train.ema") == 0)
    return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "train.ema", "train.ema: the moving average is the target of %s, and follows its "
                    "own schedule; leave train.ema out", m->kinds[0]->name);
}

sn_status sn_mix_create(const sn_objective_setup *setup, sn_objective **out, sn_error *err) {
  mix *m = NULL;
  bool needs_target = false;
  sn_status status;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "objective", err));
  m->base = (sn_objective){.vtable = &VTABLE, .self = m};
  m->encoder = setup->encoder;
  m->params = setup->params;
  m->config = setup->config;
  m->steps = sn_config_int(setup->config, "train.steps");
  m->n_labels = setup->n_labels;
  m->labels = setup->labels;
  SN_TRY_GOTO(sn_mix_terms(setup->config, m->kinds, m->weights, &m->n_terms, err), fail);
  m->base.n_terms = m->n_terms;
  SN_TRY_GOTO(plan_pass(m, setup, &needs_target, err), fail);
  SN_TRY_GOTO(check_average(m, setup, needs_target, err), fail);
  if (needs_target) SN_TRY_GOTO(add_target(m, setup, err), fail);
  const sn_term_setup term = {.objective = setup, .plan = &m->plan};
  for (int i = 0; i < m->n_terms; i++) {
    SN_TRY_GOTO(m->kinds[i]->create(&term, &m->terms[i], err), fail);
    SN_TRY_GOTO(take_term(m, i, err), fail);
  }
  m->base.counters[m->base.n_counters++] = "unmaskable_samples"; /* of the pass itself */
  *out = &m->base;
  return SN_OK;
fail:
  destroy(&m->base);
  return status;
}
