/* Mask samplers: which tokens of a sample are hidden.  They see coordinates and channel identity only.
 *
 * Counts are exact: of n candidates round-half-up(ratio * n) are masked, at least 1 and at most n - 1; a sample or
 * channel that cannot have both (n < 2) is left alone.  "Scope" says what the ratio counts over: the whole sample, or each
 * channel on its own.  Every sampler draws from the random stream that it is given and from nothing else. */
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
  const int32_t *series;     /* (n) tokens of one channel share a number >= 0; NULL: channels tell them apart */
} sn_mask_tokens;

typedef struct sn_mask_options {
  double ratio;              /* in (0,1) */
  sn_mask_scope scope;
  bool floor_kept;           /* compat mae2022: kept = (int)(n * (1 - ratio)) in float64 instead of round half up */
  int64_t span;              /* time: length of one stretch in patches, at least 1 */
  double radius_m;           /* spacetime, tube: channels within this distance of the seed's */
  int64_t time_radius;       /* spacetime: patches before and after the seed; negative: all (tube) */
  double channel_share;      /* spacetime: probability that a draw hides whole channels */
  double channel_radius_m;   /* spacetime: those within this distance */
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

/* Whole channels in random order, until the count is reached; of the last one only as many tokens as are still missing,
 * uniformly at random.  Scope sample only: a share of each channel is no whole channel. */
sn_status sn_mask_channel(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                          uint8_t *masked, int64_t *n_masked, sn_error *err);
/* Whole times over all channels: stretches of `span` patches around centres drawn uniformly from the tokens that are still
 * visible, until the count is reached (scope channel: each channel has stretches of its own).  The last stretch is filled
 * from its beginning, and of the time that does not fit whole exactly the missing number of tokens, uniformly at random. */
sn_status sn_mask_time(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                       uint8_t *masked, int64_t *n_masked, sn_error *err);
/* Blocks of space and time by physical distance (REVE).  Until the count is reached: draw a seed uniformly from the tokens
 * that are still visible; with probability channel_share hide every token of the channels within channel_radius_m of the
 * seed's, else the tokens within time_radius patches of the seed, of the channels within radius_m.  What is too much is made
 * visible again, uniformly at random among all hidden tokens, so that the count is exact.  (The publication states radii,
 * ratio and share; that the share is one of draws is our reading.)  Scope sample only.
 * A channel has no position when its x, y, z are all 0, or not finite: SN_E_ARGUMENT.
 * Source: El Ouahidi et al., "REVE: A Foundation Model for EEG", 2025; signals S3. */
sn_status sn_mask_spacetime(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                            uint8_t *masked, int64_t *n_masked, sn_error *err);
/* The same over the whole length of the sample (V-JEPA's tubes, on a scalp): time_radius and channel_share do not count. */
sn_status sn_mask_tube(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                       uint8_t *masked, int64_t *n_masked, sn_error *err);

/* Samplers by name, for a choice in a configuration; NULL: there is none. */
#define SN_MASK_CHOICES "random|contiguous|time|channel|spacetime|tube"
sn_mask_sampler sn_mask_find(const char *name);
/* SN_E_ARGUMENT when the scope does not fit the sampler. */
SN_MUST_CHECK sn_status sn_mask_check(sn_mask_sampler sampler, const sn_mask_options *options, sn_error *err);

/* What the samplers share. groups (n) [out] group number of each token in order of first appearance (one for all, or
 * one a channel); *n_groups how many there are. */
void sn_mask_groups(const sn_mask_tokens *tokens, sn_mask_scope scope, int32_t *groups, int64_t *n_groups);
/* The tokens of one group in their order into members (n) [out], made visible in masked; returns how many. */
int64_t sn_mask_take_group(const sn_mask_tokens *tokens, const int32_t *groups, int64_t group, int64_t *members,
                           uint8_t *masked);
/* Exactly `count` of the n tokens listed become `value`, uniformly at random without replacement. Shuffles the list. */
void sn_mask_set_some(int64_t *list, int64_t n, int64_t count, sn_random *random, uint8_t value, uint8_t *masked);
/* The channels of a sample and their tokens: channel c's are order[starts[c] .. starts[c + 1]), in token order. Fresh arrays
 * (sn_free), order (n), starts (*n_channels + 1). */
sn_status sn_mask_by_channel(const sn_mask_tokens *tokens, int64_t **order, int64_t **starts, int64_t *n_channels,
                             sn_error *err);

#endif
