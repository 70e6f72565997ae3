/* needs: full */
/* What is to be predicted, by which encoders, and whether it has been. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/finetune_task.h"
#include "benchmarks/probe_data.h"
#include "benchmarks/suite_private.h"
#include "core/alloc.h"
#include "core/fs.h"
#include "core/sha256.h"

/* ---- names ---- */

static const suite_set *set_of(const suite *s, const suite_job *job) { return &s->spec.sets[job->set]; }
static const suite_task *task_of(const suite *s, const suite_job *job) { return &set_of(s, job)->tasks[job->task]; }

static sn_status name_job(const suite *s, suite_job *job, sn_error *err) {
  const char *set = set_of(s, job)->name, *task = task_of(s, job)->name, *slash = set[0] != '\0' ? "/" : "";
  char who[128], where[400];
  if (job->entry < 0) snprintf(who, sizeof who, "baseline-%" PRId64, job->architecture);
  else snprintf(who, sizeof who, "%s-seed-%" PRId64, s->spec.entries[job->entry].name, job->seed);
  snprintf(job->label, sizeof job->label, "%s%s%s %s: %s", set, slash, task, suite_protocol_name(job->protocol), who);
  snprintf(where, sizeof where, "scores/%s%s%s/%s/%s.safetensors", set, slash, task, suite_protocol_name(job->protocol), who);
  SN_TRY(sn_path_join(s->report->out, where, &job->path, err));
  if (job->protocol != SUITE_FINETUNE) return SN_OK;
  snprintf(where, sizeof where, "finetune/%s%s%s/%s", set, slash, task, who);
  return sn_path_join(s->report->out, where, &job->folder, err);
}

/* ---- identity: everything that the predictions depend on ---- */

static void hash_text(sn_sha256 *hash, const char *format, ...) SN_PRINTF(2, 3);
static void hash_text(sn_sha256 *hash, const char *format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  const int n = sn_vformat(text, sizeof text, format, args);
  va_end(args);
  sn_sha256_update(hash, text, (n < (int)sizeof text ? n : (int)sizeof text - 1) + 1);
}

/* With the NUL, so that texts do not run together. */
static void hash_string(sn_sha256 *hash, const char *text) {
  if (text == NULL) text = "";
  sn_sha256_update(hash, text, (int64_t)strlen(text) + 1);
}

static void hash_task(sn_sha256 *hash, const suite_task *task, suite_protocol protocol) {
  const sn_probe_options *p = &task->probe;
  const char *const texts[] = {p->data, p->target, p->classes, p->labels, p->key, p->subject, p->split, p->metric};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) hash_string(hash, texts[i]);
  for (int64_t i = 0; i < p->n_exclude; i++) hash_text(hash, "-%s", p->exclude[i]);
  hash_text(hash, "%d %" PRId64 " %.17g %.17g %d %d %d %" PRIu64, (int)p->task, p->folds_given ? p->folds : 0, p->window_s,
            p->context_s, p->unweighted, p->transductive, p->use_ema, p->seed);
  for (int64_t i = 0; i < p->n_pools && protocol != SUITE_FINETUNE; i++) hash_text(hash, "pool %s", sn_pool_name(p->pools[i]));
  if (protocol == SUITE_KNN) hash_text(hash, "k %" PRId64, p->k);
  for (int64_t i = 0; i < task->n_set && protocol == SUITE_FINETUNE; i++) hash_text(hash, "set %s", task->set[i]);
}

static sn_status identify(const suite *s, suite_job *job, sn_error *err) {
  const suite_task *task = task_of(s, job);
  const suite_unit *first = &s->units[job->first_unit];
  sn_sha256 hash;
  uint8_t digest[32];
  sn_sha256_init(&hash);
  hash_text(&hash, "scores 1 %s %s", SONDE_VERSION, suite_protocol_name(job->protocol));
  hash_task(&hash, task, job->protocol);
  SN_TRY(sn_probe_hash_labels(&hash, task->labels != NULL ? task->labels : sn_config_text(first->config, "data.labels"), err));
  if (job->entry < 0) {
    hash_text(&hash, "baseline %" PRId64 " %" PRId64, s->spec.n_random, job->n_units);
    sn_sha256_update(&hash, first->architecture, (int64_t)strlen(first->architecture));
  }
  for (int64_t i = 0; i < job->n_units && job->entry >= 0; i++)
    hash_text(&hash, "run %s %" PRId64, s->units[job->first_unit + i].hash, s->units[job->first_unit + i].steps);
  sn_sha256_final(&hash, digest);
  sn_sha256_hex(digest, job->identity);
  return SN_OK;
}

/* ---- which there are ---- */

static int64_t unit_of(const suite *s, int64_t set, int64_t entry, int64_t seed, int64_t *n) {
  int64_t first = -1;
  *n = 0;
  for (int64_t i = 0; i < s->n_units; i++) {
    const suite_unit *u = &s->units[i];
    if (u->set != set || u->entry != entry || (seed >= 0 && u->seed != seed)) continue;
    if (first < 0) first = i;
    if (u->seed == s->units[first].seed) ++*n;
  }
  return first;
}

/* Not pretrained yet, or failed: said in the job. */
static void check_ready(const suite *s, suite_job *job) {
  for (int64_t i = job->first_unit; i < job->first_unit + job->n_units; i++) {
    const suite_unit *u = &s->units[i];
    if (u->state == SUITE_DONE) continue;
    job->state = SUITE_NOT_RUN;
    if (u->state == SUITE_FAILED) snprintf(job->reason, sizeof job->reason, "%.150s failed: %.340s", u->label, u->reason);
    else snprintf(job->reason, sizeof job->reason, "%.200s is not done (step %" PRId64 " of %" PRId64 ")", u->label, u->step, u->steps);
    return;
  }
}

static sn_status add_job(suite *s, suite_job job, sn_error *err) {
  SN_TRY(sn_grow(&s->jobs, &s->job_capacity, s->n_jobs + 1, sizeof *s->jobs, "suite", err));
  s->jobs[s->n_jobs++] = job;
  suite_job *added = &s->jobs[s->n_jobs - 1];
  SN_TRY(name_job(s, added, err));
  check_ready(s, added);
  return SN_OK;
}

/* The units whose encoders' shapes a baseline takes: the first run of the architecture that is done, else the first. */
static int64_t carrier(const suite *s, int64_t set, const int64_t *numbers, int64_t number, int64_t *n) {
  int64_t best = -1, best_n = 0;
  for (int64_t e = 0; e < s->spec.n_entries; e++) {
    int64_t n_folds = 0;
    if (numbers[e] != number) continue;
    for (int64_t i = unit_of(s, set, e, -1, &n_folds); i >= 0 && i < s->n_units && s->units[i].set == set && s->units[i].entry == e;
         i += n_folds) {
      bool done = true;
      for (int64_t f = 0; f < n_folds; f++) done = done && s->units[i + f].state == SUITE_DONE;
      if (best < 0 || done) best = i, best_n = n_folds;
      if (done) {
        *n = best_n;
        return best;
      }
    }
  }
  *n = best_n;
  return best;
}

static sn_status jobs_of_task(suite *s, int64_t set, int64_t task, suite_protocol protocol, const int64_t *numbers,
                              int64_t n_architectures, sn_error *err) {
  suite_job job = {.set = set, .task = task, .protocol = protocol, .entry = -1, .seed = -1};
  for (job.architecture = 0; job.architecture < n_architectures; job.architecture++) {
    job.first_unit = carrier(s, set, numbers, job.architecture, &job.n_units);
    SN_TRY(add_job(s, job, err));
  }
  for (int64_t i = 0; i < s->n_units; i++) {
    const suite_unit *u = &s->units[i];
    if (u->set != set || u->fold > 0) continue;
    job.entry = u->entry;
    job.seed = u->seed;
    job.architecture = numbers[u->entry];
    job.first_unit = unit_of(s, set, u->entry, u->seed, &job.n_units);
    SN_TRY(add_job(s, job, err));
  }
  return SN_OK;
}

/* numbers (n_entries) [out]: of each run's architecture among those of the set, -1: not in it. Runs that are not done are counted
 * too, for numbers must not change. */
static int64_t number_architectures(const suite *s, int64_t set, int64_t *numbers) {
  int64_t n = 0, folds;
  for (int64_t e = 0; e < s->spec.n_entries; e++) {
    const int64_t own = unit_of(s, set, e, -1, &folds);
    numbers[e] = -1;
    for (int64_t o = 0; o < e && own >= 0 && numbers[e] < 0; o++)
      if (numbers[o] >= 0 && strcmp(s->units[unit_of(s, set, o, -1, &folds)].architecture, s->units[own].architecture) == 0)
        numbers[e] = numbers[o];
    if (own >= 0 && numbers[e] < 0) numbers[e] = n++;
  }
  return n;
}

sn_status suite_jobs_create(suite *s, sn_error *err) {
  int64_t *numbers = NULL;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&numbers, s->spec.n_entries, sizeof *numbers, "suite", err));
  for (int64_t set = 0; set < s->spec.n_sets; set++) {
    const int64_t n = number_architectures(s, set, numbers);
    for (int64_t t = 0; t < s->spec.sets[set].n_tasks; t++)
      for (int p = 0; p < SUITE_PROTOCOLS && status == SN_OK; p++)
        if (s->spec.sets[set].tasks[t].protocols[p]) status = jobs_of_task(s, set, t, (suite_protocol)p, numbers, n, err);
  }
  sn_free(numbers);
  return status;
}

void suite_job_free(suite_job *job) {
  sn_free(job->path);
  sn_free(job->folder);
  suite_scores_destroy(job->scores);
}

/* ---- making them ---- */

static void pass_progress(void *user, const char *label, const sn_progress *progress) {
  const suite *s = ((void **)user)[0];
  const suite_job *job = ((void **)user)[1];
  char text[512];
  snprintf(text, sizeof text, "%s, %.200s", job->label, label);
  s->options->progress(s->options->progress_user, text, progress);
}

static sn_status finetune(suite *s, const suite_job *job, const sn_probe_options *probe, sn_probe_result **result, sn_error *err) {
  const suite_task *task = task_of(s, job);
  const bool baseline = job->entry < 0;
  void *user[] = {s, (void *)job};
  char *begun = NULL;
  sn_finetune_task_options o = {.probe = *probe, .set = (const char *const *)task->set, .n_set = task->n_set,
                                .only_scratch = baseline, .out = job->folder, .stop = s->options->stop,
                                .progress = s->options->progress != NULL ? pass_progress : NULL, .progress_user = user};
  if (!baseline) o.probe.n_seeds = 1;
  SN_TRY(sn_path_join(job->folder, "fold-0", &begun, err));
  o.resume = sn_path_exists(begun);
  sn_free(begun);
  return sn_finetune_task_run(&o, result, err);
}

static sn_status make_folder(const suite_job *job, sn_error *err) {
  char *folder = NULL;
  SN_TRY(sn_strdup(&folder, job->path, "suite", err));
  *strrchr(folder, '/') = '\0';
  const sn_status status = sn_make_directories(folder, err);
  sn_free(folder);
  return status;
}

/* The kNN job that the features of a linear one serve as well: of the same encoders and task, and not made yet. */
static sn_status find_sibling(suite *s, const suite_job *job, suite_job **sibling, sn_error *err) {
  *sibling = NULL;
  for (int64_t i = 0; i < s->n_jobs && job->protocol == SUITE_LINEAR; i++) {
    suite_job *other = &s->jobs[i];
    sn_error local;
    if (other->set != job->set || other->task != job->task || other->protocol != SUITE_KNN || other->entry != job->entry ||
        other->seed != job->seed || other->architecture != job->architecture)
      continue;
    SN_TRY(identify(s, other, err));
    if (suite_scores_read(other->path, other->identity, &other->scores, &local) != SN_OK || other->scores == NULL) *sibling = other;
  }
  return SN_OK;
}

/* Both classifiers on the same features. What fails for one may work for the other: then each by itself. */
static sn_status probe_both(sn_probe_options o, suite_job *job, suite_job *sibling, bool *done, sn_error *err) {
  sn_probe_result *result = NULL;
  sn_error local;
  *done = false;
  o.also_knn = true;
  if (sn_probe_run(&o, &result, &local) != SN_OK) return SN_OK;
  sn_status status = make_folder(sibling, err);
  if (status == SN_OK) status = suite_scores_write(sibling->path, sibling->identity, result, SN_CLASSIFIER_KNN, err);
  if (status == SN_OK) status = suite_scores_write(job->path, job->identity, result, SN_CLASSIFIER_LINEAR, err);
  sn_probe_result_destroy(result);
  *done = status == SN_OK;
  return status;
}

static sn_status make_scores(suite *s, suite_job *job, int64_t *n_made, sn_error *err) {
  const suite_task *task = task_of(s, job);
  const bool baseline = job->entry < 0;
  sn_probe_options o = task->probe;
  sn_probe_result *result = NULL;
  suite_job *sibling = NULL;
  const char **runs = NULL;
  bool done = false;
  sn_status status;
  *n_made = 1;
  SN_TRY_GOTO(sn_alloc(&runs, job->n_units, sizeof *runs, "suite", err), done);
  for (int64_t i = 0; i < job->n_units; i++) runs[i] = s->units[job->first_unit + i].folder;
  o.runs = runs;
  o.n_runs = job->n_units;
  o.log = s->options->log;
  o.rows = baseline ? SN_ROWS_RANDOM | SN_ROWS_RAW | SN_ROWS_MAJORITY : SN_ROWS_PRETRAINED;
  o.classifier = job->protocol == SUITE_KNN ? SN_CLASSIFIER_KNN : SN_CLASSIFIER_LINEAR;
  if (job->protocol != SUITE_LINEAR) o.unweighted = false;
  SN_TRY_GOTO(make_folder(job, err), done);
  SN_TRY_GOTO(find_sibling(s, job, &sibling, err), done);
  if (sibling != NULL) SN_TRY_GOTO(probe_both(o, job, sibling, &done, err), done);
  *n_made += done;
  if (done) goto done;
  if (job->protocol == SUITE_FINETUNE) SN_TRY_GOTO(finetune(s, job, &o, &result, err), done);
  else SN_TRY_GOTO(sn_probe_run(&o, &result, err), done);
  status = suite_scores_write(job->path, job->identity, result, o.classifier, err);
done:
  sn_probe_result_destroy(result);
  sn_free(runs);
  return status;
}

sn_status suite_job_run(suite *s, suite_job *job, sn_error *err) {
  sn_error local;
  int64_t n_made = 0;
  SN_TRY(identify(s, job, err));
  /* A file that cannot be read is made again. */
  if (job->scores == NULL && suite_scores_read(job->path, job->identity, &job->scores, &local) != SN_OK)
    sn_log_write(&s->options->log, SN_LOG_WARNING, "%s: %s; made again", job->path, local.message);
  if (job->scores == NULL && !s->options->dry_run) {
    SN_TRY(make_scores(s, job, &n_made, err));
    SN_TRY(suite_scores_read(job->path, job->identity, &job->scores, err));
    if (job->scores == NULL) return sn_fail(err, SN_E_STATE, "%s: changed while it was made", job->path);
    s->report->n_scored += n_made;
  }
  job->state = job->scores != NULL ? SUITE_DONE : SUITE_TO_DO;
  return SN_OK;
}
