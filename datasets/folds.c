/* needs: full */
/* Grouped, stratified folds (split.h says by which rule). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/philox.h"
#include "datasets/split.h"

typedef struct member {
  uint64_t group;
  int32_t stratum;
  int64_t item;
} member;

typedef struct fold_group {
  uint64_t group;
  uint64_t draw;
  int32_t stratum;
  int64_t size;
  int32_t fold;
} fold_group;

static int compare_members(const void *a, const void *b) {
  const member *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return (x->stratum > y->stratum) - (x->stratum < y->stratum);
}

static int compare_groups(const void *a, const void *b) {
  const fold_group *x = a, *y = b;
  if (x->stratum != y->stratum) return x->stratum < y->stratum ? -1 : 1;
  if (x->draw != y->draw) return x->draw < y->draw ? -1 : 1;
  return (x->group > y->group) - (x->group < y->group);
}

static int compare_by_identity(const void *a, const void *b) {
  const fold_group *x = a, *y = b;
  return (x->group > y->group) - (x->group < y->group);
}

/* Members (sorted by group, stratum) to groups, each with its commonest stratum. */
static int64_t make_groups(const member *members, int64_t n, uint64_t seed, fold_group *groups) {
  int64_t n_groups = 0;
  for (int64_t i = 0; i < n;) {
    fold_group g = {.group = members[i].group, .stratum = -1};
    int64_t best = 0, j = i;
    while (j < n && members[j].group == g.group) {
      int64_t run = j;
      while (run < n && members[run].group == g.group && members[run].stratum == members[j].stratum) run++;
      if (members[j].stratum >= 0 && run - j > best) { /* ties: the smaller class came first */
        best = run - j;
        g.stratum = members[j].stratum;
      }
      j = run;
    }
    g.size = j - i;
    sn_random random = sn_random_at(seed, SN_PURPOSE_SPLIT, 0, g.group);
    g.draw = sn_random_u64(&random);
    groups[n_groups++] = g;
    i = j;
  }
  return n_groups;
}

static sn_status deal(fold_group *groups, int64_t n, int64_t k, sn_error *err) {
  int64_t *in_stratum = NULL, *items = NULL;
  sn_status status = SN_OK;
  SN_TRY_GOTO(sn_alloc(&in_stratum, k, sizeof *in_stratum, "folds", err), done);
  SN_TRY_GOTO(sn_alloc(&items, k, sizeof *items, "folds", err), done);
  for (int64_t i = 0; i < n; i++) {
    if (i > 0 && groups[i].stratum != groups[i - 1].stratum) memset(in_stratum, 0, (size_t)k * sizeof *in_stratum);
    int64_t best = 0;
    for (int64_t f = 1; f < k; f++) {
      if (in_stratum[f] < in_stratum[best] || (in_stratum[f] == in_stratum[best] && items[f] < items[best])) best = f;
    }
    groups[i].fold = (int32_t)best;
    in_stratum[best]++;
    items[best] += groups[i].size;
  }
done:
  sn_free(in_stratum);
  sn_free(items);
  return status;
}

sn_status sn_grouped_folds(const uint64_t *group_of, const int32_t *strata, int64_t n, int64_t k, uint64_t seed,
                           int32_t *folds, int64_t *n_folds, sn_error *err) {
  member *members = NULL;
  fold_group *groups = NULL;
  sn_status status = SN_OK;
  if (k < 2) return sn_fail(err, SN_E_ARGUMENT, "folds: %" PRId64 " asked for; at least 2 are needed", k);
  SN_TRY_GOTO(sn_alloc(&members, n, sizeof *members, "folds", err), done);
  SN_TRY_GOTO(sn_alloc(&groups, n, sizeof *groups, "folds", err), done);
  for (int64_t i = 0; i < n; i++) {
    members[i] = (member){.group = group_of[i], .stratum = strata != NULL ? strata[i] : -1, .item = i};
  }
  if (n > 0) qsort(members, (size_t)n, sizeof *members, compare_members);
  int64_t n_groups = make_groups(members, n, seed, groups);
  if (n_groups < 2) {
    status = sn_fail(err, SN_E_ARGUMENT,
                     "folds: %" PRId64 " people (or recordings, where persons are unknown); at least 2 are needed", n_groups);
    goto done;
  }
  *n_folds = n_groups < k ? n_groups : k;
  qsort(groups, (size_t)n_groups, sizeof *groups, compare_groups);
  SN_TRY_GOTO(deal(groups, n_groups, *n_folds, err), done);
  qsort(groups, (size_t)n_groups, sizeof *groups, compare_by_identity);
  for (int64_t i = 0, g = 0; i < n; i++) {
    while (groups[g].group != members[i].group) g++;
    folds[members[i].item] = groups[g].fold;
  }
done:
  sn_free(members);
  sn_free(groups);
  return status;
}
