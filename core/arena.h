/* Arena: measure, reserve, run.
 *
 * One contiguous block, handed out in pieces aligned to 64 bytes.  Blocks may be freed in any order; the free list
 * is first fit and coalescing, and its decisions depend only on the sequence of calls, so that a dry run
 * ("measure") gives the exact capacity that the real run needs.  Under AddressSanitizer there are poisoned red
 * zones between blocks; in debug builds fresh and freed blocks are filled with NaN bytes (0xFF). */
#ifndef SN_CORE_ARENA_H
#define SN_CORE_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "core/status.h"

typedef struct sn_arena sn_arena;

/* measuring = true: nothing is backed by memory and the capacity has no bound; pointers handed out are distinct, non-NULL
 * and must not be dereferenced. */
SN_MUST_CHECK sn_status sn_arena_create(bool measuring, sn_arena **out, sn_error *err);
void sn_arena_destroy(sn_arena *arena);

/* Makes the capacity at least `bytes` (no effect when measuring). Only legal while nothing is handed out (SN_E_STATE
 * otherwise). After SN_E_MEMORY the capacity is 0. */
SN_MUST_CHECK sn_status sn_arena_reserve(sn_arena *arena, int64_t bytes, sn_error *err);

/* SN_E_MEMORY with needed and available bytes when the block does not fit. bytes >= 0. */
SN_MUST_CHECK sn_status sn_arena_alloc(sn_arena *arena, int64_t bytes, void **out, sn_error *err);
void sn_arena_free(sn_arena *arena, void *block); /* accepts NULL */
void sn_arena_reset(sn_arena *arena);             /* frees every block; capacity and high-water mark stay */

int64_t sn_arena_in_use(const sn_arena *arena); /* bytes handed out, with padding and red zones */
/* The highest end of any block so far: reserving this much is enough for the same sequence of calls, and less is not. */
int64_t sn_arena_high_water(const sn_arena *arena);
int64_t sn_arena_capacity(const sn_arena *arena);
bool sn_arena_is_measuring(const sn_arena *arena);

#endif
