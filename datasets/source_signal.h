/* Recordings of signals (of any one modality) as a source of windows.
 *
 * Windows of a line lie on a grid: number i of a segment starts at i x stride; they are numbered through its
 * segments.  The source's windows are those of its lines, in order, counted by prefix sums: memory is O(segments),
 * never O(windows).
 *   sample id   hash of data set name, path and window number: adding a file changes no other sample's randomness
 *   subject id  hash of data set name and the person's id; 0 unknown, also where recordings stand for persons
 * data.crop: random shifts a start by a draw in [-1/2, 1/2) strides, keyed by (seed, SN_PURPOSE_CROP, epoch, sample
 * id, view), and keeps it within the segment.  A prepared store holds whole segments, so that it gives every crop that
 * reading the recordings gives.
 *
 * BEATS.  With data.tokens: beat_* a window's tokens are whole beats (modalities/ecg/beat_tokens.h) instead of patches: the same
 * grid, ids and crops, but another patch_size, unit step and count of tokens.  The room of a window is that of its length at 300
 * beats a minute; data.beat_plan: scan finds the beats of every recording that is used when the source is made, and gives each
 * recording's windows the room of its fullest one. That reads all recordings once, and keeps one number for each.
 *
 * A recording is opened on demand, verified at its first use, and closed again when too many are open; a fault of one
 * window is one of the whole recording only if verifying finds it. */
#ifndef SN_DATASETS_SOURCE_SIGNAL_H
#define SN_DATASETS_SOURCE_SIGNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/config.h"
#include "core/log.h"
#include "core/status.h"
#include "datasets/conditioned.h"
#include "datasets/keyed_table.h"
#include "datasets/labels.h"
#include "datasets/manifest.h"
#include "datasets/source.h"
#include "datasets/source_beats.h"
#include "modalities/augmentation.h"

/* A window given outright, as those of single beats: start_s from the segment's start, kept within the segment. */
typedef struct sn_window_at {
  int64_t row, segment;
  double start_s;
} sn_window_at;

typedef struct sn_signal_source_options {
  const sn_manifest *manifest; /* borrowed */
  const int64_t *rows;         /* (n_rows) lines that are used, e.g. a part of a split; NULL: all that are ok */
  int64_t n_rows;
  const sn_window_at *windows; /* (n_windows) instead of the grid; NULL: the grid */
  int64_t n_windows;
  const sn_subjects *subjects; /* NULL: the manifest's subject column */
  const char *split_hash;      /* goes into content_hash; NULL: none */
  sn_signal_options signal;
  sn_beat_token_options beats; /* mode NONE: fixed patches */
  bool random_crop;
  sn_augments augments;        /* of every view, also view 0; all zero: none */
  int64_t cache_bytes; /* conditioned blocks kept in memory */
  int64_t most_open;   /* recordings open at a time; 0: 64 */
  sn_verify verify;
  bool tolerant;
  const char *assume_unit;
  const char *store_path; /* prepared store (store.h), opened and owned by the source; NULL: read the recordings */
  sn_log log;                     /* what is noticed of recordings at their first use */
} sn_signal_source_options;

/* data.crop, data.cache, data.verify, data.open_files, data.assume_unit, data.store: beside sn_modality_tables. */
extern const sn_config_entry sn_signal_source_config[];
/* Fills signal, random_crop, augments (where the table of augment.h is in the configuration), cache_bytes, most_open, verify, assume_unit and store_path (owned by config) from a
 * configuration with all those tables. */
SN_MUST_CHECK sn_status sn_signal_source_options_from_config(const sn_config *config, sn_signal_source_options *out,
                                                          sn_error *err);

/* Every window as it is, for probes and embeddings: neither crop nor augmentations. */
void sn_signal_source_options_plain(sn_signal_source_options *options);

/* data.modality: auto becomes the one modality that reads what the manifest's ok lines say they are (lines that say
 * nothing are passed over), and its recipe the defaults; one that is named gives its recipe too.  SN_E_ARGUMENT: lines
 * of modalities that none reads together (both are named), or none says what it is. */
SN_MUST_CHECK sn_status sn_signal_source_resolve(sn_config *config, const sn_manifest *manifest, sn_error *err);

/* SN_E_ARGUMENT when no window is left; the message counts why. Lines that are not ok are skipped. */
SN_MUST_CHECK sn_status sn_source_create_signal(const sn_signal_source_options *options, sn_source **out, sn_error *err);

/* What became of the lines. */
typedef struct sn_signal_source_report {
  int64_t n_recordings;     /* with at least one window */
  int64_t n_short;          /* shorter than a window */
  int64_t n_unusable;       /* no series that is asked for, a rate that cannot be conditioned, ... */
  char first_unusable[256]; /* "path: why" */
  double window_hours;      /* of the grid's windows */
  int64_t n_bad_channels;   /* of the recordings opened so far: marked bad, and left out */
  int64_t n_left_out;       /* and by the modality's rules */
  sn_beat_counts beats;     /* of the recordings whose beats were found so far; zeros for fixed patches */
} sn_signal_source_report;
void sn_signal_source_get_report(const sn_source *source, sn_signal_source_report *out);
const sn_conditioned *sn_signal_source_conditioned(const sn_source *source);

/* The window in fixed patches of samples, whatever its tokens are: what raw features are made of. ids are not set. */
SN_MUST_CHECK sn_status sn_signal_source_read_patches(const sn_source *source, int64_t index, sn_sample **out,
                                                      sn_error *err);
/* Where window `index` lies: line, segment, start from the segment's start (grid, without crop), number in its
 * recording. */
void sn_signal_source_locate(const sn_source *source, int64_t index, sn_window_at *where, int64_t *number);
/* Windows [*first, *first + *n) are those of a line; *n 0 when it has none. Grid only; 0 for windows given outright. */
void sn_signal_source_windows_of(const sn_source *source, int64_t row, int64_t *first, int64_t *n);

/* The windows of labelled beats, one per item, for sn_signal_source_options.windows: (labels->n), fresh (sn_free).
 * SN_E_ARGUMENT when an item is a whole recording: its windows are those of the grid. */
SN_MUST_CHECK sn_status sn_windows_of_items(const sn_manifest *manifest, const sn_labels *labels, sn_window_at **out,
                                            sn_error *err);

#endif
