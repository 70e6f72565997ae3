/* The plan of places and packs: a pure function of (source, seed, capacity), known before anything is read.
 *
 * ONE SET OF WINDOWS.  Place p is window bijection(seed, SN_PURPOSE_ORDER, epoch = p / n_windows) of p % n_windows.
 *
 * A MIXTURE (source->n_parts > 1; datasets/mixture.h).  Every part has an order of its own, in the same way, keyed by its
 * name, and passes over its windows at its own pace.  The next place is of the part that has had the fewest nominal tokens
 * over its share so far, the first of equals (smallest deficit first).  After any number of places a part of share s is
 * above its share of the tokens by at most one window, and below by at most s (n_parts - 1) of the largest.
 * GROUPS (datasets/groups.h).  The sequence is one of groups, of each part by itself (partners: of all parts together, whatever
 * the shares), each of which takes as many places as the largest group has and lies whole in one pack; places that a smaller one
 * leaves free hold nothing.  The bound above is then one of groups.
 *
 * What the parts have had is counted along with the places; a plan that begins at a later place goes through those
 * before it once, some millions a second, so that a position is still all the state there is. */
#ifndef SN_DATASETS_LOADER_PLAN_H
#define SN_DATASETS_LOADER_PLAN_H

#include <stdint.h>

#include "core/status.h"
#include "datasets/groups.h"
#include "datasets/source.h"

typedef struct sn_plan {
  const sn_source *source; /* borrowed */
  uint64_t seed;
  int64_t pack_tokens;
  int64_t n_views;         /* of every window: its tokens count as often */
  int64_t group_places;    /* places of a group; 1: windows by themselves */
  const sn_groups *const *groups; /* (n_parts, or 1: of all) borrowed; NULL: windows by themselves */
  bool partners;           /* groups[0] is of all parts */
  /* Of a mixture, zero at first: places gone through, and of each part places and nominal tokens among them. */
  int64_t place;
  int64_t taken[SN_MOST_PARTS], tokens[SN_MOST_PARTS]; /* taken: groups, where windows come in groups */
} sn_plan;

typedef struct sn_plan_place {
  int64_t window;
  uint64_t epoch; /* pass over the windows of its part */
} sn_plan_place;

/* The pack that begins at place `first`: *n_places [out] is how many windows it holds (at least 1), which stand
 * in *places (grown as needed); the next one begins at *next [out].  SN_E_STATE when the source names a token count outside [min_tokens, max_tokens]. */
SN_MUST_CHECK sn_status sn_plan_pack(sn_plan *plan, int64_t first, int64_t *n_places, int64_t *next,
                                     sn_plan_place **places, int64_t *capacity, sn_error *err);
double sn_plan_epoch(const sn_plan *plan, int64_t place); /* passes over the windows so far */

#endif
