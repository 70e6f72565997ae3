/* Conditioned recordings: what remains to be done with them is to cut, normalise and tokenize a window.
 *
 * HOW IT WORKS.  Every contiguous segment of every channel that is asked for has K conditioned samples (condition.h).
 * They are made in blocks of SN_CONDITIONED_BLOCK samples, counted from the segment's start, and rounded to float32
 * once; NaN marks an invalid one.  A block is a pure function of the file and the conditioning options, so that it
 * does not matter whether it is computed now, was computed before (the cache), or was written down (the prepared
 * store): all three give the same bits.  A window read this way agrees with the conditioning of its whole segment to
 * float32 rounding (2^-24 relative).  With data.resample: fft, which needs the whole segment, a segment is one block.
 *
 * A recording appears as an sn_recording at the target rate with the channels of the file (only those that its series
 * need can be read), so that modalities/signal/pipeline.h reads it like any other. A window of many channels is read
 * and conditioned together: files that interleave their channels are read once.
 *
 * Planning needs the manifest alone: no file is opened.  Where sensors stand and which channels are bad is not in it, so
 * the series of a recording (sn_conditioned_series) are chosen again, with that, when it is first used; they are kept,
 * one list for all recordings with the same channels in the same places. */
#ifndef SN_DATASETS_CONDITIONED_H
#define SN_DATASETS_CONDITIONED_H

#include <stdint.h>

#include "core/json.h"
#include "core/status.h"
#include "datasets/manifest.h"
#include "datasets/recording_pool.h"
#include "modalities/recording.h"
#include "modalities/signal/pipeline.h"

enum { SN_CONDITIONED_BLOCK = 4096 };

typedef struct sn_store sn_store;

typedef struct sn_conditioned_options {
  const sn_manifest *manifest; /* borrowed */
  sn_signal_options signal;
  int64_t cache_bytes; /* of blocks in memory */
  int64_t most_open;   /* recordings open at a time; 0: 64 */
  sn_verify verify;
  bool tolerant;
  const char *assume_unit; /* borrowed */
  const sn_store *store;   /* borrowed; NULL: blocks are computed */
  sn_log log;              /* what is noticed of a recording at its first use */
} sn_conditioned_options;

typedef struct sn_conditioned sn_conditioned;

SN_MUST_CHECK sn_status sn_conditioned_create(const sn_conditioned_options *options, sn_conditioned **out,
                                              sn_error *err);
void sn_conditioned_destroy(sn_conditioned *conditioned); /* accepts NULL */

/* Why the windows of a line cannot be planned: SN_OK, or what the modality's choice of series or the conditioning said
 * of its channels. */
sn_status sn_conditioned_usable(const sn_conditioned *conditioned, int64_t row, const sn_error **why);
/* Lines whose longest segment is shorter than three lengths of its filter; *filter_s [out] the longest such filter. */
int64_t sn_conditioned_short_for_filter(const sn_conditioned *conditioned, double *filter_s);
int64_t sn_conditioned_nominal_tokens(const sn_conditioned *conditioned, int64_t row); /* of one window */

/* A line as a recording: a value that views `conditioned`; nothing to free, and not to be destroyed. */
typedef struct sn_conditioned_view {
  sn_recording recording;
  const sn_conditioned *conditioned;
  int64_t row;
} sn_conditioned_view;
void sn_conditioned_open(const sn_conditioned *conditioned, int64_t row, sn_conditioned_view *view);

/* The pipeline that cuts, normalises and tokenizes what the views give: the options without filter and resampling. */
const sn_signal *sn_conditioned_signal(const sn_conditioned *conditioned);

/* The series of a line's channels as planned (an upper bound; NULL when it is not usable), and as they are: that opens
 * the recording, once.  Owned by conditioned.  Thread-safe. */
const sn_series_list *sn_conditioned_planned_series(const sn_conditioned *conditioned, int64_t row);
SN_MUST_CHECK sn_status sn_conditioned_series(const sn_conditioned *conditioned, int64_t row,
                                              const sn_series_list **out, sn_error *err);

/* What planning does not know of a channel. */
typedef struct sn_channel_place {
  double position_m[3], orientation[3];
  int32_t frame, position_from, coil_type; /* sn_frame, sn_position_from */
  uint8_t has_position, has_orientation, bad, reserved;
} sn_channel_place;
/* Of every channel of a line, (n_channels of its view) [out]; *any [out]: one of them differs from all zero. */
SN_MUST_CHECK sn_status sn_conditioned_places(const sn_conditioned *conditioned, int64_t row, sn_channel_place *out,
                                              bool *any, sn_error *err);

/* Channels of a line that are read (needed[n_channels]) and the whole of one: count = n_frames of the segment. */
bool sn_conditioned_needs(const sn_conditioned *conditioned, int64_t row, int64_t channel);
SN_MUST_CHECK sn_status sn_conditioned_read(const sn_conditioned *conditioned, int64_t row, int64_t channel,
                                            int64_t segment, int64_t first, int64_t count, double *values,
                                            sn_error *err);
SN_MUST_CHECK sn_status sn_conditioned_read_channels(const sn_conditioned *conditioned, int64_t row,
                                                     const int64_t *channels, int64_t n_channels, int64_t segment,
                                                     int64_t first, int64_t count, double *const *values,
                                                     sn_error *err);

/* Everything that a block depends on besides the files, as JSON text and its SHA-256 together with the manifest's
 * hash. */
SN_MUST_CHECK sn_status sn_conditioned_describe(const sn_signal_options *signal, sn_string *json, sn_error *err);
SN_MUST_CHECK sn_status sn_conditioned_key(const sn_manifest *manifest, const sn_signal_options *signal, char key[65],
                                           sn_error *err);

typedef struct sn_conditioned_counts {
  int64_t cache_hits, cache_misses, cache_bytes, opened, most_open;
  int64_t bad_channels, left_out; /* of the recordings used so far: marked bad; by the modality's rules */
} sn_conditioned_counts;
void sn_conditioned_get_counts(const sn_conditioned *conditioned, sn_conditioned_counts *out);

#endif
