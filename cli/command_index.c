/* needs: full */
/* `sonde index DIR`: the manifest of a directory, and a summary that a person likes to read. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/args.h"
#include "cli/each_directory.h"
#include "cli/terminal.h"
#include "core/alloc.h"
#include "core/config.h"
#include "core/fs.h"
#include "core/json.h"
#include "datasets/index.h"
#include "datasets/index_cache.h"
#include "datasets/source_signal.h"
#include "datasets/store.h"
#include "modalities/unit_check.h"

static const sn_option OPTIONS[] = {
    {"out", "FILE", false, "write the manifest there (and FILE.cache, which makes the next run quick)"},
    {"hash", NULL, false, "checksum whole files; without it, the first and last 64 KiB of each"},
    {"name", "NAME", false, "name of the data set (default: the directory's); part of the identity of its people"},
    {"shortest", "SECONDS", false, "mark recordings without a stretch this long as short (default: 0, none)"},
    {"assume-unit", "UNIT", false, "unit of channels that state none"},
    {"tolerant", NULL, false, "take truncated or contradicting files, as far as they are sound"},
    {"fresh", NULL, false, "do not use the cache of an earlier run"},
    {"prepare", "FILE", false,
     "also write the conditioned signal there (HDF5), for data.store: read instead of the recordings"},
    {"config", "FILE", false, "with --prepare: a configuration of data.* and modality keys"},
    {"set", "KEY=VALUE", true, "with --prepare: a key of conditioning, such as data.rate=250Hz"},
    {"threads", "N", false, "threads that read headers (default: one per core)"},
    {"json", NULL, false, "one JSON object on standard output"},
    {NULL, NULL, false, NULL}};

/* Recordings that look alike. */
typedef struct group {
  const sn_manifest_row *row; /* one of them */
  int64_t n;
  double seconds, shortest, longest;
} group;

enum { GROUPS_MOST = 256, STATUSES_MOST = 16 };

typedef struct status_count {
  const char *name;
  int64_t n, first; /* first row of it */
} status_count;

typedef struct summary {
  const sn_manifest *manifest;
  const sn_index_report *report;
  int64_t n_groups, n_other_groups; /* recordings in groups beyond the table */
  group groups[GROUPS_MOST];
  int64_t n_statuses;
  status_count statuses[STATUSES_MOST];
  double seconds, bytes;
  int64_t n_subjects, n_without_subject;
  int64_t n_without_unit, first_without_unit; /* recordings with a channel of unknown unit */
  double took_s;
} summary;

/* ---- gathering ------------------------------------------------------------------------------------------------- */

static bool alike(const sn_manifest_row *a, const sn_manifest_row *b) {
  static const int SAME[] = {SN_MANIFEST_FORMAT, SN_MANIFEST_MODALITY, SN_MANIFEST_RATE, SN_MANIFEST_CHANNELS};
  for (size_t i = 0; i < sizeof SAME / sizeof SAME[0]; i++) {
    if (strcmp(a->cells[SAME[i]], b->cells[SAME[i]]) != 0) return false;
  }
  return true;
}

static double number(const char *cell) {
  double value = 0;
  return sn_parse_f64(cell, false, &value) ? value : 0;
}

static void count_group(summary *s, const sn_manifest_row *row) {
  double seconds = number(row->cells[SN_MANIFEST_DURATION]);
  int64_t k = 0;
  while (k < s->n_groups && !alike(s->groups[k].row, row)) k++;
  if (k == GROUPS_MOST) {
    s->n_other_groups++;
    return;
  }
  group *g = &s->groups[k];
  if (k == s->n_groups) *g = (group){.row = row, .shortest = seconds, .longest = seconds};
  if (k == s->n_groups) s->n_groups++;
  g->n++;
  g->seconds += seconds;
  g->shortest = fmin(g->shortest, seconds);
  g->longest = fmax(g->longest, seconds);
}

static void count_status(summary *s, int64_t row) {
  const char *name = s->manifest->rows[row].cells[SN_MANIFEST_STATUS];
  int64_t k = 0;
  while (k < s->n_statuses && strcmp(s->statuses[k].name, name) != 0) k++;
  if (k == STATUSES_MOST) k--;
  if (k == s->n_statuses) s->statuses[s->n_statuses++] = (status_count){.name = name, .first = row};
  s->statuses[k].n++;
}

/* A channel without a unit, one of trigger words apart, which have none. */
static bool lacks_unit(const sn_manifest_row *row) {
  const char *unit = row->cells[SN_MANIFEST_UNITS], *kind = row->cells[SN_MANIFEST_KINDS];
  for (;;) {
    const size_t n = strcspn(kind, ",");
    if ((*unit == 0 || *unit == ',') && !(n == 7 && strncmp(kind, "trigger", n) == 0)) return true;
    unit = strchr(unit, ',');
    if (unit == NULL || kind[n] == 0) return false;
    unit++;
    kind += n + 1;
  }
}

static int compare_groups(const void *a, const void *b) {
  const group *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  return strcmp(x->row->path, y->row->path);
}

static int compare_texts(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static sn_status summarize(summary *s, const sn_manifest *manifest, const sn_index_report *report, sn_error *err) {
  const char **subjects = NULL;
  int64_t n = 0;
  memset(s, 0, sizeof *s);
  s->manifest = manifest;
  s->report = report;
  SN_TRY(sn_alloc(&subjects, manifest->n, sizeof *subjects, "summary", err));
  for (int64_t i = 0; i < manifest->n; i++) {
    const sn_manifest_row *row = &manifest->rows[i];
    count_status(s, i);
    if (!row->ok) continue;
    s->seconds += number(row->cells[SN_MANIFEST_DURATION]);
    s->bytes += number(row->cells[SN_MANIFEST_SIZE]);
    count_group(s, row);
    if (lacks_unit(row) && s->n_without_unit++ == 0) s->first_without_unit = i;
    if (row->cells[SN_MANIFEST_SUBJECT][0] != 0) {
      subjects[n++] = row->cells[SN_MANIFEST_SUBJECT];
    } else {
      s->n_without_subject++;
    }
  }
  if (n > 0) qsort(subjects, (size_t)n, sizeof *subjects, compare_texts);
  for (int64_t i = 0; i < n; i++) s->n_subjects += i == 0 || strcmp(subjects[i], subjects[i - 1]) != 0;
  qsort(s->groups, (size_t)s->n_groups, sizeof s->groups[0], compare_groups);
  sn_free(subjects);
  return SN_OK;
}

/* ---- for people ------------------------------------------------------------------------------------------------ */

static void format_duration(double seconds, char *text, size_t room) {
  if (seconds < 120) {
    snprintf(text, room, "%.4g s", seconds);
  } else if (seconds < 7200) {
    snprintf(text, room, "%.1f min", seconds / 60);
  } else {
    snprintf(text, room, "%.1f h", seconds / 3600);
  }
}

static void format_bytes(double bytes, char *text, size_t room) {
  static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
  snprintf(text, room, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, UNITS[unit]);
}

static int64_t count_list(const char *cell) {
  int64_t n = cell[0] != 0;
  for (; *cell != 0; cell++) n += *cell == ',';
  return n;
}

/* A list for the eye: unescaped, cut at the room there is. */
static void show_list(const char *cell, char *text, size_t room) {
  char *copy = NULL;
  if (sn_strdup(&copy, cell, "summary", NULL) != SN_OK || sn_manifest_unescape(copy, NULL) != SN_OK) {
    snprintf(text, room, "%s", cell);
  } else {
    char plain[SN_TERMINAL_TEXT];
    snprintf(text, room, "%s", sn_terminal_plain(copy, plain));
    if (strlen(plain) >= room) memcpy(text + room - 4, "...", 4);
  }
  sn_free(copy);
}

static void print_groups(const summary *s) {
  enum { SHOWN = 12, NAMES = 44 };
  printf("\n  %10s  %-7s %-8s %9s  %-*s  %s\n", "recordings", "format", "modality", "rate", NAMES + 4, "channels",
         "duration");
  for (int64_t k = 0; k < s->n_groups && k < SHOWN; k++) {
    const group *g = &s->groups[k];
    char least[32], most[32], rate[32], names[NAMES + 1];
    const char *channels = g->row->cells[SN_MANIFEST_CHANNELS];
    format_duration(g->shortest, least, sizeof least);
    format_duration(g->longest, most, sizeof most);
    snprintf(rate, sizeof rate, "%.20s Hz", g->row->cells[SN_MANIFEST_RATE]);
    show_list(channels, names, sizeof names);
    bool same = strcmp(least, most) == 0;
    printf("  %10" PRId64 "  %-7s %-8s %9s  %2" PRId64 ": %-*s  %s%s%s\n", g->n, g->row->cells[SN_MANIFEST_FORMAT],
           g->row->cells[SN_MANIFEST_MODALITY][0] != 0 ? g->row->cells[SN_MANIFEST_MODALITY] : "?", rate,
           count_list(channels), NAMES, names, least, same ? "" : " to ", same ? "" : most);
  }
  int64_t more = s->n_groups - SHOWN;
  if (more > 0) printf("  and %" PRId64 " more kinds\n", more);
}

static void print_left_out(const summary *s) {
  int64_t left_out = s->manifest->n - s->manifest->n_ok;
  if (left_out == 0) return;
  printf("\n  left out: %" PRId64 " of %" PRId64 " lines\n", left_out, s->manifest->n);
  for (int64_t k = 0; k < s->n_statuses; k++) {
    const status_count *c = &s->statuses[k];
    if (strcmp(c->name, "ok") == 0) continue;
    const sn_manifest_row *row = &s->manifest->rows[c->first];
    char path[4096], reason[4096];
    sn_manifest_show(row->cells[SN_MANIFEST_PATH], path, sizeof path); /* a name may hold bytes that a terminal would obey */
    sn_manifest_show(row->cells[SN_MANIFEST_REASON], reason, sizeof reason);
    printf("  %10" PRId64 "  %-11s %s: %s\n", c->n, c->name, path, reason);
  }
}

static void print_summary(const summary *s, const char *out) {
  const sn_index_report *r = s->report;
  char duration[32], bytes[32];
  format_duration(s->seconds, duration, sizeof duration);
  format_bytes(s->bytes, bytes, sizeof bytes);
  printf("%s: %" PRId64 " recording%s, %s of signal, %s\n", s->manifest->name, s->manifest->n_ok,
         s->manifest->n_ok == 1 ? "" : "s", duration, bytes);
  if (s->n_groups > 0) print_groups(s);
  print_left_out(s);
  printf("\n");
  if (s->n_subjects > 0) {
    printf("  people: %" PRId64 "%s", s->n_subjects, s->n_without_subject > 0 ? "" : "\n");
    if (s->n_without_subject > 0) printf(", not stated for %" PRId64 " recordings\n", s->n_without_subject);
  } else if (s->manifest->n_ok > 0) {
    printf("  people: not stated in the files (a labels column can name them)\n");
  }
  if (s->n_without_unit > 0) {
    printf("  no known unit: %" PRId64 " recording%s, such as %s (--assume-unit gives one)\n", s->n_without_unit,
           s->n_without_unit == 1 ? "" : "s",
           s->manifest->rows[s->first_without_unit].cells[SN_MANIFEST_PATH]);
  }
  if (r->n_repeated > 0) printf("  named twice in RECORDS: %" PRId64 "\n", r->n_repeated);
  if (r->n_other > 0) {
    printf("  other files: %" PRId64 " (", r->n_other);
    for (int64_t k = 0; k < r->n_extensions; k++) {
      printf("%s%" PRId64 " %s", k > 0 ? ", " : "", r->extension_counts[k],
             strcmp(r->extensions[k], "(none)") == 0 ? "without extension" : r->extensions[k]);
    }
    printf(")\n");
  }
  printf("  looked at %" PRId64 " file%s in %" PRId64 " folder%s in %.2f s", r->n_files, r->n_files == 1 ? "" : "s", r->n_folders,
         r->n_folders == 1 ? "" : "s", s->took_s);
  if (r->n_reused > 0) printf(", %" PRId64 " lines from the cache", r->n_reused);
  printf("\n");
  if (out != NULL) {
    printf("  manifest: %s (%" PRId64 " lines, sha256 %.16s...)\n", out, s->manifest->n, s->manifest->hash);
  } else {
    printf("  no manifest was written (--out FILE)\n");
  }
}

/* ---- for machines ---------------------------------------------------------------------------------------------- */

/* A cell as text: unescaped. */
static sn_status write_cell(sn_json_writer *w, const char *cell, sn_error *err) {
  char *text = NULL;
  SN_TRY(sn_strdup(&text, cell, "summary", err));
  sn_status status = sn_manifest_unescape(text, err);
  if (status == SN_OK) sn_json_write_string(w, sn_utf8_error(text, (int64_t)strlen(text)) < 0 ? text : cell);
  sn_free(text);
  return status;
}

static sn_status write_list(sn_json_writer *w, const char *cell, sn_error *err) {
  char *copy = NULL, *rest = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_strdup(&copy, cell, "summary", err));
  sn_json_begin_array(w);
  rest = copy;
  for (char *part = cell[0] != 0 ? strsep(&rest, ",") : NULL; part != NULL && status == SN_OK;
       part = strsep(&rest, ",")) {
    status = write_cell(w, part, err);
  }
  sn_json_end_array(w);
  sn_free(copy);
  return status;
}

static sn_status write_group(sn_json_writer *w, const group *g, sn_error *err) {
  int64_t num = 0, den = 1;
  char rate[48];
  snprintf(rate, sizeof rate, "%.40s", g->row->cells[SN_MANIFEST_RATE]);
  char *slash = strchr(rate, '/');
  if (slash != NULL) *slash = 0;
  if (!sn_parse_i64(rate, &num) || (slash != NULL && !sn_parse_i64(slash + 1, &den))) {
    return sn_fail(err, SN_E_STATE, "manifest: rate '%s'", rate);
  }
  sn_json_begin_object(w);
  sn_json_write_key(w, "format");
  SN_TRY(write_cell(w, g->row->cells[SN_MANIFEST_FORMAT], err));
  sn_json_write_key(w, "modality");
  if (g->row->cells[SN_MANIFEST_MODALITY][0] == 0) {
    sn_json_write_null(w);
  } else {
    SN_TRY(write_cell(w, g->row->cells[SN_MANIFEST_MODALITY], err));
  }
  sn_json_write_key(w, "rate_hz");
  sn_json_begin_array(w);
  sn_json_write_i64(w, num);
  sn_json_write_i64(w, den);
  sn_json_end_array(w);
  sn_json_write_key(w, "channels");
  SN_TRY(write_list(w, g->row->cells[SN_MANIFEST_CHANNELS], err));
  sn_json_put_i64(w, "recordings", g->n);
  sn_json_put_f64(w, "duration_s", g->seconds);
  sn_json_put_f64(w, "shortest_s", g->shortest);
  sn_json_put_f64(w, "longest_s", g->longest);
  sn_json_end_object(w);
  return SN_OK;
}

static void write_counts(sn_json_writer *w, const summary *s) {
  sn_json_write_key(w, "by_status");
  sn_json_begin_object(w);
  for (int64_t k = 0; k < s->n_statuses; k++) {
    sn_json_put_i64(w, s->statuses[k].name, s->statuses[k].n);
  }
  sn_json_end_object(w);
  sn_json_write_key(w, "other_files");
  sn_json_begin_object(w);
  for (int64_t k = 0; k < s->report->n_extensions; k++) {
    sn_json_put_i64(w, s->report->extensions[k], s->report->extension_counts[k]);
  }
  sn_json_end_object(w);
  const struct {
    const char *key;
    int64_t value;
  } NUMBERS[] = {{"recordings", s->manifest->n},      {"ok", s->manifest->n_ok},
                 {"subjects", s->n_subjects},         {"without_subject", s->n_without_subject},
                 {"without_unit", s->n_without_unit}, {"files", s->report->n_files},
                 {"folders", s->report->n_folders},   {"unreadable_folders", s->report->n_unlisted_folders},
                 {"from_cache", s->report->n_reused}, {"bytes", (int64_t)s->bytes}};
  for (size_t i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
    sn_json_put_i64(w, NUMBERS[i].key, NUMBERS[i].value);
  }
}

static sn_status write_json(const summary *s, const char *out, bool whole, sn_string *text, sn_error *err) {
  sn_json_writer w;
  sn_json_writer_init(&w, text, 2);
  sn_json_begin_object(&w);
  sn_json_put_string(&w, "name", s->manifest->name);
  sn_json_put_string(&w, "manifest", out);
  sn_json_put_string(&w, "sha256", s->manifest->hash);
  sn_json_put_string(&w, "checksums", whole ? "sha256" : "quick");
  write_counts(&w, s);
  sn_json_put_f64(&w, "duration_s", s->seconds);
  sn_json_put_f64(&w, "seconds", s->took_s);
  sn_json_write_key(&w, "kinds");
  sn_json_begin_array(&w);
  for (int64_t k = 0; k < s->n_groups; k++) SN_TRY(write_group(&w, &s->groups[k], err));
  sn_json_end_array(&w);
  sn_json_write_key(&w, "left_out");
  sn_json_begin_array(&w);
  for (int64_t i = 0; i < s->manifest->n; i++) {
    const sn_manifest_row *row = &s->manifest->rows[i];
    if (row->ok) continue;
    sn_json_begin_object(&w);
    sn_json_write_key(&w, "path");
    SN_TRY(write_cell(&w, row->cells[SN_MANIFEST_PATH], err));
    sn_json_write_key(&w, "status");
    SN_TRY(write_cell(&w, row->cells[SN_MANIFEST_STATUS], err));
    sn_json_write_key(&w, "reason");
    SN_TRY(write_cell(&w, row->cells[SN_MANIFEST_REASON], err));
    sn_json_end_object(&w);
  }
  sn_json_end_array(&w);
  sn_json_end_object(&w);
  return sn_json_writer_finish(&w, err);
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static void print_log(void *user, sn_log_level level, const char *message) {
  fflush(stdout);
  fprintf(stderr, "sonde index: %s\n", message);
}

static void print_progress(void *user, int64_t done, int64_t total) {
  if (done == 0 || total < 20000) return;
  fprintf(stderr, "\rsonde index: %" PRId64 " of %" PRId64 " files%s", done, total, done == total ? "\n" : "");
}

static double now_s(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The keys of conditioning alone. */
static sn_status load_config(const sn_args *args, const sn_manifest *manifest, sn_config **out, sn_error *err) {
  const sn_config_entry *tables[SN_MODALITY_TABLES + 1];
  int64_t n = sn_modality_tables(tables);
  tables[n++] = sn_signal_source_config;
  SN_TRY(sn_config_create(tables, n, out, err));
  const char *file = sn_args_get(args, "config");
  if (file != NULL) SN_TRY(sn_config_load(*out, file, err));
  for (int64_t i = 0; i < sn_args_count(args, "set"); i++) {
    SN_TRY(sn_config_set_pair(*out, sn_args_nth(args, "set", i), "--set", err));
  }
  return sn_signal_source_resolve(*out, manifest, err);
}

static sn_status prepare(const sn_args *args, const sn_manifest *manifest, const sn_index_options *options,
                         sn_error *err) {
  const char *path = sn_args_get(args, "prepare");
  sn_config *config = NULL;
  sn_signal_source_options source = {0};
  sn_store *store = NULL;
  int64_t n_faults = 0;
  sn_status status = load_config(args, manifest, &config, err);
  if (status == SN_OK) status = sn_signal_source_options_from_config(config, &source, err);
  if (status != SN_OK) goto done;
  sn_store_write_options write = {.n_threads = options->n_threads,
                                  .verify = source.verify,
                                  .tolerant = options->tolerant,
                                  .assume_unit = options->assume_unit,
                                  .log = options->log};
  SN_TRY_GOTO(sn_store_write(path, manifest, &source.signal, &write, &n_faults, err), done);
  SN_TRY_GOTO(sn_store_open(path, manifest, &source.signal, &store, err), done); /* read back: it must open */
  char bytes[32];
  format_bytes((double)sn_store_bytes(store), bytes, sizeof bytes);
  fprintf(stderr, "sonde index: prepared %s: %s of conditioned signal, %" PRId64 " recordings left out\n", path, bytes,
          n_faults);
done:
  sn_store_close(store);
  sn_config_destroy(config);
  return status;
}

static sn_status run(const sn_args *args, const char *dir, sn_string *json, int *exit_code, sn_error *err) {
  const char *out = sn_args_get(args, "out");
  sn_manifest *manifest = NULL;
  sn_index_report report;
  sn_string cache = {0};
  summary *s = NULL;
  sn_status status = SN_OK;
  int64_t cores = (int64_t)sysconf(_SC_NPROCESSORS_ONLN);
  sn_index_options options = {.name = sn_args_get(args, "name"),
                              .whole_hash = sn_args_has(args, "hash"),
                              .tolerant = sn_args_has(args, "tolerant"),
                              .assume_unit = sn_args_get(args, "assume-unit"),
                              .log = {.write = print_log, .least = SN_LOG_WARNING}};
  double start = now_s();
  if ((sn_args_has(args, "set") || sn_args_has(args, "config")) && !sn_args_has(args, "prepare")) {
    status = sn_fail(err, SN_E_ARGUMENT, "--set and --config only matter with --prepare FILE");
    goto done;
  }
  SN_TRY_GOTO(sn_args_i64(args, "threads", cores, &options.n_threads, err), done);
  SN_TRY_GOTO(sn_args_f64(args, "shortest", 0, &options.shortest_s, err), done);
  if (options.n_threads < 0 || options.n_threads > 1024 || !(options.shortest_s >= 0)) {
    status = sn_fail(err, SN_E_ARGUMENT, "--threads must be 0 to 1024 and --shortest at least 0");
    goto done;
  }
  if (out != NULL) SN_TRY_GOTO(sn_manifest_check_output(out, err), done);
  if (sn_args_has(args, "prepare")) SN_TRY_GOTO(sn_store_check_output(sn_args_get(args, "prepare"), err), done);
  if (isatty(STDERR_FILENO)) options.progress = print_progress;
  if (out != NULL) {
    SN_TRY_GOTO(sn_string_printf(&cache, err, "%s.cache", out), done);
    SN_TRY_GOTO(sn_index_cache_check_output(cache.data, err), done);
    if (sn_args_has(args, "fresh") && sn_path_exists(cache.data)) SN_TRY_GOTO(sn_remove_tree(cache.data, err), done);
    options.cache_path = cache.data;
  }
  SN_TRY_GOTO(sn_index_directory(dir, &options, &manifest, &report, err), done);
  if (out != NULL) SN_TRY_GOTO(sn_manifest_save(manifest, out, err), done);
  double took_s = now_s() - start;
  if (sn_args_has(args, "prepare")) SN_TRY_GOTO(prepare(args, manifest, &options, err), done);
  SN_TRY_GOTO(sn_alloc(&s, 1, sizeof *s, "summary", err), done);
  SN_TRY_GOTO(summarize(s, manifest, &report, err), done);
  s->took_s = took_s;
  if (sn_args_has(args, "json")) {
    SN_TRY_GOTO(write_json(s, out, options.whole_hash, json, err), done);
  } else {
    print_summary(s, out);
  }
  fflush(stdout); /* before what goes to standard error */
  if (report.n_unlisted_folders > 0) {
    fprintf(stderr, "sonde index: %" PRId64 " folders could not be listed\n", report.n_unlisted_folders);
    *exit_code = 1;
  }
  if (manifest->n_ok == 0) {
    fprintf(stderr, "sonde index: no recording can be used\n");
    *exit_code = 1;
  }
done:
  sn_free(s);
  sn_string_free(&cache);
  sn_manifest_destroy(manifest);
  return status;
}

int sn_command_index(int argc, char **argv);
int sn_command_index(int argc, char **argv) {
  sn_args *args = NULL;
  sn_error err;
  int exit_code = 0;
  sn_error_clear(&err);
  sn_status status = sn_args_parse(OPTIONS, "DIR...", 1, -1, argc, argv, &args, &err);
  if (status == SN_OK && sn_args_wants_help(args)) {
    sn_args_print_help(
        OPTIONS, "index", "DIR...",
        "The manifest of a directory: one line per recording, headers only, nothing left out silently.\n"
        "PhysioNet trees (RECORDS files), BIDS trees, TUH and Sleep-EDF folders, plain folders. Exit status: 0 it is indexed; 1 a folder could\n"
        "not be listed, or no recording can be used; 2 the command line is wrong, or nothing here is a recording.");
  } else if (status == SN_OK) {
    static const char *const OF_ONE[] = {"out", "name", "prepare", NULL};
    status = sn_unit_check(sn_args_get(args, "assume-unit"), "assume-unit", &err);
    if (status == SN_OK) status = sn_each_directory(args, OF_ONE, "index", run, &exit_code, &err);
  }
  sn_args_destroy(args);
  if (status != SN_OK) {
    return sn_terminal_fail("index", &err);
  }
  return exit_code;
}
