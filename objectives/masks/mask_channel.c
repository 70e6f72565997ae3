#include <string.h>

#include "core/alloc.h"
#include "objectives/masks/mask.h"

sn_status sn_mask_channel(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                          uint8_t *masked, int64_t *n_masked, sn_error *err) {
  int64_t *order = NULL, *starts = NULL, *shuffled = NULL, n_channels = 0;
  sn_status status;
  SN_TRY_GOTO(sn_mask_by_channel(tokens, &order, &starts, &n_channels, err), done);
  SN_TRY_GOTO(sn_alloc(&shuffled, n_channels, sizeof *shuffled, "mask channels", err), done);
  sn_random_permutation(random, n_channels, shuffled);
  memset(masked, 0, (size_t)tokens->n);
  *n_masked = sn_mask_count(tokens->n, options);
  int64_t missing = *n_masked;
  for (int64_t k = 0; k < n_channels && missing > 0; k++) {
    const int64_t c = shuffled[k], n = starts[c + 1] - starts[c], take = n < missing ? n : missing;
    sn_mask_set_some(order + starts[c], n, take, random, 1, masked);
    missing -= take;
  }
done:
  sn_free(order);
  sn_free(starts);
  sn_free(shuffled);
  return status;
}
