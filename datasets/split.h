/* The split: by person, before any window is cut, stored and hashed.
 *
 * subject-kfold   people in k folds; fold i of k (from 0) is the test part, all others train and pretrain
 * recording-kfold the same with recordings for people: only when asked (subjects by "recording"); tables then say
 *                 "recordings, persons unknown"
 * fixed           by a column with two values, one for the train part and one for the test part
 * none            everything is for pretraining
 *
 * FOLDS.  Groups are sorted into strata by label (the commonest class of a group's items, ties to the smaller class;
 * one stratum without classes), ordered inside a stratum by a draw keyed by (seed, SN_PURPOSE_SPLIT, identity of the
 * person), and dealt out one by one to the fold that has the fewest groups of this stratum, then the fewest
 * recordings, then the lowest number.  So the folds do not depend on the order of files or threads.
 *
 * split.tsv: data set, path, subject, fold, roles, checksum; one line per ok line of the manifest, in its order; and people,
 * where they are not the data set's own (keyed_table.h).  Its SHA-256 is the split's hash. */
#ifndef SN_DATASETS_SPLIT_H
#define SN_DATASETS_SPLIT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"
#include "datasets/keyed_table.h"
#include "datasets/labels.h"
#include "datasets/manifest.h"

/* What a recording may be used for. pretrain may hold probe_train, never probe_test. */
typedef enum sn_role {
  SN_ROLE_NONE = 0,
  SN_ROLE_PRETRAIN = 1,
  SN_ROLE_PROBE_TRAIN = 2,
  SN_ROLE_PROBE_TEST = 4
} sn_role;

typedef struct sn_split_options {
  int64_t n_folds; /* 0: no folds */
  int64_t fold;    /* 0 .. n_folds-1: the test part; -1: everything is pretrain, folds are only numbered */
  uint64_t seed;
  const char *column;         /* fixed split: a column of the table, or NULL */
  const char *train, *test;   /* its values; NULL, NULL: train/test, training/testing or DS1/DS2, whichever occurs */
  const char *const *exclude; /* (n_exclude) recordings left out, by path or name with or without extension */
  int64_t n_exclude;
  const int32_t *folds;       /* (manifest->n) each line's fold, -1 none, where they are dealt over several data sets together;
                                 a part may then be empty. NULL: they are made here */
} sn_split_options;

typedef struct sn_split {
  char kind[24]; /* "subject-kfold", "recording-kfold", "fixed", "none" */
  bool persons_unknown;
  int64_t n_folds, fold;
  int64_t n; /* lines of the manifest */
  char *dataset;
  char *people;                                    /* namespace of the subjects; NULL: the data set's */
  char **paths;                                    /* (n) of the manifest's lines */
  char **subjects;                                 /* (n) NULL unknown */
  char **checksums;                                /* (n) as in the manifest */
  int32_t *folds;                                  /* (n) -1 none */
  uint8_t *roles;                                  /* (n) sn_role flags; 0: not used */
  int64_t n_no_subject, n_excluded, n_other_value; /* why ok lines are not used */
  char hash[65];
} sn_split;

/* labels may be NULL: no strata.  table only for `column`.
 *   SN_E_ARGUMENT  fewer people than folds, a fold outside, an empty part, an exclusion that names nothing
 *   SN_E_STATE     a person, a content (checksum) or a file in both parts: the message names both recordings */
SN_MUST_CHECK sn_status sn_split_create(const sn_manifest *manifest, const sn_subjects *subjects,
                                        const sn_keyed_table *table, const sn_labels *labels,
                                        const sn_split_options *options, sn_split **out, sn_error *err);
void sn_split_destroy(sn_split *split); /* accepts NULL */

/* No person, content or file stands in two parts (test against train and pretrain). Run by create and load. */
SN_MUST_CHECK sn_status sn_split_check(const sn_split *split, const sn_manifest *manifest, sn_error *err);

SN_MUST_CHECK sn_status sn_split_save(const sn_split *split, const char *path, sn_error *err);
/* manifest: SN_E_STATE when a line's checksum is another now or a recording is gone; NULL: not compared (n is then
 * the number of lines of the file). */
SN_MUST_CHECK sn_status sn_split_load(const char *path, const sn_manifest *manifest, sn_split **out, sn_error *err);

int64_t sn_split_count(const sn_split *split, sn_role role);          /* recordings */
int64_t sn_split_count_subjects(const sn_split *split, sn_role role); /* people */
/* Lines with a role, in order; *rows is fresh (sn_free). */
SN_MUST_CHECK sn_status sn_split_rows(const sn_split *split, sn_role role, int64_t **rows, int64_t *n, sn_error *err);

/* Who stands in a's `role_a` and in b's `role_b`: a pretraining run against an evaluation.  People are compared by
 * people (or data set) and id, recordings by checksum too, so that a renamed file is found; checksums of different kind (quick,
 * sha256) cannot be compared, and kind says what was.  The lists hold "subject (path in a, path in b)". */
typedef struct sn_leakage {
  int64_t n_subjects, n_contents; /* shared */
  char kind[16];                  /* "quick", "sha256", "none": checksums compared */
  int64_t n_named;                /* at most 20 */
  char names[20][160];
} sn_leakage;
SN_MUST_CHECK sn_status sn_split_leakage(const sn_split *a, sn_role role_a, const sn_split *b, sn_role role_b,
                                         sn_leakage *out, sn_error *err);

/* The name that ids are of. */
static inline const char *sn_split_people(const sn_split *split) {
  return split->people != NULL ? split->people : split->dataset != NULL ? split->dataset : "";
}

/* Grouped folds of any items: folds (n) [out] in 0..k-1, one group in one fold, by the rule above.  groups (n):
 * identities; strata (n): class of each item, -1 none, or NULL.  Groups fewer than k: *n_folds is their number;
 * SN_E_ARGUMENT below 2. */
SN_MUST_CHECK sn_status sn_grouped_folds(const uint64_t *groups, const int32_t *strata, int64_t n, int64_t k,
                                         uint64_t seed, int32_t *folds, int64_t *n_folds, sn_error *err);

/* Whether a name of data.exclude means this path: the path, its last part, or either without its extension. */
bool sn_split_names_recording(const char *path, const char *name);

#endif
