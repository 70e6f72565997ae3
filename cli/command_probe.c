/* needs: full */
/* `sonde probe RUN...`: what frozen encoders know, beside random encoders, raw features and the majority class. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "benchmarks/probe.h"
#include "cli/args.h"
#include "cli/probe_table.h"
#include "cli/terminal.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/json.h"

static const sn_option OPTIONS[] = {
    {"data", "DIR", false, "directory of recordings (default: the run's own)"},
    {"target", "WHAT", false, "COLUMN of the labels file | annotation:aami | annotation:code | annotation:text | annotation:span | "
                              "participants:FIELD | header:FIELD"},
    {"labels", "FILE", false, "CSV or TSV with a line per recording (default: the run's)"},
    {"key", "COLUMN", false, "its column that names the recording (default: the run's, else the first)"},
    {"subject", "COLUMN", false, "its column that names the person; 'header': as the files say; 'recording': persons unknown (default: what the run was given, else the header)"},
    {"split", "COLUMN", false, "test on a fixed part: COLUMN[:TRAIN:TEST] (default: the runs' own folds or split)"},
    {"folds", "K", false, "folds of people where the runs left nobody out (default 5)"},
    {"exclude", "RECORDING", true, "leave a recording out of training and test"},
    {"classes", "A,B", false, "only these classes, in this order; of two, the second is the positive one"},
    {"task", "TASK", false, "auto | multiclass | multilabel | regression (default: auto, by the target's values)"},
    {"window", "SECONDS", false, "annotation targets: length of the window around each beat (default 1)"},
    {"context", "SECONDS", false, "annotation targets: encode this much around each item, pool the item's own tokens (default: the "
                                  "item alone)"},
    {"pool", "POOL", true, "mean | mean_max_std | per_channel | cls | flatten (default: mean); with several, also the one chosen on "
                           "inner folds"},
    {"classifier", "NAME", false, "linear | knn (default linear)"},
    {"k", "N", false, "kNN: neighbours that vote (default 20; 10, 20, 100 and 200 stand beside)"},
    {"metric", "METRIC", false, "reported and selected by (default: auroc, balanced_accuracy, auroc_macro or r2, by task)"},
    {"unweighted", NULL, false, "no class weights (default: balanced)"},
    {"seeds", "N", false, "random encoders (default 3)"},
    {"draws", "N", false, "of the bootstrap (default 1000)"},
    {"seed", "N", false, "of folds made here, inner folds and draws (default 0)"},
    {"step", "N", false, "checkpoint of this step (default: the newest)"},
    {"ema", NULL, false, "the moving average of the weights"},
    {"transductive", NULL, false, "allow test people that pretraining saw; every row then says so"},
    {"name", "NAME", false, "RUN/probes/NAME.json (default: from the target)"},
    {"force", NULL, false, "write over a result that other options or labels gave"},
    {"threads", "N", false, "default: all cores"},
    {"json", NULL, false, "the result as one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static sn_status parse_pools(const sn_args *args, sn_probe_options *o, sn_error *err) {
  const int64_t n = sn_args_count(args, "pool");
  if (n == 0) return SN_OK;
  o->n_pools = 0;
  for (int64_t i = 0; i < n; i++) {
    sn_pool_kind kind;
    SN_TRY(sn_pool_parse(sn_args_nth(args, "pool", i), &kind, err));
    for (int64_t k = 0; k < o->n_pools; k++)
      if (o->pools[k] == kind) return sn_fail(err, SN_E_ARGUMENT, "--pool %s is given twice", sn_args_nth(args, "pool", i));
    o->pools[o->n_pools++] = kind;
  }
  return SN_OK;
}

static sn_status parse_task(const char *text, sn_label_task *task, sn_error *err) {
  static const char *const NAMES[] = {"auto", "multiclass", "multilabel", "regression"};
  static const sn_label_task TASKS[] = {SN_LABEL_AUTO, SN_LABEL_CLASS, SN_LABEL_MULTI, SN_LABEL_VALUE};
  for (size_t i = 0; text != NULL && i < sizeof NAMES / sizeof NAMES[0]; i++) {
    if (strcmp(NAMES[i], text) != 0) continue;
    *task = TASKS[i];
    return SN_OK;
  }
  return text == NULL ? SN_OK : sn_fail(err, SN_E_ARGUMENT, "--task %s: expected auto, multiclass, multilabel or regression", text);
}

static sn_status parse(const sn_args *args, const char **runs, const char **excluded, sn_probe_options *o, sn_error *err) {
  *o = sn_probe_defaults();
  int64_t seed = 0;
  o->runs = runs;
  o->n_runs = sn_args_positionals(args);
  for (int64_t i = 0; i < o->n_runs; i++) runs[i] = sn_args_positional(args, i);
  o->exclude = excluded;
  o->n_exclude = sn_args_count(args, "exclude");
  for (int64_t i = 0; i < o->n_exclude; i++) excluded[i] = sn_args_nth(args, "exclude", i);
  o->data = sn_args_get(args, "data");
  o->target = sn_args_get(args, "target");
  o->labels = sn_args_get(args, "labels");
  o->key = sn_args_get(args, "key");
  o->subject = sn_args_get(args, "subject");
  o->split = sn_args_get(args, "split");
  o->classes = sn_args_get(args, "classes");
  o->metric = sn_args_get(args, "metric");
  if (sn_args_has(args, "classifier")) SN_TRY(sn_classifier_parse(sn_args_get(args, "classifier"), &o->classifier, err));
  if (sn_args_has(args, "k") && o->classifier != SN_CLASSIFIER_KNN)
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "k", "--k %s: neighbours vote in --classifier knn only", sn_args_get(args, "k"));
  SN_TRY(sn_args_i64(args, "k", o->k, &o->k, err));
  o->unweighted = sn_args_has(args, "unweighted");
  o->use_ema = sn_args_has(args, "ema");
  o->transductive = sn_args_has(args, "transductive");
  o->log = sn_terminal_log();
  SN_TRY(parse_pools(args, o, err));
  SN_TRY(parse_task(sn_args_get(args, "task"), &o->task, err));
  SN_TRY(sn_args_i64(args, "folds", o->folds, &o->folds, err));
  o->folds_given = sn_args_has(args, "folds");
  SN_TRY(sn_args_i64(args, "seeds", o->n_seeds, &o->n_seeds, err));
  SN_TRY(sn_args_i64(args, "draws", o->n_draws, &o->n_draws, err));
  SN_TRY(sn_args_i64(args, "seed", 0, &seed, err));
  SN_TRY(sn_args_i64(args, "step", -1, &o->step, err));
  SN_TRY(sn_args_i64(args, "threads", 0, &o->n_threads, err));
  SN_TRY(sn_args_f64(args, "window", 0, &o->window_s, err));
  SN_TRY(sn_args_f64(args, "context", 0, &o->context_s, err));
  if (sn_args_has(args, "context") && !(o->context_s > 0))
    return sn_fail(err, SN_E_ARGUMENT, "--context %g: above 0 s", o->context_s);
  if (seed < 0) return sn_fail(err, SN_E_ARGUMENT, "--seed %" PRId64 ": at least 0", seed);
  if (o->n_seeds > 64 || o->n_draws < 1 || o->n_draws > 1000000 || o->n_threads < 0 || o->n_threads > 1024)
    return sn_fail(err, SN_E_ARGUMENT, "--seeds takes 1 to 64, --draws 1 to 1000000, --threads 0 to 1024");
  if (sn_args_has(args, "window") && !(o->window_s > 0)) return sn_fail(err, SN_E_ARGUMENT, "--window %g: above 0 s", o->window_s);
  o->seed = (uint64_t)seed;
  return SN_OK;
}

/* Letters and digits of the target and the classes. */
static void default_name(const sn_probe_options *o, char *name, size_t room) {
  snprintf(name, room, "%s%s%s%s%s", o->target, o->classes != NULL ? "-" : "", o->classes != NULL ? o->classes : "",
           o->classifier == SN_CLASSIFIER_KNN ? "-knn" : "", o->transductive ? "-transductive" : "");
  for (char *c = name; *c != '\0'; c++)
    if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || *c == '_')) *c = '-';
}

static sn_status check_name(const char *name, sn_error *err) {
  if (name[0] == '\0' || name[0] == '.' || strpbrk(name, "/\n\r\t") != NULL || strlen(name) > 200)
    return sn_fail(err, SN_E_ARGUMENT,
                   "--name '%s': a file name without '/' and control characters, not beginning with '.'", name);
  return SN_OK;
}

/* All that changes the result: options in the order of their list, then the runs. */
static sn_status describe_options(const sn_args *args, sn_string *text, sn_error *err) {
  static const char *const NEUTRAL = "|name|json|threads|force|";
  for (const sn_option *o = OPTIONS; o->name != NULL; o++) {
    char word[32];
    snprintf(word, sizeof word, "|%s|", o->name);
    if (strstr(NEUTRAL, word) != NULL || !sn_args_has(args, o->name)) continue;
    for (int64_t i = 0; i < sn_args_count(args, o->name); i++) {
      const char *value = o->value != NULL ? sn_args_nth(args, o->name, i) : NULL;
      SN_TRY(sn_string_printf(text, err, "--%s%s%s ", o->name, value != NULL ? " " : "", value != NULL ? value : ""));
    }
  }
  SN_TRY(sn_string_append(text, "of", -1, err));
  for (int64_t i = 0; i < sn_args_positionals(args); i++) SN_TRY(sn_string_printf(text, err, " %s", sn_args_positional(args, i)));
  return SN_OK;
}

/* A result that other options or other runs gave is not lost without a word. */
typedef struct written {
  const sn_probe_options *options;
  char name[256];
  sn_string described;
} written;

/* The next option with its value, or the runs ("of RUN..."), of described options. false: no more. */
static bool next_part(const char **at, const char **part, int *length) {
  const char *start = *at + strspn(*at, " ");
  if (*start == '\0') return false;
  const char *option = strstr(start + 1, " --"), *end = option;
  if (end == NULL && strncmp(start, "of ", 3) != 0) end = strstr(start, " of "); /* behind the last option */
  if (end == NULL) end = start + strlen(start);
  *part = start;
  *length = (int)(end - start);
  *at = end;
  return true;
}

/* What `options` have and `others` lack, behind `title`. */
static sn_status put_only(const char *title, const char *options, const char *others, sn_string *text, sn_error *err) {
  const char *part, *other, *word = title;
  int n, m;
  for (const char *at = options; next_part(&at, &part, &n);) {
    bool there = false;
    for (const char *from = others; !there && next_part(&from, &other, &m);) there = n == m && memcmp(part, other, (size_t)n) == 0;
    if (there) continue;
    SN_TRY(sn_string_printf(text, err, "%s%.*s", word, n, part));
    word = " ";
  }
  return SN_OK;
}

static sn_status describe_change(const sn_json *before, const char *options, const char *labels, sn_string *text, sn_error *err) {
  const char *was = sn_json_as_string(sn_json_get(before, "options"));
  const char *labels_were = sn_json_as_string(sn_json_get(before, "labels_sha256"));
  if (was == NULL) return sn_string_append(text, "; which is not noted in it", -1, err);
  SN_TRY(put_only("; then: ", was, options, text, err));
  SN_TRY(put_only("; now: ", options, was, text, err));
  if (text->length == 0 && strcmp(was, options) != 0) SN_TRY(sn_string_append(text, "; their order is another", -1, err));
  if (labels_were == NULL && labels[0] != '\0') SN_TRY(sn_string_append(text, "; the content of the labels file is not noted in it", -1, err));
  else if (strcmp(labels_were != NULL ? labels_were : "", labels) != 0)
    SN_TRY(sn_string_append(text, "; the labels file has changed", -1, err));
  return SN_OK;
}

static sn_status check_overwrite(void *user, const char *labels, sn_error *err) {
  const written *w = user;
  const sn_probe_options *o = w->options;
  for (int64_t r = 0; r < o->n_runs; r++) {
    char file[256], *path = NULL;
    sn_json *json = NULL;
    sn_string change = {0};
    sn_error unread;
    snprintf(file, sizeof file, "probes/%.200s.json", w->name);
    SN_TRY(sn_path_join(o->runs[r], file, &path, err));
    sn_status status = SN_OK;
    if (sn_path_exists(path)) {
      const bool read = sn_json_load(path, &json, &unread) == SN_OK;
      status = describe_change(read ? json : NULL, w->described.data, labels, &change, err);
    }
    if (status == SN_OK && change.length > 0)
      status = sn_fail(err, SN_E_ARGUMENT, "%s is there from other options: give this result another --name, or --force to write over "
                       "it%s", path, change.data);
    sn_json_destroy(json);
    sn_string_free(&change);
    sn_free(path);
    if (status != SN_OK) return status;
  }
  return SN_OK;
}

static sn_status save(const sn_probe_options *o, const char *name, const sn_string *json, sn_error *err) {
  char file[256];
  snprintf(file, sizeof file, "%.200s.json", name);
  for (int64_t r = 0; r < o->n_runs; r++) {
    char *folder = NULL, *path = NULL;
    sn_status status = sn_path_join(o->runs[r], "probes", &folder, err);
    if (status == SN_OK) status = sn_make_directories(folder, err);
    if (status == SN_OK) status = sn_path_join(folder, file, &path, err);
    if (status == SN_OK) status = sn_write_file(path, json->data, json->length, err);
    if (status == SN_OK) fprintf(stderr, "%s%s", r == 0 ? "written: " : ", ", path);
    sn_free(folder);
    sn_free(path);
    if (status != SN_OK) return status;
  }
  fprintf(stderr, "\n");
  return SN_OK;
}

static sn_status report(const sn_args *args, const sn_probe_options *o, const char *name, const sn_probe_result *result,
                        sn_error *err) {
  sn_string json = {0};
  sn_json_writer w;
  sn_status status;
  sn_json_writer_init(&w, &json, 2);
  sn_probe_write_json(result, &w);
  SN_TRY_GOTO(sn_json_writer_finish(&w, err), done);
  SN_TRY_GOTO(sn_string_append(&json, "\n", 1, err), done);
  if (sn_args_has(args, "json")) printf("%s", json.data);
  else sn_probe_print_table(result);
  fflush(stdout);
  status = save(o, name, &json, err);
done:
  sn_string_free(&json);
  return status;
}

int sn_command_probe(int argc, char **argv);
int sn_command_probe(int argc, char **argv) {
  sn_args *args = NULL;
  sn_probe_options options;
  sn_probe_result *result = NULL;
  const char **runs = NULL, **excluded = NULL;
  written out = {.options = &options};
  sn_error err;
  sn_status status;
  int code = 0;
  SN_TRY_GOTO(sn_args_parse(OPTIONS, "RUN...", 1, -1, argc, argv, &args, &err), fail);
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "probe", "RUN...",
                       "Probes of frozen encoders, linear or kNN. Several runs are joined over the folds that they were pretrained with: "
                       "every item is predicted by an encoder that never saw its person. Beside them: random encoders of the same "
                       "architecture, raw features and the majority class, with 95 % intervals over people.");
    goto done;
  }
  SN_TRY_GOTO(sn_alloc(&runs, sn_args_positionals(args), sizeof *runs, "runs", &err), fail);
  SN_TRY_GOTO(sn_alloc(&excluded, sn_args_count(args, "exclude"), sizeof *excluded, "recordings", &err), fail);
  SN_TRY_GOTO(parse(args, runs, excluded, &options, &err), fail);
  if (sn_args_has(args, "name")) SN_TRY_GOTO(check_name(sn_args_get(args, "name"), &err), fail);
  if (options.target != NULL) default_name(&options, out.name, sizeof out.name);
  if (sn_args_has(args, "name")) snprintf(out.name, sizeof out.name, "%s", sn_args_get(args, "name"));
  SN_TRY_GOTO(describe_options(args, &out.described, &err), fail);
  if (!sn_args_has(args, "force")) options.ready = check_overwrite;
  options.ready_user = &out;
  SN_TRY_GOTO(sn_probe_run(&options, &result, &err), fail);
  result->options = out.described.data;
  out.described = (sn_string){0}; /* the result's now */
  SN_TRY_GOTO(report(args, &options, out.name, result, &err), fail);
  goto done;
fail:
  code = sn_terminal_fail("probe", &err);
done:
  sn_probe_result_destroy(result);
  sn_string_free(&out.described);
  sn_args_destroy(args);
  sn_free(runs);
  sn_free(excluded);
  return code;
}
