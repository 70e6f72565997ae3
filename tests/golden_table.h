/* A tab-separated table of tests/golden, for tests. */
#ifndef SN_TESTS_GOLDEN_TABLE_H
#define SN_TESTS_GOLDEN_TABLE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/alloc.h"
#include "core/stream.h"
#include "core/text.h"

enum { GOLDEN_COLUMNS = 32 };

typedef struct golden_table {
  char *text, *at;
  char *cells[GOLDEN_COLUMNS];
  int n;
} golden_table;

static inline golden_table golden_open(const char *name) {
  golden_table t = {0};
  char path[512];
  int64_t n;
  sn_stream *stream;
  snprintf(path, sizeof path, "%s/tests/golden/%s", SONDE_SOURCE_DIR, name);
  assert_int_equal(sn_stream_open(path, &stream, NULL), SN_OK);
  assert_int_equal(sn_stream_read_all(stream, 1 << 24, &t.text, &n, NULL), SN_OK);
  sn_stream_close(stream);
  t.at = t.text;
  return t;
}

/* The cells of the next line; false at the end, which also frees the table. */
static inline bool golden_next(golden_table *t) {
  if (*t->at == '\0') {
    sn_free(t->text);
    return false;
  }
  char *line = t->at, *end = strchr(line, '\n');
  t->at = end != NULL ? end + 1 : line + strlen(line);
  if (end != NULL) *end = '\0';
  for (t->n = 0; line != NULL && t->n < GOLDEN_COLUMNS; t->n++) t->cells[t->n] = strsep(&line, "\t");
  return true;
}

static inline double golden_number(const golden_table *t, int column) {
  double value;
  if (column >= t->n || !sn_parse_f64(t->cells[column], false, &value)) fail_msg("column %d is no number", column);
  return value;
}

/* Relative to the larger of both, absolute below `least`; false for what is not finite. */
static inline bool golden_near(double a, double b, double tolerance, double least) {
  double size = a < 0 ? -a : a, other = b < 0 ? -b : b, difference = a > b ? a - b : b - a;
  if (other > size) size = other;
  return difference <= tolerance * (size > least ? size : least);
}

#endif
