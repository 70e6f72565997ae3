/* Frozen features: a stretch of a window against the tokens themselves, alone and in company. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "engine/features.h"
#include "engine/run.h"

enum { N = 7, TOKENS = 24, CHANNELS = 2, STEPS = TOKENS / CHANNELS, C = 16 };

typedef struct setting {
  sn_config *config;
  sn_run_data *data;
  sn_device *device;
  sn_model *model;
} setting;

static sn_error err;

static void open_setting(setting *s, const char *extra) {
  const char *base = "data.dir=synthetic\nsynthetic.windows=9\nsynthetic.patch=10\nsynthetic.tokens_least=24\n"
                     "synthetic.tokens_most=24\nsynthetic.channels=2\nmodel.width=16\nmodel.heads=2\nmodel.depth=2\n"
                     "mae.decoder_width=16\nmae.decoder_heads=1\n";
  assert_int_equal(sn_run_config_create(&s->config, &err), SN_OK);
  if (sn_config_load_pairs(s->config, base, "test", &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_config_load_pairs(s->config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_run_data_open(s->config, NULL, false, NULL, &s->data, &err), SN_OK);
  const sn_source *source = sn_run_data_source(s->data);
  const sn_model_shape shape = {.patch_size = source->patch_size, .n_channel_ids = source->n_channel_ids,
                                .patch_step = source->patch_step_s, .pack_slots = 256, .pack_samples = 10,
                                .max_tokens = source->max_tokens};
  const sn_device_options device = {.n_threads = 1};
  assert_int_equal(source->max_tokens, TOKENS);
  assert_int_equal(sn_device_create_cpu(&device, &s->device, &err), SN_OK);
  if (sn_model_create(s->config, &shape, SN_F32, 3, true, &s->model, &err) != SN_OK) fail_msg("%s", err.message);
}

static void close_setting(setting *s) {
  sn_model_destroy(s->model);
  sn_device_destroy(s->device);
  sn_run_data_destroy(s->data);
  sn_config_destroy(s->config);
}

static sn_status extract(setting *s, const sn_feature_options *options, int64_t n, const int64_t *windows, float *features,
                         uint8_t *present, sn_feature_report *report) {
  return sn_features_extract(s->device, s->model, sn_run_data_source(s->data), windows, n, options, features, present, report,
                             &err);
}

static const int64_t WINDOWS[N] = {3, 0, 8, 5, 1, 7, 2};

/* Pooling over steps [first, last) of each window by hand, from the features of every token (pool flatten). */
static void test_stretch_equals_its_tokens(void **state) {
  setting s;
  sn_feature_report report;
  static float tokens[N][TOKENS][C], whole[N][3 * C], cut[N][3 * C], channels[N][CHANNELS * C];
  uint8_t present[N];
  open_setting(&s, "");
  sn_feature_options options = {.pool = SN_POOL_FLATTEN, .product = SN_F32};
  assert_int_equal(extract(&s, &options, N, WINDOWS, &tokens[0][0][0], present, &report), SN_OK);
  options.pool = SN_POOL_MEAN_MAX_STD;
  assert_int_equal(extract(&s, &options, N, WINDOWS, whole[0], present, &report), SN_OK);
  double from[N];
  for (int i = 0; i < N; i++) from[i] = 0;
  options.pool_from_s = from;
  options.pool_s = STEPS; /* a patch lasts one second */
  assert_int_equal(extract(&s, &options, N, WINDOWS, cut[0], present, &report), SN_OK);
  assert_memory_equal(whole, cut, sizeof whole); /* a stretch that is everything changes no bit */
  /* Another place in each window. Which token stands where: the source interleaves or stacks channels; its samples tell. */
  options.pool_s = 3;
  for (int i = 0; i < N; i++) from[i] = 1 + i % 4;
  assert_int_equal(extract(&s, &options, N, WINDOWS, cut[0], present, &report), SN_OK);
  sn_feature_options by_channel = options;
  by_channel.pool = SN_POOL_PER_CHANNEL;
  assert_int_equal(extract(&s, &by_channel, N, WINDOWS, channels[0], present, &report), SN_OK);
  sn_source *source = sn_run_data_source(s.data);
  for (int i = 0; i < N; i++) {
    sn_sample *sample;
    assert_int_equal(sn_source_read(source, WINDOWS[i], 0, 0, 0, &sample, &err), SN_OK);
    for (int j = 0; j < C; j++) {
      double sum = 0, most = -INFINITY, squares = 0, sums[CHANNELS] = {0};
      int n = 0;
      for (int pass = 0; pass < 2; pass++)
        for (int t = 0; t < TOKENS; t++) {
          const double at = sample->coordinates[4 * t + 3], v = tokens[i][t][j];
          if (at < from[i] || at >= from[i] + 3) continue;
          if (pass == 1) squares += (v - sum / n) * (v - sum / n);
          else sum += v, most = fmax(most, v), n++, sums[sample->channels[t]] += v;
        }
      assert_int_equal(n, 3 * CHANNELS);
      assert_true(fabs(cut[i][j] - sum / n) <= 1e-6 && fabs(cut[i][C + j] - most) <= 1e-6);
      assert_true(fabs(cut[i][2 * C + j] - sqrt(squares / n)) <= 1e-6);
      for (int c = 0; c < CHANNELS; c++) assert_true(fabs(channels[i][c * C + j] - sums[c] / 3) <= 1e-6);
    }
    sn_sample_destroy(sample);
  }
  /* Alone as in company. */
  float alone[3 * C];
  options.pool_from_s = from + 4;
  assert_int_equal(extract(&s, &options, 1, WINDOWS + 4, alone, present, &report), SN_OK);
  assert_memory_equal(alone, cut[4], sizeof alone);
  close_setting(&s);
}

/* A class token stays at the head; a window without a token in its stretch is left out; what has no time is refused. */
static void test_stretches_at_the_edges(void **state) {
  setting s;
  sn_feature_report report;
  static float whole[N][C], cut[N][C];
  uint8_t present[N];
  double from[N] = {0, 4, 50, 2, -9, 1, 11};
  open_setting(&s, "model.class_token=true\n");
  sn_feature_options options = {.pool = SN_POOL_CLS, .product = SN_F32};
  assert_int_equal(extract(&s, &options, N, WINDOWS, whole[0], present, &report), SN_OK);
  options.pool_from_s = from;
  options.pool_s = 2;
  assert_int_equal(extract(&s, &options, N, WINDOWS, cut[0], present, &report), SN_OK);
  assert_int_equal(report.rejected, 2);
  for (int i = 0; i < N; i++) {
    assert_int_equal(present[i], i != 2 && i != 4);
    for (int j = 0; j < C; j++) assert_true(present[i] ? cut[i][j] == whole[i][j] : cut[i][j] == 0);
  }
  options.pool = SN_POOL_MEAN; /* the mean of the last second alone: the class token is not in it */
  from[0] = 11;
  assert_int_equal(extract(&s, &options, 1, WINDOWS, cut[0], present, &report), SN_OK);
  assert_true(present[0] == 1 && memcmp(cut[0], whole[0], sizeof cut[0]) != 0);
  from[0] = 99;
  assert_int_equal(extract(&s, &options, 1, WINDOWS, cut[0], present, &report), SN_E_ARGUMENT);
  options.pool = SN_POOL_FLATTEN;
  assert_int_equal(extract(&s, &options, 1, WINDOWS, cut[0], present, &report), SN_E_ARGUMENT);
  close_setting(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_stretch_equals_its_tokens),
                                     cmocka_unit_test(test_stretches_at_the_edges)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
