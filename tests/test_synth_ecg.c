/* needs: full */
/* The synthetic cohort: a function of its seed, labels that the signals bear out, files that read back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/fs.h"
#include "core/text.h"
#include "modalities/ecg/beats.h"
#include "modalities/ecg/leads.h"
#include "modalities/ecg/synth_ecg.h"
#include "modalities/recording.h"
#include "tests/alloc_fault.h"

static sn_synth_ecg *make(const sn_synth_ecg_options *o, int64_t subject, int64_t recording) {
  sn_synth_ecg *ecg = NULL;
  sn_error err;
  if (sn_synth_ecg_make(o, subject, recording, &ecg, &err) != SN_OK) fail_msg("%s", err.message);
  return ecg;
}

static void test_function_of_the_seed(void **state) {
  (void)state;
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  o.seconds = 10;
  sn_synth_ecg *a = make(&o, 3, 1);
  o.n_subjects = 7; /* how many there are changes no one's data */
  sn_synth_ecg *b = make(&o, 3, 1), *other = make(&o, 4, 1);
  size_t bytes = (size_t)(a->n_leads * a->n_samples) * sizeof *a->mv;
  assert_memory_equal(a->mv, b->mv, bytes);
  assert_int_equal(a->age_years, b->age_years);
  assert_int_not_equal(memcmp(a->mv, other->mv, bytes), 0);
  o.seed = 1;
  sn_synth_ecg *seed = make(&o, 3, 1);
  assert_int_not_equal(memcmp(a->mv, seed->mv, bytes), 0);
  o.seed = 0, o.n_leads = 1;
  sn_synth_ecg *one = make(&o, 3, 1);
  assert_int_equal(one->n_leads, 1);
  assert_int_equal(one->leads[0], SN_LEAD_II);
  assert_memory_equal(one->mv, a->mv + a->n_samples, (size_t)a->n_samples * sizeof *a->mv);
  for (int64_t i = 0; i < a->n_leads * a->n_samples; i++) assert_true(isfinite(a->mv[i]) && fabs(a->mv[i]) < 10);
  sn_synth_ecg_destroy(a), sn_synth_ecg_destroy(b), sn_synth_ecg_destroy(other), sn_synth_ecg_destroy(seed);
  sn_synth_ecg_destroy(one);
}

typedef struct rr {
  int64_t n;
  double mean, cv, least, most, median; /* relative to the mean but for mean itself */
  int64_t v, a, l, r;
} rr;

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static rr intervals(const sn_synth_ecg *ecg) {
  rr out = {.n = ecg->n_beats - 1, .least = 1e9};
  double squares = 0, *x = malloc((size_t)ecg->n_beats * sizeof *x);
  for (int64_t i = 0; i < ecg->n_beats; i++) {
    const char code = ecg->beats[i].code[0];
    out.v += code == 'V', out.a += code == 'A', out.l += code == 'L', out.r += code == 'R';
    if (i == 0) continue;
    x[i - 1] = ecg->beats[i].onset_s - ecg->beats[i - 1].onset_s;
    assert_true(x[i - 1] > 0.2);
    out.mean += x[i - 1] / (double)out.n;
  }
  for (int64_t i = 0; i < out.n; i++) {
    squares += (x[i] - out.mean) * (x[i] - out.mean) / (double)out.n;
    out.least = fmin(out.least, x[i] / out.mean), out.most = fmax(out.most, x[i] / out.mean);
  }
  out.cv = sqrt(squares) / out.mean;
  qsort(x, (size_t)out.n, sizeof *x, compare);
  out.median = x[out.n / 2] / out.mean;
  free(x);
  return out;
}

static void check_rhythm(const sn_synth_ecg *ecg) {
  rr s = intervals(ecg);
  bool plain = s.v == 0 && s.a == 0 && s.l == 0 && s.r == 0;
  switch (ecg->rhythm) {
    case SN_RHYTHM_SINUS:
    case SN_RHYTHM_ST: assert_true(plain && s.cv < 0.1); break;
    case SN_RHYTHM_AF: assert_true(plain && s.cv > 0.14); break;
    case SN_RHYTHM_PVC: assert_true(s.v >= 2 && s.a == 0 && s.least < 0.75 && s.most > 1.25); break;
    case SN_RHYTHM_PAC: assert_true(s.a >= 2 && s.v == 0 && s.least < 0.85); break;
    case SN_RHYTHM_BLOCK: assert_true(plain && s.most > 1.3 * s.median); break; /* the beat that fails */
    case SN_RHYTHM_BBB: assert_true((s.l == ecg->n_beats || s.r == ecg->n_beats) && s.cv < 0.1); break;
    default: fail_msg("rhythm %d", (int)ecg->rhythm);
  }
}

/* Mean of lead II over the beats, from 0.4 s before R to 0.4 s after, the level before P taken off. */
static void mean_beat(const sn_synth_ecg *ecg, int64_t lead, int64_t rate, double *out, int64_t half) {
  int64_t used = 0;
  memset(out, 0, (size_t)(2 * half + 1) * sizeof *out);
  for (int64_t b = 0; b < ecg->n_beats; b++) {
    int64_t at = (int64_t)floor(ecg->beats[b].onset_s * (double)rate + 0.5);
    if (at < half || at + half >= ecg->n_samples) continue;
    const double *x = ecg->mv + lead * ecg->n_samples + at;
    double level = 0;
    for (int64_t i = -rate / 10; i < -rate / 20; i++) level += x[i] / (double)(rate / 10 - rate / 20);
    for (int64_t i = -half; i <= half; i++) out[i + half] += x[i] - level;
    used++;
  }
  for (int64_t i = 0; i <= 2 * half; i++) out[i] /= (double)used;
}

static void test_labels_hold(void **state) {
  (void)state;
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  int64_t seen[SN_N_RHYTHMS] = {0};
  double af_p = 0, sinus_p = 0, st_shift = 0, sinus_shift = 0;
  for (int64_t subject = 0; subject < 60; subject++)
    for (int64_t k = 0; k < 2; k++) {
      sn_synth_ecg *ecg = make(&o, subject, k);
      assert_true(k == 1 || ecg->rhythm == SN_RHYTHM_SINUS);
      assert_true(k == 0 || ecg->rhythm != SN_RHYTHM_SINUS);
      assert_true(ecg->age_years >= 18 && ecg->age_years <= 90 && (ecg->sex == 'F' || ecg->sex == 'M'));
      check_rhythm(ecg);
      seen[ecg->rhythm]++;
      double beat[201];
      mean_beat(ecg, 1, 250, beat, 100);
      assert_true(beat[100] > 0.15); /* R stands where the beat is said to be */
      double p = 0;
      for (int i = 100 - 45; i < 100 - 30; i++) p = fmax(p, beat[i]); /* P in II: 120 to 180 ms before R */
      if (ecg->rhythm == SN_RHYTHM_AF) af_p += p;
      if (ecg->rhythm == SN_RHYTHM_SINUS) sinus_p += p;
      double worst = 0;
      for (int64_t l = 0; l < 12; l++) {
        mean_beat(ecg, l, 250, beat, 100);
        double shift = 0;
        for (int i = 100 + 18; i < 100 + 28; i++) shift += beat[i] / 10; /* 72 to 112 ms after R */
        worst = fmax(worst, fabs(shift));
      }
      if (ecg->rhythm == SN_RHYTHM_ST) st_shift += worst;
      if (ecg->rhythm == SN_RHYTHM_SINUS) sinus_shift += worst;
      sn_synth_ecg_destroy(ecg);
    }
  for (int r = 0; r < SN_N_RHYTHMS; r++) assert_true(seen[r] > 0);
  assert_true(sinus_p / (double)seen[SN_RHYTHM_SINUS] > 0.05);
  assert_true(af_p / (double)seen[SN_RHYTHM_AF] < 0.6 * sinus_p / (double)seen[SN_RHYTHM_SINUS]);
  assert_true(st_shift / (double)seen[SN_RHYTHM_ST] > sinus_shift / (double)seen[SN_RHYTHM_SINUS] + 0.1);
}

static void test_limb_leads(void **state) {
  (void)state;
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  o.seconds = 5;
  sn_synth_ecg *ecg = make(&o, 0, 1);
  int64_t n = ecg->n_samples;
  for (int64_t k = 0; k < n; k++) {
    double i = ecg->mv[k], ii = ecg->mv[n + k];
    assert_true(ecg->mv[2 * n + k] == ii - i && fabs(ecg->mv[3 * n + k] + (i + ii) / 2) < 1e-15);
  }
  sn_synth_ecg_destroy(ecg);
}

static void test_written_cohort(void **state) {
  (void)state;
  char dir[] = "/tmp/sonde synth XXXXXX", path[256];
  sn_error err;
  int64_t written = 0, reference = 0, matched = 0, detected = 0;
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  o.n_subjects = 6, o.seconds = 20, o.seed = 5;
  assert_non_null(mkdtemp(dir));
  if (sn_synth_ecg_write(&o, dir, &written, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(written, 12);
  assert_int_equal(sn_synth_ecg_write(&o, dir, &written, &err), SN_E_STATE); /* nothing is overwritten */
  sn_table *labels = NULL;
  snprintf(path, sizeof path, "%s/labels.csv", dir);
  assert_int_equal(sn_table_load(path, 0, true, &labels, &err), SN_OK);
  assert_int_equal(labels->n_rows, 12);
  assert_int_equal(labels->n_columns, 5);
  for (int64_t row = 0; row < 12; row++) {
    const char *const *cell = (const char *const *)labels->cells + row * 5;
    sn_synth_ecg *ecg = make(&o, row / 2, row % 2);
    sn_recording *recording = NULL;
    sn_annotations *list = NULL;
    sn_beats *beats = NULL;
    snprintf(path, sizeof path, "%s/%s.hea", dir, cell[0]);
    if (sn_recording_open(path, NULL, &recording, &err) != SN_OK) fail_msg("%s", err.message);
    assert_int_equal(recording->vtable->verify(recording, &err), SN_OK);
    assert_true(recording->age_years == (double)ecg->age_years && recording->sex[0] == ecg->sex);
    assert_int_equal(atoi(cell[2]), ecg->age_years);
    assert_string_equal(cell[4], sn_rhythm_name(ecg->rhythm));
    assert_int_equal(recording->n_channels, 12);
    double *x = malloc((size_t)ecg->n_samples * sizeof *x);
    for (int64_t l = 0; l < 12; l++) {
      assert_string_equal(recording->channels[l].unit, "mV");
      assert_int_equal(recording->channels[l].kind, SN_SENSOR_ECG);
      assert_int_equal(sn_lead_find(recording->channels[l].name), l);
      assert_int_equal(sn_recording_read(recording, l, 0, 0, ecg->n_samples, x, &err), SN_OK);
      for (int64_t i = 0; i < ecg->n_samples; i++)
        assert_true(fabs(x[i] - ecg->mv[l * ecg->n_samples + i]) <= 0.0005 + 1e-12);
    }
    free(x);
    assert_int_equal(sn_recording_annotations(recording, NULL, &list, &err), SN_OK);
    assert_int_equal(list->n, ecg->n_beats + 1);
    assert_string_equal(list->items[0].code, "+");
    double *onsets = malloc((size_t)list->n * sizeof *onsets);
    for (int64_t i = 0; i < ecg->n_beats; i++) {
      assert_string_equal(list->items[i + 1].code, ecg->beats[i].code);
      onsets[i] = list->items[i + 1].onset_s;
      assert_true(fabs(onsets[i] - ecg->beats[i].onset_s) <= 0.5 / 250 + 1e-9);
    }
    assert_int_equal(sn_beats_detect(recording, NULL, &beats, &err), SN_OK);
    sn_beat_score s;
    assert_int_equal(sn_beats_score(&s, onsets, ecg->n_beats, beats->onset_s, beats->n, 0.15, 0, &err), SN_OK);
    reference += s.reference, matched += s.matched, detected += s.detected;
    sn_beat_score_free(&s);
    sn_lead_check check;
    assert_int_equal(sn_leads_check(recording, &check, &err), SN_OK);
    assert_true(check.n_checked == 4 && !check.mismatch);
    free(onsets);
    sn_beats_destroy(beats);
    sn_annotations_destroy(list);
    sn_recording_destroy(recording);
    sn_synth_ecg_destroy(ecg);
  }
  assert_true((double)matched > 0.97 * (double)reference && (double)matched > 0.97 * (double)detected);
  sn_table_destroy(labels);
  assert_int_equal(sn_remove_tree(dir, &err), SN_OK);
}

static void test_out_of_memory(void **state) {
  (void)state;
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  sn_error err;
  o.seconds = 4, o.rate_hz = 100, o.n_subjects = 1;
  for (int64_t k = 0; k < 3; k++)
    for (fault_begin(); fault_next();) {
      sn_synth_ecg *ecg = NULL;
      sn_status status = sn_synth_ecg_make(&o, 2, k, &ecg, &err);
      fault_check(status);
      assert_true((ecg != NULL) == (status == SN_OK));
      sn_synth_ecg_destroy(ecg);
    }
  /* Hundreds of files, each synced: in memory where the system has a place for that. */
  char dir[64];
  snprintf(dir, sizeof dir, "%s/sonde-synth-XXXXXX", sn_path_is_directory("/dev/shm") ? "/dev/shm" : "/tmp");
  assert_non_null(mkdtemp(dir));
  for (fault_begin(); fault_next();) {
    int64_t written = 0;
    fault_check(sn_synth_ecg_write(&o, dir, &written, &err));
    assert_int_equal(sn_remove_tree(dir, NULL), SN_OK); /* only a new folder is written to */
  }
}

static void test_options(void **state) {
  (void)state;
  sn_error err;
  sn_synth_ecg *ecg = NULL;
  for (int k = 0; k < 7; k++) {
    sn_synth_ecg_options o = sn_synth_ecg_defaults();
    if (k == 0) o.n_subjects = 0;
    if (k == 1) o.recordings_per_subject = 101;
    if (k == 2) o.seconds = 1;
    if (k == 3) o.seconds = NAN;
    if (k == 4) o.rate_hz = 50;
    if (k == 5) o.n_leads = 3;
    int64_t subject = k == 6 ? -1 : 0;
    assert_int_equal(sn_synth_ecg_make(&o, subject, 0, &ecg, &err), SN_E_ARGUMENT);
    assert_null(ecg);
  }
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  int64_t written = 0;
  o.n_subjects = 1, o.seconds = 2;
  assert_int_equal(sn_synth_ecg_write(&o, "/dev/null/cohort", &written, &err), SN_E_IO);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_function_of_the_seed), cmocka_unit_test(test_labels_hold),
                                     cmocka_unit_test(test_limb_leads), cmocka_unit_test(test_written_cohort),
                                     cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_options)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
