/* The loader: from windows to packs, ahead of training, in an order that is a pure function of (source, seed).
 *
 * The sequence of places is infinite: place p is window bijection(seed, epoch = p / n_windows, p % n_windows).  Packs are
 * filled greedily in that order with nominal token counts up to pack_tokens; a window that turns out shorter, rejected or
 * quarantined leaves its place empty and never shifts another.  Step s takes packs_per_step packs (over all ranks); rank r
 * of R takes packs r, r+R, ...  The number of threads changes nothing.
 *
 * A position (the number of places consumed) and the ledger are all the state there is. */
#ifndef SN_DATASETS_LOADER_H
#define SN_DATASETS_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "core/log.h"
#include "core/status.h"
#include "core/token_batch.h"
#include "datasets/source.h"

typedef struct sn_loader sn_loader;

typedef struct sn_loader_options {
  uint64_t seed;
  int64_t pack_tokens;      /* capacity of a pack in nominal tokens; at least source->max_tokens */
  int64_t packs_per_step;   /* over all ranks; a multiple of n_ranks */
  int64_t n_threads;        /* 0: everything on the caller's thread */
  int64_t prefetch_steps;   /* how many steps ahead, at least 1 */
  int rank, n_ranks;
  int64_t start_position;   /* places consumed so far (resume) */
  double max_bad_share;     /* stop (SN_E_STATE) when more than this share of the recordings is quarantined */
  sn_log log;
  /* Called on a loader thread once per pack: makes the objective's masks, targets and index lists.  epochs (n_samples) is
   * each sample's epoch.  May be NULL. */
  sn_status (*collate)(void *user, const sn_token_batch *batch, const uint64_t *epochs, void **work, sn_error *err);
  void (*free_work)(void *user, void *work);
  void *user;
} sn_loader_options;

typedef struct sn_pack {
  sn_token_batch *batch;    /* n_samples may be 0 when every place is empty */
  void *work;               /* what collate made */
} sn_pack;

typedef struct sn_step {
  int64_t n_packs;          /* of this rank */
  sn_pack *packs;
  int64_t n_samples;        /* delivered, this rank */
  int64_t n_rejected;       /* places empty by a rule, this rank */
  int64_t n_quarantined;    /* places empty by the ledger, this rank */
  int64_t position;         /* places consumed after this step, all ranks: goes into the checkpoint */
  double wait_ms;           /* how long sn_loader_next had to wait */
} sn_step;

/* source is borrowed. */
SN_MUST_CHECK sn_status sn_loader_create(sn_source *source, const sn_loader_options *options, sn_loader **out,
                                         sn_error *err);
void sn_loader_destroy(sn_loader *loader);
SN_MUST_CHECK sn_status sn_loader_next(sn_loader *loader, sn_step **out, sn_error *err);
void sn_step_destroy(sn_loader *loader, sn_step *step);

/* Most samples and the constant number of token slots that any pack can have: shapes stay the same for a whole run. */
int64_t sn_loader_pack_slots(const sn_loader *loader);   /* pack_tokens rounded up to 64 */
int64_t sn_loader_pack_samples(const sn_loader *loader); /* most samples in one pack */
double sn_loader_epoch(const sn_loader *loader, int64_t position); /* position / n_windows */

/* Quarantine ledger: entries of steps that were handed out, in the order of places. */
int64_t sn_loader_quarantined(const sn_loader *loader);  /* recordings */
void sn_loader_write_ledger(const sn_loader *loader, sn_json_writer *writer);
SN_MUST_CHECK sn_status sn_loader_read_ledger(sn_loader *loader, const sn_json *json, sn_error *err);
/* quarantine.tsv: recording, path, code, message, first step. */
SN_MUST_CHECK sn_status sn_loader_save_quarantine(const sn_loader *loader, const char *path, sn_error *err);

#endif
