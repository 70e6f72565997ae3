/* Canonical units and the names of sensor kinds. */
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "modalities/recording.h"

typedef enum dimension { VOLTAGE, FIELD, GRADIENT, PRESSURE, TEMPERATURE, ARBITRARY } dimension;

typedef struct unit_row {
  const char *name; /* exact: m and M differ by nine orders */
  dimension dimension;
  double in_base; /* V, T, T/m, mmHg, degC */
} unit_row;

/* The micro sign U+00B5, the Greek mu U+03BC and, from Latin-1 files, the byte that readers turn into U+00B5. */
static const unit_row UNITS[] = {
    {"nV", VOLTAGE, 1e-9},        {"uV", VOLTAGE, 1e-6},         {"\xC2\xB5V", VOLTAGE, 1e-6},
    {"\xCE\xBCV", VOLTAGE, 1e-6}, {"mV", VOLTAGE, 1e-3},         {"V", VOLTAGE, 1},
    {"mv", VOLTAGE, 1e-3},        {"uv", VOLTAGE, 1e-6}, /* published headers have them; the prefix keeps its case */
    {"microV", VOLTAGE, 1e-6},    {"fT", FIELD, 1e-15},          {"pT", FIELD, 1e-12},
    {"nT", FIELD, 1e-9},          {"T", FIELD, 1},               {"fT/cm", GRADIENT, 1e-13},
    {"pT/cm", GRADIENT, 1e-10},   {"T/m", GRADIENT, 1},          {"mmHg", PRESSURE, 1},
    {"degC", TEMPERATURE, 1},     {"\xC2\xB0" "C", TEMPERATURE, 1}, {"C", TEMPERATURE, 1},
    {"DegC", TEMPERATURE, 1},     {"deg C", TEMPERATURE, 1},
    {"NU", ARBITRARY, 1},         {"nu", ARBITRARY, 1},
};

static const unit_row *find_unit(const char *raw) {
  for (size_t i = 0; i < sizeof UNITS / sizeof UNITS[0]; i++)
    if (strcmp(UNITS[i].name, raw) == 0) return &UNITS[i];
  return NULL;
}

/* The dimension a kind is measured in and its canonical unit; NULL: any unit, kept as stored. */
static const unit_row *canonical_of(sn_sensor_kind kind) {
  static const unit_row mv = {"mV", VOLTAGE, 1e-3}, uv = {"uV", VOLTAGE, 1e-6}, ft = {"fT", FIELD, 1e-15},
                        ftcm = {"fT/cm", GRADIENT, 1e-13}, mmhg = {"mmHg", PRESSURE, 1},
                        degc = {"degC", TEMPERATURE, 1};
  switch (kind) {
    case SN_SENSOR_ECG:
    case SN_SENSOR_EMG: return &mv;
    case SN_SENSOR_EEG:
    case SN_SENSOR_EOG:
    case SN_SENSOR_ECOG: return &uv;
    case SN_SENSOR_MEG_MAG: return &ft;
    case SN_SENSOR_MEG_GRAD: return &ftcm;
    case SN_SENSOR_PRESSURE: return &mmhg;
    case SN_SENSOR_TEMPERATURE: return &degc;
    default: return NULL;
  }
}

/* raw / canonical, computed so that powers of ten come out exact (1e-3 / 1e-6 is not 1000 in binary). */
static double scale_between(double raw, double canonical) {
  double up = raw / canonical, down = canonical / raw;
  double power = 1;
  for (int i = 0; i <= 18; i++, power *= 10) {
    if (up > power * (1 - 1e-9) && up < power * (1 + 1e-9)) return power;
    if (down > power * (1 - 1e-9) && down < power * (1 + 1e-9)) return 1 / power;
  }
  return up;
}

bool sn_unit_canonical(const char *raw, sn_sensor_kind kind, char unit[SN_UNIT_NAME], double *scale) {
  *scale = 1;
  unit[0] = '\0';
  if (raw[0] == '\0' || strlen(raw) >= SN_UNIT_NAME) return false;
  const unit_row *row = find_unit(raw), *canonical = canonical_of(kind);
  if (row != NULL && row->dimension == ARBITRARY) {
    snprintf(unit, SN_UNIT_NAME, "NU");
    return true;
  }
  if (canonical == NULL) {
    /* One spelling of micro, else as it is. */
    bool micro = row != NULL && row->dimension == VOLTAGE && row->in_base < 1e-5 && row->in_base > 1e-7;
    snprintf(unit, SN_UNIT_NAME, "%s", micro ? "uV" : row != NULL && row->dimension == TEMPERATURE ? "degC" : raw);
    return true;
  }
  if (row == NULL || row->dimension != canonical->dimension) return false;
  snprintf(unit, SN_UNIT_NAME, "%s", canonical->name);
  *scale = scale_between(row->in_base, canonical->in_base);
  return true;
}

bool sn_unit_is_known(const char *raw) { return find_unit(raw) != NULL; }

const char *sn_sensor_kind_name(sn_sensor_kind kind) {
  switch (kind) {
    case SN_SENSOR_NONE: return "none";
    case SN_SENSOR_ECG: return "ecg";
    case SN_SENSOR_EEG: return "eeg";
    case SN_SENSOR_EOG: return "eog";
    case SN_SENSOR_EMG: return "emg";
    case SN_SENSOR_ECOG: return "ecog";
    case SN_SENSOR_MEG_MAG: return "meg_mag";
    case SN_SENSOR_MEG_GRAD: return "meg_grad";
    case SN_SENSOR_PPG: return "ppg";
    case SN_SENSOR_PRESSURE: return "pressure";
    case SN_SENSOR_RESPIRATION: return "respiration";
    case SN_SENSOR_TEMPERATURE: return "temperature";
    case SN_SENSOR_TRIGGER: return "trigger";
    case SN_SENSOR_VOXEL: return "voxel";
    case SN_SENSOR_SERIES: return "series";
    case SN_SENSOR_TEXT: return "text";
    case SN_SENSOR_SYNTHETIC: return "synthetic";
    case SN_SENSOR_OTHER: return "other";
  }
  return "other";
}
