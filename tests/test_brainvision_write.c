/* needs: full */
/* BrainVision written and read back: values, names, units, rates, markers, positions; what must be refused. */
#include <stdlib.h>
#include <unistd.h>

#include "alloc_fault.h"
#include "format_case.h"
#include "core/fs.h"
#include "modalities/formats/brainvision/brainvision.h"

enum { FRAMES = 2500 };

static char folder[] = "/tmp/sonde_brainvision_XXXXXX";
static double fp1[FRAMES], odd[FRAMES];
static const double *const values[2] = {fp1, odd};
static const sn_brainvision_channel channels[2] = {
    {.name = "Fp1", .unit = NULL, .resolution = 0.5, .has_position = true, .position_m = {-0.03, 0.085, 0.02}},
    {.name = "a, b", .reference = "Cz", .unit = "mV", .resolution = 0.001}};
static const sn_brainvision_marker markers[4] = {{"Stimulus", "S  1, left", 1200, 3, 1, NULL},
                                                 {"New Segment", NULL, 1000, 1, -1, "20200101000020000000"},
                                                 {"New Segment", NULL, 0, 1, -1, "20200101000000000000"},
                                                 {"Comment",
                                                  "Gr\xC3\xB6\xC3\x9F"
                                                  "e",
                                                  2499, 0, -1, NULL}};

static sn_brainvision_file example(sn_brainvision_type type) {
  return (sn_brainvision_file){.stem = "sub-01_eeg",
                               .type = type,
                               .rate_num = 300,
                               .rate_den = 1,
                               .n_channels = 2,
                               .n_frames = FRAMES,
                               .channels = channels,
                               .values = values,
                               .n_markers = 4,
                               .markers = markers};
}

static sn_recording *reopen(void) {
  char path[256];
  sn_recording *r = NULL;
  sn_error err;
  snprintf(path, sizeof path, "%s/sub-01_eeg.vhdr", folder);
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  return r;
}

static void fill(void) {
  for (int i = 0; i < FRAMES; i++) {
    fp1[i] = 0.5 * ((i * 7919) % 65536 - 32768);
    odd[i] = 0.001 * ((i * 104729) % 65536 - 32768);
  }
}

static void round_trip(void **state) {
  for (int reals = 0; reals < 2; reals++) {
    sn_error err;
    fill();
    if (reals) fp1[3] = NAN;
    const sn_brainvision_file f = example(reals ? SN_BRAINVISION_FLOAT32 : SN_BRAINVISION_INT16);
    if (sn_brainvision_write(folder, &f, NULL, &err) != SN_OK) fail_msg("%s", err.message);
    sn_recording *r = reopen();
    assert_int_equal(r->rate_num, 300);
    assert_int_equal(r->rate_den, 1);
    assert_int_equal(r->n_segments, 2);
    assert_int_equal(r->segments[0].n_frames, 1000);
    assert_int_equal(r->segments[1].start_frame, 6000); /* 20 s */
    assert_string_equal(r->channels[1].raw_name, "a, b");
    assert_string_equal(r->channels[0].unit, "uV");
    assert_string_equal(r->channels[1].raw_unit, "mV");
    assert_false(r->channels[0].unit_assumed);
    for (int i = 0; i < 3; i++) assert_true(fabs(r->channels[0].position_m[i] - channels[0].position_m[i]) < 1e-15);
    assert_false(r->channels[1].has_position);
    for (int64_t c = 0; c < 2; c++) {
      for (int64_t s = 0; s < 2; s++) {
        double read[1500];
        int64_t n = r->segments[s].n_frames;
        assert_int_equal(sn_recording_read(r, c, s, 0, n, read, NULL), SN_OK);
        for (int64_t i = 0; i < n; i++) {
          double expected = values[c][s * 1000 + i] * r->channels[c].unit_scale;
          /* The step of a float is 2^-24 of it; integers come back as they were. */
          double tolerance = reals ? 6e-8 * fabs(expected) : 1e-12 * fabs(expected);
          if (!(fabs(read[i] - expected) <= tolerance || (isnan(expected) && isnan(read[i]))))
            fail_msg("channel %lld sample %lld: %.17g, expected %.17g", (long long)c, (long long)i, read[i], expected);
        }
      }
    }
    sn_annotations *list;
    assert_int_equal(sn_recording_annotations(r, NULL, &list, NULL), SN_OK);
    assert_int_equal(list->n, 4);
    assert_string_equal(list->items[2].text, "S  1, left");
    assert_int_equal(list->items[2].sample, 6200);
    assert_int_equal(list->items[2].channel, 1);
    assert_string_equal(list->items[3].text,
                        "Gr\xC3\xB6\xC3\x9F"
                        "e");
    sn_annotations_destroy(list);
    sn_recording_destroy(r);
  }
}

static void must_refuse(const sn_brainvision_file *f, const char *word) {
  sn_error err = {0};
  sn_status status = sn_brainvision_write(folder, f, NULL, &err);
  if (status != SN_E_ARGUMENT || strstr(err.message, word) == NULL)
    fail_msg("%s: %s", sn_status_name(status), err.message);
}

static void refused(void **state) {
  fill();
  sn_brainvision_file f = example(SN_BRAINVISION_INT16);
  int64_t clipped;
  if (sn_brainvision_write(folder, &f, NULL, NULL) != SN_OK) fail_msg("the example");
  odd[17] = 40;
  must_refuse(&f, "sample 17 of 'a, b'");
  assert_int_equal(sn_brainvision_write(folder, &f, &clipped, NULL), SN_OK); /* clipped when asked, and counted */
  assert_int_equal(clipped, 1);
  odd[17] = NAN;
  must_refuse(&f, "sample 17");
  assert_int_equal(sn_brainvision_write(folder, &f, &clipped, NULL), SN_E_ARGUMENT);
  sn_recording *r = reopen(); /* what was there is still there, whole */
  double value;
  assert_int_equal(sn_recording_read(r, 1, 0, 17, 1, &value, NULL), SN_OK);
  assert_true(fabs(value - 32767) < 1e-9);
  sn_recording_destroy(r);
  fill();
  f.type = SN_BRAINVISION_FLOAT32;
  odd[5] = 1e300;
  must_refuse(&f, "sample 5");
  fill();
  f.stem = "a/x";
  must_refuse(&f, "holds '/'");
  f = example(SN_BRAINVISION_INT16);
  sn_brainvision_channel bad[2] = {channels[0], channels[1]};
  f.channels = bad;
  bad[1].name = "two\nlines";
  must_refuse(&f, "one line");
  bad[1] = channels[1];
  bad[1].resolution = 0;
  must_refuse(&f, "resolution");
  bad[1] = channels[1];
  bad[1].unit = "m,V";
  must_refuse(&f, "comma");
  f.channels = channels;
  const sn_brainvision_marker wrong[1] = {{"Stimulus", "x", FRAMES, 1, -1, NULL}};
  f.markers = wrong;
  f.n_markers = 1;
  must_refuse(&f, "frame 2500");
}

static void failing_allocations(void **state) {
  fill();
  const sn_brainvision_file f = example(SN_BRAINVISION_INT16);
  for (fault_begin(); fault_next();) {
    sn_error err;
    fault_check(sn_brainvision_write(folder, &f, NULL, &err));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(refused),
                                     cmocka_unit_test(failing_allocations)};
  if (mkdtemp(folder) == NULL) return 1;
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  if (sn_remove_tree(folder, NULL) != SN_OK) return 1;
  return failed;
}
