/* A resumed run must see the recordings that it began with. */
/* needs: full */
#ifndef SN_ENGINE_RUN_UNCHANGED_H
#define SN_ENGINE_RUN_UNCHANGED_H

#include "datasets/manifest.h"

/* Compares the sound lines of a run's manifest with what lies on disk: sizes, and the quick checksum of what was touched
 * (modified or moved here) after `path`, the manifest's own file, was written.  What the run has already quarantined
 * (quarantine.tsv of its folder `run`, in which the manifest's lines are counted from `first`: of a mixture, behind those of
 * the sources before) is not looked at: its places are empty whatever it holds now.
 *   SN_E_STATE  a file is gone or holds something else: named */
SN_MUST_CHECK sn_status sn_run_check_unchanged(const sn_manifest *manifest, const char *path, const char *run, int64_t first,
                                               sn_error *err);

#endif
