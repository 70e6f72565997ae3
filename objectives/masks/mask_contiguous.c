#include "core/alloc.h"
#include "objectives/masks/mask.h"

/* Masks `count` of the n members (in token order) that lie in a run of positions beginning at a random place.  The run
 * wraps around nowhere: its start is uniform over the places from which it fits. */
static void mask_run(const sn_mask_tokens *tokens, const int64_t *members, int64_t n, int64_t count, sn_random *random,
                     uint8_t *masked, int64_t *by_position) {
  int32_t least = tokens->positions[members[0]], most = least;
  for (int64_t k = 1; k < n; k++) {
    int32_t p = tokens->positions[members[k]];
    if (p < least) least = p;
    if (p > most) most = p;
  }
  const int64_t span = (int64_t)most - least + 1;
  for (int64_t p = 0; p < span; p++) by_position[p] = 0;
  for (int64_t k = 0; k < n; k++) by_position[tokens->positions[members[k]] - least]++;
  /* The last start from which the rest of the axis still holds `count` tokens. */
  int64_t last = span, rest = 0;
  while (last > 0 && rest < count) rest += by_position[--last];
  const int64_t start = (int64_t)sn_random_below(random, (uint64_t)(last + 1));
  int64_t end = start, inside = 0;
  while (inside + by_position[end] <= count) {
    inside += by_position[end++];
    if (inside == count || end == span) break;
  }
  for (int64_t k = 0; k < n; k++) {
    int64_t p = tokens->positions[members[k]] - least;
    if (p >= start && p < end) masked[members[k]] = 1;
  }
  /* The position that does not fit whole: exactly the missing number of its tokens, uniformly at random. */
  int64_t candidates = end < span ? by_position[end] : 0, missing = count - inside;
  for (int64_t k = 0; k < n && missing > 0; k++) {
    if (tokens->positions[members[k]] - least != end) continue;
    if ((int64_t)sn_random_below(random, (uint64_t)candidates) < missing) {
      masked[members[k]] = 1;
      missing--;
    }
    candidates--;
  }
}

static int64_t position_span(const sn_mask_tokens *tokens) {
  int32_t least = 0, most = 0;
  for (int64_t i = 0; i < tokens->n; i++) {
    if (i == 0 || tokens->positions[i] < least) least = tokens->positions[i];
    if (i == 0 || tokens->positions[i] > most) most = tokens->positions[i];
  }
  return (int64_t)most - least + 1;
}

sn_status sn_mask_contiguous(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                             uint8_t *masked, int64_t *n_masked, sn_error *err) {
  int32_t *groups = NULL;
  int64_t *members = NULL, *by_position = NULL, n_groups = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&groups, tokens->n, sizeof *groups, "mask groups", err), done);
  SN_TRY_GOTO(sn_alloc(&members, tokens->n, sizeof *members, "mask members", err), done);
  SN_TRY_GOTO(sn_alloc(&by_position, position_span(tokens), sizeof *by_position, "mask positions", err), done);
  sn_mask_groups(tokens, options->scope, groups, &n_groups);
  *n_masked = 0;
  for (int64_t g = 0; g < n_groups; g++) {
    const int64_t n = sn_mask_take_group(tokens, groups, g, members, masked);
    const int64_t count = sn_mask_count(n, options);
    if (count > 0) mask_run(tokens, members, n, count, random, masked, by_position);
    *n_masked += count;
  }
  status = SN_OK;
done:
  sn_free(groups);
  sn_free(members);
  sn_free(by_position);
  return status;
}
