/* A table of facts about recordings (labels, subjects, a fixed split), its lines matched to the manifest by name.
 *
 * The key of a line names a recording by its path below the root, with or without the extension, or by the last part
 * of the path, with or without the extension, where that is unique.  Not matched by position, ever. */
#ifndef SN_DATASETS_KEYED_TABLE_H
#define SN_DATASETS_KEYED_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"
#include "datasets/manifest.h"

typedef struct sn_keyed_table {
  char *path;
  sn_table *table;
  int64_t *line_of;    /* (manifest->n) row of the table for each line of the manifest, -1 none */
  int64_t n_unmatched; /* keys that no line of the manifest has */
  char first_unmatched[96];
} sn_keyed_table;

/* key: a column; NULL: the first.  A file without a header line has columns "1", "2", ...: that is how it is read
 * when key is a number and no column of the first line has that name.
 *   SN_E_ARGUMENT  no such column (the message lists those there are); two lines for one recording (both lines are
 *                  named); a key that two recordings have (both paths are named); no key matches any recording */
SN_MUST_CHECK sn_status sn_keyed_table_load(const sn_manifest *manifest, const char *path, const char *key,
                                            sn_keyed_table **out, sn_error *err);
void sn_keyed_table_destroy(sn_keyed_table *table); /* accepts NULL */
/* Column by name; SN_E_ARGUMENT naming the nearest and all there are. */
SN_MUST_CHECK sn_status sn_keyed_table_column(const sn_keyed_table *table, const char *name, int64_t *column,
                                              sn_error *err);
/* Cell of a recording, trimmed blanks apart as in the file; NULL when it has no line. */
const char *sn_keyed_table_cell(const sn_keyed_table *table, int64_t recording, int64_t column);
/* "", NA, N/A, NaN, null, (none), in any case: nothing is stated. */
bool sn_cell_is_empty(const char *cell);

/* Whose recording each one is.  Identity of a person = data set name + id, or people + id: sets that name the same people
 * share them, so that EEG and MEG of one person in two folders are one person's. */
typedef struct sn_subjects {
  int64_t n;            /* lines of the manifest */
  char **ids;           /* (n) NULL: unknown */
  bool persons_unknown; /* every recording stands for itself: tables must say "recordings, persons unknown" */
  int64_t n_known;
  char *people;         /* NULL: the data set's own */
} sn_subjects;

/* from: a column of table | "recording" | "header" (the manifest's subject column) | NULL: as "header" where every ok
 * line has one.  SN_E_ARGUMENT: NULL and lines without a subject (the message says how to ask); a column without a
 * table; no ok line has a subject. */
SN_MUST_CHECK sn_status sn_subjects_create(const sn_manifest *manifest, const sn_keyed_table *table, const char *from,
                                           sn_subjects **out, sn_error *err);
void sn_subjects_destroy(sn_subjects *subjects); /* accepts NULL */
/* Whether two ids may be one person's: equal apart from case, a leading "sub-" and leading zeros ("sub-007", "7"). */
bool sn_subject_alike(const char *a, const char *b);
const char *sn_subject_stem(const char *id); /* what is compared: a pointer into id, case apart */
/* 64-bit identity of a person: hash of data set name and id. */
uint64_t sn_subject_identity(const char *dataset, const char *id);
/* That of a recording's subject, for sn_sample.subject_id; 0 unknown. */
uint64_t sn_subject_hash(const sn_manifest *manifest, const sn_subjects *subjects, int64_t recording);

#endif
