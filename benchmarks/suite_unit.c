/* needs: full */
/* One pretraining of a suite: its folder, whether it is done, and training it. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/suite_private.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/safetensors.h"
#include "core/sha256.h"
#include "core/stream.h"
#include "engine/checkpoint.h"
#include "engine/pretrain.h"
#include "engine/run.h"
#include "objectives/term.h"

enum { MOST_JSON = 64 << 20 };

/* ---- architecture ---- */

static void write_value(const sn_json *json, sn_json_writer *w) {
  int64_t integer;
  double real;
  switch (sn_json_kind(json)) {
    case SN_JSON_NULL: sn_json_write_null(w); return;
    case SN_JSON_BOOL: sn_json_write_bool(w, sn_json_as_bool(json)); return;
    case SN_JSON_INT: sn_json_write_i64(w, sn_json_as_i64(json, &integer) ? integer : 0); return;
    case SN_JSON_REAL: sn_json_write_f64(w, sn_json_as_f64(json, &real) ? real : 0); return;
    case SN_JSON_STRING: sn_json_write_string(w, sn_json_as_string(json)); return;
    default: break;
  }
  const bool object = sn_json_kind(json) == SN_JSON_OBJECT;
  if (object) sn_json_begin_object(w);
  else sn_json_begin_array(w);
  for (int64_t i = 0; i < sn_json_length(json); i++) {
    if (object) sn_json_write_key(w, sn_json_key(json, i));
    write_value(sn_json_at(json, i), w);
  }
  if (object) sn_json_end_object(w);
  else sn_json_end_array(w);
}

/* Groups of settings that training and its objective read. A group that is not known here counts as the encoder's: then more
 * random encoders are probed than need be, never fewer. */
static bool of_training(const char *group) {
  static const char *const GROUPS[] = {"train", "init", "objective", "phases", "view", "augment", "monitor"};
  for (size_t i = 0; i < sizeof GROUPS / sizeof GROUPS[0]; i++)
    if (strcmp(GROUPS[i], group) == 0) return true;
  for (int64_t k = 0; k < sn_n_objective_kinds; k++)
    for (const sn_config_entry *e = sn_objective_kinds[k]->config; e != NULL && e->key != NULL; e++)
      if (strncmp(e->key, group, strlen(group)) == 0 && e->key[strlen(group)] == '.') return true;
  return false;
}

static sn_status make_architecture(suite_unit *u, sn_error *err) {
  sn_string all = {0}, text = {0};
  sn_json *json = NULL;
  sn_json_writer w;
  sn_status status;
  sn_json_writer_init(&w, &all, 0);
  sn_config_write_json(u->config, &w);
  SN_TRY_GOTO(sn_json_writer_finish(&w, err), done);
  SN_TRY_GOTO(sn_json_parse(all.data, all.length, "settings", &json, err), done);
  sn_json_writer_init(&w, &text, 0);
  sn_json_begin_object(&w);
  for (int64_t i = 0; i < sn_json_length(json); i++) {
    if (of_training(sn_json_key(json, i))) continue;
    sn_json_write_key(&w, sn_json_key(json, i));
    write_value(sn_json_at(json, i), &w);
  }
  sn_json_end_object(&w);
  status = sn_json_writer_finish(&w, err);
  if (status == SN_OK) u->architecture = text.data;
  else sn_string_free(&text);
done:
  sn_json_destroy(json);
  sn_string_free(&all);
  return status;
}

/* ---- the unit ---- */

static sn_status folder_of(const suite_spec *spec, const suite_unit *u, const char *out, char **folder, sn_error *err) {
  const char *set = spec->sets[u->set].name;
  char name[256], fold[32] = "";
  if (u->fold >= 0) snprintf(fold, sizeof fold, "/fold-%" PRId64, u->fold);
  snprintf(name, sizeof name, "runs/%s%s%s/seed-%" PRId64 "%s", set, set[0] != '\0' ? "/" : "", spec->entries[u->entry].name,
           u->seed, fold);
  return sn_path_join(out, name, folder, err);
}

sn_status suite_unit_create(const suite_spec *spec, int64_t set, int64_t entry, int64_t seed, int64_t fold, const char *out,
                            suite_unit *u, sn_error *err) {
  const char *name = spec->sets[set].name;
  char where[32] = "";
  *u = (suite_unit){.set = set, .entry = entry, .seed = seed, .fold = fold, .parameters = -1, .encoder_parameters = -1,
                    .seconds = NAN};
  if (fold >= 0) snprintf(where, sizeof where, " fold %" PRId64, fold);
  snprintf(u->label, sizeof u->label, "%s%s%s seed %" PRId64 "%s", name, name[0] != '\0' ? "/" : "", spec->entries[entry].name, seed,
           where);
  SN_TRY(folder_of(spec, u, out, &u->folder, err));
  SN_TRY(suite_spec_config(spec, &spec->sets[set], &spec->entries[entry], seed, fold, &u->config, &u->steps, &u->planned_tokens,
                           err));
  return make_architecture(u, err);
}

void suite_unit_free(suite_unit *u) {
  sn_config_destroy(u->config);
  sn_free(u->architecture);
  sn_free(u->folder);
}

/* ---- files of a run ---- */

static sn_status file_of(const suite_unit *u, const char *name, char **path, bool *there, sn_error *err) {
  SN_TRY(sn_path_join(u->folder, name, path, err));
  *there = sn_path_exists(*path);
  return SN_OK;
}

static sn_status is_there(const suite_unit *u, const char *name, bool *there, sn_error *err) {
  char *path = NULL;
  const sn_status status = file_of(u, name, &path, there, err);
  sn_free(path);
  return status;
}

static sn_status read_text(const char *path, char **text, int64_t *n, sn_error *err) {
  sn_stream *stream = NULL;
  SN_TRY(sn_stream_open(path, &stream, err));
  const sn_status status = sn_stream_read_all(stream, MOST_JSON, text, n, err);
  sn_stream_close(stream);
  return status;
}

static sn_status write_requested(suite_unit *u, sn_error *err) {
  sn_string text = {0};
  sn_json_writer w;
  char *path = NULL;
  sn_status status;
  sn_json_writer_init(&w, &text, 1);
  sn_config_write_json(u->config, &w);
  SN_TRY_GOTO(sn_json_writer_finish(&w, err), done);
  SN_TRY_GOTO(sn_string_append(&text, "\n", 1, err), done);
  SN_TRY_GOTO(sn_make_directories(u->folder, err), done);
  SN_TRY_GOTO(sn_path_join(u->folder, "requested.json", &path, err), done);
  SN_TRY_GOTO(sn_write_file(path, text.data, text.length, err), done);
  sn_sha256_text(text.data, text.length, u->hash);
done:
  sn_free(path);
  sn_string_free(&text);
  return status;
}

/* The first setting that the result depends on and that is another now; text stays empty when there is none. */
static sn_status find_change(const sn_config *before, const sn_config *now, sn_string *text, sn_error *err) {
  const int64_t n = sn_config_phases(now);
  sn_string change = {0};
  sn_status status = SN_OK;
  if (sn_config_phases(before) != n || (sn_config_phase(before, 0) == before) != (sn_config_phase(now, 0) == now))
    return sn_string_append(text, "phases", -1, err);
  for (int64_t p = 0; p < n && text->length == 0; p++)
    for (int64_t i = -1; text->length == 0;) {
      SN_TRY_GOTO(sn_config_next_change(sn_config_phase(before, p), sn_config_phase(now, p), i, &i, &change, err), done);
      if (i < 0) break;
      if (!sn_pretrain_is_neutral(sn_config_key(now, i))) SN_TRY_GOTO(sn_string_append(text, change.data, -1, err), done);
    }
done:
  sn_string_free(&change);
  return status;
}

static sn_status compare_requested(const suite_spec *spec, suite_unit *u, const char *path, sn_error *err) {
  const suite_entry *entry = &spec->entries[u->entry];
  sn_config *before = NULL;
  sn_string change = {0};
  char *text = NULL;
  int64_t n = 0;
  sn_error local;
  sn_status status;
  SN_TRY_GOTO(read_text(path, &text, &n, err), done);
  sn_sha256_text(text, n, u->hash);
  SN_TRY_GOTO(sn_run_config_create(&before, err), done);
  if (sn_config_load(before, path, &local) != SN_OK) {
    status = sn_document_fail(entry->node, spec->path, err, "run '%s': the settings that %s was begun with cannot be read by this "
                              "version (%s): remove the folder, or give the run another name", entry->name, u->folder, local.message);
    goto done;
  }
  SN_TRY_GOTO(find_change(before, u->config, &change, err), done);
  if (change.length > 0)
    status = sn_document_fail(entry->node, spec->path, err, "run '%s': %s was begun with other settings (%s): give the run another "
                              "name, or remove the folder", entry->name, u->folder, change.data);
  if (status != SN_OK && err != NULL) status = err->code = SN_E_STATE;
done:
  sn_config_destroy(before);
  sn_string_free(&change);
  sn_free(text);
  return status;
}

/* ---- what a run took ---- */

/* Sum of the steps' times. Of a step that was made again after an interruption the last counts. */
static sn_status sum_seconds(const suite_unit *u, double *seconds, sn_error *err) {
  char *path = NULL, *text = NULL;
  double *ms = NULL;
  bool there;
  int64_t n = 0;
  sn_status status;
  *seconds = NAN;
  SN_TRY_GOTO(file_of(u, "timing.jsonl", &path, &there, err), done);
  if (!there) goto done;
  SN_TRY_GOTO(read_text(path, &text, &n, err), done);
  SN_TRY_GOTO(sn_alloc(&ms, u->steps + 1, sizeof *ms, "timing", err), done);
  *seconds = 0;
  for (char *line = text, *end; line < text + n; line = end + 1) {
    sn_json *json = NULL;
    sn_error local;
    int64_t step = 0;
    double value = 0;
    end = memchr(line, '\n', (size_t)(text + n - line));
    if (end == NULL) end = text + n;
    if (sn_json_parse(line, end - line, "timing.jsonl", &json, &local) != SN_OK) continue; /* cut off by a kill */
    if (sn_json_get_i64(json, "step", &step, &local) == SN_OK && sn_json_get_f64(json, "step_ms", &value, &local) == SN_OK &&
        step >= 0 && step <= u->steps)
      ms[step] = value;
    sn_json_destroy(json);
  }
  for (int64_t i = 0; i <= u->steps; i++) *seconds += 1e-3 * ms[i];
done:
  sn_free(ms);
  sn_free(text);
  sn_free(path);
  return status;
}

static sn_status count_encoder(const suite_unit *u, int64_t *n, sn_error *err) {
  static const char *const PARTS[] = {"embed.", "backbone."};
  sn_safetensors *file = NULL;
  char *checkpoint = NULL, *path = NULL;
  int64_t step;
  sn_status status;
  *n = 0;
  SN_TRY_GOTO(sn_checkpoint_find(u->folder, -1, NULL, &checkpoint, &step, err), done);
  SN_TRY_GOTO(sn_path_join(checkpoint, "model.safetensors", &path, err), done);
  SN_TRY_GOTO(sn_safetensors_open(path, &file, err), done);
  for (int64_t i = 0; i < sn_safetensors_count(file); i++) {
    const sn_named_tensor t = sn_safetensors_entry(file, i);
    for (size_t k = 0; k < sizeof PARTS / sizeof PARTS[0]; k++)
      if (strncmp(t.name, PARTS[k], strlen(PARTS[k])) == 0) *n += sn_tensor_count(&t.tensor);
  }
done:
  sn_safetensors_close(file);
  sn_free(checkpoint);
  sn_free(path);
  return status;
}

static sn_status write_result(suite_unit *u, const sn_train_result *result, sn_error *err) {
  sn_string text = {0};
  sn_json_writer w;
  char *path = NULL;
  sn_status status;
  u->tokens = result->state.tokens;
  u->parameters = result->parameters;
  u->inexact = result->state.inexact;
  snprintf(u->dtype, sizeof u->dtype, "%s", result->dtype);
  SN_TRY_GOTO(sum_seconds(u, &u->seconds, err), done);
  SN_TRY_GOTO(count_encoder(u, &u->encoder_parameters, err), done);
  sn_json_writer_init(&w, &text, 1);
  sn_json_begin_object(&w);
  sn_json_put_i64(&w, "steps", result->state.step);
  sn_json_put_i64(&w, "tokens", u->tokens);
  sn_json_put_f64(&w, "seconds", u->seconds);
  sn_json_put_i64(&w, "parameters", u->parameters);
  sn_json_put_i64(&w, "encoder_parameters", u->encoder_parameters);
  sn_json_put_string(&w, "dtype", u->dtype);
  sn_json_put_bool(&w, "inexact", u->inexact);
  sn_json_put_string(&w, "engine_version", SONDE_VERSION);
  sn_json_end_object(&w);
  SN_TRY_GOTO(sn_json_writer_finish(&w, err), done);
  SN_TRY_GOTO(sn_string_append(&text, "\n", 1, err), done);
  SN_TRY_GOTO(sn_path_join(u->folder, "result.json", &path, err), done);
  status = sn_write_file(path, text.data, text.length, err);
done:
  sn_free(path);
  sn_string_free(&text);
  return status;
}

static sn_status read_result(suite_unit *u, const char *path, sn_error *err) {
  sn_json *json = NULL;
  const char *dtype = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_json_load(path, &json, err), done);
  SN_TRY_GOTO(sn_json_get_i64(json, "tokens", &u->tokens, err), done);
  SN_TRY_GOTO(sn_json_get_i64(json, "parameters", &u->parameters, err), done);
  SN_TRY_GOTO(sn_json_get_i64(json, "encoder_parameters", &u->encoder_parameters, err), done);
  SN_TRY_GOTO(sn_json_get_bool(json, "inexact", &u->inexact, err), done);
  SN_TRY_GOTO(sn_json_get_string(json, "dtype", &dtype, err), done);
  snprintf(u->dtype, sizeof u->dtype, "%s", dtype);
  if (!sn_json_as_f64(sn_json_get(json, "seconds"), &u->seconds)) u->seconds = NAN;
done:
  sn_json_destroy(json);
  return status;
}

/* ---- state ---- */

static sn_status examine_checkpoint(suite_unit *u, const sn_log *log, sn_error *err) {
  char *checkpoint = NULL, *path = NULL;
  bool there = false;
  sn_error local;
  u->state = SUITE_TO_RESUME;
  const sn_status found = sn_checkpoint_find(u->folder, -1, log, &checkpoint, &u->step, &local);
  sn_free(checkpoint);
  if (found != SN_OK) { /* none yet; or none is whole, and training says so */
    u->step = 0;
    return SN_OK;
  }
  if (u->step != u->steps) return SN_OK;
  sn_status status = file_of(u, "result.json", &path, &there, err);
  if (status == SN_OK && there && read_result(u, path, &local) == SN_OK) u->state = SUITE_DONE;
  sn_free(path);
  return status;
}

sn_status suite_unit_check_place(const suite_unit *u, bool *begun, sn_error *err) {
  bool there;
  SN_TRY(is_there(u, "requested.json", begun, err));
  if (*begun) return SN_OK;
  SN_TRY(is_there(u, "result.json", &there, err)); /* the rest of a run's folder is looked at when the run begins */
  if (!there) return SN_OK;
  return sn_fail(err, SN_E_ARGUMENT, "%s/result.json: is there without the requested.json of a suite: it is not overwritten; choose "
                 "another output folder, or remove it", u->folder);
}

sn_status suite_unit_examine(const suite_spec *spec, suite_unit *u, const sn_log *log, sn_error *err) {
  char *requested = NULL;
  bool was_requested, configured;
  sn_status status;
  u->state = SUITE_TO_DO;
  SN_TRY_GOTO(is_there(u, "config.yaml", &configured, err), done);
  SN_TRY_GOTO(file_of(u, "requested.json", &requested, &was_requested, err), done);
  if (!was_requested) {
    if (configured)
      status = sn_fail(err, SN_E_STATE, "%s: holds a run that no suite has begun (no requested.json): choose another output folder",
                       u->folder);
    goto done;
  }
  SN_TRY_GOTO(compare_requested(spec, u, requested, err), done);
  if (configured) status = examine_checkpoint(u, log, err);
done:
  sn_free(requested);
  return status;
}

typedef struct labelled {
  const sn_suite_options *options;
  const char *label;
} labelled;

static void pass_progress(void *user, const sn_progress *progress) {
  const labelled *l = user;
  l->options->progress(l->options->progress_user, l->label, progress);
}

sn_status suite_unit_train(suite_unit *u, const sn_suite_options *options, sn_error *err) {
  labelled l = {options, u->label};
  sn_train_result result;
  bool configured;
  if (u->state == SUITE_TO_DO) SN_TRY(write_requested(u, err));
  SN_TRY(is_there(u, "config.yaml", &configured, err));
  const sn_pretrain_options o = {.config = u->config, .run = u->folder, .resume = configured, .stop = options->stop,
                                 .log = options->log, .progress = options->progress != NULL ? pass_progress : NULL,
                                 .progress_user = &l};
  SN_TRY(sn_pretrain(&o, &result, err));
  u->step = result.state.step;
  if (result.stopped && u->step < u->steps) return sn_fail(err, SN_END, "%s: stopped at step %" PRId64 ", saved", u->folder, u->step);
  SN_TRY(write_result(u, &result, err));
  u->state = SUITE_DONE;
  return SN_OK;
}
