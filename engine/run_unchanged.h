/* A resumed run must see the recordings that it began with. */
/* needs: full */
#ifndef SN_ENGINE_RUN_UNCHANGED_H
#define SN_ENGINE_RUN_UNCHANGED_H

#include "datasets/manifest.h"

/* Compares the sound lines of a run's manifest with what lies on disk: sizes, and the quick checksum of what was touched
 * (modified or moved here) after `path`, the manifest's own file, was written.  What the run has already quarantined
 * (quarantine.tsv beside it) is not looked at: its places are empty whatever it holds now.
 *   SN_E_STATE  a file is gone or holds something else: named */
SN_MUST_CHECK sn_status sn_run_check_unchanged(const sn_manifest *manifest, const char *run, const char *path, sn_error *err);

#endif
