#include "engine/pretrain.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/run.h"
#include "engine/run_folder.h"
#ifndef SONDE_MINIMAL
#include "engine/run_unchanged.h"
#endif
#include "objectives/objective.h"

sn_status sn_pretrain_check(sn_config *config, int64_t *steps, sn_error *err) {
  sn_train_phase phases[SN_TRAIN_PHASES];
  int n_phases;
  SN_TRY(sn_config_check_complete(config, err));
  SN_TRY(sn_run_check_config(config, err));
  SN_TRY(sn_phases_read(config, phases, &n_phases, err));
  for (int i = 0; i < n_phases; i++) {
    sn_objective_needs needs;
    SN_TRY(sn_objective_get_needs(phases[i].config != NULL ? phases[i].config : config, &needs, err));
    if (needs.two_sources && sn_config_sources(config) < 2)
      return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "contrast.loss", "contrast.loss %s pairs recordings of two data sets, and the data "
                        "are one: list them under sources (--data A --data B), or take another loss",
                        sn_config_text(phases[i].config != NULL ? phases[i].config : config, "contrast.loss"));
  }
  if (steps != NULL) *steps = phases[n_phases - 1].last;
  return SN_OK;
}

bool sn_pretrain_is_neutral(const char *key) {
  static const char *const KEYS[] = {"train.loader_threads", "train.prefetch",   "train.checkpoint_every",
                                     "train.keep_last",      "train.keep_every", "train.threads",
                                     "data.cache",           "data.open_files",  "data.relative_to", "monitor.on_collapse"};
  for (size_t i = 0; i < sizeof KEYS / sizeof KEYS[0]; i++)
    if (strcmp(key, KEYS[i]) == 0) return true;
  return false;
}

static bool is_own(const sn_config *config, int64_t phase, int64_t key) {
  return sn_config_next_own(sn_config_phase(config, phase), key - 1) == key;
}

/* A labels file elsewhere whose content was compared and is the same changes nothing. source NULL: the run's own. */
static bool is_neutral(const char *run, const char *source, const sn_config *before, const sn_config *now, const char *key) {
  if (sn_pretrain_is_neutral(key)) return true;
#ifndef SONDE_MINIMAL
  char folder[4096];
  if (strcmp(key, "data.labels") != 0 || sn_config_text(before, key)[0] == '\0' || sn_config_text(now, key)[0] == '\0') return false;
  const int n = snprintf(folder, sizeof folder, "%s%s%s", run, source != NULL ? "/sources/" : "", source != NULL ? source : "");
  return n > 0 && (size_t)n < sizeof folder && sn_run_labels_known(folder);
#else
  (void)run, (void)source, (void)before, (void)now;
  return false;
#endif
}

/* What a source has otherwise than before, where the top level has not. */
static sn_status compare_source(const char *run, const sn_config *old, const sn_config *new, int64_t source, const sn_log *log,
                                bool *changed, sn_error *err) {
  const sn_config *before = sn_config_source(old, source), *now = sn_config_source(new, source);
  sn_string text = {0};
  sn_status status;
  for (int64_t i = -1;;) {
    SN_TRY_GOTO(sn_config_next_change(before, now, i, &i, &text, err), done);
    if (i < 0) break;
    if (sn_config_next_own(now, i - 1) != i && sn_config_next_own(before, i - 1) != i) continue; /* said of the top level */
    const bool neutral = is_neutral(run, sn_config_text(now, "data.name"), before, now, sn_config_key(now, i));
    *changed = *changed || !neutral;
    sn_log_write(log, neutral ? SN_LOG_INFO : SN_LOG_WARNING, "%s: resumed with sources.%lld: %s%s", run, (long long)source,
                 text.data, neutral ? "" : ": not what an uninterrupted run would give, and it is marked so");
  }
done:
  sn_string_free(&text);
  return status;
}

/* Says what a resumed run is given otherwise than it began with. *changed: something that the result depends on.
 * phase -1: the configuration has no phases. What neither this phase nor the first sets itself the first has said. */
static sn_status compare_phase(const char *run, const sn_config *old, const sn_config *new, int64_t phase,
                               const sn_log *log, bool *changed, sn_error *err) {
  const sn_config *before = sn_config_phase(old, phase >= 0 ? phase : 0), *now = sn_config_phase(new, phase >= 0 ? phase : 0);
  sn_string text = {0};
  char where[32] = "";
  sn_status status;
  if (phase >= 0) snprintf(where, sizeof where, "phases.%lld: ", (long long)phase);
  for (int64_t i = -1;;) {
    SN_TRY_GOTO(sn_config_next_change(before, now, i, &i, &text, err), done);
    if (i < 0) break;
    if (phase > 0 && !is_own(new, phase, i) && !is_own(new, 0, i)) continue;
    const bool neutral = is_neutral(run, NULL, before, now, sn_config_key(now, i));
    *changed = *changed || !neutral;
    sn_log_write(log, neutral ? SN_LOG_INFO : SN_LOG_WARNING, "%s: resumed with %s%s%s", run, where, text.data,
                 neutral ? "" : ": not what an uninterrupted run would give, and it is marked so");
  }
done:
  sn_string_free(&text);
  return status;
}

static sn_status compare_settings(const char *run, const sn_config *now, const sn_log *log, bool *changed,
                                  sn_error *err) {
  sn_config *before = NULL;
  sn_status status;
  const int64_t n = sn_config_phases(now);
  *changed = false;
  SN_TRY_GOTO(sn_run_load_config(run, &before, err), done);
  for (int64_t i = 0; i < n; i++)
    SN_TRY_GOTO(compare_phase(run, before, now, n > 1 ? i : -1, log, changed, err), done);
  if (sn_config_sources(before) != sn_config_sources(now)) {
    status = sn_fail(err, SN_E_ARGUMENT, "%s began with %lld sources, now %lld: a resumed run sees the same data", run,
                     (long long)sn_config_sources(before), (long long)sn_config_sources(now));
    goto done;
  }
  for (int64_t i = 0; i < sn_config_sources(now); i++)
    SN_TRY_GOTO(compare_source(run, before, now, i, log, changed, err), done);
done:
  sn_config_destroy(before);
  return status;
}

/* What an earlier start left that failed, and from where relative paths are seen. */
static sn_status begin_folder(const sn_pretrain_options *o, sn_error *err) {
  char *path = NULL, here[4096];
  const char *dir = sn_config_text(o->config, "data.dir");
  SN_TRY(sn_path_join(o->run, "quarantine.tsv", &path, err));
  (void)unlink(path); /* absent as a rule; a new one is written over it in any case */
  sn_free(path);
  if (dir[0] == '/' || strcmp(dir, "synthetic") == 0 || getcwd(here, sizeof here) == NULL) return SN_OK;
  return sn_config_set(o->config, "data.relative_to", here, "the current folder", -1, err);
}

sn_status sn_pretrain(const sn_pretrain_options *o, sn_train_result *result, sn_error *err) {
  sn_train_options options = {.config = o->config, .run = o->run, .resume = o->resume, .stop = o->stop, .log = o->log,
                              .progress = o->progress, .progress_user = o->progress_user};
  sn_run_folder *folder = NULL;
  sn_run_data *data = NULL;
  sn_status status;
  memset(result, 0, sizeof *result);
  SN_TRY_GOTO(sn_run_folder_take(o->run, o->resume, &folder, err), done);
  if (!o->resume) SN_TRY_GOTO(begin_folder(o, err), done);
  SN_TRY_GOTO(sn_run_data_open(o->config, o->run, o->resume, &o->log, &data, err), done);
  SN_TRY_GOTO(sn_run_settle_config(o->config, data, err), done);
  if (o->resume) SN_TRY_GOTO(compare_settings(o->run, o->config, &o->log, &options.changed, err), done);
  else SN_TRY_GOTO(sn_run_save_config(o->run, o->config, err), done);
  options.source = sn_run_data_source(data);
  SN_TRY_GOTO(sn_train(&options, result, err), done);
  sn_run_data_note(data, &o->log);
done:
  sn_run_data_destroy(data);
  sn_run_folder_release(folder);
  return status;
}
