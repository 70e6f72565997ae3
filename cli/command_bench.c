/* `sonde bench [NAME...]`: speed on this machine, a row per name.  Every row runs in a process of its own. */
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "benchmarks/speed/speed.h"
#include "cli/args.h"
#include "cli/commands.h"
#include "cli/terminal.h"
#include "core/fs.h"
#include "core/json.h"
#include "kernels/device.h"

static const sn_option OPTIONS[] = {
    {"threads", "N", false, "compute threads (default: all cores this process may run on)"},
    {"tokens", "N", false, "tokens of a step in the train_step rows (default: the row's own)"},
    {"seconds", "S", false, "measuring time of a row, about (default 3)"},
    {"quick", NULL, false, "half a second a row: shows that it runs, not how fast it is"},
    {"cpu-time", NULL, false, "CPU time instead of the clock's, for a busy machine, with --threads 1 (train_step, attention, read)"},
    {"file", "PATH", false, "the recording of the read row (default: an example that it writes)"},
    {"profile", NULL, false, "where the time of the train_step rows goes, op by op, on standard error"},
    {"list", NULL, false, "the names, and stop"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

static const char SUMMARY[] =
    "Measures rows by name (by default all but the largest); NAME may be a pattern ('train_step/*/bf16') or a first part ('attention').";

/* What a row's process sends back. */
typedef struct answer {
  sn_speed_row row;
  sn_status status;
  sn_error err;
} answer;

static bool is_wanted(const sn_args *args, const sn_speed_case *row_case) {
  const char *name = row_case->name;
  if (sn_args_positionals(args) == 0) return !row_case->on_request;
  for (int64_t i = 0; i < sn_args_positionals(args); i++) {
    const char *wanted = sn_args_positional(args, i);
    const size_t n = strlen(wanted);
    if (fnmatch(wanted, name, 0) == 0) return true;
    if (strncmp(wanted, name, n) == 0 && (name[n] == '/' || name[n] == '\0')) return true;
  }
  return false;
}

/* Every name given must select something. */
static sn_status check_names(const sn_args *args, sn_error *err) {
  for (int64_t i = 0; i < sn_args_positionals(args); i++) {
    const char *wanted = sn_args_positional(args, i), *names[64];
    const size_t n = strlen(wanted);
    bool found = false;
    int64_t n_names = 0;
    for (int64_t k = 0; k < sn_n_speed_cases && k < 64; k++) {
      const char *name = sn_speed_cases[k].name;
      names[n_names++] = name;
      found = found || fnmatch(wanted, name, 0) == 0 ||
              (strncmp(wanted, name, n) == 0 && (name[n] == '/' || name[n] == '\0'));
    }
    if (found) continue;
    const char *near = sn_nearest_name(wanted, names, n_names);
    return sn_fail(err, SN_E_ARGUMENT, "no row is named '%s'%s%s%s; `sonde bench --list` lists them", wanted,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
  }
  return SN_OK;
}

/* An option of rows that are not among those asked for would change nothing. */
static sn_status check_applies(const sn_args *args, sn_error *err) {
  static const struct {
    const char *option, *rows[4];
  } OF[] = {{"tokens", {"train_step", NULL}}, {"file", {"read", NULL}}, {"cpu-time", {"train_step", "attention", "read", NULL}},
            {"profile", {"train_step", NULL}}};
  if (sn_args_has(args, "quick") && sn_args_has(args, "seconds"))
    return sn_fail(err, SN_E_ARGUMENT, "--quick is half a second a row: leave out --seconds, or --quick");
  for (size_t i = 0; i < sizeof OF / sizeof OF[0]; i++) {
    bool any = false;
    if (!sn_args_has(args, OF[i].option)) continue;
    for (int64_t c = 0; c < sn_n_speed_cases; c++)
      for (int k = 0; OF[i].rows[k] != NULL && is_wanted(args, &sn_speed_cases[c]); k++)
        any = any || strncmp(sn_speed_cases[c].name, OF[i].rows[k], strlen(OF[i].rows[k])) == 0;
    if (!any)
      return sn_fail(err, SN_E_ARGUMENT, "--%s: matters to rows of %s%s%s alone, and none is asked for", OF[i].option, OF[i].rows[0],
                     OF[i].rows[1] != NULL ? ", " : "", OF[i].rows[1] != NULL ? "attention and read" : "");
  }
  return SN_OK;
}

static sn_status read_options(const sn_args *args, sn_speed_options *o, sn_error *err) {
  int64_t threads, tokens;
  double seconds;
  SN_TRY(sn_args_i64(args, "threads", 0, &threads, err));
  SN_TRY(sn_args_i64(args, "tokens", 0, &tokens, err));
  SN_TRY(sn_args_f64(args, "seconds", sn_args_has(args, "quick") ? 0.5 : 3.0, &seconds, err));
  SN_TRY(check_applies(args, err));
  if (threads < 0 || threads > 4096) return sn_fail(err, SN_E_ARGUMENT, "--threads %lld", (long long)threads);
  if (tokens < 0 || tokens > 10000000) return sn_fail(err, SN_E_ARGUMENT, "--tokens %lld", (long long)tokens);
  if (!(seconds > 0 && seconds <= 3600)) return sn_fail(err, SN_E_ARGUMENT, "--seconds %g: above 0, up to 3600", seconds);
  o->n_threads = (int)threads;
  o->pack_tokens = tokens;
  o->seconds = seconds;
  o->cpu_time = sn_args_has(args, "cpu-time");
  o->profile = sn_args_has(args, "profile");
  o->file = sn_args_get(args, "file");
  o->log = sn_terminal_log();
  if (o->profile && o->log.least > SN_LOG_INFO) o->log.least = SN_LOG_INFO;
  return check_names(args, err);
}

static void read_answer(int from, answer *a) {
  size_t n = 0;
  while (n < sizeof *a) {
    const ssize_t got = read(from, (char *)a + n, sizeof *a - n);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    n += (size_t)got;
  }
  if (n < sizeof *a) {
    memset(a, 0, sizeof *a);
    a->status = sn_fail(&a->err, SN_E_STATE, "the row's process ended without a result");
  }
}

/* In a child, before this process has entered OpenMP. */
static sn_status run_row(const sn_speed_case *row_case, const sn_speed_options *options, answer *a, sn_error *err) {
  int ends[2];
  fflush(NULL);
  if (pipe(ends) != 0) return sn_fail(err, SN_E_IO, "pipe: %s", strerror(errno));
  const pid_t child = fork();
  if (child < 0) {
    close(ends[0]);
    close(ends[1]);
    return sn_fail(err, SN_E_IO, "fork: %s", strerror(errno));
  }
  if (child == 0) {
    close(ends[0]);
    memset(a, 0, sizeof *a);
    sn_error_clear(&a->err);
    a->status = row_case->run(options, row_case->setting, &a->row, &a->err);
    fflush(NULL);
    const ssize_t sent = write(ends[1], a, sizeof *a); /* below PIPE_BUF: in one piece or not at all */
    _exit(sent == (ssize_t)sizeof *a ? 0 : 1);
  }
  int ended;
  close(ends[1]);
  read_answer(ends[0], a);
  close(ends[0]);
  while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
  return SN_OK;
}

static void print_row(const char *name, const answer *a) {
  printf("%-40s", name);
  for (int i = 0; i < a->row.n_fields; i++) {
    const char *key = a->row.keys[i];
    const double v = a->row.values[i];
    if (strstr(key, "sum") != NULL) continue; /* checksums are for other programs: --json has them */
    if (fabs(v) >= 1000 || v == floor(v)) printf("  %s %.0f", key, v);
    else printf("  %s %.4g", key, v);
  }
  printf("\n");
}

static void write_row(sn_json_writer *w, const char *name, const answer *a) {
  sn_json_begin_object(w);
  sn_json_put_string(w, "name", name);
  for (int i = 0; i < a->row.n_fields; i++) {
    sn_json_put_f64(w, a->row.keys[i], a->row.values[i]);
  }
  sn_json_put_i64(w, "threads", a->row.n_threads);
  sn_json_put_string(w, "device", "cpu");
  sn_json_end_object(w);
}

/* A folder of its own for a row's files. */
static sn_status run_in_folder(const sn_speed_case *row_case, sn_speed_options *options, answer *a, sn_error *err) {
  const char *base = getenv("TMPDIR");
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s/sonde_bench_XXXXXX", base != NULL && base[0] != '\0' ? base : "/tmp");
  if (mkdtemp(folder) == NULL) return sn_fail(err, SN_E_IO, "%s: %s", folder, strerror(errno));
  options->folder = folder;
  sn_status status = run_row(row_case, options, a, err);
  options->folder = NULL;
  const sn_status removed = sn_remove_tree(folder, status == SN_OK ? err : NULL);
  return status != SN_OK ? status : removed;
}

/* What the figures are of, and what the words before them mean, by a child: this process must not enter OpenMP. */
static sn_status print_machine(const sn_speed_options *o, sn_error *err) {
  const sn_device_options device_options = {.n_threads = o->n_threads};
  sn_device *device = NULL;
  int ended;
  fflush(NULL);
  const pid_t child = fork();
  if (child < 0) return sn_fail(err, SN_E_IO, "fork: %s", strerror(errno));
  if (child > 0) {
    while (waitpid(child, &ended, 0) < 0 && errno == EINTR) continue;
    return SN_OK;
  }
  if (sn_device_create_cpu(&device_options, &device, NULL) != SN_OK) _exit(1);
  printf("%s, %d threads; about %g s a row\n", sn_isa_name(device->isa), device->n_threads, o->seconds);
  printf("ms: of the least disturbed repetition, ms_median: of the middle one; tok_per_s, mb_per_s, samples_per_s: by the former;\n"
         "model_gflops: of the model's own work a second; gemm_share: of the time in matrix products; peak_mib: memory\n\n");
  fflush(stdout);
  _exit(0);
}

static sn_status run_all(const sn_args *args, sn_speed_options *options, int64_t *failed, sn_error *err) {
  const bool json = sn_args_has(args, "json");
  sn_string text = {0};
  sn_json_writer w;
  sn_status status = SN_OK;
  if (!json) SN_TRY(print_machine(options, err));
  sn_json_writer_init(&w, &text, 2);
  sn_json_begin_object(&w);
  sn_json_write_key(&w, "results");
  sn_json_begin_array(&w);
  for (int64_t i = 0; i < sn_n_speed_cases && status == SN_OK; i++) {
    const sn_speed_case *c = &sn_speed_cases[i];
    answer a;
    if (!is_wanted(args, c)) continue;
    status = run_in_folder(c, options, &a, err);
    if (status != SN_OK) break;
    if (a.status != SN_OK) {
      (*failed)++;
      fflush(stdout);
      fprintf(stderr, "sonde bench: %s: %s\n", c->name, a.err.message);
    } else if (json) {
      write_row(&w, c->name, &a);
    } else {
      print_row(c->name, &a);
    }
  }
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  if (status == SN_OK && json) status = sn_json_writer_finish(&w, err);
  if (status == SN_OK && json) printf("%s\n", text.data);
  sn_string_free(&text);
  return status;
}

int sn_command_bench(int argc, char **argv) {
  sn_args *args = NULL;
  sn_error err;
  sn_speed_options options = {0};
  char command[PATH_MAX];
  int64_t failed = 0;
  int code = 2;
  sn_error_clear(&err);
  if (sn_args_parse(OPTIONS, "[NAME...]", 0, -1, argc, argv, &args, &err) != SN_OK) goto fail;
  if (sn_args_wants_help(args)) {
    sn_args_print_help(OPTIONS, "bench", "[NAME...]", SUMMARY);
    sn_args_destroy(args);
    return 0;
  }
  if (sn_args_has(args, "list")) {
    for (int64_t i = 0; i < sn_n_speed_cases; i++)
      printf("%-40s %s%s\n", sn_speed_cases[i].name, sn_speed_cases[i].summary,
             sn_speed_cases[i].on_request ? " (only when named)" : "");
    sn_args_destroy(args);
    return 0;
  }
  if (read_options(args, &options, &err) != SN_OK) goto fail;
  const ssize_t n = readlink("/proc/self/exe", command, sizeof command - 1);
  command[n > 0 ? n : 0] = '\0';
  options.command = command;
  code = 1;
  if (run_all(args, &options, &failed, &err) != SN_OK) goto fail;
  sn_args_destroy(args);
  return failed > 0;
fail:
  fprintf(stderr, "sonde bench: %s\n", err.message);
  sn_args_destroy(args);
  return code;
}
