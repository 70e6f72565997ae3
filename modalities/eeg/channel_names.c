#include "modalities/eeg/channel_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/eeg/layout.h"

typedef struct kind_word {
  const char *word;
  sn_sensor_kind kind;
  bool loose; /* letters may follow: "HEOGL", "Respiration" */
} kind_word;

/* The first that fits counts. */
static const kind_word WORDS[] = {
    {"EOG", SN_SENSOR_EOG, true},
    {"HEOG", SN_SENSOR_EOG, true},
    {"VEOG", SN_SENSOR_EOG, true},
    {"LEOG", SN_SENSOR_EOG, false},
    {"REOG", SN_SENSOR_EOG, false},
    {"LOC", SN_SENSOR_EOG, false},
    {"ROC", SN_SENSOR_EOG, false},
    {"LUC", SN_SENSOR_EOG, false},
    {"RLC", SN_SENSOR_EOG, false},
    {"LO", SN_SENSOR_EOG, false},
    {"IO", SN_SENSOR_EOG, false},
    {"SO", SN_SENSOR_EOG, false},
    {"ECG", SN_SENSOR_ECG, true},
    {"EKG", SN_SENSOR_ECG, true},
    {"EMG", SN_SENSOR_EMG, true},
    {"chin", SN_SENSOR_EMG, false},
    {"leg", SN_SENSOR_EMG, false},
    {"LLEG", SN_SENSOR_EMG, false},
    {"RLEG", SN_SENSOR_EMG, false},
    {"LAT", SN_SENSOR_EMG, false},
    {"RAT", SN_SENSOR_EMG, false},
    {"submental", SN_SENSOR_EMG, false},
    {"masseter", SN_SENSOR_EMG, true},
    {"tib", SN_SENSOR_EMG, true},
    {"SEEG", SN_SENSOR_ECOG, false},
    {"ECoG", SN_SENSOR_ECOG, false},
    {"iEEG", SN_SENSOR_ECOG, false},
    {"resp", SN_SENSOR_RESPIRATION, true},
    {"flow", SN_SENSOR_RESPIRATION, false},
    {"airflow", SN_SENSOR_RESPIRATION, false},
    {"CFlow", SN_SENSOR_RESPIRATION, false},
    {"nasal", SN_SENSOR_RESPIRATION, false},
    {"cannula", SN_SENSOR_RESPIRATION, false},
    {"thor", SN_SENSOR_RESPIRATION, true},
    {"abdo", SN_SENSOR_RESPIRATION, true},
    {"abd", SN_SENSOR_RESPIRATION, false},
    {"chest", SN_SENSOR_RESPIRATION, false},
    {"effort", SN_SENSOR_RESPIRATION, false},
    {"temp", SN_SENSOR_TEMPERATURE, false},
    {"temperature", SN_SENSOR_TEMPERATURE, false},
    {"PPG", SN_SENSOR_PPG, false},
    {"pleth", SN_SENSOR_PPG, true},
    {"ABP", SN_SENSOR_PRESSURE, false},
    {"CVP", SN_SENSOR_PRESSURE, false},
    {"ICP", SN_SENSOR_PRESSURE, false},
    {"ART", SN_SENSOR_PRESSURE, false},
    {"status", SN_SENSOR_TRIGGER, false},
    {"trigger", SN_SENSOR_TRIGGER, true},
    {"trig", SN_SENSOR_TRIGGER, false},
    {"STI", SN_SENSOR_TRIGGER, false},
    {"stim", SN_SENSOR_TRIGGER, false},
    {"marker", SN_SENSOR_TRIGGER, true},
    {"mark", SN_SENSOR_TRIGGER, false},
    {"event", SN_SENSOR_TRIGGER, true},
    {"TTL", SN_SENSOR_TRIGGER, false},
    {"EDF Annotations", SN_SENSOR_TRIGGER, false},
    {"BDF Annotations", SN_SENSOR_TRIGGER, false},
    {"SpO2", SN_SENSOR_OTHER, false},
    {"SaO2", SN_SENSOR_OTHER, false},
    {"OSAT", SN_SENSOR_OTHER, false},
    {"pulse", SN_SENSOR_OTHER, false},
    {"PR", SN_SENSOR_OTHER, false},
    {"HR", SN_SENSOR_OTHER, false},
    {"heart", SN_SENSOR_OTHER, false},
    {"DC", SN_SENSOR_OTHER, false},
    {"photic", SN_SENSOR_OTHER, false},
    {"light", SN_SENSOR_OTHER, false},
    {"position", SN_SENSOR_OTHER, false},
    {"snore", SN_SENSOR_OTHER, false},
    {"acc", SN_SENSOR_OTHER, false},
    {"accel", SN_SENSOR_OTHER, true},
    {"gyro", SN_SENSOR_OTHER, true},
    {"GSR", SN_SENSOR_OTHER, false},
    {"EDA", SN_SENSOR_OTHER, false},
    {"IBI", SN_SENSOR_OTHER, false},
    {"bursts", SN_SENSOR_OTHER, false},
    {"suppr", SN_SENSOR_OTHER, false},
    {"CO2", SN_SENSOR_OTHER, false},
    {"EtCO2", SN_SENSOR_OTHER, false},
    {"mic", SN_SENSOR_OTHER, false},
    {"VNS", SN_SENSOR_OTHER, false},
    {"counter", SN_SENSOR_OTHER, false},
    {"battery", SN_SENSOR_OTHER, false},
    {"misc", SN_SENSOR_OTHER, false},
};

/* What may stand behind the last hyphen and is no electrode. */
static const char *const REFERENCES[] = {"REF",  "LE",   "LER", "AVG",   "AV",   "AVE",   "AVERAGE", "AR",
                                         "CAR",  "A1A2", "A12", "A1+A2", "M1M2", "M1+M2", "M12",     "CS2",
                                         "NOSE", "COM",  "GND", "VREF",  "ORG",  "LINK",  "LINKED"};

/* Bytes of a name that fit in room (with the terminator) without cutting a character. */
static size_t fits(const char *text, size_t room) {
  size_t n = strlen(text);
  if (n < room) return n;
  n = room - 1;
  while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80) n--;
  return n;
}

static void put(char *to, size_t room, const char *text) {
  size_t n = fits(text, room);
  memcpy(to, text, n);
  to[n] = '\0';
}

/* Blanks at the ends go, inner runs become one; dashes of Unicode (U+2010..U+2015, U+2212) become hyphens. */
static void squeeze(char *to, size_t room, const char *raw) {
  size_t n = 0;
  for (const char *p = raw; *p != '\0' && n + 4 < room;) {
    const unsigned char *u = (const unsigned char *)p;
    if (isspace(*u)) {
      if (n > 0 && to[n - 1] != ' ') to[n++] = ' ';
      p++;
    } else if (u[0] == 0xE2 && ((u[1] == 0x80 && u[2] >= 0x90 && u[2] <= 0x95) || (u[1] == 0x88 && u[2] == 0x92))) {
      to[n++] = '-';
      p += 3;
    } else {
      to[n++] = *p++;
    }
  }
  while (n > 0 && to[n - 1] == ' ') n--;
  to[n] = '\0'; /* a character that is cut here lies behind the room of every name */
}

static bool drop_dots(char *text) {
  size_t n = strlen(text), kept = n;
  while (kept > 0 && text[kept - 1] == '.') kept--;
  if (kept == n || kept == 0) return false;
  text[kept] = '\0';
  return true;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (unsigned char)c >= 0x80; }

static sn_sensor_kind kind_of_text(const char *text) {
  for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
    size_t n = strlen(WORDS[i].word);
    if (strncasecmp(text, WORDS[i].word, n) != 0) continue;
    if (WORDS[i].loose || !is_letter(text[n])) return WORDS[i].kind;
  }
  return SN_SENSOR_NONE;
}

/* "EEG Fp1" -> "Fp1"; what has no letter behind the prefix ("EEG 001") keeps it. */
static bool drop_prefix(char *text) {
  static const char *const PREFIXES[] = {"EEG", "POL"};
  bool dropped = false;
  for (int again = 1; again;) {
    again = 0;
    for (int i = 0; i < 2; i++) {
      if (strncasecmp(text, PREFIXES[i], 3) != 0 || text[3] == '\0' || strchr(" -_:", text[3]) == NULL) continue;
      const char *rest = text + 3;
      while (*rest != '\0' && strchr(" -_:", *rest) != NULL) rest++;
      bool letter = false;
      for (const char *p = rest; *p != '\0' && *p != '-'; p++) letter = letter || is_letter(*p) || *p == '$';
      bool is_reference = false; /* "EEG-REF" is a channel named EEG */
      for (size_t k = 0; k < sizeof REFERENCES / sizeof *REFERENCES; k++)
        is_reference = is_reference || strcasecmp(rest, REFERENCES[k]) == 0;
      if (!letter || is_reference) continue;
      memmove(text, rest, strlen(rest) + 1);
      dropped = true, again = 1;
    }
  }
  return dropped;
}

/* "ECG ECG" -> "ECG", "EKG EKG1" -> "EKG1": the type in front says what follows says too. */
static bool drop_repeated_type(char *text) {
  char *blank = strchr(text, ' ');
  if (blank == NULL) return false;
  size_t n = (size_t)(blank - text);
  if (strncasecmp(text, blank + 1, n) != 0 || is_letter(blank[1 + n])) return false;
  memmove(text, blank + 1, strlen(blank + 1) + 1);
  return true;
}

static bool drop_reference(char *text, char reference[SN_NAME_PART]) {
  char *hyphen = strrchr(text, '-');
  if (hyphen == NULL || hyphen == text) return false;
  const char *tail = hyphen + 1;
  while (*tail == ' ') tail++;
  for (size_t i = 0; i < sizeof REFERENCES / sizeof *REFERENCES; i++) {
    if (strcasecmp(tail, REFERENCES[i]) != 0) continue;
    put(reference, SN_NAME_PART, tail);
    while (hyphen > text && hyphen[-1] == ' ') hyphen--;
    *hyphen = '\0';
    return true;
  }
  return false;
}

/* "T8-P8-0": programs number channels of one name; the third part is no electrode. */
static void drop_running_number(char *text) {
  char *last = strrchr(text, '-');
  if (last == NULL || strchr(text, '-') == last || last[1] == '\0') return;
  for (const char *p = last + 1; *p != '\0'; p++)
    if (*p < '0' || *p > '9') return;
  *last = '\0';
}

static bool is_old_name(const char *text) {
  return (text[0] == 'T' || text[0] == 't') && text[1] >= '3' && text[1] <= '6' && text[2] == '\0';
}

/* The electrode that text names (-1 none); the standard spelling goes to `to`. */
static int32_t electrode_of(const char *text, char *to, size_t room, uint32_t *flags) {
  int64_t electrode = sn_electrode_find(text);
  if (electrode < 0) {
    put(to, room, text);
    return -1;
  }
  put(to, room, sn_electrode_name(electrode));
  if (is_old_name(text))
    *flags |= SN_NAME_OLD;
  else if (strcmp(text, to) != 0)
    *flags |= SN_NAME_CASE;
  if (sn_electrode_system_of(electrode) == SN_SYSTEM_EAR) *flags |= SN_NAME_EAR;
  return (int32_t)electrode;
}

/* "E1-M2", "E2-A1": eye channels of sleep recordings. */
static bool is_sleep_eye(const char *part, int32_t other) {
  return (strcasecmp(part, "E1") == 0 || strcasecmp(part, "E2") == 0) && sn_electrode_system_of(other) == SN_SYSTEM_EAR;
}

static bool parse_pair(sn_channel_name *out, const char *text, bool is_eeg) {
  char parts[2][SN_CHANNEL_NAME], *hyphen = strchr(text, '-');
  uint32_t flags = 0;
  if (hyphen == NULL || hyphen == text || strchr(hyphen + 1, '-') != NULL) return false;
  put(parts[0], (size_t)(hyphen - text) + 1, text);
  put(parts[1], SN_CHANNEL_NAME, hyphen + 1);
  sn_sensor_kind kinds[2];
  int32_t electrodes[2];
  for (int i = 0; i < 2; i++) {
    char *part = sn_trim(parts[i]);
    if (drop_dots(part)) flags |= SN_NAME_DOTS;
    if (part[0] == '\0') return false;
    electrodes[i] = electrode_of(part, out->part[i], SN_NAME_PART, &flags);
    kinds[i] = electrodes[i] >= 0 ? SN_SENSOR_EEG : kind_of_text(part);
  }
  bool eyes = kinds[0] == SN_SENSOR_EOG && kinds[1] == SN_SENSOR_EOG;
  if (electrodes[0] < 0 && electrodes[1] < 0 && !is_eeg && !eyes) {
    out->part[0][0] = out->part[1][0] = '\0';
    return false;
  }
  out->flags |= flags | SN_NAME_BIPOLAR;
  if (electrodes[0] < 0 || electrodes[1] < 0) out->flags |= SN_NAME_UNKNOWN;
  out->pair[0] = electrodes[0], out->pair[1] = electrodes[1];
  out->kind = is_eeg || electrodes[0] >= 0 || electrodes[1] >= 0 ? SN_SENSOR_EEG : SN_SENSOR_EOG;
  for (int i = 0; i < 2; i++) {
    if (kinds[i] != SN_SENSOR_NONE && kinds[i] != SN_SENSOR_EEG) out->kind = kinds[i];
    if (electrodes[1 - i] >= 0 && is_sleep_eye(out->part[i], electrodes[1 - i])) out->kind = SN_SENSOR_EOG;
  }
  snprintf(out->name, sizeof out->name, "%s-%s", out->part[0], out->part[1]);
  return true;
}

void sn_channel_name_parse(sn_channel_name *out, const char *raw) {
  char text[SN_CHANNEL_NAME + 32];
  *out = (sn_channel_name){.electrode = -1, .pair = {-1, -1}, .duplicate_of = -1};
  squeeze(text, sizeof text, raw);
  if (strncmp(text, raw, sizeof text) != 0) out->flags |= SN_NAME_TRIMMED;
  if (drop_dots(text)) out->flags |= SN_NAME_DOTS;
  bool is_eeg = strncasecmp(text, "EEG", 3) == 0 && !is_letter(text[3]);
  if (drop_prefix(text)) out->flags |= SN_NAME_PREFIX;
  if (drop_repeated_type(text)) out->flags |= SN_NAME_PREFIX;
  if (drop_reference(text, out->reference)) out->flags |= SN_NAME_REFERENCE;
  if (drop_dots(text)) out->flags |= SN_NAME_DOTS;
  out->kind = kind_of_text(text);
  if (out->kind == SN_SENSOR_NONE || strchr(text, ' ') == NULL) {
    /* A type word followed by more ("EOG Fp1-A2") is no pair of electrodes. */
    drop_running_number(text);
    if (parse_pair(out, text, is_eeg)) return;
    out->electrode = electrode_of(text, out->name, sizeof out->name, &out->flags);
    if (out->electrode >= 0) {
      out->kind = SN_SENSOR_EEG;
      return;
    }
  }
  put(out->name, sizeof out->name, text);
  out->flags |= SN_NAME_UNKNOWN;
  if (out->kind == SN_SENSOR_NONE && is_eeg) out->kind = SN_SENSOR_EEG;
}

/* --- a recording's labels together --- */

/* A..H and a number of 1 to 32, "A1" or "A01". */
static int pin_number(const char *name) {
  int number = 0;
  if ((name[0] | 0x20) < 'a' || (name[0] | 0x20) > 'h' || name[1] == '\0') return 0;
  for (const char *p = name + 1; *p != '\0'; p++) {
    if (*p < '0' || *p > '9') return 0;
    number = 10 * number + *p - '0';
    if (number > 32) return 0;
  }
  return number;
}

static void mark_pins(sn_channel_name *names, const char *const *raw, int64_t n) {
  bool a1 = false, a2 = false, more = false;
  for (int64_t i = 0; i < n; i++) {
    int number = (names[i].name[0] | 0x20) == 'a' ? pin_number(names[i].name) : 0;
    a1 = a1 || number == 1, a2 = a2 || number == 2, more = more || number > 2;
  }
  if (!a1 || !a2 || !more) return;
  for (int64_t i = 0; i < n; i++) {
    if (pin_number(names[i].name) == 0) continue;
    names[i].electrode = -1;
    names[i].kind = SN_SENSOR_EEG;
    names[i].flags = (names[i].flags & ~(uint32_t)(SN_NAME_EAR | SN_NAME_CASE)) | SN_NAME_UNKNOWN | SN_NAME_PIN;
  }
}

sn_status sn_channel_names_parse(sn_channel_name *out, const char *const *raw, int64_t n, sn_error *err) {
  int64_t slots = 16, *table = NULL;
  while (slots < 2 * n) slots *= 2;
  SN_TRY(sn_alloc(&table, slots, sizeof *table, "channel names", err));
  for (int64_t i = 0; i < n; i++) sn_channel_name_parse(&out[i], raw[i]);
  mark_pins(out, raw, n);
  for (int64_t i = 0; i < n; i++) {
    uint64_t hash = 14695981039346656037u + (uint64_t)out[i].kind;
    for (const char *p = out[i].name; *p != '\0'; p++) hash = (hash ^ (unsigned char)*p) * 1099511628211u;
    int64_t slot = (int64_t)(hash & (uint64_t)(slots - 1)); /* holds index + 1 */
    while (table[slot] != 0 &&
           (out[table[slot] - 1].kind != out[i].kind || strcmp(out[table[slot] - 1].name, out[i].name) != 0))
      slot = (slot + 1) & (slots - 1);
    if (table[slot] == 0)
      table[slot] = i + 1;
    else
      out[i].duplicate_of = table[slot] - 1, out[i].flags |= SN_NAME_DUPLICATE;
  }
  sn_free(table);
  return SN_OK;
}

static void say(char text[SN_NAME_TEXT], const char *format, ...) SN_PRINTF(2, 3);
static void say(char text[SN_NAME_TEXT], const char *format, ...) {
  size_t n = strlen(text);
  if (n > 0 && n + 3 < SN_NAME_TEXT) memcpy(text + n, ", ", 3), n += 2;
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, SN_NAME_TEXT - n, format, args);
  va_end(args);
}

void sn_channel_name_describe(char text[SN_NAME_TEXT], const sn_channel_name *name, const char *raw) {
  text[0] = '\0';
  if (name->flags & SN_NAME_TRIMMED) say(text, "blanks removed");
  if (name->flags & SN_NAME_DOTS) say(text, "dots removed");
  if (name->flags & SN_NAME_PREFIX) say(text, "type in front dropped");
  if (name->flags & SN_NAME_REFERENCE) say(text, "reference %s dropped", name->reference);
  if (name->flags & SN_NAME_CASE) say(text, "standard spelling");
  if (name->flags & SN_NAME_OLD) say(text, "old name (T3, T4, T5, T6) under its new one");
  if (name->flags & SN_NAME_EAR) say(text, "ear lobe and mastoid may stand for each other");
  if (name->flags & SN_NAME_BIPOLAR) say(text, "difference of two");
  if (name->flags & SN_NAME_PIN)
    say(text, "a pin of an amplifier, no electrode");
  else if (name->flags & SN_NAME_UNKNOWN && name->kind == SN_SENSOR_EEG)
    say(text, "not an electrode of the 10-05 system");
  if (name->flags & SN_NAME_DUPLICATE) say(text, "second channel of that name");
}

/* --- applied to a recording --- */

static sn_status warn_of(sn_recording *recording, const sn_channel_name *names, int64_t c, sn_error *err) {
  const sn_channel_name *name = &names[c];
  const char *raw = recording->channels[c].raw_name;
  if (name->flags & SN_NAME_DUPLICATE)
    SN_TRY(sn_recording_warn(recording, "channel_duplicate", raw, err,
                             "\"%.48s\" and \"%.48s\" are both %.48s; the first is taken",
                             recording->channels[name->duplicate_of].raw_name, raw, name->name));
  if (name->flags & (SN_NAME_OLD | SN_NAME_EAR))
    SN_TRY(sn_recording_warn(recording, "channel_alias", raw, err, "\"%.48s\" is taken as %.48s%s", raw, name->name,
                             name->flags & SN_NAME_EAR ? " (ear lobe and mastoid may stand for each other)" : ""));
  if (name->flags & SN_NAME_UNKNOWN && recording->channels[c].kind == SN_SENSOR_EEG)
    SN_TRY(sn_recording_warn(recording, "channel_unknown", raw, err,
                             "\"%.48s\" is %s: its position must come from a file", raw,
                             name->flags & SN_NAME_PIN ? "a pin of an amplifier" : "no electrode of the 10-05 system"));
  return SN_OK;
}

static void set_reference(sn_recording *recording, const sn_channel_name *names) {
  const char *common = NULL;
  if (recording->reference[0] != '\0') return;
  for (int64_t c = 0; c < recording->n_channels; c++) {
    if (recording->channels[c].kind != SN_SENSOR_EEG) continue;
    if (names[c].reference[0] == '\0' || (common != NULL && strcasecmp(common, names[c].reference) != 0)) return;
    common = names[c].reference;
  }
  if (common != NULL) put(recording->reference, sizeof recording->reference, common);
}

sn_status sn_channel_names_apply(sn_recording *recording, sn_sensor_kind otherwise, sn_error *err) {
  sn_status status;
  const char **raw = NULL;
  sn_channel_name *names = NULL;
  int64_t n = recording->n_channels;
  SN_TRY_GOTO(sn_alloc(&raw, n, sizeof *raw, "channel names", err), done);
  SN_TRY_GOTO(sn_alloc(&names, n, sizeof *names, "channel names", err), done);
  for (int64_t c = 0; c < n; c++) raw[c] = recording->channels[c].raw_name;
  SN_TRY_GOTO(sn_channel_names_parse(names, raw, n, err), done);
  for (int64_t c = 0; c < n; c++) {
    sn_channel *channel = &recording->channels[c];
    put(channel->name, sizeof channel->name, names[c].name);
    if (channel->kind == SN_SENSOR_NONE) channel->kind = names[c].kind != SN_SENSOR_NONE ? names[c].kind : otherwise;
  }
  for (int64_t c = 0; c < n; c++) SN_TRY_GOTO(warn_of(recording, names, c, err), done);
  set_reference(recording, names);
  status = SN_OK;
done:
  sn_free(raw);
  sn_free(names);
  return status;
}
