/* needs: full */
/* Beats of a source's recordings: found once per recording, whatever window asks first, and kept in bounded memory.
 *
 * A grid (modalities/ecg/beat_tokens.h) is a pure function of the recording's conditioned signal: neither the window, nor the thread,
 * nor what was thrown out in between changes it.  When the grids of all recordings do not fit, those used longest ago go, and are
 * made again when they are needed. */
#ifndef SN_DATASETS_SOURCE_BEATS_H
#define SN_DATASETS_SOURCE_BEATS_H

#include "datasets/conditioned.h"
#include "modalities/ecg/beat_tokens.h"

typedef struct sn_source_beats sn_source_beats;

/* Everything is borrowed but options. bytes: of grids kept. */
SN_MUST_CHECK sn_status sn_source_beats_create(const sn_beat_token_options *options, const sn_conditioned *conditioned,
                                               int64_t n_rows, int64_t bytes, sn_source_beats **out, sn_error *err);
void sn_source_beats_destroy(sn_source_beats *beats); /* accepts NULL */

/* The whole of source_signal's read: the window at start_s of a line's segment. Thread-safe. */
SN_MUST_CHECK sn_status sn_source_beats_read(sn_source_beats *beats, const sn_conditioned_view *view,
                                             const sn_series_list *list, int64_t segment, double start_s,
                                             const sn_signal_stats *stats, const sn_augments *augments,
                                             const sn_random *random, sn_sample **out, sn_error *err);

/* Tokens of one series in a window of a line, at most: by its length, or, once the line was scanned, by its beats. */
int64_t sn_source_beats_most(const sn_source_beats *beats, int64_t row);
/* Finds the beats of these lines (rows may repeat) on n_threads. Lines that cannot be read keep the bound by length; the loader
 * meets their error in its turn. */
SN_MUST_CHECK sn_status sn_source_beats_scan(sn_source_beats *beats, const int64_t *rows, int64_t n, int64_t n_threads,
                                             sn_error *err);

/* Of the recordings whose beats were looked for so far. */
typedef struct sn_beat_counts {
  int64_t n_recordings, n_nobeat; /* of these, without a usable beat */
  int64_t n_beats, n_dropped, n_merged;
  int64_t first_nobeat;           /* line of the first, -1 none */
} sn_beat_counts;
void sn_source_beats_get_counts(const sn_source_beats *beats, sn_beat_counts *out);

#endif
