#include "core/alloc.h"
#include "objectives/masks/mask.h"

/* Tokens of one group by their time: those at time t are list[starts[t] .. starts[t + 1]). */
typedef struct by_time {
  int64_t *list, *starts;
  int64_t first, span; /* times first .. first + span - 1 */
} by_time;

static void time_range(const sn_mask_tokens *tokens, const int64_t *members, int64_t n, by_time *t) {
  int64_t most = 0;
  for (int64_t k = 0; k < n; k++) {
    const int64_t p = tokens->positions[members[k]];
    if (k == 0 || p < t->first) t->first = p;
    if (k == 0 || p > most) most = p;
  }
  t->span = n > 0 ? most - t->first + 1 : 0;
}

static void sort_by_time(const sn_mask_tokens *tokens, const int64_t *members, int64_t n, by_time *t) {
  for (int64_t p = 0; p < t->span + 2; p++) t->starts[p] = 0;
  for (int64_t k = 0; k < n; k++) t->starts[tokens->positions[members[k]] - t->first + 2]++;
  for (int64_t p = 0; p < t->span; p++) t->starts[p + 1] += t->starts[p];
  for (int64_t k = 0; k < n; k++) t->list[t->starts[tokens->positions[members[k]] - t->first + 1]++] = members[k];
}

/* Hides what is still visible at one time, at most `missing`; returns how many that were. */
static int64_t hide_time(by_time *t, int64_t time, int64_t missing, sn_random *random, uint8_t *masked, int64_t *room) {
  int64_t n = 0;
  for (int64_t k = t->starts[time]; k < t->starts[time + 1]; k++)
    if (!masked[t->list[k]]) room[n++] = t->list[k];
  const int64_t take = n < missing ? n : missing;
  sn_mask_set_some(room, n, take, random, 1, masked);
  return take;
}

/* members (n) all visible; exactly `count` of them are hidden. */
static void mask_stretches(const sn_mask_tokens *tokens, const int64_t *members, int64_t n, int64_t count,
                           int64_t length, sn_random *random, uint8_t *masked, by_time *t, int64_t *room) {
  sort_by_time(tokens, members, n, t);
  for (int64_t missing = count; missing > 0;) {
    int64_t seed;
    do seed = members[sn_random_below(random, (uint64_t)n)];
    while (masked[seed]);
    const int64_t centre = tokens->positions[seed] - t->first, begin = centre - (length - 1) / 2;
    for (int64_t time = begin < 0 ? 0 : begin; time < begin + length && time < t->span && missing > 0; time++)
      missing -= hide_time(t, time, missing, random, masked, room);
  }
}

sn_status sn_mask_time(const sn_mask_tokens *tokens, const sn_mask_options *options, sn_random *random,
                       uint8_t *masked, int64_t *n_masked, sn_error *err) {
  int32_t *groups = NULL;
  int64_t *members = NULL, *room = NULL, n_groups = 0;
  by_time whole = {0};
  sn_status status;
  if (options->span < 1)
    return sn_fail(err, SN_E_ARGUMENT, "mask time: a span of %lld patches", (long long)options->span);
  SN_TRY_GOTO(sn_alloc(&groups, tokens->n, sizeof *groups, "mask groups", err), done);
  SN_TRY_GOTO(sn_alloc(&members, tokens->n, sizeof *members, "mask members", err), done);
  SN_TRY_GOTO(sn_alloc(&room, tokens->n, sizeof *room, "mask members", err), done);
  SN_TRY_GOTO(sn_alloc(&whole.list, tokens->n, sizeof *whole.list, "mask times", err), done);
  for (int64_t i = 0; i < tokens->n; i++) members[i] = i;
  time_range(tokens, members, tokens->n, &whole);
  SN_TRY_GOTO(sn_alloc(&whole.starts, whole.span + 2, sizeof *whole.starts, "mask times", err), done);
  sn_mask_groups(tokens, options->scope, groups, &n_groups);
  *n_masked = 0;
  for (int64_t g = 0; g < n_groups; g++) {
    const int64_t n = sn_mask_take_group(tokens, groups, g, members, masked);
    const int64_t count = sn_mask_count(n, options);
    time_range(tokens, members, n, &whole);
    mask_stretches(tokens, members, n, count, options->span, random, masked, &whole, room);
    *n_masked += count;
  }
done:
  sn_free(groups);
  sn_free(members);
  sn_free(room);
  sn_free(whole.list);
  sn_free(whole.starts);
  return status;
}
