/* needs: full */
/* Real EDF and BDF files ($SONDE_DATA/eeg) against MNE-Python (tests/golden/make_edf.py) and against their own bytes; the damaged
 * ones of eeg/mutated against what their index calls acceptable.
 *
 * Where MNE is not followed: see docs/formats/edf.md. */
#include "edf_case.h"

#include <math.h>

#include "core/fs.h"
#include "core/sha256.h"
#include "golden/edf_golden.h"

static const char *data_folder;
enum { FILES = sizeof EDF_FILES / sizeof EDF_FILES[0], CHANNELS = sizeof EDF_CHANNELS / sizeof EDF_CHANNELS[0],
       NOTES = sizeof EDF_NOTES / sizeof EDF_NOTES[0], EVENTS = sizeof EDF_EVENTS / sizeof EDF_EVENTS[0] };

static sn_status open_data(const char *folder, const char *name, bool tolerant, sn_recording **r, sn_error *err) {
  char path[1024];
  const sn_open_options options = {.tolerant = tolerant, .allow_no_signal = true, .assume_unit = NULL};
  snprintf(path, sizeof path, "%s/eeg/%s%s", data_folder, folder, name);
  return sn_recording_open(path, &options, r, err);
}

static sn_recording *must_open(const char *name) {
  sn_recording *r = NULL;
  sn_error err;
  if (open_data("", name, false, &r, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
  return r;
}

static void stored_integers(void **state) {
  for (int i = 0; i < FILES; i++) {
    if (EDF_FILES[i].n_channels == 0) continue;
    sn_recording *r = must_open(EDF_FILES[i].name);
    sn_sha256 hash;
    uint8_t digest[32];
    char hex[65];
    sn_sha256_init(&hash);
    assert_int_equal(r->n_channels, EDF_FILES[i].n_channels);
    assert_int_equal(r->n_segments, 1);
    for (int64_t c = 0; c < r->n_channels; c++) {
      const int64_t total = sn_recording_samples(r, c, 0);
      for (int64_t at = 0; at < total; at += 999) { /* little-endian hosts; a chunked read as well */
        int32_t stored[999];
        const int64_t n = total - at < 999 ? total - at : 999;
        assert_int_equal(sn_recording_read_stored(r, c, 0, at, n, stored, NULL), SN_OK);
        sn_sha256_update(&hash, stored, 4 * n);
      }
    }
    sn_sha256_final(&hash, digest);
    sn_sha256_hex(digest, hex);
    if (strcmp(hex, EDF_FILES[i].sha256) != 0) fail_msg("%s: %s", EDF_FILES[i].name, hex);
    sn_recording_destroy(r);
  }
}

static void near(const char *file, int64_t channel, const char *what, double found, double expected, double scale) {
  if (!(fabs(found - expected) <= 1e-12 * scale))
    fail_msg("%s channel %d: %s is %.17g, expected %.17g", file, (int)channel, what, found, expected);
}

/* Volts where the unit is a voltage, as MNE gives them. */
static double in_volts(const sn_channel *c) {
  return strcmp(c->unit, "uV") == 0 ? 1e-6 : strcmp(c->unit, "mV") == 0 ? 1e-3 : 1;
}

static void values(void **state) {
  int compared = 0, refused = 0;
  for (int i = 0; i < CHANNELS; i++) {
    const char *name = EDF_FILES[EDF_CHANNELS[i].file].name;
    const int channel = EDF_CHANNELS[i].channel, n = EDF_CHANNELS[i].n;
    sn_recording *r = must_open(name);
    const sn_channel *c = &r->channels[channel];
    assert_int_equal(sn_recording_samples(r, channel, 0), n);
    if (fabs(sn_recording_rate(r, channel) - EDF_CHANNELS[i].rate) > 1e-9) fail_msg("%s: rate of channel %d", name, channel);
    if (c->uncalibrated) {
      refused++; /* MNE takes a channel without a unit to be in volts */
      assert_string_equal(c->unit, "");
    } else {
      double *x = malloc((size_t)n * sizeof *x), sum = 0, size = 0, weighted = 0;
      assert_int_equal(sn_recording_read(r, channel, 0, 0, n, x, NULL), SN_OK);
      const double scale = in_volts(c);
      for (int k = 0; k < n; k++) {
        x[k] *= scale;
        sum += x[k];
        size += fabs(x[k]);
        weighted += x[k] * (1 + k % 13);
      }
      const double mean = EDF_CHANNELS[i].sum_abs / n;
      near(name, channel, "the first value", x[0], EDF_CHANNELS[i].first, fabs(EDF_CHANNELS[i].first) + mean);
      near(name, channel, "the last value", x[n - 1], EDF_CHANNELS[i].last, fabs(EDF_CHANNELS[i].last) + mean);
      near(name, channel, "the sum", sum, EDF_CHANNELS[i].sum, EDF_CHANNELS[i].sum_abs);
      near(name, channel, "the sum of sizes", size, EDF_CHANNELS[i].sum_abs, EDF_CHANNELS[i].sum_abs);
      near(name, channel, "the weighted sum", weighted, EDF_CHANNELS[i].sum_weighted, 13 * EDF_CHANNELS[i].sum_abs);
      compared++;
      free(x);
    }
    sn_recording_destroy(r);
  }
  assert_true(compared > 100);
  assert_true(refused < 20);
}

static void annotations(void **state) {
  int compared = 0;
  for (int f = 0; f < FILES; f++) {
    sn_recording *r = must_open(EDF_FILES[f].name);
    sn_annotations *list;
    sn_error err;
    if (sn_recording_annotations(r, "tal", &list, &err) != SN_OK) fail_msg("%s: %s", EDF_FILES[f].name, err.message);
    int64_t k = 0;
    for (int i = 0; i < NOTES; i++) {
      if (EDF_NOTES[i].file != f) continue;
      if (k >= list->n) fail_msg("%s: more than %d annotations", EDF_FILES[f].name, (int)list->n);
      const sn_annotation *a = &list->items[k++];
      double duration = isnan(a->duration_s) ? 0 : a->duration_s; /* MNE has no "unknown" */
      if (!r->annotations_alone) duration = fmin(duration, sn_recording_duration(r) - a->onset_s); /* it cuts at the end */
      if (strcmp(a->text, EDF_NOTES[i].text) != 0 || fabs(a->onset_s - EDF_NOTES[i].onset_s) > 1e-6 || /* MNE keeps whole microseconds */
          fabs(duration - EDF_NOTES[i].duration_s) > 1e-9)
        fail_msg("%s: '%s' at %.9g for %.9g, expected '%s' at %.9g for %.9g", EDF_FILES[f].name, a->text, a->onset_s, duration,
                 EDF_NOTES[i].text, EDF_NOTES[i].onset_s, EDF_NOTES[i].duration_s);
      compared++;
    }
    assert_int_equal(k, list->n);
    sn_annotations_destroy(list);
    sn_recording_destroy(r);
  }
  assert_int_equal(compared, NOTES);
}

static void triggers(void **state) {
  for (int f = 0; f < FILES; f++) {
    sn_recording *r = must_open(EDF_FILES[f].name);
    sn_annotations *list;
    assert_int_equal(sn_recording_annotations(r, "trigger", &list, NULL), SN_OK);
    int64_t k = 0;
    for (int i = 0; i < EVENTS; i++) {
      if (EDF_EVENTS[i].file != f) continue;
      assert_true(k < list->n);
      assert_int_equal(list->items[k].sample, EDF_EVENTS[i].sample);
      assert_int_equal(list->items[k].number, EDF_EVENTS[i].value);
      k++;
    }
    assert_int_equal(k, list->n);
    sn_annotations_destroy(list);
    sn_recording_destroy(r);
  }
}

static void headers(void **state) {
  sn_recording *r = must_open("edf_edge/pyedflib/test_subsecond.edf");
  assert_string_equal(r->start_time, "2020-01-24T04:05:56.3945312");
  assert_string_equal(r->modality, "eeg");
  sn_recording_destroy(r);
  r = must_open("edf_edge/edfio/short_psg.edf");
  assert_true(r->rate_num == 1 && r->rate_den == 1 && r->channels[0].samples_per_frame == 100);
  assert_string_equal(r->channels[0].name, "Fpz-Cz");
  assert_string_equal(r->channels[5].unit, "degC");
  assert_string_equal(r->sex, "F");
  assert_true(r->channels[2].kind == SN_SENSOR_EOG && r->channels[3].kind == SN_SENSOR_RESPIRATION);
  sn_recording_destroy(r);
  r = must_open("eegmmi_s001/S001R04.edf");
  assert_string_equal(r->channels[0].name, "FC5");
  assert_string_equal(r->channels[0].raw_name, "Fc5.");
  sn_recording_destroy(r);
  r = must_open("mne_formats/edf/test_uneven_samp.edf");
  assert_true(r->rate_num == 4 && r->rate_den == 5 && sn_recording_rate(r, 1) == 12.8);
  sn_recording_destroy(r);
  r = must_open("edf_edge/edfio/SC4001EC-Hypnogram.edf");
  assert_true(r->annotations_alone);
  sn_recording_destroy(r);
  sn_error err;
  char path[1024];
  snprintf(path, sizeof path, "%s/eeg/edf_edge/edfio/SC4001EC-Hypnogram.edf", data_folder);
  assert_int_equal(sn_recording_open(path, NULL, &r, &err), SN_E_UNSUPPORTED);
}

/* ---- damaged files ---- */

static const struct {
  const char *name;
  sn_status strict, tolerant;
  int64_t samples;     /* of channel 0, where it opens */
  const char *warning; /* where it opens */
} MUTATED[] = {{"truncated_mid_record.edf", SN_E_CORRUPT, SN_OK, 2000, "truncated"},
               {"truncated_in_signal_headers.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"empty.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"nrec_minus_one.edf", SN_OK, SN_OK, 11000, "record_count"},
               {"nrec_too_small.edf", SN_OK, SN_OK, 10000, "surplus_bytes"},
               {"nrec_huge.edf", SN_E_CORRUPT, SN_OK, 11000, "truncated"},
               {"nsignals_zero.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"nsignals_not_a_number.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"header_bytes_wrong.edf", SN_E_CORRUPT, SN_OK, 11000, "header_bytes"},
               {"physical_range_zero.edf", SN_OK, SN_OK, 11000, "calibration_range"},
               {"digital_range_reversed.edf", SN_OK, SN_OK, 11000, "digital_range"},
               {"physical_range_reversed.edf", SN_OK, SN_OK, 11000, NULL},
               {"samples_per_record_negative.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"samples_per_record_huge.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"record_duration_negative.edf", SN_E_CORRUPT, SN_E_CORRUPT, 0, NULL},
               {"record_duration_comma.edf", SN_OK, SN_OK, 11000, "decimal_comma"},
               {"label_non_ascii.edf", SN_OK, SN_OK, 11000, "text_encoding"},
               {"dimension_micro_sign.edf", SN_OK, SN_OK, 11000, "text_encoding"},
               {"startdate_impossible.edf", SN_OK, SN_OK, 11000, "start_time"},
               {"labels_duplicate.edf", SN_OK, SN_OK, 11000, "channel_duplicate"},
               {"tal_unterminated.edf", SN_OK, SN_OK, -1, NULL},
               {"tal_onset_not_a_number.edf", SN_OK, SN_OK, -1, NULL},
               {"edf_plus_d_without_annotations.edf", SN_E_CORRUPT, SN_OK, 11000, "record_times"}};

static void check_damaged(const sn_recording *r, int k) {
  const bool alone = MUTATED[k].samples < 0;
  if (alone) return;
  assert_int_equal(sn_recording_samples(r, 0, -1), MUTATED[k].samples);
  if (MUTATED[k].warning != NULL && !edf_warned(r->warnings, r->n_warnings, MUTATED[k].warning))
    fail_msg("%s: no warning %s", MUTATED[k].name, MUTATED[k].warning);
  double *x = malloc((size_t)MUTATED[k].samples * sizeof *x);
  for (int64_t c = 0; c < r->n_channels; c++) {
    const int64_t n = sn_recording_samples(r, c, 0);
    sn_status status = sn_recording_read(r, c, 0, 0, n, x, NULL);
    assert_int_equal(status, r->channels[c].uncalibrated ? SN_E_UNSUPPORTED : SN_OK);
    for (int64_t i = 0; i < n && status == SN_OK; i++) assert_true(isfinite(x[i]));
  }
  free(x);
}

static void damaged(void **state) {
  for (int k = 0; k < (int)(sizeof MUTATED / sizeof MUTATED[0]); k++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      sn_recording *r = NULL;
      sn_error err = {0};
      sn_status status = open_data("mutated/edf/", MUTATED[k].name, tolerant == 1, &r, &err);
      const sn_status expected = tolerant == 1 ? MUTATED[k].tolerant : MUTATED[k].strict;
      if (status != expected)
        fail_msg("%s%s: %s (%s), expected %s", MUTATED[k].name, tolerant ? ", tolerant" : "", sn_status_name(status), err.message,
                 sn_status_name(expected));
      if (status != SN_OK) {
        assert_true(strstr(err.message, ".edf") != NULL);
        continue;
      }
      check_damaged(r, k);
      if (MUTATED[k].samples < 0) { /* lists of annotations */
        sn_annotations *list = NULL;
        status = sn_recording_annotations(r, NULL, &list, &err);
        assert_int_equal(status, tolerant == 1 ? SN_OK : SN_E_CORRUPT);
        if (status == SN_OK) assert_true(edf_warned(list->warnings, list->n_warnings, "tal"));
        sn_annotations_destroy(list);
      }
      sn_recording_destroy(r);
    }
  }
}

/* Every file of the folder is in the table above. */
static void all_damaged_files_are_known(void **state) {
  char path[1024];
  sn_dir_entry *entries = NULL;
  int64_t n = 0;
  snprintf(path, sizeof path, "%s/eeg/mutated/edf", data_folder);
  assert_int_equal(sn_dir_list(path, &entries, &n, NULL), SN_OK);
  for (int64_t i = 0; i < n; i++) {
    bool known = false;
    for (size_t k = 0; k < sizeof MUTATED / sizeof MUTATED[0]; k++) known |= strcmp(MUTATED[k].name, entries[i].name) == 0;
    if (!known) fail_msg("%s", entries[i].name);
  }
  assert_int_equal(n, sizeof MUTATED / sizeof MUTATED[0]);
  sn_dir_free(entries, n);
}

/* Inverted physical limits give the opposite sign. */
static void inverted(void **state) {
  sn_recording *a = must_open("mne_formats/edf/test_uneven_samp.edf"), *b = must_open("mutated/edf/physical_range_reversed.edf");
  double x[1000], y[1000], offset = 0;
  assert_int_equal(sn_recording_read(a, 0, 0, 0, 1000, x, NULL), SN_OK);
  assert_int_equal(sn_recording_read(b, 0, 0, 0, 1000, y, NULL), SN_OK);
  offset = x[0] + y[0]; /* twice the middle of the range */
  for (int i = 0; i < 1000; i++) assert_true(fabs(x[i] + y[i] - offset) < 1e-9 && fabs(x[i]) <= 10);
  sn_recording_destroy(a);
  sn_recording_destroy(b);
}

int main(void) {
  data_folder = getenv("SONDE_DATA");
  if (data_folder == NULL || data_folder[0] == '\0') {
    printf("skipped: SONDE_DATA is not set\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(stored_integers), cmocka_unit_test(values),
                                     cmocka_unit_test(annotations),     cmocka_unit_test(triggers),
                                     cmocka_unit_test(headers),         cmocka_unit_test(damaged),
                                     cmocka_unit_test(all_damaged_files_are_known), cmocka_unit_test(inverted)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
