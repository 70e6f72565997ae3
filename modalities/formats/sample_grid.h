/* A grid of samples: what the readers of regularly stored signals share (BrainVision, EEGLAB, arrays, Neuroscan).
 *
 * Numbers of one type, channel c of frame t at offset + c * channel_bytes + t * frame_bytes of a stream; the samples of
 * a segment are consecutive frames.  value = (stored - baseline[c]) * scale[c] in float64; a stored floating-point
 * number that is not finite is a missing sample (NaN).  Everything is checked against the stream when the grid is
 * attached, so that a read finds its bytes. */
#ifndef SN_MODALITIES_SAMPLE_GRID_H
#define SN_MODALITIES_SAMPLE_GRID_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"
#include "modalities/recording.h"

typedef enum sn_grid_type {
  SN_GRID_I8,
  SN_GRID_U8,
  SN_GRID_I16,
  SN_GRID_U16,
  SN_GRID_I32,
  SN_GRID_U32,
  SN_GRID_I64,
  SN_GRID_F32,
  SN_GRID_F64
} sn_grid_type;

int64_t sn_grid_type_bytes(sn_grid_type type);

/* The `self` of a recording, or the first member of it. */
typedef struct sn_grid {
  sn_stream *stream; /* owned */
  void *memory;      /* owned, or NULL: what a memory stream views */
  sn_grid_type type;
  bool big_endian;
  int64_t n_channels, n_frames;
  int64_t offset, channel_bytes, frame_bytes;
  double *scale, *baseline; /* (n_channels) */
  int64_t *first_frame;     /* (segments of the recording) frame of the grid each begins with */
  sn_annotations *events;   /* read while opening; NULL: none */
} sn_grid;

/* One channel after the other, each in one piece (vectorized), or frame after frame (multiplexed). Sets channel_bytes
 * and frame_bytes from type, n_channels and n_frames. SN_E_CORRUPT where they pass 64 bits. */
SN_MUST_CHECK sn_status sn_grid_set_layout(sn_grid *grid, bool vectorized, sn_error *err);
/* Allocates scale (1) and baseline (0), and checks that the whole grid lies inside the stream: SN_E_CORRUPT otherwise.
 */
SN_MUST_CHECK sn_status sn_grid_attach(sn_grid *grid, sn_error *err);
/* `values` (n_channels * n_frames, layout as set) becomes the grid's memory and stream; its ownership passes on
 * success. */
SN_MUST_CHECK sn_status sn_grid_attach_memory(sn_grid *grid, void *values, const char *name, sn_error *err);

/* Segments of the recording from boundaries in frames of the grid: first (n), ascending, first[0] = 0, below n_frames.
 * gap_frames NULL: they follow each other in time; else gap_frames[i] frames of silence lie before segment i. */
SN_MUST_CHECK sn_status sn_grid_set_segments(sn_recording *recording, sn_grid *grid, const int64_t *first, int64_t n,
                                             const int64_t *gap_frames, sn_error *err);
/* One segment, the whole grid. */
SN_MUST_CHECK sn_status sn_grid_set_one_segment(sn_recording *recording, sn_grid *grid, sn_error *err);

/* Where frame `frame` of the grid (segments set) lies on the recording's time axis; frame in [0, n_frames). */
int64_t sn_grid_time_frame(const sn_recording *recording, const sn_grid *grid, int64_t frame);

/* For a recording whose self begins with an sn_grid. destroy: sn_grid_free and sn_free of self; a format with more to
 * release has a table of its own. */
sn_status sn_grid_read(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first, int64_t count,
                       double *values, sn_error *err);
sn_status sn_grid_read_channels(const sn_recording *recording, const int64_t *channels, int64_t n_channels,
                                int64_t segment, int64_t first_frame, int64_t n_frames, double *const *values,
                                sn_error *err);
sn_status sn_grid_read_stored(const sn_recording *recording, int64_t channel, int64_t segment, int64_t first,
                              int64_t count, int32_t *stored, sn_error *err); /* integer types of at most 32 bits */
sn_status sn_grid_annotations(const sn_recording *recording, const char *which, sn_annotations **out, sn_error *err);
void sn_grid_destroy(sn_recording *recording);
void sn_grid_free(sn_grid *grid); /* what it holds, not itself */

extern const sn_recording_vtable sn_grid_integers; /* with read_stored */
extern const sn_recording_vtable sn_grid_reals;

/* Appends to grid->events, which is made when it is NULL; text (copied) may be NULL. */
SN_MUST_CHECK sn_status sn_grid_add_event(sn_grid *grid, int64_t *capacity, const sn_annotation *event,
                                          const char *text, sn_error *err);
void sn_grid_sort_events(sn_grid *grid); /* by sample, then onset; equal ones as they came. Sets `number` to 0. */

#endif
