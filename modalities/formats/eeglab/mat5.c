#include "modalities/formats/eeglab/mat5.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "core/alloc.h"
#include "core/text.h"

enum {
  TYPE_INT8 = 1,
  TYPE_UINT8 = 2,
  TYPE_INT16 = 3,
  TYPE_UINT16 = 4,
  TYPE_INT32 = 5,
  TYPE_UINT32 = 6,
  TYPE_SINGLE = 7,
  TYPE_DOUBLE = 9,
  TYPE_INT64 = 12,
  TYPE_UINT64 = 13,
  TYPE_MATRIX = 14,
  TYPE_COMPRESSED = 15,
  TYPE_UTF8 = 16,
  TYPE_UTF16 = 17,
  TYPE_UTF32 = 18
};
enum { HEADER = 128, DEEPEST = 16, MOST_FIELDS = 4096, PIECE = 1 << 16 };
static const int64_t MOST_INFLATED = (int64_t)1 << 31;

/* Bytes of a stored number, 0: not a number. */
static int type_bytes(int type) {
  static const int bytes[] = {0, 1, 1, 2, 2, 4, 4, 4, 0, 8, 0, 0, 8, 8, 0, 0, 1, 2, 4};
  return type >= 0 && type < (int)(sizeof bytes / sizeof bytes[0]) ? bytes[type] : 0;
}

typedef struct mat_block {
  sn_stream *stream;
  char *data;
} mat_block;

typedef struct reader {
  const sn_stream *stream;
  bool big_endian;
  int64_t end; /* of what may be read */
} reader;

typedef struct element {
  int type;
  int64_t offset, bytes; /* of the data */
  int64_t next;          /* where the next one begins */
} element;

/* ---- bytes ---- */

static uint32_t get32(const uint8_t *b, bool big) {
  return big ? (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]
             : (uint32_t)b[3] << 24 | (uint32_t)b[2] << 16 | (uint32_t)b[1] << 8 | b[0];
}

static sn_status corrupt(const reader *r, int64_t at, sn_error *err, const char *what) {
  return sn_fail_at(err, SN_E_CORRUPT, at, -1, NULL, "'%s': %s at byte %lld of a MATLAB file",
                    sn_stream_name(r->stream), what, (long long)at);
}

/* The tag at `at`; data of up to four bytes stand in the tag itself. padded: elements inside a matrix. */
static sn_status read_element(const reader *r, int64_t at, bool padded, element *e, sn_error *err) {
  uint8_t tag[8];
  if (at > r->end - 8) return corrupt(r, at, err, "an element begins behind the end");
  SN_TRY(sn_stream_read_exact(r->stream, at, tag, 8, err));
  uint32_t first = get32(tag, r->big_endian), second = get32(tag + 4, r->big_endian);
  if (first >> 16 != 0) { /* small */
    e->type = (int)(first & 0xFFFF);
    e->bytes = first >> 16;
    e->offset = at + 4;
    e->next = at + 8;
    return e->bytes <= 4 ? SN_OK : corrupt(r, at, err, "a small element of more than four bytes");
  }
  e->type = (int)first;
  e->bytes = second;
  e->offset = at + 8;
  if (e->bytes > r->end - e->offset) return corrupt(r, at, err, "an element that is longer than what is left");
  e->next = e->offset + (padded ? (e->bytes + 7) / 8 * 8 : e->bytes);
  if (e->next > r->end) e->next = r->end; /* the last padding may be missing */
  return SN_OK;
}

/* ---- matrices ---- */

static sn_status read_matrix(const reader *r, const element *e, int depth, mat_value *v, sn_error *err);

static void free_value(mat_value *v) {
  int64_t children = v->n_fields > 0 ? v->n * v->n_fields : v->kind == MAT_CELL ? v->n : 0;
  if (v->children != NULL)
    for (int64_t i = 0; i < children; i++) free_value(&v->children[i]);
  sn_free(v->children);
  sn_free(v->fields);
  memset(v, 0, sizeof *v);
}

static sn_status read_dims(const reader *r, const element *e, mat_value *v, sn_error *err) {
  uint8_t bytes[4 * MAT_DIMS];
  if ((e->type != TYPE_INT32 && e->type != TYPE_UINT32) || e->bytes % 4 != 0 || e->bytes < 8 ||
      e->bytes > (int64_t)sizeof bytes)
    return corrupt(r, e->offset, err, "dimensions that are none");
  SN_TRY(sn_stream_read_exact(r->stream, e->offset, bytes, e->bytes, err));
  v->n_dims = (int)(e->bytes / 4);
  v->n = 1;
  for (int i = 0; i < v->n_dims; i++) {
    v->dims[i] = (int32_t)get32(bytes + 4 * i, r->big_endian);
    if (!sn_mul_ok(v->n, v->dims[i], &v->n)) return corrupt(r, e->offset, err, "dimensions beyond 64 bits");
  }
  return SN_OK;
}

/* `n` matrices from *at on. Each takes eight bytes at least. */
static sn_status read_children(const reader *r, int64_t *at, int64_t n, int depth, mat_value *v, sn_error *err) {
  if (n > (r->end - *at) / 8) return corrupt(r, *at, err, "more values than there is room for");
  SN_TRY(sn_alloc(&v->children, n, sizeof *v->children, "values of a MATLAB file", err));
  for (int64_t i = 0; i < n; i++) {
    element e;
    SN_TRY(read_element(r, *at, true, &e, err));
    if (e.type != TYPE_MATRIX) return corrupt(r, *at, err, "something else than a matrix");
    if (e.bytes > 0) SN_TRY(read_matrix(r, &e, depth + 1, &v->children[i], err)); /* none: an empty array */
    *at = e.next;
  }
  return SN_OK;
}

static sn_status read_fields(const reader *r, int64_t *at, int depth, mat_value *v, sn_error *err) {
  element length, names;
  uint8_t bytes[4];
  int64_t n;
  SN_TRY(read_element(r, *at, true, &length, err));
  if (length.bytes != 4) return corrupt(r, *at, err, "no length of field names");
  SN_TRY(sn_stream_read_exact(r->stream, length.offset, bytes, 4, err));
  int64_t width = (int32_t)get32(bytes, r->big_endian);
  SN_TRY(read_element(r, length.next, true, &names, err));
  if (width < 1 || names.bytes % width != 0 || names.bytes / width > MOST_FIELDS)
    return corrupt(r, length.next, err, "field names that are none");
  int64_t n_fields = names.bytes / width;
  *at = names.next;
  if (n_fields == 0) {
    v->n = 0;
    return SN_OK;
  }
  SN_TRY(sn_alloc(&v->fields, n_fields, sizeof *v->fields, "field names", err));
  for (int64_t i = 0; i < n_fields; i++) {
    int64_t k = width < MAT_NAME - 1 ? width : MAT_NAME - 1;
    SN_TRY(sn_stream_read_exact(r->stream, names.offset + i * width, v->fields[i], k, err));
  }
  if (!sn_mul_ok(v->n, n_fields, &n)) return corrupt(r, *at, err, "more values than there is room for");
  sn_status status = read_children(r, at, n, depth, v, err);
  v->n_fields = n_fields; /* children may be none yet when that failed */
  return status;
}

static sn_status read_numbers(const reader *r, int64_t at, mat_value *v, sn_error *err) {
  element e;
  SN_TRY(read_element(r, at, true, &e, err));
  v->stream = r->stream;
  v->big_endian = r->big_endian;
  v->offset = e.offset;
  v->bytes = e.bytes;
  v->type = e.type;
  int bytes = type_bytes(e.type);
  if (bytes == 0) return corrupt(r, at, err, "numbers of an unknown type");
  /* Text of UTF-8 may have more bytes than characters. */
  if (v->kind == MAT_CHAR && e.type == TYPE_UTF8) return SN_OK;
  if (e.bytes / bytes < v->n) return corrupt(r, at, err, "fewer numbers than the dimensions say");
  return SN_OK;
}

static sn_status read_matrix(const reader *outer, const element *e, int depth, mat_value *v, sn_error *err) {
  const reader inner = {outer->stream, outer->big_endian, e->offset + e->bytes}, *r = &inner;
  element flags, dims, name;
  uint8_t bytes[8];
  if (depth > DEEPEST) return corrupt(r, e->offset, err, "values nested too deep");
  SN_TRY(read_element(r, e->offset, true, &flags, err));
  if (flags.bytes != 8) return corrupt(r, e->offset, err, "no array flags");
  SN_TRY(sn_stream_read_exact(r->stream, flags.offset, bytes, 8, err));
  uint32_t word = get32(bytes, r->big_endian);
  v->kind = (word & 0xFF) > 0 && (word & 0xFF) < MAT_OTHER ? (mat_class)(word & 0xFF) : MAT_OTHER;
  v->complex = (word & 0x0800) != 0;
  if (v->kind == MAT_OTHER) return SN_OK; /* function handles and opaque objects have another layout */
  SN_TRY(read_element(r, flags.next, true, &dims, err));
  SN_TRY(read_dims(r, &dims, v, err));
  SN_TRY(read_element(r, dims.next, true, &name, err));
  int64_t length = name.bytes < MAT_NAME - 1 ? name.bytes : MAT_NAME - 1, at = name.next;
  if (length > 0) SN_TRY(sn_stream_read_exact(r->stream, name.offset, v->name, length, err));
  if (v->kind == MAT_SPARSE) return SN_OK;
  if (v->kind == MAT_OBJECT) { /* the name of its class */
    element type;
    SN_TRY(read_element(r, at, true, &type, err));
    at = type.next;
  }
  if (v->kind == MAT_CELL) return read_children(r, &at, v->n, depth, v, err);
  if (v->kind == MAT_STRUCT || v->kind == MAT_OBJECT) return read_fields(r, &at, depth, v, err);
  if (v->n == 0 && at >= r->end) return SN_OK; /* some writers leave the empty element out */
  return read_numbers(r, at, v, err);
}

/* ---- compressed variables ---- */

static sn_status inflate_element(const reader *r, const element *e, int64_t *inflated, mat_block *block, int64_t *n,
                                 sn_error *err) {
  uint8_t packed[PIECE];
  int64_t room = 0, at = e->offset, end = e->offset + e->bytes;
  z_stream z = {0};
  int code = Z_OK;
  sn_status status = SN_OK;
  if (sn_alloc_should_fail() || inflateInit(&z) != Z_OK)
    return sn_fail(err, SN_E_MEMORY, "out of memory for decompression");
  while (code != Z_STREAM_END) {
    if (z.avail_in == 0 && at < end) {
      int64_t k = end - at < PIECE ? end - at : PIECE;
      SN_TRY_GOTO(sn_stream_read_exact(r->stream, at, packed, k, err), done);
      z.next_in = packed;
      z.avail_in = (uInt)k;
      at += k;
    }
    SN_TRY_GOTO(sn_grow(&block->data, &room, *n + PIECE, 1, "a compressed variable", err), done);
    z.next_out = (Bytef *)block->data + *n;
    z.avail_out = PIECE;
    code = inflate(&z, Z_NO_FLUSH);
    int64_t got = PIECE - (int64_t)z.avail_out;
    *n += got;
    *inflated += got;
    if (*inflated > MOST_INFLATED) {
      status = sn_fail(err, SN_E_UNSUPPORTED, "'%s': its variables unpack to more than %lld bytes",
                       sn_stream_name(r->stream), (long long)MOST_INFLATED);
      goto done;
    }
    if (code == Z_MEM_ERROR) {
      status = sn_fail(err, SN_E_MEMORY, "out of memory for decompression");
      goto done;
    }
    if ((code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR) ||
        (code != Z_STREAM_END && got == 0 && z.avail_in == 0 && at >= end)) {
      status = corrupt(r, e->offset, err, "a compressed variable that is damaged or cut");
      goto done;
    }
  }
done:
  inflateEnd(&z);
  return status;
}

static sn_status read_compressed(mat_file *file, const reader *r, const element *e, int64_t *room, int64_t *inflated,
                                 mat_value *v, sn_error *err) {
  element inner;
  int64_t n = 0;
  SN_TRY(sn_grow(&file->blocks, room, file->n_blocks + 1, sizeof *file->blocks, "compressed variables", err));
  mat_block *block = &file->blocks[file->n_blocks];
  memset(block, 0, sizeof *block);
  file->n_blocks++;
  SN_TRY(inflate_element(r, e, inflated, block, &n, err));
  SN_TRY(sn_stream_open_memory(sn_stream_name(r->stream), block->data, n, &block->stream, err));
  const reader unpacked = {block->stream, r->big_endian, n};
  SN_TRY(read_element(&unpacked, 0, true, &inner, err));
  if (inner.type != TYPE_MATRIX) return SN_OK; /* nothing that is known; left out */
  return read_matrix(&unpacked, &inner, 0, v, err);
}

/* ---- the file ---- */

bool sn_mat5_looks_like(const uint8_t *head, int64_t n) {
  if (n < HEADER || sn_mat73_looks_like(head, n)) return false;
  bool little = head[126] == 'I' && head[127] == 'M', big = head[126] == 'M' && head[127] == 'I';
  return (little && head[125] == 1) || (big && head[124] == 1);
}

bool sn_mat73_looks_like(const uint8_t *head, int64_t n) {
  static const uint8_t signature[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  return n >= 520 && memcmp(head, "MATLAB 7.3", 10) == 0 && memcmp(head + 512, signature, 8) == 0;
}

static sn_status read_variables(mat_file *file, const reader *r, sn_error *err) {
  int64_t room = 0, block_room = 0, inflated = 0;
  for (int64_t at = HEADER; at < r->end;) {
    element e;
    SN_TRY(read_element(r, at, false, &e, err));
    SN_TRY(sn_grow(&file->values, &room, file->n + 1, sizeof *file->values, "variables", err));
    mat_value *v = &file->values[file->n];
    memset(v, 0, sizeof *v);
    file->n++;
    if (e.type == TYPE_MATRIX)
      SN_TRY(read_matrix(r, &e, 0, v, err));
    else if (e.type == TYPE_COMPRESSED)
      SN_TRY(read_compressed(file, r, &e, &block_room, &inflated, v, err));
    else
      return corrupt(r, at, err, "neither a matrix nor a compressed one");
    at = e.next;
  }
  return SN_OK;
}

sn_status sn_mat5_open(sn_stream *stream, mat_file **out, sn_error *err) {
  uint8_t head[520];
  int64_t n;
  mat_file *file = NULL;
  sn_status status = sn_stream_read(stream, 0, head, sizeof head, &n, err);
  if (status != SN_OK && status != SN_END) return status;
  if (sn_mat73_looks_like(head, n))
    return sn_fail(err, SN_E_UNSUPPORTED, "'%s' is a MATLAB file of version 7.3 (HDF5)", sn_stream_name(stream));
  if (!sn_mat5_looks_like(head, n))
    return sn_fail_at(err, SN_E_FORMAT, 124, -1, NULL, "'%s' is no MATLAB file of level 5", sn_stream_name(stream));
  SN_TRY(sn_stream_check(stream, err));
  const reader r = {stream, head[126] == 'M', sn_stream_size(stream)};
  SN_TRY(sn_alloc(&file, 1, sizeof *file, "MATLAB file", err));
  status = read_variables(file, &r, err);
  if (status != SN_OK) {
    sn_mat5_close(file);
    return status;
  }
  file->stream = stream;
  *out = file;
  return SN_OK;
}

void sn_mat5_close(mat_file *file) {
  if (file == NULL) return;
  for (int64_t i = 0; i < file->n; i++) free_value(&file->values[i]);
  for (int64_t i = 0; i < file->n_blocks; i++) {
    sn_stream_close(file->blocks[i].stream);
    sn_free(file->blocks[i].data);
  }
  sn_free(file->values);
  sn_free(file->blocks);
  sn_stream_close(file->stream);
  sn_free(file);
}

/* ---- values ---- */

const mat_value *sn_mat5_variable(const mat_file *file, const char *name) {
  for (int64_t i = 0; i < file->n; i++)
    if (strcmp(file->values[i].name, name) == 0) return &file->values[i];
  return NULL;
}

const mat_value *sn_mat5_field(const mat_value *v, int64_t index, const char *name) {
  if (v == NULL || v->children == NULL || index < 0 || index >= v->n) return NULL;
  for (int64_t f = 0; f < v->n_fields; f++)
    if (strcmp(v->fields[f], name) == 0) return &v->children[index * v->n_fields + f];
  return NULL;
}

static double decode(const uint8_t *b, int type, bool big) {
  uint8_t o[8];
  int n = type_bytes(type);
  for (int i = 0; i < n; i++) o[i] = b[big ? n - 1 - i : i]; /* little-endian from here */
  uint64_t u = 0;
  for (int i = n - 1; i >= 0; i--) u = u << 8 | o[i];
  uint32_t u32 = (uint32_t)u;
  float single;
  double real;
  memcpy(&single, &u32, 4);
  memcpy(&real, &u, 8);
  switch (type) {
    case TYPE_INT8:
      return (int8_t)u;
    case TYPE_INT16:
      return (int16_t)u;
    case TYPE_INT32:
      return (int32_t)u32;
    case TYPE_INT64:
      return (double)(int64_t)u;
    case TYPE_SINGLE:
      return single;
    case TYPE_DOUBLE:
      return real;
    default:
      return (double)u;
  }
}

sn_status sn_mat5_numbers(const mat_value *v, int64_t first, int64_t n, double *out, sn_error *err) {
  uint8_t buffer[4096];
  if (v == NULL || v->stream == NULL || first < 0 || n < 0 || first > v->n || n > v->n - first ||
      v->bytes / type_bytes(v->type) < first + n)
    return sn_fail(err, SN_E_CORRUPT, "numbers %lld to %lld of a MATLAB array are not there", (long long)first,
                   (long long)first + n);
  const int64_t size = type_bytes(v->type), most = (int64_t)sizeof buffer / size;
  for (int64_t i = 0; i < n; i += most) {
    int64_t k = n - i < most ? n - i : most;
    SN_TRY(sn_stream_read_exact(v->stream, v->offset + (first + i) * size, buffer, k * size, err));
    for (int64_t j = 0; j < k; j++) out[i + j] = decode(buffer + j * size, v->type, v->big_endian);
  }
  return SN_OK;
}

bool sn_mat5_scalar(const mat_value *v, double *out) {
  return v != NULL && v->kind >= MAT_DOUBLE && v->n >= 1 && sn_mat5_numbers(v, 0, 1, out, NULL) == SN_OK;
}

static sn_status append_character(sn_string *text, uint32_t c, sn_error *err) {
  char bytes[4];
  int64_t n = 0;
  if (c == 0) c = ' ';
  if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) c = 0xFFFD;
  if (c < 0x80)
    bytes[n++] = (char)c;
  else if (c < 0x800)
    bytes[n++] = (char)(0xC0 | c >> 6);
  else if (c < 0x10000)
    bytes[n++] = (char)(0xE0 | c >> 12);
  else
    bytes[n++] = (char)(0xF0 | c >> 18);
  for (int shift = c < 0x80 ? -1 : c < 0x800 ? 0 : c < 0x10000 ? 6 : 12; shift >= 0; shift -= 6)
    bytes[n++] = (char)(0x80 | (c >> shift & 0x3F));
  return sn_string_append(text, bytes, n, err);
}

sn_status sn_mat5_text(const mat_value *v, char **out, sn_error *err) {
  enum { LONGEST = 1 << 16 };
  sn_string text = {0};
  sn_status status = SN_OK;
  *out = NULL;
  if (v == NULL || v->kind != MAT_CHAR || v->stream == NULL || v->n == 0) return SN_OK;
  if (v->n > LONGEST || v->bytes > 4 * LONGEST)
    return sn_fail(err, SN_E_UNSUPPORTED, "a text of %lld characters in a MATLAB file", (long long)v->n);
  if (v->type == TYPE_UTF8 || v->type == TYPE_INT8 || v->type == TYPE_UINT8) { /* UTF-8, or Latin-1 */
    char bytes[4 * LONGEST / 4];
    int64_t n = v->bytes < (int64_t)sizeof bytes ? v->bytes : (int64_t)sizeof bytes;
    SN_TRY(sn_stream_read_exact(v->stream, v->offset, bytes, n, err));
    return sn_text_to_utf8(bytes, n, out, NULL, err);
  }
  for (int64_t i = 0; i < v->n; i++) {
    double c, low;
    SN_TRY_GOTO(sn_mat5_numbers(v, i, 1, &c, err), done);
    uint32_t code = c >= 0 && c <= 0x10FFFF ? (uint32_t)c : 0xFFFD;
    if (code >= 0xD800 && code < 0xDC00 && i + 1 < v->n && sn_mat5_numbers(v, i + 1, 1, &low, NULL) == SN_OK &&
        low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
      i++;
    }
    SN_TRY_GOTO(append_character(&text, code, err), done);
  }
  *out = text.data;
  return SN_OK;
done:
  sn_string_free(&text);
  return status;
}
