/* needs: full */
/* EDF+ written and read again. */
#include "edf_case.h"

#include <math.h>
#include <unistd.h>

#include "alloc_fault.h"
#include "core/fs.h"
#include "modalities/formats/edf/edf.h"

static char folder[] = "/tmp/sonde-edf-XXXXXX";

static int make_folder(void **state) { return mkdtemp(folder) != NULL ? 0 : -1; }
static int remove_folder(void **state) { return sn_remove_tree(folder, NULL) == SN_OK ? 0 : -1; }

static const char *path_of(const char *name) {
  static char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

enum { RECORDS = 7, A = 50, B = 20 };

typedef struct content {
  double a[RECORDS * A], b[RECORDS * B], c[RECORDS * B];
  double onsets[RECORDS];
  sn_edf_write_signal signals[3];
  sn_annotation annotations[5];
  sn_edf_write_file file;
} content;

static void make_content(content *x) {
  memset(x, 0, sizeof *x);
  for (int i = 0; i < RECORDS * A; i++) x->a[i] = 73.21 * sin(i * 0.37) + 11.117 * cos(i * 1.7) - 3.3;
  for (int i = 0; i < RECORDS * B; i++) x->b[i] = 0.8123 * sin(i * 0.11);
  for (int i = 0; i < RECORDS * B; i++) x->c[i] = 36.6; /* constant */
  for (int i = 0; i < RECORDS; i++) x->onsets[i] = i * 0.5 + (i >= 3 ? 1.25 : 0) + (i >= 5 ? 10 : 0);
  x->signals[0] = (sn_edf_write_signal){.label = "EEG Fp1", .samples_per_record = A, .values = x->a};
  x->signals[1] = (sn_edf_write_signal){.label = "ECG II", .unit = "mV", .transducer = "AgAgCl electrode", .prefilter = "HP:0.1Hz",
                                        .physical_min = -1, .physical_max = 1, .samples_per_record = B, .values = x->b};
  x->signals[2] = (sn_edf_write_signal){.label = "Temp rectal", .unit = "degC", .samples_per_record = B, .values = x->c};
  x->annotations[0] = (sn_annotation){.onset_s = 0.75, .duration_s = 0.125, .channel = -1, .text = (char *)"Gr\xC3\xB6\xC3\x9F" "e"};
  x->annotations[1] = (sn_annotation){.onset_s = 0.1, .duration_s = NAN, .channel = 0, .text = (char *)"spike"};
  x->annotations[2] = (sn_annotation){.onset_s = -2.5, .duration_s = NAN, .channel = -1, .text = (char *)"before"};
  x->annotations[3] = (sn_annotation){.onset_s = 3, .duration_s = 0, .channel = -1, .code = "T1"};
  x->annotations[4] = (sn_annotation){.onset_s = 1e5, .duration_s = 1e-9, .channel = -1, .text = (char *)"after"};
  x->file = (sn_edf_write_file){.subject_id = "sub 01", .sex = "F", .age_years = 44, .year = 2031, .month = 2, .day = 3,
                                .hour = 4, .minute = 5, .second = 6, .start_ns = 125000000, .duration_num = 1, .duration_den = 2,
                                .n_records = RECORDS, .n_signals = 3, .signals = x->signals, .n_annotations = 5,
                                .annotations = x->annotations};
}

static void must_write(const content *x) {
  sn_error err;
  if (sn_edf_write(path_of("a.edf"), &x->file, &err) != SN_OK) fail_msg("%s", err.message);
}

static sn_recording *must_open(void) {
  sn_recording *r = NULL;
  sn_error err;
  if (sn_recording_open(path_of("a.edf"), NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  return r;
}

/* All values come back within half a step. */
static void check_values(const sn_recording *r, const content *x) {
  static const int per_record[3] = {A, B, B};
  for (int64_t c = 0; c < 3; c++) {
    const double half = 0.5 / fabs(r->channels[c].gain) * r->channels[c].unit_scale;
    int64_t at = 0;
    assert_true(half > 0 && half < 1e-2);
    for (int64_t s = 0; s < r->n_segments; s++) {
      double values[RECORDS * A];
      int64_t n = sn_recording_samples(r, c, s);
      assert_int_equal(sn_recording_read(r, c, s, 0, n, values, NULL), SN_OK);
      for (int64_t i = 0; i < n; i++, at++) {
        double error = fabs(values[i] - x->signals[c].values[at]);
        if (!(error <= half * (1 + 1e-9))) fail_msg("channel %d value %d: off by %g, half a step is %g", (int)c, (int)at, error, half);
      }
    }
    assert_int_equal(at, RECORDS * per_record[c]);
  }
}

static void check_annotations(const sn_recording *r, const content *x) {
  static const int order[5] = {2, 1, 0, 3, 4}; /* in time */
  sn_annotations *list;
  sn_error err;
  if (sn_recording_annotations(r, NULL, &list, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(list->n, 5);
  assert_int_equal(list->n_warnings, 0);
  for (int i = 0; i < 5; i++) {
    const sn_annotation *found = &list->items[i], *written = &x->annotations[order[i]];
    assert_string_equal(found->text, written->text != NULL ? written->text : written->code);
    assert_true(found->onset_s == written->onset_s && found->channel == written->channel);
    assert_true(found->duration_s == written->duration_s || (isnan(found->duration_s) && isnan(written->duration_s)));
  }
  sn_annotations_destroy(list);
}

static void round_trip(void **state) {
  static content x;
  for (int gaps = 0; gaps < 2; gaps++) {
    make_content(&x);
    if (gaps == 1) x.file.onsets_s = x.onsets;
    must_write(&x);
    sn_recording *r = must_open();
    assert_string_equal(r->variant, gaps ? "EDF+D" : "EDF+C");
    assert_string_equal(r->subject_id, "sub_01");
    assert_string_equal(r->sex, "F");
    assert_string_equal(r->start_time, "2031-02-03T04:05:06.125");
    assert_true(r->age_years == 44 && r->rate_num == 20 && r->rate_den == 1 && r->n_channels == 3);
    assert_true(sn_recording_rate(r, 0) == 100 && sn_recording_rate(r, 1) == 40);
    assert_true(r->channels[1].kind == SN_SENSOR_ECG && r->channels[2].kind == SN_SENSOR_TEMPERATURE);
    assert_int_equal(r->n_warnings, 0);
    assert_int_equal(r->n_segments, gaps ? 3 : 1);
    if (gaps == 1) {
      assert_true(r->segments[1].start_s == 2.75 && r->segments[1].start_frame == 55 && r->segments[1].n_frames == 20);
      assert_true(r->segments[2].start_s == 13.75);
    }
    check_values(r, &x);
    check_annotations(r, &x);
    sn_recording_destroy(r);
  }
}

/* The limits are the narrowest that eight characters allow, whatever the size of the values. */
static void limits(void **state) {
  static content x;
  for (double size = 1e-4; size < 1e6; size *= 7.3) {
    make_content(&x);
    for (int i = 0; i < RECORDS * A; i++) x.a[i] *= size / 100;
    must_write(&x);
    sn_recording *r = must_open();
    double low = INFINITY, high = -INFINITY;
    for (int i = 0; i < RECORDS * A; i++) {
      if (x.a[i] < low) low = x.a[i];
      if (x.a[i] > high) high = x.a[i];
    }
    const double range = 65535 / r->channels[0].gain;
    assert_true(range >= high - low && range <= (high - low) * 1.2 + 2e-6);
    sn_recording_destroy(r);
  }
}

static void only_annotations(void **state) {
  static content x;
  make_content(&x);
  x.annotations[1].channel = -1;
  x.file.n_signals = 0;
  x.file.n_records = 1;
  x.file.duration_num = 0;
  must_write(&x);
  sn_recording *r = NULL;
  sn_error err;
  assert_int_equal(sn_recording_open(path_of("a.edf"), NULL, &r, &err), SN_E_UNSUPPORTED);
  assert_non_null(strstr(err.message, "annotations"));
  const sn_open_options options = {.allow_no_signal = true};
  if (sn_recording_open(path_of("a.edf"), &options, &r, &err) != SN_OK) fail_msg("%s", err.message);
  check_annotations(r, &x);
  sn_recording_destroy(r);
}

static void must_refuse(content *x, const char *word) {
  sn_error err = {0};
  sn_status status = sn_edf_write(path_of("b.edf"), &x->file, &err);
  if (status != SN_E_ARGUMENT || strstr(err.message, word) == NULL)
    fail_msg("expected a refusal with '%s', found %s: %s", word, sn_status_name(status), err.message);
  assert_false(sn_path_exists(path_of("b.edf")));
  make_content(x);
}

static void refused(void **state) {
  static content x;
  make_content(&x);
  x.a[17] = NAN;
  must_refuse(&x, "not finite");
  x.b[3] = 1.5;
  must_refuse(&x, "outside its limits");
  for (int i = 0; i < RECORDS * A; i++) x.a[i] *= 1e-9;
  must_refuse(&x, "smaller unit");
  for (int i = 0; i < RECORDS * A; i++) x.a[i] *= 1e12;
  must_refuse(&x, "8 characters");
  x.signals[0].label = "seventeen letters";
  must_refuse(&x, "label");
  x.signals[0].label = "";
  must_refuse(&x, "label");
  x.signals[0].label = "\xC3\xB6";
  must_refuse(&x, "ASCII");
  x.signals[1].unit = "microvolt";
  must_refuse(&x, "unit");
  x.signals[2].samples_per_record = 0;
  must_refuse(&x, "samples");
  x.file.duration_den = 3;
  must_refuse(&x, "decimal");
  x.file.duration_num = 0;
  must_refuse(&x, "0 s");
  x.file.n_records = 0;
  must_refuse(&x, "0 records");
  x.onsets[2] = 0.9;
  x.file.onsets_s = x.onsets;
  must_refuse(&x, "record 2");
  x.annotations[0].text = (char *)"a\x14z";
  must_refuse(&x, "byte 20");
  x.annotations[0].text = (char *)"\xF6";
  must_refuse(&x, "UTF-8");
  x.annotations[0].text = (char *)"";
  must_refuse(&x, "no text");
  x.annotations[0].onset_s = NAN;
  must_refuse(&x, "annotation");
  x.annotations[0].channel = 3;
  must_refuse(&x, "channel");
  x.file.month = 13;
  must_refuse(&x, "date");
  x.file.start_ns = -1;
  must_refuse(&x, "fraction");
}

static void out_of_memory(void **state) {
  static content x;
  make_content(&x);
  for (fault_begin(); fault_next();) {
    sn_status status = sn_edf_write(path_of("c.edf"), &x.file, NULL);
    fault_check(status);
    assert_int_equal(sn_path_exists(path_of("c.edf")), status == SN_OK);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(limits), cmocka_unit_test(only_annotations),
                                     cmocka_unit_test(refused), cmocka_unit_test(out_of_memory)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
