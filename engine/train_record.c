/* What a training run keeps: who it is, checkpoints, ledgers of all ranks, lines of metrics. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "engine/train_private.h"

static double peak_mib(void) {
  struct rusage usage;
  return getrusage(RUSAGE_SELF, &usage) == 0 ? (double)usage.ru_maxrss / 1024 : NAN;
}

void sn_trainer_fill_identity(sn_trainer *t) {
  const sn_model_shape *shape = &t->model->shape;
  sn_train_state *s = &t->state;
  s->n_threads = t->device->n_threads;
  snprintf(s->isa, sizeof s->isa, "%s", sn_isa_name(t->device->isa));
  snprintf(s->dtype, sizeof s->dtype, "%s", t->dtype);
  snprintf(s->version, sizeof s->version, "%s", SONDE_VERSION);
  snprintf(s->content_hash, sizeof s->content_hash, "%s", t->options->source->content_hash);
  s->patch_size = shape->patch_size;
  s->n_channel_ids = shape->n_channel_ids;
  s->patch_step = shape->patch_step;
  s->pack_slots = shape->pack_slots;
  s->pack_samples = shape->pack_samples;
  s->max_tokens = shape->max_tokens;
  s->most_positions = shape->most_positions;
  s->most_series = shape->most_series;
  s->n_extra = shape->n_extra;
  s->embed_extra = shape->embed_extra;
  s->n_targets = shape->n_targets;
  memcpy(s->targets, shape->targets, sizeof s->targets);
  const sn_source *source = t->options->source;
  s->n_parts = source->n_parts;
  for (int64_t i = 0; i < source->n_parts; i++) {
    sn_part_state *p = &s->parts[i];
    snprintf(p->name, sizeof p->name, "%s", source->parts[i].name);
    p->share = source->parts[i].share;
    p->n_windows = source->parts[i].n_windows;
  }
}

static bool same_targets(const sn_train_state *a, const sn_train_state *b) {
  if (a->n_targets != b->n_targets) return false;
  for (int i = 0; i < a->n_targets; i++)
    if (strcmp(a->targets[i].name, b->targets[i].name) != 0 || a->targets[i].width != b->targets[i].width) return false;
  return true;
}

/* The run that is resumed must be this one; what only changes bits is said once and marked. */
static sn_status compare_with_run(sn_trainer *t, const sn_train_state *old, sn_error *err) {
  const sn_train_state *now = &t->state;
  if (strcmp(old->content_hash, now->content_hash) != 0)
    return sn_fail(err, SN_E_STATE,
                   "%s: the data have changed since this run began (manifest and split hash %.12s..., now %.12s...): a "
                   "resumed run must see the same recordings. Start a new run, or restore the data",
                   t->options->run, old->content_hash, now->content_hash);
  if (old->patch_size != now->patch_size || old->n_channel_ids != now->n_channel_ids ||
      old->pack_slots != now->pack_slots || old->pack_samples != now->pack_samples ||
      old->max_tokens != now->max_tokens || old->patch_step != now->patch_step || old->n_extra != now->n_extra ||
      old->embed_extra != now->embed_extra || !same_targets(old, now))
    return sn_fail(err, SN_E_STATE,
                   "%s: patches, leads or packs have another shape than when this run began: resume with "
                   "the settings it began with",
                   t->options->run);
  if (strcmp(old->dtype, now->dtype) != 0)
    return sn_fail(err, SN_E_STATE, "%s: began with dtype %s, now %s: set train.dtype to %s", t->options->run,
                   old->dtype, now->dtype, old->dtype);
  if (old->n_threads != now->n_threads || strcmp(old->isa, now->isa) != 0 || strcmp(old->version, now->version) != 0) {
    sn_log_write(&t->options->log, SN_LOG_WARNING,
                 "resumed with version %s, %s, %lld threads; began with version %s, %s, %lld threads: the result may "
                 "differ in the last bits, and the run is marked so",
                 now->version, now->isa, (long long)now->n_threads, old->version, old->isa, (long long)old->n_threads);
    t->state.inexact = true;
  }
  t->state.inexact = t->state.inexact || old->inexact || t->options->changed;
  return SN_OK;
}

/* The newest checkpoint of the run that is resumed: *path NULL when there is none, and the run begins anew. */
sn_status sn_trainer_find_checkpoint(sn_trainer *t, char **path, sn_train_state *old, sn_error *err) {
  int64_t found;
  *path = NULL;
  if (!t->options->resume) return SN_OK;
  sn_status status = sn_checkpoint_find(t->options->run, -1, &t->options->log, path, &found, err);
  if (status == SN_END) return SN_OK;
  if (status != SN_OK) return status;
  SN_TRY(sn_checkpoint_read_state(*path, old, &t->resumed, err));
  if (old->step > t->total)
    return sn_fail(err, SN_E_ARGUMENT, "%s: train.steps is %lld, and %lld steps are done already", t->options->run,
                   (long long)t->total, (long long)old->step);
  return SN_OK;
}

sn_status sn_trainer_load_checkpoint(sn_trainer *t, const char *path, const sn_train_state *old, sn_error *err) {
  sn_train_state *s = &t->state;
  SN_TRY(compare_with_run(t, old, err));
  SN_TRY(sn_checkpoint_load(path, t->model->params, true, false, err));
  s->step = old->step;
  s->updates = old->updates;
  s->position = old->position;
  s->tokens = old->tokens;
  s->samples = old->samples;
  for (int64_t i = 0; i < s->n_parts && i < old->n_parts; i++) { /* the content hash holds names and shares */
    s->parts[i].tokens = old->parts[i].tokens;
    s->parts[i].samples = old->parts[i].samples;
  }
  s->rejected = old->rejected;
  s->metrics_bytes = old->metrics_bytes;
  s->events_bytes = old->events_bytes;
  s->nonfinite_steps = old->nonfinite_steps;
  s->nonfinite_in_row = old->nonfinite_in_row;
  s->empty_steps = old->empty_steps;
  s->phase_updates = old->phase_updates;
  s->best_step = old->best_step;
  s->best_score = old->best_score;
  s->best_tie = old->best_tie;
  s->monitor = old->monitor;
  return SN_OK;
}

/* --- ledgers, checkpoints, metrics --------------------------------------------------------------------------------- */

/* Ledgers of all ranks into every rank, so that the next step sees the same on each. */
sn_status sn_trainer_exchange_ledgers(sn_trainer *t, int64_t n_new, sn_error *err) {
  if (t->comm->n_ranks == 1) return SN_OK;
  SN_TRY(sn_comm_all_reduce_sum(t->comm, &n_new, 1, SN_I64, err));
  if (n_new == 0) return SN_OK;
  sn_string text = {0};
  sn_json_writer writer;
  char *all = NULL, *own = NULL;
  int64_t lengths[1024] = {0}, most = 0;
  sn_status status;
  if (t->comm->n_ranks > 1024) return sn_fail(err, SN_E_UNSUPPORTED, "more than 1024 ranks");
  sn_json_writer_init(&writer, &text, 0);
  sn_loader_write_ledger(t->loader, &writer);
  SN_TRY_GOTO(sn_json_writer_finish(&writer, err), done);
  SN_TRY_GOTO(sn_comm_all_gather(t->comm, &text.length, lengths, sizeof lengths[0], err), done);
  for (int r = 0; r < t->comm->n_ranks; r++) most = lengths[r] > most ? lengths[r] : most;
  SN_TRY_GOTO(sn_alloc(&own, most, 1, "ledger exchange", err), done);
  SN_TRY_GOTO(sn_alloc(&all, most * t->comm->n_ranks, 1, "ledger exchange", err), done);
  memcpy(own, text.data, (size_t)text.length);
  SN_TRY_GOTO(sn_comm_all_gather(t->comm, own, all, most, err), done);
  for (int r = 0; r < t->comm->n_ranks; r++) {
    sn_json *json = NULL;
    if (r == t->comm->rank) continue;
    SN_TRY_GOTO(sn_json_parse(all + r * most, lengths[r], "ledger of another rank", &json, err), done);
    status = sn_loader_read_ledger(t->loader, json, err);
    sn_json_destroy(json);
    if (status != SN_OK) goto done;
  }
done:
  sn_free(own);
  sn_free(all);
  sn_string_free(&text);
  return status;
}

sn_status sn_trainer_write_checkpoint(sn_trainer *t, sn_error *err) {
  sn_status status = SN_OK;
  if (t->comm->rank == 0) {
    sn_string ledger = {0};
    sn_json_writer writer;
    char *path = NULL;
    sn_json_writer_init(&writer, &ledger, 0);
    sn_loader_write_ledger(t->loader, &writer);
    SN_TRY_GOTO(sn_json_writer_finish(&writer, err), done);
    SN_TRY_GOTO(sn_metrics_sync(t->metrics, &t->state.metrics_bytes, &t->state.events_bytes, err), done);
    SN_TRY_GOTO(sn_path_join(t->options->run, "quarantine.tsv", &path, err), done);
    SN_TRY_GOTO(sn_loader_save_quarantine(t->loader, path, err), done);
    status = sn_checkpoint_write(t->options->run, t->model->params, &t->state, ledger.data, true,
                                 sn_config_int(t->config, "train.keep_last"),
                                 sn_config_int(t->config, "train.keep_every"), &t->options->log, err);
  done:
    sn_free(path);
    sn_string_free(&ledger);
  }
  if (status != SN_OK) return status;
  return sn_comm_barrier(t->comm, err);
}

/* Norms of the terms' gradients over the encoder, and how they lie to one another. */
static void write_comparison(sn_trainer *t, const sn_term_gradients *g) {
  const sn_objective *o = t->model->objective;
  char key[3 * SN_METRIC_NAME];
  for (int a = 0; a < g->n_terms; a++) {
    snprintf(key, sizeof key, "grad_norm_%s", o->terms[a]);
    sn_metrics_value(t->metrics, key, g->norms[a]);
    for (int b = 0; b < a; b++) {
      snprintf(key, sizeof key, "grad_cos_%s_%s", o->terms[b], o->terms[a]);
      sn_metrics_value(t->metrics, key, g->cosines[a][b]);
    }
  }
}

/* seen: tokens, samples, samples without beats of this step. */
sn_status sn_trainer_write_metrics(sn_trainer *t, const sn_step_sums *sums, const sn_term_gradients *compared, double lr, double grad_norm, bool updated,
                               double ms, double wait_ms, const int64_t seen[3], const sn_train_scores *scores,
                               sn_error *err) {
  const sn_objective *o = t->model->objective;
  sn_metrics *m = t->metrics;
  sn_metrics_begin(m, t->state.step);
  if (t->task.n_phases > 1) sn_metrics_count(m, "phase", t->phase);
  sn_metrics_count(m, "tokens", t->state.tokens);
  sn_metrics_count(m, "samples", t->state.samples);
  for (int64_t k = 0; k < t->state.n_parts; k++) { /* what each source has had so far */
    const sn_part_state *p = &t->state.parts[k];
    char key[SN_PART_NAME + 16];
    snprintf(key, sizeof key, "tokens_%s", p->name);
    sn_metrics_count(m, key, p->tokens);
    snprintf(key, sizeof key, "share_%s", p->name);
    sn_metrics_value(m, key, t->state.tokens > 0 ? (double)p->tokens / (double)t->state.tokens : NAN);
  }
  sn_metrics_value(m, "loss", sums->loss);
  for (int g = 0; g < o->n_groups && o->n_groups > 1; g++) {
    char key[64];
    snprintf(key, sizeof key, "loss_%s", o->groups[g]);
    sn_metrics_value(m, key, sums->counts[g] > 0 ? sums->sums[g] / sums->counts[g] : NAN);
  }
  for (int i = 0; i < o->n_counters; i++) sn_metrics_count(m, o->counters[i], sums->counters[i]);
  sn_metrics_value(m, "lr", lr);
  if (sn_config_real(sn_trainer_settings(t), "train.weight_decay_end") >= 0)
    sn_metrics_value(m, "weight_decay", t->optimizer.weight_decay);
  sn_metrics_value(m, "grad_norm", grad_norm);
  write_comparison(t, compared);
  sn_metrics_count(m, "updated", updated);
  sn_metrics_count(m, "quarantined", sn_loader_quarantined(t->loader));
  if (t->options->source->may_lack_beats) sn_metrics_count(m, "nobeat", seen[2]);
  sn_metrics_count(m, "rejected", t->state.rejected);
  sn_monitor_write(t->monitor, &t->state.monitor, m);
  for (int i = 0; i < scores->n; i++) sn_metrics_value(m, scores->names[i], scores->values[i]);
  sn_metrics_timing(m, "step_ms", ms);
  sn_metrics_timing(m, "tok_per_s", ms > 0 ? 1e3 * (double)seen[0] / ms : NAN);
  sn_metrics_timing(m, "model_tflops", ms > 0 ? 1e-9 * sums->flops / ms : NAN);
  sn_metrics_timing(m, "mem_mib", peak_mib());
  sn_metrics_timing(m, "loader_wait_ms", wait_ms);
  sn_metrics_timing(m, "wall_s", (double)time(NULL));
  return sn_metrics_end(m, err);
}
