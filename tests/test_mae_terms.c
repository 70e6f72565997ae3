/* The terms of the masked autoencoder beside the plain one: gradients against differences, weights, what is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "engine/model.h"
#include "engine/step.h"
#include "engine/train_config.h"

enum { S = 3, T = 8, P = 6, W = 5, NEURO = 4 };

typedef struct bench {
  sn_config *config;
  sn_model *model;
  sn_device *device;
  sn_comm *comm;
  sn_step_engine *engine;
  sn_token_batch *batch;
  sn_objective_needs needs;
} bench;

static const sn_target_spec SPECTRUM = {.name = "spectrum", .per_token = true, .width = W},
                            NEURO_SPEC = {.name = "neuro", .width = NEURO};

/* Samples of 8 tokens; spectra and statistics of their own, some of them missing. */
static sn_token_batch *make_batch(void) {
  sn_sample *samples[S];
  sn_token_batch *batch;
  for (int s = 0; s < S; s++) {
    sn_target *spectrum, *neuro;
    assert_int_equal(sn_sample_create(T, P, false, &samples[s], NULL), SN_OK);
    assert_int_equal(sn_sample_add_target(samples[s], &SPECTRUM, &spectrum, NULL), SN_OK);
    assert_int_equal(sn_sample_add_target(samples[s], &NEURO_SPEC, &neuro, NULL), SN_OK);
    samples[s]->sample_id = (uint64_t)(s + 1);
    for (int t = 0; t < T; t++) {
      samples[s]->positions[t] = t / 2;
      samples[s]->channels[t] = samples[s]->series[t] = t % 2;
      for (int p = 0; p < P; p++) samples[s]->patches[t * P + p] = (float)sin(0.3 * (s + 1) * (t * P + p));
      for (int p = 0; p < W; p++) {
        spectrum->values[t * W + p] = (float)cos(0.2 * (s + 2) * (t * W + p));
        spectrum->valid[t * W + p] = (t + p) % 5 != 0;
      }
    }
    for (int p = 0; p < NEURO; p++) {
      neuro->values[p] = (float)(s - p);
      neuro->valid[p] = s != 1 && p != 2; /* sample 1 has none, statistic 2 nobody */
    }
  }
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, S, &batch, NULL), SN_OK);
  for (int s = 0; s < S; s++) sn_sample_destroy(samples[s]);
  return batch;
}

static int64_t n_extra; /* of the P values, those that are no signal */
static bool embed_extra;

static void open_bench(bench *b, const char *extra) {
  sn_error err;
  memset(b, 0, sizeof *b);
  sn_model_shape shape = {.patch_size = P, .n_channel_ids = 2, .pack_slots = 64, .pack_samples = S + 1, .max_tokens = T,
                          .n_extra = n_extra, .embed_extra = embed_extra, .n_targets = 2,
                          .targets = {SPECTRUM, NEURO_SPEC}};
  assert_int_equal(sn_engine_config_create(NULL, 0, &b->config, &err), SN_OK);
  assert_int_equal(sn_config_load_pairs(b->config, "model.width=8\nmodel.heads=2\nmodel.depth=1\nmae.decoder_width=8\n"
                                                   "mae.decoder_heads=1\nmae.mask_ratio=0.5\n", "test", &err), SN_OK);
  if (sn_config_load_pairs(b->config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_objective_get_needs(b->config, &b->needs, &err), SN_OK);
  if (sn_model_create(b->config, &shape, SN_F64, 3, true, &b->model, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < sn_params_count(b->model->params); i++) {
    sn_param *p = sn_params_at(b->model->params, i);
    const bool std = strstr(p->name, ".std") != NULL, norm = strstr(p->name, "norm") != NULL;
    for (int64_t k = 0; k < sn_tensor_count(&p->value); k++) /* away from zero, where a gradient would hide */
      sn_tensor_set(&p->value, k, (std ? 2 : norm ? 1 : 0) + 0.3 * sin(0.7 * (double)k + (double)i));
    p->version++;
  }
  assert_int_equal(sn_params_prepare_training(b->model->params, false, &err), SN_OK);
  assert_int_equal(sn_device_create_cpu(NULL, &b->device, &err), SN_OK);
  assert_int_equal(sn_comm_create_single(&b->comm, &err), SN_OK);
  assert_int_equal(sn_step_engine_create(b->device, b->model->params, b->model->objective, SN_F64, SN_F64, b->comm,
                                         &b->engine, &err), SN_OK);
  b->batch = make_batch();
}

static void close_bench(bench *b) {
  sn_step_engine_destroy(b->engine);
  sn_model_destroy(b->model);
  sn_comm_destroy(b->comm);
  sn_device_destroy(b->device);
  sn_token_batch_destroy(b->batch);
  sn_config_destroy(b->config);
}

static sn_step_sums run(bench *b) {
  const uint64_t epochs[S] = {0};
  const sn_objective_vtable *v = b->model->objective->vtable;
  sn_step_sums sums;
  sn_error err;
  void *work;
  if (v->collate(b->model->objective, b->batch, epochs, &work, &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_step_gradients(b->engine, 1, &work, 0, -1, &sums, &err) != SN_OK) fail_msg("%s", err.message);
  v->free_work(work);
  return sums;
}

/* Direction of a test: fixed, and none of its values small. */
static double direction(int64_t i, int64_t k) { return 0.5 + fabs(cos(1.3 * (double)i + 0.9 * (double)k)); }

/* Sign-alternating so that nothing cancels by symmetry. */
static double along(int64_t i, int64_t k) { return (i + k) % 2 ? direction(i, k) : -direction(i, k); }

/* |difference quotient - derivative| over the larger, for parameter i (its derivative scaled by `scale`). */
static double gradient_error(bench *b, int64_t i, double scale, double *size) {
  sn_param *p = sn_params_at(b->model->params, i);
  const int64_t n = sn_tensor_count(&p->value);
  const double h = 1e-5;
  double derivative = 0, squares = 0, loss[2];
  run(b);
  for (int64_t k = 0; k < n; k++) {
    const double g = sn_tensor_get(&p->grad, k);
    derivative += g * along(i, k);
    squares += g * g;
  }
  derivative *= scale;
  for (int side = 0; side < 2; side++) {
    for (int64_t k = 0; k < n; k++)
      sn_tensor_set(&p->value, k, sn_tensor_get(&p->value, k) + (side ? -2 : 1) * h * along(i, k));
    p->version++;
    loss[side] = run(b).loss;
  }
  for (int64_t k = 0; k < n; k++) sn_tensor_set(&p->value, k, sn_tensor_get(&p->value, k) + h * along(i, k));
  p->version++;
  const double quotient = (loss[0] - loss[1]) / (2 * h);
  *size = sqrt(squares);
  const double error = fabs(quotient - derivative) / fmax(fmax(fabs(quotient), fabs(derivative)), *size);
  return isfinite(error) ? error : INFINITY;
}

static void check_gradients(const char *extra) {
  bench b;
  open_bench(&b, extra);
  double size;
  int checked = 0;
  for (int64_t i = 0; i < sn_params_count(b.model->params); i++) {
    const sn_param *p = sn_params_at(b.model->params, i);
    if (p->fixed) {
      assert_null(p->grad.data);
      continue;
    }
    const double error = gradient_error(&b, i, 1, &size);
    if (size < 1e-12) continue; /* a bias in front of a softmax over keys */
    if (!(error <= 1e-6)) fail_msg("%s: gradient of %s is off by %g", extra, p->name, error);
    if (!(gradient_error(&b, i, 1.01, &size) > 1e-6)) fail_msg("a gradient of %s off by 1 %% goes unseen", p->name);
    checked++;
  }
  assert_true(checked > 25);
  close_bench(&b);
}

static const char ALL[] = "mae.target=spectrum\nmae.target_standardize=true\nmae.visible_weight=0.3\nmae.pooled_weight=0.7\n"
                          "mae.pooled_loss=smooth_l1\nmae.neuro_weight=0.5\n";

static void test_gradients(void **state) { check_gradients(ALL); }
static void test_gradients_with_class_token(void **state) {
  check_gradients("model.class_token=true\nmae.visible_weight=0.3\nmae.pooled_weight=0.7\nmae.pooled_loss=l2\nmae.neuro_weight=2\n");
}

/* Values that are no signal: embedded with the patch or apart, gradients hold; no target is made of them, so that those of hidden
 * tokens change nothing; those of visible ones do. */
static void test_extra_values(void **state) {
  for (int apart = 0; apart < 2; apart++) {
    n_extra = 2;
    embed_extra = apart;
    check_gradients("mae.target=normalised\nmodel.mlp_ratio=2\n");
    bench b;
    open_bench(&b, "");
    assert_int_equal(sn_params_find(b.model->params, "decoder.head.weight")->value.shape[0], P - 2);
    assert_int_equal(sn_params_find(b.model->params, "embed.patch.weight")->value.shape[1], apart ? P - 2 : P);
    assert_int_equal(sn_params_find(b.model->params, "embed.extra.fc1.weight") != NULL, apart);
    const double loss = run(&b).loss;
    int64_t same = 0, changed = 0;
    for (int64_t t = 0; t < b.batch->n_tokens; t++) {
      float *value = b.batch->patches + t * P + P - 1;
      const float before = *value;
      *value += 3;
      const double now = run(&b).loss;
      same += now == loss;
      changed += now != loss;
      *value = before;
    }
    assert_int_equal(same, 12);
    assert_int_equal(changed, 12);
    close_bench(&b);
  }
  n_extra = 0;
  embed_extra = false;
}

/* The loss is the weighted sum of group means; each term reaches its own heads and nothing else adds to it. */
static void test_groups(void **state) {
  bench b;
  open_bench(&b, ALL);
  const sn_objective *o = b.model->objective;
  assert_int_equal(o->n_groups, 4);
  assert_string_equal(o->groups[1], "visible");
  assert_string_equal(o->groups[2], "pooled");
  assert_string_equal(o->groups[3], "neuro");
  assert_int_equal(b.needs.n_targets, 2);
  const sn_step_sums s = run(&b);
  const double weights[4] = {1, 0.3, 0.7, 0.5};
  double total = 0;
  for (int g = 0; g < 4; g++) {
    assert_true(s.sums[g] > 0 && s.counts[g] > 0);
    total += weights[g] * s.sums[g] / s.counts[g];
  }
  assert_true(fabs(total - s.loss) <= 1e-12 * fabs(total));
  /* 12 hidden and 12 visible of 24; every spectrum has at least three of five values; two samples have statistics. */
  assert_true(s.counts[0] == 12 && s.counts[1] == 12 && s.counts[2] == 12 && s.counts[3] == 2);
  assert_non_null(sn_params_find(b.model->params, "decoder.pooled.fc.weight"));
  assert_non_null(sn_params_find(b.model->params, "decoder.neuro.weight"));
  assert_int_equal(sn_params_find(b.model->params, "decoder.head.weight")->value.shape[0], W);
  close_bench(&b);
}

/* Weights of 0 leave the objective what it was: one group, no heads, no targets. */
static void test_no_terms(void **state) {
  bench b;
  open_bench(&b, "");
  assert_int_equal(b.model->objective->n_groups, 1);
  assert_int_equal(b.needs.n_targets, 0);
  assert_null(sn_params_find(b.model->params, "decoder.pooled.fc.weight"));
  close_bench(&b);
}

/* The neuro term by hand: a linear map of the pooled token against standardised statistics. A statistic that nobody has does
 * not count; the values of one that is invalid do not matter. */
static void test_invalid_statistics_do_not_matter(void **state) {
  bench b;
  open_bench(&b, ALL);
  const sn_step_sums before = run(&b);
  for (int i = 0; i < b.batch->n_targets; i++) {
    sn_target *t = &b.batch->targets[i];
    const int64_t rows = t->spec.per_token ? b.batch->n_slots : b.batch->n_samples;
    for (int64_t k = 0; k < rows * t->spec.width; k++)
      if (!t->valid[k]) t->values[k] = 1e6f;
  }
  sn_step_sums after = run(&b);
  for (int g = 0; g < 4; g++) assert_true(before.sums[g] == after.sums[g]);
  b.batch->targets[1].values[0] += 1; /* the comparison can fail */
  after = run(&b);
  assert_true(before.sums[3] != after.sums[3] && before.sums[0] == after.sums[0]);
  close_bench(&b);
}

/* Targets standardised by hand give the loss of targets that the objective standardises. */
static void test_standardized_targets(void **state) {
  bench a, b;
  open_bench(&a, "mae.target=spectrum\nmae.target_standardize=true\n");
  open_bench(&b, "mae.target=spectrum\n");
  const sn_param *mean = sn_params_find(a.model->params, "decoder.target.mean");
  const sn_param *std = sn_params_find(a.model->params, "decoder.target.std");
  for (int64_t i = 0; i < sn_params_count(b.model->params); i++) {
    sn_param *q = sn_params_at(b.model->params, i);
    const sn_param *p = sn_params_find(a.model->params, q->name);
    memcpy(q->value.data, p->value.data, (size_t)sn_tensor_bytes(&q->value));
    q->version++;
  }
  sn_target *t = &b.batch->targets[0];
  for (int64_t k = 0; k < b.batch->n_slots * W; k++)
    if (t->valid[k])
      t->values[k] = (float)((t->values[k] - sn_tensor_get(&mean->value, k % W)) / sn_tensor_get(&std->value, k % W));
  const double x = run(&a).loss, y = run(&b).loss;
  assert_true(fabs(x - y) <= 1e-9 * fabs(x));
  close_bench(&a);
  close_bench(&b);
}

static void refuse(const char *extra, sn_status expected, const char *says) {
  sn_config *config;
  sn_model *model;
  sn_error err;
  const sn_model_shape shape = {.patch_size = P, .n_channel_ids = 2, .pack_slots = 64, .pack_samples = S, .max_tokens = T};
  assert_int_equal(sn_engine_config_create(NULL, 0, &config, &err), SN_OK);
  if (sn_config_load_pairs(config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_model_create(config, &shape, SN_F32, 3, true, &model, &err), expected);
  if (strstr(err.message, says) == NULL) fail_msg("'%s' does not say '%s'", err.message, says);
  sn_config_destroy(config);
}

static void test_refusals(void **state) {
  refuse("mae.target=spectrum\n", SN_E_STATE, "no target 'spectrum'");
  refuse("mae.target=waveform\n", SN_E_STATE, "no target 'patch'");
  refuse("mae.neuro_weight=0.1\n", SN_E_STATE, "no target 'neuro'");
  refuse("mae.target_standardize=true\n", SN_E_ARGUMENT, "mae.target_standardize");
  refuse("mae.mask=channel\nmae.mask_scope=channel\n", SN_E_ARGUMENT, "scope sample");
}

/* A pack without positions is refused by a mask that needs them: collate says so, nothing is made up. */
static void test_mask_without_positions(void **state) {
  bench b;
  open_bench(&b, "mae.mask=spacetime\n");
  const uint64_t epochs[S] = {0};
  void *work = NULL;
  sn_error err;
  assert_int_equal(b.model->objective->vtable->collate(b.model->objective, b.batch, epochs, &work, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "position"));
  close_bench(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gradients), cmocka_unit_test(test_gradients_with_class_token),
      cmocka_unit_test(test_extra_values),
      cmocka_unit_test(test_groups),    cmocka_unit_test(test_no_terms),
      cmocka_unit_test(test_invalid_statistics_do_not_matter), cmocka_unit_test(test_standardized_targets),
      cmocka_unit_test(test_refusals),  cmocka_unit_test(test_mask_without_positions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
