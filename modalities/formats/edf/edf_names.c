/* What a signal's label tells of its sensor. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "modalities/formats/edf/edf_parts.h"

/* The first word of a label, without digits at its end; EDF+'s standard types first. */
static const struct {
  const char *word;
  sn_sensor_kind kind;
} WORDS[] = {
    {"EEG", SN_SENSOR_EEG},           {"ECG", SN_SENSOR_ECG},          {"EKG", SN_SENSOR_ECG},
    {"EOG", SN_SENSOR_EOG},           {"EMG", SN_SENSOR_EMG},          {"ECoG", SN_SENSOR_ECOG},
    {"SEEG", SN_SENSOR_ECOG},         {"MEG", SN_SENSOR_MEG_MAG},      {"Resp", SN_SENSOR_RESPIRATION},
    {"Temp", SN_SENSOR_TEMPERATURE},  {"POL", SN_SENSOR_EEG},          {"HEOG", SN_SENSOR_EOG},
    {"VEOG", SN_SENSOR_EOG},          {"LOC", SN_SENSOR_EOG},          {"ROC", SN_SENSOR_EOG},
    {"EOGL", SN_SENSOR_EOG},          {"EOGR", SN_SENSOR_EOG},         {"EOGH", SN_SENSOR_EOG},
    {"EOGV", SN_SENSOR_EOG},          {"Chin", SN_SENSOR_EMG},         {"PLETH", SN_SENSOR_PPG},
    {"Plet", SN_SENSOR_PPG},          {"PPG", SN_SENSOR_PPG},          {"Pulse", SN_SENSOR_PPG},
    {"Respiration", SN_SENSOR_RESPIRATION}, {"Airflow", SN_SENSOR_RESPIRATION}, {"Flow", SN_SENSOR_RESPIRATION},
    {"Thorax", SN_SENSOR_RESPIRATION}, {"Thor", SN_SENSOR_RESPIRATION}, {"Abdomen", SN_SENSOR_RESPIRATION},
    {"Abdo", SN_SENSOR_RESPIRATION},  {"Temperature", SN_SENSOR_TEMPERATURE}, {"BP", SN_SENSOR_PRESSURE},
    {"ABP", SN_SENSOR_PRESSURE},
};

/* Letters of electrode names of the 10-5 system; a number, "z" or nothing follows. */
static const char *const SITES[] = {"Fp", "AFp", "AF", "AFF", "F",  "FFT", "FFC", "FT", "FC", "FTT", "FCC", "T",  "C",
                                    "TTP", "CCP", "TP", "CP", "TPP", "CPP", "P",  "PPO", "PO", "POO", "O",  "OI", "I",
                                    "N",  "A",   "M",  "Pg", "Sp"};

/* One electrode: letters and a number from 1 to 10 or z, perhaps "h"; eegmmidb pads with dots. */
static bool is_electrode(const char *text, size_t n) {
  while (n > 0 && text[n - 1] == '.') n--;
  if (n > 1 && (text[n - 1] == 'h' || text[n - 1] == 'H')) n--;
  size_t end = n;
  int number = 0;
  if (n > 1 && (text[n - 1] == 'z' || text[n - 1] == 'Z')) {
    end = n - 1;
  } else {
    while (end > 0 && isdigit((unsigned char)text[end - 1])) end--;
    if (end == n || n - end > 2) return false;
    for (size_t i = end; i < n; i++) number = number * 10 + (text[i] - '0');
    if (number < 1 || number > 10) return false;
  }
  for (size_t i = 0; i < sizeof SITES / sizeof SITES[0]; i++)
    if (strlen(SITES[i]) == end && strncasecmp(SITES[i], text, end) == 0) return true;
  return false;
}

/* "Cz", "Fp1-A2", "C3-REF". */
static bool is_scalp(const char *text) {
  static const char *const REFERENCES[] = {"REF", "LE", "RE", "AVG", "AR", "AV", "Ref1", "M1M2", "A1A2", "LER"};
  size_t n = strcspn(text, "- ");
  if (!is_electrode(text, n)) return false;
  if (text[n] == '\0') return true;
  if (text[n] != '-') return false;
  const char *other = text + n + 1;
  if (is_electrode(other, strlen(other))) return true;
  for (size_t i = 0; i < sizeof REFERENCES / sizeof REFERENCES[0]; i++)
    if (strcasecmp(REFERENCES[i], other) == 0) return true;
  return false;
}

static bool is_trigger(const char *label) {
  static const char *const NAMES[] = {"Status", "Trigger", "STI 014", "STI"};
  for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
    if (strcasecmp(NAMES[i], label) == 0) return true;
  return false;
}

void sn_edf_identify(const char *label, const char *transducer, char name[SN_CHANNEL_NAME], sn_sensor_kind *kind) {
  snprintf(name, SN_CHANNEL_NAME, "%s", label);
  *kind = SN_SENSOR_OTHER;
  if (is_trigger(label)) {
    *kind = SN_SENSOR_TRIGGER;
    return;
  }
  size_t n = strcspn(label, " -_:,.");
  while (n > 0 && isdigit((unsigned char)label[n - 1])) n--;
  for (size_t i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++) {
    if (strlen(WORDS[i].word) != n || strncasecmp(label, WORDS[i].word, n) != 0) continue;
    *kind = WORDS[i].kind;
    return;
  }
  if (is_scalp(label)) *kind = SN_SENSOR_EEG;
}
