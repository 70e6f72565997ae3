/* needs: full */
/* BrainVision on real files: everything as MNE-Python reads it, damaged copies as their index says. */
#include <math.h>
#include <stdio.h>

#include "format_case.h"
#include "golden_table.h"
#include "core/sha256.h"

static const char *data_folder;

static sn_recording *must_open(const char *name, bool tolerant) {
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  const sn_open_options options = {.tolerant = tolerant};
  snprintf(path, sizeof path, "%s/eeg/mne_formats/brainvision/%s", data_folder, name);
  if (sn_recording_open(path, &options, &r, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
  assert_string_equal(r->format, "brainvision");
  return r;
}

/* Samples of all segments, in the order of the file. */
static double *read_all(const sn_recording *r, int64_t channel, int64_t n) {
  double *values;
  int64_t at = 0;
  assert_int_equal(sn_alloc(&values, n, sizeof *values, "samples", NULL), SN_OK);
  for (int64_t s = 0; s < r->n_segments; s++) {
    int64_t k = sn_recording_samples(r, channel, s);
    assert_true(at + k <= n);
    assert_int_equal(sn_recording_read(r, channel, s, 0, k, values + at, NULL), SN_OK);
    at += k;
  }
  assert_int_equal(at, n);
  return values;
}

/* The stored numbers as the table's hash has them: int16, or float32 for a file of reals. */
static void hash_stored(const sn_recording *r, int64_t channel, const double *values, int64_t n, char hex[65]) {
  const bool reals = r->vtable->read_stored == NULL;
  sn_sha256 hash;
  uint8_t digest[32];
  int64_t at = 0;
  sn_sha256_init(&hash);
  for (int64_t s = 0; s < r->n_segments; s++) {
    for (int64_t i = 0, k = sn_recording_samples(r, channel, s); i < k; i++, at++) {
      if (reals) {
        float value = (float)(values[at] / r->channels[channel].unit_scale * r->channels[channel].gain);
        sn_sha256_update(&hash, &value, 4);
      } else {
        int32_t stored;
        assert_int_equal(sn_recording_read_stored(r, channel, s, i, 1, &stored, NULL), SN_OK);
        int16_t value = (int16_t)stored;
        assert_int_equal(value, stored);
        sn_sha256_update(&hash, &value, 2);
      }
    }
  }
  assert_int_equal(at, n);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, hex);
}

static void compare_channel(const sn_recording *r, const golden_table *t) {
  const int64_t c = (int64_t)golden_number(t, 1), n = (int64_t)golden_number(t, 3);
  const sn_channel *channel = &r->channels[c];
  char hex[65];
  assert_true(sn_recording_rate(r, c) == golden_number(t, 2));
  assert_string_equal(channel->raw_name, t->cells[4]);
  /* MNE gives an absent unit the format's, as we do, but does not tell them apart. */
  assert_string_equal(channel->unit_assumed ? "\xC2\xB5V" : channel->raw_unit, t->cells[5]);
  const bool placed = strcmp(t->cells[6], "-") != 0;
  assert_int_equal(channel->has_position, placed);
  for (int i = 0; i < 3 && placed; i++)
    assert_true(golden_near(channel->position_m[i], golden_number(t, 6 + i), 1e-12, 0.01));
  double *values = read_all(r, c, n), sum = 0;
  const int64_t places[4] = {0, 1, n / 2, n - 1};
  /* The table is in the unit of the header, and so is what is compared. */
  for (int i = 0; i < 4; i++)
    if (!golden_near(values[places[i]] / channel->unit_scale, golden_number(t, 9 + i), 1e-12, 1e-6))
      fail_msg("%s %s sample %lld: %.17g, expected %s", t->cells[0], t->cells[4], (long long)places[i],
               values[places[i]], t->cells[9 + i]);
  for (int64_t i = 0; i < n; i++) sum += values[i];
  assert_true(golden_near(sum / channel->unit_scale, golden_number(t, 13), 1e-9, 1e-3));
  hash_stored(r, c, values, n, hex);
  if (strcmp(hex, t->cells[14]) != 0) fail_msg("%s %s: the stored numbers differ", t->cells[0], t->cells[4]);
  sn_free(values);
}

static void as_mne_reads_them(void **state) {
  golden_table t = golden_open("brainvision.tsv");
  sn_recording *r = NULL;
  char name[128] = "";
  int rows = 0;
  for (; golden_next(&t); rows++) {
    if (strcmp(name, t.cells[0]) != 0) {
      char file[256];
      sn_recording_destroy(r);
      snprintf(name, sizeof name, "%s", t.cells[0]);
      snprintf(file, sizeof file, "%s.vhdr", name);
      r = must_open(file, false);
    }
    compare_channel(r, &t);
  }
  sn_recording_destroy(r);
  assert_true(rows >= 180);
}

static void events_as_mne_reads_them(void **state) {
  golden_table t = golden_open("brainvision_events.tsv");
  sn_recording *r = NULL;
  sn_annotations *list = NULL;
  char name[128] = "";
  int64_t rows = 0, next = 0;
  for (; golden_next(&t); rows++, next++) {
    if (strcmp(name, t.cells[0]) != 0) {
      char file[256];
      if (list != NULL) assert_int_equal(next, list->n);
      sn_annotations_destroy(list);
      sn_recording_destroy(r);
      snprintf(name, sizeof name, "%s", t.cells[0]);
      snprintf(file, sizeof file, "%s.vhdr", name);
      r = must_open(file, false);
      assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
      next = 0;
    }
    assert_true(next < list->n);
    const sn_annotation *a = &list->items[next];
    char text[256];
    snprintf(text, sizeof text, "%s/%s", a->code, a->text != NULL ? a->text : "");
    assert_string_equal(text, t.cells[1]);
    assert_int_equal(a->sample, (int64_t)golden_number(&t, 2));
    assert_true(golden_near(a->duration_s, golden_number(&t, 3), 1e-12, 1e-6));
  }
  assert_int_equal(next, list->n);
  sn_annotations_destroy(list);
  sn_recording_destroy(r);
  assert_true(rows >= 30);
}

static void by_any_of_the_three(void **state) {
  static const char *const names[3] = {"test.vhdr", "test.eeg", "test.vmrk"};
  for (int i = 0; i < 3; i++) {
    sn_recording *r = must_open(names[i], false);
    assert_string_equal(r->files[0], "test.vhdr");
    assert_string_equal(r->files[1], "test.eeg");
    sn_recording_destroy(r);
  }
}

static void what_else_the_headers_say(void **state) {
  sn_recording *r = must_open("test_old_layout_latin1_software_filter.vhdr", false);
  bool filter = false;
  for (int64_t i = 0; i < r->n_warnings; i++) filter |= strcmp(r->warnings[i].code, "software_filter") == 0;
  assert_true(filter);
  assert_int_equal(r->n_segments, 2); /* New Segment markers at points 1 and 2 */
  assert_int_equal(r->segments[0].n_frames, 1);
  assert_string_equal(r->start_time, "2007-07-16T12:22:40.937454");
  sn_recording_destroy(r);
  r = must_open("test.vhdr", false);
  const sn_sensor_kind kinds[6] = {SN_SENSOR_OTHER, SN_SENSOR_OTHER,      SN_SENSOR_OTHER, SN_SENSOR_OTHER,
                                   SN_SENSOR_OTHER, SN_SENSOR_TEMPERATURE}; /* BS, microsiemens, ARU, uS, S, degrees */
  for (int i = 0; i < 6; i++) assert_int_equal(r->channels[26 + i].kind, kinds[i]);
  assert_true(r->channels[1].unit_assumed && r->channels[2].unit_assumed && !r->channels[3].unit_assumed);
  sn_recording_destroy(r);
}

static void damaged_copies(void **state) {
  static const struct {
    const char *name;
    sn_status strict, tolerant;
    const char *word;
  } rows[] = {{"eeg_truncated", SN_E_CORRUPT, SN_E_CORRUPT, "truncated"},
              {"eeg_missing", SN_E_IO, SN_E_IO, "eeg"},
              {"channels_zero", SN_E_CORRUPT, SN_E_CORRUPT, "NumberOfChannels"},
              {"sampling_interval_zero", SN_E_CORRUPT, SN_E_CORRUPT, "SamplingInterval"},
              {"marker_beyond_end", SN_OK, SN_OK, "annotation_beyond_end"}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      char path[1024];
      sn_recording *r = NULL;
      sn_error err;
      const sn_open_options options = {.tolerant = tolerant == 1};
      const sn_status expected = tolerant ? rows[i].tolerant : rows[i].strict;
      snprintf(path, sizeof path, "%s/eeg/mutated/brainvision/%s/rec.vhdr", data_folder, rows[i].name);
      sn_status status = sn_recording_open(path, &options, &r, &err);
      if (status != expected)
        fail_msg("%s: %s: %s", rows[i].name, sn_status_name(status), status != SN_OK ? err.message : "");
      if (status != SN_OK) {
        if (strstr(err.message, rows[i].word) == NULL) fail_msg("%s: %s", rows[i].name, err.message);
        continue;
      }
      bool warned = false;
      for (int64_t k = 0; k < r->n_warnings; k++) warned |= strcmp(r->warnings[k].code, rows[i].word) == 0;
      assert_true(warned);
      sn_recording_destroy(r);
    }
  }
}

/* Formats that are not read here: told apart from damage. */
static void other_systems(void **state) {
  static const char *const names[4] = {"egi/test_egi.raw", "nicolet/test_nicolet_raw.data", "besa/simulation.avr",
                                       "besa/simulation.mul"};
  for (int i = 0; i < 4; i++) {
    char path[1024];
    sn_recording *r = NULL;
    sn_error err;
    snprintf(path, sizeof path, "%s/eeg/mne_formats/%s", data_folder, names[i]);
    assert_int_equal(sn_recording_open(path, NULL, &r, &err), SN_E_UNSUPPORTED);
  }
}

int main(void) {
  data_folder = getenv("SONDE_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/eeg/mne_formats/brainvision/test.vhdr", data_folder != NULL ? data_folder : "");
  FILE *there = data_folder != NULL ? fopen(path, "rb") : NULL;
  if (there == NULL) {
    printf("skipped: SONDE_DATA/eeg/mne_formats is not there\n");
    return 77;
  }
  fclose(there);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(as_mne_reads_them),   cmocka_unit_test(events_as_mne_reads_them),
      cmocka_unit_test(by_any_of_the_three), cmocka_unit_test(what_else_the_headers_say),
      cmocka_unit_test(damaged_copies),      cmocka_unit_test(other_systems),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
