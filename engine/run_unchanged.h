/* A resumed run must see the recordings and the labels that it began with. */
/* needs: full */
#ifndef SN_ENGINE_RUN_UNCHANGED_H
#define SN_ENGINE_RUN_UNCHANGED_H

#include "core/config.h"
#include "datasets/manifest.h"

/* Compares the sound lines of a run's manifest with what lies on disk: sizes, and the quick checksum of what was touched
 * (modified or moved here) after `path`, the manifest's own file, was written.  What the run has already quarantined
 * (quarantine.tsv of its folder `run`, in which the manifest's lines are counted from `first`: of a mixture, behind those of
 * the sources before) is not looked at: its places are empty whatever it holds now.
 *   SN_E_STATE  a file is gone or holds something else: named */
SN_MUST_CHECK sn_status sn_run_check_unchanged(const sn_manifest *manifest, const char *path, const char *run, int64_t first,
                                               sn_error *err);

/* The files that persons, splits and labels of a run come from: data.labels, and the root's participants.tsv where data.label names it.
 * Their SHA-256 stand in labels.sha256 of `folder` (the run's, of a mixture the source's): a line "HASH WHICH PATH" each. */
SN_MUST_CHECK sn_status sn_run_labels_remember(const sn_config *config, const char *folder, sn_error *err);
/* Wherever the files lie now. A run of an earlier version has no labels.sha256: nothing is compared.
 *   SN_E_STATE  a file holds something else: named
 *   SN_E_IO     it cannot be read */
SN_MUST_CHECK sn_status sn_run_labels_check(const sn_config *config, const char *folder, sn_error *err);
/* Whether sn_run_labels_check has data.labels to compare with. */
bool sn_run_labels_known(const char *folder);

#endif
