/* CSV and TSV tables (text.h). The whole file is read, converted to UTF-8 and cut up in place: cells are pointers into
 * that one text. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/stream.h"
#include "core/text.h"

/* The public part first, so that a pointer to it is a pointer to the whole. */
typedef struct table_store {
  sn_table table;
  char *text;       /* what cells and columns point into */
  char *made_names; /* names "1", "2", ... of a table without header */
} table_store;

typedef struct cutter {
  const char *path;
  char *at, *end;
  int64_t line; /* of `at`, from 1 */
  char delimiter;
} cutter;

enum cell_end { CELL_THEN_CELL, CELL_THEN_ROW };

/* Cuts one cell: *cell becomes its text, NUL-terminated in place, and c->at stands behind its delimiter or line end. */
static sn_status cut_cell(cutter *c, char **cell, enum cell_end *what, sn_error *err) {
  char *to = c->at;
  *cell = to;
  if (c->at < c->end && *c->at == '"') {
    const int64_t opened = c->line;
    for (c->at++;; c->at++) {
      if (c->at == c->end)
        return sn_fail_at(err, SN_E_CORRUPT, -1, opened, NULL, "%s, line %lld: a quoted cell is never closed", c->path,
                          (long long)opened);
      if (*c->at == '"') {
        if (c->at + 1 == c->end || c->at[1] != '"') break;
        c->at++;
      }
      if (*c->at == '\n') c->line++;
      *to++ = *c->at;
    }
    c->at++;
    if (c->at < c->end && *c->at == '\r' && (c->at + 1 == c->end || c->at[1] == '\n')) c->at++;
    if (c->at < c->end && *c->at != c->delimiter && *c->at != '\n')
      return sn_fail_at(err, SN_E_CORRUPT, -1, c->line, NULL,
                        "%s, line %lld: expected the delimiter or the end of the line after a closing quote, found '%c'",
                        c->path, (long long)c->line, *c->at);
  } else {
    while (c->at < c->end && *c->at != c->delimiter && *c->at != '\n') c->at++;
    to = c->at;
    if (to > *cell && to[-1] == '\r' && (c->at == c->end || *c->at == '\n')) to--;
  }
  *what = c->at < c->end && *c->at == c->delimiter ? CELL_THEN_CELL : CELL_THEN_ROW;
  if (c->at < c->end) {
    if (*c->at == '\n') c->line++;
    c->at++;
  }
  *to = '\0'; /* never behind c->at: at the end of the file this is the text's own terminator */
  return SN_OK;
}

/* Steps over empty lines. */
static void skip_empty(cutter *c) {
  for (;;) {
    char *p = c->at;
    if (p < c->end && *p == '\r') p++;
    if (p == c->end) {
      c->at = p;
      return;
    }
    if (*p != '\n') return;
    c->at = p + 1;
    c->line++;
  }
}

/* Cuts a row into *cells, from place `first` on. */
static sn_status cut_row(cutter *c, char ***cells, int64_t *capacity, int64_t first, int64_t *n, sn_error *err) {
  enum cell_end what;
  *n = 0;
  do {
    SN_TRY(sn_grow(cells, capacity, first + *n + 1, sizeof **cells, "cells of a table", err));
    SN_TRY(cut_cell(c, &(*cells)[first + *n], &what, err));
    ++*n;
  } while (what == CELL_THEN_CELL);
  return SN_OK;
}

static sn_status number_columns(table_store *store, sn_error *err) {
  enum { NAME = 24 };
  sn_table *t = &store->table;
  SN_TRY(sn_alloc(&store->made_names, t->n_columns, NAME, "column names", err));
  SN_TRY(sn_alloc(&t->columns, t->n_columns, sizeof *t->columns, "column names", err));
  for (int64_t i = 0; i < t->n_columns; i++) {
    t->columns[i] = store->made_names + i * NAME;
    snprintf(t->columns[i], NAME, "%lld", (long long)(i + 1));
  }
  return SN_OK;
}

const char *sn_table_delimiter_hint(int64_t n_columns, const char *name) {
  if (n_columns != 1) return "";
  if (strchr(name, ';') != NULL) return " (its lines hold ';': separate the columns by commas, or by tabs in a file named .tsv)";
  if (strchr(name, '\t') != NULL) return " (its lines hold tabs: name the file .tsv, or separate the columns by commas)";
  if (strchr(name, ',') != NULL) return " (its lines hold commas: name the file .csv, or separate the columns by tabs)";
  return "";
}

static sn_status cut_table(cutter *c, bool has_header, table_store *store, sn_error *err) {
  sn_table *t = &store->table;
  int64_t n, header_room = 0, cell_room = 0, line_room = 0;
  skip_empty(c);
  if (c->at == c->end) return sn_fail(err, SN_E_CORRUPT, "%s: expected a table, found no line of text", c->path);
  if (has_header) {
    SN_TRY(cut_row(c, &t->columns, &header_room, 0, &n, err));
    t->n_columns = n;
  }
  for (skip_empty(c); c->at < c->end; skip_empty(c)) {
    const int64_t line = c->line;
    SN_TRY(sn_grow(&t->lines, &line_room, t->n_rows + 1, sizeof *t->lines, "rows of a table", err));
    SN_TRY(cut_row(c, &t->cells, &cell_room, t->n_rows * t->n_columns, &n, err));
    if (t->n_columns == 0) t->n_columns = n;
    if (n != t->n_columns)
      return sn_fail_at(err, SN_E_CORRUPT, -1, line, NULL, "%s, line %lld: expected %lld cells, found %lld%s", c->path,
                        (long long)line, (long long)t->n_columns, (long long)n,
                        sn_table_delimiter_hint(t->n_columns, has_header ? t->columns[0] : t->cells[0]));
    t->lines[t->n_rows++] = line;
  }
  return has_header ? SN_OK : number_columns(store, err);
}

static char delimiter_of(const char *path) {
  int64_t n = (int64_t)strlen(path);
  if (n > 3 && sn_equal_nocase(path + n - 3, ".gz")) n -= 3;
  return n >= 4 && strncasecmp(path + n - 4, ".tsv", 4) == 0 ? '\t' : ',';
}

/* The file's content as UTF-8 without byte order mark. */
static sn_status load_text(const char *path, char **text, int64_t *n, sn_error *err) {
  static const int64_t LIMIT = (int64_t)1 << 32;
  sn_stream *stream = NULL;
  char *raw = NULL;
  sn_status status;
  SN_TRY(sn_stream_open(path, &stream, err));
  SN_TRY_GOTO(sn_stream_read_all(stream, LIMIT, &raw, n, err), done);
  const char *nul = memchr(raw, '\0', (size_t)*n);
  if (nul != NULL) {
    status = sn_fail_at(err, SN_E_FORMAT, nul - raw, -1, NULL,
                        "%s: expected a text table, found a NUL byte at offset %lld (binary or UTF-16)", path,
                        (long long)(nul - raw));
    goto done;
  }
  const int64_t mark = *n >= 3 && memcmp(raw, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
  SN_TRY_GOTO(sn_text_to_utf8(raw + mark, *n - mark, text, NULL, err), done);
  *n = (int64_t)strlen(*text);
  /* Lines that end in CR alone: a file of one endless line otherwise, all of it lost. */
  if (memchr(*text, '\n', (size_t)*n) == NULL) {
    for (char *p = *text; (p = strchr(p, '\r')) != NULL;) *p = '\n';
  }
done:
  sn_free(raw);
  sn_stream_close(stream);
  return status;
}

sn_status sn_table_load(const char *path, char delimiter, bool has_header, sn_table **out, sn_error *err) {
  table_store *store = NULL;
  sn_status status;
  int64_t n;
  SN_TRY_GOTO(sn_alloc(&store, 1, sizeof *store, "table", err), fail);
  SN_TRY_GOTO(load_text(path, &store->text, &n, err), fail);
  cutter c = {.path = path, .at = store->text, .end = store->text + n, .line = 1,
              .delimiter = delimiter != 0 ? delimiter : delimiter_of(path)};
  SN_TRY_GOTO(cut_table(&c, has_header, store, err), fail);
  *out = &store->table;
  return SN_OK;
fail:
  if (store != NULL) sn_table_destroy(&store->table);
  return status;
}

void sn_table_destroy(sn_table *table) {
  if (table == NULL) return;
  table_store *store = (table_store *)table;
  sn_free(table->columns);
  sn_free(table->cells);
  sn_free(table->lines);
  sn_free(store->text);
  sn_free(store->made_names);
  sn_free(store);
}

int64_t sn_table_column(const sn_table *table, const char *name) {
  for (int64_t i = 0; i < table->n_columns; i++) {
    if (strcmp(table->columns[i], name) == 0) return i;
  }
  return -1;
}

bool sn_table_has_columns(const sn_table *table, const char *const *names, int64_t n) {
  if (table->n_columns != n) return false;
  for (int64_t i = 0; i < n; i++) {
    if (strcmp(table->columns[i], names[i]) != 0) return false;
  }
  return true;
}

sn_status sn_table_fail_row(const sn_table *table, int64_t row, const char *path, sn_status status, sn_error *err) {
  status = sn_error_prefix(err, status, "%s: line %lld", path, (long long)table->lines[row]);
  if (err != NULL) err->line = table->lines[row];
  return status;
}
