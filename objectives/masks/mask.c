#include "objectives/masks/mask.h"

#include <math.h>
#include <string.h>

#include "core/alloc.h"

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

static const struct {
  const char *name;
  sn_mask_sampler sampler;
  bool sample_only;
} SAMPLERS[] = {{"random", sn_mask_random, false},   {"contiguous", sn_mask_contiguous, false},
                {"time", sn_mask_time, false},       {"channel", sn_mask_channel, true},
                {"spacetime", sn_mask_spacetime, true}, {"tube", sn_mask_tube, true}};
enum { N_SAMPLERS = sizeof SAMPLERS / sizeof SAMPLERS[0] };

sn_mask_sampler sn_mask_find(const char *name) {
  for (int i = 0; i < N_SAMPLERS; i++)
    if (strcmp(SAMPLERS[i].name, name) == 0) return SAMPLERS[i].sampler;
  return NULL;
}

sn_status sn_mask_check(sn_mask_sampler sampler, const sn_mask_options *options, sn_error *err) {
  for (int i = 0; i < N_SAMPLERS; i++)
    if (SAMPLERS[i].sampler == sampler && SAMPLERS[i].sample_only && options->scope != SN_MASK_SAMPLE)
      return sn_fail(err, SN_E_ARGUMENT, "mask %s hides whole channels or regions: its ratio is one of the sample, not of each "
                     "channel (scope sample)", SAMPLERS[i].name);
  return SN_OK;
}

static int32_t channel_of(const sn_mask_tokens *tokens, int64_t i) {
  return tokens->series != NULL ? tokens->series[i] : tokens->channels[i];
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
    if (j >= 0 && channel_of(tokens, j) != channel_of(tokens, i))
      for (j = 0; j < i && channel_of(tokens, j) != channel_of(tokens, i); j++) {}
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

void sn_mask_set_some(int64_t *list, int64_t n, int64_t count, sn_random *random, uint8_t value, uint8_t *masked) {
  for (int64_t k = 0; k < count; k++) {
    const int64_t pick = k + (int64_t)sn_random_below(random, (uint64_t)(n - k)), token = list[pick];
    list[pick] = list[k];
    list[k] = token;
    masked[token] = value;
  }
}

sn_status sn_mask_by_channel(const sn_mask_tokens *tokens, int64_t **order, int64_t **starts, int64_t *n_channels,
                             sn_error *err) {
  int32_t *groups = NULL;
  sn_status status;
  *order = *starts = NULL;
  SN_TRY_GOTO(sn_alloc(&groups, tokens->n, sizeof *groups, "mask channels", err), fail);
  sn_mask_groups(tokens, SN_MASK_CHANNEL, groups, n_channels);
  SN_TRY_GOTO(sn_alloc(order, tokens->n, sizeof **order, "mask channels", err), fail);
  SN_TRY_GOTO(sn_alloc(starts, *n_channels + 2, sizeof **starts, "mask channels", err), fail);
  /* Counting sort: starts[c + 1] is where the next token of channel c goes, and in the end where c + 1 begins. */
  for (int64_t i = 0; i < tokens->n; i++) (*starts)[groups[i] + 2]++;
  for (int64_t c = 0; c < *n_channels; c++) (*starts)[c + 1] += (*starts)[c];
  for (int64_t i = 0; i < tokens->n; i++) (*order)[(*starts)[groups[i] + 1]++] = i;
  sn_free(groups);
  return SN_OK;
fail:
  sn_free(groups);
  sn_free(*order);
  sn_free(*starts);
  *order = *starts = NULL;
  return status;
}
