/* needs: full */
/* The synthetic MEG cohort: helmet, fields, labels, and FIF files that read back. */
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
#include "modalities/eeg/layout.h"
#include "modalities/eeg/synth_eeg.h"
#include "modalities/eeg/synth_meg.h"
#include "modalities/formats/fif/fif_write.h"
#include "modalities/recording.h"

static double dot(const double a[3], const double b[3]) { return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]; }

static sn_synth_meg *make(const sn_synth_meg_options *o, int64_t subject, int64_t recording) {
  sn_synth_meg *meg = NULL;
  sn_error err;
  if (sn_synth_meg_make(o, subject, recording, &meg, &err) != SN_OK) fail_msg("%s", err.message);
  return meg;
}

static void test_helmet(void **state) {
  (void)state;
  double nearest = 1, lowest = 1, before[3] = {0};
  for (int64_t c = 0; c < SN_MEG_COILS; c++) {
    double p[3], axes[3][3], d = 0;
    sn_meg_coil(c, p, axes);
    assert_true(fabs(sqrt(dot(p, p)) - 0.12) < 1e-12);
    for (int i = 0; i < 3; i++)
      for (int k = 0; k < 3; k++) assert_true(fabs(dot(axes[i], axes[k]) - (i == k)) < 1e-12);
    for (int i = 0; i < 3; i++) /* right-handed */
      assert_true(fabs(axes[2][i] - (axes[0][(i + 1) % 3] * axes[1][(i + 2) % 3] -
                                     axes[0][(i + 2) % 3] * axes[1][(i + 1) % 3])) < 1e-12);
    assert_true(dot(axes[2], p) > 0.1199);
    for (int i = 0; i < 3; i++) d += (p[i] - before[i]) * (p[i] - before[i]);
    if (c % 3 != 0)
      assert_true(d == 0);
    else
      for (int64_t k = 0; k < c; k += 3) {
        double q[3], far = 0;
        sn_meg_coil(k, q, axes);
        for (int i = 0; i < 3; i++) far += (p[i] - q[i]) * (p[i] - q[i]);
        nearest = fmin(nearest, sqrt(far));
      }
    lowest = fmin(lowest, p[2]);
    memcpy(before, p, sizeof p);
  }
  assert_true(nearest > 0.015 && lowest < -0.03 && lowest > -0.045); /* spread evenly, down to 108 degrees */
  char name[16];
  sn_meg_channel_name(name, 304);
  assert_string_equal(name, "GRX102");
  sn_meg_channel_name(name, 306);
  assert_string_equal(name, "STI 014");
}

static double alpha(const sn_synth_meg *meg, int64_t first, int64_t step) {
  sn_welch *welch = NULL;
  sn_error err;
  double sum = 0;
  assert_int_equal(sn_welch_create((double)meg->rate_hz, 2, &welch, &err), SN_OK);
  double *density = malloc((size_t)sn_welch_bins(welch) * sizeof *density);
  for (int64_t c = first; c < SN_MEG_COILS; c += step) {
    double p[3], axes[3][3];
    int64_t pieces = 0;
    sn_meg_coil(c, p, axes);
    if (p[1] > -0.05 || c == meg->bad) continue; /* the back of the head */
    memset(density, 0, (size_t)sn_welch_bins(welch) * sizeof *density);
    assert_int_equal(sn_welch_add(density, &pieces, welch, meg->values + c * meg->n_samples, meg->n_samples, &err),
                     SN_OK);
    sum += sn_band_power(density, welch, 7.5, 13) / (double)pieces;
  }
  sn_welch_destroy(welch);
  free(density);
  return sum;
}

static void test_labels_hold(void **state) {
  (void)state;
  sn_synth_meg_options o = sn_synth_meg_defaults();
  double ratio[2] = {0}, used = 0;
  o.rate_hz = 150;
  for (int64_t s = 0; s < 6; s++) {
    sn_synth_meg *closed = make(&o, s, 0), *open = make(&o, s, 1);
    assert_int_equal(closed->person.age, open->person.age);
    if (!closed->person.epilepsy) {
      ratio[0] += log10(alpha(closed, 0, 3) / alpha(open, 0, 3));
      ratio[1] += log10(alpha(closed, 1, 3) / alpha(open, 1, 3));
      used++;
    }
    double rms = 0;
    for (int64_t i = 0; i < closed->n_samples; i++) rms += closed->values[i] * closed->values[i];
    rms = sqrt(rms / (double)closed->n_samples);
    assert_true(closed->bad == 0 || (rms > 50 && rms < 5000)); /* fT */
    for (int64_t i = 0; i < SN_MEG_CHANNELS * open->n_samples; i++) assert_true(isfinite(open->values[i]));
    sn_synth_meg_destroy(closed), sn_synth_meg_destroy(open);
  }
  assert_true(used >= 2 && ratio[0] / used > 0.3 && ratio[1] / used > 0.3);
  /* The same person as in the EEG cohort; a function of the seed alone. */
  sn_synth_eeg_options e = sn_synth_eeg_defaults();
  sn_synth_eeg *eeg = NULL;
  sn_error err;
  e.seconds = 4, o.seconds = 4;
  assert_int_equal(sn_synth_eeg_make(&e, 4, 0, &eeg, &err), SN_OK);
  sn_synth_meg *a = make(&o, 4, 2);
  o.n_subjects = 5;
  sn_synth_meg *b = make(&o, 4, 2);
  assert_int_equal(eeg->person.age, a->person.age);
  assert_true(eeg->person.alpha_hz == a->person.alpha_hz);
  assert_memory_equal(a->values, b->values, (size_t)(SN_MEG_CHANNELS * a->n_samples) * sizeof *a->values);
  int64_t rises = 0, stimuli = 0;
  const double *trigger = a->values + SN_MEG_COILS * a->n_samples;
  for (int64_t i = 1; i < a->n_samples; i++) rises += trigger[i] > 0 && trigger[i - 1] == 0;
  for (int64_t i = 0; i < a->brain->n_events; i++) stimuli += a->brain->events[i].type[0] != 'e';
  assert_true(stimuli > 0 && rises == stimuli);
  sn_synth_meg_destroy(a), sn_synth_meg_destroy(b), sn_synth_eeg_destroy(eeg);
}

static uint32_t big(const uint8_t *p) {
  return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static float big_float(const uint8_t *p) {
  uint32_t bits = big(p);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Walks the tags: blocks match, channels and samples are what was given. */
static void check_fif_bytes(const char *path, const sn_synth_meg *meg) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fseek(file, 0, SEEK_END), 0);
  long size = ftell(file), at = 0;
  uint8_t *bytes = malloc((size_t)size);
  rewind(file);
  assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
  fclose(file);
  int64_t depth = 0, channels = 0, samples = 0;
  uint32_t open[8], last = 0;
  while (at + 16 <= size) {
    uint32_t kind = big(bytes + at), n = big(bytes + at + 8);
    const uint8_t *content = bytes + at + 16;
    if (at == 0) assert_int_equal(kind, 100);
    if (kind == 104) open[depth++] = big(content);
    if (kind == 105) assert_int_equal(open[--depth], big(content));
    if (kind == 203) {
      double p[3], axes[3][3];
      char name[16];
      assert_int_equal(n, 96);
      sn_meg_channel_name(name, channels);
      assert_string_equal((const char *)content + 80, name);
      if (channels < SN_MEG_COILS) {
        sn_meg_coil(channels, p, axes);
        assert_int_equal(big(content + 20), channels % 3 == 0 ? 3024 : 3012);
        for (int i = 0; i < 3; i++) assert_true(fabs(big_float(content + 24 + 4 * i) - p[i]) < 1e-7);
        for (int i = 0; i < 3; i++) assert_true(fabs(big_float(content + 60 + 4 * i) - axes[2][i]) < 1e-6);
      }
      channels++;
    }
    if (kind == 300) {
      int64_t rows = n / 4 / SN_MEG_CHANNELS;
      for (int64_t i = 0; i < rows; i++)
        for (int64_t c = 0; c < SN_MEG_CHANNELS; c++) {
          double scale = c == SN_MEG_COILS ? 1 : c % 3 == 0 ? 1e-15 : 1e-13;
          double expected = meg->values[c * meg->n_samples + samples + i];
          assert_true(fabs(big_float(content + 4 * (i * SN_MEG_CHANNELS + c)) / scale - expected) <=
                      1e-6 * fabs(expected));
        }
      samples += rows;
    }
    last = kind;
    at += 16 + (long)n;
  }
  assert_int_equal(at, size);
  assert_int_equal(last, 108);
  assert_int_equal(depth, 0);
  assert_int_equal(channels, SN_MEG_CHANNELS);
  assert_int_equal(samples, meg->n_samples);
  free(bytes);
}

static bool have_reader(void) {
  for (int64_t i = 0; i < sn_n_formats; i++)
    if (strcmp(sn_formats[i]->name, "fif") == 0) return true;
  return false;
}

/* Through our own reader, where this build has it. */
static void check_fif_read(const char *path, const sn_synth_meg *meg) {
  sn_recording *r = NULL;
  sn_error err;
  if (!have_reader()) return;
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(r->n_channels, SN_MEG_CHANNELS);
  assert_true(fabs(sn_recording_rate(r, 0) - (double)meg->rate_hz) < 1e-9);
  double *x = malloc((size_t)meg->n_samples * sizeof *x);
  for (int64_t c = 0; c < SN_MEG_COILS; c++) {
    double device[3], axes[3][3], p[3], n[3];
    sn_meg_coil(c, device, axes);
    for (int i = 0; i < 3; i++) {
      p[i] = dot(meg->rotation + 3 * i, device) + meg->translation_m[i];
      n[i] = dot(meg->rotation + 3 * i, c % 3 == 0 ? axes[2] : axes[0]);
    }
    assert_int_equal(r->channels[c].kind, c % 3 == 0 ? SN_SENSOR_MEG_MAG : SN_SENSOR_MEG_GRAD);
    assert_string_equal(r->channels[c].unit, c % 3 == 0 ? "fT" : "fT/cm");
    assert_int_equal(r->channels[c].frame, SN_FRAME_HEAD);
    assert_int_equal(r->channels[c].bad, c == meg->bad);
    for (int i = 0; i < 3; i++)
      assert_true(fabs(r->channels[c].position_m[i] - p[i]) < 1e-6 &&
                  fabs(r->channels[c].orientation[i] - n[i]) < 1e-5);
    assert_int_equal(sn_recording_read(r, c, 0, 0, meg->n_samples, x, &err), SN_OK);
    for (int64_t i = 0; i < meg->n_samples; i++) {
      double expected = meg->values[c * meg->n_samples + i];
      assert_true(fabs(x[i] - expected) <= 1e-6 * fabs(expected));
    }
  }
  free(x);
  sn_recording_destroy(r);
}

static void test_written(void **state) {
  (void)state;
  char dir[] = "/tmp/sonde synth XXXXXX", path[300];
  sn_synth_meg_options o = sn_synth_meg_defaults();
  sn_error err;
  int64_t written = 0;
  o.n_subjects = 1, o.seconds = 4, o.rate_hz = 110, o.recordings_per_subject = 3;
  assert_non_null(mkdtemp(dir));
  if (sn_synth_meg_write(&o, dir, &written, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(written, 3);
  assert_int_equal(sn_synth_meg_write(&o, dir, &written, &err), SN_E_STATE);
  for (int64_t k = 0; k < 3; k++) {
    sn_synth_meg *meg = make(&o, 0, k);
    sn_table *table = NULL;
    snprintf(path, sizeof path, "%s/sub-001/meg/sub-001_task-%s_channels.tsv", dir, sn_brain_task_name(meg->task));
    assert_int_equal(sn_table_load(path, 0, true, &table, &err), SN_OK);
    assert_int_equal(table->n_rows, SN_MEG_CHANNELS);
    sn_table_destroy(table);
    snprintf(path, sizeof path, "%s/sub-001/meg/sub-001_task-%s_events.tsv", dir, sn_brain_task_name(meg->task));
    assert_int_equal(sn_table_load(path, 0, true, &table, &err), SN_OK);
    assert_int_equal(table->n_rows, meg->brain->n_events);
    sn_table_destroy(table);
    snprintf(path, sizeof path, "%s/sub-001/meg/sub-001_task-%s_meg.fif", dir, sn_brain_task_name(meg->task));
    check_fif_bytes(path, meg);
    check_fif_read(path, meg);
    sn_synth_meg_destroy(meg);
  }
  assert_int_equal(sn_remove_tree(dir, &err), SN_OK);
}

static void test_errors(void **state) {
  (void)state;
  sn_error err;
  sn_synth_meg *meg = NULL;
  for (int k = 0; k < 7; k++) {
    sn_synth_meg_options o = sn_synth_meg_defaults();
    if (k == 0) o.n_subjects = 0;
    if (k == 1) o.recordings_per_subject = 4;
    if (k == 2) o.seconds = 3;
    if (k == 3) o.rate_hz = 99;
    if (k == 4) o.rate_hz = 2001;
    assert_int_equal(sn_synth_meg_make(&o, k == 5 ? -1 : 0, k == 6 ? 3 : 0, &meg, &err), SN_E_ARGUMENT);
    assert_null(meg);
  }
  /* What the format cannot hold. */
  const double values[2] = {1, 2}, endless[2] = {1, INFINITY};
  sn_fif_write_channel c = {.name = "A", .kind = SN_FIF_EEG, .unit = SN_FIF_VOLT, .scale = 1, .values = values};
  sn_fif_write_file f = {.rate_hz = 100, .line_hz = NAN, .n_channels = 1, .n_samples = 2, .channels = &c};
  for (int k = 0; k < 5; k++) {
    c.name = k == 0 ? "" : k == 1 ? "A:B" : k == 2 ? "a name of sixteen" : "A";
    c.values = k == 3 ? endless : values;
    f.n_samples = k == 4 ? 0 : 2;
    assert_int_equal(sn_fif_write("/dev/null/x.fif", &f, &err), SN_E_ARGUMENT);
  }
  f.n_samples = 2;
  assert_int_equal(sn_fif_write("/dev/null/x.fif", &f, &err), SN_E_IO);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_helmet), cmocka_unit_test(test_labels_hold),
                                     cmocka_unit_test(test_written), cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
