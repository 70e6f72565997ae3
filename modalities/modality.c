#include "modalities/modality.h"

#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "modalities/signal/pipeline.h"

#define SN_MODALITY(name) extern const sn_modality sn_modality_##name;
#include "modalities/modalities.def"
#undef SN_MODALITY

const sn_modality *const sn_modalities[] = {
#define SN_MODALITY(name) &sn_modality_##name,
#include "modalities/modalities.def"
#undef SN_MODALITY
};
const int64_t sn_n_modalities = sizeof sn_modalities / sizeof *sn_modalities;
_Static_assert(sizeof sn_modalities / sizeof *sn_modalities < SN_MODALITY_TABLES, "more modalities than tables");

sn_status sn_modality_find(const char *name, const sn_modality **out, sn_error *err) {
  char known[160] = "";
  *out = NULL;
  for (int64_t i = 0; i < sn_n_modalities; i++) {
    const size_t used = strlen(known);
    if (strcmp(sn_modalities[i]->name, name) == 0) *out = sn_modalities[i];
    snprintf(known + used, sizeof known - used, "%s%s", i > 0 ? ", " : "", sn_modalities[i]->name);
  }
  if (*out != NULL) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.modality", "data.modality: '%s' is not known; there is: %s", name,
                    known);
}

const sn_modality *sn_modality_of(const char *modality) {
  char part[32];
  if (modality[0] == '\0' || snprintf(part, sizeof part, "|%s|", modality) >= (int)sizeof part) return NULL;
  for (int64_t i = 0; i < sn_n_modalities; i++)
    if (strstr(sn_modalities[i]->covers, part) != NULL) return sn_modalities[i];
  return NULL;
}

int64_t sn_modality_tables(const sn_config_entry *tables[SN_MODALITY_TABLES]) {
  int64_t n = 0;
  tables[n++] = sn_signal_config;
  for (int64_t i = 0; i < sn_n_modalities; i++) tables[n++] = sn_modalities[i]->config;
  return n;
}

sn_status sn_modality_apply(const sn_modality *modality, sn_config *config, sn_error *err) {
  SN_TRY(sn_config_set(config, "data.modality", modality->name, modality->name, -1, err));
  return sn_config_default_pairs(config, modality->recipe, modality->name, err);
}
