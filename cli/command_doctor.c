/* needs: full */
/* `sonde doctor DIR`: a report on a data set before an hour is spent on it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/each_directory.h"
#include "cli/terminal.h"
#include "core/alloc.h"
#include "core/json.h"
#include "datasets/doctor.h"
#include "datasets/index.h"
#include "engine/run.h"
#include "modalities/unit_check.h"

static const sn_option OPTIONS[] = {
    {"labels", "FILE", false, "a table to compare with the recordings (CSV or TSV)"},
    {"key", "COLUMN", false, "its column that names recordings (default: the first)"},
    {"signal", "SECONDS", false, "of each recording, read this much, spread over it (default: 60; 0: headers alone; all: everything)"},
    {"assume-unit", "UNIT", false, "unit of channels that state none"},
    {"tolerant", NULL, false, "take truncated or contradicting files, as far as they are sound"},
    {"threads", "N", false, "threads that read (default: one per core)"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static void progress(int64_t done, int64_t total) {
  fprintf(stderr, "\rsonde doctor: %" PRId64 " of %" PRId64 "%s", done, total, done == total ? "\r\033[K" : "");
}

static void print_findings(const sn_doctor_report *r, bool problem) {
  bool any = false;
  for (int64_t i = 0; i < r->n; i++) {
    const sn_finding *f = &r->findings[i];
    if (f->problem != problem) continue;
    if (!any) printf("\n%s\n", problem ? "problems" : "notes");
    any = true;
    printf("  %-30s %5" PRId64 "  %s\n", f->code, f->n, f->title);
    for (int k = 0; k < SN_FINDING_EXAMPLES && f->examples[k][0] != '\0'; k++) {
      char plain[SN_TERMINAL_TEXT];
      printf("%40s%s\n", "", sn_terminal_plain(f->examples[k], plain));
    }
  }
}

static void print_report(const sn_manifest *m, const sn_doctor_report *r) {
  printf("%s: %" PRId64 " recording%s, %.2f h; %.1f min of signal read\n", m->name, r->n_recordings, r->n_recordings == 1 ? "" : "s", r->total_s / 3600, r->read_s / 60);
  print_findings(r, true);
  print_findings(r, false);
  printf("\n%s\n", r->n_problems > 0 ? "Problems were found (exit status 1)." : "No problem was found.");
}

static sn_status write_json(const sn_manifest *m, const sn_doctor_report *r, sn_string *out, sn_error *err) {
  sn_json_writer w;
  sn_json_writer_init(&w, out, 2);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "name", m->name);
  sn_json_put_i64(&w, "recordings", r->n_recordings);
  sn_json_put_f64(&w, "duration_s", r->total_s);
  sn_json_put_f64(&w, "read_s", r->read_s);
  sn_json_put_i64(&w, "problems", r->n_problems);
  sn_json_write_key(&w, "findings");
  sn_json_begin_array(&w);
  for (int64_t i = 0; i < r->n; i++) {
    const sn_finding *f = &r->findings[i];
    sn_json_begin_object(&w);
    sn_json_put_string(&w, "code", f->code);
    sn_json_put_bool(&w, "problem", f->problem);
    sn_json_put_i64(&w, "count", f->n);
    sn_json_put_string(&w, "message", f->title);
    sn_json_write_key(&w, "examples");
    sn_json_begin_array(&w);
    for (int k = 0; k < SN_FINDING_EXAMPLES && f->examples[k][0] != '\0'; k++) sn_json_write_string(&w, f->examples[k]);
    sn_json_end_array(&w);
    sn_json_end_object(&w);
  }
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  return sn_json_writer_finish(&w, err);
}

/* That of a run that is told nothing else. */
static sn_status default_window(double *window_s, sn_error *err) {
  sn_config *config = NULL;
  SN_TRY(sn_run_config_create(&config, err));
  *window_s = sn_config_real(config, "data.window");
  sn_config_destroy(config);
  return SN_OK;
}

static sn_status run(const sn_args *args, const char *dir, sn_string *json, int *exit_code, sn_error *err) {
  sn_manifest *manifest = NULL;
  sn_index_report index_report;
  sn_doctor_report report = {0};
  sn_status status = SN_OK;
  const char *signal = sn_args_get(args, "signal");
  sn_doctor_options o = {.most_s = 60, .labels = sn_args_get(args, "labels"), .key = sn_args_get(args, "key"),
                         .open = {.tolerant = sn_args_has(args, "tolerant"), .assume_unit = sn_args_get(args, "assume-unit")}};
  SN_TRY_GOTO(sn_unit_check(o.open.assume_unit, "assume-unit", err), done);
  SN_TRY_GOTO(default_window(&o.window_s, err), done);
  if (signal != NULL && strcmp(signal, "all") == 0) o.most_s = -1;
  else SN_TRY_GOTO(sn_args_f64(args, "signal", 60, &o.most_s, err), done);
  SN_TRY_GOTO(sn_args_i64(args, "threads", (int64_t)sysconf(_SC_NPROCESSORS_ONLN), &o.n_threads, err), done);
  if (o.n_threads < 0 || o.n_threads > 1024 || (o.most_s < 0 && (signal == NULL || strcmp(signal, "all") != 0))) {
    status = o.n_threads < 0 || o.n_threads > 1024
                 ? sn_fail(err, SN_E_ARGUMENT, "--threads %lld: expected 0 to 1024", (long long)o.n_threads)
                 : sn_fail(err, SN_E_ARGUMENT, "--signal %s: expected seconds from 0 (0: headers alone), or all", signal);
    goto done;
  }
  if (o.key != NULL && o.labels == NULL) {
    status = sn_fail(err, SN_E_ARGUMENT, "--key only matters with --labels FILE");
    goto done;
  }
  if (sn_terminal_is_interactive()) o.progress = progress;
  sn_index_options index = {.n_threads = o.n_threads, .tolerant = o.open.tolerant, .assume_unit = o.open.assume_unit};
  SN_TRY_GOTO(sn_index_directory(dir, &index, &manifest, &index_report, err), done);
  SN_TRY_GOTO(sn_doctor_examine(manifest, &o, &report, err), done);
  if (sn_args_has(args, "json")) {
    SN_TRY_GOTO(write_json(manifest, &report, json, err), done);
  } else {
    print_report(manifest, &report);
  }
  if (report.n_problems > 0) *exit_code = 1;
done:
  sn_doctor_report_free(&report);
  sn_manifest_destroy(manifest);
  return status;
}

int sn_command_doctor(int argc, char **argv);
int sn_command_doctor(int argc, char **argv) {
  sn_args *args = NULL;
  sn_error err;
  int exit_code = 0;
  sn_error_clear(&err);
  sn_status status = sn_args_parse(OPTIONS, "DIR...", 1, -1, argc, argv, &args, &err);
  if (status == SN_OK && sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "doctor", "DIR...",
                       "A report on a data set before an hour is spent on it: units, gaps, flat and clipped channels, places of\n"
                       "electrodes, sidecars that contradict their files, persons and recordings that are there twice, tables\n"
                       "that do not fit. Nothing is changed. Exit status 1 when there is a problem; notes alone are 0.");
  } else if (status == SN_OK) {
    static const char *const OF_ONE[] = {"labels", NULL};
    status = sn_each_directory(args, OF_ONE, "examine", run, &exit_code, &err);
  }
  sn_args_destroy(args);
  return status != SN_OK ? sn_terminal_fail("doctor", &err) : exit_code;
}
