/* needs: full */
#include "benchmarks/suite.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/suite_private.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/safetensors.h"
#include "engine/run.h"
#include "engine/run_folder.h"

/* ---- what there is to do ---- */

static sn_status add_unit(suite *s, int64_t set, int64_t entry, int64_t seed, int64_t fold, sn_error *err) {
  SN_TRY(sn_grow(&s->units, &s->unit_capacity, s->n_units + 1, sizeof *s->units, "suite", err));
  memset(&s->units[s->n_units], 0, sizeof *s->units);
  return suite_unit_create(&s->spec, set, entry, seed, fold, s->report->out, &s->units[s->n_units++], err);
}

/* In the order set, run, seed, fold; each run's seeds one after the other. */
static sn_status plan(suite *s, sn_error *err) {
  for (int64_t set = 0; set < s->spec.n_sets; set++)
    for (int64_t e = 0; e < s->spec.n_entries; e++) {
      const suite_entry *entry = &s->spec.entries[e];
      const suite_set *in = &s->spec.sets[set];
      const int64_t *seeds = entry->seeds != NULL ? entry->seeds : in->seeds;
      const int64_t n_seeds = entry->seeds != NULL ? entry->n_seeds : in->n_seeds;
      if (!suite_takes_part(entry, in)) continue;
      for (int64_t k = 0; k < n_seeds; k++)
        for (int64_t f = 0; f < (in->n_folds > 0 ? in->n_folds : 1); f++)
          SN_TRY(add_unit(s, set, e, seeds[k], in->n_folds > 0 ? f : -1, err));
    }
  if (s->n_units == 0) return sn_document_fail(s->spec.root, s->spec.path, err, "no run takes part in any set");
  for (int64_t set = 0; set < s->spec.n_sets; set++) {
    bool any = false;
    for (int64_t i = 0; i < s->n_units; i++) any = any || s->units[i].set == set;
    if (!any) return sn_document_fail(s->spec.sets[set].node, s->spec.path, err, "no run takes part in set '%s'", s->spec.sets[set].name);
  }
  return SN_OK;
}

static sn_status examine(suite *s, sn_error *err) {
  s->report->n_runs = s->n_units;
  for (int64_t i = 0; i < s->n_units; i++) {
    SN_TRY(suite_unit_examine(&s->spec, &s->units[i], &s->options->log, err));
    s->report->n_done += s->units[i].state == SUITE_DONE;
  }
  return SN_OK;
}

/* ---- where it is written ---- */

/* A file of another hand is not replaced by a table: each begins as ours does, and the Markdown, which any text may begin as,
 * has a table.csv of ours beside it (written before it). */
static sn_status check_tables(const suite *s, bool *made, sn_error *err) {
  static const char *const NAMES[][3] = {
      {"table.csv", "set,task,protocol,run,of,pool,metric,value,low,high,", "the table of a suite"},
      {"table.json", "{\n \"suite\": ", "the table of a suite"},
      {"table.md", "# ", "the table of a suite"}};
  for (int i = 0; i < 3; i++) {
    char *path = NULL;
    SN_TRY(sn_path_join(s->report->out, NAMES[i][0], &path, err));
    const bool there = sn_path_exists(path);
    sn_status status = sn_check_output(path, NAMES[i][1], NAMES[i][2], err);
    if (i == 0) *made = there;
    if (status == SN_OK && there && i == 2 && !*made)
      status = sn_fail(err, SN_E_ARGUMENT, "%s: is there without the table.csv of a suite: it is not overwritten; choose another "
                       "output folder, or remove it", path);
    sn_free(path);
    SN_TRY(status);
  }
  return SN_OK;
}

/* Predictions in a folder that no suite has written to belong to somebody, unless they say that a suite made them. In a suite's
 * own folder one that is damaged is made again. */
static sn_status check_predictions(suite *s, sn_error *err) {
  sn_status status = suite_jobs_create(s, err);
  for (int64_t i = 0; status == SN_OK && i < s->n_jobs; i++) {
    const char *path = s->jobs[i].path;
    sn_safetensors *file = NULL;
    sn_error unread;
    if (!sn_path_exists(path)) continue;
    if (sn_safetensors_open(path, &file, &unread) != SN_OK || sn_safetensors_metadata(file, "identity") == NULL)
      status = sn_fail(err, SN_E_ARGUMENT, "%s: is there and is not a suite's predictions: it is not overwritten; choose another "
                       "output folder, or remove it", path);
    sn_safetensors_close(file);
  }
  for (int64_t i = 0; i < s->n_jobs; i++) suite_job_free(&s->jobs[i]);
  s->n_jobs = 0; /* they are made anew once it is known what is done */
  return status;
}

/* Before any work, and a dry run says it too. */
static sn_status check_place(suite *s, sn_error *err) {
  bool own;
  SN_TRY(check_tables(s, &own, err));
  for (int64_t i = 0; i < s->n_units; i++) {
    bool begun;
    SN_TRY(sn_run_check_place(s->units[i].config, s->units[i].folder, err));
    SN_TRY(suite_unit_check_place(&s->units[i], &begun, err));
    own = own || begun;
  }
  return own ? SN_OK : check_predictions(s, err);
}

/* ---- doing it ---- */

static bool asked_to_stop(const suite *s) { return s->options->stop != NULL && *s->options->stop != 0; }

static void train_all(suite *s) {
  for (int64_t i = 0; i < s->n_units && !s->report->stopped; i++) {
    suite_unit *u = &s->units[i];
    sn_error err;
    if (u->state == SUITE_DONE) continue;
    if (asked_to_stop(s)) s->report->stopped = true;
    if (s->report->stopped) break;
    sn_log_write(&s->options->log, SN_LOG_INFO, "%" PRId64 "/%" PRId64 " %s: %s", i + 1, s->n_units, u->label,
                 u->state == SUITE_TO_RESUME ? "goes on" : "begins");
    const sn_status status = suite_unit_train(u, s->options, &err);
    if (status == SN_END) {
      s->report->stopped = true;
    } else if (status != SN_OK) {
      u->state = SUITE_FAILED;
      snprintf(u->reason, sizeof u->reason, "%s", err.message);
      s->report->n_failed++;
      sn_log_write(&s->options->log, SN_LOG_ERROR, "%s failed: %s", u->label, err.message);
    } else {
      s->report->n_trained++;
    }
  }
}

static void score_all(suite *s) {
  s->report->n_scores = s->n_jobs;
  for (int64_t i = 0; i < s->n_jobs; i++) {
    suite_job *job = &s->jobs[i];
    sn_error err;
    if (job->state == SUITE_NOT_RUN) continue;
    if (asked_to_stop(s)) s->report->stopped = true;
    if (s->report->stopped) {
      job->state = SUITE_NOT_RUN;
      continue;
    }
    const int64_t before = s->report->n_scored;
    const sn_status status = suite_job_run(s, job, &err);
    if (status == SN_END) {
      s->report->stopped = true;
      job->state = SUITE_NOT_RUN;
    } else if (status != SN_OK) {
      job->state = SUITE_FAILED;
      snprintf(job->reason, sizeof job->reason, "%s", err.message);
      s->report->n_failed++;
      sn_log_write(&s->options->log, SN_LOG_ERROR, "%s failed: %s", job->label, err.message);
    } else if (s->report->n_scored > before) {
      sn_log_write(&s->options->log, SN_LOG_INFO, "%" PRId64 "/%" PRId64 " %s", i + 1, s->n_jobs, job->label);
    }
  }
}

static sn_status save(const suite *s, const char *name, const sn_string *text, sn_error *err) {
  char *path = NULL;
  SN_TRY(sn_path_join(s->report->out, name, &path, err));
  const sn_status status = sn_write_file(path, text->data, text->length, err);
  sn_free(path);
  return status;
}

static sn_status make_table(suite *s, sn_string *text, sn_string *json, sn_error *err) {
  suite_table table;
  sn_string csv = {0}, own = {0};
  sn_status status;
  if (json == NULL) json = &own;
  SN_TRY_GOTO(suite_table_make(s, &table, err), done);
  SN_TRY_GOTO(suite_write_csv(s, &table, &csv, err), done);
  SN_TRY_GOTO(suite_write_json(s, &table, json, err), done);
  SN_TRY_GOTO(suite_write_markdown(s, &table, text, err), done);
  SN_TRY_GOTO(save(s, "table.csv", &csv, err), done);
  SN_TRY_GOTO(save(s, "table.json", json, err), done);
  status = save(s, "table.md", text, err);
done:
  suite_table_free(&table);
  sn_string_free(&csv);
  sn_string_free(&own);
  return status;
}

/* ---- a dry run ---- */

static sn_status list_plan(suite *s, sn_string *text, sn_error *err) {
  static const char *const WORDS[] = {[SUITE_TO_DO] = "to do", [SUITE_TO_RESUME] = "resume", [SUITE_DONE] = "done",
                                      [SUITE_FAILED] = "failed", [SUITE_NOT_RUN] = "waits"};
  int64_t n[SUITE_NOT_RUN + 1] = {0};
  for (int64_t i = 0; i < s->n_units; i++) {
    const suite_unit *u = &s->units[i];
    n[u->state]++;
    SN_TRY(sn_string_printf(text, err, "%-7s  %s: step %" PRId64 " of %" PRId64 ", ", WORDS[u->state], u->label, u->step, u->steps));
    if (u->state == SUITE_DONE) SN_TRY(sn_string_printf(text, err, "%" PRId64 " tokens seen, %.1f s\n", u->tokens, u->seconds));
    else SN_TRY(sn_string_printf(text, err, "places for %" PRId64 " tokens\n", u->planned_tokens));
  }
  SN_TRY(sn_string_printf(text, err, "pretraining: %" PRId64 " done, %" PRId64 " to resume, %" PRId64 " to do\n\n", n[SUITE_DONE],
                          n[SUITE_TO_RESUME], n[SUITE_TO_DO]));
  memset(n, 0, sizeof n);
  for (int64_t i = 0; i < s->n_jobs; i++) {
    suite_job *job = &s->jobs[i];
    if (job->state != SUITE_NOT_RUN) SN_TRY(suite_job_run(s, job, err));
    n[job->state]++;
    SN_TRY(sn_string_printf(text, err, "%-7s  %s\n", WORDS[job->state], job->label));
  }
  return sn_string_printf(text, err, "predictions: %" PRId64 " done, %" PRId64 " to do, %" PRId64 " wait for their runs\n", n[SUITE_DONE],
                          n[SUITE_TO_DO], n[SUITE_NOT_RUN]);
}

/* ---- the whole ---- */

static void suite_free(suite *s) {
  for (int64_t i = 0; i < s->n_units; i++) suite_unit_free(&s->units[i]);
  for (int64_t i = 0; i < s->n_jobs; i++) suite_job_free(&s->jobs[i]);
  sn_free(s->units);
  sn_free(s->jobs);
  suite_spec_free(&s->spec);
}

sn_status sn_suite_run(const sn_suite_options *options, sn_string *text, sn_string *json, sn_suite_report *report, sn_error *err) {
  suite s = {.options = options, .report = report};
  sn_run_folder *held = NULL;
  sn_status status;
  memset(report, 0, sizeof *report);
  SN_TRY_GOTO(suite_spec_load(options, &s.spec, err), done);
  if (strlen(s.spec.out) >= sizeof report->out) {
    status = sn_fail(err, SN_E_ARGUMENT, "the output folder's name is too long");
    goto done;
  }
  snprintf(report->out, sizeof report->out, "%s", s.spec.out);
  SN_TRY_GOTO(plan(&s, err), done);
  SN_TRY_GOTO(check_place(&s, err), done);
  if (!options->dry_run) SN_TRY_GOTO(sn_run_folder_take(report->out, false, &held, err), done);
  SN_TRY_GOTO(examine(&s, err), done);
  SN_TRY_GOTO(suite_check_tasks(&s, err), done);
  if (!options->dry_run) train_all(&s);
  SN_TRY_GOTO(suite_jobs_create(&s, err), done);
  if (options->dry_run) {
    status = list_plan(&s, text, err);
    goto done;
  }
  score_all(&s);
  status = make_table(&s, text, json, err);
done:
  sn_run_folder_release(held);
  suite_free(&s);
  return status;
}
