/* needs: full */
/* 4D recordings: against MNE, and damage of a recording made by hand. */
#include "meg_golden.h"
#include "put_bytes.h"
#include "reader_case.h"

#include "golden/bti_golden.h"

extern const sn_format sn_format_bti;

static void real_file(void **state) { golden_check(golden_data_folder(), &BTI_GOLDEN[0]); }

/* By hand: a magnetometer (place 1 in a frame) and a trigger (place 0), two epochs of 3 and 2 frames of int16. */
enum { DATA = 24, EPOCHS = DATA + 96, CHANNELS = EPOCHS + 112, PDF_SIZE = CHANNELS + 208 + 8, CONFIG_SIZE = 112 + 128 + 104 + 8 + 96 + 320 + 96 + 80 };
static uint8_t pdf[PDF_SIZE], config[CONFIG_SIZE], shape[136];

static void make(void) {
  static const int TRIGGER[5] = {0, 4, 0, 4, 6}, FIELD[5] = {1, -2, 3, -4, 5};
  memset(pdf, 0, sizeof pdf);
  memset(config, 0, sizeof config);
  memset(shape, 0, sizeof shape);
  for (int k = 0; k < 5; k++) {
    put_be16(pdf + 4 * k, TRIGGER[k]);
    put_be16(pdf + 4 * k + 2, FIELD[k]);
  }
  put_be16(pdf + DATA, 1);
  put_be16(pdf + DATA + 8, 1);
  put_be32(pdf + DATA + 12, 2);
  put_be_f32(pdf + DATA + 28, 0.001f);
  put_be16(pdf + DATA + 52, 2);
  put_be32(pdf + EPOCHS, 3);
  put_be32(pdf + EPOCHS + 56, 2);
  for (int c = 0; c < 2; c++) {
    uint8_t *ch = pdf + CHANNELS + 104 * c;
    memcpy(ch, c == 0 ? "A1" : "TRIGGER", c == 0 ? 2 : 7);
    put_be16(ch + 16, 10 + c);
    put_be_f32(ch + 20, 1);
    memcpy(ch + 24, c == 0 ? "T" : "bit", c == 0 ? 1 : 3);
    put_be32(ch + 64, 1 - c);
  }
  put_be32(pdf + PDF_SIZE - 4, DATA);
  put_be16(config + 56, 60);
  put_be16(config + 58, 2);
  put_be16(config + 68, 1);
  put_be16(config + 70, 1);
  put_be32(config + 112 + 128 + 64, 8); /* a block of 8 bytes */
  uint8_t *a = config + 112 + 128 + 104 + 8, *device = a + 96, *t = device + 320;
  memcpy(a, "A1", 2);
  put_be16(a + 16, 10);
  put_be16(a + 18, 1);
  put_be_f32(a + 24, 2);
  put_be_f32(a + 28, -1e-14f);
  for (int i = 0; i < 3; i++) {
    put_be_f64(device + 48 + 32 * i + 8 * i, 1);
    put_be_f64(device + 48 + 32 * i + 24, 0.1 * (i + 1));
    put_be_f64(device + 48 + 96 + 8 * i, 1);
  }
  put_be16(device + 178, 1); /* a loop: 216 + 104 */
  memcpy(t, "TRIGGER", 7);
  put_be16(t + 16, 11);
  put_be16(t + 18, 5);
  put_be_f32(t + 24, 1);
  put_be_f32(t + 28, 1);
  put_be_f64(shape + 16 + 8, 0.07);      /* left ear point: y to the left */
  put_be_f64(shape + 16 + 24 + 8, -0.07);
  put_be_f64(shape + 16 + 48, 0.1);      /* nasion: x forwards */
}

static format_case opened(bool with_shape) {
  format_case c = {0};
  case_file(&c, "c,rfDC", pdf, sizeof pdf);
  case_file(&c, "config", config, sizeof config);
  if (with_shape) case_file(&c, "hs_file", shape, sizeof shape);
  case_open(&c, &sn_format_bti, false);
  return c;
}

static void by_hand(void **state) {
  make();
  format_case c = opened(true);
  case_must(&c);
  const sn_channel *mag = &c.recording->channels[1];
  assert_true(mag->kind == SN_SENSOR_MEG_MAG && mag->coil_type == 4001 && mag->frame == SN_FRAME_HEAD);
  assert_true(fabs(mag->position_m[0] + 0.2) < 1e-12 && fabs(mag->position_m[1] - 0.1) < 1e-12 && fabs(mag->position_m[2] - 0.3) < 1e-12);
  assert_true(fabs(mag->orientation[2] - 1) < 1e-12);
  assert_true(c.recording->line_hz == 60 && c.recording->n_segments == 2 && c.recording->n_files == 3);
  const double k = (double)-1e-14f / 2 * 1e15;
  double v[2];
  assert_int_equal(sn_recording_read(c.recording, 1, 1, 0, 2, v, NULL), SN_OK);
  assert_true(golden_near(v[0], -4 * k, 1e-9) && golden_near(v[1], 5 * k, 1e-9));
  sn_annotations *list = case_annotations(&c); /* the second epoch begins with 4: no event */
  assert_int_equal(list->n, 2);
  assert_true(list->items[0].sample == 1 && list->items[1].sample == 4 && strcmp(list->items[1].code, "6") == 0);
  sn_annotations_destroy(list);
  case_close(&c);
  c = opened(false);
  case_must(&c);
  assert_true(c.recording->channels[1].frame == SN_FRAME_DEVICE);
  case_close(&c);
}

static void damage(void **state) {
  static const struct {
    int file, at, bytes;
    int32_t value;
    const char *word;
  } CASES[] = {{0, PDF_SIZE - 4, 4, 100000, "stand at byte"}, {0, DATA + 8, 2, 5, "format 5"}, {0, DATA + 12, 4, -1, "epochs"},
               {0, DATA + 12, 4, 9, ""}, {0, DATA + 28, 4, 0, "between samples"}, {0, DATA + 52, 2, 3, ""}, {0, EPOCHS, 4, 0, "0 samples"},
               {0, EPOCHS, 4, 5, "room for 6"}, {0, CHANNELS + 64, 4, 0, "taken"}, {0, CHANNELS + 64, 4, 2, "taken"},
               {0, CHANNELS + 16, 2, 77, "does not describe"}, {1, 58, 2, 0, "0 channels"}, {1, 70, 2, 3, ""}, {1, 68, 2, -2, "sensors"},
               {1, 112 + 128 + 64, 4, -1, ""}, {1, 112 + 128 + 112 + 18, 2, 9, "unknown type 9"}, {1, 112 + 128 + 112 + 96 + 178, 2, -1, "loops"},
               {1, 112 + 128 + 112 + 96 + 178, 2, 30000, ""}, {2, 12, 4, -1, "head frame"}, {2, 16 + 48, 4, 0, "head frame"}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    make();
    uint8_t *file = CASES[i].file == 0 ? pdf : CASES[i].file == 1 ? config : shape;
    if (CASES[i].bytes == 2) put_be16(file + CASES[i].at, CASES[i].value);
    else put_be32(file + CASES[i].at, CASES[i].value);
    format_case c = opened(true);
    if (c.status != SN_E_CORRUPT || strstr(c.err.message, CASES[i].word) == NULL)
      fail_msg("case %d: %s: %s", (int)i, sn_status_name(c.status), c.status != SN_OK ? c.err.message : "");
    case_close(&c);
  }
  make();
  format_case c = {0};
  case_file(&c, "c,rfDC", pdf, sizeof pdf);
  case_open(&c, &sn_format_bti, false);
  case_must_fail(&c, SN_E_IO, "config");
}

static void cut_everywhere(void **state) {
  make();
  format_case c = opened(true);
  case_close(&c);
  for (int file = 0; file < 3; file++) case_truncate(&c, &sn_format_bti, file);
}

static void allocations_fail(void **state) {
  make();
  format_case c = opened(true);
  case_close(&c);
  case_allocations(&c, &sn_format_bti, false);
}

static void changed_bits(void **state) {
  make();
  format_case c = opened(true);
  case_close(&c);
  case_change_bits(&c, &sn_format_bti, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(real_file), cmocka_unit_test(by_hand), cmocka_unit_test(damage),
                                     cmocka_unit_test(cut_everywhere), cmocka_unit_test(allocations_fail), cmocka_unit_test(changed_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
