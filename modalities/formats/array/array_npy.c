/* NPY: a magic string, a version, and a Python literal {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "modalities/formats/array/array.h"

enum { MOST_HEADER = 1 << 16 };

typedef struct npy_header {
  char descr[16];
  int fortran; /* -1: not stated */
  bool shape_stated;
  array_shape shape;
} npy_header;

static sn_status corrupt(const char *name, const char *what, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, 10, -1, "header", "'%s': the NPY header %s", name, what);
}

static const char *skip(const char *p) {
  while (isspace((unsigned char)*p)) p++;
  return p;
}

/* A quoted word without escapes. NULL: none. */
static const char *take_word(const char *p, char *word, size_t room) {
  const char quote = *p;
  size_t n = 0;
  if (quote != '\'' && quote != '"') return NULL;
  for (p++; *p != '\0' && *p != quote; p++) {
    if (n + 1 >= room || *p == '\\') return NULL;
    word[n++] = *p;
  }
  word[n] = '\0';
  return *p == quote ? p + 1 : NULL;
}

/* (a, b): NULL for what is none; more than two dimensions are counted only. */
static const char *take_shape(const char *p, array_shape *shape) {
  if (*p != '(') return NULL;
  p = skip(p + 1);
  shape->n_dims = 0;
  while (*p != ')') {
    int64_t value = 0;
    if (!isdigit((unsigned char)*p)) return NULL;
    for (; isdigit((unsigned char)*p); p++)
      if (!sn_mul_ok(value, 10, &value) || !sn_add_ok(value, *p - '0', &value)) return NULL;
    if (*p == 'L') p++; /* of old Pythons */
    if (shape->n_dims < 2) shape->dims[shape->n_dims] = value;
    if (shape->n_dims < 32) shape->n_dims++;
    p = skip(p);
    if (*p == ',')
      p = skip(p + 1);
    else if (*p != ')')
      return NULL;
  }
  return p + 1;
}

static sn_status parse_header(const char *text, const char *name, npy_header *h, sn_error *err) {
  const char *p = skip(text);
  char key[24];
  h->fortran = -1;
  if (*p != '{') return corrupt(name, "is no dictionary", err);
  for (p = skip(p + 1); *p != '}';) {
    const char *end = take_word(p, key, sizeof key);
    if (end == NULL) return corrupt(name, "has something else where a key belongs", err);
    p = skip(end);
    if (*p != ':') return corrupt(name, "has a key without a value", err);
    p = skip(p + 1);
    if (strcmp(key, "descr") == 0) {
      if (*p == '[') return sn_fail_at(err, SN_E_UNSUPPORTED, 10, -1, "descr", "'%s' is an array of records", name);
      p = take_word(p, h->descr, sizeof h->descr);
    } else if (strcmp(key, "fortran_order") == 0) {
      h->fortran = strncmp(p, "True", 4) == 0;
      p = h->fortran ? p + 4 : strncmp(p, "False", 5) == 0 ? p + 5 : NULL;
    } else if (strcmp(key, "shape") == 0) {
      h->shape_stated = true;
      p = take_shape(p, &h->shape);
    } else {
      p = NULL;
    }
    if (p == NULL)
      return sn_fail_at(err, SN_E_CORRUPT, 10, -1, key, "'%s': the NPY header has no proper '%s'", name, key);
    p = skip(p);
    if (*p == ',')
      p = skip(p + 1);
    else if (*p != '}')
      return corrupt(name, "does not end", err);
  }
  if (h->descr[0] == '\0' || h->fortran < 0 || !h->shape_stated)
    return corrupt(name, "lacks descr, fortran_order or shape", err);
  h->shape.fortran = h->fortran == 1;
  return SN_OK;
}

static sn_status set_type(const npy_header *h, const char *name, sn_grid *grid, sn_error *err) {
  static const struct {
    const char *code;
    sn_grid_type type;
  } types[] = {{"i1", SN_GRID_I8},  {"u1", SN_GRID_U8},  {"i2", SN_GRID_I16}, {"u2", SN_GRID_U16}, {"i4", SN_GRID_I32},
               {"u4", SN_GRID_U32}, {"i8", SN_GRID_I64}, {"f4", SN_GRID_F32}, {"f8", SN_GRID_F64}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (strchr("<>|=", h->descr[0]) == NULL || strcmp(h->descr + 1, types[i].code) != 0) continue;
    grid->type = types[i].type;
    grid->big_endian = h->descr[0] == '>';
    return SN_OK;
  }
  return sn_fail_at(err, SN_E_UNSUPPORTED, 10, -1, "descr",
                    "'%s' holds numbers of type '%s'; integers of 1 to 8 bytes and floats "
                    "of 4 and 8 are read",
                    name, h->descr);
}

static sn_status load(const array_sidecar *s, sn_stream *stream, const char *name, sn_grid *grid, sn_error *err) {
  uint8_t head[12];
  char *text = NULL;
  npy_header h = {{0}, 0, false, {0, {0, 0}, false}};
  SN_TRY(sn_stream_read_exact(stream, 0, head, 10, err));
  if (memcmp(head, "\x93NUMPY", 6) != 0) return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%s' is no NPY file", name);
  if (head[6] < 1 || head[6] > 3)
    return sn_fail_at(err, SN_E_UNSUPPORTED, 6, -1, NULL, "'%s' is of NPY version %d; 1 to 3 are read", name, head[6]);
  int64_t length = head[8] | head[9] << 8, at = 10;
  if (head[6] > 1) {
    SN_TRY(sn_stream_read_exact(stream, 8, head + 8, 4, err));
    length |= (int64_t)head[10] << 16 | (int64_t)head[11] << 24;
    at = 12;
  }
  if (length > MOST_HEADER) return corrupt(name, "is longer than 65536 bytes", err);
  SN_TRY(sn_alloc(&text, length + 1, 1, "NPY header", err));
  sn_status status = sn_stream_read_exact(stream, at, text, length, err);
  if (status == SN_OK) status = parse_header(text, name, &h, err);
  sn_free(text);
  if (status != SN_OK) return status;
  SN_TRY(set_type(&h, name, grid, err));
  grid->offset = at + length;
  SN_TRY(sn_array_set_layout(s, &h.shape, grid, err));
  return sn_grid_attach(grid, err);
}

sn_status sn_array_load_npy(const array_sidecar *s, sn_stream *stream, const char *name, sn_grid *grid, sn_error *err) {
  grid->stream = stream;
  return load(s, stream, name, grid, err);
}
