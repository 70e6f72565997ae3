/* Philox against the known answers of its authors, the identity of streams against a second implementation
 * (golden/make_philox.py), and the properties that masks, order and splits rest on. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/philox.h"
#include "tests/golden/philox_values.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* philox4x32, 10 rounds, in kat_vectors of Random123. */
static void test_known_answers(void **state) {
  static const struct {
    uint32_t counter[4], key[2], result[4];
  } ANSWERS[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (size_t i = 0; i < LENGTH(ANSWERS); i++) {
    sn_philox_block b = sn_philox4x32(ANSWERS[i].counter, ANSWERS[i].key);
    assert_memory_equal(b.word, ANSWERS[i].result, sizeof b.word);
  }
}

/* These values are part of the checkpoint contract: a change here breaks resume and must not happen by the way. */
static void test_identity(void **state) {
  for (size_t i = 0; i < LENGTH(STREAMS); i++) {
    sn_random r = sn_random_at(STREAMS[i].seed, (sn_purpose)STREAMS[i].purpose, STREAMS[i].epoch, STREAMS[i].sample);
    for (size_t k = 0; k < LENGTH(STREAMS[i].words); k++) assert_int_equal(sn_random_u32(&r), STREAMS[i].words[k]);
    sn_random f = sn_random_fork(&r, 0x100000005u); /* of the identity: that six words are gone has no effect */
    for (size_t k = 0; k < LENGTH(STREAMS[i].forked); k++) assert_int_equal(sn_random_u32(&f), STREAMS[i].forked[k]);
  }
  for (size_t i = 0; i < LENGTH(IMAGES); i++)
    assert_true(sn_bijection(IMAGES[i].seed, SN_PURPOSE_ORDER, IMAGES[i].epoch, IMAGES[i].n, IMAGES[i].i) ==
                IMAGES[i].image);
  assert_true(sn_hash64("abc", 3) == HASH_OF_ABC);
}

static int compare_u64(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static void assert_distinct(uint64_t *values, int64_t n) {
  qsort(values, (size_t)n, sizeof *values, compare_u64);
  for (int64_t i = 1; i < n; i++) assert_true(values[i] != values[i - 1]);
}

/* First draws of streams that differ in one part of their identity, or in two exchanged ones: all different. */
static void test_streams_differ(void **state) {
  uint64_t firsts[8 * 8 * 8 * 8 + 4096];
  int64_t n = 0;
  for (uint64_t i = 0; i < 8 * 8 * 8 * 8; i++) {
    sn_random r = sn_random_at(i & 7, (sn_purpose)(1 + (i >> 3 & 7)), i >> 6 & 7, i >> 9 & 7);
    firsts[n++] = sn_random_u64(&r);
  }
  sn_random parent = sn_random_at(1, SN_PURPOSE_DROPOUT, 2, 3);
  for (uint64_t i = 0; i < 64; i++) {
    sn_random child = sn_random_fork(&parent, i);
    firsts[n++] = sn_random_u64(&child);
    for (uint64_t k = 0; k < 63; k++) {
      sn_random grandchild = sn_random_fork(&child, k);
      firsts[n++] = sn_random_u64(&grandchild);
    }
  }
  assert_int_equal(n, LENGTH(firsts));
  assert_distinct(firsts, n);
}

/* A copy goes its own way from where it was made; the block counter carries into its upper word. */
static void test_position(void **state) {
  sn_random a = sn_random_at(1, SN_PURPOSE_TEST, 0, 0);
  for (int i = 0; i < 5; i++) sn_random_u32(&a);
  sn_random b = a;
  uint64_t x = sn_random_u64(&a);
  assert_true(sn_random_u64(&b) == x);
  a.counter[0] = 0xffffffffu;
  a.used = 4;
  sn_random_u32(&a);
  assert_int_equal(a.counter[0], 0);
  assert_int_equal(a.counter[1], 1);
}

static void test_uniform_and_normal(void **state) {
  enum { N = 200000 };
  sn_random r = sn_random_at(11, SN_PURPOSE_TEST, 0, 0);
  double sum = 0, square = 0, least = 1, most = 0;
  for (int i = 0; i < N; i++) {
    double u = sn_random_uniform(&r);
    sum += u;
    square += u * u;
    if (u < least) least = u;
    if (u > most) most = u;
  }
  assert_true(least >= 0.0 && least < 1e-4 && most < 1.0 && most > 1 - 1e-4);
  assert_true(fabs(sum / N - 0.5) < 5 * sqrt(1.0 / 12 / N)); /* five standard errors */
  assert_true(fabs(square / N - 1.0 / 3) < 5 * sqrt(4.0 / 45 / N));
  double moments[5] = {0};
  for (int i = 0; i < N; i++) {
    double x = sn_random_normal(&r), power = 1;
    assert_true(isfinite(x));
    for (int k = 0; k < 5; k++, power *= x) moments[k] += power / N;
  }
  assert_true(fabs(moments[1]) < 5 * sqrt(1.0 / N));
  assert_true(fabs(moments[2] - 1) < 5 * sqrt(2.0 / N));
  assert_true(fabs(moments[3]) < 5 * sqrt(15.0 / N));
  assert_true(fabs(moments[4] - 3) < 5 * sqrt(96.0 / N));
}

static double chi_square(const int64_t *counts, int64_t n, double expected) {
  double sum = 0;
  for (int64_t i = 0; i < n; i++) sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  return sum;
}

static void test_below(void **state) {
  sn_random r = sn_random_at(12, SN_PURPOSE_TEST, 0, 0);
  int64_t counts[7] = {0};
  for (int i = 0; i < 70000; i++) counts[sn_random_below(&r, 7)]++;
  assert_true(chi_square(counts, 7, 10000) < 27.9); /* 6 degrees of freedom, p = 1e-4 */
  for (int i = 0; i < 100; i++) assert_true(sn_random_below(&r, 1) == 0);
  /* 3/4 of the range: a plain remainder would give the lower third twice as often as the rest. */
  const uint64_t bound = UINT64_C(3) << 62;
  int64_t thirds[3] = {0};
  for (int i = 0; i < 30000; i++) {
    uint64_t x = sn_random_below(&r, bound);
    assert_true(x < bound);
    thirds[x / (bound / 3)]++;
  }
  assert_true(chi_square(thirds, 3, 10000) < 18.5);
}

static void assert_permutation(const int64_t *order, int64_t n) {
  char *seen = calloc((size_t)n + 1, 1);
  for (int64_t i = 0; i < n; i++) {
    assert_true(order[i] >= 0 && order[i] < n);
    assert_false(seen[order[i]]);
    seen[order[i]] = 1;
  }
  free(seen);
}

/* The six orders of three things, as a number. */
static int64_t order_number(const int64_t *o) { return o[0] * 2 + (o[1] > o[2]); }

static void test_permutation(void **state) {
  int64_t order[1000], counts[6] = {0};
  sn_random r = sn_random_at(13, SN_PURPOSE_TEST, 0, 0);
  for (int64_t n = 0; n < 1000; n = n * 3 + 1) {
    sn_random_permutation(&r, n, order);
    assert_permutation(order, n);
  }
  for (int i = 0; i < 6000; i++) {
    sn_random_permutation(&r, 3, order);
    counts[order_number(order)]++;
  }
  assert_true(chi_square(counts, 6, 1000) < 25.7);
}

static void test_bijection(void **state) {
  static const int64_t SIZES[] = {1, 2, 3, 5, 64, 1000, 4097};
  int64_t *order = malloc(4097 * sizeof *order), *other = malloc(4097 * sizeof *other);
  for (size_t s = 0; s < LENGTH(SIZES); s++) {
    const int64_t n = SIZES[s];
    for (uint64_t epoch = 0; epoch < 8; epoch++) {
      for (int64_t i = 0; i < n; i++)
        order[i] = (int64_t)sn_bijection(5, SN_PURPOSE_ORDER, epoch, (uint64_t)n, (uint64_t)i);
      assert_permutation(order, n);
      if (epoch > 0 && n >= 64) {
        int64_t same = 0;
        for (int64_t i = 0; i < n; i++) same += order[i] == other[i];
        assert_true(same < 12); /* one on average */
      }
      memcpy(other, order, (size_t)n * sizeof *order);
    }
  }
  free(order);
  free(other);
}

/* Over many epochs every order of three comes about equally often, and every image of one of 64. */
static void test_bijection_is_even(void **state) {
  int64_t counts[6] = {0}, images[64] = {0}, order[3];
  for (uint64_t epoch = 0; epoch < 6400; epoch++) {
    for (uint64_t i = 0; i < 3; i++) order[i] = (int64_t)sn_bijection(8, SN_PURPOSE_ORDER, epoch, 3, i);
    counts[order_number(order)]++;
    images[sn_bijection(8, SN_PURPOSE_ORDER, epoch, 64, 17)]++;
  }
  assert_true(chi_square(counts, 6, 6400.0 / 6) < 25.7);
  assert_true(chi_square(images, 64, 100) < 113);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_known_answers), cmocka_unit_test(test_identity),
      cmocka_unit_test(test_streams_differ), cmocka_unit_test(test_position),
      cmocka_unit_test(test_uniform_and_normal), cmocka_unit_test(test_below),
      cmocka_unit_test(test_permutation), cmocka_unit_test(test_bijection),
      cmocka_unit_test(test_bijection_is_even),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
