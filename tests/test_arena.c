/* The arena against a plain model of first fit, measured against real, and what guards its blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/philox.h"
#include "tests/alloc_fault.h"

#ifdef SONDE_ASAN
#include <sanitizer/asan_interface.h>
enum { RED_ZONE = 64 };
#else
enum { RED_ZONE = 0 };
#endif

enum { MOST = 300 };

static sn_arena *make(bool measuring, int64_t bytes) {
  sn_arena *a;
  assert_int_equal(sn_arena_create(measuring, &a, NULL), SN_OK);
  assert_int_equal(sn_arena_reserve(a, bytes, NULL), SN_OK);
  return a;
}

static char *take(sn_arena *a, int64_t bytes) {
  void *block;
  sn_error err;
  sn_status status = sn_arena_alloc(a, bytes, &block, &err);
  if (status != SN_OK) fail_msg("%s", err.message);
  return block;
}

static int64_t rounded(int64_t bytes) { return (bytes < 1 ? 64 : (bytes + 63) / 64 * 64) + RED_ZONE; }

/* First fit, said as simply as can be: the lowest place that meets no block in use. */
typedef struct model {
  int64_t start[MOST], size[MOST]; /* size 0: not in use */
} model;

static int64_t model_place(const model *m, int64_t size) {
  int64_t at = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < MOST; i++) {
      if (m->size[i] > 0 && at < m->start[i] + m->size[i] && m->start[i] < at + size) {
        at = m->start[i] + m->size[i];
        moved = true;
      }
    }
  }
  return at;
}

static int64_t pick_size(sn_random *r) {
  const uint64_t kind = sn_random_below(r, 10);
  return kind == 0 ? 0 : (int64_t)sn_random_below(r, kind < 8 ? 1000 : 20000);
}

/* The same random calls on a measuring arena, a real one of exactly the measured size, and the model. */
static void test_against_model(void **state) {
  for (uint64_t trial = 0; trial < 20; trial++) {
    int64_t high = 0;
    for (int pass = 0; pass < 2; pass++) {
      sn_random r = sn_random_at(1, SN_PURPOSE_TEST, 0, trial);
      sn_arena *a = make(pass == 0, high);
      static model m;
      char *blocks[MOST], *base = NULL;
      int64_t wanted[MOST], in_use = 0;
      memset(&m, 0, sizeof m);
      for (int step = 0; step < 1500; step++) {
        const int i = (int)sn_random_below(&r, trial % 2 ? 20 : MOST);
        if (m.size[i] > 0) {
          if (pass == 1) {
            for (int64_t k = 0; k < wanted[i]; k++) assert_int_equal(blocks[i][k], (char)i);
          }
          sn_arena_free(a, blocks[i]);
          in_use -= m.size[i];
          m.size[i] = 0;
          continue;
        }
        wanted[i] = pick_size(&r);
        const int64_t place = model_place(&m, rounded(wanted[i]));
        blocks[i] = take(a, wanted[i]);
        if (base == NULL) base = blocks[i];
        assert_int_equal(blocks[i] - base, place);
        assert_int_equal((uintptr_t)blocks[i] % 64, 0);
        m.start[i] = place;
        m.size[i] = rounded(wanted[i]);
        in_use += m.size[i];
        assert_int_equal(sn_arena_in_use(a), in_use);
        if (pass == 1) memset(blocks[i], i, (size_t)wanted[i]);
      }
      if (pass == 0) high = sn_arena_high_water(a);
      else assert_int_equal(sn_arena_high_water(a), high);
      if (pass == 1) assert_int_equal(sn_arena_capacity(a), high);
      sn_arena_destroy(a);
    }
  }
}

/* Less than measured, by one step of the alignment, is not enough. */
static void test_high_water_is_exact(void **state) {
  for (int pass = 0; pass < 2; pass++) {
    sn_arena *a = make(false, pass == 0 ? 3 * rounded(100) : 3 * rounded(100) - 64);
    void *block;
    sn_error err;
    char *first = take(a, 100);
    take(a, 100);
    sn_arena_free(a, first);
    take(a, 100);
    sn_status status = sn_arena_alloc(a, 100, &block, &err);
    assert_int_equal(status, pass == 0 ? SN_OK : SN_E_MEMORY);
    if (pass == 1) {
      assert_non_null(strstr(err.message, "100 bytes does not fit"));
      assert_int_equal(sn_arena_in_use(a), 2 * rounded(100)); /* nothing happened */
    }
    sn_arena_destroy(a);
  }
}

static void test_reserve_and_reset(void **state) {
  sn_error err;
  void *block;
  sn_arena *a;
  assert_int_equal(sn_arena_create(false, &a, NULL), SN_OK);
  assert_int_equal(sn_arena_capacity(a), 0);
  assert_int_equal(sn_arena_alloc(a, 1, &block, &err), SN_E_MEMORY);
  assert_int_equal(sn_arena_reserve(a, 1000, &err), SN_OK);
  assert_int_equal(sn_arena_capacity(a), 1024);
  take(a, 10);
  assert_int_equal(sn_arena_reserve(a, 2000, &err), SN_E_STATE);
  sn_arena_reset(a);
  assert_int_equal(sn_arena_in_use(a), 0);
  assert_int_equal(sn_arena_high_water(a), rounded(10));
  assert_int_equal(sn_arena_capacity(a), 1024);
  assert_int_equal(sn_arena_reserve(a, 100, &err), SN_OK); /* at least: nothing to do */
  assert_int_equal(sn_arena_capacity(a), 1024);
  assert_int_equal(sn_arena_reserve(a, 100000, &err), SN_OK);
  assert_int_equal(sn_arena_capacity(a), 100032);
  memset(take(a, 99000), 1, 99000);
  sn_arena_free(a, NULL);
  sn_arena_reset(a);
  assert_int_equal(sn_arena_reserve(a, -1, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_arena_alloc(a, -1, &block, &err), SN_E_ARGUMENT);
  assert_int_equal(sn_arena_alloc(a, INT64_MAX, &block, &err), SN_E_MEMORY);
  sn_arena_destroy(a);
  sn_arena_destroy(NULL);
}

static void test_measuring_has_no_bound(void **state) {
  sn_arena *a = make(true, 0);
  assert_true(sn_arena_is_measuring(a));
  char *x = take(a, INT64_C(1) << 45), *y = take(a, 5);
  assert_non_null(x);
  assert_true(y - x == (INT64_C(1) << 45) + RED_ZONE);
  sn_arena_free(a, x);
  sn_arena_free(a, y);
  assert_int_equal(sn_arena_in_use(a), 0);
  assert_true(sn_arena_high_water(a) == (INT64_C(1) << 45) + RED_ZONE + rounded(5));
  sn_arena_destroy(a);
}

/* A training step's pattern: tens of thousands of blocks taken, then freed backwards, each way with short-lived ones. */
static void test_stack_pattern(void **state) {
  enum { N = 30000 };
  sn_arena *a = make(true, 0);
  char **blocks = malloc(N * sizeof *blocks);
  int64_t high = 0;
  for (int step = 0; step < 3; step++) {
    for (int i = 0; i < N; i++) {
      blocks[i] = take(a, 1000 + i % 7);
      sn_arena_free(a, take(a, 5000));
    }
    for (int i = N - 1; i >= 0; i--) {
      sn_arena_free(a, take(a, 3000));
      sn_arena_free(a, blocks[i]);
    }
    if (step == 0) high = sn_arena_high_water(a);
    assert_int_equal(sn_arena_high_water(a), high);
    assert_int_equal(sn_arena_in_use(a), 0);
    sn_arena_reset(a);
  }
  free(blocks);
  sn_arena_destroy(a);
}

static void test_guards(void **state) {
  sn_arena *a = make(false, 10000);
  unsigned char *x = (unsigned char *)take(a, 100);
#ifdef SONDE_DEBUG
  for (int i = 0; i < 100; i++) assert_int_equal(x[i], 0xFF);
#endif
  memset(x, 1, 100);
#ifdef SONDE_ASAN
  unsigned char *y = (unsigned char *)take(a, 7);
  assert_null(__asan_region_is_poisoned(x, 100));
  for (int64_t i = 100; i < rounded(100); i++) assert_true(__asan_address_is_poisoned(x + i));
  assert_true(__asan_address_is_poisoned(y + 7));
  sn_arena_free(a, x);
  assert_true(__asan_address_is_poisoned(x));
  assert_false(__asan_address_is_poisoned(y));
  sn_arena_reset(a);
  assert_true(__asan_address_is_poisoned(y));
#endif
#if !defined SONDE_DEBUG && !defined SONDE_ASAN
  print_message("skipped: this build has neither NaN filling nor red zones\n");
  sn_arena_destroy(a);
  skip();
#endif
  sn_arena_destroy(a);
}

static sn_status use_arena(sn_error *err) {
  sn_arena *a = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_arena_create(false, &a, err), done);
  SN_TRY_GOTO(sn_arena_reserve(a, 1 << 20, err), done);
  for (int i = 0; i < 200; i++) {
    void *block;
    SN_TRY_GOTO(sn_arena_alloc(a, 100, &block, err), done);
  }
  sn_arena_reset(a);
  SN_TRY_GOTO(sn_arena_reserve(a, 2 << 20, err), done);
done:
  sn_arena_destroy(a);
  return status;
}

static void test_allocation_failures(void **state) {
  for (fault_begin(); fault_next();) {
    sn_error err;
    fault_check(use_arena(&err));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_against_model),          cmocka_unit_test(test_high_water_is_exact),
      cmocka_unit_test(test_reserve_and_reset),      cmocka_unit_test(test_measuring_has_no_bound),
      cmocka_unit_test(test_stack_pattern),          cmocka_unit_test(test_guards),
      cmocka_unit_test(test_allocation_failures),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
