/* needs: full */
/* CTF data sets made by hand: against MNE and the layout, and damaged. */
#include <stdlib.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/sha256.h"
#include "ctf_case.h"
#include "meg_golden.h"
#include "reader_case.h"

#include "golden/ctf_golden.h"

extern const sn_format sn_format_ctf;

static ctf_case made;

static void add_files(format_case *c) {
  for (int i = 0; i < CTF_FILES; i++) {
    int64_t n;
    const void *data = ctf_case_file(&made, i, &n);
    case_file(c, CTF_FILE_NAMES[i], data, n);
  }
}

static format_case opened(bool tolerant) {
  format_case c = {0};
  add_files(&c);
  case_open(&c, &sn_format_ctf, tolerant);
  return c;
}

/* ---- a folder on disk ---- */

static char root[] = "/tmp/sonde-ctf-XXXXXX";

static void write_set(const char *folder) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", root, folder);
  assert_int_equal(sn_make_directories(path, NULL), SN_OK);
  for (int i = 0; i < CTF_FILES; i++) {
    int64_t n;
    const void *data = ctf_case_file(&made, i, &n);
    snprintf(path, sizeof path, "%s/%s/%s", root, folder, CTF_FILE_NAMES[i]);
    assert_int_equal(sn_write_file(path, data, n, NULL), SN_OK);
  }
}

static void both_writers_agree(void **state) {
  ctf_case_make(&made);
  for (int i = 0; i < CTF_FILES; i++) {
    char digest[65];
    int64_t n;
    const void *data = ctf_case_file(&made, i, &n);
    sn_sha256_text(data, n, digest);
    if (strcmp(digest, CTF_DIGESTS[i]) != 0) fail_msg("%s is not what make_ctf.py writes", CTF_FILE_NAMES[i]);
  }
}

static void as_mne_reads_it(void **state) {
  ctf_case_make(&made);
  write_set("x.ds");
  golden_check(root, &CTF_GOLDEN[0]);
  sn_recording *r = NULL;
  sn_error err;
  char path[256];
  snprintf(path, sizeof path, "%s/x.ds/", root); /* as the shell completes it */
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  assert_string_equal(r->warnings[r->n_warnings - 1].code, "experimental");
  sn_recording_destroy(r);
  write_set("renamed.ds"); /* the only header counts, whatever its name */
  snprintf(path, sizeof path, "%s/renamed.ds", root);
  if (sn_recording_open(path, NULL, &r, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(r->n_files, 6);
  assert_string_equal(r->files[0], "x.res4");
  sn_recording_destroy(r);
  snprintf(path, sizeof path, "%s/renamed.ds/y.res4", root);
  assert_int_equal(sn_write_file(path, made.res4, sizeof made.res4, NULL), SN_OK);
  snprintf(path, sizeof path, "%s/renamed.ds", root);
  assert_int_equal(sn_recording_open(path, NULL, &r, &err), SN_E_FORMAT);
  assert_non_null(strstr(err.message, "2 .res4"));
}

/* ---- header and names ---- */

static const char *note(const sn_recording *r, const char *name) {
  for (int64_t i = 0; i < r->n_notes; i++)
    if (strcmp(r->notes[i].name, name) == 0) return r->notes[i].value;
  return "";
}

static void what_the_header_says(void **state) {
  ctf_case_make(&made);
  format_case c = opened(false);
  case_must(&c);
  const sn_recording *r = c.recording;
  assert_string_equal(r->channels[0].name, "MLC11");
  assert_string_equal(r->channels[0].raw_name, "MLC11-1609");
  assert_string_equal(r->channels[5].name, "Cz");
  assert_string_equal(r->start_time, "2008-11-11T14:05:09");
  assert_string_equal(r->subject_id, "S017");
  assert_string_equal(r->modality, "meg");
  assert_string_equal(note(r, "compensation_grade"), "3");
  assert_string_equal(note(r, "lowpass_hz"), "300");
  assert_string_equal(note(r, "highpass_hz"), "0.5");
  assert_string_equal(note(r, "trials"), "3 of 6 samples, sync point at 2");
  assert_true(r->n_segments == 2 && r->segments[0].n_frames == 12 && r->segments[1].n_frames == 6);
  assert_true(r->segments[1].start_frame == 12 + CTF_GAP &&
              golden_near(r->segments[1].start_s, (12 + CTF_GAP) / 1200.0, 1e-15));
  int32_t stored[12];
  assert_int_equal(sn_recording_read_stored(r, 2, 0, 0, 12, stored, NULL), SN_OK); /* across two trials */
  for (int k = 0; k < 12; k++) assert_int_equal(stored[k], ctf_case_sample(2, k / 6, k % 6));
  case_close(&c);
  case_open_as(&c, &sn_format_ctf, "x.1_meg4", false); /* any of its files */
  case_must(&c);
  assert_string_equal(c.recording->files[0], "x.res4");
  case_close(&c);
}

/* Nothing that stands in the files for a name comes out. */
static void no_names(void **state) {
  static const char *const FIELDS[] = {"Doe, Jane", "Doe", "jane doe", "MU\xCCLLER7", "S 17"};
  for (size_t i = 0; i < sizeof FIELDS / sizeof FIELDS[0]; i++) {
    ctf_case_make(&made);
    memset(made.res4 + 1712, 0, 32);
    memcpy(made.res4 + 1712, FIELDS[i], strlen(FIELDS[i]));
    format_case c = opened(false);
    case_must(&c);
    const sn_recording *r = c.recording;
    assert_string_equal(r->subject_id, "");
    for (int64_t k = 0; k < r->n_notes; k++) assert_null(strstr(r->notes[k].value, "Doe"));
    for (int64_t k = 0; k < r->n_warnings; k++) assert_null(strstr(r->warnings[k].message, "Doe"));
    assert_int_equal(r->n_comments, 0);
    case_close(&c);
  }
}

static void dates(void **state) {
  static const struct {
    const char *date, *time, *expected;
  } CASES[] = {{"11/12/2008", "14:05", "2008-12-11T14:05:00"},
               {"2008/12/11", "14:05:09", "2008-12-11T14:05:09"},
               {"Tue, Nov 11, 2008", "14:05:09", "2008-11-11T14:05:09"},
               {"14:05:09", "11/12/2008", "2008-12-11T14:05:09"},
               {"11-Foo-2008", "14:05", ""},
               {"40/12/2008", "14:05", ""},
               {"", "", ""}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    ctf_case_make(&made);
    memset(made.res4 + 778, 0, 510);
    memcpy(made.res4 + 778, CASES[i].time, strlen(CASES[i].time));
    memcpy(made.res4 + 1033, CASES[i].date, strlen(CASES[i].date));
    format_case c = opened(false);
    case_must(&c);
    assert_string_equal(c.recording->start_time, CASES[i].expected);
    case_close(&c);
  }
}

static void gains(void **state) {
  ctf_case_make(&made);
  put_be_f64(made.res4 + CTF_RECORDS + 24, 4);        /* the input's gain counts too */
  put_be_f64(made.res4 + CTF_RECORDS + 1328 + 16, 0); /* switched off */
  put_be_f64(made.res4 + CTF_RECORDS + 2 * 1328 + 16, NAN);
  format_case c = opened(false);
  case_must(&c);
  const sn_channel *ch = c.recording->channels;
  double v;
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &v, NULL), SN_OK);
  assert_true(golden_near(v, ctf_case_sample(0, 0, 0) / (-1e9 * 1048576 * 4) * 1e15, 1e-6));
  assert_true(ch[1].uncalibrated && ch[1].bad && ch[2].uncalibrated && !ch[0].bad);
  assert_int_equal(case_warning(&c, "calibration")->count, 2);
  c.recording->channels[1].uncalibrated = false; /* whoever clears it */
  assert_int_equal(sn_recording_read(c.recording, 1, 0, 0, 1, &v, NULL), SN_E_UNSUPPORTED);
  case_close(&c);
}

/* ---- places ---- */

static format_case without(int file, int also) {
  format_case c = {0};
  for (int i = 0; i < CTF_FILES; i++) {
    int64_t n;
    const void *data = ctf_case_file(&made, i, &n);
    if (i != file && i != also) case_file(&c, CTF_FILE_NAMES[i], data, n);
  }
  case_open(&c, &sn_format_ctf, false);
  case_must(&c);
  return c;
}

static void places(void **state) {
  double expected[3], direction[3];
  ctf_case_make(&made);
  format_case c = opened(false);
  case_must(&c);
  memcpy(expected, c.recording->channels[0].position_m, sizeof expected);
  memcpy(direction, c.recording->channels[0].orientation, sizeof direction);
  case_close(&c);
  memset(made.res4 + CTF_RECORDS + 688, 0, 640); /* no place in the head: by the dewar and the coils */
  c = opened(false);
  case_must(&c);
  for (int i = 0; i < 3; i++) {
    assert_true(golden_near(c.recording->channels[0].position_m[i], expected[i], 1e-8));
    assert_true(golden_near(c.recording->channels[0].orientation[i], direction[i], 1e-8));
  }
  assert_null(case_warning(&c, "head_position"));
  case_close(&c);
  c = without(CTF_FILE_HC, -1); /* without the coils: the dewar for this one, the head's table turned for the others */
  assert_true(c.recording->channels[0].frame == SN_FRAME_DEVICE &&
              golden_near(c.recording->channels[0].position_m[0], -0.04, 1e-12));
  const double *p = c.recording->channels[1].position_m;
  double in_head[3];
  ctf_case_to_head((const double[3]){4, 3, 8}, true, in_head);
  assert_true(c.recording->channels[1].frame == SN_FRAME_HEAD && golden_near(p[0], -in_head[1] / 100, 1e-12) &&
              golden_near(p[1], in_head[0] / 100, 1e-12));
  assert_non_null(case_warning(&c, "head_frame"));
  case_close(&c);
  ctf_case_make(&made);
  c = without(CTF_FILE_EEG, -1); /* electrodes stand in the first table, in the head */
  assert_true(golden_near(c.recording->channels[5].position_m[2], 0.09, 1e-12) &&
              c.recording->channels[5].frame == SN_FRAME_HEAD);
  case_close(&c);
  put_be_f64(made.res4 + CTF_RECORDS + 688, 99);
  c = without(-1, -1);
  assert_int_equal(case_warning(&c, "head_position")->count, 1);
  case_close(&c);
}

/* ---- trials on the time axis ---- */

static uint8_t *clock_at(int trial, int k) {
  return (trial < 2 ? made.meg4 + 8 + CTF_TRIAL * trial : made.meg4_1 + 8) + 4 * (CTF_SAMPLES * 7 + k);
}

static void segments_are(bool tolerant, int64_t n, const int64_t (*expected)[2], const char *code) {
  format_case c = opened(tolerant);
  case_must(&c);
  assert_int_equal(c.recording->n_segments, n);
  for (int64_t i = 0; i < n; i++) {
    assert_int_equal(c.recording->segments[i].start_frame, expected[i][0]);
    assert_int_equal(c.recording->segments[i].n_frames, expected[i][1]);
  }
  if (code != NULL) assert_non_null(case_warning(&c, code));
  case_close(&c);
}

static void trials(void **state) {
  ctf_case_make(&made);
  for (int k = 0; k < 6; k++) put_be32(clock_at(2, k), 120000 + 10 * (12 + k)); /* no gap */
  segments_are(false, 1, (const int64_t[][2]){{0, 18}}, NULL);
  for (int k = 0; k < 6; k++) put_be32(clock_at(2, k), 120000 + 10 * (12 + k) + 3); /* the clock's ticks are coarse */
  segments_are(false, 1, (const int64_t[][2]){{0, 18}}, NULL);
  for (int k = 0; k < 6; k++) put_be32(clock_at(2, k), 1000 + 10 * k); /* another day */
  segments_are(false, 2, (const int64_t[][2]){{0, 12}, {12, 6}}, "clock");
  put_be16(made.res4 + CTF_RECORDS + 1328 * 7, 18); /* no clock at all */
  segments_are(false, 3, (const int64_t[][2]){{0, 6}, {6, 6}, {12, 6}}, NULL);
  ctf_case_make(&made);
  for (int k = 3; k < 6; k++) put_be32(clock_at(2, k), 0); /* stopped in the third trial */
  segments_are(false, 2, (const int64_t[][2]){{0, 12}, {12 + CTF_GAP, 3}}, "stopped");
  for (int t = 1; t < 3; t++)
    for (int k = 0; k < 6; k++) put_be32(clock_at(t, k), 0);
  put_be32(clock_at(0, 5), 0);
  segments_are(false, 1, (const int64_t[][2]){{0, 5}}, "stopped");
  for (int k = 0; k < 6; k++) put_be32(clock_at(0, k), 0); /* a clock that never ran says nothing */
  segments_are(false, 3, (const int64_t[][2]){{0, 6}, {6, 6}, {12, 6}}, NULL);
  ctf_case_make(&made);
  put_be16(made.res4 + 1312, 2);
  segments_are(false, 1, (const int64_t[][2]){{0, 12}}, "surplus");
  put_be16(made.res4 + 1312, 4);
  segments_are(true, 2, (const int64_t[][2]){{0, 12}, {12 + CTF_GAP, 6}}, "truncated");
  put_be16(made.res4 + 776, 40);
  segments_are(true, 2, (const int64_t[][2]){{0, 12}, {12 + CTF_GAP, 6}}, "averaged");
}

/* ---- annotations ---- */

static sn_annotations *listed(const format_case *c, const char *which) {
  sn_annotations *list = NULL;
  sn_error err;
  if (sn_recording_annotations(c->recording, which, &list, &err) != SN_OK) fail_msg("%s", err.message);
  return list;
}

static const char CLASSES[] =
    "PATH OF DATASET:\n/data/x.ds\n\n\nNUMBER OF CLASSES:\n2\n\n\nCLASSGROUPID:\n+3\nNAME:\nBAD\nCOMMENT:\n\nNUMBER OF "
    "TRIALS:\n0\n"
    "LIST OF TRIALS:\nTRIAL NUMBER\n\n\nCLASSGROUPID:\n+3\nNAME:\nGr\xF6\xDF"
    "e\nNUMBER OF TRIALS:\n3\nLIST OF TRIALS:\nTRIAL NUMBER\n"
    "                  +0\n                  +2\n                  +7\n";

static void lists(void **state) {
  ctf_case_make(&made);
  format_case c = {0};
  add_files(&c);
  case_text(&c, "ClassFile.cls", CLASSES);
  case_open(&c, &sn_format_ctf, false);
  case_must(&c);
  sn_annotations *list = listed(&c, "classes");
  assert_int_equal(list->n, 2);
  assert_string_equal(list->items[0].text, "Größe");
  assert_true(list->items[0].sample == 0 && list->items[1].sample == 12 + CTF_GAP &&
              golden_near(list->items[1].duration_s, 6 / 1200.0, 1e-15));
  assert_string_equal(list->warnings[0].code, "annotation_beyond_end"); /* trial 7 */
  sn_annotations_destroy(list);
  list = listed(&c, "markers");
  assert_int_equal(list->n, 3);
  assert_string_equal(list->items[1].text, "button");
  assert_true(list->items[1].sample == 8 && golden_near(list->items[0].onset_s, 2 / 1200.0 + 0.0012, 1e-12));
  sn_annotations_destroy(list);
  list = listed(&c, "triggers");
  assert_int_equal(list->n, 4);
  sn_annotations_destroy(list);
  list = listed(&c, NULL);
  assert_int_equal(list->n, 10);
  sn_annotations_destroy(list);
  assert_int_equal(sn_recording_annotations(c.recording, "atr", &list, &c.err), SN_E_ARGUMENT);
  case_close(&c);
}

static void damaged_lists(void **state) {
  static const struct {
    int file;
    const char *text, *word;
  } CASES[] = {
      {CTF_FILE_MARKERS, "NUMBER OF MARKERS:\n2\nNAME:\na\nNUMBER OF SAMPLES:\n0\nLIST OF SAMPLES:\n",
       "announces 2 lists and holds 1"},
      {CTF_FILE_MARKERS, "NUMBER OF MARKERS:\nx\n", "a count"},
      {CTF_FILE_MARKERS, "NUMBER OF MARKERS:\n-1\n", "a count"},
      {CTF_FILE_MARKERS, "NUMBER OF MARKERS:\n1\nNAME:\na\nNUMBER OF SAMPLES:\n2\nLIST OF SAMPLES:\nTITLE\n0 0.1\n",
       "line 9"},
      {CTF_FILE_MARKERS, "NUMBER OF MARKERS:\n1\nNAME:\na\nNUMBER OF SAMPLES:\n1\nLIST OF SAMPLES:\nTITLE\n0\n",
       "a time"},
      {CTF_FILE_MARKERS, "NUMBER OF MARKERS:\n1\nNUMBER OF SAMPLES:\n1\nLIST OF SAMPLES:\nTITLE\n0 0\n",
       "without name"},
      {CTF_FILE_MARKERS,
       "NUMBER OF MARKERS:\n1\nNAME:\na\nNUMBER OF SAMPLES:\n9000000000000\nLIST OF SAMPLES:\nT\n0 0\n", "a time"},
      {CTF_FILE_MARKERS, "", "announces -1"},
      {CTF_FILE_SEGMENTS, "1 0.5\n", "line 1"},
      {CTF_FILE_SEGMENTS, "\n1 0.5 0.1\n", "line 2"},
      {CTF_FILE_SEGMENTS, "one 0 1\n", "line 1"}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    ctf_case_make(&made);
    snprintf(CASES[i].file == CTF_FILE_MARKERS ? made.markers : made.segments,
             64 + (CASES[i].file == CTF_FILE_MARKERS) * 900, "%s", CASES[i].text);
    format_case c = opened(false);
    case_must(&c);
    sn_annotations *list = NULL;
    sn_status status = sn_recording_annotations(c.recording, NULL, &list, &c.err);
    if (status != SN_E_CORRUPT || strstr(c.err.message, CASES[i].word) == NULL)
      fail_msg("case %d: %s: %s", (int)i, sn_status_name(status), status != SN_OK ? c.err.message : "");
    case_close(&c);
  }
}

/* ---- damage ---- */

static void damage(void **state) {
  static const struct {
    int at, bytes;
    int64_t value;
    sn_status status;
    const char *word;
  } CASES[] = {{0, 1, 'X', SN_E_FORMAT, "MEG41RS"},
               {1288, 4, 0, SN_E_CORRUPT, "0 samples"},
               {1288, 4, 0x7FFFFFFF, SN_E_CORRUPT, "ends inside"},
               {1292, 2, -1, SN_E_CORRUPT, "-1 channels"},
               {1292, 2, 32767, SN_E_CORRUPT, "32767 channels"},
               {1312, 2, 0, SN_E_CORRUPT, "0 trials"},
               {1312, 2, 4, SN_E_CORRUPT, "there are 3"},
               {1316, 4, 7, SN_E_CORRUPT, "sync point"},
               {1316, 4, -1, SN_E_CORRUPT, "sync point"},
               {1296, 4, 0x7FF80000, SN_E_CORRUPT, "Hz"},
               {1296, 4, 0, SN_E_CORRUPT, "0 Hz"},
               {1836, 4, -1, SN_E_CORRUPT, "description"},
               {1836, 4, 0x7FFFFFFF, SN_E_CORRUPT, ""},
               {CTF_FILTERS, 2, -1, SN_E_CORRUPT, "-1 filters"},
               {CTF_FILTERS, 2, 32767, SN_E_CORRUPT, ""},
               {CTF_FILTERS + 18, 2, -1, SN_E_CORRUPT, "parameters"},
               {CTF_FILTERS + 18, 2, 32767, SN_E_CORRUPT, ""}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    ctf_case_make(&made);
    put_be(made.res4 + CASES[i].at, (uint64_t)CASES[i].value, CASES[i].bytes);
    format_case c = opened(false);
    if (c.status != CASES[i].status || strstr(c.err.message, CASES[i].word) == NULL)
      fail_msg("case %d: %s: %s", (int)i, sn_status_name(c.status), c.status != SN_OK ? c.err.message : "");
    case_close(&c);
  }
  ctf_case_make(&made);
  made.meg4_1[5] = 'X';
  format_case c = opened(true);
  case_must_fail(&c, SN_E_CORRUPT, "x.1_meg4");
}

static void damaged_texts(void **state) {
  static const char *const HC[] = {"measured nasion coil position relative to head (cm):\n x = 1\n y = 2\n",
                                   "measured nasion coil position relative to head (mm):\n x = 1\n y = 2\n z = 3\n",
                                   "measured nasion coil position relative to head (cm):\n x = 1\n y = abc\n z = 3\n",
                                   "measured nasion coil position relative to head (cm):\n x = 1\n y = 0\n z = 0\n"
                                   "measured left ear coil position relative to head (cm):\n x = 1\n y = 0\n z = 0\n"
                                   "measured right ear coil position relative to head (cm):\n x = 1\n y = 0\n z = 0\n"};
  for (size_t i = 0; i < sizeof HC / sizeof HC[0]; i++) {
    ctf_case_make(&made);
    snprintf(made.hc, sizeof made.hc, "%s", HC[i]);
    format_case c = opened(false);
    case_must_fail(&c, SN_E_CORRUPT, "x.hc");
  }
  ctf_case_make(&made);
  snprintf(made.hc, sizeof made.hc, "Unable to measure the head\n"); /* then there are none */
  format_case c = opened(false);
  case_must(&c);
  assert_non_null(case_warning(&c, "head_frame"));
  case_close(&c);
  snprintf(made.eeg, sizeof made.eeg, "1 Cz-1609 1 2\n");
  c = opened(false);
  case_must_fail(&c, SN_E_CORRUPT, "x.eeg', line 1");
  ctf_case_make(&made);
  snprintf(made.bad, sizeof made.bad, "mrc12-1609\n\nXYZ\n");
  c = opened(false);
  case_must(&c);
  assert_true(c.recording->channels[1].bad && !c.recording->channels[0].bad);
  assert_int_equal(case_warning(&c, "bad_channel_unknown")->count, 1);
  case_close(&c);
  format_case alone = {0};
  case_file(&alone, "x.meg4", made.meg4, sizeof made.meg4);
  case_open(&alone, &sn_format_ctf, false);
  case_must_fail(&alone, SN_E_IO, "x.res4");
}

/* A file of data cut inside a trial: refused; tolerant: the whole trials before it. */
static void cut_data(void **state) {
  ctf_case_make(&made);
  format_case c = {0};
  add_files(&c);
  c.sizes[CTF_FILE_MEG4] -= 5;
  case_open(&c, &sn_format_ctf, true);
  case_must(&c);
  assert_true(c.recording->n_segments == 1 && c.recording->segments[0].n_frames == 6);
  assert_non_null(case_warning(&c, "truncated"));
  case_close(&c);
}

static void cut_everywhere(void **state) {
  static const int WHICH[] = {CTF_FILE_MEG4_1, CTF_FILE_HC, CTF_FILE_EEG, CTF_FILE_RES4};
  ctf_case_make(&made);
  format_case c = {0};
  add_files(&c);
  for (size_t i = 0; i < sizeof WHICH / sizeof WHICH[0]; i++) case_truncate(&c, &sn_format_ctf, WHICH[i]);
}

static void allocations_fail(void **state) {
  ctf_case_make(&made);
  format_case c = {0};
  add_files(&c);
  case_text(&c, "ClassFile.cls", CLASSES);
  case_allocations(&c, &sn_format_ctf, false);
}

static void changed_bits(void **state) {
  ctf_case_make(&made);
  format_case c = {0};
  add_files(&c);
  case_text(&c, "ClassFile.cls", CLASSES);
  case_change_bits(&c, &sn_format_ctf, 3);
}

static int set_up(void **state) { return mkdtemp(root) == NULL; }
static int tear_down(void **state) { return sn_remove_tree(root, NULL) != SN_OK; }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_writers_agree),
                                     cmocka_unit_test(as_mne_reads_it),
                                     cmocka_unit_test(what_the_header_says),
                                     cmocka_unit_test(no_names),
                                     cmocka_unit_test(dates),
                                     cmocka_unit_test(gains),
                                     cmocka_unit_test(places),
                                     cmocka_unit_test(trials),
                                     cmocka_unit_test(lists),
                                     cmocka_unit_test(damaged_lists),
                                     cmocka_unit_test(damage),
                                     cmocka_unit_test(damaged_texts),
                                     cmocka_unit_test(cut_data),
                                     cmocka_unit_test(cut_everywhere),
                                     cmocka_unit_test(allocations_fail),
                                     cmocka_unit_test(changed_bits)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
