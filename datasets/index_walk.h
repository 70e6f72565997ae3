/* The first part of the index: every file below a root, and which of them are to be looked at. */
#ifndef SN_DATASETS_INDEX_WALK_H
#define SN_DATASETS_INDEX_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/log.h"
#include "core/status.h"

typedef enum sn_walk_role {
  SN_WALK_IGNORED = 0, /* not named by the RECORDS file above it */
  SN_WALK_LOOK,        /* content decides */
  SN_WALK_LISTED       /* named by a RECORDS file */
} sn_walk_role;

typedef struct sn_walk_file {
  char *path;   /* relative to the root */
  int64_t size; /* -1: a link to nowhere */
  int64_t mtime_ns;
  sn_walk_role role;
} sn_walk_file;

typedef struct sn_walk_fault {
  char *path; /* a folder (ends in '/'), or a name in RECORDS without a file */
  bool is_folder;
  sn_error error;
} sn_walk_fault;

typedef struct sn_walk {
  int64_t n_files, files_capacity;
  sn_walk_file *files; /* sorted by path */
  int64_t n_faults, faults_capacity;
  sn_walk_fault *faults;
  int64_t n_folders, n_repeated;
} sn_walk;

/* All below root into *out (free with sn_walk_free). A folder that cannot be listed and a name in RECORDS without a
 * file are entries of faults; SN_E_IO where root itself cannot be listed. */
SN_MUST_CHECK sn_status sn_walk_directory(const char *root, const sn_log *log, sn_walk *out, sn_error *err);
void sn_walk_free(sn_walk *walk);
int64_t sn_walk_find(const sn_walk *walk, const char *path); /* -1 if absent */

#endif
