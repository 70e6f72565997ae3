/* The index of a directory: one walk, headers only, in parallel, resumable.
 *
 * Which files are recordings.  Where a folder holds a file RECORDS (PhysioNet), the recordings below it are those
 * that it names ("100", "a/100", "x.edf"; a line that ends in '/' names a folder, which is looked at in the same
 * way); elsewhere every file is looked at, and its content decides.  Hidden files and folders (.git) are left alone.
 * A file that cannot be opened, a name in RECORDS without a file, a file of a known kind without a reader are lines
 * of the manifest with their reason; a folder that cannot be listed is one too (path ends in '/').  All other files
 * are counted by extension, and so are those of a known kind that are no recordings (averages, events, covariances, ... in
 * FIF files).  A folder that is a recording (CTF: NAME.ds) is looked at through its header alone.  What a layout (BIDS,
 * TUH, ...) says of a recording, and which files it leaves out: tree.h.
 *
 * The cache (a file beside the manifest) keeps the lines of sound recordings with the size and time of modification of
 * their files; it is appended to while indexing, so that an interrupted index goes on where it stopped. */
#ifndef SN_DATASETS_INDEX_H
#define SN_DATASETS_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/status.h"
#include "datasets/manifest.h"

typedef struct sn_index_options {
  const char *name;  /* of the data set; NULL: the directory's own */
  int64_t n_threads; /* 0: on the caller's thread */
  bool whole_hash;   /* checksum of whole files */
  double shortest_s; /* a recording whose longest segment is shorter becomes "short"; 0: none does */
  bool tolerant;     /* as sn_open_options */
  const char *assume_unit;
  const char *cache_path; /* NULL: no cache */
  sn_log log;
  void (*progress)(void *user, int64_t done, int64_t total); /* on the caller's thread; may be NULL */
  void *user;
} sn_index_options;

enum { SN_INDEX_EXTENSIONS = 12, SN_INDEX_EXTENSION = 16 };

typedef struct sn_index_report {
  int64_t n_files, n_folders;
  int64_t n_unlisted_folders; /* that could not be listed */
  int64_t n_reused;           /* lines taken from the cache */
  int64_t n_repeated;         /* names that RECORDS holds twice */
  int64_t n_left_out;         /* derivatives and what .bidsignore names (tree.h) */
  int64_t n_other;            /* files that are no recording and no part of one */
  int64_t n_extensions;       /* the most frequent extensions of these, most frequent first */
  char extensions[SN_INDEX_EXTENSIONS][SN_INDEX_EXTENSION];
  int64_t extension_counts[SN_INDEX_EXTENSIONS];
} sn_index_report;

/* SN_E_IO when root itself cannot be listed; SN_E_ARGUMENT when nothing below it is a recording or looks like one (the
 * message counts what is there). A manifest with lines, even if none is ok, is SN_OK. */
SN_MUST_CHECK sn_status sn_index_directory(const char *root, const sn_index_options *options, sn_manifest **out,
                                           sn_index_report *report, sn_error *err);

/* Whether a line is of a recording that should have been read and cannot be: not one of a kind that nothing here reads, a
 * part of another or one that is too short. Those are what a run's limit of bad recordings counts. */
bool sn_index_is_lost(const sn_manifest_row *row);

#endif
