/* A directory of recordings with what its layout says of each: whose it is, which session, and what stands beside it.
 *
 * Layouts, told from names alone, in this order:
 *   bids       below a folder that holds dataset_description.json.  Recordings are files whose name ends in _eeg, _meg or
 *              _ieeg and an extension; derivatives/, sourcedata/, code/, stimuli/, phenotype/ and what .bidsignore names
 *              are left out.  Sidecars: bids.h.
 *   tuh        "aaaaaaaa_s001_t000.edf" (TUH EEG corpus): subject, session; events from .csv_bi, .csv, .tse_bi, .tse beside
 *   sleep-edf  "SC4001E0-PSG.edf" with "SC4001EC-Hypnogram.edf" beside: subject SC400 (the last digit before the letter
 *              is the night), events from the hypnogram, which is no recording of its own
 *   eegmmi     "S001R04.edf": subject S001
 *   plain      everything else: subject and session from folders sub-X and ses-X, or a name that begins with sub-X_; below
 *              a folder that holds dataset_description.json (one of several sets under the root) "FOLDER/X": sub-01 of two
 *              sets are two persons.  To read the sidecars of such sets, name each as a data set of its own.
 * The files that were used join recording->files: they are part of the manifest's checksum. */
#ifndef SN_DATASETS_TREE_H
#define SN_DATASETS_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

typedef struct sn_tree sn_tree;

/* root: a directory; its name is copied. Any number of threads may use a tree. */
SN_MUST_CHECK sn_status sn_tree_open(const char *root, sn_tree **out, sn_error *err);
void sn_tree_close(sn_tree *tree); /* accepts NULL */

/* Why a file below the root (path relative, '/' between) is not to be looked at: "derivatives", ".bidsignore",
 * "sidecar" (of a layout); NULL: it is. */
const char *sn_tree_leaves_out(sn_tree *tree, const char *path);

/* Whether a file can be what stands beside a recording of this tree: one that comes or goes changes what recordings are. */
bool sn_tree_is_beside(const sn_tree *tree, const char *path);

/* sn_recording_open of root/path, and then what stands beside it: subject_id, age_years, sex, types, units, bad marks,
 * positions, reference, line_hz, events.  Contradictions are warnings of the recording ("sidecar_...").
 *   SN_E_CORRUPT  a sidecar cannot be parsed, or states a unit of another dimension than the file's */
SN_MUST_CHECK sn_status sn_tree_open_recording(sn_tree *tree, const char *path, const sn_open_options *options,
                                               sn_recording **out, sn_error *err);
/* The session of a path, "" when it names none. */
void sn_tree_session(sn_tree *tree, const char *path, char *out, int64_t room);

/* For one file (or folder that is a recording) on its own: the root of the layout that it lies in, and its path from there. A path outside any layout
 * gives its own folder. Fresh strings (sn_free). */
SN_MUST_CHECK sn_status sn_tree_find_root(const char *path, char **root, char **relative, sn_error *err);

/* a/b/../c -> a/c, in place. */
void sn_path_normalize(char *path);

#endif
