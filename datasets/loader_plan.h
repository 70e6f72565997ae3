/* The plan of places and packs: a pure function of (source, seed, capacity), known before anything is read. */
#ifndef SN_DATASETS_LOADER_PLAN_H
#define SN_DATASETS_LOADER_PLAN_H

#include <stdint.h>

#include "core/status.h"
#include "datasets/source.h"

typedef struct sn_plan {
  const sn_source *source; /* borrowed */
  uint64_t seed;
  int64_t pack_tokens;
  int64_t n_views;         /* of every window: its tokens count as often */
} sn_plan;

/* The window at a place, 0 <= place: bijection(seed, SN_PURPOSE_ORDER, epoch = place / n_windows) of place %
 * n_windows. */
int64_t sn_plan_window(const sn_plan *plan, int64_t place, uint64_t *epoch);

/* The pack that begins at `first`: *n_places [out] is how many places it takes (at least 1), their windows are
 * appended to *windows (grown as needed).  SN_E_STATE when the source names a token count outside [min_tokens,
 * max_tokens]. */
SN_MUST_CHECK sn_status sn_plan_pack(const sn_plan *plan, int64_t first, int64_t *n_places, int64_t **windows,
                                     int64_t *capacity, sn_error *err);

#endif
