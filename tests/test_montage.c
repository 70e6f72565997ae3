/* needs: full */
/* References and differences: values against what they mean, what is left out and counted, what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "modalities/eeg/layout.h"
#include "modalities/eeg/montage.h"
#include "tests/alloc_fault.h"
#include "tests/memory_recording.h"

/* Channel c of this recording has the value 2^c, so that a sum tells what is in it. */
static void begin(memory_recording *m, const char *const *names, int n) {
  memory_init(m, 100, 1);
  for (int c = 0; c < n; c++) memory_channel(m, names[c], SN_SENSOR_EEG, "uV", 1);
}

static sn_montage_options options_for(const char *reference) {
  sn_montage_options o = {.eeg = true, .meg_mag = true, .meg_grad = true};
  sn_error err;
  if (sn_reference_parse(&o.reference, reference, &err) != SN_OK) fail_msg("%s", err.message);
  return o;
}

static double value_of(const sn_series_list *list, int64_t s) {
  double value = 0, common = 0;
  const sn_series *series = &list->series[s];
  for (int64_t t = 0; t < series->n_terms; t++)
    value += list->terms[series->first_term + t].weight * ldexp(1, (int)list->terms[series->first_term + t].channel);
  if (series->common < 0) return value;
  const sn_series_common *c = &list->commons[series->common];
  for (int64_t t = 0; t < c->n_terms; t++)
    common += list->terms[c->first_term + t].weight * ldexp(1, (int)list->terms[c->first_term + t].channel);
  return value - common;
}

static const sn_series *find(const sn_series_list *list, const char *name, double *value) {
  for (int64_t s = 0; s < list->n; s++)
    if (strcmp(list->series[s].name, name) == 0) {
      *value = value_of(list, s);
      return &list->series[s];
    }
  return NULL;
}

static void expect(const sn_series_list *list, const char *name, double expected) {
  double value = NAN;
  if (find(list, name, &value) == NULL) fail_msg("series %s is not there", name);
  if (!(fabs(value - expected) <= 1e-12 * fabs(expected))) fail_msg("%s: %g, expected %g", name, value, expected);
}

static void select_ok(const memory_recording *m, const sn_montage_options *o, bool planning, sn_series_list *list) {
  sn_error err;
  memset(list, 0, sizeof *list);
  if (sn_montage_select(&m->recording, o, planning, list, &err) != SN_OK) fail_msg("%s", err.message);
}

static sn_error select_fails(const memory_recording *m, const sn_montage_options *o) {
  sn_error err;
  sn_series_list list = {0};
  assert_int_equal(sn_montage_select(&m->recording, o, false, &list, &err), SN_E_ARGUMENT);
  sn_series_free(&list);
  return err;
}

static void test_as_is(void **state) {
  (void)state;
  static const char *const NAMES[] = {"Fp1", "T7", "T7", "A2-A1", "Cz", "ECG", "MEG 0113", "MEG 0112"};
  memory_recording m;
  sn_series_list list;
  begin(&m, NAMES, 8);
  m.channels[5].kind = SN_SENSOR_ECG, m.channels[6].kind = SN_SENSOR_MEG_MAG, m.channels[7].kind = SN_SENSOR_MEG_GRAD;
  for (int c = 6; c < 8; c++) {
    m.channels[c].has_position = m.channels[c].has_orientation = true, m.channels[c].frame = SN_FRAME_HEAD;
    m.channels[c].position_m[2] = 0.12, m.channels[c].orientation[c - 6] = 1;
  }
  m.channels[4].bad = true;
  sn_montage_options o = options_for("as-is");
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 5);
  assert_int_equal(list.n_bad, 1);
  assert_int_equal(list.n_left_out, 1); /* the second T7 */
  assert_non_null(strstr(list.first_left_out, "T7"));
  expect(&list, "Fp1", 1), expect(&list, "T7", 2), expect(&list, "A2-A1", 8), expect(&list, "MEG 0113", 64);
  assert_int_equal(list.series[0].id, sn_electrode_find("Fp1"));
  assert_int_equal(list.series[2].id, sn_name_number("A2-A1"));
  assert_int_equal(list.series[3].id, SN_NAME_MEG + 2);
  double p[3], a[3], b[3];
  sn_electrode_position(sn_electrode_find("T7"), SN_HEAD_RADIUS_M, p);
  assert_memory_equal(list.series[1].position_m, p, sizeof p);
  sn_electrode_position(sn_electrode_find("A1"), SN_HEAD_RADIUS_M, a);
  sn_electrode_position(sn_electrode_find("A2"), SN_HEAD_RADIUS_M, b);
  for (int i = 0; i < 3; i++) assert_true(fabs(list.series[2].position_m[i] - 0.5 * (a[i] + b[i])) < 1e-15);
  assert_true(list.series[4].orientation[1] == 1 && list.series[4].position_m[2] == 0.12);
  sn_series_free(&list);
  o.keep_bad = true, o.meg_mag = o.meg_grad = false;
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 4);
  expect(&list, "Cz", 16);
  sn_series_free(&list);
  o.keep_bad = false;
  select_ok(&m, &o, true, &list); /* bad marks are not known while planning */
  assert_int_equal(list.n, 4);
  sn_series_free(&list);
  /* In the order asked for; what is absent is no series. */
  static const char *const WANTED[] = {"T3", "nothing", "Fp1"};
  o.n_wanted = 3, o.wanted = WANTED;
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 2);
  assert_string_equal(list.series[0].name, "T7");
  assert_string_equal(list.series[1].name, "Fp1");
  sn_series_free(&list);
  o.n_wanted = 1, o.wanted = WANTED + 1; /* only what is absent */
  select_fails(&m, &o);
}

static void test_average(void **state) {
  (void)state;
  static const char *const NAMES[] = {"Fp1", "F3", "C3", "A1", "C3-P3", "O1", "F3"};
  memory_recording m;
  sn_series_list list;
  begin(&m, NAMES, 7);
  m.channels[5].bad = true;
  sn_montage_options o = options_for("average");
  double mean = (1 + 2 + 4) / 3.0; /* not the ear, the pair, the bad one, the second F3 */
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 4);
  expect(&list, "Fp1", 1 - mean), expect(&list, "F3", 2 - mean), expect(&list, "C3", 4 - mean);
  expect(&list, "C3-P3", 16);
  assert_int_equal(list.n_bad, 1);
  assert_int_equal(list.n_left_out, 2); /* the ear, the second F3 */
  sn_series_free(&list);
  o.keep_bad = true;
  select_ok(&m, &o, false, &list);
  expect(&list, "O1", 32 - mean); /* referenced, but no part of the mean */
  sn_series_free(&list);
  m.channels[1].bad = m.channels[2].bad = m.channels[6].bad = true;
  select_fails(&m, &o);
  m.channels[1].samples_per_frame = 2; /* another rate within the mean */
  for (int c = 0; c < 7; c++) m.channels[c].bad = false;
  select_fails(&m, &o);
}

static void test_named(void **state) {
  (void)state;
  static const char *const NAMES[] = {"Fp1", "Cz", "M1", "A2", "C3"};
  memory_recording m;
  sn_series_list list;
  begin(&m, NAMES, 5);
  sn_montage_options o = options_for("Cz");
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 4);
  expect(&list, "Fp1", 1 - 2), expect(&list, "C3", 16 - 2);
  sn_series_free(&list);
  o = options_for("linked-ears"); /* A1 is not there: the mastoid of its side */
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 3);
  expect(&list, "Fp1", 1 - 6), expect(&list, "Cz", 2 - 6);
  sn_series_free(&list);
  o = options_for("Pz");
  sn_error err = select_fails(&m, &o);
  assert_non_null(strstr(err.message, "Pz"));
  o = options_for("A1+M1");
  select_fails(&m, &o); /* the same channel here */
  m.channels[1].bad = true;
  o = options_for("Cz");
  select_fails(&m, &o);
}

static void test_bipolar(void **state) {
  (void)state;
  static const char *const NAMES[] = {"Fp1", "F7", "T7", "P7-T7", "O1", "MEG0111", "Fp2"};
  memory_recording m;
  sn_series_list list;
  begin(&m, NAMES, 7);
  m.channels[5].kind = SN_SENSOR_MEG_MAG;
  m.channels[5].has_position = true, m.channels[5].frame = SN_FRAME_HEAD;
  sn_montage_options o = options_for("Fp1-F7, F7-T3,T7-P7,P7-O1");
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 4);
  expect(&list, "Fp1-F7", 1 - 2), expect(&list, "F7-T7", 2 - 4), expect(&list, "T7-P7", -8); /* recorded, reversed */
  expect(&list, "MEG0111", 32);
  assert_int_equal(list.n_left_out, 1);
  assert_non_null(strstr(list.first_left_out, "P7-O1"));
  double a[3], b[3], value;
  sn_electrode_position(sn_electrode_find("Fp1"), SN_HEAD_RADIUS_M, a);
  sn_electrode_position(sn_electrode_find("F7"), SN_HEAD_RADIUS_M, b);
  const sn_series *pair = find(&list, "Fp1-F7", &value);
  for (int i = 0; i < 3; i++) assert_true(fabs(pair->position_m[i] - 0.5 * (a[i] + b[i])) < 1e-15);
  assert_int_equal(pair->id, SN_NAME_PAIRS);
  sn_series_free(&list);
  m.channels[1].bad = true;
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 2);
  assert_int_equal(list.n_bad, 1);
  sn_series_free(&list);
  o = options_for("Fz-Cz");
  o.meg_mag = false;
  select_fails(&m, &o);
  o = options_for("double-banana");
  assert_int_equal(o.reference.n_pairs, 18);
  assert_int_equal(options_for("tcp").reference.n_pairs, 22);
  assert_int_equal(options_for("transverse").reference.n_pairs, 18);
  for (int i = 0; i < 3; i++) { /* every chain's pairs are in the name table */
    static const char *const CHAINS[] = {"double-banana", "tcp", "transverse"};
    o = options_for(CHAINS[i]);
    for (int64_t k = 0; k < o.reference.n_pairs; k++) {
      char name[64];
      snprintf(name, sizeof name, "%s-%s", o.reference.pairs[k][0], o.reference.pairs[k][1]);
      assert_true(sn_name_number(name) >= SN_NAME_PAIRS);
    }
  }
}

static void test_no_position(void **state) {
  (void)state;
  static const char *const NAMES[] = {"Fp1", "X9", "B17", "MEG0111"};
  memory_recording m;
  sn_series_list list;
  begin(&m, NAMES, 4);
  m.channels[3].kind = SN_SENSOR_MEG_MAG, m.channels[3].frame = SN_FRAME_DEVICE, m.channels[3].has_position = true;
  sn_montage_options o = options_for("as-is");
  sn_error err = select_fails(&m, &o);
  assert_string_equal(err.field, "X9");
  o.place.policy = SN_PLACE_WITHOUT;
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 4);
  assert_true(list.series[0].has_position && !list.series[1].has_position && !list.series[3].has_position);
  assert_int_equal(list.series[1].id, -1);
  sn_series_free(&list);
  o.place.policy = SN_PLACE_DROP;
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 1);
  assert_int_equal(list.n_left_out, 3);
  sn_series_free(&list);
  o.place.biosemi_cap = 64; /* a pin is an electrode only when asked */
  select_ok(&m, &o, false, &list);
  assert_int_equal(list.n, 2);
  assert_string_equal(list.series[1].name, "C2");
  assert_true(list.series[1].has_position);
  sn_series_free(&list);
}

static void test_parse(void **state) {
  (void)state;
  sn_reference_options o;
  sn_error err;
  assert_int_equal(sn_reference_parse(&o, "Average", &err), SN_OK);
  assert_int_equal(o.kind, SN_REFERENCE_AVERAGE);
  assert_int_equal(sn_reference_parse(&o, "linked-ears", &err), SN_OK);
  assert_true(o.kind == SN_REFERENCE_NAMED && o.n_names == 2);
  assert_int_equal(sn_reference_parse(&o, "t3+EEG Fp2", &err), SN_OK);
  assert_string_equal(o.names[0], "T7");
  assert_string_equal(o.names[1], "Fp2");
  static const char *const BAD[] = {"avrage",        "",        "Cz+",     "Cz+cz",  "Fp1-Fp1",
                                    "Fp1-F7,Fp1-F7", "Fp1-F7,", "Fp1-XX9", "Fp1,F7", "Fp1+Fp2+F3+F4+C3+C4+P3+P4+O1"};
  for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
    if (sn_reference_parse(&o, BAD[i], &err) != SN_E_ARGUMENT) fail_msg("\"%s\" was taken", BAD[i]);
  assert_int_equal(sn_reference_parse(&o, "avrage", &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "nearest: average"));
}

static void test_json_and_memory(void **state) {
  (void)state;
  sn_string text = {0};
  sn_json_writer json;
  sn_error err;
  sn_montage_options o = options_for("A1+A2");
  sn_json_writer_init(&json, &text, 0);
  sn_json_begin_object(&json);
  sn_montage_write_json(&o, &json);
  sn_json_end_object(&json);
  assert_int_equal(sn_json_writer_finish(&json, &err), SN_OK);
  assert_non_null(strstr(text.data, "\"reference_channels\": [\"A1\", \"A2\"]"));
  assert_non_null(strstr(text.data, "\"missing_positions\": \"refuse\""));
  sn_string_free(&text);
  static const char *const NAMES[] = {"Fp1", "F7", "T7", "O1"}, *const REFERENCES[] = {"as-is", "average", "Fp1-F7"};
  memory_recording m;
  begin(&m, NAMES, 4);
  for (int i = 0; i < 3; i++) {
    o = options_for(REFERENCES[i]);
    for (fault_begin(); fault_next();) {
      sn_series_list list = {0};
      fault_check(sn_montage_select(&m.recording, &o, false, &list, &err));
      sn_series_free(&list);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_is),          cmocka_unit_test(test_average),
                                     cmocka_unit_test(test_named),          cmocka_unit_test(test_bipolar),
                                     cmocka_unit_test(test_no_position),    cmocka_unit_test(test_parse),
                                     cmocka_unit_test(test_json_and_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
