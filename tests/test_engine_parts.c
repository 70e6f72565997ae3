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
  s.warmup = 0;
  assert_true(sn_schedule_at(&s, 0) == 2);
}

static sn_schedule make_schedule(const char *name) {
  sn_schedule s = {.lr = 2, .min_lr = 0.5, .start_lr = 0.25, .total = 100, .warmup = 10, .decay = 20, .ipe_scale = 1.25,
                   .n_milestones = 2, .milestones = {0.3, 0.8}, .factor = 0.1};
  sn_error err;
  if (sn_schedule_parse(name, &s.kind, &err) != SN_OK) fail_msg("%s", err.message);
  return s;
}

static void assert_rate(const char *name, int64_t step, double expected) {
  const sn_schedule s = make_schedule(name);
  const double rate = sn_schedule_at(&s, step);
  if (!(fabs(rate - expected) <= 1e-15 * fmax(1, expected)))
    fail_msg("%s at %lld: %.17g, expected %.17g", name, (long long)step, rate, expected);
}

/* Each against its formula as published, written out for s = 0 .. 99. */
static void test_schedules_by_formula(void **state) {
  for (int64_t s = 0; s < 100; s++) {
    const double x = (double)s, k = x + 1, up = 2 * k / 10, f = (x - 10) / 90;
    const bool warm = s < 10, late = s >= 80;
    assert_rate("cosine", s, warm ? up : 0.5 + 0.75 * (1 + cos(M_PI * f)));
    assert_rate("cosine_mae", s, warm ? 2 * x / 10 : 0.5 + 0.75 * (1 + cos(M_PI * f)));
    assert_rate("cosine_jepa", s, k < 10 ? 0.25 + 1.75 * k / 10 : 0.5 + 0.75 * (1 + cos(M_PI * (k - 10) / 115)));
    assert_rate("cosine_dino", s, warm ? 0.25 + 1.75 * x / 9 : 0.5 + 0.75 * (1 + cos(M_PI * f)));
    assert_rate("poly0.9", s, warm ? up : 0.5 + 1.5 * pow(1 - f, 0.9));
    assert_rate("linear", s, warm ? up : 2 - 1.5 * f);
    assert_rate("linear_bert", s, warm ? 2 * x / 10 : 2 * (1 - x / 100));
    assert_rate("wsd", s, warm ? up : late ? 2 - 1.5 * (x - 80) / 20 : 2);
    assert_rate("trapezoid", s, warm ? up : late ? 2 - 1.5 * (x - 80) / 20 : 2);
    assert_rate("wsd_vjepa2", s, k < 10 ? 0.25 + 1.75 * k / 10 : k < 80 ? 2 : 2 - 1.5 * (k - 80) / 20);
    assert_rate("wsd_modernbert", s, warm ? 1e-10 + (2 - 1e-10) * x / 10 : late ? 0.5 + 1.5 * (1 - sqrt((x - 80) / 20)) : 2);
    assert_rate("step", s, warm ? up : s < 30 ? 2 : s < 80 ? 2 * 0.1 : 2 * 0.1 * 0.1);
    assert_rate("constant", s, warm ? up : 2);
  }
  assert_rate("cosine_dino", 9, 2); /* both ends of the warm-up are in the table */
  assert_rate("cosine_jepa", 0, 0.25 + 0.175);
  assert_rate("linear_bert", 10, 1.8);
}

static void test_schedule_names(void **state) {
  sn_schedule_kind kind;
  sn_error err;
  assert_int_equal(sn_schedule_parse("constant", &kind, &err), SN_OK);
  assert_int_equal(kind, SN_SCHEDULE_CONSTANT);
  assert_int_equal(sn_schedule_parse("cosine_", &kind, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_schedule_parse("", &kind, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_schedule_parse("wsd|step", &kind, &err), SN_E_ARGUMENT);
}

static void test_weight_decay_course(void **state) {
  sn_schedule s = make_schedule("cosine");
  for (int64_t i = 0; i < 100; i++) {
    s.kind = SN_SCHEDULE_COSINE;
    const double x = (double)i, plain = 0.4 + (0.04 - 0.4) * 0.5 * (1 + cos(M_PI * x / 100));
    assert_true(fabs(sn_schedule_decay_at(&s, 0.04, 0.4, i) - plain) <= 1e-15);
    s.kind = SN_SCHEDULE_COSINE_JEPA;
    const double jepa = 0.4 + (0.04 - 0.4) * 0.5 * (1 + cos(M_PI * (x + 1) / 125));
    assert_true(fabs(sn_schedule_decay_at(&s, 0.04, 0.4, i) - jepa) <= 1e-15);
    assert_true(sn_schedule_decay_at(&s, 0.04, -1, i) == 0.04);
  }
}

/* A setting of another schedule is no silent one. */
static void test_schedule_settings(void **state) {
  static const struct {
    const char *set, *words;
  } CASES[] = {{"train.schedule=step", "1 to 16 shares"},
               {"train.milestones=0.5", "train.milestones is not used by train.schedule cosine"},
               {"train.schedule=linear\ntrain.start_lr=1e-4", "train.start_lr is not used"},
               {"train.schedule=cosine_dino\ntrain.ipe_scale=1.25", "train.ipe_scale is not used"},
               {"train.schedule=constant\ntrain.min_lr=1e-4", "train.min_lr is not used"}};
  for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
    sn_config *config;
    sn_schedule s;
    sn_error err;
    assert_int_equal(sn_engine_config_create(NULL, 0, &config, &err), SN_OK);
    assert_int_equal(sn_config_load_pairs(config, CASES[i].set, "test", &err), SN_OK);
    assert_int_equal(sn_train_schedule(config, 1, 10, &s, &err), SN_E_ARGUMENT);
    if (strstr(err.message, CASES[i].words) == NULL) fail_msg("'%s' is not in: %s", CASES[i].words, err.message);
    sn_config_destroy(config);
  }
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
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_schedules), cmocka_unit_test(test_schedules_by_formula),
      cmocka_unit_test(test_schedule_names), cmocka_unit_test(test_weight_decay_course),
      cmocka_unit_test(test_schedule_settings), cmocka_unit_test(test_crc32c),
                                     cmocka_unit_test(test_positions), cmocka_unit_test(test_pooling),
                                     cmocka_unit_test(test_presets)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
