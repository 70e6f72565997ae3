/* sonde pretrain: from a directory of recordings to an encoder. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "engine/presets.h"
#include "engine/pretrain.h"
#include "engine/run.h"
#include "objectives/term.h"

static const sn_option OPTIONS[] = {
    {"preset", "NAME", false, "start from named settings (listed below)"},
    {"data", "DIR", true, "directory of recordings, or 'synthetic' (data.dir); several are mixed (sources.I.data.dir)"},
    {"fold", "i/k", false, "leave out the people of fold i of k, counted from 0 (data.fold)"},
    {"subject", "COLUMN", false, "column of the labels that names the person, or 'recording' (data.subject)"},
    {"labels", "FILE", false, "CSV or TSV with a line per recording (data.labels)"},
    {"key", "COLUMN", false, "its column that names the recording (data.key)"},
    {"split", "COLUMN", false, "its column that names a fixed part (data.split)"},
    {"out", "DIR", false, "run folder (default runs/PRESET; without a preset, runs/pretrain)"},
    {"resume", "RUN", false, "go on with a run that was interrupted"},
    {"set", "KEY=VALUE", true, "any setting"},
    {"json", NULL, false, "result as one JSON object on standard output"},
    {"settings", NULL, false, "list every setting with its default and range (and what --preset sets), and stop"},
    {NULL, NULL, false, NULL}};

static void print_help(void) {
  sn_args_print_help(OPTIONS, "pretrain", "[CONFIG.yaml]", "Pretrain an encoder on a directory of recordings.");
  printf("\npresets:\n");
  for (const sn_preset *p = sn_presets; p->name != NULL; p++) printf("  %-16s %s\n", p->name, p->summary);
  printf("\nobjectives (objective.name):\n");
  for (int64_t i = 0; i < sn_n_objective_kinds; i++)
    printf("  %-16s %s\n", sn_objective_kinds[i]->name, sn_objective_kinds[i]->summary);
  printf("\nLater settings win: preset, CONFIG.yaml, options, --set.  `sonde pretrain --settings` lists all of them.\n");
}

/* Options that are short names of settings. */
static sn_status apply_options(sn_config *config, const sn_args *args, sn_error *err) {
  static const char *const PAIRS[][2] = {{"fold", "data.fold"}, {"subject", "data.subject"},
                                         {"labels", "data.labels"}, {"key", "data.key"}, {"split", "data.split"}};
  for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++)
    if (sn_args_has(args, PAIRS[i][0]))
      SN_TRY(sn_config_set(config, PAIRS[i][1], sn_args_get(args, PAIRS[i][0]), PAIRS[i][0], -1, err));
  /* One is the data; several are a list of sources, in place of one that a file may have. */
  const int64_t n_data = sn_args_count(args, "data");
  if (n_data == 1 && sn_config_sources(config) > 0) {
    return sn_fail(err, SN_E_ARGUMENT, "--data %s: the settings list %lld sources; change one with --set sources.I.data.dir=DIR",
                   sn_args_get(args, "data"), (long long)sn_config_sources(config));
  }
  if (n_data == 1) SN_TRY(sn_config_set(config, "data.dir", sn_args_get(args, "data"), "data", -1, err));
  if (n_data > 1) sn_config_drop_sources(config);
  for (int64_t i = 0; i < n_data && n_data > 1; i++) {
    sn_config *source;
    SN_TRY(sn_config_add_source(config, &source, err));
    SN_TRY(sn_config_set(source, "data.dir", sn_args_nth(args, "data", i), "data", -1, err));
  }
  for (int64_t i = 0; i < sn_args_count(args, "set"); i++)
    SN_TRY(sn_config_set_pair(config, sn_args_nth(args, "set", i), "--set", err));
  return SN_OK;
}

/* A preset is no setting: it stands before the file, which is read over it. */
static sn_status load_file(sn_config *config, const char *path, sn_error *err) {
  sn_error local, *e = err != NULL ? err : &local;
  const sn_status status = sn_config_load(config, path, e);
  if (status != SN_E_ARGUMENT || strcmp(e->field, "preset") != 0) return status;
  return sn_fail_at(err, SN_E_ARGUMENT, -1, e->line, "preset", "%s:%lld: 'preset' is no setting of a file: give it as an option, "
                    "`sonde pretrain --preset NAME %s`; the file's settings then win over the preset's", path,
                    (long long)e->line, path);
}

static sn_status make_config(const sn_args *args, sn_config **out, sn_error *err) {
  sn_config *config = NULL;
  sn_status status;
  if (sn_args_has(args, "resume")) {
    if (sn_args_has(args, "preset") || sn_args_positionals(args) > 0)
      return sn_fail(err, SN_E_ARGUMENT, "--resume takes its settings from the run: leave out the preset and CONFIG");
    if (sn_args_has(args, "out"))
      return sn_fail(err, SN_E_ARGUMENT, "--resume writes into the run it goes on with: leave out --out");
    SN_TRY_GOTO(sn_run_load_config(sn_args_get(args, "resume"), &config, err), fail);
  } else {
    SN_TRY_GOTO(sn_run_config_create(&config, err), fail);
    if (sn_args_has(args, "preset")) SN_TRY_GOTO(sn_preset_apply(config, sn_args_get(args, "preset"), NULL, err), fail);
    if (sn_args_positionals(args) > 0) SN_TRY_GOTO(load_file(config, sn_args_positional(args, 0), err), fail);
  }
  SN_TRY_GOTO(apply_options(config, args, err), fail);
  SN_TRY_GOTO(sn_pretrain_check(config, NULL, err), fail); /* before the data are looked at */
  *out = config;
  return SN_OK;
fail:
  sn_config_destroy(config);
  return status;
}

static void show_progress(void *user, const sn_progress *p) {
  const bool last = p->step == p->steps;
  if (!last && p->step % 10 != 0 && p->step != 1) return;
  fprintf(stderr, "\rstep %lld/%lld  loss %.5f  lr %.2e  %.0f tok/s  epoch %.2f  %.0f s left   %s", (long long)p->step,
          (long long)p->steps, p->loss, p->lr, p->tokens_per_s, p->epoch, p->seconds_left, last ? "\n" : "");
  fflush(stderr);
}

/* Without a terminal: a line now and then, so that a log file tells how far it is. */
static void log_progress(void *user, const sn_progress *p) {
  int64_t every = p->steps / 20 > 0 ? p->steps / 20 : 1;
  if (p->step % every != 0 && p->step != p->steps && p->step != 1) return;
  fprintf(stderr, "step %lld/%lld loss %.5f lr %.2e %.0f tok/s\n", (long long)p->step, (long long)p->steps, p->loss,
          p->lr, p->tokens_per_s);
}

static double realised(const sn_train_state *s, int64_t k) {
  return s->tokens > 0 ? (double)s->parts[k].tokens / (double)s->tokens : NAN;
}

static void put_sources(sn_json_writer *w, const sn_train_state *s) {
  sn_json_write_key(w, "sources");
  sn_json_begin_array(w);
  for (int64_t k = 0; k < s->n_parts; k++) {
    const sn_part_state *p = &s->parts[k];
    sn_json_begin_object(w);
    sn_json_put_string(w, "name", p->name);
    sn_json_put_f64(w, "share", p->share);
    sn_json_put_f64(w, "realised_share", realised(s, k));
    sn_json_put_i64(w, "tokens", p->tokens);
    sn_json_put_i64(w, "samples", p->samples);
    sn_json_put_i64(w, "windows", p->n_windows);
    sn_json_end_object(w);
  }
  sn_json_end_array(w);
}

static void print_sources(const sn_train_state *s) {
  for (int64_t k = 0; k < s->n_parts; k++) {
    const sn_part_state *p = &s->parts[k];
    const double found = realised(s, k);
    fprintf(stderr, "  %-24s %6.2f %% of the tokens (asked: %.2f %%), %lld samples, %.2f passes%s\n", p->name, 100 * found,
            100 * p->share, (long long)p->samples, (double)p->samples / (double)p->n_windows,
            fabs(found - p->share) > 0.05 * p->share ? ": windows were rejected, shorter than planned or in quarantine" : "");
  }
}

static sn_status print_json(const char *run, const sn_train_result *r, sn_error *err) {
  sn_string text = {0};
  sn_json_writer w;
  sn_json_writer_init(&w, &text, 0);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "run", run);
  sn_json_put_i64(&w, "step", r->state.step);
  sn_json_put_i64(&w, "start_step", r->start_step);
  sn_json_put_f64(&w, "loss", r->loss);
  sn_json_put_i64(&w, "parameters", r->parameters);
  sn_json_put_string(&w, "dtype", r->dtype);
  sn_json_put_i64(&w, "tokens", r->state.tokens);
  sn_json_put_i64(&w, "rejected", r->state.rejected);
  sn_json_put_i64(&w, "recordings_unreadable", r->n_unreadable);
  sn_json_put_i64(&w, "recordings_quarantined", r->n_quarantined);
  sn_json_put_i64(&w, "recordings_without_window", r->n_silent);
  sn_json_put_bool(&w, "stopped", r->stopped);
  sn_json_put_bool(&w, "collapsed", r->state.monitor.collapsed);
  sn_json_put_bool(&w, "plateau", r->state.monitor.plateau);
  if (r->state.n_parts > 0) put_sources(&w, &r->state);
  sn_json_put_i64(&w, "primitives_after_step_10", r->primitives_after_10);
  sn_json_end_object(&w);
  sn_status status = sn_json_writer_finish(&w, err);
  if (status == SN_OK) printf("%s\n", text.data);
  fflush(stdout); /* before what goes to standard error */
  sn_string_free(&text);
  return status;
}

/* The run folder: given, or runs/PRESET. */
static sn_status choose_run(const sn_args *args, char **run, sn_error *err) {
  const char *given = sn_args_get(args, "resume");
  if (given == NULL) given = sn_args_get(args, "out");
  if (given != NULL) {
    SN_TRY(sn_strdup(run, given, "run folder", err));
  } else {
    SN_TRY(sn_path_join("runs", sn_args_has(args, "preset") ? sn_args_get(args, "preset") : "pretrain", run, err));
  }
  return SN_OK;
}

static int finish(const sn_args *args, const char *run, bool from_recordings, double plateau_gain, const sn_train_result *result,
                  sn_error *err) {
  const char *quote = strpbrk(run, " \t;&()$*?") != NULL ? "'" : ""; /* commands that can be pasted */
  if (result->start_step == result->state.step) {
    fprintf(stderr, "%s: all %lld steps were already done; nothing is left to do\n", run, (long long)result->state.step);
    return sn_args_has(args, "json") && print_json(run, result, err) != SN_OK ? sn_terminal_fail("pretrain", err) : 0;
  }
  fprintf(stderr, "%s: %lld steps, loss %.5f, %lld parameters, %s%s\n", run, (long long)result->state.step, result->loss,
          (long long)result->parameters, result->dtype, result->state.inexact ? ", resumed inexactly" : "");
  print_sources(&result->state);
  if (result->state.nonfinite_steps > 0 || result->state.empty_steps > 0)
    fprintf(stderr, "  %lld steps were not finite and skipped, %lld had no target\n",
            (long long)result->state.nonfinite_steps, (long long)result->state.empty_steps);
  if (result->state.monitor.collapsed)
    fprintf(stderr, "  the features have collapsed, at step %lld (monitor_std, monitor_input_share in metrics.jsonl; docs/objectives/monitors.md)\n",
            (long long)result->state.monitor.collapsed_at);
  if (result->state.monitor.plateau)
    fprintf(stderr, "  on a plateau since step %lld: the loss has not fallen by more than %g %%\n",
            (long long)result->state.monitor.best_at, 100 * plateau_gain);
  if (result->state.rejected > 0)
    fprintf(stderr, "  rejected windows: %lld, flat or with too little measured (%s)\n",
            (long long)result->state.rejected, result->why_rejected[0] != '\0' ? result->why_rejected : "before this was resumed");
  if (result->n_unreadable > 0)
    fprintf(stderr, "  recordings left out, which could not be read when they were indexed: %lld, first %s\n", (long long)result->n_unreadable,
            result->first_unreadable);
  if (result->n_quarantined > 0)
    fprintf(stderr, "  recordings in quarantine: %lld (%s/quarantine.tsv says why)\n", (long long)result->n_quarantined, run);
  if (result->n_silent > 0)
    fprintf(stderr, "  recordings without any usable window%s: %lld, first %s\n", result->start_step > 0 ? " since this was resumed" : "",
            (long long)result->n_silent, result->first_silent);
  if (sn_args_has(args, "json") && print_json(run, result, err) != SN_OK) return sn_terminal_fail("pretrain", err);
  if (!result->stopped) {
    if (from_recordings) fprintf(stderr, "next: sonde probe %s%s%s --target COLUMN --labels FILE --key COLUMN\n", quote, run, quote);
    return 0;
  }
  fprintf(stderr, "stopped by a signal, saved; go on with: sonde pretrain --resume %s%s%s\n", quote, run, quote);
  return 128 + (int)*sn_terminal_catch_signals();
}

int sn_command_pretrain(int argc, char **argv) {
  sn_args *args = NULL;
  sn_config *config = NULL;
  char *run = NULL;
  sn_error err;
  sn_train_result result;
  sn_status status;
  int code = 0;
  SN_TRY_GOTO(sn_args_parse(OPTIONS, "[CONFIG.yaml]", 0, 1, argc, argv, &args, &err), fail);
  if (sn_args_wants_help(args)) {
    print_help();
    goto done;
  }
  if (sn_args_has(args, "settings")) {
    sn_string text = {0};
    SN_TRY_GOTO(sn_run_config_create(&config, &err), fail);
    status = sn_config_help(config, "", &text, &err);
    if (status == SN_OK) printf("%s", text.data);
    sn_string_free(&text);
    if (status != SN_OK) goto fail;
    if (sn_args_has(args, "preset")) {
      const sn_preset *preset = NULL;
      SN_TRY_GOTO(sn_preset_apply(config, sn_args_get(args, "preset"), &preset, &err), fail);
      printf("\npreset %s:\n%s", preset->name, preset->settings);
    }
    goto done;
  }
  const bool resume = sn_args_has(args, "resume");
  SN_TRY_GOTO(make_config(args, &config, &err), fail);
  SN_TRY_GOTO(choose_run(args, &run, &err), fail);
  if (!resume) SN_TRY_GOTO(sn_run_check_place(config, run, &err), fail);
  sn_terminal_ignore_pipe();
  const sn_pretrain_options options = {.config = config,
                                       .run = run,
                                       .resume = resume,
                                       .stop = sn_terminal_catch_signals(),
                                       .log = sn_terminal_log(),
                                       .progress = sn_terminal_is_interactive() ? show_progress : log_progress};
  SN_TRY_GOTO(sn_pretrain(&options, &result, &err), fail);
  code = finish(args, run, strcmp(sn_config_text(config, "data.dir"), "synthetic") != 0,
                sn_config_real(config, "monitor.plateau_gain"), &result, &err);
  goto done;
fail:
  code = sn_terminal_fail("pretrain", &err);
done:
  sn_config_destroy(config);
  sn_args_destroy(args);
  sn_free(run);
  return code;
}
