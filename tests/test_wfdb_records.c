/* needs: full */
/* WFDB on real records: checksums of all, the values that other software read, damaged copies, threads. */
#include "wfdb_case.h"

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/sha256.h"
#include "core/text.h"
#include "golden/wfdb_golden.h"

static const char *data_folder;

static sn_recording *must_open(const char *name, bool tolerant) {
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  const sn_open_options options = {.tolerant = tolerant};
  snprintf(path, sizeof path, "%s/%s", data_folder, name);
  if (sn_recording_open(path, &options, &r, &err) != SN_OK) fail_msg("%s: %s", name, err.message);
  return r;
}

/* ---- every record ---- */

/* Records of a folder: opened, verified; returns how many. Those without their signal file must name it. */
static int check_folder(const char *name, int expected_absent, int64_t *n_unstated) {
  char path[1024];
  int n = 0, absent = 0;
  snprintf(path, sizeof path, "%s/%s", data_folder, name);
  DIR *folder = opendir(path);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 4, ".hea") != 0 || strstr(entry->d_name, "_layout") != NULL) continue;
    char file[1024];
    sn_recording *r = NULL;
    sn_error err;
    snprintf(file, sizeof file, "%.700s/%.300s", path, entry->d_name);
    sn_status status = sn_recording_open(file, NULL, &r, &err);
    if (status == SN_E_IO) {
      char signal_file[512];
      snprintf(signal_file, sizeof signal_file, "%.*s.dat", (int)length - 4, entry->d_name);
      assert_non_null(strstr(err.message, signal_file));
      absent++;
      continue;
    }
#ifndef SONDE_HAVE_FLAC
    if (status == SN_E_UNSUPPORTED && strncmp(entry->d_name, "flacformats", 11) == 0) {
      assert_non_null(strstr(err.message, "508"));
      n++;
      continue;
    }
#endif
    if (status != SN_OK) fail_msg("%s: %s", entry->d_name, err.message);
    if (r->vtable->verify(r, &err) != SN_OK) fail_msg("%s: %s", entry->d_name, err.message);
    for (int64_t i = 0; i < r->n_warnings; i++)
      if (strcmp(r->warnings[i].code, "checksum_absent") == 0) *n_unstated += r->warnings[i].count;
    sn_annotations *list = NULL;
    if (sn_recording_annotations(r, NULL, &list, &err) != SN_OK) fail_msg("%s: %s", entry->d_name, err.message);
    assert_int_equal(list->n_warnings, 0);
    sn_annotations_destroy(list);
    sn_recording_destroy(r);
    n++;
  }
  closedir(folder);
  assert_int_equal(absent, expected_absent);
  return n;
}

static void every_record_to_its_checksum(void **state) {
  int64_t unstated = 0;
  assert_int_equal(check_folder("ecg/wfdb_formats", 2, &unstated), 18);
  assert_int_equal(check_folder("ecg/wfdb_formats/multi-segment/041s", 0, &unstated), 3);
  assert_int_equal(check_folder("ecg/wfdb_formats/multi-segment/s25047", 0, &unstated), 20);
  assert_int_equal(unstated, 2); /* one signal of 0005, seen in the segment and in its record */
  assert_int_equal(check_folder("ecg/mitbih_arrhythmia_5min", 0, &unstated), 48);
  assert_int_equal(check_folder("ecg/cinc2021_12lead", 0, &unstated), 128);
  assert_int_equal(unstated, 13); /* eleven signals there add up to 0, which reads as "not stated" */
  assert_int_equal(check_folder("ecg/cinc2017_af", 0, &unstated), 300);
  assert_int_equal(unstated, 313); /* none of the 2017 headers states one */
}

static void stored_integers_of_the_peer(void **state) {
  int n = 0;
  for (size_t i = 0; i < sizeof WFDB_GOLDEN / sizeof WFDB_GOLDEN[0]; i++, n++) {
    char name[200], hex[65];
    snprintf(name, sizeof name, "ecg/%s.hea", WFDB_GOLDEN[i].record);
#ifndef SONDE_HAVE_FLAC
    if (strstr(name, "flac") != NULL) continue;
#endif
    sn_recording *r = must_open(name, false);
    sn_sha256 hash;
    uint8_t digest[32];
    sn_sha256_init(&hash);
    for (int64_t c = 0; c < r->n_channels; c++) {
      int64_t total = sn_recording_samples(r, c, 0);
      assert_int_equal(r->n_segments, 1);
      for (int64_t at = 0; at < total; at += 1000) { /* little-endian hosts; the loop is a chunked read as well */
        int32_t stored[1000];
        int64_t k = total - at < 1000 ? total - at : 1000;
        assert_int_equal(sn_recording_read_stored(r, c, 0, at, k, stored, NULL), SN_OK);
        sn_sha256_update(&hash, stored, 4 * k);
      }
    }
    sn_sha256_final(&hash, digest);
    sn_sha256_hex(digest, hex);
    if (strcmp(hex, WFDB_GOLDEN[i].sha256) != 0) fail_msg("%s: %s", name, hex);
    sn_recording_destroy(r);
  }
  assert_true(n >= 18);
}

/* ---- values that the original tools printed ---- */

/* rdsamp's columns from ecg/wfdb_formats/expected/NAME; "-" is missing. */
static double *read_table(const char *name, int columns, int64_t *rows) {
  char path[1024];
  sn_stream *stream;
  char *text;
  int64_t n = 0, capacity = 0, count = 0;
  double *table = NULL;
  sn_error err;
  snprintf(path, sizeof path, "%s/ecg/wfdb_formats/expected/%s", data_folder, name);
  if (sn_stream_open(path, &stream, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_stream_read_all(stream, 1 << 24, &text, &n, NULL), SN_OK);
  sn_stream_close(stream);
  for (char *word = strtok(text, " \t\r\n"); word != NULL; word = strtok(NULL, " \t\r\n")) {
    assert_int_equal(sn_grow(&table, &capacity, count + 1, sizeof *table, "table", NULL), SN_OK);
    table[count] = NAN;
    if (strcmp(word, "-") != 0) assert_true(sn_parse_f64(word, false, &table[count]));
    count++;
  }
  sn_free(text);
  assert_true(count > 0 && count % columns == 0);
  *rows = count / columns;
  return table;
}

/* Column `column` equals channel `channel` from sample `first` on; physical values were printed with 8 decimals. */
static void compare_column(const sn_recording *r, int64_t channel, int64_t first, const double *table, int columns,
                           int column, int64_t rows, bool physical, int64_t repeat) {
  assert_int_equal(r->n_segments, 1);
  for (int64_t i = 0; i < rows; i++) {
    double expected = table[i * columns + column], value = 0;
    int32_t stored = 0;
    if (physical) {
      assert_int_equal(sn_recording_read(r, channel, 0, first + i / repeat, 1, &value, NULL), SN_OK);
    } else {
      assert_int_equal(sn_recording_read_stored(r, channel, 0, first + i / repeat, 1, &stored, NULL), SN_OK);
      value = stored == INT32_MIN ? NAN : (double)stored;
    }
    bool equal = isnan(expected) ? isnan(value) : fabs(value - expected) <= (physical ? 5.0001e-9 : 0);
    if (!equal) fail_msg("channel %lld row %lld: %.10g, expected %.10g", (long long)channel, (long long)i, value, expected);
  }
}

static void compare_table(const char *record, const char *expected, int64_t first, int64_t n_rows, int columns,
                          const int64_t *channels, bool physical) {
  int64_t rows;
  double *table = read_table(expected, columns, &rows);
  sn_recording *r = must_open(record, false);
  assert_int_equal(rows, n_rows);
  for (int k = 0; k < columns; k++) compare_column(r, channels[k], first, table, columns, k, rows, physical, 1);
  sn_recording_destroy(r);
  sn_free(table);
}

static void values_of_rdsamp(void **state) {
  static const int64_t all[10] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, second[1] = {1};
  compare_table("ecg/wfdb_formats/test01_00s.hea", "record-1a", 0, 4000, 4, all, false);
  compare_table("ecg/wfdb_formats/3000003_0003.hea", "record-1d", 125, 875, 1, second, true);
  compare_table("ecg/wfdb_formats/binformats.hea", "record-1f.gz", 0, 499, 10, all, false);
  compare_table("ecg/wfdb_formats/100.hea", "record-2b", 1, 10799, 1, second, false);
  compare_table("ecg/wfdb_formats/100_3chan.hea", "record-2c", 0, 999, 3, all, true);
  compare_table("ecg/wfdb_formats/310derive.hea", "record-2d", 2, 1024, 2, all, false);
  compare_table("ecg/wfdb_formats/311derive.hea", "record-2e", 1, 977, 1, all, true);
#ifdef SONDE_HAVE_FLAC
  compare_table("ecg/wfdb_formats/flacformats.hea", "record-flac.gz", 0, 499, 3, all, false);
#endif
}

/* 03700181: rdsamp without -H averages the four samples of a frame; we never do, so the test does it. Signal 2 is skewed. */
static void averages_are_made_by_the_test(void **state) {
  int64_t rows;
  double *table = read_table("record-4c", 2, &rows);
  sn_recording *r = must_open("ecg/wfdb_formats/03700181.hea", false);
  assert_int_equal(rows, 15000);
  assert_int_equal(sn_recording_samples(r, 0, -1), 300000);
  for (int64_t i = 0; i < rows; i++) {
    int32_t four[4];
    assert_int_equal(sn_recording_read_stored(r, 0, 0, 4 * (1000 + i), 4, four, NULL), SN_OK);
    double mean = trunc((four[0] + four[1] + four[2] + four[3]) / 4.0); /* the tool divides integers */
    double value = mean / r->channels[0].gain;
    if (!(fabs(value - table[2 * i]) <= 5.0001e-9))
      fail_msg("row %lld: %.9g, expected %.9g (%d %d %d %d)", (long long)i, value, table[2 * i], four[0], four[1], four[2], four[3]);
  }
  compare_column(r, 2, 1000, table, 2, 1, rows, true, 1);
  sn_recording_destroy(r);
  sn_free(table);
}

static void segments_of_fixed_layout(void **state) {
  int64_t rows;
  double *table = read_table("record-multi-fixed-d.gz", 3, &rows);
  sn_recording *r = must_open("ecg/wfdb_formats/multi-segment/041s/041s.hea", false);
  assert_int_equal(rows, 8000); /* high resolution: the slow signal repeated four times */
  for (int64_t i = 0; i < 3 * rows; i++) /* the tool prints format 212's missing mark as a number */
    if (table[i] == -2048) table[i] = NAN;
  compare_column(r, 3, 0, table, 3, 0, rows, false, 4);
  compare_column(r, 2, 0, table, 3, 1, rows, false, 1);
  compare_column(r, 1, 0, table, 3, 2, rows, false, 1);
  sn_recording_destroy(r);
  sn_free(table);
}

static void segments_of_variable_layout(void **state) {
  sn_recording *r = must_open("ecg/wfdb_formats/multi-segment/s25047/s25047-2704-05-04-10-44.hea", false);
  sn_recording *last = must_open("ecg/wfdb_formats/multi-segment/s25047/3234460_0018.hea", false);
  double a[500], b[500];
  assert_int_equal(r->n_segments, 18);
  assert_int_equal(r->segments[0].start_frame, 25740);
  assert_true(r->segments[0].start_s == 25740 / 125.0);
  assert_int_equal(r->segments[17].start_frame + r->segments[17].n_frames, 543240);
  assert_int_equal(sn_recording_find_channel(r, "ABP"), 2);
  assert_int_equal(sn_recording_read(r, 2, 0, 100, 500, a, NULL), SN_OK); /* no ABP at the beginning */
  for (int i = 0; i < 500; i++) assert_true(isnan(a[i]));
  for (int64_t c = 0; c < 3; c++) { /* the piece's own gain, not the layout's */
    assert_int_equal(sn_recording_read(r, c, 17, 4000, 500, a, NULL), SN_OK);
    assert_int_equal(sn_recording_read(last, c, 0, 4000, 500, b, NULL), SN_OK);
    assert_memory_equal(a, b, sizeof a);
  }
  sn_recording_destroy(r);
  sn_recording_destroy(last);
}

static void skewed_copy(void **state) {
  sn_recording *plain = must_open("ecg/wfdb_formats/100.hea", false), *skewed = must_open("ecg/wfdb_formats/100skew.hea", false);
  int32_t a[1000], b[1000];
  for (int64_t c = 0; c < 2; c++) {
    assert_int_equal(sn_recording_read_stored(plain, c, 0, 5000 + (c == 1 ? 3 : 0), 1000, a, NULL), SN_OK);
    assert_int_equal(sn_recording_read_stored(skewed, c, 0, 5000, 1000, b, NULL), SN_OK);
    assert_memory_equal(a, b, sizeof a);
  }
  assert_int_equal(sn_recording_read_stored(skewed, 1, 0, 649990, 10, b, NULL), SN_OK);
  for (int i = 0; i < 10; i++) assert_int_equal(b[i] == INT32_MIN, i >= 7);
  sn_recording_destroy(plain);
  sn_recording_destroy(skewed);
}

/* A signal file opens the record that names it; a record may be called by its bare name. */
static void other_ways_to_name_it(void **state) {
  static const char *const names[] = {"ecg/cinc2017_af/A00001.mat", "ecg/cinc2017_af/A00001", "ecg/wfdb_formats/s0010_re.xyz",
                                      "ecg/wfdb_formats/binformats.d3"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) sn_recording_destroy(must_open(names[i], false));
  char path[1024];
  sn_recording *r = NULL;
  sn_error err;
  snprintf(path, sizeof path, "%s/ecg/wfdb_formats/test_edfann.edf", data_folder);
  sn_status status = sn_recording_open(path, NULL, &r, &err);
  assert_true(status != SN_OK || strcmp(r->format, "wfdb") != 0);
  sn_recording_destroy(r);
}

/* ---- damaged copies: eeg/mutated/wfdb, as its index says ---- */

static void damaged_copies(void **state) {
  static const struct {
    const char *folder;
    sn_status strict, tolerant, annotations; /* annotations: of the strict recording, SN_END: not opened */
    int64_t frames, n_annotations;           /* of the tolerant one */
    const char *word;                        /* of the strict error, or of a warning */
  } rows[] = {
      {"good_10s", SN_OK, SN_OK, SN_OK, 3600, 14, NULL},
      {"dat_truncated_odd", SN_E_CORRUPT, SN_OK, SN_END, 3266, 12, "100.dat"},
      {"dat_empty", SN_E_CORRUPT, SN_E_CORRUPT, SN_END, 0, 0, "100.dat"},
      {"fmt_unknown", SN_E_UNSUPPORTED, SN_E_UNSUPPORTED, SN_END, 0, 0, "format 99"},
      {"gain_zero", SN_OK, SN_OK, SN_OK, 3600, 14, "gain_absent"},
      {"gain_negative", SN_OK, SN_OK, SN_OK, 3600, 14, NULL},
      {"length_missing", SN_OK, SN_OK, SN_OK, 3600, 14, NULL},
      {"length_overflow", SN_E_CORRUPT, SN_E_CORRUPT, SN_END, 0, 0, "number of samples"},
      {"crlf_header", SN_OK, SN_OK, SN_OK, 3600, 14, NULL},
      {"path_traversal", SN_E_CORRUPT, SN_E_CORRUPT, SN_END, 0, 0, "folder"},
      {"name_mismatch", SN_OK, SN_OK, SN_OK, 3600, 14, "record_name"},
      {"header_empty", SN_E_CORRUPT, SN_E_CORRUPT, SN_END, 0, 0, "record line"},
      {"header_non_ascii", SN_OK, SN_OK, SN_OK, 3600, 14, "text_encoding"},
      {"atr_truncated_in_aux", SN_OK, SN_OK, SN_E_CORRUPT, 3600, 0, "100.atr"},
      {"atr_odd_length", SN_OK, SN_OK, SN_OK, 3600, 14, "annotation_surplus"},
      {"atr_beyond_end", SN_OK, SN_OK, SN_OK, 3600, 14, "annotation_beyond_end"},
  };
  double good[100], value[100];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      char path[1024];
      sn_recording *r = NULL;
      sn_annotations *list = NULL;
      sn_error err = {0};
      const sn_open_options options = {.tolerant = tolerant == 1};
      bool said = rows[i].word == NULL;
      snprintf(path, sizeof path, "%s/eeg/mutated/wfdb/%s/100.hea", data_folder, rows[i].folder);
      sn_status status = sn_recording_open(path, &options, &r, &err);
      if (status != (tolerant ? rows[i].tolerant : rows[i].strict))
        fail_msg("%s: %s %s", rows[i].folder, sn_status_name(status), err.message);
      if (status != SN_OK) {
        assert_true(tolerant == 1 || strstr(err.message, rows[i].word) != NULL);
        continue;
      }
      if (tolerant == 1) assert_int_equal(r->segments[0].n_frames, rows[i].frames);
      assert_int_equal(r->vtable->verify(r, NULL), SN_OK);
      status = sn_recording_annotations(r, NULL, &list, &err);
      assert_int_equal(status, tolerant ? SN_OK : rows[i].annotations);
      if (tolerant == 1) assert_int_equal(list->n, rows[i].n_annotations);
      for (int64_t w = 0; w < r->n_warnings && !said; w++)
        said = strcmp(r->warnings[w].code, rows[i].word) == 0 || strcmp(r->warnings[w].where, rows[i].word) == 0;
      for (int64_t w = 0; list != NULL && w < list->n_warnings && !said; w++)
        said = strcmp(list->warnings[w].code, rows[i].word) == 0 || strcmp(list->warnings[w].where, rows[i].word) == 0;
      if (status != SN_OK) said = strstr(err.message, rows[i].word) != NULL;
      assert_true(said);
      assert_int_equal(sn_recording_read(r, 0, 0, 1000, 100, value, NULL), SN_OK);
      if (i == 0) memcpy(good, value, sizeof good);
      for (int k = 0; k < 100; k++)
        assert_true(value[k] == (strcmp(rows[i].folder, "gain_negative") == 0 ? -good[k] : good[k]));
      sn_annotations_destroy(list);
      sn_recording_destroy(r);
    }
  }
}

/* ---- threads on FLAC, whose decoder has a position ---- */

#ifdef SONDE_HAVE_FLAC
typedef struct flac_reader {
  const sn_recording *recording;
  const int32_t *expected; /* (3, 499) */
  uint32_t seed;
  int wrong;
} flac_reader;

static void *read_flac_windows(void *self) {
  flac_reader *w = self;
  for (int turn = 0; turn < 200; turn++) {
    int32_t stored[499];
    w->seed = w->seed * 1664525u + 1013904223u;
    int64_t channel = (w->seed >> 8) % 3, first = (w->seed >> 12) % 499, count = (w->seed >> 3) % (uint32_t)(499 - first) + 1;
    if (sn_recording_read_stored(w->recording, channel, 0, first, count, stored, NULL) != SN_OK) w->wrong++;
    else if (memcmp(stored, w->expected + channel * 499 + first, (size_t)count * 4) != 0) w->wrong++;
  }
  return NULL;
}

static void flac_windows_by_threads(void **state) {
  sn_recording *r = must_open("ecg/wfdb_formats/flacformats.hea", false);
  int32_t expected[3 * 499];
  pthread_t threads[3];
  flac_reader readers[3];
  for (int64_t c = 0; c < 3; c++)
    assert_int_equal(sn_recording_read_stored(r, c, 0, 0, 499, expected + c * 499, NULL), SN_OK);
  for (int t = 0; t < 3; t++) {
    readers[t] = (flac_reader){r, expected, (uint32_t)t * 77 + 1, 0};
    assert_int_equal(pthread_create(&threads[t], NULL, read_flac_windows, &readers[t]), 0);
  }
  for (int t = 0; t < 3; t++) {
    pthread_join(threads[t], NULL);
    assert_int_equal(readers[t].wrong, 0);
  }
  sn_recording_destroy(r);
}

/* The bytes of a FLAC file cut at every place: an error or all samples, never others. */
static void flac_cut_everywhere(void **state) {
  char path[1024];
  sn_stream *stream;
  char *bytes;
  int64_t n;
  snprintf(path, sizeof path, "%s/ecg/wfdb_formats/flacformats.d1", data_folder);
  assert_int_equal(sn_stream_open(path, &stream, NULL), SN_OK);
  assert_int_equal(sn_stream_read_all(stream, 1 << 20, &bytes, &n, NULL), SN_OK);
  sn_stream_close(stream);
  int32_t whole[499], part[499];
  int failed = 0;
  wfdb_case c = case_open("r 1 200 499\nr.dat 516 200/mV\n", bytes, n, false);
  case_must(&c);
  assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 0, 499, whole, NULL), SN_OK);
  case_close(&c);
  for (int64_t cut = 0; cut < n; cut++) {
    c = case_open("r 1 200 499\nr.dat 516 200/mV\n", bytes, cut, cut % 2 == 1);
    sn_status status = c.status;
    if (status == SN_OK) status = sn_recording_read_stored(c.recording, 0, 0, 0, 499, part, NULL);
    if (status == SN_OK) assert_memory_equal(whole, part, sizeof whole);
    else assert_int_equal(status, SN_E_CORRUPT);
    failed += status != SN_OK;
    case_close(&c);
  }
  assert_true(failed > n / 2);
  sn_free(bytes);
}
#endif

int main(void) {
  data_folder = getenv("SONDE_DATA");
  if (data_folder == NULL) {
    print_message("skipped: SONDE_DATA is not set\n");
    return 77;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_record_to_its_checksum), cmocka_unit_test(stored_integers_of_the_peer),
      cmocka_unit_test(values_of_rdsamp),             cmocka_unit_test(averages_are_made_by_the_test),
      cmocka_unit_test(segments_of_fixed_layout),     cmocka_unit_test(segments_of_variable_layout),
      cmocka_unit_test(skewed_copy),                  cmocka_unit_test(other_ways_to_name_it),
      cmocka_unit_test(damaged_copies),
#ifdef SONDE_HAVE_FLAC
      cmocka_unit_test(flac_windows_by_threads),      cmocka_unit_test(flac_cut_everywhere),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
