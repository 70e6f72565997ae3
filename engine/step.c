#include "engine/step.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

struct sn_step_engine {
  sn_device *device;
  sn_params *params;
  sn_objective *objective;
  sn_comm *comm;
  sn_tape_options options;
  sn_arena *arena;
  sn_tape *tape;
  bool reserved;
};

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
  SN_TRY_GOTO(sn_arena_create(false, &e->arena, err), fail);
  SN_TRY_GOTO(sn_tape_create(device, e->arena, &e->options, &e->tape, err), fail);
  *out = e;
  return SN_OK;
fail:
  sn_step_engine_destroy(e);
  return status;
}

void sn_step_engine_destroy(sn_step_engine *engine) {
  if (engine == NULL) return;
  sn_tape_destroy(engine->tape);
  sn_arena_destroy(engine->arena);
  sn_free(engine);
}

int64_t sn_step_engine_arena_bytes(const sn_step_engine *engine) { return sn_arena_high_water(engine->arena); }

/* One pack through a tape, dry or real. sums are added up. */
static sn_status run_pack(sn_step_engine *e, sn_tape *tape, const void *work, uint64_t step, const double *counts,
                          double *sums, sn_error *err) {
  const sn_objective *o = e->objective;
  sn_value *values[SN_MAX_GROUPS] = {NULL}, *seeded[SN_MAX_GROUPS];
  double seeds[SN_MAX_GROUPS];
  int n = 0;
  sn_tape_reset(tape);
  SN_TRY(o->vtable->loss(e->objective, tape, work, step, values, err));
  for (int g = 0; g < o->n_groups; g++) {
    if (values[g] == NULL) continue;
    if (!sn_tape_is_dry(tape)) sums[g] += *(const double *)values[g]->tensor.data;
    seeded[n] = values[g];
    seeds[n++] = counts[g] > 0 ? o->group_weights[g] / counts[g] : 0;
  }
  if (n == 0) return SN_OK;
  return sn_tape_backward(tape, n, seeded, seeds, err);
}

/* Runs the pack on a measuring arena and reserves exactly what it takes. Shapes are the same for the whole run. */
static sn_status reserve(sn_step_engine *e, const void *work, const double *counts, sn_error *err) {
  sn_arena *measure = NULL;
  sn_tape *dry = NULL;
  double sums[SN_MAX_GROUPS] = {0};
  sn_status status;
  SN_TRY_GOTO(sn_arena_create(true, &measure, err), done);
  SN_TRY_GOTO(sn_tape_create(e->device, measure, &e->options, &dry, err), done);
  SN_TRY_GOTO(run_pack(e, dry, work, 0, counts, sums, err), done);
  sn_tape_reset(e->tape);
  SN_TRY_GOTO(sn_arena_reserve(e->arena, sn_arena_high_water(measure), err), done);
  e->reserved = true;
done:
  sn_tape_destroy(dry);
  sn_arena_destroy(measure);
  return status;
}

static sn_status reduce_gradients(sn_step_engine *e, sn_error *err) {
  if (e->comm->n_ranks == 1) return SN_OK;
  for (int64_t i = 0; i < sn_params_count(e->params); i++) {
    const sn_param *p = sn_params_at(e->params, i);
    if (p->frozen) continue;
    SN_TRY(sn_comm_all_reduce_sum(e->comm, p->grad.data, sn_tensor_count(&p->grad), p->grad.dtype, err));
  }
  return SN_OK;
}

sn_status sn_step_gradients(sn_step_engine *engine, int64_t n_packs, void *const *works, uint64_t step,
                            sn_step_sums *out, sn_error *err) {
  const sn_objective *o = engine->objective;
  memset(out, 0, sizeof *out);
  for (int64_t i = 0; i < n_packs; i++)
    if (works[i] != NULL) o->vtable->counts(o, works[i], out->counts, out->counters);
  SN_TRY(sn_comm_all_reduce_sum(engine->comm, out->counts, o->n_groups, SN_F64, err));
  if (o->n_counters > 0)
    SN_TRY(sn_comm_all_reduce_sum(engine->comm, out->counters, o->n_counters, SN_I64, err));
  for (int g = 0; g < o->n_groups; g++) out->has_terms = out->has_terms || out->counts[g] > 0;
  out->loss = NAN;
  if (!out->has_terms) return SN_OK;
  sn_params_forget_grad(engine->params);
  for (int64_t i = 0; i < n_packs; i++) {
    if (works[i] == NULL) continue;
    double local[SN_MAX_GROUPS] = {0};
    int64_t ignored[SN_MAX_COUNTERS] = {0};
    o->vtable->counts(o, works[i], local, ignored);
    bool any = false;
    for (int g = 0; g < o->n_groups; g++) any = any || local[g] > 0;
    if (!any) continue;
    if (!engine->reserved) SN_TRY(reserve(engine, works[i], out->counts, err));
    SN_TRY(run_pack(engine, engine->tape, works[i], step, out->counts, out->sums, err));
    out->flops += sn_tape_flops(engine->tape);
  }
  sn_params_settle_grad(engine->params);
  SN_TRY(sn_comm_all_reduce_sum(engine->comm, out->sums, o->n_groups, SN_F64, err));
  SN_TRY(reduce_gradients(engine, err));
  out->loss = 0;
  for (int g = 0; g < o->n_groups; g++)
    if (out->counts[g] > 0) out->loss += o->group_weights[g] * out->sums[g] / out->counts[g];
  return SN_OK;
}
