/* Inside tree.c: layouts that are known by the names of their files. */
#ifndef SN_DATASETS_TREE_BESIDE_H
#define SN_DATASETS_TREE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"
#include "modalities/recording.h"

/* "X" of a folder "sub-X" (prefix "sub-") of a path; "" when there is none. */
void sn_path_entity(const char *path, const char *prefix, char *out, int64_t room);
/* TUH: "aaaaaaaa_s001_t000.edf", subject aaaaaaaa (room for 64, may be NULL), session "s001" (may be NULL). */
bool sn_tuh_name(const char *path, char *subject, char *session, int64_t room);
bool sn_is_tuh_events(const char *path); /* "aaaaaaaa_s001_t000.csv_bi" and the like */
/* "SC4001E0-PSG.edf": the person SC400 and the six characters that its hypnogram's name begins with (rooms of 16, may be
 * NULL). sn_hypnogram_of_psg: the same for the hypnogram itself. */
bool sn_sleep_edf_name(const char *path, char *subject, char *stem);
bool sn_hypnogram_of_psg(const char *path, char *subject, char *stem);

/* Subject and events of a recording in a tree that is not BIDS. */
SN_MUST_CHECK sn_status sn_tree_apply_names(const char *root, const char *path, sn_recording *recording, sn_error *err);

#endif
