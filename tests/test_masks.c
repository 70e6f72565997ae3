/* Masks over space and time: exact counts, structure, what a draw depends on, refusals. (test_mae.c has the plain ones.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "alloc_fault.h"
#include "objectives/masks/mask.h"

/* A ring of 12 channels, 9 cm across: neighbours 2.3 cm apart, the next ones 4.5 cm. */
enum { CHANNELS = 12, TIMES = 15, N = CHANNELS * TIMES, DRAWS = 600 };

typedef struct scalp {
  float coordinates[4 * N];
  int32_t channels[N], positions[N], series[N];
} scalp;

static sn_mask_tokens make_scalp(scalp *s) {
  for (int i = 0; i < N; i++) {
    const int c = i / TIMES, t = i % TIMES;
    const double angle = 2 * 3.14159265358979323846 * c / CHANNELS;
    s->channels[i] = -1; /* no name in a table: the series tells them apart */
    s->series[i] = c;
    s->positions[i] = t;
    s->coordinates[4 * i] = (float)(0.045 * cos(angle));
    s->coordinates[4 * i + 1] = (float)(0.045 * sin(angle));
    s->coordinates[4 * i + 2] = 0.05f;
    s->coordinates[4 * i + 3] = (float)t;
  }
  return (sn_mask_tokens){.n = N, .coordinates = s->coordinates, .channels = s->channels, .positions = s->positions,
                          .series = s->series};
}

static const sn_mask_options REVE = {.ratio = 0.55, .span = 4, .radius_m = 0.03, .time_radius = 3, .channel_share = 0.1,
                                     .channel_radius_m = 0.04};

static int64_t draw(sn_mask_sampler sampler, const sn_mask_tokens *tokens, const sn_mask_options *o, uint64_t sample,
                    uint8_t *masked) {
  sn_random random = sn_random_at(5, SN_PURPOSE_MASK, 1, sample);
  int64_t n = -1;
  sn_error err;
  if (sampler(tokens, o, &random, masked, &n, &err) != SN_OK) fail_msg("%s", err.message);
  return n;
}

static const char *const NAMES[] = {"random", "contiguous", "time", "channel", "spacetime", "tube"};

/* Every sampler, ratios from one token to all but one: the count is exact, draws repeat and differ, every token gets its
 * turn, nothing but 0 and 1 is written, and what stood in the mask before does not matter. */
static void test_counts_are_exact(void **state) {
  scalp s;
  const sn_mask_tokens tokens = make_scalp(&s);
  const double ratios[] = {0.01, 0.25, 0.55, 0.9, 0.99};
  for (int k = 0; k < 6; k++) {
    const sn_mask_sampler sampler = sn_mask_find(NAMES[k]);
    assert_non_null(sampler);
    for (int r = 0; r < 5; r++) {
      sn_mask_options o = REVE;
      uint8_t masked[N], again[N], first[N];
      int64_t hits[N] = {0};
      bool differ = false;
      o.ratio = ratios[r];
      for (uint64_t d = 0; d < 200; d++) {
        memset(masked, 1, N);
        memset(again, 0, N);
        const int64_t n = draw(sampler, &tokens, &o, d, masked);
        draw(sampler, &tokens, &o, d, again);
        assert_memory_equal(masked, again, N);
        if (d == 0) memcpy(first, masked, N);
        differ = differ || memcmp(first, masked, N) != 0;
        int64_t total = 0;
        for (int i = 0; i < N; i++) {
          assert_true(masked[i] <= 1);
          total += masked[i];
          hits[i] += masked[i];
        }
        assert_int_equal(total, sn_mask_count(N, &o));
        assert_int_equal(n, total);
      }
      assert_true(differ);
      for (int i = 0; i < N && r == 2; i++) assert_true(hits[i] > 0 && (k == 1 || hits[i] < 200)); /* one stretch of 55 % always holds the middle */
    }
  }
  assert_null(sn_mask_find("blocks"));
}

/* Samples of no or one token, and of one channel. */
static void test_small_samples(void **state) {
  scalp s;
  sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  for (int k = 0; k < 6; k++) {
    const sn_mask_sampler sampler = sn_mask_find(NAMES[k]);
    for (int n = 0; n < 4; n++) {
      tokens.n = n;
      assert_int_equal(draw(sampler, &tokens, &REVE, 3, masked), sn_mask_count(n, &REVE));
    }
  }
}

/* Share of channels that are hidden wholly or not at all. */
static double whole_channels(sn_mask_sampler sampler, const sn_mask_options *o) {
  scalp s;
  const sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  int64_t whole = 0;
  for (uint64_t d = 0; d < DRAWS; d++) {
    draw(sampler, &tokens, o, d, masked);
    for (int c = 0; c < CHANNELS; c++) {
      int n = 0;
      for (int t = 0; t < TIMES; t++) n += masked[c * TIMES + t];
      whole += n == 0 || n == TIMES;
    }
  }
  return (double)whole / (DRAWS * CHANNELS);
}

static void test_whole_channels(void **state) {
  sn_mask_options o = REVE;
  /* 99 of 180 tokens: 6 channels whole, one of 9 tokens, 5 visible. */
  assert_true(whole_channels(sn_mask_channel, &o) == 11.0 / 12);
  assert_true(whole_channels(sn_mask_random, &o) < 0.01); /* the measure tells them apart */
  assert_true(whole_channels(sn_mask_spacetime, &o) < 0.6);
  o.ratio = 0.5;
  assert_true(whole_channels(sn_mask_channel, &o) == 1);
  o.scope = SN_MASK_CHANNEL;
  sn_error err;
  assert_int_equal(sn_mask_check(sn_mask_channel, &o, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_mask_check(sn_mask_spacetime, &o, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_mask_check(sn_mask_time, &o, &err), SN_OK);
}

/* Whole times over all channels: at most one time is hidden in part, and hidden times stand in stretches. */
static void test_time_spans(void **state) {
  scalp s;
  const sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  double follows = 0, hidden = 0;
  for (uint64_t d = 0; d < DRAWS; d++) {
    int partial = 0, n[TIMES] = {0};
    draw(sn_mask_time, &tokens, &REVE, d, masked);
    for (int i = 0; i < N; i++) n[i % TIMES] += masked[i];
    for (int t = 0; t < TIMES; t++) partial += n[t] > 0 && n[t] < CHANNELS;
    assert_true(partial <= 1);
    for (int t = 0; t + 1 < TIMES; t++) {
      hidden += n[t] == CHANNELS;
      follows += n[t] == CHANNELS && n[t + 1] > 0;
    }
  }
  assert_true(follows / hidden > 0.7); /* 0.5 for times drawn one by one */
  /* Scope channel: each channel has its own times. */
  sn_mask_options own = REVE;
  own.scope = SN_MASK_CHANNEL;
  draw(sn_mask_time, &tokens, &own, 0, masked);
  for (int c = 0; c < CHANNELS; c++) {
    int n = 0;
    for (int t = 0; t < TIMES; t++) n += masked[c * TIMES + t];
    assert_int_equal(n, 8); /* 8.25 */
  }
  assert_memory_not_equal(masked, masked + TIMES, TIMES);
}

/* P(hidden | a token of the channel k steps around the ring, or t patches later, is hidden). */
static double hidden_given(sn_mask_sampler sampler, const sn_mask_options *o, int k, int later) {
  scalp s;
  const sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  double both = 0, one = 0;
  for (uint64_t d = 0; d < DRAWS; d++) {
    draw(sampler, &tokens, o, d, masked);
    for (int c = 0; c < CHANNELS; c++)
      for (int t = 0; t + later < TIMES; t++) {
        if (!masked[c * TIMES + t]) continue;
        one++;
        both += masked[(c + k) % CHANNELS * TIMES + t + later];
      }
  }
  return both / one;
}

static void test_blocks_have_the_radii_stated(void **state) {
  sn_mask_options o = REVE;
  o.ratio = 0.15; /* few blocks, so that they overlap little */
  o.channel_share = 0;
  const double self = hidden_given(sn_mask_spacetime, &o, 0, 1), near = hidden_given(sn_mask_spacetime, &o, 1, 0);
  const double next = hidden_given(sn_mask_spacetime, &o, 3, 0), late = hidden_given(sn_mask_spacetime, &o, 0, 8);
  if (!(self > 0.6 && near > 0.4 && next < 0.2 && late < 0.2))
    fail_msg("next patch %g, neighbour %g, far channel %g, far time %g", self, near, next, late);
  /* A radius of 5 cm takes the second neighbours in. */
  const double second = hidden_given(sn_mask_spacetime, &o, 2, 0);
  o.radius_m = 0.05;
  assert_true(hidden_given(sn_mask_spacetime, &o, 2, 0) > second + 0.1);
  /* A sampler without structure fails each of these. */
  assert_true(fabs(hidden_given(sn_mask_random, &o, 0, 1) - 0.15) < 0.02);
  assert_true(fabs(hidden_given(sn_mask_random, &o, 1, 0) - 0.15) < 0.02);
}

/* channel_share 1: every draw hides whole channels within 4 cm, three of the ring. */
static void test_channel_share(void **state) {
  sn_mask_options o = REVE;
  const double none = whole_channels(sn_mask_spacetime, &(sn_mask_options){.ratio = 0.2, .radius_m = 0.03, .time_radius = 3});
  o.ratio = 0.2;
  o.channel_share = 1;
  assert_true(hidden_given(sn_mask_spacetime, &o, 0, 12) > 0.6); /* over the whole length */
  assert_true(hidden_given(sn_mask_tube, &o, 0, 12) > 0.6);
  o.channel_share = 0;
  assert_true(hidden_given(sn_mask_spacetime, &o, 0, 12) < 0.3);
  assert_true(none < 0.9);
}

/* A trimmed token is any hidden one: over many draws the trimmed ones of a full mask are everywhere. */
static void test_trimming_is_uniform(void **state) {
  scalp s;
  const sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  int64_t visible[N] = {0};
  enum { MANY = 4000 };
  /* One draw of radius 1 m and all times hides everything; 18 of 180 are made visible again. */
  const sn_mask_options o = {.ratio = 0.9, .radius_m = 1, .time_radius = 100};
  for (uint64_t d = 0; d < MANY; d++) {
    draw(sn_mask_spacetime, &tokens, &o, d, masked);
    for (int i = 0; i < N; i++) visible[i] += !masked[i];
  }
  for (int i = 0; i < N; i++) assert_true(fabs((double)visible[i] / MANY - 0.1) < 5 * sqrt(0.09 / MANY));
}

static void test_missing_positions_are_refused(void **state) {
  scalp s;
  sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  int64_t n;
  sn_error err;
  const float bad[2] = {0, NAN};
  for (int k = 0; k < 2; k++) {
    tokens = make_scalp(&s);
    for (int t = 0; t < TIMES; t++)
      for (int j = 0; j < 3; j++) s.coordinates[4 * (7 * TIMES + t) + j] = bad[k];
    sn_random random = sn_random_at(5, SN_PURPOSE_MASK, 1, 1);
    assert_int_equal(sn_mask_spacetime(&tokens, &REVE, &random, masked, &n, &err), SN_E_ARGUMENT);
    assert_non_null(strstr(err.message, "channel 7 of 12"));
    assert_int_equal(sn_mask_tube(&tokens, &REVE, &random, masked, &n, &err), SN_E_ARGUMENT);
    assert_int_equal(sn_mask_channel(&tokens, &REVE, &random, masked, &n, &err), SN_OK);
  }
}

static void test_memory(void **state) {
  scalp s;
  const sn_mask_tokens tokens = make_scalp(&s);
  uint8_t masked[N];
  int64_t n;
  sn_error err;
  for (int k = 0; k < 6; k++)
    for (fault_begin(); fault_next();) {
      sn_random random = sn_random_at(5, SN_PURPOSE_MASK, 1, 1);
      fault_check(sn_mask_find(NAMES[k])(&tokens, &REVE, &random, masked, &n, &err));
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_counts_are_exact),   cmocka_unit_test(test_small_samples),
      cmocka_unit_test(test_whole_channels),     cmocka_unit_test(test_time_spans),
      cmocka_unit_test(test_blocks_have_the_radii_stated), cmocka_unit_test(test_channel_share),
      cmocka_unit_test(test_trimming_is_uniform), cmocka_unit_test(test_missing_positions_are_refused),
      cmocka_unit_test(test_memory)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
