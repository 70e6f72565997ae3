/* BIDS sidecars of signals: what channels.tsv, electrodes.tsv with coordsystem.json, events.tsv, the JSON beside the data
 * and participants.tsv say about a recording.
 *
 * INHERITANCE.  A sidecar applies to a recording when it lies in its folder or one above it up to the root, has the
 * suffix and extension asked for, and all its entities (task-rest, run-1, ...) are among the recording's.  Of tables the
 * nearest counts (in one folder, the one with the most entities); of JSON files, each key's nearest.  Where a folder holds
 * two with the same number of entities, the recording is warned ("sidecar_ambiguous").  electrodes.tsv and
 * coordsystem.json may have a `space` of their own.
 *
 * UNITS.  The values of a recording are those that its own file gives.  A unit in channels.tsv fills one that the file does
 * not state; a stated one of the same dimension (file uV, table V: what some writers do) changes nothing and is warned
 * of ("sidecar_unit"); one of another dimension is SN_E_CORRUPT with both.  A type that has another canonical unit (EEG
 * to ECG) scales the values.
 *
 * POSITIONS.  electrodes.tsv in metres, millimetres or centimetres by coordsystem.json.  Into the head frame: by the
 * landmarks (NAS, LPA, RPA) where the file states them in the same system, exactly; else the named systems CapTrak and
 * ElektaNeuromag as they are, CTF and 4DBti and EEGLAB by turning x to the front; other systems give no positions
 * ("sidecar_coordinates"). Warned of and without a place are: more than 0.5 m from the middle; a scalp whose electrodes
 * lie within 2 cm, or at one point; what is no three numbers. A table that names no channel is warned of.
 *
 * Source: Brain Imaging Data Structure 1.9, sections Common principles, EEG, MEG, Task events. */
#ifndef SN_DATASETS_BIDS_H
#define SN_DATASETS_BIDS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"
#include "core/text.h"
#include "modalities/recording.h"

/* The names in a folder below the root ("" the root itself), sorted; owned by `user`'s cache. n 0: none, or no such
 * folder. */
typedef struct sn_folder_names {
  int64_t n;
  char **names;
} sn_folder_names;
typedef sn_status (*sn_list_folder)(void *user, const char *folder, sn_folder_names *out, sn_error *err);

/* "eeg" of "sub-1/eeg/sub-1_task-x_eeg.edf" when the file is a recording by its name: eeg, meg or ieeg; else NULL. */
const char *sn_bids_datatype(const char *path);
/* Whether a file lies where no recordings are: derivatives/ and the like. */
bool sn_bids_outside(const char *path);
bool sn_bids_is_sidecar(const char *path); /* by its extension: .tsv, .json */
/* A line of .bidsignore against a path (the syntax of .gitignore without "**" inside a name; '!' is the caller's). */
bool sn_bids_ignored(const char *pattern, const char *path);

/* participants.tsv at the root, read once. fault: why it cannot be used, "" when it can, or is not there. */
typedef struct sn_bids_participants {
  sn_table *table; /* NULL: none */
  char fault[SN_ERROR_MESSAGE];
} sn_bids_participants;

/* Everything that stands beside root/path, onto the recording. A table of persons that cannot be used is a warning
 * ("sidecar_participant"). */
SN_MUST_CHECK sn_status sn_bids_apply(const char *root, const char *path, const sn_bids_participants *participants,
                                      sn_list_folder list, void *user, sn_recording *recording, sn_error *err);

#endif
