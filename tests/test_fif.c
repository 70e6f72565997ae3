/* needs: full */
/* FIF recordings as MNE reads them: the small files of tests/corpus/fif, and real ones where SONDE_DATA is set. */
#include "meg_golden.h"

#include "golden/fif_golden.h"
#include "golden/fif_small_golden.h"

enum { N_SMALL = sizeof FIF_SMALL_GOLDEN / sizeof FIF_SMALL_GOLDEN[0], N_REAL = sizeof FIF_GOLDEN / sizeof FIF_GOLDEN[0] };

static void small_files(void **state) {
  for (int i = 0; i < N_SMALL; i++) golden_check(SONDE_SOURCE_DIR "/tests/corpus/fif", &FIF_SMALL_GOLDEN[i]);
}

static void real_files(void **state) {
  const char *folder = golden_data_folder();
  for (int i = 0; i < N_REAL; i++) golden_check(folder, &FIF_GOLDEN[i]);
}

static const char *note(const sn_recording *r, const char *name) {
  for (int64_t i = 0; i < r->n_notes; i++)
    if (strcmp(r->notes[i].name, name) == 0) return r->notes[i].value;
  return "";
}

static void what_the_header_tells(void **state) {
  sn_recording *r = NULL;
  assert_int_equal(sn_recording_open(SONDE_SOURCE_DIR "/tests/corpus/fif/small_i16_raw.fif", NULL, &r, NULL), SN_OK);
  assert_string_equal(r->format, "fif");
  assert_string_equal(r->variant, "int16");
  assert_string_equal(r->modality, "meg");
  assert_string_equal(r->subject_id, "S-17");
  assert_string_equal(r->sex, "F");
  assert_true(r->age_years == 31); /* born 1970-12-04, measured 2002-12-03 */
  assert_true(strncmp(r->start_time, "2002-12-03T19:01:10", 19) == 0);
  assert_true(r->line_hz == 60);
  assert_string_equal(note(r, "highpass_hz"), "0.1");
  assert_string_equal(note(r, "lowpass_hz"), "172.17");
  assert_string_equal(note(r, "first_sample"), "120");
  assert_string_equal(note(r, "projectors"), "PCA-v1 off");
  assert_true(r->rate_num == 2460119 && r->rate_den == 4096); /* 600.614990234375 */
  int32_t stored = 0;
  assert_int_equal(sn_recording_read_stored(r, 10, 0, 63, 1, &stored, NULL), SN_OK);
  assert_int_equal(stored, 9);
  sn_recording_destroy(r);
  assert_int_equal(sn_recording_open(SONDE_SOURCE_DIR "/tests/corpus/fif/small_i32_raw.fif", NULL, &r, NULL), SN_OK);
  assert_true(isnan(r->age_years) && r->start_time[0] == '\0' && r->subject_id[0] == '\0');
  sn_recording_destroy(r);
}

/* FIF, but no raw recording: the message says what it is. Damaged ones: rejected, tolerant: what is there. */
static void other_files(void **state) {
  static const struct {
    const char *path;
    sn_status status;
    const char *word;
  } CASES[] = {{"meg/neuromag_ctf_fif/test-ave.fif.gz", SN_E_UNSUPPORTED, "averages"},
               {"meg/neuromag_ctf_fif/test-cov.fif.gz", SN_E_UNSUPPORTED, "covariance"},
               {"meg/neuromag_ctf_fif/test-eve.fif", SN_E_UNSUPPORTED, "events"},
               {"meg/neuromag_ctf_fif/test-eve.fif.gz", SN_E_UNSUPPORTED, "events"},
               {"meg/neuromag_ctf_fif/test_raw-eve.fif", SN_E_UNSUPPORTED, "events"},
               {"meg/neuromag_ctf_fif/test_raw-annot.fif", SN_E_UNSUPPORTED, "events"}, /* so it is, whatever its name */
               {"meg/neuromag_ctf_fif/test-proj.fif", SN_E_UNSUPPORTED, "projectors"},
               {"meg/neuromag_ctf_fif/test-proj.fif.gz", SN_E_UNSUPPORTED, "projectors"},
               {"meg/kit/trans-sample.fif", SN_E_UNSUPPORTED, "transform"},
               {"eeg/mutated/fif/little_endian_header-eve.fif", SN_E_FORMAT, "low byte first"},
               {"eeg/mutated/fif/not_fif-eve.fif", SN_E_FORMAT, "no FIF file"},
               {"eeg/mutated/fif/next_points_to_itself-proj.fif", SN_E_CORRUPT, "circle"},
               {"eeg/mutated/fif/tag_size_negative-eve.fif", SN_E_CORRUPT, "size -8"},
               {"eeg/mutated/fif/truncated_in_tag-eve.fif", SN_E_CORRUPT, "only 371 more"},
               {"eeg/mutated/fif/truncated_data_buffer_raw.fif", SN_E_CORRUPT, "327760 bytes"}};
  const char *folder = golden_data_folder();
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, CASES[i].path);
    sn_status status = sn_recording_open(path, NULL, &r, &err);
    if (status != CASES[i].status || strstr(err.message, CASES[i].word) == NULL)
      fail_msg("%s: %s %s", CASES[i].path, sn_status_name(status), status == SN_OK ? "" : err.message);
  }
  const sn_open_options tolerant = {.tolerant = true};
  snprintf(path, sizeof path, "%s/eeg/mutated/fif/truncated_data_buffer_raw.fif", folder);
  if (sn_recording_open(path, &tolerant, &r, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(r->segments[0].n_frames, (327760 - 200000 + 56) / (340 * 4)); /* 56: what stood behind the buffer */
  const golden_file *whole = &FIF_GOLDEN[0];
  double value;
  assert_int_equal(sn_recording_read(r, whole->rows[5].index, 0, 1, 1, &value, NULL), SN_OK);
  assert_true(golden_near(value, whole->rows[5].values[1], 1e-12 * whole->rows[5].sum_abs));
  sn_recording_destroy(r);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(small_files), cmocka_unit_test(real_files),
                                     cmocka_unit_test(what_the_header_tells), cmocka_unit_test(other_files)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
