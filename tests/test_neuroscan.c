/* needs: full */
/* Neuroscan on hand-made files (golden/make_neuroscan.py, which had MNE-Python read them to the same values), and
 * damage. */
#include "alloc_fault.h"
#include "format_case.h"

extern const sn_format sn_format_neuroscan;

typedef struct loaded {
  char *bytes;
  int64_t n;
} loaded;

static loaded load(const char *name) {
  loaded l;
  sn_stream *stream;
  char path[512];
  snprintf(path, sizeof path, SONDE_SOURCE_DIR "/tests/golden/neuroscan/%s", name);
  assert_int_equal(sn_stream_open(path, &stream, NULL), SN_OK);
  assert_int_equal(sn_stream_read_all(stream, 1 << 20, &l.bytes, &l.n, NULL), SN_OK);
  sn_stream_close(stream);
  return l;
}

static format_case opened(const loaded *l, bool tolerant) {
  format_case c = {0};
  case_file(&c, "r.cnt", l->bytes, l->n);
  case_open(&c, &sn_format_neuroscan, tolerant);
  return c;
}

static void values_and_events(void **state) {
  static const struct {
    const char *code;
    int64_t sample;
  } events[4] = {{"11", 0}, {"keyboard 5", 3}, {"accept 14", 20}, {"300", 39}};
  for (int width = 2; width <= 4; width += 2) {
    for (int kind = 1; kind <= 3; kind++) {
      char name[32];
      snprintf(name, sizeof name, "w%dk%d.cnt", width, kind);
      loaded l = load(name);
      format_case c = opened(&l, false);
      case_must(&c);
      const sn_recording *r = c.recording;
      assert_int_equal(r->n_channels, 3);
      assert_int_equal(r->rate_num, 250);
      assert_int_equal(r->segments[0].n_frames, 40);
      assert_string_equal(r->channels[0].raw_name, "FP1");
      assert_true(r->channels[1].bad && !r->channels[0].bad);
      assert_int_equal(r->channels[2].kind, SN_SENSOR_EOG);
      for (int64_t k = 0; k < 3; k++) {
        double values[40];
        int32_t stored[40];
        assert_int_equal(sn_recording_read(r, k, 0, 0, 40, values, NULL), SN_OK);
        assert_int_equal(sn_recording_read_stored(r, k, 0, 0, 40, stored, NULL), SN_OK);
        for (int32_t t = 0; t < 40; t++) {
          int32_t expected = (width == 2 ? 100 : 100000) * (int32_t)k + t - 7;
          assert_int_equal(stored[t], expected);
          double microvolt = (expected - (double)k) * 2.0 * 1.5 / 204.8;
          assert_true(fabs(values[t] - microvolt) <= 1e-12 * fabs(microvolt));
        }
      }
      sn_annotations *list = case_annotations(&c);
      assert_int_equal(list->n, 4);
      for (int i = 0; i < 4; i++) {
        assert_string_equal(list->items[i].text, events[i].code);
        assert_int_equal(list->items[i].sample, events[i].sample);
        assert_true(list->items[i].onset_s == (double)events[i].sample / 250);
      }
      sn_annotations_destroy(list);
      assert_non_null(case_warning(&c, "annotation_beyond_end"));
      case_close(&c);
      sn_free(l.bytes);
    }
  }
}

static void patched(loaded *l, int64_t at, const char *bytes, int64_t n, sn_status status, const char *word) {
  char kept[16];
  memcpy(kept, l->bytes + at, (size_t)n);
  memcpy(l->bytes + at, bytes, (size_t)n);
  format_case c = opened(l, false);
  case_must_fail(&c, status, word);
  memcpy(l->bytes + at, kept, (size_t)n);
}

static void damage(void **state) {
  loaded l = load("w2k2.cnt");
  patched(&l, 0, "Nothing", 7, SN_E_FORMAT, "no Neuroscan file");
  patched(&l, 370, "\0\0", 2, SN_E_CORRUPT, "0 channels");
  patched(&l, 370, "\4\0", 2, SN_E_CORRUPT, "neither 16 nor 32");
  patched(&l, 376, "\0\0", 2, SN_E_CORRUPT, "0 Hz");
  patched(&l, 864, "\0\0\0\0", 4, SN_E_CORRUPT, "no samples");
  patched(&l, 864, "\377\377\377\377", 4, SN_E_CORRUPT, "neither 16 nor 32");
  patched(&l, 886, "\0\0\0\0", 4, SN_E_CORRUPT, "event table");
  patched(&l, 886, "\377\377\377\177", 4, SN_E_CORRUPT, "event table");
  patched(&l, 894, "\50\0\0\0", 4, SN_E_UNSUPPORTED, "blocks of 40 bytes");
  const int64_t table = 900 + 75 * 3 + 3 * 40 * 2;
  patched(&l, table, "\7", 1, SN_E_CORRUPT, "kind 7");
  patched(&l, table + 1, "\377\377\377\177", 4, SN_E_CORRUPT, "event table");
  l.bytes[table] = 7;
  format_case c = opened(&l, true);
  case_must(&c);
  assert_non_null(case_warning(&c, "events_absent"));
  case_close(&c);
  /* Fault 5: a channel without a calibration is listed, and leaves the others alone. */
  l.bytes[table] = 2;
  memset(l.bytes + 900 + 59, 0, 4);
  c = opened(&l, false);
  case_must(&c);
  double value;
  assert_true(c.recording->channels[0].uncalibrated);
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  c.recording->channels[0].uncalibrated = false; /* whoever clears it */
  assert_int_equal(sn_recording_read(c.recording, 0, 0, 0, 1, &value, NULL), SN_E_UNSUPPORTED);
  assert_int_equal(sn_recording_read(c.recording, 1, 0, 0, 1, &value, NULL), SN_OK);
  case_close(&c);
  sn_free(l.bytes);
}

static void truncated_anywhere(void **state) {
  loaded l = load("w2k1.cnt");
  format_case c = {0};
  case_file(&c, "r.cnt", l.bytes, l.n);
  case_truncate(&c, &sn_format_neuroscan, 0);
  sn_free(l.bytes);
}

static void failing_allocations(void **state) {
  loaded l = load("w4k3.cnt");
  for (fault_begin(); fault_next();) {
    format_case c = opened(&l, false);
    fault_check(c.status);
    case_close(&c);
  }
  sn_free(l.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values_and_events), cmocka_unit_test(damage),
                                     cmocka_unit_test(truncated_anywhere), cmocka_unit_test(failing_allocations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
