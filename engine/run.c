#include "engine/run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/train_config.h"
#include "objectives/objective.h"
#ifndef SONDE_MINIMAL
#include "datasets/source_signal.h"
#include "datasets/token_stage.h"
#include "modalities/ecg/beat_tokens.h"
#include "engine/run_signal.h"
#include "engine/run_sources.h"
#include "modalities/signal/augment.h"
#endif

const sn_config_entry sn_run_config[] = {
    {"data.dir", SN_CONFIG_TEXT, NULL, 0, 0, NULL, NULL, "directory of recordings, or 'synthetic' for made-up tokens"},
    {"data.relative_to", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL,
     "folder in which the run was begun, written by it: relative paths of data.* that are not here are looked for there"},
    {"data.name", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "name of the data set; default: the directory's own"},
    {"data.share", SN_CONFIG_REAL, "0", 0, 1e9, NULL, NULL,
     "of a source: its share of the tokens, relative to the others' or a fraction; 0: left to the data (data.share_exponent)"},
    {"data.share_exponent", SN_CONFIG_REAL, "1", 0, 8, NULL, NULL,
     "shares that are left to the data go by tokens^exponent: 1 as they come, 0 all alike"},
    {"data.people", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL,
     "whose ids a data set's persons have: sources that name the same share their people; default: its own"},
    {"data.fold", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "i/k: leave out the people of fold i of k, from 0; default: none"},
    {"data.split_seed", SN_CONFIG_INT, "0", 0, 9e15, NULL, NULL, "of the folds"},
    {"data.subject", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL,
     "where a person's identity stands: a column of data.labels, 'recording' (persons unknown), default: the header"},
    {"data.labels", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "CSV or TSV file with a line per recording"},
    {"data.key", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "column of data.labels that names the recording"},
    {"data.split", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "column of data.labels that names a fixed part (train/test, DS1/DS2)"},
    {"data.stratify", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "column of data.labels whose classes the folds share evenly"},
    {"data.label", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL,
     "a number for each recording that an objective learns from (contrast.loss: kernel): a column of data.labels, header:FIELD or "
     "participants:COLUMN"},
    {"data.train_part", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "value of data.split that is trained on; default: train, training or DS1"},
    {"data.test_part", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "value of data.split that is only tested on; default: test, testing or DS2"},
    {"data.exclude", SN_CONFIG_TEXTS, "", 0, 0, NULL, NULL, "recordings that are left out, by path or stem"},
    {"synthetic.windows", SN_CONFIG_INT, "1000", 1, 1e12, NULL, NULL, "synthetic tokens: number of windows"},
    {"synthetic.patch", SN_CONFIG_INT, "20", 1, 65536, NULL, NULL, "synthetic tokens: values of a patch"},
    {"synthetic.tokens_least", SN_CONFIG_INT, "50", 1, 1e9, NULL, NULL, "synthetic tokens: fewest of a sample"},
    {"synthetic.tokens_most", SN_CONFIG_INT, "50", 1, 1e9, NULL, NULL, "synthetic tokens: most of a sample"},
    {"synthetic.channels", SN_CONFIG_INT, "1", 1, 4096, NULL, NULL, "synthetic tokens: channels"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

enum { MOST_RUN_TABLES = 24, MOST_MORE = 8 };

sn_status sn_run_config_create_with(const sn_config_entry *const *more, int64_t n_more, sn_config **out, sn_error *err) {
  const sn_config_entry *tables[MOST_RUN_TABLES] = {sn_run_config};
  int64_t n = 1;
  if (n_more > MOST_MORE) return sn_fail(err, SN_E_STATE, "configuration: more than %d further tables", MOST_MORE);
#ifndef SONDE_MINIMAL
  tables[n++] = sn_signal_source_config;
  tables[n++] = sn_augment_config;
  tables[n++] = sn_token_stage_config;
  tables[n++] = sn_beat_token_config;
  n += sn_modality_tables(tables + n);
#endif
  for (int64_t i = 0; i < n_more; i++) tables[n++] = more[i];
  return sn_engine_config_create(tables, n, out, err);
}

sn_status sn_run_config_create(sn_config **out, sn_error *err) { return sn_run_config_create_with(NULL, 0, out, err); }

/* A fold that is no fold is told before the data are looked at. */
static sn_status check_labels(const sn_config *config, sn_error *err) {
  const char *parts = sn_config_text(config, "data.fold");
  int64_t fold, folds;
  if (parts[0] != '\0') SN_TRY(sn_parse_fold(parts, &fold, &folds, err));
  static const char *const NEEDS[][2] = {{"data.train_part", "data.split"}, {"data.test_part", "data.split"},
                                         {"data.key", "data.labels"}, {"data.split", "data.labels"},
                                         {"data.stratify", "data.labels"}};
  for (size_t i = 0; i < sizeof NEEDS / sizeof NEEDS[0]; i++) {
    const char *value = sn_config_text(config, NEEDS[i][0]);
    if (value[0] == '\0' || sn_config_text(config, NEEDS[i][1])[0] != '\0') continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, NEEDS[i][0], "%s is '%s', and %s is not set: it would change nothing. Set %s "
                      "too, or leave it out", NEEDS[i][0], value, NEEDS[i][1], NEEDS[i][1]);
  }
  return SN_OK;
}

sn_status sn_run_check_config(sn_config *config, sn_error *err) {
  const int64_t n = sn_config_sources(config);
  if (n == 0) {
    if (sn_config_text(config, "data.dir")[0] != '\0') return check_labels(config, err);
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "data.dir", "data.dir is empty: name a directory of recordings, or list several "
                      "under sources");
  }
#ifdef SONDE_MINIMAL
  return sn_fail(err, SN_E_UNSUPPORTED, "sources: the minimal build reads no recordings; use --data synthetic");
#else
  for (int64_t i = 0; i < n; i++) SN_TRY(check_labels(sn_config_source(config, i), err));
  /* The top level has no directory, and whoever reads the key finds it empty. */
  SN_TRY(sn_config_default_pairs(config, "data.dir=", "sources", err));
  return sn_run_sources_check(config, err);
#endif
}

sn_status sn_run_save_config(const char *run, const sn_config *config, sn_error *err) {
  sn_string text = {0};
  sn_json_writer writer;
  char *path = NULL;
  sn_status status;
  sn_json_writer_init(&writer, &text, 2);
  sn_config_write_json(config, &writer);
  SN_TRY_GOTO(sn_json_writer_finish(&writer, err), done);
  SN_TRY_GOTO(sn_string_append(&text, "\n", 1, err), done);
  SN_TRY_GOTO(sn_make_directories(run, err), done);
  SN_TRY_GOTO(sn_path_join(run, "config.yaml", &path, err), done);
  SN_TRY_GOTO(sn_check_output(path, "{\n  \"train\": {", "a run's configuration", err), done);
  status = sn_write_file(path, text.data, text.length, err);
done:
  sn_free(path);
  sn_string_free(&text);
  return status;
}

/* A relative path that is not here, and is there where the run was begun. */
static sn_status look_where_begun(sn_config *config, const char *key, sn_error *err) {
  if (!sn_config_is_set(config, key)) return SN_OK;
  const char *given = sn_config_text(config, key), *begun = sn_config_text(config, "data.relative_to");
  char *path = NULL;
  if (given[0] == '\0' || given[0] == '/' || begun[0] == '\0' || sn_path_exists(given)) return SN_OK;
  SN_TRY(sn_path_join(begun, given, &path, err));
  const sn_status status = sn_path_exists(path) ? sn_config_set(config, key, path, "where the run was begun", -1, err) : SN_OK;
  sn_free(path);
  return status;
}

sn_status sn_run_check_data_dir(const sn_config *config, sn_error *err) {
  const char *given = sn_config_text(config, "data.dir"), *begun = sn_config_text(config, "data.relative_to");
  if (begun[0] == '\0' || sn_path_exists(given)) return SN_OK;
  if (given[0] == '/')
    return sn_fail_at(err, SN_E_IO, -1, -1, "data.dir", "'%.160s': the recordings are not there: say where they are (--data DIR)", given);
  return sn_fail_at(err, SN_E_IO, -1, -1, "data.dir", "'%.80s': the recordings are neither here nor in '%.100s', where the run was begun: "
                    "say where they are (--data DIR)", given, begun);
}

sn_status sn_run_load_config_into(const char *run, sn_config *config, sn_error *err) {
  char *path = NULL;
  SN_TRY(sn_path_join(run, "config.yaml", &path, err));
  sn_status status = sn_path_exists(path)
                         ? sn_config_load(config, path, err)
                         : sn_fail(err, SN_E_IO, "%s: not a run folder: there is no config.yaml in it", run);
  if (status == SN_OK) { /* a folder of another hand may lack what nothing stands in for */
    status = sn_config_check_complete(config, err);
    if (status != SN_OK) status = sn_error_prefix(err, status, "%s", path);
  }
  sn_free(path);
  if (status != SN_OK) return status;
  for (int64_t i = -1; i < sn_config_sources(config); i++) {
    sn_config *c = i < 0 ? config : sn_config_source(config, i);
    SN_TRY(look_where_begun(c, "data.dir", err));
    SN_TRY(look_where_begun(c, "data.labels", err));
#ifndef SONDE_MINIMAL /* its key belongs to recordings */
    SN_TRY(look_where_begun(c, "data.store", err));
#endif
  }
  return SN_OK;
}

sn_status sn_run_load_config(const char *run, sn_config **out, sn_error *err) {
  sn_config *config = NULL;
  sn_status status;
  SN_TRY(sn_run_config_create(&config, err));
  SN_TRY_GOTO(sn_run_load_config_into(run, config, err), done);
  *out = config;
  config = NULL;
done:
  sn_config_destroy(config);
  return status;
}

sn_status sn_parse_fold(const char *text, int64_t *fold, int64_t *folds, sn_error *err) {
  char first[24];
  const char *slash = strchr(text, '/');
  if (slash != NULL && slash - text < (int64_t)sizeof first) {
    memcpy(first, text, (size_t)(slash - text));
    first[slash - text] = '\0';
    if (sn_parse_i64(first, fold) && sn_parse_i64(slash + 1, folds) && *folds >= 2 && *fold >= 0 && *fold < *folds)
      return SN_OK;
  }
  return sn_fail(err, SN_E_ARGUMENT, "fold '%s': expected i/k with 0 <= i < k and k >= 2, such as 0/5", text);
}

bool sn_same_directory(const char *a, const char *b) {
  char *x = realpath(a, NULL), *y = realpath(b, NULL);
  const bool same = x != NULL && y != NULL && strcmp(x, y) == 0;
  free(x);
  free(y);
  return same;
}

/* realpath of the part of `path` that exists; NULL when memory ran out. */
static char *existing_part(const char *path) {
  char *copy = malloc(strlen(path) + 2);
  if (copy != NULL) strcpy(copy, path);
  while (copy != NULL) {
    char *real = realpath(copy, NULL);
    if (real != NULL) {
      free(copy);
      return real;
    }
    char *slash = strrchr(copy, '/');
    if (slash == NULL) strcpy(copy, strcmp(copy, ".") == 0 ? "/" : ".");
    else slash[slash == copy] = '\0';
  }
  return NULL;
}

static bool lies_in(const char *path, const char *dir) {
  char *inner = existing_part(path), *outer = realpath(dir, NULL);
  const size_t n = outer != NULL ? strlen(outer) : 0;
  const bool in = inner != NULL && outer != NULL && strncmp(inner, outer, n) == 0 &&
                  (inner[n] == '\0' || inner[n] == '/' || strcmp(outer, "/") == 0);
  free(inner);
  free(outer);
  return in;
}

sn_status sn_run_check_place(const sn_config *config, const char *run, sn_error *err) {
  const int64_t n = sn_config_sources(config);
  for (int64_t i = 0; i < (n > 0 ? n : 1); i++) {
    const char *dir = sn_config_text(n > 0 ? sn_config_source(config, i) : config, "data.dir");
    if (strcmp(dir, "synthetic") == 0 || !lies_in(run, dir)) continue;
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "out", "%s: a run's folder cannot lie in the directory of its data, %s: name "
                      "another with --out", run, dir);
  }
  return SN_OK;
}

sn_status sn_run_choose_source(sn_config *config, const char *run, const char *data, sn_error *err) {
  const int64_t n = sn_config_sources(config);
  char names[160] = "";
  for (int64_t i = 0; i < n; i++) {
    const char *dir = sn_config_text(sn_config_source(config, i), "data.dir");
    const size_t used = strlen(names);
    snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", dir);
    if (data == NULL || !sn_same_directory(data, dir)) continue;
    sn_config_take_source(config, i);
    return SN_OK;
  }
  if (data == NULL && n > 0)
    return sn_fail(err, SN_E_ARGUMENT, "%s was pretrained on several sources (%s): name the one with --data DIR", run, names);
  sn_config_drop_sources(config);
  return SN_OK;
}

static sn_status open_synthetic(const sn_config *c, sn_source **out, sn_error *err) {
  sn_synthetic_options o = {.n_windows = sn_config_int(c, "synthetic.windows"),
                            .patch_size = sn_config_int(c, "synthetic.patch"),
                            .tokens_least = sn_config_int(c, "synthetic.tokens_least"),
                            .tokens_most = sn_config_int(c, "synthetic.tokens_most"),
                            .n_channels = sn_config_int(c, "synthetic.channels"),
                            .seed = (uint64_t)sn_config_int(c, "train.seed")};
  return sn_source_create_synthetic(&o, out, err);
}

sn_status sn_run_attach_stage(sn_source *source, const sn_config *config, bool with_targets, sn_error *err) {
  return sn_run_attach_source_stage(source, config, config, with_targets, err);
}

sn_status sn_run_attach_source_stage(sn_source *source, const sn_config *run, const sn_config *config, bool with_targets,
                                     sn_error *err) {
  sn_objective_needs needs = {0};
  /* Those of all phases: the same samples serve each. */
  for (int64_t i = 0; with_targets && i < sn_config_phases(run); i++) {
    sn_objective_needs own;
    SN_TRY(sn_objective_get_needs(sn_config_phase(run, i), &own, err));
    for (int k = 0; k < own.n_targets; k++) SN_TRY(sn_objective_need(&needs, own.targets[k], err));
  }
#ifdef SONDE_MINIMAL
  if (needs.n_targets > 0)
    return sn_fail(err, SN_E_UNSUPPORTED, "the objective needs the target '%s', which the minimal build does not make",
                   needs.targets[0]);
  return SN_OK;
#else
  sn_token_stage_options o = {.n_targets = needs.n_targets, .targets = (const char (*)[SN_TARGET_NAME])needs.targets};
  if (strcmp(sn_config_text(config, "data.dir"), "synthetic") == 0) {
    o.rate_hz = (double)source->patch_size / source->patch_step_s;
    o.window_patches = source->max_tokens / source->n_channel_ids;
  } else {
    const double patch_s = sn_config_real(config, "data.patch"), window_s = sn_config_real(config, "data.window");
    o.rate_hz = (double)source->patch_size / patch_s;
    o.patch_stride = (int64_t)floor(source->patch_step_s * o.rate_hz + 0.5);
    o.window_patches = 1 + (int64_t)floor((window_s - patch_s) / source->patch_step_s + 1e-6);
  }
  return sn_token_stage_attach(source, config, &o, err);
#endif
}

struct sn_run_data {
  sn_source *source;
#ifndef SONDE_MINIMAL
  sn_run_signal *signal;
  sn_run_sources *sources;
#endif
};

sn_status sn_run_data_open(sn_config *config, const char *run, bool resume, const sn_log *log, sn_run_data **out,
                           sn_error *err) {
  const char *dir = sn_config_text(config, "data.dir");
  sn_run_data *data = NULL;
  sn_status status;
  SN_TRY(sn_alloc(&data, 1, sizeof *data, "run data", err));
#ifndef SONDE_MINIMAL
  if (sn_config_sources(config) > 0) {
    SN_TRY_GOTO(sn_run_sources_open(config, run, resume, log, &data->sources, err), fail);
    SN_TRY_GOTO(sn_run_sources_mix(data->sources, config, log, &data->source, err), fail);
    *out = data;
    return SN_OK;
  }
#endif
  if (strcmp(dir, "synthetic") == 0) {
    SN_TRY_GOTO(open_synthetic(config, &data->source, err), fail);
  } else {
#ifdef SONDE_MINIMAL
    status = sn_fail(err, SN_E_UNSUPPORTED, "data.dir '%s': the minimal build reads no recordings; use --data synthetic", dir);
    goto fail;
#else
    SN_TRY_GOTO(sn_run_signal_open(config, run, resume, log, &data->signal, err), fail);
    SN_TRY_GOTO(sn_run_signal_source(data->signal, config, SN_ROLE_PRETRAIN, log, &data->source, err), fail);
#endif
  }
  SN_TRY_GOTO(sn_run_attach_stage(data->source, config, true, err), fail);
  *out = data;
  return SN_OK;
fail:
  sn_run_data_destroy(data);
  return status;
}

void sn_run_data_destroy(sn_run_data *data) {
  if (data == NULL) return;
  sn_source_destroy(data->source);
#ifndef SONDE_MINIMAL
  sn_run_signal_destroy(data->signal);
  sn_run_sources_destroy(data->sources);
#endif
  sn_free(data);
}

void sn_run_data_note(const sn_run_data *data, const sn_log *log) {
#ifdef SONDE_MINIMAL
  (void)data;
  (void)log;
#else
  sn_signal_source_report report;
  if (strcmp(data->source->vtable->name, "signal") != 0 || !data->source->may_lack_beats) return; /* of a mixture only metrics say it */
  sn_signal_source_get_report(data->source, &report);
  const sn_beat_counts *b = &report.beats;
  sn_log_write(log, b->n_nobeat > 0 ? SN_LOG_WARNING : SN_LOG_INFO,
               "beats: %lld in %lld recordings; %lld more at the ends of segments are not complete and left out; nobeat: %lld "
               "recordings without any%s%s, cut into fixed patches", (long long)b->n_beats, (long long)b->n_recordings,
               (long long)b->n_dropped, (long long)b->n_nobeat, b->n_nobeat > 0 ? ", first " : "",
               b->n_nobeat > 0 ? data->signal->manifest->rows[b->first_nobeat].path : "");
#endif
}

sn_source *sn_run_data_source(const sn_run_data *data) { return data->source; }

sn_status sn_run_settle_config(sn_config *config, const sn_run_data *data, sn_error *err) {
  char text[32];
  bool periodic = false;
  for (int64_t i = 0; i < sn_config_list_length(config, "model.position"); i++) {
    const char *part = sn_config_list_text(config, "model.position", i);
    periodic = periodic || strcmp(part, "fourier4d") == 0 || strcmp(part, "sjepa") == 0;
  }
  if (!periodic || sn_config_real(config, "model.position_period") > 0 || data->source->most_positions < 1) return SN_OK;
  snprintf(text, sizeof text, "%lld", (long long)data->source->most_positions);
  return sn_config_set(config, "model.position_period", text, "the data", -1, err);
}
