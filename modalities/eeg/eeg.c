#include "modalities/eeg/eeg.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/eeg/band_power.h"
#include "modalities/eeg/channel_names.h"

_Static_assert(sizeof(sn_eeg_settings) <= SN_MODALITY_SETTINGS, "the settings have room");

/* ---- settings --------------------------------------------------------------------------------------------------- */

static const sn_config_entry CONFIG[] = {
    {"eeg.reference", SN_CONFIG_TEXT, "as-is", 1, 0, NULL, NULL,
     "of EEG electrodes: as-is, average, a channel (Cz), a mean (A1+A2, linked-ears), double-banana, tcp, transverse, "
     "or pairs (Fp1-F7,F7-T7)"},
    {"eeg.channels", SN_CONFIG_TEXTS, "all", 1, 0, NULL, NULL,
     "sensors by name, in the order of tokens; all: every one of the kinds"},
    {"eeg.kinds", SN_CONFIG_TEXTS, "eeg,mag,grad", 1, 0, NULL, NULL, "kinds of sensors that make tokens: eeg, mag, grad"},
    {"eeg.unknown_channel", SN_CONFIG_CHOICE, "error", 1, 0, NULL, "error|without|drop",
     "a sensor with no position in its file and none by its name: the recording is refused, it is taken without a "
     "position, or left out"},
    {"eeg.bad_channels", SN_CONFIG_CHOICE, "drop", 1, 0, NULL, "drop|keep", "what is marked bad in the recording"},
    {"eeg.head_radius", SN_CONFIG_QUANTITY, "95 mm", 0.02, 0.2, "m", NULL,
     "of the sphere on which electrodes are placed by name"},
    {"eeg.biosemi_cap", SN_CONFIG_INT, "0", 0, 64, NULL, NULL,
     "32 or 64: labels A1, A2, ... are pins of that cap; 0: they have no place"},
    {NULL, SN_CONFIG_BOOL, NULL, 0, 0, NULL, NULL, NULL}};

static sn_status read_kinds(const sn_config *config, sn_montage_options *o, sn_error *err) {
  const int64_t n = sn_config_list_length(config, "eeg.kinds");
  for (int64_t i = 0; i < n; i++) {
    const char *kind = sn_config_list_text(config, "eeg.kinds", i);
    if (strcmp(kind, "eeg") == 0) o->eeg = true;
    else if (strcmp(kind, "mag") == 0) o->meg_mag = true;
    else if (strcmp(kind, "grad") == 0) o->meg_grad = true;
    else
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "eeg.kinds", "eeg.kinds: '%s'; one of eeg, mag, grad", kind);
  }
  if (n > 0) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "eeg.kinds", "eeg.kinds: at least one of eeg, mag, grad");
}

/* Names as labels are cleaned, so that T3 finds T7. */
static sn_status read_wanted(const sn_config *config, sn_eeg_settings *o, sn_error *err) {
  const int64_t n = sn_config_list_length(config, "eeg.channels");
  size_t used = 0;
  if (n == 1 && strcmp(sn_config_list_text(config, "eeg.channels", 0), "all") == 0) return SN_OK;
  for (int64_t i = 0; i < n; i++) {
    sn_channel_name name;
    sn_channel_name_parse(&name, sn_config_list_text(config, "eeg.channels", i));
    const size_t size = strlen(name.name) + 1;
    if (o->n_wanted >= SN_EEG_WANTED || used + size > sizeof o->wanted)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "eeg.channels", "eeg.channels: %lld names are too many",
                        (long long)n);
    memcpy(o->wanted + used, name.name, size);
    used += size;
    o->n_wanted++;
  }
  if (n > 0) return SN_OK;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "eeg.channels", "eeg.channels: names, or \"all\"");
}

static sn_status read_config(const sn_config *config, void *settings, sn_error *err) {
  sn_eeg_settings *o = settings;
  const char *unknown = sn_config_text(config, "eeg.unknown_channel");
  memset(o, 0, sizeof *o);
  sn_place_options *place = &o->montage.place;
  place->policy = strcmp(unknown, "drop") == 0      ? SN_PLACE_DROP
                  : strcmp(unknown, "without") == 0 ? SN_PLACE_WITHOUT
                                                    : SN_PLACE_REFUSE;
  place->radius_m = sn_config_real(config, "eeg.head_radius");
  place->biosemi_cap = sn_config_int(config, "eeg.biosemi_cap");
  if (place->biosemi_cap != 0 && place->biosemi_cap != 32 && place->biosemi_cap != 64)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "eeg.biosemi_cap", "eeg.biosemi_cap: %lld; 0, 32 or 64",
                      (long long)place->biosemi_cap);
  o->montage.keep_bad = strcmp(sn_config_text(config, "eeg.bad_channels"), "keep") == 0;
  SN_TRY(sn_reference_parse(&o->montage.reference, sn_config_text(config, "eeg.reference"), err));
  SN_TRY(read_kinds(config, &o->montage, err));
  return read_wanted(config, o, err);
}

static void write_json(const void *settings, sn_json_writer *w) {
  const sn_eeg_settings *o = settings;
  static const char *const POLICIES[] = {"error", "without", "drop"};
  sn_montage_write_json(&o->montage, w);
  sn_json_write_key(w, "kinds");
  sn_json_begin_array(w);
  if (o->montage.eeg) sn_json_write_string(w, "eeg");
  if (o->montage.meg_mag) sn_json_write_string(w, "mag");
  if (o->montage.meg_grad) sn_json_write_string(w, "grad");
  sn_json_end_array(w);
  sn_json_write_key(w, "channels");
  sn_json_begin_array(w);
  const char *name = o->wanted;
  for (int64_t i = 0; i < o->n_wanted; i++, name += strlen(name) + 1) sn_json_write_string(w, name);
  sn_json_end_array(w);
  sn_json_put_string(w, "unknown_channel", POLICIES[o->montage.place.policy]);
  sn_json_put_bool(w, "keep_bad", o->montage.keep_bad);
  sn_json_put_f64(w, "head_radius_m", o->montage.place.radius_m);
  sn_json_put_i64(w, "biosemi_cap", o->montage.place.biosemi_cap);
}

/* ---- series ------------------------------------------------------------------------------------------------------- */

static sn_status select_sensors(const void *settings, const sn_recording *recording, bool planning, sn_series_list *out,
                                sn_error *err) {
  const sn_eeg_settings *o = settings;
  sn_montage_options montage = o->montage;
  const char **wanted = NULL, *name = o->wanted;
  SN_TRY(sn_alloc(&wanted, o->n_wanted, sizeof *wanted, "channels", err));
  for (int64_t i = 0; i < o->n_wanted; i++, name += strlen(name) + 1) wanted[i] = name;
  montage.wanted = wanted;
  montage.n_wanted = o->n_wanted;
  sn_status status = sn_montage_select(recording, &montage, planning, out, err);
  sn_free(wanted);
  return status;
}

static const char *asked(const void *settings, int64_t k) {
  const sn_eeg_settings *o = settings;
  const char *name = o->wanted;
  if (k >= o->n_wanted) return NULL;
  for (; k > 0; k--) name += strlen(name) + 1;
  return name;
}

/* ---- raw features -------------------------------------------------------------------------------------------------- */

static sn_status features(double *out, const void *settings, const sn_recording *recording, const char *const *series,
                          int64_t n_series, sn_error *err) {
  sn_series_list list = {0};
  sn_status status = select_sensors(settings, recording, false, &list, err);
  if (status == SN_OK) status = sn_eeg_features(out, recording, &list, series, n_series, 0, 0, -1, err);
  sn_series_free(&list);
  return status;
}

static int64_t n_ids(void) { return SN_NAME_TABLE; }
static const char *id_name(int64_t id) { return id >= 0 && id < sn_electrode_count() ? sn_electrode_name(id) : NULL; }
static const sn_sensor_kind KINDS[] = {SN_SENSOR_EEG, SN_SENSOR_MEG_MAG, SN_SENSOR_MEG_GRAD};

const sn_modality sn_modality_eeg = {
    .name = "eeg",
    .summary = "EEG and MEG: sensors with a place on the head",
    .covers = "|eeg|meg|ieeg|",
    .kinds = KINDS,
    .n_kinds = sizeof KINDS / sizeof *KINDS,
    .recipe = "data.window=10 s\ndata.rate=200 Hz\ndata.filter_low=0.5 Hz\ndata.filter_high=45 Hz\ndata.patch=1 s\n"
              "data.patch_stride=0.9 s\ndata.normalize=zscore-record\ndata.clip=15\n",
    .config = CONFIG,
    .read_config = read_config,
    .write_json = write_json,
    .n_ids = n_ids,
    .id_name = id_name,
    .select = select_sensors,
    .asked_key = "eeg.channels",
    .asked = asked,
    .feature_count = sn_eeg_feature_count,
    .feature_name = sn_eeg_feature_name,
    .features = features,
};
