#include "datasets/loader_plan.h"

#include <inttypes.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"

/* Place `number` of one order over n windows. */
static sn_plan_place at(uint64_t seed, int64_t n, int64_t number) {
  const uint64_t epoch = (uint64_t)(number / n);
  return (sn_plan_place){
      .window = (int64_t)sn_bijection(seed, SN_PURPOSE_ORDER, epoch, (uint64_t)n, (uint64_t)(number % n)), .epoch = epoch};
}

/* The part whose turn it is. */
static int64_t choose_part(const sn_plan *plan) {
  const sn_source *s = plan->source;
  int64_t best = 0;
  double least = (double)plan->tokens[0] / s->parts[0].share;
  for (int64_t i = 1; i < s->n_parts; i++) {
    const double had = (double)plan->tokens[i] / s->parts[i].share;
    if (had >= least) continue;
    least = had;
    best = i;
  }
  return best;
}

/* What the next place holds; it is not taken yet. */
static sn_plan_place look(const sn_plan *plan, int64_t *part) {
  const sn_source *s = plan->source;
  *part = 0;
  if (s->n_parts < 2) return at(plan->seed, s->n_windows, plan->place);
  *part = choose_part(plan);
  const sn_source_part *p = &s->parts[*part];
  sn_plan_place place = at(plan->seed ^ p->key, p->n_windows, plan->taken[*part]);
  place.window += p->first;
  return place;
}

static sn_status tokens_of(const sn_source *source, int64_t window, int64_t *nominal, sn_error *err) {
  *nominal = source->vtable->nominal_tokens(source, window);
  if (*nominal >= source->min_tokens && *nominal <= source->max_tokens) return SN_OK;
  return sn_fail(err, SN_E_STATE,
                 "source %s: window %" PRId64 " names %" PRId64 " tokens, outside its own range %" PRId64 "..%" PRId64,
                 source->vtable->name, window, *nominal, source->min_tokens, source->max_tokens);
}

static void take(sn_plan *plan, int64_t part, int64_t nominal) {
  plan->place++;
  plan->taken[part]++;
  plan->tokens[part] += nominal;
}

static sn_status seek(sn_plan *plan, int64_t place, sn_error *err) {
  if (plan->source->n_parts < 2) {
    plan->place = place;
    return SN_OK;
  }
  if (plan->place > place) {
    plan->place = 0;
    memset(plan->taken, 0, sizeof plan->taken);
    memset(plan->tokens, 0, sizeof plan->tokens);
  }
  while (plan->place < place) {
    int64_t part, nominal;
    SN_TRY(tokens_of(plan->source, look(plan, &part).window, &nominal, err));
    take(plan, part, nominal);
  }
  return SN_OK;
}

sn_status sn_plan_pack(sn_plan *plan, int64_t first, int64_t *n_places, sn_plan_place **places, int64_t *capacity,
                       sn_error *err) {
  int64_t tokens = 0, n = 0;
  SN_TRY(seek(plan, first, err));
  for (;;) {
    int64_t part, nominal;
    const sn_plan_place place = look(plan, &part);
    SN_TRY(tokens_of(plan->source, place.window, &nominal, err));
    if (n > 0 && tokens + nominal * plan->n_views > plan->pack_tokens) break;
    SN_TRY(sn_grow(places, capacity, n + 1, sizeof **places, "plan of a pack", err));
    (*places)[n++] = place;
    tokens += nominal * plan->n_views;
    take(plan, part, nominal);
    /* Nothing else can fit: saves drawing the next place twice. */
    if (plan->pack_tokens - tokens < plan->source->min_tokens * plan->n_views) break;
  }
  *n_places = n;
  return SN_OK;
}
