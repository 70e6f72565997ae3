#include "objectives/objective.h"

#include <string.h>

#include "objectives/mix.h"

#define SN_OBJECTIVE(name) extern const sn_objective_kind sn_objective_kind_##name;
#include "objectives/objectives.def"
#undef SN_OBJECTIVE

const sn_objective_kind *const sn_objective_kinds[] = {
#define SN_OBJECTIVE(name) &sn_objective_kind_##name,
#include "objectives/objectives.def"
#undef SN_OBJECTIVE
};
const int64_t sn_n_objective_kinds = sizeof sn_objective_kinds / sizeof sn_objective_kinds[0];

const sn_config_entry sn_objective_config[] = {
    {"objective.name", SN_CONFIG_TEXT, "mae", 0, 0, NULL, NULL,
     "what is learned, several terms joined by +: `sonde pretrain --help` lists them"},
    {"objective.weights", SN_CONFIG_TEXTS, "", 0, 0, NULL, NULL,
     "one for each term, default 1: a number, or steps and values such as '0:0 1000:0.5'"},
    {"objective.compare_every", SN_CONFIG_INT, "0", 0, 1e9, NULL, NULL,
     "steps from one comparison of the terms' gradients to the next (norms and cosines, in metrics.jsonl); each costs a step "
     "for every term; 0: never"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

sn_status sn_objective_create(const sn_objective_setup *setup, sn_objective **out, sn_error *err) {
  return sn_mix_create(setup, out, err);
}

/* Two terms may ask for different groups of windows: the larger group holds the smaller one's positives. */
static sn_status join_sampling(sn_sampling *a, const sn_sampling *b, sn_error *err) {
  if (b->n_views > a->n_views) a->n_views = b->n_views;
  if (b->by == SN_GROUP_NONE) return SN_OK;
  if (a->by != SN_GROUP_NONE && (a->by != b->by || a->adjacent != b->adjacent || a->partners != b->partners))
    return sn_fail(err, SN_E_ARGUMENT, "objective.name: its terms want windows to come together in different ways (one of a "
                   "recording, one of a subject, or one of neighbours): give both the same positives");
  a->by = b->by;
  a->adjacent = b->adjacent;
  a->partners = b->partners;
  if (b->group > a->group) a->group = b->group;
  return SN_OK;
}

sn_status sn_objective_get_needs(const sn_config *config, sn_objective_needs *needs, sn_error *err) {
  const sn_objective_kind *kinds[SN_MOST_TERMS];
  sn_weight_schedule weights[SN_MOST_TERMS];
  int n;
  *needs = (sn_objective_needs){0};
  SN_TRY(sn_mix_terms(config, kinds, weights, &n, err));
  for (int i = 0; i < n; i++) {
    sn_objective_needs own = {0};
    if (kinds[i]->needs != NULL) SN_TRY(kinds[i]->needs(config, &own, err));
    needs->moving_average = needs->moving_average || kinds[i]->asks(config).target;
    needs->label = needs->label || own.label;
    needs->two_sources = needs->two_sources || own.two_sources;
    SN_TRY(join_sampling(&needs->sampling, &own.sampling, err));
    for (int k = 0; k < own.n_targets; k++) SN_TRY(sn_objective_need(needs, own.targets[k], err));
  }
  return SN_OK;
}

sn_status sn_objective_need(sn_objective_needs *needs, const char *target, sn_error *err) {
  for (int i = 0; i < needs->n_targets; i++)
    if (strcmp(needs->targets[i], target) == 0) return SN_OK;
  if (needs->n_targets == SN_MOST_TARGETS || strlen(target) >= SN_TARGET_NAME)
    return sn_fail(err, SN_E_STATE, "objective: target '%s' is one too many, or its name too long", target);
  strcpy(needs->targets[needs->n_targets++], target);
  return SN_OK;
}

sn_status sn_objective_find_target(const sn_objective_setup *setup, const char *name, bool per_token,
                                   const sn_target_spec **out, sn_error *err) {
  for (int i = 0; i < setup->n_targets; i++) {
    if (strcmp(setup->targets[i].name, name) != 0) continue;
    if (setup->targets[i].per_token != per_token)
      return sn_fail(err, SN_E_STATE, "target '%s' has a row per %s", name, per_token ? "sample" : "token");
    *out = &setup->targets[i];
    return SN_OK;
  }
  return sn_fail(err, SN_E_STATE, "the data deliver no target '%s'", name);
}

void sn_objective_destroy(sn_objective *objective) {
  if (objective != NULL) objective->vtable->destroy(objective);
}
