/* Schedules, event files, positions, pooling, presets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "encoders/pooling.h"
#include "engine/presets.h"
#include "engine/run.h"
#include "engine/schedule.h"
#include "engine/tfevents.h"
#include "engine/train_config.h"

static void test_schedules(void **state) {
  sn_schedule s = {.kind = SN_SCHEDULE_COSINE, .lr = 2, .min_lr = 0.5, .total = 100, .warmup = 10, .decay = 20};
  assert_true(sn_schedule_at(&s, 0) == 0.2);
  assert_true(sn_schedule_at(&s, 9) == 2);
  assert_true(sn_schedule_at(&s, 10) == 2);
  assert_true(fabs(sn_schedule_at(&s, 55) - 1.25) < 1e-12);
  assert_true(fabs(sn_schedule_at(&s, 100) - 0.5) < 1e-12);
  s.kind = SN_SCHEDULE_COSINE_MAE; /* starts at 0 */
  assert_true(sn_schedule_at(&s, 0) == 0 && sn_schedule_at(&s, 5) == 1);
  s.kind = SN_SCHEDULE_WSD;
  assert_true(sn_schedule_at(&s, 79) == 2 && sn_schedule_at(&s, 80) == 2);
  assert_true(fabs(sn_schedule_at(&s, 90) - 1.25) < 1e-12);
  s.kind = SN_SCHEDULE_LINEAR;
  assert_true(fabs(sn_schedule_at(&s, 55) - 1.25) < 1e-12);
  s.kind = SN_SCHEDULE_CONSTANT;
  assert_true(sn_schedule_at(&s, 99) == 2);
  s.warmup = 0;
  assert_true(sn_schedule_at(&s, 0) == 2);
}

/* CRC-32C of RFC 3720, appendix B.4. */
static void test_crc32c(void **state) {
  uint8_t zeros[32] = {0}, ones[32], rising[32];
  memset(ones, 0xff, 32);
  for (int i = 0; i < 32; i++) rising[i] = (uint8_t)i;
  assert_int_equal(sn_crc32c(zeros, 32), 0x8A9136AA);
  assert_int_equal(sn_crc32c(ones, 32), 0x62A8AB43);
  assert_int_equal(sn_crc32c(rising, 32), 0x46DD794E);
}

static void test_positions(void **state) {
  const double units[6] = {0, 1, 0, 2.5, 1, -0.0};
  int32_t index[8];
  sn_position_table table;
  void *rows;
  assert_int_equal(sn_position_table_build(units, 6, 8, index, &table, NULL), SN_OK);
  const int32_t expected[8] = {0, 1, 0, 2, 1, 0, -2, -2};
  assert_memory_equal(index, expected, sizeof expected);
  assert_int_equal(table.n_rows, 3);
  assert_int_equal(sn_position_table_sincos(&table, 6, SN_F64, &rows, NULL), SN_OK);
  const double *r = rows;
  for (int k = 0; k < 3; k++) {
    const double w = pow(10000, -k / 3.0);
    assert_true(fabs(r[6 + k] - sin(w)) < 1e-15 && fabs(r[9 + k] - cos(w)) < 1e-15);
    assert_true(fabs(r[12 + k] - sin(2.5 * w)) < 1e-15);
  }
  sn_free(rows);
  sn_free(table.units);
}

static sn_encoder *make_encoder(sn_params **params, sn_config **config, const char *extra) {
  sn_encoder *encoder;
  sn_error err;
  const sn_encoder_data data = {.patch_size = 4, .n_channel_ids = 3};
  assert_int_equal(sn_engine_config_create(NULL, 0, config, &err), SN_OK);
  assert_int_equal(sn_config_load_pairs(*config, "model.width=8\nmodel.heads=1\nmodel.depth=1\n", "test", &err), SN_OK);
  assert_int_equal(sn_config_load_pairs(*config, extra, "test", &err), SN_OK);
  assert_int_equal(sn_params_create(SN_F32, params, &err), SN_OK);
  assert_int_equal(sn_encoder_create(*params, *config, &data, &encoder, &err), SN_OK);
  return encoder;
}

/* Two samples: 3 tokens of channel 0, then 2 of channel 2 and 1 of channel 0. */
static void check_pooling(const char *extra, int64_t class_rows) {
  sn_params *params;
  sn_config *config;
  sn_encoder *encoder = make_encoder(&params, &config, extra);
  sn_sample *samples[2];
  sn_token_batch *batch;
  sn_encoder_input *input;
  for (int s = 0; s < 2; s++) {
    assert_int_equal(sn_sample_create(3, 4, false, &samples[s], NULL), SN_OK);
    for (int t = 0; t < 3; t++) samples[s]->channels[t] = s == 0 || t == 2 ? 0 : 2;
  }
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, 2, &batch, NULL), SN_OK);
  assert_int_equal(sn_encoder_input_create_all(encoder, batch, 64, 4, SN_F32, &input, NULL), SN_OK);
  assert_int_equal(input->offsets[1], 3 + class_rows);
  float *features = test_calloc((size_t)(input->n_rows * 8), sizeof *features), pooled[2 * 24];
  for (int64_t r = 0; r < input->n_rows; r++)
    for (int c = 0; c < 8; c++) features[8 * r + c] = (float)(r * r + c);
  const double first = (double)class_rows, r0 = first * first, r1 = (first + 1) * (first + 1), r2 = (first + 2) * (first + 2);
  const double mean = (r0 + r1 + r2) / 3;
  assert_int_equal(sn_pool_features(SN_POOL_MEAN_MAX_STD, encoder, input, features, 3, pooled, NULL), SN_OK);
  assert_true(fabs(pooled[0] - mean) < 1e-5 && pooled[8] == (float)r2);
  const double variance = ((r0 - mean) * (r0 - mean) + (r1 - mean) * (r1 - mean) + (r2 - mean) * (r2 - mean)) / 3;
  assert_true(fabs(pooled[16] - sqrt(variance)) < 1e-5);
  assert_int_equal(sn_pool_features(SN_POOL_PER_CHANNEL, encoder, input, features, 3, pooled, NULL), SN_OK);
  assert_true(fabs(pooled[0] - mean) < 1e-5 && pooled[8] == 0); /* channel 1 is absent */
  const double a = (double)input->offsets[1] + first;
  assert_true(fabs(pooled[24] - (a + 2) * (a + 2)) < 1e-4);                            /* channel 0 of the second sample */
  assert_true(fabs(pooled[24 + 16] - (a * a + (a + 1) * (a + 1)) / 2) < 1e-4);         /* its channel 2 */
  sn_error err;
  const sn_status cls = sn_pool_features(SN_POOL_CLS, encoder, input, features, 3, pooled, &err);
  assert_int_equal(cls, class_rows ? SN_OK : SN_E_ARGUMENT);
  if (class_rows) assert_true(pooled[0] == 0);
  assert_int_equal(sn_pool_features(SN_POOL_FLATTEN, encoder, input, features, 2, pooled, &err), SN_E_ARGUMENT);
  test_free(features);
  sn_encoder_input_destroy(input);
  sn_token_batch_destroy(batch);
  for (int s = 0; s < 2; s++) sn_sample_destroy(samples[s]);
  sn_encoder_destroy(encoder);
  sn_params_destroy(params);
  sn_config_destroy(config);
}

static void test_pooling(void **state) {
  check_pooling("", 0);
  check_pooling("model.class_token=true\n", 1);
}

static void test_presets(void **state) {
  int n = 0;
  sn_error err;
  for (const sn_preset *p = sn_presets; p->name != NULL; p++, n++) {
    sn_config *config;
    assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
    if (sn_preset_apply(config, p->name, NULL, &err) != SN_OK) fail_msg("%s", err.message);
    sn_config_destroy(config);
  }
  assert_true(n >= 4);
  sn_config *config;
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  assert_int_equal(sn_preset_apply(config, "ecg-tin", NULL, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "ecg-tiny"));
  sn_config_destroy(config);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules), cmocka_unit_test(test_crc32c),
                                     cmocka_unit_test(test_positions), cmocka_unit_test(test_pooling),
                                     cmocka_unit_test(test_presets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
