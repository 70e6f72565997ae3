/* needs: full */
/* The synthetic EEG cohort: a function of its seed, labels that the signals bear out, files that read back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/fs.h"
#include "core/text.h"
#include "modalities/eeg/band_power.h"
#include "modalities/eeg/channel_names.h"
#include "modalities/eeg/layout.h"
#include "modalities/eeg/synth_eeg.h"
#include "modalities/recording.h"
#include "tests/alloc_fault.h"

static sn_synth_eeg *make(const sn_synth_eeg_options *o, int64_t subject, int64_t recording) {
  sn_synth_eeg *eeg = NULL;
  sn_error err;
  if (sn_synth_eeg_make(o, subject, recording, &eeg, &err) != SN_OK) fail_msg("%s", err.message);
  return eeg;
}

static void test_function_of_the_seed(void **state) {
  (void)state;
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  o.seconds = 8;
  sn_synth_eeg *a = make(&o, 3, 1);
  o.n_subjects = 4; /* how many there are changes no one's data */
  sn_synth_eeg *b = make(&o, 3, 1), *other = make(&o, 2, 1);
  size_t bytes = (size_t)(a->n_channels * a->n_samples) * sizeof *a->uv;
  assert_int_equal(a->n_channels, b->n_channels);
  assert_memory_equal(a->uv, b->uv, bytes);
  for (int64_t i = 0; i < a->n_channels * a->n_samples; i++) assert_true(isfinite(a->uv[i]) && fabs(a->uv[i]) < 2000);
  assert_true(other->n_samples != a->n_samples || memcmp(a->uv, other->uv, 8 * (size_t)a->n_samples) != 0);
  o.seed = 1;
  sn_synth_eeg *seed = make(&o, 3, 1);
  assert_true(seed->n_samples != a->n_samples || memcmp(a->uv, seed->uv, 8 * (size_t)a->n_samples) != 0);
  /* The person is the same under every headset and in every recording. */
  o.seed = 0, o.headset = 64;
  sn_synth_eeg *more = make(&o, 3, 2);
  assert_int_equal(more->person.age, a->person.age);
  assert_true(more->person.alpha_hz == a->person.alpha_hz);
  assert_int_equal(more->n_channels, 65);
  sn_synth_eeg_destroy(a), sn_synth_eeg_destroy(b), sn_synth_eeg_destroy(other), sn_synth_eeg_destroy(seed);
  sn_synth_eeg_destroy(more);
}

static int64_t find(const sn_synth_eeg *eeg, const char *electrode) {
  for (int64_t c = 0; c < eeg->n_channels; c++)
    if (strcmp(eeg->channels[c].electrode, electrode) == 0) return c;
  fail_msg("no %s", electrode);
  return -1;
}

/* Power in [low, high) at an electrode, uV^2; *peak: the frequency of the largest density in it. */
static double power(const sn_synth_eeg *eeg, const char *electrode, double low, double high, double *peak) {
  sn_welch *welch = NULL;
  sn_error err;
  int64_t pieces = 0;
  assert_int_equal(sn_welch_create((double)eeg->rate_hz, 4, &welch, &err), SN_OK);
  double *density = calloc((size_t)sn_welch_bins(welch), sizeof *density), best = 0;
  assert_int_equal(
      sn_welch_add(density, &pieces, welch, eeg->uv + find(eeg, electrode) * eeg->n_samples, eeg->n_samples, &err),
      SN_OK);
  for (int64_t k = 0; k < sn_welch_bins(welch); k++) {
    double f = (double)k * sn_welch_resolution(welch);
    density[k] /= (double)pieces;
    if (peak != NULL && f >= low && f < high && density[k] > best) best = density[k], *peak = f;
  }
  double sum = sn_band_power(density, welch, low, high);
  sn_welch_destroy(welch);
  free(density);
  return sum;
}

/* Eyes, age and evoked responses are in the signals as the labels say. */
static void test_labels_hold(void **state) {
  (void)state;
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  double ratio = 0, close = 0, n = 0, used = 0;
  o.headset = 19;
  for (int64_t s = 0; s < 12; s++) {
    sn_synth_eeg *closed = make(&o, s, 0), *open = make(&o, s, 1);
    assert_true(closed->person.age >= 18 && closed->person.age <= 80);
    double peak = 0;
    bool calm = closed->channels[find(closed, "O1")].bad == NULL && open->channels[find(open, "O1")].bad == NULL &&
                !closed->person.epilepsy;
    if (calm) {
      ratio += log10(power(closed, "O1", 7.5, 13, &peak) / power(open, "O1", 7.5, 13, NULL));
      close += fabs(peak - closed->person.alpha_hz) < 1.3, used++;
    }
    assert_int_equal(closed->brain->events[0].type[5], 'c');
    assert_int_equal(open->brain->events[0].type[5], 'o');
    int64_t seizures = closed->brain->n_events - 1;
    assert_int_equal(seizures > 0, closed->person.epilepsy && seizures > 0); /* none in controls */
    n += closed->person.epilepsy;
    sn_synth_eeg_destroy(closed), sn_synth_eeg_destroy(open);
  }
  assert_true(n >= 1 && used >= 5);
  assert_true(ratio / used > 0.3);
  assert_true(close / used > 0.7);
  /* P3: targets minus standards at Pz, 0.28 to 0.45 s after the stimulus, over people. */
  double difference = 0;
  o.seconds = 120;
  for (int64_t s = 0; s < 6; s++) {
    sn_synth_eeg *eeg = make(&o, s, 2);
    double sum[2] = {0}, count[2] = {0};
    const double *pz = eeg->uv + find(eeg, "Pz") * eeg->n_samples;
    for (int64_t e = 0; e < eeg->brain->n_events; e++) {
      const sn_brain_event *event = &eeg->brain->events[e];
      int target = strcmp(event->type, "target") == 0;
      assert_true(target || strcmp(event->type, "standard") == 0);
      int64_t at = (int64_t)floor(event->onset_s * 200 + 0.5);
      for (int i = 56; i < 90; i++) sum[target] += pz[at + i] / 34;
      count[target]++;
    }
    assert_true(count[1] > 5 && count[0] > 2 * count[1]);
    difference += fabs(sum[1] / count[1] - sum[0] / count[0]) / 6;
    sn_synth_eeg_destroy(eeg);
  }
  assert_true(difference > 1.0); /* uV */
}

/* Blinks are largest at the front, with the eyes open alone; bad channels are what they are said to be. */
static void test_artefacts(void **state) {
  (void)state;
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  int64_t flat = 0, clipped = 0;
  o.headset = 64, o.seconds = 20, o.rate_hz = 200;
  for (int64_t s = 0; s < 24; s++) {
    sn_synth_eeg *eeg = make(&o, s, s % 2);
    for (int64_t c = 0; c < eeg->n_channels; c++) {
      const double *x = eeg->uv + c * eeg->n_samples;
      double most = 0;
      for (int64_t i = 0; i < eeg->n_samples; i++) most = fmax(most, fabs(x[i]));
      if (eeg->channels[c].bad == NULL) {
        assert_true(most > 1);
        continue;
      }
      bool is_flat = strcmp(eeg->channels[c].bad, "flat") == 0;
      flat += is_flat, clipped += !is_flat;
      assert_true(is_flat ? most == 0 : most == 40);
    }
    int64_t front = find(eeg, "Fp1"), back = find(eeg, "Oz");
    if (eeg->channels[front].bad == NULL && eeg->channels[back].bad == NULL && !eeg->person.epilepsy) {
      double most[2] = {0};
      for (int64_t i = 0; i < eeg->n_samples; i++) {
        most[0] = fmax(most[0], fabs(eeg->uv[front * eeg->n_samples + i]));
        most[1] = fmax(most[1], fabs(eeg->uv[back * eeg->n_samples + i]));
      }
      if (s % 2 == 1)
        assert_true(most[0] > 40 && most[0] > most[1]);
      else
        assert_true(most[0] < 60);
    }
    sn_synth_eeg_destroy(eeg);
  }
  assert_true(flat >= 1 && clipped >= 1);
}

/* A data set on disk: EDF that reads back, tables that agree with it. */
static void test_written(void **state) {
  (void)state;
  char dir[] = "/tmp/sonde synth XXXXXX", path[300];
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  sn_error err;
  int64_t written = 0, electrodes = 0;
  o.n_subjects = 5, o.seconds = 5;
  for (int n_64 = 0; n_64 == 0 || n_64 == 5; o.seed++) { /* the first seed with both, with positions and without */
    n_64 = 0;
    for (int64_t s = 0; s < 5; s++) n_64 += sn_synth_eeg_headset(&o, s) == 64;
  }
  o.seed--;
  assert_non_null(mkdtemp(dir));
  if (sn_synth_eeg_write(&o, dir, &written, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(written, 15);
  assert_int_equal(sn_synth_eeg_write(&o, dir, &written, &err), SN_E_STATE); /* nothing is overwritten */
  sn_table *people = NULL;
  snprintf(path, sizeof path, "%s/participants.tsv", dir);
  assert_int_equal(sn_table_load(path, 0, true, &people, &err), SN_OK);
  assert_int_equal(people->n_rows, 5);
  for (int64_t s = 0; s < 5; s++)
    for (int64_t k = 0; k < 3; k++) {
      sn_synth_eeg *eeg = make(&o, s, k);
      sn_recording *r = NULL;
      sn_table *channels = NULL;
      char stem[200];
      snprintf(stem, sizeof stem, "%s/sub-%03d/eeg/sub-%03d_task-%s", dir, (int)s + 1, (int)s + 1,
               sn_brain_task_name(eeg->task));
      snprintf(path, sizeof path, "%s_eeg.edf", stem);
      if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
      snprintf(path, sizeof path, "%s_channels.tsv", stem);
      assert_int_equal(sn_table_load(path, 0, true, &channels, &err), SN_OK);
      assert_int_equal(channels->n_rows, r->n_channels);
      assert_int_equal(r->n_channels, eeg->n_channels);
      assert_string_equal(people->cells[s * people->n_columns + 2], r->sex);
      assert_int_equal(atoi(people->cells[s * people->n_columns + 1]), r->age_years);
      double *x = malloc((size_t)eeg->n_samples * sizeof *x);
      for (int64_t c = 0; c < r->n_channels; c++) {
        double most = 0;
        assert_string_equal(channels->cells[c * channels->n_columns], r->channels[c].raw_name);
        assert_string_equal(channels->cells[c * channels->n_columns + 4],
                            eeg->channels[c].bad != NULL ? "bad" : "good");
        assert_string_equal(r->channels[c].name, eeg->channels[c].is_eye ? "VEOG" : eeg->channels[c].electrode);
        assert_int_equal(r->channels[c].kind, eeg->channels[c].is_eye ? SN_SENSOR_EOG : SN_SENSOR_EEG);
        assert_string_equal(r->channels[c].unit, "uV");
        assert_int_equal(sn_recording_samples(r, c, 0), eeg->n_samples);
        assert_int_equal(sn_recording_read(r, c, 0, 0, eeg->n_samples, x, &err), SN_OK);
        for (int64_t i = 0; i < eeg->n_samples; i++) most = fmax(most, fabs(x[i] - eeg->uv[c * eeg->n_samples + i]));
        assert_true(most < 0.02);
      }
      free(x);
      sn_annotations *list = NULL;
      assert_int_equal(sn_recording_annotations(r, NULL, &list, &err), SN_OK);
      assert_int_equal(list->n, eeg->brain->n_events);
      for (int64_t e = 0; e < list->n; e++) {
        assert_true(fabs(list->items[e].onset_s - eeg->brain->events[e].onset_s) < 1e-6);
        assert_string_equal(list->items[e].code, eeg->brain->events[e].type);
      }
      sn_annotations_destroy(list);
      snprintf(path, sizeof path, "%s/sub-%03d/eeg/sub-%03d_electrodes.tsv", dir, (int)s + 1, (int)s + 1);
      assert_int_equal(sn_path_exists(path), eeg->headset == 64);
      electrodes += eeg->headset == 64;
      for (int64_t c = 0; c < eeg->n_channels && !eeg->channels[c].is_eye; c++) { /* near where the layout has them */
        double p[3], d = 0;
        sn_electrode_position(sn_electrode_find(eeg->channels[c].electrode), eeg->person.radius_m, p);
        for (int i = 0; i < 3; i++) d += pow(p[i] - eeg->channels[c].position_m[i], 2);
        assert_true(d > 0 && sqrt(d) < 0.02);
      }
      sn_table_destroy(channels);
      sn_recording_destroy(r);
      sn_synth_eeg_destroy(eeg);
    }
  assert_true(electrodes > 0 && electrodes < 15);
  sn_table_destroy(people);
  assert_int_equal(sn_remove_tree(dir, &err), SN_OK);
}

static void test_errors(void **state) {
  (void)state;
  sn_error err;
  sn_synth_eeg *eeg = NULL;
  for (int k = 0; k < 9; k++) {
    sn_synth_eeg_options o = sn_synth_eeg_defaults();
    if (k == 0) o.n_subjects = 0;
    if (k == 1) o.n_subjects = 1000;
    if (k == 2) o.recordings_per_subject = 4;
    if (k == 3) o.seconds = 3;
    if (k == 4) o.rate_hz = 50;
    if (k == 5) o.headset = 20;
    assert_int_equal(sn_synth_eeg_make(&o, k == 6 ? -1 : 0, k == 7 ? 3 : k == 8 ? -1 : 0, &eeg, &err), SN_E_ARGUMENT);
    assert_null(eeg);
  }
  sn_synth_eeg_options o = sn_synth_eeg_defaults();
  int64_t written = 0;
  o.seconds = 4, o.rate_hz = 100, o.headset = 19, o.n_subjects = 1, o.recordings_per_subject = 1;
  assert_int_equal(sn_synth_eeg_write(&o, "/dev/null/cohort", &written, &err), SN_E_IO);
  for (fault_begin(); fault_next();) {
    sn_status status = sn_synth_eeg_make(&o, 1, 2, &eeg, &err);
    fault_check(status);
    assert_true((eeg != NULL) == (status == SN_OK));
    sn_synth_eeg_destroy(eeg);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_function_of_the_seed), cmocka_unit_test(test_labels_hold),
                                     cmocka_unit_test(test_artefacts), cmocka_unit_test(test_written),
                                     cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
