/* Mask samplers: which tokens of a sample are hidden.  They see coordinates and channel identity only.
 *
 * Counts are exact: of n candidates round-half-up(ratio * n) are masked, at least 1 and at most n - 1; a sample or
 * channel that cannot have both (n < 2) is left alone.  "Scope" says what the ratio counts over: the whole sample, or each
 * channel on its own. */
#ifndef SN_OBJECTIVES_MASK_H
#define SN_OBJECTIVES_MASK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/philox.h"
#include "core/status.h"

typedef enum sn_mask_scope { SN_MASK_SAMPLE, SN_MASK_CHANNEL } sn_mask_scope;

/* One sample's tokens, as views into a batch. */
typedef struct sn_mask_tokens {
  int64_t n;
  const float *coordinates;  /* (n, 4) */
  const int32_t *channels;   /* (n) */
  const int32_t *positions;  /* (n) */
} sn_mask_tokens;

typedef struct sn_mask_options {
  double ratio;              /* in (0,1) */
  sn_mask_scope scope;
  bool floor_kept;           /* compat mae2022: kept = (int)(n * (1 - ratio)) in float64 instead of round half up */
} sn_mask_options;

/* How many of n are masked under the options; 0 when none may be. */
int64_t sn_mask_count(int64_t n, const sn_mask_options *options);

/* masked (n) [out]: 1 hidden, 0 visible. *n_masked the total, which may be 0 (the sample then has no target). */
typedef sn_status (*sn_mask_sampler)(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                                     uint8_t *masked, int64_t *n_masked, sn_error *err);

/* Uniformly at random without replacement, exactly sn_mask_count of each group (objectives.md O1).  SN_E_MEMORY. */
sn_status sn_mask_random(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                         uint8_t *masked, int64_t *n_masked, sn_error *err);
/* One contiguous stretch of time: per channel each its own (scope channel), or the same positions in every channel with
 * the excess of the last position trimmed at random so that the count is exact (scope sample). */
sn_status sn_mask_contiguous(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                             uint8_t *masked, int64_t *n_masked, sn_error *err);

/* What the samplers share. groups (n) [out] group number of each token in order of first appearance (one for all, or
 * one a channel); *n_groups how many there are. */
void sn_mask_groups(const sn_mask_tokens *tokens, sn_mask_scope scope, int32_t *groups, int64_t *n_groups);
/* The tokens of one group in their order into members (n) [out], made visible in masked; returns how many. */
int64_t sn_mask_take_group(const sn_mask_tokens *tokens, const int32_t *groups, int64_t group, int64_t *members,
                           uint8_t *masked);

#endif
