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

sn_status sn_objective_create(const sn_objective_setup *setup, sn_objective **out, sn_error *err) {
  const char *name = sn_config_text(setup->config, "objective.name");
  const char *names[MOST_KINDS];
  for (int64_t i = 0; i < sn_n_objective_kinds; i++) {
    names[i] = sn_objective_kinds[i]->name;
    if (strcmp(name, names[i]) == 0) return sn_objective_kinds[i]->create(setup, out, err);
  }
  const char *near = sn_nearest_name(name, names, sn_n_objective_kinds);
  return sn_fail(err, SN_E_ARGUMENT, "objective.name '%s' is not known%s%s%s", name, near ? ", did you mean '" : "",
                 near ? near : "", near ? "'?" : "");
}

void sn_objective_destroy(sn_objective *objective) {
  if (objective != NULL) objective->vtable->destroy(objective);
}
