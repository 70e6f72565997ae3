#include "core/alloc.h"
#include "objectives/masks/mask.h"

sn_status sn_mask_random(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                         uint8_t *masked, int64_t *n_masked, sn_error *err) {
  int32_t *groups = NULL;
  int64_t *members = NULL, n_groups = 0;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&groups, tokens->n, sizeof *groups, "mask groups", err), done);
  SN_TRY_GOTO(sn_alloc(&members, tokens->n, sizeof *members, "mask members", err), done);
  sn_mask_groups(tokens, options->scope, groups, &n_groups);
  *n_masked = 0;
  for (int64_t g = 0; g < n_groups; g++) {
    const int64_t n = sn_mask_take_group(tokens, groups, g, members, masked);
    const int64_t count = sn_mask_count(n, options);
    /* The first `count` places of a Fisher-Yates shuffle: exact, uniform, without replacement. */
    for (int64_t k = 0; k < count; k++) {
      int64_t pick = k + (int64_t)sn_random_below(random, (uint64_t)(n - k));
      int64_t token = members[pick];
      members[pick] = members[k];
      members[k] = token;
      masked[token] = 1;
    }
    *n_masked += count;
  }
  status = SN_OK;
done:
  sn_free(groups);
  sn_free(members);
  return status;
}
