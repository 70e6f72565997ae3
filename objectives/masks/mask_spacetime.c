#include <math.h>
#include <string.h>

#include "core/alloc.h"
#include "objectives/masks/mask.h"

/* Channels with their places; tokens of channel c are order[starts[c] .. starts[c + 1]). */
typedef struct layout {
  const sn_mask_tokens *tokens;
  int64_t n_channels, *order, *starts;
  int32_t *channel; /* (n) of each token */
} layout;

static const float *place_of(const layout *l, int64_t c) { return l->tokens->coordinates + 4 * l->order[l->starts[c]]; }

static sn_status check_places(const layout *l, sn_error *err) {
  for (int64_t c = 0; c < l->n_channels; c++) {
    const float *p = place_of(l, c);
    if (!isfinite(p[0]) || !isfinite(p[1]) || !isfinite(p[2]) || (p[0] == 0 && p[1] == 0 && p[2] == 0))
      return sn_fail(err, SN_E_ARGUMENT,
                     "a mask by physical distance needs the position of every channel, and channel %lld of %lld (number %d of "
                     "the table) has none: use mae.mask channel, time or random, or leave such channels out",
                     (long long)c, (long long)l->n_channels, l->tokens->channels[l->order[l->starts[c]]]);
  }
  return SN_OK;
}

static bool is_near(const layout *l, int64_t a, int64_t b, double radius) {
  const float *p = place_of(l, a), *q = place_of(l, b);
  const double x = (double)p[0] - q[0], y = (double)p[1] - q[1], z = (double)p[2] - q[2];
  return x * x + y * y + z * z <= radius * radius;
}

/* Hides tokens of the channels near the seed's, within `reach` patches of it (negative: all); returns how many are new. */
static int64_t hide_block(const layout *l, int64_t seed, double radius, int64_t reach, uint8_t *masked) {
  const int64_t centre = l->tokens->positions[seed];
  int64_t n = 0;
  for (int64_t c = 0; c < l->n_channels; c++) {
    if (!is_near(l, c, l->channel[seed], radius)) continue;
    for (int64_t k = l->starts[c]; k < l->starts[c + 1]; k++) {
      const int64_t t = l->order[k], away = l->tokens->positions[t] - centre;
      if (masked[t] || (reach >= 0 && (away > reach || away < -reach))) continue;
      masked[t] = 1;
      n++;
    }
  }
  return n;
}

static void draw_blocks(const layout *l, const sn_mask_options *o, int64_t count, sn_random *random, uint8_t *masked,
                        int64_t *hidden) {
  const int64_t n = l->tokens->n;
  int64_t done = 0, n_hidden = 0;
  while (done < count) {
    int64_t seed;
    do seed = (int64_t)sn_random_below(random, (uint64_t)n);
    while (masked[seed]);
    const bool whole = sn_random_uniform(random) < o->channel_share;
    done += whole ? hide_block(l, seed, o->channel_radius_m, -1, masked)
                  : hide_block(l, seed, o->radius_m, o->time_radius, masked);
  }
  for (int64_t i = 0; i < n; i++)
    if (masked[i]) hidden[n_hidden++] = i;
  sn_mask_set_some(hidden, n_hidden, done - count, random, 0, masked);
}

sn_status sn_mask_spacetime(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                            uint8_t *masked, int64_t *n_masked, sn_error *err) {
  layout l = {.tokens = tokens};
  int64_t *hidden = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_mask_by_channel(tokens, &l.order, &l.starts, &l.n_channels, err), done);
  SN_TRY_GOTO(sn_alloc(&l.channel, tokens->n, sizeof *l.channel, "mask channels", err), done);
  SN_TRY_GOTO(sn_alloc(&hidden, tokens->n, sizeof *hidden, "mask members", err), done);
  for (int64_t c = 0; c < l.n_channels; c++)
    for (int64_t k = l.starts[c]; k < l.starts[c + 1]; k++) l.channel[l.order[k]] = (int32_t)c;
  SN_TRY_GOTO(check_places(&l, err), done);
  memset(masked, 0, (size_t)tokens->n);
  *n_masked = sn_mask_count(tokens->n, options);
  draw_blocks(&l, options, *n_masked, random, masked, hidden);
done:
  sn_free(l.order);
  sn_free(l.starts);
  sn_free(l.channel);
  sn_free(hidden);
  return status;
}

sn_status sn_mask_tube(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                       uint8_t *masked, int64_t *n_masked, sn_error *err) {
  sn_mask_options o = *options;
  o.time_radius = -1;
  o.channel_share = 0;
  return sn_mask_spacetime(tokens, &o, random, masked, n_masked, err);
}
