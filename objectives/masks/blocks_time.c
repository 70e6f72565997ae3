/* Draws that take whole times or whole channels: stretches of time shared by all channels, the future, discs on the head. */
#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "objectives/masks/blocks.h"

/* One block of every token that is not shown, or nothing where there is none or nothing shown. */
static void ask_for_the_rest(const sn_mask_tokens *tokens, sn_blocks *out) {
  int64_t n = 0;
  for (int64_t i = 0; i < tokens->n; i++) {
    if (out->state[i] == SN_TOKEN_SHOWN) continue;
    out->state[i] = SN_TOKEN_ASKED;
    out->tokens[n++] = i;
  }
  out->n_blocks = n > 0 && n < tokens->n;
  out->offsets[1] = n;
  if (out->n_blocks == 0) memset(out->state, SN_TOKEN_LEFT, (size_t)tokens->n);
}

static int64_t count_times(const sn_mask_tokens *tokens) {
  int64_t n = 0;
  for (int64_t i = 0; i < tokens->n; i++)
    if (tokens->positions[i] >= n) n = tokens->positions[i] + 1;
  return n;
}

/* Stretches of at least `least` times, n in all, set to 1 in times (n_times); they may touch. */
static void place_stretches(int64_t n_times, int64_t n, int64_t least, sn_random *random, uint8_t *times) {
  while (n > 0) {
    int64_t length = n < 2 * least ? n : least, fits = 0;
    for (; length > 0 && fits == 0; length -= fits == 0)
      for (int64_t t = 0, run = 0; t < n_times; t++) {
        run = times[t] ? 0 : run + 1;
        fits += run >= length;
      }
    int64_t pick = (int64_t)sn_random_below(random, (uint64_t)fits);
    for (int64_t t = 0, run = 0; t < n_times; t++) {
      run = times[t] ? 0 : run + 1;
      if (run < length || pick-- > 0) continue;
      memset(times + t - length + 1, 1, (size_t)length);
      break;
    }
    n -= length;
  }
}

static sn_status draw_timeblocks(const sn_mask_tokens *tokens, const sn_block_options *o, sn_random *random,
                                 sn_blocks *out, sn_error *err) {
  const int64_t n_times = count_times(tokens);
  uint8_t *times = NULL;
  if (n_times < 2) return SN_OK;
  SN_TRY(sn_alloc(&times, n_times, 1, "blocks of time", err));
  const double share = o->context_least + (o->context_most - o->context_least) * sn_random_uniform(random);
  int64_t n = (int64_t)floor(share * (double)n_times + 0.5);
  n = n < 1 ? 1 : n > n_times - 1 ? n_times - 1 : n;
  place_stretches(n_times, n, o->block_patches, random, times);
  for (int64_t i = 0; i < tokens->n; i++)
    if (times[tokens->positions[i]]) out->state[i] = SN_TOKEN_SHOWN;
  ask_for_the_rest(tokens, out);
  sn_free(times);
  return SN_OK;
}

static sn_status draw_future(const sn_mask_tokens *tokens, const sn_block_options *o, sn_random *random, sn_blocks *out,
                             sn_error *err) {
  const int64_t n_times = count_times(tokens);
  (void)err;
  if (n_times < 2) return SN_OK;
  const double share = o->future_least + (o->future_most - o->future_least) * sn_random_uniform(random);
  int64_t n = (int64_t)floor(share * (double)n_times + 0.5);
  n = n < 1 ? 1 : n > n_times - 1 ? n_times - 1 : n;
  for (int64_t i = 0; i < tokens->n; i++)
    if (tokens->positions[i] < n_times - n) out->state[i] = SN_TOKEN_SHOWN;
  ask_for_the_rest(tokens, out);
  return SN_OK;
}

static double distance(const sn_mask_tokens *tokens, int64_t a, int64_t b) {
  double sum = 0;
  for (int k = 0; k < 3; k++) {
    const double d = (double)tokens->coordinates[4 * a + k] - tokens->coordinates[4 * b + k];
    sum += d * d;
  }
  return sqrt(sum);
}

static sn_status draw_disc(const sn_mask_tokens *tokens, const sn_block_options *o, sn_random *random, sn_blocks *out,
                           sn_error *err) {
  int64_t *order = NULL, *starts = NULL, n_channels = 0;
  double diameter = 0;
  if (tokens->n < 2) return SN_OK;
  SN_TRY(sn_mask_by_channel(tokens, &order, &starts, &n_channels, err));
  sn_status status = SN_OK;
  for (int64_t c = 0; c < n_channels && status == SN_OK; c++) {
    const float *p = tokens->coordinates + 4 * order[starts[c]];
    if (!isfinite(p[0] + p[1] + p[2]) || (p[0] == 0 && p[1] == 0 && p[2] == 0))
      status = sn_fail(err, SN_E_ARGUMENT, "mask disc: channel %d has no position; give electrode positions, or another mask",
                       (int)tokens->channels[order[starts[c]]]);
    for (int64_t d = 0; d < c && status == SN_OK; d++)
      diameter = fmax(diameter, distance(tokens, order[starts[c]], order[starts[d]]));
  }
  if (status == SN_OK && n_channels > 1) {
    const int64_t centre = order[starts[sn_random_below(random, (uint64_t)n_channels)]];
    for (int64_t i = 0; i < tokens->n; i++)
      if (distance(tokens, i, centre) > o->radius * diameter) out->state[i] = SN_TOKEN_SHOWN;
    ask_for_the_rest(tokens, out);
  }
  sn_free(order);
  sn_free(starts);
  return status;
}

static void bound_one(const sn_block_options *o, int64_t n, int64_t *shown, int64_t *asked, int64_t *n_blocks) {
  (void)o;
  *shown = *asked = n;
  *n_blocks = 1;
}

const sn_block_kind sn_blocks_timeblocks = {"timeblocks", draw_timeblocks, bound_one};
const sn_block_kind sn_blocks_future = {"future", draw_future, bound_one};
const sn_block_kind sn_blocks_disc = {"disc", draw_disc, bound_one};
