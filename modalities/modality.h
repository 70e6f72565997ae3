/* Modalities: one descriptor each, listed in modalities/modalities.def.
 *
 * Everything that modalities of signals have in common is the pipeline (modalities/signal/pipeline.h): windows,
 * filters, resampling, normalisation, patches, tokens.  A descriptor says what is its own: which series a recording
 * has, the recipe, the settings beside the common ones, and the raw features that a learned encoder is compared with.
 * Nothing about one modality stands anywhere else. */
#ifndef SN_MODALITIES_MODALITY_H
#define SN_MODALITIES_MODALITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/config.h"
#include "core/json.h"
#include "core/status.h"
#include "core/token_batch.h"
#include "modalities/recording.h"
#include "modalities/signal/series.h"

/* A modality's own settings, as a value that can be copied: its struct lies at the beginning of bytes. */
enum { SN_MODALITY_SETTINGS = 8192, SN_FEATURE_NAME = 160 };
typedef struct sn_modality_settings {
  _Alignas(max_align_t) unsigned char bytes[SN_MODALITY_SETTINGS];
} sn_modality_settings;

typedef struct sn_modality {
  const char *name;    /* data.modality */
  const char *summary; /* one line for help */
  const char *covers;  /* "|eeg|meg|": values of the manifest's modality column that it reads */
  const sn_sensor_kind *kinds; /* (n_kinds) that can make tokens */
  int64_t n_kinds;
  /* Defaults of the common keys, lines of key=value (the table of pipeline.h has the general ones). */
  const char *recipe;
  const sn_config_entry *config; /* its own keys, "NAME.key"; ended by a line with key NULL */
  /* settings [out], from a configuration that holds that table. SN_E_ARGUMENT names the key. */
  sn_status (*read_config)(const sn_config *config, void *settings, sn_error *err);
  /* The settings as members of the object that is open. */
  void (*write_json)(const void *settings, sn_json_writer *writer);
  int64_t (*n_ids)(void); /* sn_series.id lies in [-1, n_ids) */
  const char *(*id_name)(int64_t id); /* for messages; NULL where it has none */
  /* The series of a recording, into an empty list, up to and with sn_series_finish.  planning: only names, kinds, units
   * and rates of the channels are known (a manifest's line); positions, orientations and bad marks are not, and what
   * depends on them is taken to be well: the list is then an upper bound, in series and in channels. */
  sn_status (*select)(const void *settings, const sn_recording *recording, bool planning, sn_series_list *out,
                      sn_error *err);
  /* Series that the settings ask for by name, under the key asked_key: the k-th name, NULL behind the last and where all that
   * there is was asked for. A series has that name, but for case. */
  const char *asked_key;
  const char *(*asked)(const void *settings, int64_t k);
  /* Something odd about a recording at its first use, as one sentence; "" nothing. NULL: never. */
  void (*notice)(const sn_recording *recording, char text[256]);

  /* Raw features of a whole recording: a vector of fixed length for the series named, NaN where it cannot be computed
   * or a series is absent. */
  int64_t (*feature_count)(int64_t n_series);
  void (*feature_name)(char name[SN_FEATURE_NAME], int64_t i, const char *const *series, int64_t n_series);
  sn_status (*features)(double *features, const void *settings, const sn_recording *recording,
                        const char *const *series, int64_t n_series, sn_error *err);
} sn_modality;

extern const sn_modality *const sn_modalities[];
extern const int64_t sn_n_modalities;

/* By name; SN_E_ARGUMENT (field data.modality) lists what there is. */
SN_MUST_CHECK sn_status sn_modality_find(const char *name, const sn_modality **out, sn_error *err);
/* The one that reads recordings whose modality column says `modality`; NULL: none. */
const sn_modality *sn_modality_of(const char *modality);

/* sn_signal_config and every modality's own table: tables (SN_MODALITY_TABLES) [out]; returns how many. */
enum { SN_MODALITY_TABLES = 8 };
int64_t sn_modality_tables(const sn_config_entry *tables[SN_MODALITY_TABLES]);
/* data.modality becomes this one, and its recipe the defaults of what the user has not set. */
SN_MUST_CHECK sn_status sn_modality_apply(const sn_modality *modality, sn_config *config, sn_error *err);

#endif
