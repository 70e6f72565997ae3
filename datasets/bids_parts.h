/* Inside bids*.c: finding sidecars, and what each table does. */
#ifndef SN_DATASETS_BIDS_PARTS_H
#define SN_DATASETS_BIDS_PARTS_H

#include "core/json.h"
#include "core/text.h"
#include "datasets/bids.h"

enum { SN_BIDS_LEVELS = 16 };

/* Where to look. */
typedef struct sn_bids_place {
  const char *root, *path; /* path of the recording below the root */
  const sn_bids_participants *participants;
  sn_list_folder list;
  void *user;
  sn_recording *recording;
} sn_bids_place;

/* Sidecars with that ending ("_channels.tsv") that apply, nearest first; names relative to the root. Free each and n. */
typedef struct sn_bids_files {
  int64_t n;
  char *paths[SN_BIDS_LEVELS];
} sn_bids_files;
SN_MUST_CHECK sn_status sn_bids_find(const sn_bids_place *place, const char *ending, sn_bids_files *out, sn_error *err);
void sn_bids_files_free(sn_bids_files *files);
/* The nearest as a table, and as a file of the recording; *out NULL when there is none. */
SN_MUST_CHECK sn_status sn_bids_table(const sn_bids_place *place, const char *ending, sn_table **out, sn_error *err);

/* JSON files of one ending, nearest first. */
typedef struct sn_bids_json {
  int64_t n;
  sn_json *files[SN_BIDS_LEVELS];
} sn_bids_json;
SN_MUST_CHECK sn_status sn_bids_json_load(const sn_bids_place *place, const char *ending, sn_bids_json *out,
                                          sn_error *err);
void sn_bids_json_free(sn_bids_json *json);
const sn_json *sn_bids_json_get(const sn_bids_json *json, const char *key); /* the nearest's, NULL */

/* A cell by column name; NULL when there is no such column, or it states nothing (n/a). */
const char *sn_bids_cell(const sn_table *table, int64_t row, const char *column);

SN_MUST_CHECK sn_status sn_bids_channels(const sn_bids_place *place, sn_error *err);
SN_MUST_CHECK sn_status sn_bids_electrodes(const sn_bids_place *place, sn_error *err);
SN_MUST_CHECK sn_status sn_bids_events(const sn_bids_place *place, sn_error *err);

#endif
