/* needs: full */
/* sonde finetune from end to end on a synthetic ECG cohort: joined folds, recordings and beats, classes, several labels
 * and values; beats the majority; stops and goes on to the same table; refuses what cannot be done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/finetune_task.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "engine/run.h"
#include "modalities/ecg/synth_ecg.h"

enum { N_SUBJECTS = 48 };

static char root[256], cohort[300], labels[400], several[400], runs[3][300];

static void write_several(void) {
  /* Two codes per recording, from number and parity: a table of several labels at once. */
  char text[N_SUBJECTS * 2 * 48 + 64];
  int n = snprintf(text, sizeof text, "record,subject,codes\n");
  for (int s = 0; s < N_SUBJECTS; s++)
    for (int r = 0; r < 2; r++)
      n += snprintf(text + n, sizeof text - (size_t)n, "s%05d_%d,s%05d,%s\n", s, r, s,
                    r == 0  ? "first"
                    : s % 2 ? "odd"
                            : "first;odd");
  assert_int_equal(sn_write_file(several, text, n, NULL), SN_OK);
}

static void pretrain(const char *run, const char *fold) {
  sn_config *config;
  sn_run_data *data;
  sn_train_result result;
  sn_error err;
  char pairs[2048];
  snprintf(pairs, sizeof pairs,
           "data.dir=%s\ndata.labels=%s\ndata.key=record\ndata.subject=subject\ndata.fold=%s\ndata.window=4 s\n"
           "model.width=32\nmodel.heads=2\nmodel.depth=2\nmae.decoder_width=16\nmae.decoder_heads=1\n"
           "train.pack_tokens=640\ntrain.steps=5\ntrain.threads=2\n", cohort, labels, fold);
  assert_int_equal(sn_run_config_create(&config, &err), SN_OK);
  if (sn_config_load_pairs(config, pairs, "test", &err) != SN_OK) fail_msg("%s", err.message);
  assert_int_equal(sn_make_directories(run, NULL), SN_OK);
  if (sn_run_data_open(config, run, false, NULL, &data, &err) != SN_OK) fail_msg("%s", err.message);
  if (sn_run_save_config(run, config, &err) != SN_OK) fail_msg("%s", err.message);
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run};
  if (sn_train(&options, &result, &err) != SN_OK) fail_msg("%s", err.message);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

static int set_up(void **state) {
  sn_synth_ecg_options o = sn_synth_ecg_defaults();
  int64_t n;
  snprintf(root, sizeof root, "/tmp/sonde_finetune_task_XXXXXX");
  if (mkdtemp(root) == NULL) return 1;
  snprintf(cohort, sizeof cohort, "%s/cohort", root);
  snprintf(labels, sizeof labels, "%s/labels.csv", cohort);
  snprintf(several, sizeof several, "%s/several.csv", root);
  o.n_subjects = N_SUBJECTS;
  o.seconds = 12;
  o.n_leads = 1;
  o.seed = 3;
  if (sn_synth_ecg_write(&o, cohort, &n, NULL) != SN_OK) return 1;
  write_several();
  for (int i = 0; i < 2; i++) {
    char fold[32];
    snprintf(runs[i], sizeof runs[i], "%s/run%d", root, i);
    snprintf(fold, sizeof fold, "%d/2", i);
    pretrain(runs[i], fold);
  }
  snprintf(runs[2], sizeof runs[2], "%s/whole", root);
  pretrain(runs[2], "");
  return 0;
}

static int tear_down(void **state) { return sn_remove_tree(root, NULL) != SN_OK; }

static const char *const RUNS[] = {runs[0], runs[1]};
static const char *const WHOLE[] = {runs[2]};

/* Small and quick: what a setting is worth is no matter of this test. */
static const char *const BASE[] = {"train.threads=2", "finetune.lr=3e-3", "finetune.batch_tokens=640",
                                   "finetune.eval_every=10"};
enum { N_BASE = 4, MOST_SET = 12 };

typedef struct request {
  sn_finetune_task_options o;
  const char *set[MOST_SET];
  char out[400];
} request;

static request *make(const char *out, const char *target, const char *classes) {
  request *r = calloc(1, sizeof *r);
  assert_non_null(r);
  snprintf(r->out, sizeof r->out, "%s/%s", root, out);
  r->o.probe = sn_probe_defaults();
  r->o.probe.runs = RUNS;
  r->o.probe.n_runs = 2;
  r->o.probe.target = target;
  r->o.probe.classes = classes;
  r->o.probe.n_seeds = 1;
  r->o.probe.n_draws = 200;
  r->o.out = r->out;
  r->o.set = r->set;
  for (int i = 0; i < N_BASE; i++) r->set[r->o.n_set++] = BASE[i];
  return r;
}

static void set(request *r, const char *pair) {
  assert_true(r->o.n_set < MOST_SET);
  r->set[r->o.n_set++] = pair;
}

static sn_probe_result *run(request *r) {
  sn_probe_result *result = NULL;
  sn_error err;
  if (sn_finetune_task_run(&r->o, &result, &err) != SN_OK) fail_msg("%s", err.message);
  return result;
}

static void refuse(request *r, sn_status status, const char *word) {
  sn_probe_result *result = NULL;
  sn_error err;
  assert_int_equal(sn_finetune_task_run(&r->o, &result, &err), status);
  if (strstr(err.message, word) == NULL) fail_msg("'%s' does not say '%s'", err.message, word);
  free(r);
}

static const sn_probe_row *row(const sn_probe_result *result, const char *encoder) {
  for (int64_t i = 0; i < result->n_rows; i++)
    if (strcmp(result->rows[i].encoder, encoder) == 0) return &result->rows[i];
  fail_msg("no row %s", encoder);
  return NULL;
}

static void test_rhythm_beats_majority(void **state) {
  request *r = make("rhythm", "rhythm", "sinus,af");
  r->o.scratch = true;
  set(r, "finetune.steps=100");
  set(r, "finetune.pool=mean_max_std");
  sn_probe_result *result = run(r);
  assert_int_equal(result->task, SN_TASK_BINARY);
  assert_int_equal(result->n_rows, 3);
  assert_int_equal(result->n_items, 60); /* 48 sinus, 12 af */
  assert_int_equal(result->per_class[0], 48);
  assert_string_equal(result->classes[1], "af");
  const sn_interval *auc = &row(result, "finetuned")->metrics[SN_METRIC_AUROC];
  if (!(auc->value >= 0.8)) fail_msg("finetuned AUROC %g", auc->value);
  assert_true(row(result, "majority")->metrics[SN_METRIC_AUROC].value == 0.5);
  assert_true(row(result, "scratch")->metrics[SN_METRIC_AUROC].value > 0.5);
  assert_int_equal(result->n_pairs, 2); /* minus scratch, minus majority */
  assert_string_equal(result->pairs[1].b, "majority");
  if (!(result->pairs[1].metrics[SN_METRIC_AUROC].low > 0)) fail_msg("not above the majority");
  for (int f = 0; f < 2; f++)
    assert_true(row(result, "finetuned")->steps[f] % 10 == 0 && row(result, "finetuned")->steps[f] > 0);
  assert_null(row(result, "majority")->steps);
  for (int f = 0; f < 2; f++) {
    const double inner = row(result, "finetuned")->folds[f].inner_score;
    assert_true(inner > 0.5 && inner <= 1);
  }
  assert_int_equal(result->leaked_subjects, 0);
  sn_string text = {0};
  sn_json_writer writer;
  sn_json *json;
  sn_json_writer_init(&writer, &text, 0);
  sn_probe_write_json(result, &writer);
  assert_int_equal(sn_json_writer_finish(&writer, NULL), SN_OK);
  assert_int_equal(sn_json_parse(text.data, text.length, "table", &json, NULL), SN_OK);
  const sn_json *first = sn_json_at(sn_json_get(json, "rows"), 0);
  assert_string_equal(sn_json_as_string(sn_json_get(first, "probe")), "finetune");
  assert_int_equal(sn_json_length(sn_json_get(sn_json_get(first, "selected"), "step")), 2);
  sn_json_destroy(json);
  sn_string_free(&text);
  sn_probe_result_destroy(result);
  free(r);
}

static void test_beats(void **state) {
  request *r = make("beats", "annotation:aami", "N,V");
  r->o.probe.window_s = 0.8;
  set(r, "finetune.steps=60");
  sn_probe_result *result = run(r);
  assert_true(result->per_beat && result->n_items > 1000 && result->n_items == result->n_windows);
  const double auc = row(result, "finetuned")->metrics[SN_METRIC_AUROC].value;
  if (!(auc >= 0.95)) fail_msg("N against V: AUROC %g", auc);
  sn_probe_result_destroy(result);
  free(r);
}

static void test_other_kinds_of_target(void **state) {
  request *r = make("age", "age", NULL);
  r->o.probe.task = SN_LABEL_VALUE;
  r->o.probe.n_seeds = 2;
  set(r, "finetune.steps=20");
  sn_probe_result *result = run(r);
  assert_int_equal(result->task, SN_TASK_REGRESSION);
  assert_int_equal(result->n_rows, 3); /* two seeds and majority */
  const double mae = row(result, "finetuned")->metrics[SN_METRIC_MAE].value;
  if (!(mae > 1 && mae < 40)) fail_msg("age: mean absolute error %g years", mae);
  assert_true(result->rows[0].scores[0] != result->rows[1].scores[0]);
  sn_probe_result_destroy(result);
  free(r);

  r = make("several", "codes", NULL);
  r->o.probe.labels = several;
  r->o.probe.key = "record";
  r->o.probe.task = SN_LABEL_MULTI;
  set(r, "finetune.steps=20");
  result = run(r);
  assert_int_equal(result->task, SN_TASK_MULTILABEL);
  assert_int_equal(result->n_classes, 2);
  for (int64_t i = 0; i < 2 * result->n_items; i++) {
    const double p = row(result, "finetuned")->scores[i];
    assert_true(p > 0 && p < 1);
  }
  sn_probe_result_destroy(result);
  free(r);
}

typedef struct stopper {
  volatile sig_atomic_t flag;
  int calls, at;
} stopper;

static void count_steps(void *user, const char *label, const sn_progress *progress) {
  stopper *s = user;
  if (++s->calls == s->at) s->flag = 15;
}

/* Stopped in the second fold, and gone on with: the same table, to the last bit. */
static void test_stops_and_goes_on(void **state) {
  request *r = make("whole_course", "rhythm", "sinus,af");
  set(r, "finetune.steps=20");
  sn_probe_result *whole = run(r), *result = NULL;
  free(r);
  stopper s = {.at = 33};
  r = make("stopped", "rhythm", "sinus,af");
  set(r, "finetune.steps=20");
  r->o.stop = &s.flag;
  r->o.progress = count_steps;
  r->o.progress_user = &s;
  sn_error err;
  assert_int_equal(sn_finetune_task_run(&r->o, &result, &err), SN_END);
  assert_non_null(strstr(err.message, "fold-1/finetuned-seed-0"));
  s = (stopper){.at = -1};
  assert_int_equal(sn_finetune_task_run(&r->o, &result, &err), SN_E_ARGUMENT); /* never overwritten */
  r->o.resume = true;
  result = run(r);
  assert_int_equal(s.calls, 7); /* steps 14 to 20 of the second fold, nothing else */
  assert_int_equal(result->n_items, whole->n_items);
  const size_t bytes = (size_t)(2 * whole->n_items) * sizeof(double);
  assert_memory_equal(row(result, "finetuned")->scores, row(whole, "finetuned")->scores, bytes);
  sn_probe_result_destroy(result);
  /* With other settings it is another run. */
  set(r, "finetune.label_smoothing=0");
  assert_int_equal(sn_finetune_task_run(&r->o, &result, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "other settings"));
  sn_probe_result_destroy(whole);
  free(r);
}

static void test_refusals(void **state) {
  request *r = make("x1", "rhythm", "sinus");
  refuse(r, SN_E_ARGUMENT, "one class");
  r = make("x2", "rythm", NULL);
  refuse(r, SN_E_ARGUMENT, "rhythm");
  /* Pretrained on everybody: folds are made here, and every one of them would leak. */
  r = make("x3", "rhythm", "sinus,af");
  r->o.probe.runs = WHOLE;
  r->o.probe.n_runs = 1;
  refuse(r, SN_E_STATE, "transductive");
  r = make("x7", "rhythm", "sinus,af");
  set(r, "data.rate=50 Hz");
  set(r, "data.filter_high=20 Hz");
  set(r, "data.patch=0.4 s");
  refuse(r, SN_E_STATE, "patches of 0.2 s");
  r = make("x4", "rhythm", "sinus,af");
  set(r, "finetune.pool=cls");
  refuse(r, SN_E_ARGUMENT, "class token");
  r = make("x5", "rhythm", "sinus,af");
  set(r, "finetune.metric=r2");
  refuse(r, SN_E_ARGUMENT, "r2");
  r = make("x6", "rhythm", "sinus,af");
  set(r, "finetune.lerning_rate=1");
  refuse(r, SN_E_ARGUMENT, "lerning_rate");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_rhythm_beats_majority), cmocka_unit_test(test_beats),
                                     cmocka_unit_test(test_other_kinds_of_target),
                                     cmocka_unit_test(test_stops_and_goes_on), cmocka_unit_test(test_refusals)};
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
