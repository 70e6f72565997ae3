/* The loader: from windows to packs, ahead of training, in an order that is a pure function of (source, seed).
 *
 * The sequence of places is infinite: place p is window bijection(seed, epoch = p / n_windows, p % n_windows); of a mixture
 * it is the next one of the part that is farthest behind its share of the tokens (loader_plan.h).  Packs
 * are filled greedily in that order with nominal token counts up to pack_tokens; a window that turns out shorter,
 * rejected or quarantined leaves its place empty and never shifts another.  Step s takes packs_per_step packs (over
 * all ranks); rank r of R takes packs r, r+R, ...  The number of threads changes nothing.
 *
 * VIEWS.  With sampling.n_views (core/token_batch.h) a place delivers that many samples of its window, one after another in
 * the same pack, with view 0, 1, ... and one sample_id; its nominal tokens count as often.  A window of which one view is
 * rejected or fails leaves its place empty: no view comes without the others.
 *
 * GROUPS.  With sampling.group windows come in groups of one recording or subject that lie in one pack (datasets/groups.h).
 *
 * A position (the number of places consumed) and the ledger are all the state there is.
 *
 * The ledger takes effect with the next step: a place is empty when its own read fails, or when the ledger holds its
 * recording with a first place before the step's own first.  Steps read ahead are checked against it again when they
 * are handed out.  So nothing depends on which thread or rank met the fault first; with several ranks the entries
 * have to be exchanged between two steps (sn_step.n_new_quarantined, sn_loader_read_ledger). */
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

enum { SN_MOST_VIEWS = 64 };

typedef struct sn_loader_options {
  uint64_t seed;
  int64_t pack_tokens;    /* capacity of a pack in nominal tokens; at least source->max_tokens of every view */
  int64_t packs_per_step; /* over all ranks; a multiple of n_ranks */
  int64_t n_threads;      /* 0: everything on the caller's thread */
  int64_t prefetch_steps; /* how many steps ahead, at least 1 */
  int rank, n_ranks;
  sn_sampling sampling;   /* what the objective asks for; all zero: one sample a place */
  double min_gap_s, max_lag_s; /* of groups (datasets/groups.h); 0: none */
  int64_t start_position; /* places consumed so far (resume); a multiple of sn_loader_group_places */
  double max_bad_share;   /* stop (SN_E_STATE) when more than this share of the recordings is quarantined or was lost
                               before (source->n_lost); 0: strict, the first one stops */
  sn_log log;
  /* Called on a loader thread once per pack: makes the objective's masks, targets and index lists.  epochs
   * (n_samples) is each sample's epoch.  Not called for a pack without samples (its work is NULL).  An error stops
   * the run.  May be NULL. */
  sn_status (*collate)(void *user, const sn_token_batch *batch, const uint64_t *epochs, void **work, sn_error *err);
  void (*free_work)(void *user, void *work);
  void *user;
} sn_loader_options;

typedef struct sn_pack {
  sn_token_batch *batch; /* n_samples may be 0 when every place is empty */
  void *work;            /* what collate made */
} sn_pack;

typedef struct sn_step {
  int64_t n_packs; /* of this rank */
  sn_pack *packs;
  int64_t n_samples;     /* delivered, this rank; every view counts */
  int64_t n_rejected;    /* places empty by a rule, this rank */
  int64_t n_quarantined; /* places empty by the ledger, this rank */
  /* Recordings that this step added to this rank's ledger.  With several ranks: when the sum over ranks is not 0, every
   * rank writes its ledger, gathers those of the others and reads them before it asks for the next step. */
  int64_t n_new_quarantined;
  int64_t position; /* places consumed after this step, all ranks: goes into the checkpoint */
  double wait_ms;   /* how long sn_loader_next had to wait */
} sn_step;

/* source is borrowed.  SN_E_ARGUMENT names the option that is out of range. */
SN_MUST_CHECK sn_status sn_loader_create(sn_source *source, const sn_loader_options *options, sn_loader **out,
                                         sn_error *err);
void sn_loader_destroy(sn_loader *loader);
/* The next step; it waits until the step is ready.  Any error is final: every later call returns it again.
 * SN_E_STATE naming count, limit and the last fault when too many recordings are quarantined; errors that are no
 * recording's (memory, collate, a source that breaks its contract). */
SN_MUST_CHECK sn_status sn_loader_next(sn_loader *loader, sn_step **out, sn_error *err);
/* Places that a group takes; 1 where windows come by themselves. */
int64_t sn_loader_group_places(const sn_source *source, const sn_sampling *sampling);
/* To be called before sn_loader_destroy for every step handed out.  step may be NULL. */
void sn_step_destroy(sn_loader *loader, sn_step *step);

/* Most samples and the constant number of token slots that any pack can have: shapes stay the same for a whole run. */
int64_t sn_loader_pack_slots(const sn_loader *loader);             /* pack_tokens rounded up to 64 */
int64_t sn_loader_pack_samples(const sn_loader *loader);           /* most samples in one pack */
double sn_loader_epoch(const sn_loader *loader, int64_t position); /* position / n_windows; of groups, those in them */

/* Of an epoch; zeros where windows come by themselves. */
typedef struct sn_loader_groups {
  int64_t n_groups, n_windows, n_left_out; /* left out: of units that cannot fill another group of two */
  int64_t n_units, n_alone;                /* recordings or subjects with groups, and without */
  int64_t step_units;                      /* distinct ones among the windows of the first step */
  int64_t step_windows;
} sn_loader_groups;
/* Plans the first step from `position` once more to count its units: memory is the only error. */
SN_MUST_CHECK sn_status sn_loader_describe_groups(sn_loader *loader, int64_t position, sn_loader_groups *out, sn_error *err);

/* Quarantine ledger: entries of steps that were handed out, in the order of places, one a recording.
 * JSON: [{"recording", "path", "place", "code", "offset", "line", "field", "message"}, ...] with -1 for unknown. */
int64_t sn_loader_quarantined(const sn_loader *loader); /* recordings */
void sn_loader_write_ledger(const sn_loader *loader, sn_json_writer *writer);
/* Of the steps that this loader handed out, this rank: recordings whose windows were all rejected by a rule (flat, too
 * little of it measured). first, reason [out]: the lowest one's path
 * ("" when there is none), and why the first window of all was rejected; both live as long as the loader. */
int64_t sn_loader_silent(const sn_loader *loader, const char **first, const char **reason);
/* Merges entries into the ledger (resume, exchange between ranks): of two for one recording the earlier place stays.
 * SN_E_CORRUPT for a damaged one, SN_E_STATE when there are now too many. */
SN_MUST_CHECK sn_status sn_loader_read_ledger(sn_loader *loader, const sn_json *json, sn_error *err);
/* quarantine.tsv, with a header line: recording, path, code, message, offset, place. */
SN_MUST_CHECK sn_status sn_loader_save_quarantine(const sn_loader *loader, const char *path, sn_error *err);

#endif
