/* Presets: named settings compiled into the command, as lines of key=value. */
#ifndef SN_ENGINE_PRESETS_H
#define SN_ENGINE_PRESETS_H

#include "core/config.h"

typedef struct sn_preset {
  const char *name;
  const char *summary;
  const char *modality;  /* "ecg": which data settings it needs; "": any source of tokens */
  const char *settings;
} sn_preset;

extern const sn_preset sn_presets[]; /* ended by name NULL */

/* Applies a preset's settings. Unknown: SN_E_ARGUMENT with the nearest. */
SN_MUST_CHECK sn_status sn_preset_apply(sn_config *config, const char *name, const sn_preset **found, sn_error *err);

#endif
