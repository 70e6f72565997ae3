/* Draws of joint-embedding prediction: what is shown and asked for, how often, and the quirks of the published sampler. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "objectives/masks/blocks.h"

enum { MOST = 256, DRAWS = 3000 };

typedef struct field {
  float coordinates[4 * MOST];
  int32_t channels[MOST], positions[MOST], series[MOST];
  uint8_t state[MOST];
  int64_t asked[16 * MOST], hits_shown[MOST], hits_asked[MOST];
  sn_mask_tokens tokens;
} field;

static field f;

/* A grid of `rows` channels by `columns` times; as an image its rows lie along x, as leads at the origin. */
static void make_field(int64_t rows, int64_t columns, bool image) {
  memset(&f, 0, sizeof f);
  for (int64_t i = 0; i < rows * columns; i++) {
    f.channels[i] = f.series[i] = (int32_t)(i / columns);
    f.positions[i] = (int32_t)(i % columns);
    f.coordinates[4 * i] = image ? 0.01f * (float)(i / columns) : 0;
    f.coordinates[4 * i + 3] = 0.2f * (float)(i % columns);
  }
  f.tokens = (sn_mask_tokens){.n = rows * columns, .coordinates = f.coordinates, .channels = f.channels,
                              .positions = f.positions, .series = f.series};
}

static sn_blocks draw(const sn_block_kind *kind, const sn_block_options *o, uint64_t id) {
  sn_random random = sn_random_at(3, SN_PURPOSE_MASK, 1, id);
  sn_blocks b = {.tokens = f.asked, .state = f.state};
  sn_error err;
  int64_t shown_most, asked_most, blocks_most, shown = 0, in_blocks[MOST] = {0};
  memset(f.state, SN_TOKEN_LEFT, sizeof f.state);
  if (kind->draw(&f.tokens, o, &random, &b, &err) != SN_OK) fail_msg("%s", err.message);
  kind->bounds(o, f.tokens.n, &shown_most, &asked_most, &blocks_most);
  assert_true(b.n_blocks >= 0 && b.n_blocks <= blocks_most && b.offsets[b.n_blocks] <= asked_most);
  for (int64_t k = 0; k < b.n_blocks; k++) {
    assert_true(b.offsets[k + 1] > b.offsets[k]);
    for (int64_t i = b.offsets[k]; i < b.offsets[k + 1]; i++) {
      in_blocks[f.asked[i]]++;
      assert_true(i == b.offsets[k] || f.asked[i] > f.asked[i - 1]);
    }
  }
  for (int64_t i = 0; i < f.tokens.n; i++) {
    assert_int_equal(f.state[i] == SN_TOKEN_ASKED, in_blocks[i] > 0); /* never shown and asked for */
    shown += f.state[i] == SN_TOKEN_SHOWN;
    f.hits_shown[i] += f.state[i] == SN_TOKEN_SHOWN;
    f.hits_asked[i] += f.state[i] == SN_TOKEN_ASKED;
  }
  assert_true(shown <= shown_most && (b.n_blocks == 0) == (shown == 0));
  return b;
}

static const sn_block_options IJEPA = {.n_blocks = 4, .scale_least = 0.15, .scale_most = 0.2, .aspect_least = 0.75,
                                       .aspect_most = 1.5, .context_least = 0.85, .context_most = 1, .least_shown = 10};

/* Published: 13.8 % of a 14 x 14 grid is neither context nor target, ever; the context is the same 13 x 13 each time. */
static void test_published_sampler_never_sees_the_edge(void **state) {
  sn_block_options o = IJEPA;
  int64_t never = 0;
  o.compat = true;
  make_field(14, 14, true);
  for (int d = 0; d < DRAWS; d++) draw(&sn_blocks_multiblock, &o, (uint64_t)d);
  for (int64_t i = 0; i < 196; i++) {
    const bool edge = i / 14 == 13 || i % 14 == 13;
    never += f.hits_shown[i] + f.hits_asked[i] == 0;
    assert_int_equal(f.hits_shown[i] + f.hits_asked[i], edge ? 0 : DRAWS);
  }
  assert_int_equal(never, 27);
}

/* By default every place is shown at times and asked for at times, blocks have the size that was asked for. */
static void test_multiblock(void **state) {
  make_field(14, 14, true);
  double cells = 0, n_blocks = 0;
  for (int d = 0; d < DRAWS; d++) {
    const sn_blocks b = draw(&sn_blocks_multiblock, &IJEPA, (uint64_t)d);
    assert_int_equal(b.n_blocks, 4);
    for (int64_t k = 0; k < 4; k++) {
      const int64_t n = b.offsets[k + 1] - b.offsets[k], first = f.asked[b.offsets[k]], last = f.asked[b.offsets[k + 1] - 1];
      const int64_t h = last / 14 - first / 14 + 1, w = last % 14 - first % 14 + 1;
      assert_int_equal(n, h * w); /* a whole box */
      assert_true(h >= 4 && h <= 8 && w >= 4 && w <= 8);
      cells += (double)n;
      n_blocks++;
    }
  }
  for (int64_t i = 0; i < 196; i++) assert_true(f.hits_shown[i] > 0 && f.hits_asked[i] > 0);
  assert_true(fabs(cells / n_blocks / 196 - 0.175) < 0.01);
}

/* Leads at one place: channel by time. Tubes take whole times. One channel: stretches of time. */
static void test_grids_of_signals(void **state) {
  make_field(6, 20, false);
  for (int d = 0; d < 500; d++) {
    const sn_blocks b = draw(&sn_blocks_tubes, &IJEPA, (uint64_t)d);
    for (int64_t i = 0; i < 120; i++) assert_int_equal(f.state[i], f.state[i / 20 * 20]);
    assert_true(b.n_blocks > 0);
  }
  make_field(1, 50, false);
  for (int d = 0; d < 500; d++) {
    const sn_blocks b = draw(&sn_blocks_multiblock, &IJEPA, (uint64_t)d);
    for (int64_t k = 0; k < b.n_blocks; k++) {
      const int64_t n = b.offsets[k + 1] - b.offsets[k];
      assert_true(n >= 7 && n <= 10 && f.asked[b.offsets[k + 1] - 1] - f.asked[b.offsets[k]] == n - 1);
    }
  }
}

static void test_timeblocks(void **state) {
  const sn_block_options o = {.context_least = 0.2, .context_most = 0.4, .block_patches = 5};
  double share = 0;
  make_field(3, 60, false);
  for (int d = 0; d < DRAWS; d++) {
    draw(&sn_blocks_timeblocks, &o, (uint64_t)d);
    int64_t shown = 0, run = 0;
    for (int64_t t = 0; t <= 60; t++) {
      const bool on = t < 60 && f.state[t] == SN_TOKEN_SHOWN;
      if (!on) assert_true(run == 0 || run >= 5);
      run = on ? run + 1 : 0;
      shown += on;
      for (int64_t c = 1; c < 3 && t < 60; c++) assert_int_equal(f.state[c * 60 + t], f.state[t]); /* shared by leads */
    }
    assert_true(shown >= 12 && shown <= 24);
    share += (double)shown / 60 / DRAWS;
  }
  assert_true(fabs(share - 0.3) < 0.01);
  for (int64_t t = 0; t < 60; t++) assert_true(f.hits_shown[t] > 0 && f.hits_asked[t] > 0);
}

static void test_future(void **state) {
  const sn_block_options o = {.future_least = 0.25, .future_most = 0.5};
  make_field(2, 40, false);
  for (int d = 0; d < 500; d++) {
    draw(&sn_blocks_future, &o, (uint64_t)d);
    int64_t asked = 0;
    for (int64_t t = 0; t < 40; t++) {
      asked += f.state[t] == SN_TOKEN_ASKED;
      assert_true(t == 0 || f.state[t] >= f.state[t - 1]); /* history, then future */
      assert_int_equal(f.state[40 + t], f.state[t]);
    }
    assert_true(asked >= 10 && asked <= 20);
  }
}

static void test_disc(void **state) {
  const sn_block_options o = {.radius = 0.3};
  make_field(12, 4, false);
  for (int64_t i = 0; i < 48; i++) {
    f.coordinates[4 * i] = (float)(0.09 * cos(0.5235987755982988 * (double)f.channels[i]));
    f.coordinates[4 * i + 1] = (float)(0.09 * sin(0.5235987755982988 * (double)f.channels[i]));
  }
  /* On a circle of diameter D, 0.3 D reaches the two neighbours at 0.26 D and not those at 0.5 D. */
  for (int d = 0; d < 300; d++) {
    const sn_blocks b = draw(&sn_blocks_disc, &o, (uint64_t)d);
    assert_int_equal(b.offsets[1], 3 * 4);
  }
  f.coordinates[0] = f.coordinates[1] = 0;
  sn_random random = sn_random_at(3, SN_PURPOSE_MASK, 1, 1);
  sn_blocks b = {.tokens = f.asked, .state = f.state};
  sn_error err;
  assert_int_equal(sn_blocks_disc.draw(&f.tokens, &o, &random, &b, &err), SN_E_ARGUMENT);
  assert_non_null(strstr(err.message, "no position"));
}

/* Samples that cannot be divided take no part; the smallest that can are. */
static void test_small_samples(void **state) {
  static const sn_block_kind *const KINDS[] = {&sn_blocks_multiblock, &sn_blocks_tubes, &sn_blocks_timeblocks, &sn_blocks_future};
  sn_block_options o = IJEPA;
  o.block_patches = 10;
  o.future_least = o.future_most = 0.5;
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++)
    for (int64_t n = 1; n <= 5; n++) {
      make_field(1, n, false);
      for (int d = 0; d < 200; d++) {
        const sn_blocks b = draw(KINDS[k], &o, (uint64_t)d);
        if (n == 1) assert_int_equal(b.n_blocks, 0);
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_published_sampler_never_sees_the_edge), cmocka_unit_test(test_multiblock),
      cmocka_unit_test(test_grids_of_signals), cmocka_unit_test(test_timeblocks), cmocka_unit_test(test_future),
      cmocka_unit_test(test_disc), cmocka_unit_test(test_small_samples)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
