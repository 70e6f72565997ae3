/* Data as text: rows of points (multiplexed) or of channels (vectorized). */
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/brainvision/brainvision_parts.h"

static const int64_t MOST_BYTES = (int64_t)1 << 32;

typedef struct ascii {
  const bv_header *h;
  const char *name, *at, *end;
  int64_t line;
  int64_t n, room;
  double *values;
} ascii;

static bool is_blank(const ascii *a, char c) {
  return c == ' ' || c == '\t' || c == ';' || (c == ',' && a->h->decimal == '.');
}

/* The next word of the line; false at its end. */
static bool next_word(ascii *a, const char **word, int64_t *length) {
  while (a->at < a->end && is_blank(a, *a->at)) a->at++;
  *word = a->at;
  while (a->at < a->end && *a->at != '\n' && *a->at != '\r' && !is_blank(a, *a->at)) a->at++;
  *length = a->at - *word;
  return *length > 0;
}

static void next_line(ascii *a) {
  while (a->at < a->end && *a->at != '\n' && *a->at != '\r') a->at++;
  if (a->at < a->end && *a->at == '\r' && a->at + 1 < a->end && a->at[1] == '\n') a->at++;
  if (a->at < a->end) a->at++;
  a->line++;
}

static sn_status take_value(ascii *a, const char *word, int64_t length, sn_error *err) {
  char number[64];
  double value;
  bool good = length < (int64_t)sizeof number;
  if (good) {
    memcpy(number, word, (size_t)length);
    number[length] = '\0';
    if (a->h->decimal == ',')
      for (char *c = number; *c != '\0'; c++)
        *c = *c == '.' ? '?' : *c == ',' ? '.' : *c; /* a point is no decimal comma */
    good = sn_parse_f64(number, true, &value);
  }
  if (!good)
    return sn_fail_at(err, SN_E_CORRUPT, -1, a->line, NULL, "'%s' line %lld: '%.*s' is no number", a->name,
                      (long long)a->line, (int)(length < 40 ? length : 40), word);
  SN_TRY(sn_grow(&a->values, &a->room, a->n + 1, sizeof *a->values, "samples", err));
  a->values[a->n++] = value;
  return SN_OK;
}

/* All rows; every row with a value must have as many as the first. */
static sn_status take_rows(ascii *a, int64_t *n_rows, int64_t *n_columns, sn_error *err) {
  const char *word;
  int64_t length;
  for (int64_t i = 0; i < a->h->skip_lines && a->at < a->end; i++) next_line(a);
  for (; a->at < a->end; next_line(a)) {
    const int64_t before = a->n;
    for (int64_t i = 0; i < a->h->skip_columns; i++)
      if (!next_word(a, &word, &length)) break;
    while (next_word(a, &word, &length)) SN_TRY(take_value(a, word, length, err));
    if (a->n == before) continue;
    if (*n_rows == 0) *n_columns = a->n - before;
    if (a->n - before != *n_columns)
      return sn_fail_at(err, SN_E_CORRUPT, -1, a->line, NULL, "'%s' line %lld: %lld values, expected %lld", a->name,
                        (long long)a->line, (long long)(a->n - before), (long long)*n_columns);
    ++*n_rows;
  }
  return SN_OK;
}

sn_status sn_bv_ascii_load(const bv_header *h, const sn_stream *stream, sn_grid *grid, sn_error *err) {
  char *text = NULL;
  int64_t n, rows = 0, columns = 0;
  ascii a = {.h = h, .name = h->data_file, .line = 1};
  sn_status status;
  SN_TRY(sn_stream_read_all(stream, MOST_BYTES, &text, &n, err));
  a.at = text;
  a.end = text + n;
  SN_TRY_GOTO(take_rows(&a, &rows, &columns, err), done);
  if ((h->vectorized ? rows : columns) != h->n_announced) {
    status = sn_fail(err, SN_E_CORRUPT, "'%s' has %lld %s, '%s' announces %lld channels", h->data_file,
                     (long long)(h->vectorized ? rows : columns), h->vectorized ? "rows" : "columns", h->file,
                     (long long)h->n_announced);
    goto done;
  }
  grid->type = SN_GRID_F64;
  grid->n_channels = h->n_announced;
  grid->n_frames = h->vectorized ? columns : rows;
  if (h->data_points >= 0 && h->data_points != grid->n_frames) {
    status = sn_fail(err, SN_E_CORRUPT, "'%s' has %lld points, '%s' announces %lld", h->data_file,
                     (long long)grid->n_frames, h->file, (long long)h->data_points);
    goto done;
  }
  SN_TRY_GOTO(sn_grid_set_layout(grid, h->vectorized, err), done);
  SN_TRY_GOTO(sn_grid_attach_memory(grid, a.values, h->data_file, err), done);
  a.values = NULL;
done:
  sn_free(a.values);
  sn_free(text);
  return status;
}
