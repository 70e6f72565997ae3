/* needs: full */
/* sonde finetune: from pretrained encoders to fine-tuned ones, measured as probes are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/finetune_task.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/probe_table.h"
#include "cli/terminal.h"
#include "core/alloc.h"
#include "core/fs.h"

static const sn_option OPTIONS[] = {
    {"data", "DIR", false, "directory of recordings (default: the run's)"},
    {"target", "WHAT", false, "COLUMN of the labels file | annotation:aami | annotation:code | annotation:text | annotation:span | "
                              "participants:FIELD | header:FIELD"},
    {"labels", "FILE", false, "CSV or TSV with a line per recording (default: the run's)"},
    {"key", "COLUMN", false, "its column that names the recording"},
    {"subject", "COLUMN", false, "its column that names the person; 'header': as the files say; 'recording': persons unknown (default: what the run was given, else the header)"},
    {"split", "COLUMN", false, "test on a fixed part: COLUMN[:TRAIN:TEST] (default: the runs' own folds or split)"},
    {"exclude", "RECORDING", true, "leave a recording out of training and test"},
    {"classes", "A,B", false, "only these classes, in this order; the last of two is the positive one"},
    {"task", "TASK", false, "auto | multiclass | multilabel | regression (default: auto, by the target's values)"},
    {"folds", "K", false, "folds of people made here, where the run left nobody out (default 5)"},
    {"window", "SECONDS", false, "annotation targets: length of an item, centred on it (default 1)"},
    {"mode", "head|full|head_then_full", false, "what learns (finetune.mode, default head_then_full)"},
    {"scratch", NULL, false, "the same training from random weights too, for comparison"},
    {"seeds", "N", false, "trainings per row (default 1)"},
    {"metric", "NAME", false, "what is reported first and chosen by"},
    {"draws", "N", false, "bootstrap draws (default 1000)"},
    {"seed", "N", false, "of folds and draws (default 0)"},
    {"step", "N", false, "checkpoint of the runs (default: the newest)"},
    {"ema", NULL, false, "start from the moving average of the runs' weights"},
    {"transductive", NULL, false, "allow test people that pretraining saw; every row then says so"},
    {"set", "KEY=VALUE", true, "any setting, as finetune.lr=1e-4"},
    {"out", "DIR", false, "folder of the fine-tuning runs (default RUN/finetune)"},
    {"resume", NULL, false, "go on with what stands in --out"},
    {"json", NULL, false, "the table as one JSON object on standard output"},
    {"settings", NULL, false, "list the settings finetune.* with default and range, and stop"},
    {NULL, NULL, false, NULL}};

static void print_help(void) {
  sn_args_print_help(OPTIONS, "finetune", "RUN...",
                     "Fine-tune pretrained encoders on labels; k runs of k folds are joined into one table.");
  printf("\nEach fold writes a run folder DIR/fold-F/NAME-seed-S; --resume goes on with an interrupted one.\n"
         "`sonde finetune --settings` lists the settings.\n");
}

static sn_status parse_task(const char *name, sn_label_task *task, sn_error *err) {
  static const char *const NAMES[] = {"auto", "multiclass", "multilabel", "regression"};
  static const sn_label_task TASKS[] = {SN_LABEL_AUTO, SN_LABEL_CLASS, SN_LABEL_MULTI, SN_LABEL_VALUE};
  for (int i = 0; name != NULL && i < 4; i++)
    if (strcmp(name, NAMES[i]) == 0) {
      *task = TASKS[i];
      return SN_OK;
    }
  return name == NULL
             ? SN_OK
             : sn_fail(err, SN_E_ARGUMENT, "--task %s: expected auto, multiclass, multilabel or regression", name);
}

/* A setting that finetune.* decides would be lost without a word. */
static sn_status check_set(const sn_args *args, sn_error *err) {
  for (int64_t i = 0; i < sn_args_count(args, "set"); i++) {
    const char *pair = sn_args_nth(args, "set", i), *equals = strchr(pair, '=');
    char key[96];
    if (equals == NULL || equals - pair >= (int64_t)sizeof key) continue; /* the configuration says what is wrong */
    memcpy(key, pair, (size_t)(equals - pair));
    key[equals - pair] = '\0';
    const char *decides = sn_finetune_decides(key);
    if (decides != NULL)
      return sn_fail(err, SN_E_ARGUMENT, "--set %s: in fine-tuning this follows from %s; set that", pair, decides);
  }
  return SN_OK;
}

typedef struct request {
  sn_finetune_task_options task;
  const char **runs, **set, **excluded;
  char mode[64], *out, *table;
} request;

static void free_request(request *r) {
  sn_free(r->runs);
  sn_free(r->set);
  sn_free(r->excluded);
  sn_free(r->out);
  sn_free(r->table);
}

static sn_status read_numbers(const sn_args *args, sn_probe_options *p, sn_error *err) {
  int64_t seed = 0;
  SN_TRY(sn_args_i64(args, "folds", 5, &p->folds, err));
  p->folds_given = sn_args_has(args, "folds");
  SN_TRY(sn_args_i64(args, "seeds", 1, &p->n_seeds, err));
  SN_TRY(sn_args_i64(args, "draws", 1000, &p->n_draws, err));
  SN_TRY(sn_args_i64(args, "seed", 0, &seed, err));
  SN_TRY(sn_args_i64(args, "step", -1, &p->step, err));
  SN_TRY(sn_args_f64(args, "window", 0, &p->window_s, err));
  if (p->n_seeds < 1 || p->n_seeds > 64 || p->folds < 2 || p->n_draws < 1 || seed < 0)
    return sn_fail(err, SN_E_ARGUMENT,
                   "--seeds takes 1 to 64, --folds at least 2, --draws at least 1, --seed at least 0");
  p->seed = (uint64_t)seed;
  return SN_OK;
}

static sn_status read_request(const sn_args *args, request *r, sn_error *err) {
  sn_probe_options *p = &r->task.probe;
  const int64_t n_runs = sn_args_positionals(args), n_set = sn_args_count(args, "set");
  *p = sn_probe_defaults();
  if (!sn_args_has(args, "target")) return sn_fail(err, SN_E_ARGUMENT, "--target is missing: what is to be learned?");
  SN_TRY(check_set(args, err));
  SN_TRY(sn_alloc(&r->runs, n_runs, sizeof *r->runs, "runs", err));
  SN_TRY(sn_alloc(&r->set, n_set + 1, sizeof *r->set, "settings", err));
  p->n_exclude = sn_args_count(args, "exclude");
  SN_TRY(sn_alloc(&r->excluded, p->n_exclude, sizeof *r->excluded, "recordings", err));
  for (int64_t i = 0; i < p->n_exclude; i++) r->excluded[i] = sn_args_nth(args, "exclude", i);
  p->exclude = r->excluded;
  for (int64_t i = 0; i < n_runs; i++) r->runs[i] = sn_args_positional(args, i);
  for (int64_t i = 0; i < n_set; i++) r->set[i] = sn_args_nth(args, "set", i);
  r->task.n_set = n_set;
  if (sn_args_has(args, "mode")) {
    snprintf(r->mode, sizeof r->mode, "finetune.mode=%.40s", sn_args_get(args, "mode"));
    r->set[r->task.n_set++] = r->mode;
  }
  r->task.set = r->set;
  p->runs = r->runs;
  p->n_runs = n_runs;
  p->data = sn_args_get(args, "data");
  p->target = sn_args_get(args, "target");
  p->classes = sn_args_get(args, "classes");
  p->labels = sn_args_get(args, "labels");
  p->key = sn_args_get(args, "key");
  p->subject = sn_args_get(args, "subject");
  p->split = sn_args_get(args, "split");
  p->metric = sn_args_get(args, "metric");
  p->use_ema = sn_args_has(args, "ema");
  p->transductive = sn_args_has(args, "transductive");
  p->log = sn_terminal_log();
  SN_TRY(parse_task(sn_args_get(args, "task"), &p->task, err));
  SN_TRY(read_numbers(args, p, err));
  r->task.scratch = sn_args_has(args, "scratch");
  r->task.resume = sn_args_has(args, "resume");
  if (sn_args_has(args, "out")) SN_TRY(sn_strdup(&r->out, sn_args_get(args, "out"), "output folder", err));
  else SN_TRY(sn_path_join(r->runs[0], "finetune", &r->out, err));
  r->task.out = r->out;
  SN_TRY(sn_path_join(r->out, "finetune.json", &r->table, err));
  return SN_OK;
}

static void show_progress(void *user, const char *label, const sn_progress *p) {
  const bool last = p->step == p->steps;
  if (!last && p->step % 10 != 0 && p->step != 1) return;
  fprintf(stderr, "\r%s  step %" PRId64 "/%" PRId64 "  loss %.4f  lr %.2e  %.0f s left   %s", label, p->step, p->steps,
          p->loss, p->lr, p->seconds_left, last ? "\n" : "");
  fflush(stderr);
}

static void log_progress(void *user, const char *label, const sn_progress *p) {
  if (p->step != p->steps) return;
  fprintf(stderr, "%s: step %" PRId64 "/%" PRId64 " loss %.4f\n", label, p->step, p->steps, p->loss);
}

static sn_status print_settings(sn_error *err) {
  sn_config *config = NULL;
  sn_string text = {0};
  SN_TRY(sn_finetune_config_create(&config, err));
  sn_status status = sn_config_help(config, "finetune", &text, err);
  if (status == SN_OK) printf("%s", text.data);
  sn_string_free(&text);
  sn_config_destroy(config);
  return status;
}

/* The object as text, to standard output when asked, and beside the runs. */
static sn_status save(const sn_probe_result *result, const request *r, bool print, sn_error *err) {
  sn_string text = {0};
  sn_json_writer writer;
  sn_status status;
  sn_json_writer_init(&writer, &text, 1);
  sn_probe_write_json(result, &writer);
  SN_TRY_GOTO(sn_json_writer_finish(&writer, err), done);
  SN_TRY_GOTO(sn_string_append(&text, "\n", 1, err), done);
  SN_TRY_GOTO(sn_write_file(r->table, text.data, text.length, err), done);
  if (print) printf("%s", text.data);
  fflush(stdout); /* before what goes to standard error */
  fprintf(stderr, "written: %s\n", r->table);
done:
  sn_string_free(&text);
  return status;
}

int sn_command_finetune(int argc, char **argv) {
  sn_args *args = NULL;
  sn_probe_result *result = NULL;
  request r = {.out = NULL};
  sn_error err;
  sn_status status;
  int code = 0;
  SN_TRY_GOTO(sn_args_parse(OPTIONS, "RUN...", 0, -1, argc, argv, &args, &err), fail);
  if (sn_args_wants_help(args)) {
    print_help();
    goto done;
  }
  if (sn_args_has(args, "settings")) {
    SN_TRY_GOTO(print_settings(&err), fail);
    goto done;
  }
  if (sn_args_positionals(args) == 0) {
    status = sn_fail(&err, SN_E_ARGUMENT, "no run is named: sonde finetune RUN... --target COLUMN");
    goto fail;
  }
  SN_TRY_GOTO(read_request(args, &r, &err), fail);
  SN_TRY_GOTO(sn_finetune_check_output(r.table, &err), fail);
  r.task.stop = sn_terminal_catch_signals();
  r.task.progress = sn_terminal_is_interactive() ? show_progress : log_progress;
  status = sn_finetune_task_run(&r.task, &result, &err);
  if (status == SN_END) {
    fprintf(stderr, "%s; go on with the same command and --resume\n", err.message);
    code = 128 + (int)*r.task.stop;
    goto done;
  }
  if (status != SN_OK) goto fail;
  SN_TRY_GOTO(save(result, &r, sn_args_has(args, "json"), &err), fail);
  if (!sn_args_has(args, "json")) sn_probe_print_table(result);
  goto done;
fail:
  code = sn_terminal_fail("finetune", &err);
done:
  sn_probe_result_destroy(result);
  free_request(&r);
  sn_args_destroy(args);
  return code;
}
