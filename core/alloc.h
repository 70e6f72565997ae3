/* Heap allocation with checked sizes, and the one hook that lets a test make the n-th allocation fail. */
#ifndef SN_CORE_ALLOC_H
#define SN_CORE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

/* a*b and a+b of non-negative sizes; false when the result does not fit in int64_t or an operand is negative. */
bool sn_mul_ok(int64_t a, int64_t b, int64_t *product);
bool sn_add_ok(int64_t a, int64_t b, int64_t *sum);
/* *out = floor(x); false, and *out untouched, when x is NaN or that is beyond 2^62: a plain conversion would be undefined. */
bool sn_floor_ok(double x, int64_t *out);

/* *out = zero-filled memory for count * size bytes (never NULL on SN_OK: a count of 0 gives one byte).
 * SN_E_MEMORY on overflow or exhaustion, naming `what`.  Free with sn_free. */
SN_MUST_CHECK sn_status sn_alloc(void *out, int64_t count, int64_t size, const char *what, sn_error *err);

/* Grows *inout (may hold NULL) to hold new_count elements; contents kept, the new tail is NOT cleared.
 * On failure *inout is untouched. What is grown must not be 64-byte aligned memory: the alignment is lost. */
SN_MUST_CHECK sn_status sn_realloc(void *inout, int64_t new_count, int64_t size, const char *what, sn_error *err);

/* Amortised growth for dynamic arrays: makes *capacity >= needed (doubling). inout as in sn_realloc. */
SN_MUST_CHECK sn_status sn_grow(void *inout, int64_t *capacity, int64_t needed, int64_t size, const char *what,
                                sn_error *err);

/* 64-byte aligned, NOT cleared; free with sn_free as well. */
SN_MUST_CHECK sn_status sn_alloc_aligned(void *out, int64_t bytes, const char *what, sn_error *err);

SN_MUST_CHECK sn_status sn_strdup(char **out, const char *text, const char *what, sn_error *err);

void sn_free(void *memory); /* accepts NULL */

/* Test hook: defined weak in the library (returns false); a test defines it strong to make allocations fail. */
bool sn_alloc_should_fail(void);

#endif
