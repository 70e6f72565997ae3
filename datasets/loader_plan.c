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

/* What comes next together, and of which part; it is not taken yet. */
typedef struct look {
  int64_t part, n;
  int64_t windows[SN_MOST_GROUP];
  uint64_t epoch;
} look;

static bool is_one_set(const sn_plan *plan) { return plan->source->n_parts < 2 || plan->partners; }

static void look_ahead(const sn_plan *plan, look *l) {
  const sn_source *s = plan->source;
  const bool one = is_one_set(plan);
  l->part = one ? 0 : choose_part(plan);
  const int64_t number = one ? plan->place / plan->group_places : plan->taken[l->part];
  if (plan->groups != NULL) {
    l->n = sn_groups_at(plan->groups[l->part], plan->seed, number, l->windows, &l->epoch);
    return;
  }
  const sn_source_part *p = one ? NULL : &s->parts[l->part];
  const sn_plan_place place = at(plan->seed ^ (one ? 0 : p->key), one ? s->n_windows : p->n_windows, number);
  l->n = 1;
  l->windows[0] = place.window + (one ? 0 : p->first);
  l->epoch = place.epoch;
}

static sn_status tokens_of(const sn_source *source, int64_t window, int64_t *nominal, sn_error *err) {
  *nominal = source->vtable->nominal_tokens(source, window);
  if (*nominal >= source->min_tokens && *nominal <= source->max_tokens) return SN_OK;
  return sn_fail(err, SN_E_STATE,
                 "source %s: window %" PRId64 " names %" PRId64 " tokens, outside its own range %" PRId64 "..%" PRId64,
                 source->vtable->name, window, *nominal, source->min_tokens, source->max_tokens);
}

/* Nominal tokens of all of it, one view each. */
static sn_status tokens_ahead(const sn_plan *plan, const look *l, int64_t *sum, sn_error *err) {
  *sum = 0;
  for (int64_t i = 0; i < l->n; i++) {
    int64_t nominal;
    SN_TRY(tokens_of(plan->source, l->windows[i], &nominal, err));
    *sum += nominal;
  }
  return SN_OK;
}

static void take(sn_plan *plan, const look *l, int64_t nominal) {
  plan->place += plan->group_places;
  plan->taken[l->part]++;
  plan->tokens[l->part] += nominal;
}

static sn_status seek(sn_plan *plan, int64_t place, sn_error *err) {
  if (place % plan->group_places != 0)
    return sn_fail(err, SN_E_STATE, "place %" PRId64 " is within a group of %" PRId64 ": the run was begun with other groups", place,
                   plan->group_places);
  if (is_one_set(plan)) {
    plan->place = place;
    return SN_OK;
  }
  if (plan->place > place) {
    plan->place = 0;
    memset(plan->taken, 0, sizeof plan->taken);
    memset(plan->tokens, 0, sizeof plan->tokens);
  }
  while (plan->place < place) {
    look l;
    int64_t nominal;
    look_ahead(plan, &l);
    SN_TRY(tokens_ahead(plan, &l, &nominal, err));
    take(plan, &l, nominal);
  }
  return SN_OK;
}

sn_status sn_plan_pack(sn_plan *plan, int64_t first, int64_t *n_places, int64_t *next, sn_plan_place **places,
                       int64_t *capacity, sn_error *err) {
  int64_t tokens = 0, n = 0;
  SN_TRY(seek(plan, first, err));
  for (;;) {
    look l;
    int64_t nominal;
    look_ahead(plan, &l);
    SN_TRY(tokens_ahead(plan, &l, &nominal, err));
    if (n > 0 && tokens + nominal * plan->n_views > plan->pack_tokens) break;
    SN_TRY(sn_grow(places, capacity, n + l.n, sizeof **places, "plan of a pack", err));
    for (int64_t i = 0; i < l.n; i++) (*places)[n++] = (sn_plan_place){.window = l.windows[i], .epoch = l.epoch};
    tokens += nominal * plan->n_views;
    take(plan, &l, nominal);
    /* Nothing else can fit: saves drawing the next place twice. */
    if (plan->pack_tokens - tokens < plan->source->min_tokens * plan->n_views) break;
  }
  *n_places = n;
  *next = plan->place;
  return SN_OK;
}

/* Of groups: those windows that are in them. */
double sn_plan_epoch(const sn_plan *plan, int64_t place) {
  int64_t n = plan->source->n_windows;
  if (plan->groups != NULL) {
    const int64_t parts = is_one_set(plan) ? 1 : plan->source->n_parts;
    n = 0;
    for (int64_t k = 0; k < parts; k++) n += sn_groups_get_report(plan->groups[k]).n_groups * plan->group_places;
  }
  return (double)place / (double)n;
}
