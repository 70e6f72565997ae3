/* needs: full */
/* BrainVision on hand-made files: number formats, layouts, encodings, units, markers and segments, damage. */
#include "alloc_fault.h"
#include "format_case.h"

extern const sn_format sn_format_brainvision;

#define FIRST "Brain Vision Data Exchange Header File Version 1.0\n"
#define MARKERS "Brain Vision Data Exchange Marker File, Version 1.0\n[Marker Infos]\n"
#define COMMON(orientation, channels, interval)                                                              \
  FIRST "[Common Infos]\nDataFile=r.eeg\nMarkerFile=r.vmrk\nDataFormat=BINARY\nDataOrientation=" orientation \
        "\nNumberOfChannels=" channels "\nSamplingInterval=" interval "\n"
#define TWO "[Channel Infos]\nCh1=Fp1,,0.5,uV\nCh2=Cz,,2,mV\n"

/* Header, markers and data of a file r; returns it opened. */
static format_case opened(const char *header, const char *markers, const void *data, int64_t n, bool tolerant) {
  format_case c = {0};
  case_text(&c, "r.vhdr", header);
  case_file(&c, "r.eeg", data, n);
  if (markers != NULL) case_text(&c, "r.vmrk", markers);
  case_open(&c, &sn_format_brainvision, tolerant);
  return c;
}

/* ---- number formats and layouts ---- */

static const double FP1[3] = {0.5, -1, 16383.5}, CZ[3] = {4000, 6000, -65536000};

static void multiplexed_and_vectorized(void **state) {
  const int16_t points[6] = {1, 2, -2, 3, 32767, -32768}, channels[6] = {1, -2, 32767, 2, 3, -32768};
  const int32_t stored[3] = {2, 3, -32768};
  for (int vectorized = 0; vectorized < 2; vectorized++) {
    format_case c = opened(vectorized ? COMMON("VECTORIZED", "2", "4000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO
                                      : COMMON("MULTIPLEXED", "2", "4000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO,
                           MARKERS, vectorized ? channels : points, 12, false);
    int32_t read[3];
    double both[2][3], *to[2] = {both[0], both[1]};
    const int64_t order[2] = {1, 0};
    case_must(&c);
    const sn_recording *r = c.recording;
    assert_int_equal(r->n_channels, 2);
    assert_int_equal(r->rate_num, 250);
    assert_int_equal(r->rate_den, 1);
    assert_int_equal(r->segments[0].n_frames, 3);
    assert_string_equal(r->modality, "eeg");
    case_values(&c, 0, 0, 0, 3, FP1);
    case_values(&c, 1, 0, 0, 3, CZ);
    case_values(&c, 1, 0, 1, 1, CZ + 1);
    assert_int_equal(sn_recording_read_stored(r, 1, 0, 0, 3, read, NULL), SN_OK);
    assert_memory_equal(read, stored, sizeof stored);
    assert_int_equal(sn_recording_read_channels(r, order, 2, 0, 0, 3, to, NULL), SN_OK);
    assert_memory_equal(both[0], CZ, sizeof CZ);
    assert_memory_equal(both[1], FP1, sizeof FP1);
    assert_int_equal(sn_recording_read(r, 0, 0, 1, 3, both[0], NULL), SN_E_ARGUMENT);
    assert_string_equal(r->channels[1].unit, "uV");
    assert_string_equal(r->channels[1].raw_unit, "mV");
    case_close(&c);
  }
}

static void other_number_formats(void **state) {
  const uint8_t int32[16] = {1, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0, 1, 0, 0, 0, 0, 0x80};
  const uint8_t big[8] = {0, 1, 0xFF, 0xFE, 0x7F, 0xFF, 0x80, 0};
  const float reals[4] = {1.5f, -2, INFINITY, NAN};
  const double fp1[2] = {0.5, 32768}, cz[2] = {-4000, -4294967296000.0};
  format_case c =
      opened(COMMON("MULTIPLEXED", "2", "4000") "[Binary Infos]\nBinaryFormat=INT_32\n" TWO, MARKERS, int32, 16, false);
  case_must(&c);
  case_values(&c, 0, 0, 0, 2, fp1);
  case_values(&c, 1, 0, 0, 2, cz);
  case_close(&c);
  const double big_fp1[2] = {0.5, 16383.5}, signed_cz[2] = {-4000, -65536000}, unsigned_cz[2] = {131068000, 65536000};
  c = opened(COMMON("MULTIPLEXED", "2", "4000") "[Binary Infos]\nBinaryFormat=INT_16\nUseBigEndianOrder=YES\n" TWO,
             MARKERS, big, 8, false);
  case_must(&c);
  case_values(&c, 0, 0, 0, 2, big_fp1);
  case_values(&c, 1, 0, 0, 2, signed_cz);
  case_close(&c);
  c = opened(COMMON("MULTIPLEXED", "2", "4000") "[Binary Infos]\nBinaryFormat=UINT_16\nUseBigEndianOrder=YES\n" TWO,
             MARKERS, big, 8, false);
  case_must(&c);
  case_values(&c, 1, 0, 0, 2, unsigned_cz);
  case_close(&c);
  /* A number that is none is a missing sample; infinity does not pass without a word either. */
  const double real_fp1[2] = {0.75, NAN}, real_cz[2] = {-4000, NAN};
  int32_t stored[1];
  c = opened(COMMON("MULTIPLEXED", "2", "4000") "[Binary Infos]\nBinaryFormat=IEEE_FLOAT_32\n" TWO, MARKERS, reals, 16,
             false);
  case_must(&c);
  case_values(&c, 0, 0, 0, 2, real_fp1);
  case_values(&c, 1, 0, 0, 2, real_cz);
  assert_int_equal(sn_recording_read_stored(c.recording, 0, 0, 0, 1, stored, NULL), SN_E_UNSUPPORTED);
  case_close(&c);
}

/* Neighbouring channels are decoded together: the same bits as each alone, whatever their number and that of the
 * frames. */
static void together_as_alone(void **state) {
  enum { CHANNELS = 21, MOST = 37 };
  static int16_t words[CHANNELS * MOST];
  static float reals[CHANNELS * MOST];
  char header[4096] = "";
  uint32_t random = 1;
  for (int i = 0; i < CHANNELS * MOST; i++) {
    random = random * 1664525 + 1013904223;
    words[i] = (int16_t)(random >> 16);
    reals[i] = i % 29 == 3 ? NAN : i % 31 == 5 ? -INFINITY : (float)(int32_t)random * 1e-3f;
  }
  for (int format = 0; format < 2; format++) {
    size_t used = (size_t)snprintf(
        header, sizeof header, COMMON("MULTIPLEXED", "21", "4000") "[Binary Infos]\nBinaryFormat=%s\n[Channel Infos]\n",
        format == 0 ? "INT_16" : "IEEE_FLOAT_32");
    for (int k = 0; k < CHANNELS; k++)
      used += (size_t)snprintf(header + used, sizeof header - used, "Ch%d=c%d,,%d.1,uV\n", k + 1, k, k);
    for (int64_t frames = 1; frames <= MOST; frames++) {
      static double values[CHANNELS][MOST], alone[MOST];
      double *to[CHANNELS];
      int64_t order[CHANNELS];
      format_case c = format == 0 ? opened(header, MARKERS, words, frames * CHANNELS * 2, false)
                                  : opened(header, MARKERS, reals, frames * CHANNELS * 4, false);
      case_must(&c);
      for (int64_t k = 0; k < CHANNELS; k++) { /* two runs of neighbours, one that goes back */
        order[k] = k < 10 ? k + 11 : k < 19 ? k - 10 : 29 - k;
        to[k] = values[k];
      }
      assert_int_equal(sn_recording_read_channels(c.recording, order, CHANNELS, 0, 0, frames, to, NULL), SN_OK);
      for (int64_t k = 0; k < CHANNELS; k++) {
        assert_int_equal(sn_recording_read(c.recording, order[k], 0, 0, frames, alone, NULL), SN_OK);
        for (int64_t t = 0; t < frames; t++)
          assert_true(values[k][t] == alone[t] || (isnan(values[k][t]) && isnan(alone[t])));
      }
      case_close(&c);
    }
  }
}

static void text_data(void **state) {
  static const char common[] = FIRST
      "[Common Infos]\nDataFile=r.eeg\nDataFormat=ASCII\nDataOrientation=MULTIPLEXED\n"
      "NumberOfChannels=2\nSamplingInterval=4000\n[ASCII Infos]\nDecimalSymbol=,\nSkipLines=1\n" TWO;
  static const char vectorized[] = FIRST
      "[Common Infos]\nDataFile=r.eeg\nDataFormat=ASCII\nDataOrientation=VECTORIZED\n"
      "NumberOfChannels=2\nSamplingInterval=4000\n[ASCII Infos]\nSkipColumns=1\n" TWO;
  static const char points[] = "Fp1 Cz\r\n 1,5  2\r\n-2\t3e0\r\n";
  static const char channels[] = "Fp1 1.5 -2\nCz 2 3";
  const double fp1[2] = {0.75, -1}, cz[2] = {4000, 6000};
  for (int i = 0; i < 2; i++) {
    format_case c = i == 0 ? opened(common, NULL, points, sizeof points - 1, false)
                           : opened(vectorized, NULL, channels, sizeof channels - 1, false);
    case_must(&c);
    case_values(&c, 0, 0, 0, 2, fp1);
    case_values(&c, 1, 0, 0, 2, cz);
    case_close(&c);
  }
  format_case c = opened(common, NULL, "x\n1 2\n3\n", 8, false);
  case_must_fail(&c, SN_E_CORRUPT, "line 3: 1 values, expected 2");
  c = opened(common, NULL, "x\n1 2\n3 1.5\n", 12, false);
  case_must_fail(&c, SN_E_CORRUPT, "'1.5' is no number");
  c = opened(common, NULL, "x\n1 2 3\n", 8, false);
  case_must_fail(&c, SN_E_CORRUPT, "3 columns");
}

/* ---- fault 1: units ---- */

#define HEAD1(channels, infos) \
  COMMON("MULTIPLEXED", channels, "1000") "[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\n" infos

static void units(void **state) {
  static const char header[] = HEAD1("9",
                                     "Ch1=F1,,1,uV\nCh2=F2,,1,mV\nCh3=F3,,1,V\nCh4=F4,,1,\nCh5=C1,,1,\xC2\xB5V\n"
                                     "Ch6=C2,,1,\xCE\xBCV\nCh7=C3,,1,\xB5V\nCh8=C4,,1000,nV\nCh9=Temp,,0.1,C\n");
  const int16_t data[9] = {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 365};
  const double expected[9] = {1000, 1e6, 1e9, 1000, 1000, 1000, 1000, 1000, 365 * 0.1};
  format_case c = opened(header, MARKERS, data, sizeof data, false);
  case_must(&c);
  for (int64_t i = 0; i < 9; i++) {
    case_values(&c, i, 0, 0, 1, &expected[i]);
    assert_string_equal(c.recording->channels[i].unit, i < 8 ? "uV" : "degC");
    assert_int_equal(c.recording->channels[i].unit_assumed, i == 3);
    assert_int_equal(c.recording->channels[i].kind, i < 8 ? SN_SENSOR_EEG : SN_SENSOR_TEMPERATURE);
  }
  assert_string_equal(c.recording->channels[6].raw_unit, "\xC2\xB5V");
  const sn_warning *w = case_warning(&c, "unit_absent");
  assert_non_null(w);
  assert_string_equal(w->where, "F4");
  case_close(&c);
}

static void channel_fields(void **state) {
  static const char header[] = HEAD1("4", "Ch1=a\\1b,REF,0.5,uV\nCh2=VEOG,REF,,uV\nCh3=fp1,REF\nCh4=GSR,REF,1,\xC2\xB5S\n")
      "[Coordinates]\nCh1=1,-90,-72\nCh2=0,0,0\nCh3=100,90,0\n[Comment]\nS o f t w a r e  F i l t e r s\n====\n"
      "#     Low Cutoff [s]   High Cutoff [Hz]   Notch [Hz]\n1   0.9   50   50\n2   0.9   50   50\n\nImpedance [kOhm] at 12:18:40 :\n";
  const int16_t data[4] = {2, 3, 4, 5};
  format_case c = opened(header, MARKERS, data, sizeof data, false);
  case_must(&c);
  const sn_channel *channels = c.recording->channels;
  assert_string_equal(channels[0].raw_name, "a,b");
  assert_string_equal(channels[2].raw_name, "fp1");
  assert_string_equal(channels[2].name, "Fp1");
  assert_int_equal(channels[1].kind, SN_SENSOR_EOG);
  assert_int_equal(channels[3].kind, SN_SENSOR_OTHER);
  assert_true(channels[1].calibration_assumed && channels[2].unit_assumed && !channels[0].calibration_assumed);
  assert_string_equal(c.recording->reference, "REF");
  assert_true(channels[0].has_position && !channels[1].has_position && channels[2].has_position &&
              !channels[3].has_position);
  const double degree = 3.14159265358979323846 / 180;
  assert_true(fabs(channels[0].position_m[0] + 0.095 * cos(72 * degree)) < 1e-15); /* left */
  assert_true(fabs(channels[0].position_m[1] - 0.095 * sin(72 * degree)) < 1e-15); /* front */
  assert_true(fabs(channels[2].position_m[0] - 0.1) < 1e-15);
  assert_int_equal(channels[0].frame, SN_FRAME_HEAD);
  assert_int_equal(channels[0].position_from, SN_POSITION_FILE);
  const sn_warning *w = case_warning(&c, "software_filter");
  assert_non_null(w);
  assert_non_null(strstr(w->message, "low cut-off 0.9, high cut-off 50, notch 50"));
  case_close(&c);
}

/* ---- fault 7: encodings ---- */

static void encodings(void **state) {
  static const char *const headers[4] = {HEAD1("1", "Ch1=\xC3\x96l,,1,\xC2\xB5V\n"), HEAD1("1", "Ch1=\xD6l,,1,\xB5V\n"),
                                         FIRST
                                         "[Common Infos]\nCodepage=UTF-8\nDataFile=r.eeg\nMarkerFile=r.vmrk\n"
                                         "DataFormat=BINARY\nDataOrientation=MULTIPLEXED\nNumberOfChannels=1\n"
                                         "SamplingInterval=1000\n[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\n"
                                         "Ch1=\xD6l,,1,\xB5V\n",
                                         FIRST
                                         "[Common Infos]\nCodepage=ANSI\nDataFile=r.eeg\nMarkerFile=r.vmrk\n"
                                         "DataFormat=BINARY\nDataOrientation=MULTIPLEXED\nNumberOfChannels=1\n"
                                         "SamplingInterval=1000\n[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\n"
                                         "Ch1=\xC3\x96l,,1,\xC2\xB5V\n"};
  static const char *const markers[4] = {
      MARKERS
      "Mk1=Comment,Gr\xC3\xB6\xC3\x9F"
      "e,1,1,0\n",
      MARKERS
      "Mk1=Comment,Gr\xF6\xDF"
      "e,1,1,0\n",
      "Brain Vision Data Exchange Marker File Version 1.0\n[Common Infos]\nCodepage=UTF-8\n"
      "[Marker Infos]\nMk1=Comment,Gr\xF6\xDF"
      "e,1,1,0\n",
      MARKERS
      "Mk1=Comment,Gr\xC3\xB6\xC3\x9F"
      "e,1,1,0\n"};
  const int16_t data[1] = {7};
  for (int i = 0; i < 4; i++) {
    format_case c = opened(headers[i], markers[i], data, 2, false);
    case_must(&c);
    assert_string_equal(c.recording->channels[0].raw_name, "\xC3\x96l");
    assert_string_equal(c.recording->channels[0].unit, "uV");
    assert_int_equal(case_warning(&c, "text_encoding") != NULL, i >= 2);
    sn_annotations *list = case_annotations(&c);
    assert_int_equal(list->n, 1);
    assert_string_equal(list->items[0].text,
                        "Gr\xC3\xB6\xC3\x9F"
                        "e");
    sn_annotations_destroy(list);
    case_close(&c);
  }
}

/* ---- markers and segments: faults 2 and 8 ---- */

#define ONE COMMON("MULTIPLEXED", "1", "100000") "[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\nCh1=Cz,,1,uV\n"

static void new_segments(void **state) {
  int16_t data[30];
  for (int i = 0; i < 30; i++) data[i] = (int16_t)i;
  /* 10 Hz; the second begins 5 s after the first, 20 samples later: a gap of 3 s. */
  format_case c =
      opened(ONE,
             MARKERS
             "Mk1=New Segment,,1,1,0,20240229235958000000\nMk2=Stimulus,S  1,1,1,0\nMk3=Response,a\\1b,30,2,1\n"
             "Mk4=New Segment,,21,1,0,20240301000003000000\nMk5=Stimulus,S  2,26,0,0\nMk6=Stimulus,S  9,31,1,0\n",
             data, sizeof data, false);
  const double twenty[1] = {20}, last[1] = {29};
  case_must(&c);
  const sn_recording *r = c.recording;
  assert_int_equal(r->n_segments, 2);
  assert_int_equal(r->segments[0].n_frames, 20);
  assert_int_equal(r->segments[1].n_frames, 10);
  assert_int_equal(r->segments[1].start_frame, 50);
  assert_true(r->segments[1].start_s == 5);
  assert_string_equal(r->start_time, "2024-02-29T23:59:58.000000");
  case_values(&c, 0, 1, 0, 1, twenty);
  case_values(&c, 0, 1, 9, 1, last);
  assert_int_equal(sn_recording_read(r, 0, 0, 15, 10, (double[10]){0}, NULL), SN_E_ARGUMENT); /* across the join */
  assert_non_null(case_warning(&c, "annotation_beyond_end"));
  sn_annotations *list = case_annotations(&c);
  static const struct {
    const char *code, *text;
    int64_t sample;
    int32_t channel;
    double duration_s;
  } expected[5] = {{"New Segment", NULL, 0, -1, 0.1},
                   {"Stimulus", "S  1", 0, -1, 0.1},
                   {"New Segment", NULL, 50, -1, 0.1},
                   {"Stimulus", "S  2", 55, -1, 0},
                   {"Response", "a,b", 59, 0, 0.2}};
  assert_int_equal(list->n, 5);
  for (int i = 0; i < 5; i++) {
    const sn_annotation *a = &list->items[i];
    assert_string_equal(a->code, expected[i].code);
    assert_int_equal(a->sample, expected[i].sample);
    assert_true(fabs(a->onset_s - (double)expected[i].sample / 10) < 1e-12 &&
                fabs(a->duration_s - expected[i].duration_s) < 1e-12);
    assert_int_equal(a->channel, expected[i].channel);
    if (expected[i].text == NULL)
      assert_null(a->text);
    else
      assert_string_equal(a->text, expected[i].text);
  }
  sn_annotations_destroy(list);
  case_close(&c);
}

static void segments_without_time(void **state) {
  int16_t data[30] = {0};
  /* A date before the end of the data in front of it; then none. */
  format_case c = opened(ONE,
                         MARKERS
                         "Mk1=New Segment,,1,1,0,20240101000000000000\nMk2=New Segment,,11,1,0,20240101000000900000\n"
                         "Mk3=New Segment,,21,1,0\n",
                         data, sizeof data, false);
  case_must(&c);
  assert_int_equal(c.recording->n_segments, 3);
  assert_int_equal(c.recording->segments[1].start_frame, 10);
  assert_int_equal(c.recording->segments[2].start_frame, 20);
  assert_non_null(case_warning(&c, "segment_time"));
  case_close(&c);
  /* Epochs of a segmented file, with a marker at one of them and one between. */
  c = opened(
      FIRST
      "[Common "
      "Infos]\nDataFile=r.eeg\nMarkerFile=r.vmrk\nDataFormat=BINARY\nDataOrientation=MULTIPLEXED\nNumberOfChannels=1\n"
      "SamplingInterval=100000\nSegmentationType=MARKERBASED\nSegmentDataPoints=12\n[Binary "
      "Infos]\nBinaryFormat=INT_16\n"
      "[Channel Infos]\nCh1=Cz,,1,uV\n",
      MARKERS "Mk1=New Segment,,16,1,0\nMk2=New Segment,,13,1,0\n", data, sizeof data, false);
  case_must(&c);
  static const int64_t lengths[4] = {12, 3, 9, 6};
  assert_int_equal(c.recording->n_segments, 4);
  for (int i = 0; i < 4; i++) assert_int_equal(c.recording->segments[i].n_frames, lengths[i]);
  case_close(&c);
}

static void damaged_markers(void **state) {
  const int16_t data[2] = {0};
  static const char *const bad[4] = {MARKERS "Mk1=Stimulus,S1\n", MARKERS "Mk1=Stimulus,S1,0,1,0\n",
                                     MARKERS "Mk1=Stimulus,S1,x,1,0\n", MARKERS "Mk1=Stimulus,S1,1,-1,0\n"};
  for (int i = 0; i < 4; i++) {
    format_case c = opened(ONE, bad[i], data, sizeof data, false);
    assert_int_equal(c.err.line, 3);
    case_must_fail(&c, SN_E_CORRUPT, "Mk1");
    c = opened(ONE, bad[i], data, sizeof data, true);
    case_must(&c);
    assert_non_null(case_warning(&c, "marker_malformed"));
    case_close(&c);
  }
  format_case c = opened(ONE, "nothing\n", data, sizeof data, false);
  case_must_fail(&c, SN_E_CORRUPT, "r.vmrk");
  c = opened(ONE, NULL, data, sizeof data, false);
  case_must_fail(&c, SN_E_IO, "r.vmrk");
  c = opened(ONE, NULL, data, sizeof data, true);
  case_must(&c);
  assert_non_null(case_warning(&c, "markers_absent"));
  case_close(&c);
}

/* ---- fault 3: rates ---- */

static void rates(void **state) {
  static const struct {
    const char *interval;
    int64_t num, den;
  } rows[] = {{"1000", 1000, 1},
              {"3906.25", 256, 1},
              {"488.28125", 2048, 1},
              {"1953,125", 512, 1},
              {"3333.3333333333335", 300, 1},
              {"1e4", 100, 1},
              {"0.5", 2000000, 1},
              {"10000000", 1, 10},
              {"976.562", 500000000, 488281}};
  const int16_t data[1] = {0};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char header[1024];
    snprintf(header, sizeof header,
             FIRST
             "[Common Infos]\nDataFile=r.eeg\nDataFormat=BINARY\nDataOrientation=MULTIPLEXED\n"
             "NumberOfChannels=1\nSamplingInterval=%s\n[Binary Infos]\nBinaryFormat=INT_16\n[Channel Infos]\nCh1=Cz\n",
             rows[i].interval);
    format_case c = opened(header, NULL, data, 2, false);
    case_must(&c);
    if (c.recording->rate_num != rows[i].num || c.recording->rate_den != rows[i].den)
      fail_msg("%s: %lld/%lld", rows[i].interval, (long long)c.recording->rate_num, (long long)c.recording->rate_den);
    case_close(&c);
  }
}

/* ---- faults 4 and 40: counts and contradictions ---- */

#define POINTS(orientation, points) \
  COMMON(orientation, "2", "1000") "DataPoints=" points "\n[Binary Infos]\nBinaryFormat=INT_16\n" TWO

static void counts_against_the_size(void **state) {
  const int16_t data[6] = {1, 2, 3, 4, 5, 6};
  format_case c = opened(POINTS("MULTIPLEXED", "2"), MARKERS, data, 12, false); /* surplus */
  case_must(&c);
  assert_int_equal(c.recording->segments[0].n_frames, 2);
  assert_non_null(strstr(case_warning(&c, "surplus_bytes")->message, "4 bytes"));
  case_close(&c);
  c = opened(POINTS("MULTIPLEXED", "10"), MARKERS, data, 12, false);
  case_must_fail(&c, SN_E_CORRUPT, "announces 10 points");
  c = opened(POINTS("MULTIPLEXED", "10"), MARKERS, data, 12, true);
  case_must(&c);
  assert_int_equal(c.recording->segments[0].n_frames, 3);
  assert_non_null(case_warning(&c, "truncated"));
  case_close(&c);
  c = opened(COMMON("MULTIPLEXED", "2", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO, MARKERS, data, 10, false);
  case_must_fail(&c, SN_E_CORRUPT, "2 bytes");
  c = opened(COMMON("MULTIPLEXED", "2", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO, MARKERS, data, 10, true);
  case_must(&c);
  assert_int_equal(c.recording->segments[0].n_frames, 2);
  assert_non_null(strstr(case_warning(&c, "truncated")->message, "2 bytes ignored"));
  case_close(&c);
  for (int tolerant = 0; tolerant < 2; tolerant++) { /* a vectorized file cannot be cut without losing every place */
    c = opened(COMMON("VECTORIZED", "2", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO, MARKERS, data, 10,
               tolerant == 1);
    case_must_fail(&c, SN_E_CORRUPT, "places are unknown");
    c = opened(POINTS("VECTORIZED", "2"), MARKERS, data, 12, tolerant == 1);
    case_must_fail(&c, SN_E_CORRUPT, "announces 2 points");
    c = opened(POINTS("MULTIPLEXED", "9223372036854775807"), MARKERS, data, 2, tolerant == 1);
    case_must_fail(&c, SN_E_CORRUPT, "r.eeg");
    c = opened(POINTS("MULTIPLEXED", "2"), MARKERS, data, 0, tolerant == 1);
    case_must_fail(&c, SN_E_CORRUPT, "r.eeg");
  }
}

static void bad_headers(void **state) {
  static const struct {
    const char *header;
    sn_status status;
    const char *word;
  } rows[] = {
      {"", SN_E_FORMAT, "does not begin"},
      {"[Common Infos]\n", SN_E_FORMAT, "does not begin"},
      {"Brain Vision Data Exchange Header File Version 3.0\n", SN_E_UNSUPPORTED, "version 3"},
      {FIRST, SN_E_CORRUPT, "DataFile"},
      {COMMON("MULTIPLEXED", "0", "1000"), SN_E_CORRUPT, "NumberOfChannels"},
      {COMMON("MULTIPLEXED", "-1", "1000"), SN_E_CORRUPT, "NumberOfChannels"},
      {COMMON("MULTIPLEXED", "2", "0"), SN_E_CORRUPT, "SamplingInterval"},
      {COMMON("MULTIPLEXED", "2", "-5"), SN_E_CORRUPT, "SamplingInterval"},
      {COMMON("MULTIPLEXED", "2", "nan"), SN_E_CORRUPT, "SamplingInterval"},
      {COMMON("DIAGONAL", "2", "1000"), SN_E_CORRUPT, "DataOrientation"},
      {COMMON("MULTIPLEXED", "2", "1000") TWO, SN_E_CORRUPT, "BinaryFormat"},
      {COMMON("MULTIPLEXED", "2", "1000") "[Binary Infos]\nBinaryFormat=INT_24\n" TWO, SN_E_UNSUPPORTED, "INT_24"},
      {COMMON("MULTIPLEXED", "2", "1000") "DataType=FREQUENCYDOMAIN\n", SN_E_UNSUPPORTED, "FREQUENCYDOMAIN"},
      {COMMON("MULTIPLEXED", "3", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO, SN_E_CORRUPT,
       "no entry for channel 3"},
      {COMMON("MULTIPLEXED", "1", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO, SN_E_CORRUPT,
       "an entry for channel 2"},
      {COMMON("MULTIPLEXED", "2", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO "Ch2=x\n", SN_E_CORRUPT, "once"},
      {HEAD1("1", "Ch1=a,,zero,uV\n"), SN_E_CORRUPT, "zero"},
      {HEAD1("1", "Ch1=a,,0,uV\n"), SN_E_CORRUPT, "resolution"},
      {HEAD1("1", "Ch1=a,,1e300,uV\n"), SN_E_CORRUPT, "infinite"},
      {HEAD1("1", "Ch99999999999=a\n"), SN_E_CORRUPT, "Ch99999999999"},
      {HEAD1("1", "Ch1=a\n") "[Coordinates]\nCh1=1,2\n", SN_E_CORRUPT, "radius,theta,phi"},
  };
  const int16_t data[2] = {0};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    format_case c = opened(rows[i].header, MARKERS, data, sizeof data, false);
    case_must_fail(&c, rows[i].status, rows[i].word);
  }
}

/* ---- names of files ---- */

static void renamed_files(void **state) {
  static const char header[] = FIRST
      "[Common Infos]\nDataFile=%s\nMarkerFile=%s\nDataFormat=BINARY\nDataOrientation=MULTIPLEXED\n"
      "NumberOfChannels=1\nSamplingInterval=1000\n[Binary Infos]\nBinaryFormat=INT_16\n"
      "[Channel Infos]\nCh1=Cz,,1,uV\n";
  static const struct {
    const char *data, *markers;
    bool warned;
  } rows[] = {{"r.eeg", "r.vmrk", false},
              {"$b.eeg", "$b.vmrk", false},
              {"old name.eeg", "old name.vmrk", true},
              {"C:\\data\\s1.eeg", "/etc/passwd", true},
              {"../r.eeg", "..", true}};
  const int16_t data[1] = {5};
  const double five[1] = {5};
  char text[1024];
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    snprintf(text, sizeof text, header, rows[i].data, rows[i].markers);
    format_case c = opened(text, MARKERS, data, 2, false);
    case_must(&c);
    case_values(&c, 0, 0, 0, 1, five);
    assert_int_equal(case_warning(&c, "data_file_renamed") != NULL, rows[i].warned);
    assert_int_equal(case_warning(&c, "marker_file_renamed") != NULL, rows[i].warned);
    assert_int_equal(c.recording->n_files, 3);
    case_close(&c);
  }
  /* Nothing beside it: refused, whatever lies where the name points to. */
  format_case c = {0};
  snprintf(text, sizeof text, header, "../other/x.eeg", "r.vmrk");
  case_text(&c, "r.vhdr", text);
  case_text(&c, "r.vmrk", MARKERS);
  case_file(&c, "../other/x.eeg", data, 2);
  case_open(&c, &sn_format_brainvision, true);
  case_must_fail(&c, SN_E_IO, "../other/x.eeg");
}

static void any_of_the_three(void **state) {
  const int16_t data[2] = {1, 2};
  static const char *const names[3] = {"r.vhdr", "r.eeg", "r.vmrk"};
  for (int i = 0; i < 3; i++) {
    format_case c = {0};
    case_text(&c, "r.vhdr", ONE);
    case_file(&c, "r.eeg", data, 4);
    case_text(&c, "r.vmrk", MARKERS);
    case_open_as(&c, &sn_format_brainvision, names[i], false);
    case_must(&c);
    assert_string_equal(c.recording->files[0], "r.vhdr");
    assert_true(sn_format_brainvision.sniff(names[i], c.data[i], c.sizes[i] < 1024 ? c.sizes[i] : 1024, c.folder) >=
                50);
    case_close(&c);
  }
  format_case c = {0};
  case_text(&c, "r.vmrk", MARKERS);
  case_open(&c, &sn_format_brainvision, false);
  case_must_fail(&c, SN_E_IO, "r.vmrk");
  assert_int_equal(sn_format_brainvision.sniff("x.eeg", (const uint8_t *)"\0\1", 2, NULL), 0);
}

/* ---- truncation, failing allocations ---- */

static const char WHOLE[] = COMMON("MULTIPLEXED", "2", "1000") "[Binary Infos]\nBinaryFormat=INT_16\n" TWO
                                                               "[Coordinates]\nCh1=1,2,3\n[Comment]\nfree text\n";
static const char WHOLE_MARKERS[] = MARKERS "Mk1=Stimulus,S1,2,1,1\nMk2=New Segment,,2,1,0,20240101000000000000\n";

static void truncated_anywhere(void **state) {
  const int16_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  format_case c = {0};
  case_text(&c, "r.vhdr", WHOLE);
  case_file(&c, "r.eeg", data, 16);
  case_text(&c, "r.vmrk", WHOLE_MARKERS);
  for (int64_t file = 0; file < 3; file++) case_truncate(&c, &sn_format_brainvision, file);
}

static void failing_allocations(void **state) {
  const int16_t data[4] = {1, 2, 3, 4};
  for (int ascii = 0; ascii < 2; ascii++) {
    for (fault_begin(); fault_next();) {
      format_case c = {0};
      sn_annotations *list = NULL;
      case_text(&c, "r.vhdr",
                ascii ? FIRST
                    "[Common Infos]\nDataFile=r.eeg\nMarkerFile=r.vmrk\nDataFormat=ASCII\n"
                    "DataOrientation=MULTIPLEXED\nNumberOfChannels=2\nSamplingInterval=1000\n" TWO
                      : WHOLE);
      if (ascii)
        case_text(&c, "r.eeg", "1 2\n3 4\n");
      else
        case_file(&c, "r.eeg", data, 8);
      case_text(&c, "r.vmrk", WHOLE_MARKERS);
      case_open(&c, &sn_format_brainvision, false);
      sn_status status = c.status;
      if (status == SN_OK) status = sn_recording_annotations(c.recording, NULL, &list, &c.err);
      fault_check(status);
      if (status == SN_OK) assert_int_equal(list->n, 2);
      sn_annotations_destroy(list);
      case_close(&c);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(multiplexed_and_vectorized),
      cmocka_unit_test(other_number_formats),
      cmocka_unit_test(together_as_alone),
      cmocka_unit_test(text_data),
      cmocka_unit_test(units),
      cmocka_unit_test(channel_fields),
      cmocka_unit_test(encodings),
      cmocka_unit_test(new_segments),
      cmocka_unit_test(segments_without_time),
      cmocka_unit_test(damaged_markers),
      cmocka_unit_test(rates),
      cmocka_unit_test(counts_against_the_size),
      cmocka_unit_test(bad_headers),
      cmocka_unit_test(renamed_files),
      cmocka_unit_test(any_of_the_three),
      cmocka_unit_test(truncated_anywhere),
      cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
