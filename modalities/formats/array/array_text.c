/* Columns of text: a row per point. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "modalities/formats/array/array.h"

static const int64_t MOST_BYTES = (int64_t)4 << 30;
enum { MOST_COLUMNS = 1 << 16 };

typedef struct columns {
  const char *name;
  char delimiter; /* ' ': runs of blanks and tabs */
  const char *at, *end;
  int64_t line;
  int64_t n_columns; /* of a row; 0 before the first */
  int64_t n_channels;
  int64_t *channel; /* (MOST of the columns that are wanted + 1) channel of each column, -1 none; NULL: all */
  int64_t n_mapped;
  int64_t n, room;
  double *values;
} columns;

/* The next cell of the line [*p, line_end): false at the end of the line. */
static bool next_cell(const columns *c, const char **p, const char *line_end, bool first, const char **cell,
                      int64_t *length) {
  if (c->delimiter == ' ') {
    while (*p < line_end && (**p == ' ' || **p == '\t')) ++*p;
    if (*p >= line_end) return false;
    *cell = *p;
    while (*p < line_end && **p != ' ' && **p != '\t') ++*p;
    *length = *p - *cell;
    return true;
  }
  if (!first) {
    if (*p >= line_end) return false;
    ++*p; /* the delimiter */
  }
  *cell = *p;
  while (*p < line_end && **p != c->delimiter) ++*p;
  *length = *p - *cell;
  return true;
}

static sn_status parse_cell(const columns *c, const char *cell, int64_t length, double *value, sn_error *err) {
  char text[64];
  while (length > 0 && (*cell == ' ' || *cell == '\t')) cell++, length--;
  while (length > 0 && (cell[length - 1] == ' ' || cell[length - 1] == '\t')) length--;
  *value = (double)NAN;
  if (length == 0) return SN_OK;
  if (length < (int64_t)sizeof text) {
    memcpy(text, cell, (size_t)length);
    text[length] = '\0';
    if (sn_equal_nocase(text, "NA") || sn_equal_nocase(text, "n/a") || sn_parse_f64(text, true, value)) return SN_OK;
  }
  return sn_fail_at(err, SN_E_CORRUPT, -1, c->line, NULL, "'%s' line %lld: '%.*s' is no number%s", c->name,
                    (long long)c->line, (int)(length < 40 ? length : 40), cell,
                    c->n_columns == 0 ? "; if it is a line of names, set \"header_lines\" in the sidecar" : "");
}

static sn_status take_row(columns *c, const char *start, const char *line_end, sn_error *err) {
  const char *p = start, *cell;
  int64_t length, k = 0;
  SN_TRY(sn_grow(&c->values, &c->room, c->n + c->n_channels, sizeof *c->values, "samples", err));
  double *row = c->values + c->n;
  for (; next_cell(c, &p, line_end, k == 0, &cell, &length); k++) {
    int64_t channel = c->channel == NULL ? k : k < c->n_mapped ? c->channel[k] : -1;
    if (channel >= 0 && channel < c->n_channels) SN_TRY(parse_cell(c, cell, length, &row[channel], err));
  }
  if (c->n_columns == 0) {
    c->n_columns = k;
    if (c->channel != NULL && k < c->n_mapped)
      return sn_fail_at(err, SN_E_CORRUPT, -1, c->line, "columns",
                        "'%s' line %lld has %lld columns, 0 to %lld; its sidecar's \"columns\" names column %lld", c->name,
                        (long long)c->line, (long long)k, (long long)k - 1, (long long)c->n_mapped - 1);
    if (c->channel == NULL && k != c->n_channels)
      return sn_fail_at(err, SN_E_CORRUPT, -1, c->line, NULL,
                        "'%s' line %lld has %lld columns, its sidecar names %lld channels", c->name, (long long)c->line,
                        (long long)k, (long long)c->n_channels);
  }
  if (k != c->n_columns)
    return sn_fail_at(err, SN_E_CORRUPT, -1, c->line, NULL, "'%s' line %lld has %lld columns, the first row %lld",
                      c->name, (long long)c->line, (long long)k, (long long)c->n_columns);
  c->n += c->n_channels;
  return SN_OK;
}

static sn_status take_rows(columns *c, int64_t skip, sn_error *err) {
  while (c->at < c->end) {
    const char *start = c->at, *line_end = start;
    while (line_end < c->end && *line_end != '\n' && *line_end != '\r') line_end++;
    c->at = line_end + 1;
    if (line_end + 1 < c->end && line_end[0] == '\r' && line_end[1] == '\n') c->at++;
    c->line++;
    if (c->line <= skip) continue;
    const char *p = start;
    while (p < line_end && (*p == ' ' || *p == '\t')) p++;
    if (p == line_end || *p == '#') continue; /* a row of tabs alone is empty, too */
    SN_TRY(take_row(c, start, line_end, err));
  }
  return SN_OK;
}

/* The columns that the sidecar wants, as a map from column to channel. */
static sn_status map_columns(const array_sidecar *s, columns *c, sn_error *err) {
  const sn_json *list = sn_json_get(s->json, "columns");
  if (list == NULL) return SN_OK;
  if (sn_json_length(list) != s->n_channels)
    return sn_fail_at(err, SN_E_CORRUPT, -1, sn_json_line(list), "columns", "'%s': %lld columns for %lld channels",
                      s->file, (long long)sn_json_length(list), (long long)s->n_channels);
  SN_TRY(sn_alloc(&c->channel, MOST_COLUMNS, sizeof *c->channel, "columns", err));
  for (int64_t k = 0; k < MOST_COLUMNS; k++) c->channel[k] = -1;
  for (int64_t i = 0; i < s->n_channels; i++) {
    int64_t column;
    if (!sn_json_as_i64(sn_json_at(list, i), &column) || column < 0 || column >= MOST_COLUMNS)
      return sn_fail_at(err, SN_E_CORRUPT, -1, sn_json_line(sn_json_at(list, i)), "columns",
                        "'%s': entry %lld of \"columns\" is no column: expected a number from 0 to %d", s->file, (long long)i + 1,
                        MOST_COLUMNS - 1);
    if (c->channel[column] >= 0)
      return sn_fail_at(err, SN_E_CORRUPT, -1, sn_json_line(sn_json_at(list, i)), "columns",
                        "'%s': \"columns\" names column %lld twice: expected different ones", s->file, (long long)column);
    c->channel[column] = i;
    if (column + 1 > c->n_mapped) c->n_mapped = column + 1;
  }
  return SN_OK;
}

sn_status sn_array_load_text(const array_sidecar *s, sn_stream *stream, const char *name, sn_grid *grid,
                             sn_error *err) {
  char *text = NULL;
  const char *delimiter = sn_json_as_string(sn_json_get(s->json, "delimiter"));
  int64_t n, skip = 0;
  columns c = {.name = name, .n_channels = s->n_channels};
  sn_status status = sn_stream_read_all(stream, MOST_BYTES, &text, &n, err);
  sn_stream_close(stream);
  if (status != SN_OK) return status;
  const char *extension = sn_path_extension(name);
  c.delimiter = delimiter != NULL                    ? delimiter[0]
                : sn_equal_nocase(extension, ".tsv") ? '\t'
                : sn_equal_nocase(extension, ".csv") ? ','
                                                     : ' ';
  c.at = text;
  c.end = text + n;
  if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) c.at += 3;
  sn_json_as_i64(sn_json_get(s->json, "header_lines"), &skip);
  SN_TRY_GOTO(map_columns(s, &c, err), done);
  SN_TRY_GOTO(take_rows(&c, skip, err), done);
  if (c.n == 0) {
    status = sn_fail(err, SN_E_CORRUPT, "'%s' has no row of numbers", name);
    goto done;
  }
  grid->type = SN_GRID_F64;
  grid->n_channels = c.n_channels;
  grid->n_frames = c.n / c.n_channels;
  SN_TRY_GOTO(sn_grid_set_layout(grid, false, err), done);
  SN_TRY_GOTO(sn_grid_attach_memory(grid, c.values, name, err), done);
  c.values = NULL;
done:
  sn_free(c.values);
  sn_free(c.channel);
  sn_free(text);
  return status;
}
