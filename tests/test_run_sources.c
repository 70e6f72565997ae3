/* needs: full */
/* Runs over several data sets: settings, people, folds, leakage, shares in metrics and state, resume, EEG with MEG. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bids_cohort.h"
#include "core/stream.h"
#include "datasets/split.h"
#include "engine/pretrain.h"
#include "engine/presets.h"
#include "engine/run.h"
#include "modalities/eeg/synth_eeg.h"
#include "modalities/eeg/synth_meg.h"
#include "tests/run_files.h"

static char *root;

/* cap19 (6 people) and cap32 (4) as EEG, helmet (4) as MEG; ids sub-001, ... in each. */
static int make_cohorts(void **state) {
  char path[4096];
  int64_t n;
  root = cohort_directory();
  sn_synth_eeg_options eeg = {.n_subjects = 6, .recordings_per_subject = 2, .seconds = 24, .headset = 19, .seed = 1};
  cohort_path(root, "cap19", path, sizeof path);
  if (sn_synth_eeg_write(&eeg, path, &n, NULL) != SN_OK) return 1;
  eeg.n_subjects = 4, eeg.headset = 32, eeg.seed = 2;
  cohort_path(root, "cap32", path, sizeof path);
  if (sn_synth_eeg_write(&eeg, path, &n, NULL) != SN_OK) return 1;
  sn_synth_meg_options meg = {.n_subjects = 4, .recordings_per_subject = 1, .seconds = 12, .rate_hz = 125, .seed = 3};
  cohort_path(root, "helmet", path, sizeof path);
  return sn_synth_meg_write(&meg, path, &n, NULL) != SN_OK;
}

static int remove_cohorts(void **state) {
  cohort_remove(root);
  return 0;
}

/* ---- settings ----------------------------------------------------------------------------------------------------- */

static sn_config *configure(const char *sources, const char *extra) {
  sn_config *config = NULL;
  sn_json *json = NULL;
  char text[8192];
  int n = 0;
  CHECK(sn_run_config_create(&config, fault));
  CHECK(sn_preset_apply(config, "eeg-meg-tiny", NULL, fault));
  CHECK(sn_config_load_pairs(config,
                             "model.width=16\nmodel.heads=2\nmodel.depth=1\nmae.decoder_width=16\nmae.decoder_heads=1\n"
                             "train.steps=8\ntrain.checkpoint_every=4\ntrain.threads=1\ntrain.pack_tokens=1600\n"
                             "train.packs_per_step=2\ntrain.ema=0.9\n", "test", fault));
  CHECK(sn_config_load_pairs(config, extra, "test", fault));
  /* '@' stands for the folder of the cohorts. */
  for (const char *c = sources; *c != '\0'; c++) {
    if (*c == '@') n += snprintf(text + n, sizeof text - (size_t)n, "%s", root);
    else text[n++] = *c;
    assert_true(n < (int)sizeof text);
  }
  CHECK(sn_json_parse(text, n, "test", &json, fault));
  CHECK(sn_config_load_json(config, json, "test", fault));
  sn_json_destroy(json);
  return config;
}

static const char THREE[] =
    "{\"sources\": [{\"name\": \"small\", \"data\": {\"dir\": \"@/cap19\", \"share\": 0.2}},"
    "{\"data\": {\"dir\": \"@/cap32\", \"share\": 0.3}},"
    "{\"data\": {\"dir\": \"@/helmet\", \"share\": 0.5, \"normalize\": \"group\"}, \"eeg\": {\"kinds\": [\"mag\"]}}]}";

static void refused(const char *sources, const char *extra, const char *what) {
  sn_config *config = configure(sources, extra);
  sn_error err;
  sn_error_clear(&err);
  sn_status status = sn_pretrain_check(config, NULL, &err);
  sn_run_data *data = NULL;
  if (status == SN_OK) status = sn_run_data_open(config, NULL, false, NULL, &data, &err);
  if (status == SN_OK) fail_msg("not refused: '%s'", what);
  if (strstr(err.message, what) == NULL) fail_msg("'%s' does not say '%s'", err.message, what);
  sn_config_destroy(config);
}

static void test_refusals(void **state) {
#define TWO(a, b) "{\"sources\": [{" a "}, {" b "}]}"
#define DIR_19 "\"data\": {\"dir\": \"@/cap19\"}"
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap19/\"}"), "", "the same folder");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@\"}"), "", "lies inside");
  refused(TWO(DIR_19, "\"name\": \"cap19\", \"data\": {\"dir\": \"@/cap32\"}"), "", "both called cap19");
  refused(TWO(DIR_19, "\"name\": \"a/b\", \"data\": {\"dir\": \"@/cap32\"}"), "", "can be a folder's");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"share\": 0}"), "", "a share of 0");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"share\": 1}"), "", "leaves nothing to cap19");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"modality\": \"egg\"}"), "", "'egg' is not known");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\"}, \"train\": {\"lr\": 1}"), "", "same for all sources");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\"}, \"mae\": {\"mask_ratio\": 0.3}"), "", "same for all sources");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"split_seed\": 1}"), "", "same for all sources");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"synthetic\"}"), "", "is a directory of recordings");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"window\": \"60 s\"}"), "", "no window of 60 s");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"rate\": \"100 Hz\"}"), "data.tokens=waveform\n", "another data.rate");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"patch\": \"1 s\", \"patch_stride\": \"1 s\"}"), "", "another data.patch");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"spectrum_high\": \"40 Hz\"}"), "", "another data.spectrum_high");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/helmet\"}, \"eeg\": {\"kinds\": [\"eeg\"]}"), "", "helmet");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\"}"), "data.dir=somewhere\n", "beside a list of sources");
  refused(TWO(DIR_19, "\"data\": {\"dir\": \"@/cap32\", \"fold\": \"0/3\"}"), "data.fold=0/2\n", "one fold of all its people");
#undef TWO
  sn_config *config = configure(THREE, "");
  sn_error err;
  assert_int_equal(sn_config_set_pair(config, "sources.1.data.share=-1", "--set", &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "out of range"));
  assert_int_equal(sn_config_set_pair(config, "sources.3.data.share=1", "--set", &err), SN_E_ARGUMENT);
  assert_int_equal(sn_config_set_pair(config, "sources.1.data.shares=1", "--set", &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "data.share"));
  sn_config_destroy(config);
}

static void open_run(const char *sources, const char *extra, const char *name, char run[512]) {
  sn_config *config = configure(sources, extra);
  sn_run_data *data = NULL;
  snprintf(run, 512, "%s/%s", root, name);
  CHECK(sn_pretrain_check(config, NULL, fault));
  CHECK(sn_run_data_open(config, run, false, NULL, &data, fault));
  sn_run_data_destroy(data);
  sn_config_destroy(config);
}

/* ---- resume ------------------------------------------------------------------------------------------------------- */

static sn_status resume_run(const char *sources, const char *run, sn_error *err) {
  sn_config *config = configure(sources, "");
  sn_run_data *data = NULL;
  CHECK(sn_pretrain_check(config, NULL, fault));
  const sn_status status = sn_run_data_open(config, run, true, NULL, &data, err);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  return status;
}

/* A recording of the second source that changes: refused, but where the run has put it into quarantine already. */
static void test_a_changed_recording(void **state) {
  static const char TWO_SETS[] = "{\"sources\": [{\"data\": {\"dir\": \"@/cap19\"}}, {\"data\": {\"dir\": \"@/cap32\"}}]}";
  char run[512], path[1024], ledger[1024];
  int64_t n_before, bytes;
  sn_manifest *m = NULL;
  sn_error err;
  open_run(TWO_SETS, "", "changed", run);
  snprintf(path, sizeof path, "%s/sources/cap19/manifest.tsv", run);
  CHECK(sn_manifest_load(path, root, NULL, &m, fault));
  n_before = m->n;
  sn_manifest_destroy(m);
  snprintf(path, sizeof path, "%s/sources/cap32/manifest.tsv", run);
  CHECK(sn_manifest_load(path, root, NULL, &m, fault));
  snprintf(path, sizeof path, "%s/cap32/%s", root, m->rows[1].path);
  sn_manifest_destroy(m);
  assert_int_equal(resume_run(TWO_SETS, run, &err), SN_OK);
  FILE *file = fopen(path, "ab");
  assert_non_null(file);
  bytes = ftell(file);
  fputc(0, file);
  fclose(file);
  assert_int_equal(resume_run(TWO_SETS, run, &err), SN_E_STATE);
  assert_non_null(strstr(err.message, "have changed"));
  snprintf(ledger, sizeof ledger, "%s/quarantine.tsv", run);
  for (int64_t k = 0; k < 2; k++) { /* another one of that set, and this one */
    file = fopen(ledger, "w");
    fprintf(file, "recording\tpath\n%lld\tcap32: x\n", (long long)(n_before + k));
    fclose(file);
    assert_int_equal(resume_run(TWO_SETS, run, &err), k == 0 ? SN_E_STATE : SN_OK);
  }
  assert_int_equal(truncate(path, bytes), 0);
}

/* ---- people ------------------------------------------------------------------------------------------------------- */

static sn_split *load_split(const char *run, const char *source) {
  char path[1024];
  sn_split *split = NULL;
  snprintf(path, sizeof path, "%s/sources/%s/split.tsv", run, source);
  CHECK(sn_split_load(path, NULL, &split, fault));
  return split;
}

static int fold_of(const sn_split *split, const char *subject) {
  for (int64_t i = 0; i < split->n; i++)
    if (strcmp(split->subjects[i], subject) == 0) return split->folds[i];
  fail_msg("no %s", subject);
  return -1;
}

/* sub-001 of two data sets are two people, of two with data.people one. */
static void test_people(void **state) {
  static const char *const IDS[4] = {"001", "002", "003", "004"};
  char run[512];
  bool differ = false;
  open_run(THREE, "data.fold=0/2\n", "apart", run);
  sn_split *a = load_split(run, "small"), *b = load_split(run, "cap32"), *c = load_split(run, "helmet");
  for (int i = 0; i < 4; i++) {
    differ = differ || fold_of(a, IDS[i]) != fold_of(b, IDS[i]) || fold_of(a, IDS[i]) != fold_of(c, IDS[i]);
    assert_true(sn_subject_identity(sn_split_people(a), IDS[i]) != sn_subject_identity(sn_split_people(b), IDS[i]));
  }
  assert_true(differ);
  /* Each source leaves out half of its own. */
  assert_int_equal(sn_split_count_subjects(a, SN_ROLE_PROBE_TEST), 3);
  assert_int_equal(sn_split_count_subjects(b, SN_ROLE_PROBE_TEST), 2);
  assert_int_equal(sn_split_count_subjects(c, SN_ROLE_PROBE_TEST), 2);
  sn_leakage none;
  CHECK(sn_split_leakage(b, SN_ROLE_PRETRAIN, a, SN_ROLE_PROBE_TEST, &none, fault));
  assert_int_equal(none.n_subjects, 0);
  sn_split_destroy(a);
  sn_split_destroy(b);
  sn_split_destroy(c);
  open_run(THREE, "data.fold=0/2\ndata.people=everyone\n", "shared", run);
  a = load_split(run, "small"), b = load_split(run, "cap32"), c = load_split(run, "helmet");
  for (int i = 0; i < 4; i++) {
    assert_int_equal(fold_of(a, IDS[i]), fold_of(b, IDS[i]));
    assert_int_equal(fold_of(a, IDS[i]), fold_of(c, IDS[i]));
    assert_true(sn_subject_identity(sn_split_people(a), IDS[i]) == sn_subject_identity(sn_split_people(c), IDS[i]));
  }
  assert_string_equal(a->people, "everyone");
  /* The other fold of one would have leaked. */
  sn_split *other;
  open_run(THREE, "data.fold=1/2\ndata.people=everyone\n", "shared_1", run);
  other = load_split(run, "helmet");
  CHECK(sn_split_leakage(other, SN_ROLE_PRETRAIN, b, SN_ROLE_PROBE_TEST, &none, fault));
  assert_int_equal(none.n_subjects, 2);
  sn_split_destroy(a);
  sn_split_destroy(b);
  sn_split_destroy(c);
  sn_split_destroy(other);
}

/* A source without folds trains on all; shared people that another leaves out are then seen, which is refused. */
static void test_leak_across_sources(void **state) {
  refused("{\"sources\": [{\"data\": {\"dir\": \"@/cap19\"}}, {\"data\": {\"dir\": \"@/cap32\", \"fold\": \"\"}}]}",
          "data.fold=0/2\ndata.people=everyone\n", "are pretrained on from cap32");
  char from[4096], to[4096], text[9000];
  cohort_path(root, "cap19", from, sizeof from);
  cohort_path(root, "copy", to, sizeof to);
  snprintf(text, sizeof text, "cp -r '%s' '%s'", from, to);
  assert_int_equal(system(text), 0);
  refused("{\"sources\": [{\"data\": {\"dir\": \"@/cap19\"}}, {\"data\": {\"dir\": \"@/copy\", \"fold\": \"\"}}]}",
          "data.fold=0/2\n", "are pretrained on from copy"); /* by contents: the names of the sets differ */
}

/* ---- training ----------------------------------------------------------------------------------------------------- */

static sn_train_result train(const char *name, const char *extra, bool resume, int64_t stop_after, char run[512]) {
  sn_config *config = NULL;
  sn_run_data *data = NULL;
  sn_train_result result;
  sn_error err;
  snprintf(run, 512, "%s/%s", root, name);
  if (resume) CHECK(sn_run_load_config(run, &config, fault));
  else config = configure(THREE, extra);
  CHECK(sn_pretrain_check(config, NULL, fault));
  CHECK(sn_run_data_open(config, run, resume, NULL, &data, fault));
  if (!resume) CHECK(sn_run_save_config(run, config, fault));
  sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = run, .resume = resume,
                              .stop_after = stop_after};
  if (sn_train(&options, &result, &err) != SN_OK) fail_msg("%s", err.message);
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  return result;
}

static void test_training(void **state) {
  char whole[512], threads[512], parts[512], path[1024];
  const sn_train_result r = train("whole", "train.loader_threads=0\n", false, 0, whole);
  const double shares[3] = {0.2, 0.3, 0.5};
  int64_t sum = 0;
  assert_int_equal(r.state.n_parts, 3);
  assert_string_equal(r.state.parts[0].name, "small");
  assert_string_equal(r.state.parts[1].name, "cap32");
  for (int i = 0; i < 3; i++) {
    const sn_part_state *p = &r.state.parts[i];
    sum += p->tokens;
    assert_true(p->samples > 0);
    assert_true(fabs((double)p->tokens - shares[i] * (double)r.state.tokens) <= 2 * 510 + 0.05 * (double)r.state.tokens);
  }
  assert_int_equal(sum, r.state.tokens);
  train("threads", "train.loader_threads=3\n", false, 0, threads);
  assert_same_run(whole, threads, 8);
  train("parts", "train.loader_threads=0\n", false, 5, parts); /* a step past its checkpoint */
  const sn_train_result again = train("parts", "", true, 0, parts);
  assert_true(again.resumed && again.start_step == 4);
  assert_same_run(whole, parts, 8);
  for (int i = 0; i < 3; i++) assert_int_equal(again.state.parts[i].tokens, r.state.parts[i].tokens);
  sn_stream *stream = NULL;
  char *text = NULL;
  int64_t n;
  snprintf(path, sizeof path, "%s/metrics.jsonl", whole);
  CHECK(sn_stream_open(path, &stream, fault));
  CHECK(sn_stream_read_all(stream, 1 << 24, &text, &n, fault));
  assert_non_null(strstr(text, "\"tokens_cap32\": "));
  assert_non_null(strstr(text, "\"share_helmet\": "));
  sn_free(text);
  sn_stream_close(stream);
}

typedef struct rank_call {
  sn_comm *comm;
  char run[512];
  sn_status status;
  sn_error err;
  sn_train_result result;
} rank_call;

static void *run_rank(void *user) {
  rank_call *call = user;
  sn_config *config = configure(THREE, "train.loader_threads=1\ntrain.dtype=f32\n");
  sn_run_data *data = NULL;
  call->status = sn_pretrain_check(config, NULL, &call->err);
  if (call->status == SN_OK) call->status = sn_run_data_open(config, NULL, false, NULL, &data, &call->err);
  if (call->status == SN_OK) {
    const sn_train_options options = {.config = config, .source = sn_run_data_source(data), .run = call->run, .comm = call->comm};
    call->status = sn_train(&options, &call->result, &call->err);
  }
  sn_run_data_destroy(data);
  sn_config_destroy(config);
  sn_comm_destroy(call->comm);
  return NULL;
}

/* Two ranks take the packs of one in turn: the same tokens of each source, counted over both. */
static void test_ranks(void **state) {
  rank_call calls[3] = {{.status = SN_E_STATE}};
  sn_comm *two[2];
  pthread_t threads[2];
  snprintf(calls[0].run, sizeof calls[0].run, "%s/one_rank", root);
  CHECK(sn_comm_create_single(&calls[0].comm, fault));
  run_rank(&calls[0]);
  CHECK(sn_comm_create_fake(2, 60, two, fault));
  for (int r = 0; r < 2; r++) {
    calls[1 + r].comm = two[r];
    snprintf(calls[1 + r].run, sizeof calls[1 + r].run, "%s/two_ranks", root);
    assert_int_equal(pthread_create(&threads[r], NULL, run_rank, &calls[1 + r]), 0);
  }
  for (int r = 0; r < 2; r++) pthread_join(threads[r], NULL);
  for (int r = 0; r < 3; r++) {
    const sn_train_state *s = &calls[r].result.state;
    if (calls[r].status != SN_OK) fail_msg("%s", calls[r].err.message);
    assert_int_equal(s->n_parts, 3);
    assert_int_equal(s->position, calls[0].result.state.position);
    for (int i = 0; i < 3; i++) {
      assert_int_equal(s->parts[i].tokens, calls[0].result.state.parts[i].tokens);
      assert_int_equal(s->parts[i].samples, calls[0].result.state.parts[i].samples);
    }
  }
  const double one = calls[0].result.loss, both = calls[1].result.loss;
  assert_true(isfinite(one) && fabs(one - both) <= 1e-4 * fabs(one));
}

/* What a later user of the run gets: the settings of the source that lies there, else the top level's. */
static void test_choose_source(void **state) {
  char dir[4096];
  sn_config *config = configure(THREE, "");
  sn_error err;
  CHECK(sn_pretrain_check(config, NULL, fault));
  assert_int_equal(sn_run_choose_source(config, "RUN", NULL, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "--data DIR"));
  cohort_path(root, "helmet", dir, sizeof dir);
  CHECK(sn_run_choose_source(config, "RUN", dir, fault));
  assert_string_equal(sn_config_text(config, "data.normalize"), "group");
  assert_string_equal(sn_config_text(config, "data.name"), "helmet");
  assert_int_equal(sn_config_list_length(config, "eeg.kinds"), 1);
  assert_int_equal(sn_config_sources(config), 0);
  sn_config_destroy(config);
  config = configure(THREE, "");
  CHECK(sn_pretrain_check(config, NULL, fault));
  CHECK(sn_run_choose_source(config, "RUN", root, fault));
  assert_string_equal(sn_config_text(config, "data.normalize"), "zscore-window");
  assert_string_equal(sn_config_text(config, "data.name"), "");
  sn_config_destroy(config);
}

static void rename_description(const char *both, const char *set, bool back) {
  char there[4200], away[4200];
  snprintf(there, sizeof there, "%s/%s/dataset_description.json", both, set);
  snprintf(away, sizeof away, "%s/%s/not_yet.json", both, set);
  assert_int_equal(back ? rename(away, there) : rename(there, away), 0);
}

/* Two BIDS sets below one root, both with a sub-01. */
static void test_sets_below_one_root(void **state) {
  char *both = cohort_directory();
  bids_write_edf(both, "dsA/sub-01/eeg/sub-01_task-rest_eeg.edf", "", "uV");
  bids_write_edf(both, "dsB/sub-01/eeg/sub-01_task-rest_eeg.edf", "", "mV");
  bids_write_edf(both, "plain/sub-01/eeg/sub-01_task-rest_eeg.edf", "", "nV");
  cohort_write_text(both, "dsA/dataset_description.json", "{\"Name\":\"A\",\"BIDSVersion\":\"1.9.0\"}");
  cohort_write_text(both, "dsB/dataset_description.json", "{\"Name\":\"B\",\"BIDSVersion\":\"1.9.0\"}");
  /* The cache knows that a set's description has come. */
  char cache[4200];
  sn_manifest *m = NULL;
  sn_index_report report;
  const sn_index_options indexing = {.name = "cohort", .cache_path = cache};
  snprintf(cache, sizeof cache, "%s.cache", both);
  rename_description(both, "dsB", false);
  CHECK(sn_index_directory(both, &indexing, &m, &report, fault));
  assert_string_equal(m->rows[1].cells[SN_MANIFEST_SUBJECT], "01");
  sn_manifest_destroy(m);
  rename_description(both, "dsB", true);
  CHECK(sn_index_directory(both, &indexing, &m, &report, fault));
  remove(cache);
  sn_subjects *subjects = NULL;
  assert_int_equal(m->n_ok, 3);
  CHECK(sn_subjects_create(m, NULL, NULL, &subjects, fault));
  assert_string_equal(subjects->ids[0], "dsA/01");
  assert_string_equal(subjects->ids[1], "dsB/01");
  assert_string_equal(subjects->ids[2], "01");
  sn_split *split = NULL;
  const sn_split_options options = {.n_folds = 3, .fold = 0};
  CHECK(sn_split_create(m, subjects, NULL, NULL, &options, &split, fault)); /* three people, three folds */
  assert_int_equal(sn_split_count_subjects(split, SN_ROLE_PRETRAIN), 2);
  sn_split_destroy(split);
  sn_subjects_destroy(subjects);
  sn_manifest_destroy(m);
  cohort_remove(both);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_refusals),        cmocka_unit_test(test_a_changed_recording), cmocka_unit_test(test_people),
                                     cmocka_unit_test(test_leak_across_sources), cmocka_unit_test(test_training),
                                     cmocka_unit_test(test_ranks), cmocka_unit_test(test_choose_source),   cmocka_unit_test(test_sets_below_one_root)};
  return cmocka_run_group_tests(tests, make_cohorts, remove_cohorts);
}
