/* needs: full */
/* From predictions to rows: one bootstrap for all rows of a task and protocol (suite.h, THE TABLE). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "benchmarks/suite_private.h"
#include "core/alloc.h"

/* A row of predictions that takes part in the bootstrap. */
typedef struct entrant {
  const suite_job *job;
  const sn_probe_row *row;
  sn_scored *scored;
} entrant;

typedef struct block_work {
  suite *s;
  suite_block *block;
  entrant *entrants;
  int64_t n, capacity;
  int64_t *chosen_a, *chosen_b; /* (n) */
  sn_bootstrap *bootstrap;
} block_work;

const char *suite_verdict(int64_t n_test_units, const sn_interval *d) {
  if (isnan(d->low) || isnan(d->high)) return "undefined";
  if (!(d->low > 0 || d->high < 0)) return "includes 0";
  return sn_difference_claimed(n_test_units, d) ? "excludes 0" : "excludes 0, not claimed";
}

/* ---- which predictions are comparable ---- */

static bool in_block(const suite_job *job, const suite_block *block) {
  return job->set == block->set && job->task == block->task && job->protocol == block->protocol;
}

/* The items that the table is about: those of the reference, else of the first run that has predictions. */
static const suite_scores *choose_items(const suite *s, const suite_block *block) {
  const suite_scores *first = NULL, *of_run = NULL;
  for (int64_t i = 0; i < s->n_jobs; i++) {
    const suite_job *job = &s->jobs[i];
    if (!in_block(job, block) || job->scores == NULL) continue;
    if (job->entry >= 0 && s->spec.reference != NULL && strcmp(s->spec.entries[job->entry].name, s->spec.reference) == 0)
      return job->scores;
    if (of_run == NULL && job->entry >= 0) of_run = job->scores;
    if (first == NULL) first = job->scores;
  }
  return of_run != NULL ? of_run : first;
}

static bool same_items(const suite_scores *a, const suite_scores *b) {
  const size_t n = (size_t)a->n;
  return a->n == b->n && a->n_outputs == b->n_outputs && a->task == b->task && a->metric == b->metric &&
         memcmp(a->items, b->items, n * sizeof *a->items) == 0 && memcmp(a->units, b->units, n * sizeof *a->units) == 0 &&
         memcmp(a->labels, b->labels, n * sizeof *a->labels) == 0 && memcmp(a->values, b->values, n * sizeof *a->values) == 0 &&
         memcmp(a->hot, b->hot, n * (size_t)a->n_outputs) == 0;
}

static sn_status add_entrants(block_work *w, suite_job *job, sn_error *err) {
  const suite_scores *about = w->block->about;
  if (!same_items(job->scores, about)) {
    job->state = SUITE_FAILED;
    snprintf(job->reason, sizeof job->reason, "tests other items (%" PRId64 ") than the rows beside it (%" PRId64 "): its windows or "
             "its split differ, and the two cannot be compared", job->scores->n, about->n);
    w->s->report->n_failed++;
    return SN_OK;
  }
  for (int64_t r = 0; r < job->scores->n_rows; r++) {
    const sn_predictions p = {.task = about->task, .n = about->n, .n_classes = about->n_outputs, .labels = about->labels,
                              .hot = about->hot, .values = about->values, .scores = job->scores->rows[r].scores};
    /* Fine-tuning has the majority in every table; it is the same for all. */
    if (job->entry >= 0 && strcmp(job->scores->rows[r].encoder, "majority") == 0) continue;
    SN_TRY(sn_grow(&w->entrants, &w->capacity, w->n + 1, sizeof *w->entrants, "table", err));
    w->entrants[w->n] = (entrant){.job = job, .row = &job->scores->rows[r]};
    SN_TRY(sn_scored_create(&p, &w->entrants[w->n++].scored, err));
  }
  return SN_OK;
}

static sn_status draw(block_work *w, sn_error *err) {
  const suite_scores *about = w->block->about;
  int64_t *units = NULL, n = 0;
  sn_scored **rows = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&units, about->n, sizeof *units, "table", err), done);
  SN_TRY_GOTO(sn_alloc(&rows, w->n, sizeof *rows, "table", err), done);
  SN_TRY_GOTO(sn_bootstrap_units(about->units, about->n, units, &n, err), done);
  for (int64_t i = 0; i < w->n; i++) rows[i] = w->entrants[i].scored;
  w->block->n_test_units = n;
  SN_TRY_GOTO(sn_bootstrap_create(rows, w->n, units, n, w->s->spec.n_draws, w->s->spec.seed, &w->bootstrap, err), done);
  w->block->n_redrawn = w->bootstrap->n_redrawn;
done:
  sn_free(units);
  sn_free(rows);
  return status;
}

/* ---- rows ---- */

/* Predictions of a run (or, entry -1, of a baseline's encoder of an architecture) with a pool. */
static int64_t find(const block_work *w, int64_t entry, int64_t architecture, const char *encoder, const char *pool, int64_t *at) {
  int64_t n = 0;
  for (int64_t i = 0; i < w->n; i++) {
    const entrant *e = &w->entrants[i];
    if (e->job->entry != entry || (architecture >= 0 && e->job->architecture != architecture)) continue;
    if (encoder != NULL && strcmp(e->row->encoder, encoder) != 0) continue;
    if (pool != NULL && strcmp(e->row->pool, pool) != 0) continue;
    at[n++] = i;
  }
  return n;
}

static sn_status fill_values(const block_work *w, const int64_t *at, int64_t n, suite_row *row, sn_error *err) {
  row->n_seeds = n;
  SN_TRY(sn_alloc(&row->seeds, n, sizeof *row->seeds, "table", err));
  SN_TRY(sn_alloc(&row->by_seed, n * SN_N_METRICS, sizeof *row->by_seed, "table", err));
  for (int64_t i = 0; i < n; i++) {
    const entrant *e = &w->entrants[at[i]];
    row->seeds[i] = e->job->entry >= 0 ? e->job->seed : e->row->seed;
    memcpy(row->by_seed + i * SN_N_METRICS, w->bootstrap->points + at[i] * SN_N_METRICS, SN_N_METRICS * sizeof *row->by_seed);
  }
  for (int m = 0; m < SN_N_METRICS; m++) {
    double mean = 0, squares = 0;
    SN_TRY(sn_bootstrap_interval(w->bootstrap, (sn_metric)m, at, n, NULL, 0, &row->metrics[m], err));
    for (int64_t i = 0; i < n; i++) mean += row->by_seed[i * SN_N_METRICS + m] / (double)n;
    for (int64_t i = 0; i < n; i++) squares += pow(row->by_seed[i * SN_N_METRICS + m] - mean, 2);
    row->deviation[m] = n > 1 ? sqrt(squares / (double)(n - 1)) : NAN;
  }
  return SN_OK;
}

static sn_status add_difference(const block_work *w, const int64_t *a, int64_t n_a, const int64_t *b, int64_t n_b, const char *to,
                                suite_difference *d, sn_error *err) {
  if (n_b == 0) return SN_OK;
  snprintf(d->to, sizeof d->to, "%s", to);
  for (int m = 0; m < SN_N_METRICS; m++)
    SN_TRY(sn_bootstrap_interval(w->bootstrap, (sn_metric)m, a, n_a, b, n_b, &d->metrics[m], err));
  return SN_OK;
}

static sn_status new_row(block_work *w, suite_row **row, sn_error *err) {
  suite_block *b = w->block;
  SN_TRY(sn_grow(&b->rows, &b->capacity, b->n_rows + 1, sizeof *b->rows, "table", err));
  *row = &b->rows[b->n_rows++];
  **row = (suite_row){.set = b->set, .task = b->task, .protocol = b->protocol, .entry = -1, .parameters = -1,
                      .encoder_parameters = -1, .tokens = NAN, .seconds = NAN};
  for (int m = 0; m < SN_N_METRICS; m++) {
    (*row)->metrics[m] = (sn_interval){NAN, NAN, NAN};
    (*row)->deviation[m] = NAN;
    for (int k = 0; k < SUITE_DIFFERENCES; k++) (*row)->differences[k].metrics[m] = (sn_interval){NAN, NAN, NAN};
  }
  return SN_OK;
}

/* What pretraining took: sums over folds, means over the seeds that are done. */
static void fill_cost(const suite *s, suite_row *row) {
  int64_t last = -1, n = 0;
  double tokens = 0, seconds = 0;
  for (int64_t i = 0; i < s->n_units; i++) {
    const suite_unit *u = &s->units[i];
    if (u->set != row->set || u->entry != row->entry || u->state != SUITE_DONE) continue;
    n += u->seed != last;
    last = u->seed;
    tokens += (double)u->tokens;
    seconds += u->seconds;
    row->parameters = u->parameters;
    row->encoder_parameters = u->encoder_parameters;
  }
  if (n == 0) return;
  row->tokens = tokens / (double)n;
  row->seconds = seconds / (double)n;
}

/* Complete only with all its seeds: a mean over some of them is no value to compare. */
static bool fill_status(const suite *s, suite_row *row) {
  int64_t missing = 0, all = 0;
  const suite_job *first = NULL;
  for (int64_t i = 0; i < s->n_jobs; i++) {
    const suite_job *job = &s->jobs[i];
    if (job->set != row->set || job->task != row->task || job->protocol != row->protocol || job->entry != row->entry) continue;
    all++;
    if (job->state == SUITE_DONE) continue;
    missing++;
    if (first == NULL || (job->state == SUITE_FAILED && first->state != SUITE_FAILED)) first = job;
  }
  if (missing == 0) return true;
  const bool failed = first->state == SUITE_FAILED || strstr(first->reason, " failed: ") != NULL;
  snprintf(row->status, sizeof row->status, "%s, %" PRId64 " of %" PRId64 " seeds: %.500s", failed ? "failed" : "not done", missing, all,
           first->reason[0] != '\0' ? first->reason : "not run yet");
  return false;
}

static sn_status add_run_row(block_work *w, int64_t entry, const char *pool, sn_error *err) {
  const suite *s = w->s;
  suite_row *row;
  int64_t architecture = 0;
  SN_TRY(new_row(w, &row, err));
  row->entry = entry;
  snprintf(row->run, sizeof row->run, "%s", s->spec.entries[entry].name);
  snprintf(row->pool, sizeof row->pool, "%s", pool != NULL ? pool : "");
  fill_cost(s, row);
  const bool complete = fill_status(s, row);
  const int64_t n = find(w, entry, -1, NULL, pool, w->chosen_a);
  if (n == 0) return SN_OK;
  SN_TRY(fill_values(w, w->chosen_a, n, row, err));
  if (!complete) {
    for (int m = 0; m < SN_N_METRICS; m++) {
      row->metrics[m] = (sn_interval){NAN, NAN, NAN};
      row->deviation[m] = NAN;
    }
    return SN_OK;
  }
  architecture = w->entrants[w->chosen_a[0]].job->architecture;
  const char *fresh = row->protocol == SUITE_FINETUNE ? "scratch" : "random";
  int64_t n_b = find(w, -1, architecture, fresh, pool, w->chosen_b);
  SN_TRY(add_difference(w, w->chosen_a, n, w->chosen_b, n_b, fresh, &row->differences[0], err));
  n_b = find(w, -1, architecture, "raw", NULL, w->chosen_b);
  SN_TRY(add_difference(w, w->chosen_a, n, w->chosen_b, n_b, "raw", &row->differences[1], err));
  for (int64_t e = 0; s->spec.reference != NULL && e < s->spec.n_entries; e++) {
    suite_row other = {.set = row->set, .task = row->task, .protocol = row->protocol, .entry = e};
    if (e == entry || strcmp(s->spec.entries[e].name, s->spec.reference) != 0 || !fill_status(s, &other)) continue;
    n_b = find(w, e, -1, NULL, pool, w->chosen_b);
    SN_TRY(add_difference(w, w->chosen_a, n, w->chosen_b, n_b, s->spec.reference, &row->differences[2], err));
  }
  return SN_OK;
}

static sn_status add_baseline(block_work *w, const suite_job *job, const char *encoder, const char *pool, bool several, sn_error *err) {
  suite_row *row;
  const int64_t n = find(w, -1, job->architecture, encoder, pool, w->chosen_a);
  if (n == 0) return SN_OK;
  SN_TRY(new_row(w, &row, err));
  snprintf(row->run, sizeof row->run, "%s", encoder);
  snprintf(row->pool, sizeof row->pool, "%s", pool != NULL ? pool : "");
  if (several) snprintf(row->of, sizeof row->of, "%s", w->s->spec.entries[w->s->units[job->first_unit].entry].name);
  return fill_values(w, w->chosen_a, n, row, err);
}

/* A baseline that could not be made is said to be missing. */
static sn_status add_missing(block_work *w, const suite_job *job, sn_error *err) {
  suite_row *row;
  SN_TRY(new_row(w, &row, err));
  snprintf(row->run, sizeof row->run, "%s", job->protocol == SUITE_FINETUNE ? "scratch" : "random");
  if (job->first_unit >= 0) snprintf(row->of, sizeof row->of, "%s", w->s->spec.entries[w->s->units[job->first_unit].entry].name);
  snprintf(row->status, sizeof row->status, "%s: %.500s", job->state == SUITE_FAILED ? "failed" : "not done",
           job->reason[0] != '\0' ? job->reason : "not run yet");
  return SN_OK;
}

/* The pools of a task, and "chosen" where there are several. */
static int64_t pools_of(const suite_task *task, suite_protocol protocol, const char *pools[SN_PROBE_POOLS + 1]) {
  int64_t n = 0;
  if (protocol == SUITE_FINETUNE) {
    pools[n++] = NULL;
    return n;
  }
  for (int64_t k = 0; k < task->probe.n_pools; k++) pools[n++] = sn_pool_name(task->probe.pools[k]);
  if (n > 1) pools[n++] = "chosen";
  return n;
}

static sn_status add_rows(block_work *w, sn_error *err) {
  suite *s = w->s;
  const suite_set *set = &s->spec.sets[w->block->set];
  const char *pools[SN_PROBE_POOLS + 1];
  const int64_t n_pools = pools_of(&set->tasks[w->block->task], w->block->protocol, pools);
  static const char *const ALONE[] = {"raw", "majority"};
  int64_t n_baselines = 0, first = -1;
  for (int64_t e = 0; e < s->spec.n_entries; e++)
    for (int64_t k = 0; k < n_pools && suite_takes_part(&s->spec.entries[e], set); k++) SN_TRY(add_run_row(w, e, pools[k], err));
  for (int64_t i = 0; i < s->n_jobs; i++) n_baselines += in_block(&s->jobs[i], w->block) && s->jobs[i].entry < 0;
  for (int64_t i = 0; i < s->n_jobs; i++) {
    const suite_job *job = &s->jobs[i];
    if (!in_block(job, w->block) || job->entry >= 0) continue;
    if (first < 0) first = i;
    if (job->state != SUITE_DONE) {
      SN_TRY(add_missing(w, job, err));
      continue;
    }
    for (int64_t k = 0; k < n_pools; k++) {
      SN_TRY(add_baseline(w, job, "random", pools[k], n_baselines > 1, err));
      SN_TRY(add_baseline(w, job, "scratch", pools[k], n_baselines > 1, err));
    }
    /* Raw features depend on how the data are conditioned, which may differ with the architecture; the majority on nothing. */
    SN_TRY(add_baseline(w, job, ALONE[0], NULL, n_baselines > 1, err));
    if (i == first) SN_TRY(add_baseline(w, job, ALONE[1], NULL, false, err));
  }
  return SN_OK;
}

/* No intervals can be drawn: nothing of the block has a value, and every row says why. */
static void drop_block(block_work *w, const sn_error *why) {
  for (int64_t i = 0; i < w->s->n_jobs; i++) {
    suite_job *job = &w->s->jobs[i];
    if (!in_block(job, w->block) || job->state != SUITE_DONE) continue;
    job->state = SUITE_FAILED;
    snprintf(job->reason, sizeof job->reason, "%s", why->message);
    w->s->report->n_failed++;
  }
  for (int64_t i = 0; i < w->n; i++) sn_scored_destroy(w->entrants[i].scored);
  w->n = 0;
}

static sn_status make_block(suite *s, suite_block *block, sn_error *err) {
  block_work w = {.s = s, .block = block};
  sn_status status = SN_OK;
  block->about = choose_items(s, block);
  for (int64_t i = 0; i < s->n_jobs && block->about != NULL; i++)
    if (in_block(&s->jobs[i], block) && s->jobs[i].scores != NULL) SN_TRY_GOTO(add_entrants(&w, &s->jobs[i], err), done);
  sn_error local;
  if (w.n > 0 && draw(&w, &local) != SN_OK) drop_block(&w, &local);
  SN_TRY_GOTO(sn_alloc(&w.chosen_a, w.n + 1, sizeof *w.chosen_a, "table", err), done);
  SN_TRY_GOTO(sn_alloc(&w.chosen_b, w.n + 1, sizeof *w.chosen_b, "table", err), done);
  status = add_rows(&w, err);
  s->report->n_rows += block->n_rows;
done:
  for (int64_t i = 0; i < w.n; i++) sn_scored_destroy(w.entrants[i].scored);
  sn_bootstrap_destroy(w.bootstrap);
  sn_free(w.entrants);
  sn_free(w.chosen_a);
  sn_free(w.chosen_b);
  return status;
}

sn_status suite_table_make(suite *s, suite_table *table, sn_error *err) {
  memset(table, 0, sizeof *table);
  for (int64_t set = 0; set < s->spec.n_sets; set++)
    for (int64_t task = 0; task < s->spec.sets[set].n_tasks; task++)
      for (int p = 0; p < SUITE_PROTOCOLS; p++) {
        if (!s->spec.sets[set].tasks[task].protocols[p]) continue;
        SN_TRY(sn_grow(&table->blocks, &table->capacity, table->n_blocks + 1, sizeof *table->blocks, "table", err));
        suite_block *block = &table->blocks[table->n_blocks++];
        *block = (suite_block){.set = set, .task = task, .protocol = (suite_protocol)p};
        SN_TRY(make_block(s, block, err));
      }
  return SN_OK;
}

void suite_table_free(suite_table *table) {
  for (int64_t b = 0; b < table->n_blocks; b++) {
    for (int64_t r = 0; r < table->blocks[b].n_rows; r++) {
      sn_free(table->blocks[b].rows[r].seeds);
      sn_free(table->blocks[b].rows[r].by_seed);
    }
    sn_free(table->blocks[b].rows);
  }
  sn_free(table->blocks);
}
