/* needs: full */
/* Labels of EEG files in one spelling, with a record of what was done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modalities/eeg/channel_names.h"
#include "modalities/eeg/layout.h"
#include "modalities/recording.h"
#include "tests/alloc_fault.h"
#include "tests/memory_recording.h"

typedef struct label_case {
  const char *raw, *name;
  sn_sensor_kind kind;
  uint32_t flags;
} label_case;

static void test_labels(void **state) {
  (void)state;
  enum {
    T = SN_NAME_TRIMMED,
    P = SN_NAME_PREFIX,
    R = SN_NAME_REFERENCE,
    D = SN_NAME_DOTS,
    C = SN_NAME_CASE,
    O = SN_NAME_OLD,
    E = SN_NAME_EAR,
    B = SN_NAME_BIPOLAR,
    U = SN_NAME_UNKNOWN
  };
  static const label_case CASES[] = {
      {"Fp1", "Fp1", SN_SENSOR_EEG, 0},
      {"EEG FP1-REF", "Fp1", SN_SENSOR_EEG, P | R | C},
      {"EEG T3-LE", "T7", SN_SENSOR_EEG, P | R | O},
      {"T3", "T7", SN_SENSOR_EEG, O},
      {"t7", "T7", SN_SENSOR_EEG, C},
      {"T4", "T8", SN_SENSOR_EEG, O},
      {"t5", "P7", SN_SENSOR_EEG, O},
      {"T6", "P8", SN_SENSOR_EEG, O},
      {"POL Fp1", "Fp1", SN_SENSOR_EEG, P},
      {"EEG Fp1-Ref", "Fp1", SN_SENSOR_EEG, P | R},
      {"EEG F4-AVG", "F4", SN_SENSOR_EEG, P | R},
      {"EEG C3-A1A2", "C3", SN_SENSOR_EEG, P | R},
      {"Fc5.", "FC5", SN_SENSOR_EEG, D | C},
      {"Cz..", "Cz", SN_SENSOR_EEG, D},
      {"T10.", "T10", SN_SENSOR_EEG, D},
      {" AFF1H ", "AFF1h", SN_SENSOR_EEG, T | C},
      {"A1", "A1", SN_SENSOR_EEG, E},
      {"m2", "M2", SN_SENSOR_EEG, E | C},
      {"EEG A2-A1", "A2-A1", SN_SENSOR_EEG, P | B | E},
      {"Fp1-F7", "Fp1-F7", SN_SENSOR_EEG, B},
      {"FP1 - f7", "Fp1-F7", SN_SENSOR_EEG, B | C},
      {"Fp1\xE2\x80\x93"
       "F7",
       "Fp1-F7", SN_SENSOR_EEG, T | B}, /* en dash */
      {"T3-T5", "T7-P7", SN_SENSOR_EEG, B | O},
      {"EEG Fpz-Cz", "Fpz-Cz", SN_SENSOR_EEG, P | B},
      {"T8-P8-0", "T8-P8", SN_SENSOR_EEG, B},
      {"C3-M2", "C3-M2", SN_SENSOR_EEG, B | E},
      {"E1-M2", "E1-M2", SN_SENSOR_EOG, B | E | U},
      {"LOC-ROC", "LOC-ROC", SN_SENSOR_EOG, B | U},
      {"EEG LOC-REF", "LOC", SN_SENSOR_EOG, P | R | U},
      {"EEG EKG1-REF", "EKG1", SN_SENSOR_ECG, P | R | U},
      {"ECG ECG", "ECG", SN_SENSOR_ECG, P | U},
      {"EKG EKG", "EKG", SN_SENSOR_ECG, P | U},
      {"ECG II", "ECG II", SN_SENSOR_ECG, U},
      {"EMG-REF", "EMG", SN_SENSOR_EMG, R | U},
      {"EMG submental", "EMG submental", SN_SENSOR_EMG, U},
      {"EOG horizontal", "EOG horizontal", SN_SENSOR_EOG, U},
      {"EOG(L)", "EOG(L)", SN_SENSOR_EOG, U},
      {"HEOGL", "HEOGL", SN_SENSOR_EOG, U},
      {"Resp oro-nasal", "Resp oro-nasal", SN_SENSOR_RESPIRATION, U},
      {"THOR RES", "THOR RES", SN_SENSOR_RESPIRATION, U},
      {"Temp rectal", "Temp rectal", SN_SENSOR_TEMPERATURE, U},
      {"Event marker", "Event marker", SN_SENSOR_TRIGGER, U},
      {"Status", "Status", SN_SENSOR_TRIGGER, U},
      {"STI 014", "STI 014", SN_SENSOR_TRIGGER, U},
      {"EDF Annotations", "EDF Annotations", SN_SENSOR_TRIGGER, U},
      {"SaO2", "SaO2", SN_SENSOR_OTHER, U},
      {"POL DC09", "DC09", SN_SENSOR_OTHER, P | U},
      {"PHOTIC-REF", "PHOTIC", SN_SENSOR_OTHER, R | U},
      {"EEG 001", "EEG 001", SN_SENSOR_EEG, U},
      {"EEG 20-LE", "EEG 20", SN_SENSOR_EEG, R | U},
      {"EEG X1-REF", "X1", SN_SENSOR_EEG, P | R | U},
      {"POL BN1", "BN1", SN_SENSOR_NONE, P | U},
      {"E1", "E1", SN_SENSOR_NONE, U},
      {"EXG1", "EXG1", SN_SENSOR_NONE, U},
      {"MEG 0113", "MEG 0113", SN_SENSOR_NONE, U},
      {"SEEG A1", "SEEG A1", SN_SENSOR_ECOG, U},
      {"EEG", "EEG", SN_SENSOR_EEG, U},
      {"EEG-REF", "EEG", SN_SENSOR_EEG, R | U},
      {"-", "-", SN_SENSOR_NONE, U},
      {".", ".", SN_SENSOR_NONE, U},
      {"", "", SN_SENSOR_NONE, U},
  };
  for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
    sn_channel_name name;
    char text[SN_NAME_TEXT];
    sn_channel_name_parse(&name, CASES[i].raw);
    if (strcmp(name.name, CASES[i].name) != 0 || name.kind != CASES[i].kind || name.flags != CASES[i].flags)
      fail_msg("\"%s\": \"%s\" kind %s flags %x; expected \"%s\" kind %s flags %x", CASES[i].raw, name.name,
               sn_sensor_kind_name(name.kind), name.flags, CASES[i].name, sn_sensor_kind_name(CASES[i].kind),
               CASES[i].flags);
    bool is_electrode = name.electrode >= 0;
    assert_int_equal(is_electrode, name.kind == SN_SENSOR_EEG && !(name.flags & (U | B)));
    if (is_electrode) assert_string_equal(sn_electrode_name(name.electrode), name.name);
    assert_int_equal(name.part[0][0] != '\0' && name.part[1][0] != '\0', (name.flags & B) != 0);
    sn_channel_name_describe(text, &name, CASES[i].raw);
    assert_int_equal(text[0] != '\0',
                     (name.flags & ~(uint32_t)U) != 0 || name.kind == SN_SENSOR_EEG ? name.flags != 0 : false);
    /* A cleaned name is a fixed point. */
    sn_channel_name again;
    sn_channel_name_parse(&again, name.name);
    assert_string_equal(again.name, name.name);
    assert_int_equal(again.electrode, name.electrode);
  }
}

static void test_pairs_and_references(void **state) {
  (void)state;
  sn_channel_name name;
  sn_channel_name_parse(&name, "EEG T3-T5");
  assert_int_equal(name.electrode, -1);
  assert_int_equal(name.pair[0], sn_electrode_find("T7"));
  assert_int_equal(name.pair[1], sn_electrode_find("P7"));
  assert_string_equal(name.part[0], "T7");
  assert_string_equal(name.part[1], "P7");
  sn_channel_name_parse(&name, "EEG Fp1-LE");
  assert_string_equal(name.reference, "LE");
  assert_int_equal(name.pair[0], -1);
  /* Longer than any name may be, with characters of several bytes: cut at a character. */
  char raw[400] = "EEG ";
  for (int i = 0; i < 120; i++) strcat(raw, "\xC3\xA9");
  sn_channel_name_parse(&name, raw);
  size_t n = strlen(name.name);
  assert_true(n > 80 && n < SN_CHANNEL_NAME && n % 2 == 0);
  for (size_t length = 0; length < 300; length++) { /* no length reads or writes beyond */
    memset(raw, 'x', length), raw[length] = '\0';
    sn_channel_name_parse(&name, raw);
    memset(raw, '-', length);
    sn_channel_name_parse(&name, raw);
    memset(raw, ' ', length);
    sn_channel_name_parse(&name, raw);
    memset(raw, '.', length);
    sn_channel_name_parse(&name, raw);
  }
}

/* Fault 20: the same electrode twice under two names, and a pair that is not its first part. */
static void test_duplicates(void **state) {
  (void)state;
  static const char *const RAW[] = {"EEG FP1-REF", "T3", "t7", "Fp1-F7", "ECG", "Fp1", "EOG", "EOG"};
  sn_channel_name names[8];
  sn_error err;
  assert_int_equal(sn_channel_names_parse(names, RAW, 8, &err), SN_OK);
  static const int DUPLICATE_OF[] = {-1, -1, 1, -1, -1, 0, -1, 6};
  for (int i = 0; i < 8; i++) {
    assert_int_equal(names[i].duplicate_of, DUPLICATE_OF[i]);
    assert_int_equal((names[i].flags & SN_NAME_DUPLICATE) != 0, DUPLICATE_OF[i] >= 0);
  }
  assert_string_equal(names[2].name, "T7");
  assert_string_equal(names[3].name, "Fp1-F7");
  assert_int_equal(names[3].electrode, -1);
}

static void test_pins(void **state) {
  (void)state;
  static const char *const PINS[] = {"A1", "A2", "A3", "C3", "Fp1", "F4", "EXG1", "Status"};
  sn_channel_name names[8];
  sn_error err;
  assert_int_equal(sn_channel_names_parse(names, PINS, 8, &err), SN_OK);
  for (int i = 0; i < 8; i++) {
    bool pin = i < 4 || i == 5;
    assert_int_equal((names[i].flags & SN_NAME_PIN) != 0, pin);
    assert_int_equal(names[i].electrode, i == 4 ? sn_electrode_find("Fp1") : -1);
  }
  static const char *const EARS[] = {"A1", "A2", "C3", "F4"};
  assert_int_equal(sn_channel_names_parse(names, EARS, 4, &err), SN_OK);
  for (int i = 0; i < 4; i++) assert_true(names[i].electrode >= 0 && !(names[i].flags & SN_NAME_PIN));
}

static const sn_warning *find_warning(const sn_recording *recording, const char *code) {
  for (int64_t i = 0; i < recording->n_warnings; i++)
    if (strcmp(recording->warnings[i].code, code) == 0) return &recording->warnings[i];
  return NULL;
}

static sn_recording *make_recording(const char *const *labels, int64_t n) {
  static const sn_recording_vtable VTABLE = {0};
  sn_recording *recording = NULL;
  sn_error err;
  if (sn_recording_create(&VTABLE, "test", NULL, &recording, &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_recording_set_channels(recording, n, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < n; i++) snprintf(recording->channels[i].raw_name, SN_CHANNEL_NAME, "%s", labels[i]);
  return recording;
}

static void test_applied(void **state) {
  (void)state;
  static const char *const LABELS[] = {"EEG FP1-LE", "EEG T3-LE", "EEG t7-LE", "EEG A1-LE",
                                       "EEG ZZ9-LE", "EKG",       "gadget"};
  sn_error err;
  sn_recording *recording = make_recording(LABELS, 7);
  recording->channels[6].kind = SN_SENSOR_NONE;
  recording->channels[5].kind = SN_SENSOR_PPG; /* a sidecar said so */
  assert_int_equal(sn_channel_names_apply(recording, SN_SENSOR_OTHER, &err), SN_OK);
  assert_string_equal(recording->channels[0].name, "Fp1");
  assert_string_equal(recording->channels[2].name, "T7");
  assert_int_equal(recording->channels[0].kind, SN_SENSOR_EEG);
  assert_int_equal(recording->channels[5].kind, SN_SENSOR_PPG);
  assert_int_equal(recording->channels[6].kind, SN_SENSOR_OTHER);
  assert_string_equal(recording->reference, "LE");
  assert_int_equal(sn_recording_find_channel(recording, "T7"), 1);
  const sn_warning *duplicate = find_warning(recording, "channel_duplicate");
  const sn_warning *alias = find_warning(recording, "channel_alias"),
                   *unknown = find_warning(recording, "channel_unknown");
  assert_true(duplicate != NULL && alias != NULL && unknown != NULL);
  assert_non_null(strstr(duplicate->message, "EEG T3-LE"));
  assert_non_null(strstr(duplicate->message, "EEG t7-LE"));
  assert_int_equal(alias->count, 2); /* T3, A1 */
  assert_int_equal(unknown->count, 1);
  assert_string_equal(unknown->where, "EEG ZZ9-LE");
  sn_recording_destroy(recording);

  static const char *const CLEAN[] = {"Fp1", "Cz"};
  recording = make_recording(CLEAN, 2);
  assert_int_equal(sn_channel_names_apply(recording, SN_SENSOR_OTHER, &err), SN_OK);
  assert_int_equal(recording->n_warnings, 0);
  assert_string_equal(recording->reference, "");
  sn_recording_destroy(recording);
}

static void test_out_of_memory(void **state) {
  (void)state;
  static const char *const LABELS[] = {"EEG T3-LE", "EEG t7-LE", "EEG X9-LE"};
  sn_error err;
  for (fault_begin(); fault_next();) {
    fault_off();
    sn_recording *recording = make_recording(LABELS, 3);
    fault_state.left = fault_state.turn;
    fault_check(sn_channel_names_apply(recording, SN_SENSOR_OTHER, &err));
    sn_recording_destroy(recording);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_labels),     cmocka_unit_test(test_pairs_and_references),
                                     cmocka_unit_test(test_duplicates), cmocka_unit_test(test_pins),
                                     cmocka_unit_test(test_applied),    cmocka_unit_test(test_out_of_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
