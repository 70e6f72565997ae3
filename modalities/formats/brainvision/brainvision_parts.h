/* Between the files of the BrainVision reader. Not for others. */
#ifndef SN_MODALITIES_BRAINVISION_PARTS_H
#define SN_MODALITIES_BRAINVISION_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"
#include "core/text.h"
#include "modalities/formats/brainvision/brainvision.h"
#include "modalities/formats/sample_grid.h"

enum { BV_NAME = 256 };

/* ---- lines of the text files ---- */

/* Walks the lines of a text: UTF-8, one at a time, without their line break. */
typedef struct bv_lines {
  const char *text;
  int64_t n, at;
  char separator;     /* '\n', or '\r' in a text without any */
  int64_t number;     /* of the line that was given last, from 1 */
  int64_t odd_offset; /* of the first byte that is not UTF-8, -1 none */
  int64_t odd_line;
  bool many_bytes; /* some character of UTF-8 took several bytes */
  sn_string line;
} bv_lines;
void sn_bv_lines_begin(bv_lines *lines, const char *text, int64_t n);
/* *line NULL at the end. The text is owned by `lines` until the next call, and may be changed. */
SN_MUST_CHECK sn_status sn_bv_lines_next(bv_lines *lines, char **line, sn_error *err);
void sn_bv_lines_end(bv_lines *lines);
/* Whether the line begins with an identification of this kind ("Header", "Marker"); its version, -1 none. */
bool sn_bv_is_first_line(const char *line, const char *kind, double *version);
/* In place: "\1" becomes ','. */
void sn_bv_unescape(char *text);
/* Cuts `text` at its commas: at most `most` fields, trimmed; what is left over stays in the last. Returns how many. */
int sn_bv_split(char *text, char **fields, int most);

/* ---- the header ---- */

typedef struct bv_channel {
  char name[SN_CHANNEL_NAME], reference[64], unit[SN_UNIT_NAME];
  double resolution;
  bool stated, resolution_stated, has_coordinates;
  double coordinates[3]; /* radius, theta, phi */
} bv_channel;

typedef struct bv_header {
  char file[BV_NAME], data_file[BV_NAME], marker_file[BV_NAME], codepage[32];
  double version;
  bool ascii, vectorized, orientation_stated, averaged;
  sn_grid_type type;
  bool type_stated, big_endian;
  int64_t skip_lines, skip_columns;
  char decimal;                     /* of ASCII data */
  int64_t n_announced;              /* NumberOfChannels; -1 not stated */
  int64_t data_points;              /* -1 not stated */
  int64_t segment_points;           /* 0: not segmented */
  int64_t rate_num, rate_den;       /* 0/1: not stated */
  int64_t n_channels, channel_room; /* highest Ch entry */
  bv_channel *channels;
  int64_t n_comments, comment_room;
  char **comments;
  char filter[3][24]; /* software filters of the first channel: low cut-off, high, notch; "" none */
  int64_t n_filtered;
  int64_t odd_offset, odd_line; /* of the first byte that is not in the declared encoding, -1 none */
} bv_header;

SN_MUST_CHECK sn_status sn_bv_header_load(const sn_folder *folder, const char *file, bv_header **out, sn_error *err);
void sn_bv_header_destroy(bv_header *header);

/* ---- markers ---- */

typedef struct bv_marker {
  char type[SN_CHANNEL_NAME];
  char *description; /* NULL: empty */
  int64_t frame, n_frames, channel;
  bool new_segment, dated;
  int64_t date_us; /* microseconds on a proleptic Gregorian calendar without leap seconds */
  char date[24];
} bv_marker;

typedef struct bv_markers {
  int64_t n, room;
  bv_marker *items;
} bv_markers;

/* Markers of a file into *list (zero-initialised by the caller, freed by sn_bv_markers_free in any case). Warnings go
 * to the recording. */
SN_MUST_CHECK sn_status sn_bv_markers_load(const sn_folder *folder, const char *file, bool tolerant,
                                           sn_recording *recording, bv_markers *list, sn_error *err);
void sn_bv_markers_free(bv_markers *list);
/* "YYYYMMDDhhmmssuuuuuu": 20 digits that are a date; false otherwise, and for all zeros. */
bool sn_bv_parse_date(const char *text, int64_t *microseconds);

/* ---- data as text ---- */

/* Parses the ASCII data of a file into the grid (float64 in memory). */
SN_MUST_CHECK sn_status sn_bv_ascii_load(const bv_header *header, const sn_stream *stream, sn_grid *grid,
                                         sn_error *err);

#endif
