/* A tiny masked autoencoder against PyTorch in float64: first step, gradients, ten AdamW steps (tests/golden/make_mae.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/text.h"
#include "engine/model.h"
#include "engine/optimizer.h"
#include "engine/step.h"
#include "engine/train_config.h"
#include "objectives/masks/mask.h"
#include "worst.h"

enum { S = 5, T = 12, P = 10, STEPS = 10, MOST_PARAMS = 128 };

typedef struct golden {
  double loss[STEPS], grad_norm[STEPS];
  int n;
  char names[MOST_PARAMS][SN_PARAM_NAME];
  double norms[MOST_PARAMS], projections[MOST_PARAMS][3];
} golden;

static golden G;

static void load_golden(void) {
  FILE *f = fopen(SONDE_SOURCE_DIR "/tests/golden/mae_losses.tsv", "r");
  assert_non_null(f);
  char line[512];
  int steps = 0;
  while (fgets(line, sizeof line, f) != NULL) {
    if (line[0] == '#') continue;
    if (steps < STEPS) {
      int step;
      assert_int_equal(sscanf(line, "%d %lf %lf", &step, &G.loss[steps], &G.grad_norm[steps]), 3);
      assert_int_equal(step, ++steps);
    } else {
      double *p = G.projections[G.n];
      assert_int_equal(sscanf(line, "%127s %lf %lf %lf %lf", G.names[G.n], &G.norms[G.n], &p[0], &p[1], &p[2]), 5);
      G.n++;
    }
  }
  fclose(f);
  assert_true(steps == STEPS && G.n > 20);
}

static sn_config *make_config(void) {
  sn_config *config;
  sn_error err;
  assert_int_equal(sn_engine_config_create(NULL, 0, &config, &err), SN_OK);
  assert_int_equal(sn_config_load_pairs(config,
                                        "model.width=16\nmodel.heads=2\nmodel.depth=2\nmodel.channel=none\n"
                                        "mae.decoder_width=12\nmae.decoder_heads=1\nmae.decoder_depth=1\n",
                                        "test", &err),
                   SN_OK);
  return config;
}

static sn_token_batch *make_batch(void) {
  sn_sample *samples[S];
  sn_token_batch *batch;
  for (int s = 0; s < S; s++) {
    assert_int_equal(sn_sample_create(T, P, false, &samples[s], NULL), SN_OK);
    samples[s]->sample_id = (uint64_t)(s + 1);
    for (int t = 0; t < T; t++) {
      samples[s]->positions[t] = t;
      samples[s]->channels[t] = -1;
      for (int p = 0; p < P; p++) {
        const double i = t * P + p;
        samples[s]->patches[t * P + p] = (float)(sin(0.1 * (s + 1) * i) + 0.3 * cos(0.05 * (s + 2) * i));
      }
    }
  }
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, S, &batch, NULL), SN_OK);
  for (int s = 0; s < S; s++) sn_sample_destroy(samples[s]);
  return batch;
}

static void set_weights(sn_params *params) {
  for (int64_t k = 0; k < sn_params_count(params); k++) {
    sn_param *p = sn_params_at(params, k);
    int sum = 0;
    for (const char *c = p->name; *c; c++) sum += (unsigned char)*c;
    const size_t n = strlen(p->name);
    const bool norm = strstr(p->name, "norm") != NULL && strcmp(p->name + n - 7, ".weight") == 0;
    for (int64_t i = 0; i < sn_tensor_count(&p->value); i++)
      sn_tensor_set(&p->value, i, (float)((norm ? 1.0 : 0.0) + 0.2 * sin(0.7 * (double)i + sum % 1000)));
    p->version++;
  }
}

/* The masks that the engine draws must be those that the golden values were made with. */
static void draw_masks(const sn_token_batch *batch, uint64_t epoch, char masks[S][T + 1]) {
  sn_mask_options options = {.ratio = 0.75, .scope = SN_MASK_SAMPLE};
  for (int s = 0; s < S; s++) {
    uint8_t masked[T];
    int64_t n;
    sn_mask_tokens tokens = {.n = T, .coordinates = batch->coordinates + 4 * s * T, .channels = batch->channels + s * T,
                             .positions = batch->positions + s * T};
    sn_random random = sn_random_at(0, SN_PURPOSE_MASK, epoch, batch->sample_ids[s]);
    assert_int_equal(sn_mask_random(&tokens, &options, &random, masked, &n, NULL), SN_OK);
    assert_int_equal(n, 9);
    for (int t = 0; t < T; t++) masks[s][t] = masked[t] ? '1' : '0';
    masks[s][T] = '\0';
  }
}

static void test_masks(void **state) {
  FILE *f = fopen(SONDE_SOURCE_DIR "/tests/golden/mae_masks.txt", "r");
  sn_token_batch *batch = make_batch();
  char masks[S][T + 1], line[128];
  int n = 0;
  assert_non_null(f);
  while (fgets(line, sizeof line, f) != NULL) {
    if (line[0] == '#') continue;
    if (n % S == 0) draw_masks(batch, (uint64_t)(n / S), masks);
    line[strcspn(line, "\n")] = '\0';
    assert_string_equal(line, masks[n % S]);
    n++;
  }
  assert_int_equal(n, STEPS * S);
  fclose(f);
  sn_token_batch_destroy(batch);
}

/* relative difference, infinite for NaN */
static double differs(double a, double b) {
  double d = fabs(a - b) / fmax(fabs(b), 1e-300);
  return isfinite(d) ? d : INFINITY;
}

static void check_gradients(const sn_params *params, double tolerance) {
  for (int k = 0; k < G.n; k++) {
    sn_param *p = sn_params_find(params, G.names[k]);
    assert_non_null(p);
    double squares = 0, projection[3] = {0};
    for (int64_t i = 0; i < sn_tensor_count(&p->grad); i++) {
      const double g = sn_tensor_get(&p->grad, i);
      squares += g * g;
      for (int j = 0; j < 3; j++) projection[j] += g * cos(0.3 * (double)i + j);
    }
    /* the design's measure: against max(|g_ref|, 1e-6 |all gradients|) */
    const double scale = fmax(G.norms[k], 1e-6 * G.grad_norm[0]);
    double worst = worse_of(0, fabs(sqrt(squares) - G.norms[k]) / scale);
    for (int j = 0; j < 3; j++)
      worst = worse_of(worst, fabs(projection[j] - G.projections[k][j]) / (scale * sqrt((double)sn_tensor_count(&p->grad))));
    if (!(worst <= tolerance)) fail_msg("gradient of %s differs by %g", p->name, worst);
  }
}

static void run_steps(sn_dtype dtype, double first_loss, double gradient, double later) {
  sn_config *config = make_config();
  sn_token_batch *batch = make_batch();
  sn_model *model;
  sn_device *device;
  sn_comm *comm;
  sn_step_engine *engine;
  sn_error err;
  const sn_model_shape shape = {.patch_size = P, .n_channel_ids = 0, .patch_step = 0, .pack_slots = 64,
                                .pack_samples = S, .max_tokens = T};
  const sn_optimizer_options optimizer = {.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.05, .clip = 1,
                                          .layer_decay = 1};
  assert_int_equal(sn_device_create_cpu(NULL, &device, &err), SN_OK);
  assert_int_equal(sn_comm_create_single(&comm, &err), SN_OK);
  assert_int_equal(sn_model_create(config, &shape, dtype, 0, true, &model, &err), SN_OK);
  assert_int_equal(sn_params_count(model->params), G.n);
  assert_int_equal(sn_params_set_decay(model->params, "tokens", &err), SN_OK);
  assert_int_equal(sn_params_prepare_training(model->params, false, &err), SN_OK);
  set_weights(model->params);
  assert_int_equal(sn_step_engine_create(device, model->params, model->objective, dtype, dtype, comm, &engine, &err),
                   SN_OK);
  for (int step = 0; step < STEPS; step++) {
    uint64_t epochs[S];
    void *work;
    sn_step_sums sums;
    sn_optimizer_result result;
    for (int s = 0; s < S; s++) epochs[s] = (uint64_t)step;
    const sn_objective_vtable *v = model->objective->vtable;
    assert_int_equal(v->collate(model->objective, batch, epochs, &work, &err), SN_OK);
    if (sn_step_gradients(engine, 1, &work, (uint64_t)step, -1, &sums, &err) != SN_OK) fail_msg("%s", err.message);
    v->free_work(work);
    if (step == 0) check_gradients(model->params, gradient);
    const double difference = differs(sums.loss, G.loss[step]);
    if (!(difference <= (step == 0 ? first_loss : later)))
      fail_msg("step %d: loss %.17g, PyTorch %.17g: differs by %g", step + 1, sums.loss, G.loss[step], difference);
    assert_int_equal(sn_optimizer_step(device, model->params, &optimizer, 1e-2, step + 1, &result, &err), SN_OK);
    assert_true(differs(result.grad_norm, G.grad_norm[step]) <= 100 * (step == 0 ? first_loss : later));
  }
  sn_step_engine_destroy(engine);
  sn_model_destroy(model);
  sn_comm_destroy(comm);
  sn_device_destroy(device);
  sn_token_batch_destroy(batch);
  sn_config_destroy(config);
}

static void test_float64(void **state) { run_steps(SN_F64, 1e-9, 1e-9, 1e-9); }
static void test_fp32(void **state) { run_steps(SN_F32, 1e-6, 1e-5, 1e-4); }

int main(int argc, char **argv) {
  if (argc == 3 && strcmp(argv[1], "--write-masks") == 0) {
    FILE *f = fopen(argv[2], "w");
    sn_token_batch *batch = make_batch();
    char masks[S][T + 1];
    if (f == NULL) return 1;
    fprintf(f, "# masks of %d steps x %d samples x %d tokens, 1 hidden; written by test_mae_parity --write-masks\n", STEPS, S, T);
    for (int step = 0; step < STEPS; step++) {
      draw_masks(batch, (uint64_t)step, masks);
      for (int s = 0; s < S; s++) fprintf(f, "%s\n", masks[s]);
    }
    sn_token_batch_destroy(batch);
    return fclose(f) != 0;
  }
  load_golden();
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_masks), cmocka_unit_test(test_float64),
                                     cmocka_unit_test(test_fp32)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
