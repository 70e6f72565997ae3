#include "objectives/masks/mask.h"

#include <math.h>

int64_t sn_mask_count(int64_t n, const sn_mask_options *options) {
  if (options->floor_kept) {
    int64_t kept = (int64_t)((double)n * (1 - options->ratio));
    return kept < 1 ? 0 : n - kept;
  }
  if (n < 2) return 0;
  int64_t count = (int64_t)floor(options->ratio * (double)n + 0.5);
  if (count < 1) count = 1;
  if (count > n - 1) count = n - 1;
  return count;
}

void sn_mask_groups(const sn_mask_tokens *tokens, sn_mask_scope scope, int32_t *groups, int64_t *n_groups) {
  *n_groups = 0;
  for (int64_t i = 0; i < tokens->n; i++) {
    if (scope == SN_MASK_SAMPLE) {
      groups[i] = 0;
      *n_groups = 1;
      continue;
    }
    /* Tokens are channel-major as a rule, so the previous token's group is tried first. */
    int64_t j = i - 1;
    if (j >= 0 && tokens->channels[j] != tokens->channels[i])
      for (j = 0; j < i && tokens->channels[j] != tokens->channels[i]; j++) {}
    groups[i] = j >= 0 && j < i ? groups[j] : (int32_t)(*n_groups)++;
  }
}

int64_t sn_mask_take_group(const sn_mask_tokens *tokens, const int32_t *groups, int64_t group, int64_t *members,
                           uint8_t *masked) {
  int64_t n = 0;
  for (int64_t i = 0; i < tokens->n; i++) {
    if (groups[i] != group) continue;
    members[n++] = i;
    masked[i] = 0;
  }
  return n;
}
