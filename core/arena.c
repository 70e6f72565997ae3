/* HOW IT WORKS
 *
 * The address range is a list of segments in address order, each either handed out or free, and no two free ones
 * side by side.  Free segments are also on a list of their own, in address order too, which first fit walks from the
 * front.  The last segment is the untouched rest; when measuring it never ends.  All of this lives in an array beside
 * the memory, never inside it, so that a measuring arena takes the very same decisions, and a block's own bytes hold
 * nothing but its content.  From a pointer to its segment leads a hash table on the offset.
 *
 * Stack-like use costs O(1): the block freed last borders on the rest.  Otherwise allocation and freeing are linear in
 * the number of holes. */
#include "core/arena.h"

#include <assert.h>
#include <string.h>

#include "core/alloc.h"

#ifdef SONDE_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(at, n) __asan_poison_memory_region(at, (size_t)(n))
#define UNPOISON(at, n) __asan_unpoison_memory_region(at, (size_t)(n))
enum { RED_ZONE = 64 };
#else
#define POISON(at, n) ((void)(at), (void)(n))
#define UNPOISON(at, n) ((void)(at), (void)(n))
enum { RED_ZONE = 0 };
#endif

enum { ALIGNMENT = 64, NONE = -1 };

#define UNBOUNDED (INT64_MAX / 2)
/* Where a measuring arena pretends to be: aligned, never NULL, outside of what a process can own. */
#define PRETENDED_BASE ((uintptr_t)1 << 56)

typedef struct segment {
  int64_t offset, size; /* size with padding and red zone */
  int64_t wanted;       /* bytes asked for */
  int32_t before, after;           /* neighbours by address */
  int32_t free_before, free_after; /* neighbours on the list of free ones */
  bool is_free;
} segment;

struct sn_arena {
  bool measuring;
  uint8_t *base; /* NULL when measuring */
  int64_t capacity, in_use, high_water, n_used;
  segment *segments;
  int64_t n_segments, segment_room; /* slots of the array ever used, and its size */
  int32_t spare;                    /* given back slots, linked through `after` */
  int32_t first, first_free;
  int32_t *table; /* segment of a handed-out offset, or NONE; open addressing with linear probing */
  int64_t table_size;
};

static int64_t limit_of(const sn_arena *arena) { return arena->measuring ? UNBOUNDED : arena->capacity; }

static void fill_nan(const sn_arena *arena, int64_t offset, int64_t n) {
#ifdef SONDE_DEBUG
  if (!arena->measuring) memset(arena->base + offset, 0xFF, (size_t)n);
#endif
}

/* --- the table ------------------------------------------------------------------------------------------------ */

static int64_t home_of(const sn_arena *arena, int64_t offset) {
  return (int64_t)(((uint64_t)offset / ALIGNMENT * 0x9E3779B97F4A7C15u) >> 32) & (arena->table_size - 1);
}

static void table_put(sn_arena *arena, int32_t s) {
  int64_t i = home_of(arena, arena->segments[s].offset);
  while (arena->table[i] != NONE) i = (i + 1) & (arena->table_size - 1);
  arena->table[i] = s;
}

static int64_t table_find(const sn_arena *arena, int64_t offset) {
  if (arena->table_size == 0) return NONE;
  int64_t i = home_of(arena, offset);
  for (; arena->table[i] != NONE; i = (i + 1) & (arena->table_size - 1)) {
    if (arena->segments[arena->table[i]].offset == offset) return i;
  }
  return NONE;
}

/* Closes the gap at place i by moving up what stands behind it and may stand in it (no markers for removed ones). */
static void table_remove(sn_arena *arena, int64_t i) {
  const int64_t mask = arena->table_size - 1;
  for (int64_t j = (i + 1) & mask; arena->table[j] != NONE; j = (j + 1) & mask) {
    int64_t home = home_of(arena, arena->segments[arena->table[j]].offset);
    if (((j - home) & mask) >= ((j - i) & mask)) {
      arena->table[i] = arena->table[j];
      i = j;
    }
  }
  arena->table[i] = NONE;
}

static sn_status table_make_room(sn_arena *arena, sn_error *err) {
  if (2 * (arena->n_used + 1) <= arena->table_size) return SN_OK;
  const int64_t size = arena->table_size == 0 ? 64 : 2 * arena->table_size;
  int32_t *table;
  SN_TRY(sn_alloc(&table, size, sizeof *table, "arena table", err));
  for (int64_t i = 0; i < size; i++) table[i] = NONE;
  sn_free(arena->table);
  arena->table = table;
  arena->table_size = size;
  for (int32_t s = arena->first; s != NONE; s = arena->segments[s].after) {
    if (!arena->segments[s].is_free) table_put(arena, s);
  }
  return SN_OK;
}

/* --- segments ------------------------------------------------------------------------------------------------- */

/* Two slots at least are there: what one allocation takes at most. */
static sn_status segments_make_room(sn_arena *arena, sn_error *err) {
  if (arena->n_segments + 2 > INT32_MAX)
    return sn_fail(err, SN_E_MEMORY, "an arena holds at most 2^31 blocks");
  return sn_grow(&arena->segments, &arena->segment_room, arena->n_segments + 2, sizeof *arena->segments,
                 "arena segments", err);
}

static int32_t take_slot(sn_arena *arena) {
  int32_t s = arena->spare;
  if (s == NONE) return (int32_t)arena->n_segments++;
  arena->spare = arena->segments[s].after;
  return s;
}

static void give_slot(sn_arena *arena, int32_t s) {
  arena->segments[s].after = arena->spare;
  arena->spare = s;
}

static void unlink_free(sn_arena *arena, int32_t s) {
  const segment *g = &arena->segments[s];
  if (g->free_before != NONE) arena->segments[g->free_before].free_after = g->free_after;
  else arena->first_free = g->free_after;
  if (g->free_after != NONE) arena->segments[g->free_after].free_before = g->free_before;
}

static void link_free(sn_arena *arena, int32_t s) {
  segment *g = &arena->segments[s];
  int32_t before = NONE, after = arena->first_free;
  while (after != NONE && arena->segments[after].offset < g->offset) {
    before = after;
    after = arena->segments[after].free_after;
  }
  g->free_before = before;
  g->free_after = after;
  if (before != NONE) arena->segments[before].free_after = s;
  else arena->first_free = s;
  if (after != NONE) arena->segments[after].free_before = s;
}

/* Takes segment s out of the address order; its neighbour must cover its range. */
static void unlink_segment(sn_arena *arena, int32_t s) {
  const segment *g = &arena->segments[s];
  if (g->before != NONE) arena->segments[g->before].after = g->after;
  else arena->first = g->after;
  if (g->after != NONE) arena->segments[g->after].before = g->before;
  give_slot(arena, s);
}

/* One free segment over everything. */
static void start_over(sn_arena *arena) {
  arena->n_segments = 0;
  arena->spare = NONE;
  arena->n_used = 0;
  arena->in_use = 0;
  for (int64_t i = 0; i < arena->table_size; i++) arena->table[i] = NONE;
  int32_t s = take_slot(arena);
  arena->segments[s] = (segment){.offset = 0, .size = limit_of(arena), .before = NONE, .after = NONE,
                                 .free_before = NONE, .free_after = NONE, .is_free = true};
  arena->first = s;
  arena->first_free = s;
  if (arena->base != NULL) POISON(arena->base, arena->capacity);
}

/* --- the interface -------------------------------------------------------------------------------------------- */

sn_status sn_arena_create(bool measuring, sn_arena **out, sn_error *err) {
  sn_arena *arena = NULL;
  sn_status status;
  SN_TRY_GOTO(sn_alloc(&arena, 1, sizeof *arena, "arena", err), fail);
  arena->measuring = measuring;
  SN_TRY_GOTO(segments_make_room(arena, err), fail);
  start_over(arena);
  *out = arena;
  return SN_OK;
fail:
  sn_arena_destroy(arena);
  return status;
}

static void drop_memory(sn_arena *arena) {
  if (arena->base != NULL) UNPOISON(arena->base, arena->capacity);
  sn_free(arena->base);
  arena->base = NULL;
  arena->capacity = 0;
}

void sn_arena_destroy(sn_arena *arena) {
  if (arena == NULL) return;
  drop_memory(arena);
  sn_free(arena->segments);
  sn_free(arena->table);
  sn_free(arena);
}

sn_status sn_arena_reserve(sn_arena *arena, int64_t bytes, sn_error *err) {
  if (arena->n_used > 0)
    return sn_fail(err, SN_E_STATE, "an arena cannot be reserved while %lld blocks are handed out",
                   (long long)arena->n_used);
  if (bytes < 0 || bytes > UNBOUNDED)
    return sn_fail(err, SN_E_ARGUMENT, "an arena of %lld bytes cannot be reserved", (long long)bytes);
  bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (arena->measuring || bytes <= arena->capacity) return SN_OK;
  /* The old memory goes first: it holds nothing, and both at once may not fit. */
  drop_memory(arena);
  sn_status status = sn_alloc_aligned(&arena->base, bytes, "arena", err);
  if (status == SN_OK) arena->capacity = bytes;
  start_over(arena);
  return status;
}

static sn_status no_room(const sn_arena *arena, int64_t bytes, sn_error *err) {
  int64_t largest = 0;
  for (int32_t s = arena->first_free; s != NONE; s = arena->segments[s].free_after) {
    if (arena->segments[s].size > largest) largest = arena->segments[s].size;
  }
  return sn_fail(err, SN_E_MEMORY,
                 "a block of %lld bytes does not fit: the arena has %lld bytes, %lld in use, largest hole %lld",
                 (long long)bytes, (long long)arena->capacity, (long long)arena->in_use, (long long)largest);
}

/* Turns the front of free segment s into a block of `size` bytes; the rest stays free. */
static void carve(sn_arena *arena, int32_t s, int64_t size, int64_t wanted) {
  if (arena->segments[s].size > size) {
    int32_t rest = take_slot(arena);
    segment *g = &arena->segments[s], *r = &arena->segments[rest];
    *r = *g;
    r->offset += size;
    r->size -= size;
    r->before = s;
    g->size = size;
    if (g->after != NONE) arena->segments[g->after].before = rest;
    g->after = rest;
    /* The rest takes the place of s among the free ones. */
    if (r->free_before != NONE) arena->segments[r->free_before].free_after = rest;
    else arena->first_free = rest;
    if (r->free_after != NONE) arena->segments[r->free_after].free_before = rest;
  } else {
    unlink_free(arena, s);
  }
  arena->segments[s].is_free = false;
  arena->segments[s].wanted = wanted;
}

sn_status sn_arena_alloc(sn_arena *arena, int64_t bytes, void **out, sn_error *err) {
  if (bytes < 0) return sn_fail(err, SN_E_ARGUMENT, "a block of %lld bytes cannot be made", (long long)bytes);
  if (bytes > UNBOUNDED / 2) return no_room(arena, bytes, err);
  int64_t size = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  if (size == 0) size = ALIGNMENT; /* so that two empty blocks have two addresses */
  size += RED_ZONE;
  int32_t s = arena->first_free;
  while (s != NONE && arena->segments[s].size < size) s = arena->segments[s].free_after;
  if (s == NONE) return no_room(arena, bytes, err);
  SN_TRY(table_make_room(arena, err));
  SN_TRY(segments_make_room(arena, err));
  carve(arena, s, size, bytes);
  table_put(arena, s);
  arena->n_used++;
  arena->in_use += size;
  const int64_t offset = arena->segments[s].offset;
  if (offset + size > arena->high_water) arena->high_water = offset + size;
  if (arena->measuring) {
    *out = (void *)(PRETENDED_BASE + (uintptr_t)offset);
    return SN_OK;
  }
  UNPOISON(arena->base + offset, bytes);
  fill_nan(arena, offset, bytes);
  *out = arena->base + offset;
  return SN_OK;
}

void sn_arena_free(sn_arena *arena, void *block) {
  if (block == NULL) return;
  const uintptr_t base = arena->measuring ? PRETENDED_BASE : (uintptr_t)arena->base;
  const int64_t place = table_find(arena, (int64_t)((uintptr_t)block - base));
  assert(place != NONE && "sn_arena_free: not a block of this arena");
  if (place == NONE) return;
  int32_t s = arena->table[place];
  table_remove(arena, place);
  segment *g = &arena->segments[s];
  arena->n_used--;
  arena->in_use -= g->size;
  if (!arena->measuring) {
    fill_nan(arena, g->offset, g->wanted);
    POISON(arena->base + g->offset, g->size);
  }
  g->is_free = true;
  const int32_t before = g->before, after = g->after;
  const bool join_before = before != NONE && arena->segments[before].is_free;
  const bool join_after = after != NONE && arena->segments[after].is_free;
  if (join_before) {
    arena->segments[before].size += g->size;
    if (join_after) {
      arena->segments[before].size += arena->segments[after].size;
      unlink_free(arena, after);
      unlink_segment(arena, after);
    }
    unlink_segment(arena, s);
  } else if (join_after) {
    /* The free neighbour grows downwards and so keeps its place among the free ones. */
    arena->segments[after].offset = g->offset;
    arena->segments[after].size += g->size;
    unlink_segment(arena, s);
  } else {
    link_free(arena, s);
  }
}

void sn_arena_reset(sn_arena *arena) {
#ifdef SONDE_DEBUG
  for (int32_t s = arena->first; s != NONE; s = arena->segments[s].after) {
    if (!arena->segments[s].is_free) fill_nan(arena, arena->segments[s].offset, arena->segments[s].wanted);
  }
#endif
  start_over(arena);
}

int64_t sn_arena_in_use(const sn_arena *arena) { return arena->in_use; }
int64_t sn_arena_high_water(const sn_arena *arena) { return arena->high_water; }
int64_t sn_arena_capacity(const sn_arena *arena) { return limit_of(arena); }
bool sn_arena_is_measuring(const sn_arena *arena) { return arena->measuring; }
