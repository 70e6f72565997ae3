/* needs: full */
/* R peaks: the score's rules, the detector on made and on real signals, and the features made of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "modalities/ecg/beats.h"
#include "modalities/ecg/ecg_features.h"
#include "modalities/ecg/leads.h"
#include "tests/alloc_fault.h"
#include "tests/memory_recording.h"

static void test_score(void **state) {
  (void)state;
  sn_error err;
  sn_beat_score s;
  const double reference[] = {1.0, 2.0, 3.0, 4.0}, detected[] = {0.5, 1.1, 1.14, 2.9, 3.02, 4.2};
  assert_int_equal(sn_beats_score(&s, reference, 4, detected, 6, 0.15, 0, &err), SN_OK);
  /* 1.0-1.1, 2.0 missed, 3.0-3.02 (nearer than 2.9), 4.0 missed (0.2 away) */
  assert_int_equal(s.matched, 2);
  assert_int_equal(s.n_missed, 2);
  assert_true(s.missed_s[0] == 2.0 && s.missed_s[1] == 4.0);
  assert_int_equal(s.n_false, 4);
  assert_true(s.false_s[0] == 0.5 && s.false_s[1] == 1.14 && s.false_s[2] == 2.9 && s.false_s[3] == 4.2);
  assert_true(s.sensitivity == 0.5 && fabs(s.predictivity - 2.0 / 6) < 1e-15);
  assert_true(fabs(s.median_offset_s - 0.06) < 1e-12);
  sn_beat_score_free(&s);
  /* As many pairs as there can be: 1-.9 and 1.2-1.06 rather than 1-1.06 alone. */
  const double r2[] = {1.0, 1.2}, d2[] = {0.9, 1.06};
  assert_int_equal(sn_beats_score(&s, r2, 2, d2, 2, 0.15, 0, &err), SN_OK);
  assert_int_equal(s.matched, 2);
  sn_beat_score_free(&s);
  assert_int_equal(sn_beats_score(&s, reference, 4, detected, 6, 0.15, 2.5, &err), SN_OK);
  assert_true(s.reference == 2 && s.detected == 3 && s.matched == 1);
  sn_beat_score_free(&s);
  assert_int_equal(sn_beats_score(&s, NULL, 0, NULL, 0, 0.15, 0, &err), SN_OK);
  assert_true(isnan(s.sensitivity) && isnan(s.predictivity) && isnan(s.median_offset_s));
  sn_beat_score_free(&s);
  const double disorder[] = {2, 1};
  assert_int_equal(sn_beats_score(&s, disorder, 2, detected, 6, 0.15, 0, &err), SN_E_ARGUMENT);
  assert_true(sn_beat_code("N") && sn_beat_code("/") && !sn_beat_code("+") && !sn_beat_code("~") && !sn_beat_code("") &&
              !sn_beat_code("NN"));
  assert_true(sn_beat_group("L") == 'N' && sn_beat_group("a") == 'S' && sn_beat_group("E") == 'V' &&
              sn_beat_group("/") == 'Q' && sn_beat_group("+") == 0 && sn_beat_group("Q") == 'Q');
}

/* Beats as narrow Gaussians with a low, wide T wave, at irregular times; sign -1: an inverted lead. */
static int64_t make_beats(double *x, int64_t n, double rate, double sign, double *onsets, uint64_t seed) {
  sn_random random = sn_random_at(seed, SN_PURPOSE_TEST, 0, 1);
  int64_t count = 0;
  for (int64_t i = 0; i < n; i++) x[i] = 0.02 * sn_random_normal(&random) + 0.3 * sin(0.3 * (double)i / rate);
  for (double t = 0.9; t < (double)n / rate - 0.7; t += 0.6 + 0.5 * sn_random_uniform(&random)) {
    t = floor(t * rate + 0.5) / rate;
    onsets[count++] = t;
    for (int64_t i = (int64_t)((t - 0.3) * rate); i < (int64_t)((t + 0.5) * rate); i++) {
      double u = (double)i / rate - t, v = u - 0.28;
      x[i] += sign * (1.2 * exp(-u * u / (2 * 0.012 * 0.012)) + 0.3 * exp(-v * v / (2 * 0.04 * 0.04)));
    }
  }
  return count;
}

static void test_made_signals(void **state) {
  (void)state;
  enum { SECONDS = 120 };
  const double rates[] = {128, 250, 360, 1000};
  sn_error err;
  for (int k = 0; k < 8; k++) {
    double rate = rates[k / 2], onsets[400], *x = malloc((size_t)(SECONDS * rate) * sizeof *x);
    int64_t n = (int64_t)(SECONDS * rate), count = make_beats(x, n, rate, k % 2 ? -1 : 1, onsets, (uint64_t)k),
            *peaks = NULL, n_peaks = 0;
    float *confidence = NULL;
    for (int m = 0; m < 2; m++) {
      assert_int_equal(sn_beats_detect_signal(x, n, rate, (sn_beat_method)m, &peaks, &confidence, &n_peaks, &err),
                       SN_OK);
      assert_int_equal(n_peaks, count);
      for (int64_t i = 0; i < count; i++) {
        assert_true(fabs((double)peaks[i] / rate - onsets[i]) <= 0.008);
        assert_true(confidence[i] >= 0 && confidence[i] <= 1);
      }
      sn_free(peaks), sn_free(confidence);
    }
    free(x);
  }
}

static void test_poor_signals(void **state) {
  (void)state;
  enum { N = 5000 };
  sn_error err;
  int64_t *peaks = NULL, n_peaks = -1;
  double x[N], onsets[100];
  for (int i = 0; i < N; i++) x[i] = 5;
  assert_int_equal(sn_beats_detect_signal(x, N, 250, SN_BEATS_PAN_TOMPKINS, &peaks, NULL, &n_peaks, &err), SN_OK);
  assert_int_equal(n_peaks, 0);
  sn_free(peaks);
  for (int i = 0; i < N; i++) x[i] = NAN;
  assert_int_equal(sn_beats_detect_signal(x, N, 250, SN_BEATS_PAN_TOMPKINS, &peaks, NULL, &n_peaks, &err), SN_OK);
  assert_int_equal(n_peaks, 0);
  sn_free(peaks);
  for (int64_t n = 0; n < 5; n++) {
    assert_int_equal(sn_beats_detect_signal(x, n, 250, SN_BEATS_PAN_TOMPKINS, &peaks, NULL, &n_peaks, &err), SN_OK);
    assert_int_equal(n_peaks, 0);
    sn_free(peaks);
  }
  assert_int_equal(sn_beats_detect_signal(x, N, 30, SN_BEATS_PAN_TOMPKINS, &peaks, NULL, &n_peaks, &err),
                   SN_E_ARGUMENT);
  /* Missing samples between beats take none away. */
  int64_t count = make_beats(x, N, 250, 1, onsets, 3);
  for (int i = 0; i < 100; i++) x[(int)(onsets[5] * 250) + 75 + i % 25] = NAN;
  assert_int_equal(sn_beats_detect_signal(x, N, 250, SN_BEATS_PAN_TOMPKINS, &peaks, NULL, &n_peaks, &err), SN_OK);
  assert_int_equal(n_peaks, count);
  sn_free(peaks);
}

/* The lead is chosen by name, a lead that is off is passed over, vote uses all; blocks do not lose or double beats. */
static void test_leads_and_blocks(void **state) {
  (void)state;
  enum { RATE = 128, N = RATE * 1500 }; /* 25 minutes: three blocks */
  sn_error err;
  memory_recording m;
  double *good = malloc(N * sizeof *good), *off = calloc(N, sizeof *off), *noise = malloc(N * sizeof *noise),
         *onsets = malloc(4000 * sizeof *onsets);
  int64_t count = make_beats(good, N, RATE, 1, onsets, 9);
  sn_random random = sn_random_at(1, SN_PURPOSE_TEST, 0, 2);
  for (int i = 0; i < N; i++) noise[i] = 0.3 * sn_random_normal(&random);
  double *values[3] = {noise, off, good};
  memory_init(&m, RATE, 1);
  memory_channel(&m, "V1", SN_SENSOR_ECG, "mV", 1);
  memory_channel(&m, "II", SN_SENSOR_ECG, "mV", 1);
  memory_channel(&m, "V5", SN_SENSOR_ECG, "mV", 1);
  memory_segment(&m, 50, N, values);
  sn_beat_options o = sn_beat_defaults();
  for (int k = 0; k < 4; k++) {
    sn_beats *beats = NULL;
    o.vote = k == 2;
    o.lead = k == 3 ? SN_LEAD_V5 : -1;
    if (k == 1) strcpy(m.channels[2].name, "ECG3"), strcpy(m.channels[1].name, "ECG2"); /* then kurtosis tells */
    if (k == 2) { /* a second lead, inverted and larger */
      strcpy(m.channels[2].name, "V5"), strcpy(m.channels[1].name, "II");
      for (int i = 0; i < N; i++) off[i] = -3 * good[i];
    }
    assert_int_equal(sn_beats_detect(&m.recording, &o, &beats, &err), SN_OK);
    if (k != 2) {
      assert_int_equal(beats->channel, 2);
      assert_int_equal(beats->n, count);
      for (int64_t i = 0; i < count; i++) assert_true(fabs(beats->onset_s[i] - 50 - onsets[i]) <= 0.008);
    } else { /* a third of the leads is noise */
      sn_beat_score s;
      for (int64_t i = 0; i < beats->n; i++) beats->onset_s[i] -= 50;
      assert_int_equal(sn_beats_score(&s, onsets, count, beats->onset_s, beats->n, 0.15, 0, &err), SN_OK);
      assert_true(s.sensitivity > 0.98 && s.predictivity > 0.98);
      sn_beat_score_free(&s);
    }
    sn_beats_destroy(beats);
  }
  sn_beats *none = NULL;
  o.lead = SN_LEAD_AVR;
  assert_int_equal(sn_beats_detect(&m.recording, &o, &none, &err), SN_E_ARGUMENT);
  for (int c = 0; c < 3; c++) m.channels[c].kind = SN_SENSOR_PPG;
  assert_int_equal(sn_beats_detect(&m.recording, NULL, &none, &err), SN_E_ARGUMENT);
  assert_null(none);
  free(good), free(off), free(noise), free(onsets);
}

static void assert_close(double value, double wanted) {
  if (!(fabs(value - wanted) < 1e-9)) fail_msg("%.12g, wanted %.12g", value, wanted);
}

static void test_features(void **state) {
  (void)state;
  sn_error err;
  /* RR 0.8, 1.0, 0.9 | gap | 1.0 and 3.0 (clipped to 2.0) */
  const double onsets[] = {0, 0.8, 1.8, 2.7, 100, 101, 104};
  const int64_t segments[] = {0, 0, 0, 0, 1, 1, 1};
  double f[SN_ECG_RR_FEATURES];
  assert_int_equal(sn_ecg_rr_features(f, onsets, segments, 7, 14, &err), SN_OK);
  double mean = (0.8 + 1.0 + 0.9 + 1.0 + 2.0) / 5;
  double variance = (0.64 + 1 + 0.81 + 1 + 4) / 5 - mean * mean, rmssd = sqrt((0.04 + 0.01 + 1.0) / 3);
  assert_close(f[0], mean), assert_close(f[1], sqrt(variance)), assert_close(f[2], rmssd);
  assert_close(f[3], 1.0), assert_close(f[4], 1.0), assert_close(f[5], sqrt(variance) / mean);
  assert_close(f[6], rmssd / mean), assert_close(f[7], 0.5);
  assert_int_equal(sn_ecg_rr_features(f, onsets, NULL, 2, 14, &err), SN_OK);
  for (int i = 0; i < 7; i++) assert_true(isnan(f[i]));
  assert_close(f[7], 2.0 / 14);

  /* A sine of amplitude a in one band: log10(a^2 / 2) there, far less elsewhere; an absent lead is NaN. */
  enum { N = 25000 };
  memory_recording m;
  double *x = malloc(N * sizeof *x), *values[1] = {x}, features[18];
  const int32_t leads[2] = {SN_LEAD_II, SN_LEAD_V1};
  char name[SN_FEATURE_NAME];
  for (int i = 0; i < N; i++) x[i] = 0.4 * sin(2 * 3.14159265358979 * 20 * i / 250.0);
  memory_init(&m, 250, 1);
  memory_channel(&m, "II", SN_SENSOR_ECG, "mV", 1);
  memory_segment(&m, 0, N, values);
  assert_int_equal(sn_ecg_feature_count(2), 18);
  assert_int_equal(sn_ecg_features(features, &m.recording, leads, 2, 0, 0, -1, &err), SN_OK);
  assert_true(fabs(features[8 + 3] - log10(0.08)) < 0.01);
  for (int k = 0; k < 5; k++) assert_true(k == 3 || features[8 + k] < features[8 + 3] - 2);
  for (int k = 0; k < 5; k++) assert_true(isnan(features[13 + k]));
  sn_ecg_feature_name(name, 11, leads, 2);
  assert_string_equal(name, "II_log_15_30_hz");
  sn_ecg_feature_name(name, 17, leads, 2);
  assert_string_equal(name, "V1_log_30_45_hz");
  sn_ecg_feature_name(name, 2, leads, 2);
  assert_string_equal(name, "rr_rmssd");
  /* A stretch alone. */
  for (int i = 0; i < N / 2; i++) x[i] = 0;
  assert_int_equal(sn_ecg_features(features, &m.recording, leads, 1, 0, 60, 30, &err), SN_OK);
  assert_true(fabs(features[8 + 3] - log10(0.08)) < 0.05);
  assert_int_equal(sn_ecg_features(features, &m.recording, leads, 1, 0, 5, 30, &err), SN_OK);
  assert_true(features[8 + 3] < -8);
  assert_int_equal(sn_ecg_features(features, &m.recording, leads, 1, 1, 5, 30, &err), SN_E_ARGUMENT);
  free(x);
}

static void test_out_of_memory(void **state) {
  (void)state;
  enum { N = 2000 };
  sn_error err;
  memory_recording m;
  double x[N], y[N], onsets[40], features[13], *values[2] = {x, y};
  const int32_t lead = SN_LEAD_V2;
  const sn_beat_options vote = {.vote = true, .lead = -1};
  int64_t count = make_beats(x, N, 250, 1, onsets, 1);
  make_beats(y, N, 250, -1, onsets, 1);
  memory_init(&m, 250, 1);
  memory_channel(&m, "V1", SN_SENSOR_ECG, "mV", 1);
  memory_channel(&m, "V2", SN_SENSOR_ECG, "mV", 1);
  memory_segment(&m, 0, N, values);
  for (int k = 0; k < 2; k++)
    for (fault_begin(); fault_next();) {
      sn_beats *beats = NULL;
      sn_status status = sn_beats_detect(&m.recording, k == 0 ? NULL : &vote, &beats, &err);
      fault_check(status);
      assert_true((beats != NULL) == (status == SN_OK));
      sn_beats_destroy(beats);
    }
  for (fault_begin(); fault_next();) {
    sn_beat_score s;
    fault_check(sn_beats_score(&s, onsets, count, onsets, count, 0.1, 0, &err));
    sn_beat_score_free(&s);
  }
  for (fault_begin(); fault_next();) fault_check(sn_ecg_features(features, &m.recording, &lead, 1, 0, 0, -1, &err));
}

/* All 48 excerpts of MIT-BIH, nothing left out. */
static void test_mitbih(void **state) {
  (void)state;
  const char *data = getenv("SONDE_DATA");
  char path[4096], name[32];
  int64_t reference = 0, detected = 0, matched[2] = {0}, records = 0;
  if (data == NULL) {
    print_message("skipped: test_mitbih needs SONDE_DATA\n");
    skip();
  }
  snprintf(path, sizeof path, "%s/ecg/mitbih_arrhythmia_5min/RECORDS", data);
  FILE *list = fopen(path, "r");
  assert_non_null(list);
  while (fscanf(list, "%31s", name) == 1) {
    sn_error err;
    sn_recording *recording = NULL;
    sn_annotations *annotations = NULL;
    sn_beats *beats = NULL;
    snprintf(path, sizeof path, "%s/ecg/mitbih_arrhythmia_5min/%s.hea", data, name);
    if (sn_recording_open(path, NULL, &recording, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_recording_annotations(recording, "atr", &annotations, &err) != SN_OK) fail_msg("%s", err.message);
    if (sn_beats_detect(recording, NULL, &beats, &err) != SN_OK) fail_msg("%s", err.message);
    double *onsets = malloc((size_t)annotations->n * sizeof *onsets);
    int64_t n = 0;
    for (int64_t i = 0; i < annotations->n; i++)
      if (sn_beat_code(annotations->items[i].code)) onsets[n++] = annotations->items[i].onset_s;
    for (int k = 0; k < 2; k++) {
      sn_beat_score s;
      assert_int_equal(sn_beats_score(&s, onsets, n, beats->onset_s, beats->n, k == 0 ? 0.15 : 0.1, 0, &err), SN_OK);
      matched[k] += s.matched;
      if (k == 0 && (s.sensitivity < 0.99 || s.predictivity < 0.99))
        print_message("  %s: Se %.4f, +P %.4f, missed %d, false %d, offset %.1f ms\n", name, s.sensitivity,
                      s.predictivity, (int)s.n_missed, (int)s.n_false, 1e3 * s.median_offset_s);
      if (k == 0) assert_true(fabs(s.median_offset_s) <= 0.03);
      sn_beat_score_free(&s);
    }
    reference += n, detected += beats->n, records++;
    free(onsets);
    sn_beats_destroy(beats);
    sn_annotations_destroy(annotations);
    sn_recording_destroy(recording);
  }
  fclose(list);
  assert_int_equal(records, 48);
  assert_int_equal(reference, 18209);
  double se = (double)matched[0] / (double)reference, p = (double)matched[0] / (double)detected;
  print_message("  48 records: Se %.5f, +P %.5f at 150 ms; Se %.5f, +P %.5f at 100 ms\n", se, p,
                (double)matched[1] / (double)reference, (double)matched[1] / (double)detected);
  assert_true(se >= 0.99 && p >= 0.99);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_score),        cmocka_unit_test(test_made_signals),
                                     cmocka_unit_test(test_poor_signals), cmocka_unit_test(test_leads_and_blocks),
                                     cmocka_unit_test(test_features),     cmocka_unit_test(test_out_of_memory),
                                     cmocka_unit_test(test_mitbih)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
