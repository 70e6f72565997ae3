#include "core/alloc.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

__attribute__((weak)) bool sn_alloc_should_fail(void) { return false; }

#ifdef SONDE_ASAN
/* A request that no machine can meet must come back as SN_E_MEMORY under the sanitizer as well, not end the process. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1:detect_stack_use_after_return=0"; }
#endif

bool sn_mul_ok(int64_t a, int64_t b, int64_t *product) {
  return a >= 0 && b >= 0 && !__builtin_mul_overflow(a, b, product);
}

bool sn_add_ok(int64_t a, int64_t b, int64_t *sum) { return a >= 0 && b >= 0 && !__builtin_add_overflow(a, b, sum); }

bool sn_floor_ok(double x, int64_t *out) {
  const double whole = floor(x);
  if (!(fabs(whole) <= 0x1p62)) return false;
  *out = (int64_t)whole;
  return true;
}

static sn_status no_memory(const char *what, int64_t count, int64_t size, sn_error *err) {
  return sn_fail(err, SN_E_MEMORY, "out of memory for %s: %lld x %lld bytes", what, (long long)count, (long long)size);
}

/* Bytes to ask the system for: at least one, so that a result is never NULL by right. */
static bool bytes_ok(int64_t count, int64_t size, int64_t *bytes) {
  if (!sn_mul_ok(count, size, bytes)) return false;
  if (*bytes == 0) *bytes = 1;
  return true;
}

sn_status sn_alloc(void *out, int64_t count, int64_t size, const char *what, sn_error *err) {
  int64_t bytes;
  void *memory = NULL;
  if (bytes_ok(count, size, &bytes) && !sn_alloc_should_fail()) memory = calloc(1, (size_t)bytes);
  if (memory == NULL) return no_memory(what, count, size, err);
  memcpy(out, &memory, sizeof memory);
  return SN_OK;
}

sn_status sn_realloc(void *inout, int64_t new_count, int64_t size, const char *what, sn_error *err) {
  int64_t bytes;
  void *old, *memory = NULL;
  memcpy(&old, inout, sizeof old);
  if (bytes_ok(new_count, size, &bytes) && !sn_alloc_should_fail()) memory = realloc(old, (size_t)bytes);
  if (memory == NULL) return no_memory(what, new_count, size, err);
  memcpy(inout, &memory, sizeof memory);
  return SN_OK;
}

sn_status sn_grow(void *inout, int64_t *capacity, int64_t needed, int64_t size, const char *what, sn_error *err) {
  if (needed <= *capacity) return SN_OK;
  int64_t wanted = *capacity < 8 ? 8 : *capacity;
  while (wanted < needed) {
    if (!sn_mul_ok(wanted, 2, &wanted)) wanted = needed;
  }
  int64_t bytes;
  if (!sn_mul_ok(wanted, size, &bytes)) wanted = needed; /* doubling overflows, the bare need may not */
  SN_TRY(sn_realloc(inout, wanted, size, what, err));
  *capacity = wanted;
  return SN_OK;
}

sn_status sn_alloc_aligned(void *out, int64_t bytes, const char *what, sn_error *err) {
  int64_t padded;
  void *memory = NULL;
  if (sn_add_ok(bytes, ALIGNMENT - 1, &padded)) {
    padded = padded / ALIGNMENT * ALIGNMENT;
    if (padded == 0) padded = ALIGNMENT;
    if (!sn_alloc_should_fail()) memory = aligned_alloc(ALIGNMENT, (size_t)padded);
  }
  if (memory == NULL) return no_memory(what, bytes, 1, err);
  memcpy(out, &memory, sizeof memory);
  return SN_OK;
}

sn_status sn_strdup(char **out, const char *text, const char *what, sn_error *err) {
  size_t n = strlen(text) + 1;
  SN_TRY(sn_alloc(out, (int64_t)n, 1, what, err));
  memcpy(*out, text, n);
  return SN_OK;
}

void sn_free(void *memory) { free(memory); }
