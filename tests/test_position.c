/* Position encodings: float64 values against an independent table, gradients of what is learned, jitter, and what is
 * refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "encoders/encoder.h"
#include "engine/train_config.h"
#include "golden/position_golden.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "worst.h"

enum { N = 9, SLOTS = 12 };
typedef struct token {
  int sample, series, channel, step;
  sn_sensor_kind kind;
} token;
static const token TOKENS[N] = {{0, 0, 0, 0, SN_SENSOR_EEG},     {0, 0, 0, 1, SN_SENSOR_EEG},     {0, 1, 2, 1, SN_SENSOR_EEG},
                                {0, 2, 3, 0, SN_SENSOR_MEG_MAG}, {0, 3, 1, 2, SN_SENSOR_MEG_MAG}, {0, 4, 4, 2, SN_SENSOR_MEG_GRAD},
                                {1, 0, 2, 3, SN_SENSOR_EEG},     {1, 1, 0, 0, SN_SENSOR_EEG},     {1, 1, 0, 11, SN_SENSOR_EEG}};

static const char *name_of(int64_t id) {
  static const char *const NAMES[5] = {"Cz", "MEG0111", "Fp1", "MEG0113", "MEG0112"};
  return NAMES[id];
}

static const sn_encoder_data DATA = {.patch_size = 4, .n_channel_ids = 5, .step = 0.5, .most_positions = 12, .most_series = 5,
                                     .channel_name = name_of};

static void fill_token(sn_sample *sample, int64_t i, const token *t) {
  const double a = 1.3 * t->series + 0.7 * t->sample;
  const double d[3] = {cos(2.1 * t->series), sin(2.1 * t->series), 0.5};
  const double norm = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
  float *p = sample->coordinates + 4 * i;
  p[0] = (float)(0.08 * cos(a));
  p[1] = (float)(0.07 * sin(a));
  p[2] = (float)(0.03 + 0.01 * t->series - 0.02 * t->sample);
  p[3] = (float)((t->step + 0.5) * 0.5);
  for (int k = 0; k < 3; k++) sample->orientations[3 * i + k] = (float)(d[k] / norm);
  sample->channels[i] = t->channel;
  sample->series[i] = t->series;
  sample->positions[i] = t->step;
  sample->sensors[i] = (uint8_t)t->kind;
}

static sn_token_batch *make_batch(void) {
  sn_sample *samples[2];
  sn_token_batch *batch;
  int64_t at = 0;
  for (int s = 0; s < 2; s++) {
    const int64_t n = s == 0 ? 6 : 3;
    assert_int_equal(sn_sample_create(n, 4, false, &samples[s], NULL), SN_OK);
    samples[s]->sample_id = 40 + (uint64_t)s;
    for (int64_t i = 0; i < n; i++) fill_token(samples[s], i, &TOKENS[at++]);
  }
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, 2, &batch, NULL), SN_OK);
  for (int s = 0; s < 2; s++) sn_sample_destroy(samples[s]);
  return batch;
}

/* Everything that one encoding needs. Slot 3 and the slots behind the tokens hold none. */
typedef struct bench {
  sn_config *config;
  sn_params *params;
  sn_positions *positions;
  sn_token_batch *batch;
  int64_t tokens[SLOTS];
  sn_device *device;
  sn_arena *arena;
  sn_tape *tape;
  int64_t width;
} bench;

static sn_status try_open(bench *b, const char *settings, int64_t width, const sn_encoder_data *data, sn_error *err) {
  memset(b, 0, sizeof *b);
  b->width = width;
  for (int64_t i = 0, t = 0; i < SLOTS; i++) b->tokens[i] = i == 3 || t == N ? -1 : t++;
  b->batch = make_batch();
  SN_TRY(sn_engine_config_create(NULL, 0, &b->config, err));
  SN_TRY(sn_config_load_pairs(b->config, settings, "test", err));
  SN_TRY(sn_params_create(SN_F64, &b->params, err));
  sn_position_setup setup = {.params = b->params, .config = b->config, .prefix = "embed", .width = width, .data = data};
  SN_TRY(sn_positions_create(&setup, &b->positions, err));
  sn_params_init(b->params, 1);
  sn_tape_options options = {.residual = SN_F64, .product = SN_F64, .training = true};
  SN_TRY(sn_device_create_cpu(&(sn_device_options){.n_threads = 1}, &b->device, err));
  SN_TRY(sn_arena_create(false, &b->arena, err));
  SN_TRY(sn_arena_reserve(b->arena, 1 << 24, err));
  return sn_tape_create(b->device, b->arena, &options, &b->tape, err);
}

static void close_bench(bench *b) {
  sn_tape_destroy(b->tape);
  sn_arena_destroy(b->arena);
  sn_device_destroy(b->device);
  sn_positions_destroy(b->positions);
  sn_params_destroy(b->params);
  sn_config_destroy(b->config);
  sn_token_batch_destroy(b->batch);
}

static void open_bench(bench *b, const char *settings, int64_t width) {
  sn_error err;
  if (try_open(b, settings, width, &DATA, &err) != SN_OK) fail_msg("%s: %s", settings, err.message);
}

/* The formula of make_position.py. */
static void set_parameters(sn_params *params) {
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    sn_param *p = sn_params_at(params, i);
    for (int64_t k = 0; k < sn_tensor_count(&p->value); k++)
      sn_tensor_set(&p->value, k, (p->role == SN_ROLE_NORM ? 1 : 0) + 0.4 * sin(0.7 * (double)k + 0.11 * (double)strlen(p->name)));
    p->version++;
  }
}

static sn_positions_work *prepare(const bench *b, const uint64_t *epochs) {
  sn_positions_work *work;
  sn_error err;
  if (sn_positions_prepare(b->positions, b->batch, b->tokens, SLOTS, epochs, SN_F64, &work, &err) != SN_OK)
    fail_msg("%s", err.message);
  return work;
}

/* encoding (SLOTS, width) added to rows of 0.5 */
static void encode(bench *b, const uint64_t *epochs, double *y) {
  double x[SLOTS * 64];
  sn_value *in, *out;
  sn_error err;
  sn_positions_work *work = prepare(b, epochs);
  for (int64_t i = 0; i < SLOTS * b->width; i++) x[i] = 0.5;
  sn_tape_reset(b->tape);
  assert_int_equal(sn_tape_input(b->tape, &in, sn_tensor_2d(x, SN_F64, SLOTS, b->width), true, NULL), SN_OK);
  if (sn_positions_add(b->tape, &out, in, b->positions, work, &err) != SN_OK) fail_msg("%s", err.message);
  memcpy(y, out->tensor.data, (size_t)(SLOTS * b->width) * sizeof *y);
  sn_positions_work_destroy(work);
}

/* expected: rows `first`, `first + stride`, ... of the tokens */
static void check(const char *settings, int64_t width, const double *expected, int64_t n, int64_t first, int64_t stride) {
  bench b;
  double y[SLOTS * 64], worst = 0;
  open_bench(&b, settings, width);
  set_parameters(b.params);
  encode(&b, NULL, y);
  for (int64_t r = 0; r < SLOTS; r++) {
    const int64_t t = b.tokens[r];
    for (int64_t c = 0; c < width && t < 0; c++) worst = worse_of(worst, fabs(y[r * width + c] - 0.5)); /* no token: 0 */
    if (t < first || (t - first) % stride != 0 || (t - first) / stride >= n) continue;
    for (int64_t c = 0; c < width; c++)
      worst = worse_of(worst, fabs(y[r * width + c] - 0.5 - expected[(t - first) / stride * width + c]));
  }
  if (!(worst <= 1e-12)) fail_msg("%s: off by %g", settings, worst);
  close_bench(&b);
}

static void test_values(void **state) {
  check("model.position=fourier4d\nmodel.channel=none\n", 16, golden_fourier4d[0], 9, 0, 1);
  check("model.position=fourier4d\nmodel.channel=none\nmodel.position_period=20\n", 40, golden_fourier4d_wide[0], 2, 4, 4);
  check("model.position=reve2025\nmodel.channel=none\nmodel.position_frequencies=3\n", 16, golden_reve2025[0], 9, 0, 1);
  check("model.position=reve2025\nmodel.channel=none\nmodel.position_time_scale=0.05\n", 16, golden_reve2025_scaled[0], 2, 4, 4);
  check("model.position=reve2025,learned4d\nmodel.position_norm=layernorm\nmodel.channel=none\nmodel.position_frequencies=3\n",
        16, golden_reve[0], 9, 0, 1);
  check("model.position=learned4d\nmodel.channel=none\n", 8, golden_learned4d[0], 9, 0, 1);
  check("model.position=sensor6d,rope\nmodel.channel=none\n", 8, golden_sensor6d[0], 9, 0, 1);
  check("model.position=sjepa\nmodel.channel=none\n", 14, golden_sjepa[0], 9, 0, 1);
  check("model.position=sjepa\nmodel.channel=none\n", 64, golden_sjepa_64[0], 1, 4, 1);
}

/* fourier4d takes every axis; the published cut leaves kx out where n^4 is larger than d/2. */
static void test_truncation(void **state) {
  bench b;
  double y[2][SLOTS * 64];
  static const char *const PARTS[2] = {"model.position=fourier4d\nmodel.channel=none\n",
                                       "model.position=reve2025\nmodel.channel=none\nmodel.position_frequencies=3\n"};
  for (int i = 0; i < 2; i++) {
    double moved = 0;
    open_bench(&b, PARTS[i], 16);
    encode(&b, NULL, y[0]);
    for (int64_t t = 0; t < N; t++) b.batch->coordinates[4 * t] += 0.05f; /* x alone */
    encode(&b, NULL, y[1]);
    for (int k = 0; k < SLOTS * 16; k++) moved = fmax(moved, fabs(y[0][k] - y[1][k]));
    assert_true(i == 0 ? moved > 0.01 : moved == 0);
    close_bench(&b);
  }
}

/* --- gradients ---------------------------------------------------------------------------------------------------- */

static double loss_of(bench *b, const double *x, const float *target, bool backward) {
  static const float weights[SLOTS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  sn_value *in, *y, *t, *w, *out[2];
  sn_positions_work *work = prepare(b, NULL);
  const double seed = 1;
  sn_tape_reset(b->tape);
  assert_int_equal(sn_tape_input(b->tape, &in, sn_tensor_2d((void *)x, SN_F64, SLOTS, b->width), true, NULL), SN_OK);
  assert_int_equal(sn_positions_add(b->tape, &y, in, b->positions, work, NULL), SN_OK);
  assert_int_equal(sn_tape_input(b->tape, &t, sn_tensor_2d((void *)target, SN_F32, SLOTS, b->width), false, NULL), SN_OK);
  assert_int_equal(sn_tape_input(b->tape, &w, sn_tensor_1d((void *)weights, SN_F32, SLOTS), false, NULL), SN_OK);
  assert_int_equal(sn_masked_patch_loss(b->tape, out, y, t, NULL, w, SN_PATCH_L2, 1.0, NULL), SN_OK);
  const double loss = *(const double *)out[0]->tensor.data;
  if (backward) {
    sn_params_zero_grad(b->params);
    assert_int_equal(sn_tape_backward(b->tape, 1, out, &seed, NULL), SN_OK);
  }
  sn_positions_work_destroy(work);
  return loss;
}

typedef enum fault { NO_FAULT, SCALED, ONE_ELEMENT, ZEROED, N_FAULTS } fault;

/* Gradient along a direction (every element of every parameter), after a planted fault in parameter `which`. */
static double along(const bench *b, const double *direction, fault planted, int64_t which) {
  double sum = 0;
  for (int64_t i = 0, at = 0; i < sn_params_count(b->params); i++) {
    const sn_tensor *g = &sn_params_at(b->params, i)->grad;
    const int64_t n = sn_tensor_count(g);
    double most = 0;
    for (int64_t k = 0; k < n; k++) most = fmax(most, fabs(sn_tensor_get(g, k)));
    for (int64_t k = 0; k < n; k++, at++) {
      double v = sn_tensor_get(g, k);
      if (i == which && planted == SCALED) v *= 1.01;
      if (i == which && planted == ONE_ELEMENT && k == n / 2) v += 0.01 * most;
      if (i == which && planted == ZEROED) v = 0;
      sum += v * direction[at];
    }
  }
  return sum;
}

static void move(const bench *b, const double *direction, double step) {
  for (int64_t i = 0, at = 0; i < sn_params_count(b->params); i++) {
    sn_param *p = sn_params_at(b->params, i);
    for (int64_t k = 0; k < sn_tensor_count(&p->value); k++, at++)
      sn_tensor_set(&p->value, k, sn_tensor_get(&p->value, k) + step * direction[at]);
    p->version++;
  }
}

static void check_gradient(const char *settings, int64_t width) {
  bench b;
  double x[SLOTS * 64];
  float target[SLOTS * 64];
  sn_random random = sn_random_at(3, SN_PURPOSE_TEST, 0, (uint64_t)width);
  open_bench(&b, settings, width);
  set_parameters(b.params);
  assert_int_equal(sn_params_prepare_training(b.params, false, NULL), SN_OK);
  const int64_t n = sn_params_elements(b.params, true);
  assert_true(n > 0);
  for (int64_t i = 0; i < SLOTS * width; i++) x[i] = sn_random_normal(&random), target[i] = (float)(3 * sn_random_normal(&random));
  double *direction = test_malloc((size_t)n * sizeof *direction);
  for (int64_t i = 0; i < n; i++) direction[i] = sn_random_normal(&random);
  loss_of(&b, x, target, true);
  const double h = 1e-5;
  move(&b, direction, h);
  const double above = loss_of(&b, x, target, false);
  move(&b, direction, -2 * h);
  const double below = loss_of(&b, x, target, false), numeric = (above - below) / (2 * h);
  for (int planted = NO_FAULT; planted < N_FAULTS; planted++)
    for (int64_t which = 0; which < sn_params_count(b.params); which++) {
      const double analytic = along(&b, direction, (fault)planted, which);
      const bool good = fabs(analytic - numeric) <= 1e-7 * fabs(numeric);
      if (good != (planted == NO_FAULT))
        fail_msg("%s: fault %d in %s: analytic %.12g, numeric %.12g", settings, planted, sn_params_at(b.params, which)->name,
                 analytic, numeric);
    }
  test_free(direction);
  close_bench(&b);
}

static void test_gradients(void **state) {
  check_gradient("model.position=learned4d\nmodel.channel=none\n", 8);
  check_gradient("model.position=reve2025,learned4d\nmodel.position_norm=layernorm\n", 16);
  check_gradient("model.position=sensor6d,sincos\nmodel.channel=none\n", 8);
  check_gradient("model.position=sjepa\nmodel.channel=none\n", 14);
  check_gradient("model.position=sincos\nmodel.channel=direction\n", 8);
}

/* --- jitter ------------------------------------------------------------------------------------------------------- */

static void test_jitter(void **state) {
  bench b;
  double still[SLOTS * 16], first[SLOTS * 16], again[SLOTS * 16], later[SLOTS * 16], most = 0;
  const uint64_t epochs[2] = {4, 4}, other[2] = {5, 5};
  open_bench(&b, "model.position=fourier4d\nmodel.channel=none\nmodel.position_jitter=2.5 mm\n", 16);
  float before[4 * N];
  memcpy(before, b.batch->coordinates, sizeof before);
  encode(&b, NULL, still);
  encode(&b, epochs, first);
  encode(&b, epochs, again);
  encode(&b, other, later);
  assert_memory_equal(before, b.batch->coordinates, sizeof before);
  assert_memory_equal(first, again, sizeof first);
  assert_memory_not_equal(first, later, sizeof first);
  for (int i = 0; i < SLOTS * 16; i++) most = fmax(most, fabs(first[i] - still[i]));
  assert_true(most > 1e-4 && most < 0.2);
  /* Tokens alone give what they give in company: another set of rows, the same places. */
  for (int64_t i = 0; i < SLOTS; i++) b.tokens[i] = i == 0 ? 8 : i == 1 ? 1 : -1;
  encode(&b, epochs, again);
  assert_memory_equal(again, first + 9 * 16, 16 * sizeof(double));
  assert_memory_equal(again + 16, first + 16, 16 * sizeof(double));
  close_bench(&b);
}

/* --- what is refused ---------------------------------------------------------------------------------------------- */

static void refuse(const char *settings, int64_t width, const char *words) {
  bench b;
  sn_error err;
  const sn_encoder_data short_of = {.patch_size = 4, .n_channel_ids = 0, .step = 0.5};
  const bool bare = strstr(settings, "#bare") != NULL;
  const sn_status status = try_open(&b, settings, width, bare ? &short_of : &DATA, &err);
  if (status != SN_E_ARGUMENT || strstr(err.message, words) == NULL)
    fail_msg("%s: %s", settings, status == SN_OK ? "accepted" : err.message);
  close_bench(&b);
}

static void test_refusals(void **state) {
  refuse("model.position=fourier5d\n", 16, "did you mean 'fourier4d'");
  refuse("model.position=sincos,sincos\n", 16, "stands twice");
  refuse("model.position=none,sincos\n", 16, "alone");
  refuse("model.position=sincos,rope\n", 16, "both say what time");
  refuse("model.position=fourier4d,reve2025\n", 16, "both say what time");
  refuse("model.position=sensor6d\n", 16, "nothing of time");
  refuse("model.position=sjepa\n", 16, "model.channel to none");
  refuse("model.position=sjepa\nmodel.channel=none\n", 12, "at least 14");
  refuse("model.position=sjepa\nmodel.channel=none\n#bare\n", 16, "no table of channels");
  refuse("model.position=fourier4d\n#bare\n", 16, "model.position_period");
  refuse("model.position=sincos\n", 15, "even width");
  refuse("model.position=fourier4d\n", 15, "odd");
  refuse("model.position=reve2025\nmodel.position_frequencies=3\n", 200, "n^4 >= 100 phases, so from 4");
  refuse("model.position=sincos\nmodel.position_jitter=2 mm\n", 16, "no part of model.position reads places");
  refuse("model.position=rope\nmodel.position_norm=layernorm\n", 16, "adds nothing");
  refuse("model.position=sincos\nmodel.unknown_channel=position\n", 16, "nothing would tell");
  refuse("model.position=fourier4d\nmodel.position_time_scale=0.5\n", 16, "only reve2025");
}

static void refuse_tokens(bench *b, const char *words) {
  sn_positions_work *work = NULL;
  sn_error err;
  const sn_status status = sn_positions_prepare(b->positions, b->batch, b->tokens, SLOTS, NULL, SN_F64, &work, &err);
  if (status != SN_E_ARGUMENT || work != NULL || strstr(err.message, words) == NULL)
    fail_msg("expected '%s', found: %s", words, status == SN_OK ? "accepted" : err.message);
}

static void test_tokens_refused(void **state) {
  bench b;
  open_bench(&b, "model.position=fourier4d\n", 16);
  for (int t = 0; t < N; t++)
    if (TOKENS[t].channel == 2 || TOKENS[t].channel == 4) memset(b.batch->coordinates + 4 * t, 0, 3 * sizeof(float));
  refuse_tokens(&b, "these channels have none: Fp1, MEG0112;");
  close_bench(&b);
  open_bench(&b, "model.position=fourier4d\nmodel.position_missing=origin\n", 16);
  memset(b.batch->coordinates, 0, 3 * sizeof(float));
  sn_positions_work_destroy(prepare(&b, NULL));
  b.batch->coordinates[4 * 8 + 3] = 0.5f * 12.5f; /* step 12 of 12 */
  refuse_tokens(&b, "the period is 12 steps");
  b.batch->channels[2] = -1;
  b.batch->coordinates[4 * 8 + 3] = 0;
  refuse_tokens(&b, "model.unknown_channel");
  close_bench(&b);
  open_bench(&b, "model.position=fourier4d\nmodel.unknown_channel=position\n", 16);
  b.batch->channels[2] = -1;
  sn_positions_work_destroy(prepare(&b, NULL));
  close_bench(&b);
  open_bench(&b, "model.position=reve2025\n", 16);
  b.batch->coordinates[4 * 8 + 3] = 0.5f * 16.5f;
  sn_positions_work_destroy(prepare(&b, NULL)); /* 17 steps */
  b.batch->coordinates[4 * 8 + 3] = 0.5f * 17.5f;
  refuse_tokens(&b, "model.position_time_scale");
  close_bench(&b);
  open_bench(&b, "model.position=sensor6d,rope\n", 16);
  b.batch->sensors[0] = SN_SENSOR_ECG;
  refuse_tokens(&b, "sensor kind");
  close_bench(&b);
  open_bench(&b, "model.position=sjepa\nmodel.channel=none\n", 16);
  b.batch->coordinates[0] = 0.21f;
  refuse_tokens(&b, "model.position_range");
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),   cmocka_unit_test(test_truncation), cmocka_unit_test(test_gradients),
      cmocka_unit_test(test_jitter),   cmocka_unit_test(test_refusals),   cmocka_unit_test(test_tokens_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
