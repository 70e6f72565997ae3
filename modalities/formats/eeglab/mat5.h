/* MATLAB files of level 5 (MathWorks, "MAT-File Format", chapter 1): a tree of named arrays over a stream.
 *
 * Both byte orders, compressed variables (inflated into memory, at most 2^31 bytes together), numbers, text, cells,
 * structs and the fields of objects. Numbers stay where they are and are read when asked for. Sparse arrays, function
 * handles and opaque objects are listed with their class and have no values. */
#ifndef SN_MODALITIES_MAT5_H
#define SN_MODALITIES_MAT5_H

#include <stdbool.h>
#include <stdint.h>

#include "core/stream.h"

enum { MAT_NAME = 64, MAT_DIMS = 8 };

typedef enum mat_class {
  MAT_NONE = 0,
  MAT_CELL = 1,
  MAT_STRUCT = 2,
  MAT_OBJECT = 3,
  MAT_CHAR = 4,
  MAT_SPARSE = 5,
  MAT_DOUBLE = 6,
  MAT_SINGLE = 7,
  MAT_INT8 = 8,
  MAT_UINT8 = 9,
  MAT_INT16 = 10,
  MAT_UINT16 = 11,
  MAT_INT32 = 12,
  MAT_UINT32 = 13,
  MAT_INT64 = 14,
  MAT_UINT64 = 15,
  MAT_OTHER = 16
} mat_class;

typedef struct mat_value mat_value;
struct mat_value {
  mat_class kind;
  bool complex;        /* only the real part is read */
  char name[MAT_NAME]; /* of a variable; "" elsewhere */
  int n_dims;
  int64_t dims[MAT_DIMS];
  int64_t n;               /* elements */
  const sn_stream *stream; /* numbers and text: borrowed from the file */
  int64_t offset, bytes;   /* of the stored numbers */
  int type;                /* of the stored numbers (miINT8 1, ..., miDOUBLE 9, ...); may be narrower than the class */
  bool big_endian;
  int64_t n_fields; /* structs and objects */
  char (*fields)[MAT_NAME];
  mat_value *children; /* cells: (n); structs: (n, n_fields) */
};

typedef struct mat_file {
  int64_t n;
  mat_value *values; /* variables in the order of the file */
  sn_stream *stream; /* owned */
  int64_t n_blocks;
  struct mat_block *blocks; /* inflated variables */
} mat_file;

/* Takes `stream`, whose ownership passes on success. SN_E_FORMAT: no such file; SN_E_UNSUPPORTED: level 4 or 7.3;
 * SN_E_CORRUPT with the offset. */
SN_MUST_CHECK sn_status sn_mat5_open(sn_stream *stream, mat_file **out, sn_error *err);
void sn_mat5_close(mat_file *file); /* accepts NULL */
/* Whether a file begins as level 5 does; as 7.3 does (an HDF5 file behind 512 bytes). */
bool sn_mat5_looks_like(const uint8_t *head, int64_t n);
bool sn_mat73_looks_like(const uint8_t *head, int64_t n);

const mat_value *sn_mat5_variable(const mat_file *file, const char *name);                 /* NULL: none */
const mat_value *sn_mat5_field(const mat_value *value, int64_t element, const char *name); /* NULL: none */
/* Elements first .. first + n of a numeric or text array as float64. SN_E_CORRUPT where it is none or shorter. */
SN_MUST_CHECK sn_status sn_mat5_numbers(const mat_value *value, int64_t first, int64_t n, double *out, sn_error *err);
/* The first element of a numeric array; false when there is none. */
bool sn_mat5_scalar(const mat_value *value, double *out);
/* A text of one row as UTF-8, fresh (sn_free); *out NULL when the value is no text or empty. */
SN_MUST_CHECK sn_status sn_mat5_text(const mat_value *value, char **out, sn_error *err);

#endif
