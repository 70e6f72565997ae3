/* What became of each recording's windows, so that recordings of which nothing is ever used do not vanish unsaid. */
#ifndef SN_DATASETS_LOADER_TALLY_H
#define SN_DATASETS_LOADER_TALLY_H

#include <stdint.h>

#include "core/status.h"

typedef struct sn_tally {
  int64_t n_recordings;
  int64_t *rejected;  /* (n_recordings) 1 + the first window that a rule rejected, 0: none was */
  uint8_t *gave;      /* (n_recordings) a window of it was used */
  char reason[256];   /* of the first window that a rule rejected; empty: none was */
} sn_tally;

SN_MUST_CHECK sn_status sn_tally_init(sn_tally *tally, int64_t n_recordings, sn_error *err);
void sn_tally_free(sn_tally *tally);
/* recording -1: of none. */
void sn_tally_gave(sn_tally *tally, int64_t recording);
void sn_tally_rejected(sn_tally *tally, int64_t recording, int64_t window, const char *reason);
/* Recordings of which windows were rejected and none was used; *window [out]: one of the lowest of them, -1: there is none. */
int64_t sn_tally_count_silent(const sn_tally *tally, int64_t *window);

#endif
