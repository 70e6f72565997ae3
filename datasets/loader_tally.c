#include "datasets/loader_tally.h"

#include <stdio.h>

#include "core/alloc.h"

sn_status sn_tally_init(sn_tally *tally, int64_t n_recordings, sn_error *err) {
  const int64_t n = n_recordings > 0 ? n_recordings : 1;
  *tally = (sn_tally){.n_recordings = n_recordings};
  SN_TRY(sn_alloc(&tally->gave, n, 1, "recordings", err));
  sn_status status = sn_alloc(&tally->rejected, n, sizeof *tally->rejected, "recordings", err);
  if (status != SN_OK) sn_tally_free(tally);
  return status;
}

void sn_tally_free(sn_tally *tally) {
  sn_free(tally->gave);
  sn_free(tally->rejected);
  *tally = (sn_tally){0};
}

void sn_tally_gave(sn_tally *tally, int64_t recording) {
  if (recording >= 0 && recording < tally->n_recordings) tally->gave[recording] = 1;
}

void sn_tally_rejected(sn_tally *tally, int64_t recording, int64_t window, const char *reason) {
  if (tally->reason[0] == '\0')
    snprintf(tally->reason, sizeof tally->reason, "%.255s", reason[0] != '\0' ? reason : "rejected by a rule");
  if (recording < 0 || recording >= tally->n_recordings || tally->rejected[recording] != 0) return;
  tally->rejected[recording] = window + 1;
}

int64_t sn_tally_count_silent(const sn_tally *tally, int64_t *window) {
  int64_t n = 0;
  *window = -1;
  for (int64_t i = 0; i < tally->n_recordings; i++) {
    if (tally->rejected[i] == 0 || tally->gave[i]) continue;
    if (n++ == 0) *window = tally->rejected[i] - 1;
  }
  return n;
}
