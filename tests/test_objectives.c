/* Every objective on synthetic tokens: gradients against central differences, resume, ranks, accumulation, mixtures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "engine/model.h"
#include "engine/step.h"
#include "engine/train_config.h"
#include "objectives/contrast.h"
#include "objectives/jepa.h"
#include "objectives/mix.h"

enum { S = 6, T = 8, P = 6, PACKS = 2 };

typedef struct bench {
  sn_config *config;
  sn_model *model;
  sn_device *device;
  sn_comm *comm;
  sn_step_engine *engine;
  sn_token_batch *batches[PACKS];
  int n_packs;
  double labels[2 * S];
} bench;

/* Two views of each of three windows; windows of two recordings and subjects. */
static sn_token_batch *make_batch(int pack) {
  sn_sample *samples[S];
  sn_token_batch *batch;
  for (int s = 0; s < S; s++) {
    assert_int_equal(sn_sample_create(T, P, false, &samples[s], NULL), SN_OK);
    samples[s]->sample_id = (uint64_t)(pack * S + s / 2 + 1);
    samples[s]->view = samples[s]->source = s % 2;
    samples[s]->recording = pack * 2 + s / 4;
    samples[s]->subject_id = (uint64_t)(100 + pack * 2 + s / 4);
    samples[s]->window = s / 2;
    for (int t = 0; t < T; t++) {
      samples[s]->positions[t] = t / 2;
      samples[s]->channels[t] = samples[s]->series[t] = t % 2;
      for (int p = 0; p < P; p++)
        samples[s]->patches[t * P + p] = (float)sin(0.3 * (s + 1 + 0.37 * pack) * (t * P + p) + pack);
    }
  }
  assert_int_equal(sn_token_batch_pack((const sn_sample *const *)samples, S, &batch, NULL), SN_OK);
  for (int s = 0; s < S; s++) sn_sample_destroy(samples[s]);
  return batch;
}

static void open_bench(bench *b, const char *extra, int n_packs) {
  sn_error err;
  memset(b, 0, sizeof *b);
  b->n_packs = n_packs;
  sn_model_shape shape = {.patch_size = P, .n_channel_ids = 2, .pack_slots = 64, .pack_samples = S + 1, .max_tokens = T};
  for (int i = 0; i < 2 * S; i++) b->labels[i] = i == 3 ? NAN : 0.4 * i;
  shape.n_labels = 2 * S;
  shape.labels = b->labels;
  assert_int_equal(sn_engine_config_create(NULL, 0, &b->config, &err), SN_OK);
  const char *base = "model.width=8\nmodel.heads=2\nmodel.depth=1\nmae.decoder_width=8\nmae.decoder_heads=1\n"
                     "mae.mask_ratio=0.5\njepa.mask_ratio=0.5\njepa.predictor_width=8\njepa.predictor_heads=1\n"
                     "jepa.predictor_depth=1\ncontrast.projector_hidden=10\ncontrast.projector_width=6\n";
  assert_int_equal(sn_config_load_pairs(b->config, base, "test", &err), SN_OK);
  if (sn_config_load_pairs(b->config, extra, "test", &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_model_create(b->config, &shape, SN_F64, 3, true, &b->model, &err) != SN_OK) fail_msg("%s: %s", extra, err.message);
  sn_params *params = b->model->params;
  for (int64_t i = 0; i < sn_params_count(params); i++) {
    sn_param *p = sn_params_at(params, i);
    const bool norm = strstr(p->name, "norm") != NULL && strstr(p->name, "bias") == NULL;
    for (int64_t k = 0; k < sn_tensor_count(&p->value) && strcmp(p->name, "contrast.log_scale") != 0 && strcmp(p->name, "contrast.bias") != 0; k++)
      sn_tensor_set(&p->value, k, (norm ? 1 : 0) + 0.3 * sin(0.7 * (double)k + (double)i));
    p->version++;
  }
  assert_int_equal(sn_params_prepare_training(params, sn_model_keeps_average(b->config), &err), SN_OK);
  for (int64_t i = 0; i < sn_params_count(params); i++) { /* a target encoder that differs from the encoder */
    sn_param *p = sn_params_at(params, i);
    for (int64_t k = 0; p->ema.data != NULL && k < sn_tensor_count(&p->ema); k++)
      sn_tensor_set(&p->ema, k, sn_tensor_get(&p->value, k) + 0.1 * cos((double)k));
  }
  sn_objective *o = b->model->objective;
  assert_int_equal(o->vtable->begin(o, &err), SN_OK);
  assert_int_equal(sn_device_create_cpu(NULL, &b->device, &err), SN_OK);
  assert_int_equal(sn_comm_create_single(&b->comm, &err), SN_OK);
  assert_int_equal(sn_step_engine_create(b->device, params, o, SN_F64, SN_F64, b->comm, &b->engine, &err), SN_OK);
  for (int i = 0; i < n_packs; i++) b->batches[i] = make_batch(i);
}

static void close_bench(bench *b) {
  sn_step_engine_destroy(b->engine);
  sn_model_destroy(b->model);
  sn_comm_destroy(b->comm);
  sn_device_destroy(b->device);
  for (int i = 0; i < b->n_packs; i++) sn_token_batch_destroy(b->batches[i]);
  sn_config_destroy(b->config);
}

static sn_step_sums run(bench *b, int term) {
  const uint64_t epochs[S] = {0};
  const sn_objective_vtable *v = b->model->objective->vtable;
  sn_step_sums sums;
  sn_error err;
  void *works[PACKS];
  for (int i = 0; i < b->n_packs; i++)
    if (v->collate(b->model->objective, b->batches[i], epochs, &works[i], &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_step_gradients(b->engine, b->n_packs, works, 7, term, &sums, &err) != SN_OK) fail_msg("%s", err.message);
  for (int i = 0; i < b->n_packs; i++) v->free_work(works[i]);
  return sums;
}

static double along(int64_t i, int64_t k) {
  const double size = 0.5 + fabs(cos(1.3 * (double)i + 0.9 * (double)k));
  return (i + k) % 2 ? size : -size;
}

static void shift(sn_param *p, int64_t i, double h) {
  for (int64_t k = 0; k < sn_tensor_count(&p->value); k++)
    sn_tensor_set(&p->value, k, sn_tensor_get(&p->value, k) + h * along(i, k));
  p->version++;
}

/* |difference quotient - derivative| over the larger, for parameter i (its derivative scaled by `scale`). */
static double gradient_error(bench *b, int64_t i, double scale, double *size) {
  sn_param *p = sn_params_at(b->model->params, i);
  const double h = 1e-5;
  double derivative = 0, squares = 0, loss[2];
  run(b, -1);
  for (int64_t k = 0; k < sn_tensor_count(&p->value); k++) {
    const double g = sn_tensor_get(&p->grad, k);
    derivative += g * along(i, k);
    squares += g * g;
  }
  derivative *= scale;
  shift(p, i, h);
  loss[0] = run(b, -1).loss;
  shift(p, i, -2 * h);
  loss[1] = run(b, -1).loss;
  shift(p, i, h);
  const double quotient = (loss[0] - loss[1]) / (2 * h);
  *size = sqrt(squares);
  const double error = fabs(quotient - derivative) / fmax(fmax(fabs(quotient), fabs(derivative)), *size);
  return isfinite(error) ? error : INFINITY;
}

/* Objectives: settings, and whether the loss is a sum over samples. */
static const struct { const char *name, *settings; bool coupled; } OBJECTIVES[] = {
    {"jepa", "objective.name=jepa\n", false},
    {"jepa joint", "objective.name=jepa\njepa.predict=joint\njepa.loss=l2\njepa.target_norm=none\nmodel.class_token=true\n", false},
    {"jepa multiblock", "objective.name=jepa\njepa.mask=multiblock\njepa.least_shown=1\n", false},
    {"jepa timeblocks", "objective.name=jepa\njepa.mask=timeblocks\njepa.stretch=1\n", false},
    {"ntxent", "objective.name=contrast\ncontrast.positives=view\n", true},
    {"simclr_tf", "objective.name=contrast\ncontrast.positives=view\ncontrast.loss=simclr_tf\nview.whole=true\n", true},
    {"subject", "objective.name=contrast\ncontrast.positives=subject\ncontrast.learn_temperature=true\n"
                "contrast.projector_norm=batch\n", true},
    {"cmsc", "objective.name=contrast\ncontrast.loss=cmsc\ncontrast.projector_layers=1\n", true},
    {"clocs", "objective.name=contrast\ncontrast.loss=clocs\ncontrast.projector_layers=0\n", true},
    {"kernel", "objective.name=contrast\ncontrast.loss=kernel\n", true},
    {"sigreg", "objective.name=sigreg\nsigreg.projector_hidden=10\nsigreg.projector_width=6\nsigreg.slices=20\n", true},
    {"vicreg", "objective.name=vicreg\nvicreg.projector_hidden=10\nvicreg.projector_width=6\n", true},
    {"clip", "objective.name=contrast\ncontrast.loss=clip\ncontrast.positives=subject\n", true},
    {"siglip", "objective.name=contrast\ncontrast.loss=siglip\ncontrast.positives=subject\n", true},
    {"mae+contrast", "objective.name=mae+contrast\nobjective.weights=1,0.3\ncontrast.positives=view\n", true},
    {"jepa+mae+contrast", "objective.name=jepa+mae+contrast\nobjective.weights=1,0.5,0:0 10:1\n", true}};
enum { N_OBJECTIVES = sizeof OBJECTIVES / sizeof OBJECTIVES[0] };

static void check_gradients(const char *name, const char *settings, int n_packs) {
  bench b;
  open_bench(&b, settings, n_packs);
  double size;
  int checked = 0;
  for (int64_t i = 0; i < sn_params_count(b.model->params); i++) {
    const sn_param *p = sn_params_at(b.model->params, i);
    if (p->fixed) continue;
    const double error = gradient_error(&b, i, 1, &size);
    if (size < 1e-10) continue; /* a bias in front of a norm or a softmax over keys */
    if (!(error <= 2e-6)) fail_msg("%s: gradient of %s is off by %g", name, p->name, error);
    if (!(gradient_error(&b, i, 1.01, &size) > 2e-6)) fail_msg("%s: a gradient of %s off by 1 %% goes unseen", name, p->name);
    checked++;
  }
  assert_true(checked > 12);
  close_bench(&b);
}

static void test_gradients(void **state) {
  for (int i = 0; i < N_OBJECTIVES; i++)
    for (int packs = 1; packs <= PACKS; packs++) check_gradients(OBJECTIVES[i].name, OBJECTIVES[i].settings, packs);
}

/* A term of weight 0 leaves no trace: the same bits as without it. */
static void test_weights_of_terms(void **state) {
  bench alone, mixed;
  sn_step_sums a, b;
  open_bench(&alone, "objective.name=mae\n", 2);
  open_bench(&mixed, "objective.name=mae+contrast\nobjective.weights=1,0\ncontrast.positives=view\n", 2);
  a = run(&alone, -1);
  b = run(&mixed, -1);
  assert_int_equal(sn_params_count(alone.model->params), sn_params_count(mixed.model->params));
  assert_true(a.loss == b.loss && isfinite(a.loss));
  for (int64_t i = 0; i < sn_params_count(alone.model->params); i++) {
    const sn_param *p = sn_params_at(alone.model->params, i), *q = sn_params_at(mixed.model->params, i);
    assert_string_equal(p->name, q->name);
    assert_memory_equal(p->grad.data, q->grad.data, (size_t)sn_tensor_bytes(&p->grad));
  }
  close_bench(&alone);
  close_bench(&mixed);
}

/* A term's own gradient: those of all terms add up to the whole; norm and cosine are of the encoder's part. */
static void test_terms_are_compared(void **state) {
  bench b;
  sn_error err;
  const uint64_t epochs[S] = {0};
  open_bench(&b, "objective.name=jepa+mae\nobjective.weights=1,0.5\n", 1);
  const sn_objective_vtable *v = b.model->objective->vtable;
  sn_term_gradients g;
  void *work;
  assert_int_equal(v->collate(b.model->objective, b.batches[0], epochs, &work, &err), SN_OK);
  assert_int_equal(sn_step_compare_terms(b.engine, 1, &work, 7, b.model->n_encoder, &g, &err), SN_OK);
  v->free_work(work);
  assert_int_equal(g.n_terms, 2);
  double whole = 0, parts = g.norms[0] * g.norms[0] + g.norms[1] * g.norms[1];
  run(&b, -1);
  for (int64_t i = 0; i < b.model->n_encoder; i++) {
    const sn_param *p = sn_params_at(b.model->params, i);
    for (int64_t k = 0; k < sn_tensor_count(&p->grad); k++) whole += pow(sn_tensor_get(&p->grad, k), 2);
  }
  parts += 2 * g.cosines[0][1] * g.norms[0] * g.norms[1];
  assert_true(g.norms[0] > 0 && g.norms[1] > 0 && fabs(g.cosines[0][1]) < 1);
  assert_true(fabs(whole - parts) <= 1e-10 * whole);
  assert_true(fabs(g.cosines[1][1] - 1) < 1e-12);
  close_bench(&b);
}

static void test_weight_schedules(void **state) {
  sn_weight_schedule s;
  sn_error err;
  assert_int_equal(sn_weight_parse("0.25", &s, &err), SN_OK);
  assert_true(sn_weight_at(&s, 0) == 0.25 && sn_weight_at(&s, 1e9) == 0.25);
  assert_int_equal(sn_weight_parse("10:0 20:1 40:0.5", &s, &err), SN_OK);
  assert_true(sn_weight_at(&s, 0) == 0 && sn_weight_at(&s, 15) == 0.5 && sn_weight_at(&s, 20) == 1);
  assert_true(sn_weight_at(&s, 30) == 0.75 && sn_weight_at(&s, 100) == 0.5);
  static const char *const BAD[] = {"", "x", "-1", "5:1 5:2", "9:1 3:2", "1:2:3", "nan", "3:-1", "1 2"};
  for (size_t i = 0; i < sizeof BAD / sizeof BAD[0]; i++)
    if (sn_weight_parse(BAD[i], &s, &err) != SN_E_ARGUMENT) fail_msg("'%s' was taken as a weight", BAD[i]);
}

static void refuse(const char *settings, const char *word) {
  sn_config *config;
  sn_model *model = NULL;
  sn_error err;
  sn_model_shape shape = {.patch_size = P, .n_channel_ids = 2, .pack_slots = 64, .pack_samples = S + 1, .max_tokens = T};
  assert_int_equal(sn_engine_config_create(NULL, 0, &config, &err), SN_OK);
  assert_int_equal(sn_config_load_pairs(config, settings, "test", &err), SN_OK);
  if (sn_model_create(config, &shape, SN_F32, 0, true, &model, &err) == SN_OK) fail_msg("%s was taken", settings);
  if (strstr(err.message, word) == NULL) fail_msg("%s: '%s' does not name %s", settings, err.message, word);
  sn_config_destroy(config);
}

static void test_wrong_settings(void **state) {
  refuse("objective.name=mea\n", "mae");
  refuse("objective.name=mae+mae\n", "twice");
  refuse("objective.name=mae+mae2022\n", "twice");
  refuse("objective.name=mae+\n", "a name is missing");
  refuse("objective.name=mae\nobjective.weights=0\n", "nothing would be learned");
  refuse("objective.name=mae+jepa\nobjective.weights=1\n", "1 weights for the 2 terms");
  refuse("objective.name=jepa\ntrain.ema=0.9\n", "train.ema");
  refuse("objective.name=jepa\nmodel.latent_sources=2\n", "latent_sources");
  refuse("objective.name=contrast+mae\nview.whole=true\n", "hides no token");
  refuse("objective.name=contrast\ncontrast.loss=cmsc\ncontrast.group=3\n", "contrast.group");
  refuse("objective.name=contrast\ncontrast.loss=clip\n", "subject or time");
}

/* Rows without a partner change nothing: the weights among the others are those without them.  Each source's rows weigh one
 * half together, also where one has more of them. */
static void test_missing_partners(void **state) {
  enum { N = 7, M = 5 };
  static const struct { uint64_t subject; int32_t source; } ROWS[N] = {{1, 0}, {9, 0}, {1, 1}, {2, 0}, {2, 1}, {2, 1}, {7, 1}};
  sn_row_info all[N], some[M];
  float forward[2][N * N], backward[2][N * N];
  sn_pair_counts counts[2];
  int64_t place[M], m = 0;
  memset(all, 0, sizeof all);
  for (int i = 0; i < N; i++) {
    all[i] = (sn_row_info){.subject_id = ROWS[i].subject, .source = ROWS[i].source, .used = 1, .sample_id = (uint64_t)i};
    if (ROWS[i].subject > 2) continue;
    place[m] = i;
    some[m++] = all[i];
  }
  assert_int_equal(sn_weights_partners(all, N, SN_POSITIVES_SUBJECT, forward[0], backward[0], &counts[0], NULL), SN_OK);
  assert_int_equal(sn_weights_partners(some, M, SN_POSITIVES_SUBJECT, forward[1], backward[1], &counts[1], NULL), SN_OK);
  assert_int_equal(counts[0].alone, 2);
  assert_int_equal(counts[0].anchors, counts[1].anchors);
  double sums[2] = {0, 0};
  for (int i = 0; i < M; i++)
    for (int j = 0; j < M; j++) {
      assert_true(forward[0][place[i] * N + place[j]] == forward[1][i * M + j]);
      assert_true(backward[0][place[i] * N + place[j]] == backward[1][i * M + j]);
      sums[0] += fmax(forward[1][i * M + j], 0);
      sums[1] += fmax(backward[1][i * M + j], 0);
    }
  assert_true(fabs(sums[0] - 0.5) < 1e-6 && fabs(sums[1] - 0.5) < 1e-6);
  for (int i = 0; i < N; i++)
    for (int k = 1; k < N; k += 5) /* rows 1 and 6, as rows and as columns */
      assert_true(forward[0][k * N + i] < 0 && forward[0][i * N + k] < 0 && backward[0][k * N + i] < 0 && backward[0][i * N + k] < 0);
}

/* m_i as written, from the first update on. */
static void test_momentum(void **state) {
  assert_true(sn_jepa_momentum(0.996, 1, 1, 0, 100) == 0.996);
  assert_true(fabs(sn_jepa_momentum(0.996, 1, 1, 50, 100) - 0.998) < 1e-15);
  assert_true(fabs(sn_jepa_momentum(0.996, 1, 1.25, 100, 100) - (0.996 + 0.004 / 1.25)) < 1e-15);
  assert_true(sn_jepa_momentum(0.996, 1, 1, 100, 100) == 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_gradients),       cmocka_unit_test(test_weights_of_terms),
      cmocka_unit_test(test_terms_are_compared), cmocka_unit_test(test_weight_schedules),
      cmocka_unit_test(test_wrong_settings),  cmocka_unit_test(test_missing_partners),
      cmocka_unit_test(test_momentum)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
