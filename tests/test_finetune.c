/* Fine-tuning on synthetic tokens: loss against its formula, weights by name, frozen encoders (fault 38), phases, the
 * choice of the best step, bit-exact resume. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/finetune.h"
#include "engine/run.h"
#include "engine/step.h"
#include "tests/run_files.h"
#include "tests/worst.h"

enum { N_WINDOWS = 120, N_VALIDATION = 30 };

static char root[256];
static char pretrained[320];

static const char *const DATA =
    "data.dir=synthetic\nsynthetic.windows=120\nsynthetic.patch=10\nsynthetic.tokens_least=12\n"
    "synthetic.tokens_most=24\nsynthetic.channels=2\ntrain.threads=2\n";
static const char *const MODEL =
    "model.width=32\nmodel.heads=2\nmodel.depth=2\nmae.decoder_width=16\nmae.decoder_heads=1\n";

static void load(sn_config *config, const char *pairs) {
  sn_error err;
  if (sn_config_load_pairs(config, pairs, "test", &err) != SN_OK) fail_msg("%s", err.message);
}

static void pretrain(const char *run, const char *extra) {
  sn_config *config;
  sn_run_data *data;
  sn_train_result result;
  sn_error err;
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  load(config, DATA);
  load(config, MODEL);
  load(config, "train.pack_tokens=256\ntrain.steps=4\ntrain.ema=0.5\n");
  load(config, extra);
  assert_int_equal(sn_run_data_open(config, run, false, NULL, &data, &err), SN_OK);
  if (sn_run_save_config(run, config, &err) != SN_OK) fail_msg("%s", err.message);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run};
  if (sn_train(&options, &result, &err) != SN_OK) fail_msg("%s", err.message);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

static int make_root(void **state) {
  snprintf(root, sizeof root, "/tmp/sonde_finetune_XXXXXX");
  if (mkdtemp(root) == NULL) return 1;
  snprintf(pretrained, sizeof pretrained, "%s/pretrained", root);
  pretrain(pretrained, "");
  return 0;
}

static int remove_root(void **state) { return sn_remove_tree(root, NULL) != SN_OK; }

/* --- a task: is the window's energy above the median? ----------------------------------------------------------------
 */

typedef struct task {
  sn_config *config;
  sn_run_data *data;
  sn_supervised_label rows[N_WINDOWS];
  uint8_t hot[N_WINDOWS * 2];
  int32_t truth[N_WINDOWS];
  double values[N_WINDOWS];
  int64_t validation[N_VALIDATION];
  sn_supervised_labels labels;
  sn_finetune_options options;
  double accuracy;
  bool falling; /* score: the first evaluation is the best */
  bool tied;    /* all score the same, and the third wins by the tie */
  int n_scored;
} task;

static sn_status score(void *user, const double *outputs, const uint8_t *present, sn_train_scores *scores,
                       sn_error *err) {
  task *t = user;
  const int64_t k = t->options.head.n_outputs;
  int64_t right = 0;
  for (int64_t i = 0; i < N_VALIDATION; i++) {
    assert_true(present[i] == 1 && isfinite(outputs[i * k]));
    const int guess = k == 2 ? outputs[i * k + 1] > outputs[i * k] : outputs[i] > 0;
    right += guess == t->truth[t->validation[i]];
  }
  t->accuracy = (double)right / N_VALIDATION;
  t->n_scored++;
  scores->score = t->tied ? 1 : t->falling ? -t->n_scored : t->accuracy;
  scores->tie = t->tied && t->n_scored == 3 ? 1 : 0;
  scores->n = 1;
  scores->names[0] = "val_accuracy";
  scores->values[0] = t->accuracy;
  return SN_OK;
}

static int compare_doubles(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static void measure(task *t) {
  double sorted[N_WINDOWS];
  sn_source *s = sn_run_data_source(t->data);
  for (int64_t i = 0; i < N_WINDOWS; i++) {
    sn_sample *sample;
    double sum = 0;
    assert_int_equal(s->vtable->read(s, i, 0, 0, 0, &sample, NULL), SN_OK);
    for (int64_t j = 0; j < sample->n_tokens * 10; j++) sum += (double)sample->patches[j] * sample->patches[j];
    t->values[i] = sorted[i] = log(sum / (double)sample->n_tokens);
    sn_sample_destroy(sample);
  }
  qsort(sorted, N_WINDOWS, sizeof sorted[0], compare_doubles);
  const double median = sorted[N_WINDOWS / 2];
  for (int64_t i = 0; i < N_WINDOWS; i++) {
    t->values[i] -= median;
    t->truth[i] = t->values[i] > 0;
    t->rows[i] = (sn_supervised_label){.recording = -1, .window = i, .label = t->truth[i], .value = t->values[i]};
    t->hot[2 * i] = (uint8_t)(i % 3 == 0);
    t->hot[2 * i + 1] = (uint8_t)t->truth[i];
  }
}

/* Trains on all windows, the validating ones among them: what is tested here is the machinery. */
static task *make_task(const char *name, const char *extra, bool from_run) {
  task *t = calloc(1, sizeof *t);
  sn_error err;
  static char run[8][320];
  static int next;
  char *path = run[next++ % 8];
  assert_non_null(t);
  snprintf(path, 320, "%s/%s", root, name);
  if ((from_run ? sn_finetune_config_from_run(pretrained, &t->config, &err)
                : sn_finetune_config_create(&t->config, &err)) != SN_OK)
    fail_msg("%s", err.message);
  if (!from_run) {
    load(t->config, DATA);
    load(t->config, MODEL);
  }
  load(t->config, "finetune.steps=24\nfinetune.eval_every=6\nfinetune.batch_tokens=512\nfinetune.head_share=0.5\n"
                  "finetune.pool=mean\n");
  load(t->config, extra);
  if (sn_finetune_config_resolve(t->config, &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_run_data_open(t->config, NULL, false, NULL, &t->data, &err), SN_OK);
  measure(t);
  for (int64_t i = 0; i < N_VALIDATION; i++) t->validation[i] = 4 * i;
  t->labels = (sn_supervised_labels){.n = N_WINDOWS, .rows = t->rows, .hot = t->hot};
  t->options = (sn_finetune_options){.config = t->config, .pretrained = from_run ? pretrained : NULL,
                                     .pretrained_step = -1, .run = path, .train = sn_run_data_source(t->data),
                                     .fixed = sn_run_data_source(t->data), .validation = t->validation,
                                     .n_validation = N_VALIDATION, .score = score, .score_user = t,
                                     .head = {.kind = SN_SUPERVISED_CLASS, .n_outputs = 2, .labels = &t->labels}};
  return t;
}

static void free_task(task *t) {
  sn_run_data_destroy(t->data);
  sn_config_destroy(t->config);
  free(t);
}

static sn_finetune_result finetune(task *t) {
  sn_finetune_result result;
  sn_error err;
  if (sn_finetune(&t->options, &result, &err) != SN_OK) fail_msg("%s", err.message);
  return result;
}

static double *read_tensor(const char *run, int64_t step, const char *name, int64_t *n) {
  char path[512];
  sn_safetensors *file;
  double *out = NULL;
  snprintf(path, sizeof path, "%s/checkpoints/step-%09d/model.safetensors", run, (int)step);
  sn_error err;
  if (sn_safetensors_open(path, &file, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < sn_safetensors_count(file); i++) {
    sn_named_tensor entry = sn_safetensors_entry(file, i);
    if (strcmp(entry.name, name) != 0) continue;
    *n = sn_tensor_count(&entry.tensor);
    float *data = test_malloc((size_t)sn_tensor_bytes(&entry.tensor));
    out = test_malloc((size_t)*n * sizeof *out);
    assert_int_equal(sn_safetensors_read(file, i, data, NULL), SN_OK);
    for (int64_t j = 0; j < *n; j++) out[j] = data[j];
    test_free(data);
  }
  sn_safetensors_close(file);
  if (out == NULL) fail_msg("%s has no %s", path, name);
  return out;
}

/* Largest change of a tensor between the pretrained run and a fine-tuned one. */
static double moved(const char *run, int64_t step, const char *name) {
  int64_t n, m;
  double *a = read_tensor(pretrained, 4, name, &n), *b = read_tensor(run, step, name, &m), worst = 0;
  assert_int_equal(n, m);
  for (int64_t i = 0; i < n; i++) worst = worse_of(worst, fabs(a[i] - b[i]));
  test_free(a);
  test_free(b);
  return worst;
}

static const char *const ENCODER[] = {"embed.patch.weight", "embed.patch.bias", "embed.channel.weight",
                                      "backbone.blocks.0.attn.qkv.weight", "backbone.blocks.0.norm1.weight",
                                      "backbone.blocks.1.mlp.fc2.weight", "backbone.blocks.1.mlp.fc2.bias",
                                      "backbone.norm.weight", "backbone.norm.bias"};
enum { N_ENCODER = sizeof ENCODER / sizeof ENCODER[0] };

/* Fault 38: decay in the optimiser and dropout present, and not one bit of the encoder moves; its features neither. */
static void test_head_leaves_the_encoder_alone(void **state) {
  task *t = make_task(
      "head", "finetune.mode=head\nfinetune.weight_decay=0.5\nmodel.dropout=0.3\nfinetune.drop_path=0.3\n", true);
  sn_finetune_result r = finetune(t);
  assert_true(r.weights.matched > 20 && r.weights.left_out > 5 && r.weights.fresh == 4);
  assert_int_equal(r.weights.step, 4);
  for (int i = 0; i < N_ENCODER; i++)
    if (moved(t->options.run, 24, ENCODER[i]) != 0) fail_msg("%s moved", ENCODER[i]);
  int64_t n;
  double *head = read_tensor(t->options.run, 24, "head.mean.weight", &n), most = 0;
  for (int64_t i = 0; i < n; i++) most = worse_of(most, fabs(head[i]));
  assert_true(most > 1e-3 && isfinite(most));
  test_free(head);
  /* The frozen encoder trains without dropout: with it, the course would be another. */
  task *u = make_task("head_plain", "finetune.mode=head\nfinetune.weight_decay=0.5\nfinetune.drop_path=0\n", true);
  finetune(u);
  assert_same_file(t->options.run, u->options.run, "metrics.jsonl");
  free_task(t);
  free_task(u);
}

static void test_full_moves_by_layer(void **state) {
  task *t = make_task(
      "full", "finetune.mode=full\nfinetune.layer_decay=0.1\nfinetune.lr=1e-3\nfinetune.weight_decay=0\n", true);
  finetune(t);
  const double embed = moved(t->options.run, 24, "embed.patch.weight");
  const double low = moved(t->options.run, 24, "backbone.blocks.0.attn.qkv.weight");
  const double high = moved(t->options.run, 24, "backbone.blocks.1.attn.qkv.weight");
  const double last = moved(t->options.run, 24, "backbone.norm.weight");
  if (!(embed > 0 && low > 3 * embed && high > 3 * low && last > 3 * high))
    fail_msg("moved: embedding %g, block 0 %g, block 1 %g, last %g", embed, low, high, last);
  free_task(t);
}

static void test_learns(void **state) {
  const char *settings = "finetune.steps=120\nfinetune.eval_every=20\nfinetune.lr=3e-3\nfinetune.pool=mean_max_std\n";
  task *t = make_task("learns", settings, true);
  sn_finetune_result r = finetune(t);
  if (!(r.train.state.best_score >= 0.8)) fail_msg("best accuracy %g", r.train.state.best_score);
  assert_true(r.train.state.best_step % 20 == 0 && r.train.state.best_step > 0);
  free_task(t);
  t = make_task("learns_scratch", settings, false);
  r = finetune(t);
  assert_int_equal(r.weights.matched, 0);
  if (!(r.train.state.best_score >= 0.7)) fail_msg("scratch: best accuracy %g", r.train.state.best_score);
  free_task(t);
}

/* Interrupted inside the first phase, at the boundary, and inside the second. */
static void test_resume_is_bit_exact(void **state) {
  const char *settings = "finetune.dropout=0.1\nfinetune.drop_path=0.2\nmodel.dropout=0.1\n";
  const int64_t cuts[] = {9, 12, 13, 20};
  task *whole = make_task("resume_whole", settings, true);
  sn_finetune_result r = finetune(whole);
  assert_int_equal(r.train.state.step, 24);
  for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
    char name[32], file[96];
    snprintf(name, sizeof name, "resume_%d", (int)cuts[i]);
    task *t = make_task(name, settings, true);
    t->options.stop_after = cuts[i];
    finetune(t);
    t->options.stop_after = 0;
    t->options.resume = true;
    sn_finetune_result again = finetune(t);
    assert_true(again.train.resumed);
    assert_int_equal(again.train.state.best_step, r.train.state.best_step);
    assert_same_file(whole->options.run, t->options.run, "metrics.jsonl");
    assert_same_file(whole->options.run, t->options.run, "checkpoints/step-000000024/model.safetensors");
    assert_same_file(whole->options.run, t->options.run, "checkpoints/step-000000024/optimizer.safetensors");
    snprintf(file, sizeof file, "checkpoints/step-%09d/model.safetensors", (int)r.train.state.best_step);
    assert_same_file(whole->options.run, t->options.run, file);
    free_task(t);
  }
  free_task(whole);
}

static void test_patience_and_best(void **state) {
  task *t = make_task("patience", "finetune.mode=full\nfinetune.patience=2\n", true);
  t->falling = true;
  sn_finetune_result r = finetune(t);
  assert_true(r.train.ended_early);
  assert_int_equal(r.train.state.step, 18);
  assert_int_equal(r.train.state.best_step, 6); /* kept, although train.keep_last is 1 */
  double outputs[2 * N_VALIDATION];
  uint8_t present[N_VALIDATION];
  sn_feature_report report;
  sn_error err;
  if (sn_finetune_predict(&t->options, 6, t->validation, N_VALIDATION, outputs, present, &report, &err) != SN_OK)
    fail_msg("%s", err.message);
  assert_true(isfinite(outputs[0]) && outputs[0] != outputs[1]);
  assert_int_equal(sn_finetune_predict(&t->options, 12, t->validation, N_VALIDATION, outputs, present, &report, &err),
                   SN_E_STATE);
  /* A run that has ended stays so. */
  t->options.resume = true;
  r = finetune(t);
  assert_true(r.train.ended_early);
  assert_int_equal(r.train.state.step, 18);
  free_task(t);
}

static void test_ties(void **state) {
  task *t = make_task("ties", "", true);
  t->tied = true;
  sn_finetune_result r = finetune(t);
  assert_int_equal(r.train.state.best_step, 18);
  t->options.resume = true; /* nothing is left to do, and the choice is remembered */
  r = finetune(t);
  assert_int_equal(r.train.state.best_step, 18);
  assert_true(r.train.state.best_tie == 1);
  free_task(t);
}

/* --- the loss against its formula, for every pool and kind
 * --------------------------------------------------------------------------------- */

static double expected_loss(const task *t, const double *y, const float *class_weight, double smoothing) {
  double sum = 0, weight = 0;
  for (int64_t i = 0; i < N_WINDOWS; i++) {
    if (t->options.head.kind == SN_SUPERVISED_CLASS) {
      const double top = fmax(y[2 * i], y[2 * i + 1]);
      const double lse = top + log(exp(y[2 * i] - top) + exp(y[2 * i + 1] - top));
      for (int c = 0; c < 2; c++) {
        const double target = (t->truth[i] == c ? 1 - smoothing : 0) + smoothing / 2;
        sum += class_weight[t->truth[i]] * target * (lse - y[2 * i + c]);
      }
      weight += class_weight[t->truth[i]];
    } else if (t->options.head.kind == SN_SUPERVISED_MULTI) {
      for (int64_t j = 2 * i; j < 2 * i + 2; j++) sum += fmax(y[j], 0) - y[j] * t->hot[j] + log1p(exp(-fabs(y[j])));
      weight += 2;
    } else {
      const double d = fabs(y[i] - t->values[i]);
      sum += d < 1 ? d * d / 2 : d - 0.5;
      weight += 1;
    }
  }
  return sum / weight;
}

/* One step on a single pack of everything with rate 0: its loss is that of the start, which prediction must reproduce.
 */
static void check_loss(const char *name, const char *settings, sn_supervised_kind kind) {
  static const float weights[2] = {0.5f, 1.5f};
  char all[512];
  snprintf(all, sizeof all,
           "%strain.dtype=f32\nfinetune.steps=1\nfinetune.eval_every=1\nfinetune.lr=1e-30\nfinetune.min_lr=0\nfinetune."
           "mode=full\n"
           "synthetic.tokens_least=16\nsynthetic.tokens_most=16\nfinetune.batch_tokens=1920\nfinetune.drop_path="
           "0\nfinetune.class_weight=none\n",
           settings);
  task *t = make_task(name, all, false);
  t->options.head.kind = kind;
  t->options.head.n_outputs = kind == SN_SUPERVISED_VALUE ? 1 : 2;
  if (kind == SN_SUPERVISED_CLASS) t->options.head.class_weight = weights;
  sn_finetune_result r = finetune(t);
  assert_int_equal(r.train.state.samples, N_WINDOWS);
  int64_t windows[N_WINDOWS];
  double outputs[2 * N_WINDOWS];
  uint8_t present[N_WINDOWS];
  sn_feature_report report;
  sn_error err;
  for (int64_t i = 0; i < N_WINDOWS; i++) windows[i] = i;
  if (sn_finetune_predict(&t->options, 1, windows, N_WINDOWS, outputs, present, &report, &err) != SN_OK)
    fail_msg("%s", err.message);
  const double expected = expected_loss(t, outputs, weights, 0.1);
  if (!(fabs(r.train.loss - expected) <= 1e-5 * fabs(expected)))
    fail_msg("%s: loss %.9g, formula %.9g", name, r.train.loss, expected);
  free_task(t);
}

static void test_loss_is_its_formula(void **state) {
  check_loss("loss_mean", "", SN_SUPERVISED_CLASS);
  check_loss("loss_mms", "finetune.pool=mean_max_std\n", SN_SUPERVISED_CLASS);
  check_loss("loss_mms_cls", "finetune.pool=mean_max_std\nmodel.class_token=true\n", SN_SUPERVISED_CLASS);
  check_loss("loss_registers", "finetune.pool=mean_max_std\nmodel.class_token=true\nmodel.registers=2\n", SN_SUPERVISED_CLASS);
  check_loss("loss_latents", "model.latent_sources=2\nmodel.registers=1\nmodel.position=fourier4d\n", SN_SUPERVISED_MULTI);
  check_loss("loss_crisscross", "model.attention=crisscross\nmodel.class_token=true\n", SN_SUPERVISED_CLASS);
  check_loss("loss_cls", "finetune.pool=cls\nmodel.class_token=true\n", SN_SUPERVISED_MULTI);
  check_loss("loss_multi", "model.position=rope\n", SN_SUPERVISED_MULTI);
  check_loss("loss_value", "model.class_token=true\n", SN_SUPERVISED_VALUE);
}

/* --- what is refused --------------------------------------------------------------------------------- */

static void expect_failure(task *t, sn_status status, const char *word) {
  sn_finetune_result result;
  sn_error err;
  assert_int_equal(sn_finetune(&t->options, &result, &err), status);
  if (strstr(err.message, word) == NULL) fail_msg("'%s' does not say '%s'", err.message, word);
  free_task(t);
}

static void test_weights_are_strict(void **state) {
  expect_failure(make_task("strict_1", "finetune.leave_out=predictor.\n", true), SN_E_STATE, "decoder.");
  expect_failure(make_task("strict_2", "model.depth=3\n", true), SN_E_STATE, "backbone.blocks.2");
  expect_failure(make_task("strict_3", "model.depth=1\n", true), SN_E_STATE, "backbone.blocks.1");
  expect_failure(make_task("strict_4", "model.mlp_ratio=2\n", true), SN_E_STATE, "another shape");
  task *t = make_task("strict_7", "", true);
  t->options.train->patch_step_s *= 2; /* as many values to a patch, and another time between them */
  expect_failure(t, SN_E_STATE, "patches");
  t = make_task("strict_5", "", true);
  t->options.pretrained_step = 3;
  expect_failure(t, SN_E_STATE, "no complete checkpoint");
  t = make_task("strict_6", "finetune.ema=true\nfinetune.steps=2\n", true);
  finetune(t);
  assert_true(moved(t->options.run, 2, "backbone.norm.weight") > 0);
  free_task(t);
}

static void test_errors(void **state) {
  expect_failure(make_task("errors_1", "finetune.pool=cls\n", true), SN_E_ARGUMENT, "class token");
  expect_failure(make_task("errors_3", "finetune.head_share=0.001\n", true), SN_E_ARGUMENT, "head_share");
  task *t = make_task("errors_4", "", true);
  t->options.n_validation = 0;
  expect_failure(t, SN_E_ARGUMENT, "validation");
  t = make_task("errors_5", "", true);
  t->labels.n = 0;
  expect_failure(t, SN_E_ARGUMENT, "no sample has a label");
  t = make_task("errors_6", "", true);
  t->rows[5].label = 2;
  expect_failure(t, SN_E_ARGUMENT, "label 5 is class 2");
  t = make_task("errors_7", "", true);
  t->rows[5].window = 3;
  expect_failure(t, SN_E_ARGUMENT, "label 5");
  t = make_task("errors_8", "", true);
  t->options.head.n_outputs = 1;
  expect_failure(t, SN_E_ARGUMENT, "at least two");
  t = make_task("errors_9", "", true);
  for (int64_t i = 0; i < N_WINDOWS; i++) t->rows[i].label = -1; /* steps without a target change nothing */
  expect_failure(t, SN_E_STATE, "no sample had a valid target");
  sn_config *config;
  sn_error err;
  assert_int_equal(sn_finetune_config_create(&config, &err), SN_OK);
  load(config, "train.dtype=f64\n");
  assert_int_equal(sn_finetune_config_resolve(config, &err), SN_E_UNSUPPORTED);
  sn_config_destroy(config);
  assert_string_equal(sn_finetune_decides("train.lr"), "finetune.lr");
  assert_null(sn_finetune_decides("train.threads"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_loss_is_its_formula), cmocka_unit_test(test_head_leaves_the_encoder_alone),
      cmocka_unit_test(test_full_moves_by_layer), cmocka_unit_test(test_learns),
      cmocka_unit_test(test_resume_is_bit_exact), cmocka_unit_test(test_patience_and_best),
      cmocka_unit_test(test_ties), cmocka_unit_test(test_weights_are_strict),  cmocka_unit_test(test_errors)};
  return cmocka_run_group_tests(tests, make_root, remove_root);
}
