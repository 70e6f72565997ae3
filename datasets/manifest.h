/* The manifest: one line per recording of a directory, with the reason where one is left out.  Nothing is dropped
 * silently.
 *
 * manifest.tsv: UTF-8, tab-separated, a header line, one line per recording, sorted by path (byte order).  Unknown is
 * an empty cell.  In every cell the bytes '%', '"', control characters and bytes that are not UTF-8 are written as
 * %XX; in lists (joined by ',') also ','.
 *
 *   path      of the file that is opened, relative to the root, '/' between folders
 *   format    "wfdb";  modality  "ecg";  subject  as the header or the path (BIDS sub-X) names it;  session  (ses-X)
 *   rate      frames per second, "360" or "999/4"
 *   channels  names;  kinds  of sensors ("ecg");  units  canonical units;  per_frame  samples per frame of each
 *             channel, empty when all are 1
 *   duration  seconds of data (gaps not counted)
 *   segments  contiguous stretches: first frame ':' frames, from the recording's start, gaps counted
 *   size      bytes of all its files;  files  their names, seen from the folder of the one
 *             that is opened, itself first ("../../task-rest_eeg.json": an inherited sidecar)
 *   checksum  "quick:HEX": SHA-256 over, for each file in order, its size (8 bytes, little-endian) and its first and
 *             last 64 KiB (the whole file when it has at most 128 KiB); "sha256:HEX": the whole files instead
 *   status    "ok", the name of a status code (io, format, corrupt, unsupported, argument: what opening it said),
 *             "short", "part" (of another line's recording), "missing" (named in RECORDS, not there)
 *   reason    empty when ok
 *
 * The hash of a manifest is the SHA-256 of its file.  Times of modification are no part of it: they only serve the
 * cache (FILE.cache) that makes indexing resumable. */
#ifndef SN_DATASETS_MANIFEST_H
#define SN_DATASETS_MANIFEST_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"

typedef enum sn_manifest_column {
  SN_MANIFEST_PATH = 0,
  SN_MANIFEST_FORMAT,
  SN_MANIFEST_MODALITY,
  SN_MANIFEST_SUBJECT,
  SN_MANIFEST_SESSION,
  SN_MANIFEST_RATE,
  SN_MANIFEST_CHANNELS,
  SN_MANIFEST_KINDS,
  SN_MANIFEST_UNITS,
  SN_MANIFEST_PER_FRAME,
  SN_MANIFEST_DURATION,
  SN_MANIFEST_SEGMENTS,
  SN_MANIFEST_SIZE,
  SN_MANIFEST_FILES,
  SN_MANIFEST_CHECKSUM,
  SN_MANIFEST_STATUS,
  SN_MANIFEST_REASON,
  SN_MANIFEST_COLUMNS
} sn_manifest_column;

const char *sn_manifest_column_name(sn_manifest_column column);

/* A line. cells: as written (escaped), never NULL; path: decoded. Owned by the manifest. */
typedef struct sn_manifest_row {
  char *cells[SN_MANIFEST_COLUMNS];
  char *path;
  bool ok;
} sn_manifest_row;

typedef struct sn_manifest {
  char *root; /* the directory; not part of the file */
  char *name; /* of the data set: part of every sample's and person's identity */
  int64_t n, n_ok, capacity;
  sn_manifest_row *rows;
  char hash[65]; /* hex SHA-256 of the file's bytes; filled by load and by sn_manifest_finish */
} sn_manifest;

/* name NULL: the last part of root's real path. */
SN_MUST_CHECK sn_status sn_manifest_create(const char *root, const char *name, sn_manifest **out, sn_error *err);
void sn_manifest_destroy(sn_manifest *manifest); /* accepts NULL */

/* A row of SN_MANIFEST_COLUMNS cells as written (copied). */
SN_MUST_CHECK sn_status sn_manifest_add(sn_manifest *manifest, const char *const *cells, sn_error *err);
/* Replaces a cell (as written). */
SN_MUST_CHECK sn_status sn_manifest_set(sn_manifest *manifest, int64_t row, sn_manifest_column column, const char *cell,
                                        sn_error *err);
/* Sorts by path, counts, hashes. Two rows of one path: SN_E_STATE. */
SN_MUST_CHECK sn_status sn_manifest_finish(sn_manifest *manifest, sn_error *err);

/* The file's text. */
SN_MUST_CHECK sn_status sn_manifest_text(const sn_manifest *manifest, sn_string *out, sn_error *err);
/* SN_E_ARGUMENT: a file is there that is no manifest, and would be lost (core/fs.h, sn_check_output). Save asks it too.
 */
SN_MUST_CHECK sn_status sn_manifest_check_output(const char *path, sn_error *err);
SN_MUST_CHECK sn_status sn_manifest_save(const sn_manifest *manifest, const char *path, sn_error *err);
/* SN_E_CORRUPT with the line: other columns, rows that are not sorted, an ok line whose numbers do not parse. */
SN_MUST_CHECK sn_status sn_manifest_load(const char *path, const char *root, const char *name, sn_manifest **out,
                                         sn_error *err);

/* Row of a path (exactly as decoded), -1 if there is none. Sorted rows only. */
int64_t sn_manifest_find(const sn_manifest *manifest, const char *path);
/* root + "/" + path, for opening; a fresh string (sn_free). */
SN_MUST_CHECK sn_status sn_manifest_full_path(const sn_manifest *manifest, int64_t row, char **out, sn_error *err);

/* What an ok line says, parsed. Free with sn_manifest_info_free. */
typedef struct sn_manifest_info {
  int64_t rate_num, rate_den;
  int64_t n_channels;
  char **channels;
  int64_t n_kinds; /* n_channels */
  char **kinds;
  int64_t n_units; /* n_channels */
  char **units;
  int64_t *per_frame; /* (n_channels) */
  int64_t n_segments;
  int64_t *first_frames; /* (n_segments) */
  int64_t *n_frames;     /* (n_segments) */
  double duration_s;
  int64_t n_files;
  char **files;
} sn_manifest_info;
SN_MUST_CHECK sn_status sn_manifest_parse(const sn_manifest *manifest, int64_t row, sn_manifest_info *out,
                                          sn_error *err);
void sn_manifest_info_free(sn_manifest_info *info);

/* Computes the checksum of a line's files now and compares it with the line's. SN_E_CORRUPT when they differ (the
 * file was replaced since it was indexed), SN_E_IO naming the file that cannot be read. */
SN_MUST_CHECK sn_status sn_manifest_verify(const sn_manifest *manifest, int64_t row, sn_error *err);

/* The checksum cell of files (names) in a directory; *size [out]: bytes of all. */
SN_MUST_CHECK sn_status sn_manifest_checksum(const char *directory, const char *const *names, int64_t n, bool whole,
                                             char cell[80], int64_t *size, sn_error *err);

/* %XX escapes. list: ',' too. Appends to out. */
SN_MUST_CHECK sn_status sn_manifest_escape(const char *text, bool list, sn_string *out, sn_error *err);
/* A cell as a person is shown it: printable characters without their escapes, what a terminal would obey and what is no UTF-8
 * with them. Cut where `room` ends. */
void sn_manifest_show(const char *cell, char *text, int64_t room);
/* In place; SN_E_CORRUPT for a '%' that is not followed by two hexadecimal digits, or %00. */
SN_MUST_CHECK sn_status sn_manifest_unescape(char *text, sn_error *err);

#endif
