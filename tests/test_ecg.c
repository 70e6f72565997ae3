/* needs: full */
/* ECG: leads by name, derived leads, tokens, rejection, configuration, and one real window against numpy and scipy. */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "tests/alloc_fault.h"
#include "tests/golden/signal_golden.h"
#include "tests/memory_recording.h"
#include "tests/signal_case.h"

static const char *const TWELVE[12] = {"I", "II", "III", "aVR", "aVL", "aVF", "V1", "V2", "V3", "V4", "V5", "V6"};

enum { N = 6000 };

/* Twelve leads whose limb leads obey Einthoven and Goldberger. */
static void twelve(double *x[12]) {
  for (int l = 0; l < 12; l++) {
    sn_random random = sn_random_at(5, SN_PURPOSE_TEST, 0, (uint64_t)l);
    x[l] = malloc(N * sizeof **x);
    for (int i = 0; i < N; i++) x[l][i] = 0.2 * sn_random_normal(&random) + sin(0.02 * (l + 3) * i);
  }
  for (int i = 0; i < N; i++) {
    double a = x[0][i], b = x[1][i];
    x[2][i] = b - a, x[3][i] = -(a + b) / 2, x[4][i] = a - b / 2, x[5][i] = b - a / 2;
  }
}

/* A recording of the leads order[0..n). */
static void record(memory_recording *m, double *const x[12], const int *order, int n) {
  double *values[12];
  memory_init(m, 500, 1);
  for (int i = 0; i < n; i++) {
    memory_channel(m, TWELVE[order[i]], SN_SENSOR_ECG, "mV", 1);
    values[i] = x[order[i]];
  }
  memory_segment(m, 0, N, values);
}

static sn_signal *make(const sn_signal_options *o) {
  sn_signal *e = NULL;
  sn_error err;
  assert_int_equal(sn_signal_create(o, &e, &err), SN_OK);
  return e;
}

static void test_lead_table(void **state) {
  (void)state;
  assert_int_equal(sn_lead_find("II"), SN_LEAD_II);
  assert_int_equal(sn_lead_find(" avr "), SN_LEAD_AVR);
  assert_int_equal(sn_lead_find("ECG lead V3"), SN_LEAD_V3);
  assert_int_equal(sn_lead_find("ECG"), SN_LEAD_ECG);
  assert_int_equal(sn_lead_find("ecg MLII"), SN_LEAD_MLII);
  assert_int_equal(sn_lead_find("DII"), SN_LEAD_II);
  assert_int_equal(sn_lead_find("V10"), -1);
  assert_int_equal(sn_lead_find(""), -1);
  assert_int_equal(sn_lead_find("PLETH"), -1);
  for (int64_t i = 0; i < sn_lead_count(); i++) {
    double d[3], v[3];
    assert_int_equal(sn_lead_find(sn_lead_name(i)), i);
    sn_lead_direction(i, d);
    double norm = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    assert_true(sn_lead_vector(i, v) ? fabs(norm - 1) < 1e-12 : norm == 0);
  }
  /* The frame: I to the left (-x), aVF to the feet (-z), V2 forward (+y), V6 to the left. */
  double d[3];
  sn_lead_direction(SN_LEAD_I, d);
  assert_true(d[0] < -0.9);
  sn_lead_direction(SN_LEAD_AVF, d);
  assert_true(d[2] < -0.9);
  sn_lead_direction(SN_LEAD_V2, d);
  assert_true(d[1] > 0.9);
  sn_lead_direction(SN_LEAD_V6, d);
  assert_true(d[0] < -0.9);
  /* Einthoven and Goldberger hold for the vectors. */
  double i[3], ii[3], v[3];
  sn_lead_vector(SN_LEAD_I, i), sn_lead_vector(SN_LEAD_II, ii);
  for (int k = 0; k < 3; k++) {
    sn_lead_vector(SN_LEAD_III, v);
    assert_true(fabs(v[k] - (ii[k] - i[k])) < 1e-12);
    sn_lead_vector(SN_LEAD_AVR, v);
    assert_true(fabs(v[k] + (i[k] + ii[k]) / 2) < 1e-12);
    sn_lead_vector(SN_LEAD_AVL, v);
    assert_true(fabs(v[k] - (i[k] - ii[k] / 2)) < 1e-12);
    sn_lead_vector(SN_LEAD_AVF, v);
    assert_true(fabs(v[k] - (ii[k] - i[k] / 2)) < 1e-12);
  }
}

static void assert_same_sample(const sn_sample *a, const sn_sample *b) {
  assert_int_equal(a->n_tokens, b->n_tokens);
  size_t n = (size_t)a->n_tokens;
  assert_memory_equal(a->patches, b->patches, n * (size_t)a->patch_size * sizeof *a->patches);
  assert_memory_equal(a->coordinates, b->coordinates, 4 * n * sizeof *a->coordinates);
  assert_memory_equal(a->orientations, b->orientations, 3 * n * sizeof *a->orientations);
  assert_memory_equal(a->channels, b->channels, n * sizeof *a->channels);
  assert_memory_equal(a->positions, b->positions, n * sizeof *a->positions);
}

/* The same leads in another order give the same tokens; absent ones give none, or are derived when asked for. */
static void test_leads_by_name(void **state) {
  (void)state;
  const int order[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, other[12] = {11, 1, 4, 3, 0, 2, 6, 7, 5, 8, 9, 10},
            eight[8] = {6, 7, 8, 9, 10, 11, 1, 0};
  double *x[12];
  sn_error err;
  memory_recording a, b, c;
  sn_sample *sa = NULL, *sb = NULL, *sc = NULL;
  sn_signal_options o = signal_defaults("ecg");
  sn_signal *e = make(&o);
  twelve(x);
  record(&a, x, order, 12), record(&b, x, other, 12), record(&c, x, eight, 8);
  assert_int_equal(signal_sample(e, &a.recording, 0, 1.0, NULL, &sa, &err), SN_OK);
  assert_int_equal(signal_sample(e, &b.recording, 0, 1.0, NULL, &sb, &err), SN_OK);
  assert_int_equal(signal_sample(e, &c.recording, 0, 1.0, NULL, &sc, &err), SN_OK);
  assert_int_equal(sa->n_tokens, 12 * 50);
  assert_same_sample(sa, sb);
  assert_int_equal(sc->n_tokens, 8 * 50);
  for (int64_t t = 0; t < sc->n_tokens; t++)
    assert_true(sc->channels[t] < SN_LEAD_III || sc->channels[t] >= SN_LEAD_V1);
  sn_sample_destroy(sc);
  sn_signal_destroy(e);

  ecg_settings(&o)->derive_leads = true;
  e = make(&o);
  assert_int_equal(signal_sample(e, &c.recording, 0, 1.0, NULL, &sc, &err), SN_OK);
  assert_int_equal(sc->n_tokens, 12 * 50);
  for (int64_t i = 0; i < sc->n_tokens * sc->patch_size; i++) assert_true(fabs(sc->patches[i] - sa->patches[i]) < 1e-5);
  assert_memory_equal(sc->channels, sa->channels, (size_t)sa->n_tokens * sizeof *sa->channels);
  sn_series_list list = {0};
  assert_int_equal(sn_signal_select(e, &c.recording, true, &list, &err), SN_OK);
  assert_int_equal(sn_signal_nominal_tokens(e, &list), 600);
  sn_series_free(&list);
  sn_signal_destroy(e);
  sn_sample_destroy(sa), sn_sample_destroy(sb), sn_sample_destroy(sc);

  /* A list: its order is the order of tokens, what is absent is left out, nothing at all is an error. */
  o = signal_defaults("ecg");
  *ecg_settings(&o) = (sn_ecg_settings){.n_leads = 3, .leads = {SN_LEAD_V5, SN_LEAD_MLII, SN_LEAD_I}};
  e = make(&o);
  assert_int_equal(signal_sample(e, &a.recording, 0, 0, NULL, &sa, &err), SN_OK);
  assert_int_equal(sa->n_tokens, 100);
  assert_int_equal(sa->channels[0], SN_LEAD_V5);
  assert_int_equal(sa->channels[50], SN_LEAD_I);
  sn_sample_destroy(sa);
  sn_signal_destroy(e);
  *ecg_settings(&o) = (sn_ecg_settings){.n_leads = 1, .leads = {SN_LEAD_MLII}};
  e = make(&o);
  assert_int_equal(signal_sample(e, &a.recording, 0, 0, NULL, &sa, &err), SN_E_ARGUMENT);
  assert_null(sa);
  sn_signal_destroy(e);
  for (int l = 0; l < 12; l++) free(x[l]);
}

static void test_strange_leads(void **state) {
  (void)state;
  double *x[12];
  sn_error err;
  memory_recording m;
  sn_lead_source sources[SN_LEADS_MOST];
  int64_t n = 0;
  twelve(x);
  double *values[3] = {x[0], x[1], x[2]};
  memory_init(&m, 500, 1);
  memory_channel(&m, "II", SN_SENSOR_ECG, "mV", 1);
  memory_channel(&m, "ecg ii", SN_SENSOR_ECG, "mV", 1);
  memory_channel(&m, "PLETH", SN_SENSOR_PPG, "NU", 1);
  memory_segment(&m, 0, N, values);
  assert_int_equal(sn_leads_select(&m.recording, NULL, 0, false, sources, &n, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "twice"));
  strcpy(m.channels[1].name, "aVX");
  assert_int_equal(sn_leads_select(&m.recording, NULL, 0, false, sources, &n, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "aVX"));
  assert_non_null(strstr(err.message, "nearest: aV"));
  const int32_t ii = SN_LEAD_II;
  assert_int_equal(sn_leads_select(&m.recording, &ii, 1, false, sources, &n, &err), SN_OK);
  assert_int_equal(n, 1);
  for (int l = 0; l < 12; l++) free(x[l]);
}

static void test_lead_check(void **state) {
  (void)state;
  const int order[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  double *x[12], *swapped[12];
  sn_error err;
  memory_recording m;
  sn_lead_check check;
  twelve(x);
  for (int i = 0; i < N; i++) x[5][i] += 0.5; /* an offset says nothing about identity */
  record(&m, x, order, 12);
  assert_int_equal(sn_leads_check(&m.recording, &check, &err), SN_OK);
  assert_int_equal(check.n_checked, 4);
  assert_false(check.mismatch);
  for (int k = 0; k < 4; k++) assert_true(check.rms_mv[k] < 1e-12);
  /* aVL and aVF changed places, as in files whose augmented leads come in another order */
  memcpy(swapped, x, sizeof x);
  swapped[4] = x[5], swapped[5] = x[4];
  record(&m, swapped, order, 12);
  assert_int_equal(sn_leads_check(&m.recording, &check, &err), SN_OK);
  assert_true(check.mismatch && check.rms_mv[2] > 0.05 && check.rms_mv[3] > 0.05 && check.rms_mv[0] < 1e-12);
  assert_int_equal(sn_leads_check_warn(&m.recording, &check, &err), SN_OK);
  assert_int_equal(m.recording.n_warnings, 1); /* one code, counted twice */
  assert_string_equal(m.recording.warnings[0].code, "lead_mismatch");
  assert_int_equal(m.recording.warnings[0].count, 2);
  free(m.recording.warnings);
  for (int l = 0; l < 12; l++) free(x[l]);
}

static void test_tokens(void **state) {
  (void)state;
  const int order[2] = {1, 0};
  double *x[12];
  sn_error err;
  memory_recording m;
  sn_sample *s = NULL;
  sn_signal_options o = signal_defaults("ecg");
  o.condition.window_s = 2, o.condition.patch_s = 0.25;
  sn_signal *e = make(&o);
  twelve(x);
  record(&m, x, order, 2);
  m.segments[0].start_s = 100;
  assert_int_equal(sn_signal_patch_size(e), 25);
  assert_int_equal(sn_signal_window_patches(e), 8);
  assert_int_equal(signal_sample(e, &m.recording, 0, 1.5, NULL, &s, &err), SN_OK);
  assert_int_equal(s->n_tokens, 16);
  assert_null(s->valid);
  assert_true(fabs(s->start_s - 101.5) < 1e-12 && fabs(s->duration_s - 2) < 1e-12);
  double values[200];
  uint8_t valid[200];
  for (int lead = 0; lead < 2; lead++) {
    double d[3];
    sn_lead_direction(lead, d);
    /* channel 1 of the recording is lead I, which comes first */
    assert_int_equal(
        sn_conditioner_window(sn_signal_conditioner(e), &m.recording, 1 - lead, 0, 1.5, NULL, values, valid, NULL, &err),
        SN_OK);
    for (int p = 0; p < 8; p++) {
      int t = lead * 8 + p;
      assert_int_equal(s->channels[t], lead);
      assert_int_equal(s->positions[t], p);
      assert_int_equal(s->sensors[t], SN_SENSOR_ECG);
      assert_true(s->coordinates[4 * t + 3] == (float)(0.25 * p + 0.125) && s->coordinates[4 * t] == 0.0f);
      for (int i = 0; i < 3; i++) assert_true(s->orientations[3 * t + i] == (float)d[i]);
      for (int i = 0; i < 25; i++) assert_true(s->patches[25 * t + i] == (float)values[25 * p + i]);
    }
  }
  sn_sample_destroy(s);
  sn_signal_destroy(e);
  for (int l = 0; l < 12; l++) free(x[l]);
}

/* Missing patches make no tokens, missing samples are marked, windows that are mostly missing or flat are rejected. */
static void test_missing_and_flat(void **state) {
  (void)state;
  const int order[2] = {0, 1};
  double *x[12];
  sn_error err;
  memory_recording m;
  sn_sample *s = NULL;
  sn_signal_options o = signal_defaults("ecg");
  sn_signal *e = make(&o);
  twelve(x);
  for (int i = 2000; i < 2500; i++) x[0][i] = NAN; /* lead I: 4 s to 5 s, a second of five patches */
  x[1][1000] = NAN;                                /* lead II: one sample at 2 s */
  record(&m, x, order, 2);
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &s, &err), SN_OK);
  assert_int_equal(s->n_tokens, 95);
  assert_non_null(s->valid);
  int64_t invalid = 0;
  for (int64_t i = 0; i < s->n_tokens * s->patch_size; i++) {
    invalid += !s->valid[i];
    assert_true(s->valid[i] || s->patches[i] == 0.0f);
  }
  assert_true(invalid >= 1 && invalid <= 4);
  assert_int_equal(s->positions[19], 19);
  assert_int_equal(s->positions[20], 25);
  sn_sample_destroy(s);
  for (int i = 0; i < N; i++) x[0][i] = i < 5500 ? NAN : x[0][i];
  for (int i = 0; i < 1000; i++) x[1][i] = NAN;
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &s, &err), SN_END);
  assert_null(s);
  assert_non_null(strstr(err.message, "min_valid"));
  for (int i = 0; i < N; i++) x[0][i] = 5, x[1][i] = -1;
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &s, &err), SN_END);
  assert_non_null(strstr(err.message, "flat"));
  for (int i = 0; i < N; i++) x[1][i] = sin(0.1 * i);
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &s, &err),
                   SN_OK); /* one flat lead: zeros, counted */
  assert_int_equal(s->flat_patches, 50);
  for (int64_t i = 0; i < 50 * s->patch_size; i++) assert_true(s->patches[i] == 0.0f);
  sn_sample_destroy(s);
  assert_int_equal(signal_sample(e, &m.recording, 0, 2.01, NULL, &s, &err), SN_E_ARGUMENT);
  sn_signal_destroy(e);
  for (int l = 0; l < 12; l++) free(x[l]);
}

static void test_grid(void **state) {
  (void)state;
  sn_error err;
  sn_signal_options o = signal_defaults("ecg");
  o.stride_s = 5;
  sn_signal *e = make(&o);
  int64_t n = 0;
  double last = 0;
  assert_int_equal(sn_signal_count_windows(e, 300, 1, 9000, &n, &last, &err), SN_OK);
  assert_int_equal(n, 5); /* 0, 5, 10, 15, 20 */
  assert_true(fabs(last - 20) < 1e-9);
  assert_int_equal(sn_signal_count_windows(e, 300, 1, 2997, &n, &last, &err), SN_OK);
  assert_int_equal(n, 0); /* 999 samples at 100 Hz */
  assert_int_equal(sn_signal_count_windows(e, 300, 1, 2998, &n, &last, &err), SN_OK);
  assert_int_equal(n, 1);
  assert_int_equal(sn_signal_count_windows(e, 300, 1, 0, &n, &last, &err), SN_OK);
  assert_int_equal(n, 0);
  assert_int_equal(sn_signal_count_windows(e, 60, 1, 9000, &n, &last, &err), SN_E_ARGUMENT);
  /* A segment shorter than a window has none, and says so when read. */
  const int order[1] = {1};
  double *x[12];
  memory_recording m;
  sn_sample *s = NULL;
  twelve(x);
  record(&m, x, order, 1);
  m.segments[0].n_frames = 4000;
  sn_series_list list = {0};
  assert_int_equal(sn_signal_select(e, &m.recording, false, &list, &err), SN_OK);
  assert_int_equal(sn_signal_segment_windows(e, &m.recording, &list, 0, &n, &last, &err), SN_OK);
  sn_series_free(&list);
  assert_int_equal(n, 0);
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &s, &err), SN_E_ARGUMENT);
  sn_signal_destroy(e);
  for (int l = 0; l < 12; l++) free(x[l]);
}

static void test_record_stats(void **state) {
  (void)state;
  const int order[2] = {0, 1};
  double *x[12];
  sn_error err;
  memory_recording m;
  sn_signal_stats *stats = NULL;
  sn_sample *s = NULL, *none = NULL;
  sn_signal_options o = signal_defaults("ecg");
  o.condition.normalize = SN_NORMALIZE_ZSCORE_RECORD, o.condition.clip = 0, ecg_settings(&o)->derive_leads = true;
  o.condition.window_s = 12;
  sn_signal *e = make(&o);
  twelve(x);
  record(&m, x, order, 2);
  assert_true(sn_signal_needs_stats(e));
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, NULL, &none, &err), SN_E_ARGUMENT);
  assert_int_equal(signal_stats(e, &m.recording, &stats, &err), SN_OK);
  assert_int_equal(stats->n, 6);
  /* The window is the whole recording: each lead, derived ones too, has mean 0 and deviation 1. */
  assert_int_equal(signal_sample(e, &m.recording, 0, 0, stats, &s, &err), SN_OK);
  for (int lead = 0; lead < 6; lead++) {
    double sum = 0, squares = 0;
    for (int i = 0; i < 1200; i++) sum += s->patches[lead * 1200 + i], squares += pow(s->patches[lead * 1200 + i], 2);
    assert_true(fabs(sum / 1200) < 1e-6 && fabs(squares / 1200 - 1) < 1e-6);
  }
  sn_free(stats);
  sn_sample_destroy(s);
  sn_signal_destroy(e);
  for (int l = 0; l < 12; l++) free(x[l]);
}

static void test_options(void **state) {
  (void)state;
  sn_error err;
  sn_signal *e = NULL;
  sn_signal_options o = signal_defaults("ecg");
  o.condition.patch_s = 0.3; /* 30 samples do not divide 1000 */
  assert_int_equal(sn_signal_create(&o, &e, &err), SN_E_ARGUMENT);
  assert_string_equal(err.field, "data.patch");
  assert_non_null(strstr(err.message, "0.25 s and 0.4 s"));
  o.condition.patch_s = 0.2, o.condition.rate_num = 0;
  assert_int_equal(sn_signal_create(&o, &e, &err), SN_E_ARGUMENT);
  o = signal_defaults("ecg");
  o.condition.filter_high_hz = 60;
  assert_int_equal(sn_signal_create(&o, &e, &err), SN_E_ARGUMENT);
  assert_null(e);
}

static void test_config(void **state) {
  (void)state;
  sn_error err;
  sn_config *config = NULL;
  sn_signal_options o;
  const sn_config_entry *tables[SN_MODALITY_TABLES];
  const int64_t n_tables = sn_modality_tables(tables);
  assert_int_equal(sn_config_create(tables, n_tables, &config, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_E_ARGUMENT); /* auto */
  assert_string_equal(err.field, "data.modality");
  assert_int_equal(sn_modality_apply(&sn_modality_ecg, config, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_OK);
  sn_signal_options defaults = signal_defaults("ecg");
  assert_true(o.condition.filter_low_hz == defaults.condition.filter_low_hz && o.condition.filter_high_hz == 40);
  assert_true(o.condition.rate_num == 100 && o.condition.rate_den == 1 && o.condition.window_s == 10 &&
              o.stride_s == 10);
  assert_true(o.condition.normalize == SN_NORMALIZE_ZSCORE_WINDOW && o.condition.clip == 8 &&
              o.condition.patch_s == 0.2);
  assert_true(ecg_settings(&o)->n_leads == 0 && !ecg_settings(&o)->derive_leads);
  assert_true(o.condition.min_valid == 0.5 && o.condition.flat_std == 1e-6);
  assert_int_equal(sn_config_set(config, "data.rate", "0.125 kHz", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.window", "4000 ms", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.normalize", "robust", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "ecg.leads", "II, v5", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_OK);
  assert_true(o.condition.rate_num == 125 && o.condition.window_s == 4 && o.condition.normalize == SN_NORMALIZE_ROBUST);
  assert_true(ecg_settings(&o)->n_leads == 2 && ecg_settings(&o)->leads[0] == SN_LEAD_II && ecg_settings(&o)->leads[1] == SN_LEAD_V5);
  assert_int_equal(sn_config_set(config, "ecg.leads", "II,aVX", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "aVX"));
  assert_int_equal(sn_config_set(config, "ecg.leads", "II,II", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_config_set(config, "ecg.leads", "all", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_config_set(config, "data.normalize", "global", "--set", -1, &err), SN_OK);
  assert_int_equal(sn_signal_options_from_config(config, &o, &err), SN_E_ARGUMENT);
  sn_config_destroy(config);
}

/* Any number of threads, each on a fresh pipeline's first windows: the same bits as one thread alone. */
typedef struct reader {
  sn_signal *ecg;
  const sn_recording *recording;
  sn_sample *samples[8];
} reader;

static void *read_windows(void *argument) {
  reader *r = argument;
  for (int w = 0; w < 8; w++)
    if (signal_sample(r->ecg, r->recording, 0, 0.25 * w, NULL, &r->samples[w], NULL) != SN_OK) return r;
  return NULL;
}

static void test_threads(void **state) {
  (void)state;
  const int order[3] = {0, 1, 9};
  double *x[12];
  memory_recording m;
  pthread_t threads[4];
  reader readers[5] = {0};
  sn_signal_options o = signal_defaults("ecg");
  sn_signal *shared = make(&o), *alone = make(&o);
  twelve(x);
  record(&m, x, order, 3);
  for (int t = 0; t < 4; t++) {
    readers[t] = (reader){.ecg = shared, .recording = &m.recording};
    assert_int_equal(pthread_create(&threads[t], NULL, read_windows, &readers[t]), 0);
  }
  readers[4] = (reader){.ecg = alone, .recording = &m.recording};
  assert_null(read_windows(&readers[4]));
  for (int t = 0; t < 4; t++) {
    void *failed = NULL;
    assert_int_equal(pthread_join(threads[t], &failed), 0);
    assert_null(failed);
  }
  for (int w = 0; w < 8; w++)
    for (int t = 0; t < 4; t++) assert_same_sample(readers[t].samples[w], readers[4].samples[w]);
  for (int t = 0; t < 5; t++)
    for (int w = 0; w < 8; w++) sn_sample_destroy(readers[t].samples[w]);
  sn_signal_destroy(shared), sn_signal_destroy(alone);
  for (int l = 0; l < 12; l++) free(x[l]);
}

/* Every allocation may fail: the status says so, nothing leaks, the pipeline can be used again. */
static void test_out_of_memory(void **state) {
  (void)state;
  const int order[2] = {0, 1};
  double *x[12];
  memory_recording m;
  sn_error err;
  sn_signal_options o = signal_defaults("ecg");
  ecg_settings(&o)->derive_leads = true, o.condition.window_s = 2, o.condition.filter_low_hz = 2;
  o.condition.normalize = SN_NORMALIZE_ROBUST;
  twelve(x);
  record(&m, x, order, 2);
  for (fault_begin(); fault_next();) {
    sn_signal *e = NULL;
    sn_sample *s = NULL;
    sn_status status = sn_signal_create(&o, &e, &err);
    if (status == SN_OK) status = signal_sample(e, &m.recording, 0, 1, NULL, &s, &err);
    fault_check(status);
    assert_true((s != NULL) == (status == SN_OK));
    sn_sample_destroy(s);
    s = NULL;
    if (e != NULL) assert_int_equal(signal_sample(e, &m.recording, 0, 1, NULL, &s, &err), SN_OK);
    sn_sample_destroy(s);
    sn_signal_destroy(e);
  }
  o.condition.normalize = SN_NORMALIZE_ZSCORE_RECORD;
  for (fault_begin(); fault_next();) {
    sn_signal *e = NULL;
    sn_signal_stats *stats = NULL;
    sn_status status = sn_signal_create(&o, &e, &err);
    if (status == SN_OK) status = signal_stats(e, &m.recording, &stats, &err);
    fault_check(status);
    sn_free(stats);
    sn_signal_destroy(e);
  }
  for (int l = 0; l < 12; l++) free(x[l]);
}

/* Two windows of real records against the independent pipeline of make_signal.py. */
static void test_real_window(void **state) {
  (void)state;
  const char *data = getenv("SONDE_DATA");
  if (data == NULL) {
    print_message("skipped: test_real_window needs SONDE_DATA\n");
    skip();
  }
  const struct {
    const char *name;
    const double *wanted;
  } cases[] = {{"A00001", A00001_window}, {"A00004", A00004_window}};
  for (int c = 0; c < 2; c++) {
    char path[4096];
    sn_error err;
    sn_recording *recording = NULL;
    sn_sample *s = NULL;
    sn_signal_options o = signal_defaults("ecg");
    sn_signal *e = make(&o);
    snprintf(path, sizeof path, "%s/ecg/cinc2017_af/%s.hea", data, cases[c].name);
    if (sn_recording_open(path, NULL, &recording, &err) != SN_OK) fail_msg("%s", err.message);
    if (signal_sample(e, recording, 0, 5.0, NULL, &s, &err) != SN_OK) fail_msg("%s", err.message);
    assert_int_equal(s->n_tokens, 50);
    assert_int_equal(s->channels[0], SN_LEAD_ECG);
    for (int i = 0; i < 50; i++) {
      double got = s->patches[i * 20], wanted = cases[c].wanted[i];
      if (!(fabs(got - wanted) <= 1e-6 * fmax(1, fabs(wanted))))
        fail_msg("%s [%d]: %.9g, wanted %.9g", path, i, got, wanted);
    }
    sn_sample_destroy(s);
    sn_recording_destroy(recording);
    sn_signal_destroy(e);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_lead_table), cmocka_unit_test(test_leads_by_name), cmocka_unit_test(test_strange_leads),
      cmocka_unit_test(test_lead_check), cmocka_unit_test(test_tokens),        cmocka_unit_test(test_missing_and_flat),
      cmocka_unit_test(test_grid),       cmocka_unit_test(test_record_stats),  cmocka_unit_test(test_options),
      cmocka_unit_test(test_config),     cmocka_unit_test(test_threads),       cmocka_unit_test(test_out_of_memory),
      cmocka_unit_test(test_real_window)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
