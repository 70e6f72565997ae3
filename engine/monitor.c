#include "engine/monitor.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "engine/monitor_values.h"

const sn_config_entry sn_monitor_config[] = {
    {"monitor.every", SN_CONFIG_INT, "100", 0, 1e9, NULL, NULL,
     "steps between observations of the encoder's features (engine/monitor.h); 0: none, and no rules"},
    {"monitor.on_collapse", SN_CONFIG_CHOICE, "warn", 0, 0, NULL, "warn|stop|off",
     "what happens when the features collapse: said, the run ended (saved), or only written to the metrics"},
    {"monitor.collapse_std", SN_CONFIG_REAL, "0.05", 0, 100, NULL, NULL,
     "std of the features over tokens below which, twice in a row, they have collapsed"},
    {"monitor.plateau_steps", SN_CONFIG_INT, "200", 1, 1e9, NULL, NULL, "steps whose mean loss is held against the lowest such mean"},
    {"monitor.plateau_gain", SN_CONFIG_REAL, "0.01", 0, 1, NULL, NULL,
     "share by which that mean has to fall, or the run is on a plateau"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

/* A pack's statistics as the ranks exchange them: doubles in this order, then mean (c), m2 (c), then pooled rows. */
enum { TOKENS, WITHIN, WITHIN_FREE, BETWEEN, BETWEEN_FREE, BETWEEN_WEIGHT, COSINES, COSINE_COUNT, N_NUMBERS };

struct sn_monitor {
  sn_monitor_setup setup;
  int64_t every, width, plateau_steps;
  double collapse_std, plateau_gain;
  enum { COLLAPSE_OFF, COLLAPSE_WARN, COLLAPSE_STOP } on_collapse;
  const sn_encoder *target;   /* the objective's target encoder; NULL: it has none */
  sn_arena *arena;
  sn_tape *tape;
  int64_t observations, primitives;
  bool observed, stops;       /* the step just seen */
  int64_t at;
  sn_monitor_values values;
};

/* Rows of one pack, special ones left out. */
typedef struct pack_rows {
  int64_t n;
  double *rows, *target;      /* (n, c); target NULL without one */
  int64_t *keys;              /* (n) place */
} pack_rows;

/* What a rank sends for each of its packs. */
typedef struct exchange {
  int64_t n_packs, all_packs, quota;  /* quota: pooled rows of a pack */
  int64_t n_numbers;                  /* doubles of a pack, pooled rows among them */
  double *numbers, *all_numbers;
  uint64_t *ids, *all_ids;            /* (packs, quota, 3) sample, subject, used */
} exchange;

/* --- set-up ------------------------------------------------------------------------------------------------------- */

sn_status sn_monitor_create(const sn_monitor_setup *setup, sn_monitor **out, sn_error *err) {
  const sn_config *c = setup->run;
  const char *wanted = sn_config_text(c, "monitor.on_collapse");
  sn_monitor *m = NULL;
  sn_status status;
  *out = NULL;
  if (sn_config_int(c, "monitor.every") == 0) return SN_OK;
  SN_TRY(sn_alloc(&m, 1, sizeof *m, "monitor", err));
  m->setup = *setup;
  m->every = sn_config_int(c, "monitor.every");
  m->width = sn_encoder_width(setup->model->encoder);
  m->collapse_std = sn_config_real(c, "monitor.collapse_std");
  m->plateau_steps = sn_config_int(c, "monitor.plateau_steps");
  m->plateau_gain = sn_config_real(c, "monitor.plateau_gain");
  m->on_collapse = strcmp(wanted, "off") == 0 ? COLLAPSE_OFF : strcmp(wanted, "stop") == 0 ? COLLAPSE_STOP : COLLAPSE_WARN;
  const sn_tape_options options = {.residual = setup->model->residual, .product = setup->product, .training = false};
  m->target = setup->model->objective->target;
  SN_TRY_GOTO(sn_arena_create(false, &m->arena, err), fail);
  SN_TRY_GOTO(sn_tape_create(setup->device, m->arena, &options, &m->tape, err), fail);
  *out = m;
  return SN_OK;
fail:
  sn_monitor_destroy(m);
  return status;
}

void sn_monitor_destroy(sn_monitor *monitor) {
  if (monitor == NULL) return;
  sn_tape_destroy(monitor->tape);
  sn_arena_destroy(monitor->arena);
  sn_free(monitor);
}

/* --- features of a pack ------------------------------------------------------------------------------------------- */

static sn_status reserve(sn_monitor *m, const sn_encoder_input *input, sn_error *err) {
  const sn_tape_options options = {.residual = m->setup.model->residual, .product = m->setup.product, .training = false};
  sn_arena *measure = NULL;
  sn_tape *dry = NULL;
  sn_value *y;
  sn_status status;
  if (sn_arena_capacity(m->arena) > 0) return SN_OK;
  SN_TRY_GOTO(sn_arena_create(true, &measure, err), done);
  SN_TRY_GOTO(sn_tape_create(m->setup.device, measure, &options, &dry, err), done);
  SN_TRY_GOTO(sn_encoder_forward(dry, &y, m->setup.model->encoder, input, 0, options.residual, err), done);
  SN_TRY_GOTO(sn_arena_reserve(m->arena, sn_arena_high_water(measure), err), done);
done:
  sn_tape_destroy(dry);
  sn_arena_destroy(measure);
  return status;
}

/* The token rows of an encoder's output. */
static sn_status encode(sn_monitor *m, const sn_encoder *encoder, const sn_encoder_input *input, const int32_t *kept,
                        int64_t n, double *rows, sn_error *err) {
  sn_value *y;
  sn_tape_reset(m->tape);
  SN_TRY(sn_encoder_forward(m->tape, &y, encoder, input, 0, m->setup.model->residual, err));
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < m->width; k++) rows[i * m->width + k] = sn_tensor_get(&y->tensor, kept[i] * m->width + k);
  sn_tape_reset(m->tape);
  return SN_OK;
}

/* Where a row is from: channel (or which series, where channels have no number) and position; of latent sources, which row of
 * its sample it is. */
static int64_t place_of(const sn_monitor *m, const sn_token_batch *batch, int64_t token, int64_t row_in_sample) {
  if (sn_encoder_n_latents(m->setup.model->encoder) > 0) return row_in_sample;
  const int64_t channel = batch->channels[token] >= 0 ? batch->channels[token] : -1 - (int64_t)batch->series[token];
  return channel * ((int64_t)1 << 32) + batch->positions[token];
}

/* firsts (n_samples + 1) [out]: rows of each sample among those kept. */
static sn_status encode_pack(sn_monitor *m, const sn_token_batch *batch, pack_rows *out, int64_t *firsts, sn_error *err) {
  const sn_model_shape *shape = &m->setup.model->shape;
  sn_encoder_input *input = NULL;
  int32_t *kept = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_encoder_input_create_all(m->setup.model->encoder, batch, shape->pack_slots, shape->pack_samples,
                                          m->setup.model->residual, &input, err), done);
  SN_TRY_GOTO(sn_alloc(&kept, input->n_rows, sizeof *kept, "rows of a pack", err), done);
  SN_TRY_GOTO(sn_alloc(&out->keys, input->n_rows, sizeof *out->keys, "rows of a pack", err), done);
  for (int64_t s = 0; s < batch->n_samples; s++) {
    firsts[s] = out->n;
    for (int64_t r = input->offsets[s]; r < input->offsets[s + 1]; r++) {
      const int64_t token = input->row_token != NULL ? input->row_token[r] : r;
      if (token < 0) continue;
      kept[out->n] = (int32_t)r;
      out->keys[out->n++] = place_of(m, batch, token, r - input->offsets[s]);
    }
  }
  firsts[batch->n_samples] = out->n;
  SN_TRY_GOTO(sn_alloc(&out->rows, out->n * m->width, sizeof *out->rows, "rows of a pack", err), done);
  SN_TRY_GOTO(reserve(m, input, err), done);
  SN_TRY_GOTO(encode(m, m->setup.model->encoder, input, kept, out->n, out->rows, err), done);
  if (m->target != NULL) {
    SN_TRY_GOTO(sn_alloc(&out->target, out->n * m->width, sizeof *out->target, "rows of a pack", err), done);
    status = encode(m, m->target, input, kept, out->n, out->target, err);
  }
done:
  sn_free(kept);
  sn_encoder_input_destroy(input);
  return status;
}

static double cosine(const double *a, const double *b, int64_t c) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t k = 0; k < c; k++) {
    ab += a[k] * b[k];
    aa += a[k] * a[k];
    bb += b[k] * b[k];
  }
  return ab / (fmax(sqrt(aa), 1e-8) * fmax(sqrt(bb), 1e-8));
}

/* The pooled rows of the first samples, and who they are. */
static void pool(const sn_monitor *m, const sn_token_batch *batch, const pack_rows *p, const int64_t *firsts, int64_t quota,
                 double *rows, uint64_t *ids) {
  for (int64_t s = 0; s < batch->n_samples && s < quota; s++) {
    double *row = rows + s * m->width;
    const double n = (double)(firsts[s + 1] - firsts[s]);
    for (int64_t i = firsts[s]; i < firsts[s + 1]; i++)
      for (int64_t k = 0; k < m->width; k++) row[k] += p->rows[i * m->width + k];
    for (int64_t k = 0; k < m->width && n > 0; k++) row[k] /= n;
    ids[3 * s] = batch->sample_ids[s];
    ids[3 * s + 1] = batch->subject_ids[s];
    ids[3 * s + 2] = n > 0;
  }
}

/* numbers, ids of this pack, which come zeroed. */
static sn_status observe_pack(sn_monitor *m, const sn_token_batch *batch, int64_t quota, double *numbers, uint64_t *ids,
                              sn_error *err) {
  pack_rows p = {0};
  sn_token_anova anova;
  int64_t *firsts = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&firsts, batch->n_samples + 1, sizeof *firsts, "samples of a pack", err), done);
  SN_TRY_GOTO(encode_pack(m, batch, &p, firsts, err), done);
  SN_TRY_GOTO(sn_monitor_anova(&anova, p.rows, p.keys, p.n, m->width, err), done);
  const double *watched = p.target != NULL ? p.target : p.rows;
  sn_monitor_moments(numbers + N_NUMBERS, numbers + N_NUMBERS + m->width, watched, p.n, m->width);
  numbers[TOKENS] = (double)p.n;
  numbers[WITHIN] = anova.within;
  numbers[WITHIN_FREE] = anova.within_free;
  numbers[BETWEEN] = anova.between;
  numbers[BETWEEN_FREE] = anova.between_free;
  numbers[BETWEEN_WEIGHT] = anova.between_weight;
  for (int64_t i = 0; i < p.n && p.target != NULL; i++)
    numbers[COSINES] += cosine(p.rows + i * m->width, p.target + i * m->width, m->width);
  numbers[COSINE_COUNT] = p.target != NULL ? (double)p.n : 0;
  pool(m, batch, &p, firsts, quota, numbers + N_NUMBERS + 2 * m->width, ids);
done:
  sn_free(firsts);
  sn_free(p.rows);
  sn_free(p.target);
  sn_free(p.keys);
  return status;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static sn_status allocate(const sn_monitor *m, int64_t n_packs, exchange *x, sn_error *err) {
  const int64_t samples = m->setup.model->shape.pack_samples;
  x->n_packs = n_packs;
  x->all_packs = n_packs * m->setup.comm->n_ranks;
  x->quota = x->all_packs > 0 ? (SN_MONITOR_ROWS + x->all_packs - 1) / x->all_packs : 0;
  if (x->quota > samples) x->quota = samples;
  x->n_numbers = N_NUMBERS + (2 + x->quota) * m->width;
  SN_TRY(sn_alloc(&x->numbers, x->n_packs * x->n_numbers, sizeof *x->numbers, "monitored values", err));
  SN_TRY(sn_alloc(&x->all_numbers, x->all_packs * x->n_numbers, sizeof *x->numbers, "monitored values", err));
  SN_TRY(sn_alloc(&x->ids, x->n_packs * x->quota * 3, sizeof *x->ids, "monitored values", err));
  return sn_alloc(&x->all_ids, x->all_packs * x->quota * 3, sizeof *x->ids, "monitored values", err);
}

static void free_exchange(exchange *x) {
  sn_free(x->numbers);
  sn_free(x->all_numbers);
  sn_free(x->ids);
  sn_free(x->all_ids);
}

/* Pack number g of the step: rank r of R has packs r, r + R, ... */
static int64_t gathered(const sn_monitor *m, const exchange *x, int64_t g) {
  return g % m->setup.comm->n_ranks * x->n_packs + g / m->setup.comm->n_ranks;
}

static void sum_tokens(sn_monitor *m, const exchange *x, double *mean, double *m2) {
  sn_token_anova a = {0};
  double n = 0, cosines = 0, count = 0;
  for (int64_t g = 0; g < x->all_packs; g++) {
    const double *v = x->all_numbers + gathered(m, x, g) * x->n_numbers;
    sn_monitor_merge(&n, mean, m2, v[TOKENS], v + N_NUMBERS, v + N_NUMBERS + m->width, m->width);
    a.within += v[WITHIN];
    a.within_free += v[WITHIN_FREE];
    a.between += v[BETWEEN];
    a.between_free += v[BETWEEN_FREE];
    a.between_weight += v[BETWEEN_WEIGHT];
    cosines += v[COSINES];
    count += v[COSINE_COUNT];
  }
  m->values.std = sn_monitor_std(n, m2, m->width);
  m->values.input_share = sn_monitor_input_share(&a);
  m->values.agreement = count > 0 ? cosines / count : NAN;
}

static sn_status look_at_rows(sn_monitor *m, const exchange *x, double *rows, double *unit, uint64_t *ids, sn_error *err) {
  uint64_t *samples = ids, *subjects = ids + SN_MONITOR_ROWS;
  int64_t n = 0;
  for (int64_t g = 0; g < x->all_packs; g++) {
    const int64_t at = gathered(m, x, g);
    const double *pooled = x->all_numbers + at * x->n_numbers + N_NUMBERS + 2 * m->width;
    for (int64_t s = 0; s < x->quota && n < SN_MONITOR_ROWS; s++) {
      const uint64_t *id = x->all_ids + (at * x->quota + s) * 3;
      if (id[2] == 0) continue;
      memcpy(rows + n * m->width, pooled + s * m->width, (size_t)m->width * sizeof *rows);
      samples[n] = id[0];
      subjects[n++] = id[1];
    }
  }
  SN_TRY(sn_monitor_rank(&m->values.rank, rows, n, m->width, err));
  sn_monitor_normalise(unit, rows, n, m->width);
  m->values.uniformity = sn_monitor_uniformity(unit, n, m->width);
  SN_TRY(sn_monitor_entropy(&m->values.entropy, unit, n, m->width, err));
  sn_monitor_subjects(&m->values.subject_knn, &m->values.subject_chance, unit, samples, subjects, n, m->width);
  return SN_OK;
}

static sn_status observe(sn_monitor *m, const sn_step *step, sn_error *err) {
  const int64_t created = m->setup.device->primitives_created;
  exchange x = {0};
  double *room = NULL, *rows = NULL;
  uint64_t *ids = NULL;
  sn_status status;
  SN_TRY_GOTO(allocate(m, step->n_packs, &x, err), done);
  for (int64_t i = 0; i < step->n_packs; i++)
    if (step->packs[i].batch != NULL && step->packs[i].batch->n_samples > 0)
      SN_TRY_GOTO(observe_pack(m, step->packs[i].batch, x.quota, x.numbers + i * x.n_numbers, x.ids + i * x.quota * 3, err),
                  done);
  SN_TRY_GOTO(sn_comm_all_gather(m->setup.comm, x.numbers, x.all_numbers,
                                 x.n_packs * x.n_numbers * (int64_t)sizeof *x.numbers, err), done);
  SN_TRY_GOTO(sn_comm_all_gather(m->setup.comm, x.ids, x.all_ids, x.n_packs * x.quota * 3 * (int64_t)sizeof *x.ids, err),
              done);
  SN_TRY_GOTO(sn_alloc(&room, 2 * m->width, sizeof *room, "monitored values", err), done);
  SN_TRY_GOTO(sn_alloc(&rows, 2 * SN_MONITOR_ROWS * m->width, sizeof *rows, "pooled rows", err), done);
  SN_TRY_GOTO(sn_alloc(&ids, 2 * SN_MONITOR_ROWS, sizeof *ids, "pooled rows", err), done);
  sum_tokens(m, &x, room, room + m->width);
  SN_TRY_GOTO(look_at_rows(m, &x, rows, rows + SN_MONITOR_ROWS * m->width, ids, err), done);
  if (m->observations++ == 0) m->primitives = m->setup.device->primitives_created - created;
done:
  free_exchange(&x);
  sn_free(room);
  sn_free(rows);
  sn_free(ids);
  return status;
}

/* --- rules -------------------------------------------------------------------------------------------------------- */

/* Every rank finds the same, the first one says it. */
static const sn_log *rules_log(const sn_monitor *m) { return m->setup.comm->rank == 0 ? &m->setup.log : NULL; }

static void judge_collapse(sn_monitor *m, sn_monitor_state *s) {
  const sn_monitor_values *v = &m->values;
  const bool low_std = v->std < m->collapse_std, low_input = v->input_share < SN_MONITOR_LEAST_INPUT;
  const sn_log *log = m->on_collapse == COLLAPSE_OFF ? NULL : rules_log(m);
  s->low_in_row = low_std || low_input ? s->low_in_row + 1 : 0;
  const bool collapsed = s->low_in_row >= 2;
  if (collapsed && !s->collapsed) {
    s->collapsed_at = m->at;
    sn_log_write(log, SN_LOG_WARNING, "step %lld: the features have collapsed%s: %s is %.3g, at two observations in a row "
                 "below %g: try a lower train.lr, a target that moves more slowly (jepa.momentum), or another term beside it "
                 "(objective.name: ...+vicreg)", (long long)m->at, low_std ? "" : " to their places",
                 low_std ? "monitor_std" : "monitor_input_share", low_std ? v->std : v->input_share,
                 low_std ? m->collapse_std : SN_MONITOR_LEAST_INPUT);
  } else if (!collapsed && s->collapsed) {
    sn_log_write(log, SN_LOG_INFO, "step %lld: the features are collapsed no longer (monitor_std %.3g)", (long long)m->at,
                 v->std);
  }
  s->collapsed = collapsed;
  m->stops = collapsed && m->on_collapse == COLLAPSE_STOP;
}

static void judge_plateau(sn_monitor *m, double loss, sn_monitor_state *s) {
  if (!isfinite(loss)) return;
  s->block_sum += loss;
  s->block_steps++;
  if (s->block_steps < m->plateau_steps) return;
  const double mean = s->block_sum / (double)s->block_steps;
  s->block_sum = 0;
  s->block_steps = 0;
  if (s->blocks++ == 0 || mean < s->best_mean - m->plateau_gain * fabs(s->best_mean)) {
    if (s->plateau)
      sn_log_write(rules_log(m), SN_LOG_INFO, "step %lld: the plateau is left, mean loss %.6g", (long long)m->at, mean);
    s->plateau = false;
    s->best_mean = mean;
    s->best_at = m->at;
  } else if (!s->plateau) {
    s->plateau = true;
    sn_log_write(rules_log(m), SN_LOG_WARNING, "step %lld: on a plateau since step %lld: the loss has not fallen by more than %g %% "
                 "(mean of %lld steps %.6g, best %.6g)", (long long)m->at, (long long)s->best_at, 100 * m->plateau_gain,
                 (long long)m->plateau_steps, mean, s->best_mean);
  }
}

sn_status sn_monitor_step(sn_monitor *monitor, const sn_step *step, int64_t done, double loss, sn_monitor_state *state,
                          sn_error *err) {
  sn_monitor *m = monitor;
  if (m == NULL) return SN_OK;
  m->at = done;
  m->observed = done % m->every == 0;
  m->stops = false;
  m->primitives = 0;
  state->steps++;
  judge_plateau(m, loss, state);
  if (!m->observed) return SN_OK;
  SN_TRY(observe(m, step, err));
  judge_collapse(m, state);
  return SN_OK;
}

void sn_monitor_write(const sn_monitor *monitor, const sn_monitor_state *state, sn_metrics *metrics) {
  if (monitor == NULL || !monitor->observed) return;
  const sn_monitor_values *v = &monitor->values;
  sn_metrics_value(metrics, "monitor_std", v->std);
  sn_metrics_value(metrics, "monitor_rank", v->rank);
  sn_metrics_value(metrics, "monitor_uniformity", v->uniformity);
  sn_metrics_value(metrics, "monitor_entropy", v->entropy);
  sn_metrics_value(metrics, "monitor_agreement", v->agreement);
  sn_metrics_value(metrics, "monitor_input_share", v->input_share);
  sn_metrics_value(metrics, "monitor_subject_knn", v->subject_knn);
  sn_metrics_value(metrics, "monitor_subject_chance", v->subject_chance);
  sn_metrics_count(metrics, "collapsed", state->collapsed);
  sn_metrics_count(metrics, "plateau", state->plateau);
}

bool sn_monitor_stops(const sn_monitor *monitor) { return monitor != NULL && monitor->stops; }

sn_status sn_monitor_stopped(const sn_monitor *monitor, sn_error *err) {
  if (!sn_monitor_stops(monitor)) return SN_OK;
  return sn_fail(err, SN_E_STATE, "step %lld: the features have collapsed (monitor_std %.3g, monitor_input_share %.3g), the run is saved "
                 "and ended (monitor.on_collapse: stop): a lower train.lr, a higher jepa.momentum or another term may help",
                 (long long)monitor->at, monitor->values.std, monitor->values.input_share);
}

int64_t sn_monitor_primitives(const sn_monitor *monitor) { return monitor != NULL ? monitor->primitives : 0; }

const sn_monitor_values *sn_monitor_last(const sn_monitor *monitor) {
  return monitor != NULL && monitor->observations > 0 ? &monitor->values : NULL;
}
