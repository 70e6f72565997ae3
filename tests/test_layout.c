/* needs: full */
/* Positions of electrodes: against an independent computation, the definition's own relations, and real labels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/text.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/eeg/layout.h"
#include "modalities/recording.h"

#define PI 3.14159265358979323846
static const double R = SN_HEAD_RADIUS_M;

static void direction(const char *name, double u[3]) {
  double centre[3];
  int64_t e = sn_electrode_find(name);
  assert_true(e >= 0);
  sn_electrode_position(e, R, u);
  sn_head_centre(R, centre);
  for (int i = 0; i < 3; i++) u[i] = (u[i] - centre[i]) / R;
}

static double angle(const char *a, const char *b) {
  double u[3], v[3];
  direction(a, u), direction(b, v);
  return acos(fmin(fmax(u[0] * v[0] + u[1] * v[1] + u[2] * v[2], -1), 1)) * 180 / PI;
}

/* The table of make_layout.py: planes cut with the sphere, in Python; and the deviation from a published template. */
static void test_table(void **state) {
  (void)state;
  sn_table *table = NULL;
  sn_error err;
  double worst = 0, sum = 0;
  int64_t compared = 0;
  if (sn_table_load(SONDE_SOURCE_DIR "/tests/golden/layout_deviation.tsv", '\t', true, &table, &err) != SN_OK)
    fail_msg("%s", err.message);
  assert_int_equal(table->n_rows, sn_electrode_count());
  for (int64_t row = 0; row < table->n_rows; row++) {
    char *const *cell = table->cells + row * table->n_columns;
    double u[3], value, deviation;
    direction(cell[0], u);
    for (int i = 0; i < 3; i++) {
      assert_true(sn_parse_f64(cell[1 + i], false, &value));
      if (!(fabs(u[i] - value) <= 1e-9)) fail_msg("%s axis %d: %.12f, expected %.12f", cell[0], i, u[i], value);
    }
    if (!sn_parse_f64(cell[4], false, &deviation)) continue;
    worst = fmax(worst, deviation), sum += deviation, compared++;
  }
  assert_int_equal(compared, 340);
  /* docs/modalities/eeg.md states these. */
  assert_true(worst > 16.8 && worst < 16.9);
  assert_true(sum / (double)compared > 7.5 && sum / (double)compared < 7.6);
  sn_table_destroy(table);
}

static void test_definition(void **state) {
  (void)state;
  double p[3], q[3];
  static const char *const FIDUCIALS[] = {"Nz", "Iz", "T9", "T10"};
  for (int i = 0; i < 4; i++) {
    sn_electrode_position(sn_electrode_find(FIDUCIALS[i]), R, p);
    assert_true(fabs(p[2]) < 1e-15); /* the frame's own plane */
  }
  sn_electrode_position(sn_electrode_find("T10"), R, p);
  assert_true(p[0] > 0.08 && fabs(p[1]) < 1e-15); /* x to the right */
  sn_electrode_position(sn_electrode_find("Nz"), R, p);
  assert_true(p[1] > 0.08 && fabs(p[0]) < 1e-15);
  sn_electrode_position(sn_electrode_find("Cz"), R, p);
  assert_true(fabs(p[0]) < 1e-15 && fabs(p[1]) < 1e-15 && fabs(p[2] - (R - R * cos(115 * PI / 180))) < 1e-15);
  /* Steps of 10 % are 23 degrees along the midline and the coronal arc; 5 % half of that. */
  static const char *const ARCS[][2] = {{"Nz", "Fpz"}, {"Fpz", "AFz"}, {"Fz", "FCz"}, {"Cz", "CPz"}, {"POz", "Oz"},
                                        {"Oz", "Iz"},  {"T9", "T7"},   {"T7", "C5"},  {"C5", "C3"},  {"C1", "Cz"}};
  for (size_t i = 0; i < sizeof ARCS / sizeof *ARCS; i++) assert_true(fabs(angle(ARCS[i][0], ARCS[i][1]) - 23) < 1e-9);
  assert_true(fabs(angle("Fz", "FFCz") - 11.5) < 1e-9);
  assert_true(fabs(angle("C3", "C3h") - 11.5) < 1e-9);
  /* Along contours and rows neighbours are equally far from each other. */
  static const char *const EQUAL[][2] = {{"Fpz", "Fp1"}, {"Fp1", "AF7"}, {"AF7", "F7"}, {"F7", "FT7"},
                                         {"FT7", "T7"},  {"TP7", "P7"},  {"PO7", "O1"}, {"O1", "Oz"}};
  for (size_t i = 1; i < sizeof EQUAL / sizeof *EQUAL; i++)
    assert_true(fabs(angle(EQUAL[i][0], EQUAL[i][1]) - angle("Fpz", "Fp1")) < 1e-9);
  assert_true(fabs(angle("F7", "F5") - angle("F1", "Fz")) < 1e-9);
  assert_true(fabs(angle("F4", "F6") - angle("Fz", "F2")) < 1e-9);
  /* Left and right are mirror images, and all lie on the sphere. */
  for (int64_t e = 0; e < sn_electrode_count(); e++) {
    char name[32];
    snprintf(name, sizeof name, "%s", sn_electrode_name(e));
    double u[3];
    direction(name, u);
    assert_true(fabs(u[0] * u[0] + u[1] * u[1] + u[2] * u[2] - 1) < 1e-12);
    size_t digits = strcspn(name, "0123456789");
    if (name[digits] == '\0') continue;
    int number = atoi(name + digits), mirror = number % 2 ? number + 1 : number - 1;
    char other[64];
    snprintf(other, sizeof other, "%.*s%d%s", (int)digits, name, mirror, strchr(name, 'h') != NULL ? "h" : "");
    sn_electrode_position(e, R, p);
    sn_electrode_position(sn_electrode_find(other), R, q);
    assert_true(fabs(p[0] + q[0]) < 1e-15 && fabs(p[1] - q[1]) < 1e-15 && fabs(p[2] - q[2]) < 1e-15);
    assert_int_equal(number % 2 ? p[0] < 0 : p[0] > 0, 1);
  }
}

static void test_numbers(void **state) {
  (void)state;
  assert_int_equal(sn_electrode_count(), 349);
  /* Stored in checkpoints: these must never change. */
  assert_string_equal(sn_electrode_name(0), "Fp1");
  assert_string_equal(sn_electrode_name(20), "O2");
  assert_string_equal(sn_electrode_name(21), "A1");
  assert_string_equal(sn_electrode_name(25), "Nz");
  assert_string_equal(sn_electrode_name(91), "N1");
  assert_string_equal(sn_electrode_name(348), "I2h");
  assert_int_equal(sn_name_number("Fp1-F7"), 512);
  assert_int_equal(sn_name_number("A2-A1"), 548);
  assert_int_equal(sn_name_number("MEG0111"), 1024);
  assert_int_equal(sn_name_number("MEG 2643"), 1024 + ((26 - 1) * 4 + 3) * 3 + 2);
  assert_int_equal(sn_name_number("MEG2743"), -1);
  assert_int_equal(sn_name_number("MEG0153"), -1);
  assert_int_equal(sn_name_number("T3"), sn_electrode_find("T7"));
  assert_int_equal(sn_name_number("nothing"), -1);
  char name[SN_CHANNEL_NAME];
  int64_t named = 0;
  for (int32_t i = -2; i < SN_NAME_TABLE + 2; i++) {
    if (!sn_name_of_number(name, i)) continue;
    assert_int_equal(sn_name_number(name), i);
    named++;
  }
  assert_true(named > 349 + 40 + 312);
  for (int64_t e = 0; e < sn_electrode_count(); e++)
    for (int64_t k = 0; k < e; k++) assert_int_not_equal(strcasecmp(sn_electrode_name(e), sn_electrode_name(k)), 0);
  assert_int_equal(sn_electrode_stand_in(sn_electrode_find("A1")), sn_electrode_find("M1"));
  assert_int_equal(sn_electrode_stand_in(sn_electrode_find("M2")), sn_electrode_find("A2"));
  assert_int_equal(sn_electrode_stand_in(0), -1);
  assert_int_equal(sn_electrode_system_of(sn_electrode_find("AFF1h")), SN_SYSTEM_1005);
  assert_int_equal(sn_electrode_system_of(sn_electrode_find("FC5")), SN_SYSTEM_1010);
}

static void test_nearest(void **state) {
  (void)state;
  for (int64_t e = 0; e < sn_electrode_count(); e++) {
    double p[3], centre[3], off;
    sn_electrode_position(e, R, p);
    assert_int_equal(sn_electrode_nearest(p, R, &off), e);
    assert_true(off < 1e-12);
    sn_head_centre(R, centre);
    for (int i = 0; i < 3; i++) p[i] = centre[i] + 1.1 * (p[i] - centre[i]) + (i == 0 ? 0.0005 : -0.0005);
    assert_int_equal(sn_electrode_nearest(p, R, &off), e);
    assert_true(off > 1e-4 && off < 0.01);
  }
  double centre[3], nothing[3] = {NAN, 0, 0};
  sn_head_centre(R, centre);
  assert_int_equal(sn_electrode_nearest(centre, R, NULL), -1);
  assert_int_equal(sn_electrode_nearest(nothing, R, NULL), -1);
}

/* Pins in order, as MNE-Python 1.3 has them: make_standard_montage("biosemi32").ch_names, "biosemi64". */
static const char MNE_32[] =
    "Fp1 AF3 F7 F3 FC1 FC5 T7 C3 CP1 CP5 P7 P3 Pz PO3 O1 Oz O2 PO4 P4 P8 CP6 CP2 C4 T8 FC6 FC2 F4 F8 AF4 "
    "Fp2 Fz Cz ";
static const char MNE_64[] =
    "Fp1 AF7 AF3 F1 F3 F5 F7 FT7 FC5 FC3 FC1 C1 C3 C5 T7 TP7 CP5 CP3 CP1 P1 P3 P5 P7 P9 PO7 PO3 O1 Iz Oz "
    "POz Pz CPz Fpz Fp2 AF8 AF4 AFz Fz F2 F4 F6 F8 FT8 FC6 FC4 FC2 FCz Cz C2 C4 C6 T8 TP8 CP6 CP4 CP2 P2 "
    "P4 P6 P8 P10 PO8 PO4 O2 ";

static void test_biosemi(void **state) {
  (void)state;
  for (int cap = 32; cap <= 64; cap += 32) {
    const char *at = cap == 32 ? MNE_32 : MNE_64;
    for (int i = 0; i < cap; i++, at += strcspn(at, " ") + 1) {
      char pin[8], name[8];
      snprintf(pin, sizeof pin, "%c%d", 'A' + i / 32, i % 32 + 1);
      snprintf(name, sizeof name, "%.*s", (int)strcspn(at, " "), at);
      assert_string_equal(sn_electrode_name(sn_biosemi_electrode(pin, cap)), name);
    }
    assert_int_equal(*at, 0);
  }
  assert_string_equal(sn_electrode_name(sn_biosemi_electrode("A1", 64)), "Fp1");
  assert_string_equal(sn_electrode_name(sn_biosemi_electrode("B16", 64)), "Cz");
  assert_string_equal(sn_electrode_name(sn_biosemi_electrode("b32", 64)), "O2");
  assert_string_equal(sn_electrode_name(sn_biosemi_electrode("A32", 32)), "Cz");
  for (int cap = 32; cap <= 64; cap += 32) { /* each pin its own electrode of the 10-10 system */
    bool seen[349] = {false};
    for (int i = 0; i < cap; i++) {
      char pin[8];
      snprintf(pin, sizeof pin, "%c%d", 'A' + i / 32, i % 32 + 1);
      int64_t e = sn_biosemi_electrode(pin, cap);
      assert_true(e >= 0 && !seen[e] && sn_electrode_system_of(e) <= SN_SYSTEM_1010);
      seen[e] = true;
    }
  }
  assert_int_equal(sn_biosemi_electrode("B1", 32), -1);
  assert_int_equal(sn_biosemi_electrode("A33", 64), -1);
  assert_int_equal(sn_biosemi_electrode("A0", 64), -1);
  assert_int_equal(sn_biosemi_electrode("A1", 128), -1);
  assert_int_equal(sn_biosemi_electrode("Fp1", 64), -1);
}

static sn_channel channel_named(const char *name) {
  sn_channel c = {.kind = SN_SENSOR_EEG};
  snprintf(c.name, sizeof c.name, "%s", name);
  return c;
}

static void test_position_of_channel(void **state) {
  (void)state;
  double p[3], a[3], b[3];
  sn_place_options o = {0};
  sn_channel c = channel_named("C3");
  sn_electrode_position(sn_electrode_find("C3"), R, a);
  assert_int_equal(sn_layout_position(p, &c, &o), SN_POSITION_LAYOUT);
  assert_memory_equal(p, a, sizeof p);
  c.has_position = true, c.frame = SN_FRAME_HEAD, c.position_from = SN_POSITION_SIDECAR, c.position_m[0] = 0.07;
  assert_int_equal(sn_layout_position(p, &c, &o), SN_POSITION_SIDECAR); /* measured ones are never replaced */
  assert_true(p[0] == 0.07);
  c.frame = SN_FRAME_DEVICE;
  assert_int_equal(sn_layout_position(p, &c, &o), SN_POSITION_LAYOUT);
  c = channel_named("Fp1-F7");
  sn_electrode_position(sn_electrode_find("Fp1"), R, a);
  sn_electrode_position(sn_electrode_find("F7"), R, b);
  assert_int_equal(sn_layout_position(p, &c, NULL), SN_POSITION_MIDPOINT);
  for (int i = 0; i < 3; i++) assert_true(p[i] == 0.5 * (a[i] + b[i]));
  c = channel_named("B2");
  assert_int_equal(sn_layout_position(p, &c, &o), SN_POSITION_UNKNOWN);
  o.biosemi_cap = 64;
  sn_electrode_position(sn_electrode_find("Fp2"), R, a);
  assert_int_equal(sn_layout_position(p, &c, &o), SN_POSITION_LAYOUT);
  assert_memory_equal(p, a, sizeof p);
  c = channel_named("LOC-ROC");
  assert_int_equal(sn_layout_position(p, &c, &o), SN_POSITION_UNKNOWN);
  assert_true(p[0] == 0 && p[1] == 0 && p[2] == 0);
}

/* Every EEG label of the real files has an electrode or is a pair. */
static void test_real_labels(void **state) {
  (void)state;
  static const char *const FILES[] = {"eegmmi_s001/S001R01.edf", "eegmat_125hz/sub-00_rest.edf"};
  const char *root = getenv("SONDE_DATA");
  if (root == NULL) {
    print_message("skipped: SONDE_DATA is not set\n");
    skip();
  }
  for (int f = 0; f < 2; f++) {
    char path[512], head[257] = {0}, label[17] = {0};
    snprintf(path, sizeof path, "%s/eeg/%s", root, FILES[f]);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
      print_message("skipped: %s is not there\n", path);
      skip();
    }
    assert_int_equal(fread(head, 1, 256, file), 256); /* EDF: labels of 16 bytes behind a header of 256 */
    int n = atoi(head + 252), known = 0, pairs = 0;
    for (int i = 0; i < n; i++) {
      sn_channel_name name;
      assert_int_equal(fread(label, 1, 16, file), 16);
      sn_channel_name_parse(&name, label);
      if (name.electrode >= 0) known++;
      if (name.flags & SN_NAME_BIPOLAR) pairs++;
    }
    fclose(file);
    assert_int_equal(known, f == 0 ? 64 : 19);
    assert_int_equal(pairs, f == 0 ? 0 : 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),      cmocka_unit_test(test_definition),
                                     cmocka_unit_test(test_numbers),    cmocka_unit_test(test_nearest),
                                     cmocka_unit_test(test_biosemi),    cmocka_unit_test(test_position_of_channel),
                                     cmocka_unit_test(test_real_labels)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
