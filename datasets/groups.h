/* Groups of windows that come together: positives without chance (sn_sampling, core/token_batch.h).
 *
 * A UNIT is the windows of one recording or of one subject; where windows must follow each other in time (adjacent, a
 * least gap, a greatest lag), those of one contiguous piece of a recording.  A unit of n windows gives, in every epoch,
 * floor(n / group) groups of `group` windows, and one smaller one of the rest where that is at least 2.  A rest of one window
 * cannot be in a group: it is left out of that epoch (another one in the next, so that over the epochs all are read) and
 * counted in the report, as are the windows of units that have but one.  Each other window comes once per epoch.
 *
 *   any        members are drawn by a keyed bijection of the unit's windows
 *   adjacent   members follow each other, the first that does not overlap the one before and leaves min_gap_s between; groups
 *              follow each other through the piece, and the rest stands at a drawn place among them
 *   min_gap_s  above 0: least time between the end of one member and the start of another
 *   max_lag_s  above 0: greatest time between the starts of the first and the last member.  Not adjacent, a piece is cut into
 *              spans of that length, and members are drawn within one
 * Gaps and lags are those of the grid: data.crop and augmentations move windows afterwards.
 *
 * Groups come in the order of a keyed bijection of all of them, (seed, SN_PURPOSE_ORDER, epoch); members of a unit are keyed by
 * (seed, SN_PURPOSE_POSITIVE, epoch, unit), a unit's key being a hash of names, so that adding a file changes no other unit's
 * groups.  Nothing is listed: memory is O(pieces of recordings), a group is found in O(log) of them.
 *
 * PARTNERS (sampling.partners; a mixture, by subject): a group is one window of each part that has one for the subject, so that
 * two modalities of a person meet.  A part's windows of a subject are drawn by a bijection of their own.  There are as many
 * groups as have at least two members, i.e. as the second largest number of windows that a part has of the subject: the
 * largest part's surplus is left out of the epoch and counted, as are subjects of one part alone.  A part that has fewer windows
 * is absent from the rest.  With sampling.adjacent the i-th window of one part's recordings of the subject, in the order of paths
 * and time, meets the i-th of another's: recordings made together, on one grid; whether times agree is for the objective to see
 * (starts_s).  Shares of tokens are what partners make them. */
#ifndef SN_DATASETS_GROUPS_H
#define SN_DATASETS_GROUPS_H

#include <stdint.h>

#include "core/log.h"
#include "core/status.h"
#include "datasets/source.h"

enum { SN_MOST_GROUP = 64 };

typedef struct sn_group_options {
  sn_sampling sampling;      /* by, group (at least 2), adjacent, partners */
  double min_gap_s, max_lag_s;
} sn_group_options;

typedef struct sn_groups sn_groups;

/* Over the windows of part `part` of a mixture; -1: of the whole source.
 *   SN_E_UNSUPPORTED  the source does not know whose its windows are
 *   SN_E_ARGUMENT     a recording without a subject (it is named), by subject with gaps or lags, a lag that no two windows
 *                     keep, partners of no mixture or not by subject, no group at all */
SN_MUST_CHECK sn_status sn_groups_create(const sn_source *source, int64_t part, const sn_group_options *options,
                                         sn_groups **out, sn_error *err);
void sn_groups_destroy(sn_groups *groups); /* accepts NULL */

typedef struct sn_groups_report {
  int64_t n_groups;    /* of an epoch */
  int64_t n_windows;   /* in groups, of an epoch */
  int64_t n_left_out;  /* of an epoch */
  int64_t n_units;     /* with at least one group */
  int64_t n_alone;     /* units that can form none */
} sn_groups_report;
sn_groups_report sn_groups_get_report(const sn_groups *groups);
int64_t sn_groups_most(const sn_groups *groups); /* most members */

/* Windows of group `number`, counted through all epochs from 0: windows (SN_MOST_GROUP) [out], their epoch; returns how many,
 * at least 2. */
int64_t sn_groups_at(const sn_groups *groups, uint64_t seed, int64_t number, int64_t *windows, uint64_t *epoch);

#endif
