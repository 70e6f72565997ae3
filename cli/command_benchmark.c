/* needs: full */
/* sonde benchmark: many pretraining runs, tasks and protocols, and one table. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/suite.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/terminal.h"

static const sn_option OPTIONS[] = {
    {"out", "DIR", false, "output folder (default: the suite's `out`)"},
    {"root", "DIR", false, "where relative data.dir, data.labels and labels of the suite begin (default: here)"},
    {"dry-run", NULL, false, "list what is done, what would go on and what would begin; nothing is written"},
    {"json", NULL, false, "the table as one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static void print_help(void) {
  sn_args_print_help(OPTIONS, "benchmark", "SUITE.yaml",
                     "Pretrain every run of a suite (runs x seeds x folds, on each of its data sets), probe each on every task, and "
                     "write one table: OUT/table.csv, table.json, table.md.");
  printf("\nWhat is done already is kept, what was interrupted goes on: give the same command again. A run under the same name\n"
         "with other settings is refused. What fails is named in the table, the rest goes on, and the exit status is 1.\n\n"
         "A suite, in short:\n\n"
         "  out: runs/mine\n"
         "  preset: ecg-tiny\n"
         "  settings: {data: {dir: cohort, labels: cohort/labels.csv, key: record, subject: subject, fold: 0/5}}\n"
         "  seeds: [0, 1, 2]\n"
         "  budget: {tokens: 2e6, rule: scale}          # refuse | scale\n"
         "  reference: mae\n"
         "  runs:\n"
         "    - {name: mae}\n"
         "    - {name: mae50, settings: {mae: {mask_ratio: 0.5}}}\n"
         "  tasks:\n"
         "    - {name: sex, target: sex, protocols: [linear, knn]}   # linear | knn | finetune\n\n"
         "docs/benchmark.md says the rest.\n");
}

static void show_progress(void *user, const char *label, const sn_progress *p) {
  const bool last = p->step == p->steps;
  if (!last && p->step % 10 != 0 && p->step != 1) return;
  fprintf(stderr, "\r%s  step %" PRId64 "/%" PRId64 "  loss %.4f  %.0f tok/s  %.0f s left   %s", label, p->step, p->steps, p->loss,
          p->tokens_per_s, p->seconds_left, last ? "\n" : "");
  fflush(stderr);
}

static void log_progress(void *user, const char *label, const sn_progress *p) {
  if (p->step != p->steps) return;
  fprintf(stderr, "%s: step %" PRId64 "/%" PRId64 " loss %.4f\n", label, p->step, p->steps, p->loss);
}

static void report_end(const sn_suite_report *r) {
  fprintf(stderr, "%s: %" PRId64 " of %" PRId64 " pretrainings were done, %" PRId64 " made now; %" PRId64 " of %" PRId64
                  " predictions made now", r->out, r->n_done, r->n_runs, r->n_trained, r->n_scored, r->n_scores);
  if (r->n_failed > 0) fprintf(stderr, "; %" PRId64 " FAILED (the table says why)", r->n_failed);
  fprintf(stderr, "\nwritten: %s/table.md, table.csv, table.json\n", r->out);
  if (r->stopped) fprintf(stderr, "stopped by a signal, saved; the same command goes on\n");
}

int sn_command_benchmark(int argc, char **argv) {
  sn_args *args = NULL;
  sn_string text = {0}, json = {0};
  sn_suite_report report;
  sn_error err;
  sn_status status;
  int code = 0;
  SN_TRY_GOTO(sn_args_parse(OPTIONS, "SUITE.yaml", 1, 1, argc, argv, &args, &err), fail);
  if (sn_args_wants_help(args)) {
    print_help();
    goto done;
  }
  const bool dry = sn_args_has(args, "dry-run"), as_json = sn_args_has(args, "json");
  if (dry && as_json) {
    status = sn_fail(&err, SN_E_ARGUMENT, "--dry-run makes no table that --json could print");
    goto fail;
  }
  const volatile sig_atomic_t *stop = sn_terminal_catch_signals();
  const sn_suite_options options = {.path = sn_args_positional(args, 0),
                                    .out = sn_args_get(args, "out"),
                                    .root = sn_args_get(args, "root"),
                                    .dry_run = dry,
                                    .stop = stop,
                                    .log = sn_terminal_log(),
                                    .progress = sn_terminal_is_interactive() ? show_progress : log_progress};
  SN_TRY_GOTO(sn_suite_run(&options, &text, &json, &report, &err), fail);
  printf("%s", as_json ? json.data : text.data);
  fflush(stdout); /* before what goes to standard error */
  if (!dry) report_end(&report);
  if (report.stopped) code = 128 + (int)*stop;
  else if (report.n_failed > 0) code = 1;
  goto done;
fail:
  code = sn_terminal_fail("benchmark", &err);
done:
  sn_string_free(&text);
  sn_string_free(&json);
  sn_args_destroy(args);
  return code;
}
