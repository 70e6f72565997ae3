/* A record in memory, for tests of the WFDB reader. */
#ifndef SN_TESTS_WFDB_CASE_H
#define SN_TESTS_WFDB_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/stream.h"
#include "modalities/recording.h"

extern const sn_format sn_format_wfdb;

typedef struct wfdb_case {
  sn_folder *folder;
  sn_recording *recording; /* NULL unless status is SN_OK */
  sn_status status;
  sn_error err;
} wfdb_case;

/* Files by name; the first is the header that is opened. Close with case_close. */
static inline wfdb_case case_open_files(int64_t n, const char *const *names, const void *const *data,
                                        const int64_t *sizes, bool tolerant) {
  wfdb_case c = {0};
  const sn_open_options options = {.tolerant = tolerant};
  c.status = sn_folder_open_memory(n, names, data, sizes, &c.folder, &c.err);
  if (c.status == SN_OK) c.status = sn_format_wfdb.open(c.folder, names[0], &options, &c.recording, &c.err);
  return c;
}

static inline wfdb_case case_open(const char *header, const void *data, int64_t n, bool tolerant) {
  const char *const names[2] = {"r.hea", "r.dat"};
  const void *const contents[2] = {header, data};
  const int64_t sizes[2] = {(int64_t)strlen(header), n};
  return case_open_files(2, names, contents, sizes, tolerant);
}

static inline void case_close(wfdb_case *c) {
  sn_recording_destroy(c->recording);
  sn_folder_close(c->folder);
  memset(c, 0, sizeof *c);
}

static inline void case_must(const wfdb_case *c) {
  if (c->status != SN_OK) fail_msg("%s: %s", sn_status_name(c->status), c->err.message);
}

/* The opening must have failed with this status and a message that holds `word`. */
static inline void case_must_fail(wfdb_case *c, sn_status status, const char *word) {
  if (c->status != status || strstr(c->err.message, word) == NULL)
    fail_msg("expected %s with '%s', found %s: %s", sn_status_name(status), word, sn_status_name(c->status),
             c->err.message);
  case_close(c);
}

static inline bool case_warned(const wfdb_case *c, const char *code, int64_t count) {
  for (int64_t i = 0; i < c->recording->n_warnings; i++)
    if (strcmp(c->recording->warnings[i].code, code) == 0) return count == 0 || c->recording->warnings[i].count == count;
  return false;
}

static inline void case_stored(const wfdb_case *c, int64_t channel, int64_t segment, int64_t first, int64_t n,
                               const int32_t *expected) {
  int32_t *stored;
  sn_error err;
  assert_int_equal(sn_alloc(&stored, n, sizeof *stored, "samples", NULL), SN_OK);
  if (sn_recording_read_stored(c->recording, channel, segment, first, n, stored, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < n; i++)
    if (stored[i] != expected[i])
      fail_msg("channel %lld sample %lld: %d, expected %d", (long long)channel, (long long)(first + i), stored[i],
               expected[i]);
  sn_free(stored);
}

#endif
