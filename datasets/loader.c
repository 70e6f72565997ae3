/* HOW IT WORKS
 *
 * Steps are planned on the caller's thread, in order, and queued as jobs: one job a step, one part of it a pack of this
 * rank, one task a place.  The task that finishes a pack's last place packs and collates it.  sn_loader_next waits for
 * the job at the front, checks it once more against the ledger, adds the job's own faults to the ledger and hands it
 * out.
 *
 * Workers skip a place that the ledger already holds, but that only saves work: what counts is the check when the job
 * is handed out, on the caller's thread and in the order of steps.  A pack read ahead that holds a sample of a
 * recording quarantined meanwhile is read again without it, which is rare, because a source fails a recording as a
 * whole. */
#include "datasets/loader.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/pool.h"
#include "datasets/loader_ledger.h"
#include "datasets/loader_plan.h"
#include "datasets/loader_tally.h"

typedef enum outcome {
  OUTCOME_NONE, /* not read (the run is stopping) */
  OUTCOME_SAMPLE,
  OUTCOME_REJECTED,
  OUTCOME_FAILED, /* belongs in the ledger */
  OUTCOME_IN_LEDGER,
  OUTCOME_FATAL /* stops the run */
} outcome;

typedef struct place_state {
  int64_t window;
  uint64_t epoch;
  outcome outcome;
  sn_sample **samples; /* (n_views) of the window, all there with OUTCOME_SAMPLE, else all NULL. In the pack's list */
  sn_error *error; /* FAILED, FATAL, REJECTED; NULL when even that could not be allocated */
} place_state;

typedef struct step_job step_job;

typedef struct pack_job {
  sn_loader *loader;
  step_job *job;
  int64_t first; /* place */
  int64_t n_places;
  place_state *places;
  sn_sample **samples; /* (n_places, n_views) */
  atomic_int_fast64_t unread;
  sn_token_batch *batch;
  void *work;
  sn_status status; /* of packing and collating */
  sn_error error;
} pack_job;

struct step_job {
  step_job *next;
  int64_t first, end; /* places, all ranks */
  int64_t n_packs;    /* of this rank */
  pack_job *packs;
  int64_t unfinished; /* packs; under loader->lock */
  sn_status status;   /* of planning */
  sn_error error;
};

struct sn_loader {
  sn_source *source;
  sn_loader_options options;
  sn_plan plan;
  sn_groups *groups[SN_MOST_PARTS]; /* of each part, or of all; NULL: windows come by themselves */
  int64_t n_views;
  sn_pool *pool;
  int64_t planned; /* position up to which steps are planned */
  step_job *front, *back;
  int64_t n_queued;
  bool plan_ended;  /* a job that failed to plan is the last one */
  sn_status status; /* final error */
  sn_error error;
  atomic_bool stopping;
  pthread_mutex_t lock; /* ledger, unfinished */
  pthread_cond_t finished;
  sn_ledger ledger;
  sn_tally tally;       /* the caller's thread alone */
};

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- one place, one pack (any thread) ---------------------------------------------------------------------------- */

static bool is_recordings_fault(sn_status status) {
  return status != SN_E_MEMORY && status != SN_E_DEVICE && status != SN_E_STATE;
}

static bool in_ledger(sn_loader *loader, int64_t recording, int64_t step_first) {
  if (recording < 0) return false;
  pthread_mutex_lock(&loader->lock);
  const sn_ledger_entry *entry = sn_ledger_find(&loader->ledger, recording);
  bool found = entry != NULL && entry->place < step_first;
  pthread_mutex_unlock(&loader->lock);
  return found;
}

static void release_samples(const sn_loader *loader, place_state *state) {
  for (int64_t v = 0; v < loader->n_views; v++) {
    sn_sample_destroy(state->samples[v]);
    state->samples[v] = NULL;
  }
}

static void place_clear(const sn_loader *loader, place_state *state) {
  release_samples(loader, state);
  sn_free(state->error);
  state->error = NULL;
  state->outcome = OUTCOME_NONE;
}

static void place_fail(place_state *state, outcome kind, const sn_error *error) {
  state->outcome = kind;
  if (sn_alloc(&state->error, 1, sizeof *state->error, "error of a window", NULL) != SN_OK) {
    state->outcome = OUTCOME_FATAL;
    state->error = NULL;
    return;
  }
  *state->error = *error;
}

/* One view. SN_E_STATE: the sample is not what was planned. */
static sn_status read_view(sn_loader *loader, int64_t window, uint64_t epoch, int64_t view, sn_sample **out,
                           sn_error *err) {
  sn_source *source = loader->source;
  SN_TRY(sn_source_read(source, window, loader->options.seed, epoch, view, out, err));
  const int64_t nominal = source->vtable->nominal_tokens(source, window);
  const sn_sample *sample = *out;
  if (sample->n_tokens <= nominal && sample->n_tokens >= 1 && sample->patch_size == source->patch_size) return SN_OK;
  return sn_fail(err, SN_E_STATE,
                 "source %s: window %" PRId64 " has %" PRId64 " tokens of %" PRId64 " values; planned were at most %" PRId64
                 " of %" PRId64,
                 source->vtable->name, window, sample->n_tokens, sample->patch_size, nominal, source->patch_size);
}

/* All views, or none: with one of them missing the others would have lost their partner. */
static void read_place(pack_job *pack, int64_t index) {
  sn_loader *loader = pack->loader;
  sn_source *source = loader->source;
  place_state *state = &pack->places[index];
  if (atomic_load_explicit(&loader->stopping, memory_order_relaxed)) return;
  int64_t recording = source->vtable->recording(source, state->window);
  if (in_ledger(loader, recording, pack->job->first)) {
    state->outcome = OUTCOME_IN_LEDGER;
    return;
  }
  sn_error error;
  sn_error_clear(&error);
  sn_status status = SN_OK;
  for (int64_t v = 0; v < loader->n_views && status == SN_OK; v++)
    status = read_view(loader, state->window, state->epoch, v, &state->samples[v], &error);
  if (status == SN_OK) {
    state->outcome = OUTCOME_SAMPLE;
    return;
  }
  release_samples(loader, state);
  if (status == SN_END) {
    place_fail(state, OUTCOME_REJECTED, &error);
    return;
  }
  error.code = status;
  const bool fault = recording >= 0 && is_recordings_fault(status);
  place_fail(state, fault ? OUTCOME_FAILED : OUTCOME_FATAL, &error);
}

static sn_status pack_samples(pack_job *pack, const sn_sample **samples, uint64_t *epochs, sn_error *err) {
  sn_loader *loader = pack->loader;
  int64_t n = 0;
  for (int64_t i = 0; i < pack->n_places; i++) {
    if (pack->places[i].outcome != OUTCOME_SAMPLE) continue;
    for (int64_t v = 0; v < loader->n_views; v++, n++) {
      samples[n] = pack->places[i].samples[v];
      epochs[n] = pack->places[i].epoch;
    }
  }
  SN_TRY(sn_token_batch_pack(samples, n, &pack->batch, err));
  pack->batch->patch_size = loader->source->patch_size; /* an empty pack has it too */
  if (n == 0 || loader->options.collate == NULL) return SN_OK;
  return loader->options.collate(loader->options.user, pack->batch, epochs, &pack->work, err);
}

/* After the last place: pack, collate, and let go of the samples. */
static void finish_pack(pack_job *pack) {
  sn_loader *loader = pack->loader;
  sn_error_clear(&pack->error);
  pack->status = SN_OK;
  bool stopped = atomic_load_explicit(&loader->stopping, memory_order_relaxed);
  for (int64_t i = 0; i < pack->n_places && pack->status == SN_OK; i++) {
    const place_state *state = &pack->places[i];
    if (state->outcome != OUTCOME_FATAL) continue;
    if (state->error == NULL) {
      pack->status = sn_fail(&pack->error, SN_E_MEMORY, "loader: out of memory while reading a window");
    } else {
      pack->error = *state->error;
      pack->status = state->error->code;
    }
  }
  if (pack->status == SN_OK && !stopped) {
    const sn_sample **samples = NULL;
    uint64_t *epochs = NULL;
    const int64_t most = pack->n_places * loader->n_views;
    pack->status = sn_alloc(&samples, most, sizeof *samples, "samples of a pack", &pack->error);
    if (pack->status == SN_OK) {
      pack->status = sn_alloc(&epochs, most, sizeof *epochs, "epochs of a pack", &pack->error);
    }
    if (pack->status == SN_OK) pack->status = pack_samples(pack, samples, epochs, &pack->error);
    sn_free(samples);
    sn_free(epochs);
  }
  for (int64_t i = 0; i < pack->n_places; i++) release_samples(loader, &pack->places[i]);
}

static void read_task(void *user, int64_t index, int64_t worker) {
  pack_job *pack = user;
  sn_loader *loader = pack->loader;
  read_place(pack, index);
  if (atomic_fetch_sub_explicit(&pack->unread, 1, memory_order_acq_rel) != 1) return;
  finish_pack(pack);
  pthread_mutex_lock(&loader->lock);
  if (--pack->job->unfinished == 0) pthread_cond_broadcast(&loader->finished);
  pthread_mutex_unlock(&loader->lock);
}

/* ---- jobs (the caller's thread) ---------------------------------------------------------------------------------- */

static void release_pack(sn_loader *loader, sn_token_batch *batch, void *work) {
  sn_token_batch_destroy(batch);
  if (work != NULL && loader->options.free_work != NULL) loader->options.free_work(loader->options.user, work);
}

static void pack_clear(pack_job *pack) {
  for (int64_t i = 0; i < pack->n_places; i++) place_clear(pack->loader, &pack->places[i]);
  release_pack(pack->loader, pack->batch, pack->work);
  pack->batch = NULL;
  pack->work = NULL;
}

static void job_destroy(step_job *job) {
  if (job == NULL) return;
  for (int64_t k = 0; k < job->n_packs; k++) {
    pack_clear(&job->packs[k]);
    sn_free(job->packs[k].places);
    sn_free(job->packs[k].samples);
  }
  sn_free(job->packs);
  sn_free(job);
}

static sn_status make_pack(sn_loader *loader, step_job *job, const sn_plan_place *places, int64_t n, sn_error *err) {
  pack_job *pack = &job->packs[job->n_packs];
  SN_TRY(sn_alloc(&pack->places, n, sizeof *pack->places, "places of a pack", err));
  pack->loader = loader;
  pack->job = job;
  job->n_packs++; /* from here on job_destroy frees it */
  SN_TRY(sn_alloc(&pack->samples, n, loader->n_views * (int64_t)sizeof *pack->samples, "places of a pack", err));
  pack->first = job->end;
  pack->n_places = n;
  for (int64_t i = 0; i < n; i++) {
    pack->places[i].window = places[i].window;
    pack->places[i].epoch = places[i].epoch;
    pack->places[i].samples = pack->samples + i * loader->n_views;
  }
  atomic_init(&pack->unread, n);
  return SN_OK;
}

static sn_status plan_job(sn_loader *loader, step_job *job, sn_error *err) {
  const sn_loader_options *o = &loader->options;
  sn_plan_place *places = NULL;
  int64_t capacity = 0;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&job->packs, o->packs_per_step / o->n_ranks, sizeof *job->packs, "packs of a step", err));
  for (int64_t k = 0; k < o->packs_per_step; k++) {
    int64_t n = 0, next = 0;
    SN_TRY_GOTO(sn_plan_pack(&loader->plan, job->end, &n, &next, &places, &capacity, err), done);
    if (k % o->n_ranks == o->rank) SN_TRY_GOTO(make_pack(loader, job, places, n, err), done);
    job->end = next;
  }
done:
  sn_free(places);
  return status;
}

/* Plans one more step and gives it to the pool.  A step that cannot be planned is queued with its error, which is
 * reported when its turn comes: at the same step for any number of threads. */
static sn_status schedule(sn_loader *loader, sn_error *err) {
  step_job *job = NULL;
  SN_TRY(sn_alloc(&job, 1, sizeof *job, "step", err));
  job->first = job->end = loader->planned;
  job->status = plan_job(loader, job, &job->error);
  if (loader->back != NULL) {
    loader->back->next = job;
  } else {
    loader->front = job;
  }
  loader->back = job;
  loader->n_queued++;
  if (job->status != SN_OK) {
    loader->plan_ended = true;
    return SN_OK;
  }
  loader->planned = job->end;
  job->unfinished = job->n_packs;
  for (int64_t k = 0; k < job->n_packs; k++) {
    pack_job *pack = &job->packs[k];
    for (int64_t i = 0, n = pack->n_places; i < n; i++) {
      /* A task that the pool cannot take runs here: a count that never reaches zero would hang. */
      if (sn_pool_submit(loader->pool, read_task, pack, i, NULL) != SN_OK) read_task(pack, i, -1);
    }
  }
  return SN_OK;
}

static sn_status fill_queue(sn_loader *loader, int64_t depth, sn_error *err) {
  while (loader->n_queued < depth && !loader->plan_ended) SN_TRY(schedule(loader, err));
  return SN_OK;
}

/* A pack that was read before the ledger grew: once more, without the recordings that are in it now. */
static void recheck_pack(pack_job *pack) {
  sn_loader *loader = pack->loader;
  bool stale = false;
  for (int64_t i = 0; i < pack->n_places && !stale; i++) {
    const place_state *state = &pack->places[i];
    if (state->outcome == OUTCOME_IN_LEDGER) continue;
    stale = in_ledger(loader, loader->source->vtable->recording(loader->source, state->window), pack->job->first);
  }
  if (!stale) return;
  pack_clear(pack);
  for (int64_t i = 0; i < pack->n_places; i++) read_place(pack, i);
  finish_pack(pack);
}

static sn_status check_limit(const sn_loader *loader, sn_error *err) {
  const sn_ledger *ledger = &loader->ledger;
  int64_t all = loader->source->n_used > 0 ? loader->source->n_used : loader->source->n_recordings;
  const int64_t lost = loader->source->n_lost;
  double limit = loader->options.max_bad_share * (double)(all + lost);
  if (ledger->n == 0 || (double)(ledger->n + lost) <= limit) return SN_OK;
  const sn_ledger_entry *last = &ledger->entries[ledger->n - 1];
  return sn_fail_at(
      err, SN_E_STATE, last->error.offset, last->error.line, last->error.field,
      "%" PRId64 " of %" PRId64 " recordings are quarantined or could not be indexed, the limit is a share of %g: name them in "
      "data.exclude or raise train.max_bad_share; the last: %s (%s)",
      ledger->n + lost, all + lost, loader->options.max_bad_share, last->error.message, sn_status_name(last->error.code));
}

static sn_status quarantine(sn_loader *loader, const pack_job *pack, int64_t index, sn_step *step, sn_error *err) {
  const place_state *state = &pack->places[index];
  sn_source *source = loader->source;
  const char *path = source->vtable->describe(source, state->window);
  bool added = false;
  pthread_mutex_lock(&loader->lock);
  sn_status status = sn_ledger_add(&loader->ledger, source->vtable->recording(source, state->window),
                                   pack->first + index, path, state->error, &added, err);
  pthread_mutex_unlock(&loader->lock);
  SN_TRY(status);
  if (added) {
    step->n_new_quarantined++;
    sn_log_write(&loader->options.log, SN_LOG_WARNING, "quarantined %s: %s (%s)", path, state->error->message,
                 sn_status_name(state->error->code));
  }
  return SN_OK;
}

static void tally_place(sn_loader *loader, const place_state *state) {
  sn_source *source = loader->source;
  if (state->outcome != OUTCOME_SAMPLE && state->outcome != OUTCOME_REJECTED) return;
  const int64_t recording = source->vtable->recording(source, state->window);
  if (state->outcome == OUTCOME_SAMPLE) sn_tally_gave(&loader->tally, recording);
  else sn_tally_rejected(&loader->tally, recording, state->window, state->error->message);
}

/* Counts outcomes, fills the ledger, moves batches and work into the step. */
static sn_status hand_out(sn_loader *loader, step_job *job, sn_step *step, sn_error *err) {
  for (int64_t k = 0; k < job->n_packs; k++) {
    pack_job *pack = &job->packs[k];
    recheck_pack(pack);
    if (pack->status != SN_OK) {
      if (err != NULL) *err = pack->error;
      return pack->status;
    }
  }
  for (int64_t k = 0; k < job->n_packs; k++) {
    pack_job *pack = &job->packs[k];
    for (int64_t i = 0; i < pack->n_places; i++) {
      outcome kind = pack->places[i].outcome;
      step->n_samples += kind == OUTCOME_SAMPLE ? loader->n_views : 0;
      step->n_rejected += kind == OUTCOME_REJECTED;
      step->n_quarantined += kind == OUTCOME_FAILED || kind == OUTCOME_IN_LEDGER;
      if (kind == OUTCOME_FAILED) SN_TRY(quarantine(loader, pack, i, step, err));
      tally_place(loader, &pack->places[i]);
    }
  }
  SN_TRY(check_limit(loader, err));
  for (int64_t k = 0; k < job->n_packs; k++) {
    step->packs[k] = (sn_pack){.batch = job->packs[k].batch, .work = job->packs[k].work};
    job->packs[k].batch = NULL;
    job->packs[k].work = NULL;
  }
  step->n_packs = job->n_packs;
  step->position = job->end;
  return SN_OK;
}

static sn_status next_step(sn_loader *loader, sn_step **out, sn_error *err) {
  const sn_loader_options *o = &loader->options;
  sn_step *step = NULL;
  sn_status status = SN_OK;
  int64_t depth = o->n_threads == 0 ? 1 : o->prefetch_steps;
  SN_TRY(fill_queue(loader, depth, err));
  step_job *job = loader->front;
  pthread_mutex_lock(&loader->lock);
  while (job->unfinished > 0) pthread_cond_wait(&loader->finished, &loader->lock);
  pthread_mutex_unlock(&loader->lock);
  if (job->status != SN_OK) {
    if (err != NULL) *err = job->error;
    return job->status;
  }
  SN_TRY_GOTO(sn_alloc(&step, 1, sizeof *step, "step", err), fail);
  SN_TRY_GOTO(sn_alloc(&step->packs, job->n_packs, sizeof *step->packs, "packs of a step", err), fail);
  SN_TRY_GOTO(hand_out(loader, job, step, err), fail);
  loader->front = job->next;
  if (loader->front == NULL) loader->back = NULL;
  loader->n_queued--;
  job_destroy(job);
  /* Keeps the workers busy while the caller trains on this step. */
  if (o->n_threads > 0) SN_TRY_GOTO(fill_queue(loader, depth, err), fail);
  *out = step;
  return SN_OK;
fail:
  sn_step_destroy(loader, step);
  return status;
}

/* ---- public ------------------------------------------------------------------------------------------------------ */

static int64_t views_of(const sn_loader_options *o) { return o->sampling.n_views > 0 ? o->sampling.n_views : 1; }

static bool has_groups(const sn_sampling *s) { return s->by != SN_GROUP_NONE && (s->group > 1 || s->partners); }

int64_t sn_loader_group_places(const sn_source *source, const sn_sampling *s) {
  if (!has_groups(s)) return 1;
  return !s->partners ? s->group : source->n_parts > 1 ? source->n_parts : 1;
}

static sn_status check_options(const sn_source *source, const sn_loader_options *o, sn_error *err) {
#define CHECK(condition, field, value, expected)                                                        \
  if (!(condition))                                                                                     \
  return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, field, "loader: %s is %" PRId64 "; expected %s", field, \
                    (int64_t)(value), expected)
  CHECK(source->n_windows >= 1, "n_windows", source->n_windows, "at least one window in the source");
  CHECK(source->min_tokens >= 1, "min_tokens", source->min_tokens, "at least 1");
  CHECK(source->max_tokens >= source->min_tokens, "max_tokens", source->max_tokens, "at least min_tokens");
  CHECK(o->packs_per_step >= 1, "packs_per_step", o->packs_per_step, "at least 1");
  CHECK(o->n_ranks >= 1, "n_ranks", o->n_ranks, "at least 1");
  CHECK(o->packs_per_step % o->n_ranks == 0, "packs_per_step", o->packs_per_step, "a multiple of n_ranks");
  CHECK(o->rank >= 0 && o->rank < o->n_ranks, "rank", o->rank, "0 .. n_ranks - 1");
  CHECK(o->n_threads >= 0 && o->n_threads <= 4096, "n_threads", o->n_threads, "0 .. 4096");
  CHECK(o->prefetch_steps >= 1, "prefetch_steps", o->prefetch_steps, "at least 1");
  CHECK(o->start_position >= 0, "start_position", o->start_position, "at least 0");
  CHECK(o->sampling.n_views >= 0 && o->sampling.n_views <= SN_MOST_VIEWS, "n_views", o->sampling.n_views, "0 .. 64");
  CHECK(o->sampling.group >= 0 && o->sampling.group <= SN_MOST_GROUP, "group", o->sampling.group, "0 .. 64");
#undef CHECK
  const int64_t group = sn_loader_group_places(source, &o->sampling), together = views_of(o) * group;
  if (o->pack_tokens / together < source->max_tokens) {
    char of[80] = "";
    if (group > 1) snprintf(of, sizeof of, "groups of %" PRId64 " and ", group);
    if (together > 1) snprintf(of + strlen(of), sizeof of - strlen(of), "%" PRId64 " views of ", views_of(o));
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "pack_tokens",
                      "loader: a pack of %" PRId64 " tokens cannot hold %sa window of %" PRId64
                      "; raise the tokens per pack or shorten the window",
                      o->pack_tokens, of, source->max_tokens);
  }
  if (!has_groups(&o->sampling) && (o->min_gap_s != 0 || o->max_lag_s != 0))
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, o->min_gap_s != 0 ? "sampler.min_gap" : "sampler.max_lag",
                      "sampler.min_gap and sampler.max_lag are of windows that come in groups, and the objective asks for none: leave "
                      "them out");
  if (!(o->max_bad_share >= 0.0 && o->max_bad_share <= 1.0)) {
    return sn_fail_at(err, SN_E_ARGUMENT, -1, -1, "max_bad_share", "loader: max_bad_share is %g; expected 0 .. 1",
                      o->max_bad_share);
  }
  return SN_OK;
}

/* Of every part by itself, or of all together. */
static sn_status make_groups(sn_loader *loader, sn_error *err) {
  const sn_loader_options *o = &loader->options;
  const sn_group_options g = {.sampling = o->sampling, .min_gap_s = o->min_gap_s, .max_lag_s = o->max_lag_s};
  const bool parts = loader->source->n_parts > 1 && !o->sampling.partners;
  if (!has_groups(&o->sampling)) return SN_OK;
  for (int64_t k = 0; k < (parts ? loader->source->n_parts : 1); k++)
    SN_TRY(sn_groups_create(loader->source, parts ? k : -1, &g, &loader->groups[k], err));
  loader->plan.groups = (const sn_groups *const *)loader->groups;
  loader->plan.group_places = sn_groups_most(loader->groups[0]);
  loader->plan.partners = o->sampling.partners;
  return SN_OK;
}

sn_status sn_loader_create(sn_source *source, const sn_loader_options *options, sn_loader **out, sn_error *err) {
  SN_TRY(check_options(source, options, err));
  sn_loader *loader = NULL;
  SN_TRY(sn_alloc(&loader, 1, sizeof *loader, "loader", err));
  sn_status status = sn_tally_init(&loader->tally, source->n_recordings, err);
  if (status == SN_OK) status = sn_pool_create(options->n_threads, &loader->pool, err);
  if (status != SN_OK) {
    sn_tally_free(&loader->tally);
    sn_free(loader);
    return status;
  }
  loader->source = source;
  loader->options = *options;
  loader->plan = (sn_plan){.source = source, .seed = options->seed, .pack_tokens = options->pack_tokens,
                           .n_views = views_of(options), .group_places = 1};
  loader->n_views = views_of(options);
  loader->planned = options->start_position;
  atomic_init(&loader->stopping, false);
  pthread_mutex_init(&loader->lock, NULL);
  pthread_cond_init(&loader->finished, NULL);
  status = make_groups(loader, err);
  if (status != SN_OK) {
    sn_loader_destroy(loader);
    return status;
  }
  *out = loader;
  return SN_OK;
}

void sn_loader_destroy(sn_loader *loader) {
  if (loader == NULL) return;
  atomic_store(&loader->stopping, true); /* tasks still queued return at once */
  sn_pool_destroy(loader->pool);
  while (loader->front != NULL) {
    step_job *job = loader->front;
    loader->front = job->next;
    job_destroy(job);
  }
  sn_ledger_free(&loader->ledger);
  for (int k = 0; k < SN_MOST_PARTS; k++) sn_groups_destroy(loader->groups[k]);
  sn_tally_free(&loader->tally);
  pthread_cond_destroy(&loader->finished);
  pthread_mutex_destroy(&loader->lock);
  sn_free(loader);
}

sn_status sn_loader_next(sn_loader *loader, sn_step **out, sn_error *err) {
  double start = now_ms();
  *out = NULL;
  if (loader->status == SN_OK) {
    sn_error_clear(&loader->error);
    loader->status = next_step(loader, out, &loader->error);
  }
  if (loader->status != SN_OK) {
    if (err != NULL) *err = loader->error;
    return loader->status;
  }
  (*out)->wait_ms = now_ms() - start;
  return SN_OK;
}

void sn_step_destroy(sn_loader *loader, sn_step *step) {
  if (step == NULL) return;
  for (int64_t k = 0; k < step->n_packs; k++) release_pack(loader, step->packs[k].batch, step->packs[k].work);
  sn_free(step->packs);
  sn_free(step);
}

int64_t sn_loader_pack_slots(const sn_loader *loader) {
  return sn_round_up(loader->options.pack_tokens, SN_TOKEN_BUCKET);
}

int64_t sn_loader_pack_samples(const sn_loader *loader) {
  return loader->options.pack_tokens / loader->n_views / loader->source->min_tokens * loader->n_views;
}

double sn_loader_epoch(const sn_loader *loader, int64_t position) { return sn_plan_epoch(&loader->plan, position); }

static int compare_keys(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* Which unit a window is of. */
static uint64_t unit_of(const sn_loader *loader, int64_t window) {
  const sn_source *source = loader->source;
  sn_source_stretch s = {0};
  int64_t low = 0, high = source->n_stretches - 1;
  while (low < high) {
    const int64_t middle = high - (high - low) / 2;
    source->vtable->stretch(source, middle, &s);
    if (s.first <= window) low = middle;
    else high = middle - 1;
  }
  source->vtable->stretch(source, low, &s);
  return loader->options.sampling.by == SN_GROUP_SUBJECT ? s.subject_id : s.recording_key;
}

sn_status sn_loader_describe_groups(sn_loader *loader, int64_t position, sn_loader_groups *out, sn_error *err) {
  sn_plan plan = loader->plan;
  sn_plan_place *places = NULL;
  uint64_t *units = NULL;
  int64_t capacity = 0, units_capacity = 0, n;
  sn_status status = SN_OK;
  *out = (sn_loader_groups){0};
  for (int k = 0; k < SN_MOST_PARTS && loader->groups[k] != NULL; k++) {
    const sn_groups_report r = sn_groups_get_report(loader->groups[k]);
    out->n_groups += r.n_groups;
    out->n_windows += r.n_windows;
    out->n_left_out += r.n_left_out;
    out->n_units += r.n_units;
    out->n_alone += r.n_alone;
  }
  if (plan.groups == NULL) return SN_OK;
  for (int64_t k = 0; k < loader->options.packs_per_step; k++) {
    SN_TRY_GOTO(sn_plan_pack(&plan, position, &n, &position, &places, &capacity, err), done);
    SN_TRY_GOTO(sn_grow(&units, &units_capacity, out->step_windows + n, sizeof *units, "groups", err), done);
    for (int64_t i = 0; i < n; i++) units[out->step_windows++] = unit_of(loader, places[i].window);
  }
  qsort(units, (size_t)out->step_windows, sizeof *units, compare_keys);
  for (int64_t i = 0; i < out->step_windows; i++) out->step_units += i == 0 || units[i] != units[i - 1];
done:
  sn_free(places);
  sn_free(units);
  return status;
}

int64_t sn_loader_quarantined(const sn_loader *loader) { return loader->ledger.n; }

void sn_loader_write_ledger(const sn_loader *loader, sn_json_writer *writer) {
  sn_ledger_write_json(&loader->ledger, writer);
}

int64_t sn_loader_silent(const sn_loader *loader, const char **first, const char **reason) {
  int64_t window;
  const int64_t n = sn_tally_count_silent(&loader->tally, &window);
  *first = window >= 0 ? loader->source->vtable->describe(loader->source, window) : "";
  *reason = loader->tally.reason;
  return n;
}

sn_status sn_loader_read_ledger(sn_loader *loader, const sn_json *json, sn_error *err) {
  pthread_mutex_lock(&loader->lock);
  sn_status status = sn_ledger_read_json(&loader->ledger, json, loader->source->n_recordings, err);
  pthread_mutex_unlock(&loader->lock);
  if (status != SN_OK) return status;
  return check_limit(loader, err);
}

sn_status sn_loader_save_quarantine(const sn_loader *loader, const char *path, sn_error *err) {
  return sn_ledger_save_tsv(&loader->ledger, path, err);
}
