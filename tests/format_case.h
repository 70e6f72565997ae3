/* Files in memory opened by one format, for tests of readers. */
#ifndef SN_TESTS_FORMAT_CASE_H
#define SN_TESTS_FORMAT_CASE_H

#include <math.h>
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

enum { CASE_FILES = 10 };

typedef struct format_case {
  int64_t n;
  const char *names[CASE_FILES];
  const void *data[CASE_FILES];
  int64_t sizes[CASE_FILES];
  sn_folder *folder;
  sn_recording *recording; /* NULL unless status is SN_OK */
  sn_status status;
  sn_error err;
} format_case;

static inline void case_file(format_case *c, const char *name, const void *data, int64_t n) {
  c->names[c->n] = name;
  c->data[c->n] = data;
  c->sizes[c->n++] = n;
}

static inline void case_text(format_case *c, const char *name, const char *text) {
  case_file(c, name, text, (int64_t)strlen(text));
}

/* The first file is opened unless `name` says another. Close with case_close; the files stay for another opening. */
static inline void case_open_as(format_case *c, const sn_format *format, const char *name, bool tolerant) {
  const sn_open_options options = {.tolerant = tolerant};
  memset(&c->err, 0, sizeof c->err);
  c->recording = NULL;
  c->folder = NULL;
  c->status = sn_folder_open_memory(c->n, c->names, c->data, c->sizes, &c->folder, &c->err);
  if (c->status == SN_OK) c->status = format->open(c->folder, name, &options, &c->recording, &c->err);
}
static inline void case_open(format_case *c, const sn_format *format, bool tolerant) {
  case_open_as(c, format, c->names[0], tolerant);
}

static inline void case_close(format_case *c) {
  if (c->status == SN_OK) sn_recording_destroy(c->recording);
  sn_folder_close(c->folder);
  c->recording = NULL;
  c->folder = NULL;
}

static inline void case_must(const format_case *c) {
  if (c->status != SN_OK) fail_msg("%s: %s", sn_status_name(c->status), c->err.message);
}

/* The opening must have failed with this status and a message that holds `word`. */
static inline void case_must_fail(format_case *c, sn_status status, const char *word) {
  if (c->status != status || strstr(c->err.message, word) == NULL)
    fail_msg("expected %s with '%s', found %s: %s", sn_status_name(status), word, sn_status_name(c->status),
             c->status != SN_OK ? c->err.message : "");
  case_close(c);
}

static inline const sn_warning *case_warning(const format_case *c, const char *code) {
  for (int64_t i = 0; i < c->recording->n_warnings; i++)
    if (strcmp(c->recording->warnings[i].code, code) == 0) return &c->recording->warnings[i];
  return NULL;
}

/* Samples first.. of a channel equal `expected` exactly; NaN equals NaN. */
static inline void case_values(const format_case *c, int64_t channel, int64_t segment, int64_t first, int64_t n,
                               const double *expected) {
  double *values;
  sn_error err;
  assert_int_equal(sn_alloc(&values, n, sizeof *values, "samples", NULL), SN_OK);
  if (sn_recording_read(c->recording, channel, segment, first, n, values, &err) != SN_OK) fail_msg("%s", err.message);
  for (int64_t i = 0; i < n; i++)
    if (!(values[i] == expected[i] || (isnan(values[i]) && isnan(expected[i]))))
      fail_msg("channel %lld sample %lld: %.17g, expected %.17g", (long long)channel, (long long)(first + i), values[i],
               expected[i]);
  sn_free(values);
}

static inline sn_annotations *case_annotations(const format_case *c) {
  sn_annotations *list = NULL;
  sn_error err;
  if (sn_recording_annotations(c->recording, NULL, &list, &err) != SN_OK) fail_msg("%s", err.message);
  return list;
}

/* Cuts file `file` at every byte: each opening must end in a status with a message, and what opens must be readable. */
static inline void case_truncate(format_case *c, const sn_format *format, int64_t file) {
  const int64_t full = c->sizes[file];
  int64_t failed = 0;
  for (int64_t n = 0; n < full; n++) {
    for (int tolerant = 0; tolerant < 2; tolerant++) {
      uint8_t *copy = NULL; /* of the exact size, for the sanitizer */
      const void *whole = c->data[file];
      assert_int_equal(sn_alloc(&copy, n, 1, "copy", NULL), SN_OK);
      memcpy(copy, whole, (size_t)n);
      c->data[file] = copy;
      c->sizes[file] = n;
      case_open(c, format, tolerant == 1);
      failed += c->status != SN_OK;
      if (c->status != SN_OK && c->err.message[0] == '\0') fail_msg("%lld bytes: no message", (long long)n);
      for (int64_t s = 0; c->status == SN_OK && s < c->recording->n_segments; s++) {
        for (int64_t k = 0; k < c->recording->n_channels; k++) {
          double values[64];
          int64_t total = sn_recording_samples(c->recording, k, s), m = total < 64 ? total : 64;
          if (c->recording->channels[k].uncalibrated) continue;
          if (sn_recording_read(c->recording, k, s, total - m, m, values, &c->err) != SN_OK)
            fail_msg("%lld bytes: %s", (long long)n, c->err.message);
        }
      }
      case_close(c);
      c->data[file] = whole;
      sn_free(copy);
    }
  }
  c->sizes[file] = full;
  assert_true(failed > 0);
}

#endif
