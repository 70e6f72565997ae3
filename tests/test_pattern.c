/* Attention patterns and latent sources: equality with full attention under an explicit mask in float64, gradients, bf16,
 * ragged samples, special rows, and the models that use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alloc_fault.h"
#include "core/alloc.h"
#include "core/bf16.h"
#include "core/philox.h"
#include "datasets/source.h"
#include "encoders/encoder.h"
#include "encoders/pattern_attention.h"
#include "engine/model.h"
#include "engine/train_config.h"
#include "kernels/cast/cast.h"
#include "kernels/masked_patch_loss/masked_patch_loss.h"
#include "worst.h"

enum { R = 64, H = 3, D = 4, C = H * D, SAMPLES = 3 };

/* Three ragged samples: holes, a channel that begins late, a sample of one token, rows in no tidy order; n_special rows ahead. */
typedef struct rows {
  int64_t offsets[SAMPLES + 1];
  int32_t series[R], positions[R], sample[R];
  bool special[R];
  int64_t n;
} rows;

static void fill_rows(rows *r, int64_t n_special) {
  memset(r, 0, sizeof *r);
  for (int s = 0; s < SAMPLES; s++) {
    r->offsets[s] = r->n;
    for (int64_t k = 0; k < n_special; k++) {
      r->special[r->n] = true;
      r->sample[r->n++] = s;
    }
    for (int c = 0; c < (s == 1 ? 1 : 4); c++)
      for (int p = 0; p < 7; p++) {
        if (s == 1 && p != 3) continue;
        if (s != 1 && ((c + 2 * p + s) % 3 == 0 || (c == 2 && p < 3))) continue; /* masked, or not there yet */
        r->series[r->n] = s == 2 ? 3 - c : c;
        r->positions[r->n] = p;
        r->sample[r->n++] = s;
      }
  }
  r->offsets[SAMPLES] = r->n;
  assert_true(r->n < R);
}

static bool sees(const rows *r, const sn_attention_options *o, int pattern, int64_t i, int64_t j) {
  if (r->sample[i] != r->sample[j]) return false;
  if (r->special[i] || r->special[j]) return true;
  if (o->kind == SN_ATTEND_CRISSCROSS)
    return pattern == 0 ? r->series[i] == r->series[j] : r->positions[i] == r->positions[j];
  const int64_t shift = pattern == 1 ? o->window / 2 : 0;
  return (r->positions[i] + shift) / o->window == (r->positions[j] + shift) / o->window;
}

/* The definition: softmax over the rows that the mask leaves. */
static void masked_attention(const rows *r, const sn_attention_options *o, int64_t block, const double *qkv, double *out) {
  for (int64_t i = 0; i < R; i++)
    for (int h = 0; h < H; h++) {
      const bool split = o->kind == SN_ATTEND_CRISSCROSS && o->split_heads;
      const int n_patterns = o->kind == SN_ATTEND_CRISSCROSS || o->shift ? 2 : 1;
      const int pattern = split ? h >= (H + 1) / 2 : (int)(block % n_patterns);
      double sum = 0, value[D] = {0};
      for (int64_t j = 0; i < r->n && j < r->n; j++) {
        if (!sees(r, o, pattern, i, j)) continue;
        double a = 0;
        for (int d = 0; d < D; d++) a += qkv[i * 3 * C + h * D + d] * qkv[j * 3 * C + C + h * D + d];
        const double e = exp(a / sqrt(D));
        sum += e;
        for (int d = 0; d < D; d++) value[d] += e * qkv[j * 3 * C + 2 * C + h * D + d];
      }
      for (int d = 0; d < D; d++) out[i * C + h * D + d] = sum > 0 ? value[d] / sum : 0;
    }
}

typedef struct world {
  sn_device *device;
  sn_arena *arena;
  sn_tape *tape;
} world;

static void open_world(world *w, sn_dtype residual, sn_dtype product) {
  sn_tape_options options = {.residual = residual, .product = product, .training = true};
  assert_int_equal(sn_device_create_cpu(&(sn_device_options){.n_threads = 2}, &w->device, NULL), SN_OK);
  assert_int_equal(sn_arena_create(false, &w->arena, NULL), SN_OK);
  assert_int_equal(sn_arena_reserve(w->arena, 1 << 25, NULL), SN_OK);
  assert_int_equal(sn_tape_create(w->device, w->arena, &options, &w->tape, NULL), SN_OK);
}

static void close_world(world *w) {
  sn_tape_destroy(w->tape);
  sn_arena_destroy(w->arena);
  sn_device_destroy(w->device);
}

static sn_patterns *make_patterns(const rows *r, const sn_attention_options *o, int64_t n_special, bool known) {
  sn_patterns *patterns;
  sn_error err;
  sn_pattern_layout layout = {.n_rows = R, .n_samples = SAMPLES, .offsets = r->offsets, .n_special = n_special,
                              .series = r->series, .positions = r->positions, .most_samples = 4,
                              .most_series = known ? 4 : 0, .most_positions = known ? 7 : 0};
  if (sn_patterns_create(o, &layout, &patterns, &err) != SN_OK) fail_msg("%s", err.message);
  return patterns;
}

/* loss = mean square distance to target; *grad [out] (R, 3C) when not NULL. */
static double run(world *w, const sn_patterns *patterns, int64_t block, const double *qkv, sn_dtype product, double *out,
                  const float *target, double *grad) {
  static float weights[R];
  float narrow[R * 3 * C];
  sn_value *in, *x, *y, *t, *v, *loss[2];
  sn_error err;
  const double seed = 1;
  const sn_dtype residual = sn_tape_residual(w->tape);
  for (int i = 0; i < R * 3 * C; i++) narrow[i] = (float)qkv[i];
  for (int i = 0; i < R; i++) weights[i] = 1;
  sn_tape_reset(w->tape);
  void *data = residual == SN_F64 ? (void *)qkv : (void *)narrow;
  assert_int_equal(sn_tape_input(w->tape, &in, sn_tensor_2d(data, residual, R, 3 * C), true, NULL), SN_OK);
  assert_int_equal(sn_cast(w->tape, &x, in, product, NULL), SN_OK);
  if (sn_pattern_attention(w->tape, &y, x, patterns, block, H, D, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_cast(w->tape, &y, y, residual, NULL), SN_OK);
  for (int i = 0; i < R * C; i++) out[i] = sn_tensor_get(&y->tensor, i);
  assert_int_equal(sn_tape_input(w->tape, &t, sn_tensor_2d((void *)target, SN_F32, R, C), false, NULL), SN_OK);
  assert_int_equal(sn_tape_input(w->tape, &v, sn_tensor_1d(weights, SN_F32, R), false, NULL), SN_OK);
  assert_int_equal(sn_masked_patch_loss(w->tape, loss, y, t, NULL, v, SN_PATCH_L2, 1.0, NULL), SN_OK);
  const double value = *(const double *)loss[0]->tensor.data;
  if (grad == NULL) return value;
  assert_int_equal(sn_tape_backward(w->tape, 1, loss, &seed, NULL), SN_OK);
  for (int i = 0; i < R * 3 * C; i++) grad[i] = sn_tensor_get(&in->grad, i);
  return value;
}

static double dot(const double *a, const double *b, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += a[i] * b[i];
  return sum;
}

static void check(const sn_attention_options *o, int64_t n_special, int64_t block, bool known) {
  static double qkv[R * 3 * C], out[R * C], expected[R * C], grad[R * 3 * C], direction[R * 3 * C], moved[R * 3 * C], other[R * 3 * C];
  static float target[R * C];
  sn_random random = sn_random_at(5, SN_PURPOSE_TEST, (uint64_t)block, (uint64_t)n_special);
  rows r;
  world w;
  fill_rows(&r, n_special);
  for (int i = 0; i < R * 3 * C; i++) qkv[i] = sn_random_normal(&random), direction[i] = sn_random_normal(&random);
  for (int i = 0; i < R * C; i++) target[i] = (float)sn_random_normal(&random);
  sn_patterns *patterns = make_patterns(&r, o, n_special, known);
  masked_attention(&r, o, block, qkv, expected);
  open_world(&w, SN_F64, SN_F64);
  run(&w, patterns, block, qkv, SN_F64, out, target, grad);
  double worst = 0;
  for (int i = 0; i < R * C; i++) worst = worse_of(worst, fabs(out[i] - expected[i]));
  if (!(worst <= 1e-12)) fail_msg("kind %d, %lld special, block %lld: off by %g", (int)o->kind, (long long)n_special, (long long)block, worst);
  /* Gradient against central differences, and the proof that this comparison can fail. */
  double sides[2];
  for (int k = 0; k < 2; k++) {
    for (int i = 0; i < R * 3 * C; i++) moved[i] = qkv[i] + (k ? -1e-5 : 1e-5) * direction[i];
    sides[k] = run(&w, patterns, block, moved, SN_F64, out, target, NULL);
  }
  const double numeric = (sides[0] - sides[1]) / 2e-5, tolerance = 1e-7 * fabs(numeric);
  double most = 0;
  for (int i = 0; i < R * 3 * C; i++) most = fmax(most, fabs(grad[i]));
  const double analytic = dot(grad, direction, R * 3 * C);
  assert_true(fabs(analytic - numeric) <= tolerance);
  assert_true(fabs(1.01 * analytic - numeric) > tolerance);
  assert_true(fabs(analytic + 0.01 * most * direction[5] - numeric) > tolerance);
  assert_true(fabs(numeric) > tolerance && fabs(numeric) > 1e-6);
  close_world(&w);
  /* The fast kernels, by the project's measure. */
  for (int k = 0; k < 2; k++) {
    const double bound = k == 0 ? 1e-5 : 1.0 / 128;
    double largest = 0, error = 0;
    open_world(&w, SN_F32, k == 0 ? SN_F32 : SN_BF16);
    run(&w, patterns, block, qkv, k == 0 ? SN_F32 : SN_BF16, out, target, other);
    for (int i = 0; i < R * C; i++) error = worse_of(error, fabs(out[i] - expected[i])), largest = fmax(largest, fabs(expected[i]));
    assert_true(error <= 2 * bound * largest);
    largest = error = 0;
    for (int i = 0; i < R * 3 * C; i++) error = worse_of(error, fabs(other[i] - grad[i])), largest = fmax(largest, fabs(grad[i]));
    if (!(error <= 4 * bound * largest)) fail_msg("gradient in dtype %d: off by %g of %g", k, error, largest);
    close_world(&w);
  }
  sn_patterns_destroy(patterns);
}

static void test_equals_masked_full_attention(void **state) {
  const sn_attention_options options[] = {{.kind = SN_ATTEND_CRISSCROSS, .split_heads = true},
                                          {.kind = SN_ATTEND_CRISSCROSS},
                                          {.kind = SN_ATTEND_WINDOWED, .window = 3, .shift = true},
                                          {.kind = SN_ATTEND_WINDOWED, .window = 2}};
  for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
    for (int64_t n_special = 0; n_special < 4; n_special += n_special + 1)
      for (int64_t block = 0; block < 2; block++) check(&options[i], n_special, block, block == 0);
}

static void test_bounds(void **state) {
  const sn_attention_options o = {.kind = SN_ATTEND_CRISSCROSS, .split_heads = true};
  rows r;
  sn_patterns *patterns;
  sn_error err;
  fill_rows(&r, 1);
  sn_pattern_layout layout = {.n_rows = R, .n_samples = SAMPLES, .offsets = r.offsets, .n_special = 1, .series = r.series,
                              .positions = r.positions, .most_samples = 3, .most_series = 2, .most_positions = 7};
  assert_int_equal(sn_patterns_create(&o, &layout, &patterns, &err), SN_E_STATE); /* 9 channels in 3 samples of 2 at most */
  assert_non_null(strstr(err.message, "more than 6 segments"));
  layout.most_series = 4;
  assert_int_equal(sn_patterns_create(&o, &layout, &patterns, &err), SN_OK);
  /* The lists are linear: as many queries as rows, keys beyond them only for the special row of each segment. */
  assert_int_equal(patterns->patterns[0].n_queries, R);
  assert_int_equal(patterns->patterns[0].n_keys, 128);
  assert_int_equal(patterns->patterns[0].n_segments, 9);
  sn_patterns_destroy(patterns);
  const sn_attention_options full = {.kind = SN_ATTEND_FULL};
  assert_int_equal(sn_patterns_create(&full, &layout, &patterns, &err), SN_OK);
  assert_null(patterns);
}

/* --- whole models in float64 -------------------------------------------------------------------------------------- */

typedef struct trained {
  sn_config *config;
  sn_source *source;
  sn_token_batch *batch;
  sn_model *model;
  world w;
} trained;

static void open_trained(trained *t, const char *settings) {
  enum { N = 3 };
  sn_error err;
  sn_sample *samples[N];
  const sn_synthetic_options o = {.n_windows = N, .patch_size = 6, .tokens_least = 12, .tokens_most = 24, .n_channels = 4, .seed = 2};
  assert_int_equal(sn_source_create_synthetic(&o, &t->source, NULL), SN_OK);
  for (int i = 0; i < N; i++) assert_int_equal(t->source->vtable->read(t->source, i, 0, 0, 0, &samples[i], NULL), SN_OK);
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, N, &t->batch, NULL), SN_OK);
  for (int i = 0; i < N; i++) sn_sample_destroy(samples[i]);
  assert_int_equal(sn_engine_config_create(NULL, 0, &t->config, &err), SN_OK);
  const char *base = "model.width=16\nmodel.heads=2\nmodel.depth=2\nmae.decoder_width=16\nmae.decoder_heads=2\nmae.mask_ratio=0.5\n";
  if (sn_config_load_pairs(t->config, base, "test", &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_config_load_pairs(t->config, settings, "test", &err) != SN_OK) fail_msg("%s", err.message);
  const sn_model_shape shape = {.patch_size = 6, .n_channel_ids = 4, .patch_step = 1, .pack_slots = 128, .pack_samples = 4,
                                .max_tokens = 24, .most_positions = 6, .most_series = 4};
  if (sn_model_create(t->config, &shape, SN_F64, 7, true, &t->model, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_params_prepare_training(t->model->params, false, NULL), SN_OK);
  open_world(&t->w, SN_F64, SN_F64);
}

static void close_trained(trained *t) {
  close_world(&t->w);
  sn_model_destroy(t->model);
  sn_config_destroy(t->config);
  sn_token_batch_destroy(t->batch);
  sn_source_destroy(t->source);
}

static double objective_loss(trained *t, bool backward) {
  const sn_objective_vtable *v = t->model->objective->vtable;
  const uint64_t epochs[3] = {0};
  const double seeds[SN_MAX_GROUPS] = {1, 1, 1, 1};
  void *work;
  sn_value *sums[SN_MAX_GROUPS];
  sn_error err;
  if (v->collate(t->model->objective, t->batch, epochs, &work, &err) != SN_OK) fail_msg("%s", err.message);
  sn_tape_reset(t->w.tape);
  if (v->loss(t->model->objective, t->w.tape, work, 0, sums, &err) != SN_OK) fail_msg("%s", err.message);
  double total = 0;
  for (int g = 0; g < t->model->objective->n_groups; g++) total += *(const double *)sums[g]->tensor.data;
  if (backward) {
    sn_params_zero_grad(t->model->params);
    if (sn_tape_backward(t->w.tape, t->model->objective->n_groups, sums, seeds, &err) != SN_OK) fail_msg("%s", err.message);
  }
  v->free_work(work);
  return total;
}

static void move(sn_params *params, const double *direction, double step) {
  for (int64_t i = 0, at = 0; i < sn_params_count(params); i++) {
    sn_param *p = sn_params_at(params, i);
    for (int64_t k = 0; k < sn_tensor_count(&p->value); k++, at++)
      sn_tensor_set(&p->value, k, sn_tensor_get(&p->value, k) + step * direction[at]);
    p->version++;
  }
}

/* The gradient of all parameters along a random direction; every parameter takes part. */
static void check_model(const char *settings) {
  trained t;
  open_trained(&t, settings);
  sn_params *params = t.model->params;
  const int64_t n = sn_params_elements(params, true);
  double *direction = test_malloc((size_t)n * sizeof *direction), analytic = 0;
  sn_random random = sn_random_at(6, SN_PURPOSE_TEST, 0, 1);
  for (int64_t i = 0; i < n; i++) direction[i] = 0.1 * sn_random_normal(&random);
  move(params, direction, 0.1); /* away from zeros and ones, where gradients vanish */
  objective_loss(&t, true);
  for (int64_t i = 0, at = 0; i < sn_params_count(params); i++) {
    const sn_param *p = sn_params_at(params, i);
    double largest = 0;
    for (int64_t k = 0; k < sn_tensor_count(&p->value); k++, at++) {
      analytic += sn_tensor_get(&p->grad, k) * direction[at];
      largest = fmax(largest, fabs(sn_tensor_get(&p->grad, k)));
    }
    if (!(largest > 1e-12)) fail_msg("%s: nothing reaches %s", settings, p->name);
  }
  move(params, direction, 1e-5);
  const double above = objective_loss(&t, false);
  move(params, direction, -2e-5);
  const double numeric = (above - objective_loss(&t, false)) / 2e-5;
  if (!(fabs(analytic - numeric) <= 1e-7 * fabs(numeric) && fabs(numeric) > 1e-4))
    fail_msg("%s: gradient %.12g, differences %.12g", settings, analytic, numeric);
  test_free(direction);
  close_trained(&t);
}

static void test_models(void **state) {
  check_model("model.attention=crisscross\nmodel.class_token=true\nmodel.registers=2\nmodel.position=fourier4d\nmodel.channel=none\n");
  check_model("model.attention=crisscross\nmodel.crisscross=alternate\nmodel.position=rope\nmae.decoder_depth=2\n");
  check_model("model.attention=windowed\nmodel.window=2\nmodel.checkpoint=true\nmodel.class_token=true\n");
  check_model("model.latent_sources=3\nmodel.position=sensor6d,sincos\nmodel.channel=none\n");
  check_model("model.latent_sources=2\nmodel.position=sensor6d,rope\nmodel.channel=none\nmae.pooled_weight=0.5\n");
  check_model("model.latent_sources=2\nmodel.position=learned4d\nmodel.class_token=true\nmodel.registers=1\n"
              "model.attention=crisscross\nmae.visible_weight=0.2\n");
}

/* --- latent sources ----------------------------------------------------------------------------------------------- */

static void encode_batch(trained *t, const sn_token_batch *batch, double *y, int64_t *n_rows) {
  sn_encoder_input *input;
  sn_value *out;
  sn_error err;
  if (sn_encoder_input_create_all(t->model->encoder, batch, 128, 4, SN_F64, &input, &err) != SN_OK) fail_msg("%s", err.message);
  sn_tape_reset(t->w.tape);
  if (sn_encoder_forward(t->w.tape, &out, t->model->encoder, input, 0, SN_F64, &err) != SN_OK) fail_msg("%s", err.message);
  *n_rows = input->offsets[input->n_samples];
  memcpy(y, out->tensor.data, (size_t)(*n_rows * 16) * sizeof *y);
  sn_encoder_input_destroy(input);
}

/* Rows are n per time step whatever the channels; the order of the channels does not matter, which ones there are does. */
static void test_latents(void **state) {
  trained t;
  static double first[128 * 16], second[128 * 16];
  int64_t n, m;
  double worst = 0;
  open_trained(&t, "model.latent_sources=3\nmodel.position=fourier4d\nmodel.channel=none\n");
  assert_int_equal(sn_encoder_n_latents(t.model->encoder), 3);
  encode_batch(&t, t.batch, first, &n);
  int64_t steps = 0;
  for (int64_t s = 0; s < t.batch->n_samples; s++) steps += (t.batch->offsets[s + 1] - t.batch->offsets[s]) / 4;
  assert_int_equal(n, 3 * steps);
  /* Turn the tokens of each sample around. */
  sn_sample *turned[3];
  for (int s = 0; s < 3; s++) {
    assert_int_equal(t.source->vtable->read(t.source, s, 0, 0, 0, &turned[s], NULL), SN_OK);
    for (int64_t i = 0, j = turned[s]->n_tokens - 1; i < j; i++, j--) {
#define SWAP(type, array, width)                                                  \
  for (int k = 0; k < (width); k++) {                                             \
    const type kept = (array)[i * (width) + k];                                   \
    (array)[i * (width) + k] = (array)[j * (width) + k];                          \
    (array)[j * (width) + k] = kept;                                              \
  }
      SWAP(float, turned[s]->patches, 6)
      SWAP(float, turned[s]->coordinates, 4)
      SWAP(int32_t, turned[s]->channels, 1)
      SWAP(int32_t, turned[s]->positions, 1)
      SWAP(int32_t, turned[s]->series, 1)
    }
  }
  sn_token_batch *batch;
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)turned, 3, &batch, NULL), SN_OK);
  encode_batch(&t, batch, second, &m);
  assert_int_equal(m, n);
  for (int64_t i = 0; i < n * 16; i++) worst = worse_of(worst, fabs(first[i] - second[i]));
  if (!(worst <= 1e-12)) fail_msg("the order of channels moved the latents by %g", worst);
  batch->coordinates[0] += 0.02f; /* one sensor elsewhere: its sample's latents change, the others' do not */
  encode_batch(&t, batch, second, &m);
  double moved = 0;
  const int64_t border = 3 * (t.batch->offsets[1] / 4) * 16;
  for (int64_t i = 0; i < border; i++) moved = fmax(moved, fabs(first[i] - second[i]));
  assert_true(moved > 1e-6);
  for (int64_t i = border; i < n * 16; i++) assert_true(fabs(first[i] - second[i]) <= 1e-12);
  sn_token_batch_destroy(batch);
  for (int s = 0; s < 3; s++) sn_sample_destroy(turned[s]);
  close_trained(&t);
}

/* Every allocation of a pack's lists may fail: a status, nothing lost. */
static void test_memory_runs_out(void **state) {
  static const char *const SETTINGS[] = {
      "model.attention=crisscross\nmodel.class_token=true\nmodel.registers=1\nmodel.position=fourier4d,learned4d\n",
      "model.attention=windowed\nmodel.latent_sources=2\nmodel.position=sensor6d,sincos\n",
      "model.position=sjepa\nmodel.channel=none\n", "model.position=reve2025\nmodel.channel=direction\n"};
  const uint64_t epochs[3] = {0};
  for (size_t i = 0; i < sizeof SETTINGS / sizeof SETTINGS[0]; i++) {
    trained t;
    open_trained(&t, SETTINGS[i]);
    const sn_objective_vtable *v = t.model->objective->vtable;
    for (fault_begin(); fault_next();) {
      void *work = NULL;
      sn_error err;
      const sn_status status = v->collate(t.model->objective, t.batch, epochs, &work, &err);
      fault_check(status);
      if (status == SN_OK) v->free_work(work);
    }
    for (fault_begin(); fault_next();) {
      sn_model *model = NULL;
      sn_error err;
      const sn_status status = sn_model_create(t.config, &t.model->shape, SN_F32, 7, true, &model, &err);
      fault_check(status);
      if (status == SN_OK) sn_model_destroy(model);
    }
    close_trained(&t);
  }
}

static void refuse(const char *settings, const char *words) {
  sn_config *config;
  sn_model *model = NULL;
  sn_error err;
  const sn_model_shape shape = {.patch_size = 6, .n_channel_ids = 4, .patch_step = 1, .pack_slots = 128, .pack_samples = 4,
                                .max_tokens = 24};
  assert_int_equal(sn_engine_config_create(NULL, 0, &config, &err), SN_OK);
  if (sn_config_load_pairs(config, settings, "test", &err) != SN_OK) fail_msg("%s", err.message);
  const sn_status status = sn_model_create(config, &shape, SN_F32, 7, true, &model, &err);
  if (status != SN_E_ARGUMENT || strstr(err.message, words) == NULL)
    fail_msg("%s: %s", settings, status == SN_OK ? "accepted" : err.message);
  sn_model_destroy(model);
  sn_config_destroy(config);
}

static void test_refusals(void **state) {
  refuse("model.attention=crisscross\nmodel.heads=1\n", "model.heads 1");
  refuse("model.attention=crisscross\nmae.decoder_heads=1\n", "mae.decoder_heads 1");
  refuse("model.latent_sources=4\nmae.decoder_width=20\nmae.decoder_heads=3\n", "multiple of the number of heads");
  refuse("model.position=fourier4d\n", "model.position_period");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_equals_masked_full_attention), cmocka_unit_test(test_bounds),
                                     cmocka_unit_test(test_models), cmocka_unit_test(test_latents),
                                     cmocka_unit_test(test_memory_runs_out), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
