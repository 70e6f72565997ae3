#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "objectives/contrast.h"

bool sn_rows_belong(const sn_row_info *a, const sn_row_info *b, sn_positives positives) {
  switch (positives) {
    case SN_POSITIVES_VIEW: return a->sample_id == b->sample_id;
    case SN_POSITIVES_RECORDING: return a->recording == b->recording && a->recording >= 0;
    case SN_POSITIVES_SUBJECT: return a->subject_id == b->subject_id && a->subject_id != 0;
    case SN_POSITIVES_TIME:
      return a->subject_id == b->subject_id && a->subject_id != 0 && fabs(a->start_s - b->start_s) < 1e-3;
  }
  return false;
}

static void exclude_all(float *weights, int64_t n) {
  for (int64_t k = 0; k < n; k++) weights[k] = -1;
}

void sn_weights_ntxent(const sn_row_info *infos, int64_t n, sn_positives positives, float *weights, sn_pair_counts *counts) {
  *counts = (sn_pair_counts){0};
  exclude_all(weights, n * n);
  for (int64_t i = 0; i < n; i++) {
    float *w = weights + i * n;
    int64_t own = 0;
    if (!infos[i].used) continue;
    for (int64_t j = 0; j < n; j++) own += j != i && infos[j].used && sn_rows_belong(&infos[i], &infos[j], positives);
    counts->anchors += own > 0;
    counts->alone += own == 0;
    counts->positives += own;
    for (int64_t j = 0; j < n && own > 0; j++) {
      if (j == i || !infos[j].used) continue;
      w[j] = sn_rows_belong(&infos[i], &infos[j], positives) ? 1.0f / (float)own : 0.0f;
    }
  }
}

void sn_weights_kernel(const sn_row_info *infos, int64_t n, double deviation, float *weights, sn_pair_counts *counts) {
  *counts = (sn_pair_counts){0};
  exclude_all(weights, n * n);
  for (int64_t i = 0; i < n; i++) {
    double total = 0;
    if (!infos[i].used || !isfinite(infos[i].label)) {
      counts->alone += infos[i].used != 0;
      continue;
    }
    for (int pass = 0; pass < 2; pass++)
      for (int64_t j = 0; j < n; j++) {
        if (j == i || !infos[j].used || !isfinite(infos[j].label)) continue;
        const double d = (infos[i].label - infos[j].label) / deviation, k = exp(-0.5 * d * d);
        if (pass == 0) total += k;
        else weights[i * n + j] = (float)(k / total);
        counts->positives += pass;
      }
    /* So far from everyone that every weight vanishes: nothing is near it, and it is no anchor. */
    if (total > 0) counts->anchors++;
    else exclude_all(weights + i * n, n);
  }
}

/* Which member of its group a row is: groups stand together in the order of rows. */
static void number_members(const sn_row_info *infos, int64_t n, sn_positives positives, int32_t *member, int64_t *n_groups,
                           int32_t *group) {
  int64_t last = -1;
  *n_groups = 0;
  for (int64_t i = 0; i < n; i++) {
    member[i] = group[i] = -1;
    if (!infos[i].used) continue;
    const bool goes_on = last >= 0 && member[last] == 0 && sn_rows_belong(&infos[last], &infos[i], positives);
    member[i] = goes_on ? 1 : 0;
    if (!goes_on) (*n_groups)++;
    group[i] = (int32_t)(*n_groups - 1);
    last = i;
  }
}

/* One half of the loss: rows of member `from` against columns of member `to`.  Pairs above the diagonal of u x v have a row
 * of a smaller group than their column; those below it, seen from their columns, as well. */
static void weigh_half(const sn_row_info *infos, int64_t n, sn_positives positives, bool original, const int32_t *member, const int32_t *group, int from, int to, float *weights) {
  int64_t n_diagonal = 0, n_other = 0, n_pairs = 0;
  for (int pass = 0; pass < 2; pass++)
    for (int64_t i = 0; i < n; i++)
      for (int64_t j = 0; j < n; j++) {
        if (member[i] != from || member[j] != to) continue;
        const bool pair = sn_rows_belong(&infos[i], &infos[j], positives), diagonal = group[i] == group[j];
        const bool other = pair && !diagonal && group[i] < group[j];
        if (pass == 0) {
          n_pairs += pair;
          n_diagonal += pair && diagonal;
          n_other += other;
          continue;
        }
        float *w = &weights[i * n + j];
        const double half = n_other > 0 ? 0.25 : 0.5;
        *w = 0;
        if (!original) *w = pair ? 0.5f / (float)n_pairs : 0;
        else if (pair && diagonal) *w = (float)(half / (double)n_diagonal);
        else if (other) *w = (float)(half / (double)n_other);
      }
}

/* A row of only zeros takes no part: as a row of the softmax it would say nothing. */
static void drop_idle(float *weights, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    bool any = false;
    for (int64_t j = 0; j < n; j++) any = any || weights[i * n + j] > 0;
    if (!any) exclude_all(weights + i * n, n);
  }
}

sn_status sn_weights_cmsc(const sn_row_info *infos, int64_t n, sn_positives positives, bool original, float *by_rows,
                          float *by_columns, sn_pair_counts *counts, sn_error *err) {
  int32_t *member = NULL, *group = NULL;
  int64_t n_groups = 0;
  sn_status status;
  *counts = (sn_pair_counts){0};
  exclude_all(by_rows, n * n);
  exclude_all(by_columns, n * n);
  SN_TRY_GOTO(sn_alloc(&member, n, sizeof *member, "contrast weights", err), done);
  SN_TRY_GOTO(sn_alloc(&group, n, sizeof *group, "contrast weights", err), done);
  number_members(infos, n, positives, member, &n_groups, group);
  weigh_half(infos, n, positives, original, member, group, 0, 1, by_rows);
  weigh_half(infos, n, positives, original, member, group, 1, 0, by_columns);
  for (int64_t i = 0; i < n; i++) {
    int64_t own = 0;
    for (int64_t j = 0; j < n; j++) own += by_rows[i * n + j] > 0 || by_columns[i * n + j] > 0;
    counts->positives += own;
    counts->anchors += own > 0;
    counts->alone += own == 0 && infos[i].used;
  }
  drop_idle(by_rows, n);
  drop_idle(by_columns, n);
done:
  sn_free(member);
  sn_free(group);
  return status;
}

/* Whether rows are used and have a partner of another source: partnered (n) [out]. */
static void find_partnered(const sn_row_info *infos, int64_t n, sn_positives positives, uint8_t *partnered) {
  memset(partnered, 0, (size_t)n);
  for (int64_t i = 0; i < n; i++)
    for (int64_t j = 0; j < i && infos[i].used; j++)
      if (infos[j].used && infos[j].source != infos[i].source && sn_rows_belong(&infos[i], &infos[j], positives))
        partnered[i] = partnered[j] = 1;
}

sn_status sn_weights_partners(const sn_row_info *infos, int64_t n, sn_positives positives, float *forward, float *backward,
                              sn_pair_counts *counts, sn_error *err) {
  uint8_t *partnered = NULL;
  int64_t n_rows[2] = {0, 0};
  *counts = (sn_pair_counts){0};
  exclude_all(forward, n * n);
  exclude_all(backward, n * n);
  SN_TRY(sn_alloc(&partnered, n, 1, "contrast weights", err));
  find_partnered(infos, n, positives, partnered);
  for (int64_t i = 0; i < n; i++) {
    n_rows[infos[i].source != 0] += partnered[i];
    counts->anchors += partnered[i];
    counts->alone += infos[i].used && !partnered[i];
  }
  for (int64_t i = 0; i < n; i++) {
    const bool second = infos[i].source != 0;
    float *w = (second ? backward : forward) + i * n;
    int64_t own = 0;
    if (!partnered[i]) continue;
    for (int64_t j = 0; j < n; j++) {
      if (infos[j].source == infos[i].source || !partnered[j]) continue;
      w[j] = sn_rows_belong(&infos[i], &infos[j], positives) ? 1.0f : 0.0f;
      own += w[j] > 0;
    }
    for (int64_t j = 0; j < n; j++)
      if (w[j] > 0) w[j] = (float)(0.5 / ((double)own * (double)n_rows[second]));
    counts->positives += own;
  }
  sn_free(partnered);
  return SN_OK;
}
