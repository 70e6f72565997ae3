/* Failure of the n-th allocation, for tests: include in one test program, which thereby defines the hook of
 * core/alloc.h.
 *
 *   for (fault_begin(); fault_next();) {
 *     sn_status status = f(..., &err);
 *     fault_check(status);         // SN_OK ends the loop; anything but SN_E_MEMORY fails the test
 *     ... release what f made ...
 *   }
 *
 * Each turn lets the n-th allocation fail, n = 1, 2, ..., until a turn ran without a failure. Leaks are found by
 * AddressSanitizer. Allocations of every thread count, so a loop with threads sees them in any order. */
#ifndef SN_TESTS_ALLOC_FAULT_H
#define SN_TESTS_ALLOC_FAULT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <cmocka.h>

#include "core/alloc.h"

static struct {
  _Atomic int64_t left; /* allocations until the one that fails; 0: the hook is off */
  _Atomic bool hit;
  int64_t turn;
  bool done;
} fault_state;

bool sn_alloc_should_fail(void) {
  if (fault_state.left == 0) return false;
  if (--fault_state.left > 0) return false;
  fault_state.hit = true;
  return true;
}

static inline void fault_off(void) { fault_state.left = 0; }

static inline void fault_begin(void) {
  fault_state.turn = 0;
  fault_state.done = false;
}

static inline bool fault_next(void) {
  if (fault_state.done) {
    fault_off();
    assert_true(fault_state.turn > 1); /* a loop in which nothing was allocated has tested nothing */
    return false;
  }
  fault_state.hit = false;
  fault_state.left = ++fault_state.turn;
  return true;
}

/* Also switches the hook off, so that clean-up and checks behind it are undisturbed. */
static inline void fault_check(sn_status status) {
  const bool hit = fault_state.hit;
  fault_off();
  if (hit) assert_int_equal(status, SN_E_MEMORY);
  else assert_int_equal(status, SN_OK);
  fault_state.done = !hit;
}

#endif
