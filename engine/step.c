#include "engine/step.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/dot_const/dot_const.h"

/* A tape with its own memory. */
typedef struct stage {
  sn_arena *arena;
  sn_tape *tape;
  bool reserved;
} stage;

struct sn_step_engine {
  sn_device *device;
  sn_params *params;
  sn_objective *objective;
  sn_comm *comm;
  sn_tape_options options;
  stage packs, coupled;
  /* The step's pooled rows, in the order of packs over all ranks. */
  int64_t n_rows;         /* of the whole step */
  void *rows, *row_grads; /* (n_rows, coupled_width) residual type */
  sn_row_info *infos;     /* (n_rows) */
  void *own;              /* one pack of this rank, while it is sent; NULL with one rank */
};

static sn_status create_stage(sn_step_engine *e, stage *s, sn_error *err) {
  SN_TRY(sn_arena_create(false, &s->arena, err));
  return sn_tape_create(e->device, s->arena, &e->options, &s->tape, err);
}

sn_status sn_step_engine_create(sn_device *device, sn_params *params, sn_objective *objective, sn_dtype residual,
                                sn_dtype product, sn_comm *comm, sn_step_engine **out, sn_error *err) {
  sn_step_engine *e = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&e, 1, sizeof *e, "step engine", err));
  e->device = device;
  e->params = params;
  e->objective = objective;
  e->comm = comm;
  e->options = (sn_tape_options){.residual = residual, .product = product, .training = true};
  SN_TRY_GOTO(create_stage(e, &e->packs, err), fail);
  e->options.product = residual; /* projectors and losses of the coupled stage are small */
  SN_TRY_GOTO(create_stage(e, &e->coupled, err), fail);
  e->options.product = product;
  *out = e;
  return SN_OK;
fail:
  sn_step_engine_destroy(e);
  return status;
}

static void destroy_stage(stage *s) {
  sn_tape_destroy(s->tape);
  sn_arena_destroy(s->arena);
}

void sn_step_engine_destroy(sn_step_engine *engine) {
  if (engine == NULL) return;
  destroy_stage(&engine->packs);
  destroy_stage(&engine->coupled);
  sn_free(engine->rows);
  sn_free(engine->row_grads);
  sn_free(engine->infos);
  sn_free(engine->own);
  sn_free(engine);
}

int64_t sn_step_engine_arena_bytes(const sn_step_engine *engine) {
  return sn_arena_high_water(engine->packs.arena) + sn_arena_high_water(engine->coupled.arena);
}

/* What a backward begins with. */
typedef struct seeds {
  int n;
  sn_value *values[SN_MAX_GROUPS + 1];
  double weights[SN_MAX_GROUPS + 1];
} seeds;

/* What one step asks of its passes. */
typedef struct plan {
  uint64_t step;
  int term;                  /* -1: all */
  const double *counts;      /* global */
  double *sums;              /* of this rank [acc] */
} plan;

/* Adds the groups that are followed back; a group of weight 0 is not, but its sum is known. */
static void add_seeds(const sn_step_engine *e, sn_value *const *values, bool coupled, const plan *p, bool dry, seeds *out) {
  const sn_objective *o = e->objective;
  for (int g = 0; g < o->n_groups; g++) {
    if (values[g] == NULL || o->coupled[g] != coupled) continue;
    if (!dry) p->sums[g] += *(const double *)values[g]->tensor.data;
    const double weight = p->term >= 0 && o->group_terms[g] != p->term ? 0 : sn_objective_weight(o, g, p->step);
    /* A dry run follows everything back, so that its memory is enough for every step. */
    if (!dry && (weight == 0 || !(p->counts[g] > 0))) continue;
    out->values[out->n] = values[g];
    out->weights[out->n++] = p->counts[g] > 0 ? weight / p->counts[g] : 0;
  }
}

static int64_t row_bytes(const sn_step_engine *e) { return e->objective->coupled_width * sn_dtype_size(e->options.residual); }

/* --- passes over packs -------------------------------------------------------------------------------------------- */

/* Forward alone: the pooled rows of the pack. sums NULL. */
static sn_status record_pack(sn_step_engine *e, sn_tape *tape, const void *work, uint64_t step, sn_value **sums,
                             sn_value **rows, sn_error *err) {
  const sn_objective_vtable *v = e->objective->vtable;
  sn_tape_reset(tape);
  if (e->objective->n_coupled_rows == 0) return v->loss(e->objective, tape, work, step, sums, err);
  return v->forward(e->objective, tape, work, step, sums, rows, err);
}

/* From the recorded pack back; row_grads of this pack, NULL: nothing is coupled. */
static sn_status follow_back(sn_step_engine *e, sn_tape *tape, sn_value *const *values, sn_value *rows, void *row_grads,
                             const plan *p, sn_error *err) {
  seeds s = {0};
  add_seeds(e, values, false, p, sn_tape_is_dry(tape), &s);
  if (rows != NULL && row_grads != NULL && rows->needs_grad) {
    const sn_tensor grads = sn_tensor_2d(row_grads, e->options.residual, rows->tensor.shape[0], rows->tensor.shape[1]);
    sn_value *constant;
    SN_TRY(sn_tape_input(tape, &constant, grads, false, err));
    SN_TRY(sn_dot_const(tape, &s.values[s.n], rows, constant, err));
    s.weights[s.n++] = 1;
  }
  if (s.n == 0) return SN_OK;
  return sn_tape_backward(tape, s.n, s.values, s.weights, err);
}

static sn_status run_pack(sn_step_engine *e, sn_tape *tape, const void *work, void *row_grads, const plan *p, sn_error *err) {
  sn_value *values[SN_MAX_GROUPS] = {NULL}, *rows = NULL;
  SN_TRY(record_pack(e, tape, work, p->step, values, &rows, err));
  return follow_back(e, tape, values, rows, row_grads, p, err);
}

/* Runs on a measuring arena and reserves exactly what it takes. Shapes are the same for the whole run. */
static sn_status reserve(sn_step_engine *e, stage *s, const void *work, sn_error *err);

/* --- the coupled stage -------------------------------------------------------------------------------------------- */

static sn_status run_coupled(sn_step_engine *e, sn_tape *tape, plan *p, double *counts, int64_t *counters, sn_error *err) {
  sn_objective *o = e->objective;
  sn_value *rows, *values[SN_MAX_GROUPS] = {NULL};
  seeds s = {0};
  sn_tape_reset(tape);
  SN_TRY(sn_tape_input(tape, &rows, sn_tensor_2d(e->rows, e->options.residual, e->n_rows, o->coupled_width), true, err));
  SN_TRY(o->vtable->couple(o, tape, rows, e->infos, e->n_rows, p->step, values, counts, counters, err));
  add_seeds(e, values, true, p, sn_tape_is_dry(tape), &s);
  if (s.n > 0) SN_TRY(sn_tape_backward(tape, s.n, s.values, s.weights, err));
  if (sn_tape_is_dry(tape)) return SN_OK;
  if (rows->grad.data != NULL) memcpy(e->row_grads, rows->grad.data, (size_t)(e->n_rows * row_bytes(e)));
  else memset(e->row_grads, 0, (size_t)(e->n_rows * row_bytes(e)));
  return SN_OK;
}

static sn_status reserve(sn_step_engine *e, stage *s, const void *work, sn_error *err) {
  sn_arena *measure = NULL;
  sn_tape *dry = NULL;
  double sums[SN_MAX_GROUPS] = {0}, counts[SN_MAX_GROUPS] = {0};
  int64_t counters[SN_MAX_COUNTERS] = {0};
  sn_tape_options options = e->options;
  plan p = {.term = -1, .counts = counts, .sums = sums};
  sn_status status;
  if (s->reserved) return SN_OK;
  if (s == &e->coupled) options.product = options.residual;
  SN_TRY_GOTO(sn_arena_create(true, &measure, err), done);
  SN_TRY_GOTO(sn_tape_create(e->device, measure, &options, &dry, err), done);
  if (s == &e->coupled) SN_TRY_GOTO(run_coupled(e, dry, &p, counts, counters, err), done);
  else SN_TRY_GOTO(run_pack(e, dry, work, e->row_grads, &p, err), done);
  sn_tape_reset(s->tape);
  SN_TRY_GOTO(sn_arena_reserve(s->arena, sn_arena_high_water(measure), err), done);
  s->reserved = true;
done:
  sn_tape_destroy(dry);
  sn_arena_destroy(measure);
  return status;
}

static sn_status allocate_rows(sn_step_engine *e, int64_t n_packs, sn_error *err) {
  const int64_t n = n_packs * e->comm->n_ranks * e->objective->n_coupled_rows;
  if (e->n_rows == n) return SN_OK;
  if (e->n_rows != 0) return sn_fail(err, SN_E_STATE, "step: the number of packs changed from one step to another");
  SN_TRY(sn_alloc_aligned(&e->rows, n * row_bytes(e), "rows of a step", err));
  SN_TRY(sn_alloc_aligned(&e->row_grads, n * row_bytes(e), "rows of a step", err));
  SN_TRY(sn_alloc(&e->infos, n, sizeof *e->infos, "rows of a step", err));
  const int64_t most = row_bytes(e) > (int64_t)sizeof *e->infos ? row_bytes(e) : (int64_t)sizeof *e->infos;
  if (e->comm->n_ranks > 1)
    SN_TRY(sn_alloc_aligned(&e->own, e->objective->n_coupled_rows * most, "rows of a step", err));
  e->n_rows = n;
  return SN_OK;
}

/* Where pack i of this rank stands among those of all ranks: rank r of R has packs r, r + R, ... */
static int64_t place_of(const sn_step_engine *e, int64_t i, int rank) { return i * e->comm->n_ranks + rank; }

/* Everyone's packs of data (`bytes` each) to everyone, in the order of packs: packs i of all ranks stand together. */
static sn_status gather(sn_step_engine *e, void *data, int64_t n_packs, int64_t bytes, sn_error *err) {
  if (e->comm->n_ranks == 1) return SN_OK;
  for (int64_t i = 0; i < n_packs; i++) {
    char *all = (char *)data + place_of(e, i, 0) * bytes;
    memcpy(e->own, all + e->comm->rank * bytes, (size_t)bytes);
    SN_TRY(sn_comm_all_gather(e->comm, e->own, all, bytes, err));
  }
  return SN_OK;
}

/* The pooled rows of this rank's packs into their places. *kept: the tape still holds the only pack (its values and rows). */
static sn_status collect_rows(sn_step_engine *e, int64_t n_packs, void *const *works, uint64_t step, sn_value **values,
                              sn_value **kept, sn_error *err) {
  const sn_objective *o = e->objective;
  const int64_t n = o->n_coupled_rows;
  const bool only = n_packs == 1 && e->comm->n_ranks == 1;
  for (int64_t i = 0; i < n_packs; i++) {
    const int64_t at = place_of(e, i, e->comm->rank) * n;
    char *to = (char *)e->rows + at * row_bytes(e);
    sn_value *rows = NULL;
    memset(to, 0, (size_t)(n * row_bytes(e)));
    memset(e->infos + at, 0, (size_t)n * sizeof *e->infos);
    if (works[i] == NULL) continue;
    SN_TRY(reserve(e, &e->packs, works[i], err));
    SN_TRY(record_pack(e, e->packs.tape, works[i], step, only ? values : NULL, &rows, err));
    if (rows == NULL) continue;
    memcpy(to, rows->tensor.data, (size_t)(n * row_bytes(e)));
    o->vtable->row_infos(o, works[i], e->infos + at);
    if (only) *kept = rows;
  }
  SN_TRY(gather(e, e->rows, n_packs, n * row_bytes(e), err));
  return gather(e, e->infos, n_packs, n * (int64_t)sizeof *e->infos, err);
}

/* Steps 1 and 2: row gradients, sums and counts of the coupled groups, on every rank the same. */
static sn_status couple(sn_step_engine *e, int64_t n_packs, void *const *works, plan *p, sn_value **values, sn_value **kept,
                        sn_step_sums *out, sn_error *err) {
  double counts[SN_MAX_GROUPS] = {0}, sums[SN_MAX_GROUPS] = {0};
  int64_t counters[SN_MAX_COUNTERS] = {0};
  SN_TRY(allocate_rows(e, n_packs, err));
  SN_TRY(collect_rows(e, n_packs, works, p->step, values, kept, err));
  SN_TRY(reserve(e, &e->coupled, NULL, err));
  plan own = {.step = p->step, .term = p->term, .counts = counts, .sums = sums};
  SN_TRY(run_coupled(e, e->coupled.tape, &own, counts, counters, err));
  out->flops += sn_tape_flops(e->coupled.tape);
  for (int g = 0; g < e->objective->n_groups; g++) {
    if (!e->objective->coupled[g]) continue;
    out->counts[g] = counts[g];
    out->sums[g] = e->comm->rank == 0 ? sums[g] : 0;
  }
  for (int i = 0; i < e->objective->n_counters; i++) out->counters[i] += counters[i];
  if (e->comm->rank != 0) sn_params_forget_grad(e->params); /* the first rank's count */
  return SN_OK;
}

/* --- a step ------------------------------------------------------------------------------------------------------- */

static sn_status reduce_gradients(sn_step_engine *e, sn_error *err) {
  if (e->comm->n_ranks == 1) return SN_OK;
  for (int64_t i = 0; i < sn_params_count(e->params); i++) {
    const sn_param *p = sn_params_at(e->params, i);
    if (p->frozen) continue;
    SN_TRY(sn_comm_all_reduce_sum(e->comm, p->grad.data, sn_tensor_count(&p->grad), p->grad.dtype, err));
  }
  return SN_OK;
}

static sn_status count_terms(sn_step_engine *e, int64_t n_packs, void *const *works, sn_step_sums *out, sn_error *err) {
  const sn_objective *o = e->objective;
  for (int64_t i = 0; i < n_packs; i++)
    if (works[i] != NULL) o->vtable->counts(o, works[i], out->counts, out->counters);
  SN_TRY(sn_comm_all_reduce_sum(e->comm, out->counts, o->n_groups, SN_F64, err));
  if (o->n_counters > 0) SN_TRY(sn_comm_all_reduce_sum(e->comm, out->counters, o->n_counters, SN_I64, err));
  return SN_OK;
}

/* Whether the pack has anything to follow back. */
static bool has_terms(const sn_step_engine *e, const void *work, bool coupled) {
  const sn_objective *o = e->objective;
  double local[SN_MAX_GROUPS] = {0};
  int64_t ignored[SN_MAX_COUNTERS] = {0};
  if (work == NULL) return false;
  if (coupled) return true;
  o->vtable->counts(o, work, local, ignored);
  for (int g = 0; g < o->n_groups; g++)
    if (local[g] > 0) return true;
  return false;
}

static double total_loss(const sn_objective *o, const sn_step_sums *s, uint64_t step) {
  double loss = 0;
  for (int g = 0; g < o->n_groups; g++)
    if (s->counts[g] > 0) loss += sn_objective_weight(o, g, step) * s->sums[g] / s->counts[g];
  return loss;
}

sn_status sn_step_gradients(sn_step_engine *engine, int64_t n_packs, void *const *works, uint64_t step, int term,
                            sn_step_sums *out, sn_error *err) {
  const sn_objective *o = engine->objective;
  const bool coupled = o->n_coupled_rows > 0;
  plan p = {.step = step, .term = term, .counts = out->counts, .sums = out->sums};
  sn_value *values[SN_MAX_GROUPS] = {NULL}, *kept = NULL;
  memset(out, 0, sizeof *out);
  SN_TRY(count_terms(engine, n_packs, works, out, err));
  sn_params_forget_grad(engine->params);
  if (coupled) SN_TRY(couple(engine, n_packs, works, &p, values, &kept, out, err));
  for (int g = 0; g < o->n_groups; g++) out->has_terms = out->has_terms || out->counts[g] > 0;
  out->loss = NAN;
  if (!out->has_terms) return SN_OK;
  for (int64_t i = 0; i < n_packs; i++) {
    if (!has_terms(engine, works[i], coupled)) continue;
    const int64_t at = place_of(engine, i, engine->comm->rank) * o->n_coupled_rows;
    void *row_grads = coupled ? (char *)engine->row_grads + at * row_bytes(engine) : NULL;
    SN_TRY(reserve(engine, &engine->packs, works[i], err));
    if (kept != NULL) SN_TRY(follow_back(engine, engine->packs.tape, values, kept, row_grads, &p, err));
    else SN_TRY(run_pack(engine, engine->packs.tape, works[i], row_grads, &p, err));
    out->flops += sn_tape_flops(engine->packs.tape);
  }
  sn_params_settle_grad(engine->params);
  SN_TRY(sn_comm_all_reduce_sum(engine->comm, out->sums, o->n_groups, SN_F64, err));
  SN_TRY(reduce_gradients(engine, err));
  out->loss = total_loss(o, out, step);
  return SN_OK;
}

/* --- how terms pull ----------------------------------------------------------------------------------------------- */

static double dot(const sn_params *params, int64_t n_params, const double *a, const double *b) {
  double sum = 0;
  int64_t at = 0;
  for (int64_t i = 0; i < n_params; i++) {
    const sn_param *p = sn_params_at(params, i);
    const int64_t n = p->frozen ? 0 : sn_tensor_count(&p->value);
    for (int64_t k = 0; k < n; k++) sum += a[at + k] * b[at + k];
    at += n;
  }
  return sum;
}

static void copy_gradients(const sn_params *params, int64_t n_params, double *out) {
  int64_t at = 0;
  for (int64_t i = 0; i < n_params; i++) {
    const sn_param *p = sn_params_at(params, i);
    for (int64_t k = 0; !p->frozen && k < sn_tensor_count(&p->value); k++) out[at++] = sn_tensor_get(&p->grad, k);
  }
}

sn_status sn_step_compare_terms(sn_step_engine *engine, int64_t n_packs, void *const *works, uint64_t step,
                                int64_t n_params, sn_term_gradients *out, sn_error *err) {
  double *gradients[SN_MAX_GROUPS] = {NULL};
  sn_step_sums sums;
  sn_status status = SN_OK;
  const sn_params *params = engine->params;
  *out = (sn_term_gradients){.n_terms = engine->objective->n_terms};
  int64_t n = 0;
  for (int64_t i = 0; i < n_params; i++) n += sn_params_at(params, i)->frozen ? 0 : sn_tensor_count(&sn_params_at(params, i)->value);
  for (int t = 0; t < out->n_terms; t++) {
    SN_TRY_GOTO(sn_alloc(&gradients[t], n, sizeof *gradients[t], "gradients of a term", err), done);
    SN_TRY_GOTO(sn_step_gradients(engine, n_packs, works, step, t, &sums, err), done);
    if (sums.has_terms) copy_gradients(params, n_params, gradients[t]);
    out->norms[t] = sqrt(dot(params, n_params, gradients[t], gradients[t]));
    for (int u = 0; u <= t; u++) {
      const double scale = out->norms[t] * out->norms[u];
      out->cosines[t][u] = out->cosines[u][t] =
          scale > 0 ? dot(params, n_params, gradients[t], gradients[u]) / scale : NAN;
    }
  }
done:
  for (int t = 0; t < SN_MAX_GROUPS; t++) sn_free(gradients[t]);
  return status;
}
