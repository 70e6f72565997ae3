/* What a signal's description and a header's comments tell: lead or sensor, age and sex. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "modalities/formats/wfdb/wfdb_parts.h"

/* Lead names as they are written in our tables; matched without case. */
static const char *const LEADS[] = {
    "I",    "II",   "III",  "aVR",  "aVL",  "aVF",  "V",    "V1",   "V2",   "V3",   "V4",    "V5",   "V6",   "V7",
    "V8",   "V9",   "V1R",  "V2R",  "V3R",  "V4R",  "V5R",  "V6R",  "MLI",  "MLII", "MLIII", "ML2",  "ML5",  "MV2",
    "MV1",  "MCL",  "MCL1", "MCL2", "MCL3", "MCL4", "MCL5", "MCL6", "CM2",  "CM4",  "CM5",   "CC5",  "mod.V1", "D3",
    "D4",   "vx",   "vy",   "vz",   "A-I",  "A-S",  "E-S",  "ES",   "AS",   "AI",
};

static const struct {
  const char *word; /* the first word of the description, or all of it */
  sn_sensor_kind kind;
} SENSORS[] = {
    {"PLETH", SN_SENSOR_PPG},        {"PPG", SN_SENSOR_PPG},          {"SpO2", SN_SENSOR_OTHER},
    {"ABP", SN_SENSOR_PRESSURE},     {"ART", SN_SENSOR_PRESSURE},     {"BP", SN_SENSOR_PRESSURE},
    {"CVP", SN_SENSOR_PRESSURE},     {"PAP", SN_SENSOR_PRESSURE},     {"ICP", SN_SENSOR_PRESSURE},
    {"UAP", SN_SENSOR_PRESSURE},     {"LAP", SN_SENSOR_PRESSURE},     {"RAP", SN_SENSOR_PRESSURE},
    {"NBP", SN_SENSOR_PRESSURE},     {"NBPSys", SN_SENSOR_PRESSURE},  {"NBPDias", SN_SENSOR_PRESSURE},
    {"NBPMean", SN_SENSOR_PRESSURE}, {"ABPSys", SN_SENSOR_PRESSURE},  {"ABPDias", SN_SENSOR_PRESSURE},
    {"ABPMean", SN_SENSOR_PRESSURE}, {"RESP", SN_SENSOR_RESPIRATION}, {"Resp.", SN_SENSOR_RESPIRATION},
    {"Respiration", SN_SENSOR_RESPIRATION},
    {"EEG", SN_SENSOR_EEG},          {"EOG", SN_SENSOR_EOG},          {"EMG", SN_SENSOR_EMG},
    {"TEMP", SN_SENSOR_TEMPERATURE}, {"Temperature", SN_SENSOR_TEMPERATURE},
    {"ECG", SN_SENSOR_ECG},          {"EKG", SN_SENSOR_ECG},
};

static const char *find_lead(const char *text) {
  for (size_t i = 0; i < sizeof LEADS / sizeof LEADS[0]; i++)
    if (strcasecmp(LEADS[i], text) == 0) return LEADS[i];
  return NULL;
}

/* "ECG lead II", "ECG II", "lead V1": the lead alone. */
static const char *without_prefix(const char *text) {
  static const char *const prefixes[] = {"ECG lead ", "ECG ", "EKG ", "lead ", "ECG_"};
  for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
    size_t n = strlen(prefixes[i]);
    if (strncasecmp(text, prefixes[i], n) == 0) return text + n;
  }
  return text;
}

void sn_wfdb_identify(const char *raw, const char *unit, char name[SN_CHANNEL_NAME], sn_sensor_kind *kind) {
  snprintf(name, SN_CHANNEL_NAME, "%s", raw);
  const char *lead = find_lead(without_prefix(raw));
  if (lead != NULL) {
    snprintf(name, SN_CHANNEL_NAME, "%s", lead);
    *kind = SN_SENSOR_ECG;
    return;
  }
  /* The first word decides; "ECG1", "ECG_2" count as ECG, "EEG Fpz-Cz" as EEG. */
  size_t n = strcspn(raw, " _,-");
  while (n > 0 && isdigit((unsigned char)raw[n - 1]) && strncasecmp(raw, "SpO2", 4) != 0) n--;
  *kind = SN_SENSOR_OTHER;
  for (size_t i = 0; i < sizeof SENSORS / sizeof SENSORS[0]; i++) {
    if (strlen(SENSORS[i].word) == n && strncasecmp(raw, SENSORS[i].word, n) == 0) {
      *kind = SENSORS[i].kind;
      break;
    }
  }
  if (*kind == SN_SENSOR_OTHER && strcmp(unit, "mmHg") == 0) *kind = SN_SENSOR_PRESSURE;
  if (*kind == SN_SENSOR_EEG && strncasecmp(raw, "EEG ", 4) == 0) snprintf(name, SN_CHANNEL_NAME, "%s", raw + 4);
}

/* ---- age and sex ---- */

static bool is_word(const char *text, const char *word) {
  size_t n = strlen(word);
  return strncasecmp(text, word, n) == 0 && !isalpha((unsigned char)text[n]);
}

static void take_sex(const char *text, char sex[8]) {
  while (*text == ' ' || *text == '\t') text++;
  if (is_word(text, "F") || is_word(text, "female") || is_word(text, "woman")) snprintf(sex, 8, "F");
  else if (is_word(text, "M") || is_word(text, "male") || is_word(text, "man")) snprintf(sex, 8, "M");
}

/* Years in [0, 130]; -1 and other codes for "unknown" are left alone. Returns the end of the number, NULL if none. */
static const char *take_age(const char *text, double *age) {
  while (*text == ' ' || *text == '\t') text++;
  const char *end = text;
  while (isdigit((unsigned char)*end) || *end == '.') end++;
  if (end == text || end - text > 6) return NULL;
  char number[8];
  double value;
  snprintf(number, sizeof number, "%.*s", (int)(end - text), text);
  if (!sn_parse_f64(number, false, &value) || value < 0 || value > 130) return NULL;
  *age = value;
  return end;
}

/* "key" followed by ':' (or ">:" as in "<age>: 25"); the text behind it. */
static const char *after_key(const char *text, const char *key) {
  size_t n = strlen(key);
  for (const char *p = text; *p != '\0'; p++) {
    if (strncasecmp(p, key, n) != 0 || (p > text && isalpha((unsigned char)p[-1]))) continue;
    const char *q = p + n;
    if (*q == '>') q++;
    while (*q == ' ') q++;
    if (*q == ':') return q + 1;
  }
  return NULL;
}

void sn_wfdb_parse_person(const char *comment, double *age_years, char sex[8]) {
  const char *age = after_key(comment, "age"), *gender = after_key(comment, "sex");
  if (gender == NULL) gender = after_key(comment, "gender");
  if (age != NULL) take_age(age, age_years);
  if (gender != NULL) take_sex(gender, sex);
  if (age != NULL || gender != NULL) return;
  /* MIT-BIH: "69 M 1085 1629 x1": a number, then the sex, as the first two words. */
  double years;
  const char *rest = take_age(comment, &years);
  if (rest == NULL || *rest != ' ') return;
  char found[8] = "";
  while (*rest == ' ') rest++;
  if ((*rest == 'M' || *rest == 'F') && (rest[1] == ' ' || rest[1] == '\0')) {
    take_sex(rest, found);
    *age_years = years;
    snprintf(sex, 8, "%s", found);
  }
}
