#include "objectives/objective.h"

#include <string.h>

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
    {"objective.name", SN_CONFIG_TEXT, "mae", 0, 0, NULL, NULL, "what is learned: `sonde pretrain --help` lists them"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

enum { MOST_KINDS = 64 };

static sn_status find_kind(const sn_config *config, const sn_objective_kind **out, sn_error *err) {
  const char *name = sn_config_text(config, "objective.name");
  const char *names[MOST_KINDS];
  for (int64_t i = 0; i < sn_n_objective_kinds; i++) {
    names[i] = sn_objective_kinds[i]->name;
    if (strcmp(name, names[i]) != 0) continue;
    *out = sn_objective_kinds[i];
    return SN_OK;
  }
  const char *near = sn_nearest_name(name, names, sn_n_objective_kinds);
  return sn_fail(err, SN_E_ARGUMENT, "objective.name '%s' is not known%s%s%s", name, near ? ", did you mean '" : "",
                 near ? near : "", near ? "'?" : "");
}

sn_status sn_objective_create(const sn_objective_setup *setup, sn_objective **out, sn_error *err) {
  const sn_objective_kind *kind;
  SN_TRY(find_kind(setup->config, &kind, err));
  return kind->create(setup, out, err);
}

sn_status sn_objective_get_needs(const sn_config *config, sn_objective_needs *needs, sn_error *err) {
  const sn_objective_kind *kind;
  *needs = (sn_objective_needs){0};
  SN_TRY(find_kind(config, &kind, err));
  return kind->needs != NULL ? kind->needs(config, needs, err) : SN_OK;
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
