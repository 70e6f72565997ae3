/* Checkpoints: one directory each, complete or absent.
 *
 * checkpoints/step-NNNNNNNNN/ holds model.safetensors, ema.safetensors (when a moving average is kept),
 * optimizer.safetensors (moments) and state.json, written last.  Everything is written into
 * checkpoints/writing-step-N/, fsynced, and the directory renamed into place; then the parent is fsynced.  A checkpoint
 * counts when its state.json parses, its last key is the SHA-256 of what stands before it, its step is the directory's,
 * and every file it names has the SHA-256 that it states. */
#ifndef SN_ENGINE_CHECKPOINT_H
#define SN_ENGINE_CHECKPOINT_H

#include "core/json.h"
#include "core/log.h"
#include "core/token_batch.h"
#include "datasets/source.h"
#include "kernels/param.h"

/* What a source of a mixture was asked for and has had. */
typedef struct sn_part_state {
  char name[SN_PART_NAME];
  double share;             /* of the tokens */
  int64_t n_windows;
  int64_t tokens, samples;  /* that reached the model, all ranks */
} sn_part_state;

/* What the rules of the monitors remember (engine/monitor.h). All zero: nothing seen. */
typedef struct sn_monitor_state {
  int64_t steps;            /* watched, in this phase */
  int64_t low_in_row;       /* observations in a row that were those of a collapse */
  bool collapsed;
  int64_t collapsed_at;     /* step at which it was last found, 0: never */
  int64_t block_steps;      /* of the running mean of losses */
  double block_sum;
  int64_t blocks;           /* complete ones */
  double best_mean;         /* lowest one, and the step at which it ended */
  int64_t best_at;
  bool plateau;
} sn_monitor_state;

/* Everything of a run that is not a tensor. */
typedef struct sn_train_state {
  int64_t step;             /* optimiser steps done */
  int64_t updates;          /* steps that changed weights (bias correction counts these) */
  int64_t position;         /* places consumed (datasets/loader.h) */
  int64_t tokens, samples;  /* seen so far, all ranks */
  int64_t rejected;         /* windows left empty by a rule so far, all ranks */
  int64_t metrics_bytes;    /* length of metrics.jsonl */
  int64_t events_bytes;
  int64_t nonfinite_steps, nonfinite_in_row, empty_steps;
  int64_t phase_updates;    /* updates before the phase began: bias correction counts from there */
  int64_t best_step;        /* of the evaluations so far; -1: none */
  double best_score, best_tie;
  sn_monitor_state monitor;
  int64_t n_threads;
  char isa[16], dtype[8], version[16];
  char content_hash[65];    /* of the source */
  bool inexact;             /* was resumed with another build, instruction set or thread count */
  int64_t patch_size, n_channel_ids;
  double patch_step;
  int64_t pack_slots, pack_samples, max_tokens;
  int64_t most_positions, most_series; /* of a sample, 0: not known */
  int64_t n_extra;          /* of the patch_size values, those that are no signal */
  bool embed_extra;
  int n_targets;            /* beside the tokens: heads have their widths */
  sn_target_spec targets[SN_MOST_TARGETS];
  int64_t n_parts;          /* of a mixture (datasets/mixture.h); 0: one data set */
  sn_part_state parts[SN_MOST_PARTS];
} sn_train_state;

/* ledger: the loader's, as JSON text of one value ("null" when there is none).  keep_last / keep_every: retention after
 * a successful write; the checkpoint of best_step is always kept.  Free space is checked first: SN_E_IO with needed and
 * available bytes, nothing touched. */
SN_MUST_CHECK sn_status sn_checkpoint_write(const char *run, const sn_params *params, const sn_train_state *state,
                                            const char *ledger, bool with_moments, int64_t keep_last,
                                            int64_t keep_every, const sn_log *log, sn_error *err);

/* The newest complete checkpoint of a run: its path (sn_free) and step; SN_END when there is no checkpoint at all,
 * SN_E_CORRUPT when there are some and none is complete: a run must not begin anew over them unasked.  Incomplete ones
 * are reported through log and left alone. step >= 0 asks for exactly that one. */
SN_MUST_CHECK sn_status sn_checkpoint_find(const char *run, int64_t step, const sn_log *log, char **path,
                                           int64_t *found, sn_error *err);

/* Strict by name: values (and moments, moving average when prepared and with_moments). The ledger value stays owned by
 * *json, which the caller destroys. */
SN_MUST_CHECK sn_status sn_checkpoint_load(const char *path, sn_params *params, bool with_moments, bool use_ema,
                                           sn_error *err);
SN_MUST_CHECK sn_status sn_checkpoint_read_state(const char *path, sn_train_state *state, sn_json **json,
                                                 sn_error *err);

#endif
