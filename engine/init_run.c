#include "engine/init_run.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/stream.h"

const sn_config_entry sn_init_config[] = {
    {"init.run", SN_CONFIG_TEXT, "", 0, 0, NULL, NULL, "run folder whose weights this run begins with; default: fresh weights"},
    {"init.step", SN_CONFIG_INT, "-1", -1, 1e9, NULL, NULL, "its checkpoint; -1: the newest"},
    {"init.ema", SN_CONFIG_BOOL, "false", 0, 0, NULL, NULL, "take its moving average of the weights"},
    {"init.parts", SN_CONFIG_CHOICE, "encoder", 0, 0, NULL, "encoder|all",
     "the encoder's weights, or the objective's as well"},
    {NULL, 0, NULL, 0, 0, NULL, NULL, NULL}};

bool sn_init_wanted(const sn_config *config) { return sn_config_text(config, "init.run")[0] != '\0'; }

static sn_status check_patch_step(const char *path, const sn_model *model, sn_error *err) {
  sn_train_state state;
  sn_json *json = NULL;
  const double now = model->shape.patch_step;
  SN_TRY(sn_checkpoint_read_state(path, &state, &json, err));
  sn_json_destroy(json);
  if (fabs(state.patch_step - now) <= 1e-9 * fabs(now)) return SN_OK;
  return sn_fail_at(err, SN_E_STATE, -1, -1, "init.run", "%s: its patches are %g s apart, those of this run %g s: keep "
                    "data.patch and data.rate as they were", path, state.patch_step, now);
}

static sn_status load_weights(const char *file, bool all, const sn_model *model, sn_load_report *report, sn_error *err) {
  sn_named_tensor *list = NULL;
  int64_t n = 0;
  SN_TRY(sn_params_list(model->params, 'w', &list, &n, err));
  if (!all) n = model->n_encoder;
  sn_status status = sn_safetensors_load(file, "", true, list, n, report, err);
  if (status == SN_OK && (report->matched != n || (all && report->unexpected > 0)))
    status = sn_fail_at(err, SN_E_STATE, -1, -1, "init.run",
                        "%s: of %lld %s weights %lld match, %lld are missing (%s), %lld have another shape (%s), %lld are "
                        "not asked for (%s): the two runs do not fit%s", file, (long long)n, all ? "model" : "encoder",
                        (long long)report->matched, (long long)report->missing, report->first_missing,
                        (long long)report->wrong_shape, report->first_wrong, (long long)report->unexpected,
                        report->first_unexpected, all ? "; init.parts encoder takes the encoder alone" : "");
  sn_free(list);
  return status;
}

sn_status sn_init_load(const sn_config *config, sn_model *model, const sn_log *log, sn_error *err) {
  const char *run = sn_config_text(config, "init.run");
  const bool all = strcmp(sn_config_text(config, "init.parts"), "all") == 0;
  char *path = NULL, *file = NULL;
  int64_t found = 0;
  sn_load_report report;
  sn_status status = sn_checkpoint_find(run, sn_config_int(config, "init.step"), log, &path, &found, err);
  if (status == SN_END)
    return sn_fail_at(err, SN_E_STATE, -1, -1, "init.run", "init.run %s: there is no complete checkpoint%s to begin from", run,
                      sn_config_int(config, "init.step") >= 0 ? " of that step" : "");
  if (status != SN_OK) return status;
  SN_TRY_GOTO(check_patch_step(path, model, err), done);
  SN_TRY_GOTO(sn_path_join(path, sn_config_bool(config, "init.ema") ? "ema.safetensors" : "model.safetensors", &file, err),
              done);
  if (!sn_path_exists(file)) {
    status = sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "init.ema", "%s keeps no moving average of its weights (train.ema was "
                        "0): leave out init.ema", run);
    goto done;
  }
  SN_TRY_GOTO(load_weights(file, all, model, &report, err), done);
  for (int64_t i = 0; i < sn_params_count(model->params); i++) sn_params_at(model->params, i)->version++;
  sn_log_write(log, SN_LOG_INFO, "begins from %s step %lld: %lld weights matched, %lld of its objective left there", run,
               (long long)found, (long long)report.matched, (long long)report.unexpected);
done:
  sn_free(file);
  sn_free(path);
  return status;
}

/* --- who was seen ------------------------------------------------------------------------------------------------- */

static sn_status copy_split(const char *from, const char *folder, int64_t number, sn_error *err) {
  enum { MOST = 1 << 30 };
  sn_stream *stream = NULL;
  char *text = NULL, *to = NULL, name[48];
  int64_t n = 0;
  sn_status status;
  snprintf(name, sizeof name, "split-%lld.tsv", (long long)number);
  SN_TRY_GOTO(sn_path_join(folder, name, &to, err), done);
  SN_TRY_GOTO(sn_stream_open(from, &stream, err), done);
  SN_TRY_GOTO(sn_stream_read_all(stream, MOST, &text, &n, err), done);
  status = sn_write_file(to, text, n, err);
done:
  sn_free(text);
  sn_free(to);
  sn_stream_close(stream);
  return status;
}

static sn_status copy_inherited(const char *from, const char *folder, int64_t number, sn_error *err) {
  sn_dir_entry *entries = NULL;
  char *inputs = NULL;
  int64_t n = 0;
  sn_status status;
  SN_TRY_GOTO(sn_path_join(from, "inputs", &inputs, err), done);
  if (!sn_path_is_directory(inputs)) goto done;
  SN_TRY_GOTO(sn_dir_list(inputs, &entries, &n, err), done);
  for (int64_t i = 0; i < n; i++) {
    char *path = NULL;
    if (strncmp(entries[i].name, "split-", 6) != 0) continue;
    SN_TRY_GOTO(sn_path_join(inputs, entries[i].name, &path, err), done);
    status = copy_split(path, folder, number++, err);
    sn_free(path);
    if (status != SN_OK) goto done;
  }
done:
  sn_dir_free(entries, n);
  sn_free(inputs);
  return status;
}

/* Of a run over several sources, each of theirs. */
static sn_status copy_sources(const char *from, const char *folder, int64_t *number, sn_error *err) {
  sn_dir_entry *entries = NULL;
  char *sources = NULL;
  int64_t n = 0;
  sn_status status;
  SN_TRY_GOTO(sn_path_join(from, "sources", &sources, err), done);
  if (!sn_path_is_directory(sources)) goto done;
  SN_TRY_GOTO(sn_dir_list(sources, &entries, &n, err), done);
  for (int64_t i = 0; i < n; i++) {
    char *path = NULL, *split = NULL;
    status = sn_path_join(sources, entries[i].name, &path, err);
    if (status == SN_OK) status = sn_path_join(path, "split.tsv", &split, err);
    if (status == SN_OK) status = copy_split(split, folder, (*number)++, err);
    sn_free(path);
    sn_free(split);
    if (status != SN_OK) goto done;
  }
done:
  sn_dir_free(entries, n);
  sn_free(sources);
  return status;
}

sn_status sn_init_inherit(const sn_config *config, const char *run, sn_error *err) {
  const char *from = sn_config_text(config, "init.run");
  char *folder = NULL, *split = NULL;
  int64_t number = 0;
  sn_status status;
  SN_TRY_GOTO(sn_path_join(run, "inputs", &folder, err), done);
  SN_TRY_GOTO(sn_make_directories(folder, err), done);
  SN_TRY_GOTO(sn_path_join(from, "split.tsv", &split, err), done);
  if (sn_path_exists(split)) SN_TRY_GOTO(copy_split(split, folder, number++, err), done);
  SN_TRY_GOTO(copy_sources(from, folder, &number, err), done);
  status = copy_inherited(from, folder, number, err);
done:
  sn_free(split);
  sn_free(folder);
  return status;
}
