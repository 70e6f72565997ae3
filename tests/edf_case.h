/* EDF files made in memory, for tests of the reader. */
#ifndef SN_TESTS_EDF_CASE_H
#define SN_TESTS_EDF_CASE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/stream.h"
#include "modalities/recording.h"

extern const sn_format sn_format_edf;

typedef struct edf_case_signal {
  const char *label, *unit, *physical_min, *physical_max, *digital_min, *digital_max;
  int n; /* samples per record */
} edf_case_signal;

enum { EDF_CASE_ROOM = 1 << 16 };

/* A file as it grows. */
typedef struct edf_bytes {
  uint8_t data[EDF_CASE_ROOM];
  int64_t n;
  int width;
} edf_bytes;

static inline void edf_field(edf_bytes *b, int width, const char *text) {
  size_t n = strlen(text);
  assert_true(n <= (size_t)width && b->n + width <= EDF_CASE_ROOM);
  memset(b->data + b->n, ' ', (size_t)width);
  memcpy(b->data + b->n, text, n);
  b->n += width;
}

/* Changes bytes of the header after it was made. */
static inline void edf_patch(edf_bytes *b, int64_t at, int width, const char *text) {
  int64_t n = b->n;
  b->n = at;
  edf_field(b, width, text);
  b->n = n;
}

static inline void edf_head(edf_bytes *b, bool bdf, const char *reserved, const char *n_records, const char *duration,
                            const edf_case_signal *signals, int n) {
  char number[16];
  b->n = 0;
  b->width = bdf ? 3 : 2;
  edf_field(b, 8, bdf ? "\xFF" "BIOSEMI" : "0");
  edf_field(b, 80, "X X X X");
  edf_field(b, 80, "Startdate 02-MAR-2002 X X X");
  edf_field(b, 8, "02.03.02");
  edf_field(b, 8, "14.27.05");
  snprintf(number, sizeof number, "%d", 256 * (n + 1));
  edf_field(b, 8, number);
  edf_field(b, 44, reserved);
  edf_field(b, 8, n_records);
  edf_field(b, 8, duration);
  snprintf(number, sizeof number, "%d", n);
  edf_field(b, 4, number);
  for (int i = 0; i < n; i++) edf_field(b, 16, signals[i].label);
  for (int i = 0; i < n; i++) edf_field(b, 80, "");
  for (int i = 0; i < n; i++) edf_field(b, 8, signals[i].unit);
  for (int i = 0; i < n; i++) edf_field(b, 8, signals[i].physical_min);
  for (int i = 0; i < n; i++) edf_field(b, 8, signals[i].physical_max);
  for (int i = 0; i < n; i++) edf_field(b, 8, signals[i].digital_min);
  for (int i = 0; i < n; i++) edf_field(b, 8, signals[i].digital_max);
  for (int i = 0; i < n; i++) edf_field(b, 80, "");
  for (int i = 0; i < n; i++) {
    snprintf(number, sizeof number, "%d", signals[i].n);
    edf_field(b, 8, number);
  }
  for (int i = 0; i < n; i++) edf_field(b, 32, "");
  assert_int_equal(b->n, 256 * (n + 1));
}

static inline void edf_sample(edf_bytes *b, int32_t value) {
  for (int i = 0; i < b->width; i++) b->data[b->n++] = (uint8_t)((uint32_t)value >> (8 * i));
}

/* n_samples of an annotation signal; the text may hold zero bytes. */
static inline void edf_lists(edf_bytes *b, int n_samples, const char *text, size_t length) {
  size_t room = (size_t)(n_samples * b->width);
  assert_true(length <= room);
  memset(b->data + b->n, 0, room);
  memcpy(b->data + b->n, text, length);
  b->n += (int64_t)room;
}
#define EDF_LISTS(b, n_samples, literal) edf_lists(b, n_samples, literal, sizeof(literal) - 1)

typedef struct edf_case {
  sn_folder *folder;
  sn_recording *recording; /* NULL unless status is SN_OK */
  sn_status status;
  sn_error err;
} edf_case;

static inline edf_case edf_open_with(const void *data, int64_t n, const sn_open_options *options) {
  edf_case c = {0};
  const char *const names[1] = {"r.edf"};
  const void *const contents[1] = {data};
  c.status = sn_folder_open_memory(1, names, contents, &n, &c.folder, &c.err);
  if (c.status == SN_OK) c.status = sn_format_edf.open(c.folder, names[0], options, &c.recording, &c.err);
  return c;
}

static inline edf_case edf_open(const edf_bytes *b, bool tolerant) {
  const sn_open_options options = {.tolerant = tolerant};
  return edf_open_with(b->data, b->n, &options);
}

static inline void edf_close(edf_case *c) {
  sn_recording_destroy(c->recording);
  sn_folder_close(c->folder);
  memset(c, 0, sizeof *c);
}

static inline edf_case edf_must_open(const edf_bytes *b, bool tolerant) {
  edf_case c = edf_open(b, tolerant);
  if (c.status != SN_OK) fail_msg("%s: %s", sn_status_name(c.status), c.err.message);
  return c;
}

/* Opening must fail with this status and a message that holds `word`. */
static inline void edf_must_fail(const edf_bytes *b, bool tolerant, sn_status status, const char *word) {
  edf_case c = edf_open(b, tolerant);
  if (c.status != status || strstr(c.err.message, word) == NULL)
    fail_msg("expected %s with '%s', found %s: %s", sn_status_name(status), word, sn_status_name(c.status), c.err.message);
  edf_close(&c);
}

static inline bool edf_warned(const sn_warning *list, int64_t n, const char *code) {
  for (int64_t i = 0; i < n; i++)
    if (strcmp(list[i].code, code) == 0) return true;
  return false;
}
static inline bool edf_case_warned(const edf_case *c, const char *code) {
  return edf_warned(c->recording->warnings, c->recording->n_warnings, code);
}

static inline double edf_value(const edf_case *c, int64_t channel, int64_t segment, int64_t at) {
  double value = 0;
  sn_error err;
  if (sn_recording_read(c->recording, channel, segment, at, 1, &value, &err) != SN_OK) fail_msg("%s", err.message);
  return value;
}

#endif
