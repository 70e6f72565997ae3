/* The quarantine ledger: which recordings cannot be used, since which place, and why. */
#ifndef SN_DATASETS_LOADER_LEDGER_H
#define SN_DATASETS_LOADER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "core/json.h"
#include "core/status.h"

typedef struct sn_ledger_entry {
  int64_t recording; /* row of the manifest */
  int64_t place;     /* first place at which it failed */
  sn_error error;
  char *path; /* owned by the ledger */
} sn_ledger_entry;

/* Zero-initialise; free with sn_ledger_free.  entries are sorted by place. */
typedef struct sn_ledger {
  int64_t n, capacity;
  sn_ledger_entry *entries;
  int64_t *by_recording; /* (n) indices into entries, sorted by recording */
  int64_t by_recording_capacity;
} sn_ledger;

void sn_ledger_free(sn_ledger *ledger);
const sn_ledger_entry *sn_ledger_find(const sn_ledger *ledger, int64_t recording); /* NULL if absent */
/* Of two entries for one recording the one with the earlier place stays.  *added (may be NULL): a new recording. */
SN_MUST_CHECK sn_status sn_ledger_add(sn_ledger *ledger, int64_t recording, int64_t place, const char *path,
                                      const sn_error *error, bool *added, sn_error *err);
void sn_ledger_write_json(const sn_ledger *ledger, sn_json_writer *writer);
/* SN_E_CORRUPT names the entry and the key; recordings must lie in [0, n_recordings). */
SN_MUST_CHECK sn_status sn_ledger_read_json(sn_ledger *ledger, const sn_json *json, int64_t n_recordings,
                                            sn_error *err);
SN_MUST_CHECK sn_status sn_ledger_save_tsv(const sn_ledger *ledger, const char *path, sn_error *err);

#endif
